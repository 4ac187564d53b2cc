// Decode attention on a GPU by an attention plan, beside three other ways to cut the same step, with the same
// kernel (decode_kernel.h): no split, a split of fixed count, and chunks that blocks draw as they become free.
//
//      decode [--trace FILE] [--batch N] [--group 4|8] [--type f16|bf16] [--page 16|64] [--heads N]
//             [--blocks N] [--split N] [--rounds N] [--svg FILE] [--no-check] [--check-all]
//
// Without options: batches of 1 to 256 with lognormal lengths, one of 131,072 tokens among short ones, and equal
// ones. With --trace, lengths are those that are live in a serving trace at several moments. For each batch and
// rule it prints time (median of replays of a captured launch), the share of the time that reading the KV once
// takes, the largest lane over the mean, as planned and as measured, and what planning and copying take. Then
// it serves steps in a row, where the plan of step n + 1 is made while step n runs.
//
// Outputs are compared with double precision. Exits with 1 if one is wrong.

#include "decode_rules.h"

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

static __device__ float2 decode_pair_f16(uint32_t bits) {
    return __half22float2(*reinterpret_cast<const __half2 *>(&bits));
}
static __device__ unsigned long long decode_global_ns() {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}
static __device__ unsigned long long decode_cycles() {
    return static_cast<unsigned long long>(clock64());
}

#include "decode_kernel.h"

extern "C" {
#include "../common/command.h"
#include "../common/lengths.h"
}

namespace {

#define CUDA(call) cuda_check(call, #call)
void cuda_check(cudaError_t error, const char *what) {
    if (error != cudaSuccess) {
        command_fail("%s: %s", what, cudaGetErrorString(error));
    }
}

void plan_check(ptowsp_status status, const ptowsp_plan_info &info) {
    if (status) {
        char line[256];
        ptowsp_output_buffer buffer = {line, sizeof line, 0};
        ptowsp_plan_explain(&info, ptowsp_output_to_buffer(&buffer));
        command_fail("%s: %s", ptowsp_status_name(status), line);
    }
}

double now_us() {
    return double(ptowsp_clock_ns()) / 1000.0;
}

double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + long(values.size() / 2), values.end());
    return values[values.size() / 2];
}

struct options {
    uint64_t batch = 0, group = 8, page = 16, heads = 8, blocks = 0, split = 8, rounds = 31;
    const char *trace = nullptr, *type = "f16", *svg = nullptr;
    bool no_check = false, check_all = false;
};

// -- data -----------------------------------------------------------------------------------------

// Elements are n / 64 for whole n from -64 to 64, which both types have exactly.
__host__ __device__ int number_at(uint64_t index, uint32_t salt) {
    uint64_t z = (index + 1) * 0x9e3779b97f4a7c15ull + salt * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 29)) * 0x94d049bb133111ebull;
    return int((z >> 33) % 129) - 64;
}

__global__ void fill(uint16_t *to, uint64_t count, uint32_t salt, bool is_bf16) {
    for (uint64_t i = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; i < count;
         i += uint64_t(gridDim.x) * blockDim.x) {
        const float value = float(number_at(i, salt)) / 64.0f;
        to[i] = is_bf16 ? uint16_t(__float_as_uint(value) >> 16)
                        : __half_as_ushort(__float2half(value));
    }
}

// Reads memory once, as the limit that decode has.
__global__ void __launch_bounds__(512) read_once(const uint4 *from, uint64_t count, uint32_t *out) {
    uint32_t sum = 0;
    for (uint64_t i = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; i < count;
         i += uint64_t(gridDim.x) * blockDim.x) {
        const uint4 word = __ldcs(from + i);
        sum += word.x ^ word.y ^ word.z ^ word.w;
    }
    if (sum == 0x12345678u) {
        *out = sum;  // keeps the loads
    }
}

