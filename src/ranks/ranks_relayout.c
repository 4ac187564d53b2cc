// A tensor from one layout to another over a communicator: the steps of ptowsp_mesh_layout_relayout
// (data/relayout.c), each between the ranks of a line of the mesh, which differ in one coordinate.
//
//      slice             nothing is sent: a part of the rank's piece
//      all-reduce        all that it has
//      reduce-scatter    equal pieces, packed in turn; by cuts an all-reduce and a slice
//      all-gather        equal pieces, unpacked; by cuts as the following
//      all-to-all        each member's new part of this rank's piece: ragged counts
//
// Parts are boxes of the tensor, stored row by row. `have` is the rank's part before a step, which
// belongs to the caller or to the step before it.

#include "ranks.h"

#include "../data/layout.h"

typedef ptowsp_mesh_layout_part pwsp_box;

typedef struct pwsp_mover {
    ptowsp_ranks *ranks;
    ptowsp_context *context;
    const ptowsp_mesh *mesh;
    ptowsp_mesh_layout now, then;  // before the step, and after it
    ptowsp_dtype dtype;
    uint64_t element;
    uint32_t first, stride, members, member;  // the line of this rank, and its place there
} pwsp_mover;

// -- boxes ----------------------------------------------------------------------------------------

static pwsp_box pwsp_box_of(const pwsp_mover *m, const ptowsp_mesh_layout *layout,
                            uint32_t member) {
    return pwsp_layout_part(m->mesh, layout, m->first + member * m->stride);
}

// What two have in common; without bytes, if nothing.
static pwsp_box pwsp_box_meet(const pwsp_mover *m, const pwsp_box *a, const pwsp_box *b) {
    PWSP_ZERO(pwsp_box, both);
    both.bytes = m->element;
    for (uint32_t i = 0; i < m->now.rank; i++) {
        const int64_t a_end = a->offsets[i] + a->sizes[i], b_end = b->offsets[i] + b->sizes[i];
        both.offsets[i] = a->offsets[i] > b->offsets[i] ? a->offsets[i] : b->offsets[i];
        both.sizes[i] = (a_end < b_end ? a_end : b_end) - both.offsets[i];
        both.sizes[i] = both.sizes[i] > 0 ? both.sizes[i] : 0;
        both.bytes *= (uint64_t)both.sizes[i];
    }
    return both;
}

// The place of a box' row, of the given indices, in the memory of a part.
static uint64_t pwsp_box_row(const pwsp_mover *m, const pwsp_box *part, const pwsp_box *box,
                             const int64_t *at) {
    uint64_t place = 0;
    for (uint32_t i = 0; i < m->now.rank; i++) {
        place = place * (uint64_t)part->sizes[i] +
                (uint64_t)(box->offsets[i] + at[i] - part->offsets[i]);
    }
    return place * m->element;
}

// Copies a box from the memory of one part to another part that contains it.
static void pwsp_box_copy(const pwsp_mover *m, const pwsp_box *box, char *to,
                          const pwsp_box *to_part, const char *from, const pwsp_box *from_part) {
    const uint32_t rank = m->now.rank;
    int64_t at[PTOWSP_TENSOR_RANK_MAX] = {0};
    const uint64_t row = (rank ? (uint64_t)box->sizes[rank - 1] : 1) * m->element;
    while (box->bytes > 0) {
        memcpy(to + pwsp_box_row(m, to_part, box, at), from + pwsp_box_row(m, from_part, box, at),
               (size_t)row);
        uint32_t i = rank ? rank - 1 : 0;
        while (i > 0 && ++at[i - 1] == box->sizes[i - 1]) {
            at[--i] = 0;
        }
        if (i == 0) {
            return;
        }
    }
}

// -- steps ----------------------------------------------------------------------------------------

