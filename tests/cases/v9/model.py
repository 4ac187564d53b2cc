"""The rules of time, plainly written: what write_cases.py works every expected value out with.

Model runs a workload task by task. Data is simulated as far as time and control depend on it: the
first element of each tile, and what a few kernels write.
"""

import operator

MASK = (1 << 64) - 1

# -- the model: data that time depends on ----------------------------------------------------------


class I64(int):
    """A signed value of an expression; plain ints are unsigned."""


def wrap(value, signed):
    value &= MASK
    return I64(value - (1 << 64) if signed and value >> 63 else value) if signed else value


def product(sizes):
    result = 1
    for size in sizes:
        result *= size
    return result


def tiles_of(kernel):
    return [p for p in kernel["params"] if not p.get("scalar")]


def scalars_of(kernel):
    return [p for p in kernel["params"] if p.get("scalar")]


def is_burn(kernel):
    """Whether it counts itself, and takes as many cycles as its data says."""
    return kernel.get("custom", {}).get("cycles") == "int(T['d'][0,0])"


def element(init, i):
    kind = init["kind"]
    if kind == "zeros":
        return 0
    if kind == "full":
        return init["value"]
    if kind == "data":
        return init["data"][i]
    return (((i * init["mul"] + init["add"]) % init["mod"]) - init["sub"]) * init["scale"]


class Memory:
    """The first element of each tile, which is all that time and control depend on."""

    def __init__(self, case):
        self.tensors = {t["name"]: t for t in case["tensors"]}
        self.written = {}

    def region(self, arg, index):
        return (arg["tensor"],) + tuple(index)

    def get(self, region):
        if region in self.written:
            return self.written[region]
        tensor = self.tensors[region[0]]
        flat = 0
        for size, i in zip(tensor["shape"], region[1:]):
            assert 0 <= i < size, region
            flat = flat * size + i
        return element(tensor["init"], flat * product(tensor["shape"][len(region) - 1:]))


