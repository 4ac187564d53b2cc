// Runs the cases of the tables included before, each as a cmocka test of its name. What v9 gave is
// what in-order issue must give, task by task; the tables also have dataflow issue, by structure
// alone and with dependencies on exact tiles.
//
// The module of a case is built once, compiled for five schedules, and gone before anything runs;
// each program has one run, which is bound anew for each variant:
//
//      in order                        every task as in v9
//      structure                       makespan, and a hash of all tasks
//      structure, exact, RAW           the same
//      structure, exact, all hazards   the same
//      the default: hybrid             no sooner than by structure
//
// Each executes twice, which must make no difference and allocate nothing the second time, where
// time does not depend on data a third time without kernels, and once more on lanes. What tensors
// hold afterwards is compared with sums over what v9 left in them.
//
// All of this twice: with the program, and with the same one saved and loaded.
//
// A workload that is a pipeline takes the same time in all modes; its processes and channels are
// checked, too.
//
// In none of these cases does waiting for readers and writers before (WAR, WAW) cost anything
// beyond what RAW and the lanes do, so here "all hazards" shows only that they do no harm.

#ifndef ORACLE_RUN_H
#define ORACLE_RUN_H

#include "oracle_build.h"

enum { LANE_COUNT = 3 };

// -- data and bindings ----------------------------------------------------------------------------

static void set_element(const oracle *o, uint32_t t, uint64_t i, double value) {
    switch (o->c->workload->tensors[t].dtype) {
    case PTOWSP_F16: ((uint16_t *)o->data[t])[i] = test_half_of(PTOWSP_F16, value); break;
    case PTOWSP_F32: ((float *)o->data[t])[i] = (float)value; break;
    case PTOWSP_I32: ((int32_t *)o->data[t])[i] = (int32_t)value; break;
    case PTOWSP_U64: ((uint64_t *)o->data[t])[i] = (uint64_t)value; break;
    default: fail_msg("tensor %u has no known type", (unsigned)t);
    }
}

static double element(const oracle *o, uint32_t t, uint64_t i) {
    switch (o->c->workload->tensors[t].dtype) {
    case PTOWSP_F16: return (double)ptowsp_f32_from_f16(((uint16_t *)o->data[t])[i]);
    case PTOWSP_F32: return (double)((float *)o->data[t])[i];
    case PTOWSP_I32: return (double)((int32_t *)o->data[t])[i];
    default: return (double)((uint64_t *)o->data[t])[i];
    }
}

static uint64_t byte_count(const oracle_tensor *tensor) {
    return ptowsp_dtype_size(tensor->dtype) * element_count(tensor);
}

static double element_before(const oracle_tensor *tensor, uint64_t i) {
    int64_t step = ((int64_t)i * tensor->mul + tensor->add) % tensor->mod - tensor->sub;
    return tensor->data ? (double)tensor->data[i] : (double)step * tensor->scale;
}

static void fill_tensors(oracle *o) {
    for (uint32_t t = 0; t < tensor_count(o->c->workload); t++) {
        const oracle_tensor *tensor = &o->c->workload->tensors[t];
        for (uint64_t i = 0; i < element_count(tensor); i++) {
            set_element(o, t, i, element_before(tensor, i));
        }
    }
}

// Sums over a tensor in the order of its indices, whatever its memory is like.
static oracle_sum sum_of_tensor(const oracle *o, uint32_t t) {
    const oracle_tensor *tensor = &o->c->workload->tensors[t];
    uint64_t rows = (uint64_t)tensor->shape[tensor->rank - 2];
    uint64_t cols = (uint64_t)tensor->shape[tensor->rank - 1];
    oracle_sum result = {0, 0};
    for (uint64_t i = 0; i < element_count(tensor); i++) {
        uint64_t matrix = i / (rows * cols), row = i / cols % rows, col = i % cols;
        uint64_t at = tensor->transposed ? matrix * rows * cols + col * rows + row : i;
        double x = element(o, t, at);
        result.sum += x;
        result.weighted_sum += x * (double)(i % 97 + 1);
    }
    return result;
}

static bool near_to(double got, double expected, ptowsp_dtype dtype) {
    double allowed = dtype == PTOWSP_F16 ? 2e-2 : dtype == PTOWSP_F32 ? 1e-4 : 0;
    allowed *= fmax(fabs(expected), 1);
    return fabs(got - expected) <= allowed;
}

