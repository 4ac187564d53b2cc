// Replays of runs of our own, which have to take the same time again, to the cycle. Those of dumps
// by hand are in dumps.facts.

#include "dump_write.h"
#include "random_schedule.h"
#include "written.h"

enum { TASKS = 20, SIDE = 8 };

// -- our own runs ---------------------------------------------------------------------------------

// A random tree of loops, scopes and tasks on tiles of a matrix.
typedef struct grower {
    uint64_t *seed;
    ptowsp_module *m;
    ptowsp_kernel kernels[3];  // vector, cube, mix
    ptowsp_axis axis;
    ptowsp_tensor x;
    ptowsp_node last;
    int tasks;
    bool has_mix;
} grower;

static void grow_task(grower *g, ptowsp_expr i) {
    ptowsp_task_desc task = {.kernel = g->kernels[test_random_in(g->seed, 0, g->has_mix ? 2 : 1)]};
    const ptowsp_expr cycles = ptowsp_i64(g->m, test_random_in(g->seed, 0, 20));
    task.axes[0] = i.id ? ptowsp_add(cycles, i) : cycles;
    task.axes[1] = ptowsp_i64(g->m, test_random_in(g->seed, 0, 5));
    task.views[0].tensor = g->x;
    task.views[0].rows = test_random_in(g->seed, 1, 4);
    task.views[0].cols = test_random_in(g->seed, 1, 4);
    task.views[0].row = i.id && test_random_in(g->seed, 0, 1)
                            ? i
                            : ptowsp_i64(g->m, test_random_in(g->seed, 0, SIDE - 1));
    task.views[0].col = ptowsp_i64(g->m, test_random_in(g->seed, 0, SIDE - 1));
    if (g->last.id && test_random_in(g->seed, 0, 2) == 0) {
        task.after[0] = g->last;
    }
    g->last = ptowsp_task_make(g->m, &task);
    g->tasks++;
}

static void grow(grower *g, int depth, ptowsp_expr i) {
    const int count = (int)test_random_in(g->seed, 1, 4);
    for (int k = 0; k < count && g->tasks < TASKS; k++) {
        const ptowsp_expr none = {NULL, 0};
        const int64_t what = depth < 3 ? test_random_in(g->seed, 0, 5) : 0;
        char name[8];
        snprintf(name, sizeof name, "v%d", depth);
        if (what <= 2) {
            grow_task(g, i);
            continue;
        }
        ptowsp_expr variable = i;
        if (what == 3) {
            variable = test_random_in(g->seed, 0, 1) ? ptowsp_parallel_begin(g->m, name, g->axis)
                                                     : ptowsp_for_each_begin(g->m, name, g->axis);
        } else if (what == 4) {
            ptowsp_combine_begin(g->m);
        } else {
            ptowsp_sequence_begin(g->m);
        }
        g->last.id = 0;
        grow(g, depth + 1, variable.id ? variable : none);
        g->last.id = 0;
        ptowsp_scope_end(g->m);
    }
}

static ptowsp_dump_file export_as(const ptowsp_run *run, ptowsp_export_format format) {
    assert_ok(ptowsp_run_export(run, format, NULL, written_output()));
    return dw_exact(written.text, written.length);
}

// Opens a run as a dump.
static ptowsp_dump *dump_of(ptowsp_context *context, const ptowsp_run *run) {
    const ptowsp_dump_desc desc = {.deps = export_as(run, PTOWSP_EXPORT_DEPS),
                                   .swimlane = export_as(run, PTOWSP_EXPORT_SWIMLANE),
                                   .names = export_as(run, PTOWSP_EXPORT_NAMES)};
    const ptowsp_dump_file *const files[] = {&desc.deps, &desc.swimlane, &desc.names};
    ptowsp_dump *dump = NULL;
    if (ptowsp_dump_open(context, &desc, &dump) != PTOWSP_OK) {
        fail_msg("%s\n%.*s", ptowsp_context_error(context).text, (int)desc.deps.size,
                 desc.deps.text);
    }
    for (int i = 0; i < 3; i++) {
        free((void *)(uintptr_t)files[i]->text);
    }
    return dump;
}

