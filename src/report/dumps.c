// Runs in the files of PTO Runtime: deps.json (tasks, tensors, edges), the swimlane (times by core)
// and the map of names. So one reader serves dumps of both.
//
// Task i of the run is task i of ring 0. Edges of structure are written once: a scope that several
// tasks end becomes a barrier, a task of ring 1 without a kernel. It waits for these tasks and stands
// before the first task that waits for it.
//
// Lanes are cores. Where pools are by unit, vector lanes are "aiv" and cube lanes "aic"; otherwise any
// lane runs any task, and all are "aiv". A task of MIX has a row for each of its three lanes.

#include "picture.h"

#include <inttypes.h>

typedef struct pwsp_dump_writer {
    const pwsp_picture *picture;
    const pwsp_edges *edges;
    pwsp_out *out;
    uint32_t *barriers;  // by scope: the number of its barrier, + 1
    uint32_t barrier_count;
    uint64_t to;    // the task, or barrier, that edges lead to
    bool is_first;  // of a list
} pwsp_dump_writer;

#define PWSP_DUMP_BARRIERS (UINT64_C(1) << 32)  // the first task of ring 1

// The comma between items.
static void pwsp_dump_next(pwsp_dump_writer *w) {
    pwsp_out_text(w->out, w->is_first ? "\n" : ",\n");
    w->is_first = false;
}

// -- tasks ----------------------------------------------------------------------------------------

// The name of a type in dumps, or our own where dumps have no such type.
static const char *pwsp_dump_dtype(ptowsp_dtype dtype) {
    static const struct {
        char dtype, name[12];
    } names[] = {{PTOWSP_F32, "FLOAT32"}, {PTOWSP_F16, "FLOAT16"}, {PTOWSP_BF16, "BFLOAT16"},
                 {PTOWSP_I8, "INT8"},     {PTOWSP_I16, "INT16"},   {PTOWSP_I32, "INT32"},
                 {PTOWSP_I64, "INT64"},   {PTOWSP_U8, "UINT8"},    {PTOWSP_U16, "UINT16"},
                 {PTOWSP_U32, "UINT32"},  {PTOWSP_U64, "UINT64"},  {PTOWSP_BOOL, "BOOL"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].dtype == (char)dtype) {
            return names[i].name;
        }
    }
    return ptowsp_dtype_name(dtype);
}

static bool pwsp_dump_is_by_unit(const pwsp_dump_writer *w) {
    return w->picture->program->schedule.pools == PTOWSP_POOLS_BY_UNIT;
}

static ptowsp_unit pwsp_dump_unit(const pwsp_dump_writer *w, uint32_t kernel) {
    const ptowsp_unit unit = w->picture->program->kernels.items[kernel].unit;
    return pwsp_dump_is_by_unit(w) && unit != PTOWSP_UNIT_LINK ? unit : PTOWSP_UNIT_VECTOR;
}

static void pwsp_dump_arg(pwsp_dump_writer *w, const pwsp_tile_at *at, uint32_t i) {
    static const char types[4][16] = {"NO_DEP", "INPUT", "OUTPUT_EXISTING", "INOUT"};
    const pwsp_bound_tensor *tensor = &w->picture->result->recorder.bound[at->tensor];
    pwsp_out_format(
        w->out,
        "%s{\"idx\":%u,\"type\":\"%s\",\"tensor_id\":\"%u\",\"dtype\":\"%s\","
        "\"shape\":[%u,%u],\"start_offset\":\"%" PRId64 "\",\"strides\":[%" PRId64 ",%" PRId64 "]}",
        i ? "," : "", i, types[at->access & (PWSP_TILE_READ | PWSP_TILE_WRITTEN)], at->tensor,
        pwsp_dump_dtype(tensor->dtype), at->rows, at->cols,
        pwsp_tile_offset(tensor, at) - tensor->low, tensor->row_stride, tensor->col_stride);
}

