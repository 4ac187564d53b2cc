// For tests of the passes over lists of instructions: building lists by hand and at random, and a
// judge that runs a finished list on pipes of random speeds.
//
// The judge knows nothing of the passes. It gives each instruction a time to begin and to end, as
// pipes, flags and barriers allow, and replays all begins and ends in order of time. An access is
// good if exactly those accesses of the same 32 bytes that come before it in the list (and conflict
// with it) are over when it begins.

#ifndef PTOWSP_LIST_BUILD_H
#define PTOWSP_LIST_BUILD_H

#include "../src/kernel/cut.h"
#include "../src/kernel/memory.h"
#include "../src/kernel/proof.h"
#include "../src/kernel/waits.h"

#include "test.h"

typedef struct built {
    test_memory memory;
    pwsp_list list;
    pwsp_list_fault fault;
    ptoisa_machine machine;
} built;

static inline void built_init(built *b, ptoisa_family family) {
    memset(b, 0, sizeof *b);
    pwsp_list_init(&b->list, pwsp_memory_make(test_resize, &b->memory));
    b->machine = family == PTOISA_A2A3 ? *ptoisa_machine_910b() : *ptoisa_machine_950pr();
}

static inline void built_free(built *b) {
    pwsp_list_free(&b->list);
    assert_int_equal(b->memory.live_blocks, 0);
    assert_int_equal(b->memory.live_bytes, 0);
}

// A tile of f32 in the layout that its memory has on A2/A3.
static inline uint32_t built_tile(built *b, ptoisa_memory memory, uint32_t rows, uint32_t cols) {
    static const uint8_t layouts[PTOISA_MEMORY_COUNT] = {
        PTOISA_ROW_MAJOR, PTOISA_NZ,        PTOISA_ZZ,       PTOISA_ZN,
        PTOISA_NZ,        PTOISA_ROW_MAJOR, PTOISA_ROW_MAJOR};
    uint32_t index = pwsp_list_add_tile(&b->list);
    assert_int_not_equal(index, 0);
    pwsp_list_tile *tile = &b->list.tiles[index];
    tile->dtype = PTOISA_F32;
    tile->memory = (uint8_t)memory;
    tile->layout = layouts[memory];
    tile->rows = tile->valid_rows.max = rows;
    tile->cols = tile->valid_cols.max = cols;
    return index;
}

static inline uint32_t built_vec(built *b, uint32_t rows, uint32_t cols) {
    return built_tile(b, PTOISA_VEC, rows, cols);
}

// A view of rows [row, row + rows) of a row-major tile.
static inline uint32_t built_view(built *b, uint32_t of, uint32_t row, uint32_t rows) {
    uint32_t cols = b->list.tiles[of].cols;
    uint32_t index = built_tile(b, (ptoisa_memory)b->list.tiles[of].memory, rows, cols);
    b->list.tiles[index].root = b->list.tiles[of].root;
    b->list.tiles[index].offset = b->list.tiles[of].offset + row * cols * 4;
    return index;
}

static inline pwsp_insn *built_op(built *b, ptoisa_op op, uint32_t dst, uint32_t src0,
                                  uint32_t src1) {
    pwsp_insn *insn = pwsp_list_add(&b->list, op);
    assert_non_null(insn);
    insn->dst[0] = dst;
    insn->src[0] = src0;
    insn->src[1] = src1;
    return insn;
}

static inline void built_load(built *b, uint32_t dst, uint32_t param) {
    built_op(b, PTOISA_TLOAD, dst, 0, 0)->param = (uint16_t)(param + 1);
}

static inline void built_store(built *b, uint32_t param, uint32_t src) {
    built_op(b, PTOISA_TSTORE, 0, src, 0)->param = (uint16_t)(param + 1);
}

static inline void built_sync(built *b, ptoisa_op op, uint32_t src, uint32_t dst, uint32_t event) {
    pwsp_insn *insn = pwsp_list_add(&b->list, op);
    assert_non_null(insn);
    insn->src_pipe = (uint8_t)src;
    insn->dst_pipe = (uint8_t)dst;
    insn->event = (uint8_t)event;
}

static inline void built_must(built *b, bool is_good) {
    if (!is_good) {
        fail_msg("%s", b->fault.text);
    }
}

