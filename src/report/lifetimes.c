// The memory of transient tensors, drawn: lifetimes by point and offset.
//
//      title, peak, sum
//      peak |          +-------------+
//           |   q      |   scores    |
//           |----------+------+------+
//         0 |      h          |  mlp |
//            point 0   1      2       points of the program

#include "picture.h"
#include "svg_style.h"

#include <inttypes.h>

enum {
    PWSP_LIFETIMES_LEFT = 84,
    PWSP_LIFETIMES_TOP = 56,
    PWSP_LIFETIMES_RIGHT = 16,
    PWSP_LIFETIMES_HEIGHT = 240,
    PWSP_LIFETIMES_BOTTOM = 28,
    PWSP_LIFETIMES_LETTER = 6  // pixels of a character
};

typedef struct pwsp_lifetimes_job {
    const pwsp_result *result;
    const ptowsp_export_options *options;
    const char *title;
    ptowsp_transient_sizes sizes;
    pwsp_out out;
} pwsp_lifetimes_job;

static const char *pwsp_lifetime_name(const pwsp_result *result, const ptowsp_lifetime *lifetime) {
    return result->program->tensors.items[lifetime->tensor].name;
}

static void pwsp_lifetimes_rows(pwsp_lifetimes_job *job, bool is_csv) {
    pwsp_out *out = &job->out;
    if (is_csv) {
        pwsp_out_text(out, "tensor,offset,bytes,first,last,from,to\r\n");
    } else {
        pwsp_out_format(out,
                        "transient tensors: %" PRIu64 " bytes in one block, %" PRIu64
                        " each alone, %" PRIu64 " alive at most\n%-24s %12s %12s  lives\n",
                        job->sizes.peak, job->sizes.sum, job->sizes.low, "tensor", "offset",
                        "bytes");
    }
    for (uint32_t i = 0; i < job->sizes.lifetime_count; i++) {
        ptowsp_lifetime at = pwsp_result_lifetime_at(job->result, i);
        char from[PTOWSP_NAME_MAX * 4], to[PTOWSP_NAME_MAX * 4];
        ptowsp_output_buffer first = {from, sizeof from, 0}, last = {to, sizeof to, 0};
        const char *name = pwsp_lifetime_name(job->result, &at);
        ptowsp_program_print_point(job->result->program, at.first, ptowsp_output_to_buffer(&first));
        ptowsp_program_print_point(job->result->program, at.last, ptowsp_output_to_buffer(&last));
        if (is_csv) {
            pwsp_csv_print(out, "%s,%" PRIu64 ",%" PRIu64 ",%u,%u,%s,%s\r\n", name, at.offset,
                           at.size, at.first, at.last, from, to);
        } else {
            pwsp_out_format(out, "%-24s %12" PRIu64 " %12" PRIu64 "  %u %s", name, at.offset,
                            at.size, at.first, from);
            if (at.last != at.first) {
                pwsp_out_format(out, " to %u %s", at.last, to);
            }
            pwsp_out_text(out, "\n");
        }
    }
}

static void pwsp_lifetimes_head(pwsp_lifetimes_job *job) {
    pwsp_out *out = &job->out;
    uint32_t height = PWSP_LIFETIMES_TOP + PWSP_LIFETIMES_HEIGHT + PWSP_LIFETIMES_BOTTOM;
    pwsp_svg_begin(out, job->title, job->options->width, height, job->options->theme);
    pwsp_xml_print(out,
                   "transient tensors: %s bytes in one block, %s each alone, %s alive at most"
                   "</text>\n",
                   pwsp_grouped(job->sizes.peak).text, pwsp_grouped(job->sizes.sum).text,
                   pwsp_grouped(job->sizes.low).text);
}

// A number of bytes or points, of `all`, as pixels of `span`, in hundredths.
static double pwsp_lifetimes_scale(uint64_t value, uint64_t all, uint32_t span) {
    return (double)span * (double)value / (double)(all ? all : 1);
}

