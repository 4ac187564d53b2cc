// Waits of loops: dependences between iterations.
//
// All pipes wait for each other before and after a nest of loops, so that its body is a list of its
// own, to which the above applies. Iterations of all its loops overlap. Between
// them, u of one iteration must come before x of a later one, on another pipe, where u follows x in
// the body and
//
//      - both touch the same bytes: of a root that rotates, two iterations later; otherwise one
//      - or x sets the event for which u waits: two later if the event rotates, else one
//
// (If u is ahead of x in the body, the flags of one iteration already see to it, as pipes run in
// order.) Tokens say this, one for each step of a pair of pipes and distance (pwsp_waits_step):
//
//      set_flag(V, MTE2, 6)   set_flag(V, MTE2, 7)          before the nest: both buffers are free
//      LOOP
//        wait_flag(V, MTE2, 6 or 7)                         before x
//        TLOAD ... set_flag(MTE2, V, 0 or 1) ... TADD
//        set_flag(V, MTE2, 6 or 7)                          after u
//      END
//      wait_flag(V, MTE2, 6)  wait_flag(V, MTE2, 7)         after the nest
//
// The first x comes before its u in each iteration, and so the wait for a token before its next set:
// one bit is enough. The flags of a pipe that fills rotating roots rotate, so a pipe has two events
// of each kind and two iterations of time; all other events wait for one. On A2/A3's vector pipe a
// barrier in each iteration stands for all that it depends on in earlier ones.
//
// Nests. A loop may run not at all, so no flag crosses its ends: from outside, its instructions
// count as done where the loop is.
//
//      LOOP 1
//        wait_flag(FIX, M, 5)              x is in loop 2: before loop 2, once
//        LOOP 2 ... TMATMUL ... END
//        set_flag(M, FIX, 0)               the last of loop 2: after it
//        wait_flag(M, FIX, 0)
//        TSTORE
//        set_flag(FIX, M, 5)
//      END
//
// The tokens of loop 2 are set before loop 1 and waited for after it: they pass from the last
// iteration of loop 2 to the first one of its next run, and stand for what loop 1 carries between
// instructions of loop 2. So loads for the next run of loop 2 begin while the last products of this
// one are under way. Each loop of a nest has events of its own. Where they do not suffice, the outer
// loops have barriers at the ends of their bodies, and each innermost loop is a nest.

#include "waits_state.h"

// Tokens to the next iteration have one event, those to the one after it a pair. Further tokens
// take events that no loop of the nest has.
#define PWSP_WAITS_TOKEN_EVENT  5
#define PWSP_WAITS_TOKEN_PAIRED 6

// Bodies of more instructions do not overlap: finding tokens takes the square of their number.
#define PWSP_WAITS_BODY_MAX 4096u

// Do two places share bytes, or the other ones of either?
static bool pwsp_waits_meets(const pwsp_waits *w, uint32_t a, uint32_t b) {
    for (uint32_t p = a; p; p = w->where[p].second) {
        for (uint32_t q = b; q; q = w->where[q].second) {
            if (w->where[p].begin < w->where[q].end && w->where[q].begin < w->where[p].end) {
                return true;
            }
        }
    }
    return false;
}

// Does a place change with each iteration of a loop?
static bool pwsp_waits_rotates(const pwsp_waits *w, uint32_t at, uint32_t loop) {
    const pwsp_list_tile *tiles = w->list->tiles;
    return w->where[at].second && tiles[tiles[at].root].loop == loop;
}

// Do two instructions touch the same bytes, one of them writing, and in how many iterations again,
// of a loop? 0: they do not.
static uint32_t pwsp_waits_distance(const pwsp_waits *w, uint32_t loop, uint32_t u, uint32_t x) {
    pwsp_insn_tiles of_u, of_x;
    uint32_t distance = 0;
    pwsp_waits_find_accesses(w, &w->list->insns[u], &of_u);
    pwsp_waits_find_accesses(w, &w->list->insns[x], &of_x);
    for (uint32_t a = 0; a < of_u.count; a++) {
        for (uint32_t b = a < of_u.read_count ? of_x.read_count : 0; b < of_x.count; b++) {
            if (pwsp_waits_meets(w, of_u.at[a], of_x.at[b])) {
                bool is_rotating = pwsp_waits_rotates(w, of_u.at[a], loop) &&
                                   pwsp_waits_rotates(w, of_x.at[b], loop);
                distance = distance == 1 || !is_rotating ? 1 : 2;
            }
        }
    }
    return distance;
}

