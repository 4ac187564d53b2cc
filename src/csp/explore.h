// Searches the orders in which the processes of a pipeline can move for one that gets stuck.

#ifndef PWSP_EXPLORE_H
#define PWSP_EXPLORE_H

#include "../workload/control.h"
#include "order.h"

#define PWSP_EXPLORE_NOBODY UINT32_MAX

// What moves in a state where several things could: a process, or (at depth 0) a sender and its
// receiver.
typedef struct pwsp_explore_choice {
    uint32_t process, partner;
} pwsp_explore_choice;

typedef struct pwsp_explore_state {
    uint64_t offset, size;       // of its bytes
    uint32_t parent;             // the state before the choice; PWSP_EXPLORE_NOBODY: the start
    pwsp_explore_choice choice;  // that led to it
} pwsp_explore_state;

typedef enum pwsp_explored {
    PWSP_EXPLORED_ALL,
    PWSP_EXPLORED_STUCK,  // the pipeline is as at the end of that order, whose steps are recorded
    PWSP_EXPLORED_LIMIT,  // a limit was reached first
    PWSP_EXPLORED_FAILED  // with an error in the expander
} pwsp_explored;

// The search of one execution, over all its pipelines. Zeroed, then with its first fields set.
typedef struct pwsp_explorer {
    pwsp_pipelines *pipelines;
    const pwsp_control *control;
    uint64_t state_limit, step_limit;
    uint64_t step_count;  // sends, receives and ends of streams, all orders together
    pwsp_explore_state *states;
    uint64_t state_count, state_capacity;
    uint8_t *bytes;  // of the states, then of the one that is being written
    uint64_t byte_count, byte_capacity;
    pwsp_lookup places;            // of states
    pwsp_explore_choice *choices;  // of the present state
    pwsp_explore_choice *path;     // of the one that is expanded; or to the one that is stuck
    uint64_t choice_count, choice_capacity, path_count, path_capacity;
    uint8_t *seen;  // by side of a channel of the pipeline
    uint64_t seen_capacity;
    uint32_t mark;
    bool is_out_of_memory, is_at_limit;
} pwsp_explorer;

PWSP_INLINE pwsp_channel *pwsp_explorer_channel(const pwsp_explorer *e,
                                                const pwsp_process *process) {
    return &e->pipelines->exchange.channels[process->channel];
}

PWSP_INLINE pwsp_process *pwsp_explorer_process(const pwsp_explorer *e, uint32_t i) {
    PTOWSP_ASSERT(i < e->pipelines->exchange.running_count);
    return &e->pipelines->exchange.processes[i];
}

PWSP_INLINE bool pwsp_explorer_sends(const pwsp_process *process) {
    return process->wait == PWSP_PROCESS_WAITS_FULL;
}

// Keeps the present state, if it is a new one. False at the limit, or when memory is out.
PWSP_INTERNAL bool pwsp_explorer_keep(pwsp_explorer *explorer, uint32_t parent,
                                      pwsp_explore_choice choice);
PWSP_INTERNAL void pwsp_explorer_go_back(pwsp_explorer *explorer, uint32_t state);
// Are two processes replicas of one that stand at the same place and know the same? Then the state with
// one in place of the other is the same. A process is like itself.
PWSP_INTERNAL bool pwsp_explorer_is_alike(pwsp_explorer *explorer, uint32_t i, uint32_t j);

// Explores the expander's current pipeline. A state that an earlier one had met is not met again.
PWSP_INTERNAL pwsp_explored pwsp_explorer_run(pwsp_explorer *explorer);
PWSP_INTERNAL void pwsp_explorer_free(pwsp_explorer *explorer);

#endif
