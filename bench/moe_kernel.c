// The products of experts of examples/common, on one thread, beside reading the weights once: 8 experts
// of 2,048 x 2,048, with 1, 4 or 16 tokens each. The limit is reading, or where they take longer, the
// multiply-adds in registers.

#include "bench.h"

#include "limit.h"

#include "common/moe_kernel.h"

#include <stdlib.h>
#include <string.h>

enum { KERNEL_EXPERTS = 8, KERNEL_SIDE = 2048, KERNEL_TOKENS = 16 };

typedef struct kernel_bench {
    moe_product product;
    ptowsp_work units[KERNEL_EXPERTS];
    const unsigned char *weights;
    size_t bytes;
    uint32_t tokens;
} kernel_bench;

static void run_product(void *user) {
    kernel_bench *b = (kernel_bench *)user;
    for (uint32_t i = 0; i < KERNEL_EXPERTS; i++) {
        require(moe_compute(&b->product, &b->units[i]), "MoE kernel");
    }
    bench_keep(b->product.outputs);
}

#if defined(__GNUC__)
typedef uint64_t read_vector __attribute__((vector_size(64)));
#else
typedef uint64_t read_vector;
#endif

#if defined(__GNUC__) && defined(__x86_64__) && defined(__GLIBC__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
static void
read_weights(void *user) {
    kernel_bench *b = (kernel_bench *)user;
    const read_vector *at = (const read_vector *)(const void *)b->weights;
    const read_vector *stop = (const read_vector *)(const void *)(b->weights + b->bytes);
    read_vector sums[4];
    memset(sums, 0, sizeof sums);
    for (; at < stop; at += 4) {
        sums[0] += at[0];
        sums[1] += at[1];
        sums[2] += at[2];
        sums[3] += at[3];
    }
    sums[0] += sums[1] + sums[2] + sums[3];
    bench_keep(sums);
}

// As many multiply-adds as the products have. A loop has 128^3.
static void multiply_add(void *user) {
    const kernel_bench *b = (const kernel_bench *)user;
    const bench_fn loop = limit_of(LIMIT_PRODUCTS_F32);
    const uint32_t each = KERNEL_SIDE / 128 * (KERNEL_SIDE / 128) / 128 * KERNEL_EXPERTS;
    for (uint32_t i = 0; i < each * b->tokens; i++) {
        loop(NULL);
    }
}

void bench_moe_kernel(void) {
    static const struct {
        const char *name;
        moe_type type;
        uint32_t tokens;
        bool is_read;  // its limit is reading
    } cases[] = {
        {"MoE kernel, f16, 8 experts of 1 token, one thread", MOE_F16, 1, true},
        {"MoE kernel, f16, 8 experts of 4 tokens, one thread", MOE_F16, 4, true},
        {"MoE kernel, f16, 8 experts of 16 tokens, one thread", MOE_F16, 16, false},
        {"MoE kernel, q8_0, 8 experts of 1 token, one thread", MOE_Q8_0, 1, true},
        {"MoE kernel, q8_0, 8 experts of 4 tokens, one thread", MOE_Q8_0, 4, false},
        {"MoE kernel, q8_0, 8 experts of 16 tokens, one thread", MOE_Q8_0, 16, false},
    };
    const size_t rows = KERNEL_EXPERTS * KERNEL_TOKENS, all = rows * KERNEL_SIDE;
    kernel_bench b;
    memset(&b, 0, sizeof b);
    const size_t most = moe_row_bytes(MOE_F16, KERNEL_SIDE) * KERNEL_SIDE * KERNEL_EXPERTS;
    unsigned char *weights = (unsigned char *)bench_allocate(most);
    float *inputs = (float *)bench_allocate(all * sizeof(float));
    float *outputs = (float *)bench_allocate(all * sizeof(float));
    memset(weights, 0x21, most);  // halves, scales and bytes that are ordinary numbers
    for (size_t i = 0; i < all; i++) {
        inputs[i] = (float)(i % 17) / 8;
    }
    b.weights = weights;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const moe_product product = {
            cases[i].type, KERNEL_EXPERTS, KERNEL_SIDE, KERNEL_SIDE, weights, inputs,
            NULL,          (uint32_t)rows, 1,           1,           outputs};
        b.product = product;
        b.tokens = cases[i].tokens;
        const bool is_read = cases[i].is_read || !limit_of(LIMIT_PRODUCTS_F32);
        b.bytes = moe_row_bytes(product.type, KERNEL_SIDE) * KERNEL_SIDE * KERNEL_EXPERTS;
        for (uint32_t e = 0; e < KERNEL_EXPERTS; e++) {
            b.units[e] = ptowsp_work_of(e, 0, 0, 0, e, e * cases[i].tokens, cases[i].tokens);
        }
        const bench_case row = {cases[i].name,
                                "GB/s",
                                (double)b.bytes,
                                1,
                                11,
                                run_product,
                                "reading the weights once",
                                read_weights,
                                is_read ? NULL : "multiply-adds alone",
                                is_read ? read_weights : multiply_add,
                                BUDGET_NONE,
                                0};
        bench_measure(&row, &b);
    }
    free(weights);
    free(inputs);
    free(outputs);
}
