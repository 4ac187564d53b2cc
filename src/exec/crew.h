// The lanes of a context, as who runs a program's tasks: one walks and issues, all run what is
// ready.

#ifndef PWSP_CREW_H
#define PWSP_CREW_H

#include "issue.h"

// Makes a crew, with no lanes yet. NULL when memory is out.
PWSP_INTERNAL pwsp_crew *pwsp_crew_create(ptowsp_run *run);
PWSP_INTERNAL void pwsp_crew_destroy(pwsp_crew *crew);  // NULL is ignored
PWSP_INTERNAL size_t pwsp_crew_bytes(const pwsp_crew *crew);

// Makes room for lane_count lanes. False when memory is out.
PWSP_INTERNAL bool pwsp_crew_reserve(pwsp_crew *crew, uint32_t lane_count);

// Walks the run's program on lane_count lanes of its context, which has been entered. Time has been
// begun, run->issue has room for as many lanes.
PWSP_INTERNAL ptowsp_status pwsp_crew_walk(pwsp_crew *crew, uint32_t lane_count);

#endif
