// Control of a schedule: checked, and as text. See ptowsp_control.

#ifndef PWSP_SCHEDULE_CONTROL_H
#define PWSP_SCHEDULE_CONTROL_H

#include "module.h"

// Checks control that is given; `word` is the text of its runner. An error of the context.
PWSP_INTERNAL ptowsp_status pwsp_control_check(ptowsp_context *context,
                                               const ptowsp_control *control, const char *word);

// Writes its directive, a line: "  control aicpu by 3 threads at 1800 MHz launch 8080 ... ns".
PWSP_INTERNAL void pwsp_control_print(const ptowsp_control *control, const char *word,
                                      ptowsp_output text);

#endif
