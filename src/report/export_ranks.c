// The timeline of all ranks of a simulated group: its records as one set of spans.
//
//      spans   rank 0: slot 0, slot 1, ... | rank 1: ... |     in the order of records
//      lanes   each rank: its lanes, and the links as the last one
//      kinds   the names of all programs' kernels, each once; of a SEND "send x" and "receive x"
//      arrows  from the tasks that a task has waited for

#include "picture.h"

#include <inttypes.h>

enum { PWSP_RANKS_LANE_NAME = 16 };

typedef struct pwsp_export_ranks {
    pwsp_memory memory;
    const ptowsp_run_group *group;
    uint64_t *firsts;  // by rank: its first span; one more than ranks
    ptowsp_span *spans;
    ptowsp_span_arrow *arrows;
    uint64_t count, arrow_count, arrow_room;
    const char **names;   // the kernels'; a SEND has its name twice
    const char **titles;  // as they are shown
    uint64_t name_count, name_capacity, title_capacity;
    uint32_t *kinds;  // by kernel of the program at hand
    uint64_t kind_capacity;
    uint32_t lanes;  // of a rank
    bool has_links;
    const char **lane_names;
} pwsp_export_ranks;

static ptowsp_status pwsp_export_check_group(ptowsp_context *context,
                                             const ptowsp_run_group *group) {
    if (group->rank_count == 0 || group->rank_count > PTOWSP_RANK_COUNT_MAX || !group->runs) {
        return pwsp_fail(context, PTOWSP_INVALID_PARAMS, group->rank_count,
                         "export: %" PRIu32 " ranks: there are 1 to %d, each with a run",
                         group->rank_count, PTOWSP_RANK_COUNT_MAX);
    }
    for (uint32_t i = 0; i < group->rank_count; i++) {
        const pwsp_result *result = group->runs[i] ? pwsp_run_result(group->runs[i]) : NULL;
        if (!result || !result->is_done || !result->has_records) {
            return pwsp_fail(context, PTOWSP_INVALID_PARAMS, i,
                             "export: rank %" PRIu32 " has no run that has recorded tasks", i);
        }
    }
    return PTOWSP_OK;
}

// Counts spans, arrows and lanes.
static void pwsp_export_ranks_measure(pwsp_export_ranks *e) {
    uint32_t own = 0;
    for (uint32_t i = 0; i < e->group->rank_count; i++) {
        const pwsp_result *result = pwsp_run_result(e->group->runs[i]);
        const ptowsp_program *program = result->program;
        uint64_t waits;
        ptowsp_run_rank_waits(e->group->runs[i], &waits);
        e->count += pwsp_result_count(result);
        e->arrow_room += waits;
        e->has_links = e->has_links || program->has_link;
        const uint32_t lanes = program->lane_count - program->has_link;
        own = lanes > own ? lanes : own;
    }
    e->lanes = own + e->has_links;
}

static bool pwsp_export_ranks_reserve(pwsp_export_ranks *e) {
    const pwsp_memory *memory = &e->memory;
    char *text;
    if (!PWSP_ALLOC(memory, e->firsts, e->group->rank_count + UINT64_C(1)) ||
        !PWSP_ALLOC(memory, e->spans, e->count + 1) ||
        !PWSP_ALLOC(memory, e->arrows, e->arrow_room + 1) ||
        !PWSP_ALLOC(memory, e->lane_names, e->lanes) ||
        !PWSP_ALLOC(memory, text, e->lanes * (size_t)PWSP_RANKS_LANE_NAME)) {
        return false;
    }
    for (uint32_t i = 0; i < e->lanes; i++, text += PWSP_RANKS_LANE_NAME) {
        memcpy(text, "lane ", 5);
        text[5 + pwsp_label_u64(i, text + 5)] = '\0';
        if (e->has_links && i + 1 == e->lanes) {
            memcpy(text, "links", 6);
        }
        e->lane_names[i] = text;
    }
    return true;
}

