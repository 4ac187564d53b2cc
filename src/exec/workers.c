// The workers: lanes that run ready tasks.
//
// Lane 0 walks the program, and runs tasks itself when it has to wait. A lane runs the first task that
// it makes ready next; others, and those that the walk finds ready, go to the lane's deque (deque.h),
// from which all lanes take, the oldest first. A lane without tasks takes half of what another lane
// offers. So a task costs no lock, and one or two atomic operations to change hands:
//
//      a lane      offers all it has at once, as it cannot know how long its next task takes
//      the walk    offers what it has when nothing is on offer, when lanes sleep, when it has
//                  PWSP_WORKERS_HOLD_MAX tasks, and before it helps
//
// Queues. Each lane has one under a lock, oldest first, linked through entries. Tasks for which a deque
// has no room go there, up to PWSP_WORKERS_LIST_MAX at a time, and all behind them, until lanes have
// taken them, as many at a time. Where dispatch chooses the lane, tasks go to its queue one by one, and
// another lane takes from there only while that lane has not arrived (with your executor, or when
// threads wake late).
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
// lanes share a processor, because others are busy, what it waits for may be behind it. (With pauses
// of 20 us alone tasks of 1 us took 1.7 times as long there as without lanes, and take 1.1 to 1.2
// times. A lane that gives way more often waits behind all other threads each time.) Then it sleeps
// (see sleeper.h) until a task is offered: that changes the word of a deque, or the count of a queue.
// The walking lane sleeps until done_count has changed; it offers what it has before. Other lanes add
// tasks before that change, so these additions need not wake it. A lane in a chain lets it sleep, as
// there is nothing to do but retire finished tasks (pwsp_workers_may_be_quiet). So it sleeps for 500 us at most.

#include "workers.h"

#include "../base/sleeper.h"
#include "../engine/deque.h"

#define PWSP_WORKERS_NONE      UINT32_MAX
#define PWSP_WORKERS_NAP_NS    50000
#define PWSP_WORKERS_WALK_NS   500000
#define PWSP_WORKERS_HOLD_MAX  8u
#define PWSP_WORKERS_LIST_MAX  64u
#define PWSP_WORKERS_STEAL_MAX 64u

// Ready tasks, linked through their entries.
typedef struct pwsp_workers_list {
    uint32_t first, last;  // places, if there are any
    uint32_t count;        // of a queue: atomic, changed under the lock
} pwsp_workers_list;

typedef struct pwsp_workers_lane {
    pwsp_mutex mutex;  // protects the queue
    pwsp_workers_list queue;
    uint32_t has_come;  // atomic
    char padding[PWSP_FALSE_SHARING];
    uint32_t kept;             // the lane's next task, or PWSP_WORKERS_NONE
    pwsp_workers_list excess;  // that goes to the queue
    pwsp_deque deque;          // of places
    char padding_after[PWSP_FALSE_SHARING];
} pwsp_workers_lane;

struct pwsp_workers {
    pwsp_memory memory;
    pwsp_reorder *reorder;  // of this run
    pwsp_workers_job job;
    pwsp_workers_lane *lanes;
    uint32_t lane_capacity;
    uint32_t lane_count;
    uint32_t spin_count;
    bool is_numbered;  // in order of arrival
    bool is_good;
    pwsp_sleepers sleepers;
    pwsp_sleeper walker;
    char padding[PWSP_FALSE_SHARING];
    uint32_t come_count;  // atomic
    uint32_t is_over;     // atomic
    uint32_t link;        // atomic: the place of the task that communicates + 1, or 0
    uint32_t is_moving;   // atomic: a lane moves it on
};

// -- queues ---------------------------------------------------------------------------------------

static void pwsp_workers_enqueue(pwsp_workers *workers, uint32_t index,
                                 const pwsp_workers_list *list) {
    pwsp_workers_lane *lane = &workers->lanes[index];
    pwsp_workers_list *queue = &lane->queue;
    PTOWSP_ASSERT(index < workers->lane_count && list->count > 0);
    pwsp_mutex_lock(&lane->mutex);
    if (pwsp_load_relaxed(&queue->count) == 0) {
        queue->first = list->first;
    } else {
        pwsp_reorder_at(workers->reorder, queue->last)->next = list->first;
    }
    queue->last = list->last;
    pwsp_fetch_add_seq_cst(&queue->count, list->count);
    pwsp_mutex_unlock(&lane->mutex);
    pwsp_sleepers_wake(&workers->sleepers, workers->job.is_homed);
}

