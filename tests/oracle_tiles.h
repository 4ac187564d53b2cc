// Makes tile kernels of the tables included before, and checks what they became: v9's list of
// instructions, in order and each with its cycles, but for those that cost nothing there; waits,
// barriers, and what moves numbers about for free are ptowsp's own affair.

#ifndef ORACLE_TILES_H
#define ORACLE_TILES_H

#include "oracle_build.h"

enum { OP_MAX_COUNT = 16 };

// Values by name: parameters, then what operations gave.
typedef struct oracle_body {
    oracle *o;
    ptowsp_body *body;
    uint32_t count;
    const char *names[TILE_MAX + SCALAR_MAX + OP_MAX_COUNT];
    ptowsp_value values[TILE_MAX + SCALAR_MAX + OP_MAX_COUNT];
} oracle_body;

static void put_value(oracle_body *b, const char *name, ptowsp_value value) {
    assert_in_range(b->count, 0, TILE_MAX + SCALAR_MAX + OP_MAX_COUNT - 1);
    b->names[b->count] = name;
    b->values[b->count++] = value;
}

static ptowsp_value value_named(const oracle_body *b, const char *name) {
    for (uint32_t i = 0; name && i < b->count; i++) {
        if (!strcmp(b->names[i], name)) {
            return b->values[i];
        }
    }
    if (name) {
        FAIL(b->o, "no value %s", name);
    }
    ptowsp_value none = {NULL, 0};
    return none;
}

static void build_params(oracle_body *b, const oracle_kernel *kernel) {
    for (uint32_t i = 0; i < tile_count_of(kernel); i++) {
        const ptowsp_tile_param *p = &kernel->tiles[i];
        ptowsp_value value = p->direction == PTOWSP_IN
                                 ? ptowsp_tile_in(b->body, p->name, p->dtype, p->rows, p->cols)
                             : p->direction == PTOWSP_OUT
                                 ? ptowsp_tile_out(b->body, p->name, p->dtype, p->rows, p->cols)
                                 : ptowsp_tile_inout(b->body, p->name, p->dtype, p->rows, p->cols);
        put_value(b, p->name, value);
    }
    for (uint32_t i = 0; i < scalar_count_of(kernel); i++) {
        const char *name = kernel->scalars[i].name;
        put_value(b, name, ptowsp_tile_scalar(b->body, name, PTOWSP_I64));
    }
}

static void build_op(oracle_body *b, const oracle_op *op) {
    ptowsp_value x = value_named(b, op->src[0]), y = value_named(b, op->src[1]), z = {NULL, 0};
    switch (op->kind) {
    case OP_STORE: ptowsp_tile_store(value_named(b, op->dst), x); return;
    case OP_LOAD: z = ptowsp_tile_load(x); break;
    case OP_CONST: z = ptowsp_tile_const(b->body, op->number); break;
    case OP_MATMUL: z = ptowsp_tile_matmul(x, y); break;
    case OP_ADD: z = ptowsp_tile_add(x, y); break;
    case OP_SUB: z = ptowsp_tile_sub(x, y); break;
    case OP_MUL: z = ptowsp_tile_mul(x, y); break;
    case OP_DIV: z = ptowsp_tile_div(x, y); break;
    case OP_MAX: z = ptowsp_tile_max(x, y); break;
    case OP_EXP: z = ptowsp_tile_exp(x); break;
    case OP_RSQRT: z = ptowsp_tile_rsqrt(x); break;
    case OP_ROWMAX: z = ptowsp_tile_rowmax(x); break;
    case OP_ROWSUM: z = ptowsp_tile_rowsum(x); break;
    case OP_ROWMEAN: z = ptowsp_tile_rowmean(x); break;
    case OP_IOTA_U32: z = ptowsp_tile_iota(b->body, PTOWSP_U32, (int64_t)op->number, 0); break;
    case OP_TSORT32: z = ptowsp_tile_sort32(x, y); break;
    case OP_TOPK_IDX: z = ptowsp_tile_topk_indices(x, (int64_t)op->number); break;
    default: FAIL(b->o, "no operation %d", (int)op->kind);
    }
    put_value(b, op->dst, z);
}

// The module keeps the first error, with the operation's name.
static void check_module(const oracle *o, const oracle_kernel *kernel) {
    ptowsp_error error = ptowsp_module_error(o->module);
    if (error.status != PTOWSP_OK) {
        FAIL(o, "%s: %s: %s", kernel->name, ptowsp_status_name(error.status), error.text);
    }
}

static void write_text(void *user, const char *text, size_t length) {
    (void)user;
    print_error("%.*s", (int)length, text);
}

// The instructions that cost something, those of v9, in its order.
static void check_insns(const oracle *o, const oracle_kernel *kernel, ptowsp_kernel made) {
    uint32_t count = ptowsp_kernel_insn_count(o->module, made), found = 0;
    bool good = true;
    for (uint32_t i = 0; i < count; i++) {
        ptowsp_cycles cycles = 0;
        ptowsp_insn insn = ptowsp_kernel_insn_at(o->module, made, i, &cycles);
        if (cycles) {
            const oracle_insn *expected = &kernel->insns[found];
            // Between the cores it counts one move, and on 910B that is a push and a pop.
            const char *name = strcmp(insn.name, "TPUSH") == 0 ? "TMOV" : insn.name;
            good = good && found < kernel->insn_count && !strcmp(name, expected->name) &&
                   cycles == expected->cycles;
            found++;
        }
    }
    if (!good || found != kernel->insn_count) {
        ptowsp_text text = {write_text, NULL};
        ptowsp_kernel_print(o->module, made, text);
        for (uint32_t i = 0; i < kernel->insn_count; i++) {
            print_error("%s %llu%s", kernel->insns[i].name,
                        (unsigned long long)kernel->insns[i].cycles,
                        i + 1 < kernel->insn_count ? ", " : "\n");
        }
        FAIL(o, "%s has %u instructions that cost something, not the above %u", kernel->name,
             (unsigned)found, (unsigned)kernel->insn_count);
    }
}

static ptowsp_kernel make_tile_kernel(oracle *o, const oracle_kernel *kernel) {
    oracle_body b = {0};
    ptowsp_body_desc desc = {0};
    desc.name = kernel->name;
    desc.axis_count = o->c->workload->axis_arg_count;
    b.o = o;
    b.body = ptowsp_kernel_begin(o->module, &desc);
    check_module(o, kernel);
    assert_non_null(b.body);
    build_params(&b, kernel);
    for (uint32_t i = 0; i < kernel->op_count; i++) {
        build_op(&b, &kernel->ops[i]);
    }
    ptowsp_kernel made = ptowsp_kernel_end(b.body);
    check_module(o, kernel);
    check_insns(o, kernel, made);
    ptowsp_kernel_stats stats;
    check_ok(o, "measure", ptowsp_kernel_measure(o->module, made, NULL, &stats));
    check(o, "cycles of the kernel", 0, stats.cycles, kernel->cycles);
    return made;
}

#endif
