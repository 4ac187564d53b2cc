// Lifetimes where the tree is too large to be followed call by call: all transient tensors then live at
// one point, and none shares memory with another. Sizes are worked out on paper.

#include "test.h"

enum { BYTES = 64, DEPTH = 20 };  // 2^20 calls are more than are followed

typedef struct fixture {
    ptowsp_context *context;
    ptowsp_module *module;
    ptowsp_program *program;
    ptowsp_run *run;
    uint64_t calls;
} fixture;

static ptowsp_cycles put(const ptowsp_task *task, void *user) {
    (void)user;
    memset(task->tiles[0].data, 7, BYTES);
    return 1;
}

static ptowsp_cycles check(const ptowsp_task *task, void *user) {
    (void)user;
    const char *data = (const char *)task->tiles[0].data;
    for (uint32_t i = 0; i < BYTES; i++) {
        if (data[i] != 7) {
            return ptowsp_task_fail(PTOWSP_INVALID_PARAMS);
        }
    }
    return 1;
}

static ptowsp_cycles copy(const ptowsp_task *task, void *user) {
    (void)user;
    memcpy(task->tiles[1].data, task->tiles[0].data, BYTES);
    return 1;
}

static ptowsp_cycles count(const ptowsp_task *task, void *user) {
    (void)task;
    ((fixture *)user)->calls++;
    return 1;
}

// a is copied to b before the calls, which is used behind them; c comes last.
static void compile(fixture *f, uint32_t depth, uint32_t called_at) {
    static char text[1 << 12];
    char *at = text;
    at += sprintf(at, "module m slots 2\n"
                      "tensor a i32 [1, 16] global transient\n"
                      "tensor b i32 [1, 16] global transient\n"
                      "tensor c i32 [1, 16] global transient\n"
                      "kernel put(axes 0, out x i32 1 x 16) vector\n"
                      "kernel copy(axes 0, in x i32 1 x 16, out y i32 1 x 16) vector\n"
                      "kernel check(axes 0, in x i32 1 x 16) vector\n"
                      "kernel count(axes 0) vector\n"
                      "workload w0\n  task count()\n");
    for (uint32_t i = 1; i <= depth; i++) {
        at += sprintf(at, "workload w%u\n  call w%u()\n  call w%u()\n", i, i - 1, i - 1);
    }
    sprintf(at,
            "workload main\n  task put() x = a\n  task copy() x = a y = b\n"
            "  when slot_i64[1] == %u\n    call w%u()\n"
            "  task check() x = b\n  task put() x = c\n  task check() x = c\n",
            called_at, depth);
    const ptowsp_parse_kernel kernels[4] = {{.name = "put", .fn = put},
                                            {.name = "copy", .fn = copy},
                                            {.name = "check", .fn = check},
                                            {.name = "count", .fn = count, .user = f}};
    const ptowsp_parse_desc attached = {kernels, 4, 0};
    const ptowsp_program_desc desc = {"main", NULL};
    memset(f, 0, sizeof *f);
    f->context = test_context(NULL);
    f->run = test_run_text(f->context, text, &attached, &desc, &f->module, &f->program);
}

static void fixture_free(fixture *f) {
    test_destroy(f->run, f->program, f->module, f->context);
}

TEST(coarse__lifetimes_share_no_memory) {
    for (uint32_t i = 0; i < 2; i++) {
        fixture f;
        ptowsp_transient_sizes sizes;
        const uint32_t depth = i ? DEPTH : 2;
        compile(&f, depth, i ? 1 : 0);  // the slot is 0: those of the larger tree are not called
        assert_int_equal(ptowsp_program_read(f.program)->transient_count, 3);
        assert_ok(ptowsp_run_size_transients(f.run, &sizes));
        // a and b live together, and c where a was; or all three do.
        assert_int_equal(sizes.peak, i ? 3 * BYTES : 2 * BYTES);
        assert_int_equal(sizes.low, sizes.peak);
        assert_int_equal(sizes.sum, 3 * BYTES);
        assert_int_equal(sizes.point_count == 1, i);
        assert_int_equal(ptowsp_program_read(f.program)->point_count == 1, i);
        for (uint32_t t = 0; t < 3 && i; t++) {
            const ptowsp_transient_info info = ptowsp_program_read(f.program)->transients[t];
            const ptowsp_lifetime_info at =
                ptowsp_program_read(f.program)->lifetimes[info.first_lifetime];
            assert_int_equal(info.lifetime_count, 1);
            assert_int_equal(info.sizes[0], 0);  // as they were declared
            assert_int_equal(info.sizes[1], 0);
            assert_int_equal(at.first, 0);
            assert_int_equal(at.last, 0);
        }
        assert_ok(ptowsp_run_execute(f.run, NULL));
        assert_int_equal(f.calls, i ? 0 : 4);
        fixture_free(&f);
    }
}
