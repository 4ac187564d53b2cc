"""ptowsp for Python: plans of LLM serving steps over numpy arrays, and simulated time of workloads.

    import ptowsp
    plan = ptowsp.attention_plan(kv_lengths, heads=8, group=4, lanes=132, page_size=16)
    for unit in plan.lane_units(0):
        print(unit.request, unit.head, unit.kv_start, unit.kv_len)

One file over the shared library, by ctypes. ptowsp.h is the manual: a class or function here says what it
adds to, or leaves out of, the section that it names.

Arrays    Inputs are C-contiguous numpy arrays of exactly the stated dtype, and are not copied; whatever
          numpy.asarray takes without copying (CPU tensors, buffers) is as good. Arrays of an AttendJob may be
          strided. Lists and tuples of numbers are converted. Results are numpy arrays; those of a plan are
          read-only views that keep its memory alive.
Errors    A wrong type or dtype is a TypeError. A wrong shape, order or range, or a read-only output, is a
          ValueError. What the library refuses is a PtowspError with its status, index and text.
Threads   Planning holds the GIL; running and simulating release it. A Context, and what is made from it, does one
          thing at a time: a call from another thread meanwhile is a PtowspError (BUSY). Without a context, work
          is done on the calling thread.
Library   PTOWSP_LIBRARY names the shared library. Without it, libptowsp.so is looked for beside this file, in the
          lib folder of the Python environment, and then where the system looks.
"""

import base64
import collections
import contextlib
import ctypes
import enum
import html
import itertools
import math
import operator
import os
import sys
import threading
import typing
import weakref

import numpy as np

# -- structures -------------------------------------------------------------------------------------
#
# Fields in the order of ptowsp.h; tests/packaging/python_test.py compares every size and offset with the C
# compiler's, and every signature below with the header's.

_C_TYPES = {
    "u8": ctypes.c_uint8,
    "u16": ctypes.c_uint16,
    "u32": ctypes.c_uint32,
    "u64": ctypes.c_uint64,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
    "bool": ctypes.c_bool,
    "size": ctypes.c_size_t,
    "ptr": ctypes.c_void_p,
    "str": ctypes.c_char_p,
}


def _struct(name, text):
    """A ctypes structure of ptowsp_<name>: "type field field[count]; type field"."""
    fields = []
    for part in text.split(";"):
        kind, *names = part.split()
        for field in names:
            field, _, count = field.rstrip("]").partition("[")
            fields.append((field, _C_TYPES[kind] * int(count) if count else _C_TYPES[kind]))
    _C_TYPES[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
    return _C_TYPES[name]


_Error = _struct("error", "i32 status; u64 index; str text")
_ContextDesc = _struct(
    "context_desc", "ptr resize resize_user; i32 threads; u32 lane_count; ptr run_lanes run_lanes_user"
)
_Span = _struct("span", "u64 begin end; u32 lane kind")
_Tier = _struct("tier", "u8 id; i32 length_min length_max")
_Batch = _struct("batch", "ptr lengths; u32 sequence_count kv_head_count")
_PlanConfig = _struct(
    "plan_config", "u32 chunk_min chunk_max max_work_units align; i32 chunks; ptr tiers; u32 tier_count"
)
_PlanInfo = _struct("plan_info", "u64 work_count; i32 fault; u64 index; i64 value limit; bool is_over")
_AttentionBatch = _struct("attention_batch", "ptr kv_lengths query_lengths; u32 sequence_count")
_AttentionPositions = _struct(
    "attention_positions",
    "u32 sequence_count; ptr query_first query_stride kv_first kv_stride before after sinks",
)
_AttentionSeen = _struct("attention_seen", "u32 sinks begin end")
_AttentionCost = _struct("attention_cost", "f64 per_unit per_token per_row_token per_merged_row")
_AttentionConfig = _struct(
    "attention_config",
    "u32 kv_head_count group query_head_count lane_count; ptr lane_speeds; i32 mode; bool is_causal;"
    " u32 window page_size tile_rows piece_min chunk grain; attention_cost cost; ptr tiers; u32 tier_count; bool shares_merges;"
    " ptr positions",
)
_AttentionSizes = _struct(
    "attention_sizes", "u64 unit_count merge_count slot_count; u32 slot_rows lane_count; u64 block_bytes"
)
_AttentionPlan = _struct(
    "attention_plan",
    "ptr units merges unit_begin merge_begin lane_costs; u32 unit_capacity merge_capacity slot_capacity lane_capacity"
    " unit_count merge_count slot_count tile_count lane_count tile_tokens group slot_rows; f64 cost_max cost_mean",
)
_AttentionLimits = _struct(
    "attention_limits",
    "u32 sequence_count_max; i32 kv_length_max query_length_max; u64 kv_token_count_max query_token_count_max",
)
_AttentionArrays = _struct("attention_arrays", "ptr request_indices kv_tile_indices o_indptr merge_indptr")
_AttentionScratch = _struct("attention_scratch", "ptr states accs; u32 rows dim")
_AttentionJob = _struct(
    "attention_job",
    "ptr plan table; u32 table_count; ptr merge user progress; bool is_stealing; ptr prefix join spans",
)
_AttendStrides = _struct("attend_strides", "size page token head")
_AttendCache = _struct(
    "attend_cache",
    "ptr keys values; attend_strides key_strides value_strides; ptr key_scales value_scales;"
    " attend_strides scale_strides; i32 type; u32 key_dim value_dim page_size",
)
_AttendStep = _struct(
    "attend_step",
    "ptr batch config plan prefix queries; size query_token_stride query_head_stride; ptr outputs;"
    " size output_token_stride output_head_stride; ptr lse; size lse_token_stride lse_head_stride;"
    " ptr query_starts pages page_starts; size page_stride; f32 scale cap; ptr sinks slopes mask; size mask_stride;"
    " ptr mask_starts",
)
_AttendLimits = _struct("attend_limits", "attention_sizes plan; u64 join_count; u32 value_dim worker_count")
_AttendMemory = _struct(
    "attend_memory",
    "attention_scratch scratch; ptr progress workers; u64 slot_capacity progress_capacity; u32 worker_capacity",
)
_AttendJob = _struct("attend_job", "ptr cache step; attend_memory memory; bool is_stealing; ptr spans")
_MoeRoutes = _struct("moe_routes", "ptr ids; u32 token_count top_k expert_count block_rows")
_MoeOrder = _struct(
    "moe_order",
    "ptr counts offsets pairs rows block_experts; u32 row_capacity pair_count row_count block_count;"
    " f64 padding_share",
)
_MoeCost = _struct("moe_cost", "f64 per_unit per_token per_expert")
_MoeConfig = _struct(
    "moe_config",
    "u32 batch_count expert_count lane_count unit_tokens block_rows; moe_cost cost; u32 column_parts",
)
_MoePlan = _struct(
    "moe_plan",
    "ptr units unit_begin lane_costs; u32 unit_capacity lane_capacity unit_count lane_count; f64 cost_max cost_mean;"
    " u32 column_parts",
)
_MoeBatch = _struct("moe_batch", "ptr counts offsets")
_MoeSizes = _struct("moe_sizes", "u64 unit_count; u32 lane_count; u64 block_bytes")
_MoeBalance = _struct(
    "moe_balance",
    "u64 total expert_max rank_max; u32 expert_busiest rank_busiest expert_idle rank_idle;"
    " f64 expert_ratio rank_ratio; u64 rank_perfect; f64 padding_share",
)
_MoeCluster = _struct(
    "moe_cluster",
    "u32 expert_count replica_count group_count node_count rank_count; i32 policy; bool is_spread",
)
_MoePlacement = _struct("moe_placement", "ptr replica_experts expert_counts expert_replicas; u32 stride")
_MoeMoved = _struct("moe_moved", "u32 move_count; f64 load_before load_after load_mean")
_MoeTraffic = _struct(
    "moe_traffic", "i32 pattern; u32 token_count top_k expert_count rank_count step; u64 seed; f64 skew"
)
_PrefixBatch = _struct("prefix_batch", "attention_batch attention; ptr block_ids block_begin; u32 block_tokens")
_PrefixGiven = _struct(
    "prefix_given", "attention_batch attention; ptr parents node_tokens; u32 node_count; ptr request_nodes"
)
_PrefixLimits = _struct("prefix_limits", "u32 request_count_max; u64 block_count_max")
_PrefixNode = _struct("prefix_node", "u32 parent first count kv_begin kv_end is_shared")
_PrefixTree = _struct(
    "prefix_tree",
    "ptr order common owners nodes; u32 request_count node_count; bool is_ordered; u32 request_capacity;"
    " u64 block_capacity; ptr scratch",
)
_PrefixSegment = _struct(
    "prefix_segment",
    "u32 parent request first count token_begin token_count kv_begin kv_end merge_begin; u16 depth; bool is_whole",
)
_PrefixRequest = _struct("prefix_request", "u32 request segment token_begin join")
_PrefixSizes = _struct(
    "prefix_sizes",
    "attention_sizes attention; u32 segment_count request_count token_count; u64 join_count block_bytes",
)
_PrefixPlan = _struct(
    "prefix_plan",
    "attention_plan attention; ptr segments requests tokens joins; u32 segment_capacity request_capacity"
    " token_capacity join_capacity segment_count request_count token_count join_count shared_count;"
    " u64 kv_token_reads flat_kv_token_reads; f64 cost flat_cost time flat_time",
)
_TensorDesc = _struct("tensor_desc", "str name; i32 dtype; u32 rank; i64 shape[8]; i32 location")
_Buffer = _struct("buffer", "ptr data; u64 size; i32 dtype; u32 rank; i64 shape[8] strides[8]")
_Task = _struct(
    "task",
    "ptr args; u32 arg_count axis_arg_count user_axis_count tile_count; ptr tiles; u64 index; str kernel_name;"
    " u32 lane",
)
_KernelSource = _struct("kernel_source", "str text file fn cost")
_Cost = _struct("cost", "i32 model; ptr fn user timing")
_ParseKernel = _struct("parse_kernel", "str name; ptr fn cost user; kernel_source source; ptr pto make")
_ParseDesc = _struct("parse_desc", "ptr kernels; u32 kernel_count; u64 default_cycles")
_TextPlace = _struct("text_place", "u64 line column")
_Binding = _struct(
    "binding", "i32 kind; str name; u64 value; ptr data; u64 count; i32 dtype; u32 slot; ptr config capacity block"
)
_Csr = _struct("csr", "i32 dtype; ptr indptr indices; u64 row_count entry_count")
_RunOptions = _struct(
    "run_options", "i32 mode; bool record_tasks; cost cost; u64 token_limit; u32 lane_count; u64 time_limit_ns"
)
_RunStats = _struct(
    "run_stats",
    "u64 makespan_cycles task_count; u32 lane_count; u64 busy_cycles stall_cycles[16] in_flight_max"
    " window_overflow_count ring_max[4] slot_load_count region_max; size memory_bytes; u64 control_cycles"
    " submit_cycles hbm_bytes l2_bytes hbm_limited_cycles l2_limited_cycles slowed_cycles",
)
_LaneStats = _struct("lane_stats", "u64 busy_cycles idle_cycles task_count end_cycles slowed_cycles")
_TaskRecord = _struct("task_record", "u64 ready issue start end cause; i32 stall; u32 lane kernel node")
_TaskTrace = _struct(
    "task_trace", "u64 index; ptr record args; u32 axis_count scalar_count; u64 bytes_read bytes_written"
)
_RecordOptions = _struct("record_options", "i32 level; u64 begin end every; bool has_clock")
_TaskSums = _struct("task_sums", "u64 task_count busy_cycles longest_cycles bytes_read bytes_written")
_Output = _struct("output", "ptr write user")
_ExportOptions = _struct(
    "export_options",
    "str title; i32 fold; bool is_short; u32 clock_mhz; u64 begin end; u32 width lane_max; i32 theme time",
)
_SpanSet = _struct(
    "span_set",
    "str title; ptr spans; u64 count; ptr names; u32 name_count; ptr label user; u32 rank_lanes;"
    " ptr lane_names arrows; u64 arrow_count; bool has_cycles",
)
_RunBounds = _struct(
    "run_bounds",
    "u64 makespan_cycles; bool has_path; u64 path_cycles; u32 pool_count; str pool_names[16]; u32 pool_lanes[16];"
    " u64 work_cycles[16] link_cycles process_cycles channel_cycles; u32 process channel; u64 largest_cycles"
    " control_cycles submit_cycles hbm_cycles l2_cycles",
)
_WhatIf = _struct("what_if", "u32 kernel percent; u64 makespan_cycles; u32 memory_percent")
_AxisInfo = _struct("axis_info", "str name; i32 kind; i64 size; u32 array; bool is_used")
_ArrayInfo = _struct("array_info", "str name; i32 dtype; bool is_lengths is_used; u32 plan_axis; i32 field")
_SymbolInfo = _struct("symbol_info", "str name; bool is_used")
_TensorInfo = _struct("tensor_info", "tensor_desc desc; bool is_used is_written is_loaded is_transient")
_Expr = _struct("expr", "ptr module; u32 id")
_Control = _struct("control", "i32 by; u32 threads clock_mhz; u64 cost_ns[13]")
_SharedMemory = _struct("shared_memory", "u32 hbm_rate l2_rate lane_rate; u64 l2_bytes")
_Schedule = _struct(
    "schedule",
    "i32 issue dispatch; expr dispatch_key; u32 lane_count; i32 pools; u32 vector_lane_count cube_lane_count;"
    " i32 window_policy; u32 window dependencies hazards; i32 ready; expr priority_key; i32 start;"
    " u64 start_threshold; u32 stream_count; expr stream_key; i32 timing; u32 timing_count; u64 timing_cycles;"
    " i32 release; u64 ring_sizes[4]; u32 depths[2]; ptr named_pools; u32 pool_count; control control;"
    " shared_memory shared",
)
_ProgramTables = _struct(
    "program_tables",
    "str name; schedule schedule; bool is_priority_signed has_streams; u32 lane_count slot_count latency_symbol"
    " point_count pipeline_count scope_depth edge_count axis_count array_count symbol_count tensor_count"
    " variable_count expr_count kernel_count;"
    " ptr axes arrays symbols tensors variables exprs kernels; u32 statement_count task_count load_count"
    " channel_count port_count transient_count lifetime_count; ptr statements tasks loads channels ports transients"
    " lifetimes values params edges",
)

_WORK_FN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p)
_OUTPUT_FN = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_LABEL_FN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, _Output)
_TASK_FN = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.POINTER(_Task), ctypes.c_void_p)

# -- functions --------------------------------------------------------------------------------------
#
# result, name without "ptowsp_", parameters: p a pointer, s a string, v nothing, otherwise as in
# structures, or a structure by its name. Those of the first two tables are called with the GIL held, so that
# no thread of Python changes an array while it is read; the others release it.

_VERSION = """
s version
"""

_HELD = """
i32 plan_chunk_size p p p p
i32 plan_total_work p p u32 p
i32 plan_generate p p u32 p u64 p
v plan_explain p output
i32 attention_bound p p p p
i32 attention_size p p p p
i32 attention_place p p u64 p
i32 attention_generate p p p p
i32 attention_check p p p p
attention_seen attention_see p p u32 u32
i32 attention_export p p
v attention_print p output
u64 attention_progress_size p
i32 attention_job_check p p
f32 attention_merge_row p p u32 p
f32 merge_partials p p u32 size u32 p
i32 attend_size p p p
i32 attend_place p p u64 p p
i32 attend_check p p
u64 moe_row_bound p
i32 moe_sort p p p
i32 moe_size p p p p
i32 moe_generate p p p p
i32 moe_check p p p p
v moe_print p output
attention_plan moe_plan_units p
i32 moe_look p u32 u32 u32 p p
i32 moe_history_add p u32 p f64 p
u64 moe_scratch_bytes p
i32 moe_rebalance p p u32 p u64 p p
i32 moe_move p p u32 p u64 p p p p
i32 moe_index p p p
i32 moe_share p p p p p
i32 moe_routes_generate p p p p
u64 prefix_tree_bytes p
i32 prefix_tree_place p p u64 p
i32 prefix_build p p p
i32 prefix_build_given p p p
i32 prefix_size p p p p p
i32 prefix_place p p u64 p
i32 prefix_generate p p p p p
i32 prefix_check p p p p p
v prefix_print p output
u64 prefix_progress_size p
f32 prefix_join_row p p p u32 p
s status_text i32
p decode_tiers
u64 hash u64 p size
u32 processor_count
"""

