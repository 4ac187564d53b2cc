// Prefix trees: requests in order, what neighbours share, and the nodes that follow from it.
//
// Requests are sorted as strings of ids. Merge sort keeps, for the head of each run, how far it
// equals what was written last (Ng and Kakehi 2008), and the id that follows: heads that differ in
// either are decided, and others are compared from there on. So shared ids are passed once per merge
// and never twice, and what neighbours share, `common`, is a result of sorting:
//
//      position   ids        common    nodes
//      0          4 3        0
//      1          7 3 1      0         [7 3] first 1, count 3
//      2          7 3 8 2    2            [8] first 2, count 2
//      3          7 3 8 6    3
//      4          9 5        0
//
// A node is a run of positions whose neighbours share more than the run's own neighbours do. One walk
// over `common` with a stack finds all of them, children before parents. There are fewer than
// requests, so open nodes stay at the end of the array of nodes while complete ones fill its
// beginning.
//
// Adding and removing keep order and `common`: what neighbours of a removed request share is the
// least of what both shared with it.

#include "prefix.h"

#define PWSP_TABLE_SMALL 1024  // elements

// -- memory ---------------------------------------------------------------------------------------

// Takes `count` elements of `size` from scratch; NULL counts only.
static void *pwsp_scratch_take(char *base, uint64_t *used, uint64_t count, uint64_t size) {
    void *at = base ? base + *used : NULL;
    *used = pwsp_sum_u64(*used, pwsp_mul_u64(count, size));
    *used = pwsp_sum_u64(*used, 7) & ~UINT64_C(7);
    return at;
}

PWSP_INTERNAL pwsp_prefix_scratch pwsp_prefix_scratch_of(uint32_t requests, uint64_t blocks,
                                                         void *scratch) {
    pwsp_prefix_scratch s;
    memset(&s, 0, sizeof s);
    char *base = (char *)scratch;
    uint64_t *used = &s.bytes;
    const uint64_t n = requests;
    s.table_size = PWSP_TABLE_SMALL + PWSP_TABLE_SMALL / 2;
    while (s.table_size < pwsp_mul_u64(blocks, 4)) {
        s.table_size = pwsp_mul_u64(s.table_size, 2);
    }
    s.costs = (pwsp_prefix_cost *)pwsp_scratch_take(base, used, n, sizeof *s.costs);
    PTOWSP_STATIC_ASSERT(2 * sizeof *s.items <= sizeof *s.costs, "items fit into costs");
    s.items = (pwsp_prefix_item *)(void *)s.costs;
    s.keys = (pwsp_prefix_key *)pwsp_scratch_take(base, used, n, sizeof *s.keys);
    s.segments = (ptowsp_prefix_segment *)pwsp_scratch_take(base, used, 2 * n, sizeof *s.segments);
    s.table = (uint32_t *)pwsp_scratch_take(base, used, s.table_size, sizeof *s.table);
    s.kv_lengths = (int32_t *)pwsp_scratch_take(base, used, n, sizeof *s.kv_lengths);
    s.query_lengths = (int32_t *)pwsp_scratch_take(base, used, n, sizeof *s.query_lengths);
    s.token_begin = (uint32_t *)pwsp_scratch_take(base, used, n + 1, sizeof *s.token_begin);
    s.order = (uint32_t *)pwsp_scratch_take(base, used, n, sizeof *s.order);
    s.node_first = (uint32_t *)pwsp_scratch_take(base, used, n, sizeof *s.node_first);
    s.node_next = (uint32_t *)pwsp_scratch_take(base, used, n, sizeof *s.node_next);
    return s;
}

// The bytes of nodes, order, common and owners.
static uint64_t pwsp_tree_arrays_bytes(uint64_t requests) {
    const uint64_t bytes = sizeof(ptowsp_prefix_node) + 3 * sizeof(uint32_t);
    return (requests * bytes + 7) & ~UINT64_C(7);
}

