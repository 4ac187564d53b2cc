// Cases whose program is that of several ranks: `ranks N` simulates as many runs of it together, each
// with its number in the symbol `rank`, over `links`; `alone` has the time of all found by one of them.

#ifndef CASE_RANKS_H
#define CASE_RANKS_H

#include "case_expect.h"

typedef struct case_group {
    ptowsp_run_group group;
    ptowsp_run **runs;
    ptowsp_run_stats *stats;
    bool is_together, is_alone;
    uint32_t first, end;  // of those that are executed alone
} case_group;

// SHARING LATENCY_PS BYTES_PER_US
static inline ptowsp_link case_link(const case_subject *s, const char **at) {
    static const char *const names[] = {"port", "node", "pair"};
    static const ptowsp_link_sharing sharings[] = {PTOWSP_LINK_PORT, PTOWSP_LINK_NODE,
                                                   PTOWSP_LINK_PAIR};
    char name[64];
    int i = 0;
    case_word(at, name);
    while (i < 3 && strcmp(names[i], name) != 0) {
        i++;
    }
    case_check(s, "is a way of sharing links", 0, i < 3, 1);
    ptowsp_link link = {.sharing = sharings[i]};
    link.latency_ps = (uint64_t)case_number(s, at);
    link.bytes_per_us = (uint64_t)case_number(s, at);
    return link;
}

// links inside LINK | links between LINK of nodes of N | links axis N LINK | links cap N | links reduce N
static inline void case_links_item(const case_subject *s, ptowsp_links *links, const char *at) {
    char level[64];
    case_word(&at, level);
    if (!strcmp(level, "inside")) {
        links->inside = case_link(s, &at);
    } else if (!strcmp(level, "between")) {
        links->between = case_link(s, &at);
        case_literal(s, &at, "of nodes of ");
        links->node_size = (uint32_t)case_number(s, &at);
    } else if (!strcmp(level, "axis")) {
        const uint32_t i = links->axis_count++;
        links->axis_sizes[i] = (uint32_t)case_number(s, &at);
        links->axes[i] = case_link(s, &at);
    } else if (!strcmp(level, "cap")) {
        links->rank_bytes_per_us = (uint64_t)case_number(s, &at);
    } else if (!strcmp(level, "reduce")) {
        links->reduce_bytes_per_us = (uint64_t)case_number(s, &at);
    } else {
        CASE_FAIL(s, "there are no links %s", level);
    }
    case_end(s, at);
}

// ranks N[, CYCLES cycles a us]; alone I, or each, or too (beside all together)
static inline void case_group_read(case_subject *s, case_group *g) {
    const case_item *alone = case_find(&s->items, "alone");
    const char *at = case_find(&s->items, "ranks")->rest;
    memset(g, 0, sizeof *g);
    g->group.rank_count = g->end = s->rank_count = (uint32_t)case_number(s, &at);
    g->group.cycles_per_us = 1000;
    if (*at) {
        g->group.cycles_per_us = (uint64_t)case_number(s, &at);
        case_literal(s, &at, "cycles a us");
        case_end(s, at);
    }
    g->is_alone = alone != NULL;
    g->is_together = !alone || !strcmp(alone->rest, "too");
    if (alone && case_is_number(alone->rest)) {
        at = alone->rest;
        g->first = (uint32_t)case_number(s, &at);
        g->end = g->first + 1;
        case_end(s, at);
    } else if (!g->is_together) {
        case_check_text(s, "who is alone", alone->rest, "each");
    }
    if (g->first >= s->rank_count) {
        CASE_FAIL(s, "there is no rank %u", g->first);
    }
    for (size_t i = 0; i < s->items.count; i++) {
        if (!strcmp(s->items.items[i].word, "links") && case_applies(s, &s->items.items[i])) {
            case_links_item(s, &g->group.links, s->items.items[i].rest);
        }
    }
}

