// The command line of emitted trees (src/npu/tree/host/main.cpp), compiled in, on a runner that notes what is
// bound. What it does is in commands.txt and recordings.txt, which have cases of lines:
//
//      file NAME TYPE NUMBER ...      a file of elements (3*8: eight times 3) in the case's own directory, %
//      text NAME TEXT                 a file of a text; \n ends a line in it
//      directory, rmdir, unlink, remove (with all that is in it), gone NAME; link NAME TO
//      recording [of PROGRAM] [LINE / LINE]   begins a recording in the directory kept;
//      keeps NAME TYPE NUMBER ...     its next file, with the line that it has there
//      notes ARGUMENTS => BINDINGS    the command succeeds, and this is noted, or nothing;
//      binds ARGUMENTS => BINDINGS    the same, and a run without options
//      noted BINDINGS                 what the last command has noted
//      agrees, prints ARGUMENTS => TEXT    it succeeds with this in its output; with this as all of it
//      differs, fails, refuses ARGUMENTS => TEXT   it ends with 1 and this in its output; with 1 and this error,
//                                     or any; with 2 and this error, or any, and has not run
//      left NAME TEXT                 the file now; what is behind ~, where the lowest byte comes first
//      tree refuses, is stuck, has no memory, has no slots, writes TEXT (into y), works
//      elements have no memory        but the runner has
//      spans KERNEL LANE BEGIN END / ...   of tasks, as the runner has them
//      for VALUE / VALUE              the lines of its block with $ in place of each
//      let NAME TEXT                  $NAME in what follows
//      needs FILE                     without it the case ends here
//
// A block is lines that are indented further; other words have it as lines of a text, or (not behind left and
// prints) as more of their own line.

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <fstream>
#include <map>
#include <string>
#include <vector>

static bool elements_have_no_memory;
static void *command_calloc(size_t count, size_t size) {
    return elements_have_no_memory ? nullptr : calloc(count, size);
}

#define main   command_main
#define calloc command_calloc
#include "src/npu/tree/host/main.cpp"
#undef main
#undef calloc

#include "test.h"

// -- a runner -------------------------------------------------------------------------------------

struct wsp_runner {
    void *y;
};

