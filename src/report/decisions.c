// The library's decisions for a run, with reasons. Nothing is logged: a decision depends on the
// program, the bindings and the options of the last execution, so all are recomputed on request.
// One function visits them; text and JSON are two visitors.

#include "../result/result.h"
#include "../workload/schedule.h"
#include "output.h"

#include <inttypes.h>

typedef struct pwsp_decider {
    const ptowsp_run *run;
    const pwsp_result *result;
    ptowsp_decision_fn visit;
    void *user;
    bool is_over;
    const ptowsp_task_sums *sums;  // by kernel, or NULL; and all their cycles
    double cycles;
    char subject[2 * PWSP_PLACE_TEXT_MAX], chosen[PWSP_PLACE_TEXT_MAX],
        reason[2 * PWSP_PLACE_TEXT_MAX];
} pwsp_decider;

// -- one decision ---------------------------------------------------------------------------------

#define PWSP_DECIDE(d, part, ...) pwsp_text_into((d)->part, sizeof(d)->part, __VA_ARGS__)

// Tells the decision whose texts have been set. permille: of the tasks' cycles, or -1.
static void pwsp_decide(pwsp_decider *d, const char *stage, int32_t permille) {
    const ptowsp_decision decision = {stage, d->subject, d->chosen, d->reason, permille};
    d->is_over = d->is_over || !d->visit(d->user, &decision);  // not asked again after false
    d->reason[0] = '\0';
}

// The share of a kernel in the tasks' cycles, or of all (0); -1 if it was not recorded.
static int32_t pwsp_decide_share(const pwsp_decider *d, uint32_t kernel) {
    const double part = kernel && d->sums ? (double)d->sums[kernel].busy_cycles : d->cycles;
    return d->cycles > 0 ? (int32_t)(1000 * part / d->cycles + 0.5) : -1;
}

// -- compiling ------------------------------------------------------------------------------------

static void pwsp_decide_kernels(pwsp_decider *d) {
    const ptowsp_program *p = d->result->program;
    for (uint32_t i = 1; i < p->kernels.count; i++) {
        const pwsp_kernel_info *info = &p->kernels.items[i];
        if (!p->kernel_is_used[i]) {
            continue;
        }
        PWSP_DECIDE(d, subject, "kernel %s", info->name);
        if (info->code) {
            PWSP_DECIDE(d, chosen, "%" PRIu32 " instructions for %s, on a core of %s%s",
                        info->code->insn_count, info->code->machine.name,
                        ptowsp_unit_name(info->unit),
                        info->code->is_mixed ? ", in two halves" : "");
        } else if (info->pto) {
            PWSP_DECIDE(d, chosen, "a PTO-ISA source");
        } else if (info->unit == PTOWSP_UNIT_LINK) {
            PWSP_DECIDE(d, chosen, "%s", ptowsp_collective_name(info->collective.kind));
        } else {
            PWSP_DECIDE(d, chosen, info->fn ? "a function" : "time only");
        }
        if (info->cost) {
            PWSP_DECIDE(d, reason, "its cost function says how long it takes");
        } else if (info->cycles) {
            PWSP_DECIDE(d, reason, "%" PRIu64 " cycles", info->cycles);
        } else if (info->code) {
            PWSP_DECIDE(d, reason, "its instructions say how long it takes");
        } else if (info->unit == PTOWSP_UNIT_LINK) {
            PWSP_DECIDE(d, reason, "the links say how long it takes");
        } else {
            PWSP_DECIDE(d, reason, "its function says how long it took");
        }
        pwsp_decide(d, "compile", pwsp_decide_share(d, i));
    }
}