_RELEASED = """
i32 context_create p p
v context_destroy p
error context_error p
u32 context_lane_count p
i32 attention_run p p
v attention_run_worker p u32 u32
i32 attend_run p p
i32 attend_run_worker p u32 u32 p
i32 dispatch_serial p u64 p u32 p p
i32 dispatch_spmd p p u64 p u32 p
i32 moe_sort_parallel p p p p u64 p
v moe_combine p u32 p p u32 u32 u32 p
i32 spans_export p p i32 p output
i32 module_parse p s size p p p
v module_destroy p
i32 program_load p p size p p p
v program_destroy p
v program_print p output
v program_print_schedule p output
s program_kernel_name p u32
p program_read p
i32 run_create p p p
v run_destroy p
i32 run_bind p p size
i32 run_record p p
i32 run_execute p p
p run_result p
p run_lanes p
p run_records p
p run_critical_path p p
p run_kernels p p
p run_idle p
bool run_trace_find p u64 p
v run_print_task p p output
v run_print p output
v run_print_stuck p output
i32 run_find_bounds p p
i32 run_what_if p p p
i32 run_report p i32 p p u32 output
i32 run_export p i32 p output
i32 run_export_decisions p i32 output
s stall_name i32
"""

_EXPERT_MAX = 65536
_ABI = "0.2"  # of the library: before version 1 a minor version may change what it has
_SHORT_TYPES = {"p": ctypes.c_void_p, "s": ctypes.c_char_p, "v": None}


def _signatures(table):
    """[(name, result, parameters)] of a table, as they are written there."""
    rows = [line.split() for line in table.split("\n") if line]
    return [(name, result, parameters) for result, name, *parameters in rows]


def _library_places():
    """Paths and names to load, in this order."""
    if os.environ.get("PTOWSP_LIBRARY"):
        return [os.environ["PTOWSP_LIBRARY"]]
    names = ["libptowsp.so." + _ABI, "libptowsp.so"]
    folders = [os.path.dirname(os.path.abspath(__file__)), os.path.join(sys.prefix, "lib")]
    files = [os.path.join(folder, name) for folder in folders for name in names]
    return [path for path in files if os.path.exists(path)] + names


def _load():
    """The functions of the library, as attributes."""
    failures = []
    for place in _library_places():
        try:
            handles = ctypes.PyDLL(place), ctypes.CDLL(place)
            break
        except OSError as error:
            failures.append(str(error))
    else:
        raise ImportError(
            "ptowsp finds no libptowsp.so: build it with `make`, and name it in PTOWSP_LIBRARY, or see"
            " python/README.md (" + "; ".join(failures) + ")"
        )
    functions = type("_Library", (), {})()
    for handle, table in zip(handles, (_VERSION + _HELD, _RELEASED)):
        for name, result, parameters in _signatures(table):
            try:
                function = getattr(handle, "ptowsp_" + name)
            except AttributeError:
                raise ImportError(f"{place} has no ptowsp_{name}: it is no whole libptowsp.so {_ABI}") from None
            types = [_SHORT_TYPES[t] if t in _SHORT_TYPES else _C_TYPES[t] for t in [result, *parameters]]
            function.restype, function.argtypes = types[0], types[1:]
            setattr(functions, name, function)
            if name == "version" and not function().decode().startswith(_ABI + "."):
                raise ImportError(f"{place} is ptowsp {function().decode()}; this file is for {_ABI}")
    return functions


_lib = _load()
__version__ = _lib.version().decode()

# -- errors -----------------------------------------------------------------------------------------


class Status(enum.IntEnum):
    """ptowsp_status (section 2)."""

    OK = 0
    BUFFER_OVERFLOW = -1
    UNSUPPORTED_SIZE = -2
    INVALID_PARAMS = -3
    OUT_OF_MEMORY = -4
    LIMIT_EXCEEDED = -5
    UNSUPPORTED = -6
    SYSTEM_FAILED = -7
    BUSY = -8
    UNBOUND = -9
    STUCK = -10
    KERNEL_FAILED = -11
    CANCELLED = -12
    SKIPPED = -13
    LEAKED = -14
    TIMED_OUT = -15
    DIFFERENT = -16
    RANK_FAILED = -17


class PtowspError(Exception):
    """What the library refuses: `status` (a Status), `text`, and the `index` of the element at fault or None."""

    def __init__(self, status, text, index=None):
        super().__init__(text)
        self.status, self.text = Status(status), text
        self.index = index if index is not None and 0 <= index < 2**64 - 2 else None

    def __reduce__(self):
        return PtowspError, (self.status, self.text, self.index)


def _check_plan(status, info):
    """Raises the fault of a planning function."""
    if status != Status.OK:
        raise PtowspError(status, _printed(_lib.plan_explain, ctypes.byref(info)), info.index)


def _plan(function, *arguments):
    """Calls a planning function with a plan_info behind its arguments, which are structures or addresses."""
    info = _PlanInfo()
    by_reference = [ctypes.byref(a) if isinstance(a, ctypes.Structure) else a for a in arguments]
    _check_plan(function(*by_reference, ctypes.byref(info)), info)
    return info


def _printed(function, *arguments):
    """What a function of the library writes to a sink."""
    parts = []
    write = _OUTPUT_FN(lambda user, text, length: parts.append(ctypes.string_at(text, length)) is None)
    function(*arguments, _Output(ctypes.cast(write, ctypes.c_void_p), None))
    return b"".join(parts).decode("utf-8", "replace")


class _Bytes:
    """An output of the library that collects bytes."""

    def __init__(self):
        self._parts = []
        self._write = _OUTPUT_FN(self._add)
        self.output = _Output(ctypes.cast(self._write, ctypes.c_void_p), None)

    def _add(self, user, data, size):
        self._parts.append(ctypes.string_at(data, size))
        return True

    def text(self):
        return b"".join(self._parts).decode("utf-8", "replace")

    def bytes(self):
        return b"".join(self._parts)


# -- arguments --------------------------------------------------------------------------------------


def _int(value, name, low=0, high=2**32 - 1):
    """An integer in a range."""
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {type(value).__name__}") from None
    if not low <= value <= high:
        raise ValueError(f"{name} is {value}, which is not in {low} to {high}")
    return value


def _number(value, name):
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    try:
        return float(value)
    except (TypeError, OverflowError):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}") from None


def _choice(value, choices, name):
    """The position of a word among those of a string."""
    words = choices.split()
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, not {type(value).__name__}")
    if value not in words:
        raise ValueError(f"{name} is {value!r}; it is one of {', '.join(words)}")
    return words.index(value)


def _converted(value, dtype, name):
    """A list of numbers as an array: integers that fit, or for floats any numbers."""
    array = np.array(value)
    if array.size == 0:
        return array.astype(dtype)
    if array.dtype.kind not in ("iuf" if dtype.kind == "f" else "iu"):
        raise TypeError(f"{name} must have numbers of {dtype}, not {array.dtype}")
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        low, high = int(array.min()), int(array.max())
        if low < limits.min or high > limits.max:
            raise ValueError(f"{name} has {low if low < limits.min else high}, which {dtype} cannot hold")
    return array.astype(dtype)


def _array(value, dtypes, name, shape, out=False, strided=False):
    """An array of this dtype and shape, contiguous or strided, without a copy but of lists. A size of -1 is any.

    Of several dtypes the first is that of lists.
    """
    dtypes = [np.dtype(dtype) for dtype in (dtypes if isinstance(dtypes, tuple) else (dtypes,))]
    wanted = " or ".join(map(str, dtypes))
    if out and not isinstance(value, np.ndarray):
        raise TypeError(f"{name} must be a numpy array, not {type(value).__name__}")
    if isinstance(value, (list, tuple, range)):
        value = _converted(value, dtypes[0], name)
    elif not isinstance(value, np.ndarray):
        if value is None or isinstance(value, (str, bytes, int, float)):
            raise TypeError(f"{name} must be an array of {wanted}, not {type(value).__name__}")
        value = np.asarray(value)
    if value.dtype not in dtypes:
        raise TypeError(f"{name} has dtype {value.dtype}; it must be {wanted}")
    if value.ndim != len(shape) or any(n not in (-1, m) for n, m in zip(shape, value.shape)):
        wanted = ", ".join("any" if n < 0 else str(n) for n in shape)
        raise ValueError(f"{name} has shape {value.shape}; it must be ({wanted})")
    if not (value.flags.aligned and (strided or value.flags.c_contiguous)):
        kind = "aligned" if strided else "contiguous and aligned"
        raise ValueError(f"{name} is not {kind}; numpy.ascontiguousarray({name}) is")
    if out and not value.flags.writeable:
        raise ValueError(f"{name} is read-only")
    return value


def _at(array):
    """The address of an array, or None."""
    return None if array is None else array.ctypes.data


def _out(out, dtype, name, shape):
    return np.empty(shape, dtype) if out is None else _array(out, dtype, name, shape, out=True)


def _costs(cost, kind, name):
    """A cost structure from a mapping of its fields; None: the default."""
    made = kind()
    known = [field for field, _ in kind._fields_]
    for field, value in _items(cost, name):
        if field not in known:
            raise ValueError(f"{name} has {field!r}; it has {', '.join(known)}")
        setattr(made, field, _number(value, f"{name}[{field!r}]"))
    return made


def _items(mapping, name):
    if mapping is None:
        return []
    if not hasattr(mapping, "items"):
        raise TypeError(f"{name} must be a mapping, not {type(mapping).__name__}")
    return mapping.items()


def _set_tiers(config, tiers):
    """Sets the tiers of a configuration: [(id, length_min, length_max)]."""
    if tiers is not None:
        rows = [tuple(tier) for tier in tiers]
        if any(len(row) != 3 for row in rows):
            raise ValueError("tiers are (id, length_min, length_max) each")
        limits = [(0, 255), (-(2**31), 2**31 - 1), (-(2**31), 2**31 - 1)]
        values = [[_int(v, "a tier", *limit) for v, limit in zip(row, limits)] for row in rows]
        config.kept_tiers = (_Tier * len(rows))(*[_Tier(*row) for row in values])
        config.tiers = ctypes.addressof(config.kept_tiers)
        config.tier_count = len(rows)


DECODE_TIERS = tuple(
    (tier.id, tier.length_min, tier.length_max) for tier in (_Tier * 4).from_address(_lib.decode_tiers())
)

# -- contexts ---------------------------------------------------------------------------------------
#
# Objects of the library are destroyed when nothing refers to them any more, at once or, while their
# context is in use, at the end of that. What is made from a context keeps it, and a run its program.


class _Core:
    """A context of the library, and the lock of who uses it."""

    def __init__(self, lane_count):
        desc = _ContextDesc(threads=1 if lane_count != 1 else 0, lane_count=lane_count)
        handle = ctypes.c_void_p()
        status = _lib.context_create(ctypes.byref(desc), ctypes.byref(handle))
        if status != Status.OK:
            raise PtowspError(status, f"context: {_lib.status_text(status).decode()}")
        self.handle = handle.value
        self._lock = threading.Lock()
        self._dead = collections.deque()
        weakref.finalize(self, _lib.context_destroy, self.handle).atexit = False

    @contextlib.contextmanager
    def used(self):
        """The handle, for one user at a time."""
        if not self._lock.acquire(blocking=False):
            raise PtowspError(Status.BUSY, "context: it is in use, by another thread or by what it runs")
        try:
            yield self.handle
        finally:
            self._lock.release()
            self._sweep()

    def call(self, function, *arguments):
        """Calls a function that leaves its error in the context."""
        with self.used():
            self.check(function(*arguments))

    def check(self, status):
        """Raises the error of a call; the caller uses the context."""
        if status != Status.OK:
            error = _lib.context_error(self.handle)
            raise PtowspError(status, (error.text or b"").decode("utf-8", "replace"), error.index)

    def discard(self, destroy, handle, keep):
        self._dead.append((destroy, handle, keep))
        self._sweep()

    def _sweep(self):
        while self._dead and self._lock.acquire(blocking=False):
            try:
                while self._dead:
                    destroy, handle, _ = self._dead.popleft()
                    destroy(handle)
            finally:
                self._lock.release()


class _Native:
    """An object of the library that was made from a context."""

    def __init__(self, core, destroy, handle, *keep):
        self.core, self.handle = core, handle
        weakref.finalize(self, core.discard, destroy, handle, keep).atexit = False


_local = threading.local()


def _own_core():
    """The context of the calling thread: one lane."""
    if not hasattr(_local, "core"):
        _local.core = _Core(1)
    return _local.core


class Context:
    """Threads to run on (section 3): `lanes` of them with the calling one; None: as there are processors.

    A context is closed by close(), at the end of a with statement, or when nothing refers to it any more.
    """

    def __init__(self, lanes=None):
        self._core = _Core(_lib.processor_count() if lanes is None else _int(lanes, "lanes", 1))

    @property
    def lanes(self):
        """The number of lanes: of threads, with the one that calls."""
        return _lib.context_lane_count(_context_core(self).handle)

    def close(self):
        """Ends the threads; nothing can be run on it any more. A `with` statement does it at its end."""
        self._core = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


def _context_core(context):
    """The core of a context, or for None of the calling thread."""
    if context is None:
        return _own_core()
    if not isinstance(context, Context):
        raise TypeError(f"context must be a Context, not {type(context).__name__}")
    if context._core is None:
        raise ValueError("the context is closed")
    return context._core


# -- descriptors ------------------------------------------------------------------------------------


def _work_dtype(first, reserved, *params):
    """A work descriptor (section 5) with the names that a kind of plan has for its fields."""
    names = [first, "tier", "flags", reserved, *params]
    return np.dtype((np.record, list(zip(names, ["u4", "u1", "u1", "u2"] + ["u4"] * 4))))


UNIT = _work_dtype("slot", "tile", "request", "head", "kv_start", "kv_len")
MERGE = _work_dtype("index", "tile", "request", "head", "slot_first", "slot_count")
JOIN = _work_dtype("index", "tile", "request", "head", "position", "part_count")
CHUNK_UNIT = _work_dtype("index", "reserved", "request", "head", "kv_start", "kv_len")
MOE_UNIT = _work_dtype("index", "column_part", "batch", "expert", "token_start", "token_count")
PARTIAL = np.dtype([("m", "f4"), ("l", "f4")])

FIRST, LAST, ROWS, POSITIONS, INVALID = 0x01, 0x02, 0x08, 0x10, 0x80  # flags
NO_SLOT = NO_ROW = NO_NODE = 2**32 - 1


def _view(block, address, dtype, count):
    """A read-only view of `count` elements at an address in a block."""
    if not count:
        view = np.empty(0, dtype)
    else:
        data = block.view(np.uint8)
        begin = address - block.ctypes.data
        view = data[begin : begin + count * dtype.itemsize].view(dtype)
    view.flags.writeable = False
    return view


