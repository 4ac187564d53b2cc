// Placing flags and barriers, with vector clocks.
//
// The last accesses to memory are kept in spans: a sorted array that covers all addresses of all
// memories, one after another, and then the tile parameters, one number each:
//
//      UB                 L1                               parameters
//      | 0    | 4096     | 188416        | 192512  ...    | #0 | #1 | ...
//        written by 3      written by 1    never            each span: the last write, and the last
//        read by V 7       read by -       ...              read by each pipe since then
//
// An instruction that reads a span depends on its write; one that writes it, on its reads as well.
// Older accesses can be ignored: the write that replaced them depends on them. A write makes one
// span of everything it covers, so there are about as many spans as tiles in memory at once.
//
// A pipe runs its instructions in order, so the knowledge of one pipe about another is one number:
// known[P][Q] = t says that all of Q up to tick t is done when P goes on. Ticks count instructions
// and waits, in the order of the list. A flag set after instruction j carries clocks[j]: the
// knowledge of j's pipe, and that j is done. A wait takes the maximum. A dependence that is already
// known needs no flag. Of the others the latest in the list is handled first, because it may imply
// the earlier ones, and never the other way round.
//
// A2/A3's vector pipe begins instructions in order but does not wait for their ends: known[V][V]
// moves only by a barrier or through another pipe and back; for all others it is the present.
//
// A flag is one bit, so an event may be set again only where its last wait is known. The sets of a
// pair of pipes and their waits are in the same order (a later flag with an earlier set would carry
// nothing new), so an event that is free stays free further on. When none is free after j:
//
//      1. the set moves behind a later instruction of its pipe, where one is free;
//      2. or the pair's last flag moves its set behind j, if its wait comes after j: two in one;
//      3. or a flag goes back: the setter learns of the older half of the waits that it does not
//         know of, and sets then;
//      4. or, if the way back has no event either, all pipes wait for each other.
//
// In each case flags point forward in the list. So the order of the list is one in which everything
// can run, and nothing can hang.
//
// Mixed lists. The flags of each half are its own, so the pass goes over the list once for each core
// and skips what the other one runs. TPUSH and TPOP need no flags against each other: they wait for
// slots. At the end all pipes of a core wait for each other, as PTO-ISA demands.
//
// Loops. All pipes wait for each other before a loop and behind it, so that a body is a list of its
// own, to which the above applies. A loop with another one inside ends each iteration in the same
// way. An innermost loop lets iterations overlap. Between them, u of one iteration must come before
// x of a later one, on another pipe, where u is behind x in the body and
//
//      - both touch the same bytes: those of a root that rotates, two iterations later; else one
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

#include "waits.h"

#include <inttypes.h>

#define PWSP_WAITS_INSN_MAX (1u << 24)

// The events of an innermost loop's body: first those of its flags, singly or in pairs; then of the
// tokens to the next iteration, and in a pair to the one after it.
#define PWSP_WAITS_BODY_EVENTS  5
#define PWSP_WAITS_BODY_PAIRED  4
#define PWSP_WAITS_TOKEN_EVENT  5
#define PWSP_WAITS_TOKEN_PAIRED 6

// Bodies of more instructions do not overlap: finding tokens takes the square of their number.
#define PWSP_WAITS_BODY_MAX 4096
#define PWSP_WAITS_NONE     UINT32_MAX

typedef struct pwsp_waits_span {
    uint32_t begin;                     // it ends where the next begins
    uint32_t write;                     // instruction + 1, or 0
    uint32_t reads[PTOISA_PIPE_COUNT];  // since the write: instruction + 1 of each pipe, or 0
} pwsp_waits_span;

// An op to be put into the list, before instruction `slot`. Those that belong to the instruction
// before it (early) come first.
typedef struct pwsp_waits_op {
    uint32_t slot;
    bool is_early;
    uint8_t op, src, dst, event;
    uint8_t loop;  // with which the event rotates, or 0
} pwsp_waits_op;

// What must come before what in a later iteration, of a pair of pipes: from behind the last of the
// ones to before the first of the others. Places are in units of half slots: see pwsp_waits_rebuild.
typedef struct pwsp_waits_token {
    bool is_needed;
    uint32_t set_at, wait_at;
} pwsp_waits_token;

