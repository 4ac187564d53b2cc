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
    uint32_t low = 0, high = (uint32_t)w->span_count;
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
    if (w->span_count == w->span_capacity &&
        !pwsp_waits_grow(w, &items, &w->span_capacity, sizeof w->spans[0])) {
        return false;
    }
    w->spans = (pwsp_waits_span *)items;
    memmove(&w->spans[span + 1], &w->spans[span],
            (size_t)(w->span_count - span) * sizeof w->spans[0]);
    w->span_count++;
    w->spans[span + 1].begin = at;
    return true;
}

// Finds the spans [access->span, *out_end) that an operand covers, from a span near the first one on,
// and cuts those at its ends. False when memory is out.
static bool pwsp_waits_cover(pwsp_waits *w, pwsp_waits_access *access, uint32_t near,
                             uint32_t *out_end) {
    uint32_t s = near < w->span_count ? near : (uint32_t)w->span_count - 1;
    while (w->spans[s].begin > access->begin) {
        s--;
    }
    while (s + 1 < w->span_count && w->spans[s + 1].begin <= access->begin) {
        s++;
    }
    if (w->spans[s].begin != access->begin && !pwsp_waits_split(w, s++, access->begin)) {
        return false;
    }
    access->span = s;
    while (s < w->span_count && w->spans[s].begin < access->end) {
        s++;
    }
    *out_end = s;
    bool is_cut = s < w->span_count && w->spans[s].begin == access->end;
    return is_cut || s == access->span || pwsp_waits_split(w, s - 1, access->end);
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

PWSP_INTERNAL uint32_t pwsp_waits_accesses(const pwsp_waits *w, const pwsp_insn *insn,
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

PWSP_INTERNAL bool pwsp_waits_find_needs(pwsp_waits *w, pwsp_waits_access *access,
                                         uint32_t *needs) {
    uint32_t end;
    if (!pwsp_waits_cover(w, access, pwsp_waits_span_at(w, access->begin), &end)) {
        return false;
    }
    for (uint32_t s = access->span; s < end; s++) {
        const pwsp_waits_span *span = &w->spans[s];
        if (span->write) {
            uint32_t *need = &needs[w->pipes[span->write - 1]];
            *need = span->write > *need ? span->write : *need;
        }
        if (access->is_write) {
            pwsp_waits_raise(needs, span->reads);
        }
    }
    return true;
}

PWSP_INTERNAL bool pwsp_waits_note(pwsp_waits *w, pwsp_waits_access *access, uint32_t i) {
    uint32_t end;
    if (!pwsp_waits_cover(w, access, access->span, &end)) {
        return false;
    }
    uint32_t begin = access->span;
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
    if (end - begin > 1) {
        memmove(&w->spans[begin + 1], &w->spans[end],
                (size_t)(w->span_count - end) * sizeof w->spans[0]);
        w->span_count -= end - begin - 1;
    }
    return true;
}
