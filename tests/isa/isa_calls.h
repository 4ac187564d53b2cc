// Tests of ptoisa_shim.h: a good call of every instruction, with the cycles that it costs in the unit model. Its
// operands are those of isa_calls.txt. What goes wrong is then a change to one of them.

#ifndef PTOISA_CALLS_H
#define PTOISA_CALLS_H

#include "isa_operand.h"
#include "isa_test.h"
#include "isa_window.h"

enum { CALL_TILES_MAX = 5, CALL_LINE_MAX = 200 };

typedef enum call_need {
    NEED_NOTHING = 0,  // scratch, and destinations
    NEED_ROWS = 1,
    NEED_COLS = 2
} call_need;

// name for messages, prefix of its faults, the call
#define TILES_2 core, t[0], t[1]
#define TILES_3 TILES_2, t[2]
#define TILES_4 TILES_3, t[3]
#define TILES_5 TILES_4, t[4]

// name for messages, prefix of its faults, form, type, cycles, the call
#define CALLS(CALL)                                                                                \
    CALL(TLOAD, TLOAD, tload(core, t[0], g))                                                       \
    CALL(TSTORE, TSTORE, tstore(core, g, t[0]))                                                    \
    CALL(TSTORE_ADD, TSTORE, tstore_add(core, g, t[0]))                                            \
    CALL(TSTORE_ACC, TSTORE, tstore(core, g, t[0]))                                                \
    CALL(TSTORE_RELU, TSTORE, tstore_relu(core, g, t[0]))                                          \
    CALL(TSTORE_QUANT, TSTORE, tstore_quant(core, g, t[0], 0.5f, false))                           \
    CALL(TSTORE_FP, TSTORE, tstore_fp(core, g, t[0], t[1], true))                                  \
    CALL(TMOV, TMOV, tmov(TILES_2))                                                                \
    CALL(TMOV_LEFT, TMOV, tmov(TILES_2))                                                           \
    CALL(TMOV_BIAS, TMOV, tmov(TILES_2))                                                           \
    CALL(TMOV_QUANT, TMOV, tmov_quant(TILES_2, 0.5f, false))                                       \
    CALL(TMOV_FP, TMOV, tmov_fp(TILES_3, true))                                                    \
    CALL(TINSERT_QUANT, TINSERT, tinsert_quant(TILES_2, 2, 0, 0, false))                           \
    CALL(TEXTRACT_FP, TEXTRACT, textract_fp(TILES_3, 0, 0, false))                                 \
    CALL(TMOV_ACC, TMOV, tmov(TILES_2))                                                            \
    CALL(TEXTRACT, TEXTRACT,                                                                       \
         textract(TILES_2, (uint32_t)call_number(k, 0, 0), (uint32_t)call_number(k, 1, 0)))        \
    CALL(TEXTRACT_L0, TEXTRACT,                                                                    \
         textract(TILES_2, (uint32_t)call_number(k, 0, 0), (uint32_t)call_number(k, 1, 0)))        \
    CALL(TINSERT, TINSERT,                                                                         \
         tinsert(TILES_2, (uint32_t)call_number(k, 0, 0), (uint32_t)call_number(k, 1, 0)))         \
    CALL(TCVT, TCVT,                                                                               \
         tcvt(TILES_2, (ptoisa_round)call_number(k, 0, PTOISA_CAST_RINT),                          \
              call_number(k, 1, 0) != 0))                                                          \
    CALL(TTRANS, TTRANS, ttrans(TILES_3))                                                          \
    CALL(TEXPANDS, TEXPANDS, texpands(core, t[0], call_number(k, 0, 1)))                           \
    CALL(TFILLPAD, TFILLPAD, tfillpad(TILES_2))                                                    \
    CALL(TFILLPAD_EXPAND, TFILLPAD, tfillpad_expand(TILES_2))                                      \
    CALL(TCONCAT, TCONCAT, tconcat(TILES_3))                                                       \
    CALL(TINTERLEAVE, TINTERLEAVE, tinterleave(TILES_4))                                           \
    CALL(TDEINTERLEAVE, TDEINTERLEAVE, tdeinterleave(TILES_4))                                     \
    CALL(TCI, TCI, tci(core, t[0], call_number(k, 0, 5), call_number(k, 1, 0) != 0))               \
    CALL(TTRI, TTRI, ttri(core, t[0], true, 1))                                                    \
    CALL(TADD, TADD, tadd(TILES_3))                                                                \
    CALL(TSUB, TSUB, tsub(TILES_3))                                                                \
    CALL(TMUL, TMUL, tmul(TILES_3))                                                                \
    CALL(TDIV, TDIV, tdiv(TILES_3))                                                                \
    CALL(TMAX, TMAX, tmax(TILES_3))                                                                \
    CALL(TMIN, TMIN, tmin(TILES_3))                                                                \
    CALL(TAND, TAND, tand(TILES_3))                                                                \
    CALL(TOR, TOR, tor(TILES_3))                                                                   \
    CALL(TXOR, TXOR, txor(TILES_4))                                                                \
    CALL(TSHL, TSHL, tshl(TILES_3))                                                                \
    CALL(TSHR, TSHR, tshr(TILES_3))                                                                \
    CALL(TREM, TREM, trem(TILES_4))                                                                \
    CALL(TFMOD, TFMOD, tfmod(TILES_3, NULL))                                                       \
    CALL(TPOW, TPOW, tpow(TILES_3, NULL))                                                          \
    CALL(TPARTADD, TPARTADD, tpartadd(TILES_3))                                                    \
    CALL(TPARTMUL, TPARTMUL, tpartmul(TILES_3))                                                    \
    CALL(TPARTMAX, TPARTMAX, tpartmax(TILES_3))                                                    \
    CALL(TPARTMIN, TPARTMIN, tpartmin(TILES_3))                                                    \
    CALL(TADDS, TADDS, tadds(TILES_2, call_number(k, 0, 2)))                                       \
    CALL(TSUBS, TSUBS, tsubs(TILES_2, call_number(k, 0, 2)))                                       \
    CALL(TMULS, TMULS, tmuls(TILES_2, call_number(k, 0, 2)))                                       \
    CALL(TDIVS, TDIVS, tdivs(TILES_2, call_number(k, 0, 2)))                                       \
    CALL(TSDIV, TSDIV, tsdiv(core, t[0], call_number(k, 0, 2), t[1]))                              \
    CALL(TMAXS, TMAXS, tmaxs(TILES_2, 2))                                                          \
    CALL(TMINS, TMINS, tmins(TILES_2, 2))                                                          \
    CALL(TANDS, TANDS, tands(TILES_2, 2))                                                          \
    CALL(TORS, TORS, tors(TILES_2, 2))                                                             \
    CALL(TXORS, TXORS, txors(TILES_2, 2, t[2]))                                                    \
    CALL(TSHLS, TSHLS, tshls(TILES_2, 2))                                                          \
    CALL(TSHRS, TSHRS, tshrs(TILES_2, 2))                                                          \
    CALL(TREMS, TREMS, trems(TILES_2, 2))                                                          \
    CALL(TFMODS, TFMODS, tfmods(TILES_2, 2))                                                       \
    CALL(TPOWS, TPOWS, tpows(TILES_2, 2))                                                          \
    CALL(TEXP, TEXP, texp(TILES_2))                                                                \
    CALL(TLOG, TLOG, tlog(TILES_2))                                                                \
    CALL(TSQRT, TSQRT, tsqrt(TILES_2))                                                             \
    CALL(TRSQRT, TRSQRT, trsqrt(TILES_2))                                                          \
    CALL(TRECIP, TRECIP, trecip(TILES_2))                                                          \
    CALL(TABS, TABS, tabs(TILES_2))                                                                \
    CALL(TNEG, TNEG, tneg(TILES_2))                                                                \
    CALL(TRELU, TRELU, trelu(TILES_2))                                                             \
    CALL(TNOT, TNOT, tnot(TILES_2))                                                                \
    CALL(TLRELU, TLRELU, tlrelu(TILES_2, call_number(k, 0, 2)))                                    \
    CALL(TPRELU, TPRELU, tprelu(TILES_4))                                                          \
    CALL(TAXPY, TAXPY, taxpy(TILES_2, call_number(k, 0, 2)))                                       \
    CALL(TADDC, TADDC, taddc(TILES_4))                                                             \
    CALL(TSUBC, TSUBC, tsubc(TILES_4))                                                             \
    CALL(TADDSC, TADDSC, taddsc(TILES_2, 2, t[2]))                                                 \
    CALL(TSUBSC, TSUBSC, tsubsc(TILES_2, 2, t[2]))                                                 \
    CALL(TFUSEDMULADD, TFUSEDMULADD, tfusedmuladd(TILES_3))                                        \
    CALL(TMULADDDST, TMULADDDST, tmuladddst(TILES_3))                                              \
    CALL(TFUSEDMULADDRELU, TFUSEDMULADDRELU, tfusedmuladdrelu(TILES_3))                            \
    CALL(TSUBRELU, TSUBRELU, tsubrelu(TILES_3))                                                    \
    CALL(TROWSUM, TROWSUM, trowsum(TILES_3))                                                       \
    CALL(TROWMAX, TROWMAX, trowmax(TILES_3))                                                       \
    CALL(TROWMIN, TROWMIN, trowmin(TILES_3))                                                       \
    CALL(TROWPROD, TROWPROD, trowprod(TILES_3))                                                    \
    CALL(TROWARGMAX, TROWARGMAX, trowargmax(TILES_3))                                              \
    CALL(TROWARGMIN, TROWARGMIN, trowargmin(TILES_3))                                              \
    CALL(TROWARGMAX_VALUES, TROWARGMAX, trowargmax_values(TILES_4))                                \
    CALL(TPAIRREDUCESUM, TPAIRREDUCESUM, tpairreducesum(TILES_2))                                  \
    CALL(TCOLARGMAX, TCOLARGMAX, tcolargmax(TILES_3))                                              \
    CALL(TCOLARGMIN, TCOLARGMIN, tcolargmin(TILES_3))                                              \
    CALL(TCOLSUM, TCOLSUM, tcolsum(TILES_3, true))                                                 \
    CALL(TCOLSUM_SEQ, TCOLSUM, tcolsum(TILES_2, NULL, false))                                      \
    CALL(TCOLMAX, TCOLMAX, tcolmax(TILES_2))                                                       \
    CALL(TCOLMIN, TCOLMIN, tcolmin(TILES_2))                                                       \
    CALL(TCOLPROD, TCOLPROD, tcolprod(TILES_2))                                                    \
    CALL(TROWEXPAND, TROWEXPAND, trowexpand(TILES_2))                                              \
    CALL(TROWEXPANDADD, TROWEXPANDADD, trowexpandadd(TILES_3))                                     \
    CALL(TROWEXPANDSUB, TROWEXPANDSUB, trowexpandsub(TILES_3))                                     \
    CALL(TROWEXPANDMUL, TROWEXPANDMUL, trowexpandmul(TILES_3))                                     \
    CALL(TROWEXPANDDIV, TROWEXPANDDIV, trowexpanddiv(TILES_3))                                     \
    CALL(TROWEXPANDMAX, TROWEXPANDMAX, trowexpandmax(TILES_3))                                     \
    CALL(TROWEXPANDMIN, TROWEXPANDMIN, trowexpandmin(TILES_3))                                     \
    CALL(TROWEXPANDEXPDIF, TROWEXPANDEXPDIF, trowexpandexpdif(TILES_3))                            \
    CALL(TCOLEXPAND, TCOLEXPAND, tcolexpand(TILES_2))                                              \
    CALL(TCOLEXPANDADD, TCOLEXPANDADD, tcolexpandadd(TILES_3))                                     \
    CALL(TCOLEXPANDSUB, TCOLEXPANDSUB, tcolexpandsub(TILES_3))                                     \
    CALL(TCOLEXPANDMUL, TCOLEXPANDMUL, tcolexpandmul(TILES_3))                                     \
    CALL(TCOLEXPANDDIV, TCOLEXPANDDIV, tcolexpanddiv(TILES_3))                                     \
    CALL(TCOLEXPANDMAX, TCOLEXPANDMAX, tcolexpandmax(TILES_3))                                     \
    CALL(TCOLEXPANDMIN, TCOLEXPANDMIN, tcolexpandmin(TILES_3))                                     \
    CALL(TCOLEXPANDEXPDIF, TCOLEXPANDEXPDIF, tcolexpandexpdif(TILES_3))                            \
    CALL(TCMP, TCMP, tcmp(TILES_3, (ptoisa_compare)call_number(k, 0, PTOISA_EQ)))                  \
    CALL(TCMPS, TCMPS,                                                                             \
         tcmps(TILES_2, call_number(k, 0, 2), (ptoisa_compare)call_number(k, 1, PTOISA_EQ)))       \
    CALL(TSEL, TSEL, tsel(TILES_5))                                                                \
    CALL(TSELS, TSELS, tsels(TILES_4, 2))                                                          \
    CALL(TSORT32, TSORT32, tsort32(TILES_3))                                                       \
    CALL(TMRGSORT, TMRGSORT, tmrgsort(TILES_2, (uint32_t)call_number(k, 0, 64)))                   \
    CALL(TMRGSORT_LISTS, TMRGSORT,                                                                 \
         tmrgsort_lists(TILES_2, t + 2, (uint32_t)call_number(k, 0, 2), executed,                  \
                        call_number(k, 1, 0) != 0))                                                \
    CALL(TGATHERMASK, TGATHERMASK,                                                                 \
         tgather_mask(TILES_2, (ptoisa_pattern)call_number(k, 0, PTOISA_P1010)))                   \
    CALL(TGATHER, TGATHER, tgather(TILES_4))                                                       \
    CALL(TGATHERB, TGATHERB, tgatherb(TILES_3))                                                    \
    CALL(MGATHER_ELEM, MGATHER, mgather_by(core, t[0], g, t[1], true, PTOISA_OUTSIDE_FAULT))       \
    CALL(MSCATTER_ELEM, MSCATTER,                                                                  \
         mscatter_by(core, g, t[0], t[1], call_number(k, 0, 1) != 0,                               \
                     (ptoisa_scatter)call_number(k, 1, PTOISA_SCATTER_ADD)))                       \
    CALL(TSCATTER, TSCATTER, tscatter(TILES_3))                                                    \
    CALL(MGATHER, MGATHER, mgather(core, t[0], g, t[1]))                                           \
    CALL(MSCATTER, MSCATTER, mscatter(core, g, t[0], t[1]))                                        \
    CALL(TMATMUL, TMATMUL, tmatmul(TILES_3))                                                       \
    CALL(TMATMUL_ACC, TMATMUL_ACC, tmatmul_acc(TILES_4))                                           \
    CALL(TMATMUL_BIAS, TMATMUL_BIAS, tmatmul_bias(TILES_4))                                        \
    CALL(TGEMV, TGEMV, tgemv(TILES_3))                                                             \
    CALL(TGEMV_ACC, TGEMV_ACC, tgemv_acc(TILES_4))                                                 \
    CALL(TGEMV_BIAS, TGEMV_BIAS, tgemv_bias(TILES_4))                                              \
    CALL(TQUANT_SYM, TQUANT, tquant_sym(TILES_3))                                                  \
    CALL(TQUANT_ASYM, TQUANT, tquant_asym(TILES_4))                                                \
    CALL(TDEQUANT, TDEQUANT, tdequant(TILES_4))

