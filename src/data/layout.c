// Meshes of ranks, and how tensors are spread over them. A piece of a dimension is found by cutting
// it once for each axis that shards it, in the order of axes:
//
//      dimension of 12, axes of 2 and 3      [0 1 2 3 4 5][6 7 8 9 10 11]
//                                            [0 1][2 3][4 5]  [6 7][8 9][10 11]

#include "layout.h"

#include "names.h"

// Records an error if there is a context to record it in, and returns the status.
PWSP_PRINTF(4, 5)
static ptowsp_status pwsp_layout_fail(ptowsp_context *context, ptowsp_status status, uint64_t index,
                                      const char *format, ...) {
    if (!context) {
        return status;
    }
    char line[PWSP_ERROR_TEXT_MAX];
    PWSP_TEXT_FORMAT_INTO(line, format);
    return pwsp_fail(context, status, index, "%s", line);
}

// -- meshes ---------------------------------------------------------------------------------------

ptowsp_status ptowsp_mesh_check(ptowsp_context *context, const ptowsp_mesh *mesh,
                                uint32_t *out_rank_count) {
    if (!mesh || mesh->axis_count == 0 || mesh->axis_count > PTOWSP_MESH_AXIS_MAX) {
        return pwsp_layout_fail(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                                "mesh: %u axes; it has 1 to %d", mesh ? mesh->axis_count : 0,
                                PTOWSP_MESH_AXIS_MAX);
    }
    uint64_t count = 1;
    for (uint32_t i = 0; i < mesh->axis_count; i++) {
        if (!pwsp_name_is_valid(mesh->names[i])) {
            return pwsp_layout_fail(context, PTOWSP_INVALID_PARAMS, i,
                                    "mesh: axis %u has no valid name", i);
        }
        for (uint32_t j = 0; j < i; j++) {
            if (strcmp(mesh->names[i], mesh->names[j]) == 0) {
                return pwsp_layout_fail(context, PTOWSP_INVALID_PARAMS, i,
                                        "mesh: axis '%s' is there twice", mesh->names[i]);
            }
        }
        if (mesh->sizes[i] == 0) {
            return pwsp_layout_fail(context, PTOWSP_INVALID_PARAMS, i, "mesh: axis '%s' has size 0",
                                    mesh->names[i]);
        }
        count *= mesh->sizes[i];  // at most 2^16 * 2^32
        if (count > PTOWSP_MESH_RANK_MAX) {
            return pwsp_layout_fail(context, PTOWSP_LIMIT_EXCEEDED, i,
                                    "mesh: more than %d ranks with axis '%s' of %u",
                                    PTOWSP_MESH_RANK_MAX, mesh->names[i], mesh->sizes[i]);
        }
    }
    if (out_rank_count) {
        *out_rank_count = (uint32_t)count;
    }
    return PTOWSP_OK;
}

uint32_t ptowsp_mesh_coordinate(const ptowsp_mesh *mesh, uint32_t rank, uint32_t axis) {
    if (!mesh) {
        return 0;
    }
    PTOWSP_ASSERT(axis < mesh->axis_count);
    for (uint32_t i = mesh->axis_count; i-- > axis + 1;) {
        rank /= mesh->sizes[i];
    }
    PTOWSP_ASSERT(axis > 0 || rank < mesh->sizes[0]);
    return rank % mesh->sizes[axis];
}

// -- layouts --------------------------------------------------------------------------------------

