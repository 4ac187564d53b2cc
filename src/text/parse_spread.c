// Layouts from their text: the mesh of a module, how a tensor is spread, the rule of a kernel.

#include "parse.h"

PWSP_INTERNAL bool pwsp_parse_mesh(pwsp_parser *p) {
    char names[PTOWSP_MESH_AXIS_MAX][PTOWSP_NAME_MAX + 1];
    PWSP_ZERO(ptowsp_mesh, mesh);
    ptowsp_algorithm algorithm = PTOWSP_ALGORITHM_AUTO;
    do {
        const uint32_t a = mesh.axis_count;
        if (a == PTOWSP_MESH_AXIS_MAX) {
            return pwsp_parse_fail(p, "a mesh of more than %d axes", PTOWSP_MESH_AXIS_MAX);
        }
        if (!pwsp_parse_name(p, "an axis of a mesh", names[a]) ||
            !pwsp_parse_count(p, &mesh.sizes[a])) {
            return false;
        }
        mesh.names[a] = names[a];
        mesh.axis_count++;
    } while (pwsp_parse_try(p, ","));
    if (pwsp_parse_try(p, "by") && !pwsp_parse_algorithm(p, &algorithm)) {
        return false;
    }
    ptowsp_module_mesh(p->module, &mesh, algorithm);
    return pwsp_parse_built(p, p->line, p->start);
}

// One axis: "tp dim 1".
static bool pwsp_parse_spread(pwsp_parser *p, const ptowsp_mesh *mesh, ptowsp_spread *spreads) {
    char name[PTOWSP_NAME_MAX + 1];
    if (!pwsp_parse_name(p, "an axis of the mesh", name)) {
        return false;
    }
    uint32_t a = 0;
    while (mesh && a < mesh->axis_count && strcmp(mesh->names[a], name) != 0) {
        a++;
    }
    if (!mesh || a == mesh->axis_count) {
        return pwsp_parse_fail(p, "the mesh has no axis %s", name);
    }
    if (spreads[a].kind != PTOWSP_REPLICATED) {
        return pwsp_parse_fail(p, "axis %s is there twice", name);
    }
    if (pwsp_parse_try(p, "sum")) {
        spreads[a].kind = PTOWSP_PARTIAL_SUM;
    } else if (pwsp_parse_try(p, "max")) {
        spreads[a].kind = PTOWSP_PARTIAL_MAX;
    } else if (!pwsp_parse_try(p, "dim")) {
        return pwsp_parse_fail(p, "a spread is missing here: dim, sum or max");
    } else {
        spreads[a].kind = PTOWSP_SHARDED;
        return pwsp_parse_count(p, &spreads[a].dim);
    }
    return true;
}

PWSP_INTERNAL bool pwsp_parse_spreads(pwsp_parser *p, ptowsp_tensor tensor) {
    const ptowsp_mesh *mesh = p->module->mesh ? &p->module->mesh->mesh : NULL;
    ptowsp_spread spreads[PTOWSP_MESH_AXIS_MAX];
    memset(spreads, 0, sizeof spreads);
    if (!pwsp_parse_try(p, "spread")) {
        return true;
    }
    do {
        if (!pwsp_parse_spread(p, mesh, spreads)) {
            return false;
        }
    } while (pwsp_parse_try(p, ","));
    ptowsp_tensor_spread(p->module, tensor, spreads);
    return pwsp_parse_built(p, p->line, p->start);
}

PWSP_INTERNAL bool pwsp_parse_rule(pwsp_parser *p) {
    char name[PTOWSP_NAME_MAX + 1], rule[PTOWSP_NAME_MAX + 1];
    ptowsp_kernel kernel = {0};
    if (!pwsp_parse_name(p, "a kernel", name) || !pwsp_parse_name(p, "a rule", rule)) {
        return false;
    }
    const pwsp_name *found = pwsp_names_find(&p->module->kernel_names, name);
    kernel.id = found ? found->index : 0;
    if (kernel.id == 0) {
        return pwsp_parse_fail(p, "there is no kernel %s", name);
    }
    ptowsp_kernel_rule(p->module, kernel, rule);
    return pwsp_parse_built(p, p->line, p->start);
}
