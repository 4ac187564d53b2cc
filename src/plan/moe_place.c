// Placement of replicas of experts, as DeepSeek's EPLB: pack, replicate, pack.
//
//      experts      [group 0][group 1][group 2][group 3]     pack groups into nodes
//      node 0       [group 2][group 1]    node 1 [group 0][group 3]
//      replicas     of the experts of each node: one each, then of the largest load / count
//      ranks        pack the replicas of a node onto its ranks
//
// Placing globally is the same with one group and one node. Every choice is the least of keys that
// hold a float32, whose bits have the order of its value as it is not negative, and below it the
// index, so ties are not a special case:
//
//      falling weight      ~bits | index       sorted by radix
//      emptiest pack        bits | pack        heap
//      largest quotient    ~bits | expert      heap
//
// Sums are taken in the order in which items arrive, as float32.
//
// With is_spread no rank has an expert twice. An expert then gets at most as many replicas as its node
// has ranks, and a replica goes to the emptiest rank that has room and not yet its expert. If there is
// none, a swap makes room, and one is always enough: say e has to be placed, and rank p has room, but
// has e. Fewer than all ranks have e, so some rank q has not, and is full. Of q's experts, as many as
// p has places, at least two are not on p, as p has one place free and e in another. One of these
// goes from q to p, and e takes its place.

#include "moe.h"

#include "../base/heap.h"

typedef struct pwsp_moe_placer {
    const pwsp_moe_cluster *c;
    uint64_t *keys, *other_keys;  // [replica_count]
    uint64_t *heap;               // [replica_count]
    float *weights;               // [replica_count] of the items that are packed
    uint32_t *packs, *places;     // [replica_count] where they go
    uint32_t *fill;               // [replica_count] of packs
    uint32_t *experts;            // [expert_count] in the order of nodes
    uint32_t *counts;             // [expert_count] replicas, of the experts of a node
    uint32_t *replica_of;         // [replica_count] the node's expert that a replica is
    uint32_t *replica_ordinal;    // [replica_count] which one of it
    uint32_t *members;  // [replica_count] of packs that are spread: items by pack and place
} pwsp_moe_placer;

// -- checks ---------------------------------------------------------------------------------------

static ptowsp_status pwsp_moe_divides(uint32_t value, uint32_t parts, ptowsp_plan_fault fault,
                                      ptowsp_plan_info *info) {
    return parts > 0 && value % parts == 0
               ? PTOWSP_OK
               : pwsp_plan_fail(info, fault, PTOWSP_NO_INDEX, value, parts);
}

