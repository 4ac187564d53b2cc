// The loops of attend_body.h in plain C: vectors are arrays of four.

#include "attend_simd.h"

#if !PWSP_NEON

// e^x as the vectors have it; without fused sums ln 2 is subtracted in two parts, and the product of the
// first one is exact.
PWSP_NOINLINE static float pwsp_attend_exp(float x) {
    PWSP_ROUND_APART;
    if (x < PWSP_EXP_LOWEST || x != x) {
        return x != x ? x : 0.0f;
    }
    float shifted = x * PWSP_EXP_LOG2E + PWSP_EXP_ROUND, n = shifted - PWSP_EXP_ROUND;
    float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = PWSP_EXP_C7;
    p = p * r + PWSP_EXP_C6;
    p = p * r + PWSP_EXP_C5;
    p = p * r + PWSP_EXP_C4;
    p = p * r + PWSP_EXP_C3;
    p = p * r + PWSP_EXP_C2;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    return p * pwsp_attend_from_bits((uint32_t)(127 + (int32_t)n) << 23);
}

typedef struct pwsp_attend_floats {
    float x[4];
} pwsp_attend_floats;

#define PWSP_EACH(expression)                                                                      \
    pwsp_attend_floats out;                                                                        \
    for (size_t i = 0; i < 4; i++) {                                                               \
        out.x[i] = (expression);                                                                   \
    }                                                                                              \
    return out

PWSP_FORCE_INLINE pwsp_attend_floats pwsp_attend_portable_load(const float *p) {
    PWSP_EACH(p[i]);
}

PWSP_FORCE_INLINE void pwsp_attend_portable_store(float *p, pwsp_attend_floats a) {
    for (size_t i = 0; i < 4; i++) {
        p[i] = a.x[i];
    }
}

PWSP_FORCE_INLINE pwsp_attend_floats pwsp_attend_portable_set(float value) {
    PWSP_EACH(value);
}

PWSP_FORCE_INLINE pwsp_attend_floats pwsp_attend_portable_fma(pwsp_attend_floats a,
                                                              pwsp_attend_floats b,
                                                              pwsp_attend_floats c) {
    PWSP_ROUND_APART;
    PWSP_EACH(a.x[i] * b.x[i] + c.x[i]);
}

PWSP_FORCE_INLINE pwsp_attend_floats pwsp_attend_portable_mul(pwsp_attend_floats a,
                                                              pwsp_attend_floats b) {
    PWSP_EACH(a.x[i] * b.x[i]);
}

PWSP_FORCE_INLINE pwsp_attend_floats pwsp_attend_portable_add(pwsp_attend_floats a,
                                                              pwsp_attend_floats b) {
    PWSP_EACH(a.x[i] + b.x[i]);
}

PWSP_FORCE_INLINE pwsp_attend_floats pwsp_attend_portable_sub(pwsp_attend_floats a,
                                                              pwsp_attend_floats b) {
    PWSP_EACH(a.x[i] - b.x[i]);
}

PWSP_FORCE_INLINE pwsp_attend_floats pwsp_attend_portable_div(pwsp_attend_floats a,
                                                              pwsp_attend_floats b) {
    PWSP_EACH(a.x[i] / b.x[i]);
}

PWSP_FORCE_INLINE pwsp_attend_floats pwsp_attend_portable_max(pwsp_attend_floats a,
                                                              pwsp_attend_floats b) {
    PWSP_EACH(a.x[i] > b.x[i] ? a.x[i] : b.x[i]);
}

PWSP_FORCE_INLINE pwsp_attend_floats pwsp_attend_portable_copysign(pwsp_attend_floats a,
                                                                   pwsp_attend_floats b) {
    PWSP_EACH((a.x[i] < 0.0f) == (b.x[i] < 0.0f) ? a.x[i] : -a.x[i]);
}

PWSP_FORCE_INLINE pwsp_attend_floats pwsp_attend_portable_exp(pwsp_attend_floats a) {
    PWSP_EACH(pwsp_attend_exp(a.x[i]));
}

PWSP_FORCE_INLINE pwsp_attend_floats pwsp_attend_portable_load_f16(const char *at) {
    uint16_t bits[4];
    memcpy(bits, at, sizeof bits);
    PWSP_EACH(pwsp_attend_from_f16(bits[i]));
}

