// The scheduler: the choice of a core for a ready task, blocks of cores for tasks of MIX, and what
// cores report. See wsp_scheduler.h.

#include "wsp_scheduler.h"

#include <algorithm>

namespace wsp {

// -- queues ---------------------------------------------------------------------------------------

// The unit whose cores and queues it goes to.
uint32_t Scheduler::unit_of(const Submission &submission) const {
    return pwsp_unit_lane(static_cast<ptowsp_unit>(program_->kernels[submission.task.kernel].unit));
}

bool Scheduler::is_mix(const Submission &submission) const {
    return program_->kernels[submission.task.kernel].unit == PTOWSP_UNIT_MIX;
}

// The core that dispatch selects, or NONE: any of its unit.
uint32_t Scheduler::home_of(const Submission &submission) {
    const ptowsp_schedule &schedule = program_->schedule;
    const pwsp_lane_rule rule = pwsp_dispatch_rule(schedule.dispatch);
    if (rule == PWSP_LANE_ANY) {
        return NONE;
    }
    const uint32_t unit = unit_of(submission);
    uint64_t &turn = pool_counts_[schedule.pools == PTOWSP_POOLS_BY_UNIT ? unit : 0];
    const uint32_t lane =
        pwsp_lane_choose(rule, submission.dispatch_key, turn++, lane_count_of(schedule, unit));
    return unit_first_[unit] + lane % unit_count_[unit];
}

// A task waits for nothing any more: called by the thread that completed its last dependence.
void Scheduler::ready(void *self, uint32_t, uint32_t place) {
    Scheduler &me = *static_cast<Scheduler *>(self);
    Submission *submission = submission_of(pwsp_reorder_at(&me.issue_.reorder, place));
    std::lock_guard<std::mutex> guard(me.mutex_);
    me.push_ready(submission);
}

void Scheduler::push_ready(Submission *submission) {
    const uint32_t unit = unit_of(*submission);
    const uint32_t core_count = static_cast<uint32_t>(cores_.size());
    const uint32_t home = submission->task.core;
    const bool is_homed = home != NONE;
    const uint64_t sign = program_->is_priority_signed ? UINT64_C(1) << 63 : 0;
    const uint64_t rank = has_priority_ ? submission->priority_key ^ sign : 0;
    List<Ready> &queue = queues_[is_homed ? home : core_count + unit];
    queue.push_back({rank, submission->number, submission});
    std::push_heap(queue.begin(), queue.end());
    __atomic_fetch_add(&ready_count_, 1u, __ATOMIC_RELAXED);
    owners_to_ring_ |= is_homed && !is_stealing_ ? 1u << cores_[home].owner : unit_owners_[unit];
}

bool Scheduler::may_begin(const Ready &ready) const {
    return !is_in_order_ || ready.submission->is_direct || ready.number == next_begin_;
}

// The next task of a free core: the best of its own queue and of its unit's; with stealing, if
// there is none, the best of all others'.
bool Scheduler::pop_ready(uint32_t core, Ready *out) {
    const uint32_t core_count = static_cast<uint32_t>(cores_.size()), unit = cores_[core].core.unit;
    List<Ready> *best = nullptr;
    const auto look = [&](List<Ready> &queue) {
        if (!queue.empty() && may_begin(queue.front()) &&
            (!best || best->front() < queue.front())) {
            best = &queue;
        }
    };
    look(queues_[core]);
    look(queues_[core_count + unit]);
    const bool must_steal = is_stealing_ && !best;
    for (uint32_t i = 0; must_steal && i < unit_count_[unit]; i++) {
        look(queues_[unit_first_[unit] + i]);
    }
    if (!best) {
        return false;
    }
    *out = best->front();
    std::pop_heap(best->begin(), best->end());
    best->pop_back();
    __atomic_fetch_sub(&ready_count_, 1u, __ATOMIC_RELAXED);
    if (!out->submission->is_direct) {
        next_begin_ = out->number + 1;
    }
    if (is_in_order_) {  // the next one may be in any queue
        owners_to_ring_ |= unit_owners_[0] | unit_owners_[1];
    }
    return true;
}

void Scheduler::stop_behind(uint64_t number) {
    failed_at_ = std::min(failed_at_, number);
    __atomic_store_n(&has_failed_, 1u, __ATOMIC_RELAXED);
}

// -- cores ----------------------------------------------------------------------------------------

// A task is done, or must not begin: its waiters may be ready.
void Scheduler::complete(Submission *submission, uint32_t thread) {
    const ptowsp_status status = static_cast<ptowsp_status>(submission->task.status);
    if (status != PTOWSP_OK) {
        std::lock_guard<std::mutex> guard(mutex_);
        stop_behind(submission->number);
    }
    if (submission->is_direct) {
        __atomic_store_n(&submission->is_done, 1u, __ATOMIC_RELEASE);
    } else {
        const ptowsp_cycles result =
            status == PTOWSP_OK ? submission->task.cycles : ptowsp_task_fail(status);
        pwsp_reorder_set_result(&issue_.reorder, submission->entry, result);
        pwsp_reorder_done(&issue_.reorder, submission->entry, thread);
    }
    bells_[0].ring();
}

// The next task for a free core. One of its dependences, or an earlier task, may have failed: then
// it is skipped.
Submission *Scheduler::next_for(uint32_t core, List<Submission *> *skipped) {
    std::lock_guard<std::mutex> guard(mutex_);
    for (Ready ready; pop_ready(core, &ready);) {
        if (ready.submission->number <= failed_at_) {
            return ready.submission;
        }
        ready.submission->task.status = PTOWSP_SKIPPED;
        skipped->push_back(ready.submission);
    }
    return nullptr;
}

Scheduler::CoreState &Scheduler::vector_of(uint32_t cube, uint32_t i) {
    const uint32_t block = cube - unit_first_[PTOWSP_UNIT_CUBE];
    return cores_[unit_first_[PTOWSP_UNIT_VECTOR] + 2 * block + i];
}

// A free core runs a task.
void Scheduler::give(const Core &core, wsp_task *task) {
    if (core.room && core.room != task) {
        *core.room = *task;
        task = core.room;
    }
    pwsp_aicpu_give(core.line, reinterpret_cast<uintptr_t>(task));
    if (core.bell) {
        core.bell->ring();
    }
}

void Scheduler::take_results(const Core &core, Submission *submission) {
    if (core.room) {
        submission->task.cycles = core.room->cycles;
        submission->task.status = core.room->status;
        submission->task.fault = core.room->fault;
    }
}

void Scheduler::begin_task(uint32_t at, Submission *submission) {
    CoreState &core = cores_[at];
    core.since_ms = time_limit_ms_ ? now_ms() : 0;
    submission->task.core = at;
    core.running = submission;
    give(core.core, &submission->task);
}

// A cube core takes a task, and the vector cores of its block: busy ones when they have ended.
void Scheduler::take_block(uint32_t cube, Submission *submission) {
    cores_[cube].waiting = submission;
    __atomic_fetch_add(&waiting_count_, 1u, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < 2; i++) {
        PTOWSP_ASSERT(!vector_of(cube, i).is_held);
        vector_of(cube, i).is_held = true;
    }
}

void Scheduler::free_block(uint32_t cube) {
    for (uint32_t i = 0; i < 2; i++) {
        vector_of(cube, i).is_held = false;
    }
}

// Has its task ended, on all cores that run a part of it?
bool Scheduler::is_done(uint32_t core) {
    bool is_done = pwsp_aicpu_status(cores_[core].core.line) == PWSP_TASK_DONE;
    for (uint32_t i = 0; has_parts_ && i < 2 && is_done && is_mix(*cores_[core].running); i++) {
        is_done = pwsp_aicpu_status(vector_of(core, i).core.line) == PWSP_TASK_DONE;
    }
    return is_done;
}

// A vector core runs its part of a task.
void Scheduler::give_part(uint32_t core, const Submission &submission) {
    CoreState &state = cores_[core];
    PTOWSP_ASSERT(state.core.room);
    *state.core.room = submission.task;
    state.core.room->core = core;
    state.has_part = true;
    give(state.core, state.core.room);
}

// All parts have ended: the first failure counts, the cube core's before those of vector cores.
void Scheduler::end_parts(uint32_t cube, Submission *submission) {
    for (uint32_t i = 0; i < 2; i++) {
        CoreState &state = vector_of(cube, i);
        PTOWSP_ASSERT(state.has_part);
        pwsp_aicpu_take_back(state.core.line);
        state.has_part = false;
        if (submission->task.status == PTOWSP_OK) {
            submission->task.status = state.core.room->status;
            submission->task.fault = state.core.room->fault;
        }
    }
}

// Begins the task that waits for its block, if that is whole. Returns whether it did, or if it must
// not: a core of the block is lost.
bool Scheduler::begin_block(uint32_t cube, List<Submission *> *skipped) {
    CoreState &core = cores_[cube];
    const CoreState &first = vector_of(cube, 0), &second = vector_of(cube, 1);
    if (first.running || second.running) {
        return false;
    }
    Submission *submission = core.waiting;
    core.waiting = nullptr;
    __atomic_fetch_sub(&waiting_count_, 1u, __ATOMIC_RELAXED);
    if (is_lost(core.is_lost) || is_lost(first.is_lost) || is_lost(second.is_lost)) {
        submission->task.status = PTOWSP_SYSTEM_FAILED;
        skipped->push_back(submission);
        free_block(cube);
    } else {
        // Copies first: the cube core writes to its own as soon as it has it.
        for (uint32_t i = 0; has_parts_ && i < 2; i++) {
            give_part(static_cast<uint32_t>(&vector_of(cube, i) - cores_.data()), *submission);
        }
        begin_task(cube, submission);
    }
    return true;
}

// Takes the results of a thread's cores, and gives them ready tasks. Vector cores come first: a
// task that waits for them may begin in the same round.
bool Scheduler::look_after(uint32_t thread) {
    bool has_some = false;
    List<Submission *> skipped;
    std::lock_guard<std::mutex> guard(owners_[thread]);
    for (uint32_t i = 0; i < cores_.size(); i++) {
        CoreState &core = cores_[i];
        if (core.owner != thread) {
            continue;
        }
        if (core.running && is_done(i)) {
            Submission *done = core.running;
            core.running = nullptr;
            take_results(core.core, done);
            pwsp_aicpu_take_back(core.core.line);
            if (is_mix(*done) && has_parts_) {
                end_parts(i, done);
            }
            if (is_mix(*done)) {
                free_block(i);
            }
            complete(done, thread);
            has_some = true;
        }
        const bool is_free = !core.running && !core.waiting && !core.is_held;
        Submission *next = is_free ? next_for(i, &skipped) : nullptr;
        if (next && is_lost(core.is_lost)) {
            next->task.status = PTOWSP_SYSTEM_FAILED;
            skipped.push_back(next);
        } else if (next && is_mix(*next)) {
            take_block(i, next);
        } else if (next) {
            begin_task(i, next);
            has_some = true;
        }
        has_some = (core.waiting && begin_block(i, &skipped)) || has_some;
        for (Submission *submission : skipped) {
            complete(submission, thread);
            has_some = true;
        }
        skipped.clear();
    }
    return has_some;
}

// Is it worth the lock? Looks at lines only.
bool Scheduler::has_news(uint32_t thread) const {
    const bool has_ready = __atomic_load_n(&ready_count_, __ATOMIC_RELAXED) > 0;
    const bool is_waiting = __atomic_load_n(&waiting_count_, __ATOMIC_RELAXED) > 0;
    for (const CoreState &core : cores_) {
        if (core.owner != thread) {
            continue;
        }
        if (is_lost(core.is_lost)) {
            if (has_ready || is_waiting) {
                return true;
            }
            continue;
        }
        const uint32_t status = pwsp_aicpu_status(core.core.line);
        if (status == PWSP_TASK_DONE || (has_ready && status == PWSP_TASK_IDLE)) {
            return true;
        }
    }
    return false;
}

// Wakes the threads that have work now.
void Scheduler::ring_marked() {
    uint32_t owners;
    {
        std::lock_guard<std::mutex> guard(mutex_);
        owners = owners_to_ring_;
        owners_to_ring_ = 0;
    }
    for (uint32_t i = 0; i < thread_count_; i++) {
        if (owners & 1u << i) {
            bells_[i].ring();
        }
    }
}

// One round of a thread; returns whether there was any work.
bool Scheduler::step(uint32_t thread) {
    const bool has_some = has_news(thread) && look_after(thread);
    if (has_some) {
        ring_marked();
    }
    return has_some;
}

}  // namespace wsp
