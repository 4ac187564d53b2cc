// A module from its text: lines, declarations, and kernels that are attached by name.

#include "../base/text.h"
#include "../kernel/body_text.h"
#include "parse.h"

#include <inttypes.h>

// -- words of types -------------------------------------------------------------------------------

PWSP_PARSE_ONE_OF(PWSP_INTERNAL, pwsp_parse_type, ptowsp_type, pwsp_type_name, PTOWSP_TYPE_BOOL,
                  PTOWSP_TYPE_U64, pwsp_parse_fail(p, "a type is missing here: bool, i64 or u64"))

PWSP_PARSE_ONE_OF(PWSP_INTERNAL, pwsp_parse_dtype, ptowsp_dtype, ptowsp_dtype_name, PTOWSP_F16,
                  PTOWSP_BOOL, pwsp_parse_fail(p, "a data type is missing here"))

PWSP_PARSE_ONE_OF(static, pwsp_parse_location, ptowsp_location, ptowsp_location_name,
                  PTOWSP_LOCATION_GLOBAL, PTOWSP_LOCATION_L1,
                  pwsp_parse_fail(p, "a location is missing here: global, l2, ub or l1"))

PWSP_PARSE_ONE_OF(static, pwsp_parse_unit, ptowsp_unit, ptowsp_unit_name, 0, PTOWSP_UNIT_COUNT - 1,
                  pwsp_parse_fail(p, "a unit is missing here: vector, cube, mix or link"))

static bool pwsp_parse_size(pwsp_parser *p, int64_t *out_size) {
    uint64_t size = 0;
    if (pwsp_parse_try(p, "?")) {
        *out_size = PTOWSP_DYNAMIC;
        return true;
    }
    if (!pwsp_parse_number(p, INT64_MAX, &size)) {
        return false;
    }
    *out_size = (int64_t)size;
    return true;
}

// -- declarations ---------------------------------------------------------------------------------

static bool pwsp_parse_axis_line(pwsp_parser *p) {
    char name[PTOWSP_NAME_MAX + 1];
    if (!pwsp_parse_name(p, "an axis", name)) {
        return false;
    }
    ptowsp_module *m = p->module;
    if (pwsp_parse_try(p, "dynamic")) {
        ptowsp_axis_dynamic(m, name);
    } else if (pwsp_parse_try(p, "ragged")) {
        ptowsp_axis_ragged(m, name);
        ptowsp_dtype dtype = PTOWSP_DTYPE_NONE;
        if (p->token != PWSP_TOKEN_LINE_END && pwsp_parse_dtype(p, &dtype)) {
            ptowsp_array_at(m, name, dtype, ptowsp_i64(m, 0));
        }
    } else if (pwsp_parse_try(p, "sparse")) {
        ptowsp_axis_sparse(m, name);
    } else if (pwsp_parse_try(p, "plan")) {
        if (!pwsp_parse_try(p, ",")) {
            ptowsp_axis_plan(m, name);
        } else if (!pwsp_parse_expect(p, "its")) {
            return false;
        } else if (pwsp_parse_try(p, "lanes")) {
            ptowsp_axis_plan_lanes(m, name);
        } else if (pwsp_parse_expect(p, "merges")) {
            ptowsp_axis_plan_merges(m, name);
        }
    } else {
        uint64_t size = 0;
        if (!pwsp_parse_number(p, INT64_MAX, &size)) {
            return false;
        }
        ptowsp_axis_dense(m, name, (int64_t)size);
    }
    return pwsp_parse_built(p, p->line, p->start);
}

static bool pwsp_parse_symbol_line(pwsp_parser *p) {
    char name[PTOWSP_NAME_MAX + 1];
    if (!pwsp_parse_name(p, "a symbol", name)) {
        return false;
    }
    ptowsp_symbol(p->module, name);
    return pwsp_parse_built(p, p->line, p->start);
}

