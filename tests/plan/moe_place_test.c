// Placement of MoE plans: random cases beside a slow transcription of the rules of EPLB, index by index;
// replicas that are spread, beside all placements of small cases; moves that are bounded and never make
// it worse; sharing. The golden example of EPLB, paper, and what is refused are in moe_facts_test.c.

#include "plan_text.h"

#include <math.h>

enum { EXPERTS = 48, REPLICAS = 96, LAYERS = 3 };

// -- the rules, slowly ----------------------------------------------------------------------------

// Packs item_count weights into pack_count packs: by falling weight, lower index first, each to the
// least pack that is not full, lower pack first.
static void slow_pack(const float *weights, int item_count, int pack_count, int *packs,
                      int *places) {
    const int size = item_count / pack_count;
    float sums[REPLICAS] = {0};
    int fill[REPLICAS] = {0}, is_done[REPLICAS] = {0};
    for (int n = 0; n < item_count; n++) {
        int item = -1, pack = -1;
        for (int i = 0; i < item_count; i++) {
            if (!is_done[i] && (item < 0 || weights[i] > weights[item])) {
                item = i;
            }
        }
        for (int p = 0; p < pack_count; p++) {
            if (fill[p] < size && (pack < 0 || sums[p] < sums[pack])) {
                pack = p;
            }
        }
        if (size == 1) {
            item = n, pack = n;
        }
        is_done[item] = 1;
        packs[item] = pack;
        places[item] = fill[pack]++;
        sums[pack] += weights[item];
    }
}

static void slow_replicate(const float *loads, int n, int r, int *replica_expert, int *ordinal,
                           int *count) {
    for (int i = 0; i < n; i++) {
        replica_expert[i] = i, ordinal[i] = 0, count[i] = 1;
    }
    for (int i = n; i < r; i++) {
        int best = 0;
        for (int e = 1; e < n; e++) {
            if (loads[e] / (float)count[e] > loads[best] / (float)count[best]) {
                best = e;
            }
        }
        replica_expert[i] = best;
        ordinal[i] = count[best]++;
    }
}

typedef struct slow_placement {
    int replica_expert[REPLICAS], expert_count[EXPERTS], expert_replica[EXPERTS][REPLICAS];
} slow_placement;

static void slow_place(const ptowsp_moe_cluster *c, const float *loads, slow_placement *out) {
    int groups = c->group_count ? (int)c->group_count : 1;
    int nodes = c->node_count ? (int)c->node_count : 1;
    if (groups % nodes != 0 || c->policy == PTOWSP_MOE_GLOBAL) {
        groups = nodes = 1;
    }
    const int e_all = (int)c->expert_count, e_node = e_all / nodes, e_group = e_all / groups;
    const int r_all = (int)c->replica_count, r_node = r_all / nodes;
    const int ranks = (int)c->rank_count / nodes, r_rank = r_all / (int)c->rank_count;
    float group_loads[EXPERTS] = {0};
    int packs[REPLICAS], places[REPLICAS], renumbered[EXPERTS];
    for (int e = 0; e < e_all; e++) {
        group_loads[e / e_group] += loads[e];
    }
    slow_pack(group_loads, groups, nodes, packs, places);
    for (int e = 0; e < e_all; e++) {
        const int group = e / e_group;
        const int position = packs[group] * (groups / nodes) + places[group];
        renumbered[position * e_group + e % e_group] = e;
    }
    memset(out, 0xff, sizeof *out);
    for (int node = 0; node < nodes; node++) {
        const int *of = renumbered + node * e_node;
        float node_loads[EXPERTS], weights[REPLICAS];
        int replica_expert[REPLICAS], ordinal[REPLICAS], count[EXPERTS];
        for (int i = 0; i < e_node; i++) {
            node_loads[i] = loads[of[i]];
        }
        slow_replicate(node_loads, e_node, r_node, replica_expert, ordinal, count);
        for (int r = 0; r < r_node; r++) {
            weights[r] = node_loads[replica_expert[r]] / (float)count[replica_expert[r]];
        }
        slow_pack(weights, r_node, ranks, packs, places);
        for (int r = 0; r < r_node; r++) {
            const int at = node * r_node + packs[r] * r_rank + places[r], e = of[replica_expert[r]];
            out->replica_expert[at] = e;
            out->expert_count[e] = count[replica_expert[r]];
            out->expert_replica[e][ordinal[r]] = at;
        }
    }
}

