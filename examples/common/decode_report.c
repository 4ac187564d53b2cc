// What decode_batch prints: a table with a column for each plan, or JSON.

#include "command.h"
#include "decode.h"
#include "print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { HASHED_REQUESTS = 8 };  // whose outputs have a hash each, in JSON

static int report_compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static double report_median_us(uint64_t *ns, uint64_t count) {
    qsort(ns, (size_t)count, sizeof *ns, report_compare);
    return (double)ns[count / 2] / 1000.0;
}

// What is reported of a plan.
typedef struct report_column {
    double plan_us, run_us, merge_us, total_us, balance, kv_gb_per_s, scratch_mib;
    uint64_t hash;
    bool is_good;
} report_column;

static uint64_t report_kv_bytes(const decode_step *s) {
    return s->token_count * (s->page_elements / s->o.page) * ptowsp_attend_bytes(s->o.type, 1);
}

// A hash of the outputs of requests [first, end).
static uint64_t report_hash(const decode_run *run, uint32_t first, uint32_t end) {
    const decode_step *s = run->step;
    uint64_t token_floats = s->o.heads * s->value_dim, begin = 0, stop = 0;
    if (first < end) {
        begin = decode_query_start(s, first);
        stop = decode_query_start(s, end - 1) + (uint64_t)decode_query_length(s, end - 1);
    }
    return ptowsp_hash(PTOWSP_HASH_START, run->outputs + begin * token_floats,
                       (size_t)((stop - begin) * token_floats) * sizeof(float));
}

static report_column report_column_make(decode_run *run) {
    const decode_step *s = run->step;
    report_column c;
    c.plan_us = report_median_us(run->plan_ns, s->o.steps);
    c.run_us = report_median_us(run->run_ns, s->o.steps);
    c.merge_us = report_median_us(run->merge_ns, s->o.steps);
    c.total_us = report_median_us(run->total_ns, s->o.steps);
    c.kv_gb_per_s = c.run_us > 0.0 ? (double)report_kv_bytes(s) / c.run_us * 1e-3 : 0.0;
    c.scratch_mib = (double)run->slot_count * run->scratch.rows * (s->value_dim + 2) *
                    (double)sizeof(float) / (1 << 20);
    uint32_t lane_count = ptowsp_context_lane_count(s->context);
    uint64_t busy = 0, busiest = 0;
    for (uint32_t lane = 0; lane < lane_count; lane++) {
        busy += run->lanes[lane].busy_ns;
        busiest = run->lanes[lane].busy_ns > busiest ? run->lanes[lane].busy_ns : busiest;
    }
    c.balance = busy ? (double)busiest * lane_count / (double)busy : 1.0;
    c.hash = report_hash(run, 0, s->sequence_count);
    c.is_good = run->error <= DECODE_TOLERANCE;
    return c;
}

// A row of the table: the attention plan, then the chunk plan if there is one.
static void report_row(const decode_step *s, const char *name, const char *balanced,
                       const char *chunks) {
    printf("  %-32s %18s %18s\n", name, balanced, s->has_chunks ? chunks : "");
}

static double report_ratio(const decode_run *run) {
    return run->cost_mean > 0.0 ? run->cost_max / run->cost_mean : 1.0;
}

