// The part of ggml's public interface that examples/engines uses, declared as ggml documents it. ggml.cpp
// beside it computes custom operators on threads, and nothing else.

#ifndef GGML_STUB_H
#define GGML_STUB_H

#include <stddef.h>
#include <stdint.h>

#define GGML_STUB
#define GGML_MAX_DIMS    4
#define GGML_MAX_SRC     10
#define GGML_N_TASKS_MAX (-1)

enum ggml_type {
    GGML_TYPE_F32 = 0,
    GGML_TYPE_F16 = 1,
    GGML_TYPE_Q4_0 = 2,
    GGML_TYPE_Q8_0 = 8,
    GGML_TYPE_I32 = 26,
    GGML_TYPE_BF16 = 30
};

enum ggml_status { GGML_STATUS_FAILED = -1, GGML_STATUS_SUCCESS = 0 };

struct ggml_context;
struct ggml_cgraph;

struct ggml_tensor {
    enum ggml_type type;
    int64_t ne[GGML_MAX_DIMS];  // elements
    size_t nb[GGML_MAX_DIMS];   // strides in bytes
    struct ggml_tensor *src[GGML_MAX_SRC];
    void *data;
};

struct ggml_init_params {
    size_t mem_size;
    void *mem_buffer;
    bool no_alloc;
};

typedef void (*ggml_custom_op_t)(struct ggml_tensor *dst, int ith, int nth, void *userdata);

struct ggml_context *ggml_init(struct ggml_init_params params);
void ggml_free(struct ggml_context *ctx);
struct ggml_tensor *ggml_new_tensor_3d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0,
                                       int64_t ne1, int64_t ne2);
struct ggml_tensor *ggml_view_3d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0,
                                 int64_t ne1, int64_t ne2, size_t nb1, size_t nb2, size_t offset);
struct ggml_tensor *ggml_custom_4d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0,
                                   int64_t ne1, int64_t ne2, int64_t ne3, struct ggml_tensor **args,
                                   int n_args, ggml_custom_op_t fun, int n_tasks, void *userdata);
struct ggml_tensor *ggml_flash_attn_ext(struct ggml_context *ctx, struct ggml_tensor *q,
                                        struct ggml_tensor *k, struct ggml_tensor *v,
                                        struct ggml_tensor *mask, float scale, float max_bias,
                                        float logit_softcap);
struct ggml_cgraph *ggml_new_graph(struct ggml_context *ctx);
void ggml_build_forward_expand(struct ggml_cgraph *graph, struct ggml_tensor *tensor);

#endif
