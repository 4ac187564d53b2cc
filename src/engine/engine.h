// Lanes, and the ready tasks that they run: the part of graphs and of programs that is the same.
//
//      push ----> own deque ----- offered part (deque.h) ----> other lanes, half of it at a time
//        |           | full
//        |           v
//        '------> excess -------- offer, under a lock -------> queues: lanes take from them
//
// A task is a number of the owner's, who has a link for each: tasks that are in no deque are queued
// through it (ready.h). There is a queue for each group of lanes. A lane takes from the queue of its own
// group, and from another group's only while no lane of that group has come: threads wake late,
// executors may run lanes one after another, and no task may wait for a lane that never comes.
//
// The policy is a row of PWSP_READIES (policy.h). Lanes that steal are one group, and put tasks into its
// queue only when their deques are full. FIFO, where each lane is a group, and PRIORITY, where lanes of a
// unit are one, put all tasks there but those for which the owner has no group: the two holds of a lock
// suit tasks of microseconds. Of equal keys tasks go in the order in which they came to the queue.
//
// Sleep. A lane that finds nothing spins, then sleeps (see sleeper.h). A lane that offers a task
// changes the word of a deque or the first key of a queue, sequentially consistent, and then wakes. The
// owner's other work follows the same rule: it becomes visible, then pwsp_engine_wake.
//
// The keeper is a lane that is to be alone, if there is one: others take no ready tasks then. Which
// lane, and when, is the owner's (see graph_lanes.c).

#ifndef PWSP_ENGINE_H
#define PWSP_ENGINE_H

#include "../base/sleeper.h"
#include "deque.h"
#include "policy.h"
#include "ready.h"

#define PWSP_ENGINE_NONE   PWSP_READY_NONE  // no task, or no group
#define PWSP_ENGINE_BATCH  64u  // tasks that a lane takes at once, at most, if it steals
#define PWSP_ENGINE_NAP_NS 50000

typedef struct pwsp_engine_group {
    pwsp_mutex mutex;  // protects the queue
    pwsp_ready_queue queue;
    uint64_t count, number;  // of tasks in it, and of all that have come
    // Atomic, changed under the lock: of its first task, or EMPTY.
    PWSP_ALIGNAS(8) uint64_t first_key;
    uint32_t come_count;  // atomic: its lanes that are in the run
} pwsp_engine_group;
#define PWSP_ENGINE_EMPTY UINT64_MAX

// The owner's part of a lane follows it.
typedef struct pwsp_engine_lane {
    pwsp_engine_group with_index;  // the group of this index: groups are no more than lanes, or two
    char padding[PWSP_FALSE_SHARING];
    uint32_t index, group;
    uint64_t steal_count;     // tasks taken from other lanes' deques
    pwsp_ready_queue excess;  // tasks that go to queues
    uint32_t excess_count;
    pwsp_deque deque;
} pwsp_engine_lane;

// Is there something for a lane besides ready tasks, or has the run ended?
typedef enum pwsp_engine_more {
    PWSP_ENGINE_NOTHING = 0,
    PWSP_ENGINE_MORE,
    PWSP_ENGINE_UNANNOUNCED  // some will come, and nobody wakes: a lane naps
} pwsp_engine_more;

// The owner's duties.
typedef struct pwsp_engine_job {
    void *user;
    // A task, or NONE, when there is something; runs it, with its consequences; for a lane without one.
    uint32_t (*find)(void *user, pwsp_engine_lane *lane);
    void (*run)(void *user, pwsp_engine_lane *lane, uint32_t task);
    bool (*is_over)(void *user, pwsp_engine_lane *lane);
    pwsp_engine_more (*more)(void *user, const pwsp_engine_lane *lane);
    // Without stealing: the task's group, or NONE; and with priorities its key, the smaller one goes first.
    uint32_t (*group_of)(void *user, uint32_t task, uint64_t *out_key);
    pwsp_ready_links links;  // by task; `next` alone, but for priorities
} pwsp_engine_job;