namespace {

const wsp_axis_decl AXES[] = {{nullptr, 0, 0, 0, 0},
                              {"batch", PTOWSP_AXIS_DYNAMIC, 0, 0, 1},
                              {"adj", PTOWSP_AXIS_SPARSE, 0, 0, 1},
                              {"kv", PTOWSP_AXIS_RAGGED, 1, 0, 1},
                              {"parts", PTOWSP_AXIS_PLAN, 5, 0, 1},
                              {"parts", PTOWSP_AXIS_PLAN_LANES, 0, 0, 1},
                              {nullptr, PTOWSP_AXIS_DYNAMIC, 0, 0, 1},
                              {"idle", PTOWSP_AXIS_DYNAMIC, 0, 0, 0},
                              {nullptr, PTOWSP_AXIS_SPARSE, 0, 0, 1},
                              {"idle", PTOWSP_AXIS_SPARSE, 0, 0, 0},
                              {nullptr, PTOWSP_AXIS_PLAN, 0, 0, 1},
                              {"cut", PTOWSP_AXIS_PLAN, 0, 0, 0},
                              {"cut", PTOWSP_AXIS_PLAN_MERGES, 0, 0, 1},
                              {"cut", PTOWSP_AXIS_PLAN_LANES, 0, 0, 1},
                              {"four", PTOWSP_AXIS_DENSE, 0, 4, 1}};
const wsp_array_decl ARRAYS[] = {{nullptr, 0, 0, 0},
                                 {"kv", 0, 1, 1},
                                 {"flags", PTOWSP_BOOL, 0, 1},
                                 {"small", PTOWSP_I8, 0, 1},
                                 {"wide", PTOWSP_U64, 0, 1},
                                 {"parts.flags", PTOWSP_U8, 0, 1},
                                 {"parts.lane", PTOWSP_U32, 0, 0},
                                 {"half", PTOWSP_I16, 0, 1},
                                 {"i32", PTOWSP_I32, 0, 1},
                                 {"i64", PTOWSP_I64, 0, 1},
                                 {"u8", PTOWSP_U8, 0, 1},
                                 {"u16", PTOWSP_U16, 0, 1},
                                 {"u32", PTOWSP_U32, 0, 1},
                                 {nullptr, PTOWSP_U8, 0, 1},
                                 {"idle", PTOWSP_U8, 0, 0}};
const wsp_field_decl FIELDS[] = {{5, 4, PTOWSP_PLAN_FLAGS}, {6, 4, PTOWSP_PLAN_LANE}};
const wsp_symbol_decl SYMBOLS[] = {
    {nullptr, 0}, {"seed", 1}, {"latency", 1}, {nullptr, 1}, {"idle", 0}};
const wsp_tensor_decl TENSORS[] = {{nullptr, 0, 0, {}, 0, 0, 0, 0},
                                   {"x", PTOWSP_F32, 2, {PTOWSP_DYNAMIC, 4}, 1, 0, 0, 0},
                                   {"y", PTOWSP_F16, 1, {3}, 1, 1, 0, 0},
                                   {"between", PTOWSP_F16, 1, {3}, 1, 1, 0, 1},
                                   {"doubles", PTOWSP_F64, 2, {1, PTOWSP_DYNAMIC}, 1, 0, 0, 0},
                                   {"brains", PTOWSP_BF16, 1, {PTOWSP_DYNAMIC}, 1, 0, 0, 0},
                                   {"ints", PTOWSP_I32, 1, {PTOWSP_DYNAMIC}, 1, 0, 0, 0},
                                   {"one", PTOWSP_F32, 0, {}, 1, 0, 0, 0},
                                   {nullptr, PTOWSP_F32, 1, {3}, 1, 0, 0, 0},
                                   {"idle", PTOWSP_F32, 1, {3}, 0, 0, 0, 0}};
const wsp_kernel KERNELS[] = {{nullptr, 0, 0, 0, 0, {nullptr}},
                              {"load", PTOWSP_UNIT_VECTOR, 0, 0, 0, {nullptr}}};

struct wsp_program make_program() {
    wsp_program program = wsp_program();
    program.name = "p";
    program.hash = "0123456789abcdef";
    program.axis_count = COUNT_OF(AXES);
    program.array_count = COUNT_OF(ARRAYS);
    program.symbol_count = COUNT_OF(SYMBOLS);
    program.tensor_count = COUNT_OF(TENSORS);
    program.field_count = COUNT_OF(FIELDS);
    program.axes = AXES;
    program.arrays = ARRAYS;
    program.symbols = SYMBOLS;
    program.tensors = TENSORS;
    program.fields = FIELDS;
    program.kernels = KERNELS;
    program.latency_symbol = 2;
    return program;
}

// What the runner does, and has been told.
struct Tree {
    wsp_program program = make_program();
    bool refuses = false, has_no_memory = false;
    ptowsp_status status = PTOWSP_OK;
    std::string written = "abcdef";  // into y
    std::vector<ptowsp_span> spans;
    std::string noted;
};

Tree tree;

template <typename... Args> ptowsp_status note(const char *format, Args... args) {
    char text[300];
    snprintf(text, sizeof text, format, args...);
    tree.noted += std::string(tree.noted.empty() ? "" : "; ") + text;
    return tree.refuses ? PTOWSP_INVALID_PARAMS : PTOWSP_OK;
}

template <typename T> std::string numbers(const void *data, uint64_t count) {
    std::string text;
    for (uint64_t i = 0; i < count; i++) {
        text += (i ? " " : "") + std::to_string(static_cast<const T *>(data)[i]);
    }
    return text;
}

std::string listed(ptowsp_dtype dtype, const void *data, uint64_t count) {
    std::string (*const list)(const void *, uint64_t) = dtype == PTOWSP_I8    ? numbers<int8_t>
                                                        : dtype == PTOWSP_I16 ? numbers<int16_t>
                                                        : dtype == PTOWSP_U16 ? numbers<uint16_t>
                                                        : dtype == PTOWSP_I32 ? numbers<int32_t>
                                                        : dtype == PTOWSP_U32 ? numbers<uint32_t>
                                                        : dtype == PTOWSP_I64 ? numbers<int64_t>
                                                        : dtype == PTOWSP_U64 ? numbers<uint64_t>
                                                                              : numbers<uint8_t>;
    return std::string(name_of(dtype)) + "[" + list(data, count) + "]";
}

std::string listed_or_none(ptowsp_dtype dtype, const void *data, uint64_t count) {
    return data ? listed(dtype, data, count) : "none";
}

}  // namespace

