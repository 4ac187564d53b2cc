// The four files, into tables as they come; ids are resolved afterwards (dump_link.c).
//
// Unknown members are passed over, so that files may have more than this version knows. Words of an
// enumeration that are not known are kept as text, and counted.

#if !defined(_POSIX_C_SOURCE) && !defined(_GNU_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include "dump.h"

#include <dirent.h>
#include <errno.h>

#define DUMP_COUNT(array) (uint32_t)(sizeof(array) / sizeof((array)[0]))

// A file while it is read.
typedef struct dump_file {
    ptowsp_dump *dump;
    dump_json json;
    const char *name;
} dump_file;

static bool dump_is(const char *key, const char *name) {
    return strcmp(key, name) == 0;
}

// Room for another element of a table. False: there is a fault already, or now; nothing more is read.
static bool dump_room(dump_file *f, const char *what, void **array, uint32_t count,
                      uint32_t *capacity, size_t size, uint32_t limit) {
    if (f->json.wrong) {
        return false;
    }
    if (count >= limit) {
        dump_fail(f->dump, PTOWSP_LIMIT_EXCEEDED, limit, "dump: more than %u %ss", (unsigned)limit,
                  what);
    } else if (dump_grow(array, count, capacity, size)) {
        return true;
    }
    dump_out_of_memory(f->dump);
    return dump_json_fail(&f->json, "is not read further");
}

