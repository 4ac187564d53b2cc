// Code over columns (src/data/column.h): each operation on every element is what the code for single
// cells makes of it, in all vector code that this machine has (PTOWSP_VECTORS), at the edges of numbers too.

#include "src/data/column.h"

#include "test.h"

enum { COLUMNS = 12, OPERATIONS = PWSP_OPCODE_READ, CODE_MAX = 24 };

static uint64_t random_number(uint64_t *random) {
    static const uint64_t edges[] = {0, 1, 2, 63, 64, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX};
    const uint64_t number = test_random(random);
    switch (test_random_in(random, 0, 3)) {
    case 0: return edges[number % 8];
    case 1: return number >> test_random_in(random, 0, 63);
    case 2: return number % 100;
    default: return number;
    }
}

static void fill(uint64_t *columns, uint64_t *random) {
    for (uint32_t i = 0; i < COLUMNS * PWSP_COLUMN_MAX; i++) {
        columns[i] = random_number(random);
    }
}

// Runs the code on columns, and on each row of a copy as on cells. Elements behind the last vector
// that is begun stay as they are.
static void check(const pwsp_instruction *code, uint32_t count, const pwsp_array *arrays,
                  uint64_t *columns, uint32_t elements) {
    static uint64_t before[COLUMNS * PWSP_COLUMN_MAX];
    uint64_t cells[COLUMNS];
    memcpy(before, columns, sizeof before);
    assert_true(pwsp_column_run(code, count, columns, arrays, elements));
    const uint32_t end = (elements + PWSP_COLUMN_STEP - 1) / PWSP_COLUMN_STEP * PWSP_COLUMN_STEP;
    for (uint32_t i = 0; i < PWSP_COLUMN_MAX; i++) {
        pwsp_fault fault = {0};
        for (uint32_t k = 0; k < COLUMNS; k++) {
            cells[k] = before[k * PWSP_COLUMN_MAX + i];
        }
        if (i < elements) {
            pwsp_code_run(code, 0, count, cells, arrays, &fault);
        }
        assert_false(fault.is_set);
        for (uint32_t k = 0; k < COLUMNS && (i < elements || i >= end); k++) {
            const uint64_t found = pwsp_column_at(columns, k)[i];
            if (found != cells[k]) {
                fail_msg("row %u of %u, cell %u: %llx, not %llx, from operation %u", i, elements, k,
                         (unsigned long long)found, (unsigned long long)cells[k], code->opcode);
            }
        }
    }
}

// All operations, for every number of elements. The result may be an operand.
TEST(column__operations_are_those_on_single_cells) {
    static uint64_t columns[COLUMNS * PWSP_COLUMN_MAX];
    uint64_t random = test_seed();
    for (uint32_t opcode = 0; opcode < OPERATIONS; opcode++) {
        for (uint32_t elements = 0; elements <= PWSP_COLUMN_MAX; elements++) {
            const pwsp_instruction code = {opcode, elements % 4, 1, 2, 3};
            fill(columns, &random);
            check(&code, 1, NULL, columns, elements);
        }
    }
}

TEST(column__code_of_several_operations_equals_single_elements) {
    static uint64_t columns[COLUMNS * PWSP_COLUMN_MAX];
    int32_t packed[50];
    uint64_t random = test_seed();
    for (int round = 0; TEST_ROUNDS(round, 2000); round++) {
        pwsp_instruction code[CODE_MAX];
        pwsp_array array = {0};
        for (uint32_t i = 0; i < 50; i++) {
            packed[i] = (int32_t)test_random(&random);
        }
        array.data = packed;
        array.count = 50;
        array.dtype = PTOWSP_I32;
        array.is_bound = true;
        uint32_t count = test_random_u32(&random, 1, CODE_MAX);
        for (uint32_t k = 0; k < count; k++) {
            code[k].opcode = test_random_u32(&random, 0, OPERATIONS);  // the last reads
            code[k].out = test_random_u32(&random, 1, COLUMNS - 1);
            code[k].a = test_random_u32(&random, 0, COLUMNS - 1);
            code[k].b = test_random_u32(&random, 0, COLUMNS - 1);
            code[k].c = test_random_u32(&random, 0, COLUMNS - 1);
            if (code[k].opcode == PWSP_OPCODE_READ) {
                code[k].a = code[k].c = 0;  // column 0 has indices, which nothing writes
            }
        }
        fill(columns, &random);
        for (uint32_t i = 0; i < PWSP_COLUMN_MAX; i++) {
            columns[i] %= 50;
        }
        check(code, count, &array, columns, test_random_u32(&random, 1, PWSP_COLUMN_MAX));
    }
}

// One index beyond the end, at each element of the block; behind its elements it does no harm.
TEST(column__reads_outside_of_arrays_are_found) {
    static uint64_t columns[COLUMNS * PWSP_COLUMN_MAX];
    const int32_t data[3] = {5, -6, 7};
    const pwsp_instruction code = {PWSP_OPCODE_READ, 1, 0, 0, 0};
    pwsp_array array = {.data = data, .count = 3, .dtype = PTOWSP_I32, .is_bound = true};
    for (uint32_t wrong = 0; wrong < PWSP_COLUMN_MAX; wrong++) {
        for (uint32_t k = 0; k < 2; k++) {
            pwsp_column_fill(columns, 1, PWSP_COLUMN_MAX);
            columns[wrong] = k ? 3 : UINT64_MAX;
            assert_true(pwsp_column_run(&code, 1, columns, &array, wrong));
            assert_true(wrong == 0 || pwsp_column_at(columns, 1)[wrong - 1] == (uint64_t)-6);
            assert_false(pwsp_column_run(&code, 1, columns, &array, wrong + 1));
            assert_false(pwsp_column_run(&code, 1, columns, &array, PWSP_COLUMN_MAX));
        }
    }
}

// What operations take is told by whether the other operands change any result.
TEST(column__operands_are_counted) {
    uint64_t random = test_seed();
    for (uint32_t opcode = 0; opcode < OPERATIONS; opcode++) {
        const pwsp_instruction code = {opcode, 3, 0, 1, 2};
        uint32_t used = 0;
        for (uint32_t round = 0; round < 2000; round++) {
            for (uint32_t k = 0; k < 3; k++) {
                uint64_t cells[4] = {random_number(&random), random_number(&random),
                                     random_number(&random), 0};
                pwsp_code_run(&code, 0, 1, cells, NULL, NULL);
                const uint64_t before = cells[3];
                cells[k] = random_number(&random);
                pwsp_code_run(&code, 0, 1, cells, NULL, NULL);
                used = cells[3] != before && used < k + 1 ? k + 1 : used;
            }
        }
        assert_int_equal(pwsp_opcode_operands((pwsp_opcode)opcode), used);
    }
}
