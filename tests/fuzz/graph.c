// A libFuzzer target: bytes are the tasks and edges of a graph, some of which make a cycle, and how
// its tasks end. A serial model, by repeated passes over the edges, says what comes of each task; the
// graph is run twice, on one lane and on three.

#include "bytes.h"

#include "../../ptowsp.h"

#include <string.h>

enum { TASK_MAX = 40, EDGE_MAX = 120, FAILED = -1000 };

typedef struct model {
    uint32_t task_count, edge_count;
    uint32_t edges[EDGE_MAX][2];
    bool fails[TASK_MAX], is_range[TASK_MAX];
    // What is to come out.
    uint32_t rank[TASK_MAX];  // the longest path to it
    uint64_t cause[TASK_MAX];
    bool has_cycle;
    // What comes out: when each task began and ended, and how often.
    uint32_t clock, begun[TASK_MAX], ended[TASK_MAX], runs[TASK_MAX];
} model;

typedef struct task {
    model *m;
    uint32_t number;
} task;

static uint32_t tick(model *m) {
    return __atomic_add_fetch(&m->clock, 1, __ATOMIC_SEQ_CST);
}

static ptowsp_status run_task(void *user, uint64_t number, uint32_t lane) {
    model *m = ((task *)user)->m;
    (void)lane;
    m->begun[number] = tick(m);
    m->runs[number]++;
    m->ended[number] = tick(m);
    return m->fails[number] ? (ptowsp_status)(FAILED - (int)number) : (ptowsp_status)(number % 3);
}

// Of three items, one at a time.
static ptowsp_status run_range(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    const task *t = (const task *)user;
    (void)lane;
    if (begin == 0) {
        t->m->begun[t->number] = tick(t->m);
    }
    __atomic_fetch_add(&t->m->runs[t->number], (uint32_t)(end - begin), __ATOMIC_RELAXED);
    if (end == 3) {
        t->m->ended[t->number] = tick(t->m);
    }
    bool fails = t->m->fails[t->number];
    return fails ? (ptowsp_status)(FAILED - (int)t->number) : PTOWSP_OK;
}

static void take_model(model *m, bytes *in) {
    memset(m, 0, sizeof *m);
    m->task_count = 1 + take_below(in, TASK_MAX);
    const uint32_t rate = take_below(in, 20), kind = take_below(in, 4);
    while (m->edge_count < EDGE_MAX && in->size > 1) {
        uint32_t a = take_below(in, m->task_count), b = take_below(in, m->task_count);
        if (a != b) {
            m->edges[m->edge_count][0] = kind > 0 && a > b ? b : a;  // kind 0 has cycles
            m->edges[m->edge_count++][1] = kind > 0 && a > b ? a : b;
        }
    }
    for (uint32_t i = 0; i < m->task_count; i++) {
        m->fails[i] = rate > 10 && i * 7 % rate == 3;
        m->is_range[i] = (i + kind) % 5 == 0;
    }
}

// Longest paths: longer ones than there are tasks are those of a cycle.
static void work_out(model *m) {
    bool is_changed = true;
    for (uint32_t pass = 0; is_changed; pass++) {
        is_changed = false;
        for (uint32_t e = 0; e < m->edge_count; e++) {
            uint32_t *after = &m->rank[m->edges[e][1]], before = m->rank[m->edges[e][0]];
            is_changed |= *after <= before;
            *after = *after <= before ? before + 1 : *after;
        }
        if (pass > m->task_count) {
            m->has_cycle = true;
            return;
        }
    }
    for (uint32_t i = 0; i < m->task_count; i++) {
        m->cause[i] = PTOWSP_NO_INDEX;
    }
    for (uint32_t rank = 0; rank < m->task_count; rank++) {
        for (uint32_t i = 0; i < m->task_count; i++) {
            if (m->rank[i] == rank && m->cause[i] == PTOWSP_NO_INDEX && m->fails[i]) {
                m->cause[i] = i;
            }
        }
        for (uint32_t e = 0; e < m->edge_count; e++) {
            uint64_t cause = m->cause[m->edges[e][0]];
            if (m->rank[m->edges[e][0]] == rank && cause < m->cause[m->edges[e][1]]) {
                m->cause[m->edges[e][1]] = cause;
            }
        }
    }
}

