// The C API of an emitted tree: binds sizes, data and memory to its program by name, and runs it. It can be used through dlsym, and trees side by side in one process: nothing else is
// visible.
//
//      wsp_runner *runner;
//      wsp_runner_create(&runner);
//      wsp_runner_bind_size(runner, "batch", 4);
//      wsp_runner_bind_tensor(runner, "Q", &q);           // a ptowsp_buffer
//      wsp_runner_options options = {2, 4, 256, 0, 0, NULL, 0, 0};
//      wsp_runner_result result;
//      if (wsp_runner_run(runner, &options, &result) != PTOWSP_OK) {
//          puts(wsp_runner_error(runner).text);
//      }
//      wsp_runner_destroy(runner);
//
// Errors   The same status, index and text as from ptowsp_run_bind_... and ptowsp_run_execute. Where a
//          run fails, tasks before the failure have run, and others may have: views are checked as
//          the program is walked, not before.
// Memory   Data is the caller's, and stays until other data is bound or the runner is destroyed.
// Threads  One call at a time. A run starts a thread for each core and aicpu_count - 1 others, and
//          joins them.

#ifndef WSP_RUNNER_H
#define WSP_RUNNER_H

#include "wsp_abi.h"

#if defined(__GNUC__)
#define WSP_RUNNER_API __attribute__((visibility("default")))
#else
#define WSP_RUNNER_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wsp_runner wsp_runner;

// Zero fields are defaults.
typedef struct wsp_runner_options {
    uint32_t aicpu_count;  // scheduler threads, at most 16; default: 1
    uint32_t core_count;   // of each unit that the program has, at most 72; default: its lanes
    uint32_t ring_size;    // tasks in flight, at most 65536; default: 4096
    uint32_t model;        // how tile kernels are counted: a ptowsp_model, but not USER
    // On the device: how long a processor is awaited, at most INT32_MAX; default: 50000. One that
    // does not end by then is SYSTEM_FAILED, and named: a core that has not begun, or not ended one
    // task, within 8/10 of it, with the task. On the CPU nothing is limited.
    uint32_t time_limit_ms;
    // When and where tasks with an index below span_capacity ran, by index; kind: their kernel. NULL,
    // and on the device: nothing is written.
    ptowsp_span *spans;
    uint64_t span_capacity;
    // A ptowsp_npu_driver. HOST: the host launches kernels itself; no AICPU takes part. aicpu_count is 1
    // then; time_limit_ms limits a wave of launches; all tasks of a wave have the same span.
    uint32_t driver;
} wsp_runner_options;

typedef struct wsp_runner_result {
    uint64_t makespan_cycles;  // 0 on the device, which has no simulated time
    uint64_t task_count;
    uint64_t in_flight_max;  // tasks in the ring at once
} wsp_runner_result;

// Errors   INVALID_PARAMS: out_runner is NULL. OUT_OF_MEMORY.
WSP_RUNNER_API ptowsp_status wsp_runner_create(wsp_runner **out_runner);
WSP_RUNNER_API void wsp_runner_destroy(wsp_runner *runner);  // NULL is ignored

// The program: names, tables, hash.
WSP_RUNNER_API const wsp_program *wsp_runner_program(void);

// As ptowsp_run_bind: all that a step brings, in one call. A batch is planned on the AICPU, which takes
// memory for the plan as a run begins: for the capacity, or for this plan without one. On a device
// the memory of transient tensors is the device's own, and count a limit.
WSP_RUNNER_API ptowsp_status wsp_runner_bind(wsp_runner *runner, const ptowsp_binding *bindings,
                                             uint64_t count);

