// Programs in simulated time. A quarter of a million tasks are walked and timed, no kernels run.
// Beside each, with the same durations, computed beforehand: the rule of in-order issue with a
// binary heap of the tasks in flight and nothing else, as one writes it first; then the bare limit,
// a loop that does only what no way of doing it can leave out.

#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TASKS (is_counting ? 1 << 15 : 1 << 18)
#define LANES 24

typedef struct tile_cell {
    uint64_t written, read;  // the ends of its writer, and of the last reader since
} tile_cell;

typedef struct time_bench {
    ptowsp_context *context;
    ptowsp_module *module;
    ptowsp_program *program;
    ptowsp_run *run;
    uint64_t task_count;
    uint64_t loop_count;  // tasks of the innermost loop, whose variable the duration depends on
    uint32_t window;      // of the heap beside it
    uint64_t bytes;       // that a task moves
    uint64_t *durations;
    uint64_t *heap;
    tile_cell *cells;       // of nine layers of tiles
    ptowsp_kernel_fn cost;  // as kernels have it: called through a pointer
    uint64_t makespan;      // of the heap, or of the limit
    bench_fn limit;         // NULL: none
} time_bench;

static uint64_t duration_of(uint64_t i) {
    return 100 + (i * 2654435761u >> 7) % 4096;
}

static ptowsp_cycles duration(const ptowsp_task *task, void *user) {
    (void)user;
    return duration_of(task->args[0]);
}

// -- beside ---------------------------------------------------------------------------------------

static void heap_push(uint64_t *heap, uint32_t *count, uint64_t end) {
    uint32_t i = (*count)++;
    while (i > 0 && heap[(i - 1) / 2] > end) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = end;
}