// -- steps ----------------------------------------------------------------------------------------

// Makes one step of two: the two steps of a token that lose least by it.
static void pwsp_waits_merge_steps(pwsp_waits_token *token) {
    uint32_t best = 0, least = UINT32_MAX;
    for (uint32_t i = 0; i + 1 < token->count; i++) {
        const pwsp_waits_step *a = &token->steps[i], *b = a + 1;
        uint32_t lost = b->set_at - a->set_at + b->wait_at - a->wait_at;
        best = lost < least ? i : best;
        least = lost < least ? lost : least;
    }
    token->steps[best].set_at = token->steps[best + 1].set_at;
    token->count--;
    memmove(&token->steps[best + 1], &token->steps[best + 2],
            (token->count - best - 1) * sizeof token->steps[0]);
}

// Half slots: early ops of slot s are at 2 s, others at 2 s + 1, and then comes instruction s.
static void pwsp_waits_need_token(pwsp_waits *w, uint32_t distance, uint32_t src, uint32_t dst,
                                  uint32_t set_at, uint32_t wait_at) {
    pwsp_waits_token *token = &w->tokens[distance - 1][src][dst];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < token->count; i++) {
        const pwsp_waits_step step = token->steps[i];
        if (step.set_at >= set_at && step.wait_at <= wait_at) {
            return;  // it says that as well
        }
        if (!(set_at >= step.set_at && wait_at <= step.wait_at)) {
            token->steps[kept++] = step;
        }
    }
    uint32_t at = kept;
    for (; at > 0 && token->steps[at - 1].wait_at > wait_at; at--) {
        token->steps[at] = token->steps[at - 1];
    }
    token->steps[at].set_at = set_at;
    token->steps[at].wait_at = wait_at;
    token->count = kept + 1;
    if (token->count > PWSP_WAITS_STEPS) {
        pwsp_waits_merge_steps(token);
    }
}

// -- tokens ---------------------------------------------------------------------------------------

// The loop directly in `loop` that an instruction of that loop's body is in; 0: it is in none.
static uint32_t pwsp_waits_inner(const pwsp_waits *w, uint32_t i, uint32_t loop) {
    uint32_t inner = w->loop_of[i];
    while (inner != loop && w->list->loops[inner].parent != loop) {
        inner = w->list->loops[inner].parent;
    }
    return inner == loop ? 0 : inner;
}

// Finds the constraints that a loop carries from one of its instructions to others.
static void pwsp_waits_find_carried(pwsp_waits *w, uint32_t loop, uint32_t u) {
    uint32_t inner = pwsp_waits_inner(w, u, loop);
    uint32_t set_at = 2 * ((inner ? w->loop_last[inner] : u) + 1);
    for (uint32_t x = w->loop_first[loop] + 1; x < u && w->pipes[u] != PTOISA_PIPE_ALL; x++) {
        if (w->pipes[u] == w->pipes[x] || w->pipes[x] == PTOISA_PIPE_ALL) {
            continue;
        }
        uint32_t of_x = pwsp_waits_inner(w, x, loop);
        bool is_carried = inner == 0 || inner != of_x;
        uint32_t distance = is_carried ? pwsp_waits_distance(w, loop, u, x) : 0;
        if (distance) {
            pwsp_waits_need_token(w, distance, w->pipes[u], w->pipes[x], set_at,
                                  2 * (of_x ? w->loop_first[of_x] : x) + 1);
        }
    }
}

// Finds those from the last wait for an event to a set of it.
static void pwsp_waits_find_reused(pwsp_waits *w, const pwsp_waits_open *open) {
    for (uint64_t k = open->first_op; k < w->op_count; k++) {
        const pwsp_waits_op *set = &w->ops[k];
        uint32_t last = 0;
        bool is_own = set->op == PTOISA_SET_FLAG && set->level == open->loop;
        for (uint64_t j = k + 1; is_own && j < w->op_count; j++) {
            const pwsp_waits_op *wait = &w->ops[j];
            bool is_its = wait->op == PTOISA_WAIT_FLAG && wait->level == open->loop &&
                          wait->src == set->src && wait->dst == set->dst &&
                          wait->event == set->event;
            last = is_its ? wait->slot : last;
        }
        if (is_own) {
            // Before the set: an early one follows an instruction of its pipe.
            uint32_t before = set->is_early ? 2 * set->slot - 1 : 2 * set->slot;
            pwsp_waits_need_token(w, set->loop ? 2 : 1, set->dst, set->src, 2 * last + 1, before);
        }
    }
}

