// The rules that instructions have of their own, one by one: what is refused, in which words. Each
// case is a call that would be good but for one thing; the texts say which. Here loads, stores, moves,
// products, sorted lists, FIFOs and printing; isa_rules_vector_test.c has the others.

#include "isa_rules.h"

#include "isa_abort.h"

#if PTOISA_CHECKED_DEFAULT

// -- windows --------------------------------------------------------------------------------------

RULE_TEST(load__windows_and_tiles_that_break_a_rule_are_refused) {
    begin(b, PTOISA_A2A3);
    b->core->is_dry = true;
    ptoisa_tile d = vec(b, PTOISA_F32, 4, 8);
    ptoisa_global g = window(PTOISA_F32, 4, 8);
    TAKEN(ptoisa_tload(b->core, &d, &g));
    g.dtype = 0;
    REFUSED("TLOAD: g is no window", ptoisa_tload(b->core, &d, &g));
    g = window(PTOISA_F16, 4, 8);
    REFUSED("TLOAD: g is f16, d is f32", ptoisa_tload(b->core, &d, &g));
    g = window(PTOISA_F32, 4, 7);
    REFUSED("TLOAD: g has 4 x 7 elements, d 4 x 8 valid ones", ptoisa_tload(b->core, &d, &g));

    d = vec(b, PTOISA_F32, 4096, 8);
    g = window(PTOISA_F32, 4096, 8);
    REFUSED("TLOAD: d has 4096 rows, more than 4095", ptoisa_tload(b->core, &d, &g));
    d = tile_in(b, PTOISA_MAT, PTOISA_ROW_MAJOR, PTOISA_F32, 4096, 8);
    REFUSED("TLOAD: g has 4096 rows, more than 4095", ptoisa_tload(b->core, &d, &g));
    d.valid_rows = 4095;
    g = window(PTOISA_F32, 4095, 8);
    TAKEN(ptoisa_tload(b->core, &d, &g));

    d = boxed(b, PTOISA_MAT, PTOISA_I64, 16, 16);
    g = window(PTOISA_I64, 16, 16);
    REFUSED("TLOAD: d is i64 and boxed", ptoisa_tload(b->core, &d, &g));
    d = boxed(b, PTOISA_MAT, PTOISA_F16, 32, 16);
    g = window(PTOISA_F16, 16, 16);
    g.shape[2] = 2;
    REFUSED("TLOAD: g has shape 1 x 1 x 2 outside its matrix, not 1",
            ptoisa_tload(b->core, &d, &g));
    d = boxed(b, PTOISA_LEFT, PTOISA_F16, 32, 16);
    g = window(PTOISA_F16, 32, 16);
    REFUSED("TLOAD: d is in L0A, not in UB or L1", ptoisa_tload(b->core, &d, &g));
}

RULE_TEST(store__memories_and_types_that_break_a_rule_are_refused) {
    begin(b, PTOISA_A2A3);
    b->core->is_dry = true;
    ptoisa_tile s = vec(b, PTOISA_F32, 4, 8);
    ptoisa_global g = window(PTOISA_U32, 4, 8);
    REFUSED("TSTORE: g is u32, which cannot be added to", ptoisa_tstore_add(b->core, &g, &s));
    g.dtype = PTOISA_I32;
    TAKEN(ptoisa_tstore(b->core, &g, &s));
    REFUSED("TSTORE: s is f32, g is i32", ptoisa_tstore_add(b->core, &g, &s));
    g.shape[2] = 0;
    REFUSED("TSTORE: g has shape 0 in dimension 2", ptoisa_tstore(b->core, &g, &s));
    ptoisa_tile acc = boxed(b, PTOISA_ACC, PTOISA_F32, 16, 16);
    g = window(PTOISA_I8, 16, 16);
    REFUSED("TSTORE: f32 out of L0C does not become i8", ptoisa_tstore(b->core, &g, &acc));

    s = vec(b, PTOISA_F32, 4096, 8);
    g = window(PTOISA_F32, 4096, 8);
    REFUSED("TSTORE: s has 4096 rows, more than 4095", ptoisa_tstore(b->core, &g, &s));
    static const uint32_t large[2][2] = {{8208, 16}, {16, 4096}};
    static const char *const texts[2] = {"TSTORE: s has 8208 x 16 elements, more than 8192 x 4095",
                                         "TSTORE: s has 16 x 4096 elements, more than 8192 x 4095"};
    for (uint32_t i = 0; i < 2; i++) {
        s = boxed(b, PTOISA_ACC, PTOISA_F32, large[i][0], large[i][1]);
        g = window(PTOISA_F32, large[i][0], large[i][1]);
        REFUSED(texts[i], ptoisa_tstore(b->core, &g, &s));
    }
    s = boxed(b, PTOISA_MAT, PTOISA_I64, 16, 16);
    g = window(PTOISA_I64, 16, 16);
    REFUSED("TSTORE: s is i64 and boxed", ptoisa_tstore(b->core, &g, &s));
    s = boxed(b, PTOISA_LEFT, PTOISA_F16, 16, 16);
    g = window(PTOISA_F16, 16, 16);
    REFUSED("TSTORE: s is in L0A, not in L0C, UB or L1", ptoisa_tstore(b->core, &g, &s));
    REFUSED("TSTORE: s is in L0A, not in L0C", ptoisa_tstore_relu(b->core, &g, &s));

    // L1 is stored by A2/A3 only.
    for (uint32_t i = 0; i < 2; i++) {
        begin(b, i ? PTOISA_A5 : PTOISA_A2A3);
        b->core->is_dry = true;
        s = boxed(b, PTOISA_MAT, PTOISA_F16, 16, 16);
        ptoisa_tstore(b->core, &g, &s);
        if (i) {
            refused(b, "TSTORE: s is in L1, which A5 does not store");
        }
    }
    taken(b);
}

