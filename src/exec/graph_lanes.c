// Lanes run a graph.
//
// A lane that has done a task counts down `pending` of each task behind it. The first one that gets
// to 0 is what the lane does next, without any queue; others go to its deque. So chains cost no
// queue at all, and only tasks where edges meet cost an atomic operation:
//
//      pending is 1       only this edge is missing: nobody else will write it        load (acquire)
//      pending is more    somebody else may count down as well         fetch_sub (acquire, release)
//
// The load or fetch_sub that sees the last 1 acquires what all the other edges' fetch_subs have
// released. Whoever sees it restores pending for the next run.
//
// Without a task, a lane looks in this order: its own deque, sources it has taken; what it has
// offered to thieves; sources nobody has taken; ranges of range tasks that are open; blocks; deques
// of others. Sources are taken from a shared cursor. A full deque spills half into a block of
// `spare`, and whoever runs dry takes one: the stack of blocks is under the lock.
//
// Pace. A lane looks at the clock after some tasks. Where tasks take a microsecond or more, it
// offers to thieves all that it has before it starts a task, since it cannot know how long that
// takes. Where they are shorter, it keeps as many to itself as take about a microsecond: being
// robbed one at a time costs more than that. So at most one microsecond's worth of tasks, judged by
// the last ones, waits behind a task that takes unexpectedly long.
//
// The end. `remaining` counts tasks that have not been reported; a lane reports when it has run
// dry, so nothing is shared while it has work. The lane that reports the last one wakes all.
//
// Sleep. A lane that finds nothing spins for some 20 us and then sleeps. It counts itself in
// `sleeper_count` and then looks again; who offers work changes a word, a count or a range slot and
// then reads `sleeper_count`; all four are sequentially consistent, so either the sleeper sees the
// work or the other one sees the sleeper, and signals under the lock. No lane waits for another to
// come: as long as a lane sees nothing to do and `remaining` is not 0, some other lane is in the
// middle of a task, or has tasks and is running.

#include "graph.h"

#include "../base/atomic.h"

#define PWSP_GRAPH_SPIN_LONG  1000
#define PWSP_GRAPH_SPIN_SHORT 50

// The window is about PWSP_GRAPH_LOOK_NS long; what a lane keeps takes about PWSP_GRAPH_KEEP_NS.
#define PWSP_GRAPH_LOOK_NS    4000
#define PWSP_GRAPH_KEEP_NS    1000
#define PWSP_GRAPH_WINDOW_MIN 16
#define PWSP_GRAPH_WINDOW_MAX 256
#define PWSP_GRAPH_KEEP_MAX   64

// -- lock and sleep -------------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_graph_lock(ptowsp_graph *graph) {
#if PWSP_HAS_THREADS
    pwsp_mutex_lock(&graph->mutex);
#else
    while (pwsp_exchange_acquire(&graph->spinlock, 1u)) {  // lanes may be threads of the user's
        pwsp_pause();
    }
#endif
}

PWSP_INTERNAL void pwsp_graph_unlock(ptowsp_graph *graph) {
#if PWSP_HAS_THREADS
    pwsp_mutex_unlock(&graph->mutex);
#else
    pwsp_store_release(&graph->spinlock, 0u);
#endif
}

PWSP_INTERNAL void pwsp_graph_wake(ptowsp_graph *graph, bool all) {
    if (pwsp_load_seq_cst(&graph->sleeper_count)) {
        pwsp_graph_lock(graph);
        if (all) {
            pwsp_cond_broadcast(&graph->wake);
        } else {
            pwsp_cond_signal(&graph->wake);
        }
        pwsp_graph_unlock(graph);
    }
}

PWSP_INTERNAL bool pwsp_graph_has_open_range(const ptowsp_graph *graph) {
    for (uint32_t i = 0; graph->range_count > 0 && i < graph->lane_count; i++) {
        uint32_t open = pwsp_load_seq_cst(&graph->lanes[i].open_range);
        if (open) {
            pwsp_queue *queue = &graph->ranges[open - 1].queue;
            if (pwsp_load_relaxed(&queue->cursor) < queue->item_count) {
                return true;
            }
        }
    }
    return false;
}

