// Random programs, read: an interpreter of their statements (read_walk.h), which knows nothing of
// the library but what it says of a program, runs every kernel with the arguments and keys that the
// slow reference of workload_reference.h expects, in program order, and leaves the same data and
// slots behind as an execution does.

#include "workload_sample.h"

#include "read_walk.h"

enum { PROGRAMS = LANE_IS_CHECKED ? 30 : 120 };

static uint64_t key_of(const read_walker *w, uint32_t key) {
    return key ? read_eval(w, key) : 0;
}

static void run_task(read_walker *w, uint32_t statement, const ptowsp_task *task, void *user) {
    sample *s = (sample *)user;
    const ptowsp_task_info info =
        ptowsp_program_read(w->program)
            ->tasks[ptowsp_program_read(w->program)->statements[statement].task];
    if (task->index >= (uint64_t)s->x.task_count) {
        complain(s, NULL, -1, "more tasks than expected");
        return;
    }
    const ref_task *expected = &s->x.tasks[task->index];
    const ref_stmt *stmt = &s->program.stmts[expected->stmt];
    assert_int_equal(info.kernel, s->module.kernels[stmt->kernel].id);
    assert_int_equal(ptowsp_program_read(w->program)->statements[statement].node,
                     s->module.nodes[expected->stmt].id);
    if (key_of(w, info.dispatch_key) != expected->dispatch_key ||
        key_of(w, info.priority_key) != expected->priority_key ||
        key_of(w, info.stream_key) != expected->stream_key) {
        complain(s, NULL, (int)task->index, "a key");
    }
    ptowsp_cycles cycles = ref_kernel_run(task, &s->module.users[stmt->kernel]);
    if (cycles > PTOWSP_CYCLES_MAX) {
        complain(s, NULL, (int)task->index, "its arguments");
    }
}

static bool is_priority_signed(const sample *s) {
    return s->program.exprs[s->schedule.priority_key].type == PTOWSP_TYPE_I64;
}

static void check_program(sample *s, const ptowsp_program *program) {
    read_check_form(program);
    ptowsp_run *run = test_run_of(s->context, program);
    assert_ptr_equal(ptowsp_run_program(run), program);
    ref_bind(run, &s->program, &s->bindings, &s->memory, true);
    if (s->schedule.priority_key) {
        assert_int_equal(ptowsp_program_read(program)->is_priority_signed, is_priority_signed(s));
    }
    read_walker *w = (read_walker *)calloc(1, sizeof *w);
    assert_non_null(w);
    w->program = program;
    w->run = run;
    w->task = run_task;
    w->user = s;
    read_walk_program(w);
    assert_true(w->task_count == (uint64_t)s->x.task_count);
    check_data(s, run);
    for (uint32_t i = 0; i < REF_SLOT_COUNT; i++) {
        assert_true(w->slots[i] == s->x.slots[i]);
    }
    free(w);
    ptowsp_run_destroy(run);
}

TEST(read__statements_say_what_the_reference_does) {
    uint64_t seed = test_seed() + 22, tasks = 0;
    for (unsigned number = 0; TEST_ROUNDS(number, PROGRAMS); number++) {
        sample *s = sample_make(seed, number);
        for (unsigned i = 0; i < 2; i++) {
            ptowsp_program *program = NULL;
            sample_schedule(s, i);
            sample_expect(s);
            if (sample_compile(s, &s->module, &program) == PTOWSP_OK) {
                check_program(s, program);
                tasks += (uint64_t)s->x.task_count;
            }
            ptowsp_program_destroy(program);
        }
        sample_free(s);
    }
    print_message("%llu tasks\n", (unsigned long long)tasks);
    assert_met(tasks > 1000);
}