uint64_t ptowsp_prefix_tree_bytes(const ptowsp_prefix_limits *limits) {
    if (!limits) {
        return 0;
    }
    const pwsp_prefix_scratch s =
        pwsp_prefix_scratch_of(limits->request_count_max, limits->block_count_max, NULL);
    const uint64_t bytes = pwsp_sum_u64(s.bytes, pwsp_tree_arrays_bytes(limits->request_count_max));
    return bytes <= INT64_MAX ? bytes + 8 : UINT64_MAX;  // never 0
}

ptowsp_status ptowsp_prefix_tree_place(const ptowsp_prefix_limits *limits, void *block,
                                       uint64_t block_bytes, ptowsp_prefix_tree *out_tree) {
    if (!limits || !block || !out_tree || ((uintptr_t)block & 7) != 0) {
        return PTOWSP_INVALID_PARAMS;
    }
    const uint64_t bytes = ptowsp_prefix_tree_bytes(limits);
    if (block_bytes < bytes || bytes > SIZE_MAX) {
        return PTOWSP_BUFFER_OVERFLOW;
    }
    memset(out_tree, 0, sizeof *out_tree);
    const uint32_t n = limits->request_count_max;
    out_tree->nodes = (ptowsp_prefix_node *)block;
    out_tree->order = (uint32_t *)(void *)(out_tree->nodes + n);
    out_tree->common = out_tree->order + n;
    out_tree->owners = out_tree->common + n;
    out_tree->scratch = (char *)block + pwsp_tree_arrays_bytes(n);
    out_tree->request_capacity = n;
    out_tree->block_capacity = limits->block_count_max;
    return PTOWSP_OK;
}

PWSP_INTERNAL ptowsp_status pwsp_tree_check(const ptowsp_prefix_tree *tree,
                                            ptowsp_plan_info *info) {
    if (!tree) {
        return PWSP_PLAN_FAIL(info, TREE_NULL, 0, 0);
    }
    const bool are_null[5] = {!tree->order, !tree->common, !tree->owners, !tree->nodes,
                              !tree->scratch};
    for (uint32_t i = 0; i < 5; i++) {
        if (are_null[i]) {
            return PWSP_PLAN_FAIL(info, TREE_NULL, i + 1, 0);
        }
    }
    return PTOWSP_OK;
}

// -- nodes ----------------------------------------------------------------------------------------

// Sets parents: the next node in the array that has all positions of a node.
static void pwsp_tree_connect(ptowsp_prefix_tree *tree) {
    for (uint32_t i = tree->node_count; i-- > 0;) {
        const ptowsp_prefix_node *node = &tree->nodes[i];
        uint32_t parent = i + 1 < tree->node_count ? i + 1 : PTOWSP_NO_NODE;
        while (parent != PTOWSP_NO_NODE && tree->nodes[parent].first > node->first) {
            parent = tree->nodes[parent].parent;
        }
        PTOWSP_ASSERT(parent == PTOWSP_NO_NODE ||
                      tree->nodes[parent].first + tree->nodes[parent].count >=
                          node->first + node->count);
        tree->nodes[i].parent = parent;
    }
}

// Sets the deepest node of each position. Nodes come children first, so what a node finds set is all
// of a child's: next[first] leads behind it.
static void pwsp_tree_own(ptowsp_prefix_tree *tree, uint32_t *next) {
    for (uint32_t p = 0; p < tree->request_count; p++) {
        tree->owners[p] = PTOWSP_NO_NODE;
    }
    for (uint32_t i = 0; i < tree->node_count; i++) {
        const ptowsp_prefix_node *node = &tree->nodes[i];
        const uint32_t end = node->first + node->count;
        for (uint32_t p = node->first; p < end;) {
            if (tree->owners[p] == PTOWSP_NO_NODE) {
                tree->owners[p++] = i;
            } else {
                p = next[p];
            }
        }
        // A position that this node owns may be stepped over one by one no more.
        next[node->first] = end;
    }
}