typedef enum call_id {
#define CALL_ID(name, prefix, call) CALL_##name,
    CALLS(CALL_ID)
#undef CALL_ID
        CALL_COUNT
} call_id;

static const char *const call_names[][2] = {
#define CALL_NAMES(name, prefix, call) {#name, #prefix ": "},
    CALLS(CALL_NAMES)
#undef CALL_NAMES
};

typedef struct test_call {
    call_id id;
    const char *name;
    const char *prefix;  // of its faults
    uint64_t cycles;
    test_tile *tiles[CALL_TILES_MAX];
    uint32_t needs[CALL_TILES_MAX];
    bool is_scratch[CALL_TILES_MAX];
    uint32_t tile_count;
    bool has_window;
    test_window window;
    double numbers[3];  // that a line of text gives
    uint32_t number_count;
} test_call;

// How many numbers the last call has asked for.
__attribute__((unused)) static uint32_t call_numbers_taken;

// A number that a call takes: that of a line, or another one.
static inline double call_number(const test_call *call, uint32_t i, double otherwise) {
    call_numbers_taken = call_numbers_taken > i ? call_numbers_taken : i + 1;
    return i < call->number_count ? call->numbers[i] : otherwise;
}

static inline call_id call_named(const char *name) {
    int id = 0;
    while (strcmp(call_names[id][0], name) != 0) {
        if (++id == CALL_COUNT) {
            fail_msg("there is no call %s", name);
        }
    }
    return (call_id)id;
}

