// The rules that instructions have of their own, one by one: what is refused, in which words. Each
// case is a call that would be good but for one thing; the texts say which. Calls that are nothing but an
// instruction and its operands are lines of isa_rules.txt.

#include "isa_text.h"

#include "isa_abort.h"

#if PTOISA_CHECKED_DEFAULT

static ptoisa_tile tile_in(rule_bench *b, ptoisa_memory memory, ptoisa_layout layout,
                           ptoisa_dtype dtype, uint32_t rows, uint32_t cols) {
    assert_true(b->core->is_dry || (size_t)rows * cols * 8 <= ROOM);
    return ptoisa_tile_make(rooms[b->used++ % ROOMS], dtype, memory, layout, rows, cols);
}

static ptoisa_tile vec(rule_bench *b, ptoisa_dtype dtype, uint32_t rows, uint32_t cols) {
    return tile_in(b, PTOISA_VEC, PTOISA_ROW_MAJOR, dtype, rows, cols);
}

// A call that is refused in these words, and one that is taken.
#define REFUSED(text, call) ((call), refused(b, text))
#define TAKEN(call)         ((call), taken(b))

RULE_TEST(rule__calls_that_break_one_are_refused_in_these_words) {
    operand_lines("tests/isa/isa_rules.txt", 200, text_line, b);
}

// -- calls that have more than operands -----------------------------------------------------------

RULE_TEST(rule__one_object_as_result_and_source_is_an_alias) {
    for (int family = 0; family < 2; family++) {
        begin(b, family ? PTOISA_A5 : PTOISA_A2A3);
        ptoisa_tile d = vec(b, PTOISA_F32, 6, 64);
        ptoisa_trsqrt(b->core, &d, &d);
        family ? taken(b) : refused(b, "TRSQRT: dst must not be src on A2/A3");
    }
}

// A fault with a part.
static void refused_with(rule_bench *b, const char *part) {
    assert_int_equal(b->bench.fault_count, 1);
    assert_non_null(strstr(b->bench.fault, part));
    b->bench.fault_count = 0;
}

RULE_TEST(sort__lists_and_runs_are_counted) {
    begin(b, PTOISA_A2A3);
    b->core->is_dry = true;
    ptoisa_tile d = vec(b, PTOISA_F32, 1, 32), s0 = vec(b, PTOISA_F32, 1, 8),
                s1 = vec(b, PTOISA_F32, 1, 8);
    uint16_t executed[4];
    const ptoisa_tile *few[5] = {&s0, &s1, &s1, &s1, &s1};
    d.valid_cols = 16;
    TAKEN(ptoisa_tmrgsort_lists(b->core, &d, NULL, few, 2, executed, true));
    assert_int_equal(executed[1], 4);
    REFUSED("TMRGSORT: d has 16 valid columns for 24 of the lists",
            ptoisa_tmrgsort_lists(b->core, &d, NULL, few, 3, executed, true));
    REFUSED("TMRGSORT: 5 lists: 2 to 4 can be merged",
            ptoisa_tmrgsort_lists(b->core, &d, NULL, few, 5, executed, true));
}

RULE_TEST(gather__a_table_without_memory_is_refused) {
    begin(b, PTOISA_A2A3);
    ptoisa_tile d = vec(b, PTOISA_F32, 4, 8), idx = vec(b, PTOISA_I32, 1, 8);
    const ptoisa_global none = ptoisa_global_make(NULL, PTOISA_F32, 3, 8, 8, 1);
    idx.valid_cols = 4;
    REFUSED("MGATHER: the table has no memory", ptoisa_mgather(b->core, &d, &none, &idx));
}

// Scratch that is no tile, or not where it has to be.
RULE_TEST(vector__scratch_that_breaks_a_rule_is_refused) {
    begin(b, PTOISA_A2A3);
    ptoisa_tile d = vec(b, PTOISA_F32, 4, 8), s = vec(b, PTOISA_F32, 4, 8);
    ptoisa_tile column = tile_in(b, PTOISA_VEC, PTOISA_COL_MAJOR, PTOISA_F32, 8, 1);
    ptoisa_tile mask = vec(b, PTOISA_U8, 4, 32), none = s, padded = d;
    column.valid_rows = 4;
    none.memory = PTOISA_MEMORY_COUNT;
    padded.pad = PTOISA_PAD_ZERO;
    ptoisa_trowsum(b->core, &column, &s, &none);
    refused_with(b, "TROWSUM: tmp is no tile");
    ptoisa_tsel(b->core, &d, &mask, &s, &s, &none);
    refused_with(b, "TSEL: t is no tile");
    ptoisa_tsels(b->core, &d, &mask, &s, &none, 1);
    refused_with(b, "TSELS: t is no tile");
    ptoisa_tfillpad_inplace(b->core, &padded, &s);
    refused_with(b, "in place");
    ptoisa_tile f32 = vec(b, PTOISA_F32, 4, 32), i8 = vec(b, PTOISA_I8, 4, 32);
    ptoisa_tile scale = vec(b, PTOISA_F32, 4, 8), t = vec(b, PTOISA_F32, 7, 32);
    scale.valid_cols = 1;
    // 8 rows of 32 floats
    REFUSED("TQUANT: t has 896 bytes, and 1024 are needed",
            ptoisa_tquant_sym_scratch(b->core, &i8, &f32, &scale, &t));
    t.memory = PTOISA_MEMORY_COUNT;
    ptoisa_tquant_sym_scratch(b->core, &i8, &f32, &scale, &t);
    refused_with(b, "TQUANT: t is no tile");
}

