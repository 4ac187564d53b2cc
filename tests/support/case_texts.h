// Cases of files that say `texts`: what modules are printed as, and their programs, and what is refused.
// Nothing runs. A case is a row of modules:
//
//      schedule  of the modules after it
//      given     the lines of a module after those before the cases; in a workload, if they end with one
//      becomes   the statements of its last workload, as printed: so with the relayouts that it needs
//      stays     they are the statements that were given
//      prints    the whole module, as printed
//      compiles  its program, as printed
//      reads     the list of statements of its program (read_say.h)
//      has, lacks PART / PART: of the module as printed; shows PART / PART: of its program
//      lowers    CYCLES: INSTRUCTION CYCLES, ... of its last kernel in the unit model, without those of 0 cycles
//      lists     that kernel, as printed; listed, unlisted PART / PART: of it as printed
//      refused   STATUS [at LINE] [TEXT], which may begin with its place, line:column
//
// What is printed is read again, and printed the same; so is its last kernel. A program is saved
// and loaded. Kernels to which nothing is attached take 1 cycle.

#ifndef CASE_TEXTS_H
#define CASE_TEXTS_H

#include "case_expect.h"
#include "read_say.h"

enum { CASE_PRINT_MAX = 1 << 16 };

static inline const char *case_printed(const ptowsp_module *m, const ptowsp_program *program) {
    char *text = (char *)case_alloc(CASE_PRINT_MAX);
    ptowsp_output_buffer buffer = {text, CASE_PRINT_MAX, 0};
    if (program) {
        ptowsp_program_print(program, ptowsp_output_to_buffer(&buffer));
    } else {
        ptowsp_module_print(m, ptowsp_output_to_buffer(&buffer));
    }
    assert_true(buffer.length < CASE_PRINT_MAX);
    return text;
}

static inline ptowsp_status case_parse_text(case_subject *s, const char *text,
                                            ptowsp_module **out_module) {
    const ptowsp_parse_desc desc = {s->attached, s->attached_count, 1};
    return ptowsp_module_parse(s->context, text, strlen(text), &desc, out_module, NULL);
}

// Begins the module with these lines, which are in its last workload if it ends with one.
static inline ptowsp_status case_give(case_subject *s, const char *lines) {
    const char *indent = "";
    s->text = case_copy("", 0);
    for (const char *at = case_module_text(s); *at; at += strcspn(at, "\n") + 1) {
        if (*at != '\n' && *at != '#') {
            indent = case_begins(at, "workload ") ? "  " : case_begins(at, " ") ? indent : "";
            s->text = case_line(s->text, at, strcspn(at, "\n"));
        }
    }
    for (const char *at = lines; *at; at += strcspn(at, "\n") + 1) {
        s->text = case_line(case_join(s->text, indent, strlen(indent)), at, strcspn(at, "\n"));
    }
    ptowsp_program_destroy(s->program);
    ptowsp_module_destroy(s->module);
    s->program = NULL;
    s->module = NULL;
    if (strstr(s->text, "\nschedule\n")) {
        return case_parse(s);
    } else if (!s->schedule) {
        return case_parse_text(s, s->text, &s->module);
    }
    s->text = case_add_directives(case_line(s->text, "schedule", 8), s->schedule);
    return case_parse(s);
}

// The program is saved, and loaded as the same.
static inline void case_save_text(case_subject *s, const ptowsp_program_desc *desc) {
    const ptowsp_parse_desc attached = {s->attached, s->attached_count, 1};
    char *text = (char *)case_alloc(CASE_PRINT_MAX);
    ptowsp_output_buffer buffer = {text, CASE_PRINT_MAX, 0};
    const ptowsp_output saved = ptowsp_output_to_buffer(&buffer);
    ptowsp_program *loaded = NULL;
    case_ok(s, "save", ptowsp_program_save(s->context, s->module, desc, saved));
    assert_true(buffer.length < CASE_PRINT_MAX);
    case_ok(s, "load",
            ptowsp_program_load(s->context, text, buffer.length, &attached, &loaded, NULL));
    case_check_text(s, "loaded", case_printed(NULL, loaded), case_printed(NULL, s->program));
    ptowsp_program_destroy(loaded);
}

