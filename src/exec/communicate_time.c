// The time of tasks that communicate.
//
// Time of this rank alone takes all members to begin when it does, and all other groups of the ranks
// as well. With a communicator and time only, members tell each other when they can begin (in
// cycles, by an all-gather), and each finds the same times. A start depends on tasks issued
// before, so this is repeated until all have ended. Ranks of one process are simulated by together.c.

#include "communicate.h"

#include "../base/sleeper.h"
#include "../ranks/ranks.h"

#include <inttypes.h>

// -- one rank alone -------------------------------------------------------------------------------

static bool pwsp_comm_fail_context(const pwsp_comm *comm, pwsp_error *error) {
    const ptowsp_error from = ptowsp_context_error(&comm->own);
    pwsp_error_set(error, from.status, from.index, "%s", from.text);
    return false;
}

// value * by / over, rounded up; UINT64_MAX where that does not fit.
static uint64_t pwsp_comm_scale(uint64_t value, uint64_t by, uint64_t over) {
    uint64_t whole;
    if (!pwsp_mul_fits(value / over, by, &whole)) {
        return UINT64_MAX;
    }
    return pwsp_sum_u64(whole, pwsp_ceil_div_u64(value % over * by, over));
}

// Do several groups share a link?
static bool pwsp_comm_is_shared(const pwsp_comm *comm, const ptowsp_collective *c) {
    const ptowsp_links *links = &comm->bound.links;
    bool is_shared =
        links->inside.sharing == PTOWSP_LINK_NODE || links->between.sharing == PTOWSP_LINK_NODE;
    for (uint32_t i = 0; i < links->axis_count; i++) {
        is_shared = is_shared || links->axes[i].sharing == PTOWSP_LINK_NODE;
    }
    return is_shared && comm->bound.rank_count > c->members;
}

// When this rank is done with a collective that has an algorithm, if all ranks begin at once.
static bool pwsp_comm_time(pwsp_comm *comm, const ptowsp_collective *c, uint64_t *out_cycles,
                           pwsp_error *error) {
    const ptowsp_links *links = &comm->bound.links;
    uint64_t *ends = comm->times;
    const ptowsp_status status =
        pwsp_comm_is_shared(comm, c)
            ? pwsp_collective_time_beside(&comm->own, c, links, 1, comm->bound.rank_count, ends)
            : pwsp_collective_time_from(&comm->own, c, links, 1, NULL, ends);
    if (status != PTOWSP_OK) {
        return pwsp_comm_fail_context(comm, error);
    }
    *out_cycles =
        pwsp_comm_scale(ends[pwsp_comm_me(comm, c)], comm->bound.cycles_per_us, PWSP_COMM_CYCLE);
    if (*out_cycles > PTOWSP_CYCLES_MAX) {
        pwsp_error_set(error, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                       "%s: it takes more than 2^63 - 1 cycles", ptowsp_collective_name(c->kind));
        return false;
    }
    return true;
}

// Chooses an algorithm unless one is given. False with an error.
static bool pwsp_comm_choose(pwsp_comm *comm, ptowsp_collective *c, pwsp_error *error) {
    const ptowsp_output none = {NULL, NULL};
    if (c->algorithm == PTOWSP_ALGORITHM_HIERARCHICAL) {
        c->node_size = pwsp_links_inner(c, &comm->bound.links);
    } else if (c->kind == PTOWSP_SEND) {
        c->algorithm = PTOWSP_ALGORITHM_DIRECT;  // it has no other, and many members to look at
    }
    return c->algorithm != PTOWSP_ALGORITHM_AUTO ||
           ptowsp_collective_choose(&comm->own, c, &comm->bound.links, none) == PTOWSP_OK ||
           pwsp_comm_fail_context(comm, error);
}

static void pwsp_comm_remember(pwsp_comm_memo *memo, uint64_t hash, const ptowsp_collective *c,
                               uint64_t cycles) {
    memo->hash = hash;
    memo->cycles = cycles;
    memo->algorithm = c->algorithm;
    memo->node_size = c->node_size;
}

// The algorithm of a collective, and with out_cycles the time of this rank alone. Choices of ranks
// that are simulated together are theirs. False with an error.
static bool pwsp_comm_find(pwsp_comm *comm, ptowsp_collective *c, uint64_t *out_cycles,
                           pwsp_error *error) {
    const uint64_t salt = out_cycles ? 0 : UINT64_C(0x9e3779b97f4a7c15);
    const uint64_t hash = (pwsp_collective_hash(c) ^ salt) | 1;
    pwsp_comm_memo *memos = comm->choices ? comm->choices : comm->memos;
    const uint64_t count = comm->choices ? comm->choice_count : PWSP_COMM_MEMO_COUNT;
    pwsp_comm_memo *memo = &memos[pwsp_mix64(hash) % count];
    uint64_t cycles = 0;
    if (memo->hash != hash) {
        if (!pwsp_comm_choose(comm, c, error) ||
            (out_cycles && !pwsp_comm_time(comm, c, &cycles, error))) {
            return false;
        }
        pwsp_comm_remember(memo, hash, c, cycles);
    }
    c->algorithm = memo->algorithm;
    c->node_size = memo->node_size;
    if (out_cycles) {
        *out_cycles = memo->cycles;
    }
    return true;
}

