// Times of kernels that are written as PTO-ISA's own, on all cores of a machine (predict_machine.h).
//
//     GEMM            a tile kernel for each core, the same that matmul --size runs: gemm_core.h
//     conv2d          instruction by instruction with the flags of a double-buffered kernel, on a
//                     core of the shim that does not compute, as tile kernels do not load feature
//                     maps: panels of A and B into L1, blocks of them into L0, both twice buffered;
//                     products into L0C, drained when the sum is complete
//     flash attention of two such cores: predict_attention.c
//     top-k           on such a core: rows sorted by 32, runs merged, values and indices gathered, two rows a step
//
// Dealt tiles go to all cores of the machine. A row that names 24 cores for a 950PR is read so, too: on 24
// its products alone would take 328 of the 323 us that it gives.
//
// Convolution with filters of 3 x 3 loads rows of its map, 16 channels at a time: as many as 128 pixels
// span, and one above and below. MTE1 makes a matrix of them.

#include "predict.h"

#include "gemm_core.h"
#include "predict_attention.h"
#include "predict_links.h"
#include "predict_machine.h"
#include "published.h"

#include "ptoisa_shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TILE_ROWS = 128, TILE_COLS = 256, CORE_ROWS = 4, CORE_COLS = 6, VECTOR_CORES = 48 };

// A product on all cores.
typedef struct product {
    int64_t m, n, depth;
    uint64_t tiles, panels;  // output tiles of a core; panels along k of each
    int64_t rows, cols;      // of the part of C that they are
    uint32_t k, blocks;      // a block along k, and how many a panel has
    uint32_t map_pixels;     // convolution: that a panel loads; 0: a panel of A
    double map_rows;         // that 128 pixels span
    bool is_dealt;           // tiles are dealt to cores; else each has a block of C
    bool is_turned;          // B is transposed from L1 to L0
    ptoisa_dtype out;
} product;

// Moves the next panels into L1: `slot` of two.
static void load_panels(ptoisa_core *core, const product *p, uint32_t slot) {
    uint32_t k = p->k * p->blocks;
    ptoisa_tile a =
        ptoisa_tile_make(NULL, PTOISA_F16, PTOISA_MAT, PTOISA_NZ,
                         p->map_pixels ? p->map_pixels : TILE_ROWS, p->map_pixels ? 16 : k);
    ptoisa_tile b = ptoisa_tile_make(NULL, PTOISA_F16, PTOISA_MAT, PTOISA_ZN, k, TILE_COLS);
    ptoisa_wait_flag(core, PTOISA_PIPE_MTE1, PTOISA_PIPE_MTE2, slot);
    ptoisa_issue(core, PTOISA_TLOAD, &a, NULL, NULL);
    ptoisa_issue(core, PTOISA_TLOAD, &b, NULL, NULL);
    ptoisa_set_flag(core, PTOISA_PIPE_MTE2, PTOISA_PIPE_MTE1, slot);
}

