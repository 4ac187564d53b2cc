// The library's threads in every order, up to a number of delays, and in random ones, in which stores
// may be seen late: see explore.h. Pools, graphs, runs on lanes, started and cancelled runs, attention
// plans, devices, ranks. Each order ends, with the right result, with nothing left in memory.
//
// PTOWSP_SCALE makes more of the random orders, EXPLORE_ORDERS of the others. The failure of an order
// has its delays, or its seed.
//
// Faults that were put into ptowsp.c to see whether they are found:
//
//      pool     a worker enters the gate by load and store; looks before it counts as asleep; the last
//               one does not wake the caller; the caller looks before it is asleep; the gate changes
//               without waking, or wakes one
//      graph    counters, sources, the deque (stealing, taking back), items of ranges by load and
//               store; the last report wakes nobody; tasks that are left to a parent by load and
//               store, added ones that do not count as remaining, failures that the parent is not told
//      lanes    waiters closed without exchange, put without CAS; counters and freed links by load
//               and store; a done task does not wake the walk, the end does not wake lanes; the walk
//               sleeps with tasks that it has not offered
//      start    asking and ending without waking; looking before being asleep
//      hub      bytes that are not told; a peer's end read behind its bytes
//      late     release order instead of sequential consistency: where a sleeper says that it sleeps,
//               the gate, the end of a run on lanes, asking and ending, the closing of a device
//
// Found are all of these, by 1 to 3 delays or by random orders (late: PTOWSP_SCALE=300). Not found, as
// nothing goes wrong: offers and ready tasks that wake nobody (whoever has them does them); offering by
// a plain store, as a lane offers only when nothing is on offer; counting what is left to a parent only
// when all of it is in the ring, as none is offered before; and release order of blocks, ranges and
// sources of graphs, whose owner does what others do not see, and of a device's queues, behind which a
// lock is left. Not found either are a sleeper that takes a call for those that slept before it, which
// tests/models/graph_sleep.pml finds, and release order of a device's `is_over`.

#define PTOWSP_NO_TILES
#define PTOWSP_STATIC  // what is not called is not compiled
// Kernels are known soon.
#define PWSP_PACE_KNOWN    2u
#define PWSP_PACE_HOLD_MIN 4u
#include "explore.h"

#include "ptowsp.c"
// What the library has as its names.
#include "test.h"

#define EXPLORE_OK(call) EXPLORE_CHECK((call) == PTOWSP_OK)

// -- contexts -------------------------------------------------------------------------------------

static size_t live_blocks;  // of the library

