// Instructions as calls, spelled as PTO-ISA spells them.
//
// Most take their tiles in the list's order: destinations, sources, a scalar, scratch. The
// exceptions, and those with template arguments, are in npu_print_call.

#include "kernels.h"

#include <stdio.h>
#include <stdlib.h>

// -- numbers --------------------------------------------------------------------------------------

// The conversion of a scalar to an element: see wsp_kernel.h.
typedef enum npu_conversion { NPU_WRAPPED, NPU_SATURATED, NPU_COMPARED } npu_conversion;

// The shortest decimal that reads back as this float.
static void npu_print_f32(npu_text *out, float value) {
    if (value != value) {
        npu_print(out, "wsp::NOT_A_NUMBER");
        return;
    }
    if (value - value != 0) {
        npu_print(out, value < 0 ? "-wsp::INF" : "wsp::INF");
        return;
    }
    const pwsp_number_text number = pwsp_shortest((double)value, true);
    npu_print(out, "%s%sf", number.text, strpbrk(number.text, ".e") ? "" : ".0");
}

// A float that rounds to the same 16 bits as x: x as a float, or the odd one beside it.
static float npu_float_for(ptowsp_dtype dtype, double x) {
    float value = (float)x;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((double)value == x || x != x || (bits & 1)) {
        return value;
    }
    bool is_below = (value < 0 ? -(double)value : (double)value) < (x < 0 ? -x : x);
    bits = is_below ? bits + 1 : bits - 1;
    float odd;
    memcpy(&odd, &bits, sizeof odd);
    bool is_same = dtype == PTOWSP_F16 ? ptowsp_f16_from_f32(odd) == ptowsp_f16_from_f32(value)
                                       : ptowsp_bf16_from_f32(odd) == ptowsp_bf16_from_f32(value);
    return is_same ? value : odd;
}

static void npu_print_integer(npu_text *out, ptowsp_dtype dtype, double x, bool is_wrapped) {
    bool is_signed = dtype == PTOWSP_I8 || dtype == PTOWSP_I16 || dtype == PTOWSP_I32;
    uint32_t width = 8 * ptowsp_dtype_size(dtype);
    int64_t low = is_signed ? -(INT64_C(1) << (width - 1)) : 0;
    int64_t high = is_signed ? (INT64_C(1) << (width - 1)) - 1 : (INT64_C(1) << width) - 1;
    bool is_in_range = x > -0x1p63 && x < 0x1p63;
    int64_t value = is_in_range ? (int64_t)x : x > 0 ? INT64_MAX : x < 0 ? INT64_MIN : 0;
    if (is_wrapped) {
        uint64_t bits = (uint64_t)value & (uint64_t)((INT64_C(1) << width) - 1);
        value = (int64_t)bits > high ? (int64_t)bits - (INT64_C(1) << width) : (int64_t)bits;
    }
    value = value < low ? low : value > high ? high : value;
    if (value == INT32_MIN) {
        npu_print(out, "INT32_MIN");
    } else {
        npu_print(out, "%lld%s", (long long)value, is_signed ? "" : "u");
    }
}

static void npu_print_number(npu_text *out, ptowsp_dtype dtype, double x,
                             npu_conversion conversion) {
    if (dtype == PTOWSP_F32) {
        npu_print_f32(out, (float)x);
    } else if (dtype == PTOWSP_F16 || dtype == PTOWSP_BF16) {
        npu_print(out, "%s(", npu_cpp_type(dtype));
        npu_print_f32(out, conversion == NPU_COMPARED ? (float)x : npu_float_for(dtype, x));
        npu_print(out, ")");
    } else {
        npu_print_integer(out, dtype, x, conversion == NPU_WRAPPED);
    }
}

// The scalar operand, as an element of a tile.
static void npu_print_scalar(npu_kernel *k, const ptowsp_insn_info *insn, uint32_t tile,
                             npu_conversion conversion, npu_text *out) {
    ptowsp_dtype dtype = k->tiles[tile].object.dtype;
    bool is_param = insn->scalar_param != PTOWSP_NO_PARAM;
    if (!is_param && insn->cols_of == 0) {
        npu_print_number(out, dtype, insn->scalar, conversion);
        return;
    }
    npu_print(out, "wsp::%s<%s>(",
              conversion == NPU_WRAPPED     ? "wrapped"
              : conversion == NPU_SATURATED ? "saturated"
                                            : "compared",
              npu_cpp_type(dtype));
    if (insn->cols_of) {
        npu_print(out, "%s.GetValidCol())", npu_kernel_tile(k, insn->cols_of));
    } else {
        k->is_scalar_used[insn->scalar_param] = true;
        npu_print(out, "%s)", k->scalars[insn->scalar_param]);
    }
}

