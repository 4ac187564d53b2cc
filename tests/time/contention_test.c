// Memory that simulated lanes share (tests/cases/shared_memory.case has it on paper). What tasks take is
// compared with a slow reference that moves bytes cycle by cycle in floating point, and with what must hold
// whatever the numbers: a lane alone, more bandwidth, the least time of all bytes, equal halves, any order
// of declaration, any number of threads.

#include "contention.h"

enum { TEXT_MAX = 1 << 20, KERNELS = 64 };

static char text[TEXT_MAX];

// A module of tasks, each of a kernel of its own with so many cycles, all independent or one after another. The
// kernels move bytes; or (NULL) their tile of 256 rows of x, from a row on, which is read or written.
typedef struct task_set {
    uint64_t cycles[KERNELS], bytes[KERNELS], rows[KERNELS];
    bool is_written[KERNELS];
} task_set;

static void write_module(const task_set *t, uint32_t count, bool has_tiles, bool is_sequence) {
    char *at = text + sprintf(text, "module m\ntensor x f32 [1280, 64] global\n");
    for (uint32_t i = 0; i < count; i++) {
        at += sprintf(at, "kernel k%u(axes 1", i);
        if (has_tiles) {
            at += sprintf(at, ", %s a f32 256 x 64", t->is_written[i] ? "out" : "in");
        }
        at += sprintf(at, ") vector, %llu cycles, ", (unsigned long long)t->cycles[i]);
        at += has_tiles ? sprintf(at, "bytes of its tiles, time only\n")
                        : sprintf(at, "%llu bytes, time only\n", (unsigned long long)t->bytes[i]);
    }
    at += sprintf(at, "workload w\n  %s\n", is_sequence ? "sequence" : "combine");
    for (uint32_t i = 0; i < count; i++) {
        at += sprintf(at, "    task k%u(%u)", i, i);
        at += has_tiles ? sprintf(at, " a = x at (%llu, 0)\n", (unsigned long long)t->rows[i])
                        : sprintf(at, "\n");
    }
}

static void write_tasks(const task_set *t, uint32_t count, bool is_sequence) {
    write_module(t, count, false, is_sequence);
}

static uint64_t makespan_of(fixture *f, const ptowsp_schedule *schedule) {
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY, .record_tasks = true};
    remake(f, NULL, text, NULL, schedule);
    test_ok(f->context, ptowsp_run_execute(f->run, &options));
    return ptowsp_run_result(f->run)->makespan_cycles;
}

static uint64_t end_of(const fixture *f, uint32_t task) {
    return ptowsp_run_records(f->run)[task].end;
}

// -- against a slow reference ---------------------------------------------------------------------

typedef struct ref_lane {
    double left;  // of the task: cycles alone
    double rate;  // that it asks for
    int task;
} ref_lane;

// Max-min by trying: raises the share of all that want more until nothing is left.
static void ref_shares(const double *wants, double *gets, int count, double capacity) {
    double left = capacity;
    int open = 0;
    for (int i = 0; i < count; i++) {
        gets[i] = 0;
        open += wants[i] > 0;
    }
    while (open > 0 && left > 1e-9) {
        const double each = left / open;
        open = 0;
        for (int i = 0; i < count; i++) {
            const double more = fmin(each, wants[i] - gets[i]);
            gets[i] += more;
            left -= more;
            open += wants[i] - gets[i] > 1e-9;
        }
    }
}

// Independent tasks in order, each on the first lane that is free or dealt in turn, in steps of a 16th of
// a cycle. All bytes miss. Returns the makespan.
static double ref_run(const task_set *t, int count, int lane_count, double capacity, bool is_dealt,
                      double *ends) {
    ref_lane lanes[16];
    double wants[16], gets[16], now = 0;
    int nexts[16], begun = 0, running = 0;
    for (int i = 0; i < lane_count; i++) {
        lanes[i].task = -1;
        nexts[i] = i;
    }
    do {
        for (int i = 0; i < lane_count; i++) {
            const int next = is_dealt ? nexts[i] : begun;
            if (lanes[i].task < 0 && next < count) {
                lanes[i].task = next;
                lanes[i].left = (double)t->cycles[next];
                lanes[i].rate = (double)t->bytes[next] / (double)t->cycles[next];
                nexts[i] += lane_count;
                begun++;
            }
            wants[i] = lanes[i].task < 0 ? 0 : lanes[i].rate;
        }
        ref_shares(wants, gets, lane_count, capacity);
        now += 1.0 / 16;
        running = 0;
        for (int i = 0; i < lane_count; i++) {
            if (lanes[i].task >= 0) {
                lanes[i].left -= wants[i] > 0 ? gets[i] / wants[i] / 16 : 1.0 / 16;
                if (lanes[i].left <= 1e-6) {
                    ends[lanes[i].task] = now;
                    lanes[i].task = -1;
                }
            }
            running += lanes[i].task >= 0;
        }
    } while (running > 0 || begun < count);
    return now;
}

