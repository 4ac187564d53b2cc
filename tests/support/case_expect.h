// What a case expects of an execution, a word each: see tests/README.md.

#ifndef CASE_EXPECT_H
#define CASE_EXPECT_H

#include "case_run.h"
#include "run_results.h"

#include "report_text.h"

static inline const char *case_kernel_name(const case_subject *s, uint64_t task) {
    const char *name =
        ptowsp_program_kernel_name(s->program, ptowsp_run_records(s->run)[task].kernel);
    return name ? name : "";
}

// -- numbers by name ------------------------------------------------------------------------------

typedef struct case_field {
    const char *name;
    uint64_t value;
} case_field;

#define CASE_FIELDS(fields) fields, sizeof(fields) / sizeof((fields)[0])

// NAME N, NAME N, ...: each of them one of the fields, and at least one.
static inline void case_check_fields(case_subject *s, uint64_t i, const char *at,
                                     const case_field *fields, size_t count) {
    char word[64];
    at += strspn(at, " :,");
    if (!*at) {
        CASE_FAIL(s, "nothing is compared");
    }
    for (; *at; at += strspn(at, " ,")) {
        size_t f = 0;
        case_word(&at, word);
        while (f < count && strcmp(fields[f].name, word) != 0) {
            f++;
        }
        if (f == count) {
            CASE_FAIL(s, "there is no number %s", word);
        }
        at = case_skip(at);
        bool is_none = at[0] == '-' && !isdigit((unsigned char)at[1]);
        at += is_none;
        case_check(s, word, i, fields[f].value,
                   !is_none                ? (uint64_t)case_number(s, &at)
                   : strcmp(word, "after") ? PTOWSP_NO_LANE
                                           : PTOWSP_NO_INDEX);
    }
}

// N N ...: the first fields, in order.
static inline void case_check_row(case_subject *s, uint64_t i, const char **at,
                                  const case_field *fields, size_t count) {
    for (size_t f = 0; f < count; f++) {
        case_check(s, fields[f].name, i, fields[f].value, (uint64_t)case_number(s, at));
    }
}

// -- time -----------------------------------------------------------------------------------------

// makespan N, count N, ...: a number of the whole execution, which the item's word names.
static inline void case_expect_number(case_subject *s, const char *at) {
    const ptowsp_run_stats *stats = ptowsp_run_result(s->run);
    uint64_t step_count = 0;
    ptowsp_run_steps(s->run, &step_count);
    const case_field fields[] = {
        {"makespan", stats->makespan_cycles}, {"count", stats->task_count},
        {"busy", stats->busy_cycles},         {"lane_count", stats->lane_count},
        {"in_flight", stats->in_flight_max},  {"overflows", stats->window_overflow_count},
        {"loads", stats->slot_load_count},    {"step_count", step_count}};
    size_t f = 0;
    while (strcmp(fields[f].name, s->word) != 0) {
        f++;
    }
    case_check(s, s->word, 0, fields[f].value, (uint64_t)case_number(s, &at));
    case_end(s, at);
}

// lanes N ...: tasks by lane. Also what must hold of lanes and of a window.
static inline void case_expect_lanes(case_subject *s, const char *at) {
    const ptowsp_run_stats *stats = ptowsp_run_result(s->run);
    const ptowsp_lane_stats *lanes = ptowsp_run_lanes(s->run);
    uint32_t pipelines = 0, count = 0, window = s->saved.schedule.window;
    ptowsp_cycles busy = 0;
    for (; case_is_number(at); count++) {
        uint64_t expected = (uint64_t)case_number(s, &at);
        if (count < stats->lane_count) {
            case_check(s, "tasks of lane", count, lanes[count].task_count, expected);
            case_check(s, "idle cycles of lane", count, lanes[count].idle_cycles,
                       stats->makespan_cycles - lanes[count].busy_cycles);
            busy += lanes[count].busy_cycles;
        }
    }
    case_end(s, at);
    case_check(s, "lane count", 0, stats->lane_count, count);
    ptowsp_run_pipelines(s->run, &pipelines);
    if (pipelines == 0) {
        case_check(s, "busy cycles of all lanes", 0, busy, stats->busy_cycles);
    }
    if (window && stats->in_flight_max > window) {
        case_check(s, "tasks in flight, of a window", 0, stats->in_flight_max, window);
    }
}

// lane I: tasks N, busy N, idle N
static inline void case_expect_lane(case_subject *s, const char *at) {
    uint64_t lane = (uint64_t)case_number(s, &at);
    case_check(s, "lanes, up to this one,", 0, lane < ptowsp_run_result(s->run)->lane_count, 1);
    const ptowsp_lane_stats *stats = &ptowsp_run_lanes(s->run)[lane];
    const case_field fields[] = {{"tasks", stats->task_count},
                                 {"busy", stats->busy_cycles},
                                 {"idle", stats->idle_cycles},
                                 {"slowed", stats->slowed_cycles},
                                 {"end", stats->end_cycles}};
    case_check_fields(s, lane, at, CASE_FIELDS(fields));
}

// on_lanes TASKS BUSY: sums over all lanes
static inline void case_expect_on_lanes(case_subject *s, const char *at) {
    const ptowsp_run_stats *stats = ptowsp_run_result(s->run);
    uint64_t tasks = 0, busy = 0;
    for (uint32_t i = 0; i < stats->lane_count; i++) {
        const ptowsp_lane_stats *lane = &ptowsp_run_lanes(s->run)[i];
        tasks += lane->task_count;
        busy += lane->busy_cycles;
        case_check(s, "idle cycles of lane", i, lane->idle_cycles,
                   stats->makespan_cycles - lane->busy_cycles);
    }
    case_check(s, "tasks on lanes", 0, tasks, (uint64_t)case_number(s, &at));
    case_check(s, "busy cycles of lanes", 0, busy, (uint64_t)case_number(s, &at));
    case_end(s, at);
}

// The stall whose name the text begins with.
static inline ptowsp_stall case_stall(const case_subject *s, const char **at) {
    for (int stall = 0; stall < PTOWSP_STALL_COUNT; stall++) {
        const char *name = ptowsp_stall_name((ptowsp_stall)stall);
        if (case_begins(*at, name) && (*at)[strlen(name)] == ' ' &&
            case_is_number(*at + strlen(name))) {
            *at += strlen(name);
            return (ptowsp_stall)stall;
        }
    }
    CASE_FAIL(s, "there is no such stall: %s", *at);
    return PTOWSP_STALL_NONE;
}

// stalled STALL N: the cycles of stall_cycles
static inline void case_expect_stalled(case_subject *s, const char *at) {
    const ptowsp_stall stall = case_stall(s, &at);
    case_check(s, ptowsp_stall_name(stall), 0, ptowsp_run_result(s->run)->stall_cycles[stall],
               (uint64_t)case_number(s, &at));
    case_end(s, at);
}

