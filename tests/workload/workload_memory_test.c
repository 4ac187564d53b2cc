// Memory of workloads: any allocation may fail, from building through compiling to running; running
// again allocates nothing; and what a run holds does not grow with the number of its tasks.

#include "build_script.h"

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
    const ptowsp_schedule families[FAMILY_COUNT] = {
        {.issue = PTOWSP_ISSUE_IN_ORDER, .dependencies = PTOWSP_DEPENDENCIES_HYBRID},
        {.dispatch = PTOWSP_DISPATCH_AFFINITY,
         .dispatch_key = ptowsp_task_tag(m, "level"),
         .dependencies = 15,
         .stream_count = 4,
         .stream_key = ptowsp_task_arg(m, 0)},
        {.ready = PTOWSP_READY_PRIORITY,
         .priority_key = ptowsp_add(ptowsp_task_arg(m, 0), ptowsp_i64(m, 3)),
         .dependencies = 15},
        {.dispatch = PTOWSP_DISPATCH_WORK_STEALING,
         .stream_count = 2,
         .stream_key = ptowsp_task_arg(m, 0),
         .timing = PTOWSP_TIMING_INTERLEAVED,
         .timing_cycles = 2},
        {.ready = PTOWSP_READY_WORK_STEALING},
    };
    ptowsp_schedule schedule = families[which];
    schedule.lane_count = 3;
    schedule.window = 8;
    return schedule;
}

// -- programs -------------------------------------------------------------------------------------

#define ONE                                                                                        \
    "kernel one(axes 1, inout tile i32 2 x 2, scale u64) vector, cycles by a cost function\n"

// With every kind of node.
static const char everything[] =
    "module m\naxis batch dynamic\naxis pair 2\naxis kv ragged\naxis pages sparse\n"
    "symbol scale\narray table u8\ntensor x i32 [8, 8] global\ntensor flags i32 [1, 4] global\n" ONE
    "kernel two(axes 1, inout tile i32 2 x 2, scale u64) vector\n"
    "workload part(n i64)\n"
    "  for_each i in pair\n"
    "    task one(min(n, 6)) tile = x at (min(n, 6), i) scale = scale tag level = u64(n) as node "
    "3\n"
    "    task two(min(n, 6)) tile = x at (min(n, 6), i) scale = scale tag level = u64(n) after "
    "node 3\n"
    "workload main\n"
    "  slot_set 0 = 1\n"
    "  parallel b in batch\n"
    "    parallel k in kv[b]\n"
    "      task one(b) tile = x at (b, k % 7) scale = scale tag level = u64(b)\n"
    "    select p in pages[b]\n"
    "      call part(i64(table[p]))\n"
    "  combine\n"
    "    task two(0) tile = x at (0, 4) scale = scale tag level = 0u\n"
    "    sequence\n"
    "      slot_load 1 = flags element (0, 0)\n"
    "      when slot_bool[1]\n"
    "        task two(0) tile = x at (0, 4) scale = scale tag level = 0u\n"
    "      otherwise\n"
    "        task one(0) tile = x at (0, 4) scale = scale tag level = 0u\n";

#define WIDE                                                                                       \
    "module m\naxis batch dynamic\naxis inner 3\nsymbol scale\ntensor x i32 [?, 8] global\n" ONE   \
    "workload main\n"

static const char wide[] =
    WIDE "  parallel b in batch\n"
         "    for_each i in inner\n"
         "      task one(b + i) tile = x at (b + i, i) scale = scale tag level = u64(b + i)\n";

// A burst: all others begin when the first task ends.
static const char burst[] = WIDE
    "  task one(0) tile = x at (0, 0) scale = scale tag level = 0u\n"
    "  parallel b in batch\n"
    "    task one(b * 37 % 101) tile = x at (b, 4) scale = scale tag level = u64(b * 37 % 101)\n";

// Scopes, streams, explicit edges and tiles that hide others.
static const char edges[] = WIDE
    "  parallel b in batch\n"
    "    for_each i in inner\n"
    "      task one(b + i) tile = x at (b + i, i) scale = scale tag level = u64(b + i) as node 4\n"
    "      task one(b + i) tile = x at (b + i, i) scale = scale tag level = u64(b + i)"
    " after node 4\n";

static ptowsp_status module_of(fixture *f, const char *text) {
    const ptowsp_parse_kernel kernels[] = {{.name = "one", .fn = add_one, .cost = some_cycles},
                                           {.name = "two", .fn = add_one}};
    const ptowsp_parse_desc attached = {.kernels = kernels,
                                        .kernel_count = text == everything ? 2 : 1};
    return ptowsp_module_parse(f->context, text, strlen(text), &attached, &f->m, NULL);
}

