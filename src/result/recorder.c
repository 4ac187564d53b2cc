// Records of tasks: see recorder.h.
//
// A bin of the usage over time holds the cycles of a kernel's tasks in it. If a task ends after the
// last bin, neighbours are merged and bins become twice as long. So a picture of a run of any
// length takes the same memory.

#include "recorder.h"

PWSP_INTERNAL void pwsp_recorder_init(pwsp_recorder *recorder, const pwsp_memory *memory,
                                      const ptowsp_program *program,
                                      const pwsp_bound_tensor *bound) {
    memset(recorder, 0, sizeof *recorder);
    recorder->memory = *memory;
    recorder->program = program;
    recorder->bound = bound;
}

static size_t pwsp_recorder_kernels(const pwsp_recorder *recorder) {
    return recorder->program->kernels.count ? (size_t)recorder->program->kernels.count : 1;
}

PWSP_INTERNAL bool pwsp_recorder_begin(pwsp_recorder *recorder, const pwsp_sim *sim,
                                       const ptowsp_record_options *options) {
    size_t kernels = pwsp_recorder_kernels(recorder), bins = kernels * PWSP_USAGE_BINS;
    recorder->sim = sim;
    recorder->options = *options;
    recorder->is_dense = options->level >= PTOWSP_RECORD_TASKS && options->every <= 1 &&
                         options->begin == 0 && options->end == 0;
    recorder->count = recorder->gone_count = recorder->word_count = 0;
    recorder->bin_cycles = 1;
    memset(recorder->idle, 0, sizeof recorder->idle);
    if (options->has_clock) {
        pwsp_wall_read(&recorder->clock, 0);
    }
    if (options->level == PTOWSP_RECORD_NONE) {
        return true;
    }
    const pwsp_memory *memory = &recorder->memory;
    if (!PWSP_ROOM(memory, recorder->kernels, recorder->kernel_capacity, kernels) ||
        !PWSP_ROOM(memory, recorder->usage, recorder->usage_capacity, bins)) {
        return false;
    }
    memset(recorder->kernels, 0, kernels * sizeof(ptowsp_task_sums));
    memset(recorder->usage, 0, bins * sizeof(ptowsp_cycles));
    return options->level < PTOWSP_RECORD_EDGES ||
           pwsp_edges_begin(&recorder->edges, &recorder->memory, sim);
}

// -- slots ----------------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_recorder_find(const pwsp_recorder *recorder, uint64_t index,
                                      uint64_t *out_slot) {
    const uint64_t count = recorder->count;
    if (recorder->is_dense || count == 0) {
        *out_slot = index;
        return index < count;
    }
    uint64_t at = recorder->more[count - 1].index == index ? count - 1 : 0;
    PWSP_BISECT(at, count, recorder->more[middle].index < index)
    *out_slot = at;
    return at < count && recorder->more[at].index == index && !recorder->more[at].is_gone;
}

static uint64_t pwsp_recorder_words(const pwsp_recorder *recorder, uint32_t kernel) {
    const pwsp_kernel_info *info = &recorder->program->kernels.items[kernel];
    return (uint64_t)info->axis_count + info->scalar_count;
}

// Takes out the slots that have gone.
static void pwsp_recorder_compact(pwsp_recorder *recorder) {
    uint64_t count = 0, word_count = 0;
    for (uint64_t i = 0; i < recorder->count; i++) {
        pwsp_record_more *more = &recorder->more[i];
        if (more->is_gone) {
            continue;
        }
        uint64_t words = pwsp_recorder_words(recorder, recorder->records[i].kernel);
        PTOWSP_ASSERT(word_count <= more->first_word);
        for (uint64_t j = 0; j < words; j++) {
            recorder->words[word_count + j] = recorder->words[more->first_word + j];
        }
        more->first_word = word_count;
        word_count += words;
        recorder->records[count] = recorder->records[i];
        if (recorder->options.has_clock) {
            recorder->clocks[count] = recorder->clocks[i];
        }
        recorder->more[count++] = *more;
    }
    PTOWSP_ASSERT(count + recorder->gone_count == recorder->count);
    recorder->count = count;
    recorder->word_count = word_count;
    recorder->gone_count = 0;
}

// Makes room for one more task with so many words. False when memory is out.
static bool pwsp_recorder_reserve(pwsp_recorder *recorder, uint64_t words) {
    const pwsp_memory *memory = &recorder->memory;
    if (recorder->count == recorder->record_capacity &&
        recorder->gone_count > recorder->count / 8) {
        pwsp_recorder_compact(recorder);
    }
    const uint64_t count = recorder->count + 1;
    return PWSP_GROW(memory, recorder->records, recorder->record_capacity, count) &&
           PWSP_GROW(memory, recorder->more, recorder->more_capacity, count) &&
           PWSP_GROW(memory, recorder->words, recorder->word_capacity,
                     recorder->word_count + words) &&
           (!recorder->options.has_clock ||
            PWSP_GROW(memory, recorder->clocks, recorder->clock_capacity, count));
}

