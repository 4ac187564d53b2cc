// A CUDA device by its driver and cuBLASLt, both opened while the program runs: nothing of CUDA is needed to
// build or to link this. Declarations are of the functions used here; numbers are from the interfaces'
// enums. Row-major matrices are column-major ones transposed, so out = left right is computed as
// out' = right' left', and a row that is added is the epilogue's bias.

#include "chain_device.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t device_pointer;
typedef void *handle;

enum {
    STREAM_NON_BLOCKING = 1,
    CAPTURE_THREAD_LOCAL = 1,
    TYPE_F32 = 0,
    COMPUTE_F32 = 68,
    DESC_EPILOGUE = 7,
    DESC_BIAS = 8,
    EPILOGUE_NONE = 1,
    EPILOGUE_RELU = 2,
    EPILOGUE_BIAS = 4,
    PREFERENCE_WORKSPACE = 1,
    WORKSPACE_BYTES = 32 << 20
};

// What cuBLASLt suggests: an algorithm, opaque, and what it needs.
typedef struct suggestion {
    uint64_t algorithm[8];
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
} suggestion;

// Name of the symbol, then its parameters. All return 0 for success.
#define DRIVER_CALLS(CALL)                                                                         \
    CALL(cuInit, (unsigned))                                                                       \
    CALL(cuDeviceGetCount, (int *))                                                                \
    CALL(cuDeviceGet, (int *, int))                                                                \
    CALL(cuDeviceGetName, (char *, int, int))                                                      \
    CALL(cuDevicePrimaryCtxRetain, (handle *, int))                                                \
    CALL(cuDevicePrimaryCtxRelease_v2, (int))                                                      \
    CALL(cuCtxSetCurrent, (handle))                                                                \
    CALL(cuMemGetInfo_v2, (size_t *, size_t *))                                                    \
    CALL(cuMemAlloc_v2, (device_pointer *, size_t))                                                \
    CALL(cuMemFree_v2, (device_pointer))                                                           \
    CALL(cuMemHostAlloc, (void **, size_t, unsigned))                                              \
    CALL(cuMemFreeHost, (void *))                                                                  \
    CALL(cuMemcpyHtoDAsync_v2, (device_pointer, const void *, size_t, handle))                     \
    CALL(cuMemcpyDtoHAsync_v2, (void *, device_pointer, size_t, handle))                           \
    CALL(cuStreamCreate, (handle *, unsigned))                                                     \
    CALL(cuStreamDestroy_v2, (handle))                                                             \
    CALL(cuStreamSynchronize, (handle))                                                            \
    CALL(cuStreamBeginCapture_v2, (handle, int))                                                   \
    CALL(cuStreamEndCapture, (handle, handle *))                                                   \
    CALL(cuGraphInstantiateWithFlags, (handle *, handle, unsigned long long))                      \
    CALL(cuGraphDestroy, (handle))                                                                 \
    CALL(cuGraphLaunch, (handle, handle))                                                          \
    CALL(cuGraphExecDestroy, (handle))

#define BLAS_CALLS(CALL)                                                                           \
    CALL(cublasLtCreate, (handle *))                                                               \
    CALL(cublasLtDestroy, (handle))                                                                \
    CALL(cublasLtMatmulDescCreate, (handle *, int, int))                                           \
    CALL(cublasLtMatmulDescDestroy, (handle))                                                      \
    CALL(cublasLtMatmulDescSetAttribute, (handle, int, const void *, size_t))                      \
    CALL(cublasLtMatrixLayoutCreate, (handle *, int, uint64_t, uint64_t, int64_t))                 \
    CALL(cublasLtMatrixLayoutDestroy, (handle))                                                    \
    CALL(cublasLtMatmulPreferenceCreate, (handle *))                                               \
    CALL(cublasLtMatmulPreferenceDestroy, (handle))                                                \
    CALL(cublasLtMatmulPreferenceSetAttribute, (handle, int, const void *, size_t))                \
    CALL(cublasLtMatmulAlgoGetHeuristic,                                                           \
         (handle, handle, handle, handle, handle, handle, handle, int, suggestion *, int *))       \
    CALL(cublasLtMatmul,                                                                           \
         (handle, handle, const void *, const void *, handle, const void *, handle, const void *,  \
          const void *, handle, void *, handle, const void *, void *, size_t, handle))