static void report_head(const decode_step *s) {
    const decode_options *o = &s->o;
    printf("decode step: %s\n", s->source);
    printf(
        "  model    %llu query heads over %llu KV head%s of %llu, KV in %s, pages of %llu tokens\n",
        (unsigned long long)o->heads, (unsigned long long)o->kv_heads, o->kv_heads == 1 ? "" : "s",
        (unsigned long long)o->dim, decode_type_names[o->type], (unsigned long long)o->page);
    printf(
        "  batch    %s requests, %s tokens, the longest %s; %s MiB of KV in a pool of %s MiB\n",
        print_grouped(s->sequence_count), print_grouped(s->token_count),
        print_grouped((uint64_t)s->length_max), print_grouped(report_kv_bytes(s) >> 20),
        print_grouped((s->pool_pages * s->page_elements * ptowsp_attend_bytes(o->type, 1)) >> 20));
    if (o->is_prefill) {
        printf("  queries  %s; %s of the requests with a prompt, in tiles of %u tokens, causal\n",
               print_grouped(s->query_count), print_grouped(s->prompt_count),
               (unsigned)s->plan.tile_tokens);
    }
    uint32_t threads = ptowsp_context_lane_count(s->context);
    printf("  threads  %u (%s), on %u lane%s of the plan%s\n\n", (unsigned)threads,
           ptowsp_attend_variant(), (unsigned)s->plan.lane_count,
           s->plan.lane_count == 1 ? "" : "s", o->is_stealing ? ", stealing" : "");
}

static void report_table(const decode_step *s, const report_column *b, const report_column *c) {
    const decode_run *balanced = &s->balanced, *chunks = &s->chunks;
    char chunk[48];
    snprintf(chunk, sizeof chunk, "%s of %s", s->o.is_fixed ? "fixed" : "balanced",
             print_grouped(s->chunk));
    report_head(s);
    report_row(s, "", "attention plan", "chunk plan");
    report_row(s, "kind", s->o.is_invariant ? "invariant" : "balanced", chunk);
    report_row(s, "units", print_grouped(balanced->unit_count), print_grouped(chunks->unit_count));
    report_row(s, "of these, parts of split tiles", print_grouped(balanced->part_count),
               print_grouped(chunks->part_count));
    report_row(s, "merges", print_grouped(balanced->merge_count),
               print_grouped(chunks->merge_count));
    report_row(s, "scratch, MiB", print_fixed(b->scratch_mib, 2), print_fixed(c->scratch_mib, 2));
    report_row(s, "largest lane / mean, predicted", print_fixed(report_ratio(balanced), 4),
               print_fixed(report_ratio(chunks), 4));
    report_row(s, "busiest thread / mean, measured", print_fixed(b->balance, 4),
               print_fixed(c->balance, 4));
    report_row(s, "plan, us", print_fixed(b->plan_us, 1), print_fixed(c->plan_us, 1));
    report_row(s, "run, ms", print_fixed(b->run_us / 1000.0, 2),
               print_fixed(c->run_us / 1000.0, 2));
    report_row(s, "merge, ms", "in the run", print_fixed(c->merge_us / 1000.0, 2));
    report_row(s, "step: plan + run + merge, ms", print_fixed(b->total_us / 1000.0, 2),
               print_fixed(c->total_us / 1000.0, 2));
    report_row(s, "KV read in the run, GB/s", print_fixed(b->kv_gb_per_s, 1),
               print_fixed(c->kv_gb_per_s, 1));
    char errors[2][32], hashes[2][32];
    const decode_run *runs[2] = {balanced, chunks};
    const report_column *columns[2] = {b, c};
    for (int i = 0; i < 2; i++) {
        snprintf(errors[i], sizeof errors[i], "%.2e", runs[i]->error);
        snprintf(hashes[i], sizeof hashes[i], "%016llx", (unsigned long long)columns[i]->hash);
    }
    report_row(s, "largest error of a row", errors[0], errors[1]);
    report_row(s, "hash of the outputs", hashes[0], hashes[1]);
    printf("\n");
    if (!s->has_chunks) {
        printf("  chunks   have no query tiles, so there is no chunk plan with --prefill\n");
    } else if (s->is_over) {
        printf("  chunks   are as long as they may be, and their units still more than %s\n",
               print_grouped(s->o.units));
    }
    printf("  bits     are the same for any number of threads%s\n",
           s->o.is_invariant ? ", lanes and neighbours" : " with the same lanes");
    printf("  check    %s outputs%s, %.0e allowed: %s\n",
           print_grouped(s->query_count * s->o.heads * s->value_dim),
           s->has_chunks ? " of each" : "", DECODE_TOLERANCE,
           b->is_good && c->is_good ? "good" : "WRONG");
}

