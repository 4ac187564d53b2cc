// What attention costs on a machine, in the terms that attention plans are balanced by.
//
//      KV in GM  --- per_token --->  L1, UB  --- per_row_token --->  cube
//                                                                     |
//      states in GM  <-------------- per_merged_row ----------------  UB
//
// Sources: bytes and latencies come from the machine (its fields name their sources); blocks of the
// cube come from PTO-ISA's public model, as in ../isa/cost.h. All is plain arithmetic on doubles,
// the same everywhere.

#include "../base/base.h"

// Multiply-adds of the cube in a cycle.
static double pwsp_cube_rate(ptowsp_dtype dtype) {
    double block = 16.0 * 16.0 * 32.0 / (double)ptowsp_dtype_size(dtype);
    return dtype == PTOWSP_F32 ? block / 2.0 : block;
}

// Bytes in a cycle of a path; 0 if the machine does not say.
static double pwsp_path_rate(const ptowsp_machine *machine, ptowsp_path path) {
    const double gib = 1073741824.0 / 100.0;  // rates are in 1/100 GiB/s
    return (double)machine->rates[path] * gib / ((double)machine->clock_mhz * 1e6);
}

static bool pwsp_shape_is_valid(const ptowsp_attention_shape *shape) {
    double rate = shape->kv_bytes_per_cycle;
    return shape->dim > 0 && rate >= 0.0 && rate - rate == 0.0 &&
           (shape->kv_dtype == PTOWSP_DTYPE_NONE || ptowsp_dtype_size(shape->kv_dtype) > 0);
}

ptowsp_status ptowsp_attention_cost_of(const ptowsp_machine *machine,
                                       const ptowsp_attention_shape *shape,
                                       ptowsp_attention_cost *out_cost) {
    if (!out_cost) {
        return PTOWSP_INVALID_PARAMS;
    }
    memset(out_cost, 0, sizeof *out_cost);
    if (!machine || !shape || !pwsp_shape_is_valid(shape) || machine->clock_mhz == 0) {
        return PTOWSP_INVALID_PARAMS;
    }
    const ptowsp_dtype dtype = shape->kv_dtype ? shape->kv_dtype : PTOWSP_F16;
    const double values = shape->value_dim ? shape->value_dim : shape->dim;
    const double elements = (double)shape->dim + values;
    const double bytes = shape->kv_token_bytes ? (double)shape->kv_token_bytes
                                               : elements * (double)ptowsp_dtype_size(dtype);
    const double read = shape->kv_bytes_per_cycle > 0.0
                            ? shape->kv_bytes_per_cycle
                            : pwsp_path_rate(machine, PTOWSP_PATH_GM_TO_L1);
    const double in = pwsp_path_rate(machine, PTOWSP_PATH_GM_TO_UB);
    const double out = pwsp_path_rate(machine, PTOWSP_PATH_UB_TO_GM);
    if (read <= 0.0 || in <= 0.0 || out <= 0.0) {
        return PTOWSP_INVALID_PARAMS;
    }
    const double control_ns =
        (double)machine->store_ns + (double)machine->dispatch_ns + (double)machine->completion_ns;
    const double row_bytes = (values + 2.0) * (double)sizeof(float);
    out_cost->per_unit = control_ns * (double)machine->clock_mhz / 1000.0;
    out_cost->per_token = bytes / read;
    out_cost->per_row_token = elements / pwsp_cube_rate(dtype);
    out_cost->per_merged_row = row_bytes / out + row_bytes / in;
    return PTOWSP_OK;
}
