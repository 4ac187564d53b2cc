// Schedules whose lanes share memory, as users meet them: tile kernels and host threads. Texts, reports and what is
// refused are in tests/report/export.facts.

#include "contention.h"

static const ptowsp_run_stats *timed(const fixture *f, ptowsp_model model) {
    const ptowsp_run_options options = {
        .mode = PTOWSP_RUN_TIME_ONLY, .record_tasks = true, .cost = {.model = model}};
    assert_ok(ptowsp_run_execute(f->run, &options));
    return ptowsp_run_result(f->run);
}

// -- tile kernels ---------------------------------------------------------------------------------

// A block of a matrix product, 64 of k a step: loads behind products, and a store that nothing hides.
#define GEMM                                                                                       \
    "module m\naxis n %u\n"                                                                        \
    "tensor x f16 [%u, 128, 1024] global\ntensor y f16 [%u, 1024, 256] global\n"                   \
    "tensor z f32 [%u, 128, 256] global\n"                                                         \
    "kernel k(axes 0, in a f16 128 x 1024, in b f16 1024 x 256, out c f32 128 x 256) cube, 41 "    \
    "instructions\n"                                                                               \
    "  %%1 = parameter a\n  %%2 = parameter b\n  %%3 = parameter c\n"                              \
    "  %%4 = full 0 : f32 128 x 256\n  %%5 = size %%1, cols\n  %%6 = const 0\n"                    \
    "  %%7 = loop %%6, %%5, 64\n"                                                                  \
    "    %%8 = slice %%1 at (0, %%7) : f16 128 x 64\n"                                             \
    "    %%9 = slice %%2 at (%%7, 0) : f16 64 x 256\n"                                             \
    "    %%10 = carry %%4 : f32 128 x 256\n"                                                       \
    "    %%11 = matmul_acc %%10, %%8, %%9 : f32 128 x 256\n"                                       \
    "    next %%10, %%11\n  store %%3, %%10\n"                                                     \
    "workload w\n  parallel i in n\n    task k() a = x[i] b = y[i] c = z[i]\n"

// A load, work that takes longer, and a store: nothing overlaps.
#define EXP                                                                                        \
    "module m\naxis n %u\n"                                                                        \
    "tensor x f32 [%u, 128, 128] global\n"                                                         \
    "tensor z f32 [%u, 128, 128] global\n"                                                         \
    "kernel k(axes 0, in a f32 128 x 128, out c f32 128 x 128) vector, 13 instructions\n"          \
    "  %%1 = parameter a\n  %%2 = parameter c\n  %%3 = exp %%1 : f32 128 x 128\n"                  \
    "  %%4 = exp %%3 : f32 128 x 128\n  %%5 = exp %%4 : f32 128 x 128\n  store %%2, %%5\n"         \
    "workload w\n  parallel i in n\n    task k() a = x[i] c = z[i]\n"

static const struct {
    const char *source;
    uint64_t bytes, written;
    double percent;  // of the reference
} tile_cases[] = {
    {GEMM, 2 * 128 * 1024 + 2 * 1024 * 256 + 4 * 128 * 256, 4 * 128 * 256, 2},
    {EXP, 2 * 4 * 128 * 128, 4 * 128 * 128, 2},
};

static const ptowsp_kernel only_kernel = {1};

// Lanes in step all have the same share: each instruction of each lane takes what it takes on a core
// whose paths to memory have that rate.
static uint64_t ref_in_step(fixture *f, double share) {
    ptowsp_core_timing timing = ptowsp_core_timing_of(PTOWSP_MODEL_910B);
    const ptowsp_path paths[] = {PTOWSP_PATH_GM_TO_UB, PTOWSP_PATH_GM_TO_L1, PTOWSP_PATH_UB_TO_GM,
                                 PTOWSP_PATH_L0C_TO_GM};
    for (int i = 0; i < 4; i++) {
        uint32_t *rate = &timing.paths[paths[i]].rate;
        *rate = *rate < share * 100 ? *rate : (uint32_t)(share * 100);
    }
    const ptowsp_cost cost = {.model = PTOWSP_MODEL_910B, .timing = &timing};
    ptowsp_kernel_stats stats;
    assert_ok(ptowsp_kernel_measure(f->module, only_kernel, &cost, &stats));
    return stats.cycles;
}