typedef struct cuda {
    chain_device device;
    void *driver, *library;
    handle context, stream, blas, preference;
    device_pointer workspace;
    int ordinal;
    bool has_context;
#define DECLARE(name, parameters) int(*name) parameters;
    DRIVER_CALLS(DECLARE)
    BLAS_CALLS(DECLARE)
#undef DECLARE
} cuda;

static cuda *of(chain_device *device) {
    return (cuda *)(void *)device;
}

static void *pointer_of(device_pointer at) {
    return (void *)(uintptr_t)at;
}

static void close_device(chain_device *device) {
    cuda *c = of(device);
    if (c->preference) {
        c->cublasLtMatmulPreferenceDestroy(c->preference);
    }
    if (c->blas) {
        c->cublasLtDestroy(c->blas);
    }
    if (c->workspace) {
        c->cuMemFree_v2(c->workspace);
    }
    if (c->stream) {
        c->cuStreamDestroy_v2(c->stream);
    }
    if (c->has_context) {
        c->cuDevicePrimaryCtxRelease_v2(c->ordinal);
    }
    if (c->library) {
        dlclose(c->library);
    }
    if (c->driver) {
        dlclose(c->driver);
    }
    free(c);
}

static uint64_t memory_free(chain_device *device) {
    size_t left = 0, all = 0;
    return of(device)->cuMemGetInfo_v2(&left, &all) ? 0 : left;
}

static bool allocate(chain_device *device, size_t size, void **out) {
    device_pointer at = 0;
    const bool is_done = of(device)->cuMemAlloc_v2(&at, size) == 0;
    *out = pointer_of(at);
    return is_done;
}

static void release(chain_device *device, void *memory) {
    of(device)->cuMemFree_v2((device_pointer)(uintptr_t)memory);
}

static bool allocate_host(chain_device *device, size_t size, void **out) {
    return of(device)->cuMemHostAlloc(out, size, 0) == 0;
}

static void release_host(chain_device *device, void *memory) {
    of(device)->cuMemFreeHost(memory);
}

static bool upload(chain_device *device, void *to, const void *from, size_t size) {
    cuda *c = of(device);
    return c->cuMemcpyHtoDAsync_v2((device_pointer)(uintptr_t)to, from, size, c->stream) == 0;
}

static bool download(chain_device *device, void *to, const void *from, size_t size) {
    cuda *c = of(device);
    return c->cuMemcpyDtoHAsync_v2(to, (device_pointer)(uintptr_t)from, size, c->stream) == 0;
}

// Descriptions of a product: of the operation, right', left' and out'.
typedef struct descriptions {
    handle operation, right, left, out;
} descriptions;

static bool describe(cuda *c, const chain_product *p, descriptions *out) {
    const int epilogue = (p->has_relu ? EPILOGUE_RELU : 0) | (p->row ? EPILOGUE_BIAS : 0);
    const int used = epilogue ? epilogue : EPILOGUE_NONE;
    return c->cublasLtMatmulDescCreate(&out->operation, COMPUTE_F32, TYPE_F32) == 0 &&
           c->cublasLtMatmulDescSetAttribute(out->operation, DESC_EPILOGUE, &used, sizeof used) ==
               0 &&
           (!p->row || c->cublasLtMatmulDescSetAttribute(out->operation, DESC_BIAS, &p->row,
                                                         sizeof p->row) == 0) &&
           c->cublasLtMatrixLayoutCreate(&out->right, TYPE_F32, p->cols, p->depth, p->cols) == 0 &&
           c->cublasLtMatrixLayoutCreate(&out->left, TYPE_F32, p->depth, p->rows, p->depth) == 0 &&
           c->cublasLtMatrixLayoutCreate(&out->out, TYPE_F32, p->cols, p->rows, p->cols) == 0;
}

static void describe_end(cuda *c, const descriptions *d) {
    const handle layouts[] = {d->right, d->left, d->out};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        if (layouts[i]) {
            c->cublasLtMatrixLayoutDestroy(layouts[i]);
        }
    }
    if (d->operation) {
        c->cublasLtMatmulDescDestroy(d->operation);
    }
}

