// The vocabulary of expand.cpp: see wsp_expand.h. It walks a program as the library does, and
// reports errors with the same texts.
//
// A task is filled in where the scheduler keeps it. An argument that reads outside of an array
// fails before its function is called. Then the target is no longer good, and nothing happens until
// the loops have ended.

#include "wsp_expand.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace wsp {

// -- tasks on their way -----------------------------------------------------------------------------

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

void Submission::clear() {
    task.axis_count = task.tile_count = task.scalar_count = 0;
    task.cycles = 0;
    task.status = PTOWSP_OK;
    task.fault = 0;
    place = 0;
    dispatch_key = priority_key = stream_key = 0;
    after.clear();
    before.clear();
    is_direct = false;
    is_done = 0;
}

namespace {

void print_place(const void *user, uint32_t node, ptowsp_output text) {
    const wsp_program *program = static_cast<const wsp_program *>(user);
    pwsp_text_format(text, "%s", node < program->place_count ? program->places[node] : "");
}

}  // namespace

void Facts::begin(const wsp_program &program) {
    program_ = &program;
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
}

pwsp_arrival Facts::arrival_of(const Submission &submission) const {
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
            pool_of(unit),
            unit,
            nullptr};
}

// -- plans ----------------------------------------------------------------------------------------

Plans::Plans(const wsp_program &program, const wsp_bindings &bindings, Target &target)
    : program_(&program), bindings_(&bindings) {
    const pwsp_memory memory = pwsp_memory_make(nullptr, nullptr);
    rooms_.resize(program.axis_count);
    for (uint32_t i = 1; i < program.axis_count && target.good(); i++) {
        ptowsp_attention_plan plan = ptowsp_attention_plan();
        pwsp_error error;
        if (batch(i) && pwsp_plan_make(&error, program.axes[i].name, &memory, batch(i), &rooms_[i],
                                       &plan) != PTOWSP_OK) {
            target.fail(error.status, error.index, error.text);
        } else if (batch(i)) {
            enter(i, plan);
        }
    }
}

Plans::~Plans() {
    const pwsp_memory memory = pwsp_memory_make(nullptr, nullptr);
    for (uint32_t i = 1; i < program_->axis_count; i++) {
        if (batch(i)) {
            enter(i, ptowsp_attention_plan());
            pwsp_plan_room_free(&memory, &rooms_[i]);
        }
    }
}

const pwsp_plan_batch *Plans::batch(uint32_t axis) const {
    const pwsp_plan_batch *batches = reinterpret_cast<const pwsp_plan_batch *>(bindings_->batches);
    return batches && batches[axis].is_bound ? &batches[axis] : nullptr;
}

void Plans::enter(uint32_t axis, const ptowsp_attention_plan &plan) {
    enter_plan(*program_, program_->axes[axis].name, plan,
               reinterpret_cast<int64_t *>(bindings_->sizes),
               reinterpret_cast<pwsp_array *>(bindings_->arrays));
}

// -- runs -----------------------------------------------------------------------------------------

Run::Run(const wsp_program &program, const wsp_bindings &bindings, Target &target)
    : program_(&program), bindings_(&bindings), target_(&target) {
    const uint64_t *slots = reinterpret_cast<const uint64_t *>(bindings.slots);
    slots_.assign(slots, slots + program.slot_count);
    length_sums_.resize(program.array_count);
    for (uint32_t i = 1; i < program.array_count; i++) {
        const pwsp_array &lengths = array(i);
        for (uint64_t j = 0; program.arrays[i].is_lengths && j < lengths.count; j++) {
            length_sums_[i] = length_sums_[i] + i64::of_bits(pwsp_array_at(&lengths, j));
        }
    }
}

Run::Run(const Run &around, Target &target)
    : program_(around.program_), bindings_(around.bindings_), target_(&target),
      place_(around.place_), slots_(around.slots_), length_sums_(around.length_sums_) {
}

void Run::fail(ptowsp_status status, uint64_t index, const char *format, ...) {
    char text[sizeof Failure().text];
    const char *place = place_ < program_->place_count ? program_->places[place_] : "";
    const int used = snprintf(text, sizeof text, "%s%s", place, *place ? ": " : "");
    if (used >= 0 && static_cast<size_t>(used) < sizeof text) {
        va_list args;
        va_start(args, format);
        vsnprintf(text + used, sizeof text - static_cast<size_t>(used), format, args);
        va_end(args);
    }
    target_->fail(status, index, text);
}

