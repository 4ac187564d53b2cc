// Sections 5 to 10 of the manual: an engine with a kernel of its own runs an attention plan by two
// workers, and a chunk plan on two kinds of cores. The kernel attends token by token: token t of any
// sequence has the score t / 100 and the value t.

#include "common/manual.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEQUENCES = 3, HEADS = 4, KV_HEADS = 2, TOKENS = 6, LANES = 3, WORKERS = 2 };

static const int32_t kv_lengths[SEQUENCES] = {40, 3000, 9}, query_lengths[SEQUENCES] = {3, 1, 2};
static const ptowsp_attention_batch batch = {
    .kv_lengths = kv_lengths, .query_lengths = query_lengths, .sequence_count = SEQUENCES};
static const ptowsp_attention_config config = {.kv_head_count = KV_HEADS,
                                               .query_head_count = HEADS,
                                               .lane_count = LANES,
                                               .is_causal = true,
                                               .window = 2048,
                                               .tile_rows = 4};
static ptowsp_attention_plan plan;
static ptowsp_attention_scratch scratch;
static float outputs[SEQUENCES][HEADS][TOKENS];

// Where row `row` of a unit or merge belongs.
static float *output_of(const ptowsp_work *work, uint32_t row) {
    const uint32_t token = ptowsp_work_tile(work) * plan.tile_tokens + row / plan.group;
    const uint32_t head = ptowsp_work_head(work) * plan.group + row % plan.group;
    return &outputs[ptowsp_work_request(work)][head][token];
}

static void attend(const ptowsp_work *work, uint32_t worker, void *user) {
    (void)worker, (void)user;
    const uint32_t rows = ptowsp_attention_unit_rows(&batch, &plan, work);
    const uint32_t slot = ptowsp_work_slot(work);
    for (uint32_t row = 0; row < rows; row++) {
        const uint32_t query = ptowsp_work_tile(work) * plan.tile_tokens + row / plan.group;
        const ptowsp_attention_seen seen =
            ptowsp_attention_see(&batch, &config, ptowsp_work_request(work), query);
        ptowsp_partial state;
        float acc;
        ptowsp_merge_clear(&state, &acc, 1);
        for (uint32_t t = ptowsp_work_kv_start(work); t < ptowsp_work_kv_end(work); t++) {
            if (t >= seen.begin && t < seen.end) {
                const ptowsp_partial token = {.m = (float)t / 100, .l = 1};
                const float value = (float)t;
                ptowsp_merge_add(&state, &acc, &token, &value, 1);
            }
        }
        if (slot == PTOWSP_NO_SLOT) {
            ptowsp_merge_finish(&state, &acc, 1, output_of(work, row));
        } else {
            ptowsp_attention_states(&scratch, slot)[row] = state;
            ptowsp_attention_accs(&scratch, slot)[row] = acc;
        }
    }
}

static void merge(const ptowsp_work *work, uint32_t worker, void *user) {
    (void)worker, (void)user;
    uint32_t first;
    const uint32_t rows = ptowsp_attention_unit_rows(&batch, &plan, work);
    const uint32_t count = ptowsp_work_merge_rows(work, rows, &first);
    for (uint32_t row = first; row < first + count; row++) {
        ptowsp_attention_merge_row(&scratch, work, row, output_of(work, row));
    }
}

static double expected(uint32_t sequence, uint32_t query) {
    const ptowsp_attention_seen seen = ptowsp_attention_see(&batch, &config, sequence, query);
    double sum = 0, weights = 0;
    for (uint32_t t = seen.begin; t < seen.end; t++) {
        const double weight = exp(((double)t - seen.end) / 100);
        weights += weight;
        sum += weight * t;
    }
    return sum / weights;
}

