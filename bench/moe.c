// MoE plans, beside plain C: sorting pairs by expert, planning units, placing replicas.
//
//      counting sort   counts, sums, one walk that writes pairs and their inverse
//      plain EPLB      its rules as they are written: qsort, and searches for the least and largest

#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOE_EXPERTS = 256,
    MOE_TOP_K = 8,
    MOE_TOKENS = 65536,
    MOE_PAIRS = MOE_TOKENS * MOE_TOP_K,
    MOE_LANES = 24,
    LAYERS = 58,
    REPLICAS = 288,
    RANKS = 32,
    MOE_ROUNDS = 41
};

typedef struct moe_bench {
    ptowsp_context *context;
    ptowsp_moe_routes routes;
    ptowsp_moe_order order;
    int32_t *ids;
    uint32_t *scratch, *counts, *offsets, *pairs, *rows;  // the last four of the plain sort
    ptowsp_moe_config config;
    ptowsp_moe_plan plan;
    // Placement.
    ptowsp_moe_cluster cluster;
    ptowsp_moe_placement placement;
    float *loads;  // [LAYERS][MOE_EXPERTS]
    uint64_t *place_scratch;
    uint64_t place_bytes;
    int32_t *plain_replicas;
    int32_t *moved;
    double frontier[REPLICAS + 1];
} moe_bench;

static void moe_report(const char *name, const char *unit, bench_times t, double per,
                       const char *other, const char *budget, double most) {
    bench_row row = {
        name,   unit,           t.own_ns / per,        other, t.other_ns / per, t.ratio,
        budget, budget[0] != 0, t.own_ns / per <= most};
    report(row);
}

// -- sorting --------------------------------------------------------------------------------------

static void sort_once(void *user) {
    moe_bench *b = (moe_bench *)user;
    require(ptowsp_moe_sort(&b->routes, &b->order, NULL) == PTOWSP_OK, "sort");
    bench_keep(b->order.pairs);
}

static void sort_parallel(void *user) {
    moe_bench *b = (moe_bench *)user;
    require(ptowsp_moe_sort_parallel(b->context, &b->routes, &b->order, b->scratch,
                                     64 * (MOE_EXPERTS + 1), NULL) == PTOWSP_OK,
            "parallel sort");
    bench_keep(b->order.pairs);
}

static void sort_plain(void *user) {
    moe_bench *b = (moe_bench *)user;
    const uint32_t count = b->routes.token_count * MOE_TOP_K;
    const int32_t *ids = b->ids;
    uint32_t *pairs = b->pairs, *rows = b->rows;
    uint32_t next[MOE_EXPERTS] = {0}, row = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (ids[i] >= 0) {
            next[ids[i]]++;
        }
    }
    for (uint32_t e = 0; e < MOE_EXPERTS; e++) {
        b->counts[e] = next[e];
        b->offsets[e] = next[e] = row;
        row += b->counts[e];
    }
    b->offsets[MOE_EXPERTS] = row;
    for (uint32_t i = 0; i < count; i++) {
        rows[i] = PTOWSP_MOE_NO_ROW;
        if (ids[i] >= 0) {
            const uint32_t at = next[ids[i]]++;
            pairs[at] = i;
            rows[i] = at;
        }
    }
    bench_keep(b->pairs);
}

// The limit: two scattered stores per pair, to a counter of its expert and to its row, as if no id
// was dropped and rows were there.
static void sort_stores(void *user) {
    moe_bench *b = (moe_bench *)user;
    const uint32_t count = b->routes.token_count * MOE_TOP_K;
    const int32_t *ids = b->ids;
    const uint32_t *rows = b->rows;
    uint32_t *pairs = b->pairs, counts[MOE_EXPERTS] = {0};
    for (uint32_t i = 0; i < count; i += 4) {
        counts[ids[i]]++;
        counts[ids[i + 1]]++;
        counts[ids[i + 2]]++;
        counts[ids[i + 3]]++;
    }
    bench_keep(counts);
    for (uint32_t i = 0; i < count; i += 4) {
        const uint32_t at[4] = {rows[i], rows[i + 1], rows[i + 2], rows[i + 3]};
        pairs[at[0]] = i;
        pairs[at[1]] = i + 1;
        pairs[at[2]] = i + 2;
        pairs[at[3]] = i + 3;
    }
    bench_keep(b->pairs);
}

