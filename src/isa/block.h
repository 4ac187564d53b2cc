// A block: one cube core and two vector cores that run their halves of a kernel to the end.
//
// Each half is a function that calls instructions on its own core and meets the others in FIFOs
// (fifo.h) alone. Each core has a host thread, and one of the three runs at a time: until it would
// wait for a FIFO, or ends. Then the next that can go on runs. So nothing is shared while it
// changes, and bits, cycles and faults are the same in every run.
//
//      static void cube(ptoisa_block *block, uint32_t who, void *arg) {
//          ptoisa_core *core = block->cores[who];
//          ptoisa_fifo *scores = ptoisa_block_fifo(block, who, PTOISA_C2V, 0, 8192, 2, gm);
//          ...
//          ptoisa_fifo_push(core, scores, 0, &acc, PTOISA_UP_DOWN);
//      }
//
//      ptoisa_core *cores[3] = {&cube_core, &vector_core_0, &vector_core_1};
//      ptoisa_block_run(cores, cube, vector, arg);
//      cycles = ptoisa_block_cycles(cores, 3);
//
// If none of those that are left can go on, that is a fault which names what each waits for. Their
// waits then return, FIFOs do nothing any more, and the halves run to their ends: so on_fault must
// return, and loops must not depend on what was popped.

#ifndef PTOISA_BLOCK_H
#define PTOISA_BLOCK_H

#include "fifo.h"

#include <pthread.h>

#define PTOISA_BLOCK_CORES 3  // the cube core, vector cores 0 and 1

typedef struct ptoisa_block ptoisa_block;

// Half of a kernel: who is 0 on the cube core, 1 and 2 on the vector cores.
typedef void (*ptoisa_half_fn)(ptoisa_block *block, uint32_t who, void *arg);

struct ptoisa_block {
    ptoisa_core *const *cores;
    ptoisa_half_fn cube, vector;
    void *arg;
    // ------------------------------------------------
    ptoisa_fifo fifos[PTOISA_FIFO_FLAGS];    // by flag
    uint8_t opened[PTOISA_FIFO_FLAGS];       // bit n: by core n
    pthread_mutex_t lock;                    // of the fields below
    pthread_cond_t go[PTOISA_BLOCK_CORES];   // a core's turn has come
    uint32_t turn;                           // who runs; nobody at the end
    bool is_done[PTOISA_BLOCK_CORES];        // the half has returned
    ptoisa_fifo *waits[PTOISA_BLOCK_CORES];  // what it waits for
    bool is_push[PTOISA_BLOCK_CORES];
    bool is_stuck;
};

typedef struct ptoisa_block_thread {
    ptoisa_block *block;
    uint32_t who;
} ptoisa_block_thread;

// -- turns ----------------------------------------------------------------------------------------

PTOISA_INLINE const char *ptoisa_block_name(uint32_t who) {
    return who == 0 ? "the cube core" : who == 1 ? "vector core 0" : "vector core 1";
}

PTOISA_INLINE uint32_t ptoisa_block_sub(uint32_t who) {
    return who > 1 ? 1 : 0;
}

PTOISA_FN bool ptoisa_block_can_go(const ptoisa_block *block, uint32_t who) {
    const ptoisa_fifo *fifo = block->waits[who];
    if (block->is_done[who]) {
        return false;
    }
    return !fifo || block->is_stuck ||
           (block->is_push[who] ? ptoisa_fifo_can_push(fifo, ptoisa_block_sub(who))
                                : ptoisa_fifo_can_pop(fifo, ptoisa_block_sub(who)));
}

// Says where a core is, in a fault: that it has ended, or which tile of which FIFO it waits for.
PTOISA_FN void ptoisa_block_where(const ptoisa_block *block, uint32_t who, char *text,
                                  size_t size) {
    const ptoisa_fifo *fifo = block->waits[who];
    uint32_t sub = ptoisa_block_sub(who);
    if (block->is_done[who] || !fifo) {
        snprintf(text, size, "has ended");
    } else if (block->is_push[who]) {
        snprintf(text, size, "waits to push tile %llu of FIFO %u",
                 (unsigned long long)fifo->allocated[sub], fifo->flag);
    } else {
        snprintf(text, size, "waits to pop tile %llu of FIFO %u",
                 (unsigned long long)fifo->popped[sub], fifo->flag);
    }
}

// Gives the turn of `who` to the next that can go on. If there is none, and not all have ended, the
// block is stuck.
PTOISA_FN void ptoisa_block_pass(ptoisa_block *block, uint32_t who) {
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 1; i <= PTOISA_BLOCK_CORES; i++) {
            uint32_t next = (who + i) % PTOISA_BLOCK_CORES;
            if (ptoisa_block_can_go(block, next)) {
                block->turn = next;
                pthread_cond_signal(&block->go[next]);
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
            block->cores[who], PTOISA_NOP,
            "block: no core can go on: the cube core %s, vector core 0 %s, vector core 1 %s",
            where[0], where[1], where[2]);
    }
    block->turn = PTOISA_BLOCK_CORES;
}

PTOISA_FN void ptoisa_block_await(ptoisa_block *block, uint32_t who) {
    while (block->turn != who) {
        pthread_cond_wait(&block->go[who], &block->lock);
    }
}

// The `wait` of a block's FIFOs.
PTOISA_FN bool ptoisa_block_wait(ptoisa_fifo *fifo, ptoisa_core *core, uint32_t sub, bool is_push) {
    ptoisa_block *block = (ptoisa_block *)fifo->wait_user;
    bool is_cube = is_push == (fifo->direction == PTOISA_C2V);
    uint32_t who = is_cube ? 0 : 1 + sub;
    (void)core;
    pthread_mutex_lock(&block->lock);
    if (!block->is_stuck) {
        block->waits[who] = fifo;
        block->is_push[who] = is_push;
        ptoisa_block_pass(block, who);
        ptoisa_block_await(block, who);
        block->waits[who] = NULL;
    }
    bool is_good = !block->is_stuck;
    pthread_mutex_unlock(&block->lock);
    return is_good;
}

