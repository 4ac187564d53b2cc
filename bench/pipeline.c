// Pipelines in simulated time: ns per operation of a channel, a send or a receive. Beside them the
// same network of threads that really wait for each other, at channels of a mutex and two
// condition variables. Both are made from one description; threads pass fewer tokens, as many as
// take some 10 ms.
//
//      pair        producer --> consumer
//      chain       load --> compute --> store, each with a task for each token
//      replicas    4 producers --> one channel --> 4 consumers
//      ring        --> process 0 --> process 1 --> ... --> process 63 --> process 0 -->
//
// With computed tokens a send evaluates the value k + 1; otherwise it sends the variable of a loop.
//
// Two more things are beside the pair: the same channel of mutex and conditions used by one thread,
// so that nobody ever waits; and beside the one of computed tokens the rule of time alone, as a loop.

#include "bench.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOKENS (is_counting ? UINT64_C(1) << 16 : UINT64_C(1) << 20)  // through a pipeline

enum {
    PARTY_MAX = 64,
    RING = 64,
    REPLICAS = 4,
    LATENCY = 50,

    ROUND_COUNT = 11
};

// -- networks -------------------------------------------------------------------------------------

#define NO_CHANNEL UINT32_MAX

// Sends `first` tokens, then receives and sends `forward`, then receives `last`.
typedef struct net_party {
    const char *name;
    uint32_t in, out;
    uint64_t first, forward, last;
    ptowsp_cycles cycles;  // of its task for each token; 0: none
} net_party;

typedef struct net {
    net_party parties[PARTY_MAX];
    uint32_t party_count, channel_count, depth;
    uint32_t replica_count;  // of each party
    bool is_ring;
    bool is_computed;  // tokens of first loops are computed
} net;

static void net_add(net *n, const net_party *party) {
    n->parties[n->party_count++] = *party;
}

static net net_begin(uint32_t channel_count, uint32_t depth, uint32_t replica_count) {
    net n;
    memset(&n, 0, sizeof n);
    n.channel_count = channel_count;
    n.depth = depth;
    n.replica_count = replica_count;
    return n;
}

static net net_pair(uint32_t depth, uint32_t replica_count, uint64_t tokens) {
    net n = net_begin(1, depth, replica_count);
    const net_party producer = {"producer", NO_CHANNEL, 0, tokens / replica_count, 0, 0, 0};
    const net_party consumer = {"consumer", 0, NO_CHANNEL, 0, 0, tokens / replica_count, 0};
    net_add(&n, &producer);
    net_add(&n, &consumer);
    return n;
}

static net net_chain(uint32_t depth, uint64_t tokens) {
    net n = net_begin(2, depth, 1);
    const net_party load = {"load", NO_CHANNEL, 0, tokens, 0, 0, 100};
    const net_party compute = {"compute", 0, 1, 0, tokens, 0, 150};
    const net_party store = {"store", 1, NO_CHANNEL, 0, 0, tokens, 80};
    net_add(&n, &load);
    net_add(&n, &compute);
    net_add(&n, &store);
    return n;
}

// One token, or one for each party, goes round and round.
static net net_ring(bool is_full, uint64_t rounds) {
    net n = net_begin(RING, 1, 1);
    n.is_ring = true;
    for (uint32_t i = 0; i < RING; i++) {
        const uint64_t own = is_full || i == 0;
        const net_party party = {NULL, i, (i + 1) % RING, own, rounds - own, own, 0};
        net_add(&n, &party);
    }
    return n;
}

static double net_operations(const net *n) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < n->party_count; i++) {
        const net_party *party = &n->parties[i];
        count += (party->first + 2 * party->forward + party->last) * n->replica_count;
    }
    return (double)count;
}

// -- beside: channels between threads -------------------------------------------------------------

typedef struct thread_channel {
    pthread_mutex_t mutex;
    pthread_cond_t has_token, has_room;
    uint64_t tokens[64];
    uint64_t sent, received;
    uint32_t depth;
} thread_channel;

// At depth 0, a sender puts its token down when the one before is gone, and waits until it is.
static void channel_send(thread_channel *c, uint64_t token) {
    const uint64_t room = c->depth ? c->depth : 1;
    pthread_mutex_lock(&c->mutex);
    while (c->sent - c->received == room) {
        pthread_cond_wait(&c->has_room, &c->mutex);
    }
    c->tokens[c->sent % room] = token;
    const uint64_t number = c->sent++;
    pthread_cond_signal(&c->has_token);
    while (!c->depth && c->received <= number) {
        pthread_cond_wait(&c->has_room, &c->mutex);
    }
    pthread_mutex_unlock(&c->mutex);
}

