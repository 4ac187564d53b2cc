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

static void pwsp_report_processes(const ptowsp_run *run, const ptowsp_pipeline_stats *pipeline,
                                  ptowsp_text text) {
    for (uint32_t i = 0; i < pipeline->process_count && i < PWSP_REPORT_PROCESS_MAX; i++) {
        const ptowsp_process_stats *process =
            &run->pipes.pipelines.process_stats[pipeline->first_process + i];
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

static void pwsp_report_channels(const ptowsp_run *run, const ptowsp_pipeline_stats *pipeline,
                                 ptowsp_text text) {
    for (uint32_t i = 0; i < pipeline->channel_count && i < PWSP_REPORT_CHANNEL_MAX; i++) {
        const ptowsp_channel_stats *channel =
            &run->pipes.pipelines.channel_stats[pipeline->first_channel + i];
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
static void pwsp_report_step(const ptowsp_run *run, const ptowsp_step_record *step,
                             ptowsp_text text) {
    pwsp_text_format(text, "      %" PRIu64 " to %" PRIu64 "  ", step->arrive, step->end);
    pwsp_steps_print(&run->pipes.pipelines, step, text);
    pwsp_text_format(text, "\n");
}

static void pwsp_report_chain(const ptowsp_run *run, uint32_t pipeline, ptowsp_text text) {
    uint64_t count;
    const uint64_t *chain = ptowsp_run_critical_steps(run, pipeline, &count);
    if (count == 0) {
        return;
    }
    pwsp_text_format(text, "    critical chain of %" PRIu64 " steps\n", count);
    for (uint64_t i = 0; i < count; i++) {
        if (count > PWSP_REPORT_STEP_MAX && i == PWSP_REPORT_STEP_MAX / 2) {
            pwsp_text_format(text, "      ... %" PRIu64 " more\n", count - PWSP_REPORT_STEP_MAX);
            i += count - PWSP_REPORT_STEP_MAX;
        }
        pwsp_report_step(run, &run->pipes.pipelines.steps[chain[i]], text);
    }
}

PWSP_INTERNAL void pwsp_report_pipelines(const ptowsp_run *run, ptowsp_text text) {
    for (uint32_t i = 0; i < run->program->pipelines.count; i++) {
        const ptowsp_pipeline_stats *pipeline = &run->pipes.pipelines.stats[i];
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
        pwsp_report_processes(run, pipeline, text);
        pwsp_report_channels(run, pipeline, text);
        pwsp_report_chain(run, i, text);
    }
    ptowsp_run_print_stuck(run, text);
}
