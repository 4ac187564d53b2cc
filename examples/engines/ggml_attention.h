// Attention over a paged KV cache as a custom operator of ggml; README.md has the steps.
//
//      ggml_attention_step step;                     // one for all layers of a step
//      step.kv_lengths = ..., step.pages = ...;      // what the engine knows of its sequences
//      ggml_attention_plan(&step, &shape, &error);   // before the graph is built
//      out = ggml_attention(ctx, q, k, v, &step);    // in each layer
//      ggml_graph_compute(...);
//      if (step.status != PTOWSP_OK) ...
//
// The step must live until the graph has been computed.

#ifndef GGML_ATTENTION_H
#define GGML_ATTENTION_H

#include "ggml.h"
#include "ptowsp.h"

#include <string>
#include <vector>

struct ggml_attention_shape {
    uint32_t heads, kv_heads, value_dim;
    uint32_t page_size;  // tokens; 1: pages are cells
    uint32_t threads;    // the most that compute the graph
};

struct ggml_attention_step {
    // Of each sequence, in the order of their query tokens in the batch. KV lengths have the query
    // tokens in them, whose keys and values are in the cache already.
    std::vector<int32_t> kv_lengths, query_lengths;
    std::vector<uint32_t> pages;        // page tables, one after another
    std::vector<uint32_t> page_starts;  // where that of a sequence begins

    // The status of the last operator that has run.
    ptowsp_status status = PTOWSP_OK;

    // Filled by ggml_attention_plan.
    ggml_attention_shape shape = {};
    ptowsp_attention_batch batch = {};
    ptowsp_attention_config config = {};
    ptowsp_attention_plan plan = {};
    ptowsp_attend_memory memory = {};
    std::vector<uint32_t> query_starts;
    std::vector<uint64_t> plan_block, memory_block;
};

// Plans a step. False, and the reason, if the batch or the shape is wrong.
bool ggml_attention_plan(ggml_attention_step *step, const ggml_attention_shape *shape,
                         std::string *error);

// Adds the operator to a graph.
//
//      q        [key_dim, heads, tokens] f32; rows of any stride
//      k, v     [dim, kv_heads, slots] f32, f16, bf16, q8_0 or q4_0, both of one type: slot s of page p
//               is p * page_size + s
//      result   [value_dim, heads, tokens] f32
//
// NULL if a type or a shape does not fit the step.
ggml_tensor *ggml_attention(ggml_context *ctx, ggml_tensor *q, ggml_tensor *k, ggml_tensor *v,
                            ggml_attention_step *step);

#endif
