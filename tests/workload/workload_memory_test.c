// Memory of workloads: any allocation may fail, from building through compiling to running; running
// again allocates nothing; and what a run holds does not grow with the number of its tasks.

#include "test.h"

enum { FAMILY_COUNT = 5 };

typedef struct fixture {
    test_memory memory;
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
    ptowsp_run *run;
    int32_t data[8 * 8], flags[4];  // of x and of flags
} fixture;

static ptowsp_cycles add_one(const ptowsp_task *task, void *user) {
    (void)user;
    for (uint32_t t = 0; t < task->tile_count; t++) {
        int32_t *data = (int32_t *)task->tiles[t].data;
        data[0]++;
    }
    return 1 + task->index % 5;
}

static ptowsp_cycles some_cycles(const ptowsp_task *task, void *user) {
    (void)user;
    return 1 + task->index % 5;
}

// The families of schedules: in order; fifo with every dependency; priority; two ways of stealing.
static ptowsp_schedule family(ptowsp_module *m, int which) {
    ptowsp_schedule schedule;
    memset(&schedule, 0, sizeof schedule);
    schedule.lane_count = 3;
    schedule.window = 8;
    switch (which) {
    case 0:
        schedule.issue = PTOWSP_ISSUE_IN_ORDER;
        schedule.dependencies = PTOWSP_DEPENDENCIES_HYBRID;
        break;
    case 1:
        schedule.dispatch = PTOWSP_DISPATCH_AFFINITY;
        schedule.dispatch_key = ptowsp_task_tag(m, "level");
        schedule.dependencies = 15;
        schedule.stream_count = 4;
        schedule.stream_key = ptowsp_task_arg(m, 0);
        break;
    case 2:
        schedule.ready = PTOWSP_READY_PRIORITY;
        schedule.priority_key = ptowsp_add(ptowsp_task_arg(m, 0), ptowsp_i64(m, 3));
        schedule.dependencies = 15;
        break;
    case 3:
        schedule.dispatch = PTOWSP_DISPATCH_WORK_STEALING;
        schedule.stream_count = 2;
        schedule.stream_key = ptowsp_task_arg(m, 0);
        schedule.timing = PTOWSP_TIMING_INTERLEAVED;
        schedule.timing_cycles = 2;
        break;
    default: schedule.ready = PTOWSP_READY_WORK_STEALING; break;
    }
    return schedule;
}

// -- a program with every kind of node ------------------------------------------------------------

static ptowsp_tensor tensor_make(ptowsp_module *m, const char *name, int64_t rows, int64_t cols) {
    const ptowsp_tensor_desc desc = {
        name, PTOWSP_I32, 2, {rows, cols, 0, 0, 0, 0, 0, 0}, PTOWSP_LOCATION_GLOBAL};
    return ptowsp_tensor_make(m, &desc);
}

static ptowsp_kernel kernel_make(ptowsp_module *m, const char *name, bool has_cost) {
    const ptowsp_tile_param tile = {"tile", PTOWSP_INOUT, PTOWSP_I32, 2, 2};
    const ptowsp_scalar_param scalar = {"scale", PTOWSP_TYPE_U64};
    ptowsp_kernel_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = name;
    desc.axis_count = 1;
    desc.tiles[0] = tile;
    desc.scalars[0] = scalar;
    desc.fn = add_one;
    desc.cost = has_cost ? some_cycles : NULL;
    return ptowsp_kernel_make(m, &desc);
}

static ptowsp_task_desc task_desc(ptowsp_module *m, ptowsp_kernel kernel, ptowsp_tensor x,
                                  ptowsp_expr row, ptowsp_expr col) {
    ptowsp_task_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.kernel = kernel;
    desc.axes[0] = row;
    desc.views[0].tensor = x;
    desc.views[0].row = row;
    desc.views[0].col = col;
    desc.scalars[0] = ptowsp_symbol(m, "scale");
    desc.tags[0].name = "level";
    desc.tags[0].value = ptowsp_cast(row, PTOWSP_TYPE_U64);
    return desc;
}

