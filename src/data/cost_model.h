// What users say of cost models.

#ifndef PWSP_COST_MODEL_H
#define PWSP_COST_MODEL_H

#include "../base/base.h"

PWSP_INLINE bool pwsp_cost_is_valid(const ptowsp_cost *cost) {
    return (uint32_t)cost->model <= PTOWSP_MODEL_USER &&
           (cost->model != PTOWSP_MODEL_USER || cost->fn);
}

#endif
