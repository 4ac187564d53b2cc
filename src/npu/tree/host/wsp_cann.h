// Memory, streams and copies of a device, with CANN: what both ways to run there share.
//
//      wsp_ascend.cpp   the device runs the program: its AICPU expands it, and gives tasks to cores
//      wsp_driven.cpp   this machine does (WSP_DRIVEN), and launches a kernel for each task
//
// THIS HAS NEVER RUN. It was written without a device, from public documents. The order of calls
// and their names and arguments come from them; a compiler has checked it against declarations of
// them, and tests run it on functions that stand in for CANN's. Expect to correct it, first where
// it says (unsure).
//
// Each call's result is checked; an error reports the call and its return value.

#ifndef WSP_CANN_H
#define WSP_CANN_H

#ifdef WSP_ASCEND

#include "wsp_device.h"
#include "wsp_run.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include <acl/acl.h>

namespace wsp {

template <typename T> const T *host_table(uint64_t address) {
    return reinterpret_cast<const T *>(static_cast<uintptr_t>(address));
}

inline uint64_t address_of(const void *pointer) {
    return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(pointer));
}

// The directory of the device's programs, with a slash: $WSP_LIBRARIES, or that of this program.
std::string library_directory();

// Starts kernels of a unit's library (aicore/wsp_core_main.cpp).
typedef int32_t (*launch_fn)(uint32_t block_count, void *stream, uint64_t argument, uint64_t ffts);

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

    bool open(int32_t device, size_t stream_count);

    void *allocate(size_t size);
    bool copy_to(void *device, const void *host, size_t size);
    bool copy_from(void *host, const void *device, size_t size);

    // The function that launches kernels of "vector", "cube" or "block"; null with an error.
    launch_fn load(const char *unit);
    // The address of the flags between the cores of a block.
    bool find_flags(uint64_t *out_address);
    // The end of what a stream runs; the error says whose.
    bool await(size_t stream, const char *what);

    // Keeps the first error. Returns false.
    bool fail(ptowsp_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

    // Did a call of CANN succeed?
    bool check(int32_t code, const char *call) {
        return code == 0 || fail(PTOWSP_SYSTEM_FAILED, "device: %s returned %d", call, code);
    }

    aclrtStream stream(size_t i) const {
        return streams_[i];
    }
    int32_t number() const {
        return device_;
    }
    uint32_t time_limit_ms() const {
        return time_limit_ms_;
    }

  private:
    static constexpr uint32_t TIME_LIMIT_MS = 50 * 1000;

    Bindings *bindings_;
    ptowsp_status *status_;
    std::mutex mutex_;  // of the first error
    uint32_t time_limit_ms_;
    bool is_acl_open_ = false, is_device_open_ = false;
    int32_t device_ = 0;
    std::vector<aclrtStream> streams_;
    std::vector<void *> memory_, libraries_;
};

// In a member of Device, or of a class derived from it; or on one.
#define WSP_CALL(call)            check(static_cast<int32_t>(call), #call)
#define WSP_CALL_ON(device, call) (device).check(static_cast<int32_t>(call), #call)

// -- bound data -----------------------------------------------------------------------------------

// Bytes of the host that go to the device. Overlapping tensors are copied as one, so that they
// overlap there as well.
struct Block {
    uint64_t begin, end;
    bool is_written;
    void *device;
};

class Copies {
  public:
    explicit Copies(Device &device) : device_(device) {
    }

    void add(uint64_t begin, uint64_t size, bool is_written) {
        if (size > 0) {
            blocks_.push_back({begin, begin + size, is_written, nullptr});
        }
    }

    bool copy_to() {
        merge();
        for (Block &block : blocks_) {
            block.device = device_.allocate(block.end - block.begin);
            if (!block.device || !device_.copy_to(block.device, host_table<char>(block.begin),
                                                  block.end - block.begin)) {
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
        std::vector<Block> merged;
        for (const Block &block : blocks_) {
            if (!merged.empty() && block.begin < merged.back().end) {
                merged.back().end = std::max(merged.back().end, block.end);
                merged.back().is_written = merged.back().is_written || block.is_written;
            } else {
                merged.push_back(block);
            }
        }
        blocks_ = merged;
    }

    Device &device_;
    std::vector<Block> blocks_;
};

// The tables of bindings, first on the host, then on the device.
class Bound {
  public:
    Bound(Device &device, const wsp_program &program, const wsp_bindings &bindings)
        : device_(device), program_(program), host_(bindings), copies_(device) {
    }

    // All that is bound, and the tables of it; their address there.
    bool copy_to(uint64_t *out_bindings);
    // Tensors alone, for a table of this machine with the device's addresses.
    bool copy_tensors_to(std::vector<pwsp_bound_tensor> *out_tensors);
    // What tasks have written; slots, where they were copied.
    bool copy_from();

  private:
    void add_array(const pwsp_array &array) {
        if (array.is_bound) {
            copies_.add(address_of(array.data), pwsp_array_bytes(&array), false);
        }
    }
    template <typename T> void add_list(const T *list, uint64_t count) {
        if (list) {
            copies_.add(address_of(list), count * sizeof(T), false);
        }
    }
    void add_data();
    void add_tensors();
    std::vector<pwsp_bound_tensor> tensors_there() const;
    void *at_device(const void *host) const {
        return reinterpret_cast<void *>(
            static_cast<uintptr_t>(copies_.device_of(address_of(host))));
    }
    template <typename T> const T *there(const T *list) const {
        return static_cast<const T *>(at_device(list));
    }
    template <typename T> bool put(const std::vector<T> &table, uint64_t *out_address) {
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

}  // namespace wsp

#endif

#endif
