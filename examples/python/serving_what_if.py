"""A decode step of a model as a workload: its time on cores of a device, what bounds it, and what would help."""

import os
import sys

import ptowsp

STEP = """module decode
axis layers 4
axis kv plan
axis kv plan, its merges
axis slices 24
kernel project(axes 1) vector, 900 cycles
kernel attend(axes 1, tokens i64) vector, cycles by a cost function
kernel merge(axes 1, parts i64) vector, cycles by a cost function
kernel feed_forward(axes 1) vector, 2400 cycles
workload step
  for_each layer in layers
    sequence
      parallel s in slices
        task project(s)
      parallel u in kv
        task attend(u) tokens = i64(kv.kv_len[u])
      parallel m in merges of kv
        task merge(m) parts = i64(kv.merges.slot_count[m])
      parallel s in slices
        task feed_forward(s)
"""
COSTS = {
    "attend": lambda task: 200 + task.scalars[0],  # one KV token of a head a cycle
    "merge": lambda task: 50 * task.scalars[0],
}
KV_LENGTHS = [700, 12000, 0, 2500, 300, 300, 4100, 950]

for lanes in (8, 24):
    program = ptowsp.Program(STEP, schedule=f"dispatch plan of task.args[0] over {lanes} lanes", costs=COSTS)
    plan = ptowsp.attention_plan(
        KV_LENGTHS, heads=8, group=4, lanes=lanes, page_size=16, cost={"per_unit": 200, "per_token": 1}
    )
    run = program.time(kv=plan)
    print(f"{lanes} lanes: {run.makespan} cycles, {run.bounds.largest} at least")

answers = run.what_if(attend=50, feed_forward=50)
for kernel, makespan in answers.items():
    print(f"with {kernel} at 50 %: {makespan} cycles")
last = run.critical_path[-1]
print(f"the last task: {last.label}, on lane {last.lane} from {last.start} to {last.end}")
assert run.bounds.largest <= run.makespan and max(answers.values()) < run.makespan

if len(sys.argv) > 1:  # a folder for its timeline and report
    for name, text in {"step.svg": run.svg(), "step.html": run.report("html")}.items():
        with open(os.path.join(sys.argv[1], name), "w", encoding="utf-8") as file:
            file.write(text)
