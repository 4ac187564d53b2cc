// The table, with a column for each policy, and the same as JSON.

#include "serve_report.h"

#include "print.h"

#include <string.h>

bool serve_report_is_good(const serve_report *r) {
    bool is_good = true;
    for (uint32_t i = 0; i < r->policy_count; i++) {
        is_good = is_good && r->results[i].is_good;
    }
    return is_good;
}

static const char *report_order(const serve_policy *p) {
    return p->order == SERVE_SHORTEST ? "shortest" : "fcfs";
}

static const char *report_plan(const serve_policy *p) {
    return p->plan == SERVE_CHUNKS ? "chunks" : "balanced";
}

// -- which is best --------------------------------------------------------------------------------

const char *const serve_quantile_names[SERVE_QUANTILE_COUNT] = {"p50", "p90", "p99"};

double serve_report_latency(const serve_report *r, uint32_t policy, serve_metric metric, int class_,
                            int quantile) {
    const serve_summary *s = &r->totals[policy].summaries[metric][class_];
    return quantile == SERVE_P50 ? s->p50 : quantile == SERVE_P90 ? s->p90 : s->p99;
}

uint32_t serve_report_best(const serve_report *r, serve_metric metric, int class_, int quantile) {
    uint32_t best = 0;
    bool differs = false;
    for (uint32_t i = 1; i < r->policy_count; i++) {
        const double least = serve_report_latency(r, best, metric, class_, quantile);
        const double value = serve_report_latency(r, i, metric, class_, quantile);
        differs = differs || value < least || value > least;
        best = value < least ? i : best;
    }
    return differs ? best : r->policy_count;
}

const char *serve_report_conclusion(const serve_report *r, uint32_t i) {
    static char text[320];
    static const struct {
        const char *what, *unit;
        double scale;
        serve_metric metric;
        int quantile;
    } sentences[] = {
        {"Half of all requests take at most", "ms for each token", 1e3, SERVE_TOKEN, SERVE_P50},
        {"99 % of first tokens come within", "s", 1.0, SERVE_FIRST, SERVE_P99}};
    if (i >= sizeof sentences / sizeof sentences[0]) {
        return NULL;
    }
    const serve_metric metric = sentences[i].metric;
    const uint32_t found = serve_report_best(r, metric, SERVE_CLASS_ALL, sentences[i].quantile);
    if (found == r->policy_count) {
        return NULL;
    }
    const double best =
        serve_report_latency(r, found, metric, SERVE_CLASS_ALL, sentences[i].quantile);
    double least = 1e300, most = 0.0;
    for (uint32_t k = 0; k < r->policy_count; k++) {
        const double value =
            serve_report_latency(r, k, metric, SERVE_CLASS_ALL, sentences[i].quantile);
        if (k != found) {
            least = value < least ? value : least;
            most = value > most ? value : most;
        }
    }
    const bool is_pair = r->policy_count == 2;
    int length = snprintf(text, sizeof text, "%s %s %s with %s; the %s ", sentences[i].what,
                          print_fixed(best * sentences[i].scale, 2), sentences[i].unit,
                          r->policies[found].name, is_pair ? "other takes" : "others take");
    if (!is_pair) {
        length += snprintf(text + length, sizeof text - (size_t)length, "%s to ",
                           print_fixed((least / best - 1.0) * 100.0, 1));
    }
    snprintf(text + length, sizeof text - (size_t)length, "%s %% more.",
             print_fixed((most / best - 1.0) * 100.0, 1));
    return text;
}

// -- table ----------------------------------------------------------------------------------------

static void report_head(const serve_report *r) {
    const serve_model *m = &r->setup.model;
    const serve_machine *d = &r->setup.machine;
    printf("serving simulation: %s\n", r->load.source);
    printf("  load     %s requests in %.0f s, %s tokens in, %s out\n", print_grouped(r->load.count),
           (double)r->load.requests[r->load.count - 1].arrival_ns * 1e-9,
           print_grouped(r->input_tokens), print_grouped(r->output_tokens));
    printf("  model    %s: %.1f G parameters of %g byte%s, %.1f KiB of KV for a token\n", m->name,
           serve_model_total(m) * 1e-9, m->weight_bytes, m->weight_bytes == 1.0 ? "" : "s",
           serve_setup_kv_bytes(&r->setup) / 1024.0);
    printf("  machine  %u x %s: %.1f TFLOP/s, %.0f GB/s, %u lanes; a cache of %s tokens in pages "
           "of %u\n\n",
           (unsigned)r->setup.devices, d->name, d->flops_per_s * 1e-12, d->bytes_per_s * 1e-9,
           (unsigned)d->lanes, print_grouped(r->results[0].pages * r->setup.page),
           (unsigned)r->setup.page);
}

