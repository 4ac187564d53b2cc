// How processes are walked changes nothing. Random pipelines of many replicas that share channels
// (so that many are ready at one time, and wait in line), with loops, calls, slots, early closes,
// and tasks that cost the same always or what a function says. Each is run
//
//      with records      every send and receive by the rules of exchange.h, step by step
//      for time alone    prepared operations, waits completed by others, tasks that are their
//                        cycles alone
//      with kernels      the same, and kernels are called
//
// The first is the reference here; it is held against a slow one elsewhere (pipeline_random_test).

#include "run_results.h"
#include "support/fixture.h"

enum { WALKS = 2000, STAGE_MAX = 4, REPLICA_MAX = 48 };

typedef struct walk {
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
    ptowsp_run *run;
    uint64_t random;
    uint64_t called;                     // kernels
    ptowsp_kernel constant, costed;      // (value)
    ptowsp_channel channels[STAGE_MAX];  // from each stage to the next
    uint32_t axis_count, stage_count;
} walk;

static uint64_t below(walk *w, uint64_t count) {
    return test_random(&w->random) % count;
}

// -- building -------------------------------------------------------------------------------------

static ptowsp_cycles count_call(const ptowsp_task *task, void *user) {
    ((walk *)user)->called++;
    return (ptowsp_cycles)ptowsp_task_axis(task, 0) % 3;
}

static ptowsp_cycles cost_of(const ptowsp_task *task, void *user) {
    (void)user;
    return (ptowsp_cycles)ptowsp_task_axis(task, 0) % 3 * 10;
}

static ptowsp_kernel make_kernel(walk *w, const char *name, ptowsp_cycles cycles) {
    ptowsp_kernel_desc desc = {.name = name,
                               .axis_count = 1,
                               .fn = count_call,
                               .cost = cycles ? NULL : cost_of,
                               .cycles = cycles,
                               .user = w};
    return ptowsp_kernel_make(w->m, &desc);
}

static ptowsp_axis make_axis(walk *w, int64_t size) {
    char name[16];
    snprintf(name, sizeof name, "axis_%u", (unsigned)w->axis_count++);
    return ptowsp_axis_dense(w->m, name, size);
}

static ptowsp_task_desc task_of(walk *w, ptowsp_expr value) {
    ptowsp_task_desc task = {.kernel = below(w, 3) ? w->constant : w->costed};
    task.axes[0] = below(w, 2) ? value : ptowsp_add(value, ptowsp_i64(w->m, 1));
    return task;
}

// Nothing, a task, or a call of a workload with a loop of tasks.
static void work(walk *w, ptowsp_expr value) {
    ptowsp_task_desc task = task_of(w, value);
    switch (below(w, 6)) {
    case 0:
    case 1: ptowsp_task_make(w->m, &task); break;
    case 2: ptowsp_call_make(w->m, "helper", &value, 1); break;
    default: break;
    }
}

static void send(walk *w, ptowsp_channel channel, ptowsp_expr value) {
    ptowsp_task_desc task = task_of(w, value);
    switch (below(w, 5)) {
    case 0: ptowsp_send_task_make(w->m, channel, &task); break;
    case 1:
        ptowsp_slot_set_make(w->m, 1, value);
        ptowsp_send_make(w->m, channel, ptowsp_slot(w->m, 1, PTOWSP_TYPE_I64));
        break;
    case 2: ptowsp_send_make(w->m, channel, ptowsp_add(value, ptowsp_i64(w->m, 3))); break;
    default: ptowsp_send_make(w->m, channel, value); break;
    }
}

