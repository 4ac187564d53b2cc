// Transient tensors (tests/cases/transients.case has lifetimes and places on paper, and runs.facts blocks, pictures and
// what is refused): random programs that give the same results with shared memory as with memory for each tensor.

#include "test.h"

#include "src/exec/run.h"

enum { TENSORS = 8, TEXT_MAX = 1 << 14 };

typedef struct fixture {
    test_memory memory;
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
    ptowsp_run *run;
    char text[TEXT_MAX];  // of the module
    size_t length;
    uint32_t next_seed, next_loop;
} fixture;

// -- kernels --------------------------------------------------------------------------------------

static uint64_t tile_hash(const ptowsp_task *task, uint32_t tile, uint64_t hash) {
    for (int64_t r = 0; r < ptowsp_task_rows(task, tile); r++) {
        for (int64_t c = 0; c < ptowsp_task_cols(task, tile); c++) {
            const ptowsp_tile *t = &task->tiles[tile];
            hash = (hash ^ ((const uint64_t *)t->data)[r * t->row_stride + c * t->col_stride]) *
                   UINT64_C(0x100000001b3);
        }
    }
    return hash;
}

// A kernel's call that does not end well: the at-th one, which cancels a run, or fails.
static struct {
    uint64_t at, calls;  // calls: atomic
    ptowsp_run *cancels;
} ending;

// Fills the last tile with numbers that depend on all of the others; with `user`, on it, too.
static ptowsp_cycles mix_kernel(const ptowsp_task *task, void *user) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ ptowsp_task_scalar(task, 0);
    uint32_t out = task->tile_count - 1;
    if (ending.at && __atomic_add_fetch(&ending.calls, 1, __ATOMIC_RELAXED) == ending.at) {
        if (!ending.cancels) {
            return ptowsp_task_fail(PTOWSP_UNSUPPORTED);
        }
        ptowsp_run_cancel(ending.cancels);
    }
    for (uint32_t i = 0; i < out + (user != NULL); i++) {
        hash = tile_hash(task, i, hash);
    }
    for (int64_t r = 0; r < ptowsp_task_rows(task, out); r++) {
        for (int64_t c = 0; c < ptowsp_task_cols(task, out); c++) {
            const ptowsp_tile *t = &task->tiles[out];
            ((uint64_t *)t->data)[r * t->row_stride + c * t->col_stride] = hash +=
                UINT64_C(0x9e3779b97f4a7c15);
        }
    }
    return 10;
}

// -- building -------------------------------------------------------------------------------------

static void add(fixture *f, const char *format, ...) {
    va_list args;
    va_start(args, format);
    f->length += (size_t)vsnprintf(f->text + f->length, TEXT_MAX - f->length, format, args);
    va_end(args);
    assert_true(f->length < TEXT_MAX);
}

static char name_of(uint32_t tensor) {
    return (char)('a' + tensor);
}

// Tensors a to h: rows by the axis or four, one to four columns.
static void fixture_begin(fixture *f, bool is_transient) {
    ptowsp_context_desc desc = test_lanes_desc(4);
    memset(f, 0, sizeof *f);
    desc.resize = test_resize;
    desc.resize_user = &f->memory;
    assert_ok(ptowsp_context_create(&desc, &f->context));
    add(f, "module transient slots 4\naxis rows dynamic\naxis n1 1\naxis n2 2\naxis n3 3\n");
    for (uint32_t i = 0; i < TENSORS; i++) {
        const uint32_t cols = 1 + i % 4;
        char rows[32] = "4";
        if (i % 3 == 0) {
            snprintf(rows, sizeof rows, is_transient ? "size(rows) * %u" : "?", cols);
        }
        add(f, "tensor %c u64 [%s, %u] global%s\n", name_of(i), rows, cols,
            is_transient ? " transient" : "");
    }
    add(f, "tensor out u64 [3, 5] global\n"
           "kernel make(axes 0, out a u64 ? x ?, seed u64) vector, 10 cycles\n"
           "kernel mix(axes 0, in a u64 ? x ?, in b u64 ? x ?, out c u64 ? x ?, seed u64) vector, "
           "10 cycles\n"
           "kernel sink(axes 0, in a u64 ? x ?, in b u64 ? x ?, inout c u64 ? x ?, seed u64) "
           "vector, 10 cycles\n");
}

static void fixture_end(fixture *f) {
    test_destroy(f->run, f->program, f->m, f->context);
    assert_int_equal(f->memory.live_blocks, 0);
}

