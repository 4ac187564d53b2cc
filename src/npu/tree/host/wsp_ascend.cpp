// The runner's other half, with CANN: the device runs the program. Memory, streams and copies are
// in wsp_cann, which says how far all this has been tried.
//
//      open      aclInit, aclrtSetDevice, time limit of operators, a stream for each processor
//      copy      tensors, arrays and tables to the device, with its addresses in them
//      start     cube cores, vector cores, then the AICPU; each polls until it is told
//      wait      all streams, with a time limit
//      copy      tensors that are written, and slots, from the device
//      close     everything open, in the opposite order, also after errors
//
// The device needs libwsp_aicpu.so, libwsp_cube.so and libwsp_vector.so, or libwsp_block.so for
// programs with MIX.

#if defined(WSP_ASCEND) && !defined(WSP_DRIVEN)

#include "wsp_cann.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <runtime/rt.h>

namespace wsp {

namespace {

constexpr char AICPU_LIBRARY[] = "libwsp_aicpu.so";
constexpr char AICPU_FUNCTION[] = "wsp_aicpu_main";

enum Stream { STREAM_AICPU, STREAM_VECTOR, STREAM_CUBE, STREAM_COUNT };

// A device with its processors.
class Ascend : public Device {
  public:
    using Device::Device;

    bool start(const wsp_device_run &run, uint64_t run_there);
    bool wait();

    // The AICPU ceases to wait for a core before the device ends the AICPU's own operator, so that
    // the core is named.
    uint32_t core_limit_ms() const {
        return static_cast<uint32_t>(static_cast<uint64_t>(time_limit_ms()) * 8 / 10) + 1;
    }

  private:
    bool start_cores(const char *unit, uint32_t count, size_t stream, uint64_t run);
    bool load_aicpu();
    bool start_aicpu(uint32_t thread_count, uint64_t run);

