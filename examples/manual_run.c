// Sections 16 to 22, 25 and Appendix A of the manual: a step over a sparse axis with a transient
// tensor, a symbol, a slot and an event. It runs as workers and on a thread of its own, its bindings
// are read back, and the run is explained: what it waited for, what bounds it, what would help.

#include "common/manual.h"

#include <string.h>

enum { TOKENS = 4, EXPERTS = 3, DIM = 4, EVEN_SLOT = 0 };

static ptowsp_cycles prepare(const ptowsp_task *task, void *user) {  // x of token t is t + 1
    float *x = (float *)task->tiles[0].data;
    for (int i = 0; i < DIM; i++) {
        x[i] = (float)(ptowsp_task_axis(task, 0) + 1);
    }
    return user ? 0 : 40;
}

static ptowsp_cycles apply(const ptowsp_task *task, void *user) {  // out += gate * x
    const float *x = (const float *)task->tiles[0].data;
    float *out = (float *)task->tiles[1].data;
    for (int i = 0; i < DIM; i++) {
        out[i] += (float)ptowsp_task_scalar(task, 0) * x[i];
    }
    return user ? 0 : 100;
}

static ptowsp_cycles nothing(const ptowsp_task *task, void *user) {
    (void)task, (void)user;
    return 0;
}

// All operations on integers and bools: true for an odd number of tokens' ids, written the long way.
static ptowsp_expr is_odd(ptowsp_module *m, ptowsp_expr token) {
    const ptowsp_expr one = ptowsp_i64(m, 1), bit = ptowsp_bitand(token, one);
    const ptowsp_expr again =
        ptowsp_bitxor(ptowsp_bitor(bit, ptowsp_shl(one, one)), ptowsp_shl(one, one));
    const ptowsp_expr inverted = ptowsp_neg(ptowsp_add(ptowsp_bitnot(bit), one));  // bit, too
    const ptowsp_expr both =
        ptowsp_and(ptowsp_eq(again, one), ptowsp_ne(inverted, ptowsp_i64(m, 0)));
    const ptowsp_expr half = ptowsp_shr(ptowsp_sub(token, bit), one);
    return ptowsp_or(
        ptowsp_and(both, ptowsp_ge(ptowsp_mul(half, ptowsp_i64(m, 2)), ptowsp_i64(m, 0))),
        ptowsp_not(ptowsp_bool(m, true)));
}

