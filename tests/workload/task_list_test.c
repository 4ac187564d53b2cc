// Lists of tasks: against the same tasks as a tree of statements, which has to give the same records
// under every schedule; against a slow model of time; and by hand.

#include "random_schedule.h"

enum { ENTRIES = 24, EDGES = 8, SCOPES = 6, SIDE = 8 };

typedef struct entry {
    int kernel;  // of kernel_names; 0: a join
    int64_t cycles, key;
    int row, col, rows, cols;  // of its tile
    int edge_count;
    uint32_t edges[EDGES];
} entry;

typedef struct recipe {
    entry entries[ENTRIES];
    ptowsp_list_scope scopes[SCOPES];
    uint32_t count, scope_count;
} recipe;

enum { JOIN, WORK, CUBE, MIX, READS, WRITES, UPDATES, KERNELS };
static const char *const kernel_names[] = {"", "work", "cube", "mix", "reads", "writes", "updates"};

// A module with the kernels, whose ids are those above, and a matrix x.
typedef struct world {
    ptowsp_context *context;
    ptowsp_module *m;
} world;

static const ptowsp_tensor x = {1};

static ptowsp_status world_parse(world *w) {
#define COSTLY ", cycles by a cost function, time only\n"
    static const char text[] =
        "module m\ntensor x i32 [8, 8] global\nkernel work(axes 2) vector" COSTLY
        "kernel cube(axes 2) cube" COSTLY "kernel mix(axes 2) mix" COSTLY
        "kernel reads(axes 2, in tile i32 ? x ?) vector" COSTLY
        "kernel writes(axes 2, out tile i32 ? x ?) vector" COSTLY
        "kernel updates(axes 2, inout tile i32 ? x ?) vector" COSTLY;
    ptowsp_parse_kernel kernels[KERNELS];
    for (int i = WORK; i < KERNELS; i++) {
        kernels[i] = (ptowsp_parse_kernel){.name = kernel_names[i], .cost = test_first_arg};
    }
    const ptowsp_parse_desc attached = {&kernels[WORK], KERNELS - WORK, 0};
    return ptowsp_module_parse(w->context, text, sizeof text - 1, &attached, &w->m, NULL);
}

static void world_make(world *w) {
    w->context = test_context(NULL);
    test_ok(w->context, world_parse(w));
}

static void world_free(world *w) {
    test_destroy(NULL, NULL, w->m, w->context);
}

// -- the two forms --------------------------------------------------------------------------------

typedef struct arrays {
    ptowsp_kernel kernels[ENTRIES];
    ptowsp_cycles cycles[ENTRIES];
    int64_t axes[2 * ENTRIES];
    ptowsp_list_view views[ENTRIES];
    uint64_t begins[ENTRIES + 1];
    uint32_t edges[ENTRIES * EDGES];
    ptowsp_task_list list;
} arrays;

static void make_list(const recipe *r, arrays *a) {
    memset(a, 0, sizeof *a);
    for (uint32_t i = 0; i < r->count; i++) {
        const entry *e = &r->entries[i];
        a->kernels[i].id = (uint32_t)e->kernel;
        a->cycles[i] = (ptowsp_cycles)e->cycles;
        a->begins[i] = a->list.edge_count;
        for (int k = 0; k < e->edge_count; k++) {
            a->edges[a->list.edge_count++] = e->edges[k];
        }
        if (e->kernel != JOIN) {
            a->axes[a->list.axis_count++] = e->cycles;
            a->axes[a->list.axis_count++] = e->key;
        }
        if (e->kernel >= READS) {
            const ptowsp_list_view view = {x, (uint32_t)e->rows, (uint32_t)e->cols, e->row, e->col,
                                           0};
            a->views[a->list.view_count++] = view;
        }
    }
    a->begins[r->count] = a->list.edge_count;
    a->list.task_count = r->count;
    a->list.kernels = a->kernels;
    a->list.cycles = a->cycles;
    a->list.axes = a->axes;
    a->list.views = a->views;
    a->list.edge_begins = a->begins;
    a->list.edges = a->edges;
    a->list.scopes = r->scopes;
    a->list.scope_count = r->scope_count;
}