static bool pwsp_parse_array_line(pwsp_parser *p) {
    char name[PTOWSP_NAME_MAX + 1];
    ptowsp_dtype dtype = PTOWSP_DTYPE_NONE;
    if (!pwsp_parse_name(p, "an array", name) || !pwsp_parse_dtype(p, &dtype)) {
        return false;
    }
    ptowsp_array_at(p->module, name, dtype, ptowsp_i64(p->module, 0));
    return pwsp_parse_built(p, p->line, p->start);
}

// A number, "?", or of a transient tensor an expression; what folds to a number is one.
static bool pwsp_parse_tensor_size(pwsp_parser *p, int64_t *out_size, ptowsp_expr *out_expr) {
    if (pwsp_parse_is(p, "?")) {
        return pwsp_parse_size(p, out_size);
    }
    if (!pwsp_parse_expr(p, out_expr)) {
        return false;
    }
    const pwsp_expr_node *node = &p->module->exprs.nodes[out_expr->id];
    *out_size = PTOWSP_DYNAMIC;
    if (node->op == PWSP_EXPR_CONST && node->type == PTOWSP_TYPE_I64) {
        *out_size = (int64_t)node->value;
        out_expr->id = 0;
        out_expr->module = NULL;
    }
    return true;
}

static bool pwsp_parse_tensor_line(pwsp_parser *p) {
    char name[PTOWSP_NAME_MAX + 1];
    PWSP_ZERO(ptowsp_tensor_desc, desc);
    ptowsp_expr sizes[PTOWSP_TENSOR_RANK_MAX];
    memset(sizes, 0, sizeof sizes);
    if (!pwsp_parse_name(p, "a tensor", name) || !pwsp_parse_dtype(p, &desc.dtype) ||
        !pwsp_parse_expect(p, "[")) {
        return false;
    }
    while (!pwsp_parse_is(p, "]")) {
        if (desc.rank > 0 && !pwsp_parse_expect(p, ",")) {
            return false;
        }
        if (desc.rank == PTOWSP_TENSOR_RANK_MAX) {
            return pwsp_parse_fail(p, "more than %d dimensions", PTOWSP_TENSOR_RANK_MAX);
        }
        if (!pwsp_parse_tensor_size(p, &desc.shape[desc.rank], &sizes[desc.rank])) {
            return false;
        }
        desc.rank++;
    }
    pwsp_parse_next(p);
    if (!pwsp_parse_location(p, &desc.location)) {
        return false;
    }
    desc.name = name;
    bool has_sizes = false;
    for (uint32_t i = 0; i < desc.rank; i++) {
        has_sizes = has_sizes || sizes[i].id;
    }
    ptowsp_tensor tensor = {0};
    if (pwsp_parse_try(p, "transient")) {
        tensor = ptowsp_tensor_transient(p->module, &desc, sizes);
    } else if (has_sizes) {
        return pwsp_parse_fail(p, "a size by an expression is for transient tensors");
    } else {
        tensor = ptowsp_tensor_make(p->module, &desc);
    }
    return pwsp_parse_built(p, p->line, p->start) && pwsp_parse_spreads(p, tensor);
}

// -- kernels --------------------------------------------------------------------------------------

PWSP_PARSE_ONE_OF(static, pwsp_parse_try_direction, ptowsp_direction, pwsp_direction_name,
                  PTOWSP_IN, PTOWSP_INOUT, false)