static ptowsp_status pwsp_layout_check_shape(ptowsp_context *context,
                                             const ptowsp_mesh_layout *layout) {
    if (!layout || !layout->name) {
        return pwsp_layout_fail(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                                "layout: it is NULL or has no name");
    }
    if (layout->rank > PTOWSP_TENSOR_RANK_MAX || layout->element_bytes == 0) {
        return pwsp_layout_fail(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                                "layout: tensor '%s' has %u dimensions (at most %d) and elements "
                                "of %u bytes",
                                layout->name, layout->rank, PTOWSP_TENSOR_RANK_MAX,
                                layout->element_bytes);
    }
    uint64_t bytes = layout->element_bytes;
    bool fits = true, is_empty = false;
    for (uint32_t d = 0; d < layout->rank; d++) {
        if (layout->shape[d] < 0) {
            return pwsp_layout_fail(context, PTOWSP_INVALID_PARAMS, d,
                                    "layout: dimension %u of tensor '%s' has size %lld", d,
                                    layout->name, (long long)layout->shape[d]);
        }
        is_empty = is_empty || layout->shape[d] == 0;
        fits = fits && pwsp_mul_fits(bytes, (uint64_t)layout->shape[d], &bytes);
    }
    if (!is_empty && (!fits || bytes > INT64_MAX)) {
        return pwsp_layout_fail(context, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                                "layout: the bytes of tensor '%s' do not fit 63 bits",
                                layout->name);
    }
    return PTOWSP_OK;
}

// Cuts of axis a, which are alone on their dimension, do not fall, and cover it.
static ptowsp_status pwsp_layout_check_cuts(ptowsp_context *context, const ptowsp_mesh *mesh,
                                            const ptowsp_mesh_layout *layout, uint32_t a) {
    const ptowsp_spread *spread = &layout->spreads[a];
    const uint32_t d = spread->dim, parts = mesh->sizes[a];
    for (uint32_t b = 0; b < mesh->axis_count; b++) {
        const ptowsp_spread *other = &layout->spreads[b];
        if (b != a && other->kind == PTOWSP_SHARDED && other->dim == d) {
            return pwsp_layout_fail(context, PTOWSP_INVALID_PARAMS, a,
                                    "layout: dimension %u of tensor '%s' is cut by axis '%s' at "
                                    "given places, and by axis '%s' too",
                                    d, layout->name, mesh->names[a], mesh->names[b]);
        }
    }
    bool is_valid = spread->cuts[0] == 0 && spread->cuts[parts] == layout->shape[d];
    for (uint32_t i = 0; i < parts; i++) {
        is_valid = is_valid && spread->cuts[i] <= spread->cuts[i + 1];
    }
    return is_valid
               ? PTOWSP_OK
               : pwsp_layout_fail(context, PTOWSP_INVALID_PARAMS, a,
                                  "layout: cuts of dimension %u of tensor '%s' along axis "
                                  "'%s' do not rise from 0 to %lld",
                                  d, layout->name, mesh->names[a], (long long)layout->shape[d]);
}

