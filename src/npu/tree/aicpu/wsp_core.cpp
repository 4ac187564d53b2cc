// Compiles the runtime that the library and all trees share: wsp_core.h. The tree of a program without
// plans or pipelines lacks their parts: then one of these lines is missing.

#define WSP_CORE_SOURCES
#define WSP_CORE_PLANS
#define WSP_CORE_PIPELINES
#include "wsp_core.h"

#ifndef WSP_CORE_PLANS

// Never called: a program without plans has no axis to which a batch could be bound.
PWSP_INTERNAL ptowsp_status pwsp_bind_check_batch(pwsp_error *error, const char *name,
                                                  const ptowsp_attention_batch *,
                                                  const ptowsp_attention_config *,
                                                  const ptowsp_attention_sizes *,
                                                  pwsp_plan_batch *) {
    return pwsp_error_set(error, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX, "bind: %s is no plan", name);
}

PWSP_INTERNAL ptowsp_status pwsp_plan_make(pwsp_error *error, const char *name, const pwsp_memory *,
                                           const pwsp_plan_batch *, pwsp_plan_room *,
                                           ptowsp_attention_plan *) {
    return pwsp_error_set(error, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX, "plan: %s is no plan", name);
}

PWSP_INTERNAL void pwsp_plan_room_free(const pwsp_memory *, pwsp_plan_room *) {
}

#endif
