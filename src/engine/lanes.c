// Lanes: running tasks, sleeping, waking, and their memory. See engine.h.

#include "engine.h"

// -- running --------------------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_engine_rouse(pwsp_engine *engine, bool all) {
    pwsp_mutex_lock(&engine->sleepers.mutex);
    // one might be a lane that is not let in, or not of the task's group
    all = all || !engine->policy.steals || pwsp_load_seq_cst(&engine->keeper) != 0;
    pwsp_sleepers_call(&engine->sleepers, all);
    pwsp_mutex_unlock(&engine->sleepers.mutex);
}

// Is there something for a lane without tasks?
static pwsp_engine_more pwsp_engine_look(const pwsp_engine *engine, const pwsp_engine_lane *lane) {
    const pwsp_engine_more more = engine->job.more(engine->job.user, lane);
    return more == PWSP_ENGINE_NOTHING && pwsp_engine_is_let_in(engine, lane) &&
                   pwsp_engine_has_work(engine, lane)
               ? PWSP_ENGINE_MORE
               : more;
}

static void pwsp_engine_sleep(pwsp_engine *engine, const pwsp_engine_lane *lane) {
    pwsp_sleepers_begin(&engine->sleepers);
    pwsp_sleepers_end(&engine->sleepers, pwsp_engine_look(engine, lane) != PWSP_ENGINE_NOTHING);
}

PWSP_INTERNAL void pwsp_engine_work(pwsp_engine *engine, pwsp_engine_lane *lane) {
    const pwsp_engine_job *job = &engine->job;
    uint32_t round = 0;
    bool is_awake = true;
    pwsp_fetch_add_seq_cst(&pwsp_engine_group_at(engine, lane->group)->come_count, 1u);
    for (;;) {
        const pwsp_engine_more more = pwsp_engine_look(engine, lane);
        const uint32_t task =
            more == PWSP_ENGINE_NOTHING ? PWSP_ENGINE_NONE : job->find(job->user, lane);
        if (task != PWSP_ENGINE_NONE) {
            job->run(job->user, lane, task);
            round = 0;
            is_awake = true;
        } else if (job->is_over(job->user, lane)) {
            return;
        } else if (is_awake && pwsp_spin(&round, engine->spin_count, engine->yield_count)) {
            continue;
        } else {
            is_awake = false;  // until it has found something
            if (more == PWSP_ENGINE_UNANNOUNCED) {
                pwsp_nap(PWSP_ENGINE_NAP_NS);
            } else {
                pwsp_engine_sleep(engine, lane);
            }
        }
    }
}

// -- life -----------------------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_engine_init(pwsp_engine *engine, const pwsp_memory *memory) {
    memset(engine, 0, sizeof *engine);
    engine->memory = *memory;
    pwsp_sleepers_init(&engine->sleepers);
}

PWSP_INTERNAL size_t pwsp_engine_bytes(const pwsp_engine *engine) {
    return engine->lane_capacity * engine->lane_stride;
}

static void pwsp_engine_free_lanes(pwsp_engine *engine) {
    for (uint32_t i = 0; i < engine->lane_capacity; i++) {
        pwsp_mutex_destroy(&pwsp_engine_group_at(engine, i)->mutex);
    }
    pwsp_memory_free(&engine->memory, engine->lanes, pwsp_engine_bytes(engine));
    engine->lanes = NULL;
    engine->lane_capacity = 0;
}

PWSP_INTERNAL void pwsp_engine_free(pwsp_engine *engine) {
    pwsp_engine_free_lanes(engine);
    pwsp_sleepers_destroy(&engine->sleepers);
}

PWSP_INTERNAL bool pwsp_engine_reserve(pwsp_engine *engine, uint32_t lane_count, size_t lane_size) {
    if (lane_count <= engine->lane_capacity) {
        return true;
    }
    pwsp_engine_free_lanes(engine);                // mutexes are not moved
    lane_count = lane_count > 2 ? lane_count : 2;  // with as many groups
    engine->lanes = (char *)pwsp_memory_alloc(&engine->memory, lane_count * lane_size);
    engine->lane_capacity = engine->lanes ? lane_count : 0;
    engine->lane_stride = lane_size;
    for (uint32_t i = 0; i < engine->lane_capacity; i++) {
        pwsp_mutex_init(&pwsp_engine_group_at(engine, i)->mutex);
    }
    return engine->lanes != NULL;
}

PWSP_INTERNAL void pwsp_engine_begin(pwsp_engine *engine, pwsp_ready ready, uint32_t lane_count,
                                     uint32_t cube_count) {
    const pwsp_ready_policy policy = pwsp_ready_policy_of(ready);
    PTOWSP_ASSERT(lane_count > 0 && lane_count <= engine->lane_capacity);
    engine->policy = policy;
    engine->lane_count = lane_count;
    engine->group_count = policy.steals ? 1 : policy.has_priority ? 2 : lane_count;
    engine->keeper = 0;
    for (uint32_t i = 0; i < engine->lane_capacity; i++) {
        pwsp_engine_lane *lane = pwsp_engine_at(engine, i);
        pwsp_engine_group *group = &lane->with_index;
        pwsp_ready_init(&group->queue);
        group->count = group->number = 0;
        group->first_key = PWSP_ENGINE_EMPTY;
        group->come_count = 0;
        lane->index = i;
        lane->group = policy.steals ? 0 : policy.has_priority ? i >= lane_count - cube_count : i;
        lane->steal_count = 0;
        pwsp_ready_init(&lane->excess);
        lane->excess_count = 0;
        pwsp_deque_reset(&lane->deque);
        if (!policy.steals) {
            lane->deque.limit = 0;  // so that each task goes through pwsp_engine_overflow
        }
    }
}
