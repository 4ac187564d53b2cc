// Copies are a C function, softmax is made of operations on tiles. stages.h says what happens.

#include "stages.h"

#include "command.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS = STAGES_ROWS,
    COLS = STAGES_COLS,
    FAR_EVERY = STAGES_FAR_EVERY,
    FAR_CYCLES = STAGES_FAR_CYCLES,
    PLACES = STAGES_DEPTH_MAX + 2
};

// -- kernels: the first is compiled here, and kept as text ----------------------------------------

// clang-format off
PTOWSP_SOURCE(copy_source,

static ptowsp_cycles copy(const ptowsp_task *task, void *user) {
    const ptowsp_tile *from = &task->tiles[0], *to = &task->tiles[1];
    (void)user;
    for (int64_t row = 0; row < ptowsp_task_rows(task, 0); row++) {
        memcpy((float *)to->data + row * to->row_stride,
               (const float *)from->data + row * from->row_stride,
               (size_t)ptowsp_task_cols(task, 0) * sizeof(float));
    }
    return 0;  // copy_cost says how long it takes
}

static ptowsp_cycles copy_cost(const ptowsp_task *task, void *user) {
    (void)user;
    int64_t count = ptowsp_task_rows(task, 0) * ptowsp_task_cols(task, 0);
    return (ptowsp_cycles)count * ptowsp_task_scalar(task, 0);
}
)
// clang-format on

static ptowsp_kernel copy_make(ptowsp_module *m, const char *name) {
    ptowsp_kernel_desc desc = {.name = name,
                               .axis_count = 1,  // the tile
                               .tiles = {{.name = "from",
                                          .direction = PTOWSP_IN,
                                          .dtype = PTOWSP_F32,
                                          .rows = ROWS,
                                          .cols = COLS},
                                         {.name = "to",
                                          .direction = PTOWSP_OUT,
                                          .dtype = PTOWSP_F32,
                                          .rows = ROWS,
                                          .cols = COLS}},
                               .scalars = {{.name = "element_cycles", .type = PTOWSP_TYPE_U64}},
                               .fn = copy,
                               .cost = copy_cost,
                               .source = {.text = copy_source, .fn = "copy", .cost = "copy_cost"}};
    return ptowsp_kernel_make(m, &desc);
}

static ptowsp_kernel softmax_make(ptowsp_module *m) {
    ptowsp_body *k =
        ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "softmax", .axis_count = 1});
    ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, ROWS, COLS);
    ptowsp_value y = ptowsp_tile_out(k, "y", PTOWSP_F32, ROWS, COLS);
    ptowsp_value e = ptowsp_tile_exp(ptowsp_tile_sub(x, ptowsp_tile_rowmax(x)));
    ptowsp_tile_store(y, ptowsp_tile_div(e, ptowsp_tile_rowsum(e)));
    return ptowsp_kernel_end(k);
}

// -- workloads ------------------------------------------------------------------------------------

// What happens to tile i, which has place `place` in both rings.
static ptowsp_task_desc load_task(const stages *p, ptowsp_expr i, ptowsp_expr place) {
    ptowsp_module *m = p->s->module;
    ptowsp_expr zero = ptowsp_i64(m, 0), row = ptowsp_mul(i, ptowsp_i64(m, ROWS));
    ptowsp_expr turn = ptowsp_rem(i, ptowsp_i64(m, FAR_EVERY));
    ptowsp_expr is_far = ptowsp_eq(turn, ptowsp_i64(m, FAR_EVERY - 1));
    return (ptowsp_task_desc){
        .kernel = p->load,
        .axes = {i},
        .views = {setup_view(p->x, row, zero), setup_stack_view(p->loaded, place, zero, zero)},
        .scalars = {ptowsp_select(is_far, ptowsp_u64(m, FAR_CYCLES), ptowsp_u64(m, 1))}};
}

static ptowsp_task_desc softmax_task(const stages *p, ptowsp_expr i, ptowsp_expr place) {
    ptowsp_expr zero = ptowsp_i64(p->s->module, 0);
    return (ptowsp_task_desc){.kernel = p->softmax,
                              .axes = {i},
                              .views = {setup_stack_view(p->loaded, place, zero, zero),
                                        setup_stack_view(p->made, place, zero, zero)}};
}

static ptowsp_task_desc store_task(const stages *p, ptowsp_expr i, ptowsp_expr place) {
    ptowsp_module *m = p->s->module;
    ptowsp_expr zero = ptowsp_i64(m, 0), row = ptowsp_mul(i, ptowsp_i64(m, ROWS));
    return (ptowsp_task_desc){
        .kernel = p->store,
        .axes = {i},
        .views = {setup_stack_view(p->made, place, zero, zero), setup_view(p->y, row, zero)},
        .scalars = {ptowsp_u64(m, 1)}};
}

