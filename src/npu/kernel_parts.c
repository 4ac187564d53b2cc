// The parts of a kernel's C++: parameters, sizes, tiles, windows; and equal ones found.

#include "kernels.h"

#include <stdio.h>

// -- names ----------------------------------------------------------------------------------------

// Makes an identifier from a parameter's name. It never equals an identifier that is made by appending
// to another one: v_x_rows, v_x_gm_2, v_x_part3.
static void npu_operand_name(char name[NPU_LOCAL_MAX], const char *from) {
    static const char ends[] = " rows cols gm part l1 at end ";
    npu_mangle(from, name);
    size_t length = strlen(name), stem = length;
    while (name[stem - 1] <= '9') {
        stem--;
    }
    size_t word = stem;
    while (name[word - 1] != '_') {
        word--;
    }
    char last[NPU_LOCAL_MAX];
    snprintf(last, sizeof last, " %.*s", (int)(stem - word), name + word);
    if (word > 2 && (stem == word || strstr(ends, last))) {
        memcpy(name + length, "_", 2);
    }
}

static bool npu_is_param_name(const npu_kernel *k, const char *name, uint32_t tiles,
                              uint32_t scalars) {
    bool is_there = false;
    for (uint32_t i = 0; i < tiles; i++) {
        is_there = is_there || strcmp(k->params[i], name) == 0;
    }
    for (uint32_t i = 0; i < scalars; i++) {
        is_there = is_there || strcmp(k->scalars[i], name) == 0;
    }
    return is_there;
}

static void npu_name_params(npu_kernel *k) {
    for (uint32_t i = 0; i < k->info->tile_count + k->info->scalar_count; i++) {
        uint32_t tiles = i < k->info->tile_count ? i : k->info->tile_count, scalars = i - tiles;
        bool is_tile = i < k->info->tile_count;
        char name[NPU_LOCAL_MAX];
        npu_operand_name(name, is_tile ? k->info->tiles[i].name : k->info->scalars[scalars].name);
        size_t length = strlen(name);
        for (uint32_t n = 2; npu_is_param_name(k, name, tiles, scalars); n++) {
            snprintf(name + length, sizeof name - length, "%u", n);
        }
        memcpy(is_tile ? k->params[i] : k->scalars[scalars], name, sizeof name);
    }
}

NPU_INTERNAL const char *npu_cpp_type(ptowsp_dtype dtype) {
    switch (dtype) {
    case PTOWSP_F16: return "half";
    case PTOWSP_BF16: return "bfloat16_t";
    case PTOWSP_F32: return "float";
    case PTOWSP_I8: return "int8_t";
    case PTOWSP_I16: return "int16_t";
    case PTOWSP_I32: return "int32_t";
    case PTOWSP_I64: return "int64_t";
    case PTOWSP_U16: return "uint16_t";
    case PTOWSP_U32: return "uint32_t";
    case PTOWSP_U64: return "uint64_t";
    default: return "uint8_t";
    }
}

// -- sizes ----------------------------------------------------------------------------------------

static uint32_t npu_extent_at(const ptowsp_extent *extent, int64_t valid) {
    int64_t size = (extent->mul * valid + extent->add) >> extent->shift;
    return size < 0 ? 0 : size > extent->max ? extent->max : (uint32_t)size;
}

NPU_INTERNAL int64_t npu_param_size(const npu_kernel *k, const ptowsp_extent *extent) {
    const ptowsp_tile_param *param = &k->info->tiles[extent->param];
    return extent->axis ? param->cols : param->rows;
}

// Extents grow with the parameter's size, or shrink, but do not both.
// The smallest size before scaling: the parameter has at least a row and a column. A loop whose index
// is subtracted goes to the end of that parameter, or beyond.
static int64_t npu_extent_base(const npu_kernel *k, const ptowsp_extent *extent) {
    if (extent->loop == 0) {
        return 1;
    }
    const ptowsp_loop_info *loop = &k->info->loops[extent->loop];
    bool is_inside = loop->end.tile == extent->param && loop->end.axis == extent->axis;
    return is_inside ? 1 : -((int64_t)1 << 30);
}

