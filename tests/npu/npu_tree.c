// Emits a tree, for npu_tree_test.sh: a directory, and how many kernels it has, an odd number. Its
// tensor has rows x 4 elements; they are doubled, halved, doubled, ... a kernel each. With a third
// argument, a run with 1, 2, 3, 4 is recorded there. With 0 kernels, one for cube and vector cores,
// and a run of that.

#include "ptowsp.h"

#include <stdio.h>
#include <stdlib.h>

static void check(ptowsp_context *context, ptowsp_status status) {
    if (status != PTOWSP_OK) {
        fprintf(stderr, "%s\n", ptowsp_context_error(context).text);
        exit(1);
    }
}

// z = softmax(a * b) * c.
static ptowsp_task_desc mixed_make(ptowsp_module *m) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "attend"});
    ptowsp_value a = ptowsp_tile_in(k, "a", PTOWSP_F32, 32, 16);
    ptowsp_value b = ptowsp_tile_in(k, "b", PTOWSP_F32, 16, 40);
    ptowsp_value c = ptowsp_tile_in(k, "c", PTOWSP_F32, 40, 16);
    ptowsp_value z = ptowsp_tile_out(k, "z", PTOWSP_F32, 32, 16);
    ptowsp_value s = ptowsp_tile_matmul(a, b);
    ptowsp_value e = ptowsp_tile_exp(ptowsp_tile_sub(s, ptowsp_tile_rowmax(s)));
    ptowsp_tile_store(z, ptowsp_tile_div(ptowsp_tile_matmul(e, c), ptowsp_tile_rowsum(e)));
    static const int64_t sizes[4][2] = {{32, 16}, {16, 40}, {40, 16}, {32, 16}};
    ptowsp_task_desc task = {.kernel = ptowsp_kernel_end(k)};
    for (int i = 0; i < 4; i++) {
        char name[2] = {"abcz"[i], 0};
        ptowsp_tensor_desc tensor = {name,
                                     PTOWSP_F32,
                                     2,
                                     {i % 3 ? sizes[i][0] : PTOWSP_DYNAMIC, sizes[i][1]},
                                     PTOWSP_LOCATION_GLOBAL};
        task.views[i].tensor = ptowsp_tensor_make(m, &tensor);
    }
    return task;
}

// A run of it, with 31 rows: one more for the first vector core.
static void mixed_record(ptowsp_context *context, const ptowsp_program *program,
                         const char *directory) {
    static float data[4][1280];
    static const int64_t sizes[4][2] = {{31, 16}, {16, 40}, {40, 16}, {31, 16}};
    ptowsp_run_options options = {.cost = {.model = PTOWSP_MODEL_A2A3}};
    ptowsp_run *run;
    check(context, ptowsp_run_create(context, program, &run));
    check(context, ptowsp_run_bind_size(run, "rows", 0));
    for (int i = 0; i < 4; i++) {
        char name[2] = {"abcz"[i], 0};
        ptowsp_buffer buffer = {
            .data = data[i], .dtype = PTOWSP_F32, .rank = 2, .shape = {sizes[i][0], sizes[i][1]}};
        for (int j = 0; j < 1280; j++) {
            data[i][j] = (float)(j * 37 % 64) / 32 - 1;
        }
        check(context, ptowsp_run_bind_tensor(run, name, &buffer));
    }
    check(context, ptowsp_npu_record(context, run, &options, directory));
    ptowsp_run_destroy(run);
}

int main(int argc, char **argv) {
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
    unsigned count = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    ptowsp_npu_desc tree = {.directory = argv[1], .is_replacing = true, .is_for_host = count > 0};
    check(NULL, ptowsp_context_create(NULL, &context));
    check(context, ptowsp_module_create(context, NULL, &m));
    ptowsp_tensor_desc x = {"x", PTOWSP_F32, 2, {PTOWSP_DYNAMIC, 4}, PTOWSP_LOCATION_GLOBAL};
    ptowsp_tensor tensor = ptowsp_tensor_make(m, &x);
    ptowsp_kernel kernels[64];
    for (unsigned i = 0; i < count && i < 64; i++) {
        char name[8];
        snprintf(name, sizeof name, "k%u", i);
        ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = name});
        ptowsp_value tile = ptowsp_tile_inout(k, "x", PTOWSP_F32, 1, 4);
        ptowsp_tile_store(tile, ptowsp_tile_mul(tile, ptowsp_tile_const(k, i % 2 ? 0.5 : 2)));
        kernels[i] = ptowsp_kernel_end(k);
    }
    PTOWSP_WORKLOAD(m, "scale") {
        if (count == 0) {
            ptowsp_task_desc mixed = mixed_make(m);
            ptowsp_task_make(m, &mixed);
        }
        PTOWSP_PARALLEL(m, i, ptowsp_axis_dynamic(m, "rows")) {
            for (unsigned k = 0; k < count; k++) {
                ptowsp_task_desc task = {
                    .kernel = kernels[k], .views[0].tensor = tensor, .views[0].row = i};
                ptowsp_task_make(m, &task);
            }
        }
    }
    check(context, ptowsp_program_create(context, m, NULL, &program));
    check(context, ptowsp_npu_emit(context, program, &tree));
    if (argc > 3 && count == 0) {
        mixed_record(context, program, argv[3]);
    } else if (argc > 3) {
        float data[5] = {0, 1, 2, 3, 4};  // not where files are aligned
        ptowsp_buffer buffer = {.data = data + 1, .dtype = PTOWSP_F32, .rank = 2, .shape = {1, 4}};
        ptowsp_run_options options = {.cost = {.model = PTOWSP_MODEL_A2A3}};
        ptowsp_run *run;
        check(context, ptowsp_run_create(context, program, &run));
        check(context, ptowsp_run_bind_size(run, "rows", 1));
        check(context, ptowsp_run_bind_tensor(run, "x", &buffer));
        check(context, ptowsp_npu_record(context, run, &options, argv[3]));
        if (data[1] != 2 || data[4] != 8) {
            fprintf(stderr, "the recorded run was not executed\n");
            return 1;
        }
    }
    return 0;
}
