// The C API of a tree: see wsp_runner.h.

#include "wsp_runner.h"

#include <new>

#include "wsp_run.h"

using wsp::Bindings;

struct wsp_runner {
    wsp_runner() : bindings(wsp_the_program) {
    }
    Bindings bindings;
    uint32_t is_running = 0;  // atomic
};

namespace {

// Binds, unless the runner is running: to an index, or to the one of a name (0: an error).
template <typename Bind, typename... Args>
ptowsp_status bind(wsp_runner *runner, Bind bind_at, Args... args) {
    return __atomic_load_n(&runner->is_running, __ATOMIC_ACQUIRE)
               ? PTOWSP_BUSY
               : (runner->bindings.*bind_at)(args...);
}

typedef uint32_t (Bindings::*Find)(const char *name);

template <typename Bind, typename... Args>
ptowsp_status bind_named(wsp_runner *runner, Find find, const char *name, Bind bind_at,
                         Args... args) {
    if (__atomic_load_n(&runner->is_running, __ATOMIC_ACQUIRE)) {
        return PTOWSP_BUSY;
    }
    const uint32_t index = (runner->bindings.*find)(name);
    return index ? (runner->bindings.*bind_at)(index, args...) : runner->bindings.failure.status;
}

ptowsp_status check_options(Bindings *bindings, const wsp_runner_options &options) {
    const struct {
        const char *name;
        unsigned value, max;
    } limits[] = {{"aicpu_count", options.aicpu_count, wsp::AICPU_COUNT_MAX},
                  {"core_count", options.core_count, wsp::CORE_COUNT_MAX},
                  {"ring_size", options.ring_size, wsp::RING_SIZE_MAX},
                  {"time_limit_ms", options.time_limit_ms, INT32_MAX}};
    for (const auto &limit : limits) {
        if (limit.value > limit.max) {
            return bindings->fail(PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                                  "run: %s is %u; it is at most %u", limit.name, limit.value,
                                  limit.max);
        }
    }
    if (options.driver > PTOWSP_DRIVER_HOST) {
        return bindings->fail(PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "run: there is no driver %u",
                              static_cast<unsigned>(options.driver));
    }
    if (options.driver == PTOWSP_DRIVER_HOST && options.aicpu_count > 1) {
        return bindings->fail(PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                              "run: aicpu_count is %u, and the host is the driver, which schedules "
                              "on one thread",
                              static_cast<unsigned>(options.aicpu_count));
    }
    bool is_known = false;
#define WSP_MODEL(name, text)                                                                      \
    is_known = is_known || (options.model == PTOWSP_MODEL_##name && text[0] != '\0');
    PTOWSP_MODELS(WSP_MODEL)
#undef WSP_MODEL
    if (!is_known) {
        return bindings->fail(PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                              "run: there is no cost model %u in a tree",
                              static_cast<unsigned>(options.model));
    }
    return PTOWSP_OK;
}

}  // namespace

extern "C" {

ptowsp_status wsp_runner_create(wsp_runner **out_runner) {
    if (!out_runner) {
        return PTOWSP_INVALID_PARAMS;
    }
    *out_runner = new (std::nothrow) wsp_runner();
    return *out_runner ? PTOWSP_OK : PTOWSP_OUT_OF_MEMORY;
}

void wsp_runner_destroy(wsp_runner *runner) {
    delete runner;
}

const wsp_program *wsp_runner_program(void) {
    return &wsp_the_program;
}

ptowsp_status wsp_runner_bind_size(wsp_runner *runner, const char *axis, int64_t size) {
    return bind_named(runner, &Bindings::find_size, axis, &Bindings::bind_size, size);
}

ptowsp_status wsp_runner_bind_symbol(wsp_runner *runner, const char *symbol, uint64_t value) {
    return bind_named(runner, &Bindings::find_symbol, symbol, &Bindings::bind_symbol, value);
}

ptowsp_status wsp_runner_bind_array(wsp_runner *runner, const char *array, ptowsp_dtype dtype,
                                    const void *data, uint64_t count) {
    return bind_named(runner, &Bindings::find_array, array, &Bindings::bind_array, false, dtype,
                      data, count);
}

ptowsp_status wsp_runner_bind_lengths(wsp_runner *runner, const char *axis, ptowsp_dtype dtype,
                                      const void *data, uint64_t count) {
    return bind_named(runner, &Bindings::find_lengths, axis, &Bindings::bind_array, true, dtype,
                      data, count);
}

ptowsp_status wsp_runner_bind_csr(wsp_runner *runner, const char *axis, const ptowsp_csr *csr) {
    return bind_named(runner, &Bindings::find_csr, axis, &Bindings::bind_csr, csr);
}

ptowsp_status wsp_runner_bind_tensor(wsp_runner *runner, const char *tensor,
                                     const ptowsp_buffer *buffer) {
    return bind_named(runner, &Bindings::find_tensor, tensor, &Bindings::bind_tensor, buffer);
}

ptowsp_status wsp_runner_bind_plan(wsp_runner *runner, const char *plan,
                                   const ptowsp_attention_plan *bound) {
    return bind_named(runner, &Bindings::find_plan, plan, &Bindings::bind_plan, bound);
}

ptowsp_status wsp_runner_bind_work(wsp_runner *runner, const char *plan, const ptowsp_work *work,
                                   uint64_t count) {
    return bind_named(runner, &Bindings::find_plan, plan, &Bindings::bind_work, work, count);
}

ptowsp_status wsp_runner_bind_batch(wsp_runner *runner, const char *plan,
                                    const ptowsp_attention_batch *batch,
                                    const ptowsp_attention_config *config,
                                    const ptowsp_attention_sizes *capacity) {
    return bind_named(runner, &Bindings::find_plan, plan, &Bindings::bind_batch, batch, config,
                      capacity);
}

ptowsp_status wsp_runner_bind_slot(wsp_runner *runner, uint32_t slot, uint64_t value) {
    return bind(runner, &Bindings::bind_slot, slot, value);
}

ptowsp_status wsp_runner_bind_transients(wsp_runner *runner, void *block, uint64_t size) {
    return bind(runner, &Bindings::bind_transients, block, size);
}

ptowsp_status wsp_runner_bind_size_at(wsp_runner *runner, uint32_t axis, int64_t size) {
    return bind(runner, &Bindings::bind_size, axis, size);
}

ptowsp_status wsp_runner_bind_symbol_at(wsp_runner *runner, uint32_t symbol, uint64_t value) {
    return bind(runner, &Bindings::bind_symbol, symbol, value);
}

ptowsp_status wsp_runner_bind_array_at(wsp_runner *runner, uint32_t array, ptowsp_dtype dtype,
                                       const void *data, uint64_t count) {
    return bind(runner, &Bindings::bind_array, array, false, dtype, data, count);
}

ptowsp_status wsp_runner_bind_csr_at(wsp_runner *runner, uint32_t axis, const ptowsp_csr *csr) {
    return bind(runner, &Bindings::bind_csr, axis, csr);
}

ptowsp_status wsp_runner_bind_plan_at(wsp_runner *runner, uint32_t axis,
                                      const ptowsp_attention_plan *bound) {
    return bound && bound->lane_count == 0
               ? bind(runner, &Bindings::bind_work, axis, bound->units, bound->unit_count)
               : bind(runner, &Bindings::bind_plan, axis, bound);
}

ptowsp_status wsp_runner_bind_batch_at(wsp_runner *runner, uint32_t axis,
                                       const ptowsp_attention_batch *batch,
                                       const ptowsp_attention_config *config,
                                       const ptowsp_attention_sizes *capacity) {
    return bind(runner, &Bindings::bind_batch, axis, batch, config, capacity);
}

ptowsp_status wsp_runner_bind_tensor_at(wsp_runner *runner, uint32_t tensor,
                                        const ptowsp_buffer *buffer) {
    return bind(runner, &Bindings::bind_tensor, tensor, buffer);
}

ptowsp_status wsp_runner_run(wsp_runner *runner, const wsp_runner_options *options,
                             wsp_runner_result *out_result) {
    const wsp_runner_options chosen = options ? *options : wsp_runner_options();
    wsp_runner_result result = wsp_runner_result();
    if (__atomic_exchange_n(&runner->is_running, 1u, __ATOMIC_ACQ_REL)) {
        return PTOWSP_BUSY;
    }
    ptowsp_status status = check_options(&runner->bindings, chosen);
    status = status != PTOWSP_OK ? status : runner->bindings.verify(chosen.model);
    if (status == PTOWSP_OK) {
        status = wsp::run_program(wsp_the_program, &runner->bindings, chosen, &result);
    }
    if (out_result) {
        *out_result = result;
    }
    __atomic_store_n(&runner->is_running, 0u, __ATOMIC_RELEASE);
    return status;
}

uint64_t wsp_runner_slot(const wsp_runner *runner, uint32_t slot) {
    return runner->bindings.slot(slot);
}

ptowsp_error wsp_runner_error(const wsp_runner *runner) {
    const wsp::Failure &failure = runner->bindings.failure;
    const ptowsp_error error = {failure.status, failure.index, failure.text};
    return error;
}

}  // extern "C"