// idle STALL N: the cycles of ptowsp_run_idle, of all lanes. Whatever the reasons, what is not busy is
// idle.
static inline void case_expect_idle(case_subject *s, const char *at) {
    const ptowsp_run_stats *stats = ptowsp_run_result(s->run);
    const ptowsp_cycles *idle = ptowsp_run_idle(s->run);
    const ptowsp_stall stall = case_stall(s, &at);
    ptowsp_cycles sum = stats->busy_cycles;
    case_check(s, ptowsp_stall_name(stall), 0, idle[stall], (uint64_t)case_number(s, &at));
    for (int i = 0; i < PTOWSP_STALL_COUNT; i++) {
        sum += idle[i];
    }
    case_check(s, "busy and idle cycles", 0, sum, stats->makespan_cycles * stats->lane_count);
    case_end(s, at);
}

// memory hbm N, l2 N, slowed N, hbm_limited N, l2_limited N: what lanes that share it have moved, in
// bytes, and for how many cycles it was short
static inline void case_expect_memory(case_subject *s, const char *at) {
    const ptowsp_run_stats *stats = ptowsp_run_result(s->run);
    const case_field fields[] = {{"hbm", stats->hbm_bytes},
                                 {"l2", stats->l2_bytes},
                                 {"slowed", stats->slowed_cycles},
                                 {"hbm_limited", stats->hbm_limited_cycles},
                                 {"l2_limited", stats->l2_limited_cycles}};
    case_check_fields(s, 0, at, CASE_FIELDS(fields));
}

// control work N, submit N: cycles of AICPU threads, or of the host
static inline void case_expect_control(case_subject *s, const char *at) {
    const ptowsp_run_stats *stats = ptowsp_run_result(s->run);
    const case_field fields[] = {{"work", stats->control_cycles}, {"submit", stats->submit_cycles}};
    case_check_fields(s, 0, at, CASE_FIELDS(fields));
}

// bounds path N, largest N, pools N, pool_0 N, pool_1 N, pool_2 N, process N, of_process I, channel N, of_channel I,
// link N, control N, submit N, hbm N, l2 N
static inline void case_expect_bounds(case_subject *s, const char *at) {
    ptowsp_run_bounds b;
    case_ok(s, "bounds", ptowsp_run_find_bounds(s->run, &b));
    const case_field fields[] = {
        {"path", b.path_cycles},       {"largest", b.largest_cycles}, {"pools", b.pool_count},
        {"pool_0", b.work_cycles[0]},  {"pool_1", b.work_cycles[1]},  {"pool_2", b.work_cycles[2]},
        {"process", b.process_cycles}, {"of_process", b.process},     {"channel", b.channel_cycles},
        {"of_channel", b.channel},     {"link", b.link_cycles},       {"control", b.control_cycles},
        {"submit", b.submit_cycles},   {"hbm", b.hbm_cycles},         {"l2", b.l2_cycles}};
    case_check_fields(s, 0, at, CASE_FIELDS(fields));
}

// -- transient tensors ----------------------------------------------------------------------------

static inline ptowsp_transient_sizes case_transients(const case_subject *s) {
    ptowsp_transient_sizes sizes;
    case_ok(s, "sizes of transient tensors", ptowsp_run_size_transients(s->run, &sizes));
    return sizes;
}

static inline const char *case_lifetime_name(const case_subject *s, uint32_t i) {
    const uint32_t tensor = ptowsp_run_lifetime_at(s->run, i).tensor;
    return ptowsp_program_read(s->program)->tensors[tensor].desc.name;
}

// lifetimes TENSOR FIRST-LAST [FIRST-LAST ...], ...: all of them
static inline void case_expect_lifetimes(case_subject *s, const char *at) {
    const uint32_t count = case_transients(s).lifetime_count;
    char *text = case_copy("", 0), one[200];
    for (uint32_t i = 0; i < count; i++) {
        const ptowsp_lifetime life = ptowsp_run_lifetime_at(s->run, i);
        const bool is_first = i == 0 || ptowsp_run_lifetime_at(s->run, i - 1).tensor != life.tensor;
        snprintf(one, sizeof one, "%s%s %u-%u", is_first && i ? ", " : "",
                 is_first ? case_lifetime_name(s, i) : "", life.first, life.last);
        text = case_join(text, one, strlen(one));
    }
    case_check_text(s, "lifetimes", text, at);
}

// transients sum N, low N, peak N, point N, points N, lifetimes N
static inline void case_expect_transients(case_subject *s, const char *at) {
    const ptowsp_transient_sizes sizes = case_transients(s);
    const case_field fields[] = {{"sum", sizes.sum},
                                 {"low", sizes.low},
                                 {"peak", sizes.peak},
                                 {"point", sizes.point},
                                 {"points", sizes.point_count},
                                 {"lifetimes", sizes.lifetime_count}};
    case_check_fields(s, 0, at, CASE_FIELDS(fields));
}

// block TENSOR: offset N, bytes N: where its first lifetime is in the block of all
static inline void case_expect_block(case_subject *s, const char *at) {
    const uint32_t count = case_transients(s).lifetime_count;
    char name[64];
    uint32_t i = 0;
    case_word(&at, name);
    while (i < count && strcmp(case_lifetime_name(s, i), name) != 0) {
        i++;
    }
    case_check(s, "lives: a tensor", i, i < count, 1);
    const ptowsp_lifetime life = ptowsp_run_lifetime_at(s->run, i);
    const case_field fields[] = {{"offset", life.offset}, {"bytes", life.size}};
    case_check_fields(s, i, at, CASE_FIELDS(fields));
}

// point I PLACE: which task it is
static inline void case_expect_point(case_subject *s, const char *at) {
    char place[200];
    ptowsp_output_buffer buffer = {place, sizeof place, 0};
    const uint32_t point = (uint32_t)case_number(s, &at);
    ptowsp_program_print_point(s->program, point, ptowsp_output_to_buffer(&buffer));
    case_check_text(s, "place of a point", place, case_skip(at));
}

// -- ranks ----------------------------------------------------------------------------------------

// ends N ...: the makespan of each rank
static inline void case_expect_ends(case_subject *s, const char *at) {
    uint32_t count = 0;
    for (; case_is_number(at); count++) {
        const uint64_t end = (uint64_t)case_number(s, &at);
        if (count == s->rank) {
            case_check(s, "end of rank", count, ptowsp_run_result(s->run)->makespan_cycles, end);
        }
    }
    case_end(s, at);
    case_check(s, "ranks", 0, count, s->rank_count);
}