static void remake_tiles(fixture *f, uint32_t which, uint32_t count,
                         const ptowsp_schedule *schedule) {
    char source[2000];
    snprintf(source, sizeof source, tile_cases[which].source, count, count, count, count);
    remake(f, NULL, source, NULL, schedule);
}

TEST_F(contention__tile_kernels_in_step_take_what_their_instructions_do) {
    const uint32_t lane_count = 8;
    for (uint32_t i = 0; i < COUNT_OF(tile_cases); i++) {
        for (double share = 100; share > 2; share /= 1.4) {
            const ptowsp_schedule schedule =
                lanes_of(lane_count, (uint32_t)(share * 100 * lane_count), 1);
            remake_tiles(f, i, lane_count, &schedule);
            const ptowsp_run_stats *stats = timed(f, PTOWSP_MODEL_910B);
            assert_int_equal(stats->hbm_bytes, lane_count * tile_cases[i].bytes);
            const double expected = (double)ref_in_step(f, share);
            const double error = 100 * ((double)stats->makespan_cycles / expected - 1);
            if (getenv("SHOW") || fabs(error) > tile_cases[i].percent) {
                print_message("kernel %u, %.1f bytes a cycle: %.0f, got %llu (%.2f %%)\n", i, share,
                              expected, (unsigned long long)stats->makespan_cycles, error);
            }
            assert_true(fabs(error) <= tile_cases[i].percent);
        }
    }
}

// A tile kernel alone takes its cycles, in every model, and as the only one on many lanes.
TEST_F(contention__a_tile_kernel_alone_takes_its_cycles) {
    for (int model = PTOWSP_MODEL_UNIT; model <= PTOWSP_MODEL_950PR; model++) {
        const ptowsp_cost cost = {.model = (ptowsp_model)model};
        for (uint32_t i = 0; i < 2 && model != PTOWSP_MODEL_USER; i++) {
            ptowsp_kernel_stats alone;
            ptowsp_schedule schedule = lanes_of(24, 0, 0);
            schedule.shared = ptowsp_shared_memory_of(PTOWSP_MODEL_910B);
            remake_tiles(f, i, 1, &schedule);
            const ptowsp_run_stats *stats = timed(f, cost.model);
            assert_ok(ptowsp_kernel_measure(f->module, only_kernel, &cost, &alone));
            assert_int_equal(stats->makespan_cycles, alone.cycles);
            // Written bytes stay in L2. A byte of each part may be rounded to it.
            const uint64_t missed = tile_cases[i].bytes - tile_cases[i].written;
            assert_in_range(stats->hbm_bytes, missed - 6, missed);
            assert_int_equal(stats->hbm_bytes + stats->l2_bytes, tile_cases[i].bytes);
        }
    }
}

// Two output tiles of 128 x 256, one below the other: each has rows of a to itself, and reads all of b.
#define TWO                                                                                        \
    "kernel two(axes 0, in a f16 256 x 256, in b f16 256 x 256, out c f32 256 x 256) cube, 35 "    \
    "instructions\n"                                                                               \
    "  %1 = parameter a\n  %2 = parameter b\n  %3 = parameter c\n"                                 \
    "  %4 = full 0 : f32 128 x 256\n  %5 = const 0\n  %6 = size %1, rows\n"                        \
    "  %7 = loop %5, %6, 128\n    %8 = size %1, cols\n    %9 = loop %5, %8, 64\n"                  \
    "      %10 = slice %1 at (%7, %9) : f16 128 x 64\n"                                            \
    "      %11 = slice %2 at (%9, 0) : f16 64 x 256\n      %12 = carry %4 : f32 128 x 256\n"       \
    "      %13 = matmul_acc %12, %10, %11 : f32 128 x 256\n      next %12, %13\n"                  \
    "    store %3, %12 at (%7, 0)\n"

