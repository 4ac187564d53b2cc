#!/usr/bin/env python3
"""Writes the tables of oracle_test.c, or with `tiles` those of oracle_kernel_test.c, or with
`pipelines` those of oracle_pipeline_test.c.

    python3 tests/oracle_cases.py v9_cases.json > tests/oracle_cases.h
    python3 tests/oracle_cases.py v9_cases.json tiles > tests/oracle_kernel_cases.h
    python3 tests/oracle_cases.py v9_cases.json pipelines > tests/oracle_pipeline_cases.h

v9_cases.json holds workloads and the results that PTO-WSP v9 gives for them. Taken are those of the
groups `test` and `sched` with C functions for kernels; and with tile kernels, made of the
operations in the file, those of `kernel`, `example` and `test`, and of `sched` where all kernels
have them; and all that are pipelines, with both kinds of kernels.
Before anything is written, every expected value about time is worked out again by the model of
oracle_model.py, from the rules of time alone, and must be the same. The model also gives what the
file lacks: the tasks of the two largest workloads, and those of dataflow issue, as hashes; and what
processes and channels have done.
"""

import json
import sys
import textwrap

sys.dont_write_bytecode = True

from oracle_model import MASK, Model, is_burn, scalars_of, tiles_of

PIPELINES = sys.argv[2:] == ["pipelines"]
TILES = PIPELINES or sys.argv[2:] == ["tiles"]
GROUPS = ("kernel", "example", "test", "sched") if TILES else ("test", "sched")
TASKS_MAX = 24  # of a pipeline, in full; with more only their hash

# The C function that does what a kernel does; kernels that are not here are an error.
FUNCTIONS = {
    "copy_tile": "copy", "load": "copy", "copy": "copy", "cp": "copy", "square": "square",
    "mark": "mark", "write_flag": "write_flag", "fill_true": "fill_true",
    "fill_false": "fill_false", "mm": "matmul", "expert_linear": "matmul", "attn_tile": "attention", "add_tile": "add", "rmsnorm_tile": "rmsnorm", "mlp_tile": "mlp",
    "moe_mix": "moe_mix", "topk8": "topk8",
}


def has_tiles(kernel):
    """Whether it is made of operations: the others are C functions in both tests."""
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


def tasks_hash(tasks, kernels):
    """As oracle_tasks_hash in oracle_test.c: FNV-1a over 64-bit words."""
    value = 0xcbf29ce484222325
    for kernel, _, lane, ready, start, end in tasks:
        for word in (kernel_id(kernels[kernel]), lane, ready, start, end):
            value = ((value ^ word) * 0x100000001b3) & MASK
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
        hashes[rule] = tasks_hash(model.tasks, case["kernels"])
    return in_order, hashes


def check_pipeline(case, variant):
    """The same for a pipeline, for which all rules are one; returns the model."""
    model = Model(case, {**case["runtime"], **variant["runtime"]}, "in order")
    expected = variant["expected"]
    makespan = model.run()
    assert makespan == expected["total_cycles"] == expected["csp"]["exact"], case["name"]
    assert len(model.tasks) == expected["task_count"], case["name"]
    return model


# -- C ---------------------------------------------------------------------------------------------

OPERATORS = {"+": "ADD", "-": "SUB", "*": "MUL", "^": "XOR", "<": "LT", "<=": "LE", "==": "EQ",
             "!=": "NE"}
KERNELS = []  # [name in C, kernel], in the order of their ids


def kernel_id(kernel):
    return [k for _, k in KERNELS].index(kernel)


def kernel_enum(kernel):
    return "K_" + KERNELS[kernel_id(kernel)][0]


def collect_kernels(cases):
    """Kernels are one when they do the same; those that share only a name get others here."""
    for case in cases:
        for kernel in case["kernels"]:
            if any(kernel == k for _, k in KERNELS):
                continue
            name = (case["name"] if kernel["name"] == "kern" else kernel["name"]).upper()
            used = [n for n, _ in KERNELS]
            while name in used:
                name += "_B"
            KERNELS.append((name, kernel))


# Variables have one letter here.
RENAMED = {"b2": "c", "h2": "g", "b3": "d", "h3": "k", "v3": "v"}


def character(name):
    name = RENAMED.get(name, name)
    assert len(name) == 1 and name.islower(), name
    return "'%s'" % name


def entry_c(entry):
    if isinstance(entry, str):
        return "V(%s)" % character(entry)
    assert entry >= 0
    return str(entry)


