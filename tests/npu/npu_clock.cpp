// The calls of npu_clock.h as those of wsp_clock.h. What a task or a mark points to is dead after the
// call, as in a tree, and a task has only what it has there.

#include "wsp_clock.h"

#include "npu_clock.h"

#include <vector>

struct npu_clock {
    wsp::Clock clock;
};

namespace {

struct Task {
    std::vector<pwsp_tile_at> tiles;
    std::vector<uint32_t> after, before;
    pwsp_arrival task;

    explicit Task(const pwsp_arrival &from)
        : tiles(from.tiles, from.tiles + from.tile_count),
          after(from.after, from.after + from.after_count),
          before(from.before, from.before + from.before_count), task(from) {
        task.tiles = tiles.data();
        task.after = after.data();
        task.before = before.data();
        task.args = task.scalars = nullptr;
        task.demand = nullptr;
    }
};

}  // namespace

npu_clock *npu_clock_create(void) {
    return new npu_clock();
}

void npu_clock_destroy(npu_clock *clock) {
    delete clock;
}

bool npu_clock_begin(npu_clock *clock, const pwsp_timed *timed, const pwsp_bound_tensor *tensors) {
    return clock->clock.begin(*timed, tensors);
}

bool npu_clock_mark(npu_clock *clock, const pwsp_mark *mark) {
    const std::vector<uint32_t> edges(mark->edges, mark->edges + mark->edge_count);
    return clock->clock.mark({mark->kind, 0, mark->edge_count, edges.data()});
}

bool npu_clock_do_task(npu_clock *clock, const pwsp_arrival *task) {
    return clock->clock.task(Task(*task).task);
}

bool npu_clock_slot_load(npu_clock *clock, const pwsp_tile_at *element) {
    return clock->clock.slot_load(*element);
}

bool npu_clock_do_pipeline(npu_clock *clock, const pwsp_pipeline_arrival *pipeline,
                           uint64_t busy_cycles, uint64_t channel_cycles,
                           uint64_t slot_load_count) {
    const Task whole(pipeline->whole);
    const pwsp_pipeline_arrival to = {whole.task,         0, pipeline->task_count, 0,
                                      pipeline->pipeline, 0};
    return clock->clock.pipeline(to, {busy_cycles, channel_cycles, slot_load_count});
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
