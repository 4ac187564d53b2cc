// One operation on a column at a time.
//
// The table PWSP_OPCODES defines the operations. Vectors need different expressions for some: a
// comparison gives all bits or none, and such masks replace the choice between two values.
// PWSP_VECTOR_OPCODES has those expressions. Divisions have a vector form in doubles, for small
// numbers; others are done one by one.

#include "column.h"

#include "../base/cpu.h"

#if !defined(PTOWSP_NO_SIMD)

typedef uint64_t pwsp_cells_8 __attribute__((vector_size(64), aligned(8), may_alias));
typedef int64_t pwsp_signed_8 __attribute__((vector_size(64), aligned(8), may_alias));

#define PWSP_MASK(condition)       ((pwsp_cells_8)(condition))
#define PWSP_TRUTH(condition)      (PWSP_MASK(condition) & 1)
#define PWSP_SIGNED(x)             ((pwsp_signed_8)(x))
#define PWSP_PICK(condition, x, y) ((PWSP_MASK(condition) & (x)) | (~PWSP_MASK(condition) & (y)))

// clang-format off
#define PWSP_VECTOR_OPCODES(OP)                                                                    \
    OP(ADD, a + b)               OP(SUB, a - b)              OP(MUL, a * b)                        \
    OP(MIN_I, PWSP_PICK(PWSP_SIGNED(a) < PWSP_SIGNED(b), a, b))                                    \
    OP(MIN_U, PWSP_PICK(a < b, a, b))                                                              \
    OP(MAX_I, PWSP_PICK(PWSP_SIGNED(a) > PWSP_SIGNED(b), a, b))                                    \
    OP(MAX_U, PWSP_PICK(a > b, a, b))                                                              \
    OP(AND, a & b)               OP(OR, a | b)               OP(XOR, a ^ b)                        \
    OP(SHL, a << (b & 63))       OP(SHR_U, a >> (b & 63))                                          \
    OP(SHR_I, ((a ^ (0 - (a >> 63))) >> (b & 63)) ^ (0 - (a >> 63)))                               \
    OP(EQ, PWSP_TRUTH(a == b))   OP(NE, PWSP_TRUTH(a != b))                                        \
    OP(LT_I, PWSP_TRUTH(PWSP_SIGNED(a) < PWSP_SIGNED(b)))    OP(LT_U, PWSP_TRUTH(a < b))           \
    OP(LE_I, PWSP_TRUTH(PWSP_SIGNED(a) <= PWSP_SIGNED(b)))   OP(LE_U, PWSP_TRUTH(a <= b))          \
    OP(GT_I, PWSP_TRUTH(PWSP_SIGNED(a) > PWSP_SIGNED(b)))    OP(GT_U, PWSP_TRUTH(a > b))           \
    OP(GE_I, PWSP_TRUTH(PWSP_SIGNED(a) >= PWSP_SIGNED(b)))   OP(GE_U, PWSP_TRUTH(a >= b))          \
    OP(NEG, 0 - a)               OP(BITNOT, ~a)              OP(NOT, a ^ 1)                        \
    OP(MOVE, a)                  OP(BOOL, PWSP_TRUTH(a != 0))                                      \
    OP(SELECT, PWSP_PICK(a != 0, b, c))
#define PWSP_SINGLE_OPCODES(OP)                                                                    \
    OP(DIV_I, pwsp_div_i64(a, b)) OP(DIV_U, b ? a / b : 0)                                         \
    OP(REM_I, pwsp_rem_i64(a, b)) OP(REM_U, b ? a % b : 0)
// clang-format on

#else

#define PWSP_VECTOR_OPCODES(OP)
#define PWSP_SINGLE_OPCODES(OP) PWSP_OPCODES(OP)
#define PWSP_DIVIDED(opcode)    0

#endif

#if !defined(PTOWSP_NO_SIMD)

typedef double pwsp_doubles_8 __attribute__((vector_size(64), aligned(8), may_alias));

#define PWSP_DOUBLES(x)      __builtin_convertvector(PWSP_SIGNED(x), pwsp_doubles_8)
#define PWSP_DIVIDED(opcode) pwsp_column_divide(opcode, x, y, out, elements)

// Quotients, or remainders, by doubles, as far as whole vectors reach: returns how many. A quotient that is
// no integer is further from the next one than two doubles are apart, so it is rounded to none, in whatever
// direction, as long as no number is of a magnitude above 2^51. Else, or if a divisor is 0, none is done.
PWSP_FORCE_INLINE uint32_t pwsp_column_divide(pwsp_opcode opcode, const uint64_t *x,
                                              const uint64_t *y, uint64_t *out, uint32_t elements) {
    const bool is_signed = opcode == PWSP_OPCODE_DIV_I || opcode == PWSP_OPCODE_REM_I;
    const bool is_rest = opcode == PWSP_OPCODE_REM_I || opcode == PWSP_OPCODE_REM_U;
    const uint64_t least = is_signed ? UINT64_C(1) << 51 : 0;  // added to -2^51: 0
    const uint32_t count = elements / PWSP_COLUMN_STEP * PWSP_COLUMN_STEP;
    pwsp_cells_8 high = {0}, zeros = {0};
    for (uint32_t i = 0; i < count; i += PWSP_COLUMN_STEP) {
        const pwsp_cells_8 a = *(const pwsp_cells_8 *)(const void *)(x + i);
        const pwsp_cells_8 b = *(const pwsp_cells_8 *)(const void *)(y + i);
        high |= (a + least) | (b + least);
        zeros |= PWSP_MASK(b == 0);
    }
    uint64_t any = 0;
    for (uint32_t i = 0; i < PWSP_COLUMN_STEP; i++) {
        any |= high[i] >> (is_signed ? 52 : 51) | zeros[i];
    }
    if (any) {
        return 0;
    }
    for (uint32_t i = 0; i < count; i += PWSP_COLUMN_STEP) {
        const pwsp_cells_8 a = *(const pwsp_cells_8 *)(const void *)(x + i);
        const pwsp_cells_8 b = *(const pwsp_cells_8 *)(const void *)(y + i);
        const pwsp_cells_8 quotient = (pwsp_cells_8) __builtin_convertvector(
            PWSP_DOUBLES(a) / PWSP_DOUBLES(b), pwsp_signed_8);
        const pwsp_cells_8 rest = a - quotient * b;
        *(pwsp_cells_8 *)(void *)(out + i) = is_rest ? rest : quotient;
    }
    return count;
}