def expr_c(expr):
    if isinstance(expr, int):
        return "I64, %d" % expr
    op = expr[0]
    if op == "axis":
        return "VARIABLE, " + character(expr[1])
    if op in ("param", "slot_u64"):
        return "%s, %d" % ({"param": "ARG", "slot_u64": "SLOT"}[op], expr[1])
    if op == "sym":
        return "SYMBOL"
    if op in ("u64", "i64"):
        return "TO_%s, %s" % (op.upper(), expr_c(expr[1]))
    name = "WHERE" if op == "where" else OPERATORS[op]
    return ", ".join([name] + [expr_c(e) for e in expr[1:]])


def symbols_of(expr):
    if isinstance(expr, int):
        return []
    if expr[0] == "sym":
        return [expr[1]]
    return [s for e in expr[1:] if isinstance(e, (list, int)) for s in symbols_of(e)]


class WorkloadWriter:
    def __init__(self, case):
        self.case, self.lines, self.axes, self.symbols = case, [], [], set()
        self.tensor_index = {t["name"]: i for i, t in enumerate(case["tensors"])}
        self.kernels = {k["name"]: k for k in case["kernels"]}
        self.params_counts = set()

    def axis(self, node):
        axis = node["axis"]
        kind = axis["kind"]
        name = axis.get("name", "n_" + node["var"])
        c = '{"%s", %s, %d}' % (name, {"dense": "DENSE", "dyn": "DYNAMIC", "ragged": "RAGGED",
                                       "sparse": "SPARSE"}[kind], axis.get("n", 0))
        if c not in self.axes:
            assert '"%s"' % name not in "".join(self.axes) and name not in self.tensor_index
            self.axes.append(c)
        return self.axes.index(c)

    def put(self, depth, text):
        """A statement; where it is too long, its tiles stand on lines of their own."""
        indent = "    " * depth
        if len(indent + text) > 94:
            text = text.replace(",  ", ",\n        " + indent)
        self.lines.append(indent + text + ",")

    def view(self, arg):
        index = self.tensor_index[arg["tensor"]]
        assert len(arg["index"]) == len(self.case["tensors"][index]["shape"]) - 2
        return ", ".join([str(index)] + [entry_c(i) for i in arg["index"]])

    def nodes(self, depth, nodes):
        for node in nodes:
            self.node(depth, node)

    def branch(self, depth, opener, nodes):
        self.put(depth, opener)
        if len(nodes) > 1:  # independent of each other, whatever is around
            self.put(depth + 1, "COMBINE")
            self.nodes(depth + 2, nodes)
            self.put(depth + 1, "END")
        else:
            self.nodes(depth + 1, nodes)
        self.put(depth, "END")

    def node(self, depth, node):
        kind = node["node"]
        if kind == "task":
            kernel = self.kernels[node["kernel"]]
            assert set(node["args"]) == {p["name"] for p in kernel["params"]}
            self.params_counts.add(len(node["params"]))
            parts = ["TASK", kernel_enum(kernel)]
            parts += [entry_c(p) for p in node["params"]]
            views = [self.view(node["args"][p["name"]]) for p in tiles_of(kernel)]
            scalars = [str(int(node["args"][p["name"]])) for p in scalars_of(kernel)]
            self.put(depth, ",  ".join([", ".join(parts)] + views + scalars))
        elif kind == "cond":
            self.symbols |= set(symbols_of(node["pred"]))
            self.branch(depth, "WHEN, " + expr_c(node["pred"]), node["then"])
            if node["else"]:
                self.branch(depth, "OTHERWISE", node["else"])
        elif kind == "slot_set":
            self.put(depth, "SLOT_SET, %d, %s" % (node["slot"], expr_c(node["value"])))
        elif kind == "slot_load":
            self.put(depth, "SLOT_LOAD, %d, %d, %d,  %s" % (node["slot"], node["row"],
                                                            node["col"], self.view(node["arg"])))
        elif kind == "send":
            self.node(depth, node["task"])
            self.lines[-1] = self.lines[-1].replace(
                "TASK", "SEND, %d" % self.channel_index[node["channel"]])
        elif kind == "pipeline":
            self.pipeline(depth, node)
        elif kind == "consume":
            channel = self.channel_index[node["channel"]]
            self.put(depth, "CONSUME, %s, %d" % (character(node["var"]), channel))
            self.nodes(depth + 1, node["body"])
            self.put(depth, "END")
        else:
            opener = {"pfor": "PARALLEL", "for": "FOR_EACH", "sel": "SELECT", "par": "COMBINE",
                      "seq": "SEQUENCE"}[kind]
            if kind in ("pfor", "for", "sel"):
                opener += ", %s, %d" % (character(node["var"]), self.axis(node))
            self.put(depth, opener)
            self.nodes(depth + 1, node["body"])
            self.put(depth, "END")

    def pipeline(self, depth, node):
        self.channel_index = {c["name"]: i for i, c in enumerate(node["channels"])}
        self.symbols.add("__pto_wsp_channel_latency_cycles")
        self.put(depth, "PIPELINE")
        for process in node["processes"]:
            self.put(depth + 1, "PROCESS")
            for role in ("consumes", "produces"):
                for name in process[role]:
                    self.put(depth + 2, "%s, %d" % (role.upper(), self.channel_index[name]))
            self.nodes(depth + 2, process["body"])
            self.put(depth + 1, "END")
        self.put(depth, "END")


