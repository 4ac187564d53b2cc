// Descriptions of tensors, kernels, lists of tasks and schedules as facts (support/facts.h): what is refused, in its
// words, and schedules as text, saved and loaded.

#include "facts.h"

#include <inttypes.h>

enum { POOLS = 3, KERNELS = 3, SHAPE = 3, ENTRIES = 4, SCOPES = PTOWSP_MODULE_NEST_MAX + 1 };

static const char *const keys[] = {"none", "arg", "of_another", "variable", NULL};
static const char *const targets[] = {"cpu_sim", "threads", "ascend_npu", NULL};
static const char *const issues[] = {"dataflow", "in_order", NULL};
static const char *const dispatches[] = {"default", "round_robin",   "affinity", "hash",
                                         "custom",  "work_stealing", "plan",     NULL};
static const char *const pool_kinds[] = {"one", "by_unit", "named", NULL};
static const char *const windows[] = {"default", "stall", "abort", "benchmark", NULL};
static const char *const orders[] = {"fifo", "priority", "work_stealing", NULL};
static const char *const starts[] = {"at_once", "threshold", "all_issued", NULL};
static const char *const timings[] = {"immediate", "batched", "rate_limited", "interleaved", NULL};

static const char *const controls[] = {"none", "host", "aicpu", "kernels", NULL};
static const char *const models[] = {"unit", "a2a3", "a5", "user", "910b", "950pr", NULL};

static const char *module = "module decode\nworkload main\n";
static ptowsp_context *context;
static ptowsp_module *m, *other;
static ptowsp_program *program;
static ptowsp_schedule schedule;
static ptowsp_pool pools[POOLS + 20];
static uint32_t dispatch_key, priority_key, stream_key, has_pools;
static ptowsp_target target;
static uint32_t model;
static ptowsp_tensor_desc tensor;
static ptowsp_kernel_desc kernel;
static ptowsp_task_list list;
static struct {
    ptowsp_kernel kernels[ENTRIES];
    ptowsp_cycles cycles[ENTRIES];
    int64_t axes[ENTRIES];
    ptowsp_list_view views[1];
    uint64_t begins[ENTRIES + 1];
    uint32_t edges[2];
    ptowsp_list_scope scopes[SCOPES];
} arrays;  // of the list
static bool has_desc;
static const char *lines = "";  // of the schedule of a saved program
static char written[6000];
static const char *text = written;

// A task of the first kernel, which takes an axis, one of the second, which also takes a tile of the first
// tensor and waits for the task, and a join of both.
static void begin_list(void) {
    memset(&arrays, 0, sizeof arrays);
    arrays.kernels[0].id = 1;
    arrays.kernels[1].id = 2;
    arrays.views[0] = (ptowsp_list_view){.tensor = {1}, .rows = 1, .cols = 1};
    arrays.begins[2] = arrays.edges[1] = 1;
    arrays.begins[3] = 2;
    for (uint32_t i = 0; i < SCOPES; i++) {
        arrays.scopes[i].count = 3;
    }
    list =
        (ptowsp_task_list){3, arrays.kernels, arrays.cycles, arrays.axes, arrays.views,  NULL, 2, 1,
                           0, arrays.begins,  arrays.edges,  2,           arrays.scopes, 2};
}

static void begin(void) {
    begin_list();
    test_destroy(NULL, program, m, NULL);
    program = NULL;
    test_ok(context, ptowsp_module_parse(context, module, strlen(module), NULL, &m, NULL));
    memset(pools, 0, sizeof pools);
    for (uint32_t i = POOLS; i < COUNT_OF(pools); i++) {
        pools[i] = (ptowsp_pool){.name = "more", .lane_count = 1};
    }
    schedule = (ptowsp_schedule){.lane_count = 2};
    dispatch_key = priority_key = stream_key = has_pools = 0;
    target = PTOWSP_TARGET_CPU_SIM;
    model = 0;
    tensor = (ptowsp_tensor_desc){.name = "t", .dtype = PTOWSP_F32};
    kernel = (ptowsp_kernel_desc){.name = "k", .cycles = 1};
    has_desc = true;
}

