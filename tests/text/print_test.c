// What is printed, word by word: a module with tiers of attention, its program, schedules, the
// table of capabilities, and the results of a run. The texts below are written from what they
// should say.

#include "test.h"

typedef struct fixture {
    ptowsp_context *context;
    ptowsp_module *m;
    char text[16000];
    ptowsp_output_buffer buffer;
} fixture;

static void fixture_make(fixture *f, const char *name) {
    const ptowsp_module_desc desc = {name, 8};
    memset(f, 0, sizeof *f);
    assert_int_equal(ptowsp_context_create(NULL, &f->context), PTOWSP_OK);
    assert_int_equal(ptowsp_module_create(f->context, &desc, &f->m), PTOWSP_OK);
}

static void fixture_free(fixture *f) {
    ptowsp_module_destroy(f->m);
    ptowsp_context_destroy(f->context);
}

// A sink that empties the fixture's text.
static ptowsp_output sink(fixture *f) {
    f->buffer.data = f->text;
    f->buffer.size = sizeof f->text;
    return ptowsp_output_to_buffer(&f->buffer);
}

static ptowsp_cycles one_cycle(const ptowsp_task *task, void *user) {
    (void)task;
    (void)user;
    return 1;
}

// -- attention in tiers ---------------------------------------------------------------------------

static ptowsp_tensor tensor_make(ptowsp_module *m, const char *name, ptowsp_dtype dtype,
                                 uint32_t rank, int64_t b, int64_t c, int64_t d) {
    ptowsp_tensor_desc desc = {name,
                               dtype,
                               rank,
                               {PTOWSP_DYNAMIC, b, c, d, 0, 0, 0, 0},
                               rank == 4 ? PTOWSP_LOCATION_L2 : PTOWSP_LOCATION_GLOBAL};
    return ptowsp_tensor_make(m, &desc);
}

static const ptowsp_kernel_desc kernels[] = {
    {"short",
     2,
     {{"q", PTOWSP_IN, PTOWSP_F16, 1, 64},
      {"k", PTOWSP_IN, PTOWSP_F16, PTOWSP_DYNAMIC, 64},
      {"o", PTOWSP_OUT, PTOWSP_F16, 1, 64}},
     {{"scale", PTOWSP_TYPE_U64}, {"masked", PTOWSP_TYPE_BOOL}},
     PTOWSP_UNIT_VECTOR,
     one_cycle,
     one_cycle,
     0,
     NULL,
     {NULL, NULL, NULL, NULL},
     NULL,
     0},
    {"long",
     3,
     {{"q", PTOWSP_IN, PTOWSP_F16, 1, 64},
      {"k", PTOWSP_IN, PTOWSP_F16, 256, 64},
      {"p", PTOWSP_OUT, PTOWSP_F32, 1, 64}},
     {{NULL, PTOWSP_TYPE_NONE}},
     PTOWSP_UNIT_CUBE,
     NULL,
     NULL,
     900,
     NULL,
     {NULL, NULL, NULL, NULL},
     NULL,
     0},
    {"merge",
     2,
     {{"p", PTOWSP_IN, PTOWSP_F32, 2, 64}, {"o", PTOWSP_INOUT, PTOWSP_F16, 1, 64}},
     {{NULL, PTOWSP_TYPE_NONE}},
     PTOWSP_UNIT_MIX,
     one_cycle,
     NULL,
     20,
     NULL,
     {NULL, NULL, NULL, NULL},
     NULL,
     0},
    {"note",
     1,
     {{NULL, PTOWSP_DIRECTION_NONE, PTOWSP_DTYPE_NONE, 0, 0}},
     {{NULL, PTOWSP_TYPE_NONE}},
     PTOWSP_UNIT_VECTOR,
     one_cycle,
     NULL,
     0,
     NULL,
     {NULL, NULL, NULL, NULL},
     NULL,
     0}};

typedef struct attention {
    ptowsp_axis batch, heads, chunks, kv, pages;
    ptowsp_tensor q, k, part, out, done;
    ptowsp_kernel of_short, of_long, merge, note;
} attention;

static void note(const fixture *f, const attention *a, ptowsp_expr axis) {
    ptowsp_task_desc desc = {.kernel = a->note, .axes[0] = axis};
    ptowsp_task_make(f->m, &desc);
}