static bool pwsp_parse_params(pwsp_parser *p, ptowsp_kernel_desc *desc) {
    uint32_t tiles = 0, scalars = 0;
    while (pwsp_parse_try(p, ",")) {
        ptowsp_direction direction = PTOWSP_IN;
        if (!pwsp_parse_try_direction(p, &direction)) {
            if (scalars == PTOWSP_TASK_SCALAR_MAX) {
                return pwsp_parse_fail(p, "more than %d scalars", PTOWSP_TASK_SCALAR_MAX);
            }
            if (!pwsp_parse_kept_name(p, &p->arena, "a parameter", &desc->scalars[scalars].name) ||
                !pwsp_parse_type(p, &desc->scalars[scalars].type)) {
                return false;
            }
            scalars++;
            continue;
        }
        if (tiles == PTOWSP_TASK_TILE_MAX) {
            return pwsp_parse_fail(p, "more than %d tiles", PTOWSP_TASK_TILE_MAX);
        }
        ptowsp_tile_param *tile = &desc->tiles[tiles++];
        tile->direction = direction;
        if (!pwsp_parse_kept_name(p, &p->arena, "a parameter", &tile->name) ||
            !pwsp_parse_dtype(p, &tile->dtype) || !pwsp_parse_size(p, &tile->rows) ||
            !pwsp_parse_expect(p, "x") || !pwsp_parse_size(p, &tile->cols)) {
            return false;
        }
    }
    return pwsp_parse_expect(p, ")");
}

// The part of a kernel's line after its unit.
typedef struct pwsp_parse_kind {
    bool has_cost, is_tile, is_time_only, is_pto;
} pwsp_parse_kind;

static bool pwsp_parse_words(pwsp_parser *p, const char (*words)[12]) {
    for (; (*words)[0] != '\0'; words++) {
        if (!pwsp_parse_expect(p, *words)) {
            return false;
        }
    }
    return true;
}

static bool pwsp_parse_kind_of(pwsp_parser *p, ptowsp_kernel_desc *desc, pwsp_parse_kind *kind) {
    static const char cost[][12] = {"by", "a", "cost", "function", ""};
    static const char pto[][12] = {"PTO", "-", "ISA", "source", ""};
    static const char tiles[][12] = {"of", "its", "tiles", ""};
    memset(kind, 0, sizeof *kind);
    while (pwsp_parse_try(p, ",")) {
        if (pwsp_parse_try(p, "cycles")) {
            kind->has_cost = true;
            if (!pwsp_parse_words(p, cost)) {
                return false;
            }
        } else if (pwsp_parse_try(p, "bytes")) {
            desc->bytes = PTOWSP_TILE_BYTES;
            if (!pwsp_parse_words(p, tiles)) {
                return false;
            }
        } else if (pwsp_parse_try(p, "time")) {
            kind->is_time_only = true;
            if (!pwsp_parse_expect(p, "only")) {
                return false;
            }
        } else if (pwsp_parse_try(p, "a")) {
            kind->is_pto = true;
            if (!pwsp_parse_words(p, pto)) {
                return false;
            }
        } else {
            uint64_t count = 0;
            if (!pwsp_parse_number(p, UINT64_MAX, &count)) {
                return false;
            }
            if (pwsp_parse_try(p, "bytes")) {
                desc->bytes = count;
                continue;
            }
            kind->is_tile = pwsp_parse_try(p, "instructions");
            if (!kind->is_tile) {
                desc->cycles = count;
                if (!pwsp_parse_expect(p, "cycles")) {
                    return false;
                }
            }
        }
    }
    return true;
}

PWSP_INTERNAL bool pwsp_kernel_is_like(const pwsp_kernel_info *kernel,
                                       const ptowsp_kernel_desc *desc) {
    uint32_t tiles = 0, scalars = 0;
    bool is_like = strcmp(kernel->name, desc->name) == 0 && kernel->axis_count == desc->axis_count;
    for (; is_like && tiles < PTOWSP_TASK_TILE_MAX && desc->tiles[tiles].name; tiles++) {
        const ptowsp_tile_param *made = &kernel->tiles[tiles];
        const ptowsp_tile_param *tile = &desc->tiles[tiles];
        is_like = tiles < kernel->tile_count && strcmp(made->name, tile->name) == 0 &&
                  made->direction == tile->direction && made->dtype == tile->dtype &&
                  made->rows == tile->rows && made->cols == tile->cols;
    }
    for (; is_like && scalars < PTOWSP_TASK_SCALAR_MAX && desc->scalars[scalars].name; scalars++) {
        is_like = scalars < kernel->scalar_count &&
                  strcmp(kernel->scalars[scalars].name, desc->scalars[scalars].name) == 0 &&
                  kernel->scalars[scalars].type == desc->scalars[scalars].type;
    }
    return is_like && tiles == kernel->tile_count && scalars == kernel->scalar_count;
}