NPU_INTERNAL bool npu_extent_is_plain(const npu_kernel *k, const ptowsp_extent *extent) {
    return extent->loop == 0 && extent->mul == 1 && extent->add == 0 && extent->shift == 0 &&
           extent->max == npu_param_size(k, extent);
}

// Its size where the parameter is smallest, or largest.
static uint32_t npu_extent_end(const npu_kernel *k, const ptowsp_extent *extent, bool is_last) {
    return extent->param == PTOWSP_NO_PARAM ? extent->max
           : is_last                        ? npu_extent_at(extent, npu_param_size(k, extent))
                                            : npu_extent_at(extent, npu_extent_base(k, extent));
}

NPU_INTERNAL uint32_t npu_extent_most(const npu_kernel *k, const ptowsp_extent *extent) {
    uint32_t low = npu_extent_end(k, extent, false), high = npu_extent_end(k, extent, true);
    return low > high ? low : high;
}

NPU_INTERNAL uint32_t npu_extent_least(const npu_kernel *k, const ptowsp_extent *extent) {
    uint32_t low = npu_extent_end(k, extent, false), high = npu_extent_end(k, extent, true);
    return low < high ? low : high;
}

// The extent in normal form: so equal extents and constants are found.
static ptowsp_extent npu_extent_normal(const npu_kernel *k, ptowsp_extent extent) {
    uint32_t most = npu_extent_most(k, &extent);
    if (extent.param == PTOWSP_NO_PARAM || npu_extent_least(k, &extent) == most) {
        ptowsp_extent constant = {PTOWSP_NO_PARAM, 0, 0, 0, 0, most, 0};
        return constant;
    }
    extent.max = most;
    return extent;
}

static bool npu_extent_is_same(const ptowsp_extent *a, const ptowsp_extent *b) {
    return a->param == b->param && a->max == b->max &&
           (a->param == PTOWSP_NO_PARAM ||
            (a->axis == b->axis && a->shift == b->shift && a->loop == b->loop && a->mul == b->mul &&
             a->add == b->add));
}

// Makes room for one more; false when memory is out.
#define NPU_MORE(k, array, capacity, count)                                                        \
    (NPU_ROOM((k)->array, (k)->capacity, (uint64_t)(k)->count + 1) ||                              \
     !((k)->is_out_of_memory = true))

// The number of a size, plus 1; 0 when memory is out. Its operands come before it.
static uint32_t npu_add_size(npu_kernel *k, ptowsp_extent extent) {
    uint32_t same_axis = 0;
    for (uint32_t i = 0; i < k->size_count; i++) {
        const ptowsp_extent *other = &k->sizes[i].extent;
        if (npu_extent_is_same(other, &extent)) {
            return i + 1;
        }
        same_axis += other->param == extent.param && other->axis == extent.axis;
    }
    bool is_plain = npu_extent_is_plain(k, &extent);
    if (!is_plain && same_axis == 0) {
        ptowsp_extent whole = {extent.param, extent.axis, 0, 1, 0, 0, 0};
        whole.max = (uint32_t)npu_param_size(k, &extent);
        npu_add_size(k, whole);
        same_axis = 1;
    }
    if (!NPU_MORE(k, sizes, size_capacity, size_count)) {
        return 0;
    }
    npu_size *size = &k->sizes[k->size_count++];
    size->extent = extent;
    const char *axis = extent.axis ? "cols" : "rows";
    int length = snprintf(size->name, sizeof size->name, "%s_%s", k->params[extent.param], axis);
    if (!is_plain) {
        snprintf(size->name + length, sizeof size->name - (size_t)length, "_%u", same_axis + 1);
    }
    return k->size_count;
}

NPU_INTERNAL const char *npu_kernel_size(npu_kernel *k, const ptowsp_extent *extent,
                                         char text[NPU_LOCAL_MAX]) {
    ptowsp_extent normal = npu_extent_normal(k, *extent);
    uint32_t size = normal.param == PTOWSP_NO_PARAM ? 0 : npu_add_size(k, normal);
    if (size == 0) {
        snprintf(text, NPU_LOCAL_MAX, "%u", normal.max);
    } else {
        snprintf(text, NPU_LOCAL_MAX, "%s", k->sizes[size - 1].name);
    }
    return text;
}

// -- tiles ----------------------------------------------------------------------------------------

