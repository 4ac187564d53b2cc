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
// Each executes twice, which must make no difference and allocate nothing the second time, and
// where time does not depend on data a third time without kernels. What tensors hold afterwards is
// compared with sums over what v9 left in them.
//
// In none of these cases does waiting for readers and writers before (WAR, WAW) cost anything
// beyond what RAW and the lanes do, so here "all hazards" shows only that they do no harm.

#ifndef ORACLE_RUN_H
#define ORACLE_RUN_H

#include "oracle_tables.h"

enum { CASE_COUNT = sizeof(oracle_cases) / sizeof(oracle_cases[0]) };

// -- a case while it is tested --------------------------------------------------------------------

typedef struct oracle oracle;

// What a kernel function is handed: it notes each call before it does its work. Tile kernels do
// not.
typedef struct oracle_callee {
    oracle *o;
    const oracle_kernel *kernel;
} oracle_callee;

struct oracle {
    const oracle_case *c;
    const oracle_variant *variant;
    const char *mode, *step;  // for messages
    test_memory memory;
    ptowsp_context *context;
    ptowsp_module *module;
    ptowsp_kernel kernels[KERNEL_COUNT];
    oracle_callee callees[KERNEL_COUNT];
    ptowsp_axis axes[AXIS_MAX];
    ptowsp_tensor tensors[TENSOR_MAX];
    void *data[TENSOR_MAX];
    ptowsp_expr variables[128];  // by character
    bool time_only;              // time does not depend on data
    bool has_tile_kernels;
    uint64_t call_count, wrong_call_count, next_task;
    int64_t (*called_axes)[ARG_MAX];  // of each task; NOT_CALLED
};

#define NOT_CALLED INT64_C(-0x5eed)

// Makes kernel k of the table, in the way of the test that includes this.
static ptowsp_kernel make_kernel(oracle *o, uint32_t k);

static const char *const mode_names[MODE_COUNT] = {"in order", "structure", "exact RAW",
                                                   "exact all", "hybrid"};

#define FAIL(o, ...)                                                                               \
    do {                                                                                           \
        print_error("%s, variant %d, %s, %s: ", (o)->c->name,                                      \
                    (o)->variant ? (int)((o)->variant - (o)->c->variants) : -1, (o)->mode,         \
                    (o)->step);                                                                    \
        print_error(__VA_ARGS__);                                                                  \
        print_error("\n");                                                                         \
        fail();                                                                                    \
    } while (0)

static void check(const oracle *o, const char *what, uint64_t i, uint64_t got, uint64_t expected) {
    if (got != expected) {
        FAIL(o, "%s (%llu) is %llu, not %llu", what, (unsigned long long)i, (unsigned long long)got,
             (unsigned long long)expected);
    }
}

static void check_ok(const oracle *o, const char *what, ptowsp_status status) {
    if (status != PTOWSP_OK) {
        FAIL(o, "%s: %s: %s", what, ptowsp_status_name(status),
             ptowsp_context_error(o->context).text);
    }
}

static uint64_t element_count(const oracle_tensor *tensor) {
    uint64_t count = 1;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        count *= (uint64_t)tensor->shape[i];
    }
    return count;
}

static uint32_t tensor_count(const oracle_workload *workload) {
    uint32_t count = 0;
    while (count < TENSOR_MAX && workload->tensors[count].name) {
        count++;
    }
    return count;
}

static uint32_t scalar_count_of(const oracle_kernel *kernel) {
    uint32_t count = 0;
    while (count < SCALAR_MAX && kernel->scalars[count].name) {
        count++;
    }
    return count;
}

static uint32_t tile_count_of(const oracle_kernel *kernel) {
    uint32_t count = 0;
    while (count < TILE_MAX && kernel->tiles[count].name) {
        count++;
    }
    return count;
}

static ptowsp_cycles noted_call(const ptowsp_task *task, void *user) {
    const oracle_callee *callee = (const oracle_callee *)user;
    const oracle_kernel *kernel = callee->kernel;
    oracle *o = callee->o;
    uint32_t axis_count = o->c->workload->axis_arg_count;
    uint32_t tile_count = tile_count_of(kernel);
    bool good = task->index >= o->next_task && task->index < o->variant->task_count &&
                task->user_axis_count == axis_count && !strcmp(task->kernel_name, kernel->name);
    good = good && task->tile_count == tile_count &&
           task->arg_count == task->axis_arg_count + scalar_count_of(kernel) &&
           task->axis_arg_count == axis_count + 2 * tile_count;
    for (uint32_t i = 0; good && i < tile_count; i++) {
        good = ptowsp_task_rows(task, i) == kernel->tiles[i].rows &&
               ptowsp_task_cols(task, i) == kernel->tiles[i].cols;
    }
    o->call_count++;
    o->next_task = task->index + 1;
    if (!good) {
        o->wrong_call_count++;
        return ptowsp_task_fail(PTOWSP_KERNEL_FAILED);
    }
    for (uint32_t i = 0; i < axis_count; i++) {
        o->called_axes[task->index][i] = ptowsp_task_axis(task, i);
    }
    return kernel->fn(task, NULL);
}

