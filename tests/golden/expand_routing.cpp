// The tasks of module moe, in program order, from the sizes, symbols, arrays and slots of the
// moment.

#include "program.h"
#include "wsp_expand.h"

// Not all parameters and variables are used.
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"

namespace {

using namespace wsp;

void v_layer(Run &run, i64 v_layer_2, u64 v_capacity, bool v_is_last);

// workload moe
void v_moe(Run &run) {
    // moe/task count
    {
        Task task(run, KERNEL_count, 1);
        task.axis(0);
        task.tile(TENSOR_counts, WRITE, {}, 0, 1, 0, 8);
        task.stream(task.arg(0));
        task.submit();
    }
    for (i64 v_layer_2 = 0; v_layer_2 < 2 && run.good(); v_layer_2++) {
        run.load_slot(2, 3, TENSOR_counts, {}, 0, 1, 0, 1, 0, v_layer_2);
        run.set_slot(4, u64(7));
        v_layer(run, v_layer_2, run.slot_u64(3), v_layer_2 == 1);
    }
    {
        Scope scope_2(run, PARALLEL);
        for (i64 v_i = 0, e_i = run.length_sum(ARRAY_lengths); v_i < e_i && run.good(); v_i++) {
            // moe/parallel i/task sum
            Task task(run, KERNEL_sum, 3);
            task.axis(v_i);
            task.tile(TENSOR_y, READ_WRITE, {0}, 0, 1, 0, 64);
            task.stream(task.arg(0));
            task.submit();
        }
    }
}

// workload layer
void v_layer(Run &run, i64 v_layer_2, u64 v_capacity, bool v_is_last) {
    {
        Scope scope_2(run, PARALLEL);
        for (i64 v_token = 0; v_token < run.size(AXIS_tokens) && run.good(); v_token++) {
            run.reset({0});
            for (const Entry &v_chosen : run.entries(AXIS_routes, v_token, 4)) {
                // layer/parallel token/select chosen/when
                run.at(5);
                if ((run.array_u64(ARRAY_gates, v_chosen.entry) < v_capacity && !v_is_last) ||
                        (run.symbol(SYMBOL_seed) & 3) == 0) {
                    // layer/parallel token/select chosen/when/task "expert ffn"
                    Task task(run, KERNEL_expert_ffn, 6);
                    task.axis(v_token);
                    task.axis(v_chosen.index);
                    task.tile(TENSOR_x, READ, {}, v_token, 1, 0, 64);
                    task.tile(TENSOR_y, READ_WRITE, {v_token}, v_chosen.index, 1, 0, 64);
                    task.scalar(run.array_u64(ARRAY_gates, v_chosen.entry) + run.slot_u64(4));
                    task.scalar(v_is_last);
                    task.stream(task.arg(0));
                    task.before({0});
                    task.submit();
                }
            }
            // layer/parallel token/task sum
            {
                Task task(run, KERNEL_sum, 7);
                task.axis(v_token + v_layer_2);
                task.tile(TENSOR_y, READ_WRITE, {v_token}, 7, 1, 0, 64);
                task.stream(task.arg(0));
                task.after({0});
                task.submit();
            }
        }
    }
}

}  // namespace

void wsp_expand(wsp::Run &run) {
    v_moe(run);
}
