// Lanes run a graph.
//
// A lane that has finished a task counts down `pending` of each successor. The lane runs the first
// one that reaches 0 next, without any queue; the others go to its deque. So chains cost no queue
// at all, and only tasks where edges meet cost an atomic operation (of three or more successors all go
// to the deque, if the lane is alone: pwsp_graph_release_many):
//
//      pending is 1       only this edge is missing: no other lane will write it     load (acquire)
//      pending is more    other lanes may count down as well           fetch_sub (acquire, release)
//
// The load or fetch_sub that sees the last 1 acquires the releases of all other edges' fetch_subs.
// That lane restores pending for the next run.
//
// A lane without a task looks for one in this order: its own deque and the sources it has taken;
// the tasks it has offered to thieves; sources that no lane has taken; open ranges of range tasks;
// queues; other lanes' deques. Sources are taken from a shared cursor. Graphs with priorities, or with
// lanes for each unit, have their ready tasks in queues, and so their sources (the policies NEWEST and
// PRIORITY of engine/policy.h): there a lane looks into the queues before it helps with ranges, and its
// tasks run one by one. It helps with ranges of units whose tasks it may take.
//
// Pace. A lane looks at the clock after some tasks, and adapts to their length:
//
//      long    from 1 us        offers all that it has before it starts a task, as it cannot know
//                               how long that takes; takes sources one at a time
//      medium                   offers half of its tasks whenever nothing is on offer
//      short   below 0.15 us    the same, once it has as many as take a microsecond: being robbed
//                               of fewer costs more than they take; and it may want to be alone
//
// Unless tasks are short, the data of the next ones is prefetched while one runs: a task's function
// is longer than the processor looks ahead. That saves some 30 ns of a task with four edges.
//
// Being alone. Tasks of a few nanoseconds take longer on two lanes than on one, unless their edges
// stay within a lane: every counter that both lanes write travels between caches for some 50 ns. So
// a lane that sees short tasks makes itself the keeper. The others give up their tasks at their
// next look at the clock:
//
//      keeper                                      another lane
//      CAS keeper from 0 to itself (5)             offers all it has, busy_count - 1 (6)
//      reads busy_count 1: it is alone (7)         to take anything: busy_count + 1 (8),
//      ... plain counters ...                      reads keeper (9); if there is one, only helps
//      stores keeper = 0 (10)                      with open ranges, and busy_count - 1
//
// All are sequentially consistent: of (5), (7) and (8), (9) either the keeper sees the other lane
// as busy, or that lane sees the keeper. (7) acquires the others' writes from (6), (9) the keeper's
// writes from (10). Alone, the keeper measures its speed, and every now and then it lets the others
// in again. If tasks then take more than that time multiplied by the lanes, sharing was wrong, and
// the keeper waits twice as long before the next attempt. If tasks become long, it lets the others
// in at its next look. A wrong choice thus costs at most PWSP_GRAPH_WINDOW tasks one after another.
// The findings are kept for the next run: a graph that is known to finish in a few microseconds
// does not wake other lanes at all.
//
// The end. `remaining` counts tasks that have not been reported. A lane reports when it has run
// dry, so nothing is shared while it has work. The lane that reports the last one wakes all.
//
// Waking threads and waiting for them takes tens of microseconds. The graph remembers the duration
// of a run on all lanes, and whether it ended with one lane alone. If other lanes would not help by
// these numbers, the calling lane begins alone.
//
// No lane waits for another to come: as long as a lane sees no work and `remaining` is not 0, some
// other lane is in the middle of a task, or has tasks and is running.

#include "graph_state.h"

#include "../base/atomic.h"

#define PWSP_GRAPH_WINDOW    64u  // tasks between looks at the clock
#define PWSP_GRAPH_FETCH_MIN 3u   // counters fetched before a task runs: at least, if any
#define PWSP_GRAPH_FETCH_MAX 8u   // at most
#define PWSP_GRAPH_MANY      3u   // successors that are released without guessing
#define PWSP_GRAPH_OFFER_MAX 64u  // short tasks that a lane must have before it offers some

