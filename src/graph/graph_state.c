// Small operations on a graph that several of its rooms need.

#include "graph_state.h"

PWSP_INTERNAL bool pwsp_graph_resize(ptowsp_graph *graph, void *array, uint64_t *capacity,
                                     uint64_t count, size_t item_size) {
    const pwsp_memory *memory = &graph->memory;
    void *items = NULL;
    if (count <= SIZE_MAX / 2 / item_size) {
        items = memory->resize(memory->user, pwsp_array_items(array), (size_t)*capacity * item_size,
                               (size_t)count * item_size);
    }
    if (items) {
        memcpy(array, &items, sizeof items);
        *capacity = count;
    }
    return items != NULL;
}

PWSP_INTERNAL bool pwsp_graph_grow(ptowsp_graph *graph, void *array, uint64_t *capacity,
                                   uint64_t needed, size_t item_size) {
    PTOWSP_ASSERT(needed > *capacity);
    uint64_t grown = pwsp_max_u64(pwsp_max_u64(needed, 16), *capacity * 2);
    return pwsp_graph_resize(graph, array, capacity, grown, item_size);
}

PWSP_INTERNAL const char *pwsp_graph_name(const ptowsp_graph *graph, uint64_t task) {
    PTOWSP_ASSERT(task < graph->task_count + pwsp_graph_added_count(graph));
    if (task >= graph->task_count) {
        return graph->arrays.added[task - graph->task_count].name;
    }
    return task < graph->name_count ? graph->arrays.names[task] : NULL;
}

PWSP_INTERNAL ptowsp_status pwsp_graph_do_nothing(void *user, uint64_t task, uint32_t lane) {
    (void)user, (void)task, (void)lane;
    return PTOWSP_OK;
}

PWSP_INTERNAL void pwsp_graph_add_tally(ptowsp_graph *graph, const pwsp_graph_tally *tally) {
    pwsp_graph_tally *sum = &graph->last.tally;
    sum->failed_count += tally->failed_count;
    sum->skipped_count += tally->skipped_count;
    sum->first_failed =
        sum->first_failed < tally->first_failed ? sum->first_failed : tally->first_failed;
}
