// The scheduler: the start of a run, its threads, and the work of thread 0. See wsp_scheduler.h.

#include "wsp_scheduler.h"

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>

namespace wsp {

void Failure::set(ptowsp_status error, uint64_t at, const char *format, ...) {
    if (status != PTOWSP_OK) {
        return;
    }
    status = error;
    index = at;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
}

// -- beginning ------------------------------------------------------------------------------------

namespace {

void print_place(const void *user, uint32_t node, ptowsp_text text) {
    const wsp_program *program = static_cast<const wsp_program *>(user);
    pwsp_text_format(text, "%s", node < program->place_count ? program->places[node] : "");
}

}  // namespace

Scheduler::~Scheduler() {
    pwsp_issue_free(&issue_);
}

// All memory of the ring, the map of regions and the waiting tasks.
bool Scheduler::begin_issue(const SchedulerOptions &options) {
    const wsp_program &program = *program_;
    const ptowsp_schedule &schedule = program.schedule;
    is_written_.reset(new bool[program.tensor_count + 1]());
    is_loaded_.reset(new bool[program.tensor_count + 1]());
    for (uint32_t i = 1; i < program.tensor_count; i++) {
        is_written_[i] = program.tensors[i].is_written != 0;
        is_loaded_[i] = program.tensors[i].is_loaded != 0;
    }
    timed_.schedule = schedule;
    timed_.schedule.stream_count = std::max(schedule.stream_count, 1u);
    timed_.is_priority_signed = program.is_priority_signed != 0;
    timed_.has_streams = program.has_streams != 0;
    timed_.pools = pools_;
    timed_.pool_count = pwsp_schedule_pools(&schedule, pools_);
    timed_.lane_count = program.lane_count;
    timed_.scope_depth = std::max(program.scope_depth, 1u);
    timed_.pipeline_count = program.pipeline_count;
    timed_.tensor_count = std::max(program.tensor_count, 1u);
    timed_.edge_count = program.edge_count;
    timed_.tensor_is_loaded = is_loaded_.get();
    timed_.tensor_is_written = is_written_.get();
    timed_.print_place = print_place;
    timed_.user = program_;

    pwsp_issue_desc desc = pwsp_issue_desc();
    // A full window stalls; devices refuse other policies.
    desc.task_max =
        schedule.window ? std::min(options.ring_size, schedule.window) : options.ring_size;
    desc.place_count = 2 * desc.task_max + 16;  // scopes, edges and slot loads besides
    desc.word_count = 1;
    desc.tile_max = 1;
    for (uint32_t i = 1; i < program.kernel_count; i++) {
        desc.tile_max = std::max(desc.tile_max, program.kernels[i].tile_count);
    }
    desc.region_count = desc.task_max * desc.tile_max;
    desc.is_fixed = true;
    const pwsp_memory memory = pwsp_memory_make(nullptr, nullptr);
    if (!pwsp_issue_init(&issue_, &memory, &timed_, &desc)) {
        failure_.set(PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "run: out of memory");
        return false;
    }
    const pwsp_executor executor = {ready, help, this};
    const pwsp_issue_host host = {retire, nullptr, this};
    pwsp_issue_begin(&issue_, tensors_, &executor, &host);
    return true;
}

bool Scheduler::begin(const wsp_program &program, const wsp_bindings &bindings,
                      const List<Core> &cores, const SchedulerOptions &options) {
    const ptowsp_schedule &schedule = program.schedule;
    program_ = &program;
    tensors_ = reinterpret_cast<const pwsp_bound_tensor *>(bindings.tensors);
    options_ = options;
    thread_count_ = options.aicpu_count;
    time_limit_ms_ = options.time_limit_ms;
    has_parts_ = options.has_parts;
    is_in_order_ = schedule.issue == PTOWSP_ISSUE_IN_ORDER;
    is_stealing_ = schedule.ready == PTOWSP_READY_WORK_STEALING;
    has_priority_ = schedule.ready == PTOWSP_READY_PRIORITY;
    bells_ = std::make_unique<Bell[]>(thread_count_);
    owners_ = std::make_unique<std::mutex[]>(thread_count_);
    for (uint32_t i = 0; i < cores.size(); i++) {
        const uint32_t unit = cores[i].unit;
        unit_first_[unit] = unit_count_[unit] == 0 ? i : unit_first_[unit];
        unit_count_[unit]++;
    }
    const uint32_t cube_count = unit_count_[PTOWSP_UNIT_CUBE];
    has_blocks_ = cube_count > 0 && unit_count_[PTOWSP_UNIT_VECTOR] / 2 >= cube_count;
    for (uint32_t i = 0; i < cores.size(); i++) {
        const uint32_t unit = cores[i].unit, at = i - unit_first_[unit];
        const bool is_behind = unit == PTOWSP_UNIT_VECTOR && at >= 2 * cube_count;
        const uint32_t block = unit == PTOWSP_UNIT_CUBE ? at : is_behind ? at - cube_count : at / 2;
        const uint32_t owner =
            thread_count_ == 1 ? 0 : 1 + (has_blocks_ ? block : i) % (thread_count_ - 1);
        cores_.push_back({cores[i], owner, nullptr, 0, 0, nullptr, false, false});
        unit_owners_[unit] |= 1u << owner;
    }
    queues_.resize(cores.size() + 2);
    prepare(&scratch_);
    for (uint32_t i = 1; i < program.kernel_count; i++) {
        PTOWSP_ASSERT(program.kernels[i].unit != PTOWSP_UNIT_MIX || has_blocks_);
    }
    if (!begin_issue(options)) {
        return false;
    }
#if WSP_HAS_CLOCK
    return check_clock(clock_.begin(timed_, tensors_));
#else
    return true;
#endif
}

#if WSP_HAS_CLOCK

bool Scheduler::check_clock(bool is_good) {
    if (!is_good) {
        std::lock_guard<std::mutex> guard(mutex_);
        failure_.set(clock_.status(), clock_.error_index(), "%s", clock_.error());
        stop_behind(0);
    }
    return is_good;
}

#endif

// -- threads --------------------------------------------------------------------------------------

bool Scheduler::has_lost() const {
    return std::any_of(cores_.begin(), cores_.end(),
                       [](const CoreState &core) { return is_lost(core.is_lost); });
}

void Scheduler::lose(uint32_t core, uint64_t index, const char *what) {
    std::lock_guard<std::mutex> guard(mutex_);
    failure_.set(PTOWSP_SYSTEM_FAILED, index, "%s within %" PRIu32 " ms", what, time_limit_ms_);
    __atomic_store_n(&cores_[core].is_lost, 1u, __ATOMIC_RELEASE);
}

// Waits for news. With a limit nobody sleeps: what is awaited may never ring.
void Scheduler::pause(uint32_t thread, uint32_t ticket) {
    if (time_limit_ms_ == 0) {
        bells_[thread].wait(ticket);
    } else {
        lose_late(thread);
        pwsp_thread_yield();
    }
}

// A task's core, and of MIX the cores of its block, have not all ended it.
void Scheduler::lose_task(uint32_t core, const Submission &late) {
    const bool has_parts = has_parts_ && is_mix(late);
    for (uint32_t i = 0; i < (has_parts ? 3 : 1); i++) {
        CoreState &state = i ? vector_of(core, i - 1) : cores_[core];
        const uint32_t at = static_cast<uint32_t>(&state - cores_.data());
        state.has_part = false;
        if (pwsp_aicpu_status(state.core.line) == PWSP_TASK_DONE) {
            pwsp_aicpu_take_back(state.core.line);
            continue;
        }
        char what[sizeof failure_.text];
        snprintf(what, sizeof what, "%s: task %" PRIu64 ": core %" PRIu32 " (%s) has not ended it",
                 place_text(late.place), late.task.index, at,
                 ptowsp_unit_name(static_cast<ptowsp_unit>(state.core.unit)));
        lose(at, late.task.index, what);
    }
}

// Fails the tasks of a thread's cores that have not ended in time.
void Scheduler::lose_late(uint32_t thread) {
    std::lock_guard<std::mutex> guard(owners_[thread]);
    const uint64_t now = now_ms();
    for (uint32_t i = 0; i < cores_.size(); i++) {
        CoreState &core = cores_[i];
        Submission *late = core.owner == thread ? core.running : nullptr;
        if (!late || now - core.since_ms <= time_limit_ms_ || is_done(i)) {
            continue;
        }
        lose_task(i, *late);
        core.running = nullptr;
        late->task.status = PTOWSP_SYSTEM_FAILED;
        complete(late, thread);
    }
}

void Scheduler::open_lines(uint32_t thread) {
    for (const CoreState &core : cores_) {
        if (core.owner == thread) {
            pwsp_aicpu_open_line(core.core.line);
            if (core.core.bell) {
                core.core.bell->ring();
            }
        }
    }
    const uint64_t since = now_ms();
    for (uint32_t i = 0; i < cores_.size();) {
        const uint32_t ticket = bells_[thread].ticket();
        if (cores_[i].owner != thread || pwsp_aicpu_sees_core(cores_[i].core.line, i)) {
            i++;
        } else if (time_limit_ms_ && now_ms() - since > time_limit_ms_) {
            char what[80];
            snprintf(what, sizeof what, "run: core %" PRIu32 " (%s) has not begun to poll", i,
                     ptowsp_unit_name(static_cast<ptowsp_unit>(cores_[i].core.unit)));
            lose(i++, PTOWSP_NO_INDEX, what);
            std::lock_guard<std::mutex> guard(mutex_);
            stop_behind(0);
        } else {
            pause(thread, ticket);
        }
    }
}

void Scheduler::close_lines(uint32_t thread) {
    for (const CoreState &core : cores_) {
        if (core.owner == thread && is_lost(core.is_lost)) {
            pwsp_aicpu_quit_lost_line(core.core.line);
        } else if (core.owner == thread) {
            pwsp_aicpu_quit_line(core.core.line);
            if (core.core.bell) {
                core.core.bell->ring();
            }
        }
    }
}

void Scheduler::serve(uint32_t thread) {
    open_lines(thread);
    for (;;) {
        const uint32_t ticket = bells_[thread].ticket();
        if (__atomic_load_n(&is_stopping_, __ATOMIC_ACQUIRE)) {
            break;
        }
        if (!step(thread)) {
            pause(thread, ticket);
        }
    }
    close_lines(thread);
}

void Scheduler::stop() {
    __atomic_store_n(&is_stopping_, 1u, __ATOMIC_RELEASE);
    for (uint32_t i = 0; i < thread_count_; i++) {
        bells_[i].ring();
    }
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

pwsp_arrival Scheduler::arrival_of(const Submission &submission) const {
    const wsp_task &task = submission.task;
    const ptowsp_unit unit = static_cast<ptowsp_unit>(program_->kernels[task.kernel].unit);
    return {task.cycles,
            submission.dispatch_key,
            submission.priority_key,
            submission.stream_key,
            submission.tiles,
            nullptr,  // axis values and scalars are for records, which trees do not make
            nullptr,
            submission.after.data(),
            submission.before.data(),
            task.tile_count,
            static_cast<uint32_t>(submission.after.size()),
            static_cast<uint32_t>(submission.before.size()),
            task.kernel,
            submission.place,
            pwsp_schedule_unit_pool(&timed_.schedule, timed_.pool_count, unit),
            unit};
}

bool Scheduler::retire_task(const Submission &submission) {
    if (submission.task.status != PTOWSP_OK) {
        fail_task(submission);
        return false;
    }
#if WSP_HAS_CLOCK
    return check_clock(clock_.task(arrival_of(submission)));
#else
    return true;
#endif
}

// The oldest task is done: tells the clock.
bool Scheduler::retire(void *self, const pwsp_entry *entry) {
    Scheduler &me = *static_cast<Scheduler *>(self);
    bool is_good = true;
    switch (entry->kind) {
    case PWSP_ENTRY_TASK: return me.retire_task(*submission_of(entry));
#if WSP_HAS_CLOCK
    case PWSP_ENTRY_PARALLEL: return me.check_clock(me.clock_.scope_begin(true));
    case PWSP_ENTRY_SEQUENTIAL: return me.check_clock(me.clock_.scope_begin(false));
    case PWSP_ENTRY_RESET:
        is_good = me.check_clock(me.clock_.reset(me.resets_.front().data(),
                                                 static_cast<uint32_t>(me.resets_.front().size())));
        me.resets_.pop_front();
        break;
    case PWSP_ENTRY_LOAD:
        is_good = me.check_clock(me.clock_.slot_load(me.elements_.front()));
        me.elements_.pop_front();
        break;
    default:  // trees have no rings, and processes run their tasks at once
        PTOWSP_ASSERT(entry->kind == PWSP_ENTRY_SCOPE_END);
        return me.check_clock(me.clock_.scope_end());
#else
    case PWSP_ENTRY_RESET: me.resets_.pop_front(); break;
    case PWSP_ENTRY_LOAD: me.elements_.pop_front(); break;
    default: break;  // scopes
#endif
    }
    return is_good;
}

// Waits, on thread 0, until something has been completed.
void Scheduler::help(void *self, uint32_t ticket) {
    Scheduler &me = *static_cast<Scheduler *>(self);
    const uint32_t bell_ticket = me.bells_[0].ticket();
    if (pwsp_reorder_ticket(&me.issue_.reorder) == ticket && !me.step(0)) {
        me.pause(0, bell_ticket);
    }
}

// -- thread 0: submitting -------------------------------------------------------------------------

bool Scheduler::good() const {
    return __atomic_load_n(&has_failed_, __ATOMIC_RELAXED) == 0;
}

// Tasks before the failure go on, and may fail as well.
void Scheduler::fail(ptowsp_status status, uint64_t index, const char *text) {
    std::lock_guard<std::mutex> guard(mutex_);
    walk_failure_.set(status, index, "%s", text);
    __atomic_store_n(&has_failed_, 1u, __ATOMIC_RELAXED);
}

void Scheduler::prepare(Submission *submission) {
    wsp_task &task = submission->task;
    task.axis_count = task.tile_count = task.scalar_count = 0;
    task.cycles = 0;
    task.status = PTOWSP_OK;
    task.fault = 0;
    submission->place = 0;
    submission->dispatch_key = submission->priority_key = submission->stream_key = 0;
    submission->after.clear();
    submission->before.clear();
    submission->is_direct = false;
    submission->is_done = 0;
}

Submission *Scheduler::open() {
    pwsp_entry *entry = pwsp_issue_open(&issue_, PWSP_ENTRY_TASK);
    if (!entry) {
        prepare(&scratch_);
        return &scratch_;
    }
    const uint64_t slot = task_number_ % issue_.desc.task_max;
    if (slot == slots_.size()) {
        slots_.emplace_back();
    }
    Submission *submission = &slots_[slot];
    *pwsp_entry_words(entry) = reinterpret_cast<uintptr_t>(submission);
    prepare(submission);
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
    const pwsp_arrival arrival = arrival_of(*submission);
    entry->index = submission->task.index;
    entry->kernel = arrival.kernel;
    entry->unit = arrival.unit;
    pwsp_issue_submit(&issue_, &arrival);
    ring_marked();
    step(0);
}

// Submits an entry that is not a task. False after a failure.
bool Scheduler::mark(pwsp_entry_kind kind, const pwsp_arrival *arrival) {
    if (!pwsp_issue_open(&issue_, kind)) {
        return false;
    }
    if (kind == PWSP_ENTRY_RESET) {
        resets_.emplace_back(arrival->after, arrival->after + arrival->after_count);
    } else if (kind == PWSP_ENTRY_LOAD) {
        elements_.push_back(arrival->tiles[0]);
    }
    const bool is_good = pwsp_issue_submit(&issue_, arrival);
    ring_marked();
    return is_good;
}

void Scheduler::scope_begin(bool is_parallel) {
    mark(is_parallel ? PWSP_ENTRY_PARALLEL : PWSP_ENTRY_SEQUENTIAL, nullptr);
}

void Scheduler::scope_end() {
    mark(PWSP_ENTRY_SCOPE_END, nullptr);
}

void Scheduler::reset(const uint32_t *edges, uint32_t count) {
    pwsp_arrival arrival = pwsp_arrival();
    arrival.after = edges;
    arrival.after_count = count;
    mark(PWSP_ENTRY_RESET, &arrival);
}

bool Scheduler::await_element(const Region &element) {
    pwsp_arrival arrival = pwsp_arrival();
    arrival.tiles = &element;
    arrival.tile_count = 1;
    return mark(PWSP_ENTRY_LOAD, &arrival) && good() && fetch(element);
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
#if WSP_HAS_CLOCK
    const bool has_ended = clock_.end();
    if (failure_.status == PTOWSP_OK) {
        check_clock(has_ended);
    }
#endif
    return failure_.status == PTOWSP_OK;
}

ptowsp_status Scheduler::run_now(Submission *submission, uint64_t *out_cycles) {
    submission->is_direct = true;
    submission->number = 0;
    submission->task.core = NONE;
    {
        std::lock_guard<std::mutex> guard(mutex_);
        submission->task.index = next_index_++;
        push_ready(submission);
    }
    ring_marked();
    for (;;) {
        const uint32_t ticket = bells_[0].ticket();
        if (__atomic_load_n(&submission->is_done, __ATOMIC_ACQUIRE)) {
            break;
        }
        if (thread_count_ > 1 || !step(0)) {
            pause(0, ticket);
        }
    }
    if (submission->task.status != PTOWSP_OK) {
        fail_task(*submission);
    }
    *out_cycles = submission->task.cycles;
    return static_cast<ptowsp_status>(submission->task.status);
}

}  // namespace wsp
