// Memory that simulated lanes share. What tasks take is compared with numbers from paper, with a slow
// reference that moves bytes cycle by cycle in floating point, and with what must hold whatever the
// numbers: a lane alone, more bandwidth, the least time of all bytes, equal halves, any order of
// declaration, any number of threads.

#include "support/fixture.h"

#include <math.h>

enum { TEXT_MAX = 1 << 20, KERNELS = 64 };

static char text[TEXT_MAX];

static ptowsp_schedule lanes_of(uint32_t lane_count, uint32_t hbm_rate, uint32_t l2_rate) {
    ptowsp_schedule schedule;
    memset(&schedule, 0, sizeof schedule);
    schedule.lane_count = lane_count;
    schedule.dispatch = PTOWSP_DISPATCH_WORK_STEALING;
    schedule.shared.hbm_rate = hbm_rate;
    schedule.shared.l2_rate = l2_rate;
    return schedule;
}

// A module of tasks, each of a kernel of its own, all independent or one after another.
static void write_tasks(const uint64_t *cycles, const uint64_t *bytes, uint32_t count,
                        bool is_sequence) {
    char *at = text;
    at += sprintf(at, "module m\n");
    for (uint32_t i = 0; i < count; i++) {
        at += sprintf(at, "kernel k%u(axes 1) vector, %llu cycles, %llu bytes, time only\n", i,
                      (unsigned long long)cycles[i], (unsigned long long)bytes[i]);
    }
    at += sprintf(at, "workload w\n  %s\n", is_sequence ? "sequence" : "combine");
    for (uint32_t i = 0; i < count; i++) {
        at += sprintf(at, "    task k%u(%u)\n", i, i);
    }
}

static ptowsp_status execute(fixture *f, const ptowsp_schedule *schedule) {
    const ptowsp_program_desc desc = {NULL, schedule};
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY, .record_tasks = true};
    fixture_free(f);
    memset(f, 0, sizeof *f);
    assert_int_equal(ptowsp_context_create(NULL, &f->context), PTOWSP_OK);
    program_make(f, text, NULL, &desc);
    return ptowsp_run_execute(f->run, &options);
}

static uint64_t makespan_of(fixture *f, const ptowsp_schedule *schedule) {
    if (execute(f, schedule) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(f->context).text);
    }
    return ptowsp_run_result(f->run)->makespan_cycles;
}

static uint64_t end_of(const fixture *f, uint32_t task) {
    return ptowsp_run_records(f->run)[task].end;
}

// -- from paper -----------------------------------------------------------------------------------

// HBM moves 10 bytes a cycle. Three tasks of 100 cycles and 600 bytes ask for 6 each and get 10/3 until
// 3 * 600 bytes are moved: 180 cycles. Beside them one of 100 cycles and 200 bytes asks for 2, which is
// less than a quarter: it has them, and the three share 8, which is 2 + 2/3 each.
static void contention__flows_share_what_smaller_ones_leave(void **state) {
    fixture *f = (fixture *)*state;
    const uint64_t cycles[] = {100, 100, 100, 100}, bytes[] = {600, 600, 600, 200};
    ptowsp_schedule schedule = lanes_of(4, 1000, 1000);
    write_tasks(cycles, bytes, 3, false);
    assert_int_equal(makespan_of(f, &schedule), 180);
    assert_int_equal(ptowsp_run_result(f->run)->slowed_cycles, 240);
    assert_int_equal(ptowsp_run_result(f->run)->hbm_bytes, 1800);
    assert_int_equal(ptowsp_run_result(f->run)->hbm_limited_cycles, 180);
    // Until 100 the three move 800 / 3 each; then 10 / 3 a cycle: 333.3 bytes take 100 cycles.
    write_tasks(cycles, bytes, 4, false);
    assert_int_equal(makespan_of(f, &schedule), 200);
    assert_int_equal(end_of(f, 3), 100);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(end_of(f, i), 200);
    }
}

