// The kernel of examples/cuda/decode.cu on emulated blocks: every rule, type, group and page size, blocks in
// order and reversed, twice over the same memory, against softmax in double precision.

#include "emulation.h"

#include "examples/cuda/decode_kernel.h"
#include "examples/cuda/decode_rules.h"

namespace {

int failures;
#define EXPECT(condition, ...)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            std::printf("line %d: ", __LINE__);                                                    \
            std::printf(__VA_ARGS__);                                                              \
            std::printf("\n");                                                                     \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

int number_at(uint64_t index, uint32_t salt) {
    uint64_t z = (index + 1) * 0x9e3779b97f4a7c15ull + salt * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 29)) * 0x94d049bb133111ebull;
    return int((z >> 33) % 129) - 64;
}

// n / 64, which both types have exactly.
uint16_t element(int n, bool is_bf16) {
    const float value = float(n) / 64.0f;
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    if (is_bf16) {
        return uint16_t(bits >> 16);
    }
    const uint32_t exponent = bits >> 23 & 255u;
    return uint16_t(
        n == 0 ? 0 : (bits >> 16 & 0x8000u) | (exponent - 112) << 10 | (bits >> 13 & 0x3ffu));
}

struct scene {
    bool is_bf16;
    uint32_t heads = 2, group, page;
    std::vector<int32_t> lengths;
    std::vector<int32_t> pages, page_starts;
    std::vector<uint16_t> keys, values, queries;
    std::vector<float> out, lse;
};

scene scene_make(bool is_bf16, uint32_t group, uint32_t page, std::vector<int32_t> lengths) {
    scene s{is_bf16, 2, group, page, std::move(lengths), {}, {}, {}, {}, {}, {}, {}};
    for (int32_t length : s.lengths) {
        s.page_starts.push_back(int32_t(s.pages.size()));
        for (int32_t at = 0; at < length; at += int32_t(page)) {
            s.pages.push_back(0);
        }
    }
    const size_t count = s.pages.size();
    for (size_t i = 0; i < count; i++) {
        s.pages[i] = int32_t(count - 1 - i);
    }
    const size_t elements = count * page * s.heads * DECODE_DIM;
    const size_t rows = s.lengths.size() * s.heads * group;
    for (size_t i = 0; i < elements; i++) {
        s.keys.push_back(element(number_at(i, 2), is_bf16));
        s.values.push_back(element(number_at(i, 3), is_bf16));
    }
    for (size_t i = 0; i < rows * DECODE_DIM; i++) {
        s.queries.push_back(element(number_at(i, 1), is_bf16));
    }
    s.out.resize(rows * DECODE_DIM);
    s.lse.resize(rows);
    return s;
}

double error_of(const scene &s) {
    double worst = 0.0;
    for (uint32_t i = 0; i < s.lengths.size(); i++) {
        for (uint32_t row = 0; s.lengths[i] > 0 && row < s.heads * s.group; row++) {
            const uint64_t query = uint64_t(i) * s.heads * s.group + row;
            std::vector<double> weights, sum(DECODE_DIM);
            double top = -1e300, total = 0.0;
            std::vector<uint64_t> at;
            for (uint32_t t = 0; t < uint32_t(s.lengths[i]); t++) {
                const uint64_t page = uint64_t(s.pages[uint32_t(s.page_starts[i]) + t / s.page]);
                at.push_back(((page * s.page + t % s.page) * s.heads + row / s.group) * DECODE_DIM);
                double score = 0.0;
                for (uint32_t d = 0; d < DECODE_DIM; d++) {
                    score += number_at(query * DECODE_DIM + d, 1) / 64.0 *
                             (number_at(at[t] + d, 2) / 64.0);
                }
                weights.push_back(score * 0.0883883476483184406);  // 1 / sqrt(128)
                top = std::max(top, weights[t]);
            }
            for (uint32_t t = 0; t < uint32_t(s.lengths[i]); t++) {
                const double weight = std::exp(weights[t] - top);
                total += weight;
                for (uint32_t d = 0; d < DECODE_DIM; d++) {
                    sum[d] += weight * (number_at(at[t] + d, 3) / 64.0);
                }
            }
            const double lse_error = std::fabs(double(s.lse[query]) - (top + std::log(total)));
            worst = lse_error <= worst ? worst : lse_error;
            for (uint32_t d = 0; d < DECODE_DIM; d++) {
                const double error =
                    std::fabs(double(s.out[query * DECODE_DIM + d]) - sum[d] / total);
                worst = error <= worst ? worst : error;  // NaN counts
            }
        }
    }
    return worst;
}