template <class T> struct device_array {
    T *data = nullptr;
    explicit device_array(uint64_t count) {
        CUDA(cudaMalloc(&data, std::max<uint64_t>(count, 1) * sizeof(T)));
        CUDA(cudaMemset(data, 0, std::max<uint64_t>(count, 1) * sizeof(T)));
    }
    ~device_array() {
        cudaFree(data);
    }
    device_array(const device_array &) = delete;
    device_array &operator=(const device_array &) = delete;
};

// A batch with its cache on the device. Pages of a sequence are dealt over the pool, as engines have them.
struct scene {
    options o;
    decode_shape shape;
    ptowsp_attention_limits limits;
    std::vector<int32_t> lengths, pages, page_starts;
    uint64_t page_count, elements, query_count;
    device_array<uint16_t> keys, values, queries;
    device_array<int32_t> page_table;
    device_array<float> out, lse;
    bool is_bf16;

    scene(const options &from, const decode_shape &its_shape, std::vector<int32_t> its_lengths,
          uint32_t growth)
        : o(from), shape(its_shape), limits{}, lengths(std::move(its_lengths)), pages(),
          page_starts(), page_count(pages_deal(growth)),
          elements(page_count * o.page * o.heads * DECODE_DIM),
          query_count(lengths.size() * o.heads * o.group), keys(elements), values(elements),
          queries(query_count * DECODE_DIM), page_table(pages.size()),
          out(query_count * DECODE_DIM), lse(query_count), is_bf16(!std::strcmp(o.type, "bf16")) {
        fill<<<1024, 256>>>(queries.data, query_count * DECODE_DIM, 1, is_bf16);
        fill<<<1024, 256>>>(keys.data, elements, 2, is_bf16);
        fill<<<1024, 256>>>(values.data, elements, 3, is_bf16);
        CUDA(cudaGetLastError());
        CUDA(cudaMemcpy(page_table.data, pages.data(), pages.size() * sizeof(int32_t),
                        cudaMemcpyHostToDevice));
    }

    // Every sequence has room to grow. Page i of the order is (i * step) of the pool: a step that is
    // prime to the number of pages visits each once.
    uint64_t pages_deal(uint32_t growth) {
        uint64_t count = 0;
        limits.sequence_count_max = uint32_t(lengths.size());
        for (int32_t length : lengths) {
            const int32_t most = length + int32_t(growth);
            page_starts.push_back(int32_t(count));
            count += (uint64_t(most) + o.page - 1) / o.page;
            limits.kv_length_max = std::max(limits.kv_length_max, most);
            limits.kv_token_count_max += uint64_t(most);
        }
        uint64_t step = count / 2 + 1;
        while (gcd(step, count) != 1) {
            step++;
        }
        for (uint64_t i = 0; i < count; i++) {
            pages.push_back(int32_t(i * step % count));
        }
        return count;
    }
    static uint64_t gcd(uint64_t a, uint64_t b) {
        return b ? gcd(b, a % b) : a;
    }

    uint64_t kv_bytes() const {
        uint64_t tokens = 0;
        for (int32_t length : lengths) {
            tokens += uint64_t(length);
        }
        return tokens * o.heads * DECODE_DIM * 2 * sizeof(uint16_t);
    }
};

