// A recorded run, as the library (ptowsp_npu_record) and run --record write it: a directory whose
// file `recording` has options of the command line and expectations, a line each, then the sizes
// and hashes of the other files, and a hash of itself. It is taken as a whole, or refused before
// anything is bound.

#ifndef WSP_RECORDING_H
#define WSP_RECORDING_H

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <string>

#include "elements.h"
#include "wsp_abi.h"
#include "wsp_list.h"

namespace {

bool fail_usage(const std::string &what) {
    fprintf(stderr, "run: %s\n", what.c_str());
    return false;
}

// -- files ----------------------------------------------------------------------------------------

// Appends a file's bytes. False with errno.
bool read_text(const std::string &path, std::string *out) {
    FILE *file = fopen(path.c_str(), "rb");
    char buffer[65536];
    for (size_t count; file && (count = fread(buffer, 1, sizeof buffer, file)) > 0;) {
        out->append(buffer, count);
    }
    const bool is_good = file && !ferror(file);
    const int error = errno;
    if (file) {
        fclose(file);
    }
    errno = error;
    return is_good;
}

bool read_file(const std::string &path, Data *out_data) {
    std::string bytes;
    if (!read_text(path, &bytes)) {
        return fail_usage(path + ": " + strerror(errno));
    }
    if (!out_data->resize(bytes.size())) {
        return fail_usage(no_memory_for(bytes.size()));
    }
    memcpy(out_data->words, bytes.data(), bytes.size());
    return true;
}

bool write_file(const std::string &path, const Data &data) {
    FILE *file = fopen(path.c_str(), "wb");
    bool is_good = file && fwrite(data.words, 1, data.size, file) == data.size;
    is_good = file && fclose(file) == 0 && is_good;
    return is_good ? true : fail_usage(path + ": " + strerror(errno));
}

// -- reading --------------------------------------------------------------------------------------

struct RecordedLine {
    std::string option, value;
};

// ptowsp_hash in hexadecimal digits.
std::string hash_of(const char *bytes, size_t size) {
    const uint64_t hash = ptowsp_hash(PTOWSP_HASH_START, bytes, size);
    char text[17];
    snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
    return text;
}

// "file m1.bin 20480 8a3c...": is it there, and unchanged?
bool check_recorded_file(const std::string &directory, const std::string &line) {
    const size_t first = line.find(' '), second = line.find(' ', first + 1);
    const std::string name = line.substr(0, first);
    std::string bytes;
    if (second == std::string::npos || name.find('/') != std::string::npos ||
        !read_text(directory + "/" + name, &bytes)) {
        return fail_usage("--check: " + directory + " lacks its file " + name);
    }
    return line.substr(first + 1) ==
                   std::to_string(bytes.size()) + " " + hash_of(bytes.data(), bytes.size())
               ? true
               : fail_usage("--check: " + directory + "/" + name +
                            " is not as it was recorded: it is cut off or damaged");
}

// The options of a recording of a program with this hash.
bool read_recording(const std::string &directory, const std::string &program,
                    wsp::List<RecordedLine> *out_lines) {
    std::string text;
    if (!read_text(directory + "/recording", &text)) {
        return fail_usage("--check: there is no " + directory + "/recording");
    }
    wsp::List<RecordedLine> lines;
    std::string end;
    for (size_t at = 0, next; at < text.size() && end.empty(); at = next + 1) {
        next = text.find('\n', at);
        next = next == std::string::npos ? text.size() : next;
        const std::string line = text.substr(at, next - at);
        const size_t blank = line.find(' ');
        const std::string rest = blank == std::string::npos ? "" : line.substr(blank + 1);
        lines.push_back({line.substr(0, blank), rest});
        if (lines.back().option == "end") {
            end = rest == hash_of(text.data(), at) ? rest : "-";
        }
    }
    if (lines.size() < 3 || lines[0].option != "ptowsp" || lines[0].value != "recording 1") {
        return fail_usage("--check: " + directory + "/recording is no recorded run");
    } else if (end.size() != 16) {
        return fail_usage("--check: " + directory + "/recording is cut off or damaged");
    } else if (lines[1].value != program) {
        return fail_usage("--check: " + directory + " is of another program, or version: " +
                          lines[1].value + ", where this is " + program);
    }
    for (size_t i = 2; i + 1 < lines.size(); i++) {
        if (lines[i].option == "file") {
            if (!check_recorded_file(directory, lines[i].value)) {
                return false;
            }
        } else {
            out_lines->push_back(lines[i]);
        }
    }
    return true;
}

// -- writing --------------------------------------------------------------------------------------

// Writes a recording: files as they are added, their names last. So an incomplete directory is not
// taken for a recording.
class Recorder {
  public:
    // A new or empty directory, or an older recording, which is replaced.
    bool open(const std::string &directory, const std::string &program) {
        directory_ = directory;
        text_ = "ptowsp recording 1\nprogram " + program + "\n";
        bool is_empty = true, is_recording = false;
        if (mkdir(directory.c_str(), 0777) != 0) {
            DIR *entries = errno == EEXIST ? opendir(directory.c_str()) : nullptr;
            if (!entries) {
                return fail(directory);
            }
            while (const dirent *entry = readdir(entries)) {
                const std::string name = entry->d_name;
                is_recording = is_recording || name == "recording";
                is_empty = is_empty && (name == "." || name == "..");
            }
            closedir(entries);
        }
        return is_empty || is_recording
                   ? write("recording", "", 0)  // none until it is whole
                   : fail_usage("--record: " + directory + " has files, and is no recorded run");
    }

