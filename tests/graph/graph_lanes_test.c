// Which lane does what: priorities, units, and lanes that share or do not as tasks change length.

#include "src/graph/graph_state.h"
#include "graph_fixture.h"

// -- priorities -----------------------------------------------------------------------------------

typedef struct sequence {
    uint32_t count;
    uint64_t tasks[64];
} sequence;

static ptowsp_status note(void *user, uint64_t task, uint32_t lane) {
    sequence *s = (sequence *)user;
    (void)lane;
    s->tasks[s->count++] = task;
    return PTOWSP_OK;
}

GRAPH_TEST_ON(0, graph_lanes__of_ready_tasks_the_one_with_the_highest_priority_is_next) {
    sequence s = {0};
    // Task 0 is before 1 to 6; 3 is before 7.
    static const uint32_t priorities[] = {0, 1, 0, 3, 1, 2, 0, 2};
    for (uint32_t i = 0; i < 8; i++) {
        graph_alike(graph,
                    (ptowsp_graph_task_desc){.fn = note, .user = &s, .priority = priorities[i]}, 1);
    }
    graph_fan(graph, 7);
    assert_ok(ptowsp_graph_edge_make(graph, 3, 7));
    for (int run = 0; run < 2; run++) {
        static const uint64_t wanted[] = {0, 3, 5, 7, 1, 4, 2, 6};
        s.count = 0;
        assert_ok(ptowsp_graph_run(graph));
        assert_int_equal(s.count, 8);
        for (int i = 0; i < 8; i++) {  // which one of the same priority is first is not defined
            assert_int_equal(priorities[s.tasks[i]], priorities[wanted[i]]);
        }
    }
}

// -- units ----------------------------------------------------------------------------------------

// Leaves the processor to other lanes.
static void pause_us(uint64_t us) {
    for (uint64_t end = ptowsp_clock_ns() + us * 1000; ptowsp_clock_ns() < end;) {
        sched_yield();
    }
}

static ptowsp_status note_lane(void *user, uint64_t task, uint32_t lane) {
    ((uint32_t *)user)[task] = lane;
    if (task == 0) {
        pause_us(1000);  // until the other lanes are there
    }
    return PTOWSP_OK;
}

enum { PATIENCE_S = 30 };

// Whether to try once more: a machine that is busy may keep a lane away for many runs.
static bool is_worth_another_run(uint64_t start_ns) {
    return ptowsp_clock_ns() - start_ns < PATIENCE_S * UINT64_C(1000000000);
}

// Cube tasks have odd numbers here, and the last lanes.
static void unit_tasks(ptowsp_graph *graph, uint32_t *lanes, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        graph_alike(graph,
                    (ptowsp_graph_task_desc){.fn = note_lane,
                                             .user = lanes,
                                             .unit = i % 2 ? PTOWSP_UNIT_CUBE : PTOWSP_UNIT_VECTOR},
                    1);
    }
}

// Runs until each of the last has noted lane 2 if it is of a cube task, and else another one.
static void run_until_kept(ptowsp_graph *graph, const uint32_t *lanes, uint32_t count,
                           bool all_are_cubes) {
    bool is_kept = false;
    for (uint64_t start = ptowsp_clock_ns(); !is_kept && is_worth_another_run(start);) {
        assert_ok(ptowsp_graph_run(graph));
        is_kept = true;
        for (uint32_t i = 0; i < count; i++) {
            is_kept = is_kept && (lanes[i] == 2) == (all_are_cubes || i % 2 == 1);
        }
    }
    assert_true(is_kept);
}

// Task 0 takes long enough for all lanes to come; if that once was not so, others may have done the
// tasks of a unit whose lanes were late.
GRAPH_TEST_IN(lanes_context(1), 1,
              graph_lanes__tasks_of_a_unit_run_on_its_lanes_when_they_are_there) {
    uint32_t lanes[500];
    unit_tasks(graph, lanes, 500);
    graph_fan(graph, 500);
    run_until_kept(graph, lanes, 500, false);
}

// One after another, the last first; 7 are 2 of 3.
GRAPH_TEST_IN(lanes_context(2), 7,
              graph_lanes__lanes_of_a_unit_that_never_come_are_not_waited_for) {
    uint32_t lanes[50];
    unit_tasks(graph, lanes, 50);
    graph_chain(graph, 50);
    assert_ok(ptowsp_graph_run(graph));
    for (uint64_t i = 0; i < 50; i++) {
        assert_true(lanes[i] == 2);
    }
}

// Notes the lane of each item, which takes a while.
static ptowsp_status note_items(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    for (uint64_t i = begin; i < end; i++) {
        ((uint32_t *)user)[i] = lane;
    }
    pause_us(20);
    return PTOWSP_OK;
}

