// Instructions as calls, spelled as PTO-ISA spells them.
//
// Most take their tiles in the list's order: destinations, sources, a scalar, scratch. npu_calls has
// the others. A call that depends on where its tiles are is in npu_print_call.

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

// Widening is declared without rounding; it has none under any mode.
static void npu_print_round(const npu_kernel *k, const ptowsp_insn_info *insn, npu_text *out) {
    ptowsp_dtype from = k->tiles[insn->src[0]].object.dtype;
    ptowsp_dtype to = k->tiles[insn->dst[0]].object.dtype;
    bool is_to_float = to == PTOWSP_F16 || to == PTOWSP_BF16 || to == PTOWSP_F32;
    bool is_wider = ptowsp_dtype_size(to) > ptowsp_dtype_size(from);
    bool is_exact = insn->mode == PTOWSP_ROUND_NEAREST && is_to_float && is_wider;
    npu_print(out, "%s",
              npu_word_at("RINT ROUND FLOOR CEIL TRUNC NONE", is_exact ? 5 : insn->mode).text);
}

// -- calls ----------------------------------------------------------------------------------------

// Calls by opcode and form; the first row that fits counts. In a call
//
//      $n          the opcode's name           $a  all tiles but scratch
//      $d          the destination             $t  scratch; without it, $0 again
//      $0 $1       the sources                 $u  ", " and scratch, if there is any
//      $g $l       the window, and its tile    $T  the destination's element type in C++
//      $r $k       row and column              $m $p $R  comparison, mask pattern, rounding
//      $w $c       the scalar as an element of $0, wrapped or compared
//      $s $e       the scalar as an element of $d, saturated or compared
//      $i $o $v    the pipes and the event of a flag
enum { NPU_ANY_FORM = -1, NPU_WITH_SCRATCH = -2 };

typedef struct npu_call_row {
    int op, form;
    char text[104];
} npu_call_row;

#define NPU_CALL(op, form, text) {PTOWSP_OP_##op, form, text},
#define NPU_FORM(op, form, text) NPU_CALL(op, PTOWSP_FORM_##form, text)
#define NPU_FORMS(op, text)      NPU_CALL(op, NPU_ANY_FORM, text)
#define NPU_SCALAR(op)           NPU_FORMS(op, "$n($a, $w$u)")

// clang-format off
static const npu_call_row npu_calls[] = {
    NPU_FORM(TSTORE, PLAIN, "$n($g, $l)")
    NPU_FORM(TSTORE, ADD, "$n<decltype($l), decltype($g), AtomicType::AtomicAdd>($g, $l)")
    NPU_FORM(TSTORE, RELU, "$n<decltype($l), decltype($g), AtomicType::AtomicNone, "
                           "ReluPreMode::NormalRelu>($g, $l)")
    NPU_FORMS(TLOAD, "$n($l, $g)")
    NPU_FORMS(MGATHER, "$n<Coalesce::Row>($l, $g, $0)")
    NPU_FORMS(MSCATTER, "$n<Coalesce::Row>($g, $l, $1)")
    NPU_SCALAR(TADDS) NPU_SCALAR(TSUBS) NPU_SCALAR(TMULS) NPU_SCALAR(TDIVS)
    NPU_SCALAR(TMAXS) NPU_SCALAR(TMINS) NPU_SCALAR(TANDS) NPU_SCALAR(TORS)
    NPU_SCALAR(TXORS) NPU_SCALAR(TSHLS) NPU_SCALAR(TSHRS) NPU_SCALAR(TREMS)
    NPU_SCALAR(TFMODS) NPU_SCALAR(TPOWS) NPU_SCALAR(TLRELU) NPU_SCALAR(TAXPY)
    NPU_FORMS(TSDIV, "TDIVS($d, $w, $0)")
    NPU_FORMS(TADDSC, "$n($d, $0, $w, $1)")
    NPU_FORMS(TSUBSC, "$n($d, $0, $w, $1)")
    NPU_FORMS(TEXTRACT, "$n($d, $0, $r, $k)")
    NPU_FORMS(TINSERT, "$n($d, $0, $r, $k)")
    NPU_FORMS(TCMP, "$n($d, $0, $1, CmpMode::$m)")
    NPU_FORMS(TCMPS, "$n($d, $0, $c, CmpMode::$m)")
    NPU_FORMS(TSEL, "$n($a, $t)")  // scratch is not the result here: without it, the mask again
    NPU_FORMS(TSELS, "$n($a, $t, $e)")
    NPU_FORM(TCVT, SATURATE, "$n($d, $0, RoundMode::CAST_$R, SaturationMode::ON)")
    NPU_FORMS(TCVT, "$n($d, $0, RoundMode::CAST_$R)")
    NPU_FORMS(TEXPANDS, "$n($d, $s)")
    NPU_FORM(TCI, DESCENDING, "$n<decltype($d), $T, 1>($d, $s)")
    NPU_FORMS(TCI, "$n<decltype($d), $T, 0>($d, $s)")
    NPU_FORM(TTRI, UPPER, "$n<decltype($d), 1>($d, $k)")
    NPU_FORMS(TTRI, "$n<decltype($d), 0>($d, $k)")
    NPU_CALL(TCOLSUM, NPU_WITH_SCRATCH, "$n($d, $0, $t, true)")
    NPU_FORMS(TGATHERMASK, "TGATHER<decltype($d), decltype($0), MaskPattern::$p>($d, $0)")
    NPU_CALL(TQUANT, NPU_WITH_SCRATCH, "WSP_QUANT($d, $0, $1, $t)")
    NPU_FORMS(TQUANT, "$n<QuantType::INT8_SYM>($d, $0, $1)")
    NPU_FORM(TFILLPAD, EXPAND, "TFILLPAD_EXPAND($d, $0)")
    NPU_FORM(TMRGSORT, PLAIN, "$n($d, $0, $k)")
    NPU_FORMS(SET_FLAG, "set_flag(PIPE_$i, PIPE_$o, $v)")
    NPU_FORMS(WAIT_FLAG, "wait_flag(PIPE_$i, PIPE_$o, $v)")
    NPU_FORMS(PIPE_BARRIER, "pipe_barrier(PIPE_$i)")
    NPU_FORM(NONE, PLAIN, "$n($a$u)")  // the others
};
// clang-format on

