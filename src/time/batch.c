// Batches: tasks that need nothing but cycles, a dispatch key and tiles, many at once.
//
// With a window, each task that finds it full waits for the earliest end in it. The tournament of
// lanes.h finds these ends one by one. But as long as the lanes lag, a task starts when its
// lane is free, whenever it has been issued, and nobody asks which end is which: the clocks of the
// next tasks are the earliest ends, in order, and all that is wanted of the clocks is their sum and
// the last of them. So a *bulk* of tasks is issued at once:
//
//      clock        T      first lane is free
//      |---x--x--x--|---x----x--|---...           x: ends in the window
//
//      the k ends up to T leave, lane by lane, in any order;
//      as many tasks as there is room now are issued, each when its lane is free.
//
// Their ends are after T, as T is before any lane is free. Equal ends make no difference: a task that
// finds room because several left at once has the clock that it would have waited for.

#include "lanes.h"

// The lane of a task. lane_of: lanes of all of the batch, or NULL where they depend on time.
PWSP_FORCE_INLINE uint32_t pwsp_batch_lane(pwsp_sim *sim, const pwsp_batch *batch,
                                           const uint32_t *lane_of, uint32_t i) {
    return PWSP_LIKELY(lane_of != NULL)
               ? lane_of[i]
               : pwsp_sim_dispatch(sim, batch->pool, false, batch->keys[i]);
}

// Tasks [begin, end_task) of a batch, one by one. Loop state is in local variables, so that the compiler
// may keep it in registers.
static bool pwsp_lanes_batch_run(pwsp_lanes *lanes, const pwsp_batch *batch,
                                 const uint32_t *lane_of, uint32_t begin, uint32_t end_task) {
    pwsp_sim *sim = lanes->sim;
    pwsp_deps *deps = &sim->deps;
    pwsp_open_scope *scope = &sim->order.scopes[sim->order.depth - 1];
    pwsp_window *window = &lanes->window;
    const bool is_in_order = sim->schedule->issue == PTOWSP_ISSUE_IN_ORDER;
    const bool has_window = sim->schedule->window != 0;  // else nothing is ever in it
    const uint64_t window_size = has_window ? sim->schedule->window : UINT64_MAX;
    const uint32_t tile_count = batch->tile_count;
    const bool follows = !scope->is_parallel && sim->order.has_structure;
    uint64_t order = sim->order.has_structure ? scope->ready.time : 0, last = scope->done.time;
    uint64_t clock = sim->clock.now, in_flight_max = sim->stats.in_flight_max;
    uint64_t waited_ready = 0, waited_lane = 0, largest = 0;
    bool fits = true, has_memory = true;
    uint64_t winner = pwsp_tournament_winner(&window->tournament), in_flight = window->count;
    uint64_t first_end = pwsp_tournament_end(&window->tournament, winner);
    const pwsp_tile_at *tiles = batch->tiles + (size_t)begin * tile_count;
    uint32_t i = begin;
    for (; i < end_task; i++) {
        uint64_t ready = order;
        if (tile_count) {
            const pwsp_token latest = {ready, PTOWSP_NO_INDEX};
            deps->clock = clock;
            deps->latest = latest;
            if (!pwsp_deps_query(deps, tiles, tile_count)) {
                has_memory = false;
                break;
            }
            ready = deps->latest.time;
        }
        if (is_in_order && ready > clock) {
            waited_ready += ready - clock;
            clock = ready;
        }
        clock = in_flight == window_size ? pwsp_max_u64(clock, first_end) : clock;
        while (first_end <= clock) {
            winner = pwsp_window_pop_first(window, winner);
            in_flight--;
            first_end = pwsp_tournament_end(&window->tournament, winner);
        }
        const uint32_t lane_index = pwsp_batch_lane(sim, batch, lane_of, i);
        pwsp_lane *lane = &sim->lanes[lane_index];
        const uint64_t due = pwsp_max_u64(clock, ready);
        const uint64_t start = pwsp_max_u64(due, lane->free);
        const uint64_t end = start + batch->cycles[i];
        if (PWSP_UNLIKELY(end > PTOWSP_CYCLES_MAX)) {
            fits = false;
            break;
        }
        if (has_window && end > clock) {
            if (!pwsp_window_push_after(window, &sim->memory, lane_index, end, &winner)) {
                has_memory = false;
                break;
            }
            first_end = pwsp_min_u64(first_end, end);
            in_flight_max = PWSP_UNLIKELY(++in_flight > in_flight_max) ? in_flight : in_flight_max;
        }
        waited_ready += due - clock;
        waited_lane += start - due;
        largest = pwsp_max_u64(largest, end);
        last = end;
        order = PWSP_UNLIKELY(follows) ? end : order;
        lane->free = end;
        sim->lane_stats[lane_index].busy_cycles += batch->cycles[i];
        sim->lane_stats[lane_index].task_count++;
        if (tile_count) {
            const pwsp_token token = {end, sim->task_count + (i - begin)};
            deps->clock = clock;
            if (!pwsp_deps_add(deps, tiles, tile_count, &token)) {
                has_memory = false;
                break;
            }
            tiles += tile_count;
        }
    }
    scope->done.time = scope->is_parallel ? pwsp_max_u64(scope->done.time, largest) : last;
    scope->ready.time = scope->is_parallel ? scope->ready.time : last;
    window->count = in_flight;
    sim->task_count += i - begin;
    sim->issue_count += i - begin;
    sim->stats.makespan_cycles = pwsp_max_u64(sim->stats.makespan_cycles, largest);
    sim->stats.in_flight_max = in_flight_max;
    sim->stats.stall_cycles[PTOWSP_STALL_DEPENDENCY] += waited_ready;
    // For the rest of its way the clock has waited for the window.
    sim->stats.stall_cycles[PTOWSP_STALL_WINDOW] +=
        clock - sim->clock.now - (is_in_order ? waited_ready : 0);
    sim->clock.now = clock;
    sim->stats.stall_cycles[PTOWSP_STALL_LANE] += waited_lane;
    return has_memory ? fits || pwsp_sim_fail_time(sim, sim->task_count) : pwsp_sim_no_memory(sim);
}