// -- operands -------------------------------------------------------------------------------------

// Operands by call and family, and cycles.
typedef struct call_lines {
    char operands[CALL_COUNT][2][CALL_LINE_MAX];
    uint64_t cycles[CALL_COUNT][2];
} call_lines;

// A number that is all of a text.
static inline uint64_t call_cycles(const char *text) {
    char *end;
    const uint64_t cycles = strtoull(text, &end, 10);
    if (end == text || *end) {
        fail_msg("%s is no number of cycles", text);
    }
    return cycles;
}

static inline void call_line(char *line, const char *result, void *user) {
    call_lines *lines = (call_lines *)user;
    char machine[8], name[32];
    int length;
    assert_int_equal(sscanf(line, "%7s %31s%n", machine, name, &length), 2);
    const call_id id = call_named(name);
    const bool is_both = strcmp(machine, "both") == 0;
    assert_non_null(result);
    assert_true(is_both || !strcmp(machine, "A5") || !strcmp(machine, "A2A3"));
    for (int family = 0; family < 2; family++) {
        if (is_both || !strcmp(machine, family == PTOISA_A5 ? "A5" : "A2A3")) {
            assert_true(strlen(line + length) < CALL_LINE_MAX && !lines->operands[id][family][0]);
            strcpy(lines->operands[id][family], line + length);
            lines->cycles[id][family] = call_cycles(result);
        }
    }
}

