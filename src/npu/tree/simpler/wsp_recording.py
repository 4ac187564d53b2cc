# A recorded run of a program (ptowsp_npu_record) as arguments of its orchestration: its lines, then the
# files that they name, as bytes. Of torch it needs two functions, and of PTO Runtime nothing. The same in
# every tree.

import math
import os
import re
import struct

import torch

# name: bytes, struct's letter; f16 and bf16 are compared as floats, too.
DTYPES = {
    "f16": (2, "e"), "bf16": (2, "H"), "f32": (4, "f"), "f64": (8, "d"),
    "i8": (1, "b"), "i16": (2, "h"), "i32": (4, "i"), "i64": (8, "q"),
    "u8": (1, "B"), "u16": (2, "H"), "u32": (4, "I"), "u64": (8, "Q"), "bool": (1, "B"),
}  # fmt: skip
PLACE = {"f16": 1 / 1024, "bf16": 1 / 128}  # a unit of the last place
ARGUMENTS = {"d": "data_", "m": "memory_"}  # of files: d1.bin is data_1


def tensor_of(data):
    return torch.frombuffer(bytearray(data or b"\0"), dtype=torch.uint8)


def bytes_of(tensor):
    return tensor.numpy().tobytes()


def numbers(data, dtype):
    size, letter = DTYPES[dtype]
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
        self.width = DTYPES[dtype][0]

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
    """args: (name, bytes, is_written) of each argument, the lines first."""

    def __init__(self, directory, hash, tensors):
        self.directory, self.views, self.expected, self.numbers = directory, {}, {}, {}
        text = self.file("recording")
        lines = text.decode("utf-8").splitlines()
        if len(lines) < 3 or lines[0] != "ptowsp recording 1" or not lines[-1].startswith("end "):
            raise ValueError(directory + " has no recorded run, or one that is cut off")
        if lines[1] != "program " + hash:
            raise ValueError(directory + " is of another program, or version: " + lines[1])
        self.args = [("bindings", text, False)]
        for line in lines[2:-1]:
            option, _, value = line.partition(" ")
            name, _, rest = value.partition("=")
            if option == "--expect":
                self.expected[name] = self.file(rest[1:])
            elif option == "--view":
                self.views[name] = View(rest, tensors[name])
            elif option != "file":
                self.add_files(rest)
            if option == "--memory":
                self.numbers[name] = len(self.args) - 1
        written = {self.numbers[self.views[name].memory] for name in self.expected}
        self.args = [(name, data, i in written) for i, (name, data, _) in enumerate(self.args)]

    def file(self, name):
        with open(os.path.join(self.directory, name), "rb") as file:
            return file.read()

    def add_files(self, value):
        for name, kind, number in re.findall(r"@((\w)(\d+)\.bin)", value):
            self.args.append((ARGUMENTS[kind] + number, self.file(name), False))

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