static void list_alone(ptowsp_module *m, const ptowsp_task_list *list) {
    PTOWSP_WORKLOAD(m, "all") {
        ptowsp_task_list_make(m, list);
    }
}

// The tasks that an entry stands for: itself, or those before a join.
static void add_tasks(const recipe *r, uint32_t i, bool *is_in) {
    if (r->entries[i].kernel != JOIN) {
        is_in[i] = true;
        return;
    }
    for (int k = 0; k < r->entries[i].edge_count; k++) {
        add_tasks(r, r->entries[i].edges[k], is_in);
    }
}

static uint32_t before(const recipe *r, uint32_t i, bool *is_in) {
    uint32_t count = 0;
    memset(is_in, 0, ENTRIES * sizeof *is_in);
    for (int k = 0; k < r->entries[i].edge_count; k++) {
        add_tasks(r, r->entries[i].edges[k], is_in);
    }
    for (uint32_t k = 0; k < ENTRIES; k++) {
        count += is_in[k];
    }
    return count;
}

static void make_tree(const world *w, const recipe *r) {
    ptowsp_node nodes[ENTRIES];
    uint32_t ends[SCOPES], depth = 0, scope = 0;
    ptowsp_module *m = w->m;
    ptowsp_workload_begin(m, "all");
    ptowsp_combine_begin(m);
    for (uint32_t i = 0; i < r->count; i++) {
        for (; scope < r->scope_count && r->scopes[scope].first == i; scope++) {
            (r->scopes[scope].is_parallel ? ptowsp_combine_begin : ptowsp_sequence_begin)(m);
            ends[depth++] = i + r->scopes[scope].count;
        }
        const entry *e = &r->entries[i];
        if (e->kernel != JOIN) {
            bool is_in[ENTRIES];
            ptowsp_task_desc task = {.kernel = {(uint32_t)e->kernel},
                                     .axes[0] = ptowsp_i64(m, e->cycles)};
            task.axes[1] = ptowsp_i64(m, e->key);
            if (e->kernel >= READS) {
                task.views[0].tensor = x;
                task.views[0].row = ptowsp_i64(m, e->row);
                task.views[0].col = ptowsp_i64(m, e->col);
                task.views[0].rows = e->rows;
                task.views[0].cols = e->cols;
            }
            before(r, i, is_in);
            for (uint32_t k = 0, n = 0; k < ENTRIES; k++) {
                if (is_in[k]) {
                    task.after[n++] = nodes[k];
                }
            }
            nodes[i] = ptowsp_task_make(m, &task);
        }
        while (depth && ends[depth - 1] == i + 1) {
            ptowsp_scope_end(m);
            depth--;
        }
    }
    ptowsp_scope_end(m);
    ptowsp_scope_end(m);
}

// -- random recipes and schedules -----------------------------------------------------------------

static bool random_entry(uint64_t *seed, recipe *r, uint32_t i, bool has_mix) {
    bool is_in[ENTRIES];
    entry *e = &r->entries[i];
    memset(e, 0, sizeof *e);
    do {
        e->kernel = (int)test_random_in(seed, JOIN, UPDATES);
    } while (e->kernel == MIX && !has_mix);
    e->cycles = test_random_in(seed, 0, 9);
    e->key = test_random_in(seed, -3, 9);
    e->row = (int)test_random_in(seed, 0, SIDE - 1);
    e->col = (int)test_random_in(seed, 0, SIDE - 1);
    e->rows = (int)test_random_in(seed, 1, SIDE - e->row);
    e->cols = (int)test_random_in(seed, 1, SIDE - e->col);
    const int64_t density = test_random_in(seed, 2, 12);
    for (uint32_t k = 0; k < i && e->edge_count < 4; k++) {  // in order, as ties go to the first
        if (test_random_in(seed, 0, density) == 0) {
            e->edges[e->edge_count++] = k;
        }
    }
    return before(r, i, is_in) <= PTOWSP_TASK_AFTER_MAX;
}