static inline const call_lines *call_lines_here(void) {
    static call_lines lines;
    if (!lines.operands[0][0][0]) {
        operand_lines("tests/isa/isa_calls.txt", CALL_COUNT, call_line, &lines);
    }
    return &lines;
}

// How many operands a call has.
static inline uint32_t call_operand_count(call_id id) {
    uint32_t count = 1;
    for (const char *at = call_lines_here()->operands[id][PTOISA_A5]; *at; at++) {
        count += *at == ',';
    }
    return count;
}

// Cuts a word off the end of a text, if it stands there.
static inline bool call_has(char *text, const char *word) {
    const size_t length = strlen(text), size = strlen(word);
    if (length < size + 1 || strcmp(text + length - size, word) != 0) {
        return false;
    }
    text[length - size - 1] = 0;
    return true;
}

static inline void call_operand(test_bench *bench, test_call *call, char *text,
                                ptoisa_family family) {
    const bool is_ones = call_has(text, "ones"), is_zeros = call_has(text, "zeros");
    const uint32_t cols_needed = call_has(text, "cols") ? NEED_COLS : 0;
    const uint32_t i = call->tile_count,
                   needs = cols_needed | (call_has(text, "rows") ? NEED_ROWS : 0);
    const bool is_scratch = call_has(text, "scratch");
    const operand_of o = operand_read(text, family);
    const ptoisa_dtype dtype = (ptoisa_dtype)o.tile.dtype;
    if (o.is_window) {
        call->window =
            test_window_make(bench, dtype, o.tile.valid_rows, o.tile.valid_cols, true, false);
        call->has_window = true;
        return;
    }
    test_tile *t =
        test_tile_make(bench, dtype, (ptoisa_memory)o.tile.memory, (ptoisa_layout)o.tile.layout,
                       o.tile.rows, o.tile.cols, o.tile.valid_rows, o.tile.valid_cols);
    t->tile.pad = o.tile.pad;
    t->role = is_scratch ? TEST_SCRATCH : TEST_READ;
    if (is_ones || is_zeros) {
        TEST_GRID(uint32_t, r, o.tile.valid_rows, c, o.tile.valid_cols) {
            test_put(t, r, c, is_ones ? 0x3f800000 : 0);
        }
    } else {
        test_fill(bench, t, TEST_PLAIN);
    }
    call->is_scratch[i] = is_scratch;
    call->needs[i] = needs;
    call->tiles[call->tile_count++] = t;
}

