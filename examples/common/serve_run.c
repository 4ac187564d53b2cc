#include "serve_run.h"

#include "command.h"
#include "serve_cache.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRESS_STEPS = 4096 };

// A sequence that runs.
typedef struct run_sequence {
    uint32_t request;
    uint32_t target;  // tokens of its prompt, with those generated before it was preempted
    uint32_t stored;  // tokens whose KV is in the cache
    uint32_t blocks;  // shared, its first ones
    uint64_t pages;   // of its own
    uint32_t query;   // tokens in this step
} run_sequence;

typedef struct run {
    const serve_setup *setup;
    const serve_policy *policy;
    const serve_load *load;
    serve_result *r;
    serve_cost *cost;
    serve_cache cache;

    uint64_t now_ns;
    uint32_t arrived;   // requests
    uint32_t *waiting;  // a heap of requests, the next one at its root
    uint32_t waiting_count;
    run_sequence *running;  // [running_max] in the order of admission
    uint32_t running_count, running_max;
    int32_t *kv_lengths, *query_lengths;  // [running_max] of a step
    bool is_same;  // the sequences that run are those of the last step, all of them decoding
} run;

// -- the queue ------------------------------------------------------------------------------------

static bool run_is_before(const run *s, uint32_t a, uint32_t b) {
    if (s->policy->order == SERVE_SHORTEST) {
        uint32_t x = s->load->requests[a].input + s->r->records[a].generated;
        uint32_t y = s->load->requests[b].input + s->r->records[b].generated;
        if (x != y) {
            return x < y;
        }
    }
    return a < b;
}

static void run_wait(run *s, uint32_t request) {
    uint32_t at = s->waiting_count++;
    for (; at > 0 && run_is_before(s, request, s->waiting[(at - 1) / 2]); at = (at - 1) / 2) {
        s->waiting[at] = s->waiting[(at - 1) / 2];
    }
    s->waiting[at] = request;
    if (s->waiting_count > s->r->waiting_max) {
        s->r->waiting_max = s->waiting_count;
    }
}

static void run_wait_end(run *s) {
    uint32_t last = s->waiting[--s->waiting_count], at = 0;
    for (uint32_t child = 1; child < s->waiting_count; child = at * 2 + 1) {
        child += child + 1 < s->waiting_count &&
                 run_is_before(s, s->waiting[child + 1], s->waiting[child]);
        if (!run_is_before(s, s->waiting[child], last)) {
            break;
        }
        s->waiting[at] = s->waiting[child];
        at = child;
    }
    s->waiting[at] = last;
}

// -- intervals ------------------------------------------------------------------------------------

// Makes intervals twice as long until `end` is in one of them.
static void run_stretch(run *s, uint64_t end_ns) {
    serve_result *r = s->r;
    while (end_ns / SERVE_INTERVALS >= r->interval_ns) {
        for (uint32_t i = 0; i < SERVE_INTERVALS; i++) {
            serve_interval sum = {0.0, 0.0, 0.0};
            for (uint32_t k = 2 * i; k < 2 * i + 2 && k < SERVE_INTERVALS; k++) {
                sum.waiting_ns += r->intervals[k].waiting_ns;
                sum.running_ns += r->intervals[k].running_ns;
                sum.page_ns += r->intervals[k].page_ns;
            }
            r->intervals[i] = sum;
        }
        r->interval_ns *= 2;
    }
}

// Counts so many from one time to another.
static void run_record(run *s, uint64_t begin_ns, uint64_t end_ns, double waiting, double running,
                       double pages) {
    run_stretch(s, end_ns);
    while (begin_ns < end_ns) {
        uint64_t index = begin_ns / s->r->interval_ns, stop_ns = (index + 1) * s->r->interval_ns;
        double ns = (double)((stop_ns < end_ns ? stop_ns : end_ns) - begin_ns);
        serve_interval *interval = &s->r->intervals[index];
        interval->waiting_ns += waiting * ns;
        interval->running_ns += running * ns;
        interval->page_ns += pages * ns;
        begin_ns = stop_ns;
    }
}

// -- arrivals and admission -----------------------------------------------------------------------

static uint64_t run_pages(const run *s, uint64_t tokens) {
    return (tokens + s->setup->page - 1) / s->setup->page;
}

// Lets in all that have come by now. Those that came during a step have waited since.
static void run_arrive(run *s) {
    while (s->arrived < s->load->count && s->load->requests[s->arrived].arrival_ns <= s->now_ns) {
        const serve_request *q = &s->load->requests[s->arrived];
        uint64_t stored_max = (uint64_t)q->input + (q->output > 1 ? q->output - 1 : 0);
        if (q->input == 0 || run_pages(s, stored_max) > s->cache.capacity) {
            s->r->records[s->arrived].is_refused = true;
            s->r->refused++;
        } else {
            run_record(s, q->arrival_ns, s->now_ns, 1.0, 0.0, 0.0);
            run_wait(s, s->arrived);
        }
        s->arrived++;
    }
}