// Multiplies a block of the panels in L1: `slot` of two in L0.
static void multiply_block(ptoisa_core *core, const product *p, uint32_t slot, bool is_first) {
    ptoisa_tile a = ptoisa_tile_make(NULL, PTOISA_F16, PTOISA_MAT, PTOISA_NZ, TILE_ROWS, p->k);
    ptoisa_tile b = ptoisa_tile_make(NULL, PTOISA_F16, PTOISA_MAT,
                                     p->is_turned ? PTOISA_NZ : PTOISA_ZN, p->k, TILE_COLS);
    ptoisa_tile left = a, right = b;
    ptoisa_tile sum =
        ptoisa_tile_make(NULL, PTOISA_F32, PTOISA_ACC, PTOISA_NZ, TILE_ROWS, TILE_COLS);
    left.memory = PTOISA_LEFT;
    left.layout = core->machine->family == PTOISA_A5 ? PTOISA_NZ : PTOISA_ZZ;
    right.memory = PTOISA_RIGHT;
    right.layout = PTOISA_ZN;
    ptoisa_wait_flag(core, PTOISA_PIPE_M, PTOISA_PIPE_MTE1, slot);
    ptoisa_issue(core, PTOISA_TEXTRACT, &left, &a, NULL);
    if (p->map_pixels) {  // further rows, once for each filter element of the block
        double rows = (p->map_rows - 1) * p->k / 16;
        ptoisa_charge(core, PTOISA_PIPE_MTE1, (uint64_t)(rows * PTOISA_FITTED_MAP_ROW), 0);
    }
    ptoisa_issue(core, PTOISA_TEXTRACT, &right, &b, NULL);
    ptoisa_set_flag(core, PTOISA_PIPE_MTE1, PTOISA_PIPE_M, slot);
    ptoisa_wait_flag(core, PTOISA_PIPE_MTE1, PTOISA_PIPE_M, slot);
    ptoisa_issue(core, is_first ? PTOISA_TMATMUL : PTOISA_TMATMUL_ACC, &sum, &left, &right);
    ptoisa_set_flag(core, PTOISA_PIPE_M, PTOISA_PIPE_MTE1, slot);
}

static void multiply(ptoisa_core *core, const product *p) {
    ptoisa_tile sum =
        ptoisa_tile_make(NULL, PTOISA_F32, PTOISA_ACC, PTOISA_NZ, TILE_ROWS, TILE_COLS);
    uint64_t loaded = 0, multiplied = 0, panels = p->tiles * p->panels;
    for (uint32_t slot = 0; slot < 2; slot++) {
        ptoisa_set_flag(core, PTOISA_PIPE_MTE1, PTOISA_PIPE_MTE2, slot);
        ptoisa_set_flag(core, PTOISA_PIPE_M, PTOISA_PIPE_MTE1, slot);
    }
    ptoisa_set_flag(core, PTOISA_PIPE_FIX, PTOISA_PIPE_M, 0);
    load_panels(core, p, (uint32_t)(loaded++ % 2));
    for (uint64_t panel = 0; panel < panels; panel++) {
        uint64_t at = panel % p->panels;
        if (loaded < panels) {
            load_panels(core, p, (uint32_t)(loaded++ % 2));
        }
        if (at == 0) {
            ptoisa_wait_flag(core, PTOISA_PIPE_FIX, PTOISA_PIPE_M, 0);
        }
        ptoisa_wait_flag(core, PTOISA_PIPE_MTE2, PTOISA_PIPE_MTE1, (uint32_t)(panel % 2));
        if (p->map_pixels) {
            ptoisa_wait_until(core, PTOISA_PIPE_M,
                              core->clock[PTOISA_PIPE_M] + PTOISA_FITTED_MAP_WAIT);
        }
        for (uint32_t block = 0; block < p->blocks; block++) {
            multiply_block(core, p, (uint32_t)(multiplied++ % 2), at == 0 && block == 0);
        }
        ptoisa_set_flag(core, PTOISA_PIPE_MTE1, PTOISA_PIPE_MTE2, (uint32_t)(panel % 2));
        if (at + 1 == p->panels) {
            ptoisa_set_flag(core, PTOISA_PIPE_M, PTOISA_PIPE_FIX, 0);
            ptoisa_wait_flag(core, PTOISA_PIPE_M, PTOISA_PIPE_FIX, 0);
            ptoisa_issue_as(core, PTOISA_TSTORE, NULL, &sum, NULL, ptoisa_dtype_size(p->out));
            ptoisa_set_flag(core, PTOISA_PIPE_FIX, PTOISA_PIPE_M, 0);
        }
    }
}

// -- top-k ----------------------------------------------------------------------------------------

static ptoisa_tile in_ub(uint32_t rows, uint32_t cols) {
    return ptoisa_tile_vec(NULL, PTOISA_F32, rows, cols);
}

