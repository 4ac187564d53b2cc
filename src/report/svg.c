// Timelines as SVG.
//
//      title, the time of the run
//      legend: kernels, reasons
//      lane 0   |####|//|######|       bars: tasks; stripes: the lane was idle, coloured by reason
//      lane 1   |  ####  |####|
//               0       50      100    time axis
//
// The rows are walked three times: for the entries of the legend, for bars, and for labels, which lie
// over the arrows between ranks and the lines that connect the critical path.
//
// Tasks narrower than half a pixel are drawn together: a column of pixels has the colour
// of the kernel that took most of it, the fainter the less of it was busy. So a lane has at most
// three shapes for each pixel, however many tasks there are.
//
// Coordinates are hundredths of pixels in integers, and times are scaled down before they overflow.

#include "picture.h"
#include "svg_style.h"

#include <inttypes.h>

enum {
    PWSP_SVG_MARGIN = 12,
    PWSP_SVG_LEFT = 84,
    PWSP_SVG_LEFT_OF_RANKS = 108,
    PWSP_SVG_RIGHT = 16,
    PWSP_SVG_TOP = 56,  // of the legend
    PWSP_SVG_ENTRY = 20,
    PWSP_SVG_SCALE = 100,
    PWSP_SVG_LEGEND = 150,  // width of an entry
    PWSP_SVG_ARROWS = 1000  // at most
};

typedef enum pwsp_svg_pass { PWSP_SVG_LOOK, PWSP_SVG_BARS, PWSP_SVG_LABELS } pwsp_svg_pass;

typedef struct pwsp_svg {
    pwsp_picture *picture;
    pwsp_out *out;
    uint64_t begin, end;  // cycles that are drawn
    uint32_t left, top;   // pixels: where the time axis begins, and the first lane
    uint32_t columns;     // of the legend
    uint32_t width, row;  // of the time axis; of a lane
    pwsp_svg_pass pass;
    uint64_t *cycles;  // by kernel: of tasks in the current pixel
    bool *is_used;     // by kernel
    bool has_stall[PTOWSP_STALL_COUNT];
    bool *is_critical;  // by slot
} pwsp_svg;

// -- numbers --------------------------------------------------------------------------------------

// The place of a time on the axis, in hundredths of pixels from its start.
static uint64_t pwsp_svg_x(const pwsp_svg *svg, uint64_t time) {
    uint64_t span = svg->end - svg->begin, scale = (uint64_t)svg->width * PWSP_SVG_SCALE;
    uint64_t at = pwsp_min_u64(pwsp_max_u64(time, svg->begin), svg->end) - svg->begin;
    while (span > UINT64_MAX / scale) {
        span /= 2;
        at /= 2;
    }
    return at * scale / span;
}

// A number of hundredths as a decimal.
typedef struct pwsp_svg_number {
    char text[28];
} pwsp_svg_number;

static pwsp_svg_number pwsp_svg_hundredths(uint64_t value) {
    pwsp_svg_number out;
    size_t length = pwsp_label_u64(value / 100, out.text);
    if (value % 100) {
        out.text[length++] = '.';
        out.text[length++] = (char)('0' + value / 10 % 10);
        if (value % 10) {
            out.text[length++] = (char)('0' + value % 10);
        }
    }
    out.text[length] = '\0';
    return out;
}

// The same of a place on the axis.
static pwsp_svg_number pwsp_svg_place(const pwsp_svg *svg, uint64_t x) {
    return pwsp_svg_hundredths(x + (uint64_t)svg->left * PWSP_SVG_SCALE);
}

