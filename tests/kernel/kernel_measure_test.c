// What is measured of tile kernels, through the public API: cycles in the unit model and the
// overlap of pipes on paper, a model of the user's, machines, memories.

#include "fixture.h"
#include "kernel_named.h"

static const ptowsp_kernel scale = {1}, product = {2};

// A module of kernels.txt.
static void measured_of(fixture *f, const char *name, const kernel_word *words) {
    fixture_clear(f);
    module_make(f, kernel_named(name, words), NULL);
}

static void measured_make(fixture *f, const char *machine) {
    const kernel_word words[] = {{"machine", machine}, {NULL, NULL}};
    measured_of(f, "measured", words);
}

static ptowsp_kernel_stats measure(const fixture *f, ptowsp_kernel kernel, ptowsp_cost cost) {
    ptowsp_kernel_stats stats;
    assert_ok(ptowsp_kernel_measure(f->module, kernel, &cost, &stats));
    return stats;
}

// TLOAD, TMULS, TSTORE, in place; and of a product, whose moves to L0 TLOAD has paid.
TEST_F(unit__is_the_sum_of_elements) {
    measured_make(f, "\"910B\"");
    static const ptowsp_kernel_stats want[] = {
        {.cycles = 3 * 8 * 64,
         .busy_cycles = {[PTOWSP_PIPE_MTE2] = 512, [PTOWSP_PIPE_V] = 512, [PTOWSP_PIPE_MTE3] = 512},
         .memory_bytes = {[PTOWSP_MEMORY_UB] = 8 * 64 * 4}},
        {.cycles = 32 * 48 + 48 * 16 + 32 * 48 * 16 + 32 * 16,
         .busy_cycles = {[PTOWSP_PIPE_MTE2] = 32 * 48 + 48 * 16,
                         [PTOWSP_PIPE_M] = 32 * 48 * 16,
                         [PTOWSP_PIPE_FIX] = 32 * 16},
         .memory_bytes = {[PTOWSP_MEMORY_L1] = (32 * 48 + 48 * 16) * 2,
                          [PTOWSP_MEMORY_L0A] = 32 * 48 * 2,
                          [PTOWSP_MEMORY_L0B] = 48 * 16 * 2,
                          [PTOWSP_MEMORY_L0C] = 32 * 16 * 4}}};
    for (uint32_t i = 0; i < 2; i++) {
        ptowsp_kernel_stats stats;
        const ptowsp_kernel kernel = {i + 1};
        assert_ok(ptowsp_kernel_measure(f->module, kernel, NULL, &stats));
        assert_int_equal(stats.cycles, want[i].cycles);
        assert_memory_equal(stats.busy_cycles, want[i].busy_cycles, sizeof stats.busy_cycles);
        assert_memory_equal(stats.memory_bytes, want[i].memory_bytes, sizeof stats.memory_bytes);
    }
}

TEST_F(a2a3__is_a_chain_on_paper) {
    measured_make(f, "\"910B\"");
    ptowsp_kernel_stats stats = measure(f, scale, (ptowsp_cost){.model = PTOWSP_MODEL_A2A3});
    // 2048 bytes from global memory at 100.9 GiB/s and back at 188.46, at 1.85 GHz; 8 repeats of
    // 256 bytes by a scalar: 11 + 8 + 15. Each wait is a cycle on its pipe, each set one.
    uint64_t load = 34, multiply = 34, store = 18;
    assert_int_equal(2048 * 1850000000.0 / 1073741824.0 / 100.9, load);
    assert_int_equal(2048 * 1850000000.0 / 1073741824.0 / 188.46, store);
    assert_int_equal(stats.busy_cycles[PTOWSP_PIPE_MTE2], load + 1);
    assert_int_equal(stats.busy_cycles[PTOWSP_PIPE_V], 1 + multiply + 1);
    assert_int_equal(stats.busy_cycles[PTOWSP_PIPE_MTE3], 1 + store + 1);
    assert_int_equal(stats.busy_cycles[PTOWSP_PIPE_S], 1);
    assert_int_equal(stats.cycles, (load + 1) + (1 + multiply + 1) + (1 + store + 1) + 1);
}

