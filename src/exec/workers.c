// The workers: lanes that run the ready tasks of a program (see engine/engine.h).
//
// Lane 0 walks the program, and runs tasks itself when it has to wait. A lane runs the first task that
// it makes ready next; others, and those that the walk finds ready, go to the lane's deque. So a task
// costs no lock, and one or two atomic operations to change hands. Where dispatch chooses the lane, a
// task stands in the queue of that lane.
//
//      a lane      offers all it has at once, as it cannot know how long its next task takes
//      the walk    offers its tasks when nothing is on offer, when lanes sleep, when it has
//                  PWSP_WORKERS_HOLD_MAX tasks, and before it helps
//
// With own threads lane 0 is the calling thread. An executor may run lanes in any order, even one
// after another. So with an executor, lanes are numbered as they arrive, and the first one walks.
// It needs no other lane.
//
// Links. A task that communicates is never in a queue, and there is one at most, as each waits for
// the one before. A lane that looks for work, or is between two tasks, moves it on (`is_moving` keeps
// others away: acquire, release); none waits for it. While there is one, lanes without work do not
// sleep but nap, because nobody tells when a message has come.
//
// Sleep. A lane that finds nothing pauses for some 5 us and gives way to other threads twice: where
// lanes share a processor, because others are busy, the task it waits for may be queued after it. (With pauses
// of 20 us alone tasks of 1 us took 1.7 times as long there as without lanes, and take 1.1 to 1.2
// times. A lane that gives way more often waits for all other threads each time.) Then it sleeps.
// The walking lane offers its tasks, then sleeps until done_count has changed. Other lanes add
// tasks before that change, so these additions need not wake it. A lane in a chain lets it sleep, as
// there is nothing to do but retire finished tasks (pwsp_workers_may_be_quiet). So it sleeps for 500 us at most.

#include "workers.h"

#include "../engine/engine.h"

#define PWSP_WORKERS_NONE     PWSP_ENGINE_NONE
#define PWSP_WORKERS_WALK_NS  500000
#define PWSP_WORKERS_HOLD_MAX 8u

typedef struct pwsp_workers_lane {
    pwsp_engine_lane lane;
    uint32_t kept;  // the lane's next task, or PWSP_WORKERS_NONE
    char padding[PWSP_FALSE_SHARING];
} pwsp_workers_lane;

struct pwsp_workers {
    pwsp_memory memory;
    pwsp_engine engine;
    pwsp_reorder *reorder;  // of this run
    pwsp_workers_job job;
    bool is_numbered;  // in order of arrival
    bool is_good;
    pwsp_sleeper walker;
    char padding[PWSP_FALSE_SHARING];
    uint32_t come_count;  // atomic
    uint32_t is_over;     // atomic
    uint32_t link;        // atomic: the place of the task that communicates + 1, or 0
    uint32_t is_moving;   // atomic: a lane moves it on
};

static pwsp_workers_lane *pwsp_workers_at(const pwsp_workers *workers, uint32_t index) {
    return (pwsp_workers_lane *)(void *)pwsp_engine_at(&workers->engine, index);
}

// -- the executor ---------------------------------------------------------------------------------

// Offers all that a lane has.
static void pwsp_workers_offer(pwsp_workers *workers, pwsp_engine_lane *lane) {
    pwsp_engine_offer(&workers->engine, lane, pwsp_deque_held(&lane->deque));
}

// Gives a ready task to its home, or to the calling lane, and offers it.
static void pwsp_workers_give(pwsp_workers *workers, pwsp_engine_lane *lane, uint32_t place) {
    pwsp_engine_push(&workers->engine, lane, place);
    pwsp_workers_offer(workers, lane);
}

// Should the walk offer its tasks? Rarely: each time costs an atomic operation, or a lock.
static bool pwsp_workers_has_enough(const pwsp_workers *workers, const pwsp_engine_lane *lane) {
    return pwsp_deque_held(&lane->deque) >= PWSP_WORKERS_HOLD_MAX ||
           lane->excess_count >= PWSP_ENGINE_BATCH ||
           pwsp_deque_offers(pwsp_load_relaxed(&lane->deque.word)) == 0 ||
           pwsp_sleepers_are(&workers->engine.sleepers);
}

static void pwsp_workers_ready(void *user, uint32_t by, uint32_t place) {
    pwsp_workers *workers = (pwsp_workers *)user;
    const pwsp_entry *entry = pwsp_reorder_at(workers->reorder, place);
    pwsp_workers_lane *own = pwsp_workers_at(workers, by == PWSP_BY_WALK ? 0 : by);
    // An entry that could not be queued for lack of memory is only passed over: another may be
    // under way.
    if (entry->kind == PWSP_ENTRY_TASK && entry->unit == PTOWSP_UNIT_LINK &&
        !pwsp_load_relaxed(&entry->fan.is_poisoned)) {
        PTOWSP_ASSERT(workers->job.move_link && !pwsp_load_relaxed(&workers->link));
        pwsp_store_seq_cst(&workers->link, place + 1);
        pwsp_engine_wake(&workers->engine, false);
        return;
    }
    if (by == PWSP_BY_WALK) {
        pwsp_engine_push(&workers->engine, &own->lane, place);
        if (pwsp_workers_has_enough(workers, &own->lane)) {
            pwsp_workers_offer(workers, &own->lane);
        }
    } else if ((entry->home == PWSP_NO_HOME || entry->home == by) &&
               own->kept == PWSP_WORKERS_NONE) {
        own->kept = place;
    } else {
        pwsp_workers_give(workers, &own->lane, place);
    }
}

