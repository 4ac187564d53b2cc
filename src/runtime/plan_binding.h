// A plan that is bound, as the arrays that a program reads of it: see ../workload/plan_axis.c.
//
// Work that is bound is kept as a plan of units alone, with lane_count 0.

#ifndef PWSP_PLAN_BINDING_H
#define PWSP_PLAN_BINDING_H

#include "../base/error.h"
#include "../data/array.h"

// Check a plan that is bound under a name, as ptowsp_run_bind_plan and _work do.
PWSP_INTERNAL ptowsp_status pwsp_bind_check_plan(pwsp_error *error, const char *name,
                                                 const ptowsp_attention_plan *plan,
                                                 ptowsp_attention_plan *out_plan);
PWSP_INTERNAL ptowsp_status pwsp_bind_check_work(pwsp_error *error, const char *name,
                                                 const ptowsp_work *work, uint64_t count,
                                                 ptowsp_attention_plan *out_plan);

// The size of an axis of a plan: of its units, merges or lanes.
PWSP_INTERNAL int64_t pwsp_plan_size(const ptowsp_attention_plan *plan, ptowsp_axis_kind kind);

// Does it have the arrays that an axis, or a field of one, needs? Else an error that names the plan.
PWSP_INTERNAL ptowsp_status pwsp_plan_has_axis(pwsp_error *error, const char *name,
                                               const ptowsp_attention_plan *plan,
                                               ptowsp_axis_kind kind);
PWSP_INTERNAL ptowsp_status pwsp_plan_has_field(pwsp_error *error, const char *name,
                                                const ptowsp_attention_plan *plan,
                                                ptowsp_plan_field field);

// The array of a field of its units or merges.
PWSP_INTERNAL pwsp_array pwsp_plan_array(const ptowsp_attention_plan *plan, ptowsp_axis_kind kind,
                                         ptowsp_plan_field field);

// Before a run: the bounds of lanes go from 0 to the number of descriptors, in order.
PWSP_INTERNAL ptowsp_status pwsp_verify_plan_lanes(pwsp_error *error, const char *name,
                                                   ptowsp_axis_kind kind, const pwsp_array *lanes);

#endif
