// Conversions as facts (support/facts.h): patterns worked out by hand. All others are in dtype_test.c.

#include "facts.h"

#define TYPES(T)                                                                                   \
    T(F16, f16)                                                                                    \
    T(BF16, bf16)                                                                                  \
    T(F32, f32)                                                                                    \
    T(F64, f64)                                                                                    \
    T(I8, i8)                                                                                      \
    T(I16, i16) T(I32, i32) T(I64, i64) T(U8, u8) T(U16, u16) T(U32, u32) T(U64, u64) T(BOOL, bool)

enum { TYPE_COUNT = PTOWSP_BOOL + 1 };

static uint64_t bits, out[TYPE_COUNT];
static double value;

static ptowsp_status convert(ptowsp_dtype type, const void *in) {
    ptowsp_status status = PTOWSP_OK;
    for (int to = PTOWSP_F16; to < TYPE_COUNT && status == PTOWSP_OK; to++) {
        status = ptowsp_convert(&out[to], (ptowsp_dtype)to, in, type, 1);
    }
    return status;
}

static ptowsp_status from(ptowsp_dtype type) {
    const uint8_t u8 = (uint8_t)bits;
    const uint16_t u16 = (uint16_t)bits;
    const uint32_t u32 = (uint32_t)bits;
    const uint32_t size = ptowsp_dtype_size(type);
    return convert(type, size == 1   ? (const void *)&u8
                         : size == 2 ? (const void *)&u16
                         : size == 4 ? (const void *)&u32
                                     : &bits);
}

static ptowsp_status from_value(void) {
    return convert(PTOWSP_F64, &value);
}

static ptowsp_status once(void) {
    const float f32 = (float)value;
    uint16_t half[2];
    assert_ok(convert(PTOWSP_F32, &f32));
    half[0] = *(const uint16_t *)&out[PTOWSP_F16], half[1] = *(const uint16_t *)&out[PTOWSP_BF16];
    assert_int_equal(ptowsp_f16_from_f32(f32), half[0]);
    assert_int_equal(ptowsp_bf16_from_f32(f32), half[1]);
    value = (double)f32;
    assert_ok(from_value());
    assert_memory_equal(&out[PTOWSP_F16], &half[0], sizeof half[0]);
    assert_memory_equal(&out[PTOWSP_BF16], &half[1], sizeof half[1]);
    return PTOWSP_OK;
}

#define FROM(type, name)                                                                           \
    static ptowsp_status from_##name(void) {                                                       \
        return from(PTOWSP_##type);                                                                \
    }
TYPES(FROM)

static void begin(void) {
    memset(out, 0x5a, sizeof out);
}

// All signed integers and all unsigned ones, in 64 bits.
static const facts_field *fields(void) {
    static facts_field table[TYPE_COUNT + 7];
    static int64_t ints[4];
    static uint64_t uints[4];
    for (int i = 0; i < 4; i++) {
        assert_ok(ptowsp_convert(&ints[i], PTOWSP_I64, &out[PTOWSP_I8 + i],
                                 (ptowsp_dtype)(PTOWSP_I8 + i), 1));
        assert_ok(ptowsp_convert(&uints[i], PTOWSP_U64, &out[PTOWSP_U8 + i],
                                 (ptowsp_dtype)(PTOWSP_U8 + i), 1));
    }
    const facts_field now[] = {
        FIELD(bits),
        FIELD(value),
        FIELDS(ints, 4),
        FIELDS(uints, 4),
        {"pattern32", &out[PTOWSP_F32], false, false, 4, 1, 4, NULL},
        {"pattern64", &out[PTOWSP_F64], false, false, 8, 1, 8, NULL},
    };
    memcpy(table, now, sizeof now);
    for (int i = PTOWSP_F16; i < TYPE_COUNT; i++) {
        const ptowsp_dtype type = (ptowsp_dtype)i;
        table[5 + i] = (facts_field){ptowsp_dtype_name(type),
                                     &out[i],
                                     type == PTOWSP_F32 || type == PTOWSP_F64,
                                     false,
                                     ptowsp_dtype_size(type),
                                     1,
                                     8,
                                     NULL};
    }
    return table;
}

TEST(conversion_facts__hold) {
#define CALL(type, name) {"from " #name, from_##name},
    static const facts_call calls[] = {
        TYPES(CALL){"from value", from_value}, {"once", once}, {NULL, NULL}};
    facts all = {"tests/data/conversions.facts", begin, fields, calls, NULL, NULL, 0};
    facts_run(&all);
}
