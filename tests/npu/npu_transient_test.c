// Emitted trees with transient tensors do what the library does: sizes by axes, arrays, plans and
// symbols, memory that tensors share, slots loaded from it, a block of the caller's and a limit; and
// they refuse what the library refuses, in its words. See npu_equal.h for how they are run.

#include "npu_trees.h"

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

typedef struct subject {
    npu_tree t;
    int64_t out[OUT], widths[3];
    int32_t lengths[REQUESTS];
} subject;

static void subject_make(subject *s) {
    const ptowsp_kernel_source source = {.text = transient_source, .fn = "transient_mix"};
    const ptowsp_parse_kernel kernels[] = {{.name = "make", .fn = transient_mix, .source = source},
                                           {.name = "mix", .fn = transient_mix, .source = source}};
    npu_tree_make(&s->t, npu_module("transients"),
                  "  dispatch round robin over 3 lanes\n  window stall at 5 tasks\n", kernels, 2);
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
    assert_ok(ptowsp_run_bind_size(s->t.run, "rows", rows));
    assert_ok(ptowsp_run_bind_symbol(s->t.run, "more", 1));
    assert_ok(ptowsp_run_bind_array(s->t.run, "widths", PTOWSP_I64, s->widths, 3));
    assert_ok(ptowsp_run_bind_tensor(s->t.run, "out", &buffer));
    assert_ok(ptowsp_run_bind_batch(s->t.run, "kv", &batch, &config, NULL));
}

static void compare(subject *s, uint64_t random, const char *status) {
    const npu_block out = {.data = s->out, .size = sizeof s->out};
    npu_tree_run(&s->t, random, &out, 1, status);
}

// -- tests ----------------------------------------------------------------------------------------

static void npu_transient__trees_place_what_the_library_places(void **state) {
    (void)state;
    static subject s;
    npu_doing("transients", 0);
    subject_make(&s);
    if (s.t.npu) {
        for (uint64_t i = 0; i < 12; i++) {
            bind(&s, 1 + (int64_t)(i % 3), test_seed() + i);
            compare(&s, i, "OK");
        }
        PWSP_ALIGNAS(PTOWSP_TRANSIENT_ALIGN) static char block[1 << 14];
        assert_ok(ptowsp_run_bind_transients(s.t.run, block, sizeof block));
        compare(&s, 20, "OK");
        ptowsp_transient_sizes sizes;
        assert_ok(ptowsp_run_size_transients(s.t.run, &sizes));
        assert_ok(ptowsp_run_bind_transients(s.t.run, NULL, sizes.peak));
        compare(&s, 21, "OK");
        // Of the five, three live at once at most.
        assert_true(sizes.peak < sizes.sum);
        assert_ok(ptowsp_run_bind_transients(s.t.run, block, sizes.peak - 1));
        compare(&s, 22, "LIMIT_EXCEEDED");
        assert_ok(ptowsp_run_bind_transients(s.t.run, NULL, sizes.peak - 1));
        compare(&s, 23, "LIMIT_EXCEEDED");
    }
    npu_tree_free(&s.t);
}

static void npu_transient__trees_refuse_what_the_library_refuses(void **state) {
    (void)state;
    static subject s;
    npu_doing("transients, errors", 0);
    subject_make(&s);
    if (s.t.npu) {
        bind(&s, 4, 1);  // there is no widths[3]
        compare(&s, 1, "INVALID_PARAMS");
        assert_non_null(strstr(ptowsp_context_error(s.t.context).text,
                               "run: the size of transient tensor t: "));
        bind(&s, 2, 1);
        s.widths[1] = -3;
        compare(&s, 2, "INVALID_PARAMS");
        s.widths[1] = (INT64_C(1) << 57) - 1;
        compare(&s, 3, "LIMIT_EXCEEDED");
        s.widths[1] = 3;
        s.lengths[0] = -1;  // no plan
        compare(&s, 4, "INVALID_PARAMS");
        s.lengths[0] = 1;
        compare(&s, 5, "OK");
    }
    npu_tree_free(&s.t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(npu_transient__trees_place_what_the_library_places),
        cmocka_unit_test(npu_transient__trees_refuse_what_the_library_refuses),
    };
    return npu_run_tests("npu_transient", tests, COUNT_OF(tests));
}