    // Adds a file m1.bin, m2.bin ... with these bytes. Returns "@m1.bin"; failures are kept.
    std::string file(char kind, const void *bytes, size_t size) {
        uint32_t &count = counts_[kind == 'd' ? 0 : kind == 'm' ? 1 : 2];
        const std::string name = kind + std::to_string(++count) + ".bin";
        const char *at = size ? static_cast<const char *>(bytes) : "";
        is_good_ = is_good_ && write(name, at, size);
        files_ += "file " + name + " " + std::to_string(size) + " " + hash_of(at, size) + "\n";
        return "@" + name;
    }

    void line(const std::string &option, const std::string &value) {
        if (value.find_first_of("\n\r") != std::string::npos) {
            is_good_ = fail_usage("--record: a line cannot have the name " + value);
        }
        text_ += option + " " + value + "\n";
    }

    bool is_good() const {
        return is_good_;
    }

    bool close() {
        text_ += files_;
        text_ += "end " + hash_of(text_.data(), text_.size()) + "\n";
        return is_good_ && write("recording", text_.data(), text_.size());
    }

  private:
    bool fail(const std::string &path) {
        return fail_usage("--record: " + path + ": " + strerror(errno));
    }

    bool write(const std::string &name, const char *bytes, size_t size) {
        const std::string path = directory_ + "/" + name;
        FILE *file = fopen(path.c_str(), "wb");
        bool is_written = file && fwrite(bytes, 1, size, file) == size;
        is_written = file && fclose(file) == 0 && is_written;
        return is_written ? true : fail(path);
    }

    std::string directory_, text_, files_;
    uint32_t counts_[3] = {0, 0, 0};
    bool is_good_ = true;
};

// -- comparing ------------------------------------------------------------------------------------

bool is_float(uint32_t dtype) {
    return dtype == PTOWSP_F16 || dtype == PTOWSP_BF16 || dtype == PTOWSP_F32 ||
           dtype == PTOWSP_F64;
}

double float_at(const char *at, uint32_t dtype) {
    uint16_t half = 0;
    float single = 0;
    double number = 0;
    if (dtype == PTOWSP_F64) {
        memcpy(&number, at, 8);
        return number;
    } else if (dtype == PTOWSP_F32) {
        memcpy(&single, at, 4);
        return static_cast<double>(single);
    }
    memcpy(&half, at, 2);
    const int exponent_bits = dtype == PTOWSP_F16 ? 5 : 8, bits = 15 - exponent_bits;
    const int exponent = half >> bits & ((1 << exponent_bits) - 1),
              mantissa = half & ((1 << bits) - 1);
    const int bias = (1 << (exponent_bits - 1)) - 1;
    number = exponent == 2 * bias + 1 ? (mantissa ? NAN : INFINITY)
                                      : ldexp(exponent ? mantissa + (1 << bits) : mantissa,
                                              (exponent ? exponent : 1) - bias - bits);
    return half >> 15 ? -number : number;
}

// Elements that differ by more than a share of the largest one; 16-bit floats by more than a unit of
// their last place, too. With tolerance 0, bytes.
class Difference {
  public:
    Difference(uint32_t dtype, double tolerance) : dtype_(dtype), tolerance_(tolerance) {
    }

    void largest(const char *wanted) {
        const double size = is_float(dtype_) ? fabs(float_at(wanted, dtype_)) : 0;
        largest_ = size > largest_ && size <= 1.7e308 ? size : largest_;
    }

    void compare(const char *got, const char *wanted, size_t size) {
        count++;
        if (memcmp(got, wanted, size) == 0) {
            return;
        }
        if (tolerance_ > 0 && is_float(dtype_)) {
            const double a = float_at(got, dtype_), b = float_at(wanted, dtype_);
            const double place = dtype_ == PTOWSP_F16    ? 1.0 / 1024
                                 : dtype_ == PTOWSP_BF16 ? 1.0 / 128
                                                         : 0;
            if ((isnan(a) && isnan(b)) || a == b) {
                return;
            }
            const double error = fabs(a - b);
            worst = error > worst * largest_ && largest_ > 0 && error <= 1.7e308 ? error / largest_
                                                                                 : worst;
            if (error <= tolerance_ * largest_ + place * fabs(b)) {
                return;
            }
        }
        wrong = wrong == count_none ? count - 1 : wrong;
        wrong_count++;
    }

    static constexpr uint64_t count_none = UINT64_MAX;
    uint64_t count = 0, wrong_count = 0, wrong = count_none;  // the first
    double worst = 0;                                         // error, as a share of the largest

  private:
    uint32_t dtype_;
    double tolerance_, largest_ = 0;
};

}  // namespace

#endif
