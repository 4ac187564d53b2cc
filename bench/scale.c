// Scale: the same over powers of ten. Processor time per unit and the most memory that was held, as a table
// and, with --svg FILE, as a picture. From one power of ten to the next the time per unit may grow
// as a logarithm does, and by what caches take: more than 4 times is marked.
//
// A unit is a task, a process, a node or a declaration; over lanes it is a task, of a number that does not
// change.

#include "bench.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { POINTS = 8, LAYER = 4096, SCALE_LANES = 24, SCALE_WINDOW = 8192, LANE_TASKS = 1 << 19 };

typedef struct scale_point {
    uint64_t size;
    double ns;     // per unit
    double bytes;  // at most, of all that came from the context
} scale_point;

// The part whose time counts: a run; building and compiling; reading the module's text; explaining a run.
typedef enum scale_part { RUN, COMPILE, READ, EXPLAIN } scale_part;

typedef struct scale_series {
    const char *name;
    uint64_t first, last;  // sizes, times ten each
    void (*build)(ptowsp_module *module, uint64_t size, ptowsp_schedule *schedule);
    uint32_t variant;  // for build
    scale_part part;
    bool is_of_lanes;
} scale_series;

static const scale_series *series_of_build;

// -- memory ---------------------------------------------------------------------------------------

static size_t held, held_max;

static void *resize(void *user, void *ptr, size_t old_size, size_t new_size) {
    (void)user;
    void *block = NULL;
    if (new_size == 0) {
        free(ptr);
    } else if (!(block = realloc(ptr, new_size))) {
        return NULL;
    }
    held = held - old_size + new_size;
    held_max = held > held_max ? held : held_max;
    return block;
}

// -- workloads ------------------------------------------------------------------------------------

static ptowsp_cycles duration(const ptowsp_task *task, void *user) {
    (void)user;
    return 100 + (task->args[0] * 2654435761u >> 7) % 4096;
}

static ptowsp_kernel make_kernel(ptowsp_module *m, bool has_tiles) {
    const ptowsp_tile_param in = {"in", PTOWSP_IN, PTOWSP_F32, 16, 16};
    const ptowsp_tile_param out = {"out", PTOWSP_OUT, PTOWSP_F32, 16, 16};
    ptowsp_kernel_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = "work";
    desc.axis_count = 1;
    desc.cost = duration;
    if (has_tiles) {
        desc.tiles[0] = in;
        desc.tiles[1] = out;
    }
    return ptowsp_kernel_make(m, &desc);
}

static void build_loop(ptowsp_module *m, uint64_t size, ptowsp_schedule *schedule) {
    ptowsp_axis axis = ptowsp_axis_dense(m, "n", (int64_t)size);
    ptowsp_task_desc task;
    memset(&task, 0, sizeof task);
    task.kernel = make_kernel(m, false);
    PTOWSP_WORKLOAD(m, "loop") {
        PTOWSP_PARALLEL(m, i, axis) {
            task.axes[0] = i;
            ptowsp_task_make(m, &task);
        }
    }
    schedule->issue = PTOWSP_ISSUE_IN_ORDER;
    schedule->window = SCALE_WINDOW;
}