// -- moves ----------------------------------------------------------------------------------------

RULE_TEST(move__into_l0_and_the_tables_that_breaks_a_rule_is_refused) {
    begin(b, PTOISA_A2A3);
    ptoisa_tile d = boxed(b, PTOISA_LEFT, PTOISA_U32, 16, 16);
    ptoisa_tile s = boxed(b, PTOISA_MAT, PTOISA_U32, 16, 16);
    REFUSED("TMOV: d is u32, which is not multiplied", ptoisa_tmov(b->core, &d, &s));
    d = boxed(b, PTOISA_RIGHT, PTOISA_F16, 16, 16);
    s = tile_in(b, PTOISA_MAT, PTOISA_ROW_MAJOR, PTOISA_F16, 16, 16);
    REFUSED("TMOV: s is in L1 without boxes", ptoisa_tmov(b->core, &d, &s));
    d.layout = PTOISA_ZZ;
    REFUSED("TMOV: d is in L0B of 910B and not ZN", ptoisa_tmov(b->core, &d, &s));
    d.memory = PTOISA_LEFT, d.layout = PTOISA_NZ;
    s.layout = PTOISA_NZ;
    REFUSED("TMOV: d is in L0A of 910B and not ZZ", ptoisa_tmov(b->core, &d, &s));
    d.layout = PTOISA_ZZ;
    REFUSED("TEXTRACT: 16 x 16 elements from (0, 8) do not lie in s of 16 x 16",
            ptoisa_textract(b->core, &d, &s, 0, 8));
    d = vec(b, PTOISA_F16, 16, 16);
    REFUSED("TMOV: there is no way from L1 (s) to UB (d)", ptoisa_tmov(b->core, &d, &s));
    d = boxed(b, PTOISA_RIGHT, PTOISA_F16, 32, 16);
    s = boxed(b, PTOISA_MAT, PTOISA_F16, 16, 16);
    REFUSED("TMOV: d has 32 x 16 of 32 x 16 elements, s 16 x 16 of 16 x 16",
            ptoisa_tmov(b->core, &d, &s));

    static const ptoisa_memory tables[2] = {PTOISA_BIAS, PTOISA_SCALING};
    static const char *const texts[2][3] = {
        {"TMOV: d is in the bias table and i16",
         "TMOV: d has 2 rows: the bias table takes one row, row-major",
         "TMOV: d has 8 x 4 bytes, which 64 does not divide"},
        {"TMOV: d is in the fixpipe buffer and i16",
         "TMOV: d has 2 rows: the fixpipe buffer takes one row, row-major",
         "TMOV: d has 8 x 8 bytes, which 128 does not divide"}};
    for (uint32_t i = 0; i < 2; i++) {
        ptoisa_dtype dtype = i ? PTOISA_U64 : PTOISA_F32;
        d = tile_in(b, tables[i], PTOISA_ROW_MAJOR, PTOISA_I16, 1, 64);
        s = tile_in(b, PTOISA_MAT, PTOISA_ROW_MAJOR, PTOISA_I16, 1, 64);
        REFUSED(texts[i][0], ptoisa_tmov(b->core, &d, &s));
        d = tile_in(b, tables[i], PTOISA_ROW_MAJOR, dtype, 2, 64);
        s = tile_in(b, PTOISA_MAT, PTOISA_ROW_MAJOR, dtype, 2, 64);
        REFUSED(texts[i][1], ptoisa_tmov(b->core, &d, &s));
        d = tile_in(b, tables[i], PTOISA_ROW_MAJOR, dtype, 1, 8);
        s = tile_in(b, PTOISA_MAT, PTOISA_ROW_MAJOR, dtype, 1, 8);
        REFUSED(texts[i][2], ptoisa_tmov(b->core, &d, &s));
        d = tile_in(b, tables[i], PTOISA_ROW_MAJOR, dtype, 1, 64);
        s = tile_in(b, PTOISA_MAT, PTOISA_ROW_MAJOR, dtype, 1, 64);
        TAKEN(ptoisa_tmov(b->core, &d, &s));
    }
}