def data_rule(data):
    """A rule as that of "mod", if the data has one that runs over all values from low to high."""
    low, mod = min(data), max(data) - min(data) + 1
    mul, add = (data[1] - data[0]) % mod, data[0] - low
    if all(x == low + (i * mul + add) % mod for i, x in enumerate(data)):
        return [mul, add, mod, -low, 1]
    return None


def data_words(tensor):
    """The data in C, with rows that repeat a few words written as that."""
    data, row = tensor["init"]["data"], tensor["shape"][1]
    words = []
    for at in range(0, len(data), row):
        part = data[at:at + row]
        n = next(n for n in range(1, row + 1) if row % n == 0 and part == part[:n] * (row // n))
        text = ", ".join(str(x) for x in part[:n])
        words.append(text if n == row else "TIMES_%d(%s)" % (row // n, text))
    return words


def tensor_c(tensor):
    init = tensor["init"]
    data = " NULL"
    if init["kind"] == "data":
        rule = PIPELINES and data_rule(init["data"])
        if not rule:
            rule = [0, 0, 1, 0, 1]
            words = data_words(tensor) if PIPELINES else [str(int(x)) for x in init["data"]]
            data = "\n" + wrapped("CODE(", words, ")", 16)
    elif abs(init.get("value", 0)) > 1e9:
        rule = [0, 1, 2, 0, init["value"]]
    elif init["kind"] == "mod":
        rule = [init["mul"], init["add"], init["mod"], init["sub"], init["scale"]]
    else:  # one value: 0 - -value
        rule = [0, 0, 1, -init.get("value", 0), 1]
    assert all(r == int(r) for r in rule[:4])
    shape = ", ".join(str(n) for n in tensor["shape"])
    numbers = ", ".join([str(int(r)) for r in rule[:4]] + [repr(float(rule[4]))])
    return '{"%s", PTOWSP_%s, %d, {%s}, %s, %s,%s}' % (
        tensor["name"], tensor["dtype"].upper(), len(tensor["shape"]), shape, numbers,
        "true" if tensor.get("transpose_last2") else "false", data)


def workload_c(case):
    writer = WorkloadWriter(case)
    writer.node(2, case["workload"])
    assert len(writer.params_counts) == 1 and len(writer.symbols) <= 1
    lines = ["        .axis_arg_count = %d," % writer.params_counts.pop()]
    lines += ['        .symbol = "%s",' % s for s in writer.symbols]
    if writer.axes:
        lines += [wrapped(".axes = {", writer.axes, "},", 8)]
    lines += ["        .tensors = {"] + ["            %s," % tensor_c(t) for t in case["tensors"]]
    lines += ["        },"]
    if PIPELINES:
        tree = case["workload"]
        lines += ["        .channel_count = %d," % len(tree["channels"]),
                  "        .process_count = %d," % len(tree["processes"])]
    lines += ["        .tree = CODE("]
    lines += ["    " + line for text in writer.lines for line in text.split("\n")]
    lines += ["            STOP),"]
    return "\n".join(lines)


def wrapped(prefix, items, suffix, indent):
    """prefix, items separated by commas, suffix: on one line, or with lines of whole items."""
    kept = [item.replace(" ", "\0") for item in items]
    line = " " * indent + prefix + ", ".join(items)
    if len(line + suffix) <= 100:
        return line + suffix
    text = textwrap.fill(", ".join(kept) + suffix.replace(" ", "\0"), 96 - indent,
                         break_long_words=False, break_on_hyphens=False).replace("\0", " ")
    pad = "\n" + " " * (indent + 4)
    return " " * indent + prefix.rstrip() + pad + text.replace("\n", pad)


def number_c(value):
    return repr(float(value))


def variant_c(case, variant):
    runtime = {**case["runtime"], **variant["runtime"]}
    expected = variant["expected"]
    lines = []

    def put(text):
        lines.append(" " * 16 + text)

    for kind, field in (("axis_sizes", "axis_size"), ("symbols", "symbol")):
        values = list(runtime.get(kind, {}).values())
        assert len(values) <= 1
        for value in values:
            put(".%s = %d," % (field, value))
    for node in loops(case["workload"]):
        axis = node["axis"]
        if axis["kind"] == "ragged":
            lengths = runtime.get("ragged", {}).get(axis["name"], axis["lengths"])
            put(".row_count = %d," % len(lengths))
            lines.append(wrapped(".lengths = {", [str(n) for n in lengths], "},", 16))
        if axis["kind"] == "sparse":
            csr = runtime.get("sparse", {}).get(axis["name"], axis)
            assert csr["indptr"][-1] == len(csr["indices"])
            put(".row_count = %d," % (len(csr["indptr"]) - 1))
            put(".entry_count = %d," % len(csr["indices"]))
            lines.append(wrapped(".indptr = {", [str(n) for n in csr["indptr"]], "},", 16))
            lines.append(wrapped(".indices = {", [str(n) for n in csr["indices"]], "},", 16))
    put(".task_count = %d," % expected["task_count"])
    times, tasks = pipeline_times_c(case, variant) if PIPELINES else times_c(case, variant)
    assert set(expected["outputs"]) == {t["name"] for t in case["tensors"]}
    outputs = [expected["outputs"][t["name"]] for t in case["tensors"]]
    lines += times
    lines.append(wrapped(".sums = {", ["{%s, %s}" % (number_c(o["sum"]), number_c(o["wsum"]))
                                       for o in outputs], "},", 16))
    if tasks:
        rows = ["{%s, {%s}, %s}" % (kernel_enum(case["kernels"][k]),
                                    ", ".join(str(p) for p in params) or "0",
                                    ", ".join(str(n) for n in rest))
                for k, params, *rest in tasks]
        lines.append(wrapped(".tasks = TASKS(", rows, "),", 16))
    return "\n".join(["            {"] + lines + ["            },"])


def time_c(makespan, tasks_hash):
    return "{%d, 0x%016xu}" % (makespan, tasks_hash)


def times_c(case, variant):
    in_order, hashes = check(case, variant)
    expected = variant["expected"]
    lane_tasks = [str(n) for n in expected["worker_task_counts"]]
    times = [("in order", expected["total_cycles"])]
    times += [(r, expected["semantic"][r]) for r in ("nohol", "raw", "full")]
    return [
        " " * 16 + ".busy = %d," % expected["sum_of_durations"],
        wrapped(".lane_tasks = {", lane_tasks, "},", 16),
        wrapped(".times = {", [time_c(makespan, hashes[r]) for r, makespan in times], "},", 16),
    ], "tasks" in expected and in_order


def pipeline_times_c(case, variant):
    model = check_pipeline(case, variant)
    time = time_c(variant["expected"]["total_cycles"], tasks_hash(model.tasks, case["kernels"]))
    processes, channels = model.pipeline.processes, model.pipeline.channels.values()
    process_rows = ["{%d, %d, %d, %d, %d}" % (p.tasks, p.time, p.busy, p.full, p.empty)
                    for p in processes]
    channel_rows = ["{%d, %d, %d, %d}" % (len(c.sent), c.pending_max(), c.full, c.empty)
                    for c in channels]
    return [
        " " * 16 + ".busy = %d," % sum(p.busy for p in processes),
        " " * 16 + ".times = {%s}," % time,
        wrapped(".processes = {", process_rows, "},", 16),
        wrapped(".channels = {", channel_rows, "},", 16),
    ], len(model.tasks) <= TASKS_MAX and model.tasks


def loops(node):
    found = [node] if "axis" in node else []
    for key in ("body", "then", "else"):
        for child in node.get(key) or []:
            found += loops(child)
    return found


def case_c(case, workload):
    lines = ["    {", '        .name = "%s",' % case["name"],
             "        .workload = &oracle_workloads[%d]," % workload]
    schedule = case["schedule"]
    assert set(schedule) <= {"dispatch", "window"}
    dispatch = schedule.get("dispatch")
    if dispatch:
        lines += ["        .dispatch = PTOWSP_DISPATCH_%s," % dispatch["policy"].upper(),
                  "        .lane_count = %d," % dispatch["n"]]
        if "key" in dispatch:
            lines += [wrapped(".key = CODE(", expr_c(dispatch["key"]).split(", "), "),", 8)]
    if schedule.get("window", 0):
        lines += ["        .window = %d," % schedule["window"]]
    if PIPELINES:
        depths = [str(c["depth"]) for c in case["workload"]["channels"]]
        lines += [wrapped(".depths = {", depths, "},", 8)]
    lines += ["        .variant_count = %d," % len(case["variants"]), "        .variants = {"]
    lines += [variant_c(case, v) for v in case["variants"]]
    return "\n".join(lines + ["        },", "    },"])


# The operations of v9's kernels in C; what is not here is an error.
OPS = ("load", "store", "const", "matmul", "add", "sub", "mul", "div", "max", "exp", "rsqrt",
       "rowmax", "rowsum", "rowmean", "iota_u32", "tsort32", "topk_idx")


def op_c(op):
    assert op["op"] in OPS and set(op) <= {"op", "dst", "src", "value", "dtype", "n", "k"} \
        and len(op["src"]) <= 2
    number = op.get("value", op.get("n", op.get("k", 0)))
    sources = ", ".join('"%s"' % name for name in op["src"]) or "NULL"
    return '{"%s", OP_%s, {%s}, %s}' % (op["dst"], op["op"].upper(), sources, number_c(number))


def insn_c(entry):
    return '{"%s", %d}' % (entry[0].split(".")[0].split(" ")[0], entry[1])


def kernel_c(kernel):
    tiles = ['{"%s", PTOWSP_%s, PTOWSP_%s, %d, %d}' % (p["name"], p["dir"].upper(),
                                                       p["dtype"].upper(), p["rows"], p["cols"])
             for p in tiles_of(kernel)]
    if "cycles" in kernel:
        assert kernel["cycles"] == sum(c for _, c in kernel["lowering"])
    function = "NULL" if has_tiles(kernel) else "oracle_" + function_of(kernel)
    head = '{"%s", %s, %d, .tiles = {' % (kernel["name"], function, kernel.get("cycles", 0))
    fields = [(head, tiles, "}")]
    if scalars_of(kernel):  # whatever integers they are, i64 here
        names = ['{"%s", PTOWSP_TYPE_I64}' % p["name"] for p in scalars_of(kernel)]
        fields.append((".scalars = {", names, "}"))
    if has_tiles(kernel):
        fields.append((".ops = OPS(", [op_c(op) for op in kernel["ops"]], ")"))
        insns = [insn_c(e) for e in kernel["lowering"] if e[1]]
        fields.append((".insns = INSNS(", insns, ")"))
    last = len(fields) - 1
    return "\n".join(wrapped(prefix, items, suffix + ("}," if i == last else ","), 8 if i else 4)
                     for i, (prefix, items, suffix) in enumerate(fields))


def main():
    with open(sys.argv[1]) as file:
        cases = [c for c in json.load(file)["cases"] if is_taken(c)]
    collect_kernels(cases)
    workloads = []
    for case in cases:
        text = workload_c(case)
        if text not in workloads:
            workloads.append(text)
    out = [
        "// Workloads, and what PTO-WSP v9 gives for them, written by oracle_cases.py: change that"
        " instead.", "// The types are in oracle_tables.h.", "", "// clang-format off", "",
        wrapped("enum { ", ["K_" + n for n, _ in KERNELS] + ["KERNEL_COUNT"], " };", 0), "",
        "// Name, function, cycles (0: what the function returns), tiles%s." %
        ("; operations; instructions" if TILES else ""),
        "static const oracle_kernel oracle_kernels[KERNEL_COUNT] = {"]
    out += [kernel_c(k) for _, k in KERNELS]
    out += ["};", "", "static const oracle_workload oracle_workloads[] = {"]
    for i, text in enumerate(workloads):
        out += ["    {  // %d" % i, text, "    },"]
    out += ["};", "", "static const oracle_case oracle_cases[] = {"]
    out += [case_c(c, workloads.index(workload_c(c))) for c in cases]
    out += ["};", "", "// clang-format on"]
    print("\n".join(out))


main()