static void bench_sort(moe_bench *b) {
    static const bench_case cases[3] = {
        {"MoE sort, 64 x 8 of 256", "us", 1, 200, MOE_ROUNDS, sort_once, "plain counting sort",
         sort_plain, "its stores alone", sort_stores, BUDGET_NONE, 0},
        {"MoE sort, 4,096 x 8 of 256", "us", 1, 10, MOE_ROUNDS, sort_once, "plain counting sort",
         sort_plain, "its stores alone", sort_stores, BUDGET_VALUE, 20},
        {"MoE sort, 65,536 x 8 of 256", "us", 1, 1, MOE_ROUNDS, sort_once, "plain counting sort",
         sort_plain, "its stores alone", sort_stores, BUDGET_NONE, 0}};
    static const uint32_t tokens[3] = {64, 4096, MOE_TOKENS};
    for (int i = 0; i < 3; i++) {
        b->routes.token_count = tokens[i];
        bench_measure(&cases[i], b);
        require(memcmp(b->order.pairs, b->pairs, tokens[i] * MOE_TOP_K * sizeof *b->pairs) == 0 &&
                    memcmp(b->order.rows, b->rows, tokens[i] * MOE_TOP_K * sizeof *b->rows) == 0,
                "the same order");
    }
    moe_report("MoE sort, 65,536 x 8, all lanes", "us",
               measure(sort_parallel, sort_once, b, 1, MOE_ROUNDS), 1e3, "one lane", "", 0);
}

// -- units ----------------------------------------------------------------------------------------

static void units_once(void *user) {
    moe_bench *b = (moe_bench *)user;
    const ptowsp_moe_batch batch = {.counts = b->order.counts, .offsets = b->order.offsets};
    require(ptowsp_moe_generate(&batch, &b->config, &b->plan, NULL) == PTOWSP_OK, "units");
    bench_keep(b->plan.units);
}

static void bench_units(moe_bench *b) {
    b->routes.token_count = 4096;
    sort_once(b);
    bench_times t = measure(units_once, sort_plain, b, 10, MOE_ROUNDS);
    moe_report("MoE units, 4,096 x 8 to 24 lanes", "us", t, 1e3, "plain counting sort", "", 0);
    const double ratio = b->plan.cost_max / b->plan.cost_mean;
    bench_row row = {
        "MoE units, 4,096 x 8: largest / mean", "", ratio, "none", 1, ratio, "", false, false};
    report(row);
}

// -- placing --------------------------------------------------------------------------------------

static void place_once(void *user) {
    moe_bench *b = (moe_bench *)user;
    require(ptowsp_moe_rebalance(&b->cluster, b->loads, LAYERS, b->place_scratch, b->place_bytes,
                                 &b->placement, NULL) == PTOWSP_OK,
            "placement");
    bench_keep(b->placement.replica_experts);
}

typedef struct plain_item {
    float weight;
    int index;
} plain_item;

static int compare_items(const void *x, const void *y) {
    const plain_item *a = (const plain_item *)x, *b = (const plain_item *)y;
    if (a->weight < b->weight || a->weight > b->weight) {
        return a->weight < b->weight ? 1 : -1;
    }
    return a->index - b->index;
}

static void plain_pack(const float *weights, int item_count, int pack_count, int *packs,
                       int *places) {
    plain_item items[REPLICAS];
    float sums[REPLICAS] = {0};
    int fill[REPLICAS] = {0};
    const int size = item_count / pack_count;
    for (int i = 0; i < item_count; i++) {
        items[i].weight = weights[i];
        items[i].index = i;
    }
    if (size > 1) {
        qsort(items, (size_t)item_count, sizeof *items, compare_items);
    }
    for (int i = 0; i < item_count; i++) {
        int pack = size > 1 ? -1 : i;
        for (int p = 0; p < pack_count && size > 1; p++) {
            if (fill[p] < size && (pack < 0 || sums[p] < sums[pack])) {
                pack = p;
            }
        }
        packs[items[i].index] = pack;
        places[items[i].index] = fill[pack]++;
        sums[pack] += items[i].weight;
    }
}

