// Workloads as files: checks, prints, times, draws, saves and emits the text of a module
// (ptowsp_module_print) or a saved program. Kernels have no functions here. So runs measure time
// alone, with the cycles that the text has for a kernel, those of its tile operations in the unit
// model, or those of --cycles. Besides, it reads dumps, and measures kernels in PTO-ISA.

#include "common/command.h"
#include "common/measure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { BINDING_MAX = 64, SOURCE_MAX = 64, VALUE_MAX = 1 << 20 };

static const char help[] =
    "usage: ptowsp_tool COMMAND FILE [OPTION]...\n"
    "       ptowsp_tool measure FILE ENTRY [ARGUMENT]... [OPTION]...\n"
    "       ptowsp_tool dump check DIRECTORY [text|json|html]\n"
    "       ptowsp_tool dump explain DIRECTORY TASK\n"
    "       ptowsp_tool dump rings DIRECTORY [WINDOW HEAP POOL]\n"
    "       ptowsp_tool dump replay DIRECTORY [text|json|html|PICTURE] [KEY=VALUE]...\n"
    "\n"
    "  check     says whether the file is a module or a saved program, and compiles it\n"
    "  print     the module as text (of a saved program: its operations)\n"
    "  time      executes it for time alone: lanes, stalls, critical path\n"
    "  explain   what was decided for it: loops, memory, execution, what targets refuse\n"
    "  draw      the same as a picture, or in another form by the name of --out:\n"
    "            .svg, .csv, .json (Chrome), .perfetto, .dot (tasks and what they wait for),\n"
    "            .dump (a directory, as PTO Runtime writes them: for the command dump)\n"
    "  save      compiles it and saves the program\n"
    "  emit      writes its source tree for an NPU to the directory of --out\n"
    "  dump      reads a dump of PTO Runtime. check: tasks that no edges order and that share "
    "data;\n"
    "            exits with 1 if there are any. replay: its tasks again, in simulated time, with\n"
    "            order=observed|submitted|critical, cubes=N, vectors=N, window=N, pool=N,\n"
    "            drop=redundant|nodata, kernel=ID percent=N; PICTURE: a name as for draw;\n"
    "            control=aicpu|host|kernels, threads=N, and the costs of control in ns:\n"
    "            launch, start_..., submit, dispatch, deliver, switch, notice, poll, complete\n"
    "\n"
    "  --out PATH               where to; draw and save: standard output without it\n"
    "  --workload NAME          the first workload of a module; default: the last one\n"
    "  --lanes N                lanes of a module's schedule; default: 1\n"
    "  --cycles N               of kernels without; default: 1\n"
    "  --bind NAME=V[,V...]     a size, a symbol, an array, lengths, or the sizes of a tensor\n"
    "  --bind NAME=V,...:V,...  rows and columns of a sparse axis\n"
    "  --source NAME=FILE:FUNCTION   emit: the source of a kernel in C\n";

typedef struct tool {
    const char *command, *path, *out, *workload;
    const char *bindings[BINDING_MAX];
    uint32_t binding_count;
    ptowsp_parse_kernel kernels[SOURCE_MAX];
    uint32_t kernel_count;
    uint64_t lanes, cycles;
    char *data;
    size_t size;
    ptowsp_context *context;
    ptowsp_module *module;  // NULL: of a saved program
    ptowsp_program *program;
    ptowsp_schedule schedule;
    FILE *file;  // of --out
} tool;

// -- the command ----------------------------------------------------------------------------------

static uint64_t number_of(const char *flag, const char *text) {
    char *end;
    uint64_t number = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end) {
        command_fail("%s takes a number, not '%s'", flag, text);
    }
    return number;
}

// In place of functions that are there as sources only. Measuring time calls none.
static ptowsp_cycles never(const ptowsp_task *task, void *user) {
    (void)task;
    (void)user;
    return ptowsp_task_fail(PTOWSP_UNSUPPORTED);
}

// "name=file:function"
static void add_source(tool *t, char *text) {
    char *file = strchr(text, '='), *function = strrchr(text, ':');
    if (!file || !function || function < file) {
        command_fail("--source takes NAME=FILE:FUNCTION, not '%s'", text);
    }
    if (t->kernel_count == SOURCE_MAX) {
        command_fail("more than %d sources", SOURCE_MAX);
    }
    ptowsp_parse_kernel *kernel = &t->kernels[t->kernel_count++];
    *file = *function = '\0';
    kernel->name = text;
    kernel->fn = never;
    kernel->source.file = file + 1;
    kernel->source.fn = function + 1;
}

