// Tokens stand for the completion of one or several tasks. The map of regions and the rules of
// precedence hold tokens without knowing their meaning:
//
//      in-order time     the end of a task, and its index
//      event simulation  a node
//      real execution    an entry of the reorder buffer, or a join of several

#ifndef PWSP_TOKEN_H
#define PWSP_TOKEN_H

#include "../base/base.h"

typedef struct pwsp_token {
    uint64_t time;
    uint64_t task;  // PTOWSP_NO_INDEX: none
} pwsp_token;

// Operations on tokens. With is_dead NULL a token is a time: dead when it is before the clock, and
// two merge to the later one.
typedef struct pwsp_token_ops {
    bool (*is_dead)(void *user, const pwsp_token *token);
    void (*visit)(void *user, const pwsp_token *token);  // the current task waits for it
    void (*keep)(void *user, const pwsp_token *token);   // adds a reference
    void (*drop)(void *user, const pwsp_token *token);   // it is held no more
    void (*merge)(void *user, pwsp_token *into, const pwsp_token *other);  // into is held
    void *user;
    bool is_small;  // tokens are a task below 2^32 and time 0: they take less memory
} pwsp_token_ops;

PWSP_INLINE pwsp_token pwsp_token_none(void) {
    pwsp_token token = {0, PTOWSP_NO_INDEX};
    return token;
}

PWSP_INLINE bool pwsp_token_is_same(const pwsp_token *a, const pwsp_token *b) {
    return a->time == b->time && a->task == b->task;
}

// Of two times, the later one.
PWSP_INLINE void pwsp_token_later(pwsp_token *token, const pwsp_token *other) {
    if (other->time > token->time) {
        *token = *other;
    }
}

#endif