// There is something that a lane without work can take.
static bool pwsp_graph_has_work(const ptowsp_graph *graph) {
    if (pwsp_load_seq_cst(&graph->source_next) < graph->source_count ||
        pwsp_load_seq_cst(&graph->block_count) > 0) {
        return true;
    }
    for (uint32_t i = 0; i < graph->lane_count; i++) {
        if (pwsp_deque_offers(pwsp_load_seq_cst(&graph->lanes[i].deque.word))) {
            return true;
        }
    }
    return pwsp_graph_has_open_range(graph);
}

static void pwsp_graph_sleep(ptowsp_graph *graph) {
#if PWSP_HAS_THREADS
    pwsp_graph_lock(graph);
    pwsp_fetch_add_seq_cst(&graph->sleeper_count, 1u);
    if (pwsp_load_seq_cst(&graph->remaining) > 0 && !pwsp_graph_has_work(graph)) {
        pwsp_cond_wait(&graph->wake, &graph->mutex);
    }
    pwsp_fetch_sub_seq_cst(&graph->sleeper_count, 1u);
    pwsp_graph_unlock(graph);
#else
    (void)graph;
    pwsp_pause();
#endif
}

PWSP_INTERNAL void pwsp_graph_report(ptowsp_graph *graph, pwsp_graph_lane *lane) {
    if (lane->done_count > 0) {
        uint64_t done = lane->done_count;
        lane->stats.task_count += done;
        lane->done_count = 0;
        if (pwsp_fetch_sub_seq_cst(&graph->remaining, done) == done) {
            pwsp_graph_wake(graph, true);
        }
    }
}

// -- releasing ------------------------------------------------------------------------------------

// One of the edges to a task is done; says whether it was the last.
PWSP_FORCE_INLINE bool pwsp_graph_release(pwsp_graph_count *count, bool is_alone) {
    if (is_alone) {
        if (count->pending != 1) {
            count->pending--;
            return false;
        }
        count->pending = count->fan_in;
        return true;
    }
    if (pwsp_load_acquire(&count->pending) != 1 &&
        pwsp_fetch_sub_acq_rel(&count->pending, 1u) != 1) {
        return false;
    }
    pwsp_store_relaxed(&count->pending, count->fan_in);
    return true;
}

// Releases all that comes after a task: returns the first that became ready, pushes the others.
PWSP_FORCE_INLINE uint32_t pwsp_graph_release_all(ptowsp_graph *graph, pwsp_graph_lane *lane,
                                                  uint32_t task, bool is_alone) {
    uint32_t next = PWSP_GRAPH_NONE;
    const uint32_t *targets = graph->targets;
    pwsp_graph_count *counts = graph->counts;
    for (uint32_t i = graph->first[task], end = graph->first[task + 1]; i < end; i++) {
        uint32_t target = targets[i];
        if (pwsp_graph_release(&counts[target], is_alone)) {
            if (next == PWSP_GRAPH_NONE) {
                next = target;
            } else {
                pwsp_graph_push(graph, lane, target);
            }
        }
    }
    return next;
}

// Notes for all that comes after a task that it must not run, and whom to blame.
static void pwsp_graph_blame(ptowsp_graph *graph, uint32_t task, uint32_t cause) {
    for (uint32_t i = graph->first[task]; i < graph->first[task + 1]; i++) {
        uint32_t target = graph->targets[i];
        pwsp_store_relaxed(&graph->kinds[target], (uint8_t)PWSP_GRAPH_SKIPPED);
        uint32_t known = pwsp_load_relaxed(&graph->outcomes[target]);
        while (cause < known && !pwsp_cas_relaxed(&graph->outcomes[target], &known, cause)) {
        }
    }
}

// The task is over, with a status or skipped.
static uint32_t pwsp_graph_finish(ptowsp_graph *graph, pwsp_graph_lane *lane, uint32_t task,
                                  ptowsp_status status, bool is_skipped) {
    if (is_skipped) {
        lane->skipped_count++;
        pwsp_store_relaxed(&graph->kinds[task], (uint8_t)PWSP_GRAPH_SKIPPED);
        pwsp_graph_blame(graph, task, pwsp_load_relaxed(&graph->outcomes[task]));
    } else if (status < 0) {
        lane->failed_count++;
        lane->first_failed = lane->first_failed < task ? lane->first_failed : task;
        pwsp_store_relaxed(&graph->kinds[task], (uint8_t)PWSP_GRAPH_FAILED);
        pwsp_store_relaxed(&graph->outcomes[task], (uint32_t)(int32_t)status);
        pwsp_graph_blame(graph, task, task);
        // Before releasing: a lane that sees the task done sees this as well, and looks at kinds.
        pwsp_fetch_or_seq_cst(&graph->flags, PWSP_GRAPH_HAS_FAILED);
    }
    lane->done_count++;
    return lane->is_alone ? pwsp_graph_release_all(graph, lane, task, true)
                          : pwsp_graph_release_all(graph, lane, task, false);
}

