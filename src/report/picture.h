// A recorded run, ready to be drawn or exported: its tracks, and the order of its tasks.
//
// Tracks are the lanes, followed by the processes of pipelines. They are drawn as rows: one for
// each track, and more for a track whose tasks overlap (tracks.c).

#ifndef PWSP_PICTURE_H
#define PWSP_PICTURE_H

#include "label.h"
#include "output.h"

typedef struct pwsp_picture {
    const pwsp_result *result;
    const ptowsp_program *program;
    const ptowsp_span_set *set;  // instead of both
    const ptowsp_export_options *options;
    pwsp_memory memory;
    pwsp_out *out;
    bool is_wall;                       // by the wall clock, in nanoseconds
    struct pwsp_picture *measured;      // beside this one, in the same file; may be NULL
    const ptowsp_task_record *records;  // by slot
    uint64_t count;                     // tasks that were kept
    uint32_t lane_count, track_count, row_count;
    uint64_t makespan, task_count, busy;  // all tasks, and their cycles on lanes
    const uint64_t *path;                 // the critical path; NULL: none
    uint64_t path_count;
    ptowsp_usage usage;        // none by the wall clock
    const pwsp_task_op **ops;  // by node
    uint64_t op_count;
    pwsp_label_part *parts;  // of all tasks' arguments
    uint64_t part_count;
    uint64_t *first_parts;  // by node
    uint32_t *processes;    // by slot: the process of a task without lane; NULL: no processes
    uint64_t *order;        // slots by row and start; NULL: as they come
    uint64_t *firsts;       // by row: where its tasks begin in the order; two more than rows
    // NULL where no tasks of a track overlap: by slot its row, and the slot around it there, + 1; by
    // track, and one more, its first row.
    uint32_t *rows, *first_rows;
    uint64_t *outers;
    // Arrows of a set, + 1: the first from and to a slot, and for each the next of its slot.
    uint64_t *arrows, *first_out, *first_in, *next_out, *next_in;
} pwsp_picture;

// The end of a run's last task, and its lanes and processes.
PWSP_INTERNAL void pwsp_picture_extent(const pwsp_result *result, bool is_wall,
                                       uint64_t *out_makespan, uint64_t *out_tracks);

// How a format needs its tasks.
typedef enum pwsp_picture_order {
    PWSP_ORDER_ANY,     // by their start on each track: an order only if they come out of it
    PWSP_ORDER_NESTED,  // the same, on rows where slices may nest
    PWSP_ORDER_FLAT     // an order, on rows without overlap
} pwsp_picture_order;

// False when memory is out. The owner of the memory frees it.
PWSP_INTERNAL bool pwsp_picture_init(pwsp_picture *picture, const pwsp_memory *memory,
                                     const pwsp_result *result,
                                     const ptowsp_export_options *options, pwsp_out *out,
                                     bool is_wall, pwsp_picture_order order);

// The same for spans: `records` has room for the set's spans; times begin at the earliest.
PWSP_INTERNAL bool pwsp_picture_init_spans(pwsp_picture *picture, const pwsp_memory *memory,
                                           const ptowsp_span_set *set,
                                           const ptowsp_export_options *options, pwsp_out *out,
                                           ptowsp_task_record *records, pwsp_picture_order order);

// Places the tasks of a picture that is ordered by track on rows. room: for as many slots as tasks.
// False when memory is out.
PWSP_INTERNAL bool pwsp_picture_make_rows(pwsp_picture *picture, bool nests, uint64_t *room);

// Task i in the order.
PWSP_INLINE uint64_t pwsp_picture_slot(const pwsp_picture *picture, uint64_t i) {
    return picture->order ? picture->order[i] : i;
}

PWSP_INLINE const ptowsp_task_record *pwsp_picture_record(const pwsp_picture *picture,
                                                          uint64_t slot) {
    return &picture->records[slot];
}

// The arguments of the tasks of a node.
PWSP_INLINE const pwsp_label_part *pwsp_picture_parts(const pwsp_picture *picture, uint32_t node) {
    PTOWSP_ASSERT(node < picture->op_count && picture->ops[node]);
    return picture->parts + picture->first_parts[node];
}

// The track of a task; track_count if it has none, as after a failure it never started.
PWSP_INLINE uint32_t pwsp_picture_track(const pwsp_picture *picture, uint64_t slot) {
    uint32_t lane = pwsp_picture_record(picture, slot)->lane;
    return lane != PTOWSP_NO_LANE ? lane
           : picture->processes   ? picture->lane_count + picture->processes[slot]
                                  : picture->track_count;
}

// The row of a task; row_count if it has no track.
PWSP_INLINE uint32_t pwsp_picture_row(const pwsp_picture *picture, uint64_t slot) {
    return picture->rows ? picture->rows[slot] : pwsp_picture_track(picture, slot);
}

// The first row of a track; row_count after the last one.
PWSP_INLINE uint32_t pwsp_picture_first_row(const pwsp_picture *picture, uint32_t track) {
    return picture->first_rows ? picture->first_rows[track] : track;
}

