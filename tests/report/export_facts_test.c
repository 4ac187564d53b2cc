// Exports and reports as facts (support/facts.h): spans of one's own, runs and ranks as pictures and tables, titles of
// any text, and what is refused.

#include "facts.h"
#include "written.h"

enum { SPANS = 8, ARROWS = 4, NAMES = 3, RUNS = 3 };

static const char *const formats[] = {"perfetto", "chrome", "svg", "csv",  "table",
                                      "usage",    "edges",  "dot", "deps", NULL};
static const char *const reports[] = {"text", "json", "html", NULL};
static const char *const levels[] = {"none", "totals", "tasks", "edges", NULL};
static const char *const dispatches[] = {"default", "round_robin",   "affinity", "hash",
                                         "custom",  "work_stealing", "plan",     NULL};
static const char *text = written.text;

// -- runs -----------------------------------------------------------------------------------------

static const char *module = "";
static ptowsp_context *context;
static ptowsp_module *modules[RUNS];
static ptowsp_program *programs[RUNS];
static ptowsp_run *runs[RUNS];
static uint32_t program_count, run_count, level, every, on_lanes;
static uint64_t from;  // the first time that is recorded
static ptowsp_schedule schedule;
static ptowsp_run_bounds bounds;
static bool has_cost;  // the source of kernel `use`

static void clear(void) {
    while (run_count > 0) {
        ptowsp_run_destroy(runs[--run_count]);
    }
    while (program_count > 0) {
        program_count--;
        test_destroy(NULL, programs[program_count], modules[program_count], NULL);
    }
}

// A run of the last program.
static ptowsp_status rank(void) {
    const ptowsp_record_options record = {
        .level = (ptowsp_record_level)level, .every = every, .begin = from};
    runs[run_count] = test_run_of(context, programs[program_count - 1]);
    return ptowsp_run_record(runs[run_count++], &record);
}

static ptowsp_cycles ten(const ptowsp_task *task, void *user) {
    (void)task, (void)user;
    return 10;
}

static ptowsp_cycles attend(const ptowsp_task *task, void *user) {
    (void)user;
    return (ptowsp_cycles)(10 + ptowsp_task_axis(task, 0) + ptowsp_task_axis(task, 1));
}

static ptowsp_status more(void) {
    const ptowsp_parse_kernel kernels[] = {
        {.name = "use",
         .fn = ten,
         .cost = ten,
         .source = {.text = "// a source", .cost = has_cost ? "cost" : NULL}},
        {.name = "fn", .fn = ten},
        {.name = "attend", .fn = ten, .cost = attend}};
    const ptowsp_parse_desc attached = {kernels, COUNT_OF(kernels), 0};
    const ptowsp_program_desc desc = {NULL, &schedule};
    const uint32_t i = program_count++;
    test_ok(context,
            ptowsp_module_parse(context, module, strlen(module), &attached, &modules[i], NULL));
    test_ok(context, ptowsp_program_create(context, modules[i], &desc, &programs[i]));
    return rank();
}

static ptowsp_status make(void) {
    clear();
    return more();
}

static ptowsp_status execute(void) {
    return test_time(runs[0]);
}

static ptowsp_status run(void) {
    return test_execute(runs[0], on_lanes);
}

static ptowsp_status run_on_device(void) {
    ptowsp_device *device;
    assert_ok(ptowsp_device_open(context, NULL, &device));
    const ptowsp_status status = ptowsp_device_run(device, runs[0], NULL);
    assert_ok(ptowsp_device_close(device));
    return status;
}

static ptowsp_status bind_x(void) {
    static float data[64];
    const ptowsp_buffer x = {.data = data, .dtype = PTOWSP_F32};
    return ptowsp_run_bind_tensor(runs[0], "x", &x);
}

static ptowsp_status bind_work(void) {
    static ptowsp_work work[4];
    return ptowsp_run_bind_work(runs[0], "p", work, 4);
}

static ptowsp_status find_bounds(void) {
    return ptowsp_run_find_bounds(runs[0], &bounds);
}

static ptowsp_status place(void) {
    ptowsp_transient_sizes sizes;
    return ptowsp_run_size_transients(runs[0], &sizes);
}

// -- what is written ------------------------------------------------------------------------------

