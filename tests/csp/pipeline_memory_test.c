// Memory of pipelines: any allocation of building, compiling, creating a run and executing may be
// refused, nothing leaks, and what has failed works afterwards; running again allocates nothing.

#include "pipeline_fixture.h"

enum { TASK_COUNT = 1 + 2 * (6 + 6 + 3) + 1 };

typedef struct whole {
    test_memory memory;
    fixture f;
    int schedule;
} whole;

// Every kind of node that a pipeline has, twice around, between two tasks.
static void build_everything(fixture *f) {
    ptowsp_axis users = ptowsp_axis_dynamic(f->m, "users");
    PTOWSP_WORKLOAD(f->m, "part") {
        ptowsp_expr n = ptowsp_workload_param(f->m, "n", PTOWSP_TYPE_I64);
        ptowsp_slot_set_make(f->m, 1, n);
        touch(f, f->updates, f->x, ptowsp_slot(f->m, 1, PTOWSP_TYPE_I64), 2, n, 4);
    }
    PTOWSP_WORKLOAD(f->m, "main") {
        const ptowsp_node first = busy(f, 10);
        ptowsp_node last = first;
        PTOWSP_FOR_EACH(f->m, k, axis(f, "rounds", 2)) {
            last = ptowsp_pipeline_begin(f->m, "p", &first, 1);
            const ptowsp_channel_desc desc = {"b", 0, 0, ptowsp_symbol(f->m, "depth"),
                                              ptowsp_cast(linear(f, k, 5, 1), PTOWSP_TYPE_U64)};
            ptowsp_channel a = channel(f, "a", 2, 3), b = ptowsp_channel_make(f->m, &desc);
            ptowsp_channel e = ptowsp_event_make(f->m, "E");
            producer(f, "load", a, 0, 6, 2);
            PTOWSP_REPLICATE(f->m, w, users, "use") {
                ptowsp_consumes(f->m, a);
                ptowsp_produces(f->m, b);
                ptowsp_produces(f->m, e);
                PTOWSP_CONSUME(f->m, t, a) {
                    PTOWSP_WHEN(f->m, ptowsp_lt(t, number(f, 3))) {
                        ptowsp_call_make(f->m, "part", &t, 1);
                    }
                    PTOWSP_OTHERWISE(f->m) {
                        work(f, w, 1);
                    }
                    ptowsp_send_make(f->m, b, t);
                }
                ptowsp_close_make(f->m, b);
                PTOWSP_WHEN(f->m, ptowsp_eq(w, number(f, 0))) {
                    ptowsp_record_make(f->m, e);
                }
            }
            PTOWSP_PROCESS(f->m, "end") {
                ptowsp_consumes(f->m, b);
                ptowsp_consumes(f->m, e);
                PTOWSP_RECEIVE(f->m, t, b) {
                    work(f, t, 1);
                }
                PTOWSP_CONSUME(f->m, u, b) {
                    PTOWSP_WHEN(f->m, ptowsp_gt(u, number(f, 3))) {
                        touch(f, f->reads, f->x, u, 0, u, 1);
                    }
                }
                ptowsp_wait_make(f->m, e);
            }
            ptowsp_scope_end(f->m);
        }
        ptowsp_task_desc desc = task_desc(f, f->reads, number(f, 9), 1);
        desc.views[0].tensor = f->x;
        desc.after[0] = last;
        ptowsp_task_make(f->m, &desc);
    }
}

static ptowsp_schedule schedule_of(int which) {
    ptowsp_schedule schedule = {.lane_count = 2,
                                .dependencies = 15,
                                .issue = which == 0 ? PTOWSP_ISSUE_IN_ORDER : PTOWSP_ISSUE_DATAFLOW,
                                .ready =
                                    which == 2 ? PTOWSP_READY_WORK_STEALING : PTOWSP_READY_FIFO};
    return schedule;
}