// group makespan N, last N, collectives N, messages N, sent N, between N, waited N: of ranks together
static inline void case_expect_group(case_subject *s, const char *at) {
    const ptowsp_run_group_result *r = s->together;
    if (r) {
        const case_field fields[] = {
            {"makespan", r->makespan_cycles}, {"last", r->last_rank},
            {"messages", r->message_count},   {"collectives", r->collective_count},
            {"sent", r->sent_bytes},          {"between", r->between_bytes},
            {"waited", r->wait_cycles}};
        case_check_fields(s, 0, at, CASE_FIELDS(fields));
    }
}

// rank_waits TASK for RANK TASK CYCLES, ...: all waits of a rank for others, when they are together
static inline void case_expect_rank_waits(case_subject *s, const char *at) {
    uint64_t count = 0, i = 0;
    const ptowsp_rank_wait *waits = ptowsp_run_rank_waits(s->run, &count);
    for (; s->together && case_is_number(at) && i < count; i++) {
        const case_field fields[] = {{"rank that a task waits for", waits[i].from_rank},
                                     {"task of that rank", waits[i].from_task},
                                     {"cycles of a wait for a rank", waits[i].cycles}};
        case_check(s, "task that waits", i, waits[i].task, (uint64_t)case_number(s, &at));
        case_literal(s, &at, "for ");
        case_check_row(s, i, &at, CASE_FIELDS(fields));
    }
    if (s->together) {
        case_check(s, "waits for ranks", 0, count, i + case_is_number(at));
        case_end(s, at);
    }
}

// slot I N: its value at the end
static inline void case_expect_slot(case_subject *s, const char *at) {
    uint32_t slot = (uint32_t)case_number(s, &at);
    case_check(s, "slot", slot, ptowsp_run_slot(s->run, slot), (uint64_t)case_number(s, &at));
    case_end(s, at);
}

// -- tasks ----------------------------------------------------------------------------------------

// (AXES) up to `end`: those that were recorded, and those that the task's function was called with.
static inline void case_expect_axes(case_subject *s, uint64_t task, const char *at,
                                    const char *end) {
    ptowsp_task_trace trace;
    uint32_t count = 0;
    case_check(s, "is recorded: task", task, ptowsp_run_trace_find(s->run, task, &trace), 1);
    for (at += strspn(at, " ("); isdigit((unsigned char)*at) || *at == '-'; count++) {
        uint64_t axis = (uint64_t)case_number(s, &at);
        at += strspn(at, " ,");
        if (count < trace.axis_count) {
            case_check(s, "an axis argument of task", task, trace.args[count], axis);
            bool is_called = task < CASE_TASK_MAX && s->called[task][0] != CASE_NOT_CALLED;
            if (is_called) {  // tile kernels are not, and nothing is without data
                case_check(s, "an axis argument of the call of task", task,
                           (uint64_t)s->called[task][count], axis);
            }
        }
    }
    case_check(s, "axis arguments of task", task, trace.axis_count, count);
    at += strspn(at, " )");
    if (at != end) {
        CASE_FAIL(s, "this is not read: \"%.*s\"", (int)(end - at), at);
    }
}

// NAME(AXES): the name may be left out if it is that of the task before.
static inline const char *case_expect_call(case_subject *s, uint64_t task, const char *at,
                                           char *kernel) {
    char name[64];
    at += strspn(at, " ,");
    case_word(&at, name);
    if (name[0]) {
        snprintf(kernel, 64, "%s", name);
    }
    case_check_text(s, "kernel of a task", case_kernel_name(s, task), kernel);
    const char *end = strchr(at, ':');
    if (!end) {
        CASE_FAIL(s, "a colon is missing at \"%s\"", at);
    }
    case_expect_axes(s, task, at, end);
    return end + 1;
}

// tasks NAME(AXES): LANE START END [by STALL], ...; a lane "-" is none. All tasks, in order.
static inline void case_expect_tasks(case_subject *s, const char *at) {
    uint64_t task = 0;
    char kernel[64] = "", stall[64];
    for (; *case_skip(at); task++) {
        const ptowsp_task_record *record = &ptowsp_run_records(s->run)[task];
        if (task >= ptowsp_run_result(s->run)->task_count) {
            CASE_FAIL(s, "there are only %llu tasks", (unsigned long long)task);
        }
        at = case_skip(case_expect_call(s, task, at, kernel));
        bool is_none = at[0] == '-' && at[1] == ' ';
        uint64_t lane = is_none ? PTOWSP_NO_LANE : (uint64_t)case_number(s, &at);
        at += is_none;
        case_check(s, "lane of task", task, record->lane, lane);
        case_check(s, "start of task", task, record->start, (uint64_t)case_number(s, &at));
        case_check(s, "end of task", task, record->end, (uint64_t)case_number(s, &at));
        if (case_begins(case_skip(at), "by ")) {
            at = case_skip(at) + 3;
            case_word(&at, stall);
            case_check_text(s, "stall of a task", ptowsp_stall_name(record->stall), stall);
        }
    }
    case_check(s, "tasks that the case lists", 0, task, ptowsp_run_result(s->run)->task_count);
}

// task I: [START END,] on LANE, by STALL, after TASK, issue CYCLE, start CYCLE, ready CYCLE; the stall
// stands before the others but LANE
static inline void case_expect_task(case_subject *s, const char *at) {
    uint64_t task = (uint64_t)case_number(s, &at);
    if (task >= ptowsp_run_result(s->run)->task_count) {
        CASE_FAIL(s, "there is no task %llu", (unsigned long long)task);
    }
    const ptowsp_task_record *record = &ptowsp_run_records(s->run)[task];
    const case_field fields[] = {{"start", record->start}, {"end", record->end},
                                 {"on", record->lane},     {"after", record->cause},
                                 {"issue", record->issue}, {"ready", record->ready}};
    case_literal(s, &at, ":");
    at = case_skip(at);
    bool has_times = isdigit((unsigned char)*at);
    if (has_times) {
        case_check_row(s, task, &at, fields, 2);
    }
    const char *by = strstr(at, "by ");
    if (by) {
        size_t length = strcspn(by, ",");
        case_check_text(s, "stall of the task", ptowsp_stall_name(record->stall),
                        case_copy(by + 3, length - 3));
        at = case_join(case_copy(at, (size_t)(by - at)), by + length, strlen(by + length));
    }
    if (at[strspn(at, " ,")] || (!has_times && !by)) {
        case_check_fields(s, task, at, CASE_FIELDS(fields));
    }
}

static inline bool case_edge(void *user, const ptowsp_edge *edge) {
    char **text = (char **)user, one[64];
    snprintf(one, sizeof one, "%s%llu<%llu %s", **text ? ", " : "", (unsigned long long)edge->to,
             (unsigned long long)edge->from, ptowsp_edge_reason_name(edge->reason));
    *text = case_join(*text, one, strlen(one));
    return true;
}

