// Workloads of a module's text: one statement for each line, scopes by indentation.

#include "parse.h"

// -- scopes and names -----------------------------------------------------------------------------

// The builder has opened a scope, or has failed.
static bool pwsp_parse_open(pwsp_parser *p) {
    if (!pwsp_parse_built(p, p->line, p->start)) {
        return false;
    }
    PTOWSP_ASSERT(p->scope_count <= PTOWSP_MODULE_NEST_MAX);
    p->scopes[p->scope_count++] = p->variables;
    return true;
}

static bool pwsp_parse_declare(pwsp_parser *p, const char *name, ptowsp_expr expr) {
    if (!pwsp_parse_built(p, p->line, p->start)) {
        return false;
    }
    pwsp_parse_variable *variable = PWSP_ARENA_ARRAY(&p->arena, pwsp_parse_variable, 1);
    const char *copy = variable ? pwsp_arena_copy(&p->arena, name) : NULL;
    if (!copy) {
        return pwsp_parse_no_memory(p);
    }
    variable->next = p->variables;
    variable->name = copy;
    variable->expr = expr;
    p->variables = variable;
    return true;
}

static uint32_t pwsp_parse_channel_of(const pwsp_parser *p, const char *name) {
    const pwsp_name *found = pwsp_names_get(&p->module->channel_names, name);
    return found ? found->index : 0;
}

static bool pwsp_parse_channel_name(pwsp_parser *p, ptowsp_channel *out_channel) {
    char name[PTOWSP_NAME_MAX + 1];
    const uint64_t column = p->column;
    if (!pwsp_parse_name(p, "a channel or event", name)) {
        return false;
    }
    out_channel->id = pwsp_parse_channel_of(p, name);
    if (out_channel->id == 0) {
        return pwsp_parse_fail_at(p, column, "there is no channel or event %s", name);
    }
    return true;
}

PWSP_INTERNAL bool pwsp_parse_axis(pwsp_parser *p, ptowsp_axis *out_axis) {
    char name[PTOWSP_NAME_MAX + 1], which[PTOWSP_NAME_MAX + 1];
    const uint64_t column = p->column;
    if (!pwsp_parse_name(p, "an axis", name)) {
        return false;
    }
    pwsp_axis_kind plan = PWSP_AXIS_PLAN;
    memcpy(which, name, sizeof which);
    if (pwsp_parse_try(p, "of")) {
        plan = strcmp(which, "lanes") == 0 ? PWSP_AXIS_PLAN_LANES : PWSP_AXIS_PLAN_MERGES;
        if (!pwsp_parse_name(p, "a plan", name)) {
            return false;
        }
    }
    out_axis->id = pwsp_module_axis(p->module, name, plan);
    if (out_axis->id == 0) {
        return pwsp_parse_fail_at(p, column, "there is no axis %s of this kind", name);
    }
    ptowsp_expr row;
    if (pwsp_parse_try(p, "[")) {
        if (!pwsp_parse_expr(p, &row) || !pwsp_parse_expect(p, "]")) {
            return false;
        }
        *out_axis = ptowsp_axis_row(p->module, *out_axis, row);
    }
    return pwsp_parse_built(p, p->line, column);
}

static bool pwsp_parse_exprs(pwsp_parser *p, uint32_t max, ptowsp_expr *exprs,
                             uint32_t *out_count) {
    *out_count = 0;
    if (!pwsp_parse_expect(p, "(")) {
        return false;
    }
    while (!pwsp_parse_is(p, ")")) {
        if (*out_count > 0 && !pwsp_parse_expect(p, ",")) {
            return false;
        }
        if (*out_count == max) {
            return pwsp_parse_fail(p, "more than %u arguments", max);
        }
        if (!pwsp_parse_expr(p, &exprs[(*out_count)++])) {
            return false;
        }
    }
    return pwsp_parse_expect(p, ")");
}

