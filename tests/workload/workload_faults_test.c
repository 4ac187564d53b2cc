// Everything that building and compiling a workload refuses: status, index, and the exact text, as
// the user reads it.

#include "test.h"

typedef struct fixture {
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_axis heads, batch, kv, pages;  // dense 8, dynamic, ragged, sparse
    ptowsp_tensor x, q, d, w;             // i32 [4, 4], f32 [2, 3, 4, 4], i32 [?, ?, 4, ?], f16 [8]
    ptowsp_kernel work, copy, pick, any;  // (axis), (in, out 2 x 2 i32), (scalar bool), (in ? x ?)
} fixture;

static ptowsp_cycles one_cycle(const ptowsp_task *task, void *user) {
    (void)task;
    (void)user;
    return 1;
}

static ptowsp_tensor tensor_make(const fixture *f, const char *name, ptowsp_dtype dtype,
                                 uint32_t rank, int64_t a, int64_t b, int64_t c, int64_t d) {
    const ptowsp_tensor_desc desc = {
        name, dtype, rank, {a, b, c, d, 0, 0, 0, 0}, PTOWSP_LOCATION_GLOBAL};
    return ptowsp_tensor_make(f->m, &desc);
}

static ptowsp_kernel_desc kernel_desc(const char *name) {
    ptowsp_kernel_desc desc = {.name = name, .fn = one_cycle};
    return desc;
}

static void fixture_make_kernels(fixture *f) {
    const ptowsp_tile_param in = {"from", PTOWSP_IN, PTOWSP_I32, 2, 2};
    const ptowsp_tile_param out = {"to", PTOWSP_OUT, PTOWSP_I32, 2, 2};
    const ptowsp_tile_param open = {"from", PTOWSP_IN, PTOWSP_I32, PTOWSP_DYNAMIC, PTOWSP_DYNAMIC};
    const ptowsp_scalar_param flag = {"flag", PTOWSP_TYPE_BOOL};
    ptowsp_kernel_desc desc = kernel_desc("work");
    desc.axis_count = 1;
    f->work = ptowsp_kernel_make(f->m, &desc);
    desc = kernel_desc("copy");
    desc.tiles[0] = in;
    desc.tiles[1] = out;
    f->copy = ptowsp_kernel_make(f->m, &desc);
    desc = kernel_desc("pick");
    desc.scalars[0] = flag;
    f->pick = ptowsp_kernel_make(f->m, &desc);
    desc = kernel_desc("any");
    desc.tiles[0] = open;
    f->any = ptowsp_kernel_make(f->m, &desc);
}

static void fixture_make_module(fixture *f) {
    const ptowsp_module_desc desc = {"decode", 4};
    assert_int_equal(ptowsp_module_create(f->context, &desc, &f->m), PTOWSP_OK);
    f->heads = ptowsp_axis_dense(f->m, "heads", 8);
    f->batch = ptowsp_axis_dynamic(f->m, "batch");
    f->kv = ptowsp_axis_ragged(f->m, "kv");
    f->pages = ptowsp_axis_sparse(f->m, "pages");
    f->x = tensor_make(f, "x", PTOWSP_I32, 2, 4, 4, 0, 0);
    f->q = tensor_make(f, "q", PTOWSP_F32, 4, 2, 3, 4, 4);
    f->d = tensor_make(f, "d", PTOWSP_I32, 4, PTOWSP_DYNAMIC, PTOWSP_DYNAMIC, 4, PTOWSP_DYNAMIC);
    f->w = tensor_make(f, "w", PTOWSP_F16, 1, 8, 0, 0, 0);
    fixture_make_kernels(f);
    assert_string_equal(ptowsp_module_error(f->m).text, "");
}

static void fixture_make(fixture *f) {
    assert_int_equal(ptowsp_context_create(NULL, &f->context), PTOWSP_OK);
    fixture_make_module(f);
}

static void fixture_free(fixture *f) {
    ptowsp_module_destroy(f->m);
    ptowsp_context_destroy(f->context);
}

// Asserts that the module has failed like this, that it stays so and cannot be compiled; and begins
// a new one.
static void refused_as(fixture *f, ptowsp_status status, uint64_t index, const char *text) {
    ptowsp_program *program;
    ptowsp_error error = ptowsp_module_error(f->m);
    assert_string_equal(error.text, text);
    assert_int_equal(error.status, status);
    assert_true(error.index == index);
    ptowsp_axis_dense(f->m, "", -1);  // not the first error
    assert_string_equal(ptowsp_module_error(f->m).text, text);
    assert_int_equal(ptowsp_program_create(f->context, f->m, NULL, &program), status);
    assert_null(program);
    test_error_is(f->context, status, index, text);
    ptowsp_module_destroy(f->m);
    fixture_make_module(f);
}

static void refused(fixture *f, const char *text) {
    refused_as(f, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, text);
}

static ptowsp_expr number(const fixture *f, int64_t value) {
    return ptowsp_i64(f->m, value);
}

static ptowsp_expr no_expr(void) {
    const ptowsp_expr none = {NULL, 0};
    return none;
}

static ptowsp_node work(const fixture *f, ptowsp_expr axis) {
    ptowsp_task_desc desc = {.kernel = f->work, .axes[0] = axis};
    return ptowsp_task_make(f->m, &desc);
}

// -- declarations ---------------------------------------------------------------------------------

#define FIXTURE_TEST(name) TEST_MADE(name, fixture, f, fixture_make(f), fixture_free(f))

