// A DeepSeek block (V3) in decode by tile kernels (common/deepseek.h): latent attention by an
// attention plan, a router with groups, experts by a MoE plan, and a shared one. The program runs
// twice a step, before and after the host has chosen the experts; so it does in both cost models.
// Results are compared with the block in double precision, and so is the choice of experts.

#include "ptowsp.h"

#include "common/command.h"
#include "common/deepseek.h"

#include <stdio.h>

enum { LANES = 8 };

static void print_phase(const ptowsp_run *run, const char *title, const char *model) {
    const ptowsp_run_stats *stats = ptowsp_run_result(run);
    printf("  %-10s %s %5llu tasks %10llu cycles, makespan %9llu on %u lanes\n", title, model,
           (unsigned long long)stats->task_count, (unsigned long long)stats->busy_cycles,
           (unsigned long long)stats->makespan_cycles, (unsigned)stats->lane_count);
}

int main(int argc, char **argv) {
    static const ptowsp_model models[] = {PTOWSP_MODEL_UNIT, PTOWSP_MODEL_A2A3};
    static const char *const names[] = {"unit", "a2a3"};
    static deepseek b;
    setup s;
    setup_create(&s, argc, argv);
    deepseek_make(&b, &s, LANES);
    const ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_WORK_STEALING,
                                      .lane_count = LANES,
                                      .dependencies = PTOWSP_DEPENDENCIES_HYBRID};
    const ptowsp_program_desc desc = {.schedule = &schedule};
    ptowsp_program *program;
    ptowsp_run *run;
    command_check(s.context, ptowsp_program_create(s.context, s.module, &desc, &program));
    command_check(s.context, ptowsp_run_create(s.context, program, &run));
    printf("a block of %d requests, %d wide, %d heads of %d + %d, top %d of %d experts of %d\n",
           DEEPSEEK_TOKENS, DEEPSEEK_DIM, DEEPSEEK_HEADS, DEEPSEEK_LATENT, DEEPSEEK_ROPE,
           DEEPSEEK_TOP_K, DEEPSEEK_EXPERTS, DEEPSEEK_HIDDEN);
    bool is_good = true;
    for (int i = 0; i < 2; i++) {
        const ptowsp_run_options options = {.cost = {.model = models[i]},
                                            .lane_count = (uint32_t)s.thread_count};
        deepseek_fill(&b, &s);
        setup_bind(&s, run);
        command_check(s.context, ptowsp_run_execute(run, &options));
        print_phase(run, "attention", names[i]);
        deepseek_route(&b, &s);
        setup_bind(&s, run);
        command_check(s.context, ptowsp_run_execute(run, &options));
        print_phase(run, "experts", names[i]);
        is_good &= deepseek_check(&b);
        printf("  experts    %u units, busiest lane %.3f of the mean; %s as in double\n",
               (unsigned)b.experts.unit_count, b.experts.cost_max / b.experts.cost_mean,
               b.has_same_experts ? "chosen" : "NOT chosen");
        is_good &= setup_report(b.y, b.error, DEEPSEEK_ALLOWED);
    }
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
    deepseek_destroy(&b);
    setup_destroy(&s);
    return is_good ? 0 : 1;
}