// Leaves a sequence's pages and blocks.
static void run_leave(run *s, const run_sequence *q) {
    const serve_request *request = &s->load->requests[q->request];
    for (uint32_t k = q->blocks; k-- > 0;) {
        serve_cache_leave(&s->cache, serve_load_block(s->load, request, k));
    }
    serve_cache_give(&s->cache, q->pages);
}

// Shared blocks of a prompt: whole, known by an id, with at least a token after them.
static uint32_t run_blocks_max(const run *s, const serve_request *request) {
    uint32_t whole = s->cache.block_pages ? (request->input - 1) / TRACE_BLOCK_TOKENS : 0;
    return whole < request->id_count ? whole : request->id_count;
}

// Admits the next request that waits, if there are pages.
static bool run_admit(run *s) {
    uint32_t index = s->waiting[0], blocks_max;
    const serve_request *request = &s->load->requests[index];
    run_sequence q = {index, request->input + s->r->records[index].generated, 0, 0, 0, 0};
    blocks_max = run_blocks_max(s, request);
    while (q.blocks < blocks_max &&
           serve_cache_use(&s->cache, serve_load_block(s->load, request, q.blocks))) {
        q.blocks++;
    }
    uint64_t pages = run_pages(s, q.target) - (uint64_t)q.blocks * s->cache.block_pages;
    if (!serve_cache_take(&s->cache, pages, s->running_count ? s->cache.capacity / 100 : 0)) {
        run_leave(s, &q);
        return false;
    }
    q.pages = pages;
    q.stored = q.blocks * TRACE_BLOCK_TOKENS;
    s->r->reused_tokens += q.stored;
    s->running[s->running_count++] = q;
    if (s->running_count > s->r->running_max) {
        s->r->running_max = s->running_count;
    }
    run_wait_end(s);
    return true;
}

static void run_preempt(run *s) {
    const run_sequence *q = &s->running[--s->running_count];
    run_leave(s, q);
    s->r->lost_tokens += q->stored;
    s->r->preemptions++;
    run_wait(s, q->request);
    s->is_same = false;
}

// -- steps ----------------------------------------------------------------------------------------

static bool run_is_decoding(const run_sequence *q) {
    return q->stored >= q->target;
}

// Gives every sequence that decodes a page for its next token if it needs one, and a query. Returns
// the queries.
static uint32_t run_decode(run *s) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->running_count; i++) {
        run_sequence *q = &s->running[i];
        q->query = 0;
        if (!run_is_decoding(q)) {
            continue;
        }
        uint64_t pages = q->pages + (uint64_t)q->blocks * s->cache.block_pages;
        if (run_pages(s, (uint64_t)q->stored + 1) > pages) {
            while (i < s->running_count && !serve_cache_take(&s->cache, 1, 0)) {
                run_preempt(s);
            }
            if (i == s->running_count) {
                break;  // it was the last one itself
            }
            q->pages++;
        }
        q->query = 1;
        count++;
    }
    return count;
}

// Gives what is left of the chunk to prompts, and admits those that wait.
static uint32_t run_prefill(run *s, uint32_t left) {
    uint32_t before = left;
    for (uint32_t i = 0; left > 0; i++) {
        if (i == s->running_count &&
            (s->waiting_count == 0 || s->running_count == s->running_max || !run_admit(s))) {
            break;
        }
        run_sequence *q = &s->running[i];
        if (!run_is_decoding(q)) {
            uint32_t need = q->target - q->stored;
            q->query = need < left ? need : left;
            left -= q->query;
            s->is_same = false;
        }
    }
    return before - left;
}

// What a step has done for a sequence: KV, blocks that others can use, a token. Returns true if that
// was the last one.
static bool run_advance(run *s, run_sequence *q) {
    const serve_request *request = &s->load->requests[q->request];
    serve_record *record = &s->r->records[q->request];
    bool is_decode = run_is_decoding(q);
    *(is_decode ? &s->r->decoded_tokens : &s->r->computed_tokens) += q->query;
    q->stored += q->query;
    uint32_t blocks_max = is_decode ? 0 : run_blocks_max(s, request);
    while (q->blocks < blocks_max && (q->blocks + 1) * TRACE_BLOCK_TOKENS <= q->stored) {
        serve_cache_share(&s->cache, serve_load_block(s->load, request, q->blocks++));
        q->pages -= s->cache.block_pages;
    }
    if (q->query == 0 || !run_is_decoding(q)) {
        return false;
    }
    if (!is_decode) {
        q->target = q->stored;
    }
    if (record->generated == 0) {
        record->first_ns = s->now_ns;
    }
    record->generated += request->output > 0;
    if (record->generated < request->output) {
        return false;
    }
    record->done_ns = s->now_ns;
    s->r->done++;
    s->r->input_tokens += request->input;
    s->r->output_tokens += record->generated;
    run_leave(s, q);
    return true;
}