// Builds all of it, whether or not the module has failed on the way.
static void build_everything(ptowsp_module *m) {
    ptowsp_axis batch = ptowsp_axis_dynamic(m, "batch"), pair = ptowsp_axis_dense(m, "pair", 2);
    ptowsp_axis kv = ptowsp_axis_ragged(m, "kv"), pages = ptowsp_axis_sparse(m, "pages");
    ptowsp_tensor x = tensor_make(m, "x", 8, 8), flags = tensor_make(m, "flags", 1, 4);
    ptowsp_kernel one = kernel_make(m, "one", true), two = kernel_make(m, "two", false);
    ptowsp_expr zero = ptowsp_i64(m, 0);
    PTOWSP_WORKLOAD(m, "part") {
        ptowsp_expr n = ptowsp_workload_param(m, "n", PTOWSP_TYPE_I64);
        PTOWSP_FOR_EACH(m, i, pair) {
            ptowsp_task_desc desc = task_desc(m, one, x, ptowsp_min(n, ptowsp_i64(m, 6)), i);
            ptowsp_node first = ptowsp_task_make(m, &desc);
            desc.kernel = two;
            desc.after[0] = first;
            ptowsp_task_make(m, &desc);
        }
    }
    PTOWSP_WORKLOAD(m, "main") {
        ptowsp_slot_set_make(m, 0, ptowsp_i64(m, 1));
        PTOWSP_PARALLEL(m, b, batch) {
            PTOWSP_PARALLEL(m, k, ptowsp_axis_row(m, kv, b)) {
                ptowsp_task_desc desc = task_desc(m, one, x, b, ptowsp_rem(k, ptowsp_i64(m, 7)));
                ptowsp_task_make(m, &desc);
            }
            PTOWSP_SELECT(m, p, ptowsp_axis_row(m, pages, b)) {
                ptowsp_expr n = ptowsp_array_at(m, "table", PTOWSP_U8, p);
                n = ptowsp_cast(n, PTOWSP_TYPE_I64);
                ptowsp_call_make(m, "part", &n, 1);
            }
        }
        PTOWSP_COMBINE(m) {
            ptowsp_task_desc desc = task_desc(m, two, x, zero, ptowsp_i64(m, 4));
            ptowsp_task_make(m, &desc);
            PTOWSP_SEQUENCE(m) {
                ptowsp_view view;
                memset(&view, 0, sizeof view);
                view.tensor = flags;
                ptowsp_slot_load_make(m, 1, &view, zero, zero);
                PTOWSP_WHEN(m, ptowsp_slot(m, 1, PTOWSP_TYPE_BOOL)) {
                    ptowsp_task_make(m, &desc);
                }
                PTOWSP_OTHERWISE(m) {
                    desc.kernel = one;
                    ptowsp_task_make(m, &desc);
                }
            }
        }
    }
}

static ptowsp_status bind_everything(fixture *f) {
    static const int32_t lengths[] = {3, 0, 9, 1};
    static const uint32_t indptr[] = {0, 1, 1, 3, 5}, indices[] = {2, 0, 1, 3, 2};
    static const uint8_t table[] = {0, 2, 4, 1};
    const ptowsp_csr csr = {PTOWSP_U32, indptr, indices, 4, 5};
    ptowsp_buffer buffer;
    memset(&buffer, 0, sizeof buffer);
    buffer.data = f->data;
    ptowsp_status status = ptowsp_run_bind_tensor(f->run, "x", &buffer);
    buffer.data = f->flags;
    status = status ? status : ptowsp_run_bind_tensor(f->run, "flags", &buffer);
    status = status ? status : ptowsp_run_bind_size(f->run, "batch", 4);
    status = status ? status : ptowsp_run_bind_symbol(f->run, "scale", 2);
    status = status ? status : ptowsp_run_bind_lengths(f->run, "kv", PTOWSP_I32, lengths, 4);
    status = status ? status : ptowsp_run_bind_csr(f->run, "pages", &csr);
    return status ? status : ptowsp_run_bind_array(f->run, "table", PTOWSP_U8, table, 4);
}

