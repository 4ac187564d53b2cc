// Graphs: bad input, circles, failures, cancelling, calls at the wrong time, refused memory.

#include "src/graph/graph_state.h"
#include "graph_fixture.h"

static void add(ptowsp_graph *graph, uint32_t count, const char *name) {
    graph_alike(graph, (ptowsp_graph_task_desc){.fn = succeed, .name = name}, count);
}

// -- bad input ------------------------------------------------------------------------------------

GRAPH_TEST_ON(0, graph_faults__bad_tasks_are_refused) {
    const struct {
        ptowsp_graph_task_desc desc;
        const char *text;
    } rows[] = {
        {{.fn = succeed, .range = succeed_range}, "graph: task 1 has both fn and range"},
        {{.fn = succeed, .item_count = 1}, "graph: task 1 has items but no range"},
        {{.grain = 1}, "graph: task 1 has a grain but no range"},
        {{.name = ""}, "graph: task 1 has a bad name"},
        {{.name = "a\"b"}, "graph: task 1 has a bad name"},
        {{.priority = 4}, "graph: task 1 has a priority above PTOWSP_GRAPH_PRIORITY_MAX, 3: 4"},
        {{.unit = PTOWSP_UNIT_COUNT}, "graph: task 1 has an unknown unit: 3"},
    };
    test_invalid(context, ptowsp_graph_create(context, NULL, NULL), "graph: out_graph is NULL");
    uint64_t none = 7;
    assert_invalid(ptowsp_graph_task_make(graph, NULL, &none));
    assert_true(none == PTOWSP_NO_INDEX);
    test_error_is(context, PTOWSP_INVALID_PARAMS, 0, "graph: task 0: desc is NULL");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        ptowsp_graph_clear(graph);
        add(graph, 1, NULL);
        uint64_t task = 7;
        assert_invalid(ptowsp_graph_task_make(graph, &rows[i].desc, &task));
        assert_true(task == PTOWSP_NO_INDEX);
        test_error_is(context, PTOWSP_INVALID_PARAMS, 1, rows[i].text);
        // The error stays, whatever follows.
        ptowsp_graph_task_desc good = {.fn = succeed};
        assert_invalid(ptowsp_graph_task_make(graph, &good, &task));
        assert_invalid(ptowsp_graph_edge_make(graph, 0, 0));
        assert_invalid(ptowsp_graph_seal(graph));
        assert_invalid(ptowsp_graph_run(graph));
        assert_int_equal(ptowsp_graph_result(graph).task_count, 1);
    }
    ptowsp_graph_clear(graph);
    add(graph, 1, NULL);
    assert_ok(ptowsp_graph_run(graph));
    ptowsp_graph_destroy(NULL);
}

