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

// Kernel 1: rows of x divided by their largest element and scaled, what is below a half 0, as f16.
static const char tile_kernels[] =
    "module m\nsymbol scale\ntensor x f32 [8, 24] global\ntensor y f16 [8, 24] global\n"
    "kernel clip(axes 0, in x f32 8 x 24, out y f16 8 x 24, s u64) vector, 0 instructions\n"
    "  %1 = parameter x\n  %2 = parameter y\n  %3 = scalar s : f32\n  %4 = rowmax %1\n"
    "  %5 = div %1, %4\n  %6 = mul %5, %3\n  %7 = const 0.5\n  %8 = compare %6 < %7\n"
    "  %9 = full 0 : f32 8 x 24\n  %10 = select %8, %9, %6\n  store %2, %10\n"
    "kernel product(axes 0, in a f16 16 x 32, in b f16 32 x 16, out c f32 16 x 16) cube, "
    "0 instructions\n"
    "  %1 = parameter a\n  %2 = parameter b\n  %3 = parameter c\n  %4 = matmul %1, %2\n"
    "  store %3, %4\nworkload w\n  task clip() x = x y = y s = scale\n";

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
    const ptowsp_kernel clip = {1}, product = {2};
    program_make(f, tile_kernels, NULL, NULL);
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

// Kernels 1 to 4, of which the workload has the second alone.
static const char sources[] =
    "module m slots 4\naxis batch dynamic\nkernel twice(axes 1) vector\n"
    "kernel two(axes 1) vector, cycles by a cost function\nkernel three(axes 1) vector\n"
    "kernel \"no identifier\"(axes 1) vector\nworkload w\n  parallel b in batch\n"
    "    task two(b) tag level = u64(b * 3) as node 2\n    when b < 2\n"
    "      task two(b) after node 2\n    otherwise\n      slot_set 1 = u64(b * 3)\n";

static ptowsp_status sources_parse(ptowsp_context *context, const char *text, const char *path,
                                   ptowsp_module **out) {
    const ptowsp_parse_kernel kernels[] = {
        {.name = "twice", .fn = twice, .source.text = source_of_two},
        {.name = "two",
         .fn = twice,
         .cost = thrice,
         .source = {.text = text, .fn = "twice", .cost = "thrice"}},
        {.name = "three", .fn = twice, .source.file = path},
        {.name = "no identifier", .fn = twice}};
    const ptowsp_parse_desc attached = {kernels, COUNT_OF(kernels), 0};
    return ptowsp_module_parse(context, sources, sizeof sources - 1, &attached, out, NULL);
}

TEST_F(read__sources_of_kernels_are_read_back) {
    static const struct {
        const char *fn, *cost, *file;
        bool has_text, is_used;
    } rows[] = {{"twice", NULL, NULL, true, false},
                {"twice", "thrice", NULL, true, true},
                {"three", NULL, "kernels/three.c", false, false},
                {NULL, NULL, NULL, false, false}};
    char copy[sizeof source_of_two], path[] = "kernels/three.c";
    memcpy(copy, source_of_two, sizeof copy);
    test_ok(f->context, sources_parse(f->context, copy, path, &f->module));
    memset(copy, 'x', sizeof copy);
    memset(path, 'x', sizeof path);
    program_make(f, NULL, NULL, NULL);
    ptowsp_module_destroy(f->module);
    f->module = NULL;
    const ptowsp_kernel_info *kernels = ptowsp_program_read(f->program)->kernels;
    const char *text = kernels[1].source.text;
    assert_string_equal(text, source_of_two);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const ptowsp_kernel_info *info = &kernels[i + 1];
        const char *const got[] = {info->source.fn, info->source.cost, info->source.file};
        const char *const expected[] = {rows[i].fn, rows[i].cost, rows[i].file};
        for (int k = 0; k < 3; k++) {
            assert_int_equal(got[k] != NULL, expected[k] != NULL);
            assert_string_equal(got[k] ? got[k] : "", expected[k] ? expected[k] : "");
        }
        assert_ptr_equal(info->source.text, rows[i].has_text ? text : NULL);  // kept once
        assert_true(info->has_fn && !info->is_tile_kernel);
        assert_int_equal(info->has_cost, i == 1);
        assert_int_equal(info->is_used, rows[i].is_used);
    }
}

// -- targets --------------------------------------------------------------------------------------

TEST_F(read__npus_do_l2_and_locations_that_nothing_uses) {
    program_make(f,
                 "module m\ntensor x i32 [4] l2\ntensor unused i32 [1] l1\n"
                 "kernel k(axes 0, out x i32 1 x 4) vector, 1 cycles, time only\n"
                 "workload w\n  task k() x = x\n",
                 NULL, NULL);
    assert_ok(ptowsp_program_check(f->context, f->program, PTOWSP_TARGET_ASCEND_NPU));
    assert_invalid(ptowsp_program_check(f->context, f->program, PTOWSP_TARGET_COUNT));
}

// -- memory ---------------------------------------------------------------------------------------

// Builds and compiles a program with sources and keys of tags; what it is, or what was refused.
static ptowsp_status build_and_compile(ptowsp_context *context, size_t *out_size) {
    ptowsp_module *m = NULL;
    ptowsp_program *program = NULL;
    ptowsp_status status = sources_parse(context, source_of_two, "three.c", &m);
    if (status != PTOWSP_OK) {
        return status;
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
    f.program = test_program(f.context, f.module, NULL);
    ptowsp_module_destroy(f.module);
    f.module = NULL;
    size_t with = memory.live_bytes, size = ptowsp_program_size(f.program);
    ptowsp_program_destroy(f.program);
    f.program = NULL;
    assert_int_equal(with - memory.live_bytes, size);
    ptowsp_context_destroy(f.context);
}