// -- words ----------------------------------------------------------------------------------------

static const char *npu_pipe_word(ptowsp_pipe pipe) {
    switch (pipe) {
    case PTOWSP_PIPE_S: return "PIPE_S";
    case PTOWSP_PIPE_V: return "PIPE_V";
    case PTOWSP_PIPE_M: return "PIPE_M";
    case PTOWSP_PIPE_MTE1: return "PIPE_MTE1";
    case PTOWSP_PIPE_MTE2: return "PIPE_MTE2";
    case PTOWSP_PIPE_MTE3: return "PIPE_MTE3";
    case PTOWSP_PIPE_FIX: return "PIPE_FIX";
    default: return "PIPE_ALL";
    }
}

static const char *npu_compare_word(uint32_t mode) {
    switch ((ptowsp_compare)mode) {
    case PTOWSP_NE: return "NE";
    case PTOWSP_LT: return "LT";
    case PTOWSP_LE: return "LE";
    case PTOWSP_GT: return "GT";
    case PTOWSP_GE: return "GE";
    default: return "EQ";
    }
}

static const char *npu_pattern_word(uint32_t mode) {
    switch (mode) {
    case 0: return "P0101";
    case 1: return "P1010";
    case 2: return "P0001";
    case 3: return "P0010";
    case 4: return "P0100";
    case 5: return "P1000";
    default: return "P1111";
    }
}

// Widening is declared without rounding; it has none under any mode.
static const char *npu_round_word(const npu_kernel *k, const ptowsp_insn_info *insn) {
    ptowsp_dtype from = k->tiles[insn->src[0]].object.dtype;
    ptowsp_dtype to = k->tiles[insn->dst[0]].object.dtype;
    bool is_to_float = to == PTOWSP_F16 || to == PTOWSP_BF16 || to == PTOWSP_F32;
    bool is_wider = ptowsp_dtype_size(to) > ptowsp_dtype_size(from);
    switch ((ptowsp_round)insn->mode) {
    case PTOWSP_ROUND_AWAY: return "CAST_ROUND";
    case PTOWSP_ROUND_FLOOR: return "CAST_FLOOR";
    case PTOWSP_ROUND_CEIL: return "CAST_CEIL";
    case PTOWSP_ROUND_TRUNC: return "CAST_TRUNC";
    default: return is_to_float && is_wider ? "CAST_NONE" : "CAST_RINT";
    }
}