GRAPH_TEST_ON(0, graph_faults__bad_edges_are_refused) {
    static const struct {
        uint64_t before, after;
        const char *text;
    } rows[] = {
        {0, 3, "graph: edge 1 from task 0 to 3, of 3 tasks"},
        {3, 0, "graph: edge 1 from task 3 to 0, of 3 tasks"},
        {UINT64_C(0x100000000), 1, "graph: edge 1 from task 4294967296 to 1, of 3 tasks"},
        {PTOWSP_NO_INDEX, PTOWSP_NO_INDEX,
         "graph: edge 1 from task 18446744073709551615 to 18446744073709551615, of 3 tasks"},
        {2, 2, "graph: edge 1 leads from task 2 to itself"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        ptowsp_graph_clear(graph);
        add(graph, 3, NULL);
        assert_ok(ptowsp_graph_edge_make(graph, 0, 1));
        test_refused(context, ptowsp_graph_edge_make(graph, rows[i].before, rows[i].after),
                     PTOWSP_INVALID_PARAMS, 1, rows[i].text);
        assert_invalid(ptowsp_graph_run(graph));
    }
}

GRAPH_TEST_ON(0, graph_faults__circles_are_found_with_their_tasks) {
    // 0 -> 4 -> 2 -> 5 -> 4, and 5 -> 1, and 3 by itself.
    add(graph, 2, NULL);
    add(graph, 1, "mul");
    add(graph, 2, "add");
    add(graph, 1, NULL);
    static const uint64_t edges[][2] = {{0, 4}, {4, 2}, {2, 5}, {5, 4}, {5, 1}};
    graph_edges(graph, edges, 5);
    test_refused(context, ptowsp_graph_seal(graph), PTOWSP_INVALID_PARAMS, 2,
                 "graph: 3 tasks wait for each other in a cycle: "
                 "2 'mul' -> 5 -> 4 'add' -> 2 'mul'");
    assert_invalid(ptowsp_graph_run(graph));
    ptowsp_graph_clear(graph);
    add(graph, 2, NULL);
    assert_ok(ptowsp_graph_edge_make(graph, 1, 0));
    assert_ok(ptowsp_graph_seal(graph));
    assert_ok(ptowsp_graph_edge_make(graph, 0, 1));
    test_refused(context, ptowsp_graph_run(graph), PTOWSP_INVALID_PARAMS, 0,
                 "graph: 2 tasks wait for each other in a cycle: 0 -> 1 -> 0");
}

GRAPH_TEST_ON(0, graph_faults__a_circle_of_a_million_tasks_has_a_short_text) {
    add(graph, 1000000, NULL);
    graph_chain(graph, 1000000);
    assert_ok(ptowsp_graph_edge_make(graph, 999999, 0));
    assert_invalid(ptowsp_graph_seal(graph));
    ptowsp_error error = ptowsp_context_error(context);
    assert_int_equal(error.index, 0);
    const char *begin = "graph: 1000000 tasks wait for each other in a cycle: 0 -> 1 -> 2 -> 3";
    assert_memory_equal(error.text, begin, strlen(begin));
    assert_string_equal(error.text + strlen(error.text) - 7, " -> ...");
}

// Tasks 10 to 9 + count in a circle: their numbers take 2 bytes, and 4 between two. The text goes on while it
// has no more than 220 bytes: with 37 tasks it has 218, with 38 224.
GRAPH_TEST_ON(0, graph_faults__a_circle_is_named_whole_as_far_as_there_is_room) {
    for (uint64_t count = 37; count <= 40; count++) {
        char wanted[400];
        size_t length =
            (size_t)snprintf(wanted, sizeof wanted,
                             "graph: %u tasks wait for each other in a cycle:", (unsigned)count);
        ptowsp_graph_clear(graph);
        add(graph, (uint32_t)count + 10, NULL);
        for (uint64_t i = 0; i < count; i++) {
            assert_ok(ptowsp_graph_edge_make(graph, 10 + i, 10 + (i + 1) % count));
            if (i < 38) {
                length += (size_t)snprintf(wanted + length, sizeof wanted - length, "%s %u",
                                           i ? " ->" : "", (unsigned)(10 + i));
            }
        }
        snprintf(wanted + length, sizeof wanted - length, "%s", count > 38 ? " -> ..." : " -> 10");
        test_refused(context, ptowsp_graph_seal(graph), PTOWSP_INVALID_PARAMS, 10, wanted);
    }
}

// Of 2^32 - 1 tasks or edges only the counts are made: they would take 24 and 4 bytes each.
GRAPH_TEST_ON(0, graph_faults__more_tasks_or_edges_than_can_be_counted) {
    add(graph, 2, NULL);
    graph->task_count = UINT32_MAX;
    const ptowsp_graph_task_desc desc = {.fn = succeed};
    test_refused(context, ptowsp_graph_task_make(graph, &desc, NULL), PTOWSP_LIMIT_EXCEEDED,
                 UINT32_MAX, "graph: more than 4294967295 tasks");
    ptowsp_graph_clear(graph);
    add(graph, 2, NULL);
    graph->edge_count = UINT32_MAX;
    test_refused(context, ptowsp_graph_edge_make(graph, 0, 1), PTOWSP_LIMIT_EXCEEDED, UINT32_MAX,
                 "graph: more than 4294967295 edges");
    // An array that no address space holds is refused before memory is asked for.
    void *array = NULL;
    uint64_t capacity = 0;
    assert_false(pwsp_graph_resize(graph, &array, &capacity, UINT64_MAX / 16, 24));
    assert_true(!array && capacity == 0);
}

// -- failures and cancelling ----------------------------------------------------------------------

static ptowsp_status fail_if_told(void *user, uint64_t task, uint32_t lane) {
    (void)lane;
    return ((const ptowsp_status *)user)[task];
}

// Tasks 1 and 3 fail. 0 -> 1 -> 4 -> 6; 3 -> 4; 3 -> 5; 2 -> 7.
GRAPH_TEST(graph_faults__what_depends_on_a_failed_task_is_skipped_and_nothing_else) {
    static const uint64_t edges[][2] = {{0, 1}, {1, 4}, {4, 6}, {3, 4}, {3, 5}, {2, 7}};
    const uint64_t none = PTOWSP_NO_INDEX, causes[] = {none, 1, none, 3, 1, 3, 1, none};
    ptowsp_status told[8] = {0, PTOWSP_UNSUPPORTED, 0, PTOWSP_LIMIT_EXCEEDED, 0, 0, 0, 5};
    for (uint32_t i = 0; i < 8; i++) {
        graph_alike(graph,
                    (ptowsp_graph_task_desc){
                        .fn = fail_if_told, .user = told, .name = i == 1 ? "attend" : NULL},
                    1);
    }
    graph_edges(graph, edges, 6);
    for (int run = 0; run < 3; run++) {
        told[1] = PTOWSP_UNSUPPORTED;
        test_refused(context, ptowsp_graph_run(graph), PTOWSP_UNSUPPORTED, 1,
                     "graph: task 1 'attend' failed: UNSUPPORTED");
        for (uint64_t i = 0; i < 8; i++) {
            graph_task_is(graph, i,
                          causes[i] == none ? PTOWSP_OK
                          : causes[i] == i  ? told[i]
                                            : PTOWSP_SKIPPED,
                          causes[i]);
        }
        graph_counts(graph, 3, 2, 3);
        // The next run knows nothing of it.
        told[1] = PTOWSP_OK;
        test_refused(context, ptowsp_graph_run(graph), PTOWSP_LIMIT_EXCEEDED, 3,
                     "graph: task 3 failed: LIMIT_EXCEEDED");
        assert_ok(ptowsp_graph_task_status(graph, 1, NULL));
    }
}

typedef struct canceller {
    ptowsp_graph *graph;
    uint64_t at;
    uint32_t count;  // atomic: tasks that have run
} canceller;

static ptowsp_status cancel_at(void *user, uint64_t task, uint32_t lane) {
    canceller *c = (canceller *)user;
    (void)lane;
    __atomic_fetch_add(&c->count, 1, __ATOMIC_RELAXED);
    if (task == c->at) {
        ptowsp_graph_cancel(c->graph);
    }
    return PTOWSP_OK;
}

GRAPH_TEST(graph_faults__cancelling_inside_a_task_starts_nothing_more) {
    canceller c = {graph, 100, 0};
    graph_alike(graph, (ptowsp_graph_task_desc){.fn = cancel_at, .user = &c}, 1000);
    graph_chain(graph, 1000);
    ptowsp_graph_cancel(graph);  // nothing runs
    for (int run = 0; run < 3; run++) {
        c.count = 0;
        c.at = 100;
        test_refused(context, ptowsp_graph_run(graph), PTOWSP_CANCELLED, PTOWSP_NO_INDEX,
                     "graph: cancelled; 101 of 1000 tasks done");
        assert_int_equal(c.count, 101);
        for (uint64_t i = 0; i < 1000; i++) {
            graph_task_is(graph, i, i <= 100 ? PTOWSP_OK : PTOWSP_SKIPPED, PTOWSP_NO_INDEX);
        }
        c.at = 5000;
        assert_ok(ptowsp_graph_run(graph));
        assert_int_equal(c.count, 1101);
    }
}

static void *cancel_main(void *arg) {
    canceller *c = (canceller *)arg;
    while (__atomic_load_n(&c->count, __ATOMIC_RELAXED) < 1000) {
    }
    ptowsp_graph_cancel(c->graph);
    __atomic_store_n(&c->at, 1, __ATOMIC_RELAXED);
    return NULL;
}

// The last task of a long chain waits until it has been cancelled, if it comes that far.
static ptowsp_status count_up(void *user, uint64_t task, uint32_t lane) {
    canceller *c = (canceller *)user;
    (void)lane;
    __atomic_fetch_add(&c->count, 1, __ATOMIC_RELAXED);
    while (task == 99998 && !__atomic_load_n(&c->at, __ATOMIC_RELAXED)) {
    }
    return PTOWSP_OK;
}

GRAPH_TEST(graph_faults__another_thread_can_cancel) {
    canceller c = {graph, 0, 0};
    graph_alike(graph, (ptowsp_graph_task_desc){.fn = count_up, .user = &c}, 100000);
    graph_chain(graph, 100000);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, cancel_main, &c), 0);
    assert_int_equal(ptowsp_graph_run(graph), PTOWSP_CANCELLED);
    pthread_join(thread, NULL);
    graph_counts(graph, c.count, 0, 100000 - c.count);
}