// -- where ranks meet -----------------------------------------------------------------------------

// Keeps a task until it starts. False with an error.
static bool pwsp_comm_keep(pwsp_comm *comm, const pwsp_kernel_info *kernel, const uint64_t *args,
                           const ptowsp_collective *c, pwsp_error *error) {
    if (comm->task_head == comm->task_tail) {
        comm->task_head = comm->task_tail = 0;
    }
    if (!PWSP_GROW(&comm->memory, comm->tasks, comm->task_capacity, comm->task_tail + 1)) {
        pwsp_error_set(error, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "run: out of memory");
        return false;
    }
    pwsp_comm_task *task = &comm->tasks[comm->task_tail++];
    const uint32_t count = 2 * kernel->tile_count + kernel->scalar_count;
    PTOWSP_ASSERT(count <= sizeof task->args / sizeof task->args[0]);
    memset(task, 0, sizeof *task);
    memcpy(task->args, args, count * sizeof args[0]);
    task->kernel = kernel;
    task->algorithm = c->algorithm;
    task->node_size = c->node_size;
    return true;
}

PWSP_INTERNAL bool pwsp_comm_next(pwsp_comm *comm, ptowsp_collective *out, bool *out_is_part,
                                  pwsp_error *error) {
    PTOWSP_ASSERT(comm->task_head < comm->task_tail);
    const pwsp_comm_task *task = &comm->tasks[comm->task_head++];
    if (!pwsp_comm_resolve(comm, task->kernel, task->args, comm->counts, out, out_is_part, error)) {
        return false;
    }
    out->algorithm = task->algorithm;
    out->node_size = task->node_size;
    *out_is_part = *out_is_part && out->kind != PTOWSP_SLICE;  // which sends nothing
    return true;
}

PWSP_INTERNAL bool pwsp_comm_note_wait(pwsp_comm *comm, const ptowsp_rank_wait *wait) {
    pwsp_sim *sim = comm->sim;
    sim->stats.stall_cycles[PTOWSP_STALL_RANK] =
        pwsp_sum_u64(sim->stats.stall_cycles[PTOWSP_STALL_RANK], wait->cycles);
    if (!sim->has_records) {
        return true;
    }
    if (!PWSP_GROW(&comm->memory, comm->waits, comm->wait_capacity, comm->wait_count + 1)) {
        return pwsp_sim_no_memory(sim);
    }
    comm->waits[comm->wait_count++] = *wait;
    return true;
}

PWSP_INTERNAL bool pwsp_comm_cycles(pwsp_comm *comm, const pwsp_kernel_info *kernel,
                                    const uint64_t *args, uint64_t *out_cycles, pwsp_error *error) {
    ptowsp_collective c;
    bool is_part;
    const bool has_meeting = comm->sim->meeting.find_cycles != NULL;
    *out_cycles = 0;
    if (!pwsp_comm_resolve(comm, kernel, args, comm->counts, &c, &is_part, error) ||
        (is_part && !pwsp_comm_find(comm, &c, has_meeting ? NULL : out_cycles, error))) {
        return false;
    }
    return !has_meeting || pwsp_comm_keep(comm, kernel, args, &c, error);
}

// Waits for the communicator, unless the run is to end early.
static ptowsp_status pwsp_comm_wait(pwsp_comm *comm) {
    uint32_t round = 0;
    for (;;) {
        bool is_done = false;
        const ptowsp_status status = ptowsp_ranks_poll(comm->bound.ranks, &is_done);
        if (status != PTOWSP_OK || is_done) {
            return status;
        }
        if (!pwsp_comm_idle(comm, &round)) {
            return PTOWSP_SKIPPED;
        }
    }
}

PWSP_INTERNAL ptowsp_collective pwsp_comm_pair(const ptowsp_collective *c) {
    ptowsp_collective pair = *c;
    if (c->kind == PTOWSP_SEND) {
        const uint32_t low = c->root < c->target ? c->root : c->target;
        const uint32_t high = c->root < c->target ? c->target : c->root;
        pair.members = 2;
        pair.first = pwsp_collective_rank(c, low);
        pair.stride = (high - low) * c->stride;
        pair.root = c->root > c->target;
        pair.target = 1 - pair.root;
    }
    return pair;
}

