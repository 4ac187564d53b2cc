// The options of serve_trace.

#ifndef SERVE_OPTIONS_H
#define SERVE_OPTIONS_H

#include "serve_report.h"

typedef struct serve_options {
    uint64_t requests, seed, devices, page, batch, tile_rows, threads, units, plan_every, kv_tokens;
    double rate, hours, speed, efficiency, memory_share, memory_gib, layer_us;
    const char *trace_path, *svg_path, *html_path, *perfetto_path;
    const char *machine;
    serve_model model;
    bool is_json, is_calibrate, is_every_head;
    serve_policy policies[SERVE_POLICIES_MAX];
    uint32_t policy_count;
} serve_options;

// Reads the options of the program; anything wrong exits with 2.
void serve_options_read(int argc, char **argv, serve_options *out_options);

#endif
