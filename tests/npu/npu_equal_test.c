// Emitted trees of random programs do what the library does: the programs of workload_program.h,
// with all loops, conditions, slots, calls, edges, views and keys, under random schedules, and the
// pipelines of pipeline_random.h. Each is built once, and bound several times: sizes, lengths,
// symbols, arrays and data are not compiled in. Schedules that a device does not do are refused by
// name. See npu_equal.h for how it is run.

#include "npu_equal_sample.h"

enum {
    PROGRAMS = 16,  // of each kind, unless NPU_EQUAL_COUNT says otherwise
    SCHEDULES = 2,  // of a program
    BINDINGS = 4,   // of a tree
    PROGRAM_MAX = 2000
};

// -- workloads ------------------------------------------------------------------------------------

static void compare_program(sample *s, const ptowsp_program *program) {
    ptowsp_npu *npu = npu_tree_build(s->context, program);
    if (!npu) {
        return;
    }
    ptowsp_run *run = test_run_of(s->context, program);
    for (unsigned i = 0; i < BINDINGS; i++) {
        npu_compare_sample(s, run, npu, s->number * 100 + i);
        sample_rebind(s);
    }
    ptowsp_run_destroy(run);
    ptowsp_npu_destroy(npu);
}

// Draws schedules until some are done by devices: those before are refused.
static void compare_schedules(sample *s) {
    for (unsigned i = 0, taken = 0; i < 60 && taken < SCHEDULES; i++) {
        ptowsp_program *program = NULL;
        sample_schedule(s, i);
        if (s->schedule.schedule.window > 2 && (s->number + i) % 2 == 0) {
            s->schedule.schedule.window =
                1 + i % 2;  // larger ones than there are lanes seldom tell
        }
        if (sample_compile(s, &s->module, &program) != PTOWSP_OK) {
            continue;  // it would be stuck
        }
        if (npu_sample_is_supported(s, program)) {
            char name[64];
            snprintf(name, sizeof name, "workload %u, schedule", s->number);
            npu_doing(name, i);
            compare_program(s, program);
            taken++;
        }
        ptowsp_program_destroy(program);
    }
}

// The program of this number, mostly one of many tasks.
static sample *sample_of(uint64_t seed, unsigned number) {
    int least = number % 4 ? 25 : 1;
    for (unsigned i = 0;; i++) {
        sample *s = sample_make(seed + i * UINT64_C(7777777), number);
        if (s->x.task_count >= least) {
            return s;
        }
        sample_free(s);
    }
}

static void npu__trees_of_random_workloads_do_what_the_library_does(void **state) {
    unsigned number = *(const unsigned *)*state;
    npu_doing("workload", number);
    sample *s = sample_of(test_seed() + 70, number);
    compare_schedules(s);
    sample_free(s);
}

// -- pipelines ------------------------------------------------------------------------------------

static void npu__trees_of_random_pipelines_do_what_the_library_does(void **state) {
    unsigned number = *(const unsigned *)*state;
    npu_doing("pipeline", number);
    sim_sample *s = sim_sample_random(test_seed() + 71, number);
    s->around.has_data = number % 4 != 0;
    sim_sample_build(s);
    if (s->built.status != PTOWSP_OK) {
        assert_int_equal(s->built.status, PTOWSP_STUCK);
        npu_now.tally.skipped++;
        sim_sample_free(s);
        return;
    }
    ptowsp_npu *npu = npu_tree_build(s->context, s->built.program);
    ptowsp_run *run = test_run_of(s->context, s->built.program);
    uint64_t random = number;
    bool has_latency = false;
    for (unsigned i = 0; i < BINDINGS && npu; i++) {
        npu_compare_pipeline(s, run, npu, number * 100 + i);
        has_latency = has_latency || s->b.has_latency;  // what is bound once stays bound
        do {
            sim_bindings_random(&s->p, &random, &s->b);
            s->b.has_latency = s->b.has_latency || has_latency;
        } while (!sim_sample_expect(s));
    }
    ptowsp_run_destroy(run);
    ptowsp_npu_destroy(npu);
    sim_sample_free(s);
}

int main(void) {
    static struct CMUnitTest tests[2 * PROGRAM_MAX];
    static unsigned numbers[PROGRAM_MAX];
    unsigned first = (unsigned)npu_number_of("NPU_EQUAL_FIRST", 0);
    unsigned count = (unsigned)npu_number_of("NPU_EQUAL_COUNT", test_share(PROGRAMS));
    const char *kind = getenv("NPU_EQUAL_KIND");
    size_t test_count = 0;
    count = count > PROGRAM_MAX ? PROGRAM_MAX : count;
    for (unsigned i = 0; i < count; i++) {
        numbers[i] = first + i;
    }
    for (unsigned i = 0; i < count && (!kind || strcmp(kind, "pipelines") != 0); i++) {
        const struct CMUnitTest test = cmocka_unit_test_prestate(
            npu__trees_of_random_workloads_do_what_the_library_does, &numbers[i]);
        tests[test_count++] = test;
    }
    for (unsigned i = 0; i < count && (!kind || strcmp(kind, "workloads") != 0); i++) {
        const struct CMUnitTest test = cmocka_unit_test_prestate(
            npu__trees_of_random_pipelines_do_what_the_library_does, &numbers[i]);
        tests[test_count++] = test;
    }
    int failed = npu_run_tests("npu_equal", tests, test_count);
    const char *trees = getenv("NPU_EQUAL_TREES");
    if (failed == 0 && !(trees && *trees) && count >= PROGRAMS && !kind) {
        assert_true(npu_now.tally.runs > 500 && npu_now.tally.refused > 10);
        assert_true(npu_now.tally.full > 50 && npu_now.tally.errors > 0);
    }
    return failed;
}
