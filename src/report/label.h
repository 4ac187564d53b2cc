// What identifies a task: its kernel, and its axis values and scalars with their names.

#ifndef PWSP_LABEL_H
#define PWSP_LABEL_H

#include "../base/text.h"
#include "../result/result.h"

// What argument i of a task has in common for all tasks of a node.
typedef struct pwsp_label_part {
    const char *name;  // made in `room`, if it has none of its own: so a part is not moved
    uint32_t name_length;
    bool is_signed;
    char room[16];
} pwsp_label_part;

PWSP_INTERNAL void pwsp_label_part_make(const ptowsp_program *program, const pwsp_task_op *op,
                                        uint32_t i, pwsp_label_part *out_part);

// Writes an argument as a number, at most 24 bytes with the terminator; returns its length.
PWSP_INTERNAL size_t pwsp_label_value(const pwsp_label_part *part, uint64_t value, char *room);

// Writes a number in decimal; returns its length, at most 20.
PWSP_INTERNAL size_t pwsp_label_u64(uint64_t value, char *room);

#endif
