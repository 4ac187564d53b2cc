// Matrix instructions: TMATMUL, TMATMUL_ACC, TMATMUL_BIAS, and TGEMV for one row.
//
//      c = a * b (+ c_in, + bias)       a: m x k in L0A, b: k x n in L0B, c: m x n in L0C
//
// The loops, outermost first: rows of A as far as its panel goes (1,024, if it is used in place), 32
// columns of B, k, 16 rows. B's panel of 32 columns and up to 256 units of k is packed once and stays
// in the first-level cache while all rows go over it. Rows of f16 become f32 between the products of
// the rows before them, where that costs 3 cycles for 32 bytes of 4 rows instead of 13: all of 128 x
// 128 x 128 then takes 1.05 times as long as its multiply-adds, and not 1.07. Rows of bf16 are turned
// there as well: 1.10, and not 1.11.
//
// k beyond 256 units (512 or 1,024 elements of i8) goes through in parts: sums wait in a buffer
// between them and are carried on, not added, so the cut changes no bit. Buffers are on the stack,
// 112 KiB.
//
// C is written in place where it is Nz with boxes of 16 x 16, or row-major; in other layouts
// through a buffer.

#ifndef PTOISA_MATMUL_H
#define PTOISA_MATMUL_H

#include "core.h"
#include "matmul_block.h"
#include "matmul_neon.h"
#include "matmul_x86.h"

#define PTOISA_MM_SIZE_MAX 4095   // m, k and n
#define PTOISA_MM_UNITS    256    // of k, of one panel
#define PTOISA_MM_A_UNITS  16384  // of one panel of A
#define PTOISA_MM_A_ROWS   1024
#define PTOISA_MM_SUMS     (PTOISA_MM_A_UNITS / PTOISA_MM_UNITS * PTOISA_MM_COLS)

// Rows of 32 begin at cache lines: matrix products of f16 take 0.985 of the time.
typedef struct ptoisa_mm_buffers {
    __attribute__((aligned(64))) float a[PTOISA_MM_A_UNITS];
    float b[PTOISA_MM_UNITS * PTOISA_MM_COLS];
    float part[PTOISA_MM_SUMS];                  // sums between parts of k
    float out[PTOISA_MM_ROWS * PTOISA_MM_COLS];  // a block of C in a layout of its own
    float add[PTOISA_MM_ROWS * PTOISA_MM_COLS];
    uint32_t base[PTOISA_MM_A_ROWS];
    // Of DOTS, for each 16 rows: the span of their panel, and whether all parts of their sums so far were
    // normal.
    ptoisa_mm_span span[PTOISA_MM_A_ROWS / PTOISA_MM_ROWS];
    bool is_normal[PTOISA_MM_A_ROWS / PTOISA_MM_ROWS];
} ptoisa_mm_buffers;

// What one instruction is to do: c = a * b + add. add NULL: nothing; is_bias: one row for all; else
// of c's size, and c itself perhaps.
typedef struct ptoisa_mm_task {
    const ptoisa_tile *c, *add, *a, *b;
    bool is_bias;
} ptoisa_mm_task;

// The fastest code for this processor.
PTOISA_INLINE ptoisa_mm_code ptoisa_mm_best(void) {
#if PTOISA_X86
    if (ptoisa_has_avx512() && ptoisa_has_vnni()) {
        return ptoisa_has_bf16() ? ptoisa_mm_bf16() : ptoisa_mm_vnni();
    }
    if (ptoisa_has_avx512()) {
        return ptoisa_mm_avx512();
    }
    if (ptoisa_has_avx2()) {
        return ptoisa_mm_avx2();
    }
#endif
#if PTOISA_NEON
    return ptoisa_mm_neon();
#else
    return ptoisa_mm_portable();
#endif
}

// Can rows of 16 columns of a tile of C be used in place? Then says how far rows and groups of 16
// columns are apart.
PTOISA_INLINE bool ptoisa_mm_in_place(const ptoisa_tile *c, uint64_t *out_row, uint64_t *out_cols) {
    bool is_boxed = c->layout == PTOISA_NZ && ptoisa_box_cols(c) == 16;
    *out_row = is_boxed ? 16 : c->cols;
    *out_cols = is_boxed ? (uint64_t)c->rows * 16 : 16;
    return is_boxed || c->layout == PTOISA_ROW_MAJOR;
}

