// Schedules with their defaults filled in, and the capabilities of targets.

#ifndef PWSP_SCHEDULE_H
#define PWSP_SCHEDULE_H

#include "module.h"

// Copies a schedule with every default replaced by its meaning: round robin, lane counts, window
// policy, dependencies, hazards. NULL is the default schedule.
PWSP_INTERNAL ptowsp_schedule pwsp_schedule_resolve(const ptowsp_schedule *schedule);

// The lanes of all pools of a resolved schedule, without the links' lane.
PWSP_INTERNAL uint32_t pwsp_schedule_lanes(const ptowsp_schedule *schedule);

// The index of the pool that tasks of a kernel take, the links' pool not counted.
PWSP_INTERNAL uint32_t pwsp_schedule_pool(const ptowsp_schedule *schedule, uint32_t pool_count,
                                          const pwsp_kernel_info *kernel);

// Are the named pools good? Else an error of the context.
PWSP_INTERNAL ptowsp_status pwsp_schedule_check_pools(const ptowsp_module *module,
                                                      const ptowsp_schedule *schedule);

// Their directives, a line each.
PWSP_INTERNAL void pwsp_schedule_print_pools(const ptowsp_schedule *schedule, ptowsp_output text);

// The word for a value of a directive: "work stealing" for dispatch.
PWSP_INTERNAL const char *pwsp_schedule_word(const char *directive, uint32_t number);

// Does a target support a resolved schedule, whose keys have been compiled, and a tensor? Otherwise
// an error of the context. The second one requires an existing target.
PWSP_INTERNAL ptowsp_status pwsp_schedule_check_target(ptowsp_context *context,
                                                       const ptowsp_schedule *resolved,
                                                       bool has_stream_key, ptowsp_target target);
PWSP_INTERNAL ptowsp_status pwsp_schedule_check_tensor(ptowsp_context *context,
                                                       const ptowsp_tensor_desc *tensor,
                                                       ptowsp_target target);

// Does a target do tasks of a kernel that communicates?
PWSP_INTERNAL ptowsp_status pwsp_schedule_check_collective(ptowsp_context *context,
                                                           const char *kernel,
                                                           ptowsp_target target);

// Does a resolved schedule, or a tensor, use a row of the capability table?
PWSP_INTERNAL bool pwsp_schedule_uses(const ptowsp_schedule *resolved, bool has_stream_key,
                                      uint32_t row);
PWSP_INTERNAL bool pwsp_tensor_uses(const ptowsp_tensor_desc *tensor, bool is_transient,
                                    uint32_t row);

#endif