// Is the next line that is not empty further right?
static bool pwsp_parse_is_body_next(const pwsp_parser *p) {
    size_t at = p->at;
    for (;;) {
        while (at < p->length && p->text[at] != '\n') {
            at++;
        }
        const size_t begin = ++at;
        while (at < p->length && p->text[at] == ' ') {
            at++;
        }
        if (at >= p->length || !strchr("#\r\n", p->text[at])) {
            return at < p->length && at > begin;
        }
    }
}

static bool pwsp_parse_attach(pwsp_parser *p, ptowsp_kernel_desc *desc,
                              const pwsp_parse_kind *kind) {
    const ptowsp_parse_kernel *given = NULL;
    const pwsp_name *found = pwsp_names_find(&p->attached, desc->name);
    // Past the first one only where another name has its hash.
    for (uint32_t i = found ? found->index : UINT32_MAX; i < p->desc->kernel_count && !given; i++) {
        given = strcmp(p->desc->kernels[i].name, desc->name) == 0 ? &p->desc->kernels[i] : NULL;
    }
    const bool has_body = kind->is_tile && pwsp_parse_is_body_next(p);
    p->column = p->start;
    p->is_body_passed = has_body && (!PWSP_BODY_IS_READ || (given && given->make));
    if (has_body && !p->is_body_passed) {
        return pwsp_parse_body_begin(p, desc);
    }
    if (given && given->make) {
        ptowsp_kernel made = given->make(p->module, given->user);
        if (!pwsp_parse_built(p, p->line, p->start)) {
            return false;
        }
        return (made.id && made.id < p->module->kernels.count &&
                pwsp_kernel_is_like(PWSP_KERNEL(p->module, made.id), desc)) ||
               pwsp_parse_fail(p, "kernel %s: what is attached has other parameters", desc->name);
    }
    if (given) {
        desc->fn = kind->is_time_only ? NULL : given->fn;
        desc->cost = kind->has_cost ? given->cost : NULL;
        desc->user = given->user;
        desc->source = given->source;
        desc->pto = kind->is_pto ? given->pto : NULL;
    }
    const bool has_all = (desc->fn || kind->is_time_only || (kind->is_pto && desc->pto)) &&
                         (desc->cost || !kind->has_cost) && !kind->is_tile;
    if (!has_all && p->desc->default_cycles == 0) {
        return pwsp_parse_fail(p, "kernel %s: %s is not attached", desc->name,
                               kind->is_tile                   ? "its tile kernel"
                               : kind->has_cost && !desc->cost ? "its cost function"
                                                               : "its function");
    }
    if (!desc->cost && desc->cycles == 0 && !desc->fn && !desc->pto) {
        desc->cycles = p->desc->default_cycles;
    }
    ptowsp_kernel_make(p->module, desc);
    return pwsp_parse_built(p, p->line, p->start);
}