static void *count_blocks(void *user, void *ptr, size_t old_size, size_t new_size) {
    (void)user;
    live_blocks += !ptr && new_size;
    live_blocks -= ptr && !new_size;
    explore_free(ptr, old_size);
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

static ptowsp_context *lanes(uint32_t count) {
    const ptowsp_context_desc desc = {
        .resize = count_blocks, .threads = PTOWSP_THREADS_OWN, .lane_count = count};
    ptowsp_context *context;
    live_blocks = 0;
    EXPLORE_OK(ptowsp_context_create(&desc, &context));
    return context;
}

static void lanes_end(ptowsp_context *context) {
    ptowsp_context_destroy(context);
    EXPLORE_CHECK(live_blocks == 0);
}

// Something that takes a few points.
static void work(uint32_t points) {
    for (uint32_t i = 0; i < points; i++) {
        explore_point("work", false);
    }
}

// -- pools ----------------------------------------------------------------------------------------

static uint32_t counts[8];

static void count_items(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    (void)user;
    (void)lane;
    for (uint64_t i = begin; i < end; i++) {
        counts[i]++;
        work(1);
    }
}

static void pool_of(uint32_t lane_count) {
    ptowsp_context *context = lanes(lane_count);
    for (uint32_t job = 1; job <= 2; job++) {
        memset(counts, 0, sizeof counts);
        EXPLORE_OK(ptowsp_parallel_for(context, 3, 1, count_items, NULL));
        EXPLORE_CHECK(counts[0] == 1 && counts[1] == 1 && counts[2] == 1 && counts[3] == 0);
    }
    lanes_end(context);
}

static void pool_of_two(void) {
    pool_of(2);
}

static void pool_of_three(void) {
    pool_of(3);
}

// -- graphs ---------------------------------------------------------------------------------------

typedef struct drawn {
    ptowsp_graph *graph;
    uint32_t ended[10];  // by task: its place among those that have ended, from 1
    uint32_t end_count;
    uint64_t fails;  // the task that does
    bool is_cancelled;
} drawn;

static drawn on_graph;

static ptowsp_status draw(void *user, uint64_t task, uint32_t lane) {
    drawn *d = (drawn *)user;
    (void)lane;
    work(3);
    EXPLORE_CHECK(d->ended[task] == 0);
    d->ended[task] = ++d->end_count;
    if (d->is_cancelled && task == 1) {
        ptowsp_graph_cancel(d->graph);
    }
    return task == d->fails ? PTOWSP_INVALID_PARAMS : PTOWSP_OK;
}

static ptowsp_status draw_range(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    count_items(user, begin, end, lane);
    return PTOWSP_OK;
}

// 0 -> 1, 2, 3 -> 4 (a range of 3) -> 5; 6 alone. All lanes take part, as spans are recorded.
static void graph_make(ptowsp_context *context, ptowsp_span *spans) {
    static const uint64_t edges[][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 4}, {2, 4}, {3, 4}, {4, 5}};
    EXPLORE_OK(ptowsp_graph_create(context, NULL, &on_graph.graph));
    for (uint64_t i = 0; i < 7; i++) {
        const ptowsp_graph_task_desc plain = {.fn = draw, .user = &on_graph};
        const ptowsp_graph_task_desc range = {
            .range = draw_range, .item_count = 3, .grain = 1, .user = NULL};
        EXPLORE_CHECK(ptowsp_graph_task_make(on_graph.graph, i == 4 ? &range : &plain, NULL) ==
                      PTOWSP_OK);
    }
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++) {
        EXPLORE_OK(ptowsp_graph_edge_make(on_graph.graph, edges[i][0], edges[i][1]));
    }
    EXPLORE_CHECK(!spans || ptowsp_graph_record(on_graph.graph, spans, 7) == PTOWSP_OK);
}

static void graph_clean(void) {
    memset(counts, 0, sizeof counts);
    memset(on_graph.ended, 0, sizeof on_graph.ended);
    on_graph.end_count = 0;
    on_graph.fails = UINT64_MAX;
    on_graph.is_cancelled = false;
}

static void graph_check(void) {
    const uint32_t *ended = on_graph.ended;
    EXPLORE_CHECK(on_graph.end_count == 6 && ended[0] && ended[6]);
    EXPLORE_CHECK(ended[0] < ended[1] && ended[0] < ended[2] && ended[0] < ended[3]);
    EXPLORE_CHECK(ended[5] > ended[1] && ended[5] > ended[2] && ended[5] > ended[3]);
    EXPLORE_CHECK(counts[0] == 1 && counts[1] == 1 && counts[2] == 1);
}

static void graph_twice(void) {
    ptowsp_span spans[7];
    ptowsp_context *context = lanes(2);
    graph_make(context, spans);
    for (uint32_t i = 0; i < 2; i++) {
        graph_clean();
        EXPLORE_OK(ptowsp_graph_run(on_graph.graph));
        graph_check();
    }
    ptowsp_graph_destroy(on_graph.graph);
    lanes_end(context);
}

