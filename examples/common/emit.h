// What the examples that take a workload to an NPU share: they write its source tree, build it for
// this machine, and compare what it does with what the library does.

#ifndef EMIT_H
#define EMIT_H

#include "command.h"
#include "setup.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct emit {
    const char *name;       // of the example's tree
    const char *directory;  // --directory: where it goes; build/emit/NAME
    const char *cache;      // --cache: where it is built; the user's cache
    const char *record;     // --record: where the first run is recorded; nowhere
    const char *simpler;    // --simpler: where the first run becomes a test of PTO Runtime
    bool is_recorded;       // it was
    const char *compiler, *options;
    ptowsp_context *context;
    ptowsp_npu *npu;
    ptowsp_program *program;  // of emit_setup
    bool is_good;             // all was equal so far
} emit;

// Reads the options of the example. Whatever fails, here and below, ends the program with its text.
void emit_parse(emit *e, const char *name, int argc, char **argv);

// Writes the tree of a program, in place of an older one, and builds it, or finds it in the cache.
void emit_build(emit *e, ptowsp_context *context, const ptowsp_program *program);

// Executes a run of the program here, and as the tree does, with 1 to 4 scheduler threads and rings
// of two sizes. All begin with the data that is there now. Prints a line for each ring.
void emit_compare(emit *e, const char *title, ptowsp_run *run, ptowsp_model model);

// The module of a setup, on lanes that steal tasks: its tree, and a run, to be freed by emit_end_setup.
ptowsp_run *emit_setup(emit *e, const char *what, const setup *s, uint32_t lane_count);

// Binds a setup's data to its run and compares in both cost models, with its check of the results.
void emit_compare_setup(emit *e, const char *title, setup *s, ptowsp_run *run);

// setup_create for examples that can emit what they run: with --emit DIR each setup_run writes the tree
// of its program to DIR/TITLE, compares it as above, and records the run in DIR/TITLE.run, by which
// the tree checks itself: DIR/TITLE/build/run --check DIR/TITLE.run. With --simpler DIR alone, it
// writes a scene test of PTO Runtime to DIR/TITLE, with the run, and nothing else.
void emit_create(setup *s, int argc, char **argv);

// The same with further options, at most EMIT_MORE_MAX, and a text that --help writes.
enum { EMIT_MORE_MAX = 4 };
void emit_create_with(setup *s, int argc, char **argv, const char *help, const command_option *more,
                      size_t more_count);

// Looks for the tree again, which must be in the cache by now. Returns whether all was equal.
bool emit_end(emit *e, const ptowsp_program *program);
bool emit_end_setup(emit *e, setup *s, ptowsp_run *run);  // also destroys program, run and setup

#endif