// The oldest of a queue, or PWSP_WORKERS_NONE. Without homes half of the queue goes to the deque of the
// calling lane, which is empty.
static uint32_t pwsp_workers_dequeue(pwsp_workers *workers, pwsp_workers_list *queue,
                                     pwsp_mutex *mutex, pwsp_deque *deque) {
    if (pwsp_load_relaxed(&queue->count) == 0) {
        return PWSP_WORKERS_NONE;
    }
    bool has_room = pwsp_deque_has_room(deque);
    PTOWSP_ASSERT(has_room && deque->limit - deque->bottom >= PWSP_WORKERS_LIST_MAX);
    (void)has_room;
    pwsp_mutex_lock(mutex);
    uint32_t count = pwsp_load_relaxed(&queue->count), place = PWSP_WORKERS_NONE;
    count = workers->job.is_homed && count ? 1 : count - count / 2;
    count = count < PWSP_WORKERS_LIST_MAX ? count : PWSP_WORKERS_LIST_MAX;
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0) {
            place = queue->first;
        } else {
            pwsp_deque_push(deque, queue->first);
        }
        queue->first = pwsp_reorder_at(workers->reorder, queue->first)->next;
    }
    pwsp_fetch_sub_seq_cst(&queue->count, count);
    pwsp_mutex_unlock(mutex);
    return place;
}

// May a lane take tasks from another lane's queue?
static bool pwsp_workers_may_take(const pwsp_workers *workers, uint32_t index, uint32_t other) {
    return index == other || !workers->job.is_homed ||
           !pwsp_load_seq_cst(&workers->lanes[other].has_come);
}

// -- deques ---------------------------------------------------------------------------------------

// Offers all that the calling lane has.
static void pwsp_workers_offer(pwsp_workers *workers, uint32_t index) {
    pwsp_workers_lane *lane = &workers->lanes[index];
    uint32_t held = pwsp_deque_held(&lane->deque);
    if (held > 0) {
        pwsp_deque_publish(&lane->deque, held);
        pwsp_sleepers_wake(&workers->sleepers, false);
    }
    if (lane->excess.count > 0) {
        pwsp_workers_enqueue(workers, index, &lane->excess);
        lane->excess.count = 0;
    }
}

// Gives a ready task to its home, or to the calling lane, which does not offer it yet.
static void pwsp_workers_push(pwsp_workers *workers, uint32_t index, uint32_t place) {
    pwsp_workers_lane *lane = &workers->lanes[index];
    pwsp_workers_list *excess = &lane->excess;
    pwsp_deque *deque = &lane->deque;
    pwsp_entry *entry = pwsp_reorder_at(workers->reorder, place);
    PTOWSP_ASSERT(index < workers->lane_count && place <= workers->reorder->place_mask);
    if (entry->home != PWSP_NO_HOME) {
        const pwsp_workers_list one = {place, place, 1};
        pwsp_workers_enqueue(workers, entry->home, &one);
    } else if (excess->count == 0 && pwsp_load_relaxed(&lane->queue.count) == 0 &&
               (deque->bottom != deque->limit || pwsp_deque_has_room(deque))) {
        pwsp_deque_push(deque, place);
    } else {
        if (excess->count == 0) {
            excess->first = place;
        } else {
            pwsp_reorder_at(workers->reorder, excess->last)->next = place;
        }
        excess->last = place;
        excess->count++;
    }
}

// The same, and offers it.
static void pwsp_workers_give(pwsp_workers *workers, uint32_t index, uint32_t place) {
    pwsp_workers_push(workers, index, place);
    pwsp_workers_offer(workers, index);
}

// Should the walk offer what it has? Rarely: each time costs an atomic operation, or a lock.
static bool pwsp_workers_has_enough(const pwsp_workers *workers) {
    const pwsp_workers_lane *lane = &workers->lanes[0];
    return pwsp_deque_held(&lane->deque) >= PWSP_WORKERS_HOLD_MAX ||
           lane->excess.count >= PWSP_WORKERS_LIST_MAX ||
           pwsp_deque_offers(pwsp_load_relaxed(&lane->deque.word)) == 0 ||
           pwsp_sleepers_are(&workers->sleepers);
}

