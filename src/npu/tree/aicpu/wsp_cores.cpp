// The scheduler as the owner of cores: the callbacks of pwsp_cores about tasks. See wsp_scheduler.h.

#include "wsp_scheduler.h"

#include <cinttypes>
#include <cstdio>

namespace wsp {

// -- queues ---------------------------------------------------------------------------------------

// The core that dispatch selects, or NONE: any of its unit.
uint32_t Scheduler::home_of(const Submission &submission) {
    if (policy_.is_shared) {
        return NONE;
    }
    const ptowsp_unit unit = unit_of(submission);
    const uint32_t pool = facts_.pool_of(unit);
    const uint32_t lane = pwsp_lane_choose(policy_.lane_rule, submission.dispatch_key,
                                           pool_counts_[pool]++, facts_.timed().pools[pool].count);
    const pwsp_cores_desc &desc = cores_.desc;
    return pwsp_unit_lane(unit) == PTOWSP_UNIT_CUBE ? desc.vector_count + lane % desc.cube_count
                                                    : lane % desc.vector_count;
}

// By priority, if the schedule has it, and then in program order.
pwsp_need Scheduler::need_of(void *self, uint32_t entry) {
    const Scheduler &me = *static_cast<Scheduler *>(self);
    const Submission &submission = me.at(entry);
    const uint64_t rank =
        pwsp_priority_rank(submission.priority_key, me.facts_.timed().is_priority_signed);
    return {me.unit_of(submission), submission.task.core, me.policy_.has_priority ? rank : 0,
            submission.number};
}

// Where tasks begin in program order.
bool Scheduler::may_begin(void *self, uint32_t entry) {
    const Scheduler &me = *static_cast<Scheduler *>(self);
    return me.at(entry).is_direct || me.at(entry).number == me.next_begin_;
}

bool Scheduler::take(void *self, uint32_t entry, uint32_t *) {
    Scheduler &me = *static_cast<Scheduler *>(self);
    me.next_begin_ += !me.at(entry).is_direct;
    return false;
}

// One of its dependences, or an earlier task, may have failed.
bool Scheduler::is_wanted(void *self, uint32_t entry) {
    const Scheduler &me = *static_cast<Scheduler *>(self);
    return me.at(entry).number <= pwsp_load_relaxed(&me.failed_at_);
}

// -- tasks ----------------------------------------------------------------------------------------

// Returns the address of the task that a core runs: a copy in the core's room, or without one the
// task itself.
uint64_t Scheduler::give(void *self, const pwsp_turn *turn, uint32_t core) {
    Scheduler &me = *static_cast<Scheduler *>(self);
    wsp_task *task = &me.at(turn->entry).task;
    wsp_task *room = me.given_[core].room;
    PTOWSP_ASSERT(room || core == turn->core);
    if (core == turn->core) {
        task->core = core;
    }
    if (room) {
        *room = *task;
        room->core = core;
        task = room;
    }
    return reinterpret_cast<uintptr_t>(task);
}

// A task has ended on all cores that ran a part of it. The first failure counts, a cube core's before
// a vector core's.
void Scheduler::done(void *self, const pwsp_turn *turn, uint32_t by, bool is_lost) {
    Scheduler &me = *static_cast<Scheduler *>(self);
    Submission *submission = &me.at(turn->entry);
    wsp_task &task = submission->task;
    const wsp_task *room = me.given_[turn->core].room;
    if (is_lost) {
        task.status = PTOWSP_SYSTEM_FAILED;
    } else if (room) {
        task.cycles = room->cycles;
        task.status = room->status;
        task.fault = room->fault;
    }
    const bool has_parts = me.options_.has_parts && me.unit_of(*submission) == PTOWSP_UNIT_MIX;
    for (uint32_t i = 0; has_parts && i < PWSP_BLOCK_VECTORS && task.status == PTOWSP_OK; i++) {
        room = me.given_[pwsp_cores_vector(&me.cores_, me.core(turn->core), i)->index].room;
        task.status = room->status;
        task.fault = room->fault;
    }
    me.complete(submission, by);
}

void Scheduler::pass(void *self, const pwsp_turn *turn, uint32_t by, bool is_lost) {
    Scheduler &me = *static_cast<Scheduler *>(self);
    Submission *submission = &me.at(turn->entry);
    submission->task.status = is_lost ? PTOWSP_SYSTEM_FAILED : PTOWSP_SKIPPED;
    me.complete(submission, by);
}

// A task is done, or must not begin: its waiters may be ready.
void Scheduler::complete(Submission *submission, uint32_t by) {
    const ptowsp_status status = static_cast<ptowsp_status>(submission->task.status);
    if (status != PTOWSP_OK) {
        std::lock_guard<std::mutex> guard(mutex_);
        stop_behind(submission->number);
    }
    if (submission->is_direct) {
        pwsp_store_seq_cst(&submission->is_done, 1u);
    } else {
        const ptowsp_cycles result =
            status == PTOWSP_OK ? submission->task.cycles : ptowsp_task_fail(status);
        pwsp_reorder_set_result(&issue_.reorder, submission->entry, result);
        pwsp_reorder_done(&issue_.reorder, submission->entry, by);
    }
}

void Scheduler::stop_behind(uint64_t number) {
    pwsp_store_relaxed(&failed_at_, pwsp_min_u64(failed_at_, number));
    pwsp_store_relaxed(&has_failed_, 1u);
}

// A core has not ended its task in time, or not begun to poll.
void Scheduler::lose(void *self, const pwsp_turn *turn, uint32_t core) {
    Scheduler &me = *static_cast<Scheduler *>(self);
    const char *unit = ptowsp_unit_name(static_cast<ptowsp_unit>(me.core(core)->unit));
    const uint32_t limit = me.options_.time_limit_ms;
    std::lock_guard<std::mutex> guard(me.mutex_);
    if (turn->entry == NONE) {
        me.failure_.set(PTOWSP_SYSTEM_FAILED, PTOWSP_NO_INDEX,
                        "run: core %" PRIu32 " (%s) has not begun to poll within %" PRIu32 " ms",
                        core, unit, limit);
        me.stop_behind(0);
    } else {
        const Submission &late = me.at(turn->entry);
        me.failure_.set(PTOWSP_SYSTEM_FAILED, late.task.index,
                        "%s: task %" PRIu64 ": core %" PRIu32
                        " (%s) has not ended it within %" PRIu32 " ms",
                        me.place_text(late.place), late.task.index, core, unit, limit);
    }
}

}  // namespace wsp