static inline void built_finish(built *b) {
    built_must(b, pwsp_list_place(&b->list, &b->machine, &b->fault));
    built_must(b, pwsp_list_add_waits(&b->list, &b->machine, &b->fault));
    built_must(b, pwsp_list_verify(&b->list, &b->machine, &b->fault));
}

// The list as text, an instruction a line: "TADD", "SET MTE2 V 0", "BARRIER V".
static inline void built_print(const built *b, char *text, size_t size) {
    size_t at = 0;
    text[0] = 0;
    for (uint64_t i = 0; i < b->list.insn_count; i++) {
        const pwsp_insn *insn = &b->list.insns[i];
        const char *src = ptoisa_pipe_name((ptoisa_pipe)insn->src_pipe);
        const char *dst = ptoisa_pipe_name((ptoisa_pipe)insn->dst_pipe);
        const char *name = pwsp_insn_name(insn);
        int length;
        if (insn->op == PTOISA_SET_FLAG || insn->op == PTOISA_WAIT_FLAG) {
            length = snprintf(text + at, size - at, "%s %s %s %u\n",
                              insn->op == PTOISA_SET_FLAG ? "SET" : "WAIT", src, dst, insn->event);
        } else if (insn->op == PTOISA_PIPE_BARRIER) {
            length = snprintf(text + at, size - at, "BARRIER %s\n", src);
        } else {
            length = snprintf(text + at, size - at, "%s\n", name);
        }
        at += (size_t)length;
        assert_true(at < size);
    }
}

static inline void built_is(const built *b, const char *expected) {
    char text[8192];
    built_print(b, text, sizeof text);
    assert_string_equal(text, expected);
}

static inline uint32_t built_count(const built *b, ptoisa_op op) {
    uint32_t count = 0;
    for (uint64_t i = 0; i < b->list.insn_count; i++) {
        count += b->list.insns[i].op == op;
    }
    return count;
}

// -- random lists ---------------------------------------------------------------------------------

typedef struct random_list {
    built *b;
    uint64_t *random;
    uint32_t roots[PTOISA_MEMORY_COUNT][4096];  // written ones, by age
    uint32_t root_count[PTOISA_MEMORY_COUNT];
    uint32_t recent;  // sources are among so many last roots
    uint32_t params;
    uint32_t scale;  // of sizes
    uint64_t kinds;  // that it uses, as bits
} random_list;

static inline uint32_t random_new_tile(random_list *r, ptoisa_memory memory) {
    uint32_t k = (uint32_t)test_random_in(r->random, 1, r->scale);
    uint32_t rows = (uint32_t)test_random_in(r->random, 1, 4);
    switch (memory) {
    case PTOISA_VEC: return built_vec(r->b, rows, 8 * k);
    case PTOISA_MAT:
    case PTOISA_LEFT: return built_tile(r->b, memory, 16, 8 * k);
    case PTOISA_RIGHT: return built_tile(r->b, memory, 8 * k, 16);
    case PTOISA_ACC: return built_tile(r->b, memory, 16, 16);
    default: return built_tile(r->b, memory, 1, 8 * k);
    }
}

// A root, or a view of some rows of it.
static inline uint32_t random_part(random_list *r, uint32_t root) {
    uint32_t rows = r->b->list.tiles[root].rows;
    bool is_whole = r->b->list.tiles[root].memory != PTOISA_VEC || test_random_in(r->random, 0, 2);
    if (is_whole) {
        return root;
    }
    uint32_t row = (uint32_t)test_random_in(r->random, 0, rows - 1);
    return built_view(r->b, root, row, (uint32_t)test_random_in(r->random, 1, rows - row));
}

// One of the recent roots of a memory, or 0.
static inline uint32_t random_root(random_list *r, ptoisa_memory memory) {
    uint32_t count = r->root_count[memory];
    if (!count) {
        return 0;
    }
    uint32_t back = count < r->recent ? count : r->recent;
    return r->roots[memory][count - 1 - (uint32_t)test_random_in(r->random, 0, back - 1)];
}

static inline uint32_t random_src(random_list *r, ptoisa_memory memory) {
    uint32_t root = random_root(r, memory);
    return root ? random_part(r, root) : 0;
}

// Where a result goes: mostly a new tile. It may be read only once the instruction is there.
static inline uint32_t random_dst(random_list *r, ptoisa_memory memory) {
    uint32_t root = test_random_in(r->random, 0, 2) ? 0 : random_root(r, memory);
    return root ? random_part(r, root) : random_new_tile(r, memory);
}

