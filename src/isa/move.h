// Moves: TLOAD, TSTORE, TMOV, TEXTRACT, TINSERT, and TPRINT.
//
// All are one copy between two views (view.h). On the way out of L0C the fixpipe may apply ReLU, a
// scale and another type. This is done in blocks that stay in the first-level cache: elements are
// gathered into a row-major block, changed there, and scattered:
//
//      tile --copy--> block of its type --ReLU, scale, convert--> block of the other --copy--> d
//
// Windows may have any strides. The device distinguishes ND, DN and NZ views, and which of them
// goes into which layout. Here only strides count, so every window goes into every layout.

#ifndef PTOISA_MOVE_H
#define PTOISA_MOVE_H

#include "cast.h"
#include "core.h"
#include "view.h"

#define PTOISA_SET_ALL                                                                             \
    (PTOISA_SET(PTOISA_F16) | PTOISA_SET(PTOISA_BF16) | PTOISA_SET(PTOISA_F32) |                   \
     PTOISA_SET(PTOISA_I8) | PTOISA_SET(PTOISA_I16) | PTOISA_SET(PTOISA_I32) |                     \
     PTOISA_SET(PTOISA_I64) | PTOISA_SET(PTOISA_U8) | PTOISA_SET(PTOISA_U16) |                     \
     PTOISA_SET(PTOISA_U32) | PTOISA_SET(PTOISA_U64) | PTOISA_SET(PTOISA_BOOL))
#define PTOISA_SET_64  (PTOISA_SET(PTOISA_I64) | PTOISA_SET(PTOISA_U64))
#define PTOISA_SET_124 (PTOISA_SET_ALL & ~PTOISA_SET_64)
#define PTOISA_SET_MATRIX                                                                          \
    (PTOISA_SET(PTOISA_F16) | PTOISA_SET(PTOISA_BF16) | PTOISA_SET(PTOISA_F32) |                   \
     PTOISA_SET(PTOISA_I8))
#define PTOISA_SET_ACC (PTOISA_SET(PTOISA_F32) | PTOISA_SET(PTOISA_I32))

// The conversion of elements on their way out of L0C.
typedef struct ptoisa_fixpipe {
    bool is_relu, is_add;  // is_add: accumulates
    bool is_scaled;        // by scale, or by column with the cells of scales
    float scale;
    const ptoisa_any_u64 *scales;
} ptoisa_fixpipe;

// -- elements on the way --------------------------------------------------------------------------

#define PTOISA_BLOCK 2048  // elements of a block; two of them are 16 KiB

// Changes rows x cols elements in place: ReLU, scale. `column` is the first. f32 stays, i32 becomes
// f32 where there is a scale.
PTOISA_FN void ptoisa_fixpipe_block(const ptoisa_fixpipe *how, ptoisa_dtype dtype, void *block,
                                    uint32_t column, uint32_t rows, uint32_t cols) {
    uint32_t n = rows * cols;
    if (how->is_relu && dtype == PTOISA_I32) {
        ptoisa_i32s_relu(block, block, n);
    } else if (how->is_relu) {
        ptoisa_f32s_relu(block, block, n);
    }
    if (how->is_scaled && dtype == PTOISA_I32) {
        ptoisa_f32s_from_i32(block, block, n);
    }
    if (how->is_scaled && !how->scales) {
        const ptoisa_cast_args by = ptoisa_by(how->scale, 0);
        ptoisa_f32s_times_by(block, block, n, &by);
    }
    ptoisa_any_f32 *x = (ptoisa_any_f32 *)block;
    for (uint32_t c = 0; how->scales && c < cols; c++) {
        float scale = ptoisa_f32_from_bits((uint32_t)how->scales[column + c]);
        for (uint32_t r = 0; r < rows; r++) {
            x[r * cols + c] *= scale;
        }
    }
}

// Converts between the types that moves convert between: f32 to f16, bf16, i8, u8, and f16 to f32.
// Equal types are copied.
PTOISA_FN void ptoisa_convert_block(ptoisa_dtype to, void *d, ptoisa_dtype from, const void *s,
                                    uint32_t n) {
    if (to == from) {
        memcpy(d, s, (size_t)n * ptoisa_dtype_size(to));
    } else if (to == PTOISA_F16) {
        ptoisa_f16s_from_f32(d, s, n);
    } else if (to == PTOISA_BF16) {
        ptoisa_bf16s_from_f32(d, s, n);
    } else if (to == PTOISA_F32) {
        ptoisa_f32s_from_f16(d, s, n);
    } else {
        int32_t rounded[PTOISA_BLOCK];
        ptoisa_i32s_from_f32(rounded, s, n, PTOISA_CAST_RINT, ptoisa_dtype_low(to),
                             ptoisa_dtype_high(to));
        ptoisa_low_from_i32(to, d, rounded, n);
    }
}