static void read_options(tool *t, int argc, char **argv) {
    static const char *const commands[] = {"check", "print", "time", "explain",
                                           "draw",  "save",  "emit"};
    command_begin(argc, argv);
    memset(t, 0, sizeof *t);
    t->lanes = t->cycles = 1;
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(help, stdout);
        fputs("\n", stdout);
        fputs(measure_help, stdout);
        exit(0);
    }
    if (argc < 3) {
        command_fail("a command and a file are needed; --help shows them");
    }
    t->path = argv[2];
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        t->command = strcmp(argv[1], commands[i]) == 0 ? commands[i] : t->command;
    }
    if (!t->command) {
        command_fail("there is no command '%s'; --help shows them", argv[1]);
    }
    for (int i = 3; i < argc; i += 2) {
        const char *flag = argv[i];
        char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!value) {
            command_fail("%s takes a value", flag);
        } else if (strcmp(flag, "--out") == 0) {
            t->out = value;
        } else if (strcmp(flag, "--workload") == 0) {
            t->workload = value;
        } else if (strcmp(flag, "--lanes") == 0) {
            t->lanes = number_of(flag, value);
        } else if (strcmp(flag, "--cycles") == 0) {
            t->cycles = number_of(flag, value);
        } else if (strcmp(flag, "--source") == 0) {
            add_source(t, value);
        } else if (strcmp(flag, "--bind") == 0 && t->binding_count < BINDING_MAX) {
            t->bindings[t->binding_count++] = value;
        } else {
            command_fail("there is no option %s, or there are too many", flag);
        }
    }
    if (t->cycles == 0) {
        command_fail("--cycles must be 1 or more");
    }
}

// -- the file -------------------------------------------------------------------------------------

static void read_file(tool *t) {
    FILE *file = fopen(t->path, "rb");
    size_t capacity = 1 << 16;
    t->data = (char *)command_allocate(capacity, 1);
    while (file && !feof(file) && !ferror(file)) {
        if (t->size == capacity) {
            char *grown = (char *)realloc(t->data, capacity *= 2);
            if (!grown) {
                command_fail("no memory for %s", t->path);
            }
            t->data = grown;
        }
        t->size += fread(t->data + t->size, 1, capacity - t->size, file);
    }
    if (!file || ferror(file)) {
        command_fail("%s cannot be read", t->path);
    }
    fclose(file);
}

static void make_program(tool *t) {
    static const char head[] = "ptowsp program ";
    const ptowsp_parse_desc desc = {
        .kernels = t->kernels, .kernel_count = t->kernel_count, .default_cycles = t->cycles};
    t->schedule.lane_count = (uint32_t)(t->lanes <= UINT32_MAX ? t->lanes : UINT32_MAX);
    t->schedule.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN;
    const ptowsp_program_desc compiled = {.workload = t->workload, .schedule = &t->schedule};
    bool is_saved = t->size >= sizeof head - 1 && memcmp(t->data, head, sizeof head - 1) == 0;
    ptowsp_status status =
        is_saved ? ptowsp_program_load(t->context, t->data, t->size, &desc, &t->program, NULL)
                 : ptowsp_module_parse(t->context, t->data, t->size, &desc, &t->module, NULL);
    if (status == PTOWSP_OK && !is_saved) {
        status = ptowsp_program_create(t->context, t->module, &compiled, &t->program);
    }
    if (status != PTOWSP_OK) {  // as compilers say it: path:line:column: what
        fprintf(stderr, "%s:%s%s\n", t->path, is_saved ? " " : "",
                ptowsp_context_error(t->context).text);
        exit(1);
    }
}

// -- bindings -------------------------------------------------------------------------------------

