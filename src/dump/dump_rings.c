// The rings of the runtime: task slots, memory, and entries of edges, of four depths of scopes.
//
// A submission takes a slot of its ring, memory for the tensors that it creates, and an entry for each edge to
// a task that has not ended. All of it is given back in order, once the task and those that retain it
// have ended, and its scope has. The runtime waits where room is short.
//
// Tasks end sooner or later, as they only wait for earlier ones, and so do those that retain them. So
// only open scopes hold resources that are never given back while the runtime waits, and whether a program
// passes depends on these alone, not on time:
//
//      [tail ........ next)     tail: the first task of the ring whose scope is open
//
// Entries are counted for all edges, as if no task had ended yet (those that allocate end at once); the
// first entry of a pool is not used. A place of memory depends on the sizes before it alone: where a
// task's memory would cross the end, it begins at the start.

#include "dump.h"

#define DUMP_NUMBER_MAX  (2u * PTOWSP_DUMP_TASK_MAX)  // of a ring's tasks
#define DUMP_MAP_MAX     65536u                       // entries of the runtime's map of tensors
#define DUMP_SCOPE_DEPTH 65u
#define DUMP_HEAP_UNIT   1024u
#define DUMP_HEAP_MAX    (UINT64_C(1) << 50)
#define DUMP_HEAP_STEPS  1000000000u  // slots that the search for a heap may take

// A submission, by its number in its ring.
typedef struct dump_slot {
    uint64_t heap, end;  // bytes, and where they end, as a counter
    uint32_t pool, map;
    uint32_t task;   // DUMP_NONE: deps.json does not have it
    uint32_t scope;  // the number of the line where it begins, plus 1
} dump_slot;

typedef struct dump_ring {
    dump_slot *slots;
    uint32_t count, next, tail;
    uint64_t heap_head, heap_tail;  // counters that never wrap
    uint64_t pool, map;
    uint64_t window_most, pool_most, heap_most;  // without limits
} dump_ring;

typedef struct dump_machine {
    ptowsp_dump *dump;
    dump_ring rings[DUMP_RINGS];
    bool *is_ended;  // by scope; 0 is around all, and never ends
    uint32_t open[DUMP_SCOPE_DEPTH];
    uint32_t depth;
    const ptowsp_dump_rings *sizes;  // NULL: without limits
    ptowsp_dump_rings_result *result;
} dump_machine;

// -- submissions ----------------------------------------------------------------------------------

static void dump_slot_fill(const ptowsp_dump *dump, uint32_t t, dump_slot *slot) {
    const dump_task *task = &dump->tasks[t];
    slot->task = t;
    slot->pool = task->kept_count;
    for (uint32_t i = 0; i < task->in_count; i++) {
        slot->pool += !dump->tasks[dump->edges[task->first_in + i].pred].is_left_out;
    }
    for (uint32_t i = task->first_arg; i < task->first_arg + task->arg_count; i++) {
        const dump_arg *arg = &dump->args[i];
        if (arg->type == DUMP_TYPE_OUTPUT && arg->region != DUMP_NONE) {
            const dump_region *region = &dump->regions[arg->region];
            const uint64_t bytes = region->end - region->begin;
            slot->heap += (bytes + DUMP_HEAP_UNIT - 1) / DUMP_HEAP_UNIT * DUMP_HEAP_UNIT;
        }
        slot->map += task->is_auto && !task->is_left_out &&
                     (arg->type == DUMP_TYPE_INOUT || arg->type == DUMP_TYPE_OUTPUT_EXISTING);
    }
}

// Memory that no task of deps.json accounts for goes to the last one that is left out, of those
// between two lines of a ring.
static void dump_heap_spread(dump_machine *m) {
    uint64_t heap[DUMP_RINGS] = {0}, from[DUMP_RINGS] = {0};
    for (uint32_t i = 0; i < m->dump->scope_count; i++) {
        const dump_scope *line = &m->dump->scopes[i];
        dump_ring *ring = &m->rings[line->ring];
        const uint64_t to = line->task_end < ring->count ? line->task_end : ring->count;
        uint64_t known = heap[line->ring];
        dump_slot *unknown = NULL;
        for (uint64_t k = from[line->ring]; k < to; k++) {
            dump_slot *slot = &ring->slots[k];
            known += slot->heap;
            unknown =
                slot->task == DUMP_NONE || m->dump->tasks[slot->task].is_left_out ? slot : unknown;
        }
        if (unknown && line->heap_end > known) {
            unknown->heap = line->heap_end - known;
        }
        heap[line->ring] = line->heap_end;
        from[line->ring] = to > from[line->ring] ? to : from[line->ring];
    }
}

