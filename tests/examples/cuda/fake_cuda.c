// A driver and a cuBLASLt in host memory, as one shared object under both names, for chain_cuda.c. Products are
// computed as the interface says, by column-major layouts; calls between the begin and the end of a capture
// are recorded. FAKE_CUDA_FAIL names a function that fails. What is created and not destroyed is printed when
// the object is closed.

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *handle;

typedef struct layout {
    uint64_t rows, cols;
    int64_t stride;
} layout;

typedef struct operation {
    int epilogue;
    const float *bias;
} operation;

typedef struct call {
    void *to;
    const void *from;
    size_t size;  // of a copy; 0: a product
    operation op;
    layout a, b, d;
    const float *a_data, *b_data, *c_data;
    float beta;
} call;

typedef struct graph {
    call calls[16];
    int count;
} graph;

static int live;  // objects
static bool is_recording;
static graph recorded;

static int fails(const char *name) {
    const char *wanted = getenv("FAKE_CUDA_FAIL");
    return wanted && !strcmp(wanted, name);
}

#define FAIL_IF_ASKED                                                                              \
    if (fails(__func__)) {                                                                         \
        return 1;                                                                                  \
    }

__attribute__((destructor)) static void report(void) {
    if (live != 0) {
        printf("fake_cuda: %d objects are left\n", live);
        fflush(stdout);
    }
}

static void *object(const void *from, size_t size) {
    void *made = calloc(1, size);
    if (from) {
        memcpy(made, from, size);
    }
    live++;
    return made;
}

static int destroy(void *made) {
    live--;
    free(made);
    return 0;
}

#define DESTROYS(name)                                                                             \
    int name(handle made) {                                                                        \
        return destroy(made);                                                                      \
    }
DESTROYS(cuMemFreeHost)
DESTROYS(cuStreamDestroy_v2)
DESTROYS(cuGraphDestroy)
DESTROYS(cuGraphExecDestroy)
DESTROYS(cublasLtDestroy)
DESTROYS(cublasLtMatmulDescDestroy)
DESTROYS(cublasLtMatrixLayoutDestroy)
DESTROYS(cublasLtMatmulPreferenceDestroy)

static void call_run(const call *c) {
    if (c->size) {
        memcpy(c->to, c->from, c->size);
        return;
    }
    float *out = (float *)c->to;
    for (uint64_t i = 0; i < c->d.rows; i++) {
        for (uint64_t j = 0; j < c->d.cols; j++) {
            const size_t at = i + j * (size_t)c->d.stride;
            double sum = c->beta != 0.0f ? (double)c->beta * (double)c->c_data[at] : 0.0;
            for (uint64_t k = 0; k < c->a.cols; k++) {
                sum += (double)c->a_data[i + k * (size_t)c->a.stride] *
                       (double)c->b_data[k + j * (size_t)c->b.stride];
            }
            sum += c->op.epilogue & 4 ? (double)c->op.bias[i] : 0.0;
            out[at] = c->op.epilogue & 2 && sum < 0.0 ? 0.0f : (float)sum;
        }
    }
}

static int enqueue(const call *c) {
    if (is_recording) {
        recorded.calls[recorded.count++] = *c;
    } else {
        call_run(c);
    }
    return 0;
}

