// The vocabulary of expand.cpp: see wsp_expand.h. It does what the walk of the library does, and
// reports errors with the same texts.
//
// A task is filled in where the scheduler keeps it. An argument that reads outside of an array
// fails before the function it is for is called. Then the target is no longer good, and nothing
// happens until the loops have ended.

#include "wsp_expand.h"

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace wsp {

namespace {

// The index of an error, for one that may be below 0.
uint64_t error_index(i64 value) {
    return value.value() < 0 ? PTOWSP_NEGATIVE_INDEX : value.bits();
}

}  // namespace

bool walk(const wsp_program &program, const wsp_bindings &bindings, Scheduler *scheduler) {
    Run run(program, bindings, *scheduler);
    program.expand(run);
    const bool is_good = scheduler->finish();
    std::copy(run.slots().begin(), run.slots().end(), reinterpret_cast<uint64_t *>(bindings.slots));
    return is_good;
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
    const int used = snprintf(
        text, sizeof text, "%s: ", place_ < program_->place_count ? program_->places[place_] : "");
    if (used > 0 && static_cast<size_t>(used) < sizeof text) {
        va_list args;
        va_start(args, format);
        vsnprintf(text + used, sizeof text - static_cast<size_t>(used), format, args);
        va_end(args);
    }
    target_->fail(status, index, text);
}

// A task that has all its arguments goes on with its keys.
uint64_t Run::read(uint32_t array, i64 index) {
    const pwsp_array &from = this->array(array);
    if (index.bits() < from.count) {
        return pwsp_array_at(&from, index.bits());
    }
    const wsp_kernel_decl *kernel = task_ ? &program_->kernels[task_->task.kernel] : nullptr;
    const bool is_key = kernel && task_->task.axis_count == kernel->axis_count &&
                        task_->task.tile_count == kernel->tile_count &&
                        task_->task.scalar_count == kernel->scalar_count;
    fail(PTOWSP_INVALID_PARAMS, error_index(index),
         is_key ? "a key of the schedule reads array %s at %" PRId64 "; it has %" PRIu64 " elements"
                : "array %s is read at %" PRId64 "; it has %" PRIu64 " elements",
         program_->arrays[array].name, index.value(), from.count);
    return 0;
}

i64 Run::size(uint32_t axis) const {
    return reinterpret_cast<const int64_t *>(bindings_->sizes)[axis];
}

u64 Run::symbol(uint32_t symbol) const {
    return reinterpret_cast<const uint64_t *>(bindings_->symbols)[symbol];
}

// Lengths were checked when the run began; a kernel may have overwritten them since then.
i64 Run::length(uint32_t array, i64 row, uint32_t place) {
    place_ = place;
    if (!good()) {
        return 0;
    }
    const pwsp_array &lengths = this->array(array);
    const char *name = program_->arrays[array].name;
    if (row.bits() >= lengths.count) {
        fail(PTOWSP_INVALID_PARAMS, error_index(row),
             "row %" PRId64 " of axis %s, which has %" PRIu64, row.value(), name, lengths.count);
        return 0;
    }
    const i64 length = i64::of_bits(pwsp_array_at(&lengths, row.bits()));
    if (length < 0) {
        fail(PTOWSP_INVALID_PARAMS, error_index(row),
             "row %" PRId64 " of axis %s was changed during the run, and is malformed now",
             row.value(), name);
        return 0;
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
    place_ = place;
    const pwsp_bound_csr &from = csr(axis);
    if (!good()) {
        return Entries(*this, axis, 0, 0);
    }
    if (row.bits() >= from.row_count) {
        fail(PTOWSP_INVALID_PARAMS, error_index(row),
             "row %" PRId64 " of axis %s, which has %" PRIu64, row.value(),
             program_->axes[axis].name, from.row_count);
        return Entries(*this, axis, 0, 0);
    }
    const uint64_t first = pwsp_array_at(&from.indptr, row.bits());
    const uint64_t end = pwsp_array_at(&from.indptr, row.bits() + 1);
    if (first > end || end > from.indices.count) {
        fail(PTOWSP_INVALID_PARAMS, error_index(row),
             "row %" PRId64 " of axis %s was changed during the run, and is malformed now",
             row.value(), program_->axes[axis].name);
        return Entries(*this, axis, 0, 0);
    }
    return Entries(*this, axis, first, end);
}

Entries::Iterator::Iterator(const Run &run, uint32_t axis, uint64_t at, uint64_t end)
    : run_(&run), axis_(axis), at_(at), end_(end) {
    read();
}

void Entries::Iterator::read() {
    if (at_ < end_) {
        entry_.index = i64::of_bits(pwsp_array_at(&run_->csr(axis_).indices, at_));
        entry_.entry = i64::of_bits(at_);
    }
}

Entries::Iterator &Entries::Iterator::operator++() {
    at_++;
    read();
    return *this;
}

bool Entries::Iterator::operator!=(const Iterator &end) const {
    return at_ != end.at_ && run_->good();
}

Units Run::units(uint32_t axis) {
    return Units(*this, axis, 0, size(axis).bits());
}

Units Run::units(uint32_t axis, i64 lane, uint32_t place) {
    place_ = place;
    const pwsp_array &lanes = array(program_->axes[axis].array + 1);
    const uint32_t *begin = static_cast<const uint32_t *>(lanes.data);
    const char *name = program_->axes[axis].name;
    if (!good()) {
        return Units(*this, axis, 0, 0);
    }
    if (lane.bits() >= lanes.range_count) {
        fail(PTOWSP_INVALID_PARAMS, error_index(lane),
             "lane %" PRId64 " of plan %s, which has %" PRIu32, lane.value(), name,
             lanes.range_count);
        return Units(*this, axis, 0, 0);
    }
    const uint64_t first = begin[lane.bits()], end = begin[lane.bits() + 1];
    if (first > end || end > size(axis).bits()) {
        fail(PTOWSP_INVALID_PARAMS, error_index(lane),
             "lane %" PRId64 " of plan %s was changed during the run, and is malformed now",
             lane.value(), name);
        return Units(*this, axis, 0, 0);
    }
    return Units(*this, axis, first, end);
}

void Units::Iterator::seek() {
    const pwsp_array &flags = run_->array(run_->program().axes[axis_].array);
    while (at_ < end_ && (pwsp_array_at(&flags, at_) & PTOWSP_WORK_INVALID)) {
        at_++;
    }
}

bool Units::Iterator::operator!=(const Iterator &end) const {
    return at_ != end.at_ && run_->good();
}

// -- tiles ----------------------------------------------------------------------------------------

// The reason why a view is outside its tensor, once that is known.
void Run::fail_view(const char *param, uint32_t tensor, std::initializer_list<i64> lead, i64 row,
                    const Extent &rows, i64 col, const Extent &cols) {
    const pwsp_bound_tensor &bound = this->tensor(tensor);
    const char *name = program_->tensors[tensor].name;
    uint32_t i = 0;
    for (i64 index : lead) {
        if (index.bits() >= static_cast<uint64_t>(bound.lead_shape[i])) {
            fail(PTOWSP_INVALID_PARAMS, error_index(index),
                 "%s: index %" PRIu32 " of tensor %s is %" PRId64 ", outside of its size %" PRId64,
                 param, i, name, index.value(), bound.lead_shape[i]);
            return;
        }
        i++;
    }
    if (row.bits() >= static_cast<uint64_t>(bound.rows)) {
        fail(PTOWSP_INVALID_PARAMS, error_index(row),
             "%s: row %" PRId64 " of tensor %s is outside of its %" PRId64 " rows", param,
             row.value(), name, bound.rows);
    } else if (col.bits() >= static_cast<uint64_t>(bound.cols)) {
        fail(PTOWSP_INVALID_PARAMS, error_index(col),
             "%s: column %" PRId64 " of tensor %s is outside of its %" PRId64 " columns", param,
             col.value(), name, bound.cols);
    } else if (rows.most < 1 || cols.most < 1) {
        const i64 least = rows.most < 1 ? rows.most : cols.most;
        fail(PTOWSP_INVALID_PARAMS, error_index(least),
             "%s: the tile of tensor %s has %" PRId64 " %s", param, name, least.value(),
             rows.most < 1 ? "rows" : "columns");
    } else {
        fail(PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
             "%s: the tile of tensor %s has 2^32 rows or columns", param, name);
    }
}

// Finds a tile; at the tensor's edge it is smaller. False with an error.
bool Run::find_tile(const char *param, uint32_t tensor, std::initializer_list<i64> lead, i64 row,
                    const Extent &rows, i64 col, const Extent &cols, Region *out) {
    const pwsp_bound_tensor &bound = this->tensor(tensor);
    bool is_outside = row.bits() >= static_cast<uint64_t>(bound.rows) ||
                      col.bits() >= static_cast<uint64_t>(bound.cols);
    i64 offset = 0;
    uint32_t i = 0;
    for (i64 index : lead) {
        is_outside |= index.bits() >= static_cast<uint64_t>(bound.lead_shape[i]);
        offset = offset + index * bound.lead_strides[i];
        i++;
    }
    int64_t row_count = 0, col_count = 0;
    if (!is_outside) {
        row_count = rows.of(bound.rows - row.value());
        col_count = cols.of(bound.cols - col.value());
        is_outside =
            row_count < 1 || col_count < 1 ||
            (static_cast<uint64_t>(row_count) | static_cast<uint64_t>(col_count)) > UINT32_MAX;
    }
    if (is_outside) {
        fail_view(param, tensor, lead, row, rows, col, cols);
        return false;
    }
    out->tensor = tensor;
    out->rows = static_cast<uint32_t>(row_count);
    out->cols = static_cast<uint32_t>(col_count);
    out->lead = offset.value();
    out->row = row.value();
    out->col = col.value();
    return true;
}

// -- slots, edges, scopes -------------------------------------------------------------------------

void Run::load_slot(uint32_t place, uint32_t slot, uint32_t tensor, std::initializer_list<i64> lead,
                    i64 row, Extent rows, i64 col, Extent cols, i64 r, i64 c) {
    Region element;
    place_ = place;
    if (!good() || !find_tile("the view", tensor, lead, row, rows, col, cols, &element)) {
        return;
    }
    if (r.bits() >= element.rows || c.bits() >= element.cols) {
        fail(PTOWSP_INVALID_PARAMS, error_index(r),
             "element (%" PRId64 ", %" PRId64 ") of a tile of %" PRIu32 " x %" PRIu32, r.value(),
             c.value(), element.rows, element.cols);
        return;
    }
    element.access = READ;
    element.row += r.value();
    element.col += c.value();
    element.rows = element.cols = 1;
    if (!target_->await_element(element)) {
        return;
    }
    const pwsp_bound_tensor &bound = this->tensor(tensor);
    const int64_t offset = offset_of(bound, element) * static_cast<int64_t>(bound.element_size);
    const pwsp_array at = {bound.data + offset, 1, bound.dtype, true, 0, 0};
    slots_[slot] = pwsp_array_at(&at, 0);
}

void Run::reset(std::initializer_list<uint32_t> edges) {
    if (good()) {
        target_->reset(edges.begin(), static_cast<uint32_t>(edges.size()));
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
    const wsp_kernel_decl &kernel = run_->program_->kernels[task.kernel];
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

void Task::scalar(u64 value) {
    wsp_task &task = run_->task_->task;
    task.args[task.axis_count + 2 * task.tile_count + task.scalar_count++] = value.value();
}

void Task::scalar(i64 value) {
    scalar(to_u64(value));
}

void Task::scalar(bool value) {
    scalar(to_u64(value));
}

i64 Task::arg(uint32_t i) const {
    const wsp_task &task = run_->task_->task;
    const uint32_t count = task.axis_count + 2 * task.tile_count + task.scalar_count;
    return i < count ? i64::of_bits(task.args[i]) : i64(0);
}

void Task::dispatch(u64 key) {
    run_->task_->dispatch_key = key.value();
}

void Task::dispatch(i64 key) {
    dispatch(to_u64(key));
}

void Task::dispatch(bool key) {
    dispatch(to_u64(key));
}

void Task::priority(u64 key) {
    run_->task_->priority_key = key.value();
}

void Task::priority(i64 key) {
    priority(to_u64(key));
}

void Task::priority(bool key) {
    priority(to_u64(key));
}

void Task::stream(u64 key) {
    run_->task_->stream_key = key.value();
}

void Task::stream(i64 key) {
    stream(to_u64(key));
}

void Task::stream(bool key) {
    stream(to_u64(key));
}

void Task::after(std::initializer_list<uint32_t> edges) {
    run_->task_->after.insert(run_->task_->after.end(), edges);
}

void Task::before(std::initializer_list<uint32_t> edges) {
    run_->task_->before.insert(run_->task_->before.end(), edges);
}

void Task::submit() {
    Submission *submission = run_->task_;
    run_->task_ = nullptr;
    if (run_->good()) {
        run_->target_->submit(submission);
    }
}

}  // namespace wsp
