// Everything that binding refuses, and what executing refuses in what is bound: status, index and
// exact text; that no kernel has been called and no data changed; that the run works afterwards.

#include "run_fixture.h"

// -- binding --------------------------------------------------------------------------------------

// A program that uses one of everything.
static void make_one_of_everything(fixture *f) {
    fixture_parse(f, "symbol scale\narray list i16\nworkload main\n  parallel b in batch\n"
                     "    parallel k in kv[b]\n      task step(k + i64(scale))\n"
                     "    select p in pages[b]\n      task step(list[p])\n"
                     "  task fill(0) tile = d[0]\n");
    compile(f, NULL);
}

#define FIXTURE_TEST(name) TEST_MADE(name, fixture, f, fixture_make(f), fixture_free(f))

FIXTURE_TEST(bind_faults__names_that_the_program_does_not_use_so) {
    const ptowsp_csr csr = {PTOWSP_I32, NULL, NULL, 0, 0};
    const ptowsp_buffer buffer = {0};
    make_one_of_everything(f);
#define NO_NAME(call, text) test_invalid(f->context, ptowsp_run_bind_##call, "bind: " text)
#define HAS(what)           "module decode has no " what
    NO_NAME(size(f->run, "heads", 1), HAS("dynamic axis heads; it has batch"));
    NO_NAME(size(f->run, "kv", 1), HAS("dynamic axis kv; it has batch"));
    NO_NAME(symbol(f->run, "batch", 1), HAS("symbol batch; it has scale"));
    NO_NAME(symbol(f->run, "a\nb", 0), HAS("symbol of such a name; it has scale"));
    NO_NAME(array(f->run, "scale", PTOWSP_I32, NULL, 0), HAS("array scale; it has kv, list"));
    NO_NAME(lengths(f->run, "pages", PTOWSP_I32, NULL, 0),
            HAS("ragged axis pages; it has kv, list"));
    NO_NAME(lengths(f->run, "list", PTOWSP_I16, NULL, 0), "list is an array, not a ragged axis");
    NO_NAME(csr(f->run, "kv", &csr), HAS("sparse axis kv; it has pages"));
    NO_NAME(tensor(f->run, "z", &buffer), HAS("tensor z; it has x, y, d"));
    NO_NAME(tensor(f->run, NULL, &buffer), HAS("tensor NULL; it has x, y, d"));
#undef NO_NAME
#undef HAS
    refused(f, ptowsp_run_bind_slot(f->run, 8, 0), 8, "bind: slot 8, but there are 8");
}

// A module that has been told of a name has it, whether a statement uses it or not.
FIXTURE_TEST(bind_faults__names_that_no_statement_uses_can_be_bound) {
    static const int64_t lengths[] = {-1, -2};  // not looked at
    const ptowsp_csr csr = {PTOWSP_I64, lengths, lengths, 1, 2};
    fixture_parse(f, "symbol scale\nsymbol elsewhere\narray list i64\nworkload other\n"
                     "  task step(i64(elsewhere))\nworkload main\n  task step(0)\n");
    compile(f, NULL);
    works(f, 1);
    assert_ok(ptowsp_run_bind_symbol(f->run, "scale", 1));
    assert_ok(ptowsp_run_bind_symbol(f->run, "elsewhere", 2));
    assert_ok(ptowsp_run_bind_array(f->run, "list", PTOWSP_I64, lengths, 2));
    assert_ok(ptowsp_run_bind_size(f->run, "batch", 3));
    assert_ok(ptowsp_run_bind_lengths(f->run, "kv", PTOWSP_I64, lengths, 2));
    assert_ok(ptowsp_run_bind_csr(f->run, "pages", &csr));
    works(f, 1);
}

