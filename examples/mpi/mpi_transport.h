// A transport of ptowsp's ranks (section 26 of ptowsp.h) over MPI, to copy into an engine.
//
//      ptowsp_transport transport;
//      if (mpi_transport_create(MPI_COMM_WORLD, &transport) != MPI_SUCCESS) ...
//      ptowsp_ranks_desc desc = {.rank = rank, .rank_count = count, .transport = transport};
//      ptowsp_ranks_create(context, &desc, &ranks);     // closes the transport at its end
//
// Ranks are those of the communicator, which is duplicated, so that messages of others do not meet
// these. Between MPI_Init_thread and MPI_Finalize.
//
// Threads  As MPI_Query_thread says:
//
//              SINGLE      refused: lanes of a context are threads
//              FUNNELED    from the thread that has called MPI_Init_thread alone. On another one
//                          creation is refused, and a collective fails with UNSUPPORTED. Closing
//                          there leaves MPI alone, so other ranks end by their time limit
//              SERIALIZED  from any thread, one at a time, as a communicator is used
//
// Ends     Closing waits until all ranks have closed, as MPI_Finalize does. One that closes because
//          it has failed ends the collectives of all others at once. A process that dies is MPI's
//          affair: mpirun ends the others.
// Memory   Two buffers for each peer, as large as its largest messages, which are copied there and
//          from there: a send that is given up leaves the caller's memory alone.
// Limits   Messages of at most 2^34 - 32 bytes; ranks of the same byte order.

#ifndef MPI_TRANSPORT_H
#define MPI_TRANSPORT_H

#include <mpi.h>

#include "ptowsp.h"

// Collective over the communicator. Returns a code of MPI: MPI_ERR_NO_MEM;
// MPI_ERR_UNSUPPORTED_OPERATION where MPI does not let this thread call it, which is to be so on all
// ranks, as nothing is sent then.
int mpi_transport_create(MPI_Comm comm, ptowsp_transport *out_transport);

#endif
