// Makes a list of instructions legal for its machine, by the table of legal.h.
//
// A legal list stays as it is. Otherwise it is rewritten: legal instructions are copied, others are
// put between conversions. Conversions are implied: PTO-WSP's unit model does not count them, the
// models of machines do.

#include "legal.h"

#include "../isa/elementwise.h"

#include <stdio.h>

const pwsp_legal_row *pwsp_legal_row_of(ptoisa_op op) {
    switch (op) {
#define PWSP_LEGAL_ROW(name, a2a3, through, a5)                                                    \
    case PTOISA_##name: {                                                                          \
        static const pwsp_legal_row row = {PTOISA_##name, {(a2a3), (a5)}, (through)};              \
        return &row;                                                                               \
    }
        PWSP_LEGAL(PWSP_LEGAL_ROW)
#undef PWSP_LEGAL_ROW
    default: return NULL;
    }
}

typedef enum pwsp_legality { PWSP_LEGAL_AS_IT_IS, PWSP_LEGAL_WIDE, PWSP_LEGAL_NOT } pwsp_legality;

// An instruction is of its first source's type.
static pwsp_legality pwsp_legality_of(const ptowsp_body *body, const pwsp_list *list,
                                      const pwsp_insn *insn) {
    const pwsp_legal_row *row = pwsp_legal_row_of((ptoisa_op)insn->op);
    if (!row) {
        return PWSP_LEGAL_AS_IT_IS;
    }
    PTOWSP_ASSERT(insn->src[0] && (uint32_t)body->machine.family <= PTOISA_A5);
    uint8_t dtype = list->tiles[insn->src[0]].dtype;
    if (row->dtypes[body->machine.family] >> dtype & 1) {
        return PWSP_LEGAL_AS_IT_IS;
    }
    bool is_wide = body->machine.family == PTOISA_A2A3 && (row->through_f32 >> dtype & 1);
    return is_wide ? PWSP_LEGAL_WIDE : PWSP_LEGAL_NOT;
}

static bool pwsp_legal_refuse(const ptowsp_body *body, const pwsp_list *list, uint32_t i,
                              pwsp_list_fault *fault) {
    const pwsp_insn *insn = &list->insns[i];
    const pwsp_legal_row *row = pwsp_legal_row_of((ptoisa_op)insn->op);
    uint32_t dtypes = row->dtypes[body->machine.family] |
                      (body->machine.family == PTOISA_A2A3 ? row->through_f32 : 0);
    char text[96] = "";
    size_t at = 0;
    for (uint32_t d = 0; d < PTOISA_DTYPE_COUNT; d++) {
        if (dtypes >> d & 1) {
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", at ? ", " : "",
                                   ptoisa_dtype_name((ptoisa_dtype)d));
        }
    }
    PTOWSP_ASSERT(at < sizeof text);
    return pwsp_list_fail(fault, PTOWSP_UNSUPPORTED, i,
                          "%s: %s is not for %s (%s), which has %s (rule: element types)",
                          ptoisa_op_name((ptoisa_op)insn->op),
                          ptoisa_dtype_name((ptoisa_dtype)list->tiles[insn->src[0]].dtype),
                          body->machine.name, body->machine.family == PTOISA_A5 ? "A5" : "A2/A3",
                          text);
}

// -- through f32 ----------------------------------------------------------------------------------

// Converts between tiles of one shape; columns as rows.
static void pwsp_legal_convert(pwsp_lowering *lw, uint32_t dst, uint32_t src, ptoisa_round round) {
    if (dst == 0 || src == 0) {  // memory is out
        return;
    }
    uint32_t to = pwsp_lower_flat(lw, dst), from = pwsp_lower_flat(lw, src);
    pwsp_insn *cvt = pwsp_insn_emit(lw, PTOISA_TCVT, to, from, 0, 0);
    cvt->mode = (uint8_t)round;
    cvt->is_implied = true;
}

// A source in f32. Of a column with copies in each row one is enough.
static uint32_t pwsp_legal_wide(pwsp_lowering *lw, uint32_t tile, bool is_column) {
    pwsp_list_tile of = lw->list->tiles[tile];
    if (is_column && of.layout == PTOISA_ROW_MAJOR) {
        tile = pwsp_lower_view(lw, tile, PTOISA_ROW_MAJOR, of.dtype, of.rows, of.cols,
                               of.valid_rows, pwsp_valid_full(1), 0);
    }
    uint32_t wide = pwsp_lower_like(lw, tile, PTOISA_F32);
    pwsp_legal_convert(lw, wide, tile, PTOISA_CAST_NONE);
    return wide;
}

// A scalar is rounded to the tiles' type before it is used. A constant is rounded here; a parameter
// fills a tile of that type, and the instruction becomes the one of two tiles.
static ptoisa_op pwsp_legal_scalar(pwsp_lowering *lw, pwsp_insn *insn) {
    static const uint8_t forms[][2] = {{PTOISA_TADDS, PTOISA_TADD}, {PTOISA_TSUBS, PTOISA_TSUB},
                                       {PTOISA_TMULS, PTOISA_TMUL}, {PTOISA_TDIVS, PTOISA_TDIV},
                                       {PTOISA_TSDIV, PTOISA_TDIV}, {PTOISA_TMAXS, PTOISA_TMAX},
                                       {PTOISA_TMINS, PTOISA_TMIN}};
    ptoisa_op op = (ptoisa_op)insn->op;
    ptoisa_dtype dtype = (ptoisa_dtype)lw->list->tiles[insn->src[0]].dtype;
    if (!insn->scalar.param && !insn->scalar.cols_of) {
        PTOWSP_ASSERT(dtype == PTOISA_BF16);
        uint32_t bits = ptoisa_scalar_bits(dtype, insn->scalar.value);
        insn->scalar.value = (double)ptoisa_f32_from_bf16((uint16_t)bits);
        return op;
    }
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (forms[i][0] == op) {
            uint32_t tile = pwsp_lower_like(lw, insn->src[0], (uint8_t)dtype);
            pwsp_insn *fill = pwsp_insn_emit(lw, PTOISA_TEXPANDS, tile, 0, 0, 0);
            fill->scalar = insn->scalar;
            fill->is_implied = true;
            memset(&insn->scalar, 0, sizeof insn->scalar);
            insn->src[1] = op == PTOISA_TSDIV ? insn->src[0] : tile;
            insn->src[0] = op == PTOISA_TSDIV ? tile : insn->src[0];
            return (ptoisa_op)forms[i][1];
        }
    }
    PTOWSP_ASSERT(false);
    return op;
}

