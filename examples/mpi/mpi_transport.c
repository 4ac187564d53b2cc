// Messages over MPI; see mpi_transport.h.
//
//      a message       64-bit words: tag, size in bytes, data; MPI's tag is DATA
//      a farewell      one word: has the rank failed? MPI's tag is FAREWELL
//
// MPI keeps the order of a pair's messages. So whoever closes takes from each peer whatever comes
// before its farewell, and nothing is left in the network.

#include "mpi_transport.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { DATA = 1, FAREWELL = 2, HEAD = 2 };

// One direction of a pair.
typedef struct way {
    uint64_t *words;
    uint64_t capacity;  // in words
    MPI_Request request;
    void *data;  // where a received message goes
} way;

typedef struct mpi_transport {
    MPI_Comm comm;
    int rank, rank_count;
    bool is_funneled;  // MPI is called by its main thread alone
    bool has_failed;   // a peer
    bool *has_ended;   // by peer
    way *ways;         // by peer: receiving, sending
} mpi_transport;

// Does MPI let the calling thread call it? These two functions may always be called.
static bool may_call(bool is_funneled) {
    int is_main = 1;
    if (is_funneled) {
        MPI_Is_thread_main(&is_main);
    }
    return is_main;
}

static way *way_of(mpi_transport *t, uint32_t peer, bool is_send) {
    return &t->ways[2 * peer + is_send];
}

// Makes room for a message of so many bytes; returns its words, or 0 with an error.
static int way_reserve(way *w, uint64_t size, ptowsp_status *out_status) {
    const uint64_t words = HEAD + size / 8 + (size % 8 != 0);
    *out_status = words <= INT_MAX ? PTOWSP_OUT_OF_MEMORY : PTOWSP_LIMIT_EXCEEDED;
    if (words <= INT_MAX && words > w->capacity) {
        uint64_t *larger = (uint64_t *)realloc(w->words, (size_t)words * 8);
        w->words = larger ? larger : w->words;
        w->capacity = larger ? words : w->capacity;
    }
    return words <= w->capacity ? (int)words : 0;
}

static ptowsp_status status_of(int code) {
    int class = MPI_SUCCESS;
    if (code == MPI_SUCCESS) {
        return PTOWSP_OK;
    }
    MPI_Error_class(code, &class);
    return class == MPI_ERR_TRUNCATE ? PTOWSP_BUFFER_OVERFLOW : PTOWSP_SYSTEM_FAILED;
}

static ptowsp_status transport_send(void *user, uint32_t peer, uint64_t tag, const void *data,
                                    uint64_t size) {
    mpi_transport *t = (mpi_transport *)user;
    way *w = way_of(t, peer, true);
    if (!may_call(t->is_funneled)) {
        return PTOWSP_UNSUPPORTED;
    }
    MPI_Wait(&w->request, MPI_STATUS_IGNORE);  // of one that was given up
    ptowsp_status status;
    const int words = way_reserve(w, size, &status);
    if (!words) {
        return status;
    }
    w->words[words - 1] = 0;  // what is behind the last byte
    w->words[0] = tag;
    w->words[1] = size;
    if (size > 0) {
        memcpy(w->words + HEAD, data, (size_t)size);
    }
    return status_of(
        MPI_Isend(w->words, words, MPI_UINT64_T, (int)peer, DATA, t->comm, &w->request));
}

static ptowsp_status transport_receive(void *user, uint32_t peer, void *data, uint64_t capacity) {
    mpi_transport *t = (mpi_transport *)user;
    way *w = way_of(t, peer, false);
    ptowsp_status status;
    if (!may_call(t->is_funneled)) {
        return PTOWSP_UNSUPPORTED;
    }
    const int words = way_reserve(w, capacity, &status);
    if (!words) {
        return status;
    }
    w->data = data;
    return status_of(
        MPI_Irecv(w->words, words, MPI_UINT64_T, (int)peer, DATA, t->comm, &w->request));
}

// Takes farewells that have come.
static void look_for_ends(mpi_transport *t) {
    int has_come = 1;
    while (has_come) {
        MPI_Status from;
        if (MPI_Iprobe(MPI_ANY_SOURCE, FAREWELL, t->comm, &has_come, &from) != MPI_SUCCESS ||
            !has_come) {
            return;
        }
        uint64_t has_failed = 1;
        MPI_Recv(&has_failed, 1, MPI_UINT64_T, from.MPI_SOURCE, FAREWELL, t->comm,
                 MPI_STATUS_IGNORE);
        t->has_ended[from.MPI_SOURCE] = true;
        t->has_failed = t->has_failed || has_failed;
    }
}