// -- calls at the wrong time ----------------------------------------------------------------------

typedef struct meddler {
    ptowsp_context *context;
    ptowsp_graph *graph, *other;
} meddler;

static ptowsp_status meddle(void *user, uint64_t task, uint32_t lane) {
    meddler *m = (meddler *)user;
    (void)task, (void)lane;
    ptowsp_graph_task_desc desc = {.fn = meddle, .user = m};
    uint64_t added = 7;
    ptowsp_graph_clear(m->graph);
    bool is_busy =
        ptowsp_graph_task_make(m->graph, &desc, &added) == PTOWSP_BUSY &&
        added == PTOWSP_NO_INDEX && ptowsp_graph_edge_make(m->graph, 0, 1) == PTOWSP_BUSY &&
        ptowsp_graph_seal(m->graph) == PTOWSP_BUSY && ptowsp_graph_run(m->graph) == PTOWSP_BUSY &&
        ptowsp_graph_run(m->other) == PTOWSP_BUSY &&
        ptowsp_graph_record(m->graph, NULL, 0) == PTOWSP_BUSY &&
        ptowsp_graph_limit(m->graph, 1) == PTOWSP_BUSY &&
        ptowsp_graph_start(m->graph) == PTOWSP_BUSY && ptowsp_graph_wait(m->graph) == PTOWSP_BUSY &&
        ptowsp_graph_poll(m->graph) == PTOWSP_BUSY;
    return is_busy ? PTOWSP_OK : PTOWSP_UNSUPPORTED;
}