extern "C" {

ptowsp_status wsp_runner_create(wsp_runner **out_runner) {
    *out_runner = tree.has_no_memory ? nullptr : new wsp_runner();
    return tree.has_no_memory ? PTOWSP_OUT_OF_MEMORY : PTOWSP_OK;
}
void wsp_runner_destroy(wsp_runner *runner) {
    delete runner;
}
const wsp_program *wsp_runner_program(void) {
    return &tree.program;
}
ptowsp_status wsp_runner_bind(wsp_runner *runner, const ptowsp_binding *b, uint64_t) {
    const long long value = static_cast<long long>(b->value);
    const ptowsp_csr *csr = static_cast<const ptowsp_csr *>(b->data);
    const ptowsp_attention_plan *plan = static_cast<const ptowsp_attention_plan *>(b->data);
    const ptowsp_attention_batch *batch = static_cast<const ptowsp_attention_batch *>(b->data);
    const ptowsp_attention_config *config = b->config;
    const ptowsp_work *work = static_cast<const ptowsp_work *>(b->data);
    const ptowsp_buffer *buffer = static_cast<const ptowsp_buffer *>(b->data);
    switch (b->kind) {
    case PTOWSP_BIND_SIZE: return note("size %s %lld", b->name, value);
    case PTOWSP_BIND_SYMBOL:
        return note("symbol %s %llu", b->name, static_cast<unsigned long long>(b->value));
    case PTOWSP_BIND_ARRAY:
    case PTOWSP_BIND_LENGTHS:
        return note("%s %s %s", b->kind == PTOWSP_BIND_ARRAY ? "array" : "lengths", b->name,
                    listed(b->dtype, b->data, b->count).c_str());
    case PTOWSP_BIND_CSR:
        return note("csr %s %s %s", b->name,
                    listed(csr->dtype, csr->indptr, csr->row_count + 1).c_str(),
                    listed(csr->dtype, csr->indices, csr->entry_count).c_str());
    case PTOWSP_BIND_PLAN:
        return note("plan %s %u of %u, %u of %u, %u to %u %s %s", b->name, plan->unit_count,
                    plan->unit_capacity, plan->merge_count, plan->merge_capacity,
                    plan->units[0].params[3], plan->merges ? plan->merges[0].params[3] : 0,
                    listed(PTOWSP_U32, plan->unit_begin, plan->lane_count + 1).c_str(),
                    listed_or_none(PTOWSP_U32, plan->merge_begin, plan->lane_count + 1).c_str());
    case PTOWSP_BIND_BATCH:
        return note(
            "batch %s %s %s, %u lanes, %u heads of %u, window %u, pages %u, tiles %u, pieces %u, "
            "chunk %u, grain %u%s%s%s",
            b->name, listed(PTOWSP_I32, batch->kv_lengths, batch->sequence_count).c_str(),
            listed_or_none(PTOWSP_I32, batch->query_lengths, batch->sequence_count).c_str(),
            config->lane_count, config->kv_head_count, config->group, config->window,
            config->page_size, config->tile_rows, config->piece_min, config->chunk, config->grain,
            config->is_causal ? " causal" : "",
            config->mode == PTOWSP_ATTENTION_INVARIANT ? " invariant" : "",
            b->capacity ? " with a capacity" : "");
    case PTOWSP_BIND_WORK:
        return note("work %s %u %u", b->name, static_cast<unsigned>(b->count),
                    b->count ? work[b->count - 1].params[3] : 0);
    case PTOWSP_BIND_TENSOR:
        runner->y = b->name[0] == 'y' ? buffer->data : runner->y;
        return note("tensor %s %u %lldx%lld %u bytes %d", b->name, buffer->rank,
                    static_cast<long long>(buffer->shape[0]),
                    static_cast<long long>(buffer->shape[1]), static_cast<unsigned>(buffer->size),
                    static_cast<int>(static_cast<const char *>(buffer->data)[0]));
    case PTOWSP_BIND_SLOT: return note("slot %u %lld", b->slot, value);
    default:
        return note("transients %d %lld", b->block != nullptr, static_cast<long long>(b->count));
    }
}
ptowsp_status wsp_runner_run(wsp_runner *runner, const wsp_runner_options *options,
                             wsp_runner_result *out_result) {
    note("run %u %u %u %u %u", options->aicpu_count, options->core_count, options->ring_size,
         options->model, options->time_limit_ms);
    if (runner->y) {
        memcpy(runner->y, tree.written.data(), 6);
    }
    for (size_t i = 0; options->spans && i < tree.spans.size(); i++) {
        options->spans[i] = tree.spans[i];
    }
    out_result->task_count = tree.spans.size();
    out_result->makespan_cycles = 12345;
    return tree.status;
}
uint64_t wsp_runner_slot(const wsp_runner *, uint32_t slot) {
    return slot * slot;
}
ptowsp_error wsp_runner_error(const wsp_runner *) {
    ptowsp_error error = ptowsp_error();
    error.text = "what it says";
    return error;
}

}  // extern "C"

