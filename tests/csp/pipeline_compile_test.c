// Which operations of pipelines are known before kernels run. What pipelines become is in
// tests/cases/printed.case, as text, and how they are walked in the slow reference's tests. All is worked out on
// paper from the header and the comments of program.h.

#include "src/workload/expand.h"

#include "support/fixture.h"

enum { Z = 3 };  // tensors

#define HEAD                                                                                       \
    "module decode slots 4\n"                                                                      \
    "axis tiles dynamic\n"                                                                         \
    "axis workers 2\n"                                                                             \
    "symbol depth\n"                                                                               \
    "array list i32\n"                                                                             \
    "tensor x i32 [?, 8] global\n"                                                                 \
    "tensor y i32 [?, 8] global\n"                                                                 \
    "tensor z i32 [?, 8] global\n"                                                                 \
    "kernel step(axes 1) vector, 10 cycles, time only\n"                                           \
    "kernel mul(axes 1) cube, 10 cycles, time only\n"                                              \
    "kernel load(axes 1, in from i32 1 x 8, out to i32 1 x 8) vector, 10 cycles, time only\n"      \
    "kernel add(axes 0, inout from i32 1 x 8) vector, 10 cycles, time only\n"

// One of each.
static const char one_of_each[] = HEAD "workload finish(a i64)\n"
                                       "  parallel q in workers\n"
                                       "    task step(a + q)\n"
                                       "workload main\n"
                                       "  task step(0) as node 5\n"
                                       "  pipeline double_buffer after node 5 as node 6\n"
                                       "    channel loaded depth depth latency 50\n"
                                       "    event go\n"
                                       "    process load consumes go produces loaded\n"
                                       "      wait go\n"
                                       "      parallel i in tiles\n"
                                       "        task load(i) from = x at (i, 0) to = y at (i, 0)\n"
                                       "        send loaded(i)\n"
                                       "      close loaded\n"
                                       "    process compute replicas w in workers consumes loaded "
                                       "produces go\n"
                                       "      record go\n"
                                       "      consume t from loaded\n"
                                       "        call finish(t)\n"
                                       "      receive u from loaded\n"
                                       "        slot_set 0 = u + w\n"
                                       "  task step(1) after node 6\n";

// -- what is known --------------------------------------------------------------------------------

// Asserts that exactly these ops are unknown when tasks write these tensors (bits by id).
static void unknown_are(const fixture *f, uint32_t written, const char *expected) {
    const ptowsp_program *p = f->program;
    const pwsp_memory *memory = &p->memory;
    uint8_t unknown[64];
    bool is_written[8];
    char text[300] = "";
    for (uint32_t i = 0; i < 8; i++) {
        is_written[i] = (written >> i & 1) != 0;
    }
    assert_true(p->ops.count <= 64);
    assert_true(pwsp_program_find_tainted(p, memory, is_written, unknown));
    for (uint32_t i = 0; i < p->ops.count; i++) {
        if (unknown[i]) {
            size_t length = strlen(text);
            snprintf(text + length, sizeof text - length, "%s%u", length ? " " : "", i);
        }
    }
    assert_string_equal(text, expected);
}

// Of the program above: the wait, both receives with what follows them up to their ends, and what
// finish does with the token.
TEST_F(pipeline_compile__what_is_received_is_unknown) {
    program_make(f, one_of_each, NULL, NULL);
    unknown_are(f, 0, "2 10 11 12 13 14 19");
}

// Two slots are loaded from z. One decides whether p runs, the other how deep the channel of q is,
// and what is sent there: its token alone is unknown when only that is. Operations are numbered:
//
//      0 slot_load   1 when   2 p   3 its task   4 its end   5 q   6, 7 sends   8 end   9 receive   10 end
TEST_F(pipeline_compile__what_depends_on_slots_is_unknown) {
    static const struct {
        uint32_t of_when, of_depth, of_token;
        const char *unknown;
    } cases[] = {
        {2, 2, 2, "0 9"},
        {2, 2, 1, "0 6 9"},
        {1, 2, 2, "0 1 2 3 4 9"},
        {2, 1, 2, "0 5 6 7 8 9 10"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[2000];
        snprintf(text, sizeof text,
                 HEAD "workload main\n"
                      "  slot_load 1 = z\n"
                      "  when slot_bool[%u]\n"
                      "    pipeline p\n"
                      "      process a\n"
                      "        task step(1)\n"
                      "  pipeline q\n"
                      "    channel c depth slot_u64[%u] latency 0\n"
                      "    process a produces c\n"
                      "      send c(slot_u64[%u])\n"
                      "      send c(1u)\n"
                      "    process b consumes c\n"
                      "      receive t from c\n"
                      "  task step(2)\n",
                 cases[i].of_when, cases[i].of_depth, cases[i].of_token);
        program_make(f, text, NULL, NULL);
        unknown_are(f, 0, "9");  // nobody writes z
        unknown_are(f, 1u << Z, cases[i].unknown);
        fixture_clear(f);
    }
}