// A process of a stage: takes what the stage before sends, if there is one, and sends on.
static void build_body(walk *w, uint32_t stage) {
    ptowsp_module *m = w->m;
    const bool is_first = stage == 0, is_last = stage + 1 == w->stage_count;
    const ptowsp_channel none = {0};
    const ptowsp_channel in = is_first ? none : w->channels[stage - 1];
    const ptowsp_channel out = is_last ? none : w->channels[stage];
    if (!is_first) {
        ptowsp_consumes(m, in);
    }
    if (!is_last) {
        ptowsp_produces(m, out);
    }
    if (is_first) {
        PTOWSP_FOR_EACH(m, k, make_axis(w, test_random_in(&w->random, 1, 12))) {
            work(w, k);
            send(w, out, k);
        }
    } else if (below(w, 8) == 0) {  // leaves tokens behind, or finds fewer
        PTOWSP_FOR_EACH(m, k, make_axis(w, test_random_in(&w->random, 1, 12))) {
            (void)k;
            PTOWSP_RECEIVE(m, t, in) {
                work(w, t);
                if (!is_last) {
                    send(w, out, t);
                }
            }
        }
    } else {
        PTOWSP_CONSUME(m, t, in) {
            work(w, t);
            if (!is_last) {
                send(w, out, t);
            }
        }
    }
    if (!is_last && below(w, 4) == 0) {
        ptowsp_close_make(m, out);
        work(w, ptowsp_i64(m, 5));
    }
}

static void build_pipeline(walk *w) {
    ptowsp_module *m = w->m;
    char name[16];
    for (uint32_t i = 0; i + 1 < w->stage_count; i++) {
        static const uint32_t depths[6] = {0, 1, 2, 3, 8, 40};
        static const ptowsp_cycles latencies[5] = {0, 0, 1, 7, 50};
        ptowsp_channel_desc desc = {0};
        snprintf(name, sizeof name, "channel_%u", (unsigned)i);
        desc.name = name;
        desc.depth = depths[below(w, 6)];
        desc.latency = latencies[below(w, 5)];
        w->channels[i] = ptowsp_channel_make(m, &desc);
    }
    const uint64_t order = below(w, 2);
    for (uint32_t i = 0; i < w->stage_count; i++) {
        const uint32_t stage = order ? i : w->stage_count - 1 - i;
        for (uint64_t k = 0; k <= below(w, 2); k++) {
            snprintf(name, sizeof name, "process_%u_%u", (unsigned)stage, (unsigned)k);
            if (below(w, 3)) {
                const int64_t replicas = below(w, 2) ? 4 : REPLICA_MAX;
                PTOWSP_REPLICATE(m, r, make_axis(w, test_random_in(&w->random, 1, replicas)),
                                 name) {
                    (void)r;
                    build_body(w, stage);
                }
            } else {
                PTOWSP_PROCESS(m, name) {
                    build_body(w, stage);
                }
            }
        }
    }
}

static void walk_make(walk *w, uint64_t seed) {
    memset(w, 0, sizeof *w);
    w->random = seed;
    w->stage_count = (uint32_t)test_random_in(&w->random, 2, STAGE_MAX);
    assert_ok(ptowsp_context_create(NULL, &w->context));
    assert_ok(ptowsp_module_create(w->context, NULL, &w->m));
    w->constant = make_kernel(w, "constant", 1 + below(w, 2) * 19);
    w->costed = make_kernel(w, "costed", 0);
    PTOWSP_WORKLOAD(w->m, "helper") {
        ptowsp_expr value = ptowsp_workload_param(w->m, "value", PTOWSP_TYPE_I64);
        PTOWSP_FOR_EACH(w->m, i, make_axis(w, 2)) {
            ptowsp_task_desc task = task_of(w, ptowsp_add(value, i));
            ptowsp_task_make(w->m, &task);
        }
    }
    PTOWSP_WORKLOAD(w->m, "main") {
        PTOWSP_FOR_EACH(w->m, round, make_axis(w, 2)) {
            (void)round;
            PTOWSP_PIPELINE(w->m, "pipeline") {
                build_pipeline(w);
            }
        }
    }
    test_ok(w->context, ptowsp_program_create(w->context, w->m, NULL, &w->program));
    assert_ok(ptowsp_run_create(w->context, w->program, &w->run));
}

static void walk_free(walk *w) {
    test_destroy(w->run, w->program, w->m, w->context);
}

// -- results --------------------------------------------------------------------------------------

typedef struct walked {
    results results;
    ptowsp_status status;
    char text[512];
} walked;

