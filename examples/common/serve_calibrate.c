// A machine that is this computer. Three times of the attention kernel give the three numbers of its
// cost, where L tokens are read for r rows:
//
//      t(L, r) = per_unit + L * (per_token + r * per_row_token)
//
// A cycle is a nanosecond. Each time is the least of several, as other programs only add to it.

#include "serve_machine.h"

#include "command.h"
#include "lengths.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SHORT = 64, LONG = 4096, ROWS = 16, REPEATS = 7, READ_MIB = 128, READ_PARTS = 256 };

typedef struct calibration {
    ptowsp_attend_cache kv;
    ptowsp_attend_step step;
    ptowsp_attention_batch batch;
    ptowsp_attention_config config;
    int32_t length;
    uint32_t page;
    float *queries;  // [ROWS][dim]
    ptowsp_partial states[ROWS];
    float *accs;  // [ROWS][value_dim]
} calibration;

// The time of a unit of so many tokens and rows, in ns.
static double calibrate_time(calibration *c, uint32_t tokens, uint32_t rows) {
    ptowsp_attend_unit unit = {.query_count = 1, .kv_len = tokens};
    double least = INFINITY;
    c->config.group = rows;
    for (int i = 0; i < REPEATS; i++) {
        uint64_t start = ptowsp_clock_ns();
        ptowsp_attend_compute(&c->kv, &c->step, &unit, c->states, c->accs);
        least = fmin(least, (double)(ptowsp_clock_ns() - start));
    }
    return least;
}

// Measures the kernel over a cache of a KV head's tokens in f16: keys, then values; under MLA the
// values are the first part of the keys.
static ptowsp_attention_cost calibrate_attention(const serve_model *m) {
    calibration c = {0};
    uint64_t dim = m->dim, value_dim = m->value_dim, state = 1;
    uint64_t elements = LONG * (m->is_mla ? dim : dim + value_dim);
    uint16_t *pool = (uint16_t *)command_allocate(elements, sizeof *pool);
    for (uint64_t i = 0; i < elements; i++) {
        pool[i] = ptowsp_f16_from_f32((float)(lengths_random_unit(&state) * 2.0 - 1.0));
    }
    c.queries = (float *)command_allocate(ROWS * dim, sizeof *c.queries);
    c.accs = (float *)command_allocate(ROWS * value_dim, sizeof *c.accs);
    for (uint64_t i = 0; i < ROWS * dim; i++) {
        c.queries[i] = (float)(lengths_random_unit(&state) * 2.0 - 1.0);
    }
    c.kv.keys = pool;
    c.kv.values = m->is_mla ? pool : pool + LONG * dim;
    c.kv.key_strides.token = (size_t)dim;
    c.kv.value_strides.token = (size_t)(m->is_mla ? dim : value_dim);
    c.kv.type = PTOWSP_ATTEND_F16;
    c.kv.key_dim = (uint32_t)dim;
    c.kv.value_dim = (uint32_t)value_dim;
    c.length = LONG;
    c.step.queries = c.queries;
    c.step.query_token_stride = (size_t)(ROWS * dim);
    c.step.query_head_stride = (size_t)dim;
    c.batch.kv_lengths = &c.length;
    c.batch.sequence_count = 1;
    c.step.batch = &c.batch;
    c.step.config = &c.config;
    c.step.pages = &c.page;
    calibrate_time(&c, LONG, ROWS);  // not measured: caches and clock
    double base = calibrate_time(&c, SHORT, 1), one = calibrate_time(&c, LONG, 1);
    double rows = calibrate_time(&c, LONG, ROWS);
    ptowsp_attention_cost cost;
    double token = fmax((one - base) / (LONG - SHORT), 1e-3);  // of one row
    cost.per_row_token = fmax((rows - one) / ((ROWS - 1.0) * LONG), 1e-3);
    cost.per_token = fmax(token - cost.per_row_token, 1e-3);
    cost.per_unit = fmax(base - SHORT * token, 1.0);
    cost.per_merged_row = fmax(cost.per_row_token * 2.0, 1.0);  // an acc is read, scaled and added
    free(pool);
    free(c.queries);
    free(c.accs);
    return cost;
}

typedef struct calibration_read {
    const uint64_t *words;
    uint64_t sums[READ_PARTS];  // so that the reading is not left out
} calibration_read;

static void calibrate_read_parts(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    const uint64_t part_words = ((uint64_t)READ_MIB << 20) / sizeof(uint64_t) / READ_PARTS;
    calibration_read *read = (calibration_read *)user;
    (void)lane;
    for (uint64_t part = begin; part < end; part++) {
        uint64_t sum = 0;
        for (uint64_t i = 0; i < part_words; i++) {
            sum += read->words[part * part_words + i];
        }
        read->sums[part] = sum;
    }
}

// Bytes a second that all lanes of the context read together.
static double calibrate_read(ptowsp_context *context) {
    const uint64_t bytes = (uint64_t)READ_MIB << 20;
    static calibration_read read;
    uint64_t *words = (uint64_t *)command_allocate(bytes, 1);
    double least = INFINITY;
    for (uint64_t i = 0; i < bytes / sizeof *words; i++) {
        words[i] = i;
    }
    read.words = words;
    for (int i = 0; i < REPEATS; i++) {
        uint64_t start = ptowsp_clock_ns();
        command_check(context,
                      ptowsp_parallel_for(context, READ_PARTS, 1, calibrate_read_parts, &read));
        least = fmin(least, (double)(ptowsp_clock_ns() - start));
    }
    free(words);
    return (double)bytes / least * 1e9;
}

void serve_machine_calibrate(ptowsp_context *context, const serve_model *m, double memory_bytes,
                             serve_machine *out_machine) {
    if (m->dim % 8 != 0 || m->value_dim % 8 != 0 || m->dim > PTOWSP_ATTEND_DIM_MAX) {
        command_fail("--calibrate needs a --dim that is a multiple of 8 up to %d",
                     PTOWSP_ATTEND_DIM_MAX);
    }
    serve_machine to = {0};
    to.attention = calibrate_attention(m);
    snprintf(to.name, sizeof to.name, "this CPU (%s)", ptowsp_attend_variant());
    to.lanes = ptowsp_context_lane_count(context);
    to.clock_hz = 1e9;
    to.bytes_per_s = calibrate_read(context);
    to.flops_per_s =
        to.lanes * 2.0 * (double)(m->dim + m->value_dim) / to.attention.per_row_token * 1e9;
    to.memory_bytes = memory_bytes;
    *out_machine = to;
}
