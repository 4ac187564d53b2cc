// Corners where two parts of the library meet: arrays that kernels have broken, tensors in one buffer.

#include "src/exec/run.h"

#include "support/fixture.h"

static uint64_t call_count;  // of the kernel `count`

static ptowsp_cycles count_calls(const ptowsp_task *task, void *user) {
    (void)task, (void)user;
    call_count++;
    return 1;
}

static ptowsp_cycles spoil(const ptowsp_task *task, void *user) {
    (void)user;
    *(int64_t *)task->tiles[0].data = -5;
    return 1;
}

static void parse(fixture *f, const char *text) {
    const ptowsp_parse_kernel kernels[] = {{.name = "count", .fn = count_calls},
                                           {.name = "break", .fn = spoil}};
    const ptowsp_parse_desc attached = {.kernels = kernels, .kernel_count = 2};
    fixture_clear(f);
    test_ok(f->context,
            ptowsp_module_parse(f->context, text, strlen(text), &attached, &f->module, NULL));
}

// Compiles with a schedule; nothing is bound yet.
static void compile(fixture *f, const ptowsp_schedule *schedule) {
    const ptowsp_program_desc desc = {NULL, schedule};
    ptowsp_run_destroy(f->run);
    ptowsp_program_destroy(f->program);
    program_make(f, NULL, NULL, &desc);
    call_count = 0;
}

static ptowsp_status execute(fixture *f, ptowsp_run_mode mode, bool record_tasks) {
    const ptowsp_run_options options = {.mode = mode, .record_tasks = record_tasks};
    return ptowsp_run_execute(f->run, &options);
}

static void executes(fixture *f, ptowsp_run_mode mode) {
    assert_ok(execute(f, mode, false));
}

static ptowsp_schedule lanes(uint32_t lane_count) {
    ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN, .lane_count = lane_count};
    return schedule;
}

// -- bindings -------------------------------------------------------------------------------------

// A kernel writes lengths and row pointers, which is forbidden; it must not be a hang or a read
// outside of arrays.
TEST_F(run__arrays_that_a_kernel_has_broken_are_an_error) {
    for (uint32_t is_sparse = 0; is_sparse < 2; is_sparse++) {
        char text[400];
        snprintf(text, sizeof text,
                 "module m\naxis rows %s\ntensor x i64 [] global\n"
                 "kernel break(axes 0, out out i64 1 x 1) vector\nkernel count(axes 0) vector\n"
                 "workload main\n  task break() out = x\n  for_each i in rows[0]\n"
                 "    task count()\n",
                 is_sparse ? "sparse" : "ragged i64");
        parse(f, text);
        ptowsp_schedule schedule = lanes(1);
        schedule.dependencies = PTOWSP_DEPENDENCIES_STRUCTURE;
        compile(f, &schedule);
        int64_t indptr[2] = {0, 1};
        const int64_t indices[1] = {0};
        const ptowsp_csr csr = {PTOWSP_I64, indptr, indices, 1, 1};
        test_bind(f->run, "x", is_sparse ? &indptr[1] : &indptr[0]);
        assert_ok(is_sparse ? ptowsp_run_bind_csr(f->run, "rows", &csr)
                            : ptowsp_run_bind_lengths(f->run, "rows", PTOWSP_I64, indptr, 1));
        fixture_refused(f, execute(f, PTOWSP_RUN_EXECUTE, false), PTOWSP_INVALID_PARAMS,
                        "row 0 of axis rows was changed during the run, and is malformed now");
        assert_int_equal(call_count, 0);
    }
}

