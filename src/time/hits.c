// Which bytes of tasks hit L2.
//
// A tensor is cut into at most 16 x 16 cells of at least 64 KiB and 128 columns. Cells are moved in passes,
// each of as many bytes as the cell has, in the order in which tasks begin. The first pass misses. Tasks
// that begin at the same time share the misses of a cell by the bytes that each moves of it, as lanes in
// step do: the one ahead waits for HBM, the others find its bytes in L2.
//
// Bytes that are moved again after d others hit as far as L2 still holds them:
//
//      hits  1 |-----.
//              |       `.          L2 is not exactly the least recently used bytes: sets fill unevenly,
//              |         `.        and stores come in between
//            0 +-----|-----|-- d
//                   l2/2   l2
//
//      a later pass      d: the bytes missed since the pass before it began
//      a written tile    d: the bytes of its tensor, which L2 takes and writes back later
//      a tile that a task reads again    d: the bytes of this tensor that running tasks have, and of
//                        their other tiles as many as they move in one pass over this one; the misses
//                        are shared as the tile is
//
// Cells of tasks that begin at the same time are decided one after the other, in the order in which these
// tasks begin: the misses of one cell are among the bytes between two passes over the next.

#include "hits.h"

#define PWSP_CELLS          16
#define PWSP_CELL_BYTES_MIN (64u << 10)
#define PWSP_CELL_COLS_MIN  128  // narrower ones would cut most tiles

// -- life -----------------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_hits_init(pwsp_hits *hits, const pwsp_memory *memory,
                                  const pwsp_timed *timed) {
    memset(hits, 0, sizeof *hits);
    hits->memory = *memory;
    hits->l2_bytes = timed->schedule.shared.l2_bytes;
    hits->tensor_count = timed->tensor_count;
    return hits->l2_bytes == 0 || PWSP_ALLOC(memory, hits->tensors, hits->tensor_count);
}

PWSP_INTERNAL void pwsp_hits_begin(pwsp_hits *hits) {
    for (uint32_t i = 0; i < hits->tensor_count && hits->tensors; i++) {
        const pwsp_hits_tensor kept = hits->tensors[i];
        memset(&hits->tensors[i], 0, sizeof kept);
        hits->tensors[i].cells = kept.cells;
        hits->tensors[i].cell_capacity = kept.cell_capacity;
    }
    hits->missed_bytes = hits->round = 0;
}

// -- cells ----------------------------------------------------------------------------------------

#define PWSP_HITS_SIDE_MAX (INT64_C(1) << 46)  // rows, columns

static int64_t pwsp_hits_min(int64_t a, int64_t b) {
    return a < b ? a : b;
}

// Is a leading dimension more than one matrix?
static bool pwsp_hits_leads(const pwsp_bound_tensor *bound, uint32_t i) {
    return bound->lead_shape[i] > 1 && bound->lead_strides[i] != 0;
}

static uint64_t pwsp_hits_stride(const pwsp_bound_tensor *bound, uint32_t i) {
    const int64_t stride = bound->lead_strides[i];
    return stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
}

// The number of a matrix in memory, whatever the strides: digits of the offset, largest stride first.
static int64_t pwsp_hits_matrix(const pwsp_bound_tensor *bound, int64_t lead) {
    uint64_t left = (uint64_t)lead, number = 0;
    uint32_t done = 0;
    for (uint32_t i = 0; i < PWSP_TENSOR_LEAD_MAX; i++) {
        left += bound->lead_strides[i] < 0 && pwsp_hits_leads(bound, i)
                    ? (uint64_t)(bound->lead_shape[i] - 1) * pwsp_hits_stride(bound, i)
                    : 0;
    }
    for (;;) {
        uint32_t most = PWSP_TENSOR_LEAD_MAX;
        for (uint32_t i = 0; i < PWSP_TENSOR_LEAD_MAX; i++) {
            if (!(done >> i & 1) && pwsp_hits_leads(bound, i) &&
                (most == PWSP_TENSOR_LEAD_MAX ||
                 pwsp_hits_stride(bound, i) > pwsp_hits_stride(bound, most))) {
                most = i;
            }
        }
        if (most == PWSP_TENSOR_LEAD_MAX) {
            return (int64_t)number;
        }
        const uint64_t size = (uint64_t)bound->lead_shape[most];
        const uint64_t digit = pwsp_min_u64(left / pwsp_hits_stride(bound, most), size - 1);
        done |= 1u << most;
        left -= digit * pwsp_hits_stride(bound, most);
        number = number * size + digit;
    }
}

