// Cycles of the measured machines: with each mechanism switched off (isa_steps.txt has what they are with
// it), and published rows within the bounds that the models promise.

#include "ptoisa_shim.h"

#include "examples/common/predict_instruction.c"
#include "examples/common/gemm_core.c"
#include "examples/common/predict_attention.c"
#include "examples/common/predict_kernel.c"
#include "examples/common/predict_links.c"
#include "examples/common/predict_machine.c"
#include "examples/common/predict_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "isa_operand.h"

#include "tests/support/suite.h"

#define B910 PTOISA_MODEL_910B

static ptoisa_tile vec(ptoisa_dtype dtype, uint32_t rows, uint32_t cols) {
    return ptoisa_tile_vec(NULL, dtype, rows, cols);
}

static ptoisa_core core_of(ptoisa_model model, const ptoisa_timing *timing) {
    ptoisa_core core;
    ptoisa_core_init(&core, model, NULL);
    core.is_dry = true;
    core.timing = timing;
    return core;
}

// Cycles of one instruction alone, whose operands are all one tile.
static uint64_t of_tile(ptoisa_model model, const ptoisa_timing *timing, ptoisa_op op,
                        ptoisa_tile tile, uint32_t detail) {
    ptoisa_core core = core_of(model, timing);
    ptoisa_issue_as(&core, op, &tile, &tile, &tile, detail);
    return ptoisa_cycles(&core);
}

// -- transfers ------------------------------------------------------------------------------------

// A store of the shim goes by the type of its window.
TEST(transfers__l0c_is_drained_by_bytes_of_the_destination) {
    ptoisa_timing timing = *ptoisa_timing_910b();
    timing.path[PTOISA_L0C_TO_GM].rate = 6400;
    ptoisa_tile acc = ptoisa_tile_make(NULL, PTOISA_F32, PTOISA_ACC, PTOISA_NZ, 128, 256);
    ptoisa_core core = core_of(B910, &timing);
    ptoisa_global half = ptoisa_global_make(NULL, PTOISA_F16, 128, 256, 256, 1);
    ptoisa_tstore(&core, &half, &acc);
    assert_int_equal(ptoisa_cycles(&core), 1024);
    timing.without = 1u << PTOISA_MECHANISM_FIX;  // 128 KiB at 70 GiB/s and 1,850 MHz
    ptoisa_core ideal = core_of(B910, &timing);
    ptoisa_tstore(&ideal, &half, &acc);
    assert_int_equal(ptoisa_cycles(&ideal), 3226);
}

// -- vectors --------------------------------------------------------------------------------------

// The shim tells how long runs are: 64 elements of f32 are 32 pairs, 256 are 128.
TEST(vectors__merges_of_the_shim_know_their_runs) {
    ptoisa_tile pairs = vec(PTOISA_F32, 1, 2048);
    ptoisa_core core = core_of(B910, NULL);
    ptoisa_tmrgsort(&core, &pairs, &pairs, 64);
    assert_int_equal(ptoisa_cycles(&core), 644);
    ptoisa_core_reset(&core);
    ptoisa_tmrgsort(&core, &pairs, &pairs, 256);
    assert_int_equal(ptoisa_cycles(&core), 1638);
}

// -- switches -------------------------------------------------------------------------------------

