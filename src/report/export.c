// Exports of recorded runs: their errors, and the dispatch to formats.

#include "picture.h"

#include <inttypes.h>

static ptowsp_status pwsp_export_refuse(ptowsp_context *context, const char *text) {
    return PWSP_REFUSE(context, "export: %s", text);
}

// What lanes and time a picture has.
typedef struct pwsp_export_extent {
    uint64_t makespan, tracks;
} pwsp_export_extent;

static ptowsp_status pwsp_export_check_rows(ptowsp_context *context, uint64_t rows,
                                            const ptowsp_export_options *options, const char *why) {
    return rows <= options->lane_max ? PTOWSP_OK
                                     : pwsp_fail(context, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                                                 "export: a picture of %" PRIu64
                                                 " lanes and processes%s, but lane_max is %u",
                                                 rows, why, options->lane_max);
}

// Fills in the defaults of an SVG and checks it.
static ptowsp_status pwsp_export_check_svg(ptowsp_context *context, pwsp_export_extent extent,
                                           ptowsp_export_options *options) {
    options->width = options->width ? options->width : 960;
    options->lane_max = options->lane_max ? options->lane_max : 64;
    if (options->width < 320 || options->width > 10000) {
        return PWSP_REFUSE(context, "export: a width of %u is not in 320 to 10000", options->width);
    }
    if (options->lane_max > PTOWSP_EXPORT_LANE_MAX) {
        return PWSP_REFUSE(context, "export: lane_max %u is more than %d", options->lane_max,
                           PTOWSP_EXPORT_LANE_MAX);
    }
    if (options->end && options->end <= options->begin) {
        return pwsp_export_refuse(context, "the window of time is empty");
    }
    if (options->begin && options->begin >= extent.makespan) {
        return PWSP_REFUSE(context,
                           "export: the window begins at %" PRIu64 ", but the run ends at %" PRIu64,
                           options->begin, extent.makespan);
    }
    return pwsp_export_check_rows(context, extent.tracks, options, "");
}

// The errors of all formats. Fills in the defaults.
static ptowsp_status pwsp_export_check_output(ptowsp_context *context,
                                              ptowsp_export_options *options,
                                              ptowsp_output output) {
    if (!output.write) {
        return pwsp_export_refuse(context, "an output without a function");
    }
    if ((uint32_t)options->theme > PTOWSP_THEME_DARK) {
        return PWSP_REFUSE(context, "export: there is no theme %d", (int)options->theme);
    }
    if ((uint32_t)options->fold > PTOWSP_FOLD_LOOPS) {
        return PWSP_REFUSE(context, "export: there is no fold %d", (int)options->fold);
    }
    options->clock_mhz = options->clock_mhz ? options->clock_mhz : 1000;
    return PTOWSP_OK;
}

// The wall clock needs tasks that have been executed with it, and a format that draws them.
static ptowsp_status pwsp_export_check_time(const pwsp_result *result, ptowsp_export_format format,
                                            ptowsp_export_time time) {
    bool has_both = format == PTOWSP_EXPORT_PERFETTO || format == PTOWSP_EXPORT_CHROME;
    if ((uint32_t)time > PTOWSP_TIME_BOTH) {
        return PWSP_REFUSE(result->context, "export: there is no time %d", (int)time);
    }
    const char *wrong = time == PTOWSP_TIME_SIMULATED ? NULL
                        : time == PTOWSP_TIME_BOTH && !has_both
                            ? "two times side by side are for PERFETTO and CHROME"
                        : format > PTOWSP_EXPORT_TABLE ? "this format has no wall clock"
                        : !result->has_records || !result->has_clock
                            ? "the run has recorded no wall clock (has_clock)"
                            : NULL;
    return wrong ? pwsp_export_refuse(result->context, wrong) : PTOWSP_OK;
}

static bool pwsp_result_is_whole(const pwsp_result *result) {
    return result->is_done && result->pipelines->process_count == 0 &&
           pwsp_result_count(result) == result->stats->task_count;
}

