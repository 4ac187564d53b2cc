// The judge of finished lists of instructions: it runs them on pipes of random speeds.
//
// The judge knows nothing of the passes. It gives each instruction a time to begin and to end, as
// pipes, flags and barriers allow, and replays all begins and ends in order of time. An access is
// good if exactly those accesses of the same 32 bytes that come before it in the list (and conflict
// with it) are over when it begins.
//
// A mixed list is run by three cores, of which both vector cores follow the vector half: instruction
// i is steps 2i of the first (or only) core and 2i + 1 of the second. The second core has a UB of its
// own, and of parameters the other rows, if the list is split; else it only pushes and pops.
//
//      blocks    parameters, rows of the first | of the second | memories | memories of the second
//
// The cube core's accesses of a parameter are to the rows of both. So are those of vector cores in lists
// that are not split, and in loops over rows.

#ifndef PTOWSP_LIST_JUDGE_H
#define PTOWSP_LIST_JUDGE_H

#include "list_build.h"

#define JUDGE_BLOCK   32
#define JUDGE_PARAMS  8
#define JUDGE_HELD_UP 1000000

// One access to one block of 32 bytes, or to a parameter.
typedef struct judge_touch {
    uint32_t block;
    bool is_write;
    uint32_t writes, reads;  // of this block: writes before it; reads since the last of them
} judge_touch;

typedef struct judge_event {
    uint64_t time;
    uint32_t step;
    bool is_end;
} judge_event;

typedef struct judge {
    const built *b;
    uint32_t count;        // of instructions
    judge_touch *touches;  // by step
    uint32_t *starts;      // [step]
    uint32_t touch_count, touch_capacity, memory_blocks;
    uint32_t block_count;   // of those that are touched, alike ones as one
    uint32_t *partner;      // [insn] a wait's set; a set's wait before it + 1, or 0
    uint64_t *begin, *end;  // [step]
    judge_event *events;
    uint32_t *writes, *reads;  // [block] done so far; reads since the last write
    int32_t *open;             // [block] accesses in progress; a write counts 1000
    const char *what;          // is wrong
} judge;

// Does the second vector core do an instruction?
static inline bool judge_has_second(const judge *j, const pwsp_insn *insn) {
    bool is_barrier = insn->op == PTOISA_PIPE_BARRIER && insn->src_pipe == PTOISA_PIPE_ALL;
    return j->b->list.is_mixed && insn->side == PWSP_SIDE_VECTOR &&
           (j->b->list.split_tile || pwsp_insn_is_fifo(insn) || is_barrier);
}

static inline void judge_touch_add(judge *j, uint32_t step, uint32_t block, bool is_write) {
    for (uint32_t i = j->starts[step]; i < j->touch_count; i++) {
        if (j->touches[i].block == block) {  // once for each block: reading and writing is writing
            j->touches[i].is_write = j->touches[i].is_write || is_write;
            return;
        }
    }
    if (j->touch_count == j->touch_capacity) {
        j->touch_capacity = 2 * j->touch_capacity + 1024;
        j->touches = (judge_touch *)realloc(j->touches, j->touch_capacity * sizeof *j->touches);
        assert_non_null(j->touches);
    }
    judge_touch touch = {block, is_write, 0, 0};
    j->touches[j->touch_count++] = touch;
}

// Notes the blocks of a tile. owner[block] is who wrote it in the order of the list, and image that
// of each root if it had memory of its own: both must be the same for what is read.
static inline void judge_tile(judge *j, uint32_t step, uint32_t tile, bool is_write,
                              uint32_t *owner, uint32_t **image) {
    if (!tile) {
        return;
    }
    const pwsp_list *list = &j->b->list;
    const pwsp_list_tile *t = &list->tiles[tile];
    uint32_t base = 2 * JUDGE_PARAMS + (step % 2 ? j->memory_blocks : 0);
    for (uint32_t memory = 0; memory < t->memory; memory++) {
        base += j->b->machine.memory_size[memory] / JUDGE_BLOCK;
    }
    uint32_t root_address = list->tiles[t->root].address;
    uint64_t bytes = pwsp_list_tile_bytes(t);
    if (root_address + t->offset + bytes > j->b->machine.memory_size[t->memory]) {
        j->what = "beyond memory";
        return;
    }
    for (uint64_t at = 0; at < bytes; at += JUDGE_BLOCK) {
        uint32_t in_root = (uint32_t)(t->offset + at) / JUDGE_BLOCK;
        uint32_t block = base + root_address / JUDGE_BLOCK + in_root;
        uint32_t *own = &image[t->root][in_root];
        if (step % 2 == 0 && is_write) {  // the second core has the same addresses
            owner[block] = *own = step + 1;
        } else if (step % 2 == 0 && owner[block] != *own) {
            j->what = "a tile's bytes are lost while it lives";
        }
        judge_touch_add(j, step, block, is_write);
    }
}

