// Scopes, streams and edges: see precedence.h.
//
// A scope holds its tokens, and releases those it no longer needs. Tokens of children are merged as
// they come, so a scope takes two tokens however many children it has.

#include "precedence.h"

PWSP_INTERNAL bool pwsp_precedence_init(pwsp_precedence *order, const pwsp_memory *memory,
                                        const pwsp_timed *timed) {
    memset(order, 0, sizeof *order);
    order->memory = *memory;
    order->has_structure = (timed->schedule.dependencies & PTOWSP_DEPENDENCIES_STRUCTURE) != 0;
    order->has_link = timed->has_link;
    order->scope_depth = timed->scope_depth;
    order->stream_count = timed->has_streams ? timed->schedule.stream_count : 0;
    order->edge_count = timed->edge_count;
    return PWSP_ALLOC(memory, order->scopes, order->scope_depth) &&
           PWSP_ALLOC(memory, order->streams, order->stream_count) &&
           PWSP_ALLOC(memory, order->edges, order->edge_count);
}

PWSP_INTERNAL void pwsp_precedence_begin(pwsp_precedence *order) {
    const pwsp_token none = pwsp_token_none();
    pwsp_open_scope root = {false, none, none};
    order->scopes[0] = root;
    order->depth = 1;
    order->link = none;
    for (uint32_t i = 0; i < order->stream_count; i++) {
        order->streams[i] = none;
    }
    for (uint32_t i = 0; i < order->edge_count; i++) {
        order->edges[i] = none;
    }
}

// -- tokens ---------------------------------------------------------------------------------------

static void pwsp_precedence_keep(const pwsp_precedence *order, const pwsp_token *token) {
    if (order->ops.keep) {
        order->ops.keep(order->ops.user, token);
    }
}

static void pwsp_precedence_drop(const pwsp_precedence *order, const pwsp_token *token) {
    if (order->ops.drop) {
        order->ops.drop(order->ops.user, token);
    }
}

PWSP_INTERNAL void pwsp_precedence_set(pwsp_precedence *order, pwsp_token *token,
                                       const pwsp_token *other) {
    const pwsp_token before = *token;
    pwsp_precedence_keep(order, other);
    *token = *other;
    pwsp_precedence_drop(order, &before);
}

// Times need only a maximum. Of other tokens, none and duplicates are left out: an empty scope
// passes on the token that it waited for.
PWSP_INTERNAL void pwsp_precedence_merge(pwsp_precedence *order, pwsp_token *into,
                                         const pwsp_token *other) {
    if (!order->ops.merge) {
        pwsp_token_later(into, other);
    } else if (into->task == PTOWSP_NO_INDEX) {
        pwsp_precedence_set(order, into, other);
    } else if (other->task != PTOWSP_NO_INDEX && !pwsp_token_is_same(into, other)) {
        order->ops.merge(order->ops.user, into, other);
    }
}

// -- structure ------------------------------------------------------------------------------------

static void pwsp_precedence_scope_begin(pwsp_precedence *order, bool is_parallel) {
    PTOWSP_ASSERT(order->depth > 0 && order->depth < order->scope_depth);
    const pwsp_token ready = order->scopes[order->depth - 1].ready;
    pwsp_open_scope scope = {is_parallel, ready, ready};
    pwsp_precedence_keep(order, &scope.ready);
    pwsp_precedence_keep(order, &scope.done);
    order->scopes[order->depth++] = scope;
}

static void pwsp_precedence_scope_end(pwsp_precedence *order) {
    PTOWSP_ASSERT(order->depth > 1);
    const pwsp_open_scope scope = order->scopes[--order->depth];
    pwsp_precedence_tell_child(order, scope.is_parallel ? &scope.done : &scope.ready, false);
    pwsp_precedence_drop(order, &scope.done);
    pwsp_precedence_drop(order, &scope.ready);
}

PWSP_INTERNAL void pwsp_precedence_mark(pwsp_precedence *order, const pwsp_mark *mark) {
    const pwsp_token none = pwsp_token_none();
    switch (mark->kind) {
    case PWSP_MARK_PARALLEL:
    case PWSP_MARK_SEQUENTIAL:
        pwsp_precedence_scope_begin(order, mark->kind == PWSP_MARK_PARALLEL);
        break;
    case PWSP_MARK_END: pwsp_precedence_scope_end(order); break;
    case PWSP_MARK_RESET:
        for (uint32_t i = 0; i < mark->edge_count; i++) {
            PTOWSP_ASSERT(mark->edges[i] < order->edge_count);
            pwsp_precedence_set(order, &order->edges[mark->edges[i]], &none);
        }
        break;
    case PWSP_MARK_JOIN:
        for (uint32_t i = 0; i < mark->edge_count; i++) {
            PTOWSP_ASSERT(mark->edges[i] < order->edge_count && mark->id < order->edge_count);
            pwsp_precedence_merge(order, &order->edges[mark->id], &order->edges[mark->edges[i]]);
        }
        if (mark->edge_count > 0) {  // programs without edges have no tokens for them
            // Closes it: several joins may begin with this one, and none may add to it.
            pwsp_precedence_keep(order, &order->edges[mark->id]);
            pwsp_precedence_drop(order, &order->edges[mark->id]);
        }
        break;
    default: break;
    }
}

// -- tasks ----------------------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_precedence_wait(pwsp_precedence *order, const pwsp_arrival *arrival,
                                        bool has_stream) {
    const pwsp_token_ops *ops = &order->ops;
    PTOWSP_ASSERT(ops->visit);
    if (order->has_structure) {
        ops->visit(ops->user, &order->scopes[order->depth - 1].ready);
    }
    pwsp_precedence_each(order, arrival, has_stream, true, ops->visit, ops->user);
}

PWSP_INTERNAL void pwsp_precedence_tell(pwsp_precedence *order, const pwsp_arrival *arrival,
                                        bool has_stream, const pwsp_token *token) {
    pwsp_precedence_tell_task(order, arrival, has_stream, token, false);
    if (order->has_structure) {
        pwsp_precedence_tell_child(order, token, false);
    }
}

typedef struct pwsp_open_count {
    bool (*is_open)(const void *user, const pwsp_token *token);
    const void *user;
    uint64_t count;
} pwsp_open_count;

static void pwsp_precedence_visit_open(void *user, const pwsp_token *token) {
    pwsp_open_count *open = (pwsp_open_count *)user;
    open->count += open->is_open(open->user, token);
}

PWSP_INTERNAL uint64_t pwsp_precedence_count(
    const pwsp_precedence *order, const pwsp_arrival *arrival, bool has_stream,
    bool (*is_open)(const void *user, const pwsp_token *token), const void *user) {
    pwsp_open_count open = {is_open, user, 0};
    if (order->has_structure) {
        pwsp_precedence_visit_open(&open, &order->scopes[order->depth - 1].ready);
    }
    pwsp_precedence_each(order, arrival, has_stream, false, pwsp_precedence_visit_open, &open);
    return open.count;
}
