// Runs that are the ranks of one simulation.
//
//      run 0   walk ---- held in a collective ........ continues --      each by its own clock
//      run 1   walk -------- held in the same ............. continues
//      traffic      0 joins   1 joins   messages  0 ends  1 ends         by one clock
//
// A run walks until a task that communicates could start. This follows from what the run alone has
// done, as its links are busy with one collective at a time. Then it is held, and joins the collective
// in the traffic (ranks/traffic.c); when its part has ended, it walks on. It begins the next one no
// earlier, so no event comes before one that has been handled. Its other work
// concerns no other run.
//
// Members find each other by their group: the k-th collective of a group that a rank joins is the
// k-th of all its members. A SEND is one of a group of two. Collectives that are not joined by all
// hang on their group's first rank, the earliest first.

#include "communicate.h"
#include "run.h"

#include "../ranks/traffic.h"

#include <inttypes.h>

#define PWSP_TOGETHER_CHOICES   1024
#define PWSP_TOGETHER_TEXT_SIZE 160

typedef struct pwsp_together pwsp_together;

typedef struct pwsp_together_rank {
    pwsp_together *together;
    ptowsp_run *run;
    uint32_t rank;
    bool is_claimed, is_open;
    bool is_over;     // its walk has ended
    bool is_found;    // the cycles of the task that it is held at are known
    pwsp_flow *flow;  // the collective that it is held in
    uint32_t member;  // in it
    uint64_t task, start, cycles;
    pwsp_flow *open;         // collectives of groups whose first rank it is, not joined by all
    ptowsp_run_ranks bound;  // the ranks bound before
    bool was_bound;
} pwsp_together_rank;

struct pwsp_together {
    ptowsp_context *context;
    const ptowsp_run_group *group;
    ptowsp_links links;
    pwsp_traffic traffic;
    bool has_traffic;
    pwsp_together_rank *ranks;
    pwsp_comm_memo *choices;
    uint64_t collective_count;
};

// -- failures -------------------------------------------------------------------------------------

// A run has failed: the context takes its text.
static ptowsp_status pwsp_together_fail_run(const pwsp_together_rank *r, ptowsp_status status) {
    const ptowsp_error from = ptowsp_context_error(r->run->context);
    char text[PWSP_ERROR_TEXT_MAX];
    snprintf(text, sizeof text, "%s",
             from.status == status ? from.text : ptowsp_status_text(status));
    return pwsp_fail(r->together->context, status, r->rank, "rank %" PRIu32 ": %s", r->rank, text);
}

// A rank, as it is held, has an error of the simulation.
static pwsp_meeting pwsp_together_fail(pwsp_together_rank *r, const pwsp_error *error) {
    pwsp_sim_fail(&r->run->time.sim, error->status, error->index, "%s", error->text);
    return PWSP_MEETING_FAILED;
}

static void pwsp_together_say(const pwsp_flow *flow, char *text) {
    const ptowsp_collective *c = &flow->collective;
    snprintf(text, PWSP_TOGETHER_TEXT_SIZE,
             "%s of %" PRIu64 " elements, ranks %" PRIu32 " to %" PRIu32 ", each %" PRIu32 " on",
             ptowsp_collective_name(c->kind), c->count, c->first,
             pwsp_collective_rank(c, c->members - 1), c->stride);
}

// The lowest rank that is not in a collective.
static uint32_t pwsp_together_missing(const pwsp_flow *flow) {
    uint32_t member = 0;
    while (member + 1 < flow->member_count && flow->members[member].has_joined) {
        member++;
    }
    return pwsp_collective_rank(&flow->collective, member);
}

// Nothing is under way, and some ranks are held; or all are over, and some collectives lack members.
static ptowsp_status pwsp_together_fail_stuck(pwsp_together *t) {
    char text[PWSP_TOGETHER_TEXT_SIZE];
    for (uint32_t i = 0; i < t->group->rank_count; i++) {
        const pwsp_together_rank *r = &t->ranks[i];
        const pwsp_flow *flow = r->is_over ? r->open : r->flow;
        if (flow) {
            const uint32_t missing = pwsp_together_missing(flow);
            const bool has_ended = t->ranks[missing].is_over;
            pwsp_together_say(flow, text);
            return pwsp_fail(t->context, has_ended ? PTOWSP_RANK_FAILED : PTOWSP_STUCK, missing,
                             "run group: rank %" PRIu32 " %s %s; rank %" PRIu32 " %s", i,
                             r->is_over ? "has begun" : "waits in", text, missing,
                             has_ended ? "has ended without it" : "waits in another one");
        }
    }
    return PTOWSP_OK;
}

