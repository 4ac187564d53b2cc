// Edges as text and as DOT: by task or, for large runs, folded by kernel.

#include "picture.h"

#include <inttypes.h>

typedef struct pwsp_edge_writer {
    pwsp_picture *picture;
    uint64_t task;     // whose edges have begun; PTOWSP_NO_INDEX: none
    uint64_t *counts;  // folded: by kernel of `from`, kernel of `to`, reason
    size_t kernel_count;
} pwsp_edge_writer;

static const char pwsp_edge_colours[PTOWSP_EDGE_COUNT][8] = {"#444444", "#0072b2", "#009e73",
                                                             "#e69f00", "#7b5ea7", "#999999",
                                                             "#c77d1e", "#2a9d8f", "#b5179e"};

// -- folded ---------------------------------------------------------------------------------------

static uint64_t *pwsp_edge_count(const pwsp_edge_writer *writer, size_t from, size_t to,
                                 size_t reason) {
    return &writer->counts[(from * writer->kernel_count + to) * PTOWSP_EDGE_COUNT + reason];
}

static bool pwsp_edge_fold(void *user, const ptowsp_edge *edge) {
    pwsp_edge_writer *writer = (pwsp_edge_writer *)user;
    const ptowsp_task_record *records = writer->picture->run->recorder.records;
    (*pwsp_edge_count(writer, records[edge->from].kernel, records[edge->to].kernel,
                      edge->reason))++;
    return true;
}

static void pwsp_edge_write_folded(pwsp_edge_writer *writer, size_t from, size_t to, size_t reason,
                                   bool is_dot) {
    pwsp_out *out = writer->picture->out;
    uint64_t count = *pwsp_edge_count(writer, from, to, reason);
    const char *name = ptowsp_edge_reason_name((ptowsp_edge_reason)reason);
    if (count && is_dot) {
        pwsp_out_format(out, "  k%zu -> k%zu [label=\"%s %" PRIu64 "\", color=\"%s\"];\n", from, to,
                        name, count, pwsp_edge_colours[reason]);
    } else if (count) {
        pwsp_out_format(out, "%s waits for %s: %s, %" PRIu64 " times\n",
                        pwsp_picture_kernel(writer->picture, (uint32_t)to),
                        pwsp_picture_kernel(writer->picture, (uint32_t)from), name, count);
    }
}

static bool pwsp_edges_folded(pwsp_edge_writer *writer, bool is_dot) {
    pwsp_picture *picture = writer->picture;
    uint64_t kernels = picture->program->kernels.count, size;
    writer->kernel_count = (size_t)kernels;
    if (!pwsp_mul_fits(kernels * PTOWSP_EDGE_COUNT * sizeof(uint64_t), kernels, &size)) {
        return false;
    }
    writer->counts = (uint64_t *)pwsp_memory_alloc(&picture->memory, (size_t)size);
    if (!writer->counts) {
        return false;
    }
    ptowsp_run_edges(picture->run, PTOWSP_NO_INDEX, pwsp_edge_fold, writer);
    for (size_t k = 1; k < kernels && is_dot; k++) {
        uint64_t count = picture->run->recorder.kernels[k].task_count;
        if (count) {
            pwsp_out_format(picture->out, "  k%zu [label=\"", k);
            pwsp_out_json(picture->out, pwsp_picture_kernel(picture, (uint32_t)k));
            pwsp_out_format(picture->out, "\\n%" PRIu64 " task%s\"];\n", count,
                            count == 1 ? "" : "s");
        }
    }
    for (size_t i = 0; i < (size_t)size / sizeof(uint64_t); i++) {
        size_t pair = i / PTOWSP_EDGE_COUNT;
        pwsp_edge_write_folded(writer, pair / writer->kernel_count, pair % writer->kernel_count,
                               i % PTOWSP_EDGE_COUNT, is_dot);
    }
    pwsp_memory_free(&picture->memory, writer->counts, (size_t)size);
    return true;
}

// -- by task --------------------------------------------------------------------------------------

static void pwsp_edge_write_label(pwsp_picture *picture, uint64_t task) {
    char label[PWSP_LABEL_MAX];
    pwsp_picture_label(picture, task,
                       picture->options->is_short ? PWSP_LABEL_KERNEL : PWSP_LABEL_FULL, label);
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
        const ptowsp_tensor_info tensor =
            ptowsp_program_tensor_at(picture->program, edge->earlier.tensor);
        pwsp_out_format(out, " %s, ", tensor.desc.name);
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
    pwsp_edge_writer writer = {picture, PTOWSP_NO_INDEX, NULL, 0};
    bool is_folded = picture->options->is_folded, is_good = true;
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
        ptowsp_run_edges(picture->run, PTOWSP_NO_INDEX,
                         is_dot ? pwsp_edge_write_dot : pwsp_edge_write_text, &writer);
    }
    if (is_dot) {
        pwsp_out_text(out, "}\n");
    }
    return is_good;
}