PWSP_INTERNAL ptowsp_status pwsp_moe_cluster_check(const ptowsp_moe_cluster *given,
                                                   pwsp_moe_cluster *cluster,
                                                   ptowsp_plan_info *info) {
    memset(cluster, 0, sizeof *cluster);
    if (!given) {
        return pwsp_moe_null(info, PWSP_MOE_IN_CLUSTER);
    }
    const uint32_t experts = given->expert_count, replicas = given->replica_count;
    const uint32_t groups = given->group_count > 0 ? given->group_count : 1;
    const uint32_t nodes = given->node_count > 0 ? given->node_count : 1;
    const uint32_t counts[2] = {experts, replicas};
    for (uint32_t i = 0; i < 2; i++) {
        if (!pwsp_moe_expert_count_is_valid(counts[i])) {
            return PWSP_PLAN_FAIL(info, EXPERTS_COUNT, counts[i], PTOWSP_MOE_EXPERT_MAX);
        }
    }
    if ((uint32_t)given->policy > PTOWSP_MOE_GLOBAL) {
        return PWSP_PLAN_FAIL(info, POLICY_UNKNOWN, (int64_t)given->policy, 0);
    }
    if (replicas < experts) {
        return PWSP_PLAN_FAIL(info, REPLICAS_FEW, replicas, experts);
    }
    ptowsp_status status =
        pwsp_moe_divides(replicas, given->rank_count, PTOWSP_FAULT_RANKS_DIVIDE, info);
    if (status == PTOWSP_OK) {
        status = pwsp_moe_divides(experts, groups, PTOWSP_FAULT_GROUPS_DIVIDE, info);
    }
    if (status == PTOWSP_OK) {
        status = pwsp_moe_divides(given->rank_count, nodes, PTOWSP_FAULT_NODES_DIVIDE, info);
    }
    if (status == PTOWSP_OK && given->policy == PTOWSP_MOE_HIERARCHICAL) {
        status = pwsp_moe_divides(groups, nodes, PTOWSP_FAULT_NODES_DIVIDE, info);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    const bool is_global = given->policy == PTOWSP_MOE_GLOBAL || groups % nodes != 0;
    cluster->expert_count = experts;
    cluster->replica_count = replicas;
    cluster->group_count = is_global ? 1 : groups;
    cluster->node_count = is_global ? 1 : nodes;
    cluster->rank_count = given->rank_count;
    cluster->rank_replicas = replicas / given->rank_count;
    cluster->node_ranks = given->rank_count / cluster->node_count;
    cluster->is_spread = given->is_spread;
    const uint32_t different = experts / cluster->node_count;
    return !given->is_spread || cluster->rank_replicas <= different
               ? PTOWSP_OK
               : PWSP_PLAN_FAIL(info, REPLICAS_MANY, cluster->rank_replicas, different);
}

PWSP_INTERNAL ptowsp_status pwsp_moe_loads_check(const float *loads, uint64_t count,
                                                 ptowsp_plan_info *info) {
    if (!loads && count > 0) {
        return pwsp_moe_null(info, PWSP_MOE_IN_LOADS);
    }
    for (uint64_t i = 0; i < count; i++) {
        if (!(loads[i] >= 0.0f && loads[i] <= 3.4028234663852886e38f)) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_LOAD_INVALID, i, 0, 0);
        }
    }
    return PTOWSP_OK;
}

// -- scratch --------------------------------------------------------------------------------------

static uint64_t pwsp_moe_placer_carve(pwsp_moe_placer *p, const pwsp_moe_cluster *c, void *base) {
    pwsp_moe_carver carver = {(char *)base, 0};
    const uint64_t replicas = c->replica_count;
    p->c = c;
    p->keys = (uint64_t *)pwsp_moe_carve(&carver, replicas, sizeof *p->keys);
    p->other_keys = (uint64_t *)pwsp_moe_carve(&carver, replicas, sizeof *p->keys);
    p->heap = (uint64_t *)pwsp_moe_carve(&carver, replicas, sizeof *p->heap);
    p->weights = (float *)pwsp_moe_carve(&carver, replicas, sizeof *p->weights);
    p->packs = (uint32_t *)pwsp_moe_carve(&carver, replicas, sizeof *p->packs);
    p->places = (uint32_t *)pwsp_moe_carve(&carver, replicas, sizeof *p->places);
    p->fill = (uint32_t *)pwsp_moe_carve(&carver, replicas, sizeof *p->fill);
    p->experts = (uint32_t *)pwsp_moe_carve(&carver, c->expert_count, sizeof *p->experts);
    p->counts = (uint32_t *)pwsp_moe_carve(&carver, c->expert_count, sizeof *p->counts);
    p->replica_of = (uint32_t *)pwsp_moe_carve(&carver, replicas, sizeof *p->replica_of);
    p->replica_ordinal = (uint32_t *)pwsp_moe_carve(&carver, replicas, sizeof *p->replica_ordinal);
    p->members = (uint32_t *)pwsp_moe_carve(&carver, replicas, sizeof *p->members);
    return carver.used;
}

static uint64_t pwsp_moe_scratch_needed(const pwsp_moe_cluster *c) {
    pwsp_moe_placer p;
    return pwsp_max_u64(pwsp_moe_placer_carve(&p, c, NULL), pwsp_moe_move_bytes(c));
}

