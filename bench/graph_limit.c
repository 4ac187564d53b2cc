// Bare limits of graphs: what cannot be left out, written plainly and without ptowsp.
//
//      counting    the tasks in order; each edge is counted down. No queue. On one thread, or on two by
//                  blocks in turns, which count by atomic operations and wait for nothing.
//      scheduling  two threads call each task's function when all its edges have been counted: one
//                  atomic operation for an edge, a push and a pop of a stack of the thread's own for a
//                  task. A thread that has nothing says so, and is given the older half of the other's
//                  stack. While a task runs, the counters behind it are fetched.
//      building    tasks and edges stored as they come, in new memory, and edges then sorted by the
//                  task that they come from, by counting.
//
// The other thread is made once. It sleeps between runs, as the lanes of a context do.

#include "graph.h"

#include "bench.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#define FETCH(address) __asm__ volatile("prefetchw %0" ::"m"(*(address)))
#else
#define FETCH(address) __builtin_prefetch(address, 1)
#endif

enum { LINE = 128, BLOCK = 256, GIVE_MAX = 1024, SPIN_MAX = 2000, FETCH_MAX = 8 };

typedef struct limit_task {
    void (*fn)(const void *user);
    const void *user;
} limit_task;

typedef struct limit_thread {
    char padding_before[LINE];
    uint32_t top, bottom;  // of its stack: [bottom, top), as a ring
    uint32_t *stack;
    uint32_t done;  // tasks that it has not reported
    char padding[LINE];
    uint32_t wants;  // atomic: it has nothing
    char padding_wants[LINE];
    uint32_t given_count;  // atomic: 0, or what the other has written to `given`
    uint32_t given[GIVE_MAX];
} limit_thread;

struct graph_limit {
    const graph_shape *shape;
    // By task: where its edges begin in `after`, how many it waits for, how many of these are missing.
    uint32_t *first, *after, *fan_in, *pending;
    limit_task *tasks;
    uint32_t mask;  // of stacks
    limit_thread threads[2];
    char padding[LINE];
    uint32_t left;  // atomic: tasks that have not been reported
    // The other thread, and what it runs next; under the mutex.
    pthread_t other;
    bool has_other;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    void (*job)(graph_limit *limit, uint32_t me);
    bool is_over;
};

// -- two threads ----------------------------------------------------------------------------------

static void *limit_other(void *arg) {
    graph_limit *limit = (graph_limit *)arg;
    pthread_mutex_lock(&limit->mutex);
    for (;;) {
        while (!limit->job && !limit->is_over) {
            pthread_cond_wait(&limit->changed, &limit->mutex);
        }
        if (limit->is_over) {
            break;
        }
        pthread_mutex_unlock(&limit->mutex);
        limit->job(limit, 1);
        pthread_mutex_lock(&limit->mutex);
        limit->job = NULL;
        pthread_cond_signal(&limit->changed);
    }
    pthread_mutex_unlock(&limit->mutex);
    return NULL;
}

static void limit_on_two(graph_limit *limit, void (*job)(graph_limit *limit, uint32_t me)) {
    pthread_mutex_lock(&limit->mutex);
    limit->job = job;
    pthread_cond_signal(&limit->changed);
    pthread_mutex_unlock(&limit->mutex);
    job(limit, 0);
    pthread_mutex_lock(&limit->mutex);
    while (limit->job) {
        pthread_cond_wait(&limit->changed, &limit->mutex);
    }
    pthread_mutex_unlock(&limit->mutex);
}

// -- beginning and end ----------------------------------------------------------------------------

static void limit_run_task(const void *user) {
    graph_spin(((const graph_shape *)user)->spin);
}

static uint32_t *limit_array(size_t count) {
    uint32_t *array = (uint32_t *)calloc(count + 1, sizeof(uint32_t));
    require(array != NULL, "out of memory");
    return array;
}