PWSP_INTERNAL void pwsp_tree_complete(ptowsp_prefix_tree *tree) {
    const uint32_t count = tree->request_count;
    ptowsp_prefix_node *nodes = tree->nodes, *open = nodes + tree->request_capacity;
    const ptowsp_prefix_node *end = open;
    uint32_t complete = 0;
    for (uint32_t p = 1; p <= count; p++) {
        const uint32_t common = p < count ? tree->common[p] : 0;
        uint32_t first = p - 1;
        while (open < end && open->kv_end > common) {
            ptowsp_prefix_node node = *open++;
            first = node.first;
            node.count = p - first;
            node.kv_begin = open < end && open->kv_end > common ? open->kv_end : common;
            PTOWSP_ASSERT(nodes + complete < open && node.kv_begin < node.kv_end);
            nodes[complete++] = node;
        }
        if (common > 0 && (open == end || open->kv_end < common)) {
            open--;
            memset(open, 0, sizeof *open);
            open->first = first;
            open->kv_end = common;
        }
    }
    tree->node_count = complete;
    pwsp_tree_connect(tree);
    const pwsp_prefix_scratch s =
        pwsp_prefix_scratch_of(tree->request_capacity, tree->block_capacity, tree->scratch);
    pwsp_tree_own(tree, s.node_next);
}

// -- ids ------------------------------------------------------------------------------------------

// The ids of a path from the root, in a table by hash. Requests in the order of the tree begin with
// the path of the one before, so each node's ids are put in once. Nothing is taken out: a place is
// used if the block that it names is on the path and has this place. Ids leave last first, so no
// gap comes into a row of those that stay.
typedef struct pwsp_id_path {
    uint32_t *table;   // a block
    uint32_t *places;  // of each block of the path
    uint32_t bits;
} pwsp_id_path;

static pwsp_id_path pwsp_path_begin(const pwsp_prefix_scratch *s, uint64_t blocks) {
    pwsp_id_path path = {s->table, NULL, 3};
    while (path.bits < 31 && UINT64_C(1) << path.bits < 2 * blocks) {
        path.bits++;
    }
    // Small tables are larger than they need to be: ids that meet in one place cost a misprediction.
    while (UINT64_C(2) << path.bits <= PWSP_TABLE_SMALL && UINT64_C(1) << path.bits < 8 * blocks) {
        path.bits++;
    }
    const size_t size = (size_t)1 << path.bits;
    PTOWSP_ASSERT(size > blocks && (blocks == 0 || size + blocks <= s->table_size + 8));
    memset(path.table, 0, (size + (size_t)blocks) * sizeof *path.table);
    path.places = path.table + size;
    return path;
}

// Makes the ids the path, of which `shared` are there. False if one is twice: *out_first and
// *out_second are where.
static bool pwsp_path_set(const pwsp_id_path *path, const PTOWSP_GM uint64_t *ids, uint32_t count,
                          uint32_t shared, uint32_t *out_first, uint32_t *out_second) {
    const uint32_t mask = (UINT32_C(1) << path->bits) - 1, shift = 64 - path->bits;
    uint32_t *table = path->table, *places = path->places;
    for (uint32_t i = shared; i < count; i++) {
        uint64_t at = ids[i] * UINT64_C(0x9e3779b97f4a7c15) >> shift;
        // Blocks that have left are anything: one branch, which tells them and is foreseen.
        while (PWSP_UNLIKELY((table[at] < i) & (places[table[at]] == at))) {
            if (ids[table[at]] == ids[i]) {
                *out_first = table[at];
                *out_second = i;
                return false;
            }
            at = (at + 1) & mask;
        }
        table[at] = i;
        places[i] = (uint32_t)at;
    }
    return true;
}

// Checks the lengths of a request.
static ptowsp_status pwsp_request_lengths(const ptowsp_attention_batch *batch, uint32_t request,
                                          uint32_t *out_limit, ptowsp_plan_info *info) {
    const int32_t kv = batch->kv_lengths[request];
    const int32_t queries = batch->query_lengths ? batch->query_lengths[request] : 1;
    if (kv < 0) {
        return pwsp_plan_fail(info, PTOWSP_FAULT_LENGTH_NEGATIVE, request, kv, 0);
    }
    if (queries < 0) {
        return pwsp_plan_fail(info, PTOWSP_FAULT_QUERY_NEGATIVE, request, queries, 0);
    }
    *out_limit = pwsp_prefix_limit(kv, queries);
    return PTOWSP_OK;
}