// -- ranges ---------------------------------------------------------------------------------------

static void pwsp_graph_range_failed(ptowsp_graph *graph, pwsp_graph_range *range, uint64_t begin,
                                    ptowsp_status status) {
    pwsp_graph_lock(graph);
    if (begin < range->failed_begin) {
        range->failed_begin = begin;
        range->failed_status = status;
    }
    pwsp_graph_unlock(graph);
}

// Does items until none are left; says how many it did (or left out, when the run is cancelled).
static uint64_t pwsp_graph_range_work(ptowsp_graph *graph, pwsp_graph_lane *lane,
                                      pwsp_graph_range *range) {
    uint64_t begin, end, count = 0;
    while (pwsp_queue_take(&range->queue, &begin, &end)) {
        if (pwsp_load_relaxed(&graph->flags) & PWSP_GRAPH_IS_CUT) {
            pwsp_store_relaxed(&range->is_cut, 1u);
        } else {
            ptowsp_status status = range->fn(range->user, begin, end, lane->index);
            lane->stats.range_count++;
            if (status < 0) {
                pwsp_graph_range_failed(graph, range, begin, status);
            }
        }
        count += end - begin;
    }
    return count;
}

// Counts items as done; who counts the last ones finishes the task. The counting acquires from and
// releases to the other lanes that have done items.
static uint32_t pwsp_graph_range_done(ptowsp_graph *graph, pwsp_graph_lane *lane,
                                      pwsp_graph_range *range, uint64_t count) {
    if (pwsp_fetch_add_seq_cst(&range->done, count) + count < range->item_count) {
        return PWSP_GRAPH_NONE;
    }
    bool has_failed = range->failed_begin != UINT64_MAX;
    return pwsp_graph_finish(graph, lane, range->task,
                             has_failed ? range->failed_status : PTOWSP_OK,
                             !has_failed && pwsp_load_relaxed(&range->is_cut));
}

static uint32_t pwsp_graph_range_open(ptowsp_graph *graph, pwsp_graph_lane *lane, uint32_t index) {
    pwsp_graph_range *range = &graph->ranges[index];
    range->queue.cursor = 0;
    range->queue.item_count = range->item_count;
    range->queue.grain = range->grain;
    range->queue.lane_count = graph->lane_count;
    range->done = 0;
    range->failed_begin = UINT64_MAX;
    range->is_cut = 0;
    if (range->item_count == 0) {
        return pwsp_graph_finish(graph, lane, range->task, PTOWSP_OK, false);
    }
    if (!lane->is_alone) {
        pwsp_store_seq_cst(&lane->open_range, index + 1);
        pwsp_graph_wake(graph, true);
    }
    uint64_t count = pwsp_graph_range_work(graph, lane, range);
    if (!lane->is_alone) {
        pwsp_store_seq_cst(&lane->open_range, 0u);
    }
    return count ? pwsp_graph_range_done(graph, lane, range, count) : PWSP_GRAPH_NONE;
}

PWSP_INTERNAL bool pwsp_graph_help(ptowsp_graph *graph, pwsp_graph_lane *lane, uint32_t *out_task) {
    *out_task = PWSP_GRAPH_NONE;
    for (uint32_t i = 1; graph->range_count > 0 && i < graph->lane_count; i++) {
        uint32_t other = (lane->index + i) % graph->lane_count;
        uint32_t open = pwsp_load_acquire(&graph->lanes[other].open_range);
        if (open) {
            // The range may be over by now, but it is not opened again in this run.
            pwsp_graph_range *range = &graph->ranges[open - 1];
            uint64_t count = pwsp_graph_range_work(graph, lane, range);
            if (count) {
                *out_task = pwsp_graph_range_done(graph, lane, range, count);
                return true;
            }
        }
    }
    return false;
}

// -- running --------------------------------------------------------------------------------------

