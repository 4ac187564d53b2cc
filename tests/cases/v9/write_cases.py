#!/usr/bin/env python3
"""Writes the cases of PTO-WSP v9: tests/cases/v9_*.case.

    python3 tests/cases/v9/write_cases.py v9_cases.json time > tests/cases/v9_time.case
    python3 tests/cases/v9/write_cases.py v9_cases.json kernels > tests/cases/v9_kernels.case
    python3 tests/cases/v9/write_cases.py v9_cases.json pipelines > tests/cases/v9_pipelines.case

v9_cases.json holds workloads and the results that PTO-WSP v9 gives for them. `time` takes those of
the groups `test` and `sched`, with C functions for kernels. `kernels` takes those of `kernel`,
`example` and `test`, and of `sched` where all kernels have operations, with tile kernels of these
operations. `pipelines` takes all that are pipelines, with both kinds of kernels.

Before anything is written, every expected value about time is worked out again by model.py, from
the rules of time alone, and must be the same. The model also gives what the file lacks: the tasks
of the two largest workloads, those of dataflow issue, as hashes, and the results of processes and
channels.
"""

import json
import sys
import textwrap

sys.dont_write_bytecode = True

from model import MASK, Model, is_burn, scalars_of, tiles_of

WHICH = sys.argv[2]
PIPELINES = WHICH == "pipelines"
TILES = WHICH != "time"
GROUPS = ("kernel", "example", "test", "sched") if TILES else ("test", "sched")
TASKS_MAX = 24  # of a pipeline, in full; with more only their hash
LATENCY = "__pto_wsp_channel_latency_cycles"

HEADS = {
    "time": """\
# Time as PTO-WSP v9 has it: workloads of C functions, in order and by dataflow.
#
# The kernels take the cycles that v9 says, so the rules of time alone are tested.
""",
    "kernels": """\
# Tile kernels as PTO-WSP v9 has them: what they lower to, and the time and data of their workloads.
#
# `lowers` has v9's instructions, in order and with their cycles, but for those of 0 cycles.
""",
    "pipelines": """\
# Pipelines as PTO-WSP v9 has them: processes and bounded channels.
#
# Times in v9 depended on threads; here they are the exact values of the rules of bounded channels.
# Each case runs in two ways. Bound: as in v9, kernels return cycles that are data, and a symbol
# overrides the latency of all channels. Declared: channels have the latency, and kernels a cost
# function, so that time is also measured without running them.
""",
}

RULES = {"time": "18 Schedules: as in PTO-WSP v9", "kernels": "24 Tile kernels: as in PTO-WSP v9",
         "pipelines": "25 Pipelines: as in PTO-WSP v9"}

MODES = """\
mode in order: issue in order
mode structure: dependencies structure
mode raw: dependencies structure exact; hazards raw
mode all: dependencies structure exact; hazards raw war waw
mode hybrid, no sooner than structure:
"""

WAYS = """\
way bound: let latency 1000; let cost; with symbol %s $cycles
way declared: let latency $cycles; let cost , cycles by a cost function
""" % LATENCY

# The C function of a kernel (tests/support/case_kernels.h); kernels that are not here are an error.
FUNCTIONS = {
    "copy_tile": "copy", "load": "copy", "copy": "copy", "cp": "copy", "square": "square",
    "mark": "increment", "write_flag": "is_positive", "fill_true": "store_7",
    "fill_false": "store_3", "mm": "matmul", "expert_linear": "matmul", "attn_tile": "attention",
    "add_tile": "add", "rmsnorm_tile": "rmsnorm", "mlp_tile": "mlp", "moe_mix": "mix",
    "topk8": "topk",
}


def has_tiles(kernel):
    """Whether it is made of operations: the others are C functions everywhere."""
    return TILES and "custom" not in kernel


def function_of(kernel):
    return "burn" if is_burn(kernel) else FUNCTIONS[kernel["name"]]


