"""python/ptowsp.py: layouts and signatures against ptowsp.h, values from paper or numpy, and bad input.

    PTOWSP_LIBRARY=build/libptowsp.so PYTHONPATH=python /usr/bin/python3 tests/packaging/python_test.py
"""

import ctypes
import gc
import os
import pickle
import re
import subprocess
import sys
import tempfile
import threading
import unittest
import weakref

import numpy as np
import ptowsp

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SEED = int(os.environ.get("PTOWSP_SEED", "1"))


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


class Case(unittest.TestCase):
    def refuses(self, kind, text, function, *arguments, **named):
        """The call raises this kind of exception with this in its text."""
        with self.assertRaises(kind) as caught:
            function(*arguments, **named)
        self.assertIn(text, str(caught.exception))
        return caught.exception

    def same(self, array, values):
        np.testing.assert_array_equal(array, values)


# -- the header -------------------------------------------------------------------------------------


def c_values(names):
    """The values of C expressions over ptowsp.h, by the C compiler."""
    rows = "".join(f'printf("%lld\\n", (long long)({name}));' for name in names)
    program = f'#include "ptowsp.h"\n#include <stdio.h>\nint main(void) {{ {rows} }}\n'
    with tempfile.TemporaryDirectory() as folder:
        source, binary = os.path.join(folder, "values.c"), os.path.join(folder, "values")
        with open(source, "w", encoding="utf-8") as file:
            file.write(program)
        subprocess.run([*os.environ.get("CC", "cc").split(), "-I", ROOT, source, "-o", binary], check=True)
        return [int(line) for line in subprocess.run([binary], check=True, capture_output=True).stdout.split()]


def structures():
    """{C name: class} of all structures of ptowsp.py."""
    made = {kind.__name__: kind for kind in vars(ptowsp).values() if isinstance(kind, type(ctypes.Structure))}
    return {"ptowsp_" + name: kind for name, kind in made.items() if kind is not ctypes.Structure}


class Header(Case):
    def test_structures_have_the_sizes_and_offsets_of_the_c_compiler(self):
        names, mine = [], []
        self.assertGreater(len(structures()), 50)
        for c_name, kind in structures().items():
            names.append(f"sizeof({c_name})")
            mine.append(ctypes.sizeof(kind))
            for field, field_type in kind._fields_:
                names += [f"offsetof({c_name}, {field})", f"sizeof((({c_name} *)0)->{field})"]
                mine += [getattr(kind, field).offset, ctypes.sizeof(field_type)]
        theirs = c_values(names)
        self.assertEqual(len(theirs), len(names))
        self.assertEqual({name: (m, c) for name, m, c in zip(names, mine, theirs) if m != c}, {}, "(here, in C)")

    def test_structures_have_all_fields_in_order(self):
        header = re.sub(r"//.*", "", read("ptowsp.h"))
        for c_name, kind in structures().items():
            body = re.search(r"typedef struct %s \{(.*?)\n\} %s;" % (c_name, c_name), header, re.S).group(1)
            fields = []
            for declaration in body.split(";")[:-1]:
                pointers = re.findall(r"\(\*(\w+)\)", declaration)
                fields += pointers or [
                    re.findall(r"\w+", re.sub(r"\[.*?\]", "", d))[-1] for d in declaration.split(",")
                ]
            self.assertEqual([name for name, _ in kind._fields_], fields, c_name)

    def test_records_have_the_sizes_and_offsets_of_the_c_compiler(self):
        fields = ["work_id", "tier", "flags", "reserved", *[f"params[{i}]" for i in range(4)]]
        layout = c_values([f"offsetof(ptowsp_work, {field})" for field in fields] + ["sizeof(ptowsp_work)"])
        for dtype in (ptowsp.UNIT, ptowsp.MERGE, ptowsp.JOIN, ptowsp.CHUNK_UNIT, ptowsp.MOE_UNIT):
            self.assertEqual([*[dtype.fields[name][1] for name in dtype.names], dtype.itemsize], layout)
        layout = c_values(["offsetof(ptowsp_partial, m)", "offsetof(ptowsp_partial, l)", "sizeof(ptowsp_partial)"])
        partial = ptowsp.PARTIAL
        self.assertEqual([partial.fields["m"][1], partial.fields["l"][1], partial.itemsize], layout)

    def test_signatures_are_those_of_the_header(self):
        header = re.sub(r"//.*", "", read("ptowsp.h"))
        scalars = {
            "uint32_t": "u32",
            "uint64_t": "u64",
            "int32_t": "i32",
            "int64_t": "i64",
            "float": "f32",
            "double": "f64",
            "size_t": "size",
            "bool": "bool",
            "void": "v",
        }
        enums = re.findall(r"\} (ptowsp_\w+);", re.sub(r"typedef struct.*?\n\} \w+;", "", header, flags=re.S))

        def short(text):
            """A C type as the tables of ptowsp.py have it."""
            text = re.sub(r"\b(const|PTOWSP_\w+)\b|\w+$" if "*" in text or " " in text.strip() else "$", "", text)
            words = text.replace("*", " * ").split()
            if "*" in words:
                return "s" if words == ["char", "*"] else "p"
            name = words[0]
            if name in scalars:
                return scalars[name]
            return "i32" if name in enums else "p" if name.endswith("_fn") else name.replace("ptowsp_", "")

        for name, result, parameters in ptowsp._signatures(ptowsp._VERSION + ptowsp._HELD + ptowsp._RELEASED):
            found = re.search(
                r"PTOWSP_API((?:\s+(?!ptowsp_%s\()[\w*]+)*?)[\s*]+ptowsp_%s\(([^)]*)\)" % (name, name), header
            )
            whole = found.group(0)
            returned = whole[len("PTOWSP_API") : whole.index("ptowsp_" + name + "(")] + " x"
            expected = [short(p + " " if p.strip().endswith("*") else p) for p in found.group(2).split(",")]
            mine = [{"s": "s", "p": "p"}.get(t, t) for t in parameters]
            # A text whose length follows may be given as a pointer or as a string.
            self.assertEqual(mine, expected if expected != ["v"] else [], name)
            self.assertEqual(result, short(returned), name)

    def test_constants_are_those_of_the_header(self):
        table = {f"PTOWSP_{status.name}": status.value for status in ptowsp.Status}
        words = {
            "PTOWSP_MOE_": ptowsp._PATTERNS,
            "PTOWSP_EXPORT_": ptowsp._FORMATS,
            "PTOWSP_REPORT_": ptowsp._REPORTS,
            "PTOWSP_RECORD_": ptowsp._RECORDS,
            "PTOWSP_BIND_": ptowsp._BINDINGS,
            "PTOWSP_MODEL_": ptowsp._MODELS,
            "PTOWSP_ATTENTION_": "balanced invariant",
            "PTOWSP_ATTEND_": " ".join(ptowsp._KV_TYPES),
            "PTOWSP_FOLD_": "none kernels loops",
            "PTOWSP_THEME_": "auto light dark",
            "PTOWSP_CHUNKS_": "balanced fixed",
            "PTOWSP_THREADS_": "serial own",
            "PTOWSP_RUN_": "execute time_only",
            "PTOWSP_AXIS_": "dense dynamic ragged sparse plan plan_merges plan_lanes",
        }
        for prefix, list_of_words in words.items():
            table.update({prefix + word.upper(): i for i, word in enumerate(list_of_words.split())})
        table.update({f"PTOWSP_{name.upper()}": value for name, (value, _) in ptowsp._DTYPES.items()})
        table.update({"PTOWSP_MOE_EPLB": 0, "PTOWSP_MOE_HIERARCHICAL": 1, "PTOWSP_MOE_GLOBAL": 2})
        table.update({"PTOWSP_STALL_COUNT": ptowsp._STALLS, "PTOWSP_DYNAMIC": ptowsp._DYNAMIC})
        table.update({"PTOWSP_NO_SLOT": ptowsp.NO_SLOT, "PTOWSP_MOE_NO_ROW": ptowsp.NO_ROW})
        table.update({"PTOWSP_NO_NODE": ptowsp.NO_NODE, "PTOWSP_WORK_FIRST": ptowsp.FIRST})
        table.update({"PTOWSP_WORK_LAST": ptowsp.LAST, "PTOWSP_WORK_INVALID": ptowsp.INVALID})
        table.update(
            {"PTOWSP_MOE_EXPERT_MAX": ptowsp._EXPERT_MAX, "PTOWSP_DECODE_TIER_COUNT": len(ptowsp.DECODE_TIERS)}
        )
        self.assertEqual(table, dict(zip(table, c_values(table))))
        self.assertEqual(
            [ptowsp._NUMPY_TYPES[i].itemsize for i in range(1, 14)], [2, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 1]
        )

    def test_versions_agree(self):
        version = re.search(r'PTOWSP_VERSION +"(.*)"', read("ptowsp.h")).group(1)
        self.assertEqual(ptowsp.__version__, version)
        self.assertTrue(version.startswith(ptowsp._ABI + "."))
        self.assertIn(f'version = "{version}"', read("python", "pyproject.toml"))


# -- attention --------------------------------------------------------------------------------------


