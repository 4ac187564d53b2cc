// Attention plans, at random: batches and configurations of every kind are planned, and each plan is
// judged by the slow reference of attention_judge.h, which counts. What the header says of sizes,
// bounds, blocks, exports and checks is tried on the same batches. Small batches are planned
// in all ways, to see how much the largest lane could have been saved.

#include "attention_sample.h"

// -- one plan -------------------------------------------------------------------------------------

static void require_sizes(const sample *s, const ptowsp_attention_sizes *sizes,
                          const ptowsp_attention_plan *plan) {
    require(s, sizes->unit_count == plan->unit_count, "size counts other units");
    require(s, sizes->merge_count == plan->merge_count, "size counts other merges");
    require(s, sizes->slot_count == plan->slot_count, "size counts other slots");
    require(s, sizes->slot_rows == plan->slot_rows, "size has other slot_rows");
    require(s, sizes->lane_count == s->config.lane_count, "size has other lanes");
}

// Generates into arrays of exactly the sizes, or a few elements more, between guards.
static plan_buffer generate(sample *s, const ptowsp_attention_sizes *sizes) {
    uint64_t spare = random_one_in(&s->random, 3) ? (uint64_t)test_random_in(&s->random, 1, 5) : 0;
    plan_buffer b = plan_buffer_of(sizes, spare, !random_one_in(&s->random, 8));
    ptowsp_plan_info info;
    memset(&info, 0x77, sizeof info);
    ptowsp_status status = ptowsp_attention_generate(&s->batch, &s->config, &b.plan, &info);
    require(s, status == PTOWSP_OK && info.fault == PTOWSP_FAULT_NONE, "generate fails");
    plan_buffer_assert_guards(&b);
    require_sizes(s, sizes, &b.plan);
    return b;
}

// -- bounds, blocks, capacities, exports ----------------------------------------------------------

// Limits that the batch reaches, or more; with totals, or without.
static void require_bound(sample *s, const ptowsp_attention_sizes *sizes) {
    ptowsp_attention_limits limits = reference_limits(&s->batch);
    const uint32_t factor = random_one_in(&s->random, 2) ? 1 : 3;
    const int64_t longest = (int64_t)limits.kv_length_max * factor, most = limits.query_length_max;
    limits.sequence_count_max *= factor;
    limits.kv_length_max = (int32_t)(longest < INT32_MAX ? longest : INT32_MAX);
    limits.kv_token_count_max *= random_one_in(&s->random, 2);
    limits.query_token_count_max *= random_one_in(&s->random, 2);
    ptowsp_attention_sizes bound;
    memset(&bound, 0x77, sizeof bound);
    ptowsp_plan_info info;
    ptowsp_status status = ptowsp_attention_bound(&s->config, &limits, &bound, &info);
    if (status == PTOWSP_LIMIT_EXCEEDED) {
        double height = (double)reference_ceil(most ? (uint64_t)most : 1, s->rules.tile_tokens);
        double pieces = s->rules.is_invariant ? (double)longest / (double)s->rules.chunk + 2 : 2;
        require(s, limits.sequence_count_max * height * s->config.kv_head_count * pieces > 1e9,
                "bound refuses small limits");
        return;
    }
    require(s, status == PTOWSP_OK, "bound fails");
    require(s, reference_is_within(sizes, &bound), "more than the bound");
    require(s, sizes->lane_count == bound.lane_count, "other lanes than the bound");
    require(s, s->rules.is_invariant || bound.slot_count <= 2 * (s->rules.lane_count - 1),
            "the bound of slots depends on more than lanes");
    require(s, s->rules.is_invariant || bound.merge_count <= 2 * (s->rules.lane_count - 1),
            "the bound of merges depends on more than lanes");
}

