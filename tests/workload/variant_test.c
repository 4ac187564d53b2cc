// Choices among kernels: each task takes what a hand-written branch takes, and programs are the
// same as those with the branches written out. In which order variants are asked and why, and what is refused, is in
// tests/cases/builder.case.

#include "test.h"

enum { ROWS = 64, COLS = 4, ITEMS = 40 };

typedef struct fixture {
    test_memory memory;
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_tensor x, y;                // f32, f16
    ptowsp_kernel small, large, half;  // f32, f32, f16
    ptowsp_program *program;
    uint32_t calls[3];
} fixture;

static ptowsp_cycles count_small(const ptowsp_task *task, void *user) {
    fixture *f = (fixture *)user;
    assert_true(ptowsp_task_rows(task, 0) <= 16);
    f->calls[0]++;
    return 5;
}

static ptowsp_cycles count_large(const ptowsp_task *task, void *user) {
    (void)task;
    ((fixture *)user)->calls[1]++;
    return 50;
}

static ptowsp_cycles count_half(const ptowsp_task *task, void *user) {
    (void)task;
    ((fixture *)user)->calls[2]++;
    return 3;
}

static void fixture_begin(fixture *f) {
    static const char text[] = "module choices slots 4\n"
                               "tensor x f32 [64, 4] global\n"
                               "tensor y f16 [64, 4] global\n"
                               "kernel small(axes 1, inout x f32 ? x 4, k u64) vector, 5 cycles\n"
                               "kernel large(axes 1, inout x f32 ? x 4, k u64) vector, 50 cycles\n"
                               "kernel half(axes 1, inout x f16 ? x 4, k u64) vector, 3 cycles\n";
    const ptowsp_parse_kernel kernels[] = {{.name = "small", .fn = count_small, .user = f},
                                           {.name = "large", .fn = count_large, .user = f},
                                           {.name = "half", .fn = count_half, .user = f}};
    const ptowsp_parse_desc parse = {kernels, COUNT_OF(kernels), 0};
    memset(f, 0, sizeof *f);
    ptowsp_context_desc desc = test_lanes_desc(2);
    desc.resize = test_resize;
    desc.resize_user = &f->memory;
    assert_ok(ptowsp_context_create(&desc, &f->context));
    assert_ok(ptowsp_module_parse(f->context, text, sizeof text - 1, &parse, &f->m, NULL));
    f->x.id = f->small.id = 1;
    f->y.id = f->large.id = 2;
    f->half.id = 3;
}

static void fixture_end(fixture *f) {
    test_destroy(NULL, f->program, f->m, f->context);
    assert_int_equal(f->memory.live_blocks, 0);
}

// Rows of at most 16: the argument behind the axis.
static ptowsp_expr is_small(const fixture *f) {
    return ptowsp_le(ptowsp_task_arg(f->m, 1), ptowsp_i64(f->m, 16));
}

static ptowsp_kernel choice_make(fixture *f) {
    ptowsp_choice_desc desc = {.name = "scale",
                               .variants[0].kernel = f->large,
                               .variants[1].kernel = f->half,
                               .variants[2].kernel = f->small,
                               .variants[2].condition = is_small(f)};
    return ptowsp_kernel_choice(f->m, &desc);
}

static ptowsp_node task_make(fixture *f, ptowsp_kernel kernel, ptowsp_tensor tensor, int64_t rows,
                             ptowsp_expr row_count, ptowsp_node after) {
    ptowsp_task_desc desc = {.kernel = kernel,
                             .axes[0] = ptowsp_i64(f->m, 7),
                             .views[0].tensor = tensor,
                             .views[0].rows = rows,
                             .views[0].row_count = row_count};
    desc.scalars[0] = ptowsp_u64(f->m, 9);
    desc.after[0] = after;
    return ptowsp_task_make(f->m, &desc);
}

static const ptowsp_expr none;
static const ptowsp_node first;

#define FIXTURE_TEST(name) TEST_MADE(name, fixture, f, fixture_begin(f), fixture_end(f))