static inline void random_written(random_list *r, uint32_t tile) {
    const pwsp_list_tile *t = &r->b->list.tiles[tile];
    if (t->root == tile && r->root_count[t->memory] < 4096) {
        for (uint32_t i = 0; i < r->root_count[t->memory]; i++) {
            if (r->roots[t->memory][i] == tile) {
                return;
            }
        }
        r->roots[t->memory][r->root_count[t->memory]++] = tile;
    }
}

// Appends an instruction, if its sources exist.
static inline void random_op(random_list *r, ptoisa_op op, int dst, int src0, int src1,
                             bool has_param, bool has_tmp) {
    uint32_t a = src0 < 0 ? 0 : random_src(r, (ptoisa_memory)src0);
    uint32_t b = src1 < 0 ? 0 : random_src(r, (ptoisa_memory)src1);
    if ((src0 >= 0 && !a) || (src1 >= 0 && !b)) {
        return;
    }
    uint32_t d = 0, tmp = has_tmp ? random_new_tile(r, PTOISA_VEC) : 0;
    bool is_dst_read = op == PTOISA_TMATMUL_ACC || op == PTOISA_TAXPY;
    if (dst >= 0) {
        d = is_dst_read ? random_src(r, (ptoisa_memory)dst) : random_dst(r, (ptoisa_memory)dst);
        if (!d) {
            return;
        }
    }
    pwsp_insn *insn = built_op(r->b, op, d, a, b);
    insn->is_dst_read = is_dst_read;
    insn->tmp = tmp;
    insn->param = has_param ? (uint16_t)(1 + test_random_in(r->random, 0, r->params - 1)) : 0;
    if (op == PTOISA_TROWARGMAX && test_random_in(r->random, 0, 1)) {
        uint32_t second = random_new_tile(r, PTOISA_VEC);
        r->b->list.insns[r->b->list.insn_count - 1].dst[1] = second;
        random_written(r, second);
    }
    if (d) {
        random_written(r, d);
    }
}

// clang-format off
#define RANDOM_OPS(OP) /* op, dst, src0, src1, has a parameter, has scratch */                     \
    OP(TLOAD, PTOISA_VEC, -1, -1, true, false)                                                     \
    OP(TLOAD, PTOISA_VEC, -1, -1, true, false)                                                     \
    OP(TLOAD, PTOISA_MAT, -1, -1, true, false)                                                     \
    OP(TSTORE, -1, PTOISA_VEC, -1, true, false)                                                    \
    OP(TSTORE, -1, PTOISA_ACC, -1, true, false)                                                    \
    OP(TSTORE, -1, PTOISA_MAT, -1, true, false)                                                    \
    OP(TADD, PTOISA_VEC, PTOISA_VEC, PTOISA_VEC, false, false)                                     \
    OP(TADD, PTOISA_VEC, PTOISA_VEC, PTOISA_VEC, false, false)                                     \
    OP(TEXP, PTOISA_VEC, PTOISA_VEC, -1, false, false)                                             \
    OP(TEXP, PTOISA_VEC, PTOISA_VEC, -1, false, false)                                             \
    OP(TAXPY, PTOISA_VEC, PTOISA_VEC, -1, false, false)                                            \
    OP(TROWSUM, PTOISA_VEC, PTOISA_VEC, -1, false, true)                                           \
    OP(TROWARGMAX, PTOISA_VEC, PTOISA_VEC, -1, false, true)                                        \
    OP(TEXPANDS, PTOISA_VEC, -1, -1, false, false)                                                 \
    OP(TEXPANDS, PTOISA_MAT, -1, -1, false, false)                                                 \
    OP(TCI, PTOISA_VEC, -1, -1, false, false)                                                      \
    OP(TMOV, PTOISA_LEFT, PTOISA_MAT, -1, false, false)                                            \
    OP(TMOV, PTOISA_RIGHT, PTOISA_MAT, -1, false, false)                                           \
    OP(TMOV, PTOISA_BIAS, PTOISA_MAT, -1, false, false)                                            \
    OP(TMOV, PTOISA_SCALING, PTOISA_MAT, -1, false, false)                                         \
    OP(TMOV, PTOISA_MAT, PTOISA_ACC, -1, false, false)                                             \
    OP(TMOV, PTOISA_VEC, PTOISA_ACC, -1, false, false)                                             \
    OP(TMOV, PTOISA_MAT, PTOISA_VEC, -1, false, false)                                             \
    OP(TMATMUL, PTOISA_ACC, PTOISA_LEFT, PTOISA_RIGHT, false, false)                               \
    OP(TMATMUL_ACC, PTOISA_ACC, PTOISA_LEFT, PTOISA_RIGHT, false, false)                           \
    OP(MGATHER, PTOISA_VEC, PTOISA_VEC, -1, true, false)                                           \
    OP(MSCATTER, -1, PTOISA_VEC, PTOISA_VEC, true, false)
