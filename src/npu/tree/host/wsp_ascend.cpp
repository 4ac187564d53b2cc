// The runner's other half, with CANN: memory, streams and processors of a device.
//
// THIS HAS NEVER RUN. It was written without a device, from public documents. The order of calls
// and their names and arguments come from them; a compiler has checked it against declarations of
// them, and no more. Expect to correct it, first where it says (unsure).
//
//      open      aclInit, aclrtSetDevice, time limit of operators, a stream for each processor
//      copy      tensors, arrays and tables to the device, with its addresses in them
//      start     cube cores, vector cores, then the AICPU; each polls until it may begin
//      wait      all streams, with a time limit
//      copy      tensors that are written, and slots, from the device
//      close     everything open, in the opposite order, also after errors
//
// If the host is the driver, it launches kernels itself: wsp_ascend_launch.cpp.
//
// Each call's result is checked; an error reports the call and its return value. The device needs
// libwsp_aicpu.so, libwsp_cube.so and libwsp_vector.so, or libwsp_block.so for programs with MIX. They
// are searched in the directory $WSP_LIBRARIES, or beside the running program.

#ifdef WSP_ASCEND

#include "wsp_ascend.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace wsp {

constexpr char AICPU_LIBRARY[] = "libwsp_aicpu.so";
constexpr char AICPU_FUNCTION[] = "wsp_aicpu_main";

// Starts the cores of a unit; exported by its library (aicore/wsp_core_main.cpp).
typedef int32_t (*launch_fn)(uint32_t block_count, void *stream, uint64_t run, uint64_t ffts);