// An array of the plan lies in the block, and the block is used for nothing else.
static uint64_t require_inside(const sample *s, const void *array, size_t bytes,
                               const unsigned char *block, size_t block_bytes) {
    if (bytes > 0) {
        const unsigned char *from = (const unsigned char *)array;
        require(s, from >= block && from + bytes <= block + block_bytes, "an array is outside");
        require(s, ((uintptr_t)from & 3) == 0, "an array is not aligned");
    }
    return bytes;
}

static void require_block(const sample *s, const ptowsp_attention_sizes *sizes,
                          const ptowsp_attention_plan *expected) {
    size_t bytes = (size_t)sizes->block_bytes, room = bytes + 2 * GUARD_BYTES;
    unsigned char *memory = (unsigned char *)test_alloc(room, 1);
    memset(memory, GUARD_VALUE, room);
    unsigned char *block = memory + GUARD_BYTES;
    ptowsp_attention_plan plan;
    memset(&plan, 0x77, sizeof plan);
    ptowsp_status status = ptowsp_attention_place(sizes, block, bytes ? bytes - 1 : 0, &plan);
    require(s, bytes == 0 || status == PTOWSP_BUFFER_OVERFLOW, "place takes a block too small");
    memset(&plan, 0x77, sizeof plan);
    require(s, ptowsp_attention_place(sizes, block, bytes, &plan) == PTOWSP_OK, "place fails");
    require(s, plan.unit_capacity >= sizes->unit_count && plan.merge_capacity >= sizes->merge_count,
            "place gives less than the sizes");
    require(s, plan.slot_capacity >= sizes->slot_count, "place gives fewer slots");
    require(s,
            plan.unit_count == 0 && plan.merge_count == 0 && plan.slot_count == 0 &&
                plan.tile_count == 0 && plan.cost_max == 0 && plan.cost_mean == 0 &&
                plan.lane_count == sizes->lane_count && plan.slot_rows == 0,
            "place leaves rubbish");
    size_t ranges = ((size_t)sizes->lane_count + 1) * sizeof(uint32_t), sum = 0;
    size_t units = plan.unit_capacity * sizeof(ptowsp_work);
    size_t merges = plan.merge_capacity * sizeof(ptowsp_work);
    sum += require_inside(s, plan.units, units, block, bytes);
    sum += require_inside(s, plan.merges, merges, block, bytes);
    sum += require_inside(s, plan.unit_begin, ranges, block, bytes);
    sum += require_inside(s, plan.merge_begin, ranges, block, bytes);
    sum += require_inside(s, plan.lane_costs, sizes->lane_count * sizeof(double), block, bytes);
    require(s, sum <= bytes, "arrays overlap");
    status = ptowsp_attention_generate(&s->batch, &s->config, &plan, NULL);
    require(s, status == PTOWSP_OK, "generate into a block fails");
    require(s, same_plan(&plan, expected), "a block has another plan");
    require_good(s, &plan, NULL);
    for (size_t i = 0; i < GUARD_BYTES; i++) {
        require(s, memory[i] == GUARD_VALUE && memory[room - 1 - i] == GUARD_VALUE,
                "a byte next to the block was written");
    }
}

// One element too few, of units, merges or slots: the number needed is told, nothing is written.
static void require_refusal(sample *s, const ptowsp_attention_sizes *sizes) {
    for (int which = 0; which < 3; which++) {
        uint64_t need = which == 0   ? sizes->unit_count
                        : which == 1 ? sizes->merge_count
                                     : sizes->slot_count;
        if (need == 0) {
            continue;
        }
        uint64_t have = random_one_in(&s->random, 2) ? need - 1 : test_random(&s->random) % need;
        plan_buffer b = plan_buffer_make(
            which == 0 ? have : sizes->unit_count, which == 1 ? have : sizes->merge_count,
            which == 2 ? have : sizes->slot_count, sizes->lane_count, true);
        plan_buffer before = plan_buffer_copy(&b);
        ptowsp_plan_info info;
        memset(&info, 0x77, sizeof info);
        ptowsp_status status = ptowsp_attention_generate(&s->batch, &s->config, &b.plan, &info);
        require(s, status == PTOWSP_BUFFER_OVERFLOW, "a small array is not refused");
        require(s, info.value == (int64_t)need && info.limit == (int64_t)have,
                "a refusal tells other numbers");
        plan_buffer_assert_same(&b, &before);
    }
}