static ptowsp_status pwsp_mover_run(const pwsp_mover *m, ptowsp_collective_kind kind,
                                    const ptowsp_spread *spread, uint64_t count,
                                    const uint64_t *counts, const void *in, void *out) {
    PWSP_ZERO(ptowsp_collective, collective);
    collective.kind = kind;
    collective.reduction =
        spread->kind == PTOWSP_PARTIAL_MAX ? PTOWSP_REDUCTION_MAX : PTOWSP_REDUCTION_SUM;
    collective.dtype = m->dtype;
    collective.count = count;
    collective.counts = counts;
    collective.members = m->members;
    collective.first = m->first;
    collective.stride = m->stride;
    return ptowsp_ranks_run(m->ranks, &collective, in, out);
}

// Packs the parts of this rank's piece for each member, or unpacks the parts received from them.
static void pwsp_mover_pack(const pwsp_mover *m, bool is_packed, const pwsp_box *mine, char *part,
                            char *packed) {
    for (uint32_t i = 0; i < m->members; i++) {
        const pwsp_box other = pwsp_box_of(m, is_packed ? &m->then : &m->now, i);
        const pwsp_box both = pwsp_box_meet(m, mine, &other);
        if (is_packed) {
            pwsp_box_copy(m, &both, packed, &both, part, mine);
        } else {
            pwsp_box_copy(m, &both, part, mine, packed, &both);
        }
        packed += both.bytes;
    }
}

// The elements that each member sends to each, [from][to].
static void pwsp_mover_count(const pwsp_mover *m, uint64_t *counts) {
    for (uint32_t i = 0; i < m->members; i++) {
        const pwsp_box from = pwsp_box_of(m, &m->now, i);
        for (uint32_t j = 0; j < m->members; j++) {
            const pwsp_box to = pwsp_box_of(m, &m->then, j);
            counts[(uint64_t)i * m->members + j] = pwsp_box_meet(m, &from, &to).bytes / m->element;
        }
    }
}

// Bytes of a line or column of the counts.
static uint64_t pwsp_mover_sum(const pwsp_mover *m, const uint64_t *counts, bool is_out) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < m->members; i++) {
        sum += is_out ? counts[(uint64_t)m->member * m->members + i]
                      : counts[(uint64_t)i * m->members + m->member];
    }
    return sum * m->element;
}

// Memory of a step: counts, sent bytes, received bytes.
typedef struct pwsp_parcels {
    uint64_t *counts;
    char *sent, *received;
    size_t counts_size, sent_size, received_size;
} pwsp_parcels;

static bool pwsp_parcels_alloc(const pwsp_memory *memory, pwsp_parcels *p) {
    p->sent = (char *)pwsp_memory_alloc(memory, ++p->sent_size);  // never 0
    p->received = (char *)pwsp_memory_alloc(memory, ++p->received_size);
    return p->sent && p->received;
}

static void pwsp_parcels_free(const pwsp_memory *memory, const pwsp_parcels *p) {
    pwsp_memory_free(memory, p->sent, p->sent_size);
    pwsp_memory_free(memory, p->received, p->received_size);
    pwsp_memory_free(memory, p->counts, p->counts_size);
}

// To each member its new part: ragged.
static ptowsp_status pwsp_mover_exchange(const pwsp_mover *m, pwsp_parcels *p,
                                         const ptowsp_spread *before, const pwsp_box *mine,
                                         char *have, const pwsp_box *next, char *out) {
    const pwsp_memory *memory = &m->context->memory;
    p->counts_size = (size_t)m->members * m->members * sizeof *p->counts;
    p->counts = (uint64_t *)pwsp_memory_alloc(memory, p->counts_size);
    if (!p->counts) {
        return PTOWSP_OUT_OF_MEMORY;
    }
    pwsp_mover_count(m, p->counts);
    p->sent_size = (size_t)pwsp_mover_sum(m, p->counts, true);
    p->received_size = (size_t)pwsp_mover_sum(m, p->counts, false);
    if (!pwsp_parcels_alloc(memory, p)) {
        return PTOWSP_OUT_OF_MEMORY;
    }
    pwsp_mover_pack(m, true, mine, have, p->sent);
    const ptowsp_status status =
        pwsp_mover_run(m, PTOWSP_ALL_TO_ALL, before, 0, p->counts, p->sent, p->received);
    if (status == PTOWSP_OK) {
        pwsp_mover_pack(m, false, next, out, p->received);
    }
    return status;
}