static void build(ptowsp_module *m) {
    const ptowsp_axis tokens = ptowsp_axis_dynamic(m, "tokens");
    const ptowsp_axis experts = ptowsp_axis_sparse(m, "experts");
    const ptowsp_tile_param hidden = {.name = "x", .dtype = PTOWSP_F32, .rows = 1, .cols = DIM};
    ptowsp_kernel_desc kernel = {
        .name = "prepare", .axis_count = 1, .fn = prepare, .cycles = 40, .tiles = {hidden}};
    kernel.tiles[0].direction = PTOWSP_OUT;
    ptowsp_task_desc first = {.kernel = ptowsp_kernel_make(m, &kernel)};
    kernel = (ptowsp_kernel_desc){
        .name = "apply", .fn = apply, .cycles = 100, .tiles = {hidden, hidden}};
    kernel.tiles[0].direction = PTOWSP_IN;
    kernel.tiles[1].name = "out";
    kernel.tiles[1].direction = PTOWSP_INOUT;
    kernel.scalars[0] = (ptowsp_scalar_param){.name = "gate", .type = PTOWSP_TYPE_U64};
    ptowsp_task_desc then = {.kernel = ptowsp_kernel_make(m, &kernel)};

    ptowsp_tensor_desc desc = {
        .name = "hidden", .dtype = PTOWSP_F32, .rank = 2, .shape = {PTOWSP_DYNAMIC, DIM}};
    const ptowsp_expr sizes[2] = {ptowsp_axis_size(m, tokens)};
    first.views[0].tensor = then.views[0].tensor = ptowsp_tensor_transient(m, &desc, sizes);
    desc.name = "out";
    then.views[1].tensor = ptowsp_tensor_make(m, &desc);
    PTOWSP_WORKLOAD(m, "token") {  // the experts of one token, by their gates
        const ptowsp_expr t = ptowsp_workload_param(m, "t", PTOWSP_TYPE_I64);
        first.axes[0] = first.views[0].row = then.views[0].row = then.views[1].row = t;
        ptowsp_task_make(m, &first);
        PTOWSP_WHEN(m, is_odd(m, t)) {
            PTOWSP_SELECT(m, e, ptowsp_axis_row(m, experts, t)) {
                then.scalars[0] = ptowsp_array_at(m, "gates", PTOWSP_U32, ptowsp_loop_entry(e));
                ptowsp_task_make(m, &then);
            }
        }
        PTOWSP_OTHERWISE(m) {
            then.scalars[0] = ptowsp_symbol(m, "even_gate");
            ptowsp_task_make(m, &then);
            ptowsp_slot_set_make(
                m, EVEN_SLOT,
                ptowsp_add(ptowsp_slot(m, EVEN_SLOT, PTOWSP_TYPE_I64), ptowsp_i64(m, 1)));
        }
    }
    kernel = (ptowsp_kernel_desc){.name = "stage", .fn = nothing, .cycles = 30};
    const ptowsp_task_desc stage = {.kernel = ptowsp_kernel_make(m, &kernel)};
    PTOWSP_WORKLOAD(m, "step") {
        PTOWSP_FOR_EACH(m, t, tokens) ptowsp_call_make(m, "token", &t, 1);
        PTOWSP_PIPELINE(m, "signal") {  // the second process begins when the first says so
            const ptowsp_channel ready = ptowsp_event_make(m, "ready");
            PTOWSP_PROCESS(m, "first") {
                ptowsp_produces(m, ready);
                ptowsp_task_make(m, &stage);
                ptowsp_record_make(m, ready);
            }
            PTOWSP_PROCESS(m, "second") {
                ptowsp_consumes(m, ready);
                ptowsp_wait_make(m, ready);
                ptowsp_task_make(m, &stage);
            }
        }
    }
}

// -- the step -------------------------------------------------------------------------------------

static const uint32_t indptr[TOKENS + 1] = {0, 1, 3, 4, 6}, indices[6] = {2, 0, 1, 1, 0, 2};
static const uint32_t gates[6] = {9, 1, 2, 9, 3, 4};
static const ptowsp_csr csr = {.dtype = PTOWSP_U32,
                               .indptr = indptr,
                               .indices = indices,
                               .row_count = TOKENS,
                               .entry_count = 6};
static float out[TOKENS][DIM];
static _Alignas(PTOWSP_TRANSIENT_ALIGN) char block[4096];

static void bind(ptowsp_context *context, ptowsp_run *run) {
    const ptowsp_buffer memory = {
        .data = out, .size = sizeof out, .rank = 2, .shape = {TOKENS, DIM}};
    const ptowsp_status statuses[] = {ptowsp_run_bind_size(run, "tokens", TOKENS),
                                      ptowsp_run_bind_csr(run, "experts", &csr),
                                      ptowsp_run_bind_array(run, "gates", PTOWSP_U32, gates, 6),
                                      ptowsp_run_bind_symbol(run, "even_gate", 5),
                                      ptowsp_run_bind_slot(run, EVEN_SLOT, 10),
                                      ptowsp_run_bind_transients(run, block, sizeof block),
                                      ptowsp_run_bind_tensor(run, "out", &memory)};
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        manual_check(!statuses[i], ptowsp_context_error(context).text);
    }
}

// Even tokens have gate 5; odd ones the sum of their experts' gates: 1 + 2 and 3 + 4.
static void outputs_check(void) {
    static const float want[TOKENS] = {5 * 1, 3 * 2, 5 * 3, 7 * 4};
    for (int t = 0; t < TOKENS; t++) {
        manual_check(out[t][0] == want[t] && out[t][DIM - 1] == want[t], "a row of the output");
    }
    memset(out, 0, sizeof out);
}

