// Searching orders.
//
// With tasks of any length before them, the sends and receives of different processes can happen in
// any order in which each is possible: in the k-th step of an order its process comes at time k. So
// time is left out. A state is where the processes stand, each at its next send or receive, what
// they know of what decides control (control.h), and the tokens in the channels.
//
//      start --settle--> state --choice, settle--> state ...      breadth first: a shortest order
//                          |
//                          +---choice, settle--> stuck: from the start again, with records
//
// Most steps need no choice. Which ones is told by stubborn sets (Valmari, Stubborn sets for reduced
// state space generation, 1989), of processes: with one that can move, all that could race with
// its step, ever; with one that cannot, all that could let it. Two sends to a channel race, and two
// receives, but not a send and a receive. (At depth 0, where they meet, all race.) To move the
// processes of one such set is enough to find every deadlock. So a process that is the only
// producer or consumer, or sees the end of a stream, moves at once, and of the others the set with
// the fewest moves is tried.
//
// Among moves that differ only in which of two replicas makes them, at the same place and with the
// same knowledge, one is tried: exchanging the two gives the same state, so the other move leads to
// the same futures with the two exchanged, and to deadlocks after as many steps.
//
// How states are kept is in explore_state.c.

#include "explore.h"

// -- processes that can move ----------------------------------------------------------------------

// The first process from `from` on that waits at the other side of a channel of depth 0.
static uint32_t pwsp_explorer_partner(const pwsp_explorer *e, const pwsp_process *process,
                                      uint32_t from) {
    pwsp_process_wait other =
        pwsp_explorer_sends(process) ? PWSP_PROCESS_WAITS_EMPTY : PWSP_PROCESS_WAITS_FULL;
    for (uint32_t i = from; i < e->pipelines->exchange.running_count; i++) {
        const pwsp_process *at = pwsp_explorer_process(e, i);
        if (at->wait == other && at->channel == process->channel) {
            return i;
        }
    }
    return PWSP_EXPLORE_NOBODY;
}

// The move that a waiting process could make now.
static pwsp_offer pwsp_explorer_offer(const pwsp_explorer *e, const pwsp_process *process) {
    const pwsp_channel *channel = pwsp_explorer_channel(e, process);
    bool has_partner =
        channel->depth == 0 && pwsp_explorer_partner(e, process, 0) != PWSP_EXPLORE_NOBODY;
    return pwsp_process_waits(process)
               ? pwsp_channel_offer(channel, pwsp_explorer_sends(process), has_partner)
               : PWSP_OFFER_NONE;
}

static bool pwsp_explorer_can(const pwsp_explorer *e, const pwsp_process *process) {
    return pwsp_explorer_offer(e, process) != PWSP_OFFER_NONE;
}

// Can it move, and can nothing race with that?
static bool pwsp_explorer_is_alone(const pwsp_explorer *e, const pwsp_process *process) {
    const pwsp_channel *channel = pwsp_explorer_channel(e, process);
    bool is_first = channel->producers == 1, is_second = channel->consumers == 1;
    switch (pwsp_explorer_offer(e, process)) {
    case PWSP_OFFER_PLACE: return pwsp_explorer_sends(process) ? is_first : is_second;
    case PWSP_OFFER_MEET: return is_first && is_second;
    case PWSP_OFFER_END: return true;
    case PWSP_OFFER_NONE: break;
    }
    return false;
}

// -- choices --------------------------------------------------------------------------------------

// Makes room in a list of choices. False when memory is out.
static bool pwsp_explorer_room(pwsp_explorer *e, pwsp_explore_choice **list, uint64_t *capacity,
                               uint64_t count) {
    bool is_good = PWSP_GROW(&e->pipelines->memory, *list, *capacity, count);
    e->is_out_of_memory = e->is_out_of_memory || !is_good;
    return is_good;
}

