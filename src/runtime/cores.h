// Cores, and the AICPU threads that give them tasks: the workers of a device made of threads, and of
// emitted trees.
//
//      ready(entry) --> queues: one for each core,  --> AICPU threads --line--> cores
//                       one for each unit; one lock     each has cores           run, DONE
//                                                       of its own
//
// What runs on cores is a job: numbered entries that become ready. This room knows only the fields
// of pwsp_core_job. Programs, graphs and launches are jobs.
//
//      ready(entry)          by the host, or by an AICPU thread inside done or pass
//      need_of(entry)        where it waits, and what goes first there
//      take(entry)           a part of it leaves the queue, or all of it
//      is_wanted(entry)      it must run; else pass replaces all further calls
//      give(turn, core)      the AICPU writes its task; then the core runs it
//      done(turn)            on the AICPU thread of that core
//
// Blocks   Cube core i and vector cores 2 i, 2 i + 1, if there are enough of these. An entry of MIX
//          is picked for the cube core, and begins when both vector cores are free; from then
//          on these take no other task. All three belong to one AICPU thread.
// Lost     A core that has not ended its task within the time limit is not used again: its turn is
//          lost, then done. It still takes entries, and passes them; so no queue stays full.
// Waiting  A thread that finds nothing to do pauses, then yields, and then sleeps until it is woken:
//          see ../base/sleeper.h. Where cores do not wake anybody, or several threads act for the
//          host, nobody sleeps (is_polled).

#ifndef PWSP_CORES_H
#define PWSP_CORES_H

#include "../base/sleeper.h"
#include "handshake.h"
#include "../engine/ready_pool.h"

#define PWSP_CORES_NONE UINT32_MAX

// The events that an AICPU thread sleeps for:
#define PWSP_AWAIT_ANY    1u  // a finished task, a run, the end
#define PWSP_AWAIT_VECTOR 2u  // a task for one of its free cores of a unit: VECTOR << unit
#define PWSP_AWAIT_CUBE   4u
// The host sleeps for these, and for a finished entry.
#define PWSP_AWAIT_DONE 8u

// How a thread waits before it sleeps: see pwsp_cores_spin.
typedef struct pwsp_patience {
    uint32_t round;
    uint32_t hurry;  // waits that are left without yields
} pwsp_patience;

// A part of an entry, and the core that it was picked for. entry NONE: the core has not begun to poll.
typedef struct pwsp_turn {
    uint32_t core, entry, part;
} pwsp_turn;

// The needs of an entry. Of several that wait, the one of the largest rank goes first, and of equals
// the one with the smallest number.
typedef struct pwsp_need {
    ptowsp_unit unit;
    uint32_t home;  // a core, or NONE: any of its unit
    uint64_t rank, number;
} pwsp_need;

typedef struct pwsp_core_job {
    void *user;
    pwsp_ready_link *links;  // by entry
    pwsp_need (*need_of)(void *user, uint32_t entry);
    // Under the lock. May an entry that is first in its queue leave it? NULL: always.
    pwsp_may_begin_fn may_begin;
    // Under the lock; true: more parts remain. NULL: every entry has one part, number 0.
    bool (*take)(void *user, uint32_t entry, uint32_t *out_part);
    bool (*is_wanted)(void *user, uint32_t entry);
    void (*pass)(void *user, const pwsp_turn *turn, uint32_t by, bool is_lost);
    // Writes the work of a core of the turn: the turn's core, and with has_parts the vector cores of
    // its block, before it. Returns the address.
    uint64_t (*give)(void *user, const pwsp_turn *turn, uint32_t core);
    // A core of the turn is lost; done(is_lost) follows, if the turn has an entry.
    void (*lose)(void *user, const pwsp_turn *turn, uint32_t core);
    void (*done)(void *user, const pwsp_turn *turn, uint32_t by, bool is_lost);
    bool has_parts;    // each core of a block runs a part of its task; else the cube core runs all
    bool is_stealing;  // a core without entries takes entries of other cores of its unit
    bool is_awaited;   // the host calls pwsp_cores_await
} pwsp_core_job;

