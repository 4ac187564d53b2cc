// Emitted trees with transient tensors do what the library does: sizes by axes, arrays, plans and
// symbols, memory that tensors share, slots loaded from it, a block of the caller's and a limit; and
// they refuse what the library refuses, in its words. See npu_equal.h for how they are run.

#include "npu_equal.h"

enum { ROWS_MAX = 9, OUT = 6, TOKENS = 20, REQUESTS = 3 };

// -- kernels --------------------------------------------------------------------------------------

PTOWSP_SOURCE(
    transient_source,

    // The last tile from the number and the other tile; folds, so that order matters.
    static ptowsp_cycles transient_mix(const ptowsp_task *task, void *user) {
        uint32_t last = task->tile_count - 1;
        uint64_t sum = ptowsp_task_scalar(task, 0);
        (void)user;
        for (uint32_t i = 0; i <= last; i++) {
            const ptowsp_tile *tile = &task->tiles[i];
            for (int64_t r = 0; r < ptowsp_task_rows(task, i); r++) {
                for (int64_t c = 0; c < ptowsp_task_cols(task, i); c++) {
                    int64_t *at =
                        (int64_t *)tile->data + r * tile->row_stride + c * tile->col_stride;
                    sum = i < last ? sum * 31 + (uint64_t)*at : sum * 37 + 11;
                    *at = i < last ? *at : (int64_t)sum;
                }
            }
        }
        return 7 + (ptowsp_cycles)ptowsp_task_rows(task, last);
    })

// -- the program ----------------------------------------------------------------------------------
//
//      for i over rounds
//          h = make; t = mix h; u = mix t          h is dead when u begins, and may be where u is
//          slot 0 = u[1, 1]
//          parallel r over rows: w[r] = mix u      one point
//          out[i] = mix w (slot 0)
//      v = make; out[5] = mix v

typedef struct subject {
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_kernel make, mix;
    ptowsp_program *program;
    ptowsp_run *run;
    ptowsp_npu *npu;
    int64_t out[OUT], widths[3];
    int32_t lengths[REQUESTS];
} subject;

static ptowsp_kernel kernel_of(ptowsp_module *m, const char *name, bool has_input) {
    ptowsp_kernel_desc desc = {.name = name,
                               .source = {.text = transient_source, .fn = "transient_mix"}};
    uint32_t i = 0;
    if (has_input) {
        desc.tiles[i++] =
            (ptowsp_tile_param){"in", PTOWSP_IN, PTOWSP_I64, PTOWSP_DYNAMIC, PTOWSP_DYNAMIC};
    }
    desc.tiles[i] =
        (ptowsp_tile_param){"out", PTOWSP_OUT, PTOWSP_I64, PTOWSP_DYNAMIC, PTOWSP_DYNAMIC};
    desc.scalars[0] = (ptowsp_scalar_param){"salt", PTOWSP_TYPE_I64};
    desc.fn = transient_mix;
    return ptowsp_kernel_make(m, &desc);
}

// A size of 0 is the expression.
static ptowsp_tensor transient_of(subject *s, const char *name, int64_t rows, ptowsp_expr size,
                                  int64_t cols) {
    ptowsp_tensor_desc desc = {
        name, PTOWSP_I64, 2, {rows ? rows : PTOWSP_DYNAMIC, cols}, PTOWSP_LOCATION_GLOBAL};
    ptowsp_expr sizes[2] = {{0}};
    sizes[0] = rows ? sizes[1] : size;
    return ptowsp_tensor_transient(s->m, &desc, sizes);
}

static void task(const subject *s, const ptowsp_view *in, ptowsp_view out, ptowsp_expr salt) {
    ptowsp_task_desc desc = {.kernel = in ? s->mix : s->make, .scalars = {salt}};
    desc.views[0] = in ? *in : out;
    if (in) {
        desc.views[1] = out;
    }
    ptowsp_task_make(s->m, &desc);
}

