// Cases of files that say `scripts`: calls of the builder (build_script.h), and what it refuses. Nothing runs. A
// case is a row of modules, each of which begins with the declarations before the cases:
//
//      build CALLS       of a new module
//      more CALLS        of the same one
//      refused           STATUS [at INDEX] TEXT: what the last call is, after `build` the first one that is, and it
//                        gives nothing; the error stays
//      accepted          no call was refused
//      gives N, gives i64  nor that, and the last call gives the id N, or an expression of this type
//      has, lacks PART / PART  parts of the printed module
//      said LINE / LINE  what the last `explain` printed of the variants of a choice, with one space where there may
//                        be more. Nothing was refused, unless that is what it says
//      workload NAME     with which programs begin, of `compiles` and `uncompiled`; default: the last one
//      compiles          it does
//      uncompiled        STATUS TEXT: what compiling is; the module has no error

#ifndef CASE_SCRIPTS_H
#define CASE_SCRIPTS_H

#include "build_script.h"
#include "case_texts.h"

// STATUS [at INDEX] TEXT, with all of the text.
static inline void case_script_error(case_subject *s, const case_item *item, ptowsp_status status) {
    case_check_error(s, item, status);
    s->line = item->line;
    if (!strstr(item->rest, ptowsp_context_error(s->context).text)) {
        CASE_FAIL(s, "the text is missing: %s", ptowsp_context_error(s->context).text);
    }
}

static inline void case_script_refused(case_subject *s, script *b, const case_item *item) {
    const ptowsp_status status = ptowsp_module_error(b->m).status;
    case_check(s, "a call is refused", 0, status != PTOWSP_OK, 1);
    case_check(s, "what the refused call gives", 0, b->last, 0);
    script_stays_refused(b);
    case_script_error(s, item, status);
}

static inline void case_script_compiles(case_subject *s, const script *b, const char *workload,
                                        const case_item *refused) {
    const ptowsp_program_desc desc = {workload, NULL};
    ptowsp_program *program = NULL;
    const ptowsp_status status = ptowsp_program_create(b->context, b->m, &desc, &program);
    case_check(s, "a program", 0, program != NULL, refused == NULL);
    ptowsp_program_destroy(program);
    if (refused) {
        case_script_error(s, refused, status);
    } else {
        case_ok(s, "compile", status);
    }
    case_check_text(s, "error of the module", ptowsp_module_error(b->m).text, "");
}

static inline void case_script_said(case_subject *s, const script *b, const char *at) {
    char *expected = case_copy(b->explained, strlen(b->explained));
    const char *head = ": variants in the order in which they are asked";
    expected = case_line(expected, head, strlen(head));
    for (const char *part; (part = case_next_part(s, &at));) {
        const int length = (int)strcspn(part, " ");
        char line[SCRIPT_WORD_MAX];
        snprintf(line, sizeof line, "  %-20.*s%s", length, part, part + length);
        expected = case_line(expected, line, strlen(line));
    }
    case_check_text(s, "explanation", b->said, expected);
    if (!strstr(b->said, ": wrong\n")) {
        case_check_text(s, "error of the module", ptowsp_module_error(b->m).text, "");
    }
}

// False: nothing is compared with this word.
static inline bool case_script_compare(case_subject *s, script *b, const char *workload,
                                       const case_item *item) {
    const bool is_refused = !strcmp(item->word, "uncompiled");
    const char *at = item->rest;
    if (!strcmp(item->word, "refused")) {
        case_script_refused(s, b, item);
    } else if (!strcmp(item->word, "gives") || !strcmp(item->word, "accepted")) {
        case_check_text(s, "error of the module", ptowsp_module_error(b->m).text, "");
        if (!strcmp(at, "i64")) {
            const ptowsp_expr given = {b->m, b->last};
            case_check(s, "its type", 0, ptowsp_expr_type(given), PTOWSP_TYPE_I64);
        } else if (item->word[0] == 'g') {
            case_check(s, "what the last call gives", 0, b->last, (uint64_t)case_number(s, &at));
            case_end(s, at);
        } else {
            case_end(s, at);
        }
    } else if (!strcmp(item->word, "said")) {
        case_script_said(s, b, at);
    } else if (!strcmp(item->word, "has") || !strcmp(item->word, "lacks")) {
        case_has_parts(s, case_printed(b->m, NULL), at, item->word[0] == 'h');
    } else if (is_refused || !strcmp(item->word, "compiles")) {
        case_end(s, is_refused ? "" : at);
        case_script_compiles(s, b, workload, is_refused ? item : NULL);
    } else {
        return false;
    }
    return true;
}

// Returns the number of modules.
static inline uint32_t case_run_scripts(case_subject *s) {
    script b = {.context = s->context,
                .prelude = case_module_text(s),
                .functions = {s->attached, s->attached_count, 1}};
    const char *workload = NULL;
    bool is_compared = true;  // since the last ones
    uint32_t count = 0;
    b.other = test_module(s->context, NULL);
    s->engine = "script";
    for (size_t i = 0; i <= s->all.count; i++) {
        const case_item *item = i < s->all.count ? &s->all.items[i] : NULL;
        const bool begins = item && !strcmp(item->word, "build");
        s->line = item ? item->line : 0;
        if ((!item || begins) && (!is_compared || (!item && count == 0))) {
            CASE_FAIL(s, "nothing is compared");
        }
        if (begins || (item && !strcmp(item->word, "more"))) {
            if (begins) {
                script_begin(&b);
                workload = NULL;
                count++;
            }
            script_run(&b, item->rest);
            if (begins && b.has_gone_on) {
                CASE_FAIL(s, "a call before the last one is refused");
            }
            is_compared = false;
        } else if (item && !strcmp(item->word, "workload")) {
            workload = item->rest;
            is_compared = false;
        } else if (item && strcmp(item->word, "let") != 0) {
            is_compared = count > 0 && case_script_compare(s, &b, workload, item);
            if (!is_compared) {
                CASE_FAIL(s, "nothing is expected with %s", item->word);
            }
        }
    }
    ptowsp_module_destroy(b.m);
    ptowsp_module_destroy(b.other);
    return count;
}

#endif