static bool dump_machine_open(dump_machine *m, ptowsp_dump *dump) {
    uint64_t submitted[DUMP_RINGS] = {0};
    memset(m, 0, sizeof *m);
    m->dump = dump;
    for (uint32_t i = 0; i < dump->task_count; i++) {
        const uint64_t id = dump->tasks[i].id;
        if (id >> 32 >= DUMP_RINGS) {
            return dump_fail(dump, PTOWSP_INVALID_PARAMS, i,
                             "dump: task %llu: there is no ring %llu", (unsigned long long)id,
                             (unsigned long long)(id >> 32));
        }
        if ((id & UINT32_MAX) >= DUMP_NUMBER_MAX) {
            return dump_fail(dump, PTOWSP_LIMIT_EXCEEDED, i,
                             "dump: task %llu: numbers in a ring are below %u",
                             (unsigned long long)id, DUMP_NUMBER_MAX);
        }
        dump_ring *ring = &m->rings[id >> 32];
        const uint32_t count = (uint32_t)id + 1;
        ring->count = count > ring->count ? count : ring->count;
    }
    for (uint32_t i = 0; i < dump->scope_count; i++) {
        dump_ring *ring = &m->rings[dump->scopes[i].ring];
        const uint64_t count = dump->scopes[i].task_end, most = submitted[dump->scopes[i].ring];
        submitted[dump->scopes[i].ring] = count > most ? count : most;
        ring->count =
            count > ring->count && count < DUMP_NUMBER_MAX ? (uint32_t)count : ring->count;
    }
    for (uint32_t r = 0; r < DUMP_RINGS; r++) {
        if (dump->scope_count && m->rings[r].count > submitted[r]) {
            return dump_fail(dump, PTOWSP_DIFFERENT, r,
                             "dump: scope_stats.jsonl is of another run, or cut off: ring %u has "
                             "more than its %llu tasks",
                             (unsigned)r, (unsigned long long)submitted[r]);
        }
        m->rings[r].slots = (dump_slot *)dump_zeroed(m->rings[r].count, sizeof(dump_slot));
        if (!m->rings[r].slots) {
            return dump_out_of_memory(dump);
        }
        for (uint32_t i = 0; i < m->rings[r].count; i++) {
            m->rings[r].slots[i].task = DUMP_NONE;
        }
    }
    for (uint32_t i = 0; i < dump->task_count; i++) {
        const uint64_t id = dump->tasks[i].id;
        dump_slot_fill(dump, i, &m->rings[id >> 32].slots[(uint32_t)id]);
    }
    dump_heap_spread(m);
    m->is_ended = (bool *)dump_zeroed((uint64_t)dump->scope_count + 1, sizeof(bool));
    return m->is_ended ? true : dump_out_of_memory(dump);
}

// -- simulation -----------------------------------------------------------------------------------

static void dump_ring_release(dump_machine *m, dump_ring *ring) {
    while (ring->tail < ring->next && m->is_ended[ring->slots[ring->tail].scope]) {
        const dump_slot *slot = &ring->slots[ring->tail++];
        ring->heap_tail = slot->end;
        ring->pool -= slot->pool;
        ring->map -= slot->map;
    }
}

static bool dump_rings_stop(dump_machine *m, uint32_t r, ptowsp_dump_ring_error error) {
    const dump_ring *ring = &m->rings[r];
    const uint32_t scope = ring->slots[ring->tail < ring->next ? ring->tail : ring->next].scope;
    m->result->error = error;
    m->result->ring = r;
    m->result->task = (uint64_t)r << 32 | ring->next;
    m->result->holder = (uint64_t)r << 32 | ring->tail;
    m->result->depth = scope ? (uint32_t)m->dump->scopes[scope - 1].depth : 0;
    m->result->site = scope ? m->dump->scopes[scope - 1].site : "";
    return false;
}

