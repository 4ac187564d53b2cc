// Which nodes of a prefix tree are shared: the least cost over all choices.
//
// A shared node is a segment for all its requests. It has the KV from where the shared node above it
// ends, or from 0, to its own end: nodes between them are not shared, so their KV is read by the nodes
// below. The cost of a subtree depends on the nodes above it by this one number y alone, and on whether
// anything above is shared at all: otherwise requests that share nothing need no slots.
//
//      KV      0            y                    begin         end
//              [ shared .. ][ not shared ....... ][ this node  ][ below ...
//                           '------- this node's segment -------'
//
//      share(y) = tiles * unit + slots + (end - y) * rate + (sum over the nodes below, at y = end)
//      push(y)  = sum over the nodes below, at y
//      f(y)     = min(share(y), push(y))
//
// push falls at least as fast in y as share does, as the tiles below number at least as many as this
// node's and have the same rows. So push - share does not grow with y: a node is shared if and only
// if y is at most a number of its own, share_at. f is a straight line between such numbers of the
// nodes below, as y goes down from the begin of the node; at each of them the slope falls by `drop`,
// and f by `gain`, as they are whole numbers. Where this node is shared the changes below it do not
// matter any more. So each node adds one change to a list in order of falling y, and the rests of
// the lists of all children are merged for the parent:
//
//      f   |          .-- slope: this node's, once it is shared
//          |      .-'
//          |    /   <- share_at: gain, drop
//          |   /
//          |  / slope: of all segments below
//          +-----------------------------> y falls
//
// y counts granules: tokens, or in INVARIANT mode chunks, whose number decides there on units and
// slots. All sums are below 2^62, which is checked first; if they might not be, nothing is shared.
// Children come before parents in the array, so no walk needs a stack.

#include "prefix.h"

typedef struct pwsp_choice {
    const pwsp_attention *a;
    ptowsp_prefix_tree *tree;
    const pwsp_prefix_scratch *s;
    uint32_t granule;  // tokens
} pwsp_choice;

// -- costs ----------------------------------------------------------------------------------------

// The cost of a segment of `tokens` query tokens: of each granule of KV, and of itself.
typedef struct pwsp_segment_cost {
    uint64_t rate, fixed;
    uint64_t slots;  // of fixed
} pwsp_segment_cost;

PWSP_FORCE_INLINE uint64_t pwsp_granule_rate(const pwsp_choice *c, uint64_t tiles, uint64_t rows) {
    const pwsp_attention *a = c->a;
    uint64_t rate = pwsp_sum_u64(pwsp_mul_u64(tiles, a->token), pwsp_mul_u64(rows, a->row_token));
    rate = pwsp_mul_u64(rate, c->granule);
    if (pwsp_attention_cuts_chunks(a)) {
        rate = pwsp_sum_u64(rate, pwsp_mul_u64(tiles, a->unit));
        rate = pwsp_sum_u64(rate, pwsp_mul_u64(rows, a->merged_row));
    }
    return rate;
}

static pwsp_segment_cost pwsp_node_cost(const pwsp_choice *c, const ptowsp_prefix_node *node) {
    const uint32_t *begin = c->s->token_begin;
    const uint32_t tokens = begin[node->first + node->count] - begin[node->first];
    const uint64_t tiles = pwsp_tiles_of(c->a, tokens);
    const uint64_t rows = (uint64_t)tokens * c->a->config.group;
    pwsp_segment_cost cost = {pwsp_granule_rate(c, tiles, rows), 0, 0};
    if (!pwsp_attention_cuts_chunks(c->a)) {
        cost.slots = pwsp_mul_u64(rows, c->a->merged_row);
        cost.fixed = pwsp_sum_u64(pwsp_mul_u64(tiles, c->a->unit), cost.slots);
    }
    return cost;
}

// Adds f of a node, or of a request, to the sum below its parent.
static void pwsp_cost_add(pwsp_prefix_cost *to, uint64_t at_end, uint64_t below, uint64_t slope,
                          uint64_t alone) {
    to->at_end += at_end;
    to->below += below;
    to->slope += slope;
    to->alone += alone;
}

// What the last segment of a tile's request costs from KV token kv on.
PWSP_FORCE_INLINE uint64_t pwsp_last_cost(const pwsp_attention *a, pwsp_query_tile tile,
                                          uint32_t kv, bool is_slotted) {
    tile.begin = kv;
    tile.is_slotted = is_slotted;
    if (kv < tile.end) {
        return pwsp_tile_cost(a, &tile, kv);
    }
    // None yet, but with any KV there is a unit; in INVARIANT mode the rate has it.
    return pwsp_attention_cuts_chunks(a) ? 0 : pwsp_sum_u64(a->unit, pwsp_slot_cost(a, tile.rows));
}

