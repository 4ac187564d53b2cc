// Draws pictures of README.md and examples/README.md, each with one time axis for two runs:
//
//      plans.svg       a decode step of a ragged batch on 8 lanes: a chunk plan, whose units go to the
//                      lane that is free first, and whose merges wait for all of them; and a balanced
//                      plan of the same batch
//      pipeline.svg    a load and three workers, with a rendezvous and with a channel of depth 2
//      ranks.svg       two stages on two ranks each, which share a link to the other node, or have
//                      one each
//
//      timelines --directory examples/pictures
//
// Without a directory it simulates, and saves nothing.
//
// All are simulated: kernels are what they cost. A unit takes 100 cycles and one for each KV token of
// each head, a merge 40 for each part; the planner is told so.

#include "ptowsp.h"

#include "common/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 8, PAGE = 16, CHUNKS = 16, UNIT_CYCLES = 100, PART_CYCLES = 40, SLOTS = 64 };

static const int32_t kv_lengths[] = {9600, 700, 2500, 310, 4200, 1100, 180, 6300, 900, 2100, 450};
enum { REQUESTS = sizeof kv_lengths / sizeof *kv_lengths };

// -- pictures -------------------------------------------------------------------------------------

// Exports of runs, one below another, in one SVG document.
typedef struct picture {
    char *text;
    size_t size, capacity;
    unsigned height;
} picture;

static bool picture_write(void *user, const void *data, size_t size) {
    picture *p = (picture *)user;
    if (p->capacity - p->size < size) {
        size_t capacity = 2 * p->capacity + size;
        char *text = (char *)realloc(p->text, capacity);
        if (!text) {
            return false;
        }
        p->text = text, p->capacity = capacity;
    }
    memcpy(p->text + p->size, data, size);
    p->size += size;
    return true;
}

static void picture_text(picture *p, const char *text) {
    if (!picture_write(p, text, strlen(text))) {
        command_fail("out of memory");
    }
}

enum { WIDTH = 960, NOTE_HEIGHT = 30 };

// Adds the timeline of a run, or of all runs of a group, over [0, end). Labels of a group are names of
// kernels alone, as a message's ranks are where its arrow begins and ends.
static void picture_add(picture *p, ptowsp_context *context, const ptowsp_run *run,
                        const ptowsp_run_group *group, const char *title, ptowsp_cycles end) {
    char place[64];
    unsigned height;
    snprintf(place, sizeof place, "<g transform=\"translate(0 %u)\">\n", p->height);
    picture_text(p, place);
    size_t begin = p->size;
    const ptowsp_export_options options = {
        .title = title, .end = end, .width = WIDTH, .is_short = group != NULL};
    const ptowsp_output output = {.write = picture_write, .user = p};
    command_check(context, group ? ptowsp_run_group_export(context, group, PTOWSP_EXPORT_SVG,
                                                           &options, output)
                                 : ptowsp_run_export(run, PTOWSP_EXPORT_SVG, &options, output));
    picture_text(p, "</g>\n");
    picture_write(p, "", 1);  // ends the text
    p->size--;
    const char *found = strstr(p->text + begin, "height=\"");
    if (!found || sscanf(found, "height=\"%u\"", &height) != 1) {
        command_fail("the export has no height");
    }
    p->height += height;
}

// Adds a line that explains the bars, in the style of the timelines above it.
static void picture_note(picture *p, const char *note) {
    char text[512];
    snprintf(text, sizeof text,
             "<rect class=\"bg\" y=\"%u\" width=\"%d\" height=\"%d\"/>\n"
             "<text class=\"u\" x=\"12\" y=\"%u\">%s</text>\n",
             p->height, WIDTH, NOTE_HEIGHT, p->height + 16, note);
    picture_text(p, text);
    p->height += NOTE_HEIGHT;
}

