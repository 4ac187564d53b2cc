// The tree's half for a device (src/npu/tree/host/wsp_ascend*.cpp) on a CANN that is made up here:
// device memory is memory of this machine that is only reachable through copies, and the AICPU and
// launched kernels are functions. So what is copied, with which addresses, and what becomes of errors is tested; that
// CANN is like this is not.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <vector>

static void *fake_dlopen(const char *path, int flags);
static void *fake_dlsym(void *library, const char *name);
static int fake_mkstemps(char *path, int length);
static ssize_t fake_write(int file, const void *bytes, size_t size);

#define WSP_ASCEND
#define WSP_HOST
#define WSP_HAS_CLOCK 1  // as the other files here have it
#define dlopen        fake_dlopen
#define dlsym         fake_dlsym
#define mkstemps      fake_mkstemps
#define write         fake_write
#include "src/npu/tree/host/wsp_ascend.cpp"
#include "src/npu/tree/host/wsp_ascend_launch.cpp"
#include "src/npu/tree/host/wsp_run.cpp"
#undef dlopen
#undef dlsym
#undef mkstemps
#undef write

#include "test.h"

// Of the scheduler, which bindings come with.
extern "C" const char *wsp_core_fault_text(uint32_t, uint32_t) {
    return "";
}

extern "C" wsp_launcher wsp_launcher_of(uint32_t) {
    return nullptr;  // those of threads
}

namespace {

// -- a CANN ---------------------------------------------------------------------------------------

struct Fake {
    uint32_t call = 0, fail_at = 0;  // from 1; 0: none fails
    std::string failed;
    std::map<char *, size_t> memory;
    int open = 0;  // acl, device, streams
    uint64_t aicpu_argument = 0;
    uint32_t thread_count = 0;
    size_t fifo_bytes = 0;
    uint32_t is_device_open = 0;
    // The cores' libraries: by the host, functions are launched in place of kernels; for the AICPU, cores
    // are started, and poll.
    bool has_cores = false, has_symbols = true;
    std::string started;
    bool refuses_file = false, refuses_write = false;
    std::string descriptor;  // the file for the AICPU's function
    uint32_t time_limit_ms = 7000;
    uint32_t launch_count = 0, launched = 0, most_launched = 0;
    std::string library;
    void (*aicpu)(wsp_device_run *run) = nullptr;
};

Fake fake;
std::recursive_mutex fake_mutex;  // launches of both units come from threads of their own

int called(const char *name) {
    std::lock_guard<std::recursive_mutex> guard(fake_mutex);
    if (++fake.call == fake.fail_at) {
        fake.failed = name;
        return 507;
    }
    return 0;
}

int closes(const char *name) {
    fake.open--;
    return called(name);
}

// Does a range lie in memory of the device?
bool is_there(const void *at, size_t size) {
    std::lock_guard<std::recursive_mutex> guard(fake_mutex);
    const char *begin = static_cast<const char *>(at);
    for (const auto &block : fake.memory) {
        if (block.first <= begin && begin + size <= block.first + block.second) {
            return true;
        }
    }
    return false;
}

template <typename T> T *there(uint64_t address, size_t count = 1) {
    T *at = reinterpret_cast<T *>(static_cast<uintptr_t>(address));
    assert_true(is_there(at, count * sizeof(T)));
    return at;
}

}  // namespace

