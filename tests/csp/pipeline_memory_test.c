// Memory of pipelines: any allocation of building, compiling, creating a run and executing may be
// refused, nothing leaks, and what has failed works afterwards; running again allocates nothing.

#include "pipeline_fixture.h"

enum { TASK_COUNT = 1 + 2 * (6 + 6 + 3) + 1 };

typedef struct whole {
    test_memory memory;
    fixture f;
    int schedule;
} whole;

#define AXES "axis users dynamic\naxis rounds 2\naxis six 6\naxis few 3\nsymbol depth\n"

// Every kind of node that a pipeline has, twice around, between two tasks.
static const char everything[] = "workload part(n i64)\n"
                                 "  slot_set 1 = n\n"
                                 "  task updates(n, 4) tile = x at (slot_i64[1], 2)\n"
                                 "workload main\n"
                                 "  task work(10, 10) as node 900\n"
                                 "  for_each k in rounds\n"
                                 "    pipeline p after node 900 as node 901\n"
                                 "      channel a depth 2 latency 3\n"
                                 "      channel b depth depth latency u64(k * 5 + 1)\n"
                                 "      event E\n"
                                 "      process load produces a\n"
                                 "        for_each i in six\n"
                                 "          task work(i, 2)\n"
                                 "          send a(i)\n"
                                 "      process use replicas w in users consumes a produces b, E\n"
                                 "        consume t from a\n"
                                 "          when t < 3\n"
                                 "            call part(t)\n"
                                 "          otherwise\n"
                                 "            task work(w, 1)\n"
                                 "          send b(t)\n"
                                 "        close b\n"
                                 "        when w == 0\n"
                                 "          record E\n"
                                 "      process end consumes b, E\n"
                                 "        receive t from b\n"
                                 "          task work(t, 1)\n"
                                 "        consume u from b\n"
                                 "          when u > 3\n"
                                 "            task reads(u, 1) tile = x at (u, 0)\n"
                                 "        wait E\n"
                                 "  task reads(9, 1) tile = x after node 901\n";

enum { SCHEDULES = 3 };

static const ptowsp_schedule schedules[SCHEDULES] = {
    {.lane_count = 2, .dependencies = 15, .issue = PTOWSP_ISSUE_IN_ORDER},
    {.lane_count = 2, .dependencies = 15},
    {.lane_count = 2, .dependencies = 15, .ready = PTOWSP_READY_WORK_STEALING}};

// What stands before all of it decides where the tables of a program are full: at random, so that
// each is at each of the places that add to it.
static char *write_before(char *at, uint64_t *random) {
    at += sprintf(at, "workload before\n");
    for (int count = (int)test_random_in(random, 0, 12), i = 1; i <= count; i++) {
        at += sprintf(at,
                      "  task work(%d, %d) as node %d\n  for_each k in few\n"
                      "    task reads(k * %d + %d, %d) tile = x at (k, 1)\n  pipeline q",
                      i, i, i, i, 100 + i, i);
        at += test_random_in(random, 0, 1) ? sprintf(at, " after node %d\n", i) : sprintf(at, "\n");
        at += sprintf(at, "    channel c depth 2 latency 3\n" PRODUCER("make", "c", "few", "i", "1")
                              CONSUMER("take replicas w in rounds", "c", "1"));
    }
    for (int i = (int)test_random_in(random, 0, 20); i > 0; i--) {
        at += sprintf(at, "  task work(%d, %d)\n", 4 * i, i);
    }
    return at;
}

// A module of an allocator that may refuse; `random` chooses what is before (NULL: nothing).
static ptowsp_status make_after(whole *w, uint64_t *random) {
    static char text[1 << 16];
    const ptowsp_context_desc desc = {.resize = test_resize, .resize_user = &w->memory};
    char *at = text + sprintf(text, "%s", AXES);
    at = random ? write_before(at, random) : at;
    at += sprintf(at, "%s", everything);
    sprintf(at, "%s", random ? "workload all\n  call before()\n  call main()\n" : "");
    ptowsp_status status = ptowsp_context_create(&desc, &w->f.context);
    return status ? status : fixture_read(&w->f, text);
}

static ptowsp_status compile_refusable(whole *w) {
    const ptowsp_program_desc desc = {NULL, &schedules[w->schedule]};
    fixture *f = &w->f;
    const ptowsp_buffer buffer = {.data = kernels.x};
    ptowsp_status status =
        f->program ? PTOWSP_OK : ptowsp_program_create(f->context, f->module, &desc, &f->program);
    status = status ? status : ptowsp_run_create(f->context, f->program, &f->run);
    status = status ? status : ptowsp_run_bind_tensor(f->run, "x", &buffer);
    status = status ? status : ptowsp_run_bind_symbol(f->run, "depth", 1);
    return status ? status : ptowsp_run_bind_size(f->run, "users", 3);
}

