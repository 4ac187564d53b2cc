// The steps of a member, algorithm by algorithm. All members count rounds alike, so that a message
// has one round on both ends; a member without part in a round has no step in it.
//
// Rings move *sets* of parts: item i of a set is the parts offset + i * item + j * piece for all j.
// A ring over all members has sets of one part. A hierarchical reduction is a ring within the node
// over the places, each with the parts of that place in all nodes, and then one between the nodes:
//
//      parts of 2 nodes of 3       node 0: 0 1 2    node 1: 3 4 5
//      ring within nodes           place 0 sums {0, 3}, place 1 {1, 4}, place 2 {2, 5}
//      ring between nodes          at place 0: node 0 sums {0}, node 1 {3}
//
// `work` is where partial sums are: the output, or scratch if the output is one part. Elements
// received for adding go to scratch after it.

#include "ranks.h"

typedef struct pwsp_rounds {
    const ptowsp_collective *collective;
    uint32_t p, me;
    uint64_t count;
    ptowsp_collective_space work;
    uint64_t inbox;  // where received summands begin in scratch
    pwsp_step_fn fn;
    void *user;
    ptowsp_collective_size size;
} pwsp_rounds;

// Members that form a ring or a tree: base, base + stride, ...; this one is `index`.
typedef struct pwsp_rounds_group {
    uint32_t base, stride, size, index;
} pwsp_rounds_group;

typedef struct pwsp_rounds_set {
    uint32_t offset, item, piece, pieces;
} pwsp_rounds_set;

static uint64_t pwsp_rounds_at(const pwsp_rounds *r, uint64_t part) {
    return pwsp_part_at(r->count, r->p, part);
}

static uint64_t pwsp_rounds_len(const pwsp_rounds *r, uint64_t part) {
    return pwsp_rounds_at(r, part + 1) - pwsp_rounds_at(r, part);
}

static void pwsp_rounds_next(pwsp_rounds *r) {
    r->size.round_count++;
}

static void pwsp_rounds_emit(pwsp_rounds *r, ptowsp_collective_step_kind kind, uint32_t member,
                             ptowsp_collective_space from, uint64_t from_at,
                             ptowsp_collective_space to, uint64_t to_at, uint64_t count) {
    const bool is_message = kind == PTOWSP_MOVE_SEND || kind == PTOWSP_MOVE_RECEIVE;
    PTOWSP_ASSERT(r->size.round_count > 0 && member < r->p && (!is_message || member != r->me));
    if (count == 0 && !(is_message && r->collective->counts)) {
        return;
    }
    PWSP_ZERO(ptowsp_collective_step, step);
    step.kind = kind;
    step.round = r->size.round_count - 1;
    step.peer = is_message ? pwsp_collective_rank(r->collective, member) : 0;
    step.from = from;
    step.to = to;
    step.from_at = from_at;
    step.to_at = to_at;
    step.count = count;
    if (to == PTOWSP_SPACE_SCRATCH) {
        r->size.scratch_count = pwsp_max_u64(r->size.scratch_count, to_at + count);
    }
    r->size.send_count += kind == PTOWSP_MOVE_SEND ? count : 0;
    r->size.step_count++;
    if (r->fn) {
        r->fn(r->user, &step);
    }
}

static void pwsp_rounds_send(pwsp_rounds *r, uint32_t member, ptowsp_collective_space from,
                             uint64_t at, uint64_t count) {
    pwsp_rounds_emit(r, PTOWSP_MOVE_SEND, member, from, at, PTOWSP_SPACE_IN, 0, count);
}

static void pwsp_rounds_receive(pwsp_rounds *r, uint32_t member, ptowsp_collective_space to,
                                uint64_t at, uint64_t count) {
    pwsp_rounds_emit(r, PTOWSP_MOVE_RECEIVE, member, PTOWSP_SPACE_IN, 0, to, at, count);
}

