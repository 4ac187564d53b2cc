// Programs on lanes: who waits for whom in loops and streams, where tasks run, and what does not depend on lanes. Small
// programs on paper are in lanes.facts.

#include "lane_program.h"

// -- who waits for whom ---------------------------------------------------------------------------

#define LP_TEST(name, kind, lane_count)                                                            \
    TEST_MADE(name, lp, p, lp_begin(p, kind, lane_count), lp_end(p))

// Readers of readers: each round many read and one writes, and rounds overlap in flight.
LP_TEST(run_lanes__many_readers_and_one_writer_take_turns, LANE_OWN, 3) {
    enum { ROUNDS = 8, READERS = 12, EACH = READERS + 1 };
    lp_parse(p, "axis rounds 8\naxis readers 12\nworkload main\n  parallel r in rounds\n"
                "    task touch(1) tile = x of 2 x 2\n    parallel i in readers\n"
                "      task get(1) tile = x of 2 x 2\n");
    const ptowsp_schedule schedule = lp_schedule(PTOWSP_DEPENDENCIES_EXPLICIT);
    lp_compile(p, &schedule);
    for (uint64_t round = 0; round < 40; round++) {
        for (uint64_t i = 0; i < ROUNDS * EACH; i++) {
            p->is_slow[i] = (i * 7 + round) % 31 == 0;
        }
        lp_works(p, ROUNDS * EACH);
        for (uint64_t i = 0; i < ROUNDS * EACH; i++) {
            uint64_t writer = i - i % EACH, next = writer + EACH;
            assert_true(i == writer || lp_is_before(p, writer, i));
            assert_true(next >= ROUNDS * EACH || lp_is_before(p, i, next));
        }
        assert_int_equal(p->data[0], ROUNDS);
    }
}

LP_TEST(run_lanes__for_each_orders_its_iterations, LANE_OWN, 3) {
    lp_parse(p, "workload main\n  for_each i in batch\n    combine\n      task step(0)\n"
                "      task step(1)\n");
    lp_compile(p, NULL);
    assert_ok(ptowsp_run_bind_size(p->run, "batch", 50));
    for (uint64_t slow = 0; slow < 100; slow += 9) {
        p->is_slow[slow] = true;
        lp_works(p, 100);
        for (uint64_t i = 0; i + 2 < 100; i++) {
            uint64_t next = i - i % 2 + 2;
            assert_true(lp_is_before(p, i, next) && lp_is_before(p, i, next + 1));
        }
    }
}

// Tasks of one stream run one after another.
LP_TEST(run_lanes__streams_order_tasks, LANE_OWN, 3) {
    lp_parse(p, "axis n 30\nworkload main\n  parallel i in n\n    task step(i)\n");
    ptowsp_schedule schedule = lp_schedule(PTOWSP_DEPENDENCIES_EXPLICIT);
    schedule.stream_count = 3;
    schedule.stream_key = ptowsp_task_arg(p->m, 0);
    schedule.lane_count = 2;
    lp_compile(p, &schedule);
    for (uint64_t slow = 0; slow < 30; slow += 4) {
        p->is_slow[slow] = true;
        for (int round = 0; round < 3; round++) {
            lp_works(p, 30);
            for (uint64_t i = 0; i + 3 < 30; i++) {
                assert_true(lp_is_before(p, i, i + 3));
            }
        }
    }
}

// -- where tasks run ------------------------------------------------------------------------------

// Waits until so many tasks are here at once, or for a while.
static void meet(lp *p, const ptowsp_task *task) {
    (void)task;
    __atomic_fetch_add(&p->count, 1u, __ATOMIC_RELAXED);
    lane_await(&p->count, 2, LANE_PATIENCE_NS);
}

// A lane may be late, so not every time.
LP_TEST(run_lanes__independent_tasks_run_at_the_same_time, LANE_OWN, 2) {
    lp_parse(p, "workload main\n  combine\n    task touch(1) tile = x of 4 x 4\n"
                "    task touch(1) tile = x at (0, 4) of 4 x 4\n");
    lp_compile(p, NULL);
    p->inside = meet;
    bool have_met = false;
    for (int i = 0; i < 20 && !have_met; i++) {
        p->count = 0;
        lp_works(p, 2);
        have_met = p->watch.begins[0] < p->watch.ends[1] && p->watch.begins[1] < p->watch.ends[0];
        assert_true(!have_met || p->watch.lanes[0] != p->watch.lanes[1]);
    }
    assert_true(have_met);
}

// The first task of each key waits until all three lanes are there.
static void come(lp *p, const ptowsp_task *task) {
    if (task->index < 3) {
        __atomic_fetch_add(&p->count, 1u, __ATOMIC_RELAXED);
        lane_await(&p->count, 3, LANE_PATIENCE_NS);
    }
}

