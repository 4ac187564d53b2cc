// expert_parallel over the ranks of MPI:
//
//      mpirun -n 4 build/mpi/expert_parallel_mpi

#include "world_mpi.h"

#include "../expert_parallel.c"
