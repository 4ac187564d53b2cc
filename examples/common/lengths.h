// Where the examples' sequence lengths come from: a seeded generator, or a public serving trace.

#ifndef LENGTHS_H
#define LENGTHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// KV lengths of `count` requests with the shape of chat traffic: lognormal, mu 6.9, sigma 1.3
// (median 992 tokens), cut at 131,072. Lengths depend on the seed alone (and on the last bits of
// libm).
void lengths_generate(uint64_t seed, uint32_t count, int32_t *out_lengths);

// The next number of a SplitMix64 stream (Steele, Lea and Flood 2014), uniform over 64 bits; and
// one uniform in (0, 1).
uint64_t lengths_random(uint64_t *state);
double lengths_random_unit(uint64_t *state);

// One request of a trace.
typedef struct trace_request {
    double arrival_seconds;  // after the first request
    int32_t input_tokens;
    int32_t output_tokens;
    size_t id_begin, id_count;  // in ids of the trace: the blocks of its input, from the first on
} trace_request;

#define TRACE_BLOCK_TOKENS 512  // of input in a block that has an id

typedef struct trace {
    trace_request *requests;
    size_t count;
    const char *format;  // "Azure CSV", "BurstGPT CSV" or "Mooncake JSONL"
    int64_t *ids;        // equal ids are equal blocks after equal blocks, so their KV can be shared
    size_t id_count;
} trace;

// Reads a trace from memory. Formats, told apart by their first line:
//
//      Azure CSV        TIMESTAMP,ContextTokens,GeneratedTokens      a header line, then e.g.
//                       2023-11-16 18:15:46.6805900,374,44 or, with a zone,
//                       2024-05-10 00:00:00.009930+00:00,2162,5
//      BurstGPT CSV     Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
//                       with times in seconds, such as 5 or 5.25. A failed request has no output.
//                       Both: columns are found by name, in any order; others are passed
//      Mooncake JSONL   {"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": []}
//                       in which numbers are JSON's: 1000, 1e3 and 1000.0 are the same.
//                       Ids are whole numbers from 0 to 2^62. There are none, or at least one for
//                       each 512 tokens of the input, begun ones too
//
// Returns false and a line of text in error[error_size], "NAME:LINE: what is wrong", for anything
// else: an empty file, missing or wrong columns, cut off lines, numbers that are negative, not
// whole or greater than 2^31 - 1. trace_free frees what a true return has allocated.
bool trace_parse(const char *name, const char *text, size_t size, trace *out_trace, char *error,
                 size_t error_size);

// The same from a file.
bool trace_read(const char *path, trace *out_trace, char *error, size_t error_size);
void trace_free(trace *from);

// KV lengths of up to batch_max requests: the inputs of the first ones.
uint32_t trace_first(const trace *from, uint32_t batch_max, int32_t *out_lengths);

// KV lengths of up to batch_max requests that are being decoded at a time: those that have arrived,
// at one output token every token_seconds, and have not ended; each has its input and the tokens so
// far.
uint32_t trace_live(const trace *from, double at_seconds, double token_seconds, uint32_t batch_max,
                    int32_t *out_lengths);

// When the last request ends, in seconds after the first one came: from then on none is live.
double trace_end(const trace *from, double token_seconds);

#endif