// Other ways to run a program read its bindings.
static void bindings_check(const ptowsp_program *program, const ptowsp_run *run) {
    const ptowsp_program_tables *t = ptowsp_program_read(program);
    bool has_size = false, has_csr = false, has_array = false, has_symbol = false, has_plan = false;
    for (uint32_t i = 1; i < t->axis_count; i++) {
        int64_t size;
        ptowsp_csr found;
        ptowsp_attention_plan plan;
        ptowsp_attention_batch of;
        ptowsp_attention_config config;
        ptowsp_attention_sizes capacity;
        has_size |= ptowsp_run_bound_size(run, i, &size) && size == TOKENS;
        has_csr |= ptowsp_run_bound_csr(run, i, &found) && found.indices == indices;
        has_plan |= ptowsp_run_bound_plan(run, i, &plan) ||
                    ptowsp_run_bound_batch(run, i, &of, &config, &capacity);
    }
    for (uint32_t i = 1; i < t->array_count; i++) {
        ptowsp_dtype dtype;
        const void *data;
        uint64_t count;
        has_array |= ptowsp_run_bound_array(run, i, &dtype, &data, &count) && data == gates;
    }
    for (uint32_t i = 1; i < t->symbol_count; i++) {
        uint64_t value;
        has_symbol |= ptowsp_run_bound_symbol(run, i, &value) && value == 5;
    }
    void *memory;
    uint64_t size;
    ptowsp_run_bound_transients(run, &memory, &size);
    manual_check(has_size && has_csr && has_array && has_symbol && !has_plan && memory == block &&
                     ptowsp_run_bound_slot(run, EVEN_SLOT) == 10,
                 "bindings");
}

// -- an explanation -------------------------------------------------------------------------------

static bool edge_print(void *user, const ptowsp_edge *edge) {
    (void)user;
    printf("  task %u waits for task %u: %s\n", (unsigned)edge->to, (unsigned)edge->from,
           ptowsp_edge_reason_name(edge->reason));
    return true;
}

