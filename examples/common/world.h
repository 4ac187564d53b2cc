// The ranks of an example: processes over a hub, or those of MPI (examples/mpi/world_mpi.h). What a
// rank does is one function; everything else about ranks is here.

#ifndef WORLD_H
#define WORLD_H

#include "ptowsp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORLD_TRANSPORTS 2
#define WORLD_SPANS      4096

// A task with what tells others in which message or collective it takes part: 0 for none.
typedef struct world_span {
    ptowsp_span span;
    uint64_t message;
    uint64_t is_sender;  // of a SEND; of others, the last to begin
} world_span;

typedef struct world {
    uint32_t rank, rank_count;
    ptowsp_context *context;
    ptowsp_ranks *ranks;  // the communicator that is open
    ptowsp_links links;   // measured between the first two ranks
    void *hubs[WORLD_TRANSPORTS];
    uint32_t opened;  // transports so far
    // Another transport for this rank.
    ptowsp_transport (*transport_of)(struct world *w);
    // Of a picture: what the run recorded, and how many lanes a rank has, its links as the last one.
    world_span spans[WORLD_SPANS];
    uint64_t span_count;
    uint32_t lane_count;
} world;

typedef int (*world_fn)(world *w, void *user);

#if defined(WORLD_OVER_MPI)
#define world_size world_size_mpi
#define world_run  world_run_mpi
#endif

// How many ranks there are, if this is not the program's choice; else 0.
uint32_t world_size(void);

// Calls fn in so many processes, each a rank, and returns 0 if all succeed, else the highest of their
// codes; names the ranks that fail.
// The links are measured before.
int world_run(uint32_t rank_count, uint32_t lane_count, world_fn fn, void *user);

// The part of it that a rank does, for other transports. Returns what fn does.
int world_enter(world *w, uint32_t lane_count, world_fn fn, void *user);

// The bytes of all ranks on all ranks, one rank behind the other.
void world_gather(world *w, const void *own, void *all, uint64_t bytes);

// The largest of all ranks' numbers.
uint64_t world_largest(world *w, uint64_t own);

// From the first begin to the last end of all ranks, by clocks that are one: those of one machine.
uint64_t world_lasted(world *w, uint64_t begin, uint64_t end);

// All ranks begin what follows at about the same time.
void world_meet(world *w);

typedef struct world_times {
    uint64_t simulated_ns, measured_ns;  // of the slowest rank
} world_times;

// Pictures of all ranks, of what ran when and of what was simulated: paths, or NULL for none, with
// names that say which form: Perfetto's *.pftrace, Chrome's *.json, else SVG; the title; names of
// kernels, by id - 1.
typedef struct world_picture {
    const char *path, *simulated_path, *title;
    const char *const *names;
    uint32_t name_count;
} world_picture;

// Simulates a run, whose cycles are nanoseconds, on all ranks together, then executes it: the best of
// ten; for a picture once more. Rank 0 draws what all have recorded.
world_times world_execute(world *w, ptowsp_run *run, uint32_t lane_count,
                          const world_picture *picture);

#endif
