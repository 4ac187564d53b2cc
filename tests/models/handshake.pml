// The handshake of src/runtime/handshake.h with the sleeping of src/base/sleeper.h, for spin: an AICPU
// thread gives TASKS tasks to two cores, takes their results, and closes their lines.
//
// Checked: every task runs once and its result is read once; nobody reads a task or a result that
// another one is writing (assertions); all threads end (invalid end states), so no wake-up is lost.
//
// Memory is sequentially consistent here. That releases and acquires are where they have to be shows
// in the seeded faults: each puts two steps in the order that a missing one would allow, or leaves a
// step out, and spin must find an error. tests/models/models_test.sh reads the following lines.
//
// HOLDS:
// FAULT: -DASSIGNED_EARLY     AICPU: ASSIGNED before the task is written
// FAULT: -DDONE_EARLY         core: DONE before the result is written
// FAULT: -DIDLE_EARLY         AICPU: IDLE, and the next task, before the result is read
// FAULT: -DNO_IDLE            AICPU: the line stays DONE when the result has been read
// FAULT: -DGIVE_BUSY          AICPU: gives without looking for IDLE
// FAULT: -DQUIT_BUSY          AICPU: QUIT without waiting for IDLE
// FAULT: -DCORE_SLEEPS_BLIND  core: does not look again after it has said that it sleeps
// FAULT: -DCORE_DEAF          core: looks again for a task, but not for QUIT
// FAULT: -DNO_WAKE            AICPU: does not look for a sleeper after a task is given
// FAULT: -DWAKE_EARLY         AICPU: looks for a sleeper before the task is given
// FAULT: -DAICPU_BLIND        AICPU: does not look again after it has said that it sleeps
// FAULT: -DDONE_NO_WAKE       core: does not look for a sleeping AICPU after DONE
// FAULT: -DNO_LOCK            waking without the lock, so that the signal may come before the wait

#ifndef TASKS
#define TASKS 3
#endif
#define CORES 2

mtype = { IDLE, ASSIGNED, DONE };

// Lines. What `task` points to, and the result in it, is `payload` and `result`.
mtype status[CORES] = IDLE;
bool ready[CORES], opened[CORES], quit[CORES];
byte payload[CORES], result[CORES];  // task + 1; 0: none

// Sleepers: those of the cores, and the AICPU's.
#define AICPU CORES
bool asleep[CORES + 1], locked[CORES + 1], signalled[CORES + 1];

// What must hold.
byte ran[TASKS], read[TASKS], ended;
bool writing[CORES];   // payload or result is being written
bool reading[CORES];

#define LOCK(s)   atomic { !locked[s] -> locked[s] = true }
#define UNLOCK(s) locked[s] = false

// Waking: reads the flag, and then under the lock takes it back and signals.
inline wake(s) {
    if
    :: asleep[s] ->
#ifndef NO_LOCK
        LOCK(s);
#endif
        if
        :: asleep[s] ->
            asleep[s] = false;
            signalled[s] = true   // lost, unless the sleeper is waiting: see wait_signal
        :: else
        fi;
#ifndef NO_LOCK
        UNLOCK(s)
#else
        skip
#endif
    :: else
    fi
}

// A condition: waiting begins with what was signalled before forgotten, and gives up the lock in one
// step with that. It may also end for no reason, but then goes on as long as asleep is set; left out,
// as it only helps.
inline wait_signal(s) {
    atomic { signalled[s] = false; locked[s] = false };
    atomic { signalled[s] && !locked[s] -> locked[s] = true }
}

// -- AICPU -----------------------------------------------------------------------------------------

byte given, taken;

inline give(c) {
#ifdef WAKE_EARLY
    wake(c);
#endif
#ifdef ASSIGNED_EARLY
    status[c] = ASSIGNED;
#endif
    assert(!reading[c]);
    writing[c] = true;
    payload[c] = given + 1;
    writing[c] = false;
#ifndef ASSIGNED_EARLY
    status[c] = ASSIGNED;
#endif
    given++;
#if !defined(NO_WAKE) && !defined(WAKE_EARLY)
    wake(c)
#else
    skip
#endif
}