// The oldest task of a lane's own deque, or some of another's, of which all but one go to its own.
static uint32_t pwsp_workers_steal(pwsp_workers *workers, uint32_t index, uint32_t other) {
    uint32_t tasks[PWSP_WORKERS_STEAL_MAX];
    uint32_t most = index == other ? 1 : PWSP_WORKERS_STEAL_MAX;
    pwsp_deque *deque = &workers->lanes[other].deque;
    uint32_t count = pwsp_deque_steal(deque, most, tasks);
    if (count == 0) {
        return PWSP_WORKERS_NONE;
    }
    for (uint32_t i = 1; i < count; i++) {
        pwsp_workers_push(workers, index, tasks[i]);
    }
    if (index != other && pwsp_deque_offers(pwsp_load_relaxed(&deque->word)) > 0) {
        pwsp_sleepers_wake(&workers->sleepers, false);  // more is left than this lane takes
    }
    return tasks[0];
}

// The next task of a lane: its own, or another's. What else it has is offered.
static uint32_t pwsp_workers_take(pwsp_workers *workers, uint32_t index) {
    uint32_t place = PWSP_WORKERS_NONE;
    pwsp_workers_offer(workers, index);
    for (uint32_t i = 0; i < workers->lane_count && place == PWSP_WORKERS_NONE; i++) {
        uint32_t other =
            index + i < workers->lane_count ? index + i : index + i - workers->lane_count;
        pwsp_workers_lane *lane = &workers->lanes[other];
        place = pwsp_workers_steal(workers, index, other);
        if (place == PWSP_WORKERS_NONE && pwsp_workers_may_take(workers, index, other)) {
            place = pwsp_workers_dequeue(workers, &lane->queue, &lane->mutex,
                                         &workers->lanes[index].deque);
        }
    }
    pwsp_workers_offer(workers, index);
    return place;
}

static bool pwsp_workers_has_work(const pwsp_workers *workers, uint32_t index) {
    for (uint32_t i = 0; i < workers->lane_count; i++) {
        if (pwsp_deque_offers(pwsp_load_seq_cst(&workers->lanes[i].deque.word)) ||
            (pwsp_load_seq_cst(&workers->lanes[i].queue.count) &&
             pwsp_workers_may_take(workers, index, i))) {
            return true;
        }
    }
    return false;
}

// -- the executor ---------------------------------------------------------------------------------

static void pwsp_workers_ready(void *user, uint32_t by, uint32_t place) {
    pwsp_workers *workers = (pwsp_workers *)user;
    const pwsp_entry *entry = pwsp_reorder_at(workers->reorder, place);
    // One that does not run, as there was no memory to have it wait, is only passed over: another may be
    // under way.
    if (entry->kind == PWSP_ENTRY_TASK && entry->unit == PTOWSP_UNIT_LINK &&
        !pwsp_load_relaxed(&entry->fan.is_poisoned)) {
        PTOWSP_ASSERT(workers->job.move_link && !pwsp_load_relaxed(&workers->link));
        pwsp_store_seq_cst(&workers->link, place + 1);
        pwsp_sleepers_wake(&workers->sleepers, false);
        return;
    }
    if (by == PWSP_BY_WALK) {
        pwsp_workers_push(workers, 0, place);
        if (pwsp_workers_has_enough(workers)) {
            pwsp_workers_offer(workers, 0);
        }
    } else if ((entry->home == PWSP_NO_HOME || entry->home == by) &&
               workers->lanes[by].kept == PWSP_WORKERS_NONE) {
        workers->lanes[by].kept = place;
    } else {
        pwsp_workers_give(workers, by, place);
    }
}

// May a lane let the walking one sleep? In a chain there is nothing for it but to retire the task, and
// waking it takes as long as a task of some us. It wakes by itself after PWSP_WORKERS_WALK_NS, so that
// it issues what there is room for even if the next task is a long one.
static bool pwsp_workers_may_be_quiet(const pwsp_workers *workers, const pwsp_workers_lane *lane) {
    return lane->kept != PWSP_WORKERS_NONE && pwsp_load_relaxed(&workers->walker.asleep) &&
           !pwsp_load_relaxed(&workers->link) && !pwsp_workers_has_work(workers, 0);
}

