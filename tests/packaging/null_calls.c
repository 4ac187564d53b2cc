// Every public function with NULL for each of its pointers in turn, and for each pointer of the
// structures that it reads, while all else is valid. null_test.sh makes null_calls.h from ptowsp.h
// and null_values: a row for each function, parameter and field. Each call runs in a process of its
// own.
//
// The rule: INVALID_PARAMS, with a text where a context or module is reachable. Functions without a
// status return zero. A pointer may be NULL where null_values says so. An object itself (the first
// parameter) must not be NULL: builds with assertions say so.
//
// The same valid calls, made while their context is busy and with each of their allocations
// refused, leave a text for every error.

#define _POSIX_C_SOURCE 200809L
#include "ptowsp.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const char stale[] = "stale";
static const char *at = "";  // the call, for messages
static char how[200];        // what of it is NULL
static _Alignas(64) char room[1 << 16], written[1 << 16];
static size_t refuse_at;  // the allocation that is refused, from 1; 0: none
static size_t refused_count;

static void *resize(void *user, void *ptr, size_t old_size, size_t new_size) {
    (void)user, (void)old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    if (refuse_at > 0 && --refuse_at == 0) {
        refused_count++;
        return NULL;
    }
    return realloc(ptr, new_size);
}

static void must(bool is_good, const char *what) {
    if (!is_good) {
        printf("null: %s: %s: the sample failed\n", at, what);
        fflush(stdout);
        _exit(3);
    }
}
#define MUST(call) must(call, #call)

// -- samples --------------------------------------------------------------------------------------

static void *copy_of(const void *data, size_t size) {
    void *copy = malloc(size);
    must(copy != NULL, "copy_of");
    return memcpy(copy, data, size);
}
#define COPY(type, ...)   ((type *)copy_of(&(type)__VA_ARGS__, sizeof(type)))
#define KEEP(type, value) ((type *)copy_of((const type[1]){value}, sizeof(type)))

// A function that makes an object, or goes on with one, by a call; and one that fills a structure
// that stays.
#define MAKES(type, name, first, call)                                                             \
    static type *name(void) {                                                                      \
        type *made = first;                                                                        \
        MUST(call == PTOWSP_OK);                                                                   \
        return made;                                                                               \
    }
#define FILLS(type, name, call)                                                                    \
    static type *name(void) {                                                                      \
        static type made;                                                                          \
        MUST(call == PTOWSP_OK);                                                                   \
        return &made;                                                                              \
    }

static ptowsp_context *the_context;

static ptowsp_context *context(void) {
    if (!the_context) {
        ptowsp_context_desc desc = {.resize = resize};
        MUST(ptowsp_context_create(&desc, &the_context) == PTOWSP_OK);
    }
    return the_context;
}

static void nothing(const ptowsp_work *work, uint32_t lane, void *user) {
    (void)work, (void)lane, (void)user;
}
static ptowsp_status no_lead(void *user) {
    (void)user;
    return PTOWSP_OK;
}

static void no_range(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    (void)user, (void)begin, (void)end, (void)lane;
}
static bool no_output(void *user, const void *data, size_t size) {
    (void)user, (void)data, (void)size;
    return true;
}
static bool no_edge(void *user, const ptowsp_edge *edge) {
    (void)user, (void)edge;
    return true;
}
static bool no_decision(void *user, const ptowsp_decision *decision) {
    (void)user, (void)decision;
    return true;
}
static ptowsp_status no_file(void *user, const char *path, const char *data, size_t size) {
    (void)user, (void)path, (void)data, (void)size;
    return PTOWSP_OK;
}
static ptowsp_status no_work(void *user) {
    (void)user;
    return PTOWSP_OK;
}
static ptowsp_status no_task(void *user, uint64_t task, uint32_t lane) {
    (void)user, (void)task, (void)lane;
    return PTOWSP_OK;
}
static ptowsp_cycles no_kernel(const ptowsp_task *task, void *user) {
    (void)task, (void)user;
    return 1;
}
static const ptowsp_kernel_fn kernels[3] = {no_kernel, no_kernel, no_kernel};
static const ptowsp_work_fn table[3] = {nothing, nothing, nothing};
static const ptowsp_output output = {no_output, NULL};

MAKES(ptowsp_module, module_empty, NULL, ptowsp_module_create(context(), NULL, &made))

