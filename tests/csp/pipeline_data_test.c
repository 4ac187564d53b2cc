// Pipelines: tokens in expressions, and data that flows from process to process. Notation and
// kernels are those of pipeline_fixture.h.

#include "pipeline_fixture.h"

// -- tokens ---------------------------------------------------------------------------------------

static ptowsp_cycles scalars_are(const ptowsp_task *task, void *user) {
    bool is_first = task->index % 2 == 0;
    (void)user;
    assert_true(ptowsp_task_scalar(task, 0) == (is_first ? UINT64_MAX - 1 : 3));
    assert_true((int64_t)ptowsp_task_scalar(task, 1) == (is_first ? -2 : 3));
    assert_true(ptowsp_task_scalar(task, 2) == (is_first ? 0 : 1));
    return (ptowsp_cycles)ptowsp_task_axis(task, 0);
}

// A token as scalars of three types and in the cycles.
TEST(pipeline_data__tokens_are_arguments) {
    fixture f;
    fixture_make(&f);
    ptowsp_kernel_desc kernel = {.name = "scalars",
                                 .axis_count = 1,
                                 .fn = scalars_are,
                                 .scalars[0].name = "u",
                                 .scalars[0].type = PTOWSP_TYPE_U64,
                                 .scalars[1].name = "i",
                                 .scalars[1].type = PTOWSP_TYPE_I64,
                                 .scalars[2].name = "b",
                                 .scalars[2].type = PTOWSP_TYPE_BOOL};
    ptowsp_task_desc desc = {.kernel = ptowsp_kernel_make(f.m, &kernel)};
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = channel(&f, "a", 1, 0);
            PTOWSP_PROCESS(f.m, "load") {
                ptowsp_produces(f.m, a);
                send(&f, a, -2);
                send(&f, a, 3);
            }
            PTOWSP_PROCESS(f.m, "use") {
                ptowsp_consumes(f.m, a);
                PTOWSP_CONSUME(f.m, t, a) {
                    desc.axes[0] = ptowsp_add(ptowsp_mul(t, t), number(&f, 1));  // 5, 10
                    desc.scalars[0] = ptowsp_cast(t, PTOWSP_TYPE_U64);
                    desc.scalars[1] = t;
                    desc.scalars[2] = ptowsp_gt(t, number(&f, 0));
                    ptowsp_task_make(f.m, &desc);
                }
            }
        }
    }
    compile(&f, NULL);
    execute_ok(&f, PTOWSP_RUN_EXECUTE, true);
    check_results(f.run);
    expect_steps(&f, "use", 0, "a?-2 0, task 0-5, a?3 5, task 5-15, a?end 15, end 15");
    fixture_free(&f);
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

static ptowsp_kernel stage_make(const fixture *f, const char *name, ptowsp_kernel_fn fn,
                                int64_t in_cols, int64_t out_cols) {
    const ptowsp_tile_param in = {"in", PTOWSP_IN, PTOWSP_I32, 1, in_cols};
    const ptowsp_tile_param out = {"out", PTOWSP_OUT, PTOWSP_I32, 1, out_cols};
    ptowsp_kernel_desc desc = {
        .name = name, .axis_count = 1, .tiles[0] = in, .tiles[1] = out, .fn = fn};
    return ptowsp_kernel_make(f->m, &desc);
}

static ptowsp_tensor rows_make(const fixture *f, const char *name, int64_t rows, int64_t cols) {
    const ptowsp_tensor_desc desc = {
        name, PTOWSP_I32, 2, {rows, cols, 0, 0, 0, 0, 0, 0}, PTOWSP_LOCATION_GLOBAL};
    return ptowsp_tensor_make(f->m, &desc);
}

static ptowsp_task_desc stage(ptowsp_kernel kernel, ptowsp_expr token, ptowsp_tensor in,
                              ptowsp_expr in_row, ptowsp_tensor out, ptowsp_expr out_row) {
    ptowsp_task_desc desc = {.kernel = kernel,
                             .axes[0] = token,
                             .views[0].tensor = in,
                             .views[0].row = in_row,
                             .views[1].tensor = out,
                             .views[1].row = out_row};
    return desc;
}