// May a lane let the walking one sleep? In a chain there is nothing for it but to retire the task, and
// waking it takes as long as a task of some us. It wakes by itself after PWSP_WORKERS_WALK_NS, so that
// it issues what there is room for even if the next task is a long one.
static bool pwsp_workers_may_be_quiet(const pwsp_workers *workers, const pwsp_workers_lane *own) {
    return own->kept != PWSP_WORKERS_NONE && pwsp_load_relaxed(&workers->walker.asleep) &&
           !pwsp_load_relaxed(&workers->link) &&
           !pwsp_engine_has_work(&workers->engine, pwsp_engine_at(&workers->engine, 0));
}

// Runs a task; returns the one that it has made ready, or PWSP_WORKERS_NONE.
static uint32_t pwsp_workers_run_task(pwsp_workers *workers, pwsp_workers_lane *own,
                                      uint32_t place) {
    own->kept = PWSP_WORKERS_NONE;
    pwsp_reorder_run(workers->reorder, place, own->lane.index);
    pwsp_reorder_done(workers->reorder, place, own->lane.index);
    if (!pwsp_workers_may_be_quiet(workers, own)) {
        pwsp_sleeper_wake(&workers->walker, PWSP_SLEEPER_ALL);
    }
    return own->kept;
}

// Moves the task that communicates on, if there is one and no other lane does.
static void pwsp_workers_move_link(pwsp_workers *workers, pwsp_workers_lane *own) {
    if (!pwsp_load_relaxed(&workers->link) || pwsp_exchange_acquire(&workers->is_moving, 1u)) {
        return;
    }
    const uint32_t link = pwsp_load_seq_cst(&workers->link);
    pwsp_reorder *reorder = workers->reorder;
    ptowsp_cycles result = ptowsp_task_fail(PTOWSP_SKIPPED);
    bool is_done = link != 0;
    if (link && !pwsp_load_relaxed(&pwsp_reorder_at(reorder, link - 1)->fan.is_poisoned)) {
        is_done = workers->job.move_link(workers->job.link_user, link - 1, &result);
    }
    if (is_done) {
        pwsp_store_seq_cst(&workers->link, 0u);  // before the next one is ready
    }
    pwsp_store_release(&workers->is_moving, 0u);
    if (is_done) {
        own->kept = PWSP_WORKERS_NONE;
        pwsp_reorder_set_result(reorder, link - 1, result);
        pwsp_reorder_done(reorder, link - 1, own->lane.index);
        pwsp_sleeper_wake(&workers->walker, PWSP_SLEEPER_ALL);
        if (own->kept != PWSP_WORKERS_NONE) {
            pwsp_workers_give(workers, &own->lane, own->kept);
        }
    }
}

static void pwsp_workers_help(void *user, uint32_t ticket) {
    pwsp_workers *workers = (pwsp_workers *)user;
    const pwsp_engine *engine = &workers->engine;
    pwsp_workers_lane *own = pwsp_workers_at(workers, 0);
    pwsp_workers_move_link(workers, own);
    pwsp_workers_offer(workers, &own->lane);
    const uint32_t place = pwsp_engine_take(&workers->engine, &own->lane);
    if (place != PWSP_WORKERS_NONE) {
        const uint32_t next = pwsp_workers_run_task(workers, own, place);
        if (next != PWSP_WORKERS_NONE) {
            pwsp_workers_give(workers, &own->lane, next);
        }
        return;
    }
    uint32_t round = 0;
    do {
        pwsp_workers_move_link(workers, own);
        if (pwsp_reorder_ticket(workers->reorder) != ticket) {
            return;
        }
    } while (pwsp_spin(&round, engine->spin_count, engine->yield_count));
    if (pwsp_load_seq_cst(&workers->link)) {
        pwsp_nap(PWSP_ENGINE_NAP_NS);
        return;
    }
    pwsp_sleeper_begin(&workers->walker, PWSP_SLEEPER_ALL);
    pwsp_sleeper_end(&workers->walker, pwsp_reorder_ticket(workers->reorder) != ticket,
                     PWSP_WORKERS_WALK_NS);
}

// -- calls of the engine --------------------------------------------------------------------------

static uint32_t pwsp_workers_find(void *user, pwsp_engine_lane *lane) {
    pwsp_workers *workers = (pwsp_workers *)user;
    pwsp_workers_move_link(workers, (pwsp_workers_lane *)(void *)lane);
    return pwsp_engine_take(&workers->engine, lane);
}

