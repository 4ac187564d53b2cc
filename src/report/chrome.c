// Chrome's JSON: an event per line.
//
// Times are microseconds, written as whole numbers of nanoseconds with the point moved, so that no
// digit is lost here. An arrow of the critical path leaves a task in its last nanosecond: an arrow
// at its end would belong to the next slice.
//
// Viewers take times as doubles, and an end is ts + dur, rounded. With three digits that may be
// later than the ts of the next slice, or than the end of the slice around: 0.1 + 0.2 > 0.3. Then a
// viewer draws the next slice inside of this one. Such a dur has more digits, so that the sum is
// the last double up to the end that has an even mantissa. A sum can always be that one, as ties
// round to even. Where slices nest, all sums are, so that slices with one end have one sum.

#include "picture.h"

#include <inttypes.h>

enum { PWSP_CHROME_LANES = 1, PWSP_CHROME_PROCESSES, PWSP_CHROME_MEASURED };

static void pwsp_chrome_time(pwsp_out *out, const char *name, uint64_t ns) {
    char text[32];
    size_t length = pwsp_label_u64(ns / 1000, text);
    text[length++] = '.';
    text[length++] = (char)('0' + ns / 100 % 10);
    text[length++] = (char)('0' + ns / 10 % 10);
    text[length++] = (char)('0' + ns % 10);
    pwsp_out_text(out, name);
    pwsp_out_bytes(out, text, length);
}

// A double with the digits that it has, up to those that are less than `least`.
static void pwsp_chrome_double(pwsp_out *out, double value, double least) {
    char text[48];
    size_t length = pwsp_label_u64((uint64_t)value, text);
    // Below the point, in units of 2^-62: durations are at least 2^-10, so these are all bits.
    uint64_t rest = (uint64_t)((value - (double)(uint64_t)value) * 4611686018427387904.0);
    text[length++] = '.';
    for (double digit = 1; digit > least && (rest || digit == 1); digit /= 10) {
        const uint64_t low = (rest & UINT32_MAX) * 10, high = (rest >> 32) * 10 + (low >> 32);
        text[length++] = (char)('0' + (high >> 30));
        rest = (high & ((1u << 30) - 1)) << 32 | (low & UINT32_MAX);
    }
    pwsp_out_bytes(out, text, length);
}

// Rounds a double down to an even mantissa. *out_step: from the double before to this one.
static double pwsp_chrome_even(double value, double *out_step) {
    uint64_t bits;
    double before;
    memcpy(&bits, &value, sizeof bits);
    bits -= bits & 1;
    memcpy(&value, &bits, sizeof value);
    bits--;
    memcpy(&before, &bits, sizeof before);
    *out_step = value - before;
    return value;
}

// The time and duration of a slice. From 2^53 ns on readers round times, and nothing helps.
static void pwsp_chrome_slice(const pwsp_picture *picture, uint64_t start, uint64_t end) {
    const double from = (double)start / 1000.0, to = (double)end / 1000.0;
    const double sum = from + (double)(end - start) / 1000.0;
    const bool nests = picture->outers || picture->arrows;
    double step = 0;
    const double last = start == end ? to : pwsp_chrome_even(to, &step);
    pwsp_chrome_time(picture->out, ",\"ts\":", start);
    if (start == end || end >= UINT64_C(1) << 53 || (nests ? sum == last : sum <= to)) {
        pwsp_chrome_time(picture->out, ",\"dur\":", end - start);
        return;
    }
    pwsp_out_text(picture->out, ",\"dur\":");
    pwsp_chrome_double(picture->out, last > from ? last - from : 0, step / 8);
}

// A row is a thread. Second rows of tracks are numbered after all first rows.
static void pwsp_chrome_row(const pwsp_picture *picture, uint32_t track, uint32_t row) {
    const uint32_t lanes = pwsp_picture_rank_lanes(picture);
    const bool is_lane = track < picture->lane_count;
    const bool is_first = row == pwsp_picture_first_row(picture, track);
    const int kind = picture->is_wall ? PWSP_CHROME_MEASURED
                     : is_lane        ? PWSP_CHROME_LANES
                                      : PWSP_CHROME_PROCESSES;
    const uint32_t process = lanes ? track / lanes + 1 : (uint32_t)kind;
    const uint32_t thread = !is_first ? picture->track_count + row - track
                            : lanes   ? track % lanes
                            : is_lane ? track
                                      : track - picture->lane_count;
    pwsp_json_print(picture->out, ",'pid':%u,'tid':%" PRIu64, process, (uint64_t)thread + 1);
}

static void pwsp_chrome_slot_row(const pwsp_picture *picture, uint64_t slot) {
    pwsp_chrome_row(picture, pwsp_picture_track(picture, slot), pwsp_picture_row(picture, slot));
}