// -- pipes and addresses --------------------------------------------------------------------------

RULE_TEST(core__a_memory_that_is_none) {
    begin(b, PTOISA_A2A3);
    ptoisa_tile tile = vec(b, PTOISA_F32, 1, 8);
    tile.memory = 99;
    REFUSED("TASSIGN: there is no memory 99", ptoisa_tassign(b->core, &tile, 0));
}

// -- names and numbers ----------------------------------------------------------------------------

TEST(names__of_what_is_none) {
    static const int none[2] = {1000, -1000};
    for (uint32_t i = 0; i < 2; i++) {
        assert_string_equal(ptoisa_op_name((ptoisa_op)none[i]), "no instruction");
        assert_string_equal(ptoisa_dtype_name((ptoisa_dtype)none[i]), "none");
        assert_string_equal(ptoisa_memory_name((ptoisa_memory)none[i]), "no memory");
        assert_string_equal(ptoisa_split_name((ptoisa_split)none[i]), "no split");
        assert_int_equal(ptoisa_time_of((ptoisa_model)none[i]), PTOISA_TIME_PIPES);
    }
    assert_string_equal(ptoisa_op_name(PTOISA_OP_COUNT), "no instruction");
    assert_string_equal(ptoisa_dtype_name(PTOISA_DTYPE_COUNT), "none");
    assert_string_equal(ptoisa_memory_name(PTOISA_MEMORY_COUNT), "no memory");
    assert_string_equal(ptoisa_split_name(PTOISA_SPLIT_COUNT), "no split");
    assert_string_equal(ptoisa_split_name(PTOISA_NO_SPLIT), "NO_SPLIT");
    assert_string_equal(ptoisa_split_name(PTOISA_LEFT_RIGHT_ODD), "LEFT_RIGHT_ODD");
    assert_int_equal(ptoisa_time_of(PTOISA_MODEL_COUNT), PTOISA_TIME_PIPES);
}

// A core of a model that is none is a 910B, and its instructions take a cycle for each element.
TEST(core__of_no_model_is_a_910b) {
    ptoisa_core core;
    ptoisa_core_init(&core, PTOISA_MODEL_COUNT, NULL);
    assert_ptr_equal(core.machine, ptoisa_machine_910b());
    core.is_dry = true;
    ptoisa_tile t = ptoisa_tile_make(NULL, PTOISA_F32, PTOISA_VEC, PTOISA_ROW_MAJOR, 4, 8);
    ptoisa_tadds(&core, &t, &t, 1);
    assert_int_equal(core.busy[PTOISA_PIPE_V], 32);
}

static void fault_without_a_function(void) {
    ptoisa_core core;
    ptoisa_core_init(&core, PTOISA_MODEL_UNIT, NULL);
    ptoisa_fault(&core, PTOISA_TADD, "%d is wrong", 7);
}

TEST(core__a_fault_that_nobody_takes_ends_the_process) {
    isa_expect_abort(fault_without_a_function, "ptoisa: TADD: 7 is wrong\n");
}

