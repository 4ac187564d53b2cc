"""Experts of a layer by their loads: replicas on ranks, what that saves, and few moves as loads drift."""

import numpy as np
import ptowsp

EXPERTS, REPLICAS, RANKS, TOKENS, TOP_K = 64, 80, 16, 4096, 6


def counts_of(step):
    """Tokens of each expert, in a step of a router whose loads are skewed, and drift."""
    ids = ptowsp.moe_routes("skewed", tokens=TOKENS, top_k=TOP_K, experts=EXPERTS, seed=7 + step // 8, skew=6)
    return ids, ptowsp.moe_sort(ids, EXPERTS).counts


loads = np.zeros(EXPERTS, np.float32)
for step in range(8):
    ids, counts = counts_of(step)
    ptowsp.moe_history_add(loads, counts, decay=0.9)
before = ptowsp.moe_balance(counts, ranks=RANKS)

placement = ptowsp.place_experts(loads, replicas=REPLICAS, ranks=RANKS)
replicas = placement.share(ids)
after = ptowsp.moe_balance(ptowsp.moe_sort(replicas, REPLICAS).counts, ranks=RANKS)
print(
    f"busiest rank over mean: {before.rank_ratio:.2f} without replicas, {after.rank_ratio:.2f} with {REPLICAS - EXPERTS}"
)

_, drifted = counts_of(8)
(moved,) = placement.move(drifted.astype(np.float32), 10)
print(
    f"loads drifted: {moved.load_before:.0f} tokens on the busiest rank, {moved.load_after:.0f} after {moved.move_count} moves"
    f" (mean {moved.load_mean:.0f})"
)

order = ptowsp.moe_sort(replicas, REPLICAS, block_rows=16)
plan = ptowsp.moe_plan(order.counts, order.offsets, lanes=132, block_rows=16)
print(
    f"{len(plan.units)} units on {plan.lane_count} lanes, largest lane {plan.cost_max / plan.cost_mean:.3f} of the mean"
)
assert (
    after.rank_ratio < before.rank_ratio
    and moved.load_after < moved.load_before
    and plan.cost_max < 1.1 * plan.cost_mean
)
