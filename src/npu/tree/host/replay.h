// A recorded run, run again: its tensors are views of recorded memory, and its results are compared
// with the recorded ones.

#ifndef WSP_REPLAY_H
#define WSP_REPLAY_H

#include <inttypes.h>
#include <stdio.h>

#include <deque>
#include <string>

#include "elements.h"
#include "recording.h"
#include "wsp_core.h"
#include "wsp_runner.h"
#include "wsp_list.h"

namespace {

// The shim gives the bytes of the library; PTO-ISA rounds by itself in a few places, and sums in
// another order: sums of f32 exponentials differ by up to 3e-6 of the largest.
#if defined(WSP_ASCEND) || defined(WSP_PTO_ISA)
constexpr double WSP_TOLERANCE = 5e-6;
#else
constexpr double WSP_TOLERANCE = 0;
#endif
#define WSP_TOLERANCE_TEXT "5e-6"  // where it is not 0

// A tensor as it was bound; of one name the last counts.
struct View {
    std::string name;
    ptowsp_buffer buffer;
};

class Replay {
  public:
    // A line that is not an option of the command: a file of memory or of outputs, a view, a number.
    bool take(wsp_runner *runner, const std::string &option, const std::string &value,
              bool *out_is_option);
    bool compare(const wsp_runner *runner, const wsp_runner_result &result) const;

    wsp::List<View> views;
    double tolerance = WSP_TOLERANCE;

  private:
    struct Expected {
        std::string option, name;
        const Data *data;
        uint64_t number;
    };

    bool bind_view(wsp_runner *runner, const std::string &name, const std::string &value);
    bool compare_tensor(const std::string &name, const Data &wanted) const;

