// The loops of attend_body.h with NEON.

#include "attend_simd.h"

#if PWSP_NEON

PWSP_FORCE_INLINE float32x4_t pwsp_attend_neon_exp(float32x4_t x) {
    uint32x4_t is_dropped = vcltq_f32(x, vdupq_n_f32(PWSP_EXP_LOWEST));
    float32x4_t round = vdupq_n_f32(PWSP_EXP_ROUND);
    float32x4_t shifted = vfmaq_f32(round, x, vdupq_n_f32(PWSP_EXP_LOG2E));
    float32x4_t r = vfmsq_f32(x, vsubq_f32(shifted, round), vdupq_n_f32(PWSP_EXP_LN2));
    float32x4_t p = vdupq_n_f32(PWSP_EXP_C7);
    p = vfmaq_f32(vdupq_n_f32(PWSP_EXP_C6), p, r);
    p = vfmaq_f32(vdupq_n_f32(PWSP_EXP_C5), p, r);
    p = vfmaq_f32(vdupq_n_f32(PWSP_EXP_C4), p, r);
    p = vfmaq_f32(vdupq_n_f32(PWSP_EXP_C3), p, r);
    p = vfmaq_f32(vdupq_n_f32(PWSP_EXP_C2), p, r);
    p = vfmaq_f32(vdupq_n_f32(1.0f), p, r);
    p = vfmaq_f32(vdupq_n_f32(1.0f), p, r);
    uint32x4_t n = vaddq_u32(vreinterpretq_u32_f32(shifted), vdupq_n_u32(127));
    uint32x4_t power = vshlq_n_u32(n, 23);
    p = vmulq_f32(p, vreinterpretq_f32_u32(power));
    return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(p), is_dropped));
}

PWSP_FORCE_INLINE float32x4_t pwsp_attend_neon_load_f16(const char *at) {
    uint16x4_t bits;
    memcpy(&bits, at, sizeof bits);
    return vcvt_f32_f16(vreinterpret_f16_u16(bits));
}

PWSP_FORCE_INLINE float32x4_t pwsp_attend_neon_set_f16(const char *at) {
    uint16_t half;
    memcpy(&half, at, sizeof half);
    return vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(half)));
}

PWSP_FORCE_INLINE float32x4_t pwsp_attend_neon_load_bf16(const char *at) {
    uint16x4_t bits;
    memcpy(&bits, at, sizeof bits);
    return vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(bits), 16));
}

PWSP_FORCE_INLINE float32x4_t pwsp_attend_neon_load_i8(const char *at) {
    uint32_t bits;
    memcpy(&bits, at, sizeof bits);
    int16x8_t values = vmovl_s8(vcreate_s8(bits));
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(values)));
}

PWSP_FORCE_INLINE float32x4_t pwsp_attend_neon_reduce4(float32x4_t a, float32x4_t b, float32x4_t c,
                                                       float32x4_t d) {
    float64x2_t ab = vreinterpretq_f64_f32(vaddq_f32(vzip1q_f32(a, b), vzip2q_f32(a, b)));
    float64x2_t cd = vreinterpretq_f64_f32(vaddq_f32(vzip1q_f32(c, d), vzip2q_f32(c, d)));
    return vaddq_f32(vreinterpretq_f32_f64(vzip1q_f64(ab, cd)),
                     vreinterpretq_f32_f64(vzip2q_f64(ab, cd)));
}

PWSP_FORCE_INLINE float pwsp_attend_neon_fold_add(float32x4_t a) {
    float32x2_t half = vadd_f32(vget_low_f32(a), vget_high_f32(a));
    return vget_lane_f32(half, 0) + vget_lane_f32(half, 1);
}

PWSP_FORCE_INLINE float32x4_t pwsp_attend_neon_copysign(float32x4_t a, float32x4_t b) {
    return vbslq_f32(vdupq_n_u32(0x80000000), b, a);
}

#define PWSP_V_NAME(x) pwsp_attend_neon_##x
#define PWSP_V_TARGET
#define PWSP_V                     float32x4_t
#define PWSP_V_LANES               4
#define PWSP_V_SCORE_ROWS          6
#define PWSP_V_VALUE_ROWS          6
#define PWSP_V_TYPE_ROWS           PWSP_ATTEND_TYPED
#define PWSP_V_UNROLL              PWSP_UNROLL
#define PWSP_V_VALUE_VECTORS       24
#define PWSP_V_LOAD(p)             vld1q_f32(p)
#define PWSP_V_LOAD_F16(p)         pwsp_attend_neon_load_f16(p)
#define PWSP_V_LOAD_BF16(p)        pwsp_attend_neon_load_bf16(p)
#define PWSP_V_LOAD_I8(p)          pwsp_attend_neon_load_i8(p)
#define PWSP_V_STORE(p, a)         vst1q_f32(p, a)
#define PWSP_V_SET(x)              vdupq_n_f32(x)
#define PWSP_V_SET_F16(p)          pwsp_attend_neon_set_f16(p)
#define PWSP_V_STORE_QUAD(p, a)    vst1q_f32(p, a)
#define PWSP_V_SET_QUAD(p)         vld1q_f32(p)
#define PWSP_V_FMA(a, b, c)        vfmaq_f32(c, a, b)
#define PWSP_V_MUL(a, b)           vmulq_f32(a, b)
#define PWSP_V_ADD(a, b)           vaddq_f32(a, b)
#define PWSP_V_SUB(a, b)           vsubq_f32(a, b)
#define PWSP_V_DIV(a, b)           vdivq_f32(a, b)
#define PWSP_V_MAX(a, b)           vmaxq_f32(a, b)
#define PWSP_V_FIRST(a)            vgetq_lane_f32(a, 0)
#define PWSP_V_COPYSIGN(a, b)      pwsp_attend_neon_copysign(a, b)
#define PWSP_V_REDUCE4(a, b, c, d) pwsp_attend_neon_reduce4(a, b, c, d)
#define PWSP_V_FOLD_MAX(a)         vmaxvq_f32(a)
#define PWSP_V_FOLD_ADD(a)         pwsp_attend_neon_fold_add(a)
#define PWSP_V_EXP(a)              pwsp_attend_neon_exp(a)
#include "attend_body.h"

PWSP_INTERNAL void pwsp_attend_neon(pwsp_attend_variant *out) {
    pwsp_attend_neon_fill("neon", out);
}

#endif