PWSP_INTERNAL uint32_t pwsp_graph_step(ptowsp_graph *graph, pwsp_graph_lane *lane, uint32_t task) {
    if (pwsp_load_relaxed(&graph->flags) & PWSP_GRAPH_IS_CUT ||
        pwsp_load_relaxed(&graph->kinds[task]) == PWSP_GRAPH_SKIPPED) {
        return pwsp_graph_finish(graph, lane, task, PTOWSP_OK, true);
    }
    const pwsp_graph_node *node = &graph->nodes[task];
    if (!node->fn) {
        return pwsp_graph_range_open(graph, lane, (uint32_t)(uintptr_t)node->user);
    }
    ptowsp_status status = node->fn(node->user, task, lane->index);
    return pwsp_graph_finish(graph, lane, task, status, false);
}

PWSP_INTERNAL void pwsp_graph_spill(ptowsp_graph *graph, pwsp_graph_lane *lane) {
    if (graph->is_classed) {
        pwsp_graph_classes_spill(graph, lane);
        return;
    }
    pwsp_deque *deque = &lane->deque;
    uint32_t held = pwsp_deque_held(deque);
    if (held < PWSP_GRAPH_BLOCK) {
        pwsp_deque_reclaim(deque, PWSP_GRAPH_BLOCK - held);
        if (pwsp_deque_held(deque) < PWSP_GRAPH_BLOCK) {
            bool has_room = pwsp_deque_has_room(deque);  // thieves have taken too much for a block
            PTOWSP_ASSERT(has_room);
            (void)has_room;
            return;
        }
    }
    pwsp_graph_lock(graph);
    uint32_t block = graph->block_count;
    for (uint32_t i = 0; i < PWSP_GRAPH_BLOCK; i++) {
        graph->spare[(uint64_t)block * PWSP_GRAPH_BLOCK + i] = pwsp_deque_pop(deque);
    }
    pwsp_store_seq_cst(&graph->block_count, block + 1);
    pwsp_graph_unlock(graph);
    pwsp_graph_wake(graph, false);
}

// Takes a block into the deque, which is empty.
static bool pwsp_graph_take_block(ptowsp_graph *graph, pwsp_graph_lane *lane) {
    if (pwsp_load_relaxed(&graph->block_count) == 0 || !pwsp_deque_has_room(&lane->deque)) {
        return false;
    }
    pwsp_graph_lock(graph);
    uint32_t block = graph->block_count;
    if (block > 0) {
        block--;
        for (uint32_t i = PWSP_GRAPH_BLOCK; i-- > 0;) {
            pwsp_deque_push(&lane->deque, graph->spare[(uint64_t)block * PWSP_GRAPH_BLOCK + i]);
        }
        pwsp_store_seq_cst(&graph->block_count, block);
    }
    pwsp_graph_unlock(graph);
    return pwsp_deque_held(&lane->deque) > 0;
}

// Takes sources: one where tasks are long, else a few, fewer when few are left.
static bool pwsp_graph_take_sources(ptowsp_graph *graph, pwsp_graph_lane *lane) {
    uint32_t next = pwsp_load_relaxed(&graph->source_next), count;
    do {
        if (next >= graph->source_count) {
            return false;
        }
        uint32_t left = graph->source_count - next, share = left / (2 * graph->lane_count);
        count = lane->is_alone ? left : share < lane->keep ? share : lane->keep;
        count = count ? count : 1;
    } while (!pwsp_cas_seq_cst(&graph->source_next, &next, next + count));
    lane->source = next;
    lane->source_end = next + count;
    return true;
}

// The next of the lane's own tasks: from its deque, its sources, and the shared cursor of sources.
static uint32_t pwsp_graph_own(ptowsp_graph *graph, pwsp_graph_lane *lane) {
    if (pwsp_deque_held(&lane->deque) > 0 ||
        (lane->source == lane->source_end &&
         pwsp_deque_reclaim(&lane->deque, lane->keep ? lane->keep : 1) > 0)) {
        return pwsp_deque_pop(&lane->deque);
    }
    if (lane->source == lane->source_end && !pwsp_graph_take_sources(graph, lane)) {
        return PWSP_GRAPH_NONE;
    }
    return graph->sources[lane->source++];
}