// edges_of all: TASK<EARLIER REASON, ... or edges_of TASK: ...: what it waits for, with `records edges`
static inline void case_expect_edges_of(case_subject *s, const char *at) {
    char *text = case_copy("", 0);
    uint64_t task = PTOWSP_NO_INDEX;
    if (case_is_number(at)) {
        task = (uint64_t)case_number(s, &at);
    } else {
        case_literal(s, &at, "all");
    }
    case_literal(s, &at, ":");
    case_check(s, "edges are recorded", 0, ptowsp_run_edges(s->run, task, case_edge, &text), 1);
    case_check_text(s, "edges", text, case_skip(at));
}

// path TASK ...: the critical one
static inline void case_expect_path(case_subject *s, const char *at) {
    uint64_t count = 0, i = 0;
    const uint64_t *path = ptowsp_run_critical_path(s->run, &count);
    for (; case_is_number(at) && i < count; i++) {
        case_check(s, "task of the critical path", i, path[i], (uint64_t)case_number(s, &at));
    }
    case_check(s, "tasks of the critical path", 0, count, i + case_is_number(at));
    case_end(s, at);
}

// hash H: FNV-1a over each task's kernel name, lane, ready, start and end. In processes tasks are
// ready when they start.
static inline uint64_t case_hash_word(uint64_t hash, uint64_t word) {
    return (hash ^ word) * UINT64_C(0x100000001b3);
}

static inline void case_expect_hash(case_subject *s, const char *at) {
    const ptowsp_task_record *records = ptowsp_run_records(s->run);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint64_t i = 0; i < ptowsp_run_result(s->run)->task_count; i++) {
        for (const char *c = case_kernel_name(s, i); *c; c++) {
            hash = case_hash_word(hash, (unsigned char)*c);
        }
        bool is_in_process = records[i].lane == PTOWSP_NO_LANE;
        hash = case_hash_word(hash, records[i].lane);
        hash = case_hash_word(hash, is_in_process ? records[i].start : records[i].ready);
        hash = case_hash_word(hash, records[i].start);
        hash = case_hash_word(hash, records[i].end);
    }
    char *end;
    case_check(s, "hash of all tasks", 0, hash, strtoull(at, &end, 16));
    case_end(s, end);
}

// -- pipelines ------------------------------------------------------------------------------------

static inline void case_pipeline_fields(const case_subject *s, uint32_t i, case_field *fields) {
    const ptowsp_pipeline_stats *p = &ptowsp_run_pipelines(s->run, NULL)[i];
    const case_field all[9] = {{"runs", p->run_count},
                               {"start", p->start_cycles},
                               {"makespan", p->makespan_cycles},
                               {"total", p->total_cycles},
                               {"processes", p->process_count},
                               {"first_process", p->first_process},
                               {"channels", p->channel_count},
                               {"first_channel", p->first_channel},
                               {"independent", p->is_timing_independent}};
    memcpy(fields, all, sizeof all);
}

static inline void case_process_fields(const case_subject *s, uint32_t i, case_field *fields) {
    const ptowsp_process_stats *p = &ptowsp_run_processes(s->run, NULL)[i];
    const case_field all[5] = {{"tasks", p->task_count},
                               {"end", p->end_cycles},
                               {"busy", p->busy_cycles},
                               {"full", p->full_cycles},
                               {"empty", p->empty_cycles}};
    memcpy(fields, all, sizeof all);
}

static inline void case_channel_fields(const case_subject *s, uint32_t i, case_field *fields) {
    const ptowsp_channel_stats *c = &ptowsp_run_channels(s->run, NULL)[i];
    const case_field all[7] = {{"depth", c->depth},        {"latency", c->latency},
                               {"tokens", c->token_count}, {"most", c->pending_max},
                               {"full", c->full_cycles},   {"empty", c->empty_cycles},
                               {"left", c->pending_count}};
    memcpy(fields, all, sizeof all);
}

// pipelines RUNS START MAKESPAN, ...
static inline void case_expect_pipelines(case_subject *s, const char *at) {
    uint32_t count = 0, i = 0;
    case_field fields[9];
    ptowsp_run_pipelines(s->run, &count);
    for (; case_is_number(at) && i < count; i++) {
        case_pipeline_fields(s, i, fields);
        case_check_row(s, i, &at, fields, 3);
    }
    case_check(s, "pipelines", 0, count, i + case_is_number(at));
    case_end(s, at);
}

// processes NAME: TASKS END BUSY FULL EMPTY, ...; also that waits add up.
static inline void case_expect_processes(case_subject *s, const char *at) {
    uint32_t count = 0, i = 0;
    const ptowsp_process_stats *processes = ptowsp_run_processes(s->run, &count);
    ptowsp_cycles waited = 0;
    case_field fields[5];
    char name[64];
    for (; *case_skip(at) && i < count; i++) {
        at += strspn(at, " ,");
        case_word(&at, name);
        case_check_text(s, "name of a process", processes[i].name, name);
        case_process_fields(s, i, fields);
        case_check_row(s, i, &at, fields, 5);
        waited += processes[i].full_cycles + processes[i].empty_cycles;
    }
    case_check(s, "processes", 0, count, i + (*case_skip(at) != '\0'));
    case_check(s, "cycles of waiting at channels", 0,
               ptowsp_run_result(s->run)->stall_cycles[PTOWSP_STALL_CHANNEL], waited);
}

// channels NAME(DEPTH, LATENCY): TOKENS MOST FULL EMPTY, ...; none is left in them.
static inline void case_expect_channels(case_subject *s, const char *at) {
    uint32_t count = 0, i = 0;
    const ptowsp_channel_stats *channels = ptowsp_run_channels(s->run, &count);
    case_field fields[7];
    char name[64];
    for (; *case_skip(at) && i < count; i++) {
        at += strspn(at, " ,");
        case_word(&at, name);
        case_check_text(s, "name of a channel", channels[i].name, name);
        case_channel_fields(s, i, fields);
        case_check_row(s, i, &at, fields, 6);
        case_check(s, "tokens left in channel", i, channels[i].pending_count, 0);
    }
    case_check(s, "channels", 0, count, i + (*case_skip(at) != '\0'));
}

// The number of the process NAME or NAME.REPLICA.
static inline uint32_t case_process(const case_subject *s, const char **at) {
    uint32_t count = 0, replica = 0;
    const ptowsp_process_stats *processes = ptowsp_run_processes(s->run, &count);
    char name[64];
    case_word(at, name);
    char *dot = strchr(name, '.');
    if (dot) {
        const char *digits = dot + 1;
        replica = (uint32_t)case_number(s, &digits);
        case_end(s, digits);
        *dot = '\0';
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!strcmp(processes[i].name, name) && processes[i].replica == replica) {
            return i;
        }
    }
    CASE_FAIL(s, "there is no process %s %u", name, replica);
    return 0;
}

