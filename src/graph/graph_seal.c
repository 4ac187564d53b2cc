// Seals a graph: compressed sparse rows of edges, fan-ins, sources; and cycles.
//
// Edges are sorted by source task, by counting: the number of edges of each task, the end of its
// row (a running sum), and then each edge, from the last, into the place before. Edges of one task
// keep their order. If all edges lead to higher numbers, no search for cycles is needed. Otherwise
// tasks are removed in topological order (Kahn 1962); any tasks that remain contain a cycle.

#include "graph_state.h"

#include "../base/text.h"

#include <inttypes.h>

// Sizes an array that sealing fills: exactly, because tasks are rarely added later.
static bool pwsp_seal_reserve(ptowsp_graph *graph, void *array, uint64_t *capacity, uint64_t needed,
                              size_t item_size) {
    return needed <= *capacity || pwsp_graph_resize(graph, array, capacity, needed, item_size);
}

// Returns the excess memory of doubling; never fails, because the old block is good enough.
static void pwsp_seal_trim(ptowsp_graph *graph, void *array, uint64_t *capacity, uint64_t needed,
                           size_t item_size) {
    if (needed > 0 && *capacity > needed + needed / 8 && *capacity * item_size >= 65536) {
        pwsp_graph_resize(graph, array, capacity, needed, item_size);
    }
}

static bool pwsp_seal_allocate(ptowsp_graph *graph) {
    uint64_t tasks = graph->task_count + graph->growth.task_max, edges = graph->edge_count;
#define PWSP_SEAL_RESERVE(name, count) PWSP_GRAPH_ARRAY(pwsp_seal_reserve, graph, name, count)
    bool is_whole = PWSP_SEAL_RESERVE(nodes, tasks) && PWSP_SEAL_RESERVE(counts, tasks) &&
                    PWSP_SEAL_RESERVE(first, graph->task_count + 1) &&
                    PWSP_SEAL_RESERVE(targets, edges + graph->growth.edge_max) &&
                    PWSP_SEAL_RESERVE(kinds, tasks) && PWSP_SEAL_RESERVE(outcomes, tasks) &&
                    PWSP_SEAL_RESERVE(links, tasks) &&
                    PWSP_SEAL_RESERVE(ranks, graph->is_classed ? tasks : 0) &&
                    PWSP_SEAL_RESERVE(sources, graph->ready_count) &&
                    pwsp_graph_reserve_added(graph);
#undef PWSP_SEAL_RESERVE
    if (is_whole) {
        PWSP_GRAPH_ARRAY(pwsp_seal_trim, graph, nodes, tasks);
        PWSP_GRAPH_ARRAY(pwsp_seal_trim, graph, counts, tasks);
        PWSP_GRAPH_ARRAY(pwsp_seal_trim, graph, befores, edges);
        PWSP_GRAPH_ARRAY(pwsp_seal_trim, graph, afters, edges);
    }
    return is_whole;
}

// An edge, and the task that it leads to.
typedef struct pwsp_seal_edge {
    uint64_t index;
    uint32_t after, left;  // of a sorted graph: edges to that task which come before
} pwsp_seal_edge;

static pwsp_seal_edge pwsp_seal_end(const ptowsp_graph *graph) {
    const pwsp_seal_edge end = {graph->edge_count, (uint32_t)graph->task_count, 0};
    return end;
}

// Goes on to the edge before; false at the first one.
static bool pwsp_seal_go_back(const ptowsp_graph *graph, pwsp_seal_edge *edge) {
    if (edge->index == 0) {
        return false;
    }
    edge->index--;
    if (!graph->is_sorted) {
        edge->after = graph->arrays.afters[edge->index];
        return true;
    }
    while (edge->left == 0) {
        edge->left = graph->arrays.counts[--edge->after].fan_in;
    }
    edge->left--;
    return true;
}

// The rows of edges, and the sources.
static void pwsp_seal_rows(ptowsp_graph *graph) {
    uint32_t *first = graph->arrays.first, *targets = graph->arrays.targets;
    const uint32_t *befores = graph->arrays.befores;
    pwsp_graph_count *counts = graph->arrays.counts;
    memset(first, 0, (size_t)(graph->task_count + 1) * sizeof *first);
    for (uint64_t i = 0; i < graph->edge_count; i++) {
        first[befores[i]]++;
    }
    uint32_t sum = 0, source_count = 0;
    for (uint64_t i = 0; i < graph->task_count; i++) {
        sum += first[i];
        first[i] = sum;
        counts[i].pending = counts[i].fan_in;
        if (counts[i].fan_in == 0) {
            graph->arrays.sources[source_count++] = (uint32_t)i;
        }
    }
    PTOWSP_ASSERT(sum == graph->edge_count && source_count == graph->ready_count);
    first[graph->task_count] = sum;
    graph->source_count = source_count;
    pwsp_seal_edge edge = pwsp_seal_end(graph);
    while (pwsp_seal_go_back(graph, &edge)) {
        targets[--first[befores[edge.index]]] = edge.after;
    }
}

