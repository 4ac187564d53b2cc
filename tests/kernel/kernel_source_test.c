// Kernels that are PTO-ISA sources, or communicate: what their declaration refuses, and what their hash
// tells apart.

#include "test.h"

typedef struct fixture {
    test_memory memory;
    ptowsp_context *context;
    ptowsp_module *m;
} fixture;

static void begin(fixture *f, size_t refuse_at) {
    memset(f, 0, sizeof *f);
    const ptowsp_context_desc desc = {.resize = test_resize, .resize_user = &f->memory};
    assert_ok(ptowsp_context_create(&desc, &f->context));
    assert_ok(ptowsp_module_create(f->context, NULL, &f->m));
    f->memory.refuse_at = refuse_at ? f->memory.allocations + refuse_at : 0;
}

static void end(fixture *f) {
    ptowsp_module_destroy(f->m);
    ptowsp_context_destroy(f->context);
    assert_int_equal(f->memory.live_bytes, 0);
}

// Every kernel below has two tiles, an axis and two scalars.
static ptowsp_kernel_desc desc_of(const ptowsp_pto_source *pto) {
    ptowsp_kernel_desc desc = {0};
    const ptowsp_tile_param x = {"x", PTOWSP_IN, PTOWSP_F32, 8, 8},
                            y = {"y", PTOWSP_OUT, PTOWSP_F32, 8, 8};
    const ptowsp_scalar_param n = {"n", PTOWSP_TYPE_I64}, k = {"k", PTOWSP_TYPE_U64};
    desc.name = "add";
    desc.axis_count = 1;
    desc.tiles[0] = x;
    desc.tiles[1] = y;
    desc.scalars[0] = n;
    desc.scalars[1] = k;
    desc.cycles = 10;
    desc.pto = pto;
    return desc;
}

static ptowsp_pto_source source_of(const char *text) {
    ptowsp_pto_source pto = {.text = text};
    return pto;
}

static void refused(ptowsp_kernel_desc desc, const ptowsp_pto_source *pto, const char *text) {
    fixture f;
    begin(&f, 0);
    desc.pto = pto;
    assert_int_equal(ptowsp_kernel_make(f.m, &desc).id, 0);
    assert_invalid(ptowsp_module_error(f.m).status);
    if (!strstr(ptowsp_module_error(f.m).text, text)) {
        fail_msg("\"%s\" does not say \"%s\"", ptowsp_module_error(f.m).text, text);
    }
    end(&f);
}

TEST(source__is_refused) {
    const ptowsp_pto_source good = source_of("void add() {}");
    ptowsp_kernel_desc desc = desc_of(&good);
    static const char both[] = "kernel add: it has a source and a PTO-ISA source";
    desc.source.text = "// another";
    refused(desc, &good, both);
    desc = desc_of(&good);
    desc.source.file = "add.c";
    refused(desc, &good, both);
    desc = desc_of(&good);
    desc.source.fn = "add";
    refused(desc, &good, "kernel add: its source has names, but neither text nor file");
    desc = desc_of(&good);

    ptowsp_pto_source pto = good;
    pto.family = (ptowsp_family)(PTOWSP_FAMILY_A5 + 1);
    refused(desc, &pto, "kernel add: its PTO-ISA source is for no family of machines");

    // A block may be any number that fits 31 bits, of 1 and more if it is how many there are.
    static const struct {
        ptowsp_pto_arg block, block_count;
        const char *text;
    } blocks[] = {
        {{PTOWSP_PTO_NUMBER, 0, -1},
         {PTOWSP_PTO_NONE, 0, 0},
         "add: block of its PTO-ISA source is no axis"},
        {{PTOWSP_PTO_NUMBER, 0, (int64_t)INT32_MAX + 1},
         {PTOWSP_PTO_NONE, 0, 0},
         "add: block of its PTO-ISA source is no axis, scalar or number"},
        {{PTOWSP_PTO_NONE, 0, 0},
         {PTOWSP_PTO_NUMBER, 0, 0},
         "add: block_count of its PTO-ISA source is no axis, scalar or number"},
        {{PTOWSP_PTO_DATA, 0, 0},
         {PTOWSP_PTO_NONE, 0, 0},
         "add: block of its PTO-ISA source is no axis"},
        {{PTOWSP_PTO_SCALAR, 2, 0}, {PTOWSP_PTO_NONE, 0, 0}, "number 2 of 2 scalars"},
        {{PTOWSP_PTO_NONE, 0, 0}, {PTOWSP_PTO_AXIS, 1, 0}, "number 1 of 1 axis arguments"},
    };
    for (uint32_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        pto = good;
        pto.block = blocks[i].block;
        pto.block_count = blocks[i].block_count;
        refused(desc, &pto, blocks[i].text);
    }
    fixture f;
    begin(&f, 0);
    const ptowsp_pto_arg scalar = {PTOWSP_PTO_SCALAR, 1, 0},
                         most = {PTOWSP_PTO_NUMBER, 0, INT32_MAX};
    pto = good;
    pto.block = scalar;
    pto.block_count = most;
    desc = desc_of(&pto);
    assert_int_not_equal(ptowsp_kernel_make(f.m, &desc).id, 0);
    end(&f);
}

