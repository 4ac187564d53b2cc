// Section 29 of the manual: two processes share a file of measured times, and a service tries variants
// of a kernel on rails that roll back what is slower. `manual_tuning FILE` says where the file is.

#include "common/manual.h"

#include <stdio.h>
#include <string.h>

static void records_show(ptowsp_context *context, const char *path) {
    ptowsp_tuning *mine, *theirs;
    remove(path);
    if (ptowsp_tuning_create(context, path, &mine) ||
        ptowsp_tuning_create(context, path, &theirs)) {
        manual_check(false, ptowsp_context_error(context).text);
        return;
    }
    const ptowsp_tuning_key key = {
        .kernel = 7, .machine = "example", .sizes = {ptowsp_tuning_bucket(100)}};
    ptowsp_tuning_value value;
    for (int i = 0; i < 5; i++) {
        manual_check(!ptowsp_tuning_add(mine, &key, 200 - 10.0 * i, "kernel-7"),
                     ptowsp_context_error(context).text);
    }
    manual_check(!ptowsp_tuning_find(theirs, &key, &value), "the other process has not read yet");
    manual_check(!ptowsp_tuning_refresh(theirs) && ptowsp_tuning_find(theirs, &key, &value),
                 "now it has");
    manual_check(ptowsp_tuning_record_at(theirs, 4).value == 160, "the newest measurement");
    manual_check(!ptowsp_tuning_compact(mine, 2) && ptowsp_tuning_count(mine).record_count == 2,
                 "the newest two are kept");
    ptowsp_tuning_destroy(mine);
    ptowsp_tuning_destroy(theirs);
    remove(path);

    static const uint64_t samples[] = {100, 101, 99, 100, 5000};
    ptowsp_measurement measured;
    manual_check(!ptowsp_measure_samples(samples, 5, 1, &measured) && measured.outlier_count == 1,
                 "one of the samples is an outlier");
    printf("median %g, %u samples, %u outlier\n", measured.median, measured.sample_count,
           measured.outlier_count);
}

// Samples of whatever variant runs, one a millisecond, until the rails decide.
static ptowsp_rails_decision trial(ptowsp_rails *rails, uint64_t *time, const uint64_t *times) {
    ptowsp_rails_decision decision = {.action = PTOWSP_RAILS_KEEP};
    for (int i = 0; i < 100 && decision.action == PTOWSP_RAILS_KEEP; i++) {
        ++*time;
        manual_check(!ptowsp_rails_sample(rails, *time, times[rails->current], &decision),
                     "a sample");
    }
    return decision;
}

static void rails_show(void) {
    static const char *const names[] = {"tiles of 64", "tiles of 128", "tiles of 256"};
    static const uint64_t times[] = {100, 90, 130};
    const ptowsp_rails_desc desc = {.variant_count = 3, .window_count = 5, .cooldown_time = 50};
    ptowsp_rails rails;
    ptowsp_rails_decision decision;
    uint64_t time = 0;
    manual_check(!ptowsp_rails_init(&desc, time, &rails), "rails");
    for (int i = 0; i < 5; i++) {  // a window of the baseline, to compare with
        ptowsp_rails_sample(&rails, ++time, times[0], &decision);
    }
    for (uint32_t variant = 1; variant < 3; variant++) {
        manual_check(!ptowsp_rails_propose(&rails, ++time, variant, &decision), "a proposal");
        decision = trial(&rails, &time, times);
        ptowsp_rails_print(&decision, names, manual_output());
    }
    manual_check(rails.current == 1 && rails.safe == 1,
                 "the faster variant stays, the slower goes");
    manual_check(!ptowsp_rails_propose(&rails, ++time, 2, &decision) &&
                     decision.action == PTOWSP_RAILS_REFUSE,
                 "it is not tried again so soon");
    printf("refused: %s\n", ptowsp_rails_reason_text(decision.reason));
    manual_check(!ptowsp_rails_tick(&rails, time += 100, &decision) &&
                     !ptowsp_rails_propose(&rails, ++time, 0, &decision) &&
                     !ptowsp_rails_fail(&rails, ++time, &decision) && rails.current == 1,
                 "a variant that fails is rolled back at once");
}

int main(int argc, char **argv) {
    ptowsp_context *context;
    if (ptowsp_context_create(NULL, &context)) {
        return 1;
    }
    records_show(context, argc > 1 ? argv[1] : "manual_tuning.records");
    rails_show();
    ptowsp_context_destroy(context);
    return manual_end();
}
