// Builds the cases of the tables included before through the public interface: kernels, axes,
// tensors, the tree, and the schedule of each mode. Also what a case is while it is tested, and how
// its failures are told.

#ifndef ORACLE_BUILD_H
#define ORACLE_BUILD_H

#include "oracle_tables.h"

enum { CASE_COUNT = sizeof(oracle_cases) / sizeof(oracle_cases[0]) };

// -- a case while it is tested --------------------------------------------------------------------

typedef struct oracle oracle;

// What a kernel function is handed: it notes each call before it does its work. Tile kernels do
// not. Without lanes calls come in the order of tasks.
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
    ptowsp_channel channels[CHANNEL_MAX];
    void *data[TENSOR_MAX];
    ptowsp_expr variables[128];  // by character
    bool is_declared;            // of a pipeline: latency and cycles, not bound and not data
    bool time_only;              // time does not depend on data
    bool has_tile_kernels;
    ptowsp_parse_kernel attached[KERNEL_COUNT];  // those that are functions
    uint32_t attached_count;
    uint32_t lane_count;                               // of executions
    uint64_t call_count, wrong_call_count, next_task;  // atomic
    int64_t (*called_axes)[ARG_MAX];                   // of each task; NOT_CALLED
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
    uint64_t next = __atomic_exchange_n(&o->next_task, task->index + 1, __ATOMIC_RELAXED);
    bool good = (o->lane_count > 1 || task->index >= next) &&
                task->index < o->variant->task_count && task->lane < o->lane_count &&
                task->user_axis_count == axis_count && !strcmp(task->kernel_name, kernel->name);
    good = good && task->tile_count == tile_count &&
           task->arg_count == task->axis_arg_count + scalar_count_of(kernel) &&
           task->axis_arg_count == axis_count + 2 * tile_count;
    for (uint32_t i = 0; good && i < tile_count; i++) {
        good = ptowsp_task_rows(task, i) == kernel->tiles[i].rows &&
               ptowsp_task_cols(task, i) == kernel->tiles[i].cols;
    }
    __atomic_fetch_add(&o->call_count, 1u, __ATOMIC_RELAXED);
    if (!good) {
        __atomic_fetch_add(&o->wrong_call_count, 1u, __ATOMIC_RELAXED);
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
        *a = ptowsp_cast(*a, PTOWSP_TYPE_U64);
        *b = ptowsp_cast(*b, PTOWSP_TYPE_U64);
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
    case SLOT: return ptowsp_slot(m, (uint32_t)next_word(at), PTOWSP_TYPE_U64);
    case SYMBOL: return ptowsp_symbol(m, o->c->workload->symbol);
    case TO_I64: return ptowsp_cast(build_expr(o, at, is_key), PTOWSP_TYPE_I64);
    case TO_U64: return ptowsp_cast(build_expr(o, at, is_key), PTOWSP_TYPE_U64);
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

// With a function for its cycles, if it is not NULL.
static ptowsp_kernel make_c_kernel(oracle *o, uint32_t k, ptowsp_kernel_fn cost) {
    const oracle_kernel *kernel = &oracle_kernels[k];
    ptowsp_kernel_desc desc = {0};
    desc.name = kernel->name;
    desc.axis_count = o->c->workload->axis_arg_count;
    memcpy(desc.tiles, kernel->tiles, sizeof(kernel->tiles));
    memcpy(desc.scalars, kernel->scalars, sizeof(kernel->scalars));
    desc.fn = noted_call;
    desc.cost = cost;
    desc.cycles = kernel->cycles;
    desc.user = &o->callees[k];
    desc.source.fn = oracle_function_name(kernel->fn);
    desc.source.text = desc.source.fn && !cost ? oracle_source : NULL;  // costs know their case
    desc.source.fn = desc.source.text ? desc.source.fn : NULL;
    o->callees[k].o = o;
    o->callees[k].kernel = kernel;
    o->time_only = o->time_only && (cost || kernel->cycles > 0);
    o->attached[o->attached_count++] = (ptowsp_parse_kernel){
        .name = desc.name, .fn = desc.fn, .cost = cost, .user = desc.user, .source = desc.source};
    return ptowsp_kernel_make(o->module, &desc);
}

// A task, or one that is sent.
static void build_task(oracle *o, int32_t op, const int32_t **at) {
    int32_t channel = op == SEND ? next_word(at) : 0;
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
    if (op == SEND) {
        ptowsp_send_task(o->module, o->channels[channel], &desc);
    } else {
        ptowsp_task_make(o->module, &desc);
    }
}

static void build_loop(oracle *o, int32_t op, const int32_t **at) {
    char name[2] = {(char)next_word(at), 0};
    ptowsp_axis axis = o->axes[next_word(at)];
    o->variables[(int)name[0]] = op == PARALLEL   ? ptowsp_parallel_begin(o->module, name, axis)
                                 : op == FOR_EACH ? ptowsp_for_each_begin(o->module, name, axis)
                                                  : ptowsp_select_begin(o->module, name, axis);
}

// Names are letters. The latency of channels is bound, and then declared as something else.
static void build_pipeline(oracle *o) {
    char name[2] = {'a', 0};
    ptowsp_pipeline_begin(o->module, "pipeline", NULL, 0);
    for (uint32_t i = 0; i < o->c->workload->channel_count; i++, name[0]++) {
        ptowsp_channel_desc desc = {0};
        desc.name = name;
        desc.depth = o->c->depths[i];
        desc.latency = o->is_declared ? o->c->variants[0].symbol : 1000;
        o->channels[i] = ptowsp_channel_make(o->module, &desc);
    }
}

static void build_process_part(oracle *o, int32_t op, const int32_t **at) {
    char name[2] = {op == CONSUME ? (char)next_word(at) : 0, 0};
    ptowsp_channel channel = o->channels[next_word(at)];
    switch (op) {
    case CONSUMES: ptowsp_consumes(o->module, channel); break;
    case PRODUCES: ptowsp_produces(o->module, channel); break;
    default: o->variables[(int)name[0]] = ptowsp_consume_begin(o->module, name, channel);
    }
}

static void build_tree(oracle *o) {
    ptowsp_module *m = o->module;
    const int32_t *at = o->c->workload->tree;
    char process[2] = {'a', 0};
    ptowsp_workload_begin(m, o->c->name);
    for (;;) {
        int32_t op = next_word(&at);
        switch (op) {
        case STOP: ptowsp_scope_end(m); return;
        case END: ptowsp_scope_end(m); break;
        case TASK:
        case SEND: build_task(o, op, &at); break;
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
        case PIPELINE: build_pipeline(o); break;
        case PROCESS: ptowsp_process_begin(m, process), process[0]++; break;
        case CONSUMES:
        case PRODUCES:
        case CONSUME: build_process_part(o, op, &at); break;
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

#endif