static void pwsp_rounds_copy(pwsp_rounds *r, ptowsp_collective_space from, uint64_t from_at,
                             ptowsp_collective_space to, uint64_t to_at, uint64_t count) {
    pwsp_rounds_emit(r, PTOWSP_MOVE_COPY, 0, from, from_at, to, to_at, count);
}

// Adds the inbox to the elements of work at `at`, as left or right operand.
static void pwsp_rounds_add(pwsp_rounds *r, bool is_left, uint64_t inbox_at, uint64_t at,
                            uint64_t count) {
    pwsp_rounds_emit(r, is_left ? PTOWSP_MOVE_REDUCE : PTOWSP_MOVE_ADD, 0, PTOWSP_SPACE_SCRATCH,
                     r->inbox + inbox_at, r->work, at, count);
}

// -- rings ----------------------------------------------------------------------------------------

static uint32_t pwsp_rounds_member(const pwsp_rounds_group *group, uint32_t index) {
    return group->base + index % group->size * group->stride;
}

static uint64_t pwsp_rounds_part(const pwsp_rounds_set *set, uint32_t item, uint32_t j) {
    return (uint64_t)set->offset + (uint64_t)item * set->item + (uint64_t)j * set->piece;
}

// Item i of the set is summed at member i of the group: from i + 1 on, around the ring.
static void pwsp_rounds_ring_reduce(pwsp_rounds *r, const pwsp_rounds_group *group,
                                    const pwsp_rounds_set *set) {
    const uint32_t g = group->size, me = group->index;
    for (uint32_t k = 0; k + 1 < g; k++) {
        const uint32_t sent = (me + 2 * g - 1 - k) % g, got = (me + 2 * g - 2 - k) % g;
        pwsp_rounds_next(r);
        uint64_t inbox = 0;
        for (uint32_t j = 0; j < set->pieces; j++) {
            const uint64_t part = pwsp_rounds_part(set, sent, j);
            pwsp_rounds_send(r, pwsp_rounds_member(group, me + 1), r->work, pwsp_rounds_at(r, part),
                             pwsp_rounds_len(r, part));
        }
        for (uint32_t j = 0; j < set->pieces; j++) {
            const uint64_t length = pwsp_rounds_len(r, pwsp_rounds_part(set, got, j));
            pwsp_rounds_receive(r, pwsp_rounds_member(group, me + g - 1), PTOWSP_SPACE_SCRATCH,
                                r->inbox + inbox, length);
            inbox += length;
        }
        inbox = 0;
        for (uint32_t j = 0; j < set->pieces; j++) {
            const uint64_t part = pwsp_rounds_part(set, got, j);
            pwsp_rounds_add(r, true, inbox, pwsp_rounds_at(r, part), pwsp_rounds_len(r, part));
            inbox += pwsp_rounds_len(r, part);
        }
    }
}

// Member i has item i of the set in the output; all get all.
static void pwsp_rounds_ring_gather(pwsp_rounds *r, const pwsp_rounds_group *group,
                                    const pwsp_rounds_set *set) {
    const uint32_t g = group->size, me = group->index;
    for (uint32_t k = 0; k + 1 < g; k++) {
        pwsp_rounds_next(r);
        for (uint32_t j = 0; j < set->pieces; j++) {
            const uint64_t part = pwsp_rounds_part(set, (me + g - k) % g, j);
            pwsp_rounds_send(r, pwsp_rounds_member(group, me + 1), PTOWSP_SPACE_OUT,
                             pwsp_rounds_at(r, part), pwsp_rounds_len(r, part));
        }
        for (uint32_t j = 0; j < set->pieces; j++) {
            const uint64_t part = pwsp_rounds_part(set, (me + 2 * g - 1 - k) % g, j);
            pwsp_rounds_receive(r, pwsp_rounds_member(group, me + g - 1), PTOWSP_SPACE_OUT,
                                pwsp_rounds_at(r, part), pwsp_rounds_len(r, part));
        }
    }
}

static pwsp_rounds_group pwsp_rounds_group_of(uint32_t base, uint32_t stride, uint32_t size,
                                              uint32_t index) {
    pwsp_rounds_group group = {base, stride, size, index};
    return group;
}