static ptowsp_module *the_module;
static const ptowsp_kernel kernel = {1}, tile_kernel = {2};  // as declared
static const ptowsp_axis axis = {1}, ragged = {2}, sparse = {3};
static const ptowsp_tensor tensor = {1};
static ptowsp_channel channel;
static ptowsp_task_desc task;
static bool has_transient = true;
static float data_of_b[64];
static const uint64_t args_of_b[] = {1, 64};
static const ptowsp_tile tiles_of_b[] = {{data_of_b, 64, 1}};
static const ptowsp_task task_of_b = {args_of_b, 2, 2, 0, 1, tiles_of_b, 0, NULL, 0};

static const char declarations[] =
    "module module\nmesh tp 2\naxis n dynamic\naxis r ragged\naxis c sparse\naxis kv plan\nsymbol "
    "s\n"
    "array a i32\ntensor x f32 [?, 64] global\n"
    "kernel k(axes 1, out x f32 1 x 64) vector, 10 cycles\n"
    "kernel b(axes 0, inout x f32 1 x 64) vector, 9 instructions\n  machine \"910B\"\n"
    "  %1 = parameter x\n  %2 = add %1, %1 : f32 1 x 64\n  store %1, %2\n";

// The declarations of the sample, and more.
static ptowsp_module *module_of(const char *more) {
    static const ptowsp_parse_kernel k = {
        .name = "k",
        .fn = no_kernel,
        .source.text = "static ptowsp_cycles k(const ptowsp_task *task, void *user) {\n"
                       "    return (void)task, (void)user, 1;\n}\n"};
    const ptowsp_parse_desc attached = {&k, 1, 0};
    char text[1000];
    const int length =
        snprintf(text, sizeof text, "%s%s%s", declarations,
                 has_transient ? "tensor t f32 [1, 64] global transient\n" : "", more);
    MUST(ptowsp_module_parse(context(), text, (size_t)length, &attached, &the_module, NULL) ==
         PTOWSP_OK);
    task = (ptowsp_task_desc){.kernel = kernel, .axes = {ptowsp_i64(the_module, 0)}};
    task.views[0].tensor.id = has_transient ? 2 : 1;
    return the_module;
}

static ptowsp_module *module(void) {
    return module_of("");
}

static ptowsp_module *in_workload(void) {
    ptowsp_module *m = module_of("workload callee(p i64)\n");
    ptowsp_workload_begin(m, "w");
    return m;
}

// Without a mesh, over which lists are not placed.
static ptowsp_module *in_plain_workload(void) {
    the_module = module_empty();
    ptowsp_workload_begin(the_module, "w");
    return the_module;
}

static ptowsp_module *in_pipeline(void) {
    ptowsp_module *m = in_workload();
    ptowsp_channel_desc desc = {.name = "ch", .depth = 1};
    ptowsp_pipeline_begin(m, "p", NULL, 0);
    channel = ptowsp_channel_make(m, &desc);
    return m;
}

static ptowsp_module *in_open_process(void) {
    ptowsp_module *m = in_pipeline();
    ptowsp_process_begin(m, "one");
    return m;
}

static ptowsp_module *in_when(void) {
    ptowsp_module *m = in_workload();
    ptowsp_when_begin(m, ptowsp_bool(m, true));
    ptowsp_scope_end(m);
    return m;
}

static ptowsp_module *in_process(bool is_sender, bool has_event) {
    ptowsp_module *m = in_pipeline();
    channel = has_event ? ptowsp_event_make(m, "event") : channel;
    ptowsp_process_begin(m, "one");
    if (is_sender) {
        ptowsp_produces(m, channel);
    } else {
        ptowsp_consumes(m, channel);
    }
    return m;
}

static ptowsp_module *module_done(void) {
#define WORKLOADS(tensor)                                                                          \
    "workload callee(p i64)\nworkload w\n  task k(0) x = " tensor                                  \
    "\n  task b() x = x\n  pipeline p\n    channel ch depth 1 latency 0\n"                         \
    "    process send produces ch\n      send ch(1u)\n"                                            \
    "    process receive consumes ch\n      consume token from ch\n"
    return module_of(has_transient ? WORKLOADS("t") : WORKLOADS("x"));
}