GRAPH_TEST_IN(lanes_context(1), 1, graph_lanes__ranges_of_a_unit_are_done_by_its_lanes) {
    uint32_t lane_0, lanes[100];
    unit_tasks(graph, &lane_0, 1);
    graph_alike(graph,
                (ptowsp_graph_task_desc){.range = note_items,
                                         .user = lanes,
                                         .item_count = 100,
                                         .unit = PTOWSP_UNIT_CUBE,
                                         .grain = 1},
                1);
    graph_chain(graph, 2);
    run_until_kept(graph, lanes, 100, true);
}

// -- lanes that have nothing to do ----------------------------------------------------------------

#ifndef PTOWSP_NO_THREADS

static ptowsp_status pause_range(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    (void)user, (void)lane;
    pause_us((end - begin) * 500);
    return PTOWSP_OK;
}

// Where one lane would rather run the short tasks alone. A machine that is busy may now and then
// wake a lane too late.
GRAPH_TEST_IN(test_lanes(4), 0, graph_lanes__all_help_with_a_range_beside_short_tasks) {
    graph_alike(graph,
                (ptowsp_graph_task_desc){.range = pause_range, .item_count = 100, .grain = 1}, 1);
    graph_alike(graph, (ptowsp_graph_task_desc){.fn = succeed}, 20000);
    int good_count = 0;
    for (int run = 0; run < 10; run++) {
        assert_ok(ptowsp_graph_run(graph));
        const ptowsp_graph_lane_stats *lanes = ptowsp_graph_lanes(graph);
        bool is_good = true;
        for (int i = 0; i < 4; i++) {
            is_good = is_good && lanes[i].range_count > 0;
        }
        good_count += is_good;
    }
    assert_true(good_count >= 5);
}

// Item 1 is the last that ends, on the lane that helps, and two tasks become ready there: the first by
// the order of edges waits for the other one, which has the higher priority, but not for ever.
typedef struct last_item {
    uint32_t begun_1, ended_0, begun_high;  // atomic
    bool is_first_late;
} last_item;

static void wait_for(const uint32_t *flag) {
    for (int i = 0; i < 20000 && !__atomic_load_n(flag, __ATOMIC_ACQUIRE); i++) {
        pause_us(50);
    }
}

static ptowsp_status end_last(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    last_item *l = (last_item *)user;
    (void)end, (void)lane;
    if (begin == 0) {
        wait_for(&l->begun_1);
        __atomic_store_n(&l->ended_0, 1, __ATOMIC_RELEASE);
    } else {
        __atomic_store_n(&l->begun_1, 1, __ATOMIC_RELEASE);
        wait_for(&l->ended_0);
        pause_us(5000);
    }
    return PTOWSP_OK;
}

static ptowsp_status begin_high(void *user, uint64_t task, uint32_t lane) {
    (void)task, (void)lane;
    __atomic_store_n(&((last_item *)user)->begun_high, 1, __ATOMIC_RELEASE);
    return PTOWSP_OK;
}

static ptowsp_status wait_for_high(void *user, uint64_t task, uint32_t lane) {
    last_item *l = (last_item *)user;
    (void)task, (void)lane;
    wait_for(&l->begun_high);
    l->is_first_late = __atomic_load_n(&l->begun_high, __ATOMIC_ACQUIRE) != 0;
    return PTOWSP_OK;
}

GRAPH_TEST_IN(test_lanes(2), 0, graph_lanes__a_lane_that_ends_a_range_takes_the_highest_priority) {
    last_item l;
    const ptowsp_graph_task_desc tasks[] = {
        {.range = end_last, .user = &l, .item_count = 2, .grain = 1},
        {.fn = wait_for_high, .user = &l},
        {.fn = begin_high, .user = &l, .priority = 3},
    };
    graph_tasks(graph, tasks, 3);
    graph_fan(graph, 3);
    for (int run = 0; run < 5; run++) {
        memset(&l, 0, sizeof l);
        assert_ok(ptowsp_graph_run(graph));
        assert_true(l.is_first_late);
    }
}

enum { LEVEL_COUNT = 20, LEVEL_TASKS = 5 };

typedef struct levels {
    uint32_t begun[LEVEL_COUNT];  // atomic
    uint32_t met_count;           // atomic: tasks that have seen all of their level
} levels;

// The first of a level takes a while; the other four then wait for each other, but not for ever.
static ptowsp_status meet(void *user, uint64_t task, uint32_t lane) {
    levels *l = (levels *)user;
    uint32_t *begun = &l->begun[task / LEVEL_TASKS];
    (void)lane;
    if (task % LEVEL_TASKS == 0) {
        pause_us(2000);
        return PTOWSP_OK;
    }
    __atomic_fetch_add(begun, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 1000 && __atomic_load_n(begun, __ATOMIC_RELAXED) < 4; i++) {
        pause_us(50);
    }
    if (__atomic_load_n(begun, __ATOMIC_RELAXED) == 4) {
        __atomic_fetch_add(&l->met_count, 1, __ATOMIC_RELAXED);
    }
    return PTOWSP_OK;
}