// Copies a block between a tile of 4-byte elements and rows of 32.
PTOISA_FN void ptoisa_mm_copy(const ptoisa_tile *tile, float *rows_of_32, const ptoisa_mm_block *t,
                              uint32_t row, uint32_t col, bool to_tile) {
    for (uint32_t r = 0; r < t->rows; r++) {
        for (uint32_t c = 0; c < t->cols; c++) {
            uint8_t *at = (uint8_t *)tile->data + 4 * ptoisa_offset(tile, row + r, col + c);
            float *unit = rows_of_32 + r * PTOISA_MM_COLS + c;
            memcpy(to_tile ? (void *)at : unit, to_tile ? (void *)unit : at, 4);
        }
    }
}

// Computes one block, with a, a_step, b, rows, cols, k and start set, and base if any. is_last: the
// last part of k. Otherwise sums go to part.
PTOISA_FN void ptoisa_mm_one(const ptoisa_mm_code *code, ptoisa_mm_buffers *buffers,
                             ptoisa_mm_block *t, const ptoisa_mm_task *task, ptoisa_mm_kind kind,
                             uint32_t row, uint32_t col, float *part, bool is_last) {
    const ptoisa_tile *c = task->c, *add = task->add;
    t->add = NULL;
    if (!is_last) {
        t->out = part;
        t->out_row = PTOISA_MM_COLS;
        t->out_cols = 16;
        code->block(t, kind);
        return;
    }
    if (add && task->is_bias) {
        t->add = (const float *)add->data + col;
        t->add_row = 0;
        t->add_cols = 16;
    } else if (add && ptoisa_mm_in_place(add, &t->add_row, &t->add_cols)) {
        t->add = (const float *)add->data + row * t->add_row + col / 16 * t->add_cols;
    } else if (add) {
        ptoisa_mm_copy(add, buffers->add, t, row, col, false);
        t->add = buffers->add;
        t->add_row = PTOISA_MM_COLS;
        t->add_cols = 16;
    }
    if (ptoisa_mm_in_place(c, &t->out_row, &t->out_cols)) {
        t->out = (float *)c->data + row * t->out_row + col / 16 * t->out_cols;
        code->block(t, kind);
        return;
    }
    t->out = buffers->out;
    t->out_row = PTOISA_MM_COLS;
    t->out_cols = 16;
    code->block(t, kind);
    ptoisa_mm_copy(c, buffers->out, t, row, col, true);
}

// The kind of a block from row r of a panel on: rows of DOTS keep to multiply-adds, once one of their
// sums may have become subnormal.
PTOISA_INLINE ptoisa_mm_kind ptoisa_mm_block_kind(ptoisa_mm_buffers *buffers, ptoisa_mm_kind kind,
                                                  uint32_t r, ptoisa_mm_span span_b,
                                                  bool is_first) {
    if (kind != PTOISA_MM_DOTS) {
        return kind;
    }
    bool *is_normal = &buffers->is_normal[r / PTOISA_MM_ROWS];
    *is_normal =
        (is_first || *is_normal) && ptoisa_mm_is_normal(buffers->span[r / PTOISA_MM_ROWS], span_b);
    return *is_normal ? PTOISA_MM_DOTS : PTOISA_MM_TWICE;
}

// Where a panel of A is, from row and element k on: in the tile, or packed.
typedef struct ptoisa_mm_panel {
    const float *data;
    uint64_t step, rows_step;  // from a box to the next, from 16 rows to the next
} ptoisa_mm_panel;

PTOISA_INLINE ptoisa_mm_panel ptoisa_mm_panel_of(const ptoisa_tile *a, bool is_in_place,
                                                 const float *packed, uint32_t padded, uint32_t row,
                                                 uint32_t k) {
    ptoisa_mm_panel panel = {packed, PTOISA_MM_BOX, (uint64_t)padded * 16};
    if (is_in_place) {
        const uint32_t size = ptoisa_dtype_size((ptoisa_dtype)a->dtype);
        const bool is_nz = a->layout == PTOISA_NZ;
        panel.data = (const float *)(const void *)((const uint8_t *)a->data +
                                                   ptoisa_offset(a, row, k) * size);
        panel.step = is_nz ? (uint64_t)a->rows * 8 : PTOISA_MM_BOX;
        panel.rows_step = is_nz ? PTOISA_MM_BOX : (uint64_t)a->cols * size / 4 * 16;
    }
    return panel;
}