PWSP_FORCE_INLINE pwsp_attend_floats pwsp_attend_portable_set_f16(const char *at) {
    uint16_t bits;
    memcpy(&bits, at, sizeof bits);
    PWSP_EACH(pwsp_attend_from_f16(bits));
}

PWSP_FORCE_INLINE pwsp_attend_floats pwsp_attend_portable_load_bf16(const char *at) {
    uint16_t bits[4];
    memcpy(bits, at, sizeof bits);
    PWSP_EACH(pwsp_attend_from_bf16(bits[i]));
}

PWSP_FORCE_INLINE pwsp_attend_floats pwsp_attend_portable_load_i8(const char *at) {
    int8_t values[4];
    memcpy(values, at, sizeof values);
    PWSP_EACH((float)values[i]);
}

PWSP_FORCE_INLINE float pwsp_attend_portable_sum(pwsp_attend_floats a) {
    return (a.x[0] + a.x[2]) + (a.x[1] + a.x[3]);
}

PWSP_FORCE_INLINE float pwsp_attend_portable_top(pwsp_attend_floats a) {
    float low = a.x[0] > a.x[1] ? a.x[0] : a.x[1], high = a.x[2] > a.x[3] ? a.x[2] : a.x[3];
    return low > high ? low : high;
}

PWSP_FORCE_INLINE pwsp_attend_floats pwsp_attend_portable_reduce4(pwsp_attend_floats a,
                                                                  pwsp_attend_floats b,
                                                                  pwsp_attend_floats c,
                                                                  pwsp_attend_floats d) {
    pwsp_attend_floats out = {{pwsp_attend_portable_sum(a), pwsp_attend_portable_sum(b),
                               pwsp_attend_portable_sum(c), pwsp_attend_portable_sum(d)}};
    return out;
}
#undef PWSP_EACH

#define PWSP_V_NAME(x) pwsp_attend_portable_##x
#define PWSP_V_TARGET
#define PWSP_V            pwsp_attend_floats
#define PWSP_V_LANES      4
#define PWSP_V_SCORE_ROWS 2
#define PWSP_V_VALUE_ROWS 2
#define PWSP_V_TYPE_ROWS  0
#define PWSP_V_UNROLL
#define PWSP_V_VALUE_VECTORS       8
#define PWSP_V_LOAD(p)             pwsp_attend_portable_load(p)
#define PWSP_V_LOAD_F16(p)         pwsp_attend_portable_load_f16(p)
#define PWSP_V_LOAD_BF16(p)        pwsp_attend_portable_load_bf16(p)
#define PWSP_V_LOAD_I8(p)          pwsp_attend_portable_load_i8(p)
#define PWSP_V_STORE(p, a)         pwsp_attend_portable_store(p, a)
#define PWSP_V_SET(x)              pwsp_attend_portable_set(x)
#define PWSP_V_SET_F16(p)          pwsp_attend_portable_set_f16(p)
#define PWSP_V_STORE_QUAD(p, a)    pwsp_attend_portable_store(p, a)
#define PWSP_V_SET_QUAD(p)         pwsp_attend_portable_load(p)
#define PWSP_V_FMA(a, b, c)        pwsp_attend_portable_fma(a, b, c)
#define PWSP_V_MUL(a, b)           pwsp_attend_portable_mul(a, b)
#define PWSP_V_ADD(a, b)           pwsp_attend_portable_add(a, b)
#define PWSP_V_SUB(a, b)           pwsp_attend_portable_sub(a, b)
#define PWSP_V_DIV(a, b)           pwsp_attend_portable_div(a, b)
#define PWSP_V_MAX(a, b)           pwsp_attend_portable_max(a, b)
#define PWSP_V_FIRST(a)            ((a).x[0])
#define PWSP_V_COPYSIGN(a, b)      pwsp_attend_portable_copysign(a, b)
#define PWSP_V_REDUCE4(a, b, c, d) pwsp_attend_portable_reduce4(a, b, c, d)
#define PWSP_V_FOLD_MAX(a)         pwsp_attend_portable_top(a)
#define PWSP_V_FOLD_ADD(a)         pwsp_attend_portable_sum(a)
#define PWSP_V_EXP(a)              pwsp_attend_portable_exp(a)
#include "attend_body.h"

PWSP_INTERNAL void pwsp_attend_portable(pwsp_attend_variant *out) {
    pwsp_attend_portable_fill("portable", out);
}

#endif