static void pwsp_workers_run_chain(void *user, pwsp_engine_lane *lane, uint32_t place) {
    pwsp_workers *workers = (pwsp_workers *)user;
    pwsp_workers_lane *own = (pwsp_workers_lane *)(void *)lane;
    while ((place = pwsp_workers_run_task(workers, own, place)) != PWSP_WORKERS_NONE) {
        pwsp_workers_move_link(workers, own);
    }
}

static bool pwsp_workers_is_over(void *user, pwsp_engine_lane *lane) {
    (void)lane;
    return pwsp_load_seq_cst(&((pwsp_workers *)user)->is_over) != 0;
}

static pwsp_engine_more pwsp_workers_more(void *user, const pwsp_engine_lane *lane) {
    const pwsp_workers *workers = (const pwsp_workers *)user;
    (void)lane;
    return pwsp_load_seq_cst(&workers->is_over) ? PWSP_ENGINE_MORE
           : pwsp_load_seq_cst(&workers->link)  ? PWSP_ENGINE_UNANNOUNCED
                                                : PWSP_ENGINE_NOTHING;
}

static uint32_t pwsp_workers_group_of(void *user, uint32_t place, uint64_t *out_key) {
    (void)out_key;  // without priorities
    PTOWSP_ASSERT(PWSP_NO_HOME == PWSP_ENGINE_NONE);
    return pwsp_reorder_at(((pwsp_workers *)user)->reorder, place)->home;
}

// -- lanes ----------------------------------------------------------------------------------------

static void pwsp_workers_lane_main(void *user, uint32_t lane) {
    pwsp_workers *workers = (pwsp_workers *)user;
    uint32_t index = workers->is_numbered ? pwsp_fetch_add_seq_cst(&workers->come_count, 1u) : lane;
    if (index >= workers->engine.lane_count) {
        return;
    }
    if (index > 0) {
        pwsp_engine_work(&workers->engine, pwsp_engine_at(&workers->engine, index));
        return;
    }
    pwsp_executor executor = {pwsp_workers_ready, pwsp_workers_help, workers};
    workers->is_good = workers->job.issue(workers->job.issue_user, &executor);
    pwsp_store_seq_cst(&workers->is_over, 1u);
    pwsp_engine_wake(&workers->engine, true);
}

PWSP_INTERNAL bool pwsp_workers_run(pwsp_workers *workers, ptowsp_context *context,
                                    uint32_t lane_count, const pwsp_workers_job *job,
                                    bool *out_is_kept) {
    const pwsp_engine_job lanes = {
        workers,
        pwsp_workers_find,
        pwsp_workers_run_chain,
        pwsp_workers_is_over,
        pwsp_workers_more,
        pwsp_workers_group_of,
        {job->reorder->ring + offsetof(pwsp_entry, next), job->reorder->stride},
    };
    pwsp_engine *engine = &workers->engine;
    workers->reorder = job->reorder;
    workers->job = *job;
    workers->link = 0;
    workers->is_moving = 0;
    workers->is_numbered = pwsp_pool_is_user(context->pool);
    workers->is_good = true;
    workers->come_count = 0;
    workers->is_over = 0;
    engine->job = lanes;
    engine->spin_count = (pwsp_pool_spin_count(context->pool, lane_count) + 3) / 4;
    engine->yield_count = 2;
    pwsp_engine_begin(engine, job->is_homed ? PWSP_READY_BY_FIFO : PWSP_READY_BY_WORK_STEALING,
                      lane_count, 0);
    pwsp_engine_group_at(engine, 0)->come_count = 1;  // the walking lane is there
    for (uint32_t i = 0; i < lane_count; i++) {
        pwsp_workers_at(workers, i)->kept = PWSP_WORKERS_NONE;
    }
    *out_is_kept = pwsp_pool_run(context->pool, pwsp_workers_lane_main, workers);
    return workers->is_good;
}

// -- life -----------------------------------------------------------------------------------------

PWSP_INTERNAL pwsp_workers *pwsp_workers_create(const pwsp_memory *memory) {
    pwsp_workers *workers = (pwsp_workers *)pwsp_memory_alloc(memory, sizeof(pwsp_workers));
    if (workers) {
        workers->memory = *memory;
        pwsp_engine_init(&workers->engine, memory);
        pwsp_sleeper_init(&workers->walker);
    }
    return workers;
}

PWSP_INTERNAL bool pwsp_workers_reserve(pwsp_workers *workers, uint32_t lane_count) {
    return pwsp_engine_reserve(&workers->engine, lane_count, sizeof(pwsp_workers_lane));
}

PWSP_INTERNAL void pwsp_workers_destroy(pwsp_workers *workers) {
    if (!workers) {
        return;
    }
    pwsp_memory memory = workers->memory;
    pwsp_sleeper_destroy(&workers->walker);
    pwsp_engine_free(&workers->engine);
    pwsp_memory_free(&memory, workers, sizeof(pwsp_workers));
}

PWSP_INTERNAL size_t pwsp_workers_bytes(const pwsp_workers *workers) {
    return workers ? sizeof(pwsp_workers) + pwsp_engine_bytes(&workers->engine) : 0;
}
