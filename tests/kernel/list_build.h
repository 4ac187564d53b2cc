// For tests of the passes over lists of instructions: building lists by hand and at random.

#ifndef PTOWSP_LIST_BUILD_H
#define PTOWSP_LIST_BUILD_H

#include "src/kernel/cut.h"
#include "src/kernel/memory.h"
#include "src/kernel/proof.h"
#include "src/kernel/waits.h"

#include "test.h"

enum { BUILT_NAMES = 32, BUILT_WORDS = 8 };

typedef struct built {
    test_memory memory;
    char names[BUILT_NAMES][12];  // of tiles of texts
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

// Leaves no room in the list's arena, and refuses the n-th allocation from now on (0: none).
static inline void built_refuse(built *b, size_t n) {
    b->memory.refuse_at = b->memory.allocations + 1;
    while (pwsp_arena_take(&b->list.arena, 8, 8)) {
    }
    b->memory.allocations = 0;
    b->memory.refuse_at = n;
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

// -- lists as text --------------------------------------------------------------------------------
//
//      UB 4x8: x y@128; view top: x 3 1; x = TLOAD 0; y = TEXP x; z = TROWSUM x tmp t; TSTORE 1 y row 4
//      SET MTE2 V 0; WAIT MTE2 V 0; BARRIER V
//
// Tiles of a memory and a size, at 0 or at an address; rows [3, 4) of x; instructions, with the parameter of
// those that have one. `+=` reads its destination. In lists of two halves an instruction is of the half that
// its tile is of; flags and barriers end with `vector` or `cube`.

static inline uint32_t built_id(const built *b, const char *name) {
    for (uint32_t i = 1; i < BUILT_NAMES; i++) {
        if (strcmp(b->names[i], name) == 0) {
            return i;
        }
    }
    fail_msg("there is no tile %s", name);
    return 0;
}

// "UB 4x8: x y@128" or "view top: x 3 1".
static inline void built_declare(built *b, const char *text) {
    static const char *const memories[] = {"UB", "L1", "L0A", "L0B", "L0C"};
    char word[12], name[12];
    unsigned rows, cols, address, memory = 0;
    int length;
    if (sscanf(text, " view %11[^:]: %11s %u %u%n", name, word, &cols, &rows, &length) == 4) {
        assert_string_equal(text + length, "");
        strcpy(b->names[built_view(b, built_id(b, word), cols, rows)], name);
        return;
    }
    assert_int_equal(sscanf(text, " %11s %ux%u:%n", word, &rows, &cols, &length), 3);
    while (strcmp(memories[memory], word) != 0) {
        assert_true(++memory < COUNT_OF(memories));
    }
    for (text += length; sscanf(text, " %11[^ @]%n", name, &length) == 1; text += length) {
        const uint32_t tile = built_tile(b, (ptoisa_memory)memory, rows, cols);
        strcpy(b->names[tile], name);
        if (text[length] == '@') {
            int behind = 0;
            assert_int_equal(sscanf(text + length, "@%u%n", &address, &behind), 1);
            b->list.tiles[tile].address = address;
            length += behind;
            assert_non_null(strchr(" ", text[length]));
        }
    }
    assert_string_equal(text, "");
}

static inline uint8_t built_pipe(const char *name) {
    uint8_t pipe = 0;
    while (strcmp(ptoisa_pipe_name((ptoisa_pipe)pipe), name) != 0) {
        assert_true(++pipe <= PTOISA_PIPE_ALL);
    }
    return pipe;
}

// A number that is all of a word.
static inline uint32_t built_number(const char *word) {
    char *end;
    const unsigned long number = strtoul(word, &end, 10);
    assert_true(end > word && *end == '\0');
    return (uint32_t)number;
}

static inline void built_order(built *b, char words[BUILT_WORDS][16], int count) {
    const bool is_flag = words[0][0] != 'B', is_mixed = b->list.is_mixed;
    assert_int_equal(count, (is_flag ? 4 : 2) + is_mixed);
    built_sync(b,
               !is_flag             ? PTOISA_PIPE_BARRIER
               : words[0][0] == 'S' ? PTOISA_SET_FLAG
                                    : PTOISA_WAIT_FLAG,
               built_pipe(words[1]), is_flag ? built_pipe(words[2]) : 0,
               is_flag ? built_number(words[3]) : 0);
    if (is_mixed) {
        const bool is_vector = strcmp(words[count - 1], "vector") == 0;
        assert_true(is_vector || strcmp(words[count - 1], "cube") == 0);
        b->list.insns[b->list.insn_count - 1].side = is_vector ? PWSP_SIDE_VECTOR : PWSP_SIDE_CUBE;
    }
}

// An instruction, flag, barrier or mark by its name; PWSP_INSN_OP_COUNT: there is none.
static inline uint32_t built_find_op(const char *name) {
    static const struct {
        const char *name;
        uint32_t op;
    } others[] = {{"none", PTOISA_NOP},       {"SET", PTOISA_SET_FLAG},
                  {"WAIT", PTOISA_WAIT_FLAG}, {"BARRIER", PTOISA_PIPE_BARRIER},
                  {"TPUSH", PWSP_INSN_TPUSH}, {"TPOP", PWSP_INSN_TPOP},
                  {"LOOP", PWSP_INSN_LOOP},   {"END", PWSP_INSN_END}};
    uint32_t op = 1;
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        if (strcmp(others[i].name, name) == 0) {
            return others[i].op;
        }
    }
    while (op < PTOISA_OP_COUNT && strcmp(ptoisa_op_name((ptoisa_op)op), name) != 0) {
        op++;
    }
    return op < PTOISA_OP_COUNT ? op : PWSP_INSN_OP_COUNT;
}

// "z = TADD x y", "TSTORE 1 y", "TPUSH x".
static inline void built_operate(built *b, char words[BUILT_WORDS][16], int count) {
    const bool is_read = strcmp(words[1], "+=") == 0, has_dst = is_read || words[1][0] == '=';
    const uint32_t op = built_find_op(words[has_dst ? 2 : 0]);
    uint32_t src_count = 0;
    assert_true(op != PWSP_INSN_OP_COUNT);
    pwsp_insn *insn = built_op(b, (ptoisa_op)op, has_dst ? built_id(b, words[0]) : 0, 0, 0);
    insn->is_dst_read = is_read;
    for (int i = has_dst ? 3 : 1; i < count; i++) {
        if (strcmp(words[i], "tmp") == 0) {
            insn->tmp = built_id(b, words[++i]);
        } else if (strcmp(words[i], "row") == 0) {
            insn->row = built_number(words[++i]);
        } else if (strcmp(words[i], "row_loop") == 0) {
            insn->row_loop = (uint8_t)built_number(words[++i]);
        } else if (strchr("0123456789", words[i][0])) {
            insn->param = (uint16_t)(built_number(words[i]) + 1);
        } else {
            assert_true(src_count < COUNT_OF(insn->src));
            insn->src[src_count++] = built_id(b, words[i]);
        }
    }
    if (b->list.is_mixed) {
        const uint32_t tile = insn->dst[0] ? insn->dst[0] : insn->src[0];
        const bool is_vector = b->list.tiles[tile].memory == PTOISA_VEC;
        insn->side = is_vector ? PWSP_SIDE_VECTOR : PWSP_SIDE_CUBE;
        if (pwsp_insn_is_fifo(insn)) {
            insn->mode =
                is_vector == (op == PWSP_INSN_TPUSH) ? PWSP_FIFO_TO_CUBE : PWSP_FIFO_TO_VECTOR;
        }
    }
}

static inline void built_mark(built *b, uint32_t op, uint32_t loop) {
    pwsp_insn *insn = pwsp_list_add(&b->list, PTOISA_NOP);
    assert_non_null(insn);
    insn->op = (uint8_t)op;
    insn->loop = (uint8_t)loop;
}

// Begins a loop, and returns its number.
static inline uint32_t built_loop(built *b, uint32_t parent) {
    uint32_t loop = ++b->list.loop_count;
    b->list.loops[loop].parent = parent;
    b->list.loops[loop].step = 1;
    built_mark(b, PWSP_INSN_LOOP, loop);
    return loop;
}

static inline void built_text(built *b, const char *text) {
    char line[128];
    for (int length; sscanf(text, " %127[^;]%n", line, &length) == 1; text += *text == ';') {
        char words[BUILT_WORDS][16] = {""}, more[2];
        const int count =
            sscanf(line, "%15s %15s %15s %15s %15s %15s %15s %15s %1s", words[0], words[1],
                   words[2], words[3], words[4], words[5], words[6], words[7], more);
        assert_true(count <= BUILT_WORDS || strchr(line, ':'));
        text += length;
        if (strchr(line, ':')) {
            built_declare(b, line);
        } else if (!strcmp(words[0], "SET") || !strcmp(words[0], "WAIT") ||
                   !strcmp(words[0], "BARRIER")) {
            built_order(b, words, count);
        } else if (!strcmp(words[0], "LOOP") || !strcmp(words[0], "END")) {
            assert_int_equal(count, 1);
            words[0][0] == 'L' ? (void)built_loop(b, 0) : built_mark(b, PWSP_INSN_END, 1);
        } else {
            built_operate(b, words, count);
        }
    }
}

// Lives and places of tiles and how much of each memory is used: "x 0-1 at 0, y unused; UB 128". A view has
// a place alone.
static inline void built_places(const built *b, const char *expected) {
    char text[512] = "";
    size_t at = 0;
    for (uint32_t i = 1; i < b->list.tile_count; i++) {
        const pwsp_list_tile *tile = &b->list.tiles[i];
        char life[32] = "", place[32] = " unused";
        if (tile->first <= tile->last) {
            snprintf(life, sizeof life, " %u-%u", tile->first, tile->last);
            snprintf(place, sizeof place, " at %u", pwsp_list_tile_address(&b->list, i));
        }
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s%s%s", i > 1 ? ", " : "",
                               b->names[i], tile->root == i ? life : "", place);
    }
    for (int m = 0; m < PTOISA_MEMORY_COUNT; m++) {
        if (b->list.used[m]) {
            at += (size_t)snprintf(text + at, sizeof text - at, "; %s %u",
                                   ptoisa_memory_name((ptoisa_memory)m), b->list.used[m]);
        }
    }
    assert_string_equal(text, expected);
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

// A list that tests change and put back: insns, tiles and all else of it.
typedef struct built_saved {
    pwsp_list list;
    pwsp_insn *insns;
    pwsp_list_tile *tiles;
    ptoisa_machine machine;
} built_saved;

static inline void built_saved_free(built_saved *s) {
    free(s->insns);
    free(s->tiles);
}

static inline void built_save(built_saved *s, const built *b) {
    const pwsp_list *list = &b->list;
    s->list = *list;
    s->insns = (pwsp_insn *)malloc((size_t)(list->insn_count + 1) * sizeof *s->insns);
    s->tiles = (pwsp_list_tile *)malloc((size_t)(list->tile_count + 1) * sizeof *s->tiles);
    s->machine = b->machine;
    assert_true(s->insns && s->tiles);
    if (list->insn_count) {
        memcpy(s->insns, list->insns, (size_t)list->insn_count * sizeof *s->insns);
    }
    if (list->tile_count) {
        memcpy(s->tiles, list->tiles, (size_t)list->tile_count * sizeof *s->tiles);
    }
}

static inline void built_restore(const built_saved *s, built *b) {
    const pwsp_arena arena = b->list.arena;
    b->list = s->list;
    b->list.arena = arena;
    b->machine = s->machine;
    if (s->list.insn_count) {
        memcpy(b->list.insns, s->insns, (size_t)s->list.insn_count * sizeof *s->insns);
    }
    if (s->list.tile_count) {
        memcpy(b->list.tiles, s->tiles, (size_t)s->list.tile_count * sizeof *s->tiles);
    }
}

static inline void built_remove(built *b, uint64_t at) {
    memmove(&b->list.insns[at], &b->list.insns[at + 1],
            (size_t)(b->list.insn_count - at - 1) * sizeof b->list.insns[0]);
    b->list.insn_count--;
}

// Moves an instruction so many places later, or earlier, as far as the list goes.
static inline void built_move(built *b, uint64_t from, int64_t by) {
    pwsp_insn *insns = b->list.insns;
    for (; by > 0 ? from + 1 < b->list.insn_count : by < 0 && from > 0; by += by < 0 ? 1 : -1) {
        const uint64_t to = by > 0 ? from + 1 : from - 1;
        const pwsp_insn moved = insns[from];
        insns[from] = insns[to];
        insns[to] = moved;
        from = to;
    }
}

static inline bool built_is_sync(const pwsp_insn *insn) {
    return insn->op == PTOISA_SET_FLAG || insn->op == PTOISA_WAIT_FLAG ||
           insn->op == PTOISA_PIPE_BARRIER;
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
    bool is_by_row;  // all tiles are 16 x 16, and vector cores can share their rows
} random_list;

static inline uint32_t random_new_tile(random_list *r, ptoisa_memory memory) {
    uint32_t k = (uint32_t)test_random_in(r->random, 1, r->scale);
    uint32_t rows = (uint32_t)test_random_in(r->random, 1, 4);
    if (r->is_by_row) {
        return built_tile(r->b, memory, 16, 16);
    }
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
    bool is_whole = r->is_by_row || r->b->list.tiles[root].memory != PTOISA_VEC ||
                    test_random_in(r->random, 0, 2);
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

// Each row of what it writes follows from that row of what it reads, or it is the cube core's.
static inline bool random_is_by_row(ptoisa_op op, int dst) {
    return op != PTOISA_TROWSUM && op != PTOISA_TROWARGMAX && op != PTOISA_TCI &&
           op != PTOISA_MGATHER && op != PTOISA_MSCATTER && dst != PTOISA_BIAS &&
           dst != PTOISA_SCALING;
}

// A list of such instructions, which has both halves.
static inline void built_random_rows(built *b, uint64_t *random, uint32_t count, uint32_t recent) {
    random_list *r = random_list_make(b, random, recent);
    uint64_t kinds = 0, bit = 1;
#define RANDOM_OP_KIND(op, dst, src0, src1, has_param, has_tmp)                                    \
    kinds |= random_is_by_row(PTOISA_##op, dst) ? bit : 0;                                         \
    bit <<= 1;
    RANDOM_OPS(RANDOM_OP_KIND)
#undef RANDOM_OP_KIND
    r->is_by_row = true;
    r->kinds = kinds;
    random_op(r, PTOISA_TLOAD, PTOISA_MAT, -1, -1, true, false);
    random_op(r, PTOISA_TMOV, PTOISA_LEFT, PTOISA_MAT, -1, false, false);
    random_op(r, PTOISA_TMOV, PTOISA_RIGHT, PTOISA_MAT, -1, false, false);
    random_op(r, PTOISA_TMATMUL, PTOISA_ACC, PTOISA_LEFT, PTOISA_RIGHT, false, false);
    random_op(r, PTOISA_TMOV, PTOISA_VEC, PTOISA_ACC, -1, false, false);
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

#endif
