// The declarations of a kernel's C++, as text: sizes, tiles with their addresses, windows.

#include "kernels.h"

#include <stdio.h>

NPU_INTERNAL void npu_kernel_print_extent(const npu_kernel *k, const ptowsp_extent *e,
                                          npu_text *out) {
    const char *axis = e->axis ? "cols" : "rows";
    char index[16] = "", whole[NPU_SIZE_TEXT_MAX + 32];
    if (e->param == PTOWSP_NO_PARAM) {
        npu_print(out, "%u", e->max);
        return;
    }
    snprintf(whole, sizeof whole, "%s_%s", k->params[e->param], axis);
    if (e->loop) {
        snprintf(index, sizeof index, "i_%u", e->loop);
        const ptowsp_loop_info *loop = &k->info->loops[e->loop];
        if (loop->end.tile != e->param || loop->end.axis != e->axis) {
            snprintf(whole, sizeof whole, "wsp::least(%s_%s, loop_%u.end)", k->params[e->param],
                     axis, e->loop);
        }
    } else if (npu_extent_is_plain(k, e)) {
        npu_print(out, "wsp::%s(task, %u)", axis, e->param);
        return;
    }
    if (e->mul == 1 && e->shift == 0 && e->add <= 0) {
        if (e->add == 0 && e->loop) {
            npu_print(out, "wsp::part(%s, %s, %u)", whole, index, e->max);
        } else if (e->add == 0) {
            npu_print(out, "wsp::least(%s, %u)", whole, e->max);
        } else {
            npu_print(out, "wsp::part(%s, %s%s%d, %u)", whole, index, e->loop ? " + " : "", -e->add,
                      e->max);
        }
        return;
    }
    npu_print(out, "wsp::extent(%s%s%s, %d, %d, %u, %u)", whole, e->loop ? " - " : "", index,
              e->mul, e->add, e->shift, e->max);
}

static void npu_print_size(const npu_kernel *k, const npu_size *size, uint32_t indent,
                           npu_text *out) {
    npu_print(out, "%*sconst int %s = ", (int)indent, "", size->name);
    npu_kernel_print_extent(k, &size->extent, out);
    npu_print(out, ";\n");
}

// A bound of a loop, as a task has it.
static void npu_print_bound(const npu_kernel *k, const ptowsp_loop_bound *bound, npu_text *out) {
    if (bound->scalar != PTOWSP_NO_PARAM) {
        bool is_signed = k->info->scalar_dtypes[bound->scalar] == PTOWSP_I64;
        npu_print(out,
                  is_signed ? "wsp::scalar_i64(task, %u)" : "wsp::bound(wsp::scalar_u64(task, %u))",
                  bound->scalar);
    } else if (bound->tile != PTOWSP_NO_PARAM) {
        npu_print(out, "wsp::%s(task, %u)", bound->axis ? "cols" : "rows", bound->tile);
    } else {
        npu_print(out, "%lld", (long long)bound->value);
    }
}

NPU_INTERNAL void npu_kernel_print_loops(npu_kernel *k, uint32_t number, npu_text *out) {
    npu_text sum = {NULL, 0, 0, false};
    npu_print(&sum, "%u", k->info->insn_count);
    for (uint32_t i = 1; i <= k->info->loop_count; i++) {
        const ptowsp_loop_info *loop = &k->info->loops[i];
        if (!npu_kernel_has_loop(k, i) || (k->half == NPU_HALF_ANY && loop->late_of)) {
            continue;
        }
        npu_print(out, "    const wsp::Loop loop_%u = wsp::loop(", i);
        npu_print_bound(k, &loop->begin, out);
        npu_print(out, ", ");
        npu_print_bound(k, &loop->end, out);
        npu_print(out, ", %lld);\n", (long long)loop->step);
        if (k->half != NPU_HALF_ANY) {
            continue;
        }
        npu_print(out, "    const int64_t runs_%u = ", i);
        if (loop->parent) {
            npu_print(out, "runs_%u * ", loop->parent);
        }
        if (loop->preload) {
            npu_print(out, "loop_%u.turns(%u);\n", i, loop->preload);
        } else {
            npu_print(out, "loop_%u.count;\n", i);
        }
        npu_print(&sum, " + %u * runs_%u", loop->insn_count, i);
        npu_text check = {NULL, 0, 0, false};
        // With more runs than that the sum might overflow.
        npu_print(&check,
                  "WSP_CHECK(task, %u, loop_%u.is_good && runs_%u <= PTOWSP_TASK_INSN_MAX && "
                  "%s <= PTOWSP_TASK_INSN_MAX);",
                  number++, i, i, sum.data ? sum.data : "");
        npu_append_wrapped(out, 4, &check);
    }
    npu_text_end(out, &sum);
}

