// Random programs of workload_sample.h, and pipelines of pipeline_random.h, in the library and as emitted
// trees.

#ifndef PTOWSP_NPU_EQUAL_SAMPLE_H
#define PTOWSP_NPU_EQUAL_SAMPLE_H

#include "npu_equal.h"

#include "npu_sources.h"

#include "pipeline_random.h"
#include "workload_sample.h"

// The schedule with its keys, as expressions of the sample's module.
static inline ptowsp_schedule npu_sample_schedule(sample *s) {
    ptowsp_schedule schedule = s->schedule.schedule;
    schedule.dispatch_key = ref_build_expr(&s->module, s->schedule.dispatch_key);
    schedule.priority_key = ref_build_expr(&s->module, s->schedule.priority_key);
    schedule.stream_key = ref_build_expr(&s->module, s->schedule.stream_key);
    return schedule;
}

static inline void npu_explain_sample(void *user) {
    sample *s = (sample *)user;
    const ptowsp_output text = {write_message, NULL};
    const ptowsp_schedule schedule = npu_sample_schedule(s);
    ptowsp_module_print(s->module.module, text);
    ptowsp_schedule_print(&schedule, text);
}

// Compares one binding; the library's own outcome is that of the slow reference, too.
static inline void npu_compare_sample(sample *s, ptowsp_run *run, ptowsp_npu *npu,
                                      uint64_t random) {
    npu_subject subject = {0};
    sample_expect(s);
    ref_bind(run, &s->program, &s->bindings, &s->memory, true);
    subject.context = s->context;
    subject.run = run;
    subject.npu = npu;
    subject.model = PTOWSP_MODEL_UNIT;
    subject.slot_count = REF_SLOT_COUNT;
    subject.random = random;
    subject.explain = npu_explain_sample;
    subject.user = s;
    for (int t = 0; t < s->program.tensor_count; t++) {
        if (s->program.tensors[t].memory_of == t) {
            npu_block_add(&subject, s->memory.tensors[t],
                          (size_t)s->bindings.block_size[t] *
                              ref_dtype_size(s->program.tensors[t].dtype));
        }
    }
    npu_subject_check(&subject);
    assert_int_equal(subject.status, s->expected.status);
    assert_true(subject.makespan == s->expected.makespan);
    check_data(s, run);
}

// Whether devices do the sample's schedule; if not, that it is refused in the words of the check.
static inline bool npu_sample_is_supported(sample *s, const ptowsp_program *program) {
    const ptowsp_schedule schedule = npu_sample_schedule(s);
    char text[256];
    if (ptowsp_schedule_check(s->module.module, &schedule, PTOWSP_TARGET_ASCEND_NPU) !=
        PTOWSP_UNSUPPORTED) {
        return true;
    }
    snprintf(text, sizeof text, "%s", ptowsp_context_error(s->context).text);
    npu_check_refused(s->context, program, text);
    return false;
}

// -- pipelines ------------------------------------------------------------------------------------

static inline void npu_explain_pipeline(void *user) {
    const sim_sample *s = (const sim_sample *)user;
    const ptowsp_output text = {sim_write, NULL};
    ptowsp_module_print(s->built.module, text);
}

static inline void npu_compare_pipeline(sim_sample *s, ptowsp_run *run, ptowsp_npu *npu,
                                        uint64_t random) {
    npu_subject subject = {0};
    sim_bind(&s->built, &s->b, run);
    s->built.call_count = 0;
    memset(s->built.data, 0, sizeof s->built.data);
    subject.context = s->context;
    subject.run = run;
    subject.npu = npu;
    subject.model = PTOWSP_MODEL_UNIT;
    subject.slot_count = SIM_SLOT_COUNT + 1;
    subject.random = random;
    subject.explain = npu_explain_pipeline;
    subject.user = s;
    npu_block_add(&subject, s->built.data, sizeof s->built.data);
    npu_subject_check(&subject);
    assert_int_equal(subject.status, s->status);
    if (s->status == PTOWSP_OK) {
        uint64_t total = (uint64_t)(s->around.before + s->around.after);
        for (int r = 0; r < s->round_count; r++) {
            total += s->rounds[r].makespan;
        }
        assert_true(subject.makespan == total);
    }
}

#endif
