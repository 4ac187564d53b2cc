// The form of a case, checked before it runs: every word is known, every mode is one of the file, and
// each round of each schedule compares something. A word that nothing reads would be a claim that
// nothing tests.

#ifndef CASE_FORM_H
#define CASE_FORM_H

#include "case_ranks.h"

// Words that are not results.
static const struct {
    const char *word;
    bool is_refused_too;  // may stand beside `refused`
    bool is_alone;        // nothing follows it
} case_settings[] = {
    {"let", true, false},    {"with", true, false},     {"from", true, false},
    {"lowers", true, false}, {"edges", true, true},     {"refused", true, false},
    {"then", false, true},   {"records", false, false}, {"fails", false, false},
    {"ranks", false, false}, {"links", false, false},   {"alone", false, false},
};

static inline void case_check_modes(case_subject *s, const char *list) {
    for (const char *name; (name = case_next_name(&list));) {
        if (!case_find(&s->c->file->modes, name)) {
            CASE_FAIL(s, "there is no mode \"%s\"", name);
        }
    }
}

// What a case with `ranks` compares, which a program alone does not, and the other way round. `ranks` is
// NULL without them.
static inline void case_check_ranks(case_subject *s, const case_item *whole, const case_item *item,
                                    const case_group *ranks) {
    size_t e;
    if (!strcmp(whole->word, "rank")) {
        const char *at = whole->rest;
        const uint64_t rank = (uint64_t)case_number(s, &at);
        if (!ranks || rank < ranks->first || rank >= ranks->end) {
            CASE_FAIL(s, "rank %llu is never compared: it does not run", (unsigned long long)rank);
        }
    }
    const bool is_of_all = !strcmp(item->word, "group") || !strcmp(item->word, "rank_waits");
    if (is_of_all && (!ranks || !ranks->is_together)) {
        CASE_FAIL(s, "%s is never compared: ranks do not run together", item->word);
    }
    if (case_find_result(item->word, &e) && case_expectations[e].is_data && ranks) {
        CASE_FAIL(s, "%s is never compared: ranks are not executed", item->word);
    }
}

// Whether the item is a result.
static inline bool case_check_word(case_subject *s, const case_item *whole, bool is_refused,
                                   const case_group *ranks) {
    enum { COUNT = sizeof case_settings / sizeof case_settings[0] };
    case_item own;
    const case_item *item = &own;
    size_t e, i = 0;
    (void)case_own(s, whole, &own);
    while (i < COUNT && strcmp(case_settings[i].word, item->word) != 0) {
        i++;
    }
    bool is_result = case_find_result(item->word, &e);
    if (i == COUNT && !is_result) {
        CASE_FAIL(s, "nothing is expected with %s", item->word);
    } else if (is_refused && (i == COUNT || !case_settings[i].is_refused_too)) {
        CASE_FAIL(s, "%s is never compared: the program is refused", item->word);
    } else if (i < COUNT && case_settings[i].is_alone) {
        case_end(s, item->rest);
    }
    case_check_ranks(s, whole, item, ranks);
    return is_result || !strcmp(item->word, "fails");
}

// All items of the schedule and mode at hand.
static inline void case_check_form(case_subject *s) {
    bool is_refused = case_said(s, "refused") != NULL, has_failed = false;
    const bool has_ranks = !is_refused && case_find(&s->items, "ranks");
    case_group ranks;
    size_t result_count = 0;
    s->engine = "form";
    if (has_ranks) {
        case_group_read(s, &ranks);
        s->rank_count = 0;
    }
    for (size_t i = 0; i <= s->items.count; i++) {
        const case_item *item = i < s->items.count ? &s->items.items[i] : NULL;
        s->line = item ? item->line : 0;
        if ((!item || !strcmp(item->word, "then")) && !is_refused && result_count == 0) {
            CASE_FAIL(s, "nothing is compared");
        }
        if (has_ranks && has_failed && result_count > 1) {
            CASE_FAIL(s, "results are never compared: the ranks fail");
        }
        if (item && !strcmp(item->word, "then")) {
            result_count = 0;
            has_failed = false;
        }
        if (item && item->modes) {
            case_check_modes(s, item->modes);
        }
        if (item && case_applies(s, item)) {
            has_failed = has_failed || !strcmp(item->word, "fails");
            result_count += case_check_word(s, item, is_refused, has_ranks ? &ranks : NULL);
        }
    }
    s->line = 0;
    const case_items *floors = &s->c->file->floors;
    for (size_t i = 0; i < floors->count; i++) {
        case_check_modes(s, floors->items[i].rest);
    }
}

#endif
