// The built-in machines, and names.
//
// Ascend 910B (a 910C is two of them) and 950PR. Cores, memories and control costs describe the
// hardware; the rates of a core come from PTO-ISA's public model (../isa/machine.h).

#include "description.h"

#include "../data/names.h"

PWSP_TEXTS(ptowsp_memory_name, ptowsp_memory, PTOWSP_MEMORIES, "none")

const char *ptowsp_pipe_name(ptowsp_pipe pipe) {
    switch (pipe) {
#define PWSP_PIPE_NAME(name)                                                                       \
    case PTOWSP_PIPE_##name: return #name;
        PTOWSP_PIPES(PWSP_PIPE_NAME)
#undef PWSP_PIPE_NAME
    case PTOWSP_PIPE_COUNT:
    case PTOWSP_PIPE_FORCE_INT: break;
    }
    return "none";
}

PWSP_INTERNAL ptowsp_machine pwsp_machine_from_isa(const ptoisa_machine *isa) {
    ptowsp_machine machine;
    memset(&machine, 0, sizeof machine);
    memcpy(machine.name, isa->name, sizeof machine.name);
    machine.family = (ptowsp_family)isa->family;
    machine.clock_mhz = isa->clock_mhz;
    memcpy(machine.memory_bytes, isa->memory_size, sizeof machine.memory_bytes);
    memcpy(machine.rates, isa->rate, sizeof machine.rates);
    return machine;
}

// A machine with the times of control that both built-in ones have.
static ptowsp_machine pwsp_machine_make(const ptoisa_machine *isa) {
    ptowsp_machine machine = pwsp_machine_from_isa(isa);
    machine.launch_ns = 3000;
    machine.store_ns = 5;
    machine.load_ns = 100;
    machine.dispatch_ns = 140;
    machine.completion_ns = 600;
    return machine;
}

ptowsp_machine ptowsp_machine_910b(void) {
    ptowsp_machine machine = pwsp_machine_make(ptoisa_machine_910b());
    machine.cube_count = 24;
    machine.vector_count = 48;
    machine.aicpu_count = 4;
    machine.l2_bytes = UINT64_C(192) << 20;
    machine.hbm_bytes = UINT64_C(64) << 30;
    return machine;
}

ptowsp_machine ptowsp_machine_950pr(void) {
    ptowsp_machine machine = pwsp_machine_make(ptoisa_machine_950pr());
    machine.cube_count = 28;
    machine.vector_count = 56;
    machine.aicpu_count = 7;
    machine.l2_bytes = UINT64_C(112) << 20;
    machine.hbm_bytes = UINT64_C(112) << 30;
    return machine;
}

bool pwsp_machine_to_isa(const ptowsp_machine *machine, ptoisa_machine *out_isa) {
    memset(out_isa, 0, sizeof *out_isa);
    memcpy(out_isa->name, machine->name, sizeof out_isa->name - 1);
    out_isa->family = (ptoisa_family)machine->family;
    out_isa->clock_mhz = machine->clock_mhz;
    memcpy(out_isa->memory_size, machine->memory_bytes, sizeof out_isa->memory_size);
    memcpy(out_isa->rate, machine->rates, sizeof out_isa->rate);
    bool is_good = (uint32_t)machine->family <= PTOWSP_FAMILY_A5 && machine->clock_mhz > 0 &&
                   (!out_isa->name[0] || pwsp_name_is_valid(out_isa->name));
    for (int i = 0; i < PTOWSP_MEMORY_COUNT; i++) {
        is_good = is_good && machine->memory_bytes[i] <= PWSP_MEMORY_BYTES_MAX;
    }
    return is_good;
}

ptowsp_core_timing ptowsp_core_timing_of(ptowsp_model model) {
    const ptoisa_timing *isa = ptoisa_timing_of((ptoisa_model)model, NULL);
    ptowsp_core_timing timing;
    memset(&timing, 0, sizeof timing);
    if (!isa) {
        return timing;
    }
    memcpy(timing.name, isa->name, sizeof timing.name);
    timing.family = (ptowsp_family)isa->family;
    timing.clock_mhz = isa->clock_mhz;
    timing.memory_mhz = isa->memory_mhz;
    timing.without = isa->without;
    timing.transposed_rate = isa->transposed_rate;
    for (int i = 0; i < PTOWSP_PATH_COUNT; i++) {
        const ptoisa_path_timing *path = &isa->path[i];
        ptowsp_path_timing copy = {path->latency, path->setup, path->burst, path->rate};
        timing.paths[i] = copy;
    }
    return timing;
}

// HBM: bytes that a core reads in a cycle when all do, which is public (isa/machine.h), times the cube
// cores. L2: as fitted.
ptowsp_shared_memory ptowsp_shared_memory_of(ptowsp_model model) {
    ptowsp_shared_memory shared;
    memset(&shared, 0, sizeof shared);
    if (model == PTOWSP_MODEL_910B) {
        shared.hbm_rate = 3200 * 24;
        shared.l2_rate = PTOISA_FITTED_L2_RATE;
        shared.l2_bytes = ptowsp_machine_910b().l2_bytes;
    } else if (model == PTOWSP_MODEL_950PR) {
        shared.hbm_rate = 2700 * 28;
        shared.l2_rate = PTOISA_FITTED_A5_L2_RATE;
        shared.l2_bytes = ptowsp_machine_950pr().l2_bytes;
    }
    return shared;
}

ptoisa_timing pwsp_timing_to_isa(const ptowsp_core_timing *timing) {
    ptoisa_timing isa;
    memset(&isa, 0, sizeof isa);
    memcpy(isa.name, timing->name, sizeof isa.name - 1);
    isa.family = (ptoisa_family)timing->family;
    isa.clock_mhz = timing->clock_mhz;
    isa.memory_mhz = timing->memory_mhz;
    isa.without = timing->without;
    isa.transposed_rate = timing->transposed_rate;
    for (int i = 0; i < PTOWSP_PATH_COUNT; i++) {
        const ptowsp_path_timing *path = &timing->paths[i];
        ptoisa_path_timing copy = {path->latency, path->setup, path->burst, path->rate};
        isa.path[i] = copy;
    }
    return isa;
}