// Adds all processes of one side of a channel to a set: the list from *first, linked by `after`.
static void pwsp_explorer_add_side(const pwsp_explorer *e, uint32_t channel, bool is_produced,
                                   uint32_t *first) {
    uint8_t *seen = &e->seen[2 * (channel - e->pipelines->op->first_channel) + is_produced];
    for (uint32_t i = 0; !*seen && i < e->pipelines->exchange.running_count; i++) {
        pwsp_process *process = pwsp_explorer_process(e, i);
        if (process->mark != e->mark && pwsp_process_waits(process) &&
            pwsp_process_uses(process, channel, is_produced)) {
            process->mark = e->mark;
            process->after = *first;
            *first = i + 1;
        }
    }
    *seen = 1;
}

// Marks the stubborn set of a process that can move.
static void pwsp_explorer_mark_set(pwsp_explorer *e, pwsp_process *process) {
    uint32_t first = process->index + 1;
    memset(e->seen, 0, 2 * (size_t)e->pipelines->op->channel_count);
    PTOWSP_ASSERT(e->mark < UINT32_MAX);
    process->mark = ++e->mark;
    process->after = 0;
    while (first) {
        const pwsp_process *at = pwsp_explorer_process(e, first - 1);
        uint32_t channel = at->channel;
        bool sends = pwsp_explorer_sends(at), can = pwsp_explorer_can(e, at);
        first = at->after;
        PTOWSP_ASSERT(pwsp_explorer_offer(e, at) != PWSP_OFFER_END);  // it has moved before
        bool is_meeting = pwsp_explorer_channel(e, at)->depth == 0;
        if (is_meeting || sends == can) {
            pwsp_explorer_add_side(e, channel, true, &first);
        }
        if (is_meeting || sends != can) {
            pwsp_explorer_add_side(e, channel, false, &first);
        }
    }
}

// Lists the moves of the marked set from place `at` on; returns how many. 0 when memory is out.
static uint64_t pwsp_explorer_list_set(pwsp_explorer *e, uint64_t at) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < e->pipelines->exchange.running_count; i++) {
        const pwsp_process *process = pwsp_explorer_process(e, i);
        if (process->mark != e->mark || !pwsp_explorer_can(e, process)) {
            continue;
        }
        uint32_t partner = PWSP_EXPLORE_NOBODY;
        if (pwsp_explorer_channel(e, process)->depth == 0) {
            partner = pwsp_explorer_sends(process) ? pwsp_explorer_partner(e, process, 0)
                                                   : PWSP_EXPLORE_NOBODY;
            if (partner == PWSP_EXPLORE_NOBODY) {
                continue;  // a receiver moves with its sender
            }
        }
        do {
            if (!pwsp_explorer_room(e, &e->choices, &e->choice_capacity, at + count + 1)) {
                return 0;
            }
            e->choices[at + count].process = i;
            e->choices[at + count++].partner = partner;
            partner = partner == PWSP_EXPLORE_NOBODY
                          ? partner
                          : pwsp_explorer_partner(e, process, partner + 1);
        } while (partner != PWSP_EXPLORE_NOBODY);
    }
    return count;
}

// Does an earlier process that can move have the same stubborn set, as both do the same?
static bool pwsp_explorer_is_tried(const pwsp_explorer *e, const pwsp_process *process) {
    bool is_tried = false;
    for (uint32_t i = 0; i < process->index && !is_tried; i++) {
        const pwsp_process *at = pwsp_explorer_process(e, i);
        is_tried = at->wait == process->wait && at->channel == process->channel;
    }
    return is_tried;
}