static ptowsp_body *the_body;
static ptowsp_body *body(void) {
    static ptowsp_body_desc desc = {.name = "body"};
    ptowsp_body *b = the_body = ptowsp_kernel_begin(module(), &desc);
    ptowsp_value y = ptowsp_tile_inout(b, "y", PTOWSP_F32, 1, 64);
    ptowsp_tile_store(y, ptowsp_tile_add(y, y));
    return b;
}

MAKES(ptowsp_program, program, NULL, ptowsp_program_create(context(), module_done(), NULL, &made))

// Its tensor is bound to memory.
static ptowsp_run *run_of(const ptowsp_program *of, void *memory) {
    ptowsp_run *made = NULL;
    const ptowsp_buffer x = {memory, 0, PTOWSP_F32, 2, {1, 64}, {0}};
    MUST(ptowsp_run_create(context(), of, &made) == PTOWSP_OK);
    MUST(ptowsp_run_bind_tensor(made, "x", &x) == PTOWSP_OK);
    return made;
}

MAKES(ptowsp_run, run, run_of(program(), room),
      ptowsp_run_record(made, COPY(ptowsp_record_options, {.level = PTOWSP_RECORD_EDGES})))

MAKES(ptowsp_run, run_done, run(),
      ptowsp_run_execute(made, COPY(ptowsp_run_options, {.record_tasks = true})))

static ptowsp_run_group *group(void) {
    static ptowsp_run *runs[3];
    static ptowsp_run_group made = {runs, 3, {.node_size = 0}, 0};
    for (uint32_t i = 0; i < 3; i++) {
        ptowsp_run_ranks ranks = {.rank = i, .rank_count = 3};
        runs[i] = run();
        MUST(ptowsp_run_bind_ranks(runs[i], &ranks) == PTOWSP_OK);
    }
    return &made;
}

MAKES(ptowsp_run_group, group_done, group(), ptowsp_run_group_simulate(context(), made, NULL, NULL))

static ptowsp_graph_task_desc graph_task = {.fn = no_task, .name = "task"};

static ptowsp_graph *graph(void) {
    ptowsp_graph *made = NULL;
    MUST(ptowsp_graph_create(context(), NULL, &made) == PTOWSP_OK);
    for (uint32_t i = 0; i < 3; i++) {
        MUST(ptowsp_graph_task_make(made, &graph_task, NULL) == PTOWSP_OK);
    }
    return made;
}

MAKES(ptowsp_graph, graph_done, graph(), ptowsp_graph_run(made))

MAKES(ptowsp_device, device, NULL, ptowsp_device_open(context(), NULL, &made))

static void *device_memory(ptowsp_device *of) {
    void *made = NULL;
    MUST(ptowsp_device_alloc(of, "memory", 64, &made) == PTOWSP_OK);
    return made;
}

static ptowsp_run *run_on(ptowsp_device *of) {
    void *memory = NULL;
    has_transient = false;
    ptowsp_program *made = program();
    has_transient = true;
    MUST(ptowsp_device_alloc(of, "x", 256, &memory) == PTOWSP_OK);
    return run_of(made, memory);
}

static const ptowsp_hub_desc hub_desc = {.rank_count = 1};
MAKES(ptowsp_hub, hub, NULL, ptowsp_hub_create(context(), &hub_desc, &made))

static const ptowsp_ranks_desc *ranks_desc(void) {
    return COPY(ptowsp_ranks_desc, {.rank_count = 1, .transport = ptowsp_hub_transport(hub(), 0)});
}

MAKES(ptowsp_ranks, ranks, NULL, ptowsp_ranks_create(context(), ranks_desc(), &made))

static ptowsp_tuning_key tuning_key = {1, "cpu", {1}, PTOWSP_TUNING_NS};

static ptowsp_tuning *tuning(const char *path) {
    ptowsp_tuning *made = NULL;
    MUST(ptowsp_tuning_create(context(), path, &made) == PTOWSP_OK);
    MUST(ptowsp_tuning_add(made, &tuning_key, 1, "label") == PTOWSP_OK);
    return made;
}

static ptowsp_rails_desc rails_desc = {.variant_count = 2};

FILLS(ptowsp_rails, rails, ptowsp_rails_init(&rails_desc, 0, &made))

