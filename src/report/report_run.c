// Why a run takes its time: as text, as JSON, and as a page.
//
// All three are written from one table of numbers (facts.h), so that they say the same. The verdict
// comes first (verdict.c).

#include "facts.h"
#include "report.h"

#include <inttypes.h>

static void pwsp_facts_add(pwsp_facts *facts, pwsp_limit_kind kind, uint32_t pool, const char *name,
                           uint64_t cycles) {
    const char *of = kind == PWSP_LIMIT_WORK ? facts->bounds.pool_names[pool] : "";
    pwsp_bound_row *row = &facts->rows[facts->row_count++];
    PTOWSP_ASSERT(facts->row_count <= PWSP_BOUND_ROW_MAX);
    pwsp_text_into(row->name, sizeof row->name, "%s%s%s", of, *of ? " " : "", name);
    row->kind = kind;
    row->pool = pool;
    row->cycles = cycles;
}

static void pwsp_facts_add_bounds(pwsp_facts *facts) {
    const ptowsp_run_bounds *bounds = &facts->bounds;
    if (bounds->has_path) {
        pwsp_facts_add(facts, PWSP_LIMIT_PATH, 0, "longest chain of dependencies",
                       bounds->path_cycles);
    }
    for (uint32_t i = 0; i < bounds->pool_count; i++) {
        pwsp_facts_add(facts, PWSP_LIMIT_WORK, i, "work / lanes", bounds->work_cycles[i]);
    }
    const bool is_host = facts->picture->program->schedule.control.by == PTOWSP_CONTROL_HOST;
    const struct {
        uint64_t cycles;
        pwsp_limit_kind kind;
        uint32_t pool;
        const char *name;
    } others[] = {
        {bounds->link_cycles, PWSP_LIMIT_LINKS, 0, "collectives"},
        {bounds->process_cycles, PWSP_LIMIT_PROCESS, 0, "work of a process"},
        {bounds->channel_cycles, PWSP_LIMIT_CHANNEL, 0, "latencies of a channel"},
        {bounds->control_cycles, PWSP_LIMIT_THREADS, 0, "work / AICPU threads"},
        {bounds->submit_cycles, is_host ? PWSP_LIMIT_LAUNCHES : PWSP_LIMIT_SUBMIT, 0,
         is_host ? "launches by the host" : "submission of tasks"},
        {bounds->hbm_cycles, PWSP_LIMIT_MEMORY, 0, "bytes from HBM / rate"},
        {bounds->l2_cycles, PWSP_LIMIT_MEMORY, 1, "bytes from L2 / rate"},
    };
    for (uint32_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (others[i].cycles) {
            pwsp_facts_add(facts, others[i].kind, others[i].pool, others[i].name, others[i].cycles);
        }
    }
}

// False when memory is out.
static bool pwsp_facts_find(pwsp_facts *facts) {
    const pwsp_result *result = facts->picture->result;
    if (pwsp_result_find_bounds(result, &facts->bounds) != PTOWSP_OK) {
        return false;
    }
    pwsp_facts_add_bounds(facts);
    if (!pwsp_mul_fits(facts->bounds.makespan_cycles, result->stats->lane_count,
                       &facts->lane_time)) {
        facts->lane_time = UINT64_MAX;
    }
    for (uint64_t i = 0; i < result->critical_count; i++) {
        const ptowsp_task_record *record = &result->recorder.records[result->critical[i]];
        ptowsp_task_sums *sums = &facts->critical[record->kernel];
        sums->task_count++;
        sums->busy_cycles = pwsp_sum_u64(sums->busy_cycles, record->end - record->start);
    }
    return true;
}

// -- conflicts ------------------------------------------------------------------------------------

typedef struct pwsp_conflict_writer {
    pwsp_facts *facts;
    ptowsp_report_format format;
    uint32_t count;
} pwsp_conflict_writer;

static bool pwsp_conflict_write(void *user, const pwsp_conflict *conflict) {
    pwsp_conflict_writer *writer = (pwsp_conflict_writer *)user;
    const ptowsp_program *p = writer->facts->picture->program;
    pwsp_out *out = writer->facts->out;
    const char *loop = PWSP_PLACE_AT(p, conflict->loop->node)->step;
    const char *task = PWSP_PLACE_AT(p, conflict->task->node)->step;
    const char *tensor = p->tensors.items[conflict->view->tensor].name;
    if (writer->format == PTOWSP_REPORT_JSON) {
        pwsp_out_format(out, "%s\n{\"loop\":\"%s\",\"tensor\":\"%s\",\"task\":\"%s\"}",
                        writer->count ? "," : "", loop, tensor, task);
    } else {
        const bool is_html = writer->format == PTOWSP_REPORT_HTML;
        pwsp_out_format(out,
                        "%siterations of %s conflict on tensor %s, which %s writes in each: they "
                        "run %s%s\n",
                        is_html ? "<p>" : "", loop, tensor, task, pwsp_conflict_effect(p, conflict),
                        is_html ? "</p>" : "");
    }
    writer->count++;
    return true;
}