static bool npu_tile_is_same(const npu_tile *a, const npu_tile *b) {
    const ptowsp_tile_object *x = &a->object, *y = &b->object;
    return x->dtype == y->dtype && x->memory == y->memory && x->layout == y->layout &&
           x->pad == y->pad && x->rows == y->rows && x->cols == y->cols &&
           x->address == y->address && x->loop == y->loop && x->step == y->step &&
           x->is_late == y->is_late && npu_extent_is_same(&x->valid_rows, &y->valid_rows) &&
           npu_extent_is_same(&x->valid_cols, &y->valid_cols);
}

// Finds for each used tile the first identical one, and the first at its address among the tiles of
// its root; for scratch, among all scratch.
static void npu_join_tiles(npu_kernel *k) {
    uint32_t scratch = 0;
    for (uint32_t i = 1; i < k->info->tile_object_count; i++) {
        npu_tile *tile = &k->tiles[i], *root = &k->tiles[tile->object.root];
        tile->first = tile->address = i;
        if (!tile->is_used) {
            continue;
        }
        uint32_t *last = tile->is_scratch ? &scratch : &root->last;
        for (uint32_t j = *last; j; j = k->tiles[j].next) {
            if (npu_tile_is_same(&k->tiles[j], tile)) {
                tile->first = j;
            }
            if (k->tiles[j].object.address == tile->object.address &&
                k->tiles[j].object.memory == tile->object.memory) {
                tile->address = k->tiles[j].address;
            }
        }
        if (tile->first == i) {
            tile->next = *last;
            *last = i;
        }
    }
}

// A tile that a parameter is first loaded into, or stored from, gets the parameter's name; other
// tiles are named after their memory.
static void npu_name_tiles(npu_kernel *k) {
    bool is_taken[2][PTOWSP_TASK_TILE_MAX];  // in UB, in L1
    memset(is_taken, 0, sizeof is_taken);
    for (uint32_t i = 0; i < k->info->insn_count; i++) {
        const ptowsp_insn_info *insn = &k->info->insns[i];
        uint32_t tile = insn->op == PTOWSP_OP_TLOAD    ? insn->dst[0]
                        : insn->op == PTOWSP_OP_TSTORE ? insn->src[0]
                                                       : 0;
        bool is_l1 = tile && k->tiles[tile].object.memory == PTOWSP_MEMORY_L1;
        bool is_ub = tile && k->tiles[tile].object.memory == PTOWSP_MEMORY_UB;
        if ((is_ub || is_l1) && !is_taken[is_l1][insn->param] &&
            !k->tiles[k->tiles[tile].first].name[0]) {
            is_taken[is_l1][insn->param] = true;
            snprintf(k->tiles[k->tiles[tile].first].name, NPU_LOCAL_MAX, "%s%s",
                     k->params[insn->param], is_l1 ? "_l1" : "");
        }
    }
    uint32_t counts[PTOWSP_MEMORY_COUNT + 1];
    memset(counts, 0, sizeof counts);
    for (uint32_t i = 1; i < k->info->tile_object_count; i++) {
        npu_tile *tile = &k->tiles[i];
        if (!tile->is_used || tile->first != i || tile->name[0]) {
            continue;
        }
        ptowsp_memory memory = tile->object.memory;
        if (tile->is_scratch) {
            snprintf(tile->name, sizeof tile->name, "scratch_%u", ++counts[PTOWSP_MEMORY_COUNT]);
            continue;
        }
        const char *prefix = memory == PTOWSP_MEMORY_UB     ? "t"
                             : memory == PTOWSP_MEMORY_L1   ? "l1_"
                             : memory == PTOWSP_MEMORY_L0A  ? "left_"
                             : memory == PTOWSP_MEMORY_L0B  ? "right_"
                             : memory == PTOWSP_MEMORY_L0C  ? "acc_"
                             : memory == PTOWSP_MEMORY_BIAS ? "bias_"
                                                            : "scale_";
        snprintf(tile->name, sizeof tile->name, "%s%u", prefix, ++counts[memory]);
    }
}

// -- halves ---------------------------------------------------------------------------------------