// -- meeting --------------------------------------------------------------------------------------

static bool pwsp_together_is_group(const pwsp_flow *flow, const ptowsp_collective *c) {
    return flow->collective.stride == c->stride && flow->collective.members == c->members;
}

// The collective that a rank joins. NULL with an error.
static pwsp_flow *pwsp_together_find(pwsp_together_rank *r, const ptowsp_collective *c,
                                     uint32_t member, pwsp_error *error) {
    pwsp_together *t = r->together;
    const uint64_t hash = pwsp_collective_hash(c);
    pwsp_flow **at = &t->ranks[c->first].open;
    while (*at && (!pwsp_together_is_group(*at, c) || (*at)->members[member].has_joined)) {
        at = &(*at)->next;
    }
    if (*at && (*at)->hash != hash) {
        char text[PWSP_TOGETHER_TEXT_SIZE];
        pwsp_together_say(*at, text);
        pwsp_error_set(error, PTOWSP_RANK_FAILED, r->rank,
                       "run: %s of %" PRIu64 " elements%s, but other ranks call %s",
                       ptowsp_collective_name(c->kind), c->count, c->counts ? " with counts" : "",
                       text);
        return NULL;
    }
    if (!*at) {
        *at = pwsp_flow_make(&t->traffic, c, c->members);
        if (!*at) {
            pwsp_error_set(error, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "run: out of memory");
            return NULL;
        }
        (*at)->hash = hash;
        (*at)->last_rank = UINT32_MAX;
        t->collective_count++;
    }
    pwsp_flow *const flow = *at;
    if (flow->joined + 1 == flow->member_count) {
        *at = flow->next;  // all know it
        flow->next = NULL;
    }
    return flow;
}

// Others wait for the root, or for the last member to begin, of these the lowest.
static void pwsp_together_note_last(pwsp_flow *flow, const pwsp_together_rank *r) {
    const ptowsp_collective *c = &flow->collective;
    const bool has_root = c->kind == PTOWSP_BROADCAST || c->kind == PTOWSP_SEND;
    const bool is_last = has_root ? r->member == c->root
                                  : flow->last_rank == UINT32_MAX || r->start > flow->last_start ||
                                        (r->start == flow->last_start && r->rank < flow->last_rank);
    if (is_last) {
        flow->last_rank = r->rank;
        flow->last_start = r->start;
        flow->last_task = r->task;
    }
}

static pwsp_meeting pwsp_together_meet(void *user, uint64_t task, uint64_t start,
                                       uint64_t *out_cycles) {
    pwsp_together_rank *r = (pwsp_together_rank *)user;
    pwsp_together *t = r->together;
    ptowsp_collective c;
    pwsp_error error;
    bool is_part;
    if (r->is_found) {
        r->is_found = false;
        *out_cycles = r->cycles;
        return PWSP_MEETING_FOUND;
    }
    if (!pwsp_comm_next(&r->run->walk.comm, &c, &is_part, &error)) {
        return pwsp_together_fail(r, &error);
    }
    *out_cycles = 0;
    if (!is_part) {
        return PWSP_MEETING_FOUND;
    }
    c = pwsp_comm_pair(&c);
    r->member = (r->rank - c.first) / c.stride;
    r->flow = pwsp_together_find(r, &c, r->member, &error);
    if (!r->flow) {
        return pwsp_together_fail(r, &error);
    }
    uint64_t units;
    if (!pwsp_mul_fits(start, PWSP_COMM_CYCLE, &units)) {
        pwsp_error_set(&error, PTOWSP_LIMIT_EXCEEDED, task,
                       "run: task %" PRIu64 " begins in cycle %" PRIu64
                       ": more than links can be simulated for",
                       task, start);
        return pwsp_together_fail(r, &error);
    }
    r->task = task;
    r->start = start;
    pwsp_together_note_last(r->flow, r);
    pwsp_traffic_join(&t->traffic, r->flow, r->member, units);
    return PWSP_MEETING_LATER;
}

