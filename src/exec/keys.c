// Keys of tiles, a column at a time: the key of a view's tile is a sum of what its tensor and each of its
// indices and offsets contribute.
//
//      key = tensor << 32 | ((i0 * m0 + i1 * m1) * row_tiles + row / rows) * col_tiles + col / cols
//
// So there is one product for each value that changes from task to task, and a division, by an inverse,
// for each offset that does.

#include "keys.h"

#include "../runtime/grid.h"

static bool pwsp_keys_is_in_grid(const pwsp_deps *deps, const pwsp_stretch_view *at) {
    const pwsp_tile_view *view = at->view;
    const uint32_t id = view->tensor;
    if (deps->tensors[id].form != PWSP_DEPS_GRID || view->has_limit) {
        return false;
    }
    const pwsp_deps_grid *grid = &deps->grids[id];
    const uint64_t rows = grid->matrix_rows, cols = grid->matrix_cols;
    return (view->rows ? pwsp_min_u64((uint64_t)view->rows, rows) : rows) == grid->rows &&
           (view->cols ? pwsp_min_u64((uint64_t)view->cols, cols) : cols) == grid->cols;
}

PWSP_INTERNAL bool pwsp_keys_are_in_grids(const pwsp_deps *deps, const pwsp_stretch *stretch) {
    bool are_in_grids = !deps->is_list_lost;
    for (uint32_t i = 0; i < stretch->view_count && are_in_grids; i++) {
        are_in_grids = pwsp_keys_is_in_grid(deps, &stretch->views[i]);
    }
    return are_in_grids;
}

// A value of a view: what it contributes to a key is value / size * factor.
typedef struct pwsp_keys_part {
    pwsp_source source;
    uint64_t size, inverse, factor;
} pwsp_keys_part;

typedef struct pwsp_keys_column {
    uint64_t *keys;
    uint32_t step, count;
    uint64_t misfits;  // 0: all values so far are multiples of their sizes
} pwsp_keys_column;

// What one value contributes, which is a multiple of its part's size if no bit of *misfits is set.
PWSP_FORCE_INLINE uint64_t pwsp_keys_share(const pwsp_keys_part *part, uint64_t value,
                                           uint64_t *misfits) {
    const uint64_t tile = value * part->inverse >> 32;
    *misfits |= tile * part->size ^ value;
    return tile * part->factor;
}

// Adds a part that counts up from a value, or is along a column, to the keys.
PWSP_FORCE_INLINE void pwsp_keys_add_as(pwsp_keys_column *column, const pwsp_keys_part *part,
                                        const uint64_t *values, uint64_t first, bool is_counted,
                                        bool is_whole) {
    const uint64_t factor = part->factor;
    const uint32_t count = column->count, step = column->step;
    uint64_t *key = column->keys, misfits = 0;
#pragma GCC unroll 4
    for (uint32_t i = 0; i < count; i++, key += step) {
        const uint64_t value = is_counted ? first + i : values[i];
        *key += is_whole ? value * factor : pwsp_keys_share(part, value, &misfits);
    }
    column->misfits |= misfits;
}

static void pwsp_keys_add(pwsp_keys_column *column, const pwsp_keys_part *part,
                          const uint64_t *values, uint64_t first) {
    const bool is_whole = part->size == 1;
    if (values) {
        is_whole ? pwsp_keys_add_as(column, part, values, 0, false, true)
                 : pwsp_keys_add_as(column, part, values, 0, false, false);
    } else {
        is_whole ? pwsp_keys_add_as(column, part, NULL, first, true, true)
                 : pwsp_keys_add_as(column, part, NULL, first, true, false);
    }
}

// The parts of a view, and what its tensor contributes. Returns their number.
static uint32_t pwsp_keys_parts(const pwsp_deps *deps, const pwsp_stretch_view *at,
                                pwsp_keys_part *parts, uint64_t *out_base) {
    const pwsp_deps_grid *grid = &deps->grids[at->view->tensor];
    const uint64_t matrix_tiles = grid->row_tiles * grid->col_tiles;
    uint32_t count = 0;
    *out_base = pwsp_deps_grid_key(at->view->tensor, 0);
    for (uint32_t i = 0; i < at->view->lead; i++) {
        if (at->tensor->lead_shape[i] > 1) {
            const uint64_t stride = (uint64_t)at->tensor->lead_strides[i];
            const uint64_t matrices = (stride >> grid->place_shift) * grid->place_factor;
            const pwsp_keys_part part = {at->index[i], 1, UINT64_C(1) << 32,
                                         matrices * matrix_tiles};
            parts[count++] = part;
        }
    }
    if (at->row.at) {
        const pwsp_keys_part part = {at->row, grid->rows, grid->row_inverse, grid->col_tiles};
        parts[count++] = part;
    }
    if (at->col.at) {
        const pwsp_keys_part part = {at->col, grid->cols, grid->col_inverse, 1};
        parts[count++] = part;
    }
    return count;
}

PWSP_INTERNAL bool pwsp_keys_find(const pwsp_deps *deps, const pwsp_stretch *stretch,
                                  uint64_t begin, uint32_t count, uint64_t *keys,
                                  uint8_t *accesses) {
    const uint64_t *counted = stretch->indices ? stretch->entry : stretch->variable;
    uint64_t misfits = 0;
    for (uint32_t j = 0; j < stretch->view_count; j++) {
        pwsp_keys_part parts[PWSP_TENSOR_LEAD_MAX + 2];
        pwsp_keys_column column = {keys + j, stretch->view_count, count, 0};
        uint64_t base;
        const uint32_t part_count = pwsp_keys_parts(deps, &stretch->views[j], parts, &base);
        for (uint32_t k = 0; k < part_count; k++) {
            const pwsp_source source = parts[k].source;
            if (source.step == 0 && source.at != counted) {
                base += pwsp_keys_share(&parts[k], *source.at, &column.misfits);
            }
        }
        uint64_t *key = column.keys;
#pragma GCC unroll 4
        for (uint32_t i = 0; i < count; i++, key += column.step) {
            *key = base;
        }
        for (uint32_t k = 0; k < part_count; k++) {
            const pwsp_source source = parts[k].source;
            if (source.at == counted) {
                pwsp_keys_add(&column, &parts[k], NULL, stretch->first + begin);
            } else if (source.step) {
                pwsp_keys_add(&column, &parts[k], source.at + begin, 0);
            }
        }
        accesses[j] = (uint8_t)stretch->views[j].view->access;
        misfits |= column.misfits;
    }
    return misfits == 0;
}

PWSP_INTERNAL bool pwsp_keys_of_tiles(const pwsp_deps *deps, const pwsp_tile_at *tiles,
                                      uint32_t count, uint64_t *keys) {
    bool are_in_grids = !deps->is_list_lost;
    for (uint32_t i = 0; i < count && are_in_grids; i++) {
        const uint32_t tensor = tiles[i].tensor;
        uint64_t number = 0;
        are_in_grids = deps->tensors[tensor].form == PWSP_DEPS_GRID &&
                       pwsp_deps_grid_number(&deps->grids[tensor], &tiles[i], &number);
        keys[i] = pwsp_deps_grid_key(tensor, number);
    }
    return are_in_grids;
}