// Finds the tokens that the body of a loop needs.
static void pwsp_waits_find_tokens(pwsp_waits *w, const pwsp_waits_open *open, uint32_t end) {
    memset(w->tokens, 0, sizeof w->tokens);
    for (uint32_t u = open->insn + 1; u < end; u++) {
        pwsp_waits_find_carried(w, open->loop, u);
    }
    pwsp_waits_find_reused(w, open);
}

static void pwsp_waits_add_at(pwsp_waits *w, ptoisa_op op, uint32_t src, uint32_t dst,
                              uint32_t event, uint32_t at, uint8_t level, bool is_rotating) {
    uint32_t k = pwsp_waits_add(w, op, src, dst, event, at / 2, at % 2 == 0);
    if (k != PWSP_WAITS_NONE) {
        w->ops[k].loop = is_rotating ? (uint8_t)w->loop : 0;
        w->ops[k].level = level;
    }
}

// Gives the loop an event of a pair for a token, or two where they are `paired`. `spared` events are
// left for others. EVENT_COUNT: none was left.
static uint32_t pwsp_waits_take_event(pwsp_waits *w, pwsp_waits_pair *pair, bool is_paired,
                                      uint32_t spared) {
    static const uint8_t orders[2][PTOISA_EVENT_COUNT] = {{5, 4, 3, 2, 1, 0, 7, 6},
                                                          {6, 4, 2, 0, 6, 6, 6, 6}};
    uint32_t free_count = 0;
    for (uint32_t event = 0; event < PTOISA_EVENT_COUNT; event++) {
        free_count += pair->owners[event] == 0;
    }
    for (uint32_t i = 0; i < PTOISA_EVENT_COUNT && free_count > spared; i++) {
        uint32_t event = orders[is_paired][i];
        if (pair->owners[event] == 0 && (!is_paired || pair->owners[event + 1] == 0)) {
            pair->owners[event] = (uint8_t)w->loop;
            pair->owners[event + is_paired] = (uint8_t)w->loop;
            return event;
        }
    }
    return PTOISA_EVENT_COUNT;
}

// What pipe src knows of pipe dst at a place in the body.
static uint32_t pwsp_waits_known_at(const pwsp_waits *w, uint32_t src, uint32_t dst, uint32_t at) {
    const uint32_t i = at % 2 ? at / 2 : at / 2 - 1;
    const pwsp_insn *insn = &w->list->insns[i];
    return pwsp_insn_is_mark(insn) ? w->closed[insn->loop][src][dst] : w->clocks[i][dst];
}

// The wait for a token may be in front of a loop that has its target. If nothing else says, should
// that loop not run, that the wait is before the token's next set, a flag does.
static void pwsp_waits_answer_token(pwsp_waits *w, uint32_t src, uint32_t dst,
                                    const pwsp_waits_step *step) {
    const uint32_t i = step->wait_at / 2;
    const pwsp_insn *insn = &w->list->insns[i];
    if (step->wait_at % 2 == 0 || insn->op != PWSP_INSN_LOOP ||
        pwsp_waits_known_at(w, src, dst, step->set_at) > w->ticks[i]) {
        return;
    }
    uint32_t event = pwsp_waits_take_event(w, pwsp_waits_pair_of(w, dst, src), false, 0);
    if (event == PTOISA_EVENT_COUNT) {
        pwsp_waits_crowd(w);
        return;
    }
    pwsp_waits_add_at(w, PTOISA_SET_FLAG, dst, src, event, 2 * (w->loop_last[insn->loop] + 1),
                      (uint8_t)w->loop, false);
    pwsp_waits_add_at(w, PTOISA_WAIT_FLAG, dst, src, event, step->set_at, (uint8_t)w->loop, false);
}