// A kernel's name after a verb; NULL: memory is out.
static const char *pwsp_export_ranks_title(pwsp_export_ranks *e, const char *verb,
                                           const char *name) {
    const size_t first = strlen(verb), length = strlen(name);
    char *title;
    if (!PWSP_ALLOC(&e->memory, title, first + length + 1)) {
        return NULL;
    }
    memcpy(title, verb, first);
    memcpy(title + first, name, length);
    return title;
}

static bool pwsp_export_ranks_add_kind(pwsp_export_ranks *e, const char *name, const char *title) {
    if (!title || !PWSP_GROW(&e->memory, e->names, e->name_capacity, e->name_count + 1) ||
        !PWSP_GROW(&e->memory, e->titles, e->title_capacity, e->name_count + 1)) {
        return false;
    }
    e->names[e->name_count] = name;
    e->titles[e->name_count++] = title;
    return true;
}

static bool pwsp_export_ranks_is_send(const ptowsp_program *program, uint32_t kernel) {
    const pwsp_kernel_info *info = &program->kernels.items[kernel];
    return info->unit == PTOWSP_UNIT_LINK && info->collective.kind == PTOWSP_SEND;
}

// Finds the kinds of a program's kernels; those that receive are one after those that send. False:
// memory is out.
static bool pwsp_export_ranks_find_kinds(pwsp_export_ranks *e, const ptowsp_program *program) {
    const uint64_t count = program->kernels.count;
    bool has_room = PWSP_GROW(&e->memory, e->kinds, e->kind_capacity, count + 1);
    for (uint32_t i = 1; has_room && i < count; i++) {
        const char *name = program->kernels.items[i].name;
        const bool is_send = pwsp_export_ranks_is_send(program, i);
        uint32_t kind = 0;
        while (kind < e->name_count && (strcmp(e->names[kind], name) != 0 ||
                                        (e->titles[kind] == e->names[kind]) == is_send)) {
            kind++;
        }
        e->kinds[i] = kind;
        if (kind == e->name_count && !is_send) {
            has_room = pwsp_export_ranks_add_kind(e, name, name);
        } else if (kind == e->name_count) {
            has_room =
                pwsp_export_ranks_add_kind(e, name, pwsp_export_ranks_title(e, "send ", name)) &&
                pwsp_export_ranks_add_kind(e, name, pwsp_export_ranks_title(e, "receive ", name));
        }
    }
    return has_room;
}

// The spans of a rank, from `at` on.
static void pwsp_export_ranks_take_spans(pwsp_export_ranks *e, uint32_t rank, uint64_t at) {
    const pwsp_result *result = pwsp_run_result(e->group->runs[rank]);
    const uint32_t lane_count = result->program->lane_count;
    for (uint64_t i = 0; i < pwsp_result_count(result); i++) {
        const ptowsp_task_record *record = &result->recorder.records[i];
        const bool is_link = result->program->has_link && record->lane + 1 == lane_count;
        ptowsp_span *span = &e->spans[at + i];
        span->kind = e->kinds[record->kernel];
        if (record->lane != PTOWSP_NO_LANE) {
            span->begin = record->start;
            span->end = record->end;
            span->lane = rank * e->lanes + (is_link ? e->lanes - 1 : record->lane);
        }
    }
}

// The waits of a rank, once all spans are there: arrows to its spans. Of a SEND only the
// receiver waits.
static void pwsp_export_ranks_take_waits(pwsp_export_ranks *e, uint32_t rank) {
    uint64_t count, from, to;
    const pwsp_result *result = pwsp_run_result(e->group->runs[rank]);
    const ptowsp_rank_wait *waits = ptowsp_run_rank_waits(e->group->runs[rank], &count);
    for (uint64_t i = 0; i < count; i++) {
        if (!pwsp_recorder_find(&result->recorder, waits[i].task, &to)) {
            continue;
        }
        const uint32_t other = waits[i].from_rank, kernel = result->recorder.records[to].kernel;
        e->spans[e->firsts[rank] + to].kind += pwsp_export_ranks_is_send(result->program, kernel);
        if (other < e->group->rank_count && waits[i].from_task != PTOWSP_NO_INDEX &&
            pwsp_recorder_find(&pwsp_run_result(e->group->runs[other])->recorder,
                               waits[i].from_task, &from)) {
            const ptowsp_span_arrow arrow = {e->firsts[other] + from, e->firsts[rank] + to};
            if (e->spans[arrow.from].end && e->spans[arrow.to].end) {
                e->arrows[e->arrow_count++] = arrow;
            }
        }
    }
}