// "(row, column)", in which a bare 0 means none.
static bool pwsp_parse_pair(pwsp_parser *p, ptowsp_expr *out_row, ptowsp_expr *out_col) {
    ptowsp_expr *both[2] = {out_row, out_col};
    bool is_good = pwsp_parse_expect(p, "(");
    for (uint32_t i = 0; is_good && i < 2; i++) {
        bool is_zero = p->token == PWSP_TOKEN_NUMBER && p->number == 0 && p->at < p->length &&
                       p->text[p->at] == (i ? ')' : ',');
        is_good = pwsp_parse_expr(p, both[i]) && pwsp_parse_expect(p, i ? ")" : ",");
        if (is_good && is_zero) {
            both[i]->module = NULL;
            both[i]->id = 0;
        }
    }
    return is_good;
}

// -- tasks ----------------------------------------------------------------------------------------

static bool pwsp_parse_extent(pwsp_parser *p, int64_t *out_extent) {
    uint64_t extent = 0;
    if (!pwsp_parse_try(p, "edge") && !pwsp_parse_number(p, INT32_MAX, &extent)) {
        return false;
    }
    *out_extent = (int64_t)extent;
    return true;
}

// Skips a word of a view, unless it is the name of the next argument: "up = t at (1, 2)".
static bool pwsp_parse_try_of_view(pwsp_parser *p, const char *word) {
    size_t at = p->at;
    while (at < p->length && p->text[at] == ' ') {
        at++;
    }
    return (at == p->length || p->text[at] != '=') && pwsp_parse_try(p, word);
}

static bool pwsp_parse_view(pwsp_parser *p, ptowsp_view *view) {
    char name[PTOWSP_NAME_MAX + 1];
    const uint64_t column = p->column;
    memset(view, 0, sizeof *view);
    if (!pwsp_parse_name(p, "a tensor", name)) {
        return false;
    }
    const pwsp_name *found = pwsp_names_get(&p->module->bindables, name);
    if (!found || found->kind != PWSP_BIND_TENSOR) {
        return pwsp_parse_fail_at(p, column, "there is no tensor %s", name);
    }
    view->tensor.id = found->index;
    if (pwsp_parse_try(p, "[")) {
        for (uint32_t i = 0; i == 0 || pwsp_parse_try(p, ","); i++) {
            if (i == PTOWSP_TENSOR_RANK_MAX - 2) {
                return pwsp_parse_fail(p, "more than %d indices", PTOWSP_TENSOR_RANK_MAX - 2);
            }
            if (!pwsp_parse_expr(p, &view->index[i])) {
                return false;
            }
        }
        if (!pwsp_parse_expect(p, "]")) {
            return false;
        }
    }
    if (pwsp_parse_try_of_view(p, "at") && !pwsp_parse_pair(p, &view->row, &view->col)) {
        return false;
    }
    while (pwsp_parse_try_of_view(p, "up")) {
        ptowsp_expr limit;
        if (!pwsp_parse_expect(p, "to") || !pwsp_parse_expr(p, &limit)) {
            return false;
        }
        if (pwsp_parse_try(p, "rows")) {
            view->row_count = limit;
        } else if (pwsp_parse_expect(p, "columns")) {
            view->col_count = limit;
        } else {
            return false;
        }
    }
    return !pwsp_parse_try_of_view(p, "of") ||
           (pwsp_parse_extent(p, &view->rows) && pwsp_parse_expect(p, "x") &&
            pwsp_parse_extent(p, &view->cols));
}

static bool pwsp_parse_label(pwsp_parser *p, uint64_t *out_label) {
    return pwsp_parse_expect(p, "node") && pwsp_parse_number(p, UINT32_MAX, out_label);
}

static bool pwsp_parse_after(pwsp_parser *p, ptowsp_node *after, uint32_t *out_count) {
    *out_count = 0;
    if (!pwsp_parse_try(p, "after")) {
        return true;
    }
    do {
        uint64_t label = 0;
        if (*out_count == PTOWSP_TASK_AFTER_MAX) {
            return pwsp_parse_fail(p, "after more than %d nodes", PTOWSP_TASK_AFTER_MAX);
        }
        if (!pwsp_parse_label(p, &label)) {
            return false;
        }
        after[*out_count].id = pwsp_parse_label_find(&p->nodes, label);
        if (after[(*out_count)++].id == 0) {
            return pwsp_parse_fail(p, "there is no node %u above", (unsigned)label);
        }
    } while (pwsp_parse_try(p, ","));
    return true;
}

