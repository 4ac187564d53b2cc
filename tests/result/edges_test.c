// Edges of small runs, worked out on paper: which task waits for which, why, and through which tiles.

#include "see_fixture.h"

static void say(void *user, const char *text) {
    strncat((char *)user, text, 1500 - strlen((char *)user) - 1);
}

static bool say_edge(void *user, const ptowsp_edge *edge) {
    char text[200];
    snprintf(text, sizeof text, "%d<%d %s", (int)edge->to, (int)edge->from,
             ptowsp_edge_reason_name(edge->reason));
    say(user, text);
    if (edge->reason == PTOWSP_EDGE_TENSOR) {
        snprintf(text, sizeof text, " %ux%u at %d,%d to %ux%u at %d,%d", edge->earlier.rows,
                 edge->earlier.cols, (int)edge->earlier.row, (int)edge->earlier.col,
                 edge->later.rows, edge->later.cols, (int)edge->later.row, (int)edge->later.col);
        say(user, text);
    }
    say(user, "\n");
    return true;
}

static bool say_one(void *user, const ptowsp_edge *edge) {
    say_edge(user, edge);
    return false;
}

static void run_edges(see *s) {
    const ptowsp_record_options edges = {PTOWSP_RECORD_EDGES, 0, 0, 0, false};
    see_run(s, &edges);
}

// Task 3 and 7 are merges of request 0 and 1; on lane 0 alone, each task waits for the lane, too.
TEST(edges__have_reasons_and_tiles) {
    see s = {0};
    char text[1500] = "";
    see_make(&s, NULL, 2);
    run_edges(&s);
    assert_true(ptowsp_run_edges(s.run, 7, say_edge, text));
    assert_string_equal(text, "7<6 structure\n7<5 structure\n7<4 structure\n"
                              "7<6 tensor 1x2 at 1,4 to 1x6 at 1,0\n"
                              "7<5 tensor 1x2 at 1,2 to 1x6 at 1,0\n"
                              "7<4 tensor 1x2 at 1,0 to 1x6 at 1,0\n");
    text[0] = '\0';
    assert_true(ptowsp_run_edges(s.run, 4, say_edge, text));
    assert_string_equal(text, "4<3 lane\n");
    text[0] = '\0';
    assert_false(ptowsp_run_edges(s.run, PTOWSP_NO_INDEX, say_one, text));
    assert_string_equal(text, "1<0 lane\n");
    text[0] = '\0';
    assert_true(ptowsp_run_edges(s.run, 8, say_edge, text));
    see_run_tasks(&s);
    assert_true(ptowsp_run_edges(s.run, 7, say_edge, text));
    assert_string_equal(text, "");
    see_free(&s);
}

// Tasks of a pipeline follow what is before it; among them are their processes and channels.
TEST(edges__tasks_of_pipelines_follow_what_is_before_them) {
    see s = {0};
    char text[1500] = "";
    see_make_pipeline(&s);
    run_edges(&s);
    assert_true(ptowsp_run_edges(s.run, PTOWSP_NO_INDEX, say_edge, text));
    assert_non_null(strstr(text, "1<0 structure\n"));
    assert_non_null(strstr(text, "2<0 structure\n"));
    assert_non_null(strstr(text, "8<0 structure\n"));
    assert_non_null(strstr(text, "channel\n"));
    assert_null(strstr(text, "tensor"));
    see_free(&s);
}

TEST(edges__are_of_all_tasks_or_none) {
    see s = {0};
    see_make(&s, NULL, 1);
    ptowsp_record_options some = {PTOWSP_RECORD_EDGES, 0, 0, 2, false};
    for (int i = 0; i < 3; i++) {
        some.every = i == 0 ? 2 : 1;
        some.begin = i == 1;
        some.end = i == 2;
        test_invalid(s.context, ptowsp_run_record(s.run, &some),
                     "run: edges are recorded of all tasks, not of a window or every n-th");
    }
    see_free(&s);
}