enum { TASK_COUNT = 13 + 5 * 4 + 2 };

static ptowsp_status execute(const fixture *f, bool has_records) {
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_EXECUTE, .record_tasks = has_records};
    return ptowsp_run_execute(f->run, &options);
}

static void fixture_free(fixture *f) {
    test_destroy(f->run, f->program, f->m, f->context);
    assert_int_equal(f->memory.live_bytes, 0);
    assert_int_equal(f->memory.live_blocks, 0);
}

// From nothing to a run that has been executed. Returns the first status that is not OK.
static ptowsp_status do_everything(fixture *f, int which, bool has_records) {
    const ptowsp_context_desc desc = {test_resize, &f->memory, PTOWSP_THREADS_SERIAL,
                                      1,           NULL,       NULL};
    ptowsp_status status = ptowsp_context_create(&desc, &f->context);
    status = status ? status : ptowsp_module_create(f->context, NULL, &f->m);
    if (status) {
        return status;
    }
    build_everything(f->m);
    ptowsp_schedule schedule = family(f->m, which);
    const ptowsp_program_desc program = {NULL, &schedule};
    if (ptowsp_module_error(f->m).status == PTOWSP_OK) {
        assert_true(ptowsp_expr_type(schedule.dispatch_key) != PTOWSP_TYPE_NONE || which != 1);
    } else {  // without keys the schedule would be refused for that
        memset(&schedule, 0, sizeof schedule);
    }
    status = ptowsp_program_create(f->context, f->m, &program, &f->program);
    status = status ? status : ptowsp_run_create(f->context, f->program, &f->run);
    status = status ? status : bind_everything(f);
    return status ? status : execute(f, has_records);
}

// -- every allocation fails -----------------------------------------------------------------------

typedef struct outcome {
    int32_t data[8 * 8];
    ptowsp_cycles makespan, busy;
    uint64_t path_length;
} outcome;

// Executes with fresh data and returns what came of it.
static outcome result_of(fixture *f, bool has_records) {
    outcome result;
    memset(&result, 0, sizeof result);
    memset(f->data, 0, sizeof f->data);
    assert_int_equal(execute(f, has_records), PTOWSP_OK);
    memcpy(result.data, f->data, sizeof f->data);
    result.makespan = ptowsp_run_result(f->run)->makespan_cycles;
    result.busy = ptowsp_run_result(f->run)->busy_cycles;
    ptowsp_run_critical_path(f->run, &result.path_length);
    assert_int_equal(ptowsp_run_result(f->run)->task_count, TASK_COUNT);
    return result;
}

static void fail_each_allocation(int which, bool has_records) {
    fixture f;
    memset(&f, 0, sizeof f);
    assert_int_equal(do_everything(&f, which, has_records), PTOWSP_OK);
    outcome expected = result_of(&f, has_records);
    fixture_free(&f);
    size_t count = f.memory.allocations, running = 0;
    for (size_t n = 1;; n++) {
        memset(&f, 0, sizeof f);
        f.memory.refuse_at = n;
        ptowsp_status status = do_everything(&f, which, has_records);
        if (status == PTOWSP_OK) {
            assert_true(n > count);
            fixture_free(&f);
            break;
        }
        assert_int_equal(status, PTOWSP_OUT_OF_MEMORY);
        if (f.context) {
            ptowsp_error error = ptowsp_context_error(f.context);
            assert_int_equal(error.status, PTOWSP_OUT_OF_MEMORY);
            assert_non_null(strstr(error.text, "out of memory"));
        }
        if (f.m && !f.program) {  // what there is can be printed
            char text[4000];
            ptowsp_output_buffer buffer = {text, sizeof text, 0};
            ptowsp_module_print(f.m, ptowsp_output_to_buffer(&buffer));
            assert_null(strstr(text, "(null)"));
        }
        if (f.run) {  // only running has failed: it can be done again
            running++;
            outcome result = result_of(&f, has_records);
            assert_memory_equal(&result, &expected, sizeof result);
        } else if (f.m && ptowsp_module_error(f.m).status == PTOWSP_OK) {  // only compiling
            ptowsp_schedule schedule = family(f.m, which);
            const ptowsp_program_desc desc = {NULL, &schedule};
            if (!f.program) {
                assert_int_equal(ptowsp_program_create(f.context, f.m, &desc, &f.program),
                                 PTOWSP_OK);
            }
            assert_int_equal(ptowsp_run_create(f.context, f.program, &f.run), PTOWSP_OK);
            assert_int_equal(bind_everything(&f), PTOWSP_OK);
            outcome result = result_of(&f, has_records);
            assert_memory_equal(&result, &expected, sizeof result);
        }
        fixture_free(&f);
    }
    assert_true(running > 3);
}