// -- going on -------------------------------------------------------------------------------------

// Finishes the execution of a rank.
static ptowsp_status pwsp_together_finish(pwsp_together_rank *r, ptowsp_status status) {
    r->is_open = false;
    return pwsp_run_finish(r->run, status);
}

// The walk of a rank has stopped with a status.
static ptowsp_status pwsp_together_walked(pwsp_together_rank *r, ptowsp_status status) {
    if (status == PTOWSP_BUSY && r->run->time.sim.is_held) {
        return PTOWSP_OK;
    }
    r->is_over = true;
    return status == PTOWSP_OK ? status
                               : pwsp_together_fail_run(r, pwsp_together_finish(r, status));
}

// The part of a rank in its collective has ended: it continues.
static ptowsp_status pwsp_together_go_on(pwsp_together *t, uint32_t rank) {
    pwsp_together_rank *r = &t->ranks[rank];
    pwsp_flow *flow = r->flow;
    const uint64_t end =
        pwsp_max_u64(pwsp_ceil_div_u64(flow->members[r->member].now, PWSP_COMM_CYCLE), r->start);
    r->cycles = end - r->start;
    r->is_found = true;
    r->flow = NULL;
    bool has_memory = true;
    const bool has_waited = flow->last_start > r->start;
    if (flow->last_rank != rank && (has_waited || flow->collective.kind == PTOWSP_SEND)) {
        const bool is_receiver =
            flow->collective.kind != PTOWSP_SEND || r->member == flow->collective.target;
        const ptowsp_rank_wait wait = {r->task, flow->last_task,
                                       has_waited ? flow->last_start - r->start : 0,
                                       flow->last_rank};
        has_memory = !is_receiver || pwsp_comm_note_wait(&r->run->walk.comm, &wait);
    }
    if (++flow->taken == flow->member_count) {
        pwsp_flow_free(&t->traffic, flow);
    }
    return !has_memory ? pwsp_together_walked(r, pwsp_run_fail_time(r->run))
                       : pwsp_together_walked(r, pwsp_run_walk_on(r->run));
}

static ptowsp_status pwsp_together_simulate(pwsp_together *t) {
    ptowsp_status status = PTOWSP_OK;
    for (uint32_t i = 0; i < t->group->rank_count && status == PTOWSP_OK; i++) {
        status = pwsp_together_walked(&t->ranks[i], pwsp_run_walk(t->ranks[i].run, true));
    }
    while (status == PTOWSP_OK && pwsp_traffic_step(&t->traffic)) {
        const uint32_t count = t->traffic.done_count;
        const uint32_t done[2] = {t->traffic.done[0], t->traffic.done[1]};
        if (t->traffic.is_late) {
            return pwsp_fail(t->context, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                             "run group: its time does not fit 64 bits");
        }
        for (uint32_t i = 0; i < count && status == PTOWSP_OK; i++) {
            status = pwsp_together_go_on(t, done[i]);
        }
    }
    return status == PTOWSP_OK ? pwsp_together_fail_stuck(t) : status;
}

// -- the whole ------------------------------------------------------------------------------------

static ptowsp_status pwsp_together_check(ptowsp_context *context, const ptowsp_run_group *group) {
    const ptowsp_status bad = PTOWSP_INVALID_PARAMS;
    if (group->rank_count == 0 || group->rank_count > PTOWSP_RANK_COUNT_MAX || !group->runs) {
        return pwsp_fail(context, bad, group->rank_count,
                         "run group: %" PRIu32 " ranks: there are 1 to %d, each with a run",
                         group->rank_count, PTOWSP_RANK_COUNT_MAX);
    }
    for (uint32_t i = 0; i < group->rank_count; i++) {
        if (!group->runs[i]) {
            return pwsp_fail(context, bad, i, "run group: rank %" PRIu32 " has no run", i);
        }
    }
    if (group->cycles_per_us > 1000000) {
        return pwsp_fail(context, bad, PTOWSP_NO_INDEX,
                         "run group: %" PRIu64 " cycles each us, at most 10^6",
                         group->cycles_per_us);
    }
    return pwsp_links_check(context, &group->links);
}