NPU_INTERNAL void npu_kernel_begin_half(npu_kernel *k, npu_half half) {
    k->half = half;
    k->size_count = k->window_count = k->clip_count = 0;
    k->has_lists = false;
    memset(k->is_scalar_used, 0, sizeof k->is_scalar_used);
}

NPU_INTERNAL bool npu_kernel_has_memory(const npu_kernel *k, ptowsp_memory memory) {
    const bool is_vector = k->half == NPU_HALF_VECTOR || k->half == NPU_HALF_SECOND;
    return k->half == NPU_HALF_ANY || is_vector == (memory == PTOWSP_MEMORY_UB);
}

NPU_INTERNAL bool npu_kernel_is_shared(const npu_kernel *k, uint32_t tile) {
    return k->info->is_split && k->tiles[tile].object.memory == PTOWSP_MEMORY_UB &&
           !k->tiles[k->tiles[tile].first].is_scratch;
}

NPU_INTERNAL void npu_kernel_share(char text[NPU_SIZE_TEXT_MAX]) {
    static const char before[] = "mine.of(", after[] = ")";
    size_t length = strlen(text);
    memmove(text + sizeof before - 1, text, length);
    memcpy(text, before, sizeof before - 1);
    memcpy(text + sizeof before - 1 + length, after, sizeof after);
}

NPU_INTERNAL bool npu_kernel_has(const npu_kernel *k, const ptowsp_insn_info *insn) {
    return k->half == NPU_HALF_ANY      ? true
           : k->half == NPU_HALF_SECOND ? npu_is_fifo(insn) && insn->side == PTOWSP_SIDE_VECTOR
                                        : npu_kernel_half(k, insn) == k->half;
}

NPU_INTERNAL bool npu_kernel_has_loop(const npu_kernel *k, uint32_t loop) {
    loop = k->info->loops[loop].late_of ? k->info->loops[loop].late_of : loop;
    bool is_inside = false, has_any = k->half == NPU_HALF_ANY;
    for (uint32_t i = 0; i < k->info->insn_count && !has_any; i++) {
        const ptowsp_insn_info *insn = &k->info->insns[i];
        bool is_mark = insn->op == PTOWSP_OP_LOOP || insn->op == PTOWSP_OP_END;
        if (is_mark && insn->loop == loop) {
            is_inside = !is_inside;
        }
        has_any = is_inside && !is_mark && npu_kernel_has(k, insn);
    }
    return has_any;
}

NPU_INTERNAL const char *npu_kernel_tile(const npu_kernel *k, uint32_t tile) {
    return k->tiles[k->tiles[tile].first].name;
}

NPU_INTERNAL uint32_t npu_kernel_tile_loop(const npu_kernel *k, uint32_t tile) {
    const ptowsp_tile_object *object = &k->tiles[tile].object;
    uint32_t loop = object->loop;
    loop = object->valid_rows.loop > loop ? object->valid_rows.loop : loop;
    return object->valid_cols.loop > loop ? object->valid_cols.loop : loop;
}

NPU_INTERNAL bool npu_kernel_may_be_empty(const npu_kernel *k, uint32_t tile) {
    const ptowsp_tile_object *object = &k->tiles[tile].object;
    uint32_t rows = npu_extent_least(k, &object->valid_rows);
    uint32_t cols = npu_extent_least(k, &object->valid_cols);
    if (npu_kernel_is_shared(k, tile)) {
        // The second vector core has the rows after the first core's. The first core has half of the
        // task's rows, which may be 0.
        const ptowsp_extent *split = &k->tiles[k->info->split_tile].object.valid_rows;
        uint32_t first = (npu_extent_most(k, split) + 1) / 2;
        bool has_first = npu_extent_least(k, split) > 0;
        const ptowsp_extent *shared = object->rows == 1 ? &object->valid_cols : &object->valid_rows;
        bool is_fixed = shared->param == PTOWSP_NO_PARAM;
        uint32_t *size = object->rows == 1 ? &cols : &rows;
        *size = is_fixed && has_first && *size > first ? *size - first : 0;
    }
    return rows == 0 || cols == 0;
}

