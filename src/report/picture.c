// Recorded runs, ready to be drawn: see picture.h.
//
// Slots are sorted by track with a counting sort. Where lanes choose among ready tasks, the tasks of
// a track are then sorted by their start; elsewhere they come in this order. Those of a track
// that overlap are sorted by their row once more.

#include "picture.h"

#include "../base/heap.h"

// -- order ----------------------------------------------------------------------------------------

// By their start. Of those with the same one, tasks without time come first, and then the longest,
// so that slices come before those inside.
static bool pwsp_picture_is_before(const pwsp_picture *picture, uint64_t a, uint64_t b) {
    const ptowsp_task_record *left = pwsp_picture_record(picture, a);
    const ptowsp_task_record *right = pwsp_picture_record(picture, b);
    if (left->start != right->start) {
        return left->start < right->start;
    }
    const uint64_t left_time = left->end - left->start, right_time = right->end - right->start;
    return left_time != right_time ? left_time - 1 > right_time - 1 : a < b;
}

PWSP_SORT(pwsp_picture_sort, uint64_t, pwsp_picture, pwsp_picture_is_before)

// Does each task of a track come after the end of the one before?
static bool pwsp_picture_is_apart(const pwsp_picture *picture, uint64_t *lasts) {
    memset(lasts, 0, ((size_t)picture->track_count + 1) * sizeof(uint64_t));
    for (uint64_t i = 0; i < picture->count; i++) {
        const uint64_t slot = pwsp_picture_slot(picture, i);
        const ptowsp_task_record *record = pwsp_picture_record(picture, slot);
        uint64_t *last = &lasts[pwsp_picture_track(picture, slot)];
        if (record->start < *last) {
            return false;
        }
        *last = record->end;
    }
    return true;
}

// Sorts slots by row, stable: in the order of `from`, or by number if it is NULL.
static void pwsp_picture_sort_rows(pwsp_picture *picture, const uint64_t *from) {
    uint64_t *firsts = picture->firsts;
    memset(firsts, 0, ((size_t)picture->row_count + 2) * sizeof(uint64_t));
    for (uint64_t i = 0; i < picture->count; i++) {
        firsts[pwsp_picture_row(picture, i) + 1]++;
    }
    for (uint32_t i = 1; i <= picture->row_count; i++) {
        firsts[i] += firsts[i - 1];
    }
    for (uint64_t i = 0; i < picture->count; i++) {
        const uint64_t slot = from ? from[i] : i;
        picture->order[firsts[pwsp_picture_row(picture, slot)]++] = slot;
    }
    for (uint32_t i = picture->row_count + 1; i > 0; i--) {
        firsts[i] = firsts[i - 1];
    }
    firsts[0] = 0;
}

// Do tasks of a track overlap? Requires an order by track.
static bool pwsp_picture_overlaps(const pwsp_picture *picture) {
    for (uint64_t i = 1; i < picture->count; i++) {
        const uint64_t before = picture->order[i - 1], slot = picture->order[i];
        if (pwsp_picture_track(picture, before) == pwsp_picture_track(picture, slot) &&
            pwsp_picture_record(picture, slot)->start < pwsp_picture_record(picture, before)->end) {
            return true;
        }
    }
    return false;
}

// Sorts by rows, if there are more rows than tracks. room: for as many slots as tasks.
static bool pwsp_picture_split(pwsp_picture *picture, bool nests, uint64_t *room) {
    if (!pwsp_picture_make_rows(picture, nests, room) ||
        !PWSP_ALLOC(&picture->memory, picture->firsts, picture->row_count + UINT64_C(2))) {
        return false;
    }
    memcpy(room, picture->order, (size_t)picture->count * sizeof(uint64_t));
    pwsp_picture_sort_rows(picture, room);
    return true;
}

// Makes the order, and rows, as far as they are needed. False when memory is out.
static bool pwsp_picture_make_order(pwsp_picture *picture, pwsp_picture_order order) {
    const pwsp_memory *memory = &picture->memory;
    uint64_t *room = NULL;
    picture->row_count = picture->track_count;
    if (!PWSP_ALLOC(memory, picture->firsts, picture->track_count + UINT64_C(2))) {
        return false;
    }
    const bool is_apart = pwsp_picture_is_apart(picture, picture->firsts);
    if (is_apart && order != PWSP_ORDER_FLAT) {
        return true;
    }
    if (!PWSP_ALLOC(memory, picture->order, picture->count) ||
        (!is_apart && !PWSP_ALLOC(memory, room, picture->count))) {
        return false;
    }
    pwsp_picture_sort_rows(picture, NULL);
    for (uint32_t i = 0; room && i <= picture->track_count; i++) {
        const uint64_t first = picture->firsts[i];
        pwsp_picture_sort(picture, picture->order + first, picture->firsts[i + 1] - first);
    }
    const bool is_split = room && order != PWSP_ORDER_ANY && pwsp_picture_overlaps(picture);
    return !is_split || pwsp_picture_split(picture, order == PWSP_ORDER_NESTED, room);
}

