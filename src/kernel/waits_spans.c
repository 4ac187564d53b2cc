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

// Makes room for so many spans; false when memory is out.
static bool pwsp_waits_reserve(pwsp_waits *w, uint64_t count) {
    bool has_room = PWSP_EXTEND(&w->list->arena, w->spans, w->span_capacity, count);
    w->is_out_of_memory = w->is_out_of_memory || !has_room;
    return has_room;
}

// Cuts the spans of a place at its ends; the first is `from`. False when memory is out.
static bool pwsp_waits_cut(pwsp_waits *w, pwsp_waits_place *place, uint32_t from) {
    uint32_t last = from;
    while (w->spans[last + 1].begin < place->end) {
        last++;
    }
    const uint32_t head = w->spans[from].begin != place->begin;
    const uint32_t tail = w->spans[last + 1].begin != place->end, count = head + tail;
    place->span = from + head;
    if (count == 0) {
        return true;
    }
    if (w->span_count + count > w->span_capacity && !pwsp_waits_reserve(w, w->span_count + count)) {
        return false;
    }
    pwsp_waits_span *spans = w->spans, *next = &spans[last + 1];
    memmove(next + count, next, (size_t)(w->span_count - last - 1) * sizeof *next);
    if (head) {
        memmove(&spans[from + 1], &spans[from], (size_t)(next - &spans[from]) * sizeof *next);
        spans[from + 1].begin = place->begin;
        next++;
    }
    if (tail) {
        *next = next[-1];
        next->begin = place->end;
    }
    w->span_count += count;
    return true;
}

