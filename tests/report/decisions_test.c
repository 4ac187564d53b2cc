// Decisions: texts that a person has read, for time alone, on lanes, on a device, for plans and for kernels of
// all kinds; JSON; visitors and outputs that stop.

#include "written.h"

static ptowsp_cycles nothing(const ptowsp_task *task, void *user) {
    (void)task;
    (void)user;
    return 10;
}

static test_memory memory;
static bool has_cost = true;  // its source has one

static void make(fixture *f, const char *text, const ptowsp_schedule *schedule) {
    memset(f, 0, sizeof *f);
    memset(&memory, 0, sizeof memory);
    const ptowsp_context_desc desc = {.resize = test_resize,
                                      .resize_user = &memory,
                                      .threads = PTOWSP_THREADS_OWN,
                                      .lane_count = 2};
    const ptowsp_parse_kernel kernels[] = {
        {.name = "use",
         .fn = nothing,
         .cost = nothing,
         .source = {.text = "// a source", .cost = has_cost ? "cost" : NULL}},
        {.name = "fn", .fn = nothing}};
    const ptowsp_parse_desc parse = {kernels, 2, 0};
    const ptowsp_program_desc compiled = {NULL, schedule};
    f->context = test_context(&desc);
    program_make(f, text, &parse, &compiled);
}

static void release(fixture *f) {
    fixture_free(f);
    assert_int_equal(memory.live_bytes, 0);
}

static const char *decisions_of(const fixture *f, ptowsp_report_format format) {
    written_good(f, ptowsp_run_export_decisions(f->run, format, written_output()));
    return written.text;
}

static const char text[] = "module m\n"
                           "axis n 300\n"
                           "tensor x f32 [2, 8] l2\n"
                           "tensor t f32 [2, 8] global transient\n"
                           "tensor u f32 [4, 8] global transient\n"
                           "kernel produce(axes 1, out o f32 2 x 8) vector, 30 cycles, time only\n"
                           "kernel use(axes 1, in i f32 2 x 8, out o f32 2 x 8) vector, cycles by "
                           "a cost function\n"
                           "workload w\n"
                           "  task produce(0) o = t\n"
                           "  for_each i in n\n"
                           "    task use(i * 3 + 1) i = t o = x\n";

TEST(decisions__of_measuring_time_are_the_text_of_paper) {
    fixture f;
    ptowsp_run_options options = {0};
    ptowsp_schedule schedule = {.issue = PTOWSP_ISSUE_IN_ORDER,
                                .lane_count = 2,
                                .dispatch = PTOWSP_DISPATCH_ROUND_ROBIN,
                                .window = 6,
                                .window_policy = PTOWSP_WINDOW_BENCHMARK};
    make(&f, text, &schedule);
    // Before an execution.
    assert_string_equal(decisions_of(&f, PTOWSP_REPORT_TEXT),
                        "decisions of module m\n"
                        "  compile  kernel produce: time only; 30 cycles\n"
                        "  compile  kernel use: a function; its cost function says how long it "
                        "takes\n"
                        "  compile  loop w/for_each i: 128 iterations at a time; of 2 operations, "
                        "and 0 once before it\n"
                        "  target   schedule: recorded by threads; issue in order\n"
                        "  target   schedule: recorded by threads; dispatch round robin\n"
                        "  target   schedule: recorded by threads; window benchmark\n"
                        "  target   tensor x: recorded by threads; location l2\n"
                        "  target   schedule: refused by ascend_npu; window benchmark\n"
                        "  target   tensor x: recorded by ascend_npu; location l2\n"
                        "  target   kernel produce: refused by ascend_npu; it has no source\n");
    // With sums: 30 of 3,030 cycles.
    ptowsp_buffer x = {.dtype = PTOWSP_F32};
    assert_ok(ptowsp_run_bind_tensor(f.run, "x", &x));
    options.mode = PTOWSP_RUN_TIME_ONLY;
    options.record_tasks = true;
    assert_ok(ptowsp_run_execute(f.run, &options));
    decisions_of(&f, PTOWSP_REPORT_TEXT);
    static const char *const lines[] = {
        "kernel produce: time only; 30 cycles (1.0 % of the tasks' cycles)\n",
        "how long it takes (99.0 % of the tasks' cycles)\n",
        "  bind     tensor t: bytes 0 to 64 of the block; alive from point 0 to 1\n"
        "  bind     transient tensors: a block of 64 bytes; each alone 64, at least 64 at point 0\n"
        "  execute  tasks: for time alone; mode TIME_ONLY\n"
        "  execute  first walk: left out; no data to protect\n"
        "  execute  issue: task by task; tasks are recorded, lanes choose, or issue takes time\n",
        "window benchmark (100.0 % of the tasks' cycles)\n",
        "it has no source (1.0 % of the tasks' cycles)\n"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        has(lines[i]);
    }
    release(&f);
    // Nothing is recorded: in batches, and no shares. A cost lacks its source.
    has_cost = false;
    make(&f, text, NULL);
    has_cost = true;
    assert_ok(ptowsp_run_bind_tensor(f.run, "x", &x));
    options.record_tasks = false;
    assert_ok(ptowsp_run_execute(f.run, &options));
    decisions_of(&f, PTOWSP_REPORT_TEXT);
    has("issue: in batches; nothing is recorded, and lanes do not");
    has_not("%");
    has("kernel use: refused by ascend_npu; its cost function has no source\n");
    release(&f);
}

