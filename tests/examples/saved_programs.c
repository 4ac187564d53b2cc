// Linked with an example that is to run saved programs: what it creates is saved, loaded and handed
// out in place of what was created, so all that the example prints and checks is of loaded programs.
// The linker leads its calls here (--wrap=NAME) for each __wrap_NAME below. Functions are attached
// by the names of the kernels that the example made.
//
// With SAVED_PROGRAMS=no in the environment they are left as they were created. FINGERPRINTS names a
// file that gets the fingerprints of programs and bindings, a line for each execution.

#include "ptowsp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KERNEL_MAX = 256 };

static struct {
    const ptowsp_module *module;
    ptowsp_parse_kernel kernel;
} made[KERNEL_MAX];
static uint32_t made_count;
static ptowsp_cycles default_cycles;  // of the last module that was read from text

typedef struct file {
    char *data;
    size_t size;
} file;

// These names are the linker's.
ptowsp_kernel __real_ptowsp_kernel_make(ptowsp_module *, const ptowsp_kernel_desc *);
ptowsp_status __real_ptowsp_module_parse(ptowsp_context *, const char *, size_t,
                                         const ptowsp_parse_desc *, ptowsp_module **,
                                         ptowsp_text_place *);
void __real_ptowsp_module_destroy(ptowsp_module *);
ptowsp_status __real_ptowsp_program_create(ptowsp_context *, ptowsp_module *,
                                           const ptowsp_program_desc *, ptowsp_program **);
ptowsp_status __real_ptowsp_run_execute(ptowsp_run *, const ptowsp_run_options *);
ptowsp_status __wrap_ptowsp_run_execute(ptowsp_run *, const ptowsp_run_options *);
ptowsp_kernel __wrap_ptowsp_kernel_make(ptowsp_module *, const ptowsp_kernel_desc *);
ptowsp_status __wrap_ptowsp_module_parse(ptowsp_context *, const char *, size_t,
                                         const ptowsp_parse_desc *, ptowsp_module **,
                                         ptowsp_text_place *);
void __wrap_ptowsp_module_destroy(ptowsp_module *);
ptowsp_status __wrap_ptowsp_program_create(ptowsp_context *, ptowsp_module *,
                                           const ptowsp_program_desc *, ptowsp_program **);

static void *not_null(void *memory) {
    if (!memory) {
        fprintf(stderr, "saved_programs: out of memory\n");
        exit(3);
    }
    return memory;
}

static void check(const ptowsp_context *context, const char *what, ptowsp_status status) {
    if (status != PTOWSP_OK) {
        fprintf(stderr, "saved_programs: %s: %s\n", what, ptowsp_context_error(context).text);
        exit(3);
    }
}

static bool write_file(void *user, const void *text, size_t length) {
    file *f = user;
    f->data = not_null(realloc(f->data, f->size + length));
    memcpy(f->data + f->size, text, length);
    f->size += length;
    return true;
}

static void remember(const ptowsp_module *module, ptowsp_parse_kernel kernel) {
    if (made_count == KERNEL_MAX) {
        fprintf(stderr, "saved_programs: more than %d kernels\n", KERNEL_MAX);
        exit(3);
    }
    const size_t size = strlen(kernel.name) + 1;
    kernel.name = memcpy(not_null(malloc(size)), kernel.name, size);
    made[made_count].module = module;
    made[made_count++].kernel = kernel;
}

ptowsp_kernel __wrap_ptowsp_kernel_make(ptowsp_module *module, const ptowsp_kernel_desc *desc) {
    if (desc && desc->name) {
        const ptowsp_parse_kernel kernel = {.name = desc->name,
                                            .fn = desc->fn,
                                            .cost = desc->cost,
                                            .user = desc->user,
                                            .source = desc->source,
                                            .pto = desc->pto};
        remember(module, kernel);
    }
    return __real_ptowsp_kernel_make(module, desc);
}

ptowsp_status __wrap_ptowsp_module_parse(ptowsp_context *context, const char *text, size_t length,
                                         const ptowsp_parse_desc *desc, ptowsp_module **out_module,
                                         ptowsp_text_place *out_place) {
    ptowsp_status status =
        __real_ptowsp_module_parse(context, text, length, desc, out_module, out_place);
    for (uint32_t i = 0; status == PTOWSP_OK && desc && i < desc->kernel_count; i++) {
        remember(*out_module, desc->kernels[i]);
    }
    default_cycles = desc ? desc->default_cycles : 0;
    return status;
}

void __wrap_ptowsp_module_destroy(ptowsp_module *module) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < made_count; i++) {
        if (made[i].module != module) {
            made[left++] = made[i];
        } else {
            free((void *)(uintptr_t)made[i].kernel.name);
        }
    }
    made_count = left;
    __real_ptowsp_module_destroy(module);
}

// What cannot be created is refused as if nothing were saved.
ptowsp_status __wrap_ptowsp_program_create(ptowsp_context *context, ptowsp_module *module,
                                           const ptowsp_program_desc *desc,
                                           ptowsp_program **out_program) {
    ptowsp_status status = __real_ptowsp_program_create(context, module, desc, out_program);
    const char *is_saved = getenv("SAVED_PROGRAMS");
    if (status != PTOWSP_OK || (is_saved && strcmp(is_saved, "no") == 0)) {
        return status;
    }
    file saved = {NULL, 0};
    const ptowsp_output text = {write_file, &saved};
    ptowsp_parse_kernel kernels[KERNEL_MAX];
    ptowsp_parse_desc attached = {.kernels = kernels, .default_cycles = default_cycles};
    for (uint32_t i = 0; i < made_count; i++) {
        if (made[i].module == module) {
            kernels[attached.kernel_count++] = made[i].kernel;
        }
    }
    ptowsp_program_destroy(*out_program);
    check(context, "save", ptowsp_program_save(context, module, desc, text));
    check(context, "load",
          ptowsp_program_load(context, saved.data, saved.size, &attached, out_program, NULL));
    free(saved.data);
    return PTOWSP_OK;
}

ptowsp_status __wrap_ptowsp_run_execute(ptowsp_run *run, const ptowsp_run_options *options) {
    const ptowsp_status status = __real_ptowsp_run_execute(run, options);
    const char *path = getenv("FINGERPRINTS");
    FILE *out = path ? fopen(path, "a") : NULL;
    ptowsp_fingerprint found;
    if (out && ptowsp_run_fingerprint(run, &found) == PTOWSP_OK) {
        fprintf(out, "%016llx %016llx\n", (unsigned long long)found.program,
                (unsigned long long)found.bindings);
    }
    if (out) {
        fclose(out);
    }
    return status;
}