// clang-format on

#define RANDOM_OP_ONE(...) +1
#define RANDOM_OP_COUNT    (0 RANDOM_OPS(RANDOM_OP_ONE))

// Appends instructions until there are `count`. Some lists use few of the kinds, so that pipes run
// far ahead of each other.
static inline void random_fill(random_list *r, uint32_t count) {
    while (r->b->list.insn_count < count) {
        int kind = (int)test_random_in(r->random, 0, RANDOM_OP_COUNT - 1);
        if (!(r->kinds >> kind & 1)) {
            continue;
        }
        int n = 0;
#define RANDOM_OP_TRY(op, dst, src0, src1, has_param, has_tmp)                                     \
    if (kind == n++) {                                                                             \
        random_op(r, PTOISA_##op, dst, src0, src1, has_param, has_tmp);                            \
    }
        RANDOM_OPS(RANDOM_OP_TRY)
#undef RANDOM_OP_TRY
    }
}

static inline random_list *random_list_make(built *b, uint64_t *random, uint32_t recent) {
    random_list *r = (random_list *)calloc(1, sizeof *r);
    assert_non_null(r);
    r->b = b;
    r->random = random;
    r->recent = recent;
    r->params = (uint32_t)test_random_in(random, 1, 5);
    r->scale = (uint32_t)test_random_in(random, 1, 8);
    r->kinds = test_random_in(random, 0, 2) ? UINT64_MAX : test_random(random);
    r->kinds |= 1;
    return r;
}

static inline void built_random(built *b, uint64_t *random, uint32_t count, uint32_t recent) {
    random_list *r = random_list_make(b, random, recent);
    random_fill(r, count);
    free(r);
}

// Cuts a random list into halves. What crosses has the valid sizes that both tiles have.
static inline void built_cut(built *b) {
    for (uint64_t i = 0; i < b->list.insn_count; i++) {
        const pwsp_insn *insn = &b->list.insns[i];
        if (insn->op == PTOISA_TMOV) {
            pwsp_list_tile *d = &b->list.tiles[insn->dst[0]];
            const pwsp_list_tile *s = &b->list.tiles[insn->src[0]];
            bool is_lower = s->valid_rows.max < d->valid_rows.max;
            bool is_thinner = s->valid_cols.max < d->valid_cols.max;
            d->valid_rows.max = is_lower ? s->valid_rows.max : d->valid_rows.max;
            d->valid_cols.max = is_thinner ? s->valid_cols.max : d->valid_cols.max;
        }
    }
    built_must(b, pwsp_list_cut(&b->list, &b->machine, NULL, &b->fault));
}

// -- the judge ------------------------------------------------------------------------------------

#define JUDGE_BLOCK   32
#define JUDGE_PARAMS  8
#define JUDGE_HELD_UP 1000000

// One access to one block of 32 bytes, or to a parameter.
typedef struct judge_touch {
    uint32_t insn, block;
    bool is_write;
    uint32_t writes, reads;  // of this block: writes before it; reads since the last of them
} judge_touch;

typedef struct judge_event {
    uint64_t time;
    uint32_t insn;
    bool is_end;
} judge_event;

typedef struct judge {
    const built *b;
    uint32_t count;        // of instructions
    judge_touch *touches;  // by instruction
    uint32_t *starts;      // [insn]
    uint32_t touch_count, touch_capacity, block_count;
    uint32_t *partner;  // [insn] a wait's set; a set's wait before it + 1, or 0
    uint64_t *begin, *end;
    judge_event *events;
    uint32_t *writes, *reads;  // [block] done so far; reads since the last write
    int32_t *open;             // [block] accesses in progress; a write counts 1000
    const char *what;          // is wrong
} judge;

static inline void judge_touch_add(judge *j, uint32_t insn, uint32_t block, bool is_write) {
    for (uint32_t i = j->starts[insn]; i < j->touch_count; i++) {
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
    judge_touch touch = {insn, block, is_write, 0, 0};
    j->touches[j->touch_count++] = touch;
}

// Notes the blocks of a tile. owner[block] is who wrote it in the order of the list, and image that
// of each root if it had memory of its own: both must be the same for what is read.
static inline void judge_tile(judge *j, uint32_t insn, uint32_t tile, bool is_write,
                              uint32_t *owner, uint32_t **image) {
    if (!tile) {
        return;
    }
    const pwsp_list *list = &j->b->list;
    const pwsp_list_tile *t = &list->tiles[tile];
    uint32_t base = JUDGE_PARAMS;
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
        if (is_write) {
            owner[block] = *own = insn + 1;
        } else if (owner[block] != *own) {
            j->what = "a tile's bytes are lost while it lives";
        }
        judge_touch_add(j, insn, block, is_write);
    }
}

// Lists all accesses of an instruction.
static inline void judge_insn(judge *j, uint32_t i, uint32_t *owner, uint32_t **image) {
    const pwsp_insn *insn = &j->b->list.insns[i];
    j->starts[i] = j->touch_count;
    bool is_sync = insn->op == PTOISA_SET_FLAG || insn->op == PTOISA_WAIT_FLAG ||
                   insn->op == PTOISA_PIPE_BARRIER;
    if (is_sync) {
        return;
    }
    for (int k = 0; k < PWSP_INSN_SRC_MAX; k++) {
        judge_tile(j, i, insn->src[k], false, owner, image);
    }
    if (insn->is_dst_read) {
        judge_tile(j, i, insn->dst[0], false, owner, image);
    }
    judge_tile(j, i, insn->dst[0], true, owner, image);
    judge_tile(j, i, insn->dst[1], true, owner, image);
    judge_tile(j, i, insn->tmp, true, owner, image);
    if (insn->param) {
        assert_true(insn->param <= JUDGE_PARAMS);
        judge_touch_add(j, i, insn->param - 1u,
                        insn->op == PTOISA_TSTORE || insn->op == PTOISA_MSCATTER);
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

static inline void judge_init(judge *j, const built *b) {
    memset(j, 0, sizeof *j);
    j->b = b;
    j->count = (uint32_t)b->list.insn_count;
    j->block_count = JUDGE_PARAMS;
    for (int memory = 0; memory < PTOISA_MEMORY_COUNT; memory++) {
        j->block_count += b->machine.memory_size[memory] / JUDGE_BLOCK;
    }
    size_t count = j->count + 1;
    j->starts = (uint32_t *)calloc(count, sizeof *j->starts);
    j->partner = (uint32_t *)calloc(count, sizeof *j->partner);
    j->begin = (uint64_t *)calloc(count, sizeof *j->begin);
    j->end = (uint64_t *)calloc(count, sizeof *j->end);
    j->events = (judge_event *)calloc(2 * count, sizeof *j->events);
    j->writes = (uint32_t *)calloc(j->block_count, sizeof *j->writes);
    j->reads = (uint32_t *)calloc(j->block_count, sizeof *j->reads);
    j->open = (int32_t *)calloc(j->block_count, sizeof *j->open);
    uint32_t *owner = (uint32_t *)calloc(j->block_count, sizeof *owner);
    uint32_t **image = (uint32_t **)calloc(b->list.tile_count + 1, sizeof *image);
    for (uint64_t t = 1; t < b->list.tile_count; t++) {
        uint64_t bytes = pwsp_list_tile_bytes(&b->list.tiles[t]);
        image[t] = (uint32_t *)calloc(bytes / JUDGE_BLOCK + 1, sizeof **image);
    }
    for (uint32_t i = 0; i < j->count; i++) {
        judge_insn(j, i, owner, image);
    }
    j->starts[j->count] = j->touch_count;
    for (uint64_t t = 1; t < b->list.tile_count; t++) {
        free(image[t]);
    }
    free(image);
    free(owner);
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

// Gives all instructions times; `held` takes very long. Says when S
// is done, of both cores.
static inline void judge_times(judge *j, uint64_t *random, uint32_t spread, uint32_t held,
                               uint64_t *out_finish) {
    uint64_t of_both[2][2][PTOISA_PIPE_COUNT] = {0};
    for (uint32_t i = 0; i < j->count; i++) {
        const pwsp_insn *insn = &j->b->list.insns[i];
        uint64_t *ready = of_both[insn->side == PWSP_SIDE_VECTOR][0];
        uint64_t *done = of_both[insn->side == PWSP_SIDE_VECTOR][1];
        uint64_t gap = 1 + test_random(random) % spread;
        uint64_t length = i == held ? JUDGE_HELD_UP : 1 + test_random(random) % spread;
        if (insn->op == PTOISA_SET_FLAG) {
            j->begin[i] = j->end[i] = done[insn->src_pipe] + gap;
        } else if (insn->op == PTOISA_WAIT_FLAG) {
            uint64_t at = judge_max(ready[insn->dst_pipe], j->end[j->partner[i]]) + gap;
            j->begin[i] = j->end[i] = at + (i == held ? JUDGE_HELD_UP : 0);
            ready[insn->dst_pipe] = j->end[i];
            done[insn->dst_pipe] = judge_max(done[insn->dst_pipe], j->end[i]);
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
            uint32_t other = pwsp_insn_is_fifo(insn) ? j->partner[i] : 0;
            j->begin[i] = judge_max(ready[pipe], other ? j->end[other - 1] : 0) + gap;
            j->end[i] = j->begin[i] + length;
            bool is_slow = j->b->machine.family == PTOISA_A2A3 && pipe == PTOISA_PIPE_V;
            done[pipe] = judge_max(done[pipe], j->end[i]);
            ready[pipe] = is_slow ? j->begin[i] : j->end[i];
        }
    }
    for (int side = 0; side < 2; side++) {
        uint64_t *ready = of_both[side][0], *done = of_both[side][1];
        out_finish[side] = judge_max(ready[PTOISA_PIPE_S], done[PTOISA_PIPE_S]);
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

// Begins or ends an instruction's accesses.
static inline void judge_replay(judge *j, uint32_t insn, bool is_end) {
    for (uint32_t i = j->starts[insn]; i < j->starts[insn + 1]; i++) {
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
    uint64_t finish[2];
    judge_times(j, random, spread, held, finish);
    uint32_t event_count = 0;
    memset(j->writes, 0, j->block_count * sizeof *j->writes);
    memset(j->reads, 0, j->block_count * sizeof *j->reads);
    memset(j->open, 0, j->block_count * sizeof *j->open);
    for (uint32_t i = 0; i < j->count; i++) {
        const pwsp_insn *insn = &j->b->list.insns[i];
        if (insn->op == PTOISA_SET_FLAG && j->partner[i] &&
            j->begin[i] <= j->end[j->partner[i] - 1]) {
            j->what = "a flag is set before its last wait";
        }
        bool is_store = insn->op == PTOISA_TSTORE || insn->op == PTOISA_MSCATTER;
        if (is_store && j->end[i] >= finish[insn->side == PWSP_SIDE_VECTOR]) {
            j->what = "S ends before a store";
        }
        if (j->starts[i] < j->starts[i + 1]) {
            judge_event begin = {j->begin[i], i, false}, end = {j->end[i], i, true};
            j->events[event_count++] = begin;
            j->events[event_count++] = end;
        }
    }
    qsort(j->events, event_count, sizeof *j->events, judge_compare);
    for (uint32_t i = 0; i < event_count && !j->what; i++) {
        judge_replay(j, j->events[i].insn, j->events[i].is_end);
    }
    return !j->what;
}

// Does the list stand the test of `rounds` random runs, and of one with each instruction held up?
static inline bool judge_list(const built *b, uint64_t *random, uint32_t rounds,
                              const char **out_what) {
    judge j;
    judge_init(&j, b);
    bool is_good = !j.what;
    for (uint32_t i = 0; i < j.count && is_good; i++) {
        is_good = judge_run(&j, random, 1, i);
    }
    for (uint32_t i = 0; i < rounds && is_good; i++) {
        uint32_t spread = (uint32_t)1 << test_random_in(random, 0, 10);
        is_good = judge_run(&j, random, spread, (uint32_t)test_random_in(random, 0, j.count));
    }
    *out_what = j.what;
    judge_free(&j);
    return is_good;
}

#endif