// Full tiles of 512 elements: TLOAD, TEXPANDS and TSTORE, and TADD as often as the loop runs: of rows
// that end before it begins not once. A task executes at most 2^20 instructions.
TEST_F(unit__counts_loops_that_never_run_and_none_that_run_too_long) {
    static const struct {
        const char *begin, *end;
        uint64_t count;
    } cases[] = {{"6", "size %1, rows", 2},
                 {"8", "size %1, rows", 0},
                 {"9", "size %1, rows", 0},
                 {"0", "const 3", 3},
                 {"0", "const 2097152", UINT64_MAX}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const kernel_word words[] = {
            {"begin", cases[i].begin}, {"end", cases[i].end}, {NULL, NULL}};
        const bool is_good = cases[i].count != UINT64_MAX;
        ptowsp_kernel_stats stats;
        measured_of(f, "repeated", words);
        assert_int_equal(ptowsp_kernel_measure(f->module, scale, NULL, &stats),
                         is_good ? PTOWSP_OK : PTOWSP_LIMIT_EXCEEDED);
        assert_true(!is_good || stats.cycles == (3 + cases[i].count) * 512);
    }
}

typedef struct seen {
    uint32_t count, loads, products;
    const char *last;
} seen;

// Ten cycles for a product, one for a load, nothing for the rest.
static ptowsp_cycles my_cost(const ptowsp_insn *insn, void *user) {
    seen *s = (seen *)user;
    s->count++;
    s->last = insn->name;
    if (strcmp(insn->name, "TLOAD") == 0) {
        assert_int_equal(insn->pipe, PTOWSP_PIPE_MTE2);
        assert_int_equal(insn->memory, PTOWSP_MEMORY_L1);
        assert_int_equal(insn->dtype, PTOWSP_F16);
        s->loads++;
        return 1;
    }
    if (strcmp(insn->name, "TMATMUL") == 0) {
        assert_int_equal(insn->rows, 32);
        assert_int_equal(insn->cols, 16);
        assert_int_equal(insn->depth, 48);
        assert_int_equal(insn->dtype, PTOWSP_F32);
        s->products++;
        return 10;
    }
    return 0;
}

TEST_F(user__is_asked_for_each_instruction) {
    measured_make(f, "\"910B\"");
    seen s = {0, 0, 0, NULL};
    ptowsp_kernel_stats stats =
        measure(f, product, (ptowsp_cost){.model = PTOWSP_MODEL_USER, .fn = my_cost, .user = &s});
    assert_int_equal(s.count, stats.insn_count);
    assert_int_equal(s.loads, 2);
    assert_int_equal(s.products, 1);
    assert_int_equal(stats.cycles, 12);  // both loads on one pipe, then the product
    assert_int_equal(stats.busy_cycles[PTOWSP_PIPE_M], 10);
}

// Products take 100 cycles, one with 32 inner elements 5000; a push 20, a pop 500; loads and stores
// 10; all else nothing.
static ptowsp_cycles mixed_cost(const ptowsp_insn *insn, void *user) {
    (void)user;
    return strcmp(insn->name, "TMATMUL") == 0 ? (insn->depth == 32 ? 5000 : 100)
           : strcmp(insn->name, "TPUSH") == 0 ? 20
           : strcmp(insn->name, "TPOP") == 0  ? 500
           : insn->name[0] == 'T' && (strstr(insn->name, "LOAD") || strstr(insn->name, "STORE"))
               ? 10
               : 0;
}

// `count` times y = exp(a * b), and then c * d stored by the cube core.
//
//      M     20 product 120    140 product 240    260 product 360    1170 product 1270
//      FIX   push 1 .. 140     push 2 .. 260      push 3 waits for both slots, 1150 .. 1170
//      MTE2  pop 1 140 .. 640  TSTORE .. 650, as pop 2 goes where it was: 650 .. 1150
TEST_F(mixed__halves_overlap_as_far_as_slots_allow) {
    for (uint32_t count = 1; count <= 4; count++) {
        char params[100] = "", stores[400] = "";
        for (uint32_t n = 0; n < count; n++) {
            sprintf(params + strlen(params), ", out y%u f32 16 x 16", n);
            sprintf(stores + strlen(stores),
                    "  %%%u0 = parameter y%u\n  %%%u1 = matmul %%1, %%1\n  %%%u2 = exp %%%u1\n"
                    "  store %%%u0, %%%u2\n",
                    n + 1, n, n + 1, n + 1, n + 1, n + 1, n + 1);
        }
        const kernel_word words[] = {{"params", params}, {"stores", stores}, {NULL, NULL}};
        measured_of(f, "halves", words);
        ptowsp_kernel_stats stats =
            measure(f, scale, (ptowsp_cost){.model = PTOWSP_MODEL_USER, .fn = mixed_cost});
        // When the last push is done: with two slots the third waits until both are free again, which
        // they are when the second pop ends; the fourth does not wait.
        static const uint64_t pushed[] = {0, 140, 260, 1170, 1290};
        assert_int_equal(stats.cycles, pushed[count] + 5000 + 10);
        assert_int_equal(stats.busy_cycles[PTOWSP_PIPE_FIX], count * 20 + 10);
    }
}