def run_kernel(kernel, regions, scalars, memory):
    """Returns the cycles of a task, and writes what control may depend on."""
    name = kernel["name"]
    if is_burn(kernel):
        memory.written[regions["cnt"]] = memory.get(regions["cnt"]) + 1
        return memory.get(regions["d"])
    if name == "write_flag":
        memory.written[regions["flag_out"]] = 1 if memory.get(regions["x_in"]) > 0 else 0
        return 1
    if name in ("fill_true", "fill_false"):
        return 1
    for param in tiles_of(kernel):
        if param["dir"] != "in":
            memory.written[regions[param["name"]]] = None  # not known here, and not needed
    if name == "topk8" and "custom" in kernel:
        pad_to = scalars["pad_to"]
        return 32 + 5 * 32 + (pad_to // 32 * 128 if pad_to > 32 else 0)
    assert "custom" not in kernel
    return kernel["cycles"]


# -- the model: expressions ------------------------------------------------------------------------


COMPARISONS = {"<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne}


def evaluate(expr, variables, args, slots, symbols):
    def sub(e):
        return evaluate(e, variables, args, slots, symbols)

    if isinstance(expr, int):
        return I64(expr)
    op = expr[0]
    if op == "axis":
        return I64(variables[expr[1]])
    if op == "param":
        return I64(args[expr[1]] if expr[1] < len(args) else 0)
    if op == "sym":
        return int(symbols[expr[1]])
    if op == "slot_u64":
        return slots.get(expr[1], 0)
    if op == "u64":
        return wrap(sub(expr[1]), False)
    if op == "i64":
        return wrap(sub(expr[1]), True)
    if op == "where":
        return sub(expr[2]) if sub(expr[1]) else sub(expr[3])
    a, b = sub(expr[1]), sub(expr[2])
    signed = isinstance(a, I64) and isinstance(b, I64)
    a, b = wrap(a, signed), wrap(b, signed)
    if op in COMPARISONS:
        return COMPARISONS[op](int(a), int(b))
    value = {"+": int(a) + int(b), "-": int(a) - int(b), "*": int(a) * int(b),
             "^": int(a) ^ int(b)}[op]
    return wrap(value, signed)


# -- the model: time -------------------------------------------------------------------------------


class Model:
    """Runs a variant of a case. rule is "in order", "nohol", "raw" or "full"."""

    def __init__(self, case, runtime, rule):
        self.case, self.runtime, self.rule = case, runtime, rule
        self.kernels = {k["name"]: k for k in case["kernels"]}
        self.kernel_index = {k["name"]: i for i, k in enumerate(case["kernels"])}
        self.memory = Memory(case)
        self.variables, self.slots = {}, {}
        self.dispatch = case["schedule"].get("dispatch")
        self.window = case["schedule"].get("window", 0)
        self.free = [0] * (self.dispatch["n"] if self.dispatch else 1)
        self.clock, self.in_flight, self.tasks = 0, [], []
        self.last_write, self.reads = {}, {}  # by region: end of the writer; ends of readers since

    def value(self, entry):
        return self.variables[entry] if isinstance(entry, str) else entry

    def evaluate(self, expr, args=()):
        symbols = self.runtime.get("symbols", {})
        return evaluate(expr, self.variables, args, self.slots, symbols)

    def iterations(self, node):
        axis = node["axis"]
        kind = axis["kind"]
        if kind == "dense":
            return range(axis["n"])
        if kind == "dyn":
            return range(self.runtime["axis_sizes"][node["var"]])
        if kind == "ragged":
            return range(sum(self.runtime.get("ragged", {}).get(axis["name"], axis["lengths"])))
        csr = self.runtime.get("sparse", {}).get(axis["name"], axis)
        return csr["indices"][:csr["indptr"][-1]]

    def wait_for_data(self, kernel, regions, ready):
        for param in tiles_of(kernel):
            region = regions[param["name"]]
            if param["dir"] != "out":
                ready = max(ready, self.last_write.get(region, 0))
            if param["dir"] != "in" and self.rule == "full":
                ready = max([ready, self.last_write.get(region, 0)] + self.reads.get(region, []))
        return ready

    def note_data(self, kernel, regions, end):
        for param in tiles_of(kernel):
            if param["dir"] != "out":
                self.reads.setdefault(regions[param["name"]], []).append(end)
        for param in tiles_of(kernel):
            if param["dir"] != "in":
                self.last_write[regions[param["name"]]] = end
                self.reads[regions[param["name"]]] = []

    def task(self, node, ready):
        kernel = self.kernels[node["kernel"]]
        params = [self.value(p) for p in node["params"]]
        regions = {p: self.memory.region(a, [self.value(i) for i in a["index"]])
                   for p, a in node["args"].items() if isinstance(a, dict)}
        scalars = {p: a for p, a in node["args"].items() if p not in regions}
        args = params + [n for p in tiles_of(kernel) for n in (p["rows"], p["cols"])]
        args += [scalars[p["name"]] for p in scalars_of(kernel)]
        duration = run_kernel(kernel, regions, scalars, self.memory)
        if not self.dispatch:
            lane = 0
        elif self.dispatch["policy"] == "round_robin":
            lane = len(self.tasks) % len(self.free)
        else:
            lane = wrap(self.evaluate(self.dispatch["key"], args), False) % len(self.free)
        if self.rule in ("raw", "full"):
            ready = self.wait_for_data(kernel, regions, ready)
        if self.rule == "in order":
            self.clock = max(self.clock, ready)
        self.in_flight = sorted(e for e in self.in_flight if e > self.clock)
        while self.window > 0 and len(self.in_flight) >= self.window:
            self.clock = self.in_flight[0]
            self.in_flight = [e for e in self.in_flight if e > self.clock]
        start = max(self.free[lane], self.clock, ready)
        end = start + duration
        self.free[lane] = end
        self.in_flight.append(end)
        self.note_data(kernel, regions, end)
        self.tasks.append([self.kernel_index[kernel["name"]], params, lane, ready, start, end])
        return end

    def body(self, nodes, sequential, ready):
        done = ready
        for node in nodes:
            if sequential:
                done = self.node(node, done)
            else:
                done = max(done, self.node(node, ready))
        return done

    def node(self, node, ready):
        kind = node["node"]
        if kind == "task":
            return self.task(node, ready)
        if kind == "pipeline":
            self.pipeline = Pipeline(self, node)
            return ready + self.pipeline.run()
        if kind in ("par", "seq"):
            return self.body(node["body"], kind == "seq", ready)
        if kind == "cond":
            taken = node["then"] if self.evaluate(node["pred"]) else node["else"]
            return self.body(taken, False, ready)
        if kind == "slot_set":
            self.slots[node["slot"]] = wrap(self.evaluate(node["value"]), False)
            return ready
        if kind == "slot_load":
            index = [self.value(i) for i in node["arg"]["index"]]
            assert node["row"] == 0 and node["col"] == 0
            self.slots[node["slot"]] = self.memory.get(self.memory.region(node["arg"], index))
            return ready
        done = ready
        for i in self.iterations(node):
            self.variables[node["var"]] = i
            done = max(done, self.body(node["body"], kind == "for",
                                       done if kind == "for" else ready))
        return done

    def run(self):
        return self.node(self.case["workload"], 0)


# -- the model: pipelines --------------------------------------------------------------------------

NO_LANE = (1 << 32) - 1


class Channel:
    """One producer, one consumer. sent[k] and received[k] are the times of token k."""

    def __init__(self, node, latency):
        self.depth, self.latency = node["depth"], latency
        self.tokens, self.sent, self.received = [], [], []
        self.sender = None  # depth 0: who waits to send
        self.closed = None  # when
        self.full = self.empty = 0

    def pending_max(self):
        """Tokens in it, just after each send."""
        counts = [1 + sum(r > s for r in self.received[:k]) for k, s in enumerate(self.sent)]
        return max(counts) if self.depth else 0


class Process:
    def __init__(self, node, index):
        self.produces, self.index, self.variables = node["produces"], index, {}
        self.time = self.tasks = self.busy = self.full = self.empty = 0
        self.steps = self.steps_of(node["body"])
        self.step = None
        self.go_on(0)

    def value(self, entry):
        return self.variables[entry] if isinstance(entry, str) else entry

    def go_on(self, time, token=None):
        self.time = time
        try:
            self.step = self.steps.send(token)
        except StopIteration:
            self.step = ("end",)

    def steps_of(self, nodes):
        for node in nodes:
            if node["node"] == "task":
                yield "task", node
            elif node["node"] == "send":
                yield "task", node["task"]
                yield "send", node["channel"], self.value(node["task"]["params"][0])
            elif node["node"] == "consume":
                token = yield "receive", node["channel"]
                while token is not None:
                    self.variables[node["var"]] = token
                    yield from self.steps_of(node["body"])
                    token = yield "receive", node["channel"]
            else:
                assert node["node"] == "for" and node["axis"]["kind"] == "dense"
                for i in range(node["axis"]["n"]):
                    self.variables[node["var"]] = i
                    yield from self.steps_of(node["body"])


class Pipeline:
    def __init__(self, model, node):
        self.model = model
        latency = model.runtime["symbols"]["__pto_wsp_channel_latency_cycles"]
        self.channels = {c["name"]: Channel(c, latency) for c in node["channels"]}
        self.processes = [Process(p, i) for i, p in enumerate(node["processes"])]
        for name in self.channels:
            for role in ("produces", "consumes"):
                assert sum(p[role].count(name) for p in node["processes"]) == 1

    def can_go_on(self, process):
        if process.step[0] == "send":
            c = self.channels[process.step[1]]
            if c.depth == 0:
                c.sender = process
                return False  # its receiver does it
            return len(c.sent) - len(c.received) < c.depth
        if process.step[0] == "receive":
            c = self.channels[process.step[1]]
            return len(c.sent) > len(c.received) or c.sender or c.closed is not None
        return True

    def task(self, process, node):
        model = self.model
        kernel = model.kernels[node["kernel"]]
        regions = {p: model.memory.region(a, [process.value(i) for i in a["index"]])
                   for p, a in node["args"].items()}
        end = process.time + run_kernel(kernel, regions, {}, model.memory)
        params = [process.value(p) for p in node["params"]]
        model.tasks.append([model.kernel_index[kernel["name"]], params, NO_LANE, process.time,
                            process.time, end])
        process.tasks += 1
        process.busy += end - process.time
        process.go_on(end)

    def send(self, sender, name, token):
        c = self.channels[name]
        k = len(c.sent)
        s = max(sender.time, c.received[k - c.depth] if k >= c.depth else 0)
        c.tokens.append(token)
        c.sent.append(s)
        c.full += s - sender.time
        sender.full += s - sender.time
        sender.go_on(s)

    def receive(self, receiver, name):
        c = self.channels[name]
        k, token = len(c.received), None
        if c.sender:
            r, token = max(receiver.time, c.sender.time + c.latency), c.sender.step[2]
            c.sent.append(r)
            c.received.append(r)
            c.full += r - c.sender.time
            c.sender.full += r - c.sender.time
            c.sender.go_on(r)
            c.sender = None
        elif k < len(c.sent):
            r, token = max(receiver.time, c.sent[k] + c.latency), c.tokens[k]
            c.received.append(r)
        else:
            r = max(receiver.time, c.closed)
        c.empty += r - receiver.time
        receiver.empty += r - receiver.time
        receiver.go_on(r, token)

    def run(self):
        """One step at a time: of all that can go on, the one with the smallest time."""
        running = list(self.processes)
        while running:
            ready = [p for p in running if self.can_go_on(p)]
            process = min(ready, key=lambda p: (p.time, p.index))
            kind, *rest = process.step
            if kind == "end":
                for name in process.produces:
                    self.channels[name].closed = process.time
                running.remove(process)
            else:
                {"task": self.task, "send": self.send, "receive": self.receive}[kind](process, *rest)
        return max(p.time for p in self.processes)
