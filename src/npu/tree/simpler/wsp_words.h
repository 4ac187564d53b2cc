// Bindings as words: a test passes them to an orchestration in one array, beside the memory that they
// name. wsp_recording.py writes them, from a recorded run.
//
//      "ptowspw1", the first 8 characters of the program's hash, then lists of words, 0 last:
//
//      1 axis size                                     2 symbol bits         3 slot bits
//      4 array is_lengths dtype arg count              5 axis dtype indptr rows indices entries
//      6 axis units count begin lanes merges count begin      lanes 0: work alone
//      7 tensor arg bytes rank shape... strides...
//
// axis, symbol, array and tensor are indices of the program's tables; arg, indptr, units ... are
// arguments of the orchestration, or -1 for a missing one.

#ifndef WSP_WORDS_H
#define WSP_WORDS_H

#include <string.h>

#include "wsp_bindings.h"

namespace wsp {

// Arguments of an orchestration.
class WordArgs {
  public:
    virtual ~WordArgs() = default;
    virtual uint64_t count() const = 0;
    virtual char *data(uint64_t i) const = 0;
    virtual uint64_t size(uint64_t i) const = 0;
};

class Words {
  public:
    Words(const wsp_program &program, const WordArgs &args, Bindings *bindings)
        : args_(args), program_(program), bindings_(*bindings),
          words_(args.count() ? reinterpret_cast<const int64_t *>(args.data(0)) : nullptr),
          count_(args.count() ? args.size(0) / sizeof(int64_t) : 0) {
    }

    bool bind() {
        if (count_ < 2 || memcmp(words_, "ptowspw1", 8) != 0) {
            return fail("argument 0 has no bindings");
        }
        if (memcmp(words_ + 1, program_.hash, 8) != 0) {
            return fail("the bindings are those of another program, or version");
        }
        at_ = 2;
        int64_t kind = next();
        while (kind != 0 && is_good_ && take(kind)) {
            kind = next();
        }
        return is_good_;
    }

  private:
    bool fail(const char *text) {
        is_good_ = false;
        bindings_.fail(PTOWSP_INVALID_PARAMS, at_, "bind: %s", text);
        return false;
    }

    int64_t next() {
        if (at_ >= count_) {
            fail("the bindings are cut off");
            return 0;
        }
        return words_[at_++];
    }
    uint32_t index() {
        return static_cast<uint32_t>(next());
    }
    uint64_t number() {
        return static_cast<uint64_t>(next());
    }

    // An argument with so many bytes or more.
    const void *data(int64_t arg, uint64_t bytes) {
        if (arg < 0 && bytes == 0) {
            return nullptr;
        }
        if (arg < 1 || static_cast<uint64_t>(arg) >= args_.count() ||
            args_.size(static_cast<uint64_t>(arg)) < bytes) {
            fail("an argument is not there, or is too short");
            return nullptr;
        }
        return args_.data(static_cast<uint64_t>(arg));
    }
    template <typename T> const T *elements(int64_t arg, uint64_t count) {
        return static_cast<const T *>(data(arg, count * sizeof(T)));
    }
    const void *elements(int64_t arg, uint64_t count, ptowsp_dtype dtype) {
        return data(arg, count * ptowsp_dtype_size(dtype));
    }

    bool check(ptowsp_status status) {
        is_good_ = is_good_ && status == PTOWSP_OK;
        return is_good_;
    }

    bool take(int64_t kind) {
        const uint32_t which = index();
        switch (kind) {
        case 1: return check(bindings_.bind_size(which, next()));
        case 2: return check(bindings_.bind_symbol(which, number()));
        case 3: return check(bindings_.bind_slot(which, number()));
        case 4: return take_array(which);
        case 5: return take_csr(which);
        case 6: return take_plan(which);
        case 7: return take_tensor(which);
        default: return fail("a kind of binding is unknown");
        }
    }

    bool take_array(uint32_t array) {
        const bool is_lengths = next() != 0;
        const ptowsp_dtype dtype = static_cast<ptowsp_dtype>(next());
        const int64_t arg = next();
        const uint64_t count = number();
        const void *elements = this->elements(arg, count, dtype);
        return is_good_ && check(bindings_.bind_array(array, is_lengths, dtype, elements, count));
    }

    bool take_csr(uint32_t axis) {
        ptowsp_csr csr = ptowsp_csr();
        csr.dtype = static_cast<ptowsp_dtype>(next());
        const int64_t indptr = next();
        csr.row_count = number();
        csr.indptr = elements(indptr, csr.row_count + 1, csr.dtype);
        const int64_t indices = next();
        csr.entry_count = number();
        csr.indices = elements(indices, csr.entry_count, csr.dtype);
        return is_good_ && check(bindings_.bind_csr(axis, &csr));
    }

    bool take_plan(uint32_t axis) {
        ptowsp_attention_plan plan = ptowsp_attention_plan();
        const int64_t units = next();
        plan.unit_count = index();
        plan.units = const_cast<ptowsp_work *>(elements<ptowsp_work>(units, plan.unit_count));
        const int64_t begin = next();
        plan.lane_count = index();
        const uint64_t begin_count = plan.lane_count ? plan.lane_count + uint64_t(1) : 0;
        plan.unit_begin = const_cast<uint32_t *>(elements<uint32_t>(begin, begin_count));
        const int64_t merges = next();
        plan.merge_count = index();
        plan.merges = const_cast<ptowsp_work *>(elements<ptowsp_work>(merges, plan.merge_count));
        const int64_t merge_begin = next();
        plan.merge_begin = const_cast<uint32_t *>(
            elements<uint32_t>(merge_begin, merge_begin < 0 ? 0 : begin_count));
        return is_good_ &&
               check(plan.lane_count ? bindings_.bind_plan(axis, &plan)
                                     : bindings_.bind_work(axis, plan.units, plan.unit_count));
    }

    bool take_tensor(uint32_t tensor) {
        ptowsp_buffer buffer = ptowsp_buffer();
        const int64_t arg = next();
        const uint64_t bytes = number();
        buffer.rank = index();
        if (buffer.rank > PTOWSP_TENSOR_RANK_MAX) {
            return fail("a tensor has too many dimensions");
        }
        for (uint32_t i = 0; i < buffer.rank; i++) {
            buffer.shape[i] = next();
        }
        for (uint32_t i = 0; i < buffer.rank; i++) {
            buffer.strides[i] = next();
        }
        bool is_ahead = true;  // of its first element nothing is used
        for (uint32_t i = 0; i < buffer.rank; i++) {
            is_ahead = is_ahead && buffer.strides[i] >= 0;
        }
        const void *memory = data(arg, bytes);
        if (!is_good_ || tensor >= program_.tensor_count) {
            return fail("a tensor is unknown, or its memory");
        }
        buffer.dtype = static_cast<ptowsp_dtype>(program_.tensors[tensor].dtype);
        buffer.data = static_cast<char *>(const_cast<void *>(memory)) + bytes;
        buffer.size = is_ahead ? args_.size(static_cast<uint64_t>(arg)) - bytes : 0;
        return check(bindings_.bind_tensor(tensor, &buffer));
    }

    const WordArgs &args_;
    const wsp_program &program_;
    Bindings &bindings_;
    const int64_t *words_;
    uint64_t count_, at_ = 0;
    bool is_good_ = true;
};

}  // namespace wsp

#endif