GRAPH_TEST_IN(test_lanes(4), 0, graph_lanes__all_lanes_wake_for_as_many_tasks) {
    levels l = {{0}, 0};
    graph_alike(graph, (ptowsp_graph_task_desc){.fn = meet, .user = &l}, LEVEL_COUNT * LEVEL_TASKS);
    for (uint64_t i = 0; i < LEVEL_COUNT; i++) {
        for (uint64_t k = 1; k < LEVEL_TASKS; k++) {
            uint64_t first = i * LEVEL_TASKS, next = first + LEVEL_TASKS;
            assert_ok(ptowsp_graph_edge_make(graph, first, first + k));
            if (i + 1 < LEVEL_COUNT) {
                assert_ok(ptowsp_graph_edge_make(graph, first + k, next));
            }
        }
    }
    assert_ok(ptowsp_graph_run(graph));
    assert_true(l.met_count > 4 * LEVEL_COUNT * 3 / 4);  // of a level that did not meet, one has
}

#endif

// -- tasks of changing length ---------------------------------------------------------------------

// Layers of so many tasks that lanes share, spill and go alone.
enum { PHASE_WIDTH = 1500, PHASE_COUNT = 20, PHASE_LAYERS = 4 };
enum { PHASE_TASKS = PHASE_WIDTH * PHASE_COUNT * PHASE_LAYERS };

typedef struct phases {
    uint32_t mode;  // of this run
    uint32_t *values;
} phases;

// Tasks of even phases are empty but for a sum, those of odd ones take some microseconds; in mode 1
// all are empty, and in mode 2 none is.
static ptowsp_status sum_phase(void *user, uint64_t task, uint32_t lane) {
    const phases *p = (const phases *)user;
    uint64_t layer = task / PHASE_WIDTH, at = task % PHASE_WIDTH;
    (void)lane;
    uint32_t sum = (uint32_t)task;
    if (layer > 0) {
        const uint32_t *before = p->values + (layer - 1) * PHASE_WIDTH;
        sum += 3 * before[at] + 5 * before[(at * 7 + layer) % PHASE_WIDTH];
    }
    bool is_long = p->mode == 2 || (p->mode == 0 && layer / PHASE_LAYERS % 2);
    for (volatile uint32_t i = 0; is_long && i < 300; i++) {
    }
    p->values[task] = sum;
    return PTOWSP_OK;
}

GRAPH_TEST(graph_lanes__tasks_that_become_long_and_short_again) {
    static uint32_t values[PHASE_TASKS], wanted_values[PHASE_TASKS];
    phases p = {0, values}, wanted = {1, wanted_values};
    graph_alike(graph, (ptowsp_graph_task_desc){.fn = sum_phase, .user = &p}, PHASE_TASKS);
    for (uint64_t i = 0; i < PHASE_TASKS; i++) {
        const uint64_t layer = i / PHASE_WIDTH, at = i % PHASE_WIDTH;
        const uint64_t before = (layer - 1) * PHASE_WIDTH;
        sum_phase(&wanted, i, 0);
        if (layer > 0) {
            ptowsp_graph_edge_make(graph, before + at, i);
            ptowsp_graph_edge_make(graph, before + (at * 7 + layer) % PHASE_WIDTH, i);
        }
    }
    for (int run = 0; run < 6; run++) {
        p.mode = (uint32_t)run % 3;
        memset(values, 0, sizeof values);
        assert_ok(ptowsp_graph_run(graph));
        assert_memory_equal(values, wanted_values, sizeof values);
    }
}

// A thousand tasks that take nothing, then twenty that take some microseconds, and so on.
static ptowsp_status count_phase(void *user, uint64_t task, uint32_t lane) {
    (void)lane;
    for (volatile uint32_t i = 0; task % 1020 >= 1000 && i < 2000; i++) {
    }
    ((uint8_t *)user)[task]++;
    return PTOWSP_OK;
}

// Lanes take many sources where tasks are short and give them back where they are long.
GRAPH_TEST(graph_lanes__sources_that_become_long_and_short_again) {
    enum { COUNT = 51000 };
    static uint8_t counts[COUNT];
    graph_alike(graph, (ptowsp_graph_task_desc){.fn = count_phase, .user = counts}, COUNT);
    for (int run = 0; run < 20; run++) {
        memset(counts, 0, COUNT);
        assert_ok(ptowsp_graph_run(graph));
        for (uint64_t i = 0; i < COUNT; i++) {
            assert_int_equal(counts[i], 1);
        }
    }
}

