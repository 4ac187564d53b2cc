// Reading programs: kernels with their instructions, tiles, checks and sources; what a target
// refuses; memory that is refused. What is bound to a run is in tests/exec/runs.facts.

#include "written.h"

static void say(const char *format, ...) {
    va_list args;
    va_start(args, format);
    written.length += (size_t)vsnprintf(written.text + written.length, WRITTEN_MAX - written.length,
                                        format, args);
    va_end(args);
}

static void module_begin(fixture *f) {
    fixture_clear(f);
    f->module = test_module(f->context, NULL);
}

static void compile(fixture *f, const ptowsp_schedule *schedule) {
    ptowsp_program_desc desc = {NULL, schedule};
    ptowsp_program_destroy(f->program);
    f->program = NULL;
    test_ok(f->context, ptowsp_program_create(f->context, f->module, &desc, &f->program));
}

static ptowsp_tensor tensor_make(ptowsp_module *m, const char *name, ptowsp_dtype dtype,
                                 int64_t rows, int64_t cols) {
    return ptowsp_tensor_make(
        m, &(ptowsp_tensor_desc){.name = name, .dtype = dtype, .rank = 2, .shape = {rows, cols}});
}

// -- tile kernels ---------------------------------------------------------------------------------

// Instructions and tiles of a kernel as ptowsp_kernel_print writes them, but without cycles and
// what tiles are for, from what the program says.
static void say_insn(const fixture *f, uint32_t kernel, const ptowsp_kernel_info *k, uint32_t i) {
    const ptowsp_insn_info insn = ptowsp_program_read(f->program)->kernels[kernel].insns[i];
    say("  %3u  %-16s %-4s", i, ptowsp_opcode_name(insn.op), ptowsp_pipe_name(insn.pipe));
    if (insn.op == PTOWSP_OP_SET_FLAG || insn.op == PTOWSP_OP_WAIT_FLAG) {
        say(" %s -> %s event %u\n", ptowsp_pipe_name(insn.src_pipe),
            ptowsp_pipe_name(insn.dst_pipe), insn.event);
        return;
    }
    if (insn.op == PTOWSP_OP_PIPE_BARRIER) {
        say(" %s\n", ptowsp_pipe_name(insn.src_pipe));
        return;
    }
    const char *param = insn.param != PTOWSP_NO_PARAM ? k->tiles[insn.param].name : "";
    for (uint32_t j = 0; j < 2 && insn.dst[j]; j++) {
        say(" t%u", insn.dst[j]);
    }
    if (insn.dst[0] == 0) {
        say(" %s <-", param);
    } else {
        say(" <-%s%s", *param ? " " : "", param);
    }
    for (uint32_t j = 0; j < 4 && insn.src[j]; j++) {
        say(" t%u", insn.src[j]);
    }
    bool is_compared = insn.op == PTOWSP_OP_TCMP || insn.op == PTOWSP_OP_TCMPS;
    if (is_compared) {
        assert_int_equal(insn.mode, PTOWSP_LT);
        say(" <");
    } else if (insn.op == PTOWSP_OP_TCVT) {
        static const char *const rounds[] = {"", " away", " floor", " ceil", " trunc"};
        say("%s", rounds[insn.mode]);
    } else if (insn.row || insn.col) {
        say(" %s (%u, %u)", insn.op == PTOWSP_OP_TINSERT ? "at" : "from", insn.row, insn.col);
    }
    if (insn.scalar_param != PTOWSP_NO_PARAM) {
        say(" %s", k->scalars[insn.scalar_param].name);
    } else if (is_compared || insn.op == PTOWSP_OP_TEXPANDS) {
        say(" %.17g", insn.scalar);
    }
    if (insn.tmp) {
        say(", scratch t%u", insn.tmp);
    }
    say("\n");
}