TEST(decisions__of_executing_are_the_text_of_paper) {
    static const char small[] = "module m\n"
                                "axis p plan\n"
                                "kernel use(axes 1) vector, cycles by a cost function\n"
                                "workload w\n"
                                "  parallel u in p\n"
                                "    task use(u)\n";
    fixture f;
    ptowsp_run_options options = {0};
    ptowsp_work work[4] = {0};
    make(&f, small, NULL);
    assert_ok(ptowsp_run_bind_work(f.run, "p", work, 4));
    assert_ok(ptowsp_run_execute(f.run, NULL));
    assert_string_equal(decisions_of(&f, PTOWSP_REPORT_TEXT),
                        "decisions of module m\n"
                        "  compile  kernel use: a function; its cost function says how long it "
                        "takes\n"
                        "  bind     plan p: 4 units; bound as a plan\n"
                        "  execute  tasks: on the calling thread; lane_count is 1\n"
                        "  execute  first walk: done; every view is checked before a kernel runs\n"
                        "  execute  issue: in batches; nothing is recorded, and lanes do not "
                        "choose\n"
                        "  target   schedule: recorded by threads; dispatch round robin\n"
                        "  target   schedule: recorded by threads; window none\n");
    options.lane_count = 2;
    assert_ok(ptowsp_run_execute(f.run, &options));
    decisions_of(&f, PTOWSP_REPORT_TEXT);
    has("  execute  tasks: on 2 lanes; lane_count\n");
    has_not("issue:");
    ptowsp_device *device;
    assert_ok(ptowsp_device_open(f.context, NULL, &device));
    assert_ok(ptowsp_device_run(device, f.run, NULL));
    assert_non_null(strstr(decisions_of(&f, PTOWSP_REPORT_TEXT),
                           "  execute  tasks: on the cores of a device\n"));
    assert_ok(ptowsp_device_close(device));
    assert_ok(ptowsp_run_execute(f.run, &options));
    assert_string_equal(
        decisions_of(&f, PTOWSP_REPORT_JSON),
        "[\n"
        "  {\"stage\": \"compile\", \"subject\": \"kernel use\", \"chosen\": \"a function\", "
        "\"reason\": \"its cost function says how long it takes\"},\n"
        "  {\"stage\": \"bind\", \"subject\": \"plan p\", \"chosen\": \"4 units\", "
        "\"reason\": \"bound as a plan\"},\n"
        "  {\"stage\": \"execute\", \"subject\": \"tasks\", \"chosen\": \"on 2 lanes\", "
        "\"reason\": \"lane_count\"},\n"
        "  {\"stage\": \"execute\", \"subject\": \"first walk\", \"chosen\": \"done\", "
        "\"reason\": \"every view is checked before a kernel runs\"},\n"
        "  {\"stage\": \"target\", \"subject\": \"schedule\", \"chosen\": \"recorded by "
        "threads\", \"reason\": \"dispatch round robin\"},\n"
        "  {\"stage\": \"target\", \"subject\": \"schedule\", \"chosen\": \"recorded by "
        "threads\", \"reason\": \"window none\"}\n"
        "]\n");
    release(&f);
}

// What else a kernel can be, and says how long it takes: a PTO-ISA source, a collective, a tile kernel of
// two halves.
TEST(decisions__name_the_cycles_of_all_kinds_of_kernels) {
    fixture f = {0};
    ptowsp_module *m;
    assert_ok(ptowsp_context_create(NULL, &f.context));
    assert_ok(ptowsp_module_create(f.context, NULL, &f.module));
    m = f.module;
    ptowsp_kernel_desc desc = {0};
    ptowsp_collective_desc sum = {0};
    ptowsp_tensor_desc tensor = {0};
    ptowsp_task_desc task = {0};
    ptowsp_pto_source pto = {.text = "void source() {}"};
    desc.name = "source", desc.cycles = 7, desc.pto = &pto;
    const ptowsp_kernel source = ptowsp_kernel_make(m, &desc);
    desc.name = "filed", desc.pto = NULL;
    desc.source.file = "filed.c";
    const ptowsp_kernel filed = ptowsp_kernel_make(m, &desc);
    sum.name = "sum", sum.kind = PTOWSP_ALL_REDUCE, sum.dtype = PTOWSP_F32;
    const ptowsp_kernel collective = ptowsp_kernel_collective(m, &sum);
    tensor.name = "x", tensor.dtype = PTOWSP_F32, tensor.rank = 2;
    tensor.shape[0] = tensor.shape[1] = 8;
    const ptowsp_tensor x = ptowsp_tensor_make(m, &tensor);
    PTOWSP_WORKLOAD(m, "w") {
        task.kernel = source;
        ptowsp_task_make(m, &task);
        task.kernel = filed;
        ptowsp_task_make(m, &task);
        task.kernel = collective;
        task.views[0].tensor = x;
        task.views[0].rows = task.views[0].cols = 8;
        ptowsp_task_make(m, &task);
    }
    test_ok(f.context, ptowsp_program_create(f.context, m, NULL, &f.program));
    assert_ok(ptowsp_run_create(f.context, f.program, &f.run));
    decisions_of(&f, PTOWSP_REPORT_TEXT);
    static const char *const lines[] = {
        "  compile  kernel source: a PTO-ISA source; 7 cycles\n",
        "  compile  kernel filed: time only; 7 cycles\n",
        "  compile  kernel sum: all_reduce; the links say how long it takes\n"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        has(lines[i]);
    }
    // In a tree there are no links; the other two have sources.
    has("kernel sum: refused by ascend_npu; it has no source\n");
    has_not("kernel source: refused");
    has_not("kernel filed: refused");
    test_destroy(f.run, f.program, m, f.context);
}

