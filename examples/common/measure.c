// A source becomes the only kernel of a program of one task, that a tree, and the tree a library:
//
//      ptowsp_pto_source -> ptowsp_program_create -> ptowsp_npu_build -> ptowsp_npu_measure, by model
//
// Each matrix among the arguments is a tile parameter and a tensor of its size, filled with zeros: data
// decides about cycles only where a kernel looks at it.

#include "measure.h"

#include "command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// -- the table ------------------------------------------------------------------------------------

static const struct {
    ptowsp_model model;
    ptowsp_family family;
} models[] = {{PTOWSP_MODEL_UNIT, PTOWSP_FAMILY_A2A3}, {PTOWSP_MODEL_A2A3, PTOWSP_FAMILY_A2A3},
              {PTOWSP_MODEL_910B, PTOWSP_FAMILY_A2A3}, {PTOWSP_MODEL_UNIT, PTOWSP_FAMILY_A5},
              {PTOWSP_MODEL_A5, PTOWSP_FAMILY_A5},     {PTOWSP_MODEL_950PR, PTOWSP_FAMILY_A5}};
enum { MODEL_COUNT = sizeof models / sizeof models[0] };

static const char *model_name(ptowsp_model model) {
    switch (model) {
#define MODEL_NAME(name, text)                                                                     \
    case PTOWSP_MODEL_##name: return text;
        PTOWSP_MODELS(MODEL_NAME)
#undef MODEL_NAME
    default: return "";
    }
}

// MHz; 0 for the unit model, whose cycles are elements.
static uint32_t clock_of(ptowsp_model model) {
    switch (model) {
    case PTOWSP_MODEL_A2A3: return ptowsp_machine_910b().clock_mhz;
    case PTOWSP_MODEL_A5: return ptowsp_machine_950pr().clock_mhz;
    default: return ptowsp_core_timing_of(model).clock_mhz;
    }
}

void measure_table(ptowsp_context *context, ptowsp_npu *npu, const char *kernel,
                   const ptowsp_task *task, ptowsp_family family) {
    ptowsp_kernel_stats stats[MODEL_COUNT];
    bool has_pipe[PTOWSP_PIPE_COUNT] = {false};
    for (int i = 0; i < MODEL_COUNT; i++) {
        const ptowsp_cost cost = {.model = models[i].model};
        if (models[i].family != family) {
            continue;
        }
        command_check(context, ptowsp_npu_measure(npu, kernel, task, &cost, &stats[i]));
        for (int pipe = 0; pipe < PTOWSP_PIPE_COUNT; pipe++) {
            has_pipe[pipe] |= pipe != PTOWSP_PIPE_S && stats[i].busy_cycles[pipe] > 0;
        }
    }
    printf("%-8s %10s %10s", "model", "cycles", "us");
    for (int pipe = 0; pipe < PTOWSP_PIPE_COUNT; pipe++) {
        if (has_pipe[pipe]) {
            printf(" %8s", ptowsp_pipe_name((ptowsp_pipe)pipe));
        }
    }
    printf("\n");
    for (int i = 0; i < MODEL_COUNT; i++) {
        const uint32_t mhz = clock_of(models[i].model);
        if (models[i].family != family) {
            continue;
        }
        const double cycles = (double)stats[i].cycles;
        printf("%-8s %10llu ", model_name(models[i].model), (unsigned long long)stats[i].cycles);
        if (mhz) {
            printf("%10.2f", cycles / mhz);
        } else {
            printf("%10s", "");
        }
        for (int pipe = 0; pipe < PTOWSP_PIPE_COUNT; pipe++) {
            if (has_pipe[pipe]) {
                printf(" %6.1f %%",
                       cycles > 0 ? 100 * (double)stats[i].busy_cycles[pipe] / cycles : 0);
            }
        }
        printf("\n");
    }
}

// -- the command ----------------------------------------------------------------------------------

const char measure_help[] =
    "  measure   cycles and pipes of a PTO-ISA source on one core, or with --mixed on a cube core "
    "and\n"
    "            two vector cores, by every model. ENTRY is its function, and ARGUMENT, in order,\n"
    "            f32:64x128 (a matrix, of zeros: f16 bf16 f32 i8 i16 i32 i64 u8 u16 u32 u64) or a "
    "number\n"
    "    --a5                     for 950PR; without, for 910B\n"
    "    --mixed                  compiled twice, with __DAV_CUBE__ and with __DAV_VEC__\n"
    "    --cube                   a kernel of the cube unit alone\n"
    "    --simulator              permits what PTO-ISA's CPU simulator permits\n"
    "    --block N/COUNT          get_block_idx() and get_block_num(); without, 0/1\n"
    "    --include DIR            where headers in quotes are; up to 8 times\n"
    "    --cache DIR, --compiler NAME, --options TEXT   as ptowsp_npu_build has them\n";