// -- life -----------------------------------------------------------------------------------------

// Finds the processes of tasks without lane, from the steps. False when memory is out.
static bool pwsp_picture_find_processes(pwsp_picture *picture) {
    const pwsp_result *result = picture->result;
    uint32_t process_count = result->pipelines->process_count;
    if (process_count == 0 || picture->count == 0 || picture->is_wall) {
        return true;
    }
    uint32_t *processes;
    if (!PWSP_ALLOC(&picture->memory, processes, picture->count)) {
        return false;
    }
    for (uint64_t i = 0; i < picture->count; i++) {
        processes[i] = process_count;  // not known
    }
    const ptowsp_step_record *steps = result->pipelines->steps;
    const uint64_t step_count = result->pipelines->exchange.step_count;
    uint64_t slot;
    for (uint64_t i = 0; i < step_count; i++) {
        if (steps[i].kind == PTOWSP_STEP_TASK &&
            pwsp_recorder_find(&result->recorder, steps[i].token, &slot)) {
            PTOWSP_ASSERT(steps[i].process < process_count);
            processes[slot] = steps[i].process;
        }
    }
    picture->processes = processes;
    return true;
}

// Finds the tasks of the program, with the names of their arguments. False when memory is out.
static bool pwsp_picture_find_ops(pwsp_picture *picture) {
    const ptowsp_program *program = picture->program;
    const pwsp_memory *memory = &picture->memory;
    uint64_t count = 0;
    if (!PWSP_ALLOC(memory, picture->first_parts, picture->op_count + UINT64_C(1))) {
        return false;
    }
    for (uint32_t i = 0; i < program->ops.count; i++) {
        const pwsp_op *op = PWSP_OP_AT(program, i);
        if (op->kind == PWSP_OP_TASK || op->kind == PWSP_OP_LISTED) {
            const pwsp_task_op *task = &program->tasks.items[op->at];
            PTOWSP_ASSERT(op->node < picture->op_count);
            picture->ops[op->node] = task;
            picture->first_parts[op->node] = count;
            count += (uint64_t)task->axis_count + task->scalar_count;
        }
    }
    picture->part_count = count + 1;
    PWSP_ALLOC(memory, picture->parts, picture->part_count);
    for (uint64_t node = 0; picture->parts && node < picture->op_count; node++) {
        const pwsp_task_op *task = picture->ops[node];
        for (uint32_t i = 0; task && i < task->axis_count + task->scalar_count; i++) {
            pwsp_label_part_make(program, task, i, &picture->parts[picture->first_parts[node] + i]);
        }
    }
    return picture->parts != NULL;
}

// The lanes that have tracks: none where all tasks ran in processes.
static uint32_t pwsp_picture_lanes(const pwsp_result *result) {
    uint32_t count = result->stats->lane_count;
    bool is_used = result->pipelines->process_count == 0;
    for (uint32_t i = 0; i < count && !is_used; i++) {
        is_used = result->lanes[i].task_count > 0;
    }
    return is_used ? count : 0;
}

PWSP_INTERNAL void pwsp_picture_extent(const pwsp_result *result, bool is_wall,
                                       uint64_t *out_makespan, uint64_t *out_tracks) {
    const ptowsp_run_stats *stats = result->stats;
    *out_makespan = is_wall ? 0 : stats->makespan_cycles;
    *out_tracks = is_wall ? 0 : (uint64_t)stats->lane_count + result->pipelines->process_count;
    for (uint64_t i = 0; is_wall && i < result->recorder.count; i++) {
        const ptowsp_task_record *record = &result->recorder.clocks[i];
        *out_makespan = pwsp_max_u64(*out_makespan, record->end);
        *out_tracks = record->lane == PTOWSP_NO_LANE ? *out_tracks
                                                     : pwsp_max_u64(*out_tracks, record->lane + 1);
    }
}