// Small graphs run again and again: with and without other lanes, as it is tried out.
SHAPE_TEST(graph_lanes__small_graphs_run_thousands_of_times, lanes_kind_count, 40) {
    for (uint64_t i = 1; i < 40; i++) {
        assert_ok(ptowsp_graph_edge_make(s->graph, (i - 1) / 3, i));
    }
    for (int i = 0; i < 20; i++) {
        shape_run(s, 100);
    }
    uint64_t count = 0;
    for (uint32_t i = 0; i < ptowsp_context_lane_count(s->context); i++) {
        count += ptowsp_graph_lanes(s->graph)[i].task_count;
    }
    assert_int_equal(count, 40);
}

// Breaks its contract: the lane that has run small graphs by itself does not come.
static void run_all_but_the_first(void *user, uint32_t lane_count, ptowsp_lane_fn lane, void *job) {
    (void)user;
    for (uint32_t i = 1; i < lane_count; i++) {
        lane(job, i);
    }
}

// More tasks become ready at once than a lane's ring holds, in graphs of a few microseconds.
TEST(graph_lanes__what_one_lane_has_begun_the_others_end) {
    static const ptowsp_run_lanes_fn run_lanes[] = {run_all_but_the_first,
                                                    test_run_lanes_backwards};
    for (size_t k = 0; k < 2; k++) {
        ptowsp_context_desc desc = {
            .threads = PTOWSP_THREADS_USER, .lane_count = 3, .run_lanes = run_lanes[k]};
        ptowsp_context *context = test_context(&desc);
        shape s = shape_make(context, 2000);
        for (uint64_t i = 1; i < 2000; i++) {
            assert_ok(ptowsp_graph_edge_make(s.graph, 0, i));
        }
        for (uint32_t run = 1; run < 100; run++) {
            ptowsp_status status = ptowsp_graph_run(s.graph);
            assert_true((status == PTOWSP_OK && (k == 1 || run > 1)) ||
                        (k == 0 && status == PTOWSP_SYSTEM_FAILED));  // of the first run it is told
            for (uint64_t i = 0; i < 2000; i++) {
                assert_int_equal(s.runs[i], run);
            }
        }
        shape_destroy(&s);
    }
}

// Tasks count as long at first, so a lane offers all that it has: 299 of the 300 after task 0. The first
// of these has another 300 after it, of which 213 fill the ring of 512; the others go to the list.
SHAPE_TEST(graph_lanes__a_ring_that_is_full_leaves_the_others_to_the_list, lanes_kind_count, 601) {
    for (uint64_t i = 1; i <= 600; i++) {
        assert_ok(ptowsp_graph_edge_make(s->graph, i > 300, i));
    }
    for (int run = 0; run < 3; run++) {
        shape_run(s, 1);
    }
}

// Of 512 tasks 300 are on offer, and thieves have taken 150, 75 and 38: the ring has room for 263 more, and not
// for the next.
TEST(graph_lanes__a_ring_that_thieves_have_emptied_takes_as_many) {
    shape s = shape_make(lanes_context(1), 800);
    shape_run(&s, 1);
    pwsp_engine *engine = &s.graph->engine;
    pwsp_engine_begin(engine, PWSP_READY_BY_NEWEST, 1, 0);
    pwsp_engine_lane *lane = pwsp_engine_at(engine, 0);
    uint32_t stolen[PWSP_DEQUE_STEAL_MAX];
    for (uint32_t i = 0; i < 512; i++) {
        pwsp_engine_push(engine, lane, i);
    }
    pwsp_engine_offer(engine, lane, 300);
    assert_false(pwsp_deque_has_room(&lane->deque));
    assert_int_equal(pwsp_deque_steal(&lane->deque, PWSP_DEQUE_STEAL_MAX, stolen), 150);
    assert_int_equal(pwsp_deque_steal(&lane->deque, PWSP_DEQUE_STEAL_MAX, stolen), 75);
    assert_int_equal(pwsp_deque_steal(&lane->deque, PWSP_DEQUE_STEAL_MAX, stolen), 38);
    assert_int_equal(stolen[37], 262);
    for (uint32_t i = 512; i < 775; i++) {
        pwsp_engine_push(engine, lane, i);
        assert_int_equal(lane->excess_count, 0);
    }
    pwsp_engine_push(engine, lane, 775);
    pwsp_engine_push(engine, lane, 776);
    assert_int_equal(lane->excess_count, 2);
    for (uint32_t i = 775; i-- > 263;) {  // the newest first; the 37 that are left on offer, last
        assert_int_equal(pwsp_engine_own(engine, lane, 1), i);
    }
    assert_int_equal(pwsp_engine_own(engine, lane, 1), 775);
    assert_int_equal(pwsp_engine_own(engine, lane, 1), 776);
    assert_int_equal(pwsp_engine_own(engine, lane, 1), PWSP_ENGINE_NONE);
    shape_run(&s, 2);
    shape_destroy(&s);
}