static void check_outputs(const oracle *o) {
    for (uint32_t t = 0; t < tensor_count(o->c->workload); t++) {
        const oracle_tensor *tensor = &o->c->workload->tensors[t];
        oracle_sum got = sum_of_tensor(o, t), expected = o->variant->sums[t];
        if (!near_to(got.sum, expected.sum, tensor->dtype) ||
            !near_to(got.weighted_sum, expected.weighted_sum, tensor->dtype)) {
            FAIL(o, "tensor %s sums to %.9g and %.9g, not %.9g and %.9g", tensor->name, got.sum,
                 got.weighted_sum, expected.sum, expected.weighted_sum);
        }
    }
}

static void bind_variant(oracle *o, ptowsp_run *run, bool with_data) {
    const oracle_workload *workload = o->c->workload;
    const oracle_variant *v = o->variant;
    for (int i = 0; i < AXIS_MAX && workload->axes[i].name; i++) {
        const char *name = workload->axes[i].name;
        if (workload->axes[i].kind == DYNAMIC) {
            check_ok(o, name, ptowsp_run_bind_size(run, name, v->axis_size));
        } else if (workload->axes[i].kind == RAGGED) {
            check_ok(o, name,
                     ptowsp_run_bind_lengths(run, name, PTOWSP_I64, v->lengths, v->row_count));
        } else if (workload->axes[i].kind == SPARSE) {
            ptowsp_csr csr = {PTOWSP_I32, v->indptr, v->indices, v->row_count, v->entry_count};
            check_ok(o, name, ptowsp_run_bind_csr(run, name, &csr));
        }
    }
    if (workload->symbol && !o->is_declared) {
        check_ok(o, workload->symbol, ptowsp_run_bind_symbol(run, workload->symbol, v->symbol));
    }
    for (uint32_t t = 0; t < tensor_count(workload); t++) {
        const oracle_tensor *tensor = &workload->tensors[t];
        ptowsp_buffer buffer = {0};
        buffer.data = with_data ? o->data[t] : NULL;
        buffer.size = with_data ? byte_count(tensor) : 0;
        if (tensor->transposed) {
            buffer.rank = tensor->rank;
            memcpy(buffer.shape, tensor->shape, sizeof(tensor->shape));
            buffer.strides[tensor->rank - 1] = tensor->shape[tensor->rank - 2];
            buffer.strides[tensor->rank - 2] = 1;
            int64_t stride = tensor->shape[tensor->rank - 1] * tensor->shape[tensor->rank - 2];
            for (uint32_t i = tensor->rank - 2; i-- > 0; stride *= tensor->shape[i]) {
                buffer.strides[i] = stride;
            }
        }
        check_ok(o, tensor->name, ptowsp_run_bind_tensor(run, tensor->name, &buffer));
    }
}

// -- results --------------------------------------------------------------------------------------

// FNV-1a over words; see oracle_cases.py. In processes tasks are ready when they start.
static uint64_t tasks_hash(const oracle *o, const ptowsp_task_record *records, uint64_t count) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t kernel = 0;
        while (kernel < KERNEL_COUNT && o->kernels[kernel].id != records[i].kernel) {
            kernel++;
        }
        bool is_in_process = o->c->workload->process_count > 0;
        uint64_t words[] = {kernel, records[i].lane,
                            is_in_process ? records[i].start : records[i].ready, records[i].start,
                            records[i].end};
        for (int w = 0; w < 5; w++) {
            hash = (hash ^ words[w]) * UINT64_C(0x100000001b3);
        }
    }
    return hash;
}

static void check_tasks(const oracle *o, const ptowsp_task_record *records) {
    for (uint64_t i = 0; o->variant->tasks && i < o->variant->task_count; i++) {
        const oracle_task *task = &o->variant->tasks[i];
        check(o, "kernel of task", i, records[i].kernel, o->kernels[task->kernel].id);
        check(o, "lane of task", i, records[i].lane, task->lane);
        if (!o->c->workload->process_count) {
            check(o, "ready of task", i, records[i].ready, task->ready);
        }
        check(o, "start of task", i, records[i].start, task->start);
        check(o, "end of task", i, records[i].end, task->end);
    }
}

