// What a program says of itself as text, line by line, for lists worked out by hand: one line for
// each statement, with all that belongs to it.

#ifndef PTOWSP_READ_SAY_H
#define PTOWSP_READ_SAY_H

#include "read_walk.h"

typedef struct read_said {
    const ptowsp_program *program;
    char text[8192];
    size_t length;
} read_said;

// -- statements as text ---------------------------------------------------------------------------

static inline void say(read_said *f, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    assert_true(f->length + (size_t)length < sizeof f->text);
    memcpy(f->text + f->length, text, (size_t)length + 1);
    f->length += (size_t)length;
}

static inline const char *operator_name(ptowsp_expr_kind kind) {
    static const char *const names[] = {"+",  "-",  "*",   "/",  "%",  "min", "max", "&",    "^",
                                        "|",  "<<", ">>",  "==", "!=", "<",   "<=",  ">",    ">=",
                                        "&&", "||", "neg", "~",  "!",  "i64", "u64", "bool", "?"};
    assert_true(kind >= PTOWSP_EXPR_ADD && kind <= PTOWSP_EXPR_SELECT);
    return names[kind - PTOWSP_EXPR_ADD];
}

static inline const ptowsp_program_tables *read_tables(const read_said *f) {
    return ptowsp_program_read(f->program);
}

static inline const char *variable_name(const read_said *f, uint32_t variable) {
    return read_tables(f)->variables[variable].name;
}

static inline void say_expr(read_said *f, uint32_t expr) {
    const ptowsp_expr_info e = read_tables(f)->exprs[expr];
    assert_true(e.type != PTOWSP_TYPE_NONE);
    switch (e.kind) {
    case PTOWSP_EXPR_CONST:
        if (e.type == PTOWSP_TYPE_BOOL) {
            say(f, "%s", e.value ? "true" : "false");
        } else {
            say(f, "%lld%s", (long long)e.value, e.type == PTOWSP_TYPE_U64 ? "u" : "");
        }
        return;
    case PTOWSP_EXPR_VARIABLE: say(f, "%s", variable_name(f, e.id)); return;
    case PTOWSP_EXPR_ENTRY: say(f, "entry(%s)", variable_name(f, e.id)); return;
    case PTOWSP_EXPR_SIZE: say(f, "size(%s)", read_tables(f)->axes[e.id].name); return;
    case PTOWSP_EXPR_SYMBOL: say(f, "%s", read_tables(f)->symbols[e.id].name); return;
    case PTOWSP_EXPR_ARRAY:
        say(f, "%s[", read_tables(f)->arrays[e.id].name);
        say_expr(f, e.a);
        say(f, "]");
        return;
    case PTOWSP_EXPR_SLOT: say(f, "slot%u", e.id); return;
    case PTOWSP_EXPR_TASK_ARG: say(f, "arg%u", e.id); return;
    default: break;
    }
    const uint32_t operands[] = {e.a, e.b, e.c};
    say(f, "(%s", operator_name(e.kind));
    for (uint32_t i = 0; i < 3 && operands[i]; i++) {
        say(f, " ");
        say_expr(f, operands[i]);
    }
    say(f, ")");
}

static inline void say_view(read_said *f, const ptowsp_view_info *view) {
    say(f, " %s%s %s[", view->is_read ? "r" : "", view->is_written ? "w" : "",
        read_tables(f)->tensors[view->tensor].desc.name);
    for (uint32_t i = 0; i < view->lead_count; i++) {
        say_expr(f, view->lead[i]);
        say(f, "; ");
    }
    if (view->row) {
        say_expr(f, view->row);
    }
    say(f, "+%lld, ", (long long)view->rows);
    if (view->col) {
        say_expr(f, view->col);
    }
    say(f, "+%lld]", (long long)view->cols);
}

static inline void say_edges(read_said *f, const char *what, const uint32_t *edges,
                             uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        say(f, "%s%u", i ? "," : what, edges[i]);
    }
}

static inline void say_task(read_said *f, uint32_t statement) {
    const ptowsp_task_info task = read_tables(f)->tasks[read_tables(f)->statements[statement].task];
    if (task.kernel) {
        say(f, " %s", ptowsp_program_kernel_name(f->program, task.kernel));
    }
    for (uint32_t i = 0; i < task.axis_count; i++) {
        say(f, " ");
        say_expr(f, task.axes[i]);
    }
    for (uint32_t i = 0; i < task.tile_count; i++) {
        const ptowsp_view_info view = task.tiles[i];
        say_view(f, &view);
    }
    for (uint32_t i = 0; i < task.scalar_count; i++) {
        say(f, i ? ", " : " scalars ");
        say_expr(f, task.scalars[i]);
    }
    const uint32_t keys[] = {task.dispatch_key, task.priority_key, task.stream_key};
    static const char *const names[] = {"dispatch", "priority", "stream"};
    for (uint32_t i = 0; i < 3; i++) {
        if (keys[i]) {
            say(f, " %s ", names[i]);
            say_expr(f, keys[i]);
        }
    }
    say_edges(f, " in ", task.in, task.in_count);
    say_edges(f, " out ", task.out, task.out_count);
}

