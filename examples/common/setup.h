// What the examples of tile kernels share: matrices and stacks of them, with memory; running a
// program under both cost models; and comparing results with a reference in double.

#ifndef SETUP_H
#define SETUP_H

#include "ptowsp.h"

#include <stdbool.h>
#include <stdint.h>

enum { SETUP_MATRIX_MAX = 48 };

typedef struct setup_matrix {
    ptowsp_tensor id;
    const char *name;
    ptowsp_dtype dtype;
    int64_t count, rows, cols;  // count 0: a tensor of rank 2, else of rank 3
    int64_t stride, row_stride, col_stride;
    bool has_dynamic_rows, has_dynamic_cols;  // sizes that are bound, not declared
    void *data;
    bool owns_data;
} setup_matrix;

typedef struct setup {
    ptowsp_context *context;
    ptowsp_module *module;
    setup_matrix matrices[SETUP_MATRIX_MAX];
    uint32_t matrix_count;
    uint64_t thread_count;  // --threads: lanes that run kernels
    uint64_t random;        // state of the numbers that matrices are filled with
    void (*bind)(void *user, ptowsp_run *run);  // binds what is no matrix; may be NULL
    void (*prepare)(void *user);                // called before each execution; may be NULL
    bool (*check)(void *user);  // called after each: are the results right? may be NULL
    void *user;
    // Called by setup_run at its end: is all well? May be NULL; see emit_create.
    bool (*emit)(struct setup *s, const char *title, const ptowsp_program *program,
                 ptowsp_run *run);
} setup;

// Creates a context and a module; whatever fails, here and below, ends the program with its text.
// The program has the options --threads and --help.
void setup_create(setup *s, int argc, char **argv);
void setup_create_threads(setup *s, uint64_t thread_count);  // whose options are read already
void setup_create_serial(setup *s);                          // without options, on one lane
void setup_destroy(setup *s);

// Declares a tensor of rank 2 and allocates its memory, all zero. The pointer lives with the setup.
setup_matrix *setup_matrix_make(setup *s, const char *name, ptowsp_dtype dtype, int64_t rows,
                                int64_t cols);

// The same of rank 3: count matrices, whose edges are those of tiles.
setup_matrix *setup_stack_make(setup *s, const char *name, ptowsp_dtype dtype, int64_t count,
                               int64_t rows, int64_t cols);

// A matrix whose rows, columns or both are not declared but bound; it is made with as many as it
// will have at most. Another size is bound with the next setup_bind.
setup_matrix *setup_dynamic_make(setup *s, const char *name, ptowsp_dtype dtype, int64_t rows,
                                 int64_t cols, bool has_dynamic_rows, bool has_dynamic_cols);
void setup_resize(setup_matrix *x, int64_t rows, int64_t cols);

// Declares the transpose of a matrix, or of each of a stack: the same memory, seen with other
// strides.
setup_matrix *setup_transpose_make(setup *s, const char *name, const setup_matrix *of);

// Declares a stack as one matrix, with a row for each of its matrices: the same memory.
setup_matrix *setup_flat_make(setup *s, const char *name, const setup_matrix *of);

// Elements as double; set rounds as the type does. The rows of a stack are counted on.
double setup_get(const setup_matrix *x, int64_t row, int64_t col);
void setup_set(const setup_matrix *x, int64_t row, int64_t col, double value);

// Fills with one value, or with values uniform in (low, high).
void setup_fill(const setup_matrix *x, double value);
void setup_fill_random(setup *s, const setup_matrix *x, double low, double high);

// A window at (row, col), as large as the kernel's parameter; a zero expression is 0.
ptowsp_view setup_view(const setup_matrix *x, ptowsp_expr row, ptowsp_expr col);
ptowsp_view setup_stack_view(const setup_matrix *x, ptowsp_expr index, ptowsp_expr row,
                             ptowsp_expr col);

// Binds all matrices, and what s->bind binds, to a run of a program of the module.
void setup_bind(const setup *s, ptowsp_run *run);

// Compiles the module's last workload and executes it in the unit model and in that of A2/A3. Each
// time it prepares, runs, and checks, and prints a line: tasks, the sum of their cycles, and when
// the last one ended; and one about the memory of transient tensors. Returns whether both checks held.
bool setup_run(setup *s, const char *title, const ptowsp_schedule *schedule);

// The same in one model, quietly: returns the makespan.
ptowsp_cycles setup_makespan(setup *s, const ptowsp_schedule *schedule, ptowsp_model model);

// The number of rows, of all matrices of a stack.
int64_t setup_row_count(const setup_matrix *x);

// The largest |got - wanted[row * cols + col]|, as a part of the largest |wanted| in its row; NaN
// where either has one.
double setup_error(const setup_matrix *got, const double *wanted);

// Prints a line about a matrix and its error, and returns whether that is allowed.
bool setup_report(const setup_matrix *got, double error, double allowed);

// Prints a line about what a task of a kernel with full tiles takes.
void setup_print_kernel(const setup *s, const char *name, ptowsp_kernel kernel);

#endif
