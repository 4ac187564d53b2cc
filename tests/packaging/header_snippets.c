// The pieces of code in the comments of ptowsp.h that are no whole programs, each in what it stands
// for: header_programs_test.sh writes piece n of section s to s_n.inc. They compile without
// warnings, run, and leave no error.

#include "ptowsp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ptowsp_context *context;
static ptowsp_module *m;  // empty, for each piece
static char printed[1 << 14];
static ptowsp_output_buffer buffer = {printed, sizeof printed, 0};
static int is_bad;

// Each piece has a context and an empty module, and programs and runs that go after it.
static struct {
    const char *name;
    void (*run)(void);
} pieces[64];
static uint32_t piece_count, piece;
static ptowsp_program *program;
static ptowsp_run *runs[2];

#define PIECE(section)                                                                             \
    static void section(void);                                                                     \
    __attribute__((constructor)) static void add_##section(void) {                                 \
        pieces[piece_count].name = #section;                                                       \
        pieces[piece_count++].run = section;                                                       \
    }                                                                                              \
    static void section(void)

static void check(int holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "header snippets: %s: %s: %s %s\n", pieces[piece].name, what,
                ptowsp_module_error(m).text, ptowsp_context_error(context).text);
        is_bad = 1;
    }
}
#define CHECK(condition) check(condition, #condition)

// -- what the pieces name -------------------------------------------------------------------------

// A kernel of one axis and as many 1 x 1 tiles as asked for, whose tasks take 100 cycles.
static ptowsp_kernel simple(const char *name, uint32_t axis_count, uint32_t tile_count) {
    static const char *const names[] = {"a", "b", "c", "d"};
    ptowsp_kernel_desc desc = {.name = name, .axis_count = axis_count, .cycles = 100};
    for (uint32_t i = 0; i < tile_count; i++) {
        const ptowsp_direction way = i + 1 == tile_count ? PTOWSP_OUT : PTOWSP_IN;
        const ptowsp_tile_param tile = {names[i], way, PTOWSP_F32, 1, 1};
        desc.tiles[i] = tile;
    }
    return ptowsp_kernel_make(m, &desc);
}

static ptowsp_tensor vector(const char *name, int64_t size) {
    const ptowsp_tensor_desc desc = {.name = name,
                                     .dtype = PTOWSP_F32,
                                     .rank = 2,
                                     .shape = {size, 1},
                                     .location = PTOWSP_LOCATION_GLOBAL};
    return ptowsp_tensor_make(m, &desc);
}

static ptowsp_task_desc task_of(ptowsp_kernel kernel) {
    ptowsp_task_desc task = {.kernel = kernel};
    return task;
}

// Compiles the module.
static void compile(void) {
    CHECK(ptowsp_program_create(context, m, NULL, &program) == PTOWSP_OK);
}

// The module of a text in place of the empty one, and runs of its program.
static void run_text(const char *text, uint32_t run_count) {
    ptowsp_module_destroy(m);
    CHECK(ptowsp_module_parse(context, text, strlen(text), NULL, &m, NULL) == PTOWSP_OK);
    compile();
    for (uint32_t i = 0; i < run_count; i++) {
        CHECK(ptowsp_run_create(context, program, &runs[i]) == PTOWSP_OK);
    }
}

static const ptowsp_run_stats *timed(void) {
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    CHECK(ptowsp_run_execute(runs[0], &options) == PTOWSP_OK);
    return ptowsp_run_result(runs[0]);
}

// Seen by the pieces as kernels, merges and joins.
static uint32_t call_count;
static void count_call(const ptowsp_work *work, uint32_t lane, void *user) {
    (void)work, (void)lane, (void)user;
    call_count++;
}

// -- plans ----------------------------------------------------------------------------------------

// Worker 0 of one leads a session.
struct layer {
    ptowsp_context *context;
    ptowsp_graph *graph;
    const ptowsp_work *work;
    uint32_t count, done;
};

static void section_3_unit(const ptowsp_work *work, uint32_t lane, void *user) {
    (void)work, (void)lane;
    ((struct layer *)user)->done++;
}
static const ptowsp_work_fn table[] = {section_3_unit};
void operator(struct layer *layer, int worker, int worker_count);

#define step section_3_step
#include "3_1.inc"
#undef step