// Plans: three sequences, of which the first is split.
static const int32_t lengths[3] = {5000, 100, 50};
static const ptowsp_batch batch = {lengths, 3, 1};
static ptowsp_binding step_bindings[3] = {
    {.kind = PTOWSP_BIND_LENGTHS, .name = "r", .data = lengths, .count = 3, .dtype = PTOWSP_I32},
    {.kind = PTOWSP_BIND_SLOT, .value = 1},
    {.kind = PTOWSP_BIND_TRANSIENTS}};
static ptowsp_attention_batch attention_batch = {lengths, NULL, 3};
static ptowsp_attention_config attention_config = {.kv_head_count = 1, .lane_count = 3};
static ptowsp_attention_sizes attention_sizes;
static const uint32_t numbers[8] = {0, 1, 2, 3, 4, 5, 6, 7};
static _Alignas(64) char block[1 << 16], block_of_tree[1 << 16];

static ptowsp_attention_sizes *sizes(void) {
    MUST(ptowsp_attention_size(&attention_batch, &attention_config, &attention_sizes, NULL) ==
         PTOWSP_OK);
    return &attention_sizes;
}

static ptowsp_attention_plan *plan(void) {
    static ptowsp_attention_plan made;
    MUST(ptowsp_attention_place(sizes(), block, sizeof block, &made) == PTOWSP_OK);
    MUST(ptowsp_attention_generate(&attention_batch, &attention_config, &made, NULL) == PTOWSP_OK);
    return &made;
}

static ptowsp_attention_job *job(void) {
    static uint32_t progress[4096];
    static ptowsp_attention_job made;
    made.plan = plan();
    made.table = table;
    made.table_count = 3;
    made.merge = nothing;
    made.progress = progress;
    must(ptowsp_attention_progress_size(made.plan) <= COUNT_OF(progress), "progress");
    return &made;
}

static const int32_t ids[6] = {0, 1, 1, 2, 0, 2};
static const ptowsp_moe_routes routes = {ids, 3, 2, 3, 1};
static uint32_t moe_counts[8], moe_offsets[8], moe_pairs[64], moe_rows[64];

static ptowsp_moe_order *order(void) {
    static ptowsp_moe_order made = {moe_counts, moe_offsets, moe_pairs, moe_rows, NULL,
                                    64,         0,           0,         0,        0};
    MUST(ptowsp_moe_sort(&routes, &made, NULL) == PTOWSP_OK);
    return &made;
}

static const ptowsp_moe_config moe_config = {.expert_count = 3, .lane_count = 3};

static ptowsp_moe_sizes *moe_sizes(void) {
    static ptowsp_moe_sizes made;
    order();
    MUST(ptowsp_moe_size(COPY(ptowsp_moe_batch, {moe_counts, moe_offsets}), &moe_config, &made,
                         NULL) == PTOWSP_OK);
    return &made;
}

static ptowsp_moe_plan *moe_plan(void) {
    static _Alignas(8) char moe_block[4096];
    static ptowsp_moe_plan made;
    MUST(ptowsp_moe_place(moe_sizes(), moe_block, sizeof moe_block, &made) == PTOWSP_OK);
    MUST(ptowsp_moe_generate(COPY(ptowsp_moe_batch, {moe_counts, moe_offsets}), &moe_config, &made,
                             NULL) == PTOWSP_OK);
    return &made;
}

static const ptowsp_moe_cluster cluster = {.expert_count = 3, .replica_count = 6, .rank_count = 2};
static const float loads[8] = {1, 2, 3, 4, 5, 6, 7, 8};

static ptowsp_moe_placement *placement(void) {
    static int32_t replicas[8], counts[8], expert_replicas[64];
    static ptowsp_moe_placement made = {replicas, counts, expert_replicas, 4};
    MUST(ptowsp_moe_rebalance(&cluster, loads, 1, room, sizeof room, &made, NULL) == PTOWSP_OK);
    return &made;
}

// All share the first block of 2,500 tokens, and two the second: cascades pay.
static const int32_t prefix_lengths[3] = {5000, 5000, 3000};
static const uint64_t block_ids[6] = {1, 2, 1, 2, 1, 3}, block_begin[4] = {0, 2, 4, 6};
static const ptowsp_attention_batch prefix_attention = {prefix_lengths, NULL, 3};
static const ptowsp_prefix_batch prefix_batch = {
    {prefix_lengths, NULL, 3}, block_ids, block_begin, 2500};
static const ptowsp_prefix_limits prefix_limits = {3, 6};

