// Pooled keys: tensors of five dimensions, seen with several strides, as a workload with its data and a
// check: what tensor_data measures, and emit_tensor_data takes to an NPU.
//
// A projection has left the keys of all tokens as heads lie beside each other, in f16. An index over the
// keys wants one for every two tokens, the mean, times a weight of the head, in f32, and transposed:
//
//      memory of the keys    [request][token][layer][head][dim]           as they were made
//      memory of the pooled  [layer][request][head][dim][pair]            as products read them
//
//      pooled[l, r, h, d, p] = weight[l, h] * (keys[r, 2 p, l, h, d] + keys[r, 2 p + 1, l, h, d]) / 2
//
// Nothing is copied to get from one to the other: the workload knows three tensors of shape
// [layer][request][head][pair][dim], whose strides say where their elements are.
//
//      even, odd    the keys, from their first and their second token on, with the strides of memory, two
//                   tokens to a row
//      pooled       rows have stride 1 and columns the stride of a row of pairs
//
// The numbers of requests and tokens are bound; there is a task for each tile of TENSOR_DATA_TILE pairs.

#ifndef TENSOR_DATA_H
#define TENSOR_DATA_H

#include "setup.h"

enum {
    TENSOR_DATA_LAYERS = 2,
    TENSOR_DATA_HEADS = 3,
    TENSOR_DATA_DIM = 32,
    TENSOR_DATA_TILE = 16,
    TENSOR_DATA_REQUESTS_MAX = 4,
    TENSOR_DATA_PAIRS_MAX = 50
};

#define TENSOR_DATA_ALLOWED 1e-7  // the sum of two f16 is rounded once to f32, the product again

typedef struct tensor_data {
    ptowsp_tensor even, odd, pooled_id;
    setup_matrix *weight;  // [layer][head], for both tokens: half of it
    ptowsp_kernel pool;
    int64_t requests, pairs;
    uint16_t *keys;  // f16
    float *pooled;
    double error;  // the largest of all runs
} tensor_data;

// Declares the workload "pooled" in the module of a setup, and sets what it binds, prepares and checks.
void tensor_data_make(tensor_data *t, setup *s);
void tensor_data_destroy(tensor_data *t);

// Makes data for so many requests and pairs of tokens, at most the limits above.
void tensor_data_fill(tensor_data *t, setup *s, int64_t requests, int64_t pairs);

// The number of values that come out.
int64_t tensor_data_count(const tensor_data *t);

#endif