// Finds the tiles in L1 that only a load of one parameter fills and that go to L0B alone.
static void npu_find_rights(npu_kernel *k) {
    for (uint32_t i = 0; i < k->info->insn_count; i++) {
        const ptowsp_insn_info *insn = &k->info->insns[i];
        bool is_load = insn->op == PTOWSP_OP_TLOAD;
        bool is_move = insn->op == PTOWSP_OP_TMOV || insn->op == PTOWSP_OP_TEXTRACT;
        bool is_to_right =
            is_move && insn->dst[0] && k->tiles[insn->dst[0]].object.memory == PTOWSP_MEMORY_L0B;
        for (uint32_t j = 0; j < 4; j++) {
            npu_tile *root = &k->tiles[k->tiles[insn->src[j]].object.root];
            // A panel that is used transposed is loaded by its rows.
            bool is_turned = k->tiles[insn->src[j]].object.layout != PTOWSP_LAYOUT_NZ;
            root->is_right_not = root->is_right_not || !is_to_right || is_turned;
        }
        for (uint32_t j = 0; j < 2; j++) {
            npu_tile *root = &k->tiles[k->tiles[insn->dst[j]].object.root];
            bool is_other = !is_load || (root->right_param && root->right_param != insn->param + 1);
            root->is_right_not = root->is_right_not || is_other;
            root->right_param = is_load ? insn->param + 1 : 0;
        }
    }
}

NPU_INTERNAL bool npu_kernel_is_right(const npu_kernel *k, uint32_t tile, uint32_t *out_param) {
    const ptowsp_tile_object *object = &k->tiles[tile].object;
    const npu_tile *root = &k->tiles[object->root];
    *out_param = root->right_param ? root->right_param - 1 : 0;
    return object->memory == PTOWSP_MEMORY_L1 && object->layout == PTOWSP_LAYOUT_NZ &&
           root->right_param && !root->is_right_not;
}

// The end of the last tile in each memory.
static void npu_find_ends(npu_kernel *k) {
    for (uint32_t i = 1; i < k->info->tile_object_count; i++) {
        const ptowsp_tile_object *tile = &k->tiles[i].object;
        uint32_t end = tile->address + tile->rows * tile->cols * ptowsp_dtype_size(tile->dtype) +
                       (tile->places - 1) * tile->step;
        if (k->tiles[i].is_used && end > k->ends[tile->memory]) {
            k->ends[tile->memory] = end;
        }
    }
}

NPU_INTERNAL bool npu_kernel_has_column(npu_kernel *k, uint32_t tile) {
    const ptowsp_tile_object *object = &k->tiles[tile].object;
    uint32_t size = ptowsp_dtype_size(object->dtype);
    uint64_t end = (k->ends[PTOWSP_MEMORY_UB] + 31) / 32 * 32 + (uint64_t)64 * object->rows;
    if (object->memory != PTOWSP_MEMORY_UB || object->layout != PTOWSP_LAYOUT_COL_MAJOR ||
        object->cols != 1 || (size != 2 && size != 4) ||
        end > k->info->machine.memory_bytes[PTOWSP_MEMORY_UB]) {
        return false;
    }
    k->column_rows = object->rows > k->column_rows ? object->rows : k->column_rows;
    return true;
}

