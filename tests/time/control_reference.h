// A slow simulator of control, written from the rules of ptowsp_control alone: it walks over all tasks,
// lanes and threads at each time at which anything may happen, and repeats until nothing does.

#ifndef PTOWSP_CONTROL_REFERENCE_H
#define PTOWSP_CONTROL_REFERENCE_H

#include "test.h"

enum { REF_TASKS = 40, REF_LANES = 16, REF_EDGES = 3, REF_NONE = -1 };

typedef struct ref_task {
    uint64_t cycles;
    uint64_t key;
    int unit;  // 0 vector, 1 cube, 2 both
    int edge_count;
    int edges[REF_EDGES];
    // what becomes of it
    bool is_issued, is_taken, is_noticed, is_done;
    uint64_t issue, start, end, done;
    int lane;  // its own, or its queue's while it waits
} ref_task;

typedef struct ref_thread {
    uint64_t until;
    bool is_busy;
    int task;  // that it completes, or REF_NONE
} ref_thread;

typedef struct ref_model {
    const ptowsp_schedule *schedule;
    ref_task tasks[REF_TASKS];
    int task_count, lane_count, vector_count;  // by unit: vector lanes are first
    uint64_t cost[PTOWSP_CONTROL_COST_COUNT];  // cycles
    ref_thread threads[PTOWSP_CONTROL_THREAD_MAX];
    int claims[REF_LANES];                  // the last task that has taken a lane, or REF_NONE
    uint64_t starts[REF_LANES];             // when its core starts
    int waiting[REF_TASKS], waiting_count;  // ended, noticeable, not handled
    int next, next_turn[2];
    bool is_submitting;
    uint64_t submitted, now, makespan, work;
} ref_model;

static int ref_pool(const ref_model *r, const ref_task *t) {
    return r->schedule->pools == PTOWSP_POOLS_BY_UNIT && t->unit > 0;
}

static int ref_first(const ref_model *r, int pool) {
    return pool ? r->vector_count : 0;
}

static int ref_last(const ref_model *r, int pool) {
    return r->schedule->pools == PTOWSP_POOLS_BY_UNIT && pool == 0 ? r->vector_count
                                                                   : r->lane_count;
}

static bool ref_is_block(const ref_model *r, const ref_task *t) {
    return r->schedule->pools == PTOWSP_POOLS_BY_UNIT && t->unit == 2;
}

// The lanes that a task takes on a lane of its pool.
static int ref_lanes(const ref_model *r, const ref_task *t, int lane, int *lanes) {
    lanes[0] = lane;
    if (!ref_is_block(r, t)) {
        return 1;
    }
    lanes[1] = 2 * (lane - r->vector_count);
    lanes[2] = lanes[1] + 1;
    return 3;
}

static bool ref_is_idle(const ref_model *r, int lane) {
    return r->claims[lane] == REF_NONE ? r->now >= r->starts[lane]
                                       : r->tasks[r->claims[lane]].is_done;
}

static bool ref_deps_done(const ref_model *r, const ref_task *t) {
    for (int i = 0; i < t->edge_count; i++) {
        if (!r->tasks[t->edges[i]].is_done) {
            return false;
        }
    }
    return true;
}

static bool ref_is_shared(const ref_model *r) {
    return r->schedule->dispatch == PTOWSP_DISPATCH_WORK_STEALING;
}

static bool ref_is_fifo(const ref_model *r) {
    return !ref_is_shared(r) && r->schedule->ready == PTOWSP_READY_FIFO;
}

// By fifo: has a task before it not been taken, which shares a lane?
static bool ref_is_behind(const ref_model *r, int i) {
    int mine[3], others[3];
    const int count = ref_lanes(r, &r->tasks[i], r->tasks[i].lane, mine);
    for (int k = 0; k < i && ref_is_fifo(r); k++) {
        const ref_task *other = &r->tasks[k];
        const int other_count = other->is_taken ? 0 : ref_lanes(r, other, other->lane, others);
        for (int a = 0; a < count; a++) {
            for (int b = 0; b < other_count; b++) {
                if (mine[a] == others[b]) {
                    return true;
                }
            }
        }
    }
    return false;
}

static bool ref_is_ready(const ref_model *r, int i) {
    const ref_task *t = &r->tasks[i];
    return t->is_issued && !t->is_taken && ref_deps_done(r, t) && !ref_is_behind(r, i);
}

static bool ref_goes_first(const ref_model *r, int a, int b) {
    if (b == REF_NONE) {
        return true;
    }
    if (r->schedule->ready == PTOWSP_READY_PRIORITY && r->tasks[a].key != r->tasks[b].key) {
        return r->tasks[a].key > r->tasks[b].key;
    }
    return a < b;
}