// A loop with a task of the kernel on parts of a tensor of three dimensions, compiled.
static ptowsp_status compile(fixture *f, const ptowsp_kernel_desc *desc) {
    ptowsp_module *m = f->m;
    ptowsp_program *program = NULL;
    ptowsp_tensor_desc tensor = {0};
    tensor.name = "t", tensor.dtype = PTOWSP_F32, tensor.rank = 3;
    tensor.shape[0] = 4, tensor.shape[1] = tensor.shape[2] = 8;
    ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(m, desc)};
    task.views[0].tensor = task.views[1].tensor = ptowsp_tensor_make(m, &tensor);
    PTOWSP_WORKLOAD(m, "w") {
        PTOWSP_FOR_EACH(m, i, ptowsp_axis_dense(m, "n", 3)) {
            task.axes[0] = i;
            task.views[0].index[0] = i;
            task.views[1].index[0] =
                ptowsp_select(ptowsp_lt(i, ptowsp_array_at(m, "limits", PTOWSP_I64, i)),
                              ptowsp_array_at(m, "first", PTOWSP_I64, i),
                              ptowsp_array_at(m, "second", PTOWSP_I64, i));
            task.scalars[0] = ptowsp_i64(m, 5);
            task.scalars[1] = ptowsp_u64(m, 6);
            ptowsp_task_make(m, &task);
        }
    }
    ptowsp_status status = ptowsp_module_error(m).status;
    if (status == PTOWSP_OK) {
        status = ptowsp_program_create(f->context, m, NULL, &program);
    }
    ptowsp_program_destroy(program);
    return status;
}

TEST(source__frees_all_when_memory_is_out) {
    ptowsp_pto_source pto = source_of("void add() {}");
    pto.entry = "add";
    pto.include_dirs[0] = "include";
    const ptowsp_kernel_desc desc = desc_of(&pto);
    bool is_done = false;
    for (size_t n = 1; !is_done; n++) {
        fixture f;
        begin(&f, n);
        const ptowsp_status status = compile(&f, &desc);
        is_done = f.memory.allocations < f.memory.refuse_at;
        assert_int_equal(status, is_done ? PTOWSP_OK : PTOWSP_OUT_OF_MEMORY);
        end(&f);
    }
}

// -- hashes ---------------------------------------------------------------------------------------

static uint64_t hash_of(const ptowsp_kernel_desc *desc, const ptowsp_collective_desc *collective) {
    fixture f;
    begin(&f, 0);
    const ptowsp_kernel kernel =
        desc ? ptowsp_kernel_make(f.m, desc) : ptowsp_kernel_collective(f.m, collective);
    assert_string_equal(ptowsp_module_error(f.m).text, "");
    const uint64_t hash = ptowsp_kernel_hash(f.m, kernel);
    end(&f);
    return hash;
}

// Each is another one than all others, and none is 0.
static void are_apart(const uint64_t *hashes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        assert_true(hashes[i] != 0);
        for (size_t k = 0; k < i; k++) {
            if (hashes[i] == hashes[k]) {
                fail_msg("hash %u is that of %u", (unsigned)i, (unsigned)k);
            }
        }
    }
}