static ptowsp_expr key_of(uint32_t key) {
    const ptowsp_expr none = {NULL, 0};
    return key == 0   ? none
           : key == 1 ? ptowsp_task_arg(m, 0)
           : key == 2 ? ptowsp_task_arg(other, 0)
                      : ptowsp_task_variable(m, "i");
}

static const ptowsp_schedule *given(void) {
    schedule.dispatch_key = key_of(dispatch_key);
    schedule.priority_key = key_of(priority_key);
    schedule.stream_key = key_of(stream_key);
    schedule.named_pools = has_pools ? pools : NULL;
    return has_desc ? &schedule : NULL;
}

static ptowsp_status check(void) {
    return ptowsp_schedule_check(m, given(), target);
}

static ptowsp_status compile(void) {
    const ptowsp_program_desc desc = {NULL, given()};
    ptowsp_program_destroy(program);
    const ptowsp_status status = ptowsp_program_create(context, m, &desc, &program);
    assert_true(status == PTOWSP_OK || !program);
    return status;
}

static ptowsp_status check_program(void) {
    return ptowsp_program_check(context, program, target);
}

static ptowsp_status print(void) {
    ptowsp_schedule_print(given(), TEST_TEXT(written));
    return PTOWSP_OK;
}

// The program under the schedule, saved and loaded, has its numbers; and this text.
static ptowsp_status reload(void) {
    static char saved[6000];
    const ptowsp_program_desc desc = {NULL, given()};
    ptowsp_output_buffer buffer = {saved, sizeof saved, 0};
    ptowsp_program_destroy(program);
    assert_ok(ptowsp_program_save(context, m, &desc, ptowsp_output_to_buffer(&buffer)));
    test_ok(context, ptowsp_program_load(context, saved, buffer.length, NULL, &program, NULL));
    const ptowsp_schedule *read = &ptowsp_program_read(program)->schedule;
    assert_int_equal(read->pools, schedule.pools);
    assert_true(read->pool_count == 0 && !read->named_pools);
    assert_memory_equal(read->ring_sizes, schedule.ring_sizes, sizeof schedule.ring_sizes);
    assert_memory_equal(read->depths, schedule.depths, sizeof schedule.depths);
    assert_int_equal(read->release, schedule.release);
    const ptowsp_control *control = &read->control;
    assert_int_equal(control->by, schedule.control.by);
    assert_int_equal(control->threads, schedule.control.threads);
    assert_int_equal(control->clock_mhz, schedule.control.clock_mhz);
    assert_memory_equal(control->cost_ns, schedule.control.cost_ns, sizeof control->cost_ns);
    assert_int_equal(read->shared.hbm_rate, schedule.shared.hbm_rate);
    assert_int_equal(read->shared.l2_rate, schedule.shared.l2_rate);
    assert_int_equal(read->shared.lane_rate, schedule.shared.lane_rate);
    assert_int_equal(read->shared.l2_bytes, schedule.shared.l2_bytes);
    ptowsp_program_print_schedule(program, TEST_TEXT(written));
    return PTOWSP_OK;
}

// A saved program whose schedule has these lines instead, with the checksum of all.
static ptowsp_status load(void) {
    static char all[8000];
    char body[7000];
    const char *statements = strstr(module, "workload ");
    snprintf(body, sizeof body, "%.*sprogram w\n%s%s", (int)(statements - module), module, lines,
             statements);
    snprintf(all, sizeof all, "ptowsp program 1, %zu bytes, %016" PRIx64 "\n%s", strlen(body),
             ptowsp_hash(PTOWSP_HASH_START, body, strlen(body)), body);
    ptowsp_program_destroy(program);
    return ptowsp_program_load(context, all, strlen(all), NULL, &program, NULL);
}

