// Lanes that run a graph: how they sleep, wake, stand back for a keeper, and end. A model of
// src/engine/lanes.c and take.c, src/graph/graph_lanes.c (and of what graph_step.c does with ranges) for
// spin.
//
//      spin -a graph_sleep.pml && gcc -O2 -DCOLLAPSE -o pan pan.c && ./pan -m100000
//      spin -a -DENDS graph_sleep.pml && gcc -O2 -DCOLLAPSE -o pan pan.c && ./pan -m100000 -a -f
//
// Steps have the numbers that they have there, and the names of functions are those of the code:
//
//      (5)  look_shared, find    CAS keeper from 0 to itself
//      (6)  run_from, find      busy - 1
//      (7)  is_alone                 busy is 1, and then: keeper is this lane
//      (8)  find                 busy + 1
//      (9)  find                 reads keeper; not let in, it only helps with open ranges
//      (10) share                    keeper = 0
//
// Sleepers are those of base/sleeper.c: a list under the lock, in which a lane that sleeps is the first one;
// each waits for a call of its own, on a condition of its own. A waker takes those that it calls off the
// list and the count. Under the lock the list has as many as the count says.
//
// What the model leaves out: clocks (whether a lane looks, and whether it finds tasks long or
// short, is any of both, each time), the order of tasks in a deque (deque.h is about that: here its
// public and private parts are sets, and each change of the word is one step), spinning (a lane
// that finds nothing sleeps at once), and weak memory: all steps above are sequentially consistent.
// A lane that is alone reads and writes counters in two steps, so that one who is wrongly alone
// loses edges.
//
// The graph: 0 is before 1 and 2; 1, 2 and 4 are before 3; 4 is a range of two items.
//
// Checked: no task runs twice, nor before those it depends on (assertions); every lane comes to its
// end, and then all tasks have run, with counters as before (invalid end states, assertions).
// With ENDS: if every lane that can go on does so at some time, the run ends (no endless waking up
// for nothing). Two lanes have 2 million states, a few seconds and 200 MB.
// Options: -DLANES=3 (too many states for a full search: gcc -DBITSTATE, ./pan -w33); -DSHORT:
// lanes that are not let in leave (is_short); -DDIRECT: lane 0 has run by itself before, and then
// never comes again.
// What tests/models/models_test.sh explores:
//
// HOLDS:
// HOLDS: -DENDS -a -f
// HOLDS: -DSHORT
// HOLDS: -DDIRECT
// FAULT: -DNO_RECHECK               sleeps without looking again
// FAULT: -DNO_LAST_WAKE
// FAULT: -DCOUNTED_TWICE            a lane that was called takes itself off the count as well
// FAULT: -DLEFT_IN_LIST             and is called again before it comes
// FAULT: -DSTOLEN_CALL              one that comes later takes the call for one that slept
// FAULT: -DONE_CONDITION            ... or its signal, as with one condition for all and glibc 2.25 to 2.40
// FAULT: -DLOOKS_UNLOCKED           looks before it locks
// FAULT: -DNO_GIVE_UP_WAKE
// FAULT: -DNO_KEEPER_CHECK          (9)
// FAULT: -DNO_BUSY_CHECK            (7)
// FAULT: -DDIRECT -DDIRECT_BREAKS   lane 0 comes back as the keeper

#ifndef LANES
#define LANES 2
#endif
#define TASKS 5
#define NONE  7
#define RANGE 4
#define ITEMS 2

#define IS_SET(set, i) (((set) >> (i)) & 1)
#define BIT(i)         (1 << (i))

byte keeper, busy, sleepers, remaining = TASKS, ended;
bool starts_alone, direct, mutex, over;
byte list[LANES], listed;  // lanes that sleep, the first one last
byte called;               // set of lanes that have been called, and have not come
byte signals;              // with one condition: those that no lane has taken
byte sources = 17, listed_tasks;  // sets of tasks
byte offered[LANES];       // public parts of deques
byte pending[TASKS], fan_in[TASKS], after[TASKS];
byte open;                 // set of lanes whose open_range is the range
byte cursor, items_done;
byte ran;                  // set of tasks

inline lock() {
    atomic { !mutex; mutex = true }
}

inline unlock() {
    mutex = false
}

// pwsp_engine_wake, with pwsp_sleepers_call. Nothing but the count is read by others meanwhile.
inline wake(all) {
    if
    :: sleepers > 0 ->
        lock();
        assert(sleepers == listed);
        do
        :: listed > 0 ->
            d_step {
#ifndef LEFT_IN_LIST
                listed--;
                called = called | BIT(list[listed]);
#else
                called = called | BIT(list[listed - 1]);
#endif
                signals++;
                sleepers--
            };
            if
            :: all || keeper > 0
            :: else -> break
            fi
        :: else -> break
        od;
        unlock()
    :: else
    fi
}

