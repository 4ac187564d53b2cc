// tensor_parallel over the ranks of MPI:
//
//      mpirun -n 4 build/mpi/tensor_parallel_mpi

#include "world_mpi.h"

#include "../tensor_parallel.c"