// "1,2,3" as numbers; stops at a colon, or at the end. Returns how many.
static uint64_t read_values(const char *binding, const char **text, int64_t **out_values) {
    uint64_t count = 0;
    *out_values = (int64_t *)command_allocate(strlen(*text) / 2 + 1, sizeof(int64_t));
    while (**text && **text != ':') {
        char *end;
        (*out_values)[count++] = strtoll(*text, &end, 10);
        if (end == *text || (*end && *end != ',' && *end != ':')) {
            command_fail("--bind %s: '%s' is no number", binding, *text);
        }
        *text = end + (*end == ',');
    }
    return count;
}

static const void *converted(ptowsp_dtype dtype, const int64_t *values, uint64_t count) {
    void *data = command_allocate(count + 1, 8);
    ptowsp_convert(data, dtype, values, PTOWSP_I64, count);
    return data;
}

// The axis, array, symbol or tensor of a name; false: there is none.
static bool bind_name(const tool *t, ptowsp_run *run, const char *name, const int64_t *values,
                      uint64_t count, const int64_t *columns, uint64_t column_count) {
    const ptowsp_program *p = t->program;
    for (uint32_t i = 1; i < ptowsp_program_read(p)->axis_count; i++) {
        ptowsp_axis_info axis = ptowsp_program_read(p)->axes[i];
        if (axis.name && strcmp(axis.name, name) == 0 && axis.kind == PTOWSP_AXIS_DYNAMIC) {
            command_check(t->context, ptowsp_run_bind_size(run, name, count ? values[0] : -1));
            return true;
        }
        if (axis.name && strcmp(axis.name, name) == 0 && axis.kind == PTOWSP_AXIS_SPARSE) {
            const ptowsp_csr csr = {.dtype = PTOWSP_I64,
                                    .indptr = values,
                                    .indices = columns,
                                    .row_count = count ? count - 1 : 0,
                                    .entry_count = column_count};
            command_check(t->context, ptowsp_run_bind_csr(run, name, &csr));
            return true;
        }
    }
    for (uint32_t i = 1; i < ptowsp_program_read(p)->array_count; i++) {
        ptowsp_array_info array = ptowsp_program_read(p)->arrays[i];
        if (strcmp(array.name, name) == 0) {
            ptowsp_dtype dtype = array.dtype ? array.dtype : PTOWSP_I64;
            const void *data = converted(dtype, values, count);
            command_check(t->context, array.is_lengths
                                          ? ptowsp_run_bind_lengths(run, name, dtype, data, count)
                                          : ptowsp_run_bind_array(run, name, dtype, data, count));
            return true;
        }
    }
    for (uint32_t i = 1; i < ptowsp_program_read(p)->symbol_count; i++) {
        if (strcmp(ptowsp_program_read(p)->symbols[i].name, name) == 0) {
            uint64_t value = count ? (uint64_t)values[0] : 0;
            command_check(t->context, ptowsp_run_bind_symbol(run, name, value));
            return true;
        }
    }
    for (uint32_t i = 1; i < ptowsp_program_read(p)->tensor_count; i++) {
        ptowsp_tensor_desc desc = ptowsp_program_read(p)->tensors[i].desc;
        if (strcmp(desc.name, name) == 0) {
            ptowsp_buffer buffer;
            memset(&buffer, 0, sizeof buffer);
            buffer.dtype = desc.dtype;
            buffer.rank = (uint32_t)(count <= PTOWSP_TENSOR_RANK_MAX ? count : 0);
            memcpy(buffer.shape, values, buffer.rank * sizeof buffer.shape[0]);
            command_check(t->context, ptowsp_run_bind_tensor(run, name, &buffer));
            return true;
        }
    }
    return false;
}

// Tensors of static sizes need no option: no memory is touched.
static void bind_static_tensors(const tool *t, ptowsp_run *run) {
    for (uint32_t i = 1; i < ptowsp_program_read(t->program)->tensor_count; i++) {
        const ptowsp_tensor_info info = ptowsp_program_read(t->program)->tensors[i];
        bool is_static = !info.is_transient;
        for (uint32_t j = 0; j < info.desc.rank; j++) {
            is_static = is_static && info.desc.shape[j] != PTOWSP_DYNAMIC;
        }
        if (is_static) {
            ptowsp_buffer buffer;
            memset(&buffer, 0, sizeof buffer);
            buffer.dtype = info.desc.dtype;
            command_check(t->context, ptowsp_run_bind_tensor(run, info.desc.name, &buffer));
        }
    }
}

