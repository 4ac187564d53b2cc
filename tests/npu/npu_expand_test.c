// aicpu/expand.cpp of random programs, compiled without warnings and walked by words that only ask
// and tell (tests/npu/words): every task comes in program order with the arguments, tiles and keys
// that the slow reference of workload_reference.h expects, and data and slots are the same at the
// end.

#define _GNU_SOURCE  // mkdtemp

#include "workload_sample.h"

#include "npu_expand_run.h"

enum { PROGRAMS = 60 };

typedef struct walk {
    sample *s;
    const ptowsp_program *program;
} walk;

static void run_task(void *user, const words_task *task, const ptowsp_task *as_task) {
    sample *s = ((walk *)user)->s;
    if (as_task->index >= (uint64_t)s->x.task_count) {
        complain(s, NULL, -1, "more tasks than expected");
        return;
    }
    const ref_task *expected = &s->x.tasks[as_task->index];
    const ref_stmt *stmt = &s->program.stmts[expected->stmt];
    assert_int_equal(task->kernel, s->module.kernels[stmt->kernel].id);
    if (task->dispatch != expected->dispatch_key || task->priority != expected->priority_key ||
        task->stream != expected->stream_key) {
        complain(s, NULL, (int)as_task->index, "a key");
    }
    ptowsp_cycles cycles = ref_kernel_run(as_task, &s->module.users[stmt->kernel]);
    if (cycles > PTOWSP_CYCLES_MAX) {
        complain(s, NULL, (int)as_task->index, "its arguments");
    }
}

static void check_walk(const words_unit *unit, uint32_t number, walk *w) {
    sample *s = w->s;
    words_host host;
    sample_expect(s);
    ptowsp_run *run = test_run_of(s->context, w->program);
    ref_bind(run, &s->program, &s->bindings, &s->memory, true);
    words_over over = {run, run_task, w, 0, 0, 0};
    words_walk(unit, number, &over, &host);
    assert_int_equal(over.failed_place, 0);
    assert_true(over.task_count == (uint64_t)s->x.task_count);
    check_data(s, run);
    for (uint32_t i = 0; i < REF_SLOT_COUNT; i++) {
        assert_true(host.slots[i] == s->x.slots[i]);
    }
    ptowsp_run_destroy(run);
}

TEST(expand__walks_random_programs_as_the_reference_does) {
    if (!words_compiler()) {
        print_message("no C++ compiler\n");
        skip();
    }
    uint64_t seed = test_seed() + 33, tasks = 0;
    static walk walks[PROGRAMS];
    static ptowsp_program *programs[PROGRAMS];
    words_unit unit = {0};
    for (unsigned number = 0; TEST_ROUNDS(number, PROGRAMS); number++) {
        walk *w = &walks[number];
        w->s = sample_make(seed, number);
        do {
            sample_schedule(w->s, 0);
        } while (sample_compile(w->s, &w->s->module, &programs[number]) != PTOWSP_OK);
        w->program = programs[number];
        words_unit_add(&unit, w->s->context, w->program);
    }
    words_unit_build(&unit);
    for (uint32_t number = 0; TEST_ROUNDS(number, PROGRAMS); number++) {
        check_walk(&unit, number, &walks[number]);
        sample_rebind(walks[number].s);
        check_walk(&unit, number, &walks[number]);
        tasks += (uint64_t)walks[number].s->x.task_count;
        ptowsp_program_destroy(programs[number]);
        sample_free(walks[number].s);
    }
    words_unit_free(&unit);
    print_message("%llu tasks\n", (unsigned long long)tasks);
    assert_met(tasks > 500);
}