// The arrays of FlashInfer's form, in memory of exactly their size.
static void require_export(sample *s, const ptowsp_attention_plan *plan) {
    uint32_t units = plan->unit_count, tiles = plan->tile_count, merges = plan->merge_count;
    uint32_t capacity = plan->unit_capacity, merge_capacity = plan->merge_capacity;
    const size_t counts[4] = {capacity, capacity, (size_t)capacity + 1, (size_t)merge_capacity + 1};
    int32_t *arrays[4];
    for (int i = 0; i < 4; i++) {
        arrays[i] = (int32_t *)test_alloc(counts[i], sizeof(int32_t));
    }
    int without = (int)test_random_in(&s->random, 0, 7);  // one of them, or none
    ptowsp_attention_arrays given = {
        without == 0 ? NULL : arrays[0], without == 1 ? NULL : arrays[1],
        without == 2 ? NULL : arrays[2], without == 3 ? NULL : arrays[3]};
    require(s, ptowsp_attention_export(plan, &given) == PTOWSP_OK, "export fails");
    uint32_t tile = 0, ordinal = 0;
    for (uint32_t i = 0; i < units; i++) {
        const ptowsp_work *unit = &plan->units[i];
        ordinal = ptowsp_work_is_first(unit) ? 0 : ordinal + 1;
        bool is_same = !given.request_indices ||
                       given.request_indices[i] == (int32_t)ptowsp_work_request(unit);
        is_same =
            is_same && (!given.kv_tile_indices || given.kv_tile_indices[i] == (int32_t)ordinal);
        if (ordinal == 0 && given.o_indptr) {
            is_same = is_same && given.o_indptr[tile++] == (int32_t)i;
        }
        require(s, is_same, "export says another thing of a unit");
    }
    for (uint32_t i = units; i < capacity; i++) {
        require(s,
                (!given.request_indices || given.request_indices[i] == -1) &&
                    (!given.kv_tile_indices || given.kv_tile_indices[i] == -1),
                "export says something of no unit");
    }
    for (uint64_t i = tiles; i <= capacity && given.o_indptr; i++) {
        require(s, given.o_indptr[i] == (int32_t)units, "export has another o_indptr");
    }
    require(s, !given.o_indptr || tile == tiles, "export has other tiles");
    uint32_t slots = 0, merge = 0;
    for (uint64_t i = 0; i <= merge_capacity && given.merge_indptr; i++) {
        require(s, given.merge_indptr[i] == (int32_t)slots, "export has another merge_indptr");
        slots += merge < merges ? plan->merges[merge].params[3] : 0;
        while (merge < merges && plan->merges[merge].params[2] < slots) {
            merge++;  // of the same tile
        }
    }
}

// -- invariance -----------------------------------------------------------------------------------

// The pieces of a sequence as a hash: heads, tiles, KV, flags, whole or part.
static uint64_t pieces_of(const ptowsp_attention_plan *plan, uint32_t sequence) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint32_t i = 0; i < plan->unit_count; i++) {
        const ptowsp_work *unit = &plan->units[i];
        if (ptowsp_work_request(unit) == sequence) {
            const uint64_t words[] = {unit->params[1],
                                      unit->params[2],
                                      unit->params[3],
                                      unit->reserved,
                                      unit->flags,
                                      unit->tier,
                                      unit->work_id == PTOWSP_NO_SLOT};
            for (size_t j = 0; j < sizeof words / sizeof *words; j++) {
                hash = (hash ^ words[j]) * UINT64_C(0x100000001b3);
            }
        }
    }
    return hash;
}

