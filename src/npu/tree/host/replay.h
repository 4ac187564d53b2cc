// The results of a recorded run, compared with the results of running it again.

#ifndef WSP_REPLAY_H
#define WSP_REPLAY_H

#include <inttypes.h>
#include <stdio.h>

#include <deque>
#include <string>

#include "binding_text.h"
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

class Replay {
  public:
    // Takes a line with an expectation. False with an error.
    bool take(const std::string &directory, const std::string &option, const std::string &value);
    // `views`: the tensors of the run.
    bool compare(const wsp::List<View> &views, const wsp_runner *runner,
                 const wsp_runner_result &result) const;

    double tolerance = WSP_TOLERANCE;

  private:
    struct Expected {
        std::string option, name;
        const Data *data;
        uint64_t number;
    };

    bool compare_tensor(const wsp::List<View> &views, const std::string &name,
                        const Data &wanted) const;

    std::deque<Data> data_;  // which does not move them
    wsp::List<Expected> expected_;
};

bool Replay::take(const std::string &directory, const std::string &option,
                  const std::string &value) {
    std::string name, rest;
    cut(value, '=', &name, &rest);
    if (option == "--expect") {
        data_.emplace_back();
        expected_.push_back({option, name, &data_.back(), 0});
        return read_file(directory + rest.substr(rest[0] == '@'), &data_.back());
    }
    expected_.push_back({option, name, nullptr, 0});
    return parse_number(option == "--expect-slot" ? rest : name, &expected_.back().number)
               ? true
               : fail_usage("--check: " + option + " has no number");
}

bool Replay::compare_tensor(const wsp::List<View> &views, const std::string &name,
                            const Data &wanted) const {
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

bool Replay::compare(const wsp::List<View> &views, const wsp_runner *runner,
                     const wsp_runner_result &result) const {
    bool is_good = true;
    for (const Expected &expected : expected_) {
        uint64_t got = result.makespan_cycles, slot = 0;
        if (expected.data) {
            is_good = compare_tensor(views, expected.name, *expected.data) && is_good;
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