static void pwsp_chrome_threads(pwsp_picture *picture, uint32_t track) {
    pwsp_out *out = picture->out;
    const uint32_t end = pwsp_picture_first_row(picture, track + 1);
    for (uint32_t row = pwsp_picture_first_row(picture, track); row < end; row++) {
        char name[PWSP_TRACK_NAME_MAX];
        pwsp_picture_row_name(picture, track, row, name);
        pwsp_json_print(out, ",\n{'ph':'M','name':'thread_name'");
        pwsp_chrome_row(picture, track, row);
        pwsp_json_print(out, ",'args':{'name':'%s'}},\n{'ph':'M','name':'thread_sort_index'", name);
        pwsp_chrome_row(picture, track, row);
        pwsp_json_print(out, ",'args':{'sort_index':%u}}", row);
    }
}

// A process for each rank.
static void pwsp_chrome_ranks(pwsp_picture *picture) {
    const uint32_t lanes = pwsp_picture_rank_lanes(picture);
    for (uint32_t i = 0; i < picture->track_count; i++) {
        const uint32_t rank = i / lanes;
        if (i % lanes == 0) {
            pwsp_out_text(picture->out, i ? ",\n" : "");
            pwsp_json_print(picture->out,
                            "{'ph':'M','name':'process_name','pid':%u,'args':{'name':'rank %u'}},\n"
                            "{'ph':'M','name':'process_sort_index','pid':%u,"
                            "'args':{'sort_index':%u}}",
                            rank + 1, rank, rank + 1, rank);
        }
        pwsp_chrome_threads(picture, i);
    }
}

static void pwsp_chrome_names(pwsp_picture *picture, bool is_first) {
    pwsp_out *out = picture->out;
    if (pwsp_picture_rank_lanes(picture) && picture->track_count) {
        pwsp_chrome_ranks(picture);
        return;
    }
    pwsp_out_text(out, is_first ? "" : ",\n");
    pwsp_json_print(out, "{'ph':'M','name':'process_name','pid':%d,'args':{'name':'%s%s'}}",
                    picture->is_wall ? (int)PWSP_CHROME_MEASURED : (int)PWSP_CHROME_LANES,
                    pwsp_picture_title(picture), picture->is_wall ? ", measured" : "");
    if (picture->track_count > picture->lane_count) {
        pwsp_json_print(out,
                        ",\n{'ph':'M','name':'process_name','pid':2,'args':{'name':'processes'}}");
    }
    for (uint32_t i = 0; i < picture->track_count; i++) {
        pwsp_chrome_threads(picture, i);
    }
}

static void pwsp_chrome_args(pwsp_picture *picture, uint64_t slot) {
    pwsp_out *out = picture->out;
    ptowsp_task_trace task = pwsp_picture_task(picture, slot);
    const pwsp_label_part *parts =
        picture->set ? NULL : pwsp_picture_parts(picture, task.record->node);
    const ptowsp_task_record *record = pwsp_picture_record(picture, slot);
    pwsp_json_print(out, ",'args':{'task':%" PRIu64 ",'stall':'%s'", task.index,
                    ptowsp_stall_name(record->stall));
    if (picture->is_wall) {
        pwsp_json_print(out, ",'waited_ns':%" PRIu64, record->start - record->ready);
    }
    if (record->cause != PTOWSP_NO_INDEX) {
        pwsp_json_print(out, ",'cause':%" PRIu64, record->cause);
    }
    pwsp_json_print(out, ",'bytes_read':%" PRIu64 ",'bytes_written':%" PRIu64 ",'values':{",
                    task.bytes_read, task.bytes_written);
    for (uint32_t i = 0; i < task.axis_count + task.scalar_count; i++) {
        char value[24];
        size_t length = pwsp_label_value(&parts[i], task.args[i], value);
        pwsp_json_print(out, "%s'%s':", i ? "," : "", parts[i].name);
        pwsp_out_bytes(out, value, length);
    }
    pwsp_out_text(out, "}}");
}

static void pwsp_chrome_task(pwsp_picture *picture, uint64_t slot) {
    pwsp_out *out = picture->out;
    char label[PWSP_LABEL_MAX];
    const ptowsp_task_record *record = pwsp_picture_record(picture, slot);
    uint64_t start = pwsp_picture_ns(picture, record->start);
    pwsp_json_print(out, ",\n{'ph':'X'");
    pwsp_chrome_slot_row(picture, slot);
    pwsp_chrome_slice(picture, start, pwsp_picture_ns(picture, record->end));
    pwsp_picture_label(picture, slot, pwsp_picture_detail(picture), label);
    pwsp_json_print(out, ",'cat':'%s','name':'%s'", pwsp_picture_kernel(picture, record->kernel),
                    label);
    if (!picture->options->is_short) {
        pwsp_chrome_args(picture, slot);
    }
    pwsp_out_text(out, "}");
    uint64_t waits_for = 0;
    const uint64_t waited = pwsp_picture_wait(picture, slot, &waits_for);
    if (waited) {
        const uint64_t until = pwsp_picture_ns(picture, record->start + waited);
        pwsp_picture_wait_label(picture, waits_for, label);
        pwsp_json_print(out, ",\n{'ph':'X'");
        pwsp_chrome_slot_row(picture, slot);
        pwsp_chrome_slice(picture, start, until);
        pwsp_json_print(out, ",'cat':'rank','name':'%s'}", label);
    }
}