static bool multiply(chain_device *device, const chain_product *p) {
    cuda *c = of(device);
    descriptions d = {0};
    suggestion best;
    int count = 0;
    const float one = 1.0f, beta = p->adds_to_out ? 1.0f : 0.0f;
    const bool is_done =
        describe(c, p, &d) &&
        c->cublasLtMatmulAlgoGetHeuristic(c->blas, d.operation, d.right, d.left, d.out, d.out,
                                          c->preference, 1, &best, &count) == 0 &&
        count > 0 &&
        c->cublasLtMatmul(c->blas, d.operation, &one, p->right, d.right, p->left, d.left, &beta,
                          p->out, d.out, p->out, d.out, best.algorithm, pointer_of(c->workspace),
                          WORKSPACE_BYTES, c->stream) == 0;
    describe_end(c, &d);
    return is_done;
}

static bool capture_begin(chain_device *device) {
    cuda *c = of(device);
    return c->cuStreamBeginCapture_v2(c->stream, CAPTURE_THREAD_LOCAL) == 0;
}

static bool capture_end(chain_device *device, void **out_graph) {
    cuda *c = of(device);
    handle recorded = NULL, ready = NULL;
    bool is_done = c->cuStreamEndCapture(c->stream, &recorded) == 0 && recorded;
    is_done = is_done && c->cuGraphInstantiateWithFlags(&ready, recorded, 0) == 0;
    if (recorded) {
        c->cuGraphDestroy(recorded);
    }
    *out_graph = ready;
    return is_done;
}

static bool replay(chain_device *device, void *graph) {
    cuda *c = of(device);
    return c->cuGraphLaunch(graph, c->stream) == 0;
}

static void release_graph(chain_device *device, void *graph) {
    of(device)->cuGraphExecDestroy(graph);
}

static bool wait(chain_device *device) {
    cuda *c = of(device);
    return c->cuStreamSynchronize(c->stream) == 0;
}

// A function by its symbol. Its pointer has the size of a data pointer where there is dlsym.
static bool find(void *from, const char *name, void *out, size_t size) {
    void *symbol = from ? dlsym(from, name) : NULL;
    memcpy(out, &symbol, size);
    return symbol != NULL;
}

static bool driver_find(cuda *c) {
    bool is_found = true;
#define FIND(name, parameters) is_found &= find(c->driver, #name, &c->name, sizeof c->name);
    DRIVER_CALLS(FIND)
#undef FIND
    return is_found;
}

static bool blas_find(cuda *c) {
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};
    for (size_t i = 0; i < sizeof names / sizeof *names && !c->library; i++) {
        c->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    bool is_found = true;
#define FIND(name, parameters) is_found &= find(c->library, #name, &c->name, sizeof c->name);
    BLAS_CALLS(FIND)
#undef FIND
    return is_found;
}

static chain_reason open_all(cuda *c) {
    int count = 0;
    c->driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver_find(c)) {
        return CHAIN_NO_DRIVER;
    }
    if (c->cuInit(0) || c->cuDeviceGetCount(&count) || count == 0 ||
        c->cuDeviceGet(&c->ordinal, 0) || c->cuDevicePrimaryCtxRetain(&c->context, c->ordinal)) {
        return CHAIN_NO_DEVICE;
    }
    c->has_context = true;
    if (c->cuCtxSetCurrent(c->context) || c->cuStreamCreate(&c->stream, STREAM_NON_BLOCKING) ||
        c->cuMemAlloc_v2(&c->workspace, WORKSPACE_BYTES)) {
        return CHAIN_NO_DEVICE;
    }
    c->cuDeviceGetName(c->device.name, sizeof c->device.name, c->ordinal);
    const size_t workspace = WORKSPACE_BYTES;
    if (!blas_find(c) || c->cublasLtCreate(&c->blas) ||
        c->cublasLtMatmulPreferenceCreate(&c->preference) ||
        c->cublasLtMatmulPreferenceSetAttribute(c->preference, PREFERENCE_WORKSPACE, &workspace,
                                                sizeof workspace)) {
        return CHAIN_NO_LIBRARY;
    }
    return CHAIN_NONE;
}

chain_device *chain_cuda_open(chain_reason *out_reason) {
    static const chain_device_calls calls = {
        close_device, memory_free, allocate,      release,     allocate_host, release_host,  upload,
        download,     multiply,    capture_begin, capture_end, replay,        release_graph, wait};
    cuda *c = (cuda *)calloc(1, sizeof *c);
    *out_reason = CHAIN_NO_DRIVER;
    if (!c) {
        return NULL;
    }
    c->device.calls = &calls;
    *out_reason = open_all(c);
    if (*out_reason) {
        close_device(&c->device);
        return NULL;
    }
    return &c->device;
}
