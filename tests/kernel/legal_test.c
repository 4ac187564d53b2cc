// The rules of types and forms, walked: for every instruction that has some, the kernels of legal.txt, which are
// made for each machine, go through f32, or are refused.

#include "src/kernel/legal.h"
#include "src/kernel/compiled.h"
#include "src/workload/module.h"

#include "test.h"

#include "lines.h"

enum { FIELDS = 6 };

// A line: its fields, and the text of a refusal, or NULL.
typedef struct rule {
    char *fields[FIELDS], *refusal;
    uint32_t field_count;
} rule;

// What rules of types, or of forms, are given to.
typedef struct walk {
    bool of_types;
    void (*fn)(const rule *r);
} walk;

static void walk_line(char *line, int number, void *user) {
    const walk *w = (const walk *)user;
    rule r = {{NULL}, strstr(line, " => "), 0};
    (void)number;
    if (r.refusal) {
        *r.refusal = 0;
        r.refusal += strlen(" => ");
    }
    for (char *at = line; at; at = at ? at + strlen(" | ") : NULL) {
        assert_true(r.field_count < FIELDS);
        r.fields[r.field_count++] = at;
        if ((at = strstr(at, " | "))) {
            *at = 0;
        }
    }
    assert_true(r.field_count == 3 || r.field_count == 6);
    if ((r.field_count == 6) == w->of_types) {
        w->fn(&r);
    }
}

static void rules_walk(bool of_types, void (*fn)(const rule *r)) {
    walk w = {of_types, fn};
    lines_each("tests/kernel/legal.txt", walk_line, &w);
}

// Copies a text, in which $T is a type, $ZZ the layout of L0A, and $machine a machine.
static char *put(char *to, const char *from, const char *type, bool is_a5) {
    const char *const words[][2] = {
        {"$T", type}, {"$ZZ", is_a5 ? "NZ" : "ZZ"}, {"$machine", is_a5 ? "950PR" : "910B"}};
    while (*from) {
        size_t w = 0;
        while (w < 3 && strncmp(from, words[w][0], strlen(words[w][0])) != 0) {
            w++;
        }
        to += w < 3 ? sprintf(to, "%s", words[w][1]) : sprintf(to, "%c", *from);
        from += w < 3 ? strlen(words[w][0]) : 1;
    }
    return to;
}

// The kernel of a line. It stores something in any case.
static ptowsp_module *module_of(ptowsp_context *context, const rule *r, const char *type,
                                bool is_a5) {
    char text[2 * LINES_MAX], *to = text, part[LINES_MAX], name[16];
    int number = 1, length;
    put(part, r->fields[1], type, is_a5);
    to +=
        sprintf(to, "module m\nkernel k(axes 0, out any f32 1 x 8, %s) %s, 0 instructions\n", part,
                strstr(r->fields[2], "L0A ") && strstr(r->fields[2], "TMOV") ? "mix" : "vector");
    to += sprintf(to, "  machine \"%s\"\n  %%1 = parameter any\n", is_a5 ? "950PR" : "910B");
    for (const char *at = *part ? part : NULL, *comma; at; at = comma ? comma + 2 : NULL) {
        comma = strchr(at, ',');
        const bool is_tile = sscanf(at, "in %15s%n", name, &length) == 1 ||
                             sscanf(at, "out %15s%n", name, &length) == 1;
        assert_true(is_tile || sscanf(at, "%15s", name) == 1);
        to += sprintf(to, is_tile ? "  %%%d = parameter %s\n" : "  %%%d = scalar %s : f64\n",
                      ++number, name);
    }
    put(part, r->fields[2], type, is_a5);
    for (char *at = part, *next; at; at = next) {
        next = strstr(at, "; ");
        if (next) {
            *next = 0;
            next += 2;
        }
        to += sprintf(to, "  %s\n", at);
    }
    sprintf(to, "  %%900 = full 0 : f32 1 x 8\n  store %%1, %%900\n");
    ptowsp_module *m = NULL;
    ptowsp_module_parse(context, text, strlen(text), NULL, &m, NULL);
    return m;
}

// -- types ----------------------------------------------------------------------------------------

