// Names of the sample program, as an emitted program.h has them.

#ifndef SAMPLE_PROGRAM_H
#define SAMPLE_PROGRAM_H

enum { AXIS_batch = 1, AXIS_pages, AXIS_experts, AXIS_unused };
enum { ARRAY_pages = 1, ARRAY_weight, ARRAY_flag };
enum { SYMBOL_scale = 1 };
enum { TENSOR_X = 1, TENSOR_Y, TENSOR_sum, TENSOR_W };
enum { KERNEL_fill = 1, KERNEL_add, KERNEL_total, KERNEL_fail };
enum { PLACE_fill = 1, PLACE_when, PLACE_add, PLACE_total, PLACE_load, PLACE_route, PLACE_last };
enum { SLOT_total = 0, SLOT_count, SAMPLE_SLOT_COUNT };

#endif