// What stands before all of it decides where the tables of a program are full: at random, so that
// each is at each of the places that add to it.
static void build_before(fixture *f, uint64_t *random) {
    ptowsp_axis few = axis(f, "few", 3);
    PTOWSP_WORKLOAD(f->m, "before") {
        for (int64_t i = test_random_in(random, 0, 12); i > 0; i--) {
            const ptowsp_node first = busy(f, i);
            PTOWSP_FOR_EACH(f->m, k, few) {
                touch(f, f->reads, f->x, k, 1, linear(f, k, i, 100 + i), i);
            }
            ptowsp_pipeline_begin(f->m, "q", &first, (uint32_t)test_random_in(random, 0, 1));
            ptowsp_channel c = channel(f, "c", 2, 3);
            PTOWSP_PROCESS(f->m, "make") {
                ptowsp_produces(f->m, c);
                PTOWSP_FOR_EACH(f->m, k, few) {
                    send_work(f, c, k, 1);
                }
            }
            PTOWSP_PROCESS(f->m, "take") {
                ptowsp_consumes(f->m, c);
                PTOWSP_CONSUME(f->m, t, c) {
                    work(f, t, 1);
                }
            }
            ptowsp_scope_end(f->m);
        }
        for (int64_t i = test_random_in(random, 0, 20); i > 0; i--) {
            work(f, linear(f, number(f, i), 3, i), i);
        }
    }
}

// The module with kernels and tensors, as fixture_make, but of an allocator that may refuse.
static ptowsp_status make_after(whole *w, uint64_t *random) {
    const ptowsp_context_desc desc = {test_resize, &w->memory, PTOWSP_THREADS_SERIAL,
                                      1,           NULL,       NULL};
    fixture *f = &w->f;
    f->failing_task = UINT64_MAX;
    ptowsp_status status = ptowsp_context_create(&desc, &f->context);
    status = status ? status : ptowsp_module_create(f->context, NULL, &f->m);
    if (status == PTOWSP_OK) {
        f->work = kernel_make(f, "work", note_value, PTOWSP_DIRECTION_NONE, 0);
        f->reads = kernel_make(f, "reads", note_value, PTOWSP_IN, 2);
        f->updates = kernel_make(f, "updates", note_value, PTOWSP_INOUT, 2);
        f->x = tensor_make(f, "x");
        if (random) {
            build_before(f, random);
        }
        build_everything(f);
    }
    if (random && status == PTOWSP_OK) {
        PTOWSP_WORKLOAD(f->m, "all") {
            ptowsp_call_make(f->m, "before", NULL, 0);
            ptowsp_call_make(f->m, "main", NULL, 0);
        }
    }
    return status;
}

static ptowsp_status make(whole *w) {
    return make_after(w, NULL);
}

static ptowsp_status bind(fixture *f) {
    ptowsp_buffer buffer = {.data = f->x_data};
    ptowsp_status status = ptowsp_run_bind_tensor(f->run, "x", &buffer);
    status = status ? status : ptowsp_run_bind_symbol(f->run, "depth", 1);
    return status ? status : ptowsp_run_bind_size(f->run, "users", 3);
}

static ptowsp_status compile_refusable(whole *w) {
    const ptowsp_schedule schedule = schedule_of(w->schedule);
    const ptowsp_program_desc desc = {NULL, &schedule};
    fixture *f = &w->f;
    ptowsp_status status =
        f->program ? PTOWSP_OK : ptowsp_program_create(f->context, f->m, &desc, &f->program);
    status = status ? status : ptowsp_run_create(f->context, f->program, &f->run);
    return status ? status : bind(f);
}

static ptowsp_status do_everything(whole *w, bool has_records) {
    ptowsp_status status = make(w);
    status = status ? status : compile_refusable(w);
    return status ? status : execute(&w->f, PTOWSP_RUN_EXECUTE, has_records);
}

static void forget(whole *w) {
    fixture_free(&w->f);
    assert_int_equal(w->memory.live_bytes, 0);
    assert_int_equal(w->memory.live_blocks, 0);
}

static void begin(whole *w, int schedule, size_t refuse_at) {
    memset(w, 0, sizeof *w);
    w->schedule = schedule;
    w->memory.refuse_at = refuse_at;
}

static void outcome_of(whole *w, bool has_records, results *out) {
    execute_ok(&w->f, PTOWSP_RUN_EXECUTE, has_records);
    assert_int_equal(w->f.call_count, TASK_COUNT);
    results_of(w->f.run, out);
    if (has_records) {
        check_results(w->f.run);
    }
}