// Equal pieces: all of what one has is packed for the others, or unpacked.
static ptowsp_status pwsp_mover_equal(const pwsp_mover *m, pwsp_parcels *p,
                                      const ptowsp_relayout_step *step, const pwsp_box *mine,
                                      char *have, const pwsp_box *next, char *out) {
    const bool gathers = step->kind == PTOWSP_RELAYOUT_ALL_GATHER;
    const uint64_t all = gathers ? next->bytes : mine->bytes;
    p->sent_size = gathers ? 0 : (size_t)all;
    p->received_size = gathers ? (size_t)all : 0;
    if (!pwsp_parcels_alloc(&m->context->memory, p)) {
        return PTOWSP_OUT_OF_MEMORY;
    }
    if (!gathers) {
        pwsp_mover_pack(m, true, mine, have, p->sent);
        return pwsp_mover_run(m, PTOWSP_REDUCE_SCATTER, &step->before, all / m->element, NULL,
                              p->sent, out);
    }
    const ptowsp_status status = pwsp_mover_run(m, PTOWSP_ALL_GATHER, &step->before,
                                                all / m->element, NULL, have, p->received);
    if (status == PTOWSP_OK) {
        pwsp_mover_pack(m, false, next, out, p->received);
    }
    return status;
}

static ptowsp_status pwsp_mover_reduce(const pwsp_mover *m, pwsp_parcels *p,
                                       const ptowsp_spread *before, const pwsp_box *mine,
                                       const char *have, const pwsp_box *next, char *out) {
    p->received_size = (size_t)mine->bytes;
    if (!pwsp_parcels_alloc(&m->context->memory, p)) {
        return PTOWSP_OUT_OF_MEMORY;
    }
    const ptowsp_status status = pwsp_mover_run(m, PTOWSP_ALL_REDUCE, before,
                                                mine->bytes / m->element, NULL, have, p->received);
    if (status == PTOWSP_OK) {
        pwsp_box_copy(m, next, out, next, p->received, mine);
    }
    return status;
}

static ptowsp_status pwsp_mover_step(const pwsp_mover *m, const ptowsp_relayout_step *step,
                                     char *have, char *out) {
    const pwsp_box mine = pwsp_box_of(m, &m->now, m->member);
    const pwsp_box next = pwsp_box_of(m, &m->then, m->member);
    PWSP_ZERO(pwsp_parcels, parcels);
    ptowsp_status status = PTOWSP_OK;
    if (step->kind == PTOWSP_RELAYOUT_SLICE) {
        pwsp_box_copy(m, &next, out, &next, have, &mine);
    } else if (step->kind == PTOWSP_RELAYOUT_ALL_REDUCE ||
               (step->kind == PTOWSP_RELAYOUT_REDUCE_SCATTER && step->after.cuts)) {
        status = pwsp_mover_reduce(m, &parcels, &step->before, &mine, have, &next, out);
    } else if (step->kind == PTOWSP_RELAYOUT_REDUCE_SCATTER ||
               (step->kind == PTOWSP_RELAYOUT_ALL_GATHER && !step->before.cuts)) {
        status = pwsp_mover_equal(m, &parcels, step, &mine, have, &next, out);
    } else {
        status = pwsp_mover_exchange(m, &parcels, &step->before, &mine, have, &next, out);
    }
    pwsp_parcels_free(&m->context->memory, &parcels);
    return status == PTOWSP_OUT_OF_MEMORY
               ? pwsp_ranks_fail(m->context, status, PTOWSP_NO_INDEX, "relayout: out of memory")
               : status;
}

