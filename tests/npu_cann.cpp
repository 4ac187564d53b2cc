// A CANN to link with, for npu_tree_test.sh: device memory is memory of this machine that the host
// reaches by copies alone; streams are empty, as launches are calls. A call that should not be is
// said, and ends the process. With CANN_FAIL_AT=N the N-th call fails.

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include <acl/acl.h>
#include <runtime/rt.h>

namespace {

std::mutex mutex;
std::map<char *, size_t> memory;
std::atomic<int> calls, open_count;

[[noreturn]] void wrong(const char *what) {
    std::fprintf(stderr, "cann: %s\n", what);
    std::_Exit(2);
}

int called() {
    static const char *text = std::getenv("CANN_FAIL_AT");
    return ++calls == (text ? std::atoi(text) : -1) ? 507 : 0;
}

bool is_there(const void *at, size_t size) {
    std::lock_guard<std::mutex> guard(mutex);
    const char *begin = static_cast<const char *>(at);
    for (const auto &block : memory) {
        if (block.first <= begin && begin + size <= block.first + block.second) {
            return true;
        }
    }
    return false;
}

// What is open when the process ends has leaked.
struct AtEnd {
    ~AtEnd() {
        if (open_count != 0 || !memory.empty()) {
            wrong("something is still open");
        }
    }
} at_end;

int opened(int by) {
    const int error = called();
    open_count += error && by > 0 ? 0 : by;
    return error;
}

}  // namespace

extern "C" {

aclError aclInit(const char *) {
    return opened(1);
}
aclError aclFinalize(void) {
    return opened(-1);
}
aclError aclrtSetDevice(int32_t) {
    return called();
}
aclError aclrtResetDevice(int32_t) {
    return called();
}
aclError aclrtSetOpExecuteTimeOutV2(uint64_t, uint64_t *) {
    return called();
}
aclError aclrtCreateStream(aclrtStream *stream) {
    *stream = &memory;
    const int error = opened(1);
    if (error) {
        *stream = nullptr;
    }
    return error;
}
aclError aclrtDestroyStream(aclrtStream) {
    return opened(-1);
}
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t) {
    if (!stream) {
        wrong("no stream");
    }
    return called();
}
aclError aclrtMalloc(void **device, size_t size, aclrtMemMallocPolicy) {
    if (int error = called()) {
        return error;
    }
    *device = std::aligned_alloc(512, (size + 511) / 512 * 512);
    std::memset(*device, 0xa5, size);
    std::lock_guard<std::mutex> guard(mutex);
    memory[static_cast<char *>(*device)] = size;
    return 0;
}
aclError aclrtFree(void *device) {
    std::lock_guard<std::mutex> guard(mutex);
    if (memory.erase(static_cast<char *>(device)) != 1) {
        wrong("what is freed is not there");
    }
    std::free(device);
    return called();
}
aclError aclrtMemcpy(void *to, size_t to_size, const void *from, size_t count,
                     aclrtMemcpyKind kind) {
    const bool is_to = kind == ACL_MEMCPY_HOST_TO_DEVICE;
    if (int error = called()) {
        return error;
    }
    if (count > to_size || !is_there(is_to ? to : from, count) ||
        is_there(is_to ? from : to, count)) {
        wrong("a copy between other places");
    }
    std::memcpy(to, from, count);
    return 0;
}
rtError_t rtGetC2cCtrlAddr(uint64_t *address, uint32_t *length) {
    *address = 1;
    *length = 64;
    return called();
}

}  // extern "C"