// Without a directory it only frees the picture.
static void picture_save(picture *p, const char *directory, const char *name) {
    char path[1024];
    if (!directory) {
        free(p->text);
        return;
    }
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *to = fopen(path, "wb");
    if (!to) {
        command_fail("%s: cannot be written", path);
    }
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" "
            "viewBox=\"0 0 %d %u\">\n%.*s</svg>\n",
            WIDTH, p->height, WIDTH, p->height, (int)p->size, p->text);
    bool is_bad = ferror(to) != 0;
    if (fclose(to) != 0 || is_bad) {
        command_fail("%s: cannot be written", path);
    }
    printf("  %s\n", path);
    free(p->text);
}

// -- runs -----------------------------------------------------------------------------------------

static ptowsp_run *run_create(ptowsp_context *context, ptowsp_module *m, const char *workload,
                              const ptowsp_schedule *schedule, ptowsp_program **out_program) {
    ptowsp_program_desc desc = {.workload = workload, .schedule = schedule};
    ptowsp_run *run;
    command_check(context, ptowsp_program_create(context, m, &desc, out_program));
    command_check(context, ptowsp_run_create(context, *out_program, &run));
    return run;
}

static ptowsp_cycles execute(ptowsp_context *context, ptowsp_run *run) {
    ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY, .record_tasks = true};
    command_check(context, ptowsp_run_execute(run, &options));
    return ptowsp_run_result(run)->makespan_cycles;
}

// -- plans of a decode step -----------------------------------------------------------------------

static ptowsp_cycles attend_cycles(const ptowsp_task *task, void *user) {
    (void)user;
    return UNIT_CYCLES + ptowsp_task_scalar(task, 0);
}

static ptowsp_cycles merge_cycles(const ptowsp_task *task, void *user) {
    (void)user;
    return PART_CYCLES * ptowsp_task_scalar(task, 0);
}

typedef struct step {
    ptowsp_module *module;
    ptowsp_kernel whole, split, merge;  // attention of a request, of a part of one; joins parts
    ptowsp_tensor slots;                // a row for each partial state: what merges wait for
} step;

static void step_kernels_make(step *s) {
    const ptowsp_tile_param out = {
        .name = "state", .direction = PTOWSP_OUT, .dtype = PTOWSP_F32, .rows = 1, .cols = 1};
    const ptowsp_tile_param in = {.name = "states",
                                  .direction = PTOWSP_IN,
                                  .dtype = PTOWSP_F32,
                                  .rows = PTOWSP_DYNAMIC,
                                  .cols = 1};
    ptowsp_kernel_desc attend = {.name = "whole",
                                 .axis_count = 1,
                                 .scalars = {{.name = "kv", .type = PTOWSP_TYPE_U64}},
                                 .cost = attend_cycles};
    ptowsp_kernel_desc merge = {.name = "merge",
                                .axis_count = 1,
                                .tiles = {in},
                                .scalars = {{.name = "parts", .type = PTOWSP_TYPE_U64}},
                                .cost = merge_cycles};
    s->whole = ptowsp_kernel_make(s->module, &attend);
    attend.name = "split", attend.tiles[0] = out;
    s->split = ptowsp_kernel_make(s->module, &attend);
    s->merge = ptowsp_kernel_make(s->module, &merge);
    ptowsp_tensor_desc slots = {.name = "slots", .dtype = PTOWSP_F32, .rank = 2};
    slots.shape[0] = SLOTS, slots.shape[1] = 1;
    s->slots = ptowsp_tensor_make(s->module, &slots);
}

static void unit_make(const step *s, ptowsp_expr unit, ptowsp_expr slot) {
    ptowsp_module *m = s->module;
    ptowsp_task_desc task = {.axes = {ptowsp_loop_field(unit, PTOWSP_PLAN_REQUEST)}};
    task.scalars[0] = ptowsp_cast(ptowsp_loop_field(unit, PTOWSP_PLAN_KV_LEN), PTOWSP_TYPE_U64);
    PTOWSP_WHEN(m, ptowsp_loop_field(unit, PTOWSP_PLAN_IS_WHOLE)) {
        task.kernel = s->whole;
        ptowsp_task_make(m, &task);
    }
    PTOWSP_OTHERWISE(m) {
        task.kernel = s->split;
        task.views[0] = (ptowsp_view){.tensor = s->slots, .row = slot};
        ptowsp_task_make(m, &task);
    }
}