// A product, or 2^62 if it is more.
static uint64_t pwsp_hits_product(uint64_t a, uint64_t b) {
    uint64_t product;
    return pwsp_mul_fits(a, b, &product) ? pwsp_min_u64(product, UINT64_C(1) << 62)
                                         : UINT64_C(1) << 62;
}

// Cells of a matrix with so many rows and columns; its sizes are bound by now. False when memory is out.
static bool pwsp_hits_cut_tensor(pwsp_hits *hits, pwsp_hits_tensor *of,
                                 const pwsp_bound_tensor *bound) {
    uint64_t rows = (uint64_t)bound->rows;
    for (uint32_t i = 0; i < PWSP_TENSOR_LEAD_MAX; i++) {
        rows = pwsp_hits_leads(bound, i) ? pwsp_hits_product(rows, (uint64_t)bound->lead_shape[i])
                                         : rows;
    }
    of->rows = (int64_t)pwsp_min_u64(rows, PWSP_HITS_SIDE_MAX);
    of->cols = pwsp_hits_min(bound->cols, PWSP_HITS_SIDE_MAX);
    of->element_size = bound->element_size;
    of->size = pwsp_hits_product(pwsp_hits_product(rows, (uint64_t)bound->cols), of->element_size);
    const int64_t cells = (int64_t)pwsp_max_u64(of->size / PWSP_CELL_BYTES_MIN, 1);
    const int64_t down = pwsp_hits_min(pwsp_hits_min(of->rows, PWSP_CELLS), cells);
    const int64_t wide = pwsp_hits_min(of->cols / PWSP_CELL_COLS_MIN, PWSP_CELLS);
    const int64_t across =
        pwsp_hits_min(wide, cells / down) > 1 ? pwsp_hits_min(wide, cells / down) : 1;
    of->cell_rows = (of->rows + down - 1) / down;
    of->cell_cols = (of->cols + across - 1) / across;
    of->cells_down = (uint32_t)((of->rows + of->cell_rows - 1) / of->cell_rows);
    of->cells_across = (uint32_t)((of->cols + of->cell_cols - 1) / of->cell_cols);
    const uint32_t count = of->cells_down * of->cells_across;
    if (!PWSP_ROOM(&hits->memory, of->cells, of->cell_capacity, count)) {
        of->cells_down = 0;
        return false;
    }
    memset(of->cells, 0, count * sizeof *of->cells);
    for (uint32_t i = 0; i < count; i++) {
        const int64_t row = i / of->cells_across * of->cell_rows;
        const int64_t col = i % of->cells_across * of->cell_cols;
        const uint64_t size = pwsp_hits_product(
            pwsp_hits_product((uint64_t)pwsp_hits_min(of->rows - row, of->cell_rows),
                              (uint64_t)pwsp_hits_min(of->cols - col, of->cell_cols)),
            of->element_size);
        of->cells[i].size = pwsp_max_u64(size, 1);
    }
    return true;
}

// The cell that a whole tile is in, or NULL.
static pwsp_hits_cell *pwsp_hits_cell_of(const pwsp_hits_tensor *of, const pwsp_hits_tile *tile) {
    const int64_t bottom = tile->row + tile->rows, right = tile->col + tile->cols;
    if (!of->cells_down || tile->row < 0 || tile->col < 0 || bottom > of->rows ||
        right > of->cols) {
        return NULL;
    }
    const int64_t down = tile->row / of->cell_rows;
    const int64_t across = of->cells_across == 1 ? 0 : tile->col / of->cell_cols;
    const bool is_within =
        bottom <= (down + 1) * of->cell_rows && right <= (across + 1) * of->cell_cols;
    return is_within ? &of->cells[down * of->cells_across + across] : NULL;
}

