// Records of the steps of processes, and the critical chain through them.
//
// The time of a step comes from one of two others: the step before it in the same process or, where
// it had to wait, the step of another process that it waited for (`cause`). Following these links
// back from the end of the process that ends last explains the pipeline's makespan.
//
//      load     task 0 --> send 0 --> task 1 --> send 1 ...
//                              \                               chain: task 0, send 0, receive 0,
//      compute  receive 0 <-----+    --> task 2 --> ...               task 2, ...
//
// On the way each process remembers the last task on its chain. In the records of tasks it becomes
// the cause of the process' next task.

#include "pipeline.h"

#include <inttypes.h>

#define PWSP_ORDER_STEP_MAX 200  // that a report lists

PWSP_INTERNAL uint64_t pwsp_step_add(void *user, pwsp_process *process, ptowsp_step_kind kind,
                                     uint32_t channel, uint64_t end, uint64_t token,
                                     const pwsp_channel_mark *cause) {
    pwsp_pipelines *pipelines = (pwsp_pipelines *)user;
    uint64_t index = pipelines->exchange.step_count;
    if (!PWSP_GROW(&pipelines->memory, pipelines->steps, pipelines->step_capacity, index + 1)) {
        pipelines->is_out_of_memory = true;
        return PWSP_NO_STEP;
    }
    pipelines->exchange.step_count++;
    const ptowsp_pipeline_stats *stats = &pipelines->stats[pipelines->index];
    ptowsp_step_record *step = &pipelines->steps[index];
    bool is_chosen = pipelines->exchange.moves == PWSP_MOVES_CHOSEN;  // the k-th step is at time k
    step->arrive = is_chosen ? index + 1 : process->time;
    step->end = is_chosen ? index + 1 : end;
    step->token = token;
    step->previous = process->step;
    step->cause = cause ? cause->step : PTOWSP_NO_INDEX;
    step->process = stats->first_process + process->index;
    step->channel = channel;
    step->node = process->node;
    step->kind = kind;
    process->step = index;
    if (cause) {
        process->task = cause->task;
        process->mover = PWSP_MOVER_CHANNEL;
    } else if (end > step->arrive || kind == PTOWSP_STEP_TASK) {
        process->mover = kind == PTOWSP_STEP_TASK ? PWSP_MOVER_TASK : PWSP_MOVER_CHANNEL;
    }
    return index;
}

// The step that the time of a step comes from.
static uint64_t pwsp_steps_before(const pwsp_pipelines *pipelines, uint64_t at) {
    const ptowsp_step_record *step = &pipelines->steps[at];
    return step->cause != PTOWSP_NO_INDEX ? step->cause : step->previous;
}

// Appends the chain that ends with a step, in forward order. False when memory is out.
static bool pwsp_steps_find_chain(pwsp_pipelines *pipelines, pwsp_chain *chain) {
    uint64_t count = 0;
    for (uint64_t at = chain->end_step; at != PWSP_NO_STEP; at = pwsp_steps_before(pipelines, at)) {
        count++;
    }
    bool has_memory = true;  // by doubling, so that a run like an earlier one needs no more
    while (has_memory && pipelines->chain_capacity < pipelines->chain_count + count) {
        has_memory = PWSP_GROW(&pipelines->memory, pipelines->chain_steps,
                               pipelines->chain_capacity, pipelines->chain_capacity + 1);
    }
    chain->first = pipelines->chain_count;
    chain->count = has_memory ? count : 0;
    pipelines->chain_count += chain->count;
    if (!has_memory) {
        return false;
    }
    uint64_t at = chain->end_step;
    for (uint64_t i = pipelines->chain_count; i > chain->first;
         at = pwsp_steps_before(pipelines, at)) {
        pipelines->chain_steps[--i] = at;
    }
    return true;
}

PWSP_INTERNAL bool pwsp_steps_find_chains(pwsp_pipelines *pipelines) {
    pipelines->chain_count = 0;
    for (uint32_t i = 0; i < pipelines->program->pipelines.count; i++) {
        if (!pwsp_steps_find_chain(pipelines, &pipelines->chains[i])) {
            return false;
        }
    }
    return true;
}

// -- text -----------------------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_steps_print_name(const ptowsp_process_stats *process, ptowsp_output text) {
    pwsp_process_print_name(process->name, process->replica, process->replica_count, text);
}

PWSP_INTERNAL void pwsp_steps_print(const pwsp_pipelines *pipelines, const ptowsp_step_record *step,
                                    ptowsp_output text) {
    const char *channel =
        step->channel == UINT32_MAX ? "" : pipelines->channel_stats[step->channel].name;
    pwsp_steps_print_name(&pipelines->process_stats[step->process], text);
    switch (step->kind) {
    case PTOWSP_STEP_TASK: pwsp_text_format(text, " does task %" PRIu64, step->token); break;
    case PTOWSP_STEP_SEND:
        pwsp_text_format(text, " sends %" PRId64 " to %s", (int64_t)step->token, channel);
        break;
    case PTOWSP_STEP_RECEIVE:
        pwsp_text_format(text, " receives %" PRId64 " from %s", (int64_t)step->token, channel);
        break;
    case PTOWSP_STEP_END: pwsp_text_format(text, " sees the end of %s", channel); break;
    default:
        PTOWSP_ASSERT(step->kind == PTOWSP_STEP_CLOSE);
        pwsp_text_format(text, step->channel == UINT32_MAX ? " ends" : " closes %s", channel);
    }
}

PWSP_INTERNAL void pwsp_steps_print_order(const pwsp_pipelines *pipelines, ptowsp_output text) {
    uint64_t count = pipelines->exchange.step_count;
    uint64_t first = count > PWSP_ORDER_STEP_MAX ? count - PWSP_ORDER_STEP_MAX : 0;
    pwsp_text_format(text, "  order:\n");
    if (first) {
        pwsp_text_format(text, "    ... %" PRIu64 " steps before\n", first);
    }
    for (uint64_t i = first; i < count; i++) {
        pwsp_text_format(text, "    %" PRIu64 "  ", i + 1);
        pwsp_steps_print(pipelines, &pipelines->steps[i], text);
        pwsp_text_format(text, ", at ");
        pwsp_program_print_place(pipelines->program, pipelines->steps[i].node, NULL, text);
        pwsp_text_format(text, "\n");
    }
}