static bool has(const char *set, const char *type) {
    const size_t length = strlen(type);
    for (const char *at = strstr(set, type); at; at = strstr(at + 1, type)) {
        if ((at == set || at[-1] == ' ') && strchr(" ", at[length])) {
            return true;
        }
    }
    return false;
}

static void check_types(const rule *r) {
    static const char *const types[] = {"f16", "bf16", "f32", "i8", "i16",
                                        "i32", "u8",   "u16", "u32"};
    for (uint32_t i = 3; i < FIELDS; i++) {
        char word[8];
        for (int length, at = 0; sscanf(r->fields[i] + at, "%7s%n", word, &length) == 1;) {
            assert_true(has("f16 bf16 f32 i8 i16 i32 u8 u16 u32", word));
            at += length;
        }
    }
    TEST_GRID(size_t, t, COUNT_OF(types), is_a5, 2) {
        const char *const type = types[t];
        const bool is_wide = !is_a5 && has(r->fields[4], type);
        ptowsp_context *context = test_context(NULL);
        ptowsp_module *m = module_of(context, r, type, is_a5);
        const char *said = ptowsp_context_error(context).text;
        if (is_wide || has(r->fields[is_a5 ? 5 : 3], type)) {
            uint32_t count = 0;
            const ptowsp_kernel kernel = {1};
            if (!m) {
                fail_msg("%s of %s: %s", r->fields[0], type, said);
            }
            for (uint32_t i = 0; i < ptowsp_kernel_insn_count(m, kernel); i++) {
                count += !strcmp(ptowsp_kernel_insn_at(m, kernel, i, NULL).name, "TCVT");
            }
            assert_int_equal(count > 0, is_wide);
        } else {
            char text[200];
            size_t length = (size_t)sprintf(
                text, "2:1: m: kernel k: instruction: %s: %s is not for %s, which has ",
                r->fields[0], type, is_a5 ? "950PR (A5)" : "910B (A2/A3)");
            const size_t begin = length;
            for (size_t i = 0; i < COUNT_OF(types); i++) {
                if (has(r->fields[is_a5 ? 5 : 3], types[i]) ||
                    (!is_a5 && has(r->fields[4], types[i]))) {
                    length += (size_t)sprintf(text + length, "%s%s", length > begin ? ", " : "",
                                              types[i]);
                }
            }
            strcpy(text + length, " (rule: element types)");
            assert_string_equal(said, text);
            assert_int_equal(ptowsp_context_error(context).status, PTOWSP_UNSUPPORTED);
        }
        ptowsp_module_destroy(m);
        ptowsp_context_destroy(context);
    }
}

TEST(legal__every_instruction_takes_the_types_of_its_machine) {
    rules_walk(true, check_types);
}

static bool are_seen[PTOISA_OP_COUNT], are_refused[PTOISA_OP_COUNT];

static void see(const rule *r) {
    char name[32];
    int op = 0;
    assert_int_equal(sscanf(r->fields[0], "%31s", name), 1);
    while (strcmp(name, ptoisa_op_name((ptoisa_op)op)) != 0) {
        assert_true(++op < PTOISA_OP_COUNT);
    }
    *(r->refusal ? &are_refused[op] : &are_seen[op]) = true;
}

// Every row of a table is one of the file, and the other way round; forms are also refused.
TEST(legal__every_row_of_the_tables_is_tested) {
    for (int of_types = 0; of_types < 2; of_types++) {
        memset(are_seen, 0, sizeof are_seen);
        memset(are_refused, 0, sizeof are_refused);
        rules_walk(of_types, see);
        for (int op = 0; op < PTOISA_OP_COUNT; op++) {
            const bool has_row = of_types ? pwsp_legal_row_of((ptoisa_op)op) != NULL
                                          : pwsp_legal_form_of((ptoisa_op)op) != NULL;
            assert_int_equal(are_seen[op], has_row);
            assert_int_equal(are_refused[op], has_row && !of_types);
        }
    }
}