static uint64_t channel_receive(thread_channel *c) {
    const uint64_t room = c->depth ? c->depth : 1;
    pthread_mutex_lock(&c->mutex);
    while (c->sent == c->received) {
        pthread_cond_wait(&c->has_token, &c->mutex);
    }
    const uint64_t token = c->tokens[c->received++ % room];
    pthread_cond_signal(&c->has_room);
    pthread_mutex_unlock(&c->mutex);
    return token;
}

typedef struct thread_party {
    const net_party *party;
    thread_channel *in, *out;
    uint64_t sum;
    pthread_t thread;
} thread_party;

static void *thread_main(void *user) {
    thread_party *t = (thread_party *)user;
    for (uint64_t i = 0; i < t->party->first; i++) {
        channel_send(t->out, i);
    }
    for (uint64_t i = 0; i < t->party->forward; i++) {
        channel_send(t->out, channel_receive(t->in));
    }
    for (uint64_t i = 0; i < t->party->last; i++) {
        t->sum += channel_receive(t->in);
    }
    return NULL;
}

typedef struct pipeline_bench {
    ptowsp_context *context;
    ptowsp_module *module;
    ptowsp_program *program;
    ptowsp_run *run;
    ptowsp_run_mode mode;
    net own, other;
    thread_channel channels[PARTY_MAX];
    thread_party threads[PARTY_MAX];
    ptowsp_cycles end;  // of the loop beside
} pipeline_bench;

