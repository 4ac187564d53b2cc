// Exports of recorded runs: what they refuse, and which format does what.

#include "picture.h"

#include <inttypes.h>

static ptowsp_status pwsp_export_refuse(const ptowsp_run *run, const char *text) {
    return pwsp_fail(run->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "export: %s", text);
}

// Fills in the defaults of an SVG and checks it.
static ptowsp_status pwsp_export_check_svg(const ptowsp_run *run, ptowsp_export_options *options) {
    uint64_t makespan = run->time.sim.stats.makespan_cycles;
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
    uint64_t tracks = (uint64_t)run->time.sim.stats.lane_count + run->pipes.pipelines.process_count;
    if (tracks > options->lane_max) {
        return pwsp_fail(run->context, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                         "export: a picture of %" PRIu64 " lanes and processes, but lane_max is %u",
                         tracks, options->lane_max);
    }
    return PTOWSP_OK;
}

static ptowsp_status pwsp_export_check(const ptowsp_run *run, ptowsp_export_format format,
                                       ptowsp_export_options *options, ptowsp_output output) {
    if ((uint32_t)format > PTOWSP_EXPORT_USAGE_CSV) {
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
    options->clock_mhz = options->clock_mhz ? options->clock_mhz : 1000;
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
    case PTOWSP_EXPORT_FORCE_INT: break;
    }
    return true;
}

ptowsp_status ptowsp_run_export(const ptowsp_run *run, ptowsp_export_format format,
                                const ptowsp_export_options *options, ptowsp_output output) {
    ptowsp_export_options chosen;
    pwsp_picture picture;
    memset(&chosen, 0, sizeof chosen);
    if (options) {
        chosen = *options;
    }
    ptowsp_status status = pwsp_export_check(run, format, &chosen, output);
    if (status != PTOWSP_OK) {
        return status;
    }
    pwsp_out *out = (pwsp_out *)pwsp_memory_alloc(&run->context->memory, sizeof(pwsp_out));
    if (!out) {
        return pwsp_fail(run->context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX,
                         "export: out of memory");
    }
    pwsp_out_begin(out, output);
    bool has_memory = pwsp_picture_init(&picture, run, &chosen, out, format == PTOWSP_EXPORT_SVG);
    has_memory = has_memory && pwsp_export_write(&picture, format);
    pwsp_out_flush(out);
    if (!has_memory) {
        status =
            pwsp_fail(run->context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "export: out of memory");
    } else if (out->has_failed) {
        status = pwsp_fail(run->context, PTOWSP_SYSTEM_FAILED, PTOWSP_NO_INDEX,
                           "export: the output failed after %" PRIu64 " bytes", out->sent);
    }
    pwsp_picture_free(&picture);
    pwsp_memory_free(&run->context->memory, out, sizeof(pwsp_out));
    return status;
}
