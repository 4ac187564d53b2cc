// Tile kernels as they are made where assertions are off: nobody proves them but who asks, and emission;
// those of cube and vector cores are proved all the same, as the proof decides how they are cut.

#define PTOWSP_ASSERT(condition) ((void)sizeof(condition))

#include "src/kernel/proof.h"

static unsigned proof_count;

static bool counted_verify(const pwsp_list *list, const ptoisa_machine *machine,
                           pwsp_list_fault *fault) {
    proof_count++;
    return pwsp_list_verify(list, machine, fault);
}

#define pwsp_list_verify counted_verify

#include "src/kernel/compiled.c"

#include "src/workload/program.h"
#include "test.h"

typedef struct fixture {
    ptowsp_context *context;
    ptowsp_module *module;
    ptowsp_program *program;
} fixture;

// A program of one task: a sum and, if it is mixed, a product that the sum is taken of.
static void begin(fixture *f, bool is_mixed) {
    enum { SIDE = 16 };
    const ptowsp_machine machine = ptowsp_machine_910b();
    memset(f, 0, sizeof *f);
    assert_ok(ptowsp_context_create(NULL, &f->context));
    assert_ok(ptowsp_module_create(f->context, NULL, &f->module));
    ptowsp_body_desc desc = {.name = "sum", .machine = &machine};
    ptowsp_body *k = ptowsp_kernel_begin(f->module, &desc);
    const char *const names[] = {"x", "y", "out"};
    ptowsp_task_desc task = {0};
    for (int i = 0; i < 3; i++) {
        ptowsp_tensor_desc tensor = {.name = names[i], .dtype = PTOWSP_F32, .rank = 2};
        tensor.shape[0] = tensor.shape[1] = SIDE;
        task.views[i].tensor = ptowsp_tensor_make(f->module, &tensor);
    }
    const ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, SIDE, SIDE);
    const ptowsp_value y = ptowsp_tile_in(k, "y", PTOWSP_F32, SIDE, SIDE);
    const ptowsp_value out = ptowsp_tile_out(k, "out", PTOWSP_F32, SIDE, SIDE);
    ptowsp_tile_store(out, ptowsp_tile_add(is_mixed ? ptowsp_tile_matmul(x, y) : x, y));
    task.kernel = ptowsp_kernel_end(k);
    PTOWSP_WORKLOAD(f->module, "main") {
        ptowsp_task_make(f->module, &task);
    }
    if (ptowsp_program_create(f->context, f->module, NULL, &f->program) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(f->context).text);
    }
}

static void end(fixture *f) {
    ptowsp_program_destroy(f->program);
    ptowsp_module_destroy(f->module);
    ptowsp_context_destroy(f->context);
}

static ptowsp_status count_file(void *user, const char *path, const char *text, size_t size) {
    (void)path;
    (void)text;
    (void)size;
    ++*(unsigned *)user;
    return PTOWSP_OK;
}

#define FIXTURE_TEST(name, is_mixed) TEST_MADE(name, fixture, f, begin(f, is_mixed), end(f))

FIXTURE_TEST(kernel_proof__is_no_part_of_making_a_kernel_without_assertions, false) {
    unsigned files = 0;
    assert_int_equal(proof_count, 0);
    assert_ok(ptowsp_program_prove(f->context, f->program));
    assert_int_equal(proof_count, 1);
    assert_ok(ptowsp_npu_emit_files(f->context, f->program, count_file, &files));
    assert_int_equal(proof_count, 2);
    assert_true(files > 0);
}

FIXTURE_TEST(kernel_proof__decides_how_a_kernel_of_both_cores_is_cut, true) {
    assert_true(proof_count > 0);
    assert_ok(ptowsp_program_prove(f->context, f->program));
}

// A tile of the kernel is moved by a byte.
FIXTURE_TEST(kernel_proof__refuses_a_wrong_kernel_when_asked_and_before_emission, false) {
    unsigned files = 0;
    char asked[PWSP_ERROR_TEXT_MAX];
    const pwsp_tile_code *code = f->program->kernels.items[1].code;
    pwsp_list_tile *tile = (pwsp_list_tile *)(uintptr_t)&code->tiles[code->tile_count - 1];
    tile = (pwsp_list_tile *)(uintptr_t)&code->tiles[tile->root];
    tile->address += 1;
    assert_invalid(ptowsp_program_prove(f->context, f->program));
    snprintf(asked, sizeof asked, "%s", ptowsp_context_error(f->context).text);
    assert_non_null(strstr(asked, "prove: kernel sum: verify: "));
    assert_invalid(ptowsp_npu_emit_files(f->context, f->program, count_file, &files));
    assert_string_equal(ptowsp_context_error(f->context).text, asked);
    assert_int_equal(files, 0);
    tile->address -= 1;
    assert_ok(ptowsp_program_prove(f->context, f->program));
}
