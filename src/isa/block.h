// A block: one cube core and two vector cores that run their halves of a kernel to the end.
//
// Each half is a function that calls instructions on its own core and communicates with the others
// through FIFOs (fifo.h) alone. Each core has a host thread, and one of the three runs at a time,
// until it would wait for a FIFO or ends. Then the next core that can proceed runs. So nothing is
// shared while it changes, and bits, cycles and faults are the same in every run.
//
// The cube core runs on the calling thread. The threads of vector cores are a crew, which a thread
// that runs many blocks keeps (ptoisa_crew_run): making threads costs more than most blocks.
//
//      static void cube(ptoisa_block *block, uint32_t core_index, void *arg) {
//          ptoisa_core *core = block->cores[core_index];
//          ptoisa_fifo *scores = ptoisa_block_fifo(block, core_index, PTOISA_C2V, 0, 8192, 2, gm);
//          ...
//          ptoisa_fifo_push(core, scores, 0, &acc, PTOISA_UP_DOWN);
//      }
//
//      ptoisa_core *cores[3] = {&cube_core, &vector_core_0, &vector_core_1};
//      ptoisa_block_run(cores, cube, vector, arg);
//      cycles = ptoisa_block_cycles(cores, 3);
//
// If no remaining core can proceed, that is a fault which names the wait of each. Their waits
// then return, FIFOs do nothing, and the halves run to their ends: so on_fault must return, and
// loops must not depend on popped data.

#ifndef PTOISA_BLOCK_H
#define PTOISA_BLOCK_H

#include "fifo.h"

#include <pthread.h>
#include <unistd.h>

#define PTOISA_BLOCK_CORES 3  // the cube core, vector cores 0 and 1

typedef struct ptoisa_block ptoisa_block;

// Half of a kernel, as one core runs it. core_index: 0 the cube core, 1 and 2 the vector cores.
typedef void (*ptoisa_half_fn)(ptoisa_block *block, uint32_t core_index, void *arg);

typedef struct ptoisa_crew ptoisa_crew;

typedef struct ptoisa_crew_thread {
    ptoisa_crew *crew;
    uint32_t core_index;
} ptoisa_crew_thread;

// Two threads that are vector cores, for one block after another; zeros: none yet.
struct ptoisa_crew {
    pthread_mutex_t lock;                   // of all below, and of the block's turns
    pthread_cond_t go[PTOISA_BLOCK_CORES];  // a core's turn has come, or the crew's end
    pthread_t ids[PTOISA_BLOCK_CORES];
    ptoisa_crew_thread threads[PTOISA_BLOCK_CORES];
    pid_t process;  // that they are threads of
    bool is_there, is_over;
    ptoisa_block *block;  // that runs
};

struct ptoisa_block {
    ptoisa_crew *crew;
    ptoisa_core *const *cores;
    ptoisa_half_fn cube, vector;
    void *arg;
    // ------------------------------------------------
    ptoisa_fifo fifos[PTOISA_FIFO_FLAGS];    // by flag
    uint8_t opened[PTOISA_FIFO_FLAGS];       // bit n: by core n
    uint32_t turn;                           // index of the core that runs
    bool is_done[PTOISA_BLOCK_CORES];        // the half has returned
    ptoisa_fifo *waits[PTOISA_BLOCK_CORES];  // the FIFO it waits for
    bool is_push[PTOISA_BLOCK_CORES];
    bool is_stuck;
};

// -- turns ----------------------------------------------------------------------------------------

PTOISA_INLINE const char *ptoisa_block_name(uint32_t core_index) {
    return core_index == 0 ? "the cube core" : core_index == 1 ? "vector core 0" : "vector core 1";
}

PTOISA_INLINE uint32_t ptoisa_block_sub(uint32_t core_index) {
    return core_index > 1 ? 1 : 0;
}

PTOISA_FN bool ptoisa_block_can_go(const ptoisa_block *block, uint32_t core_index) {
    const ptoisa_fifo *fifo = block->waits[core_index];
    if (block->is_done[core_index]) {
        return false;
    }
    return !fifo || block->is_stuck ||
           (block->is_push[core_index] ? ptoisa_fifo_can_push(fifo, ptoisa_block_sub(core_index))
                                       : ptoisa_fifo_can_pop(fifo, ptoisa_block_sub(core_index)));
}