// -- placing --------------------------------------------------------------------------------------

static ptowsp_moe_cluster cluster_of(uint32_t experts, uint32_t replicas, uint32_t groups,
                                     uint32_t nodes, uint32_t ranks) {
    const ptowsp_moe_cluster c = {experts, replicas, groups, nodes, ranks, PTOWSP_MOE_EPLB, false};
    return c;
}

static uint64_t scratch[8192];

static ptowsp_status rebalance(const ptowsp_moe_cluster *c, const float *loads, uint32_t layers,
                               const ptowsp_moe_placement *placement, ptowsp_plan_info *info) {
    return ptowsp_moe_rebalance(c, loads, layers, scratch, sizeof scratch, placement, info);
}

static ptowsp_status move(const ptowsp_moe_cluster *c, const float *loads, uint32_t most,
                          int32_t *experts, double *frontier, ptowsp_moe_moved *moved,
                          ptowsp_plan_info *info) {
    return ptowsp_moe_move(c, loads, most, scratch, sizeof scratch, experts, frontier, moved, info);
}

static bool is_hierarchical(const ptowsp_moe_cluster *c) {
    return c->node_count > 1 && c->policy != PTOWSP_MOE_GLOBAL &&
           c->group_count % c->node_count == 0;
}

static uint32_t divisor_of(uint64_t *random, uint32_t value) {
    uint32_t d;
    do {
        d = test_random_u32(random, 1, value);
    } while (value % d != 0);
    return d;
}

static void cluster_random(ptowsp_moe_cluster *c, uint64_t *random) {
    *c = cluster_of(0, 0, 0, 0, 0);
    if (test_random(random) % 2) {  // of which hierarchies are made
        c->node_count = test_random_u32(random, 2, 4);
        c->group_count = c->node_count * test_random_u32(random, 1, 3);
        c->expert_count = c->group_count * test_random_u32(random, 1, 4);
        c->rank_count = c->node_count * test_random_u32(random, 1, 4);
        const uint32_t least = (c->expert_count + c->rank_count - 1) / c->rank_count;
        c->replica_count = c->rank_count * test_random_u32(random, least, REPLICAS / c->rank_count);
        return;
    }
    c->expert_count = test_random_u32(random, 1, EXPERTS);
    do {
        c->replica_count = test_random_u32(random, c->expert_count, REPLICAS);
        if (test_random(random) % 2) {
            c->replica_count = c->replica_count / 8 * 8;
        }
    } while (c->replica_count < c->expert_count);
    c->rank_count = divisor_of(random, c->replica_count);
    c->node_count = divisor_of(random, c->rank_count) * (uint32_t)(test_random(random) % 4 != 0);
    c->group_count = divisor_of(random, c->expert_count);
    c->policy = test_random(random) % 4 == 0 ? PTOWSP_MOE_GLOBAL : PTOWSP_MOE_EPLB;
    if (c->node_count > 0 && c->group_count % c->node_count == 0 && test_random(random) % 4 == 0) {
        c->policy = PTOWSP_MOE_HIERARCHICAL;
    }
}

// Integers, so that ties are frequent: in some cases few values, in some all the same or zero.
static void loads_random(float *loads, uint32_t count, uint64_t *random) {
    const int64_t most[6] = {0, 1, 3, 20, 1000, 100000};
    const int64_t range = most[test_random(random) % 6];
    for (uint32_t i = 0; i < count; i++) {
        loads[i] = (float)test_random_in(random, 0, range);
    }
    if (test_random(random) % 4 == 0) {
        loads[test_random(random) % count] = 200000;
    }
}