static const char *npu_call_of(const ptowsp_insn_info *insn) {
    const npu_call_row *call = npu_calls;
    while (call->op && !(call->op == (int)insn->op &&
                         (call->form == NPU_ANY_FORM || call->form == (int)insn->form ||
                          (call->form == NPU_WITH_SCRATCH && insn->tmp)))) {
        call++;
    }
    return call->text;
}

// Does PTO-ISA's simulator declare an instruction for tiles of one type, valid sizes included? A device
// takes several, and so may find one.
static bool npu_has_one_type(ptowsp_opcode op) {
    switch (op) {
    case PTOWSP_OP_TADD:
    case PTOWSP_OP_TABS:
    case PTOWSP_OP_TADDC:
    case PTOWSP_OP_TADDSC:
    case PTOWSP_OP_TPOW:
    case PTOWSP_OP_TXORS: return true;
    default: return false;
    }
}

// The variable of an operand.
static const char *npu_operand(npu_kernel *k, uint32_t tile) {
    return k->type_of ? npu_kernel_tile_as(k, tile, k->type_of) : npu_kernel_tile(k, tile);
}

// Writes tiles, each after a comma but the first.
static void npu_print_tiles(npu_kernel *k, const uint32_t *tiles, uint32_t count, bool is_first,
                            npu_text *out) {
    for (uint32_t i = 0; i < count; i++) {
        if (tiles[i]) {
            npu_print(out, "%s%s", is_first ? "" : ", ", npu_operand(k, tiles[i]));
            is_first = false;
        }
    }
}

static void npu_print_operand(npu_kernel *k, const ptowsp_insn_info *insn, char what,
                              npu_text *out) {
    static const char pipes[] = "S V M MTE1 MTE2 MTE3 FIX ALL";
    const uint32_t d = insn->dst[0], *s = insn->src;
    switch (what) {
    case 'n': npu_print(out, "%s", ptowsp_opcode_name(insn->op)); break;
    case 'd': npu_print(out, "%s", npu_operand(k, d)); break;
    case '0':
    case '1': npu_print(out, "%s", npu_operand(k, s[what - '0'])); break;
    case 'a':
        npu_print_tiles(k, insn->dst, 2, true, out);
        npu_print_tiles(k, s, 4, false, out);
        break;
    case 't': npu_print(out, "%s", npu_kernel_tile(k, insn->tmp ? insn->tmp : s[0])); break;
    case 'u': npu_print_tiles(k, &insn->tmp, 1, false, out); break;
    case 'g': npu_print(out, "%s", k->window); break;
    case 'l': npu_print(out, "%s", k->window_tile); break;
    case 'T': npu_print(out, "%s", npu_cpp_type(k->tiles[d].object.dtype)); break;
    case 'r': npu_print(out, "%u", insn->row); break;
    case 'k': npu_print(out, "%d", (int32_t)insn->col); break;
    case 'm': npu_print(out, "%s", npu_word_at("EQ NE LT LE GT GE", insn->mode).text); break;
    case 'p':
        npu_print(out, "%s",
                  npu_word_at("P0101 P1010 P0001 P0010 P0100 P1000 P1111", insn->mode).text);
        break;
    case 'R': npu_print_round(k, insn, out); break;
    case 'w': npu_print_scalar(k, insn, s[0], NPU_WRAPPED, out); break;
    case 'c': npu_print_scalar(k, insn, s[0], NPU_COMPARED, out); break;
    case 's': npu_print_scalar(k, insn, d, NPU_SATURATED, out); break;
    case 'e': npu_print_scalar(k, insn, d, NPU_COMPARED, out); break;
    case 'i': npu_print(out, "%s", npu_word_at(pipes, insn->src_pipe).text); break;
    case 'o': npu_print(out, "%s", npu_word_at(pipes, insn->dst_pipe).text); break;
    default:
        PTOWSP_ASSERT(what == 'v');
        npu_print(out, insn->loop ? "wsp::event(%u, n_%u)" : "EVENT_ID%u", insn->event, insn->loop);
    }
}