NPU_INTERNAL bool npu_kernel_begin(npu_kernel *k, npu_emitter *emitter, uint32_t kernel) {
    memset(k, 0, sizeof *k);
    k->emitter = emitter;
    k->kernel = kernel;
    k->info = &emitter->tables->kernels[kernel];
    npu_name_params(k);
    k->is_mixed = k->info->unit == PTOWSP_UNIT_MIX;
    size_t size = (k->info->tile_object_count + 1) * sizeof k->tiles[0];
    k->tiles = (npu_tile *)npu_resize(NULL, size);
    if (!k->tiles) {
        return npu_out_of_memory(emitter);
    }
    memset(k->tiles, 0, size);
    k->checks =
        (ptowsp_size_check *)npu_resize(NULL, (k->info->check_count + 1) * sizeof k->checks[0]);
    if (!k->checks) {
        return npu_out_of_memory(emitter);
    }
    for (uint32_t i = 0; i < k->info->check_count; i++) {
        k->checks[i] = k->info->checks[i];
        k->checks[i].a = npu_extent_normal(k, k->checks[i].a);
        k->checks[i].b = npu_extent_normal(k, k->checks[i].b);
    }
    for (uint32_t i = 1; i < k->info->tile_object_count; i++) {
        ptowsp_tile_object *object = &k->tiles[i].object;
        *object = k->info->objects[i];
        if (object->own_rows) {  // a function is for one core
            *(object->rows == 1 ? &object->cols : &object->rows) = object->own_rows;
        }
        object->valid_rows = npu_extent_normal(k, object->valid_rows);
        object->valid_cols = npu_extent_normal(k, object->valid_cols);
    }
    for (uint32_t i = 0; i < k->info->insn_count; i++) {
        const ptowsp_insn_info *insn = &k->info->insns[i];
        uint32_t tiles[] = {insn->dst[0], insn->dst[1], insn->src[0],  insn->src[1],
                            insn->src[2], insn->src[3], insn->cols_of, insn->tmp};
        const size_t count = sizeof tiles / sizeof tiles[0];
        for (size_t j = 0; j < count; j++) {
            npu_tile *tile = &k->tiles[tiles[j]];
            tile->is_scratch = j == count - 1 && (!tile->is_used || tile->is_scratch);
            tile->is_used = true;
        }
    }
    npu_find_rights(k);
    npu_find_ends(k);
    npu_join_tiles(k);
    npu_name_tiles(k);
    return true;
}

NPU_INTERNAL void npu_kernel_end(npu_kernel *k) {
    npu_resize(k->tiles, 0);
    npu_resize(k->checks, 0);
    npu_resize(k->sizes, 0);
    npu_resize(k->windows, 0);
    npu_resize(k->clips, 0);
}

// -- windows --------------------------------------------------------------------------------------

// Do the kernel's checks of a task imply that one size is at most another?
static bool npu_checks_say(const npu_kernel *k, const ptowsp_extent *a, const ptowsp_extent *b) {
    for (uint32_t i = 0; i < k->info->check_count; i++) {
        const ptowsp_extent *x = &k->checks[i].a, *y = &k->checks[i].b;
        bool is_equal = x->param != PTOWSP_NO_PARAM && y->param != PTOWSP_NO_PARAM;
        if ((npu_extent_is_same(a, x) && npu_extent_is_same(b, y)) ||
            (is_equal && npu_extent_is_same(a, y) && npu_extent_is_same(b, x))) {
            return true;
        }
    }
    return false;
}

// The smaller of two sizes, and whether that is always the first.
static bool npu_smaller(npu_kernel *k, const ptowsp_extent *tile, ptowsp_extent rest,
                        char text[NPU_SIZE_TEXT_MAX]) {
    char a[NPU_LOCAL_MAX], b[NPU_LOCAL_MAX];
    rest = npu_extent_normal(k, rest);
    bool is_part = tile->param == rest.param && tile->axis == rest.axis &&
                   tile->loop == rest.loop && tile->mul == 1 && tile->shift == 0 &&
                   tile->add <= rest.add && tile->param != PTOWSP_NO_PARAM;
    if (is_part || npu_checks_say(k, tile, &rest) ||
        npu_extent_most(k, tile) <= npu_extent_least(k, &rest)) {
        snprintf(text, NPU_SIZE_TEXT_MAX, "%s", npu_kernel_size(k, tile, a));
        return true;
    }
    if (tile->param == PTOWSP_NO_PARAM) {
        rest.max = tile->max < rest.max ? tile->max : rest.max;
        snprintf(text, NPU_SIZE_TEXT_MAX, "%s", npu_kernel_size(k, &rest, a));
    } else {
        snprintf(text, NPU_SIZE_TEXT_MAX, "wsp::least(%s, %s)", npu_kernel_size(k, tile, a),
                 npu_kernel_size(k, &rest, b));
    }
    return false;
}

