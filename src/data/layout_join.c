// Joins of two layouts at an operation: the table of the header, axis by axis of the mesh. Along an
// axis an operand has a class, a letter:
//
//      r  replicated    +  partial sum    ^  partial max
//      s  sharded by a dimension that the result has at the same place
//      m, k, n  sharded by a dimension of a product

#include "layout.h"

typedef struct pwsp_join_rule {
    ptowsp_join join;
    char a, b, result;
} pwsp_join_rule;

static const pwsp_join_rule pwsp_join_rules[] = {
    {PTOWSP_JOIN_ADD, 'r', 'r', 'r'},      {PTOWSP_JOIN_ADD, 's', 's', 's'},
    {PTOWSP_JOIN_ADD, '+', '+', '+'},      {PTOWSP_JOIN_MULTIPLY, 'r', 'r', 'r'},
    {PTOWSP_JOIN_MULTIPLY, 's', 's', 's'}, {PTOWSP_JOIN_MULTIPLY, '+', 'r', '+'},
    {PTOWSP_JOIN_MULTIPLY, 'r', '+', '+'}, {PTOWSP_JOIN_MAX, 'r', 'r', 'r'},
    {PTOWSP_JOIN_MAX, 's', 's', 's'},      {PTOWSP_JOIN_MAX, '^', '^', '^'},
    {PTOWSP_JOIN_MAX, '^', 'r', '^'},      {PTOWSP_JOIN_MAX, 'r', '^', '^'},
    {PTOWSP_JOIN_MATMUL, 'r', 'r', 'r'},   {PTOWSP_JOIN_MATMUL, 'm', 'r', 'm'},
    {PTOWSP_JOIN_MATMUL, 'r', 'n', 'n'},   {PTOWSP_JOIN_MATMUL, 'k', 'k', '+'},
    {PTOWSP_JOIN_MATMUL, '+', 'r', '+'},   {PTOWSP_JOIN_MATMUL, 'r', '+', '+'},
    {PTOWSP_JOIN_MATMUL, 's', 's', 's'},
};

static char pwsp_join_class(ptowsp_join join, const ptowsp_mesh_layout *layout,
                            const ptowsp_spread *spread, bool is_right) {
    switch (spread->kind) {
    case PTOWSP_REPLICATED: return 'r';
    case PTOWSP_PARTIAL_SUM: return '+';
    case PTOWSP_PARTIAL_MAX: return '^';
    default: break;
    }
    if (join != PTOWSP_JOIN_MATMUL || spread->dim + 2 < layout->rank) {
        return 's';
    }
    bool is_last = spread->dim + 1 == layout->rank;
    return is_right ? (is_last ? 'n' : 'k') : (is_last ? 'k' : 'm');
}

// The shape of the result; NULL, or the reason why the shapes do not match.
static const char *pwsp_join_shape(ptowsp_join join, const ptowsp_mesh_layout *a,
                                   const ptowsp_mesh_layout *b, int64_t *out_shape) {
    const uint32_t rank = a->rank;
    const bool is_matmul = join == PTOWSP_JOIN_MATMUL;
    if (rank != b->rank || (is_matmul && rank < 2)) {
        return "numbers of dimensions do not fit";
    }
    for (uint32_t d = 0; d < rank; d++) {
        if (!(is_matmul && d + 2 >= rank) && a->shape[d] != b->shape[d]) {
            return "shapes differ";
        }
        out_shape[d] = a->shape[d];
    }
    if (is_matmul) {
        if (a->shape[rank - 1] != b->shape[rank - 2]) {
            return "the inner sizes of the product differ";
        }
        out_shape[rank - 1] = b->shape[rank - 1];
    }
    return NULL;
}

// The rule of an axis, if both operands have the same pieces where it needs them; else NULL.
static const pwsp_join_rule *pwsp_join_find(ptowsp_join join, const ptowsp_mesh_layout *a,
                                            const ptowsp_mesh_layout *b, uint32_t axis,
                                            uint32_t parts) {
    const ptowsp_spread *x = &a->spreads[axis];
    ptowsp_spread y = b->spreads[axis];
    const char x_class = pwsp_join_class(join, a, x, false);
    const char y_class = pwsp_join_class(join, b, &y, true);
    for (size_t i = 0; i < sizeof pwsp_join_rules / sizeof pwsp_join_rules[0]; i++) {
        const pwsp_join_rule *rule = &pwsp_join_rules[i];
        if (rule->join != join || rule->a != x_class || rule->b != y_class) {
            continue;
        }
        if (x_class == 'k') {
            y.dim = x->dim;  // the same dimension of the product
        }
        const bool are_pieces = x_class == 'k' || x_class == 's';
        return !are_pieces || pwsp_spread_is_same(x, &y, a->shape[x->dim], parts) ? rule : NULL;
    }
    return NULL;
}

ptowsp_status ptowsp_mesh_layout_join(ptowsp_context *context, const ptowsp_mesh *mesh,
                                      ptowsp_join join, const ptowsp_mesh_layout *a,
                                      const ptowsp_mesh_layout *b, const char *name,
                                      ptowsp_mesh_layout *out_layout) {
    ptowsp_status status = ptowsp_mesh_layout_check(context, mesh, a);
    if (status == PTOWSP_OK) {
        status = ptowsp_mesh_layout_check(context, mesh, b);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    if ((uint32_t)join > PTOWSP_JOIN_MATMUL || !name || !out_layout) {
        return pwsp_layout_fail_pair(context, mesh, a, b, PTOWSP_NO_INDEX,
                                     "no such operation, no name or no result");
    }
    PWSP_ZERO(ptowsp_mesh_layout, made);
    const char *why = pwsp_join_shape(join, a, b, made.shape);
    if (why) {
        return pwsp_layout_fail_pair(context, mesh, a, b, PTOWSP_NO_INDEX, why);
    }
    made.name = name;
    made.element_bytes = a->element_bytes;
    made.rank = a->rank;
    for (uint32_t axis = 0; axis < mesh->axis_count; axis++) {
        const pwsp_join_rule *rule = pwsp_join_find(join, a, b, axis, mesh->sizes[axis]);
        if (!rule) {
            static const char operations[][24] = {"a sum", "a product by element", "a maximum",
                                                  "a matrix product"};
            char line[80];
            pwsp_text_into(line, sizeof line, "no rule for %s of these", operations[join]);
            return pwsp_layout_fail_pair(context, mesh, a, b, axis, line);
        }
        if (rule->result == '+') {
            made.spreads[axis].kind = PTOWSP_PARTIAL_SUM;
        } else {
            made.spreads[axis] = rule->result == rule->a ? a->spreads[axis] : b->spreads[axis];
        }
    }
    // The product of an outer layout may be larger than its operands: 63 bits must hold it too.
    status = ptowsp_mesh_layout_check(context, mesh, &made);
    if (status == PTOWSP_OK) {
        *out_layout = made;
    }
    return status;
}
