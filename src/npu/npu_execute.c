// Loads the library of a tree, and runs it with the bindings of a run, by the C API of
// host/wsp_runner.h. That header belongs to a tree: its types are declared here again, under our
// names.

#include "npu_build.h"

#include <dlfcn.h>

static bool npu_load_functions(npu_runner *runner, void *library, npu_text *why) {
    void *symbol = NULL;
#define NPU_RUNNER_LOAD(type, name, parameters)                                                    \
    symbol = dlsym(library, "wsp_runner_" #name);                                                  \
    if (!symbol) {                                                                                 \
        npu_print(why, "it has no wsp_runner_" #name);                                             \
        return false;                                                                              \
    }                                                                                              \
    memcpy(&runner->name, &symbol, sizeof symbol);  // ISO C has no such cast
    NPU_RUNNER_FUNCTIONS(NPU_RUNNER_LOAD)
#undef NPU_RUNNER_LOAD
    return true;
}

NPU_INTERNAL bool npu_load(ptowsp_npu *npu, const char *directory, npu_text *why) {
    npu_text path = {NULL, 0, 0, false};
    npu_print(&path, "%s/" NPU_LIBRARY, directory);
    npu->library = path.is_out_of_memory ? NULL : dlopen(path.data, RTLD_NOW | RTLD_LOCAL);
    if (!npu->library) {
        const char *error = path.is_out_of_memory ? NULL : dlerror();
        npu_print(why, "%s", error ? error : "no memory");
    } else if (!npu_load_functions(&npu->runner, npu->library, why)) {
        dlclose(npu->library);
        npu->library = NULL;
    }
    npu_text_free(&path);
    return npu->library != NULL;
}

// -- bindings -------------------------------------------------------------------------------------

// Binds an axis as the run does, if it is bound. Dense axes are not.
static ptowsp_status npu_bind_axis(const npu_runner *api, void *runner, const ptowsp_run *run,
                                   uint32_t i, const ptowsp_axis_info *axis) {
    ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_SIZE, axis->name);
    int64_t size;
    ptowsp_csr csr;
    ptowsp_attention_plan plan;
    ptowsp_attention_batch batch;
    ptowsp_attention_config config;
    ptowsp_attention_sizes capacity;
    if (axis->kind == PTOWSP_AXIS_DYNAMIC && ptowsp_run_bound_size(run, i, &size)) {
        b.value = (uint64_t)size;
    } else if (axis->kind == PTOWSP_AXIS_SPARSE && ptowsp_run_bound_csr(run, i, &csr)) {
        b.kind = PTOWSP_BIND_CSR;
        b.data = &csr;
    } else if (axis->kind >= PTOWSP_AXIS_PLAN &&
               ptowsp_run_bound_batch(run, i, &batch, &config, &capacity)) {
        b.kind = PTOWSP_BIND_BATCH;
        b.data = &batch;
        b.config = &config;
        b.capacity = capacity.lane_count ? &capacity : NULL;
    } else if (axis->kind >= PTOWSP_AXIS_PLAN && ptowsp_run_bound_plan(run, i, &plan)) {
        b.kind = plan.lane_count ? PTOWSP_BIND_PLAN : PTOWSP_BIND_WORK;
        b.data = plan.lane_count ? (const void *)&plan : plan.units;
        b.count = plan.unit_count;
    } else {
        return PTOWSP_OK;
    }
    return api->bind(runner, &b, 1);
}

static ptowsp_status npu_bind(const npu_runner *api, void *runner, const ptowsp_run *run) {
    const ptowsp_program_tables *t = ptowsp_program_read(ptowsp_run_program(run));
    ptowsp_status status = PTOWSP_OK;
    ptowsp_buffer buffer;
    for (uint32_t i = 1; i < t->axis_count && status == PTOWSP_OK; i++) {
        status = npu_bind_axis(api, runner, run, i, &t->axes[i]);
    }
    for (uint32_t i = 1; i < t->array_count && status == PTOWSP_OK; i++) {
        ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_ARRAY, t->arrays[i].name);
        if (ptowsp_run_bound_array(run, i, &b.dtype, &b.data, &b.count)) {
            status = api->bind(runner, &b, 1);
        }
    }
    for (uint32_t i = 1; i < t->symbol_count && status == PTOWSP_OK; i++) {
        ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_SYMBOL, t->symbols[i].name);
        if (ptowsp_run_bound_symbol(run, i, &b.value)) {
            status = api->bind(runner, &b, 1);
        }
    }
    for (uint32_t i = 1; i < t->tensor_count && status == PTOWSP_OK; i++) {
        ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_TENSOR, t->tensors[i].desc.name);
        b.data = &buffer;
        if (ptowsp_run_bound_tensor(run, i, &buffer)) {
            status = api->bind(runner, &b, 1);
        }
    }
    for (uint32_t i = 0; i < t->slot_count && status == PTOWSP_OK; i++) {
        ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_SLOT, NULL);
        b.slot = i;
        b.value = ptowsp_run_bound_slot(run, i);
        status = api->bind(runner, &b, 1);
    }
    ptowsp_binding block = pwsp_binding_of(PTOWSP_BIND_TRANSIENTS, NULL);
    ptowsp_run_bound_transients(run, &block.block, &block.count);
    return status == PTOWSP_OK ? api->bind(runner, &block, 1) : status;
}