inline take(c) {
#ifdef IDLE_EARLY
    status[c] = IDLE;
    if
    :: given < TASKS -> give(c)
    :: else
    fi;
#endif
    assert(!writing[c]);
    reading[c] = true;
    assert(result[c] > 0);
    read[result[c] - 1]++;
    assert(read[result[c] - 1] == 1);
    reading[c] = false;
    taken++;
#if !defined(NO_IDLE) && !defined(IDLE_EARLY)
    status[c] = IDLE
#else
    skip
#endif
}

// Something that the AICPU can go on with.
#ifdef GIVE_BUSY
#define MAY_GIVE(c) (given < TASKS)
#else
#define MAY_GIVE(c) (given < TASKS && status[c] == IDLE)
#endif
#define NEWS (status[0] == DONE || status[1] == DONE || MAY_GIVE(0) || MAY_GIVE(1))

active proctype aicpu() {
    byte c;
    ready[0] = true;
    wake(0);
    ready[1] = true;
    wake(1);
    c = 0;
    do
    :: c < CORES && opened[c] -> c++
    :: c < CORES && !opened[c] ->
        LOCK(AICPU);
        asleep[AICPU] = true;
        if
        :: opened[c]
        :: !opened[c] -> wait_signal(AICPU)
        fi;
        asleep[AICPU] = false;
        UNLOCK(AICPU)
    :: c == CORES -> break
    od;
    do
    :: status[0] == DONE -> take(0)
    :: status[1] == DONE -> take(1)
    :: MAY_GIVE(0) -> give(0)
    :: MAY_GIVE(1) -> give(1)
    :: taken == TASKS -> break
    :: !NEWS && taken < TASKS ->
        LOCK(AICPU);
        asleep[AICPU] = true;
#ifndef AICPU_BLIND
        if
        :: NEWS
        :: !NEWS -> wait_signal(AICPU)
        fi;
#else
        wait_signal(AICPU);
#endif
        asleep[AICPU] = false;
        UNLOCK(AICPU)
#ifdef QUIT_BUSY
    :: given == TASKS -> break
#endif
    od;
    assert(status[0] == IDLE);
    quit[0] = true;
    wake(0);
    assert(status[1] == IDLE);
    quit[1] = true;
    wake(1);
    ended++
}

// -- cores -----------------------------------------------------------------------------------------

#ifdef CORE_DEAF
#define MUST_WAKE(c) (status[c] == ASSIGNED)
#else
#define MUST_WAKE(c) (status[c] == ASSIGNED || quit[c])
#endif

active [CORES] proctype core() {
    byte c = _pid - 1, task;
    do
    :: ready[c] -> break
    :: !ready[c] ->
        LOCK(c);
        asleep[c] = true;
        if
        :: ready[c]
        :: !ready[c] -> wait_signal(c)
        fi;
        asleep[c] = false;
        UNLOCK(c)
    od;
    opened[c] = true;
    wake(AICPU);
    do
    :: status[c] == ASSIGNED ->
        assert(!writing[c]);
        reading[c] = true;
        task = payload[c];
        assert(task > 0);
        ran[task - 1]++;
        assert(ran[task - 1] == 1);
        reading[c] = false;
#ifdef DONE_EARLY
        status[c] = DONE;
#endif
        assert(!reading[c]);
        writing[c] = true;
        result[c] = task;
        writing[c] = false;
#ifndef DONE_EARLY
        status[c] = DONE;
#endif
#ifndef DONE_NO_WAKE
        wake(AICPU)
#else
        skip
#endif
    :: status[c] != ASSIGNED ->
        if
        :: quit[c] -> break
        :: !quit[c] -> skip   // polls again, or sleeps:
        :: !quit[c] ->
            LOCK(c);
            asleep[c] = true;
#ifndef CORE_SLEEPS_BLIND
            if
            :: MUST_WAKE(c)
            :: !MUST_WAKE(c) -> wait_signal(c)
            fi;
#else
            wait_signal(c);
#endif
            asleep[c] = false;
            UNLOCK(c)
        fi
    od;
    ended++
}

// When all have ended.
active proctype end() {
    byte i;
    ended == CORES + 1;
    for (i : 0 .. TASKS - 1) {
        assert(ran[i] == 1 && read[i] == 1)
    }
}