// Begins the strip of 16 rows of A from row and element k on.
PTOISA_FN void ptoisa_mm_begin_strip(ptoisa_mm_strip *strip, float *to, const ptoisa_tile *a,
                                     ptoisa_mm_kind kind, uint32_t row, uint32_t k,
                                     uint32_t k_count) {
    const bool is_major = a->layout == PTOISA_ROW_MAJOR;
    strip->to = to;
    strip->from = (const uint8_t *)a->data + 2 * ptoisa_offset(a, row, k);
    strip->stride = is_major ? (size_t)a->cols * 2 : 32;
    strip->step = is_major ? 32 : a->layout == PTOISA_ZZ ? 16 * 32 : (size_t)a->rows * 32;
    strip->done = 0;
    strip->count = (k_count + 15) / 16 * (kind == PTOISA_MM_DOTS ? 1 : 4);
    memset(strip->extremes, 0, sizeof strip->extremes);
}

// Rows of A from row0 on, as many as a panel has, times up to 32 columns of B, over part of k.
typedef struct ptoisa_mm_part {
    uint32_t row0, rows, col, k0, k_count;
    bool is_new;                     // A's panel is not there yet
    bool is_in_place;                // nor need it be
    bool is_cut, is_first, is_last;  // of k
    ptoisa_mm_span span_b;
} ptoisa_mm_part;

// Computes a part, block by block.
PTOISA_FN void ptoisa_mm_blocks(const ptoisa_mm_code *code, const ptoisa_mm_task *task,
                                ptoisa_mm_kind kind, ptoisa_mm_buffers *buffers,
                                const ptoisa_mm_part *part) {
    const ptoisa_tile *a = task->a;
    const uint32_t width = ptoisa_mm_width(kind), k0 = part->k0, k_count = part->k_count;
    const uint32_t padded = ptoisa_mm_padded(kind, k_count);
    const ptoisa_mm_panel panel =
        ptoisa_mm_panel_of(a, part->is_in_place, buffers->a, padded, part->row0, k0);
    const bool has_strips =
        code->finish && part->is_new && ptoisa_mm_has_row_chunks(a) && ptoisa_mm_has_strips(kind);
    bool is_packed = part->is_in_place || !part->is_new;
    ptoisa_mm_strip strip;
    ptoisa_mm_block t;
    strip.done = strip.count = 0;
    t.ahead = &strip;
    t.b = buffers->b;
    t.cols = ptoisa_least(task->b->valid_cols - part->col, PTOISA_MM_COLS);
    t.k = (k_count + width - 1) / width;
    for (uint32_t r = 0; r < part->rows; r += PTOISA_MM_ROWS) {
        float *sums = part->is_cut ? buffers->part + r * PTOISA_MM_COLS : NULL;
        const uint32_t left = part->rows - r, row = part->row0 + r;
        t.rows = ptoisa_least(left, PTOISA_MM_ROWS);
        t.start = part->is_first ? NULL : sums;
        t.a = panel.data + r / 16 * panel.rows_step;
        t.a_step = panel.step;
        t.base = buffers->base + r;
        if (!is_packed && kind == PTOISA_MM_DOTS) {
            ptoisa_mm_begin_strip(&strip, buffers->a + r * padded, a, kind, row, k0, k_count);
            code->finish(&strip, kind);
        } else if (!is_packed) {
            code->pack_a(buffers->a + r * padded, a, kind, row, t.rows, k0, k_count);
        }
        if (kind == PTOISA_MM_QUADS && part->is_new) {
            code->base(buffers->base + r, t.a, t.a_step, k_count);
        }
        if (kind == PTOISA_MM_DOTS && part->is_new) {
            buffers->span[r / 16] = code->span((const float *)(const void *)strip.extremes, 16);
        }
        if (has_strips && left >= 2 * PTOISA_MM_ROWS) {
            float *next = buffers->a + (r + PTOISA_MM_ROWS) * padded;
            ptoisa_mm_begin_strip(&strip, next, a, kind, row + PTOISA_MM_ROWS, k0, k_count);
        }
        ptoisa_mm_one(code, buffers, &t, task,
                      ptoisa_mm_block_kind(buffers, kind, r, part->span_b, part->is_first), row,
                      part->col, sums, part->is_last);
        if (has_strips) {
            code->finish(&strip, kind);
            is_packed = left >= 2 * PTOISA_MM_ROWS;
        }
    }
}