static void pwsp_svg_head(pwsp_svg *svg, uint32_t height) {
    pwsp_out *out = svg->out;
    pwsp_picture *picture = svg->picture;
    uint32_t width = svg->left + svg->width + PWSP_SVG_RIGHT;
    pwsp_svg_begin(out, pwsp_picture_title(picture), width, height, picture->options->theme);
    bool has_lanes = picture->lane_count > 0;
    uint32_t tracks = has_lanes ? picture->lane_count : picture->track_count;
    pwsp_xml_print(out, "%s%s%s task%s, %u %s%s", pwsp_grouped(picture->makespan).text,
                   pwsp_picture_has_cycles(picture) ? " cycles, " : " ns, measured: ",
                   pwsp_grouped(picture->task_count).text, picture->task_count == 1 ? "" : "s",
                   tracks, has_lanes ? "lane" : "process",
                   tracks == 1 ? ""
                   : has_lanes ? "s"
                               : "es");
    if (pwsp_picture_has_ranks(picture)) {
        pwsp_out_format(out, " of %u ranks", tracks / pwsp_picture_rank_lanes(picture));
    }
    uint64_t capacity;
    if (picture->busy && pwsp_mul_fits(picture->makespan, tracks, &capacity)) {
        pwsp_out_format(out, ", lanes busy %s %% of the time",
                        pwsp_fixed(100.0 * (double)picture->busy / (double)capacity, 1).text);
    }
    if (svg->begin || svg->end != picture->makespan) {
        pwsp_xml_print(out, "; drawn: %s to %s", pwsp_grouped(svg->begin).text,
                       pwsp_grouped(svg->end).text);
    }
    pwsp_out_text(out, "</text>\n");
}

// -- lanes ----------------------------------------------------------------------------------------

static uint32_t pwsp_svg_y(const pwsp_svg *svg, uint32_t row) {
    return svg->top + row * svg->row;
}

static void pwsp_svg_rect(pwsp_svg *svg, uint64_t x, uint64_t width, uint32_t y, uint32_t height) {
    pwsp_xml_print(svg->out, "<rect x='%s' width='%s' y='%u' height='%u'",
                   pwsp_svg_place(svg, x).text, pwsp_svg_hundredths(width).text, y, height);
}

// The columns of pixels with narrow tasks of one look.
typedef struct pwsp_svg_columns {
    uint64_t first, last;  // pixels
    uint32_t kernel, tenths;
    bool is_open;
} pwsp_svg_columns;

static void pwsp_svg_close_columns(pwsp_svg *svg, pwsp_svg_columns *columns, uint32_t y) {
    if (columns->is_open && svg->pass == PWSP_SVG_BARS) {
        uint64_t count = columns->last + 1 - columns->first;
        pwsp_svg_rect(svg, columns->first * PWSP_SVG_SCALE, count * PWSP_SVG_SCALE, y + 2,
                      svg->row - 4);
        pwsp_xml_print(svg->out, " fill='%s' opacity='%u.%u'/>\n",
                       pwsp_svg_colour(columns->kernel - 1), columns->tenths / 10,
                       columns->tenths % 10);
    }
    columns->is_open = false;
}

// A pixel with narrow tasks is complete.
static void pwsp_svg_pixel(pwsp_svg *svg, pwsp_svg_columns *columns, uint64_t pixel, uint32_t y) {
    uint32_t kernel_count = pwsp_picture_kernel_count(svg->picture), best = 1;
    uint64_t all = 0, span = (svg->end - svg->begin) / svg->width + 1;
    for (uint32_t k = 1; k < kernel_count; k++) {
        all = pwsp_sum_u64(all, svg->cycles[k]);
        best = svg->cycles[k] > svg->cycles[best] ? k : best;
    }
    uint32_t tenths = (uint32_t)(10.0 * (double)all / (double)span + 0.5);
    tenths = tenths < 2 ? 2 : tenths > 10 ? 10 : tenths;
    if (!columns->is_open || columns->kernel != best || columns->tenths != tenths ||
        columns->last + 1 != pixel) {
        pwsp_svg_close_columns(svg, columns, y);
        columns->first = pixel;
        columns->kernel = best;
        columns->tenths = tenths;
        columns->is_open = true;
    }
    columns->last = pixel;
    memset(svg->cycles, 0, (size_t)kernel_count * sizeof(uint64_t));
}

// The text inside a bar: the most detailed label that fits.
static void pwsp_svg_label(pwsp_svg *svg, uint64_t slot, uint64_t x, uint64_t width, uint32_t y) {
    char label[PWSP_LABEL_MAX];
    const uint64_t letter = 620, margin = 600;  // about, of 10 pixel letters: in hundredths
    size_t length;
    if (svg->row < 16 || width < margin + letter) {
        return;
    }
    size_t room = (size_t)((width - margin) / letter);
    int detail = (int)pwsp_picture_detail(svg->picture);
    const int last = PWSP_LABEL_KERNEL;
    for (length = room + 1; detail <= last && length > room; detail++) {
        length = pwsp_picture_label(svg->picture, slot, (pwsp_label_detail)detail, label);
    }
    if (length > room || length == 0) {
        return;
    }
    pwsp_xml_print(svg->out, "<text class='b m' x='%s' y='%u'>%s</text>\n",
                   pwsp_svg_place(svg, x + width / 2).text, y + svg->row / 2 + 4, label);
}