static void bind_all(const tool *t, ptowsp_run *run) {
    bind_static_tensors(t, run);
    for (uint32_t i = 0; i < t->binding_count; i++) {
        const char *binding = t->bindings[i], *at = strchr(binding, '=');
        char name[PTOWSP_NAME_MAX + 1];
        int64_t *values, *columns;
        if (!at || at == binding || (size_t)(at - binding) >= sizeof name) {
            command_fail("--bind takes NAME=VALUES, not '%s'", binding);
        }
        memcpy(name, binding, (size_t)(at - binding));
        name[at++ - binding] = '\0';
        uint64_t count = read_values(binding, &at, &values);
        at += *at == ':';
        uint64_t column_count = read_values(binding, &at, &columns);
        if (!bind_name(t, run, name, values, count, columns, column_count)) {
            command_fail("--bind %s: nothing that can be bound has this name", binding);
        }
    }
}

// -- output ---------------------------------------------------------------------------------------

static bool write_output(void *user, const void *data, size_t size) {
    return fwrite(data, 1, size, (FILE *)user) == size;
}

static void open_file(tool *t, const char *path) {
    t->file = path ? fopen(path, "wb") : stdout;
    if (!t->file) {
        command_fail("%s cannot be written", path);
    }
}

static void open_out(tool *t) {
    open_file(t, t->out);
}

static void close_out(const tool *t) {
    if (t->file != stdout && fclose(t->file) != 0) {
        command_fail("%s could not be written", t->out);
    }
}

static ptowsp_export_format format_of(const char *path) {
    static const struct {
        char end[10];
        ptowsp_export_format format;
    } formats[] = {{".svg", PTOWSP_EXPORT_SVG},     {".csv", PTOWSP_EXPORT_CSV},
                   {".json", PTOWSP_EXPORT_CHROME}, {".perfetto", PTOWSP_EXPORT_PERFETTO},
                   {".dot", PTOWSP_EXPORT_DOT},     {".dump", PTOWSP_EXPORT_DEPS}};
    const char *end = path ? strrchr(path, '.') : ".svg";
    for (size_t i = 0; end && i < sizeof formats / sizeof formats[0]; i++) {
        if (strcmp(end, formats[i].end) == 0) {
            return formats[i].format;
        }
    }
    command_fail("--out %s: the name ends in none of .svg, .csv, .json, .perfetto, .dot, .dump",
                 path);
}

// -- commands -------------------------------------------------------------------------------------

static void check(const tool *t) {
    printf("%s: %s %s: %u kernels, %u tensors; %zu bytes compiled\n", t->path,
           t->module ? "module" : "program of module", ptowsp_program_read(t->program)->name,
           ptowsp_program_read(t->program)->kernel_count - 1,
           ptowsp_program_read(t->program)->tensor_count - 1, ptowsp_program_size(t->program));
}

static void print(const tool *t) {
    const ptowsp_output text = ptowsp_output_to_file(stdout);
    if (t->module) {
        ptowsp_module_print(t->module, text);
    } else {
        ptowsp_program_print(t->program, text);
    }
}

// The files of a dump, in the directory of --out.
static void draw_dump(tool *t, ptowsp_run *run) {
    static const struct {
        const char *name;
        ptowsp_export_format format;
    } files[] = {{"deps.json", PTOWSP_EXPORT_DEPS},
                 {"chip_swimlane_records.json", PTOWSP_EXPORT_SWIMLANE},
                 {"name_map.json", PTOWSP_EXPORT_NAMES}};
    char path[4096];
    if (mkdir(t->out, 0777) != 0 && errno != EEXIST) {
        command_fail("%s cannot be made", t->out);
    }
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if ((size_t)snprintf(path, sizeof path, "%s/%s", t->out, files[i].name) >= sizeof path) {
            command_fail("--out %s: the name is too long", t->out);
        }
        open_file(t, path);
        const ptowsp_output output = {.write = write_output, .user = t->file};
        command_check(t->context, ptowsp_run_export(run, files[i].format, NULL, output));
        close_out(t);
    }
}

