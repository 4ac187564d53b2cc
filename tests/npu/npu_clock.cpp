// From the structs of npu_clock.h to those that wsp_clock.h is told in. Tensors count from 1 there.

#include "wsp_clock.h"

#include "npu_clock.h"

#include <cstring>
#include <vector>

struct npu_clock {
    wsp::Clock clock;
    std::vector<pwsp_bound_tensor> tensors;
    std::vector<uint8_t> is_loaded, is_written;
    ptowsp_schedule schedule;
    pwsp_pool_info pools[PWSP_POOL_MAX];
    uint32_t pool_count;
};

namespace {

void print_place(const void *, uint32_t node, ptowsp_output text) {
    pwsp_text_format(text, "node %u", node);
}

// One that lasts as long as the call; what it points to is dead afterwards, as in a tree.
struct Task {
    std::vector<pwsp_tile_at> tiles;
    std::vector<uint32_t> after, before;
    pwsp_arrival task;

    Task(const npu_clock &clock, const clock_task &from);
};

pwsp_tile_at tile_of(const clock_tile &from) {
    const uint32_t access = (from.is_read ? PWSP_TILE_READ : 0) |
                            (from.is_written ? PWSP_TILE_WRITTEN : 0) |
                            (from.is_loaded ? PWSP_TILE_LOADED : 0);
    return {from.tensor + 1, from.rows, from.cols, access, from.lead, from.row, from.col};
}

Task::Task(const npu_clock &clock, const clock_task &from) : task() {
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
    task.pool = pwsp_schedule_unit_pool(&clock.schedule, clock.pool_count, from.unit);
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
    clock->tensors.assign(tensor_count + 1, pwsp_bound_tensor());
    clock->is_loaded.assign(tensor_count + 1, 0);
    clock->is_written.assign(tensor_count + 1, 0);
    for (uint32_t i = 0; i < tensor_count; i++) {
        pwsp_bound_tensor &to = clock->tensors[i + 1];
        to.base = tensors[i].base;
        to.element_size = tensors[i].element_size;
        to.is_bound = tensors[i].element_size != 0;
        memcpy(to.lead_shape, tensors[i].lead_shape, sizeof to.lead_shape);
        memcpy(to.lead_strides, tensors[i].lead_strides, sizeof to.lead_strides);
        to.rows = tensors[i].rows;
        to.cols = tensors[i].cols;
        to.row_stride = tensors[i].row_stride;
        to.col_stride = tensors[i].col_stride;
        clock->is_written[i + 1] = tensors[i].is_written;
        clock->is_loaded[i + 1] = tensors[i].is_loaded;
    }
    pwsp_timed timed = pwsp_timed();
    timed.schedule = *from->schedule;
    timed.is_priority_signed = from->is_priority_signed;
    timed.has_streams = from->has_streams;
    clock->schedule = *from->schedule;
    clock->pool_count = pwsp_schedule_pools(&clock->schedule, clock->pools);
    timed.pools = clock->pools;
    timed.pool_count = clock->pool_count;
    timed.lane_count = from->lane_count;
    timed.scope_depth = from->scope_depth;
    timed.pipeline_count = from->pipeline_count;
    timed.tensor_count = tensor_count + 1;
    timed.edge_count = from->edge_count;
    timed.tensor_is_loaded = reinterpret_cast<const bool *>(clock->is_loaded.data());
    timed.tensor_is_written = reinterpret_cast<const bool *>(clock->is_written.data());
    timed.print_place = print_place;
    return clock->clock.begin(timed, clock->tensors.data());
}

bool npu_clock_scope_begin(npu_clock *clock, bool is_parallel) {
    return clock->clock.mark(pwsp_mark_of(is_parallel ? PWSP_MARK_PARALLEL : PWSP_MARK_SEQUENTIAL));
}

bool npu_clock_scope_end(npu_clock *clock) {
    return clock->clock.mark(pwsp_mark_of(PWSP_MARK_END));
}

bool npu_clock_reset(npu_clock *clock, const uint32_t *edges, uint32_t count) {
    std::vector<uint32_t> list(edges, edges + count);
    const pwsp_mark mark = {PWSP_MARK_RESET, 0, count, list.data()};
    return clock->clock.mark(mark);
}

bool npu_clock_do_task(npu_clock *clock, const clock_task *task) {
    Task to(*clock, *task);
    return clock->clock.task(to.task);
}

bool npu_clock_slot_load(npu_clock *clock, const clock_tile *element) {
    return clock->clock.slot_load(tile_of(*element));
}

bool npu_clock_do_pipeline(npu_clock *clock, const clock_pipeline *from) {
    Task whole(*clock, from->whole);
    pwsp_pipeline_arrival to = pwsp_pipeline_arrival();
    to.whole = whole.task;
    to.pipeline = from->pipeline;
    to.task_count = from->task_count;
    return clock->clock.pipeline(to,
                                 {from->busy_cycles, from->channel_cycles, from->slot_load_count});
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
