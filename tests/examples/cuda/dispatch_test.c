// The dispatcher of examples/cuda/dispatch.c on a simulated device and without one: every reason, what is
// counted, what is refused, and values against sums in double precision.

#include "examples/cuda/chain.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 5, DEPTH = 70, COLS = 67 };

static float left[ROWS * DEPTH], right[DEPTH * COLS], matrix[ROWS * COLS], row[COLS],
    number[1] = {-0.5f};
static float out[ROWS * COLS], square[COLS * COLS];

static const chain_op input = {CHAIN_INPUT, left, ROWS, DEPTH},
                      product = {CHAIN_MATMUL, right, DEPTH, COLS};
static const chain_op add_matrix = {CHAIN_ADD, matrix, ROWS, COLS},
                      add_row = {CHAIN_ADD, row, 1, COLS};
static const chain_op add_number = {CHAIN_ADD, number, 1, 1}, relu = {CHAIN_RELU, NULL, 0, 0};
static const chain_op output = {CHAIN_OUTPUT, out, ROWS, COLS};

// Numbers n / 16 with n from -8 to 8, so that f32 sums are exact.
static void fill(float *x, size_t count, uint32_t step) {
    for (size_t i = 0; i < count; i++) {
        x[i] = (float)((int)((i * step + i / 7) % 17) - 8) / 16.0f;
    }
}

static int setup(void **state) {
    (void)state;
    fill(left, ROWS * DEPTH, 3);
    fill(right, DEPTH * COLS, 5);
    fill(matrix, ROWS * COLS, 7);
    fill(row, COLS, 11);
    fill(square, COLS * COLS, 13);
    for (size_t i = 0; i < ROWS * COLS; i++) {
        out[i] = NAN;
    }
    return 0;
}

// An element of a product of left and right, beside what is added.
static double product_at(size_t r, size_t c, double sum, bool has_relu) {
    for (size_t i = 0; i < DEPTH; i++) {
        sum += (double)left[r * DEPTH + i] * (double)right[i * COLS + c];
    }
    return has_relu && sum < 0.0 ? 0.0 : sum;
}

// What a chain of one product has to give.
static void expect_product(const float *added, size_t added_row, size_t added_col, bool has_relu) {
    for (size_t i = 0; i < ROWS * COLS; i++) {
        const size_t r = i / COLS, c = i % COLS;
        const double sum = added ? (double)added[r * added_row + c * added_col] : 0.0;
        assert_true((double)out[i] == product_at(r, c, sum, has_relu));
    }
}

static void run(chain_dispatcher *d, const chain_op *ops, uint32_t op_count, chain_reason wanted) {
    chain_reason reason;
    const char *error;
    assert_true(chain_run(d, ops, op_count, &reason, &error));
    assert_null(error);
    assert_string_equal(chain_reason_texts[reason], chain_reason_texts[wanted]);
}

// A test with a dispatcher of these settings.
#define DISPATCHER_TEST(name, ...)                                                                 \
    static void name##_of(chain_dispatcher *d);                                                    \
    static void name(void **state) {                                                               \
        const chain_settings settings = __VA_ARGS__;                                               \
        chain_dispatcher *d = chain_create(&settings);                                             \
        (void)state;                                                                               \
        name##_of(d);                                                                              \
        chain_destroy(d);                                                                          \
    }                                                                                              \
    static void name##_of(chain_dispatcher *d)

static void all_forms_have_the_values_of_double_precision_on_both_sides(void **state) {
    (void)state;
    for (int forced = 0; forced < 2; forced++) {
        const chain_settings settings = {.is_simulated = true, .forces_fallback = forced != 0};
        const chain_reason reason = forced ? CHAIN_FORCED_FALLBACK : CHAIN_NONE;
        chain_dispatcher *d = chain_create(&settings);
        for (int turn = 0; turn < 3; turn++) {
            setup(NULL);
            left[turn] = (float)turn;
            run(d, (const chain_op[]){input, product, output}, 3, reason);
            expect_product(NULL, 0, 0, false);
            run(d, (const chain_op[]){input, product, add_matrix, output}, 4, reason);
            expect_product(matrix, COLS, 1, false);
            run(d, (const chain_op[]){input, product, add_row, relu, output}, 5, reason);
            expect_product(row, 0, 1, true);
            number[0] = (float)turn - 0.5f;
            run(d, (const chain_op[]){input, product, add_number, relu, output}, 5, reason);
            expect_product(number, 0, 0, true);
            run(d, (const chain_op[]){input, product, relu, output}, 4, reason);
            expect_product(NULL, 0, 0, true);
        }
        chain_destroy(d);
    }
}