// Once a task has all its arguments, the next reads are its keys: an error then says so.
uint64_t Run::read(uint32_t array, i64 index) {
    const pwsp_array &from = this->array(array);
    if (index.bits() < from.count) {
        return pwsp_array_at(&from, index.bits());
    }
    const wsp_kernel *kernel = task_ ? &program_->kernels[task_->task.kernel] : nullptr;
    const bool is_key = kernel && task_->task.axis_count == kernel->axis_count &&
                        task_->task.tile_count == kernel->tile_count &&
                        task_->task.scalar_count == kernel->scalar_count;
    pwsp_error error;
    pwsp_read_fail(&error, is_key, program_->arrays[array].name, &from, index.value());
    fail(error);
    return 0;
}

i64 Run::length(uint32_t array, i64 row, uint32_t place) {
    pwsp_error error;
    int64_t length = 0;
    at(place);
    if (good() && pwsp_row_length(&error, program_->arrays[array].name, &this->array(array),
                                  row.value(), &length) != PTOWSP_OK) {
        fail(error);
    }
    return length;
}

void Run::check_replicas(uint32_t axis, uint32_t place) {
    at(place);
    if (good() && size(axis) == 0) {
        fail(PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
             "axis %s has size 0, so that there is no replica", program_->axes[axis].name);
    }
}

i64 Run::length_sum(uint32_t array) {
    return length_sums_[array];
}

Entries Run::entries(uint32_t axis) {
    return Entries(*this, axis, 0, csr(axis).entry_count);
}

Entries Run::entries(uint32_t axis, i64 row, uint32_t place) {
    pwsp_error error;
    uint64_t first = 0, end = 0;
    at(place);
    if (good() && pwsp_row_entries(&error, program_->axes[axis].name, &csr(axis), row.value(),
                                   &first, &end) != PTOWSP_OK) {
        fail(error);
    }
    return Entries(*this, axis, first, end);
}

Units Run::units(uint32_t axis) {
    return Units(*this, axis, 0, size(axis).bits());
}

Units Run::units(uint32_t axis, i64 lane, uint32_t place) {
    const wsp_axis_decl &plan = program_->axes[axis];
    pwsp_error error;
    uint64_t first = 0, end = 0;
    at(place);
    if (good() && pwsp_row_work(&error, plan.name, &array(plan.array + 1), lane.value(),
                                size(axis).bits(), &first, &end) != PTOWSP_OK) {
        fail(error);
    }
    return Units(*this, axis, first, end);
}

template <> void Entries::Iterator::find() {
    if (at_ < end_) {
        item_.index = i64::of_bits(pwsp_array_at(&run_->csr(axis_).indices, at_));
        item_.entry = i64::of_bits(at_);
    }
}

template <> void Units::Iterator::find() {
    const pwsp_array &flags = run_->array(run_->program().axes[axis_].array);
    while (at_ < end_ && (pwsp_array_at(&flags, at_) & PTOWSP_WORK_INVALID)) {
        at_++;
    }
    item_ = i64::of_bits(at_);
}

template <typename Item> bool Items<Item>::Iterator::operator!=(const Iterator &end) const {
    return at_ != end.at_ && run_->good();
}

template bool Items<Entry>::Iterator::operator!=(const Iterator &end) const;
template bool Items<i64>::Iterator::operator!=(const Iterator &end) const;

// -- tiles ----------------------------------------------------------------------------------------

// Finds a tile; at the tensor's edge it is smaller. False with an error.
bool Run::find_tile(const char *param, uint32_t tensor, std::initializer_list<i64> lead, i64 row,
                    const Extent &rows, i64 col, const Extent &cols, Region *out) {
    const pwsp_bound_tensor &bound = this->tensor(tensor);
    bool is_inside = true;
    uint32_t count = 0;
    out->tensor = tensor;
    out->lead = 0;
    for (i64 index : lead) {
        is_inside &= pwsp_view_lead(&bound, count++, index.value(), &out->lead);
    }
    const pwsp_view_size size = {rows.size, cols.size, rows.most.value(), cols.most.value()};
    if (is_inside && pwsp_view_tile(&bound, row.value(), col.value(), &size, out)) {
        return true;
    }
    const char *name = program_->tensors[tensor].name;
    pwsp_error error;
    for (uint32_t i = 0; i < count; i++) {
        if (pwsp_view_fail_lead(&error, param, name, &bound, i, lead.begin()[i].value())) {
            fail(error);
            return false;
        }
    }
    pwsp_view_fail(&error, param, name, &bound, row.value(), col.value(), &size);
    fail(error);
    return false;
}