// a and b have 128 KiB each, c has 256, b is read twice. Between two passes over b: b, half of a, half
// of c, 320 KiB. If L2 has 640, they hit, and c fits into its half; with 320, the second pass misses, and
// of c (256 - 160) / 160. Two tasks with the same b, in step: each has a half of the misses of b.
TEST_F(contention__tiles_that_a_task_reads_again_hit_what_l2_holds) {
    static const char *const source =
        "module m\naxis n %d\ntensor x f16 [%d, 256, 256] global\ntensor y f16 [256, 256] global\n"
        "tensor z f32 [%d, 256, 256] global\n%s"
        "workload w\n  parallel i in n\n    task two() a = x[i] b = y c = z[i]\n";
    const uint64_t kib = 1024, all = (128 + 2 * 128 + 256) * kib;
    for (int i = 0; i < 4; i++) {
        const uint32_t lane_count = i < 2 ? 1 : 2;
        // two tasks: b, and half of two a and two c: 128 + 128 + 256
        const uint64_t between = (i < 2 ? 320 : 512) * kib, l2_bytes = between << (i % 2);
        ptowsp_schedule schedule = lanes_of(lane_count, 32000, 64000);
        schedule.shared.l2_bytes = l2_bytes;
        char text[2000];
        const int n = (int)lane_count;
        snprintf(text, sizeof text, source, n, n, n, TWO);
        remake(f, NULL, text, NULL, &schedule);
        const ptowsp_run_stats *stats = timed(f, PTOWSP_MODEL_910B);
        const double size = 262144.0 * lane_count, half = (double)l2_bytes / 2;
        const double stored = i % 2 ? 0 : (size - half) / half * size;
        const double again = i % 2 ? 0 : 131072;
        const double expected = 131072.0 * (lane_count + 1) + again + stored;
        assert_true(fabs((double)stats->hbm_bytes - expected) < 20);
        assert_int_equal(stats->hbm_bytes + stats->l2_bytes, lane_count * all);
    }
}

// The vertex of the curve of a kernel with a load and a sum in each of many short steps is at one of the
// points: transfers decide nearly from the start. At 10 bytes a cycle, they are all that counts.
TEST_F(contention__a_kernel_may_bend_where_it_is_counted) {
    const uint64_t bytes = (16384 + 16) * 64 * 4;
    const ptowsp_schedule schedule = lanes_of(2, 1000, 2000);
    remake(f, NULL,
           "module m\ntensor x f32 [16384, 64] global\ntensor z f32 [16, 64] global\n"
           "kernel k(axes 0, in a f32 16384 x 64, out c f32 16 x 64) vector, 21 instructions\n"
           "  %1 = parameter a\n  %2 = parameter c\n  %3 = full 0 : f32 16 x 64\n"
           "  %4 = size %1, rows\n  %5 = const 0\n  %6 = loop %5, %4, 16\n"
           "    %7 = slice %1 at (%6, 0) : f32 16 x 64\n    %8 = carry %3 : f32 16 x 64\n"
           "    %9 = exp %7 : f32 16 x 64\n    %10 = add %8, %9 : f32 16 x 64\n"
           "    next %8, %10\n  store %2, %8\nworkload w\n  task k() a = x c = z\n",
           NULL, &schedule);
    assert_int_equal(timed(f, PTOWSP_MODEL_A2A3)->hbm_bytes, bytes);
    assert_in_range(ptowsp_run_result(f->run)->makespan_cycles, bytes / 10, bytes * 102 / 1000);
}

