// Tensors from one layout to another over communicators: random layouts over meshes of up to 8 ranks,
// each a thread, compared element by element with what they are by definition; what is refused.

#define _POSIX_C_SOURCE 200809L

#include "test.h"

#include <pthread.h>

enum { RANK_MAX = 8, CELL_MAX = 16 * 16, CASE_MAX = 40 };

// -- layouts --------------------------------------------------------------------------------------

typedef struct relayout_case {
    ptowsp_mesh_layout from, to;
    int64_t cuts[2][PTOWSP_MESH_AXIS_MAX][RANK_MAX + 1];
} relayout_case;

static ptowsp_mesh mesh;
static relayout_case cases[CASE_MAX];
static uint32_t case_count;

static bool is_partial(const ptowsp_spread *s) {
    return s->kind == PTOWSP_PARTIAL_SUM || s->kind == PTOWSP_PARTIAL_MAX;
}

static ptowsp_spread random_spread(uint64_t *random, const ptowsp_mesh_layout *layout,
                                   uint32_t parts, int64_t *cuts) {
    ptowsp_spread spread = {(ptowsp_spread_kind)(test_random(random) % 4), 0, NULL};
    spread.kind = test_random(random) % 2 ? PTOWSP_SHARDED : spread.kind;
    if (spread.kind == PTOWSP_SHARDED) {
        spread.dim = (uint32_t)(test_random(random) % layout->rank);
        if (test_random(random) % 3 == 0) {
            cuts[0] = 0;
            for (uint32_t i = 1; i < parts; i++) {
                cuts[i] = test_random_in(random, cuts[i - 1], layout->shape[spread.dim]);
            }
            cuts[parts] = layout->shape[spread.dim];
            spread.cuts = cuts;
        }
    }
    return spread;
}

// Cases that there is a relayout for.
static void cases_random(uint64_t *random) {
    static const int64_t sizes[] = {0, 1, 4, 8, 12, 16};
    case_count = 0;
    for (uint32_t tries = 0; case_count < CASE_MAX && tries < 4000; tries++) {
        relayout_case *c = &cases[case_count];
        memset(c, 0, sizeof *c);
        c->from.name = "t";
        c->from.element_bytes = 4;
        c->from.rank = (uint32_t)test_random_in(random, 1, 2);
        for (uint32_t d = 0; d < c->from.rank; d++) {
            c->from.shape[d] = sizes[test_random(random) % 6];
        }
        c->to = c->from;
        for (uint32_t a = 0; a < mesh.axis_count; a++) {
            c->from.spreads[a] = random_spread(random, &c->from, mesh.sizes[a], c->cuts[0][a]);
            c->to.spreads[a] = random_spread(random, &c->to, mesh.sizes[a], c->cuts[1][a]);
            if (is_partial(&c->to.spreads[a])) {
                c->to.spreads[a] = c->from.spreads[a];
            }
        }
        ptowsp_relayout plan;
        case_count +=
            ptowsp_mesh_layout_relayout(NULL, &mesh, &c->from, &c->to, &plan) == PTOWSP_OK;
    }
}

// What a rank has of a cell: all of it, or a summand or candidate that depends on its coordinates
// along partial axes.
static int32_t local_value(const ptowsp_mesh_layout *layout, uint32_t rank, int64_t cell) {
    uint32_t share = 0;
    for (uint32_t a = 0; a < mesh.axis_count; a++) {
        if (is_partial(&layout->spreads[a])) {
            share = share * 8 + 1 + ptowsp_mesh_coordinate(&mesh, rank, a);
        }
    }
    return (int32_t)((uint32_t)cell * 7u + share * (uint32_t)(cell % 5 + 1) * 1000u);
}

// By definition: of all ranks that differ along axes that are no longer partial.
static int32_t wanted_value(const relayout_case *c, uint32_t rank, int64_t cell,
                            uint32_t rank_count) {
    int64_t sum = 0, max = INT64_MIN;
    bool is_max = false, is_sum = false;
    for (uint32_t q = 0; q < rank_count; q++) {
        bool counts = true;
        for (uint32_t a = 0; a < mesh.axis_count; a++) {
            const bool ends = is_partial(&c->from.spreads[a]) && !is_partial(&c->to.spreads[a]);
            is_max = is_max || (ends && c->from.spreads[a].kind == PTOWSP_PARTIAL_MAX);
            is_sum = is_sum || (ends && c->from.spreads[a].kind == PTOWSP_PARTIAL_SUM);
            counts = counts && (ends || ptowsp_mesh_coordinate(&mesh, q, a) ==
                                            ptowsp_mesh_coordinate(&mesh, rank, a));
        }
        const int32_t value = local_value(&c->from, q, cell);
        sum += counts ? value : 0;
        max = counts && value > max ? value : max;
    }
    return (int32_t)(is_max ? max : sum);
}