TEST(workload_memory__any_allocation_may_fail) {
    for (int which = 0; which < FAMILY_COUNT; which++) {
        fail_each_allocation(which, false);
        fail_each_allocation(which, true);
    }
}

// While a large program runs, in each family, allocations of all its growing parts are refused one
// by one.
static void build_wide(ptowsp_module *m, bool is_burst) {
    ptowsp_axis batch = ptowsp_axis_dynamic(m, "batch"), inner = ptowsp_axis_dense(m, "inner", 3);
    ptowsp_tensor x = tensor_make(m, "x", PTOWSP_DYNAMIC, 8);
    ptowsp_kernel one = kernel_make(m, "one", true);
    PTOWSP_WORKLOAD(m, "main") {
        if (is_burst) {
            ptowsp_task_desc desc = task_desc(m, one, x, ptowsp_i64(m, 0), ptowsp_i64(m, 0));
            ptowsp_task_make(m, &desc);
        }
        PTOWSP_PARALLEL(m, b, batch) {
            if (is_burst) {
                ptowsp_task_desc desc = task_desc(
                    m, one, x, ptowsp_rem(ptowsp_mul(b, ptowsp_i64(m, 37)), ptowsp_i64(m, 101)),
                    ptowsp_i64(m, 4));
                desc.views[0].row = b;
                ptowsp_task_make(m, &desc);
            } else {
                PTOWSP_FOR_EACH(m, i, inner) {
                    ptowsp_task_desc desc = task_desc(m, one, x, ptowsp_add(b, i), i);
                    ptowsp_task_make(m, &desc);
                }
            }
        }
    }
}

static ptowsp_status bind_wide(fixture *f, int64_t size) {
    ptowsp_buffer buffer;
    memset(&buffer, 0, sizeof buffer);
    buffer.rank = 2;
    buffer.shape[0] = size + 4;
    buffer.shape[1] = 8;
    ptowsp_status status = ptowsp_run_bind_tensor(f->run, "x", &buffer);
    status = status ? status : ptowsp_run_bind_symbol(f->run, "scale", 1);
    return status ? status : ptowsp_run_bind_size(f->run, "batch", size);
}

// A run of the wide program, for a family of schedules, with so large a window.
static void make_wide(fixture *f, int which, bool is_burst, uint32_t window, int64_t size) {
    memset(f, 0, sizeof *f);
    const ptowsp_context_desc desc = {test_resize, &f->memory, PTOWSP_THREADS_SERIAL,
                                      1,           NULL,       NULL};
    assert_int_equal(ptowsp_context_create(&desc, &f->context), PTOWSP_OK);
    assert_int_equal(ptowsp_module_create(f->context, NULL, &f->m), PTOWSP_OK);
    build_wide(f->m, is_burst);
    ptowsp_schedule schedule = family(f->m, which);
    schedule.window = window;
    const ptowsp_program_desc program = {NULL, &schedule};
    assert_int_equal(ptowsp_program_create(f->context, f->m, &program, &f->program), PTOWSP_OK);
    assert_int_equal(ptowsp_run_create(f->context, f->program, &f->run), PTOWSP_OK);
    assert_int_equal(bind_wide(f, size), PTOWSP_OK);
}

static ptowsp_status time_wide(const fixture *f, bool has_records) {
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY, .record_tasks = has_records};
    return ptowsp_run_execute(f->run, &options);
}