static void parse(fixture *f) {
    const ptowsp_parse_kernel kernels[] = {{.name = "make", .fn = mix_kernel},
                                           {.name = "mix", .fn = mix_kernel},
                                           {.name = "sink", .fn = mix_kernel, .user = f}};
    const ptowsp_parse_desc attached = {.kernels = kernels, .kernel_count = 3};
    test_ok(f->context,
            ptowsp_module_parse(f->context, f->text, f->length, &attached, &f->m, NULL));
}

static void compile(fixture *f) {
    const ptowsp_program_desc desc = {"main", NULL};
    parse(f);
    test_ok(f->context, ptowsp_program_create(f->context, f->m, &desc, &f->program));
    assert_ok(ptowsp_run_create(f->context, f->program, &f->run));
}

// -- random programs ------------------------------------------------------------------------------

// A random program, the same for the same state of random numbers, of at most *budget tasks.
static void random_block(fixture *f, uint64_t *random, int depth, uint32_t known, int *budget,
                         bool has_call) {
    const int indent = 2 * depth + 2;
    for (int i = (int)test_random_in(random, 2, 6); i > 0 && *budget > 0; i--) {
        int64_t kind = test_random_in(random, 0, 11);
        uint32_t out = (uint32_t)test_random_in(random, 0, TENSORS - 1);
        if (kind >= 8 && depth < 4) {
            const int size = (int)test_random_in(random, 1, 3);
            static const char *const loops[] = {"for_each", "parallel"};
            if (kind < 10) {
                add(f, "%*s%s v%u in n%d\n", indent, "", loops[kind - 8], f->next_loop++, size);
            } else if (kind == 10) {
                add(f, "%*swhen slot_i64[0] < %d\n", indent, "", (int)test_random_in(random, 0, 3));
            } else {
                add(f, "%*scombine\n", indent, "");
            }
            random_block(f, random, depth + 1, known, budget, has_call);
        } else if (kind == 7 && has_call) {
            add(f, "%*scall part()\n", indent, "");
        } else if (known == 0 || kind < 2) {
            add(f, "%*stask make() a = %c seed = %uu\n", indent, "", name_of(out), f->next_seed++);
            known |= 1u << out;
            --*budget;
        } else {
            uint32_t from[2];
            for (int j = 0; j < 2; j++) {
                do {
                    from[j] = (uint32_t)test_random_in(random, 0, TENSORS - 1);
                } while (!(known >> from[j] & 1));
            }
            const bool is_seen =
                test_random_in(random, 0, 3) == 0 || out == from[0] || out == from[1];
            const char name[] = {name_of(out), '\0'};
            add(f, "%*stask %s() a = %c b = %c c = %s seed = %uu\n", indent, "",
                is_seen ? "sink" : "mix", name_of(from[0]), name_of(from[1]),
                is_seen ? "out" : name, f->next_seed++);
            known |= is_seen ? 0 : 1u << out;
            --*budget;
        }
    }
}

static void random_program(fixture *f, uint64_t random, bool is_transient) {
    int budget = 40;
    fixture_begin(f, is_transient);
    bool has_call = test_random_in(&random, 0, 1);
    add(f, "workload part\n  task make() a = b seed = %uu\n", f->next_seed++);
    random_block(f, &random, 0, 2, &budget, false);
    add(f, "workload main\n  task make() a = a seed = %uu\n", f->next_seed++);
    random_block(f, &random, 0, 1, &budget, has_call);
    compile(f);
    assert_ok(ptowsp_run_bind_size(f->run, "rows", 3));
}

static void bind_out(fixture *f, uint64_t *out) {
    memset(out, 0, 15 * sizeof *out);
    test_bind(f->run, "out", out);
}