static void say_tile(const fixture *f, uint32_t kernel, uint32_t i) {
    static const char *const layouts[] = {"", " column-major", " NZ", " ZN", " ZZ", " NN"};
    const ptowsp_tile_object tile = ptowsp_program_read(f->program)->kernels[kernel].objects[i];
    uint32_t bytes = tile.rows * tile.cols * ptowsp_dtype_size(tile.dtype);
    say("  t%-3u %s %u..%u  %s %u x %u%s\n", i, ptowsp_memory_name(tile.memory), tile.address,
        tile.address + bytes, ptowsp_dtype_name(tile.dtype), tile.rows, tile.cols,
        layouts[tile.layout]);
}

// Drops the cycles (10 characters from column 28) and what a tile is for.
static void strip_printed(char *text) {
    char *out = text;
    bool is_insn = false, is_tile = false;
    for (char *line = text; *line;) {
        char *end = strchr(line, '\n') + 1;
        size_t length = (size_t)(end - line);
        if (line[0] != ' ') {
            is_insn = strncmp(line, "instructions", 12) == 0;
            is_tile = strncmp(line, "tiles", 5) == 0;
        } else if (is_insn) {
            memmove(out, line, 28);
            memmove(out + 28, line + 38, length - 38);
            out += length - 10;
        } else if (is_tile) {
            char *comma = strchr(line, ',');
            size_t kept = comma && comma < end ? (size_t)(comma - line) : length - 1;
            memmove(out, line, kept);
            out[kept] = '\n';
            out += kept + 1;
        }
        line = end;
    }
    *out = '\0';
}

// What the program says of a kernel is what is printed of it.
static void check_listing(const fixture *f, ptowsp_kernel kernel) {
    static char printed[16384];
    ptowsp_kernel_print(f->module, kernel, NULL, written_output());
    assert_true(written.length < sizeof printed);
    memcpy(printed, written.text, written.length + 1);
    strip_printed(printed);
    const ptowsp_kernel_info info = ptowsp_program_read(f->program)->kernels[kernel.id];
    written_output();
    for (uint32_t i = 0; i < info.insn_count; i++) {
        say_insn(f, kernel.id, &info, i);
    }
    for (uint32_t i = 1; i < info.tile_object_count; i++) {
        say_tile(f, kernel.id, i);
    }
    assert_string_equal(written.text, printed);
    assert_int_equal(info.insn_count, ptowsp_kernel_insn_count(f->module, kernel));
    for (uint32_t i = 0; i < info.insn_count; i++) {
        const ptowsp_insn shown = ptowsp_kernel_insn_at(f->module, kernel, i, NULL);
        const ptowsp_insn_info insn = ptowsp_program_read(f->program)->kernels[kernel.id].insns[i];
        assert_string_equal(shown.name, ptowsp_opcode_name(insn.op));
        assert_int_equal(shown.pipe, insn.pipe);
    }
    ptowsp_kernel_stats stats;
    assert_ok(ptowsp_kernel_measure(f->module, kernel, NULL, &stats));
    assert_memory_equal(stats.memory_bytes, info.memory_bytes, sizeof stats.memory_bytes);
}

// Rows of x divided by their largest element and scaled, what is below a half 0, as f16.
static ptowsp_kernel make_clip(ptowsp_module *m) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "clip"});
    ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, 8, 24);
    ptowsp_value y = ptowsp_tile_out(k, "y", PTOWSP_F16, 8, 24);
    ptowsp_value s = ptowsp_tile_scalar(k, "s", PTOWSP_F32);
    ptowsp_value scaled = ptowsp_tile_mul(ptowsp_tile_div(x, ptowsp_tile_rowmax(x)), s);
    ptowsp_value mask = ptowsp_tile_compare(scaled, PTOWSP_LT, ptowsp_tile_const(k, 0.5));
    ptowsp_value zero = ptowsp_tile_full(k, PTOWSP_F32, 8, 24, 0);
    ptowsp_tile_store(y, ptowsp_tile_select(mask, zero, scaled));
    return ptowsp_kernel_end(k);
}