// One head of one sequence: short ones at once, long ones in two chunks that are merged.
static void build_tier(const fixture *f, const attention *a) {
    ptowsp_module *m = f->m;
    ptowsp_task_desc chunk, merge;
    ptowsp_task_desc at_once = {0};
    PTOWSP_WORKLOAD(m, "tier") {
        ptowsp_expr b = ptowsp_workload_param(m, "b", PTOWSP_TYPE_I64);
        ptowsp_expr h = ptowsp_workload_param(m, "h", PTOWSP_TYPE_I64);
        at_once.axes[0] = b;
        at_once.axes[1] = h;
        at_once.views[0].tensor = a->q;
        at_once.views[0].index[0] = b;
        at_once.views[0].row = h;
        chunk = merge = at_once;
        at_once.kernel = a->of_short;
        at_once.views[2] = at_once.views[0];
        at_once.views[2].tensor = a->out;
        at_once.views[1].tensor = a->k;
        at_once.views[1].index[0] = b;
        at_once.scalars[0] = ptowsp_u64(m, 8);
        at_once.scalars[1] = ptowsp_gt(h, ptowsp_i64(m, 0));
        PTOWSP_WHEN(m, ptowsp_le(ptowsp_array_at(m, "kv", PTOWSP_I32, b),
                                 ptowsp_cast(ptowsp_symbol(m, "cut"), PTOWSP_TYPE_I64))) {
            ptowsp_task_make(m, &at_once);
            at_once.views[1].rows = 512;
            ptowsp_task_make(m, &at_once);
        }
        PTOWSP_OTHERWISE(m) {
            PTOWSP_PARALLEL(m, c, a->chunks) {
                chunk.kernel = a->of_long;
                chunk.axes[2] = c;
                chunk.views[1].tensor = a->k;
                chunk.views[1].index[0] = b;
                chunk.views[1].row = ptowsp_mul(c, ptowsp_i64(m, 256));
                chunk.views[2].tensor = a->part;
                chunk.views[2].index[0] = b;
                chunk.views[2].index[1] = h;
                chunk.views[2].row = c;
                chunk.tags[0].name = "level";
                chunk.tags[0].value = ptowsp_cast(c, PTOWSP_TYPE_U64);
                merge.after[0] = ptowsp_task_make(m, &chunk);
            }
            merge.kernel = a->merge;
            merge.views[1] = merge.views[0];
            merge.views[1].tensor = a->out;
            merge.views[0] = chunk.views[2];
            merge.views[0].row.id = 0;
            merge.views[0].row.module = NULL;
            ptowsp_task_make(m, &merge);
        }
    }
}

static void build_attention(fixture *f) {
    ptowsp_module *m = f->m;
    attention a;
    a.batch = ptowsp_axis_dynamic(m, "batch");
    a.heads = ptowsp_axis_dense(m, "heads", 2);
    a.chunks = ptowsp_axis_dense(m, "chunks", 2);
    a.kv = ptowsp_axis_ragged(m, "kv");
    a.pages = ptowsp_axis_sparse(m, "pages");
    a.q = tensor_make(m, "q", PTOWSP_F16, 3, 2, 64, 0);
    a.k = tensor_make(m, "k", PTOWSP_F16, 3, 4096, 64, 0);
    a.part = tensor_make(m, "part", PTOWSP_F32, 4, 2, 2, 64);
    a.out = tensor_make(m, "out", PTOWSP_F16, 3, 2, 64, 0);
    a.done = tensor_make(m, "done", PTOWSP_BOOL, 1, 0, 0, 0);
    a.of_short = ptowsp_kernel_make(m, &kernels[0]);
    a.of_long = ptowsp_kernel_make(m, &kernels[1]);
    a.merge = ptowsp_kernel_make(m, &kernels[2]);
    a.note = ptowsp_kernel_make(m, &kernels[3]);
    build_tier(f, &a);
    PTOWSP_WORKLOAD(m, "decode") {
        ptowsp_slot_set_make(m, 3, ptowsp_div(ptowsp_symbol(m, "cut"), ptowsp_u64(m, 2)));
        PTOWSP_PARALLEL(m, b, a.batch) {
            PTOWSP_FOR_EACH(m, h, a.heads) {
                const ptowsp_expr args[] = {b, h};
                ptowsp_call_make(m, "tier", args, 2);
            }
            PTOWSP_FOR_EACH(m, t, ptowsp_axis_row(m, a.kv, b)) {
                note(f, &a, t);
            }
            PTOWSP_SELECT(m, p, ptowsp_axis_row(m, a.pages, b)) {
                note(f, &a, ptowsp_array_at(m, "order", PTOWSP_I32, p));
            }
        }
        PTOWSP_COMBINE(m) {
            note(f, &a, ptowsp_i64(m, 0));
            PTOWSP_SEQUENCE(m) {
                const ptowsp_expr none = {NULL, 0};
                ptowsp_view view = {.tensor = a.done, .col = ptowsp_i64(m, 1)};
                ptowsp_slot_load_make(m, 4, &view, none, none);
                view.cols = 2;
                ptowsp_slot_load_make(m, 5, &view, none, ptowsp_i64(m, 1));
                PTOWSP_WHEN(m, ptowsp_slot(m, 4, PTOWSP_TYPE_BOOL)) {
                    note(f, &a, ptowsp_slot(m, 3, PTOWSP_TYPE_I64));
                }
            }
        }
    }
    assert_string_equal(ptowsp_module_error(m).text, "");
}

