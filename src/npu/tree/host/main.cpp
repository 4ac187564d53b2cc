// The command line of a tree: binds its arguments, runs the program, writes tensors.
//
//      run --size batch=4 --lengths kv=300,7,2048,64 --tensor Q=4x64@q.bin --tensor O=4x64
//          --write O@o.bin
//
// `run --list` prints the names to bind, `run --help` how. Files are plain elements, in the order
// and the bytes of this machine.
//
// `run --record DIR` keeps the bindings and the results of a run (recording.h); `run --check DIR`
// binds the same, and compares.
//
// Exit codes: 0 done; 1 the run has failed, or a file cannot be written; 2 the arguments are wrong.

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <string>

#include "bindable.h"
#include "binding_text.h"
#include "recording.h"
#include "replay.h"
#include "timeline.h"
#include "wsp_core.h"
#include "wsp_runner.h"
#include "wsp_list.h"

namespace {

const char HELP[] =
    "usage: run [options]\n"
    "\n"
    "Bindings (run --list names all of them):\n"
    "  --size AXIS=N            the size of a dynamic axis\n"
    "  --symbol NAME=N          a number\n"
    "  --slot I=N               a slot, as the run begins; without, 0\n"
    "  --array NAME=1,2,3       an array: its elements, or\n"
    "  --array NAME=@FILE       a file of them\n"
    "  --lengths AXIS=1,2,3     lengths of a ragged axis' rows, as i64; in a file i64 as well, or\n"
    "  --lengths AXIS=i32@FILE  another type: i32, i64, u32, u64\n"
    "  --csr AXIS=@INDPTR,@INDICES  rows of a sparse axis: two files of i64, or\n"
    "  --csr AXIS=i32@INDPTR,@INDICES   of another type\n"
    "  --plan PLAN=@UNITS,@BEGIN,@MERGES,@BEGIN   an attention plan: files of descriptors, and\n"
    "                           where those of each lane begin (u32); without merges the first "
    "two,\n"
    "                           as a MoE plan's; or the units of a chunk plan:\n"
    "  --plan PLAN=@UNITS\n"
    "  --batch PLAN=KV:lanes=4,heads=2  lengths that the AICPU plans: 1,2,3, or @FILE of i32; "
    "with\n"
    "  --batch PLAN=KV:QUERIES:lanes=4,heads=2   query lengths; further fields are query_heads,\n"
    "                           group, window, page_size, tile_rows, piece_min, chunk, grain, "
    "is_causal, mode (1: "
    "invariant)\n"
    "  --tensor NAME=2x64@FILE  a tensor's shape and elements, row by row; without a file zeros;\n"
    "                           the shape may be left out if it is declared: NAME, NAME=@FILE\n"
    "Running:\n"
    "  --aicpu N                threads that schedule; without, 1\n"
    "  --driver aicpu|host      what launches tasks: an AICPU (in its place, threads), or this "
    "program,\n"
    "                           wave by wave; without, aicpu\n"
    "  --cores N                cores of each unit; without, the lanes of the schedule\n"
    "  --ring N                 tasks in flight at most; without, 4096\n"
    "  --transients BYTES       memory of transient tensors at most; without, what they need\n"
    "  --time-limit MS          how long a device's processor is awaited; without, 50000\n"
    "  --model unit|a2a3|a5|910b|950pr\n"
    "                           how cycles of tile kernels are counted; without, unit\n"
    "Checking, in place of bindings:\n"
    "  --check DIR              runs what was recorded (ptowsp_npu_record, --record), and "
    "compares:\n"
    "                           tensors, slots and, with the shim, cycles\n"
    "  --tolerance X            of floats, as a share of a tensor's largest; without, 0 with the\n"
    "                           shim (all bytes), else " WSP_TOLERANCE_TEXT "\n"
    "Output:\n"
    "  --write NAME@FILE        a tensor's elements after the run\n"
    "  --record DIR             this run for --check, of this tree in any build: bindings, model, "
    "cores,\n"
    "                           ring, and what came of it; an older recording there is replaced\n"
    "  --timeline FILE          when its first 1048576 tasks ran, and on which core: JSON for\n"
    "                           ui.perfetto.dev; not on a device\n"
    "  --list                   lists the bindings, and nothing else\n"
    "  --help                   this\n";

// Names by ptowsp_model; a tree has no model without one.
const char *const MODELS[] = {
#define WSP_MODEL(name, text) text,
    PTOWSP_MODELS(WSP_MODEL)
#undef WSP_MODEL
};

// -- the command ----------------------------------------------------------------------------------

class Command final : public BindingText {
  public:
    Command() : BindingText(*wsp_runner_program()) {
    }
    ~Command() override {
        wsp_runner_destroy(runner_);
    }

    // Returns the exit code.
    int run(int argc, char **argv);