    std::deque<Data> data_;  // which does not move them
    wsp::List<Data *> memories_;
    wsp::List<Expected> expected_;
};

// A tensor in memory of the recording: 64x80/1x64@1+0, shape, strides, memory, bytes.
bool Replay::bind_view(wsp_runner *runner, const std::string &name, const std::string &value) {
    const wsp_program &program = *wsp_runner_program();
    std::string sizes, place, shape, strides, memory, offset;
    uint64_t number = 0, at = 0, size = 0, stride = 0;
    ptowsp_buffer buffer = ptowsp_buffer();
    for (uint32_t i = 1; i < program.tensor_count; i++) {
        if (program.tensors[i].name && name == program.tensors[i].name) {
            buffer.dtype = static_cast<ptowsp_dtype>(program.tensors[i].dtype);
        }
    }
    bool is_good = cut(value, '@', &sizes, &place) && cut(sizes, '/', &shape, &strides) &&
                   cut(place, '+', &memory, &offset) && parse_count(offset, INT64_MAX / 2, &at) &&
                   parse_count(memory, memories_.size(), &number) && number > 0 && buffer.dtype;
    const wsp::List<std::string> all = split(shape, 'x'), steps = split(strides, 'x');
    is_good = is_good && all.size() == steps.size() && all.size() <= PTOWSP_TENSOR_RANK_MAX;
    const int64_t most = is_good ? static_cast<int64_t>(memories_[number - 1]->size) : 0;
    int64_t low = 0, high = 1;  // in elements
    bool is_empty = false, is_long = false;
    for (size_t i = 0; is_good && i < all.size(); i++) {
        is_good = parse_count(all[i], UINT32_MAX, &size) && parse_number(steps[i], &stride);
        const int64_t count = static_cast<int64_t>(size), step = static_cast<int64_t>(stride);
        is_good = is_good && step > -INT64_C(0x80000000) && step < INT64_C(0x80000000);
        buffer.shape[i] = count;
        buffer.strides[i] = step;
        // No longer than the memory, or sums and products of them could overflow.
        const bool is_short =
            is_good && (step == 0 || count <= most / (step < 0 ? -step : step) + 1);
        (step < 0 ? low : high) += is_short && count ? (count - 1) * step : 0;
        is_long = is_long || !is_short;
        is_empty = is_empty || count == 0;
    }
    low = is_empty ? 0 : low;
    high = is_empty ? 0 : high;
    const int64_t width = size_of(buffer.dtype), offset_bytes = static_cast<int64_t>(at);
    is_good = is_good && (is_empty || !is_long) && offset_bytes + low * width >= 0 &&
              offset_bytes + high * width <= static_cast<int64_t>(memories_[number - 1]->size);
    if (!is_good) {
        return fail_usage("--check: the view " + name + "=" + value + " is outside of its memory");
    }
    buffer.rank = static_cast<uint32_t>(all.size());
    buffer.data = static_cast<char *>(memories_[number - 1]->bytes()) + at;
    views.push_back({name, buffer});
    return wsp_runner_bind_tensor(runner, name.c_str(), &buffer) == PTOWSP_OK
               ? true
               : fail_usage("--view " + name + ": " + wsp_runner_error(runner).text);
}

bool Replay::take(wsp_runner *runner, const std::string &option, const std::string &value,
                  bool *out_is_option) {
    std::string name, rest;
    *out_is_option = false;
    cut(value, '=', &name, &rest);
    if (option == "--view") {
        return bind_view(runner, name, rest);
    } else if (option == "--memory" || option == "--expect") {
        data_.emplace_back();
        if (!read_file(rest.substr(rest[0] == '@'), &data_.back())) {
            return false;
        } else if (option == "--memory") {
            memories_.push_back(&data_.back());
        } else {
            expected_.push_back({option, name, &data_.back(), 0});
        }
        return true;
    } else if (option == "--expect-slot" || option == "--expect-cycles") {
        const bool is_slot = option == "--expect-slot";
        expected_.push_back({option, name, nullptr, 0});
        return parse_number(is_slot ? rest : name, &expected_.back().number)
                   ? true
                   : fail_usage("--check: " + option + " has no number");
    }
    *out_is_option = true;
    return true;
}

bool Replay::compare_tensor(const std::string &name, const Data &wanted) const {
    for (size_t last = views.size(); last > 0; last--) {
        const View &view = views[last - 1];
        const ptowsp_buffer &buffer = view.buffer;
        const size_t width = size_of(buffer.dtype);
        Difference difference(buffer.dtype, tolerance);
        if (view.name != name) {
            continue;
        }
        const char *at = reinterpret_cast<const char *>(wanted.words);
        const uint64_t count = wanted.size / width;
        uint64_t has = 1;
        for (uint32_t k = 0; k < buffer.rank; k++) {
            has *= static_cast<uint64_t>(buffer.shape[k]);
        }
        if (has * width != wanted.size) {
            return fail_usage("--check: tensor " + name + " has " + std::to_string(has) +
                              " elements, and not the bytes of what is expected");
        }
        for (uint64_t i = 0; i < count; i++) {
            difference.largest(at + i * width);
        }
        for (uint64_t i = 0; i < count; i++) {
            int64_t offset = 0;
            uint64_t left = i;
            for (uint32_t k = buffer.rank; k > 0; k--) {
                const uint64_t size = static_cast<uint64_t>(buffer.shape[k - 1]);
                offset += static_cast<int64_t>(left % size) * buffer.strides[k - 1];
                left /= size;
            }
            difference.compare(static_cast<const char *>(buffer.data) +
                                   offset * static_cast<int64_t>(width),
                               at + i * width, width);
        }
        printf("%-12s %" PRIu64 " elements, %" PRIu64 " wrong", name.c_str(), count,
               difference.wrong_count);
        if (difference.wrong_count) {
            printf(", the first is %" PRIu64, difference.wrong);
            if (tolerance > 0 && difference.worst > tolerance) {
                printf(", the largest error is %s of the largest: see --tolerance",
                       pwsp_number_format(difference.worst, 'e', 1).text);
            }
        } else if (difference.worst > 0) {
            printf(", the largest error is %s of the largest",
                   pwsp_number_format(difference.worst, 'e', 1).text);
        }
        printf("\n");
        return difference.wrong_count == 0;
    }
    return fail_usage("--check: there is no tensor " + name);
}

bool Replay::compare(const wsp_runner *runner, const wsp_runner_result &result) const {
    bool is_good = true;
    for (const Expected &expected : expected_) {
        uint64_t got = result.makespan_cycles, slot = 0;
        if (expected.data) {
            is_good = compare_tensor(expected.name, *expected.data) && is_good;
            continue;
        } else if (expected.option == "--expect-slot") {
            parse_number(expected.name, &slot);
            got = wsp_runner_slot(runner, static_cast<uint32_t>(slot));
        } else if constexpr (WSP_TOLERANCE > 0) {
            continue;  // PTO-ISA counts no cycles
        }
        if (got != expected.number) {
            printf("%s is %" PRIu64 ", not %" PRIu64 "\n",
                   expected.option == "--expect-cycles" ? "makespan"
                                                        : ("slot " + expected.name).c_str(),
                   got, expected.number);
            is_good = false;
        }
    }
    printf("check: %s\n", is_good ? "good" : "WRONG");
    return is_good;
}

}  // namespace

#endif  // WSP_REPLAY_H
