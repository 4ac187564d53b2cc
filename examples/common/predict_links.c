// All cards copy at once over links with a cap for each pair and for each rank, by vector cores
// (PTOWSP_LINKS_ASCEND_910B_CORES). A 950PR has one row, of two ranks, which gives the rate of its pair.
//
//      all-reduce      each rank adds up its part of C for all, then gathers the other parts
//      all-gather      each rank has rows of A. Cores multiply their own rows, then the rows of the other
//                      ranks in turn, as they come. All peers send at once, so all their rows have come at
//                      the same time; until then cores have done two parts at most
//
// Cores that wait for rows poll: they take no bandwidth from copies.

#include "predict_links.h"

#include "ptowsp.h"

#include "ptoisa_shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool refuse_ranks(char reason[PREDICT_REASON_MAX], const char *text) {
    snprintf(reason, PREDICT_REASON_MAX, "%s", text);
    return false;
}

// The number that a word follows ("8 cards"), or that follows a key ("ranks=8"); 0 without any.
static uint32_t ranks_of(const predict_kernel *row) {
    static const char *const words[] = {" cards", " ranks", " NPU"};
    const char *key = strstr(row->shape, "ranks=");
    for (size_t i = 0; i < sizeof words / sizeof *words && !key; i++) {
        const char *word = strstr(row->machine, words[i]);
        while (word && word > row->machine && word[-1] >= '0' && word[-1] <= '9') {
            word--;
        }
        if (word && *word != ' ') {
            return (uint32_t)strtoul(word, NULL, 10);
        }
    }
    return key ? (uint32_t)strtoul(key + 6, NULL, 10) : 0;
}

// A size of the shape: of "M=5416(5504)", which is padded, the second number.
static uint64_t size_of(const char *shape, char key) {
    for (const char *at = shape; *at; at++) {
        if (at[0] == key && at[1] == '=' && (at == shape || at[-1] == ' ')) {
            char *end;
            const uint64_t number = strtoull(at + 2, &end, 10);
            return *end == '(' ? strtoull(end + 1, NULL, 10) : number;
        }
    }
    return 0;
}

static bool time_of(ptowsp_collective_kind kind, uint64_t count, uint32_t ranks, bool is_a5,
                    double *out_us, char reason[PREDICT_REASON_MAX]) {
    ptowsp_links links = ptowsp_links_make(PTOWSP_LINKS_ASCEND_910B_CORES);
    if (is_a5) {
        links.inside.bytes_per_us = PTOISA_FITTED_A5_PAIR;
        links.rank_bytes_per_us = 0;
    }
    const ptowsp_collective collective = {.kind = kind,
                                          .algorithm = PTOWSP_ALGORITHM_DIRECT,
                                          .dtype = PTOWSP_F16,
                                          .count = count,
                                          .members = ranks};
    ptowsp_collective_cost cost = {0};
    ptowsp_context *context = NULL;
    bool is_good = !ptowsp_context_create(NULL, &context) &&
                   !ptowsp_collective_time(context, &collective, &links, &cost);
    if (!is_good) {
        refuse_ranks(reason, context ? ptowsp_context_error(context).text : "out of memory");
    }
    *out_us = (double)cost.time_ps / 1e6;
    ptowsp_context_destroy(context);
    return is_good;
}

bool predict_links(const predict_kernel *row, double product_us, double launch_us,
                   uint64_t tile_count, double *out_us, char reason[PREDICT_REASON_MAX]) {
    const bool is_a5 = strstr(row->machine, "950PR") || strstr(row->machine, "A5");
    const bool is_gather = strncmp(row->kernel, "allgather_gemm", 14) == 0;
    const bool is_alone = strstr(row->kernel, "comm part") != NULL;
    const uint32_t ranks = ranks_of(row);
    const uint64_t m = size_of(row->shape, 'M'), n = size_of(row->shape, is_gather ? 'K' : 'N');
    double us;
    if (!is_gather && strncmp(row->kernel, "gemm_allreduce sequential", 25) != 0) {
        return refuse_ranks(reason, "how its products and copies overlap was not published");
    }
    if (ranks < 2 || ranks > 8 || (is_a5 && (ranks != 2 || is_gather))) {
        return refuse_ranks(reason,
                            "links are measured for all-reduces of 2 ranks of 950PR, and for up to "
                            "8 of 910B");
    }
    if (m == 0 || n == 0 || m > 1 << 20 || n > 1 << 20 || m * n % ranks) {
        return refuse_ranks(reason, "its sizes M, K and N are not those of equal parts");
    }
    if (!time_of(is_gather ? PTOWSP_ALL_GATHER : PTOWSP_ALL_REDUCE, m * n, ranks, is_a5, &us,
                 reason)) {
        return false;
    }
    if (is_gather) {
        const double whole = product_us - launch_us;
        const double last = whole / (double)tile_count;
        const double left = whole * (1 - 2.0 / ranks);
        us += left > last ? left : last;
        us = launch_us + (us > whole ? us : whole);
    } else if (!is_alone) {
        us += product_us;
    }
    *out_us = us;
    return true;
}
