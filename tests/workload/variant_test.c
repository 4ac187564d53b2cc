// Choices among kernels: each task takes what a hand-written branch takes, and programs are the
// same as those with the branches written out.

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

static ptowsp_kernel kernel_make(fixture *f, const char *name, ptowsp_dtype dtype,
                                 ptowsp_kernel_fn fn, ptowsp_cycles cycles) {
    ptowsp_kernel_desc desc = {
        .name = name, .axis_count = 1, .fn = fn, .user = f, .cycles = cycles};
    const ptowsp_tile_param tile = {"x", PTOWSP_INOUT, dtype, PTOWSP_DYNAMIC, COLS};
    const ptowsp_scalar_param scalar = {"k", PTOWSP_TYPE_U64};
    desc.tiles[0] = tile;
    desc.scalars[0] = scalar;
    return ptowsp_kernel_make(f->m, &desc);
}

static ptowsp_tensor tensor_make(fixture *f, const char *name, ptowsp_dtype dtype) {
    const ptowsp_tensor_desc desc = {name, dtype, 2, {ROWS, COLS}, PTOWSP_LOCATION_GLOBAL};
    return ptowsp_tensor_make(f->m, &desc);
}

static void fixture_begin(fixture *f) {
    const ptowsp_module_desc module = {"choices", 4};
    memset(f, 0, sizeof *f);
    ptowsp_context_desc desc = test_lanes_desc(2);
    desc.resize = test_resize;
    desc.resize_user = &f->memory;
    assert_ok(ptowsp_context_create(&desc, &f->context));
    assert_ok(ptowsp_module_create(f->context, &module, &f->m));
    f->x = tensor_make(f, "x", PTOWSP_F32);
    f->y = tensor_make(f, "y", PTOWSP_F16);
    f->small = kernel_make(f, "small", PTOWSP_F32, count_small, 5);
    f->large = kernel_make(f, "large", PTOWSP_F32, count_large, 50);
    f->half = kernel_make(f, "half", PTOWSP_F16, count_half, 3);
}

static void fixture_end(fixture *f) {
    ptowsp_program_destroy(f->program);
    ptowsp_module_destroy(f->m);
    ptowsp_context_destroy(f->context);
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

static void print_module(const fixture *f, char *text, size_t size) {
    ptowsp_output_buffer buffer = {text, size, 0};
    ptowsp_module_print(f->m, ptowsp_output_to_buffer(&buffer));
}

// -- what is known when the task is made ------------------------------------------------------------

#define FIXTURE_TEST(name) TEST_MADE(name, fixture, f, fixture_begin(f), fixture_end(f))

FIXTURE_TEST(choice__data_types_and_constants_decide_while_compiling) {
    char text[2000];
    ptowsp_kernel choice = choice_make(f);
    PTOWSP_WORKLOAD(f->m, "main") {
        task_make(f, choice, f->y, 4, none, first);
        task_make(f, choice, f->x, 16, none, first);
        task_make(f, choice, f->x, 17, none, first);
        task_make(f, choice, f->x, 0, none, first);  // all 64 rows
    }
    print_module(f, text, sizeof text);
    assert_null(strstr(text, "kernel scale"));
    const char *tree = strstr(text, "workload main");
    assert_non_null(tree);
    assert_string_equal(tree, "workload main\n"
                              "  task half(7) x = y of 4 x 4 k = 9u\n"
                              "  task small(7) x = x of 16 x 4 k = 9u\n"
                              "  task large(7) x = x of 17 x 4 k = 9u\n"
                              "  task large(7) x = x of edge x 4 k = 9u\n");
}

// -- what tasks decide ------------------------------------------------------------------------------

// The program with a choice, or with its branches written out.
static void ragged_program(fixture *f, bool is_by_hand, const ptowsp_schedule *schedule) {
    fixture_begin(f);
    ptowsp_kernel choice = choice_make(f);
    ptowsp_axis items = ptowsp_axis_dense(f->m, "items", ITEMS);
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PARALLEL(f->m, i, items) {
            ptowsp_expr rows = ptowsp_array_at(f->m, "rows", PTOWSP_I32, i);
            ptowsp_node node = {0};
            if (is_by_hand) {
                ptowsp_expr limit = ptowsp_min(ptowsp_i64(f->m, 60), rows);
                PTOWSP_WHEN(f->m, ptowsp_le(limit, ptowsp_i64(f->m, 16))) {
                    node = task_make(f, f->small, f->x, 60, rows, first);
                }
                PTOWSP_OTHERWISE(f->m) {
                    task_make(f, f->large, f->x, 60, rows, first);
                }
                (void)node;
            } else {
                node = task_make(f, choice, f->x, 60, rows, first);
            }
        }
    }
    const ptowsp_program_desc desc = {.schedule = schedule};
    if (ptowsp_program_create(f->context, f->m, &desc, &f->program) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(f->context).text);
    }
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
            ptowsp_output_buffer out = {text[by_hand], sizeof text[0], 0};
            ptowsp_program_print(f.program, ptowsp_output_to_buffer(&out));
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