// Elements of 64 bits and booleans as numbers; of no type, 0.
TEST(numbers__of_the_widest_types_are_read_as_doubles) {
    const double f64[2] = {0, -2.5};
    const int64_t i64[2] = {0, -(INT64_C(1) << 53)};
    const uint64_t u64[2] = {0, UINT64_C(1) << 63};
    const uint8_t flags[2] = {0, 200};
    assert_true(ptoisa_get_at(f64, PTOISA_F64, 1) == -2.5);
    assert_true(ptoisa_get_at(i64, PTOISA_I64, 1) == -0x1p53);
    assert_true(ptoisa_get_at(u64, PTOISA_U64, 1) == 0x1p63);
    assert_true(ptoisa_get_at(flags, PTOISA_BOOL, 0) == 0);
    assert_true(ptoisa_get_at(flags, PTOISA_BOOL, 1) == 1);
    assert_true(ptoisa_get_at(u64, PTOISA_DTYPE_NONE, 1) == 0);
    assert_true(ptoisa_get_at(u64, PTOISA_DTYPE_COUNT, 1) == 0);
    assert_true(ptoisa_get_bits(&u64[1], 8) == UINT64_C(1) << 63);
    assert_true(ptoisa_bits_of(-2.5, PTOISA_F64) == UINT64_C(0xc004000000000000));
    assert_true(ptoisa_bits_of(0, PTOISA_BOOL) == 0 && ptoisa_bits_of(-7, PTOISA_BOOL) == 1);
    const int32_t words[3] = {INT32_MIN, -1, 70000};
    int32_t copied[3];
    int16_t low[3];
    ptoisa_low_from_i32(PTOISA_I32, copied, words, 3);
    ptoisa_low_from_i32(PTOISA_I16, low, words, 3);
    for (uint32_t i = 0; i < 3; i++) {
        static const int16_t want[3] = {0, -1, 70000 - 65536};
        assert_int_equal(copied[i], words[i]);
        assert_int_equal(low[i], want[i]);
    }
}

// Quarters of 9 to 15, which are 2.25 to 3.75, in every mode, and as negative numbers.
TEST(numbers__are_rounded_in_every_mode) {
    static const struct {
        ptoisa_round round;
        uint8_t positive[7], negative[7];
    } modes[] = {{PTOISA_CAST_NONE, {2, 2, 3, 3, 3, 4, 4}, {2, 2, 3, 3, 3, 4, 4}},
                 {PTOISA_CAST_RINT, {2, 2, 3, 3, 3, 4, 4}, {2, 2, 3, 3, 3, 4, 4}},
                 {PTOISA_CAST_ROUND, {2, 3, 3, 3, 3, 4, 4}, {2, 3, 3, 3, 3, 4, 4}},
                 {PTOISA_CAST_FLOOR, {2, 2, 2, 3, 3, 3, 3}, {3, 3, 3, 3, 4, 4, 4}},
                 {PTOISA_CAST_CEIL, {3, 3, 3, 3, 4, 4, 4}, {2, 2, 2, 3, 3, 3, 3}},
                 {PTOISA_CAST_TRUNC, {2, 2, 2, 3, 3, 3, 3}, {2, 2, 2, 3, 3, 3, 3}},
                 {PTOISA_CAST_ODD, {3, 3, 3, 3, 3, 3, 3}, {3, 3, 3, 3, 3, 3, 3}}};
    for (uint32_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
        for (uint32_t i = 0; i < 7; i++) {
            ptoisa_round round = modes[m].round;
            assert_int_equal(ptoisa_round_shift(9 + i, 2, false, round), modes[m].positive[i]);
            assert_int_equal(ptoisa_round_shift(9 + i, 2, true, round), modes[m].negative[i]);
            assert_int_equal(ptoisa_round_shift(9 + i, 0, true, round), 9 + i);
        }
    }
}

// -- printing -------------------------------------------------------------------------------------

RULE_TEST(print__refuses_what_is_no_tile_and_says_nothing_when_dry) {
    begin(b, PTOISA_A2A3);
    ptoisa_tile s = vec(b, PTOISA_F32, 2, 8), none = s;
    s.valid_cols = 2;
    none.memory = PTOISA_MEMORY_COUNT;
    const float values[2] = {1, -2.5f};
    memcpy(s.data, values, sizeof values);
    memcpy((float *)s.data + 8, values, sizeof values);
    FILE *to = tmpfile();
    assert_non_null(to);
    ptoisa_tprint(b->core, to, &none);
    assert_int_equal(b->bench.fault_count, 1);
    assert_non_null(strstr(b->bench.fault, "TPRINT: s is no tile"));
    b->core->is_dry = true;
    ptoisa_tprint(b->core, to, &s);
    assert_int_equal(ftell(to), 0);
    b->core->is_dry = false;
    ptoisa_tprint(b->core, to, &s);
    rewind(to);
    char text[128];
    size_t length = fread(text, 1, sizeof text - 1, to);
    fclose(to);
    text[length] = 0;
    assert_string_equal(text, "f32 2 x 2 of 2 x 8 in UB\n1 -2.5\n1 -2.5\n");
}

#else

// Without checks there is nothing to test.
int main(void) {
    return 0;
}

#endif
