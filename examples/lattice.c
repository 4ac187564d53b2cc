// A workload on threads whose order follows from its data alone: a table in which each number is the
// sum of those above and to the left of it. Tasks stand in parallel loops, so nothing but the tiles
// that they share says which waits for which.
//
//      parallel i, j of 16 x 16:     x[i + 1][j + 1] = x[i][j + 1] + x[i + 1][j]
//
// With ones at the edges, x[i][j] is the binomial (i + j over i), which is checked, for 1 and for 4
// lanes of the context. The simulated time is worked out on paper: on as many lanes of the schedule
// as the longest diagonal has tasks, it is that of the 31 diagonals.

#include "ptowsp.h"

#include <stdio.h>

#define SIDE   16
#define CYCLES 10

static ptowsp_cycles add(const ptowsp_task *task, void *user) {
    const uint64_t *above = (const uint64_t *)task->tiles[0].data;
    const uint64_t *left = (const uint64_t *)task->tiles[1].data;
    *(uint64_t *)task->tiles[2].data = *above + *left;
    return user ? 0 : CYCLES;
}

static uint64_t binomial(uint64_t n, uint64_t k) {
    uint64_t value = 1;
    for (uint64_t i = 1; i <= k; i++) {
        value = value * (n - k + i) / i;
    }
    return value;
}

static uint64_t table[SIDE + 1][SIDE + 1];

static bool is_right(void) {
    for (uint64_t i = 0; i <= SIDE; i++) {
        for (uint64_t j = 0; j <= SIDE; j++) {
            if (table[i][j] != binomial(i + j, i)) {
                return false;
            }
        }
    }
    return true;
}

static void build(ptowsp_module *m) {
    ptowsp_tensor_desc matrix = {
        .name = "x", .dtype = PTOWSP_U64, .rank = 2, .shape = {SIDE + 1, SIDE + 1}};
    ptowsp_tensor x = ptowsp_tensor_make(m, &matrix);
    ptowsp_kernel_desc kernel = {
        .name = "add",
        .fn = add,
        .tiles = {
            {.name = "above", .direction = PTOWSP_IN, .dtype = PTOWSP_U64, .rows = 1, .cols = 1},
            {.name = "left", .direction = PTOWSP_IN, .dtype = PTOWSP_U64, .rows = 1, .cols = 1},
            {.name = "sum", .direction = PTOWSP_OUT, .dtype = PTOWSP_U64, .rows = 1, .cols = 1}}};
    ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(m, &kernel)};
    ptowsp_axis side = ptowsp_axis_dense(m, "side", SIDE);
    ptowsp_expr one = ptowsp_i64(m, 1);
    PTOWSP_WORKLOAD(m, "lattice") {
        PTOWSP_PARALLEL(m, i, side) {
            PTOWSP_PARALLEL(m, j, side) {
                ptowsp_expr below = ptowsp_add(i, one), right = ptowsp_add(j, one);
                task.views[0] = (ptowsp_view){.tensor = x, .row = i, .col = right};
                task.views[1] = (ptowsp_view){.tensor = x, .row = below, .col = j};
                task.views[2] = (ptowsp_view){.tensor = x, .row = below, .col = right};
                ptowsp_task_make(m, &task);
            }
        }
    }
}

int main(void) {
    ptowsp_context_desc threads = {.threads = PTOWSP_THREADS_OWN, .lane_count = 4};
    ptowsp_context *context;
    ptowsp_module *m;
    if (ptowsp_context_create(&threads, &context) || ptowsp_module_create(context, NULL, &m)) {
        return 1;
    }
    build(m);

    ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_WORK_STEALING, .lane_count = SIDE};
    ptowsp_program_desc how = {.schedule = &schedule};
    ptowsp_program *program;
    ptowsp_run *run;
    ptowsp_buffer buffer = {.data = table};
    if (ptowsp_program_create(context, m, &how, &program) ||
        ptowsp_run_create(context, program, &run) || ptowsp_run_bind_tensor(run, "x", &buffer)) {
        puts(ptowsp_context_error(context).text);
        return 1;
    }
    int wrong = 0;
    for (uint32_t lanes = 1; lanes <= 4; lanes += 3) {
        for (int i = 0; i <= SIDE; i++) {
            for (int j = 0; j <= SIDE; j++) {
                table[i][j] = i == 0 || j == 0;
            }
        }
        ptowsp_run_options options = {.lane_count = lanes};
        if (ptowsp_run_execute(run, &options)) {
            puts(ptowsp_context_error(context).text);
            return 1;
        }
        ptowsp_cycles cycles = ptowsp_run_result(run)->makespan_cycles;
        bool is_good = is_right() && cycles == CYCLES * (2 * SIDE - 1);
        wrong += !is_good;
        printf("%u of the context's lanes: 32 over 16 is %llu, after %llu cycles on %d simulated "
               "lanes: %s\n",
               lanes, (unsigned long long)table[SIDE][SIDE], (unsigned long long)cycles, SIDE,
               is_good ? "good" : "WRONG");
    }

    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
    return wrong ? 1 : 0;
}