static ptowsp_status pwsp_export_check(const pwsp_result *result, ptowsp_export_format format,
                                       ptowsp_export_options *options, ptowsp_output output) {
    if ((uint32_t)format > PTOWSP_EXPORT_NAMES) {
        return PWSP_REFUSE(result->context, "export: there is no format %d", (int)format);
    }
    ptowsp_status status = pwsp_export_check_output(result->context, options, output);
    if (status != PTOWSP_OK) {
        return status;
    }
    const bool is_dump = format >= PTOWSP_EXPORT_DEPS;
    const bool needs_tasks = format == PTOWSP_EXPORT_SVG || format == PTOWSP_EXPORT_CSV ||
                             format == PTOWSP_EXPORT_TABLE || is_dump;
    const bool needs_edges = format == PTOWSP_EXPORT_EDGES || format == PTOWSP_EXPORT_DOT ||
                             format == PTOWSP_EXPORT_DEPS;
    const char *wrong = !pwsp_result_has_sums(result)
                            ? "the run has recorded nothing (ptowsp_run_record)"
                        : needs_tasks && !result->has_records
                            ? "the run has recorded no tasks (PTOWSP_RECORD_TASKS)"
                        : needs_edges && !pwsp_result_has_edges(result)
                            ? "the run has recorded no edges (PTOWSP_RECORD_EDGES)"
                        : is_dump && !pwsp_result_is_whole(result)
                            ? "this format needs all tasks of a run that has ended well, without "
                              "pipelines"
                            : NULL;
    if (wrong) {
        return pwsp_export_refuse(result->context, wrong);
    }
    status = pwsp_export_check_time(result, format, options->time);
    if (status != PTOWSP_OK || format != PTOWSP_EXPORT_SVG) {
        return status;
    }
    pwsp_export_extent extent;
    pwsp_picture_extent(result, options->time == PTOWSP_TIME_WALL, &extent.makespan,
                        &extent.tracks);
    return pwsp_export_check_svg(result->context, extent, options);
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
    case PTOWSP_EXPORT_DEPS: return pwsp_export_deps(picture);
    case PTOWSP_EXPORT_SWIMLANE: pwsp_export_swimlane(picture); break;
    case PTOWSP_EXPORT_NAMES: pwsp_export_names(picture); break;
    default: PTOWSP_ASSERT(format == PTOWSP_EXPORT_DOT); return pwsp_export_edges(picture, true);
    }
    return true;
}

// The subject: a run or a set of spans, as a format of exports or, if it is_report, of reports.
typedef struct pwsp_export_job {
    const pwsp_result *result;
    const ptowsp_span_set *set;
    bool is_report;
    ptowsp_export_format format;
    ptowsp_report_format report;
    const ptowsp_what_if *what_ifs;
    uint32_t what_if_count;
    // Made for the job.
    ptowsp_task_record *records;  // of the set
    pwsp_picture picture, measured;
    pwsp_out out;
} pwsp_export_job;

// Makes the pictures. False when memory is out.
static bool pwsp_export_open(pwsp_export_job *job, const pwsp_memory *memory,
                             const ptowsp_export_options *options) {
    const bool is_wall = options->time == PTOWSP_TIME_WALL;
    const pwsp_picture_order order = job->format == PTOWSP_EXPORT_SVG      ? PWSP_ORDER_FLAT
                                     : job->format <= PTOWSP_EXPORT_CHROME ? PWSP_ORDER_NESTED
                                                                           : PWSP_ORDER_ANY;
    if (job->set) {
        if (!PWSP_ALLOC(memory, job->records, job->set->count) ||
            !pwsp_picture_init_spans(&job->picture, memory, job->set, options, &job->out,
                                     job->records, order)) {
            return false;
        }
    } else if (!pwsp_picture_init(&job->picture, memory, job->result, options, &job->out, is_wall,
                                  order)) {
        return false;
    }
    if (options->time == PTOWSP_TIME_BOTH) {
        job->picture.measured = &job->measured;
        if (!pwsp_picture_init(&job->measured, memory, job->result, options, &job->out, true,
                               order)) {
            return false;
        }
    }
    return true;
}

// False when memory is out.
static bool pwsp_export_draw(pwsp_export_job *job) {
    return job->is_report
               ? pwsp_report_write(&job->picture, job->report, job->what_ifs, job->what_if_count)
               : pwsp_export_write(&job->picture, job->format);
}