namespace {

// -- texts ----------------------------------------------------------------------------------------

typedef std::vector<std::string> Texts;

std::string replaced(std::string text, const std::string &from, const std::string &to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
        text.replace(at, from.size(), to);
    }
    return text;
}

Texts split_at(const std::string &text, const std::string &separator) {
    Texts parts;
    for (size_t at = 0, next = 0; next != std::string::npos; at = next + separator.size()) {
        next = text.find(separator, at);
        parts.push_back(text.substr(at, next - at));
    }
    return parts;
}

// A word that is quoted may be empty, or have blanks.
std::string take_word(std::string *text) {
    const size_t begin = text->find_first_not_of(' ');
    const bool is_quoted = begin != std::string::npos && (*text)[begin] == '"';
    const size_t first = begin == std::string::npos ? text->size() : begin + is_quoted;
    const size_t end = text->find(is_quoted ? '"' : ' ', first);
    const std::string word = text->substr(first, end - first);
    const size_t rest = end == std::string::npos ? end : text->find_first_not_of(' ', end + 1);
    *text = rest == std::string::npos ? "" : text->substr(rest);
    return word;
}

Texts words_of(std::string text) {
    Texts words;
    while (!text.empty()) {
        words.push_back(take_word(&text));
    }
    return words;
}

bool is_little_endian() {
    const uint16_t one = 1;
    return *reinterpret_cast<const uint8_t *>(&one) == 1;
}

// Of work an element is eight numbers.
std::string bytes_of(const std::string &type, const Texts &given) {
    static const size_t work[] = {4, 1, 1, 2, 4, 4, 4, 4};
    std::string bytes;
    size_t i = 0;
    for (const std::string &word : given) {
        const size_t times = word.find('*');
        const std::string number = word.substr(0, times);
        const uint64_t bits = strtoull(number.c_str(), nullptr, 0);
        char *end;
        const double f64 = strtod(number.c_str(), &end);
        if (*end || number.empty() ||
            !strstr(" i8 u8 i16 u16 i32 u32 f32 i64 u64 f64 work ", (" " + type + " ").c_str())) {
            fail_msg("%s is no number of %s", word.c_str(), type.c_str());
        }
        const float f32 = static_cast<float>(f64);
        for (uint64_t n = times < word.size() ? std::stoull(word.substr(times + 1)) : 1; n > 0;
             n--) {
            const size_t width = type == "work" ? work[i++ % 8] : std::stoull(type.substr(1)) / 8;
            const char *at = type == "f64"   ? reinterpret_cast<const char *>(&f64)
                             : type == "f32" ? reinterpret_cast<const char *>(&f32)
                                             : reinterpret_cast<const char *>(&bits) +
                                                   (is_little_endian() ? 0 : 8 - width);
            bytes.append(at, width);
        }
    }
    return bytes;
}

// -- cases ----------------------------------------------------------------------------------------

struct Line {
    int number;
    std::string text;
};

size_t indent_of(const std::string &text) {
    return text.find_first_not_of(' ');
}