// steps PROCESS[.REPLICA]: STEP, ...: all that it did, as run_results.h writes it
static inline void case_expect_steps(case_subject *s, const char *at) {
    uint64_t count = 0;
    uint32_t process = case_process(s, &at);
    const ptowsp_step_record *steps = ptowsp_run_steps(s->run, &count);
    char *text = case_copy("", 0);
    for (uint64_t i = 0; i < count; i++) {
        if (steps[i].process == process) {
            char one[200];
            step_text(s->run, &steps[i], one, sizeof one);
            text = case_join(case_join(text, *text ? ", " : "", *text ? 2 : 0), one, strlen(one));
        }
    }
    case_literal(s, &at, ":");
    case_check_text(s, "steps", text, case_skip(at));
}

// Steps as text, each after the name of its process: those with these ids, or the first ones (NULL).
static inline char *case_steps_text(const case_subject *s, const uint64_t *ids, uint64_t count) {
    const ptowsp_step_record *steps = ptowsp_run_steps(s->run, NULL);
    const ptowsp_process_stats *processes = ptowsp_run_processes(s->run, NULL);
    char *text = case_copy("", 0), one[200];
    for (uint64_t i = 0; i < count; i++) {
        const ptowsp_step_record *step = &steps[ids ? ids[i] : i];
        const char *name = processes[step->process].name;
        step_text(s->run, step, one, sizeof one);
        text = case_join(text, *text ? ", " : "", *text ? 2 : 0);
        text = case_join(case_join(case_join(text, name, strlen(name)), " ", 1), one, strlen(one));
    }
    return text;
}

// chain PIPELINE: PROCESS STEP, ...: its critical steps
static inline void case_expect_chain(case_subject *s, const char *at) {
    uint64_t count = 0;
    const uint64_t *chain =
        ptowsp_run_critical_steps(s->run, (uint32_t)case_number(s, &at), &count);
    case_literal(s, &at, ":");
    case_check_text(s, "chain", case_steps_text(s, chain, count), case_skip(at));
}

// all_steps PROCESS STEP, ...: of all processes, in their order
static inline void case_expect_all_steps(case_subject *s, const char *at) {
    uint64_t count = 0;
    ptowsp_run_steps(s->run, &count);
    case_check_text(s, "steps", case_steps_text(s, NULL, count), at);
}

// process PROCESS[.REPLICA]: tasks N, end N, busy N, full N, empty N
static inline void case_expect_process(case_subject *s, const char *at) {
    uint32_t i = case_process(s, &at);
    case_field fields[5];
    case_process_fields(s, i, fields);
    case_check_fields(s, i, at, CASE_FIELDS(fields));
}

// channel NAME: depth N, latency N, tokens N, most N, left N, full N, empty N
static inline void case_expect_channel(case_subject *s, const char *at) {
    uint32_t count = 0, i = 0;
    const ptowsp_channel_stats *channels = ptowsp_run_channels(s->run, &count);
    case_field fields[7];
    char name[64];
    case_word(&at, name);
    while (i < count && strcmp(channels[i].name, name) != 0) {
        i++;
    }
    if (i == count) {
        CASE_FAIL(s, "there is no channel %s", name);
    }
    case_channel_fields(s, i, fields);
    case_check_fields(s, i, at, CASE_FIELDS(fields));
}

// pipeline I: [name NAME,] runs N, start N, makespan N, total N, processes N, first_process N,
// channels N, first_channel N, independent 0 or 1
static inline void case_expect_pipeline(case_subject *s, const char *at) {
    uint32_t count = 0, i = (uint32_t)case_number(s, &at);
    const ptowsp_pipeline_stats *pipelines = ptowsp_run_pipelines(s->run, &count);
    case_field fields[9];
    char name[64];
    case_check(s, "pipelines, up to this one,", i, i < count, 1);
    at += strspn(at, " :");
    bool has_name = case_begins(at, "name ");
    if (has_name) {
        at += 5;
        case_word(&at, name);
        case_check_text(s, "name of the pipeline", pipelines[i].name, name);
    }
    case_pipeline_fields(s, i, fields);
    if (!has_name || *case_skip(at)) {
        case_check_fields(s, i, at, CASE_FIELDS(fields));
    }
}

// ring NAME: most N, stalled N
static inline void case_expect_ring(case_subject *s, const char *at) {
    const ptowsp_run_stats *stats = ptowsp_run_result(s->run);
    uint32_t ring = 0;
    char name[64];
    case_word(&at, name);
    while (ring < PTOWSP_RING_COUNT && strcmp(ptowsp_ring_name((ptowsp_ring)ring), name) != 0) {
        ring++;
    }
    case_check(s, "is a ring", 0, ring < PTOWSP_RING_COUNT, 1);
    const case_field fields[] = {{"most", stats->ring_max[ring]},
                                 {"stalled", stats->stall_cycles[PTOWSP_STALL_TASK_RING + ring]}};
    case_check_fields(s, ring, at, CASE_FIELDS(fields));
}

// calls N, ...: the first axis argument of each call of a function, or what it saw, in the order of
// calls on one thread
static inline void case_expect_calls(case_subject *s, const char *at) {
    uint64_t i = 0;
    for (; case_is_number(at) && s->core_count == 1; i++) {
        case_check(s, "call", i, i < CASE_NOTE_MAX ? (uint64_t)s->noted[i] : 0,
                   (uint64_t)case_number(s, &at));
    }
    if (s->core_count == 1) {
        case_end(s, at);
        case_check(s, "calls", 0, s->call_count, i);
    }
}

// -- deadlocks ------------------------------------------------------------------------------------

static inline const char *case_stuck_text(const case_subject *s) {
    static char text[1 << 16];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    text[0] = '\0';
    ptowsp_run_print_stuck(s->run, ptowsp_output_to_buffer(&buffer));
    return text;
}

static inline void case_check_state(case_subject *s, uint32_t process, const char *word) {
    static const char *const states[] = {"ended", "stopped", "full", "empty"};
    case_check_text(s, "state", states[ptowsp_run_processes(s->run, NULL)[process].state], word);
}

// state PROCESS[.REPLICA] ended|stopped|full|empty
static inline void case_expect_state(case_subject *s, const char *at) {
    uint32_t i = case_process(s, &at);
    char word[64];
    case_word(&at, word);
    case_check_state(s, i, word);
    case_end(s, at);
}