static const char module_text[] =
    "module attention slots 8\n"
    "axis batch dynamic\n"
    "axis heads 2\n"
    "axis chunks 2\n"
    "axis kv ragged i32\n"
    "axis pages sparse\n"
    "symbol cut\n"
    "array order i32\n"
    "tensor q f16 [?, 2, 64] global\n"
    "tensor k f16 [?, 4096, 64] global\n"
    "tensor part f32 [?, 2, 2, 64] l2\n"
    "tensor out f16 [?, 2, 64] global\n"
    "tensor done bool [?] global\n"
    "kernel short(axes 2, in q f16 1 x 64, in k f16 ? x 64, out o f16 1 x 64, scale u64, "
    "masked bool) vector, cycles by a cost function\n"
    "kernel long(axes 3, in q f16 1 x 64, in k f16 256 x 64, out p f32 1 x 64) cube, 900 cycles, "
    "time only\n"
    "kernel merge(axes 2, in p f32 2 x 64, inout o f16 1 x 64) mix, 20 cycles\n"
    "kernel note(axes 1) vector\n"
    "workload tier(b i64, h i64)\n"
    "  when kv[b] <= i64(cut)\n"
    "    task short(b, h) q = q[b] at (h, 0) k = k[b] of edge x 64 o = out[b] at (h, 0) "
    "scale = 8u masked = h > 0\n"
    "    task short(b, h) q = q[b] at (h, 0) k = k[b] of 512 x 64 o = out[b] at (h, 0) "
    "scale = 8u masked = h > 0\n"
    "  otherwise\n"
    "    parallel c in chunks\n"
    "      task long(b, h, c) q = q[b] at (h, 0) k = k[b] at (c * 256, 0) "
    "p = part[b, h] at (c, 0) tag level = u64(c) as node 7\n"
    "    task merge(b, h) p = part[b, h] o = out[b] at (h, 0) after node 7\n"
    "workload decode\n"
    "  slot_set 3 = cut / 2u\n"
    "  parallel b in batch\n"
    "    for_each h in heads\n"
    "      call tier(b, h)\n"
    "    for_each t in kv[b]\n"
    "      task note(t)\n"
    "    select p in pages[b]\n"
    "      task note(order[p])\n"
    "  combine\n"
    "    task note(0)\n"
    "    sequence\n"
    "      slot_load 4 = done at (0, 1)\n"
    "      slot_load 5 = done at (0, 1) of 1 x 2 element (0, 1)\n"
    "      when slot_bool[4]\n"
    "        task note(slot_i64[3])\n";

TEST(print__a_module_reads_like_what_was_built) {
    fixture f;
    for (int i = 0; i < 2; i++) {  // the same when built again
        fixture_make(&f, "attention");
        build_attention(&f);
        ptowsp_module_print(f.m, sink(&f));
        assert_string_equal(f.text, module_text);
        fixture_free(&f);
    }
}

