#include "serve_options.h"

#include "command.h"
#include "print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help_text[] =
    "usage: serve_trace [options]\n"
    "load\n"
    "  --trace FILE       requests of a trace: Azure, BurstGPT CSV, Mooncake JSONL (generated)\n"
    "  --requests N       at most so many (2000 generated, all of a trace)\n"
    "  --rate X           generated requests a second (3)\n"
    "  --seed N           of the generated ones (1)\n"
    "  --speed X          arrivals come X times faster (1)\n"
    "  --hours X          repeats a trace, or generates requests, until so many hours are full\n"
    "policies\n"
    "  --policies LIST    up to 8 of ORDER:TOKENS:PLAN, with commas between them:\n"
    "                     ORDER   fcfs, or shortest prompt first\n"
    "                     TOKENS  query tokens of a step, for chunks of prompts\n"
    "                     PLAN    balanced (attention plan) or chunks (chunk plan)\n"
    "                     (fcfs:512:balanced,shortest:512:balanced,fcfs:2048:balanced,"
    "fcfs:512:chunks)\n"
    "  --batch N          sequences that run, at most (256)\n"
    "  --page N           tokens in a KV page; prefixes are shared if 512 is a multiple (16)\n"
    "machine\n"
    "  --machine NAME     910b or 950pr (910b)\n"
    "  --calibrate        this computer instead, measured\n"
    "  --memory-gib X     of a device (the machine's; with --calibrate 64)\n"
    "  --devices N        that share each layer (1; deepseek 16)\n"
    "  --memory-share X   of a device's memory, for weights and KV (0.9)\n"
    "  --kv-tokens N      size of the KV cache (what fits beside the weights)\n"
    "  --tile-rows N      rows of a tile of attention (128)\n"
    "  --efficiency X     share of the machine's rates, outside of attention (1)\n"
    "  --layer-us X       of each layer in a step, such as for communication (0)\n"
    "model\n"
    "  --model NAME       llama (Llama-3-8B) or deepseek (DeepSeek-V3, latent attention) (llama)\n"
    "  --layers N, --hidden N, --heads N, --kv-heads N, --dim N, --ffn N, --vocab N,\n"
    "  --experts N, --top-k N, --expert-ffn N, --weight-bits N    sizes other than the model's\n"
    "simulation\n"
    "  --plan-every N     steps to a plan while the batch is the same (16); 1 is exact\n"
    "  --every-head       plans all KV heads and lanes; otherwise one group of them, as heads are "
    "alike\n"
    "  --units N          work units of a chunk plan, about (1024)\n"
    "  --threads N        threads (one for each processor); results do not depend on them\n"
    "results\n"
    "  --json             as JSON, also over time\n"
    "  --svg FILE         a picture: latencies, and queue and KV over time\n"
    "  --html FILE        a page with the picture and tables\n"
    "  --perfetto FILE    a trace of all requests for ui.perfetto.dev\n";

static const char default_policies[] =
    "fcfs:512:balanced,shortest:512:balanced,fcfs:2048:balanced,fcfs:512:chunks";

// Takes the text up to a mark; false if it is empty or does not fit.
static bool options_take(const char **at, char mark, char *out, size_t out_size) {
    size_t length = strcspn(*at, ":,");
    if (length == 0 || length >= out_size || (*at)[length] != mark) {
        return false;
    }
    memcpy(out, *at, length);
    out[length] = '\0';
    *at += length + (mark != '\0');
    return true;
}

