// Improving a placement by few moves: steps that lower the busiest rank.
//
// The state is which expert is where, and the consequences: replicas per expert, and the load of
// ranks. A step is the best of all changes that can take load off the busiest rank A:
//
//      replace   a replica on A by another expert, if the one that goes has others     1 move
//      replace   a replica elsewhere by an expert of A, whose replicas then share      1 move
//      swap      a replica on A with one elsewhere                                     2 moves
//
// The best change lowers the busiest rank most for its moves; where nothing lowers it (two ranks may be
// the busiest), the change that lowers the sum of squares most. Steps are undone after the last state that had
// a new least load, so that no move is paid for nothing.
//
// A change alters the load of few ranks. The busiest of the others is the first in the order of
// falling load that is not among them. This estimate chooses the step; whether it is taken, is
// decided by loads that are added up again.

#include "moe.h"

#include "../base/heap.h"

typedef struct pwsp_moe_mover {
    const pwsp_moe_cluster *c;
    const float *loads;
    int32_t *experts;    // [replica_count] the placement
    uint32_t *counts;    // [expert_count]
    uint32_t *first;     // [expert_count] of the list of replicas
    uint32_t *next;      // [replica_count]
    double *rank_loads;  // [rank_count]
    uint32_t *order;     // [rank_count] by falling load
    double max, squares;
    // A change that is tried.
    double *tried;      // [rank_count] loads of the ranks that it touches
    uint64_t *stamps;   // [rank_count] which ones these are
    uint32_t *touched;  // [rank_count] the same as a list
    uint64_t stamp;
    uint32_t touched_count;
    // The moves made: [replica_count] replicas and the experts that they were.
    uint32_t *log_replicas;
    int32_t *log_experts;
} pwsp_moe_mover;

typedef struct pwsp_moe_change {
    uint32_t replica, other;  // other: to swap with, or NO_ROW to replace by `expert`
    uint32_t expert;
    double gain, squares_gain;  // per move
} pwsp_moe_change;

static uint64_t pwsp_moe_mover_carve(pwsp_moe_mover *m, const pwsp_moe_cluster *c, void *base) {
    pwsp_moe_carver carver = {(char *)base, 0};
    const uint64_t replicas = c->replica_count, experts = c->expert_count, ranks = c->rank_count;
    memset(m, 0, sizeof *m);
    m->c = c;
    m->rank_loads = (double *)pwsp_moe_carve(&carver, ranks, sizeof *m->rank_loads);
    m->tried = (double *)pwsp_moe_carve(&carver, ranks, sizeof *m->tried);
    m->counts = (uint32_t *)pwsp_moe_carve(&carver, experts, sizeof *m->counts);
    m->first = (uint32_t *)pwsp_moe_carve(&carver, experts, sizeof *m->first);
    m->next = (uint32_t *)pwsp_moe_carve(&carver, replicas, sizeof *m->next);
    m->order = (uint32_t *)pwsp_moe_carve(&carver, ranks, sizeof *m->order);
    m->stamps = (uint64_t *)pwsp_moe_carve(&carver, ranks, sizeof *m->stamps);
    m->touched = (uint32_t *)pwsp_moe_carve(&carver, ranks, sizeof *m->touched);
    m->log_replicas = (uint32_t *)pwsp_moe_carve(&carver, replicas, sizeof *m->log_replicas);
    m->log_experts = (int32_t *)pwsp_moe_carve(&carver, replicas, sizeof *m->log_experts);
    return carver.used;
}

PWSP_INTERNAL uint64_t pwsp_moe_move_bytes(const pwsp_moe_cluster *cluster) {
    pwsp_moe_mover m;
    return pwsp_moe_mover_carve(&m, cluster, NULL);
}

// -- the state ------------------------------------------------------------------------------------

static uint32_t pwsp_moe_rank_of(const pwsp_moe_mover *m, uint32_t replica) {
    return replica / m->c->rank_replicas;
}

static double pwsp_moe_share_of(const pwsp_moe_mover *m, uint32_t expert) {
    return (double)m->loads[expert] / m->counts[expert];
}

static bool pwsp_moe_rank_before(const pwsp_moe_mover *m, uint32_t a, uint32_t b) {
    return m->rank_loads[a] > m->rank_loads[b] || (m->rank_loads[a] >= m->rank_loads[b] && a < b);
}

