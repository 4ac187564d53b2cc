// Reading programs: lists of statements worked out by hand, and a walk of them beside an execution.

#include "read_say.h"

static ptowsp_kernel kernel_make(ptowsp_module *m, const char *name, uint32_t axis_count) {
    return ptowsp_kernel_make(
        m, &(ptowsp_kernel_desc){.name = name, .axis_count = axis_count, .cycles = 1});
}

static ptowsp_node task1(ptowsp_module *m, ptowsp_kernel kernel, ptowsp_expr a) {
    return ptowsp_task_make(m, &(ptowsp_task_desc){.kernel = kernel, .axes = {a}});
}

// -- lists of statements --------------------------------------------------------------------------

#define FIXTURE_TEST(name) TEST_MADE(name, fixture, f, fixture_make(f), fixture_free(f))

FIXTURE_TEST(read__the_example_of_the_header_prints_its_list) {
    ptowsp_kernel attend = kernel_make(f->m, "attend", 1);
    PTOWSP_WORKLOAD(f->m, "attention") {
        PTOWSP_PARALLEL(f->m, b, ptowsp_axis_dynamic(f->m, "batch")) {
            PTOWSP_WHEN(f->m, ptowsp_le(ptowsp_array_at(f->m, "kv_len", PTOWSP_I32, b),
                                        ptowsp_i64(f->m, 2048))) {
                task1(f->m, attend, b);
            }
        }
    }
    check_statements(f, "0 WORKLOAD attention end 6\n"
                        "1 LOOP b in batch parallel end 5\n"
                        "2 WHEN (<= kv_len[b] 2048) end 4\n"
                        "3 TASK attend b\n"
                        "4 END of 2\n"
                        "5 END of 1\n"
                        "6 END of 0\n");
    assert_string_equal(read_tables(f)->name, "m");
    assert_int_equal(read_tables(f)->slot_count, 4);
    assert_int_equal(read_tables(f)->statements[4].node, read_tables(f)->statements[2].node);
    ptowsp_program_print_place(f->program, read_tables(f)->statements[3].node, sink(f));
    assert_string_equal(f->text, "attention/parallel b/when/task attend");
}

// Whens that end together: one without otherwise whose last statement is one with an empty one;
// an empty when with an otherwise; one with nothing at all.
FIXTURE_TEST(read__whens_and_otherwises_end_where_they_should) {
    ptowsp_kernel k = kernel_make(f->m, "k", 1);
    ptowsp_expr one = ptowsp_i64(f->m, 1), two = ptowsp_i64(f->m, 2);
    ptowsp_expr flag = ptowsp_slot(f->m, 1, PTOWSP_TYPE_BOOL);
    PTOWSP_WORKLOAD(f->m, "w") {
        PTOWSP_WHEN(f->m, flag) {
            PTOWSP_WHEN(f->m, ptowsp_not(flag)) {
                task1(f->m, k, one);
            }
            PTOWSP_OTHERWISE(f->m) {
            }
        }
        PTOWSP_WHEN(f->m, flag) {
        }
        PTOWSP_OTHERWISE(f->m) {
            PTOWSP_WHEN(f->m, flag) {
                task1(f->m, k, two);
            }
        }
        PTOWSP_WHEN(f->m, flag) {
        }
    }
    check_statements(f, "0 WORKLOAD w end 15\n"
                        "1 WHEN slot1 end 6\n"
                        "2 WHEN (! slot1) end 4\n"
                        "3 TASK k 1\n"
                        "4 OTHERWISE end 5 of 2\n"
                        "5 END of 4\n"
                        "6 END of 1\n"
                        "7 WHEN slot1 end 8\n"
                        "8 OTHERWISE end 12 of 7\n"
                        "9 WHEN slot1 end 11\n"
                        "10 TASK k 2\n"
                        "11 END of 9\n"
                        "12 END of 8\n"
                        "13 WHEN slot1 end 14\n"
                        "14 END of 13\n"
                        "15 END of 0\n");
}