PWSP_INTERNAL void pwsp_report_conflicts(pwsp_facts *facts, ptowsp_report_format format) {
    const pwsp_picture *picture = facts->picture;
    pwsp_conflict_writer writer = {facts, format, 0};
    pwsp_program_visit_conflicts(picture->program, picture->result->values, pwsp_conflict_write,
                                 &writer);
}

// -- text -----------------------------------------------------------------------------------------

PWSP_INTERNAL const char *pwsp_facts_model(const pwsp_facts *facts) {
#define PWSP_MODEL_TEXT(name, text) text,
    static const char models[][16] = {PTOWSP_MODELS(PWSP_MODEL_TEXT)};
#undef PWSP_MODEL_TEXT
    const ptowsp_program *p = facts->picture->program;
    bool has_tile_kernel = false;
    for (uint32_t k = 1; k < p->kernels.count; k++) {
        has_tile_kernel |= p->kernel_is_used[k] && p->kernels.items[k].code;
    }
    const ptowsp_model model = facts->picture->result->model;
    return !has_tile_kernel ? NULL : model == PTOWSP_MODEL_USER ? "user" : models[model];
}

PWSP_INTERNAL void pwsp_report_headline(pwsp_facts *facts) {
    const ptowsp_run_stats *stats = facts->picture->result->stats;
    const char *model = pwsp_facts_model(facts);
    pwsp_out_format(facts->out, "%s cycles%s%s%s, %s tasks, %u lanes",
                    pwsp_grouped(stats->makespan_cycles).text, model ? " (model " : "",
                    model ? model : "", model ? ")" : "", pwsp_grouped(stats->task_count).text,
                    stats->lane_count);
}

static void pwsp_report_line(pwsp_facts *facts, const char *name, uint64_t value, uint64_t whole) {
    pwsp_out_format(facts->out, "  %-32s %14s  %5s %%\n", name, pwsp_grouped(value).text,
                    pwsp_fixed(pwsp_report_percent(value, whole), 1).text);
}

static void pwsp_report_kernels(pwsp_facts *facts) {
    const pwsp_picture *picture = facts->picture;
    pwsp_out_format(facts->out, "kernels\n  %-24s %10s %14s %12s %10s %14s\n", "", "tasks",
                    "cycles", "longest", "on path", "path cycles");
    for (uint32_t k = 1; k < picture->program->kernels.count; k++) {
        const ptowsp_task_sums *sums = &picture->result->recorder.kernels[k];
        const ptowsp_task_sums *critical = &facts->critical[k];
        if (sums->task_count) {
            pwsp_out_format(
                facts->out, "  %-24s %10s %14s %12s %10s %14s\n", pwsp_picture_kernel(picture, k),
                pwsp_grouped(sums->task_count).text, pwsp_grouped(sums->busy_cycles).text,
                pwsp_grouped(sums->longest_cycles).text, pwsp_grouped(critical->task_count).text,
                pwsp_grouped(critical->busy_cycles).text);
        }
    }
}

PWSP_INTERNAL void pwsp_report_held(pwsp_facts *facts) {
    const ptowsp_run_stats *stats = facts->picture->result->stats;
    pwsp_out_text(facts->out, "at most  ");
    if (stats->in_flight_max) {
        pwsp_out_format(facts->out, "%s tasks in flight, ",
                        pwsp_grouped(stats->in_flight_max).text);
    }
    if (stats->region_max) {
        pwsp_out_format(facts->out, "%s tile regions tracked, ",
                        pwsp_grouped(stats->region_max).text);
    }
    pwsp_out_format(facts->out, "%s bytes held by the run\n",
                    pwsp_grouped(stats->memory_bytes).text);
}

PWSP_INTERNAL void pwsp_what_if_name(const pwsp_picture *picture, const ptowsp_what_if *what,
                                     char name[PWSP_WHAT_IF_TEXT_MAX]) {
    ptowsp_output_buffer buffer = {name, PWSP_WHAT_IF_TEXT_MAX, 0};
    ptowsp_output text = ptowsp_output_to_buffer(&buffer);
    if (what->kernel) {
        pwsp_text_format(text, "%s took %u %%", pwsp_picture_kernel(picture, what->kernel),
                         what->percent);
    }
    if (what->memory_percent) {
        pwsp_text_format(text, "%sbandwidth of memory %u %%", what->kernel ? ", " : "",
                         what->memory_percent);
    }
}