static void check_stats(const oracle *o, const ptowsp_run *run) {
    const ptowsp_run_stats *stats = ptowsp_run_result(run);
    const ptowsp_lane_stats *lanes = ptowsp_run_lanes(run);
    uint32_t lane_count = o->c->lane_count ? o->c->lane_count : 1;
    ptowsp_cycles busy = 0;
    check(o, "task count", 0, stats->task_count, o->variant->task_count);
    check(o, "busy cycles", 0, stats->busy_cycles, o->variant->busy);
    check(o, "lane count", 0, stats->lane_count, lane_count);
    for (uint32_t i = 0; i < lane_count; i++) {
        check(o, "tasks of lane", i, lanes[i].task_count, o->variant->lane_tasks[i]);
        check(o, "idle cycles of lane", i, lanes[i].idle_cycles,
              stats->makespan_cycles - lanes[i].busy_cycles);
        busy += lanes[i].busy_cycles;
    }
    check(o, "busy cycles of all lanes", 0, busy,
          o->c->workload->process_count ? 0 : o->variant->busy);
    if (o->c->window && stats->in_flight_max > o->c->window) {
        check(o, "tasks in flight, of a window", 0, stats->in_flight_max, o->c->window);
    }
}

// All is as at the end of the only pipeline, if there is one, that has run once from time 0.
static void check_pipeline(const oracle *o, const ptowsp_run *run) {
    const oracle_workload *workload = o->c->workload;
    uint32_t pipeline_count, process_count, channel_count;
    const ptowsp_pipeline_stats *pipeline = ptowsp_run_pipelines(run, &pipeline_count);
    const ptowsp_process_stats *processes = ptowsp_run_processes(run, &process_count);
    const ptowsp_channel_stats *channels = ptowsp_run_channels(run, &channel_count);
    ptowsp_cycles waited = 0;
    check(o, "pipelines", 0, pipeline_count, workload->process_count > 0);
    check(o, "processes", 0, process_count, workload->process_count);
    check(o, "channels", 0, channel_count, workload->channel_count);
    if (pipeline_count) {
        check(o, "times that the pipeline ran", 0, pipeline->run_count, 1);
        check(o, "start of the pipeline", 0, pipeline->start_cycles, 0);
        check(o, "makespan of the pipeline", 0, pipeline->makespan_cycles,
              ptowsp_run_result(run)->makespan_cycles);
    }
    for (uint32_t i = 0; i < process_count; i++) {
        const oracle_process *expected = &o->variant->processes[i];
        check(o, "tasks of process", i, processes[i].task_count, expected->task_count);
        check(o, "end of process", i, processes[i].end_cycles, expected->end);
        check(o, "busy cycles of process", i, processes[i].busy_cycles, expected->busy);
        check(o, "full cycles of process", i, processes[i].full_cycles, expected->full);
        check(o, "empty cycles of process", i, processes[i].empty_cycles, expected->empty);
        waited += expected->full + expected->empty;
    }
    for (uint32_t i = 0; i < channel_count; i++) {
        const oracle_channel *expected = &o->variant->channels[i];
        check(o, "depth of channel", i, channels[i].depth, o->c->depths[i]);
        check(o, "latency of channel", i, channels[i].latency, o->variant->symbol);
        check(o, "tokens left in channel", i, channels[i].pending_count, 0);
        check(o, "tokens of channel", i, channels[i].token_count, expected->token_count);
        check(o, "most tokens in channel", i, channels[i].pending_max, expected->pending_max);
        check(o, "full cycles of channel", i, channels[i].full_cycles, expected->full);
        check(o, "empty cycles of channel", i, channels[i].empty_cycles, expected->empty);
    }
    check(o, "cycles of waiting at channels", 0,
          ptowsp_run_result(run)->stall_cycles[PTOWSP_STALL_CHANNEL], waited);
}

// Of the kernels that are C functions: each was called for its tasks, with their arguments.
static void check_calls(const oracle *o) {
    check(o, "wrong calls of kernels", 0, o->wrong_call_count, 0);
    if (!o->has_tile_kernels) {
        check(o, "calls of kernels", 0, o->call_count, o->variant->task_count);
    }
    for (uint64_t i = 0; o->variant->tasks && i < o->variant->task_count; i++) {
        const oracle_task *task = &o->variant->tasks[i];
        for (uint32_t k = 0; k < o->c->workload->axis_arg_count; k++) {
            check(o, k ? "axis argument 1 or more of task" : "axis argument 0 of task", i,
                  (uint64_t)o->called_axes[i][k],
                  (uint64_t)(oracle_kernels[task->kernel].fn ? task->axes[k] : NOT_CALLED));
        }
    }
}