static void merge_make(const step *s, ptowsp_expr request, ptowsp_expr first, ptowsp_expr count) {
    ptowsp_task_desc task = {.kernel = s->merge, .axes = {request}};
    task.views[0] = (ptowsp_view){.tensor = s->slots, .row = first, .row_count = count};
    task.scalars[0] = ptowsp_cast(count, PTOWSP_TYPE_U64);
    ptowsp_task_make(s->module, &task);
}

static void step_make(step *s) {
    ptowsp_module *m = s->module;
    ptowsp_axis split = ptowsp_axis_dynamic(m, "split");
    step_kernels_make(s);
    PTOWSP_WORKLOAD(m, "chunks") {
        PTOWSP_PARALLEL(m, unit, ptowsp_axis_plan(m, "chunks")) {
            unit_make(s, unit, ptowsp_i64(m, 0));  // the barrier is enough
        }
        PTOWSP_PARALLEL(m, i, split) {
            merge_make(s, ptowsp_array_at(m, "request", PTOWSP_I32, i),
                       ptowsp_array_at(m, "first", PTOWSP_I32, i),
                       ptowsp_array_at(m, "count", PTOWSP_I32, i));
        }
    }
    PTOWSP_WORKLOAD(m, "balanced") {
        PTOWSP_COMBINE(m) {
            PTOWSP_PARALLEL(m, unit, ptowsp_axis_plan(m, "balanced")) {
                unit_make(s, unit, ptowsp_loop_field(unit, PTOWSP_PLAN_SLOT));
            }
            PTOWSP_PARALLEL(m, merge, ptowsp_axis_plan_merges(m, "balanced")) {
                merge_make(s, ptowsp_loop_field(merge, PTOWSP_PLAN_REQUEST),
                           ptowsp_loop_field(merge, PTOWSP_PLAN_SLOT_FIRST),
                           ptowsp_loop_field(merge, PTOWSP_PLAN_SLOT_COUNT));
            }
        }
    }
}

static void slots_bind(ptowsp_context *context, ptowsp_run *run) {
    static float slots[SLOTS];  // time alone is simulated: nothing reads them
    command_check(context, ptowsp_run_bind_tensor(run, "slots", &(ptowsp_buffer){.data = slots}));
}

// A chunk length for at most CHUNKS units; requests of more than one unit are merged afterwards.
static void chunks_bind(ptowsp_context *context, ptowsp_run *run, ptowsp_work *work) {
    static int32_t split[3][SLOTS];
    static const ptowsp_tier any = {.id = 0, .length_min = 1, .length_max = INT32_MAX};
    static const char *const names[3] = {"request", "first", "count"};
    const ptowsp_batch batch = {
        .lengths = kv_lengths, .sequence_count = REQUESTS, .kv_head_count = 1};
    ptowsp_plan_config config = {.max_work_units = CHUNKS, .align = PAGE, .tiers = &any};
    ptowsp_plan_info info;
    uint32_t chunk, count = 0;
    config.tier_count = 1;
    command_check(NULL, ptowsp_plan_chunk_size(&batch, &config, &chunk, &info));
    command_check(NULL, ptowsp_plan_generate(&batch, &config, chunk, work, SLOTS, &info));
    for (uint32_t i = 0; i < info.work_count; i++) {
        if (ptowsp_work_is_whole(&work[i])) {
            continue;
        }
        if (ptowsp_work_is_first(&work[i])) {
            split[0][count] = (int32_t)ptowsp_work_request(&work[i]);
            split[1][count] = (int32_t)work[i].work_id;
            split[2][count++] = 0;
        }
        split[2][count - 1]++;
    }
    command_check(context, ptowsp_run_bind_work(run, "chunks", work, info.work_count));
    command_check(context, ptowsp_run_bind_size(run, "split", count));
    for (int i = 0; i < 3; i++) {
        command_check(context, ptowsp_run_bind_array(run, names[i], PTOWSP_I32, split[i], count));
    }
}