TEST(moe_place__equals_the_rules) {
    uint64_t random = test_seed(), hierarchical = 0;
    static slow_placement slow;
    for (int round = 0; TEST_ROUNDS(round, 10000); round++) {
        ptowsp_moe_cluster c;
        cluster_random(&c, &random);
        float loads[LAYERS * EXPERTS];
        int32_t replicas[LAYERS * REPLICAS], counts[LAYERS * EXPERTS];
        static int32_t lists[LAYERS * EXPERTS * REPLICAS];
        const uint32_t layers = test_random_u32(&random, 0, LAYERS);
        const uint32_t stride = c.replica_count - c.expert_count + 1;
        for (uint32_t l = 0; l < layers; l++) {
            loads_random(loads + l * c.expert_count, c.expert_count, &random);
        }
        const uint64_t bytes = ptowsp_moe_scratch_bytes(&c);
        assert_true(bytes + 8 <= sizeof scratch);
        scratch[bytes / 8] = 0x5a5a;
        const ptowsp_moe_placement placement = {replicas, counts, lists, stride};
        ptowsp_plan_info info;
        assert_ok(ptowsp_moe_rebalance(&c, loads, layers, scratch, bytes, &placement, &info));
        assert_int_equal(scratch[bytes / 8], 0x5a5a);
        hierarchical += is_hierarchical(&c) && c.replica_count > c.rank_count;
        for (uint32_t l = 0; l < layers; l++) {
            slow_place(&c, loads + l * c.expert_count, &slow);
            for (uint32_t r = 0; r < c.replica_count; r++) {
                assert_int_equal(replicas[l * c.replica_count + r], slow.replica_expert[r]);
            }
            for (uint32_t e = 0; e < c.expert_count; e++) {
                const size_t at = (size_t)l * c.expert_count + e;
                assert_int_equal(counts[at], slow.expert_count[e]);
                for (uint32_t i = 0; i < stride; i++) {
                    assert_int_equal(lists[at * stride + i], slow.expert_replica[e][i]);
                }
            }
        }
    }
    assert_true(hierarchical > test_rounds(10000) / 4);
}

// -- moves ----------------------------------------------------------------------------------------

static double busiest_of(const ptowsp_moe_cluster *c, const float *loads, const int32_t *experts) {
    double busiest = 0;
    for (uint32_t rank = 0; rank < c->rank_count; rank++) {
        double load = 0;
        const uint32_t size = c->replica_count / c->rank_count;
        for (uint32_t r = rank * size; r < (rank + 1) * size; r++) {
            double count = 0;
            for (uint32_t i = 0; i < c->replica_count; i++) {
                count += experts[i] == experts[r];
            }
            load += (double)loads[experts[r]] / count;
        }
        busiest = load > busiest ? load : busiest;
    }
    return busiest;
}

static bool is_near(double a, double b) {
    return fabs(a - b) <= 1e-12 * (fabs(a) + fabs(b));
}

static void require_complete(const ptowsp_moe_cluster *c, const int32_t *experts) {
    bool has[EXPERTS] = {false};
    for (uint32_t r = 0; r < c->replica_count; r++) {
        assert_in_range(experts[r], 0, c->expert_count - 1);
        has[experts[r]] = true;
    }
    for (uint32_t e = 0; e < c->expert_count; e++) {
        assert_true(has[e]);
    }
}

// Under the hierarchical policy: no expert on a node where it was not.
static void require_nodes(const ptowsp_moe_cluster *c, const int32_t *before,
                          const int32_t *after) {
    if (!is_hierarchical(c)) {
        return;
    }
    const uint32_t size = c->replica_count / c->node_count;
    for (uint32_t r = 0; r < c->replica_count; r++) {
        bool was_there = false;
        for (uint32_t i = r / size * size; i < (r / size + 1) * size; i++) {
            was_there = was_there || before[i] == after[r];
        }
        assert_true(was_there);
    }
}

// Replicas that a rank has of an expert that it has already.
static uint32_t doubles_of(const ptowsp_moe_cluster *c, const int32_t *experts) {
    const uint32_t size = c->replica_count / c->rank_count;
    uint32_t doubles = 0;
    for (uint32_t r = 0; r < c->replica_count; r++) {
        for (uint32_t i = r / size * size; i < r; i++) {
            doubles += experts[i] == experts[r];
        }
    }
    return doubles;
}

