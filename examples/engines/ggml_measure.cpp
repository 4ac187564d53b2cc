// Measures the operator of ggml_attention.cpp beside ggml's own flash attention on the same KV memory, and
// compares both with softmax in double precision.
//
//      ggml_measure [--sequences N] [--length N] [--heads N] [--kv-heads N] [--dim N] [--threads N]
//                   [--type f32|f16|q8_0] [--rounds N]
//
// A decode step: lengths are lognormal around --length. Each sequence lies in a stretch of pages of its
// own, as ggml's attention cannot read page tables; ptowsp gets these pages as a table. Exits with 1 if
// a result is wrong.

#include "ggml_attention.h"

#include "ggml-cpu.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace {

struct options {
    uint32_t sequences = 64, length = 1000, heads = 32, kv_heads = 8, dim = 128, threads = 2;
    uint32_t rounds = 11;
    ggml_type type = GGML_TYPE_F16;
};

constexpr uint32_t page_size = 16;

// Elements are n / 64 for whole n from -64 to 64, which all types have exactly.
int number_at(size_t index, uint32_t salt) {
    uint64_t z = (index + 1) * UINT64_C(0x9e3779b97f4a7c15) + salt * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 29)) * UINT64_C(0x94d049bb133111eb);
    return static_cast<int>((z >> 33) % 129) - 64;
}

uint16_t half_of(int n) {
    int size = std::abs(n), exponent = 0;
    while (size >> (exponent + 1)) {
        exponent++;
    }
    const int bits = n == 0 ? 0 : (exponent + 9) << 10 | ((size << (10 - exponent)) & 0x3ff);
    return static_cast<uint16_t>(n < 0 ? bits | 0x8000 : bits);
}

void fill(ggml_tensor *tensor, uint32_t salt) {
    char *to = static_cast<char *>(tensor->data);
    const size_t count = static_cast<size_t>(tensor->ne[0] * tensor->ne[1] * tensor->ne[2]);
    for (size_t i = 0; i < count; i++) {
        const int n = number_at(i, salt);
        const float whole = static_cast<float>(n) / 64.0f;
        const uint16_t half = tensor->type == GGML_TYPE_F16 ? half_of(n) : half_of(1);
        switch (tensor->type) {
        case GGML_TYPE_F32: std::memcpy(to + i * 4, &whole, 4); break;
        case GGML_TYPE_F16: std::memcpy(to + i * 2, &half, 2); break;
        default:  // Q8_0: the scale is 1 / 64
            std::memcpy(to + i / 32 * 34, &half, 2);
            to[i / 32 * 34 + 2 + i % 32] = static_cast<char>(n);
            break;
        }
    }
}

struct scene {
    options o;
    ggml_context *ctx;
    ggml_tensor *q, *k, *v;
    ggml_attention_step step;
};

// The largest error of `out`, [value_dim, heads, sequences], against double precision.
double error_of(const scene &s, const float *out, size_t head_stride, size_t token_stride) {
    const options &o = s.o;
    double worst = 0.0;
    std::vector<double> scores, sum(o.dim);
    for (uint32_t i = 0; i < o.sequences; i++) {
        const size_t length = static_cast<size_t>(s.step.kv_lengths[i]);
        const size_t first = size_t{s.step.pages[s.step.page_starts[i]]} * page_size;
        for (uint32_t h = 0; h < o.heads; h++) {
            const size_t kv = h / (o.heads / o.kv_heads), at = (size_t{i} * o.heads + h) * o.dim;
            double top = -1e300, total = 0.0;
            scores.assign(length, 0.0);
            for (size_t t = 0; t < length; t++) {
                const size_t row = ((first + t) * o.kv_heads + kv) * o.dim;
                for (size_t d = 0; d < o.dim; d++) {
                    scores[t] += number_at(at + d, 1) / 64.0 * (number_at(row + d, 2) / 64.0);
                }
                scores[t] /= std::sqrt(double(o.dim));
                top = std::max(top, scores[t]);
            }
            sum.assign(o.dim, 0.0);
            for (size_t t = 0; t < length; t++) {
                const size_t row = ((first + t) * o.kv_heads + kv) * o.dim;
                const double weight = std::exp(scores[t] - top);
                total += weight;
                for (size_t d = 0; d < o.dim; d++) {
                    sum[d] += weight * (number_at(row + d, 3) / 64.0);
                }
            }
            const float *found = out + i * token_stride + h * head_stride;
            for (size_t d = 0; d < o.dim; d++) {
                const double error = std::fabs(double(found[d]) - sum[d] / total);
                worst = error <= worst ? worst : error;  // NaN counts
            }
        }
    }
    return worst;
}