NPU_INTERNAL void npu_kernel_print_constants(npu_kernel *k, npu_text *out) {
    static const char *const sizes = "ub\0 l1\0 l0a\0l0b\0l0c\0bt\0 fb\0 ";
    npu_print(out, "// Addresses of tiles in their memories.\n");
    for (uint32_t i = 1; i < k->info->tile_object_count; i++) {
        const npu_tile *tile = &k->tiles[i];
        if (tile->is_used && tile->first == i && tile->address == i &&
            npu_kernel_has_memory(k, tile->object.memory)) {
            npu_print(out, "constexpr uint32_t %s_at = %u;\n", tile->name, tile->object.address);
        }
    }
    uint32_t ends[PTOWSP_MEMORY_COUNT];
    memcpy(ends, k->ends, sizeof ends);
    if (k->column_rows && npu_kernel_has_memory(k, PTOWSP_MEMORY_UB)) {
        uint32_t at = (ends[PTOWSP_MEMORY_UB] + 31) / 32 * 32;
        npu_print(out,
                  "constexpr uint32_t columns_at = %u;  // of columns that do not lie together\n",
                  at);
        ends[PTOWSP_MEMORY_UB] = at + 64 * k->column_rows;
    }
    if (k->zero_bytes && npu_kernel_has_memory(k, PTOWSP_MEMORY_L1)) {
        uint32_t at = (ends[PTOWSP_MEMORY_L1] + 31) / 32 * 32;
        npu_print(out, "constexpr uint32_t zeros_at = %u;  // of products without a sum\n", at);
        ends[PTOWSP_MEMORY_L1] = at + k->zero_bytes;
    }
    npu_print(out, "\n// The end of the last one, and the capacity of %s.\n",
              k->info->machine.name);
    for (uint32_t memory = 0; memory < PTOWSP_MEMORY_COUNT; memory++) {
        uint32_t end = ends[memory];
        if (end > 0 && npu_kernel_has_memory(k, (ptowsp_memory)memory)) {
            const char *name = sizes + 4 * memory;
            npu_print(out, "constexpr uint32_t %s_end = %u;\n", name, end);
            uint32_t limit = k->info->machine.memory_bytes[memory];
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
    bool is_a5 = k->info->machine.family == PTOWSP_FAMILY_A5;
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

NPU_INTERNAL void npu_kernel_print_address(const npu_kernel *k, uint32_t tile, npu_text *out) {
    const ptowsp_tile_object *object = &k->tiles[tile].object;
    const char *at = k->tiles[k->tiles[tile].address].name;
    if (object->loop && object->places > 2) {
        npu_print(out, "wsp::place(%s_at, %u, n_%u%s, %u)", at, object->step, object->loop,
                  object->is_late ? " + 1" : "", object->places);
    } else if (object->loop) {
        npu_print(out, "wsp::place(%s_at, %u, n_%u%s)", at, object->step, object->loop,
                  object->is_late ? " + 1" : "");
    } else {
        npu_print(out, "%s_at", at);
    }
}

// Declares a tile with these valid sizes, names or numbers, and binds it.
static void npu_print_tile(npu_kernel *k, uint32_t i, const char *name, const char *rows,
                           const char *cols, uint32_t indent, npu_text *out) {
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
    npu_append_wrapped(out, indent, &text);
    npu_print(out, "%*sTASSIGN(%s, ", (int)indent, "", name);
    npu_kernel_print_address(k, i, out);
    npu_print(out, ");\n");
}

// "16" or "i_1": a window begins at a number, or at a loop's index.
static void npu_print_start(char text[NPU_SIZE_TEXT_MAX], uint32_t start, uint32_t loop) {
    PTOWSP_ASSERT(loop == 0 || start == 0);
    snprintf(text, NPU_SIZE_TEXT_MAX, loop ? "i_%u" : "%u", loop ? loop : start);
}

// The windows that are declared in a loop's body, or at the beginning.
static void npu_print_windows_of(const npu_kernel *k, uint32_t loop, uint32_t indent,
                                 npu_text *out) {
    for (uint32_t i = 0; i < k->window_count; i++) {
        const npu_window *window = &k->windows[i];
        if (window->loop != loop) {
            continue;
        }
        char text[8 * NPU_SIZE_TEXT_MAX], row[NPU_SIZE_TEXT_MAX], col[NPU_SIZE_TEXT_MAX];
        npu_print_start(row, window->row, window->row_loop);
        if (window->is_shared) {
            char start[NPU_SIZE_TEXT_MAX];
            memcpy(start, row, sizeof start);
            bool is_plain = strcmp(start, "0") == 0;
            snprintf(row, sizeof row, "mine.first()%s%.32s", is_plain ? "" : " + ",
                     is_plain ? "" : start);
        }
        npu_print_start(col, window->col, window->col_loop);
        snprintf(text, sizeof text, "auto %s = wsp::%s<%s>(task, %u, %s, %s, %s, %s);",
                 window->name, window->is_column ? "columns" : "window",
                 npu_cpp_type(k->info->tiles[window->param].dtype), window->param, row, col,
                 window->rows, window->cols);
        npu_print_wrapped(out, indent, text);
    }
}

NPU_INTERNAL void npu_kernel_print_requirements(const npu_kernel *k, npu_text *out) {
    static const char words[][8] = {"ROWS", "COLUMNS", "EITHER"};
    for (int which = 0; which < 3; which++) {
        bool is_any = false;
        for (uint32_t i = 0; i < k->info->tile_count; i++) {
            if (which < 2 ? k->is_dense[i][which] : k->is_right[i]) {
                if (is_any) {
                    npu_print(out, ", %u", i);
                } else {
                    npu_print(out, "    WSP_REQUIRE_%s(task, %u", words[which], i);
                }
                is_any = true;
            }
        }
        npu_print(out, "%s", is_any ? ");\n" : "");
    }
}

static void npu_print_windows(const npu_kernel *k, npu_text *out) {
    if (k->window_count == 0) {
        return;
    }
    npu_print(out, "\n    // Its loads and stores.\n");
    if (k->half == NPU_HALF_ANY) {
        npu_kernel_print_requirements(k, out);
    }
    npu_print_windows_of(k, 0, 4, out);
}

// Is a tile declared in a loop's body, or with 0 at the beginning?
static bool npu_is_tile_of(const npu_kernel *k, uint32_t i, uint32_t loop) {
    const npu_tile *tile = &k->tiles[i];
    return tile->is_used && tile->first == i && npu_kernel_tile_loop(k, i) == loop &&
           npu_kernel_has_memory(k, tile->object.memory);
}

static void npu_tile_sizes(npu_kernel *k, uint32_t i, char rows[NPU_SIZE_TEXT_MAX],
                           char cols[NPU_SIZE_TEXT_MAX]) {
    npu_kernel_size(k, &k->tiles[i].object.valid_rows, rows);
    npu_kernel_size(k, &k->tiles[i].object.valid_cols, cols);
}

// The tiles that are declared there. They add sizes, which come before them.
static void npu_print_tiles_of(npu_kernel *k, uint32_t loop, uint32_t indent, npu_text *out) {
    for (uint32_t i = 1; i < k->info->tile_object_count; i++) {
        const npu_tile *tile = &k->tiles[i];
        char rows[NPU_SIZE_TEXT_MAX], cols[NPU_SIZE_TEXT_MAX];
        if (npu_is_tile_of(k, i, loop)) {
            npu_tile_sizes(k, i, rows, cols);
            if (npu_kernel_is_shared(k, i)) {
                npu_kernel_share(tile->object.rows == 1 ? cols : rows);
            } else if (tile->object.own_rows) {  // scratch
                snprintf(rows, NPU_SIZE_TEXT_MAX, "%u", tile->object.own_rows);
            }
            npu_print_tile(k, i, tile->name, rows, cols, indent, out);
        }
    }
    for (uint32_t i = 0; i < k->clip_count; i++) {
        const npu_clip *clip = &k->clips[i];
        if (clip->loop == loop) {
            npu_print_tile(k, clip->tile, clip->name, clip->rows, clip->cols, indent, out);
        }
    }
}

NPU_INTERNAL void npu_kernel_add_loop_sizes(npu_kernel *k) {
    char rows[NPU_SIZE_TEXT_MAX], cols[NPU_SIZE_TEXT_MAX];
    for (uint32_t loop = 1; loop <= k->info->loop_count; loop++) {
        for (uint32_t i = 1; i < k->info->tile_object_count; i++) {
            if (npu_is_tile_of(k, i, loop)) {
                npu_tile_sizes(k, i, rows, cols);
            }
        }
    }
}

// The turn of late instructions.
static void npu_print_late_turn(const npu_kernel *k, uint32_t loop, uint32_t indent,
                                npu_text *out) {
    const uint32_t late_of = k->info->loops[loop].late_of;
    if (late_of) {
        npu_print(out, "%*sconst int n_%u = n_%u - %u;\n", (int)indent, "", loop, late_of,
                  k->info->loops[late_of].preload);
    }
}

// The index of a loop. A phase without an iteration in a turn has its nearest one: nothing uses that.
static void npu_print_index(const npu_kernel *k, uint32_t loop, uint32_t indent, npu_text *out) {
    const ptowsp_loop_info *of = &k->info->loops[loop];
    char turn[48];
    snprintf(turn, sizeof turn, "n_%u", loop);
    if (of->preload) {
        snprintf(turn, sizeof turn, "wsp::least(n_%u, loop_%u.count - 1)", loop, loop);
    } else if (of->late_of) {
        snprintf(turn, sizeof turn, "n_%u < 0 ? 0 : n_%u", loop, loop);
    }
    npu_print(out, "%*s[[maybe_unused]] const int i_%u = loop_%u.at(%s);\n", (int)indent, "", loop,
              loop, turn);
}

static void npu_print_loop_declarations(npu_kernel *k, uint32_t loop, uint32_t indent,
                                        npu_text *out) {
    npu_text tiles = {NULL, 0, 0, false};
    npu_print_late_turn(k, loop, indent, out);
    if (k->half == NPU_HALF_SECOND) {
        return;
    }
    npu_print_tiles_of(k, loop, indent, &tiles);
    npu_print_index(k, loop, indent, out);
    for (uint32_t i = 0; i < k->size_count; i++) {
        if (k->sizes[i].extent.loop == loop) {
            npu_print_size(k, &k->sizes[i], indent, out);
        }
    }
    npu_print_windows_of(k, loop, indent, out);
    npu_append(out, &tiles);
}

NPU_INTERNAL void npu_kernel_print_loop_declarations(npu_kernel *k, uint32_t loop, uint32_t indent,
                                                     npu_text *out) {
    uint32_t late = k->info->loops[loop].preload ? k->info->loop_count : 0;
    while (late && k->info->loops[late].late_of != loop) {
        late--;
    }
    for (uint32_t at = loop; at; at = k->info->loops[at].parent) {
        indent += 4;
    }
    npu_print_loop_declarations(k, loop, indent, out);
    if (late) {
        npu_print_loop_declarations(k, late, indent, out);
    }
}

NPU_INTERNAL void npu_kernel_print_sizes(npu_kernel *k, npu_text *out) {
    for (uint32_t i = 0; i < k->info->scalar_count; i++) {
        if (k->is_scalar_used[i]) {
            uint32_t dtype = k->info->scalar_dtypes[i];
            npu_print(out, "    const auto %s = wsp::scalar_%s(task, %u);\n", k->scalars[i],
                      dtype == PTOWSP_F32   ? "f32"
                      : dtype == PTOWSP_F64 ? "f64"
                      : dtype == PTOWSP_I64 ? "i64"
                                            : "u64",
                      i);
        }
    }
    for (uint32_t i = 0; i < k->size_count; i++) {
        if (k->sizes[i].extent.loop == 0) {
            npu_print_size(k, &k->sizes[i], 4, out);
        }
    }
}

NPU_INTERNAL void npu_kernel_print_declarations(npu_kernel *k, npu_text *checks, npu_text *out) {
    npu_text tiles = {NULL, 0, 0, false};
    npu_print_tiles_of(k, 0, 4, &tiles);
    npu_kernel_print_sizes(k, out);
    npu_append(out, checks);
    npu_print_windows(k, out);
    npu_print(out, "\n    // Its tiles.\n");
    npu_append(out, &tiles);
    if (k->has_lists) {
        npu_print(out, "    MrgSortExecutedNumList taken;  // counts of each list, unused\n");
    }
}