// Rows of axes are no axes of their own, and an entry is where the variable was found.
FIXTURE_TEST(read__rows_of_ragged_and_sparse_axes_have_their_statements) {
    ptowsp_kernel k = kernel_make(f->m, "k", 1);
    ptowsp_axis batch = ptowsp_axis_dynamic(f->m, "batch"), kv = ptowsp_axis_ragged(f->m, "kv");
    ptowsp_axis pages = ptowsp_axis_sparse(f->m, "pages"),
                heads = ptowsp_axis_dense(f->m, "heads", 2);
    PTOWSP_WORKLOAD(f->m, "rows") {
        PTOWSP_FOR_EACH(f->m, b, batch) {
            PTOWSP_PARALLEL(f->m, t, ptowsp_axis_row(f->m, kv, b)) {
                task1(f->m, k, t);
            }
            PTOWSP_SELECT(f->m, e, ptowsp_axis_row(f->m, pages, b)) {
                task1(f->m, k, ptowsp_add(e, ptowsp_loop_entry(e)));
            }
        }
        PTOWSP_PARALLEL(f->m, h, heads) {
            PTOWSP_PARALLEL(f->m, t, kv) {
                PTOWSP_FOR_EACH(f->m, e, pages) {
                    task1(f->m, k, h);
                }
            }
        }
    }
    check_statements(f, "0 WORKLOAD rows end 16\n"
                        "1 LOOP b in batch end 8\n"
                        "2 LOOP t in kv row b parallel end 4\n"
                        "3 TASK k t\n"
                        "4 END of 2\n"
                        "5 LOOP e in pages row b parallel end 7\n"
                        "6 TASK k (+ e entry(e))\n"
                        "7 END of 5\n"
                        "8 END of 1\n"
                        "9 LOOP h in heads parallel end 15\n"
                        "10 LOOP t in kv end 14\n"
                        "11 LOOP e in pages sequential end 13\n"
                        "12 TASK k h\n"
                        "13 END of 11\n"
                        "14 END of 10\n"
                        "15 END of 9\n"
                        "16 END of 0\n");
    assert_int_equal(read_tables(f)->axis_count, 7);  // with two rows
    ptowsp_axis_info axis = read_tables(f)->axes[kv.id];
    assert_string_equal(axis.name, "kv");
    assert_int_equal(axis.kind, PTOWSP_AXIS_RAGGED);
    assert_string_equal(read_tables(f)->arrays[axis.array].name, "kv");
    assert_true(read_tables(f)->arrays[axis.array].is_lengths);
    assert_int_equal(read_tables(f)->arrays[axis.array].dtype, PTOWSP_DTYPE_NONE);
    axis = read_tables(f)->axes[heads.id];
    assert_int_equal(axis.kind, PTOWSP_AXIS_DENSE);
    assert_int_equal(axis.size, 2);
    assert_int_equal(read_tables(f)->axes[pages.id].kind, PTOWSP_AXIS_SPARSE);
    assert_null(read_tables(f)->axes[5].name);
    assert_null(read_tables(f)->axes[6].name);
}

// Each workload that is called is there once, in the order of the first calls.
FIXTURE_TEST(read__calls_and_their_arguments) {
    ptowsp_kernel k = kernel_make(f->m, "k", 1);
    PTOWSP_WORKLOAD(f->m, "leaf") {
        ptowsp_expr n = ptowsp_workload_param(f->m, "n", PTOWSP_TYPE_I64);
        ptowsp_expr flag = ptowsp_workload_param(f->m, "flag", PTOWSP_TYPE_BOOL);
        PTOWSP_WHEN(f->m, flag) {
            task1(f->m, k, n);
        }
    }
    PTOWSP_WORKLOAD(f->m, "mid") {
        ptowsp_expr n = ptowsp_workload_param(f->m, "n", PTOWSP_TYPE_I64);
        ptowsp_expr first[] = {ptowsp_add(n, ptowsp_i64(f->m, 1)), ptowsp_bool(f->m, true)};
        ptowsp_expr second[] = {n, ptowsp_lt(n, ptowsp_i64(f->m, 3))};
        ptowsp_call_make(f->m, "leaf", first, 2);
        PTOWSP_COMBINE(f->m) {
            ptowsp_call_make(f->m, "leaf", second, 2);
        }
    }
    PTOWSP_WORKLOAD(f->m, "nobody") {
        task1(f->m, k, ptowsp_i64(f->m, 9));
    }
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_expr seven = ptowsp_i64(f->m, 7);
        PTOWSP_PARALLEL(f->m, i, ptowsp_axis_dense(f->m, "heads", 2)) {
            ptowsp_call_make(f->m, "mid", &i, 1);
        }
        ptowsp_call_make(f->m, "mid", &seven, 1);
    }
    check_statements(f, "0 WORKLOAD main end 5\n"
                        "1 LOOP i in heads parallel end 3\n"
                        "2 CALL sequential mid i\n"
                        "3 END of 1\n"
                        "4 CALL mid 7\n"
                        "5 END of 0\n"
                        "6 WORKLOAD mid n:i64 end 11\n"
                        "7 CALL leaf (+ n 1), true\n"
                        "8 SCOPE parallel end 10\n"
                        "9 CALL sequential leaf n, (< n 3)\n"
                        "10 END of 8\n"
                        "11 END of 6\n"
                        "12 WORKLOAD leaf n:i64 flag:other end 16\n"
                        "13 WHEN flag end 15\n"
                        "14 TASK k n\n"
                        "15 END of 13\n"
                        "16 END of 12\n");
}