// Adds to one element of global memory. Cores on other threads may be adding to the same one, so it
// is done atomically: about 20 cycles each.
#define PTOISA_ADD_LOOP(word, sum)                                                                 \
    {                                                                                              \
        word now = __atomic_load_n((word *)(void *)at, __ATOMIC_RELAXED), next;                    \
        do {                                                                                       \
            next = (word)(sum);                                                                    \
        } while (!__atomic_compare_exchange_n((word *)(void *)at, &now, next, true,                \
                                              __ATOMIC_RELAXED, __ATOMIC_RELAXED));                \
        break;                                                                                     \
    }

PTOISA_FN void ptoisa_add_at(ptoisa_dtype dtype, uint8_t *at, const uint8_t *value) {
    uint16_t half;
    uint32_t word;
    memcpy(&half, value, sizeof half);
    switch (dtype) {
    case PTOISA_F32: {
        memcpy(&word, value, sizeof word);
        float x = ptoisa_f32_from_bits(word);
        PTOISA_ADD_LOOP(ptoisa_any_u32, ptoisa_bits_from_f32(ptoisa_f32_from_bits(now) + x))
    }
    case PTOISA_F16: {
        float x = ptoisa_f32_from_f16(half);
        PTOISA_ADD_LOOP(ptoisa_any_u16, ptoisa_f16_from_f32(ptoisa_f32_from_f16(now) + x))
    }
    case PTOISA_BF16: {
        float x = ptoisa_f32_from_bf16(half);
        PTOISA_ADD_LOOP(ptoisa_any_u16, ptoisa_bf16_from_f32(ptoisa_f32_from_bf16(now) + x))
    }
    case PTOISA_I8: __atomic_fetch_add(at, *value, __ATOMIC_RELAXED); break;
    case PTOISA_I16:
        __atomic_fetch_add((ptoisa_any_u16 *)(void *)at, half, __ATOMIC_RELAXED);
        break;
    default:
        memcpy(&word, value, sizeof word);
        __atomic_fetch_add((ptoisa_any_u32 *)(void *)at, word, __ATOMIC_RELAXED);
        break;
    }
}

PTOISA_FN void ptoisa_add_block(ptoisa_view d, ptoisa_dtype dtype, const uint8_t *block,
                                uint32_t rows, uint32_t cols) {
    uint32_t size = ptoisa_dtype_size(dtype);
    for (uint32_t r = 0; r < rows; r++) {
        uint8_t *to = d.data + ptoisa_axis_at(&d.row, r);
        for (uint32_t c = 0; c < cols; c++, block += size) {
            ptoisa_add_at(dtype, to + ptoisa_axis_at(&d.col, c), block);
        }
    }
}

// Moves rows x cols elements, which may change on the way. how NULL: only their type does.
PTOISA_FN void ptoisa_transfer(ptoisa_view d, ptoisa_dtype to, ptoisa_view s, ptoisa_dtype from,
                               uint32_t rows, uint32_t cols, const ptoisa_fixpipe *how) {
    uint32_t to_size = ptoisa_dtype_size(to), from_size = ptoisa_dtype_size(from);
    if (!how && to == from) {
        ptoisa_copy(d, s, rows, cols, to_size);
        return;
    }
    // 16 rows are a box; more where rows are short.
    uint32_t col_step = ptoisa_min_u32(cols, PTOISA_BLOCK / 16);
    uint32_t row_step = col_step ? PTOISA_BLOCK / col_step : 1;
    float in[PTOISA_BLOCK], out[PTOISA_BLOCK];  // of 4 bytes at most
    for (uint32_t r = 0; r < rows; r += row_step) {
        uint32_t m = ptoisa_min_u32(rows - r, row_step);
        for (uint32_t c = 0; c < cols; c += col_step) {
            uint32_t n = ptoisa_min_u32(cols - c, col_step);
            ptoisa_copy(ptoisa_view_array(in, n, from_size), ptoisa_view_from(s, r, c), m, n,
                        from_size);
            ptoisa_dtype type = from;
            if (how) {
                ptoisa_fixpipe_block(how, from, in, c, m, n);
                type = how->is_scaled ? PTOISA_F32 : from;
            }
            ptoisa_convert_block(to, out, type, in, m * n);
            ptoisa_view there = ptoisa_view_from(d, r, c);
            if (how && how->is_add) {
                ptoisa_add_block(there, to, (const uint8_t *)out, m, n);
            } else {
                ptoisa_copy(there, ptoisa_view_array(out, n, to_size), m, n, to_size);
            }
        }
    }
}

// -- checks ---------------------------------------------------------------------------------------

// For what A5 has and A2/A3 have not.
PTOISA_FN bool ptoisa_check_a5(ptoisa_core *core, ptoisa_op op, const char *what) {
    if (core->machine->family != PTOISA_A5 && !core->is_as_simulator) {
        return ptoisa_fault(core, op, "%s is not on %s, only on A5", what, core->machine->name);
    }
    return true;
}