// A flow that was bound is free again when others end, and a free one is bound when others begin.
// 10 bytes a cycle: A (100 cycles, 800 bytes) and B (50 cycles, 400 bytes) ask for 8 each and get 5. B
// ends after 80, then A has 400 bytes left, and its own 8 a cycle: 130. B's lane runs C (20 cycles, no
// bytes) and D (100 cycles, 300 bytes: 3 a cycle) from 100 on. Then A shares with D: 8 + 3 > 10, D has 3,
// A has 7: 240 bytes left at 100 take 34.3 cycles: 135 in whole ones. D is never slowed: 200.
static void contention__shares_follow_what_begins_and_ends(void **state) {
    fixture *f = (fixture *)*state;
    const uint64_t cycles[] = {100, 50, 20, 100}, bytes[] = {800, 400, 0, 300};
    ptowsp_schedule schedule = lanes_of(2, 1000, 1000);
    write_tasks(cycles, bytes, 4, false);
    assert_int_equal(makespan_of(f, &schedule), 200);
    assert_int_equal(end_of(f, 1), 80);
    assert_int_equal(end_of(f, 2), 100);
    assert_int_equal(end_of(f, 0), 135);
    assert_int_equal(end_of(f, 3), 200);
}

// 4 KiB a pass over a tensor, of two passes. The first misses: HBM gives 8 bytes a cycle to tasks that
// ask for 10.24. The second hits if the 4 KiB missed in between are at most half of L2, and misses if they
// are all of it. With 6 KiB, of each tile of 1 KiB a part of (d - 3 KiB) / 3 KiB misses, where d is what
// was missed since the first pass began: 4096, 4437, 4892, 5498 bytes; so 341, 455, 606, 808.
static void contention__later_passes_over_a_tensor_hit_what_l2_holds(void **state) {
    fixture *f = (fixture *)*state;
    ptowsp_schedule schedule = lanes_of(1, 800, 1600);
    sprintf(text, "module m\naxis b 4\naxis p 2\ntensor x f32 [64, 16] global\n"
                  "kernel k(axes 1, in a f32 16 x 16) vector, 100 cycles, bytes of its tiles, time "
                  "only\n"
                  "workload w\n  for_each q in p\n    for_each i in b\n"
                  "      task k(i) a = x at (i * 16, 0)\n");
    schedule.shared.l2_bytes = 8192;
    assert_int_equal(makespan_of(f, &schedule), 4 * 128 + 4 * 100);
    assert_int_equal(ptowsp_run_result(f->run)->hbm_bytes, 4096);
    assert_int_equal(ptowsp_run_result(f->run)->l2_bytes, 4096);
    schedule.shared.l2_bytes = 4096;
    assert_int_equal(makespan_of(f, &schedule), 8 * 128);
    assert_int_equal(ptowsp_run_result(f->run)->hbm_bytes, 8192);
    schedule.shared.l2_bytes = 6144;
    makespan_of(f, &schedule);
    assert_int_equal(ptowsp_run_result(f->run)->hbm_bytes, 4096 + 341 + 455 + 606 + 808);
}

// Two tasks read 4 KiB at once: each misses a half, by 4 bytes a cycle of HBM's 8, and finds the other in
// L2, by 8 of 16: 512 + 256 cycles. One after the other, the second hits: 512 and 256 as well.
static void contention__tasks_that_begin_together_share_what_they_miss(void **state) {
    fixture *f = (fixture *)*state;
    for (int is_together = 0; is_together < 2; is_together++) {
        ptowsp_schedule schedule = lanes_of(is_together ? 2 : 1, 800, 1600);
        schedule.shared.l2_bytes = 1 << 20;
        sprintf(text,
                "module m\naxis n 2\ntensor x f32 [64, 16] global\n"
                "kernel k(axes 1, in a f32 64 x 16) vector, 1 cycles, bytes of its tiles, time "
                "only\n"
                "workload w\n  parallel i in n\n    task k(i) a = x\n");
        assert_int_equal(makespan_of(f, &schedule), 768);
        assert_int_equal(ptowsp_run_result(f->run)->hbm_bytes, 4096);
        assert_int_equal(end_of(f, 0), is_together ? 768 : 512);
        assert_int_equal(end_of(f, 1), 768);
    }
}

