// An MPI that has less support for threads than it is asked for, to load before the real one: the
// level is in MPI_LEVEL, as a number of 0 (SINGLE) to 3 (MULTIPLE).

#include <mpi.h>

#include <stdlib.h>

static int level_of(int real) {
    static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
                                 MPI_THREAD_MULTIPLE};
    const char *text = getenv("MPI_LEVEL");
    return text && text[0] >= '0' && text[0] <= '3' ? levels[text[0] - '0'] : real;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    const int code = PMPI_Init_thread(argc, argv, required, provided);
    *provided = level_of(*provided);
    return code;
}

int MPI_Query_thread(int *provided) {
    const int code = PMPI_Query_thread(provided);
    *provided = level_of(*provided);
    return code;
}
