// The page: the picture, and the numbers of the table beside those of the other policies.

#include "serve_report.h"

#include "print.h"

static const char page_style[] =
    "<style>\n"
    "body{font:15px/1.5 sans-serif;color:#24292f;background:#fff;max-width:60em;margin:2em auto;"
    "padding:0 1em}\n"
    "table{border-collapse:collapse;margin:1em 0}\n"
    "th,td{padding:.2em .8em;text-align:right;border-bottom:1px solid #d0d7de}\n"
    ".best{font-weight:bold}"
    "th:first-child,td:first-child{text-align:left}\n"
    "svg{max-width:100%;height:auto}\n"
    "@media (prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}"
    "th,td{border-color:#30363d}}\n"
    "</style>\n";

static void page_names(const serve_report *r, const char *first, FILE *to) {
    fprintf(to, "<table>\n<tr><th>%s</th>", first);
    for (uint32_t i = 0; i < r->policy_count; i++) {
        fputs("<th>", to);
        print_xml(to, r->policies[i].name);
        fputs("</th>", to);
    }
    fputs("</tr>\n", to);
}

// A row whose cells are an expression of result q and totals t.
#define PAGE_ROW(name, cell)                                                                       \
    do {                                                                                           \
        fprintf(to, "<tr><td>%s</td>", name);                                                      \
        for (uint32_t i = 0; i < r->policy_count; i++) {                                           \
            const serve_result *q = &r->results[i];                                                \
            const serve_totals *t = &r->totals[i];                                                 \
            (void)q, (void)t;                                                                      \
            fprintf(to, "<td>%s</td>", cell);                                                      \
        }                                                                                          \
        fputs("</tr>\n", to);                                                                      \
    } while (0)

static void page_totals(const serve_report *r, FILE *to) {
    page_names(r, "in all", to);
    PAGE_ROW("requests done", print_grouped(q->done));
    PAGE_ROW("refused", print_grouped(q->refused));
    PAGE_ROW("seconds until the last is done", print_fixed(t->seconds, 1));
    PAGE_ROW("output tokens a second", print_fixed(t->output_per_s, 1));
    PAGE_ROW("input tokens a second", print_fixed(t->input_per_s, 1));
    PAGE_ROW("prefix reuse, %", print_fixed(t->reuse_share * 100.0, 1));
    PAGE_ROW("preemptions", print_grouped(q->preemptions));
    PAGE_ROW("steps", print_grouped(q->steps));
    PAGE_ROW("mean step, ms", print_fixed(t->step_ms, 2));
    PAGE_ROW("attention in steps, %", print_fixed(t->attention_share * 100.0, 1));
    PAGE_ROW("machine busy, %", print_fixed(t->busy_share * 100.0, 1));
    PAGE_ROW("waiting, mean", print_fixed(t->waiting_mean, 1));
    PAGE_ROW("KV in use, mean, %", print_fixed(t->kv_mean * 100.0, 1));
    PAGE_ROW("KV in use, most, %", print_fixed(t->kv_max * 100.0, 1));
    fputs("</table>\n", to);
}

static void page_latencies(const serve_report *r, serve_metric metric, const char *title,
                           FILE *to) {
    double scale = metric == SERVE_TOKEN ? 1e3 : 1.0;
    page_names(r, title, to);
    for (int k = 0; k < SERVE_CLASS_COUNT; k++) {
        if (r->totals[0].summaries[metric][k].count == 0) {
            continue;
        }
        for (int quantile = 0; quantile < SERVE_QUANTILE_COUNT; quantile++) {
            const uint32_t best = serve_report_best(r, metric, k, quantile);
            fprintf(to, "<tr><td>%s, %s</td>", serve_class_names[k],
                    serve_quantile_names[quantile]);
            for (uint32_t i = 0; i < r->policy_count; i++) {
                const double value = serve_report_latency(r, i, metric, k, quantile) * scale;
                fprintf(to, i == best ? "<td class=\"best\">%s</td>" : "<td>%s</td>",
                        print_fixed(value, 2));
            }
            fputs("</tr>\n", to);
        }
    }
    fputs("</table>\n", to);
}

static void page_conclusion(const serve_report *r, FILE *to) {
    const char *sentence;
    for (uint32_t i = 0; (sentence = serve_report_conclusion(r, i)) != NULL; i++) {
        fputs(i ? " " : "<p>", to);
        print_xml(to, sentence);
    }
    fputs(serve_report_conclusion(r, 0) ? "</p>\n" : "", to);
}

void serve_report_html(const serve_report *r, FILE *to) {
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
          "<meta name=\"viewport\" content=\"width=device-width\"/>\n"
          "<meta name=\"color-scheme\" content=\"light dark\"/>\n"
          "<title>Serving simulation</title>\n",
          to);
    fputs(page_style, to);
    fputs("</head>\n<body>\n<h1>Serving simulation</h1>\n", to);
    page_conclusion(r, to);
    serve_report_svg(r, to);
    page_totals(r, to);
    fputs("<p>Requests are short up to 1,024 tokens of input, medium up to 8,192, else long. The "
          "lowest "
          "latency of a row is bold.</p>\n",
          to);
    page_latencies(r, SERVE_FIRST, "time to first token, s", to);
    page_latencies(r, SERVE_TOKEN, "time per token, ms", to);
    page_latencies(r, SERVE_TOTAL, "from arrival to the end, s", to);
    fputs("</body>\n</html>\n", to);
}
