#include "moe_kernel.h"

#include <string.h>

#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)
#include <immintrin.h>
#define MOE_HAS_X86 1
#else
#define MOE_HAS_X86 0
#endif

// Sums are in registers only where loops over a tile are unrolled completely.
#if defined(__clang__)
#define MOE_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define MOE_UNROLL _Pragma("GCC unroll 8")
#else
#define MOE_UNROLL
#endif

#if defined(__GNUC__)
#define MOE_INLINE  __attribute__((always_inline))
#define MOE_ASK(at) __builtin_prefetch(at, 0, 2)  // into the second-level cache
#else
#define MOE_INLINE
#define MOE_ASK(at) ((void)0)
#endif

enum { MOE_TILE_TOKENS = 4, MOE_TILE_COLUMNS = 6, MOE_BLOCK_COLUMNS = 24 };

// The columns [begin, end) of an expert.
typedef struct moe_group {
    moe_type type;
    const unsigned char *weights;
    size_t row_bytes;
    uint32_t begin, end, depth;
} moe_group;

typedef uint32_t (*moe_group_fn)(const moe_group *g, const float *const *inputs,
                                 float *const *outputs, uint32_t count);

// A half, of any alignment and in little-endian order. Its exponent is moved by a product, which is
// exact for subnormal ones, too.
static float half_at(const unsigned char *at) {
    const uint32_t half = (uint32_t)at[0] | (uint32_t)at[1] << 8;
    const bool is_special = (half & 0x7c00) == 0x7c00;  // infinite, or NaN
    uint32_t bits = (half & 0x7fff) << 13 | (is_special ? 0x7f800000u : 0);
    float value;
    memcpy(&value, &bits, sizeof value);
    value = is_special ? value : value * 5.192296858534828e33f;  // 2^112
    return half & 0x8000 ? -value : value;
}

// -- instruction sets -----------------------------------------------------------------------------

#define MOE_NAME(x) portable_##x
#define MOE_TARGET
#define MOE_LANES           1
#define MOE_COLUMNS(tokens) 2
#define moe_v               float
#define MOE_ZERO            0.0f
#define MOE_LOAD(at)        (*(at))
#define MOE_FMA(a, b, c)    ((a) * (b) + (c))
#define MOE_MUL(a, b)       ((a) * (b))
#define MOE_SCALE(at)       half_at(at)
#define MOE_HALVES(at)      half_at(at)
#define MOE_I8(at)          ((float)(signed char)*(at))
#define MOE_SUM(v)          (v)
#include "moe_kernel_body.h"

#if MOE_HAS_X86

static short short_at(const unsigned char *at) {
    short bits;
    memcpy(&bits, at, sizeof bits);
    return bits;
}

static __attribute__((target("avx2,fma,f16c"))) float avx2_sum(__m256 v) {
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps(x, x, 1)));
}

#define MOE_NAME(x)         avx2_##x
#define MOE_TARGET          __attribute__((target("avx2,fma,f16c")))
#define MOE_LANES           8
#define MOE_COLUMNS(tokens) ((tokens) > 2 ? 2 : MOE_TILE_COLUMNS)
#define moe_v               __m256
#define MOE_ZERO            _mm256_setzero_ps()
#define MOE_LOAD(at)        _mm256_loadu_ps(at)
#define MOE_FMA(a, b, c)    _mm256_fmadd_ps(a, b, c)
#define MOE_MUL(a, b)       _mm256_mul_ps(a, b)
#define MOE_SCALE(at)       _mm256_cvtph_ps(_mm_set1_epi16(short_at(at)))
#define MOE_HALVES(at)      _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(at)))
#define MOE_I8(at)                                                                                 \
    _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(at))))
#define MOE_SUM(v) avx2_sum(v)
#include "moe_kernel_body.h"

#define MOE_NAME(x)         avx512_##x
#define MOE_TARGET          __attribute__((target("avx512f")))
#define MOE_LANES           16
#define MOE_COLUMNS(tokens) MOE_TILE_COLUMNS
#define moe_v               __m512
#define MOE_ZERO            _mm512_setzero_ps()
#define MOE_LOAD(at)        _mm512_loadu_ps(at)
#define MOE_FMA(a, b, c)    _mm512_fmadd_ps(a, b, c)
#define MOE_MUL(a, b)       _mm512_mul_ps(a, b)
#define MOE_SCALE(at)       _mm512_cvtph_ps(_mm256_set1_epi16(short_at(at)))
#define MOE_HALVES(at)      _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(at)))
#define MOE_I8(at)                                                                                 \
    _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)(at))))
