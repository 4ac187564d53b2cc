// Workers that run an attention plan: cursors of lists, counts of merges, and their clearing. A model
// of src/plan/attention_run.c for spin.
//
// The plan has two lanes: lane 0 has two parts of tile 0 and one of tile 1; lane 1 has a part of
// each and a whole unit. Workers run it RUNS times, and enter whenever they like. A run begins when
// all have returned from the one before: that is all that is promised between runs, and seeded
// faults show that it has to be.
//
// Checked: every unit runs once in each run; each merge once, on states that its parts have written
// in this run; progress is zero between runs (assertions); nobody waits for another one, but for the
// next run (invalid end states).
//
// Ways: lists are a worker's own; -DSTEALS takes units one at a time, and the last worker to return
// clears; -DWHOLE takes whole lists, and the caller clears when all have returned. Memory is
// sequentially consistent here. What a missing release or acquire would allow is a seeded fault:
// the count before the part, and the merge's reading before the count.
//
// HOLDS:
// HOLDS: -DSTEALS
// HOLDS: -DSTEALS -DWORKERS=3
// HOLDS: -DWHOLE
// FAULT: -DCOUNT_EARLY               a part is counted before its state is written
// FAULT: -DREAD_EARLY                a merge reads before the count has said that all is there
// FAULT: -DMERGE_EARLY               merges with a part missing
// FAULT: -DCOUNT_KEPT                the last part does not clear the count
// FAULT: -DSTEALS -DTWO_STEPS        a cursor is read and then written
// FAULT: -DWHOLE -DTWO_STEPS
// FAULT: -DSTEALS -DFIRST_CLEARS     the first worker to return clears
// FAULT: -DSTEALS -DNOBODY_CLEARS
// FAULT: -DSTEALS -DRETURNED_KEPT    the number of those that have returned is not cleared
// FAULT: -DWHOLE -DFIRST_CLEARS
// FAULT: -DWHOLE -DNOBODY_CLEARS
// FAULT: -DNO_BARRIER                the next run begins before this one is over
// FAULT: -DSTEALS -DNO_BARRIER
// FAULT: -DWHOLE -DNO_BARRIER

#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef RUNS
#define RUNS 2
#endif
#define LANES 2
#define LIST  3
#define UNITS 6
#define WHOLE_UNIT 2

#define TILE_OF(unit)  ((unit) == 5 -> WHOLE_UNIT : ((unit) == 2 || (unit) == 4 -> 1 : 0))
#define SLOTS_OF(tile) (3 - (tile))

byte cursor[LANES], count[2], returned;  // progress
byte state[UNITS];                       // of parts: the run that has written it; 0: being written
byte ran[UNITS], merged[2];              // in all runs
byte back;                               // workers that have returned, in all runs

#define HAS(unit)      (state[unit] == turn)
#define HAS_TILE(tile) ((tile) == 0 -> HAS(0) && HAS(1) && HAS(3) : HAS(2) && HAS(4))

inline bump() {
    d_step { count[tile]++; done = count[tile] }  // (1)
}

inline run_unit() {
    tile = TILE_OF(unit);
#ifdef COUNT_EARLY
    if
    :: tile != WHOLE_UNIT -> bump()
    :: else
    fi;
#endif
    state[unit] = 0;
    d_step { state[unit] = turn; ran[unit]++; assert(ran[unit] <= turn) }
    if
    :: tile != WHOLE_UNIT ->
#ifdef READ_EARLY
        is_there = HAS_TILE(tile);
#endif
#ifndef COUNT_EARLY
        bump();
#endif
        if
#ifdef MERGE_EARLY
        :: done + 1 == SLOTS_OF(tile) ->
#else
        :: done == SLOTS_OF(tile) ->
#endif
#ifndef COUNT_KEPT
            count[tile] = 0;
#endif
#ifndef READ_EARLY
            is_there = HAS_TILE(tile);
#endif
            d_step { assert(is_there); merged[tile]++; assert(merged[tile] <= turn) }
        :: else
        fi
    :: else
    fi;
    atomic { is_there = false; done = 0; tile = 0 }
}

// What is taken of a list: units [at, end).
#ifdef WHOLE
#define END LIST
#else
#define END at + 1
#endif

inline take() {
#ifdef TWO_STEPS
    at = cursor[lane];
    end = (at < LIST -> END : at);
    cursor[lane] = end
#else
    d_step { at = cursor[lane]; end = (at < LIST -> END : at); cursor[lane] = end }
#endif
}

inline drain() {
#if defined(STEALS) || defined(WHOLE)
    take();
#else
    end = LIST;
#endif
    do
    :: at < end -> unit = lane * LIST + at; run_unit(); at++
    :: at == end && end < LIST -> take()
    :: at == end && end == LIST -> break
    od;
    atomic { at = 0; end = 0; unit = 0 }
}

// By the worker that returns last, or by the caller when all have returned.
inline clear_at_last() {
    d_step { returned++; last = returned };  // (2)
    if
#ifdef FIRST_CLEARS
    :: last == 1 ->
#else
    :: last == WORKERS ->
#endif
#ifndef NOBODY_CLEARS
        cursor[0] = 0;
        cursor[1] = 0;
#endif
#ifndef RETURNED_KEPT
        returned = 0
#endif
    :: else
    fi;
    last = 0
}

active [WORKERS] proctype Worker() {
    byte turn = 1, lane, at, end, unit, tile, done, last;
    bool is_there;
    do
    :: turn <= RUNS ->
#ifndef NO_BARRIER
        back >= (turn - 1) * WORKERS;
#endif
#if defined(STEALS) || defined(WHOLE)
        lane = _pid % LANES;
        drain();
        lane = 1 - lane;
        drain();
        clear_at_last();
#else
        lane = _pid;
        drain();
#endif
        d_step {
            back++;
            if
            :: back == turn * WORKERS ->
                at = 0;
                do
                :: at < UNITS -> assert(ran[at] == turn); at++
                :: else -> break
                od;
                at = 0;
                assert(merged[0] == turn && merged[1] == turn);
                assert(cursor[0] == 0 && cursor[1] == 0 && returned == 0);
                assert(count[0] == 0 && count[1] == 0)
            :: else
            fi;
            turn++
        }
    :: else -> break
    od
}