// The time that a task has waited for others, over its bar.
static void pwsp_svg_wait(pwsp_svg *svg, uint64_t slot, uint32_t y) {
    char label[PWSP_WAIT_LABEL_MAX];
    uint64_t waits_for = 0;
    const ptowsp_task_record *record = pwsp_picture_record(svg->picture, slot);
    const uint64_t waited = pwsp_picture_wait(svg->picture, slot, &waits_for);
    const uint64_t x = pwsp_svg_x(svg, record->start);
    const uint64_t end = pwsp_svg_x(svg, record->start + waited);
    if (end < x + PWSP_SVG_SCALE) {
        return;
    }
    svg->has_stall[PTOWSP_STALL_RANK] = true;
    if (svg->pass == PWSP_SVG_BARS) {
        pwsp_picture_wait_label(svg->picture, waits_for, label);
        pwsp_svg_rect(svg, x, end - x, y + 2, svg->row - 4);
        pwsp_xml_print(svg->out, " fill='url(#s%d)'><title>%s</title></rect>\n",
                       (int)PTOWSP_STALL_RANK, label);
    }
}

// -- lines between bars ---------------------------------------------------------------------------

// A line from a time on one row to a time on another, from edge to edge of their bars.
static void pwsp_svg_line(pwsp_svg *svg, const char *look, uint64_t from, uint32_t from_row,
                          uint64_t to, uint32_t to_row) {
    const bool is_down = from_row < to_row;
    pwsp_xml_print(svg->out, "<line x1='%s' x2='%s' y1='%u' y2='%u'",
                   pwsp_svg_place(svg, pwsp_svg_x(svg, from)).text,
                   pwsp_svg_place(svg, pwsp_svg_x(svg, to)).text,
                   pwsp_svg_y(svg, from_row) + (is_down ? svg->row - 2 : 2),
                   pwsp_svg_y(svg, to_row) + (is_down ? 2 : svg->row - 2));
    pwsp_out_text(svg->out, look);
}

// An arrow for each wait: from the begin of the task that others wait for to the end of their wait.
static void pwsp_svg_arrows(pwsp_svg *svg) {
    const pwsp_picture *picture = svg->picture;
    const uint64_t count = picture->arrows ? picture->set->arrow_count : 0;
    for (uint64_t i = 0; count <= PWSP_SVG_ARROWS && i < count; i++) {
        const ptowsp_span_arrow *arrow = &picture->set->arrows[i];
        const ptowsp_task_record *from = pwsp_picture_record(picture, arrow->from);
        const ptowsp_task_record *to = pwsp_picture_record(picture, arrow->to);
        if (to->end < svg->begin || from->start > svg->end) {
            continue;
        }
        const uint64_t end = pwsp_max_u64(to->start, pwsp_min_u64(from->start, to->end));
        pwsp_svg_line(svg, " class=\"a\" marker-end=\"url(#a)\"/>\n", from->start,
                      pwsp_picture_row(picture, arrow->from), end,
                      pwsp_picture_row(picture, arrow->to));
    }
}

// Connects the tasks of the critical path that are on different rows.
static void pwsp_svg_path(pwsp_svg *svg) {
    const pwsp_picture *picture = svg->picture;
    const uint64_t count = picture->path ? picture->path_count : 0;
    for (uint64_t i = 1; count <= PWSP_SVG_ARROWS && i < count; i++) {
        const uint64_t a = picture->path[i - 1], b = picture->path[i];
        const uint64_t end = pwsp_picture_record(picture, a)->end;
        const uint64_t start = pwsp_picture_record(picture, b)->start;
        const uint32_t row = pwsp_picture_row(picture, a), next = pwsp_picture_row(picture, b);
        if (row != next && row < picture->row_count && next < picture->row_count &&
            start >= svg->begin && end <= svg->end) {
            pwsp_svg_line(svg, " class=\"c\"/>\n", end, row, start, next);
        }
    }
}

// -- rows -----------------------------------------------------------------------------------------