static void heap_pop(uint64_t *heap, uint32_t *count) {
    uint64_t last = heap[--*count];
    uint32_t i = 0;
    for (uint32_t child = 1; child < *count; child = 2 * i + 1) {
        child += child + 1 < *count && heap[child + 1] < heap[child];
        if (heap[child] >= last) {
            break;
        }
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
}

static void run_heap(void *user) {
    time_bench *b = (time_bench *)user;
    uint64_t free_at[LANES] = {0}, clock = 0, makespan = 0;
    uint32_t count = 0, lane = 0;
    for (uint64_t i = 0; i < b->task_count; i++) {
        while (b->window && count && b->heap[0] <= clock) {
            heap_pop(b->heap, &count);
        }
        while (b->window && count >= b->window) {
            clock = b->heap[0] > clock ? b->heap[0] : clock;
            heap_pop(b->heap, &count);
        }
        uint64_t start = free_at[lane] > clock ? free_at[lane] : clock;
        uint64_t end = start + b->durations[i];
        free_at[lane] = end;
        lane = lane + 1 == LANES ? 0 : lane + 1;
        makespan = end > makespan ? end : makespan;
        if (b->window) {
            heap_push(b->heap, &count, end);
        }
    }
    b->makespan = makespan;
    bench_keep(&b->makespan);
}

// -- limits ---------------------------------------------------------------------------------------

#define LEAVES 32  // of a tournament of lanes

static uint64_t games_set(uint64_t *games, uint32_t lane, uint64_t player) {
    for (uint32_t i = LEAVES + lane; i > 1; i /= 2) {
        games[i] = player;
        player = games[i ^ 1] < player ? games[i ^ 1] : player;
    }
    return player;
}

// The task of a layer that follows: until when its tiles make it wait. It reads the tile that the layer
// before has written, and writes its own, for which it also waits for those who have read that.
typedef struct next_task {
    uint64_t layer, tile;
    tile_cell *in, *out;
} next_task;

static inline uint64_t next_ready(next_task *next, const time_bench *b) {
    const uint64_t tiles = b->loop_count, in = (next->tile * 7 + next->layer) & (tiles - 1);
    next->in = &b->cells[next->layer * tiles + in];
    next->out = &b->cells[(next->layer + 1) * tiles + next->tile];
    uint64_t ready = next->in->written;
    ready = next->out->written > ready ? next->out->written : ready;
    return next->out->read > ready ? next->out->read : ready;
}

static inline void next_end(next_task *next, const time_bench *b, uint64_t end) {
    next->in->read = end > next->in->read ? end : next->in->read;
    next->out->written = end;
    next->out->read = 0;
    next->layer += next->tile + 1 == b->loop_count;
    next->tile = next->tile + 1 == b->loop_count ? 0 : next->tile + 1;
}

// A window, in order: the task that ends first leaves, the next one is placed. Each lane has a ring
// of ends, and a tournament of its lanes' first ends finds the first of all. By data a task is placed, too,
// when its turn has come, but starts no earlier than its tiles allow; its duration is asked for.
static inline void window_limit(time_bench *b, bool has_data) {
    b->makespan = 0;
    uint64_t games[2 * LEAVES], free_at[LANES] = {0}, clock = 0, first = UINT64_MAX;
    uint32_t head[LANES] = {0}, tail[LANES] = {0}, count = 0, lane = 0, mask = b->window - 1;
    next_task next = {0, 0, NULL, NULL};
    ptowsp_task task;
    memset(&task, 0, sizeof task);
    task.args = &next.tile;
    memset(games, 0xff, sizeof games);
    for (uint64_t i = 0; i < b->task_count; i++) {
        while (count == b->window || first >> 5 <= clock) {
            uint32_t from = (uint32_t)first % LEAVES;
            clock = first >> 5 > clock ? first >> 5 : clock;
            const uint64_t *ring = b->heap + from * b->window;
            uint64_t next_first = ++head[from] == tail[from] ? UINT64_MAX : ring[head[from] & mask];
            first = games_set(games, from, next_first);
            count--;
        }
        uint64_t start = free_at[lane] > clock ? free_at[lane] : clock;
        if (has_data) {
            const uint64_t ready = next_ready(&next, b);
            start = ready > start ? ready : start;
        }
        uint64_t end = start + (has_data ? b->cost(&task, NULL) : b->durations[i]);
        b->heap[lane * b->window + (tail[lane] & mask)] = end << 5 | lane;
        first = head[lane] == tail[lane] ? games_set(games, lane, end << 5 | lane) : first;
        tail[lane]++;
        count++;
        if (has_data) {
            next_end(&next, b, end);
        }
        free_at[lane] = end;
        b->makespan = end > b->makespan ? end : b->makespan;
        lane = lane + 1 == LANES ? 0 : lane + 1;
    }
    bench_keep(&b->makespan);
}

static void run_window_limit(void *user) {
    window_limit((time_bench *)user, false);
}

static void run_data_limit(void *user) {
    time_bench *b = (time_bench *)user;
    memset(b->cells, 0, 9 * b->loop_count * sizeof(tile_cell));
    window_limit(b, true);
}

// Stealing: the lane that is free first takes the next task; a layer waits for the layer before.
static void run_steal_limit(void *user) {
    time_bench *b = (time_bench *)user;
    b->makespan = 0;
    uint64_t games[2 * LEAVES], latest = 0, first = UINT64_MAX;
    memset(games, 0xff, sizeof games);
    for (uint64_t i = 0; i < b->task_count; i++) {
        if (i % (b->task_count / 8) == 0) {
            for (uint32_t lane = 0; lane < LANES; lane++) {
                first = games_set(games, lane, latest << 5 | lane);
            }
        }
        uint64_t end = (first >> 5) + b->durations[i];
        latest = end > latest ? end : latest;
        first = games_set(games, (uint32_t)first % LEAVES, end << 5 | first % LEAVES);
    }
    b->makespan = latest;
    bench_keep(&b->makespan);
}

// -- programs -------------------------------------------------------------------------------------

static void run_program(void *user) {
    const time_bench *b = (const time_bench *)user;
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    require(ptowsp_run_execute(b->run, &options) == PTOWSP_OK,
            ptowsp_context_error(b->context).text);
}

static void build_begin(time_bench *b) {
    memset(b, 0, sizeof *b);
    require(ptowsp_context_create(NULL, &b->context) == PTOWSP_OK &&
                ptowsp_module_create(b->context, NULL, &b->module) == PTOWSP_OK,
            "no memory");
}

static void build_end(time_bench *b, const ptowsp_schedule *schedule) {
    const ptowsp_program_desc desc = {NULL, schedule};
    require(ptowsp_program_create(b->context, b->module, &desc, &b->program) == PTOWSP_OK &&
                ptowsp_run_create(b->context, b->program, &b->run) == PTOWSP_OK,
            ptowsp_context_error(b->context).text);
    b->window = schedule->window;
    run_program(b);
    b->task_count = ptowsp_run_result(b->run)->task_count;
    b->durations = (uint64_t *)malloc(b->task_count * sizeof(uint64_t));
    b->heap = (uint64_t *)calloc((size_t)LANES * b->window + 1, sizeof(uint64_t));  // or rings
    b->cells = (tile_cell *)calloc(9 * b->loop_count, sizeof(tile_cell));
    b->cost = duration;
    require(b->durations && b->heap && b->cells, "no memory");
    for (uint64_t i = 0; i < b->task_count; i++) {
        b->durations[i] = duration_of(i % b->loop_count);
    }
}

static void build_free(time_bench *b) {
    ptowsp_run_destroy(b->run);
    ptowsp_program_destroy(b->program);
    ptowsp_module_destroy(b->module);
    ptowsp_context_destroy(b->context);
    free(b->durations);
    free(b->heap);
    free(b->cells);
}

static ptowsp_kernel make_kernel(time_bench *b, bool has_tiles) {
    ptowsp_kernel_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = "work";
    desc.axis_count = 1;
    desc.cost = duration;
    desc.bytes = b->bytes;
    if (has_tiles) {
        const ptowsp_tile_param in = {"in", PTOWSP_IN, PTOWSP_F32, 16, 16};
        const ptowsp_tile_param out = {"out", PTOWSP_OUT, PTOWSP_F32, 16, 16};
        desc.tiles[0] = in;
        desc.tiles[1] = out;
    }
    return ptowsp_kernel_make(b->module, &desc);
}

// One parallel loop of tasks without tiles.
static void build_loop(time_bench *b, ptowsp_schedule schedule) {
    build_begin(b);
    b->loop_count = TASKS;
    ptowsp_axis axis = ptowsp_axis_dense(b->module, "n", TASKS);
    ptowsp_task_desc task;
    memset(&task, 0, sizeof task);
    task.kernel = make_kernel(b, false);
    PTOWSP_WORKLOAD(b->module, "loop") {
        PTOWSP_PARALLEL(b->module, i, axis) {
            task.axes[0] = i;
            ptowsp_task_make(b->module, &task);
        }
    }
    if (schedule.dispatch == PTOWSP_DISPATCH_AFFINITY) {
        schedule.dispatch_key =
            ptowsp_div(ptowsp_task_variable(b->module, "i"), ptowsp_i64(b->module, 7));
    }
    build_end(b, &schedule);
}

// Eight layers of 32,768 tasks; each task writes a tile of its layer and reads one of the layer
// before, in another order. By structure a layer waits for all of the layer before.
static void build_layers(time_bench *b, bool has_tiles, const ptowsp_schedule *schedule) {
    build_begin(b);
    b->bytes = schedule->shared.hbm_rate ? 32768 : 0;
    b->loop_count = TASKS / 8;
    ptowsp_module *m = b->module;
    ptowsp_axis layers = ptowsp_axis_dense(m, "layers", 8);
    ptowsp_axis tiles = ptowsp_axis_dense(m, "tiles", TASKS / 8);
    ptowsp_tensor_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = "data";
    desc.dtype = PTOWSP_F32;
    desc.rank = 4;
    desc.shape[0] = 9;
    desc.shape[1] = TASKS / 8;
    desc.shape[2] = desc.shape[3] = 16;
    ptowsp_tensor data = ptowsp_tensor_make(m, &desc);
    ptowsp_task_desc task;
    memset(&task, 0, sizeof task);
    task.kernel = make_kernel(b, has_tiles);
    PTOWSP_WORKLOAD(m, "layers") {
        PTOWSP_FOR_EACH(m, layer, layers) {
            PTOWSP_PARALLEL(m, i, tiles) {
                ptowsp_expr other = ptowsp_add(ptowsp_mul(i, ptowsp_i64(m, 7)), layer);
                task.axes[0] = i;
                if (has_tiles) {
                    task.views[0].tensor = task.views[1].tensor = data;
                    task.views[0].index[0] = layer;
                    task.views[0].index[1] = ptowsp_bitand(other, ptowsp_i64(m, TASKS / 8 - 1));
                    task.views[1].index[0] = ptowsp_add(layer, ptowsp_i64(m, 1));
                    task.views[1].index[1] = i;
                }
                ptowsp_task_make(m, &task);
            }
        }
    }
    build_end(b, schedule);
}

static void report_tasks(time_bench *b, const char *name, double budget, const char *budget_text) {
    bench_times t = measure(run_program, run_heap, b, 1, 11);
    double tasks = (double)b->task_count;
    bench_row row = {name,
                     "ns/task",
                     t.own_ns / tasks,
                     b->window ? "heap of ends, in order, alone" : "in order, alone",
                     t.other_ns / tasks,
                     t.ratio,
                     budget_text,
                     budget > 0,
                     t.own_ns / tasks <= budget};
    report(row);
    if (b->limit && !is_counting) {
        t = measure(run_program, b->limit, b, 1, 11);
        require(b->makespan == ptowsp_run_result(b->run)->makespan_cycles,
                "the limit takes other time");
        bench_row bare = {"  the same",
                          "ns/task",
                          t.own_ns / tasks,
                          "limit: a loop of this alone",
                          t.other_ns / tasks,
                          t.ratio,
                          "",
                          false,
                          false};
        report(bare);
    }
    build_free(b);
}

// -- expressions ----------------------------------------------------------------------------------

enum { OPERATIONS = 64, EVALUATIONS = 1 << 16 };

// What the program computes, compiled.
static void run_native(void *user) {
    (void)user;
    uint64_t sum = 0;
    for (int64_t i = 0; i < EVALUATIONS; i++) {
        int64_t x = i;
        for (int64_t j = 0; j < OPERATIONS / 4; j++) {
            __asm__ volatile("" : "+r"(x));  // as the compiler of expressions: one by one
            x = (int64_t)((((uint64_t)x * 3 + (uint64_t)j) ^ (uint64_t)i) & 0xffffff);
        }
        sum += (uint64_t)x;
    }
    bench_keep(&sum);
}

static void bench_expressions(void) {
    time_bench b;
    build_begin(&b);
    b.loop_count = 1;
    ptowsp_module *m = b.module;
    PTOWSP_WORKLOAD(m, "expressions") {
        PTOWSP_FOR_EACH(m, i, ptowsp_axis_dense(m, "n", EVALUATIONS)) {
            ptowsp_expr x = i;
            for (int64_t j = 0; j < OPERATIONS / 4; j++) {
                x = ptowsp_add(ptowsp_mul(x, ptowsp_i64(m, 3)), ptowsp_i64(m, j));
                x = ptowsp_bitand(ptowsp_bitxor(x, i), ptowsp_i64(m, 0xffffff));
            }
            ptowsp_slot_set_make(m, 0, x);
        }
    }
    ptowsp_schedule schedule;
    memset(&schedule, 0, sizeof schedule);
    build_end(&b, &schedule);
    bench_times t = measure(run_program, run_native, &b, 1, 11);
    double operations = (double)OPERATIONS * EVALUATIONS;
    bench_row row = {"expression of 64 operations",
                     "ns/op",
                     t.own_ns / operations,
                     "the same, compiled C",
                     t.other_ns / operations,
                     t.ratio,
                     "0.3 ns",
                     true,
                     t.own_ns / operations <= 0.3};
    bench_limit compiled = {row.other, row.other_value, 1.0 / t.ratio};
    report_beside_limit(row, compiled);
    build_free(&b);
}

// -- saved programs -------------------------------------------------------------------------------

enum { SAVED_LOOPS = 600 };  // about a megabyte, compiled

typedef struct saved_bench {
    ptowsp_context *context;
    ptowsp_module *module;
    char *text;
    size_t length;
    size_t bytes;  // of the program
} saved_bench;

static void keep_program(saved_bench *b, ptowsp_status status, ptowsp_program *program) {
    require(status == PTOWSP_OK, ptowsp_context_error(b->context).text);
    b->bytes = ptowsp_program_size(program);
    ptowsp_program_destroy(program);
}

static void run_load(void *user) {
    saved_bench *b = (saved_bench *)user;
    ptowsp_program *program;
    ptowsp_status status =
        ptowsp_program_load(b->context, b->text, b->length, NULL, &program, NULL);
    keep_program(b, status, program);
}

static void run_compile(void *user) {
    saved_bench *b = (saved_bench *)user;
    ptowsp_program *program;
    ptowsp_status status = ptowsp_program_create(b->context, b->module, NULL, &program);
    keep_program(b, status, program);
}

static void bench_saved(void) {
    saved_bench b;
    ptowsp_output_buffer buffer = {NULL, 0, 0};
    memset(&b, 0, sizeof b);
    b.text = (char *)malloc(1 << 20);
    require(b.text && ptowsp_context_create(NULL, &b.context) == PTOWSP_OK, "no memory");
    b.length = (size_t)sprintf(b.text, "module m\n"
                                       "axis b 8\n"
                                       "tensor x f32 [128, 64] global\n"
                                       "kernel k(axes 1, in a f32 16 x 16, out c f32 16 x 16, "
                                       "s i64) vector, 100 cycles, time only\n"
                                       "workload w\n");
    for (int i = 0; i < SAVED_LOOPS; i++) {
        b.length += (size_t)sprintf(b.text + b.length,
                                    "  parallel i%d in b\n"
                                    "    task k(i%d) a = x at (i%d * 16, 0) c = x at (i%d * 16, "
                                    "16) s = i%d + %d\n",
                                    i, i, i, i, i, i);
    }
    require(ptowsp_module_parse(b.context, b.text, b.length, NULL, &b.module, NULL) == PTOWSP_OK,
            ptowsp_context_error(b.context).text);
    buffer.data = b.text;
    buffer.size = 1 << 20;
    require(ptowsp_program_save(b.context, b.module, NULL, ptowsp_output_to_buffer(&buffer)) ==
                PTOWSP_OK,
            ptowsp_context_error(b.context).text);
    b.length = buffer.length;
    bench_times t = measure(run_load, run_compile, &b, 1, 11);
    double mib = (double)b.bytes / (1 << 20);
    bench_row row = {"load of a saved program, per MiB of it",
                     "ms",
                     t.own_ns / 1e6 / mib,
                     "compiling its module",
                     t.other_ns / 1e6 / mib,
                     t.ratio,
                     "1 ms",
                     true,
                     t.own_ns / 1e6 / mib <= 1};
    report(row);
    ptowsp_module_destroy(b.module);
    ptowsp_context_destroy(b.context);
    free(b.text);
}

void bench_time(void) {
    time_bench b;
    ptowsp_schedule schedule;
    memset(&schedule, 0, sizeof schedule);
    schedule.issue = PTOWSP_ISSUE_IN_ORDER;
    schedule.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN;
    schedule.lane_count = LANES;
    build_loop(&b, schedule);
    report_tasks(&b, "in order, 24 lanes, no window", 12, "12 ns");
    schedule.window = 64;
    build_loop(&b, schedule);
    b.limit = run_window_limit;
    report_tasks(&b, "in order, 24 lanes, window 64", 12, "12 ns");
    schedule.window = 8192;
    build_loop(&b, schedule);
    b.limit = run_window_limit;
    report_tasks(&b, "in order, 24 lanes, window 8192", 12, "12 ns");
    schedule.dispatch = PTOWSP_DISPATCH_AFFINITY;
    build_loop(&b, schedule);
    report_tasks(&b, "in order, affinity, window 8192", 0, "");
    schedule.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN;
    schedule.issue = PTOWSP_ISSUE_DATAFLOW;
    build_loop(&b, schedule);
    report_tasks(&b, "dataflow, tasks without tiles, window 8192", 0, "");
    schedule.dependencies = PTOWSP_DEPENDENCIES_STRUCTURE;
    build_layers(&b, false, &schedule);
    report_tasks(&b, "dataflow, 8 layers by structure, window 8192", 55, "55 ns");
    schedule.dependencies = PTOWSP_DEPENDENCIES_OVERLAP;
    build_layers(&b, true, &schedule);
    b.limit = run_data_limit;
    report_tasks(&b, "dataflow, 8 layers by their data, window 8192", 55, "55 ns");
    schedule.dependencies = PTOWSP_DEPENDENCIES_STRUCTURE;
    schedule.dispatch = PTOWSP_DISPATCH_WORK_STEALING;
    build_layers(&b, false, &schedule);
    b.limit = run_steal_limit;
    report_tasks(&b, "work stealing, 8 layers by structure", 55, "55 ns");
    const ptowsp_control none = schedule.control;
    schedule.control = ptowsp_control_make(PTOWSP_CONTROL_AICPU, PTOWSP_MODEL_910B);
    build_layers(&b, false, &schedule);
    report_tasks(&b, "the same under 3 AICPU threads", 110, "2 x without");
    schedule.control = none;
    // 24 lanes ask for 8 to 328 bytes a cycle each, 15 on average: for 1.1 and 2.2 times what there is
    schedule.shared.l2_rate = 1;
    for (uint32_t i = 0; i < 2; i++) {
        schedule.shared.hbm_rate = i ? 16000 : 32000;
        build_layers(&b, false, &schedule);
        report_tasks(&b,
                     i ? "work stealing, lanes share memory, half of the rate needed"
                       : "work stealing, lanes share memory",
                     110, "110 ns");
    }
    // tiles of 1 KiB, one read and one written: which of their bytes hit is found by region
    schedule.shared = ptowsp_shared_memory_of(PTOWSP_MODEL_910B);
    build_layers(&b, true, &schedule);
    report_tasks(&b, "work stealing, lanes share the memory of a 910B, tiles", 110, "110 ns");
    bench_expressions();
    bench_saved();
}