static void pwsp_dump_task(pwsp_dump_writer *w, uint64_t task) {
    const uint32_t kernel = w->picture->records[task].kernel;
    const ptowsp_unit unit = pwsp_dump_unit(w, kernel);
    const int64_t cube = unit == PTOWSP_UNIT_VECTOR ? -1 : (int64_t)kernel;
    const int64_t vector = unit == PTOWSP_UNIT_CUBE ? -1 : (int64_t)kernel;
    const int64_t other = unit == PTOWSP_UNIT_MIX ? (int64_t)kernel : -1;
    pwsp_dump_next(w);
    pwsp_out_format(w->out,
                    "{\"task_id\":\"%" PRIu64 "\",\"scope\":\"manual\",\"early_dispatch\":false,"
                    "\"kernel_ids\":[%" PRId64 ",%" PRId64 ",%" PRId64 "],\"block_num\":1,"
                    "\"args\":[",
                    task, cube, vector, other);
    const uint64_t first = w->edges->tasks[task].first_tile;
    const uint64_t end = task + 1 < w->edges->task_count ? w->edges->tasks[task + 1].first_tile
                                                         : w->edges->tile_count;
    for (uint64_t i = first; i < end; i++) {
        pwsp_dump_arg(w, &w->edges->tiles[i], (uint32_t)(i - first));
    }
    pwsp_out_text(w->out, "]}");
}

// The barrier of a scope, which is written if it is the first to ask.
static void pwsp_dump_barrier(pwsp_dump_writer *w, uint32_t scope) {
    if (w->edges->nodes[scope].task == PTOWSP_NO_INDEX && !w->barriers[scope]) {
        pwsp_dump_next(w);
        pwsp_out_format(w->out,
                        "{\"task_id\":\"%" PRIu64
                        "\",\"scope\":\"manual\",\"early_dispatch\":false,"
                        "\"kernel_ids\":[-1,-1,-1],\"block_num\":1,\"args\":[]}",
                        PWSP_DUMP_BARRIERS + w->barrier_count);
        w->barriers[scope] = ++w->barrier_count;
    }
}

// Tensors without memory lie from 2^63 on, which readers of signed numbers refuse: here from 2^60 on.
static uint64_t pwsp_dump_address(uint64_t address) {
    const uint64_t top = UINT64_C(1) << 63;
    return address < top ? address : address - top + (UINT64_C(1) << 60);
}

static void pwsp_dump_tensor(pwsp_dump_writer *w, uint32_t id) {
    const pwsp_bound_tensor *tensor = &w->picture->result->recorder.bound[id];
    const uint64_t address = tensor->base + (uint64_t)tensor->low * tensor->element_size;
    pwsp_dump_next(w);
    pwsp_out_format(w->out,
                    "{\"tensor_id\":\"%u\",\"buffer_addr\":\"%" PRIu64
                    "\",\"version\":0,\"dtype\":\"%s\",\"buffer_numel\":\"%" PRId64 "\"}",
                    id, pwsp_dump_address(address), pwsp_dump_dtype(tensor->dtype),
                    tensor->high - tensor->low + 1);
}

// -- edges ----------------------------------------------------------------------------------------

static bool pwsp_dump_edge(void *user, const ptowsp_edge *edge) {
    pwsp_dump_writer *w = (pwsp_dump_writer *)user;
    pwsp_dump_next(w);
    pwsp_out_format(w->out,
                    "{\"pred\":\"%" PRIu64 "\",\"succ\":\"%" PRIu64
                    "\",\"arg\":-1,\"source\":\"explicit\",\"flags\":[\"wait\"]}",
                    edge->from, w->to);
    return !w->out->has_failed;
}

// The edges of a task: by structure from a task or a barrier, then those that are kept.
static void pwsp_dump_edges_of(pwsp_dump_writer *w, uint64_t task) {
    const pwsp_edges *edges = w->edges;
    const uint32_t before = pwsp_edges_before(edges, edges->tasks[task].node);
    PWSP_ZERO(ptowsp_edge, edge);
    if (before && edges->nodes[before].task != PTOWSP_NO_INDEX) {
        edge.from = edges->nodes[before].task;
    } else if (before) {
        edge.from = PWSP_DUMP_BARRIERS + w->barriers[before] - 1;
        if (w->barriers[before] > w->barrier_count) {  // its own edges come with the first task
            w->barrier_count++;
            w->to = edge.from;
            pwsp_edges_exits(edges, before, 0, pwsp_dump_edge, w);
        }
    }
    w->to = task;
    if (before) {
        pwsp_dump_edge(w, &edge);
    }
    for (uint64_t i = edges->tasks[task].first_kept; i < edges->tasks[task + 1].first_kept; i++) {
        const pwsp_edge_kept *kept = &edges->kept[i];
        const bool is_data = kept->reason == PTOWSP_EDGE_TENSOR;
        pwsp_dump_next(w);
        pwsp_out_format(w->out,
                        "{\"pred\":\"%" PRIu64 "\",\"succ\":\"%" PRIu64
                        "\",\"arg\":%d,\"source\":\"%s\",\"flags\":[\"wait\"]}",
                        kept->from, task, is_data ? kept->to_tile : -1,
                        is_data ? "tensormap" : "explicit");
    }
}