def is_taken(case):
    if PIPELINES:
        return case["workload"]["node"] == "pipeline"
    if case["group"] not in GROUPS:
        return False
    return not TILES or case["group"] != "sched" or all(has_tiles(k) for k in case["kernels"])


# -- expected values ------------------------------------------------------------------------------


def fnv(value, word):
    return ((value ^ word) * 0x100000001b3) & MASK


def tasks_hash(case, tasks):
    """As case_tasks_hash: FNV-1a over the bytes of names and over 64-bit words."""
    value = 0xcbf29ce484222325
    for kernel, _, lane, ready, start, end in tasks:
        for word in case["kernels"][kernel]["name"].encode():
            value = fnv(value, word)
        for word in (lane, ready, start, end):
            value = fnv(value, word)
    return value


def check(case, variant):
    """Works a variant out again; returns its tasks in order and the four hashes."""
    runtime = {**case["runtime"], **variant["runtime"]}
    expected = variant["expected"]
    wanted = {"in order": expected["total_cycles"], **expected["semantic"]}
    hashes, in_order = {}, None
    for rule in ("in order", "nohol", "raw", "full"):
        model = Model(case, runtime, rule)
        makespan = model.run()
        where = (case["name"], rule)
        assert makespan == wanted[rule], (where, makespan)
        assert len(model.tasks) == expected["task_count"], where
        assert sum(t[5] - t[4] for t in model.tasks) == expected["sum_of_durations"], where
        lanes = [sum(t[2] == lane for t in model.tasks) for lane in range(len(model.free))]
        assert lanes == expected["worker_task_counts"], where
        if rule == "in order":
            in_order = model.tasks
            assert expected.get("tasks", in_order) == in_order, where
        hashes[rule] = makespan, tasks_hash(case, model.tasks)
    return in_order, hashes


def check_pipeline(case, variant):
    """The same for a pipeline, for which all rules are one; returns the model."""
    model = Model(case, {**case["runtime"], **variant["runtime"]}, "in order")
    expected = variant["expected"]
    makespan = model.run()
    assert makespan == expected["total_cycles"] == expected["csp"]["exact"], case["name"]
    assert len(model.tasks) == expected["task_count"], case["name"]
    return model


# -- modules --------------------------------------------------------------------------------------


def expr(e, variable="%s", arg="task.args[%d]"):
    """The text of an expression and whether it is signed. As in C, u64 and i64 make u64."""
    if isinstance(e, int):
        return str(e), True
    op = e[0]
    if op == "axis":
        return variable % e[1], True
    if op == "param":
        return arg % e[1], True
    if op == "sym":
        return e[1], False
    if op == "slot_u64":
        return "slot_u64[%d]" % e[1], False
    if op in ("u64", "i64"):
        return "%s(%s)" % (op, expr(e[1], variable, arg)[0]), op == "i64"
    condition = "%s ? " % expr(e[1], variable, arg)[0] if op == "where" else ""
    sides = [expr(x, variable, arg) for x in e[-2:]]
    signed = sides[0][1] and sides[1][1]
    a, b = [text if signed or not s else "u64(%s)" % text for text, s in sides]
    if op == "where":
        return "(%s%s : %s)" % (condition, a, b), signed
    return "(%s %s %s)" % (a, op, b), signed or op in ("<", "<=", "==", "!=")


def symbols_of(e):
    if isinstance(e, int):
        return []
    if e[0] == "sym":
        return [e[1]]
    return [s for x in e[1:] if isinstance(x, (list, int)) for s in symbols_of(x)]


