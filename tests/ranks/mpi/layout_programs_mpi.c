// Random programs over meshes (tests/support/layout_programs.h) on the ranks of MPI:
//
//      mpirun -n 4 layout_programs_mpi COUNT
//
// Each rank makes the plan for itself, with the model of all, and compares what it has in the end.

#include "mpi/mpi_transport.h"

#include "layout_programs.h"

int main(int argc, char **argv) {
    const uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    static const uint32_t meshes[5][2][2] = {
        {{1, 1}, {1, 1}}, {{1, 1}, {1, 1}}, {{2, 1}, {1, 2}}, {{3, 1}, {1, 3}}, {{2, 2}, {4, 1}}};
    int level = 0, rank = 0, rank_count = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &rank_count);
    ptowsp_context *context = NULL;
    ptowsp_ranks *ranks = NULL;
    ptowsp_ranks_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.rank = (uint32_t)rank;
    desc.rank_count = (uint32_t)rank_count;
    plan *p = (plan *)malloc(sizeof *p);
    if (!p || rank_count > 4 || ptowsp_context_create(NULL, &context) != PTOWSP_OK ||
        mpi_transport_create(MPI_COMM_WORLD, &desc.transport) != MPI_SUCCESS ||
        ptowsp_ranks_create(context, &desc, &ranks) != PTOWSP_OK) {
        fprintf(stderr, "rank %d: nothing to run on\n", rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
        return 1;
    }
    uint64_t done = 0, relayouts = 0;
    char why[256] = "";
    for (bool is_good = true; is_good && done < count; done += is_good) {
        ptowsp_mesh mesh;
        memset(&mesh, 0, sizeof mesh);
        mesh.axis_count = 2;
        mesh.names[0] = "dp";
        mesh.names[1] = "tp";
        memcpy(mesh.sizes, meshes[rank_count][done % 2], sizeof meshes[0][0]);
        plan_make(p, 1000000 + done, &mesh);
        is_good = plan_is_exact(p) && plan_run(p, context, ranks, why, sizeof why);
        relayouts += p->relayout_count;
    }
    ptowsp_ranks_destroy(ranks);
    ptowsp_context_destroy(context);
    free(p);
    if (done < count) {
        fprintf(stderr, "rank %d: program %llu: %s\n", rank, (unsigned long long)done,
                why[0] ? why : "the model is not one rank");
    } else if (rank == 0) {
        printf("%llu programs on %d ranks, %llu relayouts: good\n", (unsigned long long)done,
               rank_count, (unsigned long long)relayouts);
    }
    MPI_Finalize();
    return done < count;
}