// The end of a task's memory, as a counter.
static uint64_t dump_heap_place(const dump_ring *ring, uint64_t bytes, uint64_t size) {
    const uint64_t at = ring->heap_head % size;
    return ring->heap_head + (bytes && at + bytes > size ? size - at : 0) + bytes;
}

// The next submission to a ring. False: it can never be granted.
static bool dump_ring_submit(dump_machine *m, uint32_t r) {
    dump_ring *ring = &m->rings[r];
    dump_slot *slot = &ring->slots[ring->next];
    uint64_t map = slot->map;
    slot->scope = 0;
    for (uint32_t i = m->depth; i-- > 0 && !slot->scope;) {
        slot->scope = m->dump->scopes[m->open[i] - 1].ring == r ? m->open[i] : 0;
    }
    for (uint32_t i = 0; i < DUMP_RINGS; i++) {
        dump_ring_release(m, &m->rings[i]);
        map += m->rings[i].map;
    }
    const uint64_t window = (uint64_t)ring->next - ring->tail + 1, pool = ring->pool + slot->pool;
    const uint64_t size = m->sizes ? m->sizes->heap[r] : DUMP_HEAP_MAX;
    const uint64_t end = dump_heap_place(ring, slot->heap, size), heap = end - ring->heap_tail;
    if (m->sizes && window > m->sizes->task_window[r] - 1) {
        uint32_t at = ring->tail;
        while (at < ring->next && ring->slots[at].scope == slot->scope) {
            at++;
        }
        return dump_rings_stop(m, r,
                               at == ring->next ? PTOWSP_DUMP_SCOPE_DEADLOCK
                                                : PTOWSP_DUMP_FLOW_CONTROL_DEADLOCK);
    }
    if (slot->heap && heap > size) {
        return dump_rings_stop(m, r, PTOWSP_DUMP_HEAP_DEADLOCK);
    }
    if (m->sizes && pool > m->sizes->dep_pool[r] - 1) {
        return dump_rings_stop(m, r, PTOWSP_DUMP_DEP_POOL_OVERFLOW);
    }
    if (map > DUMP_MAP_MAX) {
        return dump_rings_stop(m, r, PTOWSP_DUMP_TENSORMAP_OVERFLOW);
    }
    ring->window_most = window > ring->window_most ? window : ring->window_most;
    ring->pool_most = pool > ring->pool_most ? pool : ring->pool_most;
    ring->heap_most = heap > ring->heap_most ? heap : ring->heap_most;
    ring->pool = pool;
    ring->map += slot->map;
    ring->heap_head = slot->end = end;
    ring->next++;
    return true;
}

// Submits to a ring until it has so many; those that deps.json leaves out as well.
static bool dump_ring_submit_to(dump_machine *m, uint32_t r, uint64_t count) {
    while (m->rings[r].next < count && m->rings[r].next < m->rings[r].count) {
        if (!dump_ring_submit(m, r)) {
            return false;
        }
    }
    return true;
}

// Tasks in the order of deps.json, until a ring has so many.
static bool dump_rings_submit(dump_machine *m, uint32_t *task, uint32_t r, uint64_t count) {
    const ptowsp_dump *dump = m->dump;
    for (; *task < dump->task_count && m->rings[r].next < count; ++*task) {
        const dump_task *at = &dump->tasks[*task];
        if (!at->is_left_out &&
            !dump_ring_submit_to(m, (uint32_t)(at->id >> 32), (at->id & UINT32_MAX) + 1)) {
            return false;
        }
    }
    return dump_ring_submit_to(m, r, count);
}

static void dump_scope_line(dump_machine *m, uint32_t i) {
    if (!m->dump->scopes[i].is_begin && m->depth > 0) {
        m->is_ended[m->open[--m->depth]] = true;
    } else if (m->dump->scopes[i].is_begin && m->depth < DUMP_SCOPE_DEPTH) {
        m->open[m->depth++] = i + 1;
    }
}

