// Bindings as text: options of the command line, and lines of a recorded run (recording.h).
//
//      --size AXIS=N    --symbol NAME=N    --slot I=N
//      --array NAME=DATA    --lengths AXIS=DATA    DATA: 1,2,3, or @FILE; of lengths i32@FILE as well
//      --csr AXIS=@INDPTR,@INDICES    --plan PLAN=@UNITS,@BEGIN,@MERGES,@BEGIN    --batch PLAN=...
//      --memory 1=@FILE    --view TENSOR=64x80/1x64@1+0    shape, strides in elements, memory, bytes
//
// Where the bytes of a file are, and who binds, differs: the command line reads files (main.cpp), a test
// of PTO Runtime passes them as arguments (wsp_simpler_target.h).

#ifndef WSP_BINDING_TEXT_H
#define WSP_BINDING_TEXT_H

#include <deque>
#include <string>

#include "elements.h"
#include "wsp_abi.h"
#include "wsp_list.h"

namespace {

// A tensor as it was bound; of one name the last counts.
struct View {
    std::string name;
    ptowsp_buffer buffer;
};

class BindingText {
  public:
    explicit BindingText(const wsp_program &program) : program_(program) {
    }
    virtual ~BindingText() = default;

    // False with an error.
    bool bind(const std::string &option, const std::string &name, const std::string &value);

  protected:
    virtual bool read(const std::string &file, Data *out_data) = 0;
    virtual bool put(const std::string &what, const ptowsp_binding &binding) = 0;
    virtual bool fail(const std::string &what) = 0;  // returns false

    const wsp_tensor_decl *tensor_named(const std::string &name) const;

    const wsp_program &program_;
    std::deque<Data> data_;  // which does not move them
    wsp::List<View> views_;

  private:
    bool read_elements(const std::string &what, const std::string &text, uint32_t dtype,
                       const void **out_data, uint64_t *out_count);
    bool bind_array(const std::string &name, const std::string &value, bool is_lengths);
    bool bind_csr(const std::string &name, const std::string &value);
    bool bind_plan(const std::string &name, const std::string &value);
    bool bind_batch(const std::string &name, const std::string &value);
    bool bind_view(const std::string &name, const std::string &value);
    bool bind_number(const std::string &option, const std::string &name, const std::string &value);

    wsp::List<const Data *> memories_;
};

const wsp_tensor_decl *BindingText::tensor_named(const std::string &name) const {
    const wsp_tensor_decl *found = nullptr;
    for (uint32_t i = 1; i < program_.tensor_count; i++) {
        const wsp_tensor_decl &decl = program_.tensors[i];
        found = decl.name && name == decl.name ? &decl : found;
    }
    return found;
}

// A list of numbers, or of a file's elements.
bool BindingText::read_elements(const std::string &what, const std::string &text, uint32_t dtype,
                                const void **out_data, uint64_t *out_count) {
    data_.emplace_back();
    Data *data = &data_.back();
    if (!text.empty() && text[0] == '@') {
        if (!read(text.substr(1), data)) {
            return false;
        }
        *out_data = data->bytes();
        *out_count = data->size / size_of(dtype);
        return data->size % size_of(dtype) == 0
                   ? true
                   : fail(what + ": " + text.substr(1) + " has " + std::to_string(data->size) +
                          " bytes, which are no whole elements of " + name_of(dtype));
    }
    const wsp::List<std::string> parts = text.empty() ? wsp::List<std::string>() : split(text, ',');
    if (!data->resize(parts.size() * size_of(dtype))) {
        return fail(no_memory_for(parts.size() * size_of(dtype)));
    }
    for (size_t i = 0; i < parts.size(); i++) {
        uint64_t bits = 0;
        if (!parse_number(parts[i], &bits) || !fits(bits, parts[i][0] == '-', dtype)) {
            return fail(what + ": \"" + parts[i] + "\" is no " + name_of(dtype));
        }
        store(data, i, dtype, bits);
    }
    *out_data = data->bytes();
    *out_count = parts.size();
    return true;
}

bool BindingText::bind_array(const std::string &name, const std::string &value, bool is_lengths) {
    const std::string what = (is_lengths ? "--lengths " : "--array ") + name;
    ptowsp_binding b =
        pwsp_binding_of(is_lengths ? PTOWSP_BIND_LENGTHS : PTOWSP_BIND_ARRAY, name.c_str());
    b.dtype = is_lengths ? PTOWSP_I64 : PTOWSP_DTYPE_NONE;
    std::string prefix, path, text = value;
    for (uint32_t i = 1; i < program_.array_count && !is_lengths; i++) {
        if (program_.arrays[i].name && !program_.arrays[i].is_lengths &&
            !wsp::is_field(program_, i) && name == program_.arrays[i].name) {
            b.dtype = static_cast<ptowsp_dtype>(program_.arrays[i].dtype);
        }
    }
    if (cut(value, '@', &prefix, &path) && !prefix.empty() && is_lengths) {
        b.dtype = index_dtype(prefix);
        text = "@" + path;
        if (b.dtype == PTOWSP_DTYPE_NONE) {
            return fail(what + ": \"" + prefix + "\" is none of i32, i64, u32, u64");
        }
    }
    if (b.dtype == PTOWSP_DTYPE_NONE) {
        return fail(what + ": there is no such array");
    }
    return read_elements(what, text, b.dtype, &b.data, &b.count) && put(what, b);
}

bool BindingText::bind_csr(const std::string &name, const std::string &value) {
    const std::string what = "--csr " + name;
    std::string prefix, rest, indptr, indices;
    if (!cut(value, '@', &prefix, &rest) || !cut(rest, ',', &indptr, &indices) ||
        indices[0] != '@') {
        return fail(what + ": is to be @INDPTR,@INDICES, two files");
    }
    ptowsp_csr csr = ptowsp_csr();
    csr.dtype = prefix.empty() ? PTOWSP_I64 : index_dtype(prefix);
    if (csr.dtype == PTOWSP_DTYPE_NONE) {
        return fail(what + ": \"" + prefix + "\" is none of i32, i64, u32, u64");
    }
    uint64_t row_end = 0;
    if (!read_elements(what, "@" + indptr, csr.dtype, &csr.indptr, &row_end) ||
        !read_elements(what, indices, csr.dtype, &csr.indices, &csr.entry_count)) {
        return false;
    }
    if (row_end == 0) {
        return fail(what + ": " + indptr + " is empty; it has one element more than rows");
    }
    csr.row_count = row_end - 1;
    ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_CSR, name.c_str());
    b.data = &csr;
    return put(what, b);
}

