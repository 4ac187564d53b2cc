// Calls of the builder as text, so that a table of what it refuses says in a line what is called:
//
//      "workload main; pipeline p; channel a; process put; send a 1"
//
// Each word is a call, in the order of the script; what the calls take follows it. Modules as texts
// (ptowsp.h, section 19) cannot express this: they have no scopes that are left open, ids that are not
// there or calls in the wrong place.
//
//      name         a word, or in single quotes; NULL
//      thing        the name of an axis, tensor, kernel or channel; of several, the last one; #7: the id 7
//      expression   3, 3u, true, none, the name of a variable, or symbol:S, arg:0, slot:0, lost, foreign,
//                   list:EXPRESSION (an element of array list); and one + another, one <= another, and
//                   one?another, which is true where the first one is not
//      view         view:TENSOR[INDEX,...]@ROW,COL*ROWS,COLS^ROW_COUNT, of which each part may be missing
//      argument     an expression, scalar:EXPRESSION, tag:NAME=EXPRESSION, a view, or `after` and ids

#ifndef BUILD_SCRIPT_H
#define BUILD_SCRIPT_H

#include "test.h"

enum { SCRIPT_THING_MAX = 64, SCRIPT_WORD_MAX = 128 };

typedef enum script_kind {
    SCRIPT_AXIS,
    SCRIPT_TENSOR,
    SCRIPT_KERNEL,
    SCRIPT_CHANNEL,
    SCRIPT_VARIABLE
} script_kind;

typedef struct script {
    ptowsp_context *context;
    ptowsp_module *m, *other;     // `foreign` expressions are of the other one
    const char *prelude;          // the text with which every module begins
    ptowsp_parse_desc functions;  // of its kernels
    const char *at;
    uint32_t last;                    // what the last call gave; 0: nothing
    bool has_gone_on;                 // after a call that was refused
    char said[1024];                  // what the last explanation was
    char explained[SCRIPT_WORD_MAX];  // of this kernel
    uint32_t thing_count;
    struct {
        script_kind kind;
        char name[SCRIPT_WORD_MAX];
        uint32_t id;
    } things[SCRIPT_THING_MAX];
} script;

// -- words ----------------------------------------------------------------------------------------

static inline bool script_is_end(const script *s) {
    return !s->at[strspn(s->at, " ")] || s->at[strspn(s->at, " ")] == ';';
}

static inline void script_word(script *s, char *word) {
    s->at += strspn(s->at, " ");
    bool is_quoted = *s->at == '\'';
    size_t length = strcspn(s->at += is_quoted, is_quoted ? "'" : " ;");
    assert_true(length < SCRIPT_WORD_MAX && (is_quoted || length > 0));
    snprintf(word, SCRIPT_WORD_MAX, "%.*s", (int)length, s->at);
    s->at += length + is_quoted;
}

// A name; NULL if it is that word.
static inline const char *script_name(script *s) {
    static char names[4][SCRIPT_WORD_MAX];
    static int next;
    char *name = names[next++ % 4];
    script_word(s, name);
    return strcmp(name, "NULL") == 0 ? NULL : name;
}

static inline int64_t script_number(script *s) {
    char word[SCRIPT_WORD_MAX], *end;
    script_word(s, word);
    int64_t number = word[0] == '?' ? PTOWSP_DYNAMIC : strtoll(word, &end, 0);
    assert_true(word[0] == '?' || *end == '\0');
    return number;
}

static inline void script_add(script *s, script_kind kind, const char *name, uint32_t id) {
    s->last = id;
    if (name) {
        assert_true(s->thing_count < SCRIPT_THING_MAX);
        s->things[s->thing_count].kind = kind;
        s->things[s->thing_count].id = id;
        strcpy(s->things[s->thing_count++].name, name);
    }
}

static inline uint32_t script_find(const script *s, script_kind kind, const char *name) {
    if (name[0] == '#') {
        return (uint32_t)strtoul(name + 1, NULL, 10);
    }
    for (uint32_t i = s->thing_count; i-- > 0;) {
        if (s->things[i].kind == kind && strcmp(s->things[i].name, name) == 0) {
            return s->things[i].id;
        }
    }
    fail_msg("there is no %s", name);
    return 0;
}