static void pwsp_svg_bar(pwsp_svg *svg, uint64_t slot, uint64_t x, uint64_t width, uint32_t y) {
    pwsp_picture *picture = svg->picture;
    pwsp_out *out = svg->out;
    char label[PWSP_LABEL_MAX];
    const ptowsp_task_record *record = pwsp_picture_record(picture, slot);
    width -= width >= 4 * PWSP_SVG_SCALE ? PWSP_SVG_SCALE : 0;  // neighbours stay apart
    if (svg->pass == PWSP_SVG_LABELS) {
        pwsp_svg_label(svg, slot, x, width, y);
        return;
    }
    if (svg->pass == PWSP_SVG_LOOK) {
        pwsp_svg_wait(svg, slot, y);
        return;
    }
    pwsp_svg_rect(svg, x, width, y + 2, svg->row - 4);
    pwsp_picture_label(picture, slot, PWSP_LABEL_FULL, label);
    pwsp_xml_print(out, " fill='url(#k%u)'><title>%s\ntask %" PRIu64 ": %" PRIu64 " to %" PRIu64,
                   (record->kernel - 1) % PWSP_SVG_KERNELS, label,
                   pwsp_picture_task(picture, slot).index, record->start, record->end);
    if (record->stall != PTOWSP_STALL_NONE) {
        pwsp_out_format(out, ", after %s", ptowsp_stall_name(record->stall));
    }
    if (record->cause != PTOWSP_NO_INDEX) {
        pwsp_out_format(out, " (task %" PRIu64 ")", record->cause);
    }
    pwsp_out_text(out, "</title></rect>\n");
    pwsp_svg_wait(svg, slot, y);
    if (svg->is_critical && svg->is_critical[slot] && width >= 5 * PWSP_SVG_SCALE) {
        pwsp_svg_rect(svg, x + 80, width - 160, y + 3, svg->row - 6);
        pwsp_out_text(out, " class=\"c\" pointer-events=\"none\"/>\n");
    }
}

// Stripes where a lane was idle.
static void pwsp_svg_gap(pwsp_svg *svg, uint64_t from, uint64_t to, ptowsp_stall stall,
                         uint32_t y) {
    uint64_t x = pwsp_svg_x(svg, from), end = pwsp_svg_x(svg, to);
    if (end < x + PWSP_SVG_SCALE) {
        return;
    }
    svg->has_stall[stall] = true;
    if (svg->pass == PWSP_SVG_BARS) {
        pwsp_svg_rect(svg, x, end - x, y + 4, svg->row - 8);
        pwsp_out_format(svg->out, " fill=\"url(#s%d)\"/>\n", (int)stall);
    }
}

// A row of a track. Stripes are of tracks that have one row: others are idle where all theirs are.
static void pwsp_svg_row(pwsp_svg *svg, uint32_t track, uint32_t row) {
    pwsp_picture *picture = svg->picture;
    uint32_t y = pwsp_svg_y(svg, row);
    uint64_t last = 0, pixel = UINT64_MAX;
    pwsp_svg_columns columns = {0, 0, 0, 0, false};
    bool is_alone =
        pwsp_picture_first_row(picture, track + 1) - pwsp_picture_first_row(picture, track) == 1;
    bool is_whole = is_alone && !picture->is_wall && picture->result->recorder.is_dense;
    for (uint64_t i = picture->firsts[row]; i < picture->firsts[row + 1]; i++) {
        uint64_t slot = picture->order[i];
        const ptowsp_task_record *record = pwsp_picture_record(picture, slot);
        uint64_t x = pwsp_svg_x(svg, record->start), end = pwsp_svg_x(svg, record->end);
        if (is_whole && record->start > last) {
            pwsp_svg_gap(svg, last, record->start, record->stall, y);
        }
        last = record->end;
        bool is_before = record->end <= svg->begin && record->start < svg->begin;
        if (is_before || (record->start >= svg->end && svg->end < picture->makespan)) {
            continue;
        }
        svg->is_used[record->kernel] = true;
        if (end - x >= PWSP_SVG_SCALE / 2) {
            if (pixel != UINT64_MAX) {
                pwsp_svg_pixel(svg, &columns, pixel, y);
                pixel = UINT64_MAX;
            }
            pwsp_svg_close_columns(svg, &columns, y);
            pwsp_svg_bar(svg, slot, x, end - x, y);
            continue;
        }
        if (pixel != UINT64_MAX && pixel != x / PWSP_SVG_SCALE) {
            pwsp_svg_pixel(svg, &columns, pixel, y);
        }
        pixel = x / PWSP_SVG_SCALE;
        uint64_t *cycles = &svg->cycles[record->kernel];
        *cycles = pwsp_sum_u64(*cycles, record->end - record->start);
    }
    if (pixel != UINT64_MAX) {
        pwsp_svg_pixel(svg, &columns, pixel, y);
    }
    pwsp_svg_close_columns(svg, &columns, y);
    if (is_whole && track < picture->lane_count) {
        pwsp_svg_gap(svg, last, picture->makespan, PTOWSP_STALL_NONE, y);
    }
}

