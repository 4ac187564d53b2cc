# A recorded run of a program (ptowsp_npu_record) as arguments of its orchestration: all bindings as
# words (wsp_words.h), then the memory of tensors and the arrays, as bytes. Of torch it needs two
# functions, and of PTO Runtime nothing. The same in every tree.

import math
import os
import struct

import torch

# name: number, bytes, struct's letter; f16 and bf16 are compared as floats, too.
DTYPES = {
    "f16": (1, 2, "e"), "bf16": (2, 2, "H"), "f32": (3, 4, "f"), "f64": (4, 8, "d"),
    "i8": (5, 1, "b"), "i16": (6, 2, "h"), "i32": (7, 4, "i"), "i64": (8, 8, "q"),
    "u8": (9, 1, "B"), "u16": (10, 2, "H"), "u32": (11, 4, "I"), "u64": (12, 8, "Q"),
    "bool": (13, 1, "B"),
}  # fmt: skip
SIZE, SYMBOL, SLOT, ARRAY, CSR, PLAN, TENSOR = range(1, 8)
WORK_BYTES = 24  # of ptowsp_work
PLACE = {"f16": 1 / 1024, "bf16": 1 / 128}  # a unit of the last place


class Program:
    """Names of a program's tables: {name: (index, type)}."""

    def __init__(self, hash, axes, arrays, symbols, tensors):
        self.hash, self.axes, self.arrays = hash, axes, arrays
        self.symbols, self.tensors = symbols, tensors


def tensor_of(data):
    return torch.frombuffer(bytearray(data or b"\0"), dtype=torch.uint8)


def bytes_of(tensor):
    return tensor.numpy().tobytes()