PIECE(section_3) {
    const ptowsp_work work[2] = {{.params = {0}}, {.params = {1}}};
    struct layer layer = {context, NULL, work, 2, 0};
    CHECK(ptowsp_graph_create(context, NULL, &layer.graph) == PTOWSP_OK);
    operator(&layer, 0, 1);
    CHECK(layer.done == 2);
    ptowsp_graph_destroy(layer.graph);
}

PIECE(section_6) {
    const int32_t lengths[] = {700, 30};
    const ptowsp_batch batch = {lengths, 2, 1};
    const ptowsp_plan_config config = {.chunk_min = 0};
    const uint64_t capacity = 16;
    ptowsp_work work[16];
    ptowsp_plan_info info;
    const ptowsp_work_fn table[] = {count_call, count_call, count_call, count_call};
    const uint32_t tier_count = 4;
    void *user = NULL;
#include "6_1.inc"
    CHECK(call_count == info.work_count && info.work_count > 0);
}

#include "7_1.inc"

PIECE(section_7) {
    ptowsp_work work;
    memset(&work, 0, sizeof work);
    work.work_id = 5;
    work.tier = 2;
    uint32_t sums[1] = {0};
    CHECK(ptowsp_dispatch_serial(&work, 1, attend_table, attend_tier_count, sums, NULL) ==
              PTOWSP_OK &&
          sums[0] == 10);
    attend_dispatch(&work, 0, sums);
    CHECK(sums[0] == 20 && attend_tiers[2].id == 2);
}

// 30 tokens dealt to 2 ranks in turn: query j of the first sees j of the second's 15 tokens.
static int run_section_9(void) {
    const int32_t rank = 0, from = 1, ranks = 2, length = 15;
    const ptowsp_output output = ptowsp_output_to_buffer(&buffer);
    const ptowsp_attention_batch batch = {&length, &length, 1};
    ptowsp_attention_config config = {.kv_head_count = 1, .lane_count = 1, .tile_rows = 1};
    static char block[1 << 12];
    ptowsp_attention_sizes sizes;
    ptowsp_attention_plan plan;
    ptowsp_plan_info info;
    CHECK(!ptowsp_attention_size(&batch, &config, &sizes, &info) &&
          !ptowsp_attention_place(&sizes, block, sizeof block, &plan));
#include "9_1.inc"
    uint32_t pairs = 0;
    for (uint32_t i = 0; i < plan.unit_count; i++) {
        pairs += ptowsp_work_kv_len(&plan.units[i]);
    }
    CHECK(plan.unit_count == 15 && pairs == 105);
    return 0;
}

PIECE(section_9) {
    CHECK(run_section_9() == 0);
}

static int run_section_12(void) {
    const uint32_t request_count = 2;
    const uint64_t block_count = 2;
    const int32_t kv_lengths[] = {1024, 1000};
    const uint64_t ids[] = {7, 8, 7, 9}, id_begin[] = {0, 2, 4};
    const ptowsp_work_fn kernels[] = {count_call}, merge = count_call, join = count_call;
    static uint32_t progress[1 << 14];
    void *user = NULL;
    const ptowsp_output output = ptowsp_output_to_buffer(&buffer);
    call_count = 0;
#include "12_1.inc"
    CHECK(ptowsp_prefix_progress_size(&plan) <= sizeof progress / sizeof progress[0] &&
          call_count > 0 && strstr(printed, "prefix plan: 2 requests"));
    return 0;
}

PIECE(section_12) {
    CHECK(run_section_12() == 0);
}

// -- modules --------------------------------------------------------------------------------------

PIECE(section_14_loops) {
    ptowsp_task_desc short_task = task_of(simple("short", 0, 0));
    ptowsp_task_desc long_task = task_of(simple("long", 0, 0));
#include "14_1.inc"
    compile();
}

PIECE(section_14_plan) {
    ptowsp_task_desc whole = task_of(simple("whole", 0, 1)), part = task_of(simple("part", 0, 1));
    ptowsp_task_desc join = task_of(simple("join", 0, 1));
    whole.views[0].tensor = join.views[0].tensor = vector("out", 8);
    part.views[0].tensor = vector("states", 64);
#include "14_2.inc"
    compile();
}

