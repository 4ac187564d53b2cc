// Rails: which variant runs, decided by windows of samples. The states and the rules are drawn in
// ptowsp.h. All is integers, so that the same calls give the same decisions on every machine.
//
// Invariant: current != safe exactly in a trial, and then there is a reference.

#include "../base/heap.h"
#include "../base/text.h"

#include <inttypes.h>

#define PWSP_RAILS_DEFAULT_WINDOW     9
#define PWSP_RAILS_DEFAULT_REGRESSION 50

ptowsp_status ptowsp_rails_init(const ptowsp_rails_desc *desc, uint64_t time,
                                ptowsp_rails *out_rails) {
    if (!desc || !out_rails || desc->variant_count == 0 ||
        desc->variant_count > PTOWSP_RAILS_VARIANT_MAX || desc->baseline >= desc->variant_count ||
        desc->window_count > PTOWSP_RAILS_WINDOW_MAX || desc->regression_permille > 10000 ||
        desc->gain_permille > 1000 ||
        (desc->trial_time_max && desc->trial_time_max < desc->dwell_time)) {
        return PTOWSP_INVALID_PARAMS;
    }
    ptowsp_rails_desc own = *desc;
    own.window_count = own.window_count ? own.window_count : PWSP_RAILS_DEFAULT_WINDOW;
    own.regression_permille =
        own.regression_permille ? own.regression_permille : PWSP_RAILS_DEFAULT_REGRESSION;
    memset(out_rails, 0, sizeof *out_rails);
    out_rails->desc = own;
    out_rails->current = out_rails->safe = own.baseline;
    out_rails->next = (own.baseline + 1) % own.variant_count;
    out_rails->time = out_rails->switched = time;
    return PTOWSP_OK;
}

// Begins a call: false if it cannot be one. The decision is then to keep all as it is.
static bool pwsp_rails_begin(ptowsp_rails *rails, uint64_t time, ptowsp_rails_decision *decision) {
    if (!rails || !decision || time < rails->time) {
        return false;
    }
    rails->time = time;
    memset(decision, 0, sizeof *decision);
    decision->time = time;
    decision->from = decision->to = rails->current;
    return true;
}

static void pwsp_rails_switch(ptowsp_rails *rails, uint32_t variant) {
    rails->current = variant;
    rails->switched = rails->time;
    rails->has_switched = true;
    rails->skip_left = rails->desc.skip_count;
    rails->sample_count = 0;
}

static void pwsp_rails_try(ptowsp_rails *rails, uint32_t variant, ptowsp_rails_reason reason,
                           ptowsp_rails_decision *decision) {
    PTOWSP_ASSERT(variant != rails->safe && rails->current == rails->safe && rails->reference);
    decision->action = PTOWSP_RAILS_TRY;
    decision->reason = reason;
    decision->to = variant;
    decision->reference = rails->reference;
    rails->next = (variant + 1) % rails->desc.variant_count;
    pwsp_rails_switch(rails, variant);
}

static void pwsp_rails_roll_back(ptowsp_rails *rails, ptowsp_rails_reason reason,
                                 ptowsp_rails_decision *decision) {
    PTOWSP_ASSERT(rails->current != rails->safe);
    uint64_t until = pwsp_sum_u64(rails->time, rails->desc.cooldown_time);
    decision->action = PTOWSP_RAILS_ROLL_BACK;
    decision->reason = reason;
    decision->to = rails->safe;
    decision->until = until;
    rails->cool_until[rails->current] = until;
    pwsp_rails_switch(rails, rails->safe);
}

