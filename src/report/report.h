// The parts of a run's report.

#ifndef PWSP_REPORT_H
#define PWSP_REPORT_H

#include "../result/result.h"

PWSP_INLINE double pwsp_report_percent(uint64_t part, uint64_t whole) {
    return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

// Writes what its pipelines, their processes and channels did, and why one is stuck.
PWSP_INTERNAL void pwsp_report_pipelines(const pwsp_result *result, ptowsp_output text);

// Writes how full its rings were, a line each.
PWSP_INTERNAL void pwsp_report_rings(const pwsp_result *result, ptowsp_output text);

#endif