static ptowsp_prefix_tree *tree(void) {
    static ptowsp_prefix_tree made;
    MUST(ptowsp_prefix_tree_place(&prefix_limits, block_of_tree, sizeof block_of_tree, &made) ==
         PTOWSP_OK);
    MUST(ptowsp_prefix_build(&prefix_batch, &made, NULL) == PTOWSP_OK);
    return &made;
}

FILLS(ptowsp_prefix_sizes, prefix_sizes,
      ptowsp_prefix_size(&prefix_attention, &attention_config, tree(), &made, NULL))

static ptowsp_prefix_plan *prefix_plan(void) {
    static ptowsp_prefix_plan made;
    MUST(ptowsp_prefix_place(prefix_sizes(), block, sizeof block, &made) == PTOWSP_OK);
    MUST(ptowsp_prefix_generate(&prefix_attention, &attention_config, tree(), &made, NULL) ==
         PTOWSP_OK);
    return &made;
}

// Attention over tokens that are all alike: strides are 0.
static const float attend_row[16];
static const ptowsp_attend_cache attend_cache = {.keys = attend_row,
                                                 .values = attend_row,
                                                 .type = PTOWSP_ATTEND_F32,
                                                 .key_dim = 16,
                                                 .value_dim = 16};
static const ptowsp_attend_step *attend_step(void) {
    static ptowsp_attend_step made;
    static float outputs[16];
    made.batch = &attention_batch;
    made.config = &attention_config;
    made.plan = plan();
    made.prefix = NULL;
    made.queries = attend_row;
    made.outputs = outputs;
    made.pages = numbers;
    return &made;
}

static const ptowsp_attend_limits *attend_limits(void) {
    static ptowsp_attend_limits made;
    made.plan = *sizes();
    made.join_count = 64;
    made.value_dim = 16;
    made.worker_count = 1;
    return &made;
}

static const ptowsp_attend_job *attend_job(void) {
    static ptowsp_attend_job made;
    static _Alignas(64) char memory[1 << 16];
    made.cache = &attend_cache;
    made.step = attend_step();
    MUST(ptowsp_attend_place(attend_limits(), memory, sizeof memory, &made.memory, NULL) ==
         PTOWSP_OK);
    return &made;
}

static const ptowsp_attend_job *attend_tree_job(void) {
    static ptowsp_attend_job made;
    static ptowsp_attend_step step;
    made = *attend_job();
    step = *attend_step();
    step.batch = &prefix_attention;
    step.prefix = prefix_plan();
    step.plan = &step.prefix->attention;
    made.step = &step;
    made.memory.slot_capacity = 64;
    return &made;
}

static const uint32_t parents[3] = {PTOWSP_NO_NODE, 0, 0}, node_tokens[3] = {16, 4, 4};
static const uint32_t request_nodes[3] = {0, 1, 2};
static const ptowsp_prefix_given given = {
    {lengths, NULL, 3}, parents, node_tokens, 3, request_nodes};

static const ptowsp_mesh mesh = {1, {"tp"}, {2}};
static const ptowsp_span spans[3] = {{1, 2, 0, 0}, {2, 3, 0, 0}, {3, 4, 0, 1}};
static const char *const names[3] = {"a", "b", "c"};
static const ptowsp_span_arrow arrows[3] = {{0, 1}, {0, 2}, {1, 2}};
static const ptowsp_span_set span_set = {.title = "spans",
                                         .spans = spans,
                                         .count = 3,
                                         .names = names,
                                         .name_count = 3,
                                         .rank_lanes = 3,
                                         .lane_names = names,
                                         .arrows = arrows,
                                         .arrow_count = 3};
static ptowsp_what_if what_ifs[3];
static const ptowsp_what_if *what_ifs_of(const ptowsp_run *of) {
    (void)of;
    for (uint32_t i = 0; i < 3; i++) {
        what_ifs[i].kernel = kernel.id;
        what_ifs[i].percent = 50;
    }
    return what_ifs;
}