// Describes the state of a core in a fault: ended, or waiting for a tile of a FIFO.
PTOISA_FN void ptoisa_block_where(const ptoisa_block *block, uint32_t core_index, char *text,
                                  size_t size) {
    const ptoisa_fifo *fifo = block->waits[core_index];
    uint32_t sub = ptoisa_block_sub(core_index);
    if (block->is_done[core_index] || !fifo) {
        snprintf(text, size, "has ended");
    } else if (block->is_push[core_index]) {
        snprintf(text, size, "waits to push tile %llu of FIFO %u",
                 (unsigned long long)fifo->allocated[sub], fifo->flag);
    } else {
        snprintf(text, size, "waits to pop tile %llu of FIFO %u",
                 (unsigned long long)fifo->popped[sub], fifo->flag);
    }
}

// Passes the turn from a core to the next that can proceed. Without one, and unless all have ended,
// the block is stuck.
PTOISA_FN void ptoisa_block_pass(ptoisa_block *block, uint32_t core_index) {
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 1; i <= PTOISA_BLOCK_CORES; i++) {
            uint32_t next = (core_index + i) % PTOISA_BLOCK_CORES;
            if (ptoisa_block_can_go(block, next)) {
                block->turn = next;
                pthread_cond_signal(&block->crew->go[next]);
                return;
            }
        }
        if (block->is_done[0] && block->is_done[1] && block->is_done[2]) {
            break;
        }
        char where[PTOISA_BLOCK_CORES][64];
        for (uint32_t i = 0; i < PTOISA_BLOCK_CORES; i++) {
            ptoisa_block_where(block, i, where[i], sizeof where[i]);
        }
        block->is_stuck = true;
        ptoisa_fault(
            block->cores[core_index], PTOISA_NOP,
            "block: no core can go on: the cube core %s, vector core 0 %s, vector core 1 %s",
            where[0], where[1], where[2]);
    }
    block->turn = PTOISA_BLOCK_CORES;  // all have ended, for which the cube core's thread waits
    pthread_cond_signal(&block->crew->go[0]);
}

// Waits until it is a core's turn; PTOISA_BLOCK_CORES: until all have ended, on the cube core's thread.
PTOISA_FN void ptoisa_block_await(ptoisa_block *block, uint32_t core_index) {
    uint32_t thread = core_index % PTOISA_BLOCK_CORES;
    while (block->turn != core_index) {
        pthread_cond_wait(&block->crew->go[thread], &block->crew->lock);
    }
}

// The `wait` of a block's FIFOs.
PTOISA_FN bool ptoisa_block_wait(ptoisa_fifo *fifo, ptoisa_core *core, uint32_t sub, bool is_push) {
    ptoisa_block *block = (ptoisa_block *)fifo->wait_user;
    bool is_cube = is_push == (fifo->direction == PTOISA_C2V);
    uint32_t core_index = is_cube ? 0 : 1 + sub;
    (void)core;
    pthread_mutex_lock(&block->crew->lock);
    if (!block->is_stuck) {
        block->waits[core_index] = fifo;
        block->is_push[core_index] = is_push;
        ptoisa_block_pass(block, core_index);
        ptoisa_block_await(block, core_index);
        block->waits[core_index] = NULL;
    }
    bool is_good = !block->is_stuck;
    pthread_mutex_unlock(&block->crew->lock);
    return is_good;
}

// Runs a half, whose turn it is, and passes the turn on when it has returned. The crew is locked, but
// not meanwhile.
PTOISA_FN void ptoisa_block_half(ptoisa_block *block, uint32_t core_index) {
    ptoisa_crew *crew = block->crew;
    pthread_mutex_unlock(&crew->lock);
    (core_index == 0 ? block->cube : block->vector)(block, core_index, block->arg);
    pthread_mutex_lock(&crew->lock);
    block->is_done[core_index] = true;
    ptoisa_block_pass(block, core_index);
}

// -- crews ----------------------------------------------------------------------------------------

