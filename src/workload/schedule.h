// Schedules with their defaults filled in, and what each target can do.

#ifndef PWSP_SCHEDULE_H
#define PWSP_SCHEDULE_H

#include "module.h"

// Copies a schedule with every default replaced by what it means: round robin, lane counts, window
// policy, dependencies, hazards. NULL is the default schedule.
PWSP_INTERNAL ptowsp_schedule pwsp_schedule_resolve(const ptowsp_schedule *schedule);

// The lanes of all pools of a resolved schedule.
PWSP_INTERNAL uint32_t pwsp_schedule_lanes(const ptowsp_schedule *schedule);

#endif