static inline void case_compile_text(case_subject *s) {
    if (!s->program) {
        const ptowsp_program_desc desc = case_desc(s);
        case_ok(s, "compile", ptowsp_program_create(s->context, s->module, &desc, &s->program));
        case_save_text(s, &desc);
    }
}

// A text that is refused, cut off after any byte, is one more that is refused, or a module. Nothing is read
// behind its end.
static inline void case_cut_text(case_subject *s) {
    for (size_t length = 0; length < strlen(s->text); length++) {
        char *cut = (char *)malloc(length ? length : 1);  // of just this size
        ptowsp_module *module = NULL;
        pwsp_parse_saved saved = {0};
        const ptowsp_parse_desc none = {NULL, 0, 0};
        bool is_saved = strstr(s->text, "\nschedule\n") != NULL;
        assert_non_null(cut);
        memcpy(cut, s->text, length);
        ptowsp_status status = pwsp_parse_text(s->context, cut, length, 1, &none,
                                               is_saved ? &saved : NULL, &module, NULL);
        case_check(s, "a module without an error", 0, module != NULL, status == PTOWSP_OK);
        ptowsp_module_destroy(module);
        free(cut);
    }
}

// The error is as the item says; one with a place has its line as the index.
static inline void case_refused_text(case_subject *s, const case_item *item, ptowsp_status status) {
    const ptowsp_error error = ptowsp_context_error(s->context);
    case_check_error(s, item, status);
    if (isdigit((unsigned char)error.text[0])) {
        case_check(s, "line", 0, error.index, strtoull(error.text, NULL, 10));
        case_cut_text(s);
    }
}

// The statements of the last workload of a text, with the indentation of `given`.
static inline const char *case_statements(const char *text) {
    const char *at = text, *workload = text;
    char *out = case_copy("", 0);
    while ((at = strstr(at, "\nworkload "))) {
        workload = ++at;
    }
    for (at = strchr(workload, '\n') + 1; *at; at += strcspn(at, "\n") + 1) {
        out = case_line(out, at + 2, strcspn(at, "\n") - 2);
    }
    return out;
}

static inline void case_has_parts(const case_subject *s, const char *text, const char *at,
                                  bool is_there) {
    if (!*at) {
        CASE_FAIL(s, "nothing is compared");
    }
    for (const char *part; (part = case_next_part(s, &at));) {
        case_check_count++;
        if ((strstr(text, case_lines(part)) != NULL) != is_there) {
            CASE_FAIL(s, "\"%s\" is %s in: %s", part, is_there ? "not" : "still", text);
        }
    }
}

// The last kernel of the module, if all have bodies.
static inline ptowsp_kernel case_last_kernel(const ptowsp_module *m) {
    ptowsp_kernel last = {0}, next = {1};
    for (; ptowsp_kernel_insn_count(m, next) > 0; next.id++) {
        last = next;
    }
    return last;
}

static inline const char *case_kernel_printed(const ptowsp_module *m) {
    char *text = (char *)case_alloc(CASE_PRINT_MAX);
    ptowsp_output_buffer buffer = {text, CASE_PRINT_MAX, 0};
    ptowsp_kernel_print(m, case_last_kernel(m), NULL, ptowsp_output_to_buffer(&buffer));
    assert_true(buffer.length < CASE_PRINT_MAX);
    return text;
}

static inline const char *case_listed(const case_subject *s) {
    if (case_last_kernel(s->module).id == 0) {
        CASE_FAIL(s, "there is no tile kernel");
    }
    return case_kernel_printed(s->module);
}

static inline void case_reads_again(case_subject *s, const char *printed) {
    const ptowsp_kernel last = case_last_kernel(s->module);
    ptowsp_module *again = NULL;
    case_ok(s, "read again", case_parse_text(s, printed, &again));
    case_check_text(s, "printed again", case_printed(again, NULL), printed);
    case_check_text(s, "kernel again", case_kernel_printed(again), case_kernel_printed(s->module));
    case_check(s, "hash of the kernel again", 0, ptowsp_kernel_hash(again, last),
               ptowsp_kernel_hash(s->module, last));
    ptowsp_module_destroy(again);
}