// Why a trial cannot begin now; NONE: it can.
static ptowsp_rails_reason pwsp_rails_refusal(const ptowsp_rails *rails, uint32_t variant,
                                              uint64_t *out_until) {
    uint64_t dwell_until = pwsp_sum_u64(rails->switched, rails->desc.dwell_time);
    *out_until = 0;
    if (rails->current != rails->safe) {
        return PTOWSP_REASON_ON_TRIAL;
    }
    if (variant == rails->safe) {
        return PTOWSP_REASON_SAME;
    }
    if (rails->time < rails->cool_until[variant]) {
        *out_until = rails->cool_until[variant];
        return PTOWSP_REASON_COOLING;
    }
    if (rails->has_switched && rails->time < dwell_until) {
        *out_until = dwell_until;
        return PTOWSP_REASON_DWELLING;
    }
    return rails->reference ? PTOWSP_REASON_NONE : PTOWSP_REASON_NO_REFERENCE;
}

// Judges a window of a trial.
static void pwsp_rails_judge(ptowsp_rails *rails, uint64_t window,
                             ptowsp_rails_decision *decision) {
    const ptowsp_rails_desc *desc = &rails->desc;
    uint64_t worst = rails->reference * (1000 + desc->regression_permille);
    uint64_t asked = rails->reference * (1000 - desc->gain_permille);
    decision->window = window;
    decision->reference = rails->reference;
    decision->limit = worst / 1000;
    if (window * 1000 > worst) {
        pwsp_rails_roll_back(rails, PTOWSP_REASON_REGRESSION, decision);
        return;
    }
    if (rails->time - rails->switched < desc->dwell_time) {
        return;
    }
    decision->limit = asked / 1000;
    if (window * 1000 > asked) {
        pwsp_rails_roll_back(rails, PTOWSP_REASON_NO_GAIN, decision);
        return;
    }
    decision->action = PTOWSP_RAILS_PROMOTE;
    decision->reason = PTOWSP_REASON_GAIN;
    rails->safe = rails->current;
    rails->reference = window;
    rails->switched = rails->time;
}

// What time alone decides.
static void pwsp_rails_pass(ptowsp_rails *rails, ptowsp_rails_decision *decision) {
    const ptowsp_rails_desc *desc = &rails->desc;
    uint64_t passed = rails->time - rails->switched;
    if (rails->current != rails->safe) {
        if (desc->trial_time_max && passed >= desc->trial_time_max) {
            pwsp_rails_roll_back(rails, PTOWSP_REASON_TIMEOUT, decision);
        }
        return;
    }
    if (desc->explore_time == 0 || passed < desc->explore_time) {
        return;
    }
    for (uint32_t i = 0; i < desc->variant_count; i++) {
        uint32_t variant = (rails->next + i) % desc->variant_count;
        uint64_t until;
        if (pwsp_rails_refusal(rails, variant, &until) == PTOWSP_REASON_NONE) {
            pwsp_rails_try(rails, variant, PTOWSP_REASON_EXPLORING, decision);
            return;
        }
    }
}

// The lower median of the window that is full, which is sorted.
static uint64_t pwsp_rails_window(ptowsp_rails *rails) {
    uint32_t count = rails->sample_count;
    PTOWSP_ASSERT(count > 0 && count == rails->desc.window_count);
    pwsp_sort_u64(NULL, rails->samples, count);
    rails->sample_count = 0;
    return rails->samples[(count - 1) / 2];
}

ptowsp_status ptowsp_rails_sample(ptowsp_rails *rails, uint64_t time, uint64_t sample,
                                  ptowsp_rails_decision *out_decision) {
    if (sample == 0 || sample > PTOWSP_RAILS_VALUE_MAX ||
        !pwsp_rails_begin(rails, time, out_decision)) {
        return PTOWSP_INVALID_PARAMS;
    }
    if (rails->skip_left) {
        rails->skip_left--;
    } else {
        rails->samples[rails->sample_count++] = sample;
    }
    if (rails->sample_count == rails->desc.window_count) {
        uint64_t window = pwsp_rails_window(rails);
        if (rails->current != rails->safe) {
            pwsp_rails_judge(rails, window, out_decision);
        } else {
            out_decision->window = window;
            out_decision->reference = rails->reference;
            rails->reference = window;
        }
    }
    if (out_decision->action == PTOWSP_RAILS_KEEP) {
        pwsp_rails_pass(rails, out_decision);
    }
    return PTOWSP_OK;
}

