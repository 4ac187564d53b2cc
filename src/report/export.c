// Exports of recorded runs: what they refuse, and which format does what.

#include "picture.h"

#include <inttypes.h>

static ptowsp_status pwsp_export_refuse(const ptowsp_run *run, const char *text) {
    return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "export: %s", text);
}

// Fills in the defaults of an SVG and checks it.
static ptowsp_status pwsp_export_check_svg(const ptowsp_run *run, ptowsp_export_options *options) {
    uint64_t makespan, tracks;
    pwsp_picture_extent(run, options->time == PTOWSP_TIME_WALL, &makespan, &tracks);
    options->width = options->width ? options->width : 960;
    options->lane_max = options->lane_max ? options->lane_max : 64;
    if (options->width < 320 || options->width > 10000) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "export: a width of %u is not in 320 to 10000", options->width);
    }
    if (options->lane_max > PTOWSP_EXPORT_LANE_MAX) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "export: lane_max %u is more than %d", options->lane_max,
                         PTOWSP_EXPORT_LANE_MAX);
    }
    if (options->end && options->end <= options->begin) {
        return pwsp_export_refuse(run, "the window of time is empty");
    }
    if (options->begin && options->begin >= makespan) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "export: the window begins at %" PRIu64 ", but the run ends at %" PRIu64,
                         options->begin, makespan);
    }
    if (tracks > options->lane_max) {
        return pwsp_fail(run->context, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                         "export: a picture of %" PRIu64 " lanes and processes, but lane_max is %u",
                         tracks, options->lane_max);
    }
    return PTOWSP_OK;
}

// The wall clock needs tasks that have been executed with it, and a format that draws them.
static ptowsp_status pwsp_export_check_time(const ptowsp_run *run, ptowsp_export_format format,
                                            ptowsp_export_time time) {
    bool has_both = format == PTOWSP_EXPORT_PERFETTO || format == PTOWSP_EXPORT_CHROME;
    if ((uint32_t)time > PTOWSP_TIME_BOTH) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "export: there is no time %d", (int)time);
    }
    if (time == PTOWSP_TIME_SIMULATED) {
        return PTOWSP_OK;
    }
    if (format > PTOWSP_EXPORT_TABLE || (time == PTOWSP_TIME_BOTH && !has_both)) {
        return pwsp_export_refuse(run, time == PTOWSP_TIME_BOTH
                                           ? "two times side by side are for PERFETTO and CHROME"
                                           : "this format has no wall clock");
    }
    return run->has_records && run->has_clock
               ? PTOWSP_OK
               : pwsp_export_refuse(run, "the run has recorded no wall clock (has_clock)");
}

static ptowsp_status pwsp_export_check(const ptowsp_run *run, ptowsp_export_format format,
                                       ptowsp_export_options *options, ptowsp_output output) {
    if ((uint32_t)format > PTOWSP_EXPORT_DOT) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "export: there is no format %d", (int)format);
    }
    if (!output.write) {
        return pwsp_export_refuse(run, "an output without a function");
    }
    if ((uint32_t)options->theme > PTOWSP_THEME_DARK) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "export: there is no theme %d", (int)options->theme);
    }
    if (!ptowsp_run_kernels(run, NULL)) {
        return pwsp_export_refuse(run, "the run has recorded nothing (ptowsp_run_record)");
    }
    bool needs_tasks =
        format == PTOWSP_EXPORT_SVG || format == PTOWSP_EXPORT_CSV || format == PTOWSP_EXPORT_TABLE;
    if (needs_tasks && !run->has_records) {
        return pwsp_export_refuse(run, "the run has recorded no tasks (PTOWSP_RECORD_TASKS)");
    }
    bool needs_edges = format == PTOWSP_EXPORT_EDGES || format == PTOWSP_EXPORT_DOT;
    if (needs_edges && (!run->has_records || run->recorder.options.level < PTOWSP_RECORD_EDGES)) {
        return pwsp_export_refuse(run, "the run has recorded no edges (PTOWSP_RECORD_EDGES)");
    }
    options->clock_mhz = options->clock_mhz ? options->clock_mhz : 1000;
    ptowsp_status status = pwsp_export_check_time(run, format, options->time);
    if (status != PTOWSP_OK) {
        return status;
    }
    return format == PTOWSP_EXPORT_SVG ? pwsp_export_check_svg(run, options) : PTOWSP_OK;
}