// Sequence `mine` in another batch, at another place, on other lanes, has the same pieces.
static void require_invariant(sample *s, const ptowsp_attention_plan *plan) {
    uint32_t count = s->batch.sequence_count;
    require(s, ptowsp_attention_is_invariant(&s->config), "is_invariant says no");
    if (count == 0) {
        return;
    }
    for (int round = 0; round < 2; round++) {
        sample other = *s;
        uint32_t kept = round ? (uint32_t)test_random_in(&s->random, 1, count) : 1;
        uint32_t from[300];
        other.kv = (int32_t *)test_alloc(kept, sizeof(int32_t));
        other.queries = (int32_t *)test_alloc(kept, sizeof(int32_t));
        assert_true(count <= 300);
        for (uint32_t i = 0; i < kept; i++) {  // any order, some of them twice
            from[i] = (uint32_t)(test_random(&s->random) % count);
            other.kv[i] = s->kv[from[i]];
            other.queries[i] = (int32_t)reference_queries(&s->batch, from[i]);
        }
        other.batch.kv_lengths = other.kv;
        other.batch.query_lengths = s->queries ? other.queries : NULL;
        other.batch.sequence_count = kept;
        other.config.lane_count = (uint32_t)test_random_in(&s->random, 1, 40);
        other.config.lane_speeds = NULL;
        other.rules = reference_rules_of(&other.config);
        ptowsp_attention_sizes sizes;
        if (size_of(&other, &sizes)) {
            plan_buffer b = generate(&other, &sizes);
            require_good(&other, &b.plan, NULL);
            for (uint32_t i = 0; i < kept; i++) {
                require(&other, pieces_of(&b.plan, i) == pieces_of(plan, from[i]),
                        "pieces depend on neighbours");
            }
        }
    }
}

// Decode steps have a loop of their own. With the one query of each sequence given, the same batch
// goes the way of all others, and must come out the same.
static void require_same_without_queries(sample *s, const ptowsp_attention_sizes *sizes,
                                         const ptowsp_attention_plan *plan) {
    sample other = *s;
    const uint32_t count = s->batch.sequence_count;
    int32_t *ones = (int32_t *)test_alloc(count, sizeof *ones);
    for (uint32_t i = 0; i < count; i++) {
        ones[i] = 1;
    }
    other.batch.query_lengths = ones;
    plan_buffer b = generate(&other, sizes);
    require(s, same_plan(&b.plan, plan), "one query of each sequence makes another plan");
}

TEST(attention__plans_are_what_the_slow_reference_says) {
    uint64_t seed = test_seed(), planned = 0, refused = 0, split = 0, invariant = 0;
    for (uint64_t number = 0; TEST_ROUNDS(number, 25000); number++) {
        sample s;
        sample_make(&s, seed, number);
        ptowsp_attention_sizes sizes;
        if (size_of(&s, &sizes)) {
            plan_buffer b = generate(&s, &sizes);
            require_good(&s, &b.plan, NULL);
            require_bound(&s, &sizes);
            if (random_one_in(&s.random, 8)) {
                require_block(&s, &sizes, &b.plan);
                require_refusal(&s, &sizes);
                require_export(&s, &b.plan);
            }
            if (s.rules.is_invariant && random_one_in(&s.random, 4)) {
                require_invariant(&s, &b.plan);
            }
            if (!s.batch.query_lengths) {
                require_same_without_queries(&s, &sizes, &b.plan);
            }
            planned++;
            split += b.plan.merge_count > 0;
            invariant += s.rules.is_invariant;
        } else {
            refused++;
        }
        test_release();
    }
    print_message("%llu planned, %llu of them with merges, %llu invariant; %llu refused\n",
                  (unsigned long long)planned, (unsigned long long)split,
                  (unsigned long long)invariant, (unsigned long long)refused);
    assert_true(refused * 20 < planned);
    assert_true(split * 4 > planned && invariant * 5 > planned);
}