static void plain_layer(const ptowsp_moe_cluster *c, const float *loads, int32_t *out) {
    const int nodes = (int)c->node_count, groups = (int)c->group_count;
    const int e_group = MOE_EXPERTS / groups, e_node = MOE_EXPERTS / nodes;
    const int r_node = REPLICAS / nodes, r_rank = REPLICAS / RANKS;
    float weights[REPLICAS] = {0};
    int packs[REPLICAS], places[REPLICAS], experts[MOE_EXPERTS];
    for (int e = 0; e < MOE_EXPERTS; e++) {
        weights[e / e_group] += loads[e];
    }
    plain_pack(weights, groups, nodes, packs, places);
    for (int e = 0; e < MOE_EXPERTS; e++) {
        const int g = e / e_group;
        experts[(packs[g] * (groups / nodes) + places[g]) * e_group + e % e_group] = e;
    }
    for (int node = 0; node < nodes; node++) {
        const int *of_node = experts + node * e_node;
        int replica_of[REPLICAS], count[MOE_EXPERTS] = {0};
        for (int r = 0; r < r_node; r++) {
            int best = r;
            if (r >= e_node) {
                best = 0;
                for (int i = 1; i < e_node; i++) {
                    if (loads[of_node[i]] / (float)count[i] >
                        loads[of_node[best]] / (float)count[best]) {
                        best = i;
                    }
                }
            }
            replica_of[r] = best;
            count[best]++;
        }
        for (int r = 0; r < r_node; r++) {
            weights[r] = loads[of_node[replica_of[r]]] / (float)count[replica_of[r]];
        }
        plain_pack(weights, r_node, RANKS / nodes, packs, places);
        for (int r = 0; r < r_node; r++) {
            out[node * r_node + packs[r] * r_rank + places[r]] = of_node[replica_of[r]];
        }
    }
}

static void place_plain(void *user) {
    moe_bench *b = (moe_bench *)user;
    for (int l = 0; l < LAYERS; l++) {
        plain_layer(&b->cluster, b->loads + l * MOE_EXPERTS, b->plain_replicas + l * REPLICAS);
    }
    bench_keep(b->plain_replicas);
}

static void move_once(void *user) {
    moe_bench *b = (moe_bench *)user;
    ptowsp_moe_moved moved;
    memcpy(b->moved, b->placement.replica_experts, REPLICAS * sizeof *b->moved);
    require(ptowsp_moe_move(&b->cluster, b->loads + MOE_EXPERTS, 16, b->place_scratch,
                            b->place_bytes, b->moved, b->frontier, &moved, NULL) == PTOWSP_OK,
            "moves");
    bench_keep(b->moved);
}

static void bench_place(moe_bench *b, uint32_t groups, uint32_t nodes, const char *name) {
    b->cluster.group_count = groups;
    b->cluster.node_count = nodes;
    b->place_bytes = ptowsp_moe_scratch_bytes(&b->cluster);
    b->place_scratch = (uint64_t *)bench_allocate((size_t)b->place_bytes);
    bench_times t = measure(place_once, place_plain, b, 1, MOE_ROUNDS);
    require(memcmp(b->placement.replica_experts, b->plain_replicas,
                   LAYERS * REPLICAS * sizeof *b->plain_replicas) == 0,
            "the same placement");
    moe_report(name, "ms", t, 1e6, "plain C", "1 ms", 1);
    if (nodes == 1) {
        // The placement of the first layer, under the loads of the second.
        t = measure(move_once, place_once, b, 1, MOE_ROUNDS);
        moe_report("MoE moves, at most 16, one layer", "ms", t, 1e6, "placing 58 layers", "", 0);
    }
    free(b->place_scratch);
}