static bool pwsp_parse_kernel(pwsp_parser *p) {
    char name[PTOWSP_NAME_MAX + 1];
    PWSP_ZERO(ptowsp_kernel_desc, desc);
    pwsp_parse_kind kind;
    uint64_t axis_count = 0;
    if (!pwsp_parse_name(p, "a kernel", name) || !pwsp_parse_expect(p, "(") ||
        !pwsp_parse_expect(p, "axes") || !pwsp_parse_number(p, UINT32_MAX, &axis_count) ||
        !pwsp_parse_params(p, &desc)) {
        return false;
    }
    desc.name = name;
    desc.axis_count = (uint32_t)axis_count;
    if (pwsp_parse_try(p, ptowsp_unit_name(PTOWSP_UNIT_LINK))) {
        return pwsp_parse_collective(p, &desc);
    }
    if (!pwsp_parse_unit(p, &desc.unit) || !pwsp_parse_kind_of(p, &desc, &kind)) {
        return false;
    }
    if (p->token != PWSP_TOKEN_LINE_END) {
        return pwsp_parse_fail(p, "the line goes on behind what it says");
    }
    return pwsp_parse_attach(p, &desc, &kind);
}

// -- lines ----------------------------------------------------------------------------------------

static bool pwsp_parse_module_line(pwsp_parser *p, ptowsp_context *context) {
    char name[PTOWSP_NAME_MAX + 1];
    ptowsp_module_desc desc = {name, 0};
    uint64_t slots = 0;
    if (!pwsp_parse_expect(p, "module") || !pwsp_parse_name(p, "the module", name) ||
        (pwsp_parse_try(p, "slots") && !pwsp_parse_number(p, UINT32_MAX, &slots))) {
        return false;
    }
    desc.slot_count = (uint32_t)slots;
    ptowsp_status status = ptowsp_module_create(context, &desc, &p->module);
    if (status != PTOWSP_OK) {
        pwsp_parse_fail(p, "%s", ptowsp_context_error(context).text);
        p->status = status;
    }
    return status == PTOWSP_OK;
}

static void pwsp_parse_close(pwsp_parser *p, uint64_t depth) {
    while (p->scope_count > depth) {
        p->variables = p->scopes[--p->scope_count];
        ptowsp_scope_end(p->module);
    }
}

static bool pwsp_parse_declaration(pwsp_parser *p) {
    return pwsp_parse_try(p, "axis")       ? pwsp_parse_axis_line(p)
           : pwsp_parse_try(p, "symbol")   ? pwsp_parse_symbol_line(p)
           : pwsp_parse_try(p, "array")    ? pwsp_parse_array_line(p)
           : pwsp_parse_try(p, "tensor")   ? pwsp_parse_tensor_line(p)
           : pwsp_parse_try(p, "kernel")   ? pwsp_parse_kernel(p)
           : pwsp_parse_try(p, "mesh")     ? pwsp_parse_mesh(p)
           : pwsp_parse_try(p, "rule")     ? pwsp_parse_rule(p)
           : pwsp_parse_try(p, "workload") ? pwsp_parse_workload(p)
           : p->saved && pwsp_parse_try(p, "program")
               ? pwsp_parse_name(p, "a workload", p->saved->workload)
           : p->saved && pwsp_parse_try(p, "schedule")
               ? (p->is_in_schedule = true)
               : pwsp_parse_fail(p, "no declaration begins like this");
}

// Reads one line and moves past it; false with an error.
static bool pwsp_parse_line(pwsp_parser *p, ptowsp_context *context) {
    p->line_start = p->at;
    pwsp_parse_next(p);
    p->start = p->column;
    if (p->token != PWSP_TOKEN_LINE_END) {
        const uint64_t indent = p->start - 1;
        if (!p->module) {
            pwsp_parse_module_line(p, context);
        } else if (p->is_in_schedule && indent == 2) {
            pwsp_parse_directive(p, &p->saved->schedule);
        } else if (p->is_body_passed && indent > 0) {
            p->token = PWSP_TOKEN_LINE_END;
        } else if (p->is_in_body && indent > 0) {
            pwsp_parse_body_line(p);
        } else if (indent % 2 != 0 || indent / 2 > p->scope_count) {
            pwsp_parse_fail(p, "%" PRIu64 " spaces before a line that may have %u at most, in twos",
                            indent, p->scope_count * 2);
        } else {
            pwsp_parse_close(p, indent / 2);
            p->is_in_schedule = p->is_body_passed = false;
            if (pwsp_parse_body_end(p) &&
                (indent ? pwsp_parse_statement(p) : pwsp_parse_declaration(p))) {
                pwsp_parse_built(p, p->line, p->start);
            }
        }
        if (!p->is_failed && p->token != PWSP_TOKEN_LINE_END) {
            pwsp_parse_fail(p, "the line goes on behind what it says");
        }
    }
    while (p->at < p->length && p->text[p->at] != '\n') {
        p->at++;
    }
    p->at++;
    return !p->is_failed;
}

