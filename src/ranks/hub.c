// Transports over memory: of this process, or shared with its children.
//
// Each ordered pair of ranks has a ring of bytes with one writer and one reader, so there is no
// lock. A message is a head of 16 bytes (tag, size) and its bytes. It may be longer than the ring:
// both sides transfer what fits whenever they are tested.
//
//      ring   taken ....... put                 positions never fall; byte i is at i % ring_bytes
//      put    written by the writer, release: pairs with the reader's acquire
//      taken  written by the reader, release: pairs with the writer's acquire
//
// A process that is killed says nothing. So a rank that waits for another process looks, now and
// then, whether it is still there: in /proc, where there is one, as a dead child that nobody has
// waited for still takes signals. Elsewhere time limits find it.
//
// Shared memory holds no pointers. It has no name, so it ends with the last process that maps it.

#include "../base/atomic.h"
#include "../base/processors.h"
#include "ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PWSP_HUB_HEAD 16

enum { PWSP_HUB_OPEN = 0, PWSP_HUB_ENDED = 1 };

// Shared by ranks: this, followed by the rings.
typedef struct pwsp_hub_board {
    PWSP_ALIGNAS(8) uint32_t failed;  // atomic: rank + 1 of one that has failed
    char padding[PWSP_FALSE_SHARING];
    uint32_t states[PTOWSP_HUB_RANK_MAX];     // atomic
    uint32_t processes[PTOWSP_HUB_RANK_MAX];  // atomic: ids, or 0; of a hub that is shared
} pwsp_hub_board;

typedef struct pwsp_hub_ring {
    PWSP_ALIGNAS(8) uint64_t put;  // atomic
    char padding[PWSP_FALSE_SHARING - 8];
    uint64_t taken;  // atomic
    char padding_after[PWSP_FALSE_SHARING - 8];
} pwsp_hub_ring;

// A send or a receive under way.
typedef struct pwsp_hub_transfer {
    bool is_active;
    char *data;
    uint64_t capacity;
    uint64_t head[2];     // tag, size
    uint64_t moved;       // bytes, of the head first
    uint32_t idle_count;  // tests since something was moved
    uint64_t looked_ns;   // when the peer's process was looked at last
} pwsp_hub_transfer;

typedef struct pwsp_hub_end {
    struct ptowsp_hub *hub;
    uint32_t rank;
    pwsp_hub_transfer *transfers[2];  // receives, sends: by peer
} pwsp_hub_end;

struct ptowsp_hub {
    ptowsp_context *context;
    uint32_t rank_count, ring_bytes;
    bool is_shared;
    size_t board_size;
    pwsp_hub_board *board;
    char *rings;
    pwsp_hub_end ends[PTOWSP_HUB_RANK_MAX];
    // Behind it the transfers.
};

static pwsp_hub_ring *pwsp_hub_ring_of(const ptowsp_hub *hub, uint32_t from, uint32_t to) {
    const size_t size = sizeof(pwsp_hub_ring) + hub->ring_bytes;
    return (pwsp_hub_ring *)(void *)(hub->rings + ((size_t)from * hub->rank_count + to) * size);
}

// -- moving bytes ---------------------------------------------------------------------------------

// Copies between a ring, at a position, and memory.
static void pwsp_hub_copy(const ptowsp_hub *hub, pwsp_hub_ring *ring, uint64_t position, char *data,
                          uint64_t size, bool is_put) {
    char *bytes = (char *)(ring + 1);
    const uint64_t at = position & (hub->ring_bytes - 1);
    const uint64_t first = pwsp_min_u64(size, hub->ring_bytes - at);
    if (is_put) {
        memcpy(bytes + at, data, (size_t)first);
        memcpy(bytes, data + first, (size_t)(size - first));
    } else {
        memcpy(data, bytes + at, (size_t)first);
        memcpy(data + first, bytes, (size_t)(size - first));
    }
}

