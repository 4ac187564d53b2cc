// The kernels of the sample, on cores.

#include "program.h"
#include "wsp_abi.h"

namespace {

double *row_of(const wsp_tile &tile, int64_t row) {
    return reinterpret_cast<double *>(tile.data) + row * tile.row_stride;
}

// Rows and columns of a tile.
int64_t rows(const wsp_task &task, uint32_t tile) {
    return static_cast<int64_t>(task.args[task.axis_count + 2 * tile]);
}

int64_t cols(const wsp_task &task, uint32_t tile) {
    return static_cast<int64_t>(task.args[task.axis_count + 2 * tile + 1]);
}

uint64_t scalar(const wsp_task &task, uint32_t i) {
    return task.args[task.axis_count + 2 * task.tile_count + i];
}

}  // namespace

void wsp_core_run(wsp_task *task) {
    task->status = PTOWSP_OK;
    task->fault = 0;
    switch (task->kernel) {
    case KERNEL_fill:
        task->cycles = 10;
        for (int64_t r = 0; r < rows(*task, 0); r++) {
            for (int64_t c = 0; c < cols(*task, 0); c++) {
                row_of(task->tiles[0], r)[c] =
                    static_cast<double>(task->args[0] * 100 + scalar(*task, 0)) +
                    static_cast<double>(r * 10 + c);
            }
        }
        break;
    case KERNEL_add:
        task->cycles = 20;
        for (int64_t r = 0; r < rows(*task, 1); r++) {
            for (int64_t c = 0; c < cols(*task, 1); c++) {
                row_of(task->tiles[1], r)[c] +=
                    static_cast<double>(scalar(*task, 0)) * row_of(task->tiles[0], r)[c];
            }
        }
        break;
    case KERNEL_total: {
        double sum = 0;
        task->cycles = 30;
        for (int64_t r = 0; r < rows(*task, 0); r++) {
            for (int64_t c = 0; c < cols(*task, 0); c++) {
                sum += row_of(task->tiles[0], r)[c];
            }
        }
        *reinterpret_cast<int64_t *>(task->tiles[1].data) = static_cast<int64_t>(sum);
        break;
    }
    case KERNEL_fail:
        task->cycles = 1;
        task->status = scalar(*task, 0) == 4   ? PTOWSP_KERNEL_FAILED
                       : scalar(*task, 0) == 5 ? PTOWSP_INVALID_PARAMS
                                               : PTOWSP_OK;
        task->fault = scalar(*task, 0) == 5;
        break;
    default: task->status = PTOWSP_UNSUPPORTED;
    }
}

const char *wsp_core_fault_text(uint32_t kernel, uint32_t fault) {
    return kernel == KERNEL_fail && fault == 1 ? "fail: 5 slots" : "";
}