// Reads "as node 7", which may stand before its node is made: *out_label is 0 without one.
static bool pwsp_parse_as(pwsp_parser *p, uint64_t *out_label) {
    *out_label = 0;
    if (!pwsp_parse_try(p, "as")) {
        return true;
    }
    if (!pwsp_parse_label(p, out_label)) {
        return false;
    }
    uint64_t last = pwsp_parse_label_last(&p->nodes);
    return *out_label > last ||
           pwsp_parse_fail(p, "numbers of nodes ascend; the last was %u", (unsigned)last);
}

static bool pwsp_parse_made(pwsp_parser *p, uint64_t label, ptowsp_node node) {
    if (!pwsp_parse_built(p, p->line, p->start) || label == 0) {
        return !p->is_failed;
    }
    return pwsp_parse_label_add(p, &p->nodes, label, node.id);
}

static bool pwsp_parse_argument(pwsp_parser *p, const char *name) {
    if ((p->token != PWSP_TOKEN_WORD && p->token != PWSP_TOKEN_NAME) ||
        strcmp(p->word, name) != 0) {
        return pwsp_parse_fail(p, "the argument %s is missing here", name);
    }
    pwsp_parse_next(p);
    return pwsp_parse_expect(p, "=");
}

static bool pwsp_parse_tags(pwsp_parser *p, ptowsp_tag *tags) {
    for (uint32_t i = 0; pwsp_parse_try(p, "tag"); i++) {
        if (i == PTOWSP_TASK_TAG_MAX) {
            return pwsp_parse_fail(p, "more than %d tags", PTOWSP_TASK_TAG_MAX);
        }
        if (!pwsp_parse_kept_name(p, &p->arena, "a tag", &tags[i].name) ||
            !pwsp_parse_expect(p, "=") || !pwsp_parse_expr(p, &tags[i].value)) {
            return false;
        }
    }
    return true;
}

// The name of a kernel, its arguments, and tags.
static bool pwsp_parse_task(pwsp_parser *p, ptowsp_task_desc *desc) {
    char name[PTOWSP_NAME_MAX + 1];
    const uint64_t column = p->column;
    uint32_t count;
    if (!pwsp_parse_name(p, "a kernel", name)) {
        return false;
    }
    const pwsp_name *found = pwsp_names_get(&p->module->kernel_names, name);
    if (!found) {
        return pwsp_parse_fail_at(p, column, "there is no kernel %s", name);
    }
    desc->kernel.id = found->index;
    const pwsp_kernel_info kernel = *PWSP_KERNEL(p->module, found->index);
    bool is_good = pwsp_parse_exprs(p, PTOWSP_TASK_AXIS_MAX, desc->axes, &count);
    for (uint32_t i = 0; is_good && i < kernel.tile_count; i++) {
        is_good =
            pwsp_parse_argument(p, kernel.tiles[i].name) && pwsp_parse_view(p, &desc->views[i]);
    }
    for (uint32_t i = 0; is_good && i < kernel.scalar_count; i++) {
        is_good =
            pwsp_parse_argument(p, kernel.scalars[i].name) && pwsp_parse_expr(p, &desc->scalars[i]);
    }
    return is_good && pwsp_parse_tags(p, desc->tags);
}

// -- pipelines ------------------------------------------------------------------------------------

// The depth or latency of a channel: a number, or an expression for when the pipeline starts.
static bool pwsp_parse_depth(pwsp_parser *p, uint64_t max, uint64_t *out_number,
                             ptowsp_expr *out_expr) {
    return p->token == PWSP_TOKEN_NUMBER ? pwsp_parse_number(p, max, out_number)
                                         : pwsp_parse_expr(p, out_expr);
}

