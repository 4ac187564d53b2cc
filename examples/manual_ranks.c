// Sections 26 and 27 of the manual: two ranks, as threads, sum over each other while they do
// something else, and bring a matrix from rows to columns; layouts over a mesh as rules; and linear
// layouts of tiles, with the bank conflicts that they cause.

#include "common/manual.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 2, ROWS = 4, COLS = 6 };

static const ptowsp_mesh mesh = {.axis_count = 1, .names = {"tp"}, .sizes = {RANKS}};

static ptowsp_mesh_layout layout_of(ptowsp_spread_kind kind, uint32_t dim) {
    return (ptowsp_mesh_layout){.name = "w",
                                .element_bytes = sizeof(float),
                                .rank = 2,
                                .shape = {ROWS, COLS},
                                .spreads = {{.kind = kind, .dim = dim}}};
}

// -- a rank ---------------------------------------------------------------------------------------

typedef struct thread_rank {
    pthread_t thread;
    ptowsp_transport transport;
    uint32_t number;
} thread_rank;

static void *rank_run(void *user) {
    const thread_rank *me = (const thread_rank *)user;
    const uint32_t number = me->number;
    ptowsp_context *context;
    ptowsp_ranks *ranks;
    if (ptowsp_context_create(NULL, &context)) {
        return "no context";
    }
    const ptowsp_ranks_desc desc = {
        .rank = number, .rank_count = RANKS, .transport = me->transport};
    if (ptowsp_ranks_create(context, &desc, &ranks)) {
        return "no communicator";
    }
    const ptowsp_collective sum = {.kind = PTOWSP_ALL_REDUCE,
                                   .reduction = PTOWSP_REDUCTION_SUM,
                                   .dtype = PTOWSP_F32,
                                   .count = 3,
                                   .members = RANKS};
    float values[3] = {1, 2, (float)ptowsp_ranks_rank(ranks)}, sums[3];
    bool is_done = false, is_right;
    is_right = ptowsp_ranks_start(ranks, &sum, values, sums) == PTOWSP_OK;
    for (int i = 0; i < 100 && !is_done; i++) {  // between pieces of other work
        is_right = is_right && ptowsp_ranks_poll(ranks, &is_done) == PTOWSP_OK;
    }
    if (!is_done) {
        is_right = is_right && ptowsp_ranks_wait(ranks) == PTOWSP_OK;
    }
    is_right = is_right && ptowsp_ranks_count(ranks) == RANKS && sums[0] == 2 && sums[1] == 4 &&
               sums[2] == 1;

    // Rank r has rows 2 r and 2 r + 1, and gets columns 3 r to 3 r + 2. Element (i, j) is 10 i + j.
    const ptowsp_mesh_layout by_row = layout_of(PTOWSP_SHARDED, 0);
    const ptowsp_mesh_layout by_column = layout_of(PTOWSP_SHARDED, 1);
    float rows[ROWS / RANKS][COLS], columns[ROWS][COLS / RANKS];
    for (uint32_t i = 0; i < ROWS / RANKS; i++) {
        for (uint32_t j = 0; j < COLS; j++) {
            rows[i][j] = (float)(10 * (number * ROWS / RANKS + i) + j);
        }
    }
    is_right = is_right && ptowsp_ranks_relayout(ranks, &mesh, &by_row, &by_column, PTOWSP_F32,
                                                 rows, columns) == PTOWSP_OK;
    for (uint32_t i = 0; i < ROWS; i++) {
        for (uint32_t j = 0; j < COLS / RANKS; j++) {
            is_right = is_right && columns[i][j] == (float)(10 * i + number * COLS / RANKS + j);
        }
    }
    ptowsp_ranks_destroy(ranks);
    ptowsp_context_destroy(context);
    return is_right ? NULL : "a sum or a column";
}

static void ranks_run(ptowsp_context *context) {
    const ptowsp_hub_desc desc = {.rank_count = RANKS};
    ptowsp_hub *hub;
    thread_rank threads[RANKS];
    if (ptowsp_hub_create(context, &desc, &hub)) {
        manual_check(false, ptowsp_context_error(context).text);
        return;
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        threads[r].number = r;
        threads[r].transport = ptowsp_hub_transport(hub, r);
        if (pthread_create(&threads[r].thread, NULL, rank_run, &threads[r])) {
            exit(1);
        }
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        void *fault;
        pthread_join(threads[r].thread, &fault);
        manual_check(!fault, (const char *)fault);
    }
    ptowsp_hub_destroy(hub);
}