static void random_scopes(uint64_t *seed, recipe *r, uint32_t first, uint32_t end) {
    while (first < end && r->scope_count < SCOPES) {
        first = (uint32_t)test_random_in(seed, first, end);
        const uint32_t last = (uint32_t)test_random_in(seed, first, end);
        if (last > first) {
            const ptowsp_list_scope scope = {first, last - first, test_random_in(seed, 0, 1) == 0};
            r->scopes[r->scope_count++] = scope;
            random_scopes(seed, r, first, last);
        }
        first = last + 1;
    }
}

static void random_recipe(uint64_t *seed, recipe *r, bool has_mix) {
    memset(r, 0, sizeof *r);
    r->count = (uint32_t)test_random_in(seed, 1, ENTRIES);
    for (uint32_t i = 0; i < r->count; i++) {
        while (!random_entry(seed, r, i, has_mix)) {
        }
    }
    random_scopes(seed, r, 0, r->count);
}

static void random_schedule(uint64_t *seed, const world *w, ptowsp_schedule *s) {
    random_schedule_make(seed, w->m, false, s);
    if (test_random_in(seed, 0, 3) == 0) {
        const ptowsp_expr none = {NULL, 0};
        s->issue = PTOWSP_ISSUE_IN_ORDER;
        s->ready = PTOWSP_READY_FIFO;
        s->priority_key = s->stream_key = none;
        s->stream_count = 0;
    }
    if (test_random_in(seed, 0, 7) == 0) {
        s->dependencies = PTOWSP_DEPENDENCIES_EXACT;
    }
    s->window = (uint32_t)(test_random_in(seed, 0, 1) * test_random_in(seed, 1, 6));
    s->ring_sizes[PTOWSP_RING_TASKS] =
        (uint64_t)(test_random_in(seed, 0, 3) == 0 ? test_random_in(seed, 2, 8) : 0);
}

// -- running --------------------------------------------------------------------------------------

typedef struct outcome {
    ptowsp_status status;
    ptowsp_run_stats stats;
    ptowsp_run_bounds bounds;
    ptowsp_task_record records[ENTRIES];
    uint32_t explicit_count;  // edges
    char error[300];
} outcome;

static bool count_explicit(void *user, const ptowsp_edge *edge) {
    *(uint32_t *)user += edge->reason == PTOWSP_EDGE_EXPLICIT;
    return true;
}

static void run_it(const world *w, const ptowsp_schedule *schedule, outcome *o) {
    ptowsp_program *program = NULL;
    ptowsp_run *run = NULL;
    const ptowsp_program_desc desc = {.schedule = schedule};
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    const ptowsp_record_options record = {.level = PTOWSP_RECORD_EDGES};
    memset(o, 0, sizeof *o);
    o->status = ptowsp_program_create(w->context, w->m, &desc, &program);
    if (o->status == PTOWSP_OK) {
        assert_ok(ptowsp_run_create(w->context, program, &run));
        assert_ok(ptowsp_run_record(run, &record));
        o->status = ptowsp_run_execute(run, &options);
        o->stats = *ptowsp_run_result(run);
        o->stats.memory_bytes = 0;
    }
    snprintf(o->error, sizeof o->error, "%s", ptowsp_context_error(w->context).text);
    if (o->status == PTOWSP_OK) {
        assert_ok(ptowsp_run_find_bounds(run, &o->bounds));
        assert_true(o->stats.task_count <= ENTRIES);
        ptowsp_run_edges(run, PTOWSP_NO_INDEX, count_explicit, &o->explicit_count);
        if (o->stats.task_count) {
            memcpy(o->records, ptowsp_run_records(run),
                   (size_t)o->stats.task_count * sizeof o->records[0]);
        }
    }
    test_destroy(run, program, NULL, NULL);
}

// The tasks of a recipe as a list, in a world of their own, under a schedule without keys.
static void run_recipe(const recipe *r, const ptowsp_schedule *schedule, outcome *o) {
    world w;
    arrays a;
    world_make(&w);
    make_list(r, &a);
    list_alone(w.m, &a.list);
    run_it(&w, schedule, o);
    world_free(&w);
}

