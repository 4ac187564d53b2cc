// The tasks of module sample, as they are emitted, written by hand.

#include "program.h"
#include "wsp_expand.h"

extern void wsp_expand(wsp::Run &run);

namespace {

using namespace wsp;

// workload sample
void sample(Run &run) {
    {
        Scope parallel(run, PARALLEL);
        for (i64 b = 0; b < run.size(AXIS_batch) && run.good(); b++) {
            Scope sequential(run, SEQUENTIAL);
            {
                Task task(run, KERNEL_fill, PLACE_fill);
                task.axis(b);
                task.tile(TENSOR_X, WRITE, {b}, 0, 0, 0, 0);
                task.scalar(run.symbol(SYMBOL_scale));
                task.dispatch(b);
                task.submit();
            }
            const i64 pages = run.length(ARRAY_pages, b, PLACE_when);
            for (i64 p = 0; p < pages && run.good(); p++) {
                run.at(PLACE_when);
                if (run.array_bool(ARRAY_flag, b)) {
                    Task task(run, KERNEL_add, PLACE_add);
                    task.tile(TENSOR_X, READ, {b}, p * 2, 3, 0, 4);
                    task.tile(TENSOR_Y, READ_WRITE, {b}, p * 2, 3, 1, 4);
                    task.scalar(run.array_i64(ARRAY_weight, b + p));
                    task.dispatch(p);
                    task.submit();
                }
            }
            {
                Task task(run, KERNEL_total, PLACE_total);
                task.tile(TENSOR_Y, READ, {b}, 0, 0, 0, 0);
                task.tile(TENSOR_sum, WRITE, {}, 0, 0, b, 1);
                task.dispatch(run.array_i64(ARRAY_weight, b));
                task.submit();
            }
        }
    }
    for (i64 b = 0; b < run.size(AXIS_batch) && run.good(); b++) {
        Scope sequential(run, SEQUENTIAL);
        run.load_slot(PLACE_load, SLOT_total, TENSOR_sum, {}, 0, 0, 0, 0, 0, b);
        run.set_slot(SLOT_count, run.slot_i64(SLOT_count) + 1);
        for (const Entry &e : run.entries(AXIS_experts, b, PLACE_route)) {
            Task task(run, KERNEL_add, PLACE_route);
            task.tile(TENSOR_Y, READ, {b}, e.index, 1, 0, 0);
            task.tile(TENSOR_X, READ_WRITE, {b}, e.index, 1, 0, 0);
            task.scalar(run.slot_i64(SLOT_total) + e.entry);
            task.submit();
        }
    }
    {
        Task task(run, KERNEL_fail, PLACE_last);
        task.scalar(run.slot_i64(SLOT_count));
        task.submit();
    }
}

}  // namespace

void wsp_expand(wsp::Run &run) {
    sample(run);
}