static bool pwsp_parse_attached(pwsp_parser *p, const pwsp_memory *memory) {
    for (uint32_t i = 0; i < p->desc->kernel_count; i++) {
        const char *name = p->desc->kernels[i].name;
        if (!pwsp_names_find(&p->attached, name) &&
            !pwsp_names_add(&p->attached, memory, name, 0, i)) {
            return pwsp_parse_no_memory(p);
        }
    }
    return true;
}

PWSP_INTERNAL ptowsp_status pwsp_parse_text(ptowsp_context *context, const char *text,
                                            size_t length, uint64_t first_line,
                                            const ptowsp_parse_desc *desc, pwsp_parse_saved *saved,
                                            ptowsp_module **out_module,
                                            ptowsp_text_place *out_place) {
    const ptowsp_parse_desc none = {NULL, 0, 0};
    pwsp_parser p;
    if (desc && !desc->kernels && desc->kernel_count > 0) {
        return pwsp_fail_null(context, "parse: desc.kernels");
    }
    memset(&p, 0, sizeof p);
    p.desc = desc ? desc : &none;
    p.saved = saved;
    p.text = text;
    p.length = length;
    pwsp_arena_init(&p.arena, &context->memory);
    p.line = first_line;
    const size_t mark = strlen(PWSP_BYTE_ORDER_MARK);
    if (length >= mark && memcmp(text, PWSP_BYTE_ORDER_MARK, mark) == 0) {
        p.column = 1;
        pwsp_parse_fail(&p, "the text begins with a byte-order mark");
    }
    bool is_good = !p.is_failed && pwsp_parse_attached(&p, &context->memory);
    for (; is_good && p.at < length && pwsp_parse_line(&p, context); p.line++) {
    }
    pwsp_parse_body_end(&p);
    if (!p.is_failed && !p.module) {
        p.column = 1;
        pwsp_parse_fail(&p, "a text without a module");
    }
    if (!p.is_failed) {
        pwsp_parse_close(&p, 0);
        pwsp_parse_built(&p, p.line, 1);  // errors found when a workload is complete
    }
    PWSP_FREE(&context->memory, p.nodes.items, p.nodes.capacity);
    PWSP_FREE(&context->memory, p.values.items, p.values.capacity);
    pwsp_names_free(&p.attached, &context->memory);
    pwsp_arena_free(&p.arena);
    if (!p.is_failed) {
        *out_module = p.module;
        return PTOWSP_OK;
    }
    ptowsp_module_destroy(p.module);
    if (out_place) {
        out_place->line = p.line;
        out_place->column = p.column;
    }
    return pwsp_fail(context, p.status, p.line, "%" PRIu64 ":%" PRIu64 ": %s", p.line, p.column,
                     p.error);
}

ptowsp_status ptowsp_module_parse(ptowsp_context *context, const char *text, size_t length,
                                  const ptowsp_parse_desc *desc, ptowsp_module **out_module,
                                  ptowsp_text_place *out_place) {
    PTOWSP_ASSERT(context);
    if (out_place) {
        out_place->line = out_place->column = 0;
    }
    if (!out_module || (!text && length > 0)) {
        return PWSP_REFUSE(context, "parse: text or out_module is NULL");
    }
    *out_module = NULL;
    return pwsp_parse_text(context, text, length, 1, desc, NULL, out_module, out_place);
}