// -- corrupted plans ------------------------------------------------------------------------------

// Another value: one more or less, or any.
static uint32_t other_value(uint64_t *random, uint32_t value) {
    switch (test_random(random) % 4) {
    case 0: return value + 1;
    case 1: return value - 1;
    case 2: return value ^ (UINT32_C(1) << test_random(random) % 32);
    default: return (uint32_t)test_random(random);
    }
}

// Changes of the plan, or of the batch that it is held against: of a unit, a merge, what is behind them,
// a lane's ranges, a sequence. Where there is none, of a `none` that nobody looks at.
// clang-format off
#define OTHER(type, x) ((x) = (type)other_value(random, (x)))
#define CORRUPTIONS(C)                                                                             \
    C(UNIT_REQUEST, OTHER(uint32_t, unit->params[0]))                                              \
    C(UNIT_HEAD, OTHER(uint32_t, unit->params[1]))                                                 \
    C(UNIT_TILE, OTHER(uint16_t, unit->reserved))                                                  \
    C(UNIT_KV_START, OTHER(uint32_t, unit->params[2]))                                             \
    C(UNIT_KV_LEN, OTHER(uint32_t, unit->params[3]))                                               \
    C(UNIT_FIRST, unit->flags ^= PTOWSP_WORK_FIRST)                                                \
    C(UNIT_LAST, unit->flags ^= PTOWSP_WORK_LAST)                                                  \
    C(UNIT_INVALID, (unit->flags |= PTOWSP_WORK_INVALID, unit->params[3] = test_random(random) % 2 ? 0 : unit->params[3])) \
    C(UNIT_TIER, OTHER(uint8_t, unit->tier))                                                       \
    C(UNIT_SLOT, OTHER(uint32_t, unit->work_id))                                                   \
    C(UNIT_IS_WHOLE_OR_PART, unit->work_id = unit->work_id == PTOWSP_NO_SLOT ? 0 : PTOWSP_NO_SLOT) \
    C(UNIT_IS_ANOTHER, *unit = *another)                                                           \
    C(SLOTS_SWAPPED, (unit->work_id = another->work_id, another->work_id = id))                    \
    /* A cut is somewhere else, which is right if it is one. */                                    \
    C(KV_MOVED, (unit->params[3] += 1, next->params[2] += 1, next->params[3] -= 1))                \
    C(MERGE_REQUEST, OTHER(uint32_t, merge->params[0]))                                            \
    C(MERGE_HEAD, OTHER(uint32_t, merge->params[1]))                                               \
    C(MERGE_TILE, OTHER(uint16_t, merge->reserved))                                                \
    C(MERGE_FIRST, OTHER(uint32_t, merge->params[2]))                                              \
    C(MERGE_COUNT, OTHER(uint32_t, merge->params[3]))                                              \
    C(MERGE_ID, OTHER(uint32_t, merge->work_id))                                                   \
    C(MERGE_FLAGS, merge->flags ^= (uint8_t)(1u << test_random(random) % 8))                       \
    C(MERGE_IS_ANOTHER, memmove(merge->params, other_merge->params, sizeof merge->params))         \
    C(UNIT_RANGE, OTHER(uint32_t, plan->unit_begin[lane]))                                         \
    C(MERGE_RANGE, OTHER(uint32_t, plan->merge_begin[lane]))                                       \
    C(UNIT_RANGE_END, plan->unit_begin[lanes]--)                                                   \
    C(MERGE_RANGE_END, plan->merge_begin[lanes]++)                                                 \
    C(UNIT_COUNT, OTHER(uint32_t, plan->unit_count))                                               \
    C(MERGE_COUNT_OF_PLAN, OTHER(uint32_t, plan->merge_count))                                     \
    C(SLOT_COUNT, OTHER(uint32_t, plan->slot_count))                                               \
    C(SLOT_CAPACITY, plan->slot_capacity = plan->slot_count ? plan->slot_count - 1 : plan->slot_capacity) \
    C(REST_IS_VALID, unit_rest->flags = (uint8_t)(test_random(random) % 4))                        \
    C(REST_HAS_LENGTH, unit_rest->params[3] = (uint32_t)random_scaled(random, 31))                 \
    C(REST_OF_MERGES, merge_rest->flags = (uint8_t)(test_random(random) % 4))                      \
    C(SLOT_ROWS, plan->slot_rows = plan->slot_rows ? plan->slot_rows - 1 : 1)                      \
    C(LANE_COUNT, OTHER(uint32_t, plan->lane_count))                                               \
    C(TILE_TOKENS, OTHER(uint32_t, plan->tile_tokens))                                             \
    C(GROUP, OTHER(uint32_t, plan->group))                                                         \
    C(KV_GROWN, *kv += *kv < INT32_MAX)                                                            \
    C(KV_SHRUNK, *kv -= *kv > 0 && (!s->config.is_causal || !s->queries || *queries < *kv))        \
    C(QUERIES_CHANGED, *queries -= *queries > 0)                                                   \
    C(SEQUENCE_DROPPED, s->batch.sequence_count -= count > 0)