static npu_window *npu_find_window(npu_kernel *k, const npu_window *like) {
    uint32_t of_param = 0;
    for (uint32_t i = 0; i < k->window_count; i++) {
        npu_window *window = &k->windows[i];
        if (window->param == like->param && window->row == like->row && window->col == like->col &&
            window->row_loop == like->row_loop && window->col_loop == like->col_loop &&
            window->loop == like->loop && window->is_column == like->is_column &&
            window->is_shared == like->is_shared && strcmp(window->rows, like->rows) == 0 &&
            strcmp(window->cols, like->cols) == 0) {
            return window;
        }
        of_param += window->param == like->param;
    }
    if (!NPU_MORE(k, windows, window_capacity, window_count)) {
        return NULL;
    }
    npu_window *window = &k->windows[k->window_count++];
    *window = *like;
    int length = snprintf(window->name, sizeof window->name, "%s_gm", k->params[like->param]);
    if (of_param > 0) {
        snprintf(window->name + length, sizeof window->name - (size_t)length, "_%u", of_param + 1);
    }
    return window;
}

static npu_clip *npu_find_clip(npu_kernel *k, const npu_clip *like) {
    uint32_t of_tile = 0;
    for (uint32_t i = 0; i < k->clip_count; i++) {
        npu_clip *clip = &k->clips[i];
        if (clip->tile == like->tile && clip->loop == like->loop &&
            strcmp(clip->rows, like->rows) == 0 && strcmp(clip->cols, like->cols) == 0) {
            return clip;
        }
        of_tile += clip->tile == like->tile;
    }
    if (!NPU_MORE(k, clips, clip_capacity, clip_count)) {
        return NULL;
    }
    npu_clip *clip = &k->clips[k->clip_count++];
    *clip = *like;
    int length = snprintf(clip->name, sizeof clip->name, "%s_part", npu_kernel_tile(k, like->tile));
    if (of_tile > 0) {
        snprintf(clip->name + length, sizeof clip->name - (size_t)length, "%u", of_tile + 1);
    }
    return clip;
}

static bool npu_extent_has_form_of(const ptowsp_extent *a, const ptowsp_extent *b) {
    bool is_fixed = a->param == PTOWSP_NO_PARAM;
    return is_fixed == (b->param == PTOWSP_NO_PARAM) && (!is_fixed || a->max == b->max);
}

NPU_INTERNAL const char *npu_kernel_tile_as(npu_kernel *k, uint32_t tile, uint32_t as) {
    const ptowsp_tile_object *a = &k->tiles[tile].object, *b = &k->tiles[as].object;
    bool is_alike = a->dtype == b->dtype && a->layout == b->layout && a->rows == b->rows &&
                    a->cols == b->cols &&
                    npu_kernel_is_shared(k, tile) == npu_kernel_is_shared(k, as);
    if (!is_alike || (npu_extent_has_form_of(&a->valid_rows, &b->valid_rows) &&
                      npu_extent_has_form_of(&a->valid_cols, &b->valid_cols))) {
        return npu_kernel_tile(k, tile);
    }
    npu_clip clip;
    memset(&clip, 0, sizeof clip);
    clip.tile = k->tiles[tile].first;
    clip.loop = npu_kernel_tile_loop(k, tile);
    uint32_t loop = npu_kernel_tile_loop(k, as);  // loops inside have higher numbers
    clip.loop = loop > clip.loop ? loop : clip.loop;
    npu_kernel_size(k, &b->valid_rows, clip.rows);
    npu_kernel_size(k, &b->valid_cols, clip.cols);
    if (npu_kernel_is_shared(k, tile)) {
        npu_kernel_share(a->rows == 1 ? clip.cols : clip.rows);
    }
    const npu_clip *made = npu_find_clip(k, &clip);
    return made ? made->name : "";
}