// A task of 1,000 cycles that misses a half of 4 KiB asks HBM and L2 for as much as it needs of each:
// beside it, HBM's 8 bytes a cycle and L2's 16 are not short, and it takes no more than alone.
static void contention__misses_are_spread_over_the_work_of_a_task(void **state) {
    fixture *f = (fixture *)*state;
    static const uint32_t cycles[] = {1000, 768, 700, 100};
    for (int i = 0; i < 4; i++) {
        ptowsp_schedule schedule = lanes_of(2, 800, 1600);
        schedule.shared.l2_bytes = 1 << 20;
        sprintf(text,
                "module m\naxis n 2\ntensor x f32 [64, 16] global\n"
                "kernel k(axes 1, in a f32 64 x 16) vector, %u cycles, bytes of its tiles, time "
                "only\n"
                "workload w\n  parallel i in n\n    task k(i) a = x\n",
                cycles[i]);
        // max(cycles, 2048 / 4 + 2048 / 8); a flow that asks for a part of a byte asks for the next
        const uint64_t expected = cycles[i] > 768 ? cycles[i] : 768,
                       got = makespan_of(f, &schedule);
        assert_in_range(got, expected, expected + 1);
    }
}

// 256 KiB are four regions of 64 KiB. A region that was read hits, whether or not others were.
static void contention__regions_of_a_tensor_hit_each_by_itself(void **state) {
    fixture *f = (fixture *)*state;
    ptowsp_schedule schedule = lanes_of(1, 800, 1600);
    schedule.shared.l2_bytes = 1 << 20;
    sprintf(text, "module m\ntensor x f32 [1024, 64] global\n"
                  "kernel k(axes 1, in a f32 256 x 64) vector, 1 cycles, bytes of its tiles, time "
                  "only\n"
                  "workload w\n  sequence\n    task k(0) a = x at (512, 0)\n"
                  "    task k(1) a = x at (512, 0)\n    task k(2) a = x at (0, 0)\n"
                  "    task k(3) a = x at (640, 0)\n");
    makespan_of(f, &schedule);
    const uint64_t kib = 1024, miss = 64 * kib / 8, hit = 64 * kib / 16;
    assert_int_equal(end_of(f, 0), miss);
    assert_int_equal(end_of(f, 1), miss + hit);
    assert_int_equal(end_of(f, 2), 2 * miss + hit);
    // of the region from 512 on another half, which hits; of the one from 768 on half misses
    assert_int_equal(end_of(f, 3), 2 * miss + hit + miss / 2 + hit / 2);
    assert_int_equal(ptowsp_run_result(f->run)->hbm_bytes, 160 * kib);
}

// The task that is declared last begins first, at 0, and misses; the other one begins at 700 and hits.
static void contention__hits_follow_simulated_time_not_the_order_of_issue(void **state) {
    fixture *f = (fixture *)*state;
    ptowsp_schedule schedule = lanes_of(2, 800, 1600);
    schedule.shared.l2_bytes = 1 << 20;
    sprintf(text, "module m\ntensor x f32 [64, 16] global\n"
                  "kernel p(axes 1) vector, 700 cycles, time only\n"
                  "kernel k(axes 1, in a f32 64 x 16) vector, 1 cycles, bytes of its tiles, time "
                  "only\n"
                  "workload w\n  combine\n    sequence\n      task p(0)\n      task k(1) a = x\n"
                  "    task k(2) a = x\n");
    makespan_of(f, &schedule);
    assert_int_equal(end_of(f, 2), 512);
    assert_int_equal(end_of(f, 1), 700 + 256);
}

// Written bytes stay in L2, if it holds their tensor; a task that reads them later hits.
static void contention__written_tiles_stay_in_l2(void **state) {
    fixture *f = (fixture *)*state;
    ptowsp_schedule schedule = lanes_of(1, 800, 1600);
    sprintf(text, "module m\ntensor x f32 [64, 16] global\n"
                  "kernel o(axes 1, out a f32 64 x 16) vector, 1 cycles, bytes of its tiles, time "
                  "only\n"
                  "kernel k(axes 1, in a f32 64 x 16) vector, 1 cycles, bytes of its tiles, time "
                  "only\n"
                  "workload w\n  sequence\n    task o(0) a = x\n    task k(1) a = x\n");
    schedule.shared.l2_bytes = 8192;
    assert_int_equal(makespan_of(f, &schedule), 256 + 256);
    schedule.shared.l2_bytes = 4096;
    assert_int_equal(makespan_of(f, &schedule), 512 + 512);
}

