// Executing changes data, so everything that tasks write is copied first, and put back before each
// execution. What that is, the program says itself (appendix A of ptowsp.h).

#include "emit.h"

#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { THREADS_MAX = 4, RING_SMALL = 3 };

static const char help_text[] =
    "Writes the source tree of a workload, builds it, and compares it with the library.\n"
    "  --directory DIR   where the tree goes, in place of an older one (build/emit/...)\n"
    "  --cache DIR       where it is built ($XDG_CACHE_HOME/ptowsp or ~/.cache/ptowsp)\n"
    "  --record DIR      records the first of the runs, for the tree's run --check\n"
    "  --simpler DIR     writes the first of the runs as a test of PTO Runtime, and nothing else\n"
    "  --compiler NAME   a C++ compiler ($CXX or c++)\n"
    "  --options TEXT    its options (-O1)\n";

void emit_parse(emit *e, const char *name, int argc, char **argv) {
    memset(e, 0, sizeof *e);
    e->name = name;
    e->is_good = true;
    const command_text texts[] = {{"--directory", &e->directory}, {"--cache", &e->cache},
                                  {"--record", &e->record},       {"--simpler", &e->simpler},
                                  {"--compiler", &e->compiler},   {"--options", &e->options}};
    command_parse_texts(argc, argv, help_text, NULL, 0, texts, sizeof texts / sizeof *texts);
}

// Makes the directories above a path.
static void make_parents(const char *path) {
    size_t size = strlen(path) + 1;
    char *above = (char *)command_allocate(size, 1);
    memcpy(above, path, size);
    for (char *at = above + 1; *at; at++) {
        if (*at == '/') {
            *at = '\0';
            if (mkdir(above, 0777) != 0 && errno != EEXIST) {
                command_fail("cannot make %s: %s", above, strerror(errno));
            }
            *at = '/';
        }
    }
    free(above);
}

static ptowsp_npu *build(const emit *e, const ptowsp_program *program) {
    const ptowsp_npu_build_desc desc = {
        .cache_directory = e->cache, .compiler = e->compiler, .options = e->options};
    ptowsp_npu *npu;
    command_check(e->context, ptowsp_npu_build(e->context, program, &desc, &npu));
    return npu;
}

void emit_build(emit *e, ptowsp_context *context, const ptowsp_program *program) {
    char standard[256];
    e->context = context;
    if (e->simpler) {
        return;
    }
    snprintf(standard, sizeof standard, "build/emit/%s", e->name);
    const ptowsp_npu_desc desc = {.directory = e->directory ? e->directory : standard,
                                  .is_replacing = true,
                                  .is_for_host = true};
    make_parents(desc.directory);
    command_check(context, ptowsp_npu_emit(context, program, &desc));
    printf("  tree      %s\n", desc.directory);
    fflush(stdout);
    e->npu = build(e, program);
    printf("  built     %s%s\n", ptowsp_npu_directory(e->npu),
           ptowsp_npu_was_cached(e->npu) ? ", which was there" : "");
    printf("\n%-24s %8s %10s  %s\n", "", "tasks", "cycles",
           "by the tree, with 1 to 4 scheduler threads");
}

// -- data that is written -------------------------------------------------------------------------

// A tensor's memory from its first to its last byte; strides are not negative here.
typedef struct memory {
    char *data, *before, *wanted;
    size_t size;
} memory;

static memory memory_of(const ptowsp_run *run, uint32_t tensor) {
    ptowsp_buffer buffer;
    memory m = {0};
    if (!ptowsp_program_read(ptowsp_run_program(run))->tensors[tensor].is_written ||
        !ptowsp_run_bound_tensor(run, tensor, &buffer)) {
        return m;
    }
    int64_t last = 0;
    for (uint32_t i = 0; i < buffer.rank; i++) {
        if (buffer.shape[i] == 0) {
            return m;
        }
        last += (buffer.shape[i] - 1) * buffer.strides[i];
    }
    m.data = (char *)buffer.data;
    m.size = (size_t)(last + 1) * ptowsp_dtype_size(buffer.dtype);
    m.before = (char *)command_allocate(m.size, 1);
    m.wanted = (char *)command_allocate(m.size, 1);
    memcpy(m.before, m.data, m.size);
    return m;
}

static void restore(const memory *memories, uint32_t count) {
    for (uint32_t i = 1; i < count; i++) {
        if (memories[i].size) {
            memcpy(memories[i].data, memories[i].before, memories[i].size);
        }
    }
}