static void pwsp_decide_loops(pwsp_decider *d) {
    const ptowsp_program *p = d->result->program;
    for (uint32_t i = 0; i < p->ops.count; i++) {
        const pwsp_op *op = PWSP_OP_AT(p, i);
        const pwsp_loop *loop = op->kind == PWSP_OP_LOOP ? &p->loops.items[op->at] : NULL;
        if (loop && loop->block) {
            const pwsp_loop_block *block = &p->blocks.items[loop->block - 1];
            ptowsp_output_buffer buffer = {d->subject, sizeof d->subject, 0};
            const ptowsp_output text = ptowsp_output_to_buffer(&buffer);
            pwsp_text_format(text, "loop ");
            ptowsp_program_print_place(p, op->node, text);
            PWSP_DECIDE(d, chosen, "%d iterations at a time", PWSP_COLUMN_MAX);
            PWSP_DECIDE(d, reason, "of %" PRIu32 " operations, and %" PRIu32 " once before it",
                        block->step_count, block->hoist_count);
            pwsp_decide(d, "compile", -1);
        }
    }
}

static bool pwsp_decide_conflict(void *user, const pwsp_conflict *conflict) {
    pwsp_decider *d = (pwsp_decider *)user;
    const ptowsp_program *p = d->result->program;
    ptowsp_output_buffer buffer = {d->subject, sizeof d->subject, 0};
    const ptowsp_output text = ptowsp_output_to_buffer(&buffer);
    pwsp_text_format(text, "loop ");
    ptowsp_program_print_place(p, conflict->loop->node, text);
    PWSP_DECIDE(d, chosen, "iterations conflict on tensor %s: they run %s",
                p->tensors.items[conflict->view->tensor].name, pwsp_conflict_effect(p, conflict));
    PWSP_DECIDE(d, reason, "%s writes %s in each", PWSP_PLACE_AT(p, conflict->task->node)->step,
                conflict->task->kind == PWSP_OP_PIPELINE ? "it" : "the same tile");
    pwsp_decide(d, "bind", -1);
    return !d->is_over;
}

// -- binding --------------------------------------------------------------------------------------

static void pwsp_decide_transients(pwsp_decider *d) {
    const ptowsp_transient_sizes sizes = pwsp_result_transient_sizes(d->result);
    if (sizes.lifetime_count == 0 || !*d->result->is_placed) {
        return;
    }
    for (uint32_t i = 0; i < sizes.lifetime_count; i++) {
        const ptowsp_lifetime at = pwsp_result_lifetime_at(d->result, i);
        PWSP_DECIDE(d, subject, "tensor %s", d->result->program->tensors.items[at.tensor].name);
        PWSP_DECIDE(d, chosen, "bytes %" PRIu64 " to %" PRIu64 " of the block", at.offset,
                    at.offset + at.size);
        PWSP_DECIDE(d, reason, "alive from point %" PRIu32 " to %" PRIu32, at.first, at.last);
        pwsp_decide(d, "bind", -1);
    }
    PWSP_DECIDE(d, subject, "transient tensors");
    PWSP_DECIDE(d, chosen, "a block of %" PRIu64 " bytes", sizes.peak);
    PWSP_DECIDE(d, reason, "each alone %" PRIu64 ", at least %" PRIu64 " at point %" PRIu32,
                sizes.sum, sizes.low, sizes.point);
    pwsp_decide(d, "bind", -1);
}

static void pwsp_decide_plans(pwsp_decider *d) {
    const ptowsp_program *p = d->result->program;
    for (uint32_t i = 1; i < p->axes.count; i++) {
        const pwsp_axis_info *axis = &p->axes.items[i];
        ptowsp_attention_batch batch;
        ptowsp_attention_config config;
        ptowsp_attention_sizes capacity;
        int64_t units;
        if (axis->kind == PWSP_AXIS_PLAN && p->axis_is_used[i] &&
            ptowsp_run_bound_size(d->run, i, &units)) {
            bool is_made = ptowsp_run_bound_batch(d->run, i, &batch, &config, &capacity);
            PWSP_DECIDE(d, subject, "plan %s", axis->name);
            PWSP_DECIDE(d, chosen, "%" PRId64 " units", units);
            PWSP_DECIDE(d, reason, is_made ? "planned from the bound batch" : "bound as a plan");
            pwsp_decide(d, "bind", -1);
        }
    }
}

