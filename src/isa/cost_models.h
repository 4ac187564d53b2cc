// The function that each model has for the cycles of an instruction.
//
// A model is a row of PTOISA_MODELS (isa.h) and its function ptoisa_cost_of_<...> here, with a file
// cost_<...>.h if it has vector instructions of its own, and a function in machine.h if it has a
// machine of its own. A measured model has its times in timing.h. For kernels of the library and for
// trees a model is a row of PTOWSP_MODELS (ptowsp.h) in the same place; the library does not compile
// where the two differ.

#ifndef PTOISA_COST_MODELS_H
#define PTOISA_COST_MODELS_H

#include "cost_timed.h"

PTOISA_INLINE uint64_t ptoisa_cost_of_elements(const ptoisa_core *core,
                                               const ptoisa_issue_info *info) {
    (void)core;
    return ptoisa_cost_unit(info->op, info->dst, info->src0, info->src1);
}

PTOISA_INLINE uint64_t ptoisa_cost_of_a2a3(const ptoisa_core *core, const ptoisa_issue_info *info) {
    (void)core;
    return ptoisa_cost_device(info, ptoisa_cost_vector);
}

PTOISA_INLINE uint64_t ptoisa_cost_of_a5(const ptoisa_core *core, const ptoisa_issue_info *info) {
    (void)core;
    return ptoisa_cost_device(info, ptoisa_cost_vector_a5);
}

PTOISA_INLINE uint64_t ptoisa_cost_of_timed(const ptoisa_core *core,
                                            const ptoisa_issue_info *info) {
    (void)core;
    return ptoisa_cost_timed(info);
}

PTOISA_INLINE uint64_t ptoisa_cost_of_user(const ptoisa_core *core, const ptoisa_issue_info *info) {
    return core->cost ? core->cost(info, core->cost_user) : ptoisa_cost_of_elements(core, info);
}

// Cycles in the core's model.
PTOISA_FN uint64_t ptoisa_cost(const ptoisa_core *core, const ptoisa_issue_info *info) {
    switch (core->model) {
#define PTOISA_MODEL_COST(name, time, machine, cost)                                               \
    case PTOISA_MODEL_##name: return ptoisa_cost_of_##cost(core, info);
        PTOISA_MODELS(PTOISA_MODEL_COST)
#undef PTOISA_MODEL_COST
    case PTOISA_MODEL_COUNT: break;
    }
    return ptoisa_cost_of_elements(core, info);
}

#endif