static ptowsp_status pwsp_export_do(ptowsp_context *context, const pwsp_export_job *asked,
                                    const ptowsp_export_options *options, ptowsp_output output) {
    pwsp_blocks blocks;
    const pwsp_memory memory = pwsp_blocks_begin(&blocks, &context->memory);
    ptowsp_status status = PTOWSP_OK;
    pwsp_export_job *job;
    if (!PWSP_ALLOC(&memory, job, 1)) {
        return PWSP_NO_MEMORY(context, "export: out of memory");
    }
    *job = *asked;
    pwsp_out_begin(&job->out, output);
    bool has_memory = pwsp_export_open(job, &memory, options);
    if (has_memory && job->format == PTOWSP_EXPORT_SVG && !job->is_report) {
        status = pwsp_export_check_rows(context, job->picture.row_count, options,
                                        ", where tasks overlap several times");
    }
    has_memory = has_memory && (status != PTOWSP_OK || pwsp_export_draw(job));
    const ptowsp_status ended = pwsp_out_end(&job->out, context, "export");
    status = !has_memory          ? PWSP_NO_MEMORY(context, "export: out of memory")
             : ended != PTOWSP_OK ? ended
                                  : status;
    pwsp_blocks_free(&blocks);
    return status;
}

ptowsp_status ptowsp_run_export(const ptowsp_run *run, ptowsp_export_format format,
                                const ptowsp_export_options *options, ptowsp_output output) {
    const pwsp_result *result = pwsp_run_result(run);
    ptowsp_export_options chosen = pwsp_export_options(options);
    ptowsp_status status = pwsp_export_check(result, format, &chosen, output);
    PWSP_ZERO(pwsp_export_job, job);
    job.result = result;
    job.format = format;
    return status == PTOWSP_OK ? pwsp_export_do(result->context, &job, &chosen, output) : status;
}

ptowsp_status ptowsp_run_report(const ptowsp_run *run, ptowsp_report_format format,
                                const ptowsp_export_options *options,
                                const ptowsp_what_if *what_ifs, uint32_t what_if_count,
                                ptowsp_output output) {
    const pwsp_result *result = pwsp_run_result(run);
    ptowsp_export_options chosen = pwsp_export_options(options);
    if ((uint32_t)format > PTOWSP_REPORT_HTML) {
        return PWSP_REFUSE(result->context, "export: there is no format %d of reports",
                           (int)format);
    }
    if (!what_ifs && what_if_count > 0) {
        return pwsp_fail_null(result->context, "export: what_ifs");
    }
    for (uint32_t i = 0; i < what_if_count; i++) {
        if ((what_ifs[i].kernel == 0 && what_ifs[i].memory_percent == 0) ||
            what_ifs[i].kernel >= result->program->kernels.count) {
            return pwsp_fail(result->context, PTOWSP_INVALID_PARAMS, i,
                             "export: what if %u is about no kernel", i);
        }
    }
    uint64_t makespan, tracks;
    pwsp_picture_extent(result, false, &makespan, &tracks);
    chosen.time = PTOWSP_TIME_SIMULATED;
    chosen.lane_max = chosen.lane_max ? chosen.lane_max : 64;
    bool is_drawn =
        format == PTOWSP_REPORT_HTML && result->has_records && tracks <= chosen.lane_max;
    ptowsp_status status = pwsp_export_check(
        result, is_drawn ? PTOWSP_EXPORT_SVG : PTOWSP_EXPORT_USAGE_CSV, &chosen, output);
    PWSP_ZERO(pwsp_export_job, job);
    job.result = result;
    job.is_report = true;
    job.format = is_drawn ? PTOWSP_EXPORT_SVG : PTOWSP_EXPORT_USAGE_CSV;
    job.report = format;
    job.what_ifs = what_ifs;
    job.what_if_count = what_if_count;
    return status == PTOWSP_OK ? pwsp_export_do(result->context, &job, &chosen, output) : status;
}

// -- spans ----------------------------------------------------------------------------------------

static bool pwsp_export_is_name(const char *name) {
    return name && strlen(name) <= PTOWSP_NAME_MAX;
}