#define MOE_SUM(v) _mm512_reduce_add_ps(v)
#include "moe_kernel_body.h"

#endif

static moe_group_fn variant(const char **out_name) {
#if MOE_HAS_X86
    if (__builtin_cpu_supports("avx512f")) {
        *out_name = "avx512";
        return avx512_group;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        *out_name = "avx2";  // and has F16C, as all that have both
        return avx2_group;
    }
#endif
    *out_name = "portable";
    return portable_group;
}

const char *moe_variant(void) {
    const char *name;
    (void)variant(&name);
    return name;
}

// -- products -------------------------------------------------------------------------------------

size_t moe_row_bytes(moe_type type, uint32_t depth) {
    return type == MOE_F16 ? (size_t)depth * 2 : (size_t)(depth / 32) * 34;
}

const char *moe_product_check(const moe_product *p) {
    return !p                                         ? "the product is NULL"
           : (uint32_t)p->type >= MOE_TYPE_COUNT      ? "the type of the weights is unknown"
           : p->depth == 0 || p->depth % 32 != 0      ? "depth is not a multiple of 32"
           : p->expert_count == 0 || !p->column_count ? "there are no experts or no columns"
           : !p->weights || !p->inputs || !p->outputs ? "weights, inputs or outputs are NULL"
           : p->pairs && p->top_k == 0                ? "top_k is 0, and there are pairs"
           : p->column_parts == 0                     ? "column_parts is 0"
                                                      : NULL;
}

static bool is_of(const moe_product *p, const ptowsp_work *unit) {
    return unit && ptowsp_work_is_valid(unit) && ptowsp_work_expert(unit) < p->expert_count &&
           ptowsp_work_column_part(unit) < p->column_parts &&
           ptowsp_work_token_start(unit) <= p->row_count &&
           ptowsp_work_token_count(unit) <= p->row_count - ptowsp_work_token_start(unit);
}

// The columns of a group for all rows of a unit.
static void compute_columns(const moe_product *p, const ptowsp_work *unit, const moe_group *g) {
    const char *name;
    const moe_group_fn group = variant(&name);
    const uint32_t end = ptowsp_work_token_end(unit);
    const float *inputs[MOE_TILE_TOKENS];
    float *outputs[MOE_TILE_TOKENS];
    uint32_t count = 0;
    for (uint32_t row = ptowsp_work_token_start(unit); row < end || count > 0;) {
        for (; row < end && count < MOE_TILE_TOKENS; row++) {
            if (!p->pairs || p->pairs[row] != PTOWSP_MOE_NO_ROW) {
                const uint32_t token = p->pairs ? p->pairs[row] / p->top_k : row;
                inputs[count] = p->inputs + (size_t)token * p->depth;
                outputs[count++] = p->outputs + (size_t)row * p->column_count;
            }
        }
        if (count > 0) {
            const uint32_t taken = group(g, inputs, outputs, count);
            count -= taken;
            memmove(inputs, inputs + taken, count * sizeof *inputs);
            memmove(outputs, outputs + taken, count * sizeof *outputs);
        }
    }
}

bool moe_compute(const moe_product *p, const ptowsp_work *unit) {
    if (moe_product_check(p) || !is_of(p, unit)) {
        return false;
    }
    const uint32_t part = ptowsp_work_column_part(unit);
    const size_t row_bytes = moe_row_bytes(p->type, p->depth);
    const uint32_t end = ptowsp_moe_column_end(part, p->column_parts, p->column_count, 2);
    moe_group g = {p->type,
                   (const unsigned char *)p->weights +
                       ptowsp_work_expert(unit) * (p->column_count * row_bytes),
                   row_bytes,
                   ptowsp_moe_column_begin(part, p->column_parts, p->column_count, 2),
                   0,
                   p->depth};
    const uint32_t block =
        ptowsp_work_token_count(unit) > MOE_TILE_TOKENS ? MOE_BLOCK_COLUMNS : end;
    for (; g.begin < end; g.begin = g.end) {
        g.end = end - g.begin < block ? end : g.begin + block;
        compute_columns(p, unit, &g);
    }
    return true;
}