// Takes a run for its rank. A run that is taken already is there twice, or executes.
static ptowsp_status pwsp_together_take(pwsp_together *t, uint32_t rank,
                                        const ptowsp_run_options *options) {
    pwsp_together_rank *r = &t->ranks[rank];
    pwsp_comm *comm = &r->run->walk.comm;
    if (!pwsp_run_claim(r->run, options)) {
        return pwsp_fail(
            t->context, PTOWSP_BUSY, rank,
            "run group: the run of rank %" PRIu32 " executes, or is that of another rank", rank);
    }
    r->is_claimed = true;
    r->bound = comm->bound;
    r->was_bound = comm->is_bound;
    memset(&comm->bound, 0, sizeof comm->bound);
    comm->bound.rank = rank;
    comm->bound.rank_count = t->group->rank_count;
    comm->bound.links = t->links;
    comm->bound.cycles_per_us = t->traffic.unit;
    comm->is_bound = true;
    comm->together.find_cycles = pwsp_together_meet;
    comm->together.user = r;
    comm->choices = t->choices;
    comm->choice_count = PWSP_TOGETHER_CHOICES;
    ptowsp_status status = pwsp_run_check_options(r->run, options);
    if (status == PTOWSP_OK) {
        status = pwsp_run_open(r->run, options);
        r->is_open = true;
    }
    return status == PTOWSP_OK ? status : pwsp_together_fail_run(r, status);
}

// Finishes a run after another one has failed, whose error stays.
static void pwsp_together_abandon(pwsp_together_rank *r, ptowsp_status status) {
    ptowsp_context *context = r->together->context;
    const ptowsp_error error = ptowsp_context_error(context);
    char text[PWSP_ERROR_TEXT_MAX];
    snprintf(text, sizeof text, "%s", error.text);
    pwsp_together_finish(r, status);
    pwsp_fail(context, error.status, error.index, "%s", text);
}

// Gives a run back, with its results if all have some.
static ptowsp_status pwsp_together_leave(pwsp_together_rank *r, ptowsp_status status) {
    if (!r->is_claimed) {
        return status;
    }
    pwsp_comm *comm = &r->run->walk.comm;
    if (r->is_open && status != PTOWSP_OK) {
        pwsp_together_abandon(r, status);
    } else if (r->is_open) {
        status = pwsp_together_finish(r, status);
        status = status == PTOWSP_OK ? status : pwsp_together_fail_run(r, status);
    }
    memset(&comm->together, 0, sizeof comm->together);
    comm->choices = NULL;
    comm->choice_count = 0;
    comm->bound = r->bound;
    comm->is_bound = r->was_bound;
    pwsp_run_leave(r->run);
    return status;
}

static void pwsp_together_free(pwsp_together *t) {
    const pwsp_memory *memory = &t->context->memory;
    const uint32_t count = t->group->rank_count;
    for (uint32_t i = 0; t->ranks && i < count; i++) {
        pwsp_together_rank *r = &t->ranks[i];
        // A collective that is not joined by all hangs on a rank; others, on the ranks held in them.
        while (r->open) {
            pwsp_flow *const next = r->open->next;
            for (uint32_t k = 0; k < r->open->member_count; k++) {
                pwsp_together_rank *member =
                    &t->ranks[pwsp_collective_rank(&r->open->collective, k)];
                member->flow = member->flow == r->open ? NULL : member->flow;
            }
            pwsp_flow_free(&t->traffic, r->open);
            r->open = next;
        }
    }
    for (uint32_t i = 0; t->ranks && i < count; i++) {
        pwsp_flow *const flow = t->ranks[i].flow;
        for (uint32_t k = 0; flow && k < flow->member_count; k++) {
            pwsp_together_rank *member = &t->ranks[pwsp_collective_rank(&flow->collective, k)];
            member->flow = member->flow == flow ? NULL : member->flow;
        }
        pwsp_flow_free(&t->traffic, flow);
    }
    if (t->has_traffic) {
        pwsp_traffic_free(&t->traffic);
    }
    PWSP_FREE(memory, t->ranks, count);
    PWSP_FREE(memory, t->choices, PWSP_TOGETHER_CHOICES);
}