// -- JSON -----------------------------------------------------------------------------------------

static void json_counts(const decode_run *run) {
    printf("\"units\": %llu, \"parts\": %llu, \"merges\": %llu, \"max_over_mean\": %.4f",
           (unsigned long long)run->unit_count, (unsigned long long)run->part_count,
           (unsigned long long)run->merge_count, report_ratio(run));
}

static void json_results(const decode_run *run, const report_column *c) {
    printf(", \"plan_us\": %.3f, \"run_us\": %.3f, \"merge_us\": %.3f, \"step_us\": %.3f, "
           "\"kv_gb_per_s\": %.3f, \"busy_max_over_mean\": %.4f, \"scratch_mib\": %.3f, "
           "\"largest_error\": ",
           c->plan_us, c->run_us, c->merge_us, c->total_us, c->kv_gb_per_s, c->balance,
           c->scratch_mib);
    if (isfinite(run->error)) {
        printf("%.3e", run->error);
    } else {
        printf("null");  // JSON has no NaN
    }
    printf(", \"hash\": \"%016llx\"}, ", (unsigned long long)c->hash);
}

static void json_chunks(const decode_step *s, const report_column *c) {
    uint64_t tier_units[DECODE_TIER_COUNT] = {0};
    for (uint64_t i = 0; i < s->chunks.unit_count; i++) {
        tier_units[s->work[i].tier]++;
    }
    printf("\"chunk_plan\": {\"chunk\": %u, \"tier_units\": [", (unsigned)s->chunk);
    for (uint32_t i = 0; i < DECODE_TIER_COUNT; i++) {
        printf("%s%llu", i ? ", " : "", (unsigned long long)tier_units[i]);
    }
    printf("], ");
    json_counts(&s->chunks);
    json_results(&s->chunks, c);
}

static void report_json(const decode_step *s, const report_column *b, const report_column *c) {
    const decode_options *o = &s->o;
    printf("{\"source\": ");
    print_json(stdout, s->source);
    printf(", \"batch\": %u, \"tokens\": %llu, \"queries\": %llu, \"heads\": %llu, "
           "\"kv_heads\": %llu, \"dim\": %llu, \"page\": %llu, \"kv\": \"%s\", \"kv_bytes\": %llu, "
           "\"threads\": %u, \"variant\": \"%s\", ",
           (unsigned)s->sequence_count, (unsigned long long)s->token_count,
           (unsigned long long)s->query_count, (unsigned long long)o->heads,
           (unsigned long long)o->kv_heads, (unsigned long long)o->dim, (unsigned long long)o->page,
           decode_type_names[o->type], (unsigned long long)report_kv_bytes(s),
           (unsigned)ptowsp_context_lane_count(s->context), ptowsp_attend_variant());
    printf("\"attention_plan\": {\"mode\": \"%s\", \"lanes\": %u, ",
           o->is_invariant ? "invariant" : "balanced", (unsigned)s->plan.lane_count);
    json_counts(&s->balanced);
    json_results(&s->balanced, b);
    if (s->has_chunks) {
        json_chunks(s, c);
    }
    printf("\"request_hashes\": [");
    for (uint32_t i = 0; i < s->sequence_count && i < HASHED_REQUESTS; i++) {
        printf("%s\"%016llx\"", i ? ", " : "",
               (unsigned long long)report_hash(&s->balanced, i, i + 1));
    }
    printf("], \"good\": %s}\n", b->is_good && c->is_good ? "true" : "false");
}

bool decode_report(decode_step *s) {
    report_column b = report_column_make(&s->balanced), c = report_column_make(&s->chunks);
    if (s->o.is_json) {
        report_json(s, &b, &c);
    } else {
        report_table(s, &b, &c);
    }
    command_flush();
    return b.is_good && c.is_good;
}