// All that a run says, with or without records.
static void walk_execute(walk *w, ptowsp_run_mode mode, bool has_records, walked *out) {
    const ptowsp_run_options options = {.mode = mode, .record_tasks = has_records};
    uint32_t count;
    uint64_t task_count = 0;
    memset(out, 0, sizeof *out);
    w->called = 0;
    out->status = ptowsp_run_execute(w->run, &options);
    if (out->status != PTOWSP_OK) {
        snprintf(out->text, sizeof out->text, "%s", ptowsp_context_error(w->context).text);
    }
    results_of(w->run, &out->results);
    const ptowsp_process_stats *processes = ptowsp_run_processes(w->run, &count);
    for (uint32_t i = 0; i < count; i++) {
        task_count += processes[i].task_count;
    }
    assert_int_equal(ptowsp_run_result(w->run)->task_count, task_count);
    assert_int_equal(w->called, mode == PTOWSP_RUN_EXECUTE ? task_count : 0);
}

static void walks_are_equal(const walked *expected, const walked *got, unsigned number) {
    if (memcmp(expected, got, sizeof *got) != 0) {
        fail_msg("pipeline %u: %s \"%s\", makespan %llu, not %s \"%s\", %llu", number,
                 ptowsp_status_name(got->status), got->text,
                 (unsigned long long)got->results.numbers[0], ptowsp_status_name(expected->status),
                 expected->text, (unsigned long long)expected->results.numbers[0]);
    }
}

TEST(pipeline__the_way_of_walking_changes_nothing) {
    uint64_t random = test_seed();
    unsigned ended = 0, stuck = 0;
    for (unsigned number = 0; TEST_ROUNDS(number, WALKS); number++) {
        static walk w;
        static walked expected, got;
        walk_make(&w, test_random(&random));
        walk_execute(&w, PTOWSP_RUN_TIME_ONLY, true, &expected);
        assert_true(expected.status == PTOWSP_OK || expected.status == PTOWSP_STUCK);
        ended += expected.status == PTOWSP_OK;
        stuck += expected.status == PTOWSP_STUCK;
        walk_execute(&w, PTOWSP_RUN_TIME_ONLY, false, &got);
        walks_are_equal(&expected, &got, number);
        walk_execute(&w, PTOWSP_RUN_EXECUTE, false, &got);
        walks_are_equal(&expected, &got, number);
        walk_free(&w);
    }
    print_message("%u pipelines ended, %u were stuck\n", ended, stuck);
    assert_met(ended > WALKS / 2 && stuck > WALKS / 50);
}

// -- tasks that are their cycles alone ------------------------------------------------------------

// Ten tasks of 20 cycles, each sent on; a receiver that takes nothing for them. Tasks that nobody
// looks at are counted all the same, and looked at when somebody asks.
TEST_F(pipeline__tasks_of_known_cycles_are_still_tasks) {
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    program_make(f,
                 "module m\naxis ten 10\nkernel constant(axes 1) vector, 20 cycles, time only\n"
                 "workload main\n  pipeline pipeline\n    channel tokens depth 2 latency 0\n"
                 "    process sender produces tokens\n      for_each i in ten\n"
                 "        task constant(i)\n        send tokens(i)\n"
                 "    process receiver consumes tokens\n      consume t from tokens\n",
                 NULL, NULL);
    for (int level = PTOWSP_RECORD_NONE; level <= PTOWSP_RECORD_EDGES; level++) {
        const ptowsp_record_options record = {.level = (ptowsp_record_level)level};
        assert_ok(ptowsp_run_record(f->run, &record));
        assert_ok(ptowsp_run_execute(f->run, &options));
        assert_int_equal(ptowsp_run_result(f->run)->makespan_cycles, 200);
        assert_int_equal(ptowsp_run_result(f->run)->task_count, 10);
        assert_int_equal(ptowsp_run_result(f->run)->busy_cycles, 200);
    }
    // Asked what if they took half, after an execution without records, which it repeats.
    ptowsp_what_if what_if = {.kernel = 1, .percent = 50};
    assert_ok(ptowsp_run_record(f->run, NULL));
    assert_ok(ptowsp_run_what_if(f->run, &options, &what_if));
    assert_int_equal(what_if.makespan_cycles, 100);
}
