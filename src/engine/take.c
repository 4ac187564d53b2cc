// Ready tasks: who gets which. See engine.h.

#include "engine.h"

// -- queues ---------------------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_engine_overflow(pwsp_engine *engine, pwsp_engine_lane *lane,
                                        uint32_t task) {
    const pwsp_engine_job *job = &engine->job;
    const bool steals = engine->policy.steals;
    uint64_t key;
    // While some tasks are in excess, others follow them: a deque has room again when thieves take.
    if ((steals ? lane->excess_count == 0
                : job->group_of(job->user, task, &key) == PWSP_ENGINE_NONE) &&
        pwsp_deque_has_room(&lane->deque)) {
        pwsp_deque_push(&lane->deque, task);
        if (!steals) {
            lane->deque.limit = lane->deque.bottom;  // so that each one comes here
        }
        return;
    }
    pwsp_ready_append(&lane->excess, job->links, task);
    lane->excess_count++;
}

// Under the lock: tasks have been put into the queue of a group, or taken out.
static void pwsp_engine_note_first(const pwsp_engine *engine, pwsp_engine_group *group) {
    const uint32_t first = pwsp_ready_first(&group->queue, engine->job.links);
    pwsp_store_seq_cst(&group->first_key, first == PWSP_ENGINE_NONE ? PWSP_ENGINE_EMPTY
                                          : engine->policy.has_priority
                                              ? pwsp_ready_at(engine->job.links, first)->key
                                              : 0);
}

// Moves the lane's excess to queues: with stealing at once, as it is, else task by task. Returns how many.
static uint32_t pwsp_engine_flush(pwsp_engine *engine, pwsp_engine_lane *lane) {
    const pwsp_engine_job *job = &engine->job;
    const uint32_t count = lane->excess_count, step = engine->policy.steals ? count : 1;
    while (lane->excess_count > 0) {
        uint64_t key = 0;
        uint32_t to =
            engine->policy.steals ? lane->group : job->group_of(job->user, lane->excess.head, &key);
        to = to == PWSP_ENGINE_NONE ? lane->group : to;
        PTOWSP_ASSERT(to < engine->group_count);
        pwsp_engine_group *group = pwsp_engine_group_at(engine, to);
        pwsp_mutex_lock(&group->mutex);
        if (engine->policy.steals) {
            pwsp_ready_append_all(&group->queue, job->links, &lane->excess);
        } else {
            const uint32_t task = pwsp_ready_pop(&lane->excess, job->links);
            if (engine->policy.has_priority) {
                pwsp_ready_link *link = pwsp_ready_at(job->links, task);
                link->key = key;
                link->number = group->number++;
                pwsp_ready_push(&group->queue, job->links, task);
            } else {
                pwsp_ready_append(&group->queue, job->links, task);
            }
        }
        lane->excess_count -= step;
        group->count += step;
        pwsp_engine_note_first(engine, group);
        pwsp_mutex_unlock(&group->mutex);
    }
    return count;
}

// Takes the first `count` tasks of a queue: returns the first, and pushes the others.
static uint32_t pwsp_engine_pop(const pwsp_engine *engine, pwsp_engine_lane *lane,
                                pwsp_ready_queue *queue, uint32_t count) {
    const uint32_t task = count > 0 ? pwsp_ready_pop(queue, engine->job.links) : PWSP_ENGINE_NONE;
    for (uint32_t i = 1; i < count; i++) {
        pwsp_deque_push(&lane->deque, pwsp_ready_pop(queue, engine->job.links));
    }
    return task;
}

// Room in the lane's deque for tasks of a queue, and for one that it runs at once.
static uint32_t pwsp_engine_room(const pwsp_engine *engine, pwsp_engine_lane *lane) {
    if (!engine->policy.steals || !pwsp_deque_has_room(&lane->deque)) {
        return 1;
    }
    const uint32_t room = lane->deque.limit - lane->deque.bottom + 1;
    return room < PWSP_ENGINE_BATCH ? room : PWSP_ENGINE_BATCH;
}

// More is left than a lane takes: another one is woken, unless the keeper would not let it in.
static void pwsp_engine_leave(pwsp_engine *engine, bool has_more) {
    if (has_more && pwsp_load_relaxed(&engine->keeper) == 0) {
        pwsp_engine_wake(engine, false);
    }
}

// The first task of a queue, or half of it at most, as far as the policy takes several.
static uint32_t pwsp_engine_take_from(pwsp_engine *engine, pwsp_engine_lane *lane,
                                      pwsp_engine_group *from) {
    const uint32_t room = pwsp_engine_room(engine, lane);
    pwsp_mutex_lock(&from->mutex);
    const uint64_t there = from->count;
    const uint32_t count = (uint32_t)pwsp_min_u64(there - there / 2, room);
    const uint32_t task = pwsp_engine_pop(engine, lane, &from->queue, count);
    from->count -= count;
    pwsp_engine_note_first(engine, from);
    pwsp_mutex_unlock(&from->mutex);
    pwsp_engine_leave(engine, count < there && engine->policy.steals);
    return task;
}