// -- bulks ----------------------------------------------------------------------------------------

#define PWSP_BULK_LANE_MAX 64   // with more, lanes have little each
#define PWSP_BULK_DEPTH    16u  // places in the window for each lane: with fewer, lanes are idle
#define PWSP_BULK_MIN      16u  // tasks

typedef struct pwsp_bulk {
    uint64_t first_free;      // of the lanes of the pool
    uint64_t until;           // ends up to here leave the window
    uint64_t left, left_sum;  // these: how many, and their sum, modulo 2^64
    uint64_t left_last;       // the last of them
    uint32_t left_by_lane[PWSP_BULK_LANE_MAX];
} pwsp_bulk;

static void pwsp_bulk_count(const pwsp_window *window, pwsp_bulk *bulk) {
    const uint64_t until = bulk->until;
    bulk->left = bulk->left_sum = bulk->left_last = 0;
    for (uint32_t lane = 0; lane < window->tournament.lane_count; lane++) {
        const pwsp_flight_queue *queue = &window->queues[lane];
        const uint32_t mask = queue->capacity - 1, head = queue->head, count = queue->count;
        uint64_t last = 0;
        uint32_t left = 0;
        for (; left < count; left++) {
            const uint64_t end = queue->ring[(head + left) & mask];
            if (end > until) {
                break;
            }
            bulk->left_sum += end;
            last = end;
        }
        bulk->left_by_lane[lane] = left;
        bulk->left += left;
        bulk->left_last = pwsp_max_u64(bulk->left_last, last);
    }
}