// Two runs that do not end well, and one that does.
static void graph_fails(void) {
    ptowsp_span spans[7];
    ptowsp_context *context = lanes(3);
    graph_make(context, spans);
    graph_clean();
    on_graph.fails = 2;
    EXPLORE_CHECK(ptowsp_graph_run(on_graph.graph) == PTOWSP_INVALID_PARAMS);
    EXPLORE_CHECK(ptowsp_context_error(context).index == 2);
    EXPLORE_CHECK(on_graph.ended[1] && on_graph.ended[3] && on_graph.ended[6] &&
                  !on_graph.ended[5] && counts[0] == 0);
    graph_clean();
    on_graph.is_cancelled = true;
    EXPLORE_CHECK(ptowsp_graph_run(on_graph.graph) == PTOWSP_CANCELLED);
    EXPLORE_CHECK(!on_graph.ended[5]);
    graph_clean();
    EXPLORE_OK(ptowsp_graph_start(on_graph.graph));
    ptowsp_status status = ptowsp_graph_poll(on_graph.graph);
    EXPLORE_CHECK(status == PTOWSP_BUSY || status == PTOWSP_OK);
    if (status == PTOWSP_BUSY) {
        EXPLORE_OK(ptowsp_graph_wait(on_graph.graph));
    }
    graph_check();
    ptowsp_graph_destroy(on_graph.graph);
    lanes_end(context);
}

// Eight tasks that one lane makes ready at once, and offers to the others.
static void graph_wide(void) {
    ptowsp_span spans[10];
    ptowsp_context *context = lanes(3);
    const ptowsp_graph_task_desc task = {.fn = draw, .user = &on_graph};
    EXPLORE_OK(ptowsp_graph_create(context, NULL, &on_graph.graph));
    for (uint64_t i = 0; i < 10; i++) {
        EXPLORE_OK(ptowsp_graph_task_make(on_graph.graph, &task, NULL));
        if (i > 0) {
            EXPLORE_OK(ptowsp_graph_edge_make(on_graph.graph, i < 9 ? 0 : 8, i));
        }
    }
    EXPLORE_OK(ptowsp_graph_record(on_graph.graph, spans, 10));
    graph_clean();
    EXPLORE_OK(ptowsp_graph_run(on_graph.graph));
    EXPLORE_CHECK(on_graph.end_count == 10 && on_graph.ended[8] < on_graph.ended[9]);
    ptowsp_graph_destroy(on_graph.graph);
    lanes_end(context);
}

// Six tasks of two units and three priorities, between the first and the last one: all stand in queues, from
// which the lanes of their unit take, or all lanes as long as none of these has come.
static void graph_ranked(void) {
    ptowsp_context *context = lanes(2);
    const ptowsp_graph_desc desc = {.cube_lane_count = 1};
    EXPLORE_OK(ptowsp_graph_create(context, &desc, &on_graph.graph));
    for (uint64_t i = 0; i < 8; i++) {
        const ptowsp_graph_task_desc task = {.fn = draw,
                                             .user = &on_graph,
                                             .unit = i % 2 ? PTOWSP_UNIT_CUBE : PTOWSP_UNIT_VECTOR,
                                             .priority = (uint32_t)i % 3};
        EXPLORE_OK(ptowsp_graph_task_make(on_graph.graph, &task, NULL));
        for (uint64_t from = i == 7 ? 1 : 0; i > 0 && from < (i == 7 ? 7u : 1u); from++) {
            EXPLORE_OK(ptowsp_graph_edge_make(on_graph.graph, from, i));
        }
    }
    graph_clean();
    EXPLORE_OK(ptowsp_graph_run(on_graph.graph));
    EXPLORE_CHECK(on_graph.end_count == 8 && on_graph.ended[0] == 1 && on_graph.ended[7] == 8);
    ptowsp_graph_destroy(on_graph.graph);
    lanes_end(context);
}

