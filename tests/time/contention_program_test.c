// Schedules whose lanes share memory, as users meet them: tile kernels, host threads, texts, reports,
// and what is refused.

#include "report_text.h"
#include "support/fixture.h"

#include <math.h>

enum { TEXT_MAX = 1 << 17 };

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

static void restart(fixture *f, const ptowsp_context_desc *desc) {
    fixture_free(f);
    memset(f, 0, sizeof *f);
    assert_int_equal(ptowsp_context_create(desc, &f->context), PTOWSP_OK);
}

static void has(const char *part) {
    if (!strstr(text, part)) {
        fail_msg("\"%s\" is not in\n%s", part, text);
    }
}

// -- tile kernels ---------------------------------------------------------------------------------

// A block of a matrix product, 64 of k a step: loads behind products, and a store that nothing hides.
static ptowsp_kernel make_gemm(ptowsp_module *m) {
    const ptowsp_body_desc desc = {.name = "k"};
    const ptowsp_value none = {NULL, 0};
    ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
    ptowsp_value a = ptowsp_tile_in(k, "a", PTOWSP_F16, 128, 1024);
    ptowsp_value b = ptowsp_tile_in(k, "b", PTOWSP_F16, 1024, 256);
    ptowsp_value c = ptowsp_tile_out(k, "c", PTOWSP_F32, 128, 256);
    ptowsp_value zero = ptowsp_tile_full(k, PTOWSP_F32, 128, 256, 0), sum = none;
    PTOWSP_TILE_LOOP(k, i, ptowsp_tile_const(k, 0), ptowsp_tile_cols(a), 64) {
        ptowsp_value left = ptowsp_tile_slice_at(a, none, i, 128, 64);
        ptowsp_value right = ptowsp_tile_slice_at(b, i, none, 64, 256);
        sum = ptowsp_tile_carry(zero);
        ptowsp_tile_next(sum, ptowsp_tile_matmul_acc(sum, left, right));
    }
    ptowsp_tile_store(c, sum);
    return ptowsp_kernel_end(k);
}

// A load, work that takes longer, and a store: nothing overlaps.
static ptowsp_kernel make_exp(ptowsp_module *m) {
    const ptowsp_body_desc desc = {.name = "k"};
    ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
    ptowsp_value a = ptowsp_tile_in(k, "a", PTOWSP_F32, 128, 128);
    ptowsp_value c = ptowsp_tile_out(k, "c", PTOWSP_F32, 128, 128);
    ptowsp_value x = ptowsp_tile_exp(ptowsp_tile_exp(ptowsp_tile_exp(a)));
    ptowsp_tile_store(c, x);
    return ptowsp_kernel_end(k);
}

typedef struct tile_case {
    ptowsp_kernel (*make)(ptowsp_module *m);
    uint64_t bytes, written;
    double percent;  // of the reference
} tile_case;

static const tile_case tile_cases[] = {
    {make_gemm, 2 * 128 * 1024 + 2 * 1024 * 256 + 4 * 128 * 256, 4 * 128 * 256, 2},
    {make_exp, 2 * 4 * 128 * 128, 4 * 128 * 128, 2},
};

// Lanes in step all have the same share: each instruction of each lane takes what it takes on a core
// whose paths to memory have that rate.
static uint64_t ref_in_step(fixture *f, ptowsp_kernel kernel, double share) {
    ptowsp_core_timing timing = ptowsp_core_timing_of(PTOWSP_MODEL_910B);
    const ptowsp_path paths[] = {PTOWSP_PATH_GM_TO_UB, PTOWSP_PATH_GM_TO_L1, PTOWSP_PATH_UB_TO_GM,
                                 PTOWSP_PATH_L0C_TO_GM};
    for (int i = 0; i < 4; i++) {
        uint32_t *rate = &timing.paths[paths[i]].rate;
        *rate = *rate < share * 100 ? *rate : (uint32_t)(share * 100);
    }
    const ptowsp_cost cost = {.model = PTOWSP_MODEL_910B, .timing = &timing};
    ptowsp_kernel_stats stats;
    assert_int_equal(ptowsp_kernel_measure(f->module, kernel, &cost, &stats), PTOWSP_OK);
    return stats.cycles;
}

