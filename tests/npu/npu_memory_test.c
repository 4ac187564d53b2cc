// Emitting where memory is out: every allocation is refused once, for programs of all kinds. The tree is
// the same after that, or there is none.

#define _POSIX_C_SOURCE 200809L

#include "npu_refuse.h"

#include "kernel_loop.h"
#include "kernel_reference.h"
#include "npu_calls.h"

static ptowsp_status count_bytes(void *user, const char *path, const char *text, size_t size) {
    (void)path;
    (void)text;
    *(size_t *)user += size;
    return PTOWSP_OK;
}

static size_t emit(ptowsp_context *context, const ptowsp_program *program, ptowsp_status status) {
    size_t size = 0;
    assert_int_equal(ptowsp_npu_emit_files(context, program, count_bytes, &size), status);
    assert_int_equal(hooks.live, 0);
    return size;
}

// Refuses the first allocation, the second, and so on, until there is none left to refuse.
static void sweep(ptowsp_context *context, const ptowsp_program *program) {
    memset(&hooks, 0, sizeof hooks);
    const size_t whole = emit(context, program, PTOWSP_OK), count = hooks.allocations;
    for (size_t n = 1; n <= count; n++) {
        hooks.allocations = 0;
        hooks.refuse_at = n;
        assert_int_equal(emit(context, program, PTOWSP_OUT_OF_MEMORY), 0);
        test_error_is(context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX,
                      "emit: no memory for the tree");
    }
    hooks.refuse_at = 0;
    assert_int_equal(emit(context, program, PTOWSP_OK), whole);
    print_message("%zu allocations\n", count);
}

static kt_config config_of(const ptowsp_machine *machine) {
    kt_config config = kt_any(test_seed());
    config.is_partial = true;
    config.machine = machine;
    config.low = -1;
    config.high = 1;
    return config;
}

// A product and its rows by themselves: cube and vector cores, which A2/A3 has apart.
static void sweep_halves(const ptowsp_machine *machine) {
    kt t = kt_begin(config_of(machine));
    kt_value a = kt_in(&t, PTOWSP_F16, 20, 24), b = kt_in(&t, PTOWSP_F16, 24, 40);
    kt_value x = kt_matmul(&t, a, b);
    x = kt_unary(&t, KT_UNARY_exp, kt_sub(&t, x, kt_rowmax(&t, x)));
    kt_keep(&t, kt_matmul(&t, kt_cvt(&t, x, PTOWSP_F16, PTOWSP_ROUND_NEAREST),
                          kt_in(&t, PTOWSP_F16, 40, 16)));
    kt_lower(&t);
    sweep(t.context, kt_compile(&t));
    kt_free(&t);
}

static void sweep_loop(const ptowsp_machine *machine, lp_scene scene, int which) {
    kt t = kt_begin(config_of(machine));
    scene(&t, true, which);
    lp_lower(&t);
    sweep(t.context, kt_compile(&t));
    kt_free(&t);
}

TEST(memory__of_kernels_may_be_refused_at_every_point) {
    const ptowsp_machine a5 = ptowsp_machine_950pr();
    sweep_halves(NULL);
    sweep_halves(&a5);
    sweep_loop(NULL, lp_attention, 1);
    sweep_loop(NULL, lp_nested, 5);
    sweep_loop(&a5, lp_rows, 2);
}

// -- other programs -------------------------------------------------------------------------------

static ptowsp_kernel kernel_of(const npu_fixture *f, const char *name, ptowsp_kernel_fn fn,
                               const char *text, const ptowsp_pto_source *pto) {
    ptowsp_kernel_desc desc = {.name = name};
    const ptowsp_tile_param tile = {"data", PTOWSP_INOUT, PTOWSP_F32, 8, 8};
    desc.tiles[0] = tile;
    desc.tiles[0].direction = strcmp(name, "make") == 0 ? PTOWSP_OUT : PTOWSP_INOUT;
    desc.fn = fn;
    desc.source.text = text;
    desc.source.fn = text ? "scale" : NULL;
    desc.pto = pto;
    return ptowsp_kernel_make(f->m, &desc);
}

