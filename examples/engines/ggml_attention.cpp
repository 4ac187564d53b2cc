// Attention as ggml's threads compute it. ggml calls an operator on each of its threads and waits for all
// of them before the next: that is a run of ptowsp_attend_run_worker, and why all layers can share the
// memory for partial states.

#include "ggml_attention.h"

// The type of a cache, or PTOWSP_ATTEND_TYPE_COUNT.
static ptowsp_attend_type type_of(const ggml_tensor *tensor) {
    switch (tensor->type) {
    case GGML_TYPE_F32: return PTOWSP_ATTEND_F32;
    case GGML_TYPE_F16: return PTOWSP_ATTEND_F16;
    case GGML_TYPE_BF16: return PTOWSP_ATTEND_BF16;
    case GGML_TYPE_Q8_0: return PTOWSP_ATTEND_Q8_0;
    case GGML_TYPE_Q4_0: return PTOWSP_ATTEND_Q4_0;
    default: return PTOWSP_ATTEND_TYPE_COUNT;
    }
}

// ggml's strides are in bytes, ptowsp's in elements; those of blocks are whole blocks.
static ptowsp_attend_strides strides_of(const ggml_tensor *tensor, uint32_t page_size) {
    const size_t bytes = ptowsp_attend_bytes(type_of(tensor), 32);
    ptowsp_attend_strides strides;
    strides.head = tensor->nb[1] * 32 / bytes;
    strides.token = tensor->nb[2] * 32 / bytes;
    strides.page = strides.token * page_size;
    return strides;
}

static ptowsp_attend_cache cache_of(const ggml_tensor *k, const ggml_tensor *v,
                                    uint32_t page_size) {
    ptowsp_attend_cache cache = {};
    cache.keys = k->data;
    cache.values = v->data;
    cache.key_strides = strides_of(k, page_size);
    cache.value_strides = strides_of(v, page_size);
    cache.type = type_of(k);
    cache.key_dim = static_cast<uint32_t>(k->ne[0]);
    cache.value_dim = static_cast<uint32_t>(v->ne[0]);
    cache.page_size = page_size;
    return cache;
}

static void attention_run(ggml_tensor *dst, int ith, int nth, void *user) {
    ggml_attention_step *of = static_cast<ggml_attention_step *>(user);
    const ggml_tensor *q = dst->src[0];
    const ptowsp_attend_cache cache = cache_of(dst->src[1], dst->src[2], of->shape.page_size);
    ptowsp_attend_step step = {};
    step.batch = &of->batch;
    step.config = &of->config;
    step.plan = &of->plan;
    step.queries = static_cast<const float *>(q->data);
    step.query_head_stride = q->nb[1] / sizeof(float);
    step.query_token_stride = q->nb[2] / sizeof(float);
    step.outputs = static_cast<float *>(dst->data);
    step.output_head_stride = dst->nb[1] / sizeof(float);
    step.output_token_stride = dst->nb[2] / sizeof(float);
    step.query_starts = of->query_starts.data();
    step.pages = of->pages.data();
    step.page_starts = of->page_starts.data();
    ptowsp_attend_job job = {};
    job.cache = &cache;
    job.step = &step;
    job.memory = of->memory;
    job.is_stealing = true;  // a thread that is done takes units of others
    const ptowsp_status status = ptowsp_attend_run_worker(&job, static_cast<uint32_t>(ith),
                                                          static_cast<uint32_t>(nth), nullptr);
    if (ith == 0) {
        of->status = status;  // all find the same
    }
}

// Whether the cache has all pages of the tables.
static bool has_pages(const ggml_tensor *k, const ggml_attention_step *step) {
    for (uint32_t page : step->pages) {
        if ((int64_t{page} + 1) * step->shape.page_size > k->ne[2]) {
            return false;
        }
    }
    return true;
}

// Whether rows of a cache are adjacent elements, or blocks, and strides whole numbers of them: a
// transposed V, as of engines without flash attention, is not.
static bool has_rows(const ggml_tensor *t) {
    const ptowsp_attend_type type = type_of(t);
    const bool is_blocked = type == PTOWSP_ATTEND_Q8_0 || type == PTOWSP_ATTEND_Q4_0;
    const size_t item = ptowsp_attend_bytes(type, 32) / (is_blocked ? 1 : 32);
    return type != PTOWSP_ATTEND_TYPE_COUNT && t->nb[0] == item && t->nb[1] % item == 0 &&
           t->nb[2] % item == 0;
}