typedef struct pwsp_core {
    // Of the core, and read by its AICPU thread.
    pwsp_line *line;
    pwsp_sleeper *sleeper;  // its own, or shared by several cores with one thread
    struct pwsp_aicpu *aicpu;
    uint32_t index, unit;
    pwsp_sleeper own;
    pwsp_patience patience;
    char padding[PWSP_FALSE_SHARING];
    // Of its AICPU thread.
    pwsp_turn turn;     // the one it runs, or that waits for its block
    uint32_t is_lost;   // atomic
    bool is_busy;       // its task has been given
    bool is_held;       // a vector core: a task of its block has it, or waits for it
    bool has_block;     // a cube core: its task has its vector cores, or waits for them
    uint64_t given_ns;  // if there is a time limit
    uint64_t task_count;
} pwsp_core;

typedef struct pwsp_aicpu {
    struct pwsp_cores *all;
    pwsp_sleeper *sleeper;  // its own, or the host's
    uint32_t index;
    pwsp_patience patience;
    uint32_t round_count;  // with something to do
    uint64_t left_ns;      // until a core exceeds its time limit; 0: never
    pwsp_sleeper own;
    // Its cores by unit: all of them, the free ones, and the busy ones.
    uint32_t *cores, *free_cores[2], *busy_cores;
    uint32_t core_count, free_count[2], busy_count;
    uint32_t *waiting_cores, waiting_count;  // cube cores whose entries wait for their block
    pwsp_turn *picks;                        // one for each of its cores
    pwsp_ready_queue ready;                  // found ready, not yet in the queues of all
    char padding[PWSP_FALSE_SHARING];
} pwsp_aicpu;

typedef struct pwsp_cores_desc {
    uint32_t vector_count, cube_count;  // vector cores come first
    uint32_t aicpu_count;
    bool is_host;                      // the host's thread is AICPU thread 0: it has cores if alone
    bool is_polled;                    // nobody sleeps
    uint32_t spin_count, yield_count;  // rounds of waiting before a sleep
    uint64_t time_limit_ns;            // of a task; 0: none
} pwsp_cores_desc;

typedef struct pwsp_cores {
    pwsp_cores_desc desc;
    pwsp_memory memory;
    uint32_t core_count;
    uint32_t block_count;  // cube_count, if there are two vector cores for each cube core
    pwsp_core *cores;
    pwsp_aicpu *aicpus;
    pwsp_turn *picks;  // of AICPU threads, one after another, as are their lists
    uint32_t *lists;
    pwsp_sleeper host;    // the host sleeps here
    pwsp_mutex host_act;  // held by a thread of the host in a round
    pwsp_mutex mutex;     // protects queues and is_open, and data of the owner's choice
    bool is_open;         // AICPU threads look at queues
    pwsp_core_job job;    // written while no AICPU thread does
    pwsp_ready_links links;
    pwsp_ready_pool pool;  // cores are its workers, and units its pools
    // Atomic, as they are read without the lock: entries of each queue of the pool; those that any core of
    // a unit takes, with stealing also the entries of other cores.
    uint32_t *queue_counts, queued_count[2];

    char padding[PWSP_FALSE_SHARING];
    uint32_t is_over;     // atomic: the run is finished
    uint32_t lost_count;  // atomic: cores that are lost
    char padding_after[PWSP_FALSE_SHARING];
} pwsp_cores;

// False when memory is out; pwsp_cores_free must still be called. Then the owner sets the line of each
// core. The object must not be moved. Called for memory of zeros.
PWSP_INTERNAL bool pwsp_cores_init(pwsp_cores *cores, const pwsp_memory *memory,
                                   const pwsp_cores_desc *desc);
PWSP_INTERNAL void pwsp_cores_free(pwsp_cores *cores);

// Vector core i of a cube core's block.
PWSP_INLINE pwsp_core *pwsp_cores_vector(pwsp_cores *cores, const pwsp_core *cube, uint32_t i) {
    PTOWSP_ASSERT(cube->unit == PTOWSP_UNIT_CUBE && cores->block_count > 0);
    return &cores->cores[pwsp_block_vector(cores->desc.vector_count, cube->index, i)];
}

PWSP_INLINE bool pwsp_core_is_lost(const pwsp_core *core) {
    return pwsp_load_acquire(&core->is_lost) != 0;
}

// -- the host -------------------------------------------------------------------------------------

// Before a run: the job is copied, and nothing is ready. pwsp_cores_ready may follow.
PWSP_INTERNAL void pwsp_cores_prepare(pwsp_cores *cores, const pwsp_core_job *job);

