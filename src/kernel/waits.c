// Placing flags and barriers, with vector clocks.
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

#include "waits_state.h"

#include <inttypes.h>

#define PWSP_WAITS_INSN_MAX (1u << 24)

// -- flags ----------------------------------------------------------------------------------------

PWSP_INTERNAL uint32_t pwsp_waits_add(pwsp_waits *w, ptoisa_op op, uint32_t src, uint32_t dst,
                                      uint32_t event, uint32_t slot, bool is_early) {
    void *items = w->ops;
    if (w->op_count == w->op_capacity &&
        !pwsp_waits_grow(w, &items, &w->op_capacity, sizeof w->ops[0])) {
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

// The number of the first instruction of the src's stream, from `low` on, behind which an event is
// free; *out_event gets it. As many as there are: it is free now. PWSP_WAITS_NONE: not even now.
static uint32_t pwsp_waits_first_free(const pwsp_waits *w, uint32_t src, uint32_t dst, uint32_t low,
                                      uint32_t *out_event) {
    uint32_t clock[PWSP_WAITS_ROW], high = w->stream_count[src];
    const uint32_t *stream = w->streams[src];
    if (low < high) {  // most often at once
        *out_event = pwsp_waits_free_event(w, src, dst, w->clocks[stream[low]]);
        if (*out_event != PTOISA_EVENT_COUNT) {
            return low;
        }
        low++;
    }
    pwsp_waits_present(w, src, clock);
    *out_event = pwsp_waits_free_event(w, src, dst, clock);
    if (*out_event == PTOISA_EVENT_COUNT) {
        return PWSP_WAITS_NONE;
    }
    while (low < high) {  // one that is free stays so
        uint32_t middle = low + (high - low) / 2;
        uint32_t event = pwsp_waits_free_event(w, src, dst, w->clocks[stream[middle]]);
        if (event == PTOISA_EVENT_COUNT) {
            low = middle + 1;
        } else {
            high = middle;
            *out_event = event;
        }
    }
    return low;
}

// Sets a flag on src, behind instruction `from` of its stream or as soon after it as an event is
// free, and waits for it on dst before instruction i. False if no event is free, even now.
static bool pwsp_waits_flag(pwsp_waits *w, uint32_t src, uint32_t dst, uint32_t from, uint32_t i) {
    uint32_t clock[PWSP_WAITS_ROW], event, slot = i;
    uint32_t at = pwsp_waits_first_free(w, src, dst, from, &event);
    if (at == PWSP_WAITS_NONE) {
        return false;
    }
    bool is_early = at < w->stream_count[src];
    if (is_early) {
        memcpy(clock, w->clocks[w->streams[src][at]], sizeof clock);
        slot = w->streams[src][at] + 1;
    } else {
        pwsp_waits_present(w, src, clock);
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
    pwsp_waits_raise(w->known[dst], clock);
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
    pwsp_waits_raise(w->known[dst], w->clocks[j]);
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
    uint32_t from = pwsp_waits_stream_at(w, dst, open[(count - 1) / 2]);
    return pwsp_waits_flag(w, dst, src, from, i);
}

PWSP_INTERNAL void pwsp_waits_barrier_all(pwsp_waits *w, uint32_t i) {
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
    if (pwsp_waits_flag(w, src, dst, w->places[j], i) || pwsp_waits_merge(w, src, dst, j)) {
        return;
    }
    if (pwsp_waits_answer(w, src, dst, i)) {
        bool is_set = pwsp_waits_flag(w, src, dst, w->places[j], i);
        PTOWSP_ASSERT(is_set);
        (void)is_set;
        return;
    }
    pwsp_waits_barrier_all(w, i);
}

// -- the pass -------------------------------------------------------------------------------------

// Orders instruction i behind the last of each pipe that it needs and does not know of, + 1.
static void pwsp_waits_order_all(pwsp_waits *w, uint32_t *needs, uint32_t i) {
    const uint32_t *known = w->known[w->pipes[i]];
    for (;;) {
        uint32_t latest = 0;
        for (uint32_t q = 0; q < PTOISA_PIPE_COUNT; q++) {
            bool is_open = needs[q] > latest && w->ticks[needs[q] - 1] > known[q];
            latest = is_open ? needs[q] : latest;
        }
        if (!latest) {
            return;
        }
        pwsp_waits_order(w, latest - 1, i);
        needs[w->pipes[latest - 1]] = 0;
    }
}

// Puts what instruction i needs before it, and notes what it does.
static bool pwsp_waits_insn(pwsp_waits *w, uint32_t i) {
    pwsp_waits_access accesses[PWSP_WAITS_ACCESS_MAX];
    uint32_t count = pwsp_waits_accesses(w, &w->list->insns[i], accesses);
    uint32_t needs[PWSP_WAITS_ROW] = {0}, pipe = w->pipes[i];
    for (uint32_t k = 0; k < count; k++) {
        if (!pwsp_waits_find_needs(w, &accesses[k], needs)) {
            return false;
        }
    }
    uint32_t own = needs[pipe];
    needs[pipe] = 0;
    pwsp_waits_order_all(w, needs, i);
    if (w->has_slow_vector && pipe == PTOISA_PIPE_V && own &&
        w->ticks[own - 1] > w->known[pipe][pipe]) {
        pwsp_waits_add(w, PTOISA_PIPE_BARRIER, pipe, pipe, 0, i, false);
        w->known[pipe][pipe] = w->end[pipe];
    }
    w->ticks[i] = w->end[pipe] = ++w->tick;
    pwsp_waits_present(w, pipe, w->clocks[i]);
    w->places[i] = w->stream_count[pipe];
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

// Makes the list anew, with what was added. starts is room for 2 * (instructions + 1) + 1 numbers.
static bool pwsp_waits_rebuild(pwsp_waits *w, uint32_t *starts) {
    pwsp_list *list = w->list;
    uint64_t count = list->insn_count, capacity = count + w->op_count;
    if (w->op_count == 0) {
        return true;
    }
    pwsp_insn *insns =
        (pwsp_insn *)pwsp_memory_take(&list->memory, (size_t)capacity * sizeof list->insns[0]);
    if (!insns) {
        return false;
    }
    // Counted by place: early ones of slot s at 2 s, others at 2 s + 1, and behind them instruction
    // s. starts[k] becomes where the next one of place k goes.
    for (uint64_t k = 0; k < w->op_count; k++) {
        starts[2 * w->ops[k].slot + (w->ops[k].is_early ? 0 : 1) + 1]++;
    }
    for (uint64_t i = 0; i <= count; i++) {
        starts[2 * i + 1] += starts[2 * i];
        starts[2 * i + 2] += starts[2 * i + 1] + 1;
    }
    for (uint64_t k = 0; k < w->op_count; k++) {
        const pwsp_waits_op *op = &w->ops[k];
        pwsp_insn *insn = &insns[starts[2 * op->slot + (op->is_early ? 0 : 1)]++];
        memset(insn, 0, sizeof *insn);
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
    pwsp_memory_free(&list->memory, list->insns,
                     (size_t)list->insn_capacity * sizeof list->insns[0]);
    list->insns = insns;
    list->insn_count = list->insn_capacity = capacity;
    return true;
}

// How long the arrays that grow are at first.
#define PWSP_WAITS_ROOM 32

// Makes room; false when memory is out. All that is known of the list as a whole is put there.
static bool pwsp_waits_init(pwsp_waits *w, const ptoisa_machine *machine) {
    size_t count = (size_t)w->list->insn_count + 1;
    uint32_t *room = (uint32_t *)pwsp_arena_alloc(w->arena, 3 * count * sizeof *room, 8);
    w->pipes = (uint8_t *)pwsp_arena_alloc(w->arena, count, 8);
    w->clocks =
        (uint32_t(*)[PWSP_WAITS_ROW])pwsp_arena_alloc(w->arena, count * sizeof *w->clocks, 8);
    w->spans = (pwsp_waits_span *)pwsp_arena_alloc(w->arena, PWSP_WAITS_ROOM * sizeof *w->spans, 8);
    w->ops = (pwsp_waits_op *)pwsp_arena_alloc(w->arena, PWSP_WAITS_ROOM * sizeof *w->ops, 8);
    if (!room || !w->pipes || !w->clocks || !w->spans || !w->ops) {
        return false;
    }
    w->ticks = room;
    w->places = room + count;
    w->span_capacity = w->op_capacity = PWSP_WAITS_ROOM;
    w->span_count = 1;
    uint64_t base = 0;
    for (int memory = 0; memory < PTOISA_MEMORY_COUNT; memory++) {
        w->memory_base[memory] = (uint32_t)base;
        base += machine->memory_size[memory];
    }
    w->memory_base[PTOISA_MEMORY_COUNT] = (uint32_t)base;
    PTOWSP_ASSERT(base <= UINT32_MAX / 2);
    w->has_slow_vector = machine->family == PTOISA_A2A3;
    uint32_t counts[PTOISA_PIPE_COUNT] = {0}, *streams = room + 2 * count;
    for (uint64_t i = 0; i < w->list->insn_count; i++) {
        const pwsp_insn *insn = &w->list->insns[i];
        if (pwsp_insn_is_mark(insn) || pwsp_waits_is_others(w, insn)) {
            w->pipes[i] = PTOISA_PIPE_ALL;
            continue;
        }
        PTOWSP_ASSERT(!pwsp_insn_is_sync(insn));
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
                           pwsp_arena *arena, pwsp_list_fault *fault) {
    if (list->insn_count > PWSP_WAITS_INSN_MAX) {
        return pwsp_list_fail(fault, PTOWSP_LIMIT_EXCEEDED, 0,
                              "waits: %" PRIu64 " instructions, more than %u", list->insn_count,
                              PWSP_WAITS_INSN_MAX);
    }
    pwsp_waits w;
    memset(&w, 0, offsetof(pwsp_waits, tokens));
    w.list = list;
    w.arena = arena;
    w.side = side;
    bool is_good = pwsp_waits_init(&w, machine);
    for (uint32_t i = 0; is_good && i < list->insn_count; i++) {
        if (w.pipes[i] != PTOISA_PIPE_ALL) {
            is_good = pwsp_waits_insn(&w, i);
        } else if (pwsp_insn_is_mark(&list->insns[i])) {
            is_good = pwsp_waits_mark(&w, i);
        }
    }
    if (is_good) {
        pwsp_waits_drain(&w);
        size_t size = (2 * ((size_t)list->insn_count + 1) + 1) * sizeof(uint32_t);
        uint32_t *starts = (uint32_t *)pwsp_arena_alloc(arena, size, 8);
        is_good = starts && !w.is_out_of_memory && pwsp_waits_rebuild(&w, starts);
    }
    pwsp_arena_reset(arena);
    return is_good || pwsp_list_fail(fault, PTOWSP_OUT_OF_MEMORY, 0, "waits: out of memory");
}

PWSP_INTERNAL bool pwsp_list_add_waits(pwsp_list *list, const ptoisa_machine *machine,
                                       pwsp_list_fault *fault) {
    pwsp_arena arena;
    pwsp_arena_init(&arena, &list->memory);
    bool is_good = list->is_mixed
                       ? pwsp_waits_run(list, machine, PWSP_SIDE_CUBE, &arena, fault) &&
                             pwsp_waits_run(list, machine, PWSP_SIDE_VECTOR, &arena, fault)
                       : pwsp_waits_run(list, machine, PWSP_SIDE_ANY, &arena, fault);
    pwsp_arena_free(&arena);
    return is_good;
}
