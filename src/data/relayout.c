// From one layout of a tensor to another. `now` walks from `from` to `to`, an axis a step. Pieces of
// a dimension nest in the order of axes, so an axis
//
//      leaves a dimension     when no later axis cuts it now
//      enters a dimension     when all earlier axes that cut it, now or in the end, are as in the
//                             end, and no later axis cuts it now
//
// Among axes that may take their last step, the cheapest kind goes first, ties by the last axis. If
// none may, the last blocking axis is gathered. So the axes that currently cut a dimension are
// always a prefix of its axes in `from` or `to`, and `now` is valid with them. Every step brings an
// axis to its end, or gathers one that no later step cuts too early: two steps an axis at most.

#include "layout.h"

typedef struct pwsp_relayout {
    const ptowsp_mesh *mesh;
    const ptowsp_mesh_layout *to;
    ptowsp_mesh_layout now;
    bool is_done[PTOWSP_MESH_AXIS_MAX];  // now is as in the end
} pwsp_relayout;

static bool pwsp_relayout_cuts(const ptowsp_spread *spread, uint32_t dim) {
    return spread->kind == PTOWSP_SHARDED && spread->dim == dim;
}

static bool pwsp_relayout_may_leave(const pwsp_relayout *r, uint32_t axis) {
    for (uint32_t b = axis + 1; b < r->mesh->axis_count; b++) {
        if (pwsp_relayout_cuts(&r->now.spreads[b], r->now.spreads[axis].dim)) {
            return false;
        }
    }
    return true;
}

static bool pwsp_relayout_may_enter(const pwsp_relayout *r, uint32_t axis) {
    const uint32_t dim = r->to->spreads[axis].dim;
    for (uint32_t b = 0; b < r->mesh->axis_count; b++) {
        const bool now = pwsp_relayout_cuts(&r->now.spreads[b], dim);
        const bool then = pwsp_relayout_cuts(&r->to->spreads[b], dim);
        if ((b < axis && (now || then) && !r->is_done[b]) || (b > axis && now)) {
            return false;
        }
    }
    return true;
}

// What takes an axis to its end; requires that it is not there.
static ptowsp_relayout_kind pwsp_relayout_kind(const ptowsp_spread *now, const ptowsp_spread *to) {
    if (to->kind != PTOWSP_SHARDED) {
        return now->kind == PTOWSP_SHARDED ? PTOWSP_RELAYOUT_ALL_GATHER
                                           : PTOWSP_RELAYOUT_ALL_REDUCE;
    }
    return now->kind == PTOWSP_SHARDED      ? PTOWSP_RELAYOUT_ALL_TO_ALL
           : now->kind == PTOWSP_REPLICATED ? PTOWSP_RELAYOUT_SLICE
                                            : PTOWSP_RELAYOUT_REDUCE_SCATTER;
}

// The axis that steps next, and whether it is to be gathered instead; false when all are done.
static bool pwsp_relayout_next(const pwsp_relayout *r, uint32_t *out_axis, bool *out_gathers) {
    const uint32_t none = r->mesh->axis_count;
    uint32_t best = none, in_the_way = none;
    bool are_done = true;
    for (uint32_t a = none; a-- > 0;) {
        const ptowsp_spread *now = &r->now.spreads[a], *to = &r->to->spreads[a];
        if (r->is_done[a]) {
            continue;
        }
        are_done = false;
        if ((now->kind == PTOWSP_SHARDED && !pwsp_relayout_may_leave(r, a)) ||
            (to->kind == PTOWSP_SHARDED && !pwsp_relayout_may_enter(r, a))) {
            continue;
        }
        if (best == none || pwsp_relayout_kind(now, to) <
                                pwsp_relayout_kind(&r->now.spreads[best], &r->to->spreads[best])) {
            best = a;
        }
    }
    for (uint32_t a = none; best == none && in_the_way == none && a-- > 0;) {
        bool is_in_the_way = !r->is_done[a];
        for (uint32_t b = 0; b < a; b++) {
            const uint32_t dim = r->now.spreads[a].dim;
            is_in_the_way =
                is_in_the_way || (!r->is_done[b] && (pwsp_relayout_cuts(&r->now.spreads[b], dim) ||
                                                     pwsp_relayout_cuts(&r->to->spreads[b], dim)));
        }
        if (is_in_the_way && r->now.spreads[a].kind == PTOWSP_SHARDED) {
            in_the_way = a;
        }
    }
    *out_gathers = best == none;
    *out_axis = best == none ? in_the_way : best;
    PTOWSP_ASSERT(are_done || *out_axis < none);
    return !are_done;
}

// The bytes of `part` that are also in `other`.
static uint64_t pwsp_relayout_common(const ptowsp_mesh_layout *layout,
                                     const ptowsp_mesh_layout_part *part,
                                     const ptowsp_mesh_layout_part *other) {
    uint64_t bytes = part->bytes == 0 ? 0 : layout->element_bytes;
    for (uint32_t d = 0; d < layout->rank && bytes > 0; d++) {
        int64_t begin = part->offsets[d] > other->offsets[d] ? part->offsets[d] : other->offsets[d];
        int64_t part_end = part->offsets[d] + part->sizes[d];
        int64_t other_end = other->offsets[d] + other->sizes[d];
        int64_t end = part_end < other_end ? part_end : other_end;
        bytes *= end > begin ? (uint64_t)(end - begin) : 0;
    }
    return bytes;
}