#define FAKE(name)                                                                                 \
    if (int error = called(#name)) {                                                               \
        return error;                                                                              \
    }

extern "C" {

aclError aclInit(const char *) {
    FAKE(aclInit)
    fake.open++;
    return 0;
}
aclError aclFinalize(void) {
    return closes("aclFinalize");
}
aclError aclrtSetDevice(int32_t) {
    FAKE(aclrtSetDevice)
    fake.open +=
        !__atomic_exchange_n(&fake.is_device_open, 1u, __ATOMIC_SEQ_CST);  // by threads, too
    return 0;
}
aclError aclrtResetDevice(int32_t) {
    return closes("aclrtResetDevice");
}
aclError aclrtSetOpExecuteTimeOutV2(uint64_t microseconds, uint64_t *) {
    assert_int_equal(microseconds, fake.time_limit_ms * 900);
    return called("aclrtSetOpExecuteTimeOutV2");
}
aclError aclrtCreateStream(aclrtStream *stream) {
    FAKE(aclrtCreateStream)
    *stream = &fake;
    fake.open++;
    return 0;
}
aclError aclrtDestroyStream(aclrtStream) {
    return closes("aclrtDestroyStream");
}
aclError aclrtSynchronizeStream(aclrtStream) {
    return called("aclrtSynchronizeStream");
}
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream, int32_t milliseconds) {
    assert_int_equal(milliseconds, fake.time_limit_ms);
    FAKE(aclrtSynchronizeStreamWithTimeout)
    if (fake.aicpu_argument) {  // it was started
        fake.aicpu(there<wsp_device_run>(fake.aicpu_argument));
        fake.aicpu_argument = 0;
    }
    return 0;
}
aclError aclrtGetStreamResLimit(aclrtStream, aclrtDevResLimitType, uint32_t *value) {
    FAKE(aclrtGetStreamResLimit)
    *value = 3;
    return 0;
}
aclError aclrtMalloc(void **device, size_t size, aclrtMemMallocPolicy) {
    FAKE(aclrtMalloc)
    *device = malloc(size);
    memset(*device, 0x5a, size);
    fake.fifo_bytes = size > fake.fifo_bytes ? size : fake.fifo_bytes;  // the largest piece
    fake.memory[static_cast<char *>(*device)] = size;
    return 0;
}
aclError aclrtFree(void *device) {
    fake.memory.erase(static_cast<char *>(device));
    free(device);
    return called("aclrtFree");
}
aclError aclrtMemcpy(void *to, size_t to_size, const void *from, size_t count,
                     aclrtMemcpyKind kind) {
    FAKE(aclrtMemcpy)
    const bool is_to = kind == ACL_MEMCPY_HOST_TO_DEVICE;
    assert_true(count <= to_size);
    assert_true(is_there(is_to ? to : from, count));
    assert_false(is_there(is_to ? from : to, count));
    memcpy(to, from, count);
    return 0;
}
rtError_t rtAicpuKernelLaunchExWithArgs(uint32_t, const char *, uint32_t,
                                        const rtAicpuArgsEx_t *args, rtSmDesc_t *, rtStream_t,
                                        uint32_t) {
    FAKE(rtAicpuKernelLaunchExWithArgs)
    const char *bytes = static_cast<const char *>(args->args);
    assert_string_equal(bytes + args->kernelNameAddrOffset, "DynTileFwkKernelServerInit");
    assert_string_equal(bytes + args->soNameAddrOffset, "libaicpu_extend_kernels.so");
    uint64_t address, numbers[5];
    memcpy(&address, bytes + 40, sizeof address);
    memcpy(numbers, there<char>(address, 160) + 96, sizeof numbers);
    assert_string_equal(there<char>(numbers[0], 10), "the aicpu");
    assert_int_equal(numbers[1], 10);
    assert_int_equal(numbers[4], 10);
    return 0;
}
rtError_t rtGetC2cCtrlAddr(uint64_t *address, uint32_t *length) {
    FAKE(rtGetC2cCtrlAddr)
    *address = 0xff75;
    *length = 64;
    return 0;
}
rtError_t rtsBinaryLoadFromFile(const char *path, const rtLoadBinaryConfig_t *, rtBinHandle *out) {
    FAKE(rtsBinaryLoadFromFile)
    char text[1000] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    assert_non_null(strstr(text, "\"functionName\": \"wsp_aicpu_main\""));
    *out = &fake;
    return 0;
}
rtError_t rtsFuncGetByName(rtBinHandle, const char *name, rtFuncHandle *out) {
    FAKE(rtsFuncGetByName)
    assert_string_equal(name, "wsp_aicpu_main");
    *out = &fake;
    return 0;
}
rtError_t rtsLaunchCpuKernel(rtFuncHandle, uint32_t thread_count, rtStream_t,
                             const rtKernelLaunchCfg_t *, rtCpuKernelArgs_t *args) {
    FAKE(rtsLaunchCpuKernel)
    fake.thread_count = thread_count;
    memcpy(&fake.aicpu_argument, args->baseArgs.args, sizeof fake.aicpu_argument);
    return 0;
}

}  // extern "C"

