// How long tasks take; see pace.h.

#include "pace.h"

PWSP_INTERNAL bool pwsp_pace_init(pwsp_pace *pace, const pwsp_memory *memory,
                                  uint32_t kernel_count) {
    const uint32_t line = PWSP_FALSE_SHARING / sizeof(pwsp_pace_note);
    memset(pace, 0, sizeof *pace);
    pace->memory = *memory;
    pace->kernel_count = kernel_count;
    pace->lane_stride = (kernel_count + 2 * line - 1) / line * line;
    pace->hold = PWSP_PACE_HOLD_MIN;
    return PWSP_ALLOC(memory, pace->ticks, kernel_count + 1);
}

PWSP_INTERNAL bool pwsp_pace_reserve(pwsp_pace *pace, uint32_t lane_count) {
    pwsp_pace_note *notes;
    if (lane_count <= pace->lane_capacity) {
        return true;
    }
    if (!PWSP_ALLOC(&pace->memory, notes, (size_t)lane_count * pace->lane_stride)) {
        return false;
    }
    PWSP_FREE(&pace->memory, pace->notes, (size_t)pace->lane_capacity * pace->lane_stride);
    pace->notes = notes;
    pace->lane_capacity = lane_count;
    return true;
}

PWSP_INTERNAL void pwsp_pace_begin(pwsp_pace *pace, uint32_t lane_count, bool is_on,
                                   bool may_keep) {
    PTOWSP_ASSERT(lane_count <= pace->lane_capacity || !is_on);
    pace->lane_count = lane_count;
    pace->is_on = is_on;
    pace->may_keep = is_on && may_keep;
}

static pwsp_pace_note *pwsp_pace_at(const pwsp_pace *pace, uint32_t lane, uint32_t kernel) {
    PTOWSP_ASSERT(lane < pace->lane_capacity && kernel <= pace->kernel_count);
    return &pace->notes[(size_t)lane * pace->lane_stride + kernel];
}

// -- on lanes -------------------------------------------------------------------------------------

// An average of some eight notes. One alone changes it little, as it may be an interruption.
PWSP_INTERNAL void pwsp_pace_tell(pwsp_pace *pace, uint32_t lane, uint32_t kernel, uint64_t ticks,
                                  uint32_t task_count) {
    pwsp_pace_note *note = pwsp_pace_at(pace, lane, kernel);
    const uint32_t count = pwsp_load_relaxed(&note->count);
    const uint64_t known = pwsp_load_relaxed(&note->ticks);
    uint64_t next = pwsp_max_u64(pwsp_min_u64(ticks / task_count, UINT32_MAX / 8), 1);
    if (count > 0) {
        next = (7 * known + pwsp_min_u64(next, 2 * known + 8)) / 8;
    }
    pwsp_store_relaxed(&note->ticks, (uint32_t)next);
    pwsp_store_relaxed(&note->count, count < PWSP_PACE_KNOWN ? count + 1 : count);
}

// -- on the walking lane --------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_pace_learn(pwsp_pace *pace, uint32_t kernel) {
    uint32_t least = UINT32_MAX, count = 0;
    for (uint32_t i = 0; i < pace->lane_count; i++) {
        const pwsp_pace_note *note = pwsp_pace_at(pace, i, kernel);
        const uint32_t noted = pwsp_load_relaxed(&note->count);
        const uint32_t ticks = pwsp_load_relaxed(&note->ticks);
        count += noted;
        least = noted > PWSP_PACE_KNOWN / 4 && ticks < least ? ticks : least;
    }
    pace->ticks[kernel] = count >= PWSP_PACE_KNOWN && least < UINT32_MAX ? least + !least : 0;
}

PWSP_INTERNAL uint32_t pwsp_pace_block(const pwsp_pace *pace, uint32_t kernel, uint64_t count) {
    const uint32_t ticks = pace->ticks[kernel];
    if (ticks == 0) {
        return 1;
    }
    // Enough blocks for all lanes, and some more so that lanes end at about the same time.
    const uint64_t share = count / (4 * (uint64_t)pace->lane_count);
    const uint64_t most = pwsp_min_u64(PWSP_PACE_BLOCK_TICKS / ticks, PWSP_PACE_BLOCK_MAX);
    return (uint32_t)pwsp_max_u64(pwsp_min_u64(share, most), 1);
}

PWSP_INTERNAL void pwsp_pace_keep(pwsp_pace *pace) {
    pace->look_count = 0;
    pace->looked_at = pwsp_ticks();
    pace->was_long = false;
}

// Measures all kernels again.
static void pwsp_pace_forget(pwsp_pace *pace) {
    for (uint32_t i = 0; i < pace->lane_capacity; i++) {
        for (uint32_t kernel = 0; kernel <= pace->kernel_count; kernel++) {
            pwsp_store_relaxed(&pwsp_pace_at(pace, i, kernel)->count, 0u);
        }
    }
    memset(pace->ticks, 0, (pace->kernel_count + 1) * sizeof(uint32_t));
    pace->kept_count = 0;
    pace->seen_count = 0;
}

PWSP_INTERNAL bool pwsp_pace_look(pwsp_pace *pace) {
    const uint64_t now = pwsp_ticks(), passed = now - pace->looked_at;
    const bool is_long = passed / pace->look_count > PWSP_TICKS_US;
    pace->kept_count += pace->look_count;
    pace->looked_at = now;
    pace->look_count = 0;
    if (is_long && pace->was_long) {
        pace->hold = pace->hold < PWSP_PACE_HOLD_MAX ? 2 * pace->hold : pace->hold;
        pwsp_pace_forget(pace);
        return false;
    }
    pace->was_long = is_long;
    if (pace->kept_count >= PWSP_PACE_TERM) {
        pace->hold = PWSP_PACE_HOLD_MIN;
        pwsp_pace_forget(pace);
        return false;
    }
    return true;
}