// Puts a ready entry where AICPU threads find it. `by` is the AICPU thread whose done or pass makes
// this call, or PWSP_CORES_NONE for the host.
PWSP_INTERNAL void pwsp_cores_ready(pwsp_cores *cores, uint32_t by, uint32_t entry);

// A round of the host's cores, if it has any; returns whether there was anything to do.
PWSP_INTERNAL bool pwsp_cores_act(pwsp_cores *cores);

// Waits until a word that done and pass change differs from `seen`. Acts meanwhile.
PWSP_INTERNAL void pwsp_cores_await(pwsp_cores *cores, const uint32_t *word, uint32_t seen);

// The run is finished: all entries are done. From any thread.
PWSP_INTERNAL void pwsp_cores_finish(pwsp_cores *cores);
PWSP_INTERNAL void pwsp_cores_wake_all(pwsp_cores *cores);

// -- AICPU threads --------------------------------------------------------------------------------

// Opens the lines of its cores, and waits until they poll; those that do not within a time are lost
// (0: without an end). And closes them.
PWSP_INTERNAL void pwsp_aicpu_open(pwsp_aicpu *aicpu, uint64_t limit_ns);
PWSP_INTERNAL void pwsp_aicpu_close(pwsp_aicpu *aicpu);

// Gives out tasks and takes results until the run is finished.
PWSP_INTERNAL void pwsp_aicpu_serve(pwsp_aicpu *aicpu);

// For rounds (aicpu.c). Under the lock: puts an entry into its queue, and its core's owner into a set
// of AICPU threads, a bit each; takes an entry for a free core, or a part of one.
PWSP_INTERNAL void pwsp_cores_enqueue(pwsp_cores *cores, uint32_t entry, uint32_t *owners);
PWSP_INTERNAL bool pwsp_cores_take(pwsp_cores *cores, const pwsp_core *core, pwsp_turn *out_turn);
// Without the lock: is there an entry for a free core?
PWSP_INTERNAL bool pwsp_cores_has_entry(pwsp_cores *cores, const pwsp_core *core);
// Wakes AICPU threads of a set, and those with free cores for queued entries, from a number on.
PWSP_INTERNAL void pwsp_cores_wake(pwsp_cores *cores, uint32_t owners, uint32_t from);
// A round of an AICPU thread; whether there was anything to do.
PWSP_INTERNAL bool pwsp_aicpu_round(pwsp_aicpu *aicpu);
// Sleeps until there is something for it to do, or for `what`, or until a word differs from `seen`.
PWSP_INTERNAL void pwsp_aicpu_sleep(pwsp_aicpu *aicpu, uint32_t what, const uint32_t *word,
                                    uint32_t seen);

// -- cores made of threads ------------------------------------------------------------------------

// Waits until the line may be used. False if the core must quit at once.
PWSP_INTERNAL bool pwsp_core_open(pwsp_core *core);

// Waits for the next task; returns its address, or 0 if the core must quit.
PWSP_INTERNAL uint64_t pwsp_core_next(pwsp_core *core);

PWSP_INLINE void pwsp_core_wake_aicpu(pwsp_core *core) {
    pwsp_sleeper_wake(core->aicpu->sleeper, PWSP_AWAIT_ANY);
}

// The task has ended, and its result has been written.
PWSP_INLINE void pwsp_core_report(pwsp_core *core) {
    pwsp_core_done(core->line);
    pwsp_core_wake_aicpu(core);
}

// -- waiting --------------------------------------------------------------------------------------

// Waits a little, as pwsp_spin does; false when it is time to sleep. A yield to a program that
// computes, and has nothing to do with these threads, takes its whole slice, which is milliseconds; a
// thread that sleeps is let in when it is called. So after a yield that has taken PWSP_LATE_NS this
// wait and the next ones have none. (Beside eight such programs on its processor, a soak case of
// 0.04 s took 14 s, and takes 0.8 s so.)
#define PWSP_LATE_NS     UINT64_C(200000)
#define PWSP_HURRY_COUNT 256u

PWSP_INTERNAL bool pwsp_cores_spin(const pwsp_cores *cores, pwsp_patience *patience);

// The same after a yield has taken so long.
PWSP_INLINE void pwsp_patience_yielded(pwsp_patience *patience, uint64_t ns) {
    patience->hurry = ns >= PWSP_LATE_NS ? PWSP_HURRY_COUNT : patience->hurry;
}

#endif