// -- building -------------------------------------------------------------------------------------

// What C does before an operation on two integers: when one is unsigned, both become so.
static void convert_both(ptowsp_expr *a, ptowsp_expr *b) {
    if (ptowsp_expr_type(*a) != ptowsp_expr_type(*b)) {
        *a = ptowsp_to_u64(*a);
        *b = ptowsp_to_u64(*b);
    }
}

static int32_t next_word(const int32_t **at) {
    return *(*at)++;
}

static ptowsp_expr build_expr(oracle *o, const int32_t **at, bool is_key) {
    ptowsp_module *m = o->module;
    int32_t op = next_word(at);
    switch (op) {
    case I64: return ptowsp_i64(m, next_word(at));
    case VARIABLE: {
        char name[2] = {(char)next_word(at), 0};
        return is_key ? ptowsp_task_variable(m, name) : o->variables[(int)name[0]];
    }
    case ARG: return ptowsp_task_arg(m, (uint32_t)next_word(at));
    case SLOT: return ptowsp_slot_u64(m, (uint32_t)next_word(at));
    case SYMBOL: return ptowsp_symbol(m, o->c->workload->symbol);
    case TO_I64: return ptowsp_to_i64(build_expr(o, at, is_key));
    case TO_U64: return ptowsp_to_u64(build_expr(o, at, is_key));
    default: break;
    }
    ptowsp_expr condition = {0};
    if (op == WHERE) {
        condition = build_expr(o, at, is_key);
    }
    ptowsp_expr a = build_expr(o, at, is_key), b = build_expr(o, at, is_key);
    convert_both(&a, &b);
    switch (op) {
    case WHERE: return ptowsp_select(condition, a, b);
    case ADD: return ptowsp_add(a, b);
    case SUB: return ptowsp_sub(a, b);
    case MUL: return ptowsp_mul(a, b);
    case XOR: return ptowsp_bitxor(a, b);
    case LT: return ptowsp_lt(a, b);
    case LE: return ptowsp_le(a, b);
    case EQ: return ptowsp_eq(a, b);
    case NE: return ptowsp_ne(a, b);
    default: fail_msg("no operation %d", (int)op); return a;
    }
}

static ptowsp_expr build_entry(oracle *o, const int32_t **at) {
    int32_t entry = next_word(at);
    return entry < 0 ? o->variables[-entry] : ptowsp_i64(o->module, entry);
}

static ptowsp_view build_view(oracle *o, const int32_t **at) {
    ptowsp_view view = {0};
    int32_t tensor = next_word(at);
    view.tensor = o->tensors[tensor];
    for (uint32_t i = 0; i + 2 < o->c->workload->tensors[tensor].rank; i++) {
        view.index[i] = build_entry(o, at);
    }
    return view;
}

static ptowsp_kernel make_c_kernel(oracle *o, uint32_t k) {
    const oracle_kernel *kernel = &oracle_kernels[k];
    ptowsp_kernel_desc desc = {0};
    desc.name = kernel->name;
    desc.axis_count = o->c->workload->axis_arg_count;
    memcpy(desc.tiles, kernel->tiles, sizeof(kernel->tiles));
    memcpy(desc.scalars, kernel->scalars, sizeof(kernel->scalars));
    desc.fn = noted_call;
    desc.cycles = kernel->cycles;
    desc.user = &o->callees[k];
    o->callees[k].o = o;
    o->callees[k].kernel = kernel;
    o->time_only = o->time_only && kernel->cycles > 0;
    return ptowsp_kernel_make(o->module, &desc);
}

static void build_task(oracle *o, const int32_t **at) {
    int32_t k = next_word(at);
    const oracle_kernel *kernel = &oracle_kernels[k];
    if (!o->kernels[k].id) {
        o->kernels[k] = make_kernel(o, (uint32_t)k);
        o->has_tile_kernels = o->has_tile_kernels || !kernel->fn;
    }
    ptowsp_task_desc desc = {0};
    desc.kernel = o->kernels[k];
    for (uint32_t i = 0; i < o->c->workload->axis_arg_count; i++) {
        desc.axes[i] = build_entry(o, at);
    }
    for (uint32_t i = 0; i < tile_count_of(kernel); i++) {
        desc.views[i] = build_view(o, at);
    }
    for (uint32_t i = 0; i < scalar_count_of(kernel); i++) {
        desc.scalars[i] = ptowsp_i64(o->module, next_word(at));
    }
    ptowsp_task_make(o->module, &desc);
}