FIXTURE_TEST(workload_faults__wrong_axes_are_refused) {
    const ptowsp_axis none = {0}, unknown = {99};
    ptowsp_axis_dense(f->m, "h", -1);
    refused(f, "decode: axis h: its size is -1");
    ptowsp_axis_dense(f->m, "heads", 2);
    refused(f, "decode: axis heads: the name is already that of an axis");
    ptowsp_axis_dynamic(f->m, "heads");
    refused(f, "decode: axis heads: the name is already that of an axis");
    ptowsp_axis_ragged(f->m, "kv");
    refused(f, "decode: axis kv: the name is already that of an axis");
    ptowsp_axis_sparse(f->m, "x");
    refused(f, "decode: axis x: the name is already that of a tensor");
    ptowsp_symbol(f->m, "kv");
    refused(f, "decode: symbol kv: the name is already that of an axis");
    ptowsp_symbol(f->m, "scale");
    ptowsp_array_at(f->m, "scale", PTOWSP_I32, number(f, 0));
    refused(f, "decode: array scale: the name is already that of a symbol");
    ptowsp_array_at(f->m, "list", PTOWSP_I32, number(f, 0));
    tensor_make(f, "list", PTOWSP_I32, 0, 0, 0, 0, 0);
    refused(f, "decode: tensor list: the name is already that of an array");
    ptowsp_axis_row(f->m, none, number(f, 0));
    refused(f, "decode: axis_row: there is no axis 0");
    ptowsp_axis_row(f->m, unknown, number(f, 0));
    refused(f, "decode: axis_row: there is no axis 99");
    ptowsp_axis_row(f->m, f->heads, number(f, 0));
    refused(f,
            "decode: axis heads: only ragged and sparse axes, units and merges of plans have rows");
    ptowsp_axis_row(f->m, ptowsp_axis_row(f->m, f->kv, number(f, 0)), number(f, 0));
    refused(f, "decode: axis kv: only ragged and sparse axes, units and merges of plans have "
               "rows, and this is one already");
    ptowsp_axis_row(f->m, f->kv, ptowsp_u64(f->m, 0));
    refused(f, "decode: the row of an axis is u64, not i64");
    ptowsp_axis_row(f->m, f->kv, no_expr());
    refused(f, "decode: the row of an axis is no expression");
}

FIXTURE_TEST(workload_faults__wrong_tensors_are_refused) {
    ptowsp_tensor_make(f->m, NULL);
    refused(f, "decode: tensor: desc is NULL");
    tensor_make(f, "t", PTOWSP_DTYPE_NONE, 0, 0, 0, 0, 0);
    refused(f, "decode: tensor t: 0 is no data type");
    tensor_make(f, "t", (ptowsp_dtype)14, 0, 0, 0, 0, 0);
    refused(f, "decode: tensor t: 14 is no data type");
    tensor_make(f, "t", PTOWSP_F32, 9, 0, 0, 0, 0);
    refused(f, "decode: tensor t: rank 9 is more than 8");
    tensor_make(f, "t", PTOWSP_F32, 3, 4, PTOWSP_DYNAMIC, -2, 0);
    refused_as(f, PTOWSP_INVALID_PARAMS, 2, "decode: tensor t: size -2 of dimension 2");
    const ptowsp_tensor_desc desc = {"t", PTOWSP_F32, 0, {0}, (ptowsp_location)4};
    ptowsp_tensor_make(f->m, &desc);
    refused(f, "decode: tensor t: 4 is no location");
    tensor_make(f, "x", PTOWSP_F32, 0, 0, 0, 0, 0);
    refused(f, "decode: tensor x: the name is already that of a tensor");
}

FIXTURE_TEST(workload_faults__wrong_kernels_are_refused) {
    ptowsp_kernel_make(f->m, NULL);
    refused(f, "decode: kernel: desc is NULL");
    ptowsp_kernel_desc desc = kernel_desc("k");
    desc.fn = NULL;
    ptowsp_kernel_make(f->m, &desc);
    refused(f, "decode: kernel k: it has neither fn nor cost nor cycles");
    desc.cycles = PTOWSP_CYCLES_MAX + 1;
    ptowsp_kernel_make(f->m, &desc);
    refused(f, "decode: kernel k: 9223372036854775808 cycles are more than 2^63 - 1");
    desc = kernel_desc("k");
    desc.axis_count = 9;
    ptowsp_kernel_make(f->m, &desc);
    refused(f, "decode: kernel k: 9 axis arguments are more than 8");
    desc = kernel_desc("k");
    desc.unit = PTOWSP_UNIT_COUNT;
    ptowsp_kernel_make(f->m, &desc);
    refused(f, "decode: kernel k: 3 is no execution unit");
    desc = kernel_desc("k");
    ptowsp_tile_param tile = {"t", PTOWSP_DIRECTION_NONE, PTOWSP_F32, 1, 1};
    desc.tiles[0] = tile;
    ptowsp_kernel_make(f->m, &desc);
    refused(f, "decode: kernel k: tile t has no direction (in, out or inout)");
    desc.tiles[0].direction = PTOWSP_OUT;
    desc.tiles[0].dtype = PTOWSP_DTYPE_NONE;
    ptowsp_kernel_make(f->m, &desc);
    refused(f, "decode: kernel k: tile t has no data type");
    desc.tiles[0].dtype = PTOWSP_F32;
    desc.tiles[0].rows = 0;
    ptowsp_kernel_make(f->m, &desc);
    refused(f, "decode: kernel k: tile t is 0 x 1");
    desc.tiles[0].rows = (int64_t)INT32_MAX + 1;
    ptowsp_kernel_make(f->m, &desc);
    refused(f, "decode: kernel k: tile t is 2147483648 x 1");
    desc.tiles[0].rows = 1;
    const ptowsp_scalar_param scalar = {"t", PTOWSP_TYPE_NONE};
    desc.scalars[0] = scalar;
    ptowsp_kernel_make(f->m, &desc);
    refused(f, "decode: kernel k: two parameters are called t");
    desc.scalars[0].name = "s";
    ptowsp_kernel_make(f->m, &desc);
    refused(f, "decode: kernel k: scalar s has no type");
    desc = kernel_desc("work");
    ptowsp_kernel_make(f->m, &desc);
    refused(f, "decode: kernel work: there is a kernel of this name already");
}

// -- statements -----------------------------------------------------------------------------------