def numbers(data, dtype):
    letter, size = DTYPES[dtype][2], DTYPES[dtype][1]
    values = struct.unpack("<%d%s" % (len(data) // size, letter), data)
    if dtype == "bf16":
        values = struct.unpack("<%df" % len(values), struct.pack("<%dI" % len(values), *[v << 16 for v in values]))
    return values


class View:
    """A tensor in a memory: "64x80/1x64@1+0", shape, strides in elements, memory, bytes."""

    def __init__(self, text, dtype):
        sizes, place = text.split("@")
        shape, strides = sizes.split("/")
        memory, offset = place.split("+")
        self.shape = [int(n) for n in shape.split("x")] if shape else []
        self.strides = [int(n) for n in strides.split("x")] if strides else []
        self.memory, self.offset, self.dtype = memory, int(offset), dtype
        self.width = DTYPES[dtype][1]

    def runs(self):
        """(byte offset, bytes) of its elements, row by row; dense rows are one run."""
        shape, strides, run = list(self.shape), list(self.strides), 1
        while shape and (strides[-1] == run or shape[-1] == 1):
            run *= shape.pop()
            strides.pop()
        at = [0] * len(shape)
        if run == 0 or 0 in shape:
            return
        while True:
            first = self.offset + sum(i * s for i, s in zip(at, strides)) * self.width
            yield first, run * self.width
            k = len(at) - 1
            while k >= 0 and at[k] + 1 == shape[k]:
                at[k] = 0
                k -= 1
            if k < 0:
                return
            at[k] += 1

    def read(self, memory):
        return b"".join(memory[at : at + size] for at, size in self.runs())

    def write(self, memory, data):
        done = 0
        for at, size in self.runs():
            memory[at : at + size] = data[done : done + size]
            done += size


class Recording:
    """args: (name, bytes, is_written) of each argument, the bindings first."""

    def __init__(self, directory, program):
        self.directory, self.program = directory, program
        self.views, self.expected, self.numbers = {}, {}, {}
        self.words = list(struct.unpack("<2q", b"ptowspw1" + program.hash[:8].encode()))
        self.args = [("bindings", b"", False)]
        with open(os.path.join(directory, "recording"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        if len(lines) < 3 or lines[0] != "ptowsp recording 1" or not lines[-1].startswith("end "):
            raise ValueError(directory + " has no recorded run, or one that is cut off")
        if lines[1] != "program " + program.hash:
            raise ValueError(directory + " is of another program, or version: " + lines[1])
        for line in lines[2:-1]:
            option, _, value = line.partition(" ")
            take = getattr(self, "take_" + option.lstrip("-").replace("-", "_"), None)
            if take is None:
                raise ValueError(directory + ": unknown line " + line)
            take(*value.partition("=")[::2])
        for name, view in self.views.items():
            self.add_view(name, view)
        written = {self.numbers[self.views[name].memory] for name in self.expected}
        self.args = [(name, data, i in written) for i, (name, data, _) in enumerate(self.args)]
        self.words.append(0)
        self.args[0] = ("bindings", struct.pack("<%dq" % len(self.words), *self.words), False)

    # -- lines --

    def file(self, text):
        with open(os.path.join(self.directory, text.lstrip("@")), "rb") as file:
            return file.read()

    def add(self, name, data):
        self.args.append((name, data, False))
        return len(self.args) - 1

    def add_data(self, text):
        return self.add(text.lstrip("@").replace(".bin", "").replace("d", "data_"), self.file(text))

    def word(self, value):
        value = int(value) & (2**64 - 1)
        return value - 2**64 if value >= 2**63 else value

    def take_model(self, name, text):
        pass

    take_expect_slot = take_expect_cycles = take_file = take_model

    def take_size(self, name, text):
        self.words += [SIZE, self.program.axes[name][0], int(text)]

    def take_symbol(self, name, text):
        self.words += [SYMBOL, self.program.symbols[name][0], self.word(text)]

    def take_slot(self, name, text):
        self.words += [SLOT, int(name), self.word(text)]

    def array(self, name, is_lengths, dtype, text):
        arg = self.add_data(text)
        number, size, _ = DTYPES[dtype]
        self.words += [ARRAY, self.program.arrays[name][0], is_lengths, number, arg, len(self.args[arg][1]) // size]

    def take_array(self, name, text):
        self.array(name, 0, self.program.arrays[name][1], text)

    def take_lengths(self, name, text):
        dtype, _, data = text.partition("@")
        self.array(name, 1, dtype, data)

    def take_csr(self, name, text):
        dtype, indptr, indices = text.replace("@", ",", 1).split(",")
        number, size, _ = DTYPES[dtype]
        first, second = self.add_data(indptr), self.add_data(indices)
        rows, entries = len(self.args[first][1]) // size - 1, len(self.args[second][1]) // size
        self.words += [CSR, self.program.axes[name][0], number, first, rows, second, entries]

    def take_plan(self, name, text):
        args = [self.add_data(part) for part in text.split(",")] + [-1] * 4
        lengths = [len(self.args[arg][1]) if arg > 0 else 0 for arg in args]
        self.words += [PLAN, self.program.axes[name][0], args[0], lengths[0] // WORK_BYTES]
        self.words += [args[1], max(lengths[1] // 4 - 1, 0)]
        self.words += [args[2], lengths[2] // WORK_BYTES, args[3]]

    def take_memory(self, name, text):
        self.numbers[name] = self.add("memory_" + name, self.file(text))

    def take_view(self, name, text):
        self.views[name] = View(text, self.program.tensors[name][1])

    def take_expect(self, name, text):
        self.expected[name] = self.file(text)

    def add_view(self, name, view):
        self.words += [TENSOR, self.program.tensors[name][0], self.numbers[view.memory], view.offset]
        self.words += [len(view.shape)] + view.shape + view.strides

    # -- a test --

    def tensors(self):
        """(name, tensor) of each argument, as they are before the run."""
        return [(name, tensor_of(data)) for name, data, _ in self.args]

    def golden(self):
        """(name, tensor) of those that tasks write, as they are after it."""
        memories = {}
        for name, wanted in self.expected.items():
            view = self.views[name]
            arg = self.numbers[view.memory]
            view.write(memories.setdefault(arg, bytearray(self.args[arg][1])), wanted)
        return [(self.args[arg][0], tensor_of(data)) for arg, data in memories.items()]

    def compare(self, tensor_named, tolerance):
        """Fails unless each element is as recorded; 0: to the byte. Infinities have to be equal."""
        for name, wanted in self.expected.items():
            view = self.views[name]
            got = view.read(bytes_of(tensor_named(self.args[self.numbers[view.memory]][0])))
            if got != wanted:
                self.compare_numbers(name, view, got, wanted, tolerance)

    def compare_numbers(self, name, view, got, wanted, tolerance):
        a, b = numbers(got, view.dtype), numbers(wanted, view.dtype)
        is_float = view.dtype in ("f16", "bf16", "f32", "f64") and tolerance > 0
        largest = max((abs(y) for y in b if math.isfinite(y)), default=0) if is_float else 0
        for i, (x, y) in enumerate(zip(a, b)):
            at = slice(i * view.width, (i + 1) * view.width)
            if got[at] == wanted[at] or is_float and (x == y or x != x and y != y):
                continue
            near = tolerance * largest + PLACE.get(view.dtype, 0) * abs(y) if is_float else -1
            if not (math.isfinite(y) and abs(x - y) <= near):
                raise AssertionError("tensor %s: element %d is %r, not %r" % (name, i, x, y))