static ptowsp_status transport_test(void *user, uint32_t peer, bool is_send, bool *out_is_done,
                                    uint64_t *out_tag, uint64_t *out_size) {
    mpi_transport *t = (mpi_transport *)user;
    way *w = way_of(t, peer, is_send);
    if (!may_call(t->is_funneled)) {
        return PTOWSP_UNSUPPORTED;
    }
    // Before the message is looked for, so that all that the peer has sent is seen.
    look_for_ends(t);
    const bool is_over = t->has_failed || t->has_ended[peer];
    int is_done = 0;
    const ptowsp_status status = status_of(MPI_Test(&w->request, &is_done, MPI_STATUS_IGNORE));
    *out_is_done = false;
    if (status != PTOWSP_OK || !is_done) {
        return status == PTOWSP_OK && is_over ? PTOWSP_RANK_FAILED : status;
    }
    *out_is_done = true;
    *out_tag = w->words[0];
    *out_size = w->words[1];
    if (!is_send && w->words[1] > 0) {
        memcpy(w->data, w->words + HEAD, (size_t)w->words[1]);
    }
    return PTOWSP_OK;
}

// A send that is given up goes on from its buffer.
static void transport_cancel(void *user, uint32_t peer, bool is_send) {
    mpi_transport *t = (mpi_transport *)user;
    way *w = way_of(t, peer, is_send);
    if (!is_send && w->request != MPI_REQUEST_NULL && may_call(t->is_funneled)) {
        MPI_Cancel(&w->request);
        MPI_Wait(&w->request, MPI_STATUS_IGNORE);
    }
}

// Takes what a peer has sent, up to its farewell.
static void drain(mpi_transport *t, int peer) {
    while (!t->has_ended[peer]) {
        MPI_Message message;
        MPI_Status status;
        int words = 0;
        if (MPI_Mprobe(peer, MPI_ANY_TAG, t->comm, &message, &status) != MPI_SUCCESS) {
            return;
        }
        MPI_Get_count(&status, MPI_UINT64_T, &words);
        uint64_t *rest = (uint64_t *)malloc((size_t)words * 8 + 8);
        if (!rest) {
            return;
        }
        MPI_Mrecv(rest, words, MPI_UINT64_T, &message, MPI_STATUS_IGNORE);
        t->has_ended[peer] = status.MPI_TAG == FAREWELL;
        free(rest);
    }
}

static void transport_free(mpi_transport *t) {
    for (int i = 0; t->ways && i < 2 * t->rank_count; i++) {
        free(t->ways[i].words);
    }
    free(t->ways);
    free(t->has_ended);
    free(t);
}

static void transport_close(void *user, bool has_failed) {
    mpi_transport *t = (mpi_transport *)user;
    uint64_t word = has_failed;
    if (!may_call(t->is_funneled)) {
        return;  // its buffers stay, as messages may be under way in them
    }
    MPI_Request *farewells = (MPI_Request *)malloc((size_t)t->rank_count * sizeof(MPI_Request));
    for (int i = 0; farewells && i < t->rank_count; i++) {
        farewells[i] = MPI_REQUEST_NULL;
        if (i != t->rank) {
            MPI_Isend(&word, 1, MPI_UINT64_T, i, FAREWELL, t->comm, &farewells[i]);
        }
    }
    for (int i = 0; i < t->rank_count; i++) {
        if (i != t->rank) {
            transport_cancel(t, (uint32_t)i, false);
            drain(t, i);
            MPI_Wait(&way_of(t, (uint32_t)i, true)->request, MPI_STATUS_IGNORE);
        }
    }
    if (farewells) {
        MPI_Waitall(t->rank_count, farewells, MPI_STATUSES_IGNORE);
    }
    free(farewells);
    MPI_Comm_free(&t->comm);
    transport_free(t);
}

int mpi_transport_create(MPI_Comm comm, ptowsp_transport *out_transport) {
    int level = MPI_THREAD_SINGLE;
    MPI_Query_thread(&level);
    const bool is_funneled = level == MPI_THREAD_FUNNELED;
    if (level < MPI_THREAD_FUNNELED || !may_call(is_funneled)) {
        return MPI_ERR_UNSUPPORTED_OPERATION;
    }
    mpi_transport *t = (mpi_transport *)calloc(1, sizeof *t);
    if (!t) {
        return MPI_ERR_NO_MEM;
    }
    int code = MPI_Comm_dup(comm, &t->comm);
    if (code != MPI_SUCCESS) {
        free(t);
        return code;
    }
    t->is_funneled = is_funneled;
    MPI_Comm_set_errhandler(t->comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(t->comm, &t->rank);
    MPI_Comm_size(t->comm, &t->rank_count);
    t->has_ended = (bool *)calloc((size_t)t->rank_count, sizeof *t->has_ended);
    t->ways = (way *)calloc(2 * (size_t)t->rank_count, sizeof *t->ways);
    for (int i = 0; t->ways && i < 2 * t->rank_count; i++) {
        t->ways[i].request = MPI_REQUEST_NULL;
    }
    if (!t->has_ended || !t->ways) {
        MPI_Comm_free(&t->comm);
        transport_free(t);
        return MPI_ERR_NO_MEM;
    }
    const ptowsp_transport transport = {
        t, transport_send, transport_receive, transport_test, transport_cancel, transport_close};
    *out_transport = transport;
    return MPI_SUCCESS;
}