// A task with what its record does not have; of a span that is its index.
PWSP_INTERNAL ptowsp_task_trace pwsp_picture_task(const pwsp_picture *picture, uint64_t slot);

// The name of a track, with its rank. Of a row without it, numbered from the second on: "lane 3 (2)".
#define PWSP_TRACK_NAME_MAX (PTOWSP_NAME_MAX + 40)
PWSP_INTERNAL void pwsp_picture_track_name(const pwsp_picture *picture, uint32_t track, char *name);

PWSP_INTERNAL void pwsp_picture_row_name(const pwsp_picture *picture, uint32_t track, uint32_t row,
                                         char *name);

// Lanes of each rank; 0: no ranks.
PWSP_INLINE uint32_t pwsp_picture_rank_lanes(const pwsp_picture *picture) {
    return picture->set ? picture->set->rank_lanes : 0;
}

// Are there several? The lanes of a single one need no number.
PWSP_INLINE bool pwsp_picture_has_ranks(const pwsp_picture *picture) {
    const uint32_t lanes = pwsp_picture_rank_lanes(picture);
    return lanes && picture->lane_count > lanes;
}

// For how long a task has waited for others that have arrows to it; *out_for is the last of them.
PWSP_INTERNAL uint64_t pwsp_picture_wait(const pwsp_picture *picture, uint64_t slot,
                                         uint64_t *out_for);

// Writes "waits for rank 3", of a wait for a slot, into room; returns its length.
#define PWSP_WAIT_LABEL_MAX 40
PWSP_INTERNAL size_t pwsp_picture_wait_label(const pwsp_picture *picture, uint64_t slot,
                                             char *room);

// Are times cycles?
PWSP_INLINE bool pwsp_picture_has_cycles(const pwsp_picture *picture) {
    return picture->set ? picture->set->has_cycles : !picture->is_wall;
}

PWSP_INTERNAL const char *pwsp_picture_title(const pwsp_picture *picture);
PWSP_INTERNAL const char *pwsp_picture_kernel(const pwsp_picture *picture, uint32_t kernel);

// Kernels are numbered from 1 on, up to below this.
PWSP_INTERNAL uint32_t pwsp_picture_kernel_count(const pwsp_picture *picture);

// Does a task's label have anything after its kernel?
PWSP_INTERNAL bool pwsp_picture_has_values(const pwsp_picture *picture, uint64_t slot);

typedef enum pwsp_label_detail {
    PWSP_LABEL_FULL,   // attend request=3 head=1 scale=2
    PWSP_LABEL_AXES,   // attend request=3 head=1
    PWSP_LABEL_KERNEL  // attend
} pwsp_label_detail;

// As much as the options ask for.
PWSP_INLINE pwsp_label_detail pwsp_picture_detail(const pwsp_picture *picture) {
    return picture->options->is_short ? PWSP_LABEL_KERNEL : PWSP_LABEL_FULL;
}

// Writes the label of a task into room; returns its length.
#define PWSP_LABEL_MAX 1024
PWSP_INTERNAL size_t pwsp_picture_label(const pwsp_picture *picture, uint64_t slot,
                                        pwsp_label_detail detail, char *room);

// Cycles as nanoseconds; UINT64_MAX: more than that.
PWSP_INTERNAL uint64_t pwsp_picture_scale(const pwsp_picture *picture, uint64_t cycles);

PWSP_INLINE uint64_t pwsp_picture_ns(const pwsp_picture *picture, uint64_t cycles) {
    return !pwsp_picture_has_cycles(picture) || picture->options->clock_mhz == 1000
               ? cycles
               : pwsp_picture_scale(picture, cycles);
}

// The lanes and processes that were busy in a bin, on average, in thousandths.
PWSP_INTERNAL uint64_t pwsp_picture_busy(const pwsp_picture *picture, uint64_t bin);

PWSP_INTERNAL bool pwsp_report_write(pwsp_picture *picture, ptowsp_report_format format,
                                     const ptowsp_what_if *what_ifs, uint32_t count);

// Formats. False: memory is out.
PWSP_INTERNAL void pwsp_export_chrome(pwsp_picture *picture);
PWSP_INTERNAL bool pwsp_export_perfetto(pwsp_picture *picture);
PWSP_INTERNAL void pwsp_export_csv(pwsp_picture *picture);
PWSP_INTERNAL void pwsp_export_table(pwsp_picture *picture);
PWSP_INTERNAL void pwsp_export_usage(pwsp_picture *picture);
PWSP_INTERNAL bool pwsp_export_deps(pwsp_picture *picture);
PWSP_INTERNAL void pwsp_export_swimlane(pwsp_picture *picture);
PWSP_INTERNAL void pwsp_export_names(pwsp_picture *picture);
PWSP_INTERNAL bool pwsp_export_edges(pwsp_picture *picture, bool is_dot);
PWSP_INTERNAL bool pwsp_export_svg(pwsp_picture *picture);

#endif