// Is the window of the tile's valid size, of elements as large, somewhere?
PTOISA_FN bool ptoisa_check_window(ptoisa_core *core, ptoisa_op op, const ptoisa_global *g,
                                   const ptoisa_tile *tile, const char *which) {
    if (ptoisa_dtype_size((ptoisa_dtype)g->dtype) == 0) {
        return ptoisa_fault(core, op, "g is no window");
    }
    for (int i = 0; i < 5; i++) {
        if (g->shape[i] <= 0) {
            return ptoisa_fault(core, op, "g has shape %lld in dimension %d",
                                (long long)g->shape[i], i);
        }
    }
    if (ptoisa_global_rows(g) != tile->valid_rows || g->shape[4] != tile->valid_cols) {
        return ptoisa_fault(core, op, "g has %lld x %lld elements, %s %u x %u valid ones",
                            (long long)ptoisa_global_rows(g), (long long)g->shape[4], which,
                            tile->valid_rows, tile->valid_cols);
    }
    if (!core->is_dry && g->data == NULL) {
        return ptoisa_fault(core, op, "g has no address");
    }
    return true;
}

PTOISA_FN bool ptoisa_check_load(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_global *g) {
    const ptoisa_op op = PTOISA_TLOAD;
    if (!ptoisa_check_tile(core, op, "d", d) || !ptoisa_check_window(core, op, g, d, "d")) {
        return false;
    }
    if (d->memory != PTOISA_VEC && d->memory != PTOISA_MAT &&
        (d->memory != PTOISA_BIAS || !core->is_as_simulator)) {
        return ptoisa_fault(core, op, "d is in %s, not in UB or L1",
                            ptoisa_memory_name((ptoisa_memory)d->memory));
    }
    uint32_t size = ptoisa_dtype_size((ptoisa_dtype)d->dtype);
    if (size != ptoisa_dtype_size((ptoisa_dtype)g->dtype)) {
        return ptoisa_fault(core, op, "g is %s, d is %s", ptoisa_dtype_name((ptoisa_dtype)g->dtype),
                            ptoisa_dtype_name((ptoisa_dtype)d->dtype));
    }
    uint32_t rows_max = d->memory == PTOISA_VEC ? 4095 : 16384;
    if (d->rows > rows_max) {
        return ptoisa_fault(core, op, "d has %u rows, more than %u", d->rows, rows_max);
    }
    if (d->layout >= PTOISA_NZ && size == 8) {
        return ptoisa_fault(core, op, "d is %s and boxed",
                            ptoisa_dtype_name((ptoisa_dtype)d->dtype));
    }
    if (d->memory == PTOISA_MAT && d->layout >= PTOISA_NZ && ptoisa_global_pieces(g) != 1) {
        return ptoisa_fault(core, op, "g has shape %lld x %lld x %lld outside its matrix, not 1",
                            (long long)g->shape[0], (long long)g->shape[1], (long long)g->shape[2]);
    }
    if (d->memory == PTOISA_MAT && d->layout == PTOISA_ROW_MAJOR && g->shape[3] > 4095) {
        return ptoisa_fault(core, op, "g has %lld rows, more than 4095", (long long)g->shape[3]);
    }
    return true;
}

// The types that L0C is stored as, without and with a scale.
PTOISA_FN bool ptoisa_is_acc_pair(uint32_t to, uint32_t from, bool is_scaled) {
    if (is_scaled) {
        return to == PTOISA_I8 || to == PTOISA_U8 || (to == PTOISA_F16 && from == PTOISA_I32);
    }
    return to == from || (from == PTOISA_F32 && (to == PTOISA_F16 || to == PTOISA_BF16));
}

PTOISA_FN bool ptoisa_check_acc(ptoisa_core *core, ptoisa_op op, const ptoisa_tile *s, uint32_t to,
                                bool is_scaled) {
    if (!ptoisa_check_operand(core, op, "s", s, PTOISA_SET_ACC, PTOISA_ACC, 0, 0)) {
        return false;
    }
    if (s->layout != PTOISA_NZ) {
        return ptoisa_fault(core, op, "s is in L0C and not NZ");
    }
    if (!ptoisa_is_acc_pair(to, s->dtype, is_scaled)) {
        return ptoisa_fault(core, op, "%s out of L0C does not become %s%s",
                            ptoisa_dtype_name((ptoisa_dtype)s->dtype),
                            ptoisa_dtype_name((ptoisa_dtype)to), is_scaled ? " by a scale" : "");
    }
    return true;
}

