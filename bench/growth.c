// Does memory grow? Runs of all kinds, executed again and again for some minutes: standing ones, which
// are kept and executed in each round, and passing ones, which are compiled, executed and destroyed.
// After a few rounds everything has the memory that it needs; from then on the bytes that contexts hold
// may not grow. Resident memory takes longer to settle, as threads of the allocator's own come to
// their arenas by chance, and is compared with that after a quarter of the time. If either grows, the
// benchmark fails.

#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__linux__)
#include <unistd.h>
#endif

enum { GROWTH_TASKS = 4096, WARM_ROUNDS = 8, GRAPH_SIZE = 1024 };

// -- memory ---------------------------------------------------------------------------------------

// Bytes that a context holds. Its lanes allocate, too, so the sum is changed under no lock but as one.
static uint64_t held_bytes;

static void *growth_resize(void *user, void *pointer, size_t old_size, size_t new_size) {
    (void)user;
    if (new_size == 0) {
        free(pointer);
        __atomic_fetch_sub(&held_bytes, old_size, __ATOMIC_RELAXED);
        return NULL;
    }
    void *resized = realloc(pointer, new_size);
    if (resized) {
        __atomic_fetch_add(&held_bytes, new_size - old_size, __ATOMIC_RELAXED);
    }
    return resized;
}

static uint64_t held_of_all(void) {
    return __atomic_load_n(&held_bytes, __ATOMIC_RELAXED);
}

// Bytes in memory, or 0 where it is not known.
static uint64_t resident_bytes(void) {
#if defined(__linux__)
    unsigned long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%lu %lu", &size, &resident) != 2) {
        resident = 0;
    }
    if (file) {
        fclose(file);
    }
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
#else
    return 0;
#endif
}

// -- programs -------------------------------------------------------------------------------------

typedef enum growth_module { TILES, PIPELINE, MODULE_COUNT } growth_module;

typedef struct growth {
    ptowsp_context *context;
    ptowsp_module *modules[MODULE_COUNT];
    float *data;
    ptowsp_graph *graph;
} growth;

static void growth_check(const growth *g, ptowsp_status status) {
    require(status == PTOWSP_OK, ptowsp_context_error(g->context).text);
}

static ptowsp_cycles growth_cost(const ptowsp_task *task, void *user) {
    (void)user;
    return 100 + (ptowsp_cycles)((task->index * 2654435761u >> 7) % 1024);
}

static ptowsp_cycles growth_add(const ptowsp_task *task, void *user) {
    const float *in = (const float *)task->tiles[0].data;
    float *out = (float *)task->tiles[1].data;
    *out = *in + 1.0f;
    return growth_cost(task, user);
}

// Eight layers; each task writes a tile, and reads one of the layer before.
static ptowsp_module *make_tiles(growth *g) {
    ptowsp_module *m;
    growth_check(g, ptowsp_module_create(g->context, NULL, &m));
    const ptowsp_tile_param in = {"in", PTOWSP_IN, PTOWSP_F32, 1, 8};
    const ptowsp_tile_param out = {"out", PTOWSP_OUT, PTOWSP_F32, 1, 8};
    const ptowsp_tensor_desc tensor = {
        "data", PTOWSP_F32, 3, {9, GROWTH_TASKS / 8, 8}, PTOWSP_LOCATION_GLOBAL};
    const ptowsp_tensor data = ptowsp_tensor_make(m, &tensor);
    ptowsp_kernel_desc kernel;
    ptowsp_task_desc task;
    memset(&kernel, 0, sizeof kernel);
    memset(&task, 0, sizeof task);
    kernel.name = "add";
    kernel.fn = growth_add;
    kernel.cost = growth_cost;
    kernel.tiles[0] = in;
    kernel.tiles[1] = out;
    task.kernel = ptowsp_kernel_make(m, &kernel);
    PTOWSP_WORKLOAD(m, "layers") {
        PTOWSP_FOR_EACH(m, layer, ptowsp_axis_dense(m, "layers", 8)) {
            PTOWSP_PARALLEL(m, i, ptowsp_axis_dense(m, "tiles", GROWTH_TASKS / 8)) {
                const ptowsp_expr other = ptowsp_add(ptowsp_mul(i, ptowsp_i64(m, 7)), layer);
                task.views[0].tensor = task.views[1].tensor = data;
                task.views[0].index[0] = layer;
                task.views[0].row = ptowsp_bitand(other, ptowsp_i64(m, GROWTH_TASKS / 8 - 1));
                task.views[1].index[0] = ptowsp_add(layer, ptowsp_i64(m, 1));
                task.views[1].row = i;
                ptowsp_task_make(m, &task);
            }
        }
    }
    return m;
}

