// Softmax in a pipeline of three stages, as a workload with its data: what csp_pipeline measures,
// and emit_pipeline takes to an NPU.
//
//      load --[ loaded ]--> compute --[ made ]--> store
//
// Load copies tiles of x into places on chip, compute takes each to another place, store copies it
// out. Every eighth tile comes from far memory and takes load 16 times as long.
//
// Places. A channel carries indices of tiles; their data lies in a ring of places. With depth d, d
// tiles wait in the channel, while the sender fills one more and the receiver reads one: load works
// on tile i only when its send of tile i - 1 is done, which is when tile i - 1 - d has been
// received; the tiles before that one, compute is done with. So d + 2 places are needed, and tile i
// has place i % (d + 2). Depth 0 is what is called double buffering, depth 1 triple buffering.
//
// Depth and latency of both channels are the symbols "depth" and "latency".

#ifndef STAGES_H
#define STAGES_H

#include "setup.h"

enum {
    STAGES_TILES_MAX = 64,
    STAGES_ROWS = 8,  // of a tile
    STAGES_COLS = 32,
    STAGES_FAR_EVERY = 8,
    STAGES_FAR_CYCLES = 16,  // for an element, instead of 1
    STAGES_DEPTH_MAX = 4
};

#define STAGES_ALLOWED 1e-6

typedef struct stages {
    setup *s;
    setup_matrix *x, *loaded, *made, *y;  // loaded, made: the places
    ptowsp_kernel load, softmax, store;
    double *wanted;  // of y
} stages;

// Declares the workloads "pipeline" and "sequence" (the same without overlap: one place is enough),
// for any number of tiles, in the module of a setup, and sets what it binds and prepares.
void stages_make(stages *p, setup *s);
void stages_destroy(stages *p);

// Makes data for 1 .. STAGES_TILES_MAX tiles, and what has to come out.
void stages_fill(stages *p, int64_t tile_count);

#endif
