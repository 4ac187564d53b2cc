"""Plans a decode step over the cores of a device: five lines, and what they give."""

import numpy as np
import ptowsp

kv_lengths = np.array([700, 12000, 0, 2500], np.int32)  # of an engine: seq_lens.numpy(), for one
plan = ptowsp.attention_plan(kv_lengths, heads=8, group=4, lanes=24, page_size=16)
for unit in plan.lane_units(5):
    print(
        f"lane 5: request {unit.request}, head {unit.head}, tokens {unit.kv_start} to {unit.kv_start + unit.kv_len}"
    )
print(
    f"{len(plan.units)} units, {len(plan.merges)} merges, largest lane {plan.cost_max / plan.cost_mean:.3f} of the mean"
)

# Every token of every head is in one unit.
tokens = np.zeros((len(kv_lengths), 8), np.int64)
np.add.at(tokens, (plan.units["request"], plan.units["head"]), plan.units["kv_len"])
assert (tokens == kv_lengths[:, None]).all()
