// What a task of a kernel takes on a core, by every model: a table of cycles, microseconds and pipes.

#ifndef MEASURE_H
#define MEASURE_H

#include "ptowsp.h"

// Prints a row for each model of the family's machine, with the share of the cycles in which each pipe
// works. Exits with the context's error when the task fails.
void measure_table(ptowsp_context *context, ptowsp_npu *npu, const char *kernel,
                   const ptowsp_task *task, ptowsp_family family);

// "measure FILE ENTRY [ARGUMENT]... [OPTION]...": builds a PTO-ISA source for the shim and prints the
// table of one task. argv[0] is the program's name and argv[1] "measure"; returns the exit status.
extern const char measure_help[];
int measure_main(int argc, char **argv);

#endif