RULE_TEST(move__out_of_l0c_that_breaks_a_rule_is_refused) {
    begin(b, PTOISA_A2A3);
    ptoisa_tile s = boxed(b, PTOISA_ACC, PTOISA_F32, 16, 16);
    ptoisa_tile d = boxed(b, PTOISA_MAT, PTOISA_F32, 16, 16);
    REFUSED("TMOV: f32 goes from L0C to L1 as f16 or bf16 on 910B", ptoisa_tmov(b->core, &d, &s));
    d = boxed(b, PTOISA_MAT, PTOISA_I16, 16, 16);
    REFUSED("TMOV: f32 out of L0C does not become i16", ptoisa_tmov(b->core, &d, &s));
    d = boxed(b, PTOISA_MAT, PTOISA_I8, 32, 32);
    REFUSED("TMOV: 32 x 32 elements from (0, 0) do not lie in the valid part of s of 16 x 16",
            ptoisa_tmov_quant(b->core, &d, &s, 1, false));
    d.valid_rows = d.valid_cols = 16;
    REFUSED("TMOV: d has 32 x 32 elements, s 16 x 16",
            ptoisa_tmov_quant(b->core, &d, &s, 1, false));
    d = boxed(b, PTOISA_VEC, PTOISA_I8, 32, 32);
    REFUSED("TMOV: the way from L0C to UB is not on 910B, only on A5",
            ptoisa_tmov_quant(b->core, &d, &s, 1, false));
    d = boxed(b, PTOISA_LEFT, PTOISA_I8, 32, 32);
    REFUSED("TMOV: there is no way from L0C (s) to L0A (d)",
            ptoisa_tmov_quant(b->core, &d, &s, 1, false));
    s.layout = PTOISA_ZZ;
    d = boxed(b, PTOISA_MAT, PTOISA_F16, 16, 16);
    REFUSED("TMOV: s is in L0C and not NZ", ptoisa_tmov(b->core, &d, &s));
}

// -- products, lists ------------------------------------------------------------------------------

RULE_TEST(matmul__what_is_added_has_its_size) {
    begin(b, PTOISA_A2A3);
    ptoisa_tile c = boxed(b, PTOISA_ACC, PTOISA_F32, 16, 16);
    ptoisa_tile add = boxed(b, PTOISA_ACC, PTOISA_F32, 32, 16);
    ptoisa_tile left = boxed(b, PTOISA_LEFT, PTOISA_F16, 16, 16);
    ptoisa_tile right = boxed(b, PTOISA_RIGHT, PTOISA_F16, 16, 16);
    REFUSED("TMATMUL_ACC: c_in has 32 x 16 valid elements, not 16 x 16",
            ptoisa_tmatmul_acc(b->core, &c, &add, &left, &right));
    add = boxed(b, PTOISA_ACC, PTOISA_F32, 16, 32);
    REFUSED("TMATMUL_ACC: c_in has 16 x 32 valid elements, not 16 x 16",
            ptoisa_tmatmul_acc(b->core, &c, &add, &left, &right));
    ptoisa_tile bias = tile_in(b, PTOISA_BIAS, PTOISA_ROW_MAJOR, PTOISA_F32, 1, 32);
    REFUSED("TMATMUL_BIAS: bias has 1 x 32 valid elements, not 1 x 16",
            ptoisa_tmatmul_bias(b->core, &c, &left, &right, &bias));
}