static void statements(subject *s) {
    ptowsp_module *m = s->m;
    ptowsp_axis rows = ptowsp_axis_dynamic(m, "rows"), rounds = ptowsp_axis_dense(m, "rounds", 4);
    ptowsp_axis units = ptowsp_axis_plan(m, "kv");
    ptowsp_tensor_desc desc = {"out", PTOWSP_I64, 2, {OUT, 1}, PTOWSP_LOCATION_GLOBAL};
    ptowsp_tensor out = ptowsp_tensor_make(m, &desc);
    ptowsp_expr size = ptowsp_axis_size(m, rows), none = {0};
    ptowsp_tensor h = transient_of(s, "h (in)", 0, ptowsp_mul(size, ptowsp_i64(m, 3)), 4);
    ptowsp_tensor t = transient_of(
        s, "t", 0, ptowsp_array_at(m, "widths", PTOWSP_I64, ptowsp_sub(size, ptowsp_i64(m, 1))), 2);
    ptowsp_tensor u = transient_of(s, "u", 5, none, 4);
    ptowsp_tensor w = transient_of(s, "w", 0, size, 8);
    ptowsp_tensor v =
        transient_of(s, "v", 0,
                     ptowsp_add(ptowsp_axis_size(m, units),
                                ptowsp_cast(ptowsp_symbol(m, "more"), PTOWSP_TYPE_I64)),
                     2);
    PTOWSP_FOR_EACH(m, i, rounds) {
        const ptowsp_view of_h = {.tensor = h}, of_t = {.tensor = t}, of_u = {.tensor = u},
                          of_w = {.tensor = w};
        task(s, NULL, of_h, i);
        task(s, &of_h, of_t, i);
        task(s, &of_t, of_u, i);
        const ptowsp_view corner = {.tensor = u, .rows = 2, .cols = 2};
        ptowsp_slot_load_make(m, 0, &corner, ptowsp_i64(m, 1), ptowsp_i64(m, 1));
        PTOWSP_PARALLEL(m, r, rows) {
            const ptowsp_view row = {.tensor = w, .row = r, .rows = 1};
            task(s, &of_u, row, r);
        }
        const ptowsp_view at = {.tensor = out, .row = i, .rows = 1};
        task(s, &of_w, at, ptowsp_slot(m, 0, PTOWSP_TYPE_I64));
    }
    const ptowsp_view of_v = {.tensor = v},
                      last = {.tensor = out, .row = ptowsp_i64(m, 5), .rows = 1};
    task(s, NULL, of_v, ptowsp_i64(m, 77));
    task(s, &of_v, last, ptowsp_i64(m, 78));
}

static void subject_make(subject *s) {
    const ptowsp_schedule schedule = {.lane_count = 3, .window = 5};
    memset(s, 0, sizeof *s);
    assert_int_equal(ptowsp_context_create(NULL, &s->context), PTOWSP_OK);
    const ptowsp_module_desc module = {.name = "transients", .slot_count = 1};
    assert_int_equal(ptowsp_module_create(s->context, &module, &s->m), PTOWSP_OK);
    s->make = kernel_of(s->m, "make", false);
    s->mix = kernel_of(s->m, "mix", true);
    PTOWSP_WORKLOAD(s->m, "main") {
        statements(s);
    }
    ptowsp_program_desc desc = {NULL, &schedule};
    if (ptowsp_program_create(s->context, s->m, &desc, &s->program) != PTOWSP_OK) {
        NPU_FAIL("%s", ptowsp_context_error(s->context).text);
    }
    assert_int_equal(ptowsp_run_create(s->context, s->program, &s->run), PTOWSP_OK);
    s->npu = npu_build(s->context, s->program);
}

static void subject_free(subject *s) {
    ptowsp_npu_destroy(s->npu);
    test_destroy(s->run, s->program, s->m, s->context);
}

