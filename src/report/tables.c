// Recorded tasks as rows: CSV, and text in columns; and the use over time.

#include "picture.h"

#include <inttypes.h>

static const char *pwsp_cause_text(uint64_t cause, char *room) {
    room[cause == PTOWSP_NO_INDEX ? 0 : pwsp_label_u64(cause, room)] = '\0';
    return room;
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
        ptowsp_output_buffer buffer = {places->texts[at], PWSP_PLACE_MAX, 0};
        pwsp_program_print_place(program, node, NULL, ptowsp_output_to_buffer(&buffer));
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
        pwsp_picture_track_name(picture, pwsp_picture_track(picture, slot), track);
        pwsp_csv_print(out,
                       "%" PRIu64 ",%s,%s,%s,%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",",
                       task.index, kernel, label + length + has_values,
                       picture->set ? "" : pwsp_place_text(&places, picture->program, record->node),
                       track, record->ready, record->issue, record->start, record->end);
        pwsp_out_format(out, "%s,%s,%" PRIu64 ",%" PRIu64 "\r\n", ptowsp_stall_name(record->stall),
                        pwsp_cause_text(record->cause, cause), task.bytes_read, task.bytes_written);
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
                      pwsp_picture_label(picture, slot, pwsp_picture_detail(picture), label));
        pwsp_out_text(out, "\n");
    }
}

PWSP_INTERNAL void pwsp_export_usage(pwsp_picture *picture) {
    pwsp_out *out = picture->out;
    const ptowsp_usage usage = picture->usage;
    pwsp_out_text(out, "begin,end");
    for (uint32_t k = 1; k < usage.kernel_count; k++) {
        pwsp_csv_print(out, ",%s", pwsp_picture_kernel(picture, k));
    }
    pwsp_out_text(out, "\r\n");
    for (uint64_t bin = 0; bin < usage.bin_count; bin++) {
        uint64_t begin = bin * usage.bin_cycles;
        pwsp_csv_print(out, "%" PRIu64 ",%" PRIu64, begin,
                       pwsp_min_u64(begin + usage.bin_cycles, picture->makespan));
        for (uint32_t k = 1; k < usage.kernel_count; k++) {
            pwsp_csv_print(out, ",%" PRIu64, usage.busy[bin * usage.kernel_count + k]);
        }
        pwsp_out_text(out, "\r\n");
    }
}