PTOISA_FN bool ptoisa_check_store(ptoisa_core *core, const ptoisa_global *g, const ptoisa_tile *s,
                                  const ptoisa_fixpipe *how) {
    const ptoisa_op op = PTOISA_TSTORE;
    const uint32_t add_set = PTOISA_SET(PTOISA_F16) | PTOISA_SET(PTOISA_BF16) |
                             PTOISA_SET(PTOISA_F32) | PTOISA_SET(PTOISA_I8) |
                             PTOISA_SET(PTOISA_I16) | PTOISA_SET(PTOISA_I32);
    if (!ptoisa_check_tile(core, op, "s", s) || !ptoisa_check_window(core, op, g, s, "s")) {
        return false;
    }
    if (how->is_add && !(add_set >> g->dtype & 1)) {
        return ptoisa_fault(core, op, "g is %s, which cannot be added to",
                            ptoisa_dtype_name((ptoisa_dtype)g->dtype));
    }
    if (s->memory == PTOISA_ACC) {
        if (s->cols > 4095 || s->rows > 8192) {
            return ptoisa_fault(core, op, "s has %u x %u elements, more than 8192 x 4095", s->rows,
                                s->cols);
        }
        return ptoisa_check_acc(core, op, s, g->dtype, how->is_scaled);
    }
    if (how->is_relu || how->is_scaled || (s->memory != PTOISA_VEC && s->memory != PTOISA_MAT)) {
        return ptoisa_fault(core, op, "s is in %s, not in L0C%s",
                            ptoisa_memory_name((ptoisa_memory)s->memory),
                            how->is_relu || how->is_scaled ? "" : ", UB or L1");
    }
    if (s->memory == PTOISA_MAT && core->machine->family == PTOISA_A5) {
        return ptoisa_fault(core, op, "s is in L1, which A5 does not store");
    }
    uint32_t size = ptoisa_dtype_size((ptoisa_dtype)s->dtype);
    if (size != ptoisa_dtype_size((ptoisa_dtype)g->dtype) ||
        (how->is_add && g->dtype != s->dtype)) {
        return ptoisa_fault(core, op, "s is %s, g is %s", ptoisa_dtype_name((ptoisa_dtype)s->dtype),
                            ptoisa_dtype_name((ptoisa_dtype)g->dtype));
    }
    if (s->memory == PTOISA_VEC && s->rows > 4095) {
        return ptoisa_fault(core, op, "s has %u rows, more than 4095", s->rows);
    }
    return s->layout < PTOISA_NZ || size < 8 ||
           ptoisa_fault(core, op, "s is %s and boxed", ptoisa_dtype_name((ptoisa_dtype)s->dtype));
}

// Into a tile of L0A or L0B, from L1.
PTOISA_FN bool ptoisa_check_into_l0(ptoisa_core *core, ptoisa_op op, const ptoisa_tile *d,
                                    const ptoisa_tile *s) {
    uint32_t left = core->machine->family == PTOISA_A5 ? PTOISA_NZ : PTOISA_ZZ;
    uint32_t layout = d->memory == PTOISA_LEFT ? left : (uint32_t)PTOISA_ZN;
    if (d->layout != layout) {
        return ptoisa_fault(core, op, "d is in %s of %s and not %s",
                            ptoisa_memory_name((ptoisa_memory)d->memory), core->machine->name,
                            layout == PTOISA_NZ   ? "NZ"
                            : layout == PTOISA_ZN ? "ZN"
                                                  : "ZZ");
    }
    if (!(PTOISA_SET_MATRIX >> d->dtype & 1)) {
        return ptoisa_fault(core, op, "d is %s, which is not multiplied",
                            ptoisa_dtype_name((ptoisa_dtype)d->dtype));
    }
    if (s->layout < PTOISA_NZ) {
        return ptoisa_fault(core, op, "s is in L1 without boxes");
    }
    return true;
}

// A row of L1 into the bias table or the fixpipe buffer.
PTOISA_FN bool ptoisa_check_into_table(ptoisa_core *core, const ptoisa_tile *d,
                                       const ptoisa_tile *s) {
    const ptoisa_op op = PTOISA_TMOV;
    bool is_bias = d->memory == PTOISA_BIAS;
    uint32_t size = ptoisa_dtype_size((ptoisa_dtype)d->dtype), step = is_bias ? 64 : 128;
    if (!((is_bias ? PTOISA_SET_ACC : PTOISA_SET_64) >> d->dtype & 1)) {
        return ptoisa_fault(core, op, "d is in the %s and %s",
                            ptoisa_memory_name((ptoisa_memory)d->memory),
                            ptoisa_dtype_name((ptoisa_dtype)d->dtype));
    }
    if (d->rows != 1 || d->layout != PTOISA_ROW_MAJOR || s->layout != PTOISA_ROW_MAJOR) {
        return ptoisa_fault(core, op, "d has %u rows: the %s takes one row, row-major", d->rows,
                            ptoisa_memory_name((ptoisa_memory)d->memory));
    }
    if ((uint64_t)d->cols * size % step != 0) {
        return ptoisa_fault(core, op, "d has %u x %u bytes, which %u does not divide", d->cols,
                            size, step);
    }
    return true;
}

