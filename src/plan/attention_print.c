// Attention plans as text, as arrays of other libraries, and their merges.

#include "../base/text.h"
#include "attention.h"

#include <stdio.h>

// -- text -----------------------------------------------------------------------------------------

#define PWSP_PRINT_LINES 32

// The totals of the lanes of a line.
typedef struct pwsp_lanes_line {
    uint32_t units_min, units_max, merges_min, merges_max;
    double cost_min, cost_max;
} pwsp_lanes_line;

static pwsp_lanes_line pwsp_lanes_line_of(const ptowsp_attention_plan *plan, uint32_t first,
                                          uint32_t end) {
    pwsp_lanes_line line = {UINT32_MAX, 0, UINT32_MAX, 0, 0.0, 0.0};
    for (uint32_t lane = first; lane < end; lane++) {
        const uint32_t units = plan->unit_begin[lane + 1] - plan->unit_begin[lane];
        const PTOWSP_GM uint32_t *merge_begin = plan->merge_begin;
        const uint32_t merges = merge_begin ? merge_begin[lane + 1] - merge_begin[lane] : 0;
        const double cost = plan->lane_costs ? plan->lane_costs[lane] : 0.0;
        line.units_min = units < line.units_min ? units : line.units_min;
        line.units_max = units > line.units_max ? units : line.units_max;
        line.merges_min = merges < line.merges_min ? merges : line.merges_min;
        line.merges_max = merges > line.merges_max ? merges : line.merges_max;
        line.cost_min = lane == first || cost < line.cost_min ? cost : line.cost_min;
        line.cost_max = lane == first || cost > line.cost_max ? cost : line.cost_max;
    }
    return line;
}

// Writes "7" or "7 to 9" in 20 columns.
static void pwsp_print_range(double low, double high, int digits, ptowsp_output text) {
    char range[48];
    snprintf(range, sizeof range, low < high ? "%s to %s" : "%s", pwsp_general(low, digits).text,
             pwsp_general(high, digits).text);
    pwsp_text_format(text, "  %20s", range);
}

static void pwsp_print_lanes(const ptowsp_attention_plan *plan, uint32_t first, uint32_t end,
                             ptowsp_output text) {
    const pwsp_lanes_line line = pwsp_lanes_line_of(plan, first, end);
    pwsp_print_range(first, end - 1, 10, text);
    pwsp_print_range(line.units_min, line.units_max, 10, text);
    if (plan->merge_begin) {
        pwsp_print_range(line.merges_min, line.merges_max, 10, text);
    }
    if (plan->lane_costs) {
        pwsp_print_range(line.cost_min, line.cost_max, 6, text);
    }
    pwsp_text_format(text, "\n");
}

PWSP_INTERNAL void pwsp_print_costs(const ptowsp_attention_plan *plan, ptowsp_output text) {
    pwsp_text_format(text, "cost: largest %s, mean %s", pwsp_general(plan->cost_max, 6).text,
                     pwsp_general(plan->cost_mean, 6).text);
    if (plan->cost_mean > 0.0) {
        pwsp_text_format(text, ", ratio %s", pwsp_fixed(plan->cost_max / plan->cost_mean, 4).text);
    }
    pwsp_text_format(text, "\n  %20s  %20s%s%s\n", "lanes", "units each",
                     plan->merge_begin ? "           merges each" : "",
                     plan->lane_costs ? "             cost each" : "");
    // Where lanes are many, lines are few: a line is of lanes with work, or without.
    const uint32_t most = (plan->lane_count + PWSP_PRINT_LINES - 1) / PWSP_PRINT_LINES;
    const PTOWSP_GM uint32_t *begin = plan->unit_begin;
    for (uint32_t first = 0, end; first < plan->lane_count; first = end) {
        const bool works = begin[first + 1] > begin[first];
        end = first + 1;
        while (most > 1 && end < plan->lane_count && (begin[end + 1] > begin[end]) == works &&
               (!works || end - first < most)) {
            end++;
        }
        pwsp_print_lanes(plan, first, end, text);
    }
}

