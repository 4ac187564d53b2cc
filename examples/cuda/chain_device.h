// A device, as the dispatcher needs it: memory, one stream in order, a product with its epilogue, and graphs
// of enqueued calls. chain_cuda.c has the driver and cuBLAS, chain_simulated.c has host memory.

#ifndef CHAIN_DEVICE_H
#define CHAIN_DEVICE_H

#include "chain.h"

typedef struct chain_device chain_device;

// out = left right + scale_add * out, plus a row of cols numbers or NULL, then negative ones become 0.
typedef struct chain_product {
    const void *left, *right;  // [rows][depth], [depth][cols], in the device's memory
    void *out;                 // [rows][cols]
    const void *row;
    uint32_t rows, depth, cols;
    bool adds_to_out, has_relu;
} chain_product;

// Every function but the first two returns false when it failed.
typedef struct chain_device_calls {
    void (*close)(chain_device *device);
    uint64_t (*memory_free)(chain_device *device);
    bool (*allocate)(chain_device *device, size_t size, void **out);
    void (*release)(chain_device *device, void *memory);
    bool (*allocate_host)(chain_device *device, size_t size,
                          void **out);  // that the device can read
    void (*release_host)(chain_device *device, void *memory);
    // Enqueued: they are done after wait, or recorded between capture_begin and capture_end. Host memory is
    // of allocate_host.
    bool (*upload)(chain_device *device, void *to, const void *from, size_t size);
    bool (*download)(chain_device *device, void *to, const void *from, size_t size);
    bool (*multiply)(chain_device *device, const chain_product *product);
    bool (*capture_begin)(chain_device *device);
    bool (*capture_end)(chain_device *device, void **out_graph);
    bool (*replay)(chain_device *device, void *graph);
    void (*release_graph)(chain_device *device, void *graph);
    bool (*wait)(chain_device *device);
} chain_device_calls;

struct chain_device {
    const chain_device_calls *calls;
    char name[128];
};

// NULL, and the reason: NO_DRIVER, NO_LIBRARY, NO_DEVICE.
chain_device *chain_cuda_open(chain_reason *out_reason);
chain_device *chain_simulated_open(uint64_t memory_bytes);

// Chains on the CPU, as programs of the library: chain_cpu.c.
typedef struct chain_cpu chain_cpu;
chain_cpu *chain_cpu_create(void);
void chain_cpu_destroy(chain_cpu *cpu);
// The chain is checked already. NULL, or the text of an error.
const char *chain_cpu_run(chain_cpu *cpu, const chain_op *ops, uint32_t op_count);

#endif
