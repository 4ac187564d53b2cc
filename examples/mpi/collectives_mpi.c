// Collectives between the ranks of MPI, each by each algorithm, compared with what they are by
// definition, and timed beside MPI's own all-reduce.
//
//      mpirun -n 4 build/mpi/collectives_mpi [--count N] [--runs N] [--differ RANK]
//
// Element i of rank r is a number that all know, so each rank can say what it has to get.

#include "mpi_transport.h"

#include "common/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: mpirun -n RANKS collectives_mpi [options]\n"
    "\n"
    "  --count N    elements of each collective, i32, default 10007\n"
    "  --runs N     of each, of which the fastest is shown, default 5\n"
    "  --differ R   rank R calls with another count, which all ranks have to notice\n";

typedef struct world {
    int rank, rank_count;
    uint64_t count, runs, differ;
    bool has_failed;
    ptowsp_context *context;
    ptowsp_ranks *ranks;
    int32_t *in, *out, *wanted;
} world;

static int32_t value(int rank, uint64_t i) {
    return (int32_t)((uint32_t)rank * 1000003u + (uint32_t)i * 7u);
}

// Where the part of a member begins; that of rank_count is the count.
static uint64_t part_begin(const world *w, int member) {
    const uint64_t size = w->count / (uint64_t)w->rank_count,
                   more = w->count % (uint64_t)w->rank_count;
    return (uint64_t)member * size + ((uint64_t)member < more ? (uint64_t)member : more);
}

static int32_t sum_at(const world *w, uint64_t i) {
    uint32_t sum = 0;
    for (int r = 0; r < w->rank_count; r++) {
        sum += (uint32_t)value(r, i);
    }
    return (int32_t)sum;
}

// Fills in what goes in and what has to come out; returns how many elements come out.
static uint64_t expect(world *w, ptowsp_collective_kind kind) {
    const uint64_t begin = part_begin(w, w->rank), end = part_begin(w, w->rank + 1);
    const bool is_gather = kind == PTOWSP_ALL_GATHER;
    uint64_t out_count = 0;
    for (uint64_t i = 0; i < (is_gather ? end - begin : w->count); i++) {
        w->in[i] = value(w->rank, is_gather ? begin + i : i);
    }
    for (int r = 0; r < w->rank_count; r++) {
        for (uint64_t i = part_begin(w, r); is_gather && i < part_begin(w, r + 1); i++) {
            w->wanted[out_count++] = value(r, i);
        }
        for (uint64_t i = begin; kind == PTOWSP_ALL_TO_ALL && i < end; i++) {
            w->wanted[out_count++] = value(r, i);
        }
    }
    const bool is_part = kind == PTOWSP_REDUCE_SCATTER;
    const bool is_sum = is_part || kind == PTOWSP_ALL_REDUCE;
    const bool is_root =
        kind == PTOWSP_BROADCAST || (kind == PTOWSP_SEND && w->rank == w->rank_count - 1);
    for (uint64_t i = is_part ? begin : 0; (is_sum || is_root) && i < (is_part ? end : w->count);
         i++) {
        w->wanted[out_count++] = is_sum ? sum_at(w, i) : value(0, i);
    }
    return out_count;
}