FIXTURE_TEST(bind_faults__arrays_that_cannot_be_bound) {
    static const int64_t some[4];
    const char *odd = (const char *)some + 1;
    make_one_of_everything(f);
#define REFUSED(call, text) test_invalid(f->context, ptowsp_run_bind_##call, "bind: " text)
    REFUSED(size(f->run, "batch", -1), "size -1 of axis batch is negative");
    REFUSED(array(f->run, "list", PTOWSP_I32, some, 1), "list is i32; it is declared i16");
    REFUSED(array(f->run, "list", PTOWSP_I16, NULL, 3), "list has 3 elements at NULL");
    REFUSED(array(f->run, "list", PTOWSP_I16, odd, 1),
            "list is not aligned to its elements of 2 bytes");
    REFUSED(array(f->run, "list", PTOWSP_I16, some, UINT64_C(1) << 62),
            "list has 4611686018427387904 elements, which cannot be");
    REFUSED(lengths(f->run, "kv", PTOWSP_I16, some, 1),
            "lengths of kv are i16; they are i32, i64, u32 or u64");
    REFUSED(lengths(f->run, "kv", PTOWSP_U32, odd, 1),
            "kv is not aligned to its elements of 4 bytes");
    REFUSED(csr(f->run, "pages", NULL), "the csr of axis pages is NULL");
    const ptowsp_csr rows[] = {{PTOWSP_U8, some, some, 1, 1},
                               {PTOWSP_I64, NULL, some, 2, 1},
                               {PTOWSP_I64, some, odd, 2, 1},
                               {PTOWSP_I64, some, odd, UINT64_MAX, 1}};
    REFUSED(csr(f->run, "pages", &rows[0]),
            "arrays of axis pages are u8; they are i32, i64, u32 or u64");
    REFUSED(csr(f->run, "pages", &rows[1]), "indptr of pages has 3 elements at NULL");
    REFUSED(csr(f->run, "pages", &rows[2]),
            "indices of pages is not aligned to its elements of 8 bytes");
    REFUSED(csr(f->run, "pages", &rows[3]),
            "axis pages has 18446744073709551615 rows, which cannot be");
#undef REFUSED
    const ptowsp_csr empty = {PTOWSP_I64, some, NULL, 1, 0};  // no entry, so no index
    assert_ok(ptowsp_run_bind_csr(f->run, "pages", &empty));
}

FIXTURE_TEST(bind_faults__tensors_that_cannot_be_bound) {
    static const char too_far[] = "tensor d spans more than 2^61 bytes";
    const int64_t far = INT64_C(1) << 60;
    char *const data = (char *)f->data;
    const struct {
        const char *name;
        ptowsp_buffer bad;
        const char *text;
    } rows[] = {
        {"x", {.data = data, .dtype = PTOWSP_F32}, "tensor x is f32; it is declared i32"},
        {"x", {.data = data, .rank = 3}, "tensor x has rank 3; it is declared with 2"},
        {"x",
         {.data = data, .size = 63},
         "tensor x spans elements 0 to 15, which are not all in its 63 bytes"},
        {"x",
         {.data = data, .size = 64, .strides = {-4, 1}},
         "tensor x spans elements -12 to 3, which are not all in its 64 bytes"},
        {"x", {.data = data + 2}, "tensor x is not aligned to its elements of 4 bytes"},
        {"d", {.data = data, .rank = 3, .shape = {far, 3, 2}}, too_far},
        // 2^60 elements on, or before
        {"d", {.data = data, .rank = 3, .shape = {2, 3, 2}, .strides = {far, 2, 1}}, too_far},
        {"d", {.data = data, .rank = 3, .shape = {2, 3, 2}, .strides = {-far, 2, 1}}, too_far},
        // 1.5 * 2^63 elements, and 1.5 * 2^64
        {"d", {.data = data, .rank = 3, .shape = {2 * far, 3, 2}}, too_far},
        {"d", {.data = data, .rank = 3, .shape = {4 * far, 3, 2}}, too_far},
        {"d", {.data = data, .rank = 3, .shape = {2, 3, 2}, .strides = {INT64_MIN}}, too_far},
    };
    const ptowsp_buffer wide = {.data = data, .rank = 2, .shape = {4, 5}}, plain = {.data = data};
    make_one_of_everything(f);
    test_invalid(f->context, ptowsp_run_bind_tensor(f->run, "x", NULL),
                 "bind: the buffer of tensor x is NULL");
    refused(f, ptowsp_run_bind_tensor(f->run, "x", &wide), 1,
            "bind: dimension 1 of tensor x is 5; it is declared 4");
    refused(f, ptowsp_run_bind_tensor(f->run, "d", &plain), 0,
            "bind: dimension 0 of tensor d needs a size, not -1");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[120];
        snprintf(text, sizeof text, "bind: %s", rows[i].text);
        test_invalid(f->context, ptowsp_run_bind_tensor(f->run, rows[i].name, &rows[i].bad), text);
    }
}