// Task 0 adds three tasks, two before the third, of which the first adds two: one may fail. Task 1 comes
// after task 0, and so after all of these, which have numbers from 2 on.
static ptowsp_status draw_and_add(void *user, uint64_t task, uint32_t lane) {
    static const uint32_t meet[][2] = {{0, 2}, {1, 2}};
    drawn *d = (drawn *)user;
    (void)lane;
    work(2);
    const ptowsp_graph_task_desc more = {.fn = draw_and_add, .user = d};
    const ptowsp_graph_task_desc plain = {.fn = draw, .user = d};
    const ptowsp_graph_task_desc three[] = {more, plain, plain}, two[] = {plain, plain};
    const ptowsp_graph_part first = {three, 3, meet, 2}, second = {two, 2, NULL, 0};
    uint64_t number;
    EXPLORE_OK(ptowsp_graph_add(d->graph, task, task ? &second : &first, &number));
    EXPLORE_CHECK(number == (task ? 5 : 2));
    d->ended[task] = ++d->end_count;
    return PTOWSP_OK;
}

static void graph_grows(void) {
    ptowsp_context *context = lanes(2);
    const ptowsp_graph_desc desc = {.added_task_max = 5, .added_edge_max = 2};
    const ptowsp_graph_task_desc adds = {.fn = draw_and_add, .user = &on_graph};
    const ptowsp_graph_task_desc plain = {.fn = draw, .user = &on_graph};
    EXPLORE_OK(ptowsp_graph_create(context, &desc, &on_graph.graph));
    EXPLORE_OK(ptowsp_graph_task_make(on_graph.graph, &adds, NULL));
    EXPLORE_OK(ptowsp_graph_task_make(on_graph.graph, &plain, NULL));
    EXPLORE_OK(ptowsp_graph_edge_make(on_graph.graph, 0, 1));
    const uint32_t *ended = on_graph.ended;
    for (uint32_t run = 0; run < 2; run++) {
        graph_clean();
        on_graph.fails = run ? 6 : UINT64_MAX;
        ptowsp_status status = ptowsp_graph_run(on_graph.graph);
        EXPLORE_CHECK(status == (run ? PTOWSP_INVALID_PARAMS : PTOWSP_OK));
        EXPLORE_CHECK(ended[0] == 1 && ended[2] && ended[3] && ended[5] > ended[2]);
        EXPLORE_CHECK(ended[6] > ended[2]);
        if (run) {
            EXPLORE_CHECK(on_graph.end_count == 5 && !ended[1] && !ended[4]);
            EXPLORE_CHECK(ptowsp_context_error(context).index == 0);
        } else {
            EXPLORE_CHECK(on_graph.end_count == 7 && ended[1] == 7 && ended[4] == 6);
        }
    }
    ptowsp_graph_destroy(on_graph.graph);
    lanes_end(context);
}

// -- runs -----------------------------------------------------------------------------------------

// x[i] = i + 1 by tasks of their own; sum = x[0], then + x[1], ...; slot 0 is loaded from sum, and
// the last task is told it.
static int64_t cells[4];
static uint64_t told;
static bool is_slow, has_homes;

static ptowsp_cycles put(const ptowsp_task *task, void *user) {
    (void)user;
    work(2);
    *(int64_t *)task->tiles[0].data = ptowsp_task_axis(task, 0) + 1;
    return 5;
}

static ptowsp_cycles add(const ptowsp_task *task, void *user) {
    int64_t *sum = (int64_t *)task->tiles[1].data;
    (void)user;
    int64_t before = *sum;
    work(is_slow ? 20 : 2);
    *sum = before * 10 + *(const int64_t *)task->tiles[0].data;
    return 5;
}

static ptowsp_cycles tell(const ptowsp_task *task, void *user) {
    (void)user;
    told = ptowsp_task_scalar(task, 0);
    return 1;
}

typedef struct program {
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
    ptowsp_run *run;
} program;

// The module of a text on two lanes.
static void program_parse(program *p, const char *text, const ptowsp_parse_kernel *kernels,
                          uint32_t count) {
    const ptowsp_parse_desc attached = {.kernels = kernels, .kernel_count = count};
    p->context = lanes(2);
    EXPLORE_OK(ptowsp_module_parse(p->context, text, strlen(text), &attached, &p->m, NULL));
}