// Can TMOV, TEXTRACT and TINSERT move from the memory of s to the memory of d?
PTOISA_FN bool ptoisa_check_path(ptoisa_core *core, ptoisa_op op, const ptoisa_tile *d,
                                 const ptoisa_tile *s) {
    if (!ptoisa_check_tile(core, op, "d", d) || !ptoisa_check_tile(core, op, "s", s)) {
        return false;
    }
    bool is_insert = op == PTOISA_TINSERT, is_a5 = false, is_way = false;
    if (s->memory == PTOISA_VEC) {
        is_way = d->memory == PTOISA_VEC || (d->memory == PTOISA_MAT && op != PTOISA_TEXTRACT);
        is_a5 = is_insert || d->memory == PTOISA_MAT;
    } else if (s->memory == PTOISA_ACC) {
        is_way = (d->memory == PTOISA_VEC || d->memory == PTOISA_MAT) && op != PTOISA_TEXTRACT;
        is_a5 = d->memory == PTOISA_VEC;
    } else if (s->memory == PTOISA_MAT && !is_insert) {
        is_way = d->memory == PTOISA_LEFT || d->memory == PTOISA_RIGHT ||
                 (op == PTOISA_TMOV && (d->memory == PTOISA_BIAS || d->memory == PTOISA_SCALING));
    }
    if (!is_way) {
        return ptoisa_fault(core, op, "there is no way from %s (s) to %s (d)",
                            ptoisa_memory_name((ptoisa_memory)s->memory),
                            ptoisa_memory_name((ptoisa_memory)d->memory));
    }
    if (is_a5 && !ptoisa_check_a5(core, op,
                                  s->memory == PTOISA_ACC   ? "the way from L0C to UB"
                                  : d->memory == PTOISA_MAT ? "the way from UB to L1"
                                                            : "the way from UB to UB")) {
        return false;
    }
    if (s->memory == PTOISA_ACC && d->memory == PTOISA_MAT && d->dtype == s->dtype &&
        core->machine->family == PTOISA_A2A3) {
        return ptoisa_fault(core, op, "%s goes from L0C to L1 as f16 or bf16 on %s",
                            ptoisa_dtype_name((ptoisa_dtype)s->dtype), core->machine->name);
    }
    if (s->memory == PTOISA_ACC) {
        return ptoisa_check_acc(core, op, s, d->dtype, false);
    }
    bool is_bias = d->memory == PTOISA_BIAS && s->dtype == PTOISA_F16 && d->dtype == PTOISA_F32;
    if (d->dtype != s->dtype && !is_bias) {
        return ptoisa_fault(core, op, "s is %s, d is %s", ptoisa_dtype_name((ptoisa_dtype)s->dtype),
                            ptoisa_dtype_name((ptoisa_dtype)d->dtype));
    }
    if (d->memory == PTOISA_LEFT || d->memory == PTOISA_RIGHT) {
        return ptoisa_check_into_l0(core, op, d, s);
    }
    return d->memory < PTOISA_BIAS || ptoisa_check_into_table(core, d, s);
}

// Does a part of rows x cols at (row, col) lie inside rows_max x cols_max?
PTOISA_FN bool ptoisa_check_part(ptoisa_core *core, ptoisa_op op, const char *whole, uint32_t row,
                                 uint32_t col, uint32_t rows, uint32_t cols, uint32_t rows_max,
                                 uint32_t cols_max) {
    if (row > UINT16_MAX || col > UINT16_MAX) {
        return ptoisa_fault(core, op, "row %u, column %u: more than 65535", row, col);
    }
    if ((uint64_t)row + rows > rows_max || (uint64_t)col + cols > cols_max) {
        return ptoisa_fault(core, op, "%u x %u elements from (%u, %u) do not lie in %s of %u x %u",
                            rows, cols, row, col, whole, rows_max, cols_max);
    }
    return true;
}

// -- instructions ---------------------------------------------------------------------------------

// The bits of a tile's pad value; 0 for Null. Floats have infinity, as on the device.
PTOISA_FN uint64_t ptoisa_pad_bits(const ptoisa_tile *tile) {
    if (tile->pad == PTOISA_PAD_CUSTOM) {
        return ptoisa_bits_of((double)tile->pad_value, (ptoisa_dtype)tile->dtype);
    }
    if (tile->pad != PTOISA_PAD_MAX && tile->pad != PTOISA_PAD_MIN) {
        return 0;
    }
    double infinity = (double)__builtin_inff();
    return ptoisa_bits_of(tile->pad == PTOISA_PAD_MAX ? infinity : -infinity,
                          (ptoisa_dtype)tile->dtype);
}

// Fills what lies outside the first rows x cols elements with the pad value.
PTOISA_FN void ptoisa_pad_around(const ptoisa_tile *tile, uint32_t rows, uint32_t cols) {
    uint64_t bits = ptoisa_pad_bits(tile);
    uint32_t size = ptoisa_dtype_size((ptoisa_dtype)tile->dtype);
    ptoisa_view view = ptoisa_view_of(tile);
    ptoisa_fill(ptoisa_view_from(view, 0, cols), rows, tile->cols - cols, size, bits);
    ptoisa_fill(ptoisa_view_from(view, rows, 0), tile->rows - rows, tile->cols, size, bits);
}

// The bytes of TLOAD, which are not counted.
PTOISA_FN void ptoisa_load_bytes(const ptoisa_tile *d, const ptoisa_global *g) {
    uint32_t size = ptoisa_dtype_size((ptoisa_dtype)d->dtype), rows = (uint32_t)g->shape[3];
    ptoisa_view view = ptoisa_view_of(d);
    for (int64_t i = 0; i < ptoisa_global_pieces(g); i++) {
        ptoisa_copy(ptoisa_view_from(view, (uint32_t)i * rows, 0), ptoisa_view_piece(g, i), rows,
                    d->valid_cols, size);
    }
    ptoisa_pad_around(d, d->valid_rows, d->valid_cols);
}

