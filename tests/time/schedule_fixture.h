// A module of a text whose kernels take as many cycles as their first argument says, and a run of it with
// records, for a schedule at a time. All memory is counted.

#ifndef SCHEDULE_FIXTURE_H
#define SCHEDULE_FIXTURE_H

#include "test.h"

typedef struct fixture {
    test_memory memory;
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
    ptowsp_run *run;
    int64_t data[8 * 12];  // of the tensor `data`, if there is one
    char text[8000];
} fixture;

static inline ptowsp_cycles first_arg(const ptowsp_task *task, void *user) {
    (void)user;
    return (ptowsp_cycles)ptowsp_task_axis(task, 0);
}

// Kernels: names up to NULL.
static inline void fixture_begin(fixture *f, const char *head, const char *body,
                                 const char *const *names, uint32_t lanes) {
    memset(f, 0, sizeof *f);
    ptowsp_context_desc desc = {.resize = test_resize,
                                .resize_user = &f->memory,
                                .threads = lanes > 1 ? PTOWSP_THREADS_OWN : PTOWSP_THREADS_SERIAL,
                                .lane_count = lanes};
    ptowsp_parse_kernel kernels[8] = {0};
    ptowsp_parse_desc attach = {.kernels = kernels};
    assert_ok(ptowsp_context_create(&desc, &f->context));
    while (names[attach.kernel_count]) {
        kernels[attach.kernel_count].name = names[attach.kernel_count];
        kernels[attach.kernel_count].fn = kernels[attach.kernel_count].cost = first_arg;
        attach.kernel_count++;
    }
    snprintf(f->text, sizeof f->text, "%s%s", head, body);
    test_ok(f->context,
            ptowsp_module_parse(f->context, f->text, strlen(f->text), &attach, &f->m, NULL));
}

static inline void fixture_forget(fixture *f) {
    ptowsp_run_destroy(f->run);
    ptowsp_program_destroy(f->program);
    f->run = NULL;
    f->program = NULL;
}

static inline void fixture_end(fixture *f) {
    fixture_forget(f);
    ptowsp_module_destroy(f->m);
    ptowsp_context_destroy(f->context);
    assert_int_equal(f->memory.live_blocks, 0);
}

static inline ptowsp_status run_on(fixture *f, const ptowsp_schedule *schedule, uint32_t lanes) {
    fixture_forget(f);
    ptowsp_program_desc desc = {NULL, schedule};
    ptowsp_status status = ptowsp_program_create(f->context, f->m, &desc, &f->program);
    status = status ? status : ptowsp_run_create(f->context, f->program, &f->run);
    const ptowsp_buffer buffer = {.data = f->data, .size = sizeof f->data};
    ptowsp_run_options options = {.record_tasks = true, .lane_count = lanes};
    if (status == PTOWSP_OK) {
        (void)ptowsp_run_bind_tensor(f->run, "data", &buffer);
        status = ptowsp_run_execute(f->run, &options);
    }
    return status;
}

// Each allocation of compiling and running under a schedule is refused once.
#define EACH_ALLOCATION_REFUSED(schedule, begin)                                                   \
    EACH_REFUSED(n, 0) {                                                                           \
        fixture f;                                                                                 \
        begin;                                                                                     \
        test_refuse(&f.memory, n);                                                                 \
        has_more = test_was_refused(&f.memory, run_on(&f, schedule, 0));                           \
        fixture_end(&f);                                                                           \
    }

#endif