FIXTURE_TEST(bind_faults__a_refused_binding_leaves_the_old_one) {
    fixture_parse(f, "workload main\n  parallel b in batch\n    task step(b)\n");
    compile(f, NULL);
    assert_ok(ptowsp_run_bind_size(f->run, "batch", 3));
    assert_invalid(ptowsp_run_bind_size(f->run, "batch", -3));
    works(f, 3);
}

// -- what is not bound ----------------------------------------------------------------------------

FIXTURE_TEST(bind_faults__everything_that_is_used_must_be_bound) {
    static const int32_t lengths[] = {1, 2}, indptr[] = {0, 1, 2}, indices[] = {1, 0};
    static const int16_t list[] = {7, 8};
    const ptowsp_csr csr = {PTOWSP_I32, indptr, indices, 2, 2};
    int32_t d[6] = {0, 0, 0, 0, 0, 0};
    make_one_of_everything(f);
    fails_before(f, PTOWSP_UNBOUND, PTOWSP_NO_INDEX, "run: the size of axis batch is not bound");
    assert_ok(ptowsp_run_bind_size(f->run, "batch", 2));
    fails_before(f, PTOWSP_UNBOUND, PTOWSP_NO_INDEX, "run: sparse axis pages is not bound");
    assert_ok(ptowsp_run_bind_csr(f->run, "pages", &csr));
    fails_before(f, PTOWSP_UNBOUND, PTOWSP_NO_INDEX, "run: symbol scale is not bound");
    assert_ok(ptowsp_run_bind_symbol(f->run, "scale", 5));
    fails_before(f, PTOWSP_UNBOUND, PTOWSP_NO_INDEX, "run: ragged axis kv is not bound");
    assert_ok(ptowsp_run_bind_lengths(f->run, "kv", PTOWSP_I32, lengths, 2));
    fails_before(f, PTOWSP_UNBOUND, PTOWSP_NO_INDEX, "run: array list is not bound");
    assert_ok(ptowsp_run_bind_array(f->run, "list", PTOWSP_I16, list, 2));
    fails_before(f, PTOWSP_UNBOUND, PTOWSP_NO_INDEX, "run: tensor d is not bound");
    ptowsp_buffer buffer = {.rank = 3, .shape[0] = 1, .shape[1] = 3, .shape[2] = 2};
    assert_ok(ptowsp_run_bind_tensor(f->run, "d", &buffer));
    fails_before(f, PTOWSP_UNBOUND, PTOWSP_NO_INDEX, "run: tensor d is bound without data");
    buffer.data = d;
    assert_ok(ptowsp_run_bind_tensor(f->run, "d", &buffer));
    works(f, 1 + 2 + 1 + 1 + 1);
    assert_int_equal(d[0], 100);
}

// -- what arrays contain --------------------------------------------------------------------------

FIXTURE_TEST(bind_faults__unsigned_lengths_beyond_63_bits_are_refused) {
    const uint64_t lengths[] = {UINT64_C(1) << 63};
    fixture_parse(f, "workload main\n  parallel i in kv\n    task step(i)\n");
    compile(f, NULL);
    assert_ok(ptowsp_run_bind_lengths(f->run, "kv", PTOWSP_U64, lengths, 1));
    fails_before(f, PTOWSP_INVALID_PARAMS, 0, "run: length 0 of axis kv is 9223372036854775808");
}