static ptowsp_status do_everything(whole *w, bool has_records) {
    ptowsp_status status = make_after(w, NULL);
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
    assert_int_equal(kernels.call_count, TASK_COUNT);
    results_of(w->f.run, out);
    if (has_records) {
        check_results(w->f.run);
    }
}

// The n-th allocation was refused, and what has failed works now. Returns whether it ran.
static bool recovers(whole *w, bool has_records, const results *expected) {
    results got;
    const bool has_run = w->f.run != NULL;
    if (w->f.context) {
        const ptowsp_error error = ptowsp_context_error(w->f.context);
        assert_int_equal(error.status, PTOWSP_OUT_OF_MEMORY);
        assert_non_null(strstr(error.text, "out of memory"));
    }
    if (w->f.module) {
        if (has_run) {
            char text[4000];
            ptowsp_run_print(w->f.run, TEST_TEXT(text));
        } else {
            assert_ok(compile_refusable(w));
        }
        outcome_of(w, has_records, &got);
        assert_memory_equal(&got, expected, sizeof got);
    }
    return has_run;
}

TEST(pipeline_memory__any_allocation_may_fail) {
    static whole w;
    static results expected;
    TEST_GRID(int, schedule, SCHEDULES, has_records, 2) {
        int running = 0;
        begin(&w, schedule, 0);
        assert_ok(do_everything(&w, has_records));
        outcome_of(&w, has_records, &expected);
        forget(&w);
        EACH_REFUSED(n, 0) {
            begin(&w, schedule, n);
            const ptowsp_status status = do_everything(&w, has_records);
            assert_int_equal(w.memory.live_blocks > 0, w.f.context != NULL);
            has_more = test_was_refused(&w.memory, status);
            running += has_more && recovers(&w, has_records, &expected);
            forget(&w);
        }
        assert_true(running > (has_records ? 5 : 3));
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
        uint64_t random = seed + (uint64_t)round;
        begin(&w, round % SCHEDULES, 0);
        test_ok(w.f.context, make_after(&w, &random));
        assert_ok(compile_refusable(&w));
        const uint64_t expected = hash_of(&w.f);
        EACH_REFUSED(n, 0) {
            test_destroy(w.f.run, w.f.program, NULL, NULL);
            w.f.run = NULL;
            w.f.program = NULL;
            test_refuse(&w.memory, n);
            has_more = test_was_refused(&w.memory, compile_refusable(&w));
            if (has_more) {
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
        for (bool has_more = true; has_more;) {
            test_refuse(&w.memory, 1);
            has_more = test_was_refused(&w.memory, execute(&w.f, PTOWSP_RUN_EXECUTE, true));
            failed += has_more;
            if (has_more) {
                execute_ok(&w.f, PTOWSP_RUN_EXECUTE, true);
            }
            check_results(w.f.run);
        }
    }
    assert_true(failed >= 5);
    forget(&w);
}

// And what a run says that it holds is what it has.
TEST(pipeline_memory__running_again_allocates_nothing) {
    TEST_GRID(int, schedule, SCHEDULES, has_records, 2) {
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
        ptowsp_run_destroy(w.f.run);
        w.f.run = NULL;
        assert_int_equal(bytes - w.memory.live_bytes, held);
        forget(&w);
    }
}

// Without records a run does not grow with the number of tokens, nor of times that it runs; with
// them by the size of a task and of its steps.
TEST_F(pipeline_memory__a_run_does_not_grow_with_its_tokens) {
    size_t held[2][2];
    for (int is_large = 0; is_large < 2; is_large++) {
        fixture_parse(f,
                      "axis tiles dynamic\naxis rounds %d\nworkload main\n  for_each k in rounds\n"
                      "    pipeline p\n      channel a depth 2 latency 3\n"
                      "      process load produces a\n        for_each i in tiles\n"
                      "          task work(i, 1)\n          send a(i)\n"
                      "      process use consumes a\n        consume t from a\n"
                      "          task work(t, 1)\n",
                      is_large ? 100 : 3);
        assert_ok(ptowsp_run_bind_size(f->run, "tiles", is_large ? 1000 : 10));
        for (int has_records = 0; has_records < 2; has_records++) {
            const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY,
                                                .record_tasks = has_records};
            assert_ok(ptowsp_run_execute(f->run, &options));
            assert_int_equal(ptowsp_run_result(f->run)->task_count, is_large ? 200000 : 60);
            held[is_large][has_records] = ptowsp_run_result(f->run)->memory_bytes;
        }
    }
    assert_int_equal(held[0][0], held[1][0]);
    assert_true(held[1][1] > held[0][1]);
}