// The `inner` members of a node; or the members at one position in all nodes. A plain ring has one
// node.
static pwsp_rounds_group pwsp_rounds_inside(const pwsp_rounds *r, uint32_t inner) {
    return pwsp_rounds_group_of(r->me / inner * inner, 1, inner, r->me % inner);
}

static pwsp_rounds_group pwsp_rounds_between(const pwsp_rounds *r, uint32_t inner) {
    return pwsp_rounds_group_of(r->me % inner, inner, r->p / inner, r->me / inner);
}

static void pwsp_rounds_rings(pwsp_rounds *r, uint32_t inner, bool reduces, bool gathers) {
    const pwsp_rounds_group inside = pwsp_rounds_inside(r, inner);
    const pwsp_rounds_group between = pwsp_rounds_between(r, inner);
    const pwsp_rounds_set places = {0, 1, inner, r->p / inner};
    const pwsp_rounds_set nodes = {r->me % inner, inner, 0, 1};
    if (reduces) {
        pwsp_rounds_ring_reduce(r, &inside, &places);
        pwsp_rounds_ring_reduce(r, &between, &nodes);
    }
    if (gathers) {
        pwsp_rounds_ring_gather(r, &between, &nodes);
        pwsp_rounds_ring_gather(r, &inside, &places);
    }
}

// -- doubling -------------------------------------------------------------------------------------

// The first 2 * extra members in pairs, so that a power of two is left.
typedef struct pwsp_rounds_pairs {
    uint32_t q, extra;
    uint32_t number;  // of this member or of its pair
    bool is_out;      // this member has given its summand away
} pwsp_rounds_pairs;

static uint32_t pwsp_rounds_numbered(const pwsp_rounds_pairs *pairs, uint32_t number) {
    return number < pairs->extra ? 2 * number : number + pairs->extra;
}

static pwsp_rounds_pairs pwsp_rounds_pair(pwsp_rounds *r) {
    pwsp_rounds_pairs pairs = {1, 0, 0, false};
    while (pairs.q <= r->p / 2) {
        pairs.q *= 2;
    }
    pairs.extra = r->p - pairs.q;
    const bool is_paired = r->me < 2 * pairs.extra;
    pairs.number = is_paired ? r->me / 2 : r->me - pairs.extra;
    pairs.is_out = is_paired && r->me % 2 == 1;
    if (pairs.extra > 0) {
        pwsp_rounds_next(r);
        if (pairs.is_out) {
            pwsp_rounds_send(r, r->me - 1, r->work, 0, r->count);
        } else if (is_paired) {
            pwsp_rounds_receive(r, r->me + 1, PTOWSP_SPACE_SCRATCH, r->inbox, r->count);
            pwsp_rounds_add(r, false, 0, 0, r->count);
        }
    }
    return pairs;
}

static void pwsp_rounds_doubling_all_reduce(pwsp_rounds *r) {
    const pwsp_rounds_pairs pairs = pwsp_rounds_pair(r);
    for (uint32_t distance = 1; distance < pairs.q; distance *= 2) {
        pwsp_rounds_next(r);
        if (!pairs.is_out) {
            const uint32_t other = pairs.number ^ distance;
            const uint32_t member = pwsp_rounds_numbered(&pairs, other);
            pwsp_rounds_send(r, member, r->work, 0, r->count);
            pwsp_rounds_receive(r, member, PTOWSP_SPACE_SCRATCH, r->inbox, r->count);
            pwsp_rounds_add(r, other < pairs.number, 0, 0, r->count);
        }
    }
    if (pairs.extra > 0) {
        pwsp_rounds_next(r);
        if (pairs.is_out) {
            pwsp_rounds_receive(r, r->me - 1, PTOWSP_SPACE_OUT, 0, r->count);
        } else if (r->me < 2 * pairs.extra) {
            pwsp_rounds_send(r, r->me + 1, PTOWSP_SPACE_OUT, 0, r->count);
        }
    }
}