// A file of cases as it is played.
class Play {
  public:
    explicit Play(const char *path) : path_(path) {
        std::ifstream file(path);
        std::vector<Line> lines;
        std::string line;
        bool has_case = false;
        for (int number = 1; std::getline(file, line); number++) {
            line = line.substr(0, line.find("  #"));
            line.erase(line.find_last_not_of(' ') + 1);
            if (line.compare(0, 5, "case ") == 0) {
                play_case(lines, has_case);
                lines.clear();
                has_case = true;
            } else if (!line.empty() && line[indent_of(line)] != '#') {
                lines.push_back({number, line});
            }
        }
        play_case(lines, has_case);
        assert_true(has_case);
    }

  private:
    void complain(const std::string &what) const {
        fail_msg("%s:%d: %s", path_, number_, what.c_str());
    }

    void expect(const std::string &what, const std::string &got, const std::string &wanted) {
        has_claim_ = true;
        if (got != wanted) {
            complain(what + ": " + got + "\nand not: " + wanted);
        }
    }

    // Lines before the first case are a mistake, and cases without one.
    void play_case(const std::vector<Line> &lines, bool is_case) {
        char path[] = "/tmp/wsp_command_XXXXXX";
        if (lines.empty() == is_case) {
            complain("a case without lines, or lines without a case, follow");
        }
        if (!is_case) {
            return;
        }
        assert_non_null(mkdtemp(path));
        directory_ = path;
        lets_.clear();
        tree = Tree();
        tree.program.slot_count = 8;
        elements_have_no_memory = has_claim_ = is_over_ = false;
        play(lines);
        elements_have_no_memory = false;
        remove("");
        if (!is_over_ && (!has_claim_ || !recording_.empty())) {
            complain("the case says nothing, or nothing of its last recording");
        }
        recording_.clear();
    }

    void play(const std::vector<Line> &lines) {
        for (size_t i = 0; i < lines.size() && !is_over_; i++) {
            const size_t indent = indent_of(lines[i].text);
            std::vector<Line> block;
            std::string rest = with_lets(lines[i].text), text;
            number_ = lines[i].number;
            const std::string verb = take_word(&rest);
            const bool has_text = verb == "left" || verb == "prints";
            while (i + 1 < lines.size() && indent_of(lines[i + 1].text) > indent) {
                block.push_back({lines[i + 1].number, with_lets(lines[i + 1].text)});
                const std::string more = block.back().text.substr(indent_of(block[0].text));
                text += more + "\n";
                rest += verb == "for" || has_text ? "" : " " + more;
                i++;
            }
            if (verb != "for") {
                act(verb, rest, text);
                continue;
            } else if (block.empty()) {
                complain("there are no lines for " + rest);
            }
            for (const std::string &value : split_at(rest, " / ")) {
                std::vector<Line> once = block;
                for (Line &line : once) {
                    line.text = replaced(line.text, "$", value == "\"\"" ? "" : value);
                }
                play(once);
            }
        }
    }

    std::string with_lets(std::string text) const {
        for (const auto &let : lets_) {
            text = replaced(text, "$" + let.first, let.second);
        }
        return text;
    }

    std::string said(const std::string &text) const {
        return replaced(replaced(text, "\\n", "\n"), "%", directory_);
    }

    std::string path_of(const std::string &name) const {
        return directory_ + "/" + name;
    }

    void write(const std::string &name, const std::string &bytes) {
        std::ofstream file(path_of(name), std::ios::binary);
        if (!(file << bytes).flush()) {
            complain(name + " cannot be written");
        }
    }

    void remove(const std::string &name) {
        assert_int_equal(system(("rm -rf '" + path_of(name) + "'").c_str()), 0);
    }

    void succeed(const std::string &what, int result) {
        if (result != 0) {
            complain(what + ": " + strerror(errno));
        }
    }

