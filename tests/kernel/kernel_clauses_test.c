// What a text says of an instruction beside its operands: scratch, places, modes. A kernel with each of
// these is printed, read again, and is the same; a text that breaks off in the middle of one is refused
// where it does.

#include "kernel_text.h"

typedef struct fixture {
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_body *k;
    ptowsp_kernel kernel;
} fixture;

static ptowsp_value tile(fixture *f, ptowsp_dtype dtype, ptowsp_layout layout, int64_t rows,
                         int64_t cols) {
    const ptowsp_alloc_desc desc = {.dtype = dtype, .layout = layout, .rows = rows, .cols = cols};
    return ptowsp_tile_alloc(f->k, &desc);
}

static void instruction(fixture *f, ptowsp_instruction_desc desc) {
    ptowsp_instruction(f->k, &desc);
}

static void build(fixture *f) {
    const ptowsp_machine machine = ptowsp_machine_950pr();
    const ptowsp_body_desc desc = {.name = "k", .machine = &machine};
    assert_ok(ptowsp_context_create(NULL, &f->context));
    assert_ok(ptowsp_module_create(f->context, NULL, &f->m));
    f->k = ptowsp_kernel_begin(f->m, &desc);
    ptowsp_value x = ptowsp_tile_load(ptowsp_tile_in(f->k, "x", PTOWSP_F32, 32, 32));
    ptowsp_value y = ptowsp_tile_out(f->k, "y", PTOWSP_F32, 64, 64);
    ptowsp_value z = ptowsp_tile_out(f->k, "z", PTOWSP_I32, 32, 32);
    ptowsp_value s = ptowsp_tile_out(f->k, "s", PTOWSP_F32, 32, 1);
    ptowsp_value whole = tile(f, PTOWSP_F32, PTOWSP_LAYOUT_ROW_MAJOR, 64, 64);
    ptowsp_value sum = tile(f, PTOWSP_F32, PTOWSP_LAYOUT_COL_MAJOR, 32, 1);
    ptowsp_value scratch = tile(f, PTOWSP_F32, PTOWSP_LAYOUT_ROW_MAJOR, 32, 32);
    ptowsp_value cut = tile(f, PTOWSP_I32, PTOWSP_LAYOUT_ROW_MAJOR, 32, 32);
    instruction(f, (ptowsp_instruction_desc){
                       .name = "TEXPANDS", .dst = {whole}, .scalar = ptowsp_tile_const(f->k, 2)});
    instruction(f, (ptowsp_instruction_desc){
                       .name = "TINSERT", .dst = {whole}, .src = {x}, .row = 16, .col = 8});
    instruction(
        f, (ptowsp_instruction_desc){.name = "TINSERT", .dst = {whole}, .src = {x}, .col = 32});
    instruction(
        f, (ptowsp_instruction_desc){.name = "TROWSUM", .dst = {sum}, .src = {x}, .tmp = scratch});
    instruction(f, (ptowsp_instruction_desc){
                       .name = "TCVT", .dst = {cut}, .src = {x}, .mode = PTOWSP_ROUND_FLOOR});
    ptowsp_tile_store(y, whole);
    ptowsp_tile_store(z, cut);
    ptowsp_tile_store(s, sum);
    f->kernel = ptowsp_kernel_end(f->k);
    if (f->kernel.id == 0) {
        fail_msg("%s", ptowsp_module_error(f->m).text);
    }
}

static void fixture_free(fixture *f) {
    ptowsp_module_destroy(f->m);
    ptowsp_context_destroy(f->context);
}

TEST(clauses__of_instructions_are_read_as_they_were_built) {
    fixture f;
    build(&f);
    ptowsp_module *read = kernel_text_read(f.context, f.m);
    static const char *const parts[] = {" TINSERT (%6) (%2) at (16, 8)\n",
                                        " TINSERT (%6) (%2) at (0, 32)\n", " tmp %8\n",
                                        " TCVT (%9) (%2) mode 2\n"};
    for (uint32_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (!strstr(kernel_text, parts[i])) {
            fail_msg("\"%s\" is not in\n%s", parts[i], kernel_text);
        }
    }
    kernel_text_compare(f.m, read, f.kernel);
    ptowsp_module_destroy(read);
    fixture_free(&f);
}

// The text with one of its parts written otherwise.
static void refused(fixture *f, const char *part, const char *other, const char *text) {
    static char changed[KERNEL_TEXT_MAX];
    ptowsp_output_buffer buffer = {kernel_text, KERNEL_TEXT_MAX, 0};
    ptowsp_module *read = NULL;
    ptowsp_module_print(f->m, ptowsp_output_to_buffer(&buffer));
    const char *at = strstr(kernel_text, part);
    assert_non_null(at);
    const int length = snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - kernel_text),
                                kernel_text, other, at + strlen(part));
    assert_invalid(ptowsp_module_parse(f->context, changed, (size_t)length, NULL, &read, NULL));
    assert_null(read);
    const char *error = ptowsp_context_error(f->context).text;
    if (!strstr(error, text)) {
        fail_msg("\"%s\" instead of \"%s\": %s, expected %s", other, part, error, text);
    }
}

TEST(clauses__that_break_off_are_refused_there) {
    fixture f;
    build(&f);
    refused(&f, "at (16, 8)", "at 16, 8)", "( is missing here");
    refused(&f, "at (16, 8)", "at (, 8)", "missing here");
    refused(&f, "at (16, 8)", "at (16 8)", ", is missing here");
    refused(&f, "at (16, 8)", "at (16, )", "missing here");
    refused(&f, "at (16, 8)", "at (16, 8", ") is missing here");
    refused(&f, "tmp %8", "tmp 8", "missing here");
    refused(&f, "tmp %8", "tmp %8 tmp", "the line goes on behind what it says");
    refused(&f, "mode 2", "mode", "missing here");
    refused(&f, "scalar %10", "scalar", "missing here");
    refused(&f, " (%2) at (16, 8)", " %2 at (16, 8)", "( is missing here");
    refused(&f, " (%2) at (16, 8)", " (%2 %2) at (16, 8)", ", is missing here");
    refused(&f, " (%2) at (16, 8)", " (%2, %2, %2, %2, %2) at (16, 8)", "more than 4 operands");
    fixture_free(&f);
}