// Where replicas are spread they stay so.
TEST(moe_move__never_moves_more_and_is_never_worse) {
    uint64_t random = test_seed(), improved = 0;
    for (int round = 0; TEST_ROUNDS(round, 1500); round++) {
        ptowsp_moe_cluster c;
        cluster_random(&c, &random);
        c.is_spread = round % 2;
        c.is_spread = ptowsp_moe_scratch_bytes(&c) > 0 && c.is_spread;  // it may be refused
        float old_loads[EXPERTS], loads[EXPERTS];
        int32_t present[REPLICAS], experts[REPLICAS];
        double frontier[REPLICAS + 8];
        loads_random(old_loads, c.expert_count, &random);
        loads_random(loads, c.expert_count, &random);
        const ptowsp_moe_placement placement = {present, NULL, NULL, 0};
        assert_ok(rebalance(&c, old_loads, 1, &placement, NULL));
        const uint32_t most = test_random_u32(
            &random, 0, test_random(&random) % 4 ? 6 : (int64_t)c.replica_count + 4);
        ptowsp_moe_moved moved;
        memcpy(experts, present, sizeof experts);
        assert_ok(ptowsp_moe_move(&c, loads, most, scratch, ptowsp_moe_scratch_bytes(&c), experts,
                                  frontier, &moved, NULL));
        uint32_t changed = 0;
        for (uint32_t r = 0; r < c.replica_count; r++) {
            changed += experts[r] != present[r];
        }
        assert_true(changed <= moved.move_count && moved.move_count <= most);
        require_complete(&c, experts);
        assert_true(!c.is_spread || doubles_of(&c, experts) == 0);
        require_nodes(&c, present, experts);
        const double before = busiest_of(&c, loads, present),
                     after = busiest_of(&c, loads, experts);
        assert_true(is_near(moved.load_before, before) && is_near(moved.load_after, after));
        assert_true(moved.load_after <= moved.load_before);
        assert_true(moved.load_after >= moved.load_mean * (1 - 1e-12));
        assert_true(moved.move_count == 0 || moved.load_after < moved.load_before);
        improved += moved.load_after < moved.load_before;
        assert_true(is_near(frontier[0], before) && is_near(frontier[most], after));
        // The frontier falls, and each of its points can be had.
        for (uint32_t k = 1; k <= most; k++) {
            assert_true(frontier[k] <= frontier[k - 1]);
        }
        const uint32_t k = test_random_u32(&random, 0, most);
        memcpy(experts, present, sizeof experts);
        assert_ok(move(&c, loads, k, experts, NULL, &moved, NULL));
        assert_true(is_near(moved.load_after, frontier[k]));
        assert_true(moved.move_count <= k);
    }
    assert_true(improved > test_rounds(1500) / 4);
}

// -- replicas that are spread ---------------------------------------------------------------------

TEST(moe_place__spreads_replicas_over_ranks) {
    uint64_t random = test_seed(), doubled = 0, placed = 0;
    for (int round = 0; TEST_ROUNDS(round, 4000); round++) {
        ptowsp_moe_cluster c;
        cluster_random(&c, &random);
        const uint32_t nodes = is_hierarchical(&c) ? c.node_count : 1;
        float loads[EXPERTS];
        int32_t replicas[REPLICAS], counts[EXPERTS];
        static int32_t lists[EXPERTS * REPLICAS];
        loads_random(loads, c.expert_count, &random);
        const ptowsp_moe_placement placement = {replicas, counts, lists, c.replica_count};
        assert_ok(rebalance(&c, loads, 1, &placement, NULL));
        const bool has_doubles = doubles_of(&c, replicas) > 0;
        c.is_spread = true;
        ptowsp_plan_info info;
        const ptowsp_status status = rebalance(&c, loads, 1, &placement, &info);
        if (c.replica_count / c.rank_count > c.expert_count / nodes) {
            assert_invalid(status);
            assert_int_equal(info.fault, PTOWSP_FAULT_REPLICAS_MANY);
            continue;
        }
        assert_ok(status);
        placed++, doubled += has_doubles;
        assert_int_equal(doubles_of(&c, replicas), 0);
        uint32_t sum = 0;
        for (uint32_t e = 0; e < c.expert_count; e++) {
            assert_in_range(counts[e], 1, c.rank_count / nodes);
            sum += (uint32_t)counts[e];
            for (uint32_t i = 0; i < c.replica_count; i++) {
                const int32_t at = lists[e * c.replica_count + i];
                assert_int_equal(at >= 0, i < (uint32_t)counts[e]);
                assert_true(at < 0 || replicas[at] == (int32_t)e);
                const uint32_t node_replicas = c.replica_count / nodes;
                assert_true(at < 0 || (uint32_t)at / node_replicas ==
                                          (uint32_t)lists[e * c.replica_count] / node_replicas);
            }
        }
        assert_int_equal(sum, c.replica_count);
    }
    assert_true(placed > test_rounds(4000) / 2);
    assert_met(doubled > placed / 8);  // the option does something
}