// -- slots, edges, scopes -------------------------------------------------------------------------

void Run::load_slot(uint32_t place, uint32_t slot, uint32_t tensor, std::initializer_list<i64> lead,
                    i64 row, Extent rows, i64 col, Extent cols, i64 r, i64 c) {
    Region element;
    at(place);
    if (!good() || !find_tile("the view", tensor, lead, row, rows, col, cols, &element)) {
        return;
    }
    pwsp_error error;
    if (pwsp_view_element(&error, r.value(), c.value(), &element) != PTOWSP_OK) {
        fail(error);
        return;
    }
    element.access = READ;
    if (target_->defer(slot, element)) {
        is_deferring_ = true;
    } else if (target_->await_element(element)) {
        slots_[slot] = pwsp_view_load(&this->tensor(tensor), &element);
    }
}

void Run::reset(std::initializer_list<uint32_t> edges) {
    if (good()) {
        target_->reset(edges.begin(), static_cast<uint32_t>(edges.size()));
    }
}

void Sizes::add(std::initializer_list<i64> sizes) {
    if (run_->good()) {
        all_.emplace_back();
        for (i64 size : sizes) {
            all_.back().push_back(size.value());
        }
    }
}

Scope::Scope(Run &run, ScopeKind kind) : run_(&run) {
    if (run.good()) {
        run.target().scope_begin(kind == PARALLEL);
    }
}

Scope::~Scope() {
    if (run_->good()) {
        run_->target().scope_end();
    }
}

When::When(Run &run, uint32_t slot, Compare compare, i64 value) : run_(&run) {
    const Condition condition = {slot, compare, value.value()};
    is_open_ = run.is_deferring_ && run.good() && run.target().condition_begin(condition);
    holds_ = is_open_ || condition.holds(run.slot_i64(slot).value());
}

When::~When() {
    if (is_open_) {
        run_->target().condition_end();
    }
}

// -- tasks ----------------------------------------------------------------------------------------

Task::Task(Run &run, uint32_t kernel, uint32_t place) : run_(&run) {
    run.place_ = place;
    run.task_ = run.target_->open();
    run.task_->place = place;
    run.task_->task.kernel = kernel;
    run.task_->task.model = run.bindings_->model;
}

void Task::axis(i64 value) {
    wsp_task &task = run_->task_->task;
    task.args[task.axis_count++] = value.bits();
}

void Task::tile(uint32_t tensor, Access access, std::initializer_list<i64> lead, i64 row,
                Extent rows, i64 col, Extent cols) {
    Submission &submission = *run_->task_;
    wsp_task &task = submission.task;
    const wsp_kernel &kernel = run_->program_->kernels[task.kernel];
    Region &region = submission.tiles[task.tile_count];
    if (!run_->good() || !run_->find_tile(kernel.tile_names[task.tile_count], tensor, lead, row,
                                          rows, col, cols, &region)) {
        return;
    }
    region.access = access;
    const pwsp_bound_tensor &bound = run_->tensor(tensor);
    const int64_t offset = offset_of(bound, region) * static_cast<int64_t>(bound.element_size);
    wsp_tile &tile = task.tiles[task.tile_count];
    tile.data = bound.base + static_cast<uint64_t>(offset);
    tile.row_stride = bound.row_stride;
    tile.col_stride = bound.col_stride;
    task.args[task.axis_count + 2 * task.tile_count] = region.rows;
    task.args[task.axis_count + 2 * task.tile_count + 1] = region.cols;
    task.tile_count++;
}

void Task::put_scalar(u64 value) {
    wsp_task &task = run_->task_->task;
    task.args[task.axis_count + 2 * task.tile_count + task.scalar_count++] = value.value();
}

i64 Task::arg(uint32_t i) const {
    const wsp_task &task = run_->task_->task;
    const uint32_t count = task.axis_count + 2 * task.tile_count + task.scalar_count;
    return i < count ? i64::of_bits(task.args[i]) : i64(0);
}

void Task::after(std::initializer_list<uint32_t> edges) {
    run_->task_->after.append(edges);
}

void Task::before(std::initializer_list<uint32_t> edges) {
    run_->task_->before.append(edges);
}

void Task::submit() {
    Submission *submission = run_->task_;
    run_->task_ = nullptr;
    if (run_->good()) {
        run_->target_->submit(submission);
    }
}

}  // namespace wsp
