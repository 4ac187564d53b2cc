// Schedule search: a space of schedules of one workload, each compiled and timed.
//
//      place = ((((issue * dispatches + dispatch) * orders + order) * windows + window) * lanes + lane)
//              * threads + thread
//
// A place that has been looked at has its makespan in a table, so nothing is executed twice. The walk
// along one list after another comes first, as it finds good schedules in spaces that the budget
// does not cover; where the budget covers them the ranking does not depend on the way.

#include "search.h"

#include "../base/text.h"
#include "../workload/schedule.h"

#include <inttypes.h>

// -- the space ------------------------------------------------------------------------------------

static uint32_t pwsp_search_element(const pwsp_search *search, uint32_t list, uint32_t i) {
    uint32_t element;
    PTOWSP_ASSERT(i < search->counts[list]);
    memcpy(&element, (const char *)search->lists[list] + (size_t)i * sizeof element,
           sizeof element);
    return element;
}

static bool pwsp_search_has_plans(const ptowsp_module *module) {
    for (uint32_t i = 1; i < module->axes.count; i++) {
        if (PWSP_AXIS(module, i)->kind >= PWSP_AXIS_PLAN) {
            return true;
        }
    }
    return false;
}

// Fills in the lists without elements.
static void pwsp_search_set_defaults(pwsp_search *search, const uint32_t *counts) {
    const ptowsp_schedule *base = &search->base;
    const bool has_key = base->dispatch_key.id != 0;
    ptowsp_schedule plain = *base;
    plain.dispatch = PTOWSP_DISPATCH_DEFAULT;  // which has a default for lanes
    const struct {
        pwsp_search_list list;
        uint32_t element;
        bool is_in;
    } defaults[] = {
        {PWSP_SEARCH_ISSUES, (uint32_t)base->issue, true},
        {PWSP_SEARCH_DISPATCHES, PTOWSP_DISPATCH_ROUND_ROBIN, true},
        {PWSP_SEARCH_DISPATCHES, PTOWSP_DISPATCH_WORK_STEALING, true},
        {PWSP_SEARCH_DISPATCHES, PTOWSP_DISPATCH_AFFINITY, has_key},
        {PWSP_SEARCH_DISPATCHES, PTOWSP_DISPATCH_HASH, has_key},
        {PWSP_SEARCH_DISPATCHES, PTOWSP_DISPATCH_PLAN, pwsp_search_has_plans(search->module)},
        {PWSP_SEARCH_ORDERS, PTOWSP_READY_FIFO, true},
        {PWSP_SEARCH_ORDERS, PTOWSP_READY_WORK_STEALING, true},
        {PWSP_SEARCH_ORDERS, PTOWSP_READY_PRIORITY, base->priority_key.id != 0},
        {PWSP_SEARCH_WINDOWS, base->window, true},
        {PWSP_SEARCH_LANES, pwsp_schedule_resolve(&plain).lane_count, true},
        {PWSP_SEARCH_THREADS, base->control.threads, true},
    };
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++) {
        const pwsp_search_list list = defaults[i].list;
        if (defaults[i].is_in && counts[list] == 0) {
            PTOWSP_ASSERT(search->counts[list] < PWSP_SEARCH_DEFAULT_MAX);
            search->defaults[list][search->counts[list]++] = defaults[i].element;
        }
    }
}

