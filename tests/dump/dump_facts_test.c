// Dumps as facts (support/facts.h): replays, findings, rings, explanations, and what is refused, by
// hand.

#include "dump_write.h"

#include "facts.h"

enum { SAID_MAX = 1 << 18 };

static ptowsp_context *context;
static facts_text deps, swimlane, scopes, names, said;
static ptowsp_dump_replay how;
static ptowsp_dump_replayed replayed;
static ptowsp_dump_report report;
static ptowsp_dump_rings rings;
static ptowsp_dump_rings_result result;
static uint64_t task;
static ptowsp_dump_format format;
static ptowsp_export_format export_format;
static ptowsp_export_options options;

// A text in which <N PART> stands for N copies of PART, with the number of the copy for each # in it.
static ptowsp_dump_file repeated(const char *from) {
    dw_text t = {NULL, 0, 0};
    char *part;
    for (const char *at; (at = strchr(from, '<')) != NULL; from = strchr(at, '>') + 1) {
        const unsigned long count = strtoul(at + 1, &part, 10);
        dw_print(&t, "%.*s", (int)(at - from), from);
        for (unsigned long i = 0; i < count; i++) {
            for (const char *end, *next = part + 1; *next != '>'; next = end + (*end == '#')) {
                end = next + strcspn(next, "#>");
                dw_print(&t, "%.*s", (int)(end - next), next);
                if (*end == '#') {
                    dw_print(&t, "%lu", i);
                }
            }
        }
    }
    dw_print(&t, "%s", from);
    const ptowsp_dump_file file = {t.data, t.size};
    return file;
}

static ptowsp_dump_file file_of(const facts_text *text) {
    const ptowsp_dump_file none = {NULL, 0};
    return !text->data               ? none
           : strchr(text->data, '<') ? repeated(text->data)
                                     : dw_exact(text->data, text->size);
}

// Opens the texts, and calls with what they make.
static ptowsp_status opened(ptowsp_status (*call)(ptowsp_dump *dump)) {
    const facts_text *const texts[] = {&deps, &swimlane, &scopes, &names};
    ptowsp_dump_file files[COUNT_OF(texts)];
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        files[i] = file_of(texts[i]);
    }
    const ptowsp_dump_desc desc = {NULL, files[0], files[1], files[2], files[3]};
    ptowsp_dump *dump = NULL;
    ptowsp_status status = ptowsp_dump_open(context, &desc, &dump);
    assert_true((status == PTOWSP_OK) == (dump != NULL));
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        free((void *)(uintptr_t)files[i].text);
    }
    status = dump && call ? call(dump) : status;
    ptowsp_dump_close(dump);
    return status;
}

static ptowsp_status say(ptowsp_status status, const ptowsp_output_buffer *buffer) {
    assert_true(buffer->length < SAID_MAX);
    said = facts_text_of(buffer->data, buffer->length);
    return status;
}

#define SAY(call)                                                                                  \
    static char data[SAID_MAX];                                                                    \
    ptowsp_output_buffer buffer = {data, sizeof data, 0};                                          \
    const ptowsp_output out = ptowsp_output_to_buffer(&buffer);                                    \
    return say(call, &buffer)

static ptowsp_status replay_of(ptowsp_dump *dump) {
    return ptowsp_dump_replay_run(dump, &how, &replayed);
}

static ptowsp_status check_of(ptowsp_dump *dump) {
    return ptowsp_dump_check(dump, &report);
}

static ptowsp_status print_of(ptowsp_dump *dump) {
    SAY(ptowsp_dump_print(dump, format, out));
}

static ptowsp_status print_replay_of(ptowsp_dump *dump) {
    SAY(ptowsp_dump_replay_print(dump, &how, format, out));
}

static ptowsp_status print_questions_of(ptowsp_dump *dump) {
    SAY(ptowsp_dump_replay_print(dump, NULL, format, out));
}