// Finds the smallest set of moves that has to be tried; none if no process can move. False when
// memory is out.
static bool pwsp_explorer_choose(pwsp_explorer *e) {
    const pwsp_exchange *exchange = &e->pipelines->exchange;
    e->choice_count = 0;
    for (uint32_t i = 0; i < exchange->running_count && e->choice_count != 1; i++) {
        pwsp_process *process = pwsp_explorer_process(e, i);
        if (!pwsp_explorer_can(e, process) || pwsp_explorer_is_tried(e, process)) {
            continue;
        }
        pwsp_explorer_mark_set(e, process);
        uint64_t count = pwsp_explorer_list_set(e, e->choice_count);
        if (count == 0) {
            return false;
        }
        if (e->choice_count == 0 || count < e->choice_count) {
            memmove(e->choices, e->choices + e->choice_count, (size_t)count * sizeof *e->choices);
            e->choice_count = count;
        }
    }
    return true;
}

// -- moving ---------------------------------------------------------------------------------------

// A process continues at an op, up to its next send or receive. False with the expander's error.
static bool pwsp_explorer_advance(pwsp_explorer *e, pwsp_process *process, uint32_t next) {
    pwsp_pipelines *pipelines = e->pipelines;
    pwsp_resumed resumed;
    pwsp_process_enter(pipelines, process);
    process->wait = PWSP_PROCESS_READY;
    do {
        resumed = pwsp_pipelines_step(pipelines, process, &next);
    } while (resumed == PWSP_RESUMED_LATER);
    if (resumed == PWSP_RESUMED_FAILED) {
        return false;
    }
    if (process->wait == PWSP_PROCESS_WAITS_EMPTY) {  // nothing reads the cell now: fewer states
        pipelines->cells[pipelines->x->receive->cell] = 0;
    }
    process->next_op = next;
    process->time = pipelines->exchange.step_count;
    pwsp_process_leave(pipelines, process);
    return true;
}

// False with the expander's error, or at the limit.
static bool pwsp_explorer_move(pwsp_explorer *e, pwsp_explore_choice choice) {
    pwsp_exchange *exchange = &e->pipelines->exchange;
    pwsp_process *process = pwsp_explorer_process(e, choice.process), *partner = NULL;
    e->is_at_limit = e->step_count >= e->step_limit && !exchange->has_records;
    if (e->is_at_limit) {
        return false;
    }
    if (choice.partner != PWSP_EXPLORE_NOBODY) {
        partner = pwsp_explorer_process(e, choice.partner);
    }
    e->step_count += partner ? 2 : 1;
    bool is_end = pwsp_exchange_move(exchange, process, partner) == PWSP_EXCHANGE_END;
    return (!partner || pwsp_explorer_advance(e, partner, partner->next_op + 1)) &&
           pwsp_explorer_advance(e, process,
                                 is_end
                                     ? PWSP_OP_AT(e->pipelines->program, process->next_op)->target
                                     : process->next_op + 1);
}

// Makes forced moves until there is a choice or no move. False with the expander's error, at the
// limit, or when memory is out.
static bool pwsp_explorer_settle(pwsp_explorer *e) {
    pwsp_explore_choice choice = {0, PWSP_EXPLORE_NOBODY};
    for (bool has_moved = true; has_moved;) {
        has_moved = false;
        for (uint32_t i = 0; i < e->pipelines->exchange.running_count; i++) {
            const pwsp_process *process = pwsp_explorer_process(e, i);
            while (pwsp_explorer_is_alone(e, process)) {
                bool is_meeting = pwsp_explorer_offer(e, process) == PWSP_OFFER_MEET;
                uint32_t other = is_meeting ? pwsp_explorer_partner(e, process, 0) : i;
                choice.process = pwsp_explorer_sends(process) ? i : other;
                choice.partner = !is_meeting                    ? PWSP_EXPLORE_NOBODY
                                 : pwsp_explorer_sends(process) ? other
                                                                : i;
                if (!pwsp_explorer_move(e, choice)) {
                    return false;
                }
                has_moved = true;
            }
        }
        if (!has_moved && !pwsp_explorer_choose(e)) {
            return false;
        }
        if (!has_moved && e->choice_count == 1) {
            has_moved = pwsp_explorer_move(e, e->choices[0]);
            if (!has_moved) {
                return false;
            }
        }
    }
    return true;
}