static ptowsp_kernel make_product(ptowsp_module *m) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "product"});
    ptowsp_value a = ptowsp_tile_in(k, "a", PTOWSP_F16, 16, 32);
    ptowsp_value b = ptowsp_tile_in(k, "b", PTOWSP_F16, 32, 16);
    ptowsp_value c = ptowsp_tile_out(k, "c", PTOWSP_F32, 16, 16);
    ptowsp_tile_store(c, ptowsp_tile_matmul(a, b));
    return ptowsp_kernel_end(k);
}

// The header's formula.
static int64_t extent_at(ptowsp_extent e, int64_t sizes[][2]) {
    if (e.param == PTOWSP_NO_PARAM) {
        return e.max;
    }
    int64_t size = ((int64_t)e.mul * sizes[e.param][e.axis] + e.add) >> e.shift;
    return size < 0 ? 0 : size > (int64_t)e.max ? (int64_t)e.max : size;
}

static bool checks_hold(const fixture *f, uint32_t kernel, int64_t sizes[][2]) {
    bool is_good = true;
    for (uint32_t i = 0; i < ptowsp_program_read(f->program)->kernels[kernel].check_count; i++) {
        const ptowsp_size_check check = ptowsp_program_read(f->program)->kernels[kernel].checks[i];
        int64_t a = extent_at(check.a, sizes), b = extent_at(check.b, sizes);
        assert_true(check.operation[0] && check.axis <= 1);
        is_good = is_good && (check.a.param == PTOWSP_NO_PARAM ? b >= a : b == a);
    }
    return is_good;
}

TEST_F(read__tile_kernels_have_their_instructions) {
    module_begin(f);
    ptowsp_kernel clip = make_clip(f->module), product = make_product(f->module);
    ptowsp_tensor x = tensor_make(f->module, "x", PTOWSP_F32, 8, 24);
    ptowsp_tensor y = tensor_make(f->module, "y", PTOWSP_F16, 8, 24);
    PTOWSP_WORKLOAD(f->module, "w") {
        ptowsp_task_make(f->module,
                         &(ptowsp_task_desc){.kernel = clip,
                                             .views = {{.tensor = x}, {.tensor = y}},
                                             .scalars = {ptowsp_symbol(f->module, "scale")}});
    }
    compile(f, NULL);
    check_listing(f, clip);
    check_listing(f, product);
    assert_int_equal(ptowsp_program_read(f->program)->kernel_count, 3);
    ptowsp_kernel_info info = ptowsp_program_read(f->program)->kernels[clip.id];
    assert_string_equal(info.name, "clip");
    assert_true(info.is_used && info.is_tile_kernel && !info.has_fn && !info.has_products);
    assert_int_equal(info.unit, PTOWSP_UNIT_VECTOR);
    assert_int_equal(info.family, PTOWSP_FAMILY_A2A3);
    assert_int_equal(info.tile_count, 2);
    assert_string_equal(info.tiles[1].name, "y");
    assert_int_equal(info.tiles[1].direction, PTOWSP_OUT);
    assert_int_equal(info.tiles[0].cols, 24);
    assert_int_equal(info.scalar_count, 1);
    assert_string_equal(info.scalars[0].name, "s");
    assert_int_equal(info.scalars[0].type, PTOWSP_TYPE_U64);
    assert_int_equal(info.scalar_dtypes[0], PTOWSP_F32);
    assert_int_equal(info.memory_bytes[PTOWSP_MEMORY_UB], 2592);
    ptowsp_tile_object loaded = ptowsp_program_read(f->program)->kernels[clip.id].objects[1];
    int64_t full[][2] = {{8, 24}, {8, 24}}, part[][2] = {{5, 7}, {5, 7}},
            mixed[][2] = {{5, 7}, {5, 8}};
    assert_int_equal(extent_at(loaded.valid_rows, part), 5);
    assert_int_equal(extent_at(loaded.valid_cols, part), 7);
    assert_int_equal(extent_at(loaded.valid_cols, full), 24);
    assert_int_equal(loaded.root, 1);
    assert_true(info.check_count > 0);
    assert_true(checks_hold(f, clip.id, full) && checks_hold(f, clip.id, part));
    assert_false(checks_hold(f, clip.id, mixed));
    info = ptowsp_program_read(f->program)->kernels[product.id];
    assert_true(!info.is_used && info.has_products);
    assert_int_equal(info.unit, PTOWSP_UNIT_CUBE);
}