typedef struct measured {
    ptowsp_pto_source source;
    ptowsp_kernel_desc kernel;
    ptowsp_npu_build_desc build;
    char names[PTOWSP_TASK_TILE_MAX][8];
    ptowsp_tile tiles[PTOWSP_TASK_TILE_MAX];
    uint64_t cells[2 * PTOWSP_TASK_TILE_MAX];
    uint32_t tile_count, argument_count, include_count;
} measured;

static bool read_number(const char *text, char **out_end, int64_t *out_number) {
    *out_number = strtoll(text, out_end, 10);
    return *out_end != text;
}

static ptowsp_dtype dtype_of(const char *text, size_t length) {
    for (int dtype = 1; dtype <= PTOWSP_BOOL; dtype++) {
        const char *name = ptowsp_dtype_name((ptowsp_dtype)dtype);
        if (strlen(name) == length && strncmp(name, text, length) == 0) {
            return (ptowsp_dtype)dtype;
        }
    }
    return PTOWSP_DTYPE_NONE;
}

// "f32:64x128"
static void add_matrix(measured *m, const char *text, const char *colon) {
    char *end;
    int64_t rows = 0, cols = 0;
    const ptowsp_dtype dtype = dtype_of(text, (size_t)(colon - text));
    bool is_good = dtype && read_number(colon + 1, &end, &rows) && *end == 'x' &&
                   read_number(end + 1, &end, &cols) && *end == '\0';
    if (!is_good || rows < 1 || cols < 1 || rows > INT32_MAX || cols > (1 << 30) / rows) {
        command_fail(
            "an argument is TYPE:ROWSxCOLS, of at most 2^30 elements, or a number, not '%s'", text);
    }
    if (m->tile_count == PTOWSP_TASK_TILE_MAX) {
        command_fail("more than %d matrices", PTOWSP_TASK_TILE_MAX);
    }
    const uint32_t i = m->tile_count++;
    snprintf(m->names[i], sizeof m->names[i], "m%u", i);
    const ptowsp_tile_param param = {
        .name = m->names[i], .direction = PTOWSP_INOUT, .dtype = dtype, .rows = rows, .cols = cols};
    const ptowsp_pto_arg arg = {.value = PTOWSP_PTO_DATA, .index = i};
    m->kernel.tiles[i] = param;
    m->source.args[m->argument_count++] = arg;
    m->tiles[i].data =
        command_allocate((uint64_t)rows * (uint64_t)cols + 64, ptowsp_dtype_size(dtype));
    m->tiles[i].row_stride = cols;
    m->tiles[i].col_stride = 1;
    m->cells[2 * i] = (uint64_t)rows;
    m->cells[2 * i + 1] = (uint64_t)cols;
}

static void add_argument(measured *m, const char *text) {
    char *end;
    ptowsp_pto_arg arg = {.value = PTOWSP_PTO_NUMBER};
    const char *colon = strchr(text, ':');
    if (m->argument_count == PTOWSP_PTO_ARG_MAX) {
        command_fail("more than %d arguments", PTOWSP_PTO_ARG_MAX);
    } else if (colon) {
        add_matrix(m, text, colon);
    } else if (read_number(text, &end, &arg.number) && *end == '\0') {
        m->source.args[m->argument_count++] = arg;
    } else {
        command_fail(
            "an argument is TYPE:ROWSxCOLS, of at most 2^30 elements, or a number, not '%s'", text);
    }
}

// "2/24"
static void read_block(measured *m, const char *text) {
    char *end;
    m->source.block.value = m->source.block_count.value = PTOWSP_PTO_NUMBER;
    if (!read_number(text, &end, &m->source.block.number) || *end != '/' ||
        !read_number(end + 1, &end, &m->source.block_count.number) || *end ||
        m->source.block.number < 0 || m->source.block.number >= m->source.block_count.number) {
        command_fail("--block takes N/COUNT with N below COUNT, not '%s'", text);
    }
}