RULE_TEST(sort__lists_are_rows_of_pairs) {
    begin(b, PTOISA_A2A3);
    ptoisa_tile d = vec(b, PTOISA_F32, 1, 32), s0 = vec(b, PTOISA_F32, 1, 8);
    ptoisa_tile s1 = vec(b, PTOISA_F32, 1, 8), two = vec(b, PTOISA_F32, 2, 8), t = d;
    t.memory = PTOISA_MAT;
    uint16_t executed[4];
    const ptoisa_tile *lists[2] = {&s0, &two};
    REFUSED("TMRGSORT: s1 has 2 valid rows, not 1",
            ptoisa_tmrgsort_lists(b->core, &d, NULL, lists, 2, executed, false));
    lists[1] = &s1;
    REFUSED("TMRGSORT: t is in L1, not in UB",
            ptoisa_tmrgsort_lists(b->core, &d, &t, lists, 2, executed, false));
    s0.valid_cols = 7;
    REFUSED("TMRGSORT: s0: 7 valid columns are not 0 to 65535 pairs of 2",
            ptoisa_tmrgsort_lists(b->core, &d, NULL, lists, 2, executed, false));
    // Pairs of f16 have four elements.
    ptoisa_tile half = vec(b, PTOISA_F16, 1, 16), of_half = vec(b, PTOISA_F16, 1, 32);
    half.valid_cols = 6;
    lists[0] = lists[1] = &half;
    REFUSED("TMRGSORT: s0: 6 valid columns are not 0 to 65535 pairs of 4",
            ptoisa_tmrgsort_lists(b->core, &of_half, NULL, lists, 2, executed, false));
    b->core->is_dry = true;
    const ptoisa_tile *few[5] = {&s0, &s1, &s1, &s1, &s1};
    s0.valid_cols = 8;
    d.valid_cols = 16;
    TAKEN(ptoisa_tmrgsort_lists(b->core, &d, NULL, few, 2, executed, true));
    assert_int_equal(executed[1], 4);
    REFUSED("TMRGSORT: d has 16 valid columns for 24 of the lists",
            ptoisa_tmrgsort_lists(b->core, &d, NULL, few, 3, executed, true));
    REFUSED("TMRGSORT: 5 lists: 2 to 4 can be merged",
            ptoisa_tmrgsort_lists(b->core, &d, NULL, few, 5, executed, true));
    // More than 255 groups of runs.
    ptoisa_tile from = vec(b, PTOISA_F32, 1, 256 * 256), to = vec(b, PTOISA_F32, 1, 256 * 256);
    REFUSED("TMRGSORT: 65536 valid columns are not 1 to 255 groups of 256",
            ptoisa_tmrgsort(b->core, &to, &from, 64));
    from.valid_cols = to.valid_cols = 255 * 256;
    TAKEN(ptoisa_tmrgsort(b->core, &to, &from, 64));
    from.valid_cols = to.valid_cols = 512;  // no whole groups
    REFUSED("TMRGSORT: 512 valid columns are not 1 to 255 groups of 768",
            ptoisa_tmrgsort(b->core, &to, &from, 192));
    REFUSED("TMRGSORT: runs of 32 elements: no multiple of 64",
            ptoisa_tmrgsort(b->core, &to, &from, 32));
    from.valid_rows = from.rows = to.valid_rows = to.rows = 2;
    REFUSED("TMRGSORT: s has 2 valid rows, not 1", ptoisa_tmrgsort(b->core, &to, &from, 64));
}

RULE_TEST(sort__results_are_pairs_of_what_is_sorted) {
    begin(b, PTOISA_A2A3);
    b->core->is_dry = true;
    ptoisa_tile s = vec(b, PTOISA_F32, 1, 512), idx = vec(b, PTOISA_U32, 1, 512);
    ptoisa_tile d = vec(b, PTOISA_F32, 1, 1024), half = vec(b, PTOISA_F16, 1, 512);
    ptoisa_tile short_half = vec(b, PTOISA_F16, 1, 1024);
    ptoisa_tsort32(b->core, &d, &s, &idx);
    assert_int_equal(ptoisa_cycles(b->core), 5 * 512);
    taken(b);
    REFUSED("TSORT32: d has 1 x 512 valid elements, and 1 x 1024 are read",
            ptoisa_tsort32(b->core, &s, &s, &idx));
    REFUSED("TSORT32: d has 1 x 1024 valid elements, and 1 x 2048 are read",
            ptoisa_tsort32(b->core, &short_half, &half, &idx));
    REFUSED("TSORT32: d is f32, which it does not take", ptoisa_tsort32(b->core, &d, &half, &idx));
}

// -- pipes and addresses --------------------------------------------------------------------------