ggml_tensor *ggml_attention(ggml_context *ctx, ggml_tensor *q, ggml_tensor *k, ggml_tensor *v,
                            ggml_attention_step *step) {
    const ggml_attention_shape &shape = step->shape;
    const bool is_good = !step->query_starts.empty() && q->type == GGML_TYPE_F32 &&
                         q->nb[0] == sizeof(float) && q->nb[1] % sizeof(float) == 0 &&
                         q->nb[2] % sizeof(float) == 0 && has_rows(k) && has_rows(v) &&
                         q->ne[0] == k->ne[0] && q->ne[1] == shape.heads && q->ne[3] == 1 &&
                         q->ne[2] == static_cast<int64_t>(step->query_starts.back()) &&
                         type_of(k) != PTOWSP_ATTEND_TYPE_COUNT && k->type == v->type &&
                         k->ne[1] == shape.kv_heads && v->ne[1] == shape.kv_heads &&
                         v->ne[0] == shape.value_dim && has_pages(k, step) && has_pages(v, step);
    if (!is_good) {
        return nullptr;
    }
    ggml_tensor *args[] = {q, k, v};
    return ggml_custom_4d(ctx, GGML_TYPE_F32, v->ne[0], q->ne[1], q->ne[2], 1, args, 3,
                          attention_run, GGML_N_TASKS_MAX, step);
}

static bool explain(const ptowsp_plan_info &info, std::string *error) {
    char text[256];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    ptowsp_plan_explain(&info, ptowsp_output_to_buffer(&buffer));
    *error = text;
    return false;
}

bool ggml_attention_plan(ggml_attention_step *step, const ggml_attention_shape *shape,
                         std::string *error) {
    const size_t count = step->kv_lengths.size();
    if (step->query_lengths.size() != count || step->page_starts.size() != count ||
        shape->kv_heads == 0 || shape->heads % shape->kv_heads != 0) {
        *error = "lists of sequences differ in length, or heads are no multiple of KV heads";
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const int64_t pages = (step->kv_lengths[i] + int64_t{shape->page_size} - 1) /
                              (shape->page_size > 0 ? shape->page_size : 1);
        if (shape->page_size == 0 ||
            step->page_starts[i] + pages > static_cast<int64_t>(step->pages.size())) {
            *error = "page_size is 0, or sequence " + std::to_string(i) + " has too few pages";
            return false;
        }
    }
    step->shape = *shape;
    step->query_starts.assign(1, 0);
    for (int32_t length : step->query_lengths) {
        step->query_starts.push_back(step->query_starts.back() + static_cast<uint32_t>(length));
    }
    step->batch.kv_lengths = step->kv_lengths.data();
    step->batch.query_lengths = step->query_lengths.data();
    step->batch.sequence_count = static_cast<uint32_t>(count);
    step->config = {};
    step->config.kv_head_count = shape->kv_heads;
    step->config.group = shape->heads / shape->kv_heads;
    step->config.lane_count = shape->threads;
    step->config.page_size = shape->page_size;
    step->config.is_causal = true;

    // Sizes differ from step to step. An engine that allocates nothing while it serves asks
    // ptowsp_attention_bound for those of its largest batch, once.
    ptowsp_plan_info info;
    ptowsp_attend_limits limits = {};
    uint64_t bytes;
    if (ptowsp_attention_size(&step->batch, &step->config, &limits.plan, &info)) {
        return explain(info, error);
    }
    step->plan_block.resize(limits.plan.block_bytes / 8 + 1);
    limits.value_dim = shape->value_dim;
    limits.worker_count = shape->threads;
    if (ptowsp_attention_place(&limits.plan, step->plan_block.data(), limits.plan.block_bytes,
                               &step->plan) ||
        ptowsp_attention_generate(&step->batch, &step->config, &step->plan, &info) ||
        ptowsp_attend_size(&limits, &bytes, &info)) {
        return explain(info, error);
    }
    step->memory_block.resize(bytes / 8 + 1);
    return ptowsp_attend_place(&limits, step->memory_block.data(), bytes, &step->memory, &info) ==
               PTOWSP_OK ||
           explain(info, error);
}