// Notes what an instruction does to its parameter: to the rows of the core that does it, or of both.
static inline void judge_param(judge *j, uint32_t step, const pwsp_insn *insn) {
    const bool is_own = j->b->list.split_tile && insn->side == PWSP_SIDE_VECTOR && !insn->row_loop;
    const bool is_write = insn->op == PTOISA_TSTORE || insn->op == PTOISA_MSCATTER;
    assert_true(insn->param <= JUDGE_PARAMS);
    assert_int_equal(insn->row, 0);  // rows of one number are the same core's
    for (uint32_t core = 0; core < 2; core++) {
        if (!is_own || core == step % 2) {
            judge_touch_add(j, step, core * JUDGE_PARAMS + insn->param - 1u, is_write);
        }
    }
}

// Lists all accesses of a step.
static inline void judge_step(judge *j, uint32_t step, uint32_t *owner, uint32_t **image) {
    const pwsp_insn *insn = &j->b->list.insns[step / 2];
    j->starts[step] = j->touch_count;
    bool is_sync = insn->op == PTOISA_SET_FLAG || insn->op == PTOISA_WAIT_FLAG ||
                   insn->op == PTOISA_PIPE_BARRIER;
    bool is_none = step % 2 && !(judge_has_second(j, insn) && j->b->list.split_tile);
    if (is_sync || is_none) {
        return;
    }
    for (int k = 0; k < PWSP_INSN_SRC_MAX; k++) {
        judge_tile(j, step, insn->src[k], false, owner, image);
    }
    if (insn->is_dst_read) {
        judge_tile(j, step, insn->dst[0], false, owner, image);
    }
    judge_tile(j, step, insn->dst[0], true, owner, image);
    judge_tile(j, step, insn->dst[1], true, owner, image);
    judge_tile(j, step, insn->tmp, true, owner, image);
    if (insn->param) {
        judge_param(j, step, insn);
    }
}

// Matches flags: the k-th wait for an event takes the k-th set.
static inline void judge_flags(judge *j) {
    for (uint32_t i = 0; i < j->count; i++) {
        const pwsp_insn *insn = &j->b->list.insns[i];
        if (insn->op != PTOISA_SET_FLAG && insn->op != PTOISA_WAIT_FLAG) {
            continue;
        }
        // The last flag instruction of this event before this one.
        uint32_t before = i;
        while (before > 0) {
            const pwsp_insn *other = &j->b->list.insns[before - 1];
            if ((other->op == PTOISA_SET_FLAG || other->op == PTOISA_WAIT_FLAG) &&
                other->src_pipe == insn->src_pipe && other->dst_pipe == insn->dst_pipe &&
                other->event == insn->event && other->side == insn->side) {
                break;
            }
            before--;
        }
        bool is_set = before > 0 && j->b->list.insns[before - 1].op == PTOISA_SET_FLAG;
        if (is_set == (insn->op == PTOISA_SET_FLAG)) {
            j->what = is_set ? "a flag is set twice" : "a flag is not set";
            return;
        }
        j->partner[i] = insn->op == PTOISA_SET_FLAG ? before : before - 1;
    }
    uint32_t sets = built_count(j->b, PTOISA_SET_FLAG);
    if (sets != built_count(j->b, PTOISA_WAIT_FLAG)) {
        j->what = "a flag is not waited for";
    }
}

