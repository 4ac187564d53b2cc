// Where a kernel's tables grow: operations, tiles and instructions double at 16, 32, .. An allocation
// that fails meets a step of lowering, cutting, planning or proving only if just that one makes a table
// grow, so each kernel is preceded by 0 to 63 operations, and every allocation is refused.

#include "test.h"

enum { PAD_MAX = 64 };

typedef struct kernel_in {
    ptowsp_body *k;
    ptowsp_value a, b, y, n, r;  // f16 in, f16 in, f32, f16 and f32 in and out; 32 x 32
    ptowsp_value x;              // f32, made of y by the operations before
} kernel_in;

// Products that both cores of a 910B use: what the cube core stores the vector core has loaded.
static void build_mixed(kernel_in *in) {
    ptowsp_value x = ptowsp_tile_add(in->x, ptowsp_tile_matmul(in->a, in->b));
    x = ptowsp_tile_add(x, ptowsp_tile_exp(in->r));
    x = ptowsp_tile_add(x, ptowsp_tile_cvt(in->n, PTOWSP_F32, PTOWSP_ROUND_NEAREST));
    ptowsp_value half = ptowsp_tile_cvt(x, PTOWSP_F16, PTOWSP_ROUND_NEAREST);
    ptowsp_value squared = ptowsp_tile_matmul(half, in->n);
    ptowsp_value positive = ptowsp_tile_relu(ptowsp_tile_matmul(in->n, in->b));
    ptowsp_value narrow = ptowsp_tile_matmul(in->a, in->a);
    ptowsp_tile_store(in->y, squared);
    ptowsp_tile_store(in->r, positive);
    ptowsp_tile_store(in->n, ptowsp_tile_cvt(narrow, PTOWSP_F16, PTOWSP_ROUND_NEAREST));
}

// What both cores use with nothing that orders them: the vector core stores the cube core's products.
static void build_shared_stores(kernel_in *in) {
    ptowsp_value x = ptowsp_tile_add(in->x, ptowsp_tile_exp(in->r));
    x = ptowsp_tile_add(x, ptowsp_tile_cvt(in->n, PTOWSP_F32, PTOWSP_ROUND_NEAREST));
    ptowsp_value positive = ptowsp_tile_relu(ptowsp_tile_matmul(in->a, in->b));
    ptowsp_value narrow = ptowsp_tile_matmul(in->a, in->a);
    ptowsp_tile_store(in->y, x);
    ptowsp_tile_store(in->r, positive);
    ptowsp_tile_store(in->n, ptowsp_tile_cvt(narrow, PTOWSP_F16, PTOWSP_ROUND_NEAREST));
}

// And loads them for it.
static void build_shared_loads(kernel_in *in) {
    ptowsp_value product = ptowsp_tile_matmul(in->n, in->b);
    ptowsp_tile_store(in->n, ptowsp_tile_abs(in->n));
    ptowsp_tile_store(in->r, product);
    ptowsp_tile_store(in->y, in->x);
}

// Products of loops, with sums that are carried.
static void build_loop(kernel_in *in) {
    ptowsp_value zero = ptowsp_tile_const(in->k, 0), four = ptowsp_tile_const(in->k, 4);
    ptowsp_value sum = ptowsp_tile_full(in->k, PTOWSP_F32, 32, 32, 0);
    ptowsp_tile_loop_begin(in->k, zero, four, 1);
    ptowsp_value s = ptowsp_tile_carry(sum), x = ptowsp_tile_carry(in->x);
    ptowsp_tile_next(s, ptowsp_tile_matmul_acc(s, in->a, in->b));
    ptowsp_tile_next(x, ptowsp_tile_mul(x, x));
    ptowsp_tile_loop_end(in->k);
    ptowsp_tile_store(in->y, s);
    ptowsp_tile_store(in->r, x);
    ptowsp_tile_store(in->n, ptowsp_tile_abs(in->n));
}

// What the tables of legal forms change: masks, sorts, columns of other sizes.
static void build_forms(kernel_in *in) {
    ptowsp_value mask = ptowsp_tile_compare(in->x, PTOWSP_GT, in->r);
    ptowsp_value x = ptowsp_tile_select(mask, in->x, in->r);
    ptowsp_value pairs = ptowsp_tile_sort32(
        ptowsp_tile_slice(x, 0, 0, 32, 20),
        ptowsp_tile_slice(ptowsp_tile_iota(in->k, PTOWSP_U32, 32, 0), 0, 0, 1, 20));
    ptowsp_value top = ptowsp_tile_topk_values(pairs, 8);
    x = ptowsp_tile_add(x, ptowsp_tile_rowsum(top));
    x = ptowsp_tile_add(x, ptowsp_tile_transpose(ptowsp_tile_div(x, ptowsp_tile_rowmax(x))));
    ptowsp_value part = ptowsp_tile_deinterleave(ptowsp_tile_slice(x, 0, 0, 32, 20), 0);
    ptowsp_tile_store(in->y, ptowsp_tile_add(ptowsp_tile_gelu(x), ptowsp_tile_rowmin(part)));
    ptowsp_tile_store_add(in->r, ptowsp_tile_row_broadcast(x, ptowsp_tile_colsum(x)));
    ptowsp_tile_store(in->n, ptowsp_tile_abs(in->n));
}

typedef void (*build_fn)(kernel_in *in);