// The largest error against softmax in double precision, relative to the largest possible value of 1.
double error_of(const scene &s, const std::vector<int32_t> &lengths) {
    std::vector<float> found(s.query_count * DECODE_DIM), lse(s.query_count);
    CUDA(
        cudaMemcpy(found.data(), s.out.data, found.size() * sizeof(float), cudaMemcpyDeviceToHost));
    CUDA(cudaMemcpy(lse.data(), s.lse.data, lse.size() * sizeof(float), cudaMemcpyDeviceToHost));
    double worst = 0.0;
    std::vector<double> scores, sum(DECODE_DIM);
    std::vector<float> keys, values;
    for (uint32_t i = 0; i < lengths.size(); i++) {
        const uint32_t length = uint32_t(lengths[i]);
        for (uint32_t head = 0; length > 0 && head < s.o.heads; head++) {
            keys.resize(uint64_t(length) * DECODE_DIM);
            values.resize(keys.size());
            for (uint32_t t = 0; t < length; t++) {
                const uint64_t page = uint64_t(s.pages[uint64_t(s.page_starts[i]) + t / s.o.page]);
                const uint64_t row =
                    ((page * s.o.page + t % s.o.page) * s.o.heads + head) * DECODE_DIM;
                for (uint32_t d = 0; d < DECODE_DIM; d++) {
                    keys[uint64_t(t) * DECODE_DIM + d] = float(number_at(row + d, 2)) / 64.0f;
                    values[uint64_t(t) * DECODE_DIM + d] = float(number_at(row + d, 3)) / 64.0f;
                }
            }
            for (uint32_t g = 0; g < s.o.group; g++) {
                const uint64_t query = (uint64_t(i) * s.o.heads + head) * s.o.group + g;
                double top = -INFINITY, total = 0.0;
                scores.assign(length, 0.0);
                for (uint32_t t = 0; t < length; t++) {
                    for (uint32_t d = 0; d < DECODE_DIM; d++) {
                        scores[t] += double(number_at(query * DECODE_DIM + d, 1)) / 64.0 *
                                     double(keys[uint64_t(t) * DECODE_DIM + d]);
                    }
                    scores[t] /= std::sqrt(double(DECODE_DIM));
                    top = std::max(top, scores[t]);
                }
                sum.assign(DECODE_DIM, 0.0);
                for (uint32_t t = 0; t < length; t++) {
                    const double weight = std::exp(scores[t] - top);
                    total += weight;
                    for (uint32_t d = 0; d < DECODE_DIM; d++) {
                        sum[d] += weight * double(values[uint64_t(t) * DECODE_DIM + d]);
                    }
                }
                const double lse_error = std::fabs(double(lse[query]) - (top + std::log(total)));
                worst = lse_error <= worst ? worst : lse_error;  // NaN counts
                for (uint32_t d = 0; d < DECODE_DIM; d++) {
                    const double error =
                        std::fabs(double(found[query * DECODE_DIM + d]) - sum[d] / total);
                    worst = error <= worst ? worst : error;
                }
            }
        }
    }
    return worst;
}

// -- a launch -------------------------------------------------------------------------------------

constexpr double allowed = 2e-5;  // f32 sums of up to 131,072 tokens

// Memory for the plans of a rule, on both sides, and the launch that was captured over it. `counts` and
// lengths follow the plan in the same block, so that a step is one copy.
struct launch {
    scene &s;
    decode_rule rule;
    ptowsp_attention_sizes sizes{};
    ptowsp_attention_plan plan{};
    uint64_t bytes = 0;
    char *host = nullptr, *device = nullptr;
    uint32_t *counts = nullptr;
    int32_t *lengths = nullptr;
    device_array<float> accs;
    device_array<ptowsp_partial> states;
    device_array<uint32_t> tokens_done, next;
    device_array<decode_clock> clocks;
    cudaStream_t stream = nullptr;
    cudaGraphExec_t graph = nullptr;
    double plan_us = 0.0;

    launch(scene &of, decode_rule by)
        : s(of), rule(by), sizes(sizes_of(of, by)),
          accs(sizes.slot_count * of.o.group * DECODE_DIM), states(sizes.slot_count * of.o.group),
          tokens_done(of.lengths.size() * of.o.heads), next(1), clocks(sizes.lane_count) {
        const uint64_t lengths_at = (sizes.block_bytes + 7) / 8 * 8 + 8;
        bytes = lengths_at + s.lengths.size() * 2 * sizeof(int32_t);
        CUDA(cudaMallocHost(&host, bytes));
        CUDA(cudaMalloc(&device, bytes));
        if (ptowsp_attention_place(&sizes, host, sizes.block_bytes, &plan)) {
            command_fail("a batch of no sequences, or too many units");
        }
        counts = reinterpret_cast<uint32_t *>(host + lengths_at - 8);
        lengths = reinterpret_cast<int32_t *>(host + lengths_at);
        std::memcpy(lengths + s.lengths.size(), s.page_starts.data(),
                    s.lengths.size() * sizeof(int32_t));
        CUDA(cudaStreamCreate(&stream));
        cut(s.lengths);
        capture();
    }
    ~launch() {
        cudaGraphExecDestroy(graph);
        cudaStreamDestroy(stream);
        cudaFree(device);
        cudaFreeHost(host);
    }
    launch(const launch &) = delete;
    launch &operator=(const launch &) = delete;