// A plan in memory, and what a launch needs besides.
struct launch {
    std::vector<uint64_t> block;
    ptowsp_attention_plan plan;
    uint32_t counts[2];
    std::vector<float> accs;
    std::vector<ptowsp_partial> states;
    std::vector<uint32_t> tokens_done;
    uint32_t next = 0;
    std::vector<decode_clock> clocks;
};

void run(scene *s, decode_rule rule, const decode_shape &shape, bool is_reversed, launch *l) {
    decode_step step{};
    l->counts[0] = l->plan.unit_count;
    l->counts[1] = l->plan.merge_count;
    step.units = l->plan.units;
    step.merges = l->plan.merges;
    step.unit_begin = l->plan.unit_begin;
    step.counts = l->counts;
    step.next = decode_draws(rule) ? &l->next : nullptr;
    step.tokens_done = l->tokens_done.data();
    step.lengths = s->lengths.data();
    step.pages = s->pages.data();
    step.page_starts = s->page_starts.data();
    step.queries = s->queries.data();
    step.keys = s->keys.data();
    step.values = s->values.data();
    step.out = s->out.data();
    step.lse = s->lse.data();
    step.states = l->states.data();
    step.accs = l->accs.data();
    step.clocks = l->clocks.data();
    step.head_count = shape.kv_head_count;
    step.page_shift = shape.page_size == 64 ? 6 : 4;
    step.scale = 0.0883883476f;
    for (uint32_t i = 0; i < l->plan.lane_count; i++) {
        const uint32_t block = is_reversed ? l->plan.lane_count - 1 - i : i;
        const bool is_over = emulation::run_block(block, l->plan.lane_count, DECODE_THREADS, [&] {
            if (s->is_bf16) {
                s->group == 8 ? decode_lanes<decode_bf16, 8>(step)
                              : decode_lanes<decode_bf16, 4>(step);
            } else {
                s->group == 8 ? decode_lanes<decode_f16, 8>(step)
                              : decode_lanes<decode_f16, 4>(step);
            }
        });
        EXPECT(is_over, "block %u never ends", block);
    }
    EXPECT(l->next == 0, "the counter is left at %u", l->next);
    for (uint32_t done : l->tokens_done) {
        EXPECT(done == 0, "%u tokens are left counted", done);
    }
}

