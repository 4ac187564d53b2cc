// Fingerprints of runs, and what strict runs compare.

#ifndef PWSP_FINGERPRINT_H
#define PWSP_FINGERPRINT_H

#include "run.h"

// Compares a strict run with the expected fingerprint: OK, or DIFFERENT with the first part that differs.
// before: program, bindings and inputs; they have been verified. Else results and time.
PWSP_INTERNAL ptowsp_status pwsp_run_compare(ptowsp_run *run, bool is_before);

#endif