int cuInit(unsigned flags) {
    FAIL_IF_ASKED return flags != 0;
}
int cuDeviceGetCount(int *count) {
    FAIL_IF_ASKED *count = 1;
    return 0;
}
int cuDeviceGet(int *device, int i) {
    FAIL_IF_ASKED *device = i;
    return 0;
}
int cuDeviceGetName(char *name, int size, int device) {
    FAIL_IF_ASKED snprintf(name, (size_t)size, "fake %d", device);
    return 0;
}
static int primary;
int cuDevicePrimaryCtxRetain(handle *context, int device) {
    FAIL_IF_ASKED
    *context = &primary;
    live++;
    return device != 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
    live--;
    return device != 0;
}
int cuCtxSetCurrent(handle context) {
    FAIL_IF_ASKED return context == NULL;
}
int cuMemGetInfo_v2(size_t *left, size_t *all) {
    FAIL_IF_ASKED *left = *all = (size_t)64 << 20;
    return 0;
}
int cuMemAlloc_v2(uint64_t *at, size_t size) {
    FAIL_IF_ASKED *at = (uint64_t)(uintptr_t)object(NULL, size);
    return 0;
}
int cuMemFree_v2(uint64_t at) {
    return destroy((void *)(uintptr_t)at);
}
int cuMemHostAlloc(void **at, size_t size, unsigned flags) {
    FAIL_IF_ASKED *at = object(NULL, size);
    return flags != 0;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, handle stream) {
    FAIL_IF_ASKED
    const call c = {.to = (void *)(uintptr_t)to, .from = from, .size = size};
    return stream ? enqueue(&c) : 1;
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, handle stream) {
    FAIL_IF_ASKED
    const call c = {.to = to, .from = (void *)(uintptr_t)from, .size = size};
    return stream ? enqueue(&c) : 1;
}
int cuStreamCreate(handle *stream, unsigned flags) {
    FAIL_IF_ASKED *stream = object(&flags, sizeof flags);
    return flags != 1;
}
int cuStreamSynchronize(handle stream) {
    FAIL_IF_ASKED return stream == NULL || is_recording;
}
int cuStreamBeginCapture_v2(handle stream, int mode) {
    FAIL_IF_ASKED
    is_recording = true;
    recorded.count = 0;
    return stream == NULL || mode != 1;
}
int cuStreamEndCapture(handle stream, handle *out) {
    is_recording = false;
    FAIL_IF_ASKED
    *out = object(&recorded, sizeof recorded);
    return stream == NULL;
}
int cuGraphInstantiateWithFlags(handle *out, handle from, unsigned long long flags) {
    FAIL_IF_ASKED
    *out = object(from, sizeof(graph));
    return flags != 0;
}
int cuGraphLaunch(handle made, handle stream) {
    FAIL_IF_ASKED
    const graph *g = (const graph *)made;
    for (int i = 0; i < g->count; i++) {
        call_run(&g->calls[i]);
    }
    return stream == NULL;
}

int cublasLtCreate(handle *out) {
    FAIL_IF_ASKED *out = object(NULL, 8);
    return 0;
}
int cublasLtMatmulDescCreate(handle *out, int compute, int type) {
    FAIL_IF_ASKED
    const operation op = {.epilogue = 1};
    *out = object(&op, sizeof op);
    return compute != 68 || type != 0;
}
int cublasLtMatmulDescSetAttribute(handle made, int which, const void *value, size_t size) {
    FAIL_IF_ASKED
    operation *op = (operation *)made;
    memcpy(which == 7 ? (void *)&op->epilogue : (void *)&op->bias, value, size);
    return which != 7 && which != 8;
}
int cublasLtMatrixLayoutCreate(handle *out, int type, uint64_t rows, uint64_t cols,
                               int64_t stride) {
    FAIL_IF_ASKED
    const layout made = {rows, cols, stride};
    *out = object(&made, sizeof made);
    return type != 0;
}
int cublasLtMatmulPreferenceCreate(handle *out) {
    FAIL_IF_ASKED *out = object(NULL, 8);
    return 0;
}
int cublasLtMatmulPreferenceSetAttribute(handle made, int which, const void *value, size_t size) {
    FAIL_IF_ASKED
    return !made || which != 1 || !value || size != sizeof(size_t);
}
int cublasLtMatmulAlgoGetHeuristic(handle lt, handle op, handle a, handle b, handle c, handle d,
                                   handle preference, int wanted, void *results, int *count) {
    FAIL_IF_ASKED
    memset(results, 0, 96);
    *count = wanted;
    return !lt || !op || !a || !b || !c || !d || !preference;
}
int cublasLtMatmul(handle lt, handle op, const void *alpha, const void *a_data, handle a,
                   const void *b_data, handle b, const void *beta, const void *c_data, handle c,
                   void *d_data, handle d, const void *algorithm, void *workspace,
                   size_t workspace_size, handle stream) {
    FAIL_IF_ASKED
    const call made = {.to = d_data,
                       .op = *(const operation *)op,
                       .a = *(const layout *)a,
                       .b = *(const layout *)b,
                       .d = *(const layout *)d,
                       .a_data = (const float *)a_data,
                       .b_data = (const float *)b_data,
                       .c_data = (const float *)c_data,
                       .beta = *(const float *)beta};
    const bool fits =
        made.a.rows == made.d.rows && made.b.cols == made.d.cols && made.a.cols == made.b.rows;
    return !lt || !c || !algorithm || !workspace || !workspace_size || !stream || !fits ||
                   *(const float *)alpha != 1.0f
               ? 1
               : enqueue(&made);
}