static inline uint32_t script_id(script *s, script_kind kind) {
    char word[SCRIPT_WORD_MAX];
    script_word(s, word);
    return script_find(s, kind, word);
}

// The rest after a word with a colon; NULL: it is another one.
static inline const char *script_after(const char *word, const char *prefix) {
    return strncmp(word, prefix, strlen(prefix)) == 0 ? word + strlen(prefix) : NULL;
}

// -- expressions and arguments --------------------------------------------------------------------

static inline ptowsp_expr script_if(ptowsp_expr a, ptowsp_expr b) {
    return ptowsp_select(a, b, ptowsp_bool(a.module, true));
}

static inline ptowsp_expr script_expr_of(script *s, const char *word) {
    static const struct {
        const char *text;
        ptowsp_expr (*make)(ptowsp_expr a, ptowsp_expr b);
    } operators[] = {{"?", script_if}, {"<=", ptowsp_le}, {"+", ptowsp_add}};
    for (size_t i = 0; i < COUNT_OF(operators); i++) {
        const char *at = strstr(word, operators[i].text);
        if (at) {
            char left[SCRIPT_WORD_MAX];
            snprintf(left, sizeof left, "%.*s", (int)(at - word), word);
            at += strlen(operators[i].text);
            return operators[i].make(script_expr_of(s, left), script_expr_of(s, at));
        }
    }
    const char *rest;
    if (strchr("-0123456789", word[0])) {
        bool is_u64 = word[strlen(word) - 1] == 'u';
        return is_u64 ? ptowsp_u64(s->m, strtoull(word, NULL, 10))
                      : ptowsp_i64(s->m, strtoll(word, NULL, 10));
    } else if (!strcmp(word, "true")) {
        return ptowsp_bool(s->m, true);
    } else if (!strcmp(word, "none")) {
        return (ptowsp_expr){NULL, 0};
    } else if (!strcmp(word, "lost")) {
        return (ptowsp_expr){s->m, 100000};
    } else if (!strcmp(word, "foreign")) {
        return ptowsp_i64(s->other, 1);
    } else if ((rest = script_after(word, "symbol:"))) {
        return ptowsp_symbol(s->m, rest);
    } else if ((rest = script_after(word, "arg:"))) {
        return ptowsp_task_arg(s->m, (uint32_t)strtoul(rest, NULL, 10));
    } else if ((rest = script_after(word, "slot:"))) {
        return ptowsp_slot(s->m, (uint32_t)strtoul(rest, NULL, 10), PTOWSP_TYPE_BOOL);
    } else if ((rest = script_after(word, "list:"))) {
        return ptowsp_array_at(s->m, "list", PTOWSP_I32, script_expr_of(s, rest));
    }
    return (ptowsp_expr){s->m, script_find(s, SCRIPT_VARIABLE, word)};
}

static inline ptowsp_expr script_expr(script *s) {
    char word[SCRIPT_WORD_MAX];
    script_word(s, word);
    return script_expr_of(s, word);
}

// Two expressions with a comma between them, of which the second may be missing, up to `end`.
static inline const char *script_pair(script *s, const char *text, const char *end,
                                      ptowsp_expr out[2]) {
    size_t length = strcspn(text, end);
    for (int i = 0; i < 2 && length > 0; i++) {
        char word[SCRIPT_WORD_MAX];
        size_t one = strcspn(text, ",");
        one = one < length ? one : length;
        snprintf(word, sizeof word, "%.*s", (int)one, text);
        out[i] = script_expr_of(s, word);
        text += one + (one < length);
        length -= one + (one < length);
    }
    return text;
}

static inline ptowsp_view script_view_of(script *s, const char *text) {
    ptowsp_view view = {0};
    ptowsp_expr corner[2] = {{NULL, 0}, {NULL, 0}};
    char name[SCRIPT_WORD_MAX];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, "[@*"), text);
    view.tensor.id = script_find(s, SCRIPT_TENSOR, name);
    text += strlen(name);
    if (*text == '[') {
        text = script_pair(s, text + 1, "]", view.index) + 1;
    }
    if (*text == '@') {
        text = script_pair(s, text + 1, "*", corner);
        view.row = corner[0];
        view.col = corner[1];
    }
    if (*text == '*') {
        char *end;
        view.rows = strtoll(text + 1, &end, 10);
        view.cols = *end && *end != '^' ? strtoll(end + 1, NULL, 10) : 0;
    }
    if ((text = strchr(text, '^'))) {
        view.row_count = script_expr_of(s, text + 1);
    }
    return view;
}

