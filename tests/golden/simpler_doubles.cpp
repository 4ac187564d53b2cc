// Program doubles under PTO Runtime. Generated.

#include "pto_orchestration_api.h"  // before all others

#include "tree/wsp_core.cpp"
#include "tree/wsp_walk.cpp"
#include "tree/wsp_simpler_target.h"
#include "tree/program.cpp"
#include "tree/expand.cpp"

namespace {

// Ids in test_doubles.py on cube and vector cores, bytes of the FIFOs of a task.
const wsp::SimplerKernel simpler_kernels[] = {
    {-1, -1, -1, 0},
    {-1, 0, -1, 0},  // twice
};

// Submits of a scope, of the 64 that the ring has; tasks of a submit.
const wsp::SimplerOptions simpler_options = {16, 3};

}  // namespace

extern "C" __attribute__((visibility("default"))) PTO2OrchestrationConfig
aicpu_orchestration_config(const ChipTaskArgs &args) {
    return wsp::simpler_config(args);
}

extern "C" __attribute__((visibility("default"))) void
aicpu_orchestration_entry(const ChipTaskArgs &args) {
    wsp::simpler_run(args, simpler_kernels, simpler_options);
}
