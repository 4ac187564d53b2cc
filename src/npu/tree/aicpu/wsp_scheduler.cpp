// The scheduler: how a run begins, its threads, and what thread 0 does. See wsp_scheduler.h; how a
// task becomes ready and gets a core is in wsp_scheduler_ready.cpp.

#include "wsp_scheduler.h"

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>

namespace wsp {

#if WSP_HAS_CLOCK

namespace {

ClockTile clock_tile(const Region &region) {
    return {region.tensor,
            region.rows,
            region.cols,
            region.lead,
            region.row,
            region.col,
            (region.access & READ) != 0,
            (region.access & WRITE) != 0,
            false};
}

}  // namespace

#endif

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

bool Scheduler::begin(const wsp_program &program, const wsp_bindings &bindings,
                      const std::vector<Core> &cores, const SchedulerOptions &options) {
    const ptowsp_schedule &schedule = program.schedule;
    program_ = &program;
    bindings_ = &bindings;
    thread_count_ = options.aicpu_count;
    is_in_order_ = schedule.issue == PTOWSP_ISSUE_IN_ORDER;
    is_homed_ = schedule.dispatch != PTOWSP_DISPATCH_WORK_STEALING;
    is_stealing_ = schedule.ready == PTOWSP_READY_WORK_STEALING;
    has_priority_ = schedule.ready == PTOWSP_READY_PRIORITY;
    has_structure_ = (schedule.dependencies & PTOWSP_DEPENDENCIES_STRUCTURE) != 0;
    bells_ = std::make_unique<Bell[]>(thread_count_);
    for (uint32_t i = 0; i < cores.size(); i++) {
        const uint32_t owner = thread_count_ == 1 ? 0 : 1 + i % (thread_count_ - 1);
        const uint32_t unit = cores[i].unit;
        cores_.push_back({cores[i], owner, nullptr});
        unit_first_[unit] = unit_count_[unit] == 0 ? i : unit_first_[unit];
        unit_count_[unit]++;
        unit_owners_[unit] |= 1u << owner;
    }
    queues_.resize(cores.size() + 2);

    capacity_ = options.ring_size;
    const bool has_window =
        schedule.window > 0 && (schedule.window_policy == PTOWSP_WINDOW_STALL ||
                                schedule.window_policy == PTOWSP_WINDOW_DEFAULT);
    capacity_ = has_window ? std::min<uint64_t>(capacity_, schedule.window) : capacity_;
    nodes_.resize(capacity_);
    links_.resize(1);
    events_.resize(2 * capacity_ + 16);
    scopes_.push_back({false, {}, {}});  // around all
    edges_.resize(program.edge_count);
    streams_.resize(program.has_streams ? std::max(schedule.stream_count, 1u) : 0);
    uint64_t tile_max = 0;
    for (uint32_t i = 1; i < program.kernel_count; i++) {
        tile_max = std::max<uint64_t>(tile_max, program.kernels[i].tile_count);
    }
    regions_.begin(program, reinterpret_cast<const pwsp_bound_tensor *>(bindings.tensors),
                   capacity_ * tile_max);
#if WSP_HAS_CLOCK
    return begin_clock();
#else
    return true;
#endif
}

#if WSP_HAS_CLOCK

bool Scheduler::begin_clock() {
    const wsp_program &program = *program_;
    const pwsp_bound_tensor *tensors =
        reinterpret_cast<const pwsp_bound_tensor *>(bindings_->tensors);
    std::vector<ClockTensor> known(std::max(program.tensor_count, 1u), ClockTensor());
    for (uint32_t i = 1; i < program.tensor_count; i++) {
        ClockTensor &tensor = known[i];
        tensor.base = tensors[i].base;
        tensor.element_size = program.tensors[i].is_used ? tensors[i].element_size : 0;
        std::copy_n(tensors[i].lead_shape, PTOWSP_VIEW_LEAD_MAX, tensor.lead_shape);
        std::copy_n(tensors[i].lead_strides, PTOWSP_VIEW_LEAD_MAX, tensor.lead_strides);
        tensor.rows = tensors[i].rows;
        tensor.cols = tensors[i].cols;
        tensor.row_stride = tensors[i].row_stride;
        tensor.col_stride = tensors[i].col_stride;
        tensor.is_written = program.tensors[i].is_written != 0;
        tensor.is_loaded = program.tensors[i].is_loaded != 0;
    }
    const ClockProgram timed = {
        &program.schedule,        program.lane_count, program.is_priority_signed != 0,
        program.has_streams != 0, program.edge_count, program.scope_depth,
        program.pipeline_count};
    return check_clock(clock_.begin(timed, known.data(), static_cast<uint32_t>(known.size())));
}

bool Scheduler::check_clock(bool is_good) {
    if (!is_good) {
        std::lock_guard<std::mutex> guard(mutex_);
        failure_.set(clock_.status(), clock_.error_index(), "%s", clock_.error());
        stop_behind(head_);
    }
    return is_good;
}

#endif

// -- threads --------------------------------------------------------------------------------------

void Scheduler::open_lines(uint32_t thread) {
    for (const CoreState &core : cores_) {
        if (core.owner == thread) {
            open_line(core.core.line);
            if (core.core.bell) {
                core.core.bell->ring();
            }
        }
    }
    for (uint32_t i = 0; i < cores_.size();) {
        const uint32_t ticket = bells_[thread].ticket();
        if (cores_[i].owner != thread || is_polling(cores_[i].core.line, i)) {
            i++;
        } else {
            bells_[thread].wait(ticket);
        }
    }
}

void Scheduler::close_lines(uint32_t thread) {
    for (const CoreState &core : cores_) {
        if (core.owner == thread) {
            close_line(core.core.line);
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
            bells_[thread].wait(ticket);
        }
    }
    close_lines(thread);
}

void Scheduler::stop() {
    __atomic_store_n(&is_stopping_, 1u, __ATOMIC_RELEASE);
    ring_marked(UINT32_MAX);
}

// -- thread 0: retiring ---------------------------------------------------------------------------

// Goes on with the work of thread 0 until what it waits for has come.
template <typename IsDone> void Scheduler::wait_until(IsDone is_done_now) {
    for (;;) {
        const uint32_t ticket = bells_[0].ticket();
        retire();
        if (is_done_now()) {
            return;
        }
        if (!step(0)) {
            bells_[0].wait(ticket);
        }
    }
}

// A task has failed. What more is known of it than its status, its kernel says.
void Scheduler::fail_task(const Submission &submission) {
    const wsp_task &task = submission.task;
    const ptowsp_status status = static_cast<ptowsp_status>(task.status);
    const char *place = place_text(submission.place);
    const char *more = task.fault ? wsp_core_fault_text(task.kernel, task.fault) : "";
    std::lock_guard<std::mutex> guard(mutex_);
    if (more && more[0]) {
        failure_.set(status, task.index, "%s: task %" PRIu64 ": %s", place, task.index, more);
    } else {
        failure_.set(status, task.index, "%s: task %" PRIu64 " failed: %s", place, task.index,
                     ptowsp_status_name(status));
    }
    stop_behind(submission.number);
}

void Scheduler::retire_task(const Submission &submission) {
    const wsp_task &task = submission.task;
    if (task.status != PTOWSP_OK) {
        fail_task(submission);
        return;
    }
#if WSP_HAS_CLOCK
    ClockTile tiles[PTOWSP_TASK_TILE_MAX];
    for (uint32_t i = 0; i < task.tile_count; i++) {
        tiles[i] = clock_tile(submission.tiles[i]);
    }
    const ClockTask timed = {task.cycles,
                             submission.dispatch_key,
                             submission.priority_key,
                             submission.stream_key,
                             static_cast<ptowsp_unit>(program_->kernels[task.kernel].unit),
                             submission.place,
                             tiles,
                             task.tile_count,
                             submission.after.data(),
                             static_cast<uint32_t>(submission.after.size()),
                             submission.before.data(),
                             static_cast<uint32_t>(submission.before.size())};
    check_clock(clock_.task(timed));
#endif
}

// The oldest event; false if it is a task that is not done. After a failure nothing is told.
bool Scheduler::retire_one(const Event &event) {
    if (event.kind == TASK) {
        const Submission &submission = slots_[head_ % capacity_];
        if (!__atomic_load_n(&submission.is_done, __ATOMIC_ACQUIRE)) {
            return false;
        }
        if (failure_.status == PTOWSP_OK) {
            retire_task(submission);
        }
        head_++;
        return true;
    }
#if WSP_HAS_CLOCK
    if (failure_.status != PTOWSP_OK) {
        return true;
    }
    switch (event.kind) {
    case PARALLEL:
    case SEQUENTIAL: check_clock(clock_.scope_begin(event.kind == PARALLEL)); break;
    case SCOPE_END: check_clock(clock_.scope_end()); break;
    case RESET:
        check_clock(clock_.reset(event.edges.data(), static_cast<uint32_t>(event.edges.size())));
        break;
    case SLOT_LOAD: check_clock(clock_.slot_load(clock_tile(event.element))); break;
    case TASK: break;
    }
#endif
    return true;
}

void Scheduler::retire() {
    while (first_event_ < end_event_ && retire_one(events_[first_event_ % events_.size()])) {
        first_event_++;
    }
}

// -- thread 0: submitting -------------------------------------------------------------------------

bool Scheduler::good() const {
    return __atomic_load_n(&has_failed_, __ATOMIC_RELAXED) == 0;
}

// What is before the failure goes on, and may fail as well.
void Scheduler::fail(ptowsp_status status, uint64_t index, const char *text) {
    std::lock_guard<std::mutex> guard(mutex_);
    walk_failure_.set(status, index, "%s", text);
    __atomic_store_n(&has_failed_, 1u, __ATOMIC_RELAXED);
}

Scheduler::Event *Scheduler::add_event(EventKind kind) {
    if (end_event_ - first_event_ == events_.size()) {
        wait_until([this] { return end_event_ - first_event_ < events_.size(); });
    }
    Event *event = &events_[end_event_ % events_.size()];
    end_event_++;
    event->kind = kind;
    return event;
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
    retire();
    if (tail_ - head_ == capacity_) {
        wait_until([this] { return tail_ - head_ < capacity_; });
    }
    const uint64_t slot = tail_ % capacity_;
    if (slot == slots_.size()) {
        slots_.emplace_back();
    }
    Submission *submission = &slots_[slot];
    prepare(submission);
    return submission;
}

void Scheduler::submit(Submission *submission) {
    add_event(TASK);
    uint32_t owners;
    submission->number = tail_++;
    submission->task.core = home_of(*submission);
    {
        std::lock_guard<std::mutex> guard(mutex_);
        submission->task.index = next_index_++;
        connect(submission);
        owners = owners_to_ring_;
        owners_to_ring_ = 0;
    }
    in_flight_max_ = std::max(in_flight_max_, static_cast<uint32_t>(tail_ - head_));
    ring_marked(owners);
    step(0);
}

void Scheduler::scope_begin(bool is_parallel) {
    add_event(is_parallel ? PARALLEL : SEQUENTIAL);
    scopes_.push_back({is_parallel, scopes_.back().ready, {}});
}

void Scheduler::scope_end() {
    add_event(SCOPE_END);
    const OpenScope scope = scopes_.back();
    scopes_.pop_back();
    if (has_structure_) {
        std::lock_guard<std::mutex> guard(mutex_);
        child_begins(scope.done.id ? scope.done : scope.ready);
    }
}

void Scheduler::reset(const uint32_t *edges, uint32_t count) {
    Event *event = add_event(RESET);
    event->edges.assign(edges, edges + count);
    for (uint32_t i = 0; i < count; i++) {
        edges_[edges[i]] = Token();
    }
}

bool Scheduler::await_element(const Region &element) {
    add_event(SLOT_LOAD)->element = element;
    Token token;
    {
        std::lock_guard<std::mutex> guard(mutex_);
        const uint32_t join = make_join();
        token = {join, nodes_[join].id};
        nodes_[join].pending = 1;
        regions_.meet(element, [&](uint32_t owner) { wait_for({owner, nodes_[owner].id}, join); });
        if (--nodes_[join].pending == 0) {
            release(join);
        }
    }
    wait_until([&] {
        std::lock_guard<std::mutex> guard(mutex_);
        return is_over(token);
    });
    return good();
}

bool Scheduler::settle() {
    wait_until([this] { return first_event_ == end_event_; });
    return good();
}

bool Scheduler::finish() {
    settle();
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
    uint32_t owners;
    submission->is_direct = true;
    submission->number = 0;
    submission->task.core = NONE;
    {
        std::lock_guard<std::mutex> guard(mutex_);
        submission->task.index = next_index_++;
        push_ready(submission);
        owners = owners_to_ring_;
        owners_to_ring_ = 0;
    }
    ring_marked(owners);
    for (;;) {
        const uint32_t ticket = bells_[0].ticket();
        if (__atomic_load_n(&submission->is_done, __ATOMIC_ACQUIRE)) {
            break;
        }
        if (thread_count_ > 1 || !step(0)) {
            bells_[0].wait(ticket);
        }
    }
    if (submission->task.status != PTOWSP_OK) {
        fail_task(*submission);
    }
    *out_cycles = submission->task.cycles;
    return static_cast<ptowsp_status>(submission->task.status);
}

}  // namespace wsp
