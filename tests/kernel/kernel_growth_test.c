// Where a kernel's tables grow: operations, tiles and instructions double at 16, 32, .. An allocation
// that fails meets a step of lowering, cutting, planning or proving only if just that one makes a table
// grow, so each kernel of kernels.txt is preceded by 0 to 63 operations, and every allocation is refused.

#include "kernel_named.h"

enum { PAD_MAX = 64 };

// A kernel by itself; the context's status. Its memory is free afterwards.
static ptowsp_status attempt(test_memory *memory, const char *text) {
    const ptowsp_context_desc desc = {test_resize, memory, PTOWSP_THREADS_SERIAL, 1, NULL, NULL};
    ptowsp_context *context;
    ptowsp_module *module = NULL;
    ptowsp_status status = ptowsp_context_create(&desc, &context);
    if (status != PTOWSP_OK) {
        return status;
    }
    status = ptowsp_module_parse(context, text, strlen(text), NULL, &module, NULL);
    const char *said = ptowsp_context_error(context).text;
    if (status != PTOWSP_OK && (memory->refuse_at == 0 || !strstr(said, "out of memory"))) {
        fail_msg("%s", said);
    }
    ptowsp_module_destroy(module);
    ptowsp_context_destroy(context);
    return status;
}

// A kernel of kernels.txt with so many operations before it.
static const char *kernel_of(const char *name, bool is_fused, bool is_a5, uint32_t pads) {
    char lines[PAD_MAX * 32] = "", last[8];
    size_t length = 0;
    for (uint32_t i = 0; i < pads; i++) {
        length += (size_t)snprintf(lines + length, sizeof lines - length,
                                   "  %%%u = add %%%u, %%6\n", i + 7, i + 6);
    }
    snprintf(last, sizeof last, "%%%u", pads + 6);
    const kernel_word words[] = {{"pads", lines},
                                 {"x", last},
                                 {"machine", is_a5 ? "950PR" : "910B"},
                                 {"fused", is_fused ? ", fused" : ""},
                                 {NULL, NULL}};
    return kernel_named(name, words);
}

TEST(growth__may_fail_at_every_step_of_a_kernel) {
    static const char *const names[] = {"mixed", "shared stores", "shared loads",
                                        "loop",  "forms",         "longer"};
    TEST_GRID(uint32_t, i, COUNT_OF(names), which, 4) {
        // All steps on one machine; on the others, a few.
        for (uint32_t pads = 0; pads < (test_is_tight() ? 1 : PAD_MAX);
             pads += which == 1 ? 1 : 7) {
            const char *text = kernel_of(names[i], which & 1, which & 2, pads);
            test_memory memory = {0};
            assert_ok(attempt(&memory, text));
            assert_int_equal(memory.live_blocks, 0);
            const size_t count = memory.allocations;
            for (size_t n = 1; n <= count; n++) {
                memset(&memory, 0, sizeof memory);
                memory.refuse_at = n;
                assert_int_equal(attempt(&memory, text), PTOWSP_OUT_OF_MEMORY);
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
