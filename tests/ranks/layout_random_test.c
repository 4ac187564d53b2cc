// Random programs over meshes of up to 4 x 4 ranks, which are threads: see layout_programs.h.
//
// LAYOUT_PROGRAMS is how many, default 300 at a scale of 100 percent.

#include "test.h"

#include "layout_programs.h"

#include <stdlib.h>

enum { BATCH = 20 };

typedef struct batch {
    const plan *plans;
    uint32_t count;
} batch;

typedef struct member {
    const batch *all;
    ptowsp_hub *hub;
    uint32_t rank, lane_count, failed;
    char why[256];
} member;

static void *member_main(void *user) {
    member *own = (member *)user;
    ptowsp_context_desc desc = {.threads = PTOWSP_THREADS_OWN, .lane_count = own->lane_count};
    ptowsp_context *context = NULL;
    ptowsp_ranks *ranks = NULL;
    ptowsp_ranks_desc ranks_desc = {.rank = own->rank,
                                    .rank_count = own->all->plans->rank_count,
                                    .transport = ptowsp_hub_transport(own->hub, own->rank)};
    bool is_good = ptowsp_context_create(&desc, &context) == PTOWSP_OK &&
                   ptowsp_ranks_create(context, &ranks_desc, &ranks) == PTOWSP_OK;
    while (is_good && own->failed < own->all->count) {
        is_good =
            plan_run(&own->all->plans[own->failed], context, ranks, own->why, sizeof own->why);
        own->failed += is_good;
    }
    ptowsp_ranks_destroy(ranks);
    ptowsp_context_destroy(context);
    return NULL;
}

static void run_batch(const batch *all, uint64_t seed, uint32_t lane_count) {
    const uint32_t rank_count = all->plans->rank_count;
    ptowsp_context *context = test_context(NULL);
    ptowsp_hub *hub = test_hub(context, rank_count, 0);
    member members[PLAN_RANKS] = {0};
    for (uint32_t r = 0; r < rank_count; r++) {
        members[r].all = all;
        members[r].hub = hub;
        members[r].rank = r;
        members[r].lane_count = lane_count;
    }
    test_threads(member_main, members, sizeof members[0], rank_count);
    for (uint32_t r = 0; r < rank_count; r++) {
        if (members[r].failed < all->count) {
            print_error("seed %llu: %s\n", (unsigned long long)(seed + members[r].failed),
                        members[r].why);
        }
        assert_int_equal(members[r].failed, all->count);
    }
    ptowsp_hub_destroy(hub);
    ptowsp_context_destroy(context);
}

TEST(layout_random__ranks_have_the_bits_of_the_model_and_the_numbers_of_one_rank) {
    const char *count_text = getenv("LAYOUT_PROGRAMS");
    const uint64_t count = count_text ? strtoull(count_text, NULL, 10) : test_rounds(300);
    uint64_t relayouts = 0, ops = 0, loops = 0, seed = test_seed() << 20;
    plan *plans = (plan *)calloc(BATCH, sizeof *plans);
    assert_non_null(plans);
    for (uint64_t done = 0; done < count; done += BATCH, seed += BATCH) {
        static const char *const names[] = {"dp", "tp"};
        uint64_t random = seed;
        ptowsp_mesh mesh = {.axis_count = 1 + plan_below(&random, 4) % 2};
        for (uint32_t a = 0; a < mesh.axis_count; a++) {
            mesh.names[a] = names[a];
            mesh.sizes[a] = 1 + plan_below(&random, 4);
        }
        batch all = {plans, count - done < BATCH ? (uint32_t)(count - done) : BATCH};
        for (uint32_t i = 0; i < all.count; i++) {
            plan_make(&plans[i], seed + i, &mesh);
            if (!plan_is_exact(&plans[i])) {
                print_error("seed %llu: the model is not one rank\n",
                            (unsigned long long)(seed + i));
            }
            assert_true(plan_is_exact(&plans[i]));
            relayouts += plans[i].relayout_count;
            ops += plans[i].op_count;
            for (uint32_t k = 0; k < plans[i].op_count; k++) {
                loops += plans[i].ops[k].is_blocks;
            }
        }
        run_batch(&all, seed, plans->rank_count <= 4 && seed / BATCH % 2 ? 2 : 1);
    }
    free(plans);
    // The programs are what they should be: with relayouts, and loops.
    assert_met(relayouts > count && ops > 2 * count && loops > count / 10);
}
