// See wsp_clock.h. This file gives what it is told to the library's simulated time (pwsp_timeline),
// as the library's own walk of a program does.
//
// One thing differs. Where tasks begin to start only when many have been issued, and issue takes
// time, time in order has to know beforehand when that will be; the library walks the program
// once more to count. A tree runs only once: so all that is told is held back until enough tasks
// have come, or the end.
//
//      task, scope_begin, ...  ->  [held back, until the gate is known]  ->  time

#include "wsp_core.h"  // first: it has a say in what ptowsp.h declares

#include "wsp_clock.h"

#include <cinttypes>

namespace wsp {
namespace {

enum class EventKind : uint8_t { ScopeBegin, ScopeEnd, Reset, Task, SlotLoad, Pipeline };

// What has been told and is held back. Tiles and edges are in lists of the clock.
struct Event {
    EventKind kind;
    bool is_parallel;
    ClockPipeline at;  // of a task: the whole
    uint64_t first_tile, first_after, first_before;
};

// An array that grows; zeroed.
template <typename Item> struct List {
    Item *items;
    uint64_t count, capacity;

    // Makes room for more items behind the last; NULL when memory is out.
    Item *add(const pwsp_memory *memory, uint64_t more) {
        void *array = items;
        if (!pwsp_memory_grow(memory, &array, &capacity, count + more + 1, sizeof(Item))) {
            return nullptr;
        }
        items = static_cast<Item *>(array);
        count += more;
        return items + (count - more);
    }

    void free(const pwsp_memory *memory) {
        pwsp_memory_free(memory, items, static_cast<size_t>(capacity) * sizeof(Item));
    }

    size_t bytes() const {
        return static_cast<size_t>(capacity) * sizeof(Item);
    }
};

}  // namespace

struct ClockState {
    pwsp_memory memory;
    pwsp_timed timed;
    bool is_held;  // what is told is held back
    bool has_ended;
    uint32_t depth;                                         // open scopes
    uint64_t slot_load_count, busy_cycles, channel_cycles;  // of pipelines
    uint64_t held_task_count;
    pwsp_timeline time;
    List<pwsp_bound_tensor> bound;  // from 1, as are the following
    List<bool> is_loaded, is_written;
    List<uint32_t> run_counts;  // by pipeline
    // Of the task that is being told:
    List<pwsp_tile_at> tiles;
    // Held back:
    List<Event> held;
    List<ClockTile> held_tiles;
    List<uint32_t> held_edges;
};

namespace {

void print_place(const void *, uint32_t node, ptowsp_text text) {
    pwsp_text_format(text, "node %" PRIu32, node);
}

bool is_good(const ClockState *s) {
    return s && s->time.sim.status == PTOWSP_OK && !s->has_ended;
}

void destroy(ClockState *s) {
    if (!s) {
        return;
    }
    const pwsp_memory memory = s->memory;
    pwsp_timeline_free(&s->time);
    s->bound.free(&memory);
    s->is_loaded.free(&memory);
    s->is_written.free(&memory);
    s->run_counts.free(&memory);
    s->tiles.free(&memory);
    s->held.free(&memory);
    s->held_tiles.free(&memory);
    s->held_edges.free(&memory);
    pwsp_memory_free(&memory, s, sizeof *s);
}

size_t bytes(const ClockState *s) {
    return sizeof *s + pwsp_timeline_bytes(&s->time) + s->bound.bytes() + s->is_loaded.bytes() +
           s->is_written.bytes() + s->run_counts.bytes() + s->tiles.bytes() + s->held.bytes() +
           s->held_tiles.bytes() + s->held_edges.bytes();
}

// -- beginning ------------------------------------------------------------------------------------

void set_program(ClockState *s, const ClockProgram &program, uint32_t tensor_count) {
    pwsp_timed *timed = &s->timed;
    timed->schedule = *program.schedule;
    timed->is_priority_signed = program.is_priority_signed;
    timed->has_streams = program.has_streams;
    timed->lane_count = program.lane_count;
    timed->scope_depth = program.scope_depth;
    timed->pipeline_count = program.pipeline_count;
    timed->tensor_count = tensor_count + 1;
    timed->edge_count = program.edge_count;
    timed->tensor_is_loaded = s->is_loaded.items;
    timed->tensor_is_written = s->is_written.items;
    timed->print_place = print_place;
}

// The library's tensors count from 1.
void set_tensors(ClockState *s, const ClockTensor *tensors, uint32_t tensor_count) {
    for (uint32_t i = 0; i < tensor_count; i++) {
        const ClockTensor *from = &tensors[i];
        pwsp_bound_tensor *to = &s->bound.items[i + 1];
        to->is_bound = from->element_size != 0;
        to->base = from->base;
        to->element_size = from->element_size;
        memcpy(to->lead_shape, from->lead_shape, sizeof to->lead_shape);
        memcpy(to->lead_strides, from->lead_strides, sizeof to->lead_strides);
        to->rows = from->rows;
        to->cols = from->cols;
        to->row_stride = from->row_stride;
        to->col_stride = from->col_stride;
        s->is_loaded.items[i + 1] = from->is_loaded;
        s->is_written.items[i + 1] = from->is_written;
    }
}

// False when memory is out.
bool init(ClockState *s, const ClockProgram &program, const ClockTensor *tensors,
          uint32_t tensor_count) {
    const pwsp_memory *memory = &s->memory;
    const uint64_t count = uint64_t{tensor_count} + 1;
    if (!s->bound.add(memory, count) || !s->is_loaded.add(memory, count) ||
        !s->is_written.add(memory, count) || !s->run_counts.add(memory, program.pipeline_count)) {
        return false;
    }
    set_program(s, program, tensor_count);
    set_tensors(s, tensors, tensor_count);
    if (!pwsp_timeline_init(&s->time, memory, &s->timed)) {
        return false;
    }
    pwsp_timeline_bind(&s->time, s->bound.items);
    s->is_held = pwsp_timeline_needs_count(&s->time);
    if (!pwsp_timeline_begin(&s->time, false, 0)) {
        return false;
    }
    s->depth = 1;
    return true;
}

// -- engines --------------------------------------------------------------------------------------

bool no_memory(ClockState *s) {
    return pwsp_sim_no_memory(&s->time.sim);
}

pwsp_tile_at tile_at(const ClockTile &tile) {
    const uint32_t access = (tile.is_read ? PWSP_TILE_READ : 0) |
                            (tile.is_written ? PWSP_TILE_WRITTEN : 0) |
                            (tile.is_loaded ? PWSP_TILE_LOADED : 0);
    return {tile.tensor + 1, tile.rows, tile.cols, access, tile.lead, tile.row, tile.col};
}

// A task or pipeline as time sees it. False when memory is out.
bool set_task(ClockState *s, const ClockTask &task, pwsp_arrival *arrival) {
    s->tiles.count = 0;
    pwsp_tile_at *tiles = s->tiles.add(&s->memory, task.tile_count);
    if (!tiles) {
        return no_memory(s);
    }
    for (uint32_t i = 0; i < task.tile_count; i++) {
        PTOWSP_ASSERT(task.tiles[i].tensor + 1 < s->timed.tensor_count);
        tiles[i] = tile_at(task.tiles[i]);
    }
    *arrival = {
        task.cycles, task.dispatch_key, task.priority_key, task.stream_key,  tiles,
        task.after,  task.before,       task.tile_count,   task.after_count, task.before_count,
        0,           task.node,         task.unit};
    return true;
}

bool do_task(ClockState *s, const ClockTask &task) {
    pwsp_arrival arrival;
    return set_task(s, task, &arrival) && pwsp_timeline_task(&s->time, &arrival);
}

bool do_pipeline(ClockState *s, const ClockPipeline &pipeline) {
    pwsp_pipeline_arrival arrival;
    if (!set_task(s, pipeline.whole, &arrival.whole)) {
        return false;
    }
    arrival.first_task = s->time.sim.task_count;
    arrival.task_count = pipeline.task_count;
    arrival.end_task = PTOWSP_NO_INDEX;
    arrival.pipeline = pipeline.pipeline;
    arrival.run = ++s->run_counts.items[pipeline.pipeline];
    s->time.sim.task_count += pipeline.task_count;
    return pwsp_timeline_pipeline(&s->time, &arrival);
}

bool do_slot_load(ClockState *s, const ClockTile &element) {
    const pwsp_tile_at at = tile_at(element);
    return pwsp_timeline_slot_load(&s->time, &at);
}

// -- holding back ---------------------------------------------------------------------------------

// Copies what a task points to. NULL when memory is out.
Event *hold(ClockState *s, EventKind kind, const ClockTask &task) {
    Event *event = s->held.add(&s->memory, 1);
    ClockTile *tiles = s->held_tiles.add(&s->memory, task.tile_count);
    uint32_t *edges = s->held_edges.add(&s->memory, uint64_t{task.after_count} + task.before_count);
    if (!event || !tiles || !edges) {
        no_memory(s);
        return nullptr;
    }
    for (uint32_t i = 0; i < task.tile_count; i++) {
        tiles[i] = task.tiles[i];
    }
    for (uint32_t i = 0; i < task.after_count; i++) {
        edges[i] = task.after[i];
    }
    for (uint32_t i = 0; i < task.before_count; i++) {
        edges[task.after_count + i] = task.before[i];
    }
    event->kind = kind;
    event->at.whole = task;
    event->first_tile = s->held_tiles.count - task.tile_count;
    event->first_before = s->held_edges.count - task.before_count;
    event->first_after = event->first_before - task.after_count;
    return event;
}

bool give(ClockState *s, Event &event) {
    ClockTask *task = &event.at.whole;
    task->tiles = s->held_tiles.items + event.first_tile;
    task->after = s->held_edges.items + event.first_after;
    task->before = s->held_edges.items + event.first_before;
    switch (event.kind) {
    case EventKind::ScopeBegin: return pwsp_timeline_scope_begin(&s->time, event.is_parallel);
    case EventKind::ScopeEnd: return pwsp_timeline_scope_end(&s->time);
    case EventKind::Reset: return pwsp_timeline_reset(&s->time, task->after, task->after_count);
    case EventKind::Task: return do_task(s, *task);
    case EventKind::SlotLoad: return do_slot_load(s, task->tiles[0]);
    case EventKind::Pipeline: return do_pipeline(s, event.at);
    }
    return true;
}

// The gate is known: gives what has been held back to the engine.
bool release(ClockState *s) {
    s->is_held = false;
    bool is_fine = pwsp_sim_set_gate(&s->time.sim, s->held_task_count);
    for (uint64_t i = 0; is_fine && i < s->held.count; i++) {
        is_fine = give(s, s->held.items[i]);
    }
    return is_fine;
}

}  // namespace

// -- the clock ------------------------------------------------------------------------------------

Clock::~Clock() {
    destroy(state_);
}

bool Clock::begin(const ClockProgram &program, const ClockTensor *tensors, uint32_t tensor_count) {
    destroy(state_);
    const pwsp_memory memory = pwsp_memory_make(nullptr, nullptr);
    state_ = static_cast<ClockState *>(pwsp_memory_alloc(&memory, sizeof(ClockState)));
    if (!state_) {
        return false;
    }
    state_->memory = memory;
    if (!init(state_, program, tensors, tensor_count)) {
        destroy(state_);
        state_ = nullptr;
        return false;
    }
    return true;
}

bool Clock::scope_begin(bool is_parallel) {
    if (!is_good(state_)) {
        return false;
    }
    if (state_->depth == state_->timed.scope_depth) {
        return pwsp_sim_fail(&state_->time.sim, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                             "clock: more than %" PRIu32 " scopes in one another", state_->depth);
    }
    state_->depth++;
    if (!state_->is_held) {
        return pwsp_timeline_scope_begin(&state_->time, is_parallel);
    }
    Event *event = hold(state_, EventKind::ScopeBegin, ClockTask());
    if (event) {
        event->is_parallel = is_parallel;
    }
    return event != nullptr;
}

bool Clock::scope_end() {
    if (!is_good(state_)) {
        return false;
    }
    if (state_->depth == 1) {
        return pwsp_sim_fail(&state_->time.sim, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                             "clock: no scope is open");
    }
    state_->depth--;
    return state_->is_held ? hold(state_, EventKind::ScopeEnd, ClockTask()) != nullptr
                           : pwsp_timeline_scope_end(&state_->time);
}

bool Clock::reset(const uint32_t *edges, uint32_t count) {
    if (!is_good(state_)) {
        return false;
    }
    if (state_->is_held) {
        ClockTask task = ClockTask();
        task.after = edges;
        task.after_count = count;
        return hold(state_, EventKind::Reset, task) != nullptr;
    }
    return pwsp_timeline_reset(&state_->time, edges, count);
}

bool Clock::task(const ClockTask &task) {
    if (!is_good(state_)) {
        return false;
    }
    if (!state_->is_held) {
        return do_task(state_, task);
    }
    state_->held_task_count++;
    return hold(state_, EventKind::Task, task) &&
           (state_->held_task_count < state_->timed.schedule.start_threshold || release(state_));
}

bool Clock::slot_load(const ClockTile &element) {
    if (!is_good(state_)) {
        return false;
    }
    if (!state_->is_held) {
        return do_slot_load(state_, element);
    }
    ClockTask task = ClockTask();
    task.tiles = &element;
    task.tile_count = 1;
    return hold(state_, EventKind::SlotLoad, task) != nullptr;
}

bool Clock::pipeline(const ClockPipeline &pipeline) {
    if (!is_good(state_)) {
        return false;
    }
    PTOWSP_ASSERT(pipeline.pipeline < state_->timed.pipeline_count);
    state_->busy_cycles = pwsp_sum_u64(state_->busy_cycles, pipeline.busy_cycles);
    state_->channel_cycles = pwsp_sum_u64(state_->channel_cycles, pipeline.channel_cycles);
    state_->slot_load_count += pipeline.slot_load_count;
    if (!state_->is_held) {
        return do_pipeline(state_, pipeline);
    }
    Event *event = hold(state_, EventKind::Pipeline, pipeline.whole);
    if (event) {
        event->at.pipeline = pipeline.pipeline;
        event->at.task_count = pipeline.task_count;
    }
    return event != nullptr;
}

bool Clock::end() {
    if (!state_ || state_->has_ended) {
        return false;
    }
    if (state_->time.sim.status == PTOWSP_OK && state_->is_held) {
        release(state_);
    }
    if (state_->time.sim.status == PTOWSP_OK) {
        pwsp_timeline_end(&state_->time);
    }
    state_->has_ended = true;
    pwsp_sim_end(&state_->time.sim);
    ptowsp_run_stats *stats = &state_->time.sim.stats;
    stats->busy_cycles = pwsp_sum_u64(stats->busy_cycles, state_->busy_cycles);
    stats->stall_cycles[PTOWSP_STALL_CHANNEL] = state_->channel_cycles;
    stats->slot_load_count += state_->slot_load_count;
    stats->memory_bytes = bytes(state_);
    return state_->time.sim.status == PTOWSP_OK;
}

ptowsp_run_stats Clock::stats() const {
    return state_ ? state_->time.sim.stats : ptowsp_run_stats();
}

const ptowsp_lane_stats *Clock::lanes() const {
    return state_ ? state_->time.sim.lane_stats : nullptr;
}

uint64_t Clock::pipeline_start(uint32_t pipeline) const {
    PTOWSP_ASSERT(state_ && pipeline < state_->timed.pipeline_count);
    return state_->time.sim.starts[pipeline].time;
}

ptowsp_status Clock::status() const {
    return state_ ? state_->time.sim.status : PTOWSP_OUT_OF_MEMORY;
}

const char *Clock::error() const {
    return !state_ ? "clock: out of memory, or not begun" : state_->time.sim.text;
}

uint64_t Clock::error_index() const {
    return !state_ ? PTOWSP_NO_INDEX : state_->time.sim.index;
}

}  // namespace wsp
