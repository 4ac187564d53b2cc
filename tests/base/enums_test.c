// Names of enumerators: each has one of its own, and a number that is none has the word for that.

#include "test.h"

typedef const char *(*name_fn)(int64_t value);

#define NAME(function, type)                                                                       \
    static const char *function##_of(int64_t value) {                                              \
        return function((type)value);                                                              \
    }

NAME(ptowsp_status_name, ptowsp_status)
NAME(ptowsp_status_text, ptowsp_status)
NAME(ptowsp_dtype_name, ptowsp_dtype)
NAME(ptowsp_location_name, ptowsp_location)
NAME(ptowsp_collective_name, ptowsp_collective_kind)
NAME(ptowsp_algorithm_name, ptowsp_algorithm)
NAME(ptowsp_unit_name, ptowsp_unit)
NAME(ptowsp_memory_name, ptowsp_memory)
NAME(ptowsp_pipe_name, ptowsp_pipe)
NAME(ptowsp_opcode_name, ptowsp_opcode)
NAME(ptowsp_ring_name, ptowsp_ring)
NAME(ptowsp_depth_name, ptowsp_depth)
NAME(ptowsp_target_name, ptowsp_target)
NAME(ptowsp_support_name, ptowsp_support)
NAME(ptowsp_stall_name, ptowsp_stall)
NAME(ptowsp_control_cost_name, ptowsp_control_cost)
NAME(ptowsp_edge_reason_name, ptowsp_edge_reason)
NAME(ptowsp_rails_reason_text, ptowsp_rails_reason)

static const struct {
    const char *what;
    name_fn name;
    int64_t low, high;  // its enumerators
    const char *first, *last, *none;
} kinds[] = {
    {"status", ptowsp_status_name_of, PTOWSP_RANK_FAILED, PTOWSP_OK, "RANK_FAILED", "OK",
     "UNKNOWN"},
    {"status text", ptowsp_status_text_of, PTOWSP_RANK_FAILED, PTOWSP_OK,
     "another rank failed, ended or differs", "ok", "no such status"},
    {"dtype", ptowsp_dtype_name_of, PTOWSP_F16, PTOWSP_BOOL, "f16", "bool", "none"},
    {"location", ptowsp_location_name_of, PTOWSP_LOCATION_GLOBAL, PTOWSP_LOCATION_L1, "global",
     "l1", "none"},
    {"collective", ptowsp_collective_name_of, PTOWSP_ALL_REDUCE, PTOWSP_SLICE, "all_reduce",
     "slice", "none"},
    {"algorithm", ptowsp_algorithm_name_of, PTOWSP_ALGORITHM_AUTO, PTOWSP_ALGORITHM_RING, "auto",
     "ring", "none"},
    {"unit", ptowsp_unit_name_of, PTOWSP_UNIT_VECTOR, PTOWSP_UNIT_MIX, "vector", "mix", "unknown"},
    {"memory", ptowsp_memory_name_of, PTOWSP_MEMORY_UB, PTOWSP_MEMORY_COUNT - 1, "UB",
     "fixpipe buffer", "none"},
    {"pipe", ptowsp_pipe_name_of, PTOWSP_PIPE_S, PTOWSP_PIPE_COUNT - 1, "S", "FIX", "none"},
    {"opcode", ptowsp_opcode_name_of, PTOWSP_OP_TLOAD, PTOWSP_OP_COUNT - 1, "TLOAD", "TPOP",
     "NONE"},
    {"ring", ptowsp_ring_name_of, PTOWSP_RING_TASKS, PTOWSP_RING_MAP, "tasks", "map", "unknown"},
    {"depth", ptowsp_depth_name_of, PTOWSP_DEPTH_STREAM, PTOWSP_DEPTH_POOL, "stream", "pool",
     "unknown"},
    {"target", ptowsp_target_name_of, PTOWSP_TARGET_CPU_SIM, PTOWSP_TARGET_THREADS, "cpu_sim",
     "threads", "none"},
    {"support", ptowsp_support_name_of, PTOWSP_SUPPORT_ENFORCED, PTOWSP_SUPPORT_LEGALISED,
     "enforced", "legalised", "none"},
    {"stall", ptowsp_stall_name_of, PTOWSP_STALL_NONE, PTOWSP_STALL_COUNT - 1, "none", NULL,
     "unknown"},
    {"control cost", ptowsp_control_cost_name_of, PTOWSP_CONTROL_LAUNCH,
     PTOWSP_CONTROL_COST_COUNT - 1, "launch", "complete", "unknown"},
    {"edge reason", ptowsp_edge_reason_name_of, PTOWSP_EDGE_STRUCTURE, PTOWSP_EDGE_COUNT - 1,
     "structure", NULL, "unknown"},
    {"rails reason", ptowsp_rails_reason_text_of, PTOWSP_REASON_NONE, PTOWSP_REASON_COUNT - 1,
     "none", NULL, "unknown"},
};

