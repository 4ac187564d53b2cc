// Issuing and retiring: see issue.h.
//
// Errors keep program order. An error that the owner finds counts once all earlier entries have
// been retired (pwsp_issue_settle). The failure that is retired first is the one that a serial run
// would have reported.
//
// Fixed memory. Three things can run out while there is room in the ring, and each comes back when
// tasks finish:
//
//      links    the thread helps until one is free (reorder.c)
//      joins    there is one for every token that can be held at once, and the others are in use
//               only while something is in flight
//      regions  finished tasks' are swept out; if that is not enough, all is retired,
//               and the map restarts empty

#include "issue.h"

// -- life -----------------------------------------------------------------------------------------

static uint32_t pwsp_issue_or(uint32_t value, uint64_t other) {
    return value ? value : (uint32_t)pwsp_min_u64(other, UINT32_MAX / 4);
}

static bool pwsp_issue_fix(pwsp_issue *issue) {
    const pwsp_issue_desc *desc = &issue->desc;
    // Joins that are held: of scopes, of edges, one for each region, and of a pipeline. One more
    // exists while it replaces another; and some spares, so that it seldom waits.
    uint64_t held =
        2 * (uint64_t)issue->timed->scope_depth + issue->order.edge_count + desc->region_count + 1;
    return pwsp_reorder_fix(&issue->reorder, desc->link_count, pwsp_issue_or(0, held + 2)) &&
           pwsp_deps_fix(&issue->deps, desc->region_count);
}

// The number of regions and waits in use depends on the timing of tasks. The usual maximum is
// allocated at the start, so that executing again allocates nothing.
static bool pwsp_issue_reserve_regions(pwsp_issue *issue) {
    bool is_any_written = false;
    for (uint32_t i = 1; i < issue->timed->tensor_count; i++) {
        is_any_written = is_any_written || issue->timed->tensor_is_written[i];
    }
    return !is_any_written || pwsp_deps_reserve(&issue->deps);
}

PWSP_INTERNAL bool pwsp_issue_init(pwsp_issue *issue, const pwsp_memory *memory,
                                   const pwsp_timed *timed, const pwsp_issue_desc *desc) {
    PTOWSP_ASSERT(desc->place_count > 0);
    memset(issue, 0, sizeof *issue);
    issue->memory = pwsp_blocks_begin(&issue->blocks, memory);
    issue->timed = timed;
    issue->desc = *desc;
    issue->desc.task_max = pwsp_issue_or(desc->task_max, desc->place_count);
    issue->desc.tile_max = pwsp_issue_or(desc->tile_max, PTOWSP_TASK_TILE_MAX);
    issue->desc.region_count =
        pwsp_issue_or(desc->region_count, (uint64_t)desc->place_count * issue->desc.tile_max);
    issue->desc.region_count = issue->desc.region_count < issue->desc.tile_max
                                   ? issue->desc.tile_max
                                   : issue->desc.region_count;
    issue->desc.link_count = pwsp_issue_or(desc->link_count, 4 * (uint64_t)desc->place_count);
    const uint32_t mark_words = (sizeof(pwsp_mark) + sizeof(uint64_t) - 1) / sizeof(uint64_t);
    const uint32_t word_count = desc->word_count > mark_words ? desc->word_count : mark_words;
    bool is_good =
        pwsp_precedence_init(&issue->order, &issue->memory, timed) &&
        pwsp_reorder_init(&issue->reorder, &issue->memory, desc->place_count, word_count) &&
        pwsp_deps_init(&issue->deps, &issue->memory, timed->tensor_count);
    issue->deps.ops = issue->order.ops = pwsp_reorder_ops(&issue->reorder);
    return is_good && (desc->is_fixed ? pwsp_issue_fix(issue) : pwsp_issue_reserve_regions(issue));
}

PWSP_INTERNAL void pwsp_issue_free(pwsp_issue *issue) {
    pwsp_blocks_free(&issue->blocks);
    memset(issue, 0, sizeof *issue);
}

PWSP_INTERNAL void pwsp_issue_begin(pwsp_issue *issue, const pwsp_bound_tensor *bound,
                                    const pwsp_executor *executor, const pwsp_issue_host *host) {
    pwsp_reorder_begin(&issue->reorder, executor);
    pwsp_precedence_begin(&issue->order);
    pwsp_deps_begin_data(&issue->deps, issue->timed, bound);
    issue->host = *host;
    issue->task_count = issue->task_count_max = 0;
    issue->has_failed = false;
    issue->pipeline_done = pwsp_token_none();
}

// -- retiring -------------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_issue_fail(pwsp_issue *issue) {
    issue->has_failed = true;
    return false;
}

static bool pwsp_issue_no_memory(pwsp_issue *issue) {
    PTOWSP_ASSERT(!issue->desc.is_fixed);
    issue->host.no_memory(issue->host.user);
    return pwsp_issue_fail(issue);
}

static bool pwsp_entry_is_task(const pwsp_entry *entry) {
    return entry->kind <= PWSP_ENTRY_PROCESS_TASK;
}