// Loads a window into the valid region of d, and pads the rest of d.
PTOISA_FN void ptoisa_tload(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_global *g) {
    if (PTOISA_CHECKED && !ptoisa_check_load(core, d, g)) {
        return;
    }
    ptoisa_issue(core, PTOISA_TLOAD, d, NULL, NULL);
    if (!core->is_dry) {
        ptoisa_load_bytes(d, g);
    }
}

// The bytes of TSTORE, which are not counted.
PTOISA_FN void ptoisa_store_bytes(const ptoisa_global *g, const ptoisa_tile *s,
                                  const ptoisa_fixpipe *how) {
    // Without a change, elements of one size are bytes, whatever the two types are called.
    bool is_plain = !how->is_relu && !how->is_scaled && !how->is_add;
    ptoisa_dtype from = (ptoisa_dtype)s->dtype, to = (ptoisa_dtype)g->dtype;
    to = s->memory != PTOISA_ACC ? from : to;
    uint32_t rows = (uint32_t)g->shape[3];
    ptoisa_view view = ptoisa_view_of(s);
    for (int64_t i = 0; i < ptoisa_global_pieces(g); i++) {
        ptoisa_transfer(ptoisa_view_piece(g, i), to, ptoisa_view_from(view, (uint32_t)i * rows, 0),
                        from, rows, s->valid_cols, is_plain ? NULL : how);
    }
}

PTOISA_FN void ptoisa_store(ptoisa_core *core, const ptoisa_global *g, const ptoisa_tile *s,
                            const ptoisa_fixpipe *how, const ptoisa_tile *scales) {
    if (PTOISA_CHECKED && !ptoisa_check_store(core, g, s, how)) {
        return;
    }
    if (PTOISA_CHECKED && scales &&
        !ptoisa_check_operand(core, PTOISA_TSTORE, "fp", scales, PTOISA_SET_64, PTOISA_SCALING, 1,
                              s->valid_cols)) {
        return;
    }
    ptoisa_issue_as(core, PTOISA_TSTORE, NULL, s, NULL, ptoisa_dtype_size((ptoisa_dtype)g->dtype));
    if (!core->is_dry) {
        ptoisa_store_bytes(g, s, how);
    }
}

// PTO-ISA's simulator stores masks with all of their columns, by a window as large: how many are valid
// only says how many bits TCMP sets. `out_whole` is such a mask; others are stored as they are.
PTOISA_FN const ptoisa_tile *ptoisa_stored_mask(const ptoisa_core *core, const ptoisa_global *g,
                                                const ptoisa_tile *s, ptoisa_tile *out_whole) {
    if (PTOISA_LIKELY(!core->is_as_simulator)) {
        return s;
    }
    const bool is_mask = s->memory == PTOISA_VEC && s->layout == PTOISA_ROW_MAJOR &&
                         (s->dtype == PTOISA_U8 || s->dtype == PTOISA_U32);
    const int64_t rows = ptoisa_global_rows(g);
    if (!is_mask || g->shape[4] != s->cols || (rows != s->rows && rows != s->valid_rows)) {
        return s;
    }
    *out_whole = *s;
    out_whole->valid_rows = (uint32_t)rows;
    out_whole->valid_cols = s->cols;
    return out_whole;
}

// Stores the valid region. Out of L0C f32 may become f16 or bf16, to nearest.
PTOISA_FN void ptoisa_tstore(ptoisa_core *core, const ptoisa_global *g, const ptoisa_tile *s) {
    ptoisa_fixpipe how = {false, false, false, 0, NULL};
    ptoisa_tile whole;
    ptoisa_store(core, g, ptoisa_stored_mask(core, g, s, &whole), &how, NULL);
}

// The same, accumulating.
PTOISA_FN void ptoisa_tstore_add(ptoisa_core *core, const ptoisa_global *g, const ptoisa_tile *s) {
    ptoisa_fixpipe how = {false, true, false, 0, NULL};
    ptoisa_store(core, g, s, &how, NULL);
}

// max(acc, 0), stored.
PTOISA_FN void ptoisa_tstore_relu(ptoisa_core *core, const ptoisa_global *g,
                                  const ptoisa_tile *acc) {
    ptoisa_fixpipe how = {true, false, false, 0, NULL};
    ptoisa_store(core, g, acc, &how, NULL);
}

// acc * scale, rounded to nearest and saturated to i8 or u8; i32 * scale may also become f16.
PTOISA_FN void ptoisa_tstore_quant(ptoisa_core *core, const ptoisa_global *g,
                                   const ptoisa_tile *acc, float scale, bool relu) {
    ptoisa_fixpipe how = {relu, false, true, scale, NULL};
    ptoisa_store(core, g, acc, &how, NULL);
}