// Inserts a token: in the body, and around the nest.
static void pwsp_waits_add_token(pwsp_waits *w, uint32_t src, uint32_t dst, uint32_t event,
                                 const pwsp_waits_step *step, bool is_paired) {
    const uint32_t nest = w->opens[0].loop;
    const uint8_t loop = (uint8_t)w->loop;
    pwsp_waits_answer_token(w, src, dst, step);
    pwsp_waits_add_at(w, PTOISA_WAIT_FLAG, src, dst, event, step->wait_at, loop, is_paired);
    pwsp_waits_add_at(w, PTOISA_SET_FLAG, src, dst, event, step->set_at, loop, is_paired);
    for (uint32_t one = 0; one <= is_paired; one++) {
        pwsp_waits_add_at(w, PTOISA_SET_FLAG, src, dst, event + one, 2 * w->loop_first[nest] + 1, 0,
                          false);
        pwsp_waits_add_at(w, PTOISA_WAIT_FLAG, src, dst, event + one, 2 * (w->loop_last[nest] + 1),
                          0, false);
    }
}

// Inserts the tokens of a pair: as many as there are steps and events. Two iterations of time are
// enough for one.
static void pwsp_waits_add_pair(pwsp_waits *w, pwsp_waits_token *token, uint32_t src, uint32_t dst,
                                bool is_paired) {
    uint32_t events[PWSP_WAITS_STEPS], count = 0, wanted = is_paired ? 1 : token->count;
    pwsp_waits_pair *pair = pwsp_waits_pair_of(w, src, dst);
    while (count < wanted) {
        events[count] = pwsp_waits_take_event(w, pair, is_paired, count ? 2 * w->depth - 2 : 0);
        if (events[count] == PTOISA_EVENT_COUNT) {
            break;
        }
        count++;
    }
    while (count && token->count > count) {
        pwsp_waits_merge_steps(token);
    }
    for (uint32_t i = 0; i < count; i++) {
        pwsp_waits_add_token(w, src, dst, events[i], &token->steps[i], is_paired);
    }
    if (count == 0) {
        pwsp_waits_crowd(w);
    }
}

static void pwsp_waits_add_tokens(pwsp_waits *w, const pwsp_waits_open *open, uint32_t end) {
    for (uint32_t i = 0; i < 2 * PTOISA_PIPE_COUNT * PTOISA_PIPE_COUNT; i++) {
        pwsp_waits_token *token = &w->tokens[0][0][0] + i;
        uint32_t src = i / PTOISA_PIPE_COUNT % PTOISA_PIPE_COUNT, dst = i % PTOISA_PIPE_COUNT;
        if (token->count) {
            pwsp_waits_add_pair(w, token, src, dst, i >= PTOISA_PIPE_COUNT * PTOISA_PIPE_COUNT);
        }
    }
    for (uint32_t i = open->insn + 1; i < end && w->has_slow_vector; i++) {
        if (w->pipes[i] == PTOISA_PIPE_V && w->loop_of[i] == open->loop) {
            pwsp_waits_add(w, PTOISA_PIPE_BARRIER, PTOISA_PIPE_V, PTOISA_PIPE_V, 0, i, false);
            break;
        }
    }
}

// -- loops ----------------------------------------------------------------------------------------

// How many ops the other core has got between the mark at `begin` and the one at `end`.
static uint32_t pwsp_waits_others_ops(const pwsp_waits *w, uint32_t begin, uint32_t end) {
    uint32_t count = 0;
    for (uint64_t k = 0; k < w->first_op; k++) {
        count += w->ops[k].slot > begin && w->ops[k].slot <= end;
    }
    return count;
}

// May the iterations of a nest overlap, whose outermost loop begins at an instruction?
static bool pwsp_waits_overlaps(const pwsp_waits *w, uint32_t i) {
    const pwsp_list *list = w->list;
    uint32_t loop = list->insns[i].loop, last = w->loop_last[loop], inner = 0;
    for (uint32_t at = i + 1; at < last; at++) {
        inner += list->insns[at].op == PWSP_INSN_LOOP && !pwsp_waits_is_others_loop(w, at);
    }
    return last - i + pwsp_waits_others_ops(w, i, last) <= PWSP_WAITS_BODY_MAX &&
           (inner == 0 || !(w->crowded >> loop & 1));
}

