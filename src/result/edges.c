// Dependences of recorded tasks: see edges.h.
//
// Data: each group of tensors that may share memory has a list of the accesses that later ones may
// depend on. An access leaves it once a task has written over all of it, as everything that comes
// later waits for that task. So a tile that is updated again and again has one access; a task that
// touches many tiles at once is compared with each. If the schedule counts only some hazards, what
// is written over is still hidden from readers, but not from writers: it stays, marked.

#include "edges.h"

#define PWSP_EDGE_HIDDEN 8u  // beside PWSP_TILE_READ, ...

// -- life -----------------------------------------------------------------------------------------

// Makes room for one item more.
#define PWSP_EDGE_GROW(e, field, item, count)                                                      \
    (PWSP_GROW(&(e)->memory, (e)->field, (e)->item##_capacity, count) ||                           \
     ((e)->is_out_of_memory = true, false))

PWSP_INTERNAL bool pwsp_edges_begin(pwsp_edges *edges, const pwsp_memory *memory,
                                    const pwsp_sim *sim) {
    const pwsp_timed *timed = sim->timed;
    edges->memory = *memory;
    edges->sim = sim;
    edges->node_count = edges->kept_count = edges->access_count = edges->begin_count = 0;
    edges->task_count = edges->tile_count = edges->free_access = 0;
    edges->pipeline = edges->pipeline_count = 0;
    edges->link = 0;
    edges->is_out_of_memory = false;
    const uint64_t groups = timed->tensor_count + 1, explicits = timed->edge_count + 1;
    const uint64_t streams = sim->schedule->stream_count + 1;
    if ((!edges->groups && !PWSP_ALLOC(memory, edges->groups, groups)) ||
        (!edges->edges && !PWSP_ALLOC(memory, edges->edges, explicits)) ||
        (!edges->streams && !PWSP_ALLOC(memory, edges->streams, streams))) {
        return false;
    }
    memset(edges->groups, 0, (size_t)groups * sizeof(uint64_t));
    memset(edges->edges, 0, (size_t)explicits * sizeof(uint64_t));
    memset(edges->streams, 0, (size_t)streams * sizeof(uint64_t));
    if (!PWSP_EDGE_GROW(edges, nodes, node, 2)) {
        return false;
    }
    memset(edges->nodes, 0, 2 * sizeof(pwsp_edge_node));
    edges->nodes[1].task = PTOWSP_NO_INDEX;
    edges->node_count = 2;
    edges->open = 1;
    return true;
}

// -- structure ------------------------------------------------------------------------------------

// A child of the open scope, not yet in it. 0 when memory is out.
static uint32_t pwsp_edges_node(pwsp_edges *edges, uint64_t task, bool is_parallel) {
    if (edges->node_count >= UINT32_MAX ||
        !PWSP_EDGE_GROW(edges, nodes, node, edges->node_count + 1)) {
        edges->is_out_of_memory = true;
        return 0;
    }
    pwsp_edge_node *node = &edges->nodes[edges->node_count];
    node->task = task;
    node->parent = edges->open;
    node->previous = edges->nodes[edges->open].last;
    node->last = 0;
    node->is_parallel = is_parallel;
    return (uint32_t)edges->node_count++;
}

// What begins at an edge begins at another one as well.
static void pwsp_edges_join(pwsp_edges *edges, uint32_t from, uint32_t to) {
    for (uint64_t at = edges->edges[from]; at; at = edges->begins[at - 1].next) {
        if (!PWSP_EDGE_GROW(edges, begins, begin, edges->begin_count + 1)) {
            return;
        }
        pwsp_edge_begin begin = {edges->begins[at - 1].task, edges->edges[to]};
        edges->begins[edges->begin_count] = begin;
        edges->edges[to] = ++edges->begin_count;
    }
}

PWSP_INTERNAL void pwsp_edges_mark(pwsp_edges *edges, const pwsp_mark *mark) {
    const pwsp_mark_kind kind = mark->kind;
    if (kind == PWSP_MARK_JOIN) {
        for (uint32_t i = 0; i < mark->edge_count; i++) {
            pwsp_edges_join(edges, mark->edges[i], mark->id);
        }
    } else if (kind == PWSP_MARK_RESET) {
        for (uint32_t i = 0; i < mark->edge_count; i++) {
            edges->edges[mark->edges[i]] = 0;
        }
    } else if (kind != PWSP_MARK_END) {
        PTOWSP_ASSERT(kind != PWSP_MARK_RELEASE);  // no edge follows from that
        edges->pipeline = kind == PWSP_MARK_PIPELINE ? ++edges->pipeline_count : edges->pipeline;
        uint32_t node = pwsp_edges_node(edges, PTOWSP_NO_INDEX, kind != PWSP_MARK_SEQUENTIAL);
        edges->open = node ? node : edges->open;
    } else if (!edges->is_out_of_memory) {
        uint32_t node = edges->open;
        edges->pipeline = 0;
        edges->open = edges->nodes[node].parent;
        PTOWSP_ASSERT(edges->open);
        if (edges->nodes[node].last) {
            edges->nodes[edges->open].last = node;
        }
    }
}

// -- kept edges -----------------------------------------------------------------------------------

static bool pwsp_edges_keep(pwsp_edges *edges, uint64_t from, ptowsp_edge_reason reason,
                            uint32_t hazards, uint32_t from_tile, uint32_t to_tile) {
    if (!PWSP_EDGE_GROW(edges, kept, kept, edges->kept_count + 1)) {
        return false;
    }
    pwsp_edge_kept edge = {from, (uint8_t)reason, (uint8_t)hazards, (uint8_t)from_tile,
                           (uint8_t)to_tile};
    edges->kept[edges->kept_count++] = edge;
    return true;
}

static bool pwsp_edges_explicit(pwsp_edges *edges, const pwsp_arrival *arrival, uint64_t task) {
    bool is_good = true;
    for (uint32_t i = 0; i < arrival->after_count; i++) {
        uint64_t at = edges->edges[arrival->after[i]];
        for (; at && is_good; at = edges->begins[at - 1].next) {
            is_good =
                pwsp_edges_keep(edges, edges->begins[at - 1].task, PTOWSP_EDGE_EXPLICIT, 0, 0, 0);
        }
    }
    for (uint32_t i = 0; i < arrival->before_count && is_good; i++) {
        is_good = PWSP_EDGE_GROW(edges, begins, begin, edges->begin_count + 1);
        if (is_good) {
            uint64_t *first = &edges->edges[arrival->before[i]];
            pwsp_edge_begin begin = {task, *first};
            edges->begins[edges->begin_count] = begin;
            *first = ++edges->begin_count;
        }
    }
    return is_good;
}

// The task follows the last one of a stream, or of the links.
static bool pwsp_edges_follow(pwsp_edges *edges, uint64_t *last, uint64_t task) {
    bool is_good = !*last || pwsp_edges_keep(edges, *last - 1, PTOWSP_EDGE_STREAM, 0, 0, 0);
    *last = task + 1;
    return is_good;
}

static bool pwsp_edges_stream(pwsp_edges *edges, const pwsp_arrival *arrival, uint64_t task) {
    const pwsp_sim *sim = edges->sim;
    bool is_good = true;
    if (arrival->unit == PTOWSP_UNIT_LINK) {
        is_good = pwsp_edges_follow(edges, &edges->link, task);
    }
    if (is_good && sim->order.streams && !edges->pipeline) {
        uint64_t *last = &edges->streams[pwsp_precedence_stream(&sim->order, arrival)];
        is_good = pwsp_edges_follow(edges, last, task);
    }
    return is_good;
}

// -- data -----------------------------------------------------------------------------------------

static pwsp_region pwsp_edges_region(const pwsp_bound_tensor *tensor, const pwsp_tile_at *at) {
    int64_t size = (int64_t)tensor->element_size;
    uint64_t offset = (uint64_t)pwsp_tile_offset(tensor, at) * tensor->element_size;
    pwsp_region region = {tensor->base + offset,
                          tensor->row_stride * size,
                          tensor->col_stride * size,
                          at->rows,
                          at->cols,
                          tensor->element_size};
    return region;
}

// The hazards of two accesses that meet.
static uint32_t pwsp_edges_hazards(const pwsp_edges *edges, const pwsp_edge_access *old,
                                   uint32_t access) {
    uint32_t met = 0;
    bool is_read = access & PWSP_TILE_READ, is_written = access & PWSP_TILE_WRITTEN;
    if ((old->access & PWSP_TILE_WRITTEN) && is_read && !(old->access & PWSP_EDGE_HIDDEN)) {
        met |= PTOWSP_HAZARD_RAW;
    }
    if ((old->access & PWSP_TILE_READ) && is_written) {
        met |= PTOWSP_HAZARD_WAR;
    }
    if ((old->access & PWSP_TILE_WRITTEN) && is_written) {
        met |= PTOWSP_HAZARD_WAW;
    }
    return met & edges->sim->schedule->hazards;
}

// The edges of one tile. False when memory is out.
static bool pwsp_edges_query(pwsp_edges *edges, const pwsp_region *region, uint32_t group,
                             uint32_t access, uint32_t tile, uint64_t task) {
    bool is_exact = !edges->sim->deps.is_overlap;
    for (uint64_t at = edges->groups[group]; at; at = edges->accesses[at - 1].next) {
        const pwsp_edge_access *old = &edges->accesses[at - 1];
        uint32_t hazards = pwsp_edges_hazards(edges, old, access);
        bool is_apart = edges->pipeline && edges->tasks[old->task].pipeline == edges->pipeline;
        if (!hazards || old->task == task || is_apart) {
            continue;  // tasks of one pipeline are ordered by its channels, not by data
        }
        if ((is_exact ? pwsp_region_equal(&old->region, region)
                      : pwsp_region_overlaps(&old->region, region)) &&
            !pwsp_edges_keep(edges, old->task, PTOWSP_EDGE_TENSOR, hazards, old->tile, tile)) {
            return false;
        }
    }
    return true;
}

// Takes out the accesses that a written tile hides, or marks them.
static void pwsp_edges_hide(pwsp_edges *edges, const pwsp_region *region, uint32_t group,
                            uint64_t task) {
    bool is_exact = !edges->sim->deps.is_overlap;
    bool is_all = edges->sim->schedule->hazards ==
                  (PTOWSP_HAZARD_RAW | PTOWSP_HAZARD_WAR | PTOWSP_HAZARD_WAW);
    uint64_t *link = &edges->groups[group];
    while (*link) {
        uint64_t at = *link;
        pwsp_edge_access *old = &edges->accesses[at - 1];
        bool is_hidden =
            old->task != task && (is_exact ? pwsp_region_equal(&old->region, region)
                                           : pwsp_region_contains(region, &old->region));
        if (is_hidden && is_all) {
            *link = old->next;
            old->next = edges->free_access;
            edges->free_access = at;
            continue;
        }
        old->access |= is_hidden ? PWSP_EDGE_HIDDEN : 0u;
        link = &old->next;
    }
}

static bool pwsp_edges_add(pwsp_edges *edges, const pwsp_region *region, uint32_t group,
                           uint32_t access, uint32_t tile, uint64_t task) {
    uint64_t at = edges->free_access;
    if (at) {
        edges->free_access = edges->accesses[at - 1].next;
    } else if (PWSP_EDGE_GROW(edges, accesses, access, edges->access_count + 1)) {
        at = ++edges->access_count;
    } else {
        return false;
    }
    pwsp_edge_access made = {*region, task, edges->groups[group], access, tile};
    edges->accesses[at - 1] = made;
    edges->groups[group] = at;
    return true;
}

static bool pwsp_edges_data(pwsp_edges *edges, const pwsp_arrival *arrival,
                            const pwsp_bound_tensor *bound, uint64_t task) {
    const pwsp_deps *deps = &edges->sim->deps;
    bool is_good = deps->is_exact || deps->is_overlap;
    // All tiles ask before any of them hides or adds.
    for (uint32_t pass = 0; pass < 3; pass++) {
        for (uint32_t i = 0; i < arrival->tile_count && is_good; i++) {
            const pwsp_tile_at *at = &arrival->tiles[i];
            PTOWSP_ASSERT(at->rows > 0 && at->cols > 0);  // views of nothing are refused
            pwsp_region region = pwsp_edges_region(&bound[at->tensor], at);
            uint32_t group = deps->tensors[at->tensor].group;
            if (pass == 0) {
                is_good = pwsp_edges_query(edges, &region, group, at->access, i, task);
            } else if (pass == 1 && (at->access & PWSP_TILE_WRITTEN)) {
                pwsp_edges_hide(edges, &region, group, task);
            } else if (pass == 2) {
                is_good = pwsp_edges_add(edges, &region, group, at->access, i, task);
            }
        }
    }
    return !edges->is_out_of_memory;
}

PWSP_INTERNAL bool pwsp_edges_task(pwsp_edges *edges, const pwsp_arrival *arrival,
                                   const pwsp_bound_tensor *bound) {
    uint64_t task = edges->task_count;
    uint32_t node = pwsp_edges_node(edges, task, false);
    if (!node || edges->is_out_of_memory || !PWSP_EDGE_GROW(edges, tasks, task, task + 2) ||
        !PWSP_EDGE_GROW(edges, tiles, tile, edges->tile_count + arrival->tile_count + 1)) {
        return false;
    }
    edges->nodes[edges->open].last = node;
    pwsp_edge_task made = {edges->kept_count, edges->tile_count, node, edges->pipeline};
    edges->tasks[task] = made;
    for (uint32_t i = 0; i < arrival->tile_count; i++) {
        edges->tiles[edges->tile_count++] = arrival->tiles[i];
    }
    edges->task_count++;
    // A process orders its tasks, also where a workload that it calls has edges for other callers.
    bool is_good = (edges->pipeline || pwsp_edges_explicit(edges, arrival, task)) &&
                   pwsp_edges_stream(edges, arrival, task) &&
                   pwsp_edges_data(edges, arrival, bound, task);
    edges->tasks[task + 1].first_kept = edges->kept_count;
    return is_good;
}

// -- visiting -------------------------------------------------------------------------------------

PWSP_INTERNAL uint32_t pwsp_edges_before(const pwsp_edges *edges, uint32_t at) {
    for (; edges->sim->order.has_structure && edges->nodes[at].parent;
         at = edges->nodes[at].parent) {
        const pwsp_edge_node *node = &edges->nodes[at];
        if (!edges->nodes[node->parent].is_parallel && node->previous) {
            return node->previous;
        }
    }
    return 0;
}

static ptowsp_edge_tile pwsp_edge_tile_of(const pwsp_edges *edges, uint64_t task, uint32_t tile) {
    const pwsp_tile_at *at = &edges->tiles[edges->tasks[task].first_tile + tile];
    ptowsp_edge_tile of = {at->tensor, at->rows, at->cols, at->lead, at->row, at->col};
    return of;
}

static bool pwsp_edges_tell(const pwsp_edges *edges, uint64_t task, const pwsp_edge_kept *kept,
                            ptowsp_edge_fn visit, void *user) {
    PWSP_ZERO(ptowsp_edge, edge);
    edge.from = kept->from;
    edge.to = task;
    edge.reason = (ptowsp_edge_reason)kept->reason;
    edge.hazards = kept->hazards;
    if (kept->reason == PTOWSP_EDGE_TENSOR) {
        edge.earlier = pwsp_edge_tile_of(edges, kept->from, kept->from_tile);
        edge.later = pwsp_edge_tile_of(edges, task, kept->to_tile);
    }
    return visit(user, &edge);
}

PWSP_INTERNAL bool pwsp_edges_exits(const pwsp_edges *edges, uint32_t at, uint64_t task,
                                    ptowsp_edge_fn visit, void *user) {
    const pwsp_edge_node *node = &edges->nodes[at];
    if (node->task != PTOWSP_NO_INDEX) {
        pwsp_edge_kept edge = {node->task, PTOWSP_EDGE_STRUCTURE, 0, 0, 0};
        return pwsp_edges_tell(edges, task, &edge, visit, user);
    }
    bool goes_on = true;
    for (uint32_t child = node->last; child && goes_on; child = edges->nodes[child].previous) {
        goes_on = pwsp_edges_exits(edges, child, task, visit, user);
        if (!node->is_parallel) {
            break;
        }
    }
    return goes_on;
}

PWSP_INTERNAL bool pwsp_edges_of(const pwsp_edges *edges, uint64_t task, ptowsp_edge_fn visit,
                                 void *user) {
    PTOWSP_ASSERT(task < edges->task_count);
    const uint32_t before = pwsp_edges_before(edges, edges->tasks[task].node);
    bool goes_on = !before || pwsp_edges_exits(edges, before, task, visit, user);
    const uint64_t end = edges->tasks[task + 1].first_kept;
    for (uint64_t i = edges->tasks[task].first_kept; i < end && goes_on; i++) {
        goes_on = pwsp_edges_tell(edges, task, &edges->kept[i], visit, user);
    }
    return goes_on;
}

// -- the longest chain ----------------------------------------------------------------------------

// A scope ends with the last of its tasks: in a sequential one, later children end later.
PWSP_INTERNAL bool pwsp_edges_longest(const pwsp_edges *edges, const ptowsp_task_record *records,
                                      uint64_t *out_cycles) {
    uint64_t *ends;
    const bool is_good = PWSP_ALLOC(&edges->memory, ends, edges->node_count);
    *out_cycles = 0;
    for (uint64_t i = 0; is_good && i < edges->task_count; i++) {
        const pwsp_edge_task *task = &edges->tasks[i];
        uint64_t ready = ends[pwsp_edges_before(edges, task->node)];  // 0 has none
        for (uint64_t k = task->first_kept; k < edges->tasks[i + 1].first_kept; k++) {
            ready = pwsp_max_u64(ready, ends[edges->tasks[edges->kept[k].from].node]);
        }
        uint64_t end = pwsp_sum_u64(ready, records[i].end - records[i].start);
        for (uint32_t at = task->node; at; at = edges->nodes[at].parent) {
            ends[at] = pwsp_max_u64(ends[at], end);
        }
        *out_cycles = pwsp_max_u64(*out_cycles, end);
    }
    PWSP_FREE(&edges->memory, ends, edges->node_count);
    return is_good;
}
