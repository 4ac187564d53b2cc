// A batch through a window, task by task, with all times near zero: near.c.

#ifndef PWSP_NEAR_H
#define PWSP_NEAR_H

#include "lanes.h"

// May tasks [begin, end) of a batch be issued so? Nothing in the window has ended by the clock.
PWSP_INTERNAL bool pwsp_near_may(const pwsp_lanes *lanes, const pwsp_batch *batch, uint32_t begin,
                                 uint32_t end);

// Issues them; lane_of has the lanes of all of the batch. False with an error in sim.
PWSP_INTERNAL bool pwsp_near_run(pwsp_lanes *lanes, const pwsp_batch *batch,
                                 const uint32_t *lane_of, uint32_t begin, uint32_t end);

#endif