#define PWSP_GRAPH_SHORT_TICKS (PWSP_TICKS_US / 8)   // tasks for which it may want to be alone
#define PWSP_GRAPH_WAKE_TICKS  (30 * PWSP_TICKS_US)  // runs during which others may stay asleep
#define PWSP_GRAPH_SHARE_MAX   (10000 * PWSP_TICKS_US)

// -- taking and offering --------------------------------------------------------------------------

// Reports the tasks that the lane has finished; wakes all lanes if they were the last.
static void pwsp_graph_report(ptowsp_graph *graph, pwsp_graph_lane *lane) {
    if (lane->done_count > 0) {
        uint64_t done = lane->done_count;
        lane->stats.task_count += done;
        lane->done_count = 0;
        if (pwsp_fetch_sub_seq_cst(&graph->shared.remaining, done) == done) {
            pwsp_engine_wake(&graph->engine, true);
        }
    }
}

// Ranges are work even for a lane that is not let in. A lane that has opened a range is busy, so the
// keeper is not alone.
static pwsp_engine_more pwsp_graph_more(void *user, const pwsp_engine_lane *lane) {
    const ptowsp_graph *graph = (const ptowsp_graph *)user;
    return pwsp_load_seq_cst(&graph->shared.remaining) == 0 ||
                   (pwsp_engine_is_let_in(&graph->engine, lane) &&
                    pwsp_load_seq_cst(&graph->shared.source_next) < graph->source_count) ||
                   pwsp_graph_has_open_range(graph, (const pwsp_graph_lane *)(const void *)lane)
               ? PWSP_ENGINE_MORE
               : PWSP_ENGINE_NOTHING;
}

// Takes sources: one where tasks are long, else more; fewer when few are left.
static bool pwsp_graph_take_sources(ptowsp_graph *graph, pwsp_graph_lane *lane) {
    uint32_t next = pwsp_load_relaxed(&graph->shared.source_next), count;
    do {
        if (next >= graph->source_count) {
            return false;
        }
        uint32_t left = graph->source_count - next, share = left / (4 * graph->lane_count);
        count = lane->is_alone ? left : share < lane->batch ? share : lane->batch;
        count = count ? count : 1;
    } while (!pwsp_cas_seq_cst(&graph->shared.source_next, &next, next + count));
    PTOWSP_ASSERT(next + count <= graph->source_count);
    PTOWSP_ASSERT(lane->source == lane->source_end);  // none is lost
    lane->source = next;
    lane->source_end = next + count;
    return true;
}

// The next of the lane's own tasks: from its deque, its sources, and the shared cursor of sources; or,
// where tasks have ranks, from the queues. Apart, so that the usual case needs few registers.
static PWSP_NOINLINE uint32_t pwsp_graph_own_other(ptowsp_graph *graph, pwsp_graph_lane *lane) {
    const uint32_t task = pwsp_engine_own(&graph->engine, &lane->base, lane->grab);
    if (task == PWSP_GRAPH_NONE && pwsp_graph_take_sources(graph, lane)) {
        return graph->arrays.sources[lane->source++];
    }
    const bool takes = task == PWSP_GRAPH_NONE && graph->is_classed;
    return takes ? pwsp_engine_take(&graph->engine, &lane->base) : task;
}
static uint32_t pwsp_graph_own(ptowsp_graph *graph, pwsp_graph_lane *lane) {
    return pwsp_deque_held(&lane->base.deque) == 0 && lane->source != lane->source_end
               ? graph->arrays.sources[lane->source++]
               : pwsp_graph_own_other(graph, lane);
}

// The next task, after one has become ready, or after none has (NONE): where tasks stand in queues,
// the best of all.
static uint32_t pwsp_graph_next(ptowsp_graph *graph, pwsp_graph_lane *lane, uint32_t ready) {
    if (graph->is_classed && ready != PWSP_GRAPH_NONE) {
        pwsp_graph_push(graph, lane, ready);
        ready = PWSP_GRAPH_NONE;
    }
    return ready != PWSP_GRAPH_NONE ? ready : pwsp_graph_own(graph, lane);
}

