// Replays as text, JSON and HTML, and as pictures: the observed cores above the replayed ones.

#include "dump_replay.h"

#define DUMP_ASKED_WINDOW 32u

// -- pictures -------------------------------------------------------------------------------------

typedef struct dump_picture {
    ptowsp_span *spans;
    uint64_t count;
    const char **names;  // of kinds
    const char **lane_names;
    char (*lane_texts)[32];
} dump_picture;

static void dump_span_add(dump_picture *p, uint64_t begin, uint64_t end, uint32_t lane,
                          uint32_t kind) {
    const ptowsp_span span = {begin, end, lane, kind};
    p->spans[p->count++] = span;
}

static void dump_lane_name(dump_picture *p, uint32_t lane, const char *what, bool is_cube,
                           uint32_t core) {
    snprintf(p->lane_texts[lane], sizeof p->lane_texts[lane], "%s %s %u", what,
             is_cube ? "aic" : "aiv", (unsigned)core);
    p->lane_names[lane] = p->lane_texts[lane];
}

// The rows of the dump, as the kernels of their tasks. False when memory is out.
static bool dump_picture_observed(dump_picture *p, const dump_replay *r) {
    const ptowsp_dump *dump = r->dump;
    uint32_t *kernels = (uint32_t *)dump_zeroed(dump->task_count, sizeof *kernels);
    for (uint32_t i = 0; i < r->entry_count && kernels; i++) {
        const dump_entry *entry = &r->entries[i];
        if (entry->row != DUMP_NONE) {
            kernels[dump_find(dump, dump->rows[entry->row].task_id)] = entry->kernel;
        }
    }
    for (uint32_t i = 0; i < dump->row_count && kernels; i++) {
        const dump_row *row = &dump->rows[i];
        dump_span_add(p, row->start - dump->first_start, row->end - dump->first_start, row->core,
                      kernels[dump_find(dump, row->task_id)]);
    }
    for (uint32_t i = 0; i < dump->core_count; i++) {
        dump_lane_name(p, i, "observed", dump->cores[i], r->lanes[i]);
    }
    dump_resize(kernels, 0);
    return kernels != NULL;
}

// The records of the run, with the vector cores of MIX. Lanes of vector cores come first there.
static void dump_picture_replayed(dump_picture *p, const dump_replay *r) {
    const ptowsp_task_record *records = r->run ? ptowsp_run_records(r->run) : NULL;
    const uint32_t first = r->dump->core_count, cubes = r->result.cube_cores;
    const uint32_t vectors = r->result.vector_cores;
    for (uint32_t i = 0; i < r->entry_count && records; i++) {
        const dump_entry *entry = &r->entries[i];
        if (entry->row == DUMP_NONE) {
            continue;
        }
        const ptowsp_task_record *record = records++;
        const bool is_cube = record->lane >= vectors;
        const uint32_t core = is_cube ? record->lane - vectors : record->lane;
        dump_span_add(p, record->start, record->end, first + (is_cube ? 0 : cubes) + core,
                      entry->kernel);
        for (uint32_t k = 0; k < 2 && r->kernels[entry->kernel].unit == PTOWSP_UNIT_MIX; k++) {
            dump_span_add(p, record->start, record->end, first + cubes + 2 * core + k,
                          entry->kernel);
        }
    }
    for (uint32_t i = 0; i < cubes + vectors; i++) {
        dump_lane_name(p, first + i, "replayed", i < cubes, i < cubes ? i : i - cubes);
    }
}

static void dump_picture_free(dump_picture *p) {
    void *const all[] = {p->spans, p->names, p->lane_names, p->lane_texts};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        dump_resize(all[i], 0);
    }
}