static ptowsp_status export_replay_of(ptowsp_dump *dump) {
    const ptowsp_export_options *as = options.lane_max ? &options : NULL;
    SAY(ptowsp_dump_replay_export(dump, NULL, export_format, as, out));
}

static ptowsp_status explain_of(ptowsp_dump *dump) {
    SAY(ptowsp_dump_explain(dump, task, out));
}

static ptowsp_status least_rings_of(ptowsp_dump *dump) {
    return ptowsp_dump_rings_least(dump, &rings);
}

static ptowsp_status try_rings_of(ptowsp_dump *dump) {
    const ptowsp_status status = ptowsp_dump_rings_try(dump, &rings, &result);
    const char *site = status == PTOWSP_OK && result.site ? result.site : "";
    said = facts_text_of(site, strlen(site));
    return status;
}

#define CALLS(CALL)                                                                                \
    CALL(replay)                                                                                   \
    CALL(check)                                                                                    \
    CALL(print)                                                                                    \
    CALL(print_replay)                                                                             \
    CALL(print_questions) CALL(export_replay) CALL(explain) CALL(least_rings) CALL(try_rings)
#define CALL(name)                                                                                 \
    static ptowsp_status name(void) {                                                              \
        return opened(name##_of);                                                                  \
    }
CALLS(CALL)
#undef CALL

static ptowsp_status open_it(void) {
    return opened(NULL);
}

static void begin(void) {
    memset(&how, 0, sizeof how);
    memset(&rings, 0, sizeof rings);
    task = 0;
    format = PTOWSP_DUMP_TEXT;
}

static const char *error(uint64_t *out_index) {
    return facts_error(ptowsp_context_error(context), out_index);
}

static const facts_field *fields(void) {
    FACTS_RETURN(
        FIELD(deps), FIELD(swimlane), FIELD(scopes), FIELD(names), FIELD(said), FIELD(task),
        FIELD(format), FIELD(export_format), FIELD(how.order), FIELD(how.cube_cores),
        FIELD(how.vector_cores), FIELD(how.task_window), FIELD(how.drops_redundant),
        FIELD(how.drops_no_data), FIELD(how.dep_pool), FIELD(options.lane_max), FIELD(how.kernel),
        FIELD(how.percent), FIELD(how.control.by), FIELD(how.control.threads),
        FIELD(how.control.clock_mhz), FIELD(how.control.cost_ns[PTOWSP_CONTROL_DISPATCH]),
        FIELD(how.control.cost_ns[PTOWSP_CONTROL_COMPLETE]), FIELD(replayed.observed_cycles),
        FIELD(replayed.makespan_cycles), FIELD(replayed.path_cycles), FIELD(replayed.busy_cycles),
        FIELD(replayed.cube_cores), FIELD(replayed.vector_cores), FIELD(replayed.instance_count),
        FIELD(replayed.untimed_count), FIELD(replayed.edge_count), FIELD(replayed.dropped_count),
        FIELD(replayed.control_cycles), FIELD(replayed.threads),
        FIELD(report.counts[PTOWSP_DUMP_RACE]), FIELD(report.counts[PTOWSP_DUMP_OUTSIDE]),
        FIELD(report.counts[PTOWSP_DUMP_FALSE_SHARING]), FIELD(report.finding_count),
        FIELD(report.assumed_count), FIELDS(rings.task_window, 4), FIELDS(rings.heap, 4),
        FIELDS(rings.dep_pool, 4), FIELD(result.error), FIELD(result.task), FIELD(result.holder),
        FIELD(result.depth));
}

TEST(dump_facts__hold) {
#define CALL(name) {#name, name},
    static const facts_call calls[] = {CALLS(CALL){"open", open_it}, {NULL, NULL}};
    facts all = {"tests/dump/dumps.facts", begin, fields, calls, error, NULL, 0};
    context = test_context(NULL);
    facts_run(&all);
    ptowsp_context_destroy(context);
}
