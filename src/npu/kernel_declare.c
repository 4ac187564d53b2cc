// The declarations of a kernel's C++, as text: sizes, tiles with their addresses, windows.

#include "kernels.h"

#include <stdio.h>

static void npu_print_size(const npu_kernel *k, const npu_size *size, npu_text *out) {
    const ptowsp_extent *e = &size->extent;
    const char *axis = e->axis ? "cols" : "rows";
    npu_print(out, "    const int %s = ", size->name);
    if (e->mul == 1 && e->shift == 0 && e->add == 0 && e->max == npu_param_size(k, e)) {
        npu_print(out, "wsp::%s(task, %u);\n", axis, e->param);
        return;
    }
    if (e->mul == 1 && e->shift == 0 && e->add <= 0) {
        if (e->add == 0) {
            npu_print(out, "wsp::least(%s_%s, %u);\n", k->params[e->param], axis, e->max);
        } else {
            npu_print(out, "wsp::part(%s_%s, %d, %u);\n", k->params[e->param], axis, -e->add,
                      e->max);
        }
        return;
    }
    npu_print(out, "wsp::extent(%s_%s, %d, %d, %u, %u);\n", k->params[e->param], axis, e->mul,
              e->add, e->shift, e->max);
}

NPU_INTERNAL void npu_kernel_print_constants(npu_kernel *k, npu_text *out) {
    static const char *const sizes = "ub\0 l1\0 l0a\0l0b\0l0c\0bt\0 fb\0 ";
    npu_print(out, "// Addresses of tiles in their memories.\n");
    for (uint32_t i = 1; i < k->info.tile_object_count; i++) {
        const npu_tile *tile = &k->tiles[i];
        if (tile->is_used && tile->first == i && tile->address == i) {
            npu_print(out, "constexpr uint32_t %s_at = %u;\n", tile->name, tile->object.address);
        }
    }
    npu_print(out, "\n// The end of the last one, and the capacity of %s.\n", k->info.machine.name);
    for (uint32_t memory = 0; memory < PTOWSP_MEMORY_COUNT; memory++) {
        uint32_t end = 0;
        for (uint32_t i = 1; i < k->info.tile_object_count; i++) {
            const ptowsp_tile_object *tile = &k->tiles[i].object;
            if (k->tiles[i].is_used && (uint32_t)tile->memory == memory) {
                uint32_t bytes = tile->rows * tile->cols * ptowsp_dtype_size(tile->dtype);
                end = tile->address + bytes > end ? tile->address + bytes : end;
            }
        }
        if (end > 0) {
            const char *name = sizes + 4 * memory;
            npu_print(out, "constexpr uint32_t %s_end = %u;\n", name, end);
            uint32_t limit = k->info.machine.memory_bytes[memory];
            bool is_kib = limit % 1024 == 0;
            npu_print(out, "static_assert(%s_end <= %u%s, \"%s is full\");\n", name,
                      is_kib ? limit / 1024 : limit, is_kib ? " * 1024" : "",
                      ptowsp_memory_name((ptowsp_memory)memory));
        }
    }
}

// The fixed part of a tile's type, up to its valid sizes. Returns whether it is an alias.
static bool npu_print_tile_type(const npu_kernel *k, const ptowsp_tile_object *tile,
                                npu_text *out) {
    bool is_a5 = k->info.machine.family == PTOWSP_FAMILY_A5;
    ptowsp_layout left = is_a5 ? PTOWSP_LAYOUT_NZ : PTOWSP_LAYOUT_ZZ;
    const char *alias =
        tile->pad                                                               ? NULL
        : tile->memory == PTOWSP_MEMORY_L0A && tile->layout == left             ? "TileLeft"
        : tile->memory == PTOWSP_MEMORY_L0B && tile->layout == PTOWSP_LAYOUT_ZN ? "TileRight"
        : tile->memory == PTOWSP_MEMORY_L0C && tile->layout == PTOWSP_LAYOUT_NZ ? "TileAcc"
                                                                                : NULL;
    if (alias) {
        npu_print(out, "%s<%s, %u, %u", alias, npu_cpp_type(tile->dtype), tile->rows, tile->cols);
        return true;
    }
    const char *type = tile->memory == PTOWSP_MEMORY_UB     ? "Vec"
                       : tile->memory == PTOWSP_MEMORY_L1   ? "Mat"
                       : tile->memory == PTOWSP_MEMORY_L0A  ? "Left"
                       : tile->memory == PTOWSP_MEMORY_L0B  ? "Right"
                       : tile->memory == PTOWSP_MEMORY_L0C  ? "Acc"
                       : tile->memory == PTOWSP_MEMORY_BIAS ? "Bias"
                                                            : "Scaling";
    bool is_by_col = tile->layout == PTOWSP_LAYOUT_COL_MAJOR || tile->layout == PTOWSP_LAYOUT_NZ ||
                     tile->layout == PTOWSP_LAYOUT_NN;
    npu_print(out, "Tile<TileType::%s, %s, %u, %u, BLayout::%s", type, npu_cpp_type(tile->dtype),
              tile->rows, tile->cols, is_by_col ? "ColMajor" : "RowMajor");
    return false;
}

