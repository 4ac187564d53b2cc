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

void serve_report_table(const serve_report *r);
void serve_report_json(const serve_report *r);

// Write to an open file. The picture is a whole SVG document of its own; it follows the light or dark
// scheme of where it is seen. The page holds it and needs no other file.
void serve_report_svg(const serve_report *r, FILE *to);
void serve_report_html(const serve_report *r, FILE *to);

// Writes a trace in Perfetto's protobuf: requests in rows, and the queue and the cache over time.
void serve_report_perfetto(const serve_report *r, FILE *to);

#endif