static void build_loop(oracle *o, int32_t op, const int32_t **at) {
    char name[2] = {(char)next_word(at), 0};
    ptowsp_axis axis = o->axes[next_word(at)];
    o->variables[(int)name[0]] = op == PARALLEL   ? ptowsp_parallel_begin(o->module, name, axis)
                                 : op == FOR_EACH ? ptowsp_for_each_begin(o->module, name, axis)
                                                  : ptowsp_select_begin(o->module, name, axis);
}

static void build_tree(oracle *o) {
    ptowsp_module *m = o->module;
    const int32_t *at = o->c->workload->tree;
    ptowsp_workload_begin(m, o->c->name);
    for (;;) {
        int32_t op = next_word(&at);
        switch (op) {
        case STOP: ptowsp_scope_end(m); return;
        case END: ptowsp_scope_end(m); break;
        case TASK: build_task(o, &at); break;
        case PARALLEL:
        case FOR_EACH:
        case SELECT: build_loop(o, op, &at); break;
        case WHEN: ptowsp_when_begin(m, build_expr(o, &at, false)); break;
        case OTHERWISE: ptowsp_otherwise_begin(m); break;
        case COMBINE: ptowsp_combine_begin(m); break;
        case SEQUENCE: ptowsp_sequence_begin(m); break;
        case SLOT_SET: {
            uint32_t slot = (uint32_t)next_word(&at);
            ptowsp_slot_set(m, slot, build_expr(o, &at, false));
            break;
        }
        case SLOT_LOAD: {
            uint32_t slot = (uint32_t)next_word(&at);
            ptowsp_expr row = ptowsp_i64(m, next_word(&at)), col = ptowsp_i64(m, next_word(&at));
            ptowsp_view view = build_view(o, &at);
            ptowsp_slot_load(m, slot, &view, row, col);
            o->time_only = false;
            break;
        }
        default: fail_msg("no statement %d", (int)op);
        }
    }
}

static void build_module(oracle *o) {
    const oracle_workload *workload = o->c->workload;
    ptowsp_module *m = o->module;
    for (int i = 0; i < AXIS_MAX && workload->axes[i].name; i++) {
        const oracle_axis *axis = &workload->axes[i];
        o->axes[i] = axis->kind == DENSE     ? ptowsp_axis_dense(m, axis->name, axis->size)
                     : axis->kind == DYNAMIC ? ptowsp_axis_dynamic(m, axis->name)
                     : axis->kind == RAGGED  ? ptowsp_axis_ragged(m, axis->name)
                                             : ptowsp_axis_sparse(m, axis->name);
    }
    for (uint32_t i = 0; i < tensor_count(workload); i++) {
        const oracle_tensor *tensor = &workload->tensors[i];
        ptowsp_tensor_desc desc = {0};
        desc.name = tensor->name;
        desc.dtype = tensor->dtype;
        desc.rank = tensor->rank;
        memcpy(desc.shape, tensor->shape, sizeof(tensor->shape));
        o->tensors[i] = ptowsp_tensor_make(m, &desc);
    }
    build_tree(o);
    ptowsp_error error = ptowsp_module_error(m);
    if (error.status != PTOWSP_OK) {
        FAIL(o, "%s: %s", ptowsp_status_name(error.status), error.text);
    }
}

static ptowsp_schedule build_schedule(oracle *o, int mode) {
    ptowsp_schedule schedule = {0};
    schedule.issue = mode == IN_ORDER ? PTOWSP_ISSUE_IN_ORDER : PTOWSP_ISSUE_DATAFLOW;
    schedule.dispatch = o->c->dispatch;
    schedule.lane_count = o->c->lane_count;
    schedule.window = o->c->window;
    if (o->c->key) {
        const int32_t *at = o->c->key;
        schedule.dispatch_key = build_expr(o, &at, true);
    }
    if (mode == STRUCTURE) {
        schedule.dependencies = PTOWSP_DEPENDENCIES_STRUCTURE;
    } else if (mode == EXACT_RAW) {
        schedule.dependencies = PTOWSP_DEPENDENCIES_STRUCTURE | PTOWSP_DEPENDENCIES_EXACT;
        schedule.hazards = PTOWSP_HAZARD_RAW;
    } else if (mode == EXACT_ALL) {
        schedule.dependencies = PTOWSP_DEPENDENCIES_STRUCTURE | PTOWSP_DEPENDENCIES_EXACT;
        schedule.hazards = PTOWSP_HAZARD_RAW | PTOWSP_HAZARD_WAR | PTOWSP_HAZARD_WAW;
    }
    return schedule;  // in order and hybrid are defaults
}

// -- data and bindings ----------------------------------------------------------------------------