// Errors are kept in the dump.
static void dump_draw(dump_replay *r, ptowsp_export_format format,
                      const ptowsp_export_options *options, ptowsp_output output) {
    ptowsp_dump *dump = r->dump;
    const uint32_t lanes = dump->core_count + r->result.cube_cores + r->result.vector_cores;
    dump_picture p;
    ptowsp_export_options chosen;
    ptowsp_span_set set;
    memset(&p, 0, sizeof p);
    memset(&chosen, 0, sizeof chosen);
    memset(&set, 0, sizeof set);
    if (options) {
        chosen = *options;
    }
    chosen.lane_max = chosen.lane_max                  ? chosen.lane_max
                      : lanes < PTOWSP_EXPORT_LANE_MAX ? lanes + 1
                                                       : PTOWSP_EXPORT_LANE_MAX;
    p.spans =
        (ptowsp_span *)dump_zeroed(dump->row_count + 3 * (uint64_t)r->entry_count, sizeof *p.spans);
    p.names = (const char **)dump_zeroed(r->kernel_count, sizeof *p.names);
    p.lane_names = (const char **)dump_zeroed(lanes, sizeof *p.lane_names);
    p.lane_texts = (char(*)[32])dump_zeroed(lanes, sizeof *p.lane_texts);
    if (p.spans && p.names && p.lane_names && p.lane_texts && dump_picture_observed(&p, r)) {
        for (uint32_t i = 0; i < r->kernel_count; i++) {
            p.names[i] = r->kernels[i].name;
        }
        dump_picture_replayed(&p, r);
        set.title = "observed and replayed";
        set.spans = p.spans;
        set.count = p.count;
        set.names = p.names;
        set.name_count = r->kernel_count;
        set.rank_lanes = lanes;
        set.lane_names = p.lane_names;
        set.has_cycles = true;
        dump->status = ptowsp_spans_export(dump->context, &set, format, &chosen, output);
    } else {
        dump_out_of_memory(dump);
    }
    dump_picture_free(&p);
}

// -- tables ---------------------------------------------------------------------------------------

// The number as thousandths of another one.
static unsigned long long dump_share(uint64_t part, uint64_t whole) {
    return whole ? (unsigned long long)(1000.0 * (double)part / (double)whole + 0.5) : 0;
}

static void dump_show_head(const dump_replay *r, ptowsp_dump_format format, ptowsp_output text) {
    static const char heads[][512] = {
        "%llu instances of tasks, %llu edges; the longest chain takes %llu cycles\n"
        "  %-52s %14llu\n",
        "{\"instances\":%llu,\"edges\":%llu,\"longest_chain\":%llu,\"%s\":%llu,\"replays\":[",
        "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>Replay</title>\n<style>\n"
        "body { font: 14px sans-serif; margin: 2em; }\n"
        "td { border-top: 1px solid #ccc; padding: .4em .8em .4em 0; vertical-align: top; }\n"
        "td.number { text-align: right; }\n</style>\n"
        "<h1>%llu instances of tasks, %llu edges; the longest chain takes %llu cycles</h1>\n"
        "<table>\n<tr><td>%s<td class=\"number\">%llu\n"};
    dump_print(text, heads[format], (unsigned long long)r->result.instance_count,
               (unsigned long long)r->result.edge_count, (unsigned long long)r->result.path_cycles,
               "observed", (unsigned long long)r->result.observed_cycles);
    if (r->result.untimed_count && format == PTOWSP_DUMP_TEXT) {
        dump_print(text, "  %llu tasks with kernels have no times: they take no time here\n",
                   (unsigned long long)r->result.untimed_count);
    }
}

// Reasons why cores were idle, the largest part of all cores' time first.
static void dump_show_idle(const dump_replay *r, ptowsp_dump_format format, ptowsp_output text) {
    static const char parts[][32] = {"%s%s %llu.%llu %%", "%s\"%s\":%llu.%llu",
                                     "%s%s %llu.%llu %%"};
    const uint64_t cores = (uint64_t)r->result.cube_cores + r->result.vector_cores;
    const uint64_t whole = cores * r->result.makespan_cycles;
    bool is_first = true, is_shown[PTOWSP_STALL_COUNT] = {false};
    for (uint32_t n = 0; n < PTOWSP_STALL_COUNT; n++) {
        uint32_t most = PTOWSP_STALL_COUNT;
        for (uint32_t i = 0; i < PTOWSP_STALL_COUNT; i++) {
            if (!is_shown[i] && (most == PTOWSP_STALL_COUNT ||
                                 r->result.idle_cycles[i] > r->result.idle_cycles[most])) {
                most = i;
            }
        }
        is_shown[most] = true;
        const unsigned long long share = dump_share(r->result.idle_cycles[most], whole);
        if (share) {
            dump_print(text, parts[format],
                       is_first                     ? ""
                       : format == PTOWSP_DUMP_JSON ? ","
                                                    : ", ",
                       most == PTOWSP_STALL_NONE ? "nothing left"
                                                 : ptowsp_stall_name((ptowsp_stall)most),
                       share / 10, share % 10);
            is_first = false;
        }
    }
    if (is_first && format != PTOWSP_DUMP_JSON) {
        dump_print(text, "under 0.1 %%");
    }
}

