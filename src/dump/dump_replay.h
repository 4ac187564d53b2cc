// The tasks of a dump as a list of tasks (ptowsp_task_list), and what becomes of it in simulated time.

#ifndef DUMP_REPLAY_H
#define DUMP_REPLAY_H

#include "dump.h"

#define DUMP_KERNEL_MAX 4096u

// A kernel of the module: all tasks of a kernel of the dump on cores of one kind.
typedef struct dump_replay_kernel {
    int64_t id;
    ptowsp_unit unit;
    ptowsp_kernel kernel;
    char name[PTOWSP_NAME_MAX + 1];
} dump_replay_kernel;

// An entry of the list: an instance of a task or, without a row, a join.
typedef struct dump_entry {
    uint64_t start, end;    // its place in the order of OBSERVED
    uint64_t cycles, tail;  // tail: of the longest chain that begins with it
    uint32_t index;         // in the order of submission
    uint32_t row;           // DUMP_NONE: a join
    uint32_t lane;          // among the cores of its kind
    uint32_t kernel;        // of replay->kernels
    uint32_t first_edge, edge_count;
} dump_entry;

typedef struct dump_replay {
    ptowsp_dump *dump;
    ptowsp_dump_replay how;
    uint32_t *row_firsts;               // by task, and one more: the first of its rows,
    uint32_t *rows;                     // in order of task and core
    uint32_t *lanes;                    // by core: its ordinal in its kind
    uint32_t cube_count, vector_count;  // cores
    dump_replay_kernel *kernels;
    uint32_t kernel_count, kernel_capacity;
    dump_entry *entries;
    uint32_t *places;  // by entry in the order of submission: its place in the list
    uint32_t *lasts;   // by task: the entry that others wait for
    uint32_t *edges;   // entries, by the one that waits, in the order of submission
    uint32_t entry_count, entry_capacity, edge_count, edge_capacity;
    // The list.
    ptowsp_kernel *list_kernels;
    ptowsp_cycles *list_cycles;
    int64_t *list_axes;
    uint64_t *list_begins;
    uint32_t *list_edges;
    ptowsp_module *module;
    ptowsp_program *program;
    ptowsp_run *run;
    ptowsp_dump_replayed result;
} dump_replay;

// Replays a dump, whose result is in replay. False: see dump_fail. Free it in any case.
DUMP_INTERNAL bool dump_replay_make(dump_replay *replay, ptowsp_dump *dump,
                                    const ptowsp_dump_replay *how);
DUMP_INTERNAL void dump_replay_free(dump_replay *replay);

#endif
