// Placing flags and barriers, with vector clocks.
//
// A pipe runs its instructions in order, so the knowledge of one pipe about another is one number:
// known[P][Q] = t means that all of Q up to tick t is done when P continues. Ticks count
// instructions and waits, in the order of the list. A flag set after instruction j carries
// clocks[j]: the knowledge of j's pipe, and that j is done. A wait takes the maximum. A dependence
// that is already known needs no flag. Among the others the latest in the list is handled first,
// because it may imply the earlier ones, and never the other way round.
//
// A2/A3's vector pipe begins instructions in order but does not wait for their ends: known[V][V]
// moves only by a barrier or through another pipe and back; for all others it is the present.
//
// A flag is one bit, so an event may be set again only where its last wait is known. The sets of a
// pair of pipes and their waits are in the same order (a later flag with an earlier set would carry
// nothing new), so an event that is free stays free further on. When none is free after j:
//
//      1. the set moves after a later instruction of its pipe, where an event is free;
//      2. or the pair's last flag moves its set after j, if its wait comes after j: two in one;
//      3. or a flag goes back: the setter learns of the older half of the waits that it does not
//         know of, and sets then;
//      4. or, if the way back has no event either, all pipes wait for each other.
//
// In each case flags point forward in the list. So the order of the list is one in which everything
// can run, and nothing can hang.
//
// Mixed lists. Each half has its own flags, so the pass walks the list once per core, skips the
// other core's instructions, and then inserts the flags of both. TPUSH and TPOP need no flags
// against each other: they wait for slots. At the end all pipes of a core wait for each other, as
// PTO-ISA demands.

#include "waits_state.h"

#include <inttypes.h>

#define PWSP_WAITS_INSN_MAX (1u << 24)

// -- flags ----------------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_waits_extend(pwsp_waits *w) {
    bool has_room = PWSP_EXTEND(&w->list->arena, w->ops, w->op_capacity, w->op_count + 1);
    w->is_out_of_memory = w->is_out_of_memory || !has_room;
    return has_room;
}