#define DUMP_PUSH(f, what, limit, value)                                                           \
    (dump_room(f, #what, (void **)&(f)->dump->what##s, (f)->dump->what##_count,                    \
               &(f)->dump->what##_capacity, sizeof(value), limit)                                  \
         ? (void)((f)->dump->what##s[(f)->dump->what##_count++] = (value))                         \
         : (void)0)

// The number of a word in `names`, or one after them.
static uint16_t dump_word_of(dump_file *f, const char *what, const char (*names)[24],
                             uint32_t count) {
    char text[DUMP_JSON_TEXT];
    dump_json_string(&f->json, text);
    for (uint32_t i = 0; i < count; i++) {
        if (dump_is(text, names[i])) {
            return (uint16_t)i;
        }
    }
    ptowsp_dump *dump = f->dump;
    uint32_t at = 0;
    while (at < dump->word_count &&
           (dump->words[at].what != what || !dump_is(dump->words[at].text, text))) {
        at++;
    }
    if (at == dump->word_count) {
        dump_word word;
        memset(&word, 0, sizeof word);
        memcpy(word.text, text, sizeof text);
        word.what = what;
        DUMP_PUSH(f, word, DUMP_WORD_MAX, word);
    }
    if (at < dump->word_count) {
        dump->words[at].count++;
    }
    return (uint16_t)(count + at);
}

#define DUMP_NAME(name) #name,
static const char dump_types[][24] = {DUMP_TYPES(DUMP_NAME)};
#undef DUMP_NAME
#define DUMP_NAME(name, bytes) #name,
static const char dump_dtypes[][24] = {DUMP_DTYPES(DUMP_NAME)};
#undef DUMP_NAME
#define DUMP_BYTES(name, bytes) bytes,
static const uint8_t dump_dtype_bytes[] = {DUMP_DTYPES(DUMP_BYTES)};
#undef DUMP_BYTES
static const char dump_sources[][24] = {"explicit", "creator", "tensormap"};
static const char dump_flags[][24] = {"wait", "retain"};

static const char *dump_word_text(const ptowsp_dump *dump, const char (*names)[24], uint32_t count,
                                  uint16_t word) {
    return word < count ? names[word] : dump->words[word - count].text;
}

DUMP_INTERNAL const char *dump_type_name(const ptowsp_dump *dump, uint16_t type) {
    return dump_word_text(dump, dump_types, DUMP_TYPE_COUNT, type);
}

DUMP_INTERNAL const char *dump_source_name(const ptowsp_dump *dump, uint16_t source) {
    return dump_word_text(dump, dump_sources, DUMP_COUNT(dump_sources), source);
}

// -- fields ---------------------------------------------------------------------------------------

// What reads a value.
#define DUMP_READERS(R)                                                                            \
    R(DUMP_TO_TYPE, dump_to_type)                                                                  \
    R(DUMP_TO_U64, dump_to_u64)                                                                    \
    R(DUMP_TO_U64_IF, dump_to_u64_if)                                                              \
    R(DUMP_TO_BYTES, dump_to_bytes)                                                                \
    R(DUMP_TO_LIST, dump_to_list)                                                                  \
    R(DUMP_TO_AUTO, dump_to_auto)                                                                  \
    R(DUMP_READ_ARG, dump_read_arg)                                                                \
    R(DUMP_TO_I32, dump_to_i32)                                                                    \
    R(DUMP_TO_SOURCE, dump_to_source)                                                              \
    R(DUMP_TO_NO_WAIT, dump_to_no_wait)                                                            \
    R(DUMP_READ_TASK, dump_read_task)                                                              \
    R(DUMP_READ_TENSOR, dump_read_tensor)                                                          \
    R(DUMP_READ_EDGE, dump_read_edge)                                                              \
    R(DUMP_READ_ROW, dump_read_row)                                                                \
    R(DUMP_TO_CORES, dump_to_cores)                                                                \
    R(DUMP_READ_CORE, dump_read_core)                                                              \
    R(DUMP_TO_BEGIN, dump_to_begin)                                                                \
    R(DUMP_TO_TEXT, dump_to_text)                                                                  \
    R(DUMP_TO_NAMES, dump_to_names)

typedef enum dump_reader {
#define DUMP_READER(name, fn) name,
    DUMP_READERS(DUMP_READER)
#undef DUMP_READER
} dump_reader;

#define DUMP_READER(name, fn) static void fn(dump_file *f, void *to);
DUMP_READERS(DUMP_READER)
#undef DUMP_READER

static void dump_read_value(dump_file *f, uint32_t reader, void *to) {
    switch ((dump_reader)reader) {
#define DUMP_READER(name, fn)                                                                      \
    case name: fn(f, to); break;
        DUMP_READERS(DUMP_READER)
#undef DUMP_READER
    }
}

// A key of an object that is wanted: what reads its value, and where to; with DUMP_EACH it is a list,
// and each of its values is read. Without pointers: a library has no tables that are relocated.
typedef struct dump_field {
    char key[24];
    uint32_t reader;  // dump_reader
    size_t offset;
} dump_field;

#define DUMP_EACH SIZE_MAX

// Reads an object; keys that are not wanted are passed over. Returns those that were there, as bits.
static uint32_t dump_read_object(dump_file *f, const dump_field *fields, uint32_t count, void *at) {
    char key[DUMP_JSON_TEXT];
    uint32_t seen = 0;
    dump_json_begin(&f->json, DUMP_JSON_OBJECT);
    while (dump_json_next(&f->json, key)) {
        uint32_t i = 0;
        while (i < count && !dump_is(key, fields[i].key)) {
            i++;
        }
        if (i == count) {
            dump_json_skip(&f->json);
            continue;
        }
        seen |= 1u << i;
        if (fields[i].offset != DUMP_EACH) {
            dump_read_value(f, fields[i].reader, (char *)at + fields[i].offset);
            continue;
        }
        dump_json_begin(&f->json, DUMP_JSON_ARRAY);
        while (dump_json_next(&f->json, NULL)) {
            dump_read_value(f, fields[i].reader, at);
        }
    }
    return seen;
}

static void dump_to_u64(dump_file *f, void *to) {
    *(uint64_t *)to = dump_json_u64(&f->json);
}

static void dump_to_u64_if(dump_file *f, void *to) {
    *(uint64_t *)to = dump_json_u64_if(&f->json);
}

// -1 for numbers that a table cannot hold.
static void dump_to_i32(dump_file *f, void *to) {
    const int64_t value = dump_json_i64(&f->json);
    *(int32_t *)to = value >= 0 && value < INT32_MAX ? (int32_t)value : -1;
}

static void dump_to_text(dump_file *f, void *to) {
    dump_json_string(&f->json, (char *)to);
}

static void dump_to_auto(dump_file *f, void *to) {
    char text[DUMP_JSON_TEXT];
    *(bool *)to = dump_json_string(&f->json, text) && dump_is(text, "auto");
}

static void dump_to_begin(dump_file *f, void *to) {
    char text[DUMP_JSON_TEXT];
    *(bool *)to = dump_json_string(&f->json, text) && dump_is(text, "begin");
}

static void dump_to_type(dump_file *f, void *to) {
    *(uint16_t *)to = dump_word_of(f, "argument type", dump_types, DUMP_TYPE_COUNT);
}

static void dump_to_source(dump_file *f, void *to) {
    *(uint16_t *)to = dump_word_of(f, "source of an edge", dump_sources, DUMP_COUNT(dump_sources));
}

// An edge without a list of flags orders.
static void dump_to_no_wait(dump_file *f, void *to) {
    bool waits = false;
    if (dump_json_peek(&f->json) != DUMP_JSON_ARRAY) {
        dump_json_skip(&f->json);
        return;
    }
    dump_json_begin(&f->json, DUMP_JSON_ARRAY);
    while (dump_json_next(&f->json, NULL)) {
        waits =
            dump_word_of(f, "flag of an edge", dump_flags, DUMP_COUNT(dump_flags)) == 0 || waits;
    }
    *(bool *)to = !waits;
}

static void dump_to_bytes(dump_file *f, void *to) {
    const uint32_t count = DUMP_COUNT(dump_dtypes);
    const uint16_t at = dump_word_of(f, "element type", dump_dtypes, count);
    *(uint8_t *)to = at < count ? dump_dtype_bytes[at] : 0;
}

static void dump_to_list(dump_file *f, void *to) {
    dump_list *list = (dump_list *)to;
    list->count = 0;
    dump_json_begin(&f->json, DUMP_JSON_ARRAY);
    while (dump_json_next(&f->json, NULL)) {
        const int64_t value = dump_json_i64(&f->json);
        if (list->count < DUMP_DIMS) {
            list->values[list->count] = value;
        }
        list->count++;
    }
}

#define DUMP_FIELDS(f, fields, at) dump_read_object(f, fields, DUMP_COUNT(fields), at)

// -- deps.json ------------------------------------------------------------------------------------

static const char *dump_shape_fault(const dump_list *shape, const dump_list *strides) {
    bool is_negative = false;
    for (uint32_t i = 0; i < shape->count && i < DUMP_DIMS; i++) {
        is_negative = is_negative || shape->values[i] < 0;
    }
    return shape->count > DUMP_DIMS         ? "a tensor has more than 5 dimensions"
           : shape->count != strides->count ? "shape and strides differ in length"
           : is_negative                    ? "a shape is negative"
                                            : NULL;
}

static void dump_read_arg(dump_file *f, void *to) {
    static const dump_field fields[] = {
        {"type", DUMP_TO_TYPE, offsetof(dump_arg, type)},
        {"tensor_id", DUMP_TO_U64, offsetof(dump_arg, tensor_id)},
        {"dtype", DUMP_TO_BYTES, offsetof(dump_arg, element_bytes)},
        {"start_offset", DUMP_TO_U64, offsetof(dump_arg, offset)},
        {"shape", DUMP_TO_LIST, offsetof(dump_arg, shape)},
        {"strides", DUMP_TO_LIST, offsetof(dump_arg, strides)},
    };
    dump_arg arg;
    (void)to;
    memset(&arg, 0, sizeof arg);
    arg.type = DUMP_TYPE_NO_DEP;
    arg.tensor = arg.region = DUMP_NONE;
    DUMP_FIELDS(f, fields, &arg);
    const char *fault = dump_shape_fault(&arg.shape, &arg.strides);
    if (fault) {
        dump_json_fail(&f->json, fault);
    }
    DUMP_PUSH(f, arg, DUMP_ARG_MAX, arg);
}

static void dump_read_task(dump_file *f, void *to) {
    static const dump_field fields[] = {
        {"task_id", DUMP_TO_U64, offsetof(dump_task, id)},
        {"scope", DUMP_TO_AUTO, offsetof(dump_task, is_auto)},
        {"kernel_ids", DUMP_TO_LIST, offsetof(dump_task, kernels)},
        {"args", DUMP_READ_ARG, DUMP_EACH},
    };
    dump_task task;
    (void)to;
    memset(&task, 0, sizeof task);
    task.first_arg = f->dump->arg_count;
    if (!(DUMP_FIELDS(f, fields, &task) & 1)) {
        dump_json_fail(&f->json, "a task has no task_id");
    }
    task.arg_count = f->dump->arg_count - task.first_arg;
    DUMP_PUSH(f, task, PTOWSP_DUMP_TASK_MAX, task);
}

static void dump_read_tensor(dump_file *f, void *to) {
    static const dump_field fields[] = {
        {"tensor_id", DUMP_TO_U64, offsetof(dump_tensor, id)},
        {"buffer_addr", DUMP_TO_U64, offsetof(dump_tensor, address)},
        {"buffer_numel", DUMP_TO_U64, offsetof(dump_tensor, element_count)},
        {"dtype", DUMP_TO_BYTES, offsetof(dump_tensor, element_bytes)},
    };
    dump_tensor tensor;
    (void)to;
    memset(&tensor, 0, sizeof tensor);
    DUMP_FIELDS(f, fields, &tensor);
    DUMP_PUSH(f, tensor, DUMP_ROW_MAX, tensor);
}

static void dump_read_edge(dump_file *f, void *to) {
    static const dump_field fields[] = {
        {"pred", DUMP_TO_U64, offsetof(dump_edge, pred_id)},
        {"succ", DUMP_TO_U64, offsetof(dump_edge, succ_id)},
        {"arg", DUMP_TO_I32, offsetof(dump_edge, arg)},
        {"source", DUMP_TO_SOURCE, offsetof(dump_edge, source)},
        {"flags", DUMP_TO_NO_WAIT, offsetof(dump_edge, is_no_wait)},
    };
    dump_edge edge;
    (void)to;
    memset(&edge, 0, sizeof edge);
    edge.arg = -1;
    if ((DUMP_FIELDS(f, fields, &edge) & 3) != 3) {
        dump_json_fail(&f->json, "an edge lacks pred or succ");
    }
    DUMP_PUSH(f, edge, DUMP_EDGE_MAX, edge);
}

static void dump_read_deps(dump_file *f) {
    static const dump_field fields[] = {{"tasks", DUMP_READ_TASK, DUMP_EACH},
                                        {"tensors", DUMP_READ_TENSOR, DUMP_EACH},
                                        {"edges", DUMP_READ_EDGE, DUMP_EACH}};
    if (!(DUMP_FIELDS(f, fields, f->dump) & 1)) {
        dump_json_fail(&f->json, "there are no tasks: this is no dump of PTO Runtime");
    }
    f->dump->has_deps = true;
}

// -- chip_swimlane_records.json -------------------------------------------------------------------

// [core, task, token, start, end, ...]
static void dump_read_row(dump_file *f, void *to) {
    uint64_t values[5] = {0};
    uint32_t count = 0;
    (void)to;
    dump_json_begin(&f->json, DUMP_JSON_ARRAY);
    for (; dump_json_next(&f->json, NULL); count++) {
        const uint64_t value = dump_json_u64(&f->json);
        values[count < 5 ? count : 2] = value;
    }
    const dump_row row = {values[1], values[3], values[4],
                          (uint32_t)(values[0] < DUMP_NONE ? values[0] : DUMP_NONE)};
    if (count < 5) {
        dump_json_fail(&f->json, "a row of aicore_tasks has less than 5 numbers");
    }
    if (row.end < row.start) {
        dump_json_fail(&f->json, "a task ends before it starts");
    }
    DUMP_PUSH(f, row, DUMP_ROW_MAX, row);
}

// "aic": a cube core. All others count as vector cores.
static void dump_read_core(dump_file *f, void *to) {
    char text[DUMP_JSON_TEXT];
    (void)to;
    const bool is_cube = dump_json_string(&f->json, text) && dump_is(text, "aic");
    DUMP_PUSH(f, core, PTOWSP_SCHEDULE_LANE_MAX, is_cube);
}

static void dump_to_cores(dump_file *f, void *to) {
    static const dump_field fields[] = {
        {"core_types", DUMP_READ_CORE, DUMP_EACH},
        {"clock_freq_hz", DUMP_TO_U64_IF, offsetof(struct ptowsp_dump, clock_hz)},
    };
    DUMP_FIELDS(f, fields, to);
}

static void dump_read_swimlane(dump_file *f) {
    static const dump_field fields[] = {{"aicore_tasks", DUMP_READ_ROW, DUMP_EACH},
                                        {"metadata", DUMP_TO_CORES, 0}};
    if (!(DUMP_FIELDS(f, fields, f->dump) & 1)) {
        dump_json_fail(&f->json, "there are no aicore_tasks: this is no dump of PTO Runtime");
    }
    f->dump->has_swimlane = true;
}

// -- scope_stats.jsonl ----------------------------------------------------------------------------

// The first line has sizes, and no scope.
static void dump_read_scope(dump_file *f) {
    static const dump_field fields[] = {
        {"phase", DUMP_TO_BEGIN, offsetof(dump_scope, is_begin)},
        {"site", DUMP_TO_TEXT, offsetof(dump_scope, site)},
        {"depth", DUMP_TO_U64, offsetof(dump_scope, depth)},
        {"ring", DUMP_TO_U64, offsetof(dump_scope, ring)},
        {"task_window_end", DUMP_TO_U64, offsetof(dump_scope, task_end)},
        {"heap_end", DUMP_TO_U64, offsetof(dump_scope, heap_end)},
    };
    dump_scope scope;
    memset(&scope, 0, sizeof scope);
    const bool is_scope = DUMP_FIELDS(f, fields, &scope) & 1;
    if (scope.ring >= DUMP_RINGS || scope.depth > 64) {
        dump_json_fail(&f->json, "there is no such ring or depth");
    }
    if (is_scope) {
        DUMP_PUSH(f, scope, DUMP_ROW_MAX, scope);
    }
}

static void dump_read_scopes(dump_file *f) {
    do {
        dump_read_scope(f);
    } while (f->dump->status == PTOWSP_OK && dump_json_peek(&f->json) == DUMP_JSON_OBJECT);
}

// -- name_map.json --------------------------------------------------------------------------------

static void dump_to_names(dump_file *f, void *to) {
    char key[DUMP_JSON_TEXT];
    (void)to;
    dump_json_begin(&f->json, DUMP_JSON_OBJECT);
    while (dump_json_next(&f->json, key)) {
        dump_name name;
        memset(&name, 0, sizeof name);
        for (const char *at = key; *at >= '0' && *at <= '9' && name.id < INT32_MAX; at++) {
            name.id = 10 * name.id + (*at - '0');
        }
        dump_json_string(&f->json, name.text);
        DUMP_PUSH(f, name, DUMP_ROW_MAX, name);
    }
}

static void dump_read_names(dump_file *f) {
    static const dump_field fields[] = {{"callable_id_to_name", DUMP_TO_NAMES, 0}};
    DUMP_FIELDS(f, fields, f->dump);
}

// -- files ----------------------------------------------------------------------------------------

typedef void (*dump_read_fn)(dump_file *f);

static bool dump_file_read(dump_file *f, dump_read_fn read) {
    read(f);
    dump_json_is_done(&f->json);
    if (f->dump->status == PTOWSP_OK && f->json.wrong) {
        const unsigned long long at = f->json.offset + (uint64_t)(f->json.at - f->json.begin);
        dump_fail(f->dump, PTOWSP_INVALID_PARAMS, at, "dump: %s: byte %llu: %s", f->name, at,
                  f->json.wrong);
    }
    dump_json_close(&f->json);
    return f->dump->status == PTOWSP_OK;
}

// A file of a directory; one that is not there is fine.
static bool dump_file_open(ptowsp_dump *dump, const char *directory, const char *name,
                           dump_read_fn read, uint32_t *file_count) {
    dump_file f;
    char path[4096];
    f.dump = dump;
    f.name = name;
    const int length = snprintf(path, sizeof path, "%s/%s", directory, name);
    errno = ENOENT;
    FILE *file = length > 0 && (size_t)length < sizeof path ? fopen(path, "rb") : NULL;
    if (!file) {
        return errno == ENOENT ? true
                               : dump_fail(dump, PTOWSP_SYSTEM_FAILED, PTOWSP_NO_INDEX,
                                           "dump: %.300s: %s", path, strerror(errno));
    }
    ++*file_count;
    if (!dump_json_open_file(&f.json, file)) {
        fclose(file);
        return dump_out_of_memory(dump);
    }
    return dump_file_read(&f, read);
}

// The first name_map*.json by its name, in `name`; "" without one.
static bool dump_name_map(ptowsp_dump *dump, const char *directory, char *name, size_t size) {
    DIR *entries = opendir(directory);
    if (!entries) {
        return dump_fail(dump, PTOWSP_SYSTEM_FAILED, PTOWSP_NO_INDEX, "dump: %.300s: %s", directory,
                         strerror(errno));
    }
    name[0] = '\0';
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        const size_t length = strlen(entry->d_name);
        if (length > 12 && length < size && memcmp(entry->d_name, "name_map", 8) == 0 &&
            dump_is(entry->d_name + length - 5, ".json") &&
            (!*name || strcmp(entry->d_name, name) < 0)) {
            memcpy(name, entry->d_name, length + 1);
        }
    }
    closedir(entries);
    return true;
}

DUMP_INTERNAL bool dump_read_all(ptowsp_dump *dump, const ptowsp_dump_desc *desc) {
    char name_map[256] = "";
    const char *directory = desc->directory;
    uint32_t count = 0;
    const struct {
        const ptowsp_dump_file *text;
        const char *name, *other;
        dump_read_fn read;
    } files[] = {
        {&desc->deps, "deps.json", NULL, dump_read_deps},
        {&desc->swimlane, "chip_swimlane_records.json", NULL, dump_read_swimlane},
        {&desc->scopes, "scope_stats.jsonl", "scope_stats/scope_stats.jsonl", dump_read_scopes},
        {&desc->names, name_map, NULL, dump_read_names},
    };
    if (directory && !dump_name_map(dump, directory, name_map, sizeof name_map)) {
        return false;
    }
    for (uint32_t i = 0; i < DUMP_COUNT(files) && dump->status == PTOWSP_OK; i++) {
        const ptowsp_dump_file *text = files[i].text;
        uint32_t here = 0;
        if (directory && *files[i].name) {
            if (dump_file_open(dump, directory, files[i].name, files[i].read, &here) && !here &&
                files[i].other) {
                dump_file_open(dump, directory, files[i].other, files[i].read, &here);
            }
        } else if (!directory && text->text) {
            dump_file f;
            f.dump = dump;
            f.name = i == 3 ? "name_map.json" : files[i].name;
            dump_json_open(&f.json, text->text, text->size);
            dump_file_read(&f, files[i].read);
            here = 1;
        }
        count += i < 3 ? here : 0;
    }
    if (dump->status == PTOWSP_OK && count == 0) {
        return dump_fail(dump, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "dump: %.300s: there is no deps.json, chip_swimlane_records.json or "
                         "scope_stats.jsonl",
                         directory ? directory : "the description");
    }
    return dump->status == PTOWSP_OK;
}