// One thing each, as the functions ptowsp_run_bind_... of the same names.
static inline ptowsp_status wsp_runner_bind_size(wsp_runner *runner, const char *axis,
                                                 int64_t size) {
    ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_SIZE, axis);
    b.value = PWSP_CAST(uint64_t, size);
    return wsp_runner_bind(runner, &b, 1);
}
static inline ptowsp_status wsp_runner_bind_symbol(wsp_runner *runner, const char *symbol,
                                                   uint64_t value) {
    ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_SYMBOL, symbol);
    b.value = value;
    return wsp_runner_bind(runner, &b, 1);
}
static inline ptowsp_status wsp_runner_bind_array(wsp_runner *runner, const char *array,
                                                  ptowsp_dtype dtype, const void *data,
                                                  uint64_t count) {
    ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_ARRAY, array);
    b.dtype = dtype;
    b.data = data;
    b.count = count;
    return wsp_runner_bind(runner, &b, 1);
}
static inline ptowsp_status wsp_runner_bind_lengths(wsp_runner *runner, const char *axis,
                                                    ptowsp_dtype dtype, const void *data,
                                                    uint64_t count) {
    ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_LENGTHS, axis);
    b.dtype = dtype;
    b.data = data;
    b.count = count;
    return wsp_runner_bind(runner, &b, 1);
}
static inline ptowsp_status wsp_runner_bind_csr(wsp_runner *runner, const char *axis,
                                                const ptowsp_csr *csr) {
    ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_CSR, axis);
    b.data = csr;
    return wsp_runner_bind(runner, &b, 1);
}
static inline ptowsp_status wsp_runner_bind_tensor(wsp_runner *runner, const char *tensor,
                                                   const ptowsp_buffer *buffer) {
    ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_TENSOR, tensor);
    b.data = buffer;
    return wsp_runner_bind(runner, &b, 1);
}
static inline ptowsp_status wsp_runner_bind_plan(wsp_runner *runner, const char *plan,
                                                 const ptowsp_attention_plan *bound) {
    ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_PLAN, plan);
    b.data = bound;
    return wsp_runner_bind(runner, &b, 1);
}
static inline ptowsp_status wsp_runner_bind_work(wsp_runner *runner, const char *plan,
                                                 const ptowsp_work *work, uint64_t count) {
    ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_WORK, plan);
    b.data = work;
    b.count = count;
    return wsp_runner_bind(runner, &b, 1);
}
static inline ptowsp_status wsp_runner_bind_batch(wsp_runner *runner, const char *plan,
                                                  const ptowsp_attention_batch *batch,
                                                  const ptowsp_attention_config *config,
                                                  const ptowsp_attention_sizes *capacity) {
    ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_BATCH, plan);
    b.data = batch;
    b.config = config;
    b.capacity = capacity;
    return wsp_runner_bind(runner, &b, 1);
}
static inline ptowsp_status wsp_runner_bind_slot(wsp_runner *runner, uint32_t slot,
                                                 uint64_t value) {
    ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_SLOT, PWSP_NULL);
    b.slot = slot;
    b.value = value;
    return wsp_runner_bind(runner, &b, 1);
}
static inline ptowsp_status wsp_runner_bind_transients(wsp_runner *runner, void *block,
                                                       uint64_t size) {
    ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_TRANSIENTS, PWSP_NULL);
    b.block = block;
    b.count = size;
    return wsp_runner_bind(runner, &b, 1);
}

// Runs the program with its bindings; options and out_result may be NULL.
// Errors   As ptowsp_run_execute; SYSTEM_FAILED: a thread could not be started; BUSY: it is called
//          while it runs.
WSP_RUNNER_API ptowsp_status wsp_runner_run(wsp_runner *runner, const wsp_runner_options *options,
                                            wsp_runner_result *out_result);

// A slot at the end of the last run; 0 if the slot does not exist.
WSP_RUNNER_API uint64_t wsp_runner_slot(const wsp_runner *runner, uint32_t slot);

// The last failure; its text lives until the next one.
WSP_RUNNER_API ptowsp_error wsp_runner_error(const wsp_runner *runner);

#ifdef __cplusplus
}
#endif

#endif