// The finalizer of SplitMix64.
static uint64_t mixed(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

// Mixed, the keys 0, 1 and 3 are 0, 1 and 2 modulo 3.
static void affinity_is(ptowsp_dispatch dispatch, uint32_t simulated) {
    enum { TASKS = 240 };
    lp p;
    bool is_hash = dispatch == PTOWSP_DISPATCH_HASH;
    int64_t keys[TASKS] = {0, 1, is_hash ? 3 : 2};
    for (int i = 3; i < TASKS; i++) {
        keys[i] = i * 5 % 7;
    }
    lp_begin(&p, LANE_OWN, 3);
    lp_parse(&p, "axis n 240\narray keys i64\nworkload main\n  parallel i in n\n"
                 "    task step(keys[i])\n");
    ptowsp_schedule schedule = lp_schedule(PTOWSP_DEPENDENCIES_EXPLICIT);
    schedule.dispatch = dispatch;
    schedule.dispatch_key = ptowsp_task_arg(p.m, 0);
    schedule.lane_count = simulated;
    lp_compile(&p, &schedule);
    assert_ok(ptowsp_run_bind_array(p.run, "keys", PTOWSP_I64, keys, TASKS));
    p.inside = come;
    bool is_exact = false;
    for (int round = 0; round < 20 && !is_exact; round++) {
        p.count = 0;
        lp_works(&p, TASKS);
        is_exact = true;
        for (uint64_t i = 0; i < TASKS; i++) {
            uint64_t key = is_hash ? mixed((uint64_t)keys[i]) : (uint64_t)keys[i];
            is_exact = is_exact && p.watch.lanes[i] == key % 3;
            const ptowsp_task_record *record = &ptowsp_run_records(p.run)[i];
            assert_int_equal(record->lane, key % simulated);  // in simulated time
        }
    }
    assert_true(is_exact);  // once all lanes had come
    lp_end(&p);
}

TEST(run_lanes__affinity_chooses_the_lane) {
    affinity_is(PTOWSP_DISPATCH_AFFINITY, 5);
    affinity_is(PTOWSP_DISPATCH_CUSTOM, 2);
    affinity_is(PTOWSP_DISPATCH_HASH, 4);
}

// -- tile kernels ---------------------------------------------------------------------------------

enum { TILES = 40, TILE = 32 };

typedef struct tiles {
    float x[TILES * TILE][TILE], y[TILES * TILE][TILE], sum[TILE][TILE];
} tiles;

#define SOFTEN                                                                                     \
    "tensor a f32 [1280, 32] global\ntensor b f32 [1280, 32] global\ntensor c f32 [32, 32] "       \
    "global\n"                                                                                     \
    "kernel soften(axes 0, in x f32 32 x 32, out y f32 32 x 32) vector, 17 instructions\n"         \
    "  %1 = parameter x\n  %2 = parameter y\n  %3 = rowmax %1 : f32 32 x 1\n"                      \
    "  %4 = sub %1, %3 : f32 32 x 32\n  %5 = exp %4 : f32 32 x 32\n"                               \
    "  %6 = rowsum %5 : f32 32 x 1\n  %7 = div %5, %6 : f32 32 x 32\n  store %2, %7\n"             \
    "kernel add(axes 0, in x f32 32 x 32, inout y f32 32 x 32) vector, 10 instructions\n"          \
    "  %1 = parameter x\n  %2 = parameter y\n  %3 = load %2 : f32 32 x 32\n"                       \
    "  %4 = add %3, %1 : f32 32 x 32\n  store %2, %4\nworkload main\n"

// y = softmax(x) of each tile, and the sum of all y.
static void tiles_compile(lp *p, tiles *data, bool in_pipeline) {
    lp_parse(p, in_pipeline ? SOFTEN
                    "  pipeline line\n    channel done depth 3 latency 0\n"
                    "    process first produces done\n      for_each i in batch\n"
                    "        task soften() x = a at (i * 32, 0) y = b at (i * 32, 0)\n"
                    "        send done(i)\n"
                    "    process second consumes done\n      consume t from done\n"
                    "        task add() x = b at (t * 32, 0) y = c\n"
                            : SOFTEN "  parallel i in batch\n"
                                     "    task soften() x = a at (i * 32, 0) y = b at (i * 32, 0)\n"
                                     "    task add() x = b at (i * 32, 0) y = c\n");
    lp_compile(p, NULL);
    assert_ok(ptowsp_run_bind_size(p->run, "batch", TILES));
    static const char *const names[] = {"a", "b", "c"};
    void *const memory[] = {data->x, data->y, data->sum};
    for (int i = 0; i < 3; i++) {
        test_bind(p->run, names[i], memory[i]);
    }
}

static void tiles_fill(tiles *data) {
    uint64_t random = 5;
    memset(data, 0, sizeof *data);
    for (int i = 0; i < TILES * TILE * TILE; i++) {
        data->x[i / TILE][i % TILE] = (float)test_random_in(&random, -4000, 4000) / 1000.0f;
    }
}

TEST(run_lanes__tile_kernels_give_the_same_bits) {
    static tiles data, expected;
    for (int in_pipeline = 0; in_pipeline < 2; in_pipeline++) {
        for (int kind = 0; kind < LANE_KIND_COUNT; kind++) {
            lp p;
            lp_begin(&p, (lane_kind)kind, 3);
            tiles_compile(&p, &data, in_pipeline);
            tiles_fill(&data);
            assert_ok(lp_execute(&p, 0));
            expected = data;
            ptowsp_run_stats stats = *ptowsp_run_result(p.run);
            assert_true(expected.sum[0][0] != 0 && stats.task_count == 2 * TILES);
            for (uint32_t lane_count = 2; lane_count <= 3; lane_count++) {
                for (int round = 0; round < 3; round++) {
                    tiles_fill(&data);
                    assert_ok(lp_execute(&p, lane_count));
                    assert_memory_equal(&data, &expected, sizeof data);
                    assert_true(ptowsp_run_result(p.run)->makespan_cycles == stats.makespan_cycles);
                }
            }
            lp_end(&p);
        }
    }
}

// -- many tasks -----------------------------------------------------------------------------------

// Two streams of tasks on two tiles, and tasks without tiles.
static size_t bytes_of(lp *p, int64_t count) {
    assert_ok(ptowsp_run_bind_size(p->run, "batch", count));
    assert_ok(test_execute(p->run, 2));
    assert_int_equal(ptowsp_run_result(p->run)->task_count, 2 * count);
    assert_true(ptowsp_run_result(p->run)->memory_bytes == p->memory.live_bytes - p->count);
    return ptowsp_run_result(p->run)->memory_bytes;
}

static ptowsp_cycles count_only(const ptowsp_task *task, void *user) {
    (void)user;
    if (task->tile_count > 0) {
        int32_t *element = (int32_t *)task->tiles[0].data;
        *element = (int32_t)((uint32_t)*element + 1);
    }
    return 1;
}

LP_TEST(run_lanes__memory_does_not_grow_with_the_number_of_tasks, LANE_OWN, 2) {
    enum { WINDOW = 64 };
    const int64_t many = LANE_IS_CHECKED ? 50000 : 1000000;
    p->count_fn = count_only;
    lp_parse(p, "kernel count(axes 1, inout tile i32 1 x 1) vector\nworkload main\n"
                "  parallel i in batch\n    task count(1) tile = x\n"
                "    task count(1) tile = x at (8, 8)\n");
    ptowsp_schedule schedule = lp_schedule(PTOWSP_DEPENDENCIES_HYBRID);
    schedule.window = WINDOW;
    size_t before = p->memory.live_bytes;
    lp_compile(p, &schedule);
    ptowsp_run_destroy(p->run);
    p->count = p->memory.live_bytes;  // all that is not the run's
    assert_true(p->count > before);
    assert_ok(ptowsp_run_create(p->context, p->program, &p->run));
    test_bind(p->run, "x", p->data);
    size_t few = bytes_of(p, 200000 / (LANE_IS_CHECKED ? 100 : 1));
    size_t bytes = bytes_of(p, many);
    // Each in flight less than 1 KB; 256 KB is what the map of regions and lists begin with.
    assert_true(few < WINDOW * 1024 + 256 * 1024);
    assert_true(bytes <= few + few / 4);  // how many wait at once is up to timing
    int64_t all = many + 200000 / (LANE_IS_CHECKED ? 100 : 1);
    assert_int_equal(p->data[0], all);
    assert_int_equal(p->data[8 * LP_SIDE + 8], all);
}

static ptowsp_cycles nothing(const ptowsp_task *task, void *user) {
    (void)task, (void)user;
    return 10;
}

// With three tiles, in a window that is full of them, beside what simulated time takes. Tasks that go in
// blocks have records, too: 1,024 of them, however many are in flight. On a busy machine tasks take long
// enough for these.
TEST(run_lanes__a_task_in_flight_takes_no_more_than_256_bytes) {
    enum { SIDE = 64, EDGE = 4, TASKS = SIDE * SIDE, RECORDS = 1024 };
    static float data[2][SIDE * EDGE * SIDE * EDGE];
#ifdef PTOWSP_NO_THREADS
    skip();
#endif
    ptowsp_context *context = test_lanes(2);
    static const char text[] =
        "module m\naxis side 64\ntensor x f32 [256, 256] global\ntensor y f32 [256, 256] global\n"
        "kernel k(axes 0, in a f32 4 x 4, in b f32 4 x 4, inout c f32 4 x 4) vector\n"
        "workload main\n  parallel i in side\n    parallel j in side\n"
        "      task k() a = x at (i * 4, j * 4) b = x at (i * 4, j * 4) c = y at (i * 4, j * 4)\n";
    const ptowsp_parse_kernel kernel = {.name = "k", .fn = nothing};
    const ptowsp_parse_desc attached = {.kernels = &kernel, .kernel_count = 1};
    ptowsp_module *m = NULL;
    ptowsp_program *program = NULL;
    ptowsp_run *run = test_run_text(context, text, &attached, NULL, &m, &program);
    size_t bytes[2];
    for (uint32_t lanes = 1; lanes <= 2; lanes++) {
        test_bind(run, "x", data[0]);
        test_bind(run, "y", data[1]);
        assert_ok(test_execute(run, lanes));
        bytes[lanes - 1] = ptowsp_run_result(run)->memory_bytes;
    }
    assert_true(bytes[1] > bytes[0]);
    assert_true(bytes[1] - bytes[0] <= (size_t)256 * (TASKS + RECORDS));
    test_destroy(run, program, m, context);
}

// -- tile kernels ---------------------------------------------------------------------------------

#define FOLD(at, n)                                                                                \
    "axis tiles 12\ntensor xs f32 [92, 64] global\ntensor ys f32 [92, 8] global\n"                 \
    "kernel fold(axes 0, in from f32 8 x 64, out to f32 8 x 8, n i64) vector, 19 instructions\n"   \
    "  %1 = parameter from\n  %2 = parameter to\n  %3 = scalar n : i64\n"                          \
    "  %4 = full 0 : f32 8 x 8\n  %5 = const 0\n  %6 = loop %5, %3, 8\n"                           \
    "    %7 = carry %4 : f32 8 x 8\n    %8 = slice %1 at (0, %6) : f32 8 x 8\n"                    \
    "    %9 = add %7, %8 : f32 8 x 8\n    next %7, %9\n  store %2, %7\nworkload main\n"            \
    "  for_each t in tiles\n    task fold() from = xs at (" at " * 8, 0) to = ys at (" at          \
    " * 8, 0) n = " n "\n"

// Sums n columns of 8 rows, eight at a time. Tasks have other numbers of rows, and other n, than the one
// before, or the same: in time alone they are counted once as long as they are the same.
TEST(run_lanes__tile_kernels_take_as_long_as_their_sizes_say) {
    enum { PIECES = 12, ROWS = 8, COLS = 64, LAST = 4 };  // the last tile has four rows
    // Backwards too, so that other sizes come in between.
    static const char *const ways[] = {FOLD("t", "24"),               // the same n
                                       FOLD("(11 - t)", "24"),        //
                                       FOLD("t", "8 * (1 + t % 5)"),  // another each time
                                       FOLD("(11 - t)", "8 * (1 + t / 2 % 5)")};  // two alike
    for (int way = 0; way < 4; way++) {
        lp p;
        static float x[PIECES * ROWS * COLS], y[PIECES * ROWS * 8];
        lp_begin(&p, LANE_OWN, 2);
        lp_parse(&p, ways[way]);
        lp_compile(&p, NULL);
        for (int i = 0; i < 2; i++) {
            test_bind(p.run, i ? "ys" : "xs", i ? y : x);
        }
        for (size_t i = 0; i < COUNT_OF(x); i++) {
            x[i] = 1;
        }
        uint64_t makespans[3];
        for (uint32_t mode = 0; mode < 3; mode++) {
            ptowsp_run_options options = {.mode =
                                              mode == 2 ? PTOWSP_RUN_TIME_ONLY : PTOWSP_RUN_EXECUTE,
                                          .lane_count = mode == 1 ? 2 : 1};
            memset(y, 0, sizeof y);
            test_ok(p.context, ptowsp_run_execute(p.run, &options));
            makespans[mode] = ptowsp_run_result(p.run)->makespan_cycles;
            assert_true(makespans[mode] == makespans[0] && makespans[0] > 0);
            for (int t = 0; t < PIECES && mode < 2; t++) {
                const int at = way % 2 ? PIECES - 1 - t : t;
                const float want = way < 2 ? 3 : (float)(1 + t / (way - 1) % 5);
                assert_true(y[at * ROWS * 8] == want && y[(at * ROWS + LAST - 1) * 8 + 7] == want);
            }
        }
        lp_end(&p);
    }
}
