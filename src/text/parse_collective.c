// Kernels that communicate, from their text.
//
//      collective = kind {", " option}          after "link, "
//      option     = "sum" | "max" | "min" | "by" algorithm | "members" number | "stride" number
//                 | "counts" name | "in" "columns" | "out" "columns"

#include "parse.h"

PWSP_PARSE_ONE_OF(static, pwsp_parse_collective_kind, ptowsp_collective_kind,
                  ptowsp_collective_name, PTOWSP_ALL_REDUCE, PTOWSP_SLICE,
                  pwsp_parse_fail(p, "a collective is missing here: all_reduce, reduce_scatter, "
                                     "all_gather, all_to_all, broadcast, send or slice"))

PWSP_PARSE_ONE_OF(
    PWSP_INTERNAL, pwsp_parse_algorithm, ptowsp_algorithm, ptowsp_algorithm_name,
    PTOWSP_ALGORITHM_DIRECT, PTOWSP_ALGORITHM_RING,
    pwsp_parse_fail(p, "an algorithm is missing here: direct, doubling, hierarchical or ring"))

PWSP_PARSE_ONE_OF(static, pwsp_parse_try_reduction, ptowsp_reduction, pwsp_reduction_name,
                  PTOWSP_REDUCTION_SUM, PTOWSP_REDUCTION_MIN, false)

// An option; `counts` has room for a name.
static bool pwsp_parse_collective_option(pwsp_parser *p, ptowsp_collective_desc *desc,
                                         char *counts) {
    if (pwsp_parse_try_reduction(p, &desc->reduction)) {
        return true;
    }
    if (pwsp_parse_try(p, "by")) {
        return pwsp_parse_algorithm(p, &desc->algorithm);
    }
    if (pwsp_parse_try(p, "members")) {
        return pwsp_parse_count(p, &desc->members);
    }
    if (pwsp_parse_try(p, "stride")) {
        return pwsp_parse_count(p, &desc->stride);
    }
    if (pwsp_parse_try(p, "counts")) {
        desc->counts = counts;
        return pwsp_parse_name(p, "an array", counts);
    }
    if (pwsp_parse_try(p, "in")) {
        desc->in_columns = true;
        return pwsp_parse_expect(p, "columns");
    }
    if (pwsp_parse_try(p, "out")) {
        desc->out_columns = true;
        return pwsp_parse_expect(p, "columns");
    }
    return pwsp_parse_fail(p, "a collective has no such option: sum, max, min, by, members, "
                              "stride, counts, in, "
                              "out");
}

PWSP_INTERNAL bool pwsp_parse_collective(pwsp_parser *p, const ptowsp_kernel_desc *params) {
    ptowsp_collective_desc desc;
    char counts[PTOWSP_NAME_MAX + 1];
    memset(&desc, 0, sizeof desc);
    desc.name = params->name;
    desc.dtype = params->tiles[0].dtype;
    if (!pwsp_parse_expect(p, ",") || !pwsp_parse_collective_kind(p, &desc.kind)) {
        return false;
    }
    desc.is_apart = desc.kind == PTOWSP_ALL_REDUCE && params->tiles[1].name != NULL;
    while (pwsp_parse_try(p, ",")) {
        if (!pwsp_parse_collective_option(p, &desc, counts)) {
            return false;
        }
    }
    if (p->token != PWSP_TOKEN_LINE_END) {
        return pwsp_parse_fail(p, "the line goes on behind what it says");
    }
    p->column = p->start;
    const ptowsp_kernel kernel = ptowsp_kernel_collective(p->module, &desc);
    if (!pwsp_parse_built(p, p->line, p->start)) {
        return false;
    }
    return pwsp_kernel_is_like(PWSP_KERNEL(p->module, kernel.id), params) ||
           pwsp_parse_fail(p, "kernel %s: %s has other parameters", desc.name,
                           ptowsp_collective_name(desc.kind));
}
