// The runner's other half, with CANN and no program on the AICPU (WSP_DRIVEN): this machine expands
// the program and schedules it, as on threads (wsp_threads.cpp), and launches a kernel for each
// task. Kernels, memory and results are those of wsp_ascend.cpp.
//
//      open      aclInit, aclrtSetDevice, a stream for each core that runs at a time
//      copy      tensors to the device; arrays, tables and slots stay here
//      task      its arguments to the device, <<<>>> on the core's stream, the stream's end, its
//                results from the device
//      slot      the element that is loaded, from the device
//      copy      tensors that are written, from the device
//      close     everything open, in the opposite order, also after errors
//
// A task takes a launch, two copies and a wait: some tens of microseconds. So this is for trying a
// tree on a device, and for long tasks. It needs nothing of CANN but its documented interface:
// neither the AICPU's loader nor cores that poll.
//
// How far this has been tried: see wsp_cann.h.

#if defined(WSP_ASCEND) && defined(WSP_DRIVEN)

#include "wsp_cann.h"

#include <string.h>

#include <memory>

#include "wsp_driven.h"

namespace wsp {

namespace {

// A device with a stream and a task's memory for each core.
class Driven : public Device {
  public:
    Driven(Bindings *bindings, uint32_t time_limit_ms, ptowsp_status *status,
           const wsp_program &program)
        : Device(bindings, time_limit_ms, status), program_(program) {
    }

    bool open_cores(uint32_t core_count);
    bool run(wsp_task *task);
    bool load(const pwsp_bound_tensor &tensor, const pwsp_tile_at &element, uint64_t *out_value);

  private:
    // A core, which its thread alone uses.
    struct Lane {
        wsp_device_task *there;
        std::unique_ptr<wsp_device_task> task;
        bool is_device_set;
    };
    bool use_device(bool *is_set) {
        *is_set = *is_set || WSP_CALL(aclrtSetDevice(number()));
        return *is_set;
    }

