// What a simulation's records say: percentiles by class of request, and over time.

#ifndef SERVE_STATS_H
#define SERVE_STATS_H

#include "serve_run.h"

// Classes by the tokens of the input: name, the most tokens.
#define SERVE_CLASSES(CLASS)                                                                       \
    CLASS(ALL, "all", UINT32_MAX)                                                                  \
    CLASS(SHORT, "short", 1024)                                                                    \
    CLASS(MEDIUM, "medium", 8192)                                                                  \
    CLASS(LONG, "long", UINT32_MAX)

typedef enum serve_class {
#define SERVE_CLASS_ENUM(name, text, max) SERVE_CLASS_##name,
    SERVE_CLASSES(SERVE_CLASS_ENUM)
#undef SERVE_CLASS_ENUM
        SERVE_CLASS_COUNT
} serve_class;

extern const char *const serve_class_names[SERVE_CLASS_COUNT];
serve_class serve_class_of(uint32_t input);  // never ALL

typedef enum serve_metric {
    SERVE_FIRST,  // time to first token, since arrival
    SERVE_TOKEN,  // time per token after the first; of requests with at least two
    SERVE_TOTAL,  // from arrival to the last token
    SERVE_METRIC_COUNT
} serve_metric;

extern const char *const serve_metric_names[SERVE_METRIC_COUNT];

// In seconds; all 0 without requests. A percentile p is the smallest value that at least p % of all
// are not above (nearest rank).
typedef struct serve_summary {
    uint64_t count;
    double mean, p50, p90, p99, max;
} serve_summary;

// Summarizes the requests [begin, end) of a load that are of a class and were not refused.
serve_summary serve_summarize(const serve_load *load, const serve_result *result,
                              serve_metric metric, serve_class class_, uint32_t begin,
                              uint32_t end);

// All that is reported of one policy.
typedef struct serve_totals {
    serve_summary summaries[SERVE_METRIC_COUNT][SERVE_CLASS_COUNT];
    double seconds;  // until the last request was done
    double output_per_s, input_per_s, requests_per_s;
    double reuse_share;      // of the tokens of prompts, those taken from the cache
    double busy_share;       // of the time
    double attention_share;  // of the time of steps
    double step_ms;          // mean
    double waiting_mean, running_mean, kv_mean, kv_max;  // KV: shares of the cache
} serve_totals;

serve_totals serve_totals_make(const serve_load *load, const serve_result *result);

#endif