static inline uint32_t script_nodes(script *s, ptowsp_node *nodes) {
    uint32_t count = 0;
    while (!script_is_end(s)) {
        nodes[count++].id = (uint32_t)script_number(s);
    }
    return count;
}

static inline ptowsp_task_desc script_task(script *s) {
    ptowsp_task_desc task = {.kernel.id = script_id(s, SCRIPT_KERNEL)};
    static char tags[PTOWSP_TASK_TAG_MAX][SCRIPT_WORD_MAX];
    uint32_t axes = 0, views = 0, scalars = 0, tag = 0;
    while (!script_is_end(s)) {
        char word[SCRIPT_WORD_MAX];
        const char *rest;
        script_word(s, word);
        if (!strcmp(word, "after")) {
            script_nodes(s, task.after);
        } else if ((rest = script_after(word, "view:"))) {
            task.views[views++] = script_view_of(s, rest);
        } else if ((rest = script_after(word, "scalar:"))) {
            task.scalars[scalars++] = script_expr_of(s, rest);
        } else if ((rest = script_after(word, "tag:"))) {
            snprintf(tags[tag], sizeof tags[tag], "%.*s", (int)strcspn(rest, "="), rest);
            task.tags[tag].name = tags[tag];
            task.tags[tag++].value = script_expr_of(s, strchr(rest, '=') + 1);
        } else {
            task.axes[axes++] = script_expr_of(s, word);
        }
    }
    return task;
}

// -- calls ----------------------------------------------------------------------------------------

static inline ptowsp_plan_field script_field(script *s) {
    static const char *const names[] = {
#define SCRIPT_FIELD_NAME(name, text, dtype, byte, flags, units, merges) text,
        PTOWSP_PLAN_FIELDS(SCRIPT_FIELD_NAME)
#undef SCRIPT_FIELD_NAME
    };
    char word[SCRIPT_WORD_MAX];
    script_word(s, word);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (!strcmp(names[i], word)) {
            return (ptowsp_plan_field)i;
        }
    }
    return (ptowsp_plan_field)strtol(word, NULL, 10);
}

static inline ptowsp_dtype script_dtype(script *s) {
    char word[SCRIPT_WORD_MAX];
    script_word(s, word);
    int type = PTOWSP_F16;
    while (strcmp(ptowsp_dtype_name((ptowsp_dtype)type), word) != 0) {
        assert_true(++type <= PTOWSP_BOOL);
    }
    return (ptowsp_dtype)type;
}

// choice NAME KERNEL [if:EXPRESSION] [priority:N] [cost:N] ...
static inline void script_choice(script *s) {
    char name[SCRIPT_WORD_MAX];
    ptowsp_choice_desc desc = {.name = name};
    uint32_t count = 0;  // of variants
    script_word(s, name);
    while (!script_is_end(s)) {
        char word[SCRIPT_WORD_MAX];
        const char *rest;
        script_word(s, word);
        if ((rest = script_after(word, "if:"))) {
            desc.variants[count - 1].condition = script_expr_of(s, rest);
        } else if ((rest = script_after(word, "priority:"))) {
            desc.variants[count - 1].priority = atoi(rest);
        } else if ((rest = script_after(word, "cost:"))) {
            desc.variants[count - 1].cost = strtoull(rest, NULL, 10);
        } else {
            desc.variants[count++].kernel.id = script_find(s, SCRIPT_KERNEL, word);
        }
    }
    script_add(s, SCRIPT_KERNEL, name, ptowsp_kernel_choice(s->m, &desc).id);
}

// explain KERNEL [ARGUMENT ...]
static inline void script_explain(script *s) {
    ptowsp_output_buffer buffer = {s->said, sizeof s->said, 0};
    const char *kernel = s->at;
    script_word(s, s->explained);
    s->at = kernel;
    ptowsp_task_desc task = script_task(s);
    const bool has_task = task.views[0].rows || task.axes[0].id || task.scalars[0].id;
    ptowsp_kernel_explain(s->m, task.kernel, has_task ? &task : NULL,
                          ptowsp_output_to_buffer(&buffer));
}