DISPATCHER_TEST(a_signature_is_captured_once_and_replayed_with_new_data, {.is_simulated = true}) {
    const chain_op ops[] = {input, product, output};
    for (int turn = 0; turn < 4; turn++) {
        right[turn] += 1.0f;
        run(d, ops, 3, CHAIN_NONE);
        expect_product(NULL, 0, 0, false);
    }
    float other[ROWS * DEPTH];
    memcpy(other, left, sizeof other);
    const chain_op from_other[] = {{CHAIN_INPUT, other, ROWS, DEPTH}, product, output};
    run(d, from_other, 3, CHAIN_NONE);  // another pointer is another signature
    const chain_counters *count = chain_count(d);
    assert_int_equal(count->runs, 5);
    assert_int_equal(count->on_device, 5);
    assert_int_equal(count->captures, 2);
    assert_int_equal(count->replays, 3);
    assert_int_equal(count->uploads, 5);
    assert_int_equal(count->reasons[CHAIN_NONE], 5);
}

DISPATCHER_TEST(without_replay_nothing_is_captured, {.is_simulated = true, .has_no_replay = true}) {
    for (int turn = 0; turn < 3; turn++) {
        run(d, (const chain_op[]){input, product, output}, 3, CHAIN_NONE);
        expect_product(NULL, 0, 0, false);
    }
    assert_int_equal(chain_count(d)->captures, 0);
    assert_int_equal(chain_count(d)->replays, 0);
}

DISPATCHER_TEST(a_static_right_operand_is_uploaded_once_for_all_chains,
                {.is_simulated = true, .has_static_right = true}) {
    for (int turn = 0; turn < 3; turn++) {
        run(d, (const chain_op[]){input, product, output}, 3, CHAIN_NONE);
        run(d, (const chain_op[]){input, product, relu, output}, 4, CHAIN_NONE);
    }
    expect_product(NULL, 0, 0, true);
    assert_int_equal(chain_count(d)->uploads, 1);
    // The promise is the caller's: what changes after the upload is not seen.
    const float before = right[0];
    right[0] += 8.0f;
    run(d, (const chain_op[]){input, product, relu, output}, 4, CHAIN_NONE);
    right[0] = before;
    expect_product(NULL, 0, 0, true);
}

static void every_reason_is_given_and_the_cpu_computes(void **state) {
    (void)state;
    const struct {
        chain_settings settings;
        chain_reason reason;
    } rows[] = {
        {{.is_disabled = true, .is_simulated = true}, CHAIN_DISABLED},
        {{.is_simulated = true, .forces_fallback = true}, CHAIN_FORCED_FALLBACK},
        {{.is_simulated = true, .error_at = "1"}, CHAIN_FORCED_ERROR},
        {{.is_simulated = true, .error_at = "capture"}, CHAIN_CAPTURE_FAILED},
        {{.is_simulated = true, .error_at = "launch"}, CHAIN_LAUNCH_FAILED},
        {{.is_simulated = true, .memory_bytes = 20000}, CHAIN_SHAPE},  // of 21,760
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        chain_dispatcher *d = chain_create(&rows[i].settings);
        for (int turn = 0; turn < 2; turn++) {
            setup(NULL);
            run(d, (const chain_op[]){input, product, add_row, output}, 4, rows[i].reason);
            expect_product(row, 0, 1, false);
        }
        assert_int_equal(chain_count(d)->reasons[rows[i].reason], 2);
        assert_int_equal(chain_count(d)->on_device, 0);
        chain_destroy(d);
    }
}

DISPATCHER_TEST(chains_that_no_device_takes_run_on_the_cpu, {.is_simulated = true}) {
    const chain_op second = {CHAIN_MATMUL, square, COLS, COLS};
    run(d, (const chain_op[]){input, product, relu, add_row, output}, 5, CHAIN_UNSUPPORTED_CHAIN);
    run(d, (const chain_op[]){input, product, relu, second, output}, 5, CHAIN_UNSUPPORTED_CHAIN);
    for (size_t k = 0; k < ROWS * COLS; k++) {
        double sum = 0.0;
        for (size_t i = 0; i < COLS; i++) {
            sum += product_at(k / COLS, i, 0.0, true) * (double)square[i * COLS + k % COLS];
        }
        assert_true(fabs((double)out[k] - sum) <= 1e-4);
    }
    float same[ROWS * DEPTH];
    run(d, (const chain_op[]){input, {CHAIN_OUTPUT, same, ROWS, DEPTH}}, 2,
        CHAIN_UNSUPPORTED_CHAIN);
    assert_memory_equal(same, left, sizeof same);
    // Twelve sums are two kernels.
    chain_op many[CHAIN_OP_MAX] = {input, product};
    for (uint32_t i = 2; i < 14; i++) {
        many[i] = add_number;
    }
    many[14] = output;
    number[0] = 0.25f;
    run(d, many, 15, CHAIN_UNSUPPORTED_CHAIN);
    number[0] = 3.0f;
    expect_product(number, 0, 0, false);
}