// The group whose queue has the best first task that the lane may take, or NULL; its own among equals.
static pwsp_engine_group *pwsp_engine_best(const pwsp_engine *engine,
                                           const pwsp_engine_lane *lane) {
    pwsp_engine_group *best = NULL;
    uint64_t best_key = PWSP_ENGINE_EMPTY;
    for (uint32_t i = 0; i < engine->group_count; i++) {
        const uint32_t index = (lane->group + i) % engine->group_count;
        pwsp_engine_group *group = pwsp_engine_group_at(engine, index);
        const uint64_t key = pwsp_load_seq_cst(&group->first_key);
        if (key < best_key && pwsp_engine_may_take(engine, lane, index)) {
            best_key = key;
            best = group;
        }
    }
    return best;
}

static uint32_t pwsp_engine_take_queued(pwsp_engine *engine, pwsp_engine_lane *lane) {
    uint32_t task = PWSP_ENGINE_NONE;
    pwsp_engine_group *from;
    while (task == PWSP_ENGINE_NONE && (from = pwsp_engine_best(engine, lane)) != NULL) {
        task = pwsp_engine_take_from(engine, lane, from);  // none: another lane was faster
    }
    return task;
}

PWSP_INTERNAL bool pwsp_engine_may_take(const pwsp_engine *engine, const pwsp_engine_lane *lane,
                                        uint32_t group) {
    return group == lane->group ||
           pwsp_load_seq_cst(&pwsp_engine_group_at(engine, group)->come_count) == 0;
}

// -- deques ---------------------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_engine_offer(pwsp_engine *engine, pwsp_engine_lane *lane, uint32_t count) {
    if (count > 0) {
        pwsp_deque_publish(&lane->deque, count);
    }
    if (pwsp_engine_flush(engine, lane) + count > 0) {
        pwsp_engine_wake(engine, false);
    }
}

PWSP_INTERNAL uint32_t pwsp_engine_own(pwsp_engine *engine, pwsp_engine_lane *lane, uint32_t grab) {
    if (pwsp_deque_held(&lane->deque) > 0 || pwsp_deque_reclaim(&lane->deque, grab) > 0) {
        return pwsp_deque_pop(&lane->deque);
    }
    if (lane->excess_count == 0 || !engine->policy.steals) {
        return PWSP_ENGINE_NONE;
    }
    const uint32_t room = pwsp_engine_room(engine, lane);
    const uint32_t count = lane->excess_count < room ? lane->excess_count : room;
    lane->excess_count -= count;
    return pwsp_engine_pop(engine, lane, &lane->excess, count);
}

// The oldest task that a lane offers. Several may be taken: the others go to the calling lane.
static uint32_t pwsp_engine_steal(pwsp_engine *engine, pwsp_engine_lane *lane,
                                  pwsp_engine_lane *victim) {
    uint32_t tasks[PWSP_ENGINE_BATCH];
    const uint32_t most = lane == victim ? 1 : PWSP_ENGINE_BATCH;
    const uint32_t count = pwsp_deque_steal(&victim->deque, most, tasks);
    if (count == 0) {
        return PWSP_ENGINE_NONE;
    }
    for (uint32_t i = 1; i < count; i++) {
        pwsp_engine_push(engine, lane, tasks[i]);
    }
    if (lane != victim) {
        lane->steal_count += count;
        pwsp_engine_leave(engine, pwsp_deque_offers(pwsp_load_relaxed(&victim->deque.word)) > 0);
    }
    return tasks[0];
}

PWSP_INTERNAL uint32_t pwsp_engine_take(pwsp_engine *engine, pwsp_engine_lane *lane) {
    const bool offers = !engine->policy.is_newest_first;  // all that it has, oldest first
    const uint32_t first = lane->excess.head, count = pwsp_engine_flush(engine, lane);
    uint32_t task = offers ? pwsp_engine_steal(engine, lane, lane) : PWSP_ENGINE_NONE;
    task = task == PWSP_ENGINE_NONE ? pwsp_engine_take_queued(engine, lane) : task;
    for (uint32_t i = 1; i < engine->lane_count && task == PWSP_ENGINE_NONE; i++) {
        const uint32_t other = (lane->index + i) % engine->lane_count;
        task = pwsp_engine_steal(engine, lane, pwsp_engine_at(engine, other));
    }
    if (offers) {
        pwsp_engine_offer(engine, lane, pwsp_deque_held(&lane->deque));
    }
    if (count > 1 || (count == 1 && task != first)) {
        pwsp_engine_wake(engine, false);
    }
    return task;
}

PWSP_INTERNAL bool pwsp_engine_has_work(const pwsp_engine *engine, const pwsp_engine_lane *lane) {
    if (pwsp_engine_best(engine, lane)) {
        return true;
    }
    for (uint32_t i = 0; i < engine->lane_count; i++) {
        const pwsp_engine_lane *other = pwsp_engine_at(engine, i);
        if (pwsp_deque_offers(pwsp_load_seq_cst(&other->deque.word))) {
            return true;
        }
    }
    return false;
}