// Sorts a row of `cols` values: runs of 32 pairs, merged by four, at last by two.
static void sort_row(ptoisa_core *core, uint32_t cols) {
    ptoisa_tile values = in_ub(1, cols), pairs = in_ub(1, 2 * cols);
    ptoisa_issue(core, PTOISA_TSORT32, &pairs, &values, &values);
    uint32_t run = 32;
    while (run < cols) {
        ptoisa_issue_as(core, PTOISA_TMRGSORT, &pairs, &pairs, NULL, run);
        run *= 4;
    }
}

static void best_of_rows(ptoisa_core *core, uint64_t steps, uint32_t cols, uint32_t best) {
    ptoisa_tile input = in_ub(2, cols), output = in_ub(2, best), pairs = in_ub(1, 2 * cols);
    for (uint32_t slot = 0; slot < 2; slot++) {
        ptoisa_set_flag(core, PTOISA_PIPE_V, PTOISA_PIPE_MTE2, slot);
        ptoisa_set_flag(core, PTOISA_PIPE_MTE3, PTOISA_PIPE_V, slot);
    }
    for (uint64_t step = 0; step < steps; step++) {
        uint32_t slot = (uint32_t)(step % 2);
        ptoisa_wait_flag(core, PTOISA_PIPE_V, PTOISA_PIPE_MTE2, slot);
        ptoisa_issue(core, PTOISA_TLOAD, &input, NULL, NULL);
        ptoisa_set_flag(core, PTOISA_PIPE_MTE2, PTOISA_PIPE_V, slot);
        ptoisa_wait_flag(core, PTOISA_PIPE_MTE2, PTOISA_PIPE_V, slot);
        ptoisa_wait_flag(core, PTOISA_PIPE_MTE3, PTOISA_PIPE_V, slot);
        sort_row(core, cols);
        sort_row(core, cols);
        ptoisa_set_flag(core, PTOISA_PIPE_V, PTOISA_PIPE_MTE2, slot);
        for (int part = 0; part < 2; part++) {  // values, then indices, each of both rows
            ptoisa_issue(core, PTOISA_TGATHERMASK, &output, &pairs, NULL);
            ptoisa_issue(core, PTOISA_TGATHERMASK, &output, &pairs, NULL);
            ptoisa_set_flag(core, PTOISA_PIPE_V, PTOISA_PIPE_MTE3, slot);
            ptoisa_wait_flag(core, PTOISA_PIPE_V, PTOISA_PIPE_MTE3, slot);
            ptoisa_issue(core, PTOISA_TSTORE, NULL, &output, NULL);
        }
        ptoisa_set_flag(core, PTOISA_PIPE_MTE3, PTOISA_PIPE_V, slot);
    }
}

// -- rows -----------------------------------------------------------------------------------------

// The number after "key=", or 0. Of "5416(5504)", which is padded, the second.
static uint64_t number_after(const char *text, const char *key) {
    const char *at = text;
    size_t length = strlen(key);
    while ((at = strstr(at, key)) != NULL) {
        bool is_word = at == text || strchr(" :", at[-1]) != NULL;
        if (is_word && at[length] == '=') {
            char *end;
            uint64_t number = strtoull(at + length + 1, &end, 10);
            return *end == '(' ? strtoull(end + 1, NULL, 10) : number;
        }
        at += length;
    }
    return 0;
}

static bool refuse_kernel(char reason[PREDICT_REASON_MAX], const char *text) {
    snprintf(reason, PREDICT_REASON_MAX, "%s", text);
    return false;
}

// Runs a kernel of the shim on all cores: first with memory to itself, which gives its cycles and bytes,
// then at the rate that cores had, for the pipes.
typedef void (*core_fn)(ptoisa_core *core, const void *user);