static void pwsp_report_text(pwsp_facts *facts) {
    const pwsp_picture *picture = facts->picture;
    const ptowsp_run_stats *stats = picture->result->stats;
    pwsp_out *out = facts->out;
    const char *title = pwsp_picture_title(picture);
    pwsp_out_utf8(out, title, strlen(title));
    pwsp_out_text(out, ": ");
    pwsp_report_headline(facts);
    pwsp_out_text(out, "\n");
    for (uint32_t i = 0; i < facts->verdict.count; i++) {
        pwsp_out_format(out, "%s\n", facts->verdict.lines[i]);
    }
    pwsp_report_conflicts(facts, PTOWSP_REPORT_TEXT);
    pwsp_out_text(facts->out, "lower bounds, of the makespan\n");
    for (uint32_t i = 0; i < facts->row_count; i++) {
        pwsp_report_line(facts, facts->rows[i].name, facts->rows[i].cycles, stats->makespan_cycles);
    }
    pwsp_out_text(out, "lanes idle, of their time\n");
    for (uint32_t i = 0; i < PTOWSP_STALL_COUNT; i++) {
        if (picture->result->recorder.idle[i]) {
            pwsp_report_line(facts, i ? ptowsp_stall_name((ptowsp_stall)i) : "nothing left",
                             picture->result->recorder.idle[i], facts->lane_time);
        }
    }
    pwsp_report_kernels(facts);
    pwsp_report_held(facts);
    pwsp_report_rings(picture->result, pwsp_out_sink(out));
    if (facts->what_if_count) {
        pwsp_out_text(out, "what if\n");
    }
    for (uint32_t i = 0; i < facts->what_if_count; i++) {
        const ptowsp_what_if *what = &facts->what_ifs[i];
        char name[PWSP_WHAT_IF_TEXT_MAX];
        pwsp_what_if_name(picture, what, name);
        if (what->memory_percent) {
            pwsp_out_format(out, "  %-35s", name);
        } else {
            pwsp_out_format(out, "  %-24s took %3u %%", pwsp_picture_kernel(picture, what->kernel),
                            what->percent);
        }
        pwsp_out_format(
            out, ": %14s cycles, %s %%\n", pwsp_grouped(what->makespan_cycles).text,
            pwsp_fixed(pwsp_report_percent(what->makespan_cycles, stats->makespan_cycles), 1).text);
    }
}

// -- JSON -----------------------------------------------------------------------------------------

static void pwsp_json_kernels(pwsp_facts *facts) {
    const pwsp_picture *picture = facts->picture;
    pwsp_json_print(facts->out, "'kernels':[");
    for (uint32_t k = 1; k < picture->program->kernels.count; k++) {
        const ptowsp_task_sums *sums = &picture->result->recorder.kernels[k];
        const ptowsp_task_sums *critical = &facts->critical[k];
        pwsp_json_print(facts->out,
                        "%s\n{'name':'%s','tasks':%" PRIu64 ",'busy':%" PRIu64 ",'longest':%" PRIu64
                        ",'bytes_read':%" PRIu64 ",'bytes_written':%" PRIu64
                        ",'critical_tasks':%" PRIu64 ",'critical':%" PRIu64 "}",
                        k > 1 ? "," : "", pwsp_picture_kernel(picture, k), sums->task_count,
                        sums->busy_cycles, sums->longest_cycles, sums->bytes_read,
                        sums->bytes_written, critical->task_count, critical->busy_cycles);
    }
    pwsp_json_print(facts->out, "]");
}

// The rings that the schedule has, if it has any.
static void pwsp_json_rings(pwsp_facts *facts) {
    const pwsp_result *result = facts->picture->result;
    const ptowsp_run_stats *stats = result->stats;
    bool has_any = false;
    for (uint32_t i = 0; i < PTOWSP_RING_COUNT; i++) {
        const uint64_t size = result->program->schedule.ring_sizes[i];
        if (size) {
            pwsp_out_text(facts->out, has_any ? "}," : ",\n\"rings\":{");
            pwsp_json_print(facts->out,
                            "'%s':{'size':%" PRIu64 ",'max':%" PRIu64 ",'stall':%" PRIu64,
                            ptowsp_ring_name((ptowsp_ring)i), size, stats->ring_max[i],
                            stats->stall_cycles[PTOWSP_STALL_TASK_RING + i]);
            has_any = true;
        }
    }
    pwsp_out_text(facts->out, has_any ? "}}" : "");
}