#endif

PWSP_INTERNAL void pwsp_column_fill(uint64_t *column, uint64_t value, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        column[i] = value;
    }
}

PWSP_INTERNAL uint32_t pwsp_opcode_operands(pwsp_opcode opcode) {
    switch (opcode) {
    case PWSP_OPCODE_NEG:
    case PWSP_OPCODE_BITNOT:
    case PWSP_OPCODE_NOT:
    case PWSP_OPCODE_MOVE:
    case PWSP_OPCODE_BOOL:
    case PWSP_OPCODE_READ: return 1;
    case PWSP_OPCODE_SELECT: return 3;
    default: return 2;
    }
}

static bool pwsp_column_read(const pwsp_array *array, const uint64_t *index, uint64_t *out,
                             uint32_t elements) {
    for (uint32_t i = 0; i < elements; i++) {
        if (index[i] >= array->count) {
            return false;
        }
        out[i] = pwsp_array_at(array, index[i]);
    }
    return true;
}

PWSP_FORCE_INLINE bool pwsp_column_run_body(const pwsp_instruction *code, uint32_t count,
                                            uint64_t *columns, const pwsp_array *arrays,
                                            uint32_t elements) {
    for (uint32_t k = 0; k < count; k++) {
        const pwsp_instruction *at = &code[k];
        const uint64_t *x = pwsp_column_at(columns, at->a);
        uint64_t *out = pwsp_column_at(columns, at->out);
        if (at->opcode == PWSP_OPCODE_READ) {
            if (!pwsp_column_read(&arrays[at->c], x, out, elements)) {
                return false;
            }
            continue;
        }
        const uint64_t *y = pwsp_column_at(columns, at->b), *z = pwsp_column_at(columns, at->c);
        switch (at->opcode) {
#define PWSP_VECTOR_RUN(name, result)                                                              \
    case PWSP_OPCODE_##name:                                                                       \
        for (uint32_t i = 0; i < elements; i += PWSP_COLUMN_STEP) {                                \
            const pwsp_cells_8 a = *(const pwsp_cells_8 *)(const void *)(x + i);                   \
            const pwsp_cells_8 b = *(const pwsp_cells_8 *)(const void *)(y + i);                   \
            const pwsp_cells_8 c = *(const pwsp_cells_8 *)(const void *)(z + i);                   \
            (void)b;                                                                               \
            (void)c;                                                                               \
            *(pwsp_cells_8 *)(void *)(out + i) = (result);                                         \
        }                                                                                          \
        break;
#define PWSP_SINGLE_RUN(name, result)                                                              \
    case PWSP_OPCODE_##name:                                                                       \
        for (uint32_t i = PWSP_DIVIDED(PWSP_OPCODE_##name); i < elements; i++) {                   \
            const uint64_t a = x[i], b = y[i], c = z[i];                                           \
            (void)b;                                                                               \
            (void)c;                                                                               \
            out[i] = (uint64_t)(result);                                                           \
        }                                                                                          \
        break;
            PWSP_VECTOR_OPCODES(PWSP_VECTOR_RUN)
            PWSP_SINGLE_OPCODES(PWSP_SINGLE_RUN)
#undef PWSP_VECTOR_RUN
#undef PWSP_SINGLE_RUN
        default: PTOWSP_ASSERT(0 && "a skip");
        }
    }
    return true;
}

#if PWSP_X86

PWSP_AVX512 static bool pwsp_column_run_avx512(const pwsp_instruction *code, uint32_t count,
                                               uint64_t *columns, const pwsp_array *arrays,
                                               uint32_t elements) {
    return pwsp_column_run_body(code, count, columns, arrays, elements);
}

PWSP_AVX2 static bool pwsp_column_run_avx2(const pwsp_instruction *code, uint32_t count,
                                           uint64_t *columns, const pwsp_array *arrays,
                                           uint32_t elements) {
    return pwsp_column_run_body(code, count, columns, arrays, elements);
}

#endif

PWSP_INTERNAL bool pwsp_column_run(const pwsp_instruction *code, uint32_t count, uint64_t *columns,
                                   const pwsp_array *arrays, uint32_t elements) {
    PTOWSP_ASSERT(elements <= PWSP_COLUMN_MAX);
#if PWSP_X86
    if (pwsp_cpu_has_avx512()) {
        return pwsp_column_run_avx512(code, count, columns, arrays, elements);
    }
    if (pwsp_cpu_has_avx2()) {
        return pwsp_column_run_avx2(code, count, columns, arrays, elements);
    }
#endif
    return pwsp_column_run_body(code, count, columns, arrays, elements);
}