// The tasks to draw, and their sums.
static void pwsp_picture_choose(pwsp_picture *picture, const pwsp_result *result, bool is_wall) {
    uint64_t tracks;
    picture->is_wall = is_wall;
    picture->records = is_wall ? result->recorder.clocks : result->recorder.records;
    picture->count = pwsp_result_count(result);
    pwsp_picture_extent(result, is_wall, &picture->makespan, &tracks);
    if (is_wall) {
        picture->lane_count = picture->track_count = (uint32_t)tracks;
        for (uint64_t i = 0; i < picture->count; i++) {
            picture->task_count += picture->records[i].lane != PTOWSP_NO_LANE;
            picture->busy += picture->records[i].end - picture->records[i].start;
        }
        return;
    }
    picture->lane_count = pwsp_picture_lanes(result);
    picture->track_count = picture->lane_count + result->pipelines->process_count;
    picture->task_count = result->stats->task_count;
    picture->busy = pwsp_result_busy(result);
    picture->path = result->critical_count ? result->critical : NULL;
    picture->path_count = result->critical_count;
    picture->usage = pwsp_result_usage(result);
}

PWSP_INTERNAL bool pwsp_picture_init(pwsp_picture *picture, const pwsp_memory *memory,
                                     const pwsp_result *result,
                                     const ptowsp_export_options *options, pwsp_out *out,
                                     bool is_wall, pwsp_picture_order order) {
    const ptowsp_program *program = result->program;
    memset(picture, 0, sizeof *picture);
    picture->result = result;
    picture->program = program;
    picture->options = options;
    picture->memory = *memory;
    picture->out = out;
    pwsp_picture_choose(picture, result, is_wall);
    picture->op_count = program->places.count;
    return PWSP_ALLOC(memory, picture->ops, picture->op_count + UINT64_C(1)) &&
           pwsp_picture_find_processes(picture) && pwsp_picture_find_ops(picture) &&
           pwsp_picture_make_order(picture, order);
}

// Hangs each arrow of a set on its two slots. False when memory is out.
static bool pwsp_picture_hang_arrows(pwsp_picture *picture) {
    const ptowsp_span_set *set = picture->set;
    const uint64_t count = set->count, arrows = set->arrow_count;
    if (arrows == 0) {
        return true;
    }
    if (!PWSP_ALLOC(&picture->memory, picture->arrows, 2 * (count + arrows))) {
        return false;
    }
    picture->first_out = picture->arrows;
    picture->first_in = picture->first_out + count;
    picture->next_out = picture->first_in + count;
    picture->next_in = picture->next_out + arrows;
    for (uint64_t i = arrows; i > 0; i--) {
        const ptowsp_span_arrow *arrow = &set->arrows[i - 1];
        picture->next_out[i - 1] = picture->first_out[arrow->from];
        picture->first_out[arrow->from] = i;
        picture->next_in[i - 1] = picture->first_in[arrow->to];
        picture->first_in[arrow->to] = i;
    }
    return true;
}

PWSP_INTERNAL uint64_t pwsp_picture_wait(const pwsp_picture *picture, uint64_t slot,
                                         uint64_t *out_for) {
    const ptowsp_task_record *record = pwsp_picture_record(picture, slot);
    uint64_t waited = 0;
    for (uint64_t i = picture->arrows ? picture->first_in[slot] : 0; i;
         i = picture->next_in[i - 1]) {
        const uint64_t from = picture->set->arrows[i - 1].from;
        const uint64_t until = pwsp_min_u64(pwsp_picture_record(picture, from)->start, record->end);
        if (until > record->start && until - record->start > waited) {
            waited = until - record->start;
            *out_for = from;
        }
    }
    return waited;
}

PWSP_INTERNAL size_t pwsp_picture_wait_label(const pwsp_picture *picture, uint64_t slot,
                                             char *room) {
    const uint32_t lanes = pwsp_picture_rank_lanes(picture);
    const uint32_t track = pwsp_picture_track(picture, slot);
    memcpy(room, lanes ? "waits for rank " : "waits for lane ", 15);
    const size_t length = 15 + pwsp_label_u64(lanes ? track / lanes : track, room + 15);
    room[length] = '\0';
    return length;
}

