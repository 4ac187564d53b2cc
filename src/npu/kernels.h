// A tile kernel during translation to C++: the state that its parts share.
//
//      kernels.c         the kernels of a program, and the file of each
//      kernel_parts.c    the parts of a kernel: its tiles, their sizes and addresses, windows
//      kernel_declare.c  these as text
//      kernel_insns.c    its instructions as calls
//      kernel_halves.c   the two functions of a mixed kernel
//      native.c          kernels that are C functions
//      own.c             kernels that are PTO-ISA sources
//      launches.c        where these launch kernels, which is not C++
//      npu_dispatch.c    aicore/dispatch.cpp
//
// Tiles. A kernel's list has a tile for each value, and many are the same bytes with the same view:
// these become one variable, with the name of the first. A tile is named after the parameter that
// is loaded into it or stored from it, else t1, t2, ... (in UB), l1_1, left_1, acc_1, ... Scratch
// is one variable wherever it has the same view.
//
// Cube and vector cores. A kernel with matrix products that also works in UB runs on cores of both
// kinds. One that is cut (mixed) becomes two functions, each with its own instructions, tiles, addresses
// and windows. On A5 it is one function, where each instruction belongs to one half, and transfers
// between the halves to both.

#ifndef NPU_KERNELS_H
#define NPU_KERNELS_H

#include "../base/number.h"
#include "npu.h"

#include <stdio.h>

#define NPU_LOCAL_MAX (NPU_NAME_MAX + 32)
#define NPU_SIZE_TEXT_MAX                                                                          \
    (2 * NPU_LOCAL_MAX + 32)  // of a size: "64", "x_rows", the smaller of two, or a core's part

// A size with a name in the kernel: int x_rows = wsp::rows(task, 0).
typedef struct npu_size {
    ptowsp_extent extent;
    char name[NPU_LOCAL_MAX];
} npu_size;

typedef struct npu_tile {
    ptowsp_tile_object object;
    bool is_used;
    bool is_scratch;   // nothing else
    uint32_t first;    // the tile whose variable this is: the first identical one
    uint32_t next;     // the next tile with a variable and the same root; 0: none
    uint32_t last;     // of a root: the last of these
    uint32_t address;  // the tile whose constant holds its address
    // Of a root in L1: the parameter, + 1, that it is loaded from, if it goes to L0B alone.
    uint32_t right_param;
    bool is_right_not;
    char name[NPU_LOCAL_MAX];
} npu_tile;

// A part of a parameter in global memory, as an instruction moves it.
typedef struct npu_window {
    uint32_t param, row, col;
    uint32_t row_loop, col_loop;  // whose index is added; 0: none
    uint32_t loop;                // in whose body it is declared; 0: at the beginning
    char rows[NPU_SIZE_TEXT_MAX], cols[NPU_SIZE_TEXT_MAX];
    bool is_shared;  // these are the rows of a vector core, and so is the first
    bool is_column;
    char name[NPU_LOCAL_MAX];
} npu_window;

// A tile with other valid sizes than its own: the part that the parameter fills, or that an
// instruction computes.
typedef struct npu_clip {
    uint32_t tile;
    uint32_t loop;  // in whose body it is declared
    char rows[NPU_SIZE_TEXT_MAX], cols[NPU_SIZE_TEXT_MAX];
    char name[NPU_LOCAL_MAX];
} npu_clip;

typedef enum npu_half {
    NPU_HALF_ANY = 0,  // kernels of one kind of core
    NPU_HALF_CUBE,
    NPU_HALF_VECTOR,
    NPU_HALF_SECOND,   // the second vector core, if it shares no rows: it only passes the FIFOs
    NPU_HALF_BOTH,     // a move between the halves
    NPU_HALF_BETWEEN,  // flags around such a move: only where one core is both
} npu_half;

typedef struct npu_kernel {
    npu_emitter *emitter;
    uint32_t kernel;  // its index
    const ptowsp_kernel_info *info;
    char params[PTOWSP_TASK_TILE_MAX][NPU_LOCAL_MAX];
    char scalars[PTOWSP_TASK_SCALAR_MAX][NPU_LOCAL_MAX];
    bool is_mixed;
    npu_half half;  // of a kernel that is cut: whose function is being written; ANY: its entry
    bool is_out_of_memory;
    npu_tile *tiles;            // [info.tile_object_count]
    ptowsp_size_check *checks;  // [info->check_count], with extents in normal form
    npu_size *sizes;
    npu_window *windows;
    npu_clip *clips;
    uint32_t size_count, size_capacity;
    uint32_t window_count, window_capacity;
    uint32_t clip_count, clip_capacity;
    uint32_t loop, indent;                // of the statement being written
    size_t loop_at[PTOWSP_LOOP_MAX + 1];  // where in the body's text a loop's declarations go
    bool is_scalar_used[PTOWSP_TASK_SCALAR_MAX];
    bool is_dense[PTOWSP_TASK_TILE_MAX][2];  // a window of it is by rows, by columns
    bool is_right[PTOWSP_TASK_TILE_MAX];     // a window of it is of a right factor
    uint32_t column_rows, zero_bytes;        // the most of scratch for columns, and of zeros in L1
    ptowsp_dtype zero_dtype;                 // of the factors that take the most zeros
    uint32_t ends[PTOWSP_MEMORY_COUNT];      // of the tiles in a memory
    bool has_lists;                          // a merge of lists, which reports how many it took
    uint32_t crossings;
    const char *window, *window_tile;  // of the instruction that is being written
    uint32_t type_of;  // the tile whose type all of its operands have; 0: they need not
} npu_kernel;

