// Errors leave a status and a text in their context: BUSY, failed kernels, and fields and sizes by
// their names.

#include "support/fixture.h"

static void call_again(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    ptowsp_context *context = (ptowsp_context *)user;
    (void)begin, (void)end, (void)lane;
    assert_int_equal(ptowsp_parallel_for(context, 1, 0, call_again, context), PTOWSP_BUSY);
    assert_int_equal(ptowsp_attend_run(context, NULL), PTOWSP_BUSY);
    test_was_busy(context);
}

TEST_F(busy__has_a_text_until_the_next_failure) {
    ptowsp_context *context = f->context;
    ptowsp_context_fail(context, PTOWSP_STUCK, 7, "old");
    assert_ok(ptowsp_parallel_for(context, 1, 0, call_again, context));
    test_was_busy(context);
    ptowsp_context_fail(context, PTOWSP_STUCK, 8, "new");
    test_error_is(context, PTOWSP_STUCK, 8, "new");
}

static void fail_then_call_again(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    ptowsp_context *context = (ptowsp_context *)user;
    (void)begin, (void)end, (void)lane;
    ptowsp_context_fail(context, PTOWSP_STUCK, 9, "within");
    assert_int_equal(ptowsp_parallel_for(context, 1, 0, call_again, context), PTOWSP_BUSY);
}

TEST_F(busy__does_not_replace_the_failure_of_the_execution_under_way) {
    ptowsp_context *context = f->context;
    assert_ok(ptowsp_parallel_for(context, 1, 0, fail_then_call_again, context));
    test_error_is(context, PTOWSP_STUCK, 9, "within");
    // The next execution is another one.
    assert_ok(ptowsp_parallel_for(context, 1, 0, call_again, context));
    test_was_busy(context);
}

static ptowsp_status run_again(void *user, uint64_t task, uint32_t lane) {
    ptowsp_graph *graph = *(ptowsp_graph **)user;
    (void)task, (void)lane;
    return ptowsp_graph_seal(graph) == PTOWSP_BUSY ? PTOWSP_OK : PTOWSP_STUCK;
}

TEST_F(busy__comes_from_a_graph_that_runs) {
    ptowsp_context *context = f->context;
    ptowsp_graph *graph = NULL;
    ptowsp_graph_task_desc task = {.fn = run_again, .user = &graph};
    assert_ok(ptowsp_graph_create(context, NULL, &graph));
    assert_ok(ptowsp_graph_task_make(graph, &task, NULL));
    ptowsp_context_fail(context, PTOWSP_STUCK, 7, "old");
    assert_ok(ptowsp_graph_run(graph));
    test_was_busy(context);
    ptowsp_graph_destroy(graph);
}

TEST_F(measure__of_a_failed_kernel_says_why_it_failed) {
    f->module = test_module(f->context, NULL);
    ptowsp_kernel_stats stats;
    ptowsp_body_desc desc = {.name = "gemm"};
    ptowsp_body *b = ptowsp_kernel_begin(f->module, &desc);
    ptowsp_value x = ptowsp_tile_in(b, "x", PTOWSP_F16, 32, 64);
    ptowsp_tile_store(ptowsp_tile_out(b, "y", PTOWSP_F32, 32, 64), ptowsp_tile_matmul(x, x));
    ptowsp_kernel kernel = ptowsp_kernel_end(b);
    test_refused(f->context, ptowsp_kernel_measure(f->module, kernel, NULL, &stats),
                 PTOWSP_INVALID_PARAMS, 0,
                 "measure: there is no tile kernel 0: module: kernel gemm: matmul: 32 x 64 times "
                 "32 x 64: 64 columns on the left, 32 rows on the right");
}

TEST_F(measure__names_what_is_missing) {
    f->module = test_module(f->context, NULL);
    ptowsp_kernel_stats stats;
    ptowsp_cost cost = {.model = PTOWSP_MODEL_USER};
    ptowsp_body_desc desc = {.name = "twice"};
    ptowsp_body *b = ptowsp_kernel_begin(f->module, &desc);
    ptowsp_value x = ptowsp_tile_inout(b, "x", PTOWSP_F32, 1, 64);
    ptowsp_tile_store(x, ptowsp_tile_add(x, x));
    ptowsp_kernel kernel = ptowsp_kernel_end(b), none = {kernel.id + 1};
    test_refused(f->context, ptowsp_kernel_measure(f->module, none, NULL, &stats),
                 PTOWSP_INVALID_PARAMS, none.id, "measure: there is no tile kernel 2");
    assert_invalid(ptowsp_kernel_measure(f->module, kernel, &cost, &stats));
    char text[100];
    snprintf(text, sizeof text, "measure: there is no cost model %d, or it lacks its function",
             (int)PTOWSP_MODEL_USER);
    test_error_is(f->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, text);
    test_refused(f->context, ptowsp_kernel_measure(f->module, kernel, NULL, NULL),
                 PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "measure: out_stats is NULL");
}