// Transfers as many of the bytes [begin, end) of a message, at data, as possible.
static void pwsp_hub_move_part(const ptowsp_hub *hub, pwsp_hub_ring *ring, uint64_t *position,
                               uint64_t *room, pwsp_hub_transfer *t, uint64_t begin, uint64_t end,
                               char *data, bool is_put) {
    if (t->moved >= begin && t->moved<end && * room> 0) {
        const uint64_t size = pwsp_min_u64(*room, end - t->moved);
        pwsp_hub_copy(hub, ring, *position, data + (t->moved - begin), size, is_put);
        *position += size;
        *room -= size;
        t->moved += size;
    }
}

// Moves a transfer on. False: the message does not fit.
static bool pwsp_hub_move(const ptowsp_hub *hub, pwsp_hub_ring *ring, pwsp_hub_transfer *t,
                          bool is_put) {
    uint64_t put = is_put ? pwsp_load_relaxed(&ring->put) : pwsp_load_acquire(&ring->put);
    uint64_t taken = is_put ? pwsp_load_acquire(&ring->taken) : pwsp_load_relaxed(&ring->taken);
    uint64_t room = is_put ? hub->ring_bytes - (put - taken) : put - taken;
    uint64_t *position = is_put ? &put : &taken;
    PTOWSP_ASSERT(put - taken <= hub->ring_bytes);
    pwsp_hub_move_part(hub, ring, position, &room, t, 0, PWSP_HUB_HEAD, (char *)t->head, is_put);
    const bool fits = t->moved < PWSP_HUB_HEAD || t->head[1] <= t->capacity;
    if (t->moved >= PWSP_HUB_HEAD && fits) {
        pwsp_hub_move_part(hub, ring, position, &room, t, PWSP_HUB_HEAD, PWSP_HUB_HEAD + t->head[1],
                           t->data, is_put);
    }
    if (is_put) {
        pwsp_store_release(&ring->put, put);
    } else {
        pwsp_store_release(&ring->taken, taken);
    }
    return fits;
}

static bool pwsp_hub_is_done(const pwsp_hub_transfer *t) {
    return t->moved >= PWSP_HUB_HEAD && t->moved - PWSP_HUB_HEAD == t->head[1];
}

// -- processes that are gone ----------------------------------------------------------------------

#define PWSP_HUB_LOOK_TESTS 64
#define PWSP_HUB_LOOK_NS    UINT64_C(10000000)

// Reads the beginning of /proc/PID/stat, "PID (NAME) STATE ...". False, and an empty text, if it
// cannot be read; *out_is_none then tells whether the process is missing.
static bool pwsp_hub_read_stat(uint32_t process, char *stat, size_t size, bool *out_is_none) {
    const int wrong = pwsp_system_read(stat, size, "/proc/%" PRIu32 "/stat", process);
    *out_is_none = wrong == ENOENT || wrong == ESRCH;
    return stat[0] != '\0';
}

// Is the process that had a rank gone? Where this one is not in /proc, nothing can be told.
static bool pwsp_hub_is_gone(uint32_t process) {
    char stat[256];
    bool is_none, is_own_none;
    if (!pwsp_hub_read_stat(process, stat, sizeof stat, &is_none)) {
        return is_none && pwsp_hub_read_stat((uint32_t)getpid(), stat, sizeof stat, &is_own_none);
    }
    const char *field = strrchr(stat, ')');
    if (!field || field[1] != ' ' || (field[2] != 'Z' && field[2] != 'X')) {
        return false;
    }
    // A main thread that has ended is a zombie, too, while others run: num_threads is the 20th field.
    for (uint32_t i = 2; field && i < 20; i++) {
        field = strchr(field + 1, ' ');
    }
    return field && strtoul(field, NULL, 10) <= 1;
}

// The same of a peer, looked at every 10 ms while nothing moves.
static bool pwsp_hub_has_lost(const ptowsp_hub *hub, pwsp_hub_transfer *t, uint32_t peer) {
    const uint32_t process = pwsp_load_relaxed(&hub->board->processes[peer]);
    if (process == 0 || ++t->idle_count % PWSP_HUB_LOOK_TESTS) {
        return false;
    }
    const uint64_t now = ptowsp_clock_ns();
    if (now - t->looked_ns < PWSP_HUB_LOOK_NS) {
        return false;
    }
    t->looked_ns = now;
    return pwsp_hub_is_gone(process);
}