// A lexer's state in a source: the open quotes and brackets.
typedef struct npu_lexer {
    char quote;  // '"' or '\'', or 0
    bool is_escaped;
    bool is_line_comment, is_block_comment;
    uint32_t parens;
    uint32_t braces, initialisers;  // of the braces, the innermost ones that are initialisers
    char last;                      // the last non-space outside of quotes and comments
} npu_lexer;

// -- kernel_parts.c -------------------------------------------------------------------------------

// Collects all declarations of a kernel. False when memory is out.
NPU_INTERNAL bool npu_kernel_begin(npu_kernel *k, npu_emitter *emitter, uint32_t kernel);
NPU_INTERNAL void npu_kernel_end(npu_kernel *k);

// Is an extent the size of its parameter, as the task has it? And the size of that parameter.
NPU_INTERNAL bool npu_extent_is_plain(const npu_kernel *k, const ptowsp_extent *extent);
NPU_INTERNAL int64_t npu_param_size(const npu_kernel *k, const ptowsp_extent *extent);

// Begins the function of a half, still without sizes, windows and scalars. ANY: the entry.
NPU_INTERNAL void npu_kernel_begin_half(npu_kernel *k, npu_half half);

// Is a memory one that the function has, and a tile one whose rows vector cores share?
NPU_INTERNAL bool npu_kernel_has_memory(const npu_kernel *k, ptowsp_memory memory);
NPU_INTERNAL bool npu_kernel_is_shared(const npu_kernel *k, uint32_t tile);

// The part of a size that a vector core has.
NPU_INTERNAL void npu_kernel_share(char text[NPU_SIZE_TEXT_MAX]);

// Is an instruction part of the function, and does a loop have such instructions?
NPU_INTERNAL bool npu_kernel_has(const npu_kernel *k, const ptowsp_insn_info *insn);
NPU_INTERNAL bool npu_kernel_has_loop(const npu_kernel *k, uint32_t loop);

// The variable of a tile.
NPU_INTERNAL const char *npu_kernel_tile(const npu_kernel *k, uint32_t tile);

// The variable of a tile, with the valid sizes of a second tile that is allocated alike. It is a
// separate variable if only one of the two has sizes that are known here.
NPU_INTERNAL const char *npu_kernel_tile_as(npu_kernel *k, uint32_t tile, uint32_t as);

// The minimum and maximum of an extent: a task has at least a row and a column of every parameter.
NPU_INTERNAL uint32_t npu_extent_least(const npu_kernel *k, const ptowsp_extent *extent);
NPU_INTERNAL uint32_t npu_extent_most(const npu_kernel *k, const ptowsp_extent *extent);

// May the tile be empty for a task?
NPU_INTERNAL bool npu_kernel_may_be_empty(const npu_kernel *k, uint32_t tile);

// The window of a TLOAD, TSTORE, MGATHER or MSCATTER, and the variable of its tile: a separate one,
// where the parameter may have less than the tile.
NPU_INTERNAL const npu_window *npu_kernel_window(npu_kernel *k, const ptowsp_insn_info *insn,
                                                 uint32_t tile, const char **out_tile);

// The loop in whose body the tile's variable is declared; 0: at the beginning.
NPU_INTERNAL uint32_t npu_kernel_tile_loop(const npu_kernel *k, uint32_t tile);

// Is a tile in L1 only a right factor, loaded from this parameter?
NPU_INTERNAL bool npu_kernel_is_right(const npu_kernel *k, uint32_t tile, uint32_t *out_param);

// May a column of this type in UB be loaded and stored where its elements do not lie together?
NPU_INTERNAL bool npu_kernel_has_column(npu_kernel *k, uint32_t tile);

// The name of a size, or "64" where it is constant (which is kept in text).
NPU_INTERNAL const char *npu_kernel_size(npu_kernel *k, const ptowsp_extent *extent,
                                         char text[NPU_LOCAL_MAX]);

NPU_INTERNAL npu_half npu_kernel_half(const npu_kernel *k, const ptowsp_insn_info *insn);

NPU_INTERNAL const char *npu_cpp_type(ptowsp_dtype dtype);  // "float"

// -- kernel_declare.c -----------------------------------------------------------------------------

// Writes sizes and scalars.
NPU_INTERNAL void npu_kernel_print_sizes(npu_kernel *k, npu_text *out);

// Writes the checks that end a task whose tensors cannot be moved.
NPU_INTERNAL void npu_kernel_print_requirements(const npu_kernel *k, npu_text *out);