// The sequences of the step as its cost wants them, and how long it takes.
static uint64_t run_time(run *s, uint32_t query_count) {
    serve_step step = {s->kv_lengths, s->query_lengths, 0, query_count, 0, s->is_same};
    for (uint32_t i = 0; i < s->running_count; i++) {
        const run_sequence *q = &s->running[i];
        if (q->query > 0) {
            s->kv_lengths[step.count] = (int32_t)(q->stored + q->query);
            s->query_lengths[step.count++] = (int32_t)q->query;
            step.sampled += q->stored + q->query >= q->target;
        }
    }
    serve_time time = serve_cost_step(s->cost, &step);
    s->r->attention_ns += time.attention_ns;
    double ns = time.attention_ns + time.rest_ns;
    return ns < 1.0 ? 1 : (uint64_t)(ns + 0.5);
}

static void run_step(run *s) {
    uint64_t begin_ns = s->now_ns;
    uint32_t kept = 0, decodes;
    s->is_same = s->is_same && s->running_count > 0;
    decodes = run_decode(s);
    uint32_t queries = decodes;
    if (decodes < s->policy->chunk) {
        queries += run_prefill(s, s->policy->chunk - decodes);
    }
    assert(queries > 0 && serve_cache_used_pages(&s->cache) <= s->cache.capacity);
    uint64_t pages = serve_cache_used_pages(&s->cache);
    s->r->pages_max = pages > s->r->pages_max ? pages : s->r->pages_max;
    s->now_ns += run_time(s, queries);
    s->r->busy_ns += (double)(s->now_ns - begin_ns);
    s->r->steps++;
    run_record(s, begin_ns, s->now_ns, s->waiting_count, s->running_count, (double)pages);
    s->is_same = true;
    for (uint32_t i = 0; i < s->running_count; i++) {
        run_sequence *q = &s->running[i];
        bool was_decoding = run_is_decoding(q);
        if (run_advance(s, q)) {
            s->is_same = false;
        } else {
            s->is_same = s->is_same && was_decoding;
            s->running[kept++] = *q;
        }
    }
    s->running_count = kept;
}

// All tokens that came in are there: those of requests that are done, computed once or taken from the
// cache, and beside them only those that were lost.
static bool run_sums_are_right(const run *s) {
    const serve_result *r = s->r;
    uint64_t stored = 0, output = 0;
    for (uint32_t i = 0; i < s->load->count; i++) {
        const serve_request *q = &s->load->requests[i];
        if (!r->records[i].is_refused) {
            stored += (uint64_t)q->input + (q->output > 1 ? q->output - 1 : 0);
            output += q->output;
        }
    }
    return r->done + r->refused == s->load->count && output == r->output_tokens &&
           r->computed_tokens + r->reused_tokens + r->decoded_tokens == stored + r->lost_tokens &&
           r->pages_max <= r->pages && serve_cache_used_pages(&s->cache) == 0;
}

void serve_run(const serve_setup *setup, const serve_policy *policy, const serve_load *load,
               uint64_t kv_tokens, uint32_t running_max, serve_progress progress, void *user,
               serve_result *out_result) {
    run s;
    serve_result *r = out_result;
    memset(&s, 0, sizeof s);
    memset(r, 0, sizeof *r);
    uint32_t block_pages =
        TRACE_BLOCK_TOKENS % setup->page == 0 ? TRACE_BLOCK_TOKENS / setup->page : 0;
    s.setup = setup, s.policy = policy, s.load = load, s.r = r;
    s.running_max = running_max;
    s.waiting = (uint32_t *)command_allocate(load->count, sizeof *s.waiting);
    s.running = (run_sequence *)command_allocate(running_max, sizeof *s.running);
    s.kv_lengths = (int32_t *)command_allocate(running_max, sizeof *s.kv_lengths);
    s.query_lengths = (int32_t *)command_allocate(running_max, sizeof *s.query_lengths);
    s.cost = serve_cost_create(setup, policy->plan, running_max, (int32_t)kv_tokens,
                               policy->chunk > running_max ? policy->chunk : running_max);
    serve_cache_make(&s.cache, kv_tokens / setup->page, block_pages, load->block_count);
    r->records = (serve_record *)command_allocate(load->count, sizeof *r->records);
    r->pages = s.cache.capacity;
    r->interval_ns = 1000000;
    for (run_arrive(&s); s.arrived < load->count || s.waiting_count > 0 || s.running_count > 0;
         run_arrive(&s)) {
        if (s.waiting_count == 0 && s.running_count == 0) {
            s.now_ns = load->requests[s.arrived].arrival_ns;  // nothing to do until then
            continue;
        }
        run_step(&s);
        if (progress && r->steps % PROGRESS_STEPS == 0) {
            progress(user, r->done + r->refused);
        }
    }
    r->end_ns = s.now_ns;
    r->plans = serve_cost_plan_count(s.cost);
    r->evictions = s.cache.evictions;
    r->is_good = run_sums_are_right(&s);
    serve_cost_destroy(s.cost);
    serve_cache_free(&s.cache);
    free(s.waiting);
    free(s.running);
    free(s.kv_lengths);
    free(s.query_lengths);
}

void serve_result_free(serve_result *result) {
    free(result->records);
    memset(result, 0, sizeof *result);
}