// -- the order, and why -----------------------------------------------------------------------------

static void explained_as(fixture *f, ptowsp_kernel choice, const ptowsp_task_desc *task,
                         const char *expected) {
    char text[1000];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    ptowsp_kernel_explain(f->m, choice, task, ptowsp_output_to_buffer(&buffer));
    assert_string_equal(ptowsp_module_error(f->m).text, "");
    assert_string_equal(text, expected);
}

FIXTURE_TEST(choice__decisions_say_order_and_reasons) {
    ptowsp_task_desc task = {0};
    ptowsp_choice_desc desc = {.name = "c"};
    ptowsp_kernel a = kernel_make(f, "a", PTOWSP_F32, count_large, 0);
    ptowsp_kernel b = kernel_make(f, "b", PTOWSP_F32, count_large, 0);
    const ptowsp_variant variants[] = {{b, none, 0, 0},        {a, is_small(f), 0, 0},
                                       {f->large, none, 0, 0}, {f->small, is_small(f), 0, 90},
                                       {f->half, none, -1, 1}, {{0}, none, 0, 0}};
    memcpy(desc.variants, variants, sizeof variants);
    ptowsp_kernel choice = ptowsp_kernel_choice(f->m, &desc);
    // By cost: large 50, small 90; those without: a before b; half last, by priority.
    explained_as(f, choice, NULL,
                 "c: variants in the order in which they are asked\n"
                 "  large                priority 0, cost 50: taken\n"
                 "  small                priority 0, cost 90: not reached\n"
                 "  a                    priority 0, cost unknown: not reached\n"
                 "  b                    priority 0, cost unknown: not reached\n"
                 "  half                 priority -1, cost 1: not reached\n");
    task.axes[0] = ptowsp_i64(f->m, 0);
    task.views[0].tensor = f->y;
    task.scalars[0] = ptowsp_u64(f->m, 1);
    explained_as(f, choice, &task,
                 "c: variants in the order in which they are asked\n"
                 "  large                priority 0, cost 50: another data type\n"
                 "  small                priority 0, cost 90: another data type\n"
                 "  a                    priority 0, cost unknown: another data type\n"
                 "  b                    priority 0, cost unknown: another data type\n"
                 "  half                 priority -1, cost 1: taken\n");
    ptowsp_kernel scale = choice_make(f);
    task.views[0].tensor = f->x;
    task.views[0].rows = 32;
    task.views[0].row_count = ptowsp_slot(f->m, 2, PTOWSP_TYPE_I64);
    explained_as(f, scale, &task,
                 "scale: variants in the order in which they are asked\n"
                 "  half                 priority 0, cost 3: another data type\n"
                 "  small                priority 0, cost 5: taken if min(32, slot_i64[2]) <= 16\n"
                 "  large                priority 0, cost 50: taken\n");
    explained_as(f, f->small, NULL, "small: a kernel, without variants\n");
}