PWSP_INTERNAL ptowsp_status pwsp_moe_scratch_check(const pwsp_moe_cluster *cluster,
                                                   const void *scratch, uint64_t bytes,
                                                   ptowsp_plan_info *info) {
    const uint64_t needed = pwsp_moe_scratch_needed(cluster);
    if (!scratch) {
        return PWSP_PLAN_FAIL(info, SCRATCH_NULL, 0, 0);
    }
    if (((uintptr_t)scratch & 7) != 0) {
        return PWSP_PLAN_FAIL(info, SCRATCH_ALIGN, 0, 8);
    }
    if (bytes < needed) {
        return PWSP_PLAN_FAIL(info, SCRATCH_SMALL, pwsp_info_value(bytes), pwsp_info_value(needed));
    }
    return PTOWSP_OK;
}

uint64_t ptowsp_moe_scratch_bytes(const ptowsp_moe_cluster *cluster) {
    ptowsp_plan_info info;
    pwsp_moe_cluster c;
    return pwsp_moe_cluster_check(cluster, &c, &info) == PTOWSP_OK ? pwsp_moe_scratch_needed(&c)
                                                                   : 0;
}

// -- keys -----------------------------------------------------------------------------------------

// A float that is not negative, as an integer of the same order.
static uint32_t pwsp_float_bits(float value) {
    uint32_t bits;
    const float positive = value + 0.0f;  // no -0
    memcpy(&bits, &positive, sizeof bits);
    return bits;
}

static float pwsp_float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t pwsp_key_rising(float value, uint32_t index) {
    return (uint64_t)pwsp_float_bits(value) << 32 | index;
}

static uint64_t pwsp_key_falling(float value, uint32_t index) {
    return (uint64_t)~pwsp_float_bits(value) << 32 | index;
}

// Sorts keys by their upper halves, as lower ones are in order; returns where they are.
static uint64_t *pwsp_keys_sort(uint64_t *keys, uint64_t *other, uint32_t count) {
    uint32_t starts[4][256];
    memset(starts, 0, sizeof starts);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t digit = 0; digit < 4; digit++) {
            starts[digit][keys[i] >> (32 + 8 * digit) & 255]++;
        }
    }
    for (uint32_t digit = 0; digit < 4; digit++) {
        const uint32_t shift = 32 + 8 * digit;
        uint32_t *start = starts[digit];
        if (start[keys[0] >> shift & 255] == count) {
            continue;  // all have the same
        }
        uint32_t sum = 0;
        for (uint32_t value = 0; value < 256; value++) {
            const uint32_t here = start[value];
            start[value] = sum;
            sum += here;
        }
        for (uint32_t i = 0; i < count; i++) {
            other[start[keys[i] >> shift & 255]++] = keys[i];
        }
        uint64_t *sorted = other;
        other = keys;
        keys = sorted;
    }
    return keys;
}

PWSP_HEAP(pwsp_keys, uint64_t, void, PWSP_IS_LESS)

// -- pack, replicate ------------------------------------------------------------------------------

// Empties the packs, and returns the items of p->weights in the order in which they are packed.
static const uint64_t *pwsp_moe_pack_start(const pwsp_moe_placer *p, uint32_t item_count,
                                           uint32_t pack_count) {
    for (uint32_t i = 0; i < item_count; i++) {
        p->keys[i] = pwsp_key_falling(p->weights[i], i);
    }
    for (uint32_t i = 0; i < pack_count; i++) {
        p->heap[i] = pwsp_key_rising(0.0f, i);
        p->fill[i] = 0;
    }
    return pwsp_keys_sort(p->keys, p->other_keys, item_count);
}

// Packs items of p->weights into packs of the same size.
static void pwsp_moe_pack(const pwsp_moe_placer *p, uint32_t item_count, uint32_t pack_count) {
    const uint32_t size = item_count / pack_count;
    PTOWSP_ASSERT(size > 0 && size * pack_count == item_count);
    if (size == 1) {
        for (uint32_t i = 0; i < item_count; i++) {
            p->packs[i] = i;
            p->places[i] = 0;
        }
        return;
    }
    const uint64_t *order = pwsp_moe_pack_start(p, item_count, pack_count);
    uint32_t open = pack_count;
    for (uint32_t i = 0; i < item_count; i++) {
        const uint32_t item = (uint32_t)order[i], pack = (uint32_t)p->heap[0];
        const float sum = pwsp_float_of((uint32_t)(p->heap[0] >> 32)) + p->weights[item];
        p->packs[item] = pack;
        p->places[item] = p->fill[pack]++;
        if (p->fill[pack] < size) {
            pwsp_keys_sink(NULL, p->heap, open, 0, pwsp_key_rising(sum, pack));
        } else {
            pwsp_keys_pop(NULL, p->heap, open--);
        }
    }
    PTOWSP_ASSERT(open == 0);
}