// Finds ends that leave, as many as wanted at most; false if that is too few. In flight tasks are taken
// to end evenly until the first lane is free.
static bool pwsp_bulk_find(const pwsp_window *window, uint64_t clock, uint32_t wanted,
                           pwsp_bulk *bulk) {
    const uint64_t span = bulk->first_free - 1 - clock;
    if (span >> 48) {
        return false;
    }
    // A few less than wanted, so that it is seldom too many: the last of each lane is on either side.
    const uint64_t spare = pwsp_min_u64(window->tournament.lane_count / 3 + 1, wanted / 4);
    uint64_t step = span * (wanted - spare) / window->count;
    for (uint32_t i = 0; i < 3; i++) {
        bulk->until = clock + pwsp_min_u64(step, span);
        pwsp_bulk_count(window, bulk);
        if (bulk->left <= wanted) {
            return bulk->left > 0;
        }
        step /= 2;
    }
    return false;
}

// The bits that are set in the cycles of any of tasks [begin, end).
static uint64_t pwsp_batch_bits(const pwsp_batch *batch, uint32_t begin, uint32_t end) {
    uint64_t any = 0;
#pragma GCC unroll 4
    for (uint32_t i = begin; i < end; i++) {
        any |= batch->cycles[i];
    }
    return any;
}

// Can tasks of a batch be issued in bulk, and how many? 0: one by one.
static uint32_t pwsp_bulk_begin(const pwsp_lanes *lanes, const pwsp_batch *batch, uint32_t begin,
                                uint32_t end, pwsp_bulk *bulk) {
    const pwsp_sim *sim = lanes->sim;
    const pwsp_window *window = &lanes->window;
    const pwsp_open_scope *scope = &sim->order.scopes[sim->order.depth - 1];
    const pwsp_pool_lanes *pool = &sim->pools[batch->pool];
    const uint64_t clock = sim->clock.now;
    const uint32_t rest = end - begin;
    if (sim->order.has_structure && (!scope->is_parallel || scope->ready.time > clock)) {
        return 0;
    }
    uint64_t any = 0;
    bulk->first_free = UINT64_MAX;
    for (uint32_t i = 0; i < pool->count; i++) {
        const uint64_t free = sim->lanes[pool->first + i].free;
        bulk->first_free = pwsp_min_u64(bulk->first_free, free);
        any |= free;
    }
    PTOWSP_ASSERT(window->count <= sim->schedule->window);
    const uint64_t room = sim->schedule->window - window->count;
    bulk->until = clock;
    bulk->left = bulk->left_sum = 0;
    bulk->left_last = clock;
    if (bulk->first_free <= clock ||
        (rest > room && !pwsp_bulk_find(window, clock, rest - (uint32_t)room, bulk))) {
        return 0;
    }
    const uint32_t count = (uint32_t)pwsp_min_u64(rest, room + bulk->left);
    any |= pwsp_batch_bits(batch, begin, begin + count);
    const bool is_early = any >> 53 == 0;  // no end is beyond PTOWSP_CYCLES_MAX
    return is_early && (count == rest || count >= PWSP_BULK_MIN) ? count : 0;
}