static void bind(subject *s, int64_t rows, uint64_t random) {
    ptowsp_buffer buffer = {.data = s->out, .rank = 2, .shape = {OUT, 1}};
    const ptowsp_attention_batch batch = {s->lengths, NULL, REQUESTS};
    const ptowsp_attention_config config = {.kv_head_count = 1, .lane_count = 2};
    for (int i = 0; i < OUT; i++) {
        s->out[i] = i;
    }
    for (int i = 0; i < 3; i++) {
        s->widths[i] = (int64_t)test_random_in(&random, 1, 40);
        s->lengths[i] = (int32_t)test_random_in(&random, 0, TOKENS);
    }
    assert_int_equal(ptowsp_run_bind_size(s->run, "rows", rows), PTOWSP_OK);
    assert_int_equal(ptowsp_run_bind_symbol(s->run, "more", 1), PTOWSP_OK);
    assert_int_equal(ptowsp_run_bind_array(s->run, "widths", PTOWSP_I64, s->widths, 3), PTOWSP_OK);
    assert_int_equal(ptowsp_run_bind_tensor(s->run, "out", &buffer), PTOWSP_OK);
    assert_int_equal(ptowsp_run_bind_batch(s->run, "kv", &batch, &config, NULL), PTOWSP_OK);
}

// Runs in the library and in the tree: the library says `expected`, and so does the tree.
static void compare(subject *s, uint64_t random, ptowsp_status expected) {
    npu_subject both = {
        .context = s->context, .run = s->run, .npu = s->npu, .slot_count = 1, .random = random};
    npu_block_add(&both, s->out, sizeof s->out);
    npu_subject_check(&both);
    if (both.status != expected) {
        NPU_FAIL("%s: %s", ptowsp_status_name(both.status), both.error_text);
    }
}

// -- tests ----------------------------------------------------------------------------------------

static void npu_transient__trees_place_what_the_library_places(void **state) {
    (void)state;
    static subject s;
    npu_doing("transients", 0);
    subject_make(&s);
    if (s.npu) {
        for (uint64_t i = 0; i < 12; i++) {
            bind(&s, 1 + (int64_t)(i % 3), test_seed() + i);
            compare(&s, i, PTOWSP_OK);
        }
        PWSP_ALIGNAS(PTOWSP_TRANSIENT_ALIGN) static char block[1 << 14];
        assert_int_equal(ptowsp_run_bind_transients(s.run, block, sizeof block), PTOWSP_OK);
        compare(&s, 20, PTOWSP_OK);
        ptowsp_transient_sizes sizes;
        assert_int_equal(ptowsp_run_size_transients(s.run, &sizes), PTOWSP_OK);
        assert_int_equal(ptowsp_run_bind_transients(s.run, NULL, sizes.peak), PTOWSP_OK);
        compare(&s, 21, PTOWSP_OK);
        // Of the five, three live at once at most.
        assert_true(sizes.peak < sizes.sum);
        assert_int_equal(ptowsp_run_bind_transients(s.run, block, sizes.peak - 1), PTOWSP_OK);
        compare(&s, 22, PTOWSP_LIMIT_EXCEEDED);
        assert_int_equal(ptowsp_run_bind_transients(s.run, NULL, sizes.peak - 1), PTOWSP_OK);
        compare(&s, 23, PTOWSP_LIMIT_EXCEEDED);
        assert_true(npu_now.tally.other_texts == 0);
    }
    subject_free(&s);
}

static void npu_transient__trees_refuse_what_the_library_refuses(void **state) {
    (void)state;
    static subject s;
    npu_doing("transients, errors", 0);
    subject_make(&s);
    if (s.npu) {
        bind(&s, 4, 1);  // there is no widths[3]
        compare(&s, 1, PTOWSP_INVALID_PARAMS);
        assert_non_null(
            strstr(ptowsp_context_error(s.context).text, "run: the size of transient tensor t: "));
        bind(&s, 2, 1);
        s.widths[1] = -3;
        compare(&s, 2, PTOWSP_INVALID_PARAMS);
        s.widths[1] = (INT64_C(1) << 57) - 1;
        compare(&s, 3, PTOWSP_LIMIT_EXCEEDED);
        s.widths[1] = 3;
        s.lengths[0] = -1;  // no plan
        compare(&s, 4, PTOWSP_INVALID_PARAMS);
        s.lengths[0] = 1;
        compare(&s, 5, PTOWSP_OK);
        assert_true(npu_now.tally.other_texts == 0);
    }
    subject_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(npu_transient__trees_place_what_the_library_places),
        cmocka_unit_test(npu_transient__trees_refuse_what_the_library_refuses),
    };
    return npu_run_tests("npu_transient", tests, sizeof tests / sizeof tests[0]);
}
