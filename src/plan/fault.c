// Faults of planning and their texts; tiers. Emitted trees carry it, with the planner of attention
// plans.

#include "plan.h"

#include "../base/text.h"

// -- faults ---------------------------------------------------------------------------------------

static const ptowsp_status pwsp_fault_statuses[] = {
#define PWSP_FAULT_STATUS(name, status, text) PTOWSP_##status,
    PTOWSP_PLAN_FAULTS(PWSP_FAULT_STATUS)
#undef PWSP_FAULT_STATUS
};

// The texts, one after another: pointers would need relocation when the library is shared.
static const struct pwsp_fault_texts {
#define PWSP_FAULT_SIZE(name, status, text) char of_##name[sizeof(text)];
    PTOWSP_PLAN_FAULTS(PWSP_FAULT_SIZE)
#undef PWSP_FAULT_SIZE
} pwsp_fault_texts = {
#define PWSP_FAULT_TEXT(name, status, text) text,
    PTOWSP_PLAN_FAULTS(PWSP_FAULT_TEXT)
#undef PWSP_FAULT_TEXT
};

static const char *pwsp_fault_text(uint32_t fault) {
    const char *text = (const char *)&pwsp_fault_texts;
    for (; fault > 0; fault--) {
        text += strlen(text) + 1;
    }
    return text;
}

PWSP_INTERNAL ptowsp_status pwsp_plan_fail(ptowsp_plan_info *info, ptowsp_plan_fault fault,
                                           uint64_t index, int64_t value, int64_t limit) {
    PTOWSP_ASSERT((uint32_t)fault < PTOWSP_FAULT_COUNT);
    PTOWSP_ASSERT(fault == PTOWSP_FAULT_NONE || pwsp_fault_statuses[fault] < 0);
    ptowsp_plan_info failed = {0, fault, index, value, limit, false};
    *info = failed;
    return pwsp_fault_statuses[fault];
}

PWSP_INTERNAL ptowsp_plan_info *pwsp_info_start(ptowsp_plan_info *out_info,
                                                ptowsp_plan_info *spare) {
    ptowsp_plan_info *info = out_info ? out_info : spare;
    PWSP_PLAN_FAIL(info, NONE, 0, 0);
    return info;
}

// Writes the name at `number` of "{a|b|c}". Returns its last character.
static const char *pwsp_fault_name(const char *names, int64_t number, ptowsp_output output) {
    const char *at = names + 1, *end = strchr(names, '}');
    for (; number > 0 && at < end; at++) {
        number -= *at == '|';
    }
    while (at < end && *at != '|') {
        pwsp_text_write(output, at++, 1);
    }
    return end;
}

void ptowsp_plan_explain(const ptowsp_plan_info *info, ptowsp_output output) {
    if (!info) {
        return;
    }
    uint32_t fault = (uint32_t)info->fault;
    const char *sentence = fault < PTOWSP_FAULT_COUNT ? pwsp_fault_text(fault) : "unknown fault";
    pwsp_text_format(output, fault < PTOWSP_FAULT_ATTEND_JOB_NULL ? "plan: " : "attend: ");
    for (const char *at = sentence; *at; at++) {
        if (*at != '%') {
            pwsp_text_write(output, at, 1);
            continue;
        }
        at++;
        const int64_t number = *at == 'v' ? info->value : info->limit;
        if (at[1] == '{') {
            at = pwsp_fault_name(at + 1, *at == 'i' ? (int64_t)info->index : number, output);
        } else if (*at == 'i') {
            pwsp_text_format(output, "%llu", (unsigned long long)info->index);
        } else {
            pwsp_text_format(output, "%lld", (long long)number);
        }
    }
}

// -- tiers ----------------------------------------------------------------------------------------

int32_t ptowsp_tier_find(const ptowsp_tier *tiers, uint32_t tier_count, int32_t length) {
    for (uint32_t i = 0; tiers && i < tier_count; i++) {
        if (tiers[i].length_min <= length && length <= tiers[i].length_max) {
            return tiers[i].id;
        }
    }
    return -1;
}

PWSP_INTERNAL ptowsp_status pwsp_tiers_check(const ptowsp_tier *tiers, uint32_t tier_count,
                                             ptowsp_plan_info *info) {
    if (!tiers) {
        return PWSP_PLAN_FAIL(info, TIERS_NULL, tier_count, 0);
    }
    if (tier_count == 0) {
        return PWSP_PLAN_FAIL(info, TIERS_EMPTY, 0, 0);
    }
    for (uint32_t i = 0; i < tier_count; i++) {
        if (tiers[i].length_min > tiers[i].length_max) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_TIER_ORDER, i, tiers[i].length_min,
                                  tiers[i].length_max);
        }
    }
    return PTOWSP_OK;
}

// Two passes find out for tiers in ascending order and most others, at a cost that stays linear.
PWSP_INTERNAL bool pwsp_tiers_cover(const ptowsp_tier *tiers, uint32_t tier_count, int32_t low,
                                    int32_t high) {
    int64_t next = low;
    for (uint32_t pass = 0; pass < 2 && next <= high; pass++) {
        for (uint32_t i = 0; i < tier_count; i++) {
            if (tiers[i].length_min <= next && next <= tiers[i].length_max) {
                next = (int64_t)tiers[i].length_max + 1;
            }
        }
    }
    return next > high;
}
