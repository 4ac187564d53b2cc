# A stand-in for PTO Runtime's scene tests: compiles the sources that a test names against the headers
# in ../include, runs the orchestration, and compares. From the environment:
#
#     STAND_IN_OUTPUTS  where dumps go        STAND_IN_SHIM   the folder of ptoisa_shim.h
#     STAND_IN_SEEDS    orders of tasks, one run each, in a process and a folder of its own
#     STAND_IN_ERROR    the error that each run ends with (0)         CXX, STAND_IN_CFLAGS
#     STAND_IN_REUSE    what is compiled is not compiled again
#     STAND_IN_RINGS    ring_task_window, ring_heap, ring_dep_pool as JSON, in place of the test's

import ctypes
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

HEADERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "include")


def scene_test(level, runtime):
    assert level == 2 and runtime in ("tensormap_and_ringbuffer", "host_build_graph")
    return lambda test: test


class TensorArg:
    def __init__(self, name, tensor):
        self.name, self.tensor = name, tensor


class TaskArgsBuilder:
    def __init__(self, *args):
        self.names = [arg.name for arg in args]
        assert len(self.names) <= 256
        for arg in args:
            assert arg.name.isidentifier() and not hasattr(self, arg.name)
            setattr(self, arg.name, arg.tensor)


class Run(ctypes.Structure):
    U64 = ctypes.c_uint64
    _fields_ = [
        ("arg_count", U64), ("addresses", ctypes.POINTER(U64)), ("sizes", ctypes.POINTER(U64)),
        ("kernel_count", U64), ("kernels", ctypes.POINTER(ctypes.c_void_p)), ("seed", U64),
        ("window", U64 * 4), ("heap", U64 * 4), ("pool", U64 * 4), ("directory", ctypes.c_char_p),
    ]  # fmt: skip


