// What identifies a task: its kernel, and its axis values and scalars with their names.

#ifndef PWSP_LABEL_H
#define PWSP_LABEL_H

#include "../base/text.h"
#include "../exec/run.h"

// The task of a node of the tree.
PWSP_INTERNAL const pwsp_task_op *pwsp_label_op(const ptowsp_program *program, uint32_t node);

// The name of argument i of a task: of an axis value or, from axis_count on, of a scalar. Without a
// name of its own it is made in `room`, of 16 bytes.
PWSP_INTERNAL const char *pwsp_label_name(const ptowsp_program *program, const pwsp_task_op *op,
                                          uint32_t i, char *room);

// Writes an argument as a number, at most 24 bytes with the terminator; returns its length.
PWSP_INTERNAL size_t pwsp_label_value(const ptowsp_program *program, const pwsp_task_op *op,
                                      uint32_t i, uint64_t value, char *room);

// Writes a number in decimal; returns its length, at most 20.
PWSP_INTERNAL size_t pwsp_label_u64(uint64_t value, char *room);

#endif
