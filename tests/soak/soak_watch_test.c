// The watchdog of the soak: a case that does not end is seen, whether it sleeps or computes; one that
// takes its time on a busy machine is not.

#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE  // MAP_ANONYMOUS
#endif

#include "facts.h"

#include "watch.h"

#include <sys/mman.h>

// -- looks with given numbers -----------------------------------------------------------------------

static struct {
    soak_watch watch;
    uint64_t clock, ticks, cases;
    bool is_stuck;
} seen;

static ptowsp_status look(void) {
    seen.is_stuck = soak_watch_look(&seen.watch, seen.clock, seen.ticks, seen.cases);
    return PTOWSP_OK;
}

static void begin_watch(void) {
    memset(&seen, 0, sizeof seen);
}

static const facts_field *fields(void) {
    FACTS_RETURN(NAMED("patience", seen.watch.patience), NAMED("clock", seen.clock),
                 NAMED("ticks", seen.ticks), NAMED("cases", seen.cases),
                 NAMED("is_stuck", seen.is_stuck));
}

TEST(watch__facts_hold) {
    static const facts_call calls[] = {{"look", look}, {NULL, NULL}};
    facts all = {"tests/soak/looks.facts", begin_watch, fields, calls, NULL, NULL, 0};
    facts_run(&all);
}

// -- processes --------------------------------------------------------------------------------------

typedef enum life { ENDS, EXITS, DIES, SLEEPS, COMPUTES, RANK_COMPUTES, STOPS } life;

static uint64_t *cases;  // shared with children
static pid_t printed;

static void compute(void) {
    for (volatile uint64_t i = 0;; i++) {
    }
}

static void live(life what) {
    alarm(120);  // whatever happens to the test, it does not stay
    __atomic_fetch_add(cases, 1, __ATOMIC_SEQ_CST);
    if (what == RANK_COMPUTES && fork() == 0) {
        alarm(120);
        compute();
    } else if (what == COMPUTES) {
        compute();
    } else if (what == EXITS) {
        _exit(3);
    } else if (what == DIES) {
        kill(getpid(), SIGKILL);
    } else if (what == STOPS) {
        raise(SIGSTOP);
    } else if (what == SLEEPS || what == RANK_COMPUTES) {
        for (;;) {
            pause();
        }
    }
    _exit(0);
}

static pid_t begin(life what) {
    fflush(NULL);
    const pid_t process = fork();
    assert_true(process >= 0);
    if (process == 0) {
        setpgid(0, 0);
        live(what);
    }
    setpgid(process, process);
    return process;
}

static void note(pid_t process) {
    printed = process;
}

static int wait_for(life what, uint64_t patience) {
    const pid_t process = begin(what);
    printed = 0;
    const int status = soak_wait(process, cases, patience, note);
    assert_int_equal(printed, status == -1 ? process : 0);
    assert_true(kill(process, 0) != 0);  // it is no more
    kill(-process, SIGKILL);             // nor are its ranks
    return status;
}

static int setup(void **state) {
    (void)state;
    void *shared =
        mmap(NULL, sizeof *cases, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cases = (uint64_t *)shared;
    return shared == MAP_FAILED;
}

SUITE_AROUND(setup, NULL)

TEST(watch__a_process_that_ends_says_how) {
    const uint64_t patience = 100 * (uint64_t)sysconf(_SC_CLK_TCK);
    assert_int_equal(wait_for(ENDS, patience), 0);
    const int exited = wait_for(EXITS, patience);
    assert_true(WIFEXITED(exited) && WEXITSTATUS(exited) == 3);
    const int died = wait_for(DIES, patience);
    assert_true(WIFSIGNALED(died) && WTERMSIG(died) == SIGKILL);
}

TEST(watch__processes_that_sleep_or_compute_or_are_stopped_are_stuck) {
    const uint64_t patience = (uint64_t)sysconf(_SC_CLK_TCK) / 3;
    assert_int_equal(wait_for(SLEEPS, patience), -1);
    assert_int_equal(wait_for(COMPUTES, patience), -1);
    assert_int_equal(wait_for(STOPS, patience), -1);
    assert_int_equal(wait_for(RANK_COMPUTES, patience), -1);
}

// Looks at a process until it has spent so much, which is not known by the clock.
TEST(watch__processor_time_is_that_of_a_process_and_its_ranks) {
    static const life lives[] = {COMPUTES, RANK_COMPUTES};
    if (access("/proc/self/stat", R_OK) != 0) {
        skip();  // only the clock is known there
    }
    for (int i = 0; i < 2; i++) {
        const pid_t process = begin(lives[i]);
        uint64_t ticks = 0, before = 0;
        while (ticks < 10) {
            const struct timespec pause = {0, 10000000};
            nanosleep(&pause, NULL);
            assert_int_equal(waitpid(process, NULL, WNOHANG), 0);  // its alarm has not ended it
            ticks = soak_time_of(process);
            assert_true(ticks >= before && ticks < soak_clock());
            before = ticks;
        }
        kill(-process, SIGKILL);
        waitpid(process, NULL, 0);
    }
    const pid_t process = begin(SLEEPS);
    const struct timespec pause = {0, 100000000};
    nanosleep(&pause, NULL);
    assert_true(soak_time_of(process) < 10);  // it starts, and sleeps
    kill(-process, SIGKILL);
    waitpid(process, NULL, 0);
}