// Cycles of a probe that a mechanism describes.
static uint64_t probe(ptoisa_mechanism mechanism, uint32_t without, bool is_ideal) {
    bool is_a5 = mechanism == PTOISA_MECHANISM_REGISTERS;
    ptoisa_timing timing = is_a5 ? *ptoisa_timing_950pr() : *ptoisa_timing_910b();
    ptoisa_model model = is_ideal ? (is_a5 ? PTOISA_MODEL_A5 : PTOISA_MODEL_A2A3)
                                  : (is_a5 ? PTOISA_MODEL_950PR : B910);
    ptoisa_tile tile = ptoisa_tile_valid(vec(PTOISA_F32, 256, 16), 256, 16);
    ptoisa_tile right = ptoisa_tile_make(NULL, PTOISA_F16, PTOISA_RIGHT, PTOISA_ZN, 64, 256);
    ptoisa_tile from = right, acc = right, column = vec(PTOISA_F32, 64, 64);
    from.memory = PTOISA_MAT;
    from.layout = PTOISA_NZ;
    acc.memory = PTOISA_ACC;
    timing.without |= without;
    timing.clock_mhz = mechanism == PTOISA_MECHANISM_CLOCK ? 1500 : timing.clock_mhz;
    ptoisa_core core = core_of(model, &timing);
    switch (mechanism) {
    case PTOISA_MECHANISM_LATENCY:
    case PTOISA_MECHANISM_BURSTS:
    case PTOISA_MECHANISM_CLOCK: ptoisa_issue(&core, PTOISA_TLOAD, &tile, NULL, NULL); break;
    case PTOISA_MECHANISM_FIX:
        acc.dtype = PTOISA_F32;
        ptoisa_issue_as(&core, PTOISA_TSTORE, NULL, &acc, NULL, 2);
        break;
    case PTOISA_MECHANISM_TRANSPOSE:
        ptoisa_issue(&core, PTOISA_TEXTRACT, &right, &from, NULL);
        break;
    case PTOISA_MECHANISM_BLOCKS: ptoisa_issue(&core, PTOISA_TMOV, &column, &column, NULL); break;
    case PTOISA_MECHANISM_ROWS: ptoisa_issue(&core, PTOISA_TADDS, &tile, &tile, NULL); break;
    case PTOISA_MECHANISM_ENDS: ptoisa_issue(&core, PTOISA_TSUB, &column, &column, &column); break;
    case PTOISA_MECHANISM_COLUMNS:
        ptoisa_issue(&core, PTOISA_TCOLMAX, &column, &column, NULL);
        break;
    case PTOISA_MECHANISM_RUNS:
        ptoisa_issue_as(&core, PTOISA_TMRGSORT, &column, &column, NULL, 128);
        break;
    case PTOISA_MECHANISM_REGISTERS: ptoisa_issue(&core, PTOISA_TADD, &tile, &tile, &tile); break;
    case PTOISA_MECHANISM_GROUPS:
        tile = vec(PTOISA_F32, 32, 256);
        ptoisa_issue(&core, PTOISA_TROWSUM, &acc, &tile, &tile);
        break;
    case PTOISA_MECHANISM_COUNT: break;
    }
    return ptoisa_cycles(&core);
}

TEST(switches__each_changes_what_it_describes) {
    for (int i = 0; i < PTOISA_MECHANISM_COUNT; i++) {
        ptoisa_mechanism mechanism = (ptoisa_mechanism)i;
        uint64_t with = probe(mechanism, 0, false), without = probe(mechanism, 1u << i, false);
        assert_int_not_equal(with, without);
        for (int other = 0; other < PTOISA_MECHANISM_COUNT; other++) {
            bool is_both = i != other && probe(mechanism, 1u << other, false) != with;
            // Loads have three, and TADDS has ends.
            bool is_load = i <= PTOISA_MECHANISM_BURSTS || i == PTOISA_MECHANISM_CLOCK;
            bool is_of_load = other <= PTOISA_MECHANISM_BURSTS || other == PTOISA_MECHANISM_CLOCK;
            assert_true(!is_both || (is_load && is_of_load) ||
                        (i == PTOISA_MECHANISM_ROWS && other == PTOISA_MECHANISM_ENDS));
        }
    }
}

TEST(switches__without_any_vectors_are_ideal) {
    const uint32_t all = (1u << PTOISA_MECHANISM_COUNT) - 1;
    for (int i = PTOISA_MECHANISM_BLOCKS; i < PTOISA_MECHANISM_COUNT; i++) {
        if (i == PTOISA_MECHANISM_CLOCK) {
            continue;
        }
        assert_int_equal(probe((ptoisa_mechanism)i, all, false),
                         probe((ptoisa_mechanism)i, all, true));
    }
    for (int op = PTOISA_TCVT; op < PTOISA_TMATMUL; op++) {
        if (op == PTOISA_MGATHER || op == PTOISA_MSCATTER) {
            continue;  // transfers, whose rates are those of the measured machine
        }
        for (int is_a5 = 0; is_a5 < 2; is_a5++) {
            ptoisa_timing timing = is_a5 ? *ptoisa_timing_950pr() : *ptoisa_timing_910b();
            timing.without = all;
            ptoisa_tile tile = ptoisa_tile_valid(vec(PTOISA_F32, 24, 72), 23, 71);
            assert_int_equal(
                of_tile(is_a5 ? PTOISA_MODEL_950PR : B910, &timing, (ptoisa_op)op, tile, 0),
                of_tile(is_a5 ? PTOISA_MODEL_A5 : PTOISA_MODEL_A2A3, NULL, (ptoisa_op)op, tile, 0));
        }
    }
}

