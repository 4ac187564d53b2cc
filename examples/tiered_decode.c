// Decode attention as a workload over a plan: what tasks there are depends on the plan of the moment,
// the program does not (common/tiered.h draws it). It is compiled once; then each of three decode
// steps plans its lengths, which have grown, and binds the plan.
//
// Kernels compute in f32, on the calling thread; outputs are compared with attention in double.
// Their cost functions say how long each takes, so the last step is measured under other schedules
// without running a kernel, each with a plan for its lanes. What the tables show:
//
//      dispatch   by the plan, lanes have what the planner gave them: all are busy to the end, as its
//                 cost predicts. Round robin deals the same units in turn, and the longest lane is the
//                 makespan. Work stealing is in between: it does not know which units are long
//      issue      in order, a merge that waits for its parts holds up what is behind it; dataflow
//                 lets that pass. Merges come last here: little is behind them
//      window     units come lane after lane, so a window of fewer tasks than there are holds back the
//                 last lanes, more so by the plan than round robin

#include "ptowsp.h"

#include "common/command.h"
#include "common/tiered.h"

#include <stdio.h>
#include <stdlib.h>

#define TOLERANCE 1e-4  // of the largest magnitude in an output row

typedef struct decode {
    uint64_t lane_count, window;
    tiered t;
} decode;

// -- schedules ------------------------------------------------------------------------------------

typedef struct policy {
    const char *name;
    ptowsp_issue issue;
    ptowsp_dispatch dispatch;
} policy;

static const policy policies[] = {
    {"in order, by the plan", PTOWSP_ISSUE_IN_ORDER, PTOWSP_DISPATCH_PLAN},
    {"dataflow, by the plan", PTOWSP_ISSUE_DATAFLOW, PTOWSP_DISPATCH_PLAN},
    {"in order, round robin", PTOWSP_ISSUE_IN_ORDER, PTOWSP_DISPATCH_ROUND_ROBIN},
    {"dataflow, round robin", PTOWSP_ISSUE_DATAFLOW, PTOWSP_DISPATCH_ROUND_ROBIN},
    {"in order, work stealing", PTOWSP_ISSUE_IN_ORDER, PTOWSP_DISPATCH_WORK_STEALING},
    {"dataflow, work stealing", PTOWSP_ISSUE_DATAFLOW, PTOWSP_DISPATCH_WORK_STEALING},
};
enum { POLICY_COUNT = sizeof policies / sizeof policies[0], BY_PLAN = 1, STEALING = 5 };

// Compiles the workload under a schedule. Tasks wait for data in both kinds of issue.
static ptowsp_program *compile(const decode *d, const policy *p, uint64_t lane_count,
                               uint64_t window) {
    ptowsp_schedule schedule = {.issue = p->issue,
                                .dispatch = p->dispatch,
                                .lane_count = (uint32_t)lane_count,
                                .window = (uint32_t)window,
                                .dependencies = PTOWSP_DEPENDENCIES_HYBRID};
    if (p->dispatch == PTOWSP_DISPATCH_PLAN) {  // of appends, which are in no plan
        schedule.dispatch_key = ptowsp_task_variable(d->t.module, "request");
    }
    ptowsp_program *program;
    ptowsp_program_desc desc = {.schedule = &schedule};
    command_check(d->t.context, ptowsp_program_create(d->t.context, d->t.module, &desc, &program));
    return program;
}

// Simulates the step that is there under a schedule, planned for its lanes, without running kernels.
static ptowsp_run *simulate(decode *d, const ptowsp_program *program) {
    ptowsp_run *run;
    tiered_plan(&d->t, ptowsp_program_lane_count(program));
    ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY, .record_tasks = true};
    command_check(d->t.context, ptowsp_run_create(d->t.context, program, &run));
    tiered_bind(&d->t, run);
    command_check(d->t.context, ptowsp_run_execute(run, &options));
    return run;
}

// Prints the makespan under a schedule, and the busy part of all lanes' time.
static void print_simulated(decode *d, const policy *p, uint64_t lane_count, uint64_t window) {
    ptowsp_program *program = compile(d, p, lane_count, window);
    ptowsp_run *run = simulate(d, program);
    const ptowsp_run_stats *stats = ptowsp_run_result(run);
    double busy = 100.0 * (double)stats->busy_cycles /
                  ((double)stats->makespan_cycles * (double)stats->lane_count);
    printf("%11llu %3.0f %%", (unsigned long long)stats->makespan_cycles, busy);
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
}