static void build_tiles(fixture *f, const tile_case *of, uint32_t lane_count,
                        ptowsp_kernel *out_kernel) {
    restart(f, NULL);
    assert_int_equal(ptowsp_module_create(f->context, NULL, &f->module), PTOWSP_OK);
    *out_kernel = of->make(f->module);
    ptowsp_task_desc task;
    memset(&task, 0, sizeof task);
    task.kernel = *out_kernel;
    const bool is_gemm = of->make == make_gemm;
    const ptowsp_tensor_desc a = {.name = "x",
                                  .dtype = is_gemm ? PTOWSP_F16 : PTOWSP_F32,
                                  .rank = 3,
                                  .shape = {lane_count, 128, is_gemm ? 1024 : 128}};
    const ptowsp_tensor_desc b = {
        .name = "y", .dtype = PTOWSP_F16, .rank = 3, .shape = {lane_count, 1024, 256}};
    const ptowsp_tensor_desc c = {.name = "z",
                                  .dtype = PTOWSP_F32,
                                  .rank = 3,
                                  .shape = {lane_count, 128, is_gemm ? 256 : 128}};
    uint32_t at = 0;
    task.views[at++].tensor = ptowsp_tensor_make(f->module, &a);
    if (is_gemm) {
        task.views[at++].tensor = ptowsp_tensor_make(f->module, &b);
    }
    task.views[at++].tensor = ptowsp_tensor_make(f->module, &c);
    PTOWSP_WORKLOAD(f->module, "w") {
        PTOWSP_PARALLEL(f->module, i, ptowsp_axis_dense(f->module, "n", lane_count)) {
            for (uint32_t v = 0; v < at; v++) {
                task.views[v].index[0] = i;
            }
            ptowsp_task_make(f->module, &task);
        }
    }
}

static void contention__tile_kernels_in_step_take_what_their_instructions_do(void **state) {
    fixture *f = (fixture *)*state;
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY,
                                        .cost = {.model = PTOWSP_MODEL_910B}};
    for (uint32_t i = 0; i < sizeof tile_cases / sizeof tile_cases[0]; i++) {
        for (double share = 100; share > 2; share /= 1.4) {
            ptowsp_kernel kernel;
            const uint32_t lane_count = 8;
            build_tiles(f, &tile_cases[i], lane_count, &kernel);
            const ptowsp_schedule schedule =
                lanes_of(lane_count, (uint32_t)(share * 100 * lane_count), 1);
            const ptowsp_program_desc desc = {NULL, &schedule};
            program_make(f, NULL, NULL, &desc);
            assert_int_equal(ptowsp_run_execute(f->run, &options), PTOWSP_OK);
            const ptowsp_run_stats *stats = ptowsp_run_result(f->run);
            assert_int_equal(stats->hbm_bytes, lane_count * tile_cases[i].bytes);
            const double expected = (double)ref_in_step(f, kernel, share);
            const double error = 100 * ((double)stats->makespan_cycles / expected - 1);
            if (getenv("SHOW")) {
                print_message("kernel %u, %.1f bytes a cycle: %.0f, got %llu (%.2f %%)\n", i, share,
                              expected, (unsigned long long)stats->makespan_cycles, error);
            }
            if (fabs(error) > tile_cases[i].percent) {
                fail_msg("kernel %u, %.1f bytes a cycle: %.0f, got %llu", i, share, expected,
                         (unsigned long long)stats->makespan_cycles);
            }
        }
    }
}

// A tile kernel alone takes its cycles, in every model, and as the only one on many lanes.
static void contention__a_tile_kernel_alone_takes_its_cycles(void **state) {
    fixture *f = (fixture *)*state;
    for (int model = PTOWSP_MODEL_UNIT; model <= PTOWSP_MODEL_950PR; model++) {
        if (model == PTOWSP_MODEL_USER) {
            continue;
        }
        const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY,
                                            .cost = {.model = (ptowsp_model)model}};
        for (uint32_t i = 0; i < 2; i++) {
            ptowsp_kernel kernel;
            ptowsp_kernel_stats alone;
            build_tiles(f, &tile_cases[i], 1, &kernel);
            ptowsp_schedule schedule = lanes_of(24, 0, 0);
            schedule.shared = ptowsp_shared_memory_of(PTOWSP_MODEL_910B);
            const ptowsp_program_desc desc = {NULL, &schedule};
            program_make(f, NULL, NULL, &desc);
            assert_int_equal(ptowsp_run_execute(f->run, &options), PTOWSP_OK);
            assert_int_equal(ptowsp_kernel_measure(f->module, kernel, &options.cost, &alone),
                             PTOWSP_OK);
            assert_int_equal(ptowsp_run_result(f->run)->makespan_cycles, alone.cycles);
            // Written bytes stay in L2. A byte of each part may be rounded to it.
            const ptowsp_run_stats *stats = ptowsp_run_result(f->run);
            const uint64_t missed = tile_cases[i].bytes - tile_cases[i].written;
            assert_in_range(stats->hbm_bytes, missed - 6, missed);
            assert_int_equal(stats->hbm_bytes + stats->l2_bytes, tile_cases[i].bytes);
        }
    }
}