PWSP_INTERNAL bool pwsp_picture_init_spans(pwsp_picture *picture, const pwsp_memory *memory,
                                           const ptowsp_span_set *set,
                                           const ptowsp_export_options *options, pwsp_out *out,
                                           ptowsp_task_record *records, pwsp_picture_order order) {
    uint64_t begin = set->has_cycles ? 0 : UINT64_MAX;
    memset(picture, 0, sizeof *picture);
    picture->set = set;
    picture->options = options;
    picture->memory = *memory;
    picture->out = out;
    picture->is_wall = true;
    picture->records = records;
    picture->count = set->count;
    for (uint64_t i = 0; i < set->count && !set->has_cycles; i++) {
        begin = set->spans[i].end ? pwsp_min_u64(begin, set->spans[i].begin) : begin;
    }
    for (uint64_t i = 0; i < set->count; i++) {
        const ptowsp_span *span = &set->spans[i];
        ptowsp_task_record *record = &records[i];
        memset(record, 0, sizeof *record);
        record->cause = PTOWSP_NO_INDEX;
        record->lane = PTOWSP_NO_LANE;
        record->kernel = span->kind + 1;
        if (span->end) {
            record->lane = span->lane;
            record->ready = record->issue = record->start = span->begin - begin;
            record->end = span->end - begin;
            picture->task_count++;
            picture->busy = pwsp_sum_u64(picture->busy, record->end - record->start);
            picture->makespan = pwsp_max_u64(picture->makespan, record->end);
            picture->lane_count =
                span->lane >= picture->lane_count ? span->lane + 1 : picture->lane_count;
        }
    }
    const uint32_t lanes = set->rank_lanes;
    if (lanes) {  // all of the last rank
        picture->lane_count =
            (uint32_t)(((uint64_t)picture->lane_count + lanes - 1) / lanes * lanes);
    }
    picture->track_count = picture->lane_count;
    return pwsp_picture_hang_arrows(picture) && pwsp_picture_make_order(picture, order);
}

// -- names ----------------------------------------------------------------------------------------

static void pwsp_picture_lane_name(const pwsp_picture *picture, uint32_t track, char *name) {
    const uint32_t lanes = pwsp_picture_rank_lanes(picture);
    const uint32_t lane = lanes ? track % lanes : track;
    if (lanes && picture->set->lane_names) {
        const char *own = picture->set->lane_names[lane];
        memcpy(name, own, strlen(own) + 1);
        return;
    }
    memcpy(name, "lane ", 5);
    name[5 + pwsp_label_u64(lane, name + 5)] = '\0';
}

PWSP_INTERNAL void pwsp_picture_track_name(const pwsp_picture *picture, uint32_t track,
                                           char *name) {
    const uint32_t lanes = pwsp_picture_rank_lanes(picture);
    if (track < picture->lane_count) {
        size_t length = 0;
        if (pwsp_picture_has_ranks(picture)) {
            memcpy(name, "rank ", 5);
            length = 5 + pwsp_label_u64(track / lanes, name + 5);
            name[length++] = ' ';
        }
        pwsp_picture_lane_name(picture, track, name + length);
        return;
    }
    ptowsp_output_buffer buffer = {name, PWSP_TRACK_NAME_MAX, 0};
    ptowsp_output text = ptowsp_output_to_buffer(&buffer);
    if (track >= picture->track_count) {
        pwsp_text_format(text, "-");
        return;
    }
    const ptowsp_process_stats *process =
        &picture->result->pipelines->process_stats[track - picture->lane_count];
    pwsp_steps_print_name(process, text);
}

PWSP_INTERNAL void pwsp_picture_row_name(const pwsp_picture *picture, uint32_t track, uint32_t row,
                                         char *name) {
    const uint32_t first = pwsp_picture_first_row(picture, track);
    if (pwsp_picture_rank_lanes(picture)) {
        pwsp_picture_lane_name(picture, track, name);
    } else {
        pwsp_picture_track_name(picture, track, name);
    }
    if (row > first) {
        const size_t length = strlen(name);
        pwsp_text_into(name + length, PWSP_TRACK_NAME_MAX - length, " (%u)", row - first + 1);
    }
}

PWSP_INTERNAL const char *pwsp_picture_title(const pwsp_picture *picture) {
    const char *own = picture->set ? picture->set->title : pwsp_program_title(picture->program);
    return picture->options->title ? picture->options->title : own ? own : "";
}