def library(name, source, here, options):
    out = os.path.join(os.environ["STAND_IN_OUTPUTS"], name + ".so")
    if os.environ.get("STAND_IN_REUSE") and os.path.exists(out):
        return out
    flags = os.environ.get("STAND_IN_CFLAGS", "-O0").split()
    command = os.environ.get("CXX", "c++").split() + ["-std=c++17", "-Wall", "-Wextra", "-fPIC", "-shared"]
    command += flags + ["-I" + HEADERS] + options + ["-o", out, os.path.join(here, source), "-pthread"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode or done.stderr:
        sys.exit("%s\n%s" % (" ".join(command), done.stderr[:4000]))
    return out


DTYPES = "FLOAT32 FLOAT16 INT32 INT16 INT8 UINT8 BFLOAT16 INT64 UINT64 UINT16 UINT32 BOOL".split()
SIZES = 4, 2, 4, 2, 1, 1, 2, 8, 8, 2, 4, 1


def dump_deps(directory, tasks):
    deps = {"tasks": [], "tensors": {}, "edges": []}
    for task in tasks:
        args = []
        for kind, dtype, address, size, offset, *dims in task["args"]:
            tensor = {
                "tensor_id": str((address * 31 + size) * 16 + dtype & 2**64 - 1), "buffer_addr": str(address),
                "version": 0, "dtype": DTYPES[dtype], "buffer_numel": str(size // SIZES[dtype]),
            }  # fmt: skip
            if not task["is_alloc"]:
                deps["tensors"][int(tensor["tensor_id"])] = tensor
            args.append({
                "idx": len(args), "type": ("INPUT", "OUTPUT", "INOUT")[kind], "tensor_id": tensor["tensor_id"],
                "dtype": tensor["dtype"], "shape": dims[::2], "start_offset": str(offset), "strides": dims[1::2],
            })  # fmt: skip
        if not task["is_alloc"]:
            deps["tasks"].append({
                "task_id": str(task["id"]), "scope": "manual", "early_dispatch": False,
                "kernel_ids": task["kernels"], "block_num": task["blocks"], "args": args,
            })  # fmt: skip
        for other in task["after"]:
            edge = {"pred": str(other), "succ": str(task["id"]), "arg": -1, "source": "explicit"}
            deps["edges"].append({**edge, "flags": ["wait", "retain"]})
    deps["tensors"] = [deps["tensors"][number] for number in sorted(deps["tensors"])]
    with open(os.path.join(directory, "deps.json"), "w", encoding="utf-8") as file:
        json.dump(deps, file, separators=(",", ":"))


# One cube and two vector cores, of which one at a time runs.
def dump_swimlane(directory, tasks):
    metadata = {"clock_freq_hz": 50000000, "num_cores": 3, "core_types": ["aic", "aiv", "aiv"]}
    rows = [
        [core, task["id"], 1, task["start"] + 1, task["start"] + 100, 0]
        for task in tasks
        if task["is_done"] and not task["is_skipped"]
        for core in range(3)
        if task["kernels"][core] >= 0
    ]
    records = {"chip_swimlane_level": 4, "metadata": {**metadata, "core_to_thread": [0, 0, 0]}, "aicore_tasks": rows}
    with open(os.path.join(directory, "chip_swimlane_records.json"), "w", encoding="utf-8") as file:
        json.dump(records, file)


def dump_scopes(directory, scopes, rings, code):
    names = "depth ring task_window_start task_window_end heap_start heap_end dep_pool_start dep_pool_end".split()
    total = 2 * sum(scope[0] == "begin" for scope in scopes)
    head = {
        "version": 6, "fatal": code != 0, "dropped": 0, "total": total, "task_window_max": rings["ring_task_window"],
        "heap_max": rings["ring_heap"], "dep_pool_max": rings["ring_dep_pool"], "tensormap_max": 65536,
    }  # fmt: skip
    with open(os.path.join(directory, "scope_stats.jsonl"), "w", encoding="utf-8") as file:
        print(json.dumps(head), file=file)
        for phase, *counters in scopes:
            line = {"site": "(unknown):0", "phase": phase, **dict(zip(names, map(int, counters))), "tensormap": 0}
            print(json.dumps(line), file=file)


# The dumps of the runtime, from the trace that the header has left.
def dump(directory, rings, code):
    tasks, scopes = [], []
    with open(os.path.join(directory, "trace"), encoding="utf-8") as file:
        for what, *words in map(str.split, file):
            if what == "scope":
                scopes.append(words)
                continue
            numbers = list(map(int, words))
            if what == "task":
                names = "id", "start", "blocks", "is_alloc", "is_done", "has_predicate", "is_skipped"
                tasks.append(dict(zip(names, numbers[:2] + numbers[5:]), kernels=numbers[2:5], args=[], after=[]))
            elif what == "arg":
                tasks[-1]["args"].append(numbers)
            else:
                tasks[-1]["after"] += numbers
    dump_deps(directory, tasks)
    dump_swimlane(directory, tasks)
    dump_scopes(directory, scopes, rings, code)
    with open(os.path.join(directory, "predicates"), "w", encoding="utf-8") as file:
        counts = [sum(task[name] for task in tasks) for name in ("has_predicate", "is_skipped")]
        print("%d tasks with a predicate, %d skipped" % tuple(counts), file=file)


class SceneTestCase:
    @classmethod
    def build(cls, here):
        orchestration, kernels = cls.CALLABLE["orchestration"], cls.CALLABLE["incores"]
        assert orchestration["function_name"] == "aicpu_orchestration_entry"
        with ThreadPoolExecutor(2) as pool:
            made = [pool.submit(library, "orchestration", orchestration["source"], here, [])]
            for kernel in kernels:
                options = ["-D__DAV_CUBE__" if kernel["core_type"] == "aic" else "-D__DAV_VEC__"]
                options += ["-I" + os.path.join(here, folder) for folder in kernel["extra_include_dirs"]]
                options += ["-I" + os.environ["STAND_IN_SHIM"]]
                made.append(pool.submit(library, "kernel_%d" % kernel["func_id"], kernel["source"], here, options))
            return [one.result() for one in made]

    @classmethod
    def run_seeds(cls, case, libraries):
        for seed in os.environ.get("STAND_IN_SEEDS", "0 1 2").split():
            child = os.fork()
            if child == 0:
                directory = os.path.join(os.environ["STAND_IN_OUTPUTS"], "seed" + seed)
                os.makedirs(directory, exist_ok=True)
                code = cls.run_case(case, libraries, int(seed), directory)
                sys.stdout.flush()
                os._exit(code)
            if os.waitpid(child, 0)[1] != 0:
                sys.exit("%s %s: seed %s failed" % (cls.__name__, case["name"], seed))

    @classmethod
    def run_case(cls, case, libraries, seed, directory):
        try:
            cls.run_checked(case, libraries, seed, directory)
        except (AssertionError, RuntimeError) as error:
            print("%s: %s" % (type(error).__name__, error))
            return 1
        return 0

    @classmethod
    def run_checked(cls, case, libraries, seed, directory):
        kernels = cls.CALLABLE["incores"]
        assert [kernel["func_id"] for kernel in kernels] == list(range(len(kernels)))
        test = cls()
        args, golden = test.generate_args(case["params"]), test.generate_args(case["params"])
        test.compute_golden(golden, case["params"])
        tensors = [getattr(args, name) for name in args.names]
        assert len(cls.CALLABLE["orchestration"]["signature"]) == len(tensors)
        blocks = [(ctypes.c_uint64 * (len(t.data) // 8 + 1)).from_buffer_copy(bytes(t.data) + bytes(8)) for t in tensors]
        entries = [ctypes.CDLL(path, os.RTLD_LOCAL | os.RTLD_NOW).kernel_entry for path in libraries[1:]]
        rings = json.loads(os.environ["STAND_IN_RINGS"]) if "STAND_IN_RINGS" in os.environ else case["config"]["runtime_env"]
        run = Run()
        run.arg_count, run.kernel_count = len(tensors), len(entries)
        run.addresses = (ctypes.c_uint64 * len(tensors))(*[ctypes.addressof(block) for block in blocks])
        run.sizes = (ctypes.c_uint64 * len(tensors))(*[len(t.data) for t in tensors])
        run.kernels = (ctypes.c_void_p * len(entries))(*[ctypes.cast(e, ctypes.c_void_p).value for e in entries])
        run.seed = seed
        run.window, run.heap, run.pool = [
            (ctypes.c_uint64 * 4)(*rings[name]) for name in ("ring_task_window", "ring_heap", "ring_dep_pool")
        ]
        for window in rings["ring_task_window"]:
            assert window >= 4 and window & (window - 1) == 0
        run.directory = directory.encode()
        names = {str(kernel["func_id"]): kernel["name"] for kernel in kernels}
        with open(os.path.join(directory, "name_map.json"), "w", encoding="utf-8") as file:
            json.dump({"level": 2, "callable_id_to_name": names}, file)
        orchestration = ctypes.CDLL(libraries[0], os.RTLD_LOCAL | os.RTLD_NOW)
        orchestration.stand_in_text.restype = ctypes.c_char_p
        code = orchestration.stand_in_run(ctypes.byref(run))
        dump(directory, rings, code)
        if code != int(os.environ.get("STAND_IN_ERROR", "0")):
            raise RuntimeError("error %d: %s" % (code, orchestration.stand_in_text().decode()))
        if code:
            print("error %d: %s" % (code, orchestration.stand_in_text().decode()))
            return
        directions = cls.CALLABLE["orchestration"]["signature"]
        for tensor, block, direction in zip(tensors, blocks, directions):
            after = bytes(block)[: len(tensor.data)]
            assert direction.name != "IN" or after == bytes(tensor.data), "an input was written"
            tensor.data[:] = after
        test.TOLERANCE = 0  # the shim's bytes are those of the library
        test.compare_outputs(args, golden, args.names, case["params"])

    @classmethod
    def run_module(cls, name):
        module = sys.modules[name]
        here = os.path.dirname(os.path.abspath(module.__file__))
        platform = sys.argv[sys.argv.index("-p") + 1]
        for test in vars(module).values():
            if isinstance(test, type) and issubclass(test, SceneTestCase) and test is not SceneTestCase:
                libraries = test.build(here)
                for case in test.CASES:
                    assert platform in case["platforms"]
                    test.run_seeds(case, libraries)
                    print("%s %s: passed" % (test.__name__, case["name"]))