// The place of a tile.
static ptowsp_expr place_of(ptowsp_module *m, ptowsp_expr i) {
    ptowsp_expr depth = ptowsp_cast(ptowsp_symbol(m, "depth"), PTOWSP_TYPE_I64);
    return ptowsp_rem(i, ptowsp_add(depth, ptowsp_i64(m, 2)));
}

static void pipeline_make(const stages *p, ptowsp_axis tiles) {
    ptowsp_module *m = p->s->module;
    ptowsp_channel_desc desc = {.name = "loaded",
                                .depth_at_start = ptowsp_symbol(m, "depth"),
                                .latency_at_start = ptowsp_symbol(m, "latency")};
    ptowsp_task_desc task;
    PTOWSP_WORKLOAD(m, "pipeline") {
        PTOWSP_PIPELINE(m, "softmax") {
            ptowsp_channel loaded = ptowsp_channel_make(m, &desc);
            desc.name = "made";
            ptowsp_channel made = ptowsp_channel_make(m, &desc);
            PTOWSP_PROCESS(m, "load") {
                ptowsp_produces(m, loaded);
                PTOWSP_FOR_EACH(m, i, tiles) {
                    task = load_task(p, i, place_of(m, i));
                    ptowsp_send_task_make(m, loaded, &task);  // sends i
                }
            }
            PTOWSP_PROCESS(m, "compute") {
                ptowsp_consumes(m, loaded);
                ptowsp_produces(m, made);
                PTOWSP_CONSUME(m, t, loaded) {
                    task = softmax_task(p, t, place_of(m, t));
                    ptowsp_send_task_make(m, made, &task);
                }
            }
            PTOWSP_PROCESS(m, "store") {
                ptowsp_consumes(m, made);
                PTOWSP_CONSUME(m, t, made) {
                    task = store_task(p, t, place_of(m, t));
                    ptowsp_task_make(m, &task);
                }
            }
        }
    }
}

static void sequence_make(const stages *p, ptowsp_axis tiles) {
    ptowsp_module *m = p->s->module;
    ptowsp_task_desc task;
    PTOWSP_WORKLOAD(m, "sequence") {
        PTOWSP_FOR_EACH(m, i, tiles) {
            task = load_task(p, i, ptowsp_i64(m, 0));
            ptowsp_task_make(m, &task);
            task = softmax_task(p, i, ptowsp_i64(m, 0));
            ptowsp_task_make(m, &task);
            task = store_task(p, i, ptowsp_i64(m, 0));
            ptowsp_task_make(m, &task);
        }
    }
}

// -- data -----------------------------------------------------------------------------------------

static void reference(const stages *p) {
    for (int64_t r = 0; r < p->x->rows; r++) {
        double most = -INFINITY, sum = 0.0;
        for (int64_t c = 0; c < COLS; c++) {
            most = fmax(most, setup_get(p->x, r, c));
        }
        for (int64_t c = 0; c < COLS; c++) {
            sum += p->wanted[r * COLS + c] = exp(setup_get(p->x, r, c) - most);
        }
        for (int64_t c = 0; c < COLS; c++) {
            p->wanted[r * COLS + c] /= sum;
        }
    }
}

static void bind(void *user, ptowsp_run *run) {
    const stages *p = (const stages *)user;
    ptowsp_run_bind_size(run, "tiles", p->x->rows / ROWS);
}

static void prepare(void *user) {
    const stages *p = (const stages *)user;
    setup_fill(p->loaded, NAN);
    setup_fill(p->made, NAN);
    setup_fill(p->y, NAN);
}

void stages_make(stages *p, setup *s) {
    const int64_t rows = STAGES_TILES_MAX * ROWS;
    ptowsp_module *m = s->module;
    p->s = s;
    p->x = setup_dynamic_make(s, "x", PTOWSP_F32, rows, COLS, true, false);
    p->loaded = setup_stack_make(s, "loaded", PTOWSP_F32, PLACES, ROWS, COLS);
    p->made = setup_stack_make(s, "made", PTOWSP_F32, PLACES, ROWS, COLS);
    p->y = setup_dynamic_make(s, "y", PTOWSP_F32, rows, COLS, true, false);
    p->wanted = (double *)command_allocate((uint64_t)(rows * COLS), sizeof(double));
    p->load = copy_make(m, "load");
    p->softmax = softmax_make(m);
    p->store = copy_make(m, "store");
    ptowsp_axis tiles = ptowsp_axis_dynamic(m, "tiles");
    pipeline_make(p, tiles);
    sequence_make(p, tiles);
    s->bind = bind;
    s->prepare = prepare;
    s->user = p;
}

void stages_destroy(stages *p) {
    free(p->wanted);
}

void stages_fill(stages *p, int64_t tile_count) {
    setup_resize(p->x, tile_count * ROWS, COLS);
    setup_resize(p->y, tile_count * ROWS, COLS);
    setup_fill_random(p->s, p->x, -20.0, 20.0);
    reference(p);
}