static bool run_on_cores(predict_machine *machine, const ptowsp_kernel_desc *desc, core_fn fn,
                         const void *user, predict_times *out, char reason[PREDICT_REASON_MAX]) {
    ptoisa_core core;
    double us, rate;
    ptowsp_kernel_desc kernel = *desc;
    ptoisa_traffic traffic = {0, 0, 0};
    ptoisa_core_init(&core, (ptoisa_model)machine->model, NULL);
    core.is_dry = true;
    core.traffic = &traffic;
    fn(&core, user);
    kernel.cycles = ptoisa_cycles(&core);
    kernel.bytes = traffic.bytes;
    if (!predict_machine_run(machine, ptowsp_kernel_make(machine->module, &kernel), &us, &rate,
                             reason)) {
        return false;
    }
    ptoisa_core_init(&core, (ptoisa_model)machine->model, NULL);
    core.is_dry = true;
    core.traffic = &traffic;
    traffic.share = (uint64_t)(rate / 100 * PTOISA_TRAFFIC_STEPS);
    fn(&core, user);
    predict_shares(machine, core.busy, us, out);
    return true;
}

// The time of a product as a tile kernel.
static bool measure_product(predict_machine *machine, const product *p, predict_times *out,
                            char reason[PREDICT_REASON_MAX]) {
    const ptowsp_machine a5 = ptowsp_machine_950pr();
    const gemm_core part = {.rows = p->rows,
                            .cols = p->cols,
                            .depth = p->depth,
                            .panel = (int64_t)p->blocks * p->k,
                            .out = p->out == PTOISA_F16 ? PTOWSP_F16 : PTOWSP_F32,
                            .machine = machine->model == PTOWSP_MODEL_950PR ? &a5 : NULL};
    ptowsp_core_timing timing = ptowsp_core_timing_of(machine->model);
    const ptowsp_cost cost = {.model = machine->model, .timing = &timing};
    const ptowsp_kernel kernel = gemm_core_make(machine->module, "part", &part);
    ptowsp_kernel_stats stats;
    double us, rate;
    if (!predict_machine_run(machine, kernel, &us, &rate, reason)) {
        return false;
    }
    for (int i = 0; i < PTOWSP_PATH_COUNT; i++) {
        bool is_global = i == PTOWSP_PATH_GM_TO_L1 || i == PTOWSP_PATH_L0C_TO_GM;
        if (is_global && rate < timing.paths[i].rate) {
            timing.paths[i].rate = (uint32_t)rate;
        }
    }
    if (ptowsp_kernel_measure(machine->module, kernel, &cost, &stats)) {
        return refuse_kernel(reason, ptowsp_context_error(machine->context).text);
    }
    predict_shares(machine, stats.busy_cycles, us, out);
    return true;
}

static void convolve(ptoisa_core *core, const void *user) {
    multiply(core, (const product *)user);
}

// Places the parts of A, B and C. Blocks of C lie beside each other. Output tiles are dealt from top to
// bottom, column by column; C then is a stack of columns, and a core that goes on to the next column is
// taken to read A and B as if it did not.
static void place_product(predict_machine *machine, const product *p) {
    const int64_t share = p->map_pixels ? 9 : 1, rows = p->m / TILE_ROWS;
    const int64_t tiles = (int64_t)p->tiles, total = rows * (p->n / TILE_COLS);
    const ptowsp_dtype out = p->out == PTOISA_F16 ? PTOWSP_F16 : PTOWSP_F32;
    predict_tensor *a = &machine->tensors[0], *b = &machine->tensors[1], *c = &machine->tensors[2];
    *a = (predict_tensor){.dtype = PTOWSP_F16, .rows = p->m, .cols = p->depth / share};
    *b = (predict_tensor){.dtype = PTOWSP_F16, .rows = p->depth, .cols = p->n};
    *c = (predict_tensor){.dtype = out, .rows = p->m, .cols = p->n};
    if (p->is_dealt) {
        c->rows = machine->core_count * p->rows;
        c->cols = TILE_COLS;
    }
    machine->tensor_count = 3;
    for (int64_t i = 0; i < machine->core_count; i++) {
        const int64_t first = i * tiles, below = rows > tiles ? rows - tiles : 0;
        const uint32_t at = machine->task_count;
        int64_t row = i / CORE_COLS * p->rows, col = i % CORE_COLS * p->cols;
        if (p->is_dealt && first < total) {
            a->row[at] = (int32_t)((first % rows < below ? first % rows : below) * TILE_ROWS);
            b->col[at] = (int32_t)(first / rows * TILE_COLS);
            c->row[at] = (int32_t)(first * TILE_ROWS);
            machine->task_count++;
        } else if (!p->is_dealt && i < CORE_ROWS * CORE_COLS && row < p->m && col < p->n) {
            a->row[at] = c->row[at] = (int32_t)row;
            b->col[at] = c->col[at] = (int32_t)col;
            machine->task_count++;
        }
    }
}