static void program_compile(program *p, const ptowsp_schedule *schedule, void *x) {
    const ptowsp_program_desc desc = {NULL, schedule};
    const ptowsp_buffer buffer = {.data = x};
    EXPLORE_OK(ptowsp_program_create(p->context, p->m, &desc, &p->program));
    EXPLORE_OK(ptowsp_run_create(p->context, p->program, &p->run));
    EXPLORE_OK(ptowsp_run_bind_tensor(p->run, "x", &buffer));
}

static void program_make(program *p, uint32_t window) {
    const ptowsp_parse_kernel kernels[] = {
        {.name = "put", .fn = put}, {.name = "add", .fn = add}, {.name = "tell", .fn = tell}};
    program_parse(p,
                  "module m slots 1\naxis rows 3\ntensor x i64 [4, 1] global\n"
                  "kernel put(axes 1, out out i64 1 x 1) vector\n"
                  "kernel add(axes 0, in in i64 1 x 1, inout sum i64 1 x 1) vector\n"
                  "kernel tell(axes 0, sum i64) vector\nworkload main\n"
                  "  parallel i in rows\n    task put(i) out = x at (i, 0)\n"
                  "  for_each i in rows\n    task add() in = x at (i, 0) sum = x at (3, 0)\n"
                  "  slot_load 0 = x at (3, 0) element (0, 0)\n  task tell() sum = slot_i64[0]\n",
                  kernels, 3);
    ptowsp_schedule schedule = {.lane_count = 2, .window = window};
    if (has_homes) {
        schedule.dispatch = PTOWSP_DISPATCH_AFFINITY;
        schedule.dispatch_key = ptowsp_u64(p->m, 1);
    }
    program_compile(p, &schedule, cells);
    memset(cells, 0, sizeof cells);
    told = 0;
    is_slow = false;
}

static void program_end(program *p) {
    test_destroy(p->run, p->program, p->m, NULL);
    lanes_end(p->context);
}

static void run_on_lanes(void) {
    const ptowsp_run_options options = {.lane_count = 2};
    program p;
    program_make(&p, 2);
    EXPLORE_OK(ptowsp_run_execute(p.run, &options));
    EXPLORE_CHECK(cells[3] == 123 && told == 123);
    EXPLORE_CHECK(ptowsp_run_result(p.run)->makespan_cycles == 5 + 5 + 15 + 1);
    program_end(&p);
}

// All tasks belong to lane 1, which may come late.
static void run_homed(void) {
    const ptowsp_run_options options = {.lane_count = 2};
    program p;
    has_homes = true;
    program_make(&p, 0);
    has_homes = false;
    EXPLORE_OK(ptowsp_run_execute(p.run, &options));
    EXPLORE_CHECK(cells[3] == 123 && told == 123);
    program_end(&p);
}

static void run_cancelled(void) {
    const ptowsp_run_options options = {.lane_count = 2};
    program p;
    program_make(&p, 0);
    is_slow = true;
    EXPLORE_OK(ptowsp_run_start(p.run, &options));
    ptowsp_status status = ptowsp_run_poll(p.run);
    ptowsp_run_cancel(p.run);
    status = status == PTOWSP_BUSY ? ptowsp_run_wait(p.run) : status;
    EXPLORE_CHECK(status == PTOWSP_CANCELLED || status == PTOWSP_OK);
    EXPLORE_CHECK(status != PTOWSP_OK || told == 123);
    memset(cells, 0, sizeof cells);
    told = 0;
    EXPLORE_OK(ptowsp_run_start(p.run, &options));
    EXPLORE_CHECK(ptowsp_run_wait(p.run) == PTOWSP_OK && told == 123);
    program_end(&p);
}

// Twice, row after row: 24 tasks that take some points, which go to lanes in blocks; then 24 that take none,
// which the walking lane keeps. The second kind adds up what the first has noted.
enum { PACED = 24 };