static ptowsp_span spans[SPANS];
static ptowsp_span_arrow arrows[ARROWS];
static const char *names[NAMES], *lane_names[2], *label_text;
static ptowsp_span_set set;
static ptowsp_export_options options;
static ptowsp_export_format format;
static ptowsp_report_format page;
static ptowsp_what_if what_if;
static uint32_t ranks;
static const char *wanted;
static bool has_set, has_spans, has_names, has_lane_names, has_arrows, has_label, has_output,
    has_runs, has_first;

static void begin(void) {
    memset(spans, 0, sizeof spans);
    memset(arrows, 0, sizeof arrows);
    names[0] = "decode", names[1] = "merge", names[2] = "";
    lane_names[0] = "cores", lane_names[1] = "links";
    label_text = "number=";
    set = (ptowsp_span_set){.name_count = NAMES};
    options = (ptowsp_export_options){0};
    format = PTOWSP_EXPORT_SVG;
    page = PTOWSP_REPORT_HTML;
    what_if = (ptowsp_what_if){.kernel = 1, .percent = 50};
    has_set = has_spans = has_names = has_output = has_runs = has_first = true;
    has_lane_names = has_arrows = has_label = false;
    ranks = run_count;
    schedule = (ptowsp_schedule){0};
    has_cost = true;
    every = on_lanes = 0;
    level = PTOWSP_RECORD_TASKS;
    from = 0;
}

static void label(void *user, uint64_t i, ptowsp_output output) {
    char number[64];
    const char *before = *(const char *const *)user;
    output.write(output.user, number,
                 (size_t)snprintf(number, sizeof number, "%s%d", before, (int)i));
}

static ptowsp_output output(void) {
    const ptowsp_output none = {NULL, NULL}, given = written_output();
    return has_output ? given : none;
}

static ptowsp_status draw(void) {
    set.spans = has_spans ? spans : NULL;
    set.names = has_names ? names : NULL;
    set.lane_names = has_lane_names ? lane_names : NULL;
    set.arrows = has_arrows ? arrows : NULL;
    set.label = has_label ? label : NULL;
    set.user = &label_text;
    return ptowsp_spans_export(context, has_set ? &set : NULL, format, &options, output());
}

static ptowsp_status export(void) {
    return ptowsp_run_export(runs[0], format, &options, output());
}

static ptowsp_status transients(void) {
    return ptowsp_run_export_transients(runs[0], format, &options, output());
}

static ptowsp_status report(void) {
    const ptowsp_what_if what_ifs[2] = {{1, 50, 14, 0}, what_if};
    return ptowsp_run_report(runs[0], page, &options, what_ifs + !has_first,
                             1 + (uint32_t)has_first, output());
}

static ptowsp_status ask(void) {
    (void)output();
    return ptowsp_run_what_if(runs[0], NULL, &what_if);
}

static ptowsp_status print(void) {
    ptowsp_run_print(runs[0], output());
    return PTOWSP_OK;
}

static ptowsp_status print_module(void) {
    ptowsp_module_print(modules[0], output());
    return PTOWSP_OK;
}

static ptowsp_status save(void) {
    const ptowsp_program_desc desc = {NULL, &schedule};
    return ptowsp_program_save(context, modules[0], &desc, output());
}

// What was saved takes the place of all.
static ptowsp_status load(void) {
    clear();
    program_count = 1;
    test_ok(context,
            ptowsp_program_load(context, written.text, written.length, NULL, &programs[0], NULL));
    modules[0] = NULL;
    schedule.shared = ptowsp_program_read(programs[0])->schedule.shared;
    return rank();
}

static ptowsp_status decide(void) {
    return ptowsp_run_export_decisions(runs[0], page, output());
}

static ptowsp_status compare(void) {
    assert_string_equal(text, wanted);
    return PTOWSP_OK;
}

// Over links of 1 us and a byte a nanosecond.
static ptowsp_run_group group(void) {
    const ptowsp_run_group all = {.runs = has_runs ? runs : NULL,
                                  .rank_count = ranks,
                                  .links.inside = {1000000, 1000, PTOWSP_LINK_PORT},
                                  .cycles_per_us = 1000};
    return all;
}

static ptowsp_status together(void) {
    const ptowsp_run_group all = group();
    ranks = run_count;
    return ptowsp_run_group_simulate(context, &all, NULL, NULL);
}

static ptowsp_status export_ranks(void) {
    const ptowsp_run_group all = group();
    return ptowsp_run_group_export(context, &all, format, &options, output());
}