static uint64_t pwsp_tile_bytes(const pwsp_recorder *recorder, const pwsp_tile_at *at) {
    return (uint64_t)at->rows * at->cols * recorder->bound[at->tensor].element_size;
}

// -- calls of time --------------------------------------------------------------------------------

static ptowsp_task_record *pwsp_recorder_add(void *user, const pwsp_arrival *arrival) {
    pwsp_recorder *recorder = (pwsp_recorder *)user;
    const pwsp_kernel_info *info = &recorder->program->kernels.items[arrival->kernel];
    uint64_t words = (uint64_t)info->axis_count + info->scalar_count;
    if (!pwsp_recorder_reserve(recorder, words) ||
        (recorder->options.level >= PTOWSP_RECORD_EDGES &&
         !pwsp_edges_task(&recorder->edges, arrival, recorder->bound))) {
        return NULL;
    }
    pwsp_record_more *more = &recorder->more[recorder->count];
    memset(more, 0, sizeof *more);
    more->index = recorder->sim->task_count;
    more->first_word = recorder->word_count;
    for (uint32_t i = 0; i < info->axis_count; i++) {
        recorder->words[recorder->word_count++] = arrival->args[i];
    }
    for (uint32_t i = 0; i < info->scalar_count; i++) {
        recorder->words[recorder->word_count++] = arrival->scalars[i];
    }
    for (uint32_t i = 0; i < arrival->tile_count; i++) {
        const pwsp_tile_at *at = &arrival->tiles[i];
        uint64_t bytes = pwsp_tile_bytes(recorder, at);
        more->bytes_read += at->access & PWSP_TILE_READ ? bytes : 0;
        more->bytes_written += at->access & PWSP_TILE_WRITTEN ? bytes : 0;
    }
    if (recorder->options.has_clock) {
        ptowsp_task_record *clock = &recorder->clocks[recorder->count];
        memset(clock, 0, sizeof *clock);
        clock->cause = PTOWSP_NO_INDEX;
        clock->lane = PTOWSP_NO_LANE;
        clock->kernel = arrival->kernel;
        clock->node = arrival->node;
    }
    return &recorder->records[recorder->count++];
}

PWSP_INTERNAL void pwsp_recorder_clock(pwsp_recorder *recorder, uint64_t index,
                                       const pwsp_wall_mark *mark) {
    uint64_t slot;
    if (mark->end && pwsp_recorder_find(recorder, index, &slot)) {
        ptowsp_task_record *clock = &recorder->clocks[slot];
        clock->ready = clock->issue = mark->ready;
        clock->start = mark->start;
        clock->end = mark->end;
        clock->lane = mark->lane;
    }
}

// Ticks become nanoseconds.
static void pwsp_recorder_end_clocks(pwsp_recorder *recorder) {
    if (!recorder->options.has_clock) {
        return;
    }
    pwsp_wall_read(&recorder->clock, 1);
    for (uint64_t i = 0; i < recorder->count; i++) {
        ptowsp_task_record *clock = &recorder->clocks[i];
        if (clock->lane != PTOWSP_NO_LANE) {
            clock->ready = clock->issue = pwsp_wall_since(&recorder->clock, clock->ready);
            clock->start = pwsp_wall_since(&recorder->clock, clock->start);
            clock->end = pwsp_wall_since(&recorder->clock, clock->end);
        }
    }
}

static ptowsp_task_record *pwsp_recorder_at(void *user, uint64_t index) {
    pwsp_recorder *recorder = (pwsp_recorder *)user;
    uint64_t slot;
    bool is_found = pwsp_recorder_find(recorder, index, &slot);
    PTOWSP_ASSERT(is_found && (recorder->is_dense || !recorder->more[slot].is_done));
    return is_found ? &recorder->records[slot] : NULL;
}

static void pwsp_recorder_widen(pwsp_recorder *recorder) {
    size_t kernels = pwsp_recorder_kernels(recorder);
    ptowsp_cycles *usage = recorder->usage;
    for (size_t bin = 0; bin < PWSP_USAGE_BINS; bin++) {
        for (size_t k = 0; k < kernels; k++) {
            ptowsp_cycles a = 0, b = 0;
            if (2 * bin < PWSP_USAGE_BINS) {
                a = usage[2 * bin * kernels + k];
                b = usage[(2 * bin + 1) * kernels + k];
            }
            usage[bin * kernels + k] = pwsp_sum_u64(a, b);
        }
    }
    recorder->bin_cycles *= 2;
}

// Makes bins so long that they reach to a time.
static void pwsp_recorder_reach(pwsp_recorder *recorder, uint64_t time) {
    while (time / PWSP_USAGE_BINS >= recorder->bin_cycles) {
        pwsp_recorder_widen(recorder);
    }
}