// Writes the constants before the function, and the declarations at its beginning. The checks go
// after the sizes, before anything else.
NPU_INTERNAL void npu_kernel_print_constants(npu_kernel *k, npu_text *out);
NPU_INTERNAL void npu_kernel_print_declarations(npu_kernel *k, npu_text *checks, npu_text *out);

// Writes the declarations at the beginning of a loop's body. Call npu_kernel_add_loop_sizes first: it
// adds the sizes of the tiles of all loops. A size in an inner loop that depends only on a loop around
// it is declared in the outer loop.
NPU_INTERNAL void npu_kernel_add_loop_sizes(npu_kernel *k);
NPU_INTERNAL void npu_kernel_print_loop_declarations(npu_kernel *k, uint32_t loop, uint32_t indent,
                                                     npu_text *out);

// Writes a tile's address.
NPU_INTERNAL void npu_kernel_print_address(const npu_kernel *k, uint32_t tile, npu_text *out);

// Writes the bounds of the function's loops; and of a kernel that is not cut, or of its entry, their
// checks, whose numbers begin at `number`.
NPU_INTERNAL void npu_kernel_print_loops(npu_kernel *k, uint32_t number, npu_text *out);

// Writes a size as an expression.
NPU_INTERNAL void npu_kernel_print_extent(const npu_kernel *k, const ptowsp_extent *extent,
                                          npu_text *out);

// -- kernel_insns.c -------------------------------------------------------------------------------

NPU_INTERNAL bool npu_is_fifo(const ptowsp_insn_info *insn);  // does it push or pop?
NPU_INTERNAL const char *npu_fifo_name(uint32_t fifo);

// Writes an instruction as a statement.
NPU_INTERNAL void npu_kernel_print_insn(npu_kernel *k, const ptowsp_insn_info *insn, npu_text *out);

// Writes a statement, broken at spaces where it is longer than a line.
NPU_INTERNAL void npu_print_wrapped(npu_text *out, uint32_t indent, const char *statement);
NPU_INTERNAL void npu_append_wrapped(npu_text *out, uint32_t indent, npu_text *statement);

// -- kernel_halves.c ------------------------------------------------------------------------------

// Writes the description of a kernel cut into halves, at the head of its file.
NPU_INTERNAL void npu_halves_print_heading(const npu_kernel *k, npu_text *out);

// Writes such a kernel: its FIFOs, the functions of its halves, and its entry.
NPU_INTERNAL void npu_halves_print(npu_kernel *k, npu_text *out);

// -- native.c -------------------------------------------------------------------------------------

// Takes a character. Returns whether it counts: outside of quotes and comments.
NPU_INTERNAL bool npu_lex(npu_lexer *lexer, char c, char next);

// The word of a directive, after its "#"; NULL: the line is not a directive.
NPU_INTERNAL const char *npu_directive(const npu_lexer *lexer, const char *line);

// Takes a line, and its end if it has one.
NPU_INTERNAL void npu_lex_line(npu_lexer *lexer, const char *line, size_t length);

// Opens a file to read. NULL for a FIFO as well (errno ESPIPE), since opening one would wait for its
// other end.
NPU_INTERNAL FILE *npu_open_source(const char *path);

// Reads a text; false with the emitter's error.
NPU_INTERNAL bool npu_read_file(npu_emitter *emitter, uint32_t kernel, const char *path,
                                npu_text *out);

// Adds the file of a kernel, shared by all that have the same source.
NPU_INTERNAL void npu_native_emit(npu_emitter *emitter, uint32_t kernel);

// -- launches.c -----------------------------------------------------------------------------------

// The line of the first launch without a condition around it, or 0. Adds the words that hide the other
// launches from the shim.
NPU_INTERNAL uint32_t npu_find_launch(const char *text, uint32_t *out_words);

// Writes their definitions, or the ends of these.
NPU_INTERNAL void npu_print_launch_words(uint32_t words, bool is_end, npu_text *out);

// -- own.c ----------------------------------------------------------------------------------------

NPU_INTERNAL bool npu_is_word(char c);  // may a name have it?

// Adds its source, the headers of that, and the file that calls its entry.
NPU_INTERNAL void npu_own_emit(npu_emitter *emitter, uint32_t kernel);

// -- npu_dispatch.c -------------------------------------------------------------------------------

NPU_INTERNAL void npu_dispatch_emit(npu_emitter *emitter);

// -- npu_strides.c --------------------------------------------------------------------------------

// Can a device move the tiles of a kernel whose file is made, as far as that is known now? False with
// the emitter's error.
NPU_INTERNAL bool npu_strides_check(const npu_kernel *k);

// -- kernels.c ------------------------------------------------------------------------------------

// Writes the checks of a task's sizes and bounds.
NPU_INTERNAL void npu_kernel_print_checks(npu_kernel *k, npu_text *out);

// Writes the instructions of the function, with the declarations of each loop at its beginning.
NPU_INTERNAL void npu_kernel_print_body(npu_kernel *k, uint32_t indent, npu_text *out);

NPU_INTERNAL bool npu_kernel_is_on_a5(const npu_emitter *emitter);  // are the tile kernels?

#endif