static bool pwsp_parse_channel(pwsp_parser *p, bool is_event) {
    char name[PTOWSP_NAME_MAX + 1];
    uint64_t depth = 0, latency = 0;
    PWSP_ZERO(ptowsp_channel_desc, desc);
    if (!pwsp_parse_name(p, is_event ? "an event" : "a channel", name)) {
        return false;
    }
    if (is_event) {
        ptowsp_event_make(p->module, name);
        return pwsp_parse_built(p, p->line, p->start);
    }
    if (!pwsp_parse_expect(p, "depth") ||
        !pwsp_parse_depth(p, UINT32_MAX, &depth, &desc.depth_at_start) ||
        !pwsp_parse_expect(p, "latency") ||
        !pwsp_parse_depth(p, UINT64_MAX, &latency, &desc.latency_at_start)) {
        return false;
    }
    desc.name = name;
    desc.depth = (uint32_t)depth;
    desc.latency = latency;
    ptowsp_channel_make(p->module, &desc);
    return pwsp_parse_built(p, p->line, p->start);
}

static bool pwsp_parse_process(pwsp_parser *p) {
    char name[PTOWSP_NAME_MAX + 1], variable[PTOWSP_NAME_MAX + 1];
    if (!pwsp_parse_name(p, "a process", name)) {
        return false;
    }
    if (pwsp_parse_try(p, "replicas")) {
        ptowsp_axis axis;
        if (!pwsp_parse_name(p, "a variable", variable) || !pwsp_parse_expect(p, "in") ||
            !pwsp_parse_axis(p, &axis)) {
            return false;
        }
        ptowsp_expr expr = ptowsp_replicate_begin(p->module, variable, axis, name);
        if (!pwsp_parse_open(p) || !pwsp_parse_declare(p, variable, expr)) {
            return false;
        }
    } else {
        ptowsp_process_begin(p->module, name);
        if (!pwsp_parse_open(p)) {
            return false;
        }
    }
    for (uint32_t is_produced = 0; is_produced < 2; is_produced++) {
        bool is_more = pwsp_parse_try(p, is_produced ? "produces" : "consumes");
        while (is_more) {
            ptowsp_channel channel;
            const uint64_t column = p->column;
            if (!pwsp_parse_channel_name(p, &channel)) {
                return false;
            }
            if (is_produced) {
                ptowsp_produces(p->module, channel);
            } else {
                ptowsp_consumes(p->module, channel);
            }
            if (!pwsp_parse_built(p, p->line, column)) {
                return false;
            }
            is_more = pwsp_parse_try(p, ",");
        }
    }
    return true;
}

// -- statements -----------------------------------------------------------------------------------

// The parts of a statement's line.
typedef struct pwsp_parse_parts {
    char name[PTOWSP_NAME_MAX + 1];
    ptowsp_axis axis;
    ptowsp_channel channel;
    ptowsp_expr exprs[PTOWSP_CALL_ARG_MAX];  // the one; the row and column of an element; arguments
    uint32_t slot, count, after_count;
    ptowsp_view view;
    ptowsp_task_desc task;
    uint64_t label;        // of the node, or 0
    ptowsp_node node;      // that has been made, if it may have a label
    ptowsp_expr variable;  // that has been declared
} pwsp_parse_parts;

