// A libFuzzer target: any bytes as a module's text, as a saved program, and as one whose first line is
// right. What is read is printed and read again as the same; what compiles is saved and loaded as the
// same; what runs ends.

#include "ptowsp.h"

#include "bytes.h"

#include <string.h>

enum { TEXT_MAX = 1 << 18 };

static char printed[TEXT_MAX], again[TEXT_MAX], saved[TEXT_MAX], program_text[TEXT_MAX];

static const ptowsp_parse_desc desc = {NULL, 0, 1};

static ptowsp_output to(ptowsp_output_buffer *buffer, char *text) {
    buffer->data = text;
    buffer->size = TEXT_MAX;
    return ptowsp_output_to_buffer(buffer);
}

// Executes for time alone, with the tensors that have static sizes.
static void run(ptowsp_context *context, const ptowsp_program *program) {
    ptowsp_run *made;
    ptowsp_run_options options = {
        .mode = PTOWSP_RUN_TIME_ONLY, .time_limit_ns = 20000000, .token_limit = 1000};
    REQUIRE(ptowsp_run_create(context, program, &made) == PTOWSP_OK);
    for (uint32_t i = 1; i < ptowsp_program_read(program)->tensor_count; i++) {
        ptowsp_tensor_info info = ptowsp_program_read(program)->tensors[i];
        ptowsp_buffer buffer = {.dtype = info.desc.dtype};
        ptowsp_run_bind_tensor(made, info.desc.name, &buffer);
    }
    for (uint32_t i = 1; i < ptowsp_program_read(program)->axis_count; i++) {
        ptowsp_axis_info info = ptowsp_program_read(program)->axes[i];
        if (info.name && info.kind == PTOWSP_AXIS_DYNAMIC) {
            ptowsp_run_bind_size(made, info.name, 3);
        }
    }
    ptowsp_status status = ptowsp_run_execute(made, &options);
    REQUIRE(status == PTOWSP_OK || ptowsp_context_error(context).text[0]);
    ptowsp_run_destroy(made);
}

static void load(ptowsp_context *context, const char *text, size_t size, bool is_good) {
    ptowsp_program *program;
    ptowsp_text_place place;
    ptowsp_output_buffer buffer;
    ptowsp_status status = ptowsp_program_load(context, text, size, &desc, &program, &place);
    if (status == PTOWSP_OK) {
        ptowsp_program_print(program, to(&buffer, again));
        REQUIRE(!is_good || strcmp(again, program_text) == 0);
        run(context, program);
        ptowsp_program_destroy(program);
    }
    REQUIRE(!program == (status != PTOWSP_OK) && (status == PTOWSP_OK || !is_good));
    REQUIRE(status == PTOWSP_OK || ptowsp_context_error(context).text[0]);
}

// A module that has been read: printed and read again, compiled, saved and loaded.
static void use(ptowsp_context *context, ptowsp_module *module) {
    ptowsp_module *copy;
    ptowsp_program *program;
    ptowsp_output_buffer buffer;
    ptowsp_module_print(module, to(&buffer, printed));
    if (buffer.length >= TEXT_MAX) {
        return;
    }
    REQUIRE(ptowsp_module_parse(context, printed, buffer.length, &desc, &copy, NULL) == PTOWSP_OK);
    ptowsp_module_print(copy, to(&buffer, again));
    REQUIRE(strcmp(printed, again) == 0);
    for (ptowsp_kernel k = {1}; ptowsp_kernel_hash(module, k); k.id++) {
        REQUIRE(ptowsp_kernel_hash(module, k) == ptowsp_kernel_hash(copy, k));
    }
    ptowsp_module_destroy(copy);
    if (ptowsp_program_create(context, module, NULL, &program) == PTOWSP_OK) {
        ptowsp_program_print(program, to(&buffer, program_text));
        ptowsp_program_destroy(program);
        REQUIRE(ptowsp_program_save(context, module, NULL, to(&buffer, saved)) == PTOWSP_OK);
        if (buffer.length < TEXT_MAX) {
            load(context, saved, buffer.length, true);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ptowsp_context *context;
    ptowsp_module *module;
    ptowsp_text_place place;
    if (size > TEXT_MAX / 8) {
        return 0;
    }
    REQUIRE(ptowsp_context_create(NULL, &context) == PTOWSP_OK);
    load(context, (const char *)data, size, false);
    if (ptowsp_module_parse(context, (const char *)data, size, &desc, &module, &place) ==
        PTOWSP_OK) {
        use(context, module);
        ptowsp_module_destroy(module);
    } else {
        REQUIRE(!module && place.line > 0 && place.column > 0);
    }
    int head = snprintf(saved, TEXT_MAX, "ptowsp program 1, %zu bytes, %016llx\n", size,
                        (unsigned long long)ptowsp_hash(PTOWSP_HASH_START, data, size));
    if (size > 0) {
        memcpy(saved + head, data, size);
    }
    load(context, saved, (size_t)head + size, false);
    ptowsp_context_destroy(context);
    return 0;
}