// Offers the oldest private tasks: all where tasks are long; else some, if nothing is on offer.
static void pwsp_graph_offer(ptowsp_graph *graph, pwsp_graph_lane *lane) {
    const pwsp_deque *deque = &lane->base.deque;
    uint32_t held = pwsp_deque_held(deque);
    if (lane->pace == PWSP_GRAPH_LONG) {
        pwsp_engine_offer(&graph->engine, &lane->base, held);
    } else if (pwsp_deque_offers(pwsp_load_relaxed(&deque->word)) == 0) {
        pwsp_engine_offer(&graph->engine, &lane->base, held - held / 2);
    }
}

// Prefetches the counters of the successors of a task that is about to run: other lanes may have
// written them, and each miss afterwards would cost some 50 ns. For one or two it does not pay:
// their row, just fetched, would be waited for.
PWSP_FORCE_INLINE void pwsp_graph_fetch_counters(const ptowsp_graph *graph, uint32_t begin,
                                                 uint32_t end) {
    if (end - begin < PWSP_GRAPH_FETCH_MIN) {
        return;
    }
    end = end - begin > PWSP_GRAPH_FETCH_MAX ? begin + PWSP_GRAPH_FETCH_MAX : end;
    for (uint32_t i = begin; i < end; i++) {
        pwsp_fetch_line(&graph->arrays.counts[graph->arrays.targets[i]].pending);
    }
}

// Releases the many successors of a task on a lane that is alone, and pushes those that became ready;
// false if the deque is not known to have room for all of them. The code does not branch on which ones do: in random layers
// one in four does, and processors guess wrong once a task, which takes 2.5 ns of 23. As a function of its
// own: within the loop it took 0.6 ns of all other tasks.
static PWSP_NOINLINE bool pwsp_graph_release_many(const ptowsp_graph *graph, pwsp_deque *deque,
                                                  uint32_t begin, uint32_t end) {
    if (deque->limit - deque->bottom < end - begin) {
        return false;
    }
    uint32_t bottom = deque->bottom;
    for (uint32_t i = begin; i < end; i++) {
        const uint32_t target = graph->arrays.targets[i];
        pwsp_graph_count *count = &graph->arrays.counts[target];
        const uint32_t pending = count->pending - 1, is_ready = pending == 0;
        count->pending = pending + (count->fan_in & (0u - is_ready));
        pwsp_store_relaxed(&deque->slots[bottom % PWSP_DEQUE_SIZE], target);
        bottom += is_ready;
    }
    deque->bottom = bottom;
    return true;
}

// Runs up to a window of tasks, beginning with `task`. Returns the task that cannot be run here, or
// the next one.
PWSP_FORCE_INLINE uint32_t pwsp_graph_run_window(ptowsp_graph *graph, pwsp_graph_lane *lane,
                                                 uint32_t task, bool is_alone, bool fetches) {
    uint32_t left = PWSP_GRAPH_WINDOW;
    while (PWSP_LIKELY(pwsp_load_relaxed(&graph->halt.word) == 0)) {
        const pwsp_graph_node *node = &graph->arrays.nodes[task];
        if (PWSP_UNLIKELY(!node->fn)) {
            break;
        }
        if (!is_alone && pwsp_deque_held(&lane->base.deque) >= lane->offer_at) {
            pwsp_graph_offer(graph, lane);
        }
        if (!is_alone && fetches) {
            pwsp_graph_fetch_counters(graph, graph->arrays.first[task],
                                      graph->arrays.first[task + 1]);
        }
        ptowsp_status status = node->fn(node->user, task, lane->base.index);
        left--;
        uint32_t next;
        if (PWSP_UNLIKELY(status < 0)) {
            next = pwsp_graph_finish(graph, lane, task, status, false);
            lane->done_count--;
        } else {
            const uint32_t begin = graph->arrays.first[task], end = graph->arrays.first[task + 1];
            if (is_alone && !fetches && PWSP_UNLIKELY(end - begin >= PWSP_GRAPH_MANY) &&
                pwsp_graph_release_many(graph, &lane->base.deque, begin, end)) {
                next = PWSP_GRAPH_NONE;
            } else {
                next = pwsp_graph_release_all(graph, lane, begin, end, is_alone, fetches);
            }
        }
        if (next == PWSP_GRAPH_NONE) {
            next = pwsp_deque_held(&lane->base.deque) > 0 ? pwsp_deque_pop(&lane->base.deque)
                                                          : pwsp_graph_own(graph, lane);
        }
        task = next;
        if (task == PWSP_GRAPH_NONE || left == 0) {
            break;
        }
    }
    PTOWSP_ASSERT(task == PWSP_GRAPH_NONE || task < graph->task_count);
    lane->done_count += PWSP_GRAPH_WINDOW - left;
    lane->run_count += PWSP_GRAPH_WINDOW - left;
    return task;
}