static const ptowsp_issue issues[3] = {0};
static const ptowsp_ready orders[3] = {0};
static const uint32_t windows[3] = {0, 1, 2}, lane_counts[3] = {1, 2, 3};
static ptowsp_status bind_sample(void *user, ptowsp_run *of) {
    (void)user;
    const ptowsp_buffer x = {room, 0, PTOWSP_F32, 2, {1, 64}, {0}};
    return ptowsp_run_bind_tensor(of, "x", &x);
}
static const ptowsp_search_desc search_desc = {.orders = orders,
                                               .order_count = 1,
                                               .windows = windows,
                                               .window_count = 3,
                                               .lane_counts = lane_counts,
                                               .lane_count_count = 3,
                                               .issues = issues,
                                               .issue_count = 1,
                                               .thread_counts = lane_counts,
                                               .thread_count_count = 3,
                                               .base.control = {PTOWSP_CONTROL_AICPU, 1, 1, {0}},
                                               .bind = bind_sample};
static ptowsp_search_result results[8];

static const char *program_text(size_t *length) {
    static char data[1 << 16];
    static size_t known;
    if (!known) {
        ptowsp_output_buffer buffer = {data, sizeof data, 0};
        MUST(ptowsp_program_save(context(), module_done(), NULL,
                                 ptowsp_output_to_buffer(&buffer)) == PTOWSP_OK);
        known = buffer.length;
    }
    *length = known;
    return data;
}
static size_t text_length;
static ptowsp_view *load_view(void) {
    static ptowsp_view view;
    const ptowsp_tensor_desc desc = {"i", PTOWSP_U64, 2, {1, 1}, PTOWSP_LOCATION_GLOBAL};
    view.tensor = ptowsp_tensor_make(the_module, &desc);
    return &view;
}
static ptowsp_npu *the_npu;
static ptowsp_program *the_program;  // of the tree
static const char *fresh_directory(void) {
    static char name[40];
    snprintf(name, sizeof name, "tree%ld", (long)getpid());
    return name;
}
MAKES(ptowsp_context, fresh_context, NULL, ptowsp_context_create(NULL, &made))
#define DUMP_TEXT "{\"tasks\":[{\"task_id\":\"0\"}]}"
#define DUMP_LANES                                                                                 \
    "{\"metadata\":{\"clock_freq_hz\":1000000,\"num_cores\":1,\"core_types\":[\"aiv\"]},"          \
    "\"aicore_tasks\":[[0,0,1,10,20,0]]}"
static const ptowsp_dump_desc dump_desc = {.deps = {DUMP_TEXT, sizeof DUMP_TEXT - 1},
                                           .swimlane = {DUMP_LANES, sizeof DUMP_LANES - 1}};
MAKES(ptowsp_dump, dump, NULL, ptowsp_dump_open(context(), &dump_desc, &made))

static const int64_t wide[8] = {1, 1, 1, 1, 1, 1, 1, 1};
static const uint64_t samples[3] = {1, 2, 3};
static uint32_t next_replicas[8];
static int32_t o_indptr[64], merge_indptr[64], request_indices[64], kv_tile_indices[64];
MAKES(ptowsp_work, made_work, NULL, ptowsp_work_create(context(), 3, &made))
static const ptowsp_instruction_desc *instruction(ptowsp_body *of) {
    static ptowsp_instruction_desc made_desc = {.name = "TADD"};
    ptowsp_alloc_desc like = {.dtype = PTOWSP_F32, .rows = 1, .cols = 64};
    made_desc.dst[0] = ptowsp_tile_alloc(of, &like);
    made_desc.src[0] = ptowsp_tile_load(ptowsp_tile_in(of, "in", PTOWSP_F32, 1, 64));
    made_desc.src[1] = made_desc.src[0];
    return &made_desc;
}
static ptowsp_module *in_other_workload(void) {
    ptowsp_module *m = module();
    ptowsp_workload_begin(m, "callee");
    return m;
}
static const char *module_text(size_t *length) {
    static char data[1 << 16];
    ptowsp_output_buffer buffer = {data, sizeof data, 0};
    ptowsp_module_print(module_done(), ptowsp_output_to_buffer(&buffer));
    *length = buffer.length;
    return data;
}
MAKES(ptowsp_run, run_started, run(), ptowsp_run_start(made, NULL))
MAKES(ptowsp_graph, graph_started, graph(), ptowsp_graph_start(made))
static const uint32_t edges[3][2] = {{0, 1}, {0, 2}, {1, 2}};
static ptowsp_graph_task_desc parts[3] = {{.fn = no_task}, {.fn = no_task}, {.fn = no_task}};
static ptowsp_cycles cycles[3];
static const uint64_t scalars[3] = {1, 2, 3};

// -- the rows -------------------------------------------------------------------------------------

