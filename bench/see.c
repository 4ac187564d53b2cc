// Seeing runs: what records cost beside a run without them, and exports per task. Tasks have two
// axis values and no tiles, which is the cheapest run there is to record.

#include "bench.h"

#include <stdlib.h>
#include <string.h>

#define SEE_TASKS (1 << 18)

typedef struct see_bench {
    ptowsp_context *context;
    ptowsp_module *module;
    ptowsp_program *program;
    ptowsp_run *run;
    ptowsp_record_level level;
    ptowsp_export_format format;
    bool is_short, is_executed, has_clock;
    uint64_t bytes;
} see_bench;

static ptowsp_cycles see_duration(const ptowsp_task *task, void *user) {
    (void)user;
    return 100 + (ptowsp_cycles)((task->args[1] * 2654435761u >> 7) % 4096);
}

static ptowsp_cycles see_nothing(const ptowsp_task *task, void *user) {
    (void)task;
    (void)user;
    return 1;
}

static void see_execute(see_bench *b, ptowsp_record_level level) {
    const ptowsp_record_options record = {level, 0, 0, 0, b->has_clock};
    ptowsp_run_options options;
    memset(&options, 0, sizeof options);
    options.mode = b->is_executed ? PTOWSP_RUN_EXECUTE : PTOWSP_RUN_TIME_ONLY;
    require(ptowsp_run_record(b->run, &record) == PTOWSP_OK, "recording");
    require(ptowsp_run_execute(b->run, &options) == PTOWSP_OK, "running");
}

static void see_without(void *user) {
    see_bench *b = (see_bench *)user;
    bool has_clock = b->has_clock;
    b->has_clock = false;
    see_execute(b, PTOWSP_RECORD_NONE);
    b->has_clock = has_clock;
}

// Records, but not the wall clock.
static void see_simulated(void *user) {
    see_bench *b = (see_bench *)user;
    b->has_clock = false;
    see_execute(b, b->level);
    b->has_clock = true;
}

static void see_with(void *user) {
    see_execute((see_bench *)user, ((see_bench *)user)->level);
}

static bool see_write(void *user, const void *data, size_t size) {
    bench_keep(data);
    *(uint64_t *)user += size;
    return true;
}

static void see_export(void *user) {
    see_bench *b = (see_bench *)user;
    const ptowsp_output output = {see_write, &b->bytes};
    ptowsp_export_options options;
    memset(&options, 0, sizeof options);
    options.is_short = b->is_short;
    b->bytes = 0;
    require(ptowsp_run_export(b->run, b->format, &options, output) == PTOWSP_OK, "exporting");
}

// As many bytes as a record and its label have, copied.
static void see_copy(void *user) {
    see_bench *b = (see_bench *)user;
    const ptowsp_task_record *records = ptowsp_run_records(b->run);
    ptowsp_task_record sum = records[0];
    for (uint64_t i = 0; i < SEE_TASKS; i++) {
        sum.end += records[i].end;
    }
    bench_keep(&sum);
}

static void see_make(see_bench *b) {
    memset(b, 0, sizeof *b);
    ptowsp_schedule schedule;
    ptowsp_kernel_desc kernel;
    ptowsp_task_desc task;
    memset(&schedule, 0, sizeof schedule);
    memset(&kernel, 0, sizeof kernel);
    memset(&task, 0, sizeof task);
    kernel.name = "attend";
    kernel.axis_count = 2;
    kernel.cost = see_duration;
    kernel.fn = see_nothing;
    schedule.lane_count = 24;
    schedule.window_policy = PTOWSP_WINDOW_STALL;
    schedule.window = 8192;
    const ptowsp_program_desc desc = {NULL, &schedule};
    require(ptowsp_context_create(NULL, &b->context) == PTOWSP_OK, "a context");
    require(ptowsp_module_create(b->context, NULL, &b->module) == PTOWSP_OK, "a module");
    ptowsp_module *m = b->module;
    task.kernel = ptowsp_kernel_make(m, &kernel);
    PTOWSP_WORKLOAD(m, "loop") {
        PTOWSP_PARALLEL(m, request, ptowsp_axis_dense(m, "requests", SEE_TASKS / 8)) {
            PTOWSP_PARALLEL(m, head, ptowsp_axis_dense(m, "heads", 8)) {
                task.axes[0] = request;
                task.axes[1] = head;
                ptowsp_task_make(m, &task);
            }
        }
    }
    require(ptowsp_program_create(b->context, m, &desc, &b->program) == PTOWSP_OK, "a program");
    require(ptowsp_run_create(b->context, b->program, &b->run) == PTOWSP_OK, "a run");
}