static void pwsp_svg_track_name(pwsp_svg *svg, uint32_t track) {
    char name[PWSP_TRACK_NAME_MAX];
    const uint32_t room = svg->left - PWSP_SVG_MARGIN;  // pixels; a letter takes some 6
    pwsp_picture_track_name(svg->picture, track, name);
    pwsp_xml_print(svg->out, "<text class='t n' x='%u' y='%u'", svg->left - 8,
                   pwsp_svg_y(svg, pwsp_picture_first_row(svg->picture, track)) + svg->row / 2 + 4);
    if (strlen(name) > room / 6) {
        pwsp_xml_print(svg->out, " textLength='%u' lengthAdjust='spacingAndGlyphs'", room);
    }
    pwsp_xml_print(svg->out, ">%s</text>\n", name);
}

static void pwsp_svg_tracks(pwsp_svg *svg, pwsp_svg_pass pass) {
    svg->pass = pass;
    for (uint32_t i = 0; i < svg->picture->track_count && !svg->out->has_failed; i++) {
        const uint32_t first = pwsp_picture_first_row(svg->picture, i);
        const uint32_t end = pwsp_picture_first_row(svg->picture, i + 1);
        if (pass == PWSP_SVG_BARS && (svg->row >= 12 || i % 4 == 0)) {
            pwsp_svg_track_name(svg, i);
        }
        for (uint32_t row = first; row < end; row++) {
            pwsp_svg_row(svg, i, row);
        }
    }
}

// -- axis and legend ------------------------------------------------------------------------------

// The distance of ticks: 1, 2 or 5 times a power of ten, with some 100 pixels between them.
static uint64_t pwsp_svg_step(const pwsp_svg *svg) {
    uint64_t wanted = pwsp_max_u64((svg->end - svg->begin) / (svg->width / 100), 1), step = 1;
    for (uint32_t i = 0; step < wanted && step <= UINT64_MAX / 10; i++) {
        step = i % 3 == 1 ? step / 2 * 5 : step * 2;  // 1, 2, 5, 10
    }
    return step;
}

static void pwsp_svg_axis(pwsp_svg *svg, bool is_grid) {
    pwsp_out *out = svg->out;
    uint32_t bottom = pwsp_svg_y(svg, svg->picture->row_count);
    uint64_t step = pwsp_svg_step(svg);
    uint64_t after = (step - svg->begin % step) % step;  // from the begin to a tick
    for (uint64_t left = svg->end - svg->begin; after <= left && !out->has_failed; after = step) {
        left -= after;
        uint64_t time = svg->end - left;
        const pwsp_svg_number x = pwsp_svg_place(svg, pwsp_svg_x(svg, time));
        if (is_grid) {
            pwsp_xml_print(out, "<line class='g' x1='%s' x2='%s' y1='%u' y2='%u'/>\n", x.text,
                           x.text, svg->top, bottom + 4);
        } else {
            pwsp_xml_print(out, "<text class='u m' x='%s' y='%u'>%s%s</text>\n", x.text,
                           bottom + 18, pwsp_grouped(time).text,
                           time != svg->begin                      ? ""
                           : pwsp_picture_has_cycles(svg->picture) ? " cycles"
                                                                   : " ns");
        }
    }
}

// An entry of the legend, which starts at the left edge: `at` is its number.
static void pwsp_svg_entry(pwsp_svg *svg, uint32_t at, char kind, uint32_t index,
                           const char *name) {
    const uint32_t x = PWSP_SVG_MARGIN + at % svg->columns * PWSP_SVG_LEGEND;
    const uint32_t y = PWSP_SVG_TOP + at / svg->columns * PWSP_SVG_ENTRY + 10;
    pwsp_out_format(svg->out, "<rect x=\"%u\" y=\"%u\" width=\"18\" height=\"12\" ", x, y - 10);
    if (kind == 'c') {
        pwsp_out_text(svg->out, "class=\"c\"/>");
    } else {
        pwsp_out_format(svg->out, "fill=\"url(#%c%u)\"/>", kind, index);
    }
    pwsp_xml_print(svg->out,
                   strlen(name) > 19 ? "<text class='t' x='%u' y='%u' textLength='118' "
                                       "lengthAdjust='spacingAndGlyphs'>%s</text>\n"
                                     : "<text class='t' x='%u' y='%u'>%s</text>\n",
                   x + 24, y, name);
}