#define FIXTURE_TEST(name, module)                                                                 \
    TEST_MADE(name, fixture, f, fixture_make(f, module), fixture_free(f))

FIXTURE_TEST(print__a_module_that_failed_ends_with_its_error, "m") {
    ptowsp_axis_dense(f->m, "n", 3);
    ptowsp_axis_dense(f->m, "n", 4);
    ptowsp_module_print(f->m, sink(f));
    assert_string_equal(f->text, "module m slots 8\n"
                                 "axis n 3\n"
                                 "error INVALID_PARAMS: m: axis n: the name is already that of an "
                                 "axis\n");
}

// Variables are numbered as they are declared: b, h, c of tier are v1, v2, v3; b, h, t, p of decode
// are v4 to v7. Workloads come in the order in which they are called, that with which it begins
// first. {3..5} t0: run these expressions, the value is then in t0.
static const char program_text[] =
    "program of module attention\n"
    "    0  slot_set 3 = {0..0} t0\n"
    "    1  parallel b: v4 in batch, scope -> 12\n"
    "    2  for_each h: v5 in heads, scope -> 5\n"
    "    3  call tier(v4, v5) -> 22\n"
    "    4  end of for_each h -> 3\n"
    "    5  for_each t: v6 in kv row v4, scope -> 8\n"
    "    6  task note(v6)\n"
    "    7  end of for_each t -> 6\n"
    "    8  select p: v7 in pages row v4 -> 11\n"
    "    9  task note({1..1} t0)\n"
    "   10  end of select p -> 9\n"
    "   11  end of parallel b -> 2\n"
    "   12  combine\n"
    "   13  task note(0)\n"
    "   14  sequence\n"
    "   15  slot_load 4 = done[0, 1]\n"
    "   16  slot_load 5 = done[0, 1] element (0, 1)\n"
    "   17  when {2..2} t0, else -> 19\n"
    "   18  task note(slot[3])\n"
    "   19  end of sequence\n"
    "   20  end of combine\n"
    "   21  return\n"
    "   22  when {3..5} t0, else -> 26\n"
    "   23  task short(v1, v2, 8, {6..6} t0) q[v1, v2, 0] k[v1, 0, 0] out[v1, v2, 0]\n"
    "   24  task short(v1, v2, 8, {7..7} t0) q[v1, v2, 0] k[v1, 0, 0] out[v1, v2, 0]\n"
    "   25  -> 31\n"
    "   26  reset edges\n"
    "   27  parallel c: v3 in chunks, scope -> 30\n"
    "   28  task long(v1, v2, v3) q[v1, v2, 0] k[v1, {9..9} t0, 0] part[v1, v2, v3, 0] "
    "dispatch {8..8} t0\n"
    "   29  end of parallel c -> 28\n"
    "   30  task merge(v1, v2) part[v1, v2, 0, 0] out[v1, v2, 0]\n"
    "   31  return\n"
    "expressions\n"
    "    0  DIV_U  t0 = cut, 2\n"
    "    1  READ   t0 = order[v7]\n"
    "    2  BOOL   t0 = slot[4]\n"
    "    3  READ   t0 = kv[v1]\n"
    "    4  MOVE   t1 = cut\n"
    "    5  LE_I   t0 = t0, t1\n"
    "    6  GT_I   t0 = v2, 0\n"
    "    7  GT_I   t0 = v2, 0\n"
    "    8  MOVE   t0 = v3\n"
    "    9  MUL    t0 = v3, 256\n"
    "schedule\n"
    "  issue dataflow\n"
    "  dispatch affinity of task.tag(level) over 2 lanes\n"
    "  window stall at 8 tasks\n"
    "  dependencies structure overlap explicit\n";

TEST(print__a_program_shows_its_operations) {
    fixture f;
    for (int i = 0; i < 2; i++) {
        fixture_make(&f, "attention");
        build_attention(&f);
        ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_AFFINITY,
                                    .dispatch_key = ptowsp_task_tag(f.m, "level"),
                                    .lane_count = 2,
                                    .window = 8,
                                    .dependencies =
                                        PTOWSP_DEPENDENCIES_HYBRID | PTOWSP_DEPENDENCIES_EXPLICIT};
        const ptowsp_program_desc desc = {NULL, &schedule};
        ptowsp_program *program = test_program(f.context, f.m, &desc);
        ptowsp_module_destroy(f.m);  // which the program does not need any more
        f.m = NULL;
        ptowsp_program_print(program, sink(&f));
        assert_string_equal(f.text, program_text);
        ptowsp_program_destroy(program);
        fixture_free(&f);
    }
}