// Runs a task; returns the one that it has made ready, or PWSP_WORKERS_NONE.
static uint32_t pwsp_workers_run_task(pwsp_workers *workers, uint32_t index, uint32_t place) {
    pwsp_reorder *reorder = workers->reorder;
    pwsp_workers_lane *lane = &workers->lanes[index];
    lane->kept = PWSP_WORKERS_NONE;
    pwsp_reorder_run(reorder, place, index);
    pwsp_reorder_done(reorder, place, index);
    if (!pwsp_workers_may_be_quiet(workers, lane)) {
        pwsp_sleeper_wake(&workers->walker, PWSP_SLEEPER_ALL);
    }
    return lane->kept;
}

// Moves the task that communicates on, if there is one and no other lane does.
static void pwsp_workers_move_link(pwsp_workers *workers, uint32_t index) {
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
        pwsp_workers_lane *lane = &workers->lanes[index];
        lane->kept = PWSP_WORKERS_NONE;
        pwsp_reorder_set_result(reorder, link - 1, result);
        pwsp_reorder_done(reorder, link - 1, index);
        pwsp_sleeper_wake(&workers->walker, PWSP_SLEEPER_ALL);
        if (lane->kept != PWSP_WORKERS_NONE) {
            pwsp_workers_give(workers, index, lane->kept);
        }
    }
}

// Waits a little; false when it is time to sleep.
static bool pwsp_workers_spin(const pwsp_workers *workers, uint32_t *round) {
    return pwsp_spin(round, (workers->spin_count + 3) / 4, 2);
}

static void pwsp_workers_help(void *user, uint32_t ticket) {
    pwsp_workers *workers = (pwsp_workers *)user;
    const pwsp_reorder *reorder = workers->reorder;
    pwsp_workers_move_link(workers, 0);
    const uint32_t place = pwsp_workers_take(workers, 0);
    if (place != PWSP_WORKERS_NONE) {
        const uint32_t next = pwsp_workers_run_task(workers, 0, place);
        if (next != PWSP_WORKERS_NONE) {
            pwsp_workers_give(workers, 0, next);
        }
        return;
    }
    uint32_t round = 0;
    do {
        pwsp_workers_move_link(workers, 0);
        if (pwsp_reorder_ticket(reorder) != ticket) {
            return;
        }
    } while (pwsp_workers_spin(workers, &round));
    if (pwsp_load_seq_cst(&workers->link)) {
        pwsp_nap(PWSP_WORKERS_NAP_NS);
        return;
    }
    pwsp_sleeper_begin(&workers->walker, PWSP_SLEEPER_ALL);
    pwsp_sleeper_end(&workers->walker, pwsp_reorder_ticket(reorder) != ticket,
                     PWSP_WORKERS_WALK_NS);
}

// -- lanes ----------------------------------------------------------------------------------------

static void pwsp_workers_sleep(pwsp_workers *workers, uint32_t index) {
    pwsp_sleepers_begin(&workers->sleepers);
    bool is_over = pwsp_load_seq_cst(&workers->is_over) != 0;
    bool has_link = pwsp_load_seq_cst(&workers->link) != 0;
    pwsp_sleepers_end(&workers->sleepers,
                      is_over || has_link || pwsp_workers_has_work(workers, index));
}

static void pwsp_workers_work(pwsp_workers *workers, uint32_t index) {
    uint32_t idle = 0, next = PWSP_WORKERS_NONE;
    bool is_awake = true;
    pwsp_store_seq_cst(&workers->lanes[index].has_come, 1u);
    while (!pwsp_load_seq_cst(&workers->is_over)) {
        pwsp_workers_move_link(workers, index);
        uint32_t place = next != PWSP_WORKERS_NONE ? next : pwsp_workers_take(workers, index);
        if (place != PWSP_WORKERS_NONE) {
            next = pwsp_workers_run_task(workers, index, place);
            idle = 0;
        } else if (is_awake && pwsp_workers_spin(workers, &idle)) {
            continue;
        } else if (pwsp_load_seq_cst(&workers->link)) {
            pwsp_nap(PWSP_WORKERS_NAP_NS);
        } else {
            pwsp_workers_sleep(workers, index);
        }
        is_awake = place != PWSP_WORKERS_NONE;  // else it sleeps until there is work
    }
}

