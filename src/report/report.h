// The parts of a run's report.

#ifndef PWSP_REPORT_H
#define PWSP_REPORT_H

#include "../exec/run.h"

// Writes what its pipelines, their processes and channels did, and why one is stuck.
PWSP_INTERNAL void pwsp_report_pipelines(const ptowsp_run *run, ptowsp_text text);

// Writes how full its rings were, a line each.
PWSP_INTERNAL void pwsp_report_rings(const ptowsp_run *run, ptowsp_text text);

#endif