// Loads of steps whose routers are skewed as real ones.
static void loads_make(moe_bench *b) {
    uint64_t scratch[MOE_EXPERTS + 1];
    ptowsp_moe_traffic traffic;
    memset(&traffic, 0, sizeof traffic);
    traffic.pattern = PTOWSP_MOE_SKEWED;
    traffic.token_count = 4096;
    traffic.top_k = MOE_TOP_K;
    traffic.expert_count = MOE_EXPERTS;
    for (uint32_t l = 0; l < LAYERS; l++) {
        traffic.seed = l + 1;
        traffic.skew = 3 + l % 11;
        require(ptowsp_moe_routes_generate(&traffic, scratch, b->ids, NULL) == PTOWSP_OK, "routes");
        for (uint32_t i = 0; i < 4096 * MOE_TOP_K; i++) {
            b->loads[l * MOE_EXPERTS + (uint32_t)b->ids[i]]++;
        }
    }
    traffic.token_count = MOE_TOKENS;
    traffic.skew = 4;
    require(ptowsp_moe_routes_generate(&traffic, scratch, b->ids, NULL) == PTOWSP_OK, "routes");
}

void bench_moe(ptowsp_context *context) {
    enum { UNITS = MOE_EXPERTS + MOE_LANES, STRIDE = 33 };
    moe_bench *b = (moe_bench *)bench_allocate(sizeof *b);
    const size_t word = sizeof(uint32_t);
    uint32_t *words = (uint32_t *)bench_allocate((5 * MOE_PAIRS + 70 * (MOE_EXPERTS + 1)) * word);
    b->context = context;
    b->ids = (int32_t *)words;
    b->order.pairs = words + MOE_PAIRS, b->order.rows = words + 2 * MOE_PAIRS;
    b->pairs = words + 3 * MOE_PAIRS, b->rows = words + 4 * MOE_PAIRS;
    b->scratch = words + 5 * MOE_PAIRS;
    b->order.counts = b->scratch + 64 * (MOE_EXPERTS + 1);
    b->order.offsets = b->order.counts + MOE_EXPERTS;
    b->counts = b->order.offsets + MOE_EXPERTS + 1, b->offsets = b->counts + MOE_EXPERTS;
    b->order.row_capacity = MOE_PAIRS;
    b->routes.ids = b->ids, b->routes.top_k = MOE_TOP_K, b->routes.expert_count = MOE_EXPERTS;
    b->config.expert_count = MOE_EXPERTS, b->config.lane_count = MOE_LANES;
    b->plan.units = (ptowsp_work *)bench_allocate(UNITS * sizeof *b->plan.units);
    b->plan.unit_begin = (uint32_t *)bench_allocate((MOE_LANES + 1) * word);
    b->plan.unit_capacity = UNITS;
    b->cluster.expert_count = MOE_EXPERTS, b->cluster.replica_count = REPLICAS;
    b->cluster.rank_count = RANKS;
    b->loads = (float *)bench_allocate(LAYERS * MOE_EXPERTS * sizeof *b->loads);
    int32_t *places = (int32_t *)bench_allocate(
        (2 * LAYERS * REPLICAS + REPLICAS + LAYERS * MOE_EXPERTS * (STRIDE + 1)) * word);
    b->placement.replica_experts = places, b->plain_replicas = places + LAYERS * REPLICAS;
    b->moved = b->plain_replicas + LAYERS * REPLICAS;
    b->placement.expert_counts = b->moved + REPLICAS;
    b->placement.expert_replicas = b->placement.expert_counts + LAYERS * MOE_EXPERTS;
    b->placement.stride = STRIDE;
    loads_make(b);
    bench_sort(b);
    bench_units(b);
    bench_place(b, 8, 4, "EPLB, 58 x 256 to 288 on 32 ranks, 4 nodes");
    bench_place(b, 1, 1, "EPLB, 58 x 256 to 288 on 32 ranks, global");
    free(places);
    free(b->loads);
    free(b->plan.unit_begin);
    free(b->plan.units);
    free(words);
    free(b);
    bench_moe_kernel();
}