TEST(list__equals_the_same_tasks_as_a_tree) {
    uint64_t seed = test_seed();
    uint64_t good = 0;
    for (uint64_t round = 0; TEST_ROUNDS(round, 3000); round++) {
        recipe r;
        arrays a;
        world list, tree;
        outcome of_list, of_tree;
        ptowsp_schedule schedule;
        world_make(&list);
        world_make(&tree);
        const uint64_t before_schedule = seed;
        random_schedule(&seed, &list, &schedule);
        random_recipe(&seed, &r, true);
        make_list(&r, &a);
        list_alone(list.m, &a.list);
        make_tree(&tree, &r);
        run_it(&list, &schedule, &of_list);
        seed = before_schedule;  // the same one, with keys of the other module
        random_schedule(&seed, &tree, &schedule);
        random_recipe(&seed, &r, true);
        schedule.dependencies |= schedule.dependencies & PTOWSP_DEPENDENCIES_STRUCTURE
                                     ? (uint32_t)PTOWSP_DEPENDENCIES_EXPLICIT
                                     : 0u;
        if (schedule.dependencies == 0) {  // the defaults have STRUCTURE
            schedule.dependencies = schedule.issue == PTOWSP_ISSUE_IN_ORDER ? 9u : 13u;
        }
        run_it(&tree, &schedule, &of_tree);
        if (of_list.status != of_tree.status) {
            print_message("round %llu: list %s, tree %s\n", (unsigned long long)round,
                          of_list.error, of_tree.error);
        }
        assert_int_equal(of_list.status, of_tree.status);
        if (of_list.status == PTOWSP_OK) {
            assert_memory_equal(&of_list.stats, &of_tree.stats, sizeof of_list.stats);
            assert_int_equal(of_list.bounds.path_cycles, of_tree.bounds.path_cycles);
            bool has_joins = false;
            for (uint32_t i = 0; i < r.count; i++) {
                has_joins = has_joins || r.entries[i].kernel == JOIN;
            }
            for (uint64_t i = 0; i < of_list.stats.task_count; i++) {
                of_list.records[i].node = of_tree.records[i].node = 0;
                if (has_joins) {  // of several tasks that end together, a join keeps another one
                    of_list.records[i].cause = of_tree.records[i].cause = 0;
                }
                assert_memory_equal(&of_list.records[i], &of_tree.records[i],
                                    sizeof of_list.records[i]);
            }
            good++;
        }
        world_free(&list);
        world_free(&tree);
    }
    assert_met(good > 1000);
}

// -- a slow model ---------------------------------------------------------------------------------

// Does entry b come after entry a by the innermost scope that tells them apart, or one around it?
static bool by_scopes(const recipe *r, uint32_t a, uint32_t b) {
    for (uint32_t s = 0; s < r->scope_count; s++) {
        const ptowsp_list_scope *scope = &r->scopes[s];
        const uint32_t end = scope->first + scope->count;
        if (scope->is_parallel || a < scope->first || b < scope->first || a >= end || b >= end) {
            continue;
        }
        bool is_together = false;  // in a child of the sequential scope
        for (uint32_t t = s + 1; t < r->scope_count; t++) {
            const ptowsp_list_scope *child = &r->scopes[t];
            const uint32_t last = child->first + child->count;
            is_together =
                is_together || (child->first >= scope->first && last <= end && child->first <= a &&
                                a < last && child->first <= b && b < last);
        }
        if (!is_together) {
            return true;
        }
    }
    return false;
}

static bool by_data(const entry *a, const entry *b) {
    const bool is_both = a->kernel >= READS && b->kernel >= READS;
    const bool is_written = a->kernel >= WRITES || b->kernel >= WRITES;
    for (int row = 0; is_both && is_written && row < SIDE; row++) {
        for (int col = 0; col < SIDE; col++) {
            if (row >= a->row && row < a->row + a->rows && col >= a->col &&
                col < a->col + a->cols && row >= b->row && row < b->row + b->rows &&
                col >= b->col && col < b->col + b->cols) {
                return true;
            }
        }
    }
    return false;
}