ptowsp_status ptowsp_rails_tick(ptowsp_rails *rails, uint64_t time,
                                ptowsp_rails_decision *out_decision) {
    if (!pwsp_rails_begin(rails, time, out_decision)) {
        return PTOWSP_INVALID_PARAMS;
    }
    pwsp_rails_pass(rails, out_decision);
    return PTOWSP_OK;
}

ptowsp_status ptowsp_rails_propose(ptowsp_rails *rails, uint64_t time, uint32_t variant,
                                   ptowsp_rails_decision *out_decision) {
    if (!rails || variant >= rails->desc.variant_count ||
        !pwsp_rails_begin(rails, time, out_decision)) {
        return PTOWSP_INVALID_PARAMS;
    }
    uint64_t until;
    ptowsp_rails_reason refusal = pwsp_rails_refusal(rails, variant, &until);
    if (refusal == PTOWSP_REASON_NONE) {
        pwsp_rails_try(rails, variant, PTOWSP_REASON_PROPOSED, out_decision);
    } else {
        out_decision->action = PTOWSP_RAILS_REFUSE;
        out_decision->reason = refusal;
        out_decision->to = variant;
        out_decision->until = until;
    }
    return PTOWSP_OK;
}

ptowsp_status ptowsp_rails_fail(ptowsp_rails *rails, uint64_t time,
                                ptowsp_rails_decision *out_decision) {
    if (!pwsp_rails_begin(rails, time, out_decision)) {
        return PTOWSP_INVALID_PARAMS;
    }
    if (rails->current != rails->safe) {
        pwsp_rails_roll_back(rails, PTOWSP_REASON_FAILED, out_decision);
    } else {
        out_decision->reason = PTOWSP_REASON_NO_FALLBACK;
    }
    return PTOWSP_OK;
}

// -- text -----------------------------------------------------------------------------------------

PWSP_TEXTS(ptowsp_rails_reason_text, ptowsp_rails_reason, PTOWSP_RAILS_REASONS, "unknown")

static const char *pwsp_rails_action_name(ptowsp_rails_action action) {
    static const char names[][16] = {PTOWSP_RAILS_ACTIONS(PWSP_TABLE_TEXT)};
    return (uint32_t)action <= PTOWSP_RAILS_REFUSE ? names[action] : "unknown";
}

static void pwsp_rails_print_variant(uint32_t variant, const char *const *names,
                                     ptowsp_output text) {
    if (names) {
        pwsp_text_format(text, "%s", names[variant]);
    } else {
        pwsp_text_format(text, "%" PRIu32, variant);
    }
}

void ptowsp_rails_print(const ptowsp_rails_decision *decision, const char *const *names,
                        ptowsp_output output) {
    if (!decision) {
        return;
    }
    const uint64_t numbers[] = {decision->window, decision->reference, decision->limit,
                                decision->until};
    const char *labels[] = {"window", "reference", "limit", "not before"};
    pwsp_text_format(output, "%" PRIu64 ": %s ", decision->time,
                     pwsp_rails_action_name(decision->action));
    if (decision->action == PTOWSP_RAILS_REFUSE) {
        pwsp_rails_print_variant(decision->to, names, output);
    } else {
        pwsp_rails_print_variant(decision->from, names, output);
        if (decision->to != decision->from) {
            pwsp_text_format(output, " -> ");
            pwsp_rails_print_variant(decision->to, names, output);
        }
    }
    if (decision->reason != PTOWSP_REASON_NONE) {
        pwsp_text_format(output, ": %s", ptowsp_rails_reason_text(decision->reason));
    }
    const char *before = " (";
    for (int i = 0; i < 4; i++) {
        if (numbers[i]) {
            pwsp_text_format(output, "%s%s %" PRIu64, before, labels[i], numbers[i]);
            before = ", ";
        }
    }
    pwsp_text_format(output, "%s\n", before[0] == ',' ? ")" : "");
}