// How busy AICPU threads are, if there are any.
static void dump_show_threads(const dump_replay *r, ptowsp_dump_format format, ptowsp_output text) {
    static const char rows[][48] = {"; %llu.%llu of %u AICPU threads busy",
                                    ",\"busy_threads\":%llu.%llu,\"threads\":%u",
                                    "; %llu.%llu of %u AICPU threads busy"};
    const ptowsp_dump_replayed *result = &r->result;
    if (result->threads && result->makespan_cycles) {
        const unsigned long long tenths =
            (unsigned long long)(10.0 * (double)result->control_cycles /
                                     (double)result->makespan_cycles +
                                 0.5);
        dump_print(text, rows[format], tenths / 10, tenths % 10, (unsigned)result->threads);
    }
}

// One replay, or the status with which it failed.
static void dump_show_row(const dump_replay *r, const char *question, bool is_good, bool is_first,
                          ptowsp_dump_format format, ptowsp_output text) {
    static const char begins[][64] = {"  ", "{\"question\":\"", "<tr><td>"};
    static const char fails[][64] = {" -  %s\n", "\",\"error\":\"%s\"}", "<td>-<td><td>%s\n"};
    static const char rows[][128] = {
        "%14llu  %3llu.%llu %%  %u + %u cores, ",
        "\",\"makespan\":%llu,\"percent\":%llu.%llu,\"cube_cores\":%u,\"vector_cores\":%u,",
        "<td class=\"number\">%llu<td class=\"number\">%llu.%llu %%<td>%u + %u cores, "};
    static const char idles[][16] = {"idle: ", "\"idle\":{", "idle: "};
    static const char ends[][8] = {"\n", "}", "\n"};
    char padded[64];
    snprintf(padded, sizeof padded, format == PTOWSP_DUMP_TEXT ? "%-52s" : "%s", question);
    dump_print(text, "%s%s", is_first || format != PTOWSP_DUMP_JSON ? "" : ",\n", begins[format]);
    dump_escaped(text, format, padded);
    if (!is_good) {
        dump_print(text, fails[format], ptowsp_status_name(r->dump->status));
        return;
    }
    const unsigned long long share =
        dump_share(r->result.makespan_cycles, r->result.observed_cycles);
    dump_print(text, rows[format], (unsigned long long)r->result.makespan_cycles, share / 10,
               share % 10, (unsigned)r->result.cube_cores, (unsigned)r->result.vector_cores);
    dump_print(text, "%s", idles[format]);
    dump_show_idle(r, format, text);
    dump_print(text, "%s", format == PTOWSP_DUMP_JSON ? "}" : "");
    dump_show_threads(r, format, text);
    dump_print(text, "%s", ends[format]);
}

// A row of the table that answers a call without a question.
typedef struct dump_question {
    char text[56];
    ptowsp_dump_replay how;
} dump_question;

enum { DUMP_QUESTIONS = 9 };

