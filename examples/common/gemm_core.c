#include "gemm_core.h"

ptowsp_kernel gemm_core_make(ptowsp_module *m, const char *name, const gemm_core *g) {
    ptowsp_body_desc desc = {.name = name, .machine = g->machine, .is_fused = g->out == PTOWSP_F16};
    ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
    ptowsp_value a = ptowsp_tile_in(k, "a", PTOWSP_F16, g->rows, g->depth);
    ptowsp_value b = ptowsp_tile_in(k, "b", PTOWSP_F16, g->depth, g->cols);
    ptowsp_value c = ptowsp_tile_out(k, "c", g->out, g->rows, g->cols);
    ptowsp_value zero = ptowsp_tile_full(k, PTOWSP_F32, GEMM_CORE_ROWS, GEMM_CORE_COLS, 0);
    ptowsp_value start = ptowsp_tile_const(k, 0), sum = zero;
    PTOWSP_TILE_LOOP(k, i, start, ptowsp_tile_rows(a), GEMM_CORE_ROWS) {
        PTOWSP_TILE_LOOP(k, j, start, ptowsp_tile_cols(b), GEMM_CORE_COLS) {
            PTOWSP_TILE_LOOP(k, at, start, ptowsp_tile_cols(a), g->panel) {
                ptowsp_value left = ptowsp_tile_slice_at(a, i, at, GEMM_CORE_ROWS, g->panel);
                ptowsp_value right = ptowsp_tile_slice_at(b, at, j, g->panel, GEMM_CORE_COLS);
                sum = ptowsp_tile_carry(zero);
                ptowsp_tile_next(sum, ptowsp_tile_matmul_acc(sum, left, right));
            }
            ptowsp_tile_store_at(c, i, j, sum);
        }
    }
    return ptowsp_kernel_end(k);
}