FIXTURE_TEST(workload_faults__wrong_scopes_are_refused) {
    const ptowsp_axis none = {0};
    ptowsp_combine_begin(f->m);
    refused(f, "decode: a statement outside any workload");
    work(f, number(f, 0));
    refused(f, "decode: a statement outside any workload");
    ptowsp_scope_end(f->m);
    refused(f, "decode: scope_end without an open scope");
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_WORKLOAD(f->m, "inner") {
        }
    }
    refused(f, "main: workload inner begins inside another; close that one first");
    PTOWSP_WORKLOAD(f->m, "main") {
    }
    PTOWSP_WORKLOAD(f->m, "main") {
    }
    refused(f, "decode: workload main: there is a workload of this name already");
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PARALLEL(f->m, b, f->batch) {
            PTOWSP_FOR_EACH(f->m, i, none) {
                (void)i;
            }
        }
    }
    refused(f, "main/parallel b: loop i: there is no axis 0");
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_SELECT(f->m, i, f->heads) {
        }
    }
    refused(f, "main: select i: axis heads is not sparse");
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_parallel_begin(f->m, "b", f->batch);
        ptowsp_combine_begin(f->m);
        ptowsp_for_each_begin(f->m, "b", f->heads);
    }
    refused(f, "main/parallel b/combine: loop b: a scope around has a variable of this name");
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_workload_param(f->m, "n", PTOWSP_TYPE_U64);
        ptowsp_for_each_begin(f->m, "n", f->heads);
    }
    refused(f, "main: loop n: a scope around has a variable of this name");
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PARALLEL(f->m, b, f->batch) {
            PTOWSP_WHEN(f->m, b) {
            }
        }
    }
    refused(f, "main/parallel b: the condition of a when is i64, not bool");
    ptowsp_when_begin(f->m, ptowsp_bool(f->m, true));
    refused(f, "decode: a statement outside any workload");
}

FIXTURE_TEST(workload_faults__wrong_otherwise_are_refused) {
    PTOWSP_OTHERWISE(f->m) {
    }
    refused(f, "decode: an otherwise that does not follow a when");
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_OTHERWISE(f->m) {
        }
    }
    refused(f, "main: an otherwise that does not follow a when");
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_WHEN(f->m, ptowsp_bool(f->m, true)) {
        }
        work(f, number(f, 0));
        PTOWSP_OTHERWISE(f->m) {
        }
    }
    refused(f, "main: an otherwise that does not follow a when");
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_WHEN(f->m, ptowsp_bool(f->m, true)) {
        }
        PTOWSP_OTHERWISE(f->m) {
        }
        PTOWSP_OTHERWISE(f->m) {
        }
    }
    refused(f, "main: an otherwise that does not follow a when");
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_WHEN(f->m, ptowsp_bool(f->m, true)) {
            PTOWSP_OTHERWISE(f->m) {
            }
        }
    }
    refused(f, "main/when: an otherwise that does not follow a when");
}

FIXTURE_TEST(workload_faults__variables_outside_of_their_loop_are_refused) {
    ptowsp_expr loop = no_expr(), param = no_expr();
    ptowsp_axis row = {0};
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PARALLEL(f->m, b, f->batch) {
            loop = ptowsp_add(b, number(f, 1));
        }
        work(f, loop);
    }
    refused(f, "main/task work: axis argument 0: variable b belongs to a scope that is not around");
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PARALLEL(f->m, b, f->batch) {
            row = ptowsp_axis_row(f->m, f->kv, b);
        }
        PTOWSP_PARALLEL(f->m, k, row) {
        }
    }
    refused(f, "main: the row of an axis: variable b belongs to a scope that is not around");
    PTOWSP_WORKLOAD(f->m, "callee") {
        param = ptowsp_workload_param(f->m, "n", PTOWSP_TYPE_I64);
    }
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_slot_set_make(f->m, 0, ptowsp_array_at(f->m, "list", PTOWSP_I8, param));
    }
    refused(f, "main: the value of a slot: variable n belongs to a scope that is not around");
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_WHEN(f->m, ptowsp_lt(ptowsp_task_arg(f->m, 0), number(f, 1))) {
        }
    }
    refused(f, "main: the condition of a when: what belongs to a task has a value in the keys of "
               "schedules only");
}

FIXTURE_TEST(workload_faults__too_many_and_too_deep_are_refused) {
    char text[600];
    ptowsp_workload_begin(f->m, "main");
    for (int i = 1; i < PTOWSP_MODULE_NEST_MAX; i++) {
        ptowsp_combine_begin(f->m);
    }
    assert_int_equal(ptowsp_module_error(f->m).status, PTOWSP_OK);
    ptowsp_combine_begin(f->m);
    // of a long place the first and the last steps
    snprintf(text, sizeof text, "main/...");
    for (int i = 0; i < 160 / 8; i++) {
        strcat(text, "/combine");
    }
    strcat(text, ": more than 64 scopes in one another");
    refused_as(f, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX, text);
    ptowsp_expr zero = number(f, 0);
    ptowsp_workload_begin(f->m, "main");
    for (int i = 1; i < PTOWSP_MODULE_NODE_MAX; i++) {
        ptowsp_slot_set_make(f->m, 0, zero);
    }
    assert_int_equal(ptowsp_module_error(f->m).status, PTOWSP_OK);
    ptowsp_slot_set_make(f->m, 0, zero);
    refused_as(f, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX, "main: more than 1000000 nodes");
}

// -- tasks ----------------------------------------------------------------------------------------

// A task of a kernel that has at most two views, in a workload of its own.
static void task(const fixture *f, ptowsp_kernel kernel, ptowsp_view first, ptowsp_view second) {
    ptowsp_task_desc desc = {.kernel = kernel, .views[0] = first, .views[1] = second};
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_task_make(f->m, &desc);
    }
}

static ptowsp_view view_of(ptowsp_tensor tensor) {
    ptowsp_view view = {.tensor = tensor};
    return view;
}