// Checks a request, and makes its key.
static ptowsp_status pwsp_request_key(const ptowsp_prefix_batch *batch, uint32_t request,
                                      const ptowsp_prefix_tree *tree, pwsp_prefix_key *out_key,
                                      ptowsp_plan_info *info) {
    uint32_t limit = 0;
    ptowsp_status status = pwsp_request_lengths(&batch->attention, request, &limit, info);
    if (status != PTOWSP_OK) {
        return status;
    }
    const uint64_t begin = batch->block_begin[request], end = batch->block_begin[request + 1];
    if (end < begin) {
        return pwsp_plan_fail(info, PTOWSP_FAULT_BLOCKS_ORDER, request, pwsp_info_value(end), 0);
    }
    const uint32_t tokens = batch->block_tokens;
    const uint64_t filled =
        pwsp_ceil_div_u64((uint32_t)batch->attention.kv_lengths[request], tokens);
    if (end - begin > filled) {
        return pwsp_plan_fail(info, PTOWSP_FAULT_BLOCKS_MANY, request, pwsp_info_value(end - begin),
                              (int64_t)filled);
    }
    if (end - begin > tree->block_capacity) {
        return pwsp_plan_fail(info, PTOWSP_FAULT_BLOCKS_LARGE, request,
                              pwsp_info_value(end - begin), pwsp_info_value(tree->block_capacity));
    }
    const uint32_t count = (uint32_t)(end - begin);
    out_key->ids = count > 0 ? batch->block_ids + begin : NULL;
    out_key->limit = limit;
    out_key->count = (uint32_t)pwsp_min_u64(count, pwsp_ceil_div_u64(limit, tokens));
    return PTOWSP_OK;
}

// Checks that no id of a request repeats; `shared` are those of the path.
static ptowsp_status pwsp_request_unique(const ptowsp_prefix_batch *batch, uint32_t request,
                                         uint32_t shared, const pwsp_id_path *path,
                                         ptowsp_plan_info *info) {
    const uint64_t begin = batch->block_begin[request];
    const uint32_t count = (uint32_t)(batch->block_begin[request + 1] - begin);
    uint32_t first, second;
    if (count > 0 &&
        !pwsp_path_set(path, batch->block_ids + begin, count, shared, &first, &second)) {
        return pwsp_plan_fail(info, PTOWSP_FAULT_BLOCK_REPEATED, request, second, first);
    }
    return PTOWSP_OK;
}

// How many ids both have in common, of the first `count`; they are known to share `common`.
static uint32_t pwsp_ids_common(const PTOWSP_GM uint64_t *a, const PTOWSP_GM uint64_t *b,
                                uint32_t common, uint32_t count) {
    uint32_t i = common;
    while (i + 4 <= count && ((a[i] ^ b[i]) | (a[i + 1] ^ b[i + 1]) | (a[i + 2] ^ b[i + 2]) |
                              (a[i + 3] ^ b[i + 3])) == 0) {
        i += 4;
    }
    while (i < count && a[i] == b[i]) {
        i++;
    }
    return i;
}

// Whether a comes before b, or is equal to it. They are known to share `common` ids; *out_common is
// how many they do.
static bool pwsp_key_is_first(const pwsp_prefix_key *a, const pwsp_prefix_key *b, uint32_t common,
                              uint32_t *out_common) {
    const uint32_t least = a->count < b->count ? a->count : b->count;
    const uint32_t i = pwsp_ids_common(a->ids, b->ids, common, least);
    *out_common = i;
    if (i < least) {
        return a->ids[i] < b->ids[i];
    }
    return a->count != b->count ? a->count < b->count : a->limit <= b->limit;
}

