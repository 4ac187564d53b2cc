// Saved programs: the sources of a program as text, after a line with format, length and checksum:
//
//      ptowsp program 1, 1234 bytes, 0123456789abcdef
//      module ...
//      program decode
//      schedule
//        issue dataflow
//
// Loading reads the module and compiles. So one set of rules decides which programs are valid, a
// damaged or forged file can do no more harm than a wrong module, and the machine's byte order does
// not matter.

#include "../base/text.h"
#include "parse.h"
#include "../workload/schedule.h"

#include <inttypes.h>

#define PWSP_SAVED_FORMAT 1

#define PWSP_SAVED_HEAD "ptowsp program "

// -- loading --------------------------------------------------------------------------------------

static ptowsp_status pwsp_load_text(ptowsp_context *context, const char *text, size_t length,
                                    uint64_t line, const ptowsp_parse_desc *desc,
                                    ptowsp_program **out_program, ptowsp_text_place *out_place) {
    PWSP_ZERO(pwsp_parse_saved, saved);
    ptowsp_module *module;
    ptowsp_status status =
        pwsp_parse_text(context, text, length, line, desc, &saved, &module, out_place);
    if (status == PTOWSP_OK) {
        const ptowsp_program_desc compiled = {saved.workload[0] ? saved.workload : NULL,
                                              &saved.schedule};
        status = ptowsp_program_create(context, module, &compiled, out_program);
        ptowsp_module_destroy(module);
    }
    return status;
}

typedef struct pwsp_saved_head {
    uint64_t format, length, hash;
} pwsp_saved_head;

static bool pwsp_load_literal(const char **at, const char *end, const char *literal) {
    size_t length = strlen(literal);
    if ((size_t)(end - *at) < length || memcmp(*at, literal, length) != 0) {
        return false;
    }
    *at += length;
    return true;
}

// Reads a number of at most `max_digits` digits.
static bool pwsp_load_number(const char **at, const char *end, uint32_t base, uint32_t max_digits,
                             uint64_t *out_number) {
    static const char digits[] = "0123456789abcdef";
    uint32_t count = 0;
    for (*out_number = 0; *at < end && count < max_digits; ++*at, count++) {
        const char *digit = **at ? strchr(digits, **at) : NULL;
        if (!digit || (uint32_t)(digit - digits) >= base) {
            break;
        }
        *out_number = *out_number * base + (uint64_t)(digit - digits);
    }
    return count > 0;
}

// Reads the first line. After an unknown format's number, anything may follow.
static bool pwsp_load_head(const char **at, const char *end, pwsp_saved_head *out_head) {
    memset(out_head, 0, sizeof *out_head);
    if (!pwsp_load_literal(at, end, PWSP_SAVED_HEAD) ||
        !pwsp_load_number(at, end, 10, 9, &out_head->format)) {
        return false;
    }
    return out_head->format != PWSP_SAVED_FORMAT ||
           (pwsp_load_literal(at, end, ", ") &&
            pwsp_load_number(at, end, 10, 18, &out_head->length) &&
            pwsp_load_literal(at, end, " bytes, ") &&
            pwsp_load_number(at, end, 16, 16, &out_head->hash) && pwsp_load_literal(at, end, "\n"));
}

// How a saved program was changed on its way, by an editor or a transfer, or NULL. As it was written it
// is ASCII, with LF at the ends of lines.
static const char *pwsp_load_change(const char *at, const char *end) {
    if (pwsp_load_literal(&at, end, PWSP_BYTE_ORDER_MARK)) {
        return "it begins with a byte-order mark";
    }
    return pwsp_load_literal(&at, end, PWSP_SAVED_HEAD) && memchr(at, '\r', (size_t)(end - at))
               ? "its lines end in CR LF, not in LF"
               : NULL;
}