static void pwsp_report_json(pwsp_facts *facts) {
    const pwsp_picture *picture = facts->picture;
    const ptowsp_run_stats *stats = picture->result->stats;
    const ptowsp_run_bounds *bounds = &facts->bounds;
    const char *model = pwsp_facts_model(facts);
    pwsp_out *out = facts->out;
    pwsp_json_print(out, "{'title':'%s',\n'makespan':%" PRIu64 ",\n'tasks':%" PRIu64 ",\n'model':",
                    pwsp_picture_title(picture), stats->makespan_cycles, stats->task_count);
    if (model) {
        pwsp_json_print(out, "'%s'", model);
    } else {
        pwsp_out_text(out, "null");
    }
    pwsp_json_print(out, ",\n'limit':'%s',\n'verdict':[", facts->verdict.limit);
    for (uint32_t i = 0; i < facts->verdict.count; i++) {
        pwsp_json_print(out, "%s\n'%s'", i ? "," : "", facts->verdict.lines[i]);
    }
    pwsp_json_print(out, "],\n'bounds':{");
    if (bounds->has_path) {
        pwsp_json_print(out, "'path':%" PRIu64 ",", bounds->path_cycles);
    }
    pwsp_json_print(out, "'work':[");
    for (uint32_t i = 0; i < bounds->pool_count; i++) {
        pwsp_json_print(out, "%s{'pool':'%s','lanes':%" PRIu32 ",'cycles':%" PRIu64 "}",
                        i ? "," : "", bounds->pool_names[i], bounds->pool_lanes[i],
                        bounds->work_cycles[i]);
    }
    pwsp_json_print(out, "]");
    const char *const names[] = {"links", "process", "channel", "control", "submit", "hbm", "l2"};
    const uint64_t cycles[] = {bounds->link_cycles,    bounds->process_cycles,
                               bounds->channel_cycles, bounds->control_cycles,
                               bounds->submit_cycles,  bounds->hbm_cycles,
                               bounds->l2_cycles};
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (cycles[i]) {
            pwsp_json_print(out, ",'%s':%" PRIu64, names[i], cycles[i]);
        }
    }
    pwsp_json_print(out, "},\n'idle':{");
    for (uint32_t i = 0; i < PTOWSP_STALL_COUNT; i++) {
        pwsp_json_print(out, "%s'%s':%" PRIu64, i ? "," : "", ptowsp_stall_name((ptowsp_stall)i),
                        picture->result->recorder.idle[i]);
    }
    pwsp_json_print(out, "},\n");
    pwsp_json_kernels(facts);
    pwsp_json_print(out, ",\n'conflicts':[");
    pwsp_report_conflicts(facts, PTOWSP_REPORT_JSON);
    pwsp_json_print(out, "],\n'in_flight_max':");
    if (stats->in_flight_max) {
        pwsp_out_u64(out, stats->in_flight_max);
    } else {
        pwsp_out_text(out, "null");  // without a window
    }
    pwsp_json_rings(facts);
    pwsp_json_print(out, ",\n'what_if':[");
    for (uint32_t i = 0; i < facts->what_if_count; i++) {
        const ptowsp_what_if *what = &facts->what_ifs[i];
        pwsp_json_print(out, "%s\n{'kernel':'%s','percent':%u,", i ? "," : "",
                        what->kernel ? pwsp_picture_kernel(picture, what->kernel) : "",
                        what->percent);
        if (what->memory_percent) {
            pwsp_json_print(out, "'memory_percent':%u,", what->memory_percent);
        }
        pwsp_json_print(out, "'makespan':%" PRIu64 "}", what->makespan_cycles);
    }
    pwsp_json_print(out, "]}\n");
}

// False when memory is out.
PWSP_INTERNAL bool pwsp_report_write(pwsp_picture *picture, ptowsp_report_format format,
                                     const ptowsp_what_if *what_ifs, uint32_t count) {
    PWSP_ZERO(pwsp_facts, facts);
    facts.picture = picture;
    facts.out = picture->out;
    facts.what_ifs = what_ifs;
    facts.what_if_count = count;
    bool is_good =
        PWSP_ALLOC(&picture->memory, facts.critical, picture->program->kernels.count + 1) &&
        pwsp_facts_find(&facts);
    if (is_good) {
        pwsp_verdict_find(&facts, &facts.verdict);
    }
    if (is_good && format == PTOWSP_REPORT_TEXT) {
        pwsp_report_text(&facts);
    } else if (is_good && format == PTOWSP_REPORT_JSON) {
        pwsp_report_json(&facts);
    } else if (is_good) {
        is_good = pwsp_report_page(&facts);
    }
    return is_good;
}