// waits PROCESS[.REPLICA] full|empty CHANNEL since N at PLACE, with its variables: so in the results,
// and in the text, whose line of the process names the channel, the state and the time.
static inline void case_expect_waits(case_subject *s, const char *at) {
    char line[200], since[64], name[64], word[64], place[200];
    uint32_t i = case_process(s, &at);
    const ptowsp_process_stats *p = &ptowsp_run_processes(s->run, NULL)[i];
    case_word(&at, word);
    case_check_state(s, i, word);
    case_word(&at, name);
    case_check_text(s, "channel", ptowsp_run_channels(s->run, NULL)[p->channel].name, name);
    case_literal(s, &at, "since ");
    case_check(s, "since", i, p->end_cycles, (uint64_t)case_number(s, &at));
    case_literal(s, &at, "at ");
    ptowsp_output_buffer buffer = {place, sizeof place, 0};
    ptowsp_program_print_place(s->program, p->node, ptowsp_output_to_buffer(&buffer));
    const char *text = case_stuck_text(s), *paragraph = strstr(text, p->name);
    snprintf(line, sizeof line, "%.*s", paragraph ? (int)strcspn(paragraph, "\n") : 0,
             paragraph ? paragraph : "");
    snprintf(since, sizeof since, "since cycle %llu", (unsigned long long)p->end_cycles);
    case_check(s, "the place is said", i, strstr(at, place) && strstr(text, at), 1);
    case_check(s, "channel, state and time are said", i,
               strstr(line, name) && strstr(line, word) && strstr(line, since), 1);
}

// cycle PROCESS ...: the line of the cycle goes through these, in order, back to the first.
static inline void case_expect_cycle(case_subject *s, const char *at) {
    const char *line = strstr(case_stuck_text(s), "  cycle: "), *first = at;
    const char *end = line ? line + strcspn(line, "\n") : NULL;
    char name[64];
    for (bool is_last = false; !is_last;) {
        is_last = !*case_skip(at);
        at = is_last ? first : at;
        case_word(&at, name);
        case_check(s, "the cycle has names", 0, name[0] != '\0', 1);
        line = line ? strstr(line, name) : NULL;
        case_check(s, "the cycle goes on", 0, line && line < end, 1);
        line += line != NULL;
    }
}

// The parts of a list: PART / PART ...; NULL after the last one.
static inline const char *case_next_part(const case_subject *s, const char **at) {
    const char *end = strstr(*at, " / "), *part = *at;
    if (!*part) {
        return NULL;
    }
    if (end == part) {
        CASE_FAIL(s, "a part is empty at \"%s\"", part);
    }
    *at = end ? end + 3 : part + strlen(part);
    return case_copy(part, end ? (size_t)(end - part) : strlen(part));
}

// explored STATUS [states N] [steps N] [PART / PART ...]: of all orders of steps, with parts of the error.
// What comes after it is of the order that was found.
static inline void case_expect_explored(case_subject *s, const char *at) {
    const ptowsp_explore_options options = {0};
    ptowsp_explore_stats stats;
    char word[64];
    case_word(&at, word);
    case_check_text(s, "status of exploring",
                    ptowsp_status_name(ptowsp_run_explore(s->run, &options, &stats)), word);
    at = case_skip(at);
    if (case_begins(at, "states ")) {
        at += 7;
        case_check(s, "states", 0, stats.state_count, (uint64_t)case_number(s, &at));
        at = case_skip(at);
    }
    if (case_begins(at, "steps ")) {
        at += 6;
        case_check(s, "steps", 0, stats.step_count, (uint64_t)case_number(s, &at));
        at = case_skip(at);
    }
    for (const char *part; (part = case_next_part(s, &at));) {
        case_check_count++;
        if (!strstr(ptowsp_context_error(s->context).text, part)) {
            CASE_FAIL(s, "\"%s\" is not in: %s", part, ptowsp_context_error(s->context).text);
        }
    }
}

// -- what is written ------------------------------------------------------------------------------

typedef enum case_writer {
    CASE_REPORT,
    CASE_EXPORT,
    CASE_TRANSIENTS,
    CASE_DECISIONS,
    CASE_RUN
} case_writer;

static const struct {
    const char *name;
    case_writer writer;
    int format;
} case_outputs[] = {
    // clang-format off
    {"report", CASE_REPORT, PTOWSP_REPORT_TEXT},
    {"json", CASE_REPORT, PTOWSP_REPORT_JSON},
    {"html", CASE_REPORT, PTOWSP_REPORT_HTML},
    {"chrome", CASE_EXPORT, PTOWSP_EXPORT_CHROME},
    {"svg", CASE_EXPORT, PTOWSP_EXPORT_SVG},
    {"csv", CASE_EXPORT, PTOWSP_EXPORT_CSV},
    {"table", CASE_EXPORT, PTOWSP_EXPORT_TABLE},
    {"usage", CASE_EXPORT, PTOWSP_EXPORT_USAGE_CSV},
    {"edges", CASE_EXPORT, PTOWSP_EXPORT_EDGES},
    {"dot", CASE_EXPORT, PTOWSP_EXPORT_DOT},
    {"transients_svg", CASE_TRANSIENTS, PTOWSP_EXPORT_SVG},
    {"transients_csv", CASE_TRANSIENTS, PTOWSP_EXPORT_CSV},
    {"decisions", CASE_DECISIONS, PTOWSP_REPORT_TEXT},
    {"run", CASE_RUN, 0},
    // clang-format on
};

static inline uint32_t case_kernel_id(const case_subject *s, const char *name) {
    const ptowsp_program_tables *t = ptowsp_program_read(s->program);
    for (uint32_t k = 1; k < t->kernel_count; k++) {
        if (!strcmp(t->kernels[k].name, name)) {
            return k;
        }
    }
    CASE_FAIL(s, "there is no kernel %s", name);
    return 0;
}

// NAME [short] [fold kernels | loops] [mhz N], and of reports [what KERNEL PERCENT CYCLES ...]: of the run.
static inline ptowsp_status case_write(case_subject *s, const char **at, ptowsp_output output) {
    ptowsp_export_options options = {0};
    ptowsp_what_if what_ifs[4] = {{0}};
    uint32_t what_count = 0;
    size_t o = 0;
    char word[64];
    for (case_word(at, word); o < COUNT_OF(case_outputs) && strcmp(case_outputs[o].name, word);) {
        o++;
    }
    case_check(s, "is an output", o, o < COUNT_OF(case_outputs), 1);
    const case_writer writer = case_outputs[o].writer;
    for (case_word(at, word); word[0]; case_word(at, word)) {
        if (writer == CASE_DECISIONS || writer == CASE_RUN) {
            CASE_FAIL(s, "there are no options, not %s", word);
        } else if (!strcmp(word, "fold")) {
            case_word(at, word);
            options.fold = !strcmp(word, "kernels") ? PTOWSP_FOLD_KERNELS : PTOWSP_FOLD_LOOPS;
            case_check(s, "loops or kernels are folded", 0,
                       options.fold == PTOWSP_FOLD_KERNELS || !strcmp(word, "loops"), 1);
        } else if (!strcmp(word, "short")) {
            options.is_short = true;
        } else if (!strcmp(word, "mhz")) {
            options.clock_mhz = (uint32_t)case_number(s, at);
        } else if (!strcmp(word, "what") && writer == CASE_REPORT &&
                   what_count < COUNT_OF(what_ifs)) {
            case_word(at, word);
            what_ifs[what_count].kernel = case_kernel_id(s, word);
            what_ifs[what_count].percent = (uint32_t)case_number(s, at);
            what_ifs[what_count++].makespan_cycles = (uint64_t)case_number(s, at);
        } else {
            CASE_FAIL(s, "there is no option %s", word);
        }
    }
    case_literal(s, at, ":");
    *at = case_skip(*at);
    switch (writer) {
    case CASE_REPORT:
        return ptowsp_run_report(s->run, (ptowsp_report_format)case_outputs[o].format, &options,
                                 what_ifs, what_count, output);
    case CASE_EXPORT:
        return ptowsp_run_export(s->run, (ptowsp_export_format)case_outputs[o].format, &options,
                                 output);
    case CASE_TRANSIENTS:
        (void)case_transients(s);
        return ptowsp_run_export_transients(s->run, (ptowsp_export_format)case_outputs[o].format,
                                            &options, output);
    case CASE_DECISIONS:
        return ptowsp_run_export_decisions(s->run, (ptowsp_report_format)case_outputs[o].format,
                                           output);
    default: ptowsp_run_print(s->run, output); return PTOWSP_OK;
    }
}

