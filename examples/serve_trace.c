// A serving engine, simulated: requests of a trace arrive at a model on a machine, under policies that
// are compared side by side.
//
//      trace or generator -> queue -> continuous batching, chunked prefill -> tokens
//                              |             |                   |
//                           policy     paged KV cache,    cost of each step: attention
//                                      shared prefixes    plan + roofline of the rest
//
// Attention takes what the largest lane of a plan of that batch takes (ptowsp_attention_generate under
// a machine's ptowsp_attention_cost), so what a planner is worth is seen in latencies. All else is a
// roofline: a bound from below, whose efficiency you can set. A result is the same for any number
// of threads; they run policies at a time.
//
// `serve_trace --help` lists the options. The parts are in common/:
//
//      serve_load      requests, from a trace or generated
//      serve_machine   models and machines; serve_calibrate measures this computer
//      serve_cost      the time of a step
//      serve_cache     pages, and blocks that prompts share
//      serve_run       the engine
//      serve_stats     percentiles and totals
//      serve_report    table and JSON; serve_picture draws, serve_page has it in HTML;
//                      serve_perfetto writes every request

#include "ptowsp.h"

#include "common/command.h"
#include "common/serve_options.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// What all lanes share.
typedef struct serving {
    serve_report *report;
    atomic_uint_least64_t done[SERVE_POLICIES_MAX];  // requests of each policy
    atomic_flag is_drawing;
    uint64_t started_ns;
    bool has_bar;  // stderr is a terminal
} serving;

typedef struct serving_policy {
    serving *all;
    uint64_t index;
} serving_policy;

// Draws the bar, once half a second has passed, unless another lane does so right now.
static void serving_progress(void *user, uint64_t done) {
    enum { WIDTH = 40 };
    const serving_policy *p = (const serving_policy *)user;
    serving *s = p->all;
    uint64_t sum = 0, all = (uint64_t)s->report->load.count * s->report->policy_count;
    atomic_store_explicit(&s->done[p->index], done, memory_order_relaxed);
    if (!s->has_bar || ptowsp_clock_ns() - s->started_ns < UINT64_C(500000000) ||
        atomic_flag_test_and_set_explicit(&s->is_drawing, memory_order_acquire)) {
        return;
    }
    for (uint32_t i = 0; i < s->report->policy_count; i++) {
        sum += atomic_load_explicit(&s->done[i], memory_order_relaxed);
    }
    int full = (int)(sum * WIDTH / all);
    fprintf(stderr, "\rserving [%.*s%*s] %3d %%", full, "########################################",
            WIDTH - full, "", (int)(sum * 100 / all));
    atomic_flag_clear_explicit(&s->is_drawing, memory_order_release);
}

static void serving_policies(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    serving *s = (serving *)user;
    serve_report *r = s->report;
    (void)lane;
    for (uint64_t i = begin; i < end; i++) {
        serving_policy p = {s, i};
        serve_run(&r->setup, &r->policies[i], &r->load, r->kv_tokens, r->running_max,
                  serving_progress, &p, &r->results[i]);
        serving_progress(&p, r->load.count);
        r->totals[i] = serve_totals_make(&r->load, &r->results[i]);
    }
}

static void serving_load_make(serve_report *r, const serve_options *o) {
    serve_load_options options = {o->hours, o->speed, o->requests ? o->requests : UINT64_MAX};
    if (!o->trace_path) {
        double expected = o->hours * 3600.0 * o->rate * o->speed;
        uint64_t count = o->hours > 0.0 && expected < 1e8 ? (uint64_t)(expected * 2.0) + 100 : 2000;
        if (expected >= 1e8) {
            command_fail("--hours %g at --rate %g are more than 10^8 requests", o->hours, o->rate);
        }
        serve_load_generate(o->seed, o->requests ? o->requests : count, o->rate, &options,
                            &r->load);
    } else {
        const char *slash = strrchr(o->trace_path, '/');
        char error[512];
        trace t;
        if (!trace_read(o->trace_path, &t, error, sizeof error)) {
            command_fail("%s", error);
        }
        serve_load_from_trace(&t, slash ? slash + 1 : o->trace_path, &options, &r->load);
        trace_free(&t);
    }
    for (uint32_t i = 0; i < r->load.count; i++) {
        r->input_tokens += r->load.requests[i].input;
        r->output_tokens += r->load.requests[i].output;
    }
}