#define CORRUPTION_ENUM(name, change) CORRUPT_##name,
#define CORRUPTION_NAME(name, change) #name,
#define CORRUPTION_CASE(name, change) case CORRUPT_##name: change; break;
enum { CORRUPTIONS(CORRUPTION_ENUM) CORRUPTION_COUNT };
static const char *const corruption_names[] = {CORRUPTIONS(CORRUPTION_NAME)};
// clang-format on

// One of those from `from` up to `end`.
static ptowsp_work *work_in(uint64_t *random, ptowsp_work *works, uint64_t from, uint64_t end) {
    static ptowsp_work none;
    return from < end ? &works[from + test_random(random) % (end - from)] : &none;
}

static void corrupt(sample *s, ptowsp_attention_plan *plan, int kind) {
    const uint32_t lanes = s->config.lane_count, count = s->batch.sequence_count;
    uint64_t *random = &s->random;
    const uint32_t lane = (uint32_t)(test_random(random) % (lanes + 1));
    const uint32_t sequence = count ? (uint32_t)(test_random(random) % count) : 0;
    int32_t none[2] = {0, 0}, *kv = count ? &s->kv[sequence] : &none[0];
    int32_t *queries = count && s->queries ? &s->queries[sequence] : &none[1];
    ptowsp_work *unit = work_in(random, plan->units, 0, plan->unit_count);
    ptowsp_work *another = work_in(random, plan->units, 0, plan->unit_count);
    ptowsp_work *next =
        plan->unit_count == 0 || unit == plan->units + plan->unit_count - 1 ? unit : unit + 1;
    ptowsp_work *merge = work_in(random, plan->merges, 0, plan->merge_count);
    ptowsp_work *other_merge = work_in(random, plan->merges, 0, plan->merge_count);
    ptowsp_work *unit_rest = work_in(random, plan->units, plan->unit_count, plan->unit_capacity);
    ptowsp_work *merge_rest =
        work_in(random, plan->merges, plan->merge_count, plan->merge_capacity);
    const uint32_t id = unit->work_id;
    switch (kind) { CORRUPTIONS(CORRUPTION_CASE) }
}

static int32_t *lengths_copy(const int32_t *lengths, uint32_t count) {
    int32_t *copy = (int32_t *)test_alloc(count, sizeof *copy);
    memcpy(copy, lengths, count * sizeof *copy);
    return copy;
}

