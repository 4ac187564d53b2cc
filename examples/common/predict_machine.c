// A kernel on all cores of a published machine: a module whose lanes are the cores, which share L2 and HBM, timed
// without data. Launches and starts of cores come from the table of control costs.

#include "predict_machine.h"

#include <stdio.h>
#include <string.h>

// "AICore head overhead, steady 0.2-0.5 us", the middle: rows are means of runs that follow others.
enum { STEADY_START_NS = 350 };

static bool give_up(const predict_machine *machine, char reason[PREDICT_REASON_MAX]) {
    snprintf(reason, PREDICT_REASON_MAX, "%.*s", PREDICT_REASON_MAX - 1,
             machine->context ? ptowsp_context_error(machine->context).text : "out of memory");
    return false;
}

bool predict_machine_create(predict_machine *machine, bool is_a5, double launch_us,
                            char reason[PREDICT_REASON_MAX]) {
    memset(machine, 0, sizeof *machine);
    machine->model = is_a5 ? PTOWSP_MODEL_950PR : PTOWSP_MODEL_910B;
    machine->core_count =
        is_a5 ? ptowsp_machine_950pr().cube_count : ptowsp_machine_910b().cube_count;
    machine->launch_us = launch_us;
    return (!ptowsp_context_create(NULL, &machine->context) &&
            !ptowsp_module_create(machine->context, NULL, &machine->module)) ||
           give_up(machine, reason);
}

void predict_machine_destroy(predict_machine *machine) {
    ptowsp_module_destroy(machine->module);
    ptowsp_context_destroy(machine->context);
}

static void make_workload(const predict_machine *machine, ptowsp_kernel kernel) {
    ptowsp_module *m = machine->module;
    ptowsp_task_desc task = {.kernel = kernel};
    char name[12];
    PTOWSP_WORKLOAD(m, "cores") {
        PTOWSP_PARALLEL(m, core, ptowsp_axis_dense(m, "core", machine->task_count)) {
            for (uint32_t i = 0; i < machine->tensor_count; i++) {
                const predict_tensor *of = &machine->tensors[i];
                snprintf(name, sizeof name, "t%u", i);
                task.views[i].tensor =
                    ptowsp_tensor_make(m, &(ptowsp_tensor_desc){.name = name,
                                                                .dtype = of->dtype,
                                                                .rank = 2,
                                                                .shape = {of->rows, of->cols}});
                snprintf(name, sizeof name, "r%u", i);
                task.views[i].row = ptowsp_array_at(m, name, PTOWSP_I32, core);
                snprintf(name, sizeof name, "c%u", i);
                task.views[i].col = ptowsp_array_at(m, name, PTOWSP_I32, core);
            }
            ptowsp_task_make(m, &task);
        }
    }
}

static ptowsp_schedule make_schedule(const predict_machine *machine) {
    ptowsp_schedule schedule = {.lane_count = machine->core_count,
                                .dispatch = PTOWSP_DISPATCH_ROUND_ROBIN,
                                .shared = ptowsp_shared_memory_of(machine->model),
                                .control =
                                    ptowsp_control_make(PTOWSP_CONTROL_KERNELS, machine->model)};
    schedule.control.cost_ns[PTOWSP_CONTROL_LAUNCH] = (uint64_t)(1000 * machine->launch_us);
    for (int i = PTOWSP_CONTROL_START_FIRST; i <= PTOWSP_CONTROL_START_LAST; i++) {
        schedule.control.cost_ns[i] = STEADY_START_NS;
    }
    return schedule;
}

static void bind_positions(const predict_machine *machine, ptowsp_run *run) {
    char name[12];
    for (uint32_t i = 0; i < machine->tensor_count; i++) {
        const predict_tensor *of = &machine->tensors[i];
        snprintf(name, sizeof name, "r%u", i);
        ptowsp_run_bind_array(run, name, PTOWSP_I32, of->row, machine->task_count);
        snprintf(name, sizeof name, "c%u", i);
        ptowsp_run_bind_array(run, name, PTOWSP_I32, of->col, machine->task_count);
    }
}

bool predict_machine_run(const predict_machine *machine, ptowsp_kernel kernel, double *out_us,
                         double *out_rate, char reason[PREDICT_REASON_MAX]) {
    const ptowsp_schedule schedule = make_schedule(machine);
    const ptowsp_program_desc desc = {.schedule = &schedule};
    const ptowsp_run_options how = {.mode = PTOWSP_RUN_TIME_ONLY,
                                    .cost = {.model = machine->model}};
    ptowsp_program *program = NULL;
    ptowsp_run *run = NULL;
    make_workload(machine, kernel);
    bool is_good = !ptowsp_program_create(machine->context, machine->module, &desc, &program) &&
                   !ptowsp_run_create(machine->context, program, &run);
    if (is_good) {
        bind_positions(machine, run);
        is_good = !ptowsp_run_execute(run, &how);
    }
    if (is_good) {
        const ptowsp_run_stats *stats = ptowsp_run_result(run);
        const double hbm = (double)stats->hbm_bytes, l2 = (double)stats->l2_bytes;
        const double cycles =
            hbm / schedule.shared.hbm_rate + l2 / schedule.shared.l2_rate;  // 1/100
        *out_us = (double)stats->makespan_cycles / schedule.control.clock_mhz;
        const bool is_rare = 2 * 100 * cycles < (double)stats->makespan_cycles;
        *out_rate = is_rare ? 1e9 : (hbm + l2) / cycles / machine->task_count;
    } else {
        give_up(machine, reason);
    }
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
    return is_good;
}

void predict_shares(const predict_machine *machine, const uint64_t busy[PTOWSP_PIPE_COUNT],
                    double us, predict_times *out) {
    const double whole = us * ptowsp_core_timing_of(machine->model).clock_mhz / 100;
    out->us = us;
    out->cube = (double)busy[PTOWSP_PIPE_M] / whole;
    out->vector = (double)busy[PTOWSP_PIPE_V] / whole;
    out->mte1 = (double)busy[PTOWSP_PIPE_MTE1] / whole;
    out->mte2 = (double)busy[PTOWSP_PIPE_MTE2] / whole;
    out->store = (double)(busy[PTOWSP_PIPE_FIX] + busy[PTOWSP_PIPE_MTE3]) / whole;
}
