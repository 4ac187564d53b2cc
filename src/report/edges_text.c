// Edges as text and as DOT: by task or, for large runs, folded by kernel or by loop.

#include "picture.h"

#include <inttypes.h>

typedef struct pwsp_edge_writer {
    pwsp_picture *picture;
    uint64_t task;  // whose edges have begun; PTOWSP_NO_INDEX: none
    // Folded:
    uint64_t *counts;   // by group of `from`, group of `to`, reason
    uint32_t *groups;   // by node of a task, from 1 on
    uint32_t *members;  // by group: a node, of a task in it or of its loop
    uint64_t *sizes;    // by group: its tasks
    size_t group_count;
} pwsp_edge_writer;

static const char pwsp_edge_colours[PTOWSP_EDGE_COUNT][8] = {"#444444", "#0072b2", "#009e73",
                                                             "#e69f00", "#7b5ea7", "#999999",
                                                             "#c77d1e", "#2a9d8f", "#b5179e"};

// -- folded ---------------------------------------------------------------------------------------

// What tasks of a node have in common with others: their kernel or, as a node, their loop.
static uint32_t pwsp_edge_member(const pwsp_picture *picture, uint32_t node) {
    const ptowsp_program *program = picture->program;
    if (picture->options->fold == PTOWSP_FOLD_KERNELS) {
        return picture->ops[node]->kernel;
    }
    uint32_t at = PWSP_PLACE_AT(program, node)->parent;
    while (at && !PWSP_PLACE_AT(program, at)->variable) {
        at = PWSP_PLACE_AT(program, at)->parent;
    }
    return at;
}

// Numbers the groups. False when memory is out.
static bool pwsp_edge_make_groups(pwsp_edge_writer *writer) {
    const pwsp_picture *picture = writer->picture;
    const pwsp_memory *memory = &picture->memory;
    size_t nodes = (size_t)picture->op_count + 1;
    size_t known_count = nodes + (size_t)picture->program->kernels.count;
    uint32_t *known;
    bool is_good = PWSP_ALLOC(memory, known, known_count) &&
                   PWSP_ALLOC(memory, writer->groups, nodes) &&
                   PWSP_ALLOC(memory, writer->members, nodes);
    writer->group_count = 1;
    for (uint32_t node = 0; is_good && node < picture->op_count; node++) {
        if (picture->ops[node]) {
            uint32_t member = pwsp_edge_member(picture, node);
            PTOWSP_ASSERT(member < known_count);
            if (!known[member]) {
                writer->members[writer->group_count] = member;
                known[member] = (uint32_t)writer->group_count++;
            }
            writer->groups[node] = known[member];
        }
    }
    return is_good;
}

static uint32_t pwsp_edge_group(const pwsp_edge_writer *writer, uint64_t task) {
    return writer->groups[writer->picture->records[task].node];
}

static uint64_t *pwsp_edge_count(const pwsp_edge_writer *writer, size_t from, size_t to,
                                 size_t reason) {
    return &writer->counts[(from * writer->group_count + to) * PTOWSP_EDGE_COUNT + reason];
}

static bool pwsp_edge_fold(void *user, const ptowsp_edge *edge) {
    const pwsp_edge_writer *writer = (const pwsp_edge_writer *)user;
    (*pwsp_edge_count(writer, pwsp_edge_group(writer, edge->from),
                      pwsp_edge_group(writer, edge->to), edge->reason))++;
    return true;
}

// The name of a group: its kernel's, or the place of its loop.
static void pwsp_edge_write_group(const pwsp_edge_writer *writer, size_t group, bool is_dot) {
    pwsp_picture *picture = writer->picture;
    char text[PWSP_LABEL_MAX] = "";
    const char *name = text;
    if (picture->options->fold == PTOWSP_FOLD_KERNELS) {
        name = pwsp_picture_kernel(picture, writer->members[group]);
    } else if (writer->members[group]) {
        ptowsp_output_buffer buffer = {text, sizeof text, 0};
        pwsp_program_print_place(picture->program, writer->members[group], NULL,
                                 ptowsp_output_to_buffer(&buffer));
    } else {
        name = "no loop";
    }
    if (is_dot) {
        pwsp_out_json(picture->out, name);
    } else {
        pwsp_out_text(picture->out, name);
    }
}

static void pwsp_edge_write_folded(const pwsp_edge_writer *writer, size_t from, size_t to,
                                   size_t reason, bool is_dot) {
    pwsp_out *out = writer->picture->out;
    uint64_t count = *pwsp_edge_count(writer, from, to, reason);
    const char *name = ptowsp_edge_reason_name((ptowsp_edge_reason)reason);
    if (count && is_dot) {
        pwsp_out_format(out, "  k%zu -> k%zu [label=\"%s %" PRIu64 "\", color=\"%s\"];\n", from, to,
                        name, count, pwsp_edge_colours[reason]);
    } else if (count) {
        pwsp_edge_write_group(writer, to, false);
        pwsp_out_text(out, " waits for ");
        pwsp_edge_write_group(writer, from, false);
        pwsp_out_format(out, ": %s, %" PRIu64 " times\n", name, count);
    }
}

