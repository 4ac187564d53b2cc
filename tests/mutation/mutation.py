#!/usr/bin/env python3
"""Breaks the library in seeded places, one at a time, and runs the suites that claim them.

    python3 tests/mutation/mutation.py [--build build/mutation] [--seed 1] [--count 200] [--rooms plan,text] [--jobs 2]
    python3 tests/mutation/mutation.py --only src/plan/merge.c:120

A mutant is one change in one line of src/ROOM/*.c: an operator, a bound, a constant, a flipped condition, a
lost call, or two statements in the other order. Its unit replaces the one of the archive, at -O0, and the
suites of SUITES are linked to it and run, the fastest first, with a fifth of their random rounds, until one
fails; then with all rounds. A mutant that no suite notices survives: it is printed as a diff of one line.
tests/mutation/explained has survivors that change nothing that can be seen, each with the reason. Exit
status 1 if more than 5 % survive without an explanation.

Places are chosen by a hash of the seed, the file and the text of the line, so a change elsewhere leaves them.
Assertions, PWSP_NEVER and PWSP_ALWAYS, and the directives of the preprocessor are left alone.
"""

import argparse
import concurrent.futures
import glob
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time

# The suites that claim a room: folders of tests/, and single programs.
SUITES = {
    "plan": ["plan/*", "attend/*", "runtime/plan_batch"],
    "engine": ["exec/run_lanes*", "exec/lane_*", "graph/*", "device/device_run", "engine/ready*", "engine/take", "cases/cases"],
    "time": ["time/*", "cases/cases", "exec/run_faults", "exec/together", "exec/limits", "result/*", "workload/stretch",
             "workload/task_list", "workload/workload_random", "npu/npu_clock_cases"],
    "kernel": ["kernel/*", "cases/cases", "text/print", "workload/read_kernel", "plan/moe_kernel"],
    "text": ["text/*", "cases/cases", "cases/case_form", "kernel/kernel_text", "data/expr_text", "workload/place",
             "workload/variant", "workload/workload_random"],
    "ranks": ["ranks/*", "exec/communicate", "exec/together", "data/layout", "workload/place"],
}
# These compile trees, or explore: minutes each.
SLOW = {"layout_random_test"}
SCALE = os.environ.get("PTOWSP_SCALE", "20")
FLAGS = "-std=c11 -O0 -g -w".split()
LIBRARIES = "-pthread -lcmocka -lm -ldl".split()

SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&",
         "+": "-", "-": "+", "*": "+", "%": "/", "<<": ">>", "+=": "-=", "-=": "+=", "++": "--", "|": "&",
         "true": "false", "false": "true", "break": "continue"}
# Binary operators stand between spaces, as clang-format writes them.
OPERATOR = re.compile(r"(?<= )(<=|>=|==|!=|&&|\|\||<<|\+=|-=|<|>|\+|-|\*|%|\|)(?= )|\+\+|\b(?:true|false|break)\b")
CONSTANT = re.compile(r"(?<![\w.])(\d+)(?=[uU]?\b(?![.x\w]))")
CALL = re.compile(r"^ +(?!return|PTOWSP_ASSERT|PWSP_ASSERT|assert)[a-z_][\w.>-]*\(.*\);$")
SIMPLE = re.compile(r"^ +[a-z_][\w.>\[\]+-]*(\(.*\)| [-+|]?= .*|\+\+);$")
# What this machine cannot execute: AVX-512 without it.
BEYOND = re.compile("(?!)" if "avx512f" in open("/proc/cpuinfo", encoding="utf-8").read() else "_mm512|__m512")
UNTOUCHED = re.compile(r"ASSERT|assert\(|NEVER|ALWAYS|PWSP_ZERO|destroy|_free\(|^\s*#|^\s*//|^\s*(static )?const char|^typedef|case ")


def code_of(lines):
    """The lines without comments and texts, of the same length."""
    blank = lambda match: " " * len(match.group())
    return [re.sub(r"//.*", blank, re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])+\'', blank, line)) for line in lines]


def is_ordered(first, second):
    """Does the second statement look at what the first one sets, or at the first argument of its call?"""
    match = re.match(r" +([\w.>\[\]-]+) [-+|]?= ", first) or re.match(r" +[\w.>-]+\(&?([\w.>-]+)", first)
    return bool(match and re.search(r"(?<![\w.>])" + re.escape(match.group(1)) + r"(?!\w)", second.split(" = ")[-1]))


def compiled_lines(path):
    """The lines of a file that the preprocessor keeps on this machine: not those of another one's vectors."""
    out = subprocess.run(["cc", *FLAGS, "-E", "-I.", "-iquote", os.path.dirname(path), path], capture_output=True, check=True)
    kept, here, number = set(), False, 0
    for line in out.stdout.decode().split("\n"):
        marker = re.match(r'# (\d+) "(.*?)"', line)
        if marker:
            number, here = int(marker.group(1)) - 1, marker.group(2) == path
            continue
        if here and line.strip():
            kept.add(number)
        number += 1
    return kept