static int64_t paced[2 * PACED];
static bool paced_in_blocks, paced_kept;

static ptowsp_cycles paced_note(const ptowsp_task *task, void *user) {
    (void)user;
    work(2);
    int64_t *cell = (int64_t *)task->tiles[0].data;
    *cell = *cell * 10 + ptowsp_task_axis(task, 0) + 1;
    return 5;
}

static ptowsp_cycles paced_sum(const ptowsp_task *task, void *user) {
    (void)user;
    *(int64_t *)task->tiles[1].data += *(const int64_t *)task->tiles[0].data;
    return 2;
}

static void run_paced(void) {
    const ptowsp_run_options options = {.lane_count = 2};
    const ptowsp_parse_kernel kernels[] = {{.name = "note", .fn = paced_note},
                                           {.name = "sum", .fn = paced_sum}};
    program p;
    program_parse(&p,
                  "module m slots 1\naxis rows 2\naxis cols 24\ntensor x i64 [48, 1] global\n"
                  "kernel note(axes 1, inout out i64 1 x 1) vector\n"
                  "kernel sum(axes 0, in in i64 1 x 1, inout sum i64 1 x 1) vector\n"
                  "workload main\n  for_each i in rows\n    sequence\n"
                  "      parallel j in cols\n        task note(i) out = x at (j, 0)\n"
                  "      parallel k in cols\n"
                  "        task sum() in = x at (k, 0) sum = x at (k + 24, 0)\n",
                  kernels, 2);
    program_compile(&p, NULL, paced);
    memset(paced, 0, sizeof paced);
    EXPLORE_OK(ptowsp_run_execute(p.run, &options));
    for (int i = 0; i < PACED; i++) {
        EXPLORE_CHECK(paced[i] == 12 && paced[PACED + i] == 1 + 12);
    }
    paced_in_blocks |= p.run->front->record_tail > 0;
    paced_kept |= p.run->has_kept;
    program_end(&p);
}

// -- devices --------------------------------------------------------------------------------------

// Two cores and two schedulers run a graph, and again with a task that fails; then one
// scheduler a program.
static ptowsp_device *device_open(ptowsp_context *context, uint32_t schedulers, uint32_t vectors) {
    const ptowsp_device_desc desc = {.scheduler_count = schedulers, .vector_count = vectors};
    ptowsp_device *device;
    EXPLORE_OK(ptowsp_device_open(context, &desc, &device));
    return device;
}

static void device_graph(void) {
    ptowsp_context *context = lanes(1);
    ptowsp_device *device = device_open(context, 2, 2);
    graph_make(context, NULL);
    for (uint32_t run = 0; run < 2; run++) {
        graph_clean();
        on_graph.fails = run ? 2 : UINT64_MAX;
        ptowsp_status status = ptowsp_device_run_graph(device, on_graph.graph);
        EXPLORE_CHECK(status == (run ? PTOWSP_INVALID_PARAMS : PTOWSP_OK));
        if (run) {
            EXPLORE_CHECK(ptowsp_context_error(context).index == 2 && !on_graph.ended[5]);
        } else {
            graph_check();
        }
    }
    EXPLORE_OK(ptowsp_device_close(device));
    ptowsp_graph_destroy(on_graph.graph);
    lanes_end(context);
}

static void device_run(void) {
    program p;
    program_make(&p, 2);
    ptowsp_device *device = device_open(p.context, 1, 2);
    void *memory;
    EXPLORE_OK(ptowsp_device_alloc(device, "x", sizeof cells, &memory));
    EXPLORE_OK(ptowsp_device_copy_in(device, memory, cells, sizeof cells));
    const ptowsp_buffer buffer = {.data = memory};
    EXPLORE_OK(ptowsp_run_bind_tensor(p.run, "x", &buffer));
    EXPLORE_OK(ptowsp_device_run(device, p.run, NULL));
    EXPLORE_OK(ptowsp_device_copy_out(device, cells, memory, sizeof cells));
    EXPLORE_CHECK(cells[3] == 123 && told == 123);
    EXPLORE_OK(ptowsp_device_free(device, memory));
    EXPLORE_OK(ptowsp_device_close(device));
    program_end(&p);
}