// Offers the oldest private tasks, if there are enough and nothing is on offer.
static void pwsp_graph_offer(ptowsp_graph *graph, pwsp_graph_lane *lane) {
    pwsp_deque *deque = &lane->deque;
    if (lane->keep == 0 || pwsp_deque_offers(pwsp_load_relaxed(&deque->word)) == 0) {
        pwsp_deque_publish(deque, pwsp_deque_held(deque) - lane->keep);
        pwsp_graph_wake(graph, false);
    }
}

// Runs up to a window of tasks, beginning with `task`; what cannot be run here, or next, is
// returned.
PWSP_FORCE_INLINE uint32_t pwsp_graph_run_window(ptowsp_graph *graph, pwsp_graph_lane *lane,
                                                 uint32_t task, bool is_alone) {
    uint32_t left = lane->window;
    while (PWSP_LIKELY(pwsp_load_relaxed(&graph->flags) == 0)) {
        const pwsp_graph_node *node = &graph->nodes[task];
        if (PWSP_UNLIKELY(!node->fn)) {
            break;
        }
        if (!is_alone && pwsp_deque_held(&lane->deque) >= lane->offer_at) {
            pwsp_graph_offer(graph, lane);
        }
        ptowsp_status status = node->fn(node->user, task, lane->index);
        left--;
        uint32_t next;
        if (PWSP_UNLIKELY(status < 0)) {
            next = pwsp_graph_finish(graph, lane, task, status, false);
            lane->done_count--;
        } else {
            next = pwsp_graph_release_all(graph, lane, task, is_alone);
        }
        if (next == PWSP_GRAPH_NONE) {
            next = pwsp_deque_held(&lane->deque) > 0 ? pwsp_deque_pop(&lane->deque)
                                                     : pwsp_graph_own(graph, lane);
        }
        task = next;
        if (task == PWSP_GRAPH_NONE || left == 0) {
            break;
        }
    }
    lane->done_count += lane->window - left;
    lane->run_count += lane->window - left;
    return task;
}

static uint32_t pwsp_graph_run_shared(ptowsp_graph *graph, pwsp_graph_lane *lane, uint32_t task) {
    return pwsp_graph_run_window(graph, lane, task, false);
}

static uint32_t pwsp_graph_run_alone(ptowsp_graph *graph, pwsp_graph_lane *lane, uint32_t task) {
    return pwsp_graph_run_window(graph, lane, task, true);
}

// Sets what depends on how long tasks take.
static void pwsp_graph_pace(pwsp_graph_lane *lane, uint64_t ns_per_task) {
    uint64_t ns = pwsp_max_u64(ns_per_task, 1);
    lane->keep = (uint32_t)pwsp_min_u64(PWSP_GRAPH_KEEP_NS / ns, PWSP_GRAPH_KEEP_MAX);
    lane->offer_at = lane->keep ? 2 * lane->keep : 1;
    lane->window = (uint32_t)pwsp_min_u64(
        pwsp_max_u64(PWSP_GRAPH_LOOK_NS / ns, PWSP_GRAPH_WINDOW_MIN), PWSP_GRAPH_WINDOW_MAX);
}

// Looks at the clock, if there were enough tasks since the last time.
static void pwsp_graph_look(ptowsp_graph *graph, pwsp_graph_lane *lane) {
    if (lane->run_count < PWSP_GRAPH_WINDOW_MIN || graph->lane_count == 1) {
        return;
    }
    uint64_t now = ptowsp_clock_ns();
    pwsp_graph_pace(lane, (now - lane->looked_ns) / lane->run_count);
    lane->looked_ns = now;
    lane->run_count = 0;
    if (lane->keep == 0) {  // tasks have become long: sources are to be offered, too
        while (lane->source != lane->source_end) {
            pwsp_graph_push(graph, lane, graph->sources[--lane->source_end]);
        }
    }
}

// Looks for work at other lanes.
static uint32_t pwsp_graph_take(ptowsp_graph *graph, pwsp_graph_lane *lane) {
    uint32_t task;
    if (pwsp_graph_help(graph, lane, &task)) {
        return task != PWSP_GRAPH_NONE ? task : pwsp_graph_own(graph, lane);
    }
    if (pwsp_graph_take_block(graph, lane)) {
        return pwsp_deque_pop(&lane->deque);
    }
    for (uint32_t i = 1; i < graph->lane_count; i++) {
        pwsp_graph_lane *victim = &graph->lanes[(lane->index + i) % graph->lane_count];
        uint32_t count = pwsp_deque_steal(&lane->deque, &victim->deque);
        if (count > 0) {
            lane->stats.steal_count += count;
            return pwsp_deque_pop(&lane->deque);
        }
    }
    return PWSP_GRAPH_NONE;
}

