// Says what the transport over MPI does by the support for threads that MPI has: created and used on
// the thread that has initialised MPI, then used on another one, then created there.
//
//      mpirun -n 2 threads_mpi         with level.c loaded before MPI

#include "mpi/mpi_transport.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct rank {
    int rank, rank_count;
    ptowsp_context *context;
    ptowsp_ranks *ranks;
    char said[256];
} rank;

static void create(rank *r) {
    ptowsp_ranks_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.rank = (uint32_t)r->rank;
    desc.rank_count = (uint32_t)r->rank_count;
    const int code = mpi_transport_create(MPI_COMM_WORLD, &desc.transport);
    if (code != MPI_SUCCESS) {
        snprintf(r->said, sizeof r->said, "%s",
                 code == MPI_ERR_UNSUPPORTED_OPERATION ? "no transport" : "another error");
        return;
    }
    const ptowsp_status status = ptowsp_ranks_create(r->context, &desc, &r->ranks);
    snprintf(r->said, sizeof r->said, "%s",
             status == PTOWSP_OK ? "created" : ptowsp_context_error(r->context).text);
}

static void sum(rank *r) {
    ptowsp_collective c;
    int32_t in = r->rank + 1, out = 0;
    memset(&c, 0, sizeof c);
    c.dtype = PTOWSP_I32;
    c.count = 1;
    c.members = (uint32_t)r->rank_count;
    const ptowsp_status status = ptowsp_ranks_run(r->ranks, &c, &in, &out);
    const bool is_good = out == r->rank_count * (r->rank_count + 1) / 2;
    snprintf(r->said, sizeof r->said, "%s",
             status != PTOWSP_OK ? ptowsp_context_error(r->context).text
             : is_good           ? "summed"
                                 : "WRONG");
}

static void *sum_elsewhere(void *user) {
    sum((rank *)user);
    return NULL;
}

static void *create_elsewhere(void *user) {
    create((rank *)user);
    return NULL;
}

static void on_thread(rank *r, void *(*fn)(void *)) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, fn, r) != 0) {
        abort();
    }
    pthread_join(thread, NULL);
}

static void say(const rank *r, const char *what) {
    printf("rank %d: %s: %s\n", r->rank, what, r->said);
    fflush(stdout);
}

int main(int argc, char **argv) {
    rank r;
    int level = 0;
    memset(&r, 0, sizeof r);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &r.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &r.rank_count);
    if (ptowsp_context_create(NULL, &r.context) != PTOWSP_OK) {
        return 1;
    }
    create(&r);
    say(&r, "create");
    if (r.ranks) {
        sum(&r);
        say(&r, "sum");
        on_thread(&r, sum_elsewhere);
        say(&r, "sum on another thread");
        ptowsp_ranks_destroy(r.ranks);
        r.ranks = NULL;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    on_thread(&r, create_elsewhere);
    say(&r, "create on another thread");
    ptowsp_ranks_destroy(r.ranks);
    ptowsp_context_destroy(r.context);
    MPI_Finalize();
    return 0;
}