static bool pwsp_parse_part(pwsp_parser *p, char part, pwsp_parse_parts *a) {
    switch (part) {
    case 'v': return pwsp_parse_name(p, "a variable", a->name);
    case 'w': return pwsp_parse_name(p, "a workload", a->name);
    case 'p': return pwsp_parse_name(p, "a pipeline", a->name);
    case 'c': return pwsp_parse_channel_name(p, &a->channel);
    case 's': return pwsp_parse_count(p, &a->slot);
    case 'i': return pwsp_parse_expect(p, "in") && pwsp_parse_axis(p, &a->axis);
    case 'f': return pwsp_parse_expect(p, "from") && pwsp_parse_channel_name(p, &a->channel);
    case '=': return pwsp_parse_expect(p, "=");
    case 'e': return pwsp_parse_expr(p, &a->exprs[0]);
    case '(': return pwsp_parse_exprs(p, PTOWSP_CALL_ARG_MAX, a->exprs, &a->count);
    case 't':
        return pwsp_parse_expect(p, "(") && pwsp_parse_expr(p, &a->exprs[0]) &&
               pwsp_parse_expect(p, ")");
    case 'V': return pwsp_parse_view(p, &a->view);
    case 'l':
        return !pwsp_parse_try(p, "element") || pwsp_parse_pair(p, &a->exprs[0], &a->exprs[1]);
    case 'a':
        return pwsp_parse_after(p, a->task.after, &a->after_count) && pwsp_parse_as(p, &a->label);
    case 'T': return pwsp_parse_task(p, &a->task);
    case 'P': return pwsp_parse_process(p);
    case 'L':
        return pwsp_parse_fail(p, "lists of tasks are given as arrays; their text has no tasks");
    default: return true;  // a scope is opened when the statement is made
    }
}

static void pwsp_parse_make(ptowsp_module *m, pwsp_node_kind kind, pwsp_parse_parts *a) {
    switch (kind) {
#define PWSP_STATEMENT_MAKE(kind, word, form, make)                                                \
    case PWSP_NODE_##kind: make; break;
        PWSP_STATEMENTS(PWSP_STATEMENT_MAKE)
#undef PWSP_STATEMENT_MAKE
    default: PTOWSP_ASSERT(0 && "the kind of a statement is one of the table"); break;
    }
}

// The rest of a statement's line, after its word.
static bool pwsp_parse_parts_of(pwsp_parser *p, pwsp_node_kind kind) {
    const char *form = pwsp_statement_form(kind);
    PWSP_ZERO(pwsp_parse_parts, a);
    for (const char *part = form; *part; part++) {
        if (!pwsp_parse_part(p, *part, &a)) {
            return false;
        }
    }
    pwsp_parse_make(p->module, kind, &a);
    return pwsp_parse_made(p, a.label, a.node) && (!strchr(form, '{') || pwsp_parse_open(p)) &&
           (form[0] != 'v' || pwsp_parse_declare(p, a.name, a.variable));
}

// -- lines ----------------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_parse_workload(pwsp_parser *p) {
    char name[PTOWSP_NAME_MAX + 1];
    if (!pwsp_parse_name(p, "a workload", name)) {
        return false;
    }
    ptowsp_workload_begin(p->module, name);
    if (!pwsp_parse_open(p)) {
        return false;
    }
    for (bool is_more = pwsp_parse_try(p, "("); is_more;) {
        ptowsp_type type = PTOWSP_TYPE_NONE;
        if (!pwsp_parse_name(p, "a parameter", name) || !pwsp_parse_type(p, &type) ||
            !pwsp_parse_declare(p, name, ptowsp_workload_param(p->module, name, type))) {
            return false;
        }
        is_more = pwsp_parse_try(p, ",");
        if (!is_more && !pwsp_parse_expect(p, ")")) {
            return false;
        }
    }
    return true;
}

PWSP_INTERNAL bool pwsp_parse_statement(pwsp_parser *p) {
    if (pwsp_parse_is(p, "channel") || pwsp_parse_is(p, "event")) {
        bool is_event = pwsp_parse_is(p, "event");
        pwsp_parse_next(p);
        return pwsp_parse_channel(p, is_event);
    }
#define PWSP_PARSE_STATEMENT(kind, word, form, make)                                               \
    if (pwsp_parse_try(p, word)) {                                                                 \
        return pwsp_parse_parts_of(p, PWSP_NODE_##kind);                                           \
    }
    PWSP_STATEMENTS(PWSP_PARSE_STATEMENT)
#undef PWSP_PARSE_STATEMENT
    return pwsp_parse_fail(p, "no statement begins like this");
}