// A row of a vector instruction takes 10 cycles, one of a pop or a store 3; all else nothing.
static ptowsp_cycles row_cost(const ptowsp_insn *insn, void *user) {
    (void)user;
    bool is_moved = strcmp(insn->name, "TPOP") == 0 ||
                    (strcmp(insn->name, "TSTORE") == 0 && insn->memory == PTOWSP_MEMORY_UB);
    bool is_vector = insn->pipe == PTOWSP_PIPE_V && insn->name[0] == 'T';
    return (ptowsp_cycles)insn->rows * (is_moved ? 3 : is_vector ? 10 : 0);
}

// y = f(a * b), of `rows` rows: the first vector core has ceil(rows / 2) of them, and is the slower
// one. Sums of columns, and rows for all others, need all rows on one core.
TEST_F(mixed__vector_cores_share_rows_where_they_can) {
    static const struct {
        const char *f, *rows, *out;
        uint32_t insns, busy_rows;
    } cases[] = {
        {"  %6 = exp %5\n  store %4, %6\n", "32", "32", 1, 16},
        {"  %6 = exp %5\n  store %4, %6\n", "17", "17", 1, 9},
        {"  %6 = exp %5\n  store %4, %6\n", "1", "1", 1, 1},
        {"  %6 = rowmax %5\n  %7 = sub %5, %6\n  %8 = exp %7\n  %9 = rowsum %8\n"
         "  %10 = div %8, %9\n  store %4, %10\n",
         "32", "32", 4, 16},
        {"  %6 = add %5, %5\n  store %4, %6\n", "32", "32", 1, 16},
        {"  %6 = colsum %5\n  store %4, %6\n", "32", "1", 1, 32},
        {"  %6 = add %5, %3\n  store %4, %6\n", "32", "32", 1, 32},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const kernel_word words[] = {
            {"rows", cases[i].rows}, {"out", cases[i].out}, {"f", cases[i].f}, {NULL, NULL}};
        const bool is_colsum = strstr(cases[i].f, "colsum") != NULL;
        measured_of(f, "shared rows", words);
        ptowsp_kernel_stats stats =
            measure(f, scale, (ptowsp_cost){.model = PTOWSP_MODEL_USER, .fn = row_cost});
        uint32_t busy = cases[i].busy_rows;
        if (!is_colsum) {
            assert_int_equal(stats.busy_cycles[PTOWSP_PIPE_MTE3], 3 * busy);
            assert_int_equal(stats.busy_cycles[PTOWSP_PIPE_MTE2], 3 * busy);
            assert_int_equal(stats.cycles,
                             (uint64_t)3 * busy + stats.busy_cycles[PTOWSP_PIPE_V] + 3 * busy);
        } else {
            assert_int_equal(stats.busy_cycles[PTOWSP_PIPE_MTE2], 3 * busy);
        }
        if (cases[i].insns == 1 && !is_colsum) {
            assert_int_equal(stats.busy_cycles[PTOWSP_PIPE_V], 10 * busy);
        }
    }
}

static ptowsp_cycles too_much(const ptowsp_insn *insn, void *user) {
    return strcmp(insn->name, "TSTORE") == 0 ? *(const ptowsp_cycles *)user : 0;
}

TEST_F(user__may_say_less_than_2_to_the_43) {
    measured_make(f, "\"910B\"");
    ptowsp_cycles cycles = (UINT64_C(1) << 43) - 1;
    ptowsp_cost cost = {.model = PTOWSP_MODEL_USER, .fn = too_much, .user = &cycles};
    assert_int_equal(measure(f, scale, cost).cycles, cycles);
    cycles++;
    ptowsp_kernel_stats stats;
    assert_int_equal(ptowsp_kernel_measure(f->module, scale, &cost, &stats), PTOWSP_LIMIT_EXCEEDED);
}