PIECE(section_14_tensors) {
    const ptowsp_axis tokens = ptowsp_axis_dynamic(m, "tokens");
    {
#include "14_3.inc"
        CHECK(hidden.id != 0);
    }
#include "27_1.inc"
    CHECK(w.id != 0);
}

#include "15_1.inc"

PIECE(section_15_source) {
    CHECK(ptowsp_kernel_make(m, &desc).id && strstr(kernels_source, "*= 2"));
    float x = 4;
    const ptowsp_tile tile = {.data = &x};
    const ptowsp_task task = {.tiles = &tile};
    CHECK(scale(&task, NULL) == 100 && x == 8);
}

PIECE(section_15_pto) {
#include "15_2.inc"
    CHECK(ptowsp_kernel_make(m, &desc).id != 0);
}

PIECE(section_26_collective) {
    const ptowsp_tensor partial = vector("partial", 1);
#include "26_1.inc"
    PTOWSP_WORKLOAD(m, "w") {
        ptowsp_task_make(m, &task);
    }
    compile();
}

PIECE(section_27_rules) {
    const ptowsp_kernel matmul = simple("matmul", 0, 3), norm = simple("norm", 0, 2);
    const ptowsp_kernel attend = simple("attend", 0, 4);
#include "27_2.inc"
}

// -- tile kernels ---------------------------------------------------------------------------------

PIECE(section_24_softmax) {
#include "24_1.inc"
    CHECK(softmax.id != 0);
}

PIECE(section_24_loop) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "loop"});
    ptowsp_value a = ptowsp_tile_in(k, "a", PTOWSP_F32, 64, 256);
    ptowsp_value b = ptowsp_tile_in(k, "b", PTOWSP_F32, 256, 64);
    ptowsp_value c = ptowsp_tile_out(k, "c", PTOWSP_F32, 64, 64);
#include "24_2.inc"
    CHECK(ptowsp_kernel_end(k).id != 0);
}

PIECE(section_24_panels) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "panels"});
    ptowsp_value a = ptowsp_tile_in(k, "a", PTOWSP_F16, 256, 1024);
    ptowsp_value b = ptowsp_tile_in(k, "b", PTOWSP_F16, 512, 1024);
    ptowsp_value c = ptowsp_tile_out(k, "c", PTOWSP_F32, 256, 512);
#include "24_3.inc"
    CHECK(ptowsp_kernel_end(k).id != 0);
}

PIECE(section_24_preload) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "preload"});
    ptowsp_value q = ptowsp_tile_in(k, "q", PTOWSP_F32, 64, 64);
    ptowsp_value kt = ptowsp_tile_in(k, "kt", PTOWSP_F32, 64, 512);
    ptowsp_value v = ptowsp_tile_in(k, "v", PTOWSP_F32, 512, 64);
    ptowsp_value out = ptowsp_tile_out(k, "out", PTOWSP_F32, 64, 64);
    ptowsp_value zero = ptowsp_tile_full(k, PTOWSP_F32, 64, 64, 0), none = {NULL, 0}, acc = zero;
#include "24_4.inc"
    ptowsp_tile_store(out, acc);
    CHECK(ptowsp_kernel_end(k).id != 0);
}

PIECE(section_24_instruction) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "instruction"});
    ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, 64, 64);
    ptowsp_value y = ptowsp_tile_out(k, "y", PTOWSP_F32, 64, 64);
#include "24_5.inc"
    ptowsp_tile_store(y, t);
    CHECK(ptowsp_kernel_end(k).id != 0);
}

PIECE(section_24_timing) {
#include "24_6.inc"
    CHECK(cost.timing->clock_mhz == 1500);
}

// -- workloads ------------------------------------------------------------------------------------

PIECE(section_17_tiers) {
    ptowsp_task_desc short_task = task_of(simple("short", 0, 0));
    ptowsp_task_desc long_task = task_of(simple("long", 0, 0));
    const ptowsp_axis units = ptowsp_axis_plan(m, "kv");
    PTOWSP_WORKLOAD(m, "w"){
#include "17_1.inc"
    } compile();
}

PIECE(section_17_choice) {
    const ptowsp_kernel gemm_16 = simple("gemm_16", 2, 0), gemm_128 = simple("gemm_128", 2, 0);
#include "17_2.inc"
    CHECK(ptowsp_kernel_choice(m, &desc).id != 0);
}

