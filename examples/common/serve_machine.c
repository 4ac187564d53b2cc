// Models by their published shapes, and the Ascend devices.

#include "serve_machine.h"

#include "command.h"

#include <stdio.h>
#include <string.h>

serve_model serve_model_llama(void) {
    serve_model m;
    memset(&m, 0, sizeof m);
    m.name = "llama";
    m.layers = m.dense_layers = 32;
    m.hidden = 4096;
    m.heads = 32, m.kv_heads = 8, m.dim = m.value_dim = 128;
    m.ffn = 14336;
    m.vocab = 128256;
    m.weight_bytes = 2.0;
    return m;
}

serve_model serve_model_deepseek(void) {
    serve_model m;
    memset(&m, 0, sizeof m);
    m.name = "deepseek";
    m.layers = 61, m.dense_layers = 3;
    m.hidden = 7168;
    m.heads = 128, m.kv_heads = 1, m.dim = 576, m.value_dim = 512;
    m.is_mla = true;
    m.query_rank = 1536, m.nope_dim = 128, m.head_value_dim = 128;
    m.ffn = 18432;
    m.experts = 256, m.top_k = 8, m.shared_experts = 1, m.expert_ffn = 2048;
    m.vocab = 129280;
    m.weight_bytes = 1.0;
    return m;
}

// Parameters of the projections around attention.
static double model_attention(const serve_model *m) {
    double hidden = (double)m->hidden, heads = (double)m->heads, dim = (double)m->dim;
    if (m->is_mla) {
        double rope = dim - (double)m->value_dim, rank = (double)m->query_rank;
        double up = (double)(m->nope_dim + m->head_value_dim);  // from the latent, per head
        return hidden * rank + rank * heads * ((double)m->nope_dim + rope) + hidden * dim +
               (double)m->value_dim * heads * up + heads * (double)m->head_value_dim * hidden;
    }
    return 2.0 * hidden * heads * dim + 2.0 * hidden * (double)m->kv_heads * dim;
}

// Layers that have experts.
static double model_expert_layers(const serve_model *m) {
    return m->experts ? (double)(m->layers - m->dense_layers) : 0.0;
}

double serve_model_dense(const serve_model *m) {
    double gated = 3.0 * (double)m->hidden, with_experts = model_expert_layers(m);
    double router = (double)(m->hidden * m->experts);
    double shared = gated * (double)(m->shared_experts * m->expert_ffn);
    return (double)m->layers * model_attention(m) +
           ((double)m->layers - with_experts) * gated * (double)m->ffn +
           with_experts * (shared + router);
}

double serve_model_experts(const serve_model *m) {
    return model_expert_layers(m) * 3.0 * (double)m->hidden * (double)(m->experts * m->expert_ffn);
}

double serve_model_head(const serve_model *m) {
    return (double)(m->hidden * m->vocab);
}

double serve_model_total(const serve_model *m) {
    return serve_model_dense(m) + serve_model_experts(m) + 2.0 * serve_model_head(m);
}

// The rates of a device. Cores, clock and memory are those of ptowsp_machine (1.85 GHz for 910B, as in
// PTO-ISA's cost data; 1.65 GHz for 950PR). The cube of a core does 16 x 16 x 16 multiply-adds in a
// cycle in f16; weights of one byte are counted as these. When all cores read at once, a core gets 32
// bytes of HBM in a cycle on 910B and 27 on 950PR (ptowsp_attention_shape says the same). So a 910B has
// 364 TFLOP/s and 1.42 TB/s, a 950PR 378 TFLOP/s and 1.25 TB/s.
bool serve_machine_find(const char *name, const serve_model *m, serve_machine *out_machine) {
    bool is_910b = strcmp(name, "910b") == 0;
    if (!is_910b && strcmp(name, "950pr") != 0) {
        return false;
    }
    ptowsp_machine from = is_910b ? ptowsp_machine_910b() : ptowsp_machine_950pr();
    ptowsp_attention_shape shape;
    serve_machine to;
    memset(&to, 0, sizeof to);
    memset(&shape, 0, sizeof shape);
    shape.dim = (uint32_t)m->dim;
    shape.value_dim = (uint32_t)m->value_dim;
    shape.kv_dtype = PTOWSP_F16;
    shape.kv_token_bytes = m->is_mla ? (uint32_t)(m->dim * 2) : 0;
    shape.kv_bytes_per_cycle = is_910b ? 32.0 : 27.0;
    command_check(NULL, ptowsp_attention_cost_of(&from, &shape, &to.attention));
    snprintf(to.name, sizeof to.name, "%s", is_910b ? "Ascend 910B" : "Ascend 950PR");
    to.lanes = from.cube_count;
    to.clock_hz = from.clock_mhz * 1e6;
    to.bytes_per_s = to.lanes * shape.kv_bytes_per_cycle * to.clock_hz;
    to.flops_per_s = to.lanes * 2.0 * 16.0 * 16.0 * 16.0 * to.clock_hz;
    to.memory_bytes = (double)from.hbm_bytes;
    to.step_ns = from.launch_ns;
    *out_machine = to;
    return true;
}