// -- sources --------------------------------------------------------------------------------------

// clang-format off
PTOWSP_SOURCE(source_of_two,
    static ptowsp_cycles twice(const ptowsp_task *task, void *user) {
        (void)user;
        return 2 * (ptowsp_cycles)ptowsp_task_axis(task, 0);
    }
    static ptowsp_cycles thrice(const ptowsp_task *task, void *user) {
        (void)user;
        return 3 * (ptowsp_cycles)ptowsp_task_axis(task, 0);
    })
// clang-format on

static ptowsp_kernel with_source(ptowsp_module *m, const char *name, ptowsp_kernel_source source) {
    return ptowsp_kernel_make(
        m, &(ptowsp_kernel_desc){.name = name, .axis_count = 1, .fn = twice, .source = source});
}

TEST_F(read__sources_of_kernels_are_read_back) {
    module_begin(f);
    char copy[sizeof source_of_two], path[] = "kernels/three.c";
    memcpy(copy, source_of_two, sizeof copy);
    ptowsp_kernel one =
        with_source(f->module, "twice", (ptowsp_kernel_source){.text = source_of_two});
    ptowsp_kernel two = ptowsp_kernel_make(
        f->module,
        &(ptowsp_kernel_desc){.name = "two",
                              .axis_count = 1,
                              .fn = twice,
                              .cost = thrice,
                              .source = {.text = copy, .fn = "twice", .cost = "thrice"}});
    ptowsp_kernel three = with_source(f->module, "three", (ptowsp_kernel_source){.file = path});
    ptowsp_kernel four =
        with_source(f->module, "no identifier", (ptowsp_kernel_source){NULL, NULL, NULL, NULL});
    memset(copy, 'x', sizeof copy);
    memset(path, 'x', sizeof path);
    PTOWSP_WORKLOAD(f->module, "w") {
        ptowsp_task_make(f->module,
                         &(ptowsp_task_desc){.kernel = two, .axes = {ptowsp_i64(f->module, 4)}});
    }
    compile(f, NULL);
    ptowsp_module_destroy(f->module);
    f->module = NULL;
    ptowsp_kernel_info info = ptowsp_program_read(f->program)->kernels[one.id];
    const char *text = info.source.text;
    assert_string_equal(text, source_of_two);
    assert_string_equal(info.source.fn, "twice");
    assert_null(info.source.cost);
    assert_null(info.source.file);
    assert_true(info.has_fn && !info.has_cost && !info.is_used && !info.is_tile_kernel);
    info = ptowsp_program_read(f->program)->kernels[two.id];
    assert_ptr_equal(info.source.text, text);  // one text, kept once
    assert_string_equal(info.source.fn, "twice");
    assert_string_equal(info.source.cost, "thrice");
    assert_true(info.has_cost && info.is_used);
    info = ptowsp_program_read(f->program)->kernels[three.id];
    assert_string_equal(info.source.file, "kernels/three.c");
    assert_string_equal(info.source.fn, "three");
    assert_null(info.source.text);
    info = ptowsp_program_read(f->program)->kernels[four.id];
    assert_null(info.source.fn);
}

// -- targets --------------------------------------------------------------------------------------

TEST_F(read__npus_do_l2_and_locations_that_nothing_uses) {
    module_make(f,
                "module m\ntensor x i32 [4] l2\ntensor unused i32 [1] l1\n"
                "kernel k(axes 0, out x i32 1 x 4) vector, 1 cycles, time only\n"
                "workload w\n  task k() x = x\n",
                NULL);
    compile(f, NULL);
    assert_ok(ptowsp_program_check(f->context, f->program, PTOWSP_TARGET_ASCEND_NPU));
    assert_invalid(ptowsp_program_check(f->context, f->program, PTOWSP_TARGET_COUNT));
}

// -- memory ---------------------------------------------------------------------------------------