// Halves the range to sum and the members that sum it. Parts of a range of numbers are contiguous.
static void pwsp_rounds_halving_reduce_scatter(pwsp_rounds *r) {
    const pwsp_rounds_pairs pairs = pwsp_rounds_pair(r);
    uint32_t low = 0;
    for (uint32_t half = pairs.q / 2; half > 0; half /= 2) {
        pwsp_rounds_next(r);
        if (pairs.is_out) {
            continue;
        }
        const bool is_low = pairs.number < low + half;
        const uint32_t other = is_low ? pairs.number + half : pairs.number - half;
        const uint32_t member = pwsp_rounds_numbered(&pairs, other);
        const uint32_t kept = is_low ? low : low + half, given = is_low ? low + half : low;
        uint64_t at[2][2];  // kept, given: begin, end
        const uint32_t begins[2] = {kept, given};
        for (int i = 0; i < 2; i++) {
            at[i][0] = pwsp_rounds_at(r, pwsp_rounds_numbered(&pairs, begins[i]));
            at[i][1] = pwsp_rounds_at(r, pwsp_rounds_numbered(&pairs, begins[i] + half));
        }
        pwsp_rounds_send(r, member, r->work, at[1][0], at[1][1] - at[1][0]);
        pwsp_rounds_receive(r, member, PTOWSP_SPACE_SCRATCH, r->inbox, at[0][1] - at[0][0]);
        pwsp_rounds_add(r, !is_low, 0, at[0][0], at[0][1] - at[0][0]);
        low = kept;
    }
    if (pairs.extra > 0) {
        pwsp_rounds_next(r);
        if (pairs.is_out) {
            pwsp_rounds_receive(r, r->me - 1, PTOWSP_SPACE_OUT, 0, pwsp_rounds_len(r, r->me));
        } else if (r->me < 2 * pairs.extra) {
            pwsp_rounds_send(r, r->me + 1, r->work, pwsp_rounds_at(r, r->me + 1),
                             pwsp_rounds_len(r, r->me + 1));
        }
    }
}

// A message of `parts` parts from `part` on, around the end of the output.
static void pwsp_rounds_wrapped(pwsp_rounds *r, bool is_send, uint32_t member, uint32_t part,
                                uint32_t parts) {
    for (uint32_t done = 0; done < parts;) {
        const uint32_t begin = (part + done) % r->p;
        const uint32_t length = (uint32_t)pwsp_min_u64(parts - done, r->p - begin);
        const uint64_t at = pwsp_rounds_at(r, begin);
        const uint64_t count = pwsp_rounds_at(r, (uint64_t)begin + length) - at;
        if (is_send) {
            pwsp_rounds_send(r, member, PTOWSP_SPACE_OUT, at, count);
        } else {
            pwsp_rounds_receive(r, member, PTOWSP_SPACE_OUT, at, count);
        }
        done += length;
    }
}

// Bruck and others, "Efficient Algorithms for All-to-All Communications" (1997), without its
// rotation: before distance d, member i has the parts i to i + d - 1.
static void pwsp_rounds_bruck_gather(pwsp_rounds *r) {
    for (uint32_t d = 1; d < r->p; d *= 2) {
        const uint32_t parts = (uint32_t)pwsp_min_u64(d, r->p - d);
        pwsp_rounds_next(r);
        pwsp_rounds_wrapped(r, true, (r->me + r->p - d) % r->p, r->me, parts);
        pwsp_rounds_wrapped(r, false, (r->me + d) % r->p, (r->me + d) % r->p, parts);
    }
}