// Flags from one pipe to another.
typedef struct pwsp_waits_pair {
    uint32_t waited[PTOISA_EVENT_COUNT];  // the tick of each event's last wait
    uint32_t last_set;                    // the pair's last set, in ops
    uint32_t last_slot;                   // where its wait is
    bool has_last;
} pwsp_waits_pair;

typedef struct pwsp_waits {
    pwsp_list *list;
    pwsp_memory memory;
    bool is_out_of_memory;
    bool has_slow_vector;  // A2/A3
    pwsp_side side;        // whose instructions these are
    uint32_t memory_base[PTOISA_MEMORY_COUNT + 1];
    uint8_t *pipes;                         // [insn]
    uint32_t *ticks;                        // [insn] when it is done
    uint32_t (*clocks)[PTOISA_PIPE_COUNT];  // [insn] what its pipe's flags carry behind it
    uint32_t *streams[PTOISA_PIPE_COUNT];   // each pipe's instructions, and how many so far
    uint32_t stream_count[PTOISA_PIPE_COUNT];
    uint32_t tick;
    uint32_t end[PTOISA_PIPE_COUNT];  // each pipe's last tick
    uint32_t known[PTOISA_PIPE_COUNT][PTOISA_PIPE_COUNT];
    pwsp_waits_pair pairs[PTOISA_PIPE_COUNT][PTOISA_PIPE_COUNT];
    pwsp_waits_span *spans;
    uint64_t span_count, span_capacity;
    pwsp_waits_op *ops;
    uint64_t op_count, op_capacity;
    uint32_t loop;       // the innermost loop that is open, if it has no other in it
    uint32_t loop_insn;  // where it begins, in instructions and in ops
    uint64_t loop_op;
    uint8_t rotating;  // the pipes that fill roots that rotate with it, as bits
    pwsp_waits_token tokens[2][PTOISA_PIPE_COUNT][PTOISA_PIPE_COUNT];  // [distance - 1]
} pwsp_waits;

// One operand of an instruction, as addresses.
typedef struct pwsp_waits_access {
    uint32_t begin, end;
    bool is_write;
    bool is_rotating;
} pwsp_waits_access;

#define PWSP_WAITS_ACCESS_MAX (PWSP_INSN_DST_MAX + PWSP_INSN_SRC_MAX + 3)

// -- spans ----------------------------------------------------------------------------------------

// Makes a span begin at an address, and returns which. PWSP_WAITS_NONE when memory is out.
static uint32_t pwsp_waits_split(pwsp_waits *w, uint32_t at) {
    uint32_t low = 0, high = (uint32_t)w->span_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (w->spans[middle].begin <= at) {
            low = middle;
        } else {
            high = middle;
        }
    }
    if (w->spans[low].begin == at) {
        return low;
    }
    void *items = w->spans;
    if (!pwsp_memory_grow(&w->memory, &items, &w->span_capacity, w->span_count + 1,
                          sizeof w->spans[0])) {
        w->is_out_of_memory = true;
        return PWSP_WAITS_NONE;
    }
    w->spans = (pwsp_waits_span *)items;
    memmove(&w->spans[low + 1], &w->spans[low], (size_t)(w->span_count - low) * sizeof w->spans[0]);
    w->span_count++;
    w->spans[low + 1].begin = at;
    return low + 1;
}

// Finds the spans [*out_begin, *out_end) that an operand covers, cutting those at its ends. False
// when memory is out.
static bool pwsp_waits_cover(pwsp_waits *w, const pwsp_waits_access *access, uint32_t *out_begin,
                             uint32_t *out_end) {
    *out_begin = pwsp_waits_split(w, access->begin);
    *out_end = *out_begin == PWSP_WAITS_NONE ? PWSP_WAITS_NONE : pwsp_waits_split(w, access->end);
    return *out_end != PWSP_WAITS_NONE;
}

// Is an instruction the other core's?
static bool pwsp_waits_is_others(const pwsp_waits *w, const pwsp_insn *insn) {
    return insn->side != w->side && !pwsp_insn_is_mark(insn);
}