static void *run_too(void *arg) {
    meddler *m = (meddler *)arg;
    return ptowsp_graph_run(m->graph) == PTOWSP_BUSY ? m : NULL;
}

static ptowsp_status run_on_thread(void *user, uint64_t task, uint32_t lane) {
    (void)task, (void)lane;
    pthread_t thread;
    void *result = NULL;
    if (pthread_create(&thread, NULL, run_too, user) == 0) {
        pthread_join(thread, &result);
    }
    return result ? PTOWSP_OK : PTOWSP_UNSUPPORTED;
}

LANES_TEST(graph_faults__a_running_graph_is_busy) {
    meddler m = {context, graph_of(context), graph_of(context)};
    ptowsp_graph_task_desc desc = {.fn = meddle, .user = &m};
    for (uint64_t i = 0; i < 20; i++) {
        desc.fn = i % 2 ? run_on_thread : meddle;
        assert_ok(ptowsp_graph_task_make(m.graph, &desc, NULL));
    }
    assert_ok(ptowsp_graph_edge_make(m.graph, 0, 1));
    assert_ok(ptowsp_graph_run(m.graph));
    assert_int_equal(ptowsp_graph_result(m.graph).done_count, 20);
    ptowsp_graph_destroy(m.graph);
    ptowsp_graph_destroy(m.other);
}

GRAPH_TEST_ON(0, graph_faults__what_has_not_been_started_is_not_waited_for) {
    add(graph, 1, NULL);
    test_invalid(context, ptowsp_graph_poll(graph),
                 "graph: it has not been started, or has been waited for");
    assert_invalid(ptowsp_graph_edge_make(graph, 0, 0));
    assert_invalid(ptowsp_graph_start(graph));  // as seal says
    test_error_is(context, PTOWSP_INVALID_PARAMS, 0, "graph: edge 0 leads from task 0 to itself");
    assert_invalid(ptowsp_graph_wait(graph));
    ptowsp_graph_clear(graph);  // nor is the context busy
    add(graph, 1, NULL);
    assert_ok(ptowsp_graph_run(graph));
}

// -- memory ---------------------------------------------------------------------------------------

// Builds, seals and runs; the first status that is not OK.
static ptowsp_status build_and_run(ptowsp_context *context, ptowsp_graph **out_graph) {
    ptowsp_status status = ptowsp_graph_create(context, NULL, out_graph);
    for (uint64_t i = 0; i < 100 && !status; i++) {
        ptowsp_graph_task_desc desc = {.fn = succeed, .name = i % 3 ? NULL : "name"};
        desc.priority = i == 50;
        if (i % 9 == 8) {
            desc.fn = NULL;
            desc.range = succeed_range;
            desc.item_count = 3;
        }
        status = ptowsp_graph_task_make(*out_graph, &desc, NULL);
        status = !status && i > 1 ? ptowsp_graph_edge_make(*out_graph, i, i - 2) : status;
    }
    return status ? status : ptowsp_graph_run(*out_graph);
}