// Two output tiles of 128 x 256, one below the other: each has rows of a to itself, and reads all of b.
static ptowsp_kernel make_two(ptowsp_module *m) {
    const ptowsp_body_desc desc = {.name = "k"};
    const ptowsp_value none = {NULL, 0};
    ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
    ptowsp_value a = ptowsp_tile_in(k, "a", PTOWSP_F16, 256, 256);
    ptowsp_value b = ptowsp_tile_in(k, "b", PTOWSP_F16, 256, 256);
    ptowsp_value c = ptowsp_tile_out(k, "c", PTOWSP_F32, 256, 256);
    ptowsp_value zero = ptowsp_tile_full(k, PTOWSP_F32, 128, 256, 0), sum = zero;
    ptowsp_value start = ptowsp_tile_const(k, 0);
    PTOWSP_TILE_LOOP(k, i, start, ptowsp_tile_rows(a), 128) {
        PTOWSP_TILE_LOOP(k, at, start, ptowsp_tile_cols(a), 64) {
            ptowsp_value left = ptowsp_tile_slice_at(a, i, at, 128, 64);
            ptowsp_value right = ptowsp_tile_slice_at(b, at, none, 64, 256);
            sum = ptowsp_tile_carry(zero);
            ptowsp_tile_next(sum, ptowsp_tile_matmul_acc(sum, left, right));
        }
        ptowsp_tile_store_at(c, i, none, sum);
    }
    return ptowsp_kernel_end(k);
}

// a and b have 128 KiB each, c has 256, b is read twice. Between two passes over b: b, half of a, half
// of c, 320 KiB. If L2 has 640, they hit, and c fits into its half; with 320, the second pass misses, and
// of c (256 - 160) / 160. Two tasks with the same b, in step: each has a half of the misses of b.
static void contention__tiles_that_a_task_reads_again_hit_what_l2_holds(void **state) {
    fixture *f = (fixture *)*state;
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY,
                                        .cost = {.model = PTOWSP_MODEL_910B}};
    const uint64_t kib = 1024, all = (128 + 2 * 128 + 256) * kib;
    for (int i = 0; i < 4; i++) {
        const uint32_t lane_count = i < 2 ? 1 : 2;
        // two tasks: b, and half of two a and two c: 128 + 128 + 256
        const uint64_t between = (i < 2 ? 320 : 512) * kib, l2_bytes = between << (i % 2);
        restart(f, NULL);
        assert_int_equal(ptowsp_module_create(f->context, NULL, &f->module), PTOWSP_OK);
        ptowsp_task_desc task;
        memset(&task, 0, sizeof task);
        task.kernel = make_two(f->module);
        const ptowsp_tensor_desc a = {
            .name = "x", .dtype = PTOWSP_F16, .rank = 3, .shape = {lane_count, 256, 256}};
        const ptowsp_tensor_desc b = {
            .name = "y", .dtype = PTOWSP_F16, .rank = 2, .shape = {256, 256}};
        const ptowsp_tensor_desc c = {
            .name = "z", .dtype = PTOWSP_F32, .rank = 3, .shape = {lane_count, 256, 256}};
        task.views[0].tensor = ptowsp_tensor_make(f->module, &a);
        task.views[1].tensor = ptowsp_tensor_make(f->module, &b);
        task.views[2].tensor = ptowsp_tensor_make(f->module, &c);
        PTOWSP_WORKLOAD(f->module, "w") {
            PTOWSP_PARALLEL(f->module, n, ptowsp_axis_dense(f->module, "n", lane_count)) {
                task.views[0].index[0] = task.views[2].index[0] = n;
                ptowsp_task_make(f->module, &task);
            }
        }
        ptowsp_schedule schedule = lanes_of(lane_count, 32000, 64000);
        schedule.shared.l2_bytes = l2_bytes;
        const ptowsp_program_desc desc = {NULL, &schedule};
        program_make(f, NULL, NULL, &desc);
        assert_int_equal(ptowsp_run_execute(f->run, &options), PTOWSP_OK);
        const ptowsp_run_stats *stats = ptowsp_run_result(f->run);
        const double size = 262144.0 * lane_count, half = (double)l2_bytes / 2;
        const double written = i % 2 ? 0 : (size - half) / half * size;
        const double again = i % 2 ? 0 : 131072;
        const double expected = 131072.0 * (lane_count + 1) + again + written;
        assert_true(fabs((double)stats->hbm_bytes - expected) < 20);
        assert_int_equal(stats->hbm_bytes + stats->l2_bytes, lane_count * all);
    }
}

// A load and a sum in each of many short steps: transfers decide nearly from the start.
static ptowsp_kernel make_steps(ptowsp_module *m) {
    const ptowsp_body_desc desc = {.name = "k"};
    const ptowsp_value none = {NULL, 0};
    ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
    ptowsp_value a = ptowsp_tile_in(k, "a", PTOWSP_F32, 16384, 64);
    ptowsp_value c = ptowsp_tile_out(k, "c", PTOWSP_F32, 16, 64);
    ptowsp_value zero = ptowsp_tile_full(k, PTOWSP_F32, 16, 64, 0), sum = zero;
    PTOWSP_TILE_LOOP(k, i, ptowsp_tile_const(k, 0), ptowsp_tile_rows(a), 16) {
        ptowsp_value x = ptowsp_tile_slice_at(a, i, none, 16, 64);
        sum = ptowsp_tile_carry(zero);
        ptowsp_tile_next(sum, ptowsp_tile_add(sum, ptowsp_tile_exp(x)));
    }
    ptowsp_tile_store(c, sum);
    return ptowsp_kernel_end(k);
}