static bool ref_has_thread(const ref_model *r, int *out_thread) {
    for (uint32_t i = 0; i < r->schedule->control.threads; i++) {
        if (!r->threads[i].is_busy) {
            *out_thread = (int)i;
            return true;
        }
    }
    *out_thread = REF_NONE;
    return r->schedule->control.threads == 0;
}

static void ref_work(ref_model *r, int thread, uint64_t cycles, int task) {
    if (thread != REF_NONE && cycles) {
        r->threads[thread].is_busy = true;
        r->threads[thread].until = r->now + cycles;
        r->threads[thread].task = task;
        r->work += cycles;
    }
}

static void ref_done(ref_model *r, int task) {
    r->tasks[task].is_done = true;
    r->tasks[task].done = r->now;
    r->makespan = r->now > r->makespan ? r->now : r->makespan;
}

static bool ref_complete(ref_model *r) {
    const uint64_t cycles = r->cost[PTOWSP_CONTROL_POLL] + r->cost[PTOWSP_CONTROL_COMPLETE];
    bool has_moved = false;
    int thread;
    for (uint32_t i = 0; i < r->schedule->control.threads; i++) {
        ref_thread *t = &r->threads[i];
        if (t->is_busy && t->until <= r->now) {
            t->is_busy = false;
            has_moved = true;
            if (t->task != REF_NONE) {
                ref_done(r, t->task);
            }
        }
    }
    for (int lane = 0; lane < r->lane_count; lane++) {
        for (int i = 0; i < r->next; i++) {
            ref_task *t = &r->tasks[i];
            if (t->is_taken && !t->is_noticed && t->lane == lane &&
                t->end + r->cost[PTOWSP_CONTROL_NOTICE] <= r->now) {
                t->is_noticed = true;
                r->waiting[r->waiting_count++] = i;
                has_moved = true;
            }
        }
    }
    while (r->waiting_count && ref_has_thread(r, &thread)) {
        const int task = r->waiting[0];
        memmove(r->waiting, r->waiting + 1, (size_t)--r->waiting_count * sizeof r->waiting[0]);
        ref_work(r, thread, cycles, task);
        if (cycles == 0) {
            ref_done(r, task);
        }
        has_moved = true;
    }
    return has_moved;
}

static bool ref_has_room(const ref_model *r) {
    uint32_t in_flight = 0;
    for (int i = 0; i < r->next; i++) {
        in_flight += !r->tasks[i].is_done;
    }
    return r->schedule->window == 0 || in_flight < r->schedule->window;
}

static bool ref_issue(ref_model *r) {
    if (r->next == r->task_count) {
        return false;
    }
    ref_task *t = &r->tasks[r->next];
    if (!r->is_submitting) {
        if ((r->schedule->issue == PTOWSP_ISSUE_IN_ORDER && !ref_deps_done(r, t)) ||
            !ref_has_room(r)) {
            return false;
        }
        r->is_submitting = true;
        r->submitted = r->now + r->cost[PTOWSP_CONTROL_SUBMIT];
    }
    if (r->now < r->submitted) {
        return false;
    }
    r->is_submitting = false;
    const int pool = ref_pool(r, t), first = ref_first(r, pool);
    const int lanes = ref_last(r, pool) - first;
    t->is_issued = true;
    t->issue = r->now;
    t->lane =
        first + (r->schedule->dispatch == PTOWSP_DISPATCH_AFFINITY ? (int)(t->key % (uint64_t)lanes)
                                                                   : r->next_turn[pool]++ % lanes);
    r->next++;
    return true;
}

static void ref_take(ref_model *r, int i, int lane, int thread) {
    ref_task *t = &r->tasks[i];
    int lanes[3];
    const int count = ref_lanes(r, t, lane, lanes);
    t->start = r->now + r->cost[PTOWSP_CONTROL_DISPATCH] + r->cost[PTOWSP_CONTROL_DELIVER] +
               r->cost[PTOWSP_CONTROL_SWITCH];
    for (int k = 0; k < count; k++) {
        const int claim = r->claims[lanes[k]];
        const uint64_t free = claim == REF_NONE ? r->starts[lanes[k]] : r->tasks[claim].end;
        t->start = free > t->start ? free : t->start;
        r->claims[lanes[k]] = i;
    }
    t->is_taken = true;
    t->lane = lane;
    t->end = t->start + t->cycles;
    ref_work(r, thread, r->cost[PTOWSP_CONTROL_DISPATCH], REF_NONE);
    r->makespan = t->end > r->makespan ? t->end : r->makespan;
}