TEST(workload_memory__growing_may_fail_in_the_middle_of_a_run) {
    const int64_t size = test_is_tight() ? 30 : 1000;  // where nearly every task asks for memory
    for (int kind = 0; kind < 4 * FAMILY_COUNT; kind++) {
        const int which = kind / 4;
        const bool has_records = kind & 1;
        fixture f;
        make_wide(&f, which, kind & 2, 4096, size);  // a burst: when the first task ends
        assert_int_equal(time_wide(&f, has_records), PTOWSP_OK);
        ptowsp_cycles makespan = ptowsp_run_result(f.run)->makespan_cycles;
        size_t failed = 0;
        for (bool is_done = false; !is_done; failed += !is_done) {
            ptowsp_run_destroy(f.run);
            assert_int_equal(ptowsp_run_create(f.context, f.program, &f.run), PTOWSP_OK);
            assert_int_equal(bind_wide(&f, size), PTOWSP_OK);
            f.memory.refuse_at = f.memory.allocations + failed + 1;
            ptowsp_status status = time_wide(&f, has_records);
            f.memory.refuse_at = 0;
            is_done = status == PTOWSP_OK;
            if (!is_done) {
                assert_int_equal(status, PTOWSP_OUT_OF_MEMORY);
                test_error_is(f.context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX,
                              "run: out of memory");
                assert_int_equal(time_wide(&f, has_records), PTOWSP_OK);
            }
            assert_int_equal(ptowsp_run_result(f.run)->makespan_cycles, makespan);
        }
        assert_true(failed > 5);
        fixture_free(&f);
    }
}

// Edges of a run, with scopes, streams, explicit edges and tiles that hide others.
static void build_edges(ptowsp_module *m) {
    ptowsp_axis batch = ptowsp_axis_dynamic(m, "batch"), inner = ptowsp_axis_dense(m, "inner", 3);
    ptowsp_tensor x = tensor_make(m, "x", PTOWSP_DYNAMIC, 8);
    ptowsp_kernel one = kernel_make(m, "one", true);
    PTOWSP_WORKLOAD(m, "main") {
        PTOWSP_PARALLEL(m, b, batch) {
            PTOWSP_FOR_EACH(m, i, inner) {
                ptowsp_task_desc desc = task_desc(m, one, x, ptowsp_add(b, i), i);
                const ptowsp_node first = ptowsp_task_make(m, &desc);
                desc.after[0] = first;
                ptowsp_task_make(m, &desc);
            }
        }
    }
}

static bool count_edge(void *user, const ptowsp_edge *edge) {
    ((size_t *)user)[edge->reason]++;
    return true;
}

// The status of a fresh run that records edges, of which it counts those of each reason.
static ptowsp_status record_edges(fixture *f, int64_t size, size_t refused, size_t *counts) {
    const ptowsp_record_options edges = {PTOWSP_RECORD_EDGES, 0, 0, 0, false};
    ptowsp_run_destroy(f->run);
    assert_int_equal(ptowsp_run_create(f->context, f->program, &f->run), PTOWSP_OK);
    assert_int_equal(ptowsp_run_record(f->run, &edges), PTOWSP_OK);
    assert_int_equal(bind_wide(f, size), PTOWSP_OK);
    f->memory.refuse_at = refused ? f->memory.allocations + refused : 0;
    const ptowsp_status status = time_wide(f, true);
    f->memory.refuse_at = 0;
    memset(counts, 0, PTOWSP_EDGE_COUNT * sizeof *counts);
    assert_true(ptowsp_run_edges(f->run, PTOWSP_NO_INDEX, count_edge, counts));
    return status;
}