static void npu_print_template(npu_kernel *k, const ptowsp_insn_info *insn, npu_text *out) {
    k->type_of = npu_has_one_type(insn->op) ? insn->dst[0] : 0;
    for (const char *at = npu_call_of(insn); *at; at++) {
        if (*at == '$') {
            npu_print_operand(k, insn, *++at, out);
        } else {
            npu_write(out, at, 1);
        }
    }
    k->type_of = 0;
}

// TLOAD, TSTORE, MGATHER, MSCATTER.
static void npu_print_global(npu_kernel *k, const ptowsp_insn_info *insn, npu_text *out) {
    uint32_t object = insn->dst[0] ? insn->dst[0] : insn->src[0], right;
    const npu_window *window = npu_kernel_window(k, insn, object, &k->window_tile);
    if (!window) {
        return;  // memory is out, which the text records
    }
    k->window = window->name;
    bool is_load = insn->op == PTOWSP_OP_TLOAD;
    bool is_right = is_load && npu_kernel_is_right(k, object, &right);
    bool is_plain = insn->form == PTOWSP_FORM_PLAIN || insn->form == PTOWSP_FORM_ADD;
    if (is_right || (is_load && npu_kernel_has_column(k, object))) {
        npu_print(out, "wsp::load_%s(task, %u, %s, ", is_right ? "right" : "column", insn->param,
                  k->window_tile);
        npu_kernel_print_address(k, object, out);
        npu_print(out, ", %s%s)", k->window, is_right ? "" : ", columns_at");
    } else if (insn->op == PTOWSP_OP_TSTORE && is_plain && npu_kernel_has_column(k, object)) {
        npu_print(out, "wsp::store_column<AtomicType::Atomic%s>(task, %u, %s, %s, columns_at)",
                  insn->form == PTOWSP_FORM_ADD ? "Add" : "None", insn->param, k->window_tile,
                  k->window);
    } else {
        npu_print_template(k, insn, out);
    }
}

// TMRGSORT of separate lists.
static void npu_print_merge(npu_kernel *k, const ptowsp_insn_info *insn, npu_text *out) {
    const char *d = npu_kernel_tile(k, insn->dst[0]), *tmp = npu_kernel_tile(k, insn->tmp);
    k->has_lists = true;
    npu_print(out, "TMRGSORT<decltype(%s), decltype(%s)", d, tmp);
    for (uint32_t i = 0; i < 4 && insn->src[i]; i++) {
        npu_print(out, ", decltype(%s)", npu_kernel_tile(k, insn->src[i]));
    }
    npu_print(out, ", false>(%s, taken, %s", d, tmp);
    npu_print_tiles(k, insn->src, 4, false, out);
    npu_print(out, ")");
}