static void pwsp_lifetimes_svg(pwsp_lifetimes_job *job) {
    pwsp_out *out = &job->out;
    uint32_t width = job->options->width - PWSP_LIFETIMES_LEFT - PWSP_LIFETIMES_RIGHT;
    uint32_t bottom = PWSP_LIFETIMES_TOP + PWSP_LIFETIMES_HEIGHT;
    pwsp_lifetimes_head(job);
    pwsp_xml_print(out, "<rect class='row' x='%u' y='%u' width='%u' height='%u'/>\n",
                   (uint32_t)PWSP_LIFETIMES_LEFT, (uint32_t)PWSP_LIFETIMES_TOP, width,
                   (uint32_t)PWSP_LIFETIMES_HEIGHT);
    for (uint32_t i = 0; i < job->sizes.lifetime_count; i++) {
        ptowsp_lifetime at = pwsp_result_lifetime_at(job->result, i);
        const char *name = pwsp_lifetime_name(job->result, &at);
        double x = pwsp_lifetimes_scale(at.first, job->sizes.point_count, width);
        double w = pwsp_lifetimes_scale(at.last + 1 - at.first, job->sizes.point_count, width);
        double h = pwsp_lifetimes_scale(at.size, job->sizes.peak, PWSP_LIFETIMES_HEIGHT);
        double y = pwsp_lifetimes_scale(at.offset, job->sizes.peak, PWSP_LIFETIMES_HEIGHT);
        if (at.size == 0) {
            continue;
        }
        pwsp_xml_print(
            out,
            "<rect fill='url(#k%u)' stroke='#000' stroke-opacity='.5' x='%s' y='%s' "
            "width='%s' height='%s'><title>%s: %" PRIu64 " bytes at %" PRIu64 "</title></rect>\n",
            at.tensor % PWSP_SVG_KERNELS, pwsp_fixed((double)PWSP_LIFETIMES_LEFT + x, 2).text,
            pwsp_fixed((double)bottom - y - h, 2).text, pwsp_fixed(w, 2).text,
            pwsp_fixed(h, 2).text, name, at.size, at.offset);
        if (w > (double)(PWSP_LIFETIMES_LETTER * strlen(name)) && h >= 12) {
            pwsp_xml_print(out, "<text class='b m' x='%s' y='%s'>%s</text>\n",
                           pwsp_fixed((double)PWSP_LIFETIMES_LEFT + x + w / 2, 2).text,
                           pwsp_fixed((double)bottom - y - h / 2 + 4, 2).text, name);
        }
    }
    pwsp_xml_print(out,
                   "<text class='u n' x='%d' y='%d'>%s</text>\n<text class='u n' x='%d' y='%u'>0"
                   "</text>\n<text class='u' x='%d' y='%u'>points of the program: %u</text>\n"
                   "</svg>\n",
                   PWSP_LIFETIMES_LEFT - 6, PWSP_LIFETIMES_TOP + 8,
                   pwsp_grouped(job->sizes.peak).text, PWSP_LIFETIMES_LEFT - 6, bottom,
                   PWSP_LIFETIMES_LEFT, bottom + 18, job->sizes.point_count);
}

static ptowsp_status pwsp_lifetimes_check(const pwsp_result *result, ptowsp_export_format format,
                                          ptowsp_export_options *options, ptowsp_output output) {
    bool is_known =
        format == PTOWSP_EXPORT_SVG || format == PTOWSP_EXPORT_CSV || format == PTOWSP_EXPORT_TABLE;
    options->width = options->width ? options->width : 960;
    const char *wrong =
        !is_known       ? "transient tensors are drawn as SVG, CSV or TABLE"
        : !output.write ? "an output without a function"
        : (uint32_t)options->theme > PTOWSP_THEME_DARK   ? "there is no such theme"
        : options->width < 320 || options->width > 10000 ? "a width is not in 320 to 10000"
        : result->program->transients.count == 0         ? "there are no transient tensors"
        : !*result->is_placed ? "no transient tensors have been placed (ptowsp_run_size_transients)"
                              : NULL;
    return wrong ? PWSP_REFUSE(result->context, "export: %s", wrong) : PTOWSP_OK;
}

ptowsp_status ptowsp_run_export_transients(const ptowsp_run *run, ptowsp_export_format format,
                                           const ptowsp_export_options *options,
                                           ptowsp_output output) {
    const pwsp_result *result = pwsp_run_result(run);
    ptowsp_export_options chosen = pwsp_export_options(options);
    pwsp_lifetimes_job job;
    ptowsp_status status = pwsp_lifetimes_check(result, format, &chosen, output);
    if (status != PTOWSP_OK) {
        return status;
    }
    job.result = result;
    job.options = &chosen;
    job.title = chosen.title ? chosen.title : pwsp_program_title(result->program);
    job.sizes = pwsp_result_transient_sizes(result);
    pwsp_out_begin(&job.out, output);
    if (format == PTOWSP_EXPORT_SVG) {
        pwsp_lifetimes_svg(&job);
    } else {
        pwsp_lifetimes_rows(&job, format == PTOWSP_EXPORT_CSV);
    }
    return pwsp_out_end(&job.out, result->context, "export");
}
