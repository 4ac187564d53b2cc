// Cost models as users name them: rows of PTOWSP_MODELS. Their costs are in ../isa/cost.h.

#ifndef PWSP_COST_MODEL_H
#define PWSP_COST_MODEL_H

#include "../base/base.h"

PWSP_INLINE bool pwsp_cost_is_valid(const ptowsp_cost *cost) {
    switch (cost->model) {
#define PWSP_MODEL_KNOWN(name, text) case PTOWSP_MODEL_##name:
        PTOWSP_MODELS(PWSP_MODEL_KNOWN)
#undef PWSP_MODEL_KNOWN
        return cost->model != PTOWSP_MODEL_USER || cost->fn;
    default: return false;
    }
}

#endif