    const wsp_program &program_;
    bool has_blocks_ = false;
    launch_fn launch_[PTOWSP_UNIT_COUNT] = {};  // by unit of the kernel
    uint64_t ffts_ = 0;
    std::vector<Lane> lanes_;
};

bool Driven::open_cores(uint32_t core_count) {
    has_blocks_ = has_kernels_of(program_, PTOWSP_UNIT_MIX);
    if (has_blocks_ && !find_flags(&ffts_)) {
        return false;
    }
    launch_fn block = has_blocks_ ? Device::load("block") : nullptr;
    for (uint32_t unit = 0; unit < PTOWSP_UNIT_COUNT; unit++) {
        launch_[unit] = block;
        if (!has_blocks_ && has_kernels_of(program_, unit)) {
            launch_[unit] = Device::load(unit == PTOWSP_UNIT_CUBE ? "cube" : "vector");
        }
        if (!launch_[unit] && (has_blocks_ || has_kernels_of(program_, unit))) {
            return false;
        }
    }
    for (uint32_t i = 0; i < core_count; i++) {
        Lane lane = {static_cast<wsp_device_task *>(allocate(sizeof(wsp_device_task))),
                     std::make_unique<wsp_device_task>(), false};
        void *fifos = has_blocks_ && lane.there ? allocate(2 * WSP_FIFO_BYTES) : nullptr;
        if (!lane.there || (has_blocks_ && !fifos)) {
            return false;
        }
        memset(lane.task.get(), 0, sizeof *lane.task);
        lane.task->fifos = address_of(fifos);
        lanes_.push_back(std::move(lane));
    }
    return true;
}

// Runs a task on the device; its results, or SYSTEM_FAILED, are in it then.
bool Driven::run(wsp_task *task) {
    Lane &lane = lanes_[task->core];
    const uint32_t unit = program_.kernels[task->kernel].unit;
    const bool is_mix = unit == PTOWSP_UNIT_MIX;
    const uint32_t first = has_blocks_ && unit == PTOWSP_UNIT_VECTOR ? 1 : 0;
    lane.task->unit = unit;
    for (wsp_device_part &part : lane.task->parts) {
        part.task = *task;
    }
    if (!use_device(&lane.is_device_set) ||
        !copy_to(lane.there, lane.task.get(), sizeof *lane.task) ||
        !check(launch_[unit](1, stream(task->core), address_of(lane.there), ffts_),
               "the launch of a kernel") ||
        !await(task->core, "a kernel") ||
        !copy_from(lane.task.get(), lane.there, sizeof *lane.task)) {
        task->status = PTOWSP_SYSTEM_FAILED;
        return false;
    }
    // The first failure counts, the cube core's before those of vector cores.
    const uint32_t last = is_mix ? 2 : first;
    for (uint32_t i = first; i <= last && (i == first || task->status == PTOWSP_OK); i++) {
        const wsp_task &part = lane.task->parts[i].task;
        task->cycles = i == first ? part.cycles : task->cycles;
        task->status = part.status;
        task->fault = part.fault;
    }
    return true;
}

bool Driven::load(const pwsp_bound_tensor &tensor, const pwsp_tile_at &element,
                  uint64_t *out_value) {
    uint64_t cell = 0;
    const int64_t offset = pwsp_tile_offset(&tensor, &element) * tensor.element_size;
    if (!copy_from(&cell, tensor.data + offset, tensor.element_size)) {
        return false;
    }
    pwsp_bound_tensor here = tensor;
    pwsp_tile_at first = element;
    here.data = reinterpret_cast<char *>(&cell);
    first.lead = first.row = first.col = 0;
    *out_value = pwsp_view_load(&here, &first);
    return true;
}

// The run of this process, as cores and slot loads know no other way to it.
Driven *the_run = nullptr;

Failure run_opened(Driven &device, const wsp_program &program, const wsp_bindings &bindings,
                   const wsp_runner_options &options, wsp_runner_result *out_result) {
    Failure failure = Failure();
    Bound bound(device, program, bindings);
    std::vector<pwsp_bound_tensor> tensors;
    if (!bound.copy_tensors_to(&tensors)) {
        return failure;
    }
    wsp_bindings here = bindings;
    here.tensors = address_of(tensors.data());
    failure = run_on_threads(program, here, options, out_result);
    if (failure.status == PTOWSP_OK) {
        bound.copy_from();
    }
    return failure;
}

}  // namespace

bool load_element(const pwsp_bound_tensor &tensor, const pwsp_tile_at &element,
                  uint64_t *out_value) {
    return the_run->load(tensor, element, out_value);
}

ptowsp_status run_program(const wsp_program &program, Bindings *bindings,
                          const wsp_runner_options &options, wsp_runner_result *out_result) {
    static uint32_t is_busy;  // atomic
    const uint32_t core_count = core_count_of(program, PTOWSP_UNIT_VECTOR, options) +
                                core_count_of(program, PTOWSP_UNIT_CUBE, options);
    ptowsp_status status = PTOWSP_OK;
    Failure failure = Failure();
    if (__atomic_exchange_n(&is_busy, 1u, __ATOMIC_ACQ_REL)) {
        return bindings->fail(PTOWSP_BUSY, PTOWSP_NO_INDEX,
                              "device: another run of this process is under way");
    }
    {
        Driven device(bindings, options.time_limit_ms, &status, program);
        the_run = &device;
        if (device.open(0, core_count) && device.open_cores(core_count)) {
            failure = run_opened(device, program, bindings->table(), options, out_result);
        }
    }
    __atomic_store_n(&is_busy, 0u, __ATOMIC_RELEASE);
    if (status == PTOWSP_OK && failure.status != PTOWSP_OK) {  // else the device's error is there
        bindings->failure = failure;
        status = failure.status;
    }
    return status;
}

}  // namespace wsp

// A core's thread runs its task (aicore/wsp_worker.cpp).
extern "C" void wsp_core_run(wsp_task *task) {
    wsp::the_run->run(task);
}

#endif
