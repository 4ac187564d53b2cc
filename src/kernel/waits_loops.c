// Waits of loops: dependences between iterations.
//
// All pipes wait for each other before and after a loop, so that a body is a list of its own, to
// which the above applies. A loop that contains another one ends each iteration in the same way. An
// innermost loop lets iterations overlap. Between them, u of one iteration must come before x of a
// later one, on another pipe, where u follows x in the body and
//
//      - both touch the same bytes: of a root that rotates, two iterations later; otherwise one
//      - or x sets the event for which u waits: two later if the event rotates, else one
//
// (If u is ahead of x in the body, the flags of one iteration already see to it, as pipes run in
// order.) One token for each pair of pipes and distance says this:
//
//      set_flag(V, MTE2, 6)   set_flag(V, MTE2, 7)          before the loop: both buffers are free
//      LOOP
//        wait_flag(V, MTE2, 6 or 7)                         before the first x
//        TLOAD ... set_flag(MTE2, V, 0 or 1) ... TADD
//        set_flag(V, MTE2, 6 or 7)                          behind the last u
//      END
//      wait_flag(V, MTE2, 6)  wait_flag(V, MTE2, 7)
//
// The first x comes before its u in each iteration, and so the wait for a token before its next set:
// one bit is enough. The flags of a pipe that fills rotating roots rotate, so a pipe has two events
// of each kind and two iterations of time; all other events wait for one. On A2/A3's vector pipe a
// barrier in each iteration stands for all that it depends on in earlier ones.

#include "waits_state.h"

// Tokens to the next iteration have one event, those to the one after it a pair.
#define PWSP_WAITS_TOKEN_EVENT  5
#define PWSP_WAITS_TOKEN_PAIRED 6

// Bodies of more instructions do not overlap: finding tokens takes the square of their number.
#define PWSP_WAITS_BODY_MAX 4096

// Do two instructions touch the same bytes, one of them writing, and in how many iterations again?
// 0: they do not.
static uint32_t pwsp_waits_distance(const pwsp_waits *w, uint32_t u, uint32_t x) {
    pwsp_insn_tiles of_u, of_x;
    uint32_t distance = 0;
    pwsp_waits_find_accesses(w, &w->list->insns[u], &of_u);
    pwsp_waits_find_accesses(w, &w->list->insns[x], &of_x);
    for (uint32_t a = 0; a < of_u.count; a++) {
        for (uint32_t b = a < of_u.read_count ? of_x.read_count : 0; b < of_x.count; b++) {
            const pwsp_waits_place *p = &w->where[of_u.at[a]], *q = &w->where[of_x.at[b]];
            if (p->begin < q->end && q->begin < p->end) {
                uint32_t of = p->is_rotating && q->is_rotating ? 2 : 1;
                distance = distance == 1 ? 1 : of;
            }
        }
    }
    return distance;
}

// Half slots: early ops of slot s are at 2 s, others at 2 s + 1, and then comes instruction s.
static void pwsp_waits_need_token(pwsp_waits *w, uint32_t distance, uint32_t src, uint32_t dst,
                                  uint32_t set_at, uint32_t wait_at) {
    pwsp_waits_token *token = &w->tokens[distance - 1][src][dst];
    token->set_at = !token->is_needed || set_at > token->set_at ? set_at : token->set_at;
    token->wait_at = !token->is_needed || wait_at < token->wait_at ? wait_at : token->wait_at;
    token->is_needed = true;
}

// Finds the tokens that the body from instruction `begin` up to `end` needs.
static void pwsp_waits_find_tokens(pwsp_waits *w, uint32_t begin, uint32_t end) {
    memset(w->tokens, 0, sizeof w->tokens);
    for (uint32_t u = begin; u < end; u++) {
        for (uint32_t x = begin; x < u && w->pipes[u] != PTOISA_PIPE_ALL; x++) {
            bool is_apart = w->pipes[u] == w->pipes[x] || w->pipes[x] == PTOISA_PIPE_ALL;
            uint32_t distance = is_apart ? 0 : pwsp_waits_distance(w, u, x);
            if (distance) {
                pwsp_waits_need_token(w, distance, w->pipes[u], w->pipes[x], 2 * (u + 1),
                                      2 * x + 1);
            }
        }
    }
    for (uint64_t k = w->loop_op; k < w->op_count; k++) {
        const pwsp_waits_op *set = &w->ops[k];
        for (uint64_t j = k + 1; set->op == PTOISA_SET_FLAG && j < w->op_count; j++) {
            const pwsp_waits_op *wait = &w->ops[j];
            if (wait->op == PTOISA_WAIT_FLAG && wait->src == set->src && wait->dst == set->dst &&
                wait->event == set->event) {
                // Before the set: an early one follows an instruction of its pipe.
                uint32_t before = set->is_early ? 2 * set->slot - 1 : 2 * set->slot;
                pwsp_waits_need_token(w, set->loop ? 2 : 1, set->dst, set->src, 2 * wait->slot + 1,
                                      before);
                break;
            }
        }
    }
}