// A binomial tree: those that have it double.
static void pwsp_rounds_tree(pwsp_rounds *r, const pwsp_rounds_group *group, uint32_t root,
                             bool is_in) {
    const uint32_t g = group->size, behind = (group->index + g - root) % g;
    for (uint32_t d = 1; d < g; d *= 2) {
        pwsp_rounds_next(r);
        if (is_in && behind < d && behind + d < g) {
            pwsp_rounds_send(r, pwsp_rounds_member(group, group->index + d), PTOWSP_SPACE_OUT, 0,
                             r->count);
        } else if (is_in && behind >= d && behind < 2 * d) {
            pwsp_rounds_receive(r, pwsp_rounds_member(group, group->index + g - d),
                                PTOWSP_SPACE_OUT, 0, r->count);
        }
    }
}

// -- direct ---------------------------------------------------------------------------------------

// The own part of all summands into `to`, in the order of ranks, through a slot for each.
static void pwsp_rounds_direct_reduce(pwsp_rounds *r, uint64_t to_at) {
    const uint64_t length = pwsp_rounds_len(r, r->me);
    pwsp_rounds_next(r);
    for (uint32_t i = 1; i < r->p; i++) {
        const uint32_t d = (r->me + i) % r->p;
        pwsp_rounds_send(r, d, PTOWSP_SPACE_IN, pwsp_rounds_at(r, d), pwsp_rounds_len(r, d));
    }
    for (uint32_t s = 0; s < r->p; s++) {
        if (s != r->me) {
            pwsp_rounds_receive(r, s, PTOWSP_SPACE_SCRATCH, s * length, length);
        }
    }
    pwsp_rounds_copy(r, PTOWSP_SPACE_IN, pwsp_rounds_at(r, r->me), PTOWSP_SPACE_SCRATCH,
                     r->me * length, length);
    for (uint32_t s = 1; s < r->p; s++) {
        pwsp_rounds_emit(r, PTOWSP_MOVE_ADD, 0, PTOWSP_SPACE_SCRATCH, s * length,
                         PTOWSP_SPACE_SCRATCH, 0, length);
    }
    pwsp_rounds_copy(r, PTOWSP_SPACE_SCRATCH, 0, PTOWSP_SPACE_OUT, to_at, length);
}

static void pwsp_rounds_direct_gather(pwsp_rounds *r) {
    pwsp_rounds_next(r);
    for (uint32_t i = 1; i < r->p; i++) {
        pwsp_rounds_send(r, (r->me + i) % r->p, PTOWSP_SPACE_OUT, pwsp_rounds_at(r, r->me),
                         pwsp_rounds_len(r, r->me));
    }
    for (uint32_t i = 1; i < r->p; i++) {
        const uint32_t s = (r->me + r->p - i) % r->p;
        pwsp_rounds_receive(r, s, PTOWSP_SPACE_OUT, pwsp_rounds_at(r, s), pwsp_rounds_len(r, s));
    }
}

// From the root to each other member: all of it, or its part.
static void pwsp_rounds_direct_broadcast(pwsp_rounds *r, bool is_part) {
    const uint32_t root = r->collective->root;
    pwsp_rounds_next(r);
    for (uint32_t i = 1; r->me == root && i < r->p; i++) {
        const uint32_t d = (root + i) % r->p;
        pwsp_rounds_send(r, d, PTOWSP_SPACE_OUT, is_part ? pwsp_rounds_at(r, d) : 0,
                         is_part ? pwsp_rounds_len(r, d) : r->count);
    }
    if (r->me != root) {
        pwsp_rounds_receive(r, root, PTOWSP_SPACE_OUT, is_part ? pwsp_rounds_at(r, r->me) : 0,
                            is_part ? pwsp_rounds_len(r, r->me) : r->count);
    }
}

// -- the kinds ------------------------------------------------------------------------------------

// Elements from a member to another.
static uint64_t pwsp_rounds_block(const pwsp_rounds *r, uint32_t from, uint32_t to) {
    const uint64_t *counts = r->collective->counts;
    return counts ? counts[(size_t)from * r->p + to] : pwsp_rounds_len(r, to);
}