// The tokens of so many shared ids.
static uint32_t pwsp_key_tokens(const pwsp_prefix_key *a, const pwsp_prefix_key *b, uint32_t common,
                                uint32_t block_tokens) {
    const uint64_t least = a->limit < b->limit ? a->limit : b->limit;
    return (uint32_t)pwsp_min_u64((uint64_t)common * block_tokens, least);
}

// The id of a key at `common`; 0 at its end, where a shorter key comes first.
static uint64_t pwsp_key_id(const pwsp_prefix_key *key, uint32_t common) {
    return common < key->count ? key->ids[common] : 0;
}

// How many ids all requests begin with, as those of one system prompt do.
static uint32_t pwsp_keys_common(const pwsp_prefix_key *keys, uint32_t count) {
    uint32_t common = count > 0 ? keys[0].count : 0;
    for (uint32_t i = 1; i < count && common > 0; i++) {
        const uint32_t least = keys[i].count < common ? keys[i].count : common;
        common = pwsp_ids_common(keys[0].ids, keys[i].ids, 0, least);
    }
    return common;
}

// Merges the runs [low, middle) and [middle, high) of `from`, whose heads share what all do with what
// was written before them, into `to`.
static void pwsp_runs_merge(const pwsp_prefix_key *keys, pwsp_prefix_item *from, uint32_t low,
                            uint32_t middle, uint32_t high, pwsp_prefix_item *to) {
    pwsp_prefix_item *a = from + low, *b = from + middle;
    const pwsp_prefix_item *a_end = b, *b_end = from + high;
    to += low;
    while (a < a_end && b < b_end) {
        // Which of them is first has no pattern, so there is no branch for it.
        uint32_t takes_a = (a->common > b->common) | ((a->common == b->common) & (a->id < b->id));
        if (((a->common ^ b->common) | (a->id ^ b->id)) == 0) {
            const pwsp_prefix_key *key_a = &keys[a->request], *key_b = &keys[b->request];
            uint32_t common;
            takes_a = pwsp_key_is_first(key_a, key_b, a->common, &common);
            pwsp_prefix_item *later = takes_a ? b : a;
            later->common = common;
            later->id = pwsp_key_id(takes_a ? key_b : key_a, common);
        }
        *to++ = *(takes_a ? a : b);
        a += takes_a;
        b += 1 - takes_a;
    }
    // One of them has a few left: fewer than are worth a call.
    while (a < a_end || b < b_end) {
        *to++ = *(a < a_end ? a++ : b++);
    }
}

// Sorts all requests. `common` counts ids.
static void pwsp_tree_sort(ptowsp_prefix_tree *tree, const pwsp_prefix_scratch *s) {
    const uint32_t count = tree->request_count;
    pwsp_prefix_item *items = s->items, *to = s->items + count;
    const uint32_t common = pwsp_keys_common(s->keys, count);
    for (uint32_t i = 0; i < count; i++) {
        items[i].id = pwsp_key_id(&s->keys[i], common);
        items[i].request = i;
        items[i].common = common;
    }
    for (uint64_t width = 1; width < count; width *= 2) {
        for (uint64_t low = 0; low < count; low += 2 * width) {
            const uint64_t middle = pwsp_min_u64(low + width, count);
            const uint64_t high = pwsp_min_u64(low + 2 * width, count);
            pwsp_runs_merge(s->keys, items, (uint32_t)low, (uint32_t)middle, (uint32_t)high, to);
        }
        pwsp_prefix_item *swap = items;
        items = to, to = swap;
    }
    for (uint32_t p = 0; p < count; p++) {
        tree->order[p] = items[p].request;
        tree->common[p] = items[p].common;
    }
}

