// Measuring a function, and statistics that a few interrupted samples do not move: the median, and
// the median of the distances from it (MAD).

#include "../base/context.h"
#include "../base/heap.h"

PWSP_SORT(pwsp_measure_sort, double, void, PWSP_IS_LESS)

static double pwsp_measure_middle(const double *sorted, uint32_t count) {
    PTOWSP_ASSERT(count > 0);
    double low = sorted[(count - 1) / 2], high = sorted[count / 2];
    return low + (high - low) / 2;
}

static void pwsp_measure_reduce(double *values, uint32_t count, ptowsp_measurement *out) {
    PWSP_ROUND_APART
    double distances[PTOWSP_MEASURE_SAMPLE_MAX];
    PTOWSP_ASSERT(count > 0 && count <= PTOWSP_MEASURE_SAMPLE_MAX);
    pwsp_measure_sort(NULL, values, count);
    double median = pwsp_measure_middle(values, count);
    for (uint32_t i = 0; i < count; i++) {
        distances[i] = values[i] < median ? median - values[i] : values[i] - median;
    }
    pwsp_measure_sort(NULL, distances, count);
    out->deviation = pwsp_measure_middle(distances, count);
    // Outliers are at both ends of the sorted samples.
    double limit = out->deviation > 0 ? 3.5 * out->deviation / 0.6745 : distances[count - 1];
    uint32_t first = 0, end = count;
    while (median - values[first] > limit) {
        first++;
    }
    while (values[end - 1] - median > limit) {
        end--;
    }
    out->sample_count = end - first;
    out->outlier_count = count - out->sample_count;
    out->median = pwsp_measure_middle(values + first, out->sample_count);
    out->least = values[first];
    out->most = values[end - 1];
}

ptowsp_status ptowsp_measure_samples(const uint64_t *samples, uint32_t count, uint32_t calls,
                                     ptowsp_measurement *out_measurement) {
    double values[PTOWSP_MEASURE_SAMPLE_MAX];
    if (out_measurement) {
        memset(out_measurement, 0, sizeof *out_measurement);
    }
    if (!samples || !out_measurement || count == 0 || count > PTOWSP_MEASURE_SAMPLE_MAX) {
        return PTOWSP_INVALID_PARAMS;
    }
    for (uint32_t i = 0; i < count; i++) {
        values[i] = (double)samples[i] / (calls ? calls : 1);
    }
    pwsp_measure_reduce(values, count, out_measurement);
    return PTOWSP_OK;
}

static uint64_t pwsp_measure_clock(void *user) {
    (void)user;
    return ptowsp_clock_ns();
}

ptowsp_status ptowsp_measure(ptowsp_context *context, const ptowsp_measure_desc *desc,
                             ptowsp_measurement *out_measurement) {
    PTOWSP_ASSERT(context);
    if (out_measurement) {
        memset(out_measurement, 0, sizeof *out_measurement);
    }
    if (!desc || !desc->fn || !out_measurement) {
        return PWSP_REFUSE(context, "measure: %s is NULL",
                           !desc      ? "desc"
                           : desc->fn ? "out_measurement"
                                      : "fn");
    }
    uint64_t samples[PTOWSP_MEASURE_SAMPLE_MAX];
    uint64_t (*clock)(void *) = desc->clock ? desc->clock : pwsp_measure_clock;
    uint32_t repeats = desc->repeats ? desc->repeats : 21;
    if (repeats > PTOWSP_MEASURE_SAMPLE_MAX) {
        return pwsp_fail(context, PTOWSP_INVALID_PARAMS, repeats,
                         "measure: %u repeats; there are at most %d", (unsigned)repeats,
                         PTOWSP_MEASURE_SAMPLE_MAX);
    }
    uint64_t call_count = (uint64_t)desc->warm_up + repeats;
    for (uint64_t i = 0; i < call_count; i++) {
        uint64_t begin = clock(desc->user);
        ptowsp_status status = desc->fn(desc->user);
        uint64_t end = clock(desc->user);
        if (status < 0) {
            return pwsp_fail(context, status, i, "measure: call %llu failed: %s",
                             (unsigned long long)i, ptowsp_status_text(status));
        }
        if (end < begin) {
            return pwsp_fail(context, PTOWSP_INVALID_PARAMS, i,
                             "measure: the clock went back, from %llu to %llu",
                             (unsigned long long)begin, (unsigned long long)end);
        }
        if (i >= desc->warm_up) {
            samples[i - desc->warm_up] = end - begin;
        }
    }
    return ptowsp_measure_samples(samples, repeats, desc->calls, out_measurement);
}
