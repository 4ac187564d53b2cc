// One step of a serving engine, for decode_batch: a batch with a paged KV cache, two plans of it,
// and a double-precision check of what each computes.
//
//      decode_options_read    decode_options.c    options of the program
//      decode_data_make       decode_data.c       lengths, cache, queries
//      decode_*_plan, _run    decode_plan.c       the attention plan and, beside it, the chunk plan
//      decode_check           decode_check.c      every output of both
//      decode_report          decode_report.c     a table or JSON

#ifndef DECODE_H
#define DECODE_H

#include "ptowsp.h"

#define DECODE_TOLERANCE     1e-4  // of the largest magnitude in an output row
#define DECODE_STEPS_MAX     100
#define DECODE_PROMPT_EVERY  16   // --prefill: a prompt in each of so many requests
#define DECODE_PROMPT_TOKENS 128  // of a prompt, at most

// Chunk plans need a tier for every length, so the standard ones get a last one without an end.
#define DECODE_TIERS(TIER) PTOWSP_DECODE_TIERS(TIER) TIER(4, 131073, INT32_MAX)
enum { DECODE_TIER_COUNT = PTOWSP_DECODE_TIER_COUNT + 1 };

typedef struct decode_options {
    uint64_t batch, heads, kv_heads, dim, page, threads, lanes, units, kv_mib, steps, seed;
    ptowsp_attend_type type;
    bool is_fixed, is_json, is_prefill, is_mla, is_invariant, is_stealing;
    bool has_at;
    double at_seconds, token_ms;
    const char *trace_path, *timeline_path;
} decode_options;

extern const char *const decode_type_names[4];  // by ptowsp_attend_type

// Reads the options of the program; anything wrong exits with 2.
void decode_options_read(int argc, char **argv, decode_options *out_options);

// Says what is done next, to stderr, as a default step takes seconds. JSON is for programs.
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void decode_say(const decode_options *o, const char *format, ...);

// Counters of one thread, a cache line apart.
typedef struct decode_lane {
    uint64_t busy_ns;
    uint64_t units;
    char padding[112];
} decode_lane;

typedef struct decode_step decode_step;

// A plan's memory, times and results.
typedef struct decode_run {
    const decode_step *step;
    ptowsp_attend_step attention;      // whose outputs are this run's
    ptowsp_attend_job job;             // with that step, on a cache
    ptowsp_attention_scratch scratch;  // of the job, or of the chunk plan
    void *memory;                      // of the job
    float *outputs;                    // [query token][head][value_dim]
    decode_lane *lanes;                // [threads]

    uint64_t unit_count, part_count, merge_count, slot_count;
    double cost_max, cost_mean;                                       // of the plan's lanes
    uint64_t plan_ns[DECODE_STEPS_MAX], run_ns[DECODE_STEPS_MAX];     // merges included, or
    uint64_t merge_ns[DECODE_STEPS_MAX], total_ns[DECODE_STEPS_MAX];  // after the run
    double error;                                                     // largest, relative
} decode_run;

struct decode_step {
    decode_options o;
    ptowsp_context *context;
    char source[256];  // where the lengths come from

    uint32_t sequence_count;
    ptowsp_attention_batch lengths;  // the three that follow
    int32_t *kv_lengths;             // [sequence_count]
    int32_t *query_lengths;          // [sequence_count]; NULL: 1 each
    uint32_t *query_starts;          // [sequence_count + 1]; NULL: the sequence's index
    uint64_t token_count, query_count, prompt_count;
    int32_t length_max;
    uint32_t group;               // query heads of a KV head
    uint32_t key_dim, value_dim;  // MLA: values are the first part of keys

    ptowsp_attend_cache kv;
    ptowsp_attend_step attention;
    void *pool;     // [page][kv_head][K or V][slot][dim]; MLA: [page][slot][key_dim]
    float *scales;  // [page][kv_head][slot], of keys and of values; KV in i8 alone
    uint64_t pool_pages, page_elements;
    uint32_t *pages;        // page tables of all requests, one after another
    uint32_t *page_starts;  // [request] where its table begins
    float *queries;         // [query token][head][key_dim]

    decode_run balanced;  // the attention plan
    ptowsp_attention_config config;
    ptowsp_attention_plan plan;
    void *plan_block;

    decode_run chunks;  // the chunk plan
    bool has_chunks;
    uint32_t chunk;
    ptowsp_work *work;
    uint64_t work_capacity;
    bool is_over;  // more units than --units, as the largest chunk is too small
};

// Query tokens of a request, and the number of its first one in the batch.
uint32_t decode_query_length(const decode_step *s, uint32_t request);
uint32_t decode_query_start(const decode_step *s, uint32_t request);

// Makes the data of a step: lengths first, then all that is large.
void decode_lengths_make(decode_step *s);
void decode_data_make(decode_step *s);

// Prepares both plans: counts, checks the lengths, and makes room.
void decode_plans_make(decode_step *s);

// Plans and runs the step once, with one plan or the other; `index` is where times go.
void decode_balanced_step(decode_step *s, uint32_t index);
void decode_chunks_step(decode_step *s, uint32_t index);

// Writes the timeline of a step of the attention plan to the file of the options.
void decode_timeline_write(const decode_step *s, const ptowsp_span *spans);

// Compares the outputs of all runs with a plain softmax attention in double precision.
void decode_check(decode_step *s);

// Prints the result; false if an output is wrong.
bool decode_report(decode_step *s);

void decode_free(decode_step *s);

#endif
