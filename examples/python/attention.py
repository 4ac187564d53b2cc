"""Attention of a ragged batch over a paged KV cache: planned, run by the library's kernels, compared with numpy."""

import time

import numpy as np
import ptowsp

HEADS, GROUP, DIM, PAGE = 4, 4, 64, 16
kv_lengths = np.array([900, 6000, 40, 2500], np.int32)
query_lengths = np.array([1, 1, 40, 4], np.int32)  # two requests decode, one is a prompt, one verifies drafts
rng = np.random.default_rng(1)
queries = rng.standard_normal((query_lengths.sum(), HEADS * GROUP, DIM)).astype(np.float32)
page_counts = -(-kv_lengths // PAGE)
pages = rng.permutation(page_counts.max() * len(kv_lengths)).astype(np.int32).reshape(len(kv_lengths), -1)
cache = rng.standard_normal((pages.size, 2, PAGE, HEADS, DIM)).astype(np.float16)

with ptowsp.Context() as context:
    start = time.perf_counter()
    plan = ptowsp.attention_plan(
        kv_lengths, query_lengths, heads=HEADS, group=GROUP, lanes=context.lanes, page_size=PAGE, causal=True
    )
    job = plan.attend_job(queries, cache[:, 0], cache[:, 1], pages=pages)
    job.run(context)
    ours = time.perf_counter() - start

start = time.perf_counter()
expected, first = np.empty_like(job.out), 0
for table, n, count in zip(pages, kv_lengths, query_lengths):
    k, v = (part.reshape(-1, HEADS, 1, DIM)[:n].astype(np.float32) for part in cache[table].swapaxes(0, 1))
    q = queries[first : first + count].reshape(count, HEADS, GROUP, DIM)
    score = q.transpose(1, 2, 0, 3) @ k.transpose(1, 2, 3, 0) / np.sqrt(DIM)
    score[..., np.arange(n) > np.arange(n - count, n)[:, None]] = -np.inf
    weight = np.exp(score - score.max(axis=-1, keepdims=True))
    rows = weight / weight.sum(axis=-1, keepdims=True) @ v.transpose(1, 2, 0, 3)
    expected[first : first + count] = rows.transpose(2, 0, 1, 3).reshape(count, -1, DIM)
    first += count
numpys = time.perf_counter() - start
print(f"{len(plan.units)} units, {len(plan.merges)} merges: {1e3 * ours:.1f} ms, and by numpy {1e3 * numpys:.1f} ms")
assert abs(job.out - expected).max() < 1e-5
