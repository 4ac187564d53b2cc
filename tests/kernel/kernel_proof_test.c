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
#include "fixture.h"
#include "kernel_named.h"

static ptowsp_status count_file(void *user, const char *path, const char *text, size_t size) {
    (void)path;
    (void)text;
    (void)size;
    ++*(unsigned *)user;
    return PTOWSP_OK;
}

TEST_F(kernel_proof__is_no_part_of_making_a_kernel_without_assertions) {
    program_make(f, kernel_named("sum", kernel_no_words), NULL, NULL);
    unsigned files = 0;
    assert_int_equal(proof_count, 0);
    assert_ok(ptowsp_program_prove(f->context, f->program));
    assert_int_equal(proof_count, 1);
    assert_ok(ptowsp_npu_emit_files(f->context, f->program, count_file, &files));
    assert_int_equal(proof_count, 2);
    assert_true(files > 0);
}

TEST_F(kernel_proof__decides_how_a_kernel_of_both_cores_is_cut) {
    proof_count = 0;
    program_make(f, kernel_named("sum of a product", kernel_no_words), NULL, NULL);
    assert_true(proof_count > 0);
    assert_ok(ptowsp_program_prove(f->context, f->program));
}

// A tile of the kernel is moved by a byte.
TEST_F(kernel_proof__refuses_a_wrong_kernel_when_asked_and_before_emission) {
    program_make(f, kernel_named("sum", kernel_no_words), NULL, NULL);
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
