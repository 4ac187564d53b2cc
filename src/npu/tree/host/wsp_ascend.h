// CANN's part of the host: an open device, its streams and libraries, and data that is copied there. See
// wsp_ascend.cpp.

#ifndef WSP_ASCEND_H
#define WSP_ASCEND_H

#ifdef WSP_ASCEND

#include "wsp_device.h"
#include "wsp_run.h"
#include "wsp_list.h"

#include <algorithm>
#include <mutex>
#include <string>

#include <acl/acl.h>
#include <runtime/rt.h>

namespace wsp {

constexpr uint32_t TIME_LIMIT_MS = 50 * 1000;

template <typename T> const T *host_table(uint64_t address) {
    return reinterpret_cast<const T *>(static_cast<uintptr_t>(address));
}

inline uint64_t address_of(const void *pointer) {
    return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(pointer));
}

#define WSP_CALL(call) check(static_cast<int32_t>(call), #call)

// -- open resources -------------------------------------------------------------------------------

class Device {
  public:
    // *status gets the status of the first error, even of one while closing.
    Device(Bindings *bindings, uint32_t time_limit_ms, ptowsp_status *status)
        : bindings_(bindings), status_(status),
          time_limit_ms_(time_limit_ms ? time_limit_ms : TIME_LIMIT_MS) {
    }
    ~Device();
    Device(const Device &) = delete;
    Device &operator=(const Device &) = delete;

    bool open(int32_t device);
    bool start(const wsp_device_run &run, uint64_t run_there);
    bool wait();

    void *allocate(size_t size);
    bool copy_to(void *device, const void *host, size_t size);
    bool copy_from(void *host, const void *device, size_t size);

    // The AICPU ceases to wait for a core before the device ends the AICPU's own operator, so that
    // the core is named.
    uint32_t core_limit_ms() const {
        return static_cast<uint32_t>(static_cast<uint64_t>(time_limit_ms_) * 8 / 10) + 1;
    }
    // A thread's first call.
    bool enter() {
        return WSP_CALL(aclrtSetDevice(device_));
    }
    // A symbol of a library of this tree; null with an error.
    void *find(const std::string &library, const std::string &symbol);
    bool find_ffts();
    uint64_t ffts() const {
        return ffts_;
    }
    aclrtStream stream(uint32_t unit) const {
        return streams_[unit == PTOWSP_UNIT_VECTOR ? 1 : 2];
    }
    bool await(aclrtStream stream, const char *what);
    const std::string &text() const {
        return text_;
    }
    // Keeps the first error, of any thread. Returns false.
    bool fail(ptowsp_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

    // Did a call of CANN succeed?
    bool check(int32_t code, const char *call) {
        return code == 0 || fail(PTOWSP_SYSTEM_FAILED, "device: %s returned %d", call, code);
    }

  private:
    bool start_cores(const char *unit, uint32_t count, aclrtStream stream, uint64_t run);
    bool load_aicpu();
    bool start_aicpu(uint32_t thread_count, uint64_t run);

    Bindings *bindings_;
    std::mutex mutex_;  // protects the error
    ptowsp_status *status_;
    std::string text_;
    uint32_t time_limit_ms_;
    bool is_acl_open_ = false, is_device_open_ = false;
    int32_t device_ = 0;
    aclrtStream streams_[3] = {nullptr, nullptr, nullptr};  // AICPU, vector, cube
    bool has_started_[3] = {false, false, false};
    List<void *> memory_, libraries_;
    uint64_t aicpu_argument_ = 0;  // lives until the AICPU has read it
    uint64_t ffts_ = 0;            // the flags between the cores of a block; 0: without blocks
};

// -- bound data -----------------------------------------------------------------------------------

// Bytes of the host that go to the device. Overlapping tensors are copied as one, so that they
// overlap there as well.
struct Block {
    uint64_t begin, end;
    bool is_read, is_written;  // copied to the device; from it
    void *device;
};

class Copies {
  public:
    explicit Copies(Device &device) : device_(device) {
    }

    void add(uint64_t begin, uint64_t size, bool is_written, bool is_read = true) {
        if (size > 0) {
            blocks_.push_back({begin, begin + size, is_read, is_written, nullptr});
        }
    }

    void add_tensors(const wsp_program &program, const wsp_bindings &bindings) {
        for (uint32_t i = 1; i < program.tensor_count; i++) {
            const pwsp_bound_tensor &tensor = host_table<pwsp_bound_tensor>(bindings.tensors)[i];
            if (tensor.is_bound) {
                const int64_t size = tensor.element_size;
                add(tensor.base + static_cast<uint64_t>(tensor.low * size),
                    static_cast<uint64_t>((tensor.high - tensor.low + 1) * size),
                    program.tensors[i].is_written && !program.tensors[i].is_transient,
                    !program.tensors[i].is_transient);
            }
        }
    }

    bool copy_to() {
        merge();
        for (Block &block : blocks_) {
            block.device = device_.allocate(block.end - block.begin);
            if (!block.device ||
                (block.is_read && !device_.copy_to(block.device, host_table<char>(block.begin),
                                                   block.end - block.begin))) {
                return false;
            }
        }
        return true;
    }

    bool copy_from() const {
        bool is_good = true;
        for (const Block &block : blocks_) {
            void *host = reinterpret_cast<void *>(static_cast<uintptr_t>(block.begin));
            is_good = is_good && (!block.is_written ||
                                  device_.copy_from(host, block.device, block.end - block.begin));
        }
        return is_good;
    }

    // The device address of host data; 0 for data that is not there.
    uint64_t device_of(uint64_t host) const {
        for (const Block &block : blocks_) {
            if (block.begin <= host && host < block.end) {
                return address_of(block.device) + (host - block.begin);
            }
        }
        return 0;
    }

  private:
    void merge() {
        std::sort(blocks_.begin(), blocks_.end(),
                  [](const Block &a, const Block &b) { return a.begin < b.begin; });
        List<Block> merged;
        for (const Block &block : blocks_) {
            if (!merged.empty() && block.begin < merged.back().end) {
                merged.back().end = std::max(merged.back().end, block.end);
                merged.back().is_read = merged.back().is_read || block.is_read;
                merged.back().is_written = merged.back().is_written || block.is_written;
            } else {
                merged.push_back(block);
            }
        }
        blocks_ = merged;
    }

    Device &device_;
    List<Block> blocks_;
};

// A run whose driver is the host: wsp_ascend_launch.cpp.
ptowsp_status run_driven(const wsp_program &program, Bindings *bindings,
                         const wsp_runner_options &options, wsp_runner_result *out_result);

}  // namespace wsp

#endif

#endif