namespace {

// -- a program ------------------------------------------------------------------------------------

// x and y are halves of one piece of memory that overlap; z goes backwards; e is empty, with rows
// far apart; t and u are transient, one after the other; n is an array. The kernels' table is empty,
// as cores take a compiler that is not here.
const wsp_tensor_decl TENSORS[] = {{"", 0, 0, {}, 0, 0, 0, 0},
                                   {"x", PTOWSP_I32, 1, {8}, 1, 0, 0, 0},
                                   {"y", PTOWSP_I32, 1, {8}, 1, 1, 1, 0},
                                   {"z", PTOWSP_I32, 1, {4}, 1, 1, 0, 0},
                                   {"e", PTOWSP_I32, 2, {PTOWSP_DYNAMIC, 4}, 1, 1, 0, 0},
                                   {"t", PTOWSP_I32, 2, {PTOWSP_DYNAMIC, 4}, 1, 1, 0, 1},
                                   {"u", PTOWSP_I32, 1, {8}, 1, 1, 0, 1}};
const wsp_transient_decl TRANSIENTS[] = {{5, 1}, {6, 1}};
const uint32_t LIFETIMES[][2] = {{0, 1}, {2, 2}};
const char *const POINTS[] = {"p/task a", "p/task b", "p/task c"};
void size_transients(wsp::Run &run, wsp::Sizes &sizes) {
    sizes.add({run.size(1), 4});
    sizes.add({8});
}
const wsp_transients TRANSIENT = {2, TRANSIENTS, LIFETIMES, 3, POINTS, size_transients};
alignas(PTOWSP_TRANSIENT_ALIGN) char transient_block[77 * 4 * 4 + 48];
const wsp_array_decl ARRAYS[] = {{"", 0, 0, 0}, {"n", PTOWSP_I64, 0, 1}};
const wsp_axis_decl AXES[] = {{nullptr, 0, 0, 0, 0},
                              {"m", PTOWSP_AXIS_DYNAMIC, 0, 0, 1},
                              {"kv", PTOWSP_AXIS_PLAN_LANES, 0, 0, 1},
                              {"adj", PTOWSP_AXIS_SPARSE, 0, 0, 1}};
const wsp_symbol_decl SYMBOLS[] = {{nullptr, 0}, {"s", 1}};

wsp_program make_program(uint32_t kernel_count, const wsp_kernel *kernels) {
    wsp_program program = wsp_program();
    program.name = "p";
    program.array_count = program.symbol_count = 2;
    program.axis_count = 4;
    program.tensor_count = 7;
    program.transients = &TRANSIENT;
    program.kernel_count = kernel_count;
    program.slot_count = 2;
    program.axes = AXES;
    program.arrays = ARRAYS;
    program.symbols = SYMBOLS;
    program.tensors = TENSORS;
    program.kernels = kernels;
    program.schedule.lane_count = program.lane_count = 2;
    program.schedule.issue = PTOWSP_ISSUE_DATAFLOW;
    program.schedule.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN;
    program.schedule.pools = PTOWSP_POOLS_ONE;
    program.schedule.ready = PTOWSP_READY_FIFO;
    program.schedule.dependencies = PTOWSP_DEPENDENCIES_HYBRID;
    program.schedule.hazards = 7;
    return program;
}

int32_t numbers[12], backwards[4];
int64_t elements[3];
const int32_t lengths[3] = {30, 7, 2048}, queries[3] = {1, 2, 3};
const uint32_t speeds[2] = {3, 4};
const ptowsp_tier tiers[1] = {{5, 0, 4096}};
const int32_t indptr[3] = {0, 1, 3}, indices[3] = {4, 5, 6};

ptowsp_binding binding_of(ptowsp_bind_kind kind, const char *name, const void *data,
                          uint64_t value = 0) {
    ptowsp_binding binding = pwsp_binding_of(kind, name);
    binding.data = data;
    binding.value = value;
    return binding;
}

void bind_all(wsp::Bindings *bindings) {
    for (int i = 0; i < 12; i++) {
        numbers[i] = i;
        backwards[i % 4] = 100 + i % 4;
        elements[i % 3] = 1000 + i % 3;
    }
    const ptowsp_buffer x = {numbers, 0, PTOWSP_DTYPE_NONE, 0, {}, {}},
                        y = {numbers + 4, 0, PTOWSP_DTYPE_NONE, 0, {}, {}},
                        z = {backwards + 3, 0, PTOWSP_DTYPE_NONE, 1, {4}, {-1}},
                        e = {backwards + 3, 0, PTOWSP_DTYPE_NONE, 2, {0, 4}, {100, 1}};
    const ptowsp_csr csr = {PTOWSP_I32, indptr, indices, 2, 3};
    const ptowsp_attention_batch batch = {lengths, queries, 3};
    ptowsp_attention_config config = ptowsp_attention_config();
    config.kv_head_count = 1;
    config.lane_count = 2;
    config.lane_speeds = speeds;
    config.tiers = tiers;
    config.tier_count = 1;
    ptowsp_binding all[] = {binding_of(PTOWSP_BIND_TENSOR, "x", &x),
                            binding_of(PTOWSP_BIND_TENSOR, "y", &y),
                            binding_of(PTOWSP_BIND_TENSOR, "z", &z),
                            binding_of(PTOWSP_BIND_TENSOR, "e", &e),
                            binding_of(PTOWSP_BIND_CSR, "adj", &csr),
                            binding_of(PTOWSP_BIND_SIZE, "m", nullptr, 77),
                            binding_of(PTOWSP_BIND_SYMBOL, "s", nullptr, 88),
                            binding_of(PTOWSP_BIND_SLOT, nullptr, nullptr, 5),
                            binding_of(PTOWSP_BIND_ARRAY, "n", elements),
                            binding_of(PTOWSP_BIND_BATCH, "kv", &batch)};
    all[8].dtype = PTOWSP_I64;
    all[8].count = 3;
    all[9].config = &config;
    for (const ptowsp_binding &binding : all) {
        assert_ok(bindings->bind(binding));
    }
    assert_invalid(bindings->bind(binding_of(PTOWSP_BIND_TENSOR, "u", &e)));
    assert_string_equal(bindings->failure.text,
                        "bind: tensor u is transient: executions give it memory");
    assert_invalid(bindings->bind_transients(transient_block + 1, 9));
    assert_string_equal(bindings->failure.text,
                        "bind: the block of transient tensors is not aligned to 64 bytes");
    bindings->failure = wsp::Failure();
    memset(transient_block, 0x33, sizeof transient_block);
    assert_ok(bindings->bind_transients(transient_block, sizeof transient_block));
    assert_ok(bindings->verify(PTOWSP_MODEL_UNIT));
}

// What the AICPU finds in the device's memory, and leaves there.
void look(wsp_device_run *run) {
    assert_int_equal(run->abi_version, WSP_ABI_VERSION);
    assert_int_equal(run->aicpu_count, 3);
    assert_int_equal(run->ring_size, 9);
    assert_int_equal(run->time_limit_ms, 5601);  // of 7000, before those of the device and the host
    there<char>(run->tasks, (run->vector_count + run->cube_count) * WSP_TASK_STRIDE);
    const wsp_bindings &b = *there<wsp_bindings>(run->bindings);
    assert_int_equal(there<int64_t>(b.sizes, 2)[1], 77);
    assert_int_equal(there<uint64_t>(b.symbols, 2)[1], 88);
    assert_int_equal(there<uint8_t>(b.is_symbol_bound, 2)[1], 1);
    const pwsp_array &n = there<pwsp_array>(b.arrays, 2)[1];
    assert_int_equal(there<int64_t>(wsp::address_of(n.data), 3)[2], 1002);
    const pwsp_bound_csr &adj = there<pwsp_bound_csr>(b.csrs, 4)[3];
    assert_int_equal(there<int32_t>(wsp::address_of(adj.indptr.data), 3)[2], 3);
    assert_int_equal(there<int32_t>(wsp::address_of(adj.indices.data), 3)[1], 5);
    const pwsp_plan_batch &kv = there<pwsp_plan_batch>(b.batches, 4)[2];
    assert_true(kv.is_bound && !there<pwsp_plan_batch>(b.batches, 4)[1].is_bound);
    assert_int_equal(there<int32_t>(wsp::address_of(kv.batch.kv_lengths), 3)[2], 2048);
    assert_int_equal(there<int32_t>(wsp::address_of(kv.batch.query_lengths), 3)[2], 3);
    assert_int_equal(there<uint32_t>(wsp::address_of(kv.config.lane_speeds), 2)[1], 4);
    assert_int_equal(there<ptowsp_tier>(wsp::address_of(kv.config.tiers), 1)[0].length_max, 4096);
    const pwsp_bound_tensor *tensors = there<pwsp_bound_tensor>(b.tensors, 7);
    for (uint32_t i = 1; i < 4; i++) {
        assert_int_equal(tensors[i].base, wsp::address_of(tensors[i].data));
    }
    int32_t *x = there<int32_t>(tensors[1].base, 8), *y = there<int32_t>(tensors[2].base, 8);
    int32_t *z = there<int32_t>(tensors[3].base - 12, 4);
    assert_true(y == x + 4);  // they overlap as on the host
    // Memory of the device that nothing is copied to, and nothing from.
    char *t = there<char>(tensors[5].base, 77 * 4 * 4);
    assert_int_equal(tensors[5].rows, 77);
    assert_int_equal(tensors[6].base, tensors[5].base);
    assert_true(t[0] == 0x5a && t[77 * 4 * 4 - 1] == 0x5a);
    t[0] = t[77 * 4 * 4 - 1] = 1;
    assert_int_equal(x[7], 7);
    assert_int_equal(z[3], 103);
    assert_int_equal(tensors[3].col_stride, -1);
    for (int i = 0; i < 8; i++) {
        y[i] += 1000;
    }
    z[0] = -1;
    uint64_t *slots = there<uint64_t>(b.slots, 2);
    assert_int_equal(slots[0], 5);
    slots[1] = 6;
    run->status = PTOWSP_OK;
    run->task_count = 12;
    run->in_flight_max = 4;
}

void refuse(wsp_device_run *run) {
    run->status = PTOWSP_KERNEL_FAILED;
    run->index = 3;
    snprintf(run->text, sizeof run->text, "p: task 3 failed");
}

struct Outcome {
    ptowsp_status status;
    std::string text;
    uint64_t index;
    wsp_runner_result result;
    uint64_t slot;