enum { KIND_COUNT = COUNT_OF(kinds), FORCE_INT = 0x7fffffff };

TEST(enums__each_has_a_name_of_its_own) {
    for (uint32_t i = 0; i < KIND_COUNT; i++) {
        assert_string_equal(kinds[i].name(kinds[i].low), kinds[i].first);
        if (kinds[i].last) {
            assert_string_equal(kinds[i].name(kinds[i].high), kinds[i].last);
        }
        for (int64_t a = kinds[i].low; a <= kinds[i].high; a++) {
            const char *name = kinds[i].name(a);
            assert_true(name[0] != 0);
            assert_true(a == kinds[i].low || strcmp(name, kinds[i].none) != 0);
            for (int64_t b = kinds[i].low; b < a; b++) {
                if (strcmp(kinds[i].name(b), name) == 0) {
                    fail_msg("%s %d and %d are both %s", kinds[i].what, (int)b, (int)a, name);
                }
            }
        }
    }
}

TEST(enums__other_numbers_have_the_word_for_none) {
    for (uint32_t i = 0; i < KIND_COUNT; i++) {
        const int64_t none[] = {1000, -1000, FORCE_INT, -99, -100, INT32_MIN, 1, 2};
        // Outcomes that are no errors have no names yet.
        const uint32_t count = kinds[i].high == PTOWSP_OK ? 8 : 6;
        for (uint32_t k = 0; k < count; k++) {
            if (strcmp(kinds[i].name(none[k]), kinds[i].none) != 0) {
                fail_msg("%s %d is %s", kinds[i].what, (int)none[k], kinds[i].name(none[k]));
            }
        }
    }
    assert_string_equal(ptowsp_location_name((ptowsp_location)4), "none");
    assert_string_equal(ptowsp_unit_name(PTOWSP_UNIT_LINK), "link");
    assert_string_equal(ptowsp_unit_name(PTOWSP_UNIT_COUNT), "unknown");
    assert_string_equal(ptowsp_ring_name(PTOWSP_RING_COUNT), "unknown");
    assert_string_equal(ptowsp_depth_name(PTOWSP_DEPTH_COUNT), "unknown");
    assert_string_equal(ptowsp_stall_name(PTOWSP_STALL_COUNT), "unknown");
    assert_string_equal(ptowsp_edge_reason_name(PTOWSP_EDGE_COUNT), "unknown");
}

// A decision has its action in words, and of a number that is none as well.
TEST(enums__actions_of_rails_have_names) {
    static const struct {
        int64_t action;
        const char *text;
    } cases[] = {{PTOWSP_RAILS_KEEP, "7: keep 1 -> 2\n"},
                 {PTOWSP_RAILS_TRY, "7: try 1 -> 2\n"},
                 {PTOWSP_RAILS_PROMOTE, "7: promote 1 -> 2\n"},
                 {PTOWSP_RAILS_ROLL_BACK, "7: roll back 1 -> 2\n"},
                 {PTOWSP_RAILS_REFUSE, "7: refuse 2\n"},
                 {1000, "7: unknown 1 -> 2\n"},
                 {FORCE_INT, "7: unknown 1 -> 2\n"}};
    for (uint32_t i = 0; i < COUNT_OF(cases); i++) {
        ptowsp_rails_decision decision = {
            .time = 7, .action = (ptowsp_rails_action)cases[i].action, .from = 1, .to = 2};
        char text[128];
        ptowsp_rails_print(&decision, NULL, TEST_TEXT(text));
        assert_string_equal(text, cases[i].text);
    }
}