PWSP_SORT(pwsp_moe_ranks_sort, uint32_t, pwsp_moe_mover, pwsp_moe_rank_before)

// All that follows from the placement.
static void pwsp_moe_derive(pwsp_moe_mover *m) {
    const pwsp_moe_cluster *c = m->c;
    memset(m->counts, 0, c->expert_count * sizeof *m->counts);
    for (uint32_t e = 0; e < c->expert_count; e++) {
        m->first[e] = PTOWSP_MOE_NO_ROW;
    }
    for (uint32_t r = c->replica_count; r-- > 0;) {
        const uint32_t expert = (uint32_t)m->experts[r];
        m->next[r] = m->first[expert];
        m->first[expert] = r;
        m->counts[expert]++;
    }
    m->max = m->squares = 0.0;
    for (uint32_t rank = 0; rank < c->rank_count; rank++) {
        double load = 0.0;
        for (uint32_t i = 0; i < c->rank_replicas; i++) {
            load += pwsp_moe_share_of(m, (uint32_t)m->experts[rank * c->rank_replicas + i]);
        }
        m->order[rank] = rank;
        m->rank_loads[rank] = load;
        m->squares += load * load;
        m->max = load > m->max ? load : m->max;
    }
    pwsp_moe_ranks_sort(m, m->order, c->rank_count);
}

// -- changes that are tried -----------------------------------------------------------------------

static void pwsp_moe_try_begin(pwsp_moe_mover *m) {
    m->touched_count = 0;
    m->stamp++;
}

static void pwsp_moe_try_add(pwsp_moe_mover *m, uint32_t replica, double load) {
    const uint32_t rank = pwsp_moe_rank_of(m, replica);
    if (m->stamps[rank] != m->stamp) {
        m->stamps[rank] = m->stamp;
        m->touched[m->touched_count++] = rank;
        m->tried[rank] = m->rank_loads[rank];
    }
    m->tried[rank] += load;
}

// Compares the change tried with the best one so far, or with no change, which gains 0.
static void pwsp_moe_try_end(pwsp_moe_mover *m, uint32_t moves, const pwsp_moe_change *change,
                             pwsp_moe_change *best) {
    double max = 0.0, squares = 0.0;
    for (uint32_t i = 0; i < m->touched_count; i++) {
        const double load = m->tried[m->touched[i]], before = m->rank_loads[m->touched[i]];
        max = load > max ? load : max;
        squares += before * before - load * load;
    }
    for (uint32_t i = 0; i < m->c->rank_count; i++) {
        if (m->stamps[m->order[i]] != m->stamp) {
            const double load = m->rank_loads[m->order[i]];
            max = load > max ? load : max;
            break;
        }
    }
    const double gain = (m->max - max) / moves;
    squares /= moves;
    if (gain > best->gain || (gain >= best->gain && squares > best->squares_gain)) {
        *best = *change;
        best->gain = gain;
        best->squares_gain = squares;
    }
}

// Whether an expert may come to a rank: not where replicas are spread, and it is there already.
static bool pwsp_moe_may_come(const pwsp_moe_mover *m, uint32_t rank, uint32_t expert) {
    const int32_t *experts = m->experts + (size_t)rank * m->c->rank_replicas;
    uint32_t i = m->c->is_spread ? 0 : m->c->rank_replicas;
    while (i < m->c->rank_replicas && (uint32_t)experts[i] != expert) {
        i++;
    }
    return i == m->c->rank_replicas;
}

