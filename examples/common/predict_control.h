// Predicted costs of control: launches, dispatch, completion.

#ifndef PREDICT_CONTROL_H
#define PREDICT_CONTROL_H

#include "predict.h"

// The text of a cost in the form of its row, such as "51.4/59.5/75.6 us". False with a reason for one that
// no simulation predicts. The number of tasks is in value or conditions.
bool predict_control(const char *what, const char *value, const char *conditions,
                     char out_text[PREDICT_TEXT_MAX], char reason[PREDICT_REASON_MAX]);

#endif