// Removes tasks in topological order and returns their number. Afterwards pending is as after a run
// that got no further. Uses `links` as its queue.
static uint64_t pwsp_seal_take_away(ptowsp_graph *graph) {
    uint32_t *queue = graph->arrays.links;
    uint64_t count = graph->source_count;
    if (count > 0) {
        memcpy(queue, graph->arrays.sources, (size_t)count * sizeof *queue);
    }
    for (uint64_t i = 0; i < count; i++) {
        uint32_t task = queue[i];
        for (uint32_t k = graph->arrays.first[task]; k < graph->arrays.first[task + 1]; k++) {
            PTOWSP_ASSERT(graph->arrays.counts[graph->arrays.targets[k]].pending > 0);
            if (--graph->arrays.counts[graph->arrays.targets[k]].pending == 0) {
                queue[count++] = graph->arrays.targets[k];
            }
        }
    }
    return count;
}

// Names a cycle in which each task waits for previous[task]: from its lowest task on, along the
// edges, as far as the text has room.
static ptowsp_status pwsp_seal_refuse_cycle(ptowsp_graph *graph, uint32_t *previous,
                                            uint32_t task) {
    uint32_t lowest = task, length = 0, at = task;
    do {  // turn the links around, so that they follow the edges; find the lowest
        lowest = at < lowest ? at : lowest;
        length++;
        at = previous[at];
    } while (at != task);
    uint32_t after = task, middle = previous[task];
    while (middle != task) {
        uint32_t before = previous[middle];
        previous[middle] = after;
        after = middle;
        middle = before;
    }
    previous[task] = after;
    char list[320];
    ptowsp_output_buffer buffer = {list, sizeof list, 0};
    ptowsp_output text = ptowsp_output_to_buffer(&buffer);
    at = lowest;
    for (uint32_t i = 0; i <= length; i++) {
        if (buffer.length > sizeof list - 100 && i < length) {
            pwsp_text_format(text, " -> ...");
            break;
        }
        const char *name = pwsp_graph_name(graph, at);
        pwsp_text_format(text, "%s%u%s%s%s", i ? " -> " : "", (unsigned)at, name ? " '" : "",
                         name ? name : "", name ? "'" : "");
        at = previous[at];
    }
    return pwsp_fail(graph->context, PTOWSP_INVALID_PARAMS, lowest,
                     "graph: %u tasks wait for each other in a cycle: %s", (unsigned)length, list);
}

// Every remaining task waits for a remaining task: going back from one to the other ends in a
// cycle.
static ptowsp_status pwsp_seal_find_cycle(ptowsp_graph *graph) {
    uint32_t *previous = graph->arrays.links;
    pwsp_seal_edge edge = pwsp_seal_end(graph);
    while (pwsp_seal_go_back(graph, &edge)) {
        if (graph->arrays.counts[graph->arrays.befores[edge.index]].pending > 0) {
            previous[edge.after] = graph->arrays.befores[edge.index];
        }
    }
    uint32_t task = 0;
    while (graph->arrays.counts[task].pending == 0) {
        task++;
        PTOWSP_ASSERT(task < graph->task_count);  // some are left
    }
    for (uint64_t i = 0; i < graph->task_count; i++) {  // more steps than lead to the cycle
        task = previous[task];
    }
    return pwsp_seal_refuse_cycle(graph, previous, task);
}

PWSP_INTERNAL ptowsp_status pwsp_graph_seal(ptowsp_graph *graph) {
    ptowsp_context *context = graph->context;
    if (graph->task_count + graph->growth.task_max > PWSP_GRAPH_NONE ||
        graph->edge_count + graph->growth.edge_max > PWSP_GRAPH_NONE) {
        bool is_tasks = graph->task_count + graph->growth.task_max > PWSP_GRAPH_NONE;
        return pwsp_fail(context, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                         "graph: more than %u %s with %s", (unsigned)PWSP_GRAPH_NONE,
                         is_tasks ? "tasks" : "edges",
                         is_tasks ? "added_task_max" : "added_edge_max");
    }
    if (!pwsp_seal_allocate(graph)) {
        return PWSP_NO_MEMORY(
            context, "graph: no memory for running %" PRIu64 " tasks and %" PRIu64 " edges",
            graph->task_count, graph->edge_count);
    }
    pwsp_seal_rows(graph);
    if (!graph->is_ordered) {
        if (pwsp_seal_take_away(graph) < graph->task_count) {
            graph->status = pwsp_seal_find_cycle(graph);
            return graph->status;
        }
        for (uint64_t i = 0; i < graph->task_count; i++) {
            graph->arrays.counts[i].pending = graph->arrays.counts[i].fan_in;
        }
    }
    graph->is_sealed = true;
    return PTOWSP_OK;
}
