// pipeline_parallel over the ranks of MPI:
//
//      mpirun -n 4 build/mpi/pipeline_parallel_mpi

#include "world_mpi.h"

#include "../pipeline_parallel.c"
