// A program as it is emitted, written by hand: tables that wsp_abi.h declares.
//
//      X  f64 [batch, 8, 6]      what fill makes, row by row; routed rows are added to
//      Y  f64 [batch, 8, 6]      sums of pages
//      sum i64 [batch]           totals that slots are loaded from
//      W  f64 [6, 6], used by no task

#include "program.h"
#include "wsp_abi.h"

extern void wsp_expand(wsp::Run &run);

namespace {

const wsp_axis_decl axes[] = {
    {nullptr, 0, 0, 0, 0},
    {"batch", PTOWSP_AXIS_DYNAMIC, 0, 0, 1},
    {"pages", PTOWSP_AXIS_RAGGED, ARRAY_pages, 0, 1},
    {"experts", PTOWSP_AXIS_SPARSE, 0, 0, 1},
    {"unused", PTOWSP_AXIS_DYNAMIC, 0, 0, 0},
};

const wsp_array_decl arrays[] = {
    {nullptr, 0, 0, 0},
    {"pages", 0, 1, 1},
    {"weight", PTOWSP_I16, 0, 1},
    {"flag", PTOWSP_BOOL, 0, 1},
};

const wsp_symbol_decl symbols[] = {{nullptr, 0}, {"scale", 1}};

const wsp_tensor_decl tensors[] = {
    {nullptr, 0, 0, {0}, 0, 0, 0, 0},
    {"X", PTOWSP_F64, 3, {PTOWSP_DYNAMIC, 8, 6}, 1, 1, 0, 0},
    {"Y", PTOWSP_F64, 3, {PTOWSP_DYNAMIC, 8, 6}, 1, 1, 0, 0},
    {"sum", PTOWSP_I64, 1, {PTOWSP_DYNAMIC}, 1, 1, 1, 0},
    {"W", PTOWSP_F64, 2, {6, 6}, 0, 0, 0, 0},
};

const wsp_kernel kernels[] = {
    {nullptr, 0, 0, 0, 0, {nullptr}},
    {"fill", PTOWSP_UNIT_VECTOR, 1, 1, 1, {"out"}},
    {"add", PTOWSP_UNIT_CUBE, 0, 2, 1, {"in", "out"}},
    {"total", PTOWSP_UNIT_VECTOR, 0, 2, 0, {"in", "total"}},
    {"fail", PTOWSP_UNIT_VECTOR, 0, 0, 1, {nullptr}},
};

const char *const places[] = {
    "",
    "sample/parallel b/task fill",
    "sample/parallel b/for_each p/when",
    "sample/parallel b/for_each p/when/task add",
    "sample/parallel b/task total",
    "sample/for_each b/slot_load",
    "sample/for_each b/select e/task add",
    "sample/task fail",
};

ptowsp_schedule make_schedule() {
    ptowsp_schedule schedule = ptowsp_schedule();
    schedule.dispatch = PTOWSP_DISPATCH_AFFINITY;
    schedule.pools = PTOWSP_POOLS_BY_UNIT;
    schedule.vector_lane_count = 3;
    schedule.cube_lane_count = 2;
    schedule.dependencies = PTOWSP_DEPENDENCIES_HYBRID;
    schedule.hazards = 7;
    return schedule;
}

}  // namespace

extern const wsp_program wsp_the_program;
const wsp_program wsp_the_program = {
    WSP_ABI_VERSION,   "sample", "0",     5,       4,       2,       5, 5,
    SAMPLE_SLOT_COUNT, axes,     arrays,  symbols, tensors, kernels, 8, places,
    make_schedule(),   5,        0,       0,       0,       4,       0, 0,
    wsp_expand,        0,        nullptr, nullptr};