struct times {
    double wall_ms, processor_ms;
};

// Medians over rounds.
times time_of(scene &s, ggml_cgraph *graph) {
    std::vector<double> wall, processor;
    for (uint32_t i = 0; i <= s.o.rounds; i++) {
        const std::clock_t ticks = std::clock();
        const auto start = std::chrono::steady_clock::now();
        ggml_graph_compute_with_ctx(s.ctx, graph, static_cast<int>(s.o.threads));
        const std::chrono::duration<double, std::milli> took =
            std::chrono::steady_clock::now() - start;
        if (i > 0) {  // the first warms up
            wall.push_back(took.count());
            processor.push_back(double(std::clock() - ticks) * 1e3 / CLOCKS_PER_SEC);
        }
    }
    std::sort(wall.begin(), wall.end());
    std::sort(processor.begin(), processor.end());
    return {wall[wall.size() / 2], processor[processor.size() / 2]};
}

void make_sequences(scene &s) {
    uint32_t page = 0;
    for (uint32_t i = 0; i < s.o.sequences; i++) {
        // Sums of three uniform numbers are normal enough.
        const double normal =
            (number_at(3 * i, 9) + number_at(3 * i + 1, 9) + number_at(3 * i + 2, 9)) / 64.0;
        const int32_t length = std::max(1, int32_t(s.o.length * std::exp(normal)));
        s.step.page_starts.push_back(static_cast<uint32_t>(s.step.pages.size()));
        for (uint32_t t = 0; t < uint32_t(length); t += page_size) {
            s.step.pages.push_back(page++);
        }
        s.step.kv_lengths.push_back(length);
        s.step.query_lengths.push_back(1);
    }
}

// ggml's own: an operator for each sequence, over a view of its keys and values. NULL: there is none.
ggml_cgraph *own_graph(scene &s, std::vector<ggml_tensor *> *outs) {
    ggml_cgraph *graph = ggml_new_graph(s.ctx);
    const float scale = 1.0f / std::sqrt(float(s.o.dim));
    for (uint32_t i = 0; i < s.o.sequences; i++) {
        const size_t first = size_t{s.step.pages[s.step.page_starts[i]]} * page_size;
        ggml_tensor *q =
            ggml_view_3d(s.ctx, s.q, s.o.dim, 1, s.o.heads, s.q->nb[2], s.q->nb[1], i * s.q->nb[2]);
        ggml_tensor *views[2], *all[] = {s.k, s.v};
        for (int j = 0; j < 2; j++) {
            views[j] = ggml_view_3d(s.ctx, all[j], s.o.dim, s.step.kv_lengths[i], s.o.kv_heads,
                                    all[j]->nb[2], all[j]->nb[1], first * all[j]->nb[2]);
        }
        outs->push_back(
            ggml_flash_attn_ext(s.ctx, q, views[0], views[1], nullptr, scale, 0.0f, 0.0f));
        if (!outs->back()) {
            return nullptr;
        }
        ggml_build_forward_expand(graph, outs->back());
    }
    return graph;
}

