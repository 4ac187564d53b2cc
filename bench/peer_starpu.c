// The shapes as StarPU's tasks with declared dependencies.

#define _GNU_SOURCE  // setenv, and what starpu.h takes from pthread.h

#include "peers.h"

#if defined(BENCH_HAS_STARPU)

#include <starpu.h>
#include <stdlib.h>

static void starpu_work(void *buffers[], void *spin) {
    (void)buffers;
    graph_spin((uint32_t)(uintptr_t)spin);
}

bool peer_starpu_begin(unsigned lane_count) {
    struct starpu_conf conf;
    setenv("STARPU_SILENT", "1", 0);
    starpu_conf_init(&conf);
    conf.ncpus = (int)lane_count;
    conf.ncuda = conf.nopencl = 0;
    return starpu_init(&conf) == 0;
}

void peer_starpu_run(const graph_shape *shape) {
    static struct starpu_codelet codelet;
    codelet.cpu_funcs[0] = starpu_work;
    codelet.nbuffers = 0;
    struct starpu_task **tasks =
        (struct starpu_task **)calloc(shape->task_count, sizeof(struct starpu_task *));
    struct starpu_task *before[16];
    for (uint32_t i = 0; i < shape->task_count; i++) {
        tasks[i] = starpu_task_create();
        tasks[i]->cl = &codelet;
        tasks[i]->cl_arg = (void *)(uintptr_t)shape->spin;
        tasks[i]->destroy = 0;
        unsigned count = 0;
        for (uint32_t k = shape->first[i]; k < shape->first[i + 1] && count < 16; k++) {
            before[count++] = tasks[shape->before[k]];
        }
        if (count) {
            starpu_task_declare_deps_array(tasks[i], count, before);
        }
    }
    for (uint32_t i = 0; i < shape->task_count; i++) {
        if (starpu_task_submit(tasks[i]) != 0) {
            abort();
        }
    }
    starpu_task_wait_for_all();
    for (uint32_t i = 0; i < shape->task_count; i++) {
        starpu_task_destroy(tasks[i]);
    }
    free(tasks);
}

void peer_starpu_end(void) {
    starpu_shutdown();
}

#else
typedef int peer_starpu_is_absent;  // no empty file
#endif
