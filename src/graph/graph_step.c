// One step of a task: it runs, fails or is skipped, and releases its successors.
//
// Done tasks record nothing. A task that fails or is skipped marks all its successors before it
// releases them: their kind, and the lowest task to blame. The first failure sets a flag. The flag
// sends all lanes through here, where kinds are checked, and out of the loop for plain tasks. A
// lane that sees a task released also sees the flag.
//
// The lane that reaches a range task opens it in its slot `open_range`, where others find it. All
// take items from its queue until none are left, and then add the number they have done to `done`,
// once each. The lane that adds the last finishes the task. No lane waits for another.

#include "graph_state.h"

#include "../base/atomic.h"

// Records for all successors of a task that they must not run, and which task to blame.
static void pwsp_graph_blame(ptowsp_graph *graph, uint32_t task, uint32_t cause) {
    uint32_t i, end = pwsp_graph_row(graph, task, &i);
    for (; i < end; i++) {
        uint32_t target = graph->arrays.targets[i];
        pwsp_store_relaxed(&graph->arrays.kinds[target], (uint8_t)PWSP_GRAPH_SKIPPED);
        uint32_t known = pwsp_load_relaxed(&graph->arrays.outcomes[target]);
        while (cause < known && !pwsp_cas_relaxed(&graph->arrays.outcomes[target], &known, cause)) {
        }
    }
}

PWSP_INTERNAL void pwsp_graph_mark(ptowsp_graph *graph, pwsp_graph_tally *tally, uint32_t task,
                                   ptowsp_status status, bool is_skipped) {
    if (is_skipped) {
        tally->skipped_count++;
        pwsp_store_relaxed(&graph->arrays.kinds[task], (uint8_t)PWSP_GRAPH_SKIPPED);
        pwsp_graph_blame(graph, task, pwsp_load_relaxed(&graph->arrays.outcomes[task]));
    } else if (status < 0) {
        tally->failed_count++;
        tally->first_failed = tally->first_failed < task ? tally->first_failed : task;
        pwsp_store_relaxed(&graph->arrays.kinds[task], (uint8_t)PWSP_GRAPH_FAILED);
        pwsp_store_relaxed(&graph->arrays.outcomes[task], (uint32_t)(int32_t)status);
        pwsp_graph_blame(graph, task, task);
        // Before releasing: a lane that sees the task done sees this as well, and looks at kinds.
        pwsp_fetch_or_seq_cst(&graph->halt.word, PWSP_GRAPH_HAS_FAILED);
    }
}

PWSP_INTERNAL uint32_t pwsp_graph_finish(ptowsp_graph *graph, pwsp_graph_lane *lane, uint32_t task,
                                         ptowsp_status status, bool is_skipped) {
    uint32_t next = PWSP_GRAPH_NONE;
    do {  // for the task, and for parents that only waited for their added tasks
        if (PWSP_UNLIKELY(is_skipped || status < 0)) {
            pwsp_graph_mark(graph, &lane->tally, task, status, is_skipped);
        }
        lane->done_count++;
        uint32_t begin, end = pwsp_graph_row(graph, task, &begin);
        PTOWSP_ASSERT(next == PWSP_GRAPH_NONE);  // else the parent has one more to wait for
        next = lane->is_alone ? pwsp_graph_release_all(graph, lane, begin, end, true, false)
                              : pwsp_graph_release_all(graph, lane, begin, end, false, false);
    } while (task >= graph->task_count && pwsp_graph_leave(graph, &task, &status, &is_skipped));
    return next;
}

// -- ranges ---------------------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_graph_range_failed(ptowsp_graph *graph, pwsp_graph_range *range,
                                           uint64_t begin, ptowsp_status status) {
    pwsp_mutex_lock(&graph->engine.sleepers.mutex);
    if (begin < range->failed_begin) {
        range->failed_begin = begin;
        range->failed_status = status;
    }
    pwsp_mutex_unlock(&graph->engine.sleepers.mutex);
}

// Does items until none are left; returns how many it did (or left out, in a cancelled run).
static uint64_t pwsp_graph_range_work(ptowsp_graph *graph, pwsp_graph_lane *lane,
                                      pwsp_graph_range *range) {
    uint64_t begin, end, count = 0;
    while (pwsp_queue_take(&range->queue, &begin, &end)) {
        if (pwsp_halt_is(&graph->halt)) {
            pwsp_store_relaxed(&range->is_cut, 1u);
        } else {
            ptowsp_status status = range->fn(range->user, begin, end, lane->base.index);
            lane->stats.range_count++;
            if (status < 0) {
                pwsp_graph_range_failed(graph, range, begin, status);
            }
        }
        count += end - begin;
    }
    return count;
}

// Counts items as done; the lane that counts the last ones finishes the task. The counting acquires
// from and releases to the other lanes that have done items.
static uint32_t pwsp_graph_range_done(ptowsp_graph *graph, pwsp_graph_lane *lane,
                                      pwsp_graph_range *range, uint64_t count) {
    if (pwsp_fetch_add_seq_cst(&range->done, count) + count < range->item_count) {
        return PWSP_GRAPH_NONE;
    }
    bool is_cut;
    const ptowsp_status status = pwsp_graph_range_end(range, &is_cut);
    ptowsp_span *span = pwsp_graph_span(graph, range->task);
    if (span) {
        span->end = pwsp_ticks();
    }
    return pwsp_graph_finish(graph, lane, range->task, status, is_cut);
}

