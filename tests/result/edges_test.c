// Edges: how they are told, and what is refused. Which task waits for which, why, and through which tiles, is in
// cases/records.case.

#include "see_fixture.h"

static bool count_edge(void *user, const ptowsp_edge *edge) {
    (void)edge;
    return ++*(uint32_t *)user % 100 != 0;
}

// Task 7, a merge, has three edges by structure and three by data.
SEE_TEST(edges__are_told_until_one_is_enough, 1, 2) {
    uint32_t count = 0;
    const ptowsp_record_options edges = {PTOWSP_RECORD_EDGES, 0, 0, 0, false};
    see_run(s, &edges);
    assert_true(ptowsp_run_edges(s->run, 7, count_edge, &count));
    assert_int_equal(count, 6);
    count = 99;
    assert_false(ptowsp_run_edges(s->run, PTOWSP_NO_INDEX, count_edge, &count));
    assert_int_equal(count, 100);
    assert_true(ptowsp_run_edges(s->run, 8, count_edge, &count));
    see_run_tasks(s);
    assert_true(ptowsp_run_edges(s->run, 7, count_edge, &count));
    assert_int_equal(count, 100);
}

SEE_TEST(edges__are_of_all_tasks_or_none, 1, 1) {
    ptowsp_record_options some = {PTOWSP_RECORD_EDGES, 0, 0, 2, false};
    for (int i = 0; i < 3; i++) {
        some.every = i == 0 ? 2 : 1;
        some.begin = i == 1;
        some.end = i == 2;
        test_invalid(s->context, ptowsp_run_record(s->run, &some),
                     "run: edges are recorded of all tasks, not of a window or every n-th");
    }
}