// Grows and runs a program. NULL: the schedule does not take it.
static ptowsp_run *random_run(uint64_t *seed, ptowsp_context *context, ptowsp_program **out_program,
                              ptowsp_schedule *schedule) {
    static const char *const names[] = {"on vectors", "on cubes", "on both"};
    static const ptowsp_unit units[] = {PTOWSP_UNIT_VECTOR, PTOWSP_UNIT_CUBE, PTOWSP_UNIT_MIX};
    grower g = {.seed = seed, .has_mix = test_random_in(seed, 0, 1) == 0};
    assert_ok(ptowsp_module_create(context, NULL, &g.m));
    for (int i = 0; i < 3; i++) {
        ptowsp_kernel_desc desc = {
            .name = names[i], .axis_count = 2, .unit = units[i], .cost = test_first_arg};
        const ptowsp_tile_param tile = {
            "tile", (ptowsp_direction)test_random_in(seed, PTOWSP_IN, PTOWSP_INOUT), PTOWSP_I32,
            PTOWSP_DYNAMIC, PTOWSP_DYNAMIC};
        desc.tiles[0] = tile;
        g.kernels[i] = ptowsp_kernel_make(g.m, &desc);
    }
    const ptowsp_tensor_desc x = {"x", PTOWSP_I32, 2, {SIDE, SIDE}, PTOWSP_LOCATION_GLOBAL};
    g.x = ptowsp_tensor_make(g.m, &x);
    g.axis = ptowsp_axis_dense(g.m, "axis", 3);
    PTOWSP_WORKLOAD(g.m, "all") {
        const ptowsp_expr none = {NULL, 0};
        grow(&g, 0, none);
        grow_task(&g, none);
    }
    random_schedule_make(seed, g.m, g.has_mix, schedule);
    const ptowsp_program_desc desc = {.schedule = schedule};
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    const ptowsp_record_options record = {.level = PTOWSP_RECORD_EDGES};
    assert_ok(ptowsp_program_create(context, g.m, &desc, out_program));
    ptowsp_run *run = test_run_of(context, *out_program);
    assert_ok(ptowsp_run_record(run, &record));
    assert_ok(ptowsp_run_execute(run, &options));
    ptowsp_module_destroy(g.m);
    return run;
}

TEST(replay__of_our_own_run_takes_its_time) {
    uint64_t seed = test_seed();
    uint64_t waited = 0;
    for (uint64_t round = 0; TEST_ROUNDS(round, 1000); round++) {
        ptowsp_context *context = test_context(NULL);
        ptowsp_program *program = NULL;
        ptowsp_schedule schedule;
        ptowsp_run_bounds bounds;
        ptowsp_dump_replayed replayed;
        ptowsp_run *run = random_run(&seed, context, &program, &schedule);
        const ptowsp_run_stats *stats = ptowsp_run_result(run);
        ptowsp_dump *dump = dump_of(context, run);
        if (ptowsp_dump_replay_run(dump, NULL, &replayed) != PTOWSP_OK) {
            fail_msg("round %llu: %s", (unsigned long long)round,
                     ptowsp_context_error(context).text);
        }
        assert_int_equal(replayed.makespan_cycles, stats->makespan_cycles);
        assert_int_equal(replayed.observed_cycles, stats->makespan_cycles);
        assert_int_equal(replayed.instance_count, stats->task_count);
        assert_int_equal(replayed.busy_cycles, stats->busy_cycles);
        assert_ok(ptowsp_run_find_bounds(run, &bounds));
        assert_int_equal(replayed.path_cycles, bounds.path_cycles);
        if (schedule.dependencies & PTOWSP_DEPENDENCIES_OVERLAP) {  // then it has no races
            ptowsp_dump_report report;
            assert_ok(ptowsp_dump_check(dump, &report));
            assert_int_equal(report.counts[PTOWSP_DUMP_RACE], 0);
            assert_int_equal(report.counts[PTOWSP_DUMP_OUTSIDE], 0);
            assert_int_equal(report.unchecked_count, 0);
        }
        waited += replayed.idle_cycles[PTOWSP_STALL_DEPENDENCY] > 0;
        ptowsp_dump_close(dump);
        test_destroy(run, program, NULL, context);
    }
    assert_met(waited > 100);
}

CONTEXT_TEST(dumps_of_runs__may_be_refused) {
    uint64_t seed = test_seed();
    ptowsp_program *program = NULL;
    ptowsp_schedule schedule;
    ptowsp_run *run = random_run(&seed, context, &program, &schedule);
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    for (int format = PTOWSP_EXPORT_DEPS; format <= PTOWSP_EXPORT_NAMES; format++) {
        assert_int_equal(
            ptowsp_run_export(run, (ptowsp_export_format)format, NULL, written_within(10)),
            PTOWSP_SYSTEM_FAILED);
    }
    const ptowsp_record_options tasks = {.level = PTOWSP_RECORD_TASKS};
    const ptowsp_output output = written_output();
    assert_ok(ptowsp_run_record(run, &tasks));
    assert_ok(ptowsp_run_execute(run, &options));
    assert_ok(ptowsp_run_export(run, PTOWSP_EXPORT_SWIMLANE, NULL, output));
    assert_invalid(ptowsp_run_export(run, PTOWSP_EXPORT_DEPS, NULL, output));
    assert_string_equal(ptowsp_context_error(context).text,
                        "export: the run has recorded no edges (PTOWSP_RECORD_EDGES)");
    const ptowsp_record_options some = {.level = PTOWSP_RECORD_TASKS, .every = 2};
    assert_ok(ptowsp_run_record(run, &some));
    assert_ok(ptowsp_run_execute(run, &options));
    assert_invalid(ptowsp_run_export(run, PTOWSP_EXPORT_SWIMLANE, NULL, output));
    assert_string_equal(ptowsp_context_error(context).text,
                        "export: this format needs all tasks of a run that has ended well, without "
                        "pipelines");
    test_destroy(run, program, NULL, NULL);
}