// Retires the oldest entry.
static void pwsp_issue_leave(pwsp_issue *issue, const pwsp_entry *entry) {
    PTOWSP_ASSERT(pwsp_load_relaxed(&entry->fan.waiters) == PWSP_WAITERS_CLOSED);
    PTOWSP_ASSERT(!pwsp_entry_is_task(entry) || issue->task_count > 0);
    issue->task_count -= pwsp_entry_is_task(entry);
    issue->reorder.head++;
}

PWSP_INTERNAL bool pwsp_issue_retire(pwsp_issue *issue) {
    const pwsp_reorder *reorder = &issue->reorder;
    if (issue->has_failed) {
        return false;
    }
    while (reorder->head < reorder->tail) {
        const pwsp_entry *entry = pwsp_reorder_entry(reorder, reorder->head);
        if (!pwsp_entry_is_done(entry)) {
            return true;
        }
        if (!issue->host.retire(issue->host.user, entry)) {
            return pwsp_issue_fail(issue);
        }
        pwsp_issue_leave(issue, entry);
    }
    return true;
}

static void pwsp_issue_help(const pwsp_issue *issue, uint32_t ticket) {
    issue->reorder.executor.help(issue->reorder.executor.user, ticket);
}

// A wait of the issuing thread; zeros: it begins.
typedef struct pwsp_issue_wait {
    uint32_t turn, ticket;
} pwsp_issue_wait;

// A turn of a wait: retires finished entries. From the third turn on it helps first, unless an entry has
// finished since the turn before. All lanes write the count of completions, so the first turn does not read
// it. False after a failure.
static bool pwsp_issue_turn(pwsp_issue *issue, pwsp_issue_wait *wait) {
    if (wait->turn == 2) {
        pwsp_issue_help(issue, wait->ticket);
    }
    if (wait->turn > 0) {
        wait->ticket = pwsp_reorder_ticket(&issue->reorder);
    }
    wait->turn += wait->turn < 2;
    return pwsp_issue_retire(issue);
}

// Retires until there is room for another entry.
static bool pwsp_issue_room(pwsp_issue *issue, bool is_task) {
    pwsp_issue_wait wait = {0, 0};
    while (pwsp_issue_turn(issue, &wait)) {
        if (!pwsp_reorder_is_full(&issue->reorder) &&
            !(is_task && issue->task_count == issue->desc.task_max)) {
            return true;
        }
    }
    return false;
}

PWSP_INTERNAL bool pwsp_issue_settle(pwsp_issue *issue) {
    pwsp_issue_wait wait = {0, 0};
    while (pwsp_issue_turn(issue, &wait)) {
        if (issue->reorder.head == issue->reorder.tail) {
            PTOWSP_ASSERT(issue->task_count == 0);
            return true;
        }
    }
    return false;
}

PWSP_INTERNAL bool pwsp_issue_await(pwsp_issue *issue, const pwsp_entry *entry) {
    pwsp_issue_wait wait = {0, 0};
    while (pwsp_issue_turn(issue, &wait)) {
        if (pwsp_entry_is_done(entry)) {
            return !pwsp_load_relaxed(&entry->fan.is_poisoned) || pwsp_issue_settle(issue);
        }
    }
    return false;
}

PWSP_INTERNAL void pwsp_issue_drain(pwsp_issue *issue) {
    pwsp_reorder *reorder = &issue->reorder;
    while (reorder->head < reorder->tail) {
        uint32_t ticket = pwsp_reorder_ticket(reorder);
        const pwsp_entry *entry = pwsp_reorder_entry(reorder, reorder->head);
        if (pwsp_entry_is_done(entry)) {
            pwsp_issue_leave(issue, entry);
        } else {
            pwsp_issue_help(issue, ticket);
        }
    }
    PTOWSP_ASSERT(issue->task_count == 0);
}

// -- issuing --------------------------------------------------------------------------------------

PWSP_INTERNAL pwsp_entry *pwsp_issue_open(pwsp_issue *issue, pwsp_entry_kind kind) {
    if (!pwsp_issue_room(issue, kind <= PWSP_ENTRY_PROCESS_TASK)) {
        return NULL;
    }
    return pwsp_reorder_open(&issue->reorder, kind);
}

// Issues the opened entry. `is_good` is false when memory is out: then the entry does not run, but
// earlier entries do, and may have failed.
static bool pwsp_issue_end(pwsp_issue *issue, const pwsp_entry *entry, bool is_good) {
    issue->reorder.is_out_of_memory = issue->reorder.is_out_of_memory || !is_good;
    if (pwsp_entry_is_task(entry)) {
        issue->task_count++;
        issue->task_count_max =
            issue->task_count > issue->task_count_max ? issue->task_count : issue->task_count_max;
    }
    pwsp_reorder_issue(&issue->reorder);
    return !issue->reorder.is_out_of_memory ||
           (pwsp_issue_settle(issue) && pwsp_issue_no_memory(issue));
}