static bool pwsp_moe_pack_has(const pwsp_moe_placer *p, uint32_t pack, uint32_t size,
                              uint32_t expert) {
    const uint32_t *members = p->members + (size_t)pack * size;
    uint32_t i = 0;
    while (i < p->fill[pack] && p->replica_of[members[i]] != expert) {
        i++;
    }
    return i < p->fill[pack];
}

// Puts an item into a place, which may be another one's.
static void pwsp_moe_put(const pwsp_moe_placer *p, uint32_t item, uint32_t pack, uint32_t place,
                         uint32_t size) {
    p->packs[item] = pack;
    p->places[item] = place;
    p->members[(size_t)pack * size + place] = item;
}

// The sum of a pack that is spread: there heap[pack] is the key of the pack.
static float pwsp_moe_pack_sum(const pwsp_moe_placer *p, uint32_t pack) {
    return pwsp_float_of((uint32_t)(p->heap[pack] >> 32));
}

// Makes room for an item, where all packs with room have its expert. The first of them gives up a
// place; of all swaps that are right, the one is taken after which the larger sum is least.
static void pwsp_moe_pack_swap(const pwsp_moe_placer *p, uint32_t item, uint32_t pack_count,
                               uint32_t size) {
    const uint32_t expert = p->replica_of[item];
    uint32_t to = PTOWSP_MOE_NO_ROW, best = PTOWSP_MOE_NO_ROW;
    for (uint32_t pack = 0; pack < pack_count; pack++) {
        if (p->fill[pack] < size && (to == PTOWSP_MOE_NO_ROW || p->heap[pack] < p->heap[to])) {
            to = pack;
        }
    }
    float best_sum = 0.0f;
    for (uint32_t pack = 0; pack < pack_count; pack++) {
        if (p->fill[pack] < size || pwsp_moe_pack_has(p, pack, size, expert)) {
            continue;
        }
        for (uint32_t i = 0; i < size; i++) {
            const uint32_t moved = p->members[(size_t)pack * size + i];
            const float here = pwsp_moe_pack_sum(p, pack) - p->weights[moved] + p->weights[item];
            const float there = pwsp_moe_pack_sum(p, to) + p->weights[moved];
            const float sum = here > there ? here : there;
            if ((best == PTOWSP_MOE_NO_ROW || sum < best_sum) &&
                !pwsp_moe_pack_has(p, to, size, p->replica_of[moved])) {
                best = moved;
                best_sum = sum;
            }
        }
    }
    PTOWSP_ASSERT(best != PTOWSP_MOE_NO_ROW && "a swap is always there: see the file's head");
    const uint32_t from = p->packs[best], place = p->places[best];
    const float rest = pwsp_moe_pack_sum(p, from) - p->weights[best] + p->weights[item];
    p->heap[from] = pwsp_key_rising(rest > 0.0f ? rest : 0.0f, from);
    p->heap[to] = pwsp_key_rising(pwsp_moe_pack_sum(p, to) + p->weights[best], to);
    pwsp_moe_put(p, item, from, place, size);
    pwsp_moe_put(p, best, to, p->fill[to]++, size);
}