FIXTURE_TEST(workload_faults__wrong_arguments_of_tasks_are_refused) {
    ptowsp_task_make(f->m, NULL);
    refused(f, "decode: task: desc is NULL");
    ptowsp_task_desc desc = {0};
    ptowsp_task_make(f->m, &desc);
    refused_as(f, PTOWSP_INVALID_PARAMS, 0, "decode: task: there is no kernel 0");
    desc.kernel.id = 77;
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_task_make(f->m, &desc);
    }
    refused_as(f, PTOWSP_INVALID_PARAMS, 77, "main: task: there is no kernel 77");
    desc.kernel = f->work;
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_task_make(f->m, &desc);
    }
    refused(f, "main/task work: 0 axis arguments; the kernel takes 1");
    desc.axes[0] = desc.axes[1] = number(f, 0);
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_task_make(f->m, &desc);
    }
    refused(f, "main/task work: 2 axis arguments; the kernel takes 1");
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PARALLEL(f->m, b, f->batch) {
            work(f, ptowsp_eq(b, b));
        }
    }
    refused(f, "main/parallel b/task work: axis argument 0 is bool, not i64");
    memset(&desc, 0, sizeof desc);
    desc.kernel = f->pick;
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_task_make(f->m, &desc);
    }
    refused(f, "main/task pick: 0 scalar arguments; the kernel takes 1");
    desc.scalars[0] = number(f, 1);
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_task_make(f->m, &desc);
    }
    refused(f, "main/task pick: scalar argument 0 is i64, not bool");
    fixture other;
    fixture_make(&other);
    PTOWSP_WORKLOAD(f->m, "main") {
        work(f, number(&other, 1));
    }
    refused(f, "main/task work: axis argument 0 is no expression of this module");
    fixture_free(&other);
}

FIXTURE_TEST(workload_faults__wrong_views_of_tasks_are_refused) {
    const ptowsp_tensor none = {0}, unknown = {42};
    ptowsp_view x = view_of(f->x), bad = x;
    task(f, f->copy, x, view_of(none));
    refused(f, "main/task copy: 1 views; the kernel takes 2");
    task(f, f->copy, x, view_of(unknown));
    refused(f, "main/task copy: a view of tensor 42, which there is not");
    task(f, f->copy, x, view_of(f->w));
    refused(f, "main/task copy: parameter to is i32, tensor w is f16");
    task(f, f->copy, x, view_of(f->q));
    refused(f, "main/task copy: a view of tensor q has 0 indices; its rank 4 takes 2");
    bad.index[0] = number(f, 0);
    task(f, f->copy, bad, x);
    refused(f, "main/task copy: a view of tensor x has 1 indices; its rank 2 takes 0");
    bad = view_of(f->d);
    bad.index[0] = number(f, 5);
    bad.index[1] = ptowsp_u64(f->m, 0);
    task(f, f->copy, bad, x);
    refused(f, "main/task copy: an index of a view is u64, not i64");
    bad.index[0] = bad.index[1] = number(f, -1);
    task(f, f->copy, bad, x);
    refused_as(f, PTOWSP_INVALID_PARAMS, PTOWSP_NEGATIVE_INDEX,
               "main/task copy: index 0 of tensor d is -1");
    bad = view_of(f->q);
    bad.index[0] = number(f, 1);
    bad.index[1] = number(f, 3);
    task(f, f->copy, bad, x);
    refused_as(f, PTOWSP_INVALID_PARAMS, 3,
               "main/task copy: index 1 of tensor q is 3, outside of its size 3");
    bad = x;
    bad.row = number(f, 4);
    task(f, f->copy, bad, x);
    refused_as(f, PTOWSP_INVALID_PARAMS, 4,
               "main/task copy: the row of tensor x is 4, outside of its size 4");
    bad = x;
    bad.col = number(f, -2);
    task(f, f->copy, x, bad);
    refused_as(f, PTOWSP_INVALID_PARAMS, PTOWSP_NEGATIVE_INDEX,
               "main/task copy: the column of tensor x is -2");
    bad = x;
    bad.row = ptowsp_bool(f->m, true);
    task(f, f->copy, bad, x);
    refused(f, "main/task copy: the row is bool, not i64");
    bad = x;
    bad.rows = 3;
    task(f, f->copy, bad, x);
    refused(f, "main/task copy: a view of tensor x has 3 rows; the parameter has 2");
    bad.rows = -1;
    task(f, f->any, bad, view_of(none));
    refused(f, "main/task any: a view of tensor x has -1 rows, not 1 to 2^31 - 1");
    bad.rows = 2;
    bad.cols = INT64_C(1) << 31;
    task(f, f->any, bad, view_of(none));
    refused(f, "main/task any: a view of tensor x has 2147483648 columns, not 1 to 2^31 - 1");
}

FIXTURE_TEST(workload_faults__wrong_tags_and_after_are_refused) {
    ptowsp_task_desc desc;
    ptowsp_task_desc plain = {.kernel = f->work, .axes[0] = number(f, 1)};
    desc = plain;
    desc.tags[0].name = desc.tags[1].name = "level";
    desc.tags[0].value = desc.tags[1].value = ptowsp_symbol(f->m, "s");
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_task_make(f->m, &desc);
    }
    refused(f, "main/task work: two tags are called level");
    desc.axes[0] = plain.axes[0] = number(f, 1);
    desc.tags[0].value = number(f, 1);
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_task_make(f->m, &desc);
    }
    refused(f, "main/task work: the value of a tag is i64, not u64");
    desc = plain;
    desc.axes[0] = number(f, 1);
    desc.after[0].id = 1;  // the workload
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_task_make(f->m, &desc);
    }
    refused_as(f, PTOWSP_INVALID_PARAMS, 1,
               "main/task work: after node 1, which is no task or pipeline of this workload");
    desc.axes[0] = number(f, 1);
    desc.after[0].id = 2;  // itself, or later
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_task_make(f->m, &desc);
    }
    refused_as(f, PTOWSP_INVALID_PARAMS, 2,
               "main/task work: after node 2, which is no task or pipeline of this workload");
    PTOWSP_WORKLOAD(f->m, "other") {
        desc.after[0] = work(f, number(f, 0));
    }
    desc.axes[0] = number(f, 1);
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_task_make(f->m, &desc);
    }
    refused_as(f, PTOWSP_INVALID_PARAMS, 2,
               "main/task work: after node 2, which is no task or pipeline of this workload");
}

// -- parameters, calls, slots ---------------------------------------------------------------------