PIECE(section_17_list) {
    const ptowsp_kernel load = simple("load", 0, 0), add = simple("add", 0, 0);
#include "17_3.inc"
}

PIECE(section_25) {
    const ptowsp_axis tiles = ptowsp_axis_dense(m, "tiles", 8);
    const ptowsp_axis workers = ptowsp_axis_dense(m, "workers", 2);
    ptowsp_task_desc load = task_of(simple("load", 1, 0));
    ptowsp_task_desc compute = task_of(simple("compute", 1, 0));
    PTOWSP_WORKLOAD(m, "w"){
#include "25_1.inc"
    } compile();
    CHECK(ptowsp_run_create(context, program, &runs[0]) == PTOWSP_OK);
    CHECK(timed()->makespan_cycles == 950);  // the last of 8 tokens: 800 + 50 + 100
}

PIECE(section_18) {
    ptowsp_schedule schedule;
    memset(&schedule, 0, sizeof schedule);
#include "18_1.inc"
#include "18_2.inc"
    CHECK(schedule.control.threads == 2);
    simple("load", 0, 0);
    simple("store", 0, 0);
    ptowsp_task_desc task = task_of(simple("other", 0, 0));
    PTOWSP_WORKLOAD(m, "w") {
        ptowsp_task_make(m, &task);
    }
    ptowsp_program_desc desc = {.schedule = &schedule};
    CHECK(ptowsp_program_create(context, m, &desc, &program) == PTOWSP_OK);
}

// -- runs -----------------------------------------------------------------------------------------

static const char batch_text[] = "module m\naxis batch dynamic\n"
                                 "kernel step(axes 0) vector, 100 cycles, time only\n"
                                 "workload w\n  parallel b in batch\n    task step()\n";

PIECE(section_21) {
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    run_text(batch_text, 2);
    ptowsp_run_bind_size(runs[0], "batch", 3);
#include "21_1.inc"
    CHECK(ptowsp_run_wait(runs[1]) == PTOWSP_OK && ptowsp_run_result(runs[0])->task_count == 3 &&
          ptowsp_run_result(runs[1])->task_count == 7);
}

PIECE(section_21_bind) {
    const int32_t kv[3] = {5, 0, 7};
    float rows[3][64];
    const ptowsp_buffer q = {rows, sizeof rows, PTOWSP_F32, 2, {3, 64}, {0}};
    run_text("module m\naxis batch dynamic\naxis kv ragged\ntensor q f32 [?, 64] global\n"
             "kernel step(axes 0) vector, 100 cycles, time only\nworkload w\n"
             "  parallel b in batch\n    parallel token in kv[b]\n      task step()\n",
             1);
    ptowsp_run *run = runs[0];
#include "21_2.inc"
    CHECK(timed()->task_count == 12);
}

static ptowsp_status bind(void *user, ptowsp_run *run) {
    return ptowsp_run_bind_size(run, "batch", *(int *)user);
}

PIECE(section_22) {
    run_text(batch_text, 0);
    ptowsp_module *module = m;
    const ptowsp_expr key = ptowsp_task_arg(m, 0);
    int step = 5;
    ptowsp_search_result results[8];
    ptowsp_search_summary summary;
    const ptowsp_output output = ptowsp_output_to_buffer(&buffer);
#include "22_1.inc"
    CHECK(summary.result_count > 0 && strstr(printed, "schedules executed"));
}

static ptowsp_status step(void *user) {
    (*(int *)user)++;
    return PTOWSP_OK;
}

PIECE(section_29) {
    ptowsp_module *module = m;
    const ptowsp_kernel attend = simple("attend", 0, 0);
    const uint64_t batch = 30, kv = 4000;
    int it = 0;
    ptowsp_measurement measured;
    ptowsp_tuning_value value = {.count = 0};
    remove("tuning.txt");
#include "29_1.inc"
    CHECK(it > 0 && value.count == 1);
    ptowsp_tuning_destroy(tuning);
}

static ptowsp_status factor(void *user, uint64_t task, uint32_t lane) {
    (void)lane;
    *(int *)user = 10 * *(int *)user + 1 + (int)task;
    return PTOWSP_OK;
}

static int has_next_step(const int *matrix) {
    return *matrix < 1000;
}