// Two producers and two consumers, with a task for each token.
static ptowsp_module *make_pipeline(growth *g) {
    ptowsp_module *m;
    growth_check(g, ptowsp_module_create(g->context, NULL, &m));
    ptowsp_kernel_desc kernel;
    ptowsp_task_desc task;
    ptowsp_channel_desc desc;
    memset(&kernel, 0, sizeof kernel);
    memset(&task, 0, sizeof task);
    memset(&desc, 0, sizeof desc);
    kernel.name = "work";
    kernel.axis_count = 1;
    kernel.cost = growth_cost;
    kernel.fn = growth_cost;
    desc.name = "tokens";
    desc.depth = 4;
    desc.latency = 50;
    task.kernel = ptowsp_kernel_make(m, &kernel);
    PTOWSP_WORKLOAD(m, "pipeline") {
        PTOWSP_PIPELINE(m, "net") {
            const ptowsp_axis pair = ptowsp_axis_dense(m, "pair", 2);
            const ptowsp_channel channel = ptowsp_channel_make(m, &desc);
            PTOWSP_REPLICATE(m, r, pair, "producer") {
                (void)r;
                ptowsp_produces(m, channel);
                PTOWSP_FOR_EACH(m, i, ptowsp_axis_dense(m, "tokens", GROWTH_TASKS)) {
                    task.axes[0] = i;
                    ptowsp_send_task_make(m, channel, &task);
                }
            }
            PTOWSP_REPLICATE(m, r, pair, "consumer") {
                (void)r;
                ptowsp_consumes(m, channel);
                PTOWSP_CONSUME(m, token, channel) {
                    task.axes[0] = token;
                    ptowsp_task_make(m, &task);
                }
            }
        }
    }
    return m;
}

// -- kinds of runs --------------------------------------------------------------------------------

typedef struct growth_kind {
    const char *name;
    growth_module module;
    ptowsp_dispatch dispatch;
    ptowsp_ready ready;
    uint32_t window, lane_count;  // of threads; 0: time alone
    ptowsp_record_level record;
    bool is_exported;
} growth_kind;

// clang-format off
static const growth_kind kinds[] = {
    {"in order", TILES, PTOWSP_DISPATCH_ROUND_ROBIN, PTOWSP_READY_FIFO, 64, 0, PTOWSP_RECORD_NONE, false},
    {"by data", TILES, PTOWSP_DISPATCH_ROUND_ROBIN, PTOWSP_READY_FIFO, 512, 0, PTOWSP_RECORD_NONE, false},
    {"stealing", TILES, PTOWSP_DISPATCH_WORK_STEALING, PTOWSP_READY_WORK_STEALING, 512, 0, PTOWSP_RECORD_NONE, false},
    {"recorded", TILES, PTOWSP_DISPATCH_WORK_STEALING, PTOWSP_READY_FIFO, 512, 0, PTOWSP_RECORD_EDGES, true},
    {"executed", TILES, PTOWSP_DISPATCH_DEFAULT, PTOWSP_READY_FIFO, 0, 1, PTOWSP_RECORD_NONE, false},
    {"on 2 lanes", TILES, PTOWSP_DISPATCH_DEFAULT, PTOWSP_READY_FIFO, 0, 2, PTOWSP_RECORD_NONE, false},
    {"pipeline", PIPELINE, PTOWSP_DISPATCH_DEFAULT, PTOWSP_READY_FIFO, 0, 0, PTOWSP_RECORD_NONE, false},
};
// clang-format on

enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

typedef struct growth_run {
    ptowsp_program *program;
    ptowsp_run *run;
} growth_run;

static growth_run growth_make(growth *g, const growth_kind *kind) {
    growth_run made = {NULL, NULL};
    ptowsp_schedule schedule;
    ptowsp_buffer buffer;
    memset(&schedule, 0, sizeof schedule);
    memset(&buffer, 0, sizeof buffer);
    schedule.dispatch = kind->dispatch;
    schedule.ready = kind->ready;
    schedule.window = kind->window;
    schedule.lane_count = kind->dispatch == PTOWSP_DISPATCH_DEFAULT ? 0 : 24;
    schedule.dependencies = PTOWSP_DEPENDENCIES_EXACT;
    buffer.data = g->data;
    const ptowsp_program_desc desc = {NULL, &schedule};
    ptowsp_module *module = g->modules[kind->module];
    growth_check(g, ptowsp_program_create(g->context, module, &desc, &made.program));
    growth_check(g, ptowsp_run_create(g->context, made.program, &made.run));
    if (kind->module == TILES) {
        growth_check(g, ptowsp_run_bind_tensor(made.run, "data", &buffer));
    }
    return made;
}

static bool growth_write(void *user, const void *data, size_t size) {
    (void)user;
    bench_keep(data);
    return size > 0 || data != NULL;
}

static void growth_execute(growth *g, const growth_kind *kind, const growth_run *made) {
    ptowsp_record_options record;
    ptowsp_run_options options;
    memset(&record, 0, sizeof record);
    memset(&options, 0, sizeof options);
    record.level = kind->record;
    options.mode = kind->lane_count ? PTOWSP_RUN_EXECUTE : PTOWSP_RUN_TIME_ONLY;
    options.lane_count = kind->lane_count;
    growth_check(g, ptowsp_run_record(made->run, &record));
    growth_check(g, ptowsp_run_execute(made->run, &options));
    if (kind->is_exported) {
        const ptowsp_output output = {growth_write, NULL};
        growth_check(g, ptowsp_run_export(made->run, PTOWSP_EXPORT_PERFETTO, NULL, output));
    }
}