// A lane's own rate is a limit beside those of all lanes: 5 of 10 bytes a cycle.
static void contention__a_lane_has_a_rate_of_its_own(void **state) {
    fixture *f = (fixture *)*state;
    const uint64_t cycles[] = {100}, bytes[] = {800};
    ptowsp_schedule schedule = lanes_of(1, 1000, 1000);
    write_tasks(cycles, bytes, 1, false);
    assert_int_equal(makespan_of(f, &schedule), 100);
    schedule.shared.lane_rate = 500;
    assert_int_equal(makespan_of(f, &schedule), 160);
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
static double ref_run(const uint64_t *cycles, const uint64_t *bytes, int count, int lane_count,
                      double capacity, bool is_dealt, double *ends) {
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
                lanes[i].left = (double)cycles[next];
                lanes[i].rate = (double)bytes[next] / (double)cycles[next];
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

static void random_tasks(uint64_t *random, uint64_t *cycles, uint64_t *bytes, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        cycles[i] = (uint64_t)test_random_in(random, 200, 2000);
        bytes[i] = cycles[i] * (uint64_t)test_random_in(random, 0, 12);
    }
}

static void contention__agrees_with_steps_of_a_sixteenth_of_a_cycle(void **state) {
    fixture *f = (fixture *)*state;
    uint64_t random = test_seed(), cycles[KERNELS], bytes[KERNELS];
    double ends[KERNELS], worst = 0;
    for (int round = 0; round < 60; round++) {
        const uint32_t count = (uint32_t)test_random_in(&random, 1, KERNELS);
        const uint32_t lane_count = (uint32_t)test_random_in(&random, 1, 16);
        const uint32_t rate = (uint32_t)test_random_in(&random, 300, 6000);
        ptowsp_schedule schedule = lanes_of(lane_count, rate, 1);
        const bool is_dealt = round % 2;
        schedule.dispatch = is_dealt ? PTOWSP_DISPATCH_ROUND_ROBIN : PTOWSP_DISPATCH_WORK_STEALING;
        schedule.issue = round % 4 < 2 ? PTOWSP_ISSUE_DATAFLOW : PTOWSP_ISSUE_IN_ORDER;
        random_tasks(&random, cycles, bytes, count);
        write_tasks(cycles, bytes, count, false);
        const double expected =
            ref_run(cycles, bytes, (int)count, (int)lane_count, rate / 100.0, is_dealt, ends);
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

static void contention__independent_tasks_are_never_slower_with_more_bandwidth(void **state) {
    fixture *f = (fixture *)*state;
    uint64_t random = test_seed(), cycles[KERNELS], bytes[KERNELS];
    for (int round = 0; round < 30; round++) {
        const uint32_t count = (uint32_t)test_random_in(&random, 1, KERNELS);
        ptowsp_schedule schedule =
            lanes_of(round % 3 ? (uint32_t)test_random_in(&random, 2, 16) : 1, 100, 100);
        schedule.dispatch = round % 2 ? PTOWSP_DISPATCH_ROUND_ROBIN : PTOWSP_DISPATCH_WORK_STEALING;
        uint64_t last = UINT64_MAX, total = 0;
        random_tasks(&random, cycles, bytes, count);
        write_tasks(cycles, bytes, count, false);
        for (uint32_t i = 0; i < count; i++) {
            total += bytes[i];
        }
        for (uint32_t rate = 100; rate < 100000; rate = rate * 5 / 3) {
            schedule.shared.hbm_rate = rate;
            const uint64_t now = makespan_of(f, &schedule);
            assert_true(now <= last);
            assert_true(now * rate >= total * 100);  // no more than HBM can move
            last = now;
        }
    }
}

static void contention__total_bytes_bound_every_makespan(void **state) {
    fixture *f = (fixture *)*state;
    uint64_t random = test_seed() + 1, cycles[KERNELS], bytes[KERNELS];
    for (int round = 0; round < 60; round++) {
        const uint32_t count = (uint32_t)test_random_in(&random, 1, KERNELS);
        ptowsp_schedule schedule = lanes_of((uint32_t)test_random_in(&random, 1, 16),
                                            (uint32_t)test_random_in(&random, 100, 9000), 1);
        uint64_t total = 0;
        random_tasks(&random, cycles, bytes, count);
        write_tasks(cycles, bytes, count, round % 3 == 0);
        for (uint32_t i = 0; i < count; i++) {
            total += bytes[i];
        }
        const uint64_t makespan = makespan_of(f, &schedule);
        assert_true(makespan * schedule.shared.hbm_rate >= total * 100);
        assert_int_equal(ptowsp_run_result(f->run)->hbm_bytes, total);
        ptowsp_run_bounds bounds;
        assert_int_equal(ptowsp_run_find_bounds(f->run, &bounds), PTOWSP_OK);
        assert_int_equal(bounds.hbm_cycles,
                         (total * 100 + schedule.shared.hbm_rate - 1) / schedule.shared.hbm_rate);
        assert_true(bounds.largest_cycles <= makespan);
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
static void contention__alone_and_with_enough_bandwidth_all_is_as_without(void **state) {
    fixture *f = (fixture *)*state;
    uint64_t random = test_seed(), cycles[KERNELS], bytes[KERNELS];
    ptowsp_task_record records[KERNELS];
    for (int round = 0; round < 80; round++) {
        const uint32_t count = (uint32_t)test_random_in(&random, 1, KERNELS);
        const bool is_one = round % 2;
        ptowsp_schedule schedule =
            random_schedule(&random, is_one ? 1 : (uint32_t)test_random_in(&random, 2, 16));
        random_tasks(&random, cycles, bytes, count);
        write_tasks(cycles, bytes, count, round % 5 == 0);
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
static void contention__pipelines_are_as_without(void **state) {
    fixture *f = (fixture *)*state;
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

// The same tasks on both halves of the lanes: both halves have the same times. And declared in another
// order, tasks that begin at once end alike.
static void contention__halves_are_symmetric_and_the_order_of_declaration_does_not_matter(
    void **state) {
    fixture *f = (fixture *)*state;
    uint64_t random = test_seed(), cycles[16], bytes[16], ends[16];
    for (int round = 0; round < 20; round++) {
        ptowsp_schedule schedule = lanes_of(16, (uint32_t)test_random_in(&random, 300, 6000), 100);
        schedule.dispatch = round % 2 ? PTOWSP_DISPATCH_ROUND_ROBIN : PTOWSP_DISPATCH_WORK_STEALING;
        random_tasks(&random, cycles, bytes, 8);
        memcpy(cycles + 8, cycles, 8 * sizeof cycles[0]);
        memcpy(bytes + 8, bytes, 8 * sizeof bytes[0]);
        write_tasks(cycles, bytes, 16, false);
        makespan_of(f, &schedule);
        for (uint32_t i = 0; i < 8; i++) {
            assert_int_equal(end_of(f, i), end_of(f, i + 8));
        }
        for (uint32_t i = 0; i < 16; i++) {
            ends[i] = end_of(f, i);
        }
        for (uint32_t i = 0; i < 8; i++) {
            const uint64_t c = cycles[i], b = bytes[i];
            cycles[i] = cycles[15 - i];
            bytes[i] = bytes[15 - i];
            cycles[15 - i] = c;
            bytes[15 - i] = b;
        }
        write_tasks(cycles, bytes, 16, false);
        makespan_of(f, &schedule);
        for (uint32_t i = 0; i < 16; i++) {
            assert_int_equal(end_of(f, i), ends[15 - i]);
        }
    }
}

// The same with tiles: tasks that begin together read regions of a tensor that some of them share. Both
// halves of the lanes end alike, and so do tasks that are declared in another order.
static void contention__hits_do_not_depend_on_the_order_of_declaration(void **state) {
    fixture *f = (fixture *)*state;
    uint64_t random = test_seed(), ends[16];
    for (int round = 0; round < 20; round++) {
        uint64_t rows[16], cycles[16];
        ptowsp_schedule schedule = lanes_of(16, (uint32_t)test_random_in(&random, 300, 3000),
                                            (uint32_t)test_random_in(&random, 3000, 9000));
        schedule.shared.l2_bytes = (uint64_t)test_random_in(&random, 1, 1 << 21);
        for (int i = 0; i < 8; i++) {
            rows[i] = rows[i + 8] = (uint64_t)test_random_in(&random, 0, 1024);
            cycles[i] = cycles[i + 8] = (uint64_t)test_random_in(&random, 1, 9000);
        }
        for (int is_turned = 0; is_turned < 2; is_turned++) {
            char *at = text + sprintf(text, "module m\ntensor x f32 [1280, 64] global\n");
            for (int i = 0; i < 16; i++) {
                at += sprintf(at,
                              "kernel k%d(axes 1, in a f32 256 x 64) vector, %llu cycles, bytes of "
                              "its tiles, time only\n",
                              i, (unsigned long long)cycles[is_turned ? 15 - i : i]);
            }
            at += sprintf(at, "workload w\n  combine\n");
            for (int i = 0; i < 16; i++) {
                at += sprintf(at, "    task k%d(%d) a = x at (%llu, 0)\n", i, i,
                              (unsigned long long)rows[is_turned ? 15 - i : i]);
            }
            makespan_of(f, &schedule);
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
}

// On one lane, with hits, more bandwidth of either is never slower, but for the cycle to which the end of
// each flow is rounded up; and neither moves more than it can.
static void contention__on_one_lane_more_bandwidth_is_never_slower_with_hits(void **state) {
    fixture *f = (fixture *)*state;
    uint64_t random = test_seed();
    for (int round = 0; round < 20; round++) {
        enum { COUNT = 24 };
        ptowsp_schedule schedule = lanes_of(1, 100, 400);
        schedule.shared.l2_bytes = (uint64_t)test_random_in(&random, 1, 1 << 21);
        char *at = text + sprintf(text, "module m\ntensor x f32 [1280, 64] global\n");
        for (int i = 0; i < COUNT; i++) {
            at += sprintf(at,
                          "kernel k%d(axes 1, %s a f32 256 x 64) vector, %d cycles, bytes of its "
                          "tiles, time only\n",
                          i, test_random(&random) % 3 ? "in" : "out",
                          (int)test_random_in(&random, 1, 60000));
        }
        at += sprintf(at, "workload w\n  sequence\n");
        for (int i = 0; i < COUNT; i++) {
            at += sprintf(at, "    task k%d(%d) a = x at (%d, 0)\n", i, i,
                          (int)test_random_in(&random, 0, 1024));
        }
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

int main(void) {
    const struct CMUnitTest tests[] = {
#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(contention__flows_share_what_smaller_ones_leave),
        TEST(contention__shares_follow_what_begins_and_ends),
        TEST(contention__later_passes_over_a_tensor_hit_what_l2_holds),
        TEST(contention__tasks_that_begin_together_share_what_they_miss),
        TEST(contention__misses_are_spread_over_the_work_of_a_task),
        TEST(contention__regions_of_a_tensor_hit_each_by_itself),
        TEST(contention__hits_follow_simulated_time_not_the_order_of_issue),
        TEST(contention__written_tiles_stay_in_l2),
        TEST(contention__a_lane_has_a_rate_of_its_own),
        TEST(contention__agrees_with_steps_of_a_sixteenth_of_a_cycle),
        TEST(contention__independent_tasks_are_never_slower_with_more_bandwidth),
        TEST(contention__total_bytes_bound_every_makespan),
        TEST(contention__alone_and_with_enough_bandwidth_all_is_as_without),
        TEST(contention__pipelines_are_as_without),
        TEST(contention__halves_are_symmetric_and_the_order_of_declaration_does_not_matter),
        TEST(contention__on_one_lane_more_bandwidth_is_never_slower_with_hits),
        TEST(contention__hits_do_not_depend_on_the_order_of_declaration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