// All ways to put the replicas left of each expert onto ranks, none twice on a rank: the least load of
// the busiest. Experts are placed in turn, each on a subset of the ranks.
typedef struct search {
    uint32_t experts, ranks, size;
    const float *loads;
    const int32_t *counts;
    double sums[8], best;
    uint32_t fill[8];
} search;

static void search_expert(search *s, uint32_t expert) {
    if (expert == s->experts) {
        double busiest = 0;
        for (uint32_t rank = 0; rank < s->ranks; rank++) {
            busiest = s->sums[rank] > busiest ? s->sums[rank] : busiest;
        }
        s->best = busiest < s->best ? busiest : s->best;
        return;
    }
    const double share = (double)s->loads[expert] / s->counts[expert];
    for (uint32_t set = 0; set < 1u << s->ranks; set++) {
        int32_t count = 0;
        bool fits = true;
        for (uint32_t rank = 0; rank < s->ranks; rank++) {
            count += (int32_t)(set >> rank & 1);
            fits = fits && !(set >> rank & 1 && s->fill[rank] == s->size);
        }
        if (!fits || count != s->counts[expert]) {
            continue;
        }
        for (uint32_t rank = 0; rank < s->ranks; rank++) {
            s->fill[rank] += set >> rank & 1;
            s->sums[rank] += (set >> rank & 1) * share;
        }
        search_expert(s, expert + 1);
        for (uint32_t rank = 0; rank < s->ranks; rank++) {
            s->fill[rank] -= set >> rank & 1;
            s->sums[rank] -= (set >> rank & 1) * share;
        }
    }
}

// The least of the largest load per replica, over all numbers of replicas from 1 to the ranks.
static double least_share(const float *loads, uint32_t experts, uint32_t ranks, uint32_t left) {
    if (experts == 0) {
        return left == 0 ? 0 : INFINITY;
    }
    double least = INFINITY;
    for (uint32_t count = 1; count <= ranks && count <= left; count++) {
        const double rest = least_share(loads + 1, experts - 1, ranks, left - count);
        const double share = (double)loads[0] / count, most = share > rest ? share : rest;
        least = most < least ? most : least;
    }
    return least;
}

TEST(moe_place__spreads_nearly_as_well_as_can_be) {
    uint64_t random = test_seed();
    double sum = 0, worst = 1;
    int rounds = 0;
    for (int round = 0; TEST_ROUNDS(round, 1000); round++) {
        const uint32_t experts = test_random_u32(&random, 2, 6);
        const uint32_t ranks = test_random_u32(&random, 2, 4);
        const uint32_t least = (experts + ranks - 1) / ranks;
        const uint32_t size = test_random_u32(&random, least, experts < 4 ? experts : 4);
        ptowsp_moe_cluster c = cluster_of(experts, ranks * size, 1, 1, ranks);
        c.is_spread = true;
        float loads[6];
        int32_t replicas[16], counts[6];
        loads_random(loads, experts, &random);
        const ptowsp_moe_placement placement = {replicas, counts, NULL, 0};
        assert_ok(rebalance(&c, loads, 1, &placement, NULL));
        double share = 0;
        for (uint32_t e = 0; e < experts; e++) {
            const double of_expert = (double)loads[e] / counts[e];
            share = of_expert > share ? of_expert : share;
        }
        assert_true(fabs(share - least_share(loads, experts, ranks, ranks * size)) <= 1e-6 * share);
        search s = {experts, ranks, size, loads, counts, {0}, INFINITY, {0}};
        search_expert(&s, 0);
        const double busiest = busiest_of(&c, loads, replicas);
        const double ratio = s.best > 0 ? busiest / s.best : 1;
        assert_true(ratio >= 1 - 1e-9);
        sum += ratio, rounds++;
        worst = ratio > worst ? ratio : worst;
    }
    print_message("busiest rank / best of all placements: mean %.4f, worst %.4f\n", sum / rounds,
                  worst);
    assert_true(worst <= 2 && sum / rounds < 1.02);
}

