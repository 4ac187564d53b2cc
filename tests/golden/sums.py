#!/usr/bin/env python3
"""What tests/text/save_golden_test.c expects of tests/golden/sums.saved, worked out without the library.

    python3 tests/golden/sums.py

prints the checksum of the file, the results, and the parts of the fingerprint that follow from bindings, data
and time: the numbers that the test has. Rules: FNV-1a-64 for texts; for numbers and elements those of
pwsp_hash_number (src/base/base.h) and src/data/digest.c, written once more here.
"""
import os
import struct

MASK = (1 << 64) - 1
START = 0xCBF29CE484222325  # of FNV-1a-64
GOLDEN = 0x9E3779B97F4A7C15


def fnv(data):
    h = START
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 & MASK
    return h


def number(h, n):
    z = ((h ^ (n & MASK)) + GOLDEN) & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def digest(h, bits, size):
    """A row of elements, as numbers of so many bytes."""
    per_word = 8 // size
    words = []
    for i in range(0, len(bits), per_word):
        words.append(sum(b << 8 * size * k for k, b in enumerate(bits[i : i + per_word])))
    whole = len(bits) // per_word
    h = number(h, len(bits))
    in_lanes = whole // 4 * 4
    if in_lanes:
        lanes = [(h + k) & MASK for k in range(4)]
        for i in range(in_lanes):
            lane = (lanes[i % 4] ^ words[i]) * GOLDEN & MASK
            lanes[i % 4] = lane ^ lane >> 29
        for lane in lanes:
            h = number(h, lane)
    for word in words[in_lanes:]:
        h = number(h, word)
    return h


ROWS, COLS = 10, 8
x = [[r - c + 0.5 * (r % 2) for c in range(COLS)] for r in range(ROWS)]  # exact in f16
gain = [2.0 * (c + 1) for c in range(COLS)]
y = [sum(x[r][c] * gain[c] for c in range(COLS)) for r in range(ROWS)]  # whole numbers

# The unit model: an instruction takes the valid elements of its result. scale: three loads and stores of
# x, gain, scaled; cvt, mul. total: load; rowsum, cvt, store of a column.
rows = [4, 4, 2]  # of the three tiles: requests have 2 and 1
cycles = sum(4 * r * COLS + COLS + r * COLS + 3 * r for r in rows)

# A tensor counts by its number among the declared ones, and row by row.
inputs = number(START, 1)
for r in range(ROWS):
    inputs = digest(inputs, [struct.unpack("<H", struct.pack("<e", v))[0] for v in x[r]], 2)
inputs = number(inputs, 2)
inputs = digest(inputs, [struct.unpack("<I", struct.pack("<f", v))[0] for v in gain], 4)
results = number(START, 3)
for r in range(ROWS):
    results = digest(results, [int(y[r]) & 0xFFFFFFFF], 4)
results = number(results, 0)  # the slot
time = number(number(number(START, cycles), cycles), 2 * len(rows))  # one lane: makespan, busy, tasks

# Bound sizes of axes by their numbers; symbols; slots; arrays by their lengths and elements, also those of a
# ragged axis; data types, rows and columns of tensors, transient ones too.
F16, F32, I32 = 1, 3, 7  # PTOWSP_DTYPES
bindings = START
for n in [1, 2] + [ROWS] + [0] + [2, 2, 1] + [2, 0, 8]:
    bindings = number(bindings, n)
for shape in [(F16, ROWS, COLS), (F32, 1, COLS), (I32, ROWS, 1), (F32, ROWS, COLS)]:
    for n in shape:
        bindings = number(bindings, n)

path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sums.saved")
with open(path, "rb") as file:
    head, text = file.read().split(b"\n", 1)
print(f"head      {head.decode()}")
print(f"          ptowsp program 1, {len(text)} bytes, {fnv(text):016x}")
print("y        ", [int(v) for v in y])
print(f"cycles    {cycles}")
print(f"bindings  {bindings:016x}")
print(f"inputs    {inputs:016x}")
print(f"results   {results:016x}")
print(f"time      {time:016x}")