TEST(workload_memory__edges_may_lack_memory_in_the_middle) {
    enum { SIZE = 100 };
    for (int which = 1; which < 4; which += 2) {  // both have streams
        fixture f;
        memset(&f, 0, sizeof f);
        const ptowsp_context_desc desc = {test_resize, &f.memory, PTOWSP_THREADS_SERIAL,
                                          1,           NULL,      NULL};
        assert_int_equal(ptowsp_context_create(&desc, &f.context), PTOWSP_OK);
        assert_int_equal(ptowsp_module_create(f.context, NULL, &f.m), PTOWSP_OK);
        build_edges(f.m);
        ptowsp_schedule schedule = family(f.m, which);
        schedule.dependencies = 15;
        const ptowsp_program_desc program = {NULL, &schedule};
        assert_int_equal(ptowsp_program_create(f.context, f.m, &program, &f.program), PTOWSP_OK);
        size_t counts[PTOWSP_EDGE_COUNT], again[PTOWSP_EDGE_COUNT], failed = 0;
        assert_int_equal(record_edges(&f, SIZE, 0, counts), PTOWSP_OK);
        assert_int_equal(counts[PTOWSP_EDGE_EXPLICIT], 3 * SIZE);
        // In each iteration, one to the first task and one to the second; none to the first of all.
        assert_int_equal(counts[PTOWSP_EDGE_STRUCTURE], 5 * SIZE);
        // To each task but the first of its stream.
        assert_int_equal(counts[PTOWSP_EDGE_STREAM], 6 * SIZE - schedule.stream_count);
        ptowsp_status status;
        while ((status = record_edges(&f, SIZE, failed + 1, again)) != PTOWSP_OK) {
            failed++;
            assert_int_equal(status, PTOWSP_OUT_OF_MEMORY);
            test_error_is(f.context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "run: out of memory");
            assert_int_equal(time_wide(&f, true), PTOWSP_OK);
            memset(again, 0, sizeof again);
            assert_true(ptowsp_run_edges(f.run, PTOWSP_NO_INDEX, count_edge, again));
            assert_memory_equal(again, counts, sizeof counts);
        }
        assert_true(failed > 20);
        assert_memory_equal(again, counts, sizeof counts);  // none is lost without an error
        fixture_free(&f);
    }
}

// -- running again --------------------------------------------------------------------------------

TEST(workload_memory__running_again_allocates_nothing) {
    if (test_is_tight()) {
        skip();
    }
    static const int32_t other_lengths[] = {0, 9, 1, 3};
    for (int which = 0; which < FAMILY_COUNT; which++) {
        for (int has_records = 0; has_records < 2; has_records++) {
            fixture f;
            memset(&f, 0, sizeof f);
            assert_int_equal(do_everything(&f, which, has_records), PTOWSP_OK);
            f.flags[0] = 1;  // the other branch, which has as many tasks
            assert_int_equal(execute(&f, has_records), PTOWSP_OK);
            size_t allocations = f.memory.allocations, bytes = f.memory.live_bytes;
            size_t memory_bytes = ptowsp_run_result(f.run)->memory_bytes;
            for (int i = 0; i < 6; i++) {
                f.flags[0] = i % 2;
                assert_int_equal(ptowsp_run_bind_symbol(f.run, "scale", (uint64_t)i), PTOWSP_OK);
                if (i == 3) {
                    assert_int_equal(
                        ptowsp_run_bind_lengths(f.run, "kv", PTOWSP_I32, other_lengths, 4),
                        PTOWSP_OK);
                }
                assert_int_equal(execute(&f, has_records), PTOWSP_OK);
                if (i != 3 || which < 3) {  // with other lengths, stealing goes another way
                    assert_int_equal(f.memory.allocations, allocations);
                    assert_int_equal(f.memory.live_bytes, bytes);
                    assert_int_equal(ptowsp_run_result(f.run)->memory_bytes, memory_bytes);
                }
                allocations = f.memory.allocations;
                bytes = f.memory.live_bytes;
                memory_bytes = ptowsp_run_result(f.run)->memory_bytes;
            }
            fixture_free(&f);
        }
    }
}