// The most that a rank moves in a step.
static uint64_t pwsp_relayout_bytes(const pwsp_relayout *r, const ptowsp_mesh_layout *next,
                                    ptowsp_relayout_kind kind, uint32_t parts) {
    uint32_t rank_count = 1;
    for (uint32_t a = 0; a < r->mesh->axis_count; a++) {
        rank_count *= r->mesh->sizes[a];
    }
    uint64_t most = 0;
    for (uint32_t rank = 0; rank < rank_count; rank++) {
        const ptowsp_mesh_layout_part old = pwsp_layout_part(r->mesh, &r->now, rank);
        const ptowsp_mesh_layout_part made = pwsp_layout_part(r->mesh, next, rank);
        const uint64_t element = r->now.element_bytes;
        uint64_t bytes = 0;
        switch (kind) {
        case PTOWSP_RELAYOUT_REDUCE_SCATTER: bytes = old.bytes - made.bytes; break;
        case PTOWSP_RELAYOUT_ALL_TO_ALL:
        case PTOWSP_RELAYOUT_ALL_GATHER:
            bytes = made.bytes - pwsp_relayout_common(&r->now, &made, &old);
            break;
        case PTOWSP_RELAYOUT_ALL_REDUCE:
            bytes = 2 * (old.bytes - old.bytes / element / parts * element);
            break;
        default: break;
        }
        most = pwsp_max_u64(most, bytes);
    }
    return most;
}

static void pwsp_relayout_step(pwsp_relayout *r, uint32_t axis, bool gathers,
                               ptowsp_relayout *out) {
    PTOWSP_ASSERT(out->step_count < PTOWSP_RELAYOUT_STEP_MAX);
    ptowsp_relayout_step *step = &out->steps[out->step_count++];
    ptowsp_mesh_layout next = r->now;
    memset(&next.spreads[axis], 0, sizeof next.spreads[axis]);
    if (!gathers) {
        next.spreads[axis] = r->to->spreads[axis];
    }
    step->kind = pwsp_relayout_kind(&r->now.spreads[axis], &next.spreads[axis]);
    step->axis = axis;
    step->before = r->now.spreads[axis];
    step->after = next.spreads[axis];
    step->bytes = pwsp_relayout_bytes(r, &next, step->kind, r->mesh->sizes[axis]);
    out->bytes = pwsp_sum_u64(out->bytes, step->bytes);
    r->now = next;
    r->is_done[axis] = !gathers || r->to->spreads[axis].kind == PTOWSP_REPLICATED;
}

// Along an axis the tensor may stay partial, and cannot become so.
static ptowsp_status pwsp_relayout_check(ptowsp_context *context, const ptowsp_mesh *mesh,
                                         const ptowsp_mesh_layout *from,
                                         const ptowsp_mesh_layout *to) {
    ptowsp_status status = ptowsp_mesh_layout_check(context, mesh, from);
    if (status == PTOWSP_OK) {
        status = ptowsp_mesh_layout_check(context, mesh, to);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    bool is_same = from->rank == to->rank && from->element_bytes == to->element_bytes;
    for (uint32_t d = 0; is_same && d < from->rank; d++) {
        is_same = from->shape[d] == to->shape[d];
    }
    if (!is_same) {
        return pwsp_layout_fail_pair(context, mesh, from, to, PTOWSP_NO_INDEX,
                                     "relayout of other shapes or elements");
    }
    for (uint32_t a = 0; a < mesh->axis_count; a++) {
        const ptowsp_spread_kind kind = to->spreads[a].kind;
        if ((kind == PTOWSP_PARTIAL_SUM || kind == PTOWSP_PARTIAL_MAX) &&
            kind != from->spreads[a].kind) {
            return pwsp_layout_fail_pair(context, mesh, from, to, a,
                                         "relayout makes nothing partial");
        }
    }
    return PTOWSP_OK;
}

ptowsp_status ptowsp_mesh_layout_relayout(ptowsp_context *context, const ptowsp_mesh *mesh,
                                          const ptowsp_mesh_layout *from,
                                          const ptowsp_mesh_layout *to,
                                          ptowsp_relayout *out_relayout) {
    ptowsp_status status = pwsp_relayout_check(context, mesh, from, to);
    if (status != PTOWSP_OK) {
        return status;
    }
    if (!out_relayout) {
        return pwsp_layout_fail_pair(context, mesh, from, to, PTOWSP_NO_INDEX,
                                     "no relayout to write");
    }
    PWSP_ZERO(ptowsp_relayout, made);
    pwsp_relayout r;
    memset(&r, 0, sizeof r);
    r.mesh = mesh;
    r.to = to;
    r.now = *from;
    PTOWSP_ASSERT(mesh->axis_count <= PTOWSP_MESH_AXIS_MAX);  // as has been checked
    for (uint32_t a = 0; a < mesh->axis_count; a++) {
        const ptowsp_spread *now = &from->spreads[a];
        r.is_done[a] = pwsp_spread_is_same(now, &to->spreads[a],
                                           now->kind == PTOWSP_SHARDED ? from->shape[now->dim] : 0,
                                           mesh->sizes[a]);
        if (r.is_done[a] && !to->spreads[a].cuts) {
            r.now.spreads[a].cuts = NULL;  // equal pieces, which later axes may cut
        }
    }
    uint32_t axis = 0;
    bool gathers = false;
    while (pwsp_relayout_next(&r, &axis, &gathers)) {
        pwsp_relayout_step(&r, axis, gathers, &made);
    }
    *out_relayout = made;
    return PTOWSP_OK;
}
