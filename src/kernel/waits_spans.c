// What instructions access, and which earlier ones they depend on.
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

#include "waits_state.h"

// The last span that begins at an address or before it.
static uint32_t pwsp_waits_span_at(const pwsp_waits *w, uint32_t at) {
    uint32_t low = 0, high = (uint32_t)w->span_count - 1;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (w->spans[middle].begin <= at) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

// Cuts a span in two at an address. False when memory is out.
static bool pwsp_waits_split(pwsp_waits *w, uint32_t span, uint32_t at) {
    void *items = w->spans;
    if (!pwsp_arena_extend(&w->list->arena, &items, &w->span_capacity, w->span_count + 1,
                           sizeof w->spans[0])) {
        w->is_out_of_memory = true;
        return false;
    }
    w->spans = (pwsp_waits_span *)items;
    memmove(&w->spans[span + 1], &w->spans[span],
            (size_t)(w->span_count - span) * sizeof w->spans[0]);
    w->span_count++;
    w->spans[span + 1].begin = at;
    return true;
}

// Finds the spans [*out_begin, *out_end) that a place covers, and cuts those at its ends. False when
// memory is out.
static bool pwsp_waits_cover(pwsp_waits *w, pwsp_waits_place *place, uint32_t *out_begin,
                             uint32_t *out_end) {
    uint32_t s = place->span;
    if (s + 1 >= w->span_count || w->spans[s].begin != place->begin) {
        s = pwsp_waits_span_at(w, place->begin);
    }
    if (w->spans[s].begin != place->begin && !pwsp_waits_split(w, s++, place->begin)) {
        return false;
    }
    *out_begin = place->span = s;
    while (w->spans[s].begin < place->end) {
        s++;
    }
    *out_end = s;
    return w->spans[s].begin == place->end || s == *out_begin ||
           pwsp_waits_split(w, s - 1, place->end);
}

PWSP_INTERNAL bool pwsp_waits_is_others_loop(const pwsp_waits *w, uint32_t i) {
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

PWSP_INTERNAL bool pwsp_waits_find_places(pwsp_waits *w, const ptoisa_machine *machine) {
    uint32_t bases[PTOISA_MEMORY_COUNT], tile_count = (uint32_t)w->list->tile_count;
    uint64_t base = 0;
    size_t count = (size_t)tile_count + PTOWSP_TASK_TILE_MAX + 1;
    w->where = (pwsp_waits_place *)pwsp_arena_take(&w->list->arena, count * sizeof *w->where, 8);
    for (int memory = 0; memory < PTOISA_MEMORY_COUNT; memory++) {
        bases[memory] = (uint32_t)base;
        base += machine->memory_size[memory];
    }
    PTOWSP_ASSERT(base <= UINT32_MAX / 2);
    for (uint32_t tile = 1; w->where && tile < tile_count; tile++) {
        const pwsp_list_tile *t = &w->list->tiles[tile], *root = &w->list->tiles[t->root];
        w->where[tile].begin = bases[t->memory] + root->address + t->offset;
        w->where[tile].end = w->where[tile].begin + (uint32_t)pwsp_list_tile_bytes(t);
        w->where[tile].span = 0;
        w->where[tile].is_rotating = root->loop != 0;
    }
    for (uint32_t param = 0; w->where && param <= PTOWSP_TASK_TILE_MAX; param++) {
        w->where[tile_count + param].begin = (uint32_t)base + param;
        w->where[tile_count + param].end = (uint32_t)base + param + 1;
        w->where[tile_count + param].span = 0;
        w->where[tile_count + param].is_rotating = false;
    }
    return w->where != NULL;
}

PWSP_INTERNAL void pwsp_waits_find_accesses(const pwsp_waits *w, const pwsp_insn *insn,
                                            pwsp_waits_accesses *out) {
    uint32_t param = (uint32_t)w->list->tile_count + insn->param, count = 0;
    bool is_store = pwsp_waits_is_store(insn);
    PTOWSP_ASSERT(insn->param <= PTOWSP_TASK_TILE_MAX);
    for (uint32_t k = 0; k < PWSP_INSN_SRC_MAX; k++) {
        out->where[count] = insn->src[k];
        count += insn->src[k] != 0;
    }
    out->where[count] = insn->dst[0];
    count += insn->is_dst_read && insn->dst[0];
    out->where[count] = param;
    count += insn->param && !is_store;
    out->read_count = count;
    out->where[count] = param;
    count += insn->param && is_store;
    for (uint32_t k = 0; k < PWSP_INSN_DST_MAX; k++) {
        out->where[count] = insn->dst[k];
        count += insn->dst[k] != 0;
    }
    out->where[count] = insn->tmp;
    out->count = count + (insn->tmp != 0);
}

// Raises needs to what an access to the spans [begin, end) depends on.
static void pwsp_waits_need(const pwsp_waits *w, uint32_t begin, uint32_t end, bool is_write,
                            uint32_t *needs) {
    for (uint32_t s = begin; s < end; s++) {
        const pwsp_waits_span *span = &w->spans[s];
        if (span->write) {
            uint32_t *need = &needs[w->pipes[span->write - 1]];
            *need = span->write > *need ? span->write : *need;
        }
        if (is_write) {
            pwsp_waits_raise(needs, span->reads);
        }
    }
}

// Makes one span of [begin, end), which instruction i has written.
static void pwsp_waits_join(pwsp_waits *w, uint32_t begin, uint32_t end, uint32_t i) {
    if (begin == end) {
        return;
    }
    memset(w->spans[begin].reads, 0, sizeof w->spans[begin].reads);
    w->spans[begin].write = i + 1;
    if (end - begin > 1) {
        memmove(&w->spans[begin + 1], &w->spans[end],
                (size_t)(w->span_count - end) * sizeof w->spans[0]);
        w->span_count -= end - begin - 1;
    }
}

// All needs are found before what is written is noted: i does not depend on itself.
PWSP_INTERNAL bool pwsp_waits_find_needs(pwsp_waits *w, uint32_t i, uint32_t *needs) {
    pwsp_waits_accesses accesses;
    pwsp_waits_find_accesses(w, &w->list->insns[i], &accesses);
    uint32_t begin, end;
    for (uint32_t k = accesses.read_count; k < accesses.count; k++) {
        if (!pwsp_waits_cover(w, &w->where[accesses.where[k]], &begin, &end)) {
            return false;
        }
        pwsp_waits_need(w, begin, end, true, needs);
    }
    for (uint32_t k = 0; k < accesses.read_count; k++) {
        if (!pwsp_waits_cover(w, &w->where[accesses.where[k]], &begin, &end)) {
            return false;
        }
        pwsp_waits_need(w, begin, end, false, needs);
        for (uint32_t s = begin; s < end; s++) {
            w->spans[s].reads[w->pipes[i]] = i + 1;
        }
    }
    for (uint32_t k = accesses.read_count; k < accesses.count; k++) {
        if (!pwsp_waits_cover(w, &w->where[accesses.where[k]], &begin, &end)) {
            return false;
        }
        pwsp_waits_join(w, begin, end, i);
    }
    return true;
}