// Tensors in one buffer, in any order: those that share bytes wait for each other, the others do
// not. Groups by pairs of spans are the reference.
TEST_F(deps__groups_are_those_of_comparing_all_pairs) {
    uint64_t seed = test_seed();
    enum { COUNT = 24 };
    static char memory[4096];
    char text[4096] = "module m slots 24\n", *at = text + strlen(text);
    for (uint32_t i = 0; i < COUNT; i++) {
        at += sprintf(at, "tensor t%u u8 [?] global\n", i);
    }
    at += sprintf(at, "workload main\n");
    for (uint32_t i = 0; i < COUNT; i++) {
        at += sprintf(at, "  slot_load %u = t%u\n", i, i);
    }
    parse(f, text);
    compile(f, NULL);
    for (uint32_t round = 0; TEST_ROUNDS(round, 500); round++) {
        uint64_t low[COUNT + 1], high[COUNT + 1];
        uint32_t group[COUNT + 1];
        for (uint32_t i = 1; i <= COUNT; i++) {
            ptowsp_buffer buffer = {.data = memory + test_random_in(&seed, 0, 2000), .rank = 1};
            buffer.shape[0] = test_random_in(&seed, 0, 1 << test_random_in(&seed, 0, 9));
            char name[16];
            snprintf(name, sizeof name, "t%u", i - 1);
            assert_ok(ptowsp_run_bind_tensor(f->run, name, &buffer));
            low[i] = (uint64_t)(uintptr_t)buffer.data;
            high[i] = low[i] + (uint64_t)buffer.shape[0];
            group[i] = i;
        }
        for (uint32_t i = 1; i <= COUNT; i++) {
            for (uint32_t j = 1; j < i; j++) {
                bool is_empty = low[i] == high[i] || low[j] == high[j];
                uint32_t to = group[i] < group[j] ? group[i] : group[j];
                uint32_t from = group[i] + group[j] - to;
                for (uint32_t k = 1;
                     !is_empty && low[i] < high[j] && low[j] < high[i] && k <= COUNT; k++) {
                    group[k] = group[k] == from ? to : group[k];
                }
            }
        }
        pwsp_deps_begin(&f->run->time.sim.deps, &f->run->timed, f->run->bindings.tensors);
        for (uint32_t i = 1; i <= COUNT; i++) {
            uint32_t members = 0;
            for (uint32_t j = 1; j <= COUNT; j++) {
                members += group[j] == group[i];
            }
            assert_int_equal(f->run->time.sim.deps.tensors[i].group, group[i]);
            assert_int_equal(f->run->time.sim.deps.tensors[i].is_plain, members == 1);
        }
    }
}

// Three tensors, each in memory of its own or packed row by row into one: the same times, and (as
// the map of regions tells them apart by blocks of memory) in time that does not grow with the
// square.
static uint64_t layers_of(fixture *f, bool is_packed, ptowsp_cycles *out_makespan) {
    enum { ROWS = 16384, COLS = 16 };
    static int32_t memory[3 * ROWS * COLS];
    parse(f, "module m\naxis tiles 4096\ntensor q i32 [16384, 16] global\n"
             "tensor k i32 [16384, 16] global\ntensor v i32 [16384, 16] global\n"
             "kernel step(axes 0, in in i32 4 x 16, out out i32 4 x 16) vector, 10 cycles, "
             "time only\nworkload main\n  parallel t in tiles\n"
             "    task step() in = q at (t * 4, 0) out = k at (t * 4, 0)\n"
             "    task step() in = k at (t * 4, 0) out = v at (t * 4, 0)\n");
    const ptowsp_schedule schedule = lanes(7);
    compile(f, &schedule);
    for (int i = 0; i < 3; i++) {
        static const char names[3][2] = {"q", "k", "v"};
        ptowsp_buffer buffer = {.data = memory + (is_packed ? i * COLS : i * ROWS * COLS),
                                .strides[0] = is_packed ? 3 * COLS : COLS,
                                .strides[1] = 1};
        assert_ok(ptowsp_run_bind_tensor(f->run, names[i], &buffer));
    }
    executes(f, PTOWSP_RUN_TIME_ONLY);
    uint64_t begin = ptowsp_clock_ns();
    executes(f, PTOWSP_RUN_TIME_ONLY);
    uint64_t took = ptowsp_clock_ns() - begin;
    *out_makespan = ptowsp_run_result(f->run)->makespan_cycles;
    return took;
}

TEST_F(deps__packed_tensors_are_told_apart) {
    ptowsp_cycles apart, packed;
    uint64_t apart_ns = layers_of(f, false, &apart), packed_ns = layers_of(f, true, &packed);
    assert_true(apart == packed);
    // One list of all would take some thousand times as long as apart; blocks take about twice.
    print_message("8,192 tasks: %llu us apart, %llu us packed\n",
                  (unsigned long long)apart_ns / 1000, (unsigned long long)packed_ns / 1000);
}