static void pwsp_recorder_use(pwsp_recorder *recorder, const ptowsp_task_record *record) {
    size_t kernels = pwsp_recorder_kernels(recorder);
    pwsp_recorder_reach(recorder, record->end);
    uint64_t at = record->start, width = recorder->bin_cycles;
    while (at < record->end) {
        uint64_t bin = at / width;
        PTOWSP_ASSERT(bin < PWSP_USAGE_BINS);
        uint64_t next = pwsp_min_u64((bin + 1) * width, record->end);
        ptowsp_cycles *used = &recorder->usage[bin * kernels + record->kernel];
        *used = pwsp_sum_u64(*used, next - at);
        at = next;
    }
}

// A task that ends at `begin` has run before it; one of no cycles runs at its start.
static bool pwsp_recorder_keeps(const pwsp_recorder *recorder, uint64_t index,
                                const ptowsp_task_record *record) {
    const ptowsp_record_options *options = &recorder->options;
    bool is_over = record->end <= options->begin && record->start < options->begin;
    bool is_in_time = !is_over && (options->end == 0 || record->start < options->end);
    return options->level >= PTOWSP_RECORD_TASKS && is_in_time &&
           (options->every <= 1 || index % options->every == 0);
}

static void pwsp_recorder_done(void *user, uint64_t index, uint64_t idle_cycles,
                               pwsp_idle_part part) {
    pwsp_recorder *recorder = (pwsp_recorder *)user;
    uint64_t slot;
    bool is_found = pwsp_recorder_find(recorder, index, &slot);
    PTOWSP_ASSERT(is_found);
    (void)is_found;
    const ptowsp_task_record *record = &recorder->records[slot];
    pwsp_record_more *more = &recorder->more[slot];
    ptowsp_task_sums *kernel = &recorder->kernels[record->kernel];
    ptowsp_cycles cycles = record->end - record->start;
    kernel->task_count++;
    kernel->busy_cycles = pwsp_sum_u64(kernel->busy_cycles, cycles);
    kernel->longest_cycles = pwsp_max_u64(kernel->longest_cycles, cycles);
    kernel->bytes_read = pwsp_sum_u64(kernel->bytes_read, more->bytes_read);
    kernel->bytes_written = pwsp_sum_u64(kernel->bytes_written, more->bytes_written);
    if (record->lane != PTOWSP_NO_LANE) {
        ptowsp_cycles *idle = &recorder->idle[record->stall];
        *idle = pwsp_sum_u64(*idle, idle_cycles - part.cycles);
        recorder->idle[part.stall] = pwsp_sum_u64(recorder->idle[part.stall], part.cycles);
    }
    pwsp_recorder_use(recorder, record);
    more->is_done = true;
    if (recorder->is_dense || pwsp_recorder_keeps(recorder, index, record)) {
        return;
    }
    if (slot + 1 == recorder->count) {
        recorder->count--;
        recorder->word_count = more->first_word;
    } else {
        more->is_gone = true;
        recorder->gone_count++;
    }
}

static void pwsp_recorder_mark(void *user, const pwsp_mark *mark) {
    pwsp_recorder *recorder = (pwsp_recorder *)user;
    if (recorder->options.level >= PTOWSP_RECORD_EDGES) {
        pwsp_edges_mark(&recorder->edges, mark);
    }
}

PWSP_INTERNAL pwsp_sim_recorder pwsp_recorder_calls(pwsp_recorder *recorder) {
    pwsp_sim_recorder calls = {pwsp_recorder_add, pwsp_recorder_at, pwsp_recorder_done,
                               pwsp_recorder_mark, recorder};
    return calls;
}

PWSP_INTERNAL void pwsp_recorder_end(pwsp_recorder *recorder) {
    const pwsp_sim *sim = recorder->sim;
    // After a failure there may be tasks that never started: they have no lane, or go.
    for (uint64_t i = 0; i < recorder->count; i++) {
        if (recorder->more[i].is_done || recorder->more[i].is_gone) {
            continue;
        }
        if (recorder->is_dense) {
            recorder->records[i].lane = PTOWSP_NO_LANE;
        } else {
            recorder->more[i].is_gone = true;
            recorder->gone_count++;
        }
    }
    if (recorder->gone_count) {
        pwsp_recorder_compact(recorder);
    }
    pwsp_recorder_end_clocks(recorder);
    if (recorder->options.level) {  // a pipeline, or control, may end later than the last task
        pwsp_recorder_reach(recorder, sim->stats.makespan_cycles);
    }
    for (uint32_t i = 0; recorder->options.level && i < sim->timed->lane_count; i++) {
        ptowsp_cycles *idle = &recorder->idle[PTOWSP_STALL_NONE];
        *idle =
            pwsp_sum_u64(*idle, sim->stats.makespan_cycles - pwsp_lane_end(sim, &sim->lanes[i]));
    }
}