// Tasks start when their lanes are free. False when memory is out.
static bool pwsp_bulk_start(pwsp_lanes *lanes, const pwsp_batch *batch, const uint32_t *lane_of,
                            uint32_t begin, uint32_t count, const pwsp_bulk *bulk) {
    pwsp_sim *sim = lanes->sim;
    pwsp_window *window = &lanes->window;
    pwsp_open_scope *scope = &sim->order.scopes[sim->order.depth - 1];
    const uint32_t stayed = count - (uint32_t)bulk->left;  // tasks that found room
    uint64_t starts = 0, largest = 0, last = 0;
    uint32_t i = begin;
    for (; i < begin + count; i++) {
        const uint32_t lane_index = pwsp_batch_lane(sim, batch, lane_of, i);
        pwsp_lane *lane = &sim->lanes[lane_index];
        const uint64_t start = lane->free, end = start + batch->cycles[i];
        uint32_t before;
        PTOWSP_ASSERT(start > bulk->until);
        if (!pwsp_window_append(window, &sim->memory, lane_index, end, &before)) {
            break;
        }
        lane->free = end;
        sim->lane_stats[lane_index].busy_cycles += batch->cycles[i];
        sim->lane_stats[lane_index].task_count++;
        starts += start;
        largest = pwsp_max_u64(largest, end);
        last = end;
    }
    sim->task_count += i - begin;
    sim->issue_count += i - begin;
    sim->stats.makespan_cycles = pwsp_max_u64(sim->stats.makespan_cycles, largest);
    if (i < begin + count) {  // the waits of a part are not known
        return pwsp_sim_no_memory(sim);
    }
    const uint64_t clocks = stayed * sim->clock.now + bulk->left_sum;
    sim->stats.stall_cycles[PTOWSP_STALL_LANE] += starts - clocks;
    sim->stats.stall_cycles[PTOWSP_STALL_WINDOW] += bulk->left_last - sim->clock.now;
    sim->clock.now = bulk->left_last;
    scope->done.time = scope->is_parallel ? pwsp_max_u64(scope->done.time, largest) : last;
    scope->ready.time = scope->is_parallel ? scope->ready.time : last;
    return true;
}

// Issues tasks from `begin` on in bulk, if that can be. *out_count is how many. False with an error.
static bool pwsp_lanes_bulk(pwsp_lanes *lanes, const pwsp_batch *batch, const uint32_t *lane_of,
                            uint32_t begin, uint32_t end, uint32_t *out_count) {
    pwsp_bulk bulk;
    pwsp_sim *sim = lanes->sim;
    pwsp_window *window = &lanes->window;
    const uint32_t count = pwsp_bulk_begin(lanes, batch, begin, end, &bulk);
    *out_count = count;
    if (count == 0) {
        return true;
    }
    for (uint32_t lane = 0; bulk.left && lane < window->tournament.lane_count; lane++) {
        pwsp_flight_queue *queue = &window->queues[lane];
        queue->count -= bulk.left_by_lane[lane];
        queue->head = (queue->head + bulk.left_by_lane[lane]) & (queue->capacity - 1);
    }
    if (!pwsp_bulk_start(lanes, batch, lane_of, begin, count, &bulk)) {
        return false;
    }
    window->count += count - bulk.left;
    pwsp_window_rebase(window);
    sim->stats.in_flight_max = pwsp_max_u64(sim->stats.in_flight_max, window->count);
    return true;
}

// -- batches --------------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_lanes_batch(pwsp_lanes *lanes, const pwsp_batch *batch, uint32_t count) {
    PTOWSP_ASSERT(count <= pwsp_batch_room(batch->tile_count) && pwsp_lanes_is_plain(lanes));
    pwsp_sim *sim = lanes->sim;
    uint32_t lane_by_task[PWSP_BATCH_MAX];
    const uint32_t *lane_of = NULL;
    if (sim->policy.lane_rule != PWSP_LANE_ANY) {
        pwsp_sim_dispatch_batch(sim, batch->pool, batch->keys, count, lane_by_task);
        lane_of = lane_by_task;
    }
    const uint64_t window = sim->schedule->window;
    const bool is_through = window && !batch->tile_count;
    const bool has_bulks = is_through &&
                           lanes->window.tournament.lane_count <= PWSP_BULK_LANE_MAX &&
                           window / PWSP_BULK_DEPTH >= sim->pools[batch->pool].count;
    uint32_t begin = 0;
    if (is_through) {
        pwsp_window_leave(&lanes->window, sim->clock.now);
    }
    for (uint32_t bulk = has_bulks; bulk && begin + PWSP_BULK_MIN <= count; begin += bulk) {
        if (!pwsp_lanes_bulk(lanes, batch, lane_of, begin, count, &bulk)) {
            return false;
        }
    }
    return pwsp_lanes_batch_run(lanes, batch, lane_of, begin, count);
}