class Workload:
    """The declarations and the statements of a case's workload."""

    def __init__(self, case):
        self.case, self.lines, self.axes, self.symbols = case, [], [], []
        self.kernels = {k["name"]: k for k in case["kernels"]}
        self.axis_counts = {}
        self.node(1, case["workload"])

    def put(self, depth, text):
        self.lines.append("  " * depth + text)

    def axis(self, node):
        axis = node["axis"]
        name = axis.get("name", "n_" + node["var"])
        kind = {"dense": str(axis.get("n")), "dyn": "dynamic"}.get(axis["kind"], axis["kind"])
        line = "axis %s %s" % (name, kind)
        if line not in self.axes:
            self.axes.append(line)
        return name

    def view(self, arg):
        lead = ", ".join(str(i) for i in arg["index"])
        return arg["tensor"] + ("[%s]" % lead if lead else "")

    def task(self, node):
        kernel = self.kernels[node["kernel"]]
        assert set(node["args"]) == {p["name"] for p in kernel["params"]}
        self.axis_counts[kernel["name"]] = len(node["params"])
        parts = ["%s = %s" % (p["name"], self.view(node["args"][p["name"]]))
                 for p in tiles_of(kernel)]
        parts += ["%s = %d" % (p["name"], node["args"][p["name"]]) for p in scalars_of(kernel)]
        return "task %s(%s) %s" % (kernel["name"], ", ".join(str(p) for p in node["params"]),
                                   " ".join(parts))

    def body(self, depth, nodes):
        for node in nodes:
            self.node(depth, node)

    def branch(self, depth, opener, nodes):
        self.put(depth, opener)
        if len(nodes) > 1:  # independent of each other, whatever is around
            self.put(depth + 1, "combine")
        self.body(depth + 1 + (len(nodes) > 1), nodes)

    def node(self, depth, node):
        kind = node["node"]
        if kind == "task":
            self.put(depth, self.task(node))
        elif kind == "cond":
            self.symbols += symbols_of(node["pred"])
            self.branch(depth, "when " + expr(node["pred"])[0], node["then"])
            if node["else"]:
                self.branch(depth, "otherwise", node["else"])
        elif kind == "slot_set":
            self.put(depth, "slot_set %d = %s" % (node["slot"], expr(node["value"])[0]))
        elif kind == "slot_load":
            assert node["row"] == 0 and node["col"] == 0
            self.put(depth, "slot_load %d = %s element ((0), (0))" %
                     (node["slot"], self.view(node["arg"])))
        elif kind == "send":
            self.put(depth, self.task(node["task"]))
            self.put(depth, "send %s(%s)" % (self.channels[node["channel"]],
                                             node["task"]["params"][0]))
        elif kind == "pipeline":
            self.pipeline(depth, node)
        elif kind == "consume":
            self.put(depth, "consume %s from %s" % (node["var"], self.channels[node["channel"]]))
            self.body(depth + 1, node["body"])
        elif kind in ("par", "seq"):
            self.put(depth, {"par": "combine", "seq": "sequence"}[kind])
            self.body(depth + 1, node["body"])
        else:
            opener = {"pfor": "parallel", "for": "for_each", "sel": "select"}[kind]
            self.put(depth, "%s %s in %s" % (opener, node["var"], self.axis(node)))
            self.body(depth + 1, node["body"])

    def pipeline(self, depth, node):
        self.channels = {c["name"]: "abcdef"[i] for i, c in enumerate(node["channels"])}
        self.symbols.append(LATENCY)
        self.put(depth, "pipeline pipeline")
        for name in self.channels.values():
            self.put(depth + 1, "channel %s depth $%s latency $latency" % (name, name))
        for i, process in enumerate(node["processes"]):
            line = "process " + "abcdef"[i]
            for role in ("consumes", "produces"):
                if process[role]:
                    line += " %s %s" % (role, ", ".join(self.channels[c] for c in process[role]))
            self.put(depth + 1, line)
            self.body(depth + 2, process["body"])


OPS = {"iota_u32": "iota 0 : u32 1 x %(n)s", "tsort32": "sort32", "topk_idx": "topk_indices",
       "const": "const %(value)s"}