class Attention:
    """Attention of a random batch in float64, and by the units and merges of a plan."""

    DIM = 8

    def __init__(self, kv, queries, heads, group, causal, shared=()):
        rng = np.random.default_rng(SEED)
        self.kv, self.queries, self.heads, self.group, self.causal = kv, queries, heads, group, causal
        self.q_begin = np.cumsum([0, *queries])
        self.q = rng.standard_normal((self.q_begin[-1], heads * group, self.DIM))
        self.k = [rng.standard_normal((n, heads, self.DIM)) for n in kv]
        self.v = [rng.standard_normal((n, heads, self.DIM)) for n in kv]
        for one, other, tokens in shared:  # these have the first tokens in common
            for array in (self.k, self.v):
                array[other][:tokens] = array[one][:tokens]

    def expected(self):
        out = np.zeros(self.q.shape)
        for r, (n, count) in enumerate(zip(self.kv, self.queries)):
            for j in range(count if n else 0):
                end = n - count + j + 1 if self.causal else n
                for h in range(self.heads * self.group):
                    score = self.k[r][:end, h // self.group] @ self.q[self.q_begin[r] + j, h]
                    weight = np.exp(score - score.max())
                    out[self.q_begin[r] + j, h] = weight @ self.v[r][:end, h // self.group] / weight.sum()
        return out

    def tokens_of(self, plan, unit):
        """Query tokens of the batch, the sequence whose KV is read, and the end of what each token sees."""
        if isinstance(plan, ptowsp.PrefixPlan):
            tokens = plan.unit_tokens(unit)
            return tokens, plan.segments[unit.request].request, [1 << 30] * len(tokens)
        r, first = unit.request, unit.tile * plan.tile_tokens
        tokens = range(self.q_begin[r] + first, min(self.q_begin[r] + first + plan.tile_tokens, self.q_begin[r + 1]))
        ends = [self.kv[r] - self.queries[r] + t - self.q_begin[r] + 1 if self.causal else 1 << 30 for t in tokens]
        return tokens, r, ends

    def run(self, plan, how):
        """The output and its log-sum-exp, where `how` runs the plan with these functions."""
        scratch, g = plan.scratch(self.DIM), self.group
        self.out, self.lse = np.zeros(self.q.shape, np.float32), np.zeros(self.q.shape[:2], np.float32)

        def kernel(unit, lane):
            tokens, sequence, ends = self.tokens_of(plan, unit)
            begin, head = unit.kv_start, unit.head
            for i, token in enumerate(tokens):
                end = min(begin + unit.kv_len, ends[i])
                for j in range(g):
                    row, h = i * g + j, head * g + j
                    m, total, acc = -np.inf, 0.0, np.zeros(self.DIM)
                    if end > begin:
                        score = self.k[sequence][begin:end, head] @ self.q[token, h]
                        m = score.max()
                        weight = np.exp(score - m)
                        total, acc = weight.sum(), weight @ self.v[sequence][begin:end, head]
                    if unit.slot == ptowsp.NO_SLOT:
                        self.out[token, h] = acc / total
                    else:
                        scratch.states[unit.slot, row] = m, total
                        scratch.accs[unit.slot, row] = acc

        def merge(merge, lane):
            tokens, _, _ = self.tokens_of(plan, merge)
            out, lse = np.empty((len(tokens) * g, self.DIM), np.float32), np.empty(len(tokens) * g, np.float32)
            scratch.merge(merge, out, lse)
            for i, token in enumerate(tokens):
                self.out[token, merge.head * g : merge.head * g + g] = out[i * g : i * g + g]

        def join(join, lane):
            token = self.q_begin[join.request]
            out = np.empty((self.queries[join.request] * g, self.DIM), np.float32)
            scratch.join(join, out)
            for i in range(self.queries[join.request]):
                self.out[token + i, join.head * g : join.head * g + g] = out[i * g : i * g + g]

        how(plan, kernel, merge, join)
        return self.out


def serially(plan, kernel, merge, join):
    plan.run(kernel, merge, *([join] if isinstance(plan, ptowsp.PrefixPlan) else []))


def on_lanes(plan, kernel, merge, join):
    with ptowsp.Context(3) as context:
        plan.run(
            kernel, merge, *([join] if isinstance(plan, ptowsp.PrefixPlan) else []), context=context, stealing=True
        )


def by_workers(plan, kernel, merge, join):
    """Twice, by a job on three and on five threads of our own."""
    job = plan.job(kernel, merge, *([join] if isinstance(plan, ptowsp.PrefixPlan) else []))
    for count in (3, 5):
        threads = [threading.Thread(target=job.run_worker, args=(i, count)) for i in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


class AttentionPlans(Case):
    # The figure of section 9: 250, 100 and 50 tokens on 4 lanes, at a cost of 1 per token alone.
    FIGURE = dict(heads=1, lanes=4, cost={"per_token": 1})

    def test_the_figure_of_the_manual(self):
        plan = ptowsp.attention_plan([250, 100, 50], **self.FIGURE)
        self.same(plan.units["request"], [0, 0, 0, 1, 1, 2])
        self.same(plan.units["kv_start"], [0, 100, 200, 0, 50, 0])
        self.same(plan.units["kv_len"], [100, 100, 50, 50, 50, 50])
        self.same(plan.units["slot"], [0, 1, 2, 3, 4, ptowsp.NO_SLOT])
        self.same(plan.units["flags"], [1, 0, 2, 1, 2, 3])
        self.same(plan.unit_begin, [0, 1, 2, 4, 6])
        self.same(plan.merge_begin, [0, 1, 1, 2, 2])
        self.same(plan.merges["request"], [0, 1])
        self.same(plan.merges["slot_first"], [0, 3])
        self.same(plan.merges["slot_count"], [3, 2])
        self.same(plan.lane_costs, [100] * 4)
        self.assertEqual((plan.cost_max, plan.cost_mean, plan.lane_count, plan.tile_count), (100, 100, 4, 3))
        self.assertEqual((plan.slot_count, plan.slot_rows, plan.group, plan.tile_tokens), (5, 1, 1, 64))
        self.same(plan.lane_units(2), plan.units[2:4])
        self.same(plan.lane_merges(2), plan.merges[1:])
        self.same(np.concatenate([plan.worker_units(i, 3) for i in range(3)]), plan.units)
        self.same(np.concatenate([plan.worker_merges(i, 3) for i in range(3)]), plan.merges)
        plan.check()

    def test_flashinfer_arrays_are_those_of_the_figure(self):
        plan = ptowsp.attention_plan([250, 100, 50], **self.FIGURE)
        arrays = plan.flashinfer_arrays()
        self.same(arrays.request_indices, [0, 0, 0, 1, 1, 2])
        self.same(arrays.kv_tile_indices, [0, 1, 2, 0, 1, 0])
        self.same(arrays.o_indptr, [0, 3, 5, 6, 6, 6, 6])
        self.same(arrays.merge_indptr, [0, 3, 5])
        self.assertTrue(all(array.dtype == np.int32 for array in arrays))
        again = plan.flashinfer_arrays(out=arrays)
        self.assertTrue(all(a is b for a, b in zip(again, arrays)))

    def test_a_reserved_plan_keeps_its_arrays_and_fills_them_up(self):
        planner = ptowsp.AttentionPlanner(**self.FIGURE)
        plan = planner.reserve(sequences=4, kv_length=1000)
        self.assertEqual((len(plan.units), len(plan.merges)), (0, 0))
        arrays, units = plan.flashinfer_arrays(), plan.all_units
        self.same(arrays.request_indices, [-1] * len(units))
        plan.update(np.array([250, 100, 50], np.int32))
        plan.flashinfer_arrays(out=arrays)
        self.assertIs(plan.all_units, units)
        self.same(plan.units, planner.plan([250, 100, 50]).units)
        self.same(units["flags"][6:], ptowsp.INVALID)
        self.same(arrays.request_indices[6:], -1)
        self.same(arrays.o_indptr[3:], 6)
        error = self.refuses(ptowsp.PtowspError, "", plan.update, [1000] * 40)
        self.assertEqual(error.status, ptowsp.Status.BUFFER_OVERFLOW)
        self.same(plan.units["kv_len"], [100, 100, 50, 50, 50, 50])
        plan.check()

    def test_random_batches_give_the_attention_of_double_precision(self):
        rng = np.random.default_rng(SEED)
        for causal, mode, tile_rows in [(False, "balanced", 0), (True, "balanced", 6), (True, "invariant", 4)]:
            kv = [int(n) for n in rng.integers(0, 300, 5)] + [1200]
            queries = [int(rng.integers(0, min(n, 9) + 1)) for n in kv]
            step = Attention(kv, queries, 2, 3, causal)
            options = dict(chunk=64, grain=16) if mode == "invariant" else {}
            plan = ptowsp.attention_plan(
                kv,
                queries,
                heads=2,
                group=3,
                lanes=7,
                causal=causal,
                mode=mode,
                tile_rows=tile_rows,
                page_size=16,
                **options,
            )
            plan.check()
            self.assertGreater(len(plan.merges), 0)
            for how in (serially, on_lanes, by_workers):
                np.testing.assert_allclose(step.run(plan, how), step.expected(), rtol=2e-5, atol=2e-6)

    def test_views_keep_the_memory_of_their_plan(self):
        plan = ptowsp.attention_plan([250, 100, 50], **self.FIGURE)
        gone, units, costs, unit = weakref.ref(plan), plan.units, plan.lane_costs, plan.units[3]
        del plan
        gc.collect()
        self.assertIsNone(gone())
        junk = [np.full(10, 2**63, np.uint64) for _ in range(1000)]
        self.same(units["kv_len"], [100, 100, 50, 50, 50, 50])
        self.same(costs, [100] * 4)
        self.assertEqual((unit.request, unit.kv_len, len(junk)), (1, 50, 1000))

    def test_inputs_are_read_in_place(self):
        class Lengths:
            """Not an array, but numpy takes it as one without copying."""

            array = np.array([250, 100, 50], np.int32)
            __array_interface__ = array.__array_interface__

        plan = ptowsp.attention_plan(Lengths(), **self.FIGURE)
        plan.check()
        Lengths.array[2] = 51
        self.refuses(ptowsp.PtowspError, "plan: ", plan.check)  # the plan is of 50 tokens

    def test_windows_speeds_tiers_and_costs_reach_the_planner(self):
        plan = ptowsp.attention_plan([1000], heads=1, lanes=1, causal=True, window=100)
        self.same(plan.units["kv_start"], [900])
        plan = ptowsp.attention_plan([100, 100], heads=1, lanes=2, lane_speeds=np.array([0, 1], np.uint32))
        self.same(plan.unit_begin, [0, 0, 2])
        tiers = [(3, 1, 10), (5, 11, 1000)]
        plan = ptowsp.attention_plan([10, 11], heads=1, lanes=1, tiers=tiers)
        self.same(plan.units["tier"], [3, 5])
        called = []
        plan.run({3: lambda unit, lane: called.append("short"), 5: lambda unit, lane: called.append("long")})
        self.assertEqual(called, ["short", "long"])
        plan = ptowsp.attention_plan([10], heads=1, lanes=1, cost={"per_unit": 7, "per_token": 2})
        self.assertEqual(plan.cost_max, 27)
        self.refuses(ptowsp.PtowspError, "tier", plan_with_tiers, [200], tiers=[(0, 1, 100)])

    def test_positions_reach_the_planner_and_stay_with_the_plan(self):
        config = dict(heads=1, lanes=1, causal=True)
        plan = ptowsp.attention_plan([1000, 60], positions={"before": [99, -1], "sinks": [4, 2]}, **config)
        self.same(plan.units["kv_start"], [900, 0])
        self.same(plan.units["kv_len"], [100, 60])
        self.assertEqual([plan.see(0), plan.see(1)], [(4, 900, 1000), (0, 0, 60)])
        plan.check()
        planner = ptowsp.AttentionPlanner(mode="invariant", **config)
        plan = planner.reserve(sequences=2, kv_length=1000, positions=("before", "sinks"))
        for kv, before, sinks in ([1000, 60], [99, 20], [4, 4]), ([1000], [9], [1000]):
            positions = {"before": np.array(before, np.uint32), "sinks": np.array(sinks, np.int32)}
            plan.update(kv, None, positions)
            self.same(plan.units, planner.plan(kv, None, positions).units)
            plan.check()
        units = plan.units.tobytes()
        self.refuses(ptowsp.PtowspError, "has 8 sinks, of 7 KV tokens", plan.update, [7], None, {"sinks": [8]})
        self.assertEqual(plan.units.tobytes(), units)  # and plan.see() is of the same step
        self.assertEqual(plan.see(0), (0, 0, 1000))
        plan.update([1000])
        self.assertEqual(plan.see(0), (0, 0, 1000))

    def test_tokens_dealt_to_ranks_in_turn_give_the_attention_of_all(self):
        rng = np.random.default_rng(SEED)
        ranks, n, heads, dim = 3, 50, 2, 8
        q, k, v = (rng.standard_normal((n, heads, dim)).astype(np.float32) for _ in range(3))
        scores = np.einsum("qhd,khd->hqk", q.astype(np.float64), k) / np.sqrt(dim)
        weights = np.where(np.tril(np.ones((n, n), bool)), np.exp(scores), 0)
        expected = np.einsum("hqk,khd->qhd", weights / weights.sum(2, keepdims=True), v)
        for rank in range(ranks):
            mine, outs, lses = q[rank::ranks].copy(), [], []
            for source in range(ranks):
                keys, values = k[source::ranks].copy(), v[source::ranks].copy()
                positions = {"query_first": [rank], "kv_first": [source]}
                positions.update({"query_stride": [ranks], "kv_stride": [ranks]})
                plan = ptowsp.attention_plan(
                    [len(keys)], [len(mine)], positions, heads=heads, lanes=2, causal=True, tile_rows=4
                )
                lses.append(np.empty(mine.shape[:2], np.float32))
                outs.append(plan.attend(mine, keys, values, lse=lses[-1]))
            shares = np.exp(np.array(lses, np.float64))[..., None]
            merged = (np.array(outs) * shares).sum(0) / shares.sum(0)
            self.assertLess(np.abs(merged - expected[rank::ranks]).max(), 1e-5)

    def test_ranks_without_tokens_of_a_short_sequence_do_not_count(self):
        rng = np.random.default_rng(SEED)
        ranks, n, dim = 8, 3, 8
        q, k, v = (rng.standard_normal((n, 1, dim)).astype(np.float32) for _ in range(3))
        weights = np.where(np.tril(np.ones((n, n), bool)), np.exp(q[:, 0].astype(np.float64) @ k[:, 0].T / dim**0.5), 0)
        expected = weights / weights.sum(1, keepdims=True) @ v[:, 0]
        for rank in range(n):
            outs, lses = [], []
            for source in range(ranks):
                keys, values = k[source::ranks].copy(), v[source::ranks].copy()
                positions = {"query_first": [rank], "kv_first": [source]}
                positions.update({"query_stride": [ranks], "kv_stride": [ranks]})
                plan = ptowsp.attention_plan([len(keys)], [1], positions, heads=1, lanes=2, causal=True)
                if source > rank:
                    self.same(plan.units["flags"], [ptowsp.FIRST | ptowsp.LAST | ptowsp.POSITIONS])
                lses.append(np.full((1, 1), np.nan, np.float32))
                outs.append(np.full((1, 1, dim), np.nan, np.float32))
                room = np.zeros((1, 1, dim), np.float32)  # keys have a token at least
                plan.attend(q[[rank]], *((keys, values) if len(keys) else (room, room)), out=outs[-1], lse=lses[-1])
            for out, lse in zip(outs[rank + 1 :], lses[rank + 1 :]):
                self.assertTrue(lse == -np.inf and not out.any())
            shares = np.exp(np.array(lses, np.float64))[..., None]
            merged = (np.array(outs) * shares).sum(0) / shares.sum(0)
            self.assertLess(np.abs(merged[0, 0] - expected[rank]).max(), 1e-5)

    def test_pages_that_no_query_sees_may_be_anything(self):
        keys = np.ones((6, 4, 1, 8), np.float32)  # 6 pages of 4 tokens
        queries, nobody = np.ones((2, 1, 8), np.float32), 2**32 - 1
        config = dict(heads=1, lanes=1, causal=True, page_size=4)
        for first, pages in (6, [0, 1, nobody, nobody]), (7, [5, 0, 1, nobody]):  # the last sees 8, or 9 tokens
            plan = ptowsp.attention_plan([16], [2], {"query_first": [first]}, **config)
            self.same(plan.attend(queries, keys, keys, pages=np.array([pages], np.uint32)), queries)
            pages[pages.index(nobody) - 1] = nobody
            bad = np.array([pages], np.uint32)
            self.refuses(ValueError, "sequence 0 has page", plan.attend, queries, keys, keys, pages=bad)
        # Sinks in pages 0 and 1, a gap, a window of tokens 13 and 14.
        plan = ptowsp.attention_plan([24], [1], {"query_first": [14], "before": [1], "sinks": [5]}, **config)
        pages = np.array([[0, 1, nobody, 2, nobody, nobody]], np.uint32)
        self.same(plan.attend(queries[:1], keys, keys, pages=pages), queries[:1])
        pages[0, 1] = nobody
        self.refuses(ValueError, "sequence 0 has page", plan.attend, queries[:1], keys, keys, pages=pages)

    def test_positions_that_are_wrong_are_refused(self):
        def plan(positions, **config):
            return ptowsp.attention_plan([5, 9], [2, 3], positions, heads=1, lanes=1, **config)

        self.refuses(ValueError, "positions has 'first'; it has query_first, ", plan, {"first": [0, 0]})
        self.refuses(TypeError, "positions must be a mapping", plan, [1, 2])
        self.refuses(ValueError, "positions['sinks']", plan, {"sinks": [1]})
        self.refuses(TypeError, "positions['sinks']", plan, {"sinks": np.ones(2, np.float32)})
        self.refuses(TypeError, "positions['query_first']", plan, {"query_first": np.ones(2, np.int64)})
        self.refuses(ptowsp.PtowspError, "positions.kv_first is given without query_first", plan, {"kv_first": [0, 0]})
        self.refuses(ptowsp.PtowspError, "after is given", plan, {"after": [0, 0]}, causal=True)
        error = self.refuses(ptowsp.PtowspError, "negative query_first -1", plan, {"query_first": [0, -1]})
        self.assertEqual(error.index, 1)
        self.refuses(ptowsp.PtowspError, "stride 0", plan, {"query_first": [0, 0], "query_stride": [1, 0]})
        good = plan({"before": None, "sinks": None})
        self.assertIsNone(good._config.positions)
        self.refuses(ValueError, "sequence", good.see, 2)
        self.refuses(ValueError, "query", good.see, 1, 3)

    def test_units_that_are_whole_need_no_merge_function(self):
        called = []
        ptowsp.attention_plan([5, 6], heads=1, lanes=1).run(lambda unit, lane: called.append((unit.kv_len, lane)))
        self.assertEqual(called, [(5, 0), (6, 0)])

    def test_an_empty_step_is_a_plan(self):
        plan = ptowsp.attention_plan([], heads=1, lanes=3)
        plan.run(lambda unit, lane: self.fail("there are no units"))
        self.assertEqual((len(plan.units), plan.svg()), (0, None))
        self.assertIn("<pre>", plan._repr_html_())

    def test_plans_show_themselves(self):
        plan = ptowsp.attention_plan([250, 100, 50], **self.FIGURE)
        self.assertEqual(repr(plan), "<AttentionPlan: 6 units, 2 merges, 4 lanes>")
        self.assertIn("3 tiles of up to 1 rows in 6 units, on 4 lanes", str(plan))
        svg = plan._repr_svg_()
        self.assertTrue(svg.startswith("<svg") and svg.rstrip().endswith("</svg>"))
        # 100 tokens of each lane are drawn as 10,000, the least power of ten from there on.
        for span in (
            "part request=0 head=0 kv=100+100\ntask 2: 0 to 10000<",
            "whole request=2 head=0 kv=0+50\ntask 7: 5000 to 10000<",
        ):
            self.assertIn(span, svg)
        # Three tiles of two rows on two lanes: the second is split, and merged by the lane of its first part.
        cost = {"per_unit": 1000, "per_token": 1, "per_row_token": 0.5, "per_merged_row": 1000}
        plan = ptowsp.attention_plan([30000], [3], heads=1, group=2, lanes=2, tile_rows=2, cost=cost)
        ends = [float(end) for end in re.findall(r"task \d+: \d+ to (\d+)<", plan.svg())]
        self.assertEqual(max(ends), plan.lane_costs.max())
        merge = re.search(r"merge request=0 head=0\ntask \d+: (\d+) to (\d+)<", plan.svg())
        self.assertEqual([float(time) for time in merge.groups()], [plan.lane_costs[0] - 4000, plan.lane_costs[0]])
        self.assertIn("data:image/svg+xml;base64,", plan._repr_html_())


def plan_with_tiers(lengths, **config):
    return ptowsp.attention_plan(lengths, heads=1, lanes=1, **config)


class Merging(Case):
    def test_parts_merge_as_in_double_precision(self):
        rng = np.random.default_rng(SEED)
        score, value = rng.standard_normal((6, 4, 50)), rng.standard_normal((6, 50, 9))
        weight = np.exp(score)
        expected = np.einsum("rpt,rtd->rd", weight, value) / weight.sum(axis=(1, 2))[:, None]
        m = score.max(axis=2).T.astype(np.float32)
        weight = np.exp(score - score.max(axis=2, keepdims=True))
        l, acc = weight.sum(axis=2).T.astype(np.float32), np.einsum("rpt,rtd->prd", weight, value).astype(np.float32)
        out, lse = ptowsp.merge_partials(np.ascontiguousarray(m), np.ascontiguousarray(l), np.ascontiguousarray(acc))
        np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(lse, np.log(np.exp(score).sum(axis=(1, 2))), rtol=1e-5)
        normal = np.ascontiguousarray(acc / l[:, :, None])
        again, lse = ptowsp.merge_partials(np.ascontiguousarray(m + np.log(l)), None, normal)
        np.testing.assert_allclose(again, expected, rtol=1e-5, atol=1e-6)

    def test_empty_parts_are_ignored(self):
        m = np.array([[-np.inf, -np.inf], [3, -np.inf]], np.float32)
        acc = np.array([[[np.nan], [np.nan]], [[5], [np.nan]]], np.float32)
        out, lse = ptowsp.merge_partials(m, None, acc)
        self.same(out, [[5], [0]])
        self.same(lse, [3, -np.inf])

    def test_bad_input(self):
        m, acc = np.zeros((2, 3), np.float32), np.zeros((2, 3, 4), np.float32)
        merge = ptowsp.merge_partials
        self.refuses(TypeError, "m has dtype float64", merge, m.astype(float), None, acc)
        self.refuses(ValueError, "m has shape (3, 2)", merge, np.ascontiguousarray(m.T), None, acc)
        self.refuses(ValueError, "acc has shape", merge, m, None, acc[0])
        self.refuses(ValueError, "overlap", merge, m, None, acc, out=acc[0])
        out = np.zeros((3, 4), np.float32)
        out.flags.writeable = False
        self.refuses(ValueError, "out is read-only", merge, m, None, acc, out=out)


# -- jobs -------------------------------------------------------------------------------------------


class Jobs(Case):
    def plan(self):
        return ptowsp.attention_plan([250, 100, 50], **AttentionPlans.FIGURE)

    def test_exceptions_of_kernels_and_merges_are_raised(self):
        def fail(element, lane):
            raise KeyError("mine")

        def nothing(element, lane):
            pass

        for kernel, merge in ((fail, nothing), (nothing, fail)):
            for context in (None, ptowsp.Context(2)):
                job = self.plan().job(kernel, merge)
                for _ in range(2):  # a job that failed can run again
                    self.refuses(KeyError, "mine", job.run, context)
                raised = []

                def work(worker):
                    try:
                        job.run_worker(worker, 2)
                    except KeyError as error:
                        raised.append(error)

                threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
                [thread.start() for thread in threads]
                [thread.join() for thread in threads]
                self.assertGreaterEqual(len(raised), 1)

    def test_after_an_exception_no_function_is_called(self):
        plan, called = self.plan(), []

        def fail(unit, lane):
            called.append(unit)
            raise KeyError("mine")

        self.refuses(KeyError, "mine", plan.run, fail, called.append)
        self.assertEqual(len(called), 1)
        self.assertGreater(len(plan.units), 1)

    def test_kernels_of_the_wrong_kind_are_refused(self):
        plan, nothing = self.plan(), lambda element, lane: None
        self.refuses(TypeError, "kernel must be a mapping", plan.job, 5, nothing)
        self.refuses(TypeError, "merge must be callable", plan.job, nothing, "merge")
        self.refuses(TypeError, "kernel must be callable", plan.job, {0: 1}, nothing)
        self.refuses(ValueError, "a tier of kernel is 256", plan.job, {256: nothing}, nothing)
        self.refuses(ptowsp.PtowspError, "no kernel for its tier", plan.run, {1: nothing}, nothing)
        self.refuses(ptowsp.PtowspError, "no merge", plan.run, nothing)
        self.refuses(TypeError, "context must be a Context", plan.run, nothing, nothing, context=4)
        self.refuses(TypeError, "positional argument", plan.run, lambda: None, nothing)
        moe = ptowsp.moe_plan([1], lanes=1)
        self.refuses(TypeError, "must be an AttentionPlan, not MoePlan", ptowsp.Job, moe, nothing, None, None, False)
        self.refuses(TypeError, "must be an AttentionPlan, not MoePlan", ptowsp.Scratch, moe, 1)

    def test_workers_are_numbered_and_run_once(self):
        nothing = lambda element, lane: None
        plan = self.plan()
        job = plan.job(nothing, nothing)
        self.refuses(ValueError, "worker is 2", job.run_worker, 2, 2)
        self.refuses(ValueError, "worker is -1", job.run_worker, -1, 2)
        self.refuses(ValueError, "worker_count is 0", job.run_worker, 0, 0)
        self.refuses(TypeError, "worker must be an integer", job.run_worker, 0.5, 2)
        job.run_worker(1, 2)
        error = self.refuses(ptowsp.PtowspError, "worker 1 has begun", job.run_worker, 1, 2)
        self.assertEqual(error.status, ptowsp.Status.BUSY)
        self.refuses(ptowsp.PtowspError, "with 2 workers, not 3", job.run_worker, 0, 3)
        self.refuses(ptowsp.PtowspError, "with 2 workers, not 1", job.run)
        self.refuses(ptowsp.PtowspError, "a job runs it", plan.update, [1, 2, 3])
        job.run_worker(0, 2)
        job.run()
        plan.update([100, 100, 50])
        job.run()
        unfinished = plan.job(nothing, nothing)
        unfinished.run_worker(0, 2)
        del unfinished
        gc.collect()
        plan.update([100, 100, 50])

    def test_a_plan_is_busy_inside_its_own_run(self):
        plan, errors = self.plan(), []

        def kernel(unit, lane):
            for again in (lambda: plan.update([1]), job.run):
                try:
                    again()
                except ptowsp.PtowspError as error:
                    errors.append(error.status)

        job = plan.job(kernel, lambda merge, lane: None)
        for context in (None, ptowsp.Context(2)):
            errors.clear()
            job.run(context)
            self.assertEqual(errors, [ptowsp.Status.BUSY] * 2 * len(plan.units))

    def test_lanes_are_those_of_the_context(self):
        with ptowsp.Context(4) as context:
            lanes = set()
            ptowsp.attention_plan([64] * 400, heads=2, lanes=16).run(
                lambda unit, lane: lanes.add(lane), context=context
            )
            self.assertLessEqual(lanes, set(range(4)))

    def test_scratch_takes_elements_of_its_plan_only(self):
        plan = self.plan()
        scratch, out = plan.scratch(3), np.zeros((1, 3), np.float32)
        for element in (plan.units[0], 0, None, plan.merges, np.full(1, 2**31, "u4")[0]):
            self.refuses(TypeError, "must be an element of the plan's", scratch.merge, element, out)
        other = np.zeros(2, ptowsp.MERGE)
        other["index"] = 0, 2
        for element in other:
            self.refuses(ValueError, "not an element of this plan", scratch.merge, element, out)
        self.refuses(ValueError, "2 rows of 1", scratch.merge, plan.merges[0], np.zeros((2, 3), np.float32))
        self.refuses(ValueError, "out has shape (1, 4)", scratch.merge, plan.merges[0], np.zeros((1, 4), np.float32))
        self.refuses(TypeError, "joins are of prefix plans", scratch.join, plan.merges[0], out)
        self.refuses(ValueError, "dim is 0", plan.scratch, 0)
        self.same(scratch.merge(plan.merges[1], out) or out, [[0, 0, 0]])  # empty states


class Contexts(Case):
    def test_lanes(self):
        with ptowsp.Context(3) as context:
            self.assertEqual(context.lanes, 3)
        self.refuses(ValueError, "the context is closed", lambda: context.lanes)
        self.refuses(ValueError, "the context is closed", ptowsp.Program, "module m\n", context=context)
        self.assertGreaterEqual(ptowsp.Context().lanes, 1)
        self.refuses(ValueError, "lanes is 0", ptowsp.Context, 0)
        self.refuses(TypeError, "lanes must be an integer", ptowsp.Context, "two")
        self.refuses(ptowsp.PtowspError, "", ptowsp.Context, 100000)

    def test_a_context_does_one_thing_at_a_time(self):
        context, errors = ptowsp.Context(2), []
        plan = ptowsp.attention_plan([64] * 4, heads=1, lanes=2)

        def kernel(unit, lane):
            try:
                ptowsp.Program(WORKLOAD, context=context)
            except ptowsp.PtowspError as error:
                errors.append((error.status, error.text))

        plan.run(kernel, context=context)
        self.assertEqual(len(errors), 4)
        self.assertEqual(errors[0][0], ptowsp.Status.BUSY)
        self.assertIn("in use", errors[0][1])
        ptowsp.Program(WORKLOAD, context=context)

    def test_what_is_freed_while_its_context_is_used_is_freed_afterwards(self):
        context = ptowsp.Context(2)
        made = [ptowsp.Program(WORKLOAD, context=context).time(batch=2, chunks=[1, 2])]
        ptowsp.attention_plan([64], heads=1, lanes=1).run(lambda unit, lane: made.clear(), context=context)
        gc.collect()
        self.assertEqual(len(context._core._dead), 0)
        context.close()

    def test_runs_outlive_their_program_and_context(self):
        context = ptowsp.Context(2)
        program = ptowsp.Program(WORKLOAD, context=context)
        run = program.run(batch=1, chunks=[3])
        program.close()
        context.close()
        self.refuses(ValueError, "the program is closed", program.run)
        self.refuses(ValueError, "the program is closed", str, program)
        del program, context
        gc.collect()
        self.assertEqual(run.time().makespan, 3 * 2000 + 150)
        run.close()
        self.refuses(ValueError, "the run is closed", run.time)
        self.refuses(ValueError, "the run is closed", lambda: run.makespan)
        self.assertEqual(repr(run), "<Run: without results>")

    def test_errors_keep_their_parts_when_pickled(self):
        error = self.refuses(ptowsp.PtowspError, "sequence 1", ptowsp.attention_plan, [5, -1], heads=1, lanes=1)
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((again.status, again.text, again.index), (ptowsp.Status.INVALID_PARAMS, str(error), 1))


# -- attention kernels ------------------------------------------------------------------------------


def kv_array(rng, kv_type, shape, dim):
    """Random KV: as it is stored, the scales of i8, and its values in float64."""
    x = rng.standard_normal((*shape, dim))
    if kv_type in ("f32", "f16"):
        stored = x.astype(kv_type.replace("f", "float"))
        return stored, None, stored.astype(float)
    if kv_type == "bf16":
        stored = (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        return stored, None, (stored.astype(np.uint32) << 16).view(np.float32).astype(float)
    if kv_type == "i8":
        stored, scales = rng.integers(-127, 128, x.shape), (rng.random(shape) / 64).astype(np.float32)
        return stored.astype(np.int8), scales, stored * scales[..., None].astype(float)
    blocks = (*shape, dim // 32)
    if kv_type == "q8_0":
        scales, n = (rng.random(blocks) / 64).astype(np.float16), rng.integers(-127, 128, (*blocks, 32))
        quants = n.astype(np.int8).view(np.uint8)
    else:
        scales, n = (rng.random(blocks) / 4).astype(np.float16), rng.integers(-8, 8, (*blocks, 32))
        quants = (n[..., :16] + 8 | (n[..., 16:] + 8) << 4).astype(np.uint8)
    stored = np.concatenate([scales[..., None].view(np.uint8), quants], axis=-1).reshape(*shape, -1)
    return stored, None, (n * scales[..., None].astype(float)).reshape(*shape, dim)


LAYOUTS = "pages heads_first interleaved csr rows numbered_rows tokens numbered_tokens".split()


class KernelStep:
    """A batch with its KV in a layout: arguments of AttentionPlan.attend, and what comes out in float64."""

    PAGE = 8

    def __init__(self, rng, kv_type, layout, kv, queries, heads, group, dims):
        self.kv, self.queries, self.group = kv, queries or [1] * len(kv), group
        self.begins = np.cumsum([0, *self.queries])
        self.q = rng.standard_normal((self.begins[-1], heads * group, dims[0])).astype(np.float32)
        self.keywords = {} if kv_type in ("f32", "f16", "i8") else {"kv_type": kv_type}
        places = self.places(rng, layout, heads)
        self.arrays, self.rows = [], []
        both = kv_array(rng, kv_type, (2, *self.shape), dims[0]) if layout == "interleaved" else None
        for i, name in enumerate(("key_scales", "value_scales")):
            made = both and [None if array is None else array[i] for array in both]
            made = made or kv_array(rng, kv_type, self.shape, dims[i])
            stored, scales, exact = [None if array is None else self.view(array) for array in made]
            self.arrays.append(stored)
            self.rows.append([exact[place] for place in places])
            if scales is not None:
                self.keywords[name] = scales

    def places(self, rng, layout, heads):
        """Sets the shape of the memory and its view as keys. Returns the index of each sequence's tokens."""
        longest, count, page = max(self.kv), len(self.kv), self.PAGE
        self.view = lambda array: array
        if "tokens" in layout:
            self.shape, self.view = (sum(self.kv) + 7, heads + 2), lambda array: array[:, 1 : heads + 1]
            begins = np.cumsum([0, *self.kv[:-1]])
            if layout == "numbered_tokens":
                begins = begins + 7
                self.keywords["pages"] = begins.astype(np.int32)
            return [np.arange(b, b + n) for b, n in zip(begins, self.kv)]
        if "rows" in layout:
            self.shape, rows = (count + 1, longest, heads), np.arange(count)
            if layout == "numbered_rows":
                rows = rng.permutation(count + 1)[:count].astype(np.uint32)
                self.keywords["pages"] = rows
            return [(row, np.arange(n)) for row, n in zip(rows, self.kv)]
        width = -(-longest // page)
        table = rng.permutation(count * width + 3)[: count * width].reshape(count, width).astype(np.int32)
        self.shape = (count * width + 3, page, heads)
        if layout == "heads_first":
            self.shape, self.view = (self.shape[0], heads, page), lambda array: array.swapaxes(1, 2)
        used = [-(-n // page) for n in self.kv]
        if layout == "csr":
            self.keywords["pages"] = np.concatenate([row[:n] for row, n in zip(table, used)])
            self.keywords["page_starts"] = np.cumsum([0, *used]).astype(np.int32)
        else:
            self.keywords["pages"] = np.pad(table, ((0, 0), (0, 5)), constant_values=-1)[:, :-2]
        return [(table[r, np.arange(n) // page], np.arange(n) % page) for r, n in enumerate(self.kv)]

    def expected(
        self, causal=False, window=0, scale=None, cap=0, sinks=None, slopes=None, bits=None, bit_starts=None
    ):
        """Outputs and log-sum-exp of all rows."""
        heads = self.q.shape[1]
        out, lse = np.zeros((*self.q.shape[:2], self.rows[1][0].shape[-1])), np.full(self.q.shape[:2], -np.inf)
        for r, (n, count, k, v) in enumerate(zip(self.kv, self.queries, *self.rows)):
            tokens = slice(self.begins[r], self.begins[r + 1])
            k, v = (np.repeat(a, self.group, axis=1) for a in (k, v))
            score = np.einsum("jhd,thd->jht", self.q[tokens].astype(float), k)
            score *= scale or 1 / np.sqrt(k.shape[-1])
            if cap:
                score = cap * np.tanh(score / cap)
            t, p = np.arange(n), n - count + np.arange(count)[:, None]
            if slopes is not None:
                score -= slopes.astype(float)[:, None] * abs(p - t)[:, None]
            seen = (t <= p if causal else t >= 0) & (t > p - window if window else t >= 0)
            if bits is not None:
                seen = np.broadcast_to(seen, (count, n)).copy()
                seen[:, bit_starts[r] :] &= bits[tokens, : n - bit_starts[r]]
            score = np.where(np.broadcast_to(seen, (count, n))[:, None], score, -np.inf)
            if sinks is not None:
                score = np.concatenate([score, np.broadcast_to(sinks[:, None], (count, heads, 1))], axis=2)
            m = score.max(axis=2, initial=-1e30, keepdims=True)
            weight = np.exp(score - m)
            total = weight.sum(axis=2)
            some = np.maximum(total, 1e-300)
            out[tokens] = np.einsum("jht,thd->jhd", weight[..., :n], v) / some[..., None]
            lse[tokens] = np.where(total > 0, np.log(some) + m[..., 0], -np.inf)
        return out, lse


# Of float64 over the same stored KV: for all types the kernels convert exactly, and compute in float32.
TOLERANCES = dict.fromkeys(ptowsp._KV_TYPES, 5e-6)


class Kernels(Case):
    def near(self, array, expected, kv_type):
        np.testing.assert_allclose(array, expected, rtol=5e-6, atol=TOLERANCES[kv_type])

    def check_runs(self, plan, step, expected, kv_type, **options):
        """Values on the calling thread; the same bits on lanes, and of two and three workers, stealing or not."""
        lse = np.zeros(step.q.shape[:2], np.float32)
        out = plan.attend(step.q, *step.arrays, lse=lse, **step.keywords, **options)
        self.near(out, expected[0], kv_type)
        self.near(lse, expected[1], kv_type)
        again = np.empty_like(out), np.empty_like(lse)
        options.update(step.keywords, out=again[0], lse=again[1], stealing=True)
        job = plan.attend_job(step.q, *step.arrays, **options)
        self.assertIs(job.out, again[0])
        self.assertTrue(job._c.is_stealing)
        for count in (0, 2, 3):
            again[0].fill(-7), again[1].fill(-7)
            if count == 0:
                with ptowsp.Context(3) as context:
                    job.run(context)
            threads = [threading.Thread(target=job.run_worker, args=(i, count)) for i in range(count)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
            self.assertEqual([a.tobytes() for a in again], [out.tobytes(), lse.tobytes()])

    def options_of(self, rng, name, step):
        """Options of the plan, of the run, and of expected()."""
        heads = step.q.shape[1]
        plan, run = {"causal": "causal" in name}, {}
        if "window" in name:
            plan["window"] = 20
        if "sinks" in name:
            run["sinks"] = rng.standard_normal(heads).astype(np.float32)
            run["sinks"][0] = -np.inf
        if "slopes" in name:
            run["slopes"] = (2.0 ** -np.arange(1, heads + 1)).astype(np.float32)
        if "cap" in name:
            run["cap"] = 3
        if "scale" in name:
            run["scale"] = 0.2
        expected = {**plan, **run}
        if "mask" in name:
            starts = [max(0, n - 40) for n in step.kv]
            bits = rng.random((len(step.q), 64)) < 0.5
            expected.update(bits=bits, bit_starts=starts)
            run["mask"] = np.packbits(bits, axis=1, bitorder="little").view(np.uint32)
            run["mask_starts"] = np.array(starts, np.int32)
        return plan, run, expected

    def test_every_type_with_every_option_gives_the_values_of_double_precision(self):
        rng, layouts = np.random.default_rng(SEED), 0
        kv, queries = [130, 33, 0, 64, 7, 300], [5, 33, 0, 1, 2, 3]
        for kv_type in ptowsp._KV_TYPES:
            for name in (
                "decode",
                "decode sinks",
                "decode cap scale",
                "prefill",
                "causal prefill",
                "causal prefill window slopes",
                "prefill window sinks",
                "causal prefill mask",
                "causal prefill window mask sinks slopes cap scale",
            ):
                layout = LAYOUTS[layouts % len(LAYOUTS)]
                heads, group = [(2, 1), (2, 4), (3, 2), (1, 3)][layouts % 4]
                dims = (64, 64) if layout == "interleaved" else (64, 32)
                lengths = [n or 1 for n in kv], None if "decode" in name else queries
                step = KernelStep(rng, kv_type, layout, *lengths, heads, group, dims)
                of_plan, of_run, of_expected = self.options_of(rng, name, step)
                mode = {"mode": "invariant", "chunk": 64, "grain": 16} if layouts % 3 == 2 else {}
                config = dict(heads=heads, group=group, lanes=5, page_size=16, tile_rows=[0, 6][layouts % 2])
                plan = ptowsp.attention_plan(*lengths, **config, **of_plan, **mode)
                with self.subTest(kv_type=kv_type, options=name, layout=layout):
                    self.check_runs(plan, step, step.expected(**of_expected), kv_type, **of_run)
                layouts += 1

    def test_every_layout_gives_the_values_of_double_precision(self):
        rng = np.random.default_rng(SEED)
        for layout in LAYOUTS:
            for kv_type in ("f16", "i8", "q4_0"):
                step = KernelStep(rng, kv_type, layout, [77, 5, 200], [3, 1, 20], 2, 2, (32, 32))
                plan = ptowsp.attention_plan(
                    step.kv, step.queries, heads=2, group=2, lanes=4, page_size=16, causal=True
                )
                with self.subTest(kv_type=kv_type, layout=layout):
                    self.check_runs(plan, step, step.expected(causal=True), kv_type)

    def test_latent_attention_reads_values_in_keys(self):
        rng = np.random.default_rng(SEED)
        for kv_type, value_size in ("f32", 512), ("bf16", 512), ("q8_0", 544), ("i8", 512):
            step = KernelStep(rng, kv_type, "pages", [100, 260, 9], [1, 4, 2], 1, 16, (576, 576))
            step.arrays[1] = step.arrays[0][..., :value_size]
            step.rows[1] = [row[..., :512] for row in step.rows[0]]
            if kv_type == "i8":
                step.keywords["value_scales"] = step.keywords["key_scales"]
            plan = ptowsp.attention_plan(
                step.kv, step.queries, heads=1, group=16, lanes=5, page_size=8, causal=True, tile_rows=128
            )
            self.check_runs(plan, step, step.expected(causal=True), kv_type)

    def test_requests_that_share_kv_give_the_values_of_double_precision(self):
        rng = np.random.default_rng(SEED)
        kv, queries = [1300, 1250, 300, 1290, 1270], [1, 3, 1, 2, 1]
        for name in "causal", "causal sinks slopes cap mask", "sinks":
            step = KernelStep(rng, "f16", "pages", kv, None if name == "sinks" else queries, 2, 2, (64, 32))
            pages, page = step.keywords["pages"], step.PAGE
            for r in (1, 3, 4):
                pages[r, : 1200 // page] = pages[0, : 1200 // page]
            step.rows = [[row.copy() for row in rows] for rows in step.rows]
            for rows in step.rows:
                for r in (1, 3, 4):
                    rows[r][:1200] = rows[0][:1200]
            ids = [pages[r, : -(-n // page)].astype(np.int64) for r, n in enumerate(kv)]
            of_plan, of_run, of_expected = self.options_of(rng, name, step)
            config = dict(heads=2, group=2, lanes=6, page_size=page, **of_plan)
            plan = ptowsp.prefix_plan(kv, ids, page, query_lengths=None if name == "sinks" else queries, **config)
            self.assertGreater(min(plan.shared_count, len(plan.joins)), 0)
            self.check_runs(plan, step, step.expected(**of_expected), "f16", **of_run)
        self.refuses(
            ValueError, "one after another", plan.attend, step.q, *step.arrays, **step.keywords, query_starts=[0] * 5
        )
        kv_lengths = plan._batch.kept[0]
        kv_lengths[0] += 1
        self.refuses(ptowsp.PtowspError, "plan: ", plan.attend, step.q, *step.arrays, **step.keywords)

    def test_queries_and_outputs_have_strides_and_starts_of_their_own(self):
        rng = np.random.default_rng(SEED)
        step = KernelStep(rng, "f32", "pages", [50, 0, 90], [3, 0, 2], 2, 2, (32, 32))
        plan = ptowsp.attention_plan(step.kv, step.queries, heads=2, group=2, lanes=3, page_size=8)
        expected, _ = step.expected()
        fused = np.zeros((4, 9, 3, 32), np.float32)  # heads first, with queries in the middle
        rows = [5, 6, 7, 1, 2]
        queries = fused[:, :, 1].swapaxes(0, 1)
        queries[rows] = step.q
        packed = np.full((9, 4, 33), 7, np.float32)  # outputs and their log-sum-exp together
        out, lse = packed[:, :, :32], packed[:, :, 32]
        for starts in np.array([5, 9, 1], np.uint32), np.array([5, 9, 1, 0], np.int32):
            packed.fill(7)
            result = plan.attend(queries, *step.arrays, **step.keywords, out=out, lse=lse, query_starts=starts)
            self.assertIs(result, out)
            self.near(out[rows], expected, "f32")
            self.same(packed[[0, 3, 4, 8]], 7)
        one = np.broadcast_to(step.q[:1], step.q.shape)  # the same query for all
        again = plan.attend(one.copy(), *step.arrays, **step.keywords)
        self.same(plan.attend(one, *step.arrays, **step.keywords), again)

    def test_strides_of_axes_with_one_element_do_not_matter(self):
        q, kv = np.ones((1, 1, 8), np.float32), np.ones((1, 5, 1, 8), np.float32)
        plan = ptowsp.attention_plan([5], heads=1, lanes=1)
        self.same(plan.attend(q[::-1, ::-1], kv[::-1], kv[:, :, ::-1], out=q.copy()[::-1]), q)

    def test_rows_of_sequences_without_kv_are_not_written(self):
        q, kv = np.ones((2, 1, 8), np.float32), np.ones((5, 1, 8), np.float32)
        plan = ptowsp.attention_plan([5, 0], heads=1, lanes=2)
        self.same(plan.attend(q, kv, kv)[:, 0, 0], [1, 0])
        self.same(plan.attend(q, kv, kv, out=np.full_like(q, 9))[:, 0, 0], [1, 9])

    def test_pages_before_the_window_may_be_gone(self):
        rng = np.random.default_rng(SEED)
        step = KernelStep(rng, "f32", "pages", [90], [3], 1, 1, (8, 8))
        config = dict(heads=1, lanes=2, page_size=8, causal=True, window=20)
        plan = ptowsp.attention_plan([90], [3], **config)
        step.keywords["pages"] = step.keywords["pages"].copy()
        # Token 68 is the first that the first query token, at 87, sees: page 8.
        step.keywords["pages"][0, :8] = -1
        self.check_runs(plan, step, step.expected(causal=True, window=20), "f32")
        step.keywords["pages"][0, 8] = -1
        self.refuses(ValueError, "page 4294967295", plan.attend, step.q, *step.arrays, **step.keywords)

    def test_pages_between_sinks_and_the_window_may_be_gone(self):
        rng = np.random.default_rng(SEED)
        for mode in "balanced", "invariant":
            step = KernelStep(rng, "f32", "pages", [90], [3], 1, 1, (8, 8))
            config = dict(heads=1, lanes=2, page_size=8, causal=True, window=20, mode=mode)
            plan = ptowsp.attention_plan([90], [3], {"sinks": [9]}, **config)
            step.keywords["pages"] = step.keywords["pages"].copy()
            whole = plan.attend(step.q, *step.arrays, **step.keywords)
            # Tokens 0 to 8 are sinks, in pages 0 and 1; from 68 on the first query token sees: page 8.
            step.keywords["pages"][0, 2:8] = -1
            self.same(plan.attend(step.q, *step.arrays, **step.keywords), whole)
            for page in 1, 8:
                was, step.keywords["pages"][0, page] = step.keywords["pages"][0, page], -1
                self.refuses(ValueError, "page 4294967295", plan.attend, step.q, *step.arrays, **step.keywords)
                step.keywords["pages"][0, page] = was

    def test_jobs_are_reused_over_steps_in_the_same_memory(self):
        rng = np.random.default_rng(SEED)
        planner = ptowsp.AttentionPlanner(heads=2, group=2, lanes=4, page_size=8, causal=True)
        plan = planner.reserve(sequences=4, kv_length=400, query_length=8)
        step = KernelStep(rng, "f32", "pages", [400] * 4, [8] * 4, 2, 2, (32, 32))
        job = plan.attend_job(step.q, *step.arrays, **step.keywords)
        job.run()
        place = job._c.memory.progress
        self.same(job.out, 0)  # an empty step
        rows, q = step.rows, step.q
        for kv, queries in ([300, 20, 7], [1, 8, 7]), ([400] * 4, [8] * 4), ([17], [2]):
            plan.update(np.array(kv, np.int32), np.array(queries, np.int32))
            job.out.fill(0)
            job.run()
            step.kv, step.queries, step.begins = kv, queries, np.cumsum([0, *queries])
            step.rows, step.q = [[row[:n] for row, n in zip(r, kv)] for r in rows], q[: sum(queries)]
            self.near(job.out[: sum(queries)], step.expected(causal=True)[0], "f32")
        other = plan.attend_job(q, *step.arrays, **step.keywords)
        other.run()
        self.assertEqual([job._c.memory.progress, other._c.memory.progress], [place] * 2)
        other.run_worker(1, 2)  # more workers than it had room for
        other.run_worker(0, 2)
        self.same(other.out[:2], job.out[:2])
        wide = plan.attend_job(q[:, :, :8].copy(), *[a[..., :8] for a in step.arrays], **step.keywords)
        wide.run()  # values of another dimension have memory of their own
        job.run()

    def test_one_job_of_a_plan_runs_at_a_time(self):
        q, kv = np.ones((3, 1, 8), np.float32), np.ones((400, 1, 8), np.float32)
        plan = ptowsp.attention_plan([250, 100, 50], **AttentionPlans.FIGURE)
        job, other = plan.attend_job(q, kv, kv), plan.attend_job(q, kv, kv)
        job.run_worker(1, 2)
        for text, call in (
            ("worker 1 has begun", lambda: job.run_worker(1, 2)),
            ("with 2 workers, not 3", lambda: job.run_worker(0, 3)),
            ("with 2 workers, not 1", job.run),
            ("another one of the plan's runs", other.run),
            ("a job runs it", lambda: plan.update([250, 100, 50])),
        ):
            self.assertEqual(self.refuses(ptowsp.PtowspError, text, call).status, ptowsp.Status.BUSY)
        job.run_worker(0, 2)
        self.same(job.out, 1)
        job.run_worker(0, 2)
        del job  # gives its run up
        gc.collect()
        other.run()
        plan.update([250, 100, 50])
        with ptowsp.Context(2) as context:
            with context._core.used():
                self.refuses(ptowsp.PtowspError, "in use", other.run, context)
            other.run(context)
        self.same(other.out, 1)

    def test_runs_release_the_gil(self):
        flags = [type(getattr(ptowsp._lib, name))._flags_ & 4 for name in ("attend_run", "attend_run_worker")]
        self.assertEqual(flags, [0, 0])  # functions of PyDLL, which keep it, have this flag
        self.assertEqual(type(ptowsp._lib.attend_check)._flags_ & 4, 4)


class KernelInput(Case):
    """Each wrong argument of attention is an exception."""

    def setUp(self):
        self.plan = ptowsp.attention_plan([20, 9], [2, 1], heads=2, group=2, lanes=2, page_size=8)
        self.good = dict(
            queries=np.ones((3, 4, 32), np.float32),
            keys=np.ones((6, 8, 2, 32), np.float32),
            values=np.ones((6, 8, 2, 32), np.float32),
            pages=np.array([[5, 1, 2], [3, 4, -1]], np.int32),
        )
        self.same(self.plan.attend(**self.good), 1)

    def wrong(self, kind, text, plan=None, **named):
        arguments = {name: value for name, value in {**self.good, **named}.items() if value is not ...}
        return self.refuses(kind, text, (plan or self.plan).attend, **arguments)

    def test_queries(self):
        q, wrong = self.good["queries"], self.wrong
        wrong(TypeError, "queries has dtype float64", queries=q.astype(float))
        wrong(TypeError, "queries must be an array of float32, not NoneType", queries=None)
        wrong(TypeError, "queries has dtype object", queries={})
        wrong(ValueError, "queries has shape (3, 3, 32); it must be (any, 4, 32)", queries=q[:, :3])
        wrong(ValueError, "queries has shape (3, 4, 24)", queries=q[:, :, :24])
        wrong(ValueError, "queries has shape (12, 32)", queries=q.reshape(12, 32))
        wrong(ValueError, "sequence 1 has query tokens outside of 2", queries=q[:2])
        wrong(ValueError, "queries has strides", queries=q[::-1])
        wrong(ValueError, "adjacent elements", queries=np.ones((3, 4, 64), np.float32)[..., ::2])
        wrong(ValueError, "adjacent elements", queries=np.asfortranarray(q))
        odd = np.zeros(3 * 514, np.uint8)
        odd = np.ndarray((3, 4, 32), np.float32, odd, strides=(514, 128, 4))
        wrong(ValueError, "queries is not aligned", queries=odd)
        for sequence, starts in (1, [0, 3]), (0, [2, 0]), (0, np.array([-1, 0], np.int32)):
            wrong(ValueError, f"sequence {sequence} has query tokens outside", query_starts=starts)
        wrong(ValueError, "query_starts has 1 sequences, and the plan 2", query_starts=[0])
        wrong(TypeError, "query_starts has dtype int64", query_starts=np.array([0, 2]))
        wrong(ValueError, "query_starts has -1", query_starts=[-1, 0])

    def test_keys_and_values(self):
        k, wrong = self.good["keys"], self.wrong
        wrong(TypeError, "keys has dtype float64; it must be float32", keys=k.astype(float))
        wrong(TypeError, "keys has dtype object", keys=None)
        wrong(TypeError, "values must be an array of float32, not NoneType", values=None)
        wrong(TypeError, "values has dtype float16; it must be float32", values=k.astype("f2"))
        wrong(TypeError, "kv_type must say that it is bf16", keys=k.astype("u2"))
        wrong(TypeError, "kv_type must say that it is q8_0 or q4_0", keys=k.astype("u1"))
        wrong(TypeError, "keys has dtype float32; it must be uint16", kv_type="bf16")
        wrong(ValueError, "kv_type is 'f64'; it is one of f32", kv_type="f64")
        wrong(TypeError, "kv_type must be a string", kv_type=3)
        wrong(ValueError, "keys has shape (6, 8, 1, 32); it must be (any, any, 2, any)", keys=k[:, :, :1])
        wrong(ValueError, "keys has shape (12, 32)", keys=k[0, :6].reshape(12, 32))
        wrong(ValueError, "keys has shape (1, 6, 8, 2, 32)", keys=k[None])
        wrong(ValueError, "values has shape (5, 8, 2, 32); it must be (6, 8, 2, any)", values=k[:5])
        wrong(ValueError, "keys has strides", keys=k[:, ::-1])
        wrong(ValueError, "values has strides", values=np.ones((6, 8, 2, 64), np.float32)[..., ::2])
        wrong(ptowsp.PtowspError, "attend: key_dim is 12", keys=k[..., :12], queries=self.good["queries"][..., :12])
        wrong(ptowsp.PtowspError, "value_dim is 584", values=np.ones((6, 8, 2, 584), np.float32))
        wrong(ptowsp.PtowspError, "value_dim is 0", values=k[..., :0])
        sizes = dict(keys=np.ones((6, 7, 2, 32), np.float32), values=np.ones((6, 7, 2, 32), np.float32))
        error = wrong(ptowsp.PtowspError, "pages of 7", **sizes)
        self.assertEqual(error.status, ptowsp.Status.INVALID_PARAMS)
        large = np.broadcast_to(np.ones((1, 1, 2, 32), np.float32), (6, 2**33, 2, 32))
        wrong(ValueError, "the page size is 8589934592", keys=large, values=large)
        self.refuses(TypeError, "must be an AttentionPlan", ptowsp.AttendJob, ptowsp.moe_plan([1], lanes=1), *[k] * 3)

    def test_types_with_scales_and_blocks(self):
        wrong, shape = self.wrong, (6, 8, 2)
        i8 = dict(keys=np.ones((*shape, 32), np.int8), values=np.ones((*shape, 32), np.int8))
        scales = np.ones(shape, np.float32)
        wrong(ValueError, "key_scales is None", **i8)
        wrong(ValueError, "value_scales is None", **i8, key_scales=scales)
        wrong(ValueError, "are of i8, not f32", key_scales=scales)
        wrong(TypeError, "key_scales has dtype float64", **i8, key_scales=scales.astype(float), value_scales=scales)
        wrong(ValueError, "value_scales has shape (6, 8)", **i8, key_scales=scales, value_scales=scales[:, :, 0])
        swapped = np.ones((6, 2, 8), np.float32).swapaxes(1, 2)
        wrong(ValueError, "different strides", **i8, key_scales=scales, value_scales=swapped)
        wrong(ValueError, "key_scales has strides", **i8, key_scales=scales[::-1], value_scales=scales)
        blocks = np.zeros((*shape, 34), np.uint8)
        wrong(ValueError, "rows of 33 bytes", keys=blocks[..., :33], values=blocks, kv_type="q8_0")
        wrong(ValueError, "rows of 34 bytes, not whole blocks of 18", keys=blocks, values=blocks, kv_type="q4_0")
        padded = np.zeros((*shape, 35), np.uint8)[..., :34]
        wrong(ValueError, "multiples of 34", keys=padded, values=blocks, kv_type="q8_0")

    def test_page_tables(self):
        wrong, pages = self.wrong, self.good["pages"]
        wrong(TypeError, "pages has dtype int64", pages=pages.astype(np.int64))
        wrong(TypeError, "pages has dtype float64", pages=pages.astype(float))
        wrong(ValueError, "pages has shape (1, 2, 3)", pages=pages[None])
        wrong(ValueError, "pages has 1 sequences, and the plan 2", pages=pages[:1])
        wrong(ValueError, "sequence 0 has 3 pages, and its table in pages 2", pages=pages[:, :2])
        wrong(ValueError, "pages has strides", pages=pages[::-1])
        wrong(ValueError, "pages has strides", pages=np.asfortranarray(pages))
        for page in 6, -1, 2**31 - 1:
            bad = pages.copy()
            bad[1, 1] = page
            wrong(ValueError, f"sequence 1 has page {page % 2**32}, and keys has 6", pages=bad)
        wrong(ValueError, "pages has -1", pages=[[0, 1, 2], [3, 4, -1]])
        flat = np.array([5, 1, 2, 3, 4], np.int32)
        self.same(self.plan.attend(**{**self.good, "pages": flat}, page_starts=[0, 3]), 1)
        wrong(ValueError, "sequence 1 has 2 pages, and its table in pages 1", pages=flat, page_starts=[0, 4])
        wrong(ValueError, "its table in pages 0", pages=flat, page_starts=[0, 2**32 - 1])
        wrong(ValueError, "its table in pages 0", pages=flat, page_starts=np.array([0, -3], np.int32))
        wrong(ValueError, "page_starts has 1 sequences", pages=flat, page_starts=[0])
        wrong(ValueError, "page_starts is given, and pages is not", pages=None, page_starts=[0, 3])
        wrong(ValueError, "pages has shape (2, 3)", page_starts=[0, 3])

    def test_sequences_without_page_tables(self):
        wrong = self.wrong
        tokens = np.ones((29, 2, 32), np.float32)
        self.same(self.plan.attend(self.good["queries"], tokens, tokens), 1)
        rows = np.ones((2, 20, 2, 32), np.float32)
        self.same(self.plan.attend(self.good["queries"], rows, rows), 1)
        wrong(ValueError, "pages are page tables", keys=tokens, values=tokens)
        wrong(ValueError, "pages are page tables", keys=tokens, values=tokens, pages=[1], page_starts=[0, 0])
        short = tokens[:28]
        wrong(ValueError, "sequence 1 has KV tokens outside of keys, (28,)", keys=short, values=short, pages=None)
        wrong(ValueError, "sequence 0 has KV tokens outside", keys=tokens, values=tokens, pages=[10, 0])
        wrong(ValueError, "sequence 1 has KV", keys=tokens, values=tokens, pages=np.array([0, -1], np.int32))
        wrong(ValueError, "sequence 0 has KV", keys=rows[:, :19], values=rows[:, :19], pages=None)
        wrong(ValueError, "KV tokens outside of keys, (2, 20)", keys=rows, values=rows, pages=[0, 2])
        wrong(ValueError, "sequence 1 has KV", keys=rows[:1], values=rows[:1], pages=None)
        same = np.broadcast_to(rows[:1], rows.shape)  # the KV of all sequences
        for pages in (None, [0, 1], [1, 1]):
            self.same(self.plan.attend(self.good["queries"], same, same, pages=pages), 1)

    def test_outputs(self):
        wrong, shape = self.wrong, (3, 4, 32)
        out, lse = np.zeros(shape, np.float32), np.zeros((3, 4), np.float32)
        wrong(TypeError, "out must be a numpy array, not list", out=out.tolist())
        wrong(TypeError, "out has dtype float64", out=out.astype(float))
        wrong(ValueError, "out has shape (2, 4, 32)", out=out[:2])
        wrong(ValueError, "out has strides", out=out[::-1])
        wrong(ValueError, "elements of out overlap", out=np.lib.stride_tricks.as_strided(out, strides=(0, 128, 4)))
        wrong(ValueError, "elements of out overlap", out=np.lib.stride_tricks.as_strided(out, strides=(512, 64, 4)))
        wrong(ValueError, "out and queries overlap", out=self.good["queries"])
        wrong(ValueError, "out and values overlap", out=self.good["values"].reshape(-1)[: out.size].reshape(shape))
        wrong(TypeError, "lse must be a numpy array, not bool", lse=True)
        wrong(ValueError, "lse has shape (4, 3)", lse=lse.T)
        wrong(ValueError, "lse and out overlap", out=out, lse=out[:, :, 0])
        wrong(ValueError, "lse and keys overlap", lse=self.good["keys"].reshape(-1)[:12].reshape(3, 4))
        for array, name in (out, "out"), (lse, "lse"):
            array.flags.writeable = False
            wrong(ValueError, name + " is read-only", **{name: array})

    def test_terms(self):
        wrong = self.wrong
        for name in "scale", "cap":
            wrong(ValueError, name + " is nan", **{name: float("nan")})
            wrong(ValueError, name + " is inf", **{name: float("inf")})
            wrong(ValueError, name + " is 1e+40", **{name: 1e40})
            wrong(TypeError, name + " must be a number", **{name: "1"})
        wrong(ValueError, "cap is -1", cap=-1)
        for name in "sinks", "slopes":
            wrong(ValueError, name + " has shape (2,)", **{name: np.zeros(2, np.float32)})
            wrong(TypeError, name + " has dtype float64", **{name: np.zeros(4)})
            wrong(ValueError, name + " is not contiguous", **{name: np.zeros(8, np.float32)[::2]})
        mask = np.zeros((3, 1), np.uint32)
        wrong(TypeError, "mask has dtype bool", mask=mask.astype(bool))
        wrong(ValueError, "mask has shape (2, 1); it must be (3, any)", mask=mask[:2])
        wrong(ValueError, "mask has shape (3,)", mask=mask[:, 0])
        wrong(ValueError, "mask is not contiguous", mask=np.zeros((3, 2), np.uint32)[:, :1])
        error = wrong(ptowsp.PtowspError, "attend: ", mask=mask, mask_starts=[0, 10])
        self.assertEqual((error.status, error.index), (ptowsp.Status.INVALID_PARAMS, 1))
        wrong(ptowsp.PtowspError, "attend: ", mask=mask[:, :0])
        wrong(ValueError, "mask_starts has 1 sequences", mask=mask, mask_starts=[0])
        wrong(TypeError, "mask_starts has dtype int64", mask=mask, mask_starts=np.array([0, 0]))
        wrong(TypeError, "context must be a Context", context=3)
        wrong(TypeError, "unexpected keyword argument", softcap=3)

    def test_workers(self):
        job = self.plan.attend_job(**self.good)
        self.refuses(ValueError, "worker is 2", job.run_worker, 2, 2)
        self.refuses(ValueError, "worker_count is 0", job.run_worker, 0, 0)
        self.refuses(TypeError, "worker must be an integer", job.run_worker, 0.5, 2)
        self.refuses(ptowsp.PtowspError, "65537 workers are not in 1 to 65536", job.run_worker, 0, 65537)
        job.run()

    def test_a_step_that_is_another_than_the_plan_s_is_refused_in_the_run(self):
        lengths = np.array([20, 9], np.int32)
        plan = ptowsp.attention_plan(lengths, [2, 1], heads=2, group=2, lanes=2, page_size=8)
        job = plan.attend_job(**self.good)
        lengths[0] = 21
        self.refuses(ptowsp.PtowspError, "plan: ", job.run)
        lengths[0] = -1
        self.refuses(ptowsp.PtowspError, "plan: ", job.run_worker, 1, 2)
        lengths[0] = 20
        job.run()
        plan = ptowsp.AttentionPlanner(heads=2, group=2, lanes=2, page_size=8).reserve(sequences=9, kv_length=50)
        job = plan.attend_job(**self.good)
        for text, kv in (
            ("pages has 2 sequences, and the plan 3", [20, 9, 1]),
            ("sequence 0 has 4 pages", [25, 9]),
            ("sequence 1 has page 4294967295", [24, 17]),
        ):
            plan.update(kv)
            self.refuses(ValueError, text, job.run)
        plan.update([24, 16])
        self.good["pages"].shape = 6  # the job keeps the shapes that it was given
        self.good["keys"].shape = 12, 4, 2, 32
        job.run()
        self.same(job.out[:2], 1)
        self.good["pages"][0] = 7
        self.refuses(ValueError, "sequence 0 has page 7, and keys has 6", job.run)


# -- chunk plans, experts, prefixes -----------------------------------------------------------------


class ChunkPlans(Case):
    def test_pieces_are_those_of_the_manual(self):
        plan = ptowsp.chunk_plan([10], 1, chunk=4)
        self.same(plan.units["kv_len"], [3, 3, 4])
        plan = ptowsp.chunk_plan([10, 0, 3], 2, chunk=4, fixed=True)
        self.same(plan.units["kv_len"], [4, 4, 2, 4, 4, 2, 3, 3])
        self.same(plan.units["kv_start"], [0, 4, 8, 0, 4, 8, 0, 0])
        self.same(plan.units["request"], [0] * 6 + [2] * 2)
        self.same(plan.units["head"], [0] * 3 + [1] * 3 + [0, 1])
        self.same(plan.units["index"], range(8))

    def test_the_chunk_is_the_smallest_that_the_rule_allows(self):
        rng = np.random.default_rng(SEED)
        lengths = rng.integers(0, 5000, 40).astype(np.int32)
        plan = ptowsp.chunk_plan(lengths, 3, chunk_min=100, chunk_max=3000, max_work_units=500)
        fits = [c for c in range(100, 3001) if 3 * sum(-(-int(n) // c) for n in lengths) <= 500]
        self.assertEqual((plan.chunk, plan.is_over), (fits[0], False))
        self.same(
            plan.units["tier"], [0 if n <= 1024 else 1 if n <= 4096 else 2 for n in lengths[plan.units["request"]]]
        )
        self.assertTrue(ptowsp.chunk_plan(lengths, 3, chunk=100, max_work_units=5).is_over)

    def test_all_units_run(self):
        plan, seen = ptowsp.chunk_plan([3000, 100], 2), []
        for context in (None, ptowsp.Context(3)):
            seen.clear()
            plan.run(lambda unit, lane: seen.append(int(unit.index)), context)
            self.assertEqual(sorted(seen), list(range(len(plan.units))))
        self.same(np.concatenate([plan.worker_units(i, 5) for i in range(5)]), plan.units)
        self.refuses(ZeroDivisionError, "", plan.run, lambda unit, lane: 1 / 0)
        error = self.refuses(ptowsp.PtowspError, "tier without a kernel", plan.run, {0: print})
        self.assertEqual(error.index, 0)
        self.refuses(ptowsp.PtowspError, "", plan.run, {0: print}, ptowsp.Context(1))
        plan.units = np.zeros(3, np.int32)
        self.refuses(TypeError, "units has dtype int32", plan.run, print)

    def test_bad_input(self):
        chunk = ptowsp.chunk_plan
        self.refuses(TypeError, "int64", chunk, np.array([1]), 1)
        self.refuses(TypeError, "lengths must have numbers of int32", chunk, [1.5], 1)
        self.refuses(ValueError, "lengths has 4294967296", chunk, [2**32], 1)
        self.refuses(ptowsp.PtowspError, "negative length -1", chunk, [-1], 1)
        self.refuses(ptowsp.PtowspError, "kv_head_count is 0", chunk, [1], 0)
        self.refuses(ValueError, "heads is -1", chunk, [1], -1)
        self.refuses(TypeError, "heads must be an integer", chunk, [1], "8")
        self.refuses(ptowsp.PtowspError, "greater than chunk_max", chunk, [1], 1, chunk_min=9, chunk_max=8)
        error = self.refuses(ptowsp.PtowspError, "no tier covers", chunk, [1, 200000], 1)
        self.assertEqual((error.status, error.index), (ptowsp.Status.UNSUPPORTED_SIZE, 1))
        self.refuses(
            ptowsp.PtowspError, "work ids", chunk, [2**31 - 1] * 8, 1, chunk=1, tiers=[(0, 1, 2**31 - 1)]
        )
        self.refuses(ValueError, "tiers are", chunk, [1], 1, tiers=[(0, 1)])
        self.refuses(ValueError, "a tier is 256", chunk, [1], 1, tiers=[(256, 1, 2)])


class Experts(Case):
    IDS = np.array([[2, 0], [2, 1], [0, 2], [2, -1]], np.int32)  # the figure of section 11

    def test_the_figure_of_the_manual(self):
        order = ptowsp.moe_sort(self.IDS, 3)
        self.same(order.counts, [2, 1, 4])
        self.same(order.offsets, [0, 2, 3, 7])
        self.same(order.pairs, [1, 4, 3, 0, 2, 5, 6])
        self.same(order.rows, [[3, 0], [4, 2], [1, 5], [6, ptowsp.NO_ROW]])
        self.assertEqual(order.pair_count, 7)
        plan = ptowsp.moe_plan(order.counts, order.offsets, lanes=2, cost={"per_token": 1})
        self.same(plan.units["expert"], [0, 1, 2, 2])
        self.same(plan.units["token_start"], [0, 2, 3, 4])
        self.same(plan.units["token_count"], [2, 1, 1, 3])
        self.same(plan.unit_begin, [0, 3, 4])
        self.same(plan.lane_costs, [4, 3])
        self.assertEqual((plan.lane_count, plan.cost_max, plan.cost_mean), (2, 4, 3.5))
        plan.check()
        self.same(plan.lane_units(1), plan.units[3:])
        seen = []
        plan.run(lambda unit, lane: seen.append(int(unit.expert)))
        self.assertEqual(seen, [0, 1, 2, 2])
        self.assertIn("7 pairs of 3 experts in 4 units", str(plan))
        self.assertTrue(plan._repr_svg_().startswith("<svg"))

    def test_a_layer_of_experts_is_that_of_numpy(self):
        rng = np.random.default_rng(SEED)
        tokens, dim, experts, top_k = 50, 6, 8, 2
        x, w = rng.standard_normal((tokens, dim)), rng.standard_normal((experts, dim, dim))
        gates = rng.random((tokens, top_k)).astype(np.float32)
        ids = ptowsp.moe_routes("ragged", tokens=tokens, top_k=top_k, experts=experts, seed=SEED)
        expected = np.zeros((tokens, dim))
        for t in range(tokens):
            for k in range(top_k):
                if ids[t, k] >= 0:
                    expected[t] += gates[t, k] * (x[t] @ w[ids[t, k]])
        for block_rows, context in ((0, None), (4, ptowsp.Context(2))):
            order = ptowsp.moe_sort(ids, experts, block_rows=block_rows, context=context)
            self.same(order.counts, [np.sum(ids == e) for e in range(experts)])
            made = np.zeros((len(order.pairs), dim), np.float32)

            def expert(unit, lane):
                for row in range(unit.token_start, unit.token_start + unit.token_count):
                    if order.pairs[row] != ptowsp.NO_ROW:
                        made[row] = x[order.pairs[row] // top_k] @ w[unit.expert]

            plan = ptowsp.moe_plan(order.counts, order.offsets, lanes=3, block_rows=block_rows)
            plan.run(expert, context)
            out = ptowsp.moe_combine(order.rows, made, gates)
            np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)
            ptowsp.moe_combine(order.rows[10:20], made, gates[10:20], out=out[10:20])
            np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)

    def test_batches_are_counted_apart(self):
        plan = ptowsp.moe_plan(np.array([[3, 0], [1, 2]], np.uint32), lanes=1)
        self.same(plan.units["batch"], [0, 1, 1])
        self.same(plan.units["expert"], [0, 0, 1])
        self.same(plan.units["token_count"], [3, 1, 2])

    # 1 token of 8 experts on 32 lanes: 4 parts of each, 64 / 4 + 1 / 4 + 4.
    def test_columns_are_divided_where_tokens_are_few(self):
        counts = np.ones(8, np.uint32)
        self.assertEqual(ptowsp.moe_plan(counts, lanes=32).cost_max, 69)
        plan = ptowsp.moe_plan(counts, lanes=32, column_parts=8)
        plan.check()
        self.assertEqual((plan.column_parts, plan.cost_max, len(plan.units)), (4, 20.25, 32))
        self.same(plan.units["expert"], np.repeat(range(8), 4))
        self.same(plan.units["column_part"], list(range(4)) * 8)
        self.assertEqual([plan.columns(p, 10, 3) for p in range(4)], [(0, 3), (3, 6), (6, 9), (9, 10)])
        self.assertIn("columns: those of an expert in 4 parts", str(plan))
        self.refuses(ValueError, "part", plan.columns, 4, 10)
        self.refuses(ptowsp.PtowspError, "column_parts 65536", ptowsp.moe_plan, counts, lanes=1, column_parts=65536)
        self.refuses(TypeError, "column_parts", ptowsp.moe_plan, counts, lanes=1, column_parts="4")

    def test_replicas_are_spread_on_demand(self):
        loads = np.zeros((1, 6), np.float32)
        self.same(ptowsp.place_experts(loads, replicas=12, ranks=4).expert_counts[0], [7, 1, 1, 1, 1, 1])
        placement = ptowsp.place_experts(loads, replicas=12, ranks=4, spread=True)
        self.same(placement.expert_counts[0], [2] * 6)
        placement.move([[9, 0, 0, 0, 0, 1]], 4)
        for rank in placement.replica_experts[0].reshape(4, 3):
            self.assertEqual(len(set(rank)), 3)
        self.refuses(
            ptowsp.PtowspError, "3 replicas, and only 2", ptowsp.place_experts, [1, 1], replicas=6, ranks=2, spread=True
        )

    # EPLB's README has these loads, and this result for 16 replicas, 4 groups, 2 nodes and 8 GPUs.
    LOADS = np.array(
        [[90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86], [20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27]],
        np.float32,
    )
    PLACED = [[5, 6, 5, 7, 8, 4, 3, 4, 10, 9, 10, 2, 0, 1, 11, 1], [7, 10, 6, 8, 6, 11, 8, 9, 2, 4, 5, 1, 5, 0, 3, 1]]

    def test_placement_is_that_of_eplb(self):
        physical, logical, counts = ptowsp.rebalance_experts(self.LOADS, 16, 4, 2, 8)
        self.same(physical, self.PLACED)
        for layer in range(2):
            self.same(counts[layer], np.bincount(self.PLACED[layer]))
            for expert in range(12):
                replicas = logical[layer, expert]
                self.same(sorted(replicas[replicas >= 0]), np.flatnonzero(np.array(self.PLACED[layer]) == expert))
        self.assertEqual(logical.shape, (2, 12, 5))

    def test_ranks_loads_and_shares(self):
        placement = ptowsp.place_experts(self.LOADS[0], replicas=16, ranks=8, groups=4, nodes=2)
        expected = [
            sum(self.LOADS[0][e] / self.PLACED[0].count(e) for e in self.PLACED[0][2 * r : 2 * r + 2])
            for r in range(8)
        ]
        np.testing.assert_allclose(placement.rank_loads(self.LOADS[0])[0], expected)
        ids = np.array([[5, 1], [5, -1], [5, 5]], np.int32)
        count, seen, replicas = placement.expert_counts[0], {}, []
        for expert in ids.ravel():  # pair i of expert e goes to its replica (i + e) % count
            i = seen.get(expert, 0)
            seen[expert] = i + 1
            replicas.append(-1 if expert < 0 else placement.expert_replicas[0, expert, (i + expert) % count[expert]])
        self.same(placement.share(ids).ravel(), replicas)
        self.same(placement.share(ids, out=ids).ravel(), replicas)

    def test_moves_lower_the_busiest_rank(self):
        placement = ptowsp.place_experts(np.ones((2, 8), np.float32), replicas=8, ranks=4)
        loads = np.array([[8, 8, 1, 1, 1, 1, 1, 1]] * 2, np.float32)
        placement.replica_experts[0] = range(8)
        before = placement.rank_loads(loads).max(axis=1)
        moved = placement.move(loads, 2)
        after = placement.rank_loads(loads).max(axis=1)
        self.same([m.load_before for m in moved], before)
        self.same([m.load_after for m in moved], after)
        self.assertEqual((before[0], after[0], moved[0].move_count, moved[0].load_mean), (16, 9, 2, 5.5))
        for layer in range(2):
            of = placement.replica_experts[layer]
            self.same(placement.expert_counts[layer], np.bincount(of, minlength=8))
            self.same(placement.expert_replicas[layer, :, 0], [list(of).index(e) for e in range(8)])

    def test_loads_are_looked_at_and_kept(self):
        balance = ptowsp.moe_balance(np.array([4, 0, 2, 2], np.uint32), ranks=2)
        self.assertEqual(
            (balance.total, balance.expert_max, balance.expert_busiest, balance.expert_idle), (8, 4, 0, 1)
        )
        self.assertEqual((balance.expert_ratio, balance.rank_ratio, balance.rank_perfect), (2, 1, 4))
        loads = np.array([8, 4], np.float32)
        ptowsp.moe_history_add(loads, np.array([1, 2], np.uint32), 0.5)
        self.same(loads, [5, 4])

    def test_routes_are_reproducible_and_in_range(self):
        for pattern in ptowsp._PATTERNS.split():
            options = dict(tokens=64, top_k=2, experts=16, ranks=4, seed=9)
            ids = ptowsp.moe_routes(pattern, **options)
            self.same(ids, ptowsp.moe_routes(pattern, **options))
            self.assertTrue(ids.shape == (64, 2) and ids.max() < 16)
            self.assertTrue(pattern == "ragged" or (ids >= 0).all())

    def test_bad_input(self):
        sort, error = ptowsp.moe_sort, ptowsp.PtowspError
        self.refuses(TypeError, "int64", sort, self.IDS.astype(np.int64), 3)
        self.refuses(ValueError, "not contiguous", sort, self.IDS.T, 3)
        self.refuses(ValueError, "shape (8,)", sort, self.IDS.ravel(), 3)
        self.refuses(error, "expert 2", sort, self.IDS, 2)
        self.refuses(error, "", sort, self.IDS, 2, context=ptowsp.Context(2))
        self.refuses(error, "0 experts", sort, self.IDS, 0)
        self.refuses(ValueError, "65537", sort, self.IDS, 65537)
        self.refuses(error, "top_k 0", sort, np.empty((3, 0), np.int32), 3)
        order, made = sort(self.IDS, 3), np.zeros((7, 2), np.float32)
        combine = ptowsp.moe_combine
        self.refuses(ValueError, "made has 6 rows", combine, order.rows, made[:6])
        self.refuses(ValueError, "gates has shape", combine, order.rows, made, np.zeros((4, 1), np.float32))
        self.refuses(ValueError, "overlap", combine, order.rows, made, out=made[:4])
        self.refuses(ValueError, "out has shape", combine, order.rows, made, out=np.zeros((4, 3), np.float32))
        plan = ptowsp.moe_plan
        self.refuses(TypeError, "int32", plan, order.counts.astype(np.int32), lanes=1)
        self.refuses(error, "lane", plan, order.counts, lanes=0)
        self.refuses(ValueError, "offsets has shape", plan, order.counts, order.counts, lanes=1)
        self.refuses(ValueError, "no batch", plan, np.empty((0, 3), np.uint32), lanes=1)
        self.refuses(ValueError, "cost has 'per_row'", plan, order.counts, lanes=1, cost={"per_row": 1})
        self.refuses(TypeError, "cost must be a mapping", plan, order.counts, lanes=1, cost=3)
        self.refuses(
            TypeError, "cost['per_unit'] must be a number", plan, order.counts, lanes=1, cost={"per_unit": "1"}
        )
        self.refuses(error, "cost", plan, order.counts, lanes=1, cost={"per_unit": -1})
        place = ptowsp.place_experts
        self.refuses(TypeError, "float64", place, np.ones(4), replicas=4, ranks=1)
        self.refuses(error, "negative", place, [1, -1], replicas=2, ranks=1)
        self.refuses(error, "load 1", place, [1, float("nan")], replicas=2, ranks=1)
        self.refuses(error, "fewer", place, [1, 1, 1], replicas=2, ranks=1)
        self.refuses(error, "divided", place, [1, 1], replicas=3, ranks=2)
        self.refuses(ValueError, "policy is 'best'", place, [1, 1], replicas=2, ranks=1, policy="best")
        placement = place([1, 1], replicas=2, ranks=1)
        self.refuses(ValueError, "loads has shape", placement.rank_loads, [1, 2, 3])
        self.refuses(ValueError, "layer is 1", placement.share, self.IDS, layer=1)
        self.refuses(error, "expert 2", placement.share, self.IDS)
        placement.expert_replicas[0] = -1
        self.refuses(error, "", placement.share, np.array([[0]], np.int32))
        placement.replica_experts[0, 0] = 9
        self.refuses(error, "expert 9", placement.move, [1, 1], 1)
        placement.replica_experts = placement.replica_experts.astype(np.int64)
        self.refuses(TypeError, "replica_experts has dtype int64", placement.move, [1, 1], 1)
        loads = np.zeros(2, np.float32)
        loads.flags.writeable = False
        self.refuses(ValueError, "read-only", ptowsp.moe_history_add, loads, np.zeros(2, np.uint32), 1)
        self.refuses(error, "decay", ptowsp.moe_history_add, np.zeros(2, np.float32), np.zeros(2, np.uint32), 2)
        self.refuses(ValueError, "pattern is 'x'", ptowsp.moe_routes, "x", tokens=1, top_k=1, experts=1)
        self.refuses(error, "", ptowsp.moe_routes, "spread", tokens=1, top_k=3, experts=2)
        self.refuses(error, "", ptowsp.moe_balance, np.ones(3, np.uint32), ranks=2)


class Prefixes(Case):
    # The figure of section 12, with blocks of 512 tokens.
    BLOCKS = [np.array(ids, np.uint64) for ids in ([7, 3, 1], [9, 5], [7, 3, 8, 2], [4, 3], [7, 3, 8, 6])]
    LENGTHS = [len(ids) * 512 for ids in BLOCKS]

    def test_the_tree_is_that_of_the_figure(self):
        tree = ptowsp.PrefixTree.from_blocks(self.LENGTHS, self.BLOCKS, 512)
        self.same(tree.order, [3, 0, 2, 4, 1])
        self.same(tree.common, [0, 0, 1024, 1536, 0])
        nodes = {(n.kv_begin, n.kv_end): (n.first, n.count) for n in tree.nodes}
        self.assertEqual(nodes, {(0, 1024): (1, 3), (1024, 1536): (2, 2)})
        flat, begin = np.concatenate(self.BLOCKS), np.cumsum([0, *map(len, self.BLOCKS)]).astype(np.uint64)
        self.same(ptowsp.PrefixTree.from_blocks(self.LENGTHS, flat, 512, begin).common, tree.common)
        signed = [ids.astype(np.int64) for ids in self.BLOCKS]
        self.same(ptowsp.PrefixTree.from_blocks(self.LENGTHS, signed, 512).common, tree.common)

    def test_a_given_tree_is_the_same(self):
        u32, none = np.uint32, ptowsp.NO_NODE
        tree = ptowsp.PrefixTree.from_nodes(
            self.LENGTHS, np.array([none, 0], u32), np.array([1024, 512], u32), np.array([0, none, 1, none, 1], u32)
        )
        config = dict(heads=2, group=4, lanes=6)
        plan, other = tree.plan(**config), ptowsp.prefix_plan(self.LENGTHS, self.BLOCKS, 512, **config)
        self.assertEqual((plan.kv_token_reads, plan.shared_count), (other.kv_token_reads, other.shared_count))

    def test_shared_kv_is_read_once_and_gives_the_attention_of_double_precision(self):
        kv, queries = self.LENGTHS, [1] * 5
        step = Attention(kv, queries, 2, 4, False, shared=[(0, 2, 1024), (0, 4, 1024), (2, 4, 1536)])
        plan = ptowsp.prefix_plan(kv, self.BLOCKS, 512, heads=2, group=4, lanes=6)
        plan.check()
        # Without sharing all is read for each head; [7 3] for one of three, and 8 for one of two requests.
        self.assertEqual(plan.flat_kv_token_reads, 2 * sum(kv))
        self.assertIn(plan.kv_token_reads, [2 * (sum(kv) - 2 * 1024), 2 * (sum(kv) - 2 * 1024 - 512)])
        self.assertGreater(len(plan.joins), 0)
        self.assertLess(plan.time, plan.flat_time)
        for how in (serially, on_lanes, by_workers):
            np.testing.assert_allclose(step.run(plan, how), step.expected(), rtol=2e-5, atol=2e-6)
        self.assertIn("5 requests", str(plan))
        self.assertIn("<svg", plan._repr_svg_())

    def test_lengths_may_grow(self):
        tree = ptowsp.PrefixTree.from_blocks(self.LENGTHS, self.BLOCKS, 512)
        grown = [n + 7 for n in self.LENGTHS]
        plan = tree.plan(kv_lengths=grown, heads=1, lanes=2)
        plan.check()
        self.assertEqual(plan.flat_kv_token_reads, sum(grown))
        self.refuses(ptowsp.PtowspError, "", tree.plan, kv_lengths=self.LENGTHS[:2], heads=1, lanes=2)

    def test_bad_input(self):
        plan, error = ptowsp.prefix_plan, ptowsp.PtowspError
        config = dict(heads=1, lanes=2)
        self.refuses(ValueError, "block_ids has 4 requests of 5", plan, self.LENGTHS, self.BLOCKS[:4], 512, **config)
        self.refuses(TypeError, "block_ids[0] has dtype int32", plan, [512], [np.zeros(1, np.int32)], 512, **config)
        self.refuses(error, "block_tokens is 0", plan, self.LENGTHS, self.BLOCKS, 0, **config)
        self.refuses(error, "blocks", plan, [512] * 5, self.BLOCKS, 512, **config)
        self.refuses(error, "same id", plan, [1024], [np.array([5, 5], np.uint64)], 512, **config)
        self.refuses(error, "window", plan, self.LENGTHS, self.BLOCKS, 512, window=5, causal=True, **config)
        flat, begin = np.arange(2, dtype=np.uint64), np.array([0, 9], np.uint64)
        self.refuses(ValueError, "there are 2 block_ids", plan, [1024], flat, 512, begin, **config)
        self.refuses(
            error, "before they begin", plan, [512, 512], flat, 512, np.array([0, 1, 0], np.uint64), **config
        )
        self.refuses(ValueError, "block_begin has shape", plan, [512, 512], flat, 512, begin, **config)
        given, u32 = ptowsp.PrefixTree.from_nodes, np.uint32
        one = np.array([0], u32)
        self.refuses(error, "above itself", given, [512], one, one + 64, one)
        self.refuses(error, "parent 7", given, [512], one + 7, one + 64, one)
        self.refuses(ValueError, "request_nodes has shape", given, [512, 512], one, one, one)
        made = plan(self.LENGTHS, self.BLOCKS, 512, **config)
        nothing = lambda element, lane: None
        self.refuses(ValueError, "join is None", made.run, nothing, nothing)
        self.refuses(TypeError, "made anew", made.update, [1])
        scratch, out = made.scratch(2), np.zeros((1, 2), np.float32)
        join = made.joins[:1].copy()
        join["head"] = 7
        self.refuses(ValueError, "not an element", scratch.join, join[0], out)
        join["position"] = 99
        self.refuses(ValueError, "position is 99", scratch.join, join[0], out)
        self.refuses(ValueError, "2 rows of 1", scratch.join, made.joins[0], np.zeros((2, 2), np.float32))
        unit = made.units[:1].copy()
        unit["request"] = 99
        self.refuses(ValueError, "the segment is 99", made.unit_tokens, unit[0])
        self.refuses(TypeError, "must be an element", made.unit_tokens, 5)
        self.refuses(TypeError, "must be an element", scratch.join, made.merges[0], out)


# -- programs ---------------------------------------------------------------------------------------

WORKLOAD = """module decode
axis batch dynamic
axis chunks ragged
kernel attend(axes 2) vector, 2000 cycles
kernel merge(axes 1) vector, 150 cycles
workload decode
  parallel b in batch
    sequence
      parallel c in chunks[b]
        task attend(b, c)
      task merge(b)
"""

COPY = """module copy
axis rows dynamic
symbol shift
array first i32
axis few sparse
tensor x f32 [?, 4] global
tensor y f32 [4, 4] global
kernel twice(axes 1, in x f32 1 x 4, out y f32 1 x 4) vector, 5 instructions
  %1 = parameter x
  %2 = parameter y
  %3 = const 2
  %4 = mul %1, %3 : f32 1 x 4
  store %2, %4
kernel entry(axes 1) vector, 10 cycles
workload copy
  for_each r in rows
    task twice(r) x = x at (r, 0) y = y at (i64(first[r]) + i64(shift), 0)
workload entries
  parallel e in few
    task entry(e)
"""


class Programs(Case):
    def test_time_on_paper(self):
        # Two lanes take chunks at 0; at 2000 lane 0 takes the merge of request 0, and lane 1 the other chunk of
        # request 1; at 4000 lane 0 merges that.
        program = ptowsp.Program(WORKLOAD, schedule="dispatch work stealing over 2 lanes")
        run = program.time(batch=2, chunks=np.array([1, 2], np.int32))
        self.assertEqual(run.makespan, 4150)
        self.assertEqual((run.task_count, run.busy), (5, 6300))
        self.same(run.lanes["busy_cycles"], [2300, 4000])
        self.same(run.lanes["idle_cycles"], 4150 - run.lanes["busy_cycles"])
        self.assertEqual(sum(run.idle.values()), 2 * 4150 - 6300)
        self.assertEqual(run.kernels["attend"].busy_cycles, 6000)
        self.assertEqual(run.kernels["merge"].task_count, 2)
        bounds = run.bounds
        self.assertEqual((bounds.makespan, bounds.path, bounds.work, bounds.largest), (4150, 2150, {"": 3150}, 3150))
        path = run.critical_path
        self.assertEqual([step.label.split()[0] for step in path][-1], "merge")
        self.assertEqual((path[0].start, path[-1].end), (0, 4150))
        self.same(run.records["end"].max(), 4150)
        # Half of attend: 0, 0, 1000, then a merge.
        self.assertEqual(run.what_if(attend=50), {"attend": 2150})
        self.assertEqual(run.what_if({"merge": 0, "attend": 100}), {"merge": 4000, "attend": 4150})
        self.assertEqual(run.makespan, 4150)
        self.assertIn("4,000 cycles, 96.4 %", run.report())

    def test_new_sizes_need_no_new_program(self):
        run = ptowsp.Program(WORKLOAD, lanes=1).run(batch=1, chunks=[2])
        self.assertEqual(run.time().makespan, 4150)
        self.assertEqual(run.bind(chunks=[3]).time().makespan, 6150)
        self.assertEqual(run.bind({"batch": 2}, chunks=[1, 1]).time(record="none").makespan, 4300)
        self.refuses(ValueError, "record='totals'", lambda: run.idle)
        self.refuses(ValueError, "record='tasks'", lambda: run.critical_path)
        for dtype in (np.int32, np.int64, np.uint32, np.uint64):
            self.assertEqual(run.bind(chunks=np.array([1, 1], dtype)).time().makespan, 4300)

    def test_programs_are_saved_and_say_what_they_are(self):
        program = ptowsp.Program(WORKLOAD, lanes=3)
        self.assertEqual(program.bindings, {"batch": "axis", "chunks": "array"})
        self.assertEqual(program.kernels, [None, "attend", "merge"])
        self.assertIn("over 3 lanes", program.schedule)
        self.assertIn("task attend", str(program))
        self.assertEqual(repr(program), "<Program decode>")
        again = ptowsp.Program(program.saved)
        self.assertEqual(again.time(batch=1, chunks=[3]).makespan, 2150)
        self.refuses(ValueError, "has its workload", ptowsp.Program, program.saved, lanes=2)
        self.refuses(ptowsp.PtowspError, "damaged", ptowsp.Program, program.saved.replace("2000", "2001"))

    def test_plans_are_bound_and_made_anew(self):
        text = """module m
axis kv plan
kernel attend(axes 1, n i64) vector, cycles by a cost function
workload w
  parallel u in kv
    task attend(u) n = i64(kv.kv_len[u])
"""
        program = ptowsp.Program(
            text, schedule="dispatch plan over 4 lanes", costs={"attend": lambda task: task.scalars[0]}
        )
        planner = ptowsp.AttentionPlanner(**AttentionPlans.FIGURE)
        plan = planner.reserve(sequences=4, kv_length=1000)
        plan.update([250, 100, 50])
        run = program.time(kv=plan)
        self.assertEqual(run.makespan, 100)  # each lane has 100 tokens
        plan.update([800])
        self.assertEqual(run.time().makespan, 200)
        chunks = ptowsp.chunk_plan([300], 1, chunk=100)
        self.refuses(ptowsp.PtowspError, "", program.time, kv=chunks)  # it has no lanes
        free = ptowsp.Program(text, lanes=1, costs={"attend": lambda task: task.scalars[0]})
        self.assertEqual(free.time(kv=chunks).makespan, 300)
        moe = ptowsp.moe_plan(np.array([3, 4], np.uint32), lanes=2)
        self.assertEqual(free.time(kv=moe).makespan, 7)
        self.refuses(TypeError, "kv must be a plan", free.time, kv=[1])
        prefix = ptowsp.prefix_plan([600, 600], [[1], [1]], 512, heads=1, lanes=2)
        self.refuses(TypeError, "not a PrefixPlan", free.time, kv=prefix)  # programs have no joins

    def test_cost_functions_see_tasks_and_fail(self):
        text = """module m
axis n dynamic
tensor x f32 [?, 4] global
kernel k(axes 1, in x f32 2 x 4, s i64) vector, cycles by a cost function
workload w
  for_each i in n
    task k(i - 1) x = x at (i * 2, 0) s = i - 2
"""
        tasks = []
        program = ptowsp.Program(text, costs={"k": lambda task: tasks.append(task) or 7})
        self.assertEqual(program.time(n=2, x=(3, 4)).makespan, 14)
        first = ptowsp.Task((-1,), ((2, 4),), (2**64 - 2,))
        self.assertIn(first, tasks)
        self.assertIn(ptowsp.Task((0,), ((1, 4),), (2**64 - 1,)), tasks)
        for value, kind in (("7", TypeError), (-1, ValueError), (2**63, ValueError), (None, TypeError)):
            program = ptowsp.Program(text, costs={"k": lambda task: value})
            self.refuses(kind, "the cost of k", program.time, n=1, x=(3, 4))
        program = ptowsp.Program(text, costs={"k": lambda task: 1 / 0})
        run = program.run(n=0, x=(3, 4))
        self.assertEqual(run.time().makespan, 0)
        self.refuses(ZeroDivisionError, "division", run.bind(n=1).time)
        self.refuses(ValueError, "there are no results", lambda: run.makespan)
        divisor = [1]
        run = ptowsp.Program(text, costs={"k": lambda task: 7 // divisor[0]}).time(n=1, x=(3, 4))
        divisor[0] = 0
        self.refuses(ZeroDivisionError, "division", run.what_if, k=50)
        self.refuses(ValueError, "there are no results", lambda: run.makespan)
        divisor[0] = 7
        self.assertEqual(run.time().makespan, 1)
        self.refuses(TypeError, "costs['k'] must be callable", ptowsp.Program, text, costs={"k": 5})

    def test_tile_kernels_run_on_arrays_in_place(self):
        program = ptowsp.Program(COPY, workload="copy")
        self.assertEqual(program.bindings["few"], "axis")
        x, wide = np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros((4, 8), np.float32)
        y = wide[:, ::2]
        run = program.run(rows=3, first=np.array([0, 2, 1], np.int32), shift=1, x=x, y=y).execute()
        self.same(y, [[0] * 4, [0, 2, 4, 6], [16, 18, 20, 22], [8, 10, 12, 14]])
        self.same(wide[:, 1::2], 0)
        self.assertEqual(run.task_count, 3)
        self.refuses(ValueError, "time() comes first", run.what_if, twice=50)
        run.bind(shift=-1, first=[3, 2, 1], y=np.ascontiguousarray(y)).execute(lanes=1)
        backwards = x[::-1]
        out = np.zeros((4, 4), np.float32)
        program.run(rows=3, first=[0, 1, 2], shift=0, x=backwards, y=out).execute()
        self.same(out[:3], 2 * backwards)

    def test_sparse_axes_take_what_scipy_has(self):
        class Matrix:
            indptr, indices = np.array([0, 2, 3], np.int32), np.array([1, 5, 0], np.int32)

        program = ptowsp.Program(COPY)
        self.assertEqual(program.time(few=Matrix()).makespan, 30)
        self.assertEqual(program.time(few=([0, 2], [1, 5])).makespan, 20)
        self.refuses(TypeError, "(indptr, indices)", program.time, few=5)
        self.refuses(ValueError, "few.indptr is empty", program.time, few=([], []))
        self.refuses(
            TypeError,
            "few.indices has dtype int64",
            program.time,
            few=(Matrix.indptr, Matrix.indices.astype(np.int64)),
        )
        self.refuses(ptowsp.PtowspError, "", program.time, few=([0, 3], [1, 5]))

    def test_a_deadlock_is_an_error_that_says_how_to_break_it(self):
        text = """module m
kernel k(axes 0) vector, 5 cycles
workload w
  pipeline p
    channel a depth 0 latency 0
    channel b depth 0 latency 0
    process one consumes b produces a
      receive x from b
        send a(x)
    process two consumes a produces b
      receive y from a
        send b(y)
"""
        error = self.refuses(ptowsp.PtowspError, "cycle", ptowsp.Program(text).time)
        self.assertEqual(error.status, ptowsp.Status.STUCK)
        self.assertIn("process", error.text.split("\n", 1)[1])

    def test_texts_and_pictures(self):
        run = ptowsp.Program(WORKLOAD, lanes=2).time(batch=1, chunks=[2])
        self.assertIn("module decode: 2150 cycles", str(run))
        self.assertEqual(repr(run), "<Run: 2150 cycles>")
        self.assertTrue(run.svg(title="a <b>", width=400, theme="dark").startswith("<svg"))
        self.assertIn("a &lt;b&gt;", run.svg(title="a <b>"))
        self.assertIn("<html", run.report("html", title="mine"))
        self.assertIn('"makespan', run.report("json"))
        self.assertIn("traceEvents", run.export("chrome"))
        self.assertIsInstance(run.export("perfetto"), bytes)
        self.assertEqual(len(run.export("csv").splitlines()), 1 + 3)
        self.assertIn("digraph", run.export("dot"))
        self.assertIn("compile", run.decisions())
        self.assertIn("base64", run._repr_html_())
        self.assertEqual(ptowsp.Program(WORKLOAD).run()._repr_html_(), "&lt;Run: without results&gt;")
        self.refuses(ValueError, "format is 'png'", run.export, "png")
        self.refuses(ValueError, "theme is 'pink'", run.svg, theme="pink")
        self.refuses(TypeError, "title must be a string", run.svg, title=5)
        self.refuses(TypeError, "colour", run.svg, colour=5)
        self.refuses(ptowsp.PtowspError, "width", run.svg, width=5)
        self.refuses(ValueError, "width is -1", run.svg, width=-1)

    def test_bad_texts_name_their_line(self):
        program, error = ptowsp.Program, ptowsp.PtowspError
        self.assertEqual(self.refuses(error, "2:1: ", program, "module x\nnonsense\n").index, 2)
        self.refuses(error, "", program, "")
        self.refuses(TypeError, "text must be a string", program, b"module x")
        self.refuses(
            error,
            "schedule, line 2: there is no such window",
            program,
            WORKLOAD,
            schedule="issue dataflow\nwindow wide at 4 tasks",
        )
        self.refuses(error, "", program, WORKLOAD, workload="other")
        self.refuses(error, "", program, WORKLOAD, workload='de"code')
        self.refuses(TypeError, "workload must be a string", program, WORKLOAD, workload=5)
        self.refuses(TypeError, "schedule must be a string", program, WORKLOAD, schedule=5)
        self.refuses(
            ValueError, "lanes are those of the schedule", program, WORKLOAD, schedule="issue in order", lanes=2
        )
        self.refuses(error, "lane", program, WORKLOAD, lanes=10**6)
        self.refuses(ValueError, "default_cycles is 0", program, WORKLOAD, default_cycles=0)
        self.refuses(ptowsp.PtowspError, "", program, WORKLOAD + "\0")

    def test_bad_bindings(self):
        run = ptowsp.Program(WORKLOAD).run()
        self.refuses(ptowsp.PtowspError, "chunks is not bound", run.bind(batch=1).time)
        self.refuses(ValueError, "no 'batc' to bind; it has batch, chunks", run.bind, batc=1)
        self.refuses(TypeError, "values must be a mapping", run.bind, 5)
        self.refuses(TypeError, "batch must be an integer", run.bind, batch=1.5)
        self.refuses(ptowsp.PtowspError, "size -1 of axis batch is negative", run.bind, batch=-1)
        self.refuses(ValueError, "batch is 18446744073709551616", run.bind, batch=2**64)
        self.refuses(TypeError, "chunks has dtype float64", run.bind, chunks=np.ones(3))
        self.refuses(TypeError, "chunks has dtype >i4", run.bind, chunks=np.ones(3, ">i4"))
        self.refuses(ValueError, "not contiguous", run.bind, chunks=np.ones(6, np.int32)[::2])
        self.refuses(ValueError, "chunks has shape", run.bind, chunks=np.ones((2, 2), np.int32))
        self.refuses(TypeError, "chunks has dtype None", run.bind, chunks=3)
        self.refuses(ptowsp.PtowspError, "-5", run.bind(batch=1, chunks=[-5]).time)
        self.refuses(ValueError, "model is 'a9'", run.time, model="a9")
        self.refuses(ValueError, "time_limit is -1", run.time, time_limit=-1)
        self.refuses(ValueError, "no kernel 'x'", run.bind(chunks=[1]).time().what_if, x=5)
        self.refuses(ptowsp.PtowspError, "1001", run.what_if, attend=1001)
        self.assertEqual((run.makespan, len(run.records)), (2150, 2))
        self.refuses(ValueError, "attend is -1", run.what_if, attend=-1)
        self.assertEqual(run.time().makespan, 2150)
        self.refuses(TypeError, "program must be a Program", ptowsp.Run, None)

    def test_bad_tensors(self):
        run = ptowsp.Program(COPY, workload="copy").run(rows=1, first=[0], shift=0)
        good = np.zeros((4, 4), np.float32)
        self.refuses(ValueError, "x has no array", run.execute)
        self.refuses(ValueError, "x has no array", run.bind(x=(4, 4)).execute)
        self.refuses(TypeError, "x has dtype float64", run.bind, x=good.astype(float))
        self.refuses(ValueError, "x has 1 dimensions", run.bind, x=good[0])
        self.refuses(TypeError, "x must be an array or a shape", run.bind, x=5)
        self.refuses(TypeError, "a size of x must be an integer", run.bind, x=(4, 4.5))
        self.refuses(ptowsp.PtowspError, "", run.bind, x=good[:, :3].copy())
        self.refuses(ValueError, "strides that are 0", run.bind, x=np.broadcast_to(np.float32(1), (4, 4)))
        uneven = np.lib.stride_tricks.as_strided(good, (2, 4), (18, 4))
        self.refuses(ValueError, "no multiples", run.bind, x=uneven)
        fixed = good.copy()
        fixed.flags.writeable = False
        self.refuses(ValueError, "y is read-only", run.bind, y=fixed)
        run.bind(x=fixed, y=good).execute()
        self.refuses(ptowsp.PtowspError, "", run.bind(first=[9]).execute)
        self.refuses(TypeError, "first has dtype int64", run.bind, first=np.zeros(1, np.int64))
        self.refuses(ptowsp.PtowspError, "", run.bind(first=[0]).execute, lanes=5)


# -- arrays in general ------------------------------------------------------------------------------


class Arrays(Case):
    def refuses_lengths(self, kind, text, value):
        self.refuses(kind, text, ptowsp.attention_plan, value, heads=1, lanes=1)

    def test_lengths_of_every_wrong_kind(self):
        for dtype in (np.int64, np.uint32, np.int16, np.float32, bool, complex, ">i4", object, "S4", "datetime64[s]"):
            self.refuses_lengths(TypeError, "it must be int32", np.ones(3, np.int8).astype(dtype))
        self.refuses_lengths(TypeError, "not NoneType", None)
        self.refuses_lengths(TypeError, "not str", "123")
        self.refuses_lengths(TypeError, "not int", 5)
        self.refuses_lengths(TypeError, "it must be int32", {"a": 1})
        self.refuses_lengths(TypeError, "not float64", [1.0, 2.0])
        self.refuses_lengths(TypeError, "not bool", [True])
        self.refuses_lengths(TypeError, "not object", [None, 1])
        self.refuses_lengths(ValueError, "has 2147483648, which int32 cannot hold", [1, 2**31])
        self.refuses_lengths(ValueError, "shape (1, 1)", [[1]])
        self.refuses_lengths(ValueError, "", [[1], [2, 3]])
        self.refuses_lengths(ValueError, "shape ()", np.array(3, np.int32))
        self.refuses_lengths(ValueError, "shape (2, 2)", np.ones((2, 2), np.int32))
        self.refuses_lengths(ValueError, "not contiguous", np.ones(6, np.int32)[::2])
        self.refuses_lengths(ValueError, "not contiguous", np.ones(6, np.int32)[::-1])
        self.refuses_lengths(ValueError, "not contiguous", np.frombuffer(bytes(9), np.uint8)[1:].view(np.int32))
        error = ptowsp.PtowspError
        self.refuses_lengths(error, "sequence 1 has the negative length -7", np.array([1, -7], np.int32))
        self.refuses(ValueError, "query_lengths has shape (1,)", ptowsp.attention_plan, [1, 2], [1], heads=1, lanes=1)
        self.refuses(error, "sequence 0 has the negative query", ptowsp.attention_plan, [1], [-1], heads=1, lanes=1)
        self.refuses(error, "5 queries for 3", ptowsp.attention_plan, [3], [5], heads=1, lanes=1, causal=True)

    def test_buffers_are_as_good_as_arrays(self):
        import array

        for value in (array.array("i", [5, 6]), memoryview(array.array("i", [5, 6])), (5, 6), range(5, 7)):
            self.same(ptowsp.attention_plan(value, heads=1, lanes=1).units["kv_len"], [5, 6])
        frozen = np.array([5, 6], np.int32)
        frozen.flags.writeable = False
        self.same(ptowsp.attention_plan(frozen, heads=1, lanes=1).units["kv_len"], [5, 6])

    def test_configurations_of_every_wrong_kind(self):
        plan, error = ptowsp.attention_plan, ptowsp.PtowspError
        self.refuses(TypeError, "lanes", plan, [1], heads=1)
        self.refuses(error, "lane_count 0", plan, [1], heads=1, lanes=0)
        self.refuses(error, "lane_count 65537", plan, [1], heads=1, lanes=65537)
        self.refuses(ValueError, "lanes is 4294967296", plan, [1], heads=1, lanes=2**32)
        self.refuses(ValueError, "window is -1", plan, [1], heads=1, lanes=1, window=-1)
        self.refuses(TypeError, "group must be an integer, not float", plan, [1], heads=1, lanes=1, group=2.0)
        contradiction = "query_head_count 32 is not kv_head_count * group, which is 128"
        heads = dict(heads=32, group=4, query_heads=32)
        self.refuses(ptowsp.PtowspError, contradiction, plan, [1], lanes=1, **heads)
        self.assertEqual(plan([9], heads=8, query_heads=32, lanes=1).group, 4)
        self.refuses(
            ValueError, "mode is 'fast'; it is one of balanced, invariant", plan, [1], heads=1, lanes=1, mode="fast"
        )
        self.refuses(TypeError, "mode must be a string", plan, [1], heads=1, lanes=1, mode=1)
        self.refuses(TypeError, "unexpected keyword", plan, [1], heads=1, lanes=1, speed=1)
        self.refuses(ValueError, "lane_speeds has shape", plan, [1], heads=1, lanes=2, lane_speeds=[1])
        self.refuses(error, "speeds", plan, [1], heads=1, lanes=2, lane_speeds=[0, 0])
        self.refuses(error, "page_size", plan, [1], heads=1, lanes=1, mode="invariant", chunk=100, page_size=64)
        self.refuses(error, "cost", plan, [1], heads=1, lanes=1, cost={"per_unit": float("nan")})
        planner = ptowsp.AttentionPlanner(heads=1, lanes=1)
        self.refuses(ValueError, "kv_length is -1", planner.reserve, sequences=1, kv_length=-1)
        self.refuses(ValueError, "lane is 1", planner.plan([1]).lane_units, 1)
        self.refuses(ValueError, "lane is -1", planner.plan([1]).lane_units, -1)
        self.refuses(ValueError, "worker is 2", planner.plan([1]).worker_units, 2, 2)

    def test_outputs_of_every_wrong_kind(self):
        plan = ptowsp.attention_plan([5], heads=1, lanes=1)
        good = plan.flashinfer_arrays()
        self.refuses(TypeError, "FlashInferArrays", plan.flashinfer_arrays, out=good[0])
        self.refuses(
            ValueError, "o_indptr has shape", plan.flashinfer_arrays, out=(good[0], good[1], good[0], good[3])
        )
        self.refuses(TypeError, "int64", plan.flashinfer_arrays, out=(good[0].astype(np.int64), *good[1:]))
        self.refuses(TypeError, "must be a numpy array, not list", plan.flashinfer_arrays, out=([0], *good[1:]))
        good[0].flags.writeable = False
        self.refuses(ValueError, "request_indices is read-only", plan.flashinfer_arrays, out=good)
        for view in (plan.units, plan.merges, plan.unit_begin, plan.merge_begin, plan.lane_costs, plan.all_units):
            self.assertFalse(view.flags.writeable)


class Loading(Case):
    def python(self, library, code="import ptowsp"):
        environment = {**os.environ, "PTOWSP_LIBRARY": library}
        return subprocess.run([sys.executable, "-B", "-c", code], env=environment, capture_output=True, text=True)

    def test_a_library_that_is_none_is_an_import_error(self):
        result = self.python("/nowhere/libptowsp.so")
        self.assertIn("ImportError: ptowsp finds no libptowsp.so", result.stderr)
        self.assertIn("/nowhere/libptowsp.so", result.stderr)
        result = self.python(os.path.join(ROOT, "ptowsp.h"))
        self.assertIn("ImportError: ptowsp finds no", result.stderr)
        with tempfile.TemporaryDirectory() as folder:
            source, library = os.path.join(folder, "other.c"), os.path.join(folder, "libptowsp.so")
            with open(source, "w", encoding="utf-8") as file:
                file.write(
                    'const char *ptowsp_version(void);\nconst char *ptowsp_version(void) { return "0.20.0"; }\n'
                )
            subprocess.run(
                [*os.environ.get("CC", "cc").split(), "-shared", "-fPIC", source, "-o", library], check=True
            )
            self.assertIn("libptowsp.so is ptowsp 0.20.0; this file is for 0.2", self.python(library).stderr)
        result = self.python("libc.so.6")
        self.assertIn("ImportError: libc.so.6 has no ptowsp_", result.stderr)

    def test_leaving_with_everything_alive_is_quiet(self):
        code = (
            "import ptowsp, threading; c = ptowsp.Context(3); p = ptowsp.Program('module m\\nkernel k(axes 0) vector, 5"
            " cycles\\nworkload w\\n  task k()\\n', context=c); r = p.time(); plan = ptowsp.attention_plan([64] * 9,"
            " heads=1, lanes=3); j = plan.job(lambda u, l: None); j.run(c); print(r.makespan)"
        )
        result = self.python(os.environ.get("PTOWSP_LIBRARY", ""), code)
        self.assertEqual((result.stdout, result.stderr, result.returncode), ("5\n", "", 0))


class Readme(Case):
    def test_its_programs_run(self):
        programs = re.findall(r"```python\n(.*?)```", read("python", "README.md"), re.S)
        printed = []
        names = {"kv_lengths": [250, 100, 50], "ptowsp": ptowsp, "print": lambda *values: printed.append(values)}
        for program in programs:
            exec(program, names)
        # 22 chunks and 4 merges are 44,600 cycles on 8 lanes; the longest chain is a chunk and a merge.
        self.assertEqual(printed[-1][1], 5575)
        self.assertGreaterEqual(printed[-1][0], 5575)
        self.assertEqual(len(programs), 2)


class Examples(Case):
    def says(self, name, lines, *arguments):
        """The example ends well, and prints lines that match."""
        path = os.path.join(ROOT, "examples", "python", name)
        result = subprocess.run([sys.executable, "-B", path, *arguments], capture_output=True, text=True)
        self.assertEqual((result.stderr, result.returncode), ("", 0))
        self.assertRegex(result.stdout, "^" + "\\n".join(lines) + "\\n$")

    def test_each_is_tested(self):
        there = {name for name in os.listdir(os.path.join(ROOT, "examples", "python")) if name.endswith(".py")}
        tested = set(re.findall(r'says\(\s*"(\w+\.py)"', read("tests", "packaging", "python_test.py")))
        self.assertEqual(there, tested)

    def test_attention(self):
        self.says("attention.py", [r"\d+ units, \d+ merges: \d+\.\d ms, and by numpy \d+\.\d ms"])

    def test_context_parallel(self):
        ratio = "largest cost of a rank / mean"
        self.says("context_parallel.py", [rf"tokens in turn: {ratio} 1\.0\d", rf"tokens in blocks: {ratio} 1\.[4-7]\d"])

    def test_plan_batch(self):
        unit = r"lane 5: request \d, head \d, tokens \d+ to \d+"
        self.says("plan_batch.py", [unit, rf"({unit}\n)*\d+ units, \d+ merges, largest lane 1\.0\d\d of the mean"])

    def test_flashinfer_arrays(self):
        self.says(
            "flashinfer_arrays.py", [r"\d+ units of 24 tiles; merge_indptr \[0 .*", r"\d+ units of \d+ tiles; .*"]
        )

    def test_serving_what_if(self):
        with tempfile.TemporaryDirectory() as folder:
            self.says(
                "serving_what_if.py",
                [
                    r"8 lanes: \d+ cycles, \d+ at least",
                    r"24 lanes: \d+ cycles, \d+ at least",
                    r"with attend at 50 %: \d+ cycles",
                    r"with feed_forward at 50 %: \d+ cycles",
                    r"the last task: feed_forward s=\d+, on lane \d+ from \d+ to \d+",
                ],
                folder,
            )
            self.assertEqual(sorted(os.listdir(folder)), ["step.html", "step.svg"])

    def test_expert_placement(self):
        self.says(
            "expert_placement.py",
            [
                r"busiest rank over mean: [2-9]\.\d\d without replicas, 1\.0\d with 16",
                r"loads drifted: \d+ tokens on the busiest rank, \d+ after \d+ moves \(mean 1536\)",  # 4096 * 6 / 16
                r"\d+ units on 132 lanes, largest lane 1\.0\d\d of the mean",
            ],
        )


if __name__ == "__main__":
    print(f"seed {SEED}")
    unittest.main()
