// What a task waits for in real time, whatever it waits for in simulated time: tasks before it that
// touch the same data, and what the schedule says of structure, explicit edges and streams.
//
// Scopes are as in flow.c: a child of a sequential one waits for the child before it, children of a
// parallel one for what the scope itself waits for, and the scope is done when all of them are.

#include "issue.h"

PWSP_INTERNAL void pwsp_issue_child(pwsp_issue *issue, const pwsp_token *token) {
    pwsp_issue_scope *scope = &issue->scopes[issue->depth - 1];
    if (scope->is_parallel) {
        pwsp_reorder_merge(&issue->reorder, &scope->done, token);
    } else {
        pwsp_reorder_set(&issue->reorder, &scope->ready, token);
    }
}

PWSP_INTERNAL void pwsp_issue_scope_begin(pwsp_issue *issue, bool is_parallel) {
    PTOWSP_ASSERT(issue->depth < issue->run->program->scope_depth);
    pwsp_issue_scope scope = {is_parallel, pwsp_reorder_no_token(), pwsp_reorder_no_token()};
    pwsp_reorder_set(&issue->reorder, &scope.ready, &issue->scopes[issue->depth - 1].ready);
    issue->scopes[issue->depth++] = scope;
}

PWSP_INTERNAL void pwsp_issue_scope_end(pwsp_issue *issue) {
    PTOWSP_ASSERT(issue->depth > 1);
    pwsp_issue_scope scope = issue->scopes[--issue->depth];
    bool has_done = scope.done.task != PWSP_NO_TOKEN_TASK;
    pwsp_issue_child(issue, has_done ? &scope.done : &scope.ready);
    pwsp_reorder_drop(&issue->reorder, &scope.done);
    pwsp_reorder_drop(&issue->reorder, &scope.ready);
}

PWSP_INLINE uint32_t pwsp_issue_edge(const pwsp_issue *issue, uint32_t i) {
    return *PWSP_PROGRAM_AT(issue->run->program, edges, uint32_t, i);
}

PWSP_INTERNAL void pwsp_issue_reset(pwsp_issue *issue, pwsp_range edges) {
    pwsp_token none = pwsp_reorder_no_token();
    for (uint32_t i = 0; i < edges.count; i++) {
        pwsp_reorder_set(&issue->reorder, &issue->edges[pwsp_issue_edge(issue, edges.first + i)],
                         &none);
    }
}

PWSP_INTERNAL void pwsp_issue_out(pwsp_issue *issue, const pwsp_task_op *op,
                                  const pwsp_token *token) {
    for (uint32_t i = 0; i < op->out_count; i++) {
        uint32_t edge = pwsp_issue_edge(issue, op->first_out + i);
        pwsp_reorder_merge(&issue->reorder, &issue->edges[edge], token);
    }
}

PWSP_INTERNAL bool pwsp_issue_connect(pwsp_issue *issue, const pwsp_expander *x,
                                      uint64_t stream_key) {
    pwsp_reorder *reorder = &issue->reorder;
    const pwsp_task_op *op = x->task_op;
    const pwsp_tile_view *views =
        PWSP_PROGRAM_AT(x->program, views, pwsp_tile_view, op->first_view);
    pwsp_token token = pwsp_reorder_token(reorder);
    if (issue->has_structure) {
        pwsp_reorder_wait(reorder, &issue->scopes[issue->depth - 1].ready);
    }
    for (uint32_t i = 0; i < op->in_count; i++) {
        pwsp_reorder_wait(reorder, &issue->edges[pwsp_issue_edge(issue, op->first_in + i)]);
    }
    if (issue->streams) {
        uint32_t count = x->program->schedule.stream_count;
        pwsp_token *last = &issue->streams[pwsp_modulo(stream_key, count)];
        pwsp_reorder_wait(reorder, last);
        *last = token;
    }
    if (!pwsp_deps_query(&issue->deps, views, x->tiles_at, op->view_count) ||
        !pwsp_deps_add(&issue->deps, views, x->tiles_at, op->view_count, &token)) {
        return false;
    }
    if (issue->has_structure) {
        pwsp_issue_child(issue, &token);
    }
    pwsp_issue_out(issue, op, &token);
    return true;
}