static ptowsp_tensor tensor_of(const npu_fixture *f, const char *name) {
    const ptowsp_tensor_desc desc = {
        name, PTOWSP_F32, 2, {16, 8, 0, 0, 0, 0, 0, 0}, PTOWSP_LOCATION_GLOBAL};
    return ptowsp_tensor_make(f->m, &desc);
}

static void task_of(const npu_fixture *f, ptowsp_kernel kernel, ptowsp_tensor tensor) {
    ptowsp_task_desc task = {.kernel = kernel, .views[0].tensor = tensor};
    ptowsp_task_make(f->m, &task);
}

#define NPU_FIXTURE_TEST(name)                                                                     \
    TEST_MADE(name, npu_fixture, f, npu_fixture_begin(f), npu_fixture_free(f))

// C functions in lines and in one line, and a PTO-ISA source with a header.
NPU_FIXTURE_TEST(memory__of_sources_may_be_refused_at_every_point) {
    char header[100];
    snprintf(header, sizeof header, "%s/one.hpp", f->directory);
    FILE *file = fopen(header, "w");
    assert_non_null(file);
    assert_true(fputs("int one;\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    npu_module_make(f, "sources");
    ptowsp_pto_source pto = {.text =
                                 "#include \"one.hpp\"\n#include <cstdint>\nvoid own(float *) {}",
                             .include_dirs[0] = f->directory};
    const ptowsp_kernel kernels[] = {
        kernel_of(f, "lines", npu_scale, NPU_SCALE_TEXT, NULL),
        kernel_of(f, "line", npu_scale,
                  "static ptowsp_cycles scale(const ptowsp_task *t, void *u) { return 7; }", NULL),
        kernel_of(f, "own", NULL, NULL, &pto)};
    const ptowsp_tensor x = tensor_of(f, "x");
    PTOWSP_WORKLOAD(f->m, "main") {
        for (int i = 0; i < 3; i++) {
            task_of(f, kernels[i], x);
        }
    }
    npu_fixture_compile(f, NULL);
    sweep(f->context, f->program);
}

// Loops of each kind, a transient tensor, calls, and a pipeline.
NPU_FIXTURE_TEST(memory__of_statements_may_be_refused_at_every_point) {
    npu_module_make(f, "statements");
    ptowsp_module *m = f->m;
    const ptowsp_kernel kernel = kernel_of(f, "scale", npu_scale, NPU_SCALE_TEXT, NULL);
    const ptowsp_kernel make = kernel_of(f, "make", npu_scale, NPU_SCALE_TEXT, NULL);
    const ptowsp_tensor x = tensor_of(f, "x");
    const ptowsp_axis rows = ptowsp_axis_dynamic(m, "rows"), pages = ptowsp_axis_ragged(m, "pages");
    const ptowsp_axis routes = ptowsp_axis_sparse(m, "routes"), plan = ptowsp_axis_plan(m, "kv");
    const ptowsp_axis lanes = ptowsp_axis_plan_lanes(m, "kv");
    const ptowsp_tensor_desc made = {
        "made", PTOWSP_F32, 2, {PTOWSP_DYNAMIC, 8, 0, 0, 0, 0, 0, 0}, PTOWSP_LOCATION_GLOBAL};
    ptowsp_channel_desc channel = {.name = "tokens", .depth = 2};
    PTOWSP_WORKLOAD(m, "main") {
        ptowsp_expr sizes[PTOWSP_TENSOR_RANK_MAX] = {0};
        sizes[0] = ptowsp_mul(ptowsp_axis_size(m, rows), ptowsp_i64(m, 8));
        const ptowsp_tensor transient = ptowsp_tensor_transient(m, &made, sizes);
        task_of(f, make, transient);
        PTOWSP_PARALLEL(m, i, rows) {
            task_of(f, kernel, transient);
            PTOWSP_FOR_EACH(m, j, ptowsp_axis_row(m, pages, i)) {
                ptowsp_slot_set_make(m, 0, ptowsp_array_at(m, "sizes", PTOWSP_I32, j));
            }
            PTOWSP_FOR_EACH(m, k, ptowsp_axis_row(m, routes, i)) {
                ptowsp_slot_set_make(m, 1, ptowsp_add(k, ptowsp_slot(m, 0, PTOWSP_TYPE_I64)));
            }
        }
        PTOWSP_FOR_EACH(m, lane, lanes) {
            PTOWSP_FOR_EACH(m, unit, ptowsp_axis_row(m, plan, lane)) {
                ptowsp_slot_set_make(m, 2, unit);
            }
        }
        PTOWSP_PIPELINE(m, "pipeline") {
            const ptowsp_channel tokens = ptowsp_channel_make(m, &channel);
            PTOWSP_PROCESS(m, "send") {
                ptowsp_produces(m, tokens);
                ptowsp_send_make(m, tokens,
                                 ptowsp_cast(ptowsp_symbol(m, "first"), PTOWSP_TYPE_I64));
            }
            PTOWSP_REPLICATE(m, w, rows, "work") {
                ptowsp_consumes(m, tokens);
                PTOWSP_CONSUME(m, t, tokens) {
                    task_of(f, kernel, x);
                }
            }
        }
    }
    npu_fixture_compile(f, NULL);
    sweep(f->context, f->program);
}

// Its sizes of transient tensors are asked for while files are made, and its run is recorded.
NPU_FIXTURE_TEST(memory__of_trees_for_pto_runtime_may_be_refused_at_every_point) {
    char path[128];
    float data[2][16 * 8] = {{0}};
    npu_module_make(f, "runtime");
    ptowsp_npu_desc tree = {0};
    ptowsp_body_desc twice = {.name = "twice"};
    ptowsp_body *body = ptowsp_kernel_begin(f->m, &twice);
    const ptowsp_value in = ptowsp_tile_in(body, "x", PTOWSP_F32, 16, 8);
    ptowsp_tile_store(ptowsp_tile_out(body, "y", PTOWSP_F32, 16, 8), ptowsp_tile_add(in, in));
    const ptowsp_kernel kernel = ptowsp_kernel_end(body);
    const ptowsp_tensor x = tensor_of(f, "x"), y = tensor_of(f, "y");
    const ptowsp_tensor_desc made = {
        "made", PTOWSP_F32, 2, {16, 8, 0, 0, 0, 0, 0, 0}, PTOWSP_LOCATION_GLOBAL};
    PTOWSP_WORKLOAD(f->m, "runtime") {
        const ptowsp_tensor between = ptowsp_tensor_transient(f->m, &made, NULL);
        for (int i = 0; i < 2; i++) {
            ptowsp_task_desc task = {.kernel = kernel,
                                     .views[0].tensor = i ? between : x,
                                     .views[1].tensor = i ? y : between};
            ptowsp_task_make(f->m, &task);
        }
    }
    npu_fixture_compile(f, NULL);
    assert_int_equal(ptowsp_run_create(f->context, f->program, &tree.run), PTOWSP_OK);
    for (int i = 0; i < 2; i++) {
        ptowsp_buffer buffer = {.dtype = PTOWSP_F32, .data = data[i]};
        assert_int_equal(ptowsp_run_bind_tensor(tree.run, i ? "y" : "x", &buffer), PTOWSP_OK);
    }
    snprintf(path, sizeof path, "%s/tree", f->directory);
    tree.directory = path;
    tree.runtime = PTOWSP_NPU_SIMPLER;
    memset(&hooks, 0, sizeof hooks);
    for (size_t n = 1;; n++) {
        hooks.allocations = 0;
        hooks.refuse_at = n;
        const ptowsp_status status = ptowsp_npu_emit(f->context, f->program, &tree);
        assert_int_equal(hooks.live, 0);
        if (status == PTOWSP_OK) {
            assert_true(hooks.allocations < n && n > 100);
            break;
        }
        test_error_is(f->context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX,
                      "emit: no memory for the tree");
        assert_int_equal(npu_entries(f->directory), 0);
    }
    print_message("%zu allocations\n", hooks.allocations);
    hooks.refuse_at = 0;
    ptowsp_run_destroy(tree.run);
}