// Tasks in turn on lanes, each when its lane and all that it waits for are free.
TEST(list__starts_tasks_when_all_before_them_have_ended) {
    uint64_t seed = test_seed();
    for (uint64_t round = 0; TEST_ROUNDS(round, 1000); round++) {
        recipe r;
        outcome o;
        ptowsp_schedule schedule = {.lane_count = (uint32_t)test_random_in(&seed, 1, 5)};
        random_recipe(&seed, &r, true);
        run_recipe(&r, &schedule, &o);
        assert_ok(o.status);
        uint64_t ends[ENTRIES] = {0}, free_at[5] = {0}, index = 0, makespan = 0;
        for (uint32_t i = 0; i < r.count; i++) {
            bool is_in[ENTRIES];
            uint64_t start = 0;
            if (r.entries[i].kernel == JOIN) {
                continue;
            }
            before(&r, i, is_in);
            for (uint32_t k = 0; k < i; k++) {
                const bool waits =
                    is_in[k] || (r.entries[k].kernel != JOIN &&
                                 (by_scopes(&r, k, i) || by_data(&r.entries[k], &r.entries[i])));
                start = waits && ends[k] > start ? ends[k] : start;
            }
            uint64_t *lane = &free_at[index % schedule.lane_count];
            start = *lane > start ? *lane : start;
            ends[i] = *lane = start + (uint64_t)r.entries[i].cycles;
            assert_int_equal(o.records[index].start, start);
            assert_int_equal(o.records[index].end, ends[i]);
            makespan = ends[i] > makespan ? ends[i] : makespan;
            index++;
        }
        assert_int_equal(o.stats.task_count, index);
        assert_int_equal(o.stats.makespan_cycles, makespan);
    }
}

// -- by hand --------------------------------------------------------------------------------------

// A list in a loop of three iterations, one after another: each begins when the one before has ended,
// and waits for no task of it by edges.
TEST(list__in_a_loop_starts_again) {
    for (uint32_t is_parallel = 0; is_parallel < 2; is_parallel++) {
        world w;
        outcome o;
        recipe r = {{{WORK, 7, 0, 0, 0, 0, 0, 0, {0}}, {WORK, 2, 0, 0, 0, 0, 0, 1, {0}}},
                    {{0, 0, false}},
                    2,
                    0};
        arrays a;
        ptowsp_schedule schedule = {.lane_count = 6};
        world_make(&w);
        make_list(&r, &a);
        const ptowsp_axis axis = ptowsp_axis_dense(w.m, "steps", 3);
        PTOWSP_WORKLOAD(w.m, "all") {
            (is_parallel ? ptowsp_parallel_begin : ptowsp_for_each_begin)(w.m, "i", axis);
            ptowsp_task_list_make(w.m, &a.list);
            ptowsp_scope_end(w.m);
        }
        run_it(&w, &schedule, &o);
        assert_int_equal(o.stats.task_count, 6);
        assert_int_equal(o.stats.makespan_cycles, is_parallel ? 9 : 27);
        assert_int_equal(o.explicit_count, 3);
        world_free(&w);
    }
}

// Squares of the rows of a matrix, written to another one: kernels of lists run.
static ptowsp_cycles square_row(const ptowsp_task *task, void *user) {
    const int32_t *from = (const int32_t *)task->tiles[0].data;
    int32_t *to = (int32_t *)task->tiles[1].data;
    (void)user;
    for (int64_t c = 0; c < ptowsp_task_cols(task, 0); c++) {
        to[c] = from[c] * from[c] + (int32_t)ptowsp_task_scalar(task, 0);
    }
    return 3;
}

