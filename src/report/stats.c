// Prints the results of a run.

#include "../base/text.h"
#include "report.h"

#include <inttypes.h>

#define PWSP_REPORT_LANE_MAX     32
#define PWSP_REPORT_CRITICAL_MAX 32

static void pwsp_report_stalls(const ptowsp_run_stats *stats, ptowsp_output text) {
    bool has_any = false;
    for (uint32_t i = 0; i < PTOWSP_STALL_COUNT; i++) {
        if (stats->stall_cycles[i]) {
            pwsp_text_format(text, "%s %s %" PRIu64, has_any ? "," : "  stalls ",
                             ptowsp_stall_name((ptowsp_stall)i), stats->stall_cycles[i]);
            has_any = true;
        }
    }
    pwsp_text_format(text, "%s", has_any ? " cycles\n" : "");
}

static void pwsp_report_critical(const pwsp_result *result, ptowsp_output text) {
    const uint64_t *path = result->critical, count = result->critical_count;
    if (count == 0) {
        return;
    }
    pwsp_text_format(text, "  critical path of %" PRIu64 " tasks\n", count);
    for (uint64_t i = 0; i < count; i++) {
        if (count > PWSP_REPORT_CRITICAL_MAX && i == PWSP_REPORT_CRITICAL_MAX / 2) {
            uint64_t left_out = count - PWSP_REPORT_CRITICAL_MAX;
            pwsp_text_format(text, "    ... %" PRIu64 " more\n", left_out);
            i += left_out;
        }
        const ptowsp_task_record *record = &result->recorder.records[path[i]];
        pwsp_text_format(text, "    %" PRIu64 " to %" PRIu64 "  task %" PRIu64, record->start,
                         record->end, path[i]);
        if (record->lane == PTOWSP_NO_LANE) {
            pwsp_text_format(text, " in a process, ");
        } else {
            pwsp_text_format(text, " on lane %u, ", record->lane);
        }
        pwsp_program_print_place(result->program, record->node, NULL, text);
        if (record->stall != PTOWSP_STALL_NONE) {
            pwsp_text_format(text, ", after %s", ptowsp_stall_name(record->stall));
        }
        pwsp_text_format(text, "\n");
    }
}

PWSP_INTERNAL void pwsp_report_rings(const pwsp_result *result, ptowsp_output text) {
    const ptowsp_schedule *schedule = &result->program->schedule;
    const ptowsp_run_stats *stats = result->stats;
    for (uint32_t i = 0; i < PTOWSP_RING_COUNT; i++) {
        uint64_t size = schedule->ring_sizes[i];
        if (size == 0) {
            continue;
        }
        pwsp_text_format(text, "  ring %s  %" PRIu64 " at most", ptowsp_ring_name((ptowsp_ring)i),
                         stats->ring_max[i]);
        if (size != PTOWSP_RING_UNBOUNDED) {
            pwsp_text_format(text, " of %" PRIu64 ", stalled for %" PRIu64 " cycles", size,
                             stats->stall_cycles[PTOWSP_STALL_TASK_RING + i]);
        }
        pwsp_text_format(text, "\n");
    }
}

static void pwsp_report_shared(const ptowsp_run_stats *stats, ptowsp_output text) {
    if (stats->hbm_bytes || stats->l2_bytes) {
        pwsp_text_format(text,
                         "  memory  %" PRIu64 " bytes from HBM, short for %" PRIu64
                         " cycles; %" PRIu64 " from L2, short for %" PRIu64 "; tasks took %" PRIu64
                         " cycles longer than alone\n",
                         stats->hbm_bytes, stats->hbm_limited_cycles, stats->l2_bytes,
                         stats->l2_limited_cycles, stats->slowed_cycles);
    }
}

void ptowsp_run_print(const ptowsp_run *run, ptowsp_output output) {
    const pwsp_result *result = pwsp_run_result(run);
    const ptowsp_run_stats *stats = result->stats;
    uint64_t capacity;
    if (stats->lane_count == 0) {
        pwsp_text_format(output, "run of module %s: not executed\n", result->program->name);
        return;
    }
    if (!pwsp_mul_fits(stats->makespan_cycles, stats->lane_count, &capacity)) {
        capacity = UINT64_MAX;
    }
    pwsp_text_format(output, "run of module %s: %" PRIu64 " cycles, %" PRIu64 " tasks, %u lanes",
                     result->program->name, stats->makespan_cycles, stats->task_count,
                     stats->lane_count);
    pwsp_text_format(output, ", %s %% busy\n",
                     pwsp_fixed(pwsp_report_percent(pwsp_result_busy(result), capacity), 1).text);
    pwsp_report_stalls(stats, output);
    pwsp_report_shared(stats, output);
    if (stats->in_flight_max) {
        pwsp_text_format(output, "  window  %" PRIu64 " tasks in flight at most",
                         stats->in_flight_max);
        if (stats->window_overflow_count) {
            pwsp_text_format(output, ", %" PRIu64 " found it full", stats->window_overflow_count);
        }
        pwsp_text_format(output, "\n");
    }
    pwsp_report_rings(result, output);
    for (uint32_t i = 0; i < stats->lane_count && i < PWSP_REPORT_LANE_MAX; i++) {
        const ptowsp_lane_stats *lane = &result->lanes[i];
        pwsp_text_format(output,
                         "  lane %u  %" PRIu64 " tasks, busy %" PRIu64 ", idle %" PRIu64
                         ", ends at %" PRIu64 "\n",
                         i, lane->task_count, lane->busy_cycles, lane->idle_cycles,
                         lane->end_cycles);
    }
    if (stats->lane_count > PWSP_REPORT_LANE_MAX) {
        pwsp_text_format(output, "  ... %u more lanes\n", stats->lane_count - PWSP_REPORT_LANE_MAX);
    }
    pwsp_report_pipelines(result, output);
    pwsp_report_critical(result, output);
}
