// Names: what may be one, and two that have the same hash.

#include "expr_reference.h"

// Two names with one FNV-1a-64 hash.
static const char *const twins[] = {"8yn0iYCKYHlIj4-BwPqk", "GReLUrM4wMqfg9yzV3KQ"};

static ptowsp_cycles no_cycles(const ptowsp_task *task, void *user) {
    (void)task;
    (void)user;
    return 0;
}

// Declares something of some kind under a name, and returns what it is called.
static const char *declare(const fixture *f, int kind, const char *name) {
    ptowsp_kernel_desc kernel = {.fn = no_cycles, .name = "k"};
    switch (kind) {
    case 0: ptowsp_axis_dense(f->m, name, 3); return "axis";
    case 1: ptowsp_axis_dynamic(f->m, name); return "axis";
    case 2: ptowsp_axis_ragged(f->m, name); return "axis";
    case 3: ptowsp_axis_sparse(f->m, name); return "axis";
    case 4: ptowsp_symbol(f->m, name); return "symbol";
    case 5: ptowsp_array_at(f->m, name, PTOWSP_I32, ptowsp_i64(f->m, 0)); return "array";
    case 6:
        ptowsp_tensor_make(f->m, &(ptowsp_tensor_desc){.name = name, .dtype = PTOWSP_I32});
        return "tensor";
    case 7:
        kernel.name = name;
        ptowsp_kernel_make(f->m, &kernel);
        return "kernel";
    case 8: PTOWSP_WORKLOAD(f->m, name) {
        }
        return "workload";
    case 9:
        kernel.tiles[0] = (ptowsp_tile_param){name, PTOWSP_IN, PTOWSP_I32, 1, 1};
        ptowsp_kernel_make(f->m, &kernel);
        return "tile parameter";
    case 10:
        kernel.scalars[0] = (ptowsp_scalar_param){name, PTOWSP_TYPE_I64};
        ptowsp_kernel_make(f->m, &kernel);
        return "scalar parameter";
    case 11:
        ptowsp_workload_begin(f->m, "main");
        ptowsp_workload_param(f->m, name, PTOWSP_TYPE_I64);
        return "parameter";
    case 12:
        ptowsp_workload_begin(f->m, "main");
        ptowsp_parallel_begin(f->m, name, ptowsp_axis_dense(f->m, "x", 1));
        return "variable";
    case 13:
        ptowsp_workload_begin(f->m, "main");
        ptowsp_call_make(f->m, name, NULL, 0);
        return "called workload";
    case 14: ptowsp_task_variable(f->m, name); return "variable";
    default: ptowsp_task_tag(f->m, name); return "tag";
    }
}

FIXTURE_TEST(names__names_have_one_to_63_plain_characters) {
    static const char long_name[] =
        "0123456789012345678901234567890123456789012345678901234567890123";  // 64
    const char *const bad[] = {"", long_name, "a\"b", "a'b", "a\\b", "a\nb", "\xc3\xa9", "\x7f"};
    for (int kind = 0; kind < 16; kind++) {
        for (size_t i = 0; i < COUNT_OF(bad); i++) {
            char text[160];
            fixture_renew(f);
            const char *what = declare(f, kind, bad[i]);
            snprintf(text, sizeof text,
                     "%s: the name of this %s is not 1 to 63 printable ASCII characters without "
                     "quotes and backslash",
                     kind >= 11 && kind <= 13 ? "main" : "module", what);
            module_error_is(f, PTOWSP_INVALID_PARAMS, text);
        }
        fixture_renew(f);
        declare(f, kind, long_name + 1);  // 63
        module_error_is(f, PTOWSP_OK, "");
    }
}

FIXTURE_TEST(names__a_module_has_a_name_of_the_same_kind) {
    ptowsp_module *m;
    ptowsp_module_desc desc = {"a\nb", 0};
    assert_invalid(ptowsp_module_create(f->context, &desc, &m));
    assert_null(m);
    test_error_is(f->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                  "module: its name is not 1 to 63 printable ASCII characters without quotes and "
                  "backslash");
    desc.name = "big";
    desc.slot_count = PTOWSP_SLOT_COUNT_MAX + 1;
    test_refused(f->context, ptowsp_module_create(f->context, &desc, &m), PTOWSP_INVALID_PARAMS,
                 65537, "module big: 65537 slots are more than 65536");
    test_refused(f->context, ptowsp_module_create(f->context, &desc, NULL), PTOWSP_INVALID_PARAMS,
                 PTOWSP_NO_INDEX, "module: out_module is NULL");
}

FIXTURE_TEST(names__two_names_with_one_hash_are_an_error) {
    assert_true(ptowsp_hash(PTOWSP_HASH_START, twins[0], 20) ==
                ptowsp_hash(PTOWSP_HASH_START, twins[1], 20));
    for (int first = 0; first <= 6; first++) {  // all that is bound shares one space
        for (int second = 0; second <= 6; second++) {
            fixture_renew(f);
            declare(f, first, twins[0]);
            declare(f, second, twins[1]);
            module_error_is(f, PTOWSP_INVALID_PARAMS,
                            "module: the names 8yn0iYCKYHlIj4-BwPqk and GReLUrM4wMqfg9yzV3KQ have "
                            "the same hash; rename one");
        }
    }
    fixture_renew(f);
    declare(f, 7, twins[0]);
    declare(f, 7, twins[1]);
    module_error_is(f, PTOWSP_INVALID_PARAMS,
                    "module: kernel GReLUrM4wMqfg9yzV3KQ: its name has the hash of another "
                    "kernel's");
    fixture_renew(f);
    declare(f, 8, twins[0]);
    declare(f, 8, twins[1]);
    module_error_is(f, PTOWSP_INVALID_PARAMS,
                    "module: workload GReLUrM4wMqfg9yzV3KQ: its name has the hash of another "
                    "workload's");
    fixture_renew(f);
    declare(f, 8, twins[0]);
    declare(f, 13, twins[1]);  // a call finds the one that is there under another name
    ptowsp_scope_end(f->m);
    ptowsp_program *program;
    test_refused(f->context, ptowsp_program_create(f->context, f->m, NULL, &program),
                 PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                 "main/call GReLUrM4wMqfg9yzV3KQ: there is no such workload");
    fixture_renew(f);
    declare(f, 4, twins[0]);  // kinds of names that do not meet
    declare(f, 7, twins[1]);
    declare(f, 8, twins[0]);
    module_error_is(f, PTOWSP_OK, "");
    fixture_renew(f);
    evaluator e = evaluator_make(f, ptowsp_symbol(f->m, twins[0]));
    test_refused(f->context, ptowsp_run_bind_symbol(e.run, twins[1], 1), PTOWSP_INVALID_PARAMS,
                 PTOWSP_NO_INDEX,
                 "bind: module has no symbol GReLUrM4wMqfg9yzV3KQ; it has 8yn0iYCKYHlIj4-BwPqk");
    evaluator_free(&e);
}

// A module that has failed can be printed; what has no name is left out.
FIXTURE_TEST(names__a_failed_declaration_prints_as_an_error_only) {
    for (int kind = 0; kind < 16; kind++) {
        char text[1000];
        fixture_renew(f);
        declare(f, kind, "");
        ptowsp_module_print(f->m, TEST_TEXT(text));
        assert_null(strstr(text, "(null)"));
        assert_non_null(strstr(text, "error INVALID_PARAMS: m"));
    }
}