// Adds what nodes cost, and their segments, to the bound of all sums.
static uint64_t pwsp_nodes_bound(const pwsp_choice *c) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->tree->node_count; i++) {
        const ptowsp_prefix_node *node = &c->tree->nodes[i];
        const pwsp_segment_cost cost = pwsp_node_cost(c, node);
        sum = pwsp_sum_u64(sum, pwsp_mul_u64(cost.rate, node->kv_end / c->granule + UINT64_C(1)));
        sum = pwsp_sum_u64(sum, cost.fixed);
    }
    return sum;
}

// Adds the last segment of a position to what its owner has below, and to the bound. The former may
// overflow: then it is not used, since the latter is too large.
static uint64_t pwsp_request_add(const pwsp_choice *c, uint32_t position) {
    const pwsp_attention *a = c->a;
    const uint32_t tiles = pwsp_query_tiles(a, position), owner = c->tree->owners[position];
    uint32_t end = 0;
    if (owner != PTOWSP_NO_NODE) {
        end = pwsp_prefix_round(a, c->tree->nodes[owner].kv_end);
    }
    uint64_t sum = 0, rows = 0, alone = 0, below = 0;
    for (uint32_t i = 0; i < tiles; i++) {
        const pwsp_query_tile tile = pwsp_query_tile_at(a, position, i);
        const uint64_t pieces = (uint64_t)tile.end / c->granule + 1;
        sum = pwsp_sum_u64(sum, pwsp_mul_u64(tile.end, tile.rate));
        const uint64_t piece = pwsp_sum_u64(a->unit, pwsp_slot_cost(a, tile.rows));
        sum = pwsp_sum_u64(sum, pwsp_mul_u64(pieces, piece));
        rows += tile.rows;
        alone += pwsp_last_cost(a, tile, 0, false);
        below += pwsp_last_cost(a, tile, end, true);
    }
    const uint64_t rate = tiles > 0 ? pwsp_granule_rate(c, tiles, rows) : 0;
    if (owner != PTOWSP_NO_NODE && tiles > 0) {
        const bool is_empty = (uint32_t)a->kv_lengths[position] <= end;
        pwsp_cost_add(&c->s->costs[owner], is_empty ? 0 : below, below, rate, alone);
        c->s->costs[owner].has_above |= !is_empty;
    }
    return pwsp_sum_u64(sum, rate);
}

// -- lists of changes -----------------------------------------------------------------------------

// Merges the list of a child into that of its parent, by falling share_at.
static void pwsp_changes_merge(pwsp_prefix_cost *costs, pwsp_prefix_cost *to, uint32_t list) {
    uint32_t *link = &to->head;
    while (list != PTOWSP_NO_NODE) {
        while (*link != PTOWSP_NO_NODE && costs[*link].share_at >= costs[list].share_at) {
            link = &costs[*link].next;
        }
        const uint32_t rest = *link;
        *link = list;
        link = &costs[list].next;
        list = *link;
        *link = rest;
        // What was linked behind belongs to either list; the rest of `list` is merged next.
    }
}

// The line that f follows, as y goes down.
typedef struct pwsp_cost_line {
    uint64_t at, value, slope;
} pwsp_cost_line;

// Passes a change, at its y.
static void pwsp_cost_pass(pwsp_cost_line *line, const pwsp_prefix_cost *change) {
    PTOWSP_ASSERT(change->share_at <= line->at && change->drop <= line->slope);
    line->value += line->slope * (line->at - change->share_at);
    PTOWSP_ASSERT(change->gain <= line->value);
    line->value -= change->gain;
    line->slope -= change->drop;
    line->at = change->share_at;
}

// Finds from where on a node is shared, given push at its begin and the cost of share there, which is
// no less. Cuts the list there, and adds the node's own change.
static void pwsp_share_find(pwsp_prefix_cost *costs, uint32_t node, pwsp_cost_line line,
                            uint64_t share, uint64_t rate) {
    const uint64_t start = line.at;
    pwsp_prefix_cost *own = &costs[node];
    uint32_t *link = &own->head;
    for (;;) {
        const pwsp_prefix_cost *next = *link == PTOWSP_NO_NODE ? NULL : &costs[*link];
        const uint64_t now = share + rate * (start - line.at);
        PTOWSP_ASSERT(now >= line.value && line.slope >= rate);
        // On this line push exceeds share after so many steps, if it is that long.
        const uint64_t steep = line.slope - rate;
        const uint64_t steps = steep > 0 ? (now - line.value) / steep + 1 : UINT64_MAX;
        const uint64_t length = line.at - (next ? next->share_at : 0);
        if (next ? steps < length : steps <= length) {
            own->share_at = (uint32_t)(line.at - steps);
            own->gain = steep * steps - (now - line.value);
            own->drop = steep;
            break;
        }
        if (!next) {
            return;  // never
        }
        pwsp_cost_pass(&line, next);
        const uint64_t there = share + rate * (start - line.at);
        if (there < line.value) {
            own->share_at = (uint32_t)line.at;
            own->gain = line.value - there;
            own->drop = line.slope - rate;
            link = &costs[*link].next;  // both changes are at this y
            break;
        }
        link = &costs[*link].next;
    }
    *link = node;
    own->next = PTOWSP_NO_NODE;
}