static const char *error(uint64_t *out_index) {
    const char *said = ptowsp_context_error(context).text;
    *out_index = ptowsp_context_error(context).index;
    return strncmp(said, "export: ", 8) == 0 ? said + 8 : said;
}

static void nothing_is_written(void) {
    assert_int_equal(written.length, 0);
}

#define FIELD_AS(name, x) FACTS_OF(name, x, sizeof(x), 1)
#define OPTION(member)    FIELD_AS(#member, options.member)
#define SCHEDULE(member)  FIELD_AS(#member, schedule.member)

static const facts_field *fields(void) {
    static uint64_t tasks[RUNS];
    for (uint32_t i = 0; i < RUNS; i++) {
        tasks[i] = i < run_count ? ptowsp_run_trace_count(runs[i]) : 0;
    }
    static uint64_t makespan;
    makespan = run_count ? ptowsp_run_result(runs[0])->makespan_cycles : 0;
    FACTS_RETURN(
        FIELD(makespan), FIELD(text), FIELD(wanted), FIELD(module), FIELD(on_lanes),
        FIELD(has_cost), FIELD_AS("lanes", schedule.lane_count),
        FACTS_AS("dispatch", schedule.dispatch, sizeof schedule, 1, dispatches), SCHEDULE(issue),
        SCHEDULE(window), SCHEDULE(window_policy), SCHEDULE(timing), SCHEDULE(timing_count),
        SCHEDULE(timing_cycles), SCHEDULE(start), SCHEDULE(start_threshold),
        SCHEDULE(shared.hbm_rate), SCHEDULE(shared.l2_rate), SCHEDULE(shared.l2_bytes),
        SCHEDULE(shared.lane_rate), FIELD(bounds.has_path), FIELD(bounds.path_cycles),
        FIELD(bounds.pool_count), FIELDS(bounds.pool_lanes, 1), FIELDS(bounds.work_cycles, 1),
        FIELD(bounds.makespan_cycles), FIELD_NAMED(level, levels), FIELD(every), FIELD(from),
        FIELDS(tasks, run_count), MEMBER(spans, begin, SPANS), MEMBER(spans, end, SPANS),
        MEMBER(spans, lane, SPANS), MEMBER(spans, kind, SPANS), MEMBER(arrows, from, ARROWS),
        MEMBER(arrows, to, ARROWS), FIELDS(names, NAMES), FIELDS(lane_names, 2), FIELD(label_text),
        FIELD(set.title), FIELD(set.count), FIELD(set.name_count), FIELD(set.rank_lanes),
        FIELD(set.arrow_count), FIELD(set.has_cycles), OPTION(title), OPTION(fold),
        OPTION(is_short), OPTION(clock_mhz), OPTION(begin), OPTION(end), OPTION(width),
        OPTION(lane_max), OPTION(theme), OPTION(time), FIELD_NAMED(format, formats),
        FIELD_NAMED(page, reports), FIELD(what_if.kernel), FIELD(what_if.percent),
        FIELD(what_if.makespan_cycles), FIELD(what_if.memory_percent), FIELD(ranks), FIELD(has_set),
        FIELD(has_spans), FIELD(has_names), FIELD(has_lane_names), FIELD(has_arrows),
        FIELD(has_label), FIELD(has_output), FIELD(has_runs), FIELD(has_first));
}

TEST(export_facts__hold) {
    static const facts_call calls[] = {{"make", make},
                                       {"more", more},
                                       {"rank", rank},
                                       {"execute", execute},
                                       {"place", place},
                                       {"together", together},
                                       {"draw", draw},
                                       {"export", export},
                                       {"transients", transients},
                                       {"report", report},
                                       {"export_ranks", export_ranks},
                                       {"run", run},
                                       {"device", run_on_device},
                                       {"bind_x", bind_x},
                                       {"bind_work", bind_work},
                                       {"bounds", find_bounds},
                                       {"decisions", decide},
                                       {"is_wanted", compare},
                                       {"what_if", ask},
                                       {"print", print},
                                       {"print_module", print_module},
                                       {"save", save},
                                       {"load", load},
                                       {NULL, NULL}};
    facts all = {.path = "tests/report/export.facts",
                 .begin = begin,
                 .fields = fields,
                 .calls = calls,
                 .error = error,
                 .refused = nothing_is_written};
    const ptowsp_context_desc desc = test_lanes_desc(2);
    context = test_context(&desc);
    facts_run(&all);
    clear();
    ptowsp_context_destroy(context);
}