FIXTURE_TEST(read__slots_and_views_have_their_statements) {
    ptowsp_tensor x = ptowsp_tensor_make(
        f->m,
        &(ptowsp_tensor_desc){.name = "x", .dtype = PTOWSP_I32, .rank = 3, .shape = {2, 4, 8}});
    ptowsp_tensor y = ptowsp_tensor_make(
        f->m, &(ptowsp_tensor_desc){.name = "y", .dtype = PTOWSP_I32, .rank = 2, .shape = {4, 8}});
    ptowsp_kernel k = ptowsp_kernel_make(
        f->m, &(ptowsp_kernel_desc){.name = "k",
                                    .tiles = {{"a", PTOWSP_IN, PTOWSP_I32, 2, PTOWSP_DYNAMIC},
                                              {"b", PTOWSP_INOUT, PTOWSP_I32, 4, 4}},
                                    .scalars = {{"s", PTOWSP_TYPE_U64}, {"t", PTOWSP_TYPE_BOOL}},
                                    .cycles = 1});
    ptowsp_expr one = ptowsp_i64(f->m, 1);
    PTOWSP_WORKLOAD(f->m, "w") {
        ptowsp_view element = {
            .tensor = x, .index = {one}, .row = ptowsp_slot(f->m, 0, PTOWSP_TYPE_I64), .rows = 2};
        ptowsp_slot_set_make(f->m, 0, ptowsp_u64(f->m, 5));
        ptowsp_slot_load_make(f->m, 1, &element, one, (ptowsp_expr){NULL, 0});
        PTOWSP_WHEN(f->m, ptowsp_slot(f->m, 1, PTOWSP_TYPE_BOOL)) {
            ptowsp_slot_set_make(f->m, 2, ptowsp_symbol(f->m, "s"));
        }
        ptowsp_task_make(f->m,
                         &(ptowsp_task_desc){
                             .kernel = k,
                             .views = {{.tensor = x, .index = {one}, .col = one},
                                       {.tensor = y, .row = ptowsp_slot(f->m, 3, PTOWSP_TYPE_I64)}},
                             .scalars = {ptowsp_symbol(f->m, "s"), ptowsp_bool(f->m, false)}});
    }
    ptowsp_symbol(f->m, "unused");
    check_statements(f, "0 WORKLOAD w end 7\n"
                        "1 SLOT_SET 0 5u\n"
                        "2 SLOT_LOAD 1 r x[1; slot0+2, +1] row 1\n"
                        "3 WHEN slot1 end 5\n"
                        "4 SLOT_SET 2 s\n"
                        "5 END of 3\n"
                        "6 TASK k r x[1; +2, 1+0] rw y[slot3+4, +4] scalars s, false\n"
                        "7 END of 0\n");
    ptowsp_tensor_info info = read_tables(f)->tensors[x.id];
    assert_int_equal(read_tables(f)->tensor_count, 3);
    assert_true(info.is_used && info.is_loaded && !info.is_written);
    assert_int_equal(info.desc.shape[2], 8);
    info = read_tables(f)->tensors[y.id];
    assert_true(info.is_used && !info.is_loaded && info.is_written);
    assert_int_equal(read_tables(f)->symbol_count, 3);
    assert_true(read_tables(f)->symbols[1].is_used);
    assert_false(read_tables(f)->symbols[2].is_used);
}