// The meeting of those who meet for a collective.
static ptowsp_collective pwsp_comm_meeting_of(const ptowsp_collective *last) {
    const ptowsp_collective pair = pwsp_comm_pair(last);
    PWSP_ZERO(ptowsp_collective, c);
    c.kind = PTOWSP_ALL_GATHER;
    c.algorithm = PTOWSP_ALGORITHM_DIRECT;
    c.dtype = PTOWSP_U64;
    c.count = c.members = pair.members;
    c.first = pair.first;
    c.stride = pair.stride;
    return c;
}

// Starts of the members of a meeting, in cycles, become starts of all members, in units from the
// earliest, which is returned. Members that are not there do nothing in the collective.
static uint64_t pwsp_comm_starts(const ptowsp_collective *meeting, const ptowsp_collective *last,
                                 uint64_t *starts) {
    uint64_t first = UINT64_MAX, met[2] = {starts[0], starts[meeting->members > 1]};
    for (uint32_t i = 0; i < meeting->members; i++) {
        first = pwsp_min_u64(first, starts[i]);
    }
    if (last->kind == PTOWSP_SEND) {
        memset(starts, 0, last->members * sizeof *starts);
        starts[last->root] = met[last->root > last->target];
        starts[last->target] = met[last->root < last->target];
    }
    for (uint32_t i = 0; i < last->members; i++) {
        const bool is_there = last->kind != PTOWSP_SEND || i == last->root || i == last->target;
        starts[i] = !is_there ? 0 : pwsp_comm_scale(starts[i] - first, PWSP_COMM_CYCLE, 1);
    }
    return first;
}

// Notes whom a task of this rank has waited for: the root, or the last member to begin.
static bool pwsp_comm_note(pwsp_comm *comm, const ptowsp_collective *c, uint64_t task,
                           const uint64_t *starts) {
    const uint32_t me = pwsp_comm_me(comm, c);
    const bool has_root = c->kind == PTOWSP_BROADCAST || c->kind == PTOWSP_SEND;
    uint32_t last = c->root;
    for (uint32_t i = 0; !has_root && i < c->members; i++) {
        last = i == 0 || starts[i] > starts[last] ? i : last;
    }
    if (starts[last] <= starts[me]) {
        return true;
    }
    const uint64_t units = starts[last] - starts[me];
    const ptowsp_rank_wait wait = {task, PTOWSP_NO_INDEX, units / PWSP_COMM_CYCLE,
                                   pwsp_collective_rank(c, last)};
    return pwsp_comm_note_wait(comm, &wait);
}

static pwsp_meeting pwsp_comm_fail_meeting(pwsp_comm *comm, const pwsp_error *error) {
    pwsp_sim_fail(comm->sim, error->status, error->index, "%s", error->text);
    return PWSP_MEETING_FAILED;
}

PWSP_INTERNAL pwsp_meeting pwsp_comm_meet(void *user, uint64_t task, uint64_t start,
                                          uint64_t *out_cycles) {
    pwsp_comm *comm = (pwsp_comm *)user;
    ptowsp_ranks *ranks = comm->bound.ranks;
    uint64_t *starts = comm->times, *ends = starts + comm->bound.rank_count;
    ptowsp_collective last;
    pwsp_error error;
    bool is_part;
    if (!pwsp_comm_next(comm, &last, &is_part, &error)) {
        return pwsp_comm_fail_meeting(comm, &error);
    }
    *out_cycles = 0;
    if (!is_part) {
        return PWSP_MEETING_FOUND;
    }
    const ptowsp_collective c = pwsp_comm_meeting_of(&last);
    ptowsp_status status = ptowsp_ranks_start(ranks, &c, &start, starts);
    status = status == PTOWSP_OK ? pwsp_comm_wait(comm) : status;
    if (status != PTOWSP_OK) {
        pwsp_sim_fail(comm->sim, status, task, "run: task %" PRIu64 ": %s", task,
                      ptowsp_context_error(pwsp_ranks_context(ranks)).text);
        return PWSP_MEETING_FAILED;
    }
    const uint64_t first = pwsp_comm_starts(&c, &last, starts);
    if (pwsp_collective_time_from(&comm->own, &last, &comm->bound.links, comm->bound.cycles_per_us,
                                  starts, ends) != PTOWSP_OK) {
        pwsp_comm_fail_context(comm, &error);
        return pwsp_comm_fail_meeting(comm, &error);
    }
    const uint64_t end = pwsp_ceil_div_u64(ends[pwsp_comm_me(comm, &last)], PWSP_COMM_CYCLE);
    *out_cycles = pwsp_max_u64(first + end, start) - start;
    return pwsp_comm_note(comm, &last, task, starts) ? PWSP_MEETING_FOUND : PWSP_MEETING_FAILED;
}