static void balanced_bind(ptowsp_context *context, ptowsp_run *run) {
    const ptowsp_attention_batch batch = {.kv_lengths = kv_lengths, .sequence_count = REQUESTS};
    ptowsp_attention_config config = {.kv_head_count = 1, .lane_count = LANES, .page_size = PAGE};
    config.cost = (ptowsp_attention_cost){.per_unit = UNIT_CYCLES,
                                          .per_token = 1.0,
                                          .per_row_token = 0.0,
                                          .per_merged_row = PART_CYCLES};
    command_check(context, ptowsp_run_bind_batch(run, "balanced", &batch, &config, NULL));
}

static bool draw_plans(ptowsp_context *context, const char *directory) {
    ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_WORK_STEALING, .lane_count = LANES};
    ptowsp_work work[SLOTS];
    ptowsp_program *programs[2];
    ptowsp_run *runs[2];
    picture p = {NULL, 0, 0, 0};
    step s;
    command_check(context, ptowsp_module_create(context, NULL, &s.module));
    step_make(&s);
    schedule.dependencies = PTOWSP_DEPENDENCIES_STRUCTURE;
    runs[0] = run_create(context, s.module, "chunks", &schedule, &programs[0]);
    schedule.dispatch = PTOWSP_DISPATCH_PLAN;
    schedule.dependencies = PTOWSP_DEPENDENCIES_HYBRID;
    runs[1] = run_create(context, s.module, "balanced", &schedule, &programs[1]);
    slots_bind(context, runs[0]);
    slots_bind(context, runs[1]);
    chunks_bind(context, runs[0], work);
    balanced_bind(context, runs[1]);
    ptowsp_cycles old = execute(context, runs[0]), balanced = execute(context, runs[1]);
    picture_add(&p, context, runs[0], NULL,
                "Equal chunks: a long request is cut into equal parts, merged after a barrier",
                old);
    picture_add(&p, context, runs[1], NULL,
                "Balanced plan: requests are cut so that all lanes end together", old);
    picture_note(
        &p,
        "A decode step of 11 requests. whole: attention of one request; split: of a part of one; "
        "merge: joins the parts; kv: KV tokens.");
    picture_save(&p, directory, "plans.svg");
    printf("  a step: %llu cycles by the chunk plan, %llu by the balanced one: %s\n",
           (unsigned long long)old, (unsigned long long)balanced,
           balanced < old ? "good" : "WRONG");
    for (int i = 0; i < 2; i++) {
        ptowsp_run_destroy(runs[i]);
        ptowsp_program_destroy(programs[i]);
    }
    ptowsp_module_destroy(s.module);
    return balanced < old;
}

// -- a pipeline -----------------------------------------------------------------------------------

// The last tile goes to the worker in the row below the load.
enum { TILES = 10 };

static void pipeline_make(ptowsp_module *m) {
    ptowsp_kernel_desc load = {.name = "load", .axis_count = 1, .cycles = 300};
    ptowsp_kernel_desc compute = {.name = "compute", .axis_count = 1, .cycles = 900};
    ptowsp_task_desc loading = {.kernel = ptowsp_kernel_make(m, &load)};
    ptowsp_task_desc computing = {.kernel = ptowsp_kernel_make(m, &compute)};
    ptowsp_channel_desc desc = {.name = "loaded", .latency = 500};
    desc.depth_at_start = ptowsp_symbol(m, "depth");
    PTOWSP_WORKLOAD(m, "tiles") {
        PTOWSP_PIPELINE(m, "overlap") {
            ptowsp_channel loaded = ptowsp_channel_make(m, &desc);
            PTOWSP_PROCESS(m, "load") {
                ptowsp_produces(m, loaded);
                PTOWSP_FOR_EACH(m, tile, ptowsp_axis_dense(m, "tiles", TILES)) {
                    loading.axes[0] = tile;
                    ptowsp_send_task_make(m, loaded, &loading);
                }
            }
            PTOWSP_REPLICATE(m, worker, ptowsp_axis_dense(m, "workers", 3), "compute") {
                ptowsp_consumes(m, loaded);
                PTOWSP_CONSUME(m, tile, loaded) {
                    computing.axes[0] = tile;
                    ptowsp_task_make(m, &computing);
                }
            }
        }
    }
}

