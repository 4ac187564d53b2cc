// Times of kernels that are written as PTO-ISA's own: one core of 24 works on its part. All cores have
// the same part, so its end is the kernel's.
//
//     GEMM            a tile kernel, the same that matmul --size runs: gemm_core.h
//     conv2d          instruction by instruction with the flags of a double-buffered kernel, on a
//                     core of the shim that does not compute, as tile kernels do not load feature
//                     maps: panels of A and B into L1, blocks of them into L0, both twice buffered;
//                     products into L0C, drained when the sum is complete
//     flash attention of two such cores: predict_attention.c
//     top-k           on such a core: rows sorted by 32, runs merged, values and indices gathered, two rows a step
//
// Loads run at the rate that GEMM has with all cores at work. Convolution loads its feature map,
// a ninth of the matrix that a filter of 3 x 3 makes of it.

#include "predict.h"

#include "gemm_core.h"
#include "predict_attention.h"
#include "published.h"

#include "ptoisa_shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TILE_ROWS = 128, TILE_COLS = 256, CORE_ROWS = 4, CORE_COLS = 6, CORES = 24 };

// A product as each core sees it.
typedef struct product {
    uint64_t tiles, panels;  // output tiles of a core; panels along k of each
    int64_t rows, cols;      // of the part of C that they are
    uint32_t k, blocks;      // a block along k, and how many a panel has
    uint32_t share;          // a load of A is this part of the panel
    bool is_turned;          // B is transposed from L1 to L0
    ptoisa_dtype out;
} product;