// TMATMUL, static: Left.Rows == Acc.Rows, Left.Cols == Right.Rows, Right.Cols == Acc.Cols.
static void check_product(const pwsp_tile_code *code, uint32_t *count) {
    for (uint32_t i = 0; i < code->insn_count; i++) {
        const pwsp_insn *insn = &code->insns[i];
        if (insn->op == PTOISA_TMATMUL || insn->op == PTOISA_TMATMUL_ACC) {
            uint32_t from = insn->op == PTOISA_TMATMUL_ACC;
            const pwsp_list_tile *acc = &code->tiles[insn->dst[0]],
                                 *left = &code->tiles[insn->src[from]],
                                 *right = &code->tiles[insn->src[from + 1]];
            assert_int_equal(left->rows, acc->rows);
            assert_int_equal(left->cols, right->rows);
            assert_int_equal(right->cols, acc->cols);
            assert_int_equal(left->rows, (acc->valid_rows.max + 15) / 16 * 16);
            *count += 1;
        }
    }
}

TEST(legal__sizes_of_factors_and_products_go_together) {
    static const ptowsp_dtype factors[] = {PTOWSP_I8, PTOWSP_F16, PTOWSP_BF16, PTOWSP_F32};
    static const int64_t sizes[][3] = {{1, 1, 1},    {16, 32, 16},   {17, 33, 17},
                                       {40, 48, 24}, {16, 1024, 64}, {129, 40, 33}};
    for (size_t i = 0; i < 4 * sizeof sizes / sizeof sizes[0]; i++) {
        const int64_t *size = sizes[i / 4];
        ptowsp_context *context = test_context(NULL);
        ptowsp_module *m = test_module(context, NULL);
        ptowsp_body_desc desc = {.name = "k"};
        ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
        ptowsp_value a = ptowsp_tile_in(k, "a", factors[i % 4], size[0], size[1]);
        ptowsp_value b = ptowsp_tile_in(k, "b", factors[i % 4], size[1], size[2]);
        ptowsp_dtype dtype = i % 4 == 0 ? PTOWSP_I32 : PTOWSP_F32;
        ptowsp_tile_store(ptowsp_tile_out(k, "c", dtype, size[0], size[2]),
                          ptowsp_tile_matmul(a, b));
        ptowsp_kernel kernel = ptowsp_kernel_end(k);
        assert_string_equal(ptowsp_module_error(m).text, "");
        uint32_t count = 0;
        check_product(PWSP_KERNEL(m, kernel.id)->code, &count);
        assert_true(count >= 1);
        ptowsp_module_destroy(m);
        ptowsp_context_destroy(context);
    }
}

// -- forms ----------------------------------------------------------------------------------------

typedef struct form {
    char name[32], tiles[16], sizes, scratch, effect;
} form;

static char letter(const pwsp_list_tile *t) {
    static const char letters[] = "R?LQAB?";
    return t->memory == PTOISA_VEC && t->layout == PTOISA_COL_MAJOR ? 'C' : letters[t->memory];
}

static bool is_all(const pwsp_valid *valid, uint32_t size) {
    return valid->param == 0 && valid->max == size;
}