// To the following members, from the preceding ones: all at once, or one each round.
static void pwsp_rounds_all_to_all(pwsp_rounds *r, bool is_at_once) {
    uint64_t in_at = 0, out_at = 0;
    for (uint32_t i = 0; i < r->p; i++) {
        r->size.in_count += pwsp_rounds_block(r, r->me, i);
        r->size.out_count += pwsp_rounds_block(r, i, r->me);
        in_at += i < r->me ? pwsp_rounds_block(r, r->me, i) : 0;
        out_at += i < r->me ? pwsp_rounds_block(r, i, r->me) : 0;
    }
    const uint64_t own = pwsp_rounds_block(r, r->me, r->me);
    pwsp_rounds_next(r);
    pwsp_rounds_copy(r, PTOWSP_SPACE_IN, in_at, PTOWSP_SPACE_OUT, out_at, own);
    in_at += own;
    for (uint32_t i = 1; i < r->p; i++) {
        const uint32_t d = (r->me + i) % r->p, s = (r->me + r->p - i) % r->p;
        const uint64_t sent = pwsp_rounds_block(r, r->me, d), got = pwsp_rounds_block(r, s, r->me);
        in_at = d == 0 ? 0 : in_at;
        out_at = (s == r->p - 1 ? r->size.out_count : out_at) - got;
        if (!is_at_once && i > 1) {
            pwsp_rounds_next(r);
        }
        pwsp_rounds_send(r, d, PTOWSP_SPACE_IN, in_at, sent);
        pwsp_rounds_receive(r, s, PTOWSP_SPACE_OUT, out_at, got);
        in_at += sent;
    }
}

static void pwsp_rounds_reduce(pwsp_rounds *r, uint32_t inner) {
    const ptowsp_algorithm algorithm = r->collective->algorithm;
    const bool is_all = r->collective->kind == PTOWSP_ALL_REDUCE;
    const uint64_t own_at = pwsp_rounds_at(r, r->me), own = pwsp_rounds_len(r, r->me);
    r->size.in_count = r->count;
    r->size.out_count = is_all ? r->count : own;
    r->work = is_all || r->p == 1 ? PTOWSP_SPACE_OUT : PTOWSP_SPACE_SCRATCH;
    r->inbox = is_all ? 0 : r->count;
    if (algorithm == PTOWSP_ALGORITHM_DIRECT && r->p > 1) {
        pwsp_rounds_direct_reduce(r, is_all ? own_at : 0);
        if (is_all) {
            pwsp_rounds_direct_gather(r);
        }
        return;
    }
    pwsp_rounds_next(r);
    pwsp_rounds_copy(r, PTOWSP_SPACE_IN, 0, r->work, 0, r->count);
    if (r->p == 1) {
        return;
    }
    if (algorithm != PTOWSP_ALGORITHM_DOUBLING) {
        pwsp_rounds_rings(r, inner, true, is_all);
    } else if (is_all) {
        pwsp_rounds_doubling_all_reduce(r);
    } else {
        pwsp_rounds_halving_reduce_scatter(r);
        const uint32_t q_extra = r->p - (UINT32_C(1) << (31 - __builtin_clz(r->p)));
        if (r->me < 2 * q_extra && r->me % 2 == 1) {
            return;  // its part has come from its pair
        }
    }
    if (!is_all) {
        pwsp_rounds_copy(r, r->work, own_at, PTOWSP_SPACE_OUT, 0, own);
    }
}

static void pwsp_rounds_gather(pwsp_rounds *r, uint32_t inner) {
    const uint64_t own = pwsp_rounds_len(r, r->me);
    r->size.in_count = own;
    r->size.out_count = r->count;
    pwsp_rounds_next(r);
    pwsp_rounds_copy(r, PTOWSP_SPACE_IN, 0, PTOWSP_SPACE_OUT, pwsp_rounds_at(r, r->me), own);
    switch (r->collective->algorithm) {
    case PTOWSP_ALGORITHM_DIRECT: pwsp_rounds_direct_gather(r); break;
    case PTOWSP_ALGORITHM_DOUBLING: pwsp_rounds_bruck_gather(r); break;
    default: pwsp_rounds_rings(r, inner, false, true); break;
    }
}