#define HAS_OPEN_RANGE (open != 0 && cursor < ITEMS)

// Reads one thing after the other, as the code does.
inline has_work_for() {
    found = false;
    if
    :: keeper == 0 || keeper == me + 1 -> found = sources != 0
    :: else
    fi;
    if
    :: found
    :: else -> found = HAS_OPEN_RANGE
    fi;
    if
    :: !found && (keeper == 0 || keeper == me + 1) ->
        found = listed_tasks != 0;
        i = 0;
        do
        :: i < LANES && !found -> found = offered[i] != 0; i++
        :: else -> break
        od
    :: else
    fi;
    i = 0
}

inline look_again() {
    if
    :: remaining > 0 ->
#ifdef NO_RECHECK
        found = false;
#else
        has_work_for();
#endif
    :: else -> found = true
    fi
}

// pwsp_cond_wait until it is called; the lock is held again.
inline await_call() {
#if defined(STOLEN_CALL)
    atomic {
        called != 0 && !mutex -> mutex = true;
        if
        :: IS_SET(called, me) -> called = called & ~BIT(me)
        :: else -> called = 0
        fi
    }
#elif defined(ONE_CONDITION)
    do
    :: atomic { signals > 0 && !mutex -> mutex = true; signals-- };
        if
        :: IS_SET(called, me) -> called = called & ~BIT(me); break
        :: else -> unlock()
        fi
    od
#else
    atomic { IS_SET(called, me) && !mutex -> mutex = true; called = called & ~BIT(me); signals-- }
#endif
}

inline sleep() {
#ifdef LOOKS_UNLOCKED
    look_again();
#endif
    lock();
    sleepers++;
#ifndef LOOKS_UNLOCKED
    look_again();
#endif
    if
    :: !found ->
        atomic { list[listed] = me; listed++; mutex = false };
        await_call();
#ifdef COUNTED_TWICE
        sleepers--
#endif
    :: else -> sleepers--
    fi;
    unlock();
    found = false
}

inline report() {
    if
    :: done > 0 ->
        atomic { remaining = remaining - done; found = remaining == 0; done = 0 };
        if
#ifndef NO_LAST_WAKE
        :: found -> wake(true)
#endif
        :: else
        fi;
        found = false
    :: else
    fi
}

inline is_alone() {
#ifdef NO_BUSY_CHECK
    alone = keeper == me + 1
#else
    alone = busy == 1;  // (7)
    alone = alone && keeper == me + 1
#endif
}

inline share() {
    alone = false;
    if
    :: keeper != 0 -> keeper = 0; wake(true)  // (10)
    :: else
    fi
}

// Takes any one of a set that others change as well.
inline pick(set) {
    atomic {
        if
        :: IS_SET(set, 0) -> task = 0
        :: IS_SET(set, 1) -> task = 1
        :: IS_SET(set, 2) -> task = 2
        :: IS_SET(set, 3) -> task = 3
        :: IS_SET(set, 4) -> task = 4
        :: set == 0
        fi;
        if
        :: task != NONE -> set = set & ~BIT(task)
        :: else
        fi
    }
}

inline own() {
    pick(mine);
    if
    :: task == NONE -> pick(offered[me])
    :: else
    fi;
    if
    :: task == NONE -> pick(sources)
    :: else
    fi
}

// `task` is done: releases what comes after it.
inline finish() {
    done++;
    next = NONE;
    i = 0;
    do
    :: i < TASKS && IS_SET(after[task], i) ->
        if
        :: alone ->
            seen = pending[i];
            pending[i] = seen - 1
        :: else ->
            if
            :: pending[i] == 1 -> seen = 1  // nobody else will write it
            :: else -> atomic { seen = pending[i]; pending[i] = seen - 1 }
            fi
        fi;
        if
        :: seen == 1 ->
            pending[i] = fan_in[i];
            if
            :: next == NONE -> next = i
            :: else -> mine = mine | BIT(i)
            fi
        :: else
        fi;
        i++
    :: i < TASKS && !IS_SET(after[task], i) -> i++
    :: else -> break
    od;
    atomic { i = 0; seen = 0; task = next; next = NONE }
}

// Takes items of the range until there are none, and says in `task` what is next if it has done the
// last one.
inline range_work() {
    do
    :: atomic { cursor < ITEMS -> cursor++ }; items++
    :: else -> break
    od
}

inline range_done() {
    if
    :: items > 0 ->
        atomic { items_done = items_done + items; items = 0; found = items_done == ITEMS };
        if
        :: found ->
            found = false;
            assert(!IS_SET(ran, RANGE));
            ran = ran | BIT(RANGE);
            task = RANGE;
            finish()
        :: else
        fi
    :: else
    fi
}

inline help() {
    if
    :: open != 0 && !IS_SET(open, me) -> range_work(); range_done()
    :: else
    fi
}

