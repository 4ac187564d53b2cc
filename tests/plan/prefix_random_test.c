// Prefix trees and plans, at random: trees against all pairs of requests, decisions against all
// choices, plans by counting what each row meets, and by running them.

#include "prefix_judge.h"

#include "src/plan/prefix.h"

// -- trees ----------------------------------------------------------------------------------------

TEST(prefix__trees_are_what_all_pairs_say) {
    const uint64_t seed = test_seed();
    for (uint64_t i = 0; i < test_rounds(10000); i++) {
        sample s;
        sample_make(&s, seed + i * 7919, REQUESTS);
        s.tree.is_ordered = i % 4 == 0;
        build(&s);
        require_tree(&s, &s.tree, s.count);
        // The same by adding in another order, with a few that come and go.
        sample t;
        sample_make(&t, seed + i * 7919, REQUESTS);
        t.tree.is_ordered = s.tree.is_ordered;
        ptowsp_plan_info info;
        uint32_t list[REQUESTS], present = 0;
        for (uint32_t r = 0; r < t.count; r++) {
            const uint32_t at = t.tree.is_ordered ? r : sample_in(&t, 0, r);
            memmove(list + at + 1, list + at, (r - at) * sizeof *list);
            list[at] = r;
        }
        for (uint32_t r = 0; r < t.count; r++) {
            require(&t, ptowsp_prefix_add(&t.batch, list[r], &t.tree, &info) == PTOWSP_OK);
            require_tree(&t, &t.tree, ++present);
            if (!t.tree.is_ordered && sample_in(&t, 0, 2) == 0) {
                const uint32_t gone = list[sample_in(&t, 0, r)];
                require(&t, ptowsp_prefix_remove(gone, &t.tree, &info) == PTOWSP_OK);
                require_tree(&t, &t.tree, present - 1);
                require(&t, ptowsp_prefix_add(&t.batch, gone, &t.tree, &info) == PTOWSP_OK);
            }
        }
        require(&t, trees_equal(&s.tree, &t.tree));
        free(s.block);
        free(t.block);
    }
}

// -- decisions ------------------------------------------------------------------------------------

TEST(prefix__decisions_are_the_best_of_all_choices) {
    const uint64_t seed = test_seed();
    uint64_t shared_nodes = 0, tried = 0, partial = 0;
    for (uint64_t i = 0; i < test_rounds(10000); i++) {
        sample s;
        sample_make(&s, seed + i * 104729, REQUESTS);
        build(&s);
        if (s.tree.node_count <= NODES_TRIED && s.count > 0) {
            pwsp_attention a;
            pwsp_prefix_scratch scratch;
            ptowsp_plan_info info;
            require(&s, pwsp_prefix_prepare(&s.batch.attention, &s.config, &s.tree, &a, &scratch,
                                            &info) == PTOWSP_OK);
            pwsp_prefix_choose(&a, &s.tree, &scratch);
            uint32_t chosen = 0;
            for (uint32_t n = 0; n < s.tree.node_count; n++) {
                chosen |= s.tree.nodes[n].is_shared << n;
                shared_nodes += s.tree.nodes[n].is_shared;
            }
            uint64_t reads;
            const double own = slow_choice(&s, chosen, &reads);
            double best = slow_choice(&s, 0, &reads);
            for (uint32_t choice = 1; choice < UINT32_C(1) << s.tree.node_count; choice++) {
                const double cost = slow_choice(&s, choice, &reads);
                best = cost >= 0 && cost < best ? cost : best;
            }
            require(&s, own >= 0 && own <= best && own >= best);
            tried++;
            partial += chosen != 0 && chosen != (UINT32_C(1) << s.tree.node_count) - 1;
        }
        free(s.block);
    }
    print_message("%llu trees, %llu nodes shared, %llu trees in part\n", (unsigned long long)tried,
                  (unsigned long long)shared_nodes, (unsigned long long)partial);
    assert_true(partial > tried / 50);
}

// -- plans ----------------------------------------------------------------------------------------

TEST(prefix__plans_compute_what_flat_plans_do) {
    const uint64_t seed = test_seed();
    uint64_t shared = 0, joins = 0, same_bits = 0;
    ptowsp_context_desc desc = test_lanes_desc(3);
    ptowsp_context *threads = test_context(&desc);
    for (uint64_t i = 0; i < test_rounds(42000); i++) {  // one in six is run
        sample s;
        sample_make(&s, seed + i * 15485863, REQUESTS);
        s.tree.is_ordered = i % 5 == 0;
        build(&s);
        planned p = plan_make(&s);
        require(&s, p.plan.cost <= p.plan.flat_cost && p.plan.time <= p.plan.flat_time);
        if (i % 6 != 0) {
            free(p.block);
            free(s.block);
            continue;
        }
        require_numbers(&s, &p.plan);
        plan_run run;
        run_make(&run, &s, &p.plan.attention, &p.plan);
        run_plan(&run, i / 6 % RUN_WAYS, threads);
        require_met(&run);
        require_outputs(&run);
        shared += p.plan.shared_count;
        joins += p.plan.join_count;
        if (s.config.mode == PTOWSP_ATTENTION_INVARIANT) {
            ptowsp_attention_sizes sizes;
            ptowsp_attention_plan flat;
            const ptowsp_attention_batch *batch = &s.batch.attention;
            require(&s, ptowsp_attention_size(batch, &s.config, &sizes, NULL) == PTOWSP_OK);
            void *block = malloc((size_t)sizes.block_bytes);
            ptowsp_attention_place(&sizes, block, sizes.block_bytes, &flat);
            require(&s, ptowsp_attention_generate(batch, &s.config, &flat, NULL) == PTOWSP_OK);
            plan_run other;
            run_make(&other, &s, &flat, NULL);
            run_plan(&other, RUN_SERIAL, NULL);
            const uint32_t last = s.count > 0 ? s.count - 1 : 0;
            const size_t rows = s.count > 0 ? run.first[last] + sample_queries(&s, last) : 0;
            const size_t floats = rows * s.config.kv_head_count * s.config.group * DIM;
            require(&s, memcmp(run.out, other.out, floats * sizeof(float)) == 0);
            same_bits += p.plan.shared_count > 0;
            run_free(&other);
            free(block);
        }
        run_free(&run);
        free(p.block);
        free(s.block);
    }
    print_message("%llu segments shared, %llu joins, %llu plans with the bits of flat ones\n",
                  (unsigned long long)shared, (unsigned long long)joins,
                  (unsigned long long)same_bits);
    assert_met(shared > 0 && joins > 0 && same_bits > 0);
    ptowsp_context_destroy(threads);
}
