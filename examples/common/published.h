// The predicted time of a workload on a 910B beside the published one, if its size was measured.

#ifndef PUBLISHED_H
#define PUBLISHED_H

#include "setup.h"

// Launches as published traces show them: some 8 us for cube cores, 18 to 20 for vector cores.
#define CUBE_LAUNCH_US   8.0
#define VECTOR_LAUNCH_US 19.0

// The published time of a kernel whose shape contains a text, of the rows that come with the examples;
// 0 if none has it.
double published_us(const char *kernel, const char *shape);

// Times the module's last workload by the model of 910B, without its data, under a schedule whose lanes
// are cores that share memory. Prints a line: its cycles, its time from the launch on, and the published
// time of a kernel whose shape contains a text, if the rows that come with the examples have it.
void published_print(const setup *s, const ptowsp_schedule *schedule, double launch_us,
                     const char *kernel, const char *shape);

#endif
