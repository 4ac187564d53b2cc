// Checks that need a complete module: calls and their depth, pipelines.

#ifndef PWSP_CHECK_H
#define PWSP_CHECK_H

#include "module.h"

#define PWSP_CALL_DEPTH_MAX 64

// A workload that the entry reaches, in the order in which they are first called.
typedef struct pwsp_reached {
    uint32_t node;
    uint32_t frame_depth;  // loops and calls in one another, called workloads included
    uint32_t scope_depth;  // scopes of both kinds in one another, called workloads included
    uint32_t pipeline;     // the first one in it or in workloads that it calls, or 0
    uint32_t link;         // the same of tasks that communicate
    bool is_outside;       // it also runs outside processes
} pwsp_reached;

typedef struct pwsp_checker {
    ptowsp_module *module;
    PWSP_TABLE(pwsp_reached) reached;  // from 1
    PWSP_TABLE(uint32_t) by_node;      // the index in reached, or 0
    uint32_t
        path[PWSP_CALL_DEPTH_MAX + 1];  // workloads being checked, each called by the one before
    uint32_t path_count;
    uint32_t pipeline;  // the first one found so far in the workload being checked
    uint32_t link;      // and the first task that communicates
} pwsp_checker;

// Checks all that a workload calls. False with the module's error set.
PWSP_INTERNAL bool pwsp_check_workload(pwsp_checker *checker, uint32_t workload);

// Then checks what pipelines of the reached workloads do with their channels, and notes which
// workloads run outside processes. False with the module's error set.
PWSP_INTERNAL bool pwsp_check_pipelines(pwsp_checker *checker, uint32_t entry);
PWSP_INTERNAL void pwsp_checker_free(pwsp_checker *checker);

// Index in `reached` of a workload that has been checked.
PWSP_INTERNAL uint32_t pwsp_checker_find(const pwsp_checker *checker, uint32_t workload);

#endif