graph_limit *graph_limit_begin(const graph_shape *shape) {
    graph_limit *limit = (graph_limit *)calloc(1, sizeof *limit);
    require(limit != NULL, "out of memory");
    const uint32_t count = shape->task_count;
    limit->shape = shape;
    limit->first = limit_array(count + 1);
    limit->after = limit_array(shape->edge_count);
    limit->fan_in = limit_array(count);
    limit->pending = limit_array(count);
    for (uint32_t k = 0; k < shape->edge_count; k++) {
        limit->first[shape->before[k] + 1]++;
    }
    for (uint32_t i = 0; i < count; i++) {
        limit->first[i + 1] += limit->first[i];
        limit->fan_in[i] = shape->first[i + 1] - shape->first[i];
    }
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = shape->first[i]; k < shape->first[i + 1]; k++) {
            const uint32_t before = shape->before[k];
            limit->after[limit->first[before] + limit->pending[before]++] = i;
        }
    }
    limit->tasks = (limit_task *)bench_allocate((count + 1) * sizeof(limit_task));
    for (uint32_t i = 0; i < count; i++) {
        limit->tasks[i].fn = limit_run_task;
        limit->tasks[i].user = shape;
    }
    memcpy(limit->pending, limit->fan_in, count * sizeof(uint32_t));
    for (limit->mask = 1; limit->mask <= count; limit->mask = 2 * limit->mask + 1) {
    }
    for (int t = 0; t < 2; t++) {
        limit->threads[t].stack = limit_array(limit->mask);
    }
    require(pthread_mutex_init(&limit->mutex, NULL) == 0 &&
                pthread_cond_init(&limit->changed, NULL) == 0 &&
                pthread_create(&limit->other, NULL, limit_other, limit) == 0,
            "no thread");
    return limit;
}

void graph_limit_end(graph_limit *limit) {
    pthread_mutex_lock(&limit->mutex);
    limit->is_over = true;
    pthread_cond_signal(&limit->changed);
    pthread_mutex_unlock(&limit->mutex);
    pthread_join(limit->other, NULL);
    pthread_cond_destroy(&limit->changed);
    pthread_mutex_destroy(&limit->mutex);
    free(limit->first), free(limit->after), free(limit->fan_in), free(limit->pending);
    free(limit->tasks);
    free(limit->threads[0].stack), free(limit->threads[1].stack);
    free(limit);
}

// -- counting -------------------------------------------------------------------------------------

void graph_limit_count(graph_limit *limit) {
    const graph_shape *s = limit->shape;
    uint32_t ready_count = 0;
    for (uint32_t i = 0; i < s->task_count; i++) {
        graph_spin(s->spin);
        for (uint32_t k = limit->first[i]; k < limit->first[i + 1]; k++) {
            const uint32_t task = limit->after[k];
            if (--limit->pending[task] == 0) {
                limit->pending[task] = limit->fan_in[task];
                ready_count++;
            }
        }
    }
    bench_keep(&ready_count);
}

// One edge to a task is done: was it the last?
static bool limit_release(graph_limit *limit, uint32_t task) {
    uint32_t *pending = &limit->pending[task];
    if (__atomic_load_n(pending, __ATOMIC_ACQUIRE) != 1 &&
        __atomic_fetch_sub(pending, 1, __ATOMIC_ACQ_REL) != 1) {
        return false;
    }
    __atomic_store_n(pending, limit->fan_in[task], __ATOMIC_RELAXED);
    return true;
}

static void limit_count_half(graph_limit *limit, uint32_t me) {
    const graph_shape *s = limit->shape;
    for (uint32_t i = me * BLOCK; i < s->task_count; i = (i + 1) % BLOCK ? i + 1 : i + 1 + BLOCK) {
        graph_spin(s->spin);
        for (uint32_t k = limit->first[i]; k < limit->first[i + 1]; k++) {
            limit_release(limit, limit->after[k]);
        }
    }
}

void graph_limit_count_on_two(graph_limit *limit) {
    limit_on_two(limit, limit_count_half);
}

// -- scheduling -----------------------------------------------------------------------------------

static void limit_give(graph_limit *limit, limit_thread *own, limit_thread *other) {
    uint32_t count = (own->top - own->bottom) / 2;
    count = count < GIVE_MAX ? count : GIVE_MAX;
    for (uint32_t i = 0; i < count; i++) {
        other->given[i] = own->stack[own->bottom++ & limit->mask];
    }
    __atomic_store_n(&other->wants, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&other->given_count, count, __ATOMIC_RELEASE);
}