// A row whose cells are an expression of policy p, result q and totals t.
#define REPORT_ROW(name, cell)                                                                     \
    do {                                                                                           \
        printf("  %-30s", name);                                                                   \
        for (uint32_t i = 0; i < r->policy_count; i++) {                                           \
            const serve_policy *p = &r->policies[i];                                               \
            const serve_result *q = &r->results[i];                                                \
            const serve_totals *t = &r->totals[i];                                                 \
            (void)p, (void)q, (void)t;                                                             \
            printf(" %13s", cell);                                                                 \
        }                                                                                          \
        putchar('\n');                                                                             \
    } while (0)

static void report_latencies(const serve_report *r) {
    static const char *const titles[] = {"time to first token, s", "time per token, ms",
                                         "from arrival to the end, s"};
    for (int m = 0; m < SERVE_METRIC_COUNT; m++) {
        printf("\n  %s\n", titles[m]);
        double scale = m == SERVE_TOKEN ? 1e3 : 1.0;
        for (int k = 0; k < SERVE_CLASS_COUNT; k++) {
            const uint64_t count = r->totals[0].summaries[m][k].count;
            char name[48];
            if (count == 0) {
                continue;
            }
            snprintf(name, sizeof name, "  %-7s %9s  ", serve_class_names[k], print_grouped(count));
            for (int quantile = 0; quantile < SERVE_QUANTILE_COUNT; quantile++) {
                const uint32_t best = serve_report_best(r, (serve_metric)m, k, quantile);
                printf("  %-21s%-9s", quantile ? "" : name, serve_quantile_names[quantile]);
                for (uint32_t i = 0; i < r->policy_count; i++) {
                    const double value =
                        serve_report_latency(r, i, (serve_metric)m, k, quantile) * scale;
                    printf(" %12s%s", print_fixed(value, 2),
                           i == best                 ? "*"
                           : i + 1 < r->policy_count ? " "
                                                     : "");
                }
                putchar('\n');
            }
        }
    }
    if (r->policy_count > 1) {
        printf("\n  * the lowest of its row\n");
    }
}

static void report_conclusion(const serve_report *r) {
    const char *sentence;
    for (uint32_t i = 0; (sentence = serve_report_conclusion(r, i)) != NULL; i++) {
        printf("%s%s\n", i ? "" : "\n", sentence);
    }
}

void serve_report_table(const serve_report *r) {
    report_head(r);
    REPORT_ROW("order", report_order(p));
    REPORT_ROW("tokens of a step", print_grouped(p->chunk));
    REPORT_ROW("attention plan", report_plan(p));
    REPORT_ROW("requests done", print_grouped(q->done));
    REPORT_ROW("refused: empty, or too large", print_grouped(q->refused));
    REPORT_ROW("until the last is done, s", print_fixed(t->seconds, 1));
    REPORT_ROW("output tokens/s", print_fixed(t->output_per_s, 1));
    REPORT_ROW("input tokens/s", print_fixed(t->input_per_s, 1));
    REPORT_ROW("prefix reuse, %", print_fixed(t->reuse_share * 100.0, 1));
    REPORT_ROW("preemptions", print_grouped(q->preemptions));
    REPORT_ROW("tokens whose KV was lost", print_grouped(q->lost_tokens));
    REPORT_ROW("steps", print_grouped(q->steps));
    REPORT_ROW("attention plans made", print_grouped(q->plans));
    REPORT_ROW("step, mean, ms", print_fixed(t->step_ms, 2));
    REPORT_ROW("attention in steps, %", print_fixed(t->attention_share * 100.0, 1));
    REPORT_ROW("machine busy, %", print_fixed(t->busy_share * 100.0, 1));
    REPORT_ROW("waiting, mean", print_fixed(t->waiting_mean, 1));
    REPORT_ROW("waiting, most", print_grouped(q->waiting_max));
    REPORT_ROW("running, mean", print_fixed(t->running_mean, 1));
    REPORT_ROW("running, most", print_grouped(q->running_max));
    REPORT_ROW("KV in use, mean, %", print_fixed(t->kv_mean * 100.0, 1));
    REPORT_ROW("KV in use, most, %", print_fixed(t->kv_max * 100.0, 1));
    report_latencies(r);
    report_conclusion(r);
    printf("\n  check    tokens in and out, KV stored and lost, KV within the cache: %s\n",
           serve_report_is_good(r) ? "good" : "WRONG");
}

// -- JSON -----------------------------------------------------------------------------------------

static void json_summaries(const serve_totals *t) {
    for (int m = 0; m < SERVE_METRIC_COUNT; m++) {
        printf(", \"%s_s\": {", serve_metric_names[m]);
        for (int k = 0; k < SERVE_CLASS_COUNT; k++) {
            const serve_summary *s = &t->summaries[m][k];
            printf("%s\"%s\": {\"count\": %llu, \"mean\": %.9g, \"p50\": %.9g, \"p90\": %.9g, "
                   "\"p99\": %.9g, \"max\": %.9g}",
                   k ? ", " : "", serve_class_names[k], (unsigned long long)s->count, s->mean,
                   s->p50, s->p90, s->p99, s->max);
        }
        putchar('}');
    }
}