static void set_element(const oracle *o, uint32_t t, uint64_t i, double value) {
    switch (o->c->workload->tensors[t].dtype) {
    case PTOWSP_F16: ((uint16_t *)o->data[t])[i] = ptowsp_f16_from_f64(value); break;
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

static void fill_tensors(oracle *o) {
    for (uint32_t t = 0; t < tensor_count(o->c->workload); t++) {
        const oracle_tensor *tensor = &o->c->workload->tensors[t];
        for (uint64_t i = 0; i < element_count(tensor); i++) {
            int64_t step = ((int64_t)i * tensor->mul + tensor->add) % tensor->mod - tensor->sub;
            set_element(o, t, i,
                        tensor->data ? (double)tensor->data[i] : (double)step * tensor->scale);
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
    if (workload->symbol) {
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

// FNV-1a over words; see oracle_cases.py.
static uint64_t tasks_hash(const oracle *o, const ptowsp_task_record *records, uint64_t count) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t kernel = 0;
        while (kernel < KERNEL_COUNT && o->kernels[kernel].id != records[i].kernel) {
            kernel++;
        }
        uint64_t words[] = {kernel, records[i].lane, records[i].ready, records[i].start,
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
        check(o, "ready of task", i, records[i].ready, task->ready);
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
    check(o, "busy cycles of all lanes", 0, busy, o->variant->busy);
    if (o->c->window && stats->in_flight_max > o->c->window) {
        check(o, "tasks in flight, of a window", 0, stats->in_flight_max, o->c->window);
    }
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

static void execute(oracle *o, ptowsp_run *run, int mode, ptowsp_run_mode run_mode) {
    ptowsp_run_options options = {0};
    options.mode = run_mode;
    options.record_tasks = true;
    o->call_count = o->wrong_call_count = o->next_task = 0;
    for (uint64_t i = 0; i < o->variant->task_count; i++) {
        for (uint32_t k = 0; k < ARG_MAX; k++) {
            o->called_axes[i][k] = NOT_CALLED;
        }
    }
    fill_tensors(o);
    ptowsp_status status = ptowsp_run_execute(run, &options);
    check(o, "wrong calls of kernels", 0, o->wrong_call_count, 0);
    check_ok(o, "execute", status);
    check_stats(o, run);
    check_time(o, run, mode);
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

static void test_mode(oracle *o, const ptowsp_program *program, int mode) {
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
        o->step = "second time";
        size_t allocations = o->memory.allocations;
        execute(o, run, mode, PTOWSP_RUN_EXECUTE);
        check(o, "allocations", 0, o->memory.allocations - allocations, 0);
        check_calls(o);
        check_outputs(o);
        if (o->time_only) {
            execute_time_only(o, run, mode);
        }
        free(o->called_axes);
    }
    ptowsp_run_destroy(run);
}

static void oracle__gives_what_v9_gave(void **state) {
    static oracle o;
    ptowsp_program *programs[MODE_COUNT];
    memset(&o, 0, sizeof(o));
    o.c = &oracle_cases[*(const size_t *)*state];
    o.mode = o.step = "build";
    o.time_only = true;
    ptowsp_context_desc desc = {0};
    desc.resize = test_resize;
    desc.resize_user = &o.memory;
    assert_int_equal(ptowsp_context_create(&desc, &o.context), PTOWSP_OK);
    check_ok(&o, "module", ptowsp_module_create(o.context, NULL, &o.module));
    build_module(&o);
    for (int mode = 0; mode < MODE_COUNT; mode++) {
        ptowsp_schedule schedule = build_schedule(&o, mode);
        ptowsp_program_desc program_desc = {o.c->name, &schedule};
        o.mode = mode_names[mode];
        check_ok(&o, "program",
                 ptowsp_program_create(o.context, o.module, &program_desc, &programs[mode]));
    }
    ptowsp_module_destroy(o.module);
    for (uint32_t t = 0; t < tensor_count(o.c->workload); t++) {
        o.data[t] = malloc((size_t)byte_count(&o.c->workload->tensors[t]));
        assert_non_null(o.data[t]);
    }
    for (int mode = 0; mode < MODE_COUNT; mode++) {
        test_mode(&o, programs[mode], mode);
        ptowsp_program_destroy(programs[mode]);
    }
    for (uint32_t t = 0; t < tensor_count(o.c->workload); t++) {
        free(o.data[t]);
    }
    ptowsp_context_destroy(o.context);
    assert_int_equal(o.memory.live_blocks, 0);
}

static int run_cases(void) {
    static size_t indices[CASE_COUNT];
    struct CMUnitTest tests[CASE_COUNT];
    memset(tests, 0, sizeof(tests));
    for (size_t i = 0; i < CASE_COUNT; i++) {
        indices[i] = i;
        tests[i].name = oracle_cases[i].name;
        tests[i].test_func = oracle__gives_what_v9_gave;
        tests[i].initial_state = &indices[i];
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
