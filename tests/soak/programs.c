// Soak cases of programs: random ones on lanes, and saved ones that are loaded.

#include "soak.h"

#include "workload_sample.h"

enum { ROUNDS = 6, SAVED_MAX = 1 << 20, FAILURE = PTOWSP_DIFFERENT };

// What happens in the kernel of a task.
typedef struct happening {
    ptowsp_run *run;
    soak_fault fault;
    uint64_t task;  // the task it happens in
    uint64_t hits;  // atomic
} happening;

static ptowsp_status happen(void *user, const ptowsp_task *task) {
    happening *h = (happening *)user;
    if (task->index != h->task) {
        return PTOWSP_OK;
    }
    __atomic_fetch_add(&h->hits, 1, __ATOMIC_RELAXED);
    if (h->fault == SOAK_BY_cancel) {
        ptowsp_run_cancel(h->run);
        return PTOWSP_OK;
    }
    return (ptowsp_status)FAILURE;
}

typedef struct program_case {
    sample *s;
    soak_memory memory;
    lane_watch watch;
    uint32_t lane_count;
    const outcome *first;
} program_case;

// The status with which a fault ends a run.
static bool is_of(soak_fault fault, ptowsp_status status) {
    switch (fault) {
    case SOAK_BY_memory: return status == PTOWSP_OUT_OF_MEMORY;
    case SOAK_BY_thread: return status == PTOWSP_SYSTEM_FAILED;
    case SOAK_BY_kernel: return status == (ptowsp_status)FAILURE;
    case SOAK_BY_cancel: return status == PTOWSP_CANCELLED;
    default: return false;
    }
}

static void run_well(program_case *c, ptowsp_run *run) {
    lane_watch_restart(&c->watch, c->lane_count, 0);
    sample_refresh(c->s);
    ptowsp_status status = check_as_expected(c->s, run, true);
    check_same(c->s, c->first, run, status, "not the same after a fault");
}

// Executes, on this thread or on the run's own; then this thread may cancel as well.
static ptowsp_status execute(program_case *c, ptowsp_run *run, soak_fault fault, uint64_t *random) {
    if (test_random(random) % 2) {
        return sample_execute(c->s, run, PTOWSP_RUN_EXECUTE, true);
    }
    ptowsp_run_options options = {.record_tasks = true, .lane_count = c->s->lane_count};
    c->s->module.watch.calls = 0;
    const ptowsp_status status = ptowsp_run_start(run, &options);
    if (status != PTOWSP_OK) {
        return status;
    }
    if (fault == SOAK_BY_cancel) {
        lane_yield(test_random(random) % 40);
        ptowsp_run_cancel(run);
    }
    return ptowsp_run_wait(run);
}

static void run_badly(program_case *c, ptowsp_run *run, soak_fault fault, uint64_t *random) {
    sample *s = c->s;
    const uint64_t tasks = s->x.task_count > 0 ? (uint64_t)s->x.task_count : 1;
    happening h = {run, fault, test_random(random) % tasks, 0};
    const bool is_inside = fault == SOAK_BY_kernel || fault == SOAK_BY_cancel;
    lane_watch_restart(&c->watch, c->lane_count, test_random(random));
    sample_refresh(s);
    ref_bind(run, &s->program, &s->bindings, &s->memory, true);
    s->module.watch.interrupt = is_inside ? happen : NULL;
    s->module.watch.interrupt_user = &h;
    if (fault == SOAK_BY_memory) {
        soak_refuse_memory(&c->memory, random, 12);
    } else if (fault == SOAK_BY_thread) {
        soak_refuse_threads(random);
    }
    ptowsp_status status = execute(c, run, fault, random);
    soak_allow_memory(&c->memory);
    soak_allow_all();
    s->module.watch.interrupt = NULL;
    soak_count(fault, is_of(fault, status));
    if (is_of(fault, status)) {
        assert_true(fault != SOAK_BY_kernel || h.hits > 0);
        assert_true(strlen(ptowsp_context_error(s->run_context).text) > 0);
    } else if (status == PTOWSP_OK) {
        assert_true(h.hits == 0 || fault == SOAK_BY_cancel);  // cancelled after its last task
        check_same(s, c->first, run, status, "a fault that does not show changes something");
        check_data(s, run);
    } else {
        check_same(s, c->first, run, status, "another status");
    }
}