static ptowsp_status pwsp_prefix_batch_check(const ptowsp_prefix_batch *batch,
                                             ptowsp_plan_info *info) {
    if (!batch) {
        return PWSP_PLAN_FAIL(info, BATCH_NULL, 0, 0);
    }
    const uint32_t count = batch->attention.sequence_count;
    if (!batch->attention.kv_lengths && count > 0) {
        return PWSP_PLAN_FAIL(info, LENGTHS_NULL, count, 0);
    }
    if (count > 0 && !batch->block_begin) {
        return PWSP_PLAN_FAIL(info, BLOCKS_NULL, 1, 0);
    }
    if (count > 0 && !batch->block_ids && batch->block_begin[count] > batch->block_begin[0]) {
        return PWSP_PLAN_FAIL(info, BLOCKS_NULL, 0, 0);
    }
    return batch->block_tokens == 0 ? PWSP_PLAN_FAIL(info, BLOCK_TOKENS, 0, 0) : PTOWSP_OK;
}

// Empties a tree for `count` requests in the order in which they come.
static ptowsp_status pwsp_tree_begin(ptowsp_prefix_tree *tree, uint32_t count,
                                     ptowsp_plan_info *info) {
    tree->request_count = tree->node_count = 0;
    if (count > tree->request_capacity) {
        return PWSP_PLAN_FAIL(info, TREE_FULL, count, tree->request_capacity);
    }
    for (uint32_t i = 0; i < count; i++) {
        tree->order[i] = i;
    }
    return PTOWSP_OK;
}