// Checks the description and counts the space.
static ptowsp_status pwsp_search_begin(pwsp_search *search, uint32_t capacity) {
    static const char names[PWSP_SEARCH_LISTS][16] = {"issues",  "dispatches",  "orders",
                                                      "windows", "lane_counts", "thread_counts"};
    const ptowsp_search_desc *desc = search->desc;
    const void *lists[PWSP_SEARCH_LISTS] = {desc->issues,  desc->dispatches,  desc->orders,
                                            desc->windows, desc->lane_counts, desc->thread_counts};
    const uint32_t counts[PWSP_SEARCH_LISTS] = {desc->issue_count,      desc->dispatch_count,
                                                desc->order_count,      desc->window_count,
                                                desc->lane_count_count, desc->thread_count_count};
    if (!search->results || capacity == 0) {
        return PWSP_REFUSE(search->context, "search: no results are asked for");
    }
    if (desc->base.pools != PTOWSP_POOLS_ONE && desc->lane_count_count) {
        return PWSP_REFUSE(search->context, "search: lane_counts are of one pool, but pools are %s",
                           pwsp_schedule_word("pools", (uint32_t)desc->base.pools));
    }
    if (desc->base.control.by != PTOWSP_CONTROL_AICPU && desc->thread_count_count) {
        return pwsp_fail(search->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "search: thread_counts are of AICPUs, but control is %s",
                         pwsp_schedule_word("control", (uint32_t)desc->base.control.by));
    }
    memcpy(search->counts, counts, sizeof counts);
    pwsp_search_set_defaults(search, counts);
    search->summary.space_count = 1;
    for (uint32_t i = 0; i < PWSP_SEARCH_LISTS; i++) {
        search->lists[i] = counts[i] ? lists[i] : search->defaults[i];
        if (!search->lists[i]) {
            return PWSP_REFUSE(search->context, "search: %s is NULL, but has %u elements", names[i],
                               counts[i]);
        }
        search->summary.space_count *= search->counts[i];
        if (search->summary.space_count > PTOWSP_SEARCH_SPACE_MAX) {
            search->summary.space_count = 0;
            return pwsp_fail(search->context, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                             "search: a space of more than %d schedules", PTOWSP_SEARCH_SPACE_MAX);
        }
    }
    return PTOWSP_OK;
}

static uint64_t pwsp_search_place(const pwsp_search *search, const uint32_t *at) {
    uint64_t place = 0;
    for (uint32_t i = 0; i < PWSP_SEARCH_LISTS; i++) {
        place = place * search->counts[i] + at[i];
    }
    return place;
}

PWSP_INTERNAL ptowsp_schedule pwsp_search_schedule(const pwsp_search *search, uint64_t place) {
    ptowsp_schedule schedule = search->base;
    const ptowsp_expr none = {NULL, 0};
    uint32_t at[PWSP_SEARCH_LISTS];
    for (uint32_t i = PWSP_SEARCH_LISTS; i-- > 0;) {
        at[i] = pwsp_search_element(search, i, (uint32_t)(place % search->counts[i]));
        place /= search->counts[i];
    }
    schedule.issue = (ptowsp_issue)at[PWSP_SEARCH_ISSUES];
    schedule.dispatch = (ptowsp_dispatch)at[PWSP_SEARCH_DISPATCHES];
    schedule.ready = (ptowsp_ready)at[PWSP_SEARCH_ORDERS];
    schedule.window = at[PWSP_SEARCH_WINDOWS];
    schedule.window_policy = schedule.window ? schedule.window_policy : PTOWSP_WINDOW_DEFAULT;
    schedule.lane_count = at[PWSP_SEARCH_LANES];
    schedule.control.threads = at[PWSP_SEARCH_THREADS];
    schedule.dispatch_key = pwsp_dispatch_has_key(schedule.dispatch) ? schedule.dispatch_key : none;
    schedule.priority_key = schedule.ready == PTOWSP_READY_PRIORITY ? schedule.priority_key : none;
    return schedule;
}

// -- the way through the space --------------------------------------------------------------------

// Is the schedule at one place better than that at another? Both were looked at.
static bool pwsp_search_is_better(const pwsp_search *search, uint64_t a, uint64_t b) {
    if (search->makespans[a] != search->makespans[b]) {
        return search->makespans[a] < search->makespans[b];
    }
    ptowsp_schedule first = pwsp_search_schedule(search, a);
    ptowsp_schedule second = pwsp_search_schedule(search, b);
    uint32_t lanes = pwsp_schedule_lanes(&first), others = pwsp_schedule_lanes(&second);
    return lanes != others ? lanes < others : a < b;
}