TEST(decisions__tell_kernels_apart) {
    static const char module[] = "module m\n"
                                 "tensor x f32 [8, 8] global\n"
                                 "kernel fn(axes 0) vector\n"
                                 "kernel use(axes 0) vector, cycles by a cost function\n"
                                 "kernel unused(axes 0) vector, 2 cycles, time only\n"
                                 "kernel tile(axes 0, inout t f32 8 x 8) vector, 5 instructions\n"
                                 "  machine \"910B\"\n"
                                 "  %1 = parameter t\n"
                                 "  %2 = load %1 : f32 8 x 8\n"
                                 "  %3 = add %2, %2 : f32 8 x 8\n"
                                 "  store %1, %3\n"
                                 "workload main\n  task fn()\n  task use()\n  task tile() t = x\n";
    fixture f;
    float data[64] = {0};
    const ptowsp_record_options record = {.level = PTOWSP_RECORD_TOTALS};
    make(&f, module, NULL);
    test_bind(f.run, "x", data);
    assert_ok(ptowsp_run_record(f.run, &record));
    assert_ok(ptowsp_run_execute(f.run, NULL));
    decisions_of(&f, PTOWSP_REPORT_TEXT);
    has("its function says how long it took");
    has("its cost function says how long it takes");
    has("instructions for 910B, on a core of vector");
    has("its instructions say how long it takes");
    has_not("unused");
    decisions_of(&f, PTOWSP_REPORT_JSON);
    has(", \"permille\": ");
    release(&f);
}

// A plan that is not bound says nothing. One that is planned from a batch says so; and tasks that
// start once some of them have been issued are counted first.
TEST(decisions__say_where_units_of_plans_come_from) {
    static const char small[] = "module m\n"
                                "axis p plan\n"
                                "axis other plan\n"
                                "kernel use(axes 1) vector, cycles by a cost function\n"
                                "workload w\n"
                                "  parallel u in p\n"
                                "    task use(u)\n";
    fixture f;
    ptowsp_run_options options = {0};
    ptowsp_schedule schedule = {.lane_count = 2,
                                .timing = PTOWSP_TIMING_BATCHED,
                                .timing_count = 2,
                                .timing_cycles = 5,
                                .start = PTOWSP_START_THRESHOLD,
                                .start_threshold = 3};
    make(&f, small, &schedule);
    assert_null(strstr(decisions_of(&f, PTOWSP_REPORT_TEXT), "  bind "));
    ptowsp_work work[4] = {0};
    assert_ok(ptowsp_run_bind_work(f.run, "p", work, 4));
    options.mode = PTOWSP_RUN_TIME_ONLY;
    assert_ok(ptowsp_run_execute(f.run, &options));
    decisions_of(&f, PTOWSP_REPORT_TEXT);
    has("  bind     plan p: 4 units; bound as a plan\n");
    has_not("plan other");
    has("  execute  first walk: done; the schedule needs the number of "
        "tasks\n");
    release(&f);
}

static bool count_two(void *user, const ptowsp_decision *decision) {
    (void)decision;
    return ++*(uint32_t *)user < 2;
}

TEST(decisions__can_be_stopped) {
    fixture f;
    uint32_t count = 0;
    make(&f, text, NULL);
    assert_false(ptowsp_run_decisions(f.run, count_two, &count));
    assert_int_equal(count, 2);
    const ptowsp_output none = {NULL, NULL};
    assert_invalid(ptowsp_run_export_decisions(f.run, PTOWSP_REPORT_HTML, written_output()));
    assert_string_equal(ptowsp_context_error(f.context).text,
                        "decisions: they are written as text or JSON");
    assert_invalid(ptowsp_run_export_decisions(f.run, PTOWSP_REPORT_TEXT, none));
    assert_string_equal(ptowsp_context_error(f.context).text, "decisions: no function");
    assert_int_equal(ptowsp_run_export_decisions(f.run, PTOWSP_REPORT_TEXT, written_within(10)),
                     PTOWSP_SYSTEM_FAILED);
    assert_string_equal(ptowsp_context_error(f.context).text,
                        "decisions: the output failed after 0 bytes");
    release(&f);
}