static bool draw_pipeline(ptowsp_context *context, const char *directory) {
    ptowsp_cycles cycles[2];
    picture p = {NULL, 0, 0, 0};
    ptowsp_module *m;
    ptowsp_program *program;
    command_check(context, ptowsp_module_create(context, NULL, &m));
    pipeline_make(m);
    ptowsp_run *run = run_create(context, m, "tiles", NULL, &program);
    static const char *const titles[2] = {
        "Depth 0, a rendezvous: each load waits until a worker has received its tile",
        "Depth 2: the channel holds two tiles, so the load never waits"};
    for (unsigned i = 0; i < 2; i++) {
        command_check(context, ptowsp_run_bind_symbol(run, "depth", 2 * i));
        cycles[i] = execute(context, run);
        picture_add(&p, context, run, NULL, titles[i], cycles[0]);
    }
    picture_note(&p,
                 "One process loads 10 tiles, three compute. A tile takes 500 cycles through the "
                 "channel between them.");
    picture_save(&p, directory, "pipeline.svg");
    printf("  %d tiles: %llu cycles at depth 0, %llu at depth 2: %s\n", TILES,
           (unsigned long long)cycles[0], (unsigned long long)cycles[1],
           cycles[1] < cycles[0] ? "good" : "WRONG");
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
    ptowsp_module_destroy(m);
    return cycles[1] < cycles[0];
}

// -- ranks ----------------------------------------------------------------------------------------

enum { RANKS = 4, MICRO_BATCHES = 3, ELEMENTS = 75, GRADIENTS = 100 };  // of 8 bytes

// Ranks 0 and 1 are the first stage of two replicas, 2 and 3 the second. Each micro-batch is sent on;
// at the end the two ranks of a stage sum their gradients.
static void stage_make(ptowsp_module *m, int64_t rank) {
    const bool is_first = rank < RANKS / 2;
    const ptowsp_kernel_desc work = {.name = is_first ? "stage 1" : "stage 2",
                                     .axis_count = 1,
                                     .tiles = {{.name = "x",
                                                .direction = PTOWSP_INOUT,
                                                .dtype = PTOWSP_F64,
                                                .rows = 1,
                                                .cols = ELEMENTS}},
                                     .cycles = 900};
    const ptowsp_collective_desc send = {
        .name = "batch", .kind = PTOWSP_SEND, .dtype = PTOWSP_F64, .members = 2, .stride = 2};
    const ptowsp_collective_desc sum = {.name = "sum_gradients",
                                        .algorithm = PTOWSP_ALGORITHM_RING,
                                        .dtype = PTOWSP_F64,
                                        .members = 2};
    const ptowsp_tensor_desc x = {
        .name = "x", .dtype = PTOWSP_F64, .rank = 2, .shape = {MICRO_BATCHES, ELEMENTS}};
    const ptowsp_tensor_desc g = {
        .name = "g", .dtype = PTOWSP_F64, .rank = 2, .shape = {1, GRADIENTS}};
    ptowsp_task_desc layer = {.kernel = ptowsp_kernel_make(m, &work)};
    ptowsp_task_desc sending = {.kernel = ptowsp_kernel_collective(m, &send),
                                .scalars = {ptowsp_i64(m, 0), ptowsp_i64(m, 1)}};
    const ptowsp_task_desc summing = {.kernel = ptowsp_kernel_collective(m, &sum),
                                      .views = {{.tensor = ptowsp_tensor_make(m, &g)}}};
    const ptowsp_tensor tensor = ptowsp_tensor_make(m, &x);
    PTOWSP_WORKLOAD(m, "stage") {
        PTOWSP_PARALLEL(m, batch, ptowsp_axis_dense(m, "batch", MICRO_BATCHES)) {
            layer.axes[0] = batch;
            layer.views[0] = (ptowsp_view){.tensor = tensor, .row = batch, .rows = 1};
            sending.views[0] = layer.views[0];
            PTOWSP_SEQUENCE(m) {
                ptowsp_task_make(m, is_first ? &layer : &sending);
                ptowsp_task_make(m, is_first ? &sending : &layer);
            }
        }
        ptowsp_task_make(m, &summing);
    }
}