// The heading of a column, as wide as a cell.
static void print_heading(uint64_t number, const char *unit) {
    char text[64];
    snprintf(text, sizeof text, "%llu%s", (unsigned long long)number, unit);
    printf("%17s", text);
}

static void print_schedules(decode *d) {
    const uint64_t lanes[] = {1, (d->lane_count + 2) / 3, d->lane_count};
    const uint64_t windows[] = {d->window, (d->window + 3) / 4};
    printf("\nthe last step under other schedules: cycles, and how busy lanes are\n%-31s", "");
    for (size_t i = 0; i < 3; i++) {
        print_heading(lanes[i], lanes[i] == 1 ? " lane" : " lanes");
    }
    for (size_t i = 0; i < 2; i++) {
        print_heading(windows[i], " in window");
    }
    for (size_t p = 0; p < POLICY_COUNT; p++) {
        printf("\n  %-29s", policies[p].name);
        for (size_t i = 0; i < 3; i++) {
            print_simulated(d, &policies[p], lanes[i], 0);
        }
        for (size_t i = 0; i < 2; i++) {
            print_simulated(d, &policies[p], d->lane_count, windows[i]);
        }
    }
    printf("\n  (with a window: on %llu lanes)\n", (unsigned long long)d->lane_count);
}

static ptowsp_status bind_planned(void *user, ptowsp_run *run) {
    decode *d = (decode *)user;
    tiered_plan(&d->t, ptowsp_program_lane_count(ptowsp_run_program(run)));
    tiered_bind(&d->t, run);
    return PTOWSP_OK;
}

// What a search over the same dispatches, windows and lanes, and all orders, finds best.
static void print_search(decode *d) {
    const uint32_t lanes[] = {(uint32_t)d->lane_count, (uint32_t)(d->lane_count + 2) / 3};
    const uint32_t windows[] = {(uint32_t)d->window, (uint32_t)(d->window + 3) / 4, 0};
    const ptowsp_issue issues[] = {PTOWSP_ISSUE_DATAFLOW, PTOWSP_ISSUE_IN_ORDER};
    ptowsp_search_desc desc = {.issues = issues, .issue_count = 2, .bind = bind_planned, .user = d};
    desc.windows = windows, desc.window_count = 3;
    desc.lane_counts = lanes, desc.lane_count_count = 2;
    desc.base.dispatch_key = ptowsp_task_variable(d->t.module, "request");
    ptowsp_search_result results[4];
    ptowsp_search_summary summary;
    char text[4096];
    ptowsp_output_buffer buffer = {.data = text, .size = sizeof text};
    command_check(d->t.context,
                  ptowsp_schedule_search(d->t.context, d->t.module, &desc, results, 4, &summary));
    ptowsp_search_print(results, &summary, ptowsp_output_to_buffer(&buffer));
    printf("\nthe best schedules of the last step\n%s", text);
}

// The request of a task. In program order there is an append for each, then units, then merges.
static uint32_t request_of(const decode *d, uint64_t task) {
    const ptowsp_attention_plan *plan = &d->t.plan;
    if (task < d->t.batch) {
        return (uint32_t)task;
    }
    task -= d->t.batch;
    return task < plan->unit_count ? ptowsp_work_request(&plan->units[task])
                                   : ptowsp_work_request(&plan->merges[task - plan->unit_count]);
}

// What the makespan is made of: the tasks of the critical path, those that follow each other with
// the same kernel, request and lane in one line.
static void print_critical_path(decode *d, const policy *p) {
    const char *const names[] = {"append", "attend_short", "attend_long", "attend_part", "merge"};
    const uint32_t kernels[] = {d->t.append.id, d->t.attend_short.id, d->t.attend_long.id,
                                d->t.attend_part.id, d->t.merge.id};
    ptowsp_program *program = compile(d, p, d->lane_count, 0);
    ptowsp_run *run = simulate(d, program);
    const ptowsp_task_record *records = ptowsp_run_records(run);
    uint64_t count, line_count = 0;
    const uint64_t *path = ptowsp_run_critical_path(run, &count);
    printf("\ncritical path, %s, %llu lanes: %llu tasks\n", p->name,
           (unsigned long long)d->lane_count, (unsigned long long)count);
    for (uint64_t i = 0, end; i < count; i = end) {
        const ptowsp_task_record *first = &records[path[i]];
        uint32_t request = request_of(d, path[i]);
        for (end = i + 1; end < count; end++) {
            const ptowsp_task_record *next = &records[path[end]];
            if (next->kernel != first->kernel || next->lane != first->lane ||
                request_of(d, path[end]) != request) {
                break;
            }
        }
        size_t k = 0;
        while (kernels[k] != first->kernel) {
            k++;
        }
        if (line_count++ < 8) {
            printf("  %9llu to %9llu  %3llu x %-12s  request %-4u lane %-4u after %s\n",
                   (unsigned long long)first->start, (unsigned long long)records[path[end - 1]].end,
                   (unsigned long long)(end - i), names[k], (unsigned)request,
                   (unsigned)first->lane, ptowsp_stall_name(first->stall));
        }
    }
    if (line_count > 8) {
        printf("  ... %llu more lines\n", (unsigned long long)(line_count - 8));
    }
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
}