static void check_time(const oracle *o, const ptowsp_run *run, int mode) {
    ptowsp_cycles makespan = ptowsp_run_result(run)->makespan_cycles;
    if (o->c->workload->process_count) {
        mode = IN_ORDER;  // all are alike
    }
    if (mode == HYBRID) {
        if (makespan < o->variant->times[STRUCTURE].makespan) {
            check(o, "makespan, at least that by structure,", 0, makespan,
                  o->variant->times[STRUCTURE].makespan);
        }
        return;
    }
    const ptowsp_task_record *records = ptowsp_run_records(run);
    assert_non_null(records);
    if (mode == IN_ORDER) {
        check_tasks(o, records);
    }
    check(o, "makespan", 0, makespan, o->variant->times[mode].makespan);
    check(o, "hash of all tasks", 0, tasks_hash(o, records, o->variant->task_count),
          o->variant->times[mode].tasks_hash);
}

// -- running --------------------------------------------------------------------------------------

static void refresh(oracle *o) {
    o->call_count = o->wrong_call_count = o->next_task = 0;
    for (uint64_t i = 0; i < o->variant->task_count; i++) {
        for (uint32_t k = 0; k < ARG_MAX; k++) {
            o->called_axes[i][k] = NOT_CALLED;
        }
    }
    fill_tensors(o);
}

#ifdef NPU_CLOCK_MIRROR_H
// Once more, with the clock of emitted trees beside it.
static void execute_with_clock(oracle *o, ptowsp_run *run, const ptowsp_run_options *options) {
    ptowsp_run_stats stats = *ptowsp_run_result(run);
    refresh(o);
    const char *what = mirror_check(run, options, PTOWSP_OK, &stats);
    if (what) {
        FAIL(o, "the clock has another %s", what);
    }
}
#endif

static void execute(oracle *o, ptowsp_run *run, int mode, ptowsp_run_mode run_mode) {
    ptowsp_run_options options = {0};
    options.mode = run_mode;
    options.record_tasks = true;
    options.lane_count = o->lane_count;
    refresh(o);
    ptowsp_status status = ptowsp_run_execute(run, &options);
    check(o, "wrong calls of kernels", 0, o->wrong_call_count, 0);
    check_ok(o, "execute", status);
    check_stats(o, run);
    check_pipeline(o, run);
    check_time(o, run, mode);
#ifdef NPU_CLOCK_MIRROR_H
    if (o->lane_count == 1) {
        execute_with_clock(o, run, &options);
    }
#endif
}

// Without kernels: the same times, and all data as it was.
static void execute_time_only(oracle *o, ptowsp_run *run, int mode) {
    oracle_sum before[TENSOR_MAX];
    fill_tensors(o);
    for (uint32_t t = 0; t < tensor_count(o->c->workload); t++) {
        before[t] = sum_of_tensor(o, t);
    }
    o->step = "time only";
    execute(o, run, mode, PTOWSP_RUN_TIME_ONLY);
    check(o, "calls of kernels", 0, o->call_count, 0);
    for (uint32_t t = 0; t < tensor_count(o->c->workload); t++) {
        oracle_sum after = sum_of_tensor(o, t);
        assert_memory_equal(&before[t], &after, sizeof(after));
    }
    if (mode == IN_ORDER) {
        o->step = "time only, without memory";
        bind_variant(o, run, false);
        execute(o, run, mode, PTOWSP_RUN_TIME_ONLY);
    }
}

// On three lanes: the same data and times.
static void execute_on_lanes(oracle *o, ptowsp_run *run, int mode) {
    o->step = "on lanes";
    bind_variant(o, run, true);
    o->lane_count = LANE_COUNT;
    execute(o, run, mode, PTOWSP_RUN_EXECUTE);
    check_calls(o);
    check_outputs(o);
    o->lane_count = 1;
}