FIXTURE_TEST(workload_faults__parameters_and_calls) {
    ptowsp_expr args[PTOWSP_CALL_ARG_MAX + 1];
    ptowsp_workload_param(f->m, "n", PTOWSP_TYPE_I64);
    refused(f, "decode: parameter n: parameters come first in a workload");
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_slot_set_make(f->m, 0, number(f, 1));
        ptowsp_workload_param(f->m, "n", PTOWSP_TYPE_I64);
    }
    refused(f, "main: parameter n: parameters come first in a workload");
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_workload_param(f->m, "n", PTOWSP_TYPE_NONE);
    }
    refused(f, "main: parameter n: 0 is no type");
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_workload_param(f->m, "n", PTOWSP_TYPE_U64);
        ptowsp_workload_param(f->m, "n", PTOWSP_TYPE_I64);
    }
    refused(f, "main: parameter n: there is one of this name already");
    for (int i = 0; i <= PTOWSP_CALL_ARG_MAX; i++) {
        args[i] = number(f, i);
    }
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_call_make(f->m, "callee", args, PTOWSP_CALL_ARG_MAX + 1);
    }
    refused(f, "main: call callee: 17 arguments, which are too many");
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_call_make(f->m, "callee", NULL, 2);
    }
    refused(f, "main: call callee: 2 arguments, which are NULL");
    args[0] = no_expr();
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_call_make(f->m, "callee", args, 1);
    }
    refused(f, "main: an argument of a call is no expression");
    ptowsp_call_make(f->m, "callee", NULL, 0);
    refused(f, "decode: a statement outside any workload");
}

FIXTURE_TEST(workload_faults__wrong_slots_are_refused) {
    ptowsp_view x = view_of(f->x), bad = x;
    ptowsp_slot_set_make(f->m, 4, number(f, 1));
    refused_as(f, PTOWSP_INVALID_PARAMS, 4, "decode: slot_set: slot 4, but there are 4");
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_slot_load_make(f->m, 9, &x, no_expr(), no_expr());
    }
    refused_as(f, PTOWSP_INVALID_PARAMS, 9, "main: slot_load: slot 9, but there are 4");
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_slot_set_make(f->m, 0, no_expr());
    }
    refused(f, "main: the value of a slot is no expression");
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_slot_load_make(f->m, 0, NULL, no_expr(), no_expr());
    }
    refused(f, "main: slot_load: view is NULL");
    bad.tensor.id = 0;
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_slot_load_make(f->m, 0, &bad, no_expr(), no_expr());
    }
    refused(f, "main: a view of tensor 0, which there is not");
    bad = view_of(f->w);
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_slot_load_make(f->m, 0, &bad, no_expr(), no_expr());
    }
    refused(f, "main: slot_load: tensor w is f16; slots are loaded from integers and bool");
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_slot_load_make(f->m, 0, &x, no_expr(), ptowsp_u64(f->m, 0));
    }
    refused(f, "main: the column of a slot load is u64, not i64");
    bad = x;
    bad.row = number(f, 7);
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_slot_load_make(f->m, 0, &bad, no_expr(), no_expr());
    }
    refused_as(f, PTOWSP_INVALID_PARAMS, 7,
               "main: the row of tensor x is 7, outside of its size 4");
}

// -- compiling ------------------------------------------------------------------------------------

// Asserts that compiling fails like this, and the module has no error of its own then.
static void not_compiled_as(const fixture *f, const ptowsp_program_desc *desc, ptowsp_status status,
                            const char *text) {
    ptowsp_program *program;
    assert_int_equal(ptowsp_program_create(f->context, f->m, desc, &program), status);
    assert_null(program);
    test_error_is(f->context, status, PTOWSP_NO_INDEX, text);
    assert_int_equal(ptowsp_module_error(f->m).status, PTOWSP_OK);
    assert_string_equal(ptowsp_module_error(f->m).text, "");
}

static void not_compiled(fixture *f, const char *workload, const char *text) {
    const ptowsp_program_desc desc = {workload, NULL};
    not_compiled_as(f, &desc, PTOWSP_INVALID_PARAMS, text);
}

static void compiled(const fixture *f, const ptowsp_program_desc *desc) {
    ptowsp_program *program;
    if (ptowsp_program_create(f->context, f->m, desc, &program) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(f->context).text);
    }
    ptowsp_program_destroy(program);
}

FIXTURE_TEST(workload_faults__where_to_begin) {
    ptowsp_program *program;
    assert_int_equal(ptowsp_program_create(f->context, NULL, NULL, &program),
                     PTOWSP_INVALID_PARAMS);
    test_error_is(f->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                  "program: module or out_program is NULL");
    assert_int_equal(ptowsp_program_create(f->context, f->m, NULL, NULL), PTOWSP_INVALID_PARAMS);
    not_compiled(f, NULL, "decode: there is no workload to begin with");
    not_compiled(f, "prefill", "decode: there is no workload prefill to begin with");
    PTOWSP_WORKLOAD(f->m, "callee") {
        ptowsp_workload_param(f->m, "n", PTOWSP_TYPE_I64);
    }
    not_compiled(f, NULL, "callee: a program cannot begin with a workload that has parameters");
    not_compiled(f, "main", "decode: there is no workload main to begin with");
    PTOWSP_WORKLOAD(f->m, "main") {
        work(f, number(f, 1));
    }
    not_compiled(f, "callee", "callee: a program cannot begin with a workload that has parameters");
    not_compiled(f, "ma\nin", "decode: there is no workload to begin with");
    compiled(f, NULL);  // a failed compile leaves the module as it was
    const ptowsp_program_desc desc = {"main", NULL};
    compiled(f, &desc);
}

FIXTURE_TEST(workload_faults__scopes_that_were_left) {
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PARALLEL(f->m, b, f->batch) {
            work(f, b);
            break;
        }
    }
    // The macro of the workload has closed the innermost scope, which was the loop.
    not_compiled(f, NULL, "main: this scope is still open; was it left by break or return?");
    ptowsp_scope_end(f->m);
    compiled(f, NULL);
    ptowsp_workload_begin(f->m, "second");
    ptowsp_sequence_begin(f->m);
    ptowsp_when_begin(f->m, ptowsp_eq(ptowsp_slot(f->m, 0, PTOWSP_TYPE_I64), number(f, 0)));
    not_compiled(f, "main",
                 "second/sequence/when: this scope is still open; was it left by break or return?");
}