static void run_rounds(program_case *c, const ptowsp_program *program, uint64_t *random) {
    ptowsp_run *run = NULL;
    sample *s = c->s;
    c->lane_count = test_random_u32(random, 1, 8);
    s->run_context = soak_context(&c->memory, c->lane_count, random);
    s->lane_count = c->lane_count;
    s->module.watch.lanes = &c->watch;
    for (int i = 0; i < ROUNDS; i++) {
        const soak_fault fault = (soak_fault)test_random_in(random, 0, SOAK_BY_cancel);
        if (!run) {
            if (fault == SOAK_BY_memory) {
                soak_refuse_memory(&c->memory, random, 4);
            }
            ptowsp_status status = ptowsp_run_create(s->run_context, program, &run);
            soak_allow_memory(&c->memory);
            assert_true(status == PTOWSP_OK || status == PTOWSP_OUT_OF_MEMORY);
            assert_true(status == PTOWSP_OK || !run);
            soak_count(fault, status != PTOWSP_OK);
            continue;
        }
        run_badly(c, run, fault, random);
        if (test_random(random) % 2) {
            run_well(c, run);
        }
        if (test_random(random) % 4 == 0) {
            ptowsp_run_destroy(run);
            run = NULL;
        }
    }
    ptowsp_run_destroy(run);
    soak_context_end(s->run_context, &c->memory);
    s->module.watch.lanes = NULL;
    s->run_context = s->context;
    s->lane_count = 0;
}

void soak_run_program(uint64_t seed) {
    uint64_t random = seed;
    ptowsp_program *program = NULL;
    ptowsp_run *run = NULL;
    program_case c = {0};
    sample *s = c.s = sample_make(test_random(&random), 0);
    sample_schedule(s, 0);
    sample_expect(s);
    ptowsp_status status = sample_compile(s, &s->module, &program);
    if (status == PTOWSP_OK) {
        assert_ok(ptowsp_run_create(s->context, program, &run));
        outcome *first = outcome_of(run, check_execution(s, run));
        c.first = first;
        lane_watch_begin(&c.watch, REF_TASK_MAX);
        run_rounds(&c, program, &random);
        lane_watch_end(&c.watch);
        ptowsp_run_destroy(run);
        ptowsp_program_destroy(program);
        free(first);
    } else {
        assert_true(status == PTOWSP_STUCK && s->expected.status == PTOWSP_STUCK);
    }
    sample_free(s);
}

// -- saved programs -------------------------------------------------------------------------------

// Loads a text, whose memory is refused at some point, or which has another byte somewhere.
static void load_badly(const ptowsp_parse_desc *attached, char *saved, size_t length,
                       uint64_t *random) {
    soak_memory memory;
    ptowsp_context *context = soak_context(&memory, 1, random);
    ptowsp_program *loaded = NULL;
    const bool is_damaged = test_random(random) % 2;
    const size_t at = (size_t)(test_random(random) % length);
    const char before = saved[at];
    if (is_damaged) {
        saved[at] = (char)(before ^ (1 << test_random(random) % 8));
    } else {
        soak_refuse_memory(&memory, random, 400);
    }
    ptowsp_status status = ptowsp_program_load(context, saved, length, attached, &loaded, NULL);
    assert_true(!is_damaged || status != PTOWSP_OK);  // the checksum says so
    assert_true(is_damaged || status == PTOWSP_OK || status == PTOWSP_OUT_OF_MEMORY);
    assert_true((status == PTOWSP_OK) == (loaded != NULL));
    soak_count(is_damaged ? SOAK_BY_disk : SOAK_BY_memory, status != PTOWSP_OK);
    saved[at] = before;
    ptowsp_program_destroy(loaded);
    soak_context_end(context, &memory);
}

void soak_run_saved(uint64_t seed) {
    static char saved[SAVED_MAX];
    uint64_t random = seed;
    ptowsp_schedule schedule;
    ptowsp_program *loaded = NULL;
    ptowsp_run *run = NULL;
    sample *s = sample_make(test_random(&random), 0);
    sample_kernels kernels;
    const ptowsp_parse_desc attached = sample_attach(s, &kernels);
    sample_schedule(s, 0);
    const ptowsp_program_desc desc = sample_desc(s, &s->module, &schedule);
    ptowsp_output_buffer buffer = {saved, SAVED_MAX, 0};
    ptowsp_status status =
        ptowsp_program_save(s->context, s->module.module, &desc, ptowsp_output_to_buffer(&buffer));
    if (status == PTOWSP_OK) {
        assert_true(buffer.length < SAVED_MAX);
        for (int i = 0; i < ROUNDS; i++) {
            load_badly(&attached, saved, buffer.length, &random);
        }
        assert_ok(ptowsp_program_load(s->context, saved, buffer.length, &attached, &loaded, NULL));
        assert_ok(ptowsp_run_create(s->context, loaded, &run));
        check_execution(s, run);
        ptowsp_run_destroy(run);
        ptowsp_program_destroy(loaded);
    } else {
        assert_int_equal(status, PTOWSP_STUCK);
    }
    sample_free(s);
}
