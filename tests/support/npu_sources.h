// Sources of the kernels of random programs (workload_program.h) and random pipelines
// (pipeline_build.h), for trees that are emitted of them. They do what ref_kernel_run and
// sim_kernel_fn do, which know their test: these only the task.

#ifndef PTOWSP_NPU_SOURCES_H
#define PTOWSP_NPU_SOURCES_H

#include "pipeline_reference.h"
#include "workload_program.h"

// The source of all kernels of a program: its text lives until the next one.
static inline const char *ref_program_source(const ref_program *p) {
    static char text[sizeof ref_work_source + REF_KERNEL_MAX * 600];
    size_t size = sizeof text, at = 0;
    at += (size_t)snprintf(text, size, "%s\n", ref_work_source);
    for (int k = 0; k < p->kernel_count; k++) {
        const ref_kernel *kernel = &p->kernels[k];
        const ref_work work = ref_work_of(kernel);
        char cycles[80];
        snprintf(cycles, sizeof cycles, "ref_work_cycles(&rk_%d, task->args, task->arg_count)", k);
        at += (size_t)snprintf(
            text + at, size - at,
            "static const ref_work rk_%d = {0x%llxu, %d, {%d, %d, %d}, {%d, %d, %d}};\n"
            "static ptowsp_cycles rk_run_%d(const ptowsp_task *task, void *user) {\n"
            "    const uint64_t mixed = user ? 0 : ref_work_run(&rk_%d, task);\n"
            "    return user ? ptowsp_task_fail(PTOWSP_KERNEL_FAILED) : %s + mixed %% 4;\n}\n",
            k, (unsigned long long)work.salt, work.cycles_shape, work.is_in[0], work.is_in[1],
            work.is_in[2], work.is_out[0], work.is_out[1], work.is_out[2], k, k,
            kernel->cost == REF_COST_RETURNED ? cycles : "0");
        if (kernel->cost == REF_COST_FUNCTION) {
            at += (size_t)snprintf(
                text + at, size - at,
                "static ptowsp_cycles rk_cost_%d(const ptowsp_task *task, void *user) {\n"
                "    (void)user;\n    return %s;\n}\n",
                k, cycles);
        }
        assert_true(at < size);
    }
    return text;
}

static inline void ref_kernel_source(const ref_program *p, int k, ptowsp_kernel_desc *desc) {
    static char names[REF_KERNEL_MAX][2][16];
    snprintf(names[k][0], sizeof names[k][0], "rk_run_%d", k);
    snprintf(names[k][1], sizeof names[k][1], "rk_cost_%d", k);
    desc->source.text = ref_program_source(p);
    desc->source.fn = names[k][0];
    desc->source.cost = desc->cost ? names[k][1] : NULL;
}

#define REF_KERNEL_SOURCE(program, k, desc) ref_kernel_source(program, k, desc)

static inline void sim_kernel_source(ptowsp_kernel_desc *desc) {
    desc->source.text = sim_source;
    desc->source.fn = "sim_work";
    desc->source.cost = desc->cost ? "sim_kernel_cost" : NULL;
}

#define SIM_KERNEL_SOURCE(desc) sim_kernel_source(desc)

#endif