// The out tensor, which all sinks of a program add to, is compared.
TEST(transient__random_programs_give_the_same_in_one_block) {
    static uint64_t cells[TENSORS][64];
    uint64_t random = test_seed(), saved = 0;
    for (int round = 0; TEST_ROUNDS(round, 600); round++) {
        uint64_t seed = test_random(&random), alone[15], shared[15];
        fixture f;
        random_program(&f, seed, false);
        for (uint32_t i = 0; i < TENSORS; i++) {
            const ptowsp_buffer buffer = {.data = cells[i],
                                          .size = sizeof cells[i],
                                          .rank = 2,
                                          .shape = {i % 3 ? 4 : 3 * (1 + i % 4), 1 + i % 4}};
            const char name[2] = {(char)('a' + i), '\0'};
            assert_ok(ptowsp_run_bind_tensor(f.run, name, &buffer));
        }
        bind_out(&f, alone);
        assert_ok(ptowsp_run_execute(f.run, NULL));
        ptowsp_cycles busy = ptowsp_run_result(f.run)->busy_cycles;
        fixture_end(&f);

        random_program(&f, seed, true);
        for (uint32_t lanes = 0; lanes <= 4; lanes += 2) {
            bind_out(&f, shared);
            test_ok(f.context, test_execute(f.run, lanes));
            assert_memory_equal(shared, alone, sizeof alone);
            assert_true(ptowsp_run_result(f.run)->busy_cycles == busy);
        }
        ptowsp_cycles makespan = ptowsp_run_result(f.run)->makespan_cycles;
        assert_ok(test_time(f.run));
        assert_true(ptowsp_run_result(f.run)->makespan_cycles == makespan);
        ptowsp_transient_sizes sizes;
        assert_ok(ptowsp_run_size_transients(f.run, &sizes));
        saved += sizes.sum - sizes.peak;
        fixture_end(&f);
    }
    assert_met(saved > 0);
}

// A tree of 2^20 calls is too large to be followed call by call: all tensors, a to h, live at one point, and
// none shares memory. Otherwise a (40 -> 64 bytes) and b (64) live together, and c (96 -> 128) where they were.
TEST(transient__tensors_of_too_many_calls_share_no_memory) {
    uint64_t out[2][15];
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t depth = i ? 20 : 2;
        ptowsp_transient_sizes sizes;
        fixture f;
        fixture_begin(&f, true);
        add(&f, "workload w0\n  task make() a = out seed = 1u\n");
        for (uint32_t w = 1; w <= depth; w++) {
            add(&f, "workload w%u\n  call w%u()\n  call w%u()\n", w, w - 1, w - 1);
        }
        add(&f,
            "workload main\n  task make() a = a seed = 2u\n  task mix() a = a b = a c = b seed = "
            "3u\n"
            "  when slot_i64[1] == %u\n    call w%u()\n"  // it is 0
            "  task mix() a = b b = b c = out seed = 4u\n  task make() a = c seed = 5u\n"
            "  task sink() a = c b = c c = out seed = 6u\n",
            i, depth);
        compile(&f);
        const ptowsp_program_tables *info = ptowsp_program_read(f.program);
        assert_ok(ptowsp_run_bind_size(f.run, "rows", 5));
        assert_ok(ptowsp_run_size_transients(f.run, &sizes));
        assert_int_equal(sizes.peak, i ? 1536 : 128);
        assert_int_equal(sizes.low, sizes.peak);
        assert_int_equal(sizes.sum, i ? 1536 : 256);
        assert_int_equal(sizes.point_count == 1, i);
        assert_int_equal(info->point_count == 1, i);
        assert_int_equal(info->transient_count, TENSORS);
        for (uint32_t t = 0; t < TENSORS && i; t++) {
            const ptowsp_lifetime_info at = info->lifetimes[info->transients[t].first_lifetime];
            assert_int_equal(info->transients[t].lifetime_count, 1);
            assert_int_equal(info->transients[t].sizes[0] != 0, t % 3 == 0);  // by the axis
            assert_int_equal(info->transients[t].sizes[1], 0);
            assert_int_equal(at.first, 0);
            assert_int_equal(at.last, 0);
        }
        bind_out(&f, out[i]);
        assert_ok(ptowsp_run_execute(f.run, NULL));
        assert_int_equal(ptowsp_run_result(f.run)->task_count, i ? 5 : 9);
        fixture_end(&f);
    }
    assert_memory_equal(out[0], out[1], sizeof out[0]);
}

// -- memory ---------------------------------------------------------------------------------------

static void pair_build(fixture *f) {
    fixture_begin(f, true);
    add(f,
        "workload main\n  task make() a = a seed = 0u\n  task mix() a = a b = a c = b seed = 1u\n"
        "  task mix() a = b b = b c = out seed = 2u\n");
}

static void pair_make(fixture *f) {
    pair_build(f);
    compile(f);
    assert_ok(ptowsp_run_bind_size(f->run, "rows", 100));
}

