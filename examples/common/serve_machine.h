// What a serving simulation runs: a model and the machine below it.

#ifndef SERVE_MACHINE_H
#define SERVE_MACHINE_H

#include "ptowsp.h"

// A decoder. Sizes of one layer unless said otherwise; bytes may be fractions.
typedef struct serve_model {
    const char *name;
    uint64_t layers, hidden, heads, kv_heads,
        dim;  // of keys; MLA: of the latent with its rope part
    uint64_t value_dim;
    bool is_mla;
    uint64_t query_rank, nope_dim, head_value_dim;  // MLA: of compressed queries, of a head
    uint64_t ffn;                                   // of dense layers, gated: three matrices
    uint64_t dense_layers;                          // those without experts; all if experts is 0
    uint64_t experts, top_k, shared_experts, expert_ffn;
    uint64_t vocab;
    double weight_bytes;  // of a parameter
} serve_model;

// The shapes of Llama-3-8B (Grattafiori et al. 2024, table 3) in f16, and of DeepSeek-V3 (DeepSeek-AI
// 2024, section 4.2) with weights of one byte and a latent KV in 16 bits.
serve_model serve_model_llama(void);
serve_model serve_model_deepseek(void);

// Parameters that every token passes, without the two embeddings; of all experts; of one of them,
// over all layers; of an embedding, which as the head is read for tokens that are sampled.
double serve_model_dense(const serve_model *m);
double serve_model_experts(const serve_model *m);
double serve_model_head(const serve_model *m);
double serve_model_total(const serve_model *m);

// A device as the cost model sees it.
typedef struct serve_machine {
    char name[32];
    uint32_t lanes;      // cores that attention is planned for
    double clock_hz;     // of the attention cost's cycles
    double bytes_per_s;  // that all cores read at once
    double flops_per_s;  // of all cores; a multiply-add is two
    double memory_bytes;
    double step_ns;  // from the host to the device, once in a step
    ptowsp_attention_cost attention;
} serve_machine;

// The built-in machines with the attention of a model, "910b" and "950pr"; false for other names.
bool serve_machine_find(const char *name, const serve_model *m, serve_machine *out_machine);

// This computer, measured: memory read on all threads at once, the attention kernel on one. Takes
// about a second. The memory is memory_bytes, whatever this computer has.
void serve_machine_calibrate(ptowsp_context *context, const serve_model *m, double memory_bytes,
                             serve_machine *out_machine);

#endif