TEST(graph_faults__every_allocation_may_be_refused) {
    EACH_REFUSED(n, 14) {
        test_memory memory;
        ptowsp_graph *graph = NULL;
        ptowsp_context *context = test_counted(&memory);
        test_refuse(&memory, n);
        has_more = test_was_refused(&memory, build_and_run(context, &graph));
        if (has_more) {
            assert_int_equal(ptowsp_context_error(context).status, PTOWSP_OUT_OF_MEMORY);
        }
        if (has_more && graph) {  // sealing may be tried again; building after clearing
            ptowsp_graph_seal(graph);
            ptowsp_graph_clear(graph);
            add(graph, 1, NULL);
            assert_ok(ptowsp_graph_run(graph));
        }
        ptowsp_graph_destroy(graph);
        ptowsp_context_destroy(context);
        assert_int_equal(memory.live_bytes, 0);
        assert_int_equal(memory.live_blocks, 0);
    }
}

// A random graph of 100,000 tasks with two edges each, in a context that counts bytes.
TEST(graph_faults__running_allocates_nothing_and_a_task_takes_70_bytes) {
    for (int has_threads = 0; has_threads < 2; has_threads++) {
        test_memory memory = {0};
        ptowsp_context_desc desc = {.resize = test_resize, .resize_user = &memory};
        if (has_threads) {
            desc.threads = PTOWSP_THREADS_USER;
            desc.lane_count = 3;
            desc.run_lanes = test_run_lanes_on_threads;
        }
        ptowsp_context *context = test_context(&desc);
        uint64_t random = test_seed();
        ptowsp_graph *graph = graph_of(context);
        ptowsp_graph_result(graph);
        size_t before = memory.live_bytes;
        for (int round = 0; round < 2; round++) {
            size_t allocations = memory.allocations;
            ptowsp_graph_clear(graph);
            add(graph, 100000, NULL);
            for (int64_t i = 0; i < 100000; i++) {
                for (int k = 0; k < 2 && i > 0; k++) {
                    uint64_t from = (uint64_t)test_random_in(&random, i > 99 ? i - 99 : 0, i - 1);
                    assert_ok(ptowsp_graph_edge_make(graph, from, (uint64_t)i));
                }
            }
            assert_ok(ptowsp_graph_run(graph));
            assert_true(memory.live_bytes - before <= 70 * 100000);
            assert_true(ptowsp_graph_result(graph).memory_bytes <= memory.live_bytes);
            assert_true(ptowsp_graph_result(graph).memory_bytes >= memory.live_bytes - before);
            if (round > 0) {
                assert_int_equal(memory.allocations, allocations);  // built anew, all fits
            }
            allocations = memory.allocations;
            for (int run = 0; run < 5; run++) {
                assert_ok(ptowsp_graph_run(graph));
            }
            assert_int_equal(memory.allocations, allocations);
        }
        ptowsp_graph_destroy(graph);
        ptowsp_context_destroy(context);
        assert_int_equal(memory.live_bytes, 0);
    }
}

// Tasks in a row, each with an edge to it from the one before, in order or backwards.
static void edges_make(ptowsp_graph *graph, uint64_t task_count, bool is_backwards) {
    add(graph, (uint32_t)task_count, NULL);
    for (uint64_t i = 1; i < task_count; i++) {
        const uint64_t after = is_backwards ? task_count - i : i;
        assert_ok(ptowsp_graph_edge_make(graph, after - 1, after));
    }
    assert_ok(ptowsp_graph_run(graph));
}

// A graph that has had edges in any order, 4 bytes more each, and then more of them in order: the
// memory of the former does not grow.
GRAPH_TEST_ON(0, graph_faults__memory_of_unordered_edges_stays_as_it_was) {
    ptowsp_graph *fresh = graph_of(context);
    edges_make(graph, 20000, true);
    ptowsp_graph_clear(graph);
    edges_make(graph, 100000, false);
    edges_make(fresh, 100000, false);
    const size_t bytes = ptowsp_graph_result(graph).memory_bytes;
    const size_t fresh_bytes = ptowsp_graph_result(fresh).memory_bytes;
    assert_true(bytes > fresh_bytes && bytes <= fresh_bytes + 4 * 20000 * 9 / 8);
    ptowsp_graph_destroy(fresh);
}