    bool has_started_[STREAM_COUNT] = {false, false, false};
    uint64_t aicpu_argument_ = 0;  // lives until the AICPU has read it
    uint64_t ffts_ = 0;            // the flags between the cores of a block; 0: there are no blocks
};

bool Ascend::start_cores(const char *unit, uint32_t count, size_t stream_at, uint64_t run) {
    const launch_fn launch = load(unit);
    return launch && check(launch(count, stream(stream_at), run, ffts_),
                           (std::string("wsp_launch_") + unit).c_str());
}

// The file of the AICPU's program, read as a whole.
bool read_file(const std::string &path, std::vector<char> *out_bytes) {
    FILE *file = fopen(path.c_str(), "rb");
    if (!file) {
        return false;
    }
    char buffer[65536];
    for (size_t count; (count = fread(buffer, 1, sizeof buffer, file)) > 0;) {
        out_bytes->insert(out_bytes->end(), buffer, buffer + count);
    }
    bool is_good = !ferror(file);
    fclose(file);
    return is_good;
}

// The input of the AICPU's own loader: a blob of numbers and names, and the address of a library in
// device memory. Offsets are documented, the contents between them are not. (unsure) The loader
// expects a dispatcher, and a library that it calls; here one library is both.
struct LoaderArguments {
    uint64_t unknown[5];
    uint64_t device_arguments;
    uint64_t padding;
    char kernel[40];
    char library[40];
};

struct LoaderDeviceArguments {
    uint8_t unknown[96];
    uint64_t dispatcher, dispatcher_size, device, library, library_size;
    uint8_t rest[24];
};

static_assert(offsetof(LoaderArguments, device_arguments) == 40, "as documented");
static_assert(offsetof(LoaderDeviceArguments, dispatcher) == 96, "as documented");
static_assert(offsetof(LoaderDeviceArguments, library_size) == 128, "as documented");
static_assert(sizeof(LoaderDeviceArguments) == 160, "as documented");

// Copies the AICPU's program to the device.
bool Ascend::load_aicpu() {
    const std::string path = library_directory() + AICPU_LIBRARY;
    std::vector<char> bytes;
    if (!read_file(path, &bytes)) {
        return fail(PTOWSP_SYSTEM_FAILED, "device: %s cannot be read", path.c_str());
    }
    void *library = allocate(bytes.size());
    LoaderDeviceArguments on_device;
    memset(&on_device, 0, sizeof on_device);
    on_device.dispatcher = on_device.library = address_of(library);
    on_device.dispatcher_size = on_device.library_size = bytes.size();
    on_device.device = static_cast<uint64_t>(number());
    void *memory = library ? allocate(sizeof on_device) : nullptr;
    if (!memory || !copy_to(library, bytes.data(), bytes.size()) ||
        !copy_to(memory, &on_device, sizeof on_device)) {
        return false;
    }
    LoaderArguments arguments;
    memset(&arguments, 0, sizeof arguments);
    arguments.device_arguments = address_of(memory);
    snprintf(arguments.kernel, sizeof arguments.kernel, "DynTileFwkKernelServerInit");
    snprintf(arguments.library, sizeof arguments.library, "libaicpu_extend_kernels.so");
    rtAicpuArgsEx_t extended;
    memset(&extended, 0, sizeof extended);
    extended.args = &arguments;
    extended.argsSize = sizeof arguments;
    extended.kernelNameAddrOffset = offsetof(LoaderArguments, kernel);
    extended.soNameAddrOffset = offsetof(LoaderArguments, library);
    return WSP_CALL(rtAicpuKernelLaunchExWithArgs(KERNEL_TYPE_AICPU_KFC, "AST_DYN_AICPU", 1,
                                                  &extended, nullptr, stream(STREAM_AICPU), 0)) &&
           await(STREAM_AICPU, "the AICPU's loader");
}

// Writes the runtime's description of the AICPU's function; returns the file's path, or "".
std::string write_descriptor() {
    char path[] = "/tmp/wsp_aicpu_XXXXXX.json";
    int file = mkstemps(path, 5);
    std::string text = std::string("{\"") + AICPU_FUNCTION + "\": {\"opInfo\": {" +
                       "\"functionName\": \"" + AICPU_FUNCTION + "\", \"kernelSo\": \"" +
                       AICPU_LIBRARY +
                       "\", \"opKernelLib\": \"AICPUKernel\", \"computeCost\": \"100\", "
                       "\"engine\": \"DNN_VM_AICPU\", \"flagAsync\": \"False\", "
                       "\"flagPartial\": \"False\", \"userDefined\": \"True\"}}}\n";
    if (file < 0) {
        return "";
    }
    bool is_good = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    is_good = ::close(file) == 0 && is_good;
    if (!is_good) {
        unlink(path);
    }
    return is_good ? path : "";
}

// Starts the AICPU's threads, each of which calls wsp_aicpu_main.
bool Ascend::start_aicpu(uint32_t thread_count, uint64_t run) {
    const std::string path = write_descriptor();
    if (path.empty()) {
        return fail(PTOWSP_SYSTEM_FAILED, "device: no file in /tmp can be written");
    }
    rtLoadBinaryOption_t option;
    memset(&option, 0, sizeof option);
    option.optionId = RT_LOAD_BINARY_OPT_CPU_KERNEL_MODE;
    option.value.cpuKernelMode = 0;
    rtLoadBinaryConfig_t config = {&option, 1};
    rtBinHandle binary = nullptr;
    rtFuncHandle function = nullptr;
    bool is_good = WSP_CALL(rtsBinaryLoadFromFile(path.c_str(), &config, &binary)) &&
                   WSP_CALL(rtsFuncGetByName(binary, AICPU_FUNCTION, &function));
    unlink(path.c_str());
    if (!is_good) {
        return false;
    }
    aicpu_argument_ = run;
    rtCpuKernelArgs_t arguments;
    memset(&arguments, 0, sizeof arguments);
    arguments.baseArgs.args = &aicpu_argument_;
    arguments.baseArgs.argsSize = sizeof aicpu_argument_;
    rtKernelLaunchCfg_t launch;
    memset(&launch, 0, sizeof launch);
    return WSP_CALL(
        rtsLaunchCpuKernel(function, thread_count, stream(STREAM_AICPU), &launch, &arguments));
}

// Cores first: they poll until the AICPU opens their lines. If the AICPU then fails to start, no
// thread tells them to quit; closing the device ends them. With tasks of MIX all cores are started as
// blocks, by the stream of cube cores.
bool Ascend::start(const wsp_device_run &run, uint64_t run_there) {
    const struct {
        const char *unit;
        uint32_t count;
        aclrtDevResLimitType limit;
    } units[] = {{"vector", run.vector_count, ACL_RT_DEV_RES_VECTOR_CORE},
                 {"cube", run.cube_count, ACL_RT_DEV_RES_CUBE_CORE}};
    const bool has_blocks = run.fifos != 0;
    bool is_good = load_aicpu() && (!has_blocks || find_flags(&ffts_));
    for (size_t i = 0; i < 2 && is_good; i++) {
        uint32_t limit = 0;
        if (units[i].count == 0) {
            continue;
        }
        is_good = WSP_CALL(aclrtGetStreamResLimit(stream(i + 1), units[i].limit, &limit));
        if (is_good && units[i].count > limit) {
            is_good = fail(PTOWSP_LIMIT_EXCEEDED, "device: %u %s cores are asked for; it has %u",
                           units[i].count, units[i].unit, limit);
        }
        if (!is_good || (has_blocks && i == 0)) {
            continue;
        }
        is_good =
            start_cores(has_blocks ? "block" : units[i].unit, units[i].count, i + 1, run_there);
        has_started_[i + 1] = is_good;
    }
    has_started_[0] = is_good && start_aicpu(run.aicpu_count, run_there);
    return has_started_[0];
}

bool Ascend::wait() {
    const char *const names[] = {"the AICPU", "vector cores", ffts_ ? "blocks" : "cube cores"};
    bool is_good = true;
    for (size_t i = 0; i < 3; i++) {
        is_good = is_good && (!has_started_[i] || await(i, names[i]));
    }
    return is_good;
}

// -- a run ----------------------------------------------------------------------------------------

bool run_opened(Ascend &device, const wsp_program &program, const wsp_bindings &bindings,
                wsp_device_run *run) {
    Bound bound(device, program, bindings);
    const std::vector<pwsp_line> lines(run->cube_count + run->vector_count, pwsp_line());
    void *lines_there = device.allocate(lines.size() * sizeof(pwsp_line));
    void *run_there = device.allocate(sizeof *run);
    const bool has_mix = has_kernels_of(program, PTOWSP_UNIT_MIX);
    const size_t fifo_bytes = static_cast<size_t>(run->cube_count) * 2 * WSP_FIFO_BYTES;
    void *fifos = has_mix ? device.allocate(fifo_bytes) : nullptr;
    run->lines = address_of(lines_there);
    run->fifos = address_of(fifos);
    if (!lines_there || !run_there || (has_mix && !fifos) || !bound.copy_to(&run->bindings) ||
        !device.copy_to(lines_there, lines.data(), lines.size() * sizeof(pwsp_line)) ||
        !device.copy_to(run_there, run, sizeof *run) ||
        !device.start(*run, address_of(run_there)) || !device.wait() ||
        !device.copy_from(run, run_there, sizeof *run)) {
        return false;
    }
    if (run->status != PTOWSP_OK) {
        run->text[sizeof run->text - 1] = '\0';
        if (run->text[0] == '\0') {
            const bool has_run = run->status != PTOWSP_STUCK;
            return device.fail(static_cast<ptowsp_status>(run->status),
                               has_run ? "device: the AICPU's library is of another version"
                                       : "device: the AICPU has not run the program: it was "
                                         "refused, or did not start");
        }
        return device.fail(static_cast<ptowsp_status>(run->status), "%s", run->text);
    }
    return bound.copy_from();
}

}  // namespace

ptowsp_status run_program(const wsp_program &program, Bindings *bindings,
                          const wsp_runner_options &options, wsp_runner_result *out_result) {
    wsp_device_run run;
    memset(&run, 0, sizeof run);
    run.abi_version = WSP_ABI_VERSION;
    run.aicpu_count = options.aicpu_count ? options.aicpu_count : 1;
    run.ring_size = options.ring_size ? options.ring_size : 4096;
    run.vector_count = core_count_of(program, PTOWSP_UNIT_VECTOR, options);
    run.cube_count = core_count_of(program, PTOWSP_UNIT_CUBE, options);
    if (has_kernels_of(program, PTOWSP_UNIT_MIX)) {
        run.vector_count = 2 * run.cube_count;  // those of blocks: others are not started
    }
    run.status = PTOWSP_STUCK;  // unless the AICPU says otherwise
    run.index = PTOWSP_NO_INDEX;
    ptowsp_status status = PTOWSP_OK;
    {
        Ascend device(bindings, options.time_limit_ms, &status);
        run.time_limit_ms = device.core_limit_ms();
        if (device.open(0, STREAM_COUNT)) {
            run_opened(device, program, bindings->table(), &run);
        }
    }
    if (status != PTOWSP_OK) {
        bindings->failure.index = run.index;
    }
    out_result->task_count = run.task_count;
    out_result->in_flight_max = run.in_flight_max;
    return status;
}

}  // namespace wsp

// The tables name the program's loops, which are in the AICPU's library alone.
void wsp_expand(wsp::Run &);
void wsp_expand(wsp::Run &) {
}

#endif
