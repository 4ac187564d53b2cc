// The load of a serving simulation: requests that arrive, from a trace or a seeded generator.

#ifndef SERVE_LOAD_H
#define SERVE_LOAD_H

#include "lengths.h"

typedef struct serve_request {
    uint64_t arrival_ns;
    uint32_t input, output;       // tokens
    uint32_t id_begin, id_count;  // its blocks in ids of the load
    uint32_t id_add;              // added to each of them
} serve_request;

// Requests in the order of their arrival, the first at 0. Block ids are dense: 0 to block_count - 1.
typedef struct serve_load {
    serve_request *requests;
    uint32_t count;
    uint32_t *ids;
    uint32_t block_count;
    char source[256];
} serve_load;

// How a load is made from requests that are given.
typedef struct serve_load_options {
    double hours;  // > 0: the requests again and again, with new ids, until this time; 0: once
    double speed;  // arrivals come so many times faster; before `hours` applies
    uint64_t requests_max;  // at most so many, counted before they are repeated
} serve_load_options;

// A request of chat traffic arrives every 1 / rate seconds on average (a Poisson process). Inputs
// are those of lengths_generate. Outputs are lognormal, mu 4.9 and sigma 0.9 (median 134), cut at
// 2,000. Half of the requests begin with one of 16 prompts of one to four blocks. `count` requests;
// with hours those that come within them, at most `count` of these.
void serve_load_generate(uint64_t seed, uint64_t count, double rate,
                         const serve_load_options *options, serve_load *out_load);

// The requests of a trace.
void serve_load_from_trace(const trace *from, const char *name, const serve_load_options *options,
                           serve_load *out_load);

void serve_load_free(serve_load *load);

// The k-th block of a request.
static inline uint32_t serve_load_block(const serve_load *load, const serve_request *r,
                                        uint32_t k) {
    return load->ids[r->id_begin + k] + r->id_add;
}

#endif