// -- the five functions ---------------------------------------------------------------------------

static ptowsp_status pwsp_hub_send(void *user, uint32_t peer, uint64_t tag, const void *data,
                                   uint64_t size) {
    pwsp_hub_end *end = (pwsp_hub_end *)user;
    pwsp_hub_transfer *t = &end->transfers[1][peer];
    PTOWSP_ASSERT(!t->is_active && peer != end->rank);
    memset(t, 0, sizeof *t);
    t->is_active = true;
    memcpy(&t->data, &data, sizeof t->data);  // it is only read
    t->capacity = size;
    t->head[0] = tag;
    t->head[1] = size;
    return PTOWSP_OK;
}

static ptowsp_status pwsp_hub_receive(void *user, uint32_t peer, void *data, uint64_t capacity) {
    pwsp_hub_end *end = (pwsp_hub_end *)user;
    pwsp_hub_transfer *t = &end->transfers[0][peer];
    PTOWSP_ASSERT(!t->is_active && peer != end->rank);
    memset(t, 0, sizeof *t);
    t->is_active = true;
    t->data = (char *)data;
    t->capacity = capacity;
    return PTOWSP_OK;
}

static ptowsp_status pwsp_hub_test(void *user, uint32_t peer, bool is_send, bool *out_is_done,
                                   uint64_t *out_tag, uint64_t *out_size) {
    pwsp_hub_end *end = (pwsp_hub_end *)user;
    const ptowsp_hub *hub = end->hub;
    pwsp_hub_transfer *t = &end->transfers[is_send][peer];
    PTOWSP_ASSERT(t->is_active);
    *out_is_done = false;
    // Before the ring is looked at, so that all that the peer has sent is seen.
    const bool has_ended = pwsp_load_acquire(&hub->board->states[peer]) != PWSP_HUB_OPEN ||
                           pwsp_load_acquire(&hub->board->failed) != 0;
    pwsp_hub_ring *ring =
        is_send ? pwsp_hub_ring_of(hub, end->rank, peer) : pwsp_hub_ring_of(hub, peer, end->rank);
    bool is_good = pwsp_hub_move(hub, ring, t, is_send), is_lost = false;
    if (is_good && !pwsp_hub_is_done(t) && pwsp_hub_has_lost(hub, t, peer)) {
        is_lost = true;  // but perhaps it has sent all before it ended
        is_good = pwsp_hub_move(hub, ring, t, is_send);
    }
    if (!is_good) {
        return PTOWSP_BUFFER_OVERFLOW;
    }
    if (pwsp_hub_is_done(t)) {
        *out_is_done = true;
        *out_tag = t->head[0];
        *out_size = t->head[1];
        t->is_active = false;
        return PTOWSP_OK;
    }
    return has_ended || is_lost ? PTOWSP_RANK_FAILED : PTOWSP_OK;
}

static void pwsp_hub_cancel(void *user, uint32_t peer, bool is_send) {
    ((pwsp_hub_end *)user)->transfers[is_send][peer].is_active = false;
}

// In a child of the process that owns the rank it does nothing: the rank continues.
static void pwsp_hub_close(void *user, bool has_failed) {
    pwsp_hub_end *end = (pwsp_hub_end *)user;
    pwsp_hub_board *board = end->hub->board;
    if (end->hub->is_shared &&
        pwsp_load_acquire(&board->processes[end->rank]) != (uint32_t)getpid()) {
        return;
    }
    if (has_failed) {
        pwsp_store_release(&board->failed, end->rank + 1);
    }
    pwsp_store_release(&board->states[end->rank], (uint32_t)PWSP_HUB_ENDED);
}

// -- hubs -----------------------------------------------------------------------------------------

// Zeroed memory shared with children of this process; NULL if unavailable. Strict C11 may hide
// MAP_ANONYMOUS; mapping /dev/zero is equivalent.
static void *pwsp_hub_map(size_t size) {
#if defined(MAP_ANONYMOUS)
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
#else
    const int file = open("/dev/zero", O_RDWR);
    void *memory =
        file < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0) {
        close(file);
    }
#endif
    return memory == MAP_FAILED ? NULL : memory;
}