// What machines are built in with.
static ptowsp_status built_in(void) {
    schedule.control = ptowsp_control_make(schedule.control.by, (ptowsp_model)model);
    schedule.shared = ptowsp_shared_memory_of((ptowsp_model)model);
    return PTOWSP_OK;
}

// What is made has an id, or the module an error.
static ptowsp_status made(uint32_t id) {
    const ptowsp_status status = ptowsp_module_error(m).status;
    assert_int_equal(id != 0, status == PTOWSP_OK);
    return status;
}

static ptowsp_status make_tensor(void) {
    return made(ptowsp_tensor_make(m, has_desc ? &tensor : NULL).id);
}

static ptowsp_status make_kernel(void) {
    return made(ptowsp_kernel_make(m, has_desc ? &kernel : NULL).id);
}

static ptowsp_status choose(void) {
    const ptowsp_choice_desc choice = {.name = "any", .variants[0].kernel = {1}};
    return made(ptowsp_kernel_choice(m, &choice).id);
}

// In a workload, or in a process of its pipeline.
static ptowsp_status make_list(void) {
    ptowsp_workload_begin(m, "all");
    if (strcmp(facts_words, "in_process") == 0) {
        facts_words = "";
        ptowsp_pipeline_begin(m, "p", NULL, 0);
        ptowsp_process_begin(m, "q");
    }
    ptowsp_task_list_make(m, has_desc ? &list : NULL);
    ptowsp_scope_end(m);
    return ptowsp_module_error(m).status;
}

static ptowsp_status make_mesh(void) {
    const ptowsp_mesh mesh = {1, {"tp"}, {2}};
    ptowsp_module_mesh(m, &mesh, (ptowsp_algorithm)0);
    return ptowsp_module_error(m).status;
}

static const char *error(uint64_t *out_index) {
    const ptowsp_error of_module = ptowsp_module_error(m),
                       of_context = ptowsp_context_error(context);
    *out_index = of_module.status ? of_module.index : of_context.index;
    return of_module.status ? ptowsp_module_error(m).text : ptowsp_context_error(context).text;
}