// Each task of a list has its own tiles: tables have none for its kernels. Those of a statement between
// two lists are its own.
FIXTURE_TEST(read__lists_have_no_tiles) {
    const ptowsp_tensor_desc xd = {.name = "x", .dtype = PTOWSP_F32, .rank = 2, .shape = {8, 8}};
    const ptowsp_tensor_desc yd = {.name = "y", .dtype = PTOWSP_F32, .rank = 2, .shape = {8, 8}};
    const ptowsp_tensor x = ptowsp_tensor_make(f->m, &xd), y = ptowsp_tensor_make(f->m, &yd);
    const ptowsp_kernel k = ptowsp_kernel_make(
        f->m, &(ptowsp_kernel_desc){
                  .name = "k", .tiles = {{"t", PTOWSP_IN, PTOWSP_F32, 4, 4}}, .cycles = 1});
    const ptowsp_list_view view = {.tensor = x};
    const ptowsp_task_list list = {.task_count = 1, .kernels = &k, .views = &view, .view_count = 1};
    PTOWSP_WORKLOAD(f->m, "w") {
        ptowsp_task_list_make(f->m, &list);
        ptowsp_task_make(f->m, &(ptowsp_task_desc){.kernel = k, .views = {{.tensor = y}}});
        ptowsp_task_list_make(f->m, &list);
    }
    assert_int_equal(ptowsp_program_create(f->context, f->m, NULL, &f->program), PTOWSP_OK);
    const ptowsp_program_tables *tables = read_tables(f);
    assert_int_equal(tables->task_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(tables->tasks[i].tile_count, i == 1);
        assert_int_equal(tables->tasks[i].kernel, k.id);
    }
    assert_null(tables->tasks[0].tiles);
    assert_int_equal(tables->tasks[1].tiles[0].tensor, y.id);
    assert_null(tables->tasks[2].tiles);
}

// Edges are numbered by who waits: b for a, c for a, c for b. Each is forgotten where its scope, or
// an iteration of it, begins.
FIXTURE_TEST(read__explicit_edges_and_where_they_are_reset) {
    ptowsp_kernel a = kernel_make(f->m, "a", 1), b = kernel_make(f->m, "b", 1);
    ptowsp_kernel c = kernel_make(f->m, "c", 1);
    PTOWSP_WORKLOAD(f->m, "w") {
        ptowsp_node first = {0}, second = {0};
        PTOWSP_PARALLEL(f->m, i, ptowsp_axis_dense(f->m, "heads", 2)) {
            first = task1(f->m, a, i);
            second = ptowsp_task_make(
                f->m, &(ptowsp_task_desc){.kernel = b, .axes = {i}, .after = {first}});
        }
        ptowsp_task_make(f->m, &(ptowsp_task_desc){.kernel = c,
                                                   .axes = {ptowsp_i64(f->m, 0)},
                                                   .after = {first, second}});
    }
    f->schedule.dependencies = PTOWSP_DEPENDENCIES_EXPLICIT;
    check_statements(f, "0 WORKLOAD w end 8\n"
                        "1 RESET 1,2\n"
                        "2 LOOP i in heads parallel end 6\n"
                        "3 RESET 0\n"
                        "4 TASK a i out 0,1\n"
                        "5 TASK b i in 0 out 2\n"
                        "6 END of 2\n"
                        "7 TASK c 0 in 1,2\n"
                        "8 END of 0\n");
    assert_int_equal(read_tables(f)->edge_count, 3);
}

// -- pipelines ------------------------------------------------------------------------------------

// What kernels were called with, in any order.
typedef struct calls {
    uint64_t seen[64];
    uint32_t count;
} calls;

static void note(calls *list, const char *kernel, uint64_t axis) {
    assert_true(list->count < 64);
    list->seen[list->count++] = (uint64_t)kernel[0] << 32 | axis;
}

static ptowsp_cycles note_call(const ptowsp_task *task, void *user) {
    note((calls *)user, task->kernel_name, task->args[0]);
    return 10;
}

static void note_walk(read_walker *w, uint32_t statement, const ptowsp_task *task, void *user) {
    (void)w;
    (void)statement;
    note((calls *)user, task->kernel_name, task->args[0]);
}

static int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