// Rows of a map of so many columns that 128 pixels span, on average over the tiles of an image.
static double map_rows_of(uint32_t width) {
    uint32_t at = 0, count = 0, rows = 0;
    do {
        rows += (at + TILE_ROWS - 1) / width - at / width + 1;
        at += TILE_ROWS;
        count++;
    } while (at % width);
    return (double)rows / count;
}

// The part of a core in C = A B with m x k x n: 4 x 6 cores with a block of C each, or tiles dealt
// to all of them.
static bool product_of(const predict_kernel *row, uint32_t cores, product *p,
                       char reason[PREDICT_REASON_MAX]) {
    bool is_dealt = strcmp(row->kernel, "gemm") != 0 && strncmp(row->kernel, "conv2d", 6) != 0;
    uint64_t m = number_after(row->shape, is_dealt ? "M" : "m");
    uint64_t k = number_after(row->shape, is_dealt ? "K" : "k");
    uint64_t n = number_after(row->shape, is_dealt ? "N" : "n");
    bool is_conv = strncmp(row->kernel, "conv2d", 6) == 0;
    uint32_t base[3] = {TILE_ROWS, TILE_COLS, 64}, step = 4, width = 0;
    const char *at = strstr(row->tiling, "base "), *steps = strstr(row->tiling, "stepK ");
    const char *map = strstr(row->shape, "X=[");
    int fields = at ? sscanf(at, "base %ux%ux%u", &base[0], &base[1], &base[2]) : 0;
    if (fields < 2 || (fields < 3 && !is_dealt) || (!steps && !is_dealt) ||
        (steps && sscanf(steps, "stepK %u", &step) != 1) || base[0] != TILE_ROWS ||
        base[1] != TILE_COLS || base[2] == 0 || base[2] > 64 || base[2] % 16 || step == 0 ||
        step > 8) {
        return refuse_kernel(reason, "its tiling is not blocks of 128 x 256 with panels in L1");
    }
    if (is_conv && (!map || sscanf(map, "X=[%*u %*u %*u %u", &width) != 1 || width == 0 ||
                    width > 4096 || !strstr(row->shape, "3x3"))) {
        return refuse_kernel(reason, "not filters of 3 x 3 over a map X=[N C1 H W 16]");
    }
    uint64_t panel = (uint64_t)base[2] * step, rows = m / TILE_ROWS, cols = n / TILE_COLS;
    if (m == 0 || n == 0 || k == 0 || m % TILE_ROWS || n % TILE_COLS || k % panel ||
        m > UINT64_C(1) << 20 || n > UINT64_C(1) << 20 || k > UINT64_C(1) << 20) {
        return refuse_kernel(reason, "its sizes are not whole tiles and panels");
    }
    uint64_t down = (rows + CORE_ROWS - 1) / CORE_ROWS, across = (cols + CORE_COLS - 1) / CORE_COLS;
    uint64_t tiles = is_dealt ? (rows * cols + cores - 1) / cores : down * across;
    product made = {.m = (int64_t)m,
                    .n = (int64_t)n,
                    .depth = (int64_t)k,
                    .tiles = tiles,
                    .panels = k / panel,
                    .rows = (int64_t)(is_dealt ? tiles : down) * TILE_ROWS,
                    .cols = (int64_t)(is_dealt ? 1 : across) * TILE_COLS,
                    .k = base[2],
                    .blocks = step,
                    .map_rows = is_conv ? map_rows_of(width) : 0,
                    .is_dealt = is_dealt,
                    .is_turned = !is_conv,
                    .out = is_conv || !strstr(row->shape, ">f32") ? PTOISA_F16 : PTOISA_F32};
    made.map_pixels = is_conv ? (uint32_t)((made.map_rows + 2) * width) : 0;
    *p = made;
    return true;
}