FIXTURE_TEST(workload_faults__calls) {
    ptowsp_expr args[2] = {number(f, 1), ptowsp_u64(f->m, 2)};
    PTOWSP_WORKLOAD(f->m, "pair") {
        ptowsp_workload_param(f->m, "i", PTOWSP_TYPE_I64);
        ptowsp_workload_param(f->m, "flag", PTOWSP_TYPE_BOOL);
    }
    PTOWSP_WORKLOAD(f->m, "one") {
        PTOWSP_COMBINE(f->m) {
            ptowsp_call_make(f->m, "nobody", NULL, 0);
        }
    }
    not_compiled(f, "one", "one/combine/call nobody: there is no such workload");
    PTOWSP_WORKLOAD(f->m, "two") {
        ptowsp_call_make(f->m, "pair", args, 1);
    }
    not_compiled(f, "two", "two/call pair: 1 arguments; the workload takes 2");
    PTOWSP_WORKLOAD(f->m, "three") {
        ptowsp_call_make(f->m, "pair", args, 2);
    }
    not_compiled(f, "three", "three/call pair: argument 1 is u64; parameter flag is bool");
    PTOWSP_WORKLOAD(f->m, "self") {
        PTOWSP_WHEN(f->m, ptowsp_slot(f->m, 0, PTOWSP_TYPE_BOOL)) {
            ptowsp_call_make(f->m, "self", NULL, 0);
        }
    }
    not_compiled(f, "self", "self/when/call self: workloads may not call themselves: self -> self");
    PTOWSP_WORKLOAD(f->m, "a") {
        ptowsp_call_make(f->m, "b", NULL, 0);
    }
    PTOWSP_WORKLOAD(f->m, "b") {
        ptowsp_call_make(f->m, "c", NULL, 0);
    }
    PTOWSP_WORKLOAD(f->m, "c") {
        ptowsp_call_make(f->m, "b", NULL, 0);
    }
    not_compiled(f, "a", "c/call b: workloads may not call themselves: b -> c -> b");
    PTOWSP_WORKLOAD(f->m, "good") {
        work(f, number(f, 1));
    }
    compiled(f, NULL);  // what is not reached may be wrong
}

FIXTURE_TEST(workload_faults__calls_in_one_another) {
    for (int i = 0; i < 66; i++) {  // w0 does a task, each other one calls the one before
        char name[8], callee[8];
        snprintf(name, sizeof name, "w%d", i);
        snprintf(callee, sizeof callee, "w%d", i - 1);
        PTOWSP_WORKLOAD(f->m, name) {
            if (i == 0) {
                work(f, number(f, 1));
            } else {
                ptowsp_call_make(f->m, callee, NULL, 0);
            }
        }
    }
    const ptowsp_program_desc deepest = {"w64", NULL}, deeper = {"w65", NULL};
    compiled(f, &deepest);
    not_compiled_as(f, &deeper, PTOWSP_LIMIT_EXCEEDED,
                    "w1/call w0: more than 64 calls in one another");
}

FIXTURE_TEST(workload_faults__keys_without_their_variable_are_refused) {
    ptowsp_expr b = no_expr();
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PARALLEL(f->m, i, f->batch) {
            b = i;
            work(f, i);
        }
        work(f, number(f, 1));
    }
    ptowsp_schedule schedule = {0};
    const ptowsp_program_desc desc = {"main", &schedule};
    schedule.dispatch = PTOWSP_DISPATCH_AFFINITY;
    schedule.lane_count = 2;
    schedule.dispatch_key = ptowsp_task_variable(f->m, "i");
    not_compiled_as(f, &desc, PTOWSP_INVALID_PARAMS,
                    "main/task work: a key of the schedule reads variable i, which no loop around "
                    "it has");
    schedule.dispatch_key = b;
    not_compiled_as(f, &desc, PTOWSP_INVALID_PARAMS,
                    "main/task work: a key of the schedule reads variable i, whose loop is not "
                    "around it");
    schedule.dispatch_key = ptowsp_task_arg(f->m, 0);
    compiled(f, &desc);
}

// -- schedules ------------------------------------------------------------------------------------

static void schedule_refused(const fixture *f, const ptowsp_schedule *schedule,
                             ptowsp_status status, const char *text) {
    const ptowsp_program_desc desc = {"main", schedule};
    assert_int_equal(ptowsp_schedule_check(f->m, schedule, PTOWSP_TARGET_CPU_SIM), status);
    test_error_is(f->context, status, PTOWSP_NO_INDEX, text);
    not_compiled_as(f, &desc, status, text);
}