static void execute(tool *t) {
    const ptowsp_output text = ptowsp_output_to_file(stdout);
    const ptowsp_record_options edges = {.level = PTOWSP_RECORD_EDGES};
    ptowsp_run_options options;
    ptowsp_run *run;
    memset(&options, 0, sizeof options);
    options.mode = PTOWSP_RUN_TIME_ONLY;
    options.record_tasks = true;
    command_check(t->context, ptowsp_run_create(t->context, t->program, &run));
    bind_all(t, run);
    if (t->command[0] == 'd') {
        const ptowsp_export_format format = format_of(t->out);
        if (format == PTOWSP_EXPORT_DOT || format == PTOWSP_EXPORT_DEPS) {
            command_check(t->context, ptowsp_run_record(run, &edges));
        }
        command_check(t->context, ptowsp_run_execute(run, &options));
        if (format == PTOWSP_EXPORT_DEPS) {
            draw_dump(t, run);
        } else {
            const ptowsp_output output = {.write = write_output, .user = (open_out(t), t->file)};
            command_check(t->context, ptowsp_run_export(run, format, NULL, output));
            close_out(t);
        }
    } else if (t->command[1] == 'x') {
        const ptowsp_output output = {.write = write_output, .user = stdout};
        command_check(t->context, ptowsp_run_execute(run, &options));
        command_check(t->context, ptowsp_run_export_decisions(run, PTOWSP_REPORT_TEXT, output));
    } else {
        ptowsp_fingerprint fingerprint;
        command_check(t->context, ptowsp_run_execute(run, &options));
        command_check(t->context, ptowsp_run_fingerprint(run, &fingerprint));
        ptowsp_run_print(run, text);
        ptowsp_fingerprint_print(&fingerprint, text);
    }
    ptowsp_run_destroy(run);
}

static void save(tool *t) {
    const ptowsp_program_desc compiled = {.workload = t->workload, .schedule = &t->schedule};
    if (!t->module) {
        command_fail("%s is saved already", t->path);
    }
    open_out(t);
    const ptowsp_output text = ptowsp_output_to_file(t->file);
    command_check(t->context, ptowsp_program_save(t->context, t->module, &compiled, text));
    close_out(t);
}

static void emit(const tool *t) {
    ptowsp_npu_desc desc;
    memset(&desc, 0, sizeof desc);
    if (!t->out) {
        command_fail("emit takes a directory, --out");
    }
    desc.directory = t->out;
    desc.is_replacing = true;
    desc.is_for_host = true;
    command_check(t->context, ptowsp_npu_emit(t->context, t->program, &desc));
    printf("%s is written; its README.md has the commands\n", t->out);
}

// -- dumps of PTO Runtime -------------------------------------------------------------------------

static int dump_check(ptowsp_context *context, ptowsp_dump *dump, const char *form) {
    static const char *const forms[] = {"text", "json", "html"};
    const ptowsp_output text = ptowsp_output_to_file(stdout);
    uint32_t format = 0;
    while (format < 3 && strcmp(form, forms[format]) != 0) {
        format++;
    }
    if (format == 3) {
        command_fail("there is no form '%s': text, json or html", form);
    }
    ptowsp_dump_report report;
    command_check(context, ptowsp_dump_check(dump, &report));
    command_check(context, ptowsp_dump_print(dump, (ptowsp_dump_format)format, text));
    return report.is_clean ? 0 : 1;
}

// One number, or four with commas.
static void read_four(const char *text, uint64_t *values) {
    const char *at = text;
    for (int i = 0; i < 4; i++) {
        char *end;
        values[i] = strtoull(at, &end, 10);
        if (i == 0 && end > at && !*end) {
            values[1] = values[2] = values[3] = values[0];
            return;
        }
        if (end == at || *end != (i < 3 ? ',' : '\0')) {
            command_fail("'%s': one number, or four with commas", text);
        }
        at = end + 1;
    }
}

static void print_four(const char *name, const uint64_t *values, const char *end) {
    printf("    \"%s\": [%llu, %llu, %llu, %llu]%s\n", name, (unsigned long long)values[0],
           (unsigned long long)values[1], (unsigned long long)values[2],
           (unsigned long long)values[3], end);
}