PWSP_INTERNAL bool pwsp_export_deps(pwsp_picture *picture) {
    const pwsp_edges *edges = &picture->result->recorder.edges;
    const ptowsp_program *program = picture->program;
    pwsp_dump_writer w = {picture, edges, picture->out, NULL, 0, 0, true};
    if (!PWSP_ALLOC(&picture->memory, w.barriers, edges->node_count)) {
        return false;
    }
    pwsp_out_text(w.out, "{\"tasks\":[");
    for (uint64_t i = 0; i < picture->count; i++) {
        const uint32_t before = pwsp_edges_before(edges, edges->tasks[i].node);
        if (before) {
            pwsp_dump_barrier(&w, before);
        }
        pwsp_dump_task(&w, i);
    }
    pwsp_out_text(w.out, "],\n\"tensors\":[");
    w.is_first = true;
    for (uint32_t i = 1; i < program->tensors.count; i++) {
        if (program->tensor_is_used[i]) {
            pwsp_dump_tensor(&w, i);
        }
    }
    pwsp_out_text(w.out, "],\n\"edges\":[");
    w.is_first = true;
    w.barrier_count = 0;
    for (uint64_t i = 0; i < picture->count; i++) {
        pwsp_dump_edges_of(&w, i);
    }
    pwsp_out_text(w.out, "]}\n");
    return true;
}

// -- times and names ------------------------------------------------------------------------------

static void pwsp_dump_row(pwsp_dump_writer *w, uint32_t lane, uint64_t task) {
    const ptowsp_task_record *record = &w->picture->records[task];
    pwsp_dump_next(w);
    pwsp_out_format(w->out, "[%u,%" PRIu64 ",0,%" PRIu64 ",%" PRIu64 ",0]", lane, task,
                    record->start, record->end);
}

PWSP_INTERNAL void pwsp_export_swimlane(pwsp_picture *picture) {
    pwsp_dump_writer w = {picture, NULL, picture->out, NULL, 0, 0, true};
    const pwsp_pool_info *cubes = &picture->program->pools[1];  // where pools are by unit
    const bool is_by_unit = pwsp_dump_is_by_unit(&w);
    pwsp_out_format(w.out,
                    "{\"chip_swimlane_level\":1,\"metadata\":{\"clock_freq_hz\":%" PRIu64
                    ",\"num_cores\":%u,\"core_types\":[",
                    picture->options->clock_mhz * UINT64_C(1000000), picture->lane_count);
    for (uint32_t i = 0; i < picture->lane_count; i++) {
        const bool is_cube = is_by_unit && i >= cubes->first && i < cubes->first + cubes->count;
        pwsp_out_format(w.out, "%s\"%s\"", i ? "," : "", is_cube ? "aic" : "aiv");
    }
    pwsp_out_text(w.out, "]},\n\"aicore_tasks\":[");
    for (uint64_t i = 0; i < picture->count; i++) {
        const ptowsp_task_record *record = &picture->records[i];
        pwsp_dump_row(&w, record->lane, i);
        if (pwsp_dump_unit(&w, record->kernel) == PTOWSP_UNIT_MIX) {
            for (uint32_t k = 0; k < PWSP_BLOCK_VECTORS; k++) {
                pwsp_dump_row(&w, pwsp_block_vector(cubes->first, record->lane, k), i);
            }
        }
    }
    pwsp_out_text(w.out, "]}\n");
}

PWSP_INTERNAL void pwsp_export_names(pwsp_picture *picture) {
    pwsp_dump_writer w = {picture, NULL, picture->out, NULL, 0, 0, true};
    pwsp_out_text(w.out, "{\"level\":2,\"callable_id_to_name\":{");
    for (uint32_t i = 1; i < picture->program->kernels.count; i++) {
        pwsp_dump_next(&w);
        pwsp_out_format(w.out, "\"%u\":\"", i);
        pwsp_out_json(w.out, picture->program->kernels.items[i].name);
        pwsp_out_text(w.out, "\"");
    }
    pwsp_out_text(w.out, "}}\n");
}