// -- public ---------------------------------------------------------------------------------------

static ptowsp_status npu_execute(const ptowsp_npu *npu, const ptowsp_run *run,
                                 const npu_runner_options *options, uint64_t *slots,
                                 uint32_t slot_count, ptowsp_npu_result *out_result) {
    const npu_runner *api = &npu->runner;
    npu_runner_result result = {0, 0, 0};
    void *runner = NULL;
    ptowsp_status status = api->create(&runner);
    if (status != PTOWSP_OK) {
        return ptowsp_context_fail(npu->context, status, PTOWSP_NO_INDEX,
                                   "npu: no memory for running");
    }
    status = npu_bind(api, runner, run);
    if (status == PTOWSP_OK) {
        status = api->run(runner, options, &result);
    }
    for (uint32_t i = 0; slots && i < slot_count; i++) {
        slots[i] = api->slot(runner, i);
    }
    if (out_result) {
        out_result->makespan_cycles = result.makespan_cycles;
        out_result->task_count = result.task_count;
        out_result->in_flight_max = (uint32_t)result.in_flight_max;
    }
    if (status != PTOWSP_OK) {
        ptowsp_error error = api->error(runner);
        ptowsp_context_fail(npu->context, status, error.index, error.text);
    }
    api->destroy(runner);
    return status;
}

ptowsp_status ptowsp_npu_execute(ptowsp_npu *npu, const ptowsp_run *run,
                                 const ptowsp_npu_options *options, uint64_t *slots,
                                 uint32_t slot_count, ptowsp_npu_result *out_result) {
    npu_runner_options chosen = {0, 0, 0, 0, 0, NULL, 0, 0};
    const char *wrong = NULL;
    PTOWSP_ASSERT(npu);
    if (!run) {
        wrong = "npu: run is NULL";
    } else if (ptowsp_run_program(run) != npu->program) {
        wrong = "npu: the run is of another program than was built";
    } else if (options && (options->cost.fn || options->cost.timing ||
                           options->cost.model == PTOWSP_MODEL_USER)) {
        wrong = "npu: a tree has no cost model of the user";
    }
    if (wrong) {
        return ptowsp_context_fail(npu->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, wrong);
    }
    if (options) {
        chosen.aicpu_count = options->aicpu_count;
        chosen.core_count = options->core_count;
        chosen.ring_size = options->ring_size;
        chosen.model = (uint32_t)options->cost.model;
        chosen.spans = options->spans;
        chosen.span_capacity = options->span_capacity;
        chosen.driver = (uint32_t)options->driver;
    }
    return npu_execute(npu, run, &chosen, slots, slot_count, out_result);
}

ptowsp_status ptowsp_npu_build_run(ptowsp_context *context, const ptowsp_run *run,
                                   const ptowsp_npu_build_desc *build,
                                   const ptowsp_npu_options *options,
                                   ptowsp_npu_result *out_result) {
    if (!run) {
        return ptowsp_context_fail(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                                   "npu: run is NULL");
    }
    ptowsp_npu *npu;
    ptowsp_status status = ptowsp_npu_build(context, ptowsp_run_program(run), build, &npu);
    if (status == PTOWSP_OK) {
        status = ptowsp_npu_execute(npu, run, options, NULL, 0, out_result);
        ptowsp_npu_destroy(npu);
    }
    return status;
}