void ptowsp_attention_print(const ptowsp_attention_plan *plan, ptowsp_output output) {
    if (!plan || !plan->unit_begin || (plan->unit_count > 0 && !plan->units) ||
        (plan->merge_count > 0 && !plan->merges)) {
        return;
    }
    pwsp_text_format(output, "attention plan: %u tiles of up to %u rows in %u units, on %u lanes\n",
                     (unsigned)plan->tile_count, (unsigned)plan->slot_rows,
                     (unsigned)plan->unit_count, (unsigned)plan->lane_count);
    pwsp_text_format(output, "splits: %u units more than tiles, %u merges\n",
                     (unsigned)(plan->unit_count - plan->tile_count), (unsigned)plan->merge_count);
    pwsp_text_format(output, "scratch: %u slots of %u rows of dim + 2 floats\n",
                     (unsigned)plan->slot_count, (unsigned)plan->slot_rows);
    pwsp_print_costs(plan, output);
}

// -- arrays ---------------------------------------------------------------------------------------

// Fills [first, end) of an array that may be NULL.
static void pwsp_export_fill(int32_t *array, uint64_t first, uint64_t end, int32_t value) {
    for (uint64_t i = first; array && i < end; i++) {
        array[i] = value;
    }
}

ptowsp_status ptowsp_attention_export(const ptowsp_attention_plan *plan,
                                      const ptowsp_attention_arrays *arrays) {
    if (!plan || !arrays || (!plan->units && plan->unit_count > 0) ||
        (!plan->merges && plan->merge_count > 0) || plan->unit_count > plan->unit_capacity ||
        plan->merge_count > plan->merge_capacity) {
        return PTOWSP_INVALID_PARAMS;
    }
    if (plan->unit_count > INT32_MAX) {
        return PTOWSP_LIMIT_EXCEEDED;
    }
    uint32_t tiles = 0;
    for (uint32_t i = 0; i < plan->unit_count; i++) {
        if (!ptowsp_work_is_valid(&plan->units[i])) {
            return PTOWSP_INVALID_PARAMS;
        }
        tiles += ptowsp_work_is_first(&plan->units[i]);
    }
    if (tiles != plan->tile_count) {
        return PTOWSP_INVALID_PARAMS;
    }
    const uint64_t units = plan->unit_count, capacity = plan->unit_capacity;
    uint64_t tile = 0;
    int32_t piece = 0;
    for (uint64_t i = 0; i < units; i++) {
        const PTOWSP_GM ptowsp_work *unit = &plan->units[i];
        if (ptowsp_work_is_first(unit)) {
            piece = 0;
            pwsp_export_fill(arrays->o_indptr, tile, tile + 1, (int32_t)i);
            tile++;
        }
        pwsp_export_fill(arrays->request_indices, i, i + 1, (int32_t)unit->params[0]);
        pwsp_export_fill(arrays->kv_tile_indices, i, i + 1, piece);
        piece++;
    }
    pwsp_export_fill(arrays->request_indices, units, capacity, -1);
    pwsp_export_fill(arrays->kv_tile_indices, units, capacity, -1);
    pwsp_export_fill(arrays->o_indptr, tile, capacity + 1, (int32_t)units);
    uint64_t split = 0;  // tiles
    for (uint32_t i = 0; i < plan->merge_count; i++) {
        const uint32_t first = plan->merges[i].params[2];
        if (i == 0 || first != plan->merges[i - 1].params[2]) {  // not of the same tile
            pwsp_export_fill(arrays->merge_indptr, split, split + 1, (int32_t)first);
            split++;
        }
    }
    pwsp_export_fill(arrays->merge_indptr, split, (uint64_t)plan->merge_capacity + 1,
                     (int32_t)plan->slot_count);
    return PTOWSP_OK;
}