// Leaves fingerprints, or with is_loaded finds the same.
static void test_mode(oracle *o, const ptowsp_program *program, int mode, bool is_loaded) {
    static ptowsp_fingerprint kept[VARIANT_MAX];
    ptowsp_fingerprint fingerprint;
    ptowsp_run *run = NULL;
    o->variant = NULL;
    o->mode = mode_names[mode];
    o->step = "create";
    check_ok(o, "run", ptowsp_run_create(o->context, program, &run));
    for (uint32_t i = 0; i < o->c->variant_count; i++) {
        o->variant = &o->c->variants[i];
        o->step = "first time";
        o->called_axes =
            (int64_t(*)[ARG_MAX])malloc(o->variant->task_count * sizeof(*o->called_axes));
        assert_non_null(o->called_axes);
        bind_variant(o, run, true);
        execute(o, run, mode, PTOWSP_RUN_EXECUTE);
        check_calls(o);
        check_outputs(o);
        check_ok(o, "fingerprint", ptowsp_run_fingerprint(run, &fingerprint));
        kept[i] = is_loaded ? kept[i] : fingerprint;
        assert_memory_equal(&fingerprint, &kept[i], sizeof fingerprint);
        o->step = "second time";
        size_t allocations = o->memory.allocations;
        execute(o, run, mode, PTOWSP_RUN_EXECUTE);
        check(o, "allocations", 0, o->memory.allocations - allocations, 0);
        check_calls(o);
        check_outputs(o);
        if (o->time_only) {
            execute_time_only(o, run, mode);
        }
        execute_on_lanes(o, run, mode);
        free(o->called_axes);
    }
    ptowsp_run_destroy(run);
}

typedef struct oracle_state {
    size_t index;
    bool is_declared;
} oracle_state;

typedef struct oracle_file {
    char *data;
    size_t size;
} oracle_file;

static void oracle_take(void *user, const char *text, size_t length) {
    oracle_file *file = (oracle_file *)user;
    file->data = (char *)realloc(file->data, file->size + length + 1);
    assert_non_null(file->data);
    memcpy(file->data + file->size, text, length);
    file->size += length;
}

// The same program, saved and loaded.
static ptowsp_program *make_loaded(const oracle *o, const ptowsp_program_desc *desc) {
    oracle_file file = {NULL, 0};
    const ptowsp_text text = {oracle_take, &file};
    const ptowsp_parse_desc kernels = {.kernels = o->attached, .kernel_count = o->attached_count};
    ptowsp_program *program = NULL;
    check_ok(o, "save", ptowsp_program_save(o->context, o->module, desc, text));
    check_ok(o, "load",
             ptowsp_program_load(o->context, file.data, file.size, &kernels, &program, NULL));
    free(file.data);
    return program;
}

static inline void oracle__gives_what_v9_gave(void **state) {
    static oracle o;
    ptowsp_program *programs[MODE_COUNT], *loaded[MODE_COUNT];
    memset(&o, 0, sizeof(o));
    o.c = &oracle_cases[((const oracle_state *)*state)->index];
    o.is_declared = ((const oracle_state *)*state)->is_declared;
    o.mode = o.step = "build";
    o.time_only = true;
    ptowsp_context_desc desc = test_lanes_desc(LANE_COUNT);
    desc.resize = test_resize;
    desc.resize_user = &o.memory;
    o.lane_count = 1;
    assert_int_equal(ptowsp_context_create(&desc, &o.context), PTOWSP_OK);
    check_ok(&o, "module", ptowsp_module_create(o.context, NULL, &o.module));
    build_module(&o);
    for (int mode = 0; mode < MODE_COUNT; mode++) {
        ptowsp_schedule schedule = build_schedule(&o, mode);
        ptowsp_program_desc program_desc = {o.c->name, &schedule};
        o.mode = mode_names[mode];
        check_ok(&o, "program",
                 ptowsp_program_create(o.context, o.module, &program_desc, &programs[mode]));
        loaded[mode] = make_loaded(&o, &program_desc);
    }
    ptowsp_module_destroy(o.module);
    for (uint32_t t = 0; t < tensor_count(o.c->workload); t++) {
        o.data[t] = malloc((size_t)byte_count(&o.c->workload->tensors[t]));
        assert_non_null(o.data[t]);
    }
    for (int mode = 0; mode < MODE_COUNT; mode++) {
        test_mode(&o, programs[mode], mode, false);
        ptowsp_program_destroy(programs[mode]);
        test_mode(&o, loaded[mode], mode, true);
        ptowsp_program_destroy(loaded[mode]);
    }
    for (uint32_t t = 0; t < tensor_count(o.c->workload); t++) {
        free(o.data[t]);
    }
    ptowsp_context_destroy(o.context);
    assert_int_equal(o.memory.live_blocks, 0);
}

static inline int run_cases(bool is_declared) {
    static oracle_state states[CASE_COUNT];
    struct CMUnitTest tests[CASE_COUNT];
    memset(tests, 0, sizeof(tests));
    for (size_t i = 0; i < CASE_COUNT; i++) {
        states[i].index = i;
        states[i].is_declared = is_declared;
        tests[i].name = oracle_cases[i].name;
        tests[i].test_func = oracle__gives_what_v9_gave;
        tests[i].initial_state = &states[i];
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
