// Expressions of a module's text, by precedence climbing over the table of operators.

#include "parse.h"

static bool pwsp_parse_binary(pwsp_parser *p, uint32_t precedence, ptowsp_expr *out_expr);

// -- operators ------------------------------------------------------------------------------------

typedef struct pwsp_parse_row {
    pwsp_expr_op op;
    char text[8];
    uint32_t precedence, operands;
} pwsp_parse_row;

static const pwsp_parse_row pwsp_parse_rows[] = {
#define PWSP_PARSE_ROW(name, text, precedence, operands, op_i64, op_u64)                           \
    {PWSP_EXPR_##name, text, precedence, PWSP_OPERANDS_##operands},
    PWSP_OPERATORS(PWSP_PARSE_ROW)
#undef PWSP_PARSE_ROW
};

static uint32_t pwsp_row_operands(const pwsp_parse_row *row) {
    return row->operands <= PWSP_OPERANDS_ANY ? 1 : row->operands == PWSP_OPERANDS_SELECT ? 3 : 2;
}

// The operator that the token is, of so many operands, written as a function or not.
static const pwsp_parse_row *pwsp_parse_operator_at(const pwsp_parser *p, uint32_t operands,
                                                    bool is_function) {
    const char c = p->word[0];
    if (p->token != (is_function ? PWSP_TOKEN_WORD : PWSP_TOKEN_SIGN) || c == '(' || c == ')' ||
        c == '[' || c == ']' || c == ',' || c == ':' || c == '?') {
        return NULL;
    }
    for (size_t i = 0; i < sizeof pwsp_parse_rows / sizeof pwsp_parse_rows[0]; i++) {
        const pwsp_parse_row *row = &pwsp_parse_rows[i];
        if (c == row->text[0] && (row->precedence == 0) == is_function &&
            pwsp_row_operands(row) == operands && strcmp(p->word, row->text) == 0) {
            return row;
        }
    }
    return NULL;
}

// -- leaves ---------------------------------------------------------------------------------------

static const ptowsp_expr *pwsp_parse_variable_of(const pwsp_parser *p, const char *name) {
    for (const pwsp_parse_variable *v = p->variables; v; v = v->next) {
        if (strcmp(v->name, name) == 0) {
            return &v->expr;
        }
    }
    return NULL;
}

static bool pwsp_parse_named(pwsp_parser *p, const char *name, ptowsp_expr *out_expr) {
    const pwsp_name *found = pwsp_names_get(&p->module->bindables, name);
    bool is_symbol = found && found->kind == PWSP_BIND_SYMBOL;
    const ptowsp_expr *variable = pwsp_parse_variable_of(p, name);
    if (variable && is_symbol) {
        return pwsp_parse_fail(p, "%s is both a symbol and a variable here; rename one", name);
    }
    if (!variable && !is_symbol) {
        return pwsp_parse_fail(p, "there is no variable or symbol %s here", name);
    }
    *out_expr = variable ? *variable : ptowsp_symbol(p->module, name);
    return true;
}

// Is it a field of a plan that has been declared: "kv.slot", "kv.merges.slot_count"?
static bool pwsp_parse_is_field(const pwsp_parser *p, const char *name) {
    char plan[PTOWSP_NAME_MAX + 1] = "";
    const pwsp_name *found = NULL;
    if (pwsp_name_field(name) < PTOWSP_PLAN_FIELD_COUNT) {
        memcpy(plan, name, (size_t)(strrchr(name, '.') - name));
        found = pwsp_names_get(&p->module->bindables, plan);
        char *last = strrchr(plan, '.');
        if (!found && last && strcmp(last, ".merges") == 0) {
            *last = '\0';
            found = pwsp_names_get(&p->module->bindables, plan);
        }
    }
    return found && found->kind == PWSP_BIND_PLAN;
}

static bool pwsp_parse_field(pwsp_parser *p, const char *name, ptowsp_expr index,
                             ptowsp_expr *out_expr) {
    const ptowsp_plan_field field = pwsp_name_field(name);
    if (field == PTOWSP_PLAN_FIELD_COUNT) {
        return pwsp_parse_fail(p, "there is no array %s", name);
    }
    *out_expr = ptowsp_loop_field(index, field);
    const char *made = out_expr->id ? p->module->exprs.nodes[out_expr->id].name : name;
    return strcmp(made, name) == 0 ||
           pwsp_parse_fail(p, "%s is no field here, but %s would be", name, made);
}

// The rest of a field whose plan is in quotes: "my plan".slot. False: none follows.
static bool pwsp_parse_rest_of_field(pwsp_parser *p, char name[PTOWSP_NAME_MAX + 1]) {
    const size_t length = strlen(name);
    if (p->token != PWSP_TOKEN_WORD || p->word[0] != '.' ||
        length + strlen(p->word) > PTOWSP_NAME_MAX) {
        return false;
    }
    memcpy(name + length, p->word, strlen(p->word) + 1);
    pwsp_parse_next(p);
    return true;
}

// A word that names a field is not looked up among bound names; those are in quotes.
static bool pwsp_parse_read(pwsp_parser *p, const char *name, bool is_word, uint64_t column,
                            ptowsp_expr *out_expr) {
    ptowsp_expr index;
    pwsp_parse_next(p);
    if (!pwsp_parse_expr(p, &index) || !pwsp_parse_expect(p, "]")) {
        return false;
    }
    const pwsp_name *found = pwsp_names_find(&p->module->bindables, name);
    if (!found || (is_word && pwsp_parse_is_field(p, name))) {
        return pwsp_parse_field(p, name, index, out_expr) && pwsp_parse_built(p, p->line, column);
    }
    if (found->kind != PWSP_BIND_ARRAY || strcmp(found->text, name) != 0) {
        return pwsp_parse_fail(p, "%s is no array", name);
    }
    *out_expr = ptowsp_array_at(p->module, name, PWSP_ARRAY(p->module, found->index)->dtype, index);
    return pwsp_parse_built(p, p->line, column);
}

static bool pwsp_parse_slot_read(pwsp_parser *p, ptowsp_type type, ptowsp_expr *out_expr) {
    uint64_t slot = 0;
    pwsp_parse_next(p);
    if (!pwsp_parse_expect(p, "[") || !pwsp_parse_number(p, UINT32_MAX, &slot) ||
        !pwsp_parse_expect(p, "]")) {
        return false;
    }
    *out_expr = ptowsp_slot(p->module, (uint32_t)slot, type);
    return true;
}

// "size(axis)" or "entry(variable)"; the token is the parenthesis.
static bool pwsp_parse_of(pwsp_parser *p, bool is_size, ptowsp_expr *out_expr) {
    char name[PTOWSP_NAME_MAX + 1];
    ptowsp_axis axis;
    pwsp_parse_next(p);
    if (is_size) {
        if (!pwsp_parse_axis(p, &axis)) {
            return false;
        }
        const pwsp_axis_info *info = PWSP_AXIS(p->module, axis.id);
        const uint32_t first = pwsp_names_find(&p->module->bindables, info->name)->index;
        if (info->kind >= PWSP_AXIS_PLAN &&
            (axis.id != first || PWSP_AXIS(p->module, first)->next)) {
            return pwsp_parse_fail(p, "the size of plan %s may be that of several axes",
                                   info->name);
        }
        *out_expr = ptowsp_axis_size(p->module, axis);
    } else {
        const ptowsp_expr *variable =
            pwsp_parse_name(p, "a variable", name) ? pwsp_parse_variable_of(p, name) : NULL;
        if (!variable) {
            return pwsp_parse_fail(p, "there is no variable %s here", name);
        }
        *out_expr = ptowsp_loop_entry(*variable);
    }
    return pwsp_parse_expect(p, ")");
}

static bool pwsp_parse_function(pwsp_parser *p, const pwsp_parse_row *row, ptowsp_expr *out_expr) {
    ptowsp_expr a, b = {p->module, 0};
    pwsp_parse_next(p);
    if (!pwsp_parse_expr(p, &a)) {
        return false;
    }
    if (pwsp_row_operands(row) == 2 && (!pwsp_parse_expect(p, ",") || !pwsp_parse_expr(p, &b))) {
        return false;
    }
    *out_expr = pwsp_expr_call(row->op, a, b);
    return pwsp_parse_expect(p, ")");
}

// "task.name", "task.args[1]" or "task.tag(name)", which keys of schedules read.
static bool pwsp_parse_task_read(pwsp_parser *p, ptowsp_expr *out_expr) {
    char name[PTOWSP_NAME_MAX + 1];
    uint64_t which = 0;
    pwsp_parse_name(p, "a value", name);
    const char *behind = name + strlen("task.");
    if (strcmp(behind, "args") == 0 && pwsp_parse_try(p, "[")) {
        if (!pwsp_parse_number(p, UINT32_MAX, &which) || !pwsp_parse_expect(p, "]")) {
            return false;
        }
        *out_expr = ptowsp_task_arg(p->module, (uint32_t)which);
        return true;
    }
    if (strcmp(behind, "tag") == 0 && pwsp_parse_try(p, "(")) {
        if (!pwsp_parse_name(p, "a tag", name) || !pwsp_parse_expect(p, ")")) {
            return false;
        }
        *out_expr = ptowsp_task_tag(p->module, name);
        return true;
    }
    if (*behind == '\0') {  // a name in quotes follows
        if (!pwsp_parse_name(p, "a variable", name)) {
            return false;
        }
        behind = name;
    }
    *out_expr = ptowsp_task_variable(p->module, behind);
    return true;
}

// Does a parenthesis follow the token?
static bool pwsp_parse_is_called(const pwsp_parser *p) {
    size_t at = p->at;
    while (at < p->length && p->text[at] == ' ') {
        at++;
    }
    return at < p->length && p->text[at] == '(';
}

static bool pwsp_parse_word(pwsp_parser *p, ptowsp_expr *out_expr) {
    const uint64_t column = p->column;
    bool is_word = p->token == PWSP_TOKEN_WORD;
    static const char slots[][12] = {"slot_bool", "slot_i64", "slot_u64"};
    for (uint32_t i = 0; is_word && i < 3; i++) {
        if (pwsp_parse_is(p, slots[i])) {
            return pwsp_parse_slot_read(p, (ptowsp_type)(PTOWSP_TYPE_BOOL + i), out_expr);
        }
    }
    if (is_word && p->is_in_schedule && strncmp(p->word, "task.", 5) == 0) {
        return pwsp_parse_task_read(p, out_expr) && pwsp_parse_built(p, p->line, column);
    }
    if (pwsp_parse_is(p, "true") || pwsp_parse_is(p, "false")) {
        *out_expr = ptowsp_bool(p->module, pwsp_parse_is(p, "true"));
        pwsp_parse_next(p);
        return true;
    }
    const pwsp_parse_row *row = NULL;
    if (pwsp_parse_is_called(p)) {
        row = pwsp_parse_operator_at(p, 1, true);
        row = row ? row : pwsp_parse_operator_at(p, 2, true);
    }
    const bool is_size = pwsp_parse_is(p, "size"), is_entry = pwsp_parse_is(p, "entry");
    char name[PTOWSP_NAME_MAX + 1];
    pwsp_parse_name(p, "a value", name);
    if (pwsp_parse_is(p, "(")) {
        if (!row && !is_size && !is_entry) {
            return pwsp_parse_fail(p, "there is no function %s", name);
        }
        return (row ? pwsp_parse_function(p, row, out_expr)
                    : pwsp_parse_of(p, is_size, out_expr)) &&
               pwsp_parse_built(p, p->line, column);
    }
    is_word = is_word || pwsp_parse_rest_of_field(p, name);
    if (pwsp_parse_is(p, "[")) {
        return pwsp_parse_read(p, name, is_word, column, out_expr);
    }
    return pwsp_parse_named(p, name, out_expr) && pwsp_parse_built(p, p->line, column);
}

static bool pwsp_parse_constant(pwsp_parser *p, bool is_negative, ptowsp_expr *out_expr) {
    const uint64_t limit = (uint64_t)INT64_MAX + (is_negative ? 1 : 0);
    if (p->token == PWSP_TOKEN_UNSIGNED) {
        *out_expr = ptowsp_u64(p->module, p->number);
    } else if (p->number > limit) {
        return pwsp_parse_fail(p, "this number is outside of i64; write u behind it for u64");
    } else {
        *out_expr = ptowsp_i64(p->module, (int64_t)(is_negative ? 0 - p->number : p->number));
    }
    pwsp_parse_next(p);
    return pwsp_parse_built(p, p->line, p->column);
}

// -- the tree -------------------------------------------------------------------------------------

static bool pwsp_parse_unary(pwsp_parser *p, ptowsp_expr *out_expr);

// Enters a parenthesis, or the operand of an operator. The whole expression, which is entered first, does
// not count.
static bool pwsp_parse_deeper(pwsp_parser *p) {
    if (p->depth > PWSP_PARSE_DEPTH_MAX) {
        return pwsp_parse_fail(p, "an expression of more than %d levels", PWSP_PARSE_DEPTH_MAX);
    }
    p->depth++;
    return true;
}

// An operator with its operand.
static bool pwsp_parse_prefixed(pwsp_parser *p, const pwsp_parse_row *row, ptowsp_expr *out_expr) {
    const uint64_t column = p->column;
    pwsp_parse_next(p);
    if (row->op == PWSP_EXPR_NEG && p->token == PWSP_TOKEN_NUMBER) {
        return pwsp_parse_constant(p, true, out_expr);
    }
    if (!pwsp_parse_unary(p, out_expr)) {
        return false;
    }
    *out_expr = pwsp_expr_call(row->op, *out_expr, *out_expr);
    return pwsp_parse_built(p, p->line, column);
}

static bool pwsp_parse_unary(pwsp_parser *p, ptowsp_expr *out_expr) {
    const pwsp_parse_row *row = pwsp_parse_operator_at(p, 1, false);
    if (row) {
        if (!pwsp_parse_deeper(p)) {
            return false;
        }
        bool is_good = pwsp_parse_prefixed(p, row, out_expr);
        p->depth--;
        return is_good;
    }
    if (p->token == PWSP_TOKEN_NUMBER || p->token == PWSP_TOKEN_UNSIGNED) {
        return pwsp_parse_constant(p, false, out_expr);
    }
    if (p->token == PWSP_TOKEN_WORD || p->token == PWSP_TOKEN_NAME) {
        return pwsp_parse_word(p, out_expr);
    }
    if (pwsp_parse_try(p, "(")) {
        return pwsp_parse_expr(p, out_expr) && pwsp_parse_expect(p, ")");
    }
    return pwsp_parse_fail(p, "an expression is missing here");
}

static bool pwsp_parse_binary(pwsp_parser *p, uint32_t precedence, ptowsp_expr *out_expr) {
    if (!pwsp_parse_unary(p, out_expr)) {
        return false;
    }
    const pwsp_parse_row *row = pwsp_parse_operator_at(p, 2, false);
    while (row && row->precedence >= precedence) {
        const uint64_t column = p->column;
        ptowsp_expr right;
        pwsp_parse_next(p);
        if (!pwsp_parse_binary(p, row->precedence + 1, &right)) {
            return false;
        }
        *out_expr = pwsp_expr_call(row->op, *out_expr, right);
        if (!pwsp_parse_built(p, p->line, column)) {
            return false;
        }
        row = pwsp_parse_operator_at(p, 2, false);
    }
    return true;
}

PWSP_INTERNAL bool pwsp_parse_expr(pwsp_parser *p, ptowsp_expr *out_expr) {
    if (!pwsp_parse_deeper(p)) {
        return false;
    }
    bool is_good = pwsp_parse_binary(p, 2, out_expr);
    const uint64_t column = p->column;
    if (is_good && pwsp_parse_try(p, "?")) {
        ptowsp_expr yes, no;
        is_good = pwsp_parse_expr(p, &yes) && pwsp_parse_expect(p, ":") && pwsp_parse_expr(p, &no);
        if (is_good) {
            *out_expr = ptowsp_select(*out_expr, yes, no);
            is_good = pwsp_parse_built(p, p->line, column);
        }
    }
    p->depth--;
    return is_good;
}