static ptowsp_cycles one_cycle(const ptowsp_task *task, void *user) {
    (void)task, (void)user;
    return 1;
}

static bool count_text(void *user, const void *text, size_t length) {
    (void)text;
    *(size_t *)user += length;
    return true;
}

TEST_F(measure__refuses_what_is_no_tile_kernel) {
    measured_make(f, "\"910B\"");
    const ptowsp_kernel kernels[] = {
        {0},
        {99},
        ptowsp_kernel_make(f->module, &(ptowsp_kernel_desc){.name = "timed", .cycles = 5}),
        ptowsp_kernel_make(f->module, &(ptowsp_kernel_desc){.name = "function", .fn = one_cycle})};
    ptowsp_kernel_stats stats;
    ptowsp_cycles cycles;
    size_t length = 0;
    const ptowsp_output text = {count_text, &length};
    for (size_t i = 0; i < COUNT_OF(kernels); i++) {
        assert_invalid(ptowsp_kernel_measure(f->module, kernels[i], NULL, &stats));
        assert_int_equal(ptowsp_kernel_insn_count(f->module, kernels[i]), 0);
        cycles = 99;
        assert_string_equal(ptowsp_kernel_insn_at(f->module, kernels[i], 0, &cycles).name, "none");
        assert_int_equal(cycles, 0);
        ptowsp_kernel_insn_at(f->module, kernels[i], 0, NULL);
        ptowsp_kernel_print(f->module, kernels[i], NULL, text);
    }
    assert_int_equal(length, 0);
    assert_invalid(ptowsp_kernel_measure(f->module, scale, NULL, NULL));
    assert_invalid(ptowsp_kernel_measure(NULL, scale, NULL, &stats));
    const uint32_t count = ptowsp_kernel_insn_count(f->module, scale);
    assert_int_equal(count, measure(f, scale, (ptowsp_cost){0}).insn_count);
    cycles = 99;
    assert_string_equal(ptowsp_kernel_insn_at(f->module, scale, count, &cycles).name, "none");
    assert_int_equal(cycles, 0);
    ptowsp_kernel_print(f->module, scale, NULL, text);
    assert_true(length > 0);
    assert_string_equal(ptowsp_module_error(f->module).text, "");
}

// Of measuring, and of a run, which then writes nothing.
TEST_F(measure__refuses_what_is_no_cost_model) {
    measured_make(f, "\"910B\"");
    float data[2][8 * 64] = {{1}};
    ptowsp_task_desc task = {.kernel = scale};
    for (int i = 0; i < 2; i++) {
        const ptowsp_tensor_desc tensor = {
            .name = i ? "y" : "x", .dtype = PTOWSP_F32, .rank = 2, .shape = {8, 64}};
        task.views[i].tensor = ptowsp_tensor_make(f->module, &tensor);
    }
    PTOWSP_WORKLOAD(f->module, "w") {
        ptowsp_task_make(f->module, &task);
    }
    ptowsp_program *program = test_program(f->context, f->module, NULL);
    ptowsp_run *run = test_run_of(f->context, program);
    test_bind(run, "x", data[0]);
    test_bind(run, "y", data[1]);
    ptowsp_kernel_stats stats;
    ptowsp_run_options options = {.cost.model = PTOWSP_MODEL_USER};  // without a function
    assert_invalid(ptowsp_kernel_measure(f->module, scale, &options.cost, &stats));
    test_refused(f->context, ptowsp_run_execute(run, &options), PTOWSP_INVALID_PARAMS,
                 PTOWSP_NO_INDEX, "run: there is no cost model 3, or it lacks its function");
    options.cost.model = (ptowsp_model)9;
    assert_invalid(ptowsp_kernel_measure(f->module, scale, &options.cost, &stats));
    test_refused(f->context, ptowsp_run_execute(run, &options), PTOWSP_INVALID_PARAMS,
                 PTOWSP_NO_INDEX, "run: there is no cost model 9, or it lacks its function");
    assert_true(data[1][0] == 0);
    options.cost.model = PTOWSP_MODEL_A5;
    assert_ok(ptowsp_run_execute(run, &options));
    assert_true(data[1][0] == 2);
    test_destroy(run, program, NULL, NULL);
}