PIECE(section_23) {
    int matrix = 0;
    uint64_t a, b;
    ptowsp_status status = PTOWSP_BUSY;
#include "23_1.inc"
    CHECK(status == PTOWSP_OK && matrix == 1212);
    ptowsp_graph_destroy(graph);
}

// The source of section 15, in a tree.
PIECE(section_30) {
    static const ptowsp_pto_source source = {
        .text = "__global__ AICORE void add(__gm__ float *z, __gm__ float *x, int n) {\n"
                "    pto::Tile<pto::TileType::Vec, float, 64, 128> t;\n"
                "    pto::GlobalTensor<float, pto::Shape<1, 1, 1, 64, 128>,\n"
                "                      pto::Stride<1, 1, 1, 128, 1>> in(x), out(z);\n"
                "    TASSIGN(t, 0);\n    TLOAD(t, in);\n    TSTORE(out, t);\n    (void)n;\n}\n",
        .args = {{.value = PTOWSP_PTO_DATA, .index = 1},
                 {.value = PTOWSP_PTO_DATA, .index = 0},
                 {.value = PTOWSP_PTO_COLS, .index = 0}}};
    ptowsp_kernel_desc desc = {
        .name = "add",
        .pto = &source,
        .tiles = {{"x", PTOWSP_IN, PTOWSP_F32, 64, 128}, {"z", PTOWSP_OUT, PTOWSP_F32, 64, 128}}};
    const ptowsp_tensor_desc matrix = {
        .name = "m", .dtype = PTOWSP_F32, .rank = 2, .shape = {64, 128}};
    ptowsp_task_desc of = {.kernel = ptowsp_kernel_make(m, &desc)};
    of.views[0].tensor = of.views[1].tensor = ptowsp_tensor_make(m, &matrix);
    PTOWSP_WORKLOAD(m, "w") {
        ptowsp_task_make(m, &of);
    }
    compile();
    const ptowsp_npu_build_desc build = {.cache_directory = "measured", .options = "-O0"};
    ptowsp_kernel_stats stats = {0};
    ptowsp_npu *npu = NULL;
    CHECK(ptowsp_npu_build(context, program, &build, &npu) == PTOWSP_OK);
#include "30_1.inc"
    // Bytes by the bandwidths of section 24: far more than a cycle for each 256 of them.
    CHECK(stats.cycles > 2 * 128 && desc.cycles == stats.cycles);
    ptowsp_npu_destroy(npu);
}

// One task waits for another, and they share no bytes.
PIECE(section_31) {
    static const char deps[] =
        "{\"tasks\":[{\"task_id\":0,\"kernel_ids\":[-1,7,-1]},{\"task_id\":1,\"kernel_ids\":[-1,1,-"
        "1]}],"
        "\"tensors\":[],\"edges\":[{\"pred\":0,\"succ\":1,\"source\":\"explicit\"}]}";
    const ptowsp_dump_desc desc = {.deps = {deps, sizeof deps - 1}};
    const uint64_t task_id = 1;
    const ptowsp_output output = ptowsp_output_to_buffer(&buffer);
    ptowsp_dump_report report = {0};
    ptowsp_dump_rings rings;
    const ptowsp_dump_replay how = {0};
    ptowsp_dump_replayed replayed;
    ptowsp_dump *dump = NULL;
#include "31_1.inc"
    CHECK(report.is_clean);
}

// Appendix A.
PIECE(section_33) {
    const ptowsp_kernel kernel = simple("read", 0, 0);
    PTOWSP_WORKLOAD(m, "tasks") {
        ptowsp_task_make(m, &(ptowsp_task_desc){.kernel = kernel});
    }
    CHECK(ptowsp_program_create(context, m, NULL, &program) == PTOWSP_OK);
#include "33_1.inc"
}

int main(void) {
    for (piece = 0; piece < piece_count; piece++) {
        if (ptowsp_context_create(NULL, &context) || ptowsp_module_create(context, NULL, &m)) {
            return 1;
        }
        pieces[piece].run();
        CHECK(ptowsp_module_error(m).status == PTOWSP_OK);
        ptowsp_run_destroy(runs[0]);
        ptowsp_run_destroy(runs[1]);
        ptowsp_program_destroy(program);
        ptowsp_module_destroy(m);
        ptowsp_context_destroy(context);
        runs[0] = runs[1] = NULL;
        program = NULL;
    }
    return is_bad || piece_count == 0;
}