// -- attention plans ------------------------------------------------------------------------------

// Token t has the value t, so the mean of n is (n - 1) / 2. Units and merges take some points.
static ptowsp_partial slot_states[16];
static float slot_sums[16], means[3];
static const ptowsp_attention_scratch scratch = {slot_states, slot_sums, 1, 1};

static void attend(const ptowsp_work *unit, uint32_t lane, void *user) {
    const float n = (float)ptowsp_work_kv_len(unit), end = (float)ptowsp_work_kv_end(unit);
    const uint32_t slot = ptowsp_work_slot(unit);
    (void)lane;
    (void)user;
    work(3);
    if (slot == PTOWSP_NO_SLOT) {
        means[ptowsp_work_request(unit)] = end - (n + 1) / 2;
    } else {
        slot_states[slot] = (ptowsp_partial){0, n};  // all scores are 0
        slot_sums[slot] = n * (end - (n + 1) / 2);
    }
}

static void merge_parts(const ptowsp_work *merged, uint32_t lane, void *user) {
    (void)lane;
    (void)user;
    work(1);
    ptowsp_attention_merge_row(&scratch, merged, 0, &means[ptowsp_work_request(merged)]);
}

static void attention_of(bool is_stealing) {
    static const int32_t lengths[] = {2501, 1001, 501};
    static uint64_t block[64];
    static uint32_t progress[256];
    const ptowsp_attention_batch batch = {lengths, NULL, 3};
    const ptowsp_attention_config config = {.kv_head_count = 1, .lane_count = 4};
    const ptowsp_work_fn table = attend;
    ptowsp_attention_sizes sizes;
    ptowsp_attention_plan plan;
    ptowsp_context *context = lanes(2);
    EXPLORE_OK(ptowsp_attention_size(&batch, &config, &sizes, NULL));
    EXPLORE_OK(ptowsp_attention_place(&sizes, block, sizeof block, &plan));
    EXPLORE_OK(ptowsp_attention_generate(&batch, &config, &plan, NULL));
    EXPLORE_CHECK(plan.unit_count == 6 && plan.merge_count == 2);
    EXPLORE_CHECK(ptowsp_attention_progress_size(&plan) <= 256);
    memset(progress, 0, sizeof progress);
    const ptowsp_attention_job job = {.plan = &plan,
                                      .table = &table,
                                      .table_count = 1,
                                      .merge = merge_parts,
                                      .progress = progress,
                                      .is_stealing = is_stealing};
    for (uint32_t run = 0; run < 2; run++) {
        memset(means, 0, sizeof means);
        EXPLORE_OK(ptowsp_attention_run(context, &job));
        EXPLORE_CHECK(means[0] == 1250 && means[1] == 500 && means[2] == 250);
        for (uint32_t i = 0; i < 256; i++) {
            EXPLORE_CHECK(progress[i] == 0);
        }
    }
    lanes_end(context);
}

static void attention_lists(void) {
    attention_of(false);
}

static void attention_stolen(void) {
    attention_of(true);
}

// -- ranks ----------------------------------------------------------------------------------------

// Three ranks, each a thread, sum vectors twice, through rings that a message fills; each ends when
// it has its sums.
enum { RANKS = 3 };
static ptowsp_hub *hub;