// -- calls ----------------------------------------------------------------------------------------

// Begins a call. Of what only A5 has, it is for A5.
static inline test_call call_make(test_bench *bench, call_id id, ptoisa_family family) {
    const call_lines *lines = call_lines_here();
    family = lines->operands[id][family][0] ? family : PTOISA_A5;
    test_call call = {.id = id, .name = call_names[id][0], .prefix = call_names[id][1]};
    const char *at = lines->operands[id][family];
    char operand[64];
    call.cycles = lines->cycles[id][family];
    assert_true(*at);
    test_begin(bench, family, call.name);
    while (operand_next(&at, operand)) {
        call_operand(bench, &call, operand, family);
    }
    return call;
}

static inline void call_run(test_bench *bench, const test_call *call) {
    ptoisa_core *core = &bench->core;
    const ptoisa_tile *t[CALL_TILES_MAX];
    const ptoisa_global *g = &call->window.global;
    const test_call *k = call;
    uint16_t executed[4];
    for (uint32_t i = 0; i < call->tile_count; i++) {
        t[i] = call->tiles[i] ? &call->tiles[i]->tile : NULL;
    }
    switch (call->id) {
#define CALL_RUN(name, prefix, call)                                                               \
    case CALL_##name: ptoisa_##call; break;
        CALLS(CALL_RUN)
#undef CALL_RUN
    case CALL_COUNT: break;
    }
}

#undef TILES_2
#undef TILES_3
#undef TILES_4
#undef TILES_5

#endif