def _block(size):
    """Memory of `size` bytes, aligned to 8."""
    if size > 2**62:
        raise MemoryError(f"{size} bytes are needed")
    return np.empty(max(1, (size + 7) // 8), np.uint64)


def _block_of(lanes, worker, worker_count):
    """The lanes of a worker: contiguous, as even as can be."""
    worker_count = _int(worker_count, "worker_count", 1)
    worker = _int(worker, "worker", 0, worker_count - 1)
    return worker * lanes // worker_count, (worker + 1) * lanes // worker_count


class _Calls:
    """Python functions as kernels of the library. The first exception is kept; after it no more are called."""

    def __init__(self):
        self.failures = {}  # by thread, in the order of their coming
        self._kept = []

    def function(self, fn, name, array):
        """A ptowsp_work_fn that calls fn(element of the array, lane); for None, None."""
        if fn is None:
            return None
        if not callable(fn):
            raise TypeError(f"{name} must be callable, not {type(fn).__name__}")
        begin, size = array.ctypes.data, array.dtype.itemsize

        def call(address, lane, user):
            if not self.failures:
                try:
                    fn(array[(address - begin) // size], lane)
                except BaseException as error:
                    self.failures.setdefault(threading.get_ident(), error)

        self._kept.append(_WORK_FN(call))
        return ctypes.cast(self._kept[-1], ctypes.c_void_p).value

    def table(self, kernels, array):
        """An array of kernels by tier: one function for all, or {tier: function}."""
        given = dict.fromkeys(range(256), kernels) if callable(kernels) else dict(_items(kernels, "kernel"))
        functions = {id(fn): self.function(fn, "kernel", array) for fn in given.values()}
        table = (ctypes.c_void_p * 256)()
        for tier, fn in given.items():
            table[_int(tier, "a tier of kernel", 0, 255)] = functions[id(fn)]
        return table

    def take_failure(self):
        """The first exception, which is forgotten; or None."""
        failures, self.failures = self.failures, {}
        return next(iter(failures.values()), None)


def _dispatch(units, dtype, kernel, context):
    """Runs descriptors in order, or on the lanes of a context (section 7)."""
    units = _array(units, dtype, "units", (-1,))
    calls = _Calls()
    table = calls.table(kernel, units)
    if context is None:
        index = ctypes.c_uint64()
        status = _lib.dispatch_serial(_at(units), len(units), table, 256, None, ctypes.byref(index))
        if status != Status.OK:
            raise PtowspError(status, f"dispatch: descriptor {index.value} has a tier without a kernel", index.value)
    else:
        core = _context_core(context)
        core.call(_lib.dispatch_spmd, core.handle, _at(units), len(units), table, 256, None)
    failure = calls.take_failure()
    if failure is not None:
        raise failure


class _Shown:
    """How plans and runs show themselves in a notebook: their picture, then their text."""

    def _repr_html_(self):
        svg = self._repr_svg_()
        picture = svg and base64.b64encode(svg.encode()).decode()
        image = f'<img alt="timeline" src="data:image/svg+xml;base64,{picture}">' if svg else ""
        return f"{image}<pre>{html.escape(str(self))}</pre>"


# -- chunk plans ------------------------------------------------------------------------------------


class ChunkPlan:
    """A plan with one chunk for all sequences (section 6), made by chunk_plan().

    chunk      tokens
    units      CHUNK_UNIT [units]: index, tier, flags, request, head, kv_start, kv_len
    is_over    whether the units are more than max_work_units
    """

    def __init__(self, units, chunk, is_over):
        self.units, self.chunk, self.is_over = units, chunk, is_over

    def worker_units(self, worker, worker_count):
        """The units of worker `worker` of `worker_count`: an even share, in order."""
        begin, end = _block_of(len(self.units), worker, worker_count)
        return self.units[begin:end]

    def run(self, kernel, context=None):
        """Calls kernel(unit, lane) for all units, on the calling thread or on the lanes of a Context.

        kernel     a function, or {tier: function}. Its exception is raised here, and no further unit is run.
        """
        _dispatch(self.units, CHUNK_UNIT, kernel, context)


def chunk_plan(
    lengths, heads, *, chunk=0, chunk_min=0, chunk_max=0, max_work_units=0, align=0, fixed=False, tiers=None
):
    """Cuts sequences by one chunk (section 6).

    lengths    int32 [sequences], KV tokens
    heads      with KV of their own
    chunk      0: by the rule of section 6, in chunk_min to chunk_max
    fixed      pieces are `chunk` long; else they differ by at most `align`
    tiers      [(id, length_min, length_max)]; default DECODE_TIERS
    """
    lengths = _array(lengths, np.int32, "lengths", (-1,))
    config = _PlanConfig(
        _int(chunk_min, "chunk_min"),
        _int(chunk_max, "chunk_max"),
        _int(max_work_units, "max_work_units"),
        _int(align, "align"),
        bool(fixed),
    )
    _set_tiers(config, tiers)
    batch = _Batch(_at(lengths), len(lengths), _int(heads, "heads"))
    size = ctypes.c_uint32(_int(chunk, "chunk"))
    if not size.value:
        _plan(_lib.plan_chunk_size, batch, config, ctypes.byref(size))
    info = _plan(_lib.plan_total_work, batch, config, size)
    if info.work_count > 2**32:
        raise PtowspError(Status.LIMIT_EXCEEDED, f"plan: {info.work_count} work units exceed the {2**32} work ids")
    units = np.empty(info.work_count, CHUNK_UNIT)
    info = _plan(_lib.plan_generate, batch, config, size, _at(units), len(units))
    units.flags.writeable = False
    return ChunkPlan(units, size.value, info.is_over)


# -- attention plans --------------------------------------------------------------------------------


class FlashInferArrays(typing.NamedTuple):
    """A plan in the form that FlashInfer's kernels read (ptowsp_attention_arrays): int32, up to capacities."""

    request_indices: np.ndarray
    kv_tile_indices: np.ndarray
    o_indptr: np.ndarray
    merge_indptr: np.ndarray


def _attention_batch(kv_lengths, query_lengths):
    """The batch, which keeps its arrays."""
    kv = _array(kv_lengths, np.int32, "kv_lengths", (-1,))
    queries = None if query_lengths is None else _array(query_lengths, np.int32, "query_lengths", kv.shape)
    batch = _AttentionBatch(_at(kv), _at(queries), len(kv))
    batch.kept = kv, queries
    return batch


def _positions(positions, count):
    """The structure of a mapping of arrays, which it keeps; None: none."""
    made, kept = _AttentionPositions(count), {}
    known = [field for field, _ in _AttentionPositions._fields_[1:]]
    for field, value in _items(positions, "positions"):
        if field not in known:
            raise ValueError(f"positions has {field!r}; it has {', '.join(known)}")
        if value is not None:
            dtypes = (np.int32, np.uint32) if field in ("before", "after") else np.int32
            kept[field] = _array(value, dtypes, f"positions[{field!r}]", (count,))
            setattr(made, field, _at(kept[field]))
    made.kept = kept
    return made if kept else None


def _config_with(config, positions):
    """A copy of a configuration, which keeps what it refers to."""
    copy = _AttentionConfig.from_buffer_copy(config)
    copy.kept = config, positions
    copy.positions = None if positions is None else ctypes.addressof(positions)
    return copy


def _attention_config(
    heads,
    lanes,
    group=0,
    query_heads=0,
    mode="balanced",
    causal=False,
    window=0,
    page_size=0,
    tile_rows=0,
    piece_min=0,
    chunk=0,
    grain=0,
    lane_speeds=None,
    cost=None,
    tiers=None,
    shares_merges=False,
):
    config = _AttentionConfig(
        kv_head_count=_int(heads, "heads"),
        group=_int(group, "group"),
        query_head_count=_int(query_heads, "query_heads"),
        lane_count=_int(lanes, "lanes"),
        mode=_choice(mode, "balanced invariant", "mode"),
        is_causal=bool(causal),
        shares_merges=bool(shares_merges),
        cost=_costs(cost, _AttentionCost, "cost"),
    )
    sizes = {
        "window": window,
        "page_size": page_size,
        "tile_rows": tile_rows,
        "piece_min": piece_min,
        "chunk": chunk,
        "grain": grain,
    }
    for name, value in sizes.items():
        setattr(config, name, _int(value, name))
    if lane_speeds is not None:
        config.kept_speeds = _array(lane_speeds, np.uint32, "lane_speeds", (config.lane_count,))
        config.lane_speeds = _at(config.kept_speeds)
    _set_tiers(config, tiers)
    return config


class AttentionPlanner:
    """A configuration of attention plans (ptowsp_attention_config, section 9).

    heads        KV heads (1 under MLA)
    lanes        cores or threads that share the work
    group        query heads per KV head; default 1, or by query_heads
    query_heads  all query heads: heads * group, or an error
    mode         "balanced", or "invariant": results independent of the batch
    causal       query token j of q sees KV tokens up to n - q + j
    window       KV tokens that a query sees; 0: all
    page_size    tokens; sequences are split at its multiples
    tile_rows    rows of a query tile, at most; default 64
    piece_min    balanced: KV tokens of a piece, at least
    chunk, grain invariant: default 1024 and 64 tokens
    lane_speeds  uint32 [lanes], relative; 0: no work
    cost         {"per_unit", "per_token", "per_row_token", "per_merged_row": number}
    tiers        [(id, length_min, length_max)] for kernels by KV length; default none
    shares_merges  lanes share the merge of a split tile: merges of flag ROWS are of some of its rows (merge_rows)
    """

    def __init__(self, *, heads, lanes, **config):
        self._config = _attention_config(heads, lanes, **config)

    def plan(self, kv_lengths, query_lengths=None, positions=None):
        """Plans a step: int32 [sequences] each; query_lengths None: a query token each. Returns an AttentionPlan.

        positions     a mapping of arrays [sequences], each of which may be missing (Positions in section 9):
          query_first, query_stride   int32: where the first query token stands, and how far the next. Default: the
                                      last of the KV
          kv_first, kv_stride         int32: the same of KV tokens; default 0 and 1
          before, after               int32 or uint32: positions before and after its own that a query sees; below
                                      0: all. Default: by window and causal
          sinks                       int32: first KV tokens that a query sees whatever the window
        A unit of flag POSITIONS has sinks besides its KV, or no KV: then its rows are zeros.
        """
        batch, sizes = _attention_batch(kv_lengths, query_lengths), _AttentionSizes()
        config = _config_with(self._config, _positions(positions, batch.sequence_count))
        _plan(_lib.attention_size, batch, config, sizes)
        plan = AttentionPlan(config, sizes)
        plan._generate(batch, config)
        return plan

    def reserve(self, *, sequences, kv_length, query_length=1, kv_tokens=0, query_tokens=0, positions=()):
        """An empty AttentionPlan with room for any step within limits (ptowsp_attention_limits).

        AttentionPlan.update() plans into it, as captured launches need: addresses and capacities stay.
        positions     the names of the arrays that steps have
        """
        limits = _AttentionLimits(
            _int(sequences, "sequences"),
            _int(kv_length, "kv_length", 0, 2**31 - 1),
            _int(query_length, "query_length", 0, 2**31 - 1),
            _int(kv_tokens, "kv_tokens", 0, 2**64 - 1),
            _int(query_tokens, "query_tokens", 0, 2**64 - 1),
        )
        sizes = _AttentionSizes()
        config = _config_with(self._config, _positions({name: [] for name in positions}, 0))
        _plan(_lib.attention_bound, config, limits, sizes)
        plan = AttentionPlan(config, sizes)
        plan._generate(_attention_batch([], None), config)
        return plan


def attention_plan(kv_lengths, query_lengths=None, positions=None, *, heads, lanes, **config):
    """Plans a step of attention (section 9): AttentionPlanner(heads=..., lanes=..., **config).plan(...).

    kv_lengths      int32 [sequences], those of the queries included
    query_lengths   int32 [sequences]; default 1 each: decode
    positions       where queries and KV stand, windows and sinks of each sequence: AttentionPlanner.plan()
    """
    return AttentionPlanner(heads=heads, lanes=lanes, **config).plan(kv_lengths, query_lengths, positions)


class AttentionPlan(_Shown):
    """How a step's attention is split over lanes (section 9), made by attention_plan() or an AttentionPlanner.

    Arrays are read-only views that keep the plan's memory; update() writes the next step into them.

    units          UNIT [units]: request, head, tile, kv_start, kv_len, slot (NO_SLOT: whole), tier, flags
    merges         MERGE [merges]: request, head, tile, slot_first, slot_count
    unit_begin     uint32 [lanes + 1]: lane l has units unit_begin[l] to unit_begin[l + 1]
    merge_begin    uint32 [lanes + 1]
    lane_costs     float64 [lanes], predicted
    all_units, all_merges   up to the capacities; behind the counts INVALID

    Numbers: slot_count, slot_rows, slot_capacity, tile_count, tile_tokens, group, lane_count, cost_max, cost_mean.
    """

    _PLACE, _STRUCT = staticmethod(_lib.attention_place), _AttentionPlan

    def __init__(self, config, sizes):
        self._config, self._sizes = config, sizes
        self._memory = _block(sizes.block_bytes)
        self._whole = self._STRUCT()
        status = self._PLACE(ctypes.byref(sizes), _at(self._memory), sizes.block_bytes, ctypes.byref(self._whole))
        if status != Status.OK:
            raise PtowspError(status, f"attention plan: {_lib.status_text(status).decode()}")
        c = self._c = getattr(self._whole, "attention", self._whole)
        lanes = c.lane_count
        self.all_units = self._array_at(c.units, UNIT, c.unit_capacity)
        self.all_merges = self._array_at(c.merges, MERGE, c.merge_capacity)
        self.unit_begin = self._array_at(c.unit_begin, np.dtype(np.uint32), lanes + 1)
        self.merge_begin = self._array_at(c.merge_begin, np.dtype(np.uint32), lanes + 1)
        self.lane_costs = self._array_at(c.lane_costs, np.dtype(np.float64), lanes)
        self._jobs, self._gate = weakref.WeakSet(), threading.Lock()  # of planning, and of beginning a run
        self._attend_blocks = {}  # by the dimension of values

    def _array_at(self, address, dtype, count):
        return _view(self._memory, address, dtype, count)

    def _generate(self, batch, config):
        _plan(_lib.attention_generate, batch, config, self._c)
        self._batch = batch
        self._config.positions, self._config.kept = config.positions, config.kept  # in place, as jobs refer to it

    def update(self, kv_lengths, query_lengths=None, positions=None):
        """Plans another step into the same arrays. What does not fit is BUFFER_OVERFLOW, and the plan stays."""
        batch = _attention_batch(kv_lengths, query_lengths)
        config = _config_with(self._config, _positions(positions, batch.sequence_count))
        config.kept = self._config.kept[0], config.kept[1]
        with self._gate:
            if any(job._count for job in self._jobs):
                raise PtowspError(Status.BUSY, "attention plan: a job runs it")
            self._generate(batch, config)

    def see(self, sequence, query=0):
        """What a query token sees (ptowsp_attention_see): (sinks, begin, end), KV tokens below sinks, and from begin
        to end."""
        sequence = _int(sequence, "sequence", 0, self._batch.sequence_count - 1)
        queries = self._batch.kept[1]
        query = _int(query, "query", 0, max(0, (1 if queries is None else int(queries[sequence])) - 1))
        seen = _lib.attention_see(ctypes.byref(self._batch), ctypes.byref(self._config), sequence, query)
        return seen.sinks, seen.begin, seen.end

    @property
    def units(self):
        """UNIT [unit_count]: all_units without those that fill it up."""
        return self.all_units[: self._c.unit_count]

    @property
    def merges(self):
        """MERGE [merge_count]: all_merges without those that fill it up."""
        return self.all_merges[: self._c.merge_count]

    def lane_units(self, lane):
        """The units of a lane."""
        lane = _int(lane, "lane", 0, self._c.lane_count - 1)
        return self.units[self.unit_begin[lane] : self.unit_begin[lane + 1]]

    def lane_merges(self, lane):
        """The merges of a lane, to be done after all units."""
        lane = _int(lane, "lane", 0, self._c.lane_count - 1)
        return self.merges[self.merge_begin[lane] : self.merge_begin[lane + 1]]

    def worker_units(self, worker, worker_count):
        """The units of worker `worker` of `worker_count`: those of a block of lanes."""
        begin, end = _block_of(self._c.lane_count, worker, worker_count)
        return self.units[self.unit_begin[begin] : self.unit_begin[end]]

    def worker_merges(self, worker, worker_count):
        """Its merges, which wait until all workers have done their units. Job.run_worker needs no such barrier."""
        begin, end = _block_of(self._c.lane_count, worker, worker_count)
        return self.merges[self.merge_begin[begin] : self.merge_begin[end]]

    def check(self):
        """Proves the plan against its batch (ptowsp_attention_check)."""
        _plan(_lib.attention_check, self._batch, self._config, self._c)

    def flashinfer_arrays(self, out=None):
        """The plan as FlashInferArrays; with `out`, those of an earlier call, into the same arrays."""
        c = self._c
        counts = c.unit_capacity, c.unit_capacity, c.unit_capacity + 1, c.merge_capacity + 1
        if out is not None and (not isinstance(out, (tuple, list)) or len(out) != 4):
            raise TypeError("out must be FlashInferArrays")
        arrays = FlashInferArrays(
            *[
                _out(given, np.int32, name, (count,))
                for name, count, given in zip(FlashInferArrays._fields, counts, out or [None] * 4)
            ]
        )
        status = _lib.attention_export(ctypes.byref(c), ctypes.byref(_AttentionArrays(*map(_at, arrays))))
        if status != Status.OK:
            raise PtowspError(status, f"attention plan: {_lib.status_text(status).decode()}")
        return arrays

    def scratch(self, dim):
        """Memory for the partial states of split tiles: a Scratch."""
        return Scratch(self, dim)

    def job(self, kernel, merge=None, *, stealing=False):
        """The plan with what it runs: a Job."""
        return Job(self, kernel, merge, None, stealing)

    def run(self, kernel, merge=None, *, context=None, stealing=False):
        """Runs all of it: job(kernel, merge, stealing=stealing).run(context)."""
        self.job(kernel, merge, stealing=stealing).run(context)

    def attend_job(self, queries, keys, values, **options):
        """The plan with arrays, for the library's attention kernels: an AttendJob, which has the options."""
        return AttendJob(self, queries, keys, values, **options)

    def attend(self, queries, keys, values, *, context=None, **options):
        """Attention of the step: runs attend_job(queries, keys, values, **options), and returns its outputs."""
        job = self.attend_job(queries, keys, values, **options)
        job.run(context)
        return job.out

    def __str__(self):
        return _printed(_lib.attention_print, ctypes.byref(self._c))

    def __repr__(self):
        c = self._c
        return f"<{type(self).__name__}: {c.unit_count} units, {c.merge_count} merges, {c.lane_count} lanes>"

    def _query_tokens(self):
        """Query tokens of each sequence, by what the first field of units counts."""
        kv, queries = self._batch.kept
        return np.ones(len(kv), np.int64) if queries is None else queries.astype(np.int64)

    def _repr_svg_(self):
        return self.svg()

    def svg(self, **options):
        """A picture of the predicted costs: units, then merges, by lane. Options as of Run.export()."""
        c, cost = self._c, self._config.cost
        values = [getattr(cost, name) for name, _ in cost._fields_]
        per_unit, per_token, per_row_token, per_row = values if any(values) else (64, 1, 1 / 64, 1)
        queries = self._query_tokens()

        def rows(works):
            left = queries[works["request"]] - works["tile"].astype(np.int64) * c.tile_tokens
            return np.minimum(left, c.tile_tokens) * c.group

        unit_costs = per_unit + self.units["kv_len"] * (per_token + rows(self.units) * per_row_token)
        is_shared = (self.merges["flags"] & ROWS) != 0
        merged = np.where(is_shared, self.merges["index"] >> 16, rows(self.merges))
        merge_costs = per_row * self.merges["slot_count"] * merged
        scale = 10.0 ** max(0, math.ceil(4 - math.log10(c.cost_max))) if c.cost_max else 1
        spans = []
        for lane in range(c.lane_count):
            begin = 0.0
            lists = ((unit_costs, self.unit_begin, 0), (merge_costs, self.merge_begin, 2))
            for costs, begins, kind in lists:
                for i in range(begins[lane], begins[lane + 1]):
                    is_part = kind == 0 and self.units["slot"][i] != NO_SLOT
                    spans.append(
                        (i, _Span(round(begin * scale), round((begin + costs[i]) * scale), lane, kind + is_part))
                    )
                    begin += costs[i]

        def label(i):
            index, span = spans[i]
            work = (self.merges if span.kind == 2 else self.units)[index]
            where = "" if span.kind == 2 else f" kv={work.kv_start}+{work.kv_len}"
            return f"request={work.request} head={work.head}{where}"

        return _draw([span for _, span in spans], ["whole", "part", "merge"], label, options)


def _add_numbers(kind, names, structure="_c"):
    """Properties that read fields of the plan's structure."""
    for name in names.split():
        setattr(kind, name, property(operator.attrgetter(f"{structure}.{name}")))


_add_numbers(
    AttentionPlan, "slot_count slot_rows slot_capacity tile_count tile_tokens group lane_count cost_max cost_mean"
)


def _draw(spans, names, label, options):
    """An SVG of spans of simulated time, or None without any."""
    if not spans:
        return None
    words = (ctypes.c_char_p * len(names))(*[name.encode() for name in names])

    def write(user, i, text):
        data = label(i).encode()
        ctypes.cast(text.write, _OUTPUT_FN)(text.user, data, len(data))

    written = _LABEL_FN(write)
    array = (_Span * len(spans))(*spans)
    given = _export_options(**{"title": "attention plan", "lane_max": 4096, **options})
    spans_of = _SpanSet(
        given.title,
        ctypes.addressof(array),
        len(spans),
        ctypes.addressof(words),
        len(names),
        ctypes.cast(written, ctypes.c_void_p),
        has_cycles=True,
    )
    sink, core = _Bytes(), _own_core()
    core.call(_lib.spans_export, core.handle, ctypes.byref(spans_of), 2, ctypes.byref(given), sink.output)
    return sink.text()


def _attention_struct(plan):
    if not isinstance(plan, AttentionPlan):
        raise TypeError(f"plan must be an AttentionPlan, not {type(plan).__name__}")
    return plan._c


class _Runs:
    """A plan with what it calls: runs, one at a time, by one or several workers."""

    def __init__(self, plan):
        _attention_struct(plan)
        self._plan = plan
        self._count, self._begun, self._returned = 0, set(), 0  # workers of the run, 0: none
        with plan._gate:
            plan._jobs.add(self)

    def _begin(self, worker, worker_count):
        """A worker begins, the first of them the run."""
        with self._plan._gate:
            if self._count not in (0, worker_count):
                raise PtowspError(Status.BUSY, f"job: it runs with {self._count} workers, not {worker_count}")
            if worker in self._begun:
                raise PtowspError(Status.BUSY, f"job: worker {worker} has begun this run already", worker)
            if self._count == 0:
                self._start(worker_count)
            self._count = worker_count
            self._begun.add(worker)

    def _end(self):
        with self._plan._gate:
            self._returned += 1
            if self._returned == self._count:
                self._count, self._begun, self._returned = 0, set(), 0
                self._stop()

    def run(self, context=None):
        """Runs on the calling thread, as lane 0, or on the lanes of a Context."""
        core = None if context is None else _context_core(context)
        self._begin(0, 1)
        try:
            if core is None:
                self._work(0, 1)
            else:
                self._work_on(core)
        finally:
            self._end()

    def run_worker(self, worker, worker_count):
        """Runs the share of worker `worker` of `worker_count`, on the calling thread, which is one of your own.

        Every worker from 0 to worker_count - 1 calls once per run, at any time, also after an exception in another.
        The run is over, and outputs are complete, when all have returned; then the next one may begin.
        """
        worker_count = _int(worker_count, "worker_count", 1)
        worker = _int(worker, "worker", 0, worker_count - 1)
        self._begin(worker, worker_count)
        try:
            self._work(worker, worker_count)
        finally:
            self._end()


class Job(_Runs):
    """A plan with Python functions as its kernels (section 9, running a plan). Made by AttentionPlan.job().

    kernel(unit, lane)    for each unit: a function, or {tier: function}
    merge(merge, lane)    for each split tile, when its last part is done
    join(join, lane)      of a PrefixPlan, for each request whose rows are in several segments

    An exception of a function ends the run: no further function is called, and it is raised by run(), or in the
    worker where it happened. A job runs any number of times, also after its plan was updated.
    """

    def __init__(self, plan, kernel, merge, join, stealing):
        super().__init__(plan)
        self._calls, c = _Calls(), plan._c
        self._table = self._calls.table(kernel, plan.all_units)
        self._merge = self._calls.function(merge, "merge", plan.all_merges)
        self._c = _AttentionJob(
            ctypes.addressof(c), ctypes.addressof(self._table), 256, self._merge, is_stealing=bool(stealing)
        )
        count = _lib.attention_progress_size(ctypes.byref(c))
        if isinstance(plan, PrefixPlan):
            count = _lib.prefix_progress_size(ctypes.byref(plan._whole))
            self._c.prefix = ctypes.addressof(plan._whole)
            self._c.join = self._calls.function(join, "join", plan.joins)
            if self._c.join is None and len(plan.joins):
                raise ValueError("join is None, and the plan has joins")
        self._progress = np.zeros(max(1, count), np.uint32)
        self._c.progress = _at(self._progress)

    def _start(self, worker_count):
        index = ctypes.c_uint64(2**64 - 1)
        status = _lib.attention_job_check(ctypes.byref(self._c), ctypes.byref(index))
        if status != Status.OK:
            raise PtowspError(status, "job: a unit has no kernel for its tier, or no merge", index.value)

    def _stop(self):
        self._calls.take_failure()

    def _work(self, worker, worker_count):
        _lib.attention_run_worker(ctypes.byref(self._c), worker, worker_count)
        failure = self._calls.failures.get(threading.get_ident())
        if failure is not None:
            raise failure

    def _work_on(self, core):
        core.call(_lib.attention_run, core.handle, ctypes.byref(self._c))
        failure = self._calls.take_failure()
        if failure is not None:
            raise failure


_KV_TYPES = {  # their dtype, and the elements and bytes of a block
    "f32": (np.dtype("f4"), 1, 4),
    "f16": (np.dtype("f2"), 1, 2),
    "bf16": (np.dtype("u2"), 1, 2),
    "i8": (np.dtype("i1"), 1, 1),
    "q8_0": (np.dtype("u1"), 32, 34),
    "q4_0": (np.dtype("u1"), 32, 18),
}
_INDICES = np.uint32, np.int32  # read as uint32, where a negative index is out of range


def _kv_type(dtype, kv_type):
    """The name of a type: kv_type, or by the dtype of keys."""
    if kv_type is not None:
        return [*_KV_TYPES][_choice(kv_type, " ".join(_KV_TYPES), "kv_type")]
    names = [name for name, (of_type, _, _) in _KV_TYPES.items() if of_type == dtype]
    if dtype in (np.uint16, np.uint8):
        raise TypeError(f"keys has dtype {dtype}: kv_type must say that it is {' or '.join(names)}")
    return names[0] if names else "f32"


def _strides(array, name, axes, size=0, block=1):
    """Strides of the first axes as the library counts them: in elements, `block` of which have `size` bytes."""
    size = size or array.itemsize
    strides = [stride if length > 1 else 0 for stride, length in zip(array.strides, array.shape)]
    is_apart = axes < array.ndim and array.shape[-1] > 1 and strides[-1] != array.itemsize
    if is_apart or any(stride < 0 or stride % size for stride in strides[:axes]):
        last = ", and adjacent elements in the last axis" if axes < array.ndim else ""
        raise ValueError(f"{name} has strides {array.strides}; they must be multiples of {size} bytes from 0{last}")
    return [stride // size * block for stride in strides[:axes]]


def _check_output(out, name, inputs):
    """Refuses an output whose elements overlap each other or an input."""
    extent = out.itemsize
    for stride, length in sorted(zip(out.strides, out.shape)):
        if out.size and length > 1 and stride < extent:
            raise ValueError(f"elements of {name} overlap: it has strides {out.strides}")
        extent += stride * (length - 1)
    for other, array in inputs.items():
        if np.shares_memory(out, array):
            raise ValueError(f"{name} and {other} overlap")


class _AttendBlock:
    """Partial states of a plan with values of one dimension. One job at a time uses it."""

    def __init__(self, sizes, dim):
        self._limits = _AttendLimits(getattr(sizes, "attention", sizes), getattr(sizes, "join_count", 0), dim)
        self._memory, self._job = _AttendMemory(), None

    def memory(self, worker_count):
        """Memory for a run. It is placed again for more workers, and after a run that was given up."""
        if self._job is not None and self._job() is not None:
            raise PtowspError(Status.BUSY, "job: another one of the plan's runs in the same memory")
        if self._job is not None or self._memory.worker_capacity < worker_count:
            self._limits.worker_count, size = worker_count, ctypes.c_uint64()
            _plan(_lib.attend_size, self._limits, ctypes.byref(size))
            self._block = _block(size.value)
            _plan(_lib.attend_place, self._limits, _at(self._block), size.value, self._memory)
        return self._memory

    def lend(self, job):
        self._job = None if job is None else weakref.ref(job)


class AttendJob(_Runs):
    """A plan with arrays, for the library's attention kernels (section 10). Made by AttentionPlan.attend_job().

    queries        float32 [query tokens, query heads, key dim], not scaled
    keys, values   [pages, page size, heads, dim], or [tokens, heads, dim]. Values may be of another dim, and a part
                   of keys (MLA: one head, values=keys[..., :512])
    kv_type        "f32", "f16" or "i8": default, by dtype; "bf16": uint16; "q8_0", "q4_0": uint8, blocks of 32
                   elements, and dim their bytes
    key_scales, value_scales   of "i8": float32, of the shape of keys without dim, with the same strides
    pages          int32 or uint32 [sequences, pages]: page tables. Or [sequences]: a sequence is one page of any
                   size, by default page 0, 1, ...; in [tokens, heads, dim] it begins at that token, by default
                   after the one before
    page_starts    int32 or uint32 [sequences] or [sequences + 1] (CSR): where in pages [any] a table begins
    query_starts   int32 or uint32 [sequences] or [sequences + 1]: the first query token of a sequence; default:
                   after the one before
    out            float32 [query tokens, query heads, value dim]; default: a new array of zeros
    lse            float32 [query tokens, query heads], the log-sum-exp of rows; default: not written
    scale          of scores; 0: 1 / sqrt(key dim)
    cap            soft cap of scores; 0: none
    sinks, slopes  float32 [query heads]: attention sinks, slopes of ALiBi
    mask           uint32 [query tokens, words]: bit t % 32 of word t // 32 says that a query token sees the KV token
                   mask_starts[sequence] + t. Of bools: numpy.packbits(mask, 1, "little").view(numpy.uint32)
    mask_starts    int32 or uint32 [sequences]; default: 0
    stealing       workers that are done take units of others

    All axes but the last of queries, keys, values and outputs, those of scales and lse, and the first of page tables
    have any strides from 0; other arrays are contiguous. Rows of sequences without KV are not written. Each run
    checks the plan and all indices first. Arrays are not to be changed while it is under way.
    """

    def __init__(
        self,
        plan,
        queries,
        keys,
        values,
        *,
        kv_type=None,
        key_scales=None,
        value_scales=None,
        pages=None,
        page_starts=None,
        query_starts=None,
        out=None,
        lse=None,
        scale=0,
        cap=0,
        sinks=None,
        slopes=None,
        mask=None,
        mask_starts=None,
        stealing=False,
    ):
        super().__init__(plan)
        if isinstance(plan, PrefixPlan) and query_starts is not None:
            raise ValueError("query_starts is given, but requests of a prefix plan are one after another")
        self._kept = {}  # arrays that the library reads
        self._cache, self._step = _AttendCache(), _AttendStep(plan=ctypes.addressof(plan._c))
        self._step.config = ctypes.addressof(plan._config)
        self._step.prefix = ctypes.addressof(plan._whole) if isinstance(plan, PrefixPlan) else None
        self._c = _AttendJob(ctypes.addressof(self._cache), ctypes.addressof(self._step), is_stealing=bool(stealing))
        key_dim, value_dim = self._set_cache(keys, values, kv_type)
        self._set_scales(key_scales, value_scales)
        self._set_pages(pages, page_starts)
        heads = self._plan._config.kv_head_count * plan._c.group
        self._set_rows("queries", "query", queries, (-1, heads, key_dim))
        self._tokens = len(self._kept["queries"])
        self._set_terms(scale, cap, sinks, slopes, mask, heads)
        self._set("query_starts", query_starts, _INDICES, (-1,))
        self._set("mask_starts", mask_starts, _INDICES, (-1,))
        inputs = dict(self._kept)
        shape = self._tokens, heads, value_dim
        self.out, self.lse = np.zeros(shape, np.float32) if out is None else out, lse
        self._set_rows("outputs", "output", self.out, shape, name="out", out=True)
        _check_output(self.out, "out", inputs)
        if self._set("lse", lse, np.float32, shape[:2], out=True, strided=True) is not None:
            self._step.lse_token_stride, self._step.lse_head_stride = _strides(lse, "lse", 2)
            _check_output(lse, "lse", {**inputs, "out": self.out})
        self._block = plan._attend_blocks.setdefault(value_dim, _AttendBlock(plan._sizes, value_dim))

    def _set(self, field, value, dtypes, shape, structure=None, name=None, **kind):
        """Sets a pointer of the step or the cache, None: NULL. Returns a view, which keeps its shape and memory."""
        if value is not None or field in ("queries", "keys", "values"):
            value = _array(value, dtypes, name or field, shape, **kind)
            value = self._kept[field] = value.view(np.uint32 if dtypes is _INDICES else value.dtype)
            setattr(structure or self._step, field, _at(value))
        return value

    def _set_rows(self, field, prefix, value, shape, name=None, out=False):
        """Sets queries or outputs, and their strides."""
        rows = self._set(field, value, np.float32, shape, name=name, out=out, strided=True)
        token, head = _strides(rows, name or field, 2)
        setattr(self._step, prefix + "_token_stride", token)
        setattr(self._step, prefix + "_head_stride", head)

    def _set_cache(self, keys, values, kv_type):
        """Sets keys and values. Returns their dimensions."""
        cache, keys = self._cache, np.asarray(keys)
        self._kv_type = _kv_type(keys.dtype, kv_type)
        dtype, block, size = _KV_TYPES[self._kv_type]
        cache.type = [*_KV_TYPES].index(self._kv_type)
        shape = (-1,) * (2 if keys.ndim == 4 else 1) + (self._plan._config.kv_head_count,)
        for name, value in ("key", keys), ("value", values):
            array = self._set(name + "s", value, dtype, (*shape, -1), cache, strided=True)
            shape, row = array.shape[:-1], array.shape[-1] * dtype.itemsize
            if row % size:
                raise ValueError(f"{name}s has rows of {row} bytes, not whole blocks of {size}")
            strides = _strides(array, name + "s", len(shape), size, block)
            setattr(cache, name + "_strides", _AttendStrides(strides[0], *strides[-2:]))
            setattr(cache, name + "_dim", _int(row // size * block, name + " dim"))
        return cache.key_dim, cache.value_dim

    def _set_scales(self, key_scales, value_scales):
        shape = self._kept["keys"].shape[:-1]
        if self._kv_type != "i8":
            if key_scales is not None or value_scales is not None:
                raise ValueError(f"key_scales and value_scales are of i8, not {self._kv_type}")
            return
        strides = []
        for name, value in ("key_scales", key_scales), ("value_scales", value_scales):
            if value is None:
                raise ValueError(f"{name} is None, and keys are i8")
            scales = self._set(name, value, np.float32, shape, self._cache, strided=True)
            strides.append(_strides(scales, name, len(shape)))
        if strides[0] != strides[1]:
            raise ValueError("key_scales and value_scales have different strides")
        self._cache.scale_strides = _AttendStrides(strides[0][0], *strides[0][-2:])

    def _set_pages(self, pages, page_starts):
        """Sets page tables; without them, or with one page for each sequence, page_size stays 0."""
        keys = self._kept["keys"]
        is_table = page_starts is None and pages is not None and np.ndim(pages) != 1
        if is_table or page_starts is not None:
            if keys.ndim != 4:
                raise ValueError(f"pages are page tables, and keys of shape {keys.shape} has none")
            self._cache.page_size = _int(keys.shape[1], "the page size", 1)
        pages = self._set("pages", pages, _INDICES, (-1, -1) if is_table else (-1,), strided=is_table)
        if page_starts is not None and pages is None:
            raise ValueError("page_starts is given, and pages is not")
        self._set("page_starts", page_starts, _INDICES, (-1,))
        self._step.page_stride = _strides(pages, "pages", 1)[0] if is_table else 1

    def _set_terms(self, scale, cap, sinks, slopes, mask, heads):
        for name, value in ("scale", scale), ("cap", cap):
            number = _number(value, name)
            if not abs(number) < 2.0**127 or (name == "cap" and number < 0):
                raise ValueError(f"{name} is {value}")
            setattr(self._step, name, number)
        self._set("sinks", sinks, np.float32, (heads,))
        self._set("slopes", slopes, np.float32, (heads,))
        if self._set("mask", mask, np.uint32, (self._tokens, -1)) is not None:
            self._step.mask_stride = self._kept["mask"].shape[1]

    def _start(self, worker_count):
        """Checks everything against the batch of the plan, which update() may have changed."""
        plan, step, kept = self._plan, self._step, self._kept
        self._c.memory = self._block.memory(worker_count)
        lengths, queries = plan._batch.kept
        kv = lengths.astype(np.int64)
        counts = np.ones_like(kv) if queries is None else queries.astype(np.int64)
        step.batch = ctypes.addressof(plan._batch)
        first = kv if kept["keys"].ndim == 3 else np.ones_like(kv)
        self._starts = [(np.cumsum(count) - count).astype(np.uint32) for count in (counts, first)]
        for name, default in zip(("query_starts", "pages"), self._starts):
            if name not in kept:
                setattr(step, name, _at(default))
        for name in ("query_starts", "mask_starts", "page_starts" if "page_starts" in kept else "pages"):
            if name in kept and len(kept[name]) < len(kv):
                raise ValueError(f"{name} has {len(kept[name])} sequences, and the plan {len(kv)}")
        if isinstance(plan, PrefixPlan):
            plan.check()
        if self._cache.page_size == 0:
            self._check_pages(kv, counts)
            cache = self._cache
            if not (cache.key_strides.page or cache.value_strides.page or cache.scale_strides.page):  # all have the same KV
                self._starts[1][:] = 0
                step.pages = _at(self._starts[1])
        _plan(_lib.attend_check, self._c)
        starts = kept.get("query_starts", self._starts[0])[: len(kv)].astype(np.int64)
        self._refuse((counts > 0) & (starts + counts > self._tokens), f"query tokens outside of {self._tokens}")
        if self._cache.page_size:
            self._check_pages(kv, counts)
        self._block.lend(self)

    def _check_pages(self, kv, counts):
        """Refuses a token outside of keys that a query may see."""
        keys, pages = self._kept["keys"], self._kept.get("pages", self._starts[1])
        size, window = self._cache.page_size, self._plan._config.window
        if size == 0:
            first, room = pages[: len(kv)].astype(np.int64), keys.shape[:-2]
            is_outside = first + kv > room[0] if keys.ndim == 3 else (first >= room[0]) | (kv > room[1])
            return self._refuse((kv > 0) & is_outside, f"KV tokens outside of keys, {room}")
        begins = np.maximum(kv - counts + 1 - window, 0) // size if window else np.zeros_like(kv)
        ends, sinks = -(-kv // size), np.zeros_like(kv)
        if self._plan._config.positions:
            seen = [self._seen(i, counts[i]) for i in range(len(kv))]
            sinks, ends = ([-(-row[field] // size) for row in seen] for field in (0, 2))
            begins = [begin // size for _, begin, _ in seen]
        starts = self._kept.get("page_starts")
        for sequence, (sink_end, begin, end) in enumerate(zip(sinks, begins, ends)):
            table = pages[sequence] if starts is None else pages[int(starts[sequence]) :]
            if end > len(table):
                raise ValueError(f"sequence {sequence} has {end} pages, and its table in pages {len(table)}")
            seen = np.concatenate((table[:sink_end], table[begin:end]))
            if len(seen) and seen.max() >= len(keys):
                raise ValueError(f"sequence {sequence} has page {seen.max()}, and keys has {len(keys)}")

    def _seen(self, sequence, count):
        """What the query tokens of a sequence see together: sinks, begin, end."""
        if count == 0:
            return 0, 0, 0
        sinks, begin, _ = self._plan.see(sequence)
        end = self._plan.see(sequence, int(count) - 1)[2]
        return (sinks, begin, end) if begin < end else (sinks, sinks, sinks)

    def _refuse(self, is_wrong, what):
        if is_wrong.any():
            raise ValueError(f"sequence {is_wrong.argmax()} has {what}")

    def _stop(self):
        self._block.lend(None)

    def _work(self, worker, worker_count):
        _plan(_lib.attend_run_worker, self._c, worker, worker_count)

    def _work_on(self, core):
        core.call(_lib.attend_run, core.handle, ctypes.byref(self._c))


class Scratch:
    """Partial states of split tiles (sections 8 and 9), which units write and merges read.

    states    PARTIAL [slots, rows]: m, the largest score; l, the sum of exp(score - m)
    accs      float32 [slots, rows, dim]: the sum of exp(score - m) * v. Of a normalised row o with log-sum-exp
              lse the state is m = lse, l = 1, acc = o.
    """

    def __init__(self, plan, dim):
        c = _attention_struct(plan)
        self._plan, self.dim = plan, _int(dim, "dim", 1)
        self.states = np.zeros((c.slot_capacity, c.slot_rows), PARTIAL)
        self.states["m"] = -np.inf
        self.accs = np.zeros((c.slot_capacity, c.slot_rows, self.dim), np.float32)

    def merge(self, merge, out, lse=None):
        """Merges the tile of an element of plan.merges, or its rows of the tile: merge_rows().

        out    float32 [rows, dim], rows of the tile: query tokens * group
        lse    float32 [rows], the log-sum-exp; default: not written
        """
        index = int(_element(merge, "merge", MERGE)["index"])
        if merge["flags"] & ROWS:
            index = int(np.argmax(self._plan.merges == merge)) if len(self._plan.merges) else 0
        work = _same(self._plan.merges, index, merge, "merge")
        self._rows(_lib.attention_merge_row, (), work, out, lse, rows=merge_rows(merge, len(out)))

    def join(self, join, out, lse=None):
        """Merges the rows of an element of joins of a PrefixPlan: out float32 [query tokens * group, dim]."""
        plan = self._plan
        if not isinstance(plan, PrefixPlan):
            raise TypeError("joins are of prefix plans")
        position = _int(_element(join, "join", JOIN)["position"], "position", 0, len(plan.requests) - 2)
        index = int(plan.requests["join"][position]) + int(join["head"])
        work = _same(plan.joins, index, join, "join")
        tokens = int(plan.requests["token_begin"][position + 1] - plan.requests["token_begin"][position])
        self._rows(_lib.prefix_join_row, (ctypes.byref(plan._whole),), work, out, lse, tokens * plan.group)

    def _rows(self, function, before, work, out, lse, row_count=None, rows=None):
        out = _array(out, np.float32, "out", (-1, self.dim), out=True)
        if lse is not None:
            lse = _array(lse, np.float32, "lse", (len(out),), out=True)
        most = self._plan.slot_rows if row_count is None else row_count
        if len(out) > most:
            raise ValueError(f"out has {len(out)} rows of {most}")
        c = _AttentionScratch(_at(self.states), _at(self.accs), self._plan.slot_rows, self.dim)
        address, stride, begin = _at(work), 4 * self.dim, _at(out)
        for row in range(len(out)) if rows is None else rows:
            value = function(*before, ctypes.byref(c), address, row, begin + row * stride)
            if lse is not None:
                lse[row] = value


def merge_rows(merge, row_count):
    """The rows of a tile of row_count rows that a merge is of, as a range: all, unless lanes share the merge."""
    if not merge["flags"] & ROWS:
        return range(row_count)
    first, count = int(merge["index"]) & 0xFFFF, int(merge["index"]) >> 16
    return range(min(first, row_count), min(first + count, row_count))


def _element(element, name, *dtypes):
    """A record of a plan's array."""
    if not isinstance(element, np.void) or element.dtype not in dtypes:
        raise TypeError(f"{name} must be an element of the plan's, not {type(element).__name__}")
    return element


def _same(array, index, element, name):
    """The element at an index, where a record has to be a copy of it, as an array of one."""
    if index >= len(array) or element != array[index]:
        raise ValueError(f"{name} is not an element of this plan")
    return array[index : index + 1]


def merge_partials(m, l, acc, *, out=None):
    """Merges the parts of rows (section 8). Returns (out, lse): float32 [rows, dim] and [rows].

    m      float32 [parts, rows], the largest scores; or the log-sum-exp (natural) of normalised rows
    l      float32 [parts, rows], the sums of exp(score - m); None: 1, for normalised rows
    acc    float32 [parts, rows, dim]
    """
    acc = _array(acc, np.float32, "acc", (-1, -1, -1))
    parts, rows, dim = acc.shape
    states = np.empty((parts, rows), PARTIAL)
    states["m"] = _array(m, np.float32, "m", (parts, rows))
    states["l"] = 1 if l is None else _array(l, np.float32, "l", (parts, rows))
    out = _out(out, np.float32, "out", (rows, dim))
    if np.may_share_memory(out, acc):
        raise ValueError("out and acc overlap")
    lse = np.empty(rows, np.float32)
    for row in range(rows):
        lse[row] = _lib.merge_partials(
            _at(states) + row * 8, _at(acc) + row * dim * 4, parts, rows, dim, _at(out) + row * dim * 4
        )
    return out, lse


# -- mixture of experts -----------------------------------------------------------------------------


class MoeOrder(typing.NamedTuple):
    """Pairs (token, k) in the order of their experts (ptowsp_moe_order); pair = token * top_k + k."""

    counts: np.ndarray  # uint32 [experts], pairs of each
    offsets: np.ndarray  # uint32 [experts + 1], first row of each
    pairs: np.ndarray  # uint32 [rows], pair of each row; NO_ROW in padding
    rows: np.ndarray  # uint32 [tokens, top_k], row of each pair; NO_ROW: dropped
    block_experts: np.ndarray  # int32 [blocks], expert of each block of rows
    pair_count: int
    padding_share: float


def _moe_routes(ids, experts, block_rows):
    ids = _array(ids, np.int32, "ids", (-1, -1))
    routes = _MoeRoutes(_at(ids), *ids.shape, _int(experts, "experts"), _int(block_rows, "block_rows"))
    routes.kept = ids
    return routes


def moe_sort(ids, experts, *, block_rows=0, context=None):
    """Sorts tokens by expert, stably (section 11). Returns a MoeOrder.

    ids          int32 [tokens, top_k], experts; below 0: dropped
    block_rows   an expert's rows are padded to a multiple of it
    context      a Context, for many tokens
    """
    routes = _moe_routes(ids, experts, block_rows)
    if routes.expert_count > _EXPERT_MAX:
        raise ValueError(f"experts is {routes.expert_count}, which is not in 1 to {_EXPERT_MAX}")
    capacity = _int(_lib.moe_row_bound(ctypes.byref(routes)), "the number of rows")
    counts, offsets = np.empty(routes.expert_count, np.uint32), np.empty(routes.expert_count + 1, np.uint32)
    pairs, rows = np.empty(capacity, np.uint32), np.empty(routes.kept.shape, np.uint32)
    blocks = np.empty(capacity // max(1, routes.block_rows), np.int32)
    order = _MoeOrder(*map(_at, (counts, offsets, pairs, rows, blocks)), capacity)
    if context is None:
        _plan(_lib.moe_sort, routes, order)
    else:
        core = _context_core(context)
        scratch = np.empty(4 * _lib.context_lane_count(core.handle) * len(offsets), np.uint32)
        with core.used():
            info = _PlanInfo()
            core.check(
                _lib.moe_sort_parallel(
                    core.handle,
                    ctypes.byref(routes),
                    ctypes.byref(order),
                    _at(scratch),
                    len(scratch),
                    ctypes.byref(info),
                )
            )
    return MoeOrder(
        counts,
        offsets,
        pairs[: order.row_count],
        rows,
        blocks[: order.block_count],
        order.pair_count,
        order.padding_share,
    )


def moe_combine(rows, made, gates=None, *, out=None):
    """Adds up what the experts made: out[token] = sum over k of gates[token, k] * made[rows[token, k]].

    rows     uint32 [tokens, top_k] of moe_sort, or a range of its tokens
    made     float32 [rows, dim]
    gates    float32 [tokens, top_k]; default 1
    out      float32 [tokens, dim]; default a new array, which is returned
    """
    rows, made = _array(rows, np.uint32, "rows", (-1, -1)), _array(made, np.float32, "made", (-1, -1))
    gates = None if gates is None else _array(gates, np.float32, "gates", rows.shape)
    out = _out(out, np.float32, "out", (len(rows), made.shape[1]))
    if np.may_share_memory(out, made):
        raise ValueError("out and made overlap")
    largest = int(np.where(rows == NO_ROW, 0, rows).max(initial=0))
    if largest >= len(made) and np.any(rows != NO_ROW):
        raise ValueError(f"rows has {largest}, and made has {len(made)} rows")
    _lib.moe_combine(_at(rows), rows.shape[1], _at(gates), _at(made), made.shape[1], 0, len(rows), _at(out))
    return out


class MoePlan(_Shown):
    """How the tokens of experts are split over lanes (ptowsp_moe_plan), made by moe_plan().

    units        MOE_UNIT [units]: batch, expert, token_start, token_count, column_part, flags
    unit_begin   uint32 [lanes + 1]
    lane_costs   float64 [lanes], predicted

    Numbers: lane_count, cost_max, cost_mean, column_parts.
    """

    def __init__(self, config, counts, offsets):
        lanes, sizes = config.lane_count, _MoeSizes()
        self._config, self._kept, self._batch = config, (counts, offsets), _MoeBatch(_at(counts), _at(offsets))
        _plan(_lib.moe_size, self._batch, config, sizes)
        capacity = _int(sizes.unit_count, "the number of units")
        self._units, self.unit_begin = np.empty(capacity, MOE_UNIT), np.empty(lanes + 1, np.uint32)
        self.lane_costs = np.empty(lanes, np.float64)
        self._c = _MoePlan(_at(self._units), _at(self.unit_begin), _at(self.lane_costs), capacity)
        _plan(_lib.moe_generate, self._batch, config, self._c)
        for array in (self._units, self.unit_begin, self.lane_costs):
            array.flags.writeable = False
        self.units = self._units[: self._c.unit_count]

    def lane_units(self, lane):
        """The units of a lane."""
        lane = _int(lane, "lane", 0, self._c.lane_count - 1)
        return self.units[self.unit_begin[lane] : self.unit_begin[lane + 1]]

    def worker_units(self, worker, worker_count):
        """The units of worker `worker` of `worker_count`: those of a block of lanes."""
        begin, end = _block_of(self._c.lane_count, worker, worker_count)
        return self.units[self.unit_begin[begin] : self.unit_begin[end]]

    def columns(self, part, column_count, block_columns=1):
        """The range of output columns of a part, of column_count in blocks: (begin, end)."""
        part = _int(part, "part", 0, self._c.column_parts - 1)
        block = _int(block_columns, "block_columns", 1)
        blocks = -(-_int(column_count, "column_count") // block)
        ends = [blocks * p // self._c.column_parts * block for p in (part, part + 1)]
        return tuple(min(end, column_count) for end in ends)

    def check(self):
        """Proves the plan (ptowsp_moe_check)."""
        _plan(_lib.moe_check, self._batch, self._config, self._c)

    def run(self, kernel, context=None):
        """Calls kernel(unit, lane) for all units, as ChunkPlan.run()."""
        _dispatch(self.units, MOE_UNIT, kernel, context)

    def __str__(self):
        return _printed(_lib.moe_print, ctypes.byref(self._c))

    def __repr__(self):
        return f"<MoePlan: {self._c.unit_count} units, {self._c.lane_count} lanes>"

    def _repr_svg_(self):
        return self.svg()

    def svg(self, **options):
        """A picture of the lanes' predicted costs. Options as of Run.export()."""
        costs = self.lane_costs
        scale = 10.0 ** max(0, math.ceil(4 - math.log10(self._c.cost_max))) if self._c.cost_max else 1
        spans = [_Span(0, round(cost * scale), lane, 0) for lane, cost in enumerate(costs) if cost > 0]

        def label(i):
            units = self.lane_units(spans[i].lane)
            return f"units={len(units)} experts={len(np.unique(units['expert']))} tokens={units['token_count'].sum()}"

        return _draw(spans, ["experts"], label, {"title": "MoE plan", **options})


_add_numbers(MoePlan, "lane_count cost_max cost_mean column_parts")


def moe_plan(counts, offsets=None, *, lanes, unit_tokens=0, block_rows=0, cost=None, column_parts=0):
    """Plans the units of experts (section 11). Returns a MoePlan.

    counts        uint32 [experts] or [batches, experts], tokens of each
    offsets       uint32 [experts + 1] or [batches, experts + 1], from which token_start counts; default: from the
                  first token of each expert
    unit_tokens   of a unit, at most
    cost          {"per_unit", "per_token", "per_expert": number}
    column_parts  into which the output columns of an expert may be divided, at most: for steps of few tokens
    """
    flat = np.ndim(counts) == 1
    counts = _array(counts, np.uint32, "counts", (-1,) if flat else (-1, -1))
    batches, experts = (1, *counts.shape) if flat else counts.shape
    if offsets is not None:
        offsets = _array(offsets, np.uint32, "offsets", (experts + 1,) if flat else (batches, experts + 1))
    if not batches:
        raise ValueError("counts has no batch")
    config = _MoeConfig(
        _int(batches, "batches"),
        experts,
        _int(lanes, "lanes"),
        _int(unit_tokens, "unit_tokens"),
        _int(block_rows, "block_rows"),
        _costs(cost, _MoeCost, "cost"),
        _int(column_parts, "column_parts"),
    )
    return MoePlan(config, counts, offsets)


MoeBalance = collections.namedtuple("MoeBalance", [name for name, _ in _MoeBalance._fields_])
MoeBalance.__doc__ = "How loads are spread over experts and ranks (ptowsp_moe_balance)."

MoeMoved = collections.namedtuple("MoeMoved", [name for name, _ in _MoeMoved._fields_])
MoeMoved.__doc__ = "What moves of replicas did, in loads of the busiest rank (ptowsp_moe_moved)."


def _tuple_of(kind, c):
    return kind(*[getattr(c, name) for name in kind._fields])


def moe_balance(counts, *, ranks=1, block_rows=0):
    """Looks at counts, uint32 [experts]: a MoeBalance."""
    counts, balance = _array(counts, np.uint32, "counts", (-1,)), _MoeBalance()
    _plan(_lib.moe_look, _at(counts), len(counts), _int(ranks, "ranks"), _int(block_rows, "block_rows"), balance)
    return _tuple_of(MoeBalance, balance)


def moe_history_add(loads, counts, decay):
    """Adds a step to a history: loads = loads * decay + counts, in place; float32 and uint32 [experts]."""
    loads = _array(loads, np.float32, "loads", (-1,), out=True)
    counts = _array(counts, np.uint32, "counts", loads.shape)
    _plan(_lib.moe_history_add, _at(loads), len(loads), _at(counts), _number(decay, "decay"))


_PATTERNS = "balanced spread hot_set hot_rank zero_rank ragged rotating burst skewed"


def moe_routes(pattern, *, tokens, top_k, experts, ranks=0, step=0, seed=0, skew=0):
    """Generates routes, int32 [tokens, top_k], by a pattern of ptowsp_moe_traffic: "skewed", "hot_set", ..."""
    traffic = _MoeTraffic(
        _choice(pattern, _PATTERNS, "pattern"),
        _int(tokens, "tokens"),
        _int(top_k, "top_k"),
        _int(experts, "experts", 0, _EXPERT_MAX),
        _int(ranks, "ranks"),
        _int(step, "step"),
        _int(seed, "seed", 0, 2**64 - 1),
        _number(skew, "skew"),
    )
    ids, scratch = np.empty((traffic.token_count, traffic.top_k), np.int32), np.empty(
        traffic.expert_count + 1, np.uint64
    )
    _plan(_lib.moe_routes_generate, traffic, _at(scratch), _at(ids))
    return ids


class Placement:
    """Replicas of experts on ranks (ptowsp_moe_placement), made by place_experts(); int32, -1 behind the replicas.

    replica_experts   [layers, replicas], the expert that a replica is; rank r has replicas / ranks of them, in order
    expert_counts     [layers, experts], replicas of an expert
    expert_replicas   [layers, experts, replicas - experts + 1]
    """

    def __init__(self, cluster, layers):
        experts, replicas = cluster.expert_count, cluster.replica_count
        self._cluster, self._stride = cluster, max(1, replicas - experts + 1)
        self.replica_experts = np.empty((layers, replicas), np.int32)
        self.expert_counts = np.empty((layers, experts), np.int32)
        self.expert_replicas = np.empty((layers, experts, self._stride), np.int32)
        self._scratch = _block(_lib.moe_scratch_bytes(ctypes.byref(cluster)))

    def _loads(self, loads):
        """float32 [layers, experts]; [experts] if there is one layer."""
        loads = (
            loads if np.ndim(loads) != 1 else np.asarray(loads)[None] if isinstance(loads, np.ndarray) else [loads]
        )
        return _array(loads, np.float32, "loads", self.expert_counts.shape)

    def _c(self, layer):
        arrays = self.replica_experts, self.expert_counts, self.expert_replicas
        for array, name in zip(arrays, ("replica_experts", "expert_counts", "expert_replicas")):
            _array(array[layer], np.int32, name, array.shape[1:], out=True)
        return _MoePlacement(*[_at(array[layer]) for array in arrays], self._stride)

    def rank_loads(self, loads):
        """The loads of ranks, float64 [layers, ranks]; replicas of an expert share its load."""
        share = self._loads(loads).astype(np.float64) / np.maximum(self.expert_counts, 1)
        by_replica = np.take_along_axis(share, self.replica_experts.astype(np.int64), axis=1)
        return by_replica.reshape(len(share), self._cluster.rank_count, -1).sum(axis=2)

    def move(self, loads, moves):
        """Improves each layer by at most `moves` replicas that become another expert, in place: [MoeMoved]."""
        loads, moves = self._loads(loads), _int(moves, "moves")
        result = []
        for layer in range(len(loads)):
            placement, moved = self._c(layer), _MoeMoved()
            _plan(
                _lib.moe_move,
                self._cluster,
                _at(loads[layer]),
                moves,
                _at(self._scratch),
                self._scratch.nbytes,
                placement.replica_experts,
                None,
                moved,
            )
            _plan(_lib.moe_index, self._cluster, placement)
            result.append(_tuple_of(MoeMoved, moved))
        return result

    def share(self, ids, *, layer=0, out=None):
        """Experts of tokens as replicas, dealt evenly: int32 [tokens, top_k] each; below 0: dropped.

        Sort the result with moe_sort(..., experts=replicas). `out` may be `ids`.
        """
        routes = _moe_routes(ids, self._cluster.expert_count, 0)
        placement = self._c(_int(layer, "layer", 0, len(self.expert_counts) - 1))
        out = _out(out, np.int32, "out", routes.kept.shape)
        if out is not routes.kept and np.may_share_memory(out, routes.kept):
            raise ValueError("out and ids overlap")
        _plan(_lib.moe_share, routes, placement, _at(np.empty(routes.expert_count, np.uint32)), _at(out))
        return out


def place_experts(loads, *, replicas, ranks, groups=0, nodes=0, policy="eplb", spread=False):
    """Places replicas of experts by their loads, as DeepSeek's EPLB does (section 11). Returns a Placement.

    loads     float32 [layers, experts], or [experts] for one layer
    groups    of neighbouring experts, which stay together on a node
    policy    "eplb": "hierarchical" where nodes divide groups, else "global"
    spread    no rank has an expert twice, which EPLB allows; experts without load get equal numbers of replicas
    """
    flat = np.ndim(loads) == 1
    loads = _array(loads, np.float32, "loads", (-1,) if flat else (-1, -1))
    layers, experts = (1, *loads.shape) if flat else loads.shape
    cluster = _MoeCluster(
        experts,
        _int(replicas, "replicas", 0, _EXPERT_MAX),
        _int(groups, "groups"),
        _int(nodes, "nodes"),
        _int(ranks, "ranks"),
        _choice(policy, "eplb hierarchical global", "policy"),
        bool(spread),
    )
    if experts > _EXPERT_MAX:
        raise ValueError(f"loads has {experts} experts, which are more than {_EXPERT_MAX}")
    placement = Placement(cluster, layers)
    if layers:
        _plan(
            _lib.moe_rebalance,
            cluster,
            _at(loads),
            layers,
            _at(placement._scratch),
            placement._scratch.nbytes,
            placement._c(0),
        )
    return placement


def rebalance_experts(weight, num_replicas, num_groups, num_nodes, num_gpus):
    """EPLB's function by its name, over float32 [layers, experts].

    Returns (physical_to_logical_map [layers, replicas], logical_to_physical_map [layers, experts, X],
    expert_count [layers, experts]), int32.
    """
    placement = place_experts(weight, replicas=num_replicas, ranks=num_gpus, groups=num_groups, nodes=num_nodes)
    return placement.replica_experts, placement.expert_replicas, placement.expert_counts


# -- prefix plans -----------------------------------------------------------------------------------

PREFIX_NODE, PREFIX_SEGMENT, PREFIX_REQUEST = (
    np.dtype((np.record, np.dtype(c))) for c in (_PrefixNode, _PrefixSegment, _PrefixRequest)
)


class PrefixTree:
    """Which KV requests share (section 12), made by from_blocks() or from_nodes().

    order    uint32 [requests], request at each position
    common   uint32 [requests], KV tokens shared with the position before
    nodes    PREFIX_NODE [nodes]: parent, first, count, kv_begin, kv_end, is_shared (by the last plan)
    """

    def __init__(self, build, given, batch, blocks, ordered):
        limits = _PrefixLimits(batch.sequence_count, blocks)
        size = _lib.prefix_tree_bytes(ctypes.byref(limits))
        self._memory, self._c = _block(size), _PrefixTree()
        status = _lib.prefix_tree_place(ctypes.byref(limits), _at(self._memory), size, ctypes.byref(self._c))
        if status != Status.OK:
            raise PtowspError(status, f"prefix tree: {_lib.status_text(status).decode()}")
        self._c.is_ordered = bool(ordered)
        _plan(build, given, self._c)
        self._batch, c, u32 = batch, self._c, np.dtype(np.uint32)
        self.order = _view(self._memory, c.order, u32, c.request_count)
        self.common = _view(self._memory, c.common, u32, c.request_count)
        self.nodes = _view(self._memory, c.nodes, PREFIX_NODE, c.node_count)

    @classmethod
    def from_blocks(cls, kv_lengths, block_ids, block_tokens, block_begin=None, *, query_lengths=None, ordered=False):
        """A tree by ids of KV blocks: equal ids are equal KV.

        kv_lengths     int32 [requests]
        block_ids      a uint64 or int64 array for each request; or with block_begin, uint64 [requests + 1], one
                       array of all: request r has block_begin[r] to block_begin[r + 1]
        block_tokens   of a block
        ordered        requests keep their order, and only neighbours share
        """
        batch = _attention_batch(kv_lengths, query_lengths)
        if block_begin is None:
            if len(block_ids) != batch.sequence_count:
                raise ValueError(f"block_ids has {len(block_ids)} requests of {batch.sequence_count}")
            rows = [_block_ids(ids, f"block_ids[{i}]") for i, ids in enumerate(block_ids)]
            begin = np.array([0, *itertools.accumulate(map(len, rows))], np.uint64)
            ids = np.concatenate(rows) if rows else np.empty(0, np.uint64)
        else:
            ids = _block_ids(block_ids, "block_ids")
            begin = _array(block_begin, np.uint64, "block_begin", (batch.sequence_count + 1,))
        if len(begin) and (int(begin.max()) > len(ids)):
            raise ValueError(f"block_begin has {begin.max()}, and there are {len(ids)} block_ids")
        most = max((int(b) - int(a) for a, b in zip(begin, begin[1:])), default=0)
        given = _PrefixBatch(batch, _at(ids), _at(begin), _int(block_tokens, "block_tokens"))
        return cls(_lib.prefix_build, given, batch, max(0, most), ordered)

    @classmethod
    def from_nodes(cls, kv_lengths, parents, node_tokens, request_nodes, *, query_lengths=None, ordered=False):
        """A tree that is known, such as that of a radix cache.

        parents         uint32 [nodes], or NO_NODE
        node_tokens     uint32 [nodes], KV tokens of a node
        request_nodes   uint32 [requests], the node where the KV that others may share ends, or NO_NODE
        """
        batch = _attention_batch(kv_lengths, query_lengths)
        parents = _array(parents, np.uint32, "parents", (-1,))
        tokens = _array(node_tokens, np.uint32, "node_tokens", parents.shape)
        nodes = _array(request_nodes, np.uint32, "request_nodes", (batch.sequence_count,))
        given = _PrefixGiven(batch, _at(parents), _at(tokens), len(parents), _at(nodes))
        return cls(_lib.prefix_build_given, given, batch, len(parents), ordered)

    def plan(self, *, kv_lengths=None, query_lengths=None, **config):
        """Plans the requests of the tree: a PrefixPlan. Lengths default to the tree's; config as attention_plan()."""
        batch = self._batch if kv_lengths is None else _attention_batch(kv_lengths, query_lengths)
        if kv_lengths is None and query_lengths is not None:
            batch = _attention_batch(batch.kept[0], query_lengths)
        config, sizes = _attention_config(**config), _PrefixSizes()
        _plan(_lib.prefix_size, batch, config, self._c, sizes)
        return PrefixPlan(config, sizes, batch, self)


def _block_ids(ids, name):
    """uint64 [blocks]; int64 is read as such."""
    if isinstance(ids, np.ndarray) and ids.dtype == np.int64:
        ids = ids.view(np.uint64)
    return _array(ids, np.uint64, name, (-1,))


def prefix_plan(
    kv_lengths, block_ids, block_tokens, block_begin=None, *, query_lengths=None, ordered=False, **config
):
    """Plans a step whose requests share KV (cascade attention): PrefixTree.from_blocks(...).plan(**config)."""
    tree = PrefixTree.from_blocks(
        kv_lengths, block_ids, block_tokens, block_begin, query_lengths=query_lengths, ordered=ordered
    )
    return tree.plan(**config)


class PrefixPlan(AttentionPlan):
    """An AttentionPlan whose first parameter of units, `request`, is a segment (section 12), and also:

    segments   PREFIX_SEGMENT [segments]: request (whose KV is read), kv_begin, kv_end, token_begin, token_count, ...
    requests   PREFIX_REQUEST [requests + 1], by position; the last one ends the tokens
    tokens     uint32 [query tokens of the batch], in the order of segments' rows
    joins      JOIN [joins]: request, head, position, part_count

    Numbers: shared_count, kv_token_reads, flat_kv_token_reads, cost, flat_cost, time, flat_time.
    """

    _PLACE, _STRUCT = staticmethod(_lib.prefix_place), _PrefixPlan

    def __init__(self, config, sizes, batch, tree):
        super().__init__(config, sizes)
        self._tree = tree
        _plan(_lib.prefix_generate, batch, config, tree._c, self._whole)
        self._batch, w = batch, self._whole
        self.segments = self._array_at(w.segments, PREFIX_SEGMENT, w.segment_count)
        self.requests = self._array_at(w.requests, PREFIX_REQUEST, w.request_count + 1)
        self.tokens = self._array_at(w.tokens, np.dtype(np.uint32), w.token_count)
        self.joins = self._array_at(w.joins, JOIN, w.join_count)

    def update(self, kv_lengths, query_lengths=None):
        """Refused: make a plan of the tree for the new lengths."""
        raise TypeError("a prefix plan is made anew each step")

    def unit_tokens(self, unit):
        """The query tokens of the batch that the rows of a unit are of; row r is token r // group, head r % group."""
        index = _element(unit, "unit", UNIT, MERGE)["request"]
        segment = self.segments[_int(index, "the segment", 0, len(self.segments) - 1)]
        begin = int(unit["tile"]) * self.tile_tokens
        end = min(begin + self.tile_tokens, int(segment.token_count))
        return self.tokens[segment.token_begin + begin : segment.token_begin + end]

    def check(self):
        """Proves the plan (ptowsp_prefix_check)."""
        _plan(_lib.prefix_check, self._batch, self._config, self._tree._c, self._whole)

    def job(self, kernel, merge=None, join=None, *, stealing=False):
        """A Job; join(join, lane) merges the parts of a request and KV head, from all its segments."""
        return Job(self, kernel, merge, join, stealing)

    def run(self, kernel, merge=None, join=None, *, context=None, stealing=False):
        """Runs a job once: job(...).run(context)."""
        self.job(kernel, merge, join, stealing=stealing).run(context)

    def _query_tokens(self):
        return self.segments["token_count"].astype(np.int64)

    def __str__(self):
        return _printed(_lib.prefix_print, ctypes.byref(self._whole))


_add_numbers(PrefixPlan, "shared_count kv_token_reads flat_kv_token_reads cost flat_cost time flat_time", "_whole")

# -- programs and runs ------------------------------------------------------------------------------

_DTYPES = {
    name: (value, np.dtype(np.uint16 if name == "bf16" else dtype))
    for name, value, dtype in [
        ("f16", 1, "f2"),
        ("bf16", 2, "u2"),
        ("f32", 3, "f4"),
        ("f64", 4, "f8"),
        ("i8", 5, "i1"),
        ("i16", 6, "i2"),
        ("i32", 7, "i4"),
        ("i64", 8, "i8"),
        ("u8", 9, "u1"),
        ("u16", 10, "u2"),
        ("u32", 11, "u4"),
        ("u64", 12, "u8"),
        ("bool", 13, "?"),
    ]
}
_NUMPY_TYPES = {value: dtype for value, dtype in _DTYPES.values()}
_INDEX_TYPES = {_NUMPY_TYPES[value]: value for value in (7, 8, 11, 12)}  # of lengths and sparse rows
_DYNAMIC = -1
_STALLS = 16

_FORMATS = "perfetto chrome svg csv table usage_csv edges dot"
_REPORTS = "text json html"
_MODELS = "unit a2a3 a5 user 910b 950pr"
_MODEL_VALUES = (0, 1, 2, 4, 5)  # 3 is a function
_RECORDS = "none totals tasks edges"
_BINDINGS = "size symbol array lengths csr tensor plan work"


def _export_options(
    title=None, fold="none", short=False, clock_mhz=0, begin=0, end=0, width=0, lane_max=0, theme="auto"
):
    if title is not None and not isinstance(title, str):
        raise TypeError(f"title must be a string, not {type(title).__name__}")
    return _ExportOptions(
        None if title is None else title.encode(),
        _choice(fold, "none kernels loops", "fold"),
        bool(short),
        _int(clock_mhz, "clock_mhz"),
        _int(begin, "begin", 0, 2**64 - 1),
        _int(end, "end", 0, 2**64 - 1),
        _int(width, "width"),
        _int(lane_max, "lane_max"),
        _choice(theme, "auto light dark", "theme"),
    )


class Task(typing.NamedTuple):
    """A task as a cost function sees it."""

    axes: tuple  # its axis values
    tiles: tuple  # (rows, cols) of each tile
    scalars: tuple  # as unsigned integers


class Step(typing.NamedTuple):
    """A task of the critical path."""

    index: int
    label: str  # "attend request=3"
    lane: int
    start: int
    end: int
    stall: str  # why it did not start earlier


class Bounds(typing.NamedTuple):
    """Cycles that no schedule of the same tasks on the same lanes undercuts (ptowsp_run_bounds)."""

    makespan: int
    path: typing.Optional[int]  # the longest chain of dependencies; None: edges were not recorded
    work: dict  # {pool: its tasks' cycles / its lanes}; "" is the one pool
    links: int
    process: int
    channel: int
    largest: int  # of all these bounds


def _program_tables(handle):
    """The tables of a program (ptowsp_program_read), which live as long as it does."""
    tables = _lib.program_read(handle)
    if not tables:
        raise MemoryError("the tables of a program")
    return _ProgramTables.from_address(tables)


class Program:
    """A workload that is compiled from the text of a module (sections 18 to 20), with its schedule.

    text            of a module, or a saved program
    workload        the first to run; default: the last one
    schedule        directives, one per line, as ptowsp_schedule_print writes them: "dispatch work stealing over
                    8 lanes"; default: round robin over `lanes`
    lanes           without a schedule; default 1
    costs           {kernel: f}: of kernels of which the text says "cycles by a cost function", f(Task) -> cycles
    default_cycles  of kernels without cycles
    context         a Context; default: one of its own
    """

    def __init__(self, text, *, workload=None, schedule=None, lanes=None, costs=None, default_cycles=1, context=None):
        if not isinstance(text, str):
            raise TypeError(f"text must be a string, not {type(text).__name__}")
        core = _Core(1) if context is None else _context_core(context)
        self._failure, self._costs = [], []
        desc, first_line = self._parse_desc(costs, _int(default_cycles, "default_cycles", 1, 2**63 - 1)), None
        if not text.startswith("ptowsp program "):
            text, first_line = self._saved_text(core, desc, text, workload, schedule, lanes)
        elif not (workload is None and schedule is None and lanes is None):
            raise ValueError("a saved program has its workload and schedule")
        self.saved = text
        handle, data, place = ctypes.c_void_p(), text.encode(), _TextPlace()
        try:
            core.call(
                _lib.program_load,
                core.handle,
                data,
                len(data),
                ctypes.byref(desc),
                ctypes.byref(handle),
                ctypes.byref(place),
            )
        except PtowspError as error:
            if first_line is None or place.line < first_line:
                raise
            line, what = place.line - first_line + 1, error.text.split(": ", 1)[-1]
            raise PtowspError(error.status, f"schedule, line {line}: {what}", line) from None
        self._native = _Native(core, _lib.program_destroy, handle.value)
        self._names = dict(self._find_names(handle.value))

    @staticmethod
    def _saved_text(core, desc, text, workload, schedule, lanes):
        """The text as a saved program, and the line where its schedule begins. The module alone is parsed before, so
        that errors have its lines.
        """
        data, module = text.encode(), ctypes.c_void_p()
        with core.used():
            core.check(
                _lib.module_parse(core.handle, data, len(data), ctypes.byref(desc), ctypes.byref(module), None)
            )
            _lib.module_destroy(module)
        if schedule is None:
            schedule = f"dispatch round robin over {_int(1 if lanes is None else lanes, 'lanes')} lanes"
        elif not isinstance(schedule, str):
            raise TypeError(f"schedule must be a string, not {type(schedule).__name__}")
        elif lanes is not None:
            raise ValueError("lanes are those of the schedule")
        if workload is not None and not isinstance(workload, str):
            raise TypeError(f"workload must be a string, not {type(workload).__name__}")
        first = "" if workload is None else f'program "{workload}"\n'
        head = f"{text.rstrip()}\n{first}schedule\n"
        body = (head + "".join(f"  {line.strip()}\n" for line in schedule.splitlines())).encode()
        saved = f"ptowsp program 1, {len(body)} bytes, {_fnv(body):016x}\n{body.decode()}"
        return saved, 2 + head.count("\n")

    def _parse_desc(self, costs, default_cycles):
        kernels = []
        for name, fn in _items(costs, "costs"):
            if not callable(fn):
                raise TypeError(f"costs[{name!r}] must be callable, not {type(fn).__name__}")
            self._costs.append(_TASK_FN(self._cost_function(name, fn)))
            cost = ctypes.cast(self._costs[-1], ctypes.c_void_p)
            kernels.append(_ParseKernel(_name(name), cost=cost))
        array = (_ParseKernel * len(kernels))(*kernels)
        desc = _ParseDesc(ctypes.addressof(array), len(kernels), default_cycles)
        desc.kept = array
        return desc

    def _cost_function(self, name, fn):
        failure = self._failure

        def call(task, user):
            c = task.contents
            args = (ctypes.c_uint64 * c.arg_count).from_address(c.args) if c.arg_count else ()
            axes, tiles = c.user_axis_count, range(c.user_axis_count, c.axis_arg_count, 2)
            try:
                signed = tuple(a - 2**64 if a >= 2**63 else a for a in args[:axes])
                sizes = tuple((args[i], args[i + 1]) for i in tiles)
                cycles = fn(Task(signed, sizes, tuple(args[c.axis_arg_count :])))
                return _int(cycles, f"the cost of {name}", 0, 2**63 - 1)
            except BaseException as error:
                failure.append(error)
                return 2**64 + Status.KERNEL_FAILED

        return call

    @staticmethod
    def _find_names(handle):
        """(name, (what it is, its description)) of all that can be bound."""
        t = _program_tables(handle)
        tables = [
            ("axis", _AxisInfo, t.axes, t.axis_count),
            ("array", _ArrayInfo, t.arrays, t.array_count),
            ("symbol", _SymbolInfo, t.symbols, t.symbol_count),
            ("tensor", _TensorInfo, t.tensors, t.tensor_count),
        ]
        for kind, info_type, items, count in tables:
            for i in range(1, count):
                info = info_type.from_address(items + i * ctypes.sizeof(info_type))
                name = info.desc.name if kind == "tensor" else info.name
                is_bound = not (kind == "axis" and info.kind in (0, 2)) and not getattr(info, "is_transient", False)
                if name and is_bound and not (kind == "array" and info.plan_axis):
                    yield name.decode(), (kind, info)

    def _handle(self):
        if self._native is None:
            raise ValueError("the program is closed")
        return self._native.handle

    def _print(self, function):
        handle = self._handle()
        with self._native.core.used():
            return _printed(function, handle)

    @property
    def schedule(self):
        """The schedule as text, with its defaults filled in."""
        return self._print(_lib.program_print_schedule)

    @property
    def kernels(self):
        """The names of its kernels, by id."""
        handle = self._handle()
        return [
            None,
            *[_lib.program_kernel_name(handle, i).decode() for i in range(1, _program_tables(handle).kernel_count)],
        ]

    @property
    def bindings(self):
        """{name: "axis", "array", "symbol" or "tensor"}: what Run.bind() takes."""
        return {name: kind for name, (kind, _) in self._names.items()}

    def __str__(self):
        return self._print(_lib.program_print)

    def __repr__(self):
        return f"<Program {_program_tables(self._handle()).name.decode()}>"

    def run(self, values=None, /, **named):
        """A Run with these bindings: Run.bind()."""
        return Run(self).bind(values, **named)

    def time(self, values=None, /, **named):
        """A Run with these bindings whose time is simulated: run(...).time()."""
        return self.run(values, **named).time()

    def close(self):
        """Frees it; runs of it stay usable."""
        self._native = None


def _fnv(data):
    return _lib.hash(0xCBF29CE484222325, data, len(data))


def _name(name):
    if not isinstance(name, str):
        raise TypeError(f"a name must be a string, not {type(name).__name__}")
    if "\0" in name:
        raise ValueError("a name has a NUL character")
    return name.encode()


class Run(_Shown):
    """A program with what is bound to it, and the results of its last execution (sections 21 and 22).

    Results are copies. They are those of the last time() or execute(); before, and after one that failed, reading
    them is a ValueError.
    """

    def __init__(self, program):
        core, handle = _program_of(program)._native.core, ctypes.c_void_p()
        core.call(_lib.run_create, core.handle, program._handle(), ctypes.byref(handle))
        self.program = program
        self._names, self._kernels, self._failure = program._names, program.kernels, program._failure
        self._native = _Native(core, _lib.run_destroy, handle.value, program._native, program._costs)
        self._bound, self._what_ifs, self._options, self._level = {}, {}, None, 0
        self._is_done = False
        for name, (kind, info) in self._names.items():
            if kind == "tensor" and _DYNAMIC not in info.desc.shape[: info.desc.rank]:
                self._bind_one("tensor", name, _Buffer())

    def _handle(self):
        if self._native is None:
            raise ValueError("the run is closed")
        return self._native.handle

    def _call(self, function, *arguments):
        handle = self._handle()
        with self._native.core.used():
            self._check(function(handle, *arguments))

    def _check(self, status):
        """Raises the exception of a cost function, or the error of a call."""
        if self._failure:
            failure = self._failure[0]
            self._failure.clear()
            raise failure
        self._native.core.check(status)

    def close(self):
        """Frees it now, and not when it is collected."""
        self._native = None

    # -- binding

    def bind(self, values=None, /, **named):
        """Binds by name, from a mapping and from keywords; returns the run. What is bound stays, without copies.

        dynamic axis    an integer
        ragged axis     lengths: int32, int64, uint32 or uint64 [rows]
        sparse axis     (indptr, indices) of one of these dtypes, or an object with these attributes
        plan axis       an AttentionPlan, a MoePlan, a ChunkPlan
        symbol          an integer
        array           [elements] of the declared dtype
        tensor          an array of the declared dtype, with any strides; or for time alone its shape
        """
        for name, value in itertools.chain(_items(values, "values"), named.items()):
            if name not in self._names:
                known = ", ".join(sorted(self._names)) or "nothing"
                raise ValueError(f"the program has no {name!r} to bind; it has {known}")
            kind, info = self._names[name]
            getattr(self, "_bind_" + kind)(name, value, info)
        return self

    def _bind_one(self, kind, name, data=None, count=0, value=0, dtype=0):
        """Binds an array or a structure, or a value."""
        address = ctypes.addressof(data) if isinstance(data, ctypes.Structure) else _at(data)
        binding = _Binding(_BINDINGS.split().index(kind), _name(name), value, address, count, dtype)
        self._call(_lib.run_bind, ctypes.byref(binding), 1)

    def _bind_axis(self, name, value, info):
        if info.kind == 1:
            self._bind_one("size", name, value=_int(value, name, -(2**63), 2**63 - 1) % 2**64)
        elif info.kind == 3:
            self._bind_sparse(name, value)
        else:
            if not isinstance(value, (AttentionPlan, MoePlan, ChunkPlan)):
                raise TypeError(f"{name} must be a plan, not {type(value).__name__}")
            self._bind_plan(name, value)
            self._bound[name] = value

    def _bind_plan(self, name, plan):
        if isinstance(plan, PrefixPlan):  # units of segments, whose joins no program has
            raise TypeError(f"{name} must be an AttentionPlan, a ChunkPlan or a MoePlan, not a PrefixPlan")
        if isinstance(plan, ChunkPlan):
            units = _array(plan.units, CHUNK_UNIT, "units", (-1,))
            self._bind_one("work", name, units, len(units))
        else:
            c = _lib.moe_plan_units(ctypes.byref(plan._c)) if isinstance(plan, MoePlan) else plan._c
            self._bind_one("plan", name, c)

    def _bind_sparse(self, name, value):
        if hasattr(value, "indptr") and hasattr(value, "indices"):
            value = value.indptr, value.indices
        if not isinstance(value, (tuple, list)) or len(value) != 2:
            raise TypeError(f"{name} must be (indptr, indices)")
        indptr, dtype = _index_array(value[0], f"{name}.indptr")
        indices = _array(value[1], indptr.dtype, f"{name}.indices", (-1,))
        if not len(indptr):
            raise ValueError(f"{name}.indptr is empty")
        csr = _Csr(dtype, _at(indptr), _at(indices), len(indptr) - 1, len(indices))
        self._bind_one("csr", name, csr)
        self._bound[name] = indptr, indices

    def _bind_array(self, name, value, info):
        if info.is_lengths:
            array, dtype = _index_array(value, name)
        else:
            array, dtype = _array(value, _NUMPY_TYPES[info.dtype], name, (-1,)), info.dtype
        self._bind_one("lengths" if info.is_lengths else "array", name, array, len(array), dtype=dtype)
        self._bound[name] = array

    def _bind_symbol(self, name, value, info):
        self._bind_one("symbol", name, value=_int(value, name, -(2**63), 2**64 - 1) % 2**64)

    def _bind_tensor(self, name, value, info):
        desc, buffer, is_shape = info.desc, _Buffer(), isinstance(value, (tuple, list))
        if not is_shape and not isinstance(value, np.ndarray):
            raise TypeError(f"{name} must be an array or a shape, not {type(value).__name__}")
        shape = [_int(n, f"a size of {name}", 0, 2**63 - 1) for n in (value if is_shape else value.shape)]
        if len(shape) != desc.rank:
            raise ValueError(f"{name} has {len(shape)} dimensions, and {desc.rank} are declared")
        buffer.rank, buffer.shape[: len(shape)] = len(shape), shape
        if not is_shape:
            if value.dtype != _NUMPY_TYPES[desc.dtype]:
                raise TypeError(f"{name} has dtype {value.dtype}; it must be {_NUMPY_TYPES[desc.dtype]}")
            if info.is_written and not value.flags.writeable:
                raise ValueError(f"{name} is read-only, and the program writes it")
            buffer.data = _at(value)
            if not value.flags.c_contiguous:
                size = value.itemsize
                if any(s % size or not s and n > 1 for s, n in zip(value.strides, shape)):
                    raise ValueError(f"{name} has strides that are 0 or no multiples of its elements")
                buffer.strides[: len(shape)] = [s // size for s in value.strides]
        self._bind_one("tensor", name, buffer)
        self._bound[name] = value

    # -- executing

    def time(self, *, model="unit", record="edges", token_limit=0, time_limit=0):
        """Simulates the time; no kernel runs and no tensor is touched. Returns the run.

        model         of tile kernels' cycles: "unit"; "a2a3" and "a5", ideal; "910b" and "950pr",
                      as measured
        record        what results are kept: "none", "totals", "tasks", "edges"; the last has all
        time_limit    in seconds of the wall clock; 0: none
        """
        return self._execute(1, model, record, token_limit, time_limit, 0)

    def execute(self, *, lanes=1, model="unit", record="edges", token_limit=0, time_limit=0):
        """Runs the tile kernels on the bound arrays, on `lanes` of the context. Returns the run."""
        return self._execute(0, model, record, token_limit, time_limit, _int(lanes, "lanes", 1))

    def _execute(self, mode, model, record, token_limit, time_limit, lanes):
        nanoseconds = _number(time_limit, "time_limit") * 1e9
        if not 0 <= nanoseconds < 2**63:
            raise ValueError(f"time_limit is {time_limit}")
        cost = _Cost(_MODEL_VALUES[_choice(model, _MODELS, "model")])
        limit = _int(token_limit, "token_limit", 0, 2**64 - 1)
        level = _choice(record, _RECORDS, "record")
        if mode == 0:
            self._need_arrays()
        return self._again(_RunOptions(mode, level >= 2, cost, limit, lanes, math.ceil(nanoseconds)), level)

    def _need_arrays(self):
        for name, (kind, info) in self._names.items():
            if kind == "tensor" and info.is_used and not isinstance(self._bound.get(name), np.ndarray):
                raise ValueError(f"{name} has no array: bind one to execute")

    def _again(self, options, level):
        """Executes, with plans that may have been made anew."""
        self._is_done, self._options, self._level = False, options, level
        for name, value in self._bound.items():
            if isinstance(value, AttentionPlan):
                self._bind_plan(name, value)
        handle, core = self._handle(), self._native.core
        with core.used():
            core.check(_lib.run_record(handle, ctypes.byref(_RecordOptions(level))))
            status = _lib.run_execute(handle, ctypes.byref(options))
            try:
                self._check(status)
            except PtowspError as error:
                if status == Status.STUCK:
                    error.text += "\n" + _printed(_lib.run_print_stuck, handle)
                    error.args = (error.text,)
                raise
        self._is_done = True
        return self

    # -- results

    @contextlib.contextmanager
    def _results(self, level=0):
        """The run's handle, while nothing else uses it."""
        handle = self._handle()
        with self._native.core.used():
            if not self._is_done:
                raise ValueError("there are no results: time() or execute() comes first")
            if self._level < level:
                raise ValueError(f"this was not recorded: record={_RECORDS.split()[level]!r} does")
            yield handle

    def _stats(self):
        with self._results() as handle:
            return _RunStats.from_buffer_copy(ctypes.string_at(_lib.run_result(handle), ctypes.sizeof(_RunStats)))

    @property
    def makespan(self):
        """Cycles until the last task or pipeline ended."""
        return self._stats().makespan_cycles

    @property
    def task_count(self):
        """The tasks of the last execution."""
        return self._stats().task_count

    @property
    def busy(self):
        """Cycles of all tasks."""
        return self._stats().busy_cycles

    @property
    def stalls(self):
        """{reason: cycles} that tasks waited (ptowsp_run_stats), without those that are 0."""
        return _by_stall(self._stats().stall_cycles)

    @property
    def idle(self):
        """{reason: cycles} in which lanes were idle (ptowsp_run_idle); "none" is after their last task."""
        with self._results(1) as handle:
            address = _lib.run_idle(handle)
            return _by_stall((ctypes.c_uint64 * _STALLS).from_address(address)) if address else {}

    @property
    def lanes(self):
        """[lanes]: busy_cycles, idle_cycles, task_count, end_cycles."""
        count = self._stats().lane_count
        with self._results() as handle:
            return _copy(_lib.run_lanes(handle), _LaneStats, count)

    @property
    def records(self):
        """[tasks]: ready, issue, start, end, cause, stall, lane, kernel, node (ptowsp_task_record)."""
        count = self._stats().task_count
        with self._results(2) as handle:
            return _copy(_lib.run_records(handle), _TaskRecord, count)

    @property
    def kernels(self):
        """{kernel: (task_count, busy_cycles, longest_cycles, bytes_read, bytes_written)} of those with tasks."""
        count = ctypes.c_uint32()
        with self._results(1) as handle:
            sums = _copy(_lib.run_kernels(handle, ctypes.byref(count)), _TaskSums, count.value)
        return {name: row for name, row in zip(self._kernels, sums) if name and row.task_count}

    @property
    def critical_path(self):
        """[Step], first to last: what made the run take as long as it did."""
        count, steps = ctypes.c_uint64(), []
        with self._results(2) as handle:
            address = _lib.run_critical_path(handle, ctypes.byref(count))
            for index in (ctypes.c_uint64 * count.value).from_address(address) if address else ():
                trace = _TaskTrace()
                if _lib.run_trace_find(handle, index, ctypes.byref(trace)):
                    label = _printed(_lib.run_print_task, handle, ctypes.byref(trace))
                    record = _TaskRecord.from_address(trace.record)
                    stall = _lib.stall_name(record.stall).decode()
                    steps.append(Step(index, label, record.lane, record.start, record.end, stall))
        return steps

    @property
    def bounds(self):
        """Bounds: how far the makespan is from the best possible."""
        c = _RunBounds()
        with self._results(1) as handle:
            self._native.core.check(_lib.run_find_bounds(handle, ctypes.byref(c)))
            work = {c.pool_names[i].decode(): c.work_cycles[i] for i in range(c.pool_count)}
        path = c.path_cycles if c.has_path else None
        return Bounds(
            c.makespan_cycles, path, work, c.link_cycles, c.process_cycles, c.channel_cycles, c.largest_cycles
        )

    def what_if(self, percents=None, /, **named):
        """{kernel: makespan} if its tasks took `percent` of their cycles: what_if(attend=50).

        Reports have the answers. The results of the run stay: it is executed again.
        """
        asked = {}
        for name, percent in itertools.chain(_items(percents, "percents"), named.items()):
            if name not in self._kernels[1:]:
                raise ValueError(f"the program has no kernel {name!r}; it has {', '.join(self._kernels[1:])}")
            asked[name] = _WhatIf(self._kernels.index(name), _int(percent, name))
        with self._results():
            options = self._options
        if options.mode != 1:
            raise ValueError("what_if is for simulated time: time() comes first")
        try:
            for question in asked.values():
                self._call(_lib.run_what_if, ctypes.byref(options), ctypes.byref(question))
            self._what_ifs.update(asked)
        finally:
            self._again(options, self._level)
        return {name: question.makespan_cycles for name, question in asked.items()}

    # -- texts and pictures

    def report(self, format="text", **options):
        """Why the run takes what it takes, as "text", "json" or "html" (a page of its own). Options as export()."""
        choice, c, sink = _choice(format, _REPORTS, "format"), _export_options(**options), _Bytes()
        questions = (_WhatIf * len(self._what_ifs))(*self._what_ifs.values())
        with self._results(1) as handle:
            self._native.core.check(
                _lib.run_report(handle, choice, ctypes.byref(c), questions, len(questions), sink.output)
            )
        return sink.text()

    def export(self, format, **options):
        """What was recorded, as "svg", "chrome", "csv", "table", "usage_csv", "edges", "dot"; "perfetto" is bytes.

        title; fold: "kernels" or "loops" (edges, dot); short; clock_mhz; begin, end (cycles), width (pixels),
        lane_max and theme ("light", "dark") of a picture.
        """
        choice, c, sink = _choice(format, _FORMATS, "format"), _export_options(**options), _Bytes()
        with self._results(1) as handle:
            self._native.core.check(_lib.run_export(handle, choice, ctypes.byref(c), sink.output))
        return sink.bytes() if format == "perfetto" else sink.text()

    def svg(self, **options):
        """A timeline: export("svg")."""
        return self.export("svg", **options)

    def decisions(self):
        """What the library decided for the run, and why, a line each (ptowsp_run_export_decisions)."""
        sink = _Bytes()
        with self._results() as handle:
            self._native.core.check(_lib.run_export_decisions(handle, 0, sink.output))
        return sink.text()

    def __str__(self):
        with self._results() as handle:
            return _printed(_lib.run_print, handle)

    def __repr__(self):
        return f"<Run: {self.makespan} cycles>" if self._is_done and self._native else "<Run: without results>"

    def _repr_svg_(self):
        if not self._is_done or self._level < 2 or not self.task_count:
            return None
        return self.svg(lane_max=4096)

    def _repr_html_(self):
        return super()._repr_html_() if self._is_done else html.escape(repr(self))


def _program_of(program):
    if not isinstance(program, Program):
        raise TypeError(f"program must be a Program, not {type(program).__name__}")
    program._handle()
    return program


def _index_array(value, name):
    """An array of integers that lengths and sparse rows may have, and its ptowsp_dtype. Lists become int64."""
    value = _converted(value, np.dtype(np.int64), name) if isinstance(value, (list, tuple, range)) else value
    dtype = getattr(value, "dtype", None)
    if dtype not in _INDEX_TYPES:
        raise TypeError(f"{name} has dtype {dtype}; it must be int32, int64, uint32 or uint64")
    return _array(value, dtype, name, (-1,)), _INDEX_TYPES[dtype]


def _copy(address, kind, count):
    """A copy of an array of structures, as records."""
    dtype = np.dtype((np.record, np.dtype(kind)))
    return np.frombuffer(ctypes.string_at(address, count * ctypes.sizeof(kind)) if address else b"", dtype).copy()


def _by_stall(cycles):
    return {_lib.stall_name(i).decode(): n for i, n in enumerate(cycles) if n}