TEST(workload_memory__a_smaller_run_allocates_nothing) {
    for (int which = 0; which < FAMILY_COUNT; which++) {
        fixture f;
        make_wide(&f, which, false, 512, 3000);
        assert_int_equal(time_wide(&f, true), PTOWSP_OK);
        size_t allocations = f.memory.allocations;
        for (int64_t size = 3000; size >= 0; size -= 1000) {
            assert_int_equal(bind_wide(&f, size), PTOWSP_OK);
            assert_int_equal(time_wide(&f, size % 2000 == 0), PTOWSP_OK);
            assert_int_equal(ptowsp_run_result(f.run)->task_count, 3 * size);
            assert_int_equal(f.memory.allocations, allocations);
        }
        fixture_free(&f);
    }
}

// -- size -----------------------------------------------------------------------------------------

TEST(workload_memory__a_run_says_what_it_holds) {
    for (int which = 0; which < FAMILY_COUNT; which++) {
        fixture f;
        make_wide(&f, which, false, 512, 1000);
        size_t before = f.memory.live_bytes;
        assert_int_equal(time_wide(&f, true), PTOWSP_OK);
        size_t held = ptowsp_run_result(f.run)->memory_bytes;
        ptowsp_run_destroy(f.run);
        f.run = NULL;
        assert_true(f.memory.live_bytes < before);
        size_t without = f.memory.live_bytes;
        assert_int_equal(ptowsp_run_create(f.context, f.program, &f.run), PTOWSP_OK);
        assert_int_equal(bind_wide(&f, 1000), PTOWSP_OK);
        assert_int_equal(time_wide(&f, true), PTOWSP_OK);
        assert_int_equal(f.memory.live_bytes - without, held);
        fixture_free(&f);
    }
}

// The bytes that a run holds after so many tasks.
static size_t bytes_after(int which, uint32_t window, int64_t task_count) {
    fixture f;
    make_wide(&f, which, false, window, task_count / 3);
    assert_int_equal(time_wide(&f, false), PTOWSP_OK);
    assert_int_equal(ptowsp_run_result(f.run)->task_count, task_count / 3 * 3);
    size_t bytes = ptowsp_run_result(f.run)->memory_bytes;
    fixture_free(&f);
    return bytes;
}

TEST(workload_memory__a_run_grows_with_its_window_and_not_with_its_tasks) {
    static const int families[] = {0, 1, 3, 4};  // in order, fifo with hybrid, two that steal
    static const uint32_t windows[] = {64, 8192};
    for (int i = 0; i < 4; i++) {
        for (int w = 0; w < 2; w++) {
            // with a large window it takes some time until the map of regions is swept
            size_t few = bytes_after(families[i], windows[w], w == 0 ? 10000 : 50000);
            size_t many = bytes_after(families[i], windows[w], 300000);
            print_message("family %d, window %u: %zu bytes, %zu bytes\n", families[i], windows[w],
                          few, many);
            assert_int_equal(few, many);
        }
    }
}

TEST(workload_memory__a_program_is_small_whatever_it_runs_over) {
    if (test_is_tight()) {
        skip();
    }
    size_t sizes[2];
    static const int64_t extents[] = {2, INT64_C(1) << 40};
    for (int i = 0; i < 2; i++) {
        fixture f;
        memset(&f, 0, sizeof f);
        const ptowsp_context_desc desc = {test_resize, &f.memory, PTOWSP_THREADS_SERIAL,
                                          1,           NULL,      NULL};
        assert_int_equal(ptowsp_context_create(&desc, &f.context), PTOWSP_OK);
        assert_int_equal(ptowsp_module_create(f.context, NULL, &f.m), PTOWSP_OK);
        build_everything(f.m);
        PTOWSP_WORKLOAD(f.m, "entry") {
            PTOWSP_FOR_EACH(f.m, i2, ptowsp_axis_dense(f.m, "large", extents[i])) {
                (void)i2;
                ptowsp_call_make(f.m, "main", NULL, 0);
            }
        }
        size_t before = f.memory.live_bytes;
        assert_int_equal(ptowsp_program_create(f.context, f.m, NULL, &f.program), PTOWSP_OK);
        sizes[i] = ptowsp_program_size(f.program);
        assert_int_equal(f.memory.live_bytes - before, sizes[i]);  // all of it
        print_message("a program of %zu bytes\n", sizes[i]);
        fixture_free(&f);
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_true(sizes[0] < 36864);
}