// A part with \n for the ends of lines in it, and \\ for a backslash.
static inline char *case_lines(const char *part) {
    char *text = case_copy(part, strlen(part)), *out = text;
    for (; *part; part++) {
        const bool is_end = part[0] == '\\' && part[1] == 'n';
        part += is_end || (part[0] == '\\' && part[1] == '\\');
        *out++ = is_end ? '\n' : *part;
    }
    *out = '\0';
    return text;
}

// writes OUTPUT: [N times] PART / PART ...; omits OUTPUT: PART / PART ...; reports PART / PART ... and
// unreported PART / PART ...: of the report as text
static inline void case_expect_written(case_subject *s, const char *at) {
    const bool is_there = !strcmp(s->word, "writes") || !strcmp(s->word, "reports");
    const bool is_report = strstr(s->word, "report") != NULL;
    static char text[1 << 20];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    const ptowsp_output output = {text_take, &buffer};
    text[0] = '\0';
    at = is_report ? case_join("report: ", at, strlen(at)) : at;
    case_ok(s, "output", case_write(s, &at, output));
    assert_true(buffer.length < sizeof text);
    if (!*at) {
        CASE_FAIL(s, "nothing is compared");
    }
    for (const char *part; (part = case_next_part(s, &at));) {
        char *end;
        unsigned long expected = strtoul(part, &end, 10), count = 0;
        const bool is_counted = end > part && case_begins(end, " times ");
        const char *wanted = case_lines(is_counted ? end + strlen(" times ") : part);
        for (const char *found = text; (found = strstr(found, wanted)); found++) {
            count++;
        }
        case_check_count++;
        if (is_counted ? count != expected : (count > 0) != is_there) {
            CASE_FAIL(s, "\"%s\" is there %lu times in: %s", wanted, count, text);
        }
    }
}

// says PART / PART ...: parts of the text of a deadlock, or of the error; never PART / PART ...
static inline void case_expect_said(case_subject *s, const char *at) {
    const bool is_there = !strcmp(s->word, "says");
    for (const char *part; (part = case_next_part(s, &at));) {
        case_check_count++;
        const char *lines = case_lines(part);
        bool is_said = strstr(case_stuck_text(s), lines) ||
                       strstr(ptowsp_context_error(s->context).text, lines);
        if (is_said != is_there) {
            CASE_FAIL(s, "\"%s\" is %s in: %s", part, is_there ? "not" : "still",
                      case_stuck_text(s));
        }
    }
}

// unsupported TARGET TEXT: what the program has that a target does not do
static inline void case_expect_unsupported(case_subject *s, const char *at) {
    static const ptowsp_target targets[] = {PTOWSP_TARGET_CPU_SIM, PTOWSP_TARGET_THREADS,
                                            PTOWSP_TARGET_ASCEND_NPU};
    char name[64];
    size_t i = 0;
    case_word(&at, name);
    while (i < 3 && strcmp(ptowsp_target_name(targets[i]), name) != 0) {
        i++;
    }
    case_check(s, "is a target", 0, i < 3, 1);
    case_check_text(s, "status for a target",
                    ptowsp_status_name(ptowsp_program_check(s->context, s->program, targets[i])),
                    ptowsp_status_name(PTOWSP_UNSUPPORTED));
    case_check_text(s, "error for a target", ptowsp_context_error(s->context).text, case_skip(at));
}

// -- data -----------------------------------------------------------------------------------------

static inline bool case_is_near(double got, double expected, ptowsp_dtype dtype) {
    double allowed = dtype == PTOWSP_F16 ? 2e-2 : dtype == PTOWSP_F32 ? 1e-4 : 0;
    return fabs(got - expected) <= allowed * fmax(fabs(expected), 1);
}

static inline double case_element(const case_tensor *tensor, uint64_t i) {
    size_t size = ptowsp_dtype_size(tensor->desc.dtype);
    double value = 0;
    (void)ptowsp_convert(&value, PTOWSP_F64, (const char *)tensor->data + i * size,
                         tensor->desc.dtype, 1);
    return value;
}

// elements TENSOR VALUE[*COUNT] ...: of its memory, in order; those that are not listed are 0
static inline void case_expect_elements(case_subject *s, const char *at) {
    char name[64];
    case_word(&at, name);
    const case_tensor *t = case_tensor_of(s, name);
    double *expected = (double *)case_alloc((size_t)t->count * sizeof(double));
    case_values(s, t, at, expected);
    for (uint64_t i = 0; i < t->count; i++) {
        case_check_count++;
        if (case_element(t, i) != expected[i]) {
            CASE_FAIL(s, "element %llu of %s is %.9g, not %.9g", (unsigned long long)i, name,
                      case_element(t, i), expected[i]);
        }
    }
}

// untouched: no kernel was called, no data has changed, and there are no results
static inline void case_expect_untouched(case_subject *s, const char *at) {
    case_end(s, at);
    case_check(s, "calls of kernels", 0, s->call_count, 0);
    case_check(s, "tasks", 0, ptowsp_run_result(s->run)->task_count, 0);
    case_check(s, "makespan", 0, ptowsp_run_result(s->run)->makespan_cycles, 0);
    for (uint32_t t = 0; t < s->tensor_count; t++) {
        for (uint64_t i = 0; i < s->tensors[t].count; i++) {
            case_check(s, "element has changed", i,
                       case_element(&s->tensors[t], i) != s->tensors[t].before[i], 0);
        }
    }
}