ptowsp_status ptowsp_prefix_build(const ptowsp_prefix_batch *batch, ptowsp_prefix_tree *tree,
                                  ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    ptowsp_status status = pwsp_tree_check(tree, info);
    if (status == PTOWSP_OK) {
        tree->request_count = tree->node_count = 0;
        status = pwsp_prefix_batch_check(batch, info);
    }
    if (status == PTOWSP_OK) {
        status = pwsp_tree_begin(tree, batch->attention.sequence_count, info);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    const uint32_t count = batch->attention.sequence_count;
    const pwsp_prefix_scratch s =
        pwsp_prefix_scratch_of(tree->request_capacity, tree->block_capacity, tree->scratch);
    uint64_t block_max = 0;
    for (uint32_t i = 0; i < count && status == PTOWSP_OK; i++) {
        status = pwsp_request_key(batch, i, tree, &s.keys[i], info);
        const uint64_t blocks = batch->block_begin[i + 1] - batch->block_begin[i];
        block_max = status == PTOWSP_OK ? pwsp_max_u64(block_max, blocks) : block_max;
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    tree->request_count = count;
    if (!tree->is_ordered) {
        pwsp_tree_sort(tree, &s);
    }
    const pwsp_id_path path = pwsp_path_begin(&s, block_max);
    for (uint32_t p = 0; p < count; p++) {
        const pwsp_prefix_key *key = &s.keys[tree->order[p]];
        const pwsp_prefix_key *before = p > 0 ? &s.keys[tree->order[p - 1]] : NULL;
        uint32_t shared = before && !tree->is_ordered ? tree->common[p] : 0;
        if (before && tree->is_ordered) {
            pwsp_key_is_first(before, key, 0, &shared);
        }
        status = pwsp_request_unique(batch, tree->order[p], shared, &path, info);
        if (status != PTOWSP_OK) {
            tree->request_count = 0;
            return status;
        }
        tree->common[p] = before ? pwsp_key_tokens(before, key, shared, batch->block_tokens) : 0;
    }
    pwsp_tree_complete(tree);
    return PTOWSP_OK;
}

// -- one request ----------------------------------------------------------------------------------

// The position of a request; request_count if it has none.
static uint32_t pwsp_tree_find(const ptowsp_prefix_tree *tree, uint32_t request) {
    uint32_t p = 0;
    while (p < tree->request_count && tree->order[p] != request) {
        p++;
    }
    return p;
}

// The key of a request of the tree, which was checked when it came.
static pwsp_prefix_key pwsp_tree_key(const ptowsp_prefix_batch *batch, uint32_t request) {
    const ptowsp_attention_batch *lengths = &batch->attention;
    const uint64_t begin = batch->block_begin[request];
    const uint32_t limit = pwsp_prefix_limit(
        lengths->kv_lengths[request], lengths->query_lengths ? lengths->query_lengths[request] : 1);
    pwsp_prefix_key key = {batch->block_ids ? batch->block_ids + begin : NULL, 0, limit};
    key.count = (uint32_t)pwsp_min_u64(batch->block_begin[request + 1] - begin,
                                       pwsp_ceil_div_u64(limit, batch->block_tokens));
    return key;
}

ptowsp_status ptowsp_prefix_add(const ptowsp_prefix_batch *batch, uint32_t request,
                                ptowsp_prefix_tree *tree, ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    ptowsp_status status = pwsp_tree_check(tree, info);
    if (status == PTOWSP_OK) {
        status = pwsp_prefix_batch_check(batch, info);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    const uint32_t count = tree->request_count;
    for (uint32_t p = 0; p <= count; p++) {
        const uint32_t other = p < count ? tree->order[p] : request;
        if (other >= batch->attention.sequence_count) {
            return PWSP_PLAN_FAIL(info, REQUEST_RANGE, other, batch->attention.sequence_count);
        }
    }
    if (pwsp_tree_find(tree, request) < count) {
        return PWSP_PLAN_FAIL(info, REQUEST_PRESENT, request, 0);
    }
    if (count == tree->request_capacity) {
        return PWSP_PLAN_FAIL(info, TREE_FULL, count + INT64_C(1), tree->request_capacity);
    }
    const pwsp_prefix_scratch s =
        pwsp_prefix_scratch_of(tree->request_capacity, tree->block_capacity, tree->scratch);
    pwsp_prefix_key key;
    status = pwsp_request_key(batch, request, tree, &key, info);
    if (status == PTOWSP_OK) {
        const uint64_t blocks = batch->block_begin[request + 1] - batch->block_begin[request];
        const pwsp_id_path path = pwsp_path_begin(&s, blocks);
        status = pwsp_request_unique(batch, request, 0, &path, info);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    uint32_t low = tree->is_ordered ? count : 0, high = count, shared;
    while (low < high) {  // before low all come first
        const uint32_t middle = low + (high - low) / 2;
        const pwsp_prefix_key other = pwsp_tree_key(batch, tree->order[middle]);
        if (pwsp_key_is_first(&other, &key, 0, &shared)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    memmove(tree->order + low + 1, tree->order + low, (count - low) * sizeof *tree->order);
    memmove(tree->common + low + 1, tree->common + low, (count - low) * sizeof *tree->common);
    tree->order[low] = request;
    tree->common[low] = 0;
    tree->request_count++;
    for (uint32_t p = low > 0 ? low : 1; p <= low + 1 && p <= count; p++) {
        const pwsp_prefix_key a = pwsp_tree_key(batch, tree->order[p - 1]);
        const pwsp_prefix_key b = pwsp_tree_key(batch, tree->order[p]);
        pwsp_key_is_first(&a, &b, 0, &shared);
        tree->common[p] = pwsp_key_tokens(&a, &b, shared, batch->block_tokens);
    }
    pwsp_tree_complete(tree);
    return PTOWSP_OK;
}

ptowsp_status ptowsp_prefix_remove(uint32_t request, ptowsp_prefix_tree *tree,
                                   ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    ptowsp_status status = pwsp_tree_check(tree, info);
    if (status != PTOWSP_OK) {
        return status;
    }
    const uint32_t p = pwsp_tree_find(tree, request);
    if (p == tree->request_count) {
        return PWSP_PLAN_FAIL(info, REQUEST_ABSENT, request, 0);
    }
    const uint32_t left = --tree->request_count - p;
    if (left > 0 && tree->common[p] < tree->common[p + 1]) {
        tree->common[p + 1] = tree->common[p];
    }
    memmove(tree->order + p, tree->order + p + 1, left * sizeof *tree->order);
    memmove(tree->common + p, tree->common + p + 1, left * sizeof *tree->common);
    pwsp_tree_complete(tree);
    return PTOWSP_OK;
}