// Executes the program and walks its statements: both make the same calls, in some order.
static void check_calls(fixture *f, ptowsp_run *run, calls *executed) {
    executed->count = 0;
    assert_int_equal(ptowsp_run_execute(run, NULL), PTOWSP_OK);
    calls walked = {{0}, 0};
    read_walker *w = (read_walker *)calloc(1, sizeof *w);
    assert_non_null(w);
    w->program = f->program;
    w->run = run;
    w->task = note_walk;
    w->user = &walked;
    read_walk_program(w);
    free(w);
    assert_int_equal(walked.count, executed->count);
    qsort(walked.seen, walked.count, sizeof walked.seen[0], compare);
    qsort(executed->seen, executed->count, sizeof executed->seen[0], compare);
    assert_memory_equal(walked.seen, executed->seen, walked.count * sizeof walked.seen[0]);
}

static void build_pipeline(fixture *f, ptowsp_kernel k, ptowsp_kernel write, ptowsp_tensor x) {
    ptowsp_module *m = f->m;
    ptowsp_axis tiles = ptowsp_axis_dense(m, "tiles", 3),
                workers = ptowsp_axis_dense(m, "workers", 2);
    PTOWSP_WORKLOAD(m, "leaf") {
        PTOWSP_PARALLEL(m, j, tiles) {
            task1(m, k, j);
        }
    }
    PTOWSP_WORKLOAD(m, "w") {
        task1(m, k, ptowsp_i64(m, 0));
        PTOWSP_PIPELINE(m, "p") {
            ptowsp_channel loaded = ptowsp_channel_make(
                m, &(ptowsp_channel_desc){.name = "loaded", .depth = 2, .latency = 50});
            ptowsp_channel back = ptowsp_channel_make(
                m, &(ptowsp_channel_desc){.name = "back",
                                          .depth_at_start = ptowsp_symbol(m, "d"),
                                          .latency_at_start = ptowsp_u64(m, 3)});
            ptowsp_channel go = ptowsp_event_make(m, "go");
            PTOWSP_PROCESS(m, "load") {
                ptowsp_produces(m, loaded);
                ptowsp_produces(m, go);
                ptowsp_consumes(m, back);
                PTOWSP_FOR_EACH(m, i, tiles) {
                    ptowsp_send_task_make(m, loaded,
                                          &(ptowsp_task_desc){.kernel = write,
                                                              .axes = {i},
                                                              .views = {{.tensor = x, .row = i}}});
                }
                ptowsp_record_make(m, go);
                ptowsp_close_make(m, loaded);
                PTOWSP_RECEIVE(m, t, back) {
                }
            }
            PTOWSP_REPLICATE(m, r, workers, "compute") {
                ptowsp_consumes(m, loaded);
                ptowsp_produces(m, back);
                PTOWSP_CONSUME(m, t, loaded) {
                    ptowsp_send_make(m, back, t);
                    PTOWSP_WHEN(m, ptowsp_lt(t, ptowsp_i64(m, 1))) {
                        task1(m, k, ptowsp_add(t, ptowsp_mul(r, ptowsp_i64(m, 0))));
                    }
                }
            }
            PTOWSP_PROCESS(m, "last") {
                ptowsp_consumes(m, go);
                ptowsp_wait_make(m, go);
                ptowsp_call_make(m, "leaf", NULL, 0);
            }
        }
    }
}