// policy = ( "fcfs" | "shortest" ) ":" tokens ":" ( "balanced" | "chunks" )
static bool options_policy(const char **at, serve_policy *out_policy) {
    char order[16], tokens[16], plan[16], *end;
    if (!options_take(at, ':', order, sizeof order) ||
        !options_take(at, ':', tokens, sizeof tokens)) {
        return false;
    }
    bool is_last = strchr(*at, ',') == NULL;
    if (!options_take(at, is_last ? '\0' : ',', plan, sizeof plan)) {
        return false;
    }
    unsigned long chunk = strtoul(tokens, &end, 10);
    bool is_fcfs = strcmp(order, "fcfs") == 0, is_balanced = strcmp(plan, "balanced") == 0;
    if (*end || tokens[0] < '0' || tokens[0] > '9' || chunk < 1 || chunk > 1 << 20 ||
        (!is_fcfs && strcmp(order, "shortest") != 0) ||
        (!is_balanced && strcmp(plan, "chunks") != 0)) {
        return false;
    }
    snprintf(out_policy->name, sizeof out_policy->name, "%s, %s tokens a step, %s",
             is_fcfs ? "first come first served" : "shortest prompt first", print_grouped(chunk),
             is_balanced ? "balanced plan" : "equal chunks");
    out_policy->order = is_fcfs ? SERVE_FCFS : SERVE_SHORTEST;
    out_policy->chunk = (uint32_t)chunk;
    out_policy->plan = is_balanced ? SERVE_BALANCED : SERVE_CHUNKS;
    return true;
}

static void options_policies(serve_options *o, const char *text) {
    const char *at = text;
    do {
        if (o->policy_count == SERVE_POLICIES_MAX) {
            command_fail("--policies takes up to %d, not '%s'", SERVE_POLICIES_MAX, text);
        }
        if (!options_policy(&at, &o->policies[o->policy_count++])) {
            command_fail("--policies takes ORDER:TOKENS:PLAN, with commas between them, not '%s'",
                         text);
        }
    } while (*at || (at > text && at[-1] == ','));
}

// The model with the sizes that were given, which are not 0.
static serve_model options_model(const char *name, const serve_model *given, uint64_t bits) {
    serve_model m = strcmp(name, "deepseek") == 0 ? serve_model_deepseek() : serve_model_llama();
    if (!m.is_mla && strcmp(name, "llama") != 0) {
        command_fail("--model takes llama or deepseek, not '%s'", name);
    }
    if (m.is_mla && (given->kv_heads || given->dim)) {
        command_fail("--model deepseek has one KV head of 576: no %s",
                     given->dim ? "--dim" : "--kv-heads");
    }
    if (!given->experts && !m.experts && (given->top_k || given->expert_ffn)) {
        command_fail("%s needs --experts", given->top_k ? "--top-k" : "--expert-ffn");
    }
    if (given->experts && !m.experts) {  // all layers
        m.dense_layers = 0, m.top_k = 1, m.expert_ffn = m.ffn;
    }
    m.layers = given->layers ? given->layers : m.layers;
    m.hidden = given->hidden ? given->hidden : m.hidden;
    m.heads = given->heads ? given->heads : m.heads;
    m.kv_heads = given->kv_heads ? given->kv_heads : m.kv_heads;
    m.dim = given->dim ? given->dim : m.dim;
    m.value_dim = given->dim ? given->dim : m.value_dim;
    m.ffn = given->ffn ? given->ffn : m.ffn;
    m.vocab = given->vocab ? given->vocab : m.vocab;
    m.experts = given->experts ? given->experts : m.experts;
    m.top_k = given->top_k ? given->top_k : m.top_k;
    m.expert_ffn = given->expert_ffn ? given->expert_ffn : m.expert_ffn;
    m.weight_bytes = bits ? (double)bits / 8.0 : m.weight_bytes;
    m.dense_layers = m.dense_layers < m.layers ? m.dense_layers : m.layers;
    if (m.heads % m.kv_heads != 0) {
        command_fail("--heads %llu is not a multiple of --kv-heads %llu",
                     (unsigned long long)m.heads, (unsigned long long)m.kv_heads);
    }
    if (m.experts && m.top_k > m.experts) {
        command_fail("--top-k %llu is more than --experts %llu", (unsigned long long)m.top_k,
                     (unsigned long long)m.experts);
    }
    return m;
}