NPU_INTERNAL const npu_window *npu_kernel_window(npu_kernel *k, const ptowsp_insn_info *insn,
                                                 uint32_t tile, const char **out_tile) {
    const ptowsp_tile_object *object = &k->tiles[tile].object;
    const ptowsp_tile_param *param = &k->info->tiles[insn->param];
    ptowsp_extent rows = {insn->param, 0, 0, 1, 0, (uint32_t)param->rows, insn->row_loop};
    ptowsp_extent cols = {insn->param, 1, 0, 1, 0, (uint32_t)param->cols, insn->col_loop};
    rows.add = -(int32_t)insn->row;
    cols.add = -(int32_t)insn->col;
    // MGATHER and MSCATTER pick rows out of the whole parameter.
    bool is_table = insn->op == PTOWSP_OP_MGATHER || insn->op == PTOWSP_OP_MSCATTER;
    npu_window window;
    npu_clip clip;
    memset(&window, 0, sizeof window);
    memset(&clip, 0, sizeof clip);
    clip.tile = k->tiles[tile].first;
    bool is_whole = npu_smaller(k, &object->valid_cols, cols, clip.cols);
    if (is_table) {
        npu_kernel_size(k, &rows, window.rows);
        npu_kernel_size(k, &cols, window.cols);
        npu_kernel_size(k, &object->valid_rows, clip.rows);
    } else {
        is_whole = npu_smaller(k, &object->valid_rows, rows, clip.rows) && is_whole;
        if (npu_kernel_is_shared(k, tile)) {
            window.is_shared = true;
            npu_kernel_share(clip.rows);
        }
        memcpy(window.rows, clip.rows, sizeof window.rows);
        memcpy(window.cols, clip.cols, sizeof window.cols);
    }
    window.param = insn->param;
    window.row = insn->row;
    window.col = insn->col;
    window.row_loop = insn->row_loop;
    window.col_loop = insn->col_loop;
    window.loop = insn->row_loop > insn->col_loop ? insn->row_loop : insn->col_loop;
    uint32_t of_tile = npu_kernel_tile_loop(k, tile);  // loops inside have higher numbers
    window.loop = of_tile > window.loop ? of_tile : window.loop;
    clip.loop = window.loop;
    window.is_column =
        (object->layout == PTOWSP_LAYOUT_COL_MAJOR || object->layout == PTOWSP_LAYOUT_ZN);
    uint32_t right;
    if (npu_kernel_is_right(k, tile, &right)) {
        k->is_right[insn->param] = true;
    } else if (is_table || !npu_kernel_has_column(k, tile)) {
        k->is_dense[insn->param][window.is_column] = true;
    }
    *out_tile = npu_kernel_tile(k, tile);
    if (!is_whole) {
        const npu_clip *made = npu_find_clip(k, &clip);
        *out_tile = made ? made->name : "";
    }
    return npu_find_window(k, &window);
}

// -- cube and vector ------------------------------------------------------------------------------

static npu_half npu_pipe_half(ptowsp_pipe pipe) {
    switch (pipe) {
    case PTOWSP_PIPE_M:
    case PTOWSP_PIPE_MTE1:
    case PTOWSP_PIPE_FIX: return NPU_HALF_CUBE;
    case PTOWSP_PIPE_V:
    case PTOWSP_PIPE_MTE3: return NPU_HALF_VECTOR;
    default: return NPU_HALF_ANY;
    }
}

NPU_INTERNAL npu_half npu_kernel_half(const npu_kernel *k, const ptowsp_insn_info *insn) {
    if (!k->is_mixed) {
        return NPU_HALF_ANY;
    }
    if (k->info->is_mixed) {
        return insn->side == PTOWSP_SIDE_CUBE     ? NPU_HALF_CUBE
               : insn->side == PTOWSP_SIDE_VECTOR ? NPU_HALF_VECTOR
                                                  : NPU_HALF_ANY;
    }
    if (insn->op == PTOWSP_OP_LOOP || insn->op == PTOWSP_OP_END) {
        return NPU_HALF_ANY;
    }
    if (insn->op == PTOWSP_OP_PIPE_BARRIER) {
        return npu_pipe_half(insn->src_pipe);
    }
    if (insn->op == PTOWSP_OP_SET_FLAG || insn->op == PTOWSP_OP_WAIT_FLAG) {
        npu_half from = npu_pipe_half(insn->src_pipe), to = npu_pipe_half(insn->dst_pipe);
        return from == to || to == NPU_HALF_ANY ? from
               : from == NPU_HALF_ANY           ? to
                                                : NPU_HALF_BETWEEN;
    }
    uint32_t src = insn->src[0], dst = insn->dst[0];
    bool is_from_vector = src && k->tiles[src].object.memory == PTOWSP_MEMORY_UB;
    bool is_to_vector = dst && k->tiles[dst].object.memory == PTOWSP_MEMORY_UB;
    if (src && dst && is_from_vector != is_to_vector) {
        return NPU_HALF_BOTH;
    }
    return (dst ? is_to_vector : is_from_vector) ? NPU_HALF_VECTOR : NPU_HALF_CUBE;
}