// Waits for tasks of the other thread; false when all tasks are done.
static bool limit_want(graph_limit *limit, limit_thread *own) {
    __atomic_fetch_sub(&limit->left, own->done, __ATOMIC_ACQ_REL);
    own->done = 0;
    __atomic_store_n(&own->wants, 1, __ATOMIC_RELEASE);
    uint32_t count, round = 0;
    while ((count = __atomic_load_n(&own->given_count, __ATOMIC_ACQUIRE)) == 0) {
        if (__atomic_load_n(&limit->left, __ATOMIC_ACQUIRE) == 0) {
            return false;
        }
        if (++round > SPIN_MAX) {
            sched_yield();
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        own->stack[own->top++ & limit->mask] = own->given[i];
    }
    __atomic_store_n(&own->given_count, 0, __ATOMIC_RELAXED);
    return true;
}

static void limit_schedule_half(graph_limit *limit, uint32_t me) {
    limit_thread *own = &limit->threads[me], *other = &limit->threads[1 - me];
    const uint32_t mask = limit->mask;
    while (own->top != own->bottom || limit_want(limit, own)) {
        if (__atomic_load_n(&other->wants, __ATOMIC_RELAXED) && own->top - own->bottom > 1) {
            limit_give(limit, own, other);
        }
        const uint32_t task = own->stack[--own->top & mask];
        const uint32_t begin = limit->first[task], end = limit->first[task + 1];
        for (uint32_t k = begin; k < end && k < begin + FETCH_MAX; k++) {
            FETCH(&limit->pending[limit->after[k]]);
        }
        limit->tasks[task].fn(limit->tasks[task].user);
        for (uint32_t k = begin; k < end; k++) {
            const uint32_t after = limit->after[k];
            if (limit_release(limit, after)) {
                own->stack[own->top++ & mask] = after;
            }
        }
        own->done++;
    }
}

void graph_limit_schedule(graph_limit *limit) {
    const uint32_t count = limit->shape->task_count;
    for (int t = 0; t < 2; t++) {
        limit_thread *thread = &limit->threads[t];
        thread->top = thread->bottom = thread->done = 0;
        thread->wants = thread->given_count = 0;
    }
    for (uint32_t task = count; task-- > 0;) {  // those that wait for nothing: a half each
        limit_thread *thread = &limit->threads[2 * (uint64_t)task >= count];
        if (limit->fan_in[task] == 0) {
            thread->stack[thread->top++ & limit->mask] = task;
        }
    }
    limit->left = count;
    limit_on_two(limit, limit_schedule_half);
    require(limit->left == 0, "the bare scheduler has left tasks out");
}

// -- building -------------------------------------------------------------------------------------

// Tasks and edges are stored as they come. Then edges are sorted by the task that they come from, by counting,
// and the tasks without edges to them are listed.
void graph_limit_build(const graph_shape *s) {
    const uint32_t tasks = s->task_count, edges = s->edge_count;
    limit_task *nodes = (limit_task *)malloc(tasks * sizeof *nodes);
    uint32_t(*counts)[2] = malloc(tasks * sizeof *counts);
    uint32_t *first = malloc((tasks + (size_t)1) * sizeof *first);
    uint32_t *sources = malloc(tasks * sizeof *sources);
    uint32_t *before = malloc((edges + (size_t)1) * sizeof *before);
    uint32_t *after = malloc((edges + (size_t)1) * sizeof *after);
    uint32_t sum = 0, source_count = 0;
    require(nodes && counts && first && sources && before && after, "out of memory");
    for (uint32_t i = 0; i < tasks; i++) {
        nodes[i].fn = limit_run_task;
        nodes[i].user = s;
        for (uint32_t k = s->first[i]; k < s->first[i + 1]; k++) {
            before[k] = s->before[k];
        }
        counts[i][0] = counts[i][1] = s->first[i + 1] - s->first[i];
    }
    memset(first, 0, (tasks + (size_t)1) * sizeof *first);
    for (uint32_t k = 0; k < edges; k++) {
        first[before[k]]++;
    }
    for (uint32_t i = 0; i < tasks; i++) {
        sum += first[i];
        first[i] = sum;
        if (counts[i][0] == 0) {
            sources[source_count++] = i;
        }
    }
    first[tasks] = sum;
    for (uint32_t i = tasks; i-- > 0;) {
        for (uint32_t k = s->first[i + 1]; k-- > s->first[i];) {
            after[--first[before[k]]] = i;
        }
    }
    bench_keep(nodes), bench_keep(counts), bench_keep(sources), bench_keep(after);
    free(nodes), free(counts), free(first), free(sources), free(before), free(after);
}
