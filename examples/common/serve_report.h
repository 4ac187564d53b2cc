// What serve_trace writes: a table, JSON, a picture (SVG), a page (HTML) with both, and a trace.

#ifndef SERVE_REPORT_H
#define SERVE_REPORT_H

#include "serve_stats.h"

#include <stdio.h>

enum { SERVE_POLICIES_MAX = 8 };

typedef struct serve_report {
    serve_setup setup;
    serve_load load;
    uint64_t kv_tokens;
    uint32_t running_max;
    uint64_t input_tokens, output_tokens;  // of the load
    uint32_t policy_count;
    serve_policy policies[SERVE_POLICIES_MAX];
    serve_result results[SERVE_POLICIES_MAX];
    serve_totals totals[SERVE_POLICIES_MAX];
} serve_report;

// Whether all sums of all policies are right.
bool serve_report_is_good(const serve_report *r);

// Quantiles of the latencies of a class, in the order of the tables.
enum { SERVE_P50, SERVE_P90, SERVE_P99, SERVE_QUANTILE_COUNT };
extern const char *const serve_quantile_names[SERVE_QUANTILE_COUNT];

// In seconds, of a policy.
double serve_report_latency(const serve_report *r, uint32_t policy, serve_metric metric, int class_,
                            int quantile);

// The policy with the lowest of these; policy_count if there is one policy, or all are alike.
uint32_t serve_report_best(const serve_report *r, serve_metric metric, int class_, int quantile);

// Sentence i of the conclusion, with the best policy and what the others lose; NULL after the last one.
// It lives until the next call.
const char *serve_report_conclusion(const serve_report *r, uint32_t i);

void serve_report_table(const serve_report *r);
void serve_report_json(const serve_report *r);

// Write to an open file. The picture is a whole SVG document of its own; it follows the light or dark
// scheme of where it is seen. The page holds it and needs no other file.
void serve_report_svg(const serve_report *r, FILE *to);
void serve_report_html(const serve_report *r, FILE *to);

// Writes a trace in Perfetto's protobuf: requests in rows, and the queue and the cache over time.
void serve_report_perfetto(const serve_report *r, FILE *to);

#endif
