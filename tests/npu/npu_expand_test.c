// Trees of random programs, all of them in one object, without warnings (npu_kernel_fixture.h): workloads
// and pipelines do what the library does, which is what the slow references expect. More of them than
// npu_equal_test.c can build one by one.

#define _POSIX_C_SOURCE 200809L

#include "npu_equal_sample.h"
#include "npu_kernel_fixture.h"

enum { PROGRAMS = 60, PIPELINES = 40 };

TEST(expand__trees_of_random_workloads_do_what_the_reference_does) {
    uint64_t seed = test_seed() + 33;
    static sample *samples[PROGRAMS];
    static ptowsp_program *programs[PROGRAMS];
    npu_object o = npu_object_begin();
    o.has_trees = true;
    for (unsigned number = 0; TEST_ROUNDS(number, PROGRAMS); number++) {
        sample *s = samples[number] = sample_make(seed, number);
        for (unsigned i = 0; !programs[number]; i++) {
            ptowsp_program *program = NULL;
            sample_schedule(s, i);
            if (number % 2 && s->schedule.schedule.dispatch != PTOWSP_DISPATCH_WORK_STEALING) {
                s->schedule.schedule.issue = PTOWSP_ISSUE_DATAFLOW;
                s->schedule.schedule.ready = PTOWSP_READY_PRIORITY;
                s->schedule.priority_key = ref_gen_key(&s->program, 2);
            }
            if (sample_compile(s, &s->module, &program) == PTOWSP_OK &&
                npu_sample_is_supported(s, program)) {
                programs[number] = program;
            } else {
                ptowsp_program_destroy(program);
            }
        }
        npu_object_add(&o, s->context, programs[number], false);
    }
    npu_object_build(&o, "");
    for (uint32_t number = 0; TEST_ROUNDS(number, PROGRAMS); number++) {
        sample *s = samples[number];
        npu_doing("workload", number);
        ptowsp_npu *npu = npu_object_tree(&o, number, s->context, programs[number]);
        ptowsp_run *run = test_run_of(s->context, programs[number]);
        npu_compare_sample(s, run, npu, number);
        sample_rebind(s);
        npu_compare_sample(s, run, npu, number);
        ptowsp_run_destroy(run);
        ptowsp_program_destroy(programs[number]);
        sample_free(s);
    }
    npu_object_end(&o);
    print_message("%llu tasks\n", (unsigned long long)npu_now.tally.tasks);
    assert_met(npu_now.tally.tasks > 7000);
}

TEST(expand__trees_of_random_pipelines_do_what_the_reference_does) {
    uint64_t seed = test_seed() + 44, good = 0;
    static sim_sample *samples[PIPELINES];
    npu_object o = npu_object_begin();
    o.has_trees = true;
    for (unsigned number = 0, made = 0; made < PIPELINES; number++) {
        sim_sample *s = sim_sample_random(seed, number);
        s->around.has_data = made % 4 != 0;
        sim_sample_build(s);
        if (s->built.status == PTOWSP_OK) {
            npu_object_add(&o, s->context, s->built.program, false);
            samples[made++] = s;
        } else {
            sim_sample_free(s);
        }
    }
    npu_object_build(&o, "");
    for (uint32_t number = 0; number < PIPELINES; number++) {
        sim_sample *s = samples[number];
        npu_doing("pipeline", number);
        ptowsp_run *run = test_run_of(s->context, s->built.program);
        npu_compare_pipeline(s, run, npu_object_tree(&o, number, s->context, s->built.program),
                             number);
        good += s->status == PTOWSP_OK;
        ptowsp_run_destroy(run);
        sim_sample_free(s);
    }
    npu_object_end(&o);
    print_message("%llu end\n", (unsigned long long)good);
    assert_true(good >= PIPELINES / 2);
}