TEST(timing__a_measured_machine_is_data) {
    ptowsp_core_timing b = ptowsp_core_timing_of(PTOWSP_MODEL_910B);
    ptowsp_core_timing pr = ptowsp_core_timing_of(PTOWSP_MODEL_950PR), zero;
    memset(&zero, 0, sizeof zero);
    assert_string_equal(b.name, "910B");
    assert_int_equal(b.family, PTOWSP_FAMILY_A2A3);
    assert_int_equal(b.clock_mhz, 1800);
    assert_int_equal(b.memory_mhz, 1800);
    assert_int_equal(b.paths[PTOWSP_PATH_L1_TO_L0A].rate, 25600);  // 256 bytes a cycle
    assert_string_equal(pr.name, "950PR");
    assert_int_equal(pr.family, PTOWSP_FAMILY_A5);
    assert_int_equal(pr.clock_mhz, 1650);
    for (int model = PTOWSP_MODEL_UNIT; model <= PTOWSP_MODEL_USER; model++) {
        ptowsp_core_timing none = ptowsp_core_timing_of((ptowsp_model)model);
        assert_memory_equal(&none, &zero, sizeof none);
    }
    ptowsp_core_timing none = ptowsp_core_timing_of((ptowsp_model)99);
    assert_memory_equal(&none, &zero, sizeof none);
}

TEST_F(timing__own_times_are_what_counts) {
    measured_make(f, "\"910B\"");
    ptowsp_core_timing own = ptowsp_core_timing_of(PTOWSP_MODEL_910B);
    ptowsp_cost built_in = {.model = PTOWSP_MODEL_910B}, cost = built_in;
    cost.timing = &own;
    ptowsp_kernel_stats before = measure(f, scale, built_in);
    ptowsp_kernel_stats same = measure(f, scale, cost);
    assert_memory_equal(&before, &same, sizeof before);
    // One load, one store: 1,000 cycles later each, and both are waited for.
    own.paths[PTOWSP_PATH_GM_TO_UB].latency += 1000;
    assert_int_equal(measure(f, scale, cost).cycles, before.cycles + 1000);
    own.paths[PTOWSP_PATH_UB_TO_GM].latency += 1000;
    assert_int_equal(measure(f, scale, cost).cycles, before.cycles + 2000);
    own = ptowsp_core_timing_of(PTOWSP_MODEL_910B);
    own.without = 1u << PTOWSP_MECHANISM_LATENCY;
    assert_int_equal(measure(f, scale, cost).cycles, before.cycles -
                                                         own.paths[PTOWSP_PATH_GM_TO_UB].latency -
                                                         own.paths[PTOWSP_PATH_UB_TO_GM].latency);
    // A slower core needs no more cycles: memory is as fast as before.
    own = ptowsp_core_timing_of(PTOWSP_MODEL_910B);
    own.clock_mhz = 1500;
    assert_true(measure(f, scale, cost).cycles < before.cycles);
}

#define TIMING_IS_REFUSED(change, said)                                                            \
    do {                                                                                           \
        ptowsp_core_timing own = ptowsp_core_timing_of(PTOWSP_MODEL_910B);                         \
        ptowsp_cost cost = {.model = PTOWSP_MODEL_910B, .timing = &own};                           \
        change;                                                                                    \
        ptowsp_kernel_stats stats;                                                                 \
        assert_invalid(ptowsp_kernel_measure(f->module, scale, &cost, &stats));                    \
        assert_non_null(strstr(ptowsp_context_error(f->context).text, said));                      \
    } while (0)