static void serving_setup_make(serve_report *r, const serve_options *o, ptowsp_context *context) {
    const double gib = 1024.0 * 1024.0 * 1024.0;
    serve_setup *s = &r->setup;
    s->model = o->model;
    if (o->is_calibrate) {
        serve_machine_calibrate(context, &s->model, 64.0 * gib, &s->machine);
    } else if (!serve_machine_find(o->machine, &s->model, &s->machine)) {
        command_fail("--machine takes 910b or 950pr, not '%s'", o->machine);
    }
    if (o->memory_gib > 0.0) {
        s->machine.memory_bytes = o->memory_gib * gib;
    }
    s->devices = (uint32_t)o->devices;
    s->page = (uint32_t)o->page;
    s->tile_rows = (uint32_t)o->tile_rows;
    s->efficiency = o->efficiency;
    s->layer_ns = o->layer_us * 1e3;
    s->plan_every = (uint32_t)o->plan_every;
    s->is_every_head = o->is_every_head;
    s->units_max = (uint32_t)o->units;
    uint32_t heads = serve_setup_heads(s), kv_heads = serve_setup_kv_heads(s);
    if (heads % kv_heads != 0) {
        command_fail("--heads %llu over --devices %u is not a multiple of their KV heads",
                     (unsigned long long)s->model.heads, (unsigned)s->devices);
    }
    r->running_max = (uint32_t)o->batch;
    r->kv_tokens = o->kv_tokens ? o->kv_tokens : serve_setup_kv_tokens(s, o->memory_share);
    if (r->kv_tokens < s->page) {
        command_fail("no room for KV: %.1f GiB of weights on each of %u device%s with %.1f GiB",
                     serve_model_total(&s->model) * s->model.weight_bytes / s->devices / gib,
                     (unsigned)s->devices, s->devices == 1 ? "" : "s",
                     s->machine.memory_bytes / gib);
    }
    memcpy(r->policies, o->policies, sizeof r->policies);
    r->policy_count = o->policy_count;
}

// Writes a file whole, or exits with 2.
static void serving_write(const serve_report *r, const char *path,
                          void (*write)(const serve_report *, FILE *)) {
    FILE *to = path ? fopen(path, "wb") : NULL;
    if (path && !to) {
        command_fail("%s: cannot be written: %s", path, strerror(errno));
    }
    if (to) {
        write(r, to);
        bool is_bad = ferror(to) != 0;
        if (fclose(to) != 0 || is_bad) {
            command_fail("%s: cannot be written", path);
        }
    }
}

int main(int argc, char **argv) {
    static serve_report report;  // zeroed
    static serving all;
    serve_options o;
    ptowsp_context *context;
    serve_options_read(argc, argv, &o);
    ptowsp_context_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.threads = o.threads == 1 ? PTOWSP_THREADS_SERIAL : PTOWSP_THREADS_OWN;
    desc.lane_count = (uint32_t)o.threads;
    ptowsp_status status = ptowsp_context_create(&desc, &context);
    if (status != PTOWSP_OK) {
        command_fail("threads: %s", ptowsp_status_text(status));
    }
    serving_load_make(&report, &o);
    serving_setup_make(&report, &o, context);
    all.report = &report;
    all.started_ns = ptowsp_clock_ns();
    all.has_bar = isatty(2) != 0;
    command_check(context,
                  ptowsp_parallel_for(context, report.policy_count, 1, serving_policies, &all));
    if (all.has_bar) {
        fprintf(stderr, "\r%60s\r", "");
    }
    serving_write(&report, o.svg_path, serve_report_svg);
    serving_write(&report, o.html_path, serve_report_html);
    serving_write(&report, o.perfetto_path, serve_report_perfetto);
    if (o.is_json) {
        serve_report_json(&report);
    } else {
        serve_report_table(&report);
    }
    command_flush();
    bool is_good = serve_report_is_good(&report);
    for (uint32_t i = 0; i < report.policy_count; i++) {
        serve_result_free(&report.results[i]);
    }
    serve_load_free(&report.load);
    ptowsp_context_destroy(context);
    return is_good ? 0 : 1;
}