// Layers of LAYER tasks, each after the layer before: by its tiles, or by structure with stealing.
static void build_layers(ptowsp_module *m, uint64_t size, ptowsp_schedule *schedule) {
    bool has_tiles = series_of_build->variant == 0;
    int64_t width = size < LAYER ? (int64_t)size : LAYER, depth = (int64_t)size / width;
    ptowsp_tensor_desc desc;
    ptowsp_task_desc task;
    memset(&desc, 0, sizeof desc);
    memset(&task, 0, sizeof task);
    desc.name = "data";
    desc.dtype = PTOWSP_F32;
    desc.rank = 4;
    desc.shape[0] = depth + 1;
    desc.shape[1] = width;
    desc.shape[2] = desc.shape[3] = 16;
    ptowsp_tensor data = ptowsp_tensor_make(m, &desc);
    task.kernel = make_kernel(m, has_tiles);
    PTOWSP_WORKLOAD(m, "layers") {
        PTOWSP_FOR_EACH(m, layer, ptowsp_axis_dense(m, "layers", depth)) {
            PTOWSP_PARALLEL(m, i, ptowsp_axis_dense(m, "tiles", width)) {
                ptowsp_expr other = ptowsp_add(ptowsp_mul(i, ptowsp_i64(m, 7)), layer);
                task.axes[0] = i;
                if (has_tiles) {
                    task.views[0].tensor = task.views[1].tensor = data;
                    task.views[0].index[0] = layer;
                    task.views[0].index[1] = ptowsp_rem(other, ptowsp_i64(m, width));
                    task.views[1].index[0] = ptowsp_add(layer, ptowsp_i64(m, 1));
                    task.views[1].index[1] = i;
                }
                ptowsp_task_make(m, &task);
            }
        }
    }
    schedule->window = SCALE_WINDOW;
    schedule->dependencies =
        has_tiles ? PTOWSP_DEPENDENCIES_OVERLAP : PTOWSP_DEPENDENCIES_STRUCTURE;
    schedule->dispatch = has_tiles ? PTOWSP_DISPATCH_ROUND_ROBIN : PTOWSP_DISPATCH_WORK_STEALING;
}

// The variants: the first free lane in order; by events; and all tasks of one lane, which the others
// steal.
static void build_lanes(ptowsp_module *m, uint64_t size, ptowsp_schedule *schedule) {
    build_loop(m, LANE_TASKS, schedule);
    schedule->lane_count = (uint32_t)size;
    schedule->issue = series_of_build->variant == 0 ? PTOWSP_ISSUE_IN_ORDER : PTOWSP_ISSUE_DATAFLOW;
    schedule->dispatch =
        series_of_build->variant == 2 ? PTOWSP_DISPATCH_AFFINITY : PTOWSP_DISPATCH_WORK_STEALING;
    schedule->ready =
        series_of_build->variant == 2 ? PTOWSP_READY_WORK_STEALING : PTOWSP_READY_FIFO;
    if (series_of_build->variant == 2) {
        schedule->dispatch_key = ptowsp_i64(m, 0);
    }
    schedule->window = 1 << 17;
}

// One process sends each of the others a token, and these take it.
static void build_processes(ptowsp_module *m, uint64_t size, ptowsp_schedule *schedule) {
    ptowsp_axis axis = ptowsp_axis_dense(m, "n", (int64_t)size - 1);
    ptowsp_channel_desc desc;
    (void)schedule;
    memset(&desc, 0, sizeof desc);
    desc.name = "tokens";
    desc.depth = 64;
    desc.latency = 10;
    PTOWSP_WORKLOAD(m, "processes") {
        PTOWSP_PIPELINE(m, "p") {
            ptowsp_channel tokens = ptowsp_channel_make(m, &desc);
            PTOWSP_PROCESS(m, "source") {
                ptowsp_produces(m, tokens);
                PTOWSP_FOR_EACH(m, i, axis) {
                    ptowsp_send_make(m, tokens, i);
                }
            }
            PTOWSP_REPLICATE(m, r, axis, "sink") {
                (void)r;
                ptowsp_consumes(m, tokens);
                PTOWSP_RECEIVE(m, t, tokens) {
                    (void)t;
                }
            }
        }
    }
}

// A module of tasks, one after another, each a node.
static void build_nodes(ptowsp_module *m, uint64_t size, ptowsp_schedule *schedule) {
    ptowsp_task_desc task;
    (void)schedule;
    memset(&task, 0, sizeof task);
    task.kernel = make_kernel(m, false);
    PTOWSP_WORKLOAD(m, "nodes") {
        for (uint64_t i = 0; i < size; i++) {
            task.axes[0] = ptowsp_i64(m, (int64_t)i);
            ptowsp_task_make(m, &task);
        }
    }
}

// Kernels with one source, and a task of each.
static void build_kernels(ptowsp_module *m, uint64_t size, ptowsp_schedule *schedule) {
    ptowsp_kernel_desc desc;
    ptowsp_task_desc task;
    char name[32];
    (void)schedule;
    memset(&desc, 0, sizeof desc);
    memset(&task, 0, sizeof task);
    desc.name = name;
    desc.cycles = 100;
    desc.source.text = "static ptowsp_cycles work(const ptowsp_task *, void *) { return 100; }\n";
    desc.source.fn = "work";
    PTOWSP_WORKLOAD(m, "kernels") {
        for (uint64_t i = 0; i < size; i++) {
            snprintf(name, sizeof name, "work_%" PRIu64, i);
            task.kernel = ptowsp_kernel_make(m, &desc);
            ptowsp_task_make(m, &task);
        }
    }
}