static void attention_run(ptowsp_context *context) {
    ptowsp_attention_sizes sizes;
    ptowsp_plan_info info;
    if (ptowsp_attention_size(&batch, &config, &sizes, &info) ||
        ptowsp_attention_place(&sizes, malloc(sizes.block_bytes), sizes.block_bytes, &plan) ||
        ptowsp_attention_generate(&batch, &config, &plan, &info)) {
        ptowsp_plan_explain(&info, manual_output());
        ptowsp_context_fail(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "engine: no plan");
        manual_check(false, ptowsp_context_error(context).text);
        return;
    }
    manual_check(!ptowsp_attention_check(&batch, &config, &plan, &info), "the plan");
    ptowsp_attention_print(&plan, manual_output());
    uint32_t merge_count = 0, count;
    for (uint32_t lane = 0; lane < LANES; lane++) {
        ptowsp_attention_lane_merges(&plan, lane, &count);
        merge_count += count;
    }
    manual_check(merge_count == plan.merge_count, "each merge is on a lane");

    scratch.rows = plan.slot_rows;
    scratch.dim = 1;
    const size_t rows = (size_t)plan.slot_count * plan.slot_rows;
    scratch.states = (ptowsp_partial *)calloc(rows + 1, sizeof *scratch.states);
    scratch.accs = (float *)calloc(rows + 1, sizeof *scratch.accs);
    const ptowsp_work_fn table[] = {attend};
    const ptowsp_attention_job job = {
        .plan = &plan,
        .table = table,
        .table_count = 1,
        .merge = merge,
        .progress = (uint32_t *)calloc(ptowsp_attention_progress_size(&plan), sizeof(uint32_t))};
    manual_check(!ptowsp_attention_job_check(&job, NULL), "the job");
    for (uint32_t worker = 0; worker < WORKERS;
         worker++) {  // on threads of the engine, in any order
        ptowsp_attention_run_worker(&job, worker, WORKERS);
    }
    for (uint32_t s = 0; s < SEQUENCES; s++) {
        for (uint32_t q = 0; q < (uint32_t)query_lengths[s]; q++) {
            for (uint32_t head = 0; head < HEADS; head++) {
                const double want = expected(s, q);
                manual_check(fabs(outputs[s][head][q] - want) < 1e-3 * want, "a row");
            }
        }
    }
    // The library's kernels see the same units.
    const ptowsp_attend_step step = {.batch = &batch, .config = &config, .plan = &plan};
    for (uint32_t i = 0; i < plan.unit_count; i++) {
        const ptowsp_attend_unit unit = ptowsp_attend_unit_of(&step, &plan.units[i]);
        manual_check(ptowsp_attend_unit_rows(&step, &unit) ==
                         ptowsp_attention_unit_rows(&batch, &plan, &plan.units[i]),
                     "rows of a unit");
    }
    free(job.progress);
    free(scratch.states);
    free(scratch.accs);
    free(plan.units);  // the block
}

static void count_work(const ptowsp_work *work, uint32_t lane, void *user) {
    ((uint64_t *)user)[lane] += ptowsp_work_kv_len(work);
}

static void chunks_run(ptowsp_context *context) {
    static const int32_t lengths[3] = {500, 5000, 90};
    const ptowsp_batch chunked = {.lengths = lengths, .sequence_count = 3, .kv_head_count = 1};
    const ptowsp_plan_config fixed = {
        .chunk_min = 256, .chunk_max = 256, .chunks = PTOWSP_CHUNKS_FIXED};
    const ptowsp_plan_limits limits = {
        .sequence_count_max = 3, .kv_head_count = 1, .length_max = 5000};
    uint64_t most;
    uint32_t chunk = 0;
    ptowsp_plan_info info;
    manual_check(!ptowsp_plan_work_bound(&fixed, &limits, &most, &info) &&
                     !ptowsp_plan_chunk_size(&chunked, &fixed, &chunk, &info),
                 "bound and chunk");
    ptowsp_work *work = (ptowsp_work *)calloc(most, sizeof *work);
    manual_check(!ptowsp_plan_generate(&chunked, &fixed, chunk, work, most, &info), "the plan");
    const uint64_t count = info.work_count;
    // Two schedulers make it together: sequence 0, of two chunks, and the others.
    ptowsp_work *parts = (ptowsp_work *)calloc(most, sizeof *parts);
    manual_check(!ptowsp_plan_generate_range(&chunked, &fixed, chunk, 0, 1, 0, parts, 2, &info) &&
                     !ptowsp_plan_generate_range(&chunked, &fixed, chunk, 1, 2, 2, parts + 2,
                                                 most - 2, &info) &&
                     memcmp(work, parts, count * sizeof *work) == 0,
                 "ranges");
    printf("the last of %u units: ", (unsigned)count);
    ptowsp_work_print(&work[count - 1], manual_output());
    puts("");
    // Tiers 0 and 1 run on two vector cores, lanes 0 and 1, tier 2 on a cube core, lane 2.
    const ptowsp_work_fn vector[] = {count_work, count_work}, cube[] = {NULL, NULL, count_work};
    const ptowsp_lane_group groups[] = {{.lane_count = 2, .table = vector, .table_count = 2},
                                        {.lane_count = 1, .table = cube, .table_count = 3}};
    uint64_t tokens[3] = {0};
    manual_check(!ptowsp_dispatch_mpmd(context, work, count, groups, 2, tokens) &&
                     tokens[0] + tokens[1] == 590 && tokens[2] == 5000,
                 "tokens by kind of core");
    manual_check(ptowsp_plan_is_invariant(&fixed) && !ptowsp_attention_is_invariant(&config),
                 "which plans are batch-invariant");
    free(work);
    free(parts);
}

int main(void) {
    ptowsp_context *context;
    if (ptowsp_context_create(NULL, &context)) {
        return 1;
    }
    manual_check(strcmp(ptowsp_version(), PTOWSP_VERSION) == 0,
                 "library and header belong together");
    printf("ptowsp %s, %s kernels, %s\n", ptowsp_version(), ptowsp_attend_variant(),
           ptowsp_processor_count() > 1 ? "several processors" : "one processor");
    attention_run(context);
    chunks_run(context);
    static const uint16_t halves[2] = {0x3c00, 0xc000};  // 1 and -2 as f16
    float floats[2];
    manual_check(!ptowsp_attend_convert(halves, PTOWSP_ATTEND_F16, 2, floats) && floats[0] == 1 &&
                     floats[1] == -2,
                 "f16 to f32");
    ptowsp_context_destroy(context);
    return manual_end();
}