// -- the tree -------------------------------------------------------------------------------------

// Decides on a node all of whose children have been decided on.
static void pwsp_choose_node(pwsp_choice *c, uint32_t index) {
    pwsp_prefix_cost *costs = c->s->costs, *own = &costs[index];
    const ptowsp_prefix_node *node = &c->tree->nodes[index];
    const uint64_t end = pwsp_prefix_round(c->a, node->kv_end) / c->granule;
    const uint64_t begin = pwsp_prefix_round(c->a, node->kv_begin) / c->granule;
    const pwsp_segment_cost cost = pwsp_node_cost(c, node);
    const uint32_t *tokens = c->s->token_begin;
    const uint64_t tiles =
        pwsp_tiles_of(c->a, tokens[node->first + node->count] - tokens[node->first]);
    pwsp_cost_line line = {end, own->below, own->slope};
    uint64_t at_end = own->at_end, alone = own->alone;
    if (begin < end) {
        while (own->head != PTOWSP_NO_NODE && costs[own->head].share_at >= begin) {
            pwsp_cost_pass(&line, &costs[own->head]);
            own->head = costs[own->head].next;
        }
        line.value += line.slope * (line.at - begin);
        line.at = begin;
    }
    if (begin < end && tiles > 0 && tiles <= UINT16_MAX + 1u) {
        const uint64_t share = cost.fixed + cost.rate * (end - begin) + own->at_end;
        if (share < line.value) {
            own->share_at = (uint32_t)begin;
            own->head = PTOWSP_NO_NODE;
            line.value = share;
            line.slope = cost.rate;
        } else {
            pwsp_share_find(costs, index, line, share, cost.rate);
        }
        // Where nothing is below, requests need no slots.
        uint64_t first = cost.fixed + cost.rate * end + own->at_end;
        if (own->has_above == 0 && !pwsp_attention_cuts_chunks(c->a)) {
            first -= cost.slots;
        } else if (own->has_above == 0 && end == 1) {
            first -= (uint64_t)(tokens[node->first + node->count] - tokens[node->first]) *
                     c->a->config.group * c->a->merged_row;
        }
        own->shares_alone = first < alone;
        alone = first < alone ? first : alone;
    }
    at_end = begin < end ? line.value : at_end;
    if (node->parent != PTOWSP_NO_NODE) {
        pwsp_prefix_cost *parent = &costs[node->parent];
        pwsp_cost_add(parent, at_end, line.value, line.slope, alone);
        pwsp_changes_merge(costs, parent, own->head);
        parent->has_above |= (begin < end && tiles > 0) || own->has_above;
    }
}

PWSP_INTERNAL void pwsp_prefix_choose(const pwsp_attention *a, ptowsp_prefix_tree *tree,
                                      const pwsp_prefix_scratch *scratch) {
    pwsp_choice c = {a, tree, scratch, pwsp_attention_cuts_chunks(a) ? (uint32_t)a->chunk : 1};
    pwsp_prefix_cost *costs = scratch->costs;
    for (uint32_t i = 0; i < tree->node_count; i++) {
        memset(&costs[i], 0, sizeof costs[i]);
        costs[i].head = costs[i].next = PTOWSP_NO_NODE;
        costs[i].share_at = UINT32_MAX;
        tree->nodes[i].is_shared = 0;
    }
    // has_above first says whether anything is below; going down it is set anew.
    uint64_t bound = pwsp_nodes_bound(&c);
    for (uint32_t p = 0; p < tree->request_count; p++) {
        bound = pwsp_sum_u64(bound, pwsp_request_add(&c, p));
    }
    if (bound >= PWSP_COST_MAX) {
        return;
    }
    for (uint32_t i = 0; i < tree->node_count; i++) {
        pwsp_choose_node(&c, i);
    }
    for (uint32_t i = tree->node_count; i-- > 0;) {
        ptowsp_prefix_node *node = &tree->nodes[i];
        const pwsp_prefix_cost *parent =
            node->parent == PTOWSP_NO_NODE ? NULL : &costs[node->parent];
        const bool has_above = parent && parent->has_above;
        const uint32_t above = parent ? parent->above : 0;
        const bool is_shared =
            has_above ? costs[i].share_at != UINT32_MAX && costs[i].share_at >= above / c.granule
                      : costs[i].shares_alone != 0;
        node->is_shared = is_shared;
        costs[i].has_above = is_shared || has_above;
        costs[i].above = is_shared ? pwsp_prefix_round(a, node->kv_end) : above;
    }
}