  private:
    struct Write {
        std::string tensor, path;
    };

    bool read(const std::string &file, Data *out_data) override {
        return read_file(directory_ + file, out_data);
    }
    bool put(const std::string &what, const ptowsp_binding &binding) override {
        return check(what, wsp_runner_bind(runner_, &binding, 1));
    }
    bool fail(const std::string &what) override {
        return fail_usage(what);
    }
    bool take(const std::string &option, const std::string &value);
    bool take_number(const std::string &option, const std::string &value, uint64_t max,
                     uint32_t *out_number);
    bool take_model(const std::string &value);
    bool bind_tensor(const std::string &name, const std::string &value);
    bool record_inputs();
    bool record_results(const wsp_runner_result &result);
    bool load(const std::string &directory);
    bool check(const std::string &option, ptowsp_status status) {
        return status == PTOWSP_OK ? true
                                   : fail_usage(option + ": " + wsp_runner_error(runner_).text);
    }
    bool write_tensors();

    wsp_runner *runner_ = nullptr;
    wsp_runner_options options_ = wsp_runner_options();
    wsp::List<Data *> tensors_;
    wsp::List<Write> writes_;

    // Of a recorded run, read or written.
    struct Bound {
        std::string option, name, value;
        size_t data_begin, data_end;  // of data_
    };
    bool is_checking_ = false;
    std::string directory_;  // of files: of the recording that is read, or here
    Replay replay_;
    wsp::List<Bound> bound_;
    std::string record_;  // a directory, or empty
    std::string timeline_;
    wsp::List<ptowsp_span> spans_;
    Recorder recorder_;
};

bool Command::bind_tensor(const std::string &name, const std::string &value) {
    const std::string what = "--tensor " + name;
    const wsp_tensor_decl *decl = tensor_named(name);
    if (!decl) {
        return fail_usage(what + ": there is no such tensor");
    }
    if (decl->is_transient) {
        return fail_usage(what + ": it is transient: runs give it memory");
    }
    std::string shape, path;
    const bool has_file = cut(value, '@', &shape, &path);
    wsp::List<std::string> sizes = shape.empty() ? wsp::List<std::string>() : split(shape, 'x');
    ptowsp_buffer buffer = ptowsp_buffer();
    buffer.rank = decl->rank;
    uint64_t bytes = size_of(decl->dtype);
    if (!shape.empty() && sizes.size() != decl->rank) {
        return fail_usage(what + ": " + shape + " has " + std::to_string(sizes.size()) +
                          " dimensions, not " + std::to_string(decl->rank));
    }
    for (uint32_t i = 0; i < decl->rank; i++) {
        uint64_t size = static_cast<uint64_t>(decl->shape[i]);
        if (shape.empty() && decl->shape[i] == PTOWSP_DYNAMIC) {
            return fail_usage(what + ": dimension " + std::to_string(i) +
                              " is not declared, so that a shape is needed");
        }
        if (!shape.empty() && !parse_count(sizes[i], INT64_MAX, &size)) {
            return fail_usage(what + ": \"" + sizes[i] + "\" is no size");
        }
        if (size > 0 && bytes > SIZE_MAX / 2 / size) {
            return fail_usage(what + ": " + shape + " has too many elements");
        }
        buffer.shape[i] = static_cast<int64_t>(size);
        bytes *= size;
    }
    data_.emplace_back();
    Data *data = &data_.back();
    data->name = name;
    if (!(has_file ? read_file(path, data)
                   : data->resize(bytes) || fail_usage(no_memory_for(bytes)))) {
        return false;
    }
    if (data->size != bytes) {
        return fail_usage(what + ": " + path + " has " + std::to_string(data->size) +
                          " bytes; the tensor has " + std::to_string(bytes));
    }
    buffer.data = data->bytes();
    buffer.size = data->size;
    tensors_.push_back(data);
    views_.push_back({name, buffer});
    views_.back().buffer.dtype = static_cast<ptowsp_dtype>(decl->dtype);
    int64_t stride = 1;
    for (uint32_t i = buffer.rank; i > 0; i--) {
        views_.back().buffer.strides[i - 1] = stride;
        stride *= buffer.shape[i - 1];
    }
    return check(what, wsp_runner_bind_tensor(runner_, name.c_str(), &buffer));
}

bool Command::take_number(const std::string &option, const std::string &value, uint64_t max,
                          uint32_t *out_number) {
    uint64_t number = 0;
    if (!parse_count(value, max, &number) || number == 0) {
        return fail_usage(option + ": \"" + value + "\" is no number from 1 to " +
                          std::to_string(max));
    }
    *out_number = static_cast<uint32_t>(number);
    return true;
}

bool Command::take_model(const std::string &value) {
    std::string names;
    for (uint32_t i = 0; i < sizeof MODELS / sizeof MODELS[0]; i++) {
        const std::string name = MODELS[i];
        if (value == name && !name.empty()) {
            options_.model = i;
            return true;
        }
        names += (names.empty() || name.empty() ? "" : ", ") + name;
    }
    return fail_usage("--model: \"" + value + "\" is none of " + names);
}

bool Command::take(const std::string &option, const std::string &value) {
    std::string name, rest;
    const struct {
        const char *option;
        uint64_t max;
        uint32_t *number;
    } numbers[] = {{"--aicpu", 16, &options_.aicpu_count},
                   {"--cores", 72, &options_.core_count},
                   {"--ring", 65536, &options_.ring_size},
                   {"--time-limit", INT32_MAX, &options_.time_limit_ms}};
    for (const auto &known : numbers) {
        if (option == known.option) {
            return take_number(option, value, known.max, known.number);
        }
    }
    if (option == "--check") {
        return !is_checking_ ? load(value) : fail_usage("--check: there is one already");
    } else if (option == "--tolerance") {
        return pwsp_number_read(value.data(), value.size(), false, &replay_.tolerance) &&
                       replay_.tolerance >= 0 && replay_.tolerance < 1
                   ? true
                   : fail_usage("--tolerance: \"" + value + "\" is no number from 0 to 1");
    } else if (option == "--driver") {
        options_.driver = value == "host" ? PTOWSP_DRIVER_HOST : PTOWSP_DRIVER_AICPU;
        return value == "host" || value == "aicpu"
                   ? true
                   : fail_usage("--driver: \"" + value + "\" is neither aicpu nor host");
    } else if (option == "--transients") {
        uint64_t bytes = 0;
        return (parse_count(value, INT64_MAX, &bytes) && bytes > 0)
                   ? check(option, wsp_runner_bind_transients(runner_, nullptr, bytes))
                   : fail_usage("--transients: \"" + value + "\" is no number of bytes");
    } else if (option == "--model") {
        return take_model(value);
    } else if (option == "--record") {
        record_ = value;
        return !value.empty() ? true : fail_usage("--record: is to be a directory");
    } else if (option == "--timeline") {
        timeline_ = value;
        spans_.assign(size_t(1) << 20, ptowsp_span());
        options_.spans = spans_.data();
        options_.span_capacity = spans_.size();
        return !value.empty() ? true : fail_usage("--timeline: is to be a file");
    } else if (option == "--write") {
        if (!cut(value, '@', &name, &rest) || name.empty() || rest.empty()) {
            return fail_usage("--write: \"" + value + "\" is to be NAME@FILE");
        }
        writes_.push_back({name, rest});
        return true;
    }
    bool is_known = false;
    for (const char *known : {"--size", "--symbol", "--slot", "--array", "--lengths", "--csr",
                              "--plan", "--batch", "--tensor"}) {
        is_known = is_known || option == known;
    }
    if (!is_known) {
        return fail_usage("there is no option " + option + "; see --help");
    }
    const bool has_value = cut(value, '=', &name, &rest);
    if (name.empty() || (!has_value && option != "--tensor")) {
        return fail_usage(option + ": \"" + value + "\" is to be NAME=VALUE");
    }
    const size_t data_begin = data_.size();
    if (!(option == "--tensor" ? bind_tensor(name, rest) : bind(option, name, rest))) {
        return false;
    }
    if (option != "--tensor") {
        bound_.push_back({option, name, rest, data_begin, data_.size()});
    }
    return true;
}

// -- recorded runs --------------------------------------------------------------------------------

// Before the run: options that its outputs depend on, bindings, and memory as it is.
bool Command::record_inputs() {
    if (!recorder_.open(record_, program_.hash)) {
        return false;
    }
    recorder_.line("--model", MODELS[options_.model]);
    if (options_.core_count) {
        recorder_.line("--cores", std::to_string(options_.core_count));
    }
    if (options_.ring_size) {
        recorder_.line("--ring", std::to_string(options_.ring_size));
    }
    if constexpr (WSP_TOLERANCE > 0) {
        recorder_.line("--tolerance", WSP_TOLERANCE_TEXT);  // wherever it is checked
    }
    for (const Bound &bound : bound_) {
        const bool is_batch = bound.option == "--batch",
                   has_data = bound.data_end > bound.data_begin;
        std::string value, type, rest;
        for (size_t i = bound.data_begin; i < bound.data_end; i++) {
            value += i == bound.data_begin ? "" : is_batch ? ":" : ",";
            value += recorder_.file('d', data_[i].bytes(), data_[i].size);
        }
        if (is_batch) {
            value += ":" + split(bound.value, ':').back();
        } else if (has_data && cut(bound.value, '@', &type, &rest)) {
            value = type + value;
        }
        recorder_.line(bound.option, bound.name + "=" + (has_data ? value : bound.value));
    }
    for (size_t i = 0; i < views_.size(); i++) {
        const ptowsp_buffer &buffer = views_[i].buffer;
        std::string shape, strides;
        for (uint32_t k = 0; k < buffer.rank; k++) {
            shape += (k ? "x" : "") + std::to_string(buffer.shape[k]);
            strides += (k ? "x" : "/") + std::to_string(buffer.strides[k]);
        }
        const std::string number = std::to_string(i + 1);
        recorder_.line("--memory", number + "=" + recorder_.file('m', buffer.data, buffer.size));
        recorder_.line("--view", views_[i].name + "=" + shape + strides + "@" + number + "+0");
    }
    return recorder_.is_good();
}

// After the run: its outputs. Only the shim has cycles to compare.
bool Command::record_results(const wsp_runner_result &result) {
    for (uint32_t i = 1; i < program_.tensor_count; i++) {
        const wsp_tensor_decl &tensor = program_.tensors[i];
        const View *last = nullptr;
        for (const View &view : views_) {
            last = tensor.name && view.name == tensor.name ? &view : last;
        }
        if (last && tensor.is_used && tensor.is_written) {
            recorder_.line("--expect",
                           last->name + "=" +
                               recorder_.file('o', last->buffer.data, last->buffer.size));
        }
    }
    for (uint32_t i = 0; i < program_.slot_count; i++) {
        recorder_.line("--expect-slot",
                       std::to_string(i) + "=" + std::to_string(wsp_runner_slot(runner_, i)));
    }
    if constexpr (WSP_TOLERANCE == 0) {
        recorder_.line("--expect-cycles", std::to_string(result.makespan_cycles));
    }
    return recorder_.close();
}

// Files of the recording are in its directory.
bool Command::load(const std::string &directory) {
    wsp::List<RecordedLine> lines;
    if (!read_recording(directory, program_.hash, &lines)) {
        return false;
    }
    is_checking_ = true;
    directory_ = directory + "/";
    bool is_good = true;
    for (const RecordedLine &line : lines) {
        const bool is_in_memory = line.option == "--memory" || line.option == "--view";
        std::string name, rest;
        cut(line.value, '=', &name, &rest);
        is_good = is_good && (line.option.compare(0, 8, "--expect") == 0
                                  ? replay_.take(directory_, line.option, line.value)
                              : is_in_memory ? bind(line.option, name, rest)
                                             : take(line.option, line.value));
    }
    directory_.clear();
    return is_good;
}

bool Command::write_tensors() {
    bool is_good = true;
    for (const Write &write : writes_) {
        for (const Data *data : tensors_) {
            if (data->name == write.tensor) {
                is_good = write_file(write.path, *data) && is_good;
            }
        }
    }
    return is_good;
}

// -- the run --------------------------------------------------------------------------------------

int Command::run(int argc, char **argv) {
    if (wsp_runner_create(&runner_) != PTOWSP_OK) {
        fail_usage("out of memory");
        return 1;
    }
    for (int i = 1; i < argc; i++) {
        const std::string option = argv[i];
        if (option == "--help") {
            fputs(HELP, stdout);
            return 0;
        } else if (option == "--list") {
            list(program_);
            return 0;
        } else if (i + 1 == argc) {
            fail_usage(option + ": has no value, or is no option; see --help");
            return 2;
        } else if (!take(option, argv[++i])) {
            return 2;
        }
    }
    for (const Write &write : writes_) {
        bool is_bound = false;
        for (const Data *data : tensors_) {
            is_bound = is_bound || data->name == write.tensor;
        }
        if (!is_bound) {
            fail_usage("--write: no tensor " + write.tensor + " is bound");
            return 2;
        }
    }
    if (!record_.empty() && is_checking_) {
        fail_usage("--record: what --check runs is recorded");
        return 2;
    }
    if (!record_.empty() && !record_inputs()) {
        return 1;
    }
    wsp_runner_result result = wsp_runner_result();
    if (wsp_runner_run(runner_, &options_, &result) != PTOWSP_OK) {
        fprintf(stderr, "%s\n", wsp_runner_error(runner_).text);
        return 1;
    }
    printf("makespan %" PRIu64 " cycles\ntasks %" PRIu64 "\nin flight at most %" PRIu64 "\n",
           result.makespan_cycles, result.task_count, result.in_flight_max);
    spans_.resize(result.task_count < spans_.size() ? result.task_count : spans_.size());
    if (!timeline_.empty() && !write_timeline(timeline_, program_, spans_)) {
        fprintf(stderr, "run: %s cannot be written\n", timeline_.c_str());
        return 1;
    }
    return (!is_checking_ || replay_.compare(views_, runner_, result)) &&
                   (record_.empty() || record_results(result)) && write_tensors()
               ? 0
               : 1;
}

}  // namespace

int main(int argc, char **argv) {
    return Command().run(argc, argv);
}