static int dump_rings(ptowsp_context *context, ptowsp_dump *dump, char **sizes) {
    static const char *const errors[] = {"passes",
                                         "1, SCOPE_DEADLOCK",
                                         "2, HEAP_RING_DEADLOCK",
                                         "3, FLOW_CONTROL_DEADLOCK",
                                         "4, DEP_POOL_OVERFLOW",
                                         "11, TENSORMAP_OVERFLOW"};
    ptowsp_dump_rings rings;
    ptowsp_dump_rings_result result;
    if (!sizes) {
        command_check(context, ptowsp_dump_rings_least(dump, &rings));
        printf("\"runtime_env\": {\n");
        print_four("ring_task_window", rings.task_window, ",");
        print_four("ring_heap", rings.heap, ",");
        print_four("ring_dep_pool", rings.dep_pool, "");
        printf("}\n");
        return 0;
    }
    read_four(sizes[0], rings.task_window);
    read_four(sizes[1], rings.heap);
    read_four(sizes[2], rings.dep_pool);
    command_check(context, ptowsp_dump_rings_try(dump, &rings, &result));
    printf("%s%s", result.error ? "error " : "",
           errors[result.error <= PTOWSP_DUMP_DEP_POOL_OVERFLOW ? (int)result.error : 5]);
    if (result.error) {
        printf(" at task %llu of ring %u, which task %llu holds: its scope of depth %u%s%s is open",
               (unsigned long long)result.task, (unsigned)result.ring,
               (unsigned long long)result.holder, (unsigned)result.depth, *result.site ? ", " : "",
               result.site);
    }
    printf("\n");
    return result.error != PTOWSP_DUMP_RINGS_PASS;
}

static ptowsp_dump_order order_of(const char *text) {
    static const char *const orders[] = {"observed", "submitted", "critical"};
    for (int i = 0; i < PTOWSP_DUMP_ORDER_COUNT; i++) {
        if (strcmp(text, orders[i]) == 0) {
            return (ptowsp_dump_order)i;
        }
    }
    command_fail("order=%s: observed, submitted or critical", text);
}

// Control with its measured costs; the clock is the dump's.
static ptowsp_control control_of(const char *text) {
    static const char *const names[] = {"none", "host", "aicpu", "kernels"};
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(text, names[i]) == 0) {
            ptowsp_control control = ptowsp_control_make((ptowsp_control_by)i, PTOWSP_MODEL_910B);
            control.clock_mhz = 0;
            return control;
        }
    }
    command_fail("control=%s: aicpu, host or kernels", text);
    return ptowsp_control_make(PTOWSP_CONTROL_NONE, PTOWSP_MODEL_910B);
}

// A KEY=VALUE about control, which is that of AICPUs if nothing has been said.
static bool read_control(const char *word, size_t length, const char *value,
                         ptowsp_control *control) {
    ptowsp_control changed = control->by == PTOWSP_CONTROL_NONE ? control_of("aicpu") : *control;
    bool is_read = false;
    if (strncmp(word, "threads=", 8) == 0) {
        const uint64_t number = number_of("threads", value);
        changed.threads = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
        is_read = true;
    }
    for (int i = 0; i < PTOWSP_CONTROL_COST_COUNT && !is_read; i++) {
        const char *name = ptowsp_control_cost_name((ptowsp_control_cost)i);
        if (strncmp(word, name, length) == 0 && !name[length]) {
            changed.cost_ns[i] = number_of(name, value);
            is_read = true;
        }
    }
    *control = is_read ? changed : *control;
    return is_read;
}

// One KEY=VALUE of a replay.
static void read_question(const char *word, ptowsp_dump_replay *how) {
    const size_t length = strcspn(word, "=");
    const char *value = word + length + (word[length] == '=');
    const struct {
        const char *key;
        uint32_t *to;
    } numbers[] = {{"cubes", &how->cube_cores},
                   {"vectors", &how->vector_cores},
                   {"window", &how->task_window},
                   {"pool", &how->dep_pool},
                   {"percent", &how->percent}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strncmp(word, numbers[i].key, length) == 0 && !numbers[i].key[length]) {
            const uint64_t number = number_of(numbers[i].key, value);
            *numbers[i].to = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
            return;
        }
    }
    if (strncmp(word, "control=", 8) == 0) {
        how->control = control_of(value);
    } else if (read_control(word, length, value, &how->control)) {
        return;
    } else if (strncmp(word, "order=", 6) == 0) {
        how->order = order_of(value);
    } else if (strncmp(word, "kernel=", 7) == 0) {
        how->kernel = (int64_t)(number_of("kernel", value) & INT64_MAX);
    } else if (strcmp(word, "drop=redundant") == 0) {
        how->drops_redundant = true;
    } else if (strcmp(word, "drop=nodata") == 0) {
        how->drops_no_data = true;
    } else {
        command_fail("replay: '%s' is no question; --help shows them", word);
    }
}