// Declares a tile with these valid sizes, names or numbers, and binds it.
static void npu_print_tile(npu_kernel *k, uint32_t i, const char *name, const char *rows,
                           const char *cols, npu_text *out) {
    const ptowsp_tile_object *tile = &k->tiles[i].object;
    npu_text text = {NULL, 0, 0, false};
    bool is_alias = npu_print_tile_type(k, tile, &text);
    bool is_rows_fixed = rows[0] >= '0' && rows[0] <= '9';
    bool is_cols_fixed = cols[0] >= '0' && cols[0] <= '9';
    npu_print(&text, ", %s, %s", is_rows_fixed ? rows : "-1", is_cols_fixed ? cols : "-1");
    bool is_boxed = tile->layout >= PTOWSP_LAYOUT_NZ;
    if (!is_alias && (is_boxed || tile->pad)) {
        bool is_inner_row = tile->layout == PTOWSP_LAYOUT_NZ || tile->layout == PTOWSP_LAYOUT_ZZ;
        npu_print(&text, ", SLayout::%s, %d",
                  !is_boxed      ? "NoneBox"
                  : is_inner_row ? "RowMajor"
                                 : "ColMajor",
                  tile->memory == PTOWSP_MEMORY_L0C ? 1024 : 512);
        if (tile->pad) {
            npu_print(&text, ", PadValue::%s",
                      tile->pad == 1   ? "Zero"
                      : tile->pad == 2 ? "Max"
                                       : "Min");
        }
    }
    npu_print(&text, "> %s", name);
    if (!is_rows_fixed || !is_cols_fixed) {
        npu_print(&text, "(%s%s%s)", is_rows_fixed ? "" : rows,
                  !is_rows_fixed && !is_cols_fixed ? ", " : "", is_cols_fixed ? "" : cols);
    }
    npu_print(&text, ";");
    npu_print_wrapped(out, 4, text.data ? text.data : "");
    npu_print(out, "    TASSIGN(%s, %s_at);\n", name, k->tiles[k->tiles[i].address].name);
    k->is_out_of_memory = k->is_out_of_memory || text.is_out_of_memory;
    npu_text_free(&text);
}

static void npu_print_windows(const npu_kernel *k, npu_text *out) {
    if (k->window_count == 0) {
        return;
    }
    npu_print(out, "\n    // Its loads and stores.\n");
    for (int is_column = 0; is_column < 2; is_column++) {
        bool is_any = false;
        for (uint32_t i = 0; i < k->info.tile_count; i++) {
            if (k->is_dense[i][is_column]) {
                npu_print(out,
                          is_any      ? ", %u"
                          : is_column ? "    WSP_REQUIRE_COLUMNS(task, %u"
                                      : "    WSP_REQUIRE_ROWS(task, %u",
                          i);
                is_any = true;
            }
        }
        npu_print(out, "%s", is_any ? ");\n" : "");
    }
    for (uint32_t i = 0; i < k->window_count; i++) {
        const npu_window *window = &k->windows[i];
        char text[4 * NPU_SIZE_TEXT_MAX];
        snprintf(text, sizeof text, "auto %s = wsp::%s<%s>(task, %u, %u, %u, %s, %s);",
                 window->name, window->is_column ? "columns" : "window",
                 npu_cpp_type(k->info.tiles[window->param].dtype), window->param, window->row,
                 window->col, window->rows, window->cols);
        npu_print_wrapped(out, 4, text);
    }
}

NPU_INTERNAL void npu_kernel_print_declarations(npu_kernel *k, const char *checks, npu_text *out) {
    npu_text tiles = {NULL, 0, 0, false};  // these add sizes, which come before them
    for (uint32_t i = 1; i < k->info.tile_object_count; i++) {
        const npu_tile *tile = &k->tiles[i];
        char rows[NPU_LOCAL_MAX], cols[NPU_LOCAL_MAX];
        if (tile->is_used && tile->first == i) {
            npu_kernel_size(k, &tile->object.valid_rows, rows);
            npu_kernel_size(k, &tile->object.valid_cols, cols);
            npu_print_tile(k, i, tile->name, rows, cols, &tiles);
        }
    }
    for (uint32_t i = 0; i < k->clip_count; i++) {
        const npu_clip *clip = &k->clips[i];
        npu_print_tile(k, clip->tile, clip->name, clip->rows, clip->cols, &tiles);
    }
    for (uint32_t i = 0; i < k->info.scalar_count; i++) {
        if (k->is_scalar_used[i]) {
            uint32_t dtype = k->info.scalar_dtypes[i];
            npu_print(out, "    const auto %s = wsp::scalar_%s(task, %u);\n", k->scalars[i],
                      dtype == PTOWSP_F32   ? "f32"
                      : dtype == PTOWSP_F64 ? "f64"
                      : dtype == PTOWSP_I64 ? "i64"
                                            : "u64",
                      i);
        }
    }
    for (uint32_t i = 0; i < k->size_count; i++) {
        npu_print_size(k, &k->sizes[i], out);
    }
    npu_print(out, "%s", checks ? checks : "");
    npu_print_windows(k, out);
    npu_print(out, "\n    // Its tiles.\n");
    npu_write(out, tiles.data ? tiles.data : "", tiles.size);
    k->is_out_of_memory = k->is_out_of_memory || tiles.is_out_of_memory;
    npu_text_free(&tiles);
    if (k->has_lists) {
        npu_print(out, "    MrgSortExecutedNumList taken;  // counts of each list, unused\n");
    }
}
