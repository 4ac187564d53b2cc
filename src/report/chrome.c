// Chrome's JSON: an event per line.
//
// Times are microseconds, written as whole numbers of nanoseconds with the point moved, so that no
// digit is lost here. An arrow of the critical path leaves a task in its last nanosecond, as one at
// its end would belong to what follows.

#include "picture.h"

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

static void pwsp_chrome_track(const pwsp_picture *picture, uint32_t track) {
    bool is_lane = track < picture->lane_count;
    pwsp_out_text(picture->out, ",\"pid\":");
    pwsp_out_u64(picture->out, picture->is_wall ? PWSP_CHROME_MEASURED
                               : is_lane        ? PWSP_CHROME_LANES
                                                : PWSP_CHROME_PROCESSES);
    pwsp_out_text(picture->out, ",\"tid\":");
    pwsp_out_u64(picture->out, (uint64_t)(is_lane ? track : track - picture->lane_count) + 1);
}

static void pwsp_chrome_names(pwsp_picture *picture, bool is_first) {
    pwsp_out *out = picture->out;
    pwsp_out_format(
        out, "%s{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":{\"name\":\"",
        is_first ? "" : ",\n", picture->is_wall ? PWSP_CHROME_MEASURED : PWSP_CHROME_LANES);
    pwsp_out_json(out, pwsp_picture_title(picture));
    pwsp_out_text(out, picture->is_wall ? ", measured\"}}" : "\"}}");
    if (picture->track_count > picture->lane_count) {
        pwsp_out_text(out,
                      ",\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":2,\"args\":{\"name\":"
                      "\"processes\"}}");
    }
    for (uint32_t i = 0; i < picture->track_count && !out->has_failed; i++) {
        char name[PWSP_TRACK_NAME_MAX];
        pwsp_picture_track_name(picture, i, name);
        pwsp_out_text(out, ",\n{\"ph\":\"M\",\"name\":\"thread_name\"");
        pwsp_chrome_track(picture, i);
        pwsp_out_text(out, ",\"args\":{\"name\":\"");
        pwsp_out_json(out, name);
        pwsp_out_text(out, "\"}},\n{\"ph\":\"M\",\"name\":\"thread_sort_index\"");
        pwsp_chrome_track(picture, i);
        pwsp_out_format(out, ",\"args\":{\"sort_index\":%u}}", i);
    }
}

static void pwsp_chrome_args(pwsp_picture *picture, uint64_t slot) {
    pwsp_out *out = picture->out;
    ptowsp_task_trace task = pwsp_picture_task(picture, slot);
    const pwsp_label_part *parts =
        picture->set ? NULL : pwsp_picture_parts(picture, task.record->node);
    pwsp_out_text(out, ",\"args\":{\"task\":");
    pwsp_out_u64(out, task.index);
    const ptowsp_task_record *record = pwsp_picture_record(picture, slot);
    pwsp_out_text(out, ",\"stall\":\"");
    pwsp_out_text(out, ptowsp_stall_name(record->stall));
    pwsp_out_text(out, "\"");
    if (picture->is_wall) {
        pwsp_out_text(out, ",\"waited_ns\":");
        pwsp_out_u64(out, record->start - record->ready);
    }
    if (record->cause != PTOWSP_NO_INDEX) {
        pwsp_out_text(out, ",\"cause\":");
        pwsp_out_u64(out, record->cause);
    }
    pwsp_out_text(out, ",\"bytes_read\":");
    pwsp_out_u64(out, task.bytes_read);
    pwsp_out_text(out, ",\"bytes_written\":");
    pwsp_out_u64(out, task.bytes_written);
    pwsp_out_text(out, ",\"values\":{");
    for (uint32_t i = 0; i < task.axis_count + task.scalar_count; i++) {
        char value[24];
        size_t length = pwsp_label_value(&parts[i], task.args[i], value);
        pwsp_out_text(out, i ? ",\"" : "\"");
        pwsp_out_json(out, parts[i].name);
        pwsp_out_text(out, "\":");
        pwsp_out_bytes(out, value, length);
    }
    pwsp_out_text(out, "}}");
}

static void pwsp_chrome_task(pwsp_picture *picture, uint64_t slot) {
    pwsp_out *out = picture->out;
    char label[PWSP_LABEL_MAX];
    const ptowsp_task_record *record = pwsp_picture_record(picture, slot);
    uint64_t start = pwsp_picture_ns(picture, record->start);
    pwsp_out_text(out, ",\n{\"ph\":\"X\"");
    pwsp_chrome_track(picture, pwsp_picture_track(picture, slot));
    pwsp_chrome_time(out, ",\"ts\":", start);
    pwsp_chrome_time(out, ",\"dur\":", pwsp_picture_ns(picture, record->end) - start);
    pwsp_out_text(out, ",\"cat\":\"");
    pwsp_out_json(out, pwsp_picture_kernel(picture, record->kernel));
    pwsp_out_text(out, "\",\"name\":\"");
    pwsp_picture_label(picture, slot,
                       picture->options->is_short ? PWSP_LABEL_KERNEL : PWSP_LABEL_FULL, label);
    pwsp_out_json(out, label);
    pwsp_out_text(out, "\"");
    if (!picture->options->is_short) {
        pwsp_chrome_args(picture, slot);
    }
    pwsp_out_text(out, "}");
}

static void pwsp_chrome_flows(pwsp_picture *picture) {
    pwsp_out *out = picture->out;
    const uint64_t *path = picture->path;
    for (uint64_t i = 0; i + 1 < picture->path_count && !out->has_failed; i++) {
        const ptowsp_task_record *from = pwsp_picture_record(picture, path[i]);
        uint64_t start = pwsp_picture_ns(picture, from->start);
        uint64_t end = pwsp_picture_ns(picture, from->end);
        pwsp_out_text(out, ",\n{\"ph\":\"s\",\"cat\":\"critical\",\"name\":\"critical\",\"id\":");
        pwsp_out_u64(out, i + 1);
        pwsp_chrome_track(picture, pwsp_picture_track(picture, path[i]));
        pwsp_chrome_time(out, ",\"ts\":", end > start ? end - 1 : start);
        pwsp_out_text(out,
                      "},\n{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"critical\",\"name\":\"critical\""
                      ",\"id\":");
        pwsp_out_u64(out, i + 1);
        pwsp_chrome_track(picture, pwsp_picture_track(picture, path[i + 1]));
        pwsp_chrome_time(
            out,
            ",\"ts\":", pwsp_picture_ns(picture, pwsp_picture_record(picture, path[i + 1])->start));
        pwsp_out_text(out, "}");
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
        pwsp_out_text(out, ",\n{\"ph\":\"C\",\"pid\":1,\"name\":\"busy\"");
        pwsp_chrome_time(out, ",\"ts\":", pwsp_picture_ns(picture, time));
        pwsp_chrome_time(out, ",\"args\":{\"busy\":", busy);
        pwsp_out_text(out, "}}");
    }
}

PWSP_INTERNAL void pwsp_export_chrome(pwsp_picture *picture) {
    pwsp_out_text(picture->out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
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