FIXTURE_TEST(read__pipelines_have_their_statements) {
    calls executed = {{0}, 0};
    int32_t data[24];
    ptowsp_tensor x = ptowsp_tensor_make(
        f->m, &(ptowsp_tensor_desc){.name = "x", .dtype = PTOWSP_I32, .rank = 2, .shape = {3, 8}});
    ptowsp_kernel k = ptowsp_kernel_make(
        f->m,
        &(ptowsp_kernel_desc){.name = "k", .axis_count = 1, .fn = note_call, .user = &executed});
    ptowsp_kernel write = ptowsp_kernel_make(
        f->m, &(ptowsp_kernel_desc){.name = "write",
                                    .axis_count = 1,
                                    .tiles = {{"x", PTOWSP_OUT, PTOWSP_I32, 1, 8}},
                                    .fn = note_call,
                                    .user = &executed});
    build_pipeline(f, k, write, x);
    check_statements(f, "0 WORKLOAD w end 26\n"
                        "1 TASK k 0\n"
                        "2 PIPELINE p channel loaded 2 50 channel back 0 0 depth d latency 3u "
                        "event go 0 0 w x[+0, +0] end 25\n"
                        "3 PROCESS load <back >!loaded >go end 12\n"
                        "4 LOOP i in tiles end 7\n"
                        "5 TASK write i w x[i+1, +8]\n"
                        "6 SEND loaded i\n"
                        "7 END of 4\n"
                        "8 RECORD go\n"
                        "9 CLOSE loaded\n"
                        "10 RECEIVE t back end 11\n"
                        "11 END of 10\n"
                        "12 END of 3\n"
                        "13 PROCESS compute r in workers <loaded >back end 20\n"
                        "14 CONSUME t loaded end 19\n"
                        "15 SEND back t\n"
                        "16 WHEN (< t 1) end 18\n"
                        "17 TASK k (+ t (* r 0))\n"
                        "18 END of 16\n"
                        "19 END of 14\n"
                        "20 END of 13\n"
                        "21 PROCESS last <go end 24\n"
                        "22 WAIT go\n"
                        "23 CALL leaf\n"
                        "24 END of 21\n"
                        "25 END of 2\n"
                        "26 END of 0\n"
                        "27 WORKLOAD leaf end 31\n"
                        "28 LOOP j in tiles end 30\n"
                        "29 TASK k j\n"
                        "30 END of 28\n"
                        "31 END of 27\n");
    uint32_t symbol = read_tables(f)->latency_symbol;
    assert_string_equal(read_tables(f)->symbols[symbol].name, PTOWSP_CHANNEL_LATENCY_SYMBOL);
    assert_int_equal(read_tables(f)->channel_count, 3);
    ptowsp_run *run = test_run_of(f->context, f->program);
    assert_int_equal(ptowsp_run_bind_symbol(run, "d", 3), PTOWSP_OK);
    assert_int_equal(ptowsp_run_bind_tensor(run, "x", &(ptowsp_buffer){.data = data}), PTOWSP_OK);
    check_calls(f, run, &executed);
    assert_int_equal(executed.count, 1 + 3 + 1 + 3);
    ptowsp_run_destroy(run);
}

// -- schedules ------------------------------------------------------------------------------------

// A key is that of each task: its loop's variable, its tag (0 without one), its arguments.
FIXTURE_TEST(read__keys_are_those_of_each_task) {
    ptowsp_kernel k = kernel_make(f->m, "k", 1);
    ptowsp_axis batch = ptowsp_axis_dynamic(f->m, "batch"),
                heads = ptowsp_axis_dense(f->m, "heads", 2);
    PTOWSP_WORKLOAD(f->m, "w") {
        PTOWSP_PARALLEL(f->m, b, batch) {
            ptowsp_expr level = ptowsp_cast(ptowsp_add(b, ptowsp_i64(f->m, 1)), PTOWSP_TYPE_U64);
            ptowsp_task_make(
                f->m, &(ptowsp_task_desc){.kernel = k, .axes = {b}, .tags = {{"level", level}}});
            PTOWSP_PARALLEL(f->m, h, heads) {
                task1(f->m, k, h);
            }
        }
        PTOWSP_PARALLEL(f->m, b, heads) {
            task1(f->m, k, b);
        }
    }
    f->schedule.lane_count = 3;
    f->schedule.dispatch = PTOWSP_DISPATCH_AFFINITY;
    f->schedule.dispatch_key =
        ptowsp_add(ptowsp_cast(ptowsp_task_variable(f->m, "b"), PTOWSP_TYPE_U64),
                   ptowsp_task_tag(f->m, "level"));
    f->schedule.ready = PTOWSP_READY_PRIORITY;
    f->schedule.priority_key = ptowsp_sub(ptowsp_task_arg(f->m, 0), ptowsp_i64(f->m, 3));
    f->schedule.stream_count = 2;
    f->schedule.stream_key = ptowsp_symbol(f->m, "s");
    check_statements(f,
                     "0 WORKLOAD w end 10\n"
                     "1 LOOP b in batch parallel end 6\n"
                     "2 TASK k b dispatch (+ (u64 b) (u64 (+ b 1))) priority (- arg0 3) stream s\n"
                     "3 LOOP h in heads end 5\n"
                     "4 TASK k h dispatch (+ (u64 b) 0u) priority (- arg0 3) stream s\n"
                     "5 END of 3\n"
                     "6 END of 1\n"
                     "7 LOOP b in heads parallel end 9\n"
                     "8 TASK k b dispatch (+ (u64 b) 0u) priority (- arg0 3) stream s\n"
                     "9 END of 7\n"
                     "10 END of 0\n");
    ptowsp_task_info first = read_tables(f)->tasks[read_tables(f)->statements[2].task];
    ptowsp_task_info last = read_tables(f)->tasks[read_tables(f)->statements[8].task];
    assert_int_equal(first.priority_key, last.priority_key);  // the same for all: there once
    ptowsp_expr_info sum = read_tables(f)->exprs[last.dispatch_key];
    ptowsp_expr_info variable = read_tables(f)->exprs[read_tables(f)->exprs[sum.a].a];
    assert_int_equal(variable.id, read_tables(f)->statements[7].variable);
    ptowsp_schedule schedule = read_tables(f)->schedule;
    assert_null(schedule.dispatch_key.module);
    assert_int_equal(schedule.dependencies, PTOWSP_DEPENDENCIES_HYBRID);
    assert_int_equal(ptowsp_program_lane_count(f->program), 3);
    assert_true(read_tables(f)->is_priority_signed);
    ptowsp_program_print_schedule(f->program, sink(f));
    assert_non_null(
        strstr(f->text, "dispatch affinity of u64(task.b) + task.tag(level) over 3 lanes"));
}