    static ptowsp_attention_sizes sizes_of(const scene &s, decode_rule rule) {
        ptowsp_attention_sizes sizes;
        ptowsp_plan_info info;
        plan_check(decode_bound(rule, &s.shape, &s.limits, &sizes, &info), info);
        return sizes;
    }

    // Plans a step into host memory.
    void cut(const std::vector<int32_t> &now) {
        std::copy(now.begin(), now.end(), lengths);
        const ptowsp_attention_batch batch = {lengths, nullptr, uint32_t(now.size())};
        ptowsp_plan_info info;
        const double begin = now_us();
        plan_check(decode_cut(rule, &s.shape, &batch, &plan, &info), info);
        counts[0] = plan.unit_count;
        counts[1] = plan.merge_count;
        plan_us = now_us() - begin;
    }

    template <class T> T *on_device(T *in_host) const {
        return reinterpret_cast<T *>(device + (reinterpret_cast<char *>(in_host) - host));
    }

    decode_step step() const {
        decode_step step{};
        step.units = on_device(plan.units);
        step.merges = on_device(plan.merges);
        step.unit_begin = on_device(plan.unit_begin);
        step.counts = on_device(counts);
        step.next = decode_draws(rule) ? next.data : nullptr;
        step.tokens_done = tokens_done.data;
        step.lengths = on_device(lengths);
        step.page_starts = on_device(lengths + s.lengths.size());
        step.pages = s.page_table.data;
        step.queries = s.queries.data;
        step.keys = s.keys.data;
        step.values = s.values.data;
        step.out = s.out.data;
        step.lse = s.lse.data;
        step.states = states.data;
        step.accs = accs.data;
        step.clocks = clocks.data;
        step.head_count = uint32_t(s.o.heads);
        step.page_shift = s.o.page == 64 ? 6 : 4;
        step.scale = 1.0f / std::sqrt(float(DECODE_DIM));
        return step;
    }

    template <class Type, int Group> void enqueue() {
        decode_lanes<Type, Group><<<sizes.lane_count, DECODE_THREADS, 0, stream>>>(step());
    }
    void enqueue_kernel() {
        if (s.is_bf16) {
            s.o.group == 8 ? enqueue<decode_bf16, 8>() : enqueue<decode_bf16, 4>();
        } else {
            s.o.group == 8 ? enqueue<decode_f16, 8>() : enqueue<decode_f16, 4>();
        }
        CUDA(cudaGetLastError());
    }

