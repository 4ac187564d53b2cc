// Links: the links of machines, checks, the time of a collective (traffic.c), and the choice of an
// algorithm by time.

#include "traffic.h"

#include <inttypes.h>

// -- links ----------------------------------------------------------------------------------------

static bool pwsp_link_is_valid(const ptowsp_link *link) {
    return (uint32_t)link->sharing <= PTOWSP_LINK_NODE;
}

PWSP_INTERNAL ptowsp_status pwsp_links_check(ptowsp_context *context, const ptowsp_links *links) {
    const ptowsp_status bad = PTOWSP_INVALID_PARAMS;
    bool is_valid =
        links && pwsp_link_is_valid(&links->inside) && pwsp_link_is_valid(&links->between);
    if (links && links->axis_count > PTOWSP_MESH_AXIS_MAX) {
        return pwsp_ranks_fail(context, bad, links->axis_count,
                               "links of %" PRIu32 " axes: there are at most %d", links->axis_count,
                               PTOWSP_MESH_AXIS_MAX);
    }
    uint64_t ranks = 1;
    for (uint32_t i = 0; links && i < links->axis_count; i++) {
        ranks *= links->axis_sizes[i];
        is_valid = is_valid && pwsp_link_is_valid(&links->axes[i]);
        if (ranks == 0 || ranks > PTOWSP_MESH_RANK_MAX) {
            return pwsp_ranks_fail(context, bad, i,
                                   "links along axis %" PRIu32 " of %" PRIu32
                                   " ranks: a mesh has 1 to %d ranks",
                                   i, links->axis_sizes[i], PTOWSP_MESH_RANK_MAX);
        }
    }
    if (!is_valid) {
        return pwsp_ranks_fail(context, bad, PTOWSP_NO_INDEX,
                               links ? "links are shared in an unknown way" : "no links");
    }
    return PTOWSP_OK;
}

ptowsp_links ptowsp_links_make(ptowsp_links_of machine) {
    static const struct {
        char name[20];
        uint32_t node_size;
        uint64_t rank_bytes_per_us;
        ptowsp_link inside, between;
    } known[] = {
        {"ascend_910b",
         8,
         0,
         {2000000, 28000, PTOWSP_LINK_PAIR},
         {5000000, 25000, PTOWSP_LINK_PORT}},
        {"ethernet_100g", 1, 0, {0, 0, PTOWSP_LINK_PORT}, {20000000, 12500, PTOWSP_LINK_PORT}},
        {"ethernet_10g", 1, 0, {0, 0, PTOWSP_LINK_PORT}, {30000000, 1250, PTOWSP_LINK_PORT}},
        // A pair: 13 to 16 GB/s between two ranks alone, the middle. A rank: 67.7 with 8 cards at
        // once, where a pair has the 7th part, 9.7. Latencies and RoCE as above.
        {"ascend_910b_cores",
         8,
         67700,
         {2000000, 14500, PTOWSP_LINK_PAIR},
         {5000000, 25000, PTOWSP_LINK_PORT}},
    };
    PWSP_ZERO(ptowsp_links, links);
    if ((uint32_t)machine < sizeof known / sizeof known[0]) {
        links.name = known[machine].name;
        links.node_size = known[machine].node_size;
        links.rank_bytes_per_us = known[machine].rank_bytes_per_us;
        links.inside = known[machine].inside;
        links.between = known[machine].between;
    }
    return links;
}

// -- time -----------------------------------------------------------------------------------------

// Members begin at `starts`, or all at 0 if it is NULL; of `flow`, in t.
static void pwsp_links_begin(pwsp_traffic *t, pwsp_flow *flow, const uint64_t *starts) {
    for (uint32_t i = 0; i < flow->member_count; i++) {
        pwsp_traffic_join(t, flow, i, starts ? starts[i] : 0);
    }
}

static ptowsp_status pwsp_links_fail(ptowsp_context *context, const pwsp_traffic *t,
                                     const ptowsp_collective *c, bool has_memory) {
    if (!has_memory) {
        return pwsp_ranks_fail(context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "out of memory");
    }
    return !t->is_late ? PTOWSP_OK
                       : pwsp_ranks_fail(context, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                                         "%s: its time does not fit 64 bits",
                                         ptowsp_collective_name(c->kind));
}