// Has the loop that begins or ends at an instruction none of this core's?
static bool pwsp_waits_is_others_loop(const pwsp_waits *w, uint32_t i) {
    const pwsp_insn *insns = w->list->insns;
    uint32_t loop = insns[i].loop;
    bool is_end = insns[i].op == PWSP_INSN_END;
    for (uint32_t at = is_end ? i - 1 : i + 1;
         insns[at].loop != loop || !pwsp_insn_is_mark(&insns[at]); at = is_end ? at - 1 : at + 1) {
        if (insns[at].side == w->side && !pwsp_insn_is_mark(&insns[at])) {
            return false;
        }
    }
    return w->side != PWSP_SIDE_ANY;
}

static void pwsp_waits_add_tile(const pwsp_waits *w, uint32_t tile, bool is_write,
                                pwsp_waits_access *out, uint32_t *count) {
    if (tile) {
        const pwsp_list_tile *t = &w->list->tiles[tile];
        pwsp_waits_access *access = &out[(*count)++];
        access->begin = w->memory_base[t->memory] + pwsp_list_tile_address(w->list, tile);
        access->end = access->begin + (uint32_t)pwsp_list_tile_bytes(t);
        access->is_write = is_write;
        access->is_rotating = w->list->tiles[t->root].loop != 0;
    }
}

// Is global memory what an instruction writes?
static bool pwsp_waits_is_store(const pwsp_insn *insn) {
    return insn->op == PTOISA_TSTORE || insn->op == PTOISA_MSCATTER;
}

// Lists what an instruction reads and then what it writes. Returns how many there are.
static uint32_t pwsp_waits_accesses(const pwsp_waits *w, const pwsp_insn *insn,
                                    pwsp_waits_access *out) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < PWSP_INSN_SRC_MAX; i++) {
        pwsp_waits_add_tile(w, insn->src[i], false, out, &count);
    }
    if (insn->is_dst_read) {
        pwsp_waits_add_tile(w, insn->dst[0], false, out, &count);
    }
    if (insn->param) {
        out[count].begin = w->memory_base[PTOISA_MEMORY_COUNT] + insn->param;
        out[count].end = out[count].begin + 1;
        out[count].is_rotating = false;
        out[count++].is_write = pwsp_waits_is_store(insn);
    }
    for (uint32_t i = 0; i < PWSP_INSN_DST_MAX; i++) {
        pwsp_waits_add_tile(w, insn->dst[i], true, out, &count);
    }
    pwsp_waits_add_tile(w, insn->tmp, true, out, &count);
    PTOWSP_ASSERT(count <= PWSP_WAITS_ACCESS_MAX);
    return count;
}

static void pwsp_waits_need(const pwsp_waits *w, uint32_t access, uint32_t *needs) {
    if (access) {
        uint32_t *need = &needs[w->pipes[access - 1]];
        *need = access > *need ? access : *need;
    }
}

// Finds the last instruction of each pipe, + 1, that an operand depends on.
static bool pwsp_waits_find_needs(pwsp_waits *w, const pwsp_waits_access *access, uint32_t *needs) {
    uint32_t begin, end;
    if (!pwsp_waits_cover(w, access, &begin, &end)) {
        return false;
    }
    for (uint32_t s = begin; s < end; s++) {
        const pwsp_waits_span *span = &w->spans[s];
        pwsp_waits_need(w, span->write, needs);
        for (int pipe = 0; pipe < PTOISA_PIPE_COUNT && access->is_write; pipe++) {
            pwsp_waits_need(w, span->reads[pipe], needs);
        }
    }
    return true;
}

// Notes what instruction i does to an operand's bytes.
static bool pwsp_waits_note(pwsp_waits *w, const pwsp_waits_access *access, uint32_t i) {
    uint32_t begin, end;
    if (!pwsp_waits_cover(w, access, &begin, &end)) {
        return false;
    }
    if (!access->is_write) {
        for (uint32_t s = begin; s < end; s++) {
            w->spans[s].reads[w->pipes[i]] = i + 1;
        }
        return true;
    }
    if (begin == end) {
        return true;
    }
    memset(w->spans[begin].reads, 0, sizeof w->spans[begin].reads);
    w->spans[begin].write = i + 1;
    memmove(&w->spans[begin + 1], &w->spans[end],
            (size_t)(w->span_count - end) * sizeof w->spans[0]);
    w->span_count -= end - begin - 1;
    return true;
}