void serve_options_read(int argc, char **argv, serve_options *out_options) {
    serve_options o;
    serve_model given;
    uint64_t bits = 0;
    const char *model = "llama", *policies = default_policies;
    memset(&o, 0, sizeof o);
    memset(&given, 0, sizeof given);
    o.seed = 1, o.page = 16, o.batch = 256, o.tile_rows = 128, o.units = 1024, o.plan_every = 16;
    o.rate = 3.0, o.speed = 1.0, o.efficiency = 1.0, o.memory_share = 0.9;
    const uint64_t size = 1 << 20;
    const command_option numbers[] = {
        {"--requests", &o.requests, NULL, 1, 100000000},
        {"--rate", NULL, &o.rate, 0, 1000000},
        {"--seed", &o.seed, NULL, 0, UINT64_MAX},
        {"--speed", NULL, &o.speed, 0, 1000000},
        {"--hours", NULL, &o.hours, 0, 100000},
        {"--batch", &o.batch, NULL, 1, 65536},
        {"--tile-rows", &o.tile_rows, NULL, 1, 65536},
        {"--page", &o.page, NULL, 1, 65536},
        {"--memory-gib", NULL, &o.memory_gib, 0, 1 << 20},
        {"--devices", &o.devices, NULL, 1, 1024},
        {"--memory-share", NULL, &o.memory_share, 0, 1},
        {"--kv-tokens", &o.kv_tokens, NULL, 1, INT32_MAX},
        {"--efficiency", NULL, &o.efficiency, 0, 1},
        {"--layer-us", NULL, &o.layer_us, 0, 1000000},
        {"--layers", &given.layers, NULL, 1, 1024},
        {"--hidden", &given.hidden, NULL, 1, size},
        {"--heads", &given.heads, NULL, 1, 1024},
        {"--kv-heads", &given.kv_heads, NULL, 1, 1024},
        {"--dim", &given.dim, NULL, 1, 4096},
        {"--ffn", &given.ffn, NULL, 1, size},
        {"--vocab", &given.vocab, NULL, 1, size * 16},
        {"--experts", &given.experts, NULL, 1, 65536},
        {"--top-k", &given.top_k, NULL, 1, 65536},
        {"--expert-ffn", &given.expert_ffn, NULL, 1, size},
        {"--weight-bits", &bits, NULL, 1, 64},
        {"--plan-every", &o.plan_every, NULL, 1, 65536},
        {"--units", &o.units, NULL, 1, UINT32_MAX},
        {"--threads", &o.threads, NULL, 1, PTOWSP_LANE_COUNT_MAX},
    };
    const command_text texts[] = {
        {"--trace", &o.trace_path},       {"--policies", &policies},
        {"--machine", &o.machine},        {"--model", &model},
        {"--svg", &o.svg_path},           {"--html", &o.html_path},
        {"--perfetto", &o.perfetto_path},
    };
    const command_flag flags[] = {{"--json", &o.is_json},
                                  {"--calibrate", &o.is_calibrate},
                                  {"--every-head", &o.is_every_head}};
    const command_options options = {numbers, sizeof numbers / sizeof *numbers,
                                     texts,   sizeof texts / sizeof *texts,
                                     flags,   sizeof flags / sizeof *flags};
    command_parse_all(argc, argv, help_text, &options);
    const struct {
        const char *flag;
        double value;
    } positive[] = {{"--rate", o.rate}, {"--speed", o.speed}, {"--efficiency", o.efficiency}};
    for (size_t i = 0; i < sizeof positive / sizeof *positive; i++) {
        if (positive[i].value < 1e-6) {
            command_fail("%s takes a number from 0.000001 on, not %g", positive[i].flag,
                         positive[i].value);
        }
    }
    if (o.machine && o.is_calibrate) {
        command_fail("--machine and --calibrate do not go together");
    }
    o.machine = o.machine ? o.machine : "910b";
    o.model = options_model(model, &given, bits);
    o.devices = o.devices ? o.devices : o.model.is_mla ? 16 : 1;
    options_policies(&o, policies);
    *out_options = o;
}