def mutants_of(path):
    """(line number, new lines from there, what) of every change of a file."""
    lines = open(path, encoding="utf-8").read().split("\n")
    code = code_of(lines)
    compiled = compiled_lines(path)
    in_function = False
    in_macro = False
    for i, line in enumerate(code):
        was_macro, in_macro = in_macro, lines[i].endswith("\\")
        if line and not line[0].isspace() and line[0] not in "#/}":
            in_function = line.endswith("{") and "(" in line or (in_function and not line.endswith((";", ",")))
        if line.startswith("}"):
            in_function = False
        if not in_function and not re.match(r" .*[;{]$", line) or was_macro or in_macro or UNTOUCHED.search(lines[i]):
            continue
        if not line.startswith("    ") or i not in compiled or BEYOND.search(line):
            continue
        for match in OPERATOR.finditer(line):
            a, b = match.span()
            yield i, [lines[i][:a] + SWAPS[match.group()] + lines[i][b:]], match.group() + " is " + SWAPS[match.group()]
        for match in CONSTANT.finditer(line):
            a, b = match.span()
            more = str(int(match.group()) + 1)
            yield i, [lines[i][:a] + more + lines[i][b:]], match.group() + " is " + more
        match = re.match(r"( +(?:\} else )?(?:if|while) \()(.*)(\) \{)$", line)
        if match:
            a, b = match.span(2)
            yield i, [lines[i][:a] + "!(" + lines[i][a:b] + ")" + lines[i][b:]], "the condition is flipped"
        if CALL.match(line):
            yield i, [""], "the call is lost"
        indent = len(line) - len(line.lstrip())
        if i + 1 < len(code) and SIMPLE.match(line) and SIMPLE.match(code[i + 1]) and is_ordered(line, code[i + 1]) and \
                indent == len(code[i + 1]) - len(code[i + 1].lstrip()) and not UNTOUCHED.search(lines[i + 1]):
            yield i, [lines[i + 1], lines[i]], "in the other order"


def key_of(path, mutant):
    """A mutant by what it says, not by its line's number; by which one it is, if a file says so several times."""
    lines = open(path, encoding="utf-8").read().split("\n")
    line = lines[mutant[0]]
    before = lines[:mutant[0]].count(line)
    return f"{path}: {line.strip()} -> {mutant[1][0].strip()}" + (f" ({before + 1})" if before else "")


def chosen(rooms, seed, count):
    """`count` mutants, as many of each room, in the order of their hashes; one of a line."""
    per_room = {}
    for room in rooms:
        ranked = []
        for path in sorted(glob.glob(f"src/{room}/*.c")):
            if re.search("avx512|_simd", path):  # this machine may not have them
                continue
            for mutant in mutants_of(path):
                key = key_of(path, mutant)
                ranked.append((hashlib.sha256(f"{seed} {key}".encode()).hexdigest(), path, mutant, key))
        ranked.sort(key=lambda item: item[0])
        lines, kept = set(), []
        for _, path, mutant, key in ranked:
            if (path, mutant[0]) not in lines:
                lines.add((path, mutant[0]))
                kept.append((room, path, mutant, key))
        per_room[room] = kept
    result = []
    for i in range(count):
        for room in rooms:
            if len(result) < count and i < len(per_room[room]):
                result.append(per_room[room][i])
    return result


def programs_of(room):
    names = set()
    for pattern in SUITES[room]:
        names.update(glob.glob(f"tests/{pattern}_test.c"))
    return sorted(name for name in names if os.path.basename(name)[:-2] not in SLOW)