def kernel_text(kernel, axis_count):
    tiles = ["%s %s %s %d x %d" % (p["dir"], p["name"], p["dtype"], p["rows"], p["cols"])
             for p in tiles_of(kernel)]
    params = ", ".join(["axes %d" % axis_count] + tiles
                       + [p["name"] + " i64" for p in scalars_of(kernel)])
    head = "kernel %s(%s) " % (kernel["name"], params)
    if not has_tiles(kernel):
        cost = "$cost" if PIPELINES else ""
        return head + "vector" + (", %d cycles" % kernel["cycles"] if "cycles" in kernel else cost)
    ops, lines, values = kernel["ops"], [], {}
    cube = any(op["op"] == "matmul" for op in ops)
    vector = any(op["op"] not in ("matmul", "store", "load") for op in ops) or not cube
    # Data that goes from a product into another passes the vector core.
    chained = any(op["op"] == "matmul" and set(op["src"]) & {o["dst"] for o in ops
                                                             if o["op"] == "matmul"} for op in ops)
    vector = vector or chained
    for name in [p["name"] for p in tiles_of(kernel)]:
        values[name] = "%%%d" % (len(values) + 1)
        lines.append("  %s = parameter %s" % (values[name], name))
    for p in scalars_of(kernel):
        values[p["name"]] = "%%%d" % (len(values) + 1)
        lines.append("  %s = scalar %s : i64" % (values[p["name"]], p["name"]))
    stores = dict(values)
    for op in ops:
        sources = ", ".join(values[s] for s in op["src"])
        if op["op"] == "store":
            lines.append("  store %s, %s" % (stores[op["dst"]], sources))
            continue
        word = OPS.get(op["op"], op["op"]) % op
        if op["op"] == "topk_idx":
            sources += " : u32 1 x %d" % op["k"]
        values[op["dst"]] = "%%%d" % (len(lines) + 1 - sum("store" in x for x in lines))
        lines.append("  %s = %s %s" % (values[op["dst"]], word, sources))
    unit = "mix" if cube and vector else "cube" if cube else "vector"
    insns = ["%s %d" % (e[0].split(".")[0].split(" ")[0], e[1]) for e in kernel["lowering"] if e[1]]
    lines = [head + unit + ", 0 instructions"] + [line.rstrip() for line in lines]
    return "\n".join(lines + fill("  lowers %d: " % kernel["cycles"], insns, ", ", "    "))


def numbers(values):
    """Runs of a number as number*count."""
    runs = []
    for value in values:
        text = "%.17g" % value
        if runs and runs[-1][0] == text:
            runs[-1][1] += 1
        else:
            runs.append([text, 1])
    return [text if n == 1 else "%s*%d" % (text, n) for text, n in runs]


def tensor_lines(tensor):
    """The declaration and the data before a run."""
    init = tensor["init"]
    shape = ", ".join(str(n) for n in tensor["shape"])
    declared = "tensor %s %s [%s] global" % (tensor["name"], tensor["dtype"], shape)
    head = "with tensor %s " % tensor["name"]
    tail = "transposed" if tensor.get("transpose_last2") else ""
    if init["kind"] == "data":
        data = fill(head + "= ", numbers(init["data"]), " ", "  ")
    elif init["kind"] == "mod":
        rule = [init[k] for k in ("mul", "add", "mod", "sub", "scale")]
        data = [(head + "rule " + " ".join("%.17g" % r for r in rule) + " " + tail).rstrip()]
    else:
        count = 1
        for n in tensor["shape"]:
            count *= n
        data = [head + "= %.17g*%d" % (init["value"], count)] if init.get("value", 0) else []
        assert not tail
    return declared, data


def is_of_a_kernel(case):
    """Whether it is one of many that do the same with one kernel each, which is called kern."""
    return [k["name"] for k in case["kernels"]] == ["kern"]