// False: memory is out.
static bool pwsp_export_write(pwsp_picture *picture, ptowsp_export_format format) {
    switch (format) {
    case PTOWSP_EXPORT_PERFETTO: return pwsp_export_perfetto(picture);
    case PTOWSP_EXPORT_CHROME: pwsp_export_chrome(picture); break;
    case PTOWSP_EXPORT_SVG: return pwsp_export_svg(picture);
    case PTOWSP_EXPORT_CSV: pwsp_export_csv(picture); break;
    case PTOWSP_EXPORT_TABLE: pwsp_export_table(picture); break;
    case PTOWSP_EXPORT_USAGE_CSV: pwsp_export_usage(picture); break;
    case PTOWSP_EXPORT_EDGES: return pwsp_export_edges(picture, false);
    case PTOWSP_EXPORT_DOT: return pwsp_export_edges(picture, true);
    case PTOWSP_EXPORT_FORCE_INT: break;
    }
    return true;
}

// A format of exports or, if it is_report, of reports.
typedef struct pwsp_export_job {
    bool is_report, is_ordered;
    ptowsp_export_format format;
    ptowsp_report_format report;
    const ptowsp_what_if *what_ifs;
    uint32_t what_if_count;
} pwsp_export_job;

static ptowsp_status pwsp_export_do(const ptowsp_run *run, const pwsp_export_job *job,
                                    const ptowsp_export_options *options, ptowsp_output output) {
    pwsp_picture picture, measured;
    bool is_wall = options->time == PTOWSP_TIME_WALL, has_both = options->time == PTOWSP_TIME_BOTH;
    ptowsp_status status = PTOWSP_OK;
    pwsp_out *out = (pwsp_out *)pwsp_memory_alloc(&run->context->memory, sizeof(pwsp_out));
    if (!out) {
        return pwsp_fail(run->context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX,
                         "export: out of memory");
    }
    pwsp_out_begin(out, output);
    memset(&measured, 0, sizeof measured);
    bool has_memory = pwsp_picture_init(&picture, run, options, out, is_wall, job->is_ordered);
    if (has_memory && has_both) {
        has_memory = pwsp_picture_init(&measured, run, options, out, true, false);
        picture.measured = &measured;
    }
    if (has_memory) {
        has_memory = job->is_report ? pwsp_report_write(&picture, job->report, job->what_ifs,
                                                        job->what_if_count)
                                    : pwsp_export_write(&picture, job->format);
    }
    pwsp_out_flush(out);
    if (!has_memory) {
        status =
            pwsp_fail(run->context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "export: out of memory");
    } else if (out->has_failed) {
        status = pwsp_fail(run->context, PTOWSP_SYSTEM_FAILED, PTOWSP_NO_INDEX,
                           "export: the output failed after %" PRIu64 " bytes", out->sent);
    }
    pwsp_picture_free(&picture);
    if (has_both) {
        pwsp_picture_free(&measured);
    }
    pwsp_memory_free(&run->context->memory, out, sizeof(pwsp_out));
    return status;
}

ptowsp_status ptowsp_run_export(const ptowsp_run *run, ptowsp_export_format format,
                                const ptowsp_export_options *options, ptowsp_output output) {
    ptowsp_export_options chosen;
    memset(&chosen, 0, sizeof chosen);
    if (options) {
        chosen = *options;
    }
    ptowsp_status status = pwsp_export_check(run, format, &chosen, output);
    pwsp_export_job job = {false, format == PTOWSP_EXPORT_SVG, format, PTOWSP_REPORT_TEXT, NULL, 0};
    return status == PTOWSP_OK ? pwsp_export_do(run, &job, &chosen, output) : status;
}

ptowsp_status ptowsp_run_report(const ptowsp_run *run, ptowsp_report_format format,
                                const ptowsp_export_options *options,
                                const ptowsp_what_if *what_ifs, uint32_t what_if_count,
                                ptowsp_output output) {
    ptowsp_export_options chosen;
    memset(&chosen, 0, sizeof chosen);
    if (options) {
        chosen = *options;
    }
    if ((uint32_t)format > PTOWSP_REPORT_HTML) {
        return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "export: there is no format %d of reports", (int)format);
    }
    for (uint32_t i = 0; i < what_if_count; i++) {
        if (what_ifs[i].kernel == 0 || what_ifs[i].kernel >= run->program->kernels.count) {
            return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, i,
                             "export: what if %u is about no kernel", i);
        }
    }
    uint64_t makespan, tracks;
    pwsp_picture_extent(run, false, &makespan, &tracks);
    chosen.time = PTOWSP_TIME_SIMULATED;
    chosen.lane_max = chosen.lane_max ? chosen.lane_max : 64;
    bool is_drawn = format == PTOWSP_REPORT_HTML && run->has_records && tracks <= chosen.lane_max;
    ptowsp_status status = pwsp_export_check(
        run, is_drawn ? PTOWSP_EXPORT_SVG : PTOWSP_EXPORT_USAGE_CSV, &chosen, output);
    pwsp_export_job job = {true, is_drawn, PTOWSP_EXPORT_SVG, format, what_ifs, what_if_count};
    return status == PTOWSP_OK ? pwsp_export_do(run, &job, &chosen, output) : status;
}