// -- steps ----------------------------------------------------------------------------------------

// Runs the steps on one program and checks each. Returns whether all is well.
static bool run_steps(decode *d) {
    ptowsp_program *program = compile(d, &policies[BY_PLAN], d->lane_count, d->window);
    ptowsp_run *run;
    bool is_good = true;
    command_check(d->t.context, ptowsp_run_create(d->t.context, program, &run));
    printf("one program, compiled once: %zu bytes; %s, %llu lanes, window %llu\n",
           ptowsp_program_size(program), policies[BY_PLAN].name, (unsigned long long)d->lane_count,
           (unsigned long long)d->window);
    for (uint64_t step = 1; step <= TIERED_STEPS; step++) {
        const ptowsp_attention_plan *plan = &d->t.plan;
        uint64_t token_count = 0;
        tiered_step(&d->t, step);
        tiered_plan(&d->t, (uint32_t)d->lane_count);
        tiered_bind(&d->t, run);
        command_check(d->t.context, ptowsp_run_execute(run, NULL));
        for (uint64_t i = 0; i < d->t.batch; i++) {
            token_count += (uint64_t)d->t.kv_lengths[i];
        }
        uint64_t task_count = d->t.batch + plan->unit_count + plan->merge_count;
        const ptowsp_run_stats *stats = ptowsp_run_result(run);
        double error = tiered_error(&d->t);
        bool step_is_good = error <= TOLERANCE && stats->task_count == task_count;
        is_good &= step_is_good;
        printf(
            "  step %llu  %7llu tokens  %3u units  %2u merges  %4llu tasks  %9.0f cycles planned  "
            "%9llu simulated  error %.0e  %s\n",
            (unsigned long long)step, (unsigned long long)token_count, plan->unit_count,
            plan->merge_count, (unsigned long long)stats->task_count, plan->cost_max,
            (unsigned long long)stats->makespan_cycles, error, step_is_good ? "good" : "WRONG");
    }
    uint64_t executed = ptowsp_run_result(run)->makespan_cycles;
    ptowsp_run_destroy(run);
    run = simulate(d, program);
    bool same = ptowsp_run_result(run)->makespan_cycles == executed;
    printf("  checked  %llu outputs a step against attention in double, %.0e of the row allowed\n"
           "  time     without running kernels the last step takes %s\n",
           (unsigned long long)tiered_output_count(&d->t), TOLERANCE,
           same ? "the same cycles: good" : "OTHER cycles: WRONG");
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
    return is_good && same;
}

static const char help_text[] = "usage: tiered_decode [options]\n"
                                "  --batch N    requests, 1 to 1024 (48)\n"
                                "  --lanes N    simulated lanes, 1 to 4096 (24)\n"
                                "  --window N   tasks in flight, 1 to 1000000 (256)\n"
                                "  --seed N     of lengths and data (1)\n";

int main(int argc, char **argv) {
    decode d = {.lane_count = 24, .window = 256};
    uint64_t batch = 48, seed = 1;
    const command_option options[] = {{"--batch", &batch, NULL, 1, 1024},
                                      {"--lanes", &d.lane_count, NULL, 1, 4096},
                                      {"--window", &d.window, NULL, 1, 1000000},
                                      {"--seed", &seed, NULL, 0, UINT64_MAX}};
    command_parse(argc, argv, help_text, options, sizeof options / sizeof options[0]);
    ptowsp_context *context;
    ptowsp_module *m;
    command_check(NULL, ptowsp_context_create(NULL, &context));
    command_check(context, ptowsp_module_create(context, NULL, &m));
    tiered_make(&d.t, context, m);
    tiered_make_data(&d.t, batch, seed);
    bool is_good = run_steps(&d);
    print_schedules(&d);
    print_search(&d);
    print_critical_path(&d, &policies[BY_PLAN]);
    print_critical_path(&d, &policies[STEALING]);
    command_flush();
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
    tiered_free_data(&d.t);
    return is_good ? 0 : 1;
}