// A tensor without elements spans nothing, however large its other sizes are.
TEST(bind_faults__sizes_beside_a_zero_are_any) {
    static const struct {
        int64_t shape[3];
        bool fits;
    } cases[] = {{{INT64_C(1) << 61, INT64_C(1) << 61, 0}, true},
                 {{INT64_C(1) << 61, 0, INT64_C(1) << 61}, true},
                 {{0, 8, 8}, true},
                 {{INT64_C(1) << 61, INT64_C(1) << 61, 1}, false},
                 {{1, INT64_C(1) << 61, 4}, false}};
    fixture f;
    fixture_make(&f);
    fixture_parse(&f, "tensor cube i8 [?, ?, ?] global\nworkload main\n");
    compile(&f, NULL);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ptowsp_buffer buffer = {.data = f.data, .rank = 3};
        memcpy(buffer.shape, cases[i].shape, sizeof cases[i].shape);
        if (cases[i].fits) {
            assert_ok(ptowsp_run_bind_tensor(f.run, "cube", &buffer));
        } else {
            refused(&f, ptowsp_run_bind_tensor(f.run, "cube", &buffer), PTOWSP_NO_INDEX,
                    "bind: tensor cube spans more than 2^61 bytes");
        }
    }
    fixture_free(&f);
}

// A step in one call: all that one_of_everything uses. The first error ends it, and what comes before
// it is bound.
TEST(bind_faults__a_whole_step_ends_at_its_first_error) {
    fixture f;
    static const int32_t lengths[] = {1, 0}, indptr[] = {0, 1, 1}, indices[] = {2};
    static const int16_t list[] = {0, 0, 5};
    static int32_t d[12];
    const ptowsp_csr csr = {PTOWSP_I32, indptr, indices, 2, 1};
    const ptowsp_buffer buffer = {
        .data = d, .size = sizeof d, .dtype = PTOWSP_I32, .rank = 3, .shape = {2, 3, 2}};
    ptowsp_binding step_of[] = {
        {.kind = PTOWSP_BIND_SIZE, .name = "batch", .value = 2},
        {.kind = PTOWSP_BIND_LENGTHS,
         .name = "kv",
         .dtype = PTOWSP_I32,
         .data = lengths,
         .count = 2},
        {.kind = PTOWSP_BIND_CSR, .name = "pages", .data = &csr},
        {.kind = PTOWSP_BIND_SYMBOL, .name = "scale", .value = 7},
        {.kind = PTOWSP_BIND_ARRAY, .name = "list", .dtype = PTOWSP_I16, .data = list, .count = 3},
        {.kind = PTOWSP_BIND_TENSOR, .name = "d", .data = &buffer},
        {.kind = PTOWSP_BIND_SLOT, .slot = 3, .value = 9},
        {.kind = PTOWSP_BIND_TRANSIENTS, .count = 4096},
        {.kind = PTOWSP_BIND_RANKS}};
    enum { COUNT = COUNT_OF(step_of) };
    fixture_make(&f);
    make_one_of_everything(&f);
    refused(&f, ptowsp_run_bind(f.run, NULL, 3), PTOWSP_NO_INDEX,
            "bind: bindings is NULL with count 3");
    assert_ok(ptowsp_run_bind(f.run, NULL, 0));
    step_of[COUNT - 1].kind = PTOWSP_BIND_KIND_COUNT;
    refused(&f, ptowsp_run_bind(f.run, step_of, COUNT), PTOWSP_NO_INDEX,
            "bind: there is no kind of binding 12");
    assert_int_equal(ptowsp_run_bound_slot(f.run, 3), 9);  // what comes before it is bound
    step_of[COUNT - 1].kind = PTOWSP_BIND_RANKS;
    step_of[3].name = "batch";
    step_of[6].value = 10;
    refused(&f, ptowsp_run_bind(f.run, step_of, COUNT), PTOWSP_NO_INDEX,
            "bind: module decode has no symbol batch; it has scale");
    assert_int_equal(ptowsp_run_bound_slot(f.run, 3), 9);  // what comes behind it is not
    step_of[3].name = "scale";
    assert_ok(ptowsp_run_bind(f.run, step_of, COUNT));
    assert_int_equal(ptowsp_run_bound_slot(f.run, 3), 10);
    f.calls = 0;
    assert_ok(ptowsp_run_execute(f.run, NULL));
    assert_int_equal(f.calls, 3);  // a token of kv, an entry of pages, and fill
    fixture_free(&f);
}
