// Replays: of runs of our own, which have to take the same time again, to the cycle; of dumps by hand,
// whose times are worked out on paper; and of what is wrong.

#include "dump_write.h"
#include "random_schedule.h"

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

static bool collect(void *user, const void *data, size_t size) {
    dw_print((dw_text *)user, "%.*s", (int)size, (const char *)data);
    return true;
}

static void export_as(const ptowsp_run *run, ptowsp_export_format format, dw_text *text) {
    const ptowsp_output output = {collect, text};
    memset(text, 0, sizeof *text);
    assert_ok(ptowsp_run_export(run, format, NULL, output));
}

// Opens a run as a dump.
static ptowsp_dump *dump_of(ptowsp_context *context, const ptowsp_run *run) {
    dw_text texts[3];
    ptowsp_dump *dump = NULL;
    ptowsp_dump_desc desc = {0};
    export_as(run, PTOWSP_EXPORT_DEPS, &texts[0]);
    export_as(run, PTOWSP_EXPORT_SWIMLANE, &texts[1]);
    export_as(run, PTOWSP_EXPORT_NAMES, &texts[2]);
    desc.deps.text = texts[0].data;
    desc.deps.size = texts[0].size;
    desc.swimlane.text = texts[1].data;
    desc.swimlane.size = texts[1].size;
    desc.names.text = texts[2].data;
    desc.names.size = texts[2].size;
    if (ptowsp_dump_open(context, &desc, &dump) != PTOWSP_OK) {
        fail_msg("%s\n%s", ptowsp_context_error(context).text, texts[0].data);
    }
    for (int i = 0; i < 3; i++) {
        free(texts[i].data);
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

// -- by hand --------------------------------------------------------------------------------------

// 2 cube and 4 vector cores. Task 0 (cube, 100 cycles from 1000), an allocation left out (9), task 1 on
// both kinds (cube 0 with vectors 0 and 1: 50 cycles), 2 with two blocks on vectors 2 and 3 (30 and
// 40), a dummy 3 after both, 4 (vector 0, 10). Task 5 has a kernel and no row.
static const char deps[] =
    "{\"tasks\":["
    "{\"task_id\":\"0\",\"kernel_ids\":[7,-1,-1],\"args\":[]},"
    "{\"task_id\":\"1\",\"kernel_ids\":[8,9,9],\"args\":[]},"
    "{\"task_id\":\"2\",\"kernel_ids\":[-1,9,-1],\"block_num\":2,\"args\":[]},"
    "{\"task_id\":\"3\",\"kernel_ids\":[-1,-1,-1],\"args\":[]},"
    "{\"task_id\":\"4\",\"kernel_ids\":[-1,7,-1],\"args\":[]},"
    "{\"task_id\":\"5\",\"kernel_ids\":[-1,7,-1],\"args\":[]}],\"tensors\":[],"
    "\"edges\":[{\"pred\":\"9\",\"succ\":\"1\"},{\"pred\":\"0\",\"succ\":\"1\"},"
    "{\"pred\":\"0\",\"succ\":\"2\"},{\"pred\":\"1\",\"succ\":\"3\"},{\"pred\":\"2\",\"succ\":"
    "\"3\"},"
    "{\"pred\":\"3\",\"succ\":\"4\"},{\"pred\":\"0\",\"succ\":\"4\"},{\"pred\":\"4\",\"succ\":"
    "\"5\"}]}";
static const char swimlane[] =
    "{\"metadata\":{\"core_types\":[\"aic\",\"aic\",\"aiv\",\"aiv\",\"aiv\",\"aiv\"]},"
    "\"aicore_tasks\":[[0,0,1,1000,1100,0],[0,1,1,1120,1170,0],[2,1,1,1120,1165,0],"
    "[3,1,1,1121,1160,0],[4,2,1,1130,1160,0],[5,2,1,1130,1170,0],[2,4,1,1200,1210,0]]}";

static ptowsp_status open_texts(ptowsp_context *context, const char *deps_text,
                                const char *swimlane_text, ptowsp_dump **out_dump) {
    ptowsp_dump_desc desc = {.deps.text = deps_text,
                             .deps.size = deps_text ? strlen(deps_text) : 0,
                             .swimlane.text = swimlane_text,
                             .swimlane.size = swimlane_text ? strlen(swimlane_text) : 0};
    return ptowsp_dump_open(context, &desc, out_dump);
}

static uint64_t makespan(ptowsp_dump *dump, const ptowsp_dump_replay *how) {
    ptowsp_dump_replayed replayed;
    assert_ok(ptowsp_dump_replay_run(dump, how, &replayed));
    return replayed.makespan_cycles;
}

CONTEXT_TEST(replay__has_the_times_of_paper) {
    ptowsp_dump *dump = NULL;
    ptowsp_dump_replayed replayed;
    assert_ok(open_texts(context, deps, swimlane, &dump));
    assert_ok(ptowsp_dump_replay_run(dump, NULL, &replayed));
    assert_int_equal(replayed.observed_cycles, 210);
    assert_int_equal(replayed.makespan_cycles, 160);  // 100, then 50 beside 40, then 10
    assert_int_equal(replayed.path_cycles, 160);
    assert_int_equal(replayed.busy_cycles, 100 + 3 * 50 + 30 + 40 + 10);
    assert_int_equal(replayed.instance_count, 5);
    assert_int_equal(replayed.untimed_count, 1);
    assert_int_equal(replayed.edge_count, 8);
    assert_int_equal(replayed.cube_cores, 2);
    assert_int_equal(replayed.vector_cores, 4);
    ptowsp_dump_replay how = {.order = PTOWSP_DUMP_ORDER_SUBMITTED};
    assert_int_equal(makespan(dump, &how), 200);  // at 100 vectors 0 and 1 come before cube 0
    how.cube_cores = 1;
    how.vector_cores = 2;  // the same on the only ones: to 140, 190, 200
    assert_int_equal(makespan(dump, &how), 200);
    how.task_window = 1;  // one after another: 100 + 50 + 30 + 40 + 10
    assert_int_equal(makespan(dump, &how), 230);
    const ptowsp_dump_replay faster = {.kernel = 7, .percent = 50};
    assert_int_equal(makespan(dump, &faster), 50 + 50 + 5);
    const ptowsp_dump_replay drops = {.drops_redundant = true};
    assert_ok(ptowsp_dump_replay_run(dump, &drops, &replayed));
    assert_int_equal(replayed.dropped_count, 1);  // from 0 to 4
    assert_int_equal(replayed.makespan_cycles, 160);
    ptowsp_dump_close(dump);
}

// Cube core: task 0 and then 1 and 2, whose chain goes on with 3 on a vector core. Longest chain first
// takes 2 before 1: 10 + 10 + 100 in place of 10 + 50 + 10 + 100.
CONTEXT_TEST(replay__takes_the_longest_chain_first) {
    ptowsp_dump *dump = NULL;
    static const char chain[] =
        "{\"tasks\":[{\"task_id\":\"0\",\"kernel_ids\":[1,-1,-1]},"
        "{\"task_id\":\"1\",\"kernel_ids\":[1,-1,-1]},{\"task_id\":\"2\",\"kernel_ids\":[1,-1,-1]},"
        "{\"task_id\":\"3\",\"kernel_ids\":[-1,2,-1]}],\"tensors\":[],\"edges\":["
        "{\"pred\":\"0\",\"succ\":\"1\"},{\"pred\":\"0\",\"succ\":\"2\"},{\"pred\":\"2\",\"succ\":"
        "\"3\"}]}";
    static const char lanes[] = "{\"metadata\":{\"core_types\":[\"aic\",\"aiv\"]},\"aicore_tasks\":"
                                "[[0,0,1,0,10],[0,1,1,10,60],"
                                "[0,2,1,60,70],[1,3,1,70,170]]}";
    assert_ok(open_texts(context, chain, lanes, &dump));
    ptowsp_dump_replay how = {.order = PTOWSP_DUMP_ORDER_SUBMITTED};
    assert_int_equal(makespan(dump, NULL), 170);
    assert_int_equal(makespan(dump, &how), 170);
    how.order = PTOWSP_DUMP_ORDER_CRITICAL;
    assert_int_equal(makespan(dump, &how), 120);
    ptowsp_dump_close(dump);
}

// A chain of 0, 1, 2 on the cube core and 3 on a vector core, at 50 MHz: a tick is 20 ns. A thread
// dispatches a task in 10 ticks and completes it in 5: 25, 25 + 65, 90 + 25, 115 + 115. A clock that is
// given is used instead: 100 MHz doubles these costs.
CONTEXT_TEST(replay__what_if_a_thread_had_to_dispatch) {
    ptowsp_dump *dump = NULL;
    ptowsp_dump_replayed replayed;
    static const char chain[] =
        "{\"tasks\":[{\"task_id\":\"0\",\"kernel_ids\":[1,-1,-1]},"
        "{\"task_id\":\"1\",\"kernel_ids\":[1,-1,-1]},{\"task_id\":\"2\",\"kernel_ids\":[1,-1,-1]},"
        "{\"task_id\":\"3\",\"kernel_ids\":[-1,2,-1]}],\"tensors\":[],\"edges\":["
        "{\"pred\":\"0\",\"succ\":\"1\"},{\"pred\":\"1\",\"succ\":\"2\"},{\"pred\":\"2\",\"succ\":"
        "\"3\"}]}";
    static const char lanes[] = "{\"metadata\":{\"clock_freq_hz\":50000000,\"core_types\":[\"aic\","
                                "\"aiv\"]},\"aicore_tasks\":[[0,0,1,0,10],[0,1,1,10,60],"
                                "[0,2,1,60,70],[1,3,1,70,170]]}";
    assert_ok(open_texts(context, chain, lanes, &dump));
    ptowsp_dump_replay how = {.control = {.by = PTOWSP_CONTROL_AICPU, .threads = 1}};
    how.control.cost_ns[PTOWSP_CONTROL_DISPATCH] = 200;
    how.control.cost_ns[PTOWSP_CONTROL_COMPLETE] = 100;
    for (int order = 0; order < PTOWSP_DUMP_ORDER_COUNT; order++) {
        how.order = (ptowsp_dump_order)order;
        how.control.clock_mhz = 0;
        assert_ok(ptowsp_dump_replay_run(dump, &how, &replayed));
        assert_int_equal(replayed.makespan_cycles, 170 + 4 * 15);
        assert_int_equal(replayed.control_cycles, 60);
        assert_int_equal(replayed.threads, 1);
        how.control.clock_mhz = 100;
        assert_int_equal(makespan(dump, &how), 170 + 4 * 30);
    }
    how.control.clock_mhz = 0;
    static char text[4000];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    assert_ok(
        ptowsp_dump_replay_print(dump, &how, PTOWSP_DUMP_TEXT, ptowsp_output_to_buffer(&buffer)));
    assert_non_null(strstr(text, "; 0.3 of 1 AICPU threads busy\n"));
    buffer = (ptowsp_output_buffer){text, sizeof text, 0};
    assert_ok(
        ptowsp_dump_replay_print(dump, &how, PTOWSP_DUMP_JSON, ptowsp_output_to_buffer(&buffer)));
    assert_non_null(strstr(text, "},\"busy_threads\":0.3,\"threads\":1}]}"));
    ptowsp_dump_close(dump);
}

// -- output ---------------------------------------------------------------------------------------

static bool write_text(void *user, const void *data, size_t size) {
    collect(user, data, size);
    return true;
}

CONTEXT_TEST(replay__is_printed_and_drawn) {
    ptowsp_dump *dump = NULL;
    assert_ok(open_texts(context, deps, swimlane, &dump));
    static const char *const words[] = {"same cores, same order",
                                        "\"question\":\"same cores, same order\",\"makespan\":160",
                                        "observed aic 0"};
    for (int format = 0; format <= PTOWSP_DUMP_HTML; format++) {
        dw_text all = {NULL, 0, 0};
        const ptowsp_output text = {write_text, &all};
        assert_ok(ptowsp_dump_replay_print(dump, NULL, (ptowsp_dump_format)format, text));
        assert_non_null(strstr(all.data, words[format]));
        free(all.data);
    }
    for (int format = 0; format <= PTOWSP_EXPORT_TABLE; format++) {
        dw_text all = {NULL, 0, 0};
        const ptowsp_output output = {collect, &all};
        assert_ok(
            ptowsp_dump_replay_export(dump, NULL, (ptowsp_export_format)format, NULL, output));
        assert_true(all.size > 0);
        if (format == PTOWSP_EXPORT_SVG) {
            assert_non_null(strstr(all.data, "observed aiv 3"));
            assert_non_null(strstr(all.data, "replayed aiv 3"));
        }
        free(all.data);
    }
    ptowsp_dump_close(dump);
}

// Three tasks of 100 cycles, each on a cube core and two vector cores of 3 and 6. Half of these are 2
// and 3, which is too few for two at once: they get 4, and take 200 cycles.
CONTEXT_TEST(replay__half_the_cores_keep_two_vector_cores_each) {
    ptowsp_dump *dump = NULL;
    static const char both[] = "{\"tasks\":[{\"task_id\":\"0\",\"kernel_ids\":[1,2,2]},"
                               "{\"task_id\":\"1\",\"kernel_ids\":[1,2,2]},"
                               "{\"task_id\":\"2\",\"kernel_ids\":[1,2,2]}],"
                               "\"tensors\":[],\"edges\":[]}";
    static const char cores[] =
        "{\"metadata\":{\"core_types\":[\"aic\",\"aic\",\"aic\",\"aiv\",\"aiv\",\"aiv\",\"aiv\","
        "\"aiv\",\"aiv\"]},\"aicore_tasks\":[[0,0,1,0,100],[3,0,1,0,100],[4,0,1,0,100],"
        "[1,1,1,0,100],[5,1,1,0,100],[6,1,1,0,100],[2,2,1,0,100],[7,2,1,0,100],[8,2,1,0,100]]}";
    assert_ok(open_texts(context, both, cores, &dump));
    dw_text all = {NULL, 0, 0};
    const ptowsp_output text = {write_text, &all};
    assert_ok(ptowsp_dump_replay_print(dump, NULL, PTOWSP_DUMP_JSON, text));
    assert_non_null(strstr(all.data, "\"question\":\"half the cores\",\"makespan\":200,"
                                     "\"percent\":200.0,\"cube_cores\":2,\"vector_cores\":4,"));
    free(all.data);
    ptowsp_dump_close(dump);
}

// An output that takes so many bytes.
static bool take(void *user, const void *data, size_t size) {
    size_t *room = (size_t *)user;
    const bool is_good = size <= *room;
    (void)data;
    *room -= is_good ? size : *room;
    return is_good;
}

CONTEXT_TEST(dumps_of_runs__may_be_refused) {
    uint64_t seed = test_seed();
    ptowsp_program *program = NULL;
    ptowsp_schedule schedule;
    ptowsp_run *run = random_run(&seed, context, &program, &schedule);
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    for (int format = PTOWSP_EXPORT_DEPS; format <= PTOWSP_EXPORT_NAMES; format++) {
        size_t room = 10;
        const ptowsp_output output = {take, &room};
        assert_int_equal(ptowsp_run_export(run, (ptowsp_export_format)format, NULL, output),
                         PTOWSP_SYSTEM_FAILED);
    }
    const ptowsp_record_options tasks = {.level = PTOWSP_RECORD_TASKS};
    size_t room = SIZE_MAX;
    const ptowsp_output output = {take, &room};
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

// -- bad input ------------------------------------------------------------------------------------

static void refused(const char *deps_text, const char *swimlane_text, const ptowsp_dump_replay *how,
                    ptowsp_status status, const char *text) {
    ptowsp_context *context = test_context(NULL);
    ptowsp_dump *dump = NULL;
    ptowsp_dump_replayed replayed;
    assert_ok(open_texts(context, deps_text, swimlane_text, &dump));
    assert_int_equal(ptowsp_dump_replay_run(dump, how, &replayed), status);
    assert_string_equal(ptowsp_context_error(context).text, text);
    ptowsp_dump_close(dump);
    ptowsp_context_destroy(context);
}

TEST(replay__refuses_what_is_wrong_by_name) {
    const ptowsp_status bad = PTOWSP_INVALID_PARAMS;
    const ptowsp_dump_replay order = {.order = (ptowsp_dump_order)9};
    const ptowsp_dump_replay cores = {.cube_cores = 3};
    const ptowsp_dump_replay percent = {.kernel = 7, .percent = 1001};
    const ptowsp_dump_replay kernel = {.kernel = 99, .percent = 50};
    const ptowsp_dump_replay few = {
        .order = PTOWSP_DUMP_ORDER_SUBMITTED, .cube_cores = 2, .vector_cores = 3};
    refused(deps, NULL, NULL, PTOWSP_UNBOUND, "dump: there is no chip_swimlane_records.json");
    refused(NULL, swimlane, NULL, PTOWSP_UNBOUND, "dump: there is no deps.json");
    refused(deps, swimlane, &order, bad, "dump: replay: there is no such order");
    refused(deps, swimlane, &percent, bad, "dump: replay: over 1000 percent");
    refused(deps, swimlane, &kernel, bad, "dump: replay: no task with times is of kernel 99");
    refused(deps, swimlane, &cores, bad,
            "dump: replay: other cores, windows and pools are for other orders than OBSERVED");
    const ptowsp_dump_replay clockless = {.control = {.by = PTOWSP_CONTROL_HOST}};
    const ptowsp_dump_replay threadless = {.control = {.by = PTOWSP_CONTROL_AICPU, .clock_mhz = 1}};
    refused(deps, swimlane, &clockless, bad,
            "dump: replay: control needs clock_mhz: clock_freq_hz is 0");
    refused(deps, swimlane, &threadless, bad,
            "schedule: control aicpu: control.threads is 0; see ptowsp_control_make");
    refused(deps, "{\"metadata\":{\"core_types\":[\"aic\"]},\"aicore_tasks\":[[1,0,1,0,1,0]]}",
            NULL, bad, "dump: task 0 ran on core 1, and core_types has 1 cores");
    refused(deps, "{\"aicore_tasks\":[[4294967295,0,1,0,1,0]]}", NULL, bad,
            "dump: task 0 ran on core 4294967295, and core_types has 0 cores");
    refused(
        deps, swimlane, &few, bad,
        "replay/list/listed \"kernel 8\": its kernel takes two vector lanes with each of 2 cube "
        "lanes, and the schedule has 3");
    refused(deps,
            "{\"metadata\":{\"core_types\":[\"aic\",\"aiv\"]},\"aicore_tasks\":["
            "[0,0,1,0,9223372036854775807,0],[1,4,1,0,9223372036854775807,0]]}",
            NULL, bad, "replay: list: task 5 and those before it take more than 2^63 - 1 cycles");
}