// -- executing ------------------------------------------------------------------------------------

static void pwsp_decide_execution(pwsp_decider *d) {
    const pwsp_result *result = d->result;
    if (result->lanes_used == 0) {
        return;
    }
    PWSP_DECIDE(d, subject, "tasks");
    if (result->is_time_only) {
        PWSP_DECIDE(d, chosen, "for time alone");
        PWSP_DECIDE(d, reason, "mode TIME_ONLY");
    } else if (result->lanes_used == PWSP_RESULT_ON_DEVICE) {
        PWSP_DECIDE(d, chosen, "on the cores of a device");
    } else if (result->lanes_used > 1) {
        PWSP_DECIDE(d, chosen, "on %" PRIu32 " lanes", result->lanes_used);
        PWSP_DECIDE(d, reason, "lane_count");
    } else {
        PWSP_DECIDE(d, chosen, "on the calling thread");
        PWSP_DECIDE(d, reason, "lane_count is 1");
    }
    pwsp_decide(d, "execute", -1);
    PWSP_DECIDE(d, subject, "first walk");
    PWSP_DECIDE(d, chosen, result->has_dry_walk ? "done" : "left out");
    PWSP_DECIDE(d, reason,
                !result->has_dry_walk  ? "no data to protect"
                : result->is_time_only ? "the schedule needs the number of tasks"
                                       : "every view is checked before a kernel runs");
    pwsp_decide(d, "execute", -1);
    if (result->lanes_used == 1) {
        PWSP_DECIDE(d, subject, "issue");
        PWSP_DECIDE(d, chosen, result->is_plain ? "in batches" : "task by task");
        PWSP_DECIDE(d, reason,
                    result->is_plain ? "nothing is recorded, and lanes do not choose"
                                     : "tasks are recorded, lanes choose, or issue takes time");
        pwsp_decide(d, "execute", -1);
    }
}

// -- targets --------------------------------------------------------------------------------------

// Rows of the capability table that the program needs and a target does not simply enforce.
static void pwsp_decide_support(pwsp_decider *d, ptowsp_target target, uint32_t row,
                                int32_t permille) {
    const ptowsp_capability capability = ptowsp_capability_at(row);
    const ptowsp_support support = capability.support[target];
    if (support != PTOWSP_SUPPORT_ENFORCED) {
        PWSP_DECIDE(d, chosen, "%s by %s", ptowsp_support_name(support),
                    ptowsp_target_name(target));
        PWSP_DECIDE(d, reason, "%s %s", capability.directive, capability.value);
        pwsp_decide(d, "target", permille);
    }
}

static void pwsp_decide_target(pwsp_decider *d, ptowsp_target target) {
    const ptowsp_program *p = d->result->program;
    for (uint32_t row = 0; row < ptowsp_capability_count(); row++) {
        if (pwsp_schedule_uses(&p->schedule, p->has_streams, row)) {
            PWSP_DECIDE(d, subject, "schedule");
            pwsp_decide_support(d, target, row, pwsp_decide_share(d, 0));
        }
    }
    for (uint32_t i = 1; i < p->tensors.count; i++) {
        const ptowsp_tensor_desc *desc = &p->tensors.items[i];
        for (uint32_t row = 0; p->tensor_is_used[i] && row < ptowsp_capability_count(); row++) {
            if (pwsp_tensor_uses(desc, p->tensor_is_transient[i], row)) {
                PWSP_DECIDE(d, subject, "tensor %s", desc->name);
                pwsp_decide_support(d, target, row, -1);
            }
        }
    }
    for (uint32_t i = 1; target == PTOWSP_TARGET_ASCEND_NPU && i < p->kernels.count; i++) {
        const pwsp_kernel_info *info = &p->kernels.items[i];
        bool has_source = info->source.text || info->source.file;
        bool lacks_cost = info->cost && !info->source.cost;
        if (p->kernel_is_used[i] && !info->code && !info->pto && (!has_source || lacks_cost)) {
            PWSP_DECIDE(d, subject, "kernel %s", info->name);
            PWSP_DECIDE(d, chosen, "refused by %s", ptowsp_target_name(target));
            PWSP_DECIDE(d, reason, "%s",
                        has_source ? "its cost function has no source" : "it has no source");
            pwsp_decide(d, "target", pwsp_decide_share(d, i));
        }
    }
}

