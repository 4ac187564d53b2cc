// Custom operators on threads: each operator is called once on every thread, and the next begins when all
// have returned, as ggml does it.

#include "ggml-cpu.h"

#include <cstdlib>
#include <deque>
#include <thread>
#include <vector>

struct stub_tensor : ggml_tensor {
    ggml_custom_op_t fun = nullptr;
    void *user = nullptr;
};

struct ggml_cgraph {
    std::vector<stub_tensor *> nodes;
};

struct ggml_context {
    std::deque<stub_tensor> tensors;
    std::vector<void *> blocks;
    std::deque<ggml_cgraph> graphs;
};

static size_t bytes_of(ggml_type type, int64_t count) {
    switch (type) {
    case GGML_TYPE_Q8_0: return static_cast<size_t>(count) / 32 * 34;
    case GGML_TYPE_Q4_0: return static_cast<size_t>(count) / 32 * 18;
    case GGML_TYPE_F16:
    case GGML_TYPE_BF16: return static_cast<size_t>(count) * 2;
    default: return static_cast<size_t>(count) * 4;
    }
}

ggml_context *ggml_init(ggml_init_params) {
    return new ggml_context;
}

void ggml_free(ggml_context *ctx) {
    for (void *block : ctx->blocks) {
        std::free(block);
    }
    delete ctx;
}

static stub_tensor *make(ggml_context *ctx, ggml_type type, int64_t ne0, int64_t ne1, int64_t ne2,
                         int64_t ne3) {
    stub_tensor made = {};
    const int64_t ne[] = {ne0, ne1, ne2, ne3};
    made.type = type;
    for (int i = 0; i < GGML_MAX_DIMS; i++) {
        made.ne[i] = ne[i];
        made.nb[i] = i == 0 ? bytes_of(type, 32) /
                                  (type == GGML_TYPE_Q8_0 || type == GGML_TYPE_Q4_0 ? 1 : 32)
                     : i == 1 ? bytes_of(type, ne0)
                              : made.nb[i - 1] * static_cast<size_t>(ne[i - 1]);
    }
    ctx->tensors.push_back(made);
    return &ctx->tensors.back();
}

static void *allocate(ggml_context *ctx, const ggml_tensor *tensor) {
    const size_t size = tensor->nb[3] * static_cast<size_t>(tensor->ne[3]);
    ctx->blocks.push_back(std::calloc(size + 1, 1));
    return ctx->blocks.back();
}

ggml_tensor *ggml_new_tensor_3d(ggml_context *ctx, ggml_type type, int64_t ne0, int64_t ne1,
                                int64_t ne2) {
    stub_tensor *made = make(ctx, type, ne0, ne1, ne2, 1);
    made->data = allocate(ctx, made);
    return made;
}

ggml_tensor *ggml_view_3d(ggml_context *ctx, ggml_tensor *a, int64_t ne0, int64_t ne1, int64_t ne2,
                          size_t nb1, size_t nb2, size_t offset) {
    stub_tensor *made = make(ctx, a->type, ne0, ne1, ne2, 1);
    made->nb[1] = nb1;
    made->nb[2] = nb2;
    made->nb[3] = nb2 * static_cast<size_t>(ne2);
    made->data = static_cast<char *>(a->data) + offset;
    return made;
}

ggml_tensor *ggml_custom_4d(ggml_context *ctx, ggml_type type, int64_t ne0, int64_t ne1,
                            int64_t ne2, int64_t ne3, ggml_tensor **args, int n_args,
                            ggml_custom_op_t fun, int, void *userdata) {
    stub_tensor *made = make(ctx, type, ne0, ne1, ne2, ne3);
    made->data = allocate(ctx, made);
    for (int i = 0; i < n_args; i++) {
        made->src[i] = args[i];
    }
    made->fun = fun;
    made->user = userdata;
    return made;
}

ggml_tensor *ggml_flash_attn_ext(ggml_context *, ggml_tensor *, ggml_tensor *, ggml_tensor *,
                                 ggml_tensor *, float, float, float) {
    return nullptr;
}

ggml_cgraph *ggml_new_graph(ggml_context *ctx) {
    ctx->graphs.emplace_back();
    return &ctx->graphs.back();
}

void ggml_build_forward_expand(ggml_cgraph *graph, ggml_tensor *tensor) {
    graph->nodes.push_back(static_cast<stub_tensor *>(tensor));
}

ggml_status ggml_graph_compute_with_ctx(ggml_context *, ggml_cgraph *graph, int n_threads) {
    for (stub_tensor *node : graph->nodes) {
        std::vector<std::thread> threads;
        for (int i = 1; i < n_threads; i++) {
            threads.emplace_back(node->fun, node, i, n_threads, node->user);
        }
        node->fun(node, 0, n_threads, node->user);
        for (std::thread &thread : threads) {
            thread.join();
        }
    }
    return GGML_STATUS_SUCCESS;
}
