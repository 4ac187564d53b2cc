// Prefix trees from nodes that are given: a walk in depth-first order, by lists of children, that
// notes how far up it went between two requests. What they share is the KV of the deepest node above
// both. A node that the walk does not reach is in a cycle, or below one.

#include "prefix.h"

// Lists in the table of the tree's scratch: with N nodes, 4 * N elements.
typedef struct pwsp_given_walk {
    const ptowsp_prefix_given *given;
    uint32_t *child, *sibling;  // first child, next one
    uint32_t *tokens;           // KV tokens up to a node's end; UINT32_MAX before it is reached
    uint32_t *request;          // first request at a node
    uint32_t *next;             // [requests] next one at the same node
} pwsp_given_walk;

static ptowsp_status pwsp_given_check(const ptowsp_prefix_given *given,
                                      const ptowsp_prefix_tree *tree, ptowsp_plan_info *info) {
    if (!given) {
        return PWSP_PLAN_FAIL(info, BATCH_NULL, 0, 0);
    }
    const uint32_t requests = given->attention.sequence_count, nodes = given->node_count;
    if (requests > 0 && !given->attention.kv_lengths) {
        return PWSP_PLAN_FAIL(info, LENGTHS_NULL, requests, 0);
    }
    const bool are_null[3] = {!given->parents && nodes > 0, !given->node_tokens && nodes > 0,
                              !given->request_nodes && requests > 0};
    for (uint32_t i = 0; i < 3; i++) {
        if (are_null[i]) {
            return PWSP_PLAN_FAIL(info, BLOCKS_NULL, i + 2, 0);
        }
    }
    if (requests > tree->request_capacity) {
        return PWSP_PLAN_FAIL(info, TREE_FULL, requests, tree->request_capacity);
    }
    if (nodes > tree->block_capacity) {
        return PWSP_PLAN_FAIL(info, NODES_LARGE, nodes, pwsp_info_value(tree->block_capacity));
    }
    for (uint32_t i = 0; i < nodes; i++) {
        if (given->parents[i] == i) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_NODE_CYCLE, i, 0, 0);
        }
        if (given->parents[i] >= nodes && given->parents[i] != PTOWSP_NO_NODE) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_NODE_PARENT, i, given->parents[i], nodes);
        }
    }
    for (uint32_t i = 0; i < requests; i++) {
        const uint32_t node = given->request_nodes[i];
        if (node >= nodes && node != PTOWSP_NO_NODE) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_REQUEST_NODE, i, node, nodes);
        }
    }
    return PTOWSP_OK;
}

// The node after `node` in depth-first order; *low falls to the KV of what is above both.
static uint32_t pwsp_given_step(const pwsp_given_walk *w, uint32_t node, uint32_t *low) {
    uint32_t at = w->child[node];
    while (at == PTOWSP_NO_NODE) {
        at = w->sibling[node];
        node = w->given->parents[node];
        const uint32_t shared = node == PTOWSP_NO_NODE ? 0 : w->tokens[node];
        *low = shared < *low ? shared : *low;
        if (node == PTOWSP_NO_NODE) {
            break;
        }
    }
    return at;
}

// Fills in order and `common`. False, with a node in *out_node, if there is a cycle.
static bool pwsp_given_order(const pwsp_given_walk *w, ptowsp_prefix_tree *tree, uint32_t root,
                             uint32_t *out_node) {
    const ptowsp_prefix_given *given = w->given;
    uint32_t position = 0, low = 0, reached = 0;
    for (uint32_t node = root; node != PTOWSP_NO_NODE;) {
        const uint32_t parent = given->parents[node];
        const uint64_t above = parent == PTOWSP_NO_NODE ? 0 : w->tokens[parent];
        w->tokens[node] = (uint32_t)pwsp_min_u64(above + given->node_tokens[node], UINT32_MAX - 1);
        reached++;
        for (uint32_t r = w->request[node]; r != PTOWSP_NO_NODE; r = w->next[r]) {
            tree->order[position] = r;
            tree->common[position++] = low;
            low = w->tokens[node];
        }
        node = pwsp_given_step(w, node, &low);
    }
    for (uint32_t r = 0; r < given->attention.sequence_count; r++) {
        if (given->request_nodes[r] == PTOWSP_NO_NODE) {
            tree->order[position] = r;
            tree->common[position++] = 0;
        }
    }
    // Those that were not reached have a parent, so walking up ends in a cycle.
    *out_node = PTOWSP_NO_NODE;
    for (uint32_t i = 0; i < given->node_count && reached < given->node_count; i++) {
        if (w->tokens[i] == UINT32_MAX && *out_node == PTOWSP_NO_NODE) {
            *out_node = i;
        }
    }
    for (uint32_t i = 0; i < given->node_count && *out_node != PTOWSP_NO_NODE; i++) {
        *out_node = given->parents[*out_node];  // into the cycle
    }
    return reached == given->node_count;
}