TEST(attention__check_finds_every_kind_of_corruption) {
    uint64_t seed = test_seed() + 1, made[CORRUPTION_COUNT], missed[CORRUPTION_COUNT];
    memset(made, 0, sizeof made);
    memset(missed, 0, sizeof missed);
    for (uint64_t number = 0; TEST_ROUNDS(number, 2500); number++) {
        sample s;
        sample_make(&s, seed, number);
        ptowsp_attention_sizes sizes;
        bool is_planned = size_of(&s, &sizes);
        for (int kind = 0; is_planned && kind < CORRUPTION_COUNT; kind++) {
            sample mine = s;
            mine.random += (uint64_t)kind;
            const uint32_t count = s.batch.sequence_count;
            mine.batch.kv_lengths = mine.kv = lengths_copy(s.kv, count);
            mine.batch.query_lengths = mine.queries =
                s.queries ? lengths_copy(s.queries, count) : NULL;
            plan_buffer b = generate(&mine, &sizes);
            corrupt(&mine, &b.plan, kind);
            plan_buffer before = plan_buffer_copy(&b);
            ptowsp_plan_info info = {0};
            ptowsp_status status =
                ptowsp_attention_check(&mine.batch, &mine.config, &b.plan, &info);
            plan_buffer_assert_same(&b, &before);  // proving writes nothing
            require(&mine, (status == PTOWSP_OK) == (info.fault == PTOWSP_FAULT_NONE),
                    "status and fault disagree");
            reference_verdict verdict = reference_judge(&mine.batch, &mine.config, &b.plan, NULL);
            const bool is_of_merge = kind >= CORRUPT_MERGE_REQUEST && kind <= CORRUPT_MERGE_FLAGS;
            if (status != PTOWSP_OK && (is_of_merge || kind <= CORRUPT_UNIT_SLOT)) {
                // One field of a merge, or of a unit, which may show only where it is merged.
                require(&mine,
                        info.fault == PTOWSP_FAULT_MERGE_WRONG ||
                            (!is_of_merge && info.fault == PTOWSP_FAULT_UNIT_WRONG),
                        "the fault is of something else");
            }
            if (verdict.grade == REFERENCE_WRONG) {
                made[kind]++;
                missed[kind] += status == PTOWSP_OK;
                if (status == PTOWSP_OK && missed[kind] == 1) {
                    sample_print(&mine);
                    print_message("check takes it, %s: %s\n", corruption_names[kind], verdict.text);
                }
            }
        }
        test_release();
    }
    uint64_t sum = 0;
    for (int kind = 0; kind < CORRUPTION_COUNT; kind++) {
        if (missed[kind]) {
            print_message("%s: %llu of %llu not found\n", corruption_names[kind],
                          (unsigned long long)missed[kind], (unsigned long long)made[kind]);
        }
        assert_met(made[kind] > 0);
        sum += missed[kind];
    }
    assert_true(sum == 0);
}

// -- regret ---------------------------------------------------------------------------------------

enum { DEFAULT_COST, ANY_COST, UNEQUAL_SPEEDS, PREFILL, INVARIANT, FINE_PAGES, REGRET_KINDS };