// One end of an arrow, at a time of the slot's track.
static void pwsp_chrome_flow_end(pwsp_picture *picture, const char *kind, const char *name,
                                 uint64_t id, uint64_t slot, uint64_t time) {
    pwsp_out *out = picture->out;
    pwsp_out_format(out, ",\n{\"ph\":%s,\"cat\":\"%s\",\"name\":\"%s\",\"id\":", kind, name, name);
    pwsp_out_u64(out, id);
    pwsp_chrome_slot_row(picture, slot);
    pwsp_chrome_time(out, ",\"ts\":", time);
    pwsp_out_text(out, "}");
}

// The last nanosecond of a slot.
static uint64_t pwsp_chrome_last(const pwsp_picture *picture, uint64_t slot) {
    const ptowsp_task_record *record = pwsp_picture_record(picture, slot);
    uint64_t start = pwsp_picture_ns(picture, record->start);
    uint64_t end = pwsp_picture_ns(picture, record->end);
    return end > start ? end - 1 : start;
}

static uint64_t pwsp_chrome_first(const pwsp_picture *picture, uint64_t slot) {
    return pwsp_picture_ns(picture, pwsp_picture_record(picture, slot)->start);
}

static void pwsp_chrome_flows(pwsp_picture *picture) {
    static const char from[] = "\"s\"", to[] = "\"f\",\"bp\":\"e\"";
    const uint64_t *path = picture->path;
    for (uint64_t i = 0; i + 1 < picture->path_count && !picture->out->has_failed; i++) {
        pwsp_chrome_flow_end(picture, from, "critical", i + 1, path[i],
                             pwsp_chrome_last(picture, path[i]));
        pwsp_chrome_flow_end(picture, to, "critical", i + 1, path[i + 1],
                             pwsp_chrome_first(picture, path[i + 1]));
    }
    const uint64_t arrow_count = picture->arrows ? picture->set->arrow_count : 0;
    for (uint64_t i = 0; i < arrow_count && !picture->out->has_failed; i++) {
        const ptowsp_span_arrow *arrow = &picture->set->arrows[i];
        pwsp_chrome_flow_end(picture, from, "message", i + 1, arrow->from,
                             pwsp_chrome_first(picture, arrow->from));
        pwsp_chrome_flow_end(picture, to, "message", i + 1, arrow->to,
                             pwsp_chrome_last(picture, arrow->to));
    }
}

static void pwsp_chrome_tasks(pwsp_picture *picture) {
    for (uint64_t i = 0; i < picture->count && !picture->out->has_failed; i++) {
        uint64_t slot = pwsp_picture_slot(picture, i);
        if (pwsp_picture_track(picture, slot) < picture->track_count) {
            pwsp_chrome_task(picture, slot);
        }
    }
}

static void pwsp_chrome_busy(pwsp_picture *picture) {
    pwsp_out *out = picture->out;
    const ptowsp_usage *usage = &picture->usage;
    for (uint64_t bin = 0; bin <= usage->bin_count && !out->has_failed; bin++) {
        uint64_t busy = bin < usage->bin_count ? pwsp_picture_busy(picture, bin) : 0;
        uint64_t time = pwsp_min_u64(bin * usage->bin_cycles, picture->makespan);
        pwsp_json_print(out, ",\n{'ph':'C','pid':1,'name':'busy'");
        pwsp_chrome_time(out, ",\"ts\":", pwsp_picture_ns(picture, time));
        pwsp_chrome_time(out, ",\"args\":{\"busy\":", busy);
        pwsp_out_text(out, "}}");
    }
}

PWSP_INTERNAL void pwsp_export_chrome(pwsp_picture *picture) {
    pwsp_json_print(picture->out, "{'displayTimeUnit':'ns','traceEvents':[\n");
    for (pwsp_picture *each = picture; each; each = each->measured) {
        pwsp_chrome_names(each, each == picture);
        pwsp_chrome_tasks(each);
        pwsp_chrome_flows(each);
        if (!each->is_wall) {
            pwsp_chrome_busy(each);
        }
    }
    pwsp_out_text(picture->out, "\n]}\n");
}