// Axes, and a loop over each.
static void build_axes(ptowsp_module *m, uint64_t size, ptowsp_schedule *schedule) {
    ptowsp_task_desc task;
    char name[32];
    (void)schedule;
    memset(&task, 0, sizeof task);
    task.kernel = make_kernel(m, false);
    PTOWSP_WORKLOAD(m, "axes") {
        for (uint64_t n = 0; n < size; n++) {
            snprintf(name, sizeof name, "axis_%" PRIu64, n);
            PTOWSP_FOR_EACH(m, i, ptowsp_axis_dense(m, name, 1)) {
                task.axes[0] = i;
                ptowsp_task_make(m, &task);
            }
        }
    }
}

// Two processes with a port for each channel.
static void build_ports(ptowsp_module *m, uint64_t size, ptowsp_schedule *schedule) {
    ptowsp_channel_desc desc;
    char name[32];
    ptowsp_channel first = {0};
    (void)schedule;
    memset(&desc, 0, sizeof desc);
    desc.name = name;
    PTOWSP_WORKLOAD(m, "ports") {
        PTOWSP_PIPELINE(m, "p") {
            for (uint64_t i = 0; i < size; i++) {
                snprintf(name, sizeof name, "channel_%" PRIu64, i);
                const ptowsp_channel made = ptowsp_channel_make(m, &desc);
                first = i ? first : made;
            }
            PTOWSP_PROCESS(m, "source") {
                for (uint32_t i = 0; i < size; i++) {
                    const ptowsp_channel channel = {first.id + i};
                    ptowsp_produces(m, channel);
                }
                for (uint32_t i = 0; i < size; i++) {
                    const ptowsp_channel channel = {first.id + i};
                    ptowsp_send_make(m, channel, ptowsp_i64(m, 1));
                }
            }
            PTOWSP_PROCESS(m, "sink") {
                for (uint32_t i = 0; i < size; i++) {
                    const ptowsp_channel channel = {first.id + i};
                    ptowsp_consumes(m, channel);
                }
                for (uint32_t i = 0; i < size; i++) {
                    const ptowsp_channel channel = {first.id + i};
                    PTOWSP_RECEIVE(m, t, channel) {
                        (void)t;
                    }
                }
            }
        }
    }
}

static const scale_series all_series[] = {
    {"tasks in order, window 8192", 1000, 100000000, build_loop, 0, RUN, false},
    {"tasks by data, two tiles each", 1000, 10000000, build_layers, 0, RUN, false},
    {"tasks by structure, stealing", 1000, 10000000, build_layers, 1, RUN, false},
    {"lanes, in order, stealing", 10, 65536, build_lanes, 0, RUN, true},
    {"lanes, dataflow, stealing", 10, 65536, build_lanes, 1, RUN, true},
    {"lanes, all tasks stolen", 10, 65536, build_lanes, 2, RUN, true},
    {"processes with a token each", 10, 1000000, build_processes, 0, RUN, false},
    {"nodes of a module, compiled", 100, 100000, build_nodes, 0, COMPILE, false},
    {"kernels of a module, compiled", 100, 100000, build_kernels, 0, COMPILE, false},
    {"kernels of a run, explained", 100, 100000, build_kernels, 0, EXPLAIN, false},
    {"axes of a module, read", 100, 100000, build_axes, 0, READ, false},
    {"ports of a process, compiled", 100, 100000, build_ports, 0, COMPILE, false}};

enum { SERIES = sizeof all_series / sizeof *all_series };

// -- measuring ------------------------------------------------------------------------------------

// Processor time, as runs of seconds meet others on this machine. In ns.
static double processor_time(void) {
    return (double)clock() * (1e9 / (double)CLOCKS_PER_SEC);
}