// sums TENSOR SUM WEIGHTED, ...: over all elements in the order of their indices, whatever memory is
// like, and with the i-th times i % 97 + 1.
static inline void case_expect_sums(case_subject *s, const char *at) {
    char name[64];
    while (*case_skip(at)) {
        at += strspn(at, " ,");
        case_word(&at, name);
        const case_tensor *t = case_tensor_of(s, name);
        uint64_t rows = (uint64_t)t->desc.shape[t->desc.rank - 2];
        uint64_t cols = (uint64_t)t->desc.shape[t->desc.rank - 1];
        double sum = 0, weighted = 0, expected[2];
        for (uint64_t i = 0; i < t->count; i++) {
            uint64_t matrix = i / (rows * cols), row = i / cols % rows, col = i % cols;
            uint64_t place = t->is_transposed ? matrix * rows * cols + col * rows + row : i;
            double x = case_element(t, place);
            sum += x;
            weighted += x * (double)(i % 97 + 1);
        }
        for (int i = 0; i < 2; i++) {
            expected[i] = case_real(s, &at);
        }
        case_check_count++;
        if (!case_is_near(sum, expected[0], t->desc.dtype) ||
            !case_is_near(weighted, expected[1], t->desc.dtype)) {
            CASE_FAIL(s, "tensor %s sums to %.9g and %.9g, not %.9g and %.9g", name, sum, weighted,
                      expected[0], expected[1]);
        }
    }
}

// -- all of it ------------------------------------------------------------------------------------

static const struct {
    const char *word;
    void (*expect)(case_subject *s, const char *at);
    bool is_data;  // not of executions without kernels
} case_expectations[] = {
    // clang-format off
    {"makespan", case_expect_number, false},
    {"count", case_expect_number, false},
    {"busy", case_expect_number, false},
    {"lane_count", case_expect_number, false},
    {"in_flight", case_expect_number, false},
    {"overflows", case_expect_number, false},
    {"loads", case_expect_number, false},
    {"step_count", case_expect_number, false},
    {"lanes", case_expect_lanes, false},
    {"lane", case_expect_lane, false},
    {"on_lanes", case_expect_on_lanes, false},
    {"stalled", case_expect_stalled, false},
    {"idle", case_expect_idle, false},
    {"memory", case_expect_memory, false},
    {"control", case_expect_control, false},
    {"bounds", case_expect_bounds, false},
    {"lifetimes", case_expect_lifetimes, false},
    {"transients", case_expect_transients, false},
    {"block", case_expect_block, false},
    {"point", case_expect_point, false},
    {"ends", case_expect_ends, false},
    {"group", case_expect_group, false},
    {"rank_waits", case_expect_rank_waits, false},
    {"tasks", case_expect_tasks, false},
    {"task", case_expect_task, false},
    {"path", case_expect_path, false},
    {"edges_of", case_expect_edges_of, false},
    {"hash", case_expect_hash, false},
    {"pipelines", case_expect_pipelines, false},
    {"processes", case_expect_processes, false},
    {"channels", case_expect_channels, false},
    {"steps", case_expect_steps, false},
    {"all_steps", case_expect_all_steps, false},
    {"chain", case_expect_chain, false},
    {"process", case_expect_process, false},
    {"channel", case_expect_channel, false},
    {"pipeline", case_expect_pipeline, false},
    {"ring", case_expect_ring, false},
    {"state", case_expect_state, false},
    {"waits", case_expect_waits, false},
    {"cycle", case_expect_cycle, false},
    {"says", case_expect_said, false},
    {"explored", case_expect_explored, false},
    {"writes", case_expect_written, false},
    {"omits", case_expect_written, false},
    {"reports", case_expect_written, false},
    {"unreported", case_expect_written, false},
    {"never", case_expect_said, false},
    {"unsupported", case_expect_unsupported, false},
    {"calls", case_expect_calls, true},
    {"slot", case_expect_slot, true},
    {"elements", case_expect_elements, true},
    {"untouched", case_expect_untouched, true},
    {"sums", case_expect_sums, true},
    // clang-format on
};

enum { CASE_EXPECTATION_COUNT = sizeof case_expectations / sizeof case_expectations[0] };

// Whether a word is a result, and which.
static inline bool case_find_result(const char *word, size_t *out_e) {
    for (*out_e = 0; *out_e < CASE_EXPECTATION_COUNT; ++*out_e) {
        if (!strcmp(case_expectations[*out_e].word, word)) {
            return true;
        }
    }
    return false;
}

// Settings (case_form.h has them) are not results.
static inline void case_expect_item(case_subject *s, const case_item *item, bool has_data) {
    size_t e;
    if (!case_find_result(item->word, &e)) {
        return;
    }
    if (!*item->rest && case_is_greedy(item->word)) {
        CASE_FAIL(s, "nothing is compared");
    }
    if (has_data || !case_expectations[e].is_data) {
        s->word = item->word;
        case_expectations[e].expect(s, item->rest);
    }
}

// Each kernel that is a function was called for its tasks.
static inline void case_expect_called(case_subject *s, bool has_data) {
    uint64_t expected = 0;
    for (uint64_t i = 0; has_data && i < ptowsp_run_result(s->run)->task_count; i++) {
        for (uint32_t k = 0; k < s->attached_count; k++) {
            bool is_function = s->callees[k].info && !s->callees[k].info->is_tile_kernel;
            expected += is_function && !strcmp(s->callees[k].kernel, case_kernel_name(s, i));
        }
    }
    case_check(s, "wrong calls of kernels", 0, s->wrong_call_count, 0);
    case_check(s, "calls of kernels", 0, s->call_count, expected);
}

// mode NAME, no sooner than OTHER: the makespan is at least the one that the round has for the other.
static inline void case_expect_floor(case_subject *s) {
    const case_item *floor = s->mode ? case_find(&s->c->file->floors, s->mode->word) : NULL;
    for (size_t i = s->round; floor && i < s->round_end; i++) {
        const case_item *item = &s->items.items[i];
        if (!strcmp(item->word, "makespan") && item->modes &&
            case_lists(item->modes, floor->rest)) {
            const char *at = item->rest;
            uint64_t least = (uint64_t)case_number(s, &at);
            ptowsp_cycles makespan = ptowsp_run_result(s->run)->makespan_cycles;
            case_check(s, "makespan, if it is less,", 0, makespan < least ? makespan : least,
                       least);
        }
    }
}

// Everything that the round says of the execution that has just ended.
static inline void case_expect(case_subject *s, bool has_data, bool is_good) {
    if (is_good) {
        case_expect_called(s, has_data);
    }
    case_expect_floor(s);
    for (size_t i = s->round; i < s->round_end; i++) {
        case_item item;
        if (case_applies(s, &s->items.items[i]) && case_own(s, &s->items.items[i], &item)) {
            s->line = item.line;
            case_expect_item(s, &item, has_data);
        }
    }
    s->line = 0;
}

#endif