static void pwsp_rounds_broadcast(pwsp_rounds *r, uint32_t inner) {
    const uint32_t root = r->collective->root;
    r->size.out_count = r->count;
    pwsp_rounds_next(r);
    if (r->me == root) {
        r->size.in_count = r->count;
        pwsp_rounds_copy(r, PTOWSP_SPACE_IN, 0, PTOWSP_SPACE_OUT, 0, r->count);
    }
    const pwsp_rounds_group all = pwsp_rounds_inside(r, r->p);
    const pwsp_rounds_group between = pwsp_rounds_between(r, inner);
    const pwsp_rounds_group inside = pwsp_rounds_inside(r, inner);
    switch (r->collective->algorithm) {
    case PTOWSP_ALGORITHM_DIRECT: pwsp_rounds_direct_broadcast(r, false); break;
    case PTOWSP_ALGORITHM_DOUBLING: pwsp_rounds_tree(r, &all, root, true); break;
    case PTOWSP_ALGORITHM_HIERARCHICAL:
        pwsp_rounds_tree(r, &between, root / inner, r->me % inner == root % inner);
        pwsp_rounds_tree(r, &inside, root % inner, true);
        break;
    default:
        pwsp_rounds_direct_broadcast(r, true);
        pwsp_rounds_rings(r, r->p, false, true);
        break;
    }
}

static void pwsp_rounds_one(pwsp_rounds *r) {
    const uint32_t root = r->collective->root, target = r->collective->target;
    r->size.in_count = r->me == root ? r->count : 0;
    r->size.out_count = r->me == target ? r->count : 0;
    pwsp_rounds_next(r);
    if (root == target && r->me == root) {
        pwsp_rounds_copy(r, PTOWSP_SPACE_IN, 0, PTOWSP_SPACE_OUT, 0, r->count);
    } else if (r->me == root) {
        pwsp_rounds_send(r, target, PTOWSP_SPACE_IN, 0, r->count);
    } else if (r->me == target) {
        pwsp_rounds_receive(r, root, PTOWSP_SPACE_OUT, 0, r->count);
    }
}

static void pwsp_rounds_slice(pwsp_rounds *r) {
    const uint64_t own = pwsp_rounds_len(r, r->me);
    r->size.in_count = r->count;
    r->size.out_count = own;
    pwsp_rounds_next(r);
    pwsp_rounds_copy(r, PTOWSP_SPACE_IN, pwsp_rounds_at(r, r->me), PTOWSP_SPACE_OUT, 0, own);
}

PWSP_INTERNAL void pwsp_collective_visit(const ptowsp_collective *collective, uint32_t member,
                                         pwsp_step_fn fn, void *user,
                                         ptowsp_collective_size *out_size) {
    PTOWSP_ASSERT(member < collective->members && collective->algorithm != 0);
    PWSP_ZERO(pwsp_rounds, r);
    r.collective = collective;
    r.p = collective->members;
    r.me = member;
    r.count = collective->count;
    r.fn = fn;
    r.user = user;
    const uint32_t inner = collective->algorithm == PTOWSP_ALGORITHM_RING ? r.p
                           : collective->node_size                        ? collective->node_size
                                                                          : 1;
    switch (collective->kind) {
    case PTOWSP_ALL_REDUCE:
    case PTOWSP_REDUCE_SCATTER: pwsp_rounds_reduce(&r, inner); break;
    case PTOWSP_ALL_GATHER: pwsp_rounds_gather(&r, inner); break;
    case PTOWSP_ALL_TO_ALL:
        pwsp_rounds_all_to_all(&r, collective->algorithm == PTOWSP_ALGORITHM_DIRECT);
        break;
    case PTOWSP_BROADCAST: pwsp_rounds_broadcast(&r, inner); break;
    case PTOWSP_SLICE: pwsp_rounds_slice(&r); break;
    default: pwsp_rounds_one(&r); break;
    }
    *out_size = r.size;
}