static void run_threads(void *user) {
    pipeline_bench *b = (pipeline_bench *)user;
    const net *n = &b->other;
    uint32_t count = 0;
    for (uint32_t i = 0; i < n->party_count; i++) {
        for (uint32_t k = 0; k < n->replica_count; k++) {
            thread_party *t = &b->threads[count++];
            t->party = &n->parties[i];
            t->in = t->party->in == NO_CHANNEL ? NULL : &b->channels[t->party->in];
            t->out = t->party->out == NO_CHANNEL ? NULL : &b->channels[t->party->out];
            require(pthread_create(&t->thread, NULL, thread_main, t) == 0, "no threads");
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        pthread_join(b->threads[i].thread, NULL);
    }
}

// The same channel, filled and emptied again by one thread.
static void run_one_thread(void *user) {
    pipeline_bench *b = (pipeline_bench *)user;
    thread_channel *c = &b->channels[0];
    uint64_t sum = 0;
    for (uint64_t i = 0; i < TOKENS / 4; i += c->depth) {
        for (uint64_t k = 0; k < c->depth; k++) {
            channel_send(c, i + k);
        }
        for (uint64_t k = 0; k < c->depth; k++) {
            sum += channel_receive(c);
        }
    }
    bench_keep(&sum);
}

// The rule of a channel of depth 2 between two processes that do nothing else.
static void run_loop(void *user) {
    pipeline_bench *b = (pipeline_bench *)user;
    ptowsp_cycles sender = 0, receiver = 0, received[2] = {0, 0};
    for (uint64_t k = 0; k < TOKENS; k++) {
        ptowsp_cycles freed = received[k % 2];
        sender = freed > sender ? freed : sender;
        receiver = sender + LATENCY > receiver ? sender + LATENCY : receiver;
        received[k % 2] = receiver;
    }
    b->end = receiver;
    bench_keep(&b->end);
}

// -- pipelines ------------------------------------------------------------------------------------

static ptowsp_cycles do_nothing(const ptowsp_task *task, void *user) {
    (void)task, (void)user;
    return 0;  // not taken: the kernels have constant cycles
}

static ptowsp_axis make_axis(ptowsp_module *m, const char *kind, uint32_t party, uint64_t size) {
    char name[32];
    snprintf(name, sizeof name, "%s_%u", kind, (unsigned)party);
    return ptowsp_axis_dense(m, name, (int64_t)size);
}

// Sends a token, or a task with it; without a channel to send to, does the task alone.
static void pass_on(ptowsp_module *m, const net_party *party, const ptowsp_channel *channels,
                    ptowsp_kernel kernel, ptowsp_expr token) {
    ptowsp_task_desc task;
    memset(&task, 0, sizeof task);
    task.kernel = kernel;
    task.axes[0] = token;
    if (party->out == NO_CHANNEL) {
        if (party->cycles) {
            ptowsp_task_make(m, &task);
        }
    } else if (party->cycles) {
        ptowsp_send_task_make(m, channels[party->out], &task);
    } else {
        ptowsp_send_make(m, channels[party->out], token);
    }
}

static void build_party(ptowsp_module *m, const net *n, uint32_t i, const ptowsp_channel *channels,
                        ptowsp_kernel kernel) {
    const net_party *party = &n->parties[i];
    if (party->in != NO_CHANNEL) {
        ptowsp_consumes(m, channels[party->in]);
    }
    if (party->out != NO_CHANNEL) {
        ptowsp_produces(m, channels[party->out]);
    }
    if (party->first) {
        PTOWSP_FOR_EACH(m, k, make_axis(m, "first", i, party->first)) {
            pass_on(m, party, channels, kernel,
                    n->is_computed ? ptowsp_add(k, ptowsp_i64(m, 1)) : k);
        }
    }
    if (!n->is_ring && party->in != NO_CHANNEL) {
        PTOWSP_CONSUME(m, t, channels[party->in]) {
            pass_on(m, party, channels, kernel, t);
        }
    }
    if (n->is_ring) {
        PTOWSP_FOR_EACH(m, k, make_axis(m, "forward", i, party->forward)) {
            (void)k;
            PTOWSP_RECEIVE(m, t, channels[party->in]) {
                ptowsp_send_make(m, channels[party->out], t);
            }
        }
    }
    if (n->is_ring && party->last) {
        PTOWSP_RECEIVE(m, t, channels[party->in]) {
            (void)t;
        }
    }
}

static ptowsp_kernel make_party_kernel(ptowsp_module *m, const net_party *party) {
    ptowsp_kernel_desc desc;
    ptowsp_kernel none = {0};
    memset(&desc, 0, sizeof desc);
    desc.name = party->name;
    desc.axis_count = 1;
    desc.fn = do_nothing;
    desc.cycles = party->cycles;
    return party->cycles ? ptowsp_kernel_make(m, &desc) : none;
}

// Latencies differ a little, so that not everything happens at the same time.
static void build_net(ptowsp_module *m, const net *n) {
    ptowsp_channel channels[PARTY_MAX];
    ptowsp_kernel kernels[PARTY_MAX];
    char name[32];
    for (uint32_t i = 0; i < n->party_count; i++) {
        kernels[i] = make_party_kernel(m, &n->parties[i]);
    }
    ptowsp_axis replicas = make_axis(m, "replicas", 0, n->replica_count);
    PTOWSP_WORKLOAD(m, "bench") {
        PTOWSP_PIPELINE(m, "net") {
            for (uint32_t i = 0; i < n->channel_count; i++) {
                ptowsp_channel_desc desc;
                memset(&desc, 0, sizeof desc);
                snprintf(name, sizeof name, "channel_%u", (unsigned)i);
                desc.name = name;
                desc.depth = n->depth;
                desc.latency = LATENCY + i % 7;
                channels[i] = ptowsp_channel_make(m, &desc);
            }
            for (uint32_t i = 0; i < n->party_count; i++) {
                snprintf(name, sizeof name, "process_%u", (unsigned)i);
                if (n->replica_count > 1) {
                    PTOWSP_REPLICATE(m, r, replicas, name) {
                        (void)r;
                        build_party(m, n, i, channels, kernels[i]);
                    }
                } else {
                    PTOWSP_PROCESS(m, name) {
                        build_party(m, n, i, channels, kernels[i]);
                    }
                }
            }
        }
    }
}

static void run_pipeline(void *user) {
    const pipeline_bench *b = (const pipeline_bench *)user;
    ptowsp_run_options options;
    memset(&options, 0, sizeof options);
    options.mode = b->mode;
    require(ptowsp_run_execute(b->run, &options) == PTOWSP_OK,
            ptowsp_context_error(b->context).text);
}

// All tokens went everywhere.
static void check_pipeline(const pipeline_bench *b) {
    uint32_t count;
    const ptowsp_channel_stats *channels = ptowsp_run_channels(b->run, &count);
    double operations = 0;
    for (uint32_t i = 0; i < count; i++) {
        operations += 2 * (double)channels[i].token_count - (double)channels[i].pending_count;
    }
    require(operations >= net_operations(&b->own) && operations <= net_operations(&b->own),
            "a pipeline passes another number of tokens");
}

static pipeline_bench *bench_begin(const net *own, const net *other, ptowsp_run_mode mode) {
    pipeline_bench *b = (pipeline_bench *)calloc(1, sizeof *b);
    require(b != NULL, "no memory");
    b->own = *own;
    b->other = *other;
    b->mode = mode;
    require(ptowsp_context_create(NULL, &b->context) == PTOWSP_OK &&
                ptowsp_module_create(b->context, NULL, &b->module) == PTOWSP_OK,
            "no memory");
    build_net(b->module, own);
    require(ptowsp_program_create(b->context, b->module, NULL, &b->program) == PTOWSP_OK &&
                ptowsp_run_create(b->context, b->program, &b->run) == PTOWSP_OK,
            ptowsp_context_error(b->context).text);
    run_pipeline(b);
    check_pipeline(b);
    for (uint32_t i = 0; i < other->channel_count; i++) {
        b->channels[i].depth = other->depth;
        require(pthread_mutex_init(&b->channels[i].mutex, NULL) == 0 &&
                    pthread_cond_init(&b->channels[i].has_token, NULL) == 0 &&
                    pthread_cond_init(&b->channels[i].has_room, NULL) == 0,
                "no mutex");
    }
    return b;
}

static void bench_end(pipeline_bench *b) {
    for (uint32_t i = 0; i < b->other.channel_count; i++) {
        pthread_mutex_destroy(&b->channels[i].mutex);
        pthread_cond_destroy(&b->channels[i].has_token);
        pthread_cond_destroy(&b->channels[i].has_room);
    }
    ptowsp_run_destroy(b->run);
    ptowsp_program_destroy(b->program);
    ptowsp_module_destroy(b->module);
    ptowsp_context_destroy(b->context);
    free(b);
}

// budget is in ns, one of these, 0 is none.
static void report_pipeline(pipeline_bench *b, const char *name, bench_fn other,
                            const char *other_name, double other_operations, double budget) {
    bench_times t = measure(run_pipeline, other, b, 1, ROUND_COUNT);
    double operations = net_operations(&b->own);
    const char *budget_text = budget > 10  ? "12 ns"
                              : budget > 4 ? "10 ns"
                              : budget > 0 ? "4 ns"
                                           : "";
    bench_row row = {name,
                     "ns/op",
                     t.own_ns / operations,
                     other_name,
                     t.other_ns / other_operations,
                     t.ratio * other_operations / operations,
                     budget_text,
                     budget > 0,
                     t.own_ns / operations <= budget};
    const bool is_bare = other == run_loop;  // no process that is walked can do less
    const bench_limit limit = {is_bare ? other_name : NULL, row.other_value, 1.0 / row.ratio};
    report_beside_limit(row, limit);
}

static void bench_pair(uint32_t depth, bool is_computed, uint64_t thread_tokens, const char *name) {
    net own = net_pair(depth, 1, TOKENS), other = net_pair(depth, 1, thread_tokens);
    own.is_computed = is_computed;
    pipeline_bench *b = bench_begin(&own, &other, PTOWSP_RUN_TIME_ONLY);
    double budget = is_computed ? 12 : 0;
    report_pipeline(b, name, run_threads, "two threads", net_operations(&b->other), budget);
    if (depth > 0) {
        report_pipeline(b, name, run_one_thread, "the same channel, one thread", TOKENS / 2,
                        budget);
    }
    if (depth == 2 && is_computed) {
        run_loop(b);
        require(b->end == ptowsp_run_result(b->run)->makespan_cycles, "the loop takes other time");
        report_pipeline(b, name, run_loop, "the rule of time, a loop", 2 * TOKENS, budget);
    }
    bench_end(b);
}

static void bench_net(const net *own, const net *other, ptowsp_run_mode mode, const char *name,
                      const char *other_name, double budget) {
    pipeline_bench *b = bench_begin(own, other, mode);
    report_pipeline(b, name, run_threads, other_name, net_operations(&b->other), budget);
    bench_end(b);
}

void bench_pipeline(void) {
    bench_pair(0, false, 1 << 11, "pipeline, producer and consumer, depth 0");
    bench_pair(1, false, 1 << 11, "pipeline, producer and consumer, depth 1");
    bench_pair(2, false, 1 << 11, "pipeline, producer and consumer, depth 2");
    bench_pair(64, false, 1 << 14, "pipeline, producer and consumer, depth 64");
    bench_pair(2, true, 1 << 11, "pipeline, depth 2, computed tokens");
    net own = net_pair(8, REPLICAS, TOKENS), other = net_pair(8, REPLICAS, 1 << 13);
    bench_net(&own, &other, PTOWSP_RUN_TIME_ONLY, "pipeline, 4 producers, 4 consumers, depth 8",
              "8 threads", 0);
    own.is_computed = true;
    bench_net(&own, &other, PTOWSP_RUN_TIME_ONLY, "pipeline, 4 x 4, depth 8, computed tokens",
              "8 threads", 20);
    own = net_ring(false, TOKENS / RING);
    other = net_ring(false, 32);
    bench_net(&own, &other, PTOWSP_RUN_TIME_ONLY, "pipeline, ring of 64, one token", "64 threads",
              0);
    own = net_ring(true, TOKENS / RING);
    other = net_ring(true, 64);
    bench_net(&own, &other, PTOWSP_RUN_TIME_ONLY, "pipeline, ring of 64, 64 tokens", "64 threads",
              0);
    own = net_chain(2, TOKENS / 4);
    other = net_chain(2, 1 << 10);
    bench_net(&own, &other, PTOWSP_RUN_TIME_ONLY, "pipeline, chain of 3 with tasks, depth 2",
              "three threads, no tasks", 0);
    bench_net(&own, &other, PTOWSP_RUN_EXECUTE, "the same, calling empty kernels",
              "three threads, no tasks", 30);
}