static void dump_questions_make(const dump_replay *r, dump_question *questions) {
    static const char texts[DUMP_QUESTIONS][56] = {"same cores, same order",
                                                   "first free core, as submitted",
                                                   "longest chain first",
                                                   "edges without data dropped",
                                                   "half the cores",
                                                   "twice the cores",
                                                   "a task window of 32",
                                                   "a task window of 32, longest chain first",
                                                   ""};
    uint64_t cycles[DUMP_KERNEL_MAX];
    uint32_t most = 0;
    memset(cycles, 0, sizeof cycles);
    for (uint32_t i = 0; i < r->entry_count; i++) {
        if (r->entries[i].row != DUMP_NONE) {
            uint64_t *sum = &cycles[r->entries[i].kernel];
            *sum += r->entries[i].cycles;
            most = *sum > cycles[most] ? r->entries[i].kernel : most;
        }
    }
    for (uint32_t i = 0; i < DUMP_QUESTIONS; i++) {
        memset(&questions[i], 0, sizeof questions[i]);
        memcpy(questions[i].text, texts[i], sizeof texts[i]);
        questions[i].how.order = i == 0             ? PTOWSP_DUMP_ORDER_OBSERVED
                                 : i == 2 || i == 7 ? PTOWSP_DUMP_ORDER_CRITICAL
                                                    : PTOWSP_DUMP_ORDER_SUBMITTED;
    }
    questions[3].how.drops_no_data = true;
    questions[4].how.cube_cores = (r->cube_count + 1) / 2;
    questions[4].how.vector_cores = (r->vector_count + 1) / 2;
    if (r->vector_count >= 2 * r->cube_count &&
        questions[4].how.vector_cores < 2 * questions[4].how.cube_cores) {
        questions[4].how.vector_cores = 2 * questions[4].how.cube_cores;  // for tasks on both
    }
    questions[5].how.cube_cores = 2 * r->cube_count;
    questions[5].how.vector_cores = 2 * r->vector_count;
    questions[6].how.task_window = questions[7].how.task_window = DUMP_ASKED_WINDOW;
    if (r->kernel_count) {
        questions[8].how.kernel = r->kernels[most].id;
        questions[8].how.percent = 80;
        snprintf(questions[8].text, sizeof questions[8].text, "%.32s 20 %% faster",
                 r->kernels[most].name);
    }
}

// Answers all questions. One that fails says so in its row.
static void dump_show_all(const dump_replay *observed, ptowsp_dump_format format,
                          ptowsp_output text) {
    ptowsp_dump *dump = observed->dump;
    dump_question questions[DUMP_QUESTIONS];
    dump_questions_make(observed, questions);
    for (uint32_t i = 0; i < DUMP_QUESTIONS; i++) {
        dump_replay replay;
        if (!*questions[i].text) {
            continue;
        }
        const bool is_good = dump_replay_make(&replay, dump, &questions[i].how);
        dump_show_row(&replay, questions[i].text, is_good, i == 0, format, text);
        dump->status = PTOWSP_OK;
        dump_replay_free(&replay);
    }
}

static bool dump_forward(void *user, const void *data, size_t size) {
    dump_write(*(const ptowsp_output *)user, (const char *)data, size);
    return true;
}

DUMP_INTERNAL void dump_show(ptowsp_dump *dump, const ptowsp_dump_replay *how,
                             ptowsp_dump_format format, ptowsp_output text) {
    static const char ends[][16] = {"", "]}\n", "</table>\n"};
    dump_replay replay;
    if (dump_replay_make(&replay, dump, how)) {
        const ptowsp_output output = {dump_forward, &text};
        dump_show_head(&replay, format, text);
        if (how) {
            dump_show_row(&replay, "replayed", true, true, format, text);
        } else {
            dump_show_all(&replay, format, text);
        }
        dump_print(text, "%s", ends[format]);
        if (format == PTOWSP_DUMP_HTML && replay.result.instance_count) {
            dump_draw(&replay, PTOWSP_EXPORT_SVG, NULL, output);
        }
    }
    dump_replay_free(&replay);
}

DUMP_INTERNAL void dump_show_picture(ptowsp_dump *dump, const ptowsp_dump_replay *how,
                                     ptowsp_export_format format,
                                     const ptowsp_export_options *options, ptowsp_output output) {
    dump_replay replay;
    if (dump_replay_make(&replay, dump, how)) {
        dump_draw(&replay, format, options, output);
    }
    dump_replay_free(&replay);
}