// Draws the legend, or only counts it; returns the number of entries.
static uint32_t pwsp_svg_legend(pwsp_svg *svg, bool is_drawn) {
    pwsp_picture *picture = svg->picture;
    uint32_t count = 0;
    for (uint32_t k = 1; k < pwsp_picture_kernel_count(picture); k++) {
        if (svg->is_used[k] && is_drawn) {
            pwsp_svg_entry(svg, count, 'k', (k - 1) % PWSP_SVG_KERNELS,
                           pwsp_picture_kernel(picture, k));
        }
        count += svg->is_used[k];
    }
    for (uint32_t i = 0; i < PTOWSP_STALL_COUNT; i++) {
        if (svg->has_stall[i] && is_drawn) {
            pwsp_svg_entry(svg, count, 's', i, pwsp_svg_stall_name(i));
        }
        count += svg->has_stall[i];
    }
    if (svg->is_critical && is_drawn) {
        pwsp_svg_entry(svg, count, 'c', 0, "critical path");
    }
    return count + (svg->is_critical != NULL);
}

static void pwsp_svg_draw(pwsp_svg *svg) {
    pwsp_picture *picture = svg->picture;
    pwsp_svg_tracks(svg, PWSP_SVG_LOOK);
    const uint32_t lines = (pwsp_svg_legend(svg, false) + svg->columns - 1) / svg->columns;
    svg->top = PWSP_SVG_TOP + lines * PWSP_SVG_ENTRY + 4;
    pwsp_svg_head(svg, pwsp_svg_y(svg, picture->row_count) + 30);
    pwsp_svg_legend(svg, true);
    for (uint32_t i = 0; i < picture->row_count; i += 2) {
        pwsp_xml_print(svg->out, "<rect class='row' x='%u' y='%u' width='%u' height='%u'/>\n",
                       svg->left, pwsp_svg_y(svg, i), svg->width, svg->row);
    }
    pwsp_svg_axis(svg, true);
    pwsp_svg_tracks(svg, PWSP_SVG_BARS);
    pwsp_svg_path(svg);
    pwsp_svg_arrows(svg);
    pwsp_svg_tracks(svg, PWSP_SVG_LABELS);
    pwsp_svg_axis(svg, false);
    pwsp_out_text(svg->out, "</svg>\n");
}

PWSP_INTERNAL bool pwsp_export_svg(pwsp_picture *picture) {
    const pwsp_memory *memory = &picture->memory;
    const ptowsp_export_options *options = picture->options;
    size_t kernels = (size_t)pwsp_picture_kernel_count(picture) + 1;
    const uint64_t *path = picture->path;
    PWSP_ZERO(pwsp_svg, svg);
    svg.picture = picture;
    svg.out = picture->out;
    svg.begin = options->begin;
    svg.end = options->end ? options->end : picture->makespan;
    svg.end = pwsp_max_u64(svg.end, svg.begin + 1);
    svg.left = pwsp_picture_has_ranks(picture) ? PWSP_SVG_LEFT_OF_RANKS : PWSP_SVG_LEFT;
    svg.width = options->width - svg.left - PWSP_SVG_RIGHT;
    svg.columns = (svg.left + svg.width - PWSP_SVG_MARGIN) / PWSP_SVG_LEGEND;
    svg.row = picture->row_count <= 16 ? 24 : picture->row_count <= 64 ? 14 : 8;
    bool has_memory = PWSP_ALLOC(memory, svg.cycles, kernels) &&
                      PWSP_ALLOC(memory, svg.is_used, kernels) &&
                      PWSP_ALLOC(memory, svg.is_critical, path ? picture->count : 0);
    if (has_memory) {
        for (uint64_t i = 0; i < picture->path_count; i++) {
            svg.is_critical[path[i]] = true;
        }
        pwsp_svg_draw(&svg);
    }
    return has_memory;
}