// -- orders ---------------------------------------------------------------------------------------

static bool pwsp_explorer_is_stuck(const pwsp_explorer *e) {
    const pwsp_exchange *exchange = &e->pipelines->exchange;
    return e->choice_count == 0 && exchange->ended_count < exchange->running_count;
}

// All processes at their first send or receive, and then where the first choice is.
static bool pwsp_explorer_start(pwsp_explorer *e, bool has_records) {
    pwsp_pipelines *pipelines = e->pipelines;
    bool is_simple;
    pwsp_pipelines_place(pipelines);
    pipelines->exchange.moves = PWSP_MOVES_CHOSEN;
    pipelines->host.has_records = has_records;
    if (!pwsp_pipelines_open(pipelines, &is_simple)) {
        return false;
    }
    for (uint32_t i = 0; i < pipelines->op->channel_count; i++) {
        pipelines->exchange.channels[pipelines->op->first_channel + i].delay = 0;
    }
    for (uint32_t i = 0; i < pipelines->exchange.running_count; i++) {
        pwsp_process *process = &pipelines->exchange.processes[i];
        process->mark = 0;
        if (!pwsp_explorer_advance(e, process, process->next_op)) {
            return false;
        }
    }
    e->mark = 0;
    return pwsp_explorer_settle(e);
}

// Goes the order to a choice in a state again, with records. False with the expander's error.
static bool pwsp_explorer_replay(pwsp_explorer *e, uint32_t parent, pwsp_explore_choice choice) {
    e->path_count = 0;
    while (choice.process != PWSP_EXPLORE_NOBODY) {
        if (!pwsp_explorer_room(e, &e->path, &e->path_capacity, e->path_count + 1)) {
            return false;
        }
        e->path[e->path_count++] = choice;
        choice = e->states[parent].choice;
        parent = e->states[parent].parent;
    }
    pwsp_pipelines_restore(e->pipelines);
    bool is_good = pwsp_explorer_start(e, true);
    for (uint64_t i = e->path_count; is_good && i > 0; i--) {
        is_good = pwsp_explorer_move(e, e->path[i - 1]) && pwsp_explorer_settle(e);
    }
    PTOWSP_ASSERT(!is_good || pwsp_explorer_is_stuck(e));
    return is_good && !e->pipelines->is_out_of_memory;
}

static const pwsp_explore_choice pwsp_explore_no_choice = {PWSP_EXPLORE_NOBODY,
                                                           PWSP_EXPLORE_NOBODY};

// Are two moves the same, but for which of replicas that are alike does it?
static bool pwsp_explorer_is_same(pwsp_explorer *e, pwsp_explore_choice a, pwsp_explore_choice b) {
    if (!pwsp_explorer_is_alike(e, a.process, b.process)) {
        return false;
    }
    return a.partner == b.partner ||
           (a.partner != PWSP_EXPLORE_NOBODY && b.partner != PWSP_EXPLORE_NOBODY &&
            pwsp_explorer_is_alike(e, a.partner, b.partner));
}

// Puts the moves that are to be tried into the path: of those that are the same, one.
static void pwsp_explorer_pick(pwsp_explorer *e) {
    e->path_count = 0;
    for (uint64_t i = 0; i < e->choice_count; i++) {
        bool is_same = false;
        for (uint64_t k = 0; k < e->path_count && !is_same; k++) {
            is_same = pwsp_explorer_is_same(e, e->path[k], e->choices[i]);
        }
        if (!is_same) {
            e->path[e->path_count++] = e->choices[i];
        }
    }
}

