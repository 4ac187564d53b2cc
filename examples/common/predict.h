// Predicted times of published rows: cycles of instructions, and times of kernels on 24 cores.

#ifndef PREDICT_H
#define PREDICT_H

#include <stdbool.h>
#include <stdint.h>

enum { PREDICT_TEXT_MAX = 256, PREDICT_REASON_MAX = 160 };

// One instruction, as a row of instructions has it. Texts may be "".
typedef struct predict_instruction {
    char machine[PREDICT_TEXT_MAX], name[PREDICT_TEXT_MAX], dtype[PREDICT_TEXT_MAX];
    uint32_t rows, cols, valid_rows, valid_cols;
    char params[PREDICT_TEXT_MAX], variant[PREDICT_TEXT_MAX];
} predict_instruction;

// A kernel, as a row of kernels has it.
typedef struct predict_kernel {
    char kernel[PREDICT_TEXT_MAX], machine[PREDICT_TEXT_MAX], shape[PREDICT_TEXT_MAX],
        tiling[PREDICT_TEXT_MAX];
} predict_kernel;

// Times of a kernel, and the share of its time in which each pipe works, in per cent.
typedef struct predict_times {
    double us, cube, vector, mte1, mte2, store;
} predict_times;

// Cycles of an instruction. False with a reason for a row that cannot be predicted.
bool predict_cycles(const predict_instruction *row, double *out_cycles,
                    char reason[PREDICT_REASON_MAX]);

// The time of a kernel from its launch on. False with a reason for a kernel that cannot be predicted.
bool predict_time(const predict_kernel *row, predict_times *out_times,
                  char reason[PREDICT_REASON_MAX]);

#endif