// Descriptors are read as numbers of 64 bits, three each, which aligns them.
bool BindingText::bind_plan(const std::string &name, const std::string &value) {
    const std::string what = "--plan " + name;
    const wsp::List<std::string> files = split(value, ',');
    const uint32_t dtypes[4] = {PTOWSP_U64, PTOWSP_U32, PTOWSP_U64, PTOWSP_U32};
    uint64_t counts[4] = {0, 0, 0, 0};
    const void *bytes[4] = {nullptr, nullptr, nullptr, nullptr};
    if (files.size() > 4 || files.size() == 3) {
        return fail(what + ": is to be @UNITS, @UNITS,@BEGIN or @UNITS,@BEGIN,@MERGES,@BEGIN");
    }
    for (size_t i = 0; i < files.size(); i++) {
        if (files[i].empty() || files[i][0] != '@') {
            return fail(what + ": \"" + files[i] + "\" is to be @FILE");
        }
        if (!read_elements(what, files[i], dtypes[i], &bytes[i], &counts[i])) {
            return false;
        }
        if (i % 2 == 0 && counts[i] % 3 != 0) {
            return fail(what + ": " + files[i].substr(1) + " has no whole descriptors of 24 bytes");
        }
    }
    ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_WORK, name.c_str());
    if (files.size() == 1) {
        b.data = bytes[0];
        b.count = counts[0] / 3;
        return put(what, b);
    }
    counts[3] = files.size() == 2 ? counts[1] : counts[3];  // no merges
    if (counts[1] != counts[3] || counts[1] < 2 || counts[1] > PTOWSP_ATTENTION_LANE_MAX + 1 ||
        counts[0] / 3 > UINT32_MAX || counts[2] / 3 > UINT32_MAX) {
        return fail(what + ": the two lists of lanes differ, or there are too many or none");
    }
    ptowsp_attention_plan plan = ptowsp_attention_plan();
    plan.units = static_cast<ptowsp_work *>(const_cast<void *>(bytes[0]));
    plan.unit_begin = static_cast<uint32_t *>(const_cast<void *>(bytes[1]));
    plan.merges = static_cast<ptowsp_work *>(const_cast<void *>(bytes[2]));
    plan.merge_begin = static_cast<uint32_t *>(const_cast<void *>(bytes[3]));
    plan.unit_count = plan.unit_capacity = static_cast<uint32_t>(counts[0] / 3);
    plan.merge_count = plan.merge_capacity = static_cast<uint32_t>(counts[2] / 3);
    plan.lane_count = static_cast<uint32_t>(counts[1] - 1);
    b.kind = PTOWSP_BIND_PLAN;
    b.data = &plan;
    return put(what, b);
}