// Returns how many refusals were while running.
static size_t fail_each_allocation(int schedule, bool has_records) {
    static whole w;
    static results expected, got;
    begin(&w, schedule, 0);
    assert_ok(do_everything(&w, has_records));
    outcome_of(&w, has_records, &expected);
    forget(&w);
    size_t running = 0;
    ptowsp_status status = PTOWSP_OUT_OF_MEMORY;
    for (size_t n = 1; status != PTOWSP_OK; n++) {
        begin(&w, schedule, n);
        status = do_everything(&w, has_records);
        if (status != PTOWSP_OK) {
            assert_int_equal(status, PTOWSP_OUT_OF_MEMORY);
            assert_int_equal(w.memory.live_blocks > 0, w.f.context != NULL);
        }
        if (status != PTOWSP_OK && w.f.context) {
            ptowsp_error error = ptowsp_context_error(w.f.context);
            assert_int_equal(error.status, PTOWSP_OUT_OF_MEMORY);
            assert_non_null(strstr(error.text, "out of memory"));
        }
        if (w.f.m) {  // as far as it was built
            static char text[40000];
            ptowsp_output_buffer buffer = {text, sizeof text, 0};
            ptowsp_module_print(w.f.m, ptowsp_output_to_buffer(&buffer));
            assert_null(strstr(text, "(null)"));
        }
        bool is_built = w.f.m && ptowsp_module_error(w.f.m).status == PTOWSP_OK;
        if (status != PTOWSP_OK && is_built) {  // what has failed works now
            running += w.f.run != NULL;
            if (w.f.run) {
                char text[4000];
                ptowsp_output_buffer buffer = {text, sizeof text, 0};
                ptowsp_run_print(w.f.run, ptowsp_output_to_buffer(&buffer));
            } else {
                assert_ok(compile_refusable(&w));
            }
            outcome_of(&w, has_records, &got);
            assert_memory_equal(&got, &expected, sizeof got);
        }
        forget(&w);
    }
    return running;
}

TEST(pipeline_memory__any_allocation_may_fail) {
    for (int schedule = 0; schedule < 3; schedule++) {
        assert_true(fail_each_allocation(schedule, false) > 3);
        assert_true(fail_each_allocation(schedule, true) > 5);
    }
}

static uint64_t hash_of(const fixture *f) {
    char text[40000];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    ptowsp_program_print(f->program, ptowsp_output_to_buffer(&buffer));
    assert_in_range(buffer.length, 1000, sizeof text - 1);
    return ptowsp_hash(PTOWSP_HASH_START, text, buffer.length);
}

TEST(pipeline_memory__compiling_may_fail_wherever_a_table_is_full) {
    uint64_t seed = test_seed();
    for (int round = 0; TEST_ROUNDS(round, 100); round++) {
        static whole w;
        uint64_t random = seed + (uint64_t)round, expected = 0;
        ptowsp_status status = PTOWSP_OUT_OF_MEMORY;
        begin(&w, round % 3, 0);
        assert_ok(make_after(&w, &random));
        assert_ok(compile_refusable(&w));
        expected = hash_of(&w.f);
        for (size_t n = 1; status != PTOWSP_OK; n++) {
            fixture_forget_run(&w.f);
            w.memory.refuse_at = w.memory.allocations + n;
            status = compile_refusable(&w);
            w.memory.refuse_at = 0;
            if (status != PTOWSP_OK) {
                assert_int_equal(status, PTOWSP_OUT_OF_MEMORY);
                assert_non_null(strstr(ptowsp_context_error(w.f.context).text, "out of memory"));
                assert_ok(compile_refusable(&w));
            }
            assert_true(hash_of(&w.f) == expected);
        }
        forget(&w);
    }
}