static void explain(ptowsp_context *context, const ptowsp_program *program, ptowsp_run *run) {
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    const ptowsp_record_options edges = {.level = PTOWSP_RECORD_EDGES};
    ptowsp_run_bounds bounds;
    uint32_t kernel_count, pipeline_count;
    manual_check(!ptowsp_run_record(run, &edges) && !ptowsp_run_execute(run, &options) &&
                     !ptowsp_run_find_bounds(run, &bounds),
                 ptowsp_context_error(context).text);
    const ptowsp_run_stats stats = *ptowsp_run_result(run);
    const ptowsp_task_sums *sums = ptowsp_run_kernels(run, &kernel_count);
    for (uint32_t k = 1; k < kernel_count; k++) {
        printf("kernel %s: %u tasks, %u cycles\n", ptowsp_program_kernel_name(program, k),
               (unsigned)sums[k].task_count, (unsigned)sums[k].busy_cycles);
    }
    ptowsp_task_trace task;
    if (ptowsp_run_trace_find(run, stats.task_count - 3, &task)) {  // the last before the pipeline
        ptowsp_program_print_place(program, task.record->node, manual_output());
        printf(": ");
        ptowsp_run_print_task(run, &task, manual_output());
        puts("");
        ptowsp_run_edges(run, task.index, edge_print, NULL);
    }
    ptowsp_cycles idle = 0, busy = 0;
    for (int reason = 0; reason < PTOWSP_STALL_COUNT; reason++) {
        idle += ptowsp_run_idle(run)[reason];
    }
    const ptowsp_usage usage = ptowsp_run_usage(run);
    for (uint32_t i = 0; i < usage.bin_count * usage.kernel_count; i++) {
        busy += usage.busy[i];
    }
    printf("lanes: %u cycles busy, %u idle; no schedule is below %u of %u cycles\n", (unsigned)busy,
           (unsigned)idle, (unsigned)bounds.largest_cycles, (unsigned)stats.makespan_cycles);
    manual_check(busy + idle == stats.lane_count * stats.makespan_cycles + 60,
                 "busy and idle cycles: those of the lanes, and 60 in the pipeline");

    uint64_t step_count, chain_count;
    const ptowsp_step_record *steps = ptowsp_run_steps(run, &step_count);
    const uint64_t *chain = ptowsp_run_critical_steps(run, 0, &chain_count);
    const ptowsp_pipeline_stats *pipelines = ptowsp_run_pipelines(run, &pipeline_count);
    manual_check(pipeline_count == 1 && pipelines[0].makespan_cycles == 60 && chain_count > 0 &&
                     steps[chain[chain_count - 1]].end == 60,
                 "the pipeline takes both stages, one after the other");
    ptowsp_transient_sizes sizes;
    manual_check(!ptowsp_run_size_transients(run, &sizes), ptowsp_context_error(context).text);
    for (uint32_t i = 0; i < sizes.lifetime_count; i++) {
        const ptowsp_lifetime life = ptowsp_run_lifetime_at(run, i);
        printf("transient tensor: %u bytes, in use from ", (unsigned)life.size);
        ptowsp_program_print_point(program, life.first, manual_output());
        puts("");
    }
    ptowsp_what_if faster = {.kernel = 2, .percent = 50};  // apply in half of its time
    manual_check(!ptowsp_run_what_if(run, &options, &faster), ptowsp_context_error(context).text);
    printf("if %s took half of its time: %u cycles\n", ptowsp_program_kernel_name(program, 2),
           (unsigned)faster.makespan_cycles);
    manual_check(faster.makespan_cycles < stats.makespan_cycles, "a faster kernel helps");
}

int main(void) {
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
    ptowsp_run *run;
    if (ptowsp_context_create(NULL, &context) || ptowsp_module_create(context, NULL, &m)) {
        return 1;
    }
    const ptowsp_expr odd = is_odd(m, ptowsp_cast(ptowsp_symbol(m, "id"), PTOWSP_TYPE_I64));
    manual_check(ptowsp_expr_type(odd) == PTOWSP_TYPE_BOOL, "a comparison is a bool");
    ptowsp_expr_print(odd, manual_output());
    puts("");
    build(m);
    const ptowsp_schedule schedule = {.lane_count = 2};
    const ptowsp_program_desc desc = {.schedule = &schedule};
    if (ptowsp_program_create(context, m, &desc, &program) ||
        ptowsp_run_create(context, program, &run)) {
        puts(ptowsp_context_error(context).text);
        return 1;
    }
    manual_check(!ptowsp_program_check(context, program, PTOWSP_TARGET_CPU_SIM), "the target");
    ptowsp_program_print_schedule(program, manual_output());

    bind(context, run);
    bindings_check(program, run);
    manual_check(!ptowsp_run_execute_worker(run, NULL, 0, 1), ptowsp_context_error(context).text);
    manual_check(ptowsp_run_slot(run, EVEN_SLOT) == 12, "two even tokens, from 10 on");
    ptowsp_fingerprint print;
    manual_check(!ptowsp_run_fingerprint(run, &print) && !ptowsp_run_expect(run, &print),
                 "a strict run: the next one has the same bindings, results and time");
    outputs_check();
    manual_check(!ptowsp_run_start(run, NULL), ptowsp_context_error(context).text);
    ptowsp_status status;
    do {  // an engine binds the next step meanwhile
        status = ptowsp_run_poll(run);
    } while (status == PTOWSP_BUSY);
    manual_check(!status, ptowsp_context_error(context).text);
    outputs_check();
    ptowsp_run_expect(run, NULL);
    explain(context, program, run);

    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
    return manual_end();
}