// Tries all choices of a state. *out_choice is the one that gets stuck, or none. False with the
// expander's error, at a limit, or when memory is out.
static bool pwsp_explorer_expand(pwsp_explorer *e, uint32_t index,
                                 pwsp_explore_choice *out_choice) {
    pwsp_explorer_go_back(e, index);
    if (!pwsp_explorer_choose(e) ||
        !pwsp_explorer_room(e, &e->path, &e->path_capacity, e->choice_count)) {
        return false;
    }
    PTOWSP_ASSERT(e->choice_count > 1);  // otherwise it is not a choice
    pwsp_explorer_pick(e);
    if (e->is_out_of_memory) {
        return false;
    }
    const uint64_t count = e->path_count;
    for (uint64_t i = 0; i < count; i++) {
        const pwsp_explore_choice choice = e->path[i];
        if (i > 0) {
            pwsp_explorer_go_back(e, index);
        }
        if (!pwsp_explorer_move(e, choice) || !pwsp_explorer_settle(e)) {
            return false;
        }
        if (pwsp_explorer_is_stuck(e)) {
            *out_choice = choice;
            return true;
        }
        if (e->choice_count > 0 && !pwsp_explorer_keep(e, index, choice)) {
            return false;
        }
    }
    return true;
}

// All orders from the start on. False as above; *out_stuck: one gets stuck, and has been recorded.
static bool pwsp_explorer_search(pwsp_explorer *e, bool *out_stuck) {
    uint64_t first = e->state_count;
    pwsp_explore_choice choice = pwsp_explore_no_choice;
    *out_stuck = false;
    if (!pwsp_explorer_start(e, false)) {
        return false;
    }
    *out_stuck = pwsp_explorer_is_stuck(e);
    if (*out_stuck) {
        return pwsp_explorer_replay(e, PWSP_EXPLORE_NOBODY, choice);
    }
    if (e->choice_count > 0 && !pwsp_explorer_keep(e, PWSP_EXPLORE_NOBODY, choice)) {
        return false;
    }
    for (uint64_t i = first; i < e->state_count; i++) {
        if (!pwsp_explorer_expand(e, (uint32_t)i, &choice)) {
            return false;
        }
        *out_stuck = choice.process != PWSP_EXPLORE_NOBODY;
        if (*out_stuck) {
            return pwsp_explorer_replay(e, (uint32_t)i, choice);
        }
    }
    return true;
}

PWSP_INTERNAL pwsp_explored pwsp_explorer_run(pwsp_explorer *e) {
    pwsp_pipelines *pipelines = e->pipelines;
    pwsp_expander *x = pipelines->x;
    bool is_stuck = false;
    e->is_out_of_memory = !PWSP_ROOM(&pipelines->memory, e->seen, e->seen_capacity,
                                     2 * (uint64_t)x->pipeline->channel_count + 1);
    bool is_good = false;
    if (!e->is_out_of_memory) {
        is_good = pwsp_explorer_search(e, &is_stuck);
        pwsp_pipelines_restore(pipelines);
    }
    if (e->is_out_of_memory || pipelines->is_out_of_memory) {
        pwsp_expander_fail(x, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "out of memory for %s",
                           is_stuck ? "the order that gets stuck" : "the states of orders");
        return PWSP_EXPLORED_FAILED;
    }
    if (!is_good) {
        return e->is_at_limit ? PWSP_EXPLORED_LIMIT : PWSP_EXPLORED_FAILED;
    }
    if (is_stuck) {
        pwsp_pipelines_fail_stuck(pipelines);
    }
    return is_stuck ? PWSP_EXPLORED_STUCK : PWSP_EXPLORED_ALL;
}

PWSP_INTERNAL void pwsp_explorer_free(pwsp_explorer *e) {
    const pwsp_memory *memory = &e->pipelines->memory;
    PWSP_FREE(memory, e->states, e->state_capacity);
    PWSP_FREE(memory, e->bytes, e->byte_capacity);
    PWSP_FREE(memory, e->places.slots, e->places.count);
    PWSP_FREE(memory, e->choices, e->choice_capacity);
    PWSP_FREE(memory, e->path, e->path_capacity);
    PWSP_FREE(memory, e->seen, e->seen_capacity);
    memset(e, 0, sizeof *e);
}