def name_kernel(case):
    """Gives such a kernel the name of its case, so that the others can share its module."""
    case["kernels"][0]["name"] = case["let"] = case["name"]
    assert case["workload"]["kernel"] == "kern"
    case["workload"]["kernel"] = case["name"]


def module_text(case, shared):
    workload = Workload(case)
    if "let" in case:
        workload.lines = [line.replace("task %s(" % case["let"], "task $kernel(")
                          for line in workload.lines]
    tensors = [tensor_lines(t) for t in case["tensors"]]
    lines = ["module v9"] + workload.axes
    lines += ["symbol " + s for s in dict.fromkeys(workload.symbols)]
    lines += [declared for declared, _ in tensors]
    for kernel in case["kernels"]:
        text = kernel_text(kernel, workload.axis_counts[kernel["name"]])
        shared.setdefault(kernel["name"], []).append((text, kernel))
        lines.append(text)
    lines += ["workload w"] + workload.lines
    short = [data[0] for _, data in tensors if len(data) == 1]
    long = [line for _, data in tensors if len(data) > 1 for line in data]
    return "\n".join(lines + (fill("", short, "; ", "  ") if short else []) + long)


# -- cases ----------------------------------------------------------------------------------------


def fill(head, items, separator, indent):
    """head and items on lines of at most 118 characters, broken between items."""
    kept = [item.replace(" ", "\0") for item in items]
    text = textwrap.fill(head.replace(" ", "\0") + (separator.strip() + " ").join(kept), 118,
                         subsequent_indent=indent.replace(" ", "\0"), break_long_words=False,
                         break_on_hyphens=False)
    return text.replace("\0", " ").split("\n")


def bindings(case, runtime):
    lines = []
    for node in loops(case["workload"]):
        axis = node["axis"]
        if axis["kind"] == "dyn":
            name = axis.get("name", "n_" + node["var"])
            lines.append("with size %s %d" % (name, runtime["axis_sizes"][node["var"]]))
        if axis["kind"] == "ragged":
            lengths = runtime.get("ragged", {}).get(axis["name"], axis["lengths"])
            lines.append("with lengths %s %s" % (axis["name"], " ".join(map(str, lengths))))
        if axis["kind"] == "sparse":
            csr = runtime.get("sparse", {}).get(axis["name"], axis)
            lines.append("with csr %s %s: %s" % (axis["name"], " ".join(map(str, csr["indptr"])),
                                                 " ".join(map(str, csr["indices"]))))
    for name, value in runtime.get("symbols", {}).items():
        lines.append("let cycles %d" % value if PIPELINES else "with symbol %s %d" % (name, value))
    return list(dict.fromkeys(lines))


def tasks_line(case, tasks):
    items, last = [], None
    for kernel, params, lane, _, start, end in tasks:
        name = case["kernels"][kernel]["name"]
        items.append("%s(%s): %s %d %d" % (name if name != last else "",
                                           ", ".join(map(str, params)),
                                           "-" if lane == 0xffffffff else lane, start, end))
        last = name
    return fill("    tasks ", items, ", ", "      ")