// The vertex of its curve is at one of the points. At 10 bytes a cycle, transfers are all that counts.
static void contention__a_kernel_may_bend_where_it_is_counted(void **state) {
    fixture *f = (fixture *)*state;
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY,
                                        .cost = {.model = PTOWSP_MODEL_A2A3}};
    const uint64_t bytes = (16384 + 16) * 64 * 4;
    assert_int_equal(ptowsp_module_create(f->context, NULL, &f->module), PTOWSP_OK);
    ptowsp_task_desc task;
    memset(&task, 0, sizeof task);
    task.kernel = make_steps(f->module);
    ptowsp_tensor_desc x = {.name = "x", .dtype = PTOWSP_F32, .rank = 2, .shape = {16384, 64}};
    task.views[0].tensor = ptowsp_tensor_make(f->module, &x);
    x.name = "z";
    x.shape[0] = 16;
    task.views[1].tensor = ptowsp_tensor_make(f->module, &x);
    PTOWSP_WORKLOAD(f->module, "w") {
        ptowsp_task_make(f->module, &task);
    }
    const ptowsp_schedule schedule = lanes_of(2, 1000, 2000);
    const ptowsp_program_desc desc = {NULL, &schedule};
    program_make(f, NULL, NULL, &desc);
    assert_int_equal(ptowsp_run_execute(f->run, &options), PTOWSP_OK);
    assert_int_equal(ptowsp_run_result(f->run)->hbm_bytes, bytes);
    assert_in_range(ptowsp_run_result(f->run)->makespan_cycles, bytes / 10, bytes * 102 / 1000);
}

// -- hits -----------------------------------------------------------------------------------------

// 16 x 2 matrices, each read once: those that memory has miss, whatever the strides are.
static void contention__matrices_miss_once_whatever_their_strides(void **state) {
    fixture *f = (fixture *)*state;
    enum { SIZE = 65536 };  // elements of a matrix
    static const struct {
        int64_t lead, strides[4];
        uint64_t matrices;  // in memory
    } cases[] = {
        {16, {2 * SIZE, SIZE, 256, 1}, 32},
        {16, {SIZE, 16 * SIZE, 256, 1}, 32},
        {16, {2 * SIZE, SIZE, 1, 256}, 32},
        {16, {2 * SIZE, SIZE, -256, 1}, 32},
        {16, {-2 * SIZE, SIZE, 256, 1}, 32},
        {16, {2, 1, 8192, 32}, 32},      // both inside of the matrices
        {16, {256, 4096, 8192, 1}, 32},  // rows of all matrices alternate
        {16, {SIZE, 0, 256, 1}, 16},
        {16, {0, SIZE, 256, 1}, 2},
        {16, {0, 0, 256, 1}, 1},
        {INT64_C(1) << 59, {0, SIZE, 256, 1}, 2},
    };
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    ptowsp_schedule schedule = lanes_of(1, 3200, 64000);
    schedule.shared.l2_bytes = 64u << 20;
    const ptowsp_program_desc desc = {NULL, &schedule};
    const char *source =
        "module m\naxis n 16\naxis l 2\ntensor x f16 [?, 2, 256, 256] global\n"
        "kernel k(axes 2, in a f16 256 x 256) vector, 1000 cycles, bytes of its tiles, time only\n"
        "workload w\n  parallel i in n\n    parallel j in l\n      task k(i, j) a = x[i, j]\n";
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        restart(f, NULL);
        program_make(f, source, NULL, &desc);
        ptowsp_buffer buffer = {
            .dtype = PTOWSP_F16, .rank = 4, .shape = {cases[i].lead, 2, 256, 256}};
        memcpy(buffer.strides, cases[i].strides, sizeof cases[i].strides);
        assert_int_equal(ptowsp_run_bind_tensor(f->run, "x", &buffer), PTOWSP_OK);
        assert_int_equal(ptowsp_run_execute(f->run, &options), PTOWSP_OK);
        const uint64_t missed = ptowsp_run_result(f->run)->hbm_bytes;
        if (missed != cases[i].matrices * 2 * SIZE) {
            fail_msg("strides %zu: %llu bytes from HBM", i, (unsigned long long)missed);
        }
    }
}

