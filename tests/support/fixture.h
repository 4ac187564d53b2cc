// A context for each test, and what a test makes there of a text: module, program, run. All of it is freed
// after the test, also where one has failed. Programs whose times, data or errors are all that matters
// are cases (tests/README.md); this is for tests that need more.

#ifndef FIXTURE_H
#define FIXTURE_H

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

// Back to the context alone.
static inline void fixture_clear(fixture *f) {
    test_destroy(f->run, f->program, f->module, NULL);
    f->run = NULL;
    f->program = NULL;
    f->module = NULL;
}

static inline void fixture_free(fixture *f) {
    fixture_clear(f);
    ptowsp_context_destroy(f->context);
}

static inline int teardown(void **state) {
    fixture_free((fixture *)*state);
    return 0;
}

static inline void module_make(fixture *f, const char *text, const ptowsp_parse_desc *attached) {
    test_ok(f->context,
            ptowsp_module_parse(f->context, text, strlen(text), attached, &f->module, NULL));
}

// Makes program and run of a module: of the one in the text, or (NULL) the one that has been made.
static inline void program_make(fixture *f, const char *text, const ptowsp_parse_desc *attached,
                                const ptowsp_program_desc *desc) {
    if (text) {
        module_make(f, text, attached);
    }
    test_ok(f->context, ptowsp_program_create(f->context, f->module, desc, &f->program));
    test_ok(f->context, ptowsp_run_create(f->context, f->program, &f->run));
}

// Executes with records; the kernels of the program have functions or are tile kernels.
static inline void fixture_run(const fixture *f) {
    const ptowsp_run_options options = {.record_tasks = true};
    test_ok(f->context, ptowsp_run_execute(f->run, &options));
}

// A call has failed like this: the status, and a part of the text, or NULL.
static inline void fixture_refused(const fixture *f, ptowsp_status got, ptowsp_status status,
                                   const char *part) {
    const char *text = ptowsp_context_error(f->context).text;
    if (got != status || (part && !strstr(text, part))) {
        fail_msg("%s: %s, and not %s: %s", ptowsp_status_name(got), text,
                 ptowsp_status_name(status), part ? part : "");
    }
}

#endif
