// Edges of random programs, compared with lists made by brute force from the slow reference: all
// pairs of tasks, cell by cell.

#include "workload_sample.h"

enum { PROGRAMS = 150 };

typedef struct found {
    unsigned char structure, after, stream;  // how many edges
    unsigned char tiles, hazards;            // tensor: how many, and their hazards or'ed
} found;

typedef struct matrix {
    found pairs[REF_TASK_MAX][REF_TASK_MAX];  // [to][from]
    uint64_t last_to;
    unsigned long long count;
} matrix;

static bool collect(void *user, const ptowsp_edge *edge) {
    matrix *m = (matrix *)user;
    assert_true(edge->from < REF_TASK_MAX && edge->to < REF_TASK_MAX && edge->to >= m->last_to);
    m->last_to = edge->to;
    if (edge->reason > PTOWSP_EDGE_STREAM) {
        return true;  // what held it up, which records say
    }
    assert_true(edge->from < edge->to);
    found *pair = &m->pairs[edge->to][edge->from];
    switch (edge->reason) {
    case PTOWSP_EDGE_STRUCTURE: pair->structure++; break;
    case PTOWSP_EDGE_EXPLICIT: pair->after++; break;
    case PTOWSP_EDGE_STREAM: pair->stream++; break;
    case PTOWSP_EDGE_TENSOR:
        pair->tiles++;
        pair->hazards |= (unsigned char)edge->hazards;
        assert_true(edge->hazards && edge->earlier.rows && edge->later.rows);
        break;
    default: fail();
    }
    m->count++;
    return true;
}

// A pair is next to each other in the tree's order: no task is between them.
static bool is_next(const sample *s, int from, int to) {
    bool is_good = ref_is_ordered(&s->x, from, to);
    for (int k = from + 1; k < to && is_good; k++) {
        is_good = !(ref_is_ordered(&s->x, from, k) && ref_is_ordered(&s->x, k, to));
    }
    return is_good;
}

static bool is_next_in_stream(const sample *s, int from, int to) {
    uint64_t count = s->schedule.schedule.stream_count;
    uint64_t stream = s->x.tasks[to].stream_key % count;
    for (int k = to - 1; k >= from; k--) {
        if (s->x.tasks[k].stream_key % count == stream) {
            return k == from;
        }
    }
    return false;
}

static void expect_data(const sample *s, const ptowsp_schedule *schedule, int from, int to,
                        found *out) {
    const ref_expansion *x = &s->x;
    const ref_task *a = &x->tasks[from], *b = &x->tasks[to];
    const uint32_t all = PTOWSP_HAZARD_RAW | PTOWSP_HAZARD_WAR | PTOWSP_HAZARD_WAW;
    uint32_t counted = schedule->hazards ? schedule->hazards : all;
    bool by_overlap = (schedule->dependencies & PTOWSP_DEPENDENCIES_OVERLAP) != 0;
    for (int i = a->first_access; i < a->first_access + a->access_count; i++) {
        for (int k = b->first_access; k < b->first_access + b->access_count; k++) {
            const ref_access *old = &x->accesses[i], *now = &x->accesses[k];
            bool is_last = old->hidden_by[by_overlap] >= to;
            uint32_t met = 0;
            met |= old->is_write && now->is_read && is_last ? PTOWSP_HAZARD_RAW : 0u;
            met |= old->is_read && now->is_write ? PTOWSP_HAZARD_WAR : 0u;
            met |= old->is_write && now->is_write ? PTOWSP_HAZARD_WAW : 0u;
            met &= counted;
            met = counted == all && !is_last ? 0 : met;
            if (met && (by_overlap ? ref_common_cells(old, now) > 0 : ref_is_exact(old, now))) {
                out->tiles++;
                out->hazards |= (unsigned char)met;
            }
        }
    }
}