static uint32_t pwsp_graph_run_shared(ptowsp_graph *graph, pwsp_graph_lane *lane, uint32_t task) {
    return lane->pace == PWSP_GRAPH_SHORT ? pwsp_graph_run_window(graph, lane, task, false, false)
                                          : pwsp_graph_run_window(graph, lane, task, false, true);
}

// One of several lanes is alone where tasks are short.
static uint32_t pwsp_graph_run_alone(ptowsp_graph *graph, pwsp_graph_lane *lane, uint32_t task) {
    return lane->pace == PWSP_GRAPH_SHORT || graph->lane_count > 1
               ? pwsp_graph_run_window(graph, lane, task, true, false)
               : pwsp_graph_run_window(graph, lane, task, true, true);
}

// -- pace, and being alone ------------------------------------------------------------------------

static void pwsp_graph_set_pace(ptowsp_graph *graph, pwsp_graph_lane *lane, uint64_t task_ticks) {
    uint64_t ticks = pwsp_max_u64(task_ticks, 1);
    if (ticks >= PWSP_GRAPH_LONG_TICKS) {
        lane->pace = PWSP_GRAPH_LONG;
        lane->offer_at = 1;
        lane->grab = 1;
        lane->batch = 1;
        while (lane->source != lane->source_end) {  // to be offered as well
            pwsp_graph_push(graph, lane, graph->arrays.sources[--lane->source_end]);
        }
        return;
    }
    bool is_short = ticks < PWSP_GRAPH_SHORT_TICKS;
    lane->pace = is_short ? PWSP_GRAPH_SHORT : PWSP_GRAPH_MEDIUM;
    uint64_t few = pwsp_min_u64(PWSP_GRAPH_LONG_TICKS / ticks, PWSP_GRAPH_OFFER_MAX);
    lane->offer_at = is_short ? (uint32_t)few : 1;
    lane->grab = is_short ? (uint32_t)few / 2 : 4;
    lane->batch = (uint32_t)pwsp_min_u64(10 * PWSP_TICKS_US / ticks, 256);
}

// Gives up everything, for the keeper: the lane is then like one that has run dry.
static void pwsp_graph_give_up(ptowsp_graph *graph, pwsp_graph_lane *lane, uint32_t task) {
    while (lane->source != lane->source_end) {
        pwsp_graph_push(graph, lane, graph->arrays.sources[--lane->source_end]);
    }
    pwsp_graph_push(graph, lane, task);
    pwsp_engine_offer(&graph->engine, &lane->base, pwsp_deque_held(&lane->base.deque));
    pwsp_engine_wake(&graph->engine, true);  // the keeper may be asleep
}

// Lets all lanes in again. Called by any lane that is busy.
static void pwsp_graph_share(ptowsp_graph *graph, pwsp_graph_lane *lane) {
    if (lane->is_alone && lane->source_end == pwsp_load_relaxed(&graph->shared.source_next)) {
        // Its sources are the last that were taken, perhaps all that existed: it returns them.
        PTOWSP_ASSERT(lane->source <= lane->source_end);
        pwsp_store_seq_cst(&graph->shared.source_next, lane->source);
        lane->source_end = lane->source;
    }
    lane->is_alone = false;
    if (pwsp_load_relaxed(&graph->engine.keeper) != 0) {
        pwsp_store_seq_cst(&graph->engine.keeper, 0u);  // (10), pairs with (9)
        pwsp_engine_wake(&graph->engine, true);
    }
}

