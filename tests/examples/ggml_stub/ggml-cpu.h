// See ggml.h.

#ifndef GGML_CPU_STUB_H
#define GGML_CPU_STUB_H

#include "ggml.h"

enum ggml_status ggml_graph_compute_with_ctx(struct ggml_context *ctx, struct ggml_cgraph *graph,
                                             int n_threads);

#endif
