// A serving engine, simulated: requests arrive, wait, are computed in steps, and leave.
//
//      arrivals -> waiting -> running: prompt in chunks, then a token a step -> done
//                     ^          |
//                     +----------+  preempted: no page for the next token; computed again
//
// A step is as in engines with continuous batching and chunked prefill (Orca, Yu et al. 2022;
// Sarathi-Serve, Agrawal et al. 2024): every sequence that decodes gets its token, and what is left of
// `chunk` query tokens goes to prompts, first to those that run, then to those that wait. A request
// is admitted when its whole prompt has pages, and one page in a hundred is left over if others run.
// Where a page for a next token is missing, the sequence that was admitted last goes back to the
// queue. Its prompt then has the tokens that it has generated, too.
//
// Prompts share the KV of equal first blocks. At least one token of a prompt is computed.
//
// Time is in whole nanoseconds. A result depends on nothing but the arguments.

#ifndef SERVE_RUN_H
#define SERVE_RUN_H

#include "serve_cost.h"
#include "serve_load.h"

typedef enum serve_order {
    SERVE_FCFS,     // who came first
    SERVE_SHORTEST  // the shortest prompt; of these, who came first. Long ones may starve
} serve_order;

typedef struct serve_policy {
    char name[80];  // in words: order, tokens, plan, with ", " between them
    serve_order order;
    uint32_t chunk;  // query tokens of a step, but that no sequence that decodes goes without
    serve_plan plan;
} serve_policy;

// What happened to a request. Times are since the simulation began; 0 tokens of output: the end of
// the prompt is both.
typedef struct serve_record {
    uint64_t first_ns, done_ns;  // of the first token, of the last
    uint32_t generated;
    bool is_refused;  // without input, or larger than the cache
} serve_record;

// Sums over a time of a run, in nanoseconds times what they are of.
typedef struct serve_interval {
    double waiting_ns, running_ns, page_ns;
} serve_interval;

enum { SERVE_INTERVALS = 512 };

typedef struct serve_result {
    serve_record *records;  // [count of the load]
    serve_interval intervals[SERVE_INTERVALS];
    uint64_t interval_ns;  // of each
    uint64_t end_ns;

    uint64_t done, refused, preemptions, evictions;
    uint64_t steps, plans;
    uint64_t input_tokens, output_tokens;  // of requests that are done
    // Every token whose KV was stored, by where it came from; and those whose KV was lost.
    uint64_t computed_tokens, reused_tokens, decoded_tokens, lost_tokens;
    uint64_t waiting_max, running_max, pages_max, pages;  // pages: the capacity
    double busy_ns, attention_ns;
    bool is_good;  // all sums are right
} serve_result;

// Called now and then with the number of requests that are done or refused.
typedef void (*serve_progress)(void *user, uint64_t done);

// Runs a load. kv_tokens is the size of the cache, running_max the most sequences in a step. Free the
// result with serve_result_free.
void serve_run(const serve_setup *setup, const serve_policy *policy, const serve_load *load,
               uint64_t kv_tokens, uint32_t running_max, serve_progress progress, void *user,
               serve_result *out_result);
void serve_result_free(serve_result *result);

#endif