// -- using a placement ----------------------------------------------------------------------------

TEST(moe_share__gives_replicas_equal_tokens) {
    uint64_t random = test_seed();
    for (int round = 0; TEST_ROUNDS(round, 1000); round++) {
        ptowsp_moe_cluster c;
        cluster_random(&c, &random);
        float loads[EXPERTS];
        int32_t replicas[REPLICAS], counts[EXPERTS], again[EXPERTS];
        static int32_t lists[EXPERTS * REPLICAS], again_lists[EXPERTS * REPLICAS];
        loads_random(loads, c.expert_count, &random);
        const uint32_t stride = c.replica_count - c.expert_count + 1;
        ptowsp_moe_placement placement = {replicas, counts, lists, stride};
        assert_ok(rebalance(&c, loads, 1, &placement, NULL));
        // The index holds the same replicas, in ascending order.
        const ptowsp_moe_placement index = {replicas, again, again_lists, stride};
        assert_ok(ptowsp_moe_index(&c, &index, NULL));
        assert_memory_equal(again, counts, c.expert_count * sizeof *again);
        for (uint32_t e = 0; e < c.expert_count; e++) {
            for (uint32_t i = 0; i < stride; i++) {
                const int32_t at = again_lists[e * stride + i];
                assert_int_equal(at >= 0, i < (uint32_t)counts[e]);
                assert_true(at < 0 || replicas[at] == (int32_t)e);
                assert_true(at < 0 || i == 0 || at > again_lists[e * stride + i - 1]);
            }
        }
        enum { TOKENS = 40, TOP_K = 3 };
        int32_t ids[TOKENS * TOP_K], out[TOKENS * TOP_K];
        uint32_t next[EXPERTS], seen[EXPERTS] = {0};
        for (int i = 0; i < TOKENS * TOP_K; i++) {
            ids[i] = (int32_t)test_random_in(&random, -1, c.expert_count - 1);
        }
        const ptowsp_moe_routes routes = {ids, TOKENS, TOP_K, c.expert_count, 0};
        assert_ok(ptowsp_moe_share(&routes, &placement, next, out, NULL));
        for (int i = 0; i < TOKENS * TOP_K; i++) {
            if (ids[i] < 0) {
                assert_int_equal(out[i], ids[i]);
                continue;
            }
            const uint32_t e = (uint32_t)ids[i];
            assert_int_equal(out[i], lists[e * stride + (seen[e] + e) % (uint32_t)counts[e]]);
            assert_int_equal(replicas[out[i]], ids[i]);
            seen[e]++;
        }
        assert_ok(ptowsp_moe_share(&routes, &placement, next, ids, NULL));
        assert_memory_equal(ids, out, sizeof ids);
    }
}

// -- what is refused ------------------------------------------------------------------------------

TEST(moe_place__refuses_scratch_that_is_small_or_not_aligned) {
    const ptowsp_moe_cluster c = cluster_of(4, 8, 1, 1, 2);
    const float loads[4] = {1, 1, 1, 1};
    int32_t replicas[8] = {0, 1, 2, 3, 0, 1, 2, 3};
    const ptowsp_moe_placement placement = {replicas, NULL, NULL, 0};
    const uint64_t bytes = ptowsp_moe_scratch_bytes(&c);
    char small[96];
    snprintf(small, sizeof small, "plan: the scratch has %llu bytes of the %llu that are needed",
             (unsigned long long)bytes - 1, (unsigned long long)bytes);
    for (int i = 0; i < 4; i++) {
        const bool is_small = i / 2 == 0;
        char *at = (char *)scratch + (is_small ? 0 : 4);
        ptowsp_plan_info info;
        const uint64_t given = bytes - is_small;
        const ptowsp_status status =
            i % 2 ? ptowsp_moe_move(&c, loads, 1, at, given, replicas, NULL, NULL, &info)
                  : ptowsp_moe_rebalance(&c, loads, 1, at, given, &placement, &info);
        fault_is(status, is_small ? PTOWSP_BUFFER_OVERFLOW : PTOWSP_INVALID_PARAMS, &info,
                 is_small ? small : "plan: the scratch is not aligned to 8 bytes");
    }
}