static void *rank_main(void *arg) {
    uint32_t rank = (uint32_t)(uintptr_t)arg;
    const ptowsp_context_desc serial = {.resize = count_blocks};
    const ptowsp_ranks_desc desc = {
        .rank = rank, .rank_count = RANKS, .transport = ptowsp_hub_transport(hub, rank)};
    ptowsp_collective sum = {.kind = PTOWSP_ALL_REDUCE,
                             .algorithm = PTOWSP_ALGORITHM_RING,
                             .dtype = PTOWSP_I32,
                             .members = RANKS,
                             .count = 4};
    int32_t data[4] = {1, 10, (int32_t)rank, 100};
    ptowsp_context *context;
    ptowsp_ranks *ranks;
    EXPLORE_OK(ptowsp_context_create(&serial, &context));
    EXPLORE_OK(ptowsp_ranks_create(context, &desc, &ranks));
    EXPLORE_OK(ptowsp_ranks_run(ranks, &sum, data, data));
    EXPLORE_CHECK(data[0] == 3 && data[1] == 30 && data[2] == 3 && data[3] == 300);
    sum.count = 3;
    sum.algorithm = PTOWSP_ALGORITHM_DOUBLING;
    EXPLORE_OK(ptowsp_ranks_run(ranks, &sum, data, data));
    EXPLORE_CHECK(data[0] == 9 && data[1] == 90 && data[2] == 9 && data[3] == 300);
    ptowsp_ranks_destroy(ranks);
    ptowsp_context_destroy(context);
    return NULL;
}

static void ranks_sum(void) {
    pthread_t threads[RANKS];
    ptowsp_context *context = lanes(1);
    const ptowsp_hub_desc desc = {.rank_count = RANKS, .ring_bytes = 64};
    EXPLORE_OK(ptowsp_hub_create(context, &desc, &hub));
    for (uintptr_t i = 0; i < RANKS; i++) {
        pthread_create(&threads[i], NULL, rank_main, (void *)i);
    }
    for (uint32_t i = 0; i < RANKS; i++) {
        pthread_join(threads[i], NULL);
    }
    ptowsp_hub_destroy(hub);
    lanes_end(context);
}

// -- tests ----------------------------------------------------------------------------------------

static void explored(const char *name, void (*scenario)(void), uint32_t delays) {
    const char *more = getenv("EXPLORE_ORDERS");
    uint64_t orders = more ? strtoull(more, NULL, 0) : 30000, tried = 0;
    uint64_t random = (uint64_t)test_rounds(3000);
    bool is_good = true;
    for (uint32_t i = 0; i <= delays && is_good; i++) {
        explore.order_count = explore.step_count = explore.most_steps = 0;
        explore.random = 0;
        explore.has_late = false;
        explore.delay_count = 0;
        is_good = explore_all(scenario, i, orders);
        tried = explore.order_count;
        print_message("%s: %llu orders with up to %u delays%s, at most %llu points\n", name,
                      (unsigned long long)tried, i, tried >= orders ? " (cut off)" : "",
                      (unsigned long long)explore.most_steps);
    }
    is_good = is_good && explore_some(scenario, test_seed(), random);
    if (!is_good) {
        for (uint32_t i = 0; i < explore.delay_count; i++) {
            print_error("delay at point %llu\n", (unsigned long long)explore.delays[i]);
        }
        fail_msg("%s: %s", name, explore.failure);
    }
}

#define EXPLORED(name, delays)                                                                     \
    TEST(explore__##name) {                                                                        \
        explored(#name, name, delays);                                                             \
    }

EXPLORED(pool_of_two, 3)
EXPLORED(pool_of_three, 2)
EXPLORED(graph_twice, 2)
EXPLORED(graph_fails, 1)
EXPLORED(graph_wide, 2)
EXPLORED(graph_ranked, 2)
EXPLORED(graph_grows, 2)
EXPLORED(ranks_sum, 2)
EXPLORED(run_on_lanes, 2)
EXPLORED(run_homed, 2)
EXPLORED(run_cancelled, 1)
EXPLORED(attention_lists, 2)
EXPLORED(attention_stolen, 2)
EXPLORED(device_graph, 1)
EXPLORED(device_run, 1)

TEST(explore__run_paced) {
    explored("run_paced", run_paced, 1);
    assert_true(paced_in_blocks && paced_kept);
}