// The best ready task of a pool, or of a lane's queue.
static int ref_best(const ref_model *r, int pool, int lane) {
    int best = REF_NONE;
    for (int i = 0; i < r->next; i++) {
        const ref_task *t = &r->tasks[i];
        if (ref_is_ready(r, i) && ref_pool(r, t) == pool && (lane == REF_NONE || t->lane == lane) &&
            ref_goes_first(r, i, best)) {
            best = i;
        }
    }
    return best;
}

// Issue in order has the lane that has been idle longest, where lanes share their tasks.
static int ref_choose(const ref_model *r, int pool, int lane) {
    uint64_t least = UINT64_MAX;
    int chosen = lane;
    for (int i = ref_first(r, pool);
         i < ref_last(r, pool) && ref_is_shared(r) && r->schedule->issue == PTOWSP_ISSUE_IN_ORDER;
         i++) {
        const int claim = r->claims[i];
        const uint64_t since = claim == REF_NONE ? r->starts[i] : r->tasks[claim].done;
        if (ref_is_idle(r, i) && since < least) {
            least = since;
            chosen = i;
        }
    }
    return chosen;
}

static bool ref_dispatch(ref_model *r) {
    const int pools = 1 + (r->schedule->pools == PTOWSP_POOLS_BY_UNIT);
    const bool steals = r->schedule->ready == PTOWSP_READY_WORK_STEALING;
    bool has_moved = false;
    for (int is_own = 1; is_own >= 0; is_own--) {
        for (int pool = 0;
             pool < pools && (is_own ? !ref_is_shared(r) : ref_is_shared(r) || steals); pool++) {
            for (int at = ref_first(r, pool); at < ref_last(r, pool); at++) {
                int thread;
                const int lane = ref_choose(r, pool, at);
                const int best =
                    ref_is_idle(r, lane) ? ref_best(r, pool, is_own ? lane : REF_NONE) : REF_NONE;
                if (best != REF_NONE && ref_has_thread(r, &thread)) {
                    ref_take(r, best, lane, thread);
                    has_moved = true;
                }
            }
        }
    }
    return has_moved;
}

static uint64_t ref_later(const ref_model *r, uint64_t time, uint64_t next) {
    return time > r->now && time < next ? time : next;
}

// The next time at which anything can happen; UINT64_MAX: nothing can.
static uint64_t ref_next_time(const ref_model *r) {
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; i < r->schedule->control.threads; i++) {
        next = r->threads[i].is_busy ? ref_later(r, r->threads[i].until, next) : next;
    }
    for (int i = 0; i < r->next; i++) {
        const ref_task *t = &r->tasks[i];
        next = t->is_taken ? ref_later(r, t->end + r->cost[PTOWSP_CONTROL_NOTICE], next) : next;
    }
    for (int i = 0; i < r->lane_count; i++) {
        next = ref_later(r, r->starts[i], next);
    }
    return r->is_submitting ? ref_later(r, r->submitted, next) : next;
}

// When lane i of n starts after the launch, by fractions.
static uint64_t ref_start(const ref_model *r, int i, int n) {
    const uint64_t *at = &r->cost[PTOWSP_CONTROL_START_FIRST];
    if (n == 1 || i == 0) {
        return at[0];
    }
    const int quarter = 4 * i / (n - 1);
    if (quarter == 4) {
        return at[4];
    }
    return at[quarter] + (at[quarter + 1] - at[quarter]) * (uint64_t)(4 * i - quarter * (n - 1)) /
                             (uint64_t)(n - 1);
}

// Requires the schedule, tasks and lanes; a control whose costs at its clock are whole numbers, or
// round as the last digit says.
static void ref_run(ref_model *r) {
    const ptowsp_control *control = &r->schedule->control;
    for (int i = 0; i < PTOWSP_CONTROL_COST_COUNT; i++) {
        const double cycles = (double)control->cost_ns[i] * control->clock_mhz / 1000.0;
        r->cost[i] = (uint64_t)(cycles + 0.5);
    }
    for (int pool = 0; pool < 1 + (r->schedule->pools == PTOWSP_POOLS_BY_UNIT); pool++) {
        const int first = ref_first(r, pool), last = ref_last(r, pool);
        for (int i = first; i < last; i++) {
            r->claims[i] = REF_NONE;
            r->starts[i] = r->cost[PTOWSP_CONTROL_LAUNCH] + ref_start(r, i - first, last - first);
        }
    }
    r->now = r->cost[PTOWSP_CONTROL_LAUNCH];
    while (r->now != UINT64_MAX) {
        for (bool has_moved = true; has_moved;) {
            has_moved = false;
            while (ref_complete(r)) {
                has_moved = true;
            }
            while (ref_issue(r)) {
                has_moved = true;
            }
            has_moved = ref_dispatch(r) || has_moved;
        }
        r->now = ref_next_time(r);
    }
}

#endif
