// Dealing units to lanes: each to the lane that is free first.

#ifndef DEAL_H
#define DEAL_H

#include <stdint.h>

// Puts a cost on the lane with the least so far. heap[count] holds the sums of the lanes, the least
// at its root; all zero at first.
void deal_add(double *heap, uint32_t count, double cost);

#endif
