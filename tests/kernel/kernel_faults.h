// What the tests of mistakes share: a kernel with some parameters, begun, and what must follow from
// a mistake. The body keeps its first error, hands it to the module when it ends, and everything
// after it does nothing.

#ifndef PTOWSP_KERNEL_FAULTS_H
#define PTOWSP_KERNEL_FAULTS_H

#include "test.h"

#include <math.h>

typedef struct fixture {
    test_memory memory;
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_body *k;
    ptowsp_value x, y, v, o, io, i,
        s;  // f32 8 x 16; the same; f32 1 x 16; out and inout; i32; scalar
} fixture;

static const ptowsp_value none = {NULL, 0};

static inline void begin_with(fixture *f, const ptowsp_machine *machine) {
    memset(f, 0, sizeof *f);
    ptowsp_context_desc desc = {.resize = test_resize, .resize_user = &f->memory};
    assert_int_equal(ptowsp_context_create(&desc, &f->context), PTOWSP_OK);
    assert_int_equal(ptowsp_module_create(f->context, NULL, &f->m), PTOWSP_OK);
    ptowsp_body_desc body = {.name = "k", .machine = machine};
    f->k = ptowsp_kernel_begin(f->m, &body);
    f->x = ptowsp_tile_in(f->k, "x", PTOWSP_F32, 8, 16);
    f->y = ptowsp_tile_in(f->k, "y", PTOWSP_F32, 8, 16);
    f->v = ptowsp_tile_in(f->k, "v", PTOWSP_F32, 1, 16);
    f->i = ptowsp_tile_in(f->k, "i", PTOWSP_I32, 8, 16);
    f->o = ptowsp_tile_out(f->k, "o", PTOWSP_F32, 8, 16);
    f->io = ptowsp_tile_inout(f->k, "io", PTOWSP_F32, 8, 16);
    f->s = ptowsp_tile_scalar(f->k, "s", PTOWSP_F32);
    assert_int_not_equal(f->s.id, 0);
}

static inline void begin(fixture *f) {
    begin_with(f, NULL);
}

static inline void finish(fixture *f) {
    ptowsp_module_destroy(f->m);
    ptowsp_context_destroy(f->context);
    assert_int_equal(f->memory.live_blocks, 0);
}

// The module has this error, and keeps it.
static inline void expect_module(fixture *f, ptowsp_status status, const char *text) {
    ptowsp_error error = ptowsp_module_error(f->m);
    assert_string_equal(error.text, text);
    assert_int_equal(error.status, status);
    ptowsp_body_desc desc = {.name = "other"};
    assert_null(ptowsp_kernel_begin(f->m, &desc));
    assert_string_equal(ptowsp_module_error(f->m).text, text);
    ptowsp_program *program = NULL;
    assert_int_equal(ptowsp_program_create(f->context, f->m, NULL, &program), status);
    assert_null(program);
    finish(f);
}

// The last call gave no value; the body's error is that. Everything else is quiet from now on.
static inline void expect(fixture *f, ptowsp_value value, ptowsp_status status, const char *text) {
    char all[320];
    snprintf(all, sizeof all, "module: kernel k: %s", text);
    assert_int_equal(value.id, 0);
    assert_null(value.body);
    assert_int_equal(ptowsp_tile_add(f->x, f->y).id, 0);
    assert_int_equal(ptowsp_tile_exp(value).id, 0);
    assert_int_equal(ptowsp_tile_const(f->k, 1).id, 0);
    assert_int_equal(ptowsp_tile_in(f->k, "z", PTOWSP_F32, 1, 1).id, 0);
    ptowsp_tile_store(f->o, f->x);
    ptowsp_instruction(f->k, NULL);
    assert_int_equal(ptowsp_module_error(f->m).status, PTOWSP_OK);  // not yet
    ptowsp_kernel kernel = ptowsp_kernel_end(f->k);
    assert_int_equal(kernel.id, 0);
    assert_int_equal(ptowsp_kernel_insn_count(f->m, kernel), 0);
    expect_module(f, status, all);
}

// A fault of operations: built in a fresh fixture, with this text.
#define FAULT(status, text, call)                                                                  \
    do {                                                                                           \
        fixture fault, *f = &fault;                                                                \
        begin(f);                                                                                  \
        ptowsp_value last = (call);                                                                \
        expect(f, last, PTOWSP_##status, text);                                                    \
    } while (0)

// Of ptowsp_tile_<call>, by status.
#define INVALID(text, call)     FAULT(INVALID_PARAMS, text, ptowsp_tile_##call)
#define UNSUPPORTED(text, call) FAULT(UNSUPPORTED, text, ptowsp_tile_##call)
#define TOO_MUCH(text, call)    FAULT(LIMIT_EXCEEDED, text, ptowsp_tile_##call)

#define VOID(call) ((call), none)

// Of a call that has no value, and of any other expression.
#define INVALID_STORE(text, call) FAULT(INVALID_PARAMS, text, VOID(ptowsp_tile_##call))
#define REFUSED(text, value)      FAULT(INVALID_PARAMS, text, value)

// Ends a kernel that stores x to both of the fixture's outputs.
static inline ptowsp_kernel good_end(fixture *f) {
    ptowsp_tile_store(f->o, f->x);
    ptowsp_tile_store(f->io, f->x);
    return ptowsp_kernel_end(f->k);
}

#define PARAM(name, dtype, rows, cols) ptowsp_tile_in(f->k, name, dtype, rows, cols)

#endif