    // Of a copy and a kernel, over memory for any plan within the limits.
    void capture() {
        cudaGraph_t recorded;
        CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        CUDA(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream));
        enqueue_kernel();
        CUDA(cudaStreamEndCapture(stream, &recorded));
        CUDA(cudaGraphInstantiateWithFlags(&graph, recorded, 0));
        CUDA(cudaGraphDestroy(recorded));
    }
    void replay() {
        CUDA(cudaGraphLaunch(graph, stream));
    }
    void wait() {
        CUDA(cudaStreamSynchronize(stream));
    }

    // Microseconds of the kernel alone, and of the copy alone: medians.
    double time(bool is_copy) {
        cudaEvent_t begin, end;
        CUDA(cudaEventCreate(&begin));
        CUDA(cudaEventCreate(&end));
        std::vector<double> times;
        for (uint64_t i = 0; i <= s.o.rounds; i++) {
            CUDA(cudaEventRecord(begin, stream));
            if (is_copy) {
                CUDA(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream));
            } else {
                enqueue_kernel();
            }
            CUDA(cudaEventRecord(end, stream));
            wait();
            float ms;
            CUDA(cudaEventElapsedTime(&ms, begin, end));
            if (i > 0) {
                times.push_back(double(ms) * 1000.0);
            }
        }
        CUDA(cudaEventDestroy(begin));
        CUDA(cudaEventDestroy(end));
        return median(times);
    }

    std::vector<decode_clock> ran() const {
        std::vector<decode_clock> all(sizes.lane_count);
        CUDA(cudaMemcpy(all.data(), clocks.data, all.size() * sizeof all[0],
                        cudaMemcpyDeviceToHost));
        return all;
    }
};

// -- printing -------------------------------------------------------------------------------------

// Largest over mean of the blocks' cycles; of persistent blocks alone, as others come one after another.
double measured_spread(const std::vector<decode_clock> &ran) {
    double most = 0.0, sum = 0.0;
    for (const decode_clock &block : ran) {
        const double cycles = double(block.end_cycles - block.begin_cycles);
        most = std::max(most, cycles);
        sum += cycles;
    }
    return most * double(ran.size()) / sum;
}

void timeline_write(const char *path, const std::vector<decode_clock> &ran, double cycles_per_ns) {
    std::vector<ptowsp_span> spans;
    for (uint32_t i = 0; i < ran.size(); i++) {
        const double ns = double(ran[i].end_cycles - ran[i].begin_cycles) / cycles_per_ns;
        spans.push_back({ran[i].begin_ns, ran[i].begin_ns + uint64_t(ns), i, 0});
    }
    ptowsp_context *context;
    if (ptowsp_context_create(nullptr, &context)) {
        command_fail("no context");
    }
    const char *name = "block";
    ptowsp_span_set set{};
    set.title = "blocks of a planned decode step";
    set.spans = spans.data();
    set.count = spans.size();
    set.names = &name;
    set.name_count = 1;
    ptowsp_export_options how{};
    how.lane_max = PTOWSP_EXPORT_LANE_MAX;
    std::FILE *file = std::fopen(path, "wb");
    if (!file) {
        command_fail("cannot write %s", path);
    }
    const ptowsp_output output = ptowsp_output_to_file(file);
    command_check(context, ptowsp_spans_export(context, &set, PTOWSP_EXPORT_SVG, &how, output));
    std::fclose(file);
    ptowsp_context_destroy(context);
}