PTOISA_FN void *ptoisa_crew_main(void *arg) {
    ptoisa_crew_thread *thread = (ptoisa_crew_thread *)arg;
    ptoisa_crew *crew = thread->crew;
    uint32_t core_index = thread->core_index;
    pthread_mutex_lock(&crew->lock);
    while (!crew->is_over) {
        if (crew->block && crew->block->turn == core_index && !crew->block->is_done[core_index]) {
            ptoisa_block_half(crew->block, core_index);
        } else {
            pthread_cond_wait(&crew->go[core_index], &crew->lock);
        }
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

// Ends so many threads of a crew, the last ones that were made; and the crew.
PTOISA_FN void ptoisa_crew_end_some(ptoisa_crew *crew, uint32_t count) {
    pthread_mutex_lock(&crew->lock);
    crew->is_over = true;
    for (uint32_t i = 0; i < PTOISA_BLOCK_CORES; i++) {
        pthread_cond_signal(&crew->go[i]);
    }
    pthread_mutex_unlock(&crew->lock);
    for (uint32_t i = 1; i <= count; i++) {
        pthread_join(crew->ids[i], NULL);
    }
    for (uint32_t i = 0; i < PTOISA_BLOCK_CORES; i++) {
        pthread_cond_destroy(&crew->go[i]);
    }
    pthread_mutex_destroy(&crew->lock);
    memset(crew, 0, sizeof *crew);
}

// Ends a crew's threads, if it has any. In a process that was forked it has none any more.
PTOISA_FN void ptoisa_crew_end(ptoisa_crew *crew) {
    if (crew->is_there && crew->process == getpid()) {
        ptoisa_crew_end_some(crew, PTOISA_BLOCK_CORES - 1);
    }
}

// Makes a crew's threads, if it has none. False: a thread could not be made.
PTOISA_FN bool ptoisa_crew_begin(ptoisa_crew *crew) {
    if (crew->is_there && crew->process == getpid()) {
        return true;
    }
    memset(crew, 0, sizeof *crew);
    crew->process = getpid();
    pthread_mutex_init(&crew->lock, NULL);
    for (uint32_t i = 0; i < PTOISA_BLOCK_CORES; i++) {
        pthread_cond_init(&crew->go[i], NULL);
        crew->threads[i].crew = crew;
        crew->threads[i].core_index = i;
    }
    for (uint32_t i = 1; i < PTOISA_BLOCK_CORES; i++) {
        if (pthread_create(&crew->ids[i], NULL, ptoisa_crew_main, &crew->threads[i]) != 0) {
            ptoisa_crew_end_some(crew, i - 1);
            return false;
        }
    }
    crew->is_there = true;
    return true;
}

// -- FIFOs ----------------------------------------------------------------------------------------

// The FIFO of a flag, which the first core that asks for it makes. Each core asks once, and all
// three for the same. NULL after a fault.
PTOISA_FN ptoisa_fifo *ptoisa_block_fifo(ptoisa_block *block, uint32_t core_index,
                                         ptoisa_direction direction, uint32_t flag,
                                         uint32_t slot_bytes, uint32_t slot_count, void *gm) {
    ptoisa_core *core = block->cores[core_index];
    ptoisa_fifo *fifo = flag < PTOISA_FIFO_FLAGS ? &block->fifos[flag] : NULL;
    if (fifo && block->opened[flag] != 0) {
        if (block->opened[flag] >> core_index & 1) {
            ptoisa_fault(core, PTOISA_NOP, "TPIPE: %s has FIFO %u already",
                         ptoisa_block_name(core_index), flag);
            return NULL;
        }
        if (fifo->direction != direction || fifo->slot_bytes != slot_bytes ||
            fifo->slot_count != slot_count || fifo->gm != (uint8_t *)gm) {
            ptoisa_fault(core, PTOISA_NOP,
                         "TPIPE: FIFO %u is %u x %u bytes, %s, at %p; on %s %u x %u, %s, at %p",
                         flag, fifo->slot_count, fifo->slot_bytes,
                         ptoisa_direction_name(fifo->direction), (void *)fifo->gm,
                         ptoisa_block_name(core_index), slot_count, slot_bytes,
                         ptoisa_direction_name(direction), gm);
            return NULL;
        }
    } else {
        ptoisa_fifo made;
        if (!ptoisa_fifo_init(core, &made, direction, flag, slot_bytes, slot_count, gm, 0)) {
            return NULL;
        }
        if (block->opened[flag + 1] != 0 || (flag > 0 && block->opened[flag - 1] != 0)) {
            ptoisa_fault(core, PTOISA_NOP, "TPIPE: flag %u or %u is another FIFO's", flag,
                         flag + 1);
            return NULL;
        }
        *fifo = made;
        fifo->wait = ptoisa_block_wait;
        fifo->wait_user = block;
    }
    block->opened[flag] = (uint8_t)(block->opened[flag] | 1u << core_index);
    return fifo;
}

// -- running --------------------------------------------------------------------------------------

// Cycles of pipes that the half's core does not have on a device.
PTOISA_FN uint64_t ptoisa_block_strange(const ptoisa_core *core, bool is_cube) {
    return is_cube ? core->busy[PTOISA_PIPE_V]
                   : core->busy[PTOISA_PIPE_M] + core->busy[PTOISA_PIPE_MTE1] +
                         core->busy[PTOISA_PIPE_FIX];
}

// At the end: is nothing left in FIFOs, and did each half run its own instructions only?
PTOISA_FN bool ptoisa_block_finish(const ptoisa_block *block, const uint64_t *strange) {
    bool is_good = true;
    for (int flag = 0; flag < PTOISA_FIFO_FLAGS; flag++) {
        is_good = (block->opened[flag] == 0 ||
                   ptoisa_fifo_finish(block->cores[0], &block->fifos[flag])) &&
                  is_good;
    }
    for (uint32_t core_index = 0; core_index < PTOISA_BLOCK_CORES; core_index++) {
        if (ptoisa_block_strange(block->cores[core_index], core_index == 0) !=
            strange[core_index]) {
            is_good = ptoisa_fault(block->cores[core_index], PTOISA_NOP,
                                   "block: %s ran an instruction of the %s's pipes",
                                   ptoisa_block_name(core_index),
                                   core_index == 0 ? "vector core" : "cube core");
        }
    }
    return is_good;
}

// Runs `cube` on cores[0] and `vector` on cores[1] and cores[2], with `arg`. The cores are the
// caller's, with clocks of one time. False after a fault of the block: no thread, a deadlock,
// something left in a FIFO; faults of instructions are the core's alone.
PTOISA_FN bool ptoisa_crew_run(ptoisa_crew *crew, ptoisa_core *const cores[PTOISA_BLOCK_CORES],
                               ptoisa_half_fn cube, ptoisa_half_fn vector, void *arg) {
    ptoisa_block block;
    uint64_t strange[PTOISA_BLOCK_CORES];
    if (!ptoisa_crew_begin(crew)) {
        return ptoisa_fault(cores[0], PTOISA_NOP, "block: no thread for a core");
    }
    memset(&block, 0, sizeof block);
    block.crew = crew;
    block.cores = cores;
    block.cube = cube;
    block.vector = vector;
    block.arg = arg;
    for (uint32_t core_index = 0; core_index < PTOISA_BLOCK_CORES; core_index++) {
        strange[core_index] = ptoisa_block_strange(cores[core_index], core_index == 0);
    }
    pthread_mutex_lock(&crew->lock);
    crew->block = &block;
    ptoisa_block_half(&block, 0);
    ptoisa_block_await(&block, PTOISA_BLOCK_CORES);
    crew->block = NULL;
    pthread_mutex_unlock(&crew->lock);
    return !block.is_stuck && ptoisa_block_finish(&block, strange);
}

// The same with threads that are made for this block.
PTOISA_FN bool ptoisa_block_run(ptoisa_core *const cores[PTOISA_BLOCK_CORES], ptoisa_half_fn cube,
                                ptoisa_half_fn vector, void *arg) {
    ptoisa_crew crew;
    memset(&crew, 0, sizeof crew);
    bool is_good = ptoisa_crew_run(&crew, cores, cube, vector, arg);
    ptoisa_crew_end(&crew);
    return is_good;
}

#endif