    void act(const std::string &verb, std::string rest, const std::string &text) {
        static const char *const codes[] = {"agrees binds notes prints", "differs fails",
                                            "refuses"};
        const std::string whole = rest;
        for (int code = 0; code < 3; code++) {
            const Texts verbs = words_of(codes[code]);
            if (std::find(verbs.begin(), verbs.end(), verb) != verbs.end()) {
                const Texts sides = split_at(rest, "=> ");
                run(verb, code, sides[0], sides.size() > 1 ? said(sides[1]) : text);
                return;
            }
        }
        if (verb == "tree" || verb == "elements") {
            set(verb + " " + rest);
            return;
        } else if (verb == "recording") {
            begin_recording(rest);
            return;
        } else if (verb == "spans") {
            for (const std::string &span : split_at(rest, " / ")) {
                tree.spans.push_back(ptowsp_span());
                ptowsp_span &now = tree.spans.back();
                char more;
                assert_int_equal(sscanf(span.c_str(), "%u %u %" SCNu64 " %" SCNu64 " %c", &now.kind,
                                        &now.lane, &now.begin, &now.end, &more),
                                 4);
            }
            return;
        } else if (verb == "noted") {
            expect(verb, tree.noted, rest);
            return;
        }
        const std::string name = take_word(&rest), path = path_of(name);
        if (verb == "file" || verb == "keeps") {
            const std::string type = take_word(&rest), bytes = bytes_of(type, words_of(rest));
            write((verb == "file" ? "" : "kept/") + name, bytes);
            recording_ += verb == "file" ? ""
                                         : "file " + name + " " + std::to_string(bytes.size()) +
                                               " " + hash_of(bytes.data(), bytes.size()) + "\n";
        } else if (verb == "text") {
            write(name, said(rest));
        } else if (verb == "directory") {
            succeed(whole, mkdir(path.c_str(), 0700));
        } else if (verb == "rmdir") {
            succeed(whole, rmdir(path.c_str()));
            has_claim_ = true;
        } else if (verb == "unlink") {
            succeed(whole, unlink(path.c_str()));
        } else if (verb == "remove") {
            remove(name);
        } else if (verb == "link") {
            succeed(whole, symlink(rest.c_str(), path.c_str()));
        } else if (verb == "gone") {
            expect(name, access(path.c_str(), F_OK) == 0 ? "there" : "gone", "gone");
        } else if (verb == "left") {
            std::string got, wanted = text.empty() ? said(rest) : text;
            got = read_text(path, &got) ? got : "(nothing)";
            hide_words(&wanted, &got);
            expect(name, got, wanted);
        } else if (verb == "let") {
            lets_[name] = rest;
        } else if (verb == "needs") {
            is_over_ = access(name.c_str(), W_OK) != 0;
        } else {
            complain("there is no word " + verb);
        }
    }

    // Takes the ~ out; where the highest byte comes first, both have something else up to the line's end.
    static void hide_words(std::string *wanted, std::string *got) {
        for (size_t at = 0; (at = wanted->find('~')) != std::string::npos;) {
            wanted->erase(at, 1);
            for (; !is_little_endian() && (*wanted)[at] != '\n' && at < got->size(); at++) {
                (*got)[at] = (*wanted)[at];
            }
        }
    }

    void set(const std::string &what) {
        const std::string written = "tree writes ";
        if (what.compare(0, written.size(), written) == 0) {
            tree.written = what.substr(written.size());
        } else if (what == "tree works") {
            tree.status = PTOWSP_OK;
            tree.written = Tree().written;
        } else if (what == "tree refuses") {
            tree.refuses = true;
        } else if (what == "tree is stuck") {
            tree.status = PTOWSP_STUCK;
        } else if (what == "tree has no slots") {
            tree.program.slot_count = 0;
        } else if (what == "tree has no memory") {
            tree.has_no_memory = true;
        } else if (what == "elements have no memory") {
            elements_have_no_memory = true;
        } else {
            complain("there is no such word: " + what);
        }
    }

    void begin_recording(std::string rest) {
        std::string program = tree.program.hash;
        if (rest.compare(0, 3, "of ") == 0) {
            take_word(&rest);
            program = take_word(&rest);
        }
        recording_ = "ptowsp recording 1\nprogram " + program + "\n";
        recording_ += rest.empty() ? "" : replaced(rest, " / ", "\n") + "\n";
        mkdir(path_of("kept").c_str(), 0700);
    }

