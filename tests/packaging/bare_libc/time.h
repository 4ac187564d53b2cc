#ifndef BARE_TIME_H
#define BARE_TIME_H
typedef long long time_t;
struct timespec {
    time_t tv_sec;
    long tv_nsec;
};
#define TIME_UTC 1
int timespec_get(struct timespec *to, int base);
#ifndef _WIN32
#define CLOCK_MONOTONIC 6
#define CLOCK_REALTIME  0
int clock_gettime(int clock, struct timespec *to);
#endif
#endif