// -- layouts over a mesh --------------------------------------------------------------------------

static void mesh_show(ptowsp_context *context) {
    const ptowsp_mesh_layout x = layout_of(PTOWSP_REPLICATED, 0), w = layout_of(PTOWSP_SHARDED, 1);
    ptowsp_mesh_layout a = x, b = w, product;
    a.shape[0] = 8, a.shape[1] = ROWS;  // [8 x 4] by [4 x 6]
    uint32_t rank_count;
    manual_check(!ptowsp_mesh_check(context, &mesh, &rank_count) && rank_count == RANKS &&
                     ptowsp_mesh_coordinate(&mesh, 1, 0) == 1 &&
                     !ptowsp_mesh_layout_check(context, &mesh, &a),
                 ptowsp_context_error(context).text);
    manual_check(
        !ptowsp_mesh_layout_join(context, &mesh, PTOWSP_JOIN_MATMUL, &a, &b, "x w", &product),
        ptowsp_context_error(context).text);
    ptowsp_mesh_layout_print(&mesh, &product, manual_output());
    puts("");
    ptowsp_mesh_layout all = product;
    all.spreads[0] = (ptowsp_spread){.kind = PTOWSP_REPLICATED};
    ptowsp_relayout steps;
    manual_check(!ptowsp_mesh_layout_relayout(context, &mesh, &product, &all, &steps) &&
                     steps.step_count == 1 && steps.steps[0].kind == PTOWSP_RELAYOUT_ALL_GATHER,
                 "one gather brings it to all ranks");
    const ptowsp_collective gather = {.kind = PTOWSP_ALL_GATHER,
                                      .algorithm = PTOWSP_ALGORITHM_RING,
                                      .dtype = PTOWSP_F32,
                                      .count = 8 * COLS,
                                      .members = RANKS};
    ptowsp_collective_print(&gather, 0, manual_output());
}

// -- linear layouts -------------------------------------------------------------------------------

// 32 lanes read a column of 32 x 32 words. In rows one after another all words are in one of 32 banks;
// swizzled, each is in a bank of its own.
static void linear_show(void) {
    ptowsp_linear rows, swizzle, lanes, inverse, back, identity, cyclic, by_rank;
    uint64_t plain = 0, swizzled = 0;
    bool is_right =
        !ptowsp_linear_strided(5, 5, &lanes) &&  // lane i reads word 32 i: row i of column 0
        !ptowsp_linear_swizzle(5, 5, 0, 5, &swizzle) && !ptowsp_linear_identity(10, &identity);
    is_right = is_right && !ptowsp_linear_conflicts(&lanes, 0, 5, &plain) &&
               !ptowsp_linear_compose(&swizzle, &lanes, &rows) &&
               !ptowsp_linear_conflicts(&rows, 0, 5, &swizzled) && plain == 32 && swizzled == 1;
    is_right =
        is_right && ptowsp_linear_apply(&rows, 3) == 3 * 32 + 3 && ptowsp_linear_rank(&rows) == 5;
    is_right = is_right && !ptowsp_linear_inverse(&swizzle, &inverse) &&
               !ptowsp_linear_compose(&inverse, &swizzle, &back) &&
               memcmp(back.columns, identity.columns, 10 * sizeof(uint64_t)) == 0;
    // 16 elements dealt to 4 owners in turn: position 2 of owner 1 is element 9. Transposed twice it
    // is as before.
    is_right = is_right && !ptowsp_linear_blocked(4, 2, 0, &cyclic) &&
               ptowsp_linear_apply(&cyclic, 1 << 2 | 2) == 9 &&
               !ptowsp_linear_transpose(&cyclic, &by_rank) &&
               !ptowsp_linear_transpose(&by_rank, &by_rank) &&
               memcmp(by_rank.columns, cyclic.columns, 4 * sizeof(uint64_t)) == 0;
    manual_check(is_right, "linear layouts");
    printf("a column of 32 words: %u accesses of the busiest bank, swizzled %u\n", (unsigned)plain,
           (unsigned)swizzled);
}

int main(void) {
    ptowsp_context *context;
    if (ptowsp_context_create(NULL, &context)) {
        return 1;
    }
    ranks_run(context);
    mesh_show(context);
    linear_show();
    ptowsp_context_destroy(context);
    return manual_end();
}