// Microseconds in which the batch's bytes are read once.
double reading_us(const scene &s) {
    device_array<uint32_t> out(1);
    const uint64_t words =
        std::min(s.kv_bytes() / 2, s.elements * sizeof(uint16_t)) / sizeof(uint4);
    int sms;
    CUDA(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    cudaEvent_t begin, end;
    CUDA(cudaEventCreate(&begin));
    CUDA(cudaEventCreate(&end));
    std::vector<double> times;
    for (uint64_t i = 0; i <= s.o.rounds; i++) {
        CUDA(cudaEventRecord(begin));
        read_once<<<sms * 4, 512>>>(reinterpret_cast<const uint4 *>(s.keys.data), words, out.data);
        read_once<<<sms * 4, 512>>>(reinterpret_cast<const uint4 *>(s.values.data), words,
                                    out.data);
        CUDA(cudaEventRecord(end));
        CUDA(cudaEventSynchronize(end));
        float ms;
        CUDA(cudaEventElapsedTime(&ms, begin, end));
        if (i > 0) {
            times.push_back(double(ms) * 1000.0);
        }
    }
    CUDA(cudaEventDestroy(begin));
    CUDA(cudaEventDestroy(end));
    return median(times);
}

bool batch_run(const options &o, const decode_shape &shape, const char *title,
               std::vector<int32_t> lengths, bool is_checked) {
    scene s(o, shape, std::move(lengths), 0);
    const double limit = reading_us(s);
    bool is_good = true;
    std::printf("%s: %zu sequences, %.1f MB of KV, read once in %.1f us\n", title, s.lengths.size(),
                double(s.kv_bytes()) / 1e6, limit);
    for (int rule = 0; rule < DECODE_RULE_COUNT; rule++) {
        launch l(s, decode_rule(rule));
        CUDA(cudaMemset(s.out.data, 0xff, s.query_count * DECODE_DIM * sizeof(float)));
        l.replay();
        l.wait();
        const double error = is_checked ? error_of(s, s.lengths) : 0.0;
        const double us = l.time(false), copy_us = l.time(true);
        const bool is_right = error <= allowed;
        is_good &= is_right;
        std::printf("  %-12s %8.1f us  %5.1f %% of reading  %6u units %5u merges",
                    decode_rule_names[rule], us, 100.0 * limit / us, l.plan.unit_count,
                    l.plan.merge_count);
        if (rule == DECODE_PLANNED) {
            std::printf("  largest lane / mean %.3f planned, %.3f measured",
                        l.plan.cost_max / l.plan.cost_mean, measured_spread(l.ran()));
        }
        std::printf("  plan %.1f us, copy %.1f us", l.plan_us, copy_us);
        std::printf(is_checked ? is_right ? "  error %.1e\n" : "  error %.1e: WRONG\n" : "\n",
                    error);
        if (rule == DECODE_PLANNED && o.svg) {
            int khz;
            CUDA(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0));
            timeline_write(o.svg, l.ran(), double(khz) / 1e6);
        }
    }
    return is_good;
}

// Steps in a row, in each of which all sequences grow by a token. Two launches take turns: while one runs,
// the plan of the next step is written to the memory of the other.
bool serve(const options &o, const decode_shape &shape, std::vector<int32_t> lengths) {
    enum { STEPS = 64 };
    scene s(o, shape, lengths, STEPS);
    launch first(s, DECODE_PLANNED), second(s, DECODE_PLANNED);
    launch *launches[2] = {&first, &second};
    double planning = 0.0;
    first.cut(lengths);
    const double begin = now_us();
    for (int i = 0; i < STEPS; i++) {
        launches[i % 2]->replay();
        if (i + 1 < STEPS) {
            for (int32_t &length : lengths) {
                length++;
            }
            launches[(i + 1) % 2]->cut(lengths);
            planning += launches[(i + 1) % 2]->plan_us;
        }
        launches[i % 2]->wait();  // as a sampler would
    }
    const double wall = (now_us() - begin) / STEPS;
    const double error = o.no_check ? 0.0 : error_of(s, lengths);
    std::printf("serving: %d steps of %zu sequences, %.1f us a step, of which the kernel takes "
                "%.1f; planning, "
                "%.1f us, runs beside it; error of the last %.1e%s\n",
                int(STEPS), lengths.size(), wall, first.time(false), planning / (STEPS - 1), error,
                error <= allowed ? "" : ": WRONG");
    return error <= allowed;
}

std::vector<int32_t> lengths_of(const char *kind, uint32_t batch) {
    std::vector<int32_t> lengths(batch);
    lengths_generate(1, batch, lengths.data());
    for (uint32_t i = 0; i < batch && std::strcmp(kind, "lognormal") != 0; i++) {
        lengths[i] = !std::strcmp(kind, "equal") ? 2048 : i == 0 ? 131072 : 256 + lengths[i] % 768;
    }
    return lengths;
}