// Waits for a task; PWSP_GRAPH_NONE when the run is over.
static uint32_t pwsp_graph_seek(ptowsp_graph *graph, pwsp_graph_lane *lane) {
    for (uint32_t round = 0;; round++) {
        uint32_t task = pwsp_graph_own(graph, lane);
        if (task == PWSP_GRAPH_NONE) {
            task = pwsp_graph_take(graph, lane);
        }
        if (task != PWSP_GRAPH_NONE) {
            return task;
        }
        pwsp_graph_report(graph, lane);
        if (pwsp_load_acquire(&graph->remaining) == 0) {
            return PWSP_GRAPH_NONE;
        }
        if (round < graph->spin_count) {
            pwsp_pause();
        } else {
            pwsp_graph_sleep(graph);
        }
    }
}

static void pwsp_graph_lane_main(void *arg, uint32_t index) {
    ptowsp_graph *graph = (ptowsp_graph *)arg;
    pwsp_graph_lane *lane = &graph->lanes[index];
    uint32_t task;
    while ((task = pwsp_graph_seek(graph, lane)) != PWSP_GRAPH_NONE) {
        lane->run_count = 0;
        lane->looked_ns = graph->lane_count > 1 ? ptowsp_clock_ns() : 0;
        do {
            if (pwsp_load_relaxed(&graph->flags) != 0 || !graph->nodes[task].fn) {
                if (pwsp_deque_held(&lane->deque) >= lane->offer_at && !lane->is_alone) {
                    pwsp_graph_offer(graph, lane);
                }
                task = pwsp_graph_step(graph, lane, task);
                task = task != PWSP_GRAPH_NONE ? task : pwsp_graph_own(graph, lane);
                continue;
            }
            task = lane->is_alone ? pwsp_graph_run_alone(graph, lane, task)
                                  : pwsp_graph_run_shared(graph, lane, task);
            pwsp_graph_look(graph, lane);
        } while (task != PWSP_GRAPH_NONE);
    }
}

// Makes kinds and outcomes what they are before a run.
static void pwsp_graph_unmark(ptowsp_graph *graph) {
    if (graph->task_count > 0 && (graph->is_marked || graph->marked_count < graph->task_count)) {
        memset(graph->kinds, 0, (size_t)graph->task_count);
        memset(graph->outcomes, 0xff, (size_t)graph->task_count * sizeof *graph->outcomes);
        graph->marked_count = graph->task_count;
    }
}

static void pwsp_graph_lane_reset(ptowsp_graph *graph, uint32_t index) {
    pwsp_graph_lane *lane = &graph->lanes[index];
    lane->index = index;
    lane->is_alone = graph->lane_count == 1;
    lane->source = 0;
    lane->source_end = 0;
    lane->done_count = 0;
    lane->failed_count = 0;
    lane->skipped_count = 0;
    lane->first_failed = PWSP_GRAPH_NONE;
    memset(&lane->stats, 0, sizeof lane->stats);
    lane->open_range = 0;
    pwsp_deque_reset(&lane->deque);
    pwsp_graph_pace(lane, lane->is_alone ? 1 : PWSP_GRAPH_KEEP_NS + 1);  // long, until known better
}

PWSP_INTERNAL bool pwsp_graph_run_lanes(ptowsp_graph *graph) {
    pwsp_graph_unmark(graph);
    graph->source_next = 0;
    graph->block_count = 0;
    graph->remaining = graph->task_count;
    graph->sleeper_count = 0;
    graph->spin_count =
        graph->lane_count > pwsp_cpu_count() ? PWSP_GRAPH_SPIN_SHORT : PWSP_GRAPH_SPIN_LONG;
    for (uint32_t i = 0; i < graph->lane_count; i++) {
        pwsp_graph_lane_reset(graph, i);
    }
    if (graph->task_count == 0) {
        return true;
    }
    if (graph->is_classed) {
        pwsp_graph_classes_begin(graph);
    }
    return pwsp_pool_run(graph->context->pool,
                         graph->is_classed ? pwsp_graph_classes_lane : pwsp_graph_lane_main, graph);
}