// Conditions read arrays, by arguments of the task or by numbers. Of a tile kernel the core is said too,
// and what it takes of each memory.
FIXTURE_TEST(choice__conditions_read_arrays) {
    ptowsp_choice_desc desc = {0};
    ptowsp_task_desc task = {0};
    ptowsp_body_desc body = {0};
    const ptowsp_expr three = ptowsp_i64(f->m, 3);
    const ptowsp_expr by_task =
        ptowsp_array_at(f->m, "limits", PTOWSP_I64, ptowsp_task_arg(f->m, 0));
    const ptowsp_expr fixed = ptowsp_array_at(f->m, "limits", PTOWSP_I64, ptowsp_i64(f->m, 1));
    // An argument that the task does not have is 0.
    const ptowsp_expr beyond =
        ptowsp_array_at(f->m, "limits", PTOWSP_I64, ptowsp_task_arg(f->m, 19));
    desc.name = "c";
    desc.variants[0].kernel = f->small;
    desc.variants[0].condition = ptowsp_gt(by_task, three);
    desc.variants[1].kernel = f->large;
    desc.variants[1].condition = ptowsp_gt(fixed, three);
    desc.variants[2].kernel = kernel_make(f, "other", PTOWSP_F32, count_large, 60);
    desc.variants[2].condition =
        ptowsp_select(ptowsp_gt(fixed, three), ptowsp_gt(beyond, three), ptowsp_bool(f->m, true));
    ptowsp_kernel choice = ptowsp_kernel_choice(f->m, &desc);
    task.axes[0] = ptowsp_i64(f->m, 2);
    task.views[0].tensor = f->x;
    task.scalars[0] = ptowsp_u64(f->m, 1);
    explained_as(f, choice, &task,
                 "c: variants in the order in which they are asked\n"
                 "  small                priority 0, cost 5: taken if limits[2] > 3\n"
                 "  large                priority 0, cost 50: taken if limits[1] > 3\n"
                 "  other                priority 0, cost 60: taken if "
                 "limits[1] > 3 ? limits[0] > 3 : true\n"
                 "  otherwise            no variant: an error\n");

    body.name = "exp";
    ptowsp_body *k = ptowsp_kernel_begin(f->m, &body);
    const ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, 8, 16);
    ptowsp_tile_store(ptowsp_tile_out(k, "y", PTOWSP_F32, 8, 16), ptowsp_tile_exp(x));
    memset(&desc, 0, sizeof desc);
    desc.name = "tiles";
    desc.variants[0].kernel = ptowsp_kernel_end(k);
    ptowsp_kernel_stats stats;
    choice = ptowsp_kernel_choice(f->m, &desc);
    assert_ok(ptowsp_kernel_measure(f->m, desc.variants[0].kernel, NULL, &stats));
    // Of one tile in UB at least, and nothing elsewhere.
    assert_true(stats.memory_bytes[PTOWSP_MEMORY_UB] >= 8 * 16 * 4);
    char expected[200];
    snprintf(expected, sizeof expected,
             "tiles: variants in the order in which they are asked\n"
             "  exp                  priority 0, cost %llu, vector, %s %u bytes: taken\n",
             (unsigned long long)stats.cycles, ptowsp_memory_name(PTOWSP_MEMORY_UB),
             (unsigned)stats.memory_bytes[PTOWSP_MEMORY_UB]);
    explained_as(f, choice, NULL, expected);

    // A choice has the rules of its variants.
    ptowsp_kernel_rule(f->m, choice, "mn mn");
    assert_non_null(strstr(ptowsp_module_error(f->m).text,
                           "rule of kernel tiles: a choice has those of its variants"));
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