bool measure(scene &s) {
    std::string error;
    const ggml_attention_shape shape = {s.o.heads, s.o.kv_heads, s.o.dim, page_size, s.o.threads};
    if (!ggml_attention_plan(&s.step, &shape, &error)) {
        std::fprintf(stderr, "ggml_measure: %s\n", error.c_str());
        return false;
    }
    ggml_tensor *out = ggml_attention(s.ctx, s.q, s.k, s.v, &s.step);
    if (!out) {
        std::fprintf(stderr, "ggml_measure: the tensors do not fit the step\n");
        return false;
    }
    ggml_cgraph *graph = ggml_new_graph(s.ctx);
    ggml_build_forward_expand(graph, out);
    const times ours = time_of(s, graph);
    const double wrong =
        error_of(s, static_cast<const float *>(out->data), out->nb[1] / 4, out->nb[2] / 4);
    std::printf("ptowsp (%s): %.3f ms, %.3f ms of processors, error %.1e\n",
                ptowsp_attend_variant(), ours.wall_ms, ours.processor_ms, wrong);
    std::vector<ggml_tensor *> outs;
    ggml_cgraph *own = own_graph(s, &outs);
    if (own) {
        const times theirs = time_of(s, own);
        std::vector<float> rows;
        for (const ggml_tensor *of : outs) {
            const float *from = static_cast<const float *>(of->data);
            rows.insert(rows.end(), from, from + size_t{s.o.heads} * s.o.dim);
        }
        std::printf("ggml: %.3f ms, %.3f ms of processors, error %.1e\n", theirs.wall_ms,
                    theirs.processor_ms,
                    error_of(s, rows.data(), s.o.dim, size_t{s.o.heads} * s.o.dim));
    } else {
        std::printf("ggml: there is no flash attention to compare with\n");
    }
    return s.step.status == PTOWSP_OK && wrong < 2e-6;
}

bool parse(int argc, char **argv, options *o) {
    const struct {
        const char *name;
        uint32_t *value;
    } numbers[] = {
        {"--sequences", &o->sequences}, {"--length", &o->length}, {"--heads", &o->heads},
        {"--kv-heads", &o->kv_heads},   {"--dim", &o->dim},       {"--threads", &o->threads},
        {"--rounds", &o->rounds}};
    for (int i = 1; i + 1 < argc; i += 2) {
        bool is_known = false;
        for (const auto &number : numbers) {
            if (std::strcmp(argv[i], number.name) == 0) {
                *number.value = static_cast<uint32_t>(std::strtoul(argv[i + 1], nullptr, 10));
                is_known = *number.value > 0 && *number.value < 1u << 24;
            }
        }
        if (std::strcmp(argv[i], "--type") == 0) {
            is_known = true;
            o->type = std::strcmp(argv[i + 1], "f32") == 0   ? GGML_TYPE_F32
                      : std::strcmp(argv[i + 1], "f16") == 0 ? GGML_TYPE_F16
                                                             : GGML_TYPE_Q8_0;
        }
        if (!is_known) {
            return false;
        }
    }
    return argc % 2 == 1;
}

}  // namespace

int main(int argc, char **argv) {
    scene s;
    if (!parse(argc, argv, &s.o)) {
        std::fprintf(stderr, "usage: ggml_measure [--sequences N] [--length N] [--heads N] "
                             "[--kv-heads N] [--dim N] [--threads N] [--type f32|f16|q8_0] "
                             "[--rounds N]\n");
        return 2;
    }
    make_sequences(s);
    const size_t slots = s.step.pages.size() * page_size;
    const size_t row = size_t{s.o.dim} * s.o.kv_heads * 4;
    s.ctx = ggml_init({slots * row * 2 + (size_t{256} << 20), nullptr, false});
    const int64_t all = static_cast<int64_t>(slots);
    s.q = ggml_new_tensor_3d(s.ctx, GGML_TYPE_F32, s.o.dim, s.o.heads, s.o.sequences);
    s.k = ggml_new_tensor_3d(s.ctx, s.o.type, s.o.dim, s.o.kv_heads, all);
    s.v = ggml_new_tensor_3d(s.ctx, s.o.type, s.o.dim, s.o.kv_heads, all);
    fill(s.q, 1);
    fill(s.k, 2);
    fill(s.v, 3);
    const bool is_good = measure(s);
    ggml_free(s.ctx);
    std::printf("%s\n", is_good ? "good" : "WRONG");
    return is_good ? 0 : 1;
}