// A batch of which all contiguous plans can be tried.
static void small_make(sample *s, uint64_t seed, uint64_t number, int kind) {
    memset(s, 0, sizeof *s);
    s->number = number;
    s->random = seed + number * UINT64_C(1000003);
    uint64_t *random = &s->random;
    bool is_fine = kind == FINE_PAGES;
    uint32_t count = (uint32_t)test_random_in(random, 1, is_fine ? 2 : 4);
    s->config.kv_head_count = (uint32_t)test_random_in(random, 1, 2);
    s->config.group = (uint32_t)test_random_in(random, 1, 8);
    s->config.lane_count = (uint32_t)test_random_in(random, 2, is_fine ? 3 : 5);
    s->config.page_size = UINT32_C(1) << test_random_in(random, 3, is_fine ? 5 : 9);
    s->config.tile_rows = 16;
    s->config.is_causal = kind == PREFILL;
    s->config.mode = kind == INVARIANT ? PTOWSP_ATTENTION_INVARIANT : PTOWSP_ATTENTION_BALANCED;
    s->config.chunk = kind == INVARIANT ? s->config.page_size : 0;
    s->config.piece_min = random_one_in(random, 3) ? 2 * s->config.page_size : 0;
    if (kind != DEFAULT_COST && !is_fine && !random_one_in(random, 4)) {
        sample_costs(random, &s->config.cost);
    }
    if (kind == UNEQUAL_SPEEDS) {
        for (uint32_t i = 0; i < s->config.lane_count; i++) {
            s->speeds[i] = (uint32_t)test_random_in(random, i > 0 ? 0 : 1, 3);
        }
        s->config.lane_speeds = s->speeds;
    }
    s->kv = (int32_t *)test_alloc(count, sizeof(int32_t));
    s->queries = (int32_t *)test_alloc(count, sizeof(int32_t));
    for (uint32_t i = 0; i < count; i++) {
        int64_t pages_max = kind == PREFILL ? 5 : is_fine ? 45 : 12;
        int64_t pages = test_random_in(random, 0, pages_max);
        s->kv[i] = (int32_t)(pages * s->config.page_size + test_random_in(random, 0, 3));
        int32_t queries = (int32_t)test_random_in(random, 1, 6);
        s->queries[i] = kind != PREFILL ? 1 : queries < s->kv[i] ? queries : s->kv[i];
    }
    s->batch.kv_lengths = s->kv;
    s->batch.query_lengths = s->queries;
    s->batch.sequence_count = count;
    s->rules = reference_rules_of(&s->config);
    sample_count(s);
}

// What a plan may cost beyond 2 %: a piece of the least length and its merge, on the slowest lane. In
// INVARIANT mode merges are as large as the batch makes them, and cannot be divided.
static double piece_cost(const sample *s) {
    reference_tiles all = reference_tiles_of(&s->batch, &s->rules);
    double most = 0, speed = INFINITY;
    for (uint64_t t = 0; t < all.count; t++) {
        const reference_tile *tile = &all.tiles[t];
        double kv = (double)(s->rules.is_invariant ? s->rules.chunk : s->rules.piece_min);
        double slots = s->rules.is_invariant ? (double)reference_chunks(&s->rules, tile) : 2;
        double cost = reference_unit_cost(&s->rules, tile->rows, kv) +
                      reference_merge_cost(&s->rules, tile->rows, slots);
        most = cost > most ? cost : most;
    }
    for (uint64_t i = 0; i < s->rules.lane_count; i++) {
        double mine = reference_speed(&s->rules, i);
        speed = mine > 0 && mine < speed ? mine : speed;
    }
    reference_tiles_free(&all);
    return most / speed;
}

TEST(attention__largest_lane_is_within_two_percent_or_a_piece_of_the_best) {
    uint64_t seed = test_seed() + 2, beyond = 0;
    for (int kind = 0; kind < REGRET_KINDS; kind++) {
        double sum = 0, most = 0;
        uint32_t count = 0;
        for (uint64_t number = 0; TEST_ROUNDS(number, 400); number++) {
            sample s;
            small_make(&s, seed + (uint64_t)kind, number, kind);
            ptowsp_attention_sizes sizes;
            double cost = 0, best = -1;
            if (size_of(&s, &sizes)) {
                plan_buffer b = generate(&s, &sizes);
                require_good(&s, &b.plan, &cost);
                best = reference_best(&s.batch, &s.config, cost * (1 + 1e-9));
            }
            if (best > 0) {
                const double regret = cost > best ? cost / best - 1 : 0;
                sum += regret, count++;
                most = regret > most ? regret : most;
                if (cost > 1.02 * best + piece_cost(&s) && beyond++ < 5) {
                    sample_print(&s);
                    print_message("cost %g, best %g, a piece %g\n", cost, best, piece_cost(&s));
                }
            }
            test_release();
        }
        print_message("regret %d: %u batches, mean %.3f %%, largest %.3f %%\n", kind, count,
                      100 * sum / count, 100 * most);
    }
    assert_true(beyond == 0);
}
