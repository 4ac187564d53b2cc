#include "serve_stats.h"

#include "command.h"

#include <stdlib.h>

const char *const serve_class_names[SERVE_CLASS_COUNT] = {
#define SERVE_CLASS_NAME(name, text, max) text,
    SERVE_CLASSES(SERVE_CLASS_NAME)
#undef SERVE_CLASS_NAME
};

const char *const serve_metric_names[SERVE_METRIC_COUNT] = {"first_token", "per_token", "total"};

serve_class serve_class_of(uint32_t input) {
    static const uint32_t most[SERVE_CLASS_COUNT] = {
#define SERVE_CLASS_MAX(name, text, max) max,
        SERVE_CLASSES(SERVE_CLASS_MAX)
#undef SERVE_CLASS_MAX
    };
    int at = SERVE_CLASS_SHORT;
    while (input > most[at]) {
        at++;
    }
    return (serve_class)at;
}

static int stats_compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double stats_rank(const double *sorted, uint64_t count, uint64_t percent) {
    return sorted[(count * percent + 99) / 100 - 1];
}

serve_summary serve_summarize(const serve_load *load, const serve_result *result,
                              serve_metric metric, serve_class class_, uint32_t begin,
                              uint32_t end) {
    serve_summary sum = {0, 0.0, 0.0, 0.0, 0.0, 0.0};
    double *values = (double *)command_allocate(end - begin, sizeof *values);
    for (uint32_t i = begin; i < end; i++) {
        const serve_request *q = &load->requests[i];
        const serve_record *r = &result->records[i];
        bool is_of_class = class_ == SERVE_CLASS_ALL || class_ == serve_class_of(q->input);
        if (r->is_refused || !is_of_class || (metric == SERVE_TOKEN && r->generated < 2)) {
            continue;
        }
        uint64_t ns = metric == SERVE_FIRST   ? r->first_ns - q->arrival_ns
                      : metric == SERVE_TOTAL ? r->done_ns - q->arrival_ns
                                              : r->done_ns - r->first_ns;
        double seconds = (double)ns * 1e-9 / (metric == SERVE_TOKEN ? r->generated - 1.0 : 1.0);
        values[sum.count++] = seconds;
        sum.mean += seconds;
    }
    if (sum.count > 0) {
        qsort(values, (size_t)sum.count, sizeof *values, stats_compare);
        sum.mean /= (double)sum.count;
        sum.p50 = stats_rank(values, sum.count, 50);
        sum.p90 = stats_rank(values, sum.count, 90);
        sum.p99 = stats_rank(values, sum.count, 99);
        sum.max = values[sum.count - 1];
    }
    free(values);
    return sum;
}

serve_totals serve_totals_make(const serve_load *load, const serve_result *r) {
    serve_totals t;
    double waiting = 0.0, running = 0.0, pages = 0.0, ns = r->end_ns ? (double)r->end_ns : 1.0;
    double prompt = (double)(r->computed_tokens + r->reused_tokens);
    for (int m = 0; m < SERVE_METRIC_COUNT; m++) {
        for (int k = 0; k < SERVE_CLASS_COUNT; k++) {
            t.summaries[m][k] =
                serve_summarize(load, r, (serve_metric)m, (serve_class)k, 0, load->count);
        }
    }
    for (uint32_t i = 0; i < SERVE_INTERVALS; i++) {
        waiting += r->intervals[i].waiting_ns;
        running += r->intervals[i].running_ns;
        pages += r->intervals[i].page_ns;
    }
    t.seconds = (double)r->end_ns * 1e-9;
    t.output_per_s = (double)r->output_tokens / ns * 1e9;
    t.input_per_s = (double)r->input_tokens / ns * 1e9;
    t.requests_per_s = (double)r->done / ns * 1e9;
    t.reuse_share = prompt > 0.0 ? (double)r->reused_tokens / prompt : 0.0;
    t.busy_share = r->busy_ns / ns;
    t.attention_share = r->busy_ns > 0.0 ? r->attention_ns / r->busy_ns : 0.0;
    t.step_ms = r->steps ? r->busy_ns / (double)r->steps * 1e-6 : 0.0;
    t.waiting_mean = waiting / ns;
    t.running_mean = running / ns;
    t.kv_mean = r->pages ? pages / ns / (double)r->pages : 0.0;
    t.kv_max = r->pages ? (double)r->pages_max / (double)r->pages : 0.0;
    return t;
}