// Tiles of fixed sizes, tensors of one row, whole tensors of a size that is bound, and no tensor at all.
FIXTURE_TEST(choice__sizes_decide_and_wrong_ones_are_refused) {
    ptowsp_choice_desc desc = {0};
    ptowsp_task_desc task = {0};
    const ptowsp_tensor_desc row = {"row", PTOWSP_F32, 1, {COLS}, PTOWSP_LOCATION_GLOBAL};
    const ptowsp_tensor_desc open = {
        "open", PTOWSP_F32, 2, {PTOWSP_DYNAMIC, COLS}, PTOWSP_LOCATION_GLOBAL};
    const ptowsp_tensor one = ptowsp_tensor_make(f->m, &row);
    const ptowsp_tensor any = ptowsp_tensor_make(f->m, &open);
    ptowsp_kernel_desc fixed = {.name = "fixed", .axis_count = 1, .fn = count_large, .cycles = 4};
    const ptowsp_tile_param tile = {"x", PTOWSP_INOUT, PTOWSP_F32, 16, COLS};
    const ptowsp_scalar_param scalar = {"k", PTOWSP_TYPE_U64};
    fixed.tiles[0] = tile;
    fixed.scalars[0] = scalar;
    const ptowsp_variant variants[] = {{ptowsp_kernel_make(f->m, &fixed), none, 0, 0},
                                       {f->small, is_small(f), 0, 0}};
    desc.name = "c";
    memcpy(desc.variants, variants, sizeof variants);
    ptowsp_kernel choice = ptowsp_kernel_choice(f->m, &desc);
    task.axes[0] = ptowsp_i64(f->m, 0);
    task.scalars[0] = ptowsp_u64(f->m, 1);

    task.views[0].tensor = f->x;
    task.views[0].rows = 15;  // at most 16: the condition holds
    explained_as(f, choice, &task,
                 "c: variants in the order in which they are asked\n"
                 "  fixed                priority 0, cost 4: another size of tile\n"
                 "  small                priority 0, cost 5: taken\n");
    task.views[0].cols = COLS - 1;
    task.views[0].rows = 16;
    explained_as(f, choice, &task,
                 "c: variants in the order in which they are asked\n"
                 "  fixed                priority 0, cost 4: another size of tile\n"
                 "  small                priority 0, cost 5: another size of tile\n"
                 "  otherwise            no variant: an error\n");
    task.views[0].cols = 0;
    task.views[0].rows = 17;
    explained_as(f, choice, &task,
                 "c: variants in the order in which they are asked\n"
                 "  fixed                priority 0, cost 4: another size of tile\n"
                 "  small                priority 0, cost 5: its condition is false\n"
                 "  otherwise            no variant: an error\n");

    // Of one row; of as many as are bound, so not known to be few; of no tensor, which is no error here.
    const ptowsp_tensor tensors[3] = {one, any, {0}};
    static const char *const verdicts[3] = {"taken", "its condition is false",
                                            "its condition is false"};
    desc.variants[0] = desc.variants[1];
    memset(&desc.variants[1], 0, sizeof desc.variants[1]);
    desc.name = "d";
    choice = ptowsp_kernel_choice(f->m, &desc);
    task.views[0].rows = 0;
    for (int i = 0; i < 3; i++) {
        char expected[256];
        task.views[0].tensor = tensors[i];
        snprintf(expected, sizeof expected,
                 "d: variants in the order in which they are asked\n"
                 "  small                priority 0, cost 5: %s\n%s",
                 verdicts[i], i ? "  otherwise            no variant: an error\n" : "");
        explained_as(f, choice, &task, expected);
    }

    // An argument that is none makes the module fail, and then there is nothing to explain.
    char text[300];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    task.axes[0] = ptowsp_u64(f->m, 0);
    ptowsp_kernel_explain(f->m, choice, &task, ptowsp_output_to_buffer(&buffer));
    assert_string_equal(text, "d: variants in the order in which they are asked\n"
                              "  small                priority 0, cost 5: wrong\n"
                              "  otherwise            no variant: an error\n");
    assert_invalid(ptowsp_module_error(f->m).status);
    ptowsp_kernel_explain(f->m, choice, NULL, ptowsp_output_to_buffer(&buffer));
    fixture_end(f);
    fixture_begin(f);
    const ptowsp_kernel nothing[2] = {{0}, {99}};
    for (int i = 0; i < 2; i++) {
        explained_as(f, nothing[i], NULL, "");
    }
}

