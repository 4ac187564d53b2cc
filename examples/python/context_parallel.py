"""Context parallelism: a prompt whose tokens are dealt to ranks in turn, each rank's queries against the KV of all ranks.

Rank r has tokens r, r + ranks, r + 2 * ranks, ... KV goes round the ranks; what a rank computes from each of them is a
partial result, and log-sum-exps say how these are merged. Tokens in turn give all ranks the same work, blocks of
neighbours do not: of 4 ranks the last one sees 7 / 4 of the mean.
"""

import numpy as np
import ptowsp

RANKS, TOKENS, HEADS, GROUP, DIM = 4, 1000, 2, 4, 64
rng = np.random.default_rng(1)
queries = rng.standard_normal((TOKENS, HEADS * GROUP, DIM)).astype(np.float32)
keys, values = rng.standard_normal((2, TOKENS, HEADS, DIM)).astype(np.float32)
planner = ptowsp.AttentionPlanner(heads=HEADS, group=GROUP, lanes=8, causal=True)


def in_turn(rank):
    return slice(rank, None, RANKS), rank, RANKS


def in_blocks(rank):
    return slice(rank * TOKENS // RANKS, (rank + 1) * TOKENS // RANKS), rank * TOKENS // RANKS, 1


def attend(rank, deal):
    """The rows of a rank, and the cost of its plans."""
    mine, first, stride = deal(rank)
    q, parts, cost = queries[mine].copy(), [], 0.0
    for source in range(RANKS):
        theirs, kv_first, kv_stride = deal(source)
        k, v = keys[theirs].copy(), values[theirs].copy()
        positions = {
            "query_first": [first],
            "query_stride": [stride],
            "kv_first": [kv_first],
            "kv_stride": [kv_stride],
        }
        plan = planner.plan([len(k)], [len(q)], positions)
        lse = np.empty(q.shape[:2], np.float32)
        parts.append((plan.attend(q, k, v, lse=lse), lse))
        cost += plan.lane_costs.sum()
    outs, lses = (np.array(part) for part in zip(*parts))
    weights = np.exp(lses - lses.max(axis=0))[..., None]
    return (outs * weights).sum(axis=0) / weights.sum(axis=0), cost


whole = planner.plan([TOKENS], [TOKENS]).attend(queries, keys, values)
for name, deal in ("in turn", in_turn), ("in blocks", in_blocks):
    rows, costs = zip(*(attend(rank, deal) for rank in range(RANKS)))
    for rank in range(RANKS):
        assert abs(rows[rank] - whole[deal(rank)[0]]).max() < 1e-5
    print(f"tokens {name}: largest cost of a rank / mean {max(costs) / np.mean(costs):.2f}")