enum { STATUS, VOID, VALUE };  // what a function returns
enum { GOOD, FAILS, SKIPPED };

typedef struct call_row {
    const char *name;
    int returns;
    void (*prepare)(void);
    int64_t (*call)(void);  // a status; or whether a value is not zero
    const char *handle;     // the type of an object as the first parameter, or ""
    int valid;              // of the call with valid values: GOOD, it FAILS, or is SKIPPED
} call_row;

typedef struct param_row {
    uint32_t call, index;
    const char *name;
    void *at;
    bool is_optional;
    void *count;
    size_t count_size;
} param_row;

typedef struct field_row {
    uint32_t call;
    const char *param, *name;
    void *at;
    size_t size, offset;
    size_t count, count_size;  // of its count; count_size 0: there is none
    bool is_optional;
} field_row;

static int64_t is_set(const void *value, size_t size) {
    static const char zeros[1 << 14];
    return memcmp(value, zeros, size) != 0;
}

#include "null_calls.h"

// -- calls ----------------------------------------------------------------------------------------

static int64_t set_count(void *count, size_t size, int64_t to) {
    uint32_t narrow = (uint32_t)to;
    uint64_t wide = (uint64_t)to;
    memcpy(count, size == 4 ? (void *)&narrow : (void *)&wide, size);
    return to;
}

static void complain(const char *what, const char *more) {
    printf("null: %s(%s): %s%s\n", at, how, what, more);
    fflush(stdout);
    _exit(1);
}

// An error in the context, or the module, is that of the call, in words.
static void check_text(const call_row *row, int64_t status) {
    if (row->handle[0] == '\0' || !the_context) {
        return;
    }
    ptowsp_error error = ptowsp_context_error(the_context);
    if (strcmp(error.text, stale) == 0) {
        complain("no text of ", ptowsp_status_name((ptowsp_status)status));
    }
    if (error.text[0] == '\0') {
        complain("an empty text of ", ptowsp_status_name((ptowsp_status)status));
    }
    if (error.status != (ptowsp_status)status) {
        complain("another status than its text: ", error.text);
    }
}

static bool builds(const call_row *row) {  // errors are the module's
    return row->returns != STATUS &&
           (strcmp(row->handle, "ptowsp_module*") == 0 || strcmp(row->handle, "ptowsp_body*") == 0);
}

static const call_row *busy_row;  // is called while the context is busy

static void invoke(const call_row *row, bool is_refused) {
    ptowsp_body *open = strcmp(row->handle, "ptowsp_body*") == 0 ? the_body : NULL;
    if (the_context && !busy_row) {
        ptowsp_context_fail(the_context, PTOWSP_DIFFERENT, 0, stale);
    }
    int64_t result = row->call();
    if (row->returns == STATUS) {
        if (result < 0) {
            check_text(row, result);
        }
        if (is_refused && result != PTOWSP_INVALID_PARAMS) {
            complain("returns ", ptowsp_status_name((ptowsp_status)result));
        }
    } else if (is_refused && builds(row)) {
        if (open && strcmp(row->name, "ptowsp_kernel_end") != 0) {
            ptowsp_kernel_end(open);
        }
        ptowsp_error error = ptowsp_module_error(the_module);
        if (error.status != PTOWSP_INVALID_PARAMS || error.text[0] == '\0') {
            complain("the module has ", ptowsp_status_name(error.status));
        }
    } else if (is_refused && result) {
        complain("returns a value that is not zero", "");
    }
}

static int failures, made, asserted;

static void call_params(const call_row *row, const param_row *param, bool is_pair, bool is_zero,
                        bool is_object) {
    row->prepare();
    const void *none = NULL;
    memcpy(param->at, &none, sizeof none);
    if (is_pair) {
        set_count(param->count, param->count_size, is_zero ? 0 : 3);
    }
    if (is_object) {
        row->call();
    } else {
        invoke(row, !is_zero && !param->is_optional);
    }
}

static void call_field(const call_row *row, const field_row *field) {
    row->prepare();
    static _Alignas(64) char copy[1 << 16];
    const void *from, *none = NULL;
    char *to = copy;
    memcpy(&from, field->at, sizeof from);
    memcpy(copy, from, field->size);
    memcpy(copy + field->offset, &none, sizeof none);
    memcpy(field->at, &to, sizeof to);
    if (field->count_size > 0) {
        set_count(copy + field->count, field->count_size, 3);
    }
    invoke(row, row->returns == STATUS && field->count_size > 0 && !field->is_optional);
}