// One round: the best element of each list in turn. Each step is an improvement, so rounds end.
static ptowsp_status pwsp_search_round(pwsp_search *search, uint32_t *at, bool *out_has_moved) {
    *out_has_moved = false;
    for (uint32_t list = 0; list < PWSP_SEARCH_LISTS; list++) {
        uint32_t here[PWSP_SEARCH_LISTS];
        uint64_t step = 1;
        for (uint32_t i = list + 1; i < PWSP_SEARCH_LISTS; i++) {
            step *= search->counts[i];
        }
        memcpy(here, at, sizeof here);
        here[list] = 0;
        const uint64_t first = pwsp_search_place(search, here);
        ptowsp_status status = pwsp_search_look_at(search, first, step, search->counts[list]);
        if (status != PTOWSP_OK) {
            return status;
        }
        for (uint32_t i = 0; i < search->counts[list]; i++) {
            const uint64_t place = first + i * step;
            if (search->makespans[place] != PWSP_SEARCH_UNSEEN &&
                pwsp_search_is_better(search, place, pwsp_search_place(search, at))) {
                at[list] = i;
                *out_has_moved = true;
            }
        }
    }
    return PTOWSP_OK;
}

static ptowsp_status pwsp_search_fail_cut(const pwsp_search *search) {
    const ptowsp_status status = pwsp_halt_status(&search->context->search);
    return pwsp_fail(search->context, status, PTOWSP_NO_INDEX,
                     "search: %s; %" PRIu64 " of %" PRIu64 " schedules executed",
                     status == PTOWSP_TIMED_OUT ? "its time limit is over" : "cancelled",
                     search->summary.evaluation_count, search->summary.space_count);
}

static ptowsp_status pwsp_search_walk(pwsp_search *search) {
    uint32_t at[PWSP_SEARCH_LISTS] = {0};
    bool has_moved = true;
    ptowsp_status status = pwsp_search_look_at(search, 0, 1, 1);
    while (status == PTOWSP_OK && has_moved) {
        status = pwsp_search_round(search, at, &has_moved);
    }
    if (status == PTOWSP_OK) {
        status = pwsp_search_look_at(search, 0, 1, search->summary.space_count);
    }
    search->summary.is_cut = status != PTOWSP_OK && pwsp_search_is_cut(search);
    search->summary.is_complete =
        !search->summary.is_cut && search->seen_count == search->summary.space_count;
    return search->summary.is_cut ? pwsp_search_fail_cut(search) : status;
}

// The chain is the same for all schedules: dependencies are.
static void pwsp_search_set_paths(pwsp_search *search) {
    for (uint32_t i = 0; search->has_path && i < search->summary.result_count; i++) {
        ptowsp_run_bounds *bounds = &search->results[i].bounds;
        if (search->results[i].status == PTOWSP_OK) {
            bounds->has_path = true;
            bounds->path_cycles = search->path_cycles;
            bounds->largest_cycles = pwsp_max_u64(bounds->largest_cycles, search->path_cycles);
        }
    }
}

ptowsp_status ptowsp_schedule_search(ptowsp_context *context, ptowsp_module *module,
                                     const ptowsp_search_desc *desc, ptowsp_search_result *results,
                                     uint32_t capacity, ptowsp_search_summary *out_summary) {
    PTOWSP_ASSERT(context);
    if (!module || !desc || !out_summary) {
        return pwsp_fail_null(context, !module ? "search: module"
                                       : !desc ? "search: desc"
                                               : "search: out_summary");
    }
    PWSP_ZERO(pwsp_search, search);
    memset(out_summary, 0, sizeof *out_summary);
    search.context = context;
    search.module = module;
    search.desc = desc;
    search.base = desc->base;
    if (search.base.dependencies == 0) {
        search.base.dependencies = PTOWSP_DEPENDENCIES_HYBRID;
    }
    search.budget = desc->evaluation_max ? desc->evaluation_max : PTOWSP_SEARCH_EVALUATION_DEFAULT;
    search.results = results;
    search.capacity = capacity;
    ptowsp_status status = pwsp_search_begin(&search, capacity);
    if (status != PTOWSP_OK) {
        return status;
    }
    const uint64_t space = search.summary.space_count;
    if (PWSP_ALLOC(&context->memory, search.makespans, space) &&
        pwsp_search_lanes_make(&search, desc->at_once)) {
        memset(search.makespans, 0xff, (size_t)space * sizeof(uint64_t));  // unseen
        pwsp_halt_begin(&context->search, desc->time_limit_ns);
        status = pwsp_search_walk(&search);
    } else {
        status = PWSP_NO_MEMORY(context, "search: out of memory");
    }
    pwsp_search_lanes_free(&search);
    PWSP_FREE(&context->memory, search.makespans, space);
    pwsp_search_set_paths(&search);
    *out_summary = search.summary;
    if (status == PTOWSP_OK &&
        (search.summary.result_count == 0 || search.results[0].status != PTOWSP_OK)) {
        PTOWSP_ASSERT(search.first_status != PTOWSP_OK);
        status =
            pwsp_fail(context, search.first_status, search.first_index, "%s", search.first_text);
    }
    return status;
}

