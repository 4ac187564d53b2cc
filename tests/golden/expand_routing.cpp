// The tasks of module moe, in program order, from the sizes, symbols, arrays and slots of the
// moment.

#include "program.h"
#include "wsp_expand.h"

namespace {

using namespace wsp;

void layer(Run &run, i64 layer_2, u64 capacity, bool is_last);

// workload moe
void moe(Run &run) {
    // moe/task count
    {
        Task task(run, KERNEL_count, 1);
        task.axis(0);
        task.tile(TENSOR_counts, WRITE, {}, 0, 1, 0, 8);
        task.stream(task.arg(0));
        task.submit();
    }
    for (i64 layer_2 = 0; layer_2 < 2 && run.good(); layer_2++) {
        run.load_slot(2, 3, TENSOR_counts, {}, 0, 1, 0, 1, 0, layer_2);
        run.set_slot(4, u64(7));
        layer(run, layer_2, run.slot_u64(3), layer_2 == 1);
    }
    {
        Scope scope(run, PARALLEL);
        for (i64 i = 0, i_end = run.length_sum(ARRAY_lengths); i < i_end && run.good(); i++) {
            // moe/parallel i/task sum
            Task task(run, KERNEL_sum, 3);
            task.axis(i);
            task.tile(TENSOR_y, READ_WRITE, {0}, 0, 1, 0, 64);
            task.stream(task.arg(0));
            task.submit();
        }
    }
}

// workload layer
void layer(Run &run, i64 layer_2, u64 capacity, bool is_last) {
    const i64 tokens = run.size(AXIS_tokens);
    const u64 seed = run.symbol(SYMBOL_seed);
    const Array<u64> gates(run, ARRAY_gates);
    {
        Scope scope(run, PARALLEL);
        for (i64 token = 0; token < tokens && run.good(); token++) {
            run.reset({0});
            for (const Entry &chosen_entry : run.entries(AXIS_routes, token, 4)) {
                const i64 chosen = chosen_entry.index;
                // layer/parallel token/select chosen/when
                run.at(5);
                if ((gates[chosen_entry.entry] < capacity && !is_last) || (seed & 3) == 0) {
                    // layer/parallel token/select chosen/when/task "expert ffn"
                    Task task(run, KERNEL_expert_ffn, 6);
                    task.axis(token);
                    task.axis(chosen);
                    task.tile(TENSOR_x, READ, {}, token, 1, 0, 64);
                    task.tile(TENSOR_y, READ_WRITE, {token}, chosen, 1, 0, 64);
                    task.scalar(gates[chosen_entry.entry] + run.slot_u64(4));
                    task.scalar(is_last);
                    task.stream(task.arg(0));
                    task.before({0});
                    task.submit();
                }
            }
            // layer/parallel token/task sum
            {
                Task task(run, KERNEL_sum, 7);
                task.axis(token + layer_2);
                task.tile(TENSOR_y, READ_WRITE, {token}, 7, 1, 0, 64);
                task.stream(task.arg(0));
                task.after({0});
                task.submit();
            }
        }
    }
}

}  // namespace

void wsp_expand(wsp::Run &run) {
    moe(run);
}