// The program does not need its module, and says the same without it.
TEST(read__a_program_outlives_its_module) {
    fixture f;
    char before[sizeof f.text];
    fixture_make(&f);
    ptowsp_kernel k = kernel_make(f.m, "k", 1);
    PTOWSP_WORKLOAD(f.m, "w") {
        PTOWSP_PARALLEL(f.m, b, ptowsp_axis_dynamic(f.m, "batch")) {
            task1(f.m, k, ptowsp_array_at(f.m, "order", PTOWSP_I32, b));
        }
    }
    check_statements(&f, "0 WORKLOAD w end 4\n"
                         "1 LOOP b in batch parallel end 3\n"
                         "2 TASK k order[b]\n"
                         "3 END of 1\n"
                         "4 END of 0\n");
    memcpy(before, f.text, sizeof before);
    ptowsp_module_destroy(f.m);
    f.m = NULL;
    sink(&f);
    for (uint32_t i = 0; i < read_tables(&f)->statement_count; i++) {
        say_statement(&f, i);
    }
    assert_string_equal(f.text, before);
    fixture_free(&f);
}

// Each allocation that reading makes is refused once: there are no tables then, and all of them the
// next time, made once.
TEST(read__there_are_all_tables_or_none) {
    uint32_t refused = 0;
    for (bool is_over = false; !is_over;) {
        test_memory memory = {0, 0, 0, 0};
        fixture f = {0};
        const ptowsp_context_desc desc = {.resize = test_resize, .resize_user = &memory};
        assert_int_equal(ptowsp_context_create(&desc, &f.context), PTOWSP_OK);
        assert_int_equal(ptowsp_module_create(f.context, NULL, &f.m), PTOWSP_OK);
        ptowsp_kernel k = kernel_make(f.m, "k", 1);
        PTOWSP_WORKLOAD(f.m, "w") {
            PTOWSP_PARALLEL(f.m, b, ptowsp_axis_dynamic(f.m, "batch")) {
                for (int i = 0; i < 200; i++) {
                    task1(f.m, k, b);
                }
            }
        }
        assert_int_equal(ptowsp_program_create(f.context, f.m, NULL, &f.program), PTOWSP_OK);
        memory.refuse_at = memory.allocations + refused + 1;
        const ptowsp_program_tables *tables = ptowsp_program_read(f.program);
        is_over = memory.allocations < memory.refuse_at;
        assert_int_equal(tables != NULL, is_over);
        refused += !is_over;
        memory.refuse_at = 0;
        tables = ptowsp_program_read(f.program);
        assert_non_null(tables);
        assert_int_equal(tables->task_count, 200);
        assert_string_equal(tables->kernels[tables->tasks[199].kernel].name, "k");
        const size_t allocations = memory.allocations;
        assert_ptr_equal(ptowsp_program_read(f.program), tables);
        assert_int_equal(memory.allocations, allocations);
        fixture_free(&f);
        assert_int_equal(memory.live_blocks, 0);
    }
    assert_true(refused > 0);
}
