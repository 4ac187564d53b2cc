// Exploring a run: its program is walked without tasks, and of each pipeline that the walk reaches
// the orders of its processes are searched.

#include "../csp/explore.h"
#include "run.h"

#include <inttypes.h>

#define PWSP_EXPLORE_STATES 65536u
#define PWSP_EXPLORE_STEPS  (UINT64_C(1) << 24)

// Kernels do not run, so their outputs must not decide which messages are sent and received.
static ptowsp_status pwsp_explore_check_loads(ptowsp_run *run, const pwsp_control *control) {
    const ptowsp_program *p = run->program;
    for (uint32_t i = 0; i < p->ops.count; i++) {
        const pwsp_op *op = PWSP_OP_AT(p, i);
        if (op->kind != PWSP_OP_SLOT_LOAD || control->ops[i]) {
            continue;
        }
        uint32_t tensor = p->slot_ops.items[op->at].view.tensor;
        if (run->walk.is_written[tensor]) {
            run->walk.expander.cells = NULL;  // no variables around
            run->walk.expander.node = op->node;
            pwsp_expander_fail(&run->walk.expander, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                               "it loads from tensor %s, which tasks write, and sends or receives "
                               "depend on it: orders of them are known only by executing",
                               p->tensors.items[tensor].name);
            return pwsp_run_fail_walk(run);
        }
    }
    return PTOWSP_OK;
}

static ptowsp_status pwsp_explore_prepare(ptowsp_run *run, const ptowsp_run_options *options,
                                          pwsp_control *control) {
    ptowsp_status status = pwsp_bindings_verify_data(&run->bindings, true);
    if (status == PTOWSP_OK) {
        pwsp_timeline_bind(&run->time, run->bindings.effective);
        run->walk.is_time_only = false;  // loads are checked below
        status = pwsp_walk_find_unknown(&run->walk, &run->time.sim.deps);
        run->walk.is_time_only = true;
    }
    if (status == PTOWSP_OK && !pwsp_control_find(control, &run->context->memory, run->program)) {
        status = PWSP_NO_MEMORY(run->context, "run: out of memory");
    }
    if (status == PTOWSP_OK && !pwsp_pipes_begin(&run->pipes, options, NULL)) {
        status = pwsp_run_fail_walk(run);
    }
    return status == PTOWSP_OK ? pwsp_explore_check_loads(run, control) : status;
}

typedef struct pwsp_exploring {
    ptowsp_run *run;
    pwsp_explorer *explorer;
    ptowsp_status status;
} pwsp_exploring;

// One pipeline of the walk.
static bool pwsp_explore_pipeline(void *user) {
    pwsp_exploring *on = (pwsp_exploring *)user;
    ptowsp_run *run = on->run;
    const char *name = run->walk.expander.pipeline->name;
    switch (pwsp_explorer_run(on->explorer)) {
    case PWSP_EXPLORED_ALL: return true;
    case PWSP_EXPLORED_LIMIT:
        on->status =
            pwsp_fail(run->context, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                      "run: not all orders of pipeline %s have been explored, of %" PRIu64
                      " states and %" PRIu64 " steps at most; none of those explored gets stuck",
                      name, on->explorer->state_limit, on->explorer->step_limit);
        return false;
    default: return false;  // one is stuck, or fails
    }
}

// No task has an effect here.
static ptowsp_status pwsp_explore_walk(ptowsp_run *run, pwsp_explorer *explorer) {
    static const pwsp_sink search = {NULL, NULL, NULL, pwsp_explore_pipeline, NULL};
    pwsp_exploring on = {run, explorer, PTOWSP_OK};
    pwsp_event event = PWSP_EVENT_NONE;
    pwsp_walk_begin(&run->walk, false);
    run->walk.expander.unknown = explorer->control->ops;
    if (pwsp_stream_run(&run->walk, &search, &on, &event) || on.status != PTOWSP_OK) {
        return on.status;
    }
    return pwsp_run_fail_walk(run);
}

// The status of a search that was cut: the status of a pipeline that gets stuck stays.
static ptowsp_status pwsp_explore_cut(ptowsp_run *run, const pwsp_explorer *explorer,
                                      ptowsp_status status) {
    ptowsp_status cut = pwsp_halt_status(&run->walk.halt);
    if (cut == PTOWSP_OK || status != cut) {
        return status;
    }
    return pwsp_fail(run->context, cut, PTOWSP_NO_INDEX,
                     "run: %s; none of the orders explored, in %" PRIu64 " steps, gets stuck",
                     cut == PTOWSP_CANCELLED ? "cancelled" : "its time limit is over",
                     explorer->step_count);
}

// Explores a claimed run.
static ptowsp_status pwsp_explore_claimed(ptowsp_run *run, const ptowsp_explore_options *options,
                                          const ptowsp_run_options *walked,
                                          ptowsp_explore_stats *out_stats) {
    PWSP_ZERO(ptowsp_record_options, nothing);
    pwsp_control control;
    pwsp_explorer explorer;
    memset(&control, 0, sizeof control);
    memset(&explorer, 0, sizeof explorer);
    pwsp_sim_begin(&run->time.sim);
    pwsp_recorder_begin(&run->result.recorder, &run->time.sim, &nothing);  // which takes no memory
    pwsp_result_forget(&run->result, 0);
    pwsp_pipelines_forget(&run->pipes.pipelines);
    ptowsp_status status = pwsp_explore_prepare(run, walked, &control);
    if (status == PTOWSP_OK) {
        explorer.pipelines = &run->pipes.pipelines;
        explorer.control = &control;
        explorer.state_limit = options->state_limit ? options->state_limit : PWSP_EXPLORE_STATES;
        explorer.step_limit = options->step_limit ? options->step_limit : PWSP_EXPLORE_STEPS;
        explorer.state_limit = pwsp_min_u64(explorer.state_limit, PWSP_EXPLORE_NOBODY - 1);
        status = pwsp_explore_cut(run, &explorer, pwsp_explore_walk(run, &explorer));
        out_stats->state_count = explorer.state_count;
        out_stats->step_count = explorer.step_count;
        pwsp_explorer_free(&explorer);
    }
    pwsp_control_free(&control);
    return status;
}

ptowsp_status ptowsp_run_explore(ptowsp_run *run, const ptowsp_explore_options *options,
                                 ptowsp_explore_stats *out_stats) {
    PTOWSP_ASSERT(run);
    PWSP_ZERO(ptowsp_explore_options, chosen);
    ptowsp_explore_stats stats;
    ptowsp_run_options walked;
    memset(&stats, 0, sizeof stats);
    memset(&walked, 0, sizeof walked);
    if (options) {
        chosen = *options;
    }
    walked.mode = PTOWSP_RUN_TIME_ONLY;
    walked.time_limit_ns = chosen.time_limit_ns;
    ptowsp_status status;
    if (!pwsp_run_is_running(run) && !pwsp_load_relaxed(&run->context->busy) &&
        pwsp_run_claim(run, &walked)) {
        status = pwsp_explore_claimed(run, &chosen, &walked, &stats);
        pwsp_run_leave(run);
    } else {
        status = pwsp_fail_busy(run->owner);
    }
    if (out_stats) {
        *out_stats = stats;
    }
    return status;
}