// A run that is cancelled or fails at any call can be repeated, with the results as before, on lanes too; it
// keeps no memory but what it has already. (On lanes that is what tasks in flight have taken, so far.)
TEST(transient__cancelled_and_failed_runs_can_be_repeated) {
    static const ptowsp_status statuses[] = {PTOWSP_UNSUPPORTED, PTOWSP_CANCELLED};
    uint64_t random = test_seed();
    uint32_t met[2] = {0, 0};
    for (int round = 0; TEST_ROUNDS(round, 100); round++) {
        uint64_t expected[15], out[15];
        fixture f;
        random_program(&f, test_random(&random), true);
        bind_out(&f, expected);
        assert_ok(ptowsp_run_execute(f.run, NULL));
        uint64_t count = ptowsp_run_result(f.run)->task_count;
        for (int i = 0; i < 12; i++) {
            const ptowsp_run_options options = {.lane_count = (uint32_t)(i % 3) * 2};
            bind_out(&f, out);  // an execution with as many lanes has what it needs
            assert_ok(ptowsp_run_execute(f.run, &options));
            size_t live = f.memory.live_bytes;
            ending.cancels = i % 2 ? f.run : NULL;
            ending.calls = 0;
            ending.at = (uint64_t)test_random_in(&random, 1, (int64_t)count);
            ptowsp_status status = ptowsp_run_execute(f.run, &options);
            ending.at = 0;
            // The last call of all may be the one that cancels: then nothing is left out.
            assert_true(status == statuses[i % 2] || (i % 2 && status == PTOWSP_OK));
            met[i % 2] += status == statuses[i % 2];
            assert_true(options.lane_count || f.memory.live_bytes == live);
            bind_out(&f, out);
            assert_ok(ptowsp_run_execute(f.run, &options));
            assert_memory_equal(out, expected, sizeof out);
            assert_true(options.lane_count || f.memory.live_bytes == live);
        }
        fixture_end(&f);
    }
    assert_true(met[0] > 0 && met[1] > 0);
}

// Of 832 and 64 bytes; running again allocates nothing.
TEST(transient__a_block_has_all_of_them_and_nothing_more) {
    static _Alignas(64) unsigned char block[4096];
    uint64_t out[15];
    fixture f;
    pair_make(&f);
    bind_out(&f, out);
    assert_ok(ptowsp_run_bind_transients(f.run, NULL, 896));
    assert_ok(ptowsp_run_execute(f.run, NULL));
    const size_t allocations = f.memory.allocations;
    assert_ok(ptowsp_run_execute(f.run, NULL));
    assert_int_equal(f.memory.allocations, allocations);
    memset(block, 0x11, sizeof block);
    assert_ok(ptowsp_run_bind_transients(f.run, block, 896));
    assert_ok(ptowsp_run_execute(f.run, NULL));
    for (uint32_t i = 0; i < sizeof block; i++) {
        assert_true(i < 896 || block[i] == 0x11);
    }
    assert_true(block[0] != 0x11 || block[1] != 0x11);
    assert_invalid(ptowsp_run_size_transients(f.run, NULL));
    assert_ok(ptowsp_program_check(f.context, f.program, PTOWSP_TARGET_THREADS));
    fixture_end(&f);
}

TEST(memory__each_allocation_may_be_refused) {
    uint64_t out[15];
    EACH_REFUSED(n, 0) {
        fixture f;
        pair_build(&f);
        parse(&f);
        test_refuse(&f.memory, n);
        ptowsp_status status = ptowsp_program_create(f.context, f.m, NULL, &f.program);
        status = status ? status : ptowsp_run_create(f.context, f.program, &f.run);
        if (status == PTOWSP_OK) {
            assert_ok(ptowsp_run_bind_size(f.run, "rows", 5));
            bind_out(&f, out);
            status = ptowsp_run_execute(f.run, NULL);
        }
        has_more = test_was_refused(&f.memory, status);
        fixture_end(&f);
    }
}

// A size beside an expression, which a text cannot have.
CONTEXT_TEST(transient__a_size_and_an_expression_are_refused) {
    const ptowsp_tensor_desc desc = {"x", PTOWSP_U64, 1, {4}, PTOWSP_LOCATION_GLOBAL};
    const ptowsp_module_desc module = {"transient", 4};
    ptowsp_module *m = test_module(context, &module);
    const ptowsp_expr size = ptowsp_i64(m, 4);
    ptowsp_tensor_transient(m, &desc, &size);
    assert_string_equal(ptowsp_module_error(m).text,
                        "transient: transient tensor x: dimension 0 has a size and an expression");
    ptowsp_module_destroy(m);
}
