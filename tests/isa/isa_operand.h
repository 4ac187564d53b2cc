// Operands of instructions as text, and files with lines of them.
//
//      f32 4x8                   a tile of this valid size in UB, row-major
//      f16 15x16 of 16x16 L1     of this allocated size, in another memory, in the layout that it has there
//      f32 8x1 col, f16 16x16 L0A NZ, f32 8x16 zero, f32 4x8 at0
//                                another layout; a pad value; at the address of operand 0
//      f16 16x64B                columns as bytes: 32
//      f32 4x8 gm times 2        a window; its dimension 2
//      -                         none

#ifndef ISA_OPERAND_H
#define ISA_OPERAND_H

#include "ptoisa_shim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/lines.h"

typedef struct operand_of {
    ptoisa_tile tile;  // without memory; of a window the type and the size
    bool is_none, is_window;
    uint32_t times;
    int at;  // the operand whose address it has; -1: its own
} operand_of;

// The layout of matrices in a memory.
static inline ptoisa_layout operand_layout(ptoisa_memory memory, ptoisa_family family) {
    return memory == PTOISA_RIGHT                           ? PTOISA_ZN
           : memory == PTOISA_LEFT && family == PTOISA_A2A3 ? PTOISA_ZZ
                                                            : PTOISA_NZ;
}

// The number of a word of a list that ends with NULL; -1: there is none.
static inline int operand_find(const char *const *words, const char *word) {
    int i = 0;
    while (words[i] && strcmp(words[i], word) != 0) {
        i++;
    }
    return words[i] ? i : -1;
}

static inline operand_of operand_read(const char *text, ptoisa_family family) {
    static const char *const memories[] = {"UB", "L1", "L0A", "L0B", "L0C", "bias", "fix", NULL};
    static const char *const layouts[] = {"row", "col", "NZ", "ZN", "ZZ", NULL};
    static const char *const pads[] = {"zero", "max", "min", NULL};
    static const uint8_t layout_of[] = {PTOISA_ROW_MAJOR, PTOISA_COL_MAJOR, PTOISA_NZ, PTOISA_ZN,
                                        PTOISA_ZZ};
    operand_of o = {.times = 1, .at = -1};
    char type[8], word[8];
    unsigned valid_rows, valid_cols, rows, cols, dtype = 0;
    int length, layout = -1, found, number = 0;
    o.is_none = text[strspn(text, " ")] == '-';
    if (o.is_none) {
        assert_string_equal(text + strspn(text, " "), "-");
        return o;
    }
    assert_int_equal(sscanf(text, " %7s %ux%u%n", type, &valid_rows, &valid_cols, &length), 3);
    while (strcmp(ptoisa_dtype_name((ptoisa_dtype)dtype), type) != 0) {
        assert_true(++dtype < PTOISA_DTYPE_COUNT);
    }
    if (text[length] == 'B') {
        valid_cols /= ptoisa_dtype_size((ptoisa_dtype)dtype);
        length++;
    }
    rows = valid_rows, cols = valid_cols;
    text += length;
    const bool is_partial = sscanf(text, " of %ux%u%n", &rows, &cols, &length) == 2;
    text += is_partial ? length : 0;
    o.tile = ptoisa_tile_vec(NULL, (ptoisa_dtype)dtype, rows, cols);
    o.tile = is_partial ? ptoisa_tile_valid(o.tile, valid_rows, valid_cols) : o.tile;
    for (; sscanf(text, " %7s%n", word, &length) == 1; text += length) {
        if ((found = operand_find(memories, word)) >= 0) {
            o.tile.memory = (uint8_t)found;
        } else if ((found = operand_find(layouts, word)) >= 0) {
            layout = layout_of[found];
        } else if (strcmp(word, "gm") == 0) {
            o.is_window = true;
        } else if (strcmp(word, "times") == 0) {
            assert_int_equal(sscanf(text + length, " %u%n", &o.times, &number), 1);
            length += number;
        } else if (sscanf(word, "at%d%n", &o.at, &number) == 1 && !word[number]) {
            assert_true(o.at >= 0);
        } else if ((found = operand_find(pads, word)) >= 0) {
            o.tile.pad = (uint8_t)(PTOISA_PAD_ZERO + found);
        } else {
            fail_msg("there is no word %s", word);
        }
    }
    if (layout < 0 && o.tile.memory >= PTOISA_MAT && o.tile.memory <= PTOISA_ACC) {
        layout = (int)operand_layout((ptoisa_memory)o.tile.memory, family);
    }
    o.tile.layout = layout < 0 ? o.tile.layout : (uint8_t)layout;
    return o;
}

// The next of operands with commas between them, in `operand`; false after the last one.
static inline bool operand_next(const char **at, char text[64]) {
    int length = 0;
    if (sscanf(*at, " %63[^,]%n", text, &length) != 1) {
        return false;
    }
    *at += length;
    *at += **at == ',';
    return true;
}

// Calls fn with each line of a file and what stands after " => ", or NULL.
typedef struct operand_file {
    void (*fn)(char *line, const char *result, void *user);
    void *user;
    uint32_t count;
} operand_file;

static inline void operand_line(char *line, int number, void *user) {
    operand_file *file = (operand_file *)user;
    char *result = strstr(line, " => ");
    (void)number;
    *(result ? result : line + strlen(line)) = 0;
    file->fn(line, result ? result + strlen(" => ") : NULL, file->user);
    file->count++;
}

static inline void operand_lines(const char *path, uint32_t least,
                                 void (*fn)(char *line, const char *result, void *user),
                                 void *user) {
    operand_file file = {fn, user, 0};
    lines_each(path, operand_line, &file);
    assert_true(file.count >= least);
}

#endif