bool trace_run(const options &o, const decode_shape &shape, uint32_t batch) {
    trace all;
    char error[256];
    if (!trace_read(o.trace, &all, error, sizeof error)) {
        command_fail("%s", error);
    }
    constexpr double token_seconds = 0.03;
    bool is_good = true;
    for (int moment = 1; moment <= 3; moment++) {
        std::vector<int32_t> lengths(batch);
        const double at = trace_end(&all, token_seconds) * moment / 4;
        lengths.resize(trace_live(&all, at, token_seconds, batch, lengths.data()));
        const std::string title = "trace at " + std::to_string(int(at)) + " s";
        if (!lengths.empty()) {
            is_good &= batch_run(o, shape, title.c_str(), lengths,
                                 !o.no_check && (moment == 1 || o.check_all));
        }
    }
    trace_free(&all);
    return is_good;
}

}  // namespace

int main(int argc, char **argv) {
    options o;
    const command_option numbers[] = {
        {"--batch", &o.batch, nullptr, 1, 4096},    {"--group", &o.group, nullptr, 4, 8},
        {"--page", &o.page, nullptr, 16, 64},       {"--heads", &o.heads, nullptr, 1, 128},
        {"--blocks", &o.blocks, nullptr, 1, 65536}, {"--split", &o.split, nullptr, 1, 256},
        {"--rounds", &o.rounds, nullptr, 1, 10000}};
    const command_text texts[] = {{"--trace", &o.trace}, {"--type", &o.type}, {"--svg", &o.svg}};
    const command_flag flags[] = {{"--no-check", &o.no_check}, {"--check-all", &o.check_all}};
    const command_options all = {numbers, 7, texts, 3, flags, 2};
    command_parse_all(
        argc, argv,
        "Decode attention on a GPU by plans, beside other rules, with one kernel.\n"
        "  --batch N --group 4|8 --heads N --page 16|64 --type f16|bf16   of the step\n"
        "  --trace FILE   lengths that are live in a serving trace\n"
        "  --blocks N     persistent blocks (2 for each SM)\n"
        "  --split N      pieces under the fixed split (8)\n"
        "  --rounds N     of each measurement (31)\n"
        "  --svg FILE     a timeline of the planned blocks\n"
        "  --no-check, --check-all   of outputs: none, or all instead of the first batches\n",
        &all);
    const bool is_type = !std::strcmp(o.type, "f16") || !std::strcmp(o.type, "bf16");
    if (!is_type || (o.group != 4 && o.group != 8) || (o.page != 16 && o.page != 64)) {
        command_fail("the kernel has f16 and bf16, groups of 4 and 8, pages of 16 and 64");
    }
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        std::printf("decode: no CUDA device, so nothing was run\n");
        return 0;
    }
    cudaDeviceProp device;
    CUDA(cudaGetDeviceProperties(&device, 0));
    const uint32_t blocks =
        uint32_t(o.blocks ? o.blocks : uint64_t(device.multiProcessorCount) * 2);
    const decode_shape shape = {
        uint32_t(o.heads), uint32_t(o.group), uint32_t(o.page), blocks, uint32_t(o.split), {}};
    std::printf("%s: %u persistent blocks, %s, %u KV heads of %d, groups of %u, pages of %u\n",
                device.name, blocks, o.type, shape.kv_head_count, int(DECODE_DIM), shape.group,
                shape.page_size);
    bool is_good = true;
    const uint32_t batches[] = {1, 16, 64, 256};
    for (uint32_t batch : batches) {
        if (o.batch && batch != 64) {
            continue;
        }
        batch = o.batch ? uint32_t(o.batch) : batch;
        if (o.trace) {
            is_good &= trace_run(o, shape, batch);
            continue;
        }
        const bool is_checked = !o.no_check && (batch <= 16 || o.check_all);
        for (const char *kind : {"lognormal", "one long", "equal"}) {
            is_good &= batch_run(o, shape, kind, lengths_of(kind, batch), is_checked);
        }
    }
    is_good &= serve(o, shape, lengths_of("lognormal", o.batch ? uint32_t(o.batch) : 64));
    command_flush();
    return is_good ? 0 : 1;
}