// -- errors -----------------------------------------------------------------------------------------

static void module_says(fixture *f, ptowsp_choice_desc *desc, const char *text) {
    ptowsp_kernel_choice(f->m, desc);
    assert_string_equal(ptowsp_module_error(f->m).text, text);
    fixture_end(f);
    fixture_begin(f);
    memset(desc, 0, sizeof *desc);
    desc->name = "c";
}

// Equal in priority and cost, and both hold: the name decides, in whatever order they are declared.
TEST(choice__names_decide_between_equal_scores) {
    for (int i = 0; i < 2; i++) {
        fixture f;
        fixture_begin(&f);
        ptowsp_choice_desc desc = {.name = "c"};
        ptowsp_kernel a = kernel_make(&f, "a", PTOWSP_F32, count_large, 0);
        ptowsp_kernel b = kernel_make(&f, "b", PTOWSP_F32, count_large, 0);
        const ptowsp_variant variants[] = {{i ? b : a, none, 3, 7}, {i ? a : b, none, 3, 7}};
        memcpy(desc.variants, variants, sizeof variants);
        explained_as(&f, ptowsp_kernel_choice(f.m, &desc), NULL,
                     "c: variants in the order in which they are asked\n"
                     "  a                    priority 3, cost 7: taken\n"
                     "  b                    priority 3, cost 7: not reached\n");
        fixture_end(&f);
    }
}

FIXTURE_TEST(choice__wrong_declarations_are_refused) {
    ptowsp_choice_desc desc = {.name = "c"};
    module_says(f, &desc, "choices: choice c: it has no variants");
    desc.name = "small";
    desc.variants[0].kernel = f->large;
    module_says(f, &desc, "choices: kernel small: there is a kernel of this name already");
    desc.variants[0].kernel.id = 99;
    module_says(f, &desc, "choices: choice c: variant 0 is no kernel of this module");
    desc.variants[0].kernel = choice_make(f);
    module_says(f, &desc, "choices: choice c: variant 0 is itself a choice");
    desc.variants[0].kernel = desc.variants[1].kernel = f->large;
    module_says(f, &desc, "choices: choice c: large is there twice");
    desc.variants[0].kernel = f->large;
    desc.variants[0].condition = ptowsp_i64(f->m, 1);
    module_says(f, &desc,
                "choices: choice c: the condition of large is not bool, or of another module");
    ptowsp_kernel_desc other = {.name = "other", .cycles = 1};
    desc.variants[0].kernel = f->large;
    desc.variants[1].kernel = ptowsp_kernel_make(f->m, &other);
    module_says(f, &desc, "choices: choice c: other takes other arguments than large");
    ptowsp_kernel_choice(f->m, NULL);
    assert_string_equal(ptowsp_module_error(f->m).text, "choices: choice: desc is NULL");
}

FIXTURE_TEST(choice__wrong_tasks_are_refused) {
    static const char *const texts[2] = {
        "main: choice c: no variant fits this task (ptowsp_kernel_explain says more)",
        "main: choice c: no variant is left where the conditions of all are false "
        "(ptowsp_kernel_explain says more)"};
    for (int is_open = 0; is_open < 2; is_open++) {
        const ptowsp_choice_desc desc = {
            .name = "c", .variants = {{.kernel = f->small, .condition = is_small(f)}}};
        ptowsp_kernel choice = ptowsp_kernel_choice(f->m, &desc);
        PTOWSP_WORKLOAD(f->m, "main") {
            task_make(f, choice, f->x, 17, is_open ? ptowsp_slot(f->m, 0, PTOWSP_TYPE_I64) : none,
                      first);
        }
        assert_string_equal(ptowsp_module_error(f->m).text, texts[is_open]);
        fixture_end(f);
        fixture_begin(f);
    }
}

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