static size_t pwsp_hub_bytes(uint32_t rank_count) {
    return sizeof(ptowsp_hub) + (size_t)rank_count * rank_count * 2 * sizeof(pwsp_hub_transfer);
}

ptowsp_status ptowsp_hub_create(ptowsp_context *context, const ptowsp_hub_desc *desc,
                                ptowsp_hub **out_hub) {
    PTOWSP_ASSERT(context);
    if (out_hub) {
        *out_hub = NULL;
    }
    const uint32_t bytes = desc && desc->ring_bytes ? desc->ring_bytes : 65536;
    if (!desc || !out_hub || desc->rank_count == 0 || desc->rank_count > PTOWSP_HUB_RANK_MAX ||
        bytes < 64 || bytes > UINT32_C(1) << 30 || (bytes & (bytes - 1))) {
        return pwsp_ranks_fail(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                               "hub of %" PRIu32 " ranks, rings of %" PRIu32 " bytes: it has 1 to "
                               "%d ranks, and rings of a power of two from 64 bytes to 2^30",
                               desc ? desc->rank_count : 0, bytes, PTOWSP_HUB_RANK_MAX);
    }
    const uint64_t p = desc->rank_count;
    const uint64_t board = sizeof(pwsp_hub_board) + p * p * (sizeof(pwsp_hub_ring) + bytes);
    ptowsp_hub *hub = NULL;
    void *memory = NULL;
    if (board <= SIZE_MAX / 2) {
        hub = (ptowsp_hub *)pwsp_memory_alloc(&context->memory, pwsp_hub_bytes(desc->rank_count));
        memory = !hub              ? NULL
                 : desc->is_shared ? pwsp_hub_map((size_t)board)
                                   : pwsp_memory_alloc(&context->memory, (size_t)board);
    }
    if (!memory) {
        const bool is_system = hub && desc->is_shared;
        pwsp_memory_free(&context->memory, hub, hub ? pwsp_hub_bytes(desc->rank_count) : 0);
        return pwsp_ranks_fail(context, is_system ? PTOWSP_SYSTEM_FAILED : PTOWSP_OUT_OF_MEMORY,
                               PTOWSP_NO_INDEX, "hub: no memory of %" PRIu64 " bytes", board);
    }
    hub->context = context;
    hub->rank_count = desc->rank_count;
    hub->ring_bytes = bytes;
    hub->is_shared = desc->is_shared;
    hub->board_size = (size_t)board;
    hub->board = (pwsp_hub_board *)memory;
    hub->rings = (char *)(hub->board + 1);
    pwsp_hub_transfer *transfers = (pwsp_hub_transfer *)(void *)(hub + 1);
    for (uint32_t i = 0; i < desc->rank_count; i++) {
        hub->ends[i].hub = hub;
        hub->ends[i].rank = i;
        hub->ends[i].transfers[0] = transfers + (size_t)(2 * i) * desc->rank_count;
        hub->ends[i].transfers[1] = transfers + (size_t)(2 * i + 1) * desc->rank_count;
    }
    pwsp_context_own(context);
    *out_hub = hub;
    return PTOWSP_OK;
}

void ptowsp_hub_destroy(ptowsp_hub *hub) {
    if (!hub) {
        return;
    }
    ptowsp_context *context = hub->context;
    if (hub->is_shared) {
        munmap(hub->board, hub->board_size);
    } else {
        pwsp_memory_free(&context->memory, hub->board, hub->board_size);
    }
    pwsp_memory_free(&context->memory, hub, pwsp_hub_bytes(hub->rank_count));
    pwsp_context_disown(context);
}

ptowsp_transport ptowsp_hub_transport(ptowsp_hub *hub, uint32_t rank) {
    PTOWSP_ASSERT(hub);
    PTOWSP_ASSERT(rank < hub->rank_count);
    if (hub->is_shared) {
        pwsp_store_release(&hub->board->processes[rank], (uint32_t)getpid());
    }
    ptowsp_transport transport = {&hub->ends[rank], pwsp_hub_send,   pwsp_hub_receive,
                                  pwsp_hub_test,    pwsp_hub_cancel, pwsp_hub_close};
    return transport;
}
