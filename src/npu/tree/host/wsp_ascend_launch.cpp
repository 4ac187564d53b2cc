// A device whose driver is the host: neither the AICPU nor its loader takes part. A stream of
// wsp_launch.h is a stream of CANN; a launch is the emitted wsp_launch_... of aicore/dispatch.cpp.
//
// THIS HAS NEVER RUN (see wsp_ascend.cpp). Tasks of a wave are in memory of the device:
//
//      start    tasks with their tiles' addresses on the device -> copied; kernel<<<blocks>>>(tasks)
//      wait     the stream, with the time limit; results of tasks <- copied
//
// The loops of the program are walked here, so arrays and sizes stay here; of tensors only elements
// that slots are loaded from are copied back before the end.

#ifdef WSP_ASCEND

#include "wsp_ascend.h"
#include "wsp_launch.h"

#include <cstring>

namespace wsp {

namespace {

// A task of MIX is three elements: for its cube core, and its two vector cores.
constexpr uint32_t PART_COUNT = 3;

class DeviceStream final : public Stream {
  public:
    DeviceStream(Device &device, const Copies &copies, const wsp_program &program, uint32_t unit)
        : device_(device), copies_(copies), program_(program), unit_(unit) {
    }

    // Memory and libraries, for waves of at most `task_count` tasks. False with an error.
    bool open(uint32_t task_count, uint64_t fifos);

    bool begin() override {
        return device_.enter();
    }
    bool start(uint32_t kernel, wsp_task *const *tasks, uint32_t count) override;
    bool wait() override;

  private:
    struct Started {
        wsp_task *task;
        uint32_t first, part_count;  // its elements
    };