// -- all ------------------------------------------------------------------------------------------

static ptowsp_status pwsp_mover_check(const pwsp_mover *m, const void *in, const void *out) {
    uint32_t count = 0;
    const uint32_t ranks = ptowsp_ranks_count(m->ranks);
    const ptowsp_status status = ptowsp_mesh_check(m->context, m->mesh, &count);
    PTOWSP_ASSERT(status == PTOWSP_OK);  // the plan has been made for it
    (void)status;
    if (count != ranks) {
        return pwsp_ranks_fail(m->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                               "relayout: the mesh has %u ranks, and there are %u", count, ranks);
    }
    if (ptowsp_dtype_size(m->dtype) != m->now.element_bytes) {
        return pwsp_ranks_fail(m->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                               "relayout: elements of %s have %u bytes, and those of the data type "
                               "%u",
                               m->now.name, m->now.element_bytes, ptowsp_dtype_size(m->dtype));
    }
    return in && out ? PTOWSP_OK
                     : pwsp_ranks_fail(m->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                                       "relayout: in or out is NULL");
}

// The line along an axis, of this rank.
static void pwsp_mover_turn(pwsp_mover *m, uint32_t axis) {
    const uint32_t rank = ptowsp_ranks_rank(m->ranks);
    m->members = m->mesh->sizes[axis];
    m->member = ptowsp_mesh_coordinate(m->mesh, rank, axis);
    m->stride = 1;
    for (uint32_t i = axis + 1; i < m->mesh->axis_count; i++) {
        m->stride *= m->mesh->sizes[i];
    }
    m->first = rank - m->member * m->stride;
}

ptowsp_status ptowsp_ranks_relayout(ptowsp_ranks *ranks, const ptowsp_mesh *mesh,
                                    const ptowsp_mesh_layout *from, const ptowsp_mesh_layout *to,
                                    ptowsp_dtype dtype, const void *in, void *out) {
    PTOWSP_ASSERT(ranks);
    PWSP_ZERO(pwsp_mover, m);
    ptowsp_relayout plan;
    m.ranks = ranks;
    m.context = pwsp_ranks_context(ranks);
    m.mesh = mesh;
    m.dtype = dtype;
    ptowsp_status status = ptowsp_mesh_layout_relayout(m.context, mesh, from, to, &plan);
    if (status != PTOWSP_OK) {
        return status;
    }
    m.now = *from;
    m.element = from->element_bytes;
    status = pwsp_mover_check(&m, in, out);
    const pwsp_memory *memory = &m.context->memory;
    char *have, *made = NULL;  // made: by the last step
    size_t made_size = 0;
    memcpy(&have, &in, sizeof have);  // it is only read
    for (uint32_t i = 0; i < plan.step_count && status == PTOWSP_OK; i++) {
        const ptowsp_relayout_step *step = &plan.steps[i];
        pwsp_mover_turn(&m, step->axis);
        m.now.spreads[step->axis] = step->before;
        m.then = m.now;
        m.then.spreads[step->axis] = step->after;
        const bool is_last = i + 1 == plan.step_count;
        const size_t size = (size_t)pwsp_box_of(&m, &m.then, m.member).bytes + 1;
        char *next = is_last ? (char *)out : (char *)pwsp_memory_alloc(memory, size);
        status = next ? pwsp_mover_step(&m, step, have, next)
                      : pwsp_ranks_fail(m.context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX,
                                        "relayout: out of memory");
        pwsp_memory_free(memory, made, made_size);
        made = is_last ? NULL : next;
        made_size = made ? size : 0;
        have = next;
        m.now = m.then;
    }
    pwsp_memory_free(memory, made, made_size);
    if (status == PTOWSP_OK && plan.step_count == 0 && in != out) {
        memcpy(out, in, (size_t)pwsp_layout_part(mesh, from, ptowsp_ranks_rank(ranks)).bytes);
    }
    return status;
}