#define DTYPE_OF(name, value, size, text) [value] = text,
#define FIELD_AS(name, x)                 FACTS_OF(name, x, sizeof(x), 1)
#define SCHEDULE(member)                  FIELD_AS(#member, schedule.member)
#define CHOICE(member, names)             FACTS_AS(#member, schedule.member, sizeof schedule, 1, names)
#define POOL(i)                                                                                    \
    FIELD(pools[i].name), FIELD(pools[i].lane_count), FIELD(pools[i].depth),                       \
        FACTS_OF("pools[" #i "].kernels", pools[i].kernels[0], sizeof(char *), KERNELS)

static const facts_field *fields(void) {
    static uint64_t one_run, many_runs;  // of the host: 256
    one_run = schedule.control.cost_ns[PTOWSP_CONTROL_LAUNCH] +
              schedule.control.cost_ns[PTOWSP_CONTROL_SUBMIT];
    many_runs = one_run + 255 * schedule.control.cost_ns[PTOWSP_CONTROL_SUBMIT];
    static const char *const dtypes[] = {"none", PTOWSP_DTYPES(DTYPE_OF) NULL};
    FACTS_RETURN(
        POOL(0), POOL(1), POOL(2), FIELD(module), FIELD(lines), FIELD(text), FIELD(has_desc),
        FIELD_NAMED(target, targets), CHOICE(issue, issues), CHOICE(dispatch, dispatches),
        CHOICE(pools, pool_kinds), CHOICE(window_policy, windows), CHOICE(ready, orders),
        CHOICE(start, starts), CHOICE(timing, timings), SCHEDULE(lane_count),
        SCHEDULE(vector_lane_count), SCHEDULE(cube_lane_count), SCHEDULE(window),
        SCHEDULE(dependencies), SCHEDULE(hazards), SCHEDULE(start_threshold),
        SCHEDULE(stream_count), SCHEDULE(timing_count), SCHEDULE(timing_cycles), SCHEDULE(release),
        SCHEDULE(pool_count),
        FACTS_AS("control", schedule.control.by, sizeof schedule, 1, controls), FIELD(one_run),
        FIELD(many_runs), SCHEDULE(control.threads), SCHEDULE(control.clock_mhz),
        FACTS_OF("cost_ns", schedule.control.cost_ns[0], sizeof(uint64_t),
                 PTOWSP_CONTROL_COST_COUNT),
        SCHEDULE(shared.hbm_rate), SCHEDULE(shared.l2_rate), SCHEDULE(shared.lane_rate),
        SCHEDULE(shared.l2_bytes), FIELD_NAMED(model, models),
        FACTS_OF("rings", schedule.ring_sizes[0], sizeof(uint64_t), PTOWSP_RING_COUNT),
        FACTS_OF("depths", schedule.depths[0], sizeof(uint32_t), PTOWSP_DEPTH_COUNT),
        FIELD_NAMED(dispatch_key, keys), FIELD_NAMED(priority_key, keys),
        FIELD_NAMED(stream_key, keys), FIELD(has_pools), FIELD(tensor.name),
        FACTS_AS("tensor.dtype", tensor.dtype, sizeof tensor, 1, dtypes), FIELD(tensor.rank),
        FIELDS(tensor.shape, SHAPE), FIELD(tensor.location), FIELD(kernel.name),
        FIELD(kernel.cycles), FIELD(kernel.axis_count), FIELD(kernel.unit),
        FIELD_AS("tile.name", kernel.tiles[0].name),
        FIELD_AS("tile.direction", kernel.tiles[0].direction),
        FACTS_AS("tile.dtype", kernel.tiles[0].dtype, sizeof kernel, 1, dtypes),
        FIELD_AS("tile.rows", kernel.tiles[0].rows), FIELD_AS("tile.cols", kernel.tiles[0].cols),
        FIELD_AS("scalar.name", kernel.scalars[0].name),
        FIELD_AS("scalar.type", kernel.scalars[0].type), FIELD_AS("source", kernel.source.text),
        FIELD_AS("file", kernel.source.file), FIELD_AS("fn", kernel.source.fn),
        FIELD_AS("cost", kernel.source.cost), FIELD(list.task_count), FIELD(list.kernels),
        FIELD(list.axes), FIELD(list.axis_count), FIELD(list.view_count), FIELD(list.scalar_count),
        FIELD(list.edge_count), FIELD(list.edges), FIELD(list.edge_begins), FIELD(list.scopes),
        FIELD(list.scope_count), FIELDS(arrays.kernels, ENTRIES), FIELDS(arrays.cycles, ENTRIES),
        MEMBER(arrays.views, tensor, 1), MEMBER(arrays.views, rows, 1),
        MEMBER(arrays.views, cols, 1), MEMBER(arrays.views, row, 1), MEMBER(arrays.views, col, 1),
        MEMBER(arrays.views, matrix, 1), FIELDS(arrays.begins, ENTRIES + 1),
        FIELDS(arrays.edges, 2), MEMBER(arrays.scopes, first, SCOPES),
        MEMBER(arrays.scopes, count, SCOPES));
}

TEST(schedule_facts__hold) {
    static const facts_call calls[] = {{"check", check},
                                       {"compile", compile},
                                       {"check_program", check_program},
                                       {"print", print},
                                       {"reload", reload},
                                       {"load", load},
                                       {"tensor", make_tensor},
                                       {"kernel", make_kernel},
                                       {"choose", choose},
                                       {"built_in", built_in},
                                       {"mesh", make_mesh},
                                       {"list", make_list},
                                       {"list ", make_list},
                                       {NULL, NULL}};
    facts all = {.path = "tests/workload/schedules.facts",
                 .begin = begin,
                 .fields = fields,
                 .calls = calls,
                 .error = error};
    context = test_context(NULL);
    other = test_module(context, NULL);
    facts_run(&all);
    test_destroy(NULL, program, m, NULL);
    test_destroy(NULL, NULL, other, context);
}