// Remembers 16 times the ticks of a task of a lane that is alone.
static void pwsp_graph_know_alone(ptowsp_graph *graph, const pwsp_graph_lane *lane,
                                  uint64_t ticks) {
    uint64_t known = pwsp_load_relaxed(&graph->shared.alone_ticks);
    if (lane->is_alone) {
        ticks = known ? (3 * known + pwsp_min_u64(ticks, 2 * known)) / 4 : ticks;
        ticks = pwsp_min_u64(pwsp_max_u64(ticks, 1), UINT32_MAX);
        pwsp_store_relaxed(&graph->shared.alone_ticks, (uint32_t)ticks);
    }
}

// A lane that is alone has looked at the clock.
static void pwsp_graph_look_alone(ptowsp_graph *graph, pwsp_graph_lane *lane, uint64_t now) {
    bool has_much = pwsp_deque_held(&lane->base.deque) >= PWSP_GRAPH_OFFER_MAX ||
                    lane->base.excess_count > 0 ||
                    lane->source_end - lane->source >= PWSP_GRAPH_OFFER_MAX;
    if (has_much && now - lane->share_at < UINT64_MAX / 2) {
        pwsp_graph_share(graph, lane);
    }
}

// Is this lane, which is busy, the keeper, and no other lane busy? In this order: only a lane that
// is busy may end the keeping.
static bool pwsp_graph_is_alone(const ptowsp_graph *graph, const pwsp_graph_lane *lane) {
    return pwsp_load_seq_cst(&graph->shared.busy_count) == 1 &&               // (7), pairs with (6)
           pwsp_load_seq_cst(&graph->engine.keeper) == lane->base.index + 1;  // (7)
}

// Does sharing cost more than it gains? Then a keeper is needed: this lane, unless another is.
static void pwsp_graph_look_shared(ptowsp_graph *graph, pwsp_graph_lane *lane, uint64_t ticks,
                                   uint64_t now) {
    uint64_t alone = pwsp_load_relaxed(&graph->shared.alone_ticks);
    uint64_t busy = pwsp_load_relaxed(&graph->shared.busy_count);
    if (alone && ticks * 10 < alone * busy * 9 && busy > 1) {
        pwsp_store_relaxed(&graph->shared.share_ticks, PWSP_GRAPH_SHARE_MIN);
        return;
    }
    uint32_t nobody = 0;
    if (pwsp_cas_seq_cst(&graph->engine.keeper, &nobody,
                         lane->base.index + 1)) {  // (5), pairs with (9)
        uint64_t share_ticks = pwsp_load_relaxed(&graph->shared.share_ticks);
        lane->share_at = now + share_ticks;
        if (alone && busy > 1) {
            share_ticks = pwsp_min_u64(2 * share_ticks, PWSP_GRAPH_SHARE_MAX);
            pwsp_store_relaxed(&graph->shared.share_ticks, share_ticks);
        }
    }
}

