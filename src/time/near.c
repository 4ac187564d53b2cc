// Batches through a window, task by task, while all times are near zero.
//
// This is the window with a tournament of its own, of 32 or 64 lanes, whatever there are: the
// games of a replay stand one behind the other. Players are ends alone, none too far for one number,
// and no store of the loop can change where another one goes, which leaves the compiler free.
//
//      the window is full:   the winner leaves, and with it the clock is at its end
//      in any case:          the task is placed; if its lane is empty, its end plays, too
//
// All that the tasks wait for is found at the end: the clock moves by the window alone, and of starts
// and clocks only sums are wanted.

#include "near.h"

#define PWSP_NEAR_LANE_MAX 64
#define PWSP_NEAR_MIN      48u  // tasks: fewer are not worth the copy

// All by lane: an index and a constant find any of it.
typedef struct pwsp_near {
    uint64_t games[2 * PWSP_NEAR_LANE_MAX];
    uint64_t *rings[PWSP_NEAR_LANE_MAX];
    uint64_t seconds[PWSP_NEAR_LANE_MAX];  // players behind the heads', or NONE
    uint32_t capacities[PWSP_NEAR_LANE_MAX];
    uint32_t heads[PWSP_NEAR_LANE_MAX], tails[PWSP_NEAR_LANE_MAX];  // modulo 2^32, not capacity
    uint64_t frees[PWSP_NEAR_LANE_MAX];
    uint64_t cycles[PWSP_NEAR_LANE_MAX];  // of the tasks of the loop
    uint32_t counts[PWSP_NEAR_LANE_MAX];  // of these
} pwsp_near;

PWSP_INTERNAL bool pwsp_near_may(const pwsp_lanes *lanes, const pwsp_batch *batch, uint32_t begin,
                                 uint32_t end) {
    const pwsp_sim *sim = lanes->sim;
    const pwsp_open_scope *scope = &sim->order.scopes[sim->order.depth - 1];
    const bool has_structure = sim->order.has_structure;
    if (end - begin < PWSP_NEAR_MIN || batch->tile_count ||
        lanes->window.tournament.lane_count > PWSP_NEAR_LANE_MAX ||
        (has_structure && !scope->is_parallel)) {  // each task waits for the one before
        return false;
    }
    uint64_t any = sim->clock.now | (has_structure ? scope->ready.time : 0);
    for (uint32_t i = 0; i < lanes->window.tournament.lane_count; i++) {
        any |= sim->lanes[i].free;
    }
    any |= pwsp_batch_bits(batch, begin, end);
    return any >> 48 == 0;  // no end is beyond 2^48 * (PWSP_BATCH_MAX + 1)
}

PWSP_FORCE_INLINE uint64_t pwsp_near_player(uint32_t lane, uint64_t end, uint32_t bits) {
    return end << bits | lane;
}

PWSP_FORCE_INLINE void pwsp_near_open(pwsp_near *near, const pwsp_window *window, uint32_t lane) {
    const pwsp_flight_queue *queue = &window->queues[lane];
    near->rings[lane] = queue->ring;
    near->capacities[lane] = queue->capacity;
    near->heads[lane] = queue->head;
    near->tails[lane] = queue->head + queue->count;
}

PWSP_FORCE_INLINE void pwsp_near_close(const pwsp_near *near, pwsp_window *window, uint32_t lane) {
    pwsp_flight_queue *queue = &window->queues[lane];
    queue->head = near->heads[lane] & (near->capacities[lane] - 1);
    queue->count = near->tails[lane] - near->heads[lane];
}

