// Sparse attention with a lightning indexer, in the manner of DeepSeek-V3.2, as a workload with its data
// and a check: what lightning_indexer measures, and emit_indexer takes to an NPU. A step decodes a token
// for each of a batch of requests, whose contexts have their own lengths:
//
//      score[s] = sum over index heads j of w[j] * relu(index_q[j] . index_k[s])     few, small heads
//      chosen   = the INDEXER_BEST tokens s with the highest scores
//      y[h]     = softmax(q[h] . kv[s]) kv[s], over the chosen s alone                all heads share kv
//
// As tasks:
//
//      parallel request     clear -> score -> choose          scores beyond the context are -1e30
//      parallel request, i  slot = chosen[request][i]; fetch  the row of kv that the slot names
//      parallel request     attend                            over what was fetched
//
// So of kv only the chosen rows are read: which, depends on data. scores and rows are transient. A context
// of fewer than INDEXER_BEST tokens is read whole.

#ifndef INDEXER_H
#define INDEXER_H

#include "setup.h"

enum {
    INDEXER_REQUESTS_MAX = 8,
    INDEXER_CONTEXT = 256,
    INDEXER_INDEX_HEADS = 4,
    INDEXER_INDEX_DIM = 16,
    INDEXER_HEADS = 8,
    INDEXER_DIM = 32,
    INDEXER_BEST = 16
};

#define INDEXER_ALLOWED 2e-6

// By how much a chosen token's score may be below the last that should be chosen: the sums are of f32.
#define INDEXER_TIE 1e-5

typedef struct indexer {
    setup_matrix *index_q, *index_w, *index_k, *index_k_t, *q, *kv, *chosen, *y;
    ptowsp_tensor scores, rows;
    ptowsp_kernel clear, score, choose, fetch, attend;
    int64_t requests;
    int32_t lengths[INDEXER_REQUESTS_MAX],
        counts[INDEXER_REQUESTS_MAX];  // counts: of chosen tokens
    int64_t wrong;                     // chosen ones
    double error;                      // the largest of y
} indexer;

// Declares the workload "sparse" in the module of a setup, and sets what it binds, prepares and checks.
void indexer_make(indexer *x, setup *s);

// Makes data for requests with contexts of these lengths, 1 to INDEXER_CONTEXT.
void indexer_fill(indexer *x, setup *s, const int32_t *lengths, int64_t requests);

#endif
