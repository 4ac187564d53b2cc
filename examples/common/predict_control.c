// Costs of control. Where a row counts tasks, a program of so many is simulated on 910B under control
// (ptowsp_control_make). A row of one step is that step's cost, which was taken from it. Others say
// which part of a runtime has no model here.

#include "predict_control.h"

#include "ptowsp.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The time of independent tasks that take nothing themselves, in microseconds; negative if it failed.
static double time_of_tasks(const ptowsp_control *control, uint32_t count, uint32_t lanes) {
    ptowsp_context *context = NULL;
    ptowsp_module *m = NULL;
    ptowsp_program *program = NULL;
    ptowsp_run *run = NULL;
    double us = -1;
    const ptowsp_schedule schedule = {
        .dispatch = PTOWSP_DISPATCH_WORK_STEALING, .lane_count = lanes, .control = *control};
    const ptowsp_program_desc desc = {.schedule = &schedule};
    const ptowsp_run_options how = {.mode = PTOWSP_RUN_TIME_ONLY};
    if (ptowsp_context_create(NULL, &context) || ptowsp_module_create(context, NULL, &m)) {
        ptowsp_context_destroy(context);
        return us;
    }
    const ptowsp_kernel_desc nothing = {.name = "nothing", .axis_count = 1, .cycles = 1};
    const ptowsp_kernel kernel = ptowsp_kernel_make(m, &nothing);
    PTOWSP_WORKLOAD(m, "tasks") {
        PTOWSP_PARALLEL(m, i, ptowsp_axis_dense(m, "n", count)) {
            ptowsp_task_make(m, &(ptowsp_task_desc){.kernel = kernel, .axes = {i}});
        }
    }
    if (!ptowsp_program_create(context, m, &desc, &program) &&
        !ptowsp_run_create(context, program, &run) && !ptowsp_run_execute(run, &how)) {
        us = (double)ptowsp_run_result(run)->makespan_cycles / control->clock_mhz;
    }
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
    return us;
}

// "host run() 1/2/4 tasks": callables that start no cores, so nothing is delivered.
static void time_hosts(const char *what, char out_text[PREDICT_TEXT_MAX]) {
    ptowsp_control host = ptowsp_control_make(PTOWSP_CONTROL_HOST, PTOWSP_MODEL_910B);
    const char *at = what + strlen("host run() ");
    size_t length = 0;
    host.cost_ns[PTOWSP_CONTROL_DELIVER] = 0;
    while (*at >= '0' && *at <= '9' && length < PREDICT_TEXT_MAX - 32) {
        char *end;
        const uint32_t count = (uint32_t)strtoul(at, &end, 10);
        length += (size_t)snprintf(out_text + length, PREDICT_TEXT_MAX - length, "%.1f%s",
                                   time_of_tasks(&host, count, 1), *end == '/' ? "/" : " us");
        at = end + (*end == '/');
    }
}

// The number in front of a word of a text; 0 without one.
static uint32_t count_before(const char *text, const char *word) {
    const char *at = strstr(text, word);
    while (at && at > text && at[-1] >= '0' && at[-1] <= '9') {
        at--;
    }
    return at ? (uint32_t)strtoul(at, NULL, 10) : 0;
}

// Microseconds a task of many: of the thread that submits, which no other holds up; or of one that
// dispatches and completes.
static double time_per_task(bool is_submit, uint32_t count) {
    ptowsp_control aicpu = ptowsp_control_make(PTOWSP_CONTROL_AICPU, PTOWSP_MODEL_910B);
    aicpu.threads = is_submit ? PTOWSP_CONTROL_THREAD_MAX : 1;
    for (int i = 0; i <= PTOWSP_CONTROL_START_LAST; i++) {
        aicpu.cost_ns[i] = 0;
    }
    return time_of_tasks(&aicpu, count, is_submit ? 1024 : 24) / count;
}

typedef struct step {
    const char *what;
    ptowsp_control_by by;
    ptowsp_control_cost cost;
} step;

// Rows of one step.
static const step steps[] = {
    {"host run() fixed", PTOWSP_CONTROL_HOST, PTOWSP_CONTROL_LAUNCH},
    {"host run() per task", PTOWSP_CONTROL_HOST, PTOWSP_CONTROL_SUBMIT},
    {"AICPU LDR of COND", PTOWSP_CONTROL_AICPU, PTOWSP_CONTROL_POLL},
    {"AICPU to AICore (DMB) end to end", PTOWSP_CONTROL_AICPU, PTOWSP_CONTROL_DELIVER},
    {"AICore to AICPU via COND", PTOWSP_CONTROL_AICPU, PTOWSP_CONTROL_NOTICE},
    {"AICore task setup (payload dcci + ACK)", PTOWSP_CONTROL_AICPU, PTOWSP_CONTROL_SWITCH}};