TEST(switches__other_models_know_no_timing) {
    ptoisa_timing timing = *ptoisa_timing_910b();
    ptoisa_tile tile = ptoisa_tile_valid(vec(PTOISA_F32, 256, 16), 256, 16);
    for (int model = PTOISA_MODEL_UNIT; model <= PTOISA_MODEL_USER; model++) {
        for (int op = PTOISA_TCVT; op < PTOISA_TMATMUL; op++) {
            assert_int_equal(of_tile((ptoisa_model)model, &timing, (ptoisa_op)op, tile, 1),
                             of_tile((ptoisa_model)model, NULL, (ptoisa_op)op, tile, 0));
        }
    }
    // A model of one machine does not take the built-in times of the other.
    assert_string_equal(ptoisa_timing_of(PTOISA_MODEL_910B, NULL)->name, "910B");
    assert_string_equal(ptoisa_timing_of(PTOISA_MODEL_950PR, NULL)->name, "950PR");
    assert_null(ptoisa_timing_of(PTOISA_MODEL_COUNT, &timing));
}

// -- published rows -------------------------------------------------------------------------------

static int compare_numbers(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The text of a field that may be in quotes; returns the rest of the row.
static const char *next_field(const char *row, char field[PREDICT_TEXT_MAX]) {
    bool is_quoted = *row == '"';
    row += is_quoted;
    size_t length = strcspn(row, is_quoted ? "\"" : ",");
    snprintf(field, PREDICT_TEXT_MAX, "%.*s", (int)length, row);
    row += length + is_quoted;
    return row + (*row == ',');
}

// The row of these fields.
static predict_instruction instruction_of(char fields[][PREDICT_TEXT_MAX]) {
    predict_instruction row;
    snprintf(row.machine, sizeof row.machine, "%s", fields[0]);
    snprintf(row.name, sizeof row.name, "%s", fields[1]);
    snprintf(row.dtype, sizeof row.dtype, "%s", fields[2]);
    row.rows = (uint32_t)strtoul(fields[3], NULL, 10);
    row.cols = (uint32_t)strtoul(fields[4], NULL, 10);
    row.valid_rows = (uint32_t)strtoul(fields[5], NULL, 10);
    row.valid_cols = (uint32_t)strtoul(fields[6], NULL, 10);
    snprintf(row.params, sizeof row.params, "%s", fields[7]);
    snprintf(row.variant, sizeof row.variant, "%s", fields[8]);
    return row;
}

// Rows that are held to a bound, by machine and names of instructions.
static void check_rows(const char *machine, const char *const *names, bool is_among, double median,
                       double ninety) {
    double errors[256];
    size_t count = 0, rows = sizeof predict_instruction_rows / sizeof *predict_instruction_rows;
    for (size_t i = 1; i < rows; i++) {
        char fields[10][PREDICT_TEXT_MAX], reason[PREDICT_REASON_MAX];
        const char *at = predict_instruction_rows[i];
        for (int j = 0; j < 10; j++) {
            at = next_field(at, fields[j]);
        }
        bool is_named = false;
        for (int j = 0; names && names[j]; j++) {
            is_named = is_named || strncmp(fields[1], names[j], strlen(names[j])) == 0;
        }
        if (strcmp(fields[0], machine) != 0 || is_named != is_among) {
            continue;
        }
        double cycles, measured = strtod(fields[9], NULL);
        const predict_instruction row = instruction_of(fields);
        assert_true(predict_cycles(&row, &cycles, reason));
        errors[count++] = cycles > measured ? cycles / measured - 1 : 1 - cycles / measured;
    }
    assert_true(count > 10);
    qsort(errors, count, sizeof *errors, compare_numbers);
    print_message("%s, %s: %u rows, median %.1f %%, 90 of 100 within %.1f %%\n", machine,
                  is_among ? "moves and reductions" : "others", (unsigned)count,
                  100 * errors[count / 2], 100 * errors[count * 9 / 10]);
    assert_true(errors[count / 2] <= median);
    assert_true(errors[count * 9 / 10] <= ninety);
}

TEST(rows__instructions_are_within_their_bounds) {
    static const char *const moves[] = {"TMOV", "TLOAD", "TROW", "TCOL", "TTRANS", NULL};
    check_rows("A2A3", moves, false, 0.06, 0.20);
    check_rows("A2A3", moves, true, 0.10, 0.20);
    check_rows("A5", NULL, false, 0.015, 0.06);
}

// All rows that the repository carries: times, and shares of pipes where they are given. The MTE1 of the
// small convolution is 5.3 points off.
TEST(rows__kernels_are_within_a_tenth) {
    enum { KERNEL, MACHINE, SHAPE, TILING, CORES, US, SHARES, FIELDS = SHARES + 4 };
    const size_t rows = sizeof predict_kernel_rows / sizeof *predict_kernel_rows;
    double errors[64];
    for (size_t i = 1; i < rows; i++) {
        char fields[FIELDS][PREDICT_TEXT_MAX], reason[PREDICT_REASON_MAX];
        const char *at = predict_kernel_rows[i];
        predict_kernel row;
        predict_times times;
        for (int j = 0; j < FIELDS; j++) {
            at = next_field(at, fields[j]);
        }
        memcpy(row.kernel, fields[KERNEL], PREDICT_TEXT_MAX);
        memcpy(row.machine, fields[MACHINE], PREDICT_TEXT_MAX);
        memcpy(row.shape, fields[SHAPE], PREDICT_TEXT_MAX);
        memcpy(row.tiling, fields[TILING], PREDICT_TEXT_MAX);
        if (!predict_time(&row, &times, reason)) {
            fail_msg("%s: %s", predict_kernel_rows[i], reason);
        }
        const double us = strtod(fields[US], NULL);
        const double shares[] = {times.cube, times.mte1, times.mte2, times.store};
        print_message("%s: %.1f us, predicted %.1f\n", row.kernel, us, times.us);
        errors[i - 1] = times.us > us ? times.us / us - 1 : 1 - times.us / us;
        assert_true(errors[i - 1] < 0.1);
        for (int j = 0; j < 4; j++) {
            const double off =
                fields[SHARES + j][0] ? shares[j] - strtod(fields[SHARES + j], NULL) : 0;
            if (off > 5.5 || off < -5.5) {
                fail_msg("%s: pipe %d is %.1f points off", predict_kernel_rows[i], j, off);
            }
        }
    }
    qsort(errors, rows - 1, sizeof *errors, compare_numbers);
    print_message("median %.1f %%\n", 100 * errors[(rows - 1) / 2]);
    assert_true(errors[(rows - 1) / 2] <= 0.04);
}

// More blocks or more keys never take less time; 48 blocks are two waves of 24.
TEST(rows__attention_grows_with_its_sizes) {
    double before = 0, of_24 = 0, of_48 = 0;
    for (uint64_t blocks = 1; blocks <= 48; blocks++) {
        predict_times times, longer;
        predict_attention(blocks * ATTENTION_ROWS, 4096, &times);
        predict_attention(blocks * ATTENTION_ROWS, 4096 + 128, &longer);
        assert_true(times.us >= before && longer.us > times.us);
        assert_true(times.vector > times.cube && times.vector < 100);
        before = times.us;
        of_24 = blocks == 24 ? times.us : of_24;
        of_48 = times.us;
    }
    assert_true(of_48 > 1.999 * of_24 && of_48 < 2.001 * of_24);
}

// A row of kernels has four fields, one of instructions nine.
static void check_unpredicted(char *line, const char *reason, void *user) {
    enum { FIELDS = 9 };
    char reached[PREDICT_REASON_MAX] = "", f[FIELDS][PREDICT_TEXT_MAX] = {""};
    int fields = 0;
    (void)user;
    assert_true(reason && *reason);
    for (const char *at = line; at; fields++) {
        const char *next = strstr(at, " | ");
        assert_true(fields < FIELDS);
        snprintf(f[fields], PREDICT_TEXT_MAX, "%.*s", next ? (int)(next - at) : PREDICT_TEXT_MAX,
                 at);
        at = next ? next + 3 : NULL;
    }
    if (fields == 4) {
        predict_kernel row;
        predict_times times;
        memcpy(row.kernel, f[0], PREDICT_TEXT_MAX);
        memcpy(row.machine, f[1], PREDICT_TEXT_MAX);
        memcpy(row.shape, f[2], PREDICT_TEXT_MAX);
        memcpy(row.tiling, f[3], PREDICT_TEXT_MAX);
        assert_false(predict_time(&row, &times, reached));
    } else {
        double cycles;
        assert_int_equal(fields, FIELDS);
        const predict_instruction row = instruction_of(f);
        assert_false(predict_cycles(&row, &cycles, reached));
    }
    assert_string_equal(reached, reason);
}

TEST(rows__that_cannot_be_predicted_say_why) {
    operand_lines("tests/isa/isa_unpredicted.txt", 30, check_unpredicted, NULL);
}