bool ptowsp_run_decisions(const ptowsp_run *run, ptowsp_decision_fn visit, void *user) {
    if (!visit) {
        return false;
    }
    PWSP_ZERO(pwsp_decider, d);
    d.run = run;
    d.result = pwsp_run_result(run);
    d.visit = visit;
    d.user = user;
    uint32_t count;
    d.sums = ptowsp_run_kernels(run, &count);
    for (uint32_t i = 1; i < count; i++) {
        d.cycles += (double)d.sums[i].busy_cycles;
    }
    pwsp_decide_kernels(&d);
    pwsp_decide_loops(&d);
    pwsp_decide_transients(&d);
    pwsp_decide_plans(&d);
    pwsp_program_visit_conflicts(d.result->program, d.result->values, pwsp_decide_conflict, &d);
    pwsp_decide_execution(&d);
    pwsp_decide_target(&d, PTOWSP_TARGET_THREADS);
    pwsp_decide_target(&d, PTOWSP_TARGET_ASCEND_NPU);
    return !d.is_over;
}

// -- writing --------------------------------------------------------------------------------------

typedef struct pwsp_decisions_out {
    pwsp_out out;
    bool is_json, is_first;
} pwsp_decisions_out;

static bool pwsp_decision_write(void *user, const ptowsp_decision *decision) {
    pwsp_decisions_out *to = (pwsp_decisions_out *)user;
    pwsp_out *out = &to->out;
    if (to->is_json) {
        pwsp_json_print(out,
                        "%s\n  {'stage': '%s', 'subject': '%s', 'chosen': '%s', 'reason': '%s'",
                        to->is_first ? "" : ",", decision->stage, decision->subject,
                        decision->chosen, decision->reason);
        if (decision->permille >= 0) {
            pwsp_json_print(out, ", 'permille': %" PRId32, decision->permille);
        }
        pwsp_out_text(out, "}");
    } else {
        pwsp_out_format(out, "  %-8s %s: %s", decision->stage, decision->subject, decision->chosen);
        pwsp_out_format(out, "%s%s", decision->reason[0] ? "; " : "", decision->reason);
        if (decision->permille >= 0) {
            pwsp_out_format(out, " (%" PRId32 ".%" PRId32 " %% of the tasks' cycles)",
                            decision->permille / 10, decision->permille % 10);
        }
        pwsp_out_text(out, "\n");
    }
    to->is_first = false;
    return !out->has_failed;
}

ptowsp_status ptowsp_run_export_decisions(const ptowsp_run *run, ptowsp_report_format format,
                                          ptowsp_output output) {
    const pwsp_result *result = pwsp_run_result(run);
    pwsp_decisions_out to;
    if (!output.write || (format != PTOWSP_REPORT_TEXT && format != PTOWSP_REPORT_JSON)) {
        return PWSP_REFUSE(result->context, "decisions: %s",
                           output.write ? "they are written as text or JSON" : "no function");
    }
    to.is_json = format == PTOWSP_REPORT_JSON;
    to.is_first = true;
    pwsp_out_begin(&to.out, output);
    if (to.is_json) {
        pwsp_out_text(&to.out, "[");
    } else {
        pwsp_out_format(&to.out, "decisions of module %s\n", result->program->name);
    }
    ptowsp_run_decisions(run, pwsp_decision_write, &to);
    pwsp_out_text(&to.out, to.is_json ? "\n]\n" : "");
    return pwsp_out_end(&to.out, result->context, "decisions");
}