void ptowsp_schedule_search_cancel(ptowsp_context *context) {
    PTOWSP_ASSERT(context);
    pwsp_halt_cancel(&context->search);
}

// -- text -----------------------------------------------------------------------------------------

static void pwsp_search_print_idle(const ptowsp_search_result *result, ptowsp_output text) {
    uint64_t idle = 0;
    double all = (double)result->makespan_cycles * result->lane_count;
    for (uint32_t i = 0; i < PTOWSP_STALL_COUNT; i++) {
        idle = pwsp_sum_u64(idle, result->idle_cycles[i]);
    }
    pwsp_text_format(text, "  %5s %%",
                     pwsp_fixed(all > 0.0 ? 100.0 * (double)idle / all : 0.0, 1).text);
}

static void pwsp_search_print_reasons(const ptowsp_search_result *result, ptowsp_output text) {
    double all = (double)result->makespan_cycles * result->lane_count;
    const char *before = "; idle:";
    for (uint32_t i = 0; i < PTOWSP_STALL_COUNT; i++) {
        if (result->idle_cycles[i]) {
            pwsp_text_format(text, "%s %s %s %%", before,
                             i ? ptowsp_stall_name((ptowsp_stall)i) : "nothing left",
                             pwsp_fixed(100.0 * (double)result->idle_cycles[i] / all, 1).text);
            before = ",";
        }
    }
}

static void pwsp_search_print_schedule(const ptowsp_schedule *s, ptowsp_output text) {
    pwsp_text_format(text, "  %s, %s, %s, ", pwsp_schedule_word("issue", (uint32_t)s->issue),
                     pwsp_schedule_word("dispatch", (uint32_t)s->dispatch),
                     pwsp_schedule_word("ready", (uint32_t)s->ready));
    if (s->window) {
        pwsp_text_format(text, "window %u, ", s->window);
    }
    pwsp_text_format(text, "%u lane%s", pwsp_schedule_lanes(s),
                     pwsp_schedule_lanes(s) == 1 ? "" : "s");
    if (s->control.threads) {
        pwsp_text_format(text, ", %u AICPU thread%s", s->control.threads,
                         s->control.threads == 1 ? "" : "s");
    }
}

void ptowsp_search_print(const ptowsp_search_result *results, const ptowsp_search_summary *summary,
                         ptowsp_output output) {
    if (!summary || (!results && summary->result_count > 0)) {
        return;
    }
    pwsp_text_format(output,
                     "%" PRIu64 " of %" PRIu64 " schedules executed, %" PRIu64 " refused%s\n",
                     summary->evaluation_count, summary->space_count, summary->refused_count,
                     summary->is_complete ? ""
                     : summary->is_cut    ? "; ended early"
                                          : "; the budget is spent");
    pwsp_text_format(output, "%14s  %7s  %7s  %s\n", "makespan", "/ bound", "idle",
                     "issue, dispatch, order, window, lanes; idle by reason");
    for (uint32_t i = 0; i < summary->result_count; i++) {
        const ptowsp_search_result *result = &results[i];
        if (result->status != PTOWSP_OK) {
            pwsp_text_format(output, "%14s  %7s  %7s", ptowsp_status_name(result->status), "", "");
            pwsp_search_print_schedule(&result->schedule, output);
        } else {
            double bound = (double)result->bounds.largest_cycles;
            double makespan = (double)result->makespan_cycles;
            pwsp_text_format(output, "%14" PRIu64 "  %7s", result->makespan_cycles,
                             pwsp_fixed(bound > 0.0 ? makespan / bound : 1.0, 3).text);
            pwsp_search_print_idle(result, output);
            pwsp_search_print_schedule(&result->schedule, output);
            pwsp_search_print_reasons(result, output);
        }
        pwsp_text_format(output, "\n");
    }
}