// Matches TPUSH and TPOP: the k-th pop takes the k-th push, into whose slot the push goes that comes
// so many later as there are slots. Each half ends with a barrier.
static inline void judge_fifos(judge *j) {
    const pwsp_list *list = &j->b->list;
    uint32_t *pushes[PWSP_FIFO_COUNT], *pops[PWSP_FIFO_COUNT];
    uint32_t pushed[PWSP_FIFO_COUNT] = {0}, popped[PWSP_FIFO_COUNT] = {0};
    bool has_end[3] = {true, true, true};
    for (int f = 0; f < PWSP_FIFO_COUNT; f++) {
        pushes[f] = (uint32_t *)calloc(j->count + 1, sizeof **pushes);
        pops[f] = (uint32_t *)calloc(j->count + 1, sizeof **pops);
    }
    for (uint32_t i = 0; i < j->count && !j->what; i++) {
        const pwsp_insn *insn = &list->insns[i];
        has_end[insn->side] = insn->op == PTOISA_PIPE_BARRIER && insn->src_pipe == PTOISA_PIPE_ALL;
        uint32_t f = insn->mode;
        if (insn->op == PWSP_INSN_TPUSH) {
            if (pushed[f] == popped[f] + list->fifos[f].slots) {
                j->what = "a push without a slot";
                break;
            }
            bool is_first = pushed[f] < list->fifos[f].slots;
            j->partner[i] = is_first ? 0 : pops[f][pushed[f] - list->fifos[f].slots] + 1;
            pushes[f][pushed[f]++] = i;
        } else if (insn->op == PWSP_INSN_TPOP) {
            if (popped[f] == pushed[f]) {
                j->what = "a pop of nothing";
                break;
            }
            const pwsp_list_tile *s = &list->tiles[list->insns[pushes[f][popped[f]]].src[0]];
            const pwsp_list_tile *d = &list->tiles[insn->dst[0]];
            if (s->valid_rows.max != d->valid_rows.max || s->valid_cols.max != d->valid_cols.max) {
                j->what = "a pop of another tile";
            }
            j->partner[i] = pushes[f][popped[f]] + 1;
            pops[f][popped[f]++] = i;
        }
    }
    for (int f = 0; f < PWSP_FIFO_COUNT; f++) {
        j->what = pushed[f] != popped[f] ? "a push that is not popped" : j->what;
        free(pushes[f]);
        free(pops[f]);
    }
    if (list->is_mixed && !(has_end[PWSP_SIDE_CUBE] && has_end[PWSP_SIDE_VECTOR])) {
        j->what = "no barrier at the end";
    }
}

// Blocks that the same steps touch in the same way have the same counts, and become one. Each step splits
// the sets of blocks that were alike before it; set_of[block] is 0 before the first.
static inline void judge_merge(judge *j, uint32_t *set_of) {
    const size_t size = 2 * ((size_t)j->touch_count + 1) * sizeof(uint32_t);
    uint32_t *next = (uint32_t *)calloc(1, size), sets = 0, kept = 0;
    for (uint32_t step = 0; step < 2 * j->count; step++) {
        const uint32_t before = sets;
        for (uint32_t i = j->starts[step]; i < j->starts[step + 1]; i++) {
            uint32_t *set = &set_of[j->touches[i].block];
            uint32_t *to = &next[2 * *set + j->touches[i].is_write];
            *set = *to = *to > before ? *to : ++sets;
        }
    }
    memset(next, 0, size);  // by set: its last step + 1, and its number + 1
    for (uint32_t step = 0, i = 0; step < 2 * j->count; step++) {
        j->starts[step] = kept;
        for (; i < j->starts[step + 1]; i++) {
            uint32_t *last = &next[2 * set_of[j->touches[i].block]];
            if (last[0] != step + 1) {
                last[0] = step + 1;
                last[1] = last[1] ? last[1] : ++j->block_count;
                j->touches[kept] = j->touches[i];
                j->touches[kept++].block = last[1] - 1;
            }
        }
    }
    j->starts[2 * j->count] = j->touch_count = kept;
    free(next);
}

static inline void judge_init(judge *j, const built *b) {
    memset(j, 0, sizeof *j);
    j->b = b;
    j->count = (uint32_t)b->list.insn_count;
    for (int memory = 0; memory < PTOISA_MEMORY_COUNT; memory++) {
        j->memory_blocks += b->machine.memory_size[memory] / JUDGE_BLOCK;
    }
    const size_t blocks = 2 * JUDGE_PARAMS + (b->list.split_tile ? 2 : 1) * j->memory_blocks;
    size_t count = 2 * (size_t)j->count + 1;
    j->starts = (uint32_t *)calloc(count, sizeof *j->starts);
    j->partner = (uint32_t *)calloc(j->count + 1, sizeof *j->partner);
    j->begin = (uint64_t *)calloc(count, sizeof *j->begin);
    j->end = (uint64_t *)calloc(count, sizeof *j->end);
    j->events = (judge_event *)calloc(2 * count, sizeof *j->events);
    uint32_t *owner = (uint32_t *)calloc(blocks, sizeof *owner);
    uint32_t **image = (uint32_t **)calloc(b->list.tile_count + 1, sizeof *image);
    for (uint64_t t = 1; t < b->list.tile_count; t++) {
        uint64_t bytes = pwsp_list_tile_bytes(&b->list.tiles[t]);
        image[t] = (uint32_t *)calloc(bytes / JUDGE_BLOCK + 1, sizeof **image);
    }
    for (uint32_t step = 0; step < 2 * j->count; step++) {
        judge_step(j, step, owner, image);
    }
    j->starts[2 * j->count] = j->touch_count;
    for (uint64_t t = 1; t < b->list.tile_count; t++) {
        free(image[t]);
    }
    free(image);
    memset(owner, 0, blocks * sizeof *owner);
    judge_merge(j, owner);
    free(owner);
    j->writes = (uint32_t *)calloc(j->block_count + 1, sizeof *j->writes);
    j->reads = (uint32_t *)calloc(j->block_count + 1, sizeof *j->reads);
    j->open = (int32_t *)calloc(j->block_count + 1, sizeof *j->open);
    // What each access must find, from the order of the list.
    for (uint32_t i = 0; i < j->touch_count; i++) {
        judge_touch *touch = &j->touches[i];
        touch->writes = j->writes[touch->block];
        touch->reads = j->reads[touch->block];
        if (touch->is_write) {
            j->writes[touch->block]++;
            j->reads[touch->block] = 0;
        } else {
            j->reads[touch->block]++;
        }
    }
    judge_flags(j);
    judge_fifos(j);
}