PWSP_INTERNAL const char *pwsp_picture_kernel(const pwsp_picture *picture, uint32_t kernel) {
    return picture->set ? picture->set->names[kernel - 1]
                        : picture->program->kernels.items[kernel].name;
}

PWSP_INTERNAL uint32_t pwsp_picture_kernel_count(const pwsp_picture *picture) {
    return picture->set ? picture->set->name_count + 1 : (uint32_t)picture->program->kernels.count;
}

PWSP_INTERNAL bool pwsp_picture_has_values(const pwsp_picture *picture, uint64_t slot) {
    if (picture->set) {
        return picture->set->label != NULL;
    }
    const pwsp_task_op *op = picture->ops[picture->records[slot].node];
    return op->axis_count + op->scalar_count > 0;
}

PWSP_INTERNAL ptowsp_task_trace pwsp_picture_task(const pwsp_picture *picture, uint64_t slot) {
    ptowsp_task_trace task;
    if (!picture->set) {
        return pwsp_result_trace_at(picture->result, slot);
    }
    memset(&task, 0, sizeof task);
    task.index = slot;
    task.record = &picture->records[slot];
    return task;
}

static size_t pwsp_picture_label_span(const pwsp_picture *picture, uint64_t slot, size_t length,
                                      pwsp_label_detail detail, char *room) {
    const ptowsp_span_set *set = picture->set;
    if (set->label && detail != PWSP_LABEL_KERNEL) {
        room[length] = ' ';
        size_t begin = length + (length > 0);
        ptowsp_output_buffer buffer = {room + begin, PWSP_LABEL_MAX - begin, 0};
        room[begin] = '\0';
        set->label(set->user, slot, ptowsp_output_to_buffer(&buffer));
        length = begin + strlen(room + begin);
    }
    room[length] = '\0';
    return length;
}

PWSP_INTERNAL size_t pwsp_picture_label(const pwsp_picture *picture, uint64_t slot,
                                        pwsp_label_detail detail, char *room) {
    const ptowsp_task_record *record = pwsp_picture_record(picture, slot);
    const char *kernel = pwsp_picture_kernel(picture, record->kernel);
    size_t length = strlen(kernel);
    if (picture->set) {
        length = (size_t)pwsp_min_u64(length, PWSP_LABEL_MAX / 2);
        memcpy(room, kernel, length);
        return pwsp_picture_label_span(picture, slot, length, detail, room);
    }
    memcpy(room, kernel, length);
    const pwsp_task_op *op = picture->ops[record->node];
    const pwsp_label_part *parts = pwsp_picture_parts(picture, record->node);
    const pwsp_recorder *recorder = &picture->result->recorder;
    const uint64_t *args =
        recorder->words ? recorder->words + recorder->more[slot].first_word : NULL;
    uint32_t count = detail == PWSP_LABEL_KERNEL ? 0
                     : detail == PWSP_LABEL_FULL ? op->axis_count + op->scalar_count
                                                 : op->axis_count;
    for (uint32_t i = 0; i < count; i++) {
        if (length + parts[i].name_length + 32 > PWSP_LABEL_MAX) {
            break;
        }
        room[length++] = ' ';
        memcpy(room + length, parts[i].name, parts[i].name_length);
        length += parts[i].name_length;
        room[length++] = '=';
        length += pwsp_label_value(&parts[i], args[i], room + length);
    }
    room[length] = '\0';
    return length;
}

// -- numbers --------------------------------------------------------------------------------------

PWSP_INTERNAL uint64_t pwsp_picture_scale(const pwsp_picture *picture, uint64_t cycles) {
    uint64_t mhz = picture->options->clock_mhz;
    uint64_t whole = cycles / mhz, rest = cycles % mhz * 1000 / mhz;
    return whole > (UINT64_MAX - rest) / 1000 ? UINT64_MAX : whole * 1000 + rest;
}

PWSP_INTERNAL uint64_t pwsp_picture_busy(const pwsp_picture *picture, uint64_t bin) {
    const ptowsp_usage *usage = &picture->usage;
    uint64_t begin = bin * usage->bin_cycles, busy = 0;
    uint64_t width = pwsp_min_u64(begin + usage->bin_cycles, picture->makespan) - begin;
    for (uint32_t k = 0; k < usage->kernel_count; k++) {
        busy = pwsp_sum_u64(busy, usage->busy[bin * usage->kernel_count + k]);
    }
    return busy / width * 1000 + (uint64_t)(1000.0 * (double)(busy % width) / (double)width + 0.5);
}