// Makes `replica` an expert.
static void pwsp_moe_try_replace(pwsp_moe_mover *m, uint32_t replica, uint32_t expert,
                                 pwsp_moe_change *best) {
    const uint32_t old = (uint32_t)m->experts[replica];
    if (old == expert || m->counts[old] < 2 ||
        !pwsp_moe_may_come(m, pwsp_moe_rank_of(m, replica), expert)) {
        return;
    }
    const double old_before = pwsp_moe_share_of(m, old), before = pwsp_moe_share_of(m, expert);
    const double old_after = (double)m->loads[old] / (m->counts[old] - 1);
    const double after = (double)m->loads[expert] / (m->counts[expert] + 1);
    pwsp_moe_try_begin(m);
    pwsp_moe_try_add(m, replica, after - old_before);
    for (uint32_t r = m->first[old]; r != PTOWSP_MOE_NO_ROW; r = m->next[r]) {
        if (r != replica) {
            pwsp_moe_try_add(m, r, old_after - old_before);
        }
    }
    for (uint32_t r = m->first[expert]; r != PTOWSP_MOE_NO_ROW; r = m->next[r]) {
        pwsp_moe_try_add(m, r, after - before);
    }
    const pwsp_moe_change change = {replica, PTOWSP_MOE_NO_ROW, expert, 0.0, 0.0};
    pwsp_moe_try_end(m, 1, &change, best);
}

static void pwsp_moe_try_swap(pwsp_moe_mover *m, uint32_t replica, uint32_t other,
                              pwsp_moe_change *best) {
    const uint32_t a = (uint32_t)m->experts[replica], b = (uint32_t)m->experts[other];
    const double less = pwsp_moe_share_of(m, a) - pwsp_moe_share_of(m, b);
    if (less <= 0.0 || !pwsp_moe_may_come(m, pwsp_moe_rank_of(m, replica), b) ||
        !pwsp_moe_may_come(m, pwsp_moe_rank_of(m, other), a)) {
        return;
    }
    pwsp_moe_try_begin(m);
    pwsp_moe_try_add(m, replica, -less);
    pwsp_moe_try_add(m, other, less);
    const pwsp_moe_change change = {replica, other, 0, 0.0, 0.0};
    pwsp_moe_try_end(m, 2, &change, best);
}

// Whether an expert has a replica on a node.
static bool pwsp_moe_has_node(const pwsp_moe_mover *m, uint32_t expert, uint32_t node) {
    for (uint32_t r = m->first[expert]; r != PTOWSP_MOE_NO_ROW; r = m->next[r]) {
        if (pwsp_moe_rank_of(m, r) / m->c->node_ranks == node) {
            return true;
        }
    }
    return false;
}

// Finds the best change; false if none helps.
static bool pwsp_moe_change_find(pwsp_moe_mover *m, pwsp_moe_change *best) {
    const pwsp_moe_cluster *c = m->c;
    const uint32_t rank = m->order[0], node = rank / c->node_ranks;
    const uint32_t begin = rank * c->rank_replicas, end = begin + c->rank_replicas;
    const uint32_t node_replicas = c->node_ranks * c->rank_replicas;
    best->gain = best->squares_gain = 0.0;
    best->replica = PTOWSP_MOE_NO_ROW;
    for (uint32_t expert = 0; expert < c->expert_count; expert++) {
        if (c->node_count == 1 || pwsp_moe_has_node(m, expert, node)) {
            for (uint32_t r = begin; r < end; r++) {
                pwsp_moe_try_replace(m, r, expert, best);
            }
        }
    }
    for (uint32_t mine = begin; mine < end; mine++) {
        const uint32_t expert = (uint32_t)m->experts[mine];
        for (uint32_t r = 0; r < c->replica_count; r++) {
            if (r >= begin && r < end) {
                continue;
            }
            const uint32_t its_node = r / node_replicas;
            if (its_node == node || pwsp_moe_has_node(m, expert, its_node)) {
                pwsp_moe_try_replace(m, r, expert, best);
            }
            if (its_node == node) {
                pwsp_moe_try_swap(m, mine, r, best);
            }
        }
    }
    return best->replica != PTOWSP_MOE_NO_ROW;
}

// -- steps ----------------------------------------------------------------------------------------

static void pwsp_moe_set(pwsp_moe_mover *m, uint32_t replica, int32_t expert, uint32_t *moves) {
    m->log_replicas[*moves] = replica;
    m->log_experts[*moves] = m->experts[replica];
    m->experts[replica] = expert;
    ++*moves;
}

static void pwsp_moe_undo(pwsp_moe_mover *m, uint32_t *moves, uint32_t to) {
    while (*moves > to) {
        --*moves;
        m->experts[m->log_replicas[*moves]] = m->log_experts[*moves];
    }
}