static inline void judge_free(judge *j) {
    free(j->touches);
    free(j->starts);
    free(j->partner);
    free(j->begin);
    free(j->end);
    free(j->events);
    free(j->writes);
    free(j->reads);
    free(j->open);
}

static inline uint64_t judge_max(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

// What a core has done so far: when a pipe can begin, and when all that it began is over.
typedef struct judge_core {
    uint64_t ready[PTOISA_PIPE_COUNT], done[PTOISA_PIPE_COUNT];
} judge_core;

// When a push or a pop can begin, as far as the other half says: if that is the vector half, both cores of
// it must have been there.
static inline uint64_t judge_other_end(const judge *j, uint32_t i) {
    const pwsp_insn *insn = &j->b->list.insns[i];
    const uint32_t other = pwsp_insn_is_fifo(insn) ? j->partner[i] : 0;
    return other ? judge_max(j->end[2 * (other - 1)], j->end[2 * (other - 1) + 1]) : 0;
}

// Gives a step its times; is_held: it takes very long. spread is a power of two.
static inline void judge_time(judge *j, uint64_t *random, uint32_t spread, bool is_held,
                              uint32_t step, judge_core *core) {
    const uint32_t i = step / 2;
    const pwsp_insn *insn = &j->b->list.insns[i];
    uint64_t *ready = core->ready, *done = core->done;
    uint64_t gap = 1 + (test_random(random) & (spread - 1));
    uint64_t length = is_held ? JUDGE_HELD_UP : 1 + (test_random(random) & (spread - 1));
    if (insn->op == PTOISA_SET_FLAG) {
        j->begin[step] = j->end[step] = done[insn->src_pipe] + gap;
    } else if (insn->op == PTOISA_WAIT_FLAG) {
        uint64_t set = j->end[2 * j->partner[i] + step % 2];
        j->end[step] = judge_max(ready[insn->dst_pipe], set) + gap + (is_held ? JUDGE_HELD_UP : 0);
        j->begin[step] = ready[insn->dst_pipe] = j->end[step];
        done[insn->dst_pipe] = judge_max(done[insn->dst_pipe], j->end[step]);
    } else if (insn->op == PTOISA_PIPE_BARRIER && insn->src_pipe == PTOISA_PIPE_ALL) {
        uint64_t all = 0;
        for (int p = 0; p < PTOISA_PIPE_COUNT; p++) {
            all = judge_max(all, judge_max(ready[p], done[p]));
        }
        for (int p = 0; p < PTOISA_PIPE_COUNT; p++) {
            ready[p] = done[p] = all + gap;
        }
    } else if (insn->op == PTOISA_PIPE_BARRIER) {
        ready[insn->src_pipe] = judge_max(ready[insn->src_pipe], done[insn->src_pipe]);
    } else {
        uint32_t pipe = (uint32_t)pwsp_insn_pipe(&j->b->list, insn);
        j->begin[step] = judge_max(ready[pipe], judge_other_end(j, i)) + gap;
        j->end[step] = j->begin[step] + length;
        bool is_slow = j->b->machine.family == PTOISA_A2A3 && pipe == PTOISA_PIPE_V;
        done[pipe] = judge_max(done[pipe], j->end[step]);
        ready[pipe] = is_slow ? j->begin[step] : j->end[step];
    }
}

// Gives all steps times; `held` takes very long. Says when S is done, of the cube core or the only one,
// and of both vector cores.
static inline void judge_times(judge *j, uint64_t *random, uint32_t spread, uint32_t held,
                               uint64_t *out_finish) {
    judge_core cores[3] = {0};
    for (uint32_t i = 0; i < j->count; i++) {
        const pwsp_insn *insn = &j->b->list.insns[i];
        const uint32_t first = insn->side == PWSP_SIDE_VECTOR;
        judge_time(j, random, spread, 2 * i == held, 2 * i, &cores[first]);
        if (judge_has_second(j, insn)) {
            judge_time(j, random, spread, 2 * i + 1 == held, 2 * i + 1, &cores[2]);
        }
    }
    for (int c = 0; c < 3; c++) {
        out_finish[c] = judge_max(cores[c].ready[PTOISA_PIPE_S], cores[c].done[PTOISA_PIPE_S]);
    }
}

static inline int judge_compare(const void *a, const void *b) {
    const judge_event *x = (const judge_event *)a, *y = (const judge_event *)b;
    if (x->time != y->time) {
        return x->time < y->time ? -1 : 1;
    }
    // What begins when something ends was not ordered behind it: a step takes one unit at least.
    return (int)x->is_end - (int)y->is_end;
}

// Begins or ends a step's accesses.
static inline void judge_replay(judge *j, uint32_t step, bool is_end) {
    for (uint32_t i = j->starts[step]; i < j->starts[step + 1]; i++) {
        const judge_touch *touch = &j->touches[i];
        uint32_t block = touch->block;
        if (is_end) {
            j->open[block] -= touch->is_write ? 1000 : 1;
            j->writes[block] += touch->is_write;
            j->reads[block] = touch->is_write ? 0 : j->reads[block] + 1;
            continue;
        }
        if (j->writes[block] != touch->writes || j->open[block] >= 1000 ||
            (touch->is_write && (j->reads[block] != touch->reads || j->open[block]))) {
            j->what = "an access in the wrong order";
        }
        j->open[block] += touch->is_write ? 1000 : 1;
    }
}

// Runs the list once. False, with j->what, when anything is wrong.
static inline bool judge_run(judge *j, uint64_t *random, uint32_t spread, uint32_t held) {
    if (j->what) {
        return false;
    }
    uint64_t finish[3];
    judge_times(j, random, spread, held, finish);
    uint32_t event_count = 0;
    memset(j->writes, 0, j->block_count * sizeof *j->writes);
    memset(j->reads, 0, j->block_count * sizeof *j->reads);
    memset(j->open, 0, j->block_count * sizeof *j->open);
    for (uint32_t step = 0; step < 2 * j->count; step++) {
        const uint32_t i = step / 2, second = step % 2;
        const pwsp_insn *insn = &j->b->list.insns[i];
        if (second && !(judge_has_second(j, insn) && j->b->list.split_tile)) {
            continue;
        }
        if (insn->op == PTOISA_SET_FLAG && j->partner[i] &&
            j->begin[step] <= j->end[2 * (j->partner[i] - 1) + second]) {
            j->what = "a flag is set before its last wait";
        }
        bool is_store = insn->op == PTOISA_TSTORE || insn->op == PTOISA_MSCATTER;
        if (is_store && j->end[step] >= finish[(insn->side == PWSP_SIDE_VECTOR) + second]) {
            j->what = "S ends before a store";
        }
        if (j->starts[step] < j->starts[step + 1]) {
            judge_event begin = {j->begin[step], step, false}, end = {j->end[step], step, true};
            j->events[event_count++] = begin;
            j->events[event_count++] = end;
        }
    }
    qsort(j->events, event_count, sizeof *j->events, judge_compare);
    for (uint32_t i = 0; i < event_count && !j->what; i++) {
        judge_replay(j, j->events[i].step, j->events[i].is_end);
    }
    return !j->what;
}

// Does the list stand the test of `rounds` random runs, and of one with each step held up?
static inline bool judge_list(const built *b, uint64_t *random, uint32_t rounds,
                              const char **out_what) {
    judge j;
    judge_init(&j, b);
    bool is_good = !j.what;
    for (uint32_t step = 0; step < 2 * j.count && is_good; step++) {
        if (step % 2 == 0 || judge_has_second(&j, &b->list.insns[step / 2])) {
            is_good = judge_run(&j, random, 1, step);
        }
    }
    for (uint32_t i = 0; i < rounds && is_good; i++) {
        uint32_t spread = (uint32_t)1 << test_random_in(random, 0, 10);
        is_good = judge_run(&j, random, spread, (uint32_t)test_random_in(random, 0, 2 * j.count));
    }
    *out_what = j.what;
    judge_free(&j);
    return is_good;
}

#endif