// Of a set whose spans are good.
static ptowsp_status pwsp_export_check_ranks(ptowsp_context *context, const ptowsp_span_set *set) {
    for (uint32_t i = 0; set->lane_names && i < set->rank_lanes; i++) {
        if (!pwsp_export_is_name(set->lane_names[i])) {
            return pwsp_fail(context, PTOWSP_INVALID_PARAMS, i,
                             "export: the name of lane %u is NULL, or too long", i);
        }
    }
    if (set->arrow_count && !set->arrows) {
        return pwsp_export_refuse(context, "the arrows are NULL");
    }
    for (uint64_t i = 0; i < set->arrow_count; i++) {
        const ptowsp_span_arrow *arrow = &set->arrows[i];
        if (arrow->from >= set->count || arrow->to >= set->count || !set->spans[arrow->from].end ||
            !set->spans[arrow->to].end) {
            return pwsp_fail(context, PTOWSP_INVALID_PARAMS, i,
                             "export: arrow %" PRIu64 ", from span %" PRIu64 " to %" PRIu64
                             ": these did not run",
                             i, arrow->from, arrow->to);
        }
    }
    return PTOWSP_OK;
}

// Also finds the end and the lanes of its picture.
static ptowsp_status pwsp_export_check_spans(ptowsp_context *context, const ptowsp_span_set *set,
                                             pwsp_export_extent *out_extent) {
    uint64_t begin = UINT64_MAX, end = 0;
    memset(out_extent, 0, sizeof *out_extent);
    if (!set || (set->count && !set->spans) || (set->name_count && !set->names)) {
        return pwsp_export_refuse(context, "the set, its spans or its names are NULL");
    }
    for (uint32_t i = 0; i < set->name_count; i++) {
        if (!pwsp_export_is_name(set->names[i])) {
            return pwsp_fail(context, PTOWSP_INVALID_PARAMS, i,
                             "export: the name of kind %u is NULL, or too long", i);
        }
    }
    if (set->rank_lanes > UINT32_MAX / PTOWSP_RANK_COUNT_MAX) {
        return pwsp_fail(context, PTOWSP_INVALID_PARAMS, set->rank_lanes,
                         "export: ranks of %u lanes each: at most %u", set->rank_lanes,
                         UINT32_MAX / PTOWSP_RANK_COUNT_MAX);
    }
    const uint64_t lanes =
        set->rank_lanes ? (uint64_t)PTOWSP_RANK_COUNT_MAX * set->rank_lanes : PTOWSP_LANE_COUNT_MAX;
    for (uint64_t i = 0; i < set->count; i++) {
        const ptowsp_span *span = &set->spans[i];
        const char *wrong = span->end == 0                  ? NULL
                            : span->end < span->begin       ? "ends before it begins"
                            : span->kind >= set->name_count ? "is of a kind without a name"
                            : span->lane >= lanes           ? "is on a lane that cannot be"
                                                            : NULL;
        if (wrong) {
            return pwsp_fail(context, PTOWSP_INVALID_PARAMS, i, "export: span %" PRIu64 " %s", i,
                             wrong);
        }
        if (span->end) {
            begin = pwsp_min_u64(begin, span->begin);
            end = pwsp_max_u64(end, span->end);
            out_extent->tracks = pwsp_max_u64(out_extent->tracks, span->lane + UINT64_C(1));
        }
    }
    out_extent->makespan = end && !set->has_cycles ? end - begin : end;
    return pwsp_export_check_ranks(context, set);
}

ptowsp_status ptowsp_spans_export(ptowsp_context *context, const ptowsp_span_set *set,
                                  ptowsp_export_format format, const ptowsp_export_options *options,
                                  ptowsp_output output) {
    PTOWSP_ASSERT(context);
    ptowsp_export_options chosen = pwsp_export_options(options);
    pwsp_export_extent extent;
    PWSP_ZERO(pwsp_export_job, job);
    chosen.time = PTOWSP_TIME_WALL;
    job.set = set;
    job.format = format;
    if ((uint32_t)format > PTOWSP_EXPORT_TABLE) {
        return PWSP_REFUSE(context, "export: there is no format %d of spans", (int)format);
    }
    ptowsp_status status = pwsp_export_check_output(context, &chosen, output);
    if (status == PTOWSP_OK) {
        status = pwsp_export_check_spans(context, set, &extent);
    }
    if (status == PTOWSP_OK && format == PTOWSP_EXPORT_SVG) {
        status = pwsp_export_check_svg(context, extent, &chosen);
    }
    return status == PTOWSP_OK ? pwsp_export_do(context, &job, &chosen, output) : status;
}