// Reads the clock. Returns the task to continue with, or none if the lane must give it up.
static uint32_t pwsp_graph_look(ptowsp_graph *graph, pwsp_graph_lane *lane, uint32_t task) {
    PTOWSP_ASSERT(lane->run_count > 0);
    uint64_t now = pwsp_ticks(), ticks = (now - lane->looked_at) * 16 / lane->run_count;
    lane->looked_at = now;
    lane->run_count = 0;
    bool is_short = ticks < 16 * PWSP_GRAPH_SHORT_TICKS;
    bool is_long = ticks >= 16 * PWSP_GRAPH_LONG_TICKS;
    if (graph->lane_count == 1) {  // what else follows from the pace is for several lanes
        lane->pace = is_short ? PWSP_GRAPH_SHORT : PWSP_GRAPH_MEDIUM;
        return task;
    }
    uint32_t keeper = pwsp_load_relaxed(&graph->engine.keeper);
    if (graph->direct.is_on && !is_short) {  // it was wrong not to call the other lanes
        pwsp_graph_share(graph, lane);
        pwsp_graph_give_up(graph, lane, task);
        return PWSP_GRAPH_NONE;
    }
    if (keeper == lane->base.index + 1) {
        pwsp_graph_know_alone(graph, lane, ticks);
        if (graph->arrays.joins) {  // 16 tasks with some interrupts are not yet longer
            is_short = pwsp_load_relaxed(&graph->shared.alone_ticks) < 16 * PWSP_GRAPH_SHORT_TICKS;
        }
        if (is_long || (lane->is_alone && !is_short)) {
            pwsp_graph_share(graph, lane);
        } else if (lane->is_alone) {
            pwsp_graph_look_alone(graph, lane, now);
        } else {
            lane->is_alone = pwsp_graph_is_alone(graph, lane);
        }
    } else if (keeper != 0) {
        pwsp_graph_give_up(graph, lane, task);
        return PWSP_GRAPH_NONE;
    } else if (is_short || (graph->arrays.joins && !is_long)) {
        // Adding tasks shares so much that on several lanes short ones may take ten times as long.
        pwsp_graph_look_shared(graph, lane, ticks, now);
    }
    if (!lane->is_alone) {
        pwsp_graph_set_pace(graph, lane, ticks / 16);
    }
    return task;
}

// -- lanes ----------------------------------------------------------------------------------------

// The calling lane has begun alone, and has let the others in: the remaining tasks are for all lanes.
static bool pwsp_graph_is_handed_over(const ptowsp_graph *graph) {
    return graph->direct.is_on && !pwsp_load_relaxed(&graph->shared.starts_alone) &&
           pwsp_load_relaxed(&graph->engine.keeper) == 0;
}

// Takes a task from anywhere, if there is one that the lane may do; the lane then counts as busy.
static uint32_t pwsp_graph_find(void *user, pwsp_engine_lane *base) {
    ptowsp_graph *graph = (ptowsp_graph *)user;
    pwsp_graph_lane *lane = (pwsp_graph_lane *)(void *)base;
    if (pwsp_graph_is_handed_over(graph) || pwsp_load_acquire(&graph->shared.remaining) == 0) {
        return PWSP_GRAPH_NONE;
    }
    uint32_t nobody = 0;
    if (pwsp_fetch_add_seq_cst(&graph->shared.busy_count, 1u) == 0 &&  // (8)
        pwsp_load_relaxed(&graph->shared.starts_alone) &&
        pwsp_fetch_and_seq_cst(&graph->shared.starts_alone, 0u) &&
        pwsp_cas_seq_cst(&graph->engine.keeper, &nobody, lane->base.index + 1)) {
        lane->share_at = pwsp_ticks() + pwsp_load_relaxed(&graph->shared.share_ticks);
    }
    uint32_t task = PWSP_GRAPH_NONE;
    if (pwsp_engine_is_let_in(&graph->engine, &lane->base)) {  // (9), pairs with (5) and (10)
        lane->is_alone = graph->lane_count == 1 || pwsp_graph_is_alone(graph, lane);
        task = pwsp_graph_own(graph, lane);
        if (task == PWSP_GRAPH_NONE && pwsp_graph_help(graph, lane, &task)) {
            task = pwsp_graph_next(graph, lane, task);
        } else if (task == PWSP_GRAPH_NONE) {
            task = pwsp_engine_take(&graph->engine, base);
        }
    } else {
        pwsp_graph_help(graph, lane, &task);
    }
    if (task == PWSP_GRAPH_NONE) {
        lane->is_alone = false;
        pwsp_fetch_sub_seq_cst(&graph->shared.busy_count, 1u);  // (6), pairs with (7)
    }
    return task;
}

// The graph is known to take less than a millisecond on one lane: then a lane that is not let in
// leaves the run. A sleeping lane would have to be woken at the end, and waited for. The duration
// of ranges is not known, nor how many tasks are added.
static bool pwsp_graph_is_short(const ptowsp_graph *graph) {
    uint64_t ticks = pwsp_load_relaxed(&graph->shared.alone_ticks);
    return ticks > 0 && graph->range_count == 0 && !graph->arrays.joins &&
           ticks * graph->task_count / 16 < 1000 * PWSP_TICKS_US;
}