TEST_F(timing__refuses_what_is_no_machine) {
    measured_make(f, "\"910B\"");
    TIMING_IS_REFUSED(own.clock_mhz = 0, "clocks are 0 and 1800 MHz, not 1 to 131072");
    TIMING_IS_REFUSED(own.memory_mhz = 0, "clocks are 1800 and 0 MHz, not 1 to 131072");
    TIMING_IS_REFUSED(own.clock_mhz = 131073, "clocks are 131073 and 1800 MHz");
    TIMING_IS_REFUSED(own.transposed_rate = 0, "transposed_rate is 0, not 1 to 1073741824");
    TIMING_IS_REFUSED(own.paths[PTOWSP_PATH_UB_TO_GM].rate = 0, "the rate of path 2 is 0");
    TIMING_IS_REFUSED(own.paths[11].rate = UINT32_MAX, "the rate of path 11 is 4294967295");
    TIMING_IS_REFUSED(own.paths[0].latency = UINT32_MAX,
                      "path 0 has a latency of 4294967295 and a setup of");
    TIMING_IS_REFUSED(own.paths[1].setup = (1u << 20) + 1,
                      "a setup of 1048577, above 1048576 cycles");
    TIMING_IS_REFUSED(own.paths[3].burst = UINT32_MAX,
                      "path 3 has bursts of 4294967295 cycles, above 1024");
    TIMING_IS_REFUSED(own.family = PTOWSP_FAMILY_A5, "family 1 does not belong to cost model 4");
    TIMING_IS_REFUSED(own.memory_mhz = 28, "clock_mhz is 1800, 64 times memory_mhz (28) or more");
    TIMING_IS_REFUSED(cost.model = PTOWSP_MODEL_A2A3, "cost model 1 has no timing");
    TIMING_IS_REFUSED(cost.model = PTOWSP_MODEL_950PR, "family 0 does not belong to cost model 5");
    // The greatest that are taken do not wrap.
    ptowsp_core_timing own = ptowsp_core_timing_of(PTOWSP_MODEL_910B);
    ptowsp_cost cost = {.model = PTOWSP_MODEL_910B, .timing = &own};
    for (int i = 0; i < PTOWSP_PATH_COUNT; i++) {
        ptowsp_path_timing path = {1u << 20, 1u << 20, 1u << 10, 1};
        own.paths[i] = path;
    }
    own.memory_mhz = 2049;
    own.clock_mhz = 1u << 17;
    // 2 x (2^20 late, 2^20 to begin, and 100 cycles a byte), 64 times as many.
    assert_true(measure(f, scale, cost).cycles > UINT64_C(1) << 27);
}

TEST_F(machine__is_data) {
    ptowsp_machine b = ptowsp_machine_910b(), pr = ptowsp_machine_950pr();
    assert_string_equal(b.name, "910B");
    assert_int_equal(b.cube_count, 24);
    assert_int_equal(b.vector_count, 48);
    assert_int_equal(b.memory_bytes[PTOWSP_MEMORY_UB], 184 << 10);
    assert_int_equal(b.rates[PTOWSP_PATH_GM_TO_UB], 10090);
    assert_int_equal(b.rates[PTOWSP_PATH_L1_TO_L0B], 22050);
    assert_int_equal(b.hbm_bytes >> 30, 64);
    assert_string_equal(pr.name, "950PR");
    assert_int_equal(pr.family, PTOWSP_FAMILY_A5);
    assert_int_equal(pr.cube_count, 28);
    assert_int_equal(pr.memory_bytes[PTOWSP_MEMORY_L0C], 256 << 10);
    assert_int_equal(pr.l2_bytes >> 20, 112);
    assert_string_equal(ptowsp_pipe_name(PTOWSP_PIPE_MTE2), "MTE2");
    assert_string_equal(ptowsp_memory_name(PTOWSP_MEMORY_L0C), "L0C");
    assert_string_equal(ptowsp_memory_name(PTOWSP_MEMORY_COUNT), "none");
    // A machine of one's own: half the bandwidth, twice the time of a load; and less UB, 32 bytes short.
    static const char own[] = "\"own\" of a2a3, 1850 MHz, memories %d 524288 65536 65536 131072 "
                              "1024 2048, rates 5045 13500 "
                              "18846 18846 102400 3200 44100 22050 3200 7000 12800 44107";
    char machine[200], text[200];
    snprintf(machine, sizeof machine, own, 184 << 10);
    measured_make(f, machine);
    ptowsp_kernel_stats stats = measure(f, scale, (ptowsp_cost){.model = PTOWSP_MODEL_A2A3});
    assert_int_equal(stats.busy_cycles[PTOWSP_PIPE_MTE2], 69 + 1);
    snprintf(machine, sizeof machine, own, 2048 - 32);
    const kernel_word words[] = {{"machine", machine}, {NULL, NULL}};
    const char *module = kernel_named("measured", words);
    fixture_clear(f);
    snprintf(text, sizeof text,
             "2:1: m: kernel scale: x: memory: tile 1 (8 x 64 f32) needs 2048 bytes of UB at "
             "instruction "
             "0 (TLOAD), where 0 of 2016 are in use (f32 on own; rule: memories)");
    test_refused(f->context,
                 ptowsp_module_parse(f->context, module, strlen(module), NULL, &f->module, NULL),
                 PTOWSP_LIMIT_EXCEEDED, 2, text);
}