ptowsp_status ptowsp_mesh_layout_check(ptowsp_context *context, const ptowsp_mesh *mesh,
                                       const ptowsp_mesh_layout *layout) {
    ptowsp_status status = ptowsp_mesh_check(context, mesh, NULL);
    if (status == PTOWSP_OK) {
        status = pwsp_layout_check_shape(context, layout);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    uint64_t pieces[PTOWSP_TENSOR_RANK_MAX];  // at most PTOWSP_MESH_RANK_MAX
    for (uint32_t d = 0; d < PTOWSP_TENSOR_RANK_MAX; d++) {
        pieces[d] = 1;
    }
    ptowsp_spread_kind partial = PTOWSP_REPLICATED;  // maxima of sums are not sums of maxima
    for (uint32_t a = 0; a < mesh->axis_count; a++) {
        const ptowsp_spread *spread = &layout->spreads[a];
        const uint32_t d = spread->dim;
        if ((uint32_t)spread->kind > PTOWSP_PARTIAL_MAX ||
            (spread->kind == PTOWSP_SHARDED && d >= layout->rank)) {
            return pwsp_layout_fail(context, PTOWSP_INVALID_PARAMS, a,
                                    "layout: tensor '%s' of %u dimensions along axis '%s': kind "
                                    "%u, dimension %u",
                                    layout->name, layout->rank, mesh->names[a],
                                    (uint32_t)spread->kind, d);
        }
        const ptowsp_spread_kind kind = spread->kind;
        if (kind == PTOWSP_PARTIAL_SUM || kind == PTOWSP_PARTIAL_MAX) {
            if (partial != PTOWSP_REPLICATED && partial != kind) {
                return pwsp_layout_fail(context, PTOWSP_INVALID_PARAMS, a,
                                        "layout: tensor '%s' is both a partial sum and a partial "
                                        "maximum with axis '%s'",
                                        layout->name, mesh->names[a]);
            }
            partial = kind;
        }
        if (kind != PTOWSP_SHARDED) {
            continue;
        }
        if (spread->cuts) {
            status = pwsp_layout_check_cuts(context, mesh, layout, a);
            if (status != PTOWSP_OK) {
                return status;
            }
            continue;
        }
        pieces[d] *= mesh->sizes[a];
        if ((uint64_t)layout->shape[d] % pieces[d] != 0) {
            return pwsp_layout_fail(context, PTOWSP_UNSUPPORTED_SIZE, a,
                                    "layout: dimension %u of tensor '%s', of %lld, is not "
                                    "divided by %llu pieces with axis '%s'",
                                    d, layout->name, (long long)layout->shape[d],
                                    (unsigned long long)pieces[d], mesh->names[a]);
        }
    }
    return PTOWSP_OK;
}

PWSP_INTERNAL ptowsp_mesh_layout_part pwsp_layout_part(const ptowsp_mesh *mesh,
                                                       const ptowsp_mesh_layout *layout,
                                                       uint32_t rank) {
    PWSP_ZERO(ptowsp_mesh_layout_part, part);
    for (uint32_t d = 0; d < layout->rank; d++) {
        part.sizes[d] = layout->shape[d];
    }
    for (uint32_t a = 0; a < mesh->axis_count; a++) {
        const ptowsp_spread *spread = &layout->spreads[a];
        if (spread->kind != PTOWSP_SHARDED) {
            continue;
        }
        const uint32_t d = spread->dim, at = ptowsp_mesh_coordinate(mesh, rank, a);
        if (spread->cuts) {
            part.offsets[d] = spread->cuts[at];
            part.sizes[d] = spread->cuts[at + 1] - spread->cuts[at];
        } else {
            PTOWSP_ASSERT(part.sizes[d] % mesh->sizes[a] == 0);
            part.sizes[d] /= mesh->sizes[a];
            part.offsets[d] += part.sizes[d] * at;
        }
    }
    part.bytes = layout->element_bytes;
    for (uint32_t d = 0; d < layout->rank; d++) {
        PTOWSP_ASSERT(part.offsets[d] + part.sizes[d] <= layout->shape[d]);
        if (part.sizes[d] == 0) {  // others may be too large for a product
            part.bytes = 0;
            break;
        }
    }
    for (uint32_t d = 0; d < layout->rank && part.bytes > 0; d++) {
        part.bytes *= (uint64_t)part.sizes[d];
    }
    return part;
}

ptowsp_status ptowsp_mesh_layout_part_of(ptowsp_context *context, const ptowsp_mesh *mesh,
                                         const ptowsp_mesh_layout *layout, uint32_t rank,
                                         ptowsp_mesh_layout_part *out_part) {
    uint32_t rank_count = 0;
    ptowsp_status status = ptowsp_mesh_check(context, mesh, &rank_count);
    if (status == PTOWSP_OK) {
        status = ptowsp_mesh_layout_check(context, mesh, layout);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    if (rank >= rank_count || !out_part) {
        return pwsp_layout_fail(context, PTOWSP_INVALID_PARAMS, rank,
                                "layout: rank %u of %u for tensor '%s', or no part to write", rank,
                                rank_count, layout->name);
    }
    *out_part = pwsp_layout_part(mesh, layout, rank);
    return PTOWSP_OK;
}

// Piece i of a dimension that nothing else cuts differently ends here.
static int64_t pwsp_spread_cut(const ptowsp_spread *spread, int64_t dim_size, uint32_t parts,
                               uint32_t i) {
    return spread->cuts ? spread->cuts[i] : dim_size / parts * i;
}

PWSP_INTERNAL bool pwsp_spread_is_same(const ptowsp_spread *a, const ptowsp_spread *b,
                                       int64_t dim_size, uint32_t parts) {
    if (a->kind != b->kind || a->kind != PTOWSP_SHARDED) {
        return a->kind == b->kind;
    }
    if (a->dim != b->dim) {
        return false;
    }
    for (uint32_t i = 0; (a->cuts || b->cuts) && i <= parts; i++) {
        if (pwsp_spread_cut(a, dim_size, parts, i) != pwsp_spread_cut(b, dim_size, parts, i)) {
            return false;
        }
    }
    return true;
}

// -- text -----------------------------------------------------------------------------------------

void ptowsp_mesh_layout_print(const ptowsp_mesh *mesh, const ptowsp_mesh_layout *layout,
                              ptowsp_output output) {
    if (!mesh || !layout) {
        return;
    }
    pwsp_text_format(output, "%s[", layout->name);
    for (uint32_t d = 0; d < layout->rank; d++) {
        pwsp_text_format(output, "%s", d ? " x " : "");
        if (layout->shape[d] < 0) {  // of a module's tensor, known when it is bound
            pwsp_text_format(output, "?");
        } else {
            pwsp_text_format(output, "%lld", (long long)layout->shape[d]);
        }
    }
    pwsp_text_format(output, "] {");
    for (uint32_t a = 0; a < mesh->axis_count; a++) {
        const ptowsp_spread *spread = &layout->spreads[a];
        pwsp_text_format(output, "%s%s: ", a ? ", " : "", mesh->names[a]);
        switch (spread->kind) {
        case PTOWSP_REPLICATED: pwsp_text_format(output, "replicated"); break;
        case PTOWSP_PARTIAL_SUM: pwsp_text_format(output, "partial sum"); break;
        case PTOWSP_PARTIAL_MAX: pwsp_text_format(output, "partial max"); break;
        default:
            pwsp_text_format(output, "dim %u%s", spread->dim, spread->cuts ? " by cuts" : "");
            break;
        }
    }
    pwsp_text_format(output, "}");
}

PWSP_INTERNAL const char *pwsp_layout_text(const ptowsp_mesh *mesh,
                                           const ptowsp_mesh_layout *layout, char *out) {
    ptowsp_output_buffer buffer = {out, PWSP_LAYOUT_TEXT_MAX, 0};
    ptowsp_mesh_layout_print(mesh, layout, ptowsp_output_to_buffer(&buffer));
    return out;
}

PWSP_INTERNAL ptowsp_status pwsp_layout_fail_pair(ptowsp_context *context, const ptowsp_mesh *mesh,
                                                  const ptowsp_mesh_layout *a,
                                                  const ptowsp_mesh_layout *b, uint64_t axis,
                                                  const char *why) {
    char a_text[PWSP_LAYOUT_TEXT_MAX], b_text[PWSP_LAYOUT_TEXT_MAX];
    pwsp_layout_text(mesh, a, a_text);
    pwsp_layout_text(mesh, b, b_text);
    if (axis == PTOWSP_NO_INDEX) {
        return pwsp_layout_fail(context, PTOWSP_INVALID_PARAMS, axis, "layout: %s: %s and %s", why,
                                a_text, b_text);
    }
    return pwsp_layout_fail(context, PTOWSP_INVALID_PARAMS, axis,
                            "layout: axis '%s': %s: %s and %s", mesh->names[axis], why, a_text,
                            b_text);
}