RULE_TEST(core__pipes_and_memories_that_are_none) {
    begin(b, PTOISA_A2A3);
    ptoisa_tile tile = vec(b, PTOISA_F32, 1, 8);
    REFUSED("PIPE_BARRIER: pipe 9", ptoisa_pipe_barrier(b->core, (ptoisa_pipe)9));
    static const struct {
        int src, dst;
        uint32_t event;
        const char *text;
    } waits[] = {{9, PTOISA_PIPE_V, 0, "WAIT_FLAG: pipes 9 and 1, event 0"},
                 {PTOISA_PIPE_V, 9, 0, "WAIT_FLAG: pipes 1 and 9, event 0"},
                 {PTOISA_PIPE_V, PTOISA_PIPE_V, 0, "WAIT_FLAG: pipes 1 and 1, event 0"},
                 {PTOISA_PIPE_V, PTOISA_PIPE_M, 8, "WAIT_FLAG: pipes 1 and 2, event 8"}};
    for (uint32_t i = 0; i < 4; i++) {
        REFUSED(waits[i].text, ptoisa_wait_flag(b->core, (ptoisa_pipe)waits[i].src,
                                                (ptoisa_pipe)waits[i].dst, waits[i].event));
    }
    tile.memory = 99;
    REFUSED("TASSIGN: there is no memory 99", ptoisa_tassign(b->core, &tile, 0));
}

// -- FIFOs ----------------------------------------------------------------------------------------

RULE_TEST(fifo__wrong_slots_and_parts_are_refused) {
    begin(b, PTOISA_A2A3);
    ptoisa_fifo fifo;
    REFUSED("TPIPE: slots of 0 bytes, no multiple of 32",
            assert_false(ptoisa_fifo_init(b->core, &fifo, PTOISA_C2V, 2, 0, 2, rooms[6], 0)));
    REFUSED("TPIPE: slots of 48 bytes, no multiple of 32",
            assert_false(ptoisa_fifo_init(b->core, &fifo, PTOISA_C2V, 2, 48, 2, rooms[6], 0)));
    assert_true(ptoisa_fifo_init(b->core, &fifo, PTOISA_C2V, 2, 4096, 2, rooms[6], 0));
    ptoisa_tile half = vec(b, PTOISA_F32, 16, 16);
    REFUSED("TPOP: FIFO 2 (cube to vector) is not read by core 2",
            ptoisa_fifo_pop(b->core, &fifo, 2, &half, PTOISA_UP_DOWN));
    ptoisa_tile acc = boxed(b, PTOISA_ACC, PTOISA_F32, 32, 16);
    REFUSED("TPUSH: FIFO 2: 16 columns are not odd (LEFT_RIGHT_ODD)",
            ptoisa_fifo_push(b->core, &fifo, 0, &acc, PTOISA_LEFT_RIGHT_ODD));
    REFUSED("TPUSH: FIFO 2: 32 rows are not odd (UP_DOWN_ODD)",
            ptoisa_fifo_push(b->core, &fifo, 0, &acc, PTOISA_UP_DOWN_ODD));
    TAKEN(ptoisa_fifo_push(b->core, &fifo, 0, &acc, PTOISA_NO_SPLIT));
    REFUSED("TPOP: FIFO 2: pushed NO_SPLIT, popped UP_DOWN",
            ptoisa_fifo_pop(b->core, &fifo, 0, &half, PTOISA_UP_DOWN));
    REFUSED("TPUSH: FIFO 2: no slot was allocated (TALLOC)", ptoisa_fifo_commit(b->core, &fifo, 2));
    REFUSED("TFREE: FIFO 2: no slot was popped", ptoisa_fifo_release(b->core, &fifo, 2));
    REFUSED("FIFO 2 (cube to vector): 1 and 1 tiles were pushed, 1 and 0 popped",
            assert_false(ptoisa_fifo_finish(b->core, &fifo)));

    assert_true(ptoisa_fifo_init(b->core, &fifo, PTOISA_V2C, 4, 4096, 2, rooms[6], 0));
    ptoisa_tile mat = tile_in(b, PTOISA_MAT, PTOISA_ROW_MAJOR, PTOISA_F32, 16, 16);
    REFUSED("TPOP: FIFO 4: a tile in L1 that is not NZ",
            ptoisa_fifo_pop(b->core, &fifo, 0, &mat, PTOISA_UP_DOWN));
    mat = boxed(b, PTOISA_MAT, PTOISA_F32, 16, 16);
    REFUSED("TPOP: FIFO 4 (vector to cube) is not read by core 1",
            ptoisa_fifo_pop(b->core, &fifo, 1, &mat, PTOISA_UP_DOWN));
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