static bool pwsp_graph_is_over(void *user, pwsp_engine_lane *lane) {
    ptowsp_graph *graph = (ptowsp_graph *)user;
    pwsp_graph_report(graph, (pwsp_graph_lane *)(void *)lane);
    return pwsp_load_acquire(&graph->shared.remaining) == 0 || pwsp_graph_is_handed_over(graph) ||
           (!pwsp_engine_is_let_in(&graph->engine, lane) && pwsp_graph_is_short(graph));
}

// Runs tasks until the lane has none.
static void pwsp_graph_run_tasks(ptowsp_graph *graph, pwsp_graph_lane *lane, uint32_t task) {
    lane->run_count = 0;
    lane->looked_at = pwsp_ticks();
    do {
        const uint32_t flags = pwsp_load_relaxed(&graph->halt.word);
        if (PWSP_UNLIKELY(flags != 0 || !graph->arrays.nodes[task].fn)) {
            const bool is_shared =
                !graph->arrays.nodes[task].fn || (flags & ~PWSP_GRAPH_LETS_BE_ALONE);
            if (is_shared && graph->lane_count > 1) {
                pwsp_graph_share(graph, lane);
            }
            if (!lane->is_alone && pwsp_deque_held(&lane->base.deque) >= lane->offer_at) {
                pwsp_graph_offer(graph, lane);
            }
            task = pwsp_graph_step(graph, lane, task);
            lane->run_count += !is_shared;
            task = pwsp_graph_next(graph, lane, task);
        } else {
            task = lane->is_alone ? pwsp_graph_run_alone(graph, lane, task)
                                  : pwsp_graph_run_shared(graph, lane, task);
        }
        if (task != PWSP_GRAPH_NONE && lane->run_count >= PWSP_GRAPH_WINDOW / 4) {
            task = pwsp_graph_look(graph, lane, task);
        }
    } while (task != PWSP_GRAPH_NONE);
}

static void pwsp_graph_run_from(void *user, pwsp_engine_lane *base, uint32_t task) {
    ptowsp_graph *graph = (ptowsp_graph *)user;
    pwsp_graph_lane *lane = (pwsp_graph_lane *)(void *)base;
    pwsp_graph_run_tasks(graph, lane, task);
    lane->is_alone = false;
    pwsp_fetch_sub_seq_cst(&graph->shared.busy_count, 1u);  // (6), pairs with (7)
}

// -- runs -----------------------------------------------------------------------------------------

static void pwsp_graph_lane_reset(ptowsp_graph *graph, pwsp_graph_lane *lane) {
    lane->is_alone = graph->lane_count == 1;
    lane->source = 0;
    lane->source_end = 0;
    lane->done_count = 0;
    memset(&lane->tally, 0, sizeof lane->tally);
    lane->tally.first_failed = PWSP_GRAPH_NONE;
    memset(&lane->stats, 0, sizeof lane->stats);
    lane->open_range = 0;
    // Tasks count as long until their duration is known.
    pwsp_graph_set_pace(graph, lane, lane->is_alone ? 1 : PWSP_GRAPH_LONG_TICKS);
}

static uint32_t pwsp_graph_place_of(void *user, uint32_t task, uint64_t *out_key) {
    const ptowsp_graph *graph = (const ptowsp_graph *)user;
    *out_key = PWSP_GRAPH_LEVELS - 1 - pwsp_graph_priority_of(graph, task);
    return pwsp_graph_group_of(graph, task);
}