// Of all ranks; so all decide alike.
static double largest(double own) {
    double all = own;
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

// Runs one collective; false where it is wrong, on any rank.
static bool run_one(world *w, ptowsp_collective *collective) {
    const uint64_t out_count = expect(w, collective->kind);
    double best = 1e9, is_wrong = 0;
    for (uint64_t run = 0; run < w->runs; run++) {
        memset(w->out, 0x5a, (size_t)(out_count * sizeof *w->out));
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        if (ptowsp_ranks_run(w->ranks, collective, w->in, out_count ? w->out : NULL) != PTOWSP_OK) {
            fprintf(stderr, "rank %d: %s\n", w->rank, ptowsp_context_error(w->context).text);
            w->has_failed = true;
            return false;
        }
        const double time = largest(MPI_Wtime() - begin);
        best = time < best ? time : best;
        is_wrong = memcmp(w->out, w->wanted, (size_t)(out_count * sizeof *w->out)) ? 1 : is_wrong;
    }
    is_wrong = largest(is_wrong);
    if (w->rank == 0) {
        printf("%-15s %-13s %10.1f us  %s\n", ptowsp_collective_name(collective->kind),
               ptowsp_algorithm_name(collective->algorithm), best * 1e6,
               is_wrong > 0 ? "WRONG" : "good");
    }
    return is_wrong == 0;
}

// Those that the library has for the kind and the number of ranks.
static bool run_all(world *w) {
    bool is_good = true;
    for (int kind = PTOWSP_ALL_REDUCE; kind <= PTOWSP_SEND; kind++) {
        for (int algorithm = PTOWSP_ALGORITHM_DIRECT; algorithm <= PTOWSP_ALGORITHM_RING;
             algorithm++) {
            ptowsp_collective collective = {.kind = (ptowsp_collective_kind)kind,
                                            .algorithm = (ptowsp_algorithm)algorithm,
                                            .dtype = PTOWSP_I32,
                                            .count = w->count,
                                            .members = (uint32_t)w->rank_count,
                                            .node_size = w->rank_count % 2 ? 1 : 2,
                                            .target = (uint32_t)w->rank_count - 1};
            ptowsp_collective_cost cost;
            ptowsp_links links = ptowsp_links_make(PTOWSP_LINKS_ETHERNET_100G);
            if (ptowsp_collective_time(w->context, &collective, &links, &cost) == PTOWSP_OK) {
                collective.count -= (uint64_t)w->rank == w->differ && w->count > 0;
                is_good = run_one(w, &collective) && is_good;
            }
            if (w->has_failed) {
                return false;
            }
        }
    }
    double best = 1e9;
    for (uint64_t run = 0; run < w->runs; run++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        MPI_Allreduce(w->in, w->out, (int)w->count, MPI_INT32_T, MPI_SUM, MPI_COMM_WORLD);
        const double time = largest(MPI_Wtime() - begin);
        best = time < best ? time : best;
    }
    if (w->rank == 0) {
        printf("%-15s %-13s %10.1f us\n", "MPI_Allreduce", "", best * 1e6);
    }
    return is_good;
}

int main(int argc, char **argv) {
    world w = {.count = 10007, .runs = 5, .differ = UINT64_MAX};
    const command_option options[] = {{"--count", &w.count, NULL, 0, 1 << 28},
                                      {"--runs", &w.runs, NULL, 1, 1000},
                                      {"--differ", &w.differ, NULL, 0, PTOWSP_RANK_COUNT_MAX}};
    int support = 0;
    command_parse(argc, argv, help, options, sizeof options / sizeof options[0]);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &support);
    MPI_Comm_rank(MPI_COMM_WORLD, &w.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &w.rank_count);
    ptowsp_ranks_desc desc = {.rank = (uint32_t)w.rank, .rank_count = (uint32_t)w.rank_count};
    if (support < MPI_THREAD_FUNNELED) {
        command_fail("this MPI has no support for threads, not even MPI_THREAD_FUNNELED");
    }
    if (mpi_transport_create(MPI_COMM_WORLD, &desc.transport) != MPI_SUCCESS ||
        ptowsp_context_create(NULL, &w.context) != PTOWSP_OK) {
        command_fail("no memory for the transport");
    }
    if (ptowsp_ranks_create(w.context, &desc, &w.ranks) != PTOWSP_OK) {
        command_fail("%s", ptowsp_context_error(w.context).text);
    }
    w.in = (int32_t *)command_allocate(w.count + 1, sizeof *w.in);
    w.out = (int32_t *)command_allocate(w.count + (uint64_t)w.rank_count, sizeof *w.out);
    w.wanted = (int32_t *)command_allocate(w.count + (uint64_t)w.rank_count, sizeof *w.wanted);
    const bool is_good = run_all(&w);
    ptowsp_ranks_destroy(w.ranks);
    ptowsp_context_destroy(w.context);
    free(w.in);
    free(w.out);
    free(w.wanted);
    MPI_Finalize();
    return is_good ? 0 : 1;
}
