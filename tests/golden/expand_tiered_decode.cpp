// The tasks of module tiered_decode, in program order, from the sizes, symbols, arrays and slots of
// the moment.

#include "program.h"
#include "wsp_expand.h"

// Not all parameters and variables are used.
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"

namespace {

using namespace wsp;

// workload decode
void v_decode(Run &run) {
    {
        Scope scope_2(run, PARALLEL);
        for (i64 v_request = 0; v_request < run.size(AXIS_requests) && run.good(); v_request++) {
            // decode/parallel request/task append
            {
                Task task(run, KERNEL_append, 1);
                task.axis(v_request);
                task.tile(TENSOR_fresh, READ, {}, v_request, 1, 0, 64);
                task.tile(TENSOR_kv, WRITE, {}, run.array_i64(ARRAY_kv_start, v_request) +
                        (run.array_i64(ARRAY_kv_length, v_request) - 1), 1, 0, 64);
                task.dispatch(task.arg(0));
                task.priority(task.arg(1));
                task.submit();
            }
            // decode/parallel request/when
            run.at(2);
            if (run.array_i64(ARRAY_kv_length, v_request) <= 1024) {
                // decode/parallel request/when/task attend_short
                Task task(run, KERNEL_attend_short, 3);
                task.axis(v_request);
                task.tile(TENSOR_queries, READ, {v_request}, 0, 4, 0, 32);
                task.tile(TENSOR_kv, READ, {}, run.array_i64(ARRAY_kv_start, v_request), 1024, 0,
                        64);
                task.tile(TENSOR_outputs, WRITE, {v_request}, 0, 4, 0, 32);
                task.scalar(run.array_i64(ARRAY_kv_length, v_request));
                task.dispatch(task.arg(0));
                task.priority(task.arg(1));
                task.submit();
            } else {
                for (i64 v_chunk = 0, e_chunk = run.length(ARRAY_chunks, v_request, 4);
                        v_chunk < e_chunk && run.good(); v_chunk++) {
                    // decode/parallel request/otherwise/parallel chunk/task attend_chunk
                    Task task(run, KERNEL_attend_chunk, 5);
                    task.axis(v_request);
                    task.tile(TENSOR_queries, READ, {v_request}, 0, 4, 0, 32);
                    task.tile(TENSOR_kv, READ, {}, run.array_i64(ARRAY_kv_start, v_request) +
                            v_chunk * 1024, 1024, 0, 64);
                    task.tile(TENSOR_states, WRITE, {v_request}, v_chunk * 4, 4, 0, 2);
                    task.tile(TENSOR_accs, WRITE, {v_request}, v_chunk * 4, 4, 0, 32);
                    task.scalar(min(1024, run.array_i64(ARRAY_kv_length, v_request) - v_chunk *
                            1024));
                    task.dispatch(task.arg(0));
                    task.priority(task.arg(1));
                    task.submit();
                }
                // decode/parallel request/otherwise/task merge
                {
                    Task task(run, KERNEL_merge, 6);
                    task.axis(v_request);
                    task.tile(TENSOR_states, READ, {v_request}, 0, 0, 0, 2);
                    task.tile(TENSOR_accs, READ, {v_request}, 0, 0, 0, 32);
                    task.tile(TENSOR_outputs, WRITE, {v_request}, 0, 4, 0, 32);
                    task.scalar(run.array_i64(ARRAY_chunks, v_request));
                    task.dispatch(task.arg(0));
                    task.priority(task.arg(1));
                    task.submit();
                }
            }
        }
    }
}

}  // namespace

void wsp_expand(wsp::Run &run) {
    v_decode(run);
}
