// The scheduler: the start of a run, its threads, and the work of thread 0. See wsp_scheduler.h.

#include "wsp_scheduler.h"

#include "wsp_expand.h"

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>

namespace wsp {

// -- the clock ------------------------------------------------------------------------------------

#if WSP_HAS_CLOCK

bool Scheduler::check_clock(bool is_good) {
    if (!is_good) {
        std::lock_guard<std::mutex> guard(mutex_);
        failure_.set(clock_.status(), clock_.error_index(), "%s", clock_.error());
        stop_behind(0);
    }
    return is_good;
}

#define WSP_CLOCK(call) check_clock(clock_.call)
#else
#define WSP_CLOCK(call) true  // without a clock
#endif

// -- beginning ------------------------------------------------------------------------------------

Scheduler::~Scheduler() {
    pwsp_issue_free(&issue_);
    pwsp_cores_free(&cores_);
}

// All memory of the ring, the map of regions and the waiting tasks.
bool Scheduler::begin_issue() {
    const wsp_program &program = *program_;
    const ptowsp_schedule &schedule = program.schedule;
    facts_.begin(program);
    pwsp_issue_desc desc = pwsp_issue_desc();
    // A full window stalls; devices refuse other policies.
    desc.task_max =
        schedule.window ? std::min(options_.ring_size, schedule.window) : options_.ring_size;
    desc.place_count = 2 * desc.task_max + 16;  // scopes, edges and slot loads besides
    desc.word_count = 1;
    desc.tile_max = 1;
    for (uint32_t i = 1; i < program.kernel_count; i++) {
        desc.tile_max = std::max(desc.tile_max, program.kernels[i].tile_count);
    }
    desc.region_count = desc.task_max * desc.tile_max;
    desc.is_fixed = true;
    const pwsp_memory memory = pwsp_memory_make(nullptr, nullptr);
    if (!pwsp_issue_init(&issue_, &memory, &facts_.timed(), &desc)) {
        failure_.set(PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "run: out of memory");
        return false;
    }
    const pwsp_executor executor = {ready, help, this};
    const pwsp_issue_host host = {retire, nullptr, this};
    pwsp_issue_begin(&issue_, tensors_, &executor, &host);
    return true;
}

// Cores of AICPU threads 1, 2, ..., or of thread 0. With a limit threads do not sleep, as a lost core
// would never wake them. Nor do they where several processes of a pipeline run kernels at once.
bool Scheduler::begin_cores() {
    pwsp_cores_desc desc = pwsp_cores_desc();
    for (const Core &core : given_) {
        (core.unit == PTOWSP_UNIT_VECTOR ? desc.vector_count : desc.cube_count)++;
    }
    desc.is_host = true;
    desc.aicpu_count = options_.aicpu_count;
    desc.is_polled = options_.time_limit_ms > 0 || options_.has_parts ||
                     (!WSP_HAS_CLOCK && program_->pipeline_count > 0);
    desc.spin_count = 100;
    desc.yield_count = 10;
    desc.time_limit_ns = options_.time_limit_ms * UINT64_C(1000000);
    const pwsp_memory memory = pwsp_memory_make(nullptr, nullptr);
    if (!pwsp_cores_init(&cores_, &memory, &desc)) {
        failure_.set(PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "run: out of memory");
        return false;
    }
    for (uint32_t i = 0; i < cores_.core_count; i++) {
        cores_.cores[i].line = given_[i].line;
    }
    links_.resize(place_count() + DIRECT_MAX);
    pwsp_core_job job = pwsp_core_job();
    job.user = this;
    job.links = links_.data();
    job.need_of = need_of;
    if (policy_.is_in_order) {
        job.may_begin = may_begin;
        job.take = take;
    }
    job.is_wanted = is_wanted;
    job.pass = pass;
    job.give = give;
    job.lose = lose;
    job.done = done;
    job.has_parts = options_.has_parts;
    job.is_stealing = policy_.steals;
    job.is_awaited = true;
    pwsp_cores_prepare(&cores_, &job);
    cores_.is_open = true;
    return true;
}

bool Scheduler::begin(const wsp_program &program, const wsp_bindings &bindings,
                      const List<Core> &cores, const SchedulerOptions &options) {
    program_ = &program;
    tensors_ = reinterpret_cast<const pwsp_bound_tensor *>(bindings.tensors);
    policy_ = pwsp_policy_of(&program.schedule);
    options_ = options;
    given_ = cores;
    scratch_.clear();
    if (!begin_issue() || !begin_cores()) {
        return false;
    }
    for (uint32_t i = 1; i < program.kernel_count; i++) {
        PTOWSP_ASSERT(program.kernels[i].unit != PTOWSP_UNIT_MIX || cores_.block_count > 0);
    }
    return WSP_CLOCK(begin(facts_.timed(), tensors_));
}

// -- thread 0: retiring ---------------------------------------------------------------------------

// A task has failed. Its kernel tells more than its status.
void Scheduler::fail_task(const Submission &submission) {
    const wsp_task &task = submission.task;
    const ptowsp_status status = static_cast<ptowsp_status>(task.status);
    const char *place = place_text(submission.place);
    const char *more = task.fault ? wsp_core_fault_text(task.kernel, task.fault) : "";
    std::lock_guard<std::mutex> guard(mutex_);
    if (more[0]) {
        failure_.set(status, task.index, "%s: task %" PRIu64 ": %s", place, task.index, more);
    } else {
        failure_.set(status, task.index, "%s: task %" PRIu64 " failed: %s", place, task.index,
                     ptowsp_status_name(status));
    }
    stop_behind(submission.number);
}

bool Scheduler::retire(void *self, const pwsp_entry *entry) {
    return static_cast<Scheduler *>(self)->retire(*entry);
}

// The oldest entry is done: tells the clock. Trees have no rings, and processes run their tasks at once.
bool Scheduler::retire(const pwsp_entry &entry) {
    if (entry.kind == PWSP_ENTRY_TASK) {
        const Submission &submission = *submission_of(&entry);
        if (submission.task.status != PTOWSP_OK) {
            fail_task(submission);
            return false;
        }
        return WSP_CLOCK(task(facts_.arrival_of(submission)));
    }
    if (entry.kind == PWSP_ENTRY_LOAD) {
        const bool is_good = WSP_CLOCK(slot_load(elements_.front()));
        elements_.pop_front();
        return is_good;
    }
    const bool has_edges = pwsp_entry_mark(&entry).kind == PWSP_MARK_RESET;
    const bool is_good = WSP_CLOCK(mark(pwsp_entry_mark(&entry)));
    if (has_edges) {
        resets_.pop_front();
    }
    return is_good;
}

// A task waits for nothing any more.
void Scheduler::ready(void *self, uint32_t by, uint32_t place) {
    pwsp_cores_ready(&static_cast<Scheduler *>(self)->cores_, by, place);
}

// Waits, on thread 0, until something has been completed.
void Scheduler::help(void *self, uint32_t ticket) {
    Scheduler &me = *static_cast<Scheduler *>(self);
    pwsp_cores_await(&me.cores_, &me.issue_.reorder.done_count, ticket);
}

// -- thread 0: submitting -------------------------------------------------------------------------

bool Scheduler::good() const {
    return pwsp_load_relaxed(&has_failed_) == 0;
}

// Tasks before the failure still run, and may fail as well.
void Scheduler::fail(ptowsp_status status, uint64_t index, const char *text) {
    std::lock_guard<std::mutex> guard(mutex_);
    walk_failure_.set(status, index, "%s", text);
    pwsp_store_relaxed(&has_failed_, 1u);
}

Submission *Scheduler::open() {
    pwsp_entry *entry = pwsp_issue_open(&issue_, PWSP_ENTRY_TASK);
    if (!entry) {
        scratch_.clear();
        return &scratch_;
    }
    const uint64_t slot = task_number_ % issue_.desc.task_max;
    if (slot == slots_.size()) {
        slots_.emplace_back();
    }
    Submission *submission = &slots_[slot];
    *pwsp_entry_words(entry) = reinterpret_cast<uintptr_t>(submission);
    submission->clear();
    return submission;
}

void Scheduler::submit(Submission *submission) {
    PTOWSP_ASSERT(!issue_.has_failed);  // or it would not be good()
    pwsp_entry *entry = pwsp_reorder_entry(&issue_.reorder, issue_.reorder.tail);
    submission->entry = static_cast<uint32_t>(issue_.reorder.tail) & issue_.reorder.place_mask;
    submission->number = task_number_++;
    submission->task.core = home_of(*submission);
    {
        std::lock_guard<std::mutex> guard(mutex_);
        submission->task.index = next_index_++;
    }
    const pwsp_arrival arrival = facts_.arrival_of(*submission);
    entry->index = submission->task.index;
    entry->kernel = arrival.kernel;
    entry->unit = arrival.unit;
    pwsp_issue_submit(&issue_, &arrival);
    pwsp_cores_act(&cores_);
}

void Scheduler::mark(pwsp_mark_kind kind) {
    const pwsp_mark mark = pwsp_mark_of(kind);
    pwsp_issue_mark(&issue_, &mark);
}

void Scheduler::scope_begin(bool is_parallel) {
    mark(is_parallel ? PWSP_MARK_PARALLEL : PWSP_MARK_SEQUENTIAL);
}

void Scheduler::scope_end() {
    mark(PWSP_MARK_END);
}

void Scheduler::reset(const uint32_t *edges, uint32_t count) {
    resets_.emplace_back(edges, edges + count);
    const pwsp_mark mark = {PWSP_MARK_RESET, 0, count, resets_.back().data()};
    pwsp_issue_mark(&issue_, &mark);
}

bool Scheduler::await_element(const Region &element) {
    pwsp_arrival arrival = pwsp_arrival();
    arrival.tiles = &element;
    arrival.tile_count = 1;
    if (!pwsp_issue_open(&issue_, PWSP_ENTRY_LOAD)) {
        return false;
    }
    elements_.push_back(element);
    return pwsp_issue_submit(&issue_, &arrival) && good() && fetch(element);
}

bool Scheduler::fetch(const Region &element) {
    const pwsp_bound_tensor &tensor = tensors_[element.tensor];
    if (options_.fetch &&
        !options_.fetch(options_.user,
                        tensor.data + pwsp_tile_offset(&tensor, &element) *
                                          static_cast<int64_t>(tensor.element_size),
                        tensor.element_size)) {
        fail(PTOWSP_SYSTEM_FAILED, PTOWSP_NO_INDEX, "run: an element cannot be copied to the host");
        return false;
    }
    return true;
}

bool Scheduler::settle() {
    return pwsp_issue_settle(&issue_) && good();
}

bool Scheduler::finish() {
    pwsp_issue_settle(&issue_);
    pwsp_issue_drain(&issue_);
    std::unique_lock<std::mutex> guard(mutex_);
    if (failure_.status == PTOWSP_OK) {
        failure_ = walk_failure_;
    }
    guard.unlock();
    (void)WSP_CLOCK(end());
    return failure_.status == PTOWSP_OK;
}

// Gives a task of a process an entry after the places of the ring. If all are taken, it waits.
uint32_t Scheduler::enter_direct(Submission *submission) {
    for (;;) {
        {
            std::lock_guard<std::mutex> guard(mutex_);
            Submission **end = direct_ + DIRECT_MAX, **at = std::find(direct_, end, nullptr);
            if (at < end) {
                submission->task.index = next_index_++;
                *at = submission;
                return place_count() + static_cast<uint32_t>(at - direct_);
            }
        }
        if (!pwsp_cores_act(&cores_)) {
            pwsp_thread_yield();
        }
    }
}

ptowsp_status Scheduler::run_now(Submission *submission, uint64_t *out_cycles) {
    submission->is_direct = true;
    submission->number = 0;
    submission->task.core = NONE;
    const uint32_t entry = enter_direct(submission);
    pwsp_cores_ready(&cores_, PWSP_CORES_NONE, entry);
    pwsp_cores_await(&cores_, &submission->is_done, 0);
    {
        std::lock_guard<std::mutex> guard(mutex_);
        direct_[entry - place_count()] = nullptr;
    }
    if (submission->task.status != PTOWSP_OK) {
        fail_task(*submission);
    }
    *out_cycles = submission->task.cycles;
    return static_cast<ptowsp_status>(submission->task.status);
}

// -- walking ---------------------------------------------------------------------------------------

bool walk(const wsp_program &program, const wsp_bindings &bindings, Scheduler *scheduler) {
    const Plans plans(program, bindings, *scheduler);
    Run run(program, bindings, *scheduler);
    if (run.good()) {
        program.expand(run);
    }
    const bool is_good = scheduler->finish();
    std::copy(run.slots().begin(), run.slots().end(), reinterpret_cast<uint64_t *>(bindings.slots));
    return is_good;
}

}  // namespace wsp