// What relayouts are placed by.
static inline bool script_spreads(script *s, const char *call) {
    static const int64_t cuts[] = {0, 3, 8};
    static const struct {
        const char *word;
        ptowsp_spread spread;
    } spreads[] = {{"sum", {PTOWSP_PARTIAL_SUM, 0, NULL}},
                   {"rows", {PTOWSP_SHARDED, 0, NULL}},
                   {"cut", {PTOWSP_SHARDED, 0, cuts}}};
    ptowsp_module *m = s->m;
    if (!strcmp(call, "mesh")) {  // AXIS SIZE [ALGORITHM]
        const ptowsp_mesh mesh = {1, {script_name(s)}, {(uint32_t)script_number(s)}};
        const int64_t algorithm = script_is_end(s) ? PTOWSP_ALGORITHM_AUTO : script_number(s);
        ptowsp_module_mesh(m, &mesh, (ptowsp_algorithm)algorithm);
    } else if (!strcmp(call, "spread")) {  // TENSOR [sum, rows or cut: unequal pieces]
        const ptowsp_tensor tensor = {script_id(s, SCRIPT_TENSOR)};
        const char *word = script_is_end(s) ? NULL : script_name(s);
        for (size_t i = 0; word && i < COUNT_OF(spreads); i++) {
            if (!strcmp(word, spreads[i].word)) {
                ptowsp_tensor_spread(m, tensor, &spreads[i].spread);
                return true;
            }
        }
        assert_null(word);
        ptowsp_tensor_spread(m, tensor, NULL);
    } else if (!strcmp(call, "rule")) {  // KERNEL TEXT
        const ptowsp_kernel kernel = {script_id(s, SCRIPT_KERNEL)};
        ptowsp_kernel_rule(m, kernel, script_name(s));
    } else {
        return false;
    }
    return true;
}

static inline bool script_declares(script *s, const char *call) {
    static const struct {
        const char *call;
        ptowsp_axis (*make)(ptowsp_module *m, const char *name);
    } axes[] = {{"dynamic", ptowsp_axis_dynamic},    {"ragged", ptowsp_axis_ragged},
                {"sparse", ptowsp_axis_sparse},      {"plan", ptowsp_axis_plan},
                {"merges", ptowsp_axis_plan_merges}, {"lanes", ptowsp_axis_plan_lanes}};
    ptowsp_module *m = s->m;
    for (size_t i = 0; i < COUNT_OF(axes); i++) {
        if (!strcmp(call, axes[i].call)) {
            const char *name = script_name(s);
            script_add(s, SCRIPT_AXIS, name, axes[i].make(m, name).id);
            return true;
        }
    }
    if (!strcmp(call, "axis")) {
        const char *name = script_name(s);
        script_add(s, SCRIPT_AXIS, name, ptowsp_axis_dense(m, name, script_number(s)).id);
    } else if (!strcmp(call, "row")) {  // row AXIS EXPRESSION: becomes axis `row`
        ptowsp_axis axis = {script_id(s, SCRIPT_AXIS)};
        script_add(s, SCRIPT_AXIS, "row", ptowsp_axis_row(m, axis, script_expr(s)).id);
    } else if (!strcmp(call, "size")) {
        s->last = ptowsp_axis_size(m, (ptowsp_axis){script_id(s, SCRIPT_AXIS)}).id;
    } else if (!strcmp(call, "entry")) {  // of a loop's variable: becomes variable `entry`
        script_add(s, SCRIPT_VARIABLE, "entry", ptowsp_loop_entry(script_expr(s)).id);
    } else if (!strcmp(call, "field")) {  // EXPRESSION and a name, or a number that is none
        const ptowsp_expr variable = script_expr(s);
        s->last = ptowsp_loop_field(variable, script_field(s)).id;
    } else if (!strcmp(call, "choice")) {
        script_choice(s);
    } else if (!strcmp(call, "explain")) {
        script_explain(s);
    } else if (!strcmp(call, "array")) {  // NAME [TYPE EXPRESSION]: of i32, at 0
        const char *name = script_name(s);
        const ptowsp_dtype type = script_is_end(s) ? PTOWSP_I32 : script_dtype(s);
        s->last =
            ptowsp_array_at(m, name, type, script_is_end(s) ? ptowsp_i64(m, 0) : script_expr(s)).id;
    } else if (!strcmp(call, "slot")) {  // NUMBER TYPE
        const uint32_t slot = (uint32_t)script_number(s);
        s->last = ptowsp_slot(m, slot, (ptowsp_type)script_number(s)).id;
    } else if (!strcmp(call, "cast")) {  // EXPRESSION TYPE
        const ptowsp_expr expr = script_expr(s);
        s->last = ptowsp_cast(expr, (ptowsp_type)script_number(s)).id;
    } else if (!strcmp(call, "select_of")) {  // EXPRESSION EXPRESSION EXPRESSION
        const ptowsp_expr condition = script_expr(s), a = script_expr(s);
        s->last = ptowsp_select(condition, a, script_expr(s)).id;
    } else if (!strcmp(call, "symbol")) {
        s->last = ptowsp_symbol(m, script_name(s)).id;
    } else {
        return false;
    }
    return true;
}