// An option that takes a value. False: there is none of this name.
static bool read_option(measured *m, const char *flag, const char *value) {
    const struct {
        const char *flag, **text;
    } texts[] = {{"--cache", &m->build.cache_directory},
                 {"--compiler", &m->build.compiler},
                 {"--options", &m->build.options}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strcmp(flag, texts[i].flag) == 0) {
            *texts[i].text = value;
            return true;
        }
    }
    if (strcmp(flag, "--block") == 0) {
        read_block(m, value);
        return true;
    }
    if (strcmp(flag, "--include") == 0 && m->include_count < PTOWSP_PTO_INCLUDE_MAX) {
        m->source.include_dirs[m->include_count++] = value;
        return true;
    }
    return false;
}

static void read_arguments(measured *m, int argc, char **argv) {
    const struct {
        const char *flag;
        bool *is_set;
    } flags[] = {{"--mixed", &m->source.is_mixed}, {"--simulator", &m->source.is_as_simulator}};
    for (int i = 4; i < argc; i++) {
        bool is_flag = false;
        for (size_t j = 0; j < sizeof flags / sizeof flags[0] && !is_flag; j++) {
            is_flag = strcmp(argv[i], flags[j].flag) == 0;
            *flags[j].is_set |= is_flag;
        }
        if (strcmp(argv[i], "--a5") == 0) {
            m->source.family = PTOWSP_FAMILY_A5;
        } else if (strcmp(argv[i], "--cube") == 0) {
            m->kernel.unit = PTOWSP_UNIT_CUBE;
        } else if (!is_flag && strncmp(argv[i], "--", 2) != 0) {
            add_argument(m, argv[i]);
        } else if (!is_flag) {
            if (i + 1 == argc || !read_option(m, argv[i], argv[i + 1])) {
                command_fail("there is no option %s, it lacks its value, or there are too many",
                             argv[i]);
            }
            i++;
        }
    }
}

// The program of one task.
static ptowsp_program *make_program(const measured *m, ptowsp_context *context,
                                    ptowsp_module *module) {
    ptowsp_program *program;
    ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(module, &m->kernel)};
    for (uint32_t i = 0; i < m->tile_count; i++) {
        const ptowsp_tile_param *of = &m->kernel.tiles[i];
        const ptowsp_tensor_desc desc = {
            .name = of->name, .dtype = of->dtype, .rank = 2, .shape = {of->rows, of->cols}};
        task.views[i].tensor = ptowsp_tensor_make(module, &desc);
    }
    PTOWSP_WORKLOAD(module, "measure") {
        ptowsp_task_make(module, &task);
    }
    command_check(context, ptowsp_program_create(context, module, NULL, &program));
    return program;
}

int measure_main(int argc, char **argv) {
    static measured m;
    ptowsp_context *context;
    ptowsp_module *module;
    ptowsp_npu *npu;
    command_begin(argc, argv);
    if (argc < 4) {
        command_fail("measure takes a file, its entry and arguments; --help shows them");
    }
    m.source.file = argv[2];
    m.source.entry = m.kernel.name = argv[3];
    m.kernel.pto = &m.source;
    read_arguments(&m, argc, argv);
    if (ptowsp_context_create(NULL, &context) != PTOWSP_OK) {
        command_fail("no memory");
    }
    command_check(context, ptowsp_module_create(context, NULL, &module));
    ptowsp_program *program = make_program(&m, context, module);
    command_check(context, ptowsp_npu_build(context, program, &m.build, &npu));
    const ptowsp_task task = {.args = m.cells,
                              .arg_count = 2 * m.tile_count,
                              .axis_arg_count = 2 * m.tile_count,
                              .tile_count = m.tile_count,
                              .tiles = m.tiles};
    printf("%s of %s, %s, block %lld of %lld\n", m.kernel.name, m.source.file,
           m.source.is_mixed ? "a cube core and two vector cores" : "one core",
           (long long)m.source.block.number,
           (long long)(m.source.block_count.number ? m.source.block_count.number : 1));
    measure_table(context, npu, m.kernel.name, &task, m.source.family);
    command_flush();
    ptowsp_npu_destroy(npu);
    ptowsp_program_destroy(program);
    ptowsp_module_destroy(module);
    ptowsp_context_destroy(context);
    for (uint32_t i = 0; i < m.tile_count; i++) {
        free(m.tiles[i].data);
    }
    return 0;
}