static double scale_run(ptowsp_context *context, ptowsp_program *program) {
    ptowsp_run *run;
    ptowsp_run_options options;
    double best = INFINITY, sum = 0;
    memset(&options, 0, sizeof options);
    options.mode = PTOWSP_RUN_TIME_ONLY;
    require(ptowsp_run_create(context, program, &run) == PTOWSP_OK,
            ptowsp_context_error(context).text);
    for (int i = 0; i < 20 && sum < 2e8; i++) {
        double begin = processor_time();
        require(ptowsp_run_execute(run, &options) == PTOWSP_OK, ptowsp_context_error(context).text);
        double ns = processor_time() - begin;
        best = fmin(best, ns);
        sum += ns;
    }
    ptowsp_run_destroy(run);
    return best;
}

static bool scale_hear(void *user, const ptowsp_decision *decision) {
    (void)user;
    bench_keep(decision->chosen);
    return true;
}

// Explains a run that has recorded the sums of all kernels.
static double scale_explain(ptowsp_context *context, ptowsp_program *program) {
    ptowsp_run *run;
    ptowsp_run_options options;
    memset(&options, 0, sizeof options);
    options.mode = PTOWSP_RUN_TIME_ONLY;
    options.record_tasks = true;
    require(ptowsp_run_create(context, program, &run) == PTOWSP_OK &&
                ptowsp_run_execute(run, &options) == PTOWSP_OK,
            ptowsp_context_error(context).text);
    const double begin = processor_time();
    ptowsp_run_decisions(run, scale_hear, NULL);
    const double ns = processor_time() - begin;
    ptowsp_run_destroy(run);
    return ns;
}

static double scale_read(ptowsp_context *context, const ptowsp_module *module) {
    const ptowsp_parse_desc desc = {NULL, 0, 1};
    ptowsp_output_buffer buffer = {NULL, 0, 0};
    ptowsp_module *read;
    ptowsp_module_print(module, ptowsp_output_to_buffer(&buffer));
    buffer.size = buffer.length + 1;
    buffer.length = 0;
    buffer.data = (char *)bench_allocate(buffer.size);
    ptowsp_module_print(module, ptowsp_output_to_buffer(&buffer));
    const double begin = processor_time();
    require(ptowsp_module_parse(context, buffer.data, buffer.length, &desc, &read, NULL) ==
                PTOWSP_OK,
            ptowsp_context_error(context).text);
    const double ns = processor_time() - begin;
    ptowsp_module_destroy(read);
    free(buffer.data);
    return ns;
}

static scale_point scale_measure(const scale_series *series, uint64_t size) {
    scale_point point = {size, 0, 0};
    ptowsp_context_desc desc;
    ptowsp_context *context;
    ptowsp_module *module = NULL;
    ptowsp_program *program;
    ptowsp_schedule schedule;
    memset(&desc, 0, sizeof desc);
    memset(&schedule, 0, sizeof schedule);
    desc.resize = resize;
    held = held_max = 0;
    series_of_build = series;
    schedule.lane_count = SCALE_LANES;
    schedule.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN;
    require(ptowsp_context_create(&desc, &context) == PTOWSP_OK &&
                ptowsp_module_create(context, NULL, &module) == PTOWSP_OK,
            "no memory");
    double begin = processor_time();
    series->build(module, size, &schedule);
    const ptowsp_program_desc with = {NULL, &schedule};
    require(ptowsp_program_create(context, module, &with, &program) == PTOWSP_OK,
            ptowsp_context_error(context).text);
    double ns = processor_time() - begin;
    ns = series->part == COMPILE   ? ns
         : series->part == READ    ? scale_read(context, module)
         : series->part == EXPLAIN ? scale_explain(context, program)
                                   : scale_run(context, program);
    ptowsp_program_destroy(program);
    ptowsp_module_destroy(module);
    ptowsp_context_destroy(context);
    point.ns = ns / (double)(series->is_of_lanes ? LANE_TASKS : size);
    point.bytes = (double)held_max;
    return point;
}

// -- the picture ----------------------------------------------------------------------------------

enum { PANEL = 430, HEIGHT = 330, LEFT = 60, BOTTOM = 40 };

static const char *const colours[SERIES] = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                            "#56b4e9", "#d55e00", "#999999", "#b8a900",
                                            "#332288", "#882255", "#44aa99", "#661100"};