static found expected_of(const sample *s, const ptowsp_schedule *schedule, int from, int to) {
    uint32_t kinds = schedule->dependencies;
    found out = {.structure = (kinds & PTOWSP_DEPENDENCIES_STRUCTURE) && is_next(s, from, to)};
    out.after =
        (kinds & PTOWSP_DEPENDENCIES_EXPLICIT) && ref_is_after(&s->program, &s->x, from, to);
    out.stream = s->schedule.stream_key != 0 && is_next_in_stream(s, from, to);
    if (kinds & (PTOWSP_DEPENDENCIES_EXACT | PTOWSP_DEPENDENCIES_OVERLAP)) {
        expect_data(s, schedule, from, to, &out);
    }
    return out;
}

static unsigned long long check_edges(sample *s, const ptowsp_run *run) {
    matrix *m = (matrix *)calloc(1, sizeof *m);
    assert_non_null(m);
    assert_true(ptowsp_run_edges(run, PTOWSP_NO_INDEX, collect, m));
    ptowsp_schedule schedule = s->schedule.schedule;
    if (schedule.dependencies == 0) {
        schedule.dependencies = schedule.issue == PTOWSP_ISSUE_IN_ORDER
                                    ? PTOWSP_DEPENDENCIES_STRUCTURE
                                    : PTOWSP_DEPENDENCIES_HYBRID;
    }
    ref_find_hidden(&s->x);
    for (int to = 0; to < s->x.task_count; to++) {
        for (int from = 0; from < to; from++) {
            const found *got = &m->pairs[to][from];
            found expected = expected_of(s, &schedule, from, to);
            if (memcmp(got, &expected, sizeof expected) != 0) {
                print_message("from %d: structure %d, after %d, stream %d, tiles %d (%x); expected "
                              "%d, %d, %d, %d (%x)\n",
                              from, got->structure, got->after, got->stream, got->tiles,
                              got->hazards, expected.structure, expected.after, expected.stream,
                              expected.tiles, expected.hazards);
                complain(s, run, to, "an edge differs");
            }
        }
    }
    unsigned long long count = m->count;
    free(m);
    return count;
}

// The longest chain by all pairs; it and the work of a pool are never above the makespan.
static void check_bounds(sample *s, const ptowsp_run *run) {
    uint64_t ends[REF_TASK_MAX], longest = 0;
    ptowsp_run_bounds bounds;
    for (int to = 0; to < s->x.task_count; to++) {
        ends[to] = 0;
        for (int from = 0; from < to; from++) {
            if (s->expected.waits[to][from]) {
                ends[to] = ends[from] > ends[to] ? ends[from] : ends[to];
            }
        }
        ends[to] += s->x.tasks[to].cycles;
        longest = ends[to] > longest ? ends[to] : longest;
    }
    assert_ok(ptowsp_run_find_bounds(run, &bounds));
    if (bounds.path_cycles != longest || longest > bounds.makespan_cycles ||
        bounds.work_cycles[0] > bounds.makespan_cycles ||
        bounds.work_cycles[1] > bounds.makespan_cycles) {
        print_message("%d, not %d\n", (int)bounds.path_cycles, (int)longest);
        complain(s, run, -1, "a lower bound is wrong");
    }
}

TEST(edges_random__are_those_of_all_pairs) {
    uint64_t seed = test_seed();
    unsigned long long count = 0;
    for (unsigned i = 0; TEST_ROUNDS(i, PROGRAMS); i++) {
        sample *s = sample_make(seed, i);
        for (unsigned k = 0; k < 4; k++) {
            ptowsp_program *program = NULL;
            ptowsp_run *run = NULL;
            sample_schedule(s, k);
            sample_expect(s);
            if (sample_compile(s, &s->module, &program) == PTOWSP_OK) {
                const ptowsp_record_options record = {PTOWSP_RECORD_EDGES, 0, 0, 0, false};
                assert_ok(ptowsp_run_create(s->context, program, &run));
                assert_ok(ptowsp_run_record(run, &record));
                ref_bind(run, &s->program, &s->bindings, &s->memory, true);
                if (sample_execute(s, run, PTOWSP_RUN_EXECUTE, false) == PTOWSP_OK) {
                    count += check_edges(s, run);
                    check_bounds(s, run);
                }
            }
            ptowsp_run_destroy(run);
            ptowsp_program_destroy(program);
        }
        sample_free(s);
    }
    print_message("%llu edges\n", count);
    assert_met(count > 1000);
}
