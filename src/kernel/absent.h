// In place of the floors isa and kernel under PTOWSP_NO_TILES: what workloads and runs call of them,
// where no kernel has tile code. All of compiled.h and body.h that is called from above is here; so
// the seam needs no conditions there.

#ifndef PWSP_ABSENT_H
#define PWSP_ABSENT_H

#include "../data/cost_model.h"
#include "../data/demand.h"

// These types are absent: pointers to them are NULL.
typedef struct pwsp_tile_code {
    uint32_t insn_count, scalar_count, loop_count;
    bool is_mixed;
    ptowsp_machine machine;
} pwsp_tile_code;

struct ptowsp_body {
    ptowsp_body *next;
    bool is_open;
    char name[1];
};

typedef struct pwsp_tile_core {
    pwsp_memory memory;
    const ptowsp_cost *cost;
    char text[1];
} pwsp_tile_core;

PWSP_INLINE const pwsp_tile_code *pwsp_tile_code_retain(const pwsp_tile_code *code) {
    PTOWSP_ASSERT(!code);
    return code;
}

PWSP_INLINE void pwsp_tile_code_release(const pwsp_tile_code *code) {
    PTOWSP_ASSERT(!code);
    (void)code;
}

PWSP_INLINE size_t pwsp_tile_code_size(const pwsp_tile_code *code) {
    PTOWSP_ASSERT(!code);
    (void)code;
    return 0;
}

PWSP_INLINE uint64_t pwsp_tile_code_hash(const pwsp_tile_code *code) {
    PTOWSP_ASSERT(!code);
    (void)code;
    return 0;
}

PWSP_INLINE bool pwsp_tile_code_read(const pwsp_tile_code *code, pwsp_arena *arena,
                                     ptowsp_kernel_info *info) {
    (void)arena;
    (void)info;
    return !code;
}

PWSP_INLINE void pwsp_body_free(ptowsp_body *body) {
    PTOWSP_ASSERT(!body);
    (void)body;
}

PWSP_INLINE bool pwsp_tile_core_reserve(pwsp_tile_core *core, const pwsp_tile_code *code) {
    (void)core;
    return !code;
}

PWSP_INLINE bool pwsp_tile_core_check(pwsp_tile_core *core, const pwsp_tile_code *code,
                                      const ptowsp_task *task) {
    (void)core;
    (void)task;
    return !code;
}

PWSP_INLINE bool pwsp_tile_core_demand(pwsp_tile_core *core, const pwsp_tile_code *code,
                                       const ptowsp_task *task, pwsp_demand *out_demand) {
    PTOWSP_ASSERT(!code);
    (void)core;
    (void)task;
    out_demand->part_count = 0;
    return !code;
}

PWSP_INLINE bool pwsp_tile_core_run(pwsp_tile_core *core, const pwsp_tile_code *code,
                                    const ptowsp_task *task, bool is_dry,
                                    ptowsp_cycles *out_cycles) {
    (void)is_dry;
    *out_cycles = 0;
    return pwsp_tile_core_check(core, code, task);
}

// Bodies in texts of modules (kernel/body_text.h) are passed over.
#define PWSP_BODY_IS_READ 0

struct pwsp_parser;

PWSP_INLINE bool pwsp_parse_body_begin(struct pwsp_parser *p, const ptowsp_kernel_desc *desc) {
    PTOWSP_ASSERT(!p);
    (void)desc;
    return false;
}

PWSP_INLINE bool pwsp_parse_body_line(struct pwsp_parser *p) {
    PTOWSP_ASSERT(!p);
    return false;
}

PWSP_INLINE bool pwsp_parse_body_end(struct pwsp_parser *p) {
    (void)p;
    return true;
}

PWSP_INLINE void pwsp_body_write(const ptowsp_body *body, ptowsp_output text) {
    PTOWSP_ASSERT(!body);
    (void)text;
}

// For choices (workload/module.h): no kernel has cycles or memory of its own.
PWSP_INLINE ptowsp_cycles pwsp_kernel_tile_cycles(const ptowsp_module *module, ptowsp_kernel kernel,
                                                  const ptowsp_cost *cost) {
    (void)module;
    (void)kernel;
    (void)cost;
    return 0;
}

PWSP_INLINE void pwsp_kernel_print_memory(const ptowsp_module *module, ptowsp_kernel kernel,
                                          ptowsp_output text) {
    (void)module;
    (void)kernel;
    (void)text;
}

#endif
