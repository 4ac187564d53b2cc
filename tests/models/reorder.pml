/* The reorder buffer of src/runtime/reorder.h as a Promela model: a walking thread issues five entries
   into a ring of three places, two lanes run what is ready. One holder of a token does what a scope
   does:

        0   1        the holder: a join of 0 and 1, perhaps
         \ /
          2   3      waits for the holder, and takes its place; 3 is merged with it
           \ /
            4        waits for the holder

   Any entry may fail. Each step is one atomic operation of the code, or touches memory that only one
   thread may touch then; lists of links are sets. Joins come back and are used again.

   Holds: no entry runs before what it waits for, or twice; skipped are exactly those that wait for a
   failure; places of the ring are not used again while a lane looks at them; all that has been issued
   is done, and all joins come back. */

// HOLDS:
// FAULT: -DFAULT_BIAS   an entry is issued without the bias
// FAULT: -DFAULT_TIE    links are added without looking for CLOSED at the same time
// FAULT: -DFAULT_DEAD   what is poisoned counts as dead
// FAULT: -DFAULT_LATE   poison is read after CLOSED
// FAULT: -DFAULT_REF    the reference until a join is done is missing
// FAULT: -DFAULT_OPEN   an open join is dropped without closing it


#define TASKS  5
#define PLACES 3
#define JOINS  2
#define NODES  5 /* places, then joins */
#define BIAS   16
#define NONE   255

bool closed[NODES], poisoned[NODES];
byte waiters[NODES];  /* a set */
byte pending[NODES];
byte refs[JOINS], count[JOINS];
bool is_open[JOINS], is_free[JOINS];
byte at[PLACES];      /* which entry is in a place */
byte inside[PLACES];  /* lanes that may still look at it */
bool ran[TASKS], skipped[TASKS], fails[TASKS], bad[TASKS];
byte head, tail;
byte holder = NONE;   /* an entry, or TASKS + a join */
byte links;           /* of the opened entry */
bool is_over;
chan ready = [PLACES] of { byte };

inline finish(node_) { /* tells who waits for it; done by whoever completes it */
    todo = 0;
    node = node_;
    do
    :: true ->
#ifndef FAULT_LATE
        poison = poisoned[node];
#endif
        atomic {
            set = waiters[node];
            waiters[node] = 0;
            closed[node] = true;
#ifndef FAULT_LATE
            if
            :: node < PLACES && inside[node] > 0 -> inside[node]--
            :: else
            fi
#endif
        }
#ifdef FAULT_LATE
        assert(node >= PLACES || at[node] == me);
        poison = poisoned[node];
        if
        :: node < PLACES && inside[node] > 0 -> inside[node]--
        :: else
        fi;
#endif
        other = 0;
        do
        :: other < NODES && (set & (1 << other)) ->
            if
            :: poison -> poisoned[other] = true
            :: else
            fi;
            atomic {
                pending[other]--;
                is_last = pending[other] == 0
            }
            if
            :: is_last && other < PLACES -> ready!other
            :: is_last && other >= PLACES -> todo = todo | (1 << other)
            :: else
            fi;
            other++
        :: other < NODES && !(set & (1 << other)) -> other++
        :: other == NODES -> break
        od;
        if
        :: node >= PLACES -> release(node - PLACES)
        :: else
        fi;
        if
        :: todo == 0 -> break
        :: else ->
            node = PLACES;
            do
            :: todo & (1 << node) -> break
            :: else -> node++
            od;
            todo = todo & ~(1 << node)
        fi
    od
}

inline release(join_) {
    atomic {
        assert(refs[join_] > 0);
        refs[join_]--;
        if
        :: refs[join_] == 0 -> assert(!is_open[join_]); is_free[join_] = true
        :: else
        fi
    }
}

proctype lane() {
    byte place, node, set, other, todo, me;
    bool poison, is_last;
    do
    :: atomic { ready?place; inside[place]++; me = at[place] }
        assert(!ran[me] && !skipped[me]);
        if
        :: poisoned[place] -> assert(bad[me]); skipped[me] = true
        :: else ->
            assert(me != 2 || (ran[0] && ran[1] && !bad[0] && !bad[1]));
            assert(me != 4 || (ran[2] && ran[3] && !bad[2] && !bad[3]));
            ran[me] = true;
            if
            :: fails[me] -> poisoned[place] = true
            :: else
            fi
        fi;
        finish(place)
    :: is_over && empty(ready) -> break
    od
}

/* -- the walking thread */

#define NODE_OF(token) (token < TASKS -> token % PLACES : PLACES + token - TASKS)
#define IS_JOIN(token) (token >= TASKS && token != NONE)