// Moves the next panels into L1: `slot` of two.
static void load_panels(ptoisa_core *core, const product *p, uint32_t slot) {
    uint32_t k = p->k * p->blocks;
    ptoisa_tile a =
        ptoisa_tile_make(NULL, PTOISA_F16, PTOISA_MAT, PTOISA_NZ, TILE_ROWS, k / p->share);
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

static void finish(const ptoisa_core *core, double launch_us, predict_times *out) {
    double cycles = (double)ptoisa_cycles(core);
    double clock = ptoisa_timing_of(core->model, NULL)->clock_mhz;
    out->us = launch_us + cycles / clock;
    double whole = out->us * clock / 100;
    out->cube = (double)core->busy[PTOISA_PIPE_M] / whole;
    out->vector = (double)core->busy[PTOISA_PIPE_V] / whole;
    out->mte1 = (double)core->busy[PTOISA_PIPE_MTE1] / whole;
    out->mte2 = (double)core->busy[PTOISA_PIPE_MTE2] / whole;
    out->store = (double)(core->busy[PTOISA_PIPE_FIX] + core->busy[PTOISA_PIPE_MTE3]) / whole;
}

// The time of a core's part as a tile kernel, by the model of the machine.
static bool measure_product(const product *p, bool is_a5, predict_times *out,
                            char reason[PREDICT_REASON_MAX]) {
    const ptowsp_machine a5 = ptowsp_machine_950pr();
    const gemm_core part = {.rows = p->rows,
                            .cols = p->cols,
                            .depth = (int64_t)(p->panels * p->blocks * p->k),
                            .panel = (int64_t)p->blocks * p->k,
                            .out = p->out == PTOISA_F16 ? PTOWSP_F16 : PTOWSP_F32,
                            .machine = is_a5 ? &a5 : NULL};
    const ptowsp_cost cost = {.model = is_a5 ? PTOWSP_MODEL_950PR : PTOWSP_MODEL_910B};
    ptowsp_context *context = NULL;
    ptowsp_module *m = NULL;
    ptowsp_kernel_stats stats;
    bool is_good = !ptowsp_context_create(NULL, &context) &&
                   !ptowsp_module_create(context, NULL, &m) &&
                   !ptowsp_kernel_measure(m, gemm_core_make(m, "part", &part), &cost, &stats);
    if (is_good) {
        double clock = ptowsp_core_timing_of(cost.model).clock_mhz;
        out->us = CUBE_LAUNCH_US + (double)stats.cycles / clock;
        double whole = out->us * clock / 100;
        out->cube = (double)stats.busy_cycles[PTOWSP_PIPE_M] / whole;
        out->vector = 0;
        out->mte1 = (double)stats.busy_cycles[PTOWSP_PIPE_MTE1] / whole;
        out->mte2 = (double)stats.busy_cycles[PTOWSP_PIPE_MTE2] / whole;
        out->store = (double)stats.busy_cycles[PTOWSP_PIPE_FIX] / whole;
    } else {
        snprintf(reason, PREDICT_REASON_MAX, "%.*s", PREDICT_REASON_MAX - 1,
                 context ? ptowsp_context_error(context).text : "out of memory");
    }
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
    return is_good;
}

// The part of a core in C = A B with m x k x n: 4 x 6 cores with a block of C each, or tiles dealt
// to all of them.
static bool product_of(const predict_kernel *row, product *p, char reason[PREDICT_REASON_MAX]) {
    bool is_dealt = strstr(row->kernel, "compute-only") != NULL;
    uint64_t m = number_after(row->shape, is_dealt ? "M" : "m");
    uint64_t k = number_after(row->shape, is_dealt ? "K" : "k");
    uint64_t n = number_after(row->shape, is_dealt ? "N" : "n");
    bool is_conv = strncmp(row->kernel, "conv2d", 6) == 0;
    product made = {0,
                    0,
                    0,
                    0,
                    is_conv ? 48 : 64,
                    is_conv ? 3 : 4,
                    is_conv ? 9 : 1,
                    !is_conv,
                    is_conv || !strstr(row->shape, ">f32") ? PTOISA_F16 : PTOISA_F32};
    uint32_t base[3], step;
    const char *at = strstr(row->tiling, "base "), *steps = strstr(row->tiling, "stepK ");
    if (!at || sscanf(at, "base %ux%ux%u", &base[0], &base[1], &base[2]) != 3 ||
        base[0] != TILE_ROWS || base[1] != TILE_COLS || base[2] == 0 || base[2] > 64 ||
        base[2] % 16 || !steps || sscanf(steps, "stepK %u", &step) != 1 || step == 0 || step > 8) {
        return refuse_kernel(reason, "its tiling is not blocks of 128 x 256 with panels in L1");
    }
    made.k = base[2];
    made.blocks = step;
    uint64_t panel = (uint64_t)made.k * made.blocks, rows = m / TILE_ROWS, cols = n / TILE_COLS;
    if (m == 0 || n == 0 || k == 0 || m % TILE_ROWS || n % TILE_COLS || k % panel ||
        m > UINT64_C(1) << 20 || n > UINT64_C(1) << 20 || k > UINT64_C(1) << 20) {
        return refuse_kernel(reason, "its sizes are not whole tiles and panels");
    }
    made.tiles = is_dealt
                     ? (rows * cols + CORES - 1) / CORES
                     : (rows + CORE_ROWS - 1) / CORE_ROWS * ((cols + CORE_COLS - 1) / CORE_COLS);
    made.panels = k / panel;
    uint64_t down = is_dealt ? made.tiles : (rows + CORE_ROWS - 1) / CORE_ROWS;
    made.rows = (int64_t)down * TILE_ROWS;
    made.cols = (int64_t)(made.tiles / down) * TILE_COLS;
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

bool predict_time(const predict_kernel *row, predict_times *out_times,
                  char reason[PREDICT_REASON_MAX]) {
    bool is_product = strcmp(row->kernel, "gemm") == 0 || strcmp(row->kernel, "conv2d") == 0 ||
                      strstr(row->kernel, "compute-only") != NULL;
    bool is_a5 = strstr(row->machine, "950PR") || strstr(row->machine, "A5");
    ptoisa_core core;
    ptoisa_core_init(&core, is_a5 ? PTOISA_MODEL_950PR : PTOISA_MODEL_910B, NULL);
    core.is_dry = true;
    if (strstr(row->kernel, "mx")) {
        return refuse_kernel(reason, "fp8 and fp4 with block scales are not supported");
    }
    if (strstr(row->kernel, "flash")) {
        return attention_of(row, is_a5, out_times, reason);
    }
    if (!is_product && (strstr(row->kernel, "all") || strstr(row->kernel, "get"))) {
        return refuse_kernel(reason, "links between ranks are not modelled here");
    }
    if (!is_product && strcmp(row->kernel, "topk") != 0) {
        return refuse_kernel(reason, "no schedule is known for it");
    }
    if (!is_a5 && !strstr(row->machine, "A3") && !strstr(row->machine, "910B")) {
        return refuse_kernel(reason, "its machine is not A3, 910B, A5 or 950PR");
    }
    if (is_a5 && !is_product) {
        return refuse_kernel(reason, "vector kernels were measured on 910B alone");
    }
    if (is_product) {
        product p;
        if (!product_of(row, &p, reason)) {
            return false;
        }
        if (p.share == 1) {
            return measure_product(&p, is_a5, out_times, reason);
        }
        multiply(&core, &p);
        finish(&core, CUBE_LAUNCH_US, out_times);
        return true;
    }
    uint64_t rows = number_after(row->shape, "rows"), cols = number_after(row->shape, "validCol");
    uint64_t best = number_after(row->shape, "topk");
    if (rows == 0 || rows > UINT64_C(1) << 24 || cols < 32 || cols > 2048 || best == 0 ||
        best > cols || number_after(row->shape, "type") != 0 || !strstr(row->shape, "type=float")) {
        return refuse_kernel(reason, "not f32 rows of 32 to 2,048 values");
    }
    uint64_t own = (rows + 2 * CORES - 1) / (2 * CORES);
    best_of_rows(&core, (own + 1) / 2, (uint32_t)cols, (uint32_t)best);
    finish(&core, VECTOR_LAUNCH_US, out_times);
    return true;
}