static uint32_t pwsp_graph_range_open(ptowsp_graph *graph, pwsp_graph_lane *lane, uint32_t index) {
    pwsp_graph_range *range = &graph->arrays.ranges[index];
    pwsp_graph_range_begin(range);
    range->queue.item_count = range->item_count;
    range->queue.grain = range->grain;
    range->queue.lane_count = graph->lane_count;
    if (range->item_count == 0) {
        ptowsp_span *span = pwsp_graph_span(graph, range->task);
        if (span) {
            span->end = pwsp_ticks();
        }
        return pwsp_graph_finish(graph, lane, range->task, PTOWSP_OK, false);
    }
    if (!lane->is_alone) {
        pwsp_store_seq_cst(&lane->open_range, index + 1);
        pwsp_engine_wake(&graph->engine, true);
    }
    uint64_t count = pwsp_graph_range_work(graph, lane, range);
    if (!lane->is_alone) {
        pwsp_store_seq_cst(&lane->open_range, 0u);
    }
    return count ? pwsp_graph_range_done(graph, lane, range, count) : PWSP_GRAPH_NONE;
}

static bool pwsp_graph_may_help(const ptowsp_graph *graph, const pwsp_graph_lane *lane,
                                const pwsp_graph_range *range) {
    return !graph->is_classed || pwsp_engine_may_take(&graph->engine, &lane->base,
                                                      pwsp_graph_group_of(graph, range->task));
}

PWSP_INTERNAL bool pwsp_graph_has_open_range(const ptowsp_graph *graph,
                                             const pwsp_graph_lane *lane) {
    for (uint32_t i = 0; graph->range_count > 0 && i < graph->lane_count; i++) {
        uint32_t open = pwsp_load_seq_cst(&pwsp_graph_lane_at(graph, i)->open_range);
        if (open) {
            const pwsp_graph_range *range = &graph->arrays.ranges[open - 1];
            if (pwsp_load_relaxed(&range->queue.cursor) < range->queue.item_count &&
                pwsp_graph_may_help(graph, lane, range)) {
                return true;
            }
        }
    }
    return false;
}

PWSP_INTERNAL bool pwsp_graph_help(ptowsp_graph *graph, pwsp_graph_lane *lane, uint32_t *out_task) {
    *out_task = PWSP_GRAPH_NONE;
    for (uint32_t i = 1; graph->range_count > 0 && i < graph->lane_count; i++) {
        uint32_t other = (lane->base.index + i) % graph->lane_count;
        uint32_t open = pwsp_load_acquire(&pwsp_graph_lane_at(graph, other)->open_range);
        if (open) {
            // The range may be over by now, but it is not opened again in this run.
            pwsp_graph_range *range = &graph->arrays.ranges[open - 1];
            uint64_t count = pwsp_graph_may_help(graph, lane, range)
                                 ? pwsp_graph_range_work(graph, lane, range)
                                 : 0;
            if (count) {
                *out_task = pwsp_graph_range_done(graph, lane, range, count);
                return true;
            }
        }
    }
    return false;
}

// -- tasks ----------------------------------------------------------------------------------------

// The function of a task has returned. If it has added tasks, these go to the lane, as from
// pwsp_graph_step; else the task is done.
static uint32_t pwsp_graph_end(ptowsp_graph *graph, pwsp_graph_lane *lane, uint32_t task,
                               ptowsp_status status) {
    uint64_t dropped = 0;
    uint32_t part = graph->arrays.joins
                        ? pwsp_graph_close(graph, &lane->tally, task, &status, &dropped)
                        : PWSP_GRAPH_NONE;
    lane->done_count += dropped;
    if (part == PWSP_GRAPH_NONE) {
        return pwsp_graph_finish(graph, lane, task, status, false);
    }
    // One that has been pushed may be over before the next one is: their parent may not, as the
    // first is kept here.
    uint32_t first = pwsp_graph_next_source(graph, &part, PWSP_GRAPH_NONE), next = first;
    while ((next = pwsp_graph_next_source(graph, &part, next)) != PWSP_GRAPH_NONE) {
        pwsp_graph_push(graph, lane, next);
    }
    return first;
}

PWSP_INTERNAL uint32_t pwsp_graph_step(ptowsp_graph *graph, pwsp_graph_lane *lane, uint32_t task) {
    if (pwsp_graph_is_unwanted(graph, task)) {
        return pwsp_graph_finish(graph, lane, task, PTOWSP_OK, true);
    }
    const pwsp_graph_node *node = &graph->arrays.nodes[task];
    ptowsp_span *span = pwsp_graph_span(graph, task);
    if (span) {
        span->lane = lane->base.index;
        span->begin = pwsp_ticks();
    }
    if (!node->fn) {
        return pwsp_graph_range_open(graph, lane, (uint32_t)(uintptr_t)node->user);
    }
    if (graph->arrays.joins) {
        pwsp_graph_open(graph, task);
    }
    ptowsp_status status = node->fn(node->user, task, lane->base.index);
    if (span) {
        span->end = pwsp_ticks();
    }
    return pwsp_graph_end(graph, lane, task, status);
}