// Visits the cells that a rank has, row by row: fills them, or counts those that are wrong.
static uint32_t visit(const relayout_case *c, const ptowsp_mesh_layout *layout, uint32_t rank,
                      uint32_t rank_count, bool fills, int32_t *data) {
    ptowsp_mesh_layout_part part;
    uint32_t wrong = ptowsp_mesh_layout_part_of(NULL, &mesh, layout, rank, &part) != PTOWSP_OK,
             at = 0;
    const int64_t rows = layout->rank > 1 ? part.sizes[0] : 1;
    const uint32_t last = layout->rank - 1;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t k = 0; k < part.sizes[last]; k++, at++) {
            int64_t cell = part.offsets[last] + k;
            cell += layout->rank > 1 ? (part.offsets[0] + r) * layout->shape[1] : 0;
            if (fills) {
                data[at] = local_value(layout, rank, cell);
            } else {
                wrong += data[at] != wanted_value(c, rank, cell, rank_count);
            }
        }
    }
    return wrong + (!fills && data[at] != 0x5a5a5a5a);  // nothing behind
}

// -- ranks as threads -----------------------------------------------------------------------------

typedef struct rank_job {
    ptowsp_hub *hub;
    uint32_t rank, rank_count;
    uint32_t wrong;
    char text[256];
} rank_job;

static void *rank_main(void *arg) {
    rank_job *job = (rank_job *)arg;
    static const ptowsp_context_desc serial;
    ptowsp_context *context = NULL;
    ptowsp_ranks *ranks = NULL;
    ptowsp_ranks_desc desc = {.rank = job->rank,
                              .rank_count = job->rank_count,
                              .transport = ptowsp_hub_transport(job->hub, job->rank)};
    job->wrong = ptowsp_context_create(&serial, &context) != PTOWSP_OK ||
                 ptowsp_ranks_create(context, &desc, &ranks) != PTOWSP_OK;
    for (uint32_t i = 0; i < case_count && !job->wrong; i++) {
        int32_t in[CELL_MAX + 1], out[CELL_MAX + 1];
        memset(out, 0x5a, sizeof out);
        visit(&cases[i], &cases[i].from, job->rank, job->rank_count, true, in);
        if (ptowsp_ranks_relayout(ranks, &mesh, &cases[i].from, &cases[i].to, PTOWSP_I32, in,
                                  out) != PTOWSP_OK) {
            job->wrong = 1;
            snprintf(job->text, sizeof job->text, "case %u: %s", i,
                     ptowsp_context_error(context).text);
        } else {
            job->wrong = visit(&cases[i], &cases[i].to, job->rank, job->rank_count, false, out);
            snprintf(job->text, sizeof job->text, "case %u: %u wrong", i, job->wrong);
        }
    }
    ptowsp_ranks_destroy(ranks);
    ptowsp_context_destroy(context);
    return NULL;
}

static void run_cases(uint32_t rank_count) {
    rank_job jobs[RANK_MAX] = {0};
    ptowsp_context *context = test_context(NULL);
    ptowsp_hub *hub = test_hub(context, rank_count, 256);
    for (uint32_t i = 0; i < rank_count; i++) {
        jobs[i].hub = hub;
        jobs[i].rank = i;
        jobs[i].rank_count = rank_count;
    }
    test_threads(rank_main, jobs, sizeof jobs[0], rank_count);
    for (uint32_t i = 0; i < rank_count; i++) {
        if (jobs[i].wrong) {
            fail_msg("rank %u: %s", i, jobs[i].text);
        }
    }
    ptowsp_hub_destroy(hub);
    ptowsp_context_destroy(context);
}

// -- tests ----------------------------------------------------------------------------------------

TEST(ranks_relayout__data_of_random_layouts_is_where_it_belongs) {
    uint64_t random = test_seed();
    uint32_t kinds[5] = {0, 0, 0, 0, 0}, with_cuts = 0;
    for (uint32_t round = 0; TEST_ROUNDS(round, 400); round++) {
        uint32_t rank_count = 1;
        mesh = (ptowsp_mesh){(uint32_t)test_random_in(&random, 1, 3), {"a", "b", "c"}, {0}};
        for (uint32_t a = 0; a < mesh.axis_count; a++) {
            mesh.sizes[a] = (uint32_t)test_random_in(&random, 1, mesh.axis_count == 2 && a ? 4 : 2);
            rank_count *= mesh.sizes[a];
        }
        if (mesh.axis_count == 1) {
            mesh.sizes[0] = rank_count = (uint32_t)test_random_in(&random, 1, 5);
        }
        cases_random(&random);
        for (uint32_t i = 0; i < case_count; i++) {
            ptowsp_relayout plan;
            ptowsp_mesh_layout_relayout(NULL, &mesh, &cases[i].from, &cases[i].to, &plan);
            for (uint32_t k = 0; k < plan.step_count; k++) {
                kinds[plan.steps[k].kind]++;
                with_cuts += plan.steps[k].before.cuts || plan.steps[k].after.cuts;
            }
        }
        run_cases(rank_count);
    }
    for (uint32_t i = 0; i < 5; i++) {
        assert_met(kinds[i] > 50);
    }
    assert_met(with_cuts > 100);
}