static void see_report(see_bench *b, const char *name, bench_fn own, bench_fn other,
                       const char *beside, double budget, const char *text) {
    bench_times t = measure(own, other, b, 1, 11);
    double own_ns = t.own_ns / SEE_TASKS;
    bench_row row = {name,    "ns/task", own_ns,     beside,          t.other_ns / SEE_TASKS,
                     t.ratio, text,      budget > 0, own_ns <= budget};
    report(row);
}

// Empty tasks of a graph on one lane, with spans and without.
typedef struct see_graph {
    ptowsp_graph *graph;
    ptowsp_span *spans;
} see_graph;

static ptowsp_status see_task(void *user, uint64_t task, uint32_t lane) {
    (void)user, (void)task, (void)lane;
    return PTOWSP_OK;
}

static void see_graph_run(const see_graph *g, ptowsp_span *spans) {
    require(ptowsp_graph_record(g->graph, spans, spans ? SEE_TASKS : 0) == PTOWSP_OK, "spans");
    require(ptowsp_graph_run(g->graph) == PTOWSP_OK, "a graph");
}

static void see_graph_with(void *user) {
    see_graph_run((const see_graph *)user, ((const see_graph *)user)->spans);
}

static void see_graph_without(void *user) {
    see_graph_run((const see_graph *)user, NULL);
}

static void see_bench_graph(ptowsp_context *context) {
    const ptowsp_graph_task_desc task = {.fn = see_task};
    see_graph g;
    require(ptowsp_graph_create(context, NULL, &g.graph) == PTOWSP_OK, "a graph");
    for (int i = 0; i < SEE_TASKS; i++) {
        require(ptowsp_graph_task_make(g.graph, &task, NULL) == PTOWSP_OK, "a task");
    }
    g.spans = (ptowsp_span *)calloc(SEE_TASKS, sizeof *g.spans);
    require(g.spans != NULL, "spans");
    bench_times t = measure(see_graph_with, see_graph_without, &g, 1, 11);
    double own_ns = t.own_ns / SEE_TASKS, other_ns = t.other_ns / SEE_TASKS;
    bench_row row = {"spans of a graph, empty tasks",
                     "ns/task",
                     own_ns,
                     "without",
                     other_ns,
                     t.ratio,
                     "20 ns more",
                     true,
                     own_ns - other_ns <= 20};
    report(row);
    free(g.spans);
    ptowsp_graph_destroy(g.graph);
}

static void see_report_bytes(const see_bench *b, const char *name, double budget,
                             const char *text) {
    double bytes = (double)b->bytes / SEE_TASKS;
    bench_row row = {name,
                     "bytes/task",
                     bytes,
                     "a record",
                     sizeof(ptowsp_task_record),
                     bytes / sizeof(ptowsp_task_record),
                     text,
                     budget > 0,
                     bytes <= budget};
    report(row);
}

void bench_see(void) {
    see_bench b;
    see_make(&b);
    b.level = PTOWSP_RECORD_TOTALS;
    see_report(&b, "a run with totals", see_with, see_without, "without", 0, "");
    b.level = PTOWSP_RECORD_TASKS;
    see_report(&b, "a run with records of tasks", see_with, see_without, "without", 0, "");
    b.is_executed = b.has_clock = true;
    see_report(&b, "the wall clock in them, empty kernels", see_with, see_simulated,
               "without the clock", 0, "");
    b.is_executed = b.has_clock = false;
    see_execute(&b, PTOWSP_RECORD_TASKS);
    b.format = PTOWSP_EXPORT_PERFETTO;
    b.is_short = true;
    see_report(&b, "Perfetto, names of kernels", see_export, see_copy, "reading records", 25,
               "25 ns");
    see_report_bytes(&b, "the same", 30, "30 bytes");
    b.is_short = false;
    see_report(&b, "Perfetto, whole labels", see_export, see_copy, "reading records", 25, "25 ns");
    see_report_bytes(&b, "the same", 30, "30 bytes");
    b.format = PTOWSP_EXPORT_CHROME;
    see_report(&b, "Chrome's JSON", see_export, see_copy, "reading records", 0, "");
    see_report_bytes(&b, "the same", 0, "");
    b.format = PTOWSP_EXPORT_CSV;
    see_report(&b, "CSV", see_export, see_copy, "reading records", 0, "");
    b.format = PTOWSP_EXPORT_SVG;
    see_report(&b, "SVG", see_export, see_copy, "reading records", 0, "");
    see_bench_graph(b.context);
    ptowsp_run_destroy(b.run);
    ptowsp_program_destroy(b.program);
    ptowsp_module_destroy(b.module);
    ptowsp_context_destroy(b.context);
}