// Every KV token of every head once, slots and merges in order.
void cut_check(const scene &s, const ptowsp_attention_plan &plan) {
    uint32_t at = 0, slot = 0, merge = 0;
    for (uint32_t i = 0; i < s.lengths.size(); i++) {
        for (uint32_t head = 0; s.lengths[i] > 0 && head < s.heads; head++) {
            uint32_t end = 0, pieces = 0;
            for (; at < plan.unit_count && plan.units[at].params[0] == i &&
                   plan.units[at].params[1] == head;
                 at++) {
                const ptowsp_work &unit = plan.units[at];
                EXPECT(unit.params[2] == end && unit.params[2] % s.page == 0,
                       "unit %u begins at %u", at, unit.params[2]);
                EXPECT(ptowsp_work_is_first(&unit) == (end == 0), "unit %u is first", at);
                end += unit.params[3];
                pieces++;
                EXPECT(ptowsp_work_is_last(&unit) == (end == uint32_t(s.lengths[i])),
                       "unit %u is last", at);
            }
            EXPECT(end == uint32_t(s.lengths[i]), "sequence %u ends at %u", i, end);
            if (pieces > 1) {
                const ptowsp_work &one = plan.merges[merge++];
                EXPECT(one.params[0] == i && one.params[1] == head && one.params[2] == slot &&
                           one.params[3] == pieces,
                       "merge %u", merge - 1);
                slot += pieces;
            }
        }
    }
    EXPECT(at == plan.unit_count && merge == plan.merge_count && slot == plan.slot_count, "counts");
    for (uint32_t i = at; i < plan.unit_capacity; i++) {
        EXPECT(!ptowsp_work_is_valid(&plan.units[i]), "unit %u beyond the plan", i);
    }
}

void rule_check(decode_rule rule, scene *s) {
    const decode_shape shape = {s->heads, s->group, s->page, 5, 3, {}};
    ptowsp_attention_limits limits{};
    limits.sequence_count_max = uint32_t(s->lengths.size());
    limits.kv_length_max = 1000;
    ptowsp_attention_sizes sizes;
    ptowsp_plan_info info;
    launch l;
    EXPECT(decode_bound(rule, &shape, &limits, &sizes, &info) == PTOWSP_OK, "bound");
    l.block.resize(sizes.block_bytes / 8 + 1);
    EXPECT(ptowsp_attention_place(&sizes, l.block.data(), sizes.block_bytes, &l.plan) == PTOWSP_OK,
           "place");
    l.accs.assign(sizes.slot_count * s->group * DECODE_DIM, NAN);
    l.states.assign(sizes.slot_count * s->group, {NAN, NAN});
    l.tokens_done.assign(s->lengths.size() * s->heads, 0);
    l.clocks.resize(sizes.lane_count);
    const std::vector<int32_t> lengths = s->lengths;
    for (int turn = 0; turn < 3; turn++) {  // over the same memory, the last with shorter sequences
        for (size_t i = 0; i < lengths.size(); i++) {
            s->lengths[i] = turn == 2 ? lengths[i] / 3 : lengths[i];
        }
        const ptowsp_attention_batch batch = {s->lengths.data(), nullptr,
                                              uint32_t(s->lengths.size())};
        EXPECT(decode_cut(rule, &shape, &batch, &l.plan, &info) == PTOWSP_OK, "cut");
        cut_check(*s, l.plan);
        std::fill(s->out.begin(), s->out.end(), NAN);
        run(s, rule, shape, turn == 1, &l);
        const double error = error_of(*s);
        EXPECT(error < 2e-6, "%s, %s, group %u, page %u, turn %d: error %g",
               decode_rule_names[rule], s->is_bf16 ? "bf16" : "f16", s->group, s->page, turn,
               error);
    }
    s->lengths = lengths;
    // A plan placed for fewer units than the batch has.
    if (l.plan.unit_count > 1) {
        l.plan.unit_capacity = 1;
        const ptowsp_attention_batch batch = {s->lengths.data(), nullptr,
                                              uint32_t(s->lengths.size())};
        EXPECT(decode_cut(rule, &shape, &batch, &l.plan, &info) == PTOWSP_BUFFER_OVERFLOW, "small");
    }
}

}  // namespace

int main() {
    for (uint32_t group = 4; group <= 8; group += 4) {
        for (uint32_t page = 16; page <= 64; page *= 4) {
            scene s = scene_make(group == 4, group, page, {1, 0, 300, 7, 64});
            for (int rule = 0; rule < DECODE_RULE_COUNT; rule++) {
                rule_check(decode_rule(rule), &s);
            }
        }
    }
    std::printf("%s\n", failures ? "cuda: FAILED" : "cuda: decode ok");
    return failures != 0;
}
