// One step of a serving engine, for real: plans a ragged batch, attends a paged KV cache on threads,
// merges the pieces, and compares every output with a plain double-precision softmax attention.
//
//      lengths -> attention plan -> units on lanes, merges as soon as they can -> outputs -> check
//
// Beside it runs the chunk plan of the same batch: one chunk for all sequences, whose units go to
// lanes as these become free, and a barrier before the merges.
//
// Every step is done anew as an engine would: plan, run, merge; the times shown are medians over
// steps. `decode_batch --help` lists the options; the parts of the program are in common/decode.h.

#include "ptowsp.h"

#include "common/command.h"
#include "common/decode.h"

int main(int argc, char **argv) {
    static decode_step s;  // zeroed
    decode_options_read(argc, argv, &s.o);
    ptowsp_context_desc desc = {0};
    desc.threads = s.o.threads == 1 ? PTOWSP_THREADS_SERIAL : PTOWSP_THREADS_OWN;
    desc.lane_count = (uint32_t)s.o.threads;
    ptowsp_status status = ptowsp_context_create(&desc, &s.context);
    if (status != PTOWSP_OK) {
        command_fail("threads: %s", ptowsp_status_text(status));
    }
    decode_lengths_make(&s);
    decode_plans_make(&s);  // refuses bad lengths before memory is filled
    decode_say(&s.o, "filling a KV cache of up to %llu MiB", (unsigned long long)s.o.kv_mib);
    decode_data_make(&s);
    decode_say(&s.o, "%llu steps: plan, run, merge", (unsigned long long)s.o.steps);
    for (uint32_t i = 0; i < s.o.steps; i++) {
        if (s.has_chunks) {
            decode_chunks_step(&s, i);
        }
        decode_balanced_step(&s, i);
    }
    decode_say(&s.o, "checking all outputs in double precision");
    decode_check(&s);
    bool is_good = decode_report(&s);
    decode_free(&s);
    return is_good ? 0 : 1;
}