// The last kernel of an execution reads a tile again. Functions, first in the next one, do not.
static void contention__functions_read_nothing_again(void **state) {
    fixture *f = (fixture *)*state;
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY,
                                        .cost = {.model = PTOWSP_MODEL_910B}};
    static const char *const names[] = {"x", "y", "z"};
    assert_int_equal(ptowsp_module_create(f->context, NULL, &f->module), PTOWSP_OK);
    ptowsp_kernel_desc kernel = {.name = "plain", .cycles = 1000, .bytes = PTOWSP_TILE_BYTES};
    ptowsp_task_desc plain, two;
    memset(&plain, 0, sizeof plain);
    memset(&two, 0, sizeof two);
    two.kernel = make_two(f->module);
    for (int i = 0; i < 3; i++) {
        const ptowsp_tensor_desc desc = {.name = names[i],
                                         .dtype = i < 2 ? PTOWSP_F16 : PTOWSP_F32,
                                         .rank = 2,
                                         .shape = {256, 256}};
        two.views[i].tensor = ptowsp_tensor_make(f->module, &desc);
        if (i < 2) {
            kernel.tiles[i] = (ptowsp_tile_param){names[i], PTOWSP_IN, desc.dtype, 256, 256};
            plain.views[i] = two.views[i];
        }
    }
    plain.kernel = ptowsp_kernel_make(f->module, &kernel);
    PTOWSP_WORKLOAD(f->module, "w") {
        ptowsp_task_make(f->module, &plain);
        ptowsp_task_make(f->module, &plain);  // hits some
        ptowsp_task_make(f->module, &two);
    }
    ptowsp_schedule schedule = lanes_of(1, 3200, 64000);
    schedule.shared.l2_bytes = 320 * 1024;
    const ptowsp_program_desc desc = {NULL, &schedule};
    program_make(f, NULL, NULL, &desc);
    assert_int_equal(ptowsp_run_execute(f->run, &options), PTOWSP_OK);
    const uint64_t bytes = ptowsp_run_result(f->run)->hbm_bytes;
    assert_int_equal(ptowsp_run_execute(f->run, &options), PTOWSP_OK);
    assert_int_equal(ptowsp_run_result(f->run)->hbm_bytes, bytes);
}

// -- built-in machines ----------------------------------------------------------------------------