// Changes one field of a schedule with two lanes, and expects this to be refused.
#define REFUSED(field, given, status, text)                                                        \
    do {                                                                                           \
        ptowsp_schedule changed = good;                                                            \
        changed.field = (given);                                                                   \
        schedule_refused(f, &changed, PTOWSP_##status, "schedule: " text);                         \
    } while (0)

FIXTURE_TEST(workload_faults__schedules_with_values_that_do_not_exist) {
    ptowsp_schedule good;
    PTOWSP_WORKLOAD(f->m, "main") {
        work(f, number(f, 1));
    }
    memset(&good, 0, sizeof good);
    good.lane_count = 2;
    REFUSED(issue, (ptowsp_issue)2, INVALID_PARAMS, "issue 2 does not exist");
    REFUSED(dispatch, (ptowsp_dispatch)7, INVALID_PARAMS, "dispatch 7 does not exist");
    REFUSED(pools, (ptowsp_pools)3, INVALID_PARAMS, "pools 3 does not exist");
    REFUSED(window_policy, (ptowsp_window)4, INVALID_PARAMS, "window 4 does not exist");
    REFUSED(dependencies, 16 | 1, INVALID_PARAMS, "dependencies 16 does not exist");
    REFUSED(hazards, 8, INVALID_PARAMS, "hazards 8 does not exist");
    REFUSED(ready, (ptowsp_ready)3, INVALID_PARAMS, "ready 3 does not exist");
    REFUSED(start, (ptowsp_start)3, INVALID_PARAMS, "start 3 does not exist");
    REFUSED(timing, (ptowsp_timing)4, INVALID_PARAMS, "timing 4 does not exist");
    REFUSED(lane_count, PTOWSP_SCHEDULE_LANE_MAX + 1, LIMIT_EXCEEDED,
            "65537 lanes are more than 65536");
    REFUSED(stream_count, PTOWSP_SCHEDULE_STREAM_MAX + 1, LIMIT_EXCEEDED,
            "65537 streams are more than 65536");
    REFUSED(window, UINT32_C(0x80000000), LIMIT_EXCEEDED,
            "a window of 2147483648 tasks is more than 2147483647");
    compiled(f, NULL);
}

FIXTURE_TEST(workload_faults__schedules_that_lack_or_need_not_something) {
    fixture other;
    ptowsp_schedule good;
    fixture_make(&other);
    PTOWSP_WORKLOAD(f->m, "main") {
        work(f, number(f, 1));
    }
    ptowsp_expr key = ptowsp_task_arg(f->m, 0);
    memset(&good, 0, sizeof good);
    good.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN;
    REFUSED(timing, PTOWSP_TIMING_IMMEDIATE, INVALID_PARAMS,
            "dispatch round robin: lane_count is 0");
    good.lane_count = 2;
    REFUSED(vector_lane_count, 1, INVALID_PARAMS,
            "lanes of units are given, but there is one pool");
    REFUSED(dispatch, PTOWSP_DISPATCH_HASH, INVALID_PARAMS,
            "dispatch by a key, but dispatch_key is missing");
    REFUSED(dispatch_key, key, INVALID_PARAMS, "dispatch_key is given, but dispatch takes none");
    REFUSED(window_policy, PTOWSP_WINDOW_ABORT, INVALID_PARAMS,
            "window_policy abort needs window: it is 0");
    REFUSED(ready, PTOWSP_READY_PRIORITY, INVALID_PARAMS,
            "ready by priority, but priority_key is missing");
    REFUSED(priority_key, key, INVALID_PARAMS,
            "priority_key is given, but ready is not by priority");
    REFUSED(start, PTOWSP_START_THRESHOLD, INVALID_PARAMS, "a start_threshold of 0 tasks");
    REFUSED(start_threshold, 5, INVALID_PARAMS,
            "start_threshold is given, but start is not threshold");
    REFUSED(stream_key, key, INVALID_PARAMS, "a stream_key over 0 streams");
    REFUSED(timing, PTOWSP_TIMING_BATCHED, INVALID_PARAMS, "timing batched with timing_count 0");
    REFUSED(timing_count, 3, INVALID_PARAMS, "timing_count is given, but timing is not batched");
    REFUSED(timing, PTOWSP_TIMING_RATE_LIMITED, INVALID_PARAMS, "timing_cycles is 0");
    REFUSED(timing_cycles, 3, INVALID_PARAMS, "timing_cycles is given, but timing is immediate");
    good.timing = PTOWSP_TIMING_RATE_LIMITED;
    REFUSED(timing_cycles, UINT64_C(1) << 33, LIMIT_EXCEEDED,
            "timing_cycles 8589934592 is more than 2^32");
    good.timing_cycles = 3;
    REFUSED(timing, PTOWSP_TIMING_INTERLEAVED, INVALID_PARAMS,
            "timing interleaved: set stream_key and stream_count");
    good.stream_count = 2;
    REFUSED(timing, PTOWSP_TIMING_INTERLEAVED, INVALID_PARAMS,
            "timing interleaved, but stream_key is missing");
    REFUSED(stream_key, ptowsp_task_arg(other.m, 0), INVALID_PARAMS,
            "a key is no expression of module decode");
    memset(&good, 0, sizeof good);
    good.pools = PTOWSP_POOLS_BY_UNIT;
    REFUSED(lane_count, 0, INVALID_PARAMS,
            "dispatch round robin: vector_lane_count and cube_lane_count are 0");
    good.vector_lane_count = 1;
    REFUSED(lane_count, 2, INVALID_PARAMS, "lane_count 2 is given, but pools are by unit");
    compiled(f, NULL);
    fixture_free(&other);
}

FIXTURE_TEST(workload_faults__schedules_in_order_and_stuck_ones) {
    ptowsp_schedule good;
    PTOWSP_WORKLOAD(f->m, "main") {
        work(f, number(f, 1));
    }
    memset(&good, 0, sizeof good);
    good.issue = PTOWSP_ISSUE_IN_ORDER;
    good.lane_count = 2;
    REFUSED(ready, PTOWSP_READY_WORK_STEALING, INVALID_PARAMS,
            "issue in order leaves lanes nothing to choose: ready must be fifo");
    REFUSED(start, PTOWSP_START_ALL_ISSUED, INVALID_PARAMS,
            "issue in order needs ends to go on: start must be at once");
    good.stream_count = 2;
    good.stream_key = ptowsp_task_arg(f->m, 0);
    good.timing_cycles = 1;
    REFUSED(timing, PTOWSP_TIMING_INTERLEAVED, INVALID_PARAMS,
            "issue in order has one clock: timing cannot be interleaved");
    good.timing = PTOWSP_TIMING_BATCHED;
    good.timing_count = 5;
    REFUSED(window, 4, STUCK,
            "a batch of 5 tasks never fits a window of 4: a larger window or a smaller "
            "timing_count would help");
}

// Pools: a cube task, but no cube lane.
FIXTURE_TEST(workload_faults__a_unit_without_lanes_is_refused) {
    ptowsp_kernel_desc desc = kernel_desc("matmul");
    desc.unit = PTOWSP_UNIT_CUBE;
    ptowsp_task_desc cube = {.kernel = ptowsp_kernel_make(f->m, &desc)};
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_task_make(f->m, &cube);
    }
    ptowsp_schedule schedule = {.pools = PTOWSP_POOLS_BY_UNIT, .vector_lane_count = 2};
    const ptowsp_program_desc program = {"main", &schedule};
    not_compiled_as(f, &program, PTOWSP_INVALID_PARAMS,
                    "main/task matmul: its kernel needs a cube lane, and the schedule has none");
    schedule.cube_lane_count = 1;
    compiled(f, &program);
}

