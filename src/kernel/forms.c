// The table of instructions' forms.

#include "forms.h"

static pwsp_form pwsp_form_make(uint8_t dst_count, uint8_t src_count, bool has_tmp,
                                bool has_scalar) {
    pwsp_form form;
    memset(&form, 0, sizeof form);
    form.dst_count = dst_count;
    form.src_count = src_count;
    form.has_tmp = has_tmp;
    form.has_scalar = has_scalar;
    return form;
}

// Loads and stores: one side is global memory.
static pwsp_form pwsp_form_global(uint8_t src_count) {
    pwsp_form form = pwsp_form_make(1, src_count, false, false);
    form.is_global = true;
    return form;
}

#define PWSP_FORM_CASE(name, function) case PTOISA_##name:

bool pwsp_op_reads_dst(ptoisa_op op) {
    switch (op) {
        PWSP_INSNS_UPDATE(PWSP_FORM_CASE)
    case PTOISA_TAXPY:
    case PTOISA_TINSERT: return true;
    default: return false;
    }
}

// The form, without its effect on the destination.
static pwsp_form pwsp_form_operands(ptoisa_op op) {
    switch (op) {
        PWSP_INSNS_UNARY(PWSP_FORM_CASE)
        return pwsp_form_make(1, 1, false, false);
        PWSP_INSNS_BINARY(PWSP_FORM_CASE)
        PWSP_INSNS_UPDATE(PWSP_FORM_CASE)
        return pwsp_form_make(1, 2, false, false);
        PWSP_INSNS_TERNARY(PWSP_FORM_CASE)
        return pwsp_form_make(1, 3, false, false);
        PWSP_INSNS_SCALAR(PWSP_FORM_CASE)
    case PTOISA_TSDIV:
    case PTOISA_TAXPY:
        return pwsp_form_make(1, 1, false, true);
        PWSP_INSNS_TMP(PWSP_FORM_CASE)
        return pwsp_form_make(1, 1, true, false);
        PWSP_INSNS_BINARY_TMP(PWSP_FORM_CASE)
        return pwsp_form_make(1, 2, true, false);
    case PTOISA_TLOAD: return pwsp_form_global(1);
    case PTOISA_TSTORE: return pwsp_form_global(1);
    case PTOISA_MGATHER: return pwsp_form_global(2);
    case PTOISA_MSCATTER: return pwsp_form_global(2);
    case PTOISA_TEXTRACT:
    case PTOISA_TINSERT:
    case PTOISA_TFILLPAD:
    case PTOISA_TCVT:
    case PTOISA_TMRGSORT:
    case PTOISA_TGATHERMASK: return pwsp_form_make(1, 1, false, false);
    case PTOISA_TEXPANDS:
    case PTOISA_TCI: return pwsp_form_make(1, 0, false, true);
    case PTOISA_TTRI: return pwsp_form_make(1, 0, false, false);
    case PTOISA_TXORS: return pwsp_form_make(1, 1, true, true);
    case PTOISA_TADDSC:
    case PTOISA_TSUBSC: return pwsp_form_make(1, 2, false, true);
    case PTOISA_TCOLSUM: return pwsp_form_make(1, 1, true, false);
    case PTOISA_TCMP: return pwsp_form_make(1, 2, false, false);
    case PTOISA_TCMPS: return pwsp_form_make(1, 1, false, true);
    case PTOISA_TSEL: return pwsp_form_make(1, 3, true, false);
    case PTOISA_TSELS: return pwsp_form_make(1, 2, true, true);
    case PTOISA_TQUANT: return pwsp_form_make(1, 2, false, false);
    case PTOISA_TINTERLEAVE:
    case PTOISA_TDEINTERLEAVE: return pwsp_form_make(2, 2, false, false);
    default: return pwsp_form_make(0, 0, false, false);
    }
}
#undef PWSP_FORM_CASE

pwsp_form pwsp_form_of(ptoisa_op op) {
    pwsp_form form = pwsp_form_operands(op);
    form.is_dst_read = pwsp_op_reads_dst(op);
    return form;
}