FIXTURE_TEST(print__expressions_have_the_names_of_the_user, "m") {
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PARALLEL(f->m, b, ptowsp_axis_dynamic(f->m, "batch")) {
            ptowsp_expr next = ptowsp_add(b, ptowsp_i64(f->m, 1));
            ptowsp_expr is_short = ptowsp_le(ptowsp_array_at(f->m, "lengths", PTOWSP_I32, next),
                                             ptowsp_i64(f->m, 2048));
            ptowsp_expr_print(is_short, sink(f));
            assert_string_equal(f->text, "lengths[b + 1] <= 2048");
            ptowsp_expr_print(ptowsp_select(is_short, b, next), sink(f));
            assert_string_equal(f->text, "lengths[b + 1] <= 2048 ? b : b + 1");
        }
    }
}

// -- schedules ------------------------------------------------------------------------------------

FIXTURE_TEST(print__a_schedule_shows_its_directives, "m") {
    ptowsp_schedule s;
    ptowsp_schedule_print(NULL, sink(f));
    assert_string_equal(f->text, "schedule\n"
                                 "  issue dataflow\n"
                                 "  dispatch round robin over 1 lanes\n"
                                 "  dependencies structure overlap\n");
    memset(&s, 0, sizeof s);
    s.issue = PTOWSP_ISSUE_IN_ORDER;
    s.stream_count = 3;  // the default for lanes
    s.window = 16;
    s.window_policy = PTOWSP_WINDOW_BENCHMARK;
    s.hazards = PTOWSP_HAZARD_RAW;
    ptowsp_schedule_print(&s, sink(f));
    assert_string_equal(f->text, "schedule\n"
                                 "  issue in order\n"
                                 "  dispatch round robin over 3 lanes\n"
                                 "  window benchmark at 16 tasks\n"
                                 "  dependencies structure\n"
                                 "  hazards raw\n"
                                 "  streams 3\n");
    memset(&s, 0, sizeof s);
    s.dispatch = PTOWSP_DISPATCH_HASH;
    s.dispatch_key = ptowsp_task_variable(f->m, "b");
    s.pools = PTOWSP_POOLS_BY_UNIT;
    s.vector_lane_count = 48;
    s.cube_lane_count = 24;
    s.dependencies = PTOWSP_DEPENDENCIES_EXACT;
    s.ready = PTOWSP_READY_PRIORITY;
    s.priority_key = ptowsp_neg(ptowsp_task_arg(f->m, 1));
    s.start = PTOWSP_START_THRESHOLD;
    s.start_threshold = 100;
    s.stream_count = 2;
    s.stream_key = ptowsp_task_tag(f->m, "stream");
    s.timing = PTOWSP_TIMING_BATCHED;
    s.timing_count = 4;
    s.timing_cycles = 50;
    ptowsp_schedule_print(&s, sink(f));
    assert_string_equal(f->text, "schedule\n"
                                 "  issue dataflow\n"
                                 "  dispatch hash of task.b over 48 vector and 24 cube lanes\n"
                                 "  dependencies exact\n"
                                 "  ready priority -task.args[1]\n"
                                 "  start threshold 100 tasks\n"
                                 "  streams 2 by task.tag(stream)\n"
                                 "  timing batched by 4 tasks of 50 cycles\n");
}