// A panel with axes in powers of ten: sizes from 10 to 10^8, values from 10^low to 10^high.
static void draw_panel(FILE *file, int x, const char *title, int low, int high,
                       scale_point points[SERIES][POINTS], const uint32_t *counts, bool is_bytes) {
    const double width = PANEL - LEFT - 20, height = HEIGHT - BOTTOM - 30;
    fprintf(file, "<g transform=\"translate(%d 0)\"><text x=\"%d\" y=\"18\">%s</text>\n", x, LEFT,
            title);
    for (int power = 1; power <= 8; power++) {
        double at = LEFT + width * (power - 1) / 7;
        fprintf(file, "<text class=\"m\" x=\"%.1f\" y=\"%d\">10^%d</text>\n", at, HEIGHT - 20,
                power);
    }
    for (int power = low; power <= high; power++) {
        double at = 30 + height * (high - power) / (high - low);
        fprintf(file,
                "<path class=\"g\" d=\"M%d %.1fh%.1f\"/><text class=\"n\" x=\"%d\" y=\"%.1f\">",
                LEFT, at, width, LEFT - 6, at + 4);
        fprintf(file, "10^%d</text>\n", power);
    }
    for (int s = 0; s < SERIES; s++) {
        fprintf(file, "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"%s\" points=\"",
                colours[s]);
        for (uint32_t i = 0; i < counts[s]; i++) {
            double value = is_bytes ? points[s][i].bytes : points[s][i].ns;
            fprintf(file, "%.1f,%.1f ", LEFT + width * (log10((double)points[s][i].size) - 1) / 7,
                    30 + height * (high - log10(value)) / (high - low));
        }
        fputs("\"/>\n", file);
    }
    fputs("</g>\n", file);
}

static void draw(const char *path, scale_point points[SERIES][POINTS], const uint32_t *counts) {
    FILE *file = fopen(path, "w");
    require(file != NULL, "cannot write the picture");
    fprintf(
        file,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\">\n"
        "<style>text{font:11px sans-serif;fill:#59636e}.n{text-anchor:end}.m{text-anchor:middle}"
        ".g{stroke:#d8dee4}</style>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
        2 * PANEL, HEIGHT + 90, 2 * PANEL);
    draw_panel(file, 0, "ns per unit, over the number of units or lanes", 0, 4, points, counts,
               false);
    draw_panel(file, PANEL, "bytes held at most", 4, 10, points, counts, true);
    for (int s = 0; s < SERIES; s++) {
        int x = LEFT + s % 2 * PANEL, y = HEIGHT + 10 + s / 2 * 18;
        fprintf(file,
                "<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"4\" fill=\"%s\"/>"
                "<text x=\"%d\" y=\"%d\">%s</text>\n",
                x, y, colours[s], x + 18, y + 6, all_series[s].name);
    }
    fputs("</svg>\n", file);
    require(fclose(file) == 0, "cannot write the picture");
}

// The next size, the last one even if it is no power of ten; 0 behind it.
static uint64_t scale_next(const scale_series *series, uint64_t size) {
    uint64_t next = size * 10 < series->last ? size * 10 : series->last;
    return size < series->last ? next : 0;
}

void bench_scale(const char *svg) {
    static scale_point points[SERIES][POINTS];
    uint32_t counts[SERIES] = {0};
    printf("%-34s %10s %12s %12s %8s\n", "scale", "size", "ns per unit", "MB at most", "growth");
    for (int s = 0; s < SERIES; s++) {
        const scale_series *series = &all_series[s];
        for (uint64_t size = series->first; size; size = scale_next(series, size)) {
            scale_point *point = &points[s][counts[s]++];
            require(counts[s] <= POINTS, "more points than there is room for");
            *point = scale_measure(series, size);
            double growth = counts[s] > 1 ? point->ns / point[-1].ns : 1;
            printf("%-34s %10" PRIu64 " %12.1f %12.3f %8.2f%s\n", series->name, size, point->ns,
                   point->bytes / 1e6, growth, growth > 4 ? "  (MORE THAN A LOGARITHM)" : "");
            fflush(stdout);
        }
    }
    if (svg) {
        draw(svg, points, counts);
    }
}