// -- flags ----------------------------------------------------------------------------------------

static uint32_t pwsp_waits_add(pwsp_waits *w, ptoisa_op op, uint32_t src, uint32_t dst,
                               uint32_t event, uint32_t slot, bool is_early) {
    void *items = w->ops;
    if (!pwsp_memory_grow(&w->memory, &items, &w->op_capacity, w->op_count + 1, sizeof w->ops[0])) {
        w->is_out_of_memory = true;
        return PWSP_WAITS_NONE;
    }
    w->ops = (pwsp_waits_op *)items;
    pwsp_waits_op *added = &w->ops[w->op_count];
    added->slot = slot;
    added->is_early = is_early;
    added->op = (uint8_t)op;
    added->src = (uint8_t)src;
    added->dst = (uint8_t)dst;
    added->event = (uint8_t)event;
    added->loop = 0;
    return (uint32_t)w->op_count++;
}

// The clock that a pipe's flags carry if they are set now.
static void pwsp_waits_present(const pwsp_waits *w, uint32_t pipe, uint32_t *out_clock) {
    memcpy(out_clock, w->known[pipe], sizeof w->known[pipe]);
    out_clock[pipe] = w->end[pipe];
}

static void pwsp_waits_learn(pwsp_waits *w, uint32_t pipe, const uint32_t *clock) {
    for (int q = 0; q < PTOISA_PIPE_COUNT; q++) {
        w->known[pipe][q] = clock[q] > w->known[pipe][q] ? clock[q] : w->known[pipe][q];
    }
}

// Do the flags of a pipe rotate?
static bool pwsp_waits_is_paired(const pwsp_waits *w, uint32_t src) {
    return w->loop && (w->rotating >> src & 1);
}

// The first event of a pair that may be set where `clock` is known, or PTOISA_EVENT_COUNT.
static uint32_t pwsp_waits_free_event(const pwsp_waits *w, uint32_t src, uint32_t dst,
                                      const uint32_t *clock) {
    bool is_draining = dst == PTOISA_PIPE_S && (src == PTOISA_PIPE_MTE3 || src == PTOISA_PIPE_FIX);
    bool is_paired = pwsp_waits_is_paired(w, src);
    uint32_t count = is_paired ? PWSP_WAITS_BODY_PAIRED
                     : w->loop ? PWSP_WAITS_BODY_EVENTS
                               : PTOISA_EVENT_COUNT;
    for (uint32_t event = 0; event < count; event += is_paired ? 2 : 1) {
        if (w->pairs[src][dst].waited[event] <= clock[dst] &&
            !(is_draining && event == PWSP_EVENT_DRAIN)) {
            return event;
        }
    }
    return PTOISA_EVENT_COUNT;
}

