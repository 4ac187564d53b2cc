// Ready tasks: who gets which. See engine.h.

#include "engine.h"

// -- lists ----------------------------------------------------------------------------------------

static uint32_t *pwsp_engine_link(const pwsp_engine *engine, uint32_t task) {
    return (uint32_t *)(void *)(engine->job.links + task * engine->job.link_stride);
}

// Appends tasks that are linked, without counting them. Of a group's list the lock is held.
PWSP_INLINE void pwsp_engine_append(const pwsp_engine *engine, pwsp_engine_list *list,
                                    uint32_t first, uint32_t last) {
    if (pwsp_load_relaxed(&list->count) == 0) {
        list->first = first;
    } else {
        *pwsp_engine_link(engine, list->last) = first;
    }
    list->last = last;
}

PWSP_INTERNAL void pwsp_engine_overflow(pwsp_engine *engine, pwsp_engine_lane *lane,
                                        uint32_t task) {
    const pwsp_engine_job *job = &engine->job;
    pwsp_engine_list *excess = &lane->excess;
    const bool is_listed = engine->policy->is_listed;
    // While some tasks are in excess, others follow them: a deque has room again when thieves take.
    if (PWSP_LIKELY(excess->count > 0 && !is_listed)) {
        *pwsp_engine_link(engine, excess->last) = task;
        excess->last = task;
        excess->count++;
        return;
    }
    if ((!is_listed || job->list_of(job->user, task) == PWSP_ENGINE_NONE) &&
        pwsp_deque_has_room(&lane->deque)) {
        pwsp_deque_push(&lane->deque, task);
        if (is_listed) {
            lane->deque.limit = lane->deque.bottom;  // so that each one comes here
        }
        return;
    }
    pwsp_engine_append(engine, excess, task, task);
    excess->count++;
}

// Moves the lane's excess to lists; returns how many tasks.
static uint32_t pwsp_engine_flush(pwsp_engine *engine, pwsp_engine_lane *lane) {
    const pwsp_engine_job *job = &engine->job;
    pwsp_engine_list *left = &lane->excess;
    const uint32_t count = left->count;
    while (left->count > 0) {
        pwsp_engine_list part = *left;
        uint32_t at = lane->group * PWSP_ENGINE_LEVELS;
        if (engine->policy->is_listed) {
            const uint32_t own = job->list_of(job->user, part.first);
            at = own == PWSP_ENGINE_NONE ? at : own;
            part.last = part.first;
            part.count = 1;
        }
        left->count -= part.count;
        left->first = left->count ? *pwsp_engine_link(engine, part.last) : 0;
        pwsp_engine_group *group = pwsp_engine_group_at(engine, at / PWSP_ENGINE_LEVELS);
        PTOWSP_ASSERT(at / PWSP_ENGINE_LEVELS < engine->group_count);
        pwsp_mutex_lock(&group->mutex);
        pwsp_engine_list *list = &group->lists[at % PWSP_ENGINE_LEVELS];
        pwsp_engine_append(engine, list, part.first, part.last);
        pwsp_fetch_add_seq_cst(&list->count, part.count);
        pwsp_mutex_unlock(&group->mutex);
    }
    return count;
}

// Takes the first `count` tasks of a list: returns the first, and pushes the others.
static uint32_t pwsp_engine_unlink(pwsp_engine *engine, pwsp_engine_lane *lane,
                                   pwsp_engine_list *list, uint32_t count) {
    uint32_t task = PWSP_ENGINE_NONE;
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0) {
            task = list->first;
        } else {
            pwsp_deque_push(&lane->deque, list->first);
        }
        list->first = *pwsp_engine_link(engine, list->first);
    }
    return task;
}

// Room in the lane's deque for tasks of a list, and for one that it runs at once.
static uint32_t pwsp_engine_room(const pwsp_engine *engine, pwsp_engine_lane *lane) {
    const uint32_t batch = engine->policy->batch;
    if (batch == 1 || !pwsp_deque_has_room(&lane->deque)) {
        return 1;
    }
    const uint32_t room = lane->deque.limit - lane->deque.bottom + 1;
    return room < batch ? room : batch;
}

// More is left than a lane takes: another one is woken, unless the keeper would not let it in.
static void pwsp_engine_leave(pwsp_engine *engine, bool has_more) {
    if (has_more && pwsp_load_relaxed(&engine->keeper) == 0) {
        pwsp_engine_wake(engine, false);
    }
}

// Half of a list at most, as far as the policy takes several.
static uint32_t pwsp_engine_take_from(pwsp_engine *engine, pwsp_engine_lane *lane, uint32_t group,
                                      uint32_t level) {
    pwsp_engine_group *from = pwsp_engine_group_at(engine, group);
    pwsp_engine_list *list = &from->lists[level];
    if (pwsp_load_relaxed(&list->count) == 0 || !pwsp_engine_may_take(engine, lane, group)) {
        return PWSP_ENGINE_NONE;
    }
    const uint32_t room = pwsp_engine_room(engine, lane);
    pwsp_mutex_lock(&from->mutex);
    const uint32_t there = pwsp_load_relaxed(&list->count), half = there - there / 2;
    const uint32_t count = half < room ? half : room;
    const uint32_t task = pwsp_engine_unlink(engine, lane, list, count);
    pwsp_fetch_sub_seq_cst(&list->count, count);
    pwsp_mutex_unlock(&from->mutex);
    pwsp_engine_leave(engine, count < there && !engine->policy->is_listed);
    return task;
}

static uint32_t pwsp_engine_take_listed(pwsp_engine *engine, pwsp_engine_lane *lane) {
    uint32_t task = PWSP_ENGINE_NONE;
    for (uint32_t level = PWSP_ENGINE_LEVELS; level-- > 0 && task == PWSP_ENGINE_NONE;) {
        for (uint32_t i = 0; i < engine->group_count && task == PWSP_ENGINE_NONE; i++) {
            const uint32_t group = (lane->group + i) % engine->group_count;
            task = pwsp_engine_take_from(engine, lane, group, level);
        }
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
    if (lane->excess.count == 0 || engine->policy->is_listed) {
        return PWSP_ENGINE_NONE;
    }
    const uint32_t room = pwsp_engine_room(engine, lane);
    const uint32_t count = lane->excess.count < room ? lane->excess.count : room;
    lane->excess.count -= count;
    return pwsp_engine_unlink(engine, lane, &lane->excess, count);
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
    const bool offers = engine->policy->is_oldest_first;
    const uint32_t first = lane->excess.first, count = pwsp_engine_flush(engine, lane);
    uint32_t task = offers ? pwsp_engine_steal(engine, lane, lane) : PWSP_ENGINE_NONE;
    task = task == PWSP_ENGINE_NONE ? pwsp_engine_take_listed(engine, lane) : task;
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
    for (uint32_t i = 0; i < engine->group_count; i++) {
        for (uint32_t level = 0; level < PWSP_ENGINE_LEVELS; level++) {
            if (pwsp_load_seq_cst(&pwsp_engine_group_at(engine, i)->lists[level].count) > 0 &&
                pwsp_engine_may_take(engine, lane, i)) {
                return true;
            }
        }
    }
    for (uint32_t i = 0; i < engine->lane_count; i++) {
        const pwsp_engine_lane *other = pwsp_engine_at(engine, i);
        if (pwsp_deque_offers(pwsp_load_seq_cst(&other->deque.word))) {
            return true;
        }
    }
    return false;
}
