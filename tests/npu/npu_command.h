// The command line of emitted trees (src/npu/tree/host/main.cpp), compiled in, on a runner that notes
// what is bound, and writes `written` into tensor y. Memory is out when has_no_memory says so.

#ifndef PTOWSP_NPU_COMMAND_H
#define PTOWSP_NPU_COMMAND_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>
#include <vector>

static bool has_no_memory;
static void *command_calloc(size_t count, size_t size) {
    return has_no_memory ? nullptr : calloc(count, size);
}

#define main   command_main
#define calloc command_calloc
#include "src/npu/tree/host/main.cpp"
#undef main
#undef calloc

#include "test.h"

namespace {

std::string noted, directory, written = "abcdef";  // into y
bool has_failed;
ptowsp_status run_status;

template <typename... Args> ptowsp_status note(const char *format, Args... args) {
    char text[300];
    snprintf(text, sizeof text, format, args...);
    noted += std::string(noted.empty() ? "" : "; ") + text;
    return has_failed ? PTOWSP_INVALID_PARAMS : PTOWSP_OK;
}

// Elements as numbers.
std::string listed(ptowsp_dtype dtype, const void *data, uint64_t count) {
    std::string text = std::string(name_of(dtype)) + "[";
    for (uint64_t i = 0; i < count; i++) {
        const char *at = static_cast<const char *>(data) + i * size_of(dtype);
        int64_t value = 0;
        int8_t i8;
        int16_t i16;
        int32_t i32;
        if (size_of(dtype) == 1) {
            memcpy(&i8, at, 1);
            value = i8;
        } else if (size_of(dtype) == 2) {
            memcpy(&i16, at, 2);
            value = i16;
        } else if (size_of(dtype) == 4) {
            memcpy(&i32, at, 4);
            value = i32;
        } else {
            memcpy(&value, at, 8);
        }
        text += (i ? " " : "") + std::to_string(value);
    }
    return text + "]";
}

const wsp_axis_decl AXES[] = {{nullptr, 0, 0, 0, 0},
                              {"batch", PTOWSP_AXIS_DYNAMIC, 0, 0, 1},
                              {"adj", PTOWSP_AXIS_SPARSE, 0, 0, 1},
                              {"kv", PTOWSP_AXIS_RAGGED, 1, 0, 1},
                              {"parts", PTOWSP_AXIS_PLAN, 5, 0, 1},
                              {"parts", PTOWSP_AXIS_PLAN_LANES, 0, 0, 1}};
const wsp_array_decl ARRAYS[] = {{nullptr, 0, 0, 0},
                                 {"kv", 0, 1, 1},
                                 {"flags", PTOWSP_BOOL, 0, 1},
                                 {"small", PTOWSP_I8, 0, 1},
                                 {"wide", PTOWSP_U64, 0, 1},
                                 {"parts.flags", PTOWSP_U8, 0, 1},
                                 {"parts.lane", PTOWSP_U32, 0, 0},
                                 {"half", PTOWSP_I16, 0, 1}};
const wsp_field_decl FIELDS[] = {{5, 4, PTOWSP_PLAN_FLAGS}, {6, 4, PTOWSP_PLAN_LANE}};
const wsp_symbol_decl SYMBOLS[] = {{nullptr, 0}, {"seed", 1}};
const wsp_tensor_decl TENSORS[] = {{nullptr, 0, 0, {}, 0, 0, 0, 0},
                                   {"x", PTOWSP_F32, 2, {PTOWSP_DYNAMIC, 4}, 1, 0, 0, 0},
                                   {"y", PTOWSP_F16, 1, {3}, 1, 1, 0, 0},
                                   {"between", PTOWSP_F16, 1, {3}, 1, 1, 0, 1}};

struct wsp_program make_program() {
    wsp_program program = wsp_program();
    program.name = "p";
    program.hash = "0123456789abcdef";
    program.axis_count = 6;
    program.array_count = 8;
    program.symbol_count = 2;
    program.tensor_count = 4;
    program.slot_count = 8;
    program.axes = AXES;
    program.arrays = ARRAYS;
    program.symbols = SYMBOLS;
    program.tensors = TENSORS;
    program.field_count = 2;
    program.fields = FIELDS;
    return program;
}

}  // namespace

struct wsp_runner {
    void *y;
};