bool Device::fail(ptowsp_status status, const char *format, ...) {
    char text[WSP_DEVICE_TEXT_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    std::lock_guard<std::mutex> guard(mutex_);
    if (*status_ == PTOWSP_OK) {
        text_ = text;
        *status_ = bindings_->fail(status, PTOWSP_NO_INDEX, "%s", text);
    }
    return false;
}

bool Device::open(int32_t device) {
    // The device ends operators a little before the host ceases to wait.
    const uint64_t limit_us = static_cast<uint64_t>(time_limit_ms_) * 900;
    uint64_t actual = 0;
    is_acl_open_ = WSP_CALL(aclInit(nullptr));
    is_device_open_ = is_acl_open_ && WSP_CALL(aclrtSetDevice(device));
    device_ = device;
    bool is_good = is_device_open_ && WSP_CALL(aclrtSetOpExecuteTimeOutV2(limit_us, &actual));
    for (aclrtStream &stream : streams_) {
        is_good = is_good && WSP_CALL(aclrtCreateStream(&stream));
    }
    return is_good;
}

Device::~Device() {
    for (aclrtStream stream : streams_) {
        if (stream) {
            WSP_CALL(aclrtDestroyStream(stream));
        }
    }
    for (void *memory : memory_) {
        WSP_CALL(aclrtFree(memory));
    }
    for (void *library : libraries_) {
        dlclose(library);
    }
    if (is_device_open_) {
        WSP_CALL(aclrtResetDevice(device_));
    }
    if (is_acl_open_) {
        WSP_CALL(aclFinalize());
    }
}

void *Device::allocate(size_t size) {
    void *memory = nullptr;
    if (!WSP_CALL(aclrtMalloc(&memory, std::max<size_t>(size, 64), ACL_MEM_MALLOC_HUGE_FIRST))) {
        return nullptr;
    }
    memory_.push_back(memory);
    return memory;
}

bool Device::copy_to(void *device, const void *host, size_t size) {
    return size == 0 || WSP_CALL(aclrtMemcpy(device, size, host, size, ACL_MEMCPY_HOST_TO_DEVICE));
}

bool Device::copy_from(void *host, const void *device, size_t size) {
    return size == 0 || WSP_CALL(aclrtMemcpy(host, size, device, size, ACL_MEMCPY_DEVICE_TO_HOST));
}

// -- bound data -----------------------------------------------------------------------------------

namespace {

// The bytes of an array, from its data to the end of its last element.
uint64_t bytes_of(const pwsp_array &array) {
    if (array.range_count) {
        return (uint64_t{array.range_count} + 1) * sizeof(uint32_t);
    }
    const uint64_t size = ptowsp_dtype_size(array.dtype);
    return array.count ? (array.count - 1) * (array.stride ? array.stride : size) + size : 0;
}

// The tables of bindings, first on the host, then on the device.
class Bound {
  public:
    Bound(Device &device, const wsp_program &program, const wsp_bindings &bindings)
        : device_(device), program_(program), host_(bindings), copies_(device) {
    }

    bool copy_to(uint64_t *out_bindings);
    bool copy_from();

  private:
    void add_array(const pwsp_array &array) {
        if (array.is_bound) {
            copies_.add(address_of(array.data), bytes_of(array), false);
        }
    }
    template <typename T> void add_list(const T *list, uint64_t count) {
        if (list) {
            copies_.add(address_of(list), count * sizeof(T), false);
        }
    }
    void add_data();
    void *at_device(const void *host) const {
        return reinterpret_cast<void *>(
            static_cast<uintptr_t>(copies_.device_of(address_of(host))));
    }
    template <typename T> const T *there(const T *list) const {
        return static_cast<const T *>(at_device(list));
    }
    template <typename T> bool put(const List<T> &table, uint64_t *out_address) {
        void *memory = device_.allocate(table.size() * sizeof(T));
        *out_address = address_of(memory);
        return memory && device_.copy_to(memory, table.data(), table.size() * sizeof(T));
    }

    Device &device_;
    const wsp_program &program_;
    const wsp_bindings &host_;
    Copies copies_;
    uint64_t slots_ = 0;  // on the device
};

void Bound::add_data() {
    for (uint32_t i = 1; i < program_.array_count; i++) {
        add_array(host_table<pwsp_array>(host_.arrays)[i]);
    }
    for (uint32_t i = 1; i < program_.axis_count; i++) {
        const pwsp_bound_csr &csr = host_table<pwsp_bound_csr>(host_.csrs)[i];
        if (csr.is_bound) {
            add_array(csr.indptr);
            add_array(csr.indices);
        }
    }
    for (uint32_t i = 1; i < program_.axis_count; i++) {
        const pwsp_plan_batch &bound = host_table<pwsp_plan_batch>(host_.batches)[i];
        if (bound.is_bound) {
            add_list(bound.batch.kv_lengths, bound.batch.sequence_count);
            add_list(bound.batch.query_lengths, bound.batch.sequence_count);
            add_list(bound.config.lane_speeds, bound.config.lane_count);
            add_list(bound.config.tiers, bound.config.tier_count);
        }
    }
    copies_.add_tensors(program_, host_);
}

bool Bound::copy_to(uint64_t *out_bindings) {
    auto of_host = [](auto *table, uint32_t count) {
        using T =
            typename std::remove_const<typename std::remove_pointer<decltype(table)>::type>::type;
        return List<T>(table, table + count);
    };
    add_data();
    if (!copies_.copy_to()) {
        return false;
    }
    List<pwsp_array> arrays = of_host(host_table<pwsp_array>(host_.arrays), program_.array_count);
    List<pwsp_bound_csr> csrs =
        of_host(host_table<pwsp_bound_csr>(host_.csrs), program_.axis_count);
    List<pwsp_bound_tensor> tensors =
        of_host(host_table<pwsp_bound_tensor>(host_.tensors), program_.tensor_count);
    for (pwsp_array &array : arrays) {
        array.data = at_device(array.data);
    }
    for (pwsp_bound_csr &csr : csrs) {
        csr.indptr.data = at_device(csr.indptr.data);
        csr.indices.data = at_device(csr.indices.data);
    }
    for (pwsp_bound_tensor &tensor : tensors) {
        tensor.data = static_cast<char *>(at_device(tensor.data));
        tensor.base = address_of(tensor.data);
    }
    List<pwsp_plan_batch> batches =
        of_host(host_table<pwsp_plan_batch>(host_.batches), program_.axis_count);
    for (pwsp_plan_batch &bound : batches) {
        bound.batch.kv_lengths = there(bound.batch.kv_lengths);
        bound.batch.query_lengths = there(bound.batch.query_lengths);
        bound.config.lane_speeds = there(bound.config.lane_speeds);
        bound.config.tiers = there(bound.config.tiers);
    }
    wsp_bindings bindings = host_;
    bool is_good =
        put(arrays, &bindings.arrays) && put(csrs, &bindings.csrs) &&
        put(tensors, &bindings.tensors) && put(batches, &bindings.batches) &&
        put(of_host(host_table<int64_t>(host_.sizes), program_.axis_count), &bindings.sizes) &&
        put(of_host(host_table<uint64_t>(host_.symbols), program_.symbol_count),
            &bindings.symbols) &&
        put(of_host(host_table<uint8_t>(host_.is_symbol_bound), program_.symbol_count),
            &bindings.is_symbol_bound) &&
        put(of_host(host_table<uint64_t>(host_.slots), program_.slot_count), &bindings.slots);
    slots_ = bindings.slots;
    return is_good && put(List<wsp_bindings>(1, bindings), out_bindings);
}

bool Bound::copy_from() {
    void *slots = reinterpret_cast<void *>(static_cast<uintptr_t>(host_.slots));
    return copies_.copy_from() && device_.copy_from(slots, host_table<char>(slots_),
                                                    program_.slot_count * sizeof(uint64_t));
}

}  // namespace

// -- processors -----------------------------------------------------------------------------------

namespace {

// The directory of the device's programs, with a slash.
std::string library_directory() {
    const char *directory = getenv("WSP_LIBRARIES");
    if (directory && directory[0]) {
        return std::string(directory) + "/";
    }
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    std::string own(path, length > 0 ? static_cast<size_t>(length) : 0);
    return own.substr(0, own.rfind('/') + 1);
}

}  // namespace

void *Device::find(const std::string &library, const std::string &symbol) {
    const std::string path = library_directory() + library;
    void *opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!opened) {
        fail(PTOWSP_SYSTEM_FAILED, "device: %s", dlerror());
        return nullptr;
    }
    libraries_.push_back(opened);
    void *found = dlsym(opened, symbol.c_str());
    if (!found) {
        fail(PTOWSP_SYSTEM_FAILED, "device: %s has no %s", path.c_str(), symbol.c_str());
    }
    return found;
}