static void check_insn(const form *f, const pwsp_tile_code *code, const pwsp_insn *insn,
                       bool is_a2a3) {
    const pwsp_list_tile *tiles = code->tiles, *d = &tiles[insn->dst[0]], *s = &tiles[insn->src[0]];
    const pwsp_list_tile *tmp = &tiles[insn->tmp];
    char text[16] = "";
    size_t n = 0;
    for (int i = 0; i < 1 && insn->dst[i]; i++) {
        text[n++] = letter(&tiles[insn->dst[i]]);
    }
    text[n++] = ':';
    for (int i = 0; i < 4 && insn->src[i]; i++) {
        n += i > 0;
        text[n - 1] = i > 0 ? ',' : text[n - 1];
        text[n++] = letter(&tiles[insn->src[i]]);
    }
    assert_string_equal(text, f->tiles);
    uint32_t from = f->tiles[2] == 'A';
    switch (f->sizes) {
    case '4': assert_true((insn->dst[0] ? d : s)->rows <= 4095); break;
    case 'R': assert_int_equal(d->rows, s->rows); break;
    case 'C': assert_int_equal(d->cols, s->cols); break;
    case 'M':
        for (int i = 0; i < 4; i++) {
            const pwsp_list_tile *t = &tiles[i < 3 ? insn->src[i] : insn->dst[0]];
            bool is_mask = (i == 3) == (f->name[1] == 'C') && (i == 3 || i == 0);
            bool is_there = i == 3 || insn->src[i];
            uint32_t all = (f->name[1] == 'C' ? s : d)->cols;
            assert_true(!is_there || is_all(&t->valid_cols, is_mask ? all / 8 : all));
            assert_true(!is_there || is_mask || t->cols == all);
        }
        break;
    case 'G':
        assert_true(is_all(&d->valid_cols, d->cols) && is_all(&s->valid_cols, 2 * d->cols));
        assert_true(s->cols >= 2 * d->cols);
        break;
    case 'W':
        assert_true(is_all(&s->valid_cols, 32) && is_all(&tiles[insn->src[1]].valid_cols, 32));
        assert_true(is_all(&d->valid_cols, 64));
        break;
    case 'P':
        assert_int_equal(tiles[insn->src[from]].rows, d->rows);
        assert_int_equal(tiles[insn->src[from]].cols, tiles[insn->src[from + 1]].rows);
        assert_int_equal(tiles[insn->src[from + 1]].cols, d->cols);
        break;
    default: break;
    }
    uint64_t bytes = insn->tmp ? pwsp_list_tile_bytes(tmp) : 0;
    assert_true(bytes >= (f->scratch == 'L'              ? pwsp_list_tile_bytes(s)
                          : f->scratch == 'T'            ? 24 * 16 * 4
                          : f->scratch == 'B'            ? 32
                          : f->scratch == 'Q' && is_a2a3 ? 8 * 24 * 4
                                                         : 0));
    if (f->effect == 'A' && is_a2a3) {
        assert_int_not_equal(d->root, s->root);
    }
    if (f->effect == 'S') {
        assert_int_equal(insn->dst[1], is_a2a3 ? insn->src[0] : 0);
        for (const pwsp_insn *i = insn + 1; i < code->insns + code->insn_count && is_a2a3; i++) {
            assert_true(!i->src[0] || tiles[i->src[0]].root != s->root);
        }
    }
}

static void check_form(const rule *r) {
    form f = {.sizes = 0};
    char letters[8] = "", more;
    const int count = sscanf(r->fields[0], "%31s %15s %7s %c", f.name, f.tiles, letters, &more);
    assert_int_equal(count, r->refusal ? 1 : 3);
    if (!r->refusal) {
        f.sizes = letters[0], f.scratch = letters[1], f.effect = letters[2];
        assert_int_equal(strlen(letters), 3);
        assert_true(strchr("4RCMGWP-", f.sizes) && strchr("LTBQ-", f.scratch) &&
                    strchr("AS-", f.effect));
    }
    for (int is_a5 = 0; is_a5 < 2; is_a5++) {
        char text[256];
        ptowsp_context *context = test_context(NULL);
        ptowsp_module *m = module_of(context, r, "", is_a5);
        put(text + sprintf(text, "%s", r->refusal ? "2:1: m: " : ""), r->refusal ? r->refusal : "",
            "", is_a5);
        assert_string_equal(ptowsp_context_error(context).text, text);
        assert_int_equal(ptowsp_context_error(context).status,
                         r->refusal ? PTOWSP_UNSUPPORTED : PTOWSP_OK);
        if (m) {
            const pwsp_tile_code *code = PWSP_KERNEL(m, 1)->code;
            uint32_t found = 0;
            for (uint32_t i = 0; i < code->insn_count; i++) {
                if (!strcmp(ptoisa_op_name((ptoisa_op)code->insns[i].op), f.name)) {
                    check_insn(&f, code, &code->insns[i], !is_a5);
                    found++;
                }
            }
            assert_true(found > 0);
        }
        ptowsp_module_destroy(m);
        ptowsp_context_destroy(context);
    }
}

TEST(legal__every_instruction_has_its_form) {
    rules_walk(false, check_form);
}
