#include "published.h"

#include "command.h"
#include "predict_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The number after `count` commas outside quotes.
static double number_at(const char *row, uint32_t count) {
    bool is_quoted = false;
    while (*row && count) {
        is_quoted ^= *row == '"';
        count -= *row++ == ',' && !is_quoted;
    }
    return strtod(row, NULL);
}

double published_us(const char *kernel, const char *shape) {
    char begin[64];
    snprintf(begin, sizeof begin, "%.32s,", kernel);
    for (size_t i = 1; i < sizeof predict_kernel_rows / sizeof *predict_kernel_rows; i++) {
        const char *row = predict_kernel_rows[i];
        if (strncmp(row, begin, strlen(begin)) == 0 && strstr(row, shape)) {
            return number_at(row, 5);
        }
    }
    return 0;
}

void published_print(const setup *s, const ptowsp_schedule *schedule, double launch_us,
                     const char *kernel, const char *shape) {
    ptowsp_program *program;
    ptowsp_run *run;
    ptowsp_schedule cores = *schedule;
    const ptowsp_program_desc desc = {.schedule = &cores};
    ptowsp_run_options how = {.mode = PTOWSP_RUN_TIME_ONLY, .cost = {.model = PTOWSP_MODEL_910B}};
    cores.shared = ptowsp_shared_memory_of(how.cost.model);
    command_check(s->context, ptowsp_program_create(s->context, s->module, &desc, &program));
    command_check(s->context, ptowsp_run_create(s->context, program, &run));
    setup_bind(s, run);
    command_check(s->context, ptowsp_run_execute(run, &how));
    double cycles = (double)ptowsp_run_result(run)->makespan_cycles;
    double us = launch_us + cycles / ptowsp_core_timing_of(how.cost.model).clock_mhz;
    double published = *shape ? published_us(kernel, shape) : 0;
    printf("  910B      %.0f cycles after a launch of %.0f us: %.1f us", cycles, launch_us, us);
    if (published > 0) {
        printf("; published %.1f us, ratio %.2f", published, us / published);
    }
    printf("\n");
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
}