def variant_lines(case, variant):
    runtime = {**case["runtime"], **variant["runtime"]}
    expected = variant["expected"]
    lines = ["; ".join(bindings(case, runtime))]
    sums = ["%s %.17g %.17g" % (t["name"], expected["outputs"][t["name"]]["sum"],
                                expected["outputs"][t["name"]]["wsum"]) for t in case["tensors"]]
    if PIPELINES:
        model = check_pipeline(case, variant)
        tasks, pipeline = model.tasks, model.pipeline
        processes = ["%s: %d %d %d %d %d" % ("abcdef"[i], p.tasks, p.time, p.busy, p.full, p.empty)
                     for i, p in enumerate(pipeline.processes)]
        channels = ["%s(%d, %d): %d %d %d %d" % ("abcdef"[i], c.depth, c.latency, len(c.sent),
                                                 c.pending_max(), c.full, c.empty)
                    for i, c in enumerate(pipeline.channels.values())]
        busy, lanes = sum(p.busy for p in pipeline.processes), [0] * len(model.free)
    else:
        tasks, hashes = check(case, variant)
        busy, lanes = expected["sum_of_durations"], expected["worker_task_counts"]
    items = ["count %d" % expected["task_count"], "busy %d" % busy,
             "lanes " + " ".join(map(str, lanes)), "sums " + ", ".join(sums)]
    lines += fill("", items, "; ", "    ")
    if PIPELINES:
        makespan = expected["total_cycles"]
        lines += fill("", ["makespan %d" % makespan, "pipelines 1 0 %d" % makespan,
                           "processes " + ", ".join(processes),
                           "channels " + ", ".join(channels),
                           "hash %016x" % tasks_hash(case, tasks)], "; ", "    ")
        if len(tasks) <= TASKS_MAX:
            lines[-1] += ";"
            lines += tasks_line(case, tasks)
    else:
        named = zip(("in order", "structure", "raw", "all"), hashes.values())
        groups = {}
        for mode, time in named:
            groups.setdefault(time, []).append(mode)
        for (makespan, value), modes in groups.items():
            lines.append("under %s: makespan %d; hash %016x" % (", ".join(modes), makespan, value))
            if "in order" in modes and "tasks" in expected:
                lines[-1] += ";"
                lines += tasks_line(case, tasks)
    return [line for line in lines if line]


def loops(node):
    found = [node] if "axis" in node else []
    for key in ("body", "then", "else"):
        for child in node.get(key) or []:
            found += loops(child)
    return found


def case_lines(case):
    schedule = case["schedule"]
    assert set(schedule) <= {"dispatch", "window"}
    directives, dispatch = [], schedule.get("dispatch")
    if dispatch:
        policy = dispatch["policy"].replace("_", " ")
        key = " of " + expr(dispatch["key"], "task.%s")[0] if "key" in dispatch else ""
        directives.append("dispatch %s%s over %d lanes" % (policy, key, dispatch["n"]))
    if schedule.get("window", 0):
        directives.append("window stall at %d tasks" % schedule["window"])
    lines = ["schedule " + "; ".join(directives)] if directives else []
    if "let" in case:
        lines.append("let kernel " + case["let"])
    if PIPELINES:
        lines.append("; ".join("let %s %d" % ("abcdef"[i], c["depth"])
                               for i, c in enumerate(case["workload"]["channels"])))
    for i, variant in enumerate(case["variants"]):
        lines += (["then"] if i else []) + variant_lines(case, variant)
    return ["case " + case["name"]] + ["  " + line for line in lines]


def main():
    with open(sys.argv[1]) as file:
        cases = [c for c in json.load(file)["cases"] if is_taken(c)]
    shared, modules = {}, {}
    for case in filter(is_of_a_kernel, cases):
        name_kernel(case)
    texts = [module_text(case, shared) for case in cases]
    # Kernels of which there is one by their name stand once, before all modules.
    library = [ks[0][0] for ks in shared.values() if len({text for text, _ in ks}) == 1]
    for case, module in zip(cases, texts):
        for text in library:
            module = module.replace(text + "\n", "")
        modules.setdefault(module, []).append(case)
    print(HEADS[WHICH], end="")
    print("\nfrom v9 and model.py\ntrees" if TILES else "\nfrom v9 and model.py")
    print(WAYS + MODES.split(",")[0] + ":\n" if PIPELINES else MODES)
    functions = {k["name"]: function_of(k) for ks in shared.values() for _, k in ks
                 if not has_tiles(k)}
    for name, function in functions.items():
        print("function %s %s" % (name, function))
    print()
    for text in library:
        print(text)
    print("\n# rule: " + RULES[WHICH], end="")
    for module, members in modules.items():
        print("\n" + module)
        for case in members:
            print("\n" + "\n".join(case_lines(case)))


main()