// Builds and compiles a program with sources and keys of tags; what it is, or what was refused.
static ptowsp_status build_and_compile(ptowsp_context *context, size_t *out_size) {
    ptowsp_module *m = NULL;
    ptowsp_program *program = NULL;
    ptowsp_status status = ptowsp_module_create(context, NULL, &m);
    if (status != PTOWSP_OK) {
        return status;
    }
    ptowsp_kernel one = with_source(m, "twice", (ptowsp_kernel_source){.text = source_of_two});
    ptowsp_kernel two = with_source(
        m, "two", (ptowsp_kernel_source){.file = "two.c", .fn = "twice", .cost = "thrice"});
    ptowsp_axis batch = ptowsp_axis_dynamic(m, "batch");
    PTOWSP_WORKLOAD(m, "w") {
        PTOWSP_PARALLEL(m, b, batch) {
            ptowsp_expr level = ptowsp_cast(ptowsp_mul(b, ptowsp_i64(m, 3)), PTOWSP_TYPE_U64);
            ptowsp_node first = ptowsp_task_make(
                m, &(ptowsp_task_desc){.kernel = one, .axes = {b}, .tags = {{"level", level}}});
            PTOWSP_WHEN(m, ptowsp_lt(b, ptowsp_i64(m, 2))) {
                ptowsp_task_make(m,
                                 &(ptowsp_task_desc){.kernel = two, .axes = {b}, .after = {first}});
            }
            PTOWSP_OTHERWISE(m) {
                ptowsp_slot_set_make(m, 1, level);
            }
        }
    }
    ptowsp_schedule schedule = {.lane_count = 2,
                                .dispatch = PTOWSP_DISPATCH_AFFINITY,
                                .dispatch_key = ptowsp_task_tag(m, "level"),
                                .dependencies = PTOWSP_DEPENDENCIES_EXPLICIT};
    ptowsp_program_desc desc = {NULL, &schedule};
    status = ptowsp_program_create(context, m, &desc, &program);
    ptowsp_module_destroy(m);
    if (status == PTOWSP_OK) {
        *out_size = ptowsp_program_size(program);
    }
    ptowsp_program_destroy(program);
    return status;
}

TEST(read__any_allocation_may_fail) {
    test_memory memory = {0};
    ptowsp_context_desc desc = {.resize = test_resize, .resize_user = &memory};
    ptowsp_context *context = test_context(&desc);
    size_t live = memory.live_bytes, size = 0, refused = 0;
    for (bool is_done = false; !is_done; refused++) {
        memory.allocations = 0;
        memory.refuse_at = refused + 1;
        ptowsp_status status = build_and_compile(context, &size);
        is_done = status == PTOWSP_OK;
        assert_true(is_done || status == PTOWSP_OUT_OF_MEMORY);
        assert_int_equal(memory.live_bytes, live);
    }
    memory.refuse_at = 0;
    print_message("%zu allocations, a program of %zu bytes\n", refused - 1, size);
    assert_true(refused > 30);
    ptowsp_context_destroy(context);
    assert_int_equal(memory.live_bytes, 0);
}

// All that a program holds is in its size.
TEST(read__the_size_of_a_program_is_all_that_it_holds) {
    test_memory memory = {0};
    ptowsp_context_desc desc = {.resize = test_resize, .resize_user = &memory};
    fixture f = {0};
    f.context = test_context(&desc);
    module_make(&f,
                "module m slots 8\naxis batch dynamic\naxis kv ragged\naxis pages sparse\n"
                "axis heads 3\nsymbol scale\narray order i16\n"
                "tensor x i32 [?, 4, 5] global\ntensor y f16 [6] global\n"
                "tensor z i64 [] global\nworkload w\n",
                NULL);
    compile(&f, NULL);
    ptowsp_module_destroy(f.module);
    f.module = NULL;
    size_t with = memory.live_bytes, size = ptowsp_program_size(f.program);
    ptowsp_program_destroy(f.program);
    f.program = NULL;
    assert_int_equal(with - memory.live_bytes, size);
    ptowsp_context_destroy(f.context);
}
