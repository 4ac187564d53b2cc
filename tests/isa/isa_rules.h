// What the tests of single instructions' rules share: tiles with memory of their own, and what a refused
// call leaves behind.

#ifndef ISA_RULES_H
#define ISA_RULES_H

#include "isa_test.h"

// Tiles with memory of their own, but for the sizes that none has: those are of a dry core.
enum { ROOM = 1 << 16, ROOMS = 8 };

typedef struct rule_bench {
    test_bench bench;
    ptoisa_core *core;
    uint32_t used;
} rule_bench;

static rule_bench rules_here;

#define RULE_TEST(name) TEST_OF(name, rule_bench *b, &rules_here)

static _Alignas(64) uint8_t rooms[ROOMS][ROOM];

static inline ptoisa_tile tile_in(rule_bench *b, ptoisa_memory memory, ptoisa_layout layout,
                                  ptoisa_dtype dtype, uint32_t rows, uint32_t cols) {
    assert_true(b->core->is_dry || (size_t)rows * cols * 8 <= ROOM);
    return ptoisa_tile_make(rooms[b->used++ % ROOMS], dtype, memory, layout, rows, cols);
}

static inline ptoisa_tile vec(rule_bench *b, ptoisa_dtype dtype, uint32_t rows, uint32_t cols) {
    return tile_in(b, PTOISA_VEC, PTOISA_ROW_MAJOR, dtype, rows, cols);
}

static inline ptoisa_tile boxed(rule_bench *b, ptoisa_memory memory, ptoisa_dtype dtype,
                                uint32_t rows, uint32_t cols) {
    ptoisa_layout layout = memory == PTOISA_RIGHT                  ? PTOISA_ZN
                           : memory != PTOISA_LEFT                 ? PTOISA_NZ
                           : b->core->machine->family == PTOISA_A5 ? PTOISA_NZ
                                                                   : PTOISA_ZZ;
    return tile_in(b, memory, layout, dtype, rows, cols);
}

static inline ptoisa_global window(ptoisa_dtype dtype, int64_t rows, int64_t cols) {
    return ptoisa_global_make(rooms[ROOMS - 1], dtype, rows, cols, cols, 1);
}

static inline void begin(rule_bench *b, ptoisa_family family) {
    test_begin(&b->bench, family, "rules");
    b->core = &b->bench.core;
    b->used = 0;
}

// The last call was refused in these words, and took no time.
static inline void refused(rule_bench *b, const char *text) {
    if (b->bench.fault_count != 1 || strcmp(b->bench.fault, text) != 0) {
        fail_msg("%u faults, \"%s\", expected \"%s\"", b->bench.fault_count, b->bench.fault, text);
    }
    assert_true(b->core->sum == 0);
    b->bench.fault_count = 0;
}

static inline void taken(rule_bench *b) {
    if (b->bench.fault_count != 0) {
        fail_msg("refused: \"%s\"", b->bench.fault);
    }
    b->core->sum = 0;
}

// A call that is refused in these words, and one that is taken.
#define REFUSED(text, call) ((call), refused(b, text))
#define TAKEN(call)         ((call), taken(b))

#endif