FIXTURE_TEST(workload_faults__wrong_targets_are_refused) {
    assert_int_equal(ptowsp_schedule_check(f->m, NULL, PTOWSP_TARGET_THREADS), PTOWSP_OK);
    assert_int_equal(ptowsp_schedule_check(f->m, NULL, PTOWSP_TARGET_ASCEND_NPU), PTOWSP_OK);
    ptowsp_schedule schedule = {.start = PTOWSP_START_ALL_ISSUED};
    assert_int_equal(ptowsp_schedule_check(f->m, &schedule, PTOWSP_TARGET_ASCEND_NPU),
                     PTOWSP_UNSUPPORTED);
    test_error_is(f->context, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                  "schedule: target ascend_npu does not do start all issued");
    assert_int_equal(ptowsp_schedule_check(f->m, NULL, PTOWSP_TARGET_COUNT), PTOWSP_INVALID_PARAMS);
    test_error_is(f->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                  "schedule: there is no target 3");
    assert_string_equal(ptowsp_target_name(PTOWSP_TARGET_COUNT), "none");
    assert_string_equal(ptowsp_support_name((ptowsp_support)4), "none");
}

// Calls without a module, or after destroying nothing, do no harm.
TEST(workload_faults__null_is_accepted_where_the_header_says_so) {
    ptowsp_module_destroy(NULL);
    ptowsp_program_destroy(NULL);
    ptowsp_run_destroy(NULL);
    ptowsp_context_destroy(NULL);
}

// Ids beyond all that there is, in place of each thing that has them, and values beyond the last of an
// enumeration.
FIXTURE_TEST(workload_faults__things_that_the_module_does_not_have) {
    const ptowsp_axis axis = {1000};
    const ptowsp_tensor tensor = {1000};
    const ptowsp_kernel kernel = {1000};
    ptowsp_mesh_layout layout;
    ptowsp_expr lost = number(f, 1);
    lost.id = 100000;
    assert_int_equal(ptowsp_expr_type(lost), PTOWSP_TYPE_NONE);
    ptowsp_loop_entry(lost);
    refused(f, "decode: loop_entry: it is not the variable of a loop over a sparse axis");
    lost.module = f->m;
    ptowsp_add(number(f, 1), lost);
    refused(f, "decode: add: an operand is no expression");
    ptowsp_axis_size(f->m, axis);
    refused(f, "decode: axis_size: axis 0 is not dense, dynamic or of a plan");
    ptowsp_axis_size(f->m, f->pages);
    refused(f, "decode: axis_size: axis pages is not dense, dynamic or of a plan");
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PARALLEL(f->m, i, axis) {
            (void)i;
        }
    }
    refused(f, "main: loop i: there is no axis 1000");
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_workload_param(f->m, "n", (ptowsp_type)99);
    }
    refused(f, "main: parameter n: 99 is no type");
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PARALLEL(f->m, i, f->heads) {
            (void)i;
            ptowsp_workload_param(f->m, "n", PTOWSP_TYPE_I64);
        }
    }
    refused(f, "main/parallel i: parameter n: parameters come first in a workload");
    ptowsp_kernel_desc desc = kernel_desc("k");
    const ptowsp_tile_param tile = {"t", (ptowsp_direction)99, PTOWSP_I32, 1, 1};
    const ptowsp_scalar_param scalar = {"s", (ptowsp_type)99};
    desc.tiles[0] = tile;
    ptowsp_kernel_make(f->m, &desc);
    refused(f, "decode: kernel k: tile t has no direction (in, out or inout)");
    desc = kernel_desc("k");
    desc.scalars[0] = scalar;
    ptowsp_kernel_make(f->m, &desc);
    refused(f, "decode: kernel k: scalar s has no type");
    ptowsp_tensor_spread(f->m, tensor, NULL);
    refused_as(f, PTOWSP_INVALID_PARAMS, 1000,
               "decode: spread: there is no tensor 1000, or no spreads");
    ptowsp_kernel_rule(f->m, kernel, "a -> a");
    refused_as(f, PTOWSP_INVALID_PARAMS, 1000, "decode: rule: there is no kernel 1000, or no rule");
    ptowsp_kernel_rule(f->m, f->work, NULL);
    refused_as(f, PTOWSP_INVALID_PARAMS, f->work.id,
               "decode: rule: there is no kernel 1, or no rule");
    assert_int_equal(ptowsp_tensor_layout(NULL, f->x, &layout), PTOWSP_INVALID_PARAMS);
    assert_int_equal(ptowsp_tensor_layout(f->m, tensor, &layout), PTOWSP_INVALID_PARAMS);
    assert_int_equal(ptowsp_tensor_layout(f->m, (ptowsp_tensor){0}, &layout),
                     PTOWSP_INVALID_PARAMS);
    assert_int_equal(ptowsp_tensor_layout(f->m, f->x, NULL), PTOWSP_INVALID_PARAMS);
}

// After the first error every call that builds something gives nothing, and changes nothing.
FIXTURE_TEST(workload_faults__all_is_quiet_after_the_first) {
    ptowsp_body_desc body = {.name = "tiles"};
    ptowsp_body *k = ptowsp_kernel_begin(f->m, &body);
    ptowsp_axis_dense(f->m, "heads", 1);
    const ptowsp_error first = ptowsp_module_error(f->m);
    assert_int_equal(first.status, PTOWSP_INVALID_PARAMS);
    assert_int_equal(ptowsp_axis_size(f->m, f->heads).id, 0);
    assert_int_equal(ptowsp_loop_entry((ptowsp_expr){f->m, 1}).id, 0);
    assert_int_equal(ptowsp_kernel_collective(f->m, NULL).id, 0);
    assert_int_equal(ptowsp_axis_plan(f->m, "p").id, 0);
    assert_int_equal(ptowsp_axis_plan_lanes(f->m, "p").id, 0);
    ptowsp_module_mesh(f->m, NULL, 0);
    ptowsp_tensor_spread(f->m, f->x, NULL);
    ptowsp_kernel_rule(f->m, f->work, NULL);
    assert_int_equal(ptowsp_kernel_end(k).id, 0);
    assert_int_equal(work(f, number(f, 1)).id, 0);
    refused_as(f, first.status, first.index,
               "decode: axis heads: the name is already that of an axis");
}