// -- hits -----------------------------------------------------------------------------------------

// The last kernel of an execution reads a tile again. Functions, first in the next one, do not.
TEST_F(contention__functions_read_nothing_again) {
    ptowsp_schedule schedule = lanes_of(1, 3200, 64000);
    schedule.shared.l2_bytes = 320 * 1024;
    remake(
        f, NULL,
        "module m\ntensor x f16 [256, 256] global\ntensor y f16 [256, 256] global\n"
        "tensor z f32 [256, 256] global\n"
        "kernel plain(axes 0, in x f16 256 x 256, in y f16 256 x 256) vector, 1000 cycles, bytes "
        "of its tiles, time only\n" TWO
        "workload w\n  task plain() x = x y = y\n  task plain() x = x y = y\n"  // hits some
        "  task two() a = x b = y c = z\n",
        NULL, &schedule);
    const uint64_t bytes = timed(f, PTOWSP_MODEL_910B)->hbm_bytes;
    assert_int_equal(timed(f, PTOWSP_MODEL_910B)->hbm_bytes, bytes);
}

// -- threads --------------------------------------------------------------------------------------

static ptowsp_cycles work(const ptowsp_task *task, void *user) {
    (void)user;
    return 100 + task->args[0] * 37 % 1000;
}

static const char threads_text[] =
    "module m\naxis l 4\naxis n 60\ntensor x f32 [5, 60, 16] global\n"
    "kernel k(axes 2, in a f32 1 x 16, out c f32 1 x 16) vector, bytes of its tiles\n"
    "kernel d(axes 1, inout a f32 1 x 16) vector, 5000 bytes\n"
    "workload w\n"
    "  for_each j in l\n    parallel i in n\n"
    "      task k(i, j) a = x[j] at (i * 7 % 60, 0) c = x[j + 1] at (i, 0)\n"
    "  parallel i in n\n    task d(i) a = x[0] at (i, 0)\n";

TEST_F(contention__all_numbers_of_threads_give_the_same_times) {
    static const ptowsp_parse_kernel kernels[] = {{.name = "k", .fn = work},
                                                  {.name = "d", .fn = work}};
    static const ptowsp_parse_desc attached = {.kernels = kernels, .kernel_count = 2};
    static const uint32_t lanes[] = {1, 2, 3, 8};
    static float data[5 * 60 * 16];
    ptowsp_task_record first[300];
    ptowsp_run_stats stats;
    for (int policy = 0; policy < 3; policy++) {
        for (uint32_t i = 0; i < 4; i++) {
            const ptowsp_context_desc context = {.threads = PTOWSP_THREADS_OWN,
                                                 .lane_count = lanes[i]};
            const ptowsp_run_options options = {.record_tasks = true, .lane_count = lanes[i]};
            ptowsp_schedule schedule = lanes_of(7, 900, 700);
            schedule.shared.l2_bytes = 3000;
            schedule.issue = policy == 1 ? PTOWSP_ISSUE_IN_ORDER : PTOWSP_ISSUE_DATAFLOW;
            schedule.dispatch =
                policy ? PTOWSP_DISPATCH_ROUND_ROBIN : PTOWSP_DISPATCH_WORK_STEALING;
            remake(f, &context, threads_text, &attached, &schedule);
            test_bind(f->run, "x", data);
            assert_ok(ptowsp_run_execute(f->run, &options));
            ptowsp_run_stats now = *ptowsp_run_result(f->run);
            assert_int_equal(now.task_count, 300);
            assert_true(now.slowed_cycles > 0);
            now.memory_bytes = 0;
            if (i == 0) {
                stats = now;
                memcpy(first, ptowsp_run_records(f->run), sizeof first);
            }
            assert_memory_equal(&now, &stats, sizeof now);
            assert_memory_equal(ptowsp_run_records(f->run), first, sizeof first);
        }
    }
}