CONTEXT_TEST(list__runs_its_kernels) {
    static const char text[] =
        "module m\ntensor a i32 [2, 2, 3] global\ntensor b i32 [4, 3] global\n"
        "kernel square(axes 0, in from i32 1 x ?, out to i32 1 x ?, plus i64) vector\n";
    const ptowsp_parse_kernel square_fn = {.name = "square", .fn = square_row};
    const ptowsp_parse_desc attached = {&square_fn, 1, 0};
    const ptowsp_tensor from = {1}, to = {2};
    const ptowsp_kernel square = {1};
    ptowsp_module *m;
    assert_ok(ptowsp_module_parse(context, text, sizeof text - 1, &attached, &m, NULL));
    ptowsp_kernel kernels[4];
    ptowsp_list_view views[8];
    uint64_t scalars[4];
    for (int i = 0; i < 4; i++) {
        const ptowsp_list_view in = {from, 0, 0, i % 2, 0, i / 2}, out = {to, 0, 0, i, 0, 0};
        kernels[i] = square;
        views[2 * i] = in;
        views[2 * i + 1] = out;
        scalars[i] = (uint64_t)i;
    }
    ptowsp_task_list list = {.task_count = 4,
                             .kernels = kernels,
                             .views = views,
                             .view_count = 8,
                             .scalars = scalars,
                             .scalar_count = 4};
    list_alone(m, &list);
    ptowsp_program *program = test_program(context, m, NULL);
    ptowsp_run *run = test_run_of(context, program);
    int32_t in[12], out[12] = {0};
    for (int i = 0; i < 12; i++) {
        in[i] = i - 5;
    }
    test_bind(run, "a", in);
    test_bind(run, "b", out);
    assert_ok(ptowsp_run_execute(run, NULL));
    for (int i = 0; i < 12; i++) {
        assert_int_equal(out[i], (i - 5) * (i - 5) + i / 3);
    }
    assert_int_equal(ptowsp_run_result(run)->makespan_cycles, 12);  // one lane
    views[5].row = 4;                                               // of 4 rows
    test_refused(context, ptowsp_run_execute(run, NULL), PTOWSP_INVALID_PARAMS, 4,
                 "all/list/listed square: task 2 of the list: to: row 4 of tensor b is outside of "
                 "its 4 rows");
    views[5].row = 2;
    views[4].matrix = 2;
    test_refused(context, ptowsp_run_execute(run, NULL), PTOWSP_INVALID_PARAMS, 2,
                 "all/list/listed square: task 2 of the list: from: tensor a has no matrix 2");
    test_destroy(run, program, m, NULL);
}

// -- what comes for free --------------------------------------------------------------------------

static bool collect(void *user, const void *data, size_t size) {
    (void)data;
    *(size_t *)user += size;
    return true;
}

TEST(list__is_drawn_reported_and_searched) {
    uint64_t seed = test_seed();
    recipe r;
    arrays a;
    world w;
    world_make(&w);
    do {
        random_recipe(&seed, &r, false);
    } while (r.count < ENTRIES - 4);
    make_list(&r, &a);
    list_alone(w.m, &a.list);
    const uint32_t lanes[] = {1, 2, 3};
    ptowsp_search_result results[16];
    ptowsp_search_summary summary;
    ptowsp_search_desc search = {.lane_counts = lanes,
                                 .lane_count_count = 3,
                                 .base.priority_key = ptowsp_task_arg(w.m, 1),
                                 .has_path = true};
    assert_ok(ptowsp_schedule_search(w.context, w.m, &search, results, 16, &summary));
    assert_true(summary.result_count > 4);
    assert_true(results[0].makespan_cycles <= results[summary.result_count - 1].makespan_cycles);
    assert_true(results[0].makespan_cycles >= results[0].bounds.largest_cycles);

    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    const ptowsp_record_options record = {.level = PTOWSP_RECORD_EDGES};
    const ptowsp_program_desc desc = {.schedule = &results[0].schedule};
    ptowsp_program *program = test_program(w.context, w.m, &desc);
    ptowsp_run *run = test_run_of(w.context, program);
    assert_ok(ptowsp_run_record(run, &record));
    assert_ok(ptowsp_run_execute(run, &options));
    assert_int_equal(ptowsp_run_result(run)->makespan_cycles, results[0].makespan_cycles);
    for (int format = 0; format <= PTOWSP_EXPORT_DOT; format++) {
        size_t size = 0;
        const ptowsp_output output = {collect, &size};
        assert_ok(ptowsp_run_export(run, (ptowsp_export_format)format, NULL, output));
        assert_true(size > 0);
    }
    for (int format = 0; format <= PTOWSP_REPORT_HTML; format++) {
        size_t size = 0;
        const ptowsp_output output = {collect, &size};
        assert_ok(ptowsp_run_report(run, (ptowsp_report_format)format, NULL, NULL, 0, output));
        assert_true(size > 0);
    }
    size_t size = 0;
    const ptowsp_output text = {collect, &size};
    ptowsp_program_print(program, text);
    ptowsp_module_print(w.m, text);
    assert_true(size > 100);
    ptowsp_fingerprint before_change, after_change;
    assert_ok(ptowsp_run_fingerprint(run, &before_change));
    a.cycles[3]++;
    assert_ok(ptowsp_run_fingerprint(run, &after_change));
    a.cycles[3]--;
    assert_true(before_change.program != after_change.program);
    ptowsp_what_if what_if = {WORK, 50, 0, 0};
    assert_ok(ptowsp_run_what_if(run, &options, &what_if));
    test_destroy(run, program, NULL, NULL);
    world_free(&w);
}