// The same with a scale for each column: the low 32 bits of the cells of fp.
PTOISA_FN void ptoisa_tstore_fp(ptoisa_core *core, const ptoisa_global *g, const ptoisa_tile *acc,
                                const ptoisa_tile *fp, bool relu) {
    ptoisa_fixpipe how = {relu, false, true, 0, (const ptoisa_any_u64 *)fp->data};
    ptoisa_store(core, g, acc, &how, fp);
}

// The same, accumulating: f16, i8.
PTOISA_FN void ptoisa_tstore_add_quant(ptoisa_core *core, const ptoisa_global *g,
                                       const ptoisa_tile *acc, float scale, bool relu) {
    ptoisa_fixpipe how = {relu, true, true, scale, NULL};
    ptoisa_store(core, g, acc, &how, NULL);
}

PTOISA_FN void ptoisa_tstore_add_fp(ptoisa_core *core, const ptoisa_global *g,
                                    const ptoisa_tile *acc, const ptoisa_tile *fp, bool relu) {
    ptoisa_fixpipe how = {relu, true, true, 0, (const ptoisa_any_u64 *)fp->data};
    ptoisa_store(core, g, acc, &how, fp);
}

// Copies s to d, in d's layout.
PTOISA_FN void ptoisa_tmov(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s) {
    if (PTOISA_CHECKED) {
        if (!ptoisa_check_path(core, PTOISA_TMOV, d, s)) {
            return;
        }
        if (d->rows != s->rows || d->cols != s->cols || d->valid_rows > s->valid_rows ||
            d->valid_cols > s->valid_cols) {
            ptoisa_fault(core, PTOISA_TMOV,
                         "d has %u x %u of %u x %u elements, s %u x %u of %u x %u", d->valid_rows,
                         d->valid_cols, d->rows, d->cols, s->valid_rows, s->valid_cols, s->rows,
                         s->cols);
            return;
        }
    }
    ptoisa_issue(core, PTOISA_TMOV, d, s, NULL);
    if (core->is_dry || (d->data == s->data && d->layout == s->layout && d->dtype == s->dtype)) {
        return;
    }
    bool is_same = d->layout == s->layout && d->dtype == s->dtype && d->cols == s->cols &&
                   d->rows == s->rows && ptoisa_box_cols(d) == ptoisa_box_cols(s);
    if (is_same && d->valid_rows == d->rows && d->valid_cols == d->cols) {
        memcpy(d->data, s->data, (size_t)ptoisa_tile_bytes(d));
        return;
    }
    ptoisa_transfer(ptoisa_view_of(d), (ptoisa_dtype)d->dtype, ptoisa_view_of(s),
                    (ptoisa_dtype)s->dtype, d->valid_rows, d->valid_cols, NULL);
}

// Copies the part of s that begins at (row, col) to d.
PTOISA_FN void ptoisa_textract(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s,
                               uint32_t row, uint32_t col) {
    const ptoisa_op op = PTOISA_TEXTRACT;
    if (PTOISA_CHECKED) {
        if (!ptoisa_check_path(core, op, d, s) ||
            !ptoisa_check_operand(core, op, "d", d, PTOISA_SET_MATRIX, (ptoisa_memory)d->memory, 0,
                                  0) ||
            !ptoisa_check_part(core, op, "s", row, col, d->rows, d->cols, s->rows, s->cols) ||
            !ptoisa_check_part(core, op, "the valid part of s", row, col, d->valid_rows,
                               d->valid_cols, s->valid_rows, s->valid_cols)) {
            return;
        }
    }
    ptoisa_issue(core, op, d, s, NULL);
    if (!core->is_dry) {
        ptoisa_copy(ptoisa_view_of(d), ptoisa_view_from(ptoisa_view_of(s), row, col), d->valid_rows,
                    d->valid_cols, ptoisa_dtype_size((ptoisa_dtype)d->dtype));
    }
}

// Copies the valid region of s into d, from (row, col) on.
PTOISA_FN void ptoisa_tinsert(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *s,
                              uint32_t row, uint32_t col) {
    const ptoisa_op op = PTOISA_TINSERT;
    if (PTOISA_CHECKED && (!ptoisa_check_path(core, op, d, s) ||
                           !ptoisa_check_part(core, op, "d", row, col, s->valid_rows, s->valid_cols,
                                              d->rows, d->cols))) {
        return;
    }
    ptoisa_issue(core, op, d, s, NULL);
    if (!core->is_dry) {
        ptoisa_transfer(ptoisa_view_from(ptoisa_view_of(d), row, col), (ptoisa_dtype)d->dtype,
                        ptoisa_view_of(s), (ptoisa_dtype)s->dtype, s->valid_rows, s->valid_cols,
                        NULL);
    }
}

// -- printing -------------------------------------------------------------------------------------