// "CYCLES: INSTRUCTION CYCLES, ..." of the last kernel. Those of its instructions add up to its own.
static inline const char *case_lowered(case_subject *s) {
    const ptowsp_kernel kernel = case_last_kernel(s->module);
    char *text = (char *)case_alloc(CASE_PRINT_MAX);
    uint64_t sum = 0, cycles;
    ptowsp_kernel_stats stats;
    case_ok(s, "measure", ptowsp_kernel_measure(s->module, kernel, NULL, &stats));
    int at = sprintf(text, "%llu:", (unsigned long long)stats.cycles);
    for (uint32_t i = 0; i < ptowsp_kernel_insn_count(s->module, kernel); i++) {
        const char *name = ptowsp_kernel_insn_at(s->module, kernel, i, &cycles).name;
        if (cycles > 0) {
            at +=
                sprintf(text + at, "%s %s %llu", sum ? "," : "", name, (unsigned long long)cycles);
            assert_true(at < CASE_PRINT_MAX - 64);
        }
        sum += cycles;
    }
    case_check(s, "cycles of the instructions", 0, sum, stats.cycles);
    return text;
}

// False: nothing is compared with this word.
static inline bool case_compare_text(case_subject *s, const case_item *item) {
    const char *printed = case_printed(s->module, NULL);
    if (!strcmp(item->word, "becomes") || !strcmp(item->word, "stays")) {
        const char *given = item->word[0] == 's' ? case_statements(s->text) : item->rest;
        case_check_text(s, "statements", case_statements(printed), given);
        case_compile_text(s);
    } else if (!strcmp(item->word, "prints")) {
        case_check_text(s, "module", printed, item->rest);
    } else if (!strcmp(item->word, "has") || !strcmp(item->word, "lacks")) {
        case_has_parts(s, printed, item->rest, item->word[0] == 'h');
    } else if (!strcmp(item->word, "lowers")) {
        case_check_text(s, "instructions", case_lowered(s), item->rest);
    } else if (!strcmp(item->word, "lists")) {
        case_check_text(s, "kernel", case_listed(s), item->rest);
    } else if (!strcmp(item->word, "listed") || !strcmp(item->word, "unlisted")) {
        case_has_parts(s, case_listed(s), item->rest, item->word[0] == 'l');
    } else if (!strcmp(item->word, "reads")) {
        static read_said said;
        case_compile_text(s);
        case_check_text(s, "statements", read_say(&said, s->program), item->rest);
    } else if (!strcmp(item->word, "compiles") || !strcmp(item->word, "shows")) {
        case_compile_text(s);
        const char *program = case_printed(NULL, s->program);
        if (item->word[0] == 'c') {
            case_check_text(s, "program", program, item->rest);
        } else {
            case_has_parts(s, program, item->rest, true);
        }
    } else {
        return false;
    }
    case_reads_again(s, printed);
    return true;
}

// Returns the number of modules.
static inline uint32_t case_run_texts(case_subject *s) {
    ptowsp_status status = PTOWSP_OK;
    bool is_compared = false;
    uint32_t given_count = 0;
    s->engine = "text";
    for (size_t i = 0; i <= s->c->items.count; i++) {
        const case_item *item = i < s->c->items.count ? &s->c->items.items[i] : NULL;
        bool is_given = item && !strcmp(item->word, "given");
        if ((!item || (is_given && given_count > 0)) && !is_compared) {
            CASE_FAIL(s, "nothing is compared");
        }
        s->line = item ? item->line : 0;
        if (is_given) {
            status = case_give(s, item->rest);
            is_compared = false;
            given_count++;
        } else if (item && !strcmp(item->word, "schedule")) {
            s->schedule = item->rest;
        } else if (item && given_count == 0) {
            CASE_FAIL(s, "nothing is given before %s", item->word);
        } else if (item && !strcmp(item->word, "refused")) {
            if (status == PTOWSP_OK) {
                status = ptowsp_program_create(s->context, s->module, NULL, &s->program);
            }
            case_refused_text(s, item, status);
            is_compared = true;
        } else if (item) {
            case_ok(s, "module", status);
            is_compared = case_compare_text(s, item);
            if (!is_compared) {
                CASE_FAIL(s, "nothing is expected with %s", item->word);
            }
        }
    }
    ptowsp_program_destroy(s->program);
    ptowsp_module_destroy(s->module);
    return given_count;
}

#endif