// Computes a whole product without empty sizes.
PTOISA_FN void ptoisa_mm_run(const ptoisa_mm_code *code, const ptoisa_mm_task *task) {
    const ptoisa_tile *a = task->a, *b = task->b;
    ptoisa_mm_buffers buffers;
    ptoisa_mm_part part;
    const uint32_t m = a->valid_rows, k = a->valid_cols, n = b->valid_cols;
    const ptoisa_mm_kind kind = ptoisa_mm_kind_of(code, a, b);
    const uint32_t width = ptoisa_mm_width(kind), k_part = PTOISA_MM_UNITS * width;
    part.is_cut = k > k_part;
    part.is_in_place = ptoisa_mm_is_whole(kind) && kind != PTOISA_MM_DOTS &&
                       a->layout != PTOISA_ROW_MAJOR && ptoisa_mm_has_row_chunks(a);
    part.span_b.least = part.span_b.greatest = 0;
    uint32_t m_part =
        PTOISA_MM_A_UNITS / ptoisa_mm_padded(kind, part.is_cut ? k_part : k) / 16 * 16;
    m_part = part.is_in_place && !part.is_cut ? m : m_part;
    m_part = ptoisa_least(m_part, PTOISA_MM_A_ROWS);
    for (part.row0 = 0; part.row0 < m; part.row0 += m_part) {
        part.rows = ptoisa_least(m - part.row0, m_part);
        for (part.col = 0; part.col < n; part.col += PTOISA_MM_COLS) {
            const uint32_t cols = ptoisa_least(n - part.col, PTOISA_MM_COLS);
            for (part.k0 = 0; part.k0 < k; part.k0 += k_part) {
                part.k_count = ptoisa_least(k - part.k0, k_part);
                part.is_new = part.col == 0 || part.is_cut;
                part.is_first = part.k0 == 0;
                part.is_last = part.k0 + part.k_count == k;
                code->pack_b(buffers.b, b, kind, part.col, cols, part.k0, part.k_count);
                ptoisa_mm_clear_rest(buffers.b, kind, part.k_count);
                if (kind == PTOISA_MM_DOTS) {
                    part.span_b = code->span(buffers.b, part.k_count / width * PTOISA_MM_COLS);
                }
                ptoisa_mm_blocks(code, task, kind, &buffers, &part);
            }
        }
    }
}

// -- instructions ---------------------------------------------------------------------------------

// L0 has one layout for each operand: Left is Zz on A2/A3 and Nz on A5, Right is Zn, Acc is Nz.
// (What computes takes any layout; unchecked cores use that.)
PTOISA_FN bool ptoisa_mm_check_layout(ptoisa_core *core, ptoisa_op op, const char *which,
                                      const ptoisa_tile *tile) {
    const ptoisa_layout left = core->machine->family == PTOISA_A2A3 ? PTOISA_ZZ : PTOISA_NZ;
    const ptoisa_layout layout = tile->memory == PTOISA_LEFT    ? left
                                 : tile->memory == PTOISA_RIGHT ? PTOISA_ZN
                                 : tile->memory == PTOISA_ACC   ? PTOISA_NZ
                                                                : PTOISA_ROW_MAJOR;
    return tile->layout == layout ||
           ptoisa_fault(core, op, "%s has not the layout of %s on this machine", which,
                        ptoisa_memory_name((ptoisa_memory)tile->memory));
}

PTOISA_FN bool ptoisa_mm_check(ptoisa_core *core, ptoisa_op op, const ptoisa_tile *c,
                               const ptoisa_tile *a, const ptoisa_tile *b) {
    const uint32_t inputs = PTOISA_SET(PTOISA_F16) | PTOISA_SET(PTOISA_BF16) |
                            PTOISA_SET(PTOISA_F32) | PTOISA_SET(PTOISA_I8);
    if (!ptoisa_check_operand(core, op, "a", a, inputs, PTOISA_LEFT, 0, 0) ||
        !ptoisa_check_operand(core, op, "b", b, inputs, PTOISA_RIGHT, 0, 0)) {
        return false;
    }
    const uint32_t m = a->valid_rows, k = a->valid_cols, n = b->valid_cols;
    if (a->dtype != b->dtype) {
        return ptoisa_fault(core, op, "a is %s and b is %s",
                            ptoisa_dtype_name((ptoisa_dtype)a->dtype),
                            ptoisa_dtype_name((ptoisa_dtype)b->dtype));
    }
    if (b->valid_rows != k) {
        return ptoisa_fault(core, op, "a has %u valid columns, b %u valid rows", k, b->valid_rows);
    }
    if (m - 1 >= PTOISA_MM_SIZE_MAX || k - 1 >= PTOISA_MM_SIZE_MAX || n - 1 >= PTOISA_MM_SIZE_MAX) {
        return ptoisa_fault(core, op, "m %u, k %u, n %u: each must be 1 to %d", m, k, n,
                            PTOISA_MM_SIZE_MAX);
    }
    const ptoisa_dtype sum = a->dtype == PTOISA_I8 ? PTOISA_I32 : PTOISA_F32;
    if (!ptoisa_check_operand(core, op, "c", c, PTOISA_SET(sum), PTOISA_ACC, m, n)) {
        return false;
    }
    if (c->valid_rows != m || c->valid_cols != n) {
        return ptoisa_fault(core, op, "c has %u x %u valid elements for a product of %u x %u",
                            c->valid_rows, c->valid_cols, m, n);
    }
    if (!ptoisa_mm_check_layout(core, op, "a", a) || !ptoisa_mm_check_layout(core, op, "b", b) ||
        !ptoisa_mm_check_layout(core, op, "c", c)) {
        return false;
    }
    const bool is_gemv = op == PTOISA_TGEMV || op == PTOISA_TGEMV_ACC || op == PTOISA_TGEMV_BIAS;
    return !is_gemv || m == 1 || ptoisa_fault(core, op, "a has %u valid rows, not 1", m);
}