inline close_join(join_) {
    if
    :: is_open[join_] ->
        is_open[join_] = false;
        atomic {
            pending[PLACES + join_] = pending[PLACES + join_] - (BIAS - count[join_]);
            is_last = pending[PLACES + join_] == 0
        }
        if
        :: is_last -> finish(PLACES + join_)
        :: else
        fi
    :: else
    fi
}

/* has_link: one was added, to a waiter's set of what it waits for. */
inline tie(waiter_, token_) {
    has_link = false;
    if
    :: token_ == NONE || (token_ < TASKS && token_ < head)
    :: else ->
        if
        :: IS_JOIN(token_) -> close_join(token_ - TASKS)
        :: else
        fi;
        from = NODE_OF(token_);
#ifdef FAULT_TIE
        has_link = !closed[from];
        if
        :: has_link -> waiters[from] = waiters[from] | (1 << waiter_)
        :: else
        fi;
#else
        atomic {
            if
            :: !closed[from] -> waiters[from] = waiters[from] | (1 << waiter_); has_link = true
            :: else
            fi
        }
#endif
        if
        :: !has_link && poisoned[from] -> poisoned[waiter_] = true
        :: else
        fi
    fi
}

inline drop(token_) {
    if
    :: IS_JOIN(token_) ->
#ifndef FAULT_OPEN
        close_join(token_ - TASKS);
#endif
        release(token_ - TASKS)
    :: else
    fi
}

inline look_if_dead(token_) {
    if
    :: token_ == NONE || (token_ < TASKS && token_ < head) -> is_dead = true
    :: else ->
        from = NODE_OF(token_);
        if
        :: IS_JOIN(token_) && is_open[token_ - TASKS] ->
            is_dead = pending[from] == BIAS - count[token_ - TASKS]
        :: else -> is_dead = closed[from]
        fi;
#ifndef FAULT_DEAD
        is_dead = is_dead && !poisoned[from]
#endif
    fi
}

inline merge(token_) {
    if
    :: IS_JOIN(holder) && is_open[holder - TASKS] ->
        join = holder - TASKS;
        tie(PLACES + join, token_);
        count[join] = count[join] + has_link
    :: else ->
        look_if_dead(holder);
        if
        :: is_dead -> drop(holder); holder = token_
        :: else ->
            atomic {
                if
                :: is_free[0] -> join = 0
                :: else -> is_free[1] -> join = 1
                fi;
                is_free[join] = false
            }
            closed[PLACES + join] = false;
            poisoned[PLACES + join] = false;
            waiters[PLACES + join] = 0;
            pending[PLACES + join] = BIAS;
            count[join] = 0;
            is_open[join] = true;
#ifdef FAULT_REF
            refs[join] = 1;
#else
            refs[join] = 2;
#endif
            tie(PLACES + join, holder);
            count[join] = count[join] + has_link;
            tie(PLACES + join, token_);
            count[join] = count[join] + has_link;
            drop(holder);
            holder = TASKS + join
        fi
    fi
}

inline retire() {
    do
    :: head < tail && closed[head % PLACES] && !is_failed ->
        assert(ran[head] || skipped[head]);
        if
        :: bad[head] -> is_failed = true
        :: else -> head++
        fi
    :: else -> break
    od
}

active proctype walk() {
    byte node, set, other, todo, from, join, place, me = NONE;
    bool poison, is_last, has_link, is_dead, is_failed;
    is_free[0] = true;
    is_free[1] = true;
    run lane();
    run lane();
    do
    :: tail < TASKS && !is_failed ->
        if /* retires what is done, or later */
        :: retire()
        :: tail - head < PLACES
        fi;
        if
        :: is_failed -> break
        :: tail - head == PLACES -> closed[head % PLACES]
        :: else ->
            place = tail % PLACES;
            assert(inside[place] == 0);
            at[place] = tail;
            closed[place] = false;
            waiters[place] = 0;
            poisoned[place] = false;
            pending[place] = BIAS;
            links = 0;
            if
            :: fails[tail] = true
            :: skip
            fi;
            bad[tail] = fails[tail] || (tail == 2 && (bad[0] || bad[1])) ||
                        (tail == 4 && (bad[2] || bad[3]));
            if
            :: tail == 2 || tail == 4 ->
                tie(place, holder);
                links = links + has_link;
                drop(holder);
                holder = tail
            :: else -> merge(tail)
            fi;
            tail++;
#ifdef FAULT_BIAS
            pending[place] = links;
            is_last = links == 0;
#else
            atomic {
                pending[place] = pending[place] - (BIAS - links);
                is_last = pending[place] == 0
            }
#endif
            if
            :: is_last -> ready!place
            :: else
            fi
        fi
    :: else -> break
    od;
    /* what has been issued is done in any case */
    drop(holder);
    do
    :: head < tail -> closed[head % PLACES]; assert(ran[head] || skipped[head]); head++
    :: else -> break
    od;
    is_free[0] && is_free[1];
    is_over = true
}
