#include "predict.h"

#include "predict_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The number after `count` commas outside quotes.
static double number_at(const char *row, uint32_t count) {
    bool is_quoted = false;
    while (*row && count) {
        is_quoted ^= *row == '"';
        count -= *row++ == ',' && !is_quoted;
    }
    return strtod(row, NULL);
}

bool predict_published(const char *kernel, const char *shape, double *out_us) {
    char begin[PREDICT_TEXT_MAX];
    snprintf(begin, sizeof begin, "%.*s,", PREDICT_TEXT_MAX - 2, kernel);
    for (size_t i = 1; i < sizeof predict_kernel_rows / sizeof *predict_kernel_rows; i++) {
        const char *row = predict_kernel_rows[i];
        if (strncmp(row, begin, strlen(begin)) == 0 && strstr(row, shape)) {
            *out_us = number_at(row, 5);
            return true;
        }
    }
    return false;
}