// Fixed memory: makes room in the map for the tiles of a task.
static bool pwsp_issue_regions(pwsp_issue *issue, uint32_t count) {
    PTOWSP_ASSERT(!issue->desc.is_fixed || count <= issue->desc.tile_max);
    if (!issue->desc.is_fixed || pwsp_deps_has_room(&issue->deps, count)) {
        return true;
    }
    if (!pwsp_issue_settle(issue)) {
        return false;
    }
    pwsp_deps_clear(&issue->deps);
    PTOWSP_ASSERT(pwsp_deps_has_room(&issue->deps, count));
    return true;
}

// Connects the opened task with earlier ones. False when memory is out.
static bool pwsp_issue_connect(pwsp_issue *issue, const pwsp_arrival *arrival) {
    const pwsp_token token = pwsp_reorder_token(&issue->reorder);
    pwsp_precedence_wait(&issue->order, arrival, true);
    if (!pwsp_deps_query(&issue->deps, arrival->tiles, arrival->tile_count) ||
        !pwsp_deps_add(&issue->deps, arrival->tiles, arrival->tile_count, &token)) {
        return false;
    }
    pwsp_precedence_tell(&issue->order, arrival, true, &token);
    return true;
}

static bool pwsp_issue_submit_task(pwsp_issue *issue, const pwsp_entry *entry,
                                   const pwsp_arrival *arrival) {
    return pwsp_issue_regions(issue, arrival->tile_count) &&
           pwsp_issue_end(issue, entry, pwsp_issue_connect(issue, arrival));
}

PWSP_INTERNAL bool pwsp_issue_mark(pwsp_issue *issue, const pwsp_mark *mark) {
    pwsp_entry *entry = pwsp_issue_open(issue, PWSP_ENTRY_MARK);
    if (!entry) {
        return false;
    }
    memcpy(pwsp_entry_words(entry), mark, sizeof *mark);
    pwsp_precedence_mark(&issue->order, mark);
    return pwsp_issue_end(issue, entry, true);
}

PWSP_INTERNAL bool pwsp_issue_submit(pwsp_issue *issue, const pwsp_arrival *arrival) {
    const pwsp_entry *entry = pwsp_reorder_entry(&issue->reorder, issue->reorder.tail);
    if (entry->kind == PWSP_ENTRY_TASK) {
        return pwsp_issue_submit_task(issue, entry, arrival);
    }
    PTOWSP_ASSERT(entry->kind == PWSP_ENTRY_LOAD);  // others have ways of their own
    pwsp_deps_query_load(&issue->deps, &arrival->tiles[0]);
    return pwsp_issue_end(issue, entry, true) && pwsp_issue_await(issue, entry);
}

// -- pipelines ------------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_issue_pipeline_begin(pwsp_issue *issue) {
    for (uint64_t i = 0; i < issue->process_capacity; i++) {
        issue->process_last[i] = PTOWSP_NO_INDEX;
    }
    issue->pipeline_done = pwsp_token_none();
    return pwsp_issue_settle(issue);
}

PWSP_INTERNAL void pwsp_issue_pipeline_end(pwsp_issue *issue, const pwsp_arrival *whole) {
    const pwsp_token none = pwsp_token_none();
    if (issue->pipeline_done.task != PTOWSP_NO_INDEX) {
        pwsp_precedence_tell(&issue->order, whole, false, &issue->pipeline_done);
    }
    pwsp_precedence_set(&issue->order, &issue->pipeline_done, &none);
}

PWSP_INTERNAL bool pwsp_issue_has_process(pwsp_issue *issue, uint32_t process) {
    uint64_t before = issue->process_capacity;
    if (!PWSP_GROW(&issue->memory, issue->process_last, issue->process_capacity,
                   (uint64_t)process + 1)) {
        return pwsp_issue_settle(issue) && pwsp_issue_no_memory(issue);
    }
    for (uint64_t i = before; i < issue->process_capacity; i++) {
        issue->process_last[i] = PTOWSP_NO_INDEX;
    }
    return true;
}

PWSP_INTERNAL bool pwsp_issue_submit_process(pwsp_issue *issue, uint32_t process,
                                             const pwsp_arrival *arrival) {
    PTOWSP_ASSERT(process < issue->process_capacity);
    const pwsp_entry *entry = pwsp_reorder_entry(&issue->reorder, issue->reorder.tail);
    const pwsp_token token = pwsp_reorder_token(&issue->reorder);
    const pwsp_token previous = {0, issue->process_last[process]};
    PTOWSP_ASSERT(entry->kind == PWSP_ENTRY_PROCESS_TASK);
    if (!pwsp_issue_regions(issue, arrival->tile_count)) {
        return false;
    }
    pwsp_reorder_wait(&issue->reorder, &previous);
    issue->process_last[process] = token.task;
    bool is_good = pwsp_deps_query(&issue->deps, arrival->tiles, arrival->tile_count) &&
                   pwsp_deps_add(&issue->deps, arrival->tiles, arrival->tile_count, &token);
    pwsp_reorder_merge(&issue->reorder, &issue->pipeline_done, &token);
    return pwsp_issue_end(issue, entry, is_good);
}