// The same for replicas, with replicas of one expert in different packs.
static void pwsp_moe_pack_spread(const pwsp_moe_placer *p, uint32_t item_count,
                                 uint32_t pack_count) {
    const uint32_t size = item_count / pack_count;
    const uint64_t *order = pwsp_moe_pack_start(p, item_count, pack_count);
    for (uint32_t i = 0; i < item_count; i++) {
        const uint32_t item = (uint32_t)order[i], expert = p->replica_of[item];
        uint32_t best = PTOWSP_MOE_NO_ROW;
        for (uint32_t pack = 0; pack < pack_count; pack++) {
            if (p->fill[pack] < size &&
                (best == PTOWSP_MOE_NO_ROW || p->heap[pack] < p->heap[best]) &&
                !pwsp_moe_pack_has(p, pack, size, expert)) {
                best = pack;
            }
        }
        if (best == PTOWSP_MOE_NO_ROW) {
            pwsp_moe_pack_swap(p, item, pack_count, size);
            continue;
        }
        p->heap[best] = pwsp_key_rising(pwsp_moe_pack_sum(p, best) + p->weights[item], best);
        pwsp_moe_put(p, item, best, p->fill[best]++, size);
    }
}

// The key by which an expert of so many replicas gets the next one. Where replicas are spread, fewer
// go before more: experts without load, which are all equal, then have about the same number.
static uint64_t pwsp_moe_replica_key(const pwsp_moe_placer *p, float load, uint32_t count,
                                     uint32_t i) {
    PTOWSP_ASSERT(count <= 1u << 16 && i < 1u << 16);
    return pwsp_key_falling(load / (float)count, p->c->is_spread ? (count - 1) << 16 | i : i);
}

// Replicates experts[expert_count], which have loads, to replica_count.
static void pwsp_moe_replicate(const pwsp_moe_placer *p, const float *loads,
                               const uint32_t *experts, uint32_t expert_count,
                               uint32_t replica_count) {
    for (uint32_t i = 0; i < expert_count; i++) {
        p->replica_of[i] = i;
        p->replica_ordinal[i] = 0;
        p->counts[i] = 1;
        p->heap[i] = pwsp_moe_replica_key(p, loads[experts[i]], 1, i);
    }
    if (replica_count == expert_count) {
        return;
    }
    const uint32_t most = p->c->is_spread ? p->c->node_ranks : replica_count;
    uint32_t open = expert_count;
    pwsp_keys_make(NULL, p->heap, expert_count);
    for (uint32_t replica = expert_count; replica < replica_count; replica++) {
        PTOWSP_ASSERT(open > 0);
        const uint32_t i = (uint32_t)p->heap[0] & 0xffffu;
        p->replica_of[replica] = i;
        p->replica_ordinal[replica] = p->counts[i]++;
        if (p->counts[i] < most) {
            pwsp_keys_sink(NULL, p->heap, open, 0,
                           pwsp_moe_replica_key(p, loads[experts[i]], p->counts[i], i));
        } else {
            pwsp_keys_pop(NULL, p->heap, open--);
        }
    }
}

// -- a layer --------------------------------------------------------------------------------------

// The experts in the order of the nodes.
static void pwsp_moe_groups_pack(const pwsp_moe_placer *p, const float *loads) {
    const pwsp_moe_cluster *c = p->c;
    const uint32_t size = c->expert_count / c->group_count;
    const uint32_t node_groups = c->group_count / c->node_count;
    for (uint32_t group = 0; group < c->group_count; group++) {
        float sum = 0.0f;
        for (uint32_t i = 0; i < size; i++) {
            sum += loads[group * size + i];
        }
        p->weights[group] = sum;
    }
    pwsp_moe_pack(p, c->group_count, c->node_count);
    for (uint32_t group = 0; group < c->group_count; group++) {
        const uint32_t position = p->packs[group] * node_groups + p->places[group];
        for (uint32_t i = 0; i < size; i++) {
            p->experts[position * size + i] = group * size + i;
        }
    }
}