static bool pwsp_export_ranks_take(pwsp_export_ranks *e) {
    const ptowsp_program *before = NULL;
    uint64_t at = 0;
    for (uint32_t i = 0; i < e->group->rank_count; i++) {
        const pwsp_result *result = pwsp_run_result(e->group->runs[i]);
        if (result->program != before && !pwsp_export_ranks_find_kinds(e, result->program)) {
            return false;
        }
        before = result->program;
        e->firsts[i] = at;
        pwsp_export_ranks_take_spans(e, i, at);
        at += pwsp_result_count(result);
    }
    e->firsts[e->group->rank_count] = at;
    for (uint32_t i = 0; i < e->group->rank_count; i++) {
        pwsp_export_ranks_take_waits(e, i);
    }
    return true;
}

// What identifies a span beyond its kernel.
static void pwsp_export_ranks_label(void *user, uint64_t i, ptowsp_output text) {
    const pwsp_export_ranks *e = (const pwsp_export_ranks *)user;
    uint64_t rank = 0;  // the last one whose first span is at most i
    PWSP_BISECT(rank, e->group->rank_count, e->firsts[middle] <= i)
    const ptowsp_run *run = e->group->runs[--rank];
    const ptowsp_task_trace task = ptowsp_run_trace_at(run, i - e->firsts[rank]);
    char label[PWSP_LABEL_MAX];
    ptowsp_output_buffer buffer = {label, sizeof label, 0};
    label[0] = '\0';
    ptowsp_run_print_task(run, &task, ptowsp_output_to_buffer(&buffer));
    const size_t name = strlen(e->names[e->spans[i].kind]);  // which comes first
    if (strlen(label) > name) {
        pwsp_text_format(text, "%s", label + name + 1);
    }
}

ptowsp_status ptowsp_run_group_export(ptowsp_context *context, const ptowsp_run_group *group,
                                      ptowsp_export_format format,
                                      const ptowsp_export_options *options, ptowsp_output output) {
    PTOWSP_ASSERT(context);
    if (!group) {
        return pwsp_fail_null(context, "export: group");
    }
    ptowsp_status status = pwsp_export_check_group(context, group);
    if (status != PTOWSP_OK) {
        return status;
    }
    PWSP_ZERO(pwsp_export_ranks, e);
    pwsp_blocks blocks;
    e.memory = pwsp_blocks_begin(&blocks, &context->memory);
    e.group = group;
    pwsp_export_ranks_measure(&e);
    if (pwsp_export_ranks_reserve(&e) && pwsp_export_ranks_take(&e)) {
        PWSP_ZERO(ptowsp_span_set, set);
        set.title = pwsp_program_title(pwsp_run_result(group->runs[0])->program);
        set.spans = e.spans;
        set.count = e.count;
        set.names = e.titles;
        set.name_count = (uint32_t)e.name_count;
        set.label = pwsp_export_ranks_label;
        set.user = &e;
        set.rank_lanes = e.lanes;
        set.lane_names = e.lane_names;
        set.arrows = e.arrows;
        set.arrow_count = e.arrow_count;
        set.has_cycles = true;
        status = ptowsp_spans_export(context, &set, format, options, output);
    } else {
        status = PWSP_NO_MEMORY(context, "export: out of memory");
    }
    pwsp_blocks_free(&blocks);
    return status;
}