static void bind_rows(const fixture *f, const char *name, int32_t *data) {
    test_bind(f->run, name, data);
}

// in --scale--> buffer of two rows --sum--> sums --total--> totals. A row of the buffer is written
// again when sum gives it back over `free`, which holds two from the start:
//
//      row         0     1     2     3     4     5
//      scale      0-4   4-8  10-14 16-20 22-26 28-32     from row 2 on, when row k - 2 is free
//      sum        4-10 10-16 16-22 22-28 28-34 34-40
//      total     10-11 16-17 22-23 28-29 34-35 40-41
TEST(pipeline_data__a_double_buffer_between_three_stages) {
    fixture f;
    stages s = {0};
    fixture_make(&f);
    for (int32_t i = 0; i < 24; i++) {
        s.in[i] = i * i - 7;
    }
    ptowsp_tensor in = rows_make(&f, "in", 6, 4), buffer = rows_make(&f, "buffer", 2, 4);
    ptowsp_tensor sums = rows_make(&f, "sums", 6, 1), totals = rows_make(&f, "totals", 6, 1);
    ptowsp_kernel scale = stage_make(&f, "scale", scale_row, 4, 4);
    ptowsp_kernel sum = stage_make(&f, "sum", sum_row, 4, 1);
    ptowsp_kernel total = stage_make(&f, "total", add_total, 1, 1);
    ptowsp_expr two = number(&f, 2);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel is_free = channel(&f, "free", 2, 0), full = channel(&f, "full", 2, 0);
            ptowsp_channel summed = channel(&f, "summed", 1, 0);
            PTOWSP_PROCESS(f.m, "scale") {
                ptowsp_consumes(f.m, is_free);
                ptowsp_produces(f.m, full);
                PTOWSP_FOR_EACH(f.m, i, axis(&f, "six", 6)) {
                    PTOWSP_RECEIVE(f.m, credit, is_free) {
                        ptowsp_task_desc desc = stage(scale, i, in, i, buffer, ptowsp_rem(i, two));
                        ptowsp_send_task_make(f.m, full, &desc);
                    }
                }
            }
            PTOWSP_PROCESS(f.m, "sum") {
                ptowsp_produces(f.m, is_free);
                ptowsp_consumes(f.m, full);
                ptowsp_produces(f.m, summed);
                send(&f, is_free, 0);
                send(&f, is_free, 0);
                PTOWSP_CONSUME(f.m, t, full) {
                    ptowsp_task_desc desc = stage(sum, t, buffer, ptowsp_rem(t, two), sums, t);
                    ptowsp_send_task_make(f.m, summed, &desc);
                    send(&f, is_free, 0);
                }
            }
            PTOWSP_PROCESS(f.m, "total") {
                ptowsp_consumes(f.m, summed);
                PTOWSP_CONSUME(f.m, t, summed) {
                    ptowsp_task_desc desc = stage(total, t, sums, t, totals, t);
                    ptowsp_task_make(f.m, &desc);
                }
            }
        }
    }
    compile(&f, NULL);
    bind_rows(&f, "in", s.in);
    bind_rows(&f, "buffer", s.buffer);
    bind_rows(&f, "sums", s.sums);
    bind_rows(&f, "totals", s.totals);
    execute_ok(&f, PTOWSP_RUN_EXECUTE, true);
    check_results(f.run);
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
    expect_steps(&f, "scale", 0,
                 "free?0 0, task 0-4, full!0 4, free?0 4, task 4-8, full!1 8, free?0 8-10, "
                 "task 10-14, full!2 14, free?0 14-16, task 16-20, full!3 20, free?0 20-22, "
                 "task 22-26, full!4 26, free?0 26-28, task 28-32, full!5 32, end 32");
    assert_int_equal(makespan(&f), 41);
    assert_int_equal(channel_of(&f, "free")->pending_count, 2);
    fixture_free(&f);
}
