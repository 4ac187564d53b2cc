// A device's memory, streams and libraries: see wsp_cann.h.

#ifdef WSP_ASCEND

#include "wsp_cann.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


#include <runtime/rt.h>

namespace wsp {

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

bool Device::fail(ptowsp_status status, const char *format, ...) {
    char text[WSP_DEVICE_TEXT_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    std::lock_guard<std::mutex> guard(mutex_);
    if (*status_ == PTOWSP_OK) {
        *status_ = bindings_->fail(status, PTOWSP_NO_INDEX, "%s", text);
    }
    return false;
}

bool Device::open(int32_t device, size_t stream_count) {
    // The device ends operators a little before the host ceases to wait.
    const uint64_t limit_us = static_cast<uint64_t>(time_limit_ms_) * 900;
    uint64_t actual = 0;
    is_acl_open_ = WSP_CALL(aclInit(nullptr));
    is_device_open_ = is_acl_open_ && WSP_CALL(aclrtSetDevice(device));
    device_ = device;
    bool is_good = is_device_open_ && WSP_CALL(aclrtSetOpExecuteTimeOutV2(limit_us, &actual));
    streams_.assign(stream_count, nullptr);
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

launch_fn Device::load(const char *unit) {
    const std::string path = library_directory() + "libwsp_" + unit + ".so";
    const std::string symbol = std::string("wsp_launch_") + unit;
    void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fail(PTOWSP_SYSTEM_FAILED, "device: %s", dlerror());
        return nullptr;
    }
    libraries_.push_back(library);
    launch_fn launch = nullptr;
    void *found = dlsym(library, symbol.c_str());
    memcpy(&launch, &found, sizeof launch);
    if (!launch) {
        fail(PTOWSP_SYSTEM_FAILED, "device: %s has no %s", path.c_str(), symbol.c_str());
    }
    return launch;
}

bool Device::find_flags(uint64_t *out_address) {
    uint32_t length = 0;  // (unsure) of what is at the address
    return WSP_CALL(rtGetC2cCtrlAddr(out_address, &length));
}

bool Device::await(size_t stream, const char *what) {
    const int32_t code =
        aclrtSynchronizeStreamWithTimeout(streams_[stream], static_cast<int32_t>(time_limit_ms_));
    return code == 0 ||
           fail(PTOWSP_SYSTEM_FAILED,
                "device: aclrtSynchronizeStreamWithTimeout(%s) returned %d: the end was awaited "
                "for at most %u ms",
                what, code, static_cast<unsigned>(time_limit_ms_));
}

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
    add_tensors();
}

void Bound::add_tensors() {
    for (uint32_t i = 1; i < program_.tensor_count; i++) {
        const pwsp_bound_tensor &tensor = host_table<pwsp_bound_tensor>(host_.tensors)[i];
        if (tensor.is_bound) {
            const int64_t size = tensor.element_size;
            copies_.add(tensor.base + static_cast<uint64_t>(tensor.low * size),
                        static_cast<uint64_t>((tensor.high - tensor.low + 1) * size),
                        program_.tensors[i].is_written != 0);
        }
    }
}

std::vector<pwsp_bound_tensor> Bound::tensors_there() const {
    const pwsp_bound_tensor *table = host_table<pwsp_bound_tensor>(host_.tensors);
    std::vector<pwsp_bound_tensor> tensors(table, table + program_.tensor_count);
    for (pwsp_bound_tensor &tensor : tensors) {
        tensor.data = static_cast<char *>(at_device(tensor.data));
        tensor.base = address_of(tensor.data);
    }
    return tensors;
}

bool Bound::copy_tensors_to(std::vector<pwsp_bound_tensor> *out_tensors) {
    add_tensors();
    const bool is_good = copies_.copy_to();
    *out_tensors = tensors_there();
    return is_good;
}

bool Bound::copy_to(uint64_t *out_bindings) {
    auto of_host = [](auto *table, uint32_t count) {
        using T =
            typename std::remove_const<typename std::remove_pointer<decltype(table)>::type>::type;
        return std::vector<T>(table, table + count);
    };
    add_data();
    if (!copies_.copy_to()) {
        return false;
    }
    std::vector<pwsp_array> arrays =
        of_host(host_table<pwsp_array>(host_.arrays), program_.array_count);
    std::vector<pwsp_bound_csr> csrs =
        of_host(host_table<pwsp_bound_csr>(host_.csrs), program_.axis_count);
    const std::vector<pwsp_bound_tensor> tensors = tensors_there();
    for (pwsp_array &array : arrays) {
        array.data = at_device(array.data);
    }
    for (pwsp_bound_csr &csr : csrs) {
        csr.indptr.data = at_device(csr.indptr.data);
        csr.indices.data = at_device(csr.indices.data);
    }
    std::vector<pwsp_plan_batch> batches =
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
    return is_good && put(std::vector<wsp_bindings>(1, bindings), out_bindings);
}

bool Bound::copy_from() {
    void *slots = reinterpret_cast<void *>(static_cast<uintptr_t>(host_.slots));
    return copies_.copy_from() &&
           (!slots_ || device_.copy_from(slots, host_table<char>(slots_),
                                         program_.slot_count * sizeof(uint64_t)));
}

}  // namespace wsp

#endif