static void contention__machines_have_rates_that_cores_share(void **state) {
    (void)state;
    const ptowsp_shared_memory b = ptowsp_shared_memory_of(PTOWSP_MODEL_910B);
    const ptowsp_shared_memory pr = ptowsp_shared_memory_of(PTOWSP_MODEL_950PR);
    assert_int_equal(b.hbm_rate, 24 * 3200);  // public: 32 bytes a cycle and core
    assert_int_equal(pr.hbm_rate, 28 * 2700);
    assert_int_equal(b.l2_bytes, 192u << 20);
    assert_int_equal(pr.l2_bytes, 112u << 20);
    // A published GEMM of 3072 on 24 cores moves 679 MB in 187.9 us, of which 37.7 MB are read first.
    const double first = 37748736 / (24 * 32 * 1.8e3);
    const double rate = (679477248 - 37748736) / (187.9 - first) / 1.8e3;
    assert_true(fabs(b.l2_rate / 100.0 / rate - 1) < 0.01);
    for (int model = PTOWSP_MODEL_UNIT; model <= PTOWSP_MODEL_USER; model++) {
        assert_int_equal(ptowsp_shared_memory_of((ptowsp_model)model).hbm_rate, 0);
    }
    assert_int_equal(ptowsp_shared_memory_of((ptowsp_model)99).l2_bytes, 0);
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

static void contention__all_numbers_of_threads_give_the_same_times(void **state) {
    fixture *f = (fixture *)*state;
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
            const ptowsp_buffer buffer = {.data = data};
            ptowsp_schedule schedule = lanes_of(7, 900, 700);
            schedule.shared.l2_bytes = 3000;
            schedule.issue = policy == 1 ? PTOWSP_ISSUE_IN_ORDER : PTOWSP_ISSUE_DATAFLOW;
            schedule.dispatch =
                policy ? PTOWSP_DISPATCH_ROUND_ROBIN : PTOWSP_DISPATCH_WORK_STEALING;
            const ptowsp_program_desc desc = {NULL, &schedule};
            restart(f, &context);
            program_make(f, threads_text, &attached, &desc);
            assert_int_equal(ptowsp_run_bind_tensor(f->run, "x", &buffer), PTOWSP_OK);
            assert_int_equal(ptowsp_run_execute(f->run, &options), PTOWSP_OK);
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

// -- blocks ---------------------------------------------------------------------------------------

// A task of a block begins once its vector lanes are free, whenever that is: 10 bytes a cycle are
// shared by two vector tasks of 50 cycles that ask for 10 each, which take 100; then the block.
static void contention__blocks_begin_when_their_last_lane_is_free(void **state) {
    fixture *f = (fixture *)*state;
    const char *source = "module m\n"
                         "kernel v(axes 1) vector, 50 cycles, 500 bytes, time only\n"
                         "kernel b(axes 1) mix, 30 cycles, time only\n"
                         "workload w\n  combine\n"
                         "    task v(0)\n    task v(1)\n    task b(2)\n    task v(3)\n";
    for (int dispatch = 0; dispatch < 2; dispatch++) {
        const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY, .record_tasks = true};
        ptowsp_schedule schedule = lanes_of(0, 1000, 1000);
        schedule.pools = PTOWSP_POOLS_BY_UNIT;
        schedule.vector_lane_count = 2;
        schedule.cube_lane_count = 1;
        schedule.dispatch = dispatch ? PTOWSP_DISPATCH_ROUND_ROBIN : PTOWSP_DISPATCH_WORK_STEALING;
        const ptowsp_program_desc desc = {NULL, &schedule};
        restart(f, NULL);
        program_make(f, source, NULL, &desc);
        assert_int_equal(ptowsp_run_execute(f->run, &options), PTOWSP_OK);
        const ptowsp_task_record *records = ptowsp_run_records(f->run);
        assert_int_equal(records[0].end, 100);
        assert_int_equal(records[1].end, 100);
        assert_int_equal(records[2].start, 100);
        assert_int_equal(records[2].end, 130);
        assert_int_equal(records[3].start, 130);
        assert_int_equal(records[3].end, 180);
        assert_int_equal(ptowsp_run_result(f->run)->slowed_cycles, 100);
        assert_int_equal(ptowsp_run_lanes(f->run)[0].slowed_cycles, 50);
    }
}

// -- texts ----------------------------------------------------------------------------------------

static void contention__texts_and_saved_programs_keep_it(void **state) {
    fixture *f = (fixture *)*state;
    const char *source =
        "module m\n"
        "kernel k(axes 1, in a f32 4 x 4) vector, 50 cycles, 500 bytes, time only\n"
        "kernel t(axes 1, in a f32 4 x 4) vector, 50 cycles, bytes of its tiles, "
        "time only\n"
        "tensor x f32 [4, 4] global\n"
        "workload w\n  combine\n    task k(0) a = x\n    task t(1) a = x\n";
    ptowsp_schedule schedule = lanes_of(3, 1234, 5678);
    schedule.shared.l2_bytes = 9;
    schedule.shared.lane_rate = 77;
    const ptowsp_program_desc desc = {NULL, &schedule};
    ptowsp_output_buffer buffer = {text, TEXT_MAX, 0};
    restart(f, NULL);
    program_make(f, source, NULL, &desc);
    ptowsp_module_print(f->module, ptowsp_output_to_buffer(&buffer));
    has(", 50 cycles, 500 bytes, time only\n");
    has(", 50 cycles, bytes of its tiles, time only\n");
    buffer.length = 0;
    assert_int_equal(
        ptowsp_program_save(f->context, f->module, &desc, ptowsp_output_to_buffer(&buffer)),
        PTOWSP_OK);
    has("memory shared hbm 1234 l2 5678 of 9 bytes lane 77\n");
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    assert_int_equal(ptowsp_run_execute(f->run, &options), PTOWSP_OK);
    const ptowsp_cycles before = ptowsp_run_result(f->run)->makespan_cycles;
    restart(f, NULL);
    assert_int_equal(ptowsp_program_load(f->context, text, buffer.length, NULL, &f->program, NULL),
                     PTOWSP_OK);
    const ptowsp_shared_memory loaded = ptowsp_program_read(f->program)->schedule.shared;
    assert_int_equal(loaded.hbm_rate, 1234);
    assert_int_equal(loaded.l2_rate, 5678);
    assert_int_equal(loaded.l2_bytes, 9);
    assert_int_equal(loaded.lane_rate, 77);
    assert_int_equal(ptowsp_run_create(f->context, f->program, &f->run), PTOWSP_OK);
    assert_int_equal(ptowsp_run_execute(f->run, &options), PTOWSP_OK);
    assert_int_equal(ptowsp_run_result(f->run)->makespan_cycles, before);
}

// -- reports --------------------------------------------------------------------------------------

static void report(const fixture *f, ptowsp_report_format format, const ptowsp_what_if *what_if) {
    ptowsp_output_buffer out = {text, TEXT_MAX, 0};
    const ptowsp_output sink = {text_take, &out};
    assert_int_equal(ptowsp_run_report(f->run, format, NULL, what_if, what_if ? 1 : 0, sink),
                     PTOWSP_OK);
}

// Eight tasks of 100 cycles ask for 20 bytes a cycle, of 40 that there are: 1,600 bytes take 400 cycles.
// Twice the bandwidth takes 200.
static void contention__the_report_names_memory_and_what_more_of_it_would_give(void **state) {
    fixture *f = (fixture *)*state;
    const char *source = "module m\naxis n 8\n"
                         "kernel k(axes 1) vector, 100 cycles, 2000 bytes, time only\n"
                         "workload w\n  parallel i in n\n    task k(i)\n";
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY, .record_tasks = true};
    const ptowsp_schedule schedule = lanes_of(8, 4000, 4000);
    const ptowsp_program_desc desc = {NULL, &schedule};
    ptowsp_what_if twice = {.memory_percent = 200};
    restart(f, NULL);
    program_make(f, source, NULL, &desc);
    assert_int_equal(ptowsp_run_what_if(f->run, &options, &twice), PTOWSP_OK);
    assert_int_equal(twice.makespan_cycles, 200);
    assert_int_equal(ptowsp_run_execute(f->run, &options), PTOWSP_OK);
    assert_int_equal(ptowsp_run_result(f->run)->makespan_cycles, 400);
    report(f, PTOWSP_REPORT_TEXT, &twice);
    has("The bandwidth of HBM, shared by all lanes, takes 400 of 400 cycles (100.0 %) and limits "
        "this "
        "run.");
    has("Lanes share memory: 100.0 % of what HBM and 0.0 % of what L2 can move is used, and tasks "
        "take "
        "300.0 % longer than alone.");
    has("With 200 % of the bandwidth of memory the run takes 200 cycles, 50.0 % less.");
    has("  bandwidth of memory 200 %");
    report(f, PTOWSP_REPORT_JSON, &twice);
    has("\"limit\":\"memory\"");
    has("\"hbm\":400");
    has("\"memory_percent\":200,\"makespan\":200");
    report(f, PTOWSP_REPORT_HTML, &twice);
    has("<th>bandwidth of memory 200 %</th>");
    ptowsp_output_buffer buffer = {text, TEXT_MAX, 0};
    ptowsp_run_print(f->run, ptowsp_output_to_buffer(&buffer));
    has("  memory  16000 bytes from HBM, short for 400 cycles; 0 from L2, short for 0; tasks took "
        "2400 "
        "cycles longer than alone\n");
}