bool Device::find_ffts() {
    uint32_t length = 0;  // (unsure) of the memory at the address
    return WSP_CALL(rtGetC2cCtrlAddr(&ffts_, &length));
}

bool Device::start_cores(const char *unit, uint32_t count, aclrtStream stream, uint64_t run) {
    const std::string symbol = std::string("wsp_start_") + unit;
    void *found = find(std::string("libwsp_") + unit + ".so", symbol);
    launch_fn launch = nullptr;
    memcpy(&launch, &found, sizeof launch);
    return launch && check(launch(count, stream, run, ffts_), symbol.c_str());
}

namespace {

// The file of the AICPU's program, read as a whole.
bool read_file(const std::string &path, List<char> *out_bytes) {
    FILE *file = fopen(path.c_str(), "rb");
    if (!file) {
        return false;
    }
    char buffer[65536];
    for (size_t count; (count = fread(buffer, 1, sizeof buffer, file)) > 0;) {
        out_bytes->append(buffer, buffer + count);
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

}  // namespace

// Copies the AICPU's program to the device.
bool Device::load_aicpu() {
    const std::string path = library_directory() + AICPU_LIBRARY;
    List<char> bytes;
    if (!read_file(path, &bytes)) {
        return fail(PTOWSP_SYSTEM_FAILED, "device: %s cannot be read", path.c_str());
    }
    void *library = allocate(bytes.size());
    LoaderDeviceArguments on_device;
    memset(&on_device, 0, sizeof on_device);
    on_device.dispatcher = on_device.library = address_of(library);
    on_device.dispatcher_size = on_device.library_size = bytes.size();
    on_device.device = static_cast<uint64_t>(device_);
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
                                                  &extended, nullptr, streams_[0], 0)) &&
           await(streams_[0], "the AICPU's loader");
}