static void build(ptowsp_module *m, build_fn body, bool is_fused, bool is_a5, uint32_t pads) {
    ptowsp_machine machine = ptowsp_machine_950pr();
    ptowsp_body_desc desc = {.name = "k", .is_fused = is_fused, .machine = is_a5 ? &machine : NULL};
    kernel_in in;
    in.k = ptowsp_kernel_begin(m, &desc);
    in.a = ptowsp_tile_in(in.k, "a", PTOWSP_F16, 32, 32);
    in.b = ptowsp_tile_in(in.k, "b", PTOWSP_F16, 32, 32);
    in.y = ptowsp_tile_inout(in.k, "y", PTOWSP_F32, 32, 32);
    in.n = ptowsp_tile_inout(in.k, "n", PTOWSP_F16, 32, 32);
    in.r = ptowsp_tile_inout(in.k, "r", PTOWSP_F32, 32, 32);
    in.x = ptowsp_tile_load(in.y);
    for (uint32_t i = 0; i < pads; i++) {
        in.x = ptowsp_tile_add(in.x, in.y);
    }
    body(&in);
    ptowsp_kernel_end(in.k);
}

// A kernel by itself; the module's status. Its memory is free afterwards.
static ptowsp_status attempt(test_memory *memory, build_fn body, uint32_t which, uint32_t pads) {
    const ptowsp_context_desc desc = {test_resize, memory, PTOWSP_THREADS_SERIAL, 1, NULL, NULL};
    ptowsp_context *context;
    ptowsp_module *module;
    ptowsp_status status = ptowsp_context_create(&desc, &context);
    if (status != PTOWSP_OK) {
        return status;
    }
    status = ptowsp_module_create(context, NULL, &module);
    if (status == PTOWSP_OK) {
        build(module, body, which & 1, which & 2, pads);
        ptowsp_error error = ptowsp_module_error(module);
        status = error.status;
        if (status != PTOWSP_OK && memory->refuse_at == 0) {
            fail_msg("%s", error.text);
        }
        assert_true(status == PTOWSP_OK || strstr(error.text, "out of memory"));
        ptowsp_module_destroy(module);
    }
    ptowsp_context_destroy(context);
    return status;
}

TEST(growth__may_fail_at_every_step_of_a_kernel) {
    static const build_fn bodies[] = {build_mixed, build_shared_stores, build_shared_loads,
                                      build_loop, build_forms};
    TEST_GRID(uint32_t, i, sizeof bodies / sizeof bodies[0], which, 4) {
        // All steps on one machine; on the others, a few.
        for (uint32_t pads = 0; pads < (test_is_tight() ? 1 : PAD_MAX);
             pads += which == 1 ? 1 : 7) {
            test_memory memory = {0};
            assert_ok(attempt(&memory, bodies[i], which, pads));
            assert_int_equal(memory.live_blocks, 0);
            const size_t count = memory.allocations;
            for (size_t n = 1; n <= count; n++) {
                memset(&memory, 0, sizeof memory);
                memory.refuse_at = n;
                assert_int_equal(attempt(&memory, bodies[i], which, pads), PTOWSP_OUT_OF_MEMORY);
                assert_int_equal(memory.live_bytes, 0);
                assert_int_equal(memory.live_blocks, 0);
            }
        }
    }
}

// -- how much -------------------------------------------------------------------------------------

typedef struct peak_memory {
    test_memory memory;
    size_t most;
} peak_memory;

static void *peak_resize(void *user, void *ptr, size_t old_size, size_t new_size) {
    peak_memory *peak = (peak_memory *)user;
    void *moved = test_resize(&peak->memory, ptr, old_size, new_size);
    peak->most = peak->memory.live_bytes > peak->most ? peak->memory.live_bytes : peak->most;
    return moved;
}

// While a kernel is made, room for its passes is at most some times what stays of it.
TEST(growth__making_takes_some_times_what_is_made) {
    if (test_is_tight()) {
        skip();
    }
    for (uint32_t length = 500; length <= 4000; length *= 2) {
        for (uint32_t kind = 0; kind < 3; kind++) {
            peak_memory peak = {{0, 0, 0, 0}, 0};
            const ptowsp_context_desc desc = {peak_resize, &peak, PTOWSP_THREADS_SERIAL,
                                              1,           NULL,  NULL};
            ptowsp_body_desc k_desc = {.name = "k"};
            ptowsp_context *context = test_context(&desc);
            ptowsp_module *module = test_module(context, NULL);
            const size_t before = peak.memory.live_bytes;
            ptowsp_body *k = ptowsp_kernel_begin(module, &k_desc);
            ptowsp_value y = ptowsp_tile_inout(k, "y", PTOWSP_F32, 32, 32);
            ptowsp_value x = ptowsp_tile_load(y), sum = x;
            if (kind == 2) {
                ptowsp_tile_loop_begin(k, ptowsp_tile_const(k, 0), ptowsp_tile_const(k, 4), 1);
                x = sum = ptowsp_tile_carry(x);
            }
            for (uint32_t i = 0; i < length; i++) {
                x = kind == 1 && i % 2 ? ptowsp_tile_exp(x) : ptowsp_tile_add(x, y);
            }
            if (kind == 2) {
                ptowsp_tile_next(sum, x);
                ptowsp_tile_loop_end(k);
            }
            ptowsp_tile_store(y, kind == 2 ? sum : x);
            ptowsp_kernel_end(k);
            assert_ok(ptowsp_module_error(module).status);
            const size_t made = peak.memory.live_bytes - before, most = peak.most - before;
            print_message("%u operations, kind %u: %zu KB at most, of which %zu KB stay\n", length,
                          kind, most >> 10, made >> 10);
            assert_true(most < made * (kind == 2 ? 15 : 6));
            ptowsp_module_destroy(module);
            ptowsp_context_destroy(context);
            assert_int_equal(peak.memory.live_bytes, 0);
        }
    }
}