PWSP_INTERNAL bool pwsp_hits_issue(pwsp_hits *hits, uint32_t task, const pwsp_arrival *arrival,
                                   const pwsp_bound_tensor *bound) {
    const uint32_t count = arrival->demand && hits->l2_bytes ? arrival->tile_count : 0;
    if (!PWSP_GROW_LITTLE(&hits->memory, hits->tile_counts, hits->node_capacity,
                          task + UINT64_C(1))) {
        return false;
    }
    if (count > hits->stride) {  // tiles of the tasks before move apart
        pwsp_hits_tile *tiles = NULL;
        if (!PWSP_ALLOC(&hits->memory, tiles, hits->node_capacity * count)) {
            return false;
        }
        const uint64_t nodes = hits->tile_capacity / pwsp_max_u64(hits->stride, 1);
        for (uint64_t i = 0; i < pwsp_min_u64(nodes, hits->node_capacity); i++) {
            memcpy(&tiles[i * count], &hits->tiles[i * hits->stride], hits->stride * sizeof *tiles);
        }
        PWSP_FREE(&hits->memory, hits->tiles, hits->tile_capacity);
        hits->tiles = tiles;
        hits->tile_capacity = hits->node_capacity * count;
        hits->stride = count;
    }
    if (!PWSP_GROW_LITTLE(&hits->memory, hits->tiles, hits->tile_capacity,
                          (task + UINT64_C(1)) * hits->stride)) {
        return false;
    }
    hits->tile_counts[task] = count;
    for (uint32_t i = 0; i < count; i++) {
        const pwsp_tile_at *at = &arrival->tiles[i];
        const pwsp_bound_tensor *of = &bound[at->tensor];
        const int64_t above = (int64_t)pwsp_hits_product((uint64_t)pwsp_hits_matrix(of, at->lead),
                                                         (uint64_t)of->rows);
        pwsp_hits_tile tile = {
            at->tensor,      at->rows, at->cols, (at->access & PWSP_TILE_READ) != 0,
            at->row + above, at->col,  NULL};
        if (!hits->tensors[at->tensor].cells_down && of->rows > 0 && of->cols > 0 &&
            !pwsp_hits_cut_tensor(hits, &hits->tensors[at->tensor], of)) {
            return false;
        }
        tile.cell = pwsp_hits_cell_of(&hits->tensors[at->tensor], &tile);
        hits->tiles[(uint64_t)task * hits->stride + i] = tile;
    }
    return true;
}

// Of `bytes` that are moved again after so many others, those that miss.
static uint64_t pwsp_hits_missed(const pwsp_hits *hits, uint64_t bytes, uint64_t others) {
    const uint64_t half = hits->l2_bytes / 2;
    return others <= half ? 0
           : others >= hits->l2_bytes
               ? bytes
               : pwsp_mul_div_u64(bytes, others - half, hits->l2_bytes - half);
}

// Moves so many bytes of a cell, and returns how many of them miss.
static uint64_t pwsp_hits_move(pwsp_hits *hits, pwsp_hits_cell *cell, uint64_t bytes) {
    uint64_t missed = 0;
    while (bytes > 0) {
        if (cell->moved >= cell->size) {
            cell->before = cell->begun;
            cell->begun = hits->missed_bytes;
            cell->moved = 0;
            cell->is_later = true;
        }
        const uint64_t now = pwsp_min_u64(bytes, cell->size - cell->moved);
        const uint64_t lost =
            cell->is_later ? pwsp_hits_missed(hits, now, hits->missed_bytes - cell->before) : now;
        cell->moved += now;
        bytes -= now;
        missed += lost;
        hits->missed_bytes += lost;
    }
    return missed;
}

// -- tiles ----------------------------------------------------------------------------------------

static uint64_t pwsp_hits_tile_bytes(const pwsp_hits *hits, const pwsp_hits_tile *tile) {
    return (uint64_t)tile->rows * tile->cols * hits->tensors[tile->tensor].element_size;
}

// A step over the cells of a tile.
typedef enum pwsp_hits_step {
    PWSP_HITS_ASK,   // they are asked for, and the tile is of a running task
    PWSP_HITS_TAKE,  // returns the tile's part of the misses
    PWSP_HITS_FIND,  // returns its bytes without those that other running tasks have as well
    PWSP_HITS_END    // the task has ended
} pwsp_hits_step;

static uint64_t pwsp_hits_unique(const pwsp_hits_cell *cell) {
    return pwsp_min_u64(cell->flying, cell->size);
}

static uint64_t pwsp_hits_do_cell(pwsp_hits *hits, pwsp_hits_tensor *of, pwsp_hits_cell *cell,
                                  uint64_t bytes, pwsp_hits_step step) {
    const uint64_t unique = pwsp_hits_unique(cell);
    switch (step) {
    case PWSP_HITS_ASK:
        if (cell->round != hits->round) {
            cell->round = hits->round;
            cell->asked = 0;
            cell->is_decided = false;
        }
        cell->asked += bytes;
        cell->flying += bytes;
        break;
    case PWSP_HITS_TAKE:
        if (PWSP_LIKELY(cell->is_decided && cell->missed == 0)) {
            return 0;
        }
        if (!cell->is_decided) {
            cell->missed = pwsp_hits_move(hits, cell, pwsp_min_u64(cell->asked, cell->size));
            cell->is_decided = true;
        }
        return cell->missed ? pwsp_mul_div_u64(cell->missed, bytes, cell->asked) : 0;
    case PWSP_HITS_FIND: return pwsp_mul_div_u64(unique, bytes, cell->flying);
    case PWSP_HITS_END: cell->flying -= bytes; break;
    }
    of->unique += pwsp_hits_unique(cell) - unique;
    return 0;
}