// Simulates one collective. What its members would do alike is done once, and counted for all.
static ptowsp_status pwsp_links_simulate(ptowsp_context *context, const ptowsp_collective *c,
                                         const ptowsp_links *links, uint64_t unit,
                                         const uint64_t *starts, uint64_t *ends,
                                         ptowsp_collective_cost *out_cost) {
    pwsp_traffic t;
    const uint32_t count = starts ? c->members : pwsp_traffic_symmetry(links, c);
    bool has_memory = pwsp_traffic_init(&t, &context->memory, links, unit, c->first,
                                        pwsp_stride(c->stride), count);
    pwsp_flow *flow = has_memory ? pwsp_flow_make(&t, c, count) : NULL;
    has_memory = flow != NULL;
    if (has_memory) {
        pwsp_links_begin(&t, flow, starts);
        while (pwsp_traffic_step(&t)) {
        }
        PTOWSP_ASSERT(flow->ended == count);
        const uint64_t times = c->members / count;
        *out_cost = t.cost;
        out_cost->round_count = flow->round_count;
        out_cost->message_count *= times;
        out_cost->sent_bytes *= times;
        out_cost->between_bytes *= times;
        for (uint32_t i = 0; ends && i < c->members; i++) {
            ends[i] = flow->members[i % count].now;
        }
    }
    const ptowsp_status status = pwsp_links_fail(context, &t, c, has_memory);
    pwsp_flow_free(&t, flow);
    pwsp_traffic_free(&t);
    return status;
}

ptowsp_status ptowsp_collective_time(ptowsp_context *context, const ptowsp_collective *collective,
                                     const ptowsp_links *links, ptowsp_collective_cost *out_cost) {
    PTOWSP_ASSERT(context);
    ptowsp_status status = pwsp_collective_check(context, collective);
    if (status == PTOWSP_OK) {
        status = pwsp_links_check(context, links);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    if (collective->algorithm == PTOWSP_ALGORITHM_AUTO || !out_cost) {
        return pwsp_ranks_fail(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                               "%s: its time needs %s", ptowsp_collective_name(collective->kind),
                               out_cost ? "an algorithm" : "room to write");
    }
    return pwsp_links_simulate(context, collective, links, 1, NULL, NULL, out_cost);
}

PWSP_INTERNAL ptowsp_status pwsp_collective_time_from(ptowsp_context *context,
                                                      const ptowsp_collective *collective,
                                                      const ptowsp_links *links, uint64_t unit,
                                                      const uint64_t *starts, uint64_t *ends) {
    ptowsp_collective_cost cost;
    const ptowsp_status status = pwsp_collective_check(context, collective);
    return status == PTOWSP_OK
               ? pwsp_links_simulate(context, collective, links, unit, starts, ends, &cost)
               : status;
}

// The groups of all ranks are this one, moved by offsets below its stride and by whole groups.
PWSP_INTERNAL ptowsp_status pwsp_collective_time_beside(ptowsp_context *context,
                                                        const ptowsp_collective *collective,
                                                        const ptowsp_links *links, uint64_t unit,
                                                        uint32_t rank_count, uint64_t *ends) {
    const uint32_t stride = pwsp_stride(collective->stride);
    const uint32_t block = collective->members * stride;
    PTOWSP_ASSERT(rank_count % block == 0);
    pwsp_traffic t;
    pwsp_flow *flows = NULL, *own = NULL;
    ptowsp_status status = pwsp_collective_check(context, collective);
    if (status != PTOWSP_OK) {
        return status;
    }
    bool has_memory = pwsp_traffic_init(&t, &context->memory, links, unit, 0, 1, rank_count);
    for (uint32_t first = 0; first < rank_count && has_memory; first++) {
        if (first % block >= stride) {
            continue;
        }
        ptowsp_collective c = *collective;
        c.first = first;
        pwsp_flow *flow = pwsp_flow_make(&t, &c, c.members);
        has_memory = flow != NULL;
        if (flow) {
            flow->next = flows;
            flows = flow;
            own = first == collective->first ? flow : own;
            pwsp_links_begin(&t, flow, NULL);
        }
    }
    while (has_memory && pwsp_traffic_step(&t)) {
    }
    for (uint32_t i = 0; i < collective->members && has_memory; i++) {
        ends[i] = own->members[i].now;
    }
    status = pwsp_links_fail(context, &t, collective, has_memory);
    while (flows) {
        pwsp_flow *const next = flows->next;
        pwsp_flow_free(&t, flows);
        flows = next;
    }
    pwsp_traffic_free(&t);
    return status;
}

// -- the choice -----------------------------------------------------------------------------------

PWSP_INTERNAL uint32_t pwsp_links_inner(const ptowsp_collective *c, const ptowsp_links *links) {
    const uint32_t stride = pwsp_stride(c->stride);
    const uint32_t size = links->axis_count == 0   ? links->node_size
                          : links->axis_count == 1 ? 0
                                                   : links->axis_sizes[links->axis_count - 1];
    if (size == 0) {
        return c->members;
    }
    if (size % stride || c->first % size >= stride) {
        return 1;
    }
    const uint32_t inner = size / stride;
    return c->members % inner == 0 ? inner : 1;
}

// AUTO leaves out DIRECT beyond: its messages are members * members.
#define PWSP_DIRECT_MAX 1024

typedef struct pwsp_algorithm_choice {
    ptowsp_algorithm algorithm;
    uint64_t time_ps;
} pwsp_algorithm_choice;

static void pwsp_algorithm_say(const ptowsp_collective *c, const ptowsp_links *links,
                               const pwsp_algorithm_choice *choices, uint32_t count,
                               ptowsp_output text) {
    uint64_t elements = c->count;
    for (size_t i = 0; c->counts && i < (size_t)c->members * c->members; i++) {
        elements += c->counts[i];
    }
    pwsp_text_format(text, "%s of %" PRIu32 " rank%s, %" PRIu64 " bytes, on %s:",
                     ptowsp_collective_name(c->kind), c->members, c->members == 1 ? "" : "s",
                     elements * ptowsp_dtype_size(c->dtype), links->name ? links->name : "links");
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t hundredths =
            choices[i].time_ps / 10000 + (choices[i].time_ps % 10000 >= 5000);
        pwsp_text_format(text, "%s %s %" PRIu64 ".%02" PRIu64 " us", i ? "," : "",
                         ptowsp_algorithm_name(choices[i].algorithm), hundredths / 100,
                         hundredths % 100);
    }
    pwsp_text_format(text, "\n");
}