// Takes steps while they help and are allowed; returns the moves of the best state, which is left.
static uint32_t pwsp_moe_steps(pwsp_moe_mover *m, uint32_t move_max, double *frontier) {
    uint32_t moves = 0, best_moves = 0;
    double least = m->max;
    pwsp_moe_change change;
    while (moves < move_max && pwsp_moe_change_find(m, &change)) {
        const uint32_t before = moves;
        const double max = m->max, squares = m->squares;
        const bool is_swap = change.other != PTOWSP_MOE_NO_ROW;
        if (before + (is_swap ? 2 : 1) > move_max) {
            break;
        }
        const int32_t old = m->experts[change.replica];
        pwsp_moe_set(m, change.replica, is_swap ? m->experts[change.other] : (int32_t)change.expert,
                     &moves);
        if (is_swap) {
            pwsp_moe_set(m, change.other, old, &moves);
        }
        pwsp_moe_derive(m);
        if (m->max > max || (m->max >= max && m->squares >= squares)) {
            pwsp_moe_undo(m, &moves, before);  // it only seemed to help
            break;
        }
        for (uint32_t k = before + 1; frontier && k <= moves; k++) {
            frontier[k] = k == moves && m->max < least ? m->max : least;
        }
        if (m->max < least) {
            least = m->max;
            best_moves = moves;
        }
    }
    for (uint32_t k = moves + 1; frontier && k <= move_max; k++) {
        frontier[k] = least;
    }
    pwsp_moe_undo(m, &moves, best_moves);
    pwsp_moe_derive(m);
    return best_moves;
}

// Checks that each replica has an expert, and each expert a replica.
static ptowsp_status pwsp_moe_present_check(pwsp_moe_mover *m, const int32_t *experts,
                                            ptowsp_plan_info *info) {
    memset(m->counts, 0, m->c->expert_count * sizeof *m->counts);
    for (uint32_t r = 0; r < m->c->replica_count; r++) {
        if (experts[r] < 0 || (uint32_t)experts[r] >= m->c->expert_count) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_REPLICA_EXPERT, r, experts[r],
                                  m->c->expert_count);
        }
        m->counts[experts[r]]++;
    }
    for (uint32_t e = 0; e < m->c->expert_count; e++) {
        if (m->counts[e] == 0) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_EXPERT_ABSENT, e, 0, 0);
        }
    }
    return PTOWSP_OK;
}

ptowsp_status ptowsp_moe_move(const ptowsp_moe_cluster *cluster, const float *loads,
                              uint32_t move_max, void *scratch, uint64_t scratch_bytes,
                              int32_t *replica_experts, double *frontier,
                              ptowsp_moe_moved *out_moved, ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    pwsp_moe_cluster c;
    ptowsp_status status = pwsp_moe_cluster_check(cluster, &c, info);
    if (status == PTOWSP_OK && !replica_experts) {
        status = pwsp_moe_null(info, PWSP_MOE_IN_REPLICAS);
    }
    if (status == PTOWSP_OK) {
        status = pwsp_moe_scratch_check(&c, scratch, scratch_bytes, info);
    }
    if (status == PTOWSP_OK) {
        status = pwsp_moe_loads_check(loads, c.expert_count, info);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    pwsp_moe_mover m;
    pwsp_moe_mover_carve(&m, &c, scratch);
    status = pwsp_moe_present_check(&m, replica_experts, info);
    if (status != PTOWSP_OK) {
        return status;
    }
    m.loads = loads;
    m.experts = replica_experts;
    memset(m.stamps, 0, c.rank_count * sizeof *m.stamps);
    pwsp_moe_derive(&m);
    ptowsp_moe_moved moved = {0, m.max, 0.0, 0.0};
    for (uint32_t e = 0; e < c.expert_count; e++) {
        moved.load_mean += (double)loads[e];
    }
    moved.load_mean /= c.rank_count;
    if (frontier) {
        frontier[0] = m.max;
    }
    const uint32_t most = (uint32_t)pwsp_min_u64(move_max, c.replica_count);
    moved.move_count = pwsp_moe_steps(&m, most, frontier);
    moved.load_after = m.max;
    for (uint64_t k = (uint64_t)most + 1; frontier && k <= move_max; k++) {
        frontier[k] = m.max;
    }
    if (out_moved) {
        *out_moved = moved;
    }
    return PTOWSP_OK;
}