typedef struct alone {
    test_memory memory;
    ptowsp_context *context, *plain;
    ptowsp_hub *hub;
    ptowsp_ranks *ranks;
} alone;

// A communicator of one rank.
static void alone_make(alone *a) {
    memset(a, 0, sizeof *a);
    a->plain = test_context(NULL);
    a->context = test_counted(&a->memory);
    a->hub = test_hub(a->plain, 1, 256);
    const ptowsp_ranks_desc desc = {.rank_count = 1, .transport = ptowsp_hub_transport(a->hub, 0)};
    assert_ok(ptowsp_ranks_create(a->context, &desc, &a->ranks));
    mesh = (ptowsp_mesh){2, {"a", "b"}, {1, 1}};
}

static void alone_end(alone *a) {
    ptowsp_ranks_destroy(a->ranks);
    ptowsp_hub_destroy(a->hub);
    ptowsp_context_destroy(a->context);
    ptowsp_context_destroy(a->plain);
    assert_int_equal(a->memory.live_blocks, 0);
}

static const ptowsp_mesh_layout summed = {
    "t", 4, 1, {6}, {{PTOWSP_PARTIAL_SUM, 0, NULL}, {PTOWSP_SHARDED, 0, NULL}}};
static const ptowsp_mesh_layout whole = {"t", 4, 1, {6}, {{PTOWSP_REPLICATED, 0, NULL}}};

TEST(ranks_relayout__what_is_wrong_is_refused) {
    alone a;
    int32_t in[6] = {1, 2, 3, 4, 5, 6}, out[6];
    alone_make(&a);
    test_invalid(a.context,
                 ptowsp_ranks_relayout(a.ranks, &mesh, &summed, &whole, PTOWSP_F16, in, out),
                 "ranks: relayout: elements of t have 4 bytes, and those of the data type 2");
    test_invalid(a.context,
                 ptowsp_ranks_relayout(a.ranks, &mesh, &summed, &whole, PTOWSP_I32, NULL, out),
                 "ranks: relayout: in or out is NULL");
    assert_invalid(ptowsp_ranks_relayout(a.ranks, &mesh, &whole, &summed, PTOWSP_I32, in, out));
    ptowsp_mesh larger = mesh;
    larger.sizes[1] = 2;
    test_invalid(a.context,
                 ptowsp_ranks_relayout(a.ranks, &larger, &whole, &whole, PTOWSP_I32, in, out),
                 "ranks: relayout: the mesh has 2 ranks, and there are 1");
    // Afterwards all is as before.
    assert_ok(ptowsp_ranks_relayout(a.ranks, &mesh, &summed, &whole, PTOWSP_I32, in, out));
    assert_memory_equal(in, out, sizeof in);
    memset(out, 0, sizeof out);
    assert_ok(ptowsp_ranks_relayout(a.ranks, &mesh, &whole, &whole, PTOWSP_I32, in, out));
    assert_memory_equal(in, out, sizeof in);
    alone_end(&a);
}

// Of each kind of step: sums, what is cut by rows to columns, pieces of unequal sizes together.
TEST(ranks_relayout__every_allocation_may_be_refused) {
    static const int64_t cuts[2] = {0, 2};
    static const ptowsp_mesh_layout all = {"t", 4, 2, {2, 3}, {{PTOWSP_REPLICATED, 0, NULL}}};
    static const ptowsp_mesh_layout rows = {"t", 4, 2, {2, 3}, {{PTOWSP_SHARDED, 0, NULL}}};
    static const ptowsp_mesh_layout cols = {"t", 4, 2, {2, 3}, {{PTOWSP_SHARDED, 1, NULL}}};
    static const ptowsp_mesh_layout cut = {"t", 4, 2, {2, 3}, {{PTOWSP_SHARDED, 0, cuts}}};
    static const struct {
        const ptowsp_mesh_layout *from, *to;
        uint32_t least;
    } pairs[] = {{&summed, &whole, 4}, {&rows, &cols, 3}, {&cut, &all, 2}, {&rows, &all, 2}};
    for (size_t k = 0; k < COUNT_OF(pairs); k++) {
        EACH_REFUSED(n, pairs[k].least) {
            alone a;
            int32_t in[6] = {1, 2, 3, 4, 5, 6}, out[6] = {0};
            alone_make(&a);
            test_refuse(&a.memory, n);
            has_more = test_was_refused(&a.memory,
                                        ptowsp_ranks_relayout(a.ranks, &mesh, pairs[k].from,
                                                              pairs[k].to, PTOWSP_I32, in, out));
            if (has_more) {
                assert_non_null(strstr(ptowsp_context_error(a.context).text, "out of memory"));
            } else {
                assert_memory_equal(in, out, sizeof in);
            }
            alone_end(&a);
        }
    }
}
