// A device in host memory, for machines without one: memory of a limited size, a stream that runs calls
// at once, and graphs that record calls instead. It computes in double precision.

#include "chain_device.h"

#include <stdlib.h>
#include <string.h>

// One call of a graph: a product, or a copy.
typedef struct node {
    chain_product product;
    void *to;
    const void *from;
    size_t size;  // of a copy; 0: a product
} node;

typedef struct graph {
    node *nodes;
    uint32_t count;
} graph;

typedef struct simulated {
    chain_device device;
    uint64_t left;   // bytes
    graph *capture;  // where calls go now; NULL: they run
} simulated;

// Sizes are before memory, so that releasing gives them back.
typedef union header {
    size_t size;
    double align[2];
} header;

static simulated *of(chain_device *device) {
    return (simulated *)(void *)device;
}

static void node_run(const node *n) {
    if (n->size) {
        memcpy(n->to, n->from, n->size);
        return;
    }
    const chain_product *p = &n->product;
    const float *left = (const float *)p->left, *right = (const float *)p->right;
    const float *row = (const float *)p->row;
    float *out = (float *)p->out;
    for (size_t r = 0; r < p->rows; r++) {
        for (size_t c = 0; c < p->cols; c++) {
            double sum = p->adds_to_out ? (double)out[r * p->cols + c] : 0.0;
            sum += row ? (double)row[c] : 0.0;
            for (size_t i = 0; i < p->depth; i++) {
                sum += (double)left[r * p->depth + i] * (double)right[i * p->cols + c];
            }
            out[r * p->cols + c] = p->has_relu && sum < 0.0 ? 0.0f : (float)sum;
        }
    }
}

// Runs a call, or records it.
static bool enqueue(chain_device *device, node n) {
    graph *g = of(device)->capture;
    if (!g) {
        node_run(&n);
        return true;
    }
    node *more = (node *)realloc(g->nodes, (g->count + 1) * sizeof *more);
    if (!more) {
        return false;
    }
    g->nodes = more;
    more[g->count++] = n;
    return true;
}

static void close_device(chain_device *device) {
    free(of(device));
}

static uint64_t memory_free(chain_device *device) {
    return of(device)->left;
}

static bool allocate(chain_device *device, size_t size, void **out) {
    header *h = size <= of(device)->left ? (header *)malloc(sizeof *h + size) : NULL;
    if (!h) {
        return false;
    }
    of(device)->left -= size;
    h->size = size;
    *out = h + 1;
    return true;
}

static void release(chain_device *device, void *memory) {
    header *h = (header *)memory - 1;
    of(device)->left += h->size;
    free(h);
}

static bool allocate_host(chain_device *device, size_t size, void **out) {
    (void)device;
    *out = malloc(size);
    return *out != NULL;
}

static void release_host(chain_device *device, void *memory) {
    (void)device;
    free(memory);
}

static bool copy(chain_device *device, void *to, const void *from, size_t size) {
    return enqueue(device, (node){.to = to, .from = from, .size = size});
}

static bool multiply(chain_device *device, const chain_product *product) {
    return enqueue(device, (node){.product = *product});
}

static bool capture_begin(chain_device *device) {
    of(device)->capture = (graph *)calloc(1, sizeof(graph));
    return of(device)->capture != NULL;
}

static bool capture_end(chain_device *device, void **out_graph) {
    *out_graph = of(device)->capture;
    of(device)->capture = NULL;
    return true;
}

static bool replay(chain_device *device, void *recorded) {
    (void)device;
    const graph *g = (const graph *)recorded;
    for (uint32_t i = 0; i < g->count; i++) {
        node_run(&g->nodes[i]);
    }
    return true;
}

static void release_graph(chain_device *device, void *recorded) {
    (void)device;
    free(((graph *)recorded)->nodes);
    free(recorded);
}

static bool wait(chain_device *device) {
    (void)device;
    return true;
}

chain_device *chain_simulated_open(uint64_t memory_bytes) {
    static const chain_device_calls calls = {
        close_device, memory_free, allocate,      release,     allocate_host, release_host,  copy,
        copy,         multiply,    capture_begin, capture_end, replay,        release_graph, wait};
    simulated *s = (simulated *)calloc(1, sizeof *s);
    if (s) {
        s->device = (chain_device){.calls = &calls, .name = "simulated"};
        s->left = memory_bytes ? memory_bytes : 64u << 20;
    }
    return s ? &s->device : NULL;
}