// One signature needs 21,760 bytes.
DISPATCHER_TEST(memory_of_old_signatures_is_used_again,
                {.is_simulated = true, .memory_bytes = 30000}) {
    for (int turn = 0; turn < 3; turn++) {
        run(d, (const chain_op[]){input, product, output}, 3, CHAIN_NONE);
        expect_product(NULL, 0, 0, false);
        run(d, (const chain_op[]){input, product, relu, output}, 4, CHAIN_NONE);
        expect_product(NULL, 0, 0, true);
    }
    assert_int_equal(chain_count(d)->captures, 6);
}

DISPATCHER_TEST(wrong_chains_are_refused_with_a_text, {.is_simulated = true}) {
    const chain_op narrow = {CHAIN_OUTPUT, out, ROWS, COLS - 1},
                   no_data = {CHAIN_MATMUL, NULL, DEPTH, COLS};
    const chain_op tall = {CHAIN_MATMUL, right, DEPTH - 1, COLS},
                   column = {CHAIN_ADD, row, ROWS, 1};
    const chain_op empty = {CHAIN_INPUT, left, 0, DEPTH};
    const struct {
        chain_op ops[4];
        uint32_t count;
        const char *text;
    } rows[] = {
        {{input}, 1, "2 to 16"},
        {{input, product, output}, 17, "2 to 16"},
        {{product, output}, 2, "begins with its input"},
        {{input, product, relu}, 3, "ends with its output"},
        {{input, product, narrow}, 3, "another shape"},
        {{input, no_data, output}, 3, "NULL"},
        {{empty, product, output}, 3, "no rows"},
        {{input, tall, output}, 3, "other rows"},
        {{input, product, column, output}, 4, "a row or a number"},
        {{input, input, product, output}, 4, "inside the chain"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        chain_reason reason;
        const char *error;
        assert_false(chain_run(d, rows[i].ops, rows[i].count, &reason, &error));
        assert_non_null(strstr(error, rows[i].text));
    }
    assert_int_equal(chain_count(d)->runs, 0);
}

// What is read where all variables have this value, or none.
static chain_settings settings_of(const char *value) {
    static const char *const names[] = {"PTOWSP_CUDA_DISABLE",     "PTOWSP_CUDA_FORCE_FALLBACK",
                                        "PTOWSP_CUDA_FORCE_ERROR", "PTOWSP_CUDA_SIMULATE",
                                        "PTOWSP_CUDA_REPLAY",      "PTOWSP_CUDA_STATIC_RIGHT"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(value ? setenv(names[i], value, 1) : unsetenv(names[i]), 0);
    }
    return chain_settings_read();
}

static void the_environment_is_read(void **state) {
    (void)state;
    chain_settings s = settings_of(NULL);
    assert_false(s.is_disabled || s.forces_fallback || s.error_at || s.is_simulated ||
                 s.has_no_replay || s.has_static_right);
    s = settings_of("0");
    assert_false(s.is_disabled || s.forces_fallback || s.error_at || s.is_simulated ||
                 s.has_static_right);
    assert_true(s.has_no_replay);
    s = settings_of("launch");
    assert_true(s.is_disabled && s.forces_fallback && s.is_simulated && !s.has_no_replay &&
                s.has_static_right);
    assert_string_equal(s.error_at, "launch");
    settings_of(NULL);
}

// Where there is no driver this is the reason; with a device all runs there, close to the values.
DISPATCHER_TEST(a_real_device_is_used_or_named_as_missing, {0}) {
    const chain_op ops[] = {input, product, add_row, relu, output};
    chain_reason reason;
    const char *error;
    for (int turn = 0; turn < 2; turn++) {
        assert_true(chain_run(d, ops, 5, &reason, &error));
        assert_true(reason == CHAIN_NONE || reason == CHAIN_NO_DRIVER ||
                    reason == CHAIN_NO_DEVICE || reason == CHAIN_NO_LIBRARY);
        expect_product(row, 0, 1, true);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(all_forms_have_the_values_of_double_precision_on_both_sides, setup),
        cmocka_unit_test_setup(a_signature_is_captured_once_and_replayed_with_new_data, setup),
        cmocka_unit_test_setup(without_replay_nothing_is_captured, setup),
        cmocka_unit_test_setup(a_static_right_operand_is_uploaded_once_for_all_chains, setup),
        cmocka_unit_test_setup(every_reason_is_given_and_the_cpu_computes, setup),
        cmocka_unit_test_setup(chains_that_no_device_takes_run_on_the_cpu, setup),
        cmocka_unit_test_setup(memory_of_old_signatures_is_used_again, setup),
        cmocka_unit_test_setup(wrong_chains_are_refused_with_a_text, setup),
        cmocka_unit_test_setup(the_environment_is_read, setup),
        cmocka_unit_test_setup(a_real_device_is_used_or_named_as_missing, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