// Prints the valid elements of a tile, a row a line, to a stream; costs nothing.
PTOISA_FN void ptoisa_tprint(ptoisa_core *core, FILE *to, const ptoisa_tile *s) {
    if (core->is_dry || (PTOISA_CHECKED && !ptoisa_check_tile(core, PTOISA_NOP, "TPRINT: s", s))) {
        return;
    }
    fprintf(to, "%s %u x %u of %u x %u in %s\n", ptoisa_dtype_name((ptoisa_dtype)s->dtype),
            s->valid_rows, s->valid_cols, s->rows, s->cols,
            ptoisa_memory_name((ptoisa_memory)s->memory));
    for (uint32_t r = 0; r < s->valid_rows; r++) {
        for (uint32_t c = 0; c < s->valid_cols; c++) {
            fprintf(to, "%s%s", c ? " " : "", pwsp_general(ptoisa_get(s, r, c), 9).text);
        }
        fputs("\n", to);
    }
}

// -- quantising moves out of L0C ------------------------------------------------------------------

// Moves rows x cols elements of acc from (row, col) of it, or to (row, col) of d (is_insert), each
// scaled: by scale, or with fp by the scale of its column, counted from the first that is moved.
PTOISA_FN void ptoisa_move_quant(ptoisa_core *core, ptoisa_op op, const ptoisa_tile *d,
                                 const ptoisa_tile *acc, uint32_t row, uint32_t col, float scale,
                                 const ptoisa_tile *fp, bool relu) {
    const bool is_insert = op == PTOISA_TINSERT;
    const uint32_t rows = is_insert ? acc->valid_rows : d->valid_rows;
    const uint32_t cols = is_insert ? acc->valid_cols : d->valid_cols;
    if (PTOISA_CHECKED) {
        if (!ptoisa_check_tile(core, op, "d", d) ||
            !ptoisa_check_acc(core, op, acc, d->dtype, true)) {
            return;
        }
        if (d->memory != PTOISA_MAT && d->memory != PTOISA_VEC) {
            ptoisa_fault(core, op, "there is no way from L0C (s) to %s (d)",
                         ptoisa_memory_name((ptoisa_memory)d->memory));
            return;
        }
        if ((d->memory == PTOISA_VEC && !ptoisa_check_a5(core, op, "the way from L0C to UB")) ||
            (fp &&
             !ptoisa_check_operand(core, op, "fp", fp, PTOISA_SET_64, PTOISA_SCALING, 1, cols)) ||
            !ptoisa_check_part(core, op, is_insert ? "d" : "the valid part of s", row, col, rows,
                               cols, is_insert ? d->rows : acc->valid_rows,
                               is_insert ? d->cols : acc->valid_cols)) {
            return;
        }
        if (op == PTOISA_TMOV && (d->rows != acc->rows || d->cols != acc->cols)) {
            ptoisa_fault(core, op, "d has %u x %u elements, s %u x %u", d->rows, d->cols, acc->rows,
                         acc->cols);
            return;
        }
    }
    ptoisa_issue(core, op, d, acc, NULL);
    if (core->is_dry) {
        return;
    }
    const ptoisa_fixpipe how = {relu, false, true, scale,
                                fp ? (const ptoisa_any_u64 *)fp->data : NULL};
    ptoisa_transfer(ptoisa_view_from(ptoisa_view_of(d), is_insert ? row : 0, is_insert ? col : 0),
                    (ptoisa_dtype)d->dtype,
                    ptoisa_view_from(ptoisa_view_of(acc), is_insert ? 0 : row, is_insert ? 0 : col),
                    (ptoisa_dtype)acc->dtype, rows, cols, &how);
}

// The same conversions as of TSTORE: to i8 or u8, and of i32 to f16.
PTOISA_FN void ptoisa_tmov_quant(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *acc,
                                 float scale, bool relu) {
    ptoisa_move_quant(core, PTOISA_TMOV, d, acc, 0, 0, scale, NULL, relu);
}

PTOISA_FN void ptoisa_tmov_fp(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *acc,
                              const ptoisa_tile *fp, bool relu) {
    ptoisa_move_quant(core, PTOISA_TMOV, d, acc, 0, 0, 0, fp, relu);
}

PTOISA_FN void ptoisa_textract_quant(ptoisa_core *core, const ptoisa_tile *d,
                                     const ptoisa_tile *acc, float scale, uint32_t row,
                                     uint32_t col, bool relu) {
    ptoisa_move_quant(core, PTOISA_TEXTRACT, d, acc, row, col, scale, NULL, relu);
}

PTOISA_FN void ptoisa_textract_fp(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *acc,
                                  const ptoisa_tile *fp, uint32_t row, uint32_t col, bool relu) {
    ptoisa_move_quant(core, PTOISA_TEXTRACT, d, acc, row, col, 0, fp, relu);
}

PTOISA_FN void ptoisa_tinsert_quant(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *acc,
                                    float scale, uint32_t row, uint32_t col, bool relu) {
    ptoisa_move_quant(core, PTOISA_TINSERT, d, acc, row, col, scale, NULL, relu);
}

PTOISA_FN void ptoisa_tinsert_fp(ptoisa_core *core, const ptoisa_tile *d, const ptoisa_tile *acc,
                                 const ptoisa_tile *fp, uint32_t row, uint32_t col, bool relu) {
    ptoisa_move_quant(core, PTOISA_TINSERT, d, acc, row, col, 0, fp, relu);
}

#endif
