// From the structs of npu_clock.h to those of wsp_clock.h.

#include "npu_clock.h"

#include "../src/npu/tree/shim/wsp_clock.h"

#include <cstring>
#include <vector>

struct npu_clock {
    wsp::Clock clock;
};

namespace {

// One that lasts as long as the call; what it points to is dead afterwards, as in a tree.
struct Task {
    std::vector<wsp::ClockTile> tiles;
    std::vector<uint32_t> after, before;
    wsp::ClockTask task;

    explicit Task(const clock_task &from);
};

wsp::ClockTile tile_of(const clock_tile &from) {
    wsp::ClockTile to = wsp::ClockTile();
    to.tensor = from.tensor;
    to.rows = from.rows;
    to.cols = from.cols;
    to.lead = from.lead;
    to.row = from.row;
    to.col = from.col;
    to.is_read = from.is_read;
    to.is_written = from.is_written;
    to.is_loaded = from.is_loaded;
    return to;
}

Task::Task(const clock_task &from) : task() {
    for (uint32_t i = 0; i < from.tile_count; i++) {
        tiles.push_back(tile_of(from.tiles[i]));
    }
    after.assign(from.after, from.after + from.after_count);
    before.assign(from.before, from.before + from.before_count);
    task.cycles = from.cycles;
    task.dispatch_key = from.dispatch_key;
    task.priority_key = from.priority_key;
    task.stream_key = from.stream_key;
    task.unit = from.unit;
    task.node = from.node;
    task.tiles = tiles.data();
    task.tile_count = from.tile_count;
    task.after = after.data();
    task.after_count = from.after_count;
    task.before = before.data();
    task.before_count = from.before_count;
}

}  // namespace

npu_clock *npu_clock_create(void) {
    return new npu_clock();
}

void npu_clock_destroy(npu_clock *clock) {
    delete clock;
}

bool npu_clock_begin(npu_clock *clock, const clock_program *from, const clock_tensor *tensors,
                     uint32_t tensor_count) {
    wsp::ClockProgram to = wsp::ClockProgram();
    to.schedule = from->schedule;
    to.lane_count = from->lane_count;
    to.is_priority_signed = from->is_priority_signed;
    to.has_streams = from->has_streams;
    to.edge_count = from->edge_count;
    to.scope_depth = from->scope_depth;
    to.pipeline_count = from->pipeline_count;
    std::vector<wsp::ClockTensor> list(tensor_count);
    for (uint32_t i = 0; i < tensor_count; i++) {
        list[i].base = tensors[i].base;
        list[i].element_size = tensors[i].element_size;
        memcpy(list[i].lead_shape, tensors[i].lead_shape, sizeof list[i].lead_shape);
        memcpy(list[i].lead_strides, tensors[i].lead_strides, sizeof list[i].lead_strides);
        list[i].rows = tensors[i].rows;
        list[i].cols = tensors[i].cols;
        list[i].row_stride = tensors[i].row_stride;
        list[i].col_stride = tensors[i].col_stride;
        list[i].is_written = tensors[i].is_written;
        list[i].is_loaded = tensors[i].is_loaded;
    }
    return clock->clock.begin(to, list.data(), tensor_count);
}

bool npu_clock_scope_begin(npu_clock *clock, bool is_parallel) {
    return clock->clock.scope_begin(is_parallel);
}

bool npu_clock_scope_end(npu_clock *clock) {
    return clock->clock.scope_end();
}

bool npu_clock_reset(npu_clock *clock, const uint32_t *edges, uint32_t count) {
    std::vector<uint32_t> list(edges, edges + count);
    return clock->clock.reset(list.data(), count);
}

bool npu_clock_do_task(npu_clock *clock, const clock_task *task) {
    Task to(*task);
    return clock->clock.task(to.task);
}

bool npu_clock_slot_load(npu_clock *clock, const clock_tile *element) {
    return clock->clock.slot_load(tile_of(*element));
}

bool npu_clock_do_pipeline(npu_clock *clock, const clock_pipeline *from) {
    Task whole(from->whole);
    wsp::ClockPipeline to = wsp::ClockPipeline();
    to.whole = whole.task;
    to.pipeline = from->pipeline;
    to.task_count = from->task_count;
    to.busy_cycles = from->busy_cycles;
    to.channel_cycles = from->channel_cycles;
    to.slot_load_count = from->slot_load_count;
    return clock->clock.pipeline(to);
}

bool npu_clock_end(npu_clock *clock) {
    return clock->clock.end();
}

ptowsp_run_stats npu_clock_stats(const npu_clock *clock) {
    return clock->clock.stats();
}

const ptowsp_lane_stats *npu_clock_lanes(const npu_clock *clock) {
    return clock->clock.lanes();
}

uint64_t npu_clock_pipeline_start(const npu_clock *clock, uint32_t pipeline) {
    return clock->clock.pipeline_start(pipeline);
}

ptowsp_status npu_clock_status(const npu_clock *clock) {
    return clock->clock.status();
}

const char *npu_clock_error(const npu_clock *clock) {
    return clock->clock.error();
}
