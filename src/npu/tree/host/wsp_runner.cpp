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

ptowsp_status wsp_runner_bind(wsp_runner *runner, const ptowsp_binding *bindings, uint64_t count) {
    ptowsp_status status = PTOWSP_OK;
    if (__atomic_load_n(&runner->is_running, __ATOMIC_ACQUIRE)) {
        return PTOWSP_BUSY;
    }
    for (uint64_t i = 0; i < count && status == PTOWSP_OK; i++) {
        status = runner->bindings.bind(bindings[i]);
    }
    return status;
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