// A loop: VARIABLE AXIS.
static inline void script_loop(script *s,
                               ptowsp_expr (*begin)(ptowsp_module *, const char *, ptowsp_axis)) {
    const char *name = script_name(s);
    ptowsp_axis axis = {script_id(s, SCRIPT_AXIS)};
    script_add(s, SCRIPT_VARIABLE, name, begin(s->m, name, axis).id);
}

static inline bool script_begins(script *s, const char *call) {
    ptowsp_module *m = s->m;
    if (!strcmp(call, "workload")) {
        ptowsp_workload_begin(m, script_name(s));
    } else if (!strcmp(call, "param")) {  // NAME TYPE
        const char *name = script_name(s);
        ptowsp_type type = (ptowsp_type)script_number(s);
        script_add(s, SCRIPT_VARIABLE, name, ptowsp_workload_param(m, name, type).id);
    } else if (!strcmp(call, "combine")) {
        ptowsp_combine_begin(m);
    } else if (!strcmp(call, "sequence")) {
        ptowsp_sequence_begin(m);
    } else if (!strcmp(call, "when")) {
        ptowsp_when_begin(m, script_expr(s));
    } else if (!strcmp(call, "otherwise")) {
        ptowsp_otherwise_begin(m);
    } else if (!strcmp(call, "parallel")) {
        script_loop(s, ptowsp_parallel_begin);
    } else if (!strcmp(call, "for_each")) {
        script_loop(s, ptowsp_for_each_begin);
    } else if (!strcmp(call, "select")) {
        script_loop(s, ptowsp_select_begin);
    } else if (!strcmp(call, "end")) {  // [COUNT]
        for (int64_t i = script_is_end(s) ? 1 : script_number(s); i > 0; i--) {
            ptowsp_scope_end(m);
        }
    } else {
        return false;
    }
    return true;
}

static inline bool script_does(script *s, const char *call) {
    ptowsp_module *m = s->m;
    if (!strcmp(call, "task")) {  // KERNEL ARGUMENT ...
        const ptowsp_task_desc task = script_task(s);
        s->last = ptowsp_task_make(m, &task).id;
    } else if (!strcmp(call, "call")) {  // NAME EXPRESSION ...
        ptowsp_expr args[PTOWSP_CALL_ARG_MAX + 1];
        const char *name = script_name(s);
        uint32_t count = 0;
        while (!script_is_end(s)) {
            args[count++] = script_expr(s);
        }
        ptowsp_call_make(m, name, count ? args : NULL, count);
    } else if (!strcmp(call, "slot_set")) {  // SLOT EXPRESSION
        uint32_t slot = (uint32_t)script_number(s);
        ptowsp_slot_set_make(m, slot, script_expr(s));
    } else if (!strcmp(call, "slot_load")) {  // SLOT VIEW [EXPRESSION EXPRESSION]
        uint32_t slot = (uint32_t)script_number(s);
        const ptowsp_view view = script_view_of(s, script_name(s) + strlen("view:"));
        ptowsp_expr row = script_expr_of(s, script_is_end(s) ? "none" : script_name(s));
        ptowsp_expr col = script_expr_of(s, script_is_end(s) ? "none" : script_name(s));
        ptowsp_slot_load_make(m, slot, &view, row, col);
    } else {
        return false;
    }
    return true;
}

