// The tasks of module tiered_decode, in program order, from the sizes, symbols, arrays and slots of
// the moment.

#include "program.h"
#include "wsp_expand.h"

namespace {

using namespace wsp;

// workload decode
void decode(Run &run) {
    const i64 requests = run.size(AXIS_requests);
    const Array<i64> kv_start(run, ARRAY_kv_start);
    const Array<i64> kv_length(run, ARRAY_kv_length);
    const Array<i64> chunks(run, ARRAY_chunks);
    {
        Scope scope(run, PARALLEL);
        for (i64 request = 0; request < requests && run.good(); request++) {
            // decode/parallel request/task append
            {
                Task task(run, KERNEL_append, 1);
                task.axis(request);
                task.tile(TENSOR_fresh, READ, {}, request, 1, 0, 64);
                task.tile(TENSOR_kv, WRITE, {}, kv_start[request] + (kv_length[request] - 1), 1, 0,
                        64);
                task.dispatch(task.arg(0));
                task.priority(task.arg(1));
                task.submit();
            }
            // decode/parallel request/when
            run.at(2);
            if (kv_length[request] <= 1024) {
                // decode/parallel request/when/task attend_short
                Task task(run, KERNEL_attend_short, 3);
                task.axis(request);
                task.tile(TENSOR_queries, READ, {request}, 0, 4, 0, 32);
                task.tile(TENSOR_kv, READ, {}, kv_start[request], 1024, 0, 64);
                task.tile(TENSOR_outputs, WRITE, {request}, 0, 4, 0, 32);
                task.scalar(kv_length[request]);
                task.dispatch(task.arg(0));
                task.priority(task.arg(1));
                task.submit();
            } else {
                for (i64 chunk = 0, chunk_end = run.length(ARRAY_chunks, request, 4);
                        chunk < chunk_end && run.good(); chunk++) {
                    // decode/parallel request/otherwise/parallel chunk/task attend_chunk
                    Task task(run, KERNEL_attend_chunk, 5);
                    task.axis(request);
                    task.tile(TENSOR_queries, READ, {request}, 0, 4, 0, 32);
                    task.tile(TENSOR_kv, READ, {}, kv_start[request] + chunk * 1024, 1024, 0, 64);
                    task.tile(TENSOR_states, WRITE, {request}, chunk * 4, 4, 0, 2);
                    task.tile(TENSOR_accs, WRITE, {request}, chunk * 4, 4, 0, 32);
                    task.scalar(min(1024, kv_length[request] - chunk * 1024));
                    task.dispatch(task.arg(0));
                    task.priority(task.arg(1));
                    task.submit();
                }
                // decode/parallel request/otherwise/task merge
                {
                    Task task(run, KERNEL_merge, 6);
                    task.axis(request);
                    task.tile(TENSOR_states, READ, {request}, 0, 0, 0, 2);
                    task.tile(TENSOR_accs, READ, {request}, 0, 0, 0, 32);
                    task.tile(TENSOR_outputs, WRITE, {request}, 0, 4, 0, 32);
                    task.scalar(chunks[request]);
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
    decode(run);
}