// -- what is refused later ------------------------------------------------------------------------

TEST(list__runs_on_the_calling_thread_alone) {
    const ptowsp_context_desc lanes = test_lanes_desc(2);
    ptowsp_module *read = NULL;
    ptowsp_context *context = test_context(&lanes);
    ptowsp_module *m = test_module(context, NULL);
    const ptowsp_kernel_desc desc = {.name = "k", .cycles = 1};
    const ptowsp_kernel kernel = ptowsp_kernel_make(m, &desc);
    const ptowsp_task_list list = {.task_count = 1, .kernels = &kernel};
    list_alone(m, &list);
    const ptowsp_run_options options = {.lane_count = 2};
    ptowsp_program *program = test_program(context, m, NULL);
    ptowsp_run *run = test_run_of(context, program);
    test_refused(context, ptowsp_run_execute(run, &options), PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                 "run: lists of tasks run on the calling thread, and lane_count is 2");
#ifndef PTOWSP_NO_THREADS
    ptowsp_device *device;
    assert_ok(ptowsp_device_open(context, NULL, &device));
    test_refused(context, ptowsp_device_run(device, run, NULL), PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                 "device: lists of tasks run on the calling thread");
    assert_ok(ptowsp_device_close(device));
#endif
    char text[1000];
    ptowsp_module_print(m, TEST_TEXT(text));
    assert_non_null(strstr(text, "list of 1 tasks"));
    assert_invalid(ptowsp_module_parse(context, text, strlen(text), NULL, &read, NULL));
    assert_non_null(
        strstr(ptowsp_context_error(context).text, "lists of tasks are given as arrays"));
    test_destroy(run, program, m, context);
}

// Each allocation fails once: the calls say so, and nothing is lost.
TEST(list__survives_every_allocation_that_fails) {
    uint64_t seed = test_seed();
    bool is_done = false;
    for (size_t refuse_at = 1; !is_done; refuse_at++) {
        test_memory memory = {0, 0, 0, refuse_at};
        ptowsp_context_desc desc = {.resize = test_resize, .resize_user = &memory};
        const uint64_t same = seed;
        recipe r;
        arrays a;
        world w = {0};
        ptowsp_program *program = NULL;
        ptowsp_run *run = NULL;
        random_recipe(&seed, &r, false);
        seed = same;
        if (ptowsp_context_create(&desc, &w.context) != PTOWSP_OK) {
            continue;
        }
        const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
        const ptowsp_record_options record = {.level = PTOWSP_RECORD_EDGES};
        if (world_parse(&w) == PTOWSP_OK) {
            make_list(&r, &a);
            list_alone(w.m, &a.list);
            is_done = ptowsp_program_create(w.context, w.m, NULL, &program) == PTOWSP_OK &&
                      ptowsp_run_create(w.context, program, &run) == PTOWSP_OK &&
                      ptowsp_run_record(run, &record) == PTOWSP_OK &&
                      ptowsp_run_execute(run, &options) == PTOWSP_OK;
        }
        if (!is_done) {
            assert_int_equal(ptowsp_context_error(w.context).status, PTOWSP_OUT_OF_MEMORY);
        }
        test_destroy(run, program, NULL, NULL);
        world_free(&w);
        assert_int_equal(memory.live_blocks, 0);
    }
}