static bool npu_is_one_of(const char *name, const char *words) {
    size_t length = strlen(name);
    for (const char *at = strstr(words, name); at; at = strstr(at + 1, name)) {
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

// -- calls ----------------------------------------------------------------------------------------

// Writes the tiles of the first sources and scratch, each after a comma.
static void npu_print_tiles(const npu_kernel *k, const uint32_t *tiles, uint32_t count,
                            npu_text *out) {
    for (uint32_t i = 0; i < count; i++) {
        if (tiles[i]) {
            npu_print(out, ", %s", npu_kernel_tile(k, tiles[i]));
        }
    }
}

// TLOAD, TSTORE, MGATHER, MSCATTER.
static bool npu_print_global(npu_kernel *k, const ptowsp_insn_info *insn, npu_text *out) {
    bool is_in = insn->dst[0] != 0;
    const char *tile;
    const npu_window *window =
        npu_kernel_window(k, insn, is_in ? insn->dst[0] : insn->src[0], &tile);
    if (!window) {
        return true;  // memory is out, which the text records
    }
    const char *global = window->name;
    uint32_t object = is_in ? insn->dst[0] : insn->src[0], right;
    bool is_load = strcmp(insn->name, "TLOAD") == 0;
    bool is_plain = insn->form == PTOWSP_FORM_PLAIN || insn->form == PTOWSP_FORM_ADD;
    if (is_load && npu_kernel_is_right(k, object, &right)) {
        npu_print(out, "wsp::load_right(task, %u, %s, ", insn->param, tile);
        npu_kernel_print_address(k, object, out);
        npu_print(out, ", %s)", global);
    } else if (is_load && npu_kernel_has_column(k, object)) {
        npu_print(out, "wsp::load_column(task, %u, %s, ", insn->param, tile);
        npu_kernel_print_address(k, object, out);
        npu_print(out, ", %s, columns_at)", global);
    } else if (strcmp(insn->name, "TSTORE") == 0 && is_plain && npu_kernel_has_column(k, object)) {
        npu_print(out, "wsp::store_column<AtomicType::Atomic%s>(task, %u, %s, %s, columns_at)",
                  insn->form == PTOWSP_FORM_ADD ? "Add" : "None", insn->param, tile, global);
    } else if (is_load) {
        npu_print(out, "TLOAD(%s, %s)", tile, global);
    } else if (strcmp(insn->name, "MGATHER") == 0) {
        npu_print(out, "MGATHER<Coalesce::Row>(%s, %s, %s)", tile, global,
                  npu_kernel_tile(k, insn->src[0]));
    } else if (strcmp(insn->name, "MSCATTER") == 0) {
        npu_print(out, "MSCATTER<Coalesce::Row>(%s, %s, %s)", global, tile,
                  npu_kernel_tile(k, insn->src[1]));
    } else if (insn->form == PTOWSP_FORM_PLAIN) {
        npu_print(out, "TSTORE(%s, %s)", global, tile);
    } else if (insn->form == PTOWSP_FORM_ADD) {
        npu_print(out, "TSTORE<decltype(%s), decltype(%s), AtomicType::AtomicAdd>(%s, %s)", tile,
                  global, global, tile);
    } else if (NPU_NEVER(insn->form != PTOWSP_FORM_RELU)) {
        return false;  // a store has no other form
    } else {
        npu_print(out,
                  "TSTORE<decltype(%s), decltype(%s), AtomicType::AtomicNone, "
                  "ReluPreMode::NormalRelu>(%s, %s)",
                  tile, global, global, tile);
    }
    return true;
}

static void npu_print_merge(npu_kernel *k, const ptowsp_insn_info *insn, npu_text *out) {
    const char *d = npu_kernel_tile(k, insn->dst[0]);
    if (insn->form != PTOWSP_FORM_LISTS) {
        npu_print(out, "TMRGSORT(%s, %s, %u)", d, npu_kernel_tile(k, insn->src[0]), insn->col);
        return;
    }
    k->has_lists = true;
    const char *tmp = npu_kernel_tile(k, insn->tmp);
    npu_print(out, "TMRGSORT<decltype(%s), decltype(%s)", d, tmp);
    for (uint32_t i = 0; i < 4 && insn->src[i]; i++) {
        npu_print(out, ", decltype(%s)", npu_kernel_tile(k, insn->src[i]));
    }
    npu_print(out, ", false>(%s, taken, %s", d, tmp);
    npu_print_tiles(k, insn->src, 4, out);
    npu_print(out, ")");
}

// Flags and barriers.
static bool npu_print_sync(const ptowsp_insn_info *insn, npu_text *out) {
    if (strcmp(insn->name, "PIPE_BARRIER") == 0) {
        if (insn->src_pipe == PTOWSP_PIPE_V) {
            npu_print(out, "WSP_BARRIER_V()");
        } else {
            npu_print(out, "pipe_barrier(%s)", npu_pipe_word(insn->src_pipe));
        }
        return true;
    }
    bool is_set = strcmp(insn->name, "SET_FLAG") == 0;
    if (!is_set && strcmp(insn->name, "WAIT_FLAG") != 0) {
        return false;
    }
    npu_print(out, "%s(%s, %s, ", is_set ? "set_flag" : "wait_flag", npu_pipe_word(insn->src_pipe),
              npu_pipe_word(insn->dst_pipe));
    if (insn->loop) {
        npu_print(out, "wsp::event(%u, n_%u))", insn->event, insn->loop);
    } else {
        npu_print(out, "EVENT_ID%u)", insn->event);
    }
    return true;
}

// The exceptions. False: not one of them.
static bool npu_print_special(npu_kernel *k, const ptowsp_insn_info *insn, npu_text *out) {
    const char *name = insn->name, *d = npu_kernel_tile(k, insn->dst[0]);
    const uint32_t *s = insn->src;
    if (npu_is_one_of(name, "TSDIV TADDSC TSUBSC")) {
        bool is_div = strcmp(name, "TSDIV") == 0;
        npu_print(out, "%s(%s, ", is_div ? "TDIVS" : name, d);
        if (!is_div) {
            npu_print(out, "%s, ", npu_kernel_tile(k, s[0]));
        }
        npu_print_scalar(k, insn, s[0], NPU_WRAPPED, out);
        npu_print(out, ", %s)", npu_kernel_tile(k, s[is_div ? 0 : 1]));
    } else if (npu_is_one_of(name, "TEXTRACT TINSERT")) {
        npu_print(out, "%s(%s, %s, %u, %u)", name, d, npu_kernel_tile(k, s[0]), insn->row,
                  insn->col);
    } else if (npu_is_one_of(name, "TCMP TCMPS")) {
        npu_print(out, "%s(%s, %s, ", name, d, npu_kernel_tile(k, s[0]));
        if (s[1]) {
            npu_print(out, "%s", npu_kernel_tile(k, s[1]));
        } else {
            npu_print_scalar(k, insn, s[0], NPU_COMPARED, out);
        }
        npu_print(out, ", CmpMode::%s)", npu_compare_word(insn->mode));
    } else if (npu_is_one_of(name, "TSEL TSELS")) {
        // Scratch is not the result here: without scratch, the mask is passed again.
        const char *tmp = npu_kernel_tile(k, insn->tmp ? insn->tmp : s[0]);
        npu_print(out, "%s(%s", name, d);
        npu_print_tiles(k, s, 3, out);
        npu_print(out, ", %s", tmp);
        if (!s[2]) {
            npu_print(out, ", ");
            npu_print_scalar(k, insn, insn->dst[0], NPU_COMPARED, out);
        }
        npu_print(out, ")");
    } else if (strcmp(name, "TCVT") == 0) {
        npu_print(out, "TCVT(%s, %s, RoundMode::%s%s)", d, npu_kernel_tile(k, s[0]),
                  npu_round_word(k, insn),
                  insn->form == PTOWSP_FORM_SATURATE ? ", SaturationMode::ON" : "");
    } else if (strcmp(name, "TEXPANDS") == 0) {
        npu_print(out, "TEXPANDS(%s, ", d);
        npu_print_scalar(k, insn, insn->dst[0], NPU_SATURATED, out);
        npu_print(out, ")");
    } else if (strcmp(name, "TCI") == 0) {
        npu_print(out, "TCI<decltype(%s), %s, %d>(%s, ", d,
                  npu_cpp_type(k->tiles[insn->dst[0]].object.dtype),
                  insn->form == PTOWSP_FORM_DESCENDING, d);
        npu_print_scalar(k, insn, insn->dst[0], NPU_SATURATED, out);
        npu_print(out, ")");
    } else if (strcmp(name, "TTRI") == 0) {
        npu_print(out, "TTRI<decltype(%s), %d>(%s, %d)", d, insn->form == PTOWSP_FORM_UPPER, d,
                  (int32_t)insn->col);
    } else if (strcmp(name, "TCOLSUM") == 0 && insn->tmp) {
        npu_print(out, "TCOLSUM(%s, %s, %s, true)", d, npu_kernel_tile(k, s[0]),
                  npu_kernel_tile(k, insn->tmp));
    } else if (strcmp(name, "TGATHERMASK") == 0) {
        const char *from = npu_kernel_tile(k, s[0]);
        npu_print(out, "TGATHER<decltype(%s), decltype(%s), MaskPattern::%s>(%s, %s)", d, from,
                  npu_pattern_word(insn->mode), d, from);
    } else if (strcmp(name, "TQUANT") == 0) {
        npu_print(out,
                  insn->tmp ? "WSP_QUANT(%s, %s, %s" : "TQUANT<QuantType::INT8_SYM>(%s, %s, %s", d,
                  npu_kernel_tile(k, s[0]), npu_kernel_tile(k, s[1]));
        npu_print_tiles(k, &insn->tmp, 1, out);
        npu_print(out, ")");
    } else if (strcmp(name, "TFILLPAD") == 0 && insn->form == PTOWSP_FORM_EXPAND) {
        npu_print(out, "TFILLPAD_EXPAND(%s, %s)", d, npu_kernel_tile(k, s[0]));
    } else if (strcmp(name, "TMRGSORT") == 0) {
        npu_print_merge(k, insn, out);
    } else {
        return false;
    }
    return true;
}

// TMOV and TEXTRACT of a right factor that may be stored by columns.
static bool npu_print_right(npu_kernel *k, const ptowsp_insn_info *insn, npu_text *out) {
    bool is_extract = strcmp(insn->name, "TEXTRACT") == 0;
    uint32_t param;
    if ((!is_extract && strcmp(insn->name, "TMOV") != 0) ||
        !npu_kernel_is_right(k, insn->src[0], &param)) {
        return false;
    }
    npu_print(out, "wsp::%s_right(task, %u, %s, %s, ", is_extract ? "extract" : "move", param,
              npu_kernel_tile(k, insn->dst[0]), npu_kernel_tile(k, insn->src[0]));
    npu_kernel_print_address(k, insn->src[0], out);
    if (is_extract) {
        npu_print(out, ", %u, %u", insn->row, insn->col);
    }
    npu_print(out, ")");
    return true;
}

// The call. False: none exists.
static bool npu_print_call(npu_kernel *k, const ptowsp_insn_info *insn, npu_text *out) {
    if (npu_print_sync(insn, out)) {
        return true;
    }
    if (insn->param != PTOWSP_NO_PARAM) {
        return npu_print_global(k, insn, out);
    }
    if (k->info.is_mixed && (strcmp(insn->name, "TPUSH") == 0 || strcmp(insn->name, "TPOP") == 0)) {
        uint32_t tile = insn->dst[0] ? insn->dst[0] : insn->src[0];
        npu_print(out, "%s.%s<%u>(%s)", insn->fifo ? "to_cube" : "to_vector",
                  insn->dst[0] ? "pop" : "push", k->tiles[tile].object.valid_cols.max,
                  npu_kernel_tile(k, tile));
        return true;
    }
    if (npu_kernel_half(k, insn) == NPU_HALF_BOTH && strcmp(insn->name, "TMOV") == 0) {
        bool is_to_vector = k->tiles[insn->dst[0]].object.memory == PTOWSP_MEMORY_UB;
        const char *to = npu_kernel_tile(k, insn->dst[0]);
        const char *at = k->tiles[k->tiles[k->tiles[insn->dst[0]].first].address].name;
        npu_print(out, "WSP_CROSS(%u, %s%s, %s%s, %s, %s)", k->crossings++ % 8,
                  is_to_vector ? at : "0", is_to_vector ? "_at" : "", is_to_vector ? "0" : at,
                  is_to_vector ? "" : "_at", to, npu_kernel_tile(k, insn->src[0]));
        return true;
    }
    if (npu_print_right(k, insn, out) || npu_print_special(k, insn, out)) {
        return true;
    }
    if (NPU_NEVER(!insn->dst[0] || insn->form == PTOWSP_FORM_INPLACE ||
                  insn->form == PTOWSP_FORM_EXPAND || insn->form == PTOWSP_FORM_ASYMMETRIC)) {
        return false;  // the library makes no such instruction
    }
    npu_print(out, "%s(%s", insn->name, npu_kernel_tile(k, insn->dst[0]));
    npu_print_tiles(k, insn->dst + 1, 1, out);
    npu_print_tiles(k, insn->src, 4, out);
    if (npu_is_one_of(insn->name, "TADDS TSUBS TMULS TDIVS TMAXS TMINS TANDS TORS TXORS TSHLS "
                                  "TSHRS TREMS TFMODS TPOWS TLRELU TAXPY")) {
        npu_print(out, ", ");
        npu_print_scalar(k, insn, insn->src[0], NPU_WRAPPED, out);
    }
    npu_print_tiles(k, &insn->tmp, 1, out);
    npu_print(out, ")");
    return true;
}

// -- statements -----------------------------------------------------------------------------------

NPU_INTERNAL void npu_print_wrapped(npu_text *out, uint32_t indent, const char *statement) {
    const size_t width = 100;
    size_t length = strlen(statement), room = width - indent;
    npu_print(out, "%*s", (int)indent, "");
    while (length > room) {
        size_t end = room;
        while (end > 0 && statement[end - 1] != ' ') {
            end--;
        }
        // One long word is not broken: names of a source's functions have no limit.
        end = end ? end : room + strcspn(statement + room, " ") + 1;
        if (end > length) {
            break;
        }
        npu_write(out, statement, end - 1);
        npu_print(out, "\n%*s", (int)indent + 4, "");
        statement += end;
        length -= end;
        room = width - indent - 4;
    }
    npu_write(out, statement, length);
    npu_write(out, "\n", 1);
}

// The tiles that must be non-empty for an instruction to be executed: names, separated; "": they
// always are.
static void npu_print_operands(const npu_kernel *k, const ptowsp_insn_info *insn, npu_text *out) {
    const uint32_t tiles[] = {insn->dst[0], insn->dst[1], insn->src[0],
                              insn->src[1], insn->src[2], insn->src[3]};
    bool is_first = true;
    for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++) {
        bool is_again = false;
        for (size_t j = 0; j < i; j++) {
            is_again =
                is_again || (tiles[j] && k->tiles[tiles[j]].first == k->tiles[tiles[i]].first);
        }
        if (tiles[i] && !is_again && npu_kernel_may_be_empty(k, tiles[i])) {
            npu_print(out, "%s%s", is_first ? "" : ", ", npu_kernel_tile(k, tiles[i]));
            is_first = false;
        }
    }
}

static bool npu_print_product(npu_kernel *k, const ptowsp_insn_info *insn, const char *call,
                              npu_text *out) {
    bool is_acc = strcmp(insn->name, "TMATMUL_ACC") == 0;
    bool is_bias = strcmp(insn->name, "TMATMUL_BIAS") == 0;
    uint32_t d = insn->dst[0], left = insn->src[is_acc ? 1 : 0];
    if ((!is_acc && !is_bias && strcmp(insn->name, "TMATMUL") != 0) ||
        (!npu_kernel_may_be_empty(k, d) &&
         npu_extent_least(k, &k->tiles[left].object.valid_cols) > 0)) {
        return false;
    }
    int indent = (int)k->indent;
    npu_print(out, "%*sif (wsp::any_product(%s, %s)) {\n", indent, "", npu_kernel_tile(k, d),
              npu_kernel_tile(k, left));
    npu_print_wrapped(out, k->indent + 4, call);
    if (!is_acc) {
        npu_text empty = {NULL, 0, 0, false};
        uint32_t right = insn->src[1];
        const ptowsp_tile_object *a = &k->tiles[left].object, *b = &k->tiles[right].object;
        uint32_t most = a->rows > b->cols ? a->rows : b->cols;
        uint32_t bytes = most * (ptowsp_dtype_size(a->dtype) == 4 ? 64 : 32);  // of a box
        if (bytes > k->zero_bytes) {
            k->zero_bytes = bytes;
            k->zero_dtype = a->dtype;
        }
        npu_print(out, "%*s} else {\n", indent, "");
        npu_print(&empty, "wsp::no_product<decltype(%s), decltype(%s)>(%s, ",
                  npu_kernel_tile(k, left), npu_kernel_tile(k, right), npu_kernel_tile(k, d));
        npu_kernel_print_address(k, left, &empty);
        npu_print(&empty, ", ");
        npu_kernel_print_address(k, right, &empty);
        npu_print(&empty, ", zeros_at%s%s);", is_bias ? ", " : "",
                  is_bias ? npu_kernel_tile(k, insn->src[2]) : "");
        npu_print_wrapped(out, k->indent + 4, empty.data ? empty.data : "");
        k->is_out_of_memory = k->is_out_of_memory || empty.is_out_of_memory;
        npu_text_free(&empty);
    }
    npu_print(out, "%*s}\n", indent, "");
    return true;
}

NPU_INTERNAL bool npu_kernel_print_insn(npu_kernel *k, const ptowsp_insn_info *insn,
                                        npu_text *out) {
    npu_text call = {NULL, 0, 0, false}, operands = {NULL, 0, 0, false};
    if (insn->is_implied) {
        npu_print(&call, "WSP_UNCOUNTED(");
    }
    bool is_call = npu_print_call(k, insn, &call);
    npu_print(&call, insn->is_implied ? ");" : ";");
    // A FIFO is pushed to and popped from whatever the tile has, as the other core does the opposite.
    if (strcmp(insn->name, "TPUSH") != 0 && strcmp(insn->name, "TPOP") != 0) {
        npu_print_operands(k, insn, &operands);
    }
    if (call.data && is_call && !npu_print_product(k, insn, call.data, out)) {
        if (operands.size) {
            npu_print(out, "%*sif (wsp::any(%s)) {\n", (int)k->indent, "", operands.data);
        }
        npu_print_wrapped(out, operands.size ? k->indent + 4 : k->indent, call.data);
        if (operands.size) {
            npu_print(out, "%*s}\n", (int)k->indent, "");
        }
    }
    k->is_out_of_memory = k->is_out_of_memory || call.is_out_of_memory || operands.is_out_of_memory;
    npu_text_free(&call);
    npu_text_free(&operands);
    return is_call;
}