// May the instruction write over its first source, if both tiles have one shape?
static bool pwsp_legal_is_shared(const pwsp_lowering *lw, const pwsp_insn *insn) {
    const pwsp_list_tile *d = &lw->list->tiles[insn->dst[0]], *s = &lw->list->tiles[insn->src[0]];
    bool is_apart =
        insn->op == PTOISA_TRSQRT || (insn->op >= PTOISA_TROWSUM && insn->op <= PTOISA_TCOLPROD);
    return !is_apart && d->layout == s->layout && d->rows == s->rows && d->cols == s->cols &&
           pwsp_valid_is_equal(&d->valid_rows, &s->valid_rows) &&
           pwsp_valid_is_equal(&d->valid_cols, &s->valid_cols);
}

static void pwsp_legal_widen(pwsp_lowering *lw, pwsp_insn insn) {
    lw->at = insn.value;
    ptoisa_op op = (ptoisa_op)insn.op;
    bool is_integer = lw->list->tiles[insn.src[0]].dtype == PTOISA_I16;
    if (pwsp_form_of(op).has_scalar) {
        op = pwsp_legal_scalar(lw, &insn);
    }
    if (lw->is_out) {
        return;
    }
    bool is_row_expand = op >= PTOISA_TROWEXPANDADD && op <= PTOISA_TROWEXPANDEXPDIF;
    bool is_shared = pwsp_legal_is_shared(lw, &insn);
    uint32_t a = pwsp_legal_wide(lw, insn.src[0], false);
    uint32_t b = insn.src[1] == 0             ? 0
                 : insn.src[1] == insn.src[0] ? a
                                              : pwsp_legal_wide(lw, insn.src[1], is_row_expand);
    bool is_dst_wide = lw->list->tiles[insn.dst[0]].dtype == PTOISA_F32;
    uint32_t dst = is_dst_wide ? insn.dst[0]
                   : is_shared ? a
                               : pwsp_lower_like(lw, insn.dst[0], PTOISA_F32);
    uint32_t tmp = insn.tmp ? pwsp_lower_like(lw, insn.tmp, PTOISA_F32) : 0;
    pwsp_insn *wide = pwsp_insn_emit(lw, op, dst, a, b, 0);
    wide->tmp = tmp;
    wide->variant = insn.variant;
    wide->mode = insn.mode;
    wide->scalar = insn.scalar;
    wide->is_implied = insn.is_implied;
    if (!is_dst_wide) {
        pwsp_legal_convert(lw, insn.dst[0], dst, is_integer ? PTOISA_CAST_TRUNC : PTOISA_CAST_RINT);
    }
}

// -- the list -------------------------------------------------------------------------------------

// Appends instruction `at` of the old list, or its replacement.
typedef void (*pwsp_legal_step)(pwsp_lowering *lw, const pwsp_insn *insns, uint64_t count,
                                uint64_t at);

static void pwsp_legal_type_apply(pwsp_lowering *lw, const pwsp_insn *insns, uint64_t count,
                                  uint64_t at) {
    (void)count;
    if (pwsp_legality_of(lw->body, lw->list, &insns[at]) == PWSP_LEGAL_WIDE) {
        pwsp_legal_widen(lw, insns[at]);
        return;
    }
    lw->is_out = !pwsp_list_append(lw->list, &insns[at]);
}

static bool pwsp_legal_rewrite(ptowsp_body *body, pwsp_list *list, pwsp_legal_step step,
                               pwsp_list_fault *fault) {
    pwsp_insn *insns = list->insns;
    uint64_t count = list->insn_count;
    pwsp_lowering lw;
    memset(&lw, 0, sizeof lw);
    lw.body = body;
    lw.list = list;
    lw.is_out = !pwsp_list_renew(list, count);
    for (uint64_t i = 0; i < count && !lw.is_out; i++) {
        step(&lw, insns, count, i);
    }
    return !lw.is_out || pwsp_list_fail(fault, PTOWSP_OUT_OF_MEMORY, 0, "out of memory");
}

bool pwsp_legalise(ptowsp_body *body, pwsp_list *list, pwsp_list_fault *fault) {
    bool is_wide = false, has_form = false;
    for (uint64_t i = 0; i < list->insn_count; i++) {
        pwsp_legality legality = pwsp_legality_of(body, list, &list->insns[i]);
        if (legality == PWSP_LEGAL_NOT) {
            return pwsp_legal_refuse(body, list, (uint32_t)i, fault);
        }
        is_wide = is_wide || legality == PWSP_LEGAL_WIDE;
        has_form =
            has_form || pwsp_legal_may_change(pwsp_legal_form_of((ptoisa_op)list->insns[i].op));
    }
    return (!is_wide || pwsp_legal_rewrite(body, list, pwsp_legal_type_apply, fault)) &&
           (!has_form || pwsp_legal_rewrite(body, list, pwsp_legal_form_apply, fault));
}