static void pwsp_workers_lane_main(void *user, uint32_t lane) {
    pwsp_workers *workers = (pwsp_workers *)user;
    uint32_t index = workers->is_numbered ? pwsp_fetch_add_seq_cst(&workers->come_count, 1u) : lane;
    if (index >= workers->lane_count) {
        return;
    }
    if (index > 0) {
        pwsp_workers_work(workers, index);
        return;
    }
    pwsp_executor executor = {pwsp_workers_ready, pwsp_workers_help, workers};
    workers->is_good = workers->job.issue(workers->job.issue_user, &executor);
    pwsp_store_seq_cst(&workers->is_over, 1u);
    pwsp_sleepers_wake(&workers->sleepers, true);
}

PWSP_INTERNAL bool pwsp_workers_run(pwsp_workers *workers, ptowsp_context *context,
                                    uint32_t lane_count, const pwsp_workers_job *job,
                                    bool *out_is_kept) {
    PTOWSP_ASSERT(lane_count > 0 && lane_count <= workers->lane_capacity);
    workers->reorder = job->reorder;
    workers->job = *job;
    workers->link = 0;
    workers->is_moving = 0;
    workers->lane_count = lane_count;
    workers->spin_count = pwsp_pool_spin_count(context->pool, lane_count);
    workers->is_numbered = pwsp_pool_is_user(context->pool);
    workers->is_good = true;
    workers->come_count = 0;
    workers->is_over = 0;
    for (uint32_t i = 0; i < lane_count; i++) {
        pwsp_workers_lane *lane = &workers->lanes[i];
        lane->queue.count = 0;
        lane->excess.count = 0;
        lane->kept = PWSP_WORKERS_NONE;
        lane->has_come = i == 0;
        pwsp_deque_reset(&lane->deque);
    }
    *out_is_kept = pwsp_pool_run(context->pool, pwsp_workers_lane_main, workers);
    return workers->is_good;
}

// -- life -----------------------------------------------------------------------------------------

PWSP_INTERNAL pwsp_workers *pwsp_workers_create(const pwsp_memory *memory) {
    pwsp_workers *workers = (pwsp_workers *)pwsp_memory_alloc(memory, sizeof(pwsp_workers));
    if (workers) {
        workers->memory = *memory;
        pwsp_sleepers_init(&workers->sleepers);
        pwsp_sleeper_init(&workers->walker);
    }
    return workers;
}

PWSP_INTERNAL bool pwsp_workers_reserve(pwsp_workers *workers, uint32_t lane_count) {
    if (lane_count <= workers->lane_capacity) {
        return true;
    }
    pwsp_workers_lane *lanes = (pwsp_workers_lane *)pwsp_memory_alloc(
        &workers->memory, lane_count * sizeof(pwsp_workers_lane));
    if (!lanes) {
        return false;
    }
    for (uint32_t i = 0; i < workers->lane_capacity; i++) {  // mutexes are not moved
        pwsp_mutex_destroy(&workers->lanes[i].mutex);
    }
    pwsp_memory_free(&workers->memory, workers->lanes,
                     (size_t)workers->lane_capacity * sizeof(pwsp_workers_lane));
    for (uint32_t i = 0; i < lane_count; i++) {
        pwsp_mutex_init(&lanes[i].mutex);
    }
    workers->lanes = lanes;
    workers->lane_capacity = lane_count;
    return true;
}

PWSP_INTERNAL void pwsp_workers_destroy(pwsp_workers *workers) {
    if (!workers) {
        return;
    }
    pwsp_memory memory = workers->memory;
    for (uint32_t i = 0; i < workers->lane_capacity; i++) {
        pwsp_mutex_destroy(&workers->lanes[i].mutex);
    }
    pwsp_memory_free(&memory, workers->lanes,
                     (size_t)workers->lane_capacity * sizeof(pwsp_workers_lane));
    pwsp_sleeper_destroy(&workers->walker);
    pwsp_sleepers_destroy(&workers->sleepers);
    pwsp_memory_free(&memory, workers, sizeof(pwsp_workers));
}

PWSP_INTERNAL size_t pwsp_workers_bytes(const pwsp_workers *workers) {
    return workers
               ? sizeof(pwsp_workers) + (size_t)workers->lane_capacity * sizeof(pwsp_workers_lane)
               : 0;
}
