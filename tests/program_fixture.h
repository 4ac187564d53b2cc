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

static int setup(void **state) {
    static fixture f;
    memset(&f, 0, sizeof f);
    *state = &f;
    return ptowsp_context_create(NULL, &f.context) != PTOWSP_OK;
}

static int teardown(void **state) {
    fixture *f = (fixture *)*state;
    ptowsp_run_destroy(f->run);
    ptowsp_program_destroy(f->program);
    ptowsp_module_destroy(f->module);
    ptowsp_context_destroy(f->context);
    return 0;
}

#endif