static bool is_as_wanted(const memory *memories, uint32_t count) {
    bool is_same = true;
    for (uint32_t i = 1; i < count; i++) {
        is_same &= memories[i].size == 0 ||
                   memcmp(memories[i].data, memories[i].wanted, memories[i].size) == 0;
    }
    return is_same;
}

// -- comparing ------------------------------------------------------------------------------------

// Executes as the tree does; prints a line about one ring, for all numbers of threads.
static bool compare_ring(const emit *e, ptowsp_run *run, ptowsp_model model, uint32_t ring,
                         const memory *memories, uint32_t count) {
    const ptowsp_run_stats *stats = ptowsp_run_result(run);
    bool is_same_data = true, is_same_time = true, is_bounded = true;
    for (uint32_t threads = 1; threads <= THREADS_MAX; threads++) {
        const ptowsp_npu_options options = {
            .aicpu_count = threads, .ring_size = ring, .cost = {.model = model}};
        ptowsp_npu_result result;
        restore(memories, count);
        command_check(e->context, ptowsp_npu_execute(e->npu, run, &options, NULL, 0, &result));
        is_same_data &= is_as_wanted(memories, count);
        is_same_time &= result.makespan_cycles == stats->makespan_cycles &&
                        result.task_count == stats->task_count;
        is_bounded &= ring == 0 || result.in_flight_max <= ring;
    }
    printf("%s, %s%s\n", is_same_data ? "same outputs" : "OTHER OUTPUTS",
           is_same_time ? "same cycles" : "OTHER CYCLES", is_bounded ? "" : ", MORE IN FLIGHT");
    return is_same_data && is_same_time && is_bounded;
}

// The run, as it is before it is executed, as a scene test.
static void emit_simpler(emit *e, ptowsp_run *run) {
    const ptowsp_npu_desc desc = {
        .directory = e->simpler, .is_replacing = true, .runtime = PTOWSP_NPU_SIMPLER, .run = run};
    if (e->is_recorded) {
        command_check(e->context, ptowsp_run_execute(run, NULL));
        return;
    }
    make_parents(e->simpler);
    command_check(e->context, ptowsp_npu_emit(e->context, ptowsp_run_program(run), &desc));
    printf("  PTO Runtime  %s\n", e->simpler);
    e->is_recorded = true;
}

void emit_compare(emit *e, const char *title, ptowsp_run *run, ptowsp_model model) {
    if (e->simpler) {
        emit_simpler(e, run);
        return;
    }
    uint32_t count = ptowsp_program_read(ptowsp_run_program(run))->tensor_count;
    memory *memories = (memory *)command_allocate(count, sizeof *memories);
    for (uint32_t i = 1; i < count; i++) {
        memories[i] = memory_of(run, i);
    }
    const ptowsp_run_options options = {.cost = {.model = model}};
    command_check(e->context, ptowsp_run_execute(run, &options));
    for (uint32_t i = 1; i < count; i++) {
        if (memories[i].size) {
            memcpy(memories[i].wanted, memories[i].data, memories[i].size);
        }
    }
    const ptowsp_run_stats *stats = ptowsp_run_result(run);
    printf("%-24s %8llu %10llu  ", title, (unsigned long long)stats->task_count,
           (unsigned long long)stats->makespan_cycles);
    e->is_good &= compare_ring(e, run, model, 0, memories, count);
    char small[64];
    snprintf(small, sizeof small, "  %d tasks in flight", RING_SMALL);
    printf("%-24s %8s %10s  ", small, "", "");
    e->is_good &= compare_ring(e, run, model, RING_SMALL, memories, count);
    if (e->record && !e->is_recorded) {
        restore(memories, count);
        command_check(e->context, ptowsp_npu_record(e->context, run, &options, e->record));
        e->is_recorded = true;
    }
    for (uint32_t i = 1; i < count; i++) {
        free(memories[i].before);
        free(memories[i].wanted);
    }
    free(memories);
}

// -- setups ---------------------------------------------------------------------------------------

ptowsp_run *emit_setup(emit *e, const char *what, const setup *s, uint32_t lane_count) {
    const ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_WORK_STEALING,
                                      .lane_count = lane_count};
    const ptowsp_program_desc desc = {.schedule = &schedule};
    ptowsp_run *run;
    command_check(s->context, ptowsp_program_create(s->context, s->module, &desc, &e->program));
    command_check(s->context, ptowsp_run_create(s->context, e->program, &run));
    printf("%s, on %u lanes\n", what, (unsigned)lane_count);
    emit_build(e, s->context, e->program);
    return run;
}