TEST(hash__tells_sources_apart) {
    static const char text[] = "void add() {}";
    static const ptowsp_pto_source sources[] = {
        {.text = text},
        {.text = "void add() { }"},
        {.file = text},  // a path of the same characters
        {.text = text, .entry = "sub"},
        {.text = text, .args = {{PTOWSP_PTO_DATA, 0, 0}}},
        {.text = text, .args = {{PTOWSP_PTO_DATA, 1, 0}}},
        {.text = text, .args = {{PTOWSP_PTO_COLS, 0, 0}}},
        {.text = text, .args = {{PTOWSP_PTO_NUMBER, 0, 2}}},
        {.text = text, .args = {{PTOWSP_PTO_NUMBER, 0, 3}}},
        {.text = text, .args = {{PTOWSP_PTO_NUMBER, 0, 3}, {PTOWSP_PTO_DATA, 0, 0}}},
        {.text = text, .block = {PTOWSP_PTO_NUMBER, 0, 2}},
        {.text = text,
         .block = {PTOWSP_PTO_NUMBER, 0, 0},
         .block_count = {PTOWSP_PTO_NUMBER, 0, 2}},
        {.text = text, .family = PTOWSP_FAMILY_A5},
        {.text = text, .is_as_simulator = true},
        {.text = text, .is_mixed = true},
    };
    enum { COUNT = COUNT_OF(sources) };
    uint64_t hashes[COUNT + 2];
    ptowsp_kernel_desc desc;
    for (size_t i = 0; i < COUNT; i++) {
        desc = desc_of(&sources[i]);
        hashes[i] = hash_of(&desc, NULL);
    }
    // Defaults are what they are by name.
    const ptowsp_pto_source named = {
        .text = text, .entry = "add", .block_count = {PTOWSP_PTO_NUMBER, 0, 1}};
    desc = desc_of(&named);
    assert_true(hash_of(&desc, NULL) == hashes[0]);
    // A function of the same name and parameters, and of others.
    desc = desc_of(NULL);
    hashes[COUNT] = hash_of(&desc, NULL);
    desc.scalars[1].type = PTOWSP_TYPE_I64;
    hashes[COUNT + 1] = hash_of(&desc, NULL);
    are_apart(hashes, COUNT + 2);
}

#define SUM .name = "sum", .kind = PTOWSP_ALL_REDUCE, .members = 4
#define ALL .name = "sum", .kind = PTOWSP_ALL_TO_ALL, .members = 4, .dtype = PTOWSP_F32

TEST(hash__tells_collectives_apart) {
    static const ptowsp_collective_desc descs[] = {
        {SUM, .dtype = PTOWSP_F32},
        {SUM, .dtype = PTOWSP_F32, .algorithm = PTOWSP_ALGORITHM_RING},
        {SUM, .dtype = PTOWSP_F32, .reduction = PTOWSP_REDUCTION_MAX},
        {.name = "sum", .kind = PTOWSP_ALL_REDUCE, .members = 8, .dtype = PTOWSP_F32},
        {SUM, .dtype = PTOWSP_F32, .stride = 2},
        {SUM, .dtype = PTOWSP_I32},
        {SUM, .dtype = PTOWSP_F32, .is_apart = true},
        {.name = "sum", .kind = PTOWSP_BROADCAST, .members = 4, .dtype = PTOWSP_F32},
        {ALL},
        {ALL, .in_columns = true},
        {ALL, .in_columns = true, .out_columns = true},
        {ALL, .out_columns = true},
        {ALL, .counts = "counts"},
    };
    uint64_t hashes[COUNT_OF(descs)];
    for (size_t i = 0; i < COUNT_OF(descs); i++) {
        hashes[i] = hash_of(NULL, &descs[i]);
    }
    assert_true(hash_of(NULL, &descs[0]) == hashes[0]);
    are_apart(hashes, COUNT_OF(descs));
    // No module, no kernel, another module's: none.
    fixture f;
    begin(&f, 0);
    const ptowsp_kernel none = {0}, beyond = {7};
    assert_true(ptowsp_kernel_hash(f.m, none) == 0);
    assert_true(ptowsp_kernel_hash(f.m, beyond) == 0);
    assert_true(ptowsp_kernel_hash(NULL, beyond) == 0);
    end(&f);
}
