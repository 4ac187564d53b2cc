// Prints the results of pipelines.

#include "../base/text.h"
#include "report.h"

#include <inttypes.h>

#define PWSP_REPORT_PROCESS_MAX 32
#define PWSP_REPORT_CHANNEL_MAX 32
#define PWSP_REPORT_STEP_MAX    32

static const char *pwsp_report_state(ptowsp_process_state state) {
    switch (state) {
    case PTOWSP_PROCESS_ENDED: return "ended";
    case PTOWSP_PROCESS_STOPPED: return "stopped";
    case PTOWSP_PROCESS_FULL: return "stuck, full,";
    default: PTOWSP_ASSERT(state == PTOWSP_PROCESS_EMPTY); return "stuck, empty,";
    }
}

static void pwsp_report_processes(const pwsp_result *result, const ptowsp_pipeline_stats *pipeline,
                                  ptowsp_output text) {
    for (uint32_t i = 0; i < pipeline->process_count && i < PWSP_REPORT_PROCESS_MAX; i++) {
        const ptowsp_process_stats *process =
            &result->pipelines->process_stats[pipeline->first_process + i];
        pwsp_text_format(text, "    process ");
        pwsp_steps_print_name(process, text);
        pwsp_text_format(text,
                         "  %" PRIu64 " tasks, busy %" PRIu64 ", full %" PRIu64 ", empty %" PRIu64
                         ", %s at %" PRIu64 "\n",
                         process->task_count, process->busy_cycles, process->full_cycles,
                         process->empty_cycles, pwsp_report_state(process->state),
                         process->end_cycles);
    }
    if (pipeline->process_count > PWSP_REPORT_PROCESS_MAX) {
        pwsp_text_format(text, "    ... %u more processes\n",
                         pipeline->process_count - PWSP_REPORT_PROCESS_MAX);
    }
}

static void pwsp_report_channels(const pwsp_result *result, const ptowsp_pipeline_stats *pipeline,
                                 ptowsp_output text) {
    for (uint32_t i = 0; i < pipeline->channel_count && i < PWSP_REPORT_CHANNEL_MAX; i++) {
        const ptowsp_channel_stats *channel =
            &result->pipelines->channel_stats[pipeline->first_channel + i];
        pwsp_text_format(text,
                         "    channel %s  depth %u, latency %" PRIu64 ", %" PRIu64
                         " tokens, %" PRIu64 " at once at most, full %" PRIu64 ", empty %" PRIu64,
                         channel->name, channel->depth, channel->latency, channel->token_count,
                         channel->pending_max, channel->full_cycles, channel->empty_cycles);
        if (channel->pending_count) {
            pwsp_text_format(text, ", %" PRIu64 " left", channel->pending_count);
        }
        pwsp_text_format(text, "\n");
    }
    if (pipeline->channel_count > PWSP_REPORT_CHANNEL_MAX) {
        pwsp_text_format(text, "    ... %u more channels\n",
                         pipeline->channel_count - PWSP_REPORT_CHANNEL_MAX);
    }
}

// One step of a critical chain: "60 to 110  compute receives token 3 from loaded".
static void pwsp_report_step(const pwsp_result *result, const ptowsp_step_record *step,
                             ptowsp_output text) {
    pwsp_text_format(text, "      %" PRIu64 " to %" PRIu64 "  ", step->arrive, step->end);
    pwsp_steps_print(result->pipelines, step, text);
    pwsp_text_format(text, "\n");
}

static void pwsp_report_chain(const pwsp_result *result, uint32_t pipeline, ptowsp_output text) {
    uint64_t count;
    const uint64_t *chain = pwsp_result_critical_steps(result, pipeline, &count);
    if (count == 0) {
        return;
    }
    pwsp_text_format(text, "    critical chain of %" PRIu64 " steps\n", count);
    for (uint64_t i = 0; i < count; i++) {
        if (count > PWSP_REPORT_STEP_MAX && i == PWSP_REPORT_STEP_MAX / 2) {
            pwsp_text_format(text, "      ... %" PRIu64 " more\n", count - PWSP_REPORT_STEP_MAX);
            i += count - PWSP_REPORT_STEP_MAX;
        }
        pwsp_report_step(result, &result->pipelines->steps[chain[i]], text);
    }
}

PWSP_INTERNAL void pwsp_report_pipelines(const pwsp_result *result, ptowsp_output text) {
    for (uint32_t i = 0; i < result->program->pipelines.count; i++) {
        const ptowsp_pipeline_stats *pipeline = &result->pipelines->stats[i];
        if (pipeline->run_count == 0) {
            pwsp_text_format(text, "  pipeline %s  has not run\n", pipeline->name);
            continue;
        }
        pwsp_text_format(text, "  pipeline %s  %" PRIu64 " cycles from %" PRIu64, pipeline->name,
                         pipeline->makespan_cycles, pipeline->start_cycles);
        if (pipeline->run_count > 1) {
            pwsp_text_format(text, ", the last of %" PRIu64 " times with %" PRIu64 " cycles in all",
                             pipeline->run_count, pipeline->total_cycles);
        }
        pwsp_text_format(text, "\n");
        pwsp_report_processes(result, pipeline, text);
        pwsp_report_channels(result, pipeline, text);
        pwsp_report_chain(result, i, text);
    }
    pwsp_pipelines_print_stuck(result->pipelines, text);
}