// channel NAME [depth N] [latency N] [depth_at EXPRESSION] [latency_at EXPRESSION]; of depth 1
static inline void script_channel(script *s) {
    char name[SCRIPT_WORD_MAX];
    const char *given = script_name(s);
    snprintf(name, sizeof name, "%s", given ? given : "");
    ptowsp_channel_desc desc = {.name = given ? name : NULL, .depth = 1};
    while (!script_is_end(s)) {
        const char *field = script_name(s);
        if (!strcmp(field, "depth")) {
            desc.depth = (uint32_t)script_number(s);
        } else if (!strcmp(field, "latency")) {
            desc.latency = (ptowsp_cycles)script_number(s);
        } else if (!strcmp(field, "depth_at")) {
            desc.depth_at_start = script_expr(s);
        } else if (!strcmp(field, "latency_at")) {
            desc.latency_at_start = script_expr(s);
        } else {
            fail_msg("a channel has no %s", field);
        }
    }
    script_add(s, SCRIPT_CHANNEL, desc.name, ptowsp_channel_make(s->m, &desc).id);
}

static inline bool script_pipelines(script *s, const char *call) {
    ptowsp_module *m = s->m;
    if (!strcmp(call, "pipeline")) {  // NAME [after NODE ...]
        ptowsp_node after[16];
        const char *name = script_name(s);
        bool has_after = !script_is_end(s) && strcmp(script_name(s), "after") == 0;
        uint32_t count = has_after ? script_nodes(s, after) : 0;
        s->last = ptowsp_pipeline_begin(m, name, count ? after : NULL, count).id;
    } else if (!strcmp(call, "channel")) {
        script_channel(s);
    } else if (!strcmp(call, "event")) {
        const char *name = script_name(s);
        script_add(s, SCRIPT_CHANNEL, name, ptowsp_event_make(m, name).id);
    } else if (!strcmp(call, "process")) {
        ptowsp_process_begin(m, script_name(s));
    } else if (!strcmp(call, "replicate")) {  // VARIABLE AXIS NAME
        const char *variable = script_name(s);
        ptowsp_axis axis = {script_id(s, SCRIPT_AXIS)};
        script_add(s, SCRIPT_VARIABLE, variable,
                   ptowsp_replicate_begin(m, variable, axis, script_name(s)).id);
    } else {
        return false;
    }
    return true;
}

// Calls on a channel, the last argument.
static inline bool script_channels(script *s, const char *call) {
    ptowsp_module *m = s->m;
    bool is_loop = !strcmp(call, "consume") || !strcmp(call, "receive");
    const char *variable = is_loop ? script_name(s) : NULL;
    const ptowsp_channel c = {script_id(s, SCRIPT_CHANNEL)};
    if (is_loop) {  // VARIABLE CHANNEL
        ptowsp_expr token = call[0] == 'c' ? ptowsp_consume_begin(m, variable, c)
                                           : ptowsp_receive_begin(m, variable, c);
        script_add(s, SCRIPT_VARIABLE, variable, token.id);
    } else if (!strcmp(call, "consumes")) {
        ptowsp_consumes(m, c);
    } else if (!strcmp(call, "produces")) {
        ptowsp_produces(m, c);
    } else if (!strcmp(call, "wait")) {
        ptowsp_wait_make(m, c);
    } else if (!strcmp(call, "send")) {  // CHANNEL EXPRESSION
        ptowsp_send_make(m, c, script_expr(s));
    } else if (!strcmp(call, "send_task")) {  // CHANNEL KERNEL ARGUMENT ...
        const ptowsp_task_desc task = script_task(s);
        s->last = ptowsp_send_task_make(m, c, &task).id;
    } else if (!strcmp(call, "record")) {
        ptowsp_record_make(m, c);
    } else if (!strcmp(call, "close")) {
        ptowsp_close_make(m, c);
    } else {
        return false;
    }
    return true;
}