// Writes the runtime's description of the AICPU's function; returns the file's path, or "".
static std::string write_descriptor() {
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

// Starts the AICPU's threads. Each calls wsp_aicpu_main.
bool Device::start_aicpu(uint32_t thread_count, uint64_t run) {
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
    return WSP_CALL(rtsLaunchCpuKernel(function, thread_count, streams_[0], &launch, &arguments));
}

// Cores first: they poll until the AICPU opens their lines. If the AICPU then fails to start, no
// thread tells them to quit; closing the device ends them. With tasks of MIX all cores are started as
// blocks, by the stream of cube cores.
bool Device::start(const wsp_device_run &run, uint64_t run_there) {
    const struct {
        const char *unit;
        uint32_t count;
        aclrtDevResLimitType limit;
    } units[] = {{"vector", run.vector_count, ACL_RT_DEV_RES_VECTOR_CORE},
                 {"cube", run.cube_count, ACL_RT_DEV_RES_CUBE_CORE}};
    const bool has_blocks = run.fifos != 0;
    bool is_good = load_aicpu() && (!has_blocks || find_ffts());
    for (size_t i = 0; i < 2 && is_good; i++) {
        uint32_t limit = 0;
        if (units[i].count == 0) {
            continue;
        }
        is_good = WSP_CALL(aclrtGetStreamResLimit(streams_[i + 1], units[i].limit, &limit));
        if (is_good && units[i].count > limit) {
            is_good = fail(PTOWSP_LIMIT_EXCEEDED, "device: %u %s cores are asked for; it has %u",
                           units[i].count, units[i].unit, limit);
        }
        if (!is_good || (has_blocks && i == 0)) {
            continue;
        }
        is_good = start_cores(has_blocks ? "block" : units[i].unit, units[i].count, streams_[i + 1],
                              run_there);
        has_started_[i + 1] = is_good;
    }
    has_started_[0] = is_good && start_aicpu(run.aicpu_count, run_there);
    return has_started_[0];
}

// Waits until a stream has finished; the error names what it ran.
bool Device::await(aclrtStream stream, const char *what) {
    const int32_t code =
        aclrtSynchronizeStreamWithTimeout(stream, static_cast<int32_t>(time_limit_ms_));
    return code == 0 ||
           fail(PTOWSP_SYSTEM_FAILED,
                "device: aclrtSynchronizeStreamWithTimeout(%s) returned %d: the end was awaited "
                "for at most %u ms",
                what, code, static_cast<unsigned>(time_limit_ms_));
}

bool Device::wait() {
    const char *const names[] = {"the AICPU", "vector cores", ffts_ ? "blocks" : "cube cores"};
    bool is_good = true;
    for (size_t i = 0; i < 3; i++) {
        is_good = is_good && (!has_started_[i] || await(streams_[i], names[i]));
    }
    return is_good;
}

// -- a run ----------------------------------------------------------------------------------------

static bool run_opened(Device &device, const wsp_program &program, const wsp_bindings &bindings,
                       wsp_device_run *run) {
    Bound bound(device, program, bindings);
    const List<pwsp_line> lines(run->cube_count + run->vector_count, pwsp_line());
    void *lines_there = device.allocate(lines.size() * sizeof(pwsp_line));
    void *run_there = device.allocate(sizeof *run);
    const bool has_mix = has_kernels_of(program, PTOWSP_UNIT_MIX);
    const size_t fifo_bytes = static_cast<size_t>(run->cube_count) * 2 * WSP_FIFO_BYTES;
    void *fifos = has_mix ? device.allocate(fifo_bytes) : nullptr;
    void *tasks = device.allocate(lines.size() * WSP_TASK_STRIDE);
    run->lines = address_of(lines_there);
    run->tasks = address_of(tasks);
    run->fifos = address_of(fifos);
    if (!lines_there || !run_there || !tasks || (has_mix && !fifos) ||
        !bound.copy_to(&run->bindings) ||
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

ptowsp_status run_program(const wsp_program &program, Bindings *bindings,
                          const wsp_runner_options &options, wsp_runner_result *out_result) {
    if (options.driver == PTOWSP_DRIVER_HOST) {
        return run_driven(program, bindings, options, out_result);
    }
    wsp_device_run run;
    memset(&run, 0, sizeof run);
    run.abi_version = WSP_ABI_VERSION;
    run.aicpu_count = options.aicpu_count ? options.aicpu_count : 1;
    run.ring_size = options.ring_size ? options.ring_size : 4096;
    run.vector_count = core_count_of(program, PTOWSP_UNIT_VECTOR, options);
    run.cube_count = core_count_of(program, PTOWSP_UNIT_CUBE, options);
    if (has_kernels_of(program, PTOWSP_UNIT_MIX)) {
        run.vector_count =
            PWSP_BLOCK_VECTORS * run.cube_count;  // of blocks; others are not started
    }
    run.status = PTOWSP_STUCK;  // unless the AICPU says otherwise
    run.index = PTOWSP_NO_INDEX;
    ptowsp_status status = PTOWSP_OK;
    {
        Device device(bindings, options.time_limit_ms, &status);
        run.time_limit_ms = device.core_limit_ms();
        if (device.open(0)) {
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

#endif