// Any of the instructions. add: NULL, the old accumulator, or a bias.
PTOISA_FN void ptoisa_mm(ptoisa_core *core, ptoisa_op op, const ptoisa_tile *c,
                         const ptoisa_tile *add, const ptoisa_tile *a, const ptoisa_tile *b) {
    const bool is_bias = op == PTOISA_TMATMUL_BIAS || op == PTOISA_TGEMV_BIAS;
    if (PTOISA_CHECKED) {
        if (!ptoisa_mm_check(core, op, c, a, b)) {
            return;
        }
        const uint32_t rows = is_bias ? 1 : c->valid_rows;
        const char *which = is_bias ? "bias" : "c_in";
        if (add && !ptoisa_check_operand(core, op, which, add, PTOISA_SET(c->dtype),
                                         is_bias ? PTOISA_BIAS : PTOISA_ACC, rows, c->valid_cols)) {
            return;
        }
        if (add && !ptoisa_mm_check_layout(core, op, which, add)) {
            return;
        }
        if (add && (add->valid_rows != rows || add->valid_cols != c->valid_cols)) {
            ptoisa_fault(core, op, "%s has %u x %u valid elements, not %u x %u", which,
                         add->valid_rows, add->valid_cols, rows, c->valid_cols);
            return;
        }
    }
    ptoisa_issue(core, op, c, a, b);
    if (core->is_dry || a->valid_rows == 0 || a->valid_cols == 0 || b->valid_cols == 0) {
        return;
    }
    const ptoisa_mm_code code = ptoisa_mm_best();
    const ptoisa_mm_task task = {c, add, a, b, is_bias};
    ptoisa_mm_run(&code, &task);
}

PTOISA_FN void ptoisa_tmatmul(ptoisa_core *core, const ptoisa_tile *c, const ptoisa_tile *a,
                              const ptoisa_tile *b) {
    ptoisa_mm(core, PTOISA_TMATMUL, c, NULL, a, b);
}

// c_out = c_in + a * b; both may be one tile.
PTOISA_FN void ptoisa_tmatmul_acc(ptoisa_core *core, const ptoisa_tile *c_out,
                                  const ptoisa_tile *c_in, const ptoisa_tile *a,
                                  const ptoisa_tile *b) {
    ptoisa_mm(core, PTOISA_TMATMUL_ACC, c_out, c_in, a, b);
}

// c = a * b + bias, which is 1 x n and is added to every row.
PTOISA_FN void ptoisa_tmatmul_bias(ptoisa_core *core, const ptoisa_tile *c, const ptoisa_tile *a,
                                   const ptoisa_tile *b, const ptoisa_tile *bias) {
    ptoisa_mm(core, PTOISA_TMATMUL_BIAS, c, bias, a, b);
}

PTOISA_FN void ptoisa_tgemv(ptoisa_core *core, const ptoisa_tile *c, const ptoisa_tile *a,
                            const ptoisa_tile *b) {
    ptoisa_mm(core, PTOISA_TGEMV, c, NULL, a, b);
}

PTOISA_FN void ptoisa_tgemv_acc(ptoisa_core *core, const ptoisa_tile *c_out,
                                const ptoisa_tile *c_in, const ptoisa_tile *a,
                                const ptoisa_tile *b) {
    ptoisa_mm(core, PTOISA_TGEMV_ACC, c_out, c_in, a, b);
}

PTOISA_FN void ptoisa_tgemv_bias(ptoisa_core *core, const ptoisa_tile *c, const ptoisa_tile *a,
                                 const ptoisa_tile *b, const ptoisa_tile *bias) {
    ptoisa_mm(core, PTOISA_TGEMV_BIAS, c, bias, a, b);
}

#endif