static void pwsp_graph_begin_lanes(ptowsp_graph *graph) {
    const pwsp_ready_links links = {graph->arrays.links, sizeof *graph->arrays.links};
    const pwsp_ready_links ranks = {graph->arrays.ranks, sizeof *graph->arrays.ranks};
    const pwsp_engine_job job = {
        graph,
        pwsp_graph_find,
        pwsp_graph_run_from,
        pwsp_graph_is_over,
        pwsp_graph_more,
        pwsp_graph_place_of,
        graph->is_classed ? ranks : links,
    };
    pwsp_engine *engine = &graph->engine;
    engine->job = job;
    pwsp_engine_begin(engine, graph->is_classed ? PWSP_READY_BY_PRIORITY : PWSP_READY_BY_NEWEST,
                      graph->lane_count, graph->cube_lane_count);
    for (uint32_t i = 0; i < graph->lane_count; i++) {
        pwsp_graph_lane_reset(graph, pwsp_graph_lane_at(graph, i));
    }
    for (uint32_t i = 0; graph->is_classed && i < graph->source_count; i++) {
        pwsp_engine_push(engine, pwsp_engine_at(engine, 0), graph->arrays.sources[i]);
    }
    graph->shared.source_next = graph->is_classed ? graph->source_count : 0;
    pwsp_engine_offer(engine, pwsp_engine_at(engine, 0), 0);
}

static void pwsp_graph_lane_main(void *arg, uint32_t index) {
    pwsp_engine *engine = &((ptowsp_graph *)arg)->engine;
    pwsp_engine_work(engine, pwsp_engine_at(engine, index));
}

// Runs the lanes of the context. If waking them seems to cost more than it brings, runs the calling
// lane first. That lane returns when all is done, or when it has let the others in because tasks
// have become long, have failed, or are ranges. All lanes then continue with the rest, in any order of
// arrival. The calling lane must not be the keeper by then: it may come last or, left out, never.
// Now and then all lanes are called regardless.
static bool pwsp_graph_call_lanes(ptowsp_graph *graph, bool was_alone) {
    uint64_t start = pwsp_ticks();
    bool is_direct = !graph->is_classed && graph->direct.hold == 0 && !graph->arrays.joins &&
                     !graph->record.spans && graph->time_limit_ns == 0 &&
                     (graph->direct.pool_ticks < PWSP_GRAPH_WAKE_TICKS ||
                      (was_alone && pwsp_graph_is_short(graph))) &&
                     graph->direct.pool_ticks > 0 && ++graph->direct.count % 64 != 0;
    if (is_direct) {
        graph->direct.is_on = true;
        graph->shared.starts_alone = 1;
        pwsp_graph_lane_main(graph, 0);
        graph->direct.is_on = false;
        if (pwsp_load_acquire(&graph->shared.remaining) == 0) {
            uint64_t ticks = pwsp_ticks() - start;
            graph->direct.hold =
                ticks > graph->direct.pool_ticks + graph->direct.pool_ticks / 4 ? 64 : 0;
            return true;
        }
    }
    bool is_good = pwsp_pool_run(graph->context->pool, pwsp_graph_lane_main, graph);
    graph->direct.pool_ticks = pwsp_ticks() - start;
    graph->direct.hold -= graph->direct.hold > 0;
    return is_good;
}

PWSP_INTERNAL bool pwsp_graph_run_lanes(ptowsp_graph *graph) {
    bool was_alone = graph->engine.keeper != 0;  // when the last run ended
    graph->shared.busy_count = 0;
    graph->shared.starts_alone = was_alone;
    graph->shared.share_ticks = pwsp_max_u64(graph->shared.share_ticks, PWSP_GRAPH_SHARE_MIN);
    if (graph->task_count == 0) {
        graph->engine.keeper = 0;
        memset(graph->arrays.stats, 0, graph->lane_count * sizeof(ptowsp_graph_lane_stats));
        return true;
    }
    pwsp_graph_begin_lanes(graph);
    bool is_whole = pwsp_graph_call_lanes(graph, was_alone);
    for (uint32_t i = 0; i < graph->lane_count; i++) {
        const pwsp_graph_lane *lane = pwsp_graph_lane_at(graph, i);
        graph->arrays.stats[i] = lane->stats;
        graph->arrays.stats[i].steal_count = lane->base.steal_count;
        pwsp_graph_add_tally(graph, &lane->tally);
    }
    return is_whole;
}