// The pipes that fill roots that rotate with a loop.
static uint8_t pwsp_waits_rotating(const pwsp_waits *w, uint32_t loop) {
    const pwsp_list *list = w->list;
    uint32_t rotating = 0;
    for (uint32_t at = w->loop_first[loop] + 1; at < w->loop_last[loop]; at++) {
        const pwsp_insn *insn = &list->insns[at];
        if (pwsp_insn_is_mark(insn) || pwsp_waits_is_others(w, insn) || w->loop_of[at] != loop) {
            continue;
        }
        const pwsp_list_tile *tile = &list->tiles[insn->dst[0]];
        const pwsp_list_tile *root = &list->tiles[tile->root];
        if (insn->dst[0] && root->loop && !root->places && w->pipes[at] != PTOISA_PIPE_V) {
            rotating |= 1u << w->pipes[at];
        }
    }
    return (uint8_t)rotating;
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

// Nothing that flags say crosses the ends of a loop: no flag of a pair is its last one any more.
static void pwsp_waits_forget_last(pwsp_waits *w) {
    for (uint32_t pair = 0; pair < w->pair_count; pair++) {
        w->pairs[pair].has_last = false;
    }
}

// Orders all that the loop which begins at instruction i does after its needs from before it, once
// for each of its pipes. False when memory is out.
static bool pwsp_waits_order_loop(pwsp_waits *w, uint32_t i) {
    uint32_t needs[PTOISA_PIPE_COUNT][PWSP_WAITS_ROW];
    memset(needs, 0, sizeof needs);
    for (uint32_t at = i + 1; at < w->loop_last[w->list->insns[i].loop]; at++) {
        pwsp_insn_tiles accesses;
        if (w->pipes[at] != PTOISA_PIPE_ALL &&
            !pwsp_waits_find_needs(w, at, &accesses, needs[w->pipes[at]])) {
            return false;
        }
    }
    for (uint32_t pipe = 0; pipe < PTOISA_PIPE_COUNT; pipe++) {
        needs[pipe][pipe] = 0;
        pwsp_waits_order_all(w, needs[pipe], pipe, i);
    }
    return true;
}

// Opens the loop that begins at instruction i.
static bool pwsp_waits_open_loop(pwsp_waits *w, uint32_t i) {
    if (w->depth > 0 && !pwsp_waits_order_loop(w, i)) {
        return false;
    }
    for (uint32_t pair = 0; pair < w->pair_count && w->depth == 0; pair++) {
        memset(w->pairs[pair].owners, 0, sizeof w->pairs[pair].owners);
    }
    pwsp_waits_forget_last(w);
    PTOWSP_ASSERT(w->depth < PTOWSP_LOOP_DEPTH_MAX);
    pwsp_waits_open *open = &w->opens[w->depth++];
    open->loop = w->loop = w->list->insns[i].loop;
    open->insn = i;
    open->first_op = w->op_count;
    open->rotating = w->rotating = pwsp_waits_rotating(w, w->loop);
    memcpy(open->stream_count, w->stream_count, sizeof open->stream_count);
    memcpy(open->known, w->known, sizeof open->known);
    return true;
}

// Closes the loop that ends at instruction i. Knowledge of pipes from inside it is forgotten, and no
// flag is put there any more.
static void pwsp_waits_close_loop(pwsp_waits *w, uint32_t i) {
    const pwsp_waits_open *open = &w->opens[w->depth - 1];
    pwsp_waits_find_tokens(w, open, i);
    pwsp_waits_add_tokens(w, open, i);
    memcpy(w->stream_count, open->stream_count, sizeof open->stream_count);
    memcpy(w->known, open->known, sizeof open->known);
    memcpy(w->closed[open->loop], open->known, sizeof open->known);
    w->depth--;
    w->loop = w->depth ? w->opens[w->depth - 1].loop : 0;
    w->rotating = w->depth ? w->opens[w->depth - 1].rotating : 0;
    pwsp_waits_forget_last(w);
}

PWSP_INTERNAL bool pwsp_waits_mark(pwsp_waits *w, uint32_t i) {
    const pwsp_insn *insn = &w->list->insns[i];
    w->ticks[i] = ++w->tick;
    if (pwsp_waits_is_others_loop(w, i)) {
        return true;
    }
    if (insn->op == PWSP_INSN_LOOP) {
        if (w->depth == 0 && !pwsp_waits_is_quiet(w)) {
            pwsp_waits_barrier_all(w, i);
        }
        return ((w->depth == 0 && !pwsp_waits_overlaps(w, i)) || pwsp_waits_open_loop(w, i)) &&
               !w->is_out_of_memory;
    }
    if (w->loop == insn->loop) {
        pwsp_waits_close_loop(w, i);
    } else {
        pwsp_waits_barrier_all(w, i);
    }
    if (w->depth == 0) {
        pwsp_waits_barrier_all(w, i + 1);
        if (!w->is_out_of_memory) {
            w->ops[w->op_count - 1].is_early = true;  // after the tokens
        }
    }
    return !w->is_out_of_memory;
}