// Four layers of such tasks are a chain that is as long as the run. But memory is why.
static void contention__the_report_names_memory_where_it_makes_a_chain_long(void **state) {
    fixture *f = (fixture *)*state;
    const char *source = "module m\naxis l 4\naxis n 8\n"
                         "kernel k(axes 2) vector, 100 cycles, 2000 bytes, time only\n"
                         "workload w\n  for_each j in l\n    parallel i in n\n      task k(i, j)\n";
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    const ptowsp_record_options record = {.level = PTOWSP_RECORD_EDGES};
    ptowsp_schedule schedule = lanes_of(8, 4000, 4000);
    for (int i = 0; i < 2; i++) {
        const ptowsp_program_desc desc = {NULL, &schedule};
        restart(f, NULL);
        program_make(f, source, NULL, &desc);
        assert_int_equal(ptowsp_run_record(f->run, &record), PTOWSP_OK);
        assert_int_equal(ptowsp_run_execute(f->run, &options), PTOWSP_OK);
        assert_int_equal(ptowsp_run_result(f->run)->makespan_cycles, i ? 400 : 1600);
        report(f, PTOWSP_REPORT_JSON, NULL);
        has(i ? "\"limit\":\"chain\"" : "\"limit\":\"memory\"");
        schedule.shared.hbm_rate = 20000;
    }
}

// -- bad input ------------------------------------------------------------------------------------

static void expect_error(const fixture *f, ptowsp_status status, ptowsp_status expected,
                         const char *part) {
    assert_int_equal(status, expected);
    snprintf(text, TEXT_MAX, "%s", ptowsp_context_error(f->context).text);
    has(part);
}

static void contention__refuses_rates_that_are_none_or_too_small(void **state) {
    fixture *f = (fixture *)*state;
    assert_int_equal(ptowsp_module_create(f->context, NULL, &f->module), PTOWSP_OK);
    ptowsp_schedule schedule = lanes_of(4, 0, 100);
    expect_error(f, ptowsp_schedule_check(f->module, &schedule, PTOWSP_TARGET_CPU_SIM),
                 PTOWSP_INVALID_PARAMS, "schedule: shared memory with a rate of 0 of hbm");
    schedule = lanes_of(4, 100, 0);
    expect_error(f, ptowsp_schedule_check(f->module, &schedule, PTOWSP_TARGET_CPU_SIM),
                 PTOWSP_INVALID_PARAMS, "shared memory with a rate of 0 of l2");
    schedule = lanes_of(4, 0, 0);
    schedule.shared.l2_bytes = 1;
    expect_error(f, ptowsp_schedule_check(f->module, &schedule, PTOWSP_TARGET_CPU_SIM),
                 PTOWSP_INVALID_PARAMS, "shared memory with a rate of 0 of hbm");
    schedule = lanes_of(257, 1, 1);
    expect_error(f, ptowsp_schedule_check(f->module, &schedule, PTOWSP_TARGET_CPU_SIM),
                 PTOWSP_INVALID_PARAMS, "a rate of 1 in 100 cycles is too slow for 257 lanes");
    schedule = lanes_of(256, 1, 1);
    assert_int_equal(ptowsp_schedule_check(f->module, &schedule, PTOWSP_TARGET_CPU_SIM), PTOWSP_OK);
    schedule.shared.l2_bytes = (UINT64_C(1) << 62) + 1;
    expect_error(f, ptowsp_schedule_check(f->module, &schedule, PTOWSP_TARGET_CPU_SIM),
                 PTOWSP_LIMIT_EXCEEDED, "l2 of 4611686018427387905 bytes is more than 2^62");
    schedule.shared.l2_bytes = 0;
    expect_error(f, ptowsp_schedule_check(f->module, &schedule, PTOWSP_TARGET_ASCEND_NPU),
                 PTOWSP_UNSUPPORTED, "target ascend_npu does not do memory shared");
    const ptowsp_kernel_desc kernel = {
        .name = "k", .cycles = 1, .bytes = PTOWSP_TASK_BYTES_MAX + 1};
    ptowsp_kernel_make(f->module, &kernel);
    assert_int_equal(ptowsp_module_error(f->module).status, PTOWSP_INVALID_PARAMS);
    assert_non_null(strstr(ptowsp_module_error(f->module).text,
                           "kernel k: 70368744177665 bytes are more than 2^46"));
}