// The number of the first instruction of a pipe's stream that is done at a tick or later.
static uint32_t pwsp_waits_stream_at(const pwsp_waits *w, uint32_t pipe, uint32_t tick) {
    uint32_t low = 0, high = w->stream_count[pipe];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (w->ticks[w->streams[pipe][middle]] < tick) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// Sets a flag on src no earlier than behind what was done at a tick, as soon as an event is free,
// and waits for it on dst before instruction i. False if no event is free, even now.
static bool pwsp_waits_flag(pwsp_waits *w, uint32_t src, uint32_t dst, uint32_t tick, uint32_t i) {
    uint32_t clock[PTOISA_PIPE_COUNT];
    pwsp_waits_present(w, src, clock);
    uint32_t event = pwsp_waits_free_event(w, src, dst, clock);
    if (event == PTOISA_EVENT_COUNT) {
        return false;
    }
    uint32_t low = pwsp_waits_stream_at(w, src, tick), high = w->stream_count[src];
    const uint32_t *stream = w->streams[src];
    if (low < high &&
        pwsp_waits_free_event(w, src, dst, w->clocks[stream[low]]) != PTOISA_EVENT_COUNT) {
        high = low;
    }
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (pwsp_waits_free_event(w, src, dst, w->clocks[stream[middle]]) == PTOISA_EVENT_COUNT) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    uint32_t slot = i;
    bool is_early = low < w->stream_count[src];
    if (is_early) {
        memcpy(clock, w->clocks[stream[low]], sizeof clock);
        event = pwsp_waits_free_event(w, src, dst, clock);
        slot = stream[low] + 1;
    }
    pwsp_waits_pair *pair = &w->pairs[src][dst];
    uint8_t loop = pwsp_waits_is_paired(w, src) ? (uint8_t)w->loop : 0;
    pair->last_set = pwsp_waits_add(w, PTOISA_SET_FLAG, src, dst, event, slot, is_early);
    pair->last_slot = i;
    pair->has_last = true;
    uint32_t wait = pwsp_waits_add(w, PTOISA_WAIT_FLAG, src, dst, event, i, false);
    if (wait != PWSP_WAITS_NONE && pair->last_set != PWSP_WAITS_NONE) {
        w->ops[pair->last_set].loop = w->ops[wait].loop = loop;
    }
    pair->waited[event] = w->end[dst] = ++w->tick;
    pwsp_waits_learn(w, dst, clock);
    return true;
}

// Moves the set of a pair's last flag behind instruction j. False if its wait is before j.
static bool pwsp_waits_merge(pwsp_waits *w, uint32_t src, uint32_t dst, uint32_t j) {
    const pwsp_waits_pair *pair = &w->pairs[src][dst];
    if (!pair->has_last || pair->last_slot <= j) {
        return false;
    }
    if (pair->last_set != PWSP_WAITS_NONE) {
        w->ops[pair->last_set].slot = j + 1;
        w->ops[pair->last_set].is_early = true;
    }
    pwsp_waits_learn(w, dst, w->clocks[j]);
    return true;
}

// Lets src know of the older half of the waits on dst that it does not know of, before instruction
// i. False if dst has no event for that.
static bool pwsp_waits_answer(pwsp_waits *w, uint32_t src, uint32_t dst, uint32_t i) {
    uint32_t open[PTOISA_EVENT_COUNT], count = 0;
    for (uint32_t event = 0; event < PTOISA_EVENT_COUNT; event++) {  // of a pair, the first
        uint32_t tick = w->pairs[src][dst].waited[event];
        if (tick > w->known[src][dst]) {
            uint32_t at = count++;
            for (; at > 0 && open[at - 1] > tick; at--) {
                open[at] = open[at - 1];
            }
            open[at] = tick;
        }
    }
    PTOWSP_ASSERT(count > 0);
    return pwsp_waits_flag(w, dst, src, open[(count - 1) / 2], i);
}

static void pwsp_waits_barrier_all(pwsp_waits *w, uint32_t i) {
    pwsp_waits_add(w, PTOISA_PIPE_BARRIER, PTOISA_PIPE_ALL, PTOISA_PIPE_ALL, 0, i, false);
    for (int p = 0; p < PTOISA_PIPE_COUNT; p++) {
        for (int q = 0; q < PTOISA_PIPE_COUNT; q++) {
            w->known[p][q] = w->tick;
        }
    }
}

// Makes instruction i wait for j, of another pipe.
static void pwsp_waits_order(pwsp_waits *w, uint32_t j, uint32_t i) {
    uint32_t src = w->pipes[j], dst = w->pipes[i];
    if (pwsp_waits_flag(w, src, dst, w->ticks[j], i) || pwsp_waits_merge(w, src, dst, j)) {
        return;
    }
    if (pwsp_waits_answer(w, src, dst, i)) {
        bool is_set = pwsp_waits_flag(w, src, dst, w->ticks[j], i);
        PTOWSP_ASSERT(is_set);
        (void)is_set;
        return;
    }
    pwsp_waits_barrier_all(w, i);
}

// -- the pass -------------------------------------------------------------------------------------

// Puts what instruction i needs before it, and notes what it does.
static bool pwsp_waits_insn(pwsp_waits *w, uint32_t i) {
    pwsp_waits_access accesses[PWSP_WAITS_ACCESS_MAX];
    uint32_t count = pwsp_waits_accesses(w, &w->list->insns[i], accesses);
    uint32_t needs[PTOISA_PIPE_COUNT] = {0}, pipe = w->pipes[i];
    for (uint32_t k = 0; k < count; k++) {
        if (!pwsp_waits_find_needs(w, &accesses[k], needs)) {
            return false;
        }
    }
    uint32_t own = needs[pipe];
    needs[pipe] = 0;
    for (;;) {
        uint32_t latest = 0;
        for (int q = 0; q < PTOISA_PIPE_COUNT; q++) {
            latest = needs[q] > latest ? needs[q] : latest;
        }
        if (!latest) {
            break;
        }
        uint32_t j = latest - 1;
        if (w->ticks[j] > w->known[pipe][w->pipes[j]]) {
            pwsp_waits_order(w, j, i);
        }
        needs[w->pipes[j]] = 0;
    }
    if (w->has_slow_vector && pipe == PTOISA_PIPE_V && own &&
        w->ticks[own - 1] > w->known[pipe][pipe]) {
        pwsp_waits_add(w, PTOISA_PIPE_BARRIER, pipe, pipe, 0, i, false);
        w->known[pipe][pipe] = w->end[pipe];
    }
    w->ticks[i] = w->end[pipe] = ++w->tick;
    pwsp_waits_present(w, pipe, w->clocks[i]);
    w->streams[pipe][w->stream_count[pipe]++] = i;
    for (uint32_t k = 0; k < count; k++) {
        if (!pwsp_waits_note(w, &accesses[k], i)) {
            return false;
        }
    }
    return !w->is_out_of_memory;
}

// Lets S wait for the last store of each pipe that stores: a kernel ends when S does.
static void pwsp_waits_drain(pwsp_waits *w) {
    uint32_t last[PTOISA_PIPE_COUNT] = {0}, count = (uint32_t)w->list->insn_count, depth = 0;
    if (w->side != PWSP_SIDE_ANY) {
        pwsp_waits_barrier_all(w, count);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        const pwsp_insn *insn = &w->list->insns[i];
        depth += insn->op == PWSP_INSN_LOOP;
        depth -= insn->op == PWSP_INSN_END;
        if (pwsp_insn_is_mark(insn) || pwsp_waits_is_others(w, insn)) {
            continue;
        }
        if (pwsp_waits_is_store(insn)) {
            last[w->pipes[i]] = depth ? 0 : i + 1;  // all pipes wait behind a loop
        }
    }
    for (uint32_t pipe = 0; pipe < PTOISA_PIPE_COUNT; pipe++) {
        if (last[pipe]) {
            pwsp_waits_add(w, PTOISA_SET_FLAG, pipe, PTOISA_PIPE_S, PWSP_EVENT_DRAIN, last[pipe],
                           true);
            pwsp_waits_add(w, PTOISA_WAIT_FLAG, pipe, PTOISA_PIPE_S, PWSP_EVENT_DRAIN, count,
                           false);
        }
    }
}

// -- loops ----------------------------------------------------------------------------------------

// Do two instructions touch the same bytes, one of them writing, and in how many iterations again?
// 0: they do not.
static uint32_t pwsp_waits_distance(const pwsp_waits *w, uint32_t u, uint32_t x) {
    pwsp_waits_access of_u[PWSP_WAITS_ACCESS_MAX], of_x[PWSP_WAITS_ACCESS_MAX];
    uint32_t u_count = pwsp_waits_accesses(w, &w->list->insns[u], of_u);
    uint32_t x_count = pwsp_waits_accesses(w, &w->list->insns[x], of_x), distance = 0;
    for (uint32_t a = 0; a < u_count; a++) {
        for (uint32_t b = 0; b < x_count; b++) {
            const pwsp_waits_access *p = &of_u[a], *q = &of_x[b];
            if (p->begin < q->end && q->begin < p->end && (p->is_write || q->is_write)) {
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
                // Before the set: an early one is behind an instruction of its pipe.
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

// Puts the tokens of a body into it, and before and behind the loop.
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

// Is the loop that begins at an instruction one whose iterations may overlap? *out_rotating gets
// the pipes that fill rotating roots.
static bool pwsp_waits_overlaps(const pwsp_waits *w, uint32_t i, uint8_t *out_rotating) {
    const pwsp_list *list = w->list;
    *out_rotating = 0;
    for (uint32_t at = i + 1; at < list->insn_count; at++) {
        const pwsp_insn *insn = &list->insns[at];
        if (pwsp_insn_is_mark(insn)) {
            return insn->op == PWSP_INSN_END && at - i <= PWSP_WAITS_BODY_MAX;
        }
        if (pwsp_waits_is_others(w, insn)) {
            continue;
        }
        const pwsp_list_tile *tile = &list->tiles[insn->dst[0]];
        if (insn->dst[0] && list->tiles[tile->root].loop && w->pipes[at] != PTOISA_PIPE_V) {
            *out_rotating = (uint8_t)(*out_rotating | 1u << w->pipes[at]);
        }
    }
    return false;
}

// Does every pipe know that all others are done? So it is at the beginning, and behind a barrier.
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

// The beginning or end of a loop.
static bool pwsp_waits_mark(pwsp_waits *w, uint32_t i) {
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
        w->ops[w->op_count - 1].is_early = true;  // behind the tokens
    }
    return !w->is_out_of_memory;
}

// Makes the list anew, with what was added. starts is room for 2 * (instructions + 1) + 1 numbers.
static bool pwsp_waits_rebuild(pwsp_waits *w, uint32_t *starts) {
    pwsp_list *list = w->list;
    void *items = NULL;
    uint64_t capacity = 0, count = list->insn_count;
    if (!pwsp_memory_grow(&w->memory, &items, &capacity, count + w->op_count,
                          sizeof list->insns[0])) {
        return false;
    }
    // Counted by place: early ones of slot s at 2 s, others at 2 s + 1, and behind them instruction
    // s. starts[k] becomes where the next one of place k goes.
    for (uint64_t k = 0; k < w->op_count; k++) {
        starts[2 * w->ops[k].slot + (w->ops[k].is_early ? 0 : 1) + 1]++;
    }
    for (uint64_t k = 1; k <= 2 * (count + 1); k++) {
        starts[k] += starts[k - 1] + (k % 2 == 0 ? 1 : 0);
    }
    pwsp_insn *insns = (pwsp_insn *)items;
    for (uint64_t k = 0; k < w->op_count; k++) {
        const pwsp_waits_op *op = &w->ops[k];
        pwsp_insn *insn = &insns[starts[2 * op->slot + (op->is_early ? 0 : 1)]++];
        insn->op = op->op;
        insn->src_pipe = op->src;
        insn->dst_pipe = op->dst;
        insn->event = op->event;
        insn->loop = op->loop;
        insn->side = (uint8_t)w->side;
    }
    for (uint64_t i = 0; i < count; i++) {
        w->ticks[i] = starts[2 * i + 1];  // all of its slot have gone: it is next
        insns[w->ticks[i]] = list->insns[i];
    }
    for (uint64_t tile = 1; tile < list->tile_count; tile++) {
        pwsp_list_tile *t = &list->tiles[tile];
        if (t->root == tile && t->first <= t->last) {
            t->first = w->ticks[t->first];
            t->last = w->ticks[t->last];
        }
    }
    pwsp_memory_free(&w->memory, list->insns, (size_t)list->insn_capacity * sizeof list->insns[0]);
    list->insns = insns;
    list->insn_count = count + w->op_count;
    list->insn_capacity = capacity;
    return true;
}

// Makes room; false when memory is out. All that is known of the list as a whole is put there.
static bool pwsp_waits_init(pwsp_waits *w, pwsp_arena *arena, const ptoisa_machine *machine) {
    size_t count = (size_t)w->list->insn_count + 1;
    w->pipes = (uint8_t *)pwsp_arena_alloc(arena, count, 8);
    w->ticks = (uint32_t *)pwsp_arena_alloc(arena, count * sizeof *w->ticks, 8);
    w->clocks =
        (uint32_t(*)[PTOISA_PIPE_COUNT])pwsp_arena_alloc(arena, count * sizeof *w->clocks, 8);
    uint32_t *streams = (uint32_t *)pwsp_arena_alloc(arena, count * sizeof *streams, 8);
    void *spans = NULL;
    bool has_spans = pwsp_memory_grow(&w->memory, &spans, &w->span_capacity, 1, sizeof w->spans[0]);
    w->spans = (pwsp_waits_span *)spans;
    if (!w->pipes || !w->ticks || !w->clocks || !streams || !has_spans) {
        return false;
    }
    w->span_count = 1;
    uint64_t base = 0;
    for (int memory = 0; memory < PTOISA_MEMORY_COUNT; memory++) {
        w->memory_base[memory] = (uint32_t)base;
        base += machine->memory_size[memory];
    }
    w->memory_base[PTOISA_MEMORY_COUNT] = (uint32_t)base;
    PTOWSP_ASSERT(base <= UINT32_MAX / 2);
    w->has_slow_vector = machine->family == PTOISA_A2A3;
    uint32_t counts[PTOISA_PIPE_COUNT] = {0};
    for (uint64_t i = 0; i < w->list->insn_count; i++) {
        const pwsp_insn *insn = &w->list->insns[i];
        if (pwsp_insn_is_mark(insn) || pwsp_waits_is_others(w, insn)) {
            w->pipes[i] = PTOISA_PIPE_ALL;
            continue;
        }
        PTOWSP_ASSERT(insn->op != PTOISA_SET_FLAG && insn->op != PTOISA_WAIT_FLAG &&
                      insn->op != PTOISA_PIPE_BARRIER);
        w->pipes[i] = (uint8_t)pwsp_insn_pipe(w->list, insn);
        counts[w->pipes[i]]++;
    }
    for (int pipe = 0; pipe < PTOISA_PIPE_COUNT; pipe++) {
        w->streams[pipe] = streams;
        streams += counts[pipe];
    }
    return true;
}

// Adds the waits of one core.
static bool pwsp_waits_run(pwsp_list *list, const ptoisa_machine *machine, pwsp_side side,
                           pwsp_list_fault *fault) {
    if (list->insn_count > PWSP_WAITS_INSN_MAX) {
        return pwsp_list_fail(fault, PTOWSP_LIMIT_EXCEEDED, 0,
                              "waits: %" PRIu64 " instructions, more than %u", list->insn_count,
                              PWSP_WAITS_INSN_MAX);
    }
    pwsp_waits w;
    memset(&w, 0, sizeof w);
    w.list = list;
    w.memory = list->memory;
    w.side = side;
    pwsp_arena arena;
    pwsp_arena_init(&arena, &w.memory);
    bool is_good = pwsp_waits_init(&w, &arena, machine);
    for (uint32_t i = 0; is_good && i < list->insn_count; i++) {
        is_good =
            pwsp_waits_is_others(&w, &list->insns[i]) ||
            (pwsp_insn_is_mark(&list->insns[i]) ? pwsp_waits_mark(&w, i) : pwsp_waits_insn(&w, i));
    }
    if (is_good) {
        pwsp_waits_drain(&w);
        size_t size = (2 * ((size_t)list->insn_count + 1) + 1) * sizeof(uint32_t);
        uint32_t *starts = (uint32_t *)pwsp_arena_alloc(&arena, size, 8);
        is_good = starts && !w.is_out_of_memory && pwsp_waits_rebuild(&w, starts);
    }
    pwsp_memory_free(&w.memory, w.spans, (size_t)w.span_capacity * sizeof w.spans[0]);
    pwsp_memory_free(&w.memory, w.ops, (size_t)w.op_capacity * sizeof w.ops[0]);
    pwsp_arena_free(&arena);
    return is_good || pwsp_list_fail(fault, PTOWSP_OUT_OF_MEMORY, 0, "waits: out of memory");
}

PWSP_INTERNAL bool pwsp_list_add_waits(pwsp_list *list, const ptoisa_machine *machine,
                                       pwsp_list_fault *fault) {
    if (!list->is_mixed) {
        return pwsp_waits_run(list, machine, PWSP_SIDE_ANY, fault);
    }
    return pwsp_waits_run(list, machine, PWSP_SIDE_CUBE, fault) &&
           pwsp_waits_run(list, machine, PWSP_SIDE_VECTOR, fault);
}