static inline void case_group_begin(case_subject *s, case_group *g) {
    case_group_read(s, g);
    g->runs = (ptowsp_run **)case_alloc(s->rank_count * sizeof *g->runs);
    g->stats = (ptowsp_run_stats *)case_alloc(s->rank_count * sizeof *g->stats);
    g->group.runs = g->runs;
    for (uint32_t i = g->first; i < g->end; i++) {
        case_ok(s, "run", ptowsp_run_create(s->context, s->program, &g->runs[i]));
        (void)ptowsp_run_bind_symbol(g->runs[i], "rank", i);  // if it is one of the program
    }
}

static inline void case_group_end(case_subject *s, case_group *g) {
    for (uint32_t i = g->first; i < g->end; i++) {
        ptowsp_run_destroy(g->runs[i]);
    }
    s->run = NULL;
    s->rank = s->rank_count = 0;
}

static inline void case_group_bind(case_subject *s, const case_group *g) {
    for (s->rank = g->first; s->rank < g->end; s->rank++) {
        s->run = g->runs[s->rank];
        case_bind(s, false);
    }
}

// What a run that has ended gives, or how it has failed.
static inline void case_rank_ended(case_subject *s, ptowsp_status status) {
    const case_item *fails = case_said(s, "fails");
    if (fails) {
        case_check_error(s, fails, status);
    } else {
        case_ok(s, "execute", status);
        case_expect(s, false, false);
    }
}

static inline ptowsp_run_stats case_stats_of(const ptowsp_run *run) {
    ptowsp_run_stats stats = *ptowsp_run_result(run);
    stats.memory_bytes = 0;
    return stats;
}

// All together, with records and without: the same results. After a failure there are none.
static inline void case_group_simulate(case_subject *s, case_group *g) {
    ptowsp_run_group_result result, again;
    ptowsp_run_options options = {.record_tasks = true};
    const ptowsp_output none = {NULL, NULL};
    ptowsp_status status = ptowsp_run_group_simulate(s->context, &g->group, &options, &result);
    s->together = &result;
    if (status != PTOWSP_OK) {
        s->rank = 0;
        case_rank_ended(s, status);
        case_check(
            s, "status of an export", 0,
            (uint64_t)ptowsp_run_group_export(s->context, &g->group, PTOWSP_EXPORT_CSV, NULL, none),
            (uint64_t)PTOWSP_INVALID_PARAMS);
        case_check_text(s, "export", ptowsp_context_error(s->context).text,
                        "export: rank 0 has no run that has recorded tasks");
    }
    for (s->rank = 0; status == PTOWSP_OK && s->rank < s->rank_count; s->rank++) {
        s->run = g->runs[s->rank];
        g->stats[s->rank] = case_stats_of(s->run);
        case_rank_ended(s, status);
    }
    options.record_tasks = false;
    case_check(s, "status without records", 0,
               (uint64_t)ptowsp_run_group_simulate(s->context, &g->group, &options, &again),
               (uint64_t)status);
    for (uint32_t i = 0; status == PTOWSP_OK && i < s->rank_count; i++) {
        const ptowsp_run_stats stats = case_stats_of(g->runs[i]);
        assert_memory_equal(&stats, &g->stats[i], sizeof stats);
        case_check(s, "wait for all ranks", i, again.wait_cycles, result.wait_cycles);
    }
    s->together = NULL;
}

static inline void case_group_alone(case_subject *s, case_group *g) {
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY, .record_tasks = true};
    const ptowsp_record_options records = {.level = PTOWSP_RECORD_EDGES};
    for (s->rank = g->first; s->rank < g->end; s->rank++) {
        const ptowsp_run_ranks ranks = {.rank = s->rank,
                                        .rank_count = s->rank_count,
                                        .links = g->group.links,
                                        .cycles_per_us = g->group.cycles_per_us};
        s->run = g->runs[s->rank];
        case_ok(s, "ranks", ptowsp_run_bind_ranks(s->run, &ranks));
        if (case_said(s, "records")) {
            case_ok(s, "records", ptowsp_run_record(s->run, &records));
        }
        case_rank_ended(s, ptowsp_run_execute(s->run, &options));
    }
}

#endif