static void contention__refuses_to_ask_about_memory_that_is_not_shared(void **state) {
    fixture *f = (fixture *)*state;
    const char *source = "module m\nkernel k(axes 1) vector, 1 cycles, time only\nworkload w\n"
                         "  task k(1)\n";
    ptowsp_what_if what_if = {.memory_percent = 200};
    program_make(f, source, NULL, NULL);
    expect_error(f, ptowsp_run_what_if(f->run, NULL, &what_if), PTOWSP_INVALID_PARAMS,
                 "what if memory had 200 percent of its rates: lanes share none");
    const ptowsp_schedule schedule = lanes_of(1, 100, 100);
    const ptowsp_program_desc desc = {NULL, &schedule};
    restart(f, NULL);
    program_make(f, source, NULL, &desc);
    what_if.memory_percent = 1001;
    expect_error(f, ptowsp_run_what_if(f->run, NULL, &what_if), PTOWSP_INVALID_PARAMS,
                 "what if memory had 1001 percent of its rates");
}

// Times up to 2^63 - 1 are exact, and beyond it is an error; also where bytes make them so late: the
// most bytes, at the least rate.
static void contention__times_near_the_limit_are_exact_or_refused(void **state) {
    fixture *f = (fixture *)*state;
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    const ptowsp_schedule schedule = lanes_of(2, 100, 100);
    const ptowsp_program_desc desc = {NULL, &schedule};
    const uint64_t far = UINT64_C(1) << 62, bytes = PTOWSP_TASK_BYTES_MAX;
    for (int i = 0; i < 3; i++) {
        snprintf(
            text, TEXT_MAX,
            "module m\n"
            "kernel a(axes 1) vector, %llu cycles, 4096 bytes, time only\n"
            "kernel b(axes 1) vector, 100 cycles, %llu bytes, time only\n"
            "kernel c(axes 1) vector, %llu cycles, time only\n"
            "workload w\n  sequence\n    task a(0)\n    combine\n      task b(1)\n      task b(2)\n"
            "    task c(3)\n",
            (unsigned long long)far, (unsigned long long)bytes,
            (unsigned long long)(far - 2 * bytes -
                                 (i == 0   ? 2
                                  : i == 1 ? 1
                                           : 0)));
        restart(f, NULL);
        program_make(f, text, NULL, &desc);
        const ptowsp_status status = ptowsp_run_execute(f->run, &options);
        if (i < 2) {
            assert_int_equal(status, PTOWSP_OK);
            assert_true(ptowsp_run_result(f->run)->makespan_cycles ==
                        PTOWSP_CYCLES_MAX - (i == 0 ? 1 : 0));
        } else {
            expect_error(f, status, PTOWSP_LIMIT_EXCEEDED, "task 3 ends after 2^63 - 1 cycles");
        }
    }
    // Late because of what it moves: 2^61 cycles are not enough for the last of two.
    snprintf(
        text, TEXT_MAX,
        "module m\nkernel a(axes 1) vector, %llu cycles, time only\n"
        "kernel b(axes 1) vector, 100 cycles, %llu bytes, time only\n"
        "workload w\n  sequence\n    task a(0)\n    combine\n      task b(1)\n      task b(2)\n",
        (unsigned long long)(PTOWSP_CYCLES_MAX - bytes), (unsigned long long)bytes);
    restart(f, NULL);
    program_make(f, text, NULL, &desc);
    expect_error(f, ptowsp_run_execute(f->run, &options), PTOWSP_LIMIT_EXCEEDED,
                 "task 1 ends after 2^63 - 1 cycles");
}

int main(void) {
    const struct CMUnitTest tests[] = {
#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(contention__tile_kernels_in_step_take_what_their_instructions_do),
        TEST(contention__a_tile_kernel_alone_takes_its_cycles),
        TEST(contention__tiles_that_a_task_reads_again_hit_what_l2_holds),
        TEST(contention__a_kernel_may_bend_where_it_is_counted),
        TEST(contention__matrices_miss_once_whatever_their_strides),
        TEST(contention__functions_read_nothing_again),
        TEST(contention__machines_have_rates_that_cores_share),
        TEST(contention__all_numbers_of_threads_give_the_same_times),
        TEST(contention__blocks_begin_when_their_last_lane_is_free),
        TEST(contention__texts_and_saved_programs_keep_it),
        TEST(contention__the_report_names_memory_and_what_more_of_it_would_give),
        TEST(contention__the_report_names_memory_where_it_makes_a_chain_long),
        TEST(contention__refuses_rates_that_are_none_or_too_small),
        TEST(contention__refuses_to_ask_about_memory_that_is_not_shared),
        TEST(contention__times_near_the_limit_are_exact_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