// So many tasks; all of their bytes.
static uint64_t random_tasks(uint64_t *random, task_set *t, uint32_t count) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; i++) {
        t->cycles[i] = (uint64_t)test_random_in(random, 200, 2000);
        t->bytes[i] = t->cycles[i] * (uint64_t)test_random_in(random, 0, 12);
        total += t->bytes[i];
    }
    return total;
}

static uint32_t random_count(uint64_t *random, int64_t most) {
    return (uint32_t)test_random_in(random, 1, most);
}

static ptowsp_dispatch dispatch_of(int round) {
    return round % 2 ? PTOWSP_DISPATCH_ROUND_ROBIN : PTOWSP_DISPATCH_WORK_STEALING;
}

TEST_F(contention__agrees_with_steps_of_a_sixteenth_of_a_cycle) {
    uint64_t random = test_seed();
    static task_set t;
    double ends[KERNELS], worst = 0;
    for (int round = 0; round < 60; round++) {
        const uint32_t count = random_count(&random, KERNELS);
        const uint32_t lane_count = random_count(&random, 16);
        const uint32_t rate = (uint32_t)test_random_in(&random, 300, 6000);
        ptowsp_schedule schedule = lanes_of(lane_count, rate, 1);
        schedule.dispatch = dispatch_of(round);
        schedule.issue = round % 4 < 2 ? PTOWSP_ISSUE_DATAFLOW : PTOWSP_ISSUE_IN_ORDER;
        random_tasks(&random, &t, count);
        write_tasks(&t, count, false);
        const double expected =
            ref_run(&t, (int)count, (int)lane_count, rate / 100.0, round % 2, ends);
        const double got = (double)makespan_of(f, &schedule);
        double error = fabs(got / expected - 1);
        for (uint32_t i = 0; i < count; i++) {
            error = fmax(error, fabs((double)end_of(f, i) / ends[i] - 1));
        }
        worst = fmax(worst, error);
        if (error > 0.02) {
            fail_msg("round %d: %u tasks on %u lanes at %u: %.1f cycles, got %.0f", round, count,
                     lane_count, rate, expected, got);
        }
    }
    print_message("worst %.3f %%\n", 100 * worst);
}

// -- what must hold -------------------------------------------------------------------------------

// HBM moves all bytes and no more than it can, which is a lower bound.
static uint64_t makespan_of_bytes(fixture *f, const ptowsp_schedule *schedule, uint64_t total) {
    const uint64_t makespan = makespan_of(f, schedule), rate = schedule->shared.hbm_rate;
    ptowsp_run_bounds bounds;
    assert_true(makespan * rate >= total * 100);
    assert_int_equal(ptowsp_run_result(f->run)->hbm_bytes, total);
    assert_ok(ptowsp_run_find_bounds(f->run, &bounds));
    assert_int_equal(bounds.hbm_cycles, (total * 100 + rate - 1) / rate);
    assert_true(bounds.largest_cycles <= makespan);
    return makespan;
}

TEST_F(contention__independent_tasks_are_never_slower_with_more_bandwidth) {
    uint64_t random = test_seed();
    static task_set t;
    for (int round = 0; round < 30; round++) {
        const uint32_t count = random_count(&random, KERNELS);
        ptowsp_schedule schedule =
            lanes_of(round % 3 ? (uint32_t)test_random_in(&random, 2, 16) : 1, 100, 100);
        schedule.dispatch = dispatch_of(round);
        const uint64_t total = random_tasks(&random, &t, count);
        uint64_t last = UINT64_MAX;
        write_tasks(&t, count, false);
        for (uint32_t rate = 100; rate < 100000; rate = rate * 5 / 3) {
            schedule.shared.hbm_rate = rate;
            const uint64_t now = makespan_of_bytes(f, &schedule, total);
            assert_true(now <= last);
            last = now;
        }
    }
}

