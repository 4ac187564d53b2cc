// Recorded tasks as rows: CSV, and text in columns; and the use over time.

#include "picture.h"

#include <inttypes.h>

static const char *pwsp_cause_text(uint64_t cause, char *room) {
    room[cause == PTOWSP_NO_INDEX ? 0 : pwsp_label_u64(cause, room)] = '\0';
    return room;
}

static void pwsp_csv_numbers(pwsp_out *out, const uint64_t *numbers, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        pwsp_out_text(out, ",");
        pwsp_out_u64(out, numbers[i]);
    }
}

// Places of tasks as text. Tasks of a loop's body come one after another, so a few are kept.
enum { PWSP_PLACE_COUNT = 8, PWSP_PLACE_MAX = 1024 };

typedef struct pwsp_places {
    bool is_known[PWSP_PLACE_COUNT];
    uint32_t nodes[PWSP_PLACE_COUNT];
    char texts[PWSP_PLACE_COUNT][PWSP_PLACE_MAX];
} pwsp_places;

static const char *pwsp_place_text(pwsp_places *places, const ptowsp_program *program,
                                   uint32_t node) {
    uint32_t at = node % PWSP_PLACE_COUNT;
    if (!places->is_known[at] || places->nodes[at] != node) {
        ptowsp_text_buffer buffer = {places->texts[at], PWSP_PLACE_MAX, 0};
        pwsp_program_print_place(program, node, NULL, ptowsp_text_to_buffer(&buffer));
        places->is_known[at] = true;
        places->nodes[at] = node;
    }
    return places->texts[at];
}

PWSP_INTERNAL void pwsp_export_csv(pwsp_picture *picture) {
    pwsp_out *out = picture->out;
    char label[PWSP_LABEL_MAX], track[PWSP_TRACK_NAME_MAX], cause[24];
    pwsp_places places;
    memset(places.is_known, 0, sizeof places.is_known);
    pwsp_out_text(out, "index,kernel,values,place,track,ready,issue,start,end,stall,cause,"
                       "bytes_read,bytes_written\r\n");
    for (uint64_t i = 0; i < picture->count && !out->has_failed; i++) {
        uint64_t slot = pwsp_picture_slot(picture, i);
        ptowsp_task_trace task = pwsp_picture_task(picture, slot);
        const ptowsp_task_record *record = pwsp_picture_record(picture, slot);
        const char *kernel = pwsp_picture_kernel(picture, record->kernel);
        size_t length = strlen(kernel);
        bool has_values = pwsp_picture_label(picture, slot, PWSP_LABEL_FULL, label) > length;
        pwsp_out_u64(out, task.index);
        pwsp_out_text(out, ",");
        pwsp_out_csv(out, kernel);
        pwsp_out_text(out, ",");
        pwsp_out_csv(out, label + length + has_values);
        pwsp_out_text(out, ",");
        pwsp_out_csv(out,
                     picture->set ? "" : pwsp_place_text(&places, picture->program, record->node));
        pwsp_out_text(out, ",");
        pwsp_picture_track_name(picture, pwsp_picture_track(picture, slot), track);
        pwsp_out_csv(out, track);
        const uint64_t times[] = {record->ready, record->issue, record->start, record->end};
        pwsp_csv_numbers(out, times, 4);
        pwsp_out_text(out, ",");
        pwsp_out_text(out, ptowsp_stall_name(record->stall));
        pwsp_out_text(out, ",");
        pwsp_out_text(out, pwsp_cause_text(record->cause, cause));
        const uint64_t bytes[] = {task.bytes_read, task.bytes_written};
        pwsp_csv_numbers(out, bytes, 2);
        pwsp_out_text(out, "\r\n");
    }
}

PWSP_INTERNAL void pwsp_export_table(pwsp_picture *picture) {
    pwsp_out *out = picture->out;
    char label[PWSP_LABEL_MAX], track[PWSP_TRACK_NAME_MAX], cause[24];
    pwsp_out_format(out, "%10s %12s %12s  %-12s %-11s %10s  %s\n", "task", "start", "end", "on",
                    "after", "cause", "what");
    for (uint64_t i = 0; i < picture->count && !out->has_failed; i++) {
        uint64_t slot = pwsp_picture_slot(picture, i);
        const ptowsp_task_record *record = pwsp_picture_record(picture, slot);
        pwsp_picture_track_name(picture, pwsp_picture_track(picture, slot), track);
        pwsp_out_format(out, "%10" PRIu64 " %12" PRIu64 " %12" PRIu64 "  %-12s %-11s %10s  ",
                        pwsp_picture_task(picture, slot).index, record->start, record->end, track,
                        ptowsp_stall_name(record->stall), pwsp_cause_text(record->cause, cause));
        pwsp_out_utf8(out, label,
                      pwsp_picture_label(
                          picture, slot,
                          picture->options->is_short ? PWSP_LABEL_KERNEL : PWSP_LABEL_FULL, label));
        pwsp_out_text(out, "\n");
    }
}

PWSP_INTERNAL void pwsp_export_usage(pwsp_picture *picture) {
    pwsp_out *out = picture->out;
    const ptowsp_usage usage = picture->usage;
    pwsp_out_text(out, "begin,end");
    for (uint32_t k = 1; k < usage.kernel_count; k++) {
        pwsp_out_text(out, ",");
        pwsp_out_csv(out, pwsp_picture_kernel(picture, k));
    }
    pwsp_out_text(out, "\r\n");
    for (uint64_t bin = 0; bin < usage.bin_count; bin++) {
        uint64_t begin = bin * usage.bin_cycles;
        pwsp_out_u64(out, begin);
        pwsp_out_text(out, ",");
        pwsp_out_u64(out, pwsp_min_u64(begin + usage.bin_cycles, picture->makespan));
        if (usage.kernel_count > 1) {
            pwsp_csv_numbers(out, usage.busy + bin * usage.kernel_count + 1,
                             usage.kernel_count - 1);
        }
        pwsp_out_text(out, "\r\n");
    }
}
