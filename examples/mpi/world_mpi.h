// The ranks of an example (common/world.h) as those of MPI. Included before the example, whose main
// then has these functions in place of those that fork.

#ifndef WORLD_MPI_H
#define WORLD_MPI_H

#define WORLD_OVER_MPI

#include "mpi_transport.h"

#include "common/command.h"
#include "common/world.h"

#include <stdlib.h>

// Lanes of a rank take turns at calling MPI.
uint32_t world_size_mpi(void) {
    int is_there = 0, given = 0, size = 0;
    MPI_Initialized(&is_there);
    if (!is_there) {
        MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given);
        if (given < MPI_THREAD_SERIALIZED) {
            command_fail("this MPI does not let threads call it, not even one at a time");
        }
    }
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return (uint32_t)size;
}

static ptowsp_transport world_mpi_transport(world *w) {
    ptowsp_transport transport;
    const int code = mpi_transport_create(MPI_COMM_WORLD, &transport);
    if (code != MPI_SUCCESS) {
        command_fail("rank %u has no transport: %s", w->rank,
                     code == MPI_ERR_UNSUPPORTED_OPERATION ? "MPI does not let threads call it"
                                                           : "error of MPI");
    }
    return transport;
}

int world_run_mpi(uint32_t rank_count, uint32_t lane_count, world_fn fn, void *user) {
    int rank = 0;
    world *w = command_allocate(1, sizeof *w);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    w->rank = (uint32_t)rank;
    w->rank_count = rank_count;
    w->transport_of = world_mpi_transport;
    const int code = world_enter(w, lane_count, fn, user);
    free(w);
    MPI_Finalize();
    return code;
}

#endif