static void growth_destroy(const growth_run *made) {
    ptowsp_run_destroy(made->run);
    ptowsp_program_destroy(made->program);
}

static ptowsp_status growth_bind(void *user, ptowsp_run *run) {
    ptowsp_buffer buffer;
    memset(&buffer, 0, sizeof buffer);
    buffer.data = ((growth *)user)->data;
    return ptowsp_run_bind_tensor(run, "data", &buffer);
}

static void growth_search(growth *g) {
    ptowsp_search_result results[4];
    ptowsp_search_summary summary;
    ptowsp_search_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.bind = growth_bind;
    desc.user = g;
    growth_check(
        g, ptowsp_schedule_search(g->context, g->modules[TILES], &desc, results, 4, &summary));
}

static ptowsp_status growth_task(void *user, uint64_t task, uint32_t lane) {
    (void)user, (void)task, (void)lane;
    return PTOWSP_OK;
}

// A graph that is cleared, built anew and run.
static void growth_graph(growth *g) {
    ptowsp_graph_task_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.fn = growth_task;
    ptowsp_graph_clear(g->graph);
    for (uint32_t i = 0; i < GRAPH_SIZE; i++) {
        ptowsp_graph_task_make(g->graph, &desc, NULL);
        if (i > 0) {
            ptowsp_graph_edge_make(g->graph, (i - 1) / 2, i);
        }
    }
    growth_check(g, ptowsp_graph_seal(g->graph));
    growth_check(g, ptowsp_graph_run(g->graph));
}

static void growth_round(growth *g, const growth_run *standing, uint64_t round) {
    const growth_kind *kind = &kinds[round % KIND_COUNT];
    for (uint32_t i = 0; i < KIND_COUNT; i++) {
        growth_execute(g, &kinds[i], &standing[i]);
    }
    growth_run passing = growth_make(g, kind);
    growth_execute(g, kind, &passing);
    growth_destroy(&passing);
    growth_graph(g);
    if (round % KIND_COUNT == 0) {
        growth_search(g);
    }
}

static void growth_report(const char *name, const char *when, uint64_t before, uint64_t after,
                          double most) {
    const double mib = 1024.0 * 1024.0;
    const bench_row row = {name,
                           "MiB",
                           (double)after / mib,
                           when,
                           (double)before / mib,
                           before ? (double)after / (double)before : 0.0,
                           "no growth",
                           before > 0,
                           (double)after <= (double)before * most};
    report(row);
    require(!row.has_budget || row.is_met, "memory grows");
}

void bench_growth(double minutes) {
    static char name[64];
    growth g;
    growth_run standing[KIND_COUNT];
    ptowsp_context_desc desc;
    memset(&g, 0, sizeof g);
    memset(&desc, 0, sizeof desc);
    desc.threads = PTOWSP_THREADS_OWN;
    desc.lane_count = 2;
    desc.resize = growth_resize;
    require(ptowsp_context_create(&desc, &g.context) == PTOWSP_OK, "no context");
    g.data = (float *)bench_allocate(9 * GROWTH_TASKS * sizeof(float));
    g.modules[TILES] = make_tiles(&g);
    g.modules[PIPELINE] = make_pipeline(&g);
    growth_check(&g, ptowsp_graph_create(g.context, NULL, &g.graph));
    for (uint32_t i = 0; i < KIND_COUNT; i++) {
        standing[i] = growth_make(&g, &kinds[i]);
    }
    const uint64_t start = ptowsp_clock_ns(), warm_rounds = WARM_ROUNDS * KIND_COUNT;
    uint64_t held = 0, quarters[4] = {0}, round = 0;  // quarters: resident after each of them
    uint32_t quarter = 0;
    for (double passed = 0.0; round < warm_rounds || passed < minutes; round++) {
        growth_round(&g, standing, round);
        held = round + 1 == warm_rounds ? held_of_all() : held;
        passed = (double)(ptowsp_clock_ns() - start) / 60e9;
        for (; round + 1 >= warm_rounds && quarter < 4 && passed >= minutes * (quarter + 1) / 4;
             quarter++) {
            quarters[quarter] = resident_bytes();
        }
    }
    snprintf(name, sizeof name, "held after %llu rounds, %.1f minutes", (unsigned long long)round,
             (double)(ptowsp_clock_ns() - start) / 60e9);
    growth_report(name, "after the first rounds", held, held_of_all(), 1.0);
    growth_report("resident after half the time", "after a quarter", quarters[0], quarters[1],
                  1.05);
    growth_report("resident after three quarters", "after a quarter", quarters[0], quarters[2],
                  1.05);
    growth_report("resident at the end", "after a quarter", quarters[0], quarters[3], 1.05);
    for (uint32_t i = 0; i < KIND_COUNT; i++) {
        growth_destroy(&standing[i]);
    }
    ptowsp_graph_destroy(g.graph);
    ptowsp_module_destroy(g.modules[TILES]);
    ptowsp_module_destroy(g.modules[PIPELINE]);
    ptowsp_context_destroy(g.context);
    require(held_of_all() == 0, "memory is not given back");
    free(g.data);
}