static void dump_replay(ptowsp_context *context, ptowsp_dump *dump, char **words, int count) {
    static const char *const forms[] = {"text", "json", "html"};
    const ptowsp_output text = ptowsp_output_to_file(stdout);
    ptowsp_dump_replay how;
    const char *form = count && !strchr(words[0], '=') ? words[0] : "text";
    const int first = count && !strchr(words[0], '=');
    memset(&how, 0, sizeof how);
    for (int i = first; i < count; i++) {
        read_question(words[i], &how);
    }
    for (uint32_t i = 0; i < 3; i++) {
        if (strcmp(form, forms[i]) == 0) {
            command_check(context, ptowsp_dump_replay_print(dump, count > first ? &how : NULL,
                                                            (ptowsp_dump_format)i, text));
            return;
        }
    }
    tool t;
    memset(&t, 0, sizeof t);
    t.out = form;
    const ptowsp_export_format format = format_of(form);
    if (format == PTOWSP_EXPORT_DOT || format == PTOWSP_EXPORT_DEPS) {
        command_fail("%s: a replay is drawn as .svg, .csv, .json or .perfetto", form);
    }
    open_out(&t);
    const ptowsp_output output = {.write = write_output, .user = t.file};
    command_check(context, ptowsp_dump_replay_export(dump, &how, format, NULL, output));
    close_out(&t);
}

// "dump COMMAND DIRECTORY ..."; the exit status.
static int dump_main(int argc, char **argv) {
    ptowsp_context *context;
    ptowsp_dump *dump;
    ptowsp_dump_desc desc;
    memset(&desc, 0, sizeof desc);
    command_begin(argc, argv);
    if (argc < 4) {
        command_fail("dump takes a command and a directory; --help shows them");
    }
    desc.directory = argv[3];
    if (ptowsp_context_create(NULL, &context) != PTOWSP_OK) {
        command_fail("no memory");
    }
    command_check(context, ptowsp_dump_open(context, &desc, &dump));
    int status = 0;
    if (strcmp(argv[2], "check") == 0 && argc <= 5) {
        status = dump_check(context, dump, argc == 5 ? argv[4] : "text");
    } else if (strcmp(argv[2], "explain") == 0 && argc == 5) {
        const ptowsp_output text = ptowsp_output_to_file(stdout);
        command_check(context, ptowsp_dump_explain(dump, number_of("explain", argv[4]), text));
    } else if (strcmp(argv[2], "rings") == 0 && (argc == 4 || argc == 7)) {
        status = dump_rings(context, dump, argc == 7 ? argv + 4 : NULL);
    } else if (strcmp(argv[2], "replay") == 0) {
        dump_replay(context, dump, argv + 4, argc - 4);
    } else {
        command_fail("there is no command 'dump %s' with %d words; --help shows them", argv[2],
                     argc - 3);
    }
    command_flush();
    ptowsp_dump_close(dump);
    ptowsp_context_destroy(context);
    return status;
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "dump") == 0) {
        return dump_main(argc, argv);
    }
    if (argc > 1 && strcmp(argv[1], "measure") == 0) {
        return measure_main(argc, argv);
    }
    static tool t;
    read_options(&t, argc, argv);
    read_file(&t);
    if (ptowsp_context_create(NULL, &t.context) != PTOWSP_OK) {
        command_fail("no memory");
    }
    make_program(&t);
    if (strcmp(t.command, "check") == 0) {
        check(&t);
    } else if (strcmp(t.command, "print") == 0) {
        print(&t);
    } else if (strcmp(t.command, "save") == 0) {
        save(&t);
    } else if (strcmp(t.command, "emit") == 0) {
        emit(&t);
    } else {
        execute(&t);  // time, explain, draw
    }
    command_flush();
    ptowsp_program_destroy(t.program);
    ptowsp_module_destroy(t.module);
    ptowsp_context_destroy(t.context);
    free(t.data);
    return 0;
}