static void pwsp_waits_add_at(pwsp_waits *w, ptoisa_op op, uint32_t src, uint32_t dst,
                              uint32_t event, uint32_t at, bool is_rotating) {
    uint32_t k = pwsp_waits_add(w, op, src, dst, event, at / 2, at % 2 == 0);
    if (k != PWSP_WAITS_NONE) {
        w->ops[k].loop = is_rotating ? (uint8_t)w->loop : 0;
    }
}

// Inserts the tokens of a body, in it and around the loop.
static void pwsp_waits_add_tokens(pwsp_waits *w, uint32_t end) {
    for (uint32_t i = 0; i < 2 * PTOISA_PIPE_COUNT * PTOISA_PIPE_COUNT; i++) {
        const pwsp_waits_token *token = &w->tokens[0][0][0] + i;
        uint32_t src = i / PTOISA_PIPE_COUNT % PTOISA_PIPE_COUNT, dst = i % PTOISA_PIPE_COUNT;
        bool is_second = i >= PTOISA_PIPE_COUNT * PTOISA_PIPE_COUNT;
        uint32_t event = is_second ? PWSP_WAITS_TOKEN_PAIRED : PWSP_WAITS_TOKEN_EVENT;
        if (!token->is_needed) {
            continue;
        }
        pwsp_waits_add_at(w, PTOISA_WAIT_FLAG, src, dst, event, token->wait_at, is_second);
        pwsp_waits_add_at(w, PTOISA_SET_FLAG, src, dst, event, token->set_at, is_second);
        for (uint32_t one = 0; one <= is_second; one++) {
            pwsp_waits_add_at(w, PTOISA_SET_FLAG, src, dst, event + one, 2 * w->loop_insn + 1,
                              false);
            pwsp_waits_add_at(w, PTOISA_WAIT_FLAG, src, dst, event + one, 2 * (end + 1), false);
        }
    }
    for (uint32_t i = w->loop_insn + 1; i < end && w->has_slow_vector; i++) {
        if (w->pipes[i] == PTOISA_PIPE_V) {
            pwsp_waits_add(w, PTOISA_PIPE_BARRIER, PTOISA_PIPE_V, PTOISA_PIPE_V, 0, i, false);
            break;
        }
    }
}

// How many ops the other core has got between the mark at `begin` and the one at `end`.
static uint32_t pwsp_waits_others_ops(const pwsp_waits *w, uint32_t begin, uint32_t end) {
    uint32_t count = 0;
    for (uint64_t k = 0; k < w->first_op; k++) {
        count += w->ops[k].slot > begin && w->ops[k].slot <= end;
    }
    return count;
}

// Is the loop that begins at an instruction one whose iterations may overlap? *out_rotating gets
// the pipes that fill rotating roots.
static bool pwsp_waits_overlaps(const pwsp_waits *w, uint32_t i, uint8_t *out_rotating) {
    const pwsp_list *list = w->list;
    *out_rotating = 0;
    for (uint32_t at = i + 1;; at++) {  // up to its END
        const pwsp_insn *insn = &list->insns[at];
        if (pwsp_insn_is_mark(insn)) {
            return insn->op == PWSP_INSN_END &&
                   at - i + pwsp_waits_others_ops(w, i, at) <= PWSP_WAITS_BODY_MAX;
        }
        if (pwsp_waits_is_others(w, insn)) {
            continue;
        }
        const pwsp_list_tile *tile = &list->tiles[insn->dst[0]];
        if (insn->dst[0] && list->tiles[tile->root].loop && w->pipes[at] != PTOISA_PIPE_V) {
            *out_rotating = (uint8_t)(*out_rotating | 1u << w->pipes[at]);
        }
    }
}

// Does every pipe know that all others are done? True at the beginning and after a barrier.
static bool pwsp_waits_is_quiet(const pwsp_waits *w) {
    for (int p = 0; p < PTOISA_PIPE_COUNT; p++) {
        for (int q = 0; q < PTOISA_PIPE_COUNT; q++) {
            bool is_kept = p != q || (p == PTOISA_PIPE_V && w->has_slow_vector);
            if (is_kept && w->end[q] > w->known[p][q]) {
                return false;
            }
        }
    }
    return true;
}

PWSP_INTERNAL bool pwsp_waits_mark(pwsp_waits *w, uint32_t i) {
    const pwsp_insn *insn = &w->list->insns[i];
    w->ticks[i] = ++w->tick;
    uint8_t rotating;
    if (pwsp_waits_is_others_loop(w, i)) {
        return true;
    }
    if (insn->op == PWSP_INSN_LOOP) {
        if (!pwsp_waits_is_quiet(w)) {
            pwsp_waits_barrier_all(w, i);
        }
        w->loop = pwsp_waits_overlaps(w, i, &rotating) ? insn->loop : 0;
        w->rotating = w->loop ? rotating : 0;
        w->loop_insn = i;
        w->loop_op = w->op_count;
        return !w->is_out_of_memory;
    }
    if (w->loop) {
        pwsp_waits_find_tokens(w, w->loop_insn + 1, i);
        pwsp_waits_add_tokens(w, i);
    } else {
        pwsp_waits_barrier_all(w, i);
    }
    w->loop = 0;
    w->rotating = 0;
    pwsp_waits_barrier_all(w, i + 1);
    if (!w->is_out_of_memory) {
        w->ops[w->op_count - 1].is_early = true;  // after the tokens
    }
    return !w->is_out_of_memory;
}
