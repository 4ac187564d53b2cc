// A device's blocks, for npu_tree_test.sh: the kernel of the tree of npu_tree.c with 0 kernels, as a
// device has it, on the shim's blocks. Each half is compiled for its cores (with HALF); they run five
// tasks, one after another over the same FIFOs, and both vector cores a copy of each. Then each task is
// launched alone, as by a host: what a device would start for a block of three cores.

#ifdef HALF

#include "wsp_kernel.h"

#include "wsp_abi.h"

void HALF(wsp_task *tasks, uint32_t count, uint8_t *fifos);
void HALF(wsp_task *tasks, uint32_t count, uint8_t *fifos) {
    set_ffts_base_addr(1);
    wsp::Pipes pipes(fifos);
    for (uint32_t i = 0; i < count; i++) {
        wsp_core_run(&tasks[i], pipes);
        pipe_barrier(PIPE_ALL);
    }
}

#else

#include "ptoisa_shim.h"

#include "wsp_abi.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

void cube_half(wsp_task *tasks, uint32_t count, uint8_t *fifos);
void vector_half(wsp_task *tasks, uint32_t count, uint8_t *fifos);
extern "C" void cube_tasks(uint8_t *tasks, uint32_t task_count, uint8_t *fifos, uint64_t ffts);
extern "C" void vector_tasks(uint8_t *tasks, uint32_t task_count, uint8_t *fifos, uint64_t ffts);

namespace {

constexpr uint32_t COUNT = 5, INNER = 16, KEYS = 40, COLS = 16;
constexpr uint32_t ROWS[COUNT] = {32, 1, 31, 2, 32};

struct Data {
    float a[32][INNER], b[INNER][KEYS], c[KEYS][COLS], z[32][COLS];
};

Data data[COUNT];
wsp_task tasks[3][COUNT];

void fill(uint32_t t) {
    uint32_t seed = t + 1;
    const auto next = [&] {
        seed = seed * 1664525 + 1013904223;
        return static_cast<float>(seed >> 24) / 128.0f - 1.0f;
    };
    float *at = &data[t].a[0][0];
    for (size_t i = 0; i < sizeof(Data) / sizeof(float); i++) {
        at[i] = next();
    }
    const uint32_t sizes[4][2] = {{ROWS[t], INNER}, {INNER, KEYS}, {KEYS, COLS}, {ROWS[t], COLS}};
    float *const starts[4] = {&data[t].a[0][0], &data[t].b[0][0], &data[t].c[0][0],
                              &data[t].z[0][0]};
    wsp_task &task = tasks[0][t];
    task.kernel = 1;
    task.tile_count = 4;
    for (uint32_t i = 0; i < 4; i++) {
        task.args[2 * i] = sizes[i][0];
        task.args[2 * i + 1] = sizes[i][1];
        task.tiles[i] = {reinterpret_cast<uintptr_t>(starts[i]), sizes[i][1], 1};
    }
    tasks[1][t] = tasks[2][t] = task;
}

// The largest error, in double precision, of what is there; rows behind the task's are as before.
double error_of(uint32_t t, const Data &before) {
    const Data &d = data[t];
    double error =
        std::memcmp(d.z[ROWS[t]], before.z[ROWS[t]], sizeof(float) * COLS * (32 - ROWS[t])) ? 1 : 0;
    for (uint32_t r = 0; r < ROWS[t]; r++) {
        double e[KEYS], most = -1e30, sum = 0;
        for (uint32_t k = 0; k < KEYS; k++) {
            e[k] = 0;
            for (uint32_t i = 0; i < INNER; i++) {
                e[k] += static_cast<double>(d.a[r][i]) * static_cast<double>(d.b[i][k]);
            }
            most = e[k] > most ? e[k] : most;
        }
        for (double &x : e) {
            x = std::exp(x - most);
            sum += x;
        }
        for (uint32_t i = 0; i < COLS; i++) {
            double z = 0;
            for (uint32_t k = 0; k < KEYS; k++) {
                z += e[k] / sum * static_cast<double>(d.c[k][i]);
            }
            error = std::fmax(error, std::fabs(z - static_cast<double>(d.z[r][i])));
        }
    }
    return error;
}

// An element of the launch for each core of the block.
bool is_launched(uint32_t t, uint8_t *fifos) {
    std::vector<uint8_t> elements(3 * WSP_TASK_STRIDE);
    for (uint32_t core = 0; core < 3; core++) {
        std::memcpy(&elements[core * WSP_TASK_STRIDE], &tasks[0][t], sizeof(wsp_task));
    }
    bool is_good = pto::RunBlock([&] { cube_tasks(elements.data(), 1, fifos, 1); },
                                 [&] { vector_tasks(elements.data(), 1, fifos, 1); });
    for (uint32_t core = 0; core < 3; core++) {
        wsp_task task;
        std::memcpy(&task, &elements[core * WSP_TASK_STRIDE], sizeof task);
        is_good = is_good && task.status == PTOWSP_OK;
    }
    return is_good;
}

}  // namespace

int main() {
    for (uint32_t t = 0; t < COUNT; t++) {
        fill(t);
    }
    static Data before[COUNT];
    std::memcpy(before, data, sizeof data);
    std::vector<uint8_t> fifos(2 * WSP_FIFO_BYTES);
    const bool is_good =
        pto::RunBlock([&] { cube_half(tasks[0], COUNT, fifos.data()); },
                      [&] { vector_half(tasks[1 + get_subblockid()], COUNT, fifos.data()); });
    if (!is_good) {
        std::printf("the block has failed\n");  // a fault has been printed
        return 1;
    }
    for (uint32_t t = 0; t < COUNT; t++) {
        for (uint32_t core = 0; core < 3; core++) {
            if (tasks[core][t].status != PTOWSP_OK) {
                std::printf("task %u, core %u: status %d\n", t, core, tasks[core][t].status);
                return 1;
            }
        }
        if (error_of(t, before[t]) > 1e-5) {
            std::printf("task %u is wrong by %g\n", t, error_of(t, before[t]));
            return 1;
        }
    }
    for (uint32_t t = 0; t < COUNT; t++) {
        std::memcpy(&data[t].z, &before[t].z, sizeof data[t].z);
        if (!is_launched(t, fifos.data()) || error_of(t, before[t]) > 1e-5) {
            std::printf("task %u, launched alone, is wrong by %g\n", t, error_of(t, before[t]));
            return 1;
        }
    }
    std::printf("block: good\n");
    return 0;
}

#endif