ptowsp_status ptowsp_collective_choose(ptowsp_context *context, ptowsp_collective *collective,
                                       const ptowsp_links *links, ptowsp_output output) {
    ptowsp_status status = pwsp_collective_check(context, collective);
    if (status == PTOWSP_OK) {
        status = pwsp_links_check(context, links);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    ptowsp_collective tried = *collective;
    tried.node_size = pwsp_links_inner(collective, links);
    pwsp_algorithm_choice choices[PTOWSP_ALGORITHM_RING];
    uint32_t count = 0;
    for (uint32_t a = PTOWSP_ALGORITHM_DIRECT; a <= PTOWSP_ALGORITHM_RING; a++) {
        tried.algorithm = (ptowsp_algorithm)a;  // in the order of names
        const bool is_ring = tried.node_size == 1 || tried.node_size == tried.members;
        const bool is_large = a == PTOWSP_ALGORITHM_DIRECT && tried.members > PWSP_DIRECT_MAX &&
                              tried.kind <= PTOWSP_ALL_GATHER;
        if (!pwsp_collective_has(tried.kind, tried.algorithm) || is_large ||
            (a == PTOWSP_ALGORITHM_HIERARCHICAL && is_ring)) {
            continue;
        }
        ptowsp_collective_cost cost;
        status = ptowsp_collective_time(context, &tried, links, &cost);
        if (status != PTOWSP_OK) {
            return status;
        }
        uint32_t at = count++;
        for (; at > 0 && choices[at - 1].time_ps > cost.time_ps; at--) {
            choices[at] = choices[at - 1];
        }
        choices[at].algorithm = tried.algorithm;
        choices[at].time_ps = cost.time_ps;
    }
    PTOWSP_ASSERT(count > 0);
    if (output.write) {
        pwsp_algorithm_say(collective, links, choices, count, output);
    }
    collective->algorithm = choices[0].algorithm;
    collective->node_size = tried.node_size;
    return PTOWSP_OK;
}