// A byte takes a cycle. Within nodes of 2 it takes 100 more, between them 200.
static ptowsp_cycles simulate_ranks(ptowsp_context *context, ptowsp_run_group *group,
                                    ptowsp_link_sharing sharing) {
    const ptowsp_run_options options = {.record_tasks = true};
    ptowsp_run_group_result result;
    group->rank_count = RANKS;
    group->links.node_size = 2;
    group->links.inside =
        (ptowsp_link){.latency_ps = 100000, .bytes_per_us = 1000, .sharing = PTOWSP_LINK_PORT};
    group->links.between =
        (ptowsp_link){.latency_ps = 200000, .bytes_per_us = 1000, .sharing = sharing};
    group->cycles_per_us = 1000;
    command_check(context, ptowsp_run_group_simulate(context, group, &options, &result));
    return result.makespan_cycles;
}

// How long all ranks have waited for each other.
static ptowsp_cycles waits_of(const ptowsp_run_group *group) {
    ptowsp_cycles sum = 0;
    for (uint32_t rank = 0; rank < group->rank_count; rank++) {
        uint64_t count;
        const ptowsp_rank_wait *waits = ptowsp_run_rank_waits(group->runs[rank], &count);
        for (uint64_t i = 0; i < count; i++) {
            sum += waits[i].cycles;
        }
    }
    return sum;
}

static bool draw_ranks(ptowsp_context *context, const char *directory) {
    const ptowsp_schedule schedule = {.lane_count = 1};
    ptowsp_module *modules[RANKS];
    ptowsp_program *programs[RANKS];
    ptowsp_run *runs[RANKS];
    ptowsp_run_group group = {.runs = runs};
    picture p = {NULL, 0, 0, 0};
    for (int i = 0; i < RANKS; i++) {
        command_check(context, ptowsp_module_create(context, NULL, &modules[i]));
        stage_make(modules[i], i);
        runs[i] = run_create(context, modules[i], "stage", &schedule, &programs[i]);
    }
    const ptowsp_cycles shared = simulate_ranks(context, &group, PTOWSP_LINK_NODE);
    picture_add(&p, context, NULL, &group, "Both ranks of a node share one link to the other node",
                shared);
    const ptowsp_cycles waited = waits_of(&group);
    const ptowsp_cycles own = simulate_ranks(context, &group, PTOWSP_LINK_PORT);
    picture_add(&p, context, NULL, &group, "Each rank has its own link to the other node", shared);
    const bool is_right = own < shared && waits_of(&group) < waited;
    picture_note(
        &p, "Two replicas of two stages: ranks 0 and 1 compute stage 1 and send each micro-batch "
            "to stage 2 on ranks 2 and 3. Then each stage sums its gradients.");
    picture_save(&p, directory, "ranks.svg");
    printf("  two stages on two ranks each: %llu cycles on a shared link, %llu on two: %s\n",
           (unsigned long long)shared, (unsigned long long)own, is_right ? "good" : "WRONG");
    for (int i = 0; i < RANKS; i++) {
        ptowsp_run_destroy(runs[i]);
        ptowsp_program_destroy(programs[i]);
        ptowsp_module_destroy(modules[i]);
    }
    return is_right;
}

int main(int argc, char **argv) {
    const char *directory = NULL;
    const command_text texts[] = {{"--directory", &directory}};
    ptowsp_context *context;
    command_parse_texts(argc, argv,
                        "usage: timelines [options]\n"
                        "  --directory DIR    where plans.svg, pipeline.svg and ranks.svg go\n",
                        NULL, 0, texts, 1);
    command_check(NULL, ptowsp_context_create(NULL, &context));
    bool is_good = draw_plans(context, directory);
    is_good &= draw_pipeline(context, directory);
    is_good &= draw_ranks(context, directory);
    ptowsp_context_destroy(context);
    command_flush();
    return is_good ? 0 : 1;
}