// -- what tasks decide ------------------------------------------------------------------------------

// The program with a choice, or with its branches written out.
static void ragged_program(fixture *f, bool is_by_hand, const ptowsp_schedule *schedule) {
    fixture_begin(f);
    ptowsp_kernel choice = choice_make(f);
    ptowsp_axis items = ptowsp_axis_dense(f->m, "items", ITEMS);
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PARALLEL(f->m, i, items) {
            ptowsp_expr rows = ptowsp_array_at(f->m, "rows", PTOWSP_I32, i);
            if (is_by_hand) {
                ptowsp_expr limit = ptowsp_min(ptowsp_i64(f->m, 60), rows);
                PTOWSP_WHEN(f->m, ptowsp_le(limit, ptowsp_i64(f->m, 16))) {
                    task_make(f, f->small, f->x, 60, rows, first);
                }
                PTOWSP_OTHERWISE(f->m) {
                    task_make(f, f->large, f->x, 60, rows, first);
                }
            } else {
                task_make(f, choice, f->x, 60, rows, first);
            }
        }
    }
    const ptowsp_program_desc desc = {.schedule = schedule};
    test_ok(f->context, ptowsp_program_create(f->context, f->m, &desc, &f->program));
}

TEST(choice__tasks_take_what_a_branch_by_hand_takes) {
    uint64_t random = test_seed();
    static float data[ROWS * COLS];
    for (int round = 0; TEST_ROUNDS(round, 30); round++) {
        int32_t rows[ITEMS];
        uint32_t small = 0;
        for (int i = 0; i < ITEMS; i++) {
            rows[i] = (int32_t)test_random_in(&random, 1, 40);
            small += rows[i] <= 16;
        }
        ptowsp_cycles makespan[2];
        char text[2][4000];
        for (int by_hand = 0; by_hand < 2; by_hand++) {
            fixture f;
            const ptowsp_buffer buffer = {.data = data, .size = sizeof data};
            ragged_program(&f, by_hand, NULL);
            ptowsp_program_print(f.program, TEST_TEXT(text[by_hand]));
            ptowsp_run *run = test_run_of(f.context, f.program);
            assert_ok(ptowsp_run_bind_array(run, "rows", PTOWSP_I32, rows, ITEMS));
            assert_ok(ptowsp_run_bind_tensor(run, "x", &buffer));
            const ptowsp_run_options options = {.lane_count = (uint32_t)(round % 2) * 2};
            assert_ok(ptowsp_run_execute(run, &options));
            makespan[by_hand] = ptowsp_run_result(run)->makespan_cycles;
            assert_int_equal(ptowsp_run_result(run)->task_count, ITEMS);
            assert_int_equal(f.calls[0], small);
            assert_int_equal(f.calls[1], ITEMS - small);
            assert_int_equal(f.calls[2], 0);
            ptowsp_run_destroy(run);
            fixture_end(&f);
        }
        assert_true(makespan[0] == makespan[1]);
        assert_string_equal(text[0], text[1]);
    }
}

// A task after a choice waits for the variant that ran.
TEST(choice__a_task_after_it_waits_for_the_variant_that_ran) {
    static float data[ROWS * COLS];
    static uint16_t halves[ROWS * COLS];
    for (int32_t rows = 10; rows <= 20; rows += 10) {
        fixture f;
        ptowsp_schedule schedule = {.lane_count = 2, .dependencies = PTOWSP_DEPENDENCIES_EXPLICIT};
        fixture_begin(&f);
        ptowsp_kernel choice = choice_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            PTOWSP_COMBINE(f.m) {
                ptowsp_node node =
                    task_make(&f, choice, f.x, 60,
                              ptowsp_array_at(f.m, "rows", PTOWSP_I32, ptowsp_i64(f.m, 0)), first);
                task_make(&f, choice, f.y, 4, none, node);
            }
        }
        const ptowsp_program_desc desc = {.schedule = &schedule};
        assert_ok(ptowsp_program_create(f.context, f.m, &desc, &f.program));
        ptowsp_run *run = test_run_of(f.context, f.program);
        const ptowsp_buffer x = {.data = data, .size = sizeof data};
        const ptowsp_buffer y = {.data = halves, .size = sizeof halves};
        assert_ok(ptowsp_run_bind_array(run, "rows", PTOWSP_I32, &rows, 1));
        assert_ok(ptowsp_run_bind_tensor(run, "x", &x));
        assert_ok(ptowsp_run_bind_tensor(run, "y", &y));
        assert_ok(ptowsp_run_execute(run, NULL));
        // 5 or 50, then 3; without the edge it would be 5 or 50.
        assert_int_equal(ptowsp_run_result(run)->makespan_cycles, rows <= 16 ? 8 : 53);
        ptowsp_run_destroy(run);
        fixture_end(&f);
    }
}