typedef struct pwsp_engine {
    pwsp_memory memory;
    pwsp_engine_job job;
    pwsp_ready_policy policy;
    char *lanes;
    size_t lane_stride;
    uint32_t lane_count, lane_capacity;
    uint32_t group_count;
    uint32_t spin_count, yield_count;  // of a lane, before it sleeps
    pwsp_sleepers sleepers;            // lanes; its lock protects data of the owner's choice
    uint32_t keeper;                   // atomic: index + 1 of the lane that is to be alone, or 0
} pwsp_engine;

// -- life -----------------------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_engine_init(pwsp_engine *engine, const pwsp_memory *memory);
PWSP_INTERNAL void pwsp_engine_free(pwsp_engine *engine);
PWSP_INTERNAL size_t pwsp_engine_bytes(const pwsp_engine *engine);

// Makes room for so many lanes, each with the owner's part. False when memory is out.
PWSP_INTERNAL bool pwsp_engine_reserve(pwsp_engine *engine, uint32_t lane_count, size_t lane_size);

// Begins a run, without tasks; by priority, the last cube_count lanes are for cubes. engine->job is set.
PWSP_INTERNAL void pwsp_engine_begin(pwsp_engine *engine, pwsp_ready ready, uint32_t lane_count,
                                     uint32_t cube_count);

PWSP_INLINE pwsp_engine_lane *pwsp_engine_at(const pwsp_engine *engine, uint32_t index) {
    return (pwsp_engine_lane *)(void *)(engine->lanes + index * engine->lane_stride);
}
PWSP_INLINE pwsp_engine_group *pwsp_engine_group_at(const pwsp_engine *engine, uint32_t index) {
    return &pwsp_engine_at(engine, index)->with_index;
}

// -- ready tasks, of the calling lane -------------------------------------------------------------

// Puts a task into the lane's excess, if no deque is for it or has room.
PWSP_INTERNAL void pwsp_engine_overflow(pwsp_engine *engine, pwsp_engine_lane *lane, uint32_t task);

// The lane has one task more, which is not on offer yet.
PWSP_INLINE void pwsp_engine_push(pwsp_engine *engine, pwsp_engine_lane *lane, uint32_t task) {
    if (PWSP_UNLIKELY(lane->deque.bottom == lane->deque.limit)) {
        pwsp_engine_overflow(engine, lane, task);
    } else {
        pwsp_deque_push(&lane->deque, task);
    }
}

// Offers the oldest `count` of the lane's private tasks, and its excess.
PWSP_INTERNAL void pwsp_engine_offer(pwsp_engine *engine, pwsp_engine_lane *lane, uint32_t count);

// The lane's next private task: the newest one. It may be one on offer, and then the lane takes up to
// `grab` of them back.
PWSP_INTERNAL uint32_t pwsp_engine_own(pwsp_engine *engine, pwsp_engine_lane *lane, uint32_t grab);

// A task by the policy, for a lane whose newest task is not the next, or that has none.
PWSP_INTERNAL uint32_t pwsp_engine_take(pwsp_engine *engine, pwsp_engine_lane *lane);

// Is there a task that a lane without tasks may take?
PWSP_INTERNAL bool pwsp_engine_has_work(const pwsp_engine *engine, const pwsp_engine_lane *lane);

// May the lane take tasks of a group?
PWSP_INTERNAL bool pwsp_engine_may_take(const pwsp_engine *engine, const pwsp_engine_lane *lane,
                                        uint32_t group);

// No other lane is the keeper.
PWSP_INLINE bool pwsp_engine_is_let_in(const pwsp_engine *engine, const pwsp_engine_lane *lane) {
    uint32_t keeper = pwsp_load_seq_cst(&engine->keeper);
    return keeper == 0 || keeper == lane->index + 1;
}

// -- lanes ----------------------------------------------------------------------------------------

// Runs tasks until the run is over.
PWSP_INTERNAL void pwsp_engine_work(pwsp_engine *engine, pwsp_engine_lane *lane);

// The part of waking that is not rare.
PWSP_INTERNAL void pwsp_engine_rouse(pwsp_engine *engine, bool all);

// Wakes a sleeping lane, or all, if there are any. The caller has made work visible, in a
// sequentially consistent operation.
PWSP_INLINE void pwsp_engine_wake(pwsp_engine *engine, bool all) {
    if (pwsp_sleepers_are(&engine->sleepers)) {
        pwsp_engine_rouse(engine, all);
    }
}

#endif