// Runs all; the result has the first error, or none.
static void dump_machine_run(dump_machine *m, const ptowsp_dump_rings *sizes,
                             ptowsp_dump_rings_result *result) {
    const ptowsp_dump *dump = m->dump;
    uint32_t task = 0;
    bool is_good = true;
    memset(result, 0, sizeof *result);
    result->site = "";
    m->sizes = sizes;
    m->result = result;
    m->depth = 0;
    memset(m->is_ended, 0, (dump->scope_count + 1) * sizeof(bool));
    for (uint32_t r = 0; r < DUMP_RINGS; r++) {
        const dump_ring ring = {m->rings[r].slots, m->rings[r].count, 0, 0, 0, 0, 0, 0, 0, 0, 0};
        m->rings[r] = ring;
    }
    for (uint32_t i = 0; i < dump->scope_count && is_good; i++) {
        const dump_scope *line = &dump->scopes[i];
        is_good = dump_rings_submit(m, &task, (uint32_t)line->ring, line->task_end);
        if (is_good) {
            dump_scope_line(m, i);
        }
    }
    if (is_good) {
        dump_rings_submit(m, &task, 0, UINT64_MAX);
    }
}

static void dump_machine_close(dump_machine *m) {
    for (uint32_t r = 0; r < DUMP_RINGS; r++) {
        dump_resize(m->rings[r].slots, 0);
    }
    dump_resize(m->is_ended, 0);
}

DUMP_INTERNAL bool dump_rings_run(ptowsp_dump *dump, const ptowsp_dump_rings *rings,
                                  ptowsp_dump_rings_result *out_result) {
    dump_machine m;
    const bool is_good = dump_machine_open(&m, dump);
    if (is_good) {
        dump_machine_run(&m, rings, out_result);
    }
    dump_machine_close(&m);
    return is_good;
}

// -- least sizes ----------------------------------------------------------------------------------

// The most that a ring holds when nothing limits it.
static void dump_ring_sizes(const dump_ring *ring, uint32_t r, ptowsp_dump_rings *rings) {
    const uint64_t heap = (ring->heap_most + DUMP_HEAP_UNIT - 1) / DUMP_HEAP_UNIT * DUMP_HEAP_UNIT;
    rings->heap[r] = heap > DUMP_HEAP_UNIT ? heap : DUMP_HEAP_UNIT;
    rings->dep_pool[r] = ring->pool_most + 1 > 4 ? ring->pool_most + 1 : 4;
    rings->task_window[r] = 4;
    while (rings->task_window[r] - 1 < ring->window_most) {
        rings->task_window[r] *= 2;
    }
}

// The heaps grow until all that is allocated finds its place, as places at the end may stay empty.
DUMP_INTERNAL bool dump_rings_find(ptowsp_dump *dump, ptowsp_dump_rings *out_rings) {
    dump_machine m;
    ptowsp_dump_rings_result result;
    uint64_t step = DUMP_HEAP_UNIT, left = DUMP_HEAP_STEPS;
    if (!dump_machine_open(&m, dump)) {
        dump_machine_close(&m);
        return false;
    }
    dump_machine_run(&m, NULL, &result);
    for (uint32_t r = 0; r < DUMP_RINGS; r++) {
        dump_ring_sizes(&m.rings[r], r, out_rings);
    }
    if (result.error) {
        dump_fail(dump, PTOWSP_LIMIT_EXCEEDED, result.task, "dump: task %llu: open scopes hold %s",
                  (unsigned long long)result.task,
                  result.error == PTOWSP_DUMP_TENSORMAP_OVERFLOW
                      ? "more than 65536 entries of the map of tensors"
                      : "more memory than any heap");
    }
    for (bool is_more = !result.error; is_more;) {
        dump_machine_run(&m, out_rings, &result);
        is_more = result.error == PTOWSP_DUMP_HEAP_DEADLOCK;
        if (is_more) {
            left -= left > dump->task_count ? dump->task_count : left;
            step = left ? step : 2 * step;
            out_rings->heap[result.ring] += step;
        }
    }
    PTOWSP_ASSERT(dump->status != PTOWSP_OK || !result.error);
    dump_machine_close(&m);
    return dump->status == PTOWSP_OK;
}