    Device &device_;
    const Copies &copies_;
    const wsp_program &program_;
    const uint32_t unit_;
    wsp_launcher (*launch_of_)(uint32_t kernel) = nullptr;
    uint64_t elements_ = 0, fifos_ = 0;  // on the device
    List<char> wave_;                    // elements of the wave, as they are there
    List<Started> started_;
};

bool DeviceStream::open(uint32_t task_count, uint64_t fifos) {
    const char *library = has_kernels_of(program_, PTOWSP_UNIT_MIX) ? "libwsp_block.so"
                          : unit_ == PTOWSP_UNIT_VECTOR             ? "libwsp_vector.so"
                                                                    : "libwsp_cube.so";
    void *found = device_.find(library, "wsp_launcher_of");
    memcpy(&launch_of_, &found, sizeof launch_of_);
    fifos_ = fifos;
    elements_ = found ? address_of(device_.allocate(static_cast<size_t>(task_count) * PART_COUNT *
                                                    WSP_TASK_STRIDE))
                      : 0;
    return elements_ != 0;
}

bool DeviceStream::start(uint32_t kernel, wsp_task *const *tasks, uint32_t count) {
    const bool is_mix = program_.kernels[kernel].unit == PTOWSP_UNIT_MIX;
    const uint32_t part_count = is_mix ? PART_COUNT : 1;
    const size_t begin = wave_.size();
    for (uint32_t i = 0; i < count; i++) {
        wsp_task there = *tasks[i];
        for (uint32_t k = 0; k < there.tile_count; k++) {
            there.tiles[k].data = copies_.device_of(there.tiles[k].data);
        }
        started_.push_back(
            {tasks[i], static_cast<uint32_t>(wave_.size() / WSP_TASK_STRIDE), part_count});
        for (uint32_t part = 0; part < part_count; part++) {
            wave_.resize(wave_.size() + WSP_TASK_STRIDE);
            memcpy(wave_.data() + wave_.size() - WSP_TASK_STRIDE, &there, sizeof there);
        }
    }
    const wsp_launcher launch = launch_of_(kernel);
    if (!launch) {
        return device_.fail(PTOWSP_SYSTEM_FAILED, "device: kernel %s is in no library",
                            program_.kernels[kernel].name);
    }
    const std::string call = std::string("wsp_launch_") + program_.kernels[kernel].name;
    void *to = reinterpret_cast<void *>(static_cast<uintptr_t>(elements_ + begin));
    return device_.copy_to(to, wave_.data() + begin, wave_.size() - begin) &&
           device_.check(
               launch(count, device_.stream(unit_), elements_ + begin, fifos_, device_.ffts()),
               call.c_str());
}

// The first failure of a task's parts counts.
bool DeviceStream::wait() {
    const void *from = reinterpret_cast<const void *>(static_cast<uintptr_t>(elements_));
    const bool is_good = device_.await(device_.stream(unit_), unit_ == PTOWSP_UNIT_CUBE
                                                                  ? "a wave of cube cores"
                                                                  : "a wave of vector cores") &&
                         device_.copy_from(wave_.data(), from, wave_.size());
    for (const Started &started : started_) {
        for (uint32_t part = 0; is_good && part < started.part_count; part++) {
            wsp_task result;
            memcpy(&result, wave_.data() + (started.first + part) * WSP_TASK_STRIDE, sizeof result);
            if (part == 0 || started.task->status == PTOWSP_OK) {
                started.task->status = result.status;
                started.task->fault = result.fault;
            }
        }
    }
    started_.clear();
    wave_.clear();
    return is_good;
}

struct Fetched {
    Device *device;
    const Copies *copies;
};

bool fetch_element(void *user, const void *data, size_t size) {
    const Fetched &fetched = *static_cast<const Fetched *>(user);
    const uint64_t there = fetched.copies->device_of(address_of(data));
    return fetched.device->enter() &&
           fetched.device->copy_from(const_cast<void *>(data),
                                     reinterpret_cast<const void *>(static_cast<uintptr_t>(there)),
                                     size);
}

// Returns the status of the run; a failure of the device has its text.
ptowsp_status run_opened(Device &device, const wsp_program &program, Bindings *bindings,
                         const wsp_runner_options &options, const ptowsp_status &device_status,
                         wsp_runner_result *out_result) {
    Copies copies(device);
    copies.add_tensors(program, bindings->table());
    const uint32_t cube_count = core_count_of(program, PTOWSP_UNIT_CUBE, options);
    const uint32_t vector_count = core_count_of(program, PTOWSP_UNIT_VECTOR, options);
    const bool has_mix = has_kernels_of(program, PTOWSP_UNIT_MIX);
    void *fifos =
        has_mix ? device.allocate(static_cast<size_t>(cube_count) * 2 * WSP_FIFO_BYTES) : nullptr;
    DeviceStream vector(device, copies, program, PTOWSP_UNIT_VECTOR);
    DeviceStream cube(device, copies, program, PTOWSP_UNIT_CUBE);
    if ((has_mix && (!fifos || !device.find_ffts())) || !copies.copy_to() ||
        (vector_count && !vector.open(vector_count, address_of(fifos))) ||
        (cube_count && !cube.open(cube_count, address_of(fifos)))) {
        return device_status;
    }
    Fetched fetched = {&device, &copies};
    Launches launches = Launches();
    launches.streams[PTOWSP_UNIT_VECTOR] = &vector;
    launches.streams[PTOWSP_UNIT_CUBE] = &cube;
    launches.fetch = fetch_element;
    launches.user = &fetched;
    const ptowsp_status status = run_here(program, bindings, options, launches, out_result);
    if (status != PTOWSP_OK && device_status != PTOWSP_OK) {
        const uint64_t index = bindings->failure.index;
        return bindings->fail(device_status, index, "%s", device.text().c_str());
    }
    if (status == PTOWSP_OK && !copies.copy_from()) {
        return device_status;
    }
    return status;
}

}  // namespace

ptowsp_status run_driven(const wsp_program &program, Bindings *bindings,
                         const wsp_runner_options &options, wsp_runner_result *out_result) {
    ptowsp_status status = PTOWSP_OK;
    {
        Device device(bindings, options.time_limit_ms, &status);
        if (device.open(0)) {
            status = run_opened(device, program, bindings, options, status, out_result);
        }
    }
    return status;
}

}  // namespace wsp

#endif