static int64_t pwsp_hits_clamp(int64_t at, int64_t end) {
    return at < 0 ? 0 : at > end ? end : at;
}

// Does a step to all cells of a tile, and returns the sum.
static uint64_t pwsp_hits_do(pwsp_hits *hits, const pwsp_hits_tile *tile, pwsp_hits_step step) {
    pwsp_hits_tensor *of = &hits->tensors[tile->tensor];
    if (PWSP_LIKELY(tile->cell != NULL)) {
        return pwsp_hits_do_cell(hits, of, tile->cell, pwsp_hits_tile_bytes(hits, tile), step);
    }
    const int64_t top = pwsp_hits_clamp(tile->row, of->rows);
    const int64_t bottom = pwsp_hits_clamp(tile->row + tile->rows, of->rows);
    const int64_t left = pwsp_hits_clamp(tile->col, of->cols);
    const int64_t right = pwsp_hits_clamp(tile->col + tile->cols, of->cols);
    uint64_t sum = 0;
    for (int64_t row = top; row < bottom;) {
        const int64_t down = row / of->cell_rows;
        const int64_t next_row = pwsp_hits_min((down + 1) * of->cell_rows, bottom);
        for (int64_t col = left; col < right;) {
            const int64_t across = col / of->cell_cols;
            const int64_t next_col = pwsp_hits_min((across + 1) * of->cell_cols, right);
            const uint64_t bytes =
                (uint64_t)((next_row - row) * (next_col - col)) * of->element_size;
            sum += pwsp_hits_do_cell(hits, of, &of->cells[down * of->cells_across + across], bytes,
                                     step);
            col = next_col;
        }
        row = next_row;
    }
    return sum;
}

// -- tasks ----------------------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_hits_next_round(pwsp_hits *hits) {
    hits->round++;
}

static const pwsp_hits_tile *pwsp_hits_tiles(const pwsp_hits *hits, uint32_t task) {
    return &hits->tiles[(uint64_t)task * hits->stride];
}

PWSP_INTERNAL void pwsp_hits_ask(pwsp_hits *hits, uint32_t task) {
    for (uint32_t i = 0; i < hits->tile_counts[task]; i++) {
        pwsp_hits_do(hits, &pwsp_hits_tiles(hits, task)[i], PWSP_HITS_ASK);
    }
}

PWSP_INTERNAL void pwsp_hits_end(pwsp_hits *hits, uint32_t task) {
    for (uint32_t i = 0; i < hits->tile_counts[task]; i++) {
        pwsp_hits_do(hits, &pwsp_hits_tiles(hits, task)[i], PWSP_HITS_END);
    }
}

// Of the bytes that a task reads again from one tile, those that miss, as its part of them.
static uint64_t pwsp_hits_take_again(pwsp_hits *hits, uint32_t task, const pwsp_demand *demand) {
    const pwsp_hits_tile *tiles = pwsp_hits_tiles(hits, task), *of = &tiles[demand->again_tile];
    const uint64_t size = pwsp_hits_tile_bytes(hits, of);
    uint64_t others = hits->tensors[of->tensor].unique;
    for (uint32_t i = 0; i < hits->tile_counts[task]; i++) {
        if (tiles[i].tensor != of->tensor) {
            others += hits->tensors[tiles[i].tensor].unique / demand->passes;
        }
    }
    const uint64_t missed = pwsp_hits_missed(hits, demand->again, others);
    const uint64_t own = pwsp_min_u64(pwsp_hits_do(hits, of, PWSP_HITS_FIND), size);
    return size ? pwsp_mul_div_u64(missed, own, size) : 0;
}

PWSP_INTERNAL uint64_t pwsp_hits_take(pwsp_hits *hits, uint32_t task, const pwsp_demand *demand) {
    const uint32_t count = hits->tile_counts[task];
    uint64_t missed = 0;
    for (uint32_t i = 0; i < count; i++) {
        const pwsp_hits_tile *tile = &pwsp_hits_tiles(hits, task)[i];
        const uint64_t size = hits->tensors[tile->tensor].size;
        const uint64_t lost = pwsp_hits_do(hits, tile, PWSP_HITS_TAKE);
        missed += tile->is_read ? lost : pwsp_hits_missed(hits, lost, size);
    }
    if (demand->again && demand->again_tile < count) {
        missed += pwsp_hits_take_again(hits, task, demand);
    }
    return count ? pwsp_min_u64(missed, demand->bytes) : demand->bytes;
}
