// The options of decode_batch.

#include "command.h"
#include "decode.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char help_text[] =
    "usage: decode_batch [options]\n"
    "  --batch N          requests in the step (256)\n"
    "  --heads N          query heads (32; with --mla 16, those of one device of eight)\n"
    "  --kv-heads N       KV heads; heads is a multiple of it (8)\n"
    "  --dim N            head dimension, a multiple of 8 up to 576 (128)\n"
    "  --mla              latent attention: one KV head, keys of 576, values of 512 of these\n"
    "  --prefill          each sixteenth request brings a prompt of up to 128 query tokens, "
    "causal\n"
    "  --page N           tokens in a KV page (16)\n"
    "  --kv TYPE          type of the KV cache: f32, f16, bf16 or i8 (f16)\n"
    "  --kv-mib N         size of the KV pool; pages repeat beyond it (256)\n"
    "  --threads N        threads (one for each processor)\n"
    "  --lanes N          lanes of the attention plan (as many as threads)\n"
    "  --invariant        attention plan whose results do not depend on the rest of the batch\n"
    "  --stealing         threads that are done take units of others\n"
    "  --units N          limit on work units of the chunk plan (4096)\n"
    "  --fixed            chunk plan with chunks of fixed length instead of balanced ones\n"
    "  --steps N          steps to take the median over (5)\n"
    "  --seed N           of lengths, page table and data (1)\n"
    "  --trace FILE       lengths from a trace (Azure or BurstGPT CSV, Mooncake JSONL): its first\n"
    "  --at SECONDS       with --trace: the requests live at that time\n"
    "  --token-ms X       with --at: time for an output token (30)\n"
    "  --timeline FILE    when the units of the last step ran: .svg, or else for Perfetto\n"
    "  --json             the result as JSON\n";

const char *const decode_type_names[4] = {"f32", "f16", "bf16", "i8"};

static ptowsp_attend_type decode_type_read(const char *text) {
    for (uint32_t i = 0; i < 4; i++) {
        if (strcmp(text, decode_type_names[i]) == 0) {
            return (ptowsp_attend_type)i;
        }
    }
    command_fail("--kv takes f32, f16, bf16 or i8, not '%s'", text);
}

// Fills in what depends on other options, and refuses what does not go together.
static void decode_options_complete(decode_options *o) {
    if (o->is_mla && (o->kv_heads || o->dim)) {
        command_fail("--mla has one KV head of 576: no %s", o->dim ? "--dim" : "--kv-heads");
    }
    o->kv_heads = o->is_mla ? 1 : o->kv_heads ? o->kv_heads : 8;
    o->heads = o->heads ? o->heads : o->is_mla ? 16 : 32;
    o->dim = o->is_mla ? 576 : o->dim ? o->dim : 128;
    if (o->heads % o->kv_heads != 0) {
        command_fail("--heads %llu is not a multiple of --kv-heads %llu",
                     (unsigned long long)o->heads, (unsigned long long)o->kv_heads);
    }
    if (o->dim % 8 != 0) {
        command_fail("--dim %llu is not a multiple of 8", (unsigned long long)o->dim);
    }
    o->has_at = o->at_seconds >= 0.0;
    if (o->has_at && !o->trace_path) {
        command_fail("--at needs --trace");
    }
}

void decode_options_read(int argc, char **argv, decode_options *out_options) {
    decode_options o;
    memset(&o, 0, sizeof o);
    o.batch = 256, o.page = 16, o.units = 4096, o.kv_mib = 256, o.steps = 5, o.seed = 1;
    o.at_seconds = -1.0, o.token_ms = 30.0;
    const char *type = "f16";
    const uint64_t reals = UINT64_C(1000000000000);
    const command_option numbers[] = {
        {"--batch", &o.batch, NULL, 1, 65536},
        {"--heads", &o.heads, NULL, 1, 1024},
        {"--kv-heads", &o.kv_heads, NULL, 1, 1024},
        {"--dim", &o.dim, NULL, 8, PTOWSP_ATTEND_DIM_MAX},
        {"--page", &o.page, NULL, 1, 65536},
        {"--threads", &o.threads, NULL, 1, PTOWSP_LANE_COUNT_MAX},
        {"--lanes", &o.lanes, NULL, 1, PTOWSP_ATTENTION_LANE_MAX},
        {"--units", &o.units, NULL, 1, UINT32_MAX},
        {"--kv-mib", &o.kv_mib, NULL, 1, 1 << 20},
        {"--steps", &o.steps, NULL, 1, DECODE_STEPS_MAX},
        {"--seed", &o.seed, NULL, 0, UINT64_MAX},
        {"--at", NULL, &o.at_seconds, 0, reals},
        {"--token-ms", NULL, &o.token_ms, 0, reals},
    };
    const command_text texts[] = {
        {"--kv", &type}, {"--trace", &o.trace_path}, {"--timeline", &o.timeline_path}};
    const command_flag flags[] = {
        {"--mla", &o.is_mla},     {"--prefill", &o.is_prefill},   {"--invariant", &o.is_invariant},
        {"--fixed", &o.is_fixed}, {"--stealing", &o.is_stealing}, {"--json", &o.is_json},
    };
    const command_options options = {numbers, sizeof numbers / sizeof *numbers,
                                     texts,   sizeof texts / sizeof *texts,
                                     flags,   sizeof flags / sizeof *flags};
    command_parse_all(argc, argv, help_text, &options);
    o.type = decode_type_read(type);
    if (o.token_ms < 1e-3) {
        command_fail("--token-ms takes a number from 0.001 on, not %g", o.token_ms);
    }
    decode_options_complete(&o);
    *out_options = o;
}

void decode_say(const decode_options *o, const char *format, ...) {
    if (!o->is_json) {
        va_list args;
        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
        fputc('\n', stderr);
    }
}