class Judge:
    def __init__(self, build, rooms):
        self.build = build
        self.took = {}  # by program: seconds without a change
        self.includes = {}  # by program: its files of src/ that end in .c
        programs = sorted({program for room in rooms for program in programs_of(room)})
        targets = [f"{build}/{os.path.basename(program)[:-2]}" for program in programs]
        subprocess.run(["make", "-s", f"-j{os.cpu_count()}", f"BUILD={build}", "CFLAGS=-O0 -g", *targets], check=True)
        for program in programs:
            text = open(program, encoding="utf-8").read()
            self.includes[program] = re.findall(r'#include "(src/[^"]*\.c)"', text)
        if os.path.exists(f"{build}/mutation.took"):
            for line in open(f"{build}/mutation.took", encoding="utf-8"):
                self.took[line.split()[0]] = float(line.split()[1])

    def measure(self, program):
        begin = time.time()
        status = self.run(os.path.abspath(f"{self.build}/{os.path.basename(program)[:-2]}"), 60)
        if status != 0:
            sys.exit(f"mutation: {program} fails without a change: status {status}")
        self.took[program] = time.time() - begin
        with open(f"{self.build}/mutation.took", "a", encoding="utf-8") as file:
            file.write(f"{program} {self.took[program]:.2f}\n")

    def run(self, binary, took, scale=SCALE):
        """Its status. A loop without end is ended by the processor's time, a thread that sleeps for good by the clock's."""
        processor, wall = int(10 + 10 * took), 120 + 20 * took
        with tempfile.TemporaryFile() as log:
            child = subprocess.Popen(["sh", "-c", f"ulimit -v 8000000; ulimit -t {processor}; exec {binary}"], stdout=log, stderr=log, start_new_session=True,
                                     env={**os.environ, "PTOWSP_SCALE": scale})
            try:
                return child.wait(wall)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, 9)
                child.wait()
                return "over time"

    def judge(self, room, path, mutant):
        """What notices the mutant, or None."""
        with tempfile.TemporaryDirectory(prefix="ptowsp_mutation_") as work:
            lines = open(path, encoding="utf-8").read().split("\n")
            lines[mutant[0]:mutant[0] + len(mutant[1])] = mutant[1]
            copy = os.path.join(work, path)
            os.makedirs(os.path.dirname(copy))
            with open(copy, "w", encoding="utf-8") as file:
                file.write("\n".join(lines))
            here = ["-iquote", os.path.dirname(path)]
            unit = f"{self.build}/src/{room}.c"  # the floor, or a file that is compiled alone
            if f'"{path}"' not in open(unit, encoding="utf-8").read():
                unit = copy
            made = subprocess.run(["cc", *FLAGS, f"-I{work}", "-I.", *here, "-c", unit, "-o", f"{work}/mutant.o"],
                                  capture_output=True, check=False)
            if made.returncode != 0:
                return "the compiler"
            for program in sorted(programs_of(room), key=self.took.get):
                name = os.path.basename(program)[:-2]
                test = f"{self.build}/{program[:-2]}.o"
                if path in self.includes[program]:
                    test = f"{work}/{name}.o"
                    subprocess.run(["cc", *FLAGS, f"-I{work}", *here, "-iquote", os.path.dirname(program), "-I.", "-Itests",
                                    "-Itests/support", "-c", program, "-o", test], check=True, capture_output=True)
                extra = []
                if name.startswith("npu_clock"):
                    extra = [f"{self.build}/tests/npu/npu_clock.o", f"{self.build}/tree/aicpu/wsp_clock.o",
                             f"{self.build}/tree/aicpu/wsp_core.o", "-lstdc++"]
                # Of what is defined twice the first one counts: of a test that includes the file, or the mutant's. As an
                # object, not in an archive, of which a linker takes only what it misses at that point.
                linked = subprocess.run(["cc", test, *extra, f"{self.build}/tests/support/vectors.o", f"{work}/mutant.o",
                                         f"{self.build}/libtested.a", "-Wl,-z,muldefs", "-o", f"{work}/{name}", *LIBRARIES],
                                        capture_output=True, check=False)
                if linked.returncode != 0:
                    return f"the linker, {name}: {linked.stderr.decode()[-300:]}"
                status = self.run(f"{work}/{name}", self.took[program])
                if status != 0:
                    return f"{name} ({status})"
            for program in programs_of(room):  # what has survived meets all random rounds
                name = os.path.basename(program)[:-2]
                if self.run(f"{work}/{name}", self.took[program] * 100 / float(SCALE), "100") != 0:
                    return f"{name}, with all its rounds"
        return None


def explained():
    """Keys of survivors that are explained."""
    keys = set()
    path = os.path.join(os.path.dirname(__file__), "explained")
    for line in open(path, encoding="utf-8"):
        if line.strip() and not line.startswith("#") and not line.startswith(" "):
            keys.add(line.strip())
    return keys


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build/mutation")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--rooms", default=",".join(SUITES))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", help="FILE:LINE, every mutant of that line")
    parser.add_argument("--list", action="store_true", help="the mutants, without running them")
    options = parser.parse_args()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    rooms = options.rooms.split(",")
    if options.only:
        path, number = options.only.rsplit(":", 1)
        rooms = [path.split("/")[1]]
        mutants = [(rooms[0], path, m, key_of(path, m)) for m in mutants_of(path) if m[0] + 1 == int(number)]
    else:
        mutants = chosen(rooms, options.seed, options.count)
    if options.list:
        for _, path, mutant, key in mutants:
            print(f"{path}:{mutant[0] + 1}: {mutant[2]}: {key.split(': ', 1)[1]}")
        return 0
    judge = Judge(options.build, rooms)
    known = explained()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(judge.measure, [program for program in judge.includes if program not in judge.took]))
        verdicts = [(mutant, pool.submit(judge.judge, *mutant[:3])) for mutant in mutants]
        survivors, tried, by_explanation = [], 0, 0
        for (_, path, mutant, key), verdict in verdicts:
            seen = verdict.result()
            where = f"{path}:{mutant[0] + 1}: {mutant[2]}"
            print(f"{where}: {'noticed by ' + seen if seen else 'SURVIVES'}", flush=True)
            if seen == "the compiler":
                continue
            tried += 1
            if not seen and key in known:
                by_explanation += 1
            elif not seen:
                survivors.append((where, key))
    print(f"mutation: {tried} mutants, {len(survivors)} survive, and {by_explanation} that are explained")
    for where, key in survivors:
        print(f"{where}\n    {key}")
    return 1 if len(survivors) * 20 > tried else 0


if __name__ == "__main__":
    sys.exit(main())