bool BindingText::bind_batch(const std::string &name, const std::string &value) {
    const std::string what = "--batch " + name;
    const wsp::List<std::string> parts = split(value, ':');
    ptowsp_attention_config config = ptowsp_attention_config();
    uint32_t is_causal = 0, mode = 0;
    const struct {
        const char *name;
        uint32_t *number;
    } fields[] = {{"lanes", &config.lane_count},
                  {"heads", &config.kv_head_count},
                  {"query_heads", &config.query_head_count},
                  {"group", &config.group},
                  {"window", &config.window},
                  {"page_size", &config.page_size},
                  {"tile_rows", &config.tile_rows},
                  {"piece_min", &config.piece_min},
                  {"chunk", &config.chunk},
                  {"grain", &config.grain},
                  {"is_causal", &is_causal},
                  {"mode", &mode}};
    if (parts.size() != 2 && parts.size() != 3) {
        return fail(what + ": is to be KV:FIELDS, or KV:QUERIES:FIELDS");
    }
    for (const std::string &field : split(parts.back(), ',')) {
        std::string key, text;
        uint64_t number = 0;
        bool is_known = false;
        cut(field, '=', &key, &text);
        for (const auto &known : fields) {
            if (key == known.name && parse_count(text, UINT32_MAX, &number)) {
                *known.number = static_cast<uint32_t>(number);
                is_known = true;
            }
        }
        if (!is_known) {
            return fail(what + ": \"" + field + "\" is no FIELD=N; see --help");
        }
    }
    config.is_causal = is_causal != 0;
    config.mode = mode ? PTOWSP_ATTENTION_INVARIANT : PTOWSP_ATTENTION_BALANCED;
    uint64_t counts[2] = {0, 0};
    const void *lengths[2] = {nullptr, nullptr};
    for (size_t i = 0; i + 1 < parts.size(); i++) {
        if (!read_elements(what, parts[i], PTOWSP_I32, &lengths[i], &counts[i])) {
            return false;
        }
    }
    if (counts[0] > UINT32_MAX || (lengths[1] && counts[1] != counts[0])) {
        return fail(what + ": there are too many lengths, or not as many of queries");
    }
    const ptowsp_attention_batch batch = {static_cast<const int32_t *>(lengths[0]),
                                          static_cast<const int32_t *>(lengths[1]),
                                          static_cast<uint32_t>(counts[0])};
    ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_BATCH, name.c_str());
    b.data = &batch;
    b.config = &config;
    return put(what, b);
}

// A tensor in memory of the recording.
bool BindingText::bind_view(const std::string &name, const std::string &value) {
    std::string sizes, place, shape, strides, memory, offset;
    uint64_t number = 0, at = 0, size = 0, stride = 0;
    ptowsp_buffer buffer = ptowsp_buffer();
    const wsp_tensor_decl *decl = tensor_named(name);
    bool is_good = decl && cut(value, '@', &sizes, &place) && cut(sizes, '/', &shape, &strides) &&
                   cut(place, '+', &memory, &offset) && parse_count(offset, INT64_MAX / 2, &at) &&
                   parse_count(memory, memories_.size(), &number) && number > 0;
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
    const int64_t width = decl ? size_of(decl->dtype) : 0, first = static_cast<int64_t>(at);
    is_good = is_good && (is_empty || !is_long) && first + low * width >= 0 &&
              first + high * width <= most;
    if (!is_good) {
        return fail("--check: the view " + name + "=" + value + " is outside of its memory");
    }
    buffer.dtype = static_cast<ptowsp_dtype>(decl->dtype);
    buffer.rank = static_cast<uint32_t>(all.size());
    buffer.data = static_cast<char *>(memories_[number - 1]->bytes()) + at;
    views_.push_back({name, buffer});
    ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_TENSOR, name.c_str());
    b.data = &buffer;
    return put("--view " + name, b);
}

bool BindingText::bind_number(const std::string &option, const std::string &name,
                              const std::string &value) {
    const std::string what = option + " " + name;
    uint64_t bits = 0, slot = 0;
    ptowsp_binding b = pwsp_binding_of(option == "--size"     ? PTOWSP_BIND_SIZE
                                       : option == "--symbol" ? PTOWSP_BIND_SYMBOL
                                                              : PTOWSP_BIND_SLOT,
                                       name.c_str());
    if (!parse_number(value, &bits) ||
        (option == "--size" && !fits(bits, value[0] == '-', PTOWSP_I64))) {
        return fail(what + ": \"" + value + "\" is no number");
    } else if (option == "--slot" && !parse_count(name, UINT32_MAX, &slot)) {
        return fail(what + ": is no number of a slot");
    }
    b.value = bits;
    b.slot = static_cast<uint32_t>(slot);
    return put(what, b);
}

bool BindingText::bind(const std::string &option, const std::string &name,
                       const std::string &value) {
    if (option == "--array" || option == "--lengths") {
        return bind_array(name, value, option == "--lengths");
    } else if (option == "--csr") {
        return bind_csr(name, value);
    } else if (option == "--plan") {
        return bind_plan(name, value);
    } else if (option == "--batch") {
        return bind_batch(name, value);
    } else if (option == "--view") {
        return bind_view(name, value);
    } else if (option == "--size" || option == "--symbol" || option == "--slot") {
        return bind_number(option, name, value);
    } else if (option != "--memory") {
        return fail("there is no option " + option + "; see --help");
    }
    data_.emplace_back();
    memories_.push_back(&data_.back());
    return read(value.substr(value[0] == '@'), &data_.back());
}

}  // namespace

#endif  // WSP_BINDING_TEXT_H