// Counts and writes. False when memory is out.
static bool pwsp_edge_write_groups(pwsp_edge_writer *writer, bool is_dot) {
    pwsp_picture *picture = writer->picture;
    size_t groups = writer->group_count;
    const uint64_t pair_count = (uint64_t)groups * groups * PTOWSP_EDGE_COUNT;
    bool is_good = PWSP_ALLOC(&picture->memory, writer->counts, pair_count) &&
                   PWSP_ALLOC(&picture->memory, writer->sizes, groups);
    for (uint64_t i = 0; is_good && i < picture->count; i++) {
        writer->sizes[pwsp_edge_group(writer, i)]++;
    }
    if (is_good) {
        pwsp_result_edges(picture->result, PTOWSP_NO_INDEX, pwsp_edge_fold, writer);
    }
    for (size_t k = 1; is_good && is_dot && k < groups; k++) {
        uint64_t count = writer->sizes[k];
        if (count) {
            pwsp_out_format(picture->out, "  k%zu [label=\"", k);
            pwsp_edge_write_group(writer, k, true);
            pwsp_out_format(picture->out, "\\n%" PRIu64 " task%s\"];\n", count,
                            count == 1 ? "" : "s");
        }
    }
    for (size_t i = 0; is_good && i < groups * groups * PTOWSP_EDGE_COUNT; i++) {
        size_t pair = i / PTOWSP_EDGE_COUNT;
        pwsp_edge_write_folded(writer, pair / groups, pair % groups, i % PTOWSP_EDGE_COUNT, is_dot);
    }
    return is_good;
}

static bool pwsp_edges_folded(pwsp_edge_writer *writer, bool is_dot) {
    return pwsp_edge_make_groups(writer) && pwsp_edge_write_groups(writer, is_dot);
}

// -- by task --------------------------------------------------------------------------------------

static void pwsp_edge_write_label(pwsp_picture *picture, uint64_t task) {
    char label[PWSP_LABEL_MAX];
    pwsp_picture_label(picture, task, pwsp_picture_detail(picture), label);
    pwsp_out_text(picture->out, label);
}

static bool pwsp_edge_write_dot(void *user, const ptowsp_edge *edge) {
    pwsp_out *out = ((pwsp_edge_writer *)user)->picture->out;
    pwsp_out_format(out, "  t%" PRIu64 " -> t%" PRIu64 " [tooltip=\"%s\", color=\"%s\"%s];\n",
                    edge->from, edge->to, ptowsp_edge_reason_name(edge->reason),
                    pwsp_edge_colours[edge->reason],
                    edge->reason > PTOWSP_EDGE_STREAM ? ", style=dashed, constraint=false" : "");
    return !out->has_failed;
}

static void pwsp_edge_write_tile(pwsp_out *out, const ptowsp_edge_tile *tile) {
    pwsp_out_format(out, "%u x %u at (%" PRId64 ", %" PRId64 ")", tile->rows, tile->cols, tile->row,
                    tile->col);
    if (tile->lead) {
        pwsp_out_format(out, " + %" PRId64, tile->lead);
    }
}

static bool pwsp_edge_write_text(void *user, const ptowsp_edge *edge) {
    pwsp_edge_writer *writer = (pwsp_edge_writer *)user;
    pwsp_picture *picture = writer->picture;
    pwsp_out *out = picture->out;
    if (writer->task != edge->to) {
        writer->task = edge->to;
        pwsp_out_format(out, "task %" PRIu64 ", ", edge->to);
        pwsp_edge_write_label(picture, edge->to);
        pwsp_out_text(out, "\n");
    }
    pwsp_out_format(out, "  %s task %" PRIu64 ", ",
                    edge->reason > PTOWSP_EDGE_STREAM ? "held up by" : "waits for", edge->from);
    pwsp_edge_write_label(picture, edge->from);
    pwsp_out_format(out, ": %s", ptowsp_edge_reason_name(edge->reason));
    if (edge->reason == PTOWSP_EDGE_TENSOR) {
        pwsp_out_format(out, " %s, ", picture->program->tensors.items[edge->earlier.tensor].name);
        pwsp_edge_write_tile(out, &edge->earlier);
        pwsp_out_text(out, ", here ");
        pwsp_edge_write_tile(out, &edge->later);
        pwsp_out_format(out, "%s%s%s",
                        edge->hazards & PTOWSP_HAZARD_RAW ? ", read after write" : "",
                        edge->hazards & PTOWSP_HAZARD_WAR ? ", write after read" : "",
                        edge->hazards & PTOWSP_HAZARD_WAW ? ", write after write" : "");
    }
    pwsp_out_text(out, "\n");
    return !out->has_failed;
}

PWSP_INTERNAL bool pwsp_export_edges(pwsp_picture *picture, bool is_dot) {
    pwsp_out *out = picture->out;
    pwsp_edge_writer writer = {picture, PTOWSP_NO_INDEX, NULL, NULL, NULL, NULL, 0};
    bool is_folded = picture->options->fold != PTOWSP_FOLD_NONE, is_good = true;
    if (is_dot) {
        pwsp_out_text(out, "digraph \"");
        pwsp_out_json(out, pwsp_picture_title(picture));
        pwsp_out_text(out, "\" {\n  node [shape=box, style=filled, fillcolor=\"#eef4fb\"];\n");
    }
    if (is_folded) {
        is_good = pwsp_edges_folded(&writer, is_dot);
    } else {
        for (uint64_t i = 0; i < picture->count && is_dot && !out->has_failed; i++) {
            pwsp_out_format(out, "  t%" PRIu64 " [label=\"", i);
            pwsp_edge_write_label(picture, i);
            pwsp_out_text(out, "\"];\n");
        }
        pwsp_result_edges(picture->result, PTOWSP_NO_INDEX,
                          is_dot ? pwsp_edge_write_dot : pwsp_edge_write_text, &writer);
    }
    if (is_dot) {
        pwsp_out_text(out, "}\n");
    }
    return is_good;
}