typedef struct refusal {
    const char *what, *reason;
} refusal;

// By the beginning of a row.
static const refusal refusals[] = {
    {"host mailbox", "a mailbox between host processes is part of a launch"},
    {"host graph", "host graphs are not modelled: neither their recording nor their replay"},
    {"AICPU posted STR", "a store that nobody waits for takes no time of a thread"},
    {"AICPU single STR", "a store that nobody waits for takes no time of a thread"},
    {"AICPU STR + LDR", "only the load is modelled, as polling; the store is part of dispatch"},
    {"AICore to AICPU via GM", "ends are noticed through a register, not through memory"},
    {"AICore switch", "switching between tasks is task setup here; traces are not modelled"},
    {"AICore head overhead",
     "cores start by their first tasks, cold; predict's kernels use this row"},
    {"AICPU publish", "handles are published in a dispatch"},
    {"AICore pickup", "its parts are not given: delivery and task setup are 0.49 us here"},
    {"qwen3", "its tasks were not published"},
    {"first launch", "binaries are loaded before a run"},
    {"machine: system", "time is in cycles of cores, not of the system counter"},
    {"A5 cold miss", "SIMT data caches are not modelled"}};

static bool predict_machine_row(const char *what, char out_text[PREDICT_TEXT_MAX]) {
    const ptowsp_machine b = ptowsp_machine_910b();
    if (strcmp(what, "machine: cores per die") == 0) {
        snprintf(out_text, PREDICT_TEXT_MAX, "%u AIC; %u AIV; %u AICPU usable; HBM %" PRIu64 " GiB",
                 b.cube_count, b.vector_count, b.aicpu_count, b.hbm_bytes >> 30);
        return true;
    }
    if (strcmp(what, "device clocks") == 0) {
        snprintf(out_text, PREDICT_TEXT_MAX, "%u MHz (B2; B3; others are set by hand)",
                 ptowsp_core_timing_of(PTOWSP_MODEL_910B).clock_mhz);
        return true;
    }
    return false;
}

bool predict_control(const char *what, const char *value, const char *conditions,
                     char out_text[PREDICT_TEXT_MAX], char reason[PREDICT_REASON_MAX]) {
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (strcmp(what, steps[i].what) == 0) {
            const ptowsp_control of = ptowsp_control_make(steps[i].by, PTOWSP_MODEL_910B);
            snprintf(out_text, PREDICT_TEXT_MAX, "%" PRIu64 " ns (%s)", of.cost_ns[steps[i].cost],
                     ptowsp_control_cost_name(steps[i].cost));
            return true;
        }
    }
    uint32_t tasks = count_before(value, " tasks");
    tasks = tasks ? tasks : count_before(conditions, " tasks");
    if (strncmp(what, "host run() ", 11) == 0 && what[11] >= '0' && what[11] <= '9') {
        time_hosts(what, out_text);
        return true;
    }
    if (strncmp(what, "AICPU ", 6) == 0 && tasks > 0 && tasks <= 1 << 20) {
        snprintf(out_text, PREDICT_TEXT_MAX, "%.3f us a task",
                 time_per_task(strstr(what, "submitted") != NULL, tasks));
        return true;
    }
    if (strncmp(what, "poll sweep of 24 cores", 22) == 0) {
        const ptowsp_control of = ptowsp_control_make(PTOWSP_CONTROL_AICPU, PTOWSP_MODEL_910B);
        snprintf(out_text, PREDICT_TEXT_MAX, "%" PRIu64 " ns by COND",
                 24 * of.cost_ns[PTOWSP_CONTROL_POLL]);
        return true;
    }
    if (strcmp(what, "AICore first-task tail") == 0) {
        const ptowsp_control of = ptowsp_control_make(PTOWSP_CONTROL_AICPU, PTOWSP_MODEL_910B);
        const uint64_t *ns = of.cost_ns;
        snprintf(out_text, PREDICT_TEXT_MAX, "%.2f-%.2f us (p50 %.2f; p75 %.2f)",
                 (double)ns[PTOWSP_CONTROL_START_FIRST] / 1e3,
                 (double)ns[PTOWSP_CONTROL_START_LAST] / 1e3,
                 (double)ns[PTOWSP_CONTROL_START_HALF] / 1e3,
                 (double)ns[PTOWSP_CONTROL_START_MOST] / 1e3);
        return true;
    }
    if (predict_machine_row(what, out_text)) {
        return true;
    }
    snprintf(reason, PREDICT_REASON_MAX, "there is no model of it");
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        if (strncmp(what, refusals[i].what, strlen(refusals[i].what)) == 0) {
            snprintf(reason, PREDICT_REASON_MAX, "%s", refusals[i].reason);
        }
    }
    return false;
}