// Finds the first of the spans that a place covers; no span goes beyond it. NULL when memory is out.
PWSP_INLINE pwsp_waits_span *pwsp_waits_cover(pwsp_waits *w, pwsp_waits_place *place) {
    const pwsp_waits_span *span = &w->spans[place->span];
    const bool is_found = place->span < w->span_count && span->begin == place->begin;
    if (!is_found || span[1].begin != place->end) {
        const uint32_t from = is_found ? place->span : pwsp_waits_span_at(w, place->begin);
        if (!pwsp_waits_cut(w, place, from)) {
            return NULL;
        }
    }
    return &w->spans[place->span];
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

// Adds the other places of tiles whose roots rotate.
static void pwsp_waits_find_seconds(pwsp_waits *w, uint32_t first) {
    const pwsp_list *list = w->list;
    for (uint32_t tile = 1; tile < list->tile_count; tile++) {
        const pwsp_list_tile *root = &list->tiles[list->tiles[tile].root];
        if (root->loop && !root->places) {
            pwsp_waits_place *second = &w->where[first];
            *second = w->where[tile];
            second->begin += (uint32_t)pwsp_list_root_step(root);
            second->end += (uint32_t)pwsp_list_root_step(root);
            w->where[tile].second = first++;
        }
    }
}

PWSP_INTERNAL bool pwsp_waits_find_places(pwsp_waits *w, const ptoisa_machine *machine) {
    uint32_t bases[PTOISA_MEMORY_COUNT], tile_count = (uint32_t)w->list->tile_count;
    uint64_t base = 0;
    size_t count = 2 * (size_t)tile_count + PTOWSP_TASK_TILE_MAX + 1;
    w->where = (pwsp_waits_place *)pwsp_arena_take(&w->list->arena, count * sizeof *w->where, 8);
    for (int memory = 0; memory < PTOISA_MEMORY_COUNT; memory++) {
        bases[memory] = (uint32_t)base;
        base += machine->memory_size[memory];
    }
    PTOWSP_ASSERT(base <= UINT32_MAX / 2);
    for (uint32_t tile = 1; w->where && tile < tile_count; tile++) {
        const pwsp_list_tile *t = &w->list->tiles[tile], *root = &w->list->tiles[t->root];
        w->where[tile].begin = bases[t->memory] + root->address + t->offset;
        // A root with more than two places counts as one span, which orders all turns.
        w->where[tile].end =
            w->where[tile].begin +
            (uint32_t)(root->places ? pwsp_list_root_bytes(root) : pwsp_list_tile_bytes(t));
        w->where[tile].span = w->where[tile].second = 0;
    }
    for (uint32_t param = 0; w->where && param <= PTOWSP_TASK_TILE_MAX; param++) {
        pwsp_waits_place *place = &w->where[tile_count + param];
        place->begin = (uint32_t)base + param;
        place->end = place->begin + 1;
        place->span = place->second = 0;
    }
    if (w->where && w->list->loop_count) {
        pwsp_waits_find_seconds(w, tile_count + PTOWSP_TASK_TILE_MAX + 1);
    }
    return w->where != NULL;
}

PWSP_INTERNAL void pwsp_waits_find_accesses(const pwsp_waits *w, const pwsp_insn *insn,
                                            pwsp_insn_tiles *out) {
    PTOWSP_ASSERT(insn->param <= PTOWSP_TASK_TILE_MAX);
    pwsp_insn_find_tiles(insn, out);
    uint32_t param = (uint32_t)w->list->tile_count + insn->param;
    if (insn->param && pwsp_waits_is_store(insn)) {
        out->at[out->count++] = param;
    } else if (insn->param) {  // before the writes
        out->at[out->count++] = out->at[out->read_count];
        out->at[out->read_count++] = param;
    }
}

// Finds the last tick of each pipe that an access to a place depends on. False when memory is out.
static bool pwsp_waits_need(pwsp_waits *w, pwsp_waits_place *place, bool is_write,
                            uint32_t *needs) {
    const pwsp_waits_span *span = pwsp_waits_cover(w, place);
    if (!span) {
        return false;
    }
    for (; span->begin < place->end; span++) {
        uint32_t *need = &needs[span->write_pipe];
        *need = span->write > *need ? span->write : *need;
        if (is_write) {
            pwsp_waits_raise(needs, span->reads);
        }
    }
    return true;
}

PWSP_INTERNAL bool pwsp_waits_find_needs(pwsp_waits *w, uint32_t i, pwsp_insn_tiles *accesses,
                                         uint32_t *needs) {
    pwsp_waits_find_accesses(w, &w->list->insns[i], accesses);
    for (uint32_t k = 0; k < accesses->count; k++) {
        bool is_write = k >= accesses->read_count;
        for (uint32_t at = accesses->at[k]; at; at = w->where[at].second) {
            if (!pwsp_waits_need(w, &w->where[at], is_write, needs)) {
                return false;
            }
        }
    }
    return true;
}

// Merges the spans of a place that has been written.
static void pwsp_waits_join(pwsp_waits *w, pwsp_waits_span *span, uint32_t end, uint32_t pipe,
                            uint32_t tick) {
    pwsp_waits_span *next = span + 1;
    memset(span->reads, 0, sizeof span->reads);
    span->write = tick;
    span->write_pipe = pipe;
    if (next->begin < end) {
        do {
            next++;
        } while (next->begin < end);
        memmove(span + 1, next, (size_t)(w->spans + w->span_count - next) * sizeof *span);
        w->span_count -= (uint64_t)(next - span - 1);
    }
}

// Records an access to a place. False when memory is out.
static bool pwsp_waits_note_place(pwsp_waits *w, pwsp_waits_place *place, bool is_write,
                                  uint32_t pipe, uint32_t tick) {
    pwsp_waits_span *span = pwsp_waits_cover(w, place);
    if (!span) {
        return false;
    }
    if (is_write) {
        pwsp_waits_join(w, span, place->end, pipe, tick);
        return true;
    }
    for (; span->begin < place->end; span++) {
        span->reads[pipe] = tick;
    }
    return true;
}

PWSP_INTERNAL bool pwsp_waits_note(pwsp_waits *w, const pwsp_insn_tiles *accesses, uint32_t pipe,
                                   uint32_t tick) {
    for (uint32_t k = 0; k < accesses->count; k++) {
        bool is_write = k >= accesses->read_count;
        for (uint32_t at = accesses->at[k]; at; at = w->where[at].second) {
            if (!pwsp_waits_note_place(w, &w->where[at], is_write, pipe, tick)) {
                return false;
            }
        }
    }
    return true;
}