FIXTURE_TEST(print__capabilities_are_a_table, "m") {
    ptowsp_capability_print(sink(f));
    static const char *const lines[] = {
        "directive     value          cpu_sim     threads     ascend_npu ",
        "issue         dataflow       enforced    enforced    enforced   ",
        "dispatch      work stealing  enforced    enforced    enforced   ",
        "window        abort          enforced    recorded    refused    ",
        "location      l2             recorded    recorded    recorded   ",
        "kernel        both cores     legalised   legalised   legalised  ",
        "kernel        direct FIFOs   enforced    enforced    refused    "};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_non_null(strstr(f->text, lines[i]));
    }
    uint32_t line_count = 0;
    for (const char *at = f->text; *at; at++) {
        line_count += *at == '\n';
    }
    assert_int_equal(line_count, 1 + ptowsp_capability_count());
    ptowsp_capability row = ptowsp_capability_at(3);
    assert_string_equal(row.directive, "dispatch");
    assert_string_equal(row.value, "affinity");
    assert_int_equal(row.support[PTOWSP_TARGET_CPU_SIM], PTOWSP_SUPPORT_ENFORCED);
}

// -- runs -----------------------------------------------------------------------------------------

static ptowsp_cycles ten_times_axis(const ptowsp_task *task, void *user) {
    (void)user;
    return (ptowsp_cycles)(10 * ptowsp_task_axis(task, 0));
}

// Tasks of 10, 20, 30 cycles in parallel on two lanes, a window of two, and one of 20 after them:
//
//      lane 0   0 to 10 task 0, 10 to 40 task 2      (issued when task 0 has left the window)
//      lane 1   0 to 20 task 1, 40 to 60 task 3      (waits for tasks 0, 1 and 2)
//
// Task 3 is issued at 20, when task 1 has left the window.
static void build_four_tasks(fixture *f) {
    ptowsp_task_desc task = {0};
    ptowsp_kernel_desc desc = {.name = "work", .axis_count = 1, .cost = ten_times_axis};
    task.kernel = ptowsp_kernel_make(f->m, &desc);
    PTOWSP_WORKLOAD(f->m, "main") {
        PTOWSP_PARALLEL(f->m, i, ptowsp_axis_dense(f->m, "three", 3)) {
            task.axes[0] = ptowsp_add(i, ptowsp_i64(f->m, 1));
            ptowsp_task_make(f->m, &task);
        }
        task.axes[0] = ptowsp_i64(f->m, 2);
        ptowsp_task_make(f->m, &task);
    }
}

FIXTURE_TEST(print__a_run_says_where_time_went, "four") {
    build_four_tasks(f);
    ptowsp_schedule schedule = {.lane_count = 2, .window = 2};
    const ptowsp_program_desc desc = {NULL, &schedule};
    ptowsp_program *program = test_program(f->context, f->m, &desc);
    ptowsp_run *run = test_run_of(f->context, program);
    ptowsp_run_print(run, sink(f));
    assert_string_equal(f->text, "run of module four: not executed\n");
    for (int has_records = 0; has_records < 2; has_records++) {
        const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY,
                                            .record_tasks = has_records};
        assert_int_equal(ptowsp_run_execute(run, &options), PTOWSP_OK);
        ptowsp_run_print(run, sink(f));
        char expected[1000];
        snprintf(expected, sizeof expected, "%s%s",
                 "run of module four: 60 cycles, 4 tasks, 2 lanes, 66.7 % busy\n"
                 "  stalls  dependency 20, window 20 cycles\n"
                 "  window  2 tasks in flight at most\n"
                 "  lane 0  2 tasks, busy 40, idle 20, ends at 40\n"
                 "  lane 1  2 tasks, busy 40, idle 20, ends at 60\n",
                 has_records ? "  critical path of 3 tasks\n"
                               "    0 to 10  task 0 on lane 0, main/parallel i/task work\n"
                               "    10 to 40  task 2 on lane 0, main/parallel i/task work, after "
                               "lane\n"
                               "    40 to 60  task 3 on lane 1, main/task work, after dependency\n"
                             : "");
        assert_string_equal(f->text, expected);
    }
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
}

// -- sinks ----------------------------------------------------------------------------------------

FIXTURE_TEST(print__a_text_that_does_not_fit_is_cut_and_counted, "attention") {
    char small[20];
    ptowsp_output_buffer buffer = {small, sizeof small, 0};
    build_attention(f);
    ptowsp_module_print(f->m, ptowsp_output_to_buffer(&buffer));
    assert_int_equal(buffer.length, sizeof module_text - 1);
    assert_int_equal(strlen(small), sizeof small - 1);
    assert_memory_equal(small, module_text, sizeof small - 1);
}
