// The numbers of a report, found once and then written as text, as JSON or as a page; and the verdict:
// sentences that conclude from them.

#ifndef PWSP_FACTS_H
#define PWSP_FACTS_H

#include "picture.h"

typedef enum pwsp_limit_kind {
    PWSP_LIMIT_PATH,
    PWSP_LIMIT_WORK,
    PWSP_LIMIT_LINKS,
    PWSP_LIMIT_PROCESS,
    PWSP_LIMIT_CHANNEL,
    PWSP_LIMIT_THREADS,   // of AICPUs
    PWSP_LIMIT_LAUNCHES,  // by the host
    PWSP_LIMIT_SUBMIT,    // by an AICPU
    PWSP_LIMIT_MEMORY
} pwsp_limit_kind;

// A lower bound and its name.
typedef struct pwsp_bound_row {
    pwsp_limit_kind kind;
    uint32_t pool;  // WORK; MEMORY: 0 HBM, 1 L2
    char name[PTOWSP_NAME_MAX + 24];
    uint64_t cycles;
} pwsp_bound_row;

// The longest chain, the pools, the links, a process and a channel, threads and submission, HBM and L2.
#define PWSP_BOUND_ROW_MAX (8 + PTOWSP_SCHEDULE_POOL_MAX)

#define PWSP_VERDICT_MAX      7
#define PWSP_VERDICT_LINE_MAX 400

typedef struct pwsp_conclusion {
    const char *limit;  // one word: "lanes", "chain", "links", "process", "channel", "control",
                        // "memory", or "waiting"
    char lines[PWSP_VERDICT_MAX][PWSP_VERDICT_LINE_MAX];
    uint32_t count;
} pwsp_conclusion;

typedef struct pwsp_facts {
    pwsp_picture *picture;
    pwsp_out *out;
    const ptowsp_what_if *what_ifs;
    uint32_t what_if_count;
    ptowsp_run_bounds bounds;
    pwsp_bound_row rows[PWSP_BOUND_ROW_MAX];
    uint32_t row_count;
    ptowsp_task_sums *critical;  // by kernel: its tasks on the critical path
    uint64_t lane_time;          // of all lanes, or UINT64_MAX
    pwsp_conclusion verdict;
} pwsp_facts;

// Concludes; no lines if nothing took time.
PWSP_INTERNAL void pwsp_verdict_find(const pwsp_facts *facts, pwsp_conclusion *verdict);

// The cost model of the run's tile kernels, "910b"; NULL where no tile kernel is used.
PWSP_INTERNAL const char *pwsp_facts_model(const pwsp_facts *facts);

// Parts that several formats have: "20 cycles (model 910b), 4 tasks, 2 lanes"; the lines about conflicting loops, and the high-water marks, of
// which those that were not measured are left out.
PWSP_INTERNAL void pwsp_report_headline(pwsp_facts *facts);
PWSP_INTERNAL void pwsp_report_conflicts(pwsp_facts *facts, ptowsp_report_format format);
PWSP_INTERNAL void pwsp_report_held(pwsp_facts *facts);

// The question of a what-if.
#define PWSP_WHAT_IF_TEXT_MAX (PTOWSP_NAME_MAX + 80)
PWSP_INTERNAL void pwsp_what_if_name(const pwsp_picture *picture, const ptowsp_what_if *what,
                                     char name[PWSP_WHAT_IF_TEXT_MAX]);

// Writes the page. False when memory is out.
PWSP_INTERNAL bool pwsp_report_page(pwsp_facts *facts);

#endif
