"""PyTorch's scaled_dot_product_attention over padded KV, beside build/cuda_decode: the same lengths in one batch.

    python3 examples/cuda/sdpa.py [--batch 64] [--kind lognormal|long|equal] [--group 8] [--lengths FILE]

Lengths are one a line in FILE. Prints the time of the padded call and the share of its KV that is padding."""

import argparse
import math
import random
import statistics
import sys


def lengths_of(options):
    if options.lengths:
        with open(options.lengths, encoding="ascii") as lines:
            return [int(line) for line in lines if line.strip()]
    if options.kind == "equal":
        return [2048] * options.batch
    draw = random.Random(1)
    lengths = [min(131072, max(1, int(math.exp(draw.gauss(6.9, 1.3))))) for _ in range(options.batch)]
    if options.kind == "long":
        lengths = [131072] + [256 + length % 768 for length in lengths[1:]]
    return lengths


def main():
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parse.add_argument("--batch", type=int, default=64)
    parse.add_argument("--kind", choices=("lognormal", "long", "equal"), default="lognormal")
    parse.add_argument("--group", type=int, default=8)
    parse.add_argument("--heads", type=int, default=8)
    parse.add_argument("--rounds", type=int, default=31)
    parse.add_argument("--lengths")
    options = parse.parse_args()
    try:
        import torch
    except ImportError:
        print("sdpa: there is no PyTorch, so nothing was run")
        return 0
    if not torch.cuda.is_available():
        print("sdpa: PyTorch has no CUDA device, so nothing was run")
        return 0
    lengths = lengths_of(options)
    batch, most, heads = len(lengths), max(lengths), options.heads
    shape = (batch, heads, most, 128)
    if 4 * math.prod(shape) > torch.cuda.mem_get_info()[0] * 0.9:
        print(f"sdpa: {batch} sequences padded to {most} tokens exceed the device's memory")
        return 0
    keys = torch.randn(shape, dtype=torch.float16, device="cuda")
    values = torch.randn(shape, dtype=torch.float16, device="cuda")
    # The query heads of a KV head are its query tokens: KV is read once for a group.
    queries = torch.randn((batch, heads, options.group, 128), dtype=torch.float16, device="cuda")
    tokens = torch.arange(most, device="cuda")
    mask = (tokens[None, :] < torch.tensor(lengths, device="cuda")[:, None])[:, None, None, :]
    times = []
    for _ in range(options.rounds + 1):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        torch.nn.functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1000.0)
    padding = 100.0 * (1.0 - sum(lengths) / (batch * most))
    print(f"  PyTorch      {statistics.median(times[1:]):8.1f} us  {padding:.0f} % of its KV is padding")
    return 0


if __name__ == "__main__":
    sys.exit(main())