static void json_over_time(const serve_result *q) {
    uint64_t count = (q->end_ns + q->interval_ns - 1) / q->interval_ns;
    double ns = (double)q->interval_ns;
    printf(", \"interval_s\": %.9g, \"over_time\": [", ns * 1e-9);
    for (uint64_t i = 0; i < count; i++) {
        const serve_interval *v = &q->intervals[i];
        double pages = q->pages ? (double)q->pages : 1.0;
        printf("%s{\"waiting\": %.6g, \"running\": %.6g, \"kv\": %.6g}", i ? ", " : "",
               v->waiting_ns / ns, v->running_ns / ns, v->page_ns / ns / pages);
    }
    putchar(']');
}

static void json_policy(const serve_policy *p, const serve_result *q, const serve_totals *t) {
    printf("{\"order\": \"%s\", \"chunk\": %u, \"plan\": \"%s\", ", report_order(p),
           (unsigned)p->chunk, report_plan(p));
    printf("\"done\": %llu, \"refused\": %llu, \"preemptions\": %llu, \"evictions\": %llu, "
           "\"steps\": %llu, \"plans\": %llu, ",
           (unsigned long long)q->done, (unsigned long long)q->refused,
           (unsigned long long)q->preemptions, (unsigned long long)q->evictions,
           (unsigned long long)q->steps, (unsigned long long)q->plans);
    printf("\"input_tokens\": %llu, \"output_tokens\": %llu, \"computed_tokens\": %llu, "
           "\"reused_tokens\": %llu, \"decoded_tokens\": %llu, \"lost_tokens\": %llu, ",
           (unsigned long long)q->input_tokens, (unsigned long long)q->output_tokens,
           (unsigned long long)q->computed_tokens, (unsigned long long)q->reused_tokens,
           (unsigned long long)q->decoded_tokens, (unsigned long long)q->lost_tokens);
    printf("\"seconds\": %.9f, \"output_tokens_per_s\": %.9g, \"input_tokens_per_s\": %.9g, "
           "\"step_ms\": %.9g, \"attention_share\": %.6g, \"busy_share\": %.6g, ",
           t->seconds, t->output_per_s, t->input_per_s, t->step_ms, t->attention_share,
           t->busy_share);
    printf("\"waiting_mean\": %.9g, \"waiting_max\": %llu, \"running_mean\": %.9g, "
           "\"running_max\": %llu, \"kv_mean\": %.6g, \"kv_max\": %.6g, \"pages_max\": %llu, "
           "\"pages\": %llu",
           t->waiting_mean, (unsigned long long)q->waiting_max, t->running_mean,
           (unsigned long long)q->running_max, t->kv_mean, t->kv_max,
           (unsigned long long)q->pages_max, (unsigned long long)q->pages);
    json_summaries(t);
    json_over_time(q);
    printf(", \"good\": %s}", q->is_good ? "true" : "false");
}

void serve_report_json(const serve_report *r) {
    const serve_machine *d = &r->setup.machine;
    printf("{\"source\": ");
    print_json(stdout, r->load.source);
    printf(", \"requests\": %u, \"input_tokens\": %llu, \"output_tokens\": %llu, \"model\": ",
           (unsigned)r->load.count, (unsigned long long)r->input_tokens,
           (unsigned long long)r->output_tokens);
    print_json(stdout, r->setup.model.name);
    printf(", \"parameters\": %.0f, \"kv_bytes_per_token\": %.0f, \"machine\": ",
           serve_model_total(&r->setup.model), serve_setup_kv_bytes(&r->setup));
    print_json(stdout, d->name);
    printf(", \"devices\": %u, \"lanes\": %u, \"flops_per_s\": %.6g, \"bytes_per_s\": %.6g, "
           "\"attention_cost_ns\": {\"per_unit\": %.6g, \"per_token\": %.6g, "
           "\"per_row_token\": %.6g, \"per_merged_row\": %.6g}, ",
           (unsigned)r->setup.devices, (unsigned)d->lanes, d->flops_per_s, d->bytes_per_s,
           d->attention.per_unit / d->clock_hz * 1e9, d->attention.per_token / d->clock_hz * 1e9,
           d->attention.per_row_token / d->clock_hz * 1e9,
           d->attention.per_merged_row / d->clock_hz * 1e9);
    printf("\"page\": %u, \"kv_tokens\": %llu, \"policies\": [", (unsigned)r->setup.page,
           (unsigned long long)r->kv_tokens);
    for (uint32_t i = 0; i < r->policy_count; i++) {
        fputs(i ? ",\n" : "\n", stdout);
        json_policy(&r->policies[i], &r->results[i], &r->totals[i]);
    }
    printf("],\n\"good\": %s}\n", serve_report_is_good(r) ? "true" : "false");
}