TEST_F(contention__total_bytes_bound_every_makespan) {
    uint64_t random = test_seed() + 1;
    static task_set t;
    for (int round = 0; round < 60; round++) {
        const uint32_t count = random_count(&random, KERNELS);
        const ptowsp_schedule schedule =
            lanes_of(random_count(&random, 16), (uint32_t)test_random_in(&random, 100, 9000), 1);
        const uint64_t total = random_tasks(&random, &t, count);
        write_tasks(&t, count, round % 3 == 0);
        makespan_of_bytes(f, &schedule, total);
    }
}

static ptowsp_schedule random_schedule(uint64_t *random, uint32_t lane_count) {
    ptowsp_schedule schedule = lanes_of(lane_count, 0, 0);
    switch (test_random(random) % 4) {
    case 0: schedule.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN; break;
    case 1: schedule.issue = PTOWSP_ISSUE_IN_ORDER; break;
    case 2:
        schedule.issue = PTOWSP_ISSUE_IN_ORDER;
        schedule.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN;
        break;
    default: break;
    }
    schedule.window = test_random(random) % 2 ? (uint32_t)test_random_in(random, 1, 20) : 0;
    schedule.ring_sizes[PTOWSP_RING_TASKS] = test_random(random) % 2 ? 4 : 0;
    return schedule;
}

// One lane, and many lanes with memory that no one can exhaust, take the times of lanes that share none:
// whatever the schedule, all statistics and records.
TEST_F(contention__alone_and_with_enough_bandwidth_all_is_as_without) {
    uint64_t random = test_seed();
    static task_set t;
    ptowsp_task_record records[KERNELS];
    for (int round = 0; round < 80; round++) {
        const uint32_t count = random_count(&random, KERNELS);
        const bool is_one = round % 2;
        ptowsp_schedule schedule =
            random_schedule(&random, is_one ? 1 : (uint32_t)test_random_in(&random, 2, 16));
        random_tasks(&random, &t, count);
        write_tasks(&t, count, round % 5 == 0);
        makespan_of(f, &schedule);
        const ptowsp_run_stats without = *ptowsp_run_result(f->run);
        memcpy(records, ptowsp_run_records(f->run), count * sizeof records[0]);
        schedule.shared.hbm_rate = schedule.shared.l2_rate = is_one ? 1200 : UINT32_MAX;
        makespan_of(f, &schedule);
        const ptowsp_run_stats with = *ptowsp_run_result(f->run);
        assert_int_equal(with.makespan_cycles, without.makespan_cycles);
        assert_int_equal(with.busy_cycles, without.busy_cycles);
        assert_int_equal(with.in_flight_max, without.in_flight_max);
        assert_memory_equal(with.stall_cycles, without.stall_cycles, sizeof with.stall_cycles);
        assert_memory_equal(with.ring_max, without.ring_max, sizeof with.ring_max);
        assert_int_equal(with.slowed_cycles, 0);
        assert_memory_equal(records, ptowsp_run_records(f->run), count * sizeof records[0]);
    }
}

// Pipelines take no lane and no bandwidth: in order and not, all
// is as without, if tasks ask for no more than there is.
TEST_F(contention__pipelines_are_as_without) {
    for (int i = 0; i < 4; i++) {
        ptowsp_schedule schedule = lanes_of(3, 0, 0);
        uint64_t makespan = 0;
        schedule.issue = i % 2 ? PTOWSP_ISSUE_IN_ORDER : PTOWSP_ISSUE_DATAFLOW;
        schedule.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN;
        schedule.dependencies = i / 2 ? PTOWSP_DEPENDENCIES_OVERLAP : PTOWSP_DEPENDENCIES_STRUCTURE;
        sprintf(text, "module m\naxis n 7\ntensor x f32 [8, 4, 4] global\n"
                      "kernel k(axes 1, inout a f32 4 x 4) vector, 70 cycles, 30 bytes, time only\n"
                      "kernel s(axes 1) vector, 9 cycles, 90 bytes, time only\n"
                      "workload w\n  parallel i in n\n    task k(i) a = x[i]\n"
                      "  pipeline p\n    channel c depth 1 latency 5\n"
                      "    process a produces c\n      for_each i in n\n        send c(i)\n"
                      "    process b consumes c\n      consume t from c\n        task s(t)\n"
                      "  for_each i in n\n    task k(i) a = x[i]\n    task k(i) a = x[0]\n");
        for (int is_shared = 0; is_shared < 2; is_shared++) {
            schedule.shared.hbm_rate = schedule.shared.l2_rate = is_shared ? 2000 : 0;
            const uint64_t now = makespan_of(f, &schedule);
            assert_true(now > 300);
            assert_true(!is_shared || now == makespan);
            makespan = now;
        }
    }
}