extern "C" {

ptowsp_status wsp_runner_create(wsp_runner **out_runner) {
    *out_runner = has_no_memory ? nullptr : new wsp_runner();
    return has_no_memory ? PTOWSP_OUT_OF_MEMORY : PTOWSP_OK;
}
void wsp_runner_destroy(wsp_runner *runner) {
    delete runner;
}
const wsp_program *wsp_runner_program(void) {
    static const wsp_program program = make_program();
    return &program;
}
ptowsp_status wsp_runner_bind(wsp_runner *runner, const ptowsp_binding *b, uint64_t) {
    const long long value = static_cast<long long>(b->value);
    switch (b->kind) {
    case PTOWSP_BIND_SIZE: return note("size %s %lld", b->name, value);
    case PTOWSP_BIND_SYMBOL:
        return note("symbol %s %llu", b->name, static_cast<unsigned long long>(b->value));
    case PTOWSP_BIND_ARRAY:
        return note("array %s %s", b->name, listed(b->dtype, b->data, b->count).c_str());
    case PTOWSP_BIND_LENGTHS:
        return note("lengths %s %s", b->name, listed(b->dtype, b->data, b->count).c_str());
    case PTOWSP_BIND_CSR: {
        const ptowsp_csr *csr = static_cast<const ptowsp_csr *>(b->data);
        return note("csr %s %s %s", b->name,
                    listed(csr->dtype, csr->indptr, csr->row_count + 1).c_str(),
                    listed(csr->dtype, csr->indices, csr->entry_count).c_str());
    }
    case PTOWSP_BIND_PLAN: {
        const ptowsp_attention_plan *bound = static_cast<const ptowsp_attention_plan *>(b->data);
        return note("plan %s %u of %u, %u of %u, %u to %u %s %s", b->name, bound->unit_count,
                    bound->unit_capacity, bound->merge_count, bound->merge_capacity,
                    bound->units[0].params[3], bound->merges ? bound->merges[0].params[3] : 0,
                    listed(PTOWSP_U32, bound->unit_begin, bound->lane_count + 1).c_str(),
                    bound->merge_begin
                        ? listed(PTOWSP_U32, bound->merge_begin, bound->lane_count + 1).c_str()
                        : "none");
    }
    case PTOWSP_BIND_BATCH: {
        const ptowsp_attention_batch *batch = static_cast<const ptowsp_attention_batch *>(b->data);
        const ptowsp_attention_config *config = b->config;
        return note(
            "batch %s %s %s, %u lanes, %u heads of %u, window %u, pages %u, tiles %u, pieces %u, "
            "chunk %u, grain %u%s%s%s",
            b->name, listed(PTOWSP_I32, batch->kv_lengths, batch->sequence_count).c_str(),
            batch->query_lengths
                ? listed(PTOWSP_I32, batch->query_lengths, batch->sequence_count).c_str()
                : "none",
            config->lane_count, config->kv_head_count, config->group, config->window,
            config->page_size, config->tile_rows, config->piece_min, config->chunk, config->grain,
            config->is_causal ? " causal" : "",
            config->mode == PTOWSP_ATTENTION_INVARIANT ? " invariant" : "",
            b->capacity ? " with a capacity" : "");
    }
    case PTOWSP_BIND_WORK: {
        const ptowsp_work *work = static_cast<const ptowsp_work *>(b->data);
        return note("work %s %u %u", b->name, static_cast<unsigned>(b->count),
                    b->count ? work[b->count - 1].params[3] : 0);
    }
    case PTOWSP_BIND_TENSOR: {
        const ptowsp_buffer *buffer = static_cast<const ptowsp_buffer *>(b->data);
        if (b->name[0] == 'y') {
            runner->y = buffer->data;
        }
        return note("tensor %s %u %lldx%lld %u bytes %d", b->name, buffer->rank,
                    static_cast<long long>(buffer->shape[0]),
                    static_cast<long long>(buffer->shape[1]), static_cast<unsigned>(buffer->size),
                    static_cast<int>(static_cast<const char *>(buffer->data)[0]));
    }
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
        memcpy(runner->y, written.data(), 6);
    }
    out_result->makespan_cycles = 12345;
    return run_status;
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

std::string path_of(const char *name) {
    return directory + "/" + name;
}

void write_bytes(const char *name, const void *bytes, size_t size) {
    FILE *file = fopen(path_of(name).c_str(), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

// Runs with arguments, '%' being the directory of the test's files. Returns the exit code.
int command(const std::vector<std::string> &arguments) {
    std::vector<std::string> texts = {"run"};
    for (const std::string &argument : arguments) {
        std::string text;
        for (char c : argument) {
            text += c == '%' ? directory : std::string(1, c);
        }
        texts.push_back(text);
    }
    std::vector<char *> argv;
    for (std::string &text : texts) {
        argv.push_back(&text[0]);
    }
    noted.clear();
    return command_main(static_cast<int>(argv.size()), argv.data());
}

std::string text_of(const char *name) {
    std::string text;
    return read_text(path_of(name), &text) ? text : "(nothing)";
}

// What a function that returns an exit code says on its output (1) or error output (2).
template <typename Function> std::string said_by(Function function, int code, int output) {
    const std::string path = path_of("said");
    fflush(stdout);
    fflush(stderr);
    const int kept = dup(output);
    FILE *to = fopen(path.c_str(), "wb");
    assert_non_null(to);
    assert_true(dup2(fileno(to), output) >= 0);
    const int got = function();
    fflush(stdout);
    fflush(stderr);
    assert_true(dup2(kept, output) >= 0);
    close(kept);
    fclose(to);
    assert_int_equal(got, code);
    return text_of("said");
}

int make_directory(void **state) {
    (void)state;
    char path[] = "/tmp/wsp_command_XXXXXX";
    assert_non_null(mkdtemp(path));
    directory = path;
    return 0;
}

}  // namespace

#endif
