// Sources of the kernels of random programs (workload_program.h) and random pipelines
// (pipeline_build.h), for trees that are emitted of them. They do what ref_kernel_run and
// sim_kernel_fn do, and are written once more for it: those know their test, these only the task.

#ifndef PTOWSP_NPU_SOURCES_H
#define PTOWSP_NPU_SOURCES_H

#include "workload_program.h"

// What kernels of random programs have in common. `rk_kernel` is what ref_kernel says of one.
PTOWSP_SOURCE(
    ref_common_source,

    typedef struct rk_kernel {
        uint64_t salt;
        int cost, cycles_shape;  // cost 0: it returns its cycles
        int directions[3];       // 1: in, 2: out, 3: both
    } rk_kernel;

    static inline uint64_t rk_mix(uint64_t a, uint64_t b) {
        uint64_t z = a * 31u + b + 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }

    static inline uint64_t rk_mix_args(const rk_kernel *kernel, const ptowsp_task *task) {
        uint64_t mixed = kernel->salt;
        for (uint32_t i = 0; i < task->arg_count; i++) {
            mixed = rk_mix(mixed, task->args[i]);
        }
        return mixed;
    }

    static inline ptowsp_cycles rk_cycles(const rk_kernel *kernel, const ptowsp_task *task) {
        uint64_t mixed = rk_mix_args(kernel, task);
        switch (kernel->cycles_shape) {
        case 0: return 10;
        case 1: return mixed % 3;
        case 2: return mixed % 100;
        case 3: return mixed % 8 ? 5 : 1000000 + mixed % 1000;
        case 4: return mixed % 4 ? 1 + mixed % 7 : 0;
        default: return 1 + mixed % 40;
        }
    }

    static inline int32_t *
    rk_at(const ptowsp_task *task, uint32_t t, int64_t row, int64_t col) {
        const ptowsp_tile *tile = &task->tiles[t];
        return (int32_t *)tile->data + (row * tile->row_stride + col * tile->col_stride);
    }

    static inline ptowsp_cycles rk_run(const rk_kernel *kernel, const ptowsp_task *task) {
        uint64_t mixed = rk_mix_args(kernel, task);
        for (uint32_t t = 0; t < task->tile_count; t++) {
            for (int64_t row = 0; row < ptowsp_task_rows(task, t) && kernel->directions[t] != 2;
                 row++) {
                for (int64_t col = 0; col < ptowsp_task_cols(task, t); col++) {
                    mixed = rk_mix(mixed, (uint64_t)(int64_t)*rk_at(task, t, row, col));
                }
            }
        }
        for (uint32_t t = 0; t < task->tile_count; t++) {
            for (int64_t row = 0; row < ptowsp_task_rows(task, t) && kernel->directions[t] != 1;
                 row++) {
                for (int64_t col = 0; col < ptowsp_task_cols(task, t); col++) {
                    int32_t *at = rk_at(task, t, row, col);
                    int32_t made = (int32_t)(rk_mix(mixed, (uint64_t)(row * 64 + col)) % 16) - 4;
                    *at = kernel->directions[t] == 2 ? made : (*at + made) & 15;
                }
            }
        }
        return kernel->cost ? 3 : rk_cycles(kernel, task) + mixed % 4;
    })

// The source of all kernels of a program: its text lives until the next one.
static inline const char *ref_program_source(const ref_program *p) {
    static char text[sizeof ref_common_source + REF_KERNEL_MAX * 600];
    size_t size = sizeof text, at = 0;
    at += (size_t)snprintf(text, size, "%s\n", ref_common_source);
    for (int k = 0; k < p->kernel_count; k++) {
        const ref_kernel *kernel = &p->kernels[k];
        at += (size_t)snprintf(
            text + at, size - at,
            "static const rk_kernel rk_%d = {0x%llxu, %d, %d, {%d, %d, %d}};\n"
            "static ptowsp_cycles rk_run_%d(const ptowsp_task *task, void *user) {\n"
            "    return user ? ptowsp_task_fail(PTOWSP_KERNEL_FAILED) : rk_run(&rk_%d, task);\n}\n",
            k, (unsigned long long)kernel->salt, (int)kernel->cost, kernel->cycles_shape,
            (int)kernel->directions[0], (int)kernel->directions[1], (int)kernel->directions[2], k,
            k);
        if (kernel->cost == REF_COST_FUNCTION) {
            at += (size_t)snprintf(
                text + at, size - at,
                "static ptowsp_cycles rk_cost_%d(const ptowsp_task *task, void *user) {\n"
                "    (void)user;\n    return rk_cycles(&rk_%d, task);\n}\n",
                k, k);
        }
        assert_true(at < size);
    }
    return text;
}

static inline void ref_kernel_source(const ref_program *p, int k, ptowsp_kernel_desc *desc) {
    static char names[REF_KERNEL_MAX][2][16];
    snprintf(names[k][0], sizeof names[k][0], "rk_run_%d", k);
    snprintf(names[k][1], sizeof names[k][1], "rk_cost_%d", k);
    desc->source.text = ref_program_source(p);
    desc->source.fn = names[k][0];
    desc->source.cost = desc->cost ? names[k][1] : NULL;
}

#define REF_KERNEL_SOURCE(program, k, desc) ref_kernel_source(program, k, desc)

PTOWSP_SOURCE(
    sim_source,

    static inline ptowsp_cycles sk_cycles(const ptowsp_task *task, void *user) {
        (void)user;
        uint64_t value = (uint64_t)ptowsp_task_axis(task, 0);
        uint64_t site = (uint64_t)ptowsp_task_axis(task, 1);
        uint64_t mixed = (value * 31 + site * 17) % 1009;
        uint64_t spread = (uint64_t)ptowsp_task_axis(task, 3);
        return (uint64_t)ptowsp_task_axis(task, 2) + mixed * mixed % (spread + 1);
    }

    static inline ptowsp_cycles sk_work(const ptowsp_task *task, void *user) {
        if (task->tile_count > 0) {
            int32_t *cell = (int32_t *)task->tiles[0].data;
            uint64_t z = (uint64_t)*cell * 31 + (uint64_t)ptowsp_task_axis(task, 0) * 7 +
                         (uint64_t)ptowsp_task_axis(task, 1) + 0x9e3779b97f4a7c15u;
            z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
            z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
            *cell = (int32_t)((z ^ (z >> 31)) >> 33);
        }
        return user ? ptowsp_task_fail(PTOWSP_KERNEL_FAILED) : sk_cycles(task, user);
    })

static inline void sim_kernel_source(ptowsp_kernel_desc *desc) {
    desc->source.text = sim_source;
    desc->source.fn = "sk_work";
    desc->source.cost = desc->cost ? "sk_cycles" : NULL;
}

#define SIM_KERNEL_SOURCE(desc) sim_kernel_source(desc)

#endif
