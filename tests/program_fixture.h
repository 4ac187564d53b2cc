// A context for each test, and what a test makes there of a text: module, program, run. All of it is freed
// behind the test, also where one has failed.

#ifndef PROGRAM_FIXTURE_H
#define PROGRAM_FIXTURE_H

#include "test.h"

typedef struct fixture {
    ptowsp_context *context;
    ptowsp_module *module;
    ptowsp_program *program;
    ptowsp_run *run;
} fixture;

static inline int setup(void **state) {
    static fixture f;
    memset(&f, 0, sizeof f);
    *state = &f;
    return ptowsp_context_create(NULL, &f.context) != PTOWSP_OK;
}

static inline void fixture_free(fixture *f) {
    ptowsp_run_destroy(f->run);
    ptowsp_program_destroy(f->program);
    ptowsp_module_destroy(f->module);
    ptowsp_context_destroy(f->context);
}

static inline int teardown(void **state) {
    fixture_free((fixture *)*state);
    return 0;
}

// Makes program and run of a module: of the one in the text, or (NULL) the one that has been built.
static inline void program_make(fixture *f, const char *text, const ptowsp_parse_desc *attached,
                                const ptowsp_program_desc *desc) {
    if ((text && ptowsp_module_parse(f->context, text, strlen(text), attached, &f->module, NULL) !=
                     PTOWSP_OK) ||
        ptowsp_program_create(f->context, f->module, desc, &f->program) != PTOWSP_OK ||
        ptowsp_run_create(f->context, f->program, &f->run) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(f->context).text);
    }
}

#endif