// TMOV and TEXTRACT of a right factor that may be stored by columns.
static bool npu_print_right(npu_kernel *k, const ptowsp_insn_info *insn, npu_text *out) {
    bool is_extract = insn->op == PTOWSP_OP_TEXTRACT;
    uint32_t param;
    if ((!is_extract && insn->op != PTOWSP_OP_TMOV) ||
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

NPU_INTERNAL bool npu_is_fifo(const ptowsp_insn_info *insn) {
    return insn->op == PTOWSP_OP_TPUSH || insn->op == PTOWSP_OP_TPOP;
}

NPU_INTERNAL const char *npu_fifo_name(uint32_t fifo) {
    return fifo ? "to_cube" : "to_vector";
}

static void npu_print_call(npu_kernel *k, const ptowsp_insn_info *insn, npu_text *out) {
    const uint32_t tile = insn->dst[0] ? insn->dst[0] : insn->src[0];
    const bool is_to_vector = tile && k->tiles[tile].object.memory == PTOWSP_MEMORY_UB;
    if (insn->param != PTOWSP_NO_PARAM) {
        npu_print_global(k, insn, out);
    } else if (insn->op == PTOWSP_OP_PIPE_BARRIER && insn->src_pipe == PTOWSP_PIPE_V) {
        npu_print(out, "WSP_BARRIER_V()");
    } else if (npu_is_fifo(insn)) {
        npu_print(out, "%s.%s<%u>(%s)", npu_fifo_name(insn->fifo), insn->dst[0] ? "pop" : "push",
                  k->tiles[tile].object.valid_cols.max, npu_kernel_tile(k, tile));
    } else if (insn->op == PTOWSP_OP_TMOV && npu_kernel_half(k, insn) == NPU_HALF_BOTH) {
        const char *at = k->tiles[k->tiles[k->tiles[tile].first].address].name;
        npu_print(out, is_to_vector ? "WSP_CROSS(%u, %s_at, 0" : "WSP_CROSS(%u, 0, %s_at",
                  k->crossings++ % 8, at);
        npu_print(out, ", %s, %s)", npu_kernel_tile(k, tile), npu_kernel_tile(k, insn->src[0]));
    } else if (insn->op == PTOWSP_OP_TMRGSORT && insn->form == PTOWSP_FORM_LISTS) {
        npu_print_merge(k, insn, out);
    } else if (!npu_print_right(k, insn, out)) {
        npu_print_template(k, insn, out);
    }
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

NPU_INTERNAL void npu_append_wrapped(npu_text *out, uint32_t indent, npu_text *statement) {
    npu_print_wrapped(out, indent, statement->data ? statement->data : "");
    npu_text_end(out, statement);
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

static bool npu_print_product(npu_kernel *k, const ptowsp_insn_info *insn, npu_text *call,
                              npu_text *out) {
    bool is_acc = insn->op == PTOWSP_OP_TMATMUL_ACC;
    bool is_bias = insn->op == PTOWSP_OP_TMATMUL_BIAS;
    uint32_t d = insn->dst[0], left = insn->src[is_acc ? 1 : 0];
    if ((!is_acc && !is_bias && insn->op != PTOWSP_OP_TMATMUL) ||
        (!npu_kernel_may_be_empty(k, d) &&
         npu_extent_least(k, &k->tiles[left].object.valid_cols) > 0)) {
        return false;
    }
    int indent = (int)k->indent;
    npu_print(out, "%*sif (wsp::any_product(%s, %s)) {\n", indent, "", npu_kernel_tile(k, d),
              npu_kernel_tile(k, left));
    npu_append_wrapped(out, k->indent + 4, call);
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
        npu_append_wrapped(out, k->indent + 4, &empty);
    }
    npu_print(out, "%*s}\n", indent, "");
    return true;
}

// A sum that begins in the first iteration of a loop: as the product that it is then, and as it is in
// all others.
static void npu_print_beginning(npu_kernel *k, const ptowsp_insn_info *insn, npu_text *out) {
    ptowsp_insn_info sum = *insn, product = *insn;
    int indent = (int)k->indent;
    sum.begins = product.begins = 0;
    product.op = PTOWSP_OP_TMATMUL;
    product.src[0] = insn->src[1];
    product.src[1] = insn->src[2];
    product.src[2] = 0;
    npu_print(out, "%*sif (n_%u == 0) {\n", indent, "", insn->begins);
    k->indent += 4;
    npu_kernel_print_insn(k, &product, out);
    npu_print(out, "%*s} else {\n", indent, "");
    npu_kernel_print_insn(k, &sum, out);
    k->indent -= 4;
    npu_print(out, "%*s}\n", indent, "");
}

NPU_INTERNAL void npu_kernel_print_insn(npu_kernel *k, const ptowsp_insn_info *insn,
                                        npu_text *out) {
    if (k->half == NPU_HALF_SECOND) {
        npu_print(out, "%*s%s.pass();\n", (int)k->indent, "", npu_fifo_name(insn->fifo));
        return;
    }
    if (insn->begins) {
        npu_print_beginning(k, insn, out);
        return;
    }
    npu_text call = {NULL, 0, 0, false}, operands = {NULL, 0, 0, false};
    if (insn->is_implied) {
        npu_print(&call, "WSP_UNCOUNTED(");
    }
    npu_print_call(k, insn, &call);
    npu_print(&call, insn->is_implied ? ");" : ";");
    // A FIFO is pushed and popped even if the tile is empty, as the other core does the opposite.
    if (!npu_is_fifo(insn)) {
        npu_print_operands(k, insn, &operands);
    }
    if (!npu_print_product(k, insn, &call, out)) {
        if (operands.size) {
            npu_print(out, "%*sif (wsp::any(%s)) {\n", (int)k->indent, "", operands.data);
        }
        npu_append_wrapped(out, operands.size ? k->indent + 4 : k->indent, &call);
        if (operands.size) {
            npu_print(out, "%*s}\n", (int)k->indent, "");
        }
    }
    npu_text_end(out, &operands);
}