// Flash attention of whole tiles.
static bool attention_of(const predict_kernel *row, bool is_a5, predict_times *out,
                         char reason[PREDICT_REASON_MAX]) {
    uint64_t queries = number_after(row->shape, "S0"), keys = number_after(row->shape, "S1");
    if (is_a5 || (!strstr(row->machine, "A3") && !strstr(row->machine, "910B"))) {
        return refuse_kernel(reason, "flash attention was measured on 910B alone");
    }
    if (queries == 0 || queries % ATTENTION_ROWS || keys == 0 || keys % ATTENTION_ROWS ||
        queries > UINT64_C(1) << 20 || keys > UINT64_C(1) << 20 ||
        number_after(row->shape, "H") != ATTENTION_HEAD || number_after(row->shape, "B") > 1) {
        return refuse_kernel(reason, "not one head of 128, with whole tiles of 128");
    }
    predict_attention(queries, keys, out);
    return true;
}

static bool predict_product(const predict_kernel *row, bool is_a5, predict_times *out_times,
                            uint64_t *out_tiles, char reason[PREDICT_REASON_MAX]) {
    predict_machine machine;
    product p;
    bool is_good = predict_machine_create(&machine, is_a5, CUBE_LAUNCH_US, reason) &&
                   product_of(row, machine.core_count, &p, reason);
    if (is_good) {
        *out_tiles = p.tiles;
        place_product(&machine, &p);
        const uint64_t share = p.map_pixels ? 9 : 1;
        const ptowsp_kernel_desc conv = {.name = "conv",
                                         .unit = PTOWSP_UNIT_CUBE,
                                         .tiles = {{.name = "a",
                                                    .direction = PTOWSP_IN,
                                                    .dtype = PTOWSP_F16,
                                                    .rows = p.rows,
                                                    .cols = p.depth / (int64_t)share},
                                                   {.name = "b",
                                                    .direction = PTOWSP_IN,
                                                    .dtype = PTOWSP_F16,
                                                    .rows = p.depth,
                                                    .cols = p.cols},
                                                   {.name = "c",
                                                    .direction = PTOWSP_OUT,
                                                    .dtype = machine.tensors[2].dtype,
                                                    .rows = p.rows,
                                                    .cols = p.cols}}};
        is_good = p.map_pixels ? run_on_cores(&machine, &conv, convolve, &p, out_times, reason)
                               : measure_product(&machine, &p, out_times, reason);
    }
    predict_machine_destroy(&machine);
    return is_good;
}

typedef struct sorting {
    uint64_t steps;
    uint32_t cols, best;
} sorting;

static void sort_rows(ptoisa_core *core, const void *user) {
    const sorting *of = (const sorting *)user;
    best_of_rows(core, of->steps, of->cols, of->best);
}