static bool pwsp_together_init(pwsp_together *t, ptowsp_context *context,
                               const ptowsp_run_group *group) {
    const uint64_t unit = group->cycles_per_us ? group->cycles_per_us : PWSP_COMM_CYCLES_PER_US;
    memset(t, 0, sizeof *t);
    t->context = context;
    t->group = group;
    t->links = pwsp_links_are_zero(&group->links) ? ptowsp_links_make(PTOWSP_LINKS_ASCEND_910B)
                                                  : group->links;
    t->links.name = NULL;
    PWSP_ALLOC(&context->memory, t->ranks, group->rank_count);
    PWSP_ALLOC(&context->memory, t->choices, PWSP_TOGETHER_CHOICES);
    t->has_traffic = true;
    return pwsp_traffic_init(&t->traffic, &context->memory, &t->links, unit, 0, 1,
                             group->rank_count) &&
           t->ranks && t->choices;
}

static void pwsp_together_sum(const pwsp_together *t, ptowsp_run_group_result *result) {
    memset(result, 0, sizeof *result);
    result->collective_count = t->collective_count;
    result->message_count = t->traffic.cost.message_count;
    result->sent_bytes = t->traffic.cost.sent_bytes;
    result->between_bytes = t->traffic.cost.between_bytes;
    for (uint32_t i = 0; i < t->group->rank_count; i++) {
        const ptowsp_run_stats *stats = ptowsp_run_result(t->ranks[i].run);
        if (stats->makespan_cycles > result->makespan_cycles) {
            result->makespan_cycles = stats->makespan_cycles;
            result->last_rank = i;
        }
        result->wait_cycles =
            pwsp_sum_u64(result->wait_cycles, stats->stall_cycles[PTOWSP_STALL_RANK]);
        result->memory_bytes += stats->memory_bytes;
    }
}

ptowsp_status ptowsp_run_group_simulate(ptowsp_context *context, const ptowsp_run_group *group,
                                        const ptowsp_run_options *options,
                                        ptowsp_run_group_result *out_result) {
    PTOWSP_ASSERT(context);
    if (!group) {
        return pwsp_fail_null(context, "run group: group");
    }
    ptowsp_run_options chosen = pwsp_run_options(options);
    chosen.mode = PTOWSP_RUN_TIME_ONLY;
    ptowsp_status status = pwsp_together_check(context, group);
    if (status != PTOWSP_OK) {
        return status;
    }
    pwsp_together t;
    if (!pwsp_together_init(&t, context, group)) {
        pwsp_together_free(&t);
        return PWSP_NO_MEMORY(context, "run group: out of memory");
    }
    for (uint32_t i = 0; i < group->rank_count && status == PTOWSP_OK; i++) {
        t.ranks[i].together = &t;
        t.ranks[i].run = group->runs[i];
        t.ranks[i].rank = i;
        status = pwsp_together_take(&t, i, &chosen);
    }
    status = status == PTOWSP_OK ? pwsp_together_simulate(&t) : status;
    for (uint32_t i = 0; i < group->rank_count; i++) {
        status = pwsp_together_leave(&t.ranks[i], status);
    }
    for (uint32_t i = 0; i < group->rank_count && status != PTOWSP_OK; i++) {
        if (t.ranks[i].is_claimed) {
            t.ranks[i].run->result.is_done =
                false;  // it may have finished before another one could not
        }
    }
    if (status == PTOWSP_OK && out_result) {
        pwsp_together_sum(&t, out_result);
    }
    pwsp_together_free(&t);
    return status;
}

const ptowsp_rank_wait *ptowsp_run_rank_waits(const ptowsp_run *run, uint64_t *out_count) {
    PTOWSP_ASSERT(run);
    const pwsp_comm *comm = &run->walk.comm;
    if (out_count) {
        *out_count = comm->wait_count;
    }
    return comm->wait_count ? comm->waits : NULL;
}