// Refuses each allocation of an execution in turn: with other sizes than it has run with, so that
// what it holds grows, and is kept from then on.
TEST(pipeline_memory__growing_may_fail_in_the_middle_of_a_run) {
    static whole w;
    begin(&w, 1, 0);
    assert_ok(do_everything(&w, true));
    size_t failed = 0;
    for (int64_t users = 4; users <= 64; users *= 2) {
        assert_ok(ptowsp_run_bind_size(w.f.run, "users", users));
        assert_ok(ptowsp_run_bind_symbol(w.f.run, "depth", (uint64_t)users));
        ptowsp_status status = PTOWSP_OUT_OF_MEMORY;
        while (status != PTOWSP_OK) {
            w.memory.refuse_at = w.memory.allocations + 1;
            status = execute(&w.f, PTOWSP_RUN_EXECUTE, true);
            w.memory.refuse_at = 0;
            failed += status != PTOWSP_OK;
            if (status != PTOWSP_OK) {
                assert_int_equal(status, PTOWSP_OUT_OF_MEMORY);
                execute_ok(&w.f, PTOWSP_RUN_EXECUTE, true);
            }
            check_results(w.f.run);
        }
    }
    assert_true(failed >= 5);
    forget(&w);
}

TEST(pipeline_memory__running_again_allocates_nothing) {
    for (int schedule = 0; schedule < 3; schedule++) {
        for (int has_records = 0; has_records < 2; has_records++) {
            static whole w;
            begin(&w, schedule, 0);
            assert_ok(do_everything(&w, has_records));
            size_t allocations = 0, bytes = 0, held = 0;
            for (uint64_t i = 0; i < 12; i++) {  // six ways to run, and all of them again
                assert_ok(ptowsp_run_bind_symbol(w.f.run, "depth", i % 2));
                assert_ok(ptowsp_run_bind_size(w.f.run, "users", 1 + (int64_t)i % 3));
                execute_ok(&w.f, PTOWSP_RUN_EXECUTE, has_records);
                if (i >= 6) {
                    assert_int_equal(w.memory.allocations, allocations);
                    assert_int_equal(w.memory.live_bytes, bytes);
                    assert_int_equal(ptowsp_run_result(w.f.run)->memory_bytes, held);
                }
                allocations = w.memory.allocations;
                bytes = w.memory.live_bytes;
                held = ptowsp_run_result(w.f.run)->memory_bytes;
            }
            forget(&w);
        }
    }
}

// What a run says that it holds is what it has, with pipelines in it too.
TEST(pipeline_memory__a_run_says_what_it_holds) {
    for (int schedule = 0; schedule < 3; schedule++) {
        static whole w;
        begin(&w, schedule, 0);
        assert_ok(do_everything(&w, true));
        size_t held = ptowsp_run_result(w.f.run)->memory_bytes, bytes = w.memory.live_bytes;
        ptowsp_run_destroy(w.f.run);
        w.f.run = NULL;
        assert_int_equal(bytes - w.memory.live_bytes, held);
        forget(&w);
    }
}

// Without records a run does not grow with the number of tokens, nor of times that it runs; with
// them by the size of a task and of its steps.
TEST(pipeline_memory__a_run_does_not_grow_with_its_tokens) {
    size_t held[2][2];
    for (int is_large = 0; is_large < 2; is_large++) {
        fixture f;
        fixture_make(&f);
        ptowsp_axis tiles = ptowsp_axis_dynamic(f.m, "tiles");
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_FOR_EACH(f.m, k, axis(&f, "rounds", is_large ? 100 : 3)) {
                PTOWSP_PIPELINE(f.m, "p") {
                    ptowsp_channel a = channel(&f, "a", 2, 3);
                    PTOWSP_PROCESS(f.m, "load") {
                        ptowsp_produces(f.m, a);
                        PTOWSP_FOR_EACH(f.m, i, tiles) {
                            send_work(&f, a, i, 1);
                        }
                    }
                    consumer(&f, "use", a, 0, 1);
                }
            }
        }
        compile(&f, NULL);
        assert_ok(ptowsp_run_bind_size(f.run, "tiles", is_large ? 1000 : 10));
        for (int has_records = 0; has_records < 2; has_records++) {
            const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY,
                                                .record_tasks = has_records};
            assert_ok(ptowsp_run_execute(f.run, &options));
            assert_int_equal(ptowsp_run_result(f.run)->task_count, is_large ? 200000 : 60);
            held[is_large][has_records] = ptowsp_run_result(f.run)->memory_bytes;
        }
        fixture_free(&f);
    }
    assert_int_equal(held[0][0], held[1][0]);
    assert_true(held[1][1] > held[0][1]);
}