    // Runs the command, and has its output and its errors in files meanwhile.
    void run(const std::string &verb, int code, const std::string &arguments,
             const std::string &wanted) {
        Texts words = {"run"};
        std::vector<char *> argv;
        std::string printed[2];
        FILE *files[2];
        int kept[2];
        if (!recording_.empty()) {
            recording_ += "end " + hash_of(recording_.data(), recording_.size()) + "\n";
            write("kept/recording", recording_);
            recording_.clear();
        }
        for (const std::string &word : words_of(arguments)) {
            words.push_back(said(word));
        }
        for (std::string &word : words) {
            argv.push_back(&word[0]);
        }
        fflush(stdout);
        fflush(stderr);
        for (int i = 0; i < 2; i++) {
            files[i] = tmpfile();
            assert_non_null(files[i]);
            kept[i] = dup(1 + i);
            assert_true(dup2(fileno(files[i]), 1 + i) >= 0);
        }
        tree.noted.clear();
        const int got = command_main(static_cast<int>(argv.size()), argv.data());
        fflush(stdout);
        fflush(stderr);
        for (int i = 0; i < 2; i++) {
            assert_true(dup2(kept[i], 1 + i) >= 0);
            close(kept[i]);
            rewind(files[i]);
            for (int c; (c = fgetc(files[i])) != EOF; printed[i] += static_cast<char>(c)) {
            }
            fclose(files[i]);
        }
        expect(arguments + printed[1], std::to_string(got), std::to_string(code));
        if (verb == "notes" || verb == "binds") {
            const std::string none = wanted == "nothing" ? "" : wanted;
            expect(verb, tree.noted,
                   verb == "notes" ? none : none + (none.empty() ? "" : "; ") + "run 0 0 0 0 0");
        } else if (verb == "prints") {
            expect(verb, printed[0], wanted);
        } else if (verb == "agrees" || verb == "differs") {
            expect(verb + " " + wanted, printed[0],
                   !wanted.empty() && printed[0].find(wanted) != std::string::npos ? printed[0]
                                                                                   : wanted);
        } else if (!wanted.empty()) {
            expect(verb, printed[1], "run: " + wanted + "\n");
        }
        if (verb == "refuses" && tree.noted.find("run") != std::string::npos) {
            complain("it has run: " + tree.noted);
        }
    }

    const char *path_;
    int number_ = 0;
    std::string directory_, recording_;  // without its last line
    bool has_claim_ = false, is_over_ = false;
    std::map<std::string, std::string> lets_;
};

TEST(npu_command__does_what_is_written) {
    Play("tests/npu/commands.txt");
}

TEST(npu_command__records_and_checks_as_is_written) {
    Play("tests/npu/recordings.txt");
}

// Bars one after another, as a viewer reads them: 0.1 + 0.2 > 0.3.
TEST(npu_command__slices_of_timelines_do_not_overlap_as_doubles) {
    wsp::List<ptowsp_span> spans;
    spans.assign(2000, ptowsp_span());
    uint64_t now = 0;
    for (size_t i = 0; i < spans.size(); i++) {
        spans[i].kind = 1;
        spans[i].begin = now;
        now += 1 + i * 7919 % 4001 * (i < 1000 ? 1 : 1000);
        spans[i].end = now;
    }
    char path[] = "/tmp/wsp_timeline_XXXXXX";
    close(mkstemp(path));
    std::string text;
    assert_true(write_timeline(path, make_program(), spans));
    assert_true(read_text(path, &text));
    unlink(path);
    double end = 0;
    size_t count = 0, longer = 0;
    for (size_t at = text.find("\"ts\":"); at != std::string::npos; at = text.find("\"ts\":", at)) {
        at += 5;
        const double begin = strtod(text.c_str() + at, nullptr);
        at = text.find("\"dur\":", at) + 6;
        const double duration = strtod(text.c_str() + at, nullptr);
        assert_true(begin >= end);
        end = begin + duration;
        const double exact = static_cast<double>(spans[count].end - spans[count].begin) / 1000;
        longer += begin + exact > static_cast<double>(spans[count].end) / 1000;
        assert_true(duration <= exact && duration > exact - 1e-6);
        count++;
    }
    assert_int_equal(count, spans.size());
    assert_true(longer > 100);  // as three digits would have it
}

}  // namespace