    void is(ptowsp_status wanted, const std::string &said) const {
        assert_string_equal(text.c_str(), said.c_str());
        assert_int_equal(status, wanted);
    }
};

// Of a CANN as it is told beforehand.
Outcome run_on(const Fake &cann, uint32_t kernel_count, const wsp_kernel *kernels,
               wsp_expand_fn expand, const wsp_runner_options &chosen) {
    fake = cann;
    wsp_program program = make_program(kernel_count, kernels);
    program.expand = expand;
    wsp::Bindings bindings(program);
    bind_all(&bindings);
    Outcome outcome = Outcome();
    wsp_runner_options options = chosen;
    if (expand) {
        options.aicpu_count = 1;
        options.driver = PTOWSP_DRIVER_HOST;
    }
    outcome.status = wsp::run_program(program, &bindings, options, &outcome.result);
    outcome.text = bindings.failure.text;
    outcome.index = bindings.failure.index;
    outcome.slot = bindings.slot(1);
    assert_int_equal(fake.open, 0);
    assert_int_equal(fake.memory.size(), 0);
    return outcome;
}

wsp_runner_options on_cores(uint32_t core_count) {
    return {3, core_count, 9, 0, 7000, nullptr, 0, 0};
}

Outcome run_once(uint32_t kernel_count, const wsp_kernel *kernels, void (*aicpu)(wsp_device_run *),
                 wsp_expand_fn expand = nullptr, uint32_t core_count = 2) {
    Fake cann;
    cann.aicpu = aicpu;
    cann.has_cores = expand != nullptr;
    return run_on(cann, kernel_count, kernels, expand, on_cores(core_count));
}

// A directory with an AICPU's program.
int make_libraries(void **state) {
    static char path[] = "/tmp/wsp_libraries_XXXXXX";
    assert_non_null(mkdtemp(path));
    FILE *file = fopen((std::string(path) + "/libwsp_aicpu.so").c_str(), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite("the aicpu", 1, 10, file), 10);
    assert_int_equal(fclose(file), 0);
    setenv("WSP_LIBRARIES", path, 1);
    *state = path;
    return 0;
}

int remove_libraries(void **state) {
    const std::string path = static_cast<const char *>(*state);
    unlink((path + "/libwsp_aicpu.so").c_str());
    return rmdir(path.c_str());
}

const wsp_kernel NO_KERNEL[1] = {{nullptr, 0, 0, 0, 0, {}}};
const wsp_kernel BLOCKS[] = {NO_KERNEL[0], {"m", PTOWSP_UNIT_MIX, 0, 0, 0, {}}};

SUITE_AROUND(make_libraries, remove_libraries)

TEST(npu_ascend__copies_what_is_bound_there_and_back) {
    const Outcome outcome = run_once(1, NO_KERNEL, look);
    outcome.is(PTOWSP_OK, "");
    assert_int_equal(fake.thread_count, 3);
    assert_int_equal(outcome.result.task_count, 12);
    assert_int_equal(outcome.result.in_flight_max, 4);
    assert_int_equal(outcome.slot, 6);
    for (int i = 0; i < 12; i++) {
        assert_int_equal(numbers[i], i < 4 ? i : 1000 + i);
    }
    assert_int_equal(backwards[0], -1);
    assert_int_equal(backwards[3], 103);
    assert_true(transient_block[0] == 0x33 && transient_block[77 * 4 * 4 - 1] == 0x33);
}

// An error of its own, nothing at all, and another layout of the run.
TEST(npu_ascend__tells_what_the_device_says) {
    const Outcome outcome = run_once(1, NO_KERNEL, refuse);
    outcome.is(PTOWSP_KERNEL_FAILED, "p: task 3 failed");
    assert_int_equal(outcome.index, 3);
    run_once(1, NO_KERNEL, [](wsp_device_run *) {})
        .is(PTOWSP_STUCK,
            "device: the AICPU has not run the program: it was refused, or did not start");
    run_once(1, NO_KERNEL, [](wsp_device_run *run) {
        run->status = PTOWSP_UNSUPPORTED;
    }).is(PTOWSP_UNSUPPORTED, "device: the AICPU's library is of another version");
}

// With MIX all cores are started as blocks, with their FIFOs: 3 cube and 6 vector cores for 3 lanes, of
// which the device has 3.
TEST(npu_ascend__needs_cores_and_their_libraries) {
    const wsp_kernel cube[] = {NO_KERNEL[0], {"k", PTOWSP_UNIT_CUBE, 0, 0, 0, {}}};
    const std::string path = static_cast<const char *>(*suite_state);
    const auto has_no = [&path](const Outcome &outcome, const char *library) {
        assert_int_equal(outcome.status, PTOWSP_SYSTEM_FAILED);
        assert_true(outcome.text.find(path + library) != std::string::npos);
    };
    has_no(run_once(2, cube, look), "/libwsp_cube.so");
    run_once(2, cube, look, nullptr, 4)
        .is(PTOWSP_LIMIT_EXCEEDED, "device: 4 cube cores are asked for; it has 3");
    run_once(2, BLOCKS, look)
        .is(PTOWSP_LIMIT_EXCEEDED, "device: 4 vector cores are asked for; it has 3");
    has_no(run_once(2, BLOCKS, look, nullptr, 1), "/libwsp_block.so");
    assert_true(fake.fifo_bytes == 2 * WSP_FIFO_BYTES);
    setenv("WSP_LIBRARIES", "/nowhere", 1);
    const Outcome nowhere = run_once(1, NO_KERNEL, look);
    setenv("WSP_LIBRARIES", path.c_str(), 1);
    nowhere.is(PTOWSP_SYSTEM_FAILED, "device: /nowhere/libwsp_aicpu.so cannot be read");
}

// -- cores ----------------------------------------------------------------------------------------

const wsp_kernel BOTH[] = {
    NO_KERNEL[0], {"v", PTOWSP_UNIT_VECTOR, 0, 0, 0, {}}, {"c", PTOWSP_UNIT_CUBE, 0, 0, 0, {}}};

Fake with_cores(uint32_t fail_at = 0) {
    Fake cann;
    cann.fail_at = fail_at;
    cann.aicpu = look;
    cann.has_cores = true;
    return cann;
}

TEST(npu_ascend__starts_cores_before_the_aicpu) {
    run_on(with_cores(), 3, BOTH, nullptr, on_cores(2)).is(PTOWSP_OK, "");
    assert_string_equal(fake.started.c_str(), "2 vector, 2 cube, ");
    assert_int_equal(numbers[11], 1011);
    assert_int_equal(access(fake.descriptor.c_str(), F_OK), -1);  // it is removed
    // Blocks of a cube core and two vector cores, with the flags between them.
    run_on(with_cores(), 2, BLOCKS, nullptr, on_cores(1)).is(PTOWSP_OK, "");
    assert_string_equal(fake.started.c_str(), "1 block with flags, ");
    // Zero is a default: an AICPU thread, 4096 tasks in flight, 50 s.
    Fake cann = with_cores();
    cann.time_limit_ms = 50000;
    cann.aicpu = [](wsp_device_run *run) {
        assert_int_equal(run->aicpu_count, 1);
        assert_int_equal(run->ring_size, 4096);
        assert_int_equal(run->time_limit_ms, 40001);
        assert_int_equal(run->vector_count, 2);  // lanes
        run->status = PTOWSP_OK;
    };
    run_on(cann, 3, BOTH, nullptr, wsp_runner_options()).is(PTOWSP_OK, "");
}

TEST(npu_ascend__needs_what_it_looks_for) {
    const std::string path = static_cast<const char *>(*suite_state);
    Fake no_symbols = with_cores(), no_file = with_cores(), no_room = with_cores();
    no_symbols.has_symbols = false;
    no_file.refuses_file = no_room.refuses_write = true;
    run_on(no_symbols, 3, BOTH, nullptr, on_cores(2))
        .is(PTOWSP_SYSTEM_FAILED, "device: " + path + "/libwsp_vector.so has no wsp_start_vector");
    // A file in /tmp for the AICPU's function.
    for (const Fake &cann : {no_file, no_room}) {
        run_on(cann, 3, BOTH, nullptr, on_cores(2))
            .is(PTOWSP_SYSTEM_FAILED, "device: no file in /tmp can be written");
    }
    assert_int_equal(access(fake.descriptor.c_str(), F_OK), -1);
    // Without a directory for them, libraries are beside the program.
    char own[1000] = "";
    assert_true(readlink("/proc/self/exe", own, sizeof own - 1) > 0);
    *strrchr(own, '/') = '\0';
    for (const char *value : {"", static_cast<const char *>(nullptr)}) {
        value ? setenv("WSP_LIBRARIES", value, 1) : unsetenv("WSP_LIBRARIES");
        const Outcome outcome = run_on(with_cores(), 3, BOTH, nullptr, on_cores(2));
        setenv("WSP_LIBRARIES", path.c_str(), 1);
        outcome.is(PTOWSP_SYSTEM_FAILED,
                   std::string("device: ") + own + "/libwsp_aicpu.so cannot be read");
    }
}

// -- the host as driver ---------------------------------------------------------------------------

// Kernel 1 adds 100 to an element, on a vector core; kernel 2 stores its scalar, on a cube core;
// kernel 3, of MIX, adds 100 on its cube core alone, and fails on the second vector core if told.
const wsp_kernel DRIVEN[] = {NO_KERNEL[0],
                             {"add", PTOWSP_UNIT_VECTOR, 0, 1, 0, {"x"}},
                             {"put", PTOWSP_UNIT_CUBE, 0, 1, 1, {"x"}},
                             {"mix", PTOWSP_UNIT_MIX, 0, 1, 1, {"x"}}};

wsp_task *element_of(uint64_t tasks, uint32_t index) {
    wsp_task *task = there<wsp_task>(tasks + index * WSP_TASK_STRIDE);
    task->status = PTOWSP_OK;
    return task;
}

int32_t note_launch(uint32_t count, void *stream) {
    std::lock_guard<std::recursive_mutex> guard(fake_mutex);
    assert_ptr_equal(stream, &fake);
    fake.launch_count++;
    fake.launched += count;
    fake.most_launched = std::max(fake.most_launched, count);
    return called("wsp_launch_add");  // as far as the parenthesis
}

// Of a vector and of a cube core.
template <bool IsPut>
int32_t launch(uint32_t count, void *stream, uint64_t tasks, uint64_t, uint64_t) {
    for (uint32_t i = 0; i < count; i++) {
        wsp_task *task = element_of(tasks, i);
        int32_t *element = there<int32_t>(task->tiles[0].data);
        *element = IsPut ? static_cast<int32_t>(task->args[2]) : *element + 100;
    }
    return note_launch(count, stream);
}

int32_t launch_mix(uint32_t count, void *stream, uint64_t tasks, uint64_t fifos, uint64_t ffts) {
    assert_int_equal(ffts, 0xff75);
    there<char>(fifos, count * 2 * WSP_FIFO_BYTES);
    for (uint32_t i = 0; i < count; i++) {
        wsp_task *task = element_of(tasks, 3 * i);
        *there<int32_t>(task->tiles[0].data) += 100;
        element_of(tasks, 3 * i + 1);
        if (element_of(tasks, 3 * i + 2)->args[2] == 13) {
            element_of(tasks, 3 * i + 2)->status = PTOWSP_KERNEL_FAILED;
        }
    }
    return note_launch(count, stream);
}

wsp_launcher fake_launch_of(uint32_t kernel) {
    return kernel == 1   ? launch<false>
           : kernel == 2 ? launch<true>
           : kernel == 3 ? launch_mix
                         : nullptr;
}

void submit(wsp::Run &run, uint32_t kernel, uint32_t tensor, int64_t col, uint64_t value) {
    wsp::Task task(run, kernel, 0);
    task.tile(tensor, wsp::READ_WRITE, {}, 0, 1, col, 1);
    task.scalar(wsp::u64(value));
    task.submit();
}

// 100 is added to y; z[0] becomes what y[3] then is.
void expand_adds(wsp::Run &run) {
    for (int64_t i = 0; i < 8; i++) {
        submit(run, 1, 2, i, 0);
    }
    run.load_slot(0, 1, 2, {}, 0, 1, 3, 1, 0, 0);
    submit(run, 2, 3, 0, run.slot_u64(1).value());
}

// Of so many tasks of MIX the one with this number fails.
template <int64_t Count, int64_t Failing> void expand_mixed(wsp::Run &run) {
    for (int64_t i = 0; i < Count; i++) {
        submit(run, 3, 2, i, i == Failing ? 13 : 0);
    }
}

TEST(npu_ascend__host_launches_what_is_ready) {
    const Outcome outcome = run_once(3, DRIVEN, nullptr, expand_adds);
    outcome.is(PTOWSP_OK, "");
    assert_int_equal(outcome.result.task_count, 9);
    assert_int_equal(fake.launched, 9);
    assert_true(fake.most_launched <= 2);  // there are two cores
    assert_int_equal(outcome.slot, 107);
    for (int i = 0; i < 12; i++) {
        assert_int_equal(numbers[i], i < 4 ? i : 100 + i);
    }
    assert_int_equal(backwards[3], 107);
    assert_int_equal(backwards[0], 100);
    assert_int_equal(fake.thread_count, 0);  // no AICPU
}

TEST(npu_ascend__host_launches_blocks) {
    Outcome outcome = run_once(4, DRIVEN, nullptr, expand_mixed<8, -1>);
    outcome.is(PTOWSP_OK, "");
    assert_int_equal(fake.launched, 8);
    assert_true(fake.library.find("libwsp_block.so") != std::string::npos);
    assert_int_equal(numbers[11], 111);
    assert_true(fake.fifo_bytes == 2 * 2 * WSP_FIFO_BYTES);
    outcome = run_once(4, DRIVEN, nullptr, expand_mixed<3, 1>);
    assert_int_equal(outcome.status, PTOWSP_KERNEL_FAILED);
    assert_int_equal(outcome.index, 1);
    assert_int_equal(numbers[5], 5);  // nothing is copied back
}

// Each call fails in turn: the error names it, and all that was opened is closed; of starts and launches,
// the function, and of ends, who was awaited and for how long. How many calls a host makes depends on
// which tasks are ready together.
TEST(npu_ascend__tells_which_call_failed_and_who_does_not_end) {
    const struct {
        uint32_t kernel_count, core_count;
        const wsp_kernel *kernels;
        bool has_cores;
        wsp_expand_fn expand;
        std::vector<std::string> starts, waits;
    } cases[] = {{1, 2, NO_KERNEL, false, nullptr, {}, {"the AICPU's loader", "the AICPU"}},
                 {3,
                  2,
                  BOTH,
                  true,
                  nullptr,
                  {"wsp_start_vector", "wsp_start_cube"},
                  {"the AICPU's loader", "the AICPU", "vector cores", "cube cores"}},
                 {2,
                  1,
                  BLOCKS,
                  true,
                  nullptr,
                  {"wsp_start_block"},
                  {"the AICPU's loader", "the AICPU", "blocks"}},
                 {3, 2, DRIVEN, true, expand_adds, {}, {}}};
    for (const auto &it : cases) {
        std::vector<std::string> starts, waits;
        uint32_t failures = 0;
        for (uint32_t i = 1; i < 500; i++) {
            Fake cann = with_cores(i);
            cann.has_cores = it.has_cores;
            const Outcome outcome =
                run_on(cann, it.kernel_count, it.kernels, it.expand, on_cores(it.core_count));
            if (fake.failed.empty()) {
                assert_int_equal(outcome.status, PTOWSP_OK);
                break;
            }
            failures++;
            const bool is_start = fake.failed.compare(0, 10, "wsp_start_") == 0;
            const bool is_launch = fake.failed.compare(0, 11, "wsp_launch_") == 0;
            const std::string call = "device: " + (is_start    ? fake.failed + " returned 507"
                                                   : is_launch ? "wsp_launch_"
                                                               : fake.failed + "(");
            assert_int_equal(outcome.status, PTOWSP_SYSTEM_FAILED);
            if (outcome.text.compare(0, is_start ? std::string::npos : call.size(), call) != 0 ||
                outcome.text.find(" returned 507") == std::string::npos) {
                fail_msg("call %u of %s: %s", static_cast<unsigned>(i), fake.failed.c_str(),
                         outcome.text.c_str());
            }
            if (is_start) {
                starts.push_back(fake.failed);
            } else if (fake.failed == "aclrtSynchronizeStreamWithTimeout" && !it.expand) {
                const size_t end = outcome.text.find(") returned 507");
                waits.push_back(outcome.text.substr(call.size(), end - call.size()));
                assert_true(outcome.text.find(": the end was awaited for at most 7000 ms") !=
                            std::string::npos);
            }
        }
        assert_true(failures > 30);
        assert_true(starts == it.starts);
        assert_true(waits == it.waits);
    }
}

// Kernel 4 is in no library.
TEST(npu_ascend__host_tells_what_it_cannot_launch) {
    wsp_kernel kernels[5];
    std::copy(DRIVEN, DRIVEN + 4, kernels);
    kernels[4] = {"lost", PTOWSP_UNIT_VECTOR, 0, 1, 0, {"x"}};
    const Outcome outcome =
        run_once(5, kernels, nullptr, [](wsp::Run &run) { submit(run, 4, 2, 0, 0); });
    outcome.is(PTOWSP_SYSTEM_FAILED, "device: kernel lost is in no library");
    assert_int_equal(outcome.index, 0);
}

template <int Unit> int32_t fake_start(uint32_t count, void *stream, uint64_t run, uint64_t ffts) {
    static const char *const names[] = {"vector", "cube", "block"};
    assert_ptr_equal(stream, &fake);
    assert_int_equal(there<wsp_device_run>(run)->abi_version, WSP_ABI_VERSION);
    assert_int_equal(ffts, Unit == 2 ? 0xff75 : 0);
    fake.started += std::to_string(count) + " " + names[Unit] + (ffts ? " with flags" : "") + ", ";
    return called((std::string("wsp_start_") + names[Unit]).c_str());
}

}  // namespace

static int fake_mkstemps(char *path, int length) {
    const int file = fake.refuses_file ? -1 : mkstemps(path, length);
    fake.descriptor = path;
    return file;
}

static ssize_t fake_write(int file, const void *bytes, size_t size) {
    return write(file, bytes, fake.refuses_write ? size / 2 : size);
}

static void *fake_dlopen(const char *path, int flags) {
    fake.library = path;
    return fake.has_cores ? &fake : dlopen(path, flags);
}

static void *fake_dlsym(void *library, const char *name) {
    if (library != &fake) {
        return dlsym(library, name);
    }
    const struct {
        const char *name;
        void *function;
    } symbols[] = {{"wsp_launcher_of", reinterpret_cast<void *>(fake_launch_of)},
                   {"wsp_start_vector", reinterpret_cast<void *>(fake_start<0>)},
                   {"wsp_start_cube", reinterpret_cast<void *>(fake_start<1>)},
                   {"wsp_start_block", reinterpret_cast<void *>(fake_start<2>)}};
    for (const auto &symbol : symbols) {
        if (fake.has_symbols && strcmp(symbol.name, name) == 0) {
            return symbol.function;
        }
    }
    assert_false(fake.has_symbols);
    return nullptr;
}