// Of 16 tasks on 16 lanes the second half is as the first one: both end alike. And declared in another order,
// tasks that begin at once end as before.
static void ends_are_symmetric(fixture *f, const task_set *t, bool has_tiles,
                               const ptowsp_schedule *schedule) {
    uint64_t ends[16];
    for (int is_turned = 0; is_turned < 2; is_turned++) {
        task_set turned = *t;
        for (uint32_t i = 0; i < 16 && is_turned; i++) {
            turned.cycles[i] = t->cycles[15 - i];
            turned.bytes[i] = t->bytes[15 - i];
            turned.rows[i] = t->rows[15 - i];
        }
        write_module(&turned, 16, has_tiles, false);
        makespan_of(f, schedule);
        for (uint32_t i = 0; i < 16; i++) {
            const uint64_t end = end_of(f, is_turned ? 15 - i : i);
            assert_true(!is_turned || end == ends[i]);
            ends[i] = end;
        }
        for (uint32_t i = 0; i < 8; i++) {
            assert_int_equal(ends[i], ends[i + 8]);
        }
    }
}

TEST_F(contention__halves_are_symmetric_and_the_order_of_declaration_does_not_matter) {
    uint64_t random = test_seed();
    static task_set t;
    for (int round = 0; round < 20; round++) {
        ptowsp_schedule schedule = lanes_of(16, (uint32_t)test_random_in(&random, 300, 6000), 100);
        schedule.dispatch = dispatch_of(round);
        random_tasks(&random, &t, 8);
        memcpy(t.cycles + 8, t.cycles, 8 * sizeof t.cycles[0]);
        memcpy(t.bytes + 8, t.bytes, 8 * sizeof t.bytes[0]);
        ends_are_symmetric(f, &t, false, &schedule);
    }
}

// The same with tiles: tasks that begin together read regions of a tensor that some of them share.
TEST_F(contention__hits_do_not_depend_on_the_order_of_declaration) {
    uint64_t random = test_seed();
    static task_set t;
    for (int round = 0; round < 20; round++) {
        ptowsp_schedule schedule = lanes_of(16, (uint32_t)test_random_in(&random, 300, 3000),
                                            (uint32_t)test_random_in(&random, 3000, 9000));
        schedule.shared.l2_bytes = (uint64_t)test_random_in(&random, 1, 1 << 21);
        for (int i = 0; i < 8; i++) {
            t.rows[i] = t.rows[i + 8] = (uint64_t)test_random_in(&random, 0, 1024);
            t.cycles[i] = t.cycles[i + 8] = (uint64_t)test_random_in(&random, 1, 9000);
        }
        ends_are_symmetric(f, &t, true, &schedule);
    }
}

// On one lane, with hits, more bandwidth of either is never slower, but for the cycle to which the end of
// each flow is rounded up; and neither moves more than it can.
TEST_F(contention__on_one_lane_more_bandwidth_is_never_slower_with_hits) {
    enum { COUNT = 24 };
    uint64_t random = test_seed();
    static task_set t;
    for (int round = 0; round < 20; round++) {
        ptowsp_schedule schedule = lanes_of(1, 100, 400);
        schedule.shared.l2_bytes = (uint64_t)test_random_in(&random, 1, 1 << 21);
        for (int i = 0; i < COUNT; i++) {
            t.is_written[i] = test_random(&random) % 3 == 0;
            t.cycles[i] = (uint64_t)test_random_in(&random, 1, 60000);
            t.rows[i] = (uint64_t)test_random_in(&random, 0, 1024);
        }
        write_module(&t, COUNT, true, true);
        for (int which = 0; which < 2; which++) {
            uint64_t last = UINT64_MAX - 2 * COUNT;
            schedule.shared.hbm_rate = 100;
            schedule.shared.l2_rate = 400;
            for (uint32_t *rate = which ? &schedule.shared.l2_rate : &schedule.shared.hbm_rate;
                 *rate < 100000; *rate = *rate * 5 / 3) {
                const uint64_t now = makespan_of(f, &schedule);
                const ptowsp_run_stats *stats = ptowsp_run_result(f->run);
                assert_true(now <= last + 2 * COUNT);
                assert_true(now * schedule.shared.hbm_rate >= stats->hbm_bytes * 100);
                assert_true(now * schedule.shared.l2_rate >= stats->l2_bytes * 100);
                assert_int_equal(stats->hbm_bytes + stats->l2_bytes, COUNT * 65536);
                last = now;
            }
        }
    }
}
