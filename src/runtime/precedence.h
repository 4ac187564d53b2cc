// Precedence by the schedule: structure, streams and explicit edges.
//
//      structure   a child of a sequential scope waits for the child before it; children of a
//                  parallel scope wait as the scope itself does, and the scope is done
//                  when all of them are
//      streams     a task waits for the last task of its stream
//      edges       a task waits for the ends of the edges that lead to it, since they were reset
//      links       a task that communicates waits for the one before it: all ranks do the same
//
// The rules are the same for real execution and for both kinds of simulated time: each has an
// object of its own, with its own tokens. Data is handled elsewhere: see deps.h.

#ifndef PWSP_PRECEDENCE_H
#define PWSP_PRECEDENCE_H

#include "arrival.h"

typedef struct pwsp_open_scope {
    bool is_parallel;
    pwsp_token ready;  // dependences of the next child
    pwsp_token done;   // parallel: the children so far, and the scope's own dependences
} pwsp_open_scope;

typedef struct pwsp_precedence {
    pwsp_memory memory;
    pwsp_token_ops ops;  // set by the owner before pwsp_precedence_begin; zeros: tokens are times
    bool has_structure, has_link;
    pwsp_token link;  // the last task that communicates
    uint32_t scope_depth, stream_count, edge_count;
    uint32_t depth;           // of open scopes, with that around all
    pwsp_open_scope *scopes;  // the innermost last
    pwsp_token *streams;      // NULL: none
    pwsp_token *edges;        // NULL: none
} pwsp_precedence;

// False when memory is out.
PWSP_INTERNAL bool pwsp_precedence_init(pwsp_precedence *order, const pwsp_memory *memory,
                                        const pwsp_timed *timed);

// Forgets everything: nothing is dropped.
PWSP_INTERNAL void pwsp_precedence_begin(pwsp_precedence *order);

// A scope begins or ends, or edges restart. Other marks do nothing.
PWSP_INTERNAL void pwsp_precedence_mark(pwsp_precedence *order, const pwsp_mark *mark);

// Replaces a held token.
PWSP_INTERNAL void pwsp_precedence_set(pwsp_precedence *order, pwsp_token *token,
                                       const pwsp_token *other);

// Makes a held token stand for another one, too.
PWSP_INTERNAL void pwsp_precedence_merge(pwsp_precedence *order, pwsp_token *into,
                                         const pwsp_token *other);

// -- the rules, for all kinds of tokens -----------------------------------------------------------
//
// A pipeline has neither stream nor links: !has_stream. Tokens that are times need no calls (is_time).

PWSP_FORCE_INLINE uint32_t pwsp_precedence_stream(const pwsp_precedence *order,
                                                  const pwsp_arrival *arrival) {
    return order->streams ? pwsp_modulo(arrival->stream_key, order->stream_count) : 0;
}

// Is it a task that communicates?
PWSP_FORCE_INLINE bool pwsp_precedence_is_link(const pwsp_precedence *order,
                                               const pwsp_arrival *arrival, bool has_stream) {
    return order->has_link && has_stream && arrival->unit == PTOWSP_UNIT_LINK;
}

// Does all precedence come from structure?
PWSP_FORCE_INLINE bool pwsp_precedence_is_structure(const pwsp_precedence *order) {
    return order->has_structure && !order->streams && !order->edges && !order->has_link;
}

// Visits the tokens that a task awaits by edges, its stream and, if asked for, the links.
PWSP_FORCE_INLINE void pwsp_precedence_each(const pwsp_precedence *order,
                                            const pwsp_arrival *arrival, bool has_stream,
                                            bool has_links,
                                            void (*visit)(void *user, const pwsp_token *token),
                                            void *user) {
    for (uint32_t i = 0; i < arrival->after_count; i++) {
        PTOWSP_ASSERT(arrival->after[i] < order->edge_count);
        visit(user, &order->edges[arrival->after[i]]);
    }
    if (has_stream && order->streams) {
        visit(user, &order->streams[pwsp_precedence_stream(order, arrival)]);
    }
    if (has_links && pwsp_precedence_is_link(order, arrival, has_stream)) {
        visit(user, &order->link);
    }
}

PWSP_FORCE_INLINE void pwsp_precedence_put(pwsp_precedence *order, pwsp_token *token,
                                           const pwsp_token *other, bool is_time) {
    if (is_time) {
        *token = *other;
    } else {
        pwsp_precedence_set(order, token, other);
    }
}

PWSP_FORCE_INLINE void pwsp_precedence_add(pwsp_precedence *order, pwsp_token *into,
                                           const pwsp_token *other, bool is_time) {
    if (is_time) {
        pwsp_token_later(into, other);
    } else {
        pwsp_precedence_merge(order, into, other);
    }
}

// Registers the token of a task for its edges, its stream and the links.
PWSP_FORCE_INLINE void pwsp_precedence_tell_task(pwsp_precedence *order,
                                                 const pwsp_arrival *arrival, bool has_stream,
                                                 const pwsp_token *token, bool is_time) {
    for (uint32_t i = 0; i < arrival->before_count; i++) {
        PTOWSP_ASSERT(arrival->before[i] < order->edge_count);
        pwsp_precedence_add(order, &order->edges[arrival->before[i]], token, is_time);
    }
    if (has_stream && order->streams) {
        pwsp_token *stream = &order->streams[pwsp_precedence_stream(order, arrival)];
        pwsp_precedence_put(order, stream, token, is_time);
    }
    if (pwsp_precedence_is_link(order, arrival, has_stream)) {
        pwsp_precedence_put(order, &order->link, token, is_time);
    }
}

// The token of a child of the open scope, for its siblings or for the end of the scope.
PWSP_FORCE_INLINE void pwsp_precedence_tell_child(pwsp_precedence *order, const pwsp_token *token,
                                                  bool is_time) {
    pwsp_open_scope *scope = &order->scopes[order->depth - 1];
    if (scope->is_parallel) {
        pwsp_precedence_add(order, &scope->done, token, is_time);
    } else {
        pwsp_precedence_put(order, &scope->ready, token, is_time);
    }
}

// -- tokens that are visited ----------------------------------------------------------------------

// Visits the dependences of a task by structure, edges, its stream and the links.
PWSP_INTERNAL void pwsp_precedence_wait(pwsp_precedence *order, const pwsp_arrival *arrival,
                                        bool has_stream);

// Registers a task's token for its successors.
PWSP_INTERNAL void pwsp_precedence_tell(pwsp_precedence *order, const pwsp_arrival *arrival,
                                        bool has_stream, const pwsp_token *token);

// How many of structure, each edge and its stream a task waits for. is_open says of a token: has
// not everything it stands for ended?
PWSP_INTERNAL uint64_t
pwsp_precedence_count(const pwsp_precedence *order, const pwsp_arrival *arrival, bool has_stream,
                      bool (*is_open)(const void *user, const pwsp_token *token), const void *user);

// -- times ----------------------------------------------------------------------------------------

// The time until which a task waits by structure. Its other waits: _each with _visit_time.
PWSP_FORCE_INLINE pwsp_token pwsp_precedence_ready(const pwsp_precedence *order) {
    return order->has_structure ? order->scopes[order->depth - 1].ready : pwsp_token_none();
}

// A visitor that finds the latest time.
PWSP_FORCE_INLINE void pwsp_precedence_visit_time(void *latest, const pwsp_token *time) {
    pwsp_token_later((pwsp_token *)latest, time);
}

#endif