// Goes on with the module at hand.
static inline void script_run(script *s, const char *text) {
    s->has_gone_on = false;
    for (s->at = text; *(s->at += strspn(s->at, "; "));) {
        char call[SCRIPT_WORD_MAX];
        script_word(s, call);
        s->last = 0;
        s->has_gone_on = ptowsp_module_error(s->m).status != PTOWSP_OK;
        if (!script_spreads(s, call) && !script_declares(s, call) && !script_begins(s, call) &&
            !script_does(s, call) && !script_pipelines(s, call) && !script_channels(s, call)) {
            fail_msg("no call of the builder: %s", call);
        }
        if (!script_is_end(s)) {
            fail_msg("%s does not take this: %s", call, s->at);
        }
    }
}

// -- modules --------------------------------------------------------------------------------------

// A new module, in place of the one at hand, with the declarations of the prelude.
static inline void script_begin(script *s) {
    static const char *const words[] = {"axis ", "tensor ", "kernel "};
    uint32_t counts[3] = {0, 0, 0};
    ptowsp_module_destroy(s->m);
    test_ok(s->context, ptowsp_module_parse(s->context, s->prelude, strlen(s->prelude),
                                            &s->functions, &s->m, NULL));
    s->thing_count = 0;
    for (const char *line = s->prelude; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        for (int kind = SCRIPT_AXIS; kind <= SCRIPT_KERNEL; kind++) {
            const char *name = script_after(line, words[kind]);
            if (name) {
                snprintf(s->things[s->thing_count].name, SCRIPT_WORD_MAX, "%.*s",
                         (int)strcspn(name, " ("), name);
                s->things[s->thing_count].kind = (script_kind)kind;
                s->things[s->thing_count++].id = ++counts[kind];
            }
        }
    }
}

static inline void script_make(script *s, const char *prelude) {
    memset(s, 0, sizeof *s);
    s->prelude = prelude;
    s->functions.default_cycles = 1;
    s->context = test_context(NULL);
    s->other = test_module(s->context, NULL);
    script_begin(s);
}

static inline void script_free(script *s) {
    ptowsp_module_destroy(s->other);
    test_destroy(NULL, NULL, s->m, s->context);
}

// The module has failed, and the error stays: it can be printed, but not compiled.
static inline void script_stays_refused(const script *s) {
    char printed[4096], text[1024];
    ptowsp_output_buffer buffer = {printed, sizeof printed, 0};
    const ptowsp_error error = ptowsp_module_error(s->m);
    ptowsp_program *program;
    snprintf(text, sizeof text, "%s", error.text);
    ptowsp_axis_dense(s->m, "", -1);  // not the first error
    assert_string_equal(ptowsp_module_error(s->m).text, text);
    ptowsp_module_print(s->m, ptowsp_output_to_buffer(&buffer));
    assert_true(buffer.length > 0);
    assert_int_equal(ptowsp_program_create(s->context, s->m, NULL, &program), error.status);
    assert_null(program);
    test_error_is(s->context, error.status, error.index, text);
}

// The last call returned nothing: the module failed with this error. The next module begins.
static inline void refused_as(script *s, ptowsp_status status, uint64_t index, const char *text) {
    const ptowsp_error error = ptowsp_module_error(s->m);
    assert_string_equal(error.text, text);
    assert_int_equal(error.status, status);
    assert_true(error.index == index);
    script_stays_refused(s);
    script_begin(s);
}

static inline void refused(script *s, const char *text) {
    refused_as(s, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, text);
}

// -- compiling ------------------------------------------------------------------------------------

// Compiling fails like this, and the module has no error of its own then.
static inline void not_compiled_as(const script *s, const ptowsp_program_desc *desc,
                                   ptowsp_status status, const char *text) {
    ptowsp_program *program;
    assert_string_equal(ptowsp_module_error(s->m).text, "");
    assert_int_equal(ptowsp_program_create(s->context, s->m, desc, &program), status);
    assert_null(program);
    test_error_is(s->context, status, PTOWSP_NO_INDEX, text);
    assert_ok(ptowsp_module_error(s->m).status);
    assert_string_equal(ptowsp_module_error(s->m).text, "");
}

static inline void compiled(const script *s, const ptowsp_program_desc *desc) {
    ptowsp_program *program;
    test_ok(s->context, ptowsp_program_create(s->context, s->m, desc, &program));
    ptowsp_program_destroy(program);
}

#endif