inline take() {
    help();
    if
    :: task == NONE && listed_tasks != 0 -> lock(); pick(listed_tasks); unlock()
    :: else
    fi;
    i = 1;
    do
    :: i < LANES && task == NONE -> pick(offered[(me + i) % LANES]); i++
    :: else -> break
    od;
    i = 0
}

inline find() {
    has_work_for();
    if
    :: found ->
        found = false;
        atomic { busy++; found = busy == 1 };  // (8)
        if
        :: found && starts_alone ->
            starts_alone = false;
            atomic {
                if
                :: keeper == 0 -> keeper = me + 1  // (5)
                :: else
                fi
            }
        :: else
        fi;
        found = false;
        if
#ifdef NO_KEEPER_CHECK
        :: true ->
#else
        :: keeper == 0 || keeper == me + 1 ->  // (9)
#endif
            is_alone();
            own();
            if
            :: task == NONE -> take()
            :: else
            fi
        :: else -> help()
        fi;
        if
        :: task == NONE -> alone = false; busy--  // (6)
        :: else
        fi
    :: else
    fi
}

inline give_up() {
    mine = mine | BIT(task);
    task = NONE;
    d_step { offered[me] = offered[me] | mine; mine = 0 };
#ifndef NO_GIVE_UP_WAKE
    wake(true)
#endif
}

// The clock may say anything.
inline look() {
    if
    :: direct -> share(); give_up()  // tasks have become long
    :: keeper == me + 1 && !alone -> is_alone()
    :: keeper == me + 1 -> share()
    :: keeper != 0 && keeper != me + 1 -> give_up()
    :: atomic { keeper == 0 -> keeper = me + 1 }  // (5)
    fi
}

// Offers what it has, in its deque or in the list, or keeps it. A lane that is alone does.
inline offer() {
    if
    :: mine != 0 && !alone ->
        d_step { offered[me] = offered[me] | mine; mine = 0 };
        wake(false)
    :: mine != 0 && !alone ->
        lock();
        d_step { listed_tasks = listed_tasks | mine; mine = 0 };
        unlock();
        wake(false)
    :: true
    fi
}

inline run_task() {
    if
    :: task == RANGE ->
        share();
        open = open | BIT(me);
        wake(true);
        task = NONE;
        range_work();
        open = open & ~BIT(me);
        range_done()
    :: else ->
        assert(!IS_SET(ran, task));
        assert(task != 1 && task != 2 || IS_SET(ran, 0));
        assert(task != 3 || (ran & 22) == 22);
        ran = ran | BIT(task);
        finish()
    fi;
    if
    :: task == NONE -> own()
    :: else
    fi
}

proctype Lane(byte me) {
    byte task = NONE, next = NONE, mine, done, i, seen, items;
    bool alone, found;
    do
    :: true ->
        // seek
        find();
        if
        :: task == NONE ->
            report();
            if
            :: remaining == 0 -> break
            :: else
            fi;
#ifdef SHORT
            if
            :: keeper != 0 && keeper != me + 1 -> break
            :: else
            fi;
#endif
            sleep()
        :: else ->
            // run_tasks
            do
            :: task != NONE ->
                offer();
                run_task();
                if
                :: task != NONE -> look()
                :: true
                fi
            :: else -> break
            od;
            assert(mine == 0);
            alone = false;
            busy--;  // (6)
            if
#ifdef DIRECT_BREAKS
            :: direct -> report(); break
#else
            :: direct && keeper == 0 -> report(); break
#endif
            :: else
            fi
        fi
    od;
    assert(mine == 0 && done == 0 && task == NONE);
    ended++
}

init {
    byte i, begun;
    d_step {
        after[0] = 6;
        after[1] = 8;
        after[2] = 8;
        after[4] = 8;
        fan_in[1] = 1;
        fan_in[2] = 1;
        fan_in[3] = 3;
        pending[1] = 1;
        pending[2] = 1;
        pending[3] = 3
    };
#ifdef DIRECT
    starts_alone = true;
    direct = true;
    run Lane(0);
    ended == 1;
    direct = false;
    ended = 0;
    i = 1;
#else
    if
    :: starts_alone = true
    :: true
    fi;
#endif
    do
    :: i < LANES && remaining > 0 -> run Lane(i); i++; begun++
    :: i < LANES && begun > 0 -> i++  // left out
    :: else -> break
    od;
    ended == begun;
    assert(remaining == 0 && ran == 31 && busy == 0 && sleepers == 0 && listed == 0);
    assert(pending[1] == 1 && pending[2] == 1 && pending[3] == 3);
    assert(sources == 0 && listed_tasks == 0 && offered[0] == 0 && offered[1] == 0);
    over = true
}

#ifdef ENDS
ltl ends { <> over }
#endif