// Copies the window and its lanes, and returns the winner.
PWSP_FORCE_INLINE uint64_t pwsp_near_begin(pwsp_near *near, const pwsp_lanes *lanes,
                                           uint32_t bits) {
    const uint32_t leaf_count = 1u << bits, lane_count = lanes->window.tournament.lane_count;
    uint64_t *games = near->games;
    for (uint32_t i = 0; i < leaf_count; i++) {
        games[leaf_count + i] = PWSP_PLAYER_NONE;
    }
    for (uint32_t i = 0; i < lane_count; i++) {
        const pwsp_flight_queue *queue = &lanes->window.queues[i];
        pwsp_near_open(near, &lanes->window, i);
        near->seconds[i] = PWSP_PLAYER_NONE;
        if (queue->count) {
            games[leaf_count + i] = pwsp_near_player(i, queue->ring[queue->head], bits);
        }
        if (queue->count > 1) {
            const uint64_t second = queue->ring[(queue->head + 1) & (queue->capacity - 1)];
            near->seconds[i] = pwsp_near_player(i, second, bits);
        }
        near->frees[i] = lanes->sim->lanes[i].free;
        near->cycles[i] = 0;
        near->counts[i] = 0;
    }
    return pwsp_games_play(games, bits);
}

// Copies them back, and returns the latest end of a task of the loop. Lanes may be busy until later
// with others, of scopes around that of the loop.
static uint64_t pwsp_near_end(const pwsp_near *near, pwsp_lanes *lanes) {
    pwsp_sim *sim = lanes->sim;
    uint64_t latest = 0;
    for (uint32_t i = 0; i < lanes->window.tournament.lane_count; i++) {
        pwsp_near_close(near, &lanes->window, i);
        sim->lanes[i].free = near->frees[i];
        sim->lane_stats[i].busy_cycles += near->cycles[i];
        sim->lane_stats[i].task_count += near->counts[i];
        latest = near->counts[i] ? pwsp_max_u64(latest, near->frees[i]) : latest;
    }
    pwsp_window_rebuild(&lanes->window, 0);
    return latest;
}

// Takes the winner, and returns the next one.
PWSP_FORCE_INLINE uint64_t pwsp_near_pop(pwsp_near *near, uint64_t winner, uint32_t bits) {
    const uint32_t lane = (uint32_t)winner & ((1u << bits) - 1);
    const uint64_t player = near->seconds[lane];
    const uint32_t head = near->heads[lane] + 1;
    const uint64_t end = near->rings[lane][(head + 1) & (near->capacities[lane] - 1)];
    const uint64_t is_last = near->tails[lane] - head < 2;
    near->heads[lane] = head;
    near->seconds[lane] = pwsp_near_player(lane, end, bits) | (0 - is_last);  // no branch: a guess
    return pwsp_games_replay(near->games, bits, lane, player);
}

// Adds a task of a lane whose ring has room, and returns the winner.
PWSP_FORCE_INLINE uint64_t pwsp_near_push(pwsp_near *near, uint32_t lane, uint64_t end,
                                          uint64_t winner, uint32_t bits) {
    const uint64_t player = pwsp_near_player(lane, end, bits);
    const uint32_t tail = near->tails[lane];
    near->rings[lane][tail & (near->capacities[lane] - 1)] = end;
    near->tails[lane] = tail + 1;
    if (tail == near->heads[lane]) {
        return pwsp_games_replay(near->games, bits, lane, player);
    }
    near->seconds[lane] = pwsp_min_u64(near->seconds[lane], player);  // NONE, or no later
    return winner;
}

// Makes room in a lane's ring. False when memory is out.
PWSP_FORCE_INLINE bool pwsp_near_make_room(pwsp_near *near, pwsp_lanes *lanes, uint32_t lane) {
    if (PWSP_LIKELY(near->tails[lane] - near->heads[lane] < near->capacities[lane])) {
        return true;
    }
    pwsp_near_close(near, &lanes->window, lane);
    const bool is_good = pwsp_window_grow(&lanes->window, &lanes->sim->memory, lane);
    pwsp_near_open(near, &lanes->window, lane);
    return is_good;
}

// What the loop finds.
typedef struct pwsp_near_sums {
    uint64_t starts, waits, clocks;  // waits: for what is before the scope
    uint64_t last, latest;           // the end of the last task, and the latest of all
    uint32_t count;
} pwsp_near_sums;