void emit_compare_setup(emit *e, const char *title, setup *s, ptowsp_run *run) {
    static const ptowsp_model models[] = {PTOWSP_MODEL_UNIT, PTOWSP_MODEL_A2A3};
    static const char *const names[] = {"unit model", "a2a3"};
    setup_bind(s, run);
    for (int i = 0; i < 2; i++) {
        char text[96];
        snprintf(text, sizeof text, "%s, %s", title, names[i]);
        s->prepare(s->user);
        emit_compare(e, text, run, models[i]);
        if (!s->check(s->user)) {
            printf("  WRONG results\n");
            e->is_good = false;
        }
    }
}

// -- examples that can emit -----------------------------------------------------------------------

static emit chosen;  // what the options say; `directory` is that of all trees

static const char create_text[] =
    "Prints what it computes, and how far it is off.\n"
    "  --threads N       lanes that run kernels, 1 to 64 (1); what is printed is the same for all\n"
    "  --emit DIR        also writes the source tree of each run into DIR, builds it, compares it\n"
    "                    with the library, and records the run for the tree's run --check\n"
    "  --simpler DIR     writes each run as a test of PTO Runtime into DIR, and nothing else\n"
    "  --cache DIR       where trees are built ($XDG_CACHE_HOME/ptowsp or ~/.cache/ptowsp)\n"
    "  --compiler NAME   a C++ compiler ($CXX or c++)\n"
    "  --options TEXT    its options (-O1)\n";

static bool emit_run(setup *s, const char *title, const ptowsp_program *program, ptowsp_run *run) {
    char directory[512], record[520], name[64];
    const char *parent = chosen.simpler ? chosen.simpler : chosen.directory;
    emit e = chosen;
    snprintf(name, sizeof name, "%s", title);
    for (char *c = name; *c; c++) {
        *c = *c == ' ' ? '_' : *c;
    }
    if (snprintf(directory, sizeof directory, "%s/%s", parent, name) >= (int)sizeof directory) {
        command_fail("--emit: the name of the directory is too long");
    }
    snprintf(record, sizeof record, "%s.run", directory);
    e.directory = directory;
    e.record = record;
    e.is_good = true;
    e.simpler = chosen.simpler ? directory : NULL;
    emit_build(&e, s->context, program);
    emit_compare_setup(&e, title, s, run);
    if (e.simpler) {
        return e.is_good;
    }
    printf("  recorded  %s: make -C %s && %s/build/run --check %s\n", record, directory, directory,
           record);
    ptowsp_npu_destroy(e.npu);
    return e.is_good;
}

void emit_create(setup *s, int argc, char **argv) {
    emit_create_with(s, argc, argv, create_text, NULL, 0);
}

void emit_create_with(setup *s, int argc, char **argv, const char *help, const command_option *more,
                      size_t more_count) {
    uint64_t thread_count = 1;
    memset(&chosen, 0, sizeof chosen);
    command_option numbers[1 + EMIT_MORE_MAX] = {{"--threads", &thread_count, NULL, 1, 64}};
    for (size_t i = 0; i < more_count && i < EMIT_MORE_MAX; i++) {
        numbers[1 + i] = more[i];
    }
    const command_text texts[] = {{"--emit", &chosen.directory},
                                  {"--simpler", &chosen.simpler},
                                  {"--cache", &chosen.cache},
                                  {"--compiler", &chosen.compiler},
                                  {"--options", &chosen.options}};
    command_parse_texts(argc, argv, help, numbers, 1 + more_count, texts,
                        sizeof texts / sizeof *texts);
    setup_create_threads(s, thread_count);
    s->emit = chosen.directory || chosen.simpler ? emit_run : NULL;
}

// -- the end --------------------------------------------------------------------------------------

bool emit_end(emit *e, const ptowsp_program *program) {
    if (e->simpler) {
        return e->is_good;
    }
    ptowsp_npu *again = build(e, program);
    bool is_cached = ptowsp_npu_was_cached(again);
    printf(
        "\n  check     data, sizes and lengths changed without a rebuild, all as in the library: "
        "%s\n",
        e->is_good && is_cached ? "good" : "WRONG");
    ptowsp_npu_destroy(again);
    ptowsp_npu_destroy(e->npu);
    return e->is_good && is_cached;
}

bool emit_end_setup(emit *e, setup *s, ptowsp_run *run) {
    bool is_good = emit_end(e, e->program);
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(e->program);
    setup_destroy(s);
    return is_good;
}