// Runs a half when its turn comes, and passes the turn on when it has returned.
PTOISA_FN void ptoisa_block_half(ptoisa_block *block, uint32_t who) {
    pthread_mutex_lock(&block->lock);
    ptoisa_block_await(block, who);
    pthread_mutex_unlock(&block->lock);
    (who == 0 ? block->cube : block->vector)(block, who, block->arg);
    pthread_mutex_lock(&block->lock);
    block->is_done[who] = true;
    ptoisa_block_pass(block, who);
    pthread_mutex_unlock(&block->lock);
}

PTOISA_FN void ptoisa_block_nothing(ptoisa_block *block, uint32_t who, void *arg) {
    (void)block;
    (void)who;
    (void)arg;
}

PTOISA_FN void *ptoisa_block_main(void *arg) {
    ptoisa_block_thread *thread = (ptoisa_block_thread *)arg;
    ptoisa_block_half(thread->block, thread->who);
    return NULL;
}

// -- FIFOs ----------------------------------------------------------------------------------------

// The FIFO of a flag, which the first core that asks for it makes. Each core asks once, and all
// three for the same. NULL after a fault.
PTOISA_FN ptoisa_fifo *ptoisa_block_fifo(ptoisa_block *block, uint32_t who,
                                         ptoisa_direction direction, uint32_t flag,
                                         uint32_t slot_bytes, uint32_t slot_count, void *gm) {
    ptoisa_core *core = block->cores[who];
    ptoisa_fifo *fifo = flag < PTOISA_FIFO_FLAGS ? &block->fifos[flag] : NULL;
    if (fifo && block->opened[flag] != 0) {
        if (block->opened[flag] >> who & 1) {
            ptoisa_fault(core, PTOISA_NOP, "TPIPE: %s has FIFO %u already", ptoisa_block_name(who),
                         flag);
            return NULL;
        }
        if (fifo->direction != direction || fifo->slot_bytes != slot_bytes ||
            fifo->slot_count != slot_count || fifo->gm != (uint8_t *)gm) {
            ptoisa_fault(core, PTOISA_NOP,
                         "TPIPE: FIFO %u is %u x %u bytes, %s, at %p; on %s %u x %u, %s, at %p",
                         flag, fifo->slot_count, fifo->slot_bytes,
                         ptoisa_direction_name(fifo->direction), (void *)fifo->gm,
                         ptoisa_block_name(who), slot_count, slot_bytes,
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
    block->opened[flag] = (uint8_t)(block->opened[flag] | 1u << who);
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
    for (uint32_t who = 0; who < PTOISA_BLOCK_CORES; who++) {
        if (ptoisa_block_strange(block->cores[who], who == 0) != strange[who]) {
            is_good = ptoisa_fault(block->cores[who], PTOISA_NOP,
                                   "block: %s ran an instruction of the %s's pipes",
                                   ptoisa_block_name(who), who == 0 ? "vector core" : "cube core");
        }
    }
    return is_good;
}

// Runs `cube` on cores[0] and `vector` on cores[1] and cores[2], with `arg`. The cores are the
// caller's, with clocks of one time. False after a fault of the block: no thread, a deadlock,
// something left in a FIFO; faults of instructions are the core's alone.
PTOISA_FN bool ptoisa_block_run(ptoisa_core *const cores[PTOISA_BLOCK_CORES], ptoisa_half_fn cube,
                                ptoisa_half_fn vector, void *arg) {
    ptoisa_block block;
    ptoisa_block_thread threads[PTOISA_BLOCK_CORES];
    pthread_t ids[PTOISA_BLOCK_CORES];
    uint64_t strange[PTOISA_BLOCK_CORES];
    memset(&block, 0, sizeof block);
    block.cores = cores;
    block.cube = cube;
    block.vector = vector;
    block.arg = arg;
    pthread_mutex_init(&block.lock, NULL);
    for (uint32_t who = 0; who < PTOISA_BLOCK_CORES; who++) {
        pthread_cond_init(&block.go[who], NULL);
        threads[who].block = &block;
        threads[who].who = who;
        strange[who] = ptoisa_block_strange(cores[who], who == 0);
    }
    bool is_good = true;
    for (uint32_t who = 1; who < PTOISA_BLOCK_CORES && is_good; who++) {
        is_good = pthread_create(&ids[who], NULL, ptoisa_block_main, &threads[who]) == 0;
        if (!is_good && who == 2) {  // the other waits for its turn: its half is then nothing
            pthread_mutex_lock(&block.lock);
            block.vector = ptoisa_block_nothing;
            block.is_done[0] = block.is_done[2] = true;
            block.turn = 1;
            pthread_cond_signal(&block.go[1]);
            pthread_mutex_unlock(&block.lock);
            pthread_join(ids[1], NULL);
        }
    }
    if (is_good) {
        ptoisa_block_half(&block, 0);
        pthread_join(ids[1], NULL);
        pthread_join(ids[2], NULL);
        is_good = !block.is_stuck && ptoisa_block_finish(&block, strange);
    } else {
        ptoisa_fault(cores[0], PTOISA_NOP, "block: no thread for a core");
    }
    for (uint32_t who = 0; who < PTOISA_BLOCK_CORES; who++) {
        pthread_cond_destroy(&block.go[who]);
    }
    pthread_mutex_destroy(&block.lock);
    return is_good;
}

#endif
