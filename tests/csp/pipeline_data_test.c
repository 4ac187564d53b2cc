// Pipelines: tokens in expressions, and data that flows from process to process. Notation and
// kernels are those of pipeline_fixture.h.

#include "pipeline_fixture.h"

#define FIXTURE_TEST(name) TEST_MADE(name, fixture, f, fixture_make(f), fixture_free(f))

// -- tokens ---------------------------------------------------------------------------------------

static void parse(fixture *f, const ptowsp_parse_kernel *kernels, uint32_t count,
                  const char *text) {
    const ptowsp_parse_desc attached = {.kernels = kernels, .kernel_count = count};
    ptowsp_module_destroy(f->m);
    test_ok(f->context,
            ptowsp_module_parse(f->context, text, strlen(text), &attached, &f->m, NULL));
    compile(f, NULL);
}

static ptowsp_cycles scalars_are(const ptowsp_task *task, void *user) {
    bool is_first = task->index % 2 == 0;
    (void)user;
    assert_true(ptowsp_task_scalar(task, 0) == (is_first ? UINT64_MAX - 1 : 3));
    assert_true((int64_t)ptowsp_task_scalar(task, 1) == (is_first ? -2 : 3));
    assert_true(ptowsp_task_scalar(task, 2) == (is_first ? 0 : 1));
    return (ptowsp_cycles)ptowsp_task_axis(task, 0);
}

// A token as scalars of three types and in the cycles.
FIXTURE_TEST(pipeline_data__tokens_are_arguments) {
    const ptowsp_parse_kernel scalars = {.name = "scalars", .fn = scalars_are};
    parse(f, &scalars, 1,
          "module m\ntensor x i32 [8, 8] global\ntensor y i32 [8, 8] global\n"
          "kernel scalars(axes 1, u u64, i i64, b bool) vector\n" MAIN
          "    channel a depth 1 latency 0\n"
          "    process load produces a\n      send a(-2)\n      send a(3)\n"
          "    process use consumes a\n      consume t from a\n"
          "        task scalars(t * t + 1) u = u64(t) i = t b = t > 0\n");  // 5, 10
    execute_ok(f, PTOWSP_RUN_EXECUTE, true);
    check_results(f->run);
    expect_steps(f, "use", 0, "a?-2 0, task 0-5, a?3 5, task 5-15, a?end 15, end 15");
}

// -- data -----------------------------------------------------------------------------------------

// Kernels of three stages over rows of 4 numbers: y = 3 x + 1, a sum of each row, and their total so
// far.
typedef struct stages {
    int32_t in[6 * 4], buffer[2 * 4], sums[6], totals[6];
} stages;

static ptowsp_cycles scale_row(const ptowsp_task *task, void *user) {
    const int32_t *in = (const int32_t *)task->tiles[0].data;
    int32_t *out = (int32_t *)task->tiles[1].data;
    (void)user;
    for (int64_t c = 0; c < ptowsp_task_cols(task, 0); c++) {
        out[c] = 3 * in[c] + 1;
    }
    return 4;
}

static ptowsp_cycles sum_row(const ptowsp_task *task, void *user) {
    const int32_t *in = (const int32_t *)task->tiles[0].data;
    int32_t *out = (int32_t *)task->tiles[1].data;
    (void)user;
    *out = 0;
    for (int64_t c = 0; c < ptowsp_task_cols(task, 0); c++) {
        *out += in[c];
    }
    return 6;
}

static ptowsp_cycles add_total(const ptowsp_task *task, void *user) {
    const int32_t *in = (const int32_t *)task->tiles[0].data;
    int32_t *out = (int32_t *)task->tiles[1].data;
    (void)user;
    *out = *in + (ptowsp_task_axis(task, 0) > 0 ? out[-task->tiles[1].row_stride] : 0);
    return 1;
}

// in --scale--> buffer of two rows --sum--> sums --total--> totals. A row of the buffer is written
// again when sum gives it back over `free`, which holds two from the start:
//
//      row         0     1     2     3     4     5
//      scale      0-4   4-8  10-14 16-20 22-26 28-32     from row 2 on, when row k - 2 is free
//      sum        4-10 10-16 16-22 22-28 28-34 34-40
//      total     10-11 16-17 22-23 28-29 34-35 40-41
FIXTURE_TEST(pipeline_data__a_double_buffer_between_three_stages) {
    stages s = {0};
    for (int32_t i = 0; i < 24; i++) {
        s.in[i] = i * i - 7;
    }
    const ptowsp_parse_kernel kernels[] = {{.name = "scale", .fn = scale_row},
                                           {.name = "sum", .fn = sum_row},
                                           {.name = "total", .fn = add_total}};
    parse(f, kernels, 3,
          "module m\naxis six 6\ntensor x i32 [8, 8] global\ntensor y i32 [8, 8] global\n"
          "tensor in i32 [6, 4] global\ntensor buffer i32 [2, 4] global\n"
          "tensor sums i32 [6, 1] global\ntensor totals i32 [6, 1] global\n"
          "kernel scale(axes 1, in in i32 1 x 4, out out i32 1 x 4) vector\n"
          "kernel sum(axes 1, in in i32 1 x 4, out out i32 1 x 1) vector\n"
          "kernel total(axes 1, in in i32 1 x 1, out out i32 1 x 1) vector\n" MAIN
          "    channel free depth 2 latency 0\n"
          "    channel full depth 2 latency 0\n"
          "    channel summed depth 1 latency 0\n"
          "    process scale consumes free produces full\n      for_each i in six\n"
          "        receive credit from free\n"
          "          task scale(i) in = in at (i, 0) out = buffer at (i % 2, 0)\n"
          "          send full(i)\n"
          "    process sum consumes full produces free, summed\n      send free(0)\n"
          "      send free(0)\n      consume t from full\n"
          "        task sum(t) in = buffer at (t % 2, 0) out = sums at (t, 0)\n"
          "        send summed(t)\n        send free(0)\n"
          "    process total consumes summed\n      consume t from summed\n"
          "        task total(t) in = sums at (t, 0) out = totals at (t, 0)\n");
    test_bind(f->run, "in", s.in);
    test_bind(f->run, "buffer", s.buffer);
    test_bind(f->run, "sums", s.sums);
    test_bind(f->run, "totals", s.totals);
    execute_ok(f, PTOWSP_RUN_EXECUTE, true);
    check_results(f->run);
    int32_t so_far = 0;
    for (int32_t r = 0; r < 6; r++) {
        int32_t row = 0;
        for (int32_t c = 0; c < 4; c++) {
            row += 3 * ((4 * r + c) * (4 * r + c) - 7) + 1;
        }
        so_far += row;
        assert_int_equal(s.sums[r], row);
        assert_int_equal(s.totals[r], so_far);
    }
    expect_steps(f, "scale", 0,
                 "free?0 0, task 0-4, full!0 4, free?0 4, task 4-8, full!1 8, free?0 8-10, "
                 "task 10-14, full!2 14, free?0 14-16, task 16-20, full!3 20, free?0 20-22, "
                 "task 22-26, full!4 26, free?0 26-28, task 28-32, full!5 32, end 32");
    assert_int_equal(makespan(f), 41);
    assert_int_equal(channel_of(f, "free")->pending_count, 2);
}