static bool predict_topk(const predict_kernel *row, predict_times *out_times,
                         char reason[PREDICT_REASON_MAX]) {
    uint64_t rows = number_after(row->shape, "rows"), cols = number_after(row->shape, "validCol");
    uint64_t best = number_after(row->shape, "topk");
    if (rows == 0 || rows > UINT64_C(1) << 24 || cols < 32 || cols > 2048 || best == 0 ||
        best > cols || !strstr(row->shape, "type=float")) {
        return refuse_kernel(reason, "not f32 rows of 32 to 2,048 values");
    }
    predict_machine machine;
    bool is_good = predict_machine_create(&machine, false, VECTOR_LAUNCH_US, reason);
    if (is_good) {
        const int64_t own = (int64_t)(rows + VECTOR_CORES - 1) / VECTOR_CORES;
        const sorting of = {(uint64_t)(own + 1) / 2, (uint32_t)cols, (uint32_t)best};
        const ptowsp_kernel_desc topk = {.name = "topk",
                                         .tiles = {{.name = "scores",
                                                    .direction = PTOWSP_IN,
                                                    .dtype = PTOWSP_F32,
                                                    .rows = own,
                                                    .cols = (int64_t)cols},
                                                   {.name = "best",
                                                    .direction = PTOWSP_OUT,
                                                    .dtype = PTOWSP_F32,
                                                    .rows = own,
                                                    .cols = (int64_t)best},
                                                   {.name = "indices",
                                                    .direction = PTOWSP_OUT,
                                                    .dtype = PTOWSP_U32,
                                                    .rows = own,
                                                    .cols = (int64_t)best}}};
        machine.core_count = VECTOR_CORES;
        machine.tensor_count = 3;
        for (uint32_t i = 0; i < 3; i++) {
            predict_tensor *to = &machine.tensors[i];
            to->dtype = topk.tiles[i].dtype;
            to->rows = (int64_t)rows;
            to->cols = topk.tiles[i].cols;
            for (int64_t at = 0; at < VECTOR_CORES && at * own < to->rows; at++) {
                to->row[at] = (int32_t)(at * own);
                machine.task_count = (uint32_t)at + 1;
            }
        }
        is_good = run_on_cores(&machine, &topk, sort_rows, &of, out_times, reason);
    }
    predict_machine_destroy(&machine);
    return is_good;
}

// A product whose operands or result are on several ranks. Shares of pipes are not predicted.
static bool predict_ranks(const predict_kernel *row, bool is_a5, predict_times *out_times,
                          char reason[PREDICT_REASON_MAX]) {
    predict_times times;
    uint64_t tiles;
    memset(out_times, 0, sizeof *out_times);
    return predict_product(row, is_a5, &times, &tiles, reason) &&
           predict_links(row, times.us, CUBE_LAUNCH_US, tiles, &out_times->us, reason);
}

bool predict_time(const predict_kernel *row, predict_times *out_times,
                  char reason[PREDICT_REASON_MAX]) {
    bool is_product = strcmp(row->kernel, "gemm") == 0 || strcmp(row->kernel, "conv2d") == 0 ||
                      strstr(row->kernel, "compute-only") != NULL;
    bool is_ranks = !is_product && (strncmp(row->kernel, "allgather_gemm", 14) == 0 ||
                                    strncmp(row->kernel, "gemm_allreduce", 14) == 0);
    bool is_a5 = strstr(row->machine, "950PR") || strstr(row->machine, "A5");
    uint64_t tiles;
    if (strstr(row->kernel, "mx")) {
        return refuse_kernel(reason, "fp8 and fp4 with block scales are not supported");
    }
    if (strstr(row->kernel, "flash")) {
        return attention_of(row, is_a5, out_times, reason);
    }
    if (strncmp(row->kernel, "tget", 4) == 0) {
        return refuse_kernel(reason,
                             "host times of remote gets do not follow their device times: they "
                             "are 18 to 194 us longer, in no order of sizes");
    }
    if (!is_product && !is_ranks && strcmp(row->kernel, "topk") != 0) {
        return refuse_kernel(reason, "no schedule is known for it");
    }
    if (!is_a5 && !strstr(row->machine, "A3") && !strstr(row->machine, "910B")) {
        return refuse_kernel(reason, "its machine is not A3, 910B, A5 or 950PR");
    }
    if (is_a5 && !is_product && !is_ranks) {
        return refuse_kernel(reason, "vector kernels were measured on 910B alone");
    }
    return is_product ? predict_product(row, is_a5, out_times, &tiles, reason)
           : is_ranks ? predict_ranks(row, is_a5, out_times, reason)
                      : predict_topk(row, out_times, reason);
}