static inline const char *statement_name(ptowsp_statement_kind kind) {
    static const char *const names[] = {"NONE",      "WORKLOAD", "SCOPE",   "LOOP",     "WHEN",
                                        "OTHERWISE", "CALL",     "TASK",    "SLOT_SET", "SLOT_LOAD",
                                        "RESET",     "PIPELINE", "PROCESS", "CONSUME",  "RECEIVE",
                                        "SEND",      "CLOSE",    "RECORD",  "WAIT",     "END"};
    assert_true(kind < PTOWSP_STATEMENT_KIND_COUNT);
    return names[kind];
}

static inline void say_channel(read_said *f, uint32_t channel) {
    say(f, " %s", read_tables(f)->channels[channel].name);
}

// What is in the lists of a statement.
static inline void say_lists(read_said *f, const ptowsp_statement *s) {
    for (uint32_t i = s->first; i < s->first + s->count; i++) {
        if (s->kind == PTOWSP_STATEMENT_CALL) {
            say(f, i > s->first ? ", " : " ");
            say_expr(f, read_tables(f)->values[i]);
        } else if (s->kind == PTOWSP_STATEMENT_WORKLOAD) {
            const ptowsp_variable_info variable =
                read_tables(f)->variables[read_tables(f)->params[i]];
            say(f, " %s:%s", variable.name, variable.type == PTOWSP_TYPE_I64 ? "i64" : "other");
        } else if (s->kind == PTOWSP_STATEMENT_PIPELINE) {
            const ptowsp_channel_info channel = read_tables(f)->channels[i];
            say(f, " %s %s %u %llu", channel.is_event ? "event" : "channel", channel.name,
                channel.depth, (unsigned long long)channel.latency);
            if (channel.depth_at_start) {
                say(f, " depth ");
                say_expr(f, channel.depth_at_start);
            }
            if (channel.latency_at_start) {
                say(f, " latency ");
                say_expr(f, channel.latency_at_start);
            }
        } else if (s->kind == PTOWSP_STATEMENT_PROCESS) {
            const ptowsp_port_info port = read_tables(f)->ports[i];
            say(f, " %s%s", port.is_produced ? ">" : "<", port.is_closed_early ? "!" : "");
            say(f, "%s", read_tables(f)->channels[port.channel].name);
        }
    }
    if (s->kind == PTOWSP_STATEMENT_RESET) {
        say_edges(f, " ", read_tables(f)->edges + s->first, s->count);
    }
}

static inline void say_statement(read_said *f, uint32_t i) {
    const ptowsp_statement s = read_tables(f)->statements[i];
    bool has_channel = s.kind >= PTOWSP_STATEMENT_CONSUME && s.kind <= PTOWSP_STATEMENT_WAIT;
    say(f, "%u %s%s%s", i, statement_name(s.kind), s.name ? " " : "", s.name ? s.name : "");
    if (s.variable) {
        say(f, " %s", variable_name(f, s.variable));
    }
    if (s.axis) {
        say(f, " in %s", read_tables(f)->axes[s.axis].name);
    }
    if (s.row) {
        say(f, " row ");
        say_expr(f, s.row);
    }
    if (s.scope) {
        say(f, s.scope == PTOWSP_SCOPE_PARALLEL ? " parallel" : " sequential");
    }
    if (has_channel) {
        say_channel(f, s.channel);
    }
    if (s.kind == PTOWSP_STATEMENT_CALL) {
        say(f, " %s", read_tables(f)->statements[s.target].name);
    }
    if (s.kind == PTOWSP_STATEMENT_SLOT_SET || s.kind == PTOWSP_STATEMENT_SLOT_LOAD) {
        say(f, " %u", s.slot);
    }
    if (s.value) {
        say(f, " ");
        say_expr(f, s.value);
    }
    say_lists(f, &s);
    if (s.kind == PTOWSP_STATEMENT_TASK || s.kind == PTOWSP_STATEMENT_PIPELINE) {
        say_task(f, i);
    } else if (s.kind == PTOWSP_STATEMENT_SLOT_LOAD) {
        const ptowsp_load_info load = read_tables(f)->loads[read_tables(f)->statements[i].load];
        say_view(f, &load.view);
        if (load.row) {
            say(f, " row ");
            say_expr(f, load.row);
        }
        if (load.col) {
            say(f, " col ");
            say_expr(f, load.col);
        }
    }
    if (s.end) {
        say(f, " end %u", s.end);
    }
    if (s.kind == PTOWSP_STATEMENT_END || s.kind == PTOWSP_STATEMENT_OTHERWISE) {
        say(f, " of %u", s.begin);
    }
    say(f, "\n");
}

// All statements of a program, whose form is checked.
static inline const char *read_say(read_said *f, const ptowsp_program *program) {
    read_check_form(program);
    f->program = program;
    f->length = 0;
    f->text[0] = '\0';
    for (uint32_t i = 0; i < read_tables(f)->statement_count; i++) {
        say_statement(f, i);
    }
    return f->text;
}

#endif