PWSP_INTERNAL pwsp_waits_pair *pwsp_waits_pair_of(pwsp_waits *w, uint32_t src, uint32_t dst) {
    uint8_t *number = &w->pair_of[src][dst];
    if (*number == 0) {
        memset(&w->pairs[w->pair_count], 0, sizeof w->pairs[0]);
        *number = ++w->pair_count;
    }
    return &w->pairs[*number - 1];
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
static uint32_t pwsp_waits_free_event(pwsp_waits *w, uint32_t src, uint32_t dst,
                                      const uint32_t *clock) {
    const pwsp_waits_pair *pair = pwsp_waits_pair_of(w, src, dst);
    bool is_draining = dst == PTOISA_PIPE_S && (src == PTOISA_PIPE_MTE3 || src == PTOISA_PIPE_FIX);
    bool is_paired = pwsp_waits_is_paired(w, src);
    uint32_t count = is_paired ? PWSP_WAITS_BODY_PAIRED
                     : w->loop ? PWSP_WAITS_BODY_EVENTS
                               : PTOISA_EVENT_COUNT;
    for (uint32_t event = 0; event < count; event += is_paired ? 2 : 1) {
        bool is_own = w->loop == 0 || pair->owners[event] == 0 || pair->owners[event] == w->loop;
        if (is_own && pair->waited[event] <= clock[dst] &&
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

// The number of the first instruction of the src's stream, from `low` on, after which an event is
// free; *out_event gets it. The stream's length: it is free now. PWSP_WAITS_NONE: not even now.
static uint32_t pwsp_waits_first_free(pwsp_waits *w, uint32_t src, uint32_t dst, uint32_t low,
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

// Sets a flag on src, after instruction `from` of its stream or as soon as an event is free, and
// waits for it on dst before instruction i. False if no event is free, even now.
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
    pwsp_waits_pair *pair = pwsp_waits_pair_of(w, src, dst);
    uint8_t loop = pwsp_waits_is_paired(w, src) ? (uint8_t)w->loop : 0;
    pair->last_set = pwsp_waits_add(w, PTOISA_SET_FLAG, src, dst, event, slot, is_early);
    pair->last_slot = i;
    pair->has_last = true;
    uint32_t wait = pwsp_waits_add(w, PTOISA_WAIT_FLAG, src, dst, event, i, false);
    if (wait != PWSP_WAITS_NONE && pair->last_set != PWSP_WAITS_NONE) {
        w->ops[pair->last_set].loop = w->ops[wait].loop = loop;
    }
    pair->waited[event] = w->end[dst] = ++w->tick;
    pair->owners[event] = (uint8_t)w->loop;
    pair->owners[event + (loop != 0)] = (uint8_t)w->loop;
    pwsp_waits_raise(w->known[dst], clock);
    return true;
}

// Moves the set of a pair's last flag after instruction `at` of the src's stream. False if its wait is
// before that.
static bool pwsp_waits_merge(pwsp_waits *w, uint32_t src, uint32_t dst, uint32_t at) {
    const pwsp_waits_pair *pair = pwsp_waits_pair_of(w, src, dst);
    if (at == w->stream_count[src] || !pair->has_last || pair->last_slot <= w->streams[src][at]) {
        return false;
    }
    const uint32_t j = w->streams[src][at];
    if (pair->last_set != PWSP_WAITS_NONE) {
        w->ops[pair->last_set].slot = j + 1;
        w->ops[pair->last_set].is_early = true;
    }
    pwsp_waits_raise(w->known[dst], w->clocks[j]);
    return true;
}

// Lets src know of the older half of the waits on dst that it does not know of, before instruction
// i. False if dst has no event for that, or the loop none at all.
static bool pwsp_waits_answer(pwsp_waits *w, uint32_t src, uint32_t dst, uint32_t i) {
    const pwsp_waits_pair *pair = pwsp_waits_pair_of(w, src, dst);
    uint32_t open[PTOISA_EVENT_COUNT], count = 0;
    for (uint32_t event = 0; event < PTOISA_EVENT_COUNT; event++) {  // of a pair, the first
        uint32_t tick = pair->waited[event];
        bool is_own = w->loop == 0 || pair->owners[event] == w->loop;
        if (is_own && tick > w->known[src][dst]) {
            uint32_t at = count++;
            for (; at > 0 && open[at - 1] > tick; at--) {
                open[at] = open[at - 1];
            }
            open[at] = tick;
        }
    }
    if (count == 0) {  // other loops of the nest have all events
        pwsp_waits_crowd(w);
        return false;
    }
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

// Makes pipe dst wait, before instruction i, for the one that is done at a tick of another pipe.
static void pwsp_waits_order(pwsp_waits *w, uint32_t src, uint32_t dst, uint32_t tick, uint32_t i) {
    uint32_t at = pwsp_waits_stream_at(w, src, tick);
    if (pwsp_waits_flag(w, src, dst, at, i) || pwsp_waits_merge(w, src, dst, at)) {
        return;
    }
    if (pwsp_waits_answer(w, src, dst, i)) {
        bool is_set = pwsp_waits_flag(w, src, dst, at, i);
        PTOWSP_ASSERT(is_set);
        (void)is_set;
        return;
    }
    pwsp_waits_barrier_all(w, i);
}

// -- the pass -------------------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_waits_order_all(pwsp_waits *w, uint32_t *needs, uint32_t dst, uint32_t i) {
    const uint32_t *known = w->known[dst];
    while (pwsp_waits_is_any_above(needs, known)) {
        uint32_t latest = 0, src = 0;
        for (uint32_t q = 0; q < PTOISA_PIPE_COUNT; q++) {
            if (needs[q] > latest && needs[q] > known[q]) {
                latest = needs[q];
                src = q;
            }
        }
        pwsp_waits_order(w, src, dst, latest, i);
        needs[src] = 0;
    }
}

// Inserts the waits of instruction i, and records its accesses.
static bool pwsp_waits_insn(pwsp_waits *w, uint32_t i) {
    pwsp_insn_tiles accesses;
    uint32_t needs[PWSP_WAITS_ROW] = {0}, pipe = w->pipes[i];
    if (!pwsp_waits_find_needs(w, i, &accesses, needs)) {
        return false;
    }
    uint32_t own = needs[pipe];
    needs[pipe] = 0;
    pwsp_waits_order_all(w, needs, pipe, i);
    if (w->has_slow_vector && pipe == PTOISA_PIPE_V && own > w->known[pipe][pipe]) {
        pwsp_waits_add(w, PTOISA_PIPE_BARRIER, pipe, pipe, 0, i, false);
        w->known[pipe][pipe] = w->end[pipe];
    }
    w->ticks[i] = w->end[pipe] = ++w->tick;
    pwsp_waits_present(w, pipe, w->clocks[i]);
    w->streams[pipe][w->stream_count[pipe]++] = i;
    return pwsp_waits_note(w, &accesses, pipe, w->tick) && !w->is_out_of_memory;
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
            last[w->pipes[i]] = depth ? 0 : i + 1;  // all pipes wait after a loop
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

// Where an op goes, as 3 * slot and one of three: 0, early ones of the core that has the instruction
// before it (of a mark, the vector core); 1, early ones of the other core; 2, others.
static uint32_t pwsp_waits_place_of(const pwsp_list *list, const pwsp_waits_op *op) {
    uint32_t place = 3 * op->slot;
    if (!op->is_early) {
        return place + 2;
    }
    const uint8_t marks = list->is_mixed ? PWSP_SIDE_VECTOR : PWSP_SIDE_ANY;
    const uint8_t side = list->insns[op->slot - 1].side;
    return place + (op->side != (side ? side : marks));
}

// Rebuilds the list with the added instructions. False, and nothing changed, when memory is out.
static bool pwsp_waits_rebuild(pwsp_waits *w) {
    pwsp_list *list = w->list;
    uint64_t count = list->insn_count, capacity = count + w->op_count;
    size_t places = 3 * (size_t)count + 4;
    if (w->op_count == 0) {
        return true;
    }
    uint32_t *starts = (uint32_t *)pwsp_arena_alloc(&list->arena, places * sizeof *starts, 8);
    pwsp_insn *insns =
        (pwsp_insn *)pwsp_arena_take(&list->arena, (size_t)capacity * sizeof *insns, 8);
    if (!starts || !insns) {
        return false;
    }
    // Counting sort by place; instruction s follows the last place of slot s. starts[k] is the next
    // position of place k.
    for (uint64_t k = 0; k < w->op_count; k++) {
        w->ops[k].slot = pwsp_waits_place_of(list, &w->ops[k]);
        starts[w->ops[k].slot + 1]++;
    }
    for (uint64_t i = 0; i <= count; i++) {
        uint32_t *at = &starts[3 * i];
        at[1] += at[0];
        at[2] += at[1];
        at[3] += at[2] + 1;
    }
    for (uint64_t k = 0; k < w->op_count; k++) {
        const pwsp_waits_op *op = &w->ops[k];
        pwsp_insn *insn = &insns[starts[op->slot]++];
        memset(insn, 0, sizeof *insn);
        insn->op = op->op;
        insn->src_pipe = op->src;
        insn->dst_pipe = op->dst;
        insn->event = op->event;
        insn->loop = op->loop;
        insn->side = op->side;
    }
    for (uint64_t i = 0; i < count; i++) {
        w->ticks[i] = starts[3 * i + 2];  // all of its slot have gone: it is next
        insns[w->ticks[i]] = list->insns[i];
    }
    for (uint64_t tile = 1; tile < list->tile_count; tile++) {
        pwsp_list_tile *t = &list->tiles[tile];
        if (t->root == tile && t->first <= t->last) {
            t->first = w->ticks[t->first];
            t->last = w->ticks[t->last];
        }
    }
    list->insns = insns;
    list->insn_count = list->insn_capacity = capacity;
    return true;
}

// How long the arrays that grow are at first.
#define PWSP_WAITS_ROOM (PWSP_TIGHT(0, 1) ? 2u : 32u)

// Finds where loops are, and which one each instruction is in.
static void pwsp_waits_find_loops(pwsp_waits *w) {
    const pwsp_list *list = w->list;
    uint32_t loop = 0;
    for (uint32_t i = 0; i < list->insn_count; i++) {
        const pwsp_insn *insn = &list->insns[i];
        w->loop_of[i] = (uint8_t)loop;  // of a mark, the one around its loop
        if (insn->op == PWSP_INSN_LOOP) {
            loop = insn->loop;
            w->loop_first[loop] = i;
        } else if (insn->op == PWSP_INSN_END) {
            w->loop_last[loop] = i;
            loop = list->loops[loop].parent;
            w->loop_of[i] = (uint8_t)loop;
        }
    }
}

// Makes room for both cores; false when memory is out.
static bool pwsp_waits_init(pwsp_waits *w, pwsp_list *list, const ptoisa_machine *machine) {
    memset(w, 0, offsetof(pwsp_waits, side));
    w->list = list;
    w->has_slow_vector = machine->family == PTOISA_A2A3;
    size_t count = (size_t)list->insn_count + 1;
    pwsp_arena *arena = &list->arena;
    w->clocks = (uint32_t(*)[PWSP_WAITS_ROW])pwsp_arena_take(arena, count * sizeof *w->clocks, 8);
    w->ticks = (uint32_t *)pwsp_arena_take(arena, 2 * count * sizeof *w->ticks, 8);
    w->pipes = (uint8_t *)pwsp_arena_take(arena, 2 * count, 1);
    w->spans = (pwsp_waits_span *)pwsp_arena_take(arena, PWSP_WAITS_ROOM * sizeof *w->spans, 8);
    w->ops = (pwsp_waits_op *)pwsp_arena_take(arena, PWSP_WAITS_ROOM * sizeof *w->ops, 8);
    if (!w->clocks || !w->ticks || !w->pipes || !w->spans || !w->ops) {
        return false;
    }
    w->stream_room = w->ticks + count;
    w->loop_of = w->pipes + count;
    pwsp_waits_find_loops(w);
    w->span_capacity = w->op_capacity = PWSP_WAITS_ROOM;
    return pwsp_waits_find_places(w, machine);
}

// Begins with a core, which knows nothing yet, of all memories as one span and of its streams.
static void pwsp_waits_begin(pwsp_waits *w, pwsp_side side) {
    const size_t begin = offsetof(pwsp_waits, side), end = offsetof(pwsp_waits, opens);
    memset((char *)w + begin, 0, end - begin);
    w->side = side;
    w->is_crowded = false;
    w->first_op = w->op_count;
    memset(w->spans, 0, 2 * sizeof w->spans[0]);
    w->spans[1].begin = UINT32_MAX;
    w->span_count = 2;
    uint32_t counts[PTOISA_PIPE_COUNT] = {0}, *streams = w->stream_room;
    for (uint64_t i = 0; i < w->list->insn_count; i++) {
        const pwsp_insn *insn = &w->list->insns[i];
        w->pipes[i] = PTOISA_PIPE_ALL;
        if (!pwsp_insn_is_mark(insn) && !pwsp_waits_is_others(w, insn)) {
            PTOWSP_ASSERT(!pwsp_insn_is_sync(insn));
            w->pipes[i] = (uint8_t)pwsp_insn_pipe(w->list, insn);
            counts[w->pipes[i]]++;
        }
    }
    for (int pipe = 0; pipe < PTOISA_PIPE_COUNT; pipe++) {
        w->streams[pipe] = streams;
        streams += counts[pipe];
    }
}

// Finds the waits of one core; false when memory is out. A nest for which events do not suffice makes
// it begin again, and has barriers then.
static bool pwsp_waits_run(pwsp_waits *w, pwsp_side side) {
    const uint64_t first_op = w->op_count;
    bool is_good = true;
    w->crowded = 0;
    do {
        w->op_count = first_op;
        pwsp_waits_begin(w, side);
        for (uint32_t i = 0; is_good && i < w->list->insn_count && !w->is_crowded; i++) {
            if (w->pipes[i] != PTOISA_PIPE_ALL) {
                is_good = pwsp_waits_insn(w, i);
            } else if (pwsp_insn_is_mark(&w->list->insns[i])) {
                is_good = pwsp_waits_mark(w, i);
            }
        }
    } while (is_good && w->is_crowded);
    if (is_good) {
        pwsp_waits_drain(w);
    }
    return is_good && !w->is_out_of_memory;
}

PWSP_INTERNAL bool pwsp_list_add_waits(pwsp_list *list, const ptoisa_machine *machine,
                                       pwsp_list_fault *fault) {
    if (list->insn_count > PWSP_WAITS_INSN_MAX) {
        return pwsp_list_fail(fault, PTOWSP_LIMIT_EXCEEDED, 0,
                              "waits: %" PRIu64 " instructions, more than %u", list->insn_count,
                              PWSP_WAITS_INSN_MAX);
    }
    pwsp_waits w;
    bool is_good =
        pwsp_waits_init(&w, list, machine) &&
        (list->is_mixed ? pwsp_waits_run(&w, PWSP_SIDE_CUBE) && pwsp_waits_run(&w, PWSP_SIDE_VECTOR)
                        : pwsp_waits_run(&w, PWSP_SIDE_ANY)) &&
        pwsp_waits_rebuild(&w);
    return is_good || pwsp_list_fail(fault, PTOWSP_OUT_OF_MEMORY, 0, "waits: out of memory");
}