PWSP_FORCE_INLINE void pwsp_near_loop(pwsp_lanes *lanes, const pwsp_batch *batch,
                                      const uint32_t *lane_of, uint32_t begin, uint32_t end_task,
                                      uint64_t ready, uint32_t bits, pwsp_near_sums *sums) {
    pwsp_near near;
    pwsp_sim *sim = lanes->sim;
    const uint64_t window_size = sim->schedule->window;
    uint64_t clock = sim->clock.now, in_flight = lanes->window.count;
    uint64_t starts = 0, waits = 0, clocks = 0, end = 0;
    uint64_t winner = pwsp_near_begin(&near, lanes, bits);
    uint32_t i = begin;
    for (; i < end_task; i++) {
        if (in_flight == window_size) {  // all that is in flight ends after the clock
            clock = winner >> bits;
            do {
                winner = pwsp_near_pop(&near, winner, bits);
                in_flight--;
            } while (winner >> bits <= clock);
        }
        const uint32_t lane = lane_of[i];
        const uint64_t cycles = batch->cycles[i];
        uint64_t due = clock;
        if (PWSP_UNLIKELY(ready > clock)) {  // until the clock has passed it
            waits += ready - clock;
            due = ready;
        }
        const uint64_t start = pwsp_max_u64(due, near.frees[lane]);
        end = start + cycles;
        if (end > clock) {
            if (!pwsp_near_make_room(&near, lanes, lane)) {
                waits -= due - clock;
                break;
            }
            winner = pwsp_near_push(&near, lane, end, winner, bits);
            in_flight++;
        }
        near.frees[lane] = end;
        near.cycles[lane] += cycles;
        near.counts[lane]++;
        starts += start;
        clocks += clock;
    }
    const uint64_t latest = pwsp_near_end(&near, lanes);
    const pwsp_near_sums found = {starts, waits, clocks, end, latest, i - begin};
    *sums = found;
    lanes->window.count = in_flight;
    // Once a task had to leave, as many were in flight as may be.
    const uint64_t most = clock > sim->clock.now ? window_size : in_flight;
    sim->stats.in_flight_max = pwsp_max_u64(sim->stats.in_flight_max, most);
    sim->stats.stall_cycles[PTOWSP_STALL_WINDOW] += clock - sim->clock.now;
    sim->clock.now = clock;
}

PWSP_INTERNAL bool pwsp_near_run(pwsp_lanes *lanes, const pwsp_batch *batch,
                                 const uint32_t *lane_of, uint32_t begin, uint32_t end) {
    pwsp_sim *sim = lanes->sim;
    pwsp_open_scope *scope = &sim->order.scopes[sim->order.depth - 1];
    const uint64_t ready = sim->order.has_structure ? scope->ready.time : 0;
    uint64_t *stalls = sim->stats.stall_cycles;
    if (sim->schedule->issue == PTOWSP_ISSUE_IN_ORDER && ready > sim->clock.now) {
        stalls[PTOWSP_STALL_DEPENDENCY] += ready - sim->clock.now;
        sim->clock.now = ready;
        pwsp_window_leave(&lanes->window, ready);
    }
    pwsp_near_sums sums;
    if (lanes->window.tournament.lane_count <= 32) {
        pwsp_near_loop(lanes, batch, lane_of, begin, end, ready, 5, &sums);
    } else {
        pwsp_near_loop(lanes, batch, lane_of, begin, end, ready, 6, &sums);
    }
    sim->task_count += sums.count;
    sim->issue_count += sums.count;
    sim->stats.makespan_cycles = pwsp_max_u64(sim->stats.makespan_cycles, sums.latest);
    stalls[PTOWSP_STALL_DEPENDENCY] += sums.waits;
    stalls[PTOWSP_STALL_LANE] += sums.starts - sums.clocks - sums.waits;
    scope->done.time = scope->is_parallel ? pwsp_max_u64(scope->done.time, sums.latest) : sums.last;
    scope->ready.time = scope->is_parallel ? scope->ready.time : sums.last;
    return sums.count == end - begin || pwsp_sim_no_memory(sim);
}