// Places a layer; false if an expert has more replicas than the stride, which is *out_expert then.
static bool pwsp_moe_layer_place(const pwsp_moe_placer *p, const float *loads,
                                 const ptowsp_moe_placement *out, uint32_t *out_expert,
                                 uint32_t *out_count) {
    const pwsp_moe_cluster *c = p->c;
    const uint32_t experts = c->expert_count / c->node_count;
    const uint32_t replicas = c->replica_count / c->node_count;
    pwsp_moe_groups_pack(p, loads);
    for (uint32_t node = 0; node < c->node_count; node++) {
        const uint32_t *of_node = p->experts + (size_t)node * experts;
        pwsp_moe_replicate(p, loads, of_node, experts, replicas);
        for (uint32_t i = 0; i < experts; i++) {
            if (out->expert_replicas && p->counts[i] > out->stride) {
                *out_expert = of_node[i];
                *out_count = p->counts[i];
                return false;
            }
            if (out->expert_counts) {
                out->expert_counts[of_node[i]] = (int32_t)p->counts[i];
            }
        }
        for (uint32_t r = 0; r < replicas; r++) {
            const uint32_t i = p->replica_of[r];
            p->weights[r] = loads[of_node[i]] / (float)p->counts[i];
        }
        if (c->is_spread) {
            pwsp_moe_pack_spread(p, replicas, c->node_ranks);
        } else {
            pwsp_moe_pack(p, replicas, c->node_ranks);
        }
        for (uint32_t r = 0; r < replicas; r++) {
            const uint32_t expert = of_node[p->replica_of[r]];
            const uint32_t at = node * replicas + p->packs[r] * c->rank_replicas + p->places[r];
            out->replica_experts[at] = (int32_t)expert;
            if (out->expert_replicas) {
                out->expert_replicas[(size_t)expert * out->stride + p->replica_ordinal[r]] =
                    (int32_t)at;
            }
        }
    }
    return true;
}

static ptowsp_status pwsp_moe_placement_check(const ptowsp_moe_placement *placement,
                                              ptowsp_plan_info *info) {
    if (!placement) {
        return PWSP_PLAN_FAIL(info, OUT_NULL, PWSP_OUT_PLACEMENT, 0);
    }
    return placement->replica_experts ? PTOWSP_OK
                                      : pwsp_moe_null(info, PWSP_MOE_IN_PLACEMENT_REPLICAS);
}

ptowsp_status ptowsp_moe_rebalance(const ptowsp_moe_cluster *cluster, const float *loads,
                                   uint32_t layer_count, void *scratch, uint64_t scratch_bytes,
                                   const ptowsp_moe_placement *placement,
                                   ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    pwsp_moe_cluster c;
    ptowsp_status status = pwsp_moe_cluster_check(cluster, &c, info);
    if (status == PTOWSP_OK) {
        status = pwsp_moe_placement_check(placement, info);
    }
    if (status == PTOWSP_OK) {
        status = pwsp_moe_scratch_check(&c, scratch, scratch_bytes, info);
    }
    if (status == PTOWSP_OK) {
        status = pwsp_moe_loads_check(loads, (uint64_t)layer_count * c.expert_count, info);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    pwsp_moe_placer p;
    pwsp_moe_placer_carve(&p, &c, scratch);
    ptowsp_moe_placement layer = *placement;
    for (uint32_t i = 0; i < layer_count; i++) {
        uint32_t expert, count;
        if (layer.expert_replicas) {
            memset(layer.expert_replicas, 0xff,
                   (size_t)c.expert_count * layer.stride * sizeof *layer.expert_replicas);
        }
        if (!pwsp_moe_layer_place(&p, loads, &layer, &expert, &count)) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_STRIDE_SMALL, expert, count, layer.stride);
        }
        loads += c.expert_count;
        layer.replica_experts += c.replica_count;
        if (layer.expert_counts) {
            layer.expert_counts += c.expert_count;
        }
        if (layer.expert_replicas) {
            layer.expert_replicas += (size_t)c.expert_count * layer.stride;
        }
    }
    return PTOWSP_OK;
}

// -- using a placement ----------------------------------------------------------------------------

