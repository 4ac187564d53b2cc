// The four files, into tables as they come; ids are resolved afterwards (dump_link.c).
//
// What is not needed is passed over, so that files may have more than is known here. Words of an
// enumeration that are not known are kept as text, and counted.

#if !defined(_POSIX_C_SOURCE) && !defined(_GNU_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include "dump.h"

#include <dirent.h>
#include <errno.h>

// A file while it is read.
typedef struct dump_file {
    ptowsp_dump *dump;
    dump_json json;
    const char *name;
} dump_file;

#define DUMP_ADD(dump, what, limit)                                                                \
    ((dump)->what##_count >= (limit)                                                               \
         ? dump_fail(dump, PTOWSP_LIMIT_EXCEEDED, (limit), "dump: more than %u %ss",               \
                     (unsigned)(limit), #what)                                                     \
         : dump_grow((void **)&(dump)->what##s, (dump)->what##_count, &(dump)->what##_capacity,    \
                     sizeof *(dump)->what##s) ||                                                   \
               dump_out_of_memory(dump))

static bool dump_is(const char *key, const char *name) {
    return strcmp(key, name) == 0;
}

// Stops the reader as well, once the dump has failed.
static bool dump_file_fail(dump_file *f) {
    return dump_json_fail(&f->json, "is not read further");
}

// The number of a word: that of `names`, or one after them.
static uint16_t dump_word_of(dump_file *f, const char *what, const char *const *names,
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
    if (at == dump->word_count && !f->json.wrong) {
        if (!DUMP_ADD(dump, word, DUMP_WORD_MAX)) {
            dump_file_fail(f);
            return (uint16_t)count;
        }
        memset(&dump->words[at], 0, sizeof dump->words[at]);
        memcpy(dump->words[at].text, text, sizeof text);
        dump->words[at].what = what;
        dump->word_count++;
    }
    if (at < dump->word_count) {
        dump->words[at].count++;
    }
    return (uint16_t)(count + at);
}

#define DUMP_NAME(name, ...) #name,
static const char *const dump_types[] = {DUMP_TYPES(DUMP_NAME)};
static const char *const dump_dtypes[] = {DUMP_DTYPES(DUMP_NAME)};
#undef DUMP_NAME
#define DUMP_BYTES(name, bytes) bytes,
static const uint8_t dump_dtype_bytes[] = {DUMP_DTYPES(DUMP_BYTES)};
#undef DUMP_BYTES
static const char *const dump_sources[] = {"explicit", "creator", "tensormap"};

#define DUMP_COUNT(array) (uint32_t)(sizeof(array) / sizeof((array)[0]))

static uint8_t dump_read_dtype(dump_file *f) {
    const uint32_t count = DUMP_COUNT(dump_dtypes);
    const uint16_t at = dump_word_of(f, "element type", dump_dtypes, count);
    return at < count ? dump_dtype_bytes[at] : 0;
}

static const char *dump_word_text(const ptowsp_dump *dump, const char *const *names, uint32_t count,
                                  uint16_t word) {
    return word < count ? names[word] : dump->words[word - count].text;
}

DUMP_INTERNAL const char *dump_type_name(const ptowsp_dump *dump, uint16_t type) {
    return dump_word_text(dump, dump_types, DUMP_TYPE_COUNT, type);
}

DUMP_INTERNAL const char *dump_source_name(const ptowsp_dump *dump, uint16_t source) {
    return dump_word_text(dump, dump_sources, DUMP_SOURCE_COUNT, source);
}

// Integers up to `capacity`. Returns how many, of those too many as well.
static uint32_t dump_read_integers(dump_file *f, int64_t *values, uint32_t capacity) {
    uint32_t count = 0;
    dump_json_begin(&f->json, DUMP_JSON_ARRAY);
    while (dump_json_next(&f->json, NULL)) {
        const int64_t value = dump_json_i64(&f->json);
        if (count < capacity) {
            values[count] = value;
        }
        count++;
    }
    return count;
}

// -- deps.json ------------------------------------------------------------------------------------

static bool dump_check_rank(dump_file *f, const dump_arg *arg, uint32_t shapes, uint32_t strides) {
    if (f->json.wrong) {
        return false;
    }
    if (shapes > DUMP_DIMS) {
        return dump_json_fail(&f->json, "a tensor has more than 5 dimensions");
    }
    if (shapes != strides) {
        return dump_json_fail(&f->json, "shape and strides differ in length");
    }
    for (uint32_t i = 0; i < shapes; i++) {
        if (arg->shape[i] > INT64_MAX) {
            return dump_json_fail(&f->json, "a shape is negative");
        }
    }
    return true;
}

static void dump_read_arg(dump_file *f) {
    ptowsp_dump *dump = f->dump;
    char key[DUMP_JSON_TEXT];
    dump_arg arg;
    int64_t shape[DUMP_DIMS] = {0};
    uint32_t shapes = 0, strides = 0;
    memset(&arg, 0, sizeof arg);
    arg.type = DUMP_TYPE_NO_DEP;
    arg.tensor = arg.region = DUMP_NONE;
    dump_json_begin(&f->json, DUMP_JSON_OBJECT);
    while (dump_json_next(&f->json, key)) {
        if (dump_is(key, "type")) {
            arg.type = dump_word_of(f, "argument type", dump_types, DUMP_TYPE_COUNT);
        } else if (dump_is(key, "tensor_id")) {
            arg.tensor_id = dump_json_u64(&f->json);
        } else if (dump_is(key, "dtype")) {
            arg.element_bytes = dump_read_dtype(f);
        } else if (dump_is(key, "shape")) {
            shapes = dump_read_integers(f, shape, DUMP_DIMS);
        } else if (dump_is(key, "strides")) {
            strides = dump_read_integers(f, arg.strides, DUMP_DIMS);
        } else if (dump_is(key, "start_offset")) {
            arg.offset = dump_json_u64(&f->json);
        } else {
            dump_json_skip(&f->json);
        }
    }
    for (uint32_t i = 0; i < DUMP_DIMS; i++) {
        arg.shape[i] = (uint64_t)shape[i];
    }
    arg.rank = (uint8_t)(shapes < DUMP_DIMS ? shapes : DUMP_DIMS);
    if (!dump_check_rank(f, &arg, shapes, strides) || !DUMP_ADD(dump, arg, DUMP_ARG_MAX)) {
        dump_file_fail(f);
        return;
    }
    dump->args[dump->arg_count++] = arg;
}

static void dump_read_task(dump_file *f) {
    ptowsp_dump *dump = f->dump;
    char key[DUMP_JSON_TEXT];
    dump_task task;
    int64_t kernels[3] = {-1, -1, -1};
    bool has_id = false;
    memset(&task, 0, sizeof task);
    task.first_arg = dump->arg_count;
    dump_json_begin(&f->json, DUMP_JSON_OBJECT);
    while (dump_json_next(&f->json, key)) {
        if (dump_is(key, "task_id")) {
            task.id = dump_json_u64(&f->json);
            has_id = true;
        } else if (dump_is(key, "scope")) {
            char text[DUMP_JSON_TEXT];
            task.is_auto = dump_json_string(&f->json, text) && dump_is(text, "auto");
        } else if (dump_is(key, "kernel_ids")) {
            dump_read_integers(f, kernels, 3);
        } else if (dump_is(key, "args")) {
            dump_json_begin(&f->json, DUMP_JSON_ARRAY);
            while (dump_json_next(&f->json, NULL)) {
                dump_read_arg(f);
            }
        } else {
            dump_json_skip(&f->json);
        }
    }
    if (!has_id) {
        dump_json_fail(&f->json, "a task has no task_id");
    }
    if (f->json.wrong || !DUMP_ADD(dump, task, PTOWSP_DUMP_TASK_MAX)) {
        dump_file_fail(f);
        return;
    }
    for (int i = 0; i < 3; i++) {
        task.kernels[i] = kernels[i] >= 0 && kernels[i] <= INT32_MAX ? (int32_t)kernels[i] : -1;
    }
    task.arg_count = dump->arg_count - task.first_arg;
    dump->tasks[dump->task_count++] = task;
}

static void dump_read_tensor(dump_file *f) {
    ptowsp_dump *dump = f->dump;
    char key[DUMP_JSON_TEXT];
    dump_tensor tensor;
    memset(&tensor, 0, sizeof tensor);
    dump_json_begin(&f->json, DUMP_JSON_OBJECT);
    while (dump_json_next(&f->json, key)) {
        if (dump_is(key, "tensor_id")) {
            tensor.id = dump_json_u64(&f->json);
        } else if (dump_is(key, "buffer_addr")) {
            tensor.address = dump_json_u64(&f->json);
        } else if (dump_is(key, "buffer_numel")) {
            tensor.element_count = dump_json_u64(&f->json);
        } else if (dump_is(key, "dtype")) {
            tensor.element_bytes = dump_read_dtype(f);
        } else {
            dump_json_skip(&f->json);
        }
    }
    if (f->json.wrong || !DUMP_ADD(dump, tensor, DUMP_ROW_MAX)) {
        dump_file_fail(f);
        return;
    }
    dump->tensors[dump->tensor_count++] = tensor;
}

static void dump_read_edge(dump_file *f) {
    ptowsp_dump *dump = f->dump;
    char key[DUMP_JSON_TEXT];
    dump_edge edge;
    uint32_t ends = 0;
    memset(&edge, 0, sizeof edge);
    edge.arg = -1;
    dump_json_begin(&f->json, DUMP_JSON_OBJECT);
    while (dump_json_next(&f->json, key)) {
        if (dump_is(key, "pred")) {
            edge.pred_id = dump_json_u64(&f->json);
            ends |= 1;
        } else if (dump_is(key, "succ")) {
            edge.succ_id = dump_json_u64(&f->json);
            ends |= 2;
        } else if (dump_is(key, "arg")) {
            const int64_t arg = dump_json_i64(&f->json);
            edge.arg = arg >= 0 && arg < INT32_MAX ? (int32_t)arg : -1;
        } else if (dump_is(key, "source")) {
            edge.source = dump_word_of(f, "source of an edge", dump_sources, DUMP_SOURCE_COUNT);
        } else {
            dump_json_skip(&f->json);
        }
    }
    if (ends != 3) {
        dump_json_fail(&f->json, "an edge lacks pred or succ");
    }
    if (f->json.wrong || !DUMP_ADD(dump, edge, DUMP_EDGE_MAX)) {
        dump_file_fail(f);
        return;
    }
    dump->edges[dump->edge_count++] = edge;
}

static void dump_read_list(dump_file *f, void (*read)(dump_file *f)) {
    dump_json_begin(&f->json, DUMP_JSON_ARRAY);
    while (dump_json_next(&f->json, NULL)) {
        read(f);
    }
}

static void dump_read_deps(dump_file *f) {
    char key[DUMP_JSON_TEXT];
    bool has_tasks = false;
    dump_json_begin(&f->json, DUMP_JSON_OBJECT);
    while (dump_json_next(&f->json, key)) {
        if (dump_is(key, "tasks")) {
            dump_read_list(f, dump_read_task);
            has_tasks = true;
        } else if (dump_is(key, "tensors")) {
            dump_read_list(f, dump_read_tensor);
        } else if (dump_is(key, "edges")) {
            dump_read_list(f, dump_read_edge);
        } else {
            dump_json_skip(&f->json);
        }
    }
    if (!has_tasks) {
        dump_json_fail(&f->json, "there are no tasks: this is no dump of PTO Runtime");
    }
    f->dump->has_deps = true;
}

// -- chip_swimlane_records.json -------------------------------------------------------------------

// [core, task, token, start, end, ...]
static void dump_read_row(dump_file *f) {
    ptowsp_dump *dump = f->dump;
    dump_row row;
    memset(&row, 0, sizeof row);
    uint32_t count = 0;
    dump_json_begin(&f->json, DUMP_JSON_ARRAY);
    for (; dump_json_next(&f->json, NULL); count++) {
        const uint64_t value = dump_json_u64(&f->json);
        row.core = count == 0 ? (uint32_t)(value < DUMP_NONE ? value : DUMP_NONE) : row.core;
        row.task_id = count == 1 ? value : row.task_id;
        row.start = count == 3 ? value : row.start;
        row.end = count == 4 ? value : row.end;
    }
    if (count < 5) {
        dump_json_fail(&f->json, "a row of aicore_tasks has less than 5 numbers");
    }
    if (row.end < row.start) {
        dump_json_fail(&f->json, "a task ends before it starts");
    }
    if (f->json.wrong || !DUMP_ADD(dump, row, DUMP_ROW_MAX)) {
        dump_file_fail(f);
        return;
    }
    dump->rows[dump->row_count++] = row;
}

static void dump_read_metadata(dump_file *f) {
    char key[DUMP_JSON_TEXT];
    dump_json_begin(&f->json, DUMP_JSON_OBJECT);
    while (dump_json_next(&f->json, key)) {
        if (dump_is(key, "clock_freq_hz")) {
            f->dump->clock_hz = dump_json_u64(&f->json);
        } else {
            dump_json_skip(&f->json);
        }
    }
}

static void dump_read_swimlane(dump_file *f) {
    char key[DUMP_JSON_TEXT];
    bool has_rows = false;
    dump_json_begin(&f->json, DUMP_JSON_OBJECT);
    while (dump_json_next(&f->json, key)) {
        if (dump_is(key, "metadata")) {
            dump_read_metadata(f);
        } else if (dump_is(key, "aicore_tasks")) {
            dump_read_list(f, dump_read_row);
            has_rows = true;
        } else {
            dump_json_skip(&f->json);
        }
    }
    if (!has_rows) {
        dump_json_fail(&f->json, "there are no aicore_tasks: this is no dump of PTO Runtime");
    }
    f->dump->has_swimlane = true;
}

// -- scope_stats.jsonl ----------------------------------------------------------------------------

static void dump_read_scope(dump_file *f) {
    static const char *const numbers[] = {"depth",          "ring",           "task_window_start",
                                          "heap_end",       "dep_pool_start", "dep_pool_end",
                                          "task_window_end"};
    ptowsp_dump *dump = f->dump;
    char key[DUMP_JSON_TEXT], text[DUMP_JSON_TEXT];
    uint64_t values[DUMP_COUNT(numbers)] = {0};
    dump_scope scope;
    memset(&scope, 0, sizeof scope);
    bool is_scope = false;
    dump_json_begin(&f->json, DUMP_JSON_OBJECT);
    while (dump_json_next(&f->json, key)) {
        uint32_t at = 0;
        while (at < DUMP_COUNT(numbers) && !dump_is(key, numbers[at])) {
            at++;
        }
        if (at < DUMP_COUNT(numbers)) {
            values[at] = dump_json_u64(&f->json);
        } else if (dump_is(key, "phase")) {
            scope.is_begin = dump_json_string(&f->json, text) && dump_is(text, "begin");
            is_scope = true;
        } else if (dump_is(key, "site")) {
            dump_json_string(&f->json, text);
            memcpy(scope.site, text, sizeof scope.site - 1);
        } else {
            dump_json_skip(&f->json);
        }
    }
    if (values[1] >= DUMP_RINGS || values[0] > 64) {
        dump_json_fail(&f->json, "there is no such ring or depth");
    }
    if (f->json.wrong || !is_scope || !DUMP_ADD(dump, scope, DUMP_ROW_MAX)) {
        return;  // the first line has sizes, and no scope
    }
    scope.depth = (uint32_t)values[0];
    scope.ring = (uint32_t)values[1];
    scope.task_start = values[2];
    scope.heap_end = values[3];
    scope.pool_start = values[4];
    scope.pool_end = values[5];
    scope.task_end = values[6];
    dump->scopes[dump->scope_count++] = scope;
}

// A value to a line.
static void dump_read_scopes(dump_file *f) {
    do {
        dump_read_scope(f);
    } while (f->dump->status == PTOWSP_OK && dump_json_peek(&f->json) == DUMP_JSON_OBJECT);
}

// -- name_map.json --------------------------------------------------------------------------------

static void dump_read_name(dump_file *f, const char *key) {
    ptowsp_dump *dump = f->dump;
    dump_name name;
    memset(&name, 0, sizeof name);
    for (const char *at = key; *at >= '0' && *at <= '9' && name.id < INT32_MAX; at++) {
        name.id = 10 * name.id + (*at - '0');
    }
    if (!dump_json_string(&f->json, name.text) || !DUMP_ADD(dump, name, DUMP_ROW_MAX)) {
        dump_file_fail(f);
        return;
    }
    dump->names[dump->name_count++] = name;
}

static void dump_read_names(dump_file *f) {
    char key[DUMP_JSON_TEXT];
    dump_json_begin(&f->json, DUMP_JSON_OBJECT);
    while (dump_json_next(&f->json, key)) {
        if (!dump_is(key, "callable_id_to_name")) {
            dump_json_skip(&f->json);
            continue;
        }
        dump_json_begin(&f->json, DUMP_JSON_OBJECT);
        while (dump_json_next(&f->json, key)) {
            dump_read_name(f, key);
        }
    }
}

// -- files ----------------------------------------------------------------------------------------

typedef void (*dump_read_fn)(dump_file *f);

static bool dump_file_read(dump_file *f, dump_read_fn read) {
    read(f);
    dump_json_is_done(&f->json);
    if (f->dump->status == PTOWSP_OK && f->json.wrong) {
        const unsigned long long at = dump_json_offset(&f->json);
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
    FILE *file = length > 0 && (size_t)length < sizeof path ? fopen(path, "rb") : NULL;
    if (!file) {
        return true;
    }
    ++*file_count;
    if (!dump_json_open_file(&f.json, file)) {
        fclose(file);
        return dump_out_of_memory(dump);
    }
    return dump_file_read(&f, read);
}

// The first name_map*.json by its name, in `name`; "" if there is none.
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
