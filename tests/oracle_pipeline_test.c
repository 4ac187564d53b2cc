// Pipelines that were run on PTO-WSP v9, rebuilt through the public API. What v9 said about their
// time depended on threads; expected is the exact value of the rules of bounded channels, and from
// a model of them, in oracle_model.py, the start and end of every task in the order of time, and
// what processes and channels have waited.
//
// Each case runs twice over: first as in v9, where kernels return their cycles, read from data, and
// where the latency of all channels is bound (PTOWSP_CHANNEL_LATENCY_SYMBOL, which overrides what
// the channels say). Then declared: the channels have that latency themselves, and the kernels a
// function for their cycles, so that time is also measured without running them. What is checked is
// in oracle_run.h; oracle_pipeline_cases.h has the tables, written by oracle_cases.py.

#include "oracle_tables.h"

#include "oracle_pipeline_cases.h"

#include "oracle_run.h"
#include "oracle_tiles.h"

// What oracle_burn finds in the data, from the task's arguments alone. The kernels of a case are
// called st0, st1, ... or ka, kb, ...: the kernel n reads row n of the first tensor.
static ptowsp_cycles burn_cost(const ptowsp_task *task, void *user) {
    const oracle_callee *callee = (const oracle_callee *)user;
    const oracle_tensor *tensor = &callee->o->c->workload->tensors[0];
    char last = callee->kernel->name[strlen(callee->kernel->name) - 1];
    int64_t row = last < 'a' ? last - '0' : last - 'a';
    return (ptowsp_cycles)element_before(
        tensor, (uint64_t)(row * tensor->shape[1] + ptowsp_task_axis(task, 0)));
}

static ptowsp_kernel make_kernel(oracle *o, uint32_t k) {
    const oracle_kernel *kernel = &oracle_kernels[k];
    return kernel->fn ? make_c_kernel(o, k, o->is_declared ? burn_cost : NULL)
                      : make_tile_kernel(o, kernel);
}

int main(void) {
    int failed_count = run_cases(false);
    return failed_count + run_cases(true);
}