ptowsp_status ptowsp_program_load(ptowsp_context *context, const void *data, size_t length,
                                  const ptowsp_parse_desc *desc, ptowsp_program **out_program,
                                  ptowsp_text_place *out_place) {
    PTOWSP_ASSERT(context);
    pwsp_saved_head head;
    if (out_place) {
        out_place->line = out_place->column = 0;
    }
    if (!out_program || (!data && length > 0)) {
        return PWSP_REFUSE(context, "load: data or out_program is NULL");
    }
    *out_program = NULL;
    const char *at = (const char *)data, *end = at + length;
    if (!pwsp_load_head(&at, end, &head)) {
        const char *change = pwsp_load_change((const char *)data, end);
        return PWSP_REFUSE(context, "load: %s", change ? change : "this is no saved program");
    }
    if (head.format != PWSP_SAVED_FORMAT) {
        return pwsp_fail(context, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                         "load: format %" PRIu64 " is not known; this version has format %d",
                         head.format, PWSP_SAVED_FORMAT);
    }
    if ((uint64_t)(end - at) != head.length) {
        return PWSP_REFUSE(context,
                           "load: %" PRIu64 " bytes follow the first line, which says %" PRIu64,
                           (uint64_t)(end - at), head.length);
    }
    const uint64_t hash = ptowsp_hash(PTOWSP_HASH_START, at, (size_t)head.length);
    if (hash != head.hash) {
        return PWSP_REFUSE(context,
                           "load: damaged: the checksum is %016" PRIx64
                           ", the first line says %016" PRIx64,
                           hash, head.hash);
    }
    return pwsp_load_text(context, at, (size_t)head.length, 2, desc, out_program, out_place);
}

// -- saving ---------------------------------------------------------------------------------------

static void pwsp_save_print(const ptowsp_module *module, const ptowsp_program_desc *desc,
                            ptowsp_output text) {
    const char *first = desc ? desc->workload : NULL;
    ptowsp_module_print(module, text);
    first = first ? first : PWSP_NODE(module, module->workload)->name;
    pwsp_text_format(text, "program %s\n", pwsp_quoted(first).text);
    ptowsp_schedule_print(desc ? desc->schedule : NULL, text);
}

// Does the text make a program? Kernels that are functions are for time alone here.
static ptowsp_status pwsp_save_check(ptowsp_context *context, const char *text, size_t length) {
    const ptowsp_parse_desc desc = {NULL, 0, 1};
    ptowsp_program *program;
    ptowsp_status status = pwsp_load_text(context, text, length, 1, &desc, &program, NULL);
    if (status == PTOWSP_OK) {
        ptowsp_program_destroy(program);
    }
    return status;
}

ptowsp_status ptowsp_program_save(ptowsp_context *context, ptowsp_module *module,
                                  const ptowsp_program_desc *desc, ptowsp_output output) {
    PTOWSP_ASSERT(context);
    if (!output.write) {
        return pwsp_fail_null(context, "program: the function of text");
    }
    ptowsp_program *program;
    ptowsp_status status = ptowsp_program_create(context, module, desc, &program);
    if (status != PTOWSP_OK) {
        return status;
    }
    ptowsp_program_destroy(program);
    ptowsp_output_buffer buffer = {NULL, 0, 0};
    pwsp_save_print(module, desc, ptowsp_output_to_buffer(&buffer));
    const size_t length = buffer.length;
    buffer.size = length + 1;
    buffer.data = (char *)pwsp_memory_alloc(&context->memory, buffer.size);
    if (!buffer.data) {
        return PWSP_NO_MEMORY(context, "save: out of memory");
    }
    pwsp_save_print(module, desc, ptowsp_output_to_buffer(&buffer));
    PTOWSP_ASSERT(buffer.length == length);
    status = pwsp_save_check(context, buffer.data, length);
    if (status == PTOWSP_OK) {
        pwsp_text_format(output, PWSP_SAVED_HEAD "%d, %zu bytes, %016" PRIx64 "\n",
                         PWSP_SAVED_FORMAT, length,
                         ptowsp_hash(PTOWSP_HASH_START, buffer.data, length));
        pwsp_text_write(output, buffer.data, length);
    }
    pwsp_memory_free(&context->memory, buffer.data, buffer.size);
    return status;
}