static void build(const model *m, ptowsp_graph *graph, task *tasks) {
    for (uint32_t i = 0; i < m->task_count; i++) {
        ptowsp_graph_task_desc desc = {.user = &tasks[i]};
        if (m->is_range[i]) {
            desc.range = run_range;
            desc.item_count = 3;
            desc.grain = 3;
        } else {
            desc.fn = run_task;
        }
        REQUIRE(ptowsp_graph_task_make(graph, &desc, NULL) == PTOWSP_OK);
    }
    for (uint32_t e = 0; e < m->edge_count; e++) {
        REQUIRE(ptowsp_graph_edge_make(graph, m->edges[e][0], m->edges[e][1]) == PTOWSP_OK);
    }
}

// A skipped task has the lowest failed task before it as cause, a failed one itself.
static void require_statuses(const model *m, const ptowsp_graph *graph) {
    for (uint32_t i = 0; i < m->task_count; i++) {
        uint64_t cause;
        const bool is_skipped = m->cause[i] != PTOWSP_NO_INDEX && m->cause[i] != i;
        const ptowsp_status wanted = is_skipped         ? PTOWSP_SKIPPED
                                     : m->cause[i] == i ? (ptowsp_status)(FAILED - (int)i)
                                                        : PTOWSP_OK;
        REQUIRE(ptowsp_graph_task_status(graph, i, &cause) == wanted);
        REQUIRE(cause == m->cause[i]);
        REQUIRE(m->runs[i] == (is_skipped ? 0u : m->is_range[i] ? 3u : 1u));
    }
    for (uint32_t e = 0; e < m->edge_count; e++) {
        const uint32_t before = m->edges[e][0], after = m->edges[e][1];
        REQUIRE(m->runs[after] == 0 || m->ended[before] < m->begun[after]);
    }
}

static void run(model *m, uint32_t lane_count) {
    ptowsp_context *context;
    ptowsp_graph *graph;
    task tasks[TASK_MAX];
    ptowsp_context_desc desc = {.threads =
                                    lane_count > 1 ? PTOWSP_THREADS_OWN : PTOWSP_THREADS_SERIAL,
                                .lane_count = lane_count};
    for (uint32_t i = 0; i < TASK_MAX; i++) {
        tasks[i].m = m;
        tasks[i].number = i;
    }
    REQUIRE(ptowsp_context_create(&desc, &context) == PTOWSP_OK);
    REQUIRE(ptowsp_graph_create(context, NULL, &graph) == PTOWSP_OK);
    build(m, graph, tasks);
    ptowsp_status status = ptowsp_graph_run(graph);
    if (m->has_cycle) {
        REQUIRE(status == PTOWSP_INVALID_PARAMS && m->clock == 0);
        REQUIRE(strstr(ptowsp_context_error(context).text, "cycle") != NULL);
    } else {
        uint64_t first = PTOWSP_NO_INDEX;
        for (uint32_t i = m->task_count; i-- > 0;) {
            first = m->cause[i] == i ? i : first;
        }
        REQUIRE(first == PTOWSP_NO_INDEX ? status == PTOWSP_OK
                                         : status == (ptowsp_status)(FAILED - (int)first));
        REQUIRE(first == PTOWSP_NO_INDEX || ptowsp_context_error(context).index == first);
        require_statuses(m, graph);
    }
    ptowsp_graph_destroy(graph);
    ptowsp_context_destroy(context);
    memset(m->runs, 0, sizeof m->runs);
    m->clock = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static model m;
    bytes in = {data, size};
    take_model(&m, &in);
    work_out(&m);
    run(&m, 1);
    run(&m, 3);
    return 0;
}