static void call_busy(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    (void)user, (void)begin, (void)end, (void)lane;
    invoke(busy_row, false);
}

// In a process of its own; is_object: an assertion is as good.
typedef enum way { VALID, PARAM, PAIR, ZERO_PAIR, FIELD, BUSY, REFUSED } way;

static bool in_child(const call_row *row, way which, const void *of, size_t number,
                     bool is_object) {
    at = row->name;
    fflush(NULL);
    made++;
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        if (is_object) {
            close(2);
        }
        if (which == VALID) {
            row->prepare();
            invoke(row, false);
            if (row->valid == GOOD && the_context && row->returns == STATUS &&
                strcmp(ptowsp_context_error(the_context).text, stale) != 0) {
                complain("a valid call fails: ", ptowsp_context_error(the_context).text);
            }
            if (the_module && builds(row) && ptowsp_module_error(the_module).status) {
                complain("a valid call fails: ", ptowsp_module_error(the_module).text);
            }
        } else if (which == FIELD) {
            call_field(row, (const field_row *)of);
        } else if (which == BUSY) {
            row->prepare();
            busy_row = row;
            ptowsp_context_fail(context(), PTOWSP_DIFFERENT, 0, stale);
            if (!strstr(row->name, "_wait") && !strstr(row->name, "_poll")) {
                MUST(ptowsp_parallel_for(context(), 1, 0, call_busy, NULL) == PTOWSP_OK);
            }
        } else if (which == REFUSED) {
            row->prepare();
            refuse_at = number;
            invoke(row, false);
            _exit(refused_count > 0 ? 9 : 0);
        } else {
            call_params(row, (const param_row *)of, which != PARAM, which == ZERO_PAIR, is_object);
        }
        fflush(stdout);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    int signalled = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (is_object && signalled == SIGABRT) {
        asserted++;
    } else if (signalled) {
        printf("null: %s(%s): signal %d\n", at, how, signalled);
        failures++;
    } else if (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 9) {
        failures++;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 9;
}

int main(void) {
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    at = "setup";
    has_transient = false;
    const ptowsp_npu_build_desc build = {.compiler = "c++", .options = "-O0"};
    the_program = program();
    MUST(ptowsp_npu_build(context(), the_program, &build, &the_npu) == PTOWSP_OK);
    MUST(setenv("CXX", "false", 1) == 0);
    has_transient = true;
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        const call_row *row = &calls[i];
        if (row->valid == SKIPPED) {
            continue;
        }
        snprintf(how, sizeof how, "all valid");
        in_child(row, VALID, NULL, 0, false);
        if (!strstr(row->name, "_destroy") && !strstr(row->name, "_close")) {
            snprintf(how, sizeof how, "all valid, while the context is busy");
            in_child(row, BUSY, NULL, 0, false);
        }
        snprintf(how, sizeof how, "all valid, an allocation refused");
        for (size_t n = 1; in_child(row, REFUSED, NULL, n, false) && n < 100; n++) {
        }
    }
    for (size_t i = 0; i < COUNT_OF(params); i++) {
        const param_row *param = &params[i];
        const call_row *row = &calls[param->call];
        bool is_object = param->index == 0 && row->handle[0];
#if defined(NDEBUG)
        if (is_object) {
            continue;
        }
#endif
        snprintf(how, sizeof how, "%s NULL", param->name);
        in_child(row, PARAM, param, 0, is_object);
        if (param->count && !is_object) {
            snprintf(how, sizeof how, "%s NULL, 3 of them", param->name);
            in_child(row, PAIR, param, 0, false);
            snprintf(how, sizeof how, "%s NULL, 0 of them", param->name);
            in_child(row, ZERO_PAIR, param, 0, false);
        }
    }
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        const field_row *field = &fields[i];
        snprintf(how, sizeof how, "%s->%s NULL%s", field->param, field->name,
                 field->count_size > 0 ? ", 3 of them" : "");
        in_child(&calls[field->call], FIELD, field, 0, false);
    }
    printf("null: %zu functions, %d calls, %d asserted, %d failed\n", COUNT_OF(calls), made,
           asserted, failures);
    return failures > 0 || COUNT_OF(calls) < 360;
}