// -- what is none, and limits ------------------------------------------------------------------------

FIXTURE_TEST(choice__what_is_none_has_no_variants) {
    const ptowsp_kernel kernels[] = {f->small, {0}, {99}};
    for (int i = 0; i < 3; i++) {
        char text[100];
        ptowsp_kernel_explain(f->m, kernels[i], NULL, TEST_TEXT(text));
        assert_string_equal(ptowsp_module_error(f->m).text, "");
        assert_string_equal(text, i ? "" : "small: a kernel, without variants\n");
    }
    ptowsp_kernel_choice(f->m, NULL);
    assert_string_equal(ptowsp_module_error(f->m).text, "choices: choice: desc is NULL");
}

// An argument stands in the condition as it is: together they may be too deep.
FIXTURE_TEST(choice__conditions_too_deep_are_refused) {
    ptowsp_choice_desc desc = {0};
    ptowsp_expr deep = ptowsp_task_arg(f->m, 0);
    for (int i = 0; i < PTOWSP_EXPR_DEPTH_MAX - 2; i++) {
        deep = ptowsp_add(deep, ptowsp_i64(f->m, 1));
    }
    desc.name = "c";
    desc.variants[0].kernel = f->small;
    desc.variants[0].condition = ptowsp_gt(deep, ptowsp_i64(f->m, 3));
    const ptowsp_kernel choice = ptowsp_kernel_choice(f->m, &desc);
    assert_string_equal(ptowsp_module_error(f->m).text, "");
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PARALLEL(f->m, i, ptowsp_axis_dense(f->m, "n", 2)) {
            ptowsp_task_desc task = {.kernel = choice};
            task.axes[0] = ptowsp_mul(ptowsp_add(i, i), ptowsp_add(ptowsp_mul(i, i), i));
            task.views[0].tensor = f->x;
            task.scalars[0] = ptowsp_u64(f->m, 1);
            ptowsp_task_make(f->m, &task);
        }
    }
    assert_int_equal(ptowsp_module_error(f->m).status, PTOWSP_LIMIT_EXCEEDED);
    assert_non_null(strstr(ptowsp_module_error(f->m).text,
                           "a condition of a variant: the expression has more than 200 operations "
                           "in one another, or more than 10000 in all"));
}

// -- errors -----------------------------------------------------------------------------------------

TEST(memory__each_allocation_may_be_refused) {
    for (size_t refused = 1;; refused++) {
        fixture f;
        fixture_begin(&f);
        f.memory.refuse_at = f.memory.allocations + refused;
        ptowsp_kernel choice = choice_make(&f);
        PTOWSP_WORKLOAD(f.m, "main") {
            ptowsp_node node =
                task_make(&f, choice, f.x, 60, ptowsp_slot(f.m, 0, PTOWSP_TYPE_I64), first);
            task_make(&f, choice, f.y, 4, none, node);
        }
        ptowsp_status status = ptowsp_program_create(f.context, f.m, NULL, &f.program);
        bool is_over = f.memory.allocations < f.memory.refuse_at;
        assert_int_equal(status, is_over ? PTOWSP_OK : PTOWSP_OUT_OF_MEMORY);
        fixture_end(&f);
        if (is_over) {
            break;
        }
    }
}