static ptowsp_status bind_everything(fixture *f) {
    static const int32_t lengths[] = {3, 0, 9, 1};
    static const uint32_t indptr[] = {0, 1, 1, 3, 5}, indices[] = {2, 0, 1, 3, 2};
    static const uint8_t table[] = {0, 2, 4, 1};
    const ptowsp_csr csr = {PTOWSP_U32, indptr, indices, 4, 5};
    const ptowsp_buffer x = {.data = f->data}, flags = {.data = f->flags};
    ptowsp_status status = ptowsp_run_bind_tensor(f->run, "x", &x);
    status = status ? status : ptowsp_run_bind_tensor(f->run, "flags", &flags);
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

static ptowsp_status context_of(fixture *f) {
    const ptowsp_context_desc desc = {.resize = test_resize,
                                      .resize_user = &f->memory,
                                      .threads = PTOWSP_THREADS_SERIAL,
                                      .lane_count = 1};
    return ptowsp_context_create(&desc, &f->context);
}

// The program and the run of a module.
static ptowsp_status compile(fixture *f, int which, uint32_t window, uint32_t dependencies) {
    ptowsp_schedule schedule = family(f->m, which);
    schedule.window = window;
    schedule.dependencies |= dependencies;
    const ptowsp_program_desc program = {NULL, &schedule};
    const ptowsp_error error = ptowsp_module_error(f->m);  // of the schedule's keys
    ptowsp_status status = error.status;
    status = status || f->program ? status
                                  : ptowsp_program_create(f->context, f->m, &program, &f->program);
    return status ? status : ptowsp_run_create(f->context, f->program, &f->run);
}

// From nothing to a run that has been executed. Returns the first status that is not OK.
static ptowsp_status do_everything(fixture *f, int which, bool has_records) {
    ptowsp_status status = context_of(f);
    status = status ? status : module_of(f, everything);
    status = status ? status : compile(f, which, 8, 0);
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
    outcome result = {0};
    memset(f->data, 0, sizeof f->data);
    assert_ok(execute(f, has_records));
    memcpy(result.data, f->data, sizeof f->data);
    result.makespan = ptowsp_run_result(f->run)->makespan_cycles;
    result.busy = ptowsp_run_result(f->run)->busy_cycles;
    ptowsp_run_critical_path(f->run, &result.path_length);
    assert_int_equal(ptowsp_run_result(f->run)->task_count, TASK_COUNT);
    return result;
}

static void fail_each_allocation(int which, bool has_records) {
    fixture f = {0};
    assert_ok(do_everything(&f, which, has_records));
    const outcome expected = result_of(&f, has_records);
    fixture_free(&f);
    size_t count = f.memory.allocations, running = 0;
    for (size_t n = 1;; n++) {
        f = (fixture){.memory.refuse_at = n};
        const ptowsp_status status = do_everything(&f, which, has_records);
        if (status == PTOWSP_OK) {
            assert_true(n > count);
            fixture_free(&f);
            break;
        }
        assert_int_equal(status, PTOWSP_OUT_OF_MEMORY);
        const bool is_of_keys = f.m && ptowsp_module_error(f.m).status != PTOWSP_OK;
        if (f.context) {
            const ptowsp_error error =
                is_of_keys ? ptowsp_module_error(f.m) : ptowsp_context_error(f.context);
            assert_int_equal(error.status, PTOWSP_OUT_OF_MEMORY);
            assert_non_null(strstr(error.text, "out of memory"));
        }
        running += f.run != NULL;
        if (f.m && !f.run && !is_of_keys) {  // compiling has failed: it can be done again
            assert_ok(compile(&f, which, 8, 0));
            assert_ok(bind_everything(&f));
        }
        if (f.run) {  // so can running
            const outcome result = result_of(&f, has_records);
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

// Builds statements and names of every kind, whether or not the module has failed on the way.
static void build_names(const fixture *f) {
    static script s;
    static const char calls[] =
        "dynamic batch; ragged kv; axis pair 2; sparse pages; workload part; param n 2;"
        "for_each i pair; task one n view:x@0,i scalar:symbol:scale tag:level=1u;"
        "task one n view:x@0,i scalar:symbol:scale tag:level=1u after 3; end 2;"
        "workload main; parallel b batch; row kv b; parallel k row;"
        "task one k view:x@0,k scalar:symbol:scale tag:level=1u; end;"
        "row pages b; select p row; call part list:p; end 2;"
        "sequence; slot_load 1 view:x 0 0; when slot:1;"
        "task one 0 view:x scalar:symbol:scale tag:level=1u; end; otherwise;"
        "task one 0 view:x scalar:symbol:scale tag:level=1u; end 2;"
        "pipeline p; channel c; event e; replicate r pair make; produces c; produces e;"
        "send c r; send_task c one r view:x scalar:symbol:scale; close c; record e; end;"
        "process take; consumes c; consumes e; receive t c; end; consume u c; end;"
        "wait e; end 3";
    const ptowsp_tensor_desc tensor = {"x", PTOWSP_I32, 2, {8, 8}, PTOWSP_LOCATION_GLOBAL};
    const ptowsp_kernel_desc kernel = {.name = "one",
                                       .axis_count = 1,
                                       .tiles = {{"tile", PTOWSP_INOUT, PTOWSP_I32, 2, 2}},
                                       .scalars = {{"scale", PTOWSP_TYPE_U64}},
                                       .cycles = 1};
    memset(&s, 0, sizeof s);
    s.context = f->context;
    s.m = f->m;
    script_add(&s, SCRIPT_TENSOR, "x", ptowsp_tensor_make(f->m, &tensor).id);
    script_add(&s, SCRIPT_KERNEL, "one", ptowsp_kernel_make(f->m, &kernel).id);
    script_run(&s, calls);
}

// What there is of a module whose building has failed can be printed, and the error is that of memory.
TEST(workload_memory__modules_that_lack_memory_are_printed) {
    size_t failed = 0;
    for (bool is_done = false; !is_done; failed += !is_done) {
        fixture f = {0};
        assert_ok(context_of(&f));
        assert_ok(ptowsp_module_create(f.context, NULL, &f.m));
        f.memory.refuse_at = f.memory.allocations + failed + 1;
        build_names(&f);
        const ptowsp_error error = ptowsp_module_error(f.m);
        is_done = error.status == PTOWSP_OK;
        if (!is_done) {
            assert_int_equal(error.status, PTOWSP_OUT_OF_MEMORY);
            assert_non_null(strstr(error.text, "out of memory"));
        }
        char text[4000];
        ptowsp_module_print(f.m, TEST_TEXT(text));
        assert_in_range(strlen(text), 1, sizeof text - 2);  // all of it
        assert_null(strstr(text, "(null)"));
        fixture_free(&f);
    }
    assert_true(failed > 10);
}

// While a large program runs, in each family, allocations of all its growing parts are refused one
// by one.
static ptowsp_status bind_wide(fixture *f, int64_t size) {
    const ptowsp_buffer x = {.rank = 2, .shape = {size + 4, 8}};
    ptowsp_status status = ptowsp_run_bind_tensor(f->run, "x", &x);
    status = status ? status : ptowsp_run_bind_symbol(f->run, "scale", 1);
    return status ? status : ptowsp_run_bind_size(f->run, "batch", size);
}

// A run of a program over so many, for a family of schedules, with so large a window.
static void make_wide(fixture *f, const char *text, int which, uint32_t window, int64_t size) {
    *f = (fixture){0};
    assert_ok(context_of(f));
    assert_ok(module_of(f, text));
    assert_ok(compile(f, which, window, text == edges ? 15 : 0));
    assert_ok(bind_wide(f, size));
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
        make_wide(&f, kind & 2 ? burst : wide, which, 4096, size);
        assert_ok(time_wide(&f, has_records));
        ptowsp_cycles makespan = ptowsp_run_result(f.run)->makespan_cycles;
        size_t failed = 0;
        for (bool is_done = false; !is_done; failed += !is_done) {
            ptowsp_run_destroy(f.run);
            assert_ok(ptowsp_run_create(f.context, f.program, &f.run));
            assert_ok(bind_wide(&f, size));
            f.memory.refuse_at = f.memory.allocations + failed + 1;
            ptowsp_status status = time_wide(&f, has_records);
            f.memory.refuse_at = 0;
            is_done = status == PTOWSP_OK;
            if (!is_done) {
                test_refused(f.context, status, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX,
                             "run: out of memory");
                assert_ok(time_wide(&f, has_records));
            }
            assert_int_equal(ptowsp_run_result(f.run)->makespan_cycles, makespan);
        }
        assert_true(failed > 5);
        fixture_free(&f);
    }
}

static bool count_edge(void *user, const ptowsp_edge *edge) {
    ((size_t *)user)[edge->reason]++;
    return true;
}

// The status of a fresh run that records edges, of which it counts those of each reason.
static ptowsp_status record_edges(fixture *f, int64_t size, size_t refused, size_t *counts) {
    const ptowsp_record_options options = {PTOWSP_RECORD_EDGES, 0, 0, 0, false};
    ptowsp_run_destroy(f->run);
    assert_ok(ptowsp_run_create(f->context, f->program, &f->run));
    assert_ok(ptowsp_run_record(f->run, &options));
    assert_ok(bind_wide(f, size));
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
        make_wide(&f, edges, which, 8, SIZE);
        size_t counts[PTOWSP_EDGE_COUNT], again[PTOWSP_EDGE_COUNT], failed = 0;
        assert_ok(record_edges(&f, SIZE, 0, counts));
        assert_int_equal(counts[PTOWSP_EDGE_EXPLICIT], 3 * SIZE);
        // In each iteration, one to the first task and one to the second; none to the first of all.
        assert_int_equal(counts[PTOWSP_EDGE_STRUCTURE], 5 * SIZE);
        // To each task but the first of its stream.
        assert_int_equal(counts[PTOWSP_EDGE_STREAM], 6 * SIZE - (which == 1 ? 4 : 2));
        ptowsp_status status;
        while ((status = record_edges(&f, SIZE, failed + 1, again)) != PTOWSP_OK) {
            failed++;
            test_refused(f.context, status, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX,
                         "run: out of memory");
            assert_ok(time_wide(&f, true));
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
            fixture f = {0};
            assert_ok(do_everything(&f, which, has_records));
            f.flags[0] = 1;  // the other branch, which has as many tasks
            assert_ok(execute(&f, has_records));
            size_t allocations = f.memory.allocations, bytes = f.memory.live_bytes;
            size_t memory_bytes = ptowsp_run_result(f.run)->memory_bytes;
            for (int i = 0; i < 6; i++) {
                f.flags[0] = i % 2;
                assert_ok(ptowsp_run_bind_symbol(f.run, "scale", (uint64_t)i));
                if (i == 3) {
                    assert_ok(ptowsp_run_bind_lengths(f.run, "kv", PTOWSP_I32, other_lengths, 4));
                }
                assert_ok(execute(&f, has_records));
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
        make_wide(&f, wide, which, 512, 3000);
        assert_ok(time_wide(&f, true));
        size_t allocations = f.memory.allocations;
        for (int64_t size = 3000; size >= 0; size -= 1000) {
            assert_ok(bind_wide(&f, size));
            assert_ok(time_wide(&f, size % 2000 == 0));
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
        make_wide(&f, wide, which, 512, 1000);
        size_t before = f.memory.live_bytes;
        assert_ok(time_wide(&f, true));
        size_t held = ptowsp_run_result(f.run)->memory_bytes;
        ptowsp_run_destroy(f.run);
        f.run = NULL;
        assert_true(f.memory.live_bytes < before);
        size_t without = f.memory.live_bytes;
        assert_ok(ptowsp_run_create(f.context, f.program, &f.run));
        assert_ok(bind_wide(&f, 1000));
        assert_ok(time_wide(&f, true));
        assert_int_equal(f.memory.live_bytes - without, held);
        fixture_free(&f);
    }
}

// The bytes that a run holds after so many tasks.
static size_t bytes_after(int which, uint32_t window, int64_t task_count) {
    fixture f;
    make_wide(&f, wide, which, window, task_count / 3);
    assert_ok(time_wide(&f, false));
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
        fixture f = {0};
        assert_ok(context_of(&f));
        assert_ok(module_of(&f, everything));
        PTOWSP_WORKLOAD(f.m, "entry") {
            PTOWSP_FOR_EACH(f.m, i2, ptowsp_axis_dense(f.m, "large", extents[i])) {
                (void)i2;
                ptowsp_call_make(f.m, "main", NULL, 0);
            }
        }
        size_t before = f.memory.live_bytes;
        assert_ok(ptowsp_program_create(f.context, f.m, NULL, &f.program));
        sizes[i] = ptowsp_program_size(f.program);
        assert_int_equal(f.memory.live_bytes - before, sizes[i]);  // all of it
        print_message("a program of %zu bytes\n", sizes[i]);
        fixture_free(&f);
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_true(sizes[0] < 36864);
}
