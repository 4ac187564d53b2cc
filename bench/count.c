// Instructions: what a row costs on any machine, busy or not.
//
// Where perf's counters work each row is run once more under them, and the count stands behind its
// time. With --count nothing is timed: each row runs once, inside bench_counted, and one line for it
// says how to make a count per unit of it. tests/packaging/counts_test.sh has callgrind count that function
// and compares with counts.txt.

#define _GNU_SOURCE  // syscall

#include "bench.h"

#include <string.h>

#if defined(__linux__)
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int counter = -1;  // of this thread, in user space

static int counter_open(void) {
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.type = PERF_TYPE_HARDWARE;
    attr.size = sizeof attr;
    attr.config = PERF_COUNT_HW_INSTRUCTIONS;
    attr.disabled = 1;
    attr.exclude_kernel = 1;
    attr.exclude_hv = 1;
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

bool count_open(void) {
    counter = counter_open();
    return counter >= 0;
}

static bool counter_begin(void) {
    return counter >= 0 && ioctl(counter, PERF_EVENT_IOC_RESET, 0) == 0 &&
           ioctl(counter, PERF_EVENT_IOC_ENABLE, 0) == 0;
}

static double counter_end(void) {
    uint64_t count = 0;
    bool is_good = ioctl(counter, PERF_EVENT_IOC_DISABLE, 0) == 0 &&
                   read(counter, &count, sizeof count) == (ssize_t)sizeof count;
    return is_good ? (double)count : 0.0;
}
#else
bool count_open(void) {
    return false;
}

static bool counter_begin(void) {
    return false;
}

static double counter_end(void) {
    return 0.0;
}
#endif

#if defined(__GNUC__)
__attribute__((noinline))
#endif
void bench_counted(bench_fn fn, void *user) {
    fn(user);
    bench_keep(user);  // no tail call: callgrind sees the end of this function
}

double count_instructions(bench_fn fn, void *user) {
    if (!counter_begin()) {
        return 0.0;
    }
    bench_counted(fn, user);
    return counter_end();
}

double bench_unit_ns(const char *unit) {
    static const struct {
        char prefix[3];
        double ns;
    } units[] = {{"ns", 1.0}, {"us", 1e3}, {"ms", 1e6}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strncmp(unit, units[i].prefix, 2) == 0) {
            return units[i].ns;
        }
    }
    return 0.0;
}

double count_scale(const bench_row *row, double own_ns) {
    const double unit_ns = bench_unit_ns(row->unit);
    return unit_ns > 0.0 ? row->value * unit_ns / own_ns : 1.0;  // of a rate: of one call
}