// What two nodes share, by walking up from both; nodes above have fewer tokens, or as many.
static uint32_t pwsp_given_shared(const pwsp_given_walk *w, uint32_t a, uint32_t b, uint32_t mark) {
    uint32_t *marks = w->sibling;  // not needed any more
    for (; a != PTOWSP_NO_NODE; a = w->given->parents[a]) {
        marks[a] = mark;
    }
    while (b != PTOWSP_NO_NODE && marks[b] != mark) {
        b = w->given->parents[b];
    }
    return b == PTOWSP_NO_NODE ? 0 : w->tokens[b];
}

// Keeps requests as they came.
static void pwsp_given_keep(const pwsp_given_walk *w, ptowsp_prefix_tree *tree) {
    for (uint32_t i = 0; i < w->given->node_count; i++) {
        w->sibling[i] = 0;
    }
    for (uint32_t r = 0; r < w->given->attention.sequence_count; r++) {
        const uint32_t *nodes = w->given->request_nodes;
        tree->order[r] = r;
        tree->common[r] = r > 0 ? pwsp_given_shared(w, nodes[r - 1], nodes[r], r) : 0;
    }
}

ptowsp_status ptowsp_prefix_build_given(const ptowsp_prefix_given *given, ptowsp_prefix_tree *tree,
                                        ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    ptowsp_status status = pwsp_tree_check(tree, info);
    if (status == PTOWSP_OK) {
        tree->request_count = tree->node_count = 0;
        status = pwsp_given_check(given, tree, info);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    const uint32_t nodes = given->node_count, requests = given->attention.sequence_count;
    const pwsp_prefix_scratch s =
        pwsp_prefix_scratch_of(tree->request_capacity, tree->block_capacity, tree->scratch);
    PTOWSP_ASSERT(s.table_size >= 4 * (uint64_t)nodes);
    const size_t n = nodes;
    pwsp_given_walk w = {given, s.table, s.table + n, s.table + 2 * n, s.table + 3 * n, s.order};
    for (uint32_t i = 0; i < nodes; i++) {
        w.child[i] = w.request[i] = PTOWSP_NO_NODE;
        w.tokens[i] = UINT32_MAX;
    }
    uint32_t root = PTOWSP_NO_NODE;
    for (uint32_t i = nodes; i-- > 0;) {
        uint32_t *list = given->parents[i] == PTOWSP_NO_NODE ? &root : &w.child[given->parents[i]];
        w.sibling[i] = *list;
        *list = i;
    }
    for (uint32_t r = requests; r-- > 0;) {
        if (given->request_nodes[r] != PTOWSP_NO_NODE) {
            w.next[r] = w.request[given->request_nodes[r]];
            w.request[given->request_nodes[r]] = r;
        }
    }
    uint32_t node;
    if (!pwsp_given_order(&w, tree, root, &node)) {
        return pwsp_plan_fail(info, PTOWSP_FAULT_NODE_CYCLE, node, 0, 0);
    }
    for (uint32_t r = 0; r < requests; r++) {
        const int32_t kv = given->attention.kv_lengths[r];
        const int32_t queries =
            given->attention.query_lengths ? given->attention.query_lengths[r] : 1;
        if (kv < 0) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_LENGTH_NEGATIVE, r, kv, 0);
        }
        if (queries < 0) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_QUERY_NEGATIVE, r, queries, 0);
        }
        node = given->request_nodes[r];
        if (node != PTOWSP_NO_NODE && w.tokens[node] > pwsp_prefix_limit(kv, queries)) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_NODE_TOKENS, r, w.tokens[node],
                                  pwsp_prefix_limit(kv, queries));
        }
    }
    if (tree->is_ordered) {
        pwsp_given_keep(&w, tree);
    }
    tree->request_count = requests;
    pwsp_tree_complete(tree);
    return PTOWSP_OK;
}