ptowsp_status ptowsp_moe_index(const ptowsp_moe_cluster *cluster,
                               const ptowsp_moe_placement *placement, ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    pwsp_moe_cluster c;
    ptowsp_status status = pwsp_moe_cluster_check(cluster, &c, info);
    if (status == PTOWSP_OK) {
        status = pwsp_moe_placement_check(placement, info);
    }
    if (status == PTOWSP_OK && !placement->expert_counts) {
        status = pwsp_moe_null(info, PWSP_MOE_IN_PLACEMENT_COUNTS);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    const size_t stride = placement->stride;
    int32_t *counts = placement->expert_counts, *lists = placement->expert_replicas;
    memset(counts, 0, c.expert_count * sizeof *counts);
    if (lists) {
        memset(lists, 0xff, c.expert_count * stride * sizeof *lists);
    }
    for (uint32_t r = 0; r < c.replica_count; r++) {
        const int32_t expert = placement->replica_experts[r];
        if (expert < 0 || (uint32_t)expert >= c.expert_count) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_REPLICA_EXPERT, r, expert, c.expert_count);
        }
        const size_t ordinal = (size_t)counts[expert]++;
        if (lists && ordinal >= stride) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_STRIDE_SMALL, (uint64_t)expert,
                                  (int64_t)ordinal + 1, (int64_t)stride);
        }
        if (lists) {
            lists[(size_t)expert * stride + ordinal] = (int32_t)r;
        }
    }
    for (uint32_t e = 0; e < c.expert_count; e++) {
        if (counts[e] == 0) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_EXPERT_ABSENT, e, 0, 0);
        }
    }
    return PTOWSP_OK;
}

// Checks counts and replicas of the experts, as far as they are used.
static ptowsp_status pwsp_moe_shares_check(const ptowsp_moe_routes *routes,
                                           const ptowsp_moe_placement *placement,
                                           ptowsp_plan_info *info) {
    for (uint32_t e = 0; e < routes->expert_count; e++) {
        const int32_t count = placement->expert_counts[e];
        if (count == 0) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_EXPERT_ABSENT, e, 0, 0);
        }
        if (count < 0 || (uint32_t)count > placement->stride) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_REPLICA_WRONG, e, count, placement->stride);
        }
        for (int32_t i = 0; i < count; i++) {
            const int32_t at =
                placement->expert_replicas[(size_t)e * placement->stride + (size_t)i];
            if (at < 0 || at >= PTOWSP_MOE_EXPERT_MAX) {
                return pwsp_plan_fail(info, PTOWSP_FAULT_REPLICA_WRONG, e, at,
                                      PTOWSP_MOE_EXPERT_MAX - 1);
            }
        }
    }
    return PTOWSP_OK;
}

ptowsp_status ptowsp_moe_share(const ptowsp_moe_routes *routes,
                               const ptowsp_moe_placement *placement, uint32_t *next,
                               int32_t *out_ids, ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    ptowsp_status status = pwsp_moe_routes_check(routes, info);
    if (status == PTOWSP_OK && (!next || !out_ids)) {
        status = PWSP_PLAN_FAIL(info, OUT_NULL, next ? PWSP_OUT_IDS : PWSP_OUT_NEXT, 0);
    }
    if (status == PTOWSP_OK &&
        (!placement || !placement->expert_counts || !placement->expert_replicas)) {
        status = pwsp_moe_null(info, !placement                  ? PWSP_MOE_IN_PLACEMENT
                                     : !placement->expert_counts ? PWSP_MOE_IN_PLACEMENT_COUNTS
                                                                 : PWSP_MOE_IN_PLACEMENT_LISTS);
    }
    if (status == PTOWSP_OK) {
        status = pwsp_moe_shares_check(routes, placement, info);
    }
    if (status == PTOWSP_OK) {
        status = pwsp_moe_ids_check(routes, info);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    for (uint32_t e = 0; e < routes->expert_count; e++) {
        next[e] = e % (uint32_t)placement->expert_counts[e];
    }
    const uint64_t pairs = (uint64_t)routes->token_count * routes->top_k;
    for (uint64_t i = 0; i < pairs; i++) {
        const int32_t e = routes->ids[i];
        if (e < 0) {
            out_ids[i] = e;
            continue;
        }
        out_ids[i] = placement->expert_replicas[(size_t)e * placement->stride + next[e]];
        next[e]++;
        next[e] = next[e] == (uint32_t)placement->expert_counts[e] ? 0 : next[e];
    }
    return PTOWSP_OK;
}
