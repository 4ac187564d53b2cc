// Tasks that communicate: see communicate.h.
//
// A rank's walk resolves each of its tasks to the collective of its group. Collectives of one rank
// follow one another in program order, in time and on lanes (runtime/precedence). All ranks have
// the same order, so members meet in the same collective without a word.

#include "communicate.h"

#include "../base/sleeper.h"
#include "../ranks/ranks.h"

#include <inttypes.h>

PWSP_INTERNAL void pwsp_comm_init(pwsp_comm *comm, const pwsp_memory *memory,
                                  ptowsp_context *context, pwsp_halt *halt) {
    memset(comm, 0, sizeof *comm);
    comm->memory = *memory;
    comm->context = context;
    comm->own.memory = context->memory;
    comm->own.pool = context->pool;
    comm->own.index = PTOWSP_NO_INDEX;
    comm->halt = halt;
}

PWSP_INTERNAL void pwsp_comm_free(pwsp_comm *comm) {
    PWSP_FREE(&comm->own.memory, comm->in.packed, comm->in.capacity);
    PWSP_FREE(&comm->own.memory, comm->out.packed, comm->out.capacity);
}

PWSP_INTERNAL size_t pwsp_comm_bytes(const pwsp_comm *comm) {
    return (size_t)(comm->in.capacity + comm->out.capacity);
}

static void pwsp_comm_forget(pwsp_comm *comm) {
    for (uint64_t i = 0; i < comm->memo_capacity; i++) {
        comm->memos[i].hash = 0;
    }
}

PWSP_INTERNAL ptowsp_status pwsp_comm_bind(pwsp_comm *comm, const ptowsp_run_ranks *ranks) {
    const ptowsp_status bad = PTOWSP_INVALID_PARAMS;
    if (!ranks) {
        comm->is_bound = false;
        memset(&comm->bound, 0, sizeof comm->bound);
        return PTOWSP_OK;
    }
    ptowsp_run_ranks bound = *ranks;
    if (bound.ranks) {
        bound.rank = ptowsp_ranks_rank(bound.ranks);
        bound.rank_count = ptowsp_ranks_count(bound.ranks);
        bound.links = pwsp_ranks_links(bound.ranks);
    } else if (pwsp_links_are_zero(&bound.links)) {
        bound.links = ptowsp_links_make(PTOWSP_LINKS_ASCEND_910B);
    }
    bound.links.name = NULL;
    bound.cycles_per_us = bound.cycles_per_us ? bound.cycles_per_us : PWSP_COMM_CYCLES_PER_US;
    if (bound.rank_count == 0 || bound.rank_count > PTOWSP_RANK_COUNT_MAX ||
        bound.rank >= bound.rank_count || bound.cycles_per_us > 1000000) {
        return pwsp_fail(comm->context, bad, bound.rank,
                         "run: rank %" PRIu32 " of %" PRIu32 ", %" PRIu64 " cycles each us: there "
                         "are 1 to %d ranks, and at most 10^6 cycles",
                         bound.rank, bound.rank_count, bound.cycles_per_us, PTOWSP_RANK_COUNT_MAX);
    }
    const ptowsp_status status = pwsp_links_check(comm->context, &bound.links);
    if (status == PTOWSP_OK) {
        comm->bound = bound;
        comm->is_bound = true;
        pwsp_comm_forget(comm);
    }
    return status;
}

// -- before an execution --------------------------------------------------------------------------

static uint32_t pwsp_comm_members(const pwsp_comm *comm, const pwsp_collective_info *info) {
    const uint32_t stride = pwsp_stride(info->stride);
    return info->members ? info->members : comm->bound.rank_count / stride;
}

static ptowsp_status pwsp_comm_check_kernel(pwsp_comm *comm, const ptowsp_program *program,
                                            const pwsp_kernel_info *kernel) {
    const pwsp_collective_info *info = &kernel->collective;
    const uint64_t members = pwsp_comm_members(comm, info);
    const uint64_t stride = pwsp_stride(info->stride);
    if (members == 0 || comm->bound.rank_count % (members * stride)) {
        return pwsp_fail(comm->context, PTOWSP_UNSUPPORTED_SIZE, members,
                         "run: kernel %s: groups of %" PRIu64 " ranks, each %" PRIu64
                         " on, do not divide %" PRIu32 " ranks",
                         kernel->name, members, stride, comm->bound.rank_count);
    }
    if (info->counts) {
        const pwsp_array *array = &comm->arrays[info->counts];
        if (array->count != members * members) {
            return PWSP_REFUSE(comm->context,
                               "run: kernel %s: array %s has %" PRIu64 " counts; %" PRIu64
                               " members have %" PRIu64,
                               kernel->name, program->arrays.items[info->counts].name, array->count,
                               members, members * members);
        }
        comm->counts_size = pwsp_max_u64(comm->counts_size, members * members);
    }
    return PTOWSP_OK;
}

static bool pwsp_comm_make_room(pwsp_comm *comm) {
    const pwsp_memory *memory = &comm->memory;
    const bool has_memos = comm->memo_capacity > 0;
    if (comm->together.find_cycles) {
        return PWSP_ROOM(memory, comm->counts, comm->counts_capacity, comm->counts_size);
    }
    if (!PWSP_ROOM(memory, comm->memos, comm->memo_capacity, PWSP_COMM_MEMO_COUNT)) {
        return false;
    }
    if (!has_memos) {
        pwsp_comm_forget(comm);
    }
    return PWSP_ROOM(memory, comm->counts, comm->counts_capacity, 2 * comm->counts_size) &&
           PWSP_ROOM(memory, comm->times, comm->times_capacity,
                     2 * (uint64_t)comm->bound.rank_count);
}

PWSP_INTERNAL ptowsp_status pwsp_comm_begin(pwsp_comm *comm, const ptowsp_program *program,
                                            const pwsp_array *arrays, pwsp_sim *sim,
                                            bool is_time_only) {
    PTOWSP_ASSERT(program->has_link);
    memset(&sim->meeting, 0, sizeof sim->meeting);
    comm->arrays = arrays;
    comm->sim = sim;
    comm->is_under_way = false;
    comm->counts_size = 0;
    comm->task_head = comm->task_tail = comm->wait_count = 0;
    for (uint32_t i = 1; i < program->kernels.count; i++) {
        const pwsp_kernel_info *kernel = &program->kernels.items[i];
        if (!program->kernel_is_used[i] || kernel->unit != PTOWSP_UNIT_LINK) {
            continue;
        }
        if (!comm->is_bound || (!is_time_only && !comm->bound.ranks)) {
            return PWSP_REFUSE(
                comm->context,
                "run: kernel %s communicates, and no %s bound (ptowsp_run_bind_ranks)",
                kernel->name, comm->is_bound ? "communicator is" : "ranks are");
        }
        const ptowsp_status status = pwsp_comm_check_kernel(comm, program, kernel);
        if (status != PTOWSP_OK) {
            return status;
        }
    }
    if (program->mesh_ranks && program->mesh_ranks != comm->bound.rank_count) {
        return PWSP_REFUSE(comm->context,
                           "run: %" PRIu32 " ranks are bound, and the module's mesh has %" PRIu32,
                           comm->bound.rank_count, program->mesh_ranks);
    }
    if (!pwsp_comm_make_room(comm)) {
        return PWSP_NO_MEMORY(comm->context, "run: out of memory");
    }
    if (comm->together.find_cycles) {
        sim->meeting = comm->together;
    } else if (is_time_only && comm->bound.ranks) {
        const pwsp_sim_meeting meeting = {pwsp_comm_meet, comm};
        sim->meeting = meeting;
    }
    return PTOWSP_OK;
}

PWSP_INTERNAL void pwsp_comm_give_up(pwsp_comm *comm) {
    if (comm->is_bound && comm->bound.ranks) {
        pwsp_ranks_give_up(comm->bound.ranks);
    }
}

// -- from a task to a collective ------------------------------------------------------------------

static bool pwsp_comm_fail_size(const pwsp_kernel_info *kernel, const char *tile, uint64_t has,
                                uint64_t takes, const char *what, pwsp_error *error) {
    pwsp_error_set(error, PTOWSP_UNSUPPORTED_SIZE, PTOWSP_NO_INDEX,
                   "%s: %s has %" PRIu64 " %s, and the collective takes %" PRIu64,
                   ptowsp_collective_name(kernel->collective.kind), tile, has, what, takes);
    return false;
}

static uint64_t pwsp_comm_part(uint64_t count, uint32_t parts, uint64_t i) {
    return pwsp_part_at(count, parts, i + 1) - pwsp_part_at(count, parts, i);
}

// Reads counts, in rows, as elements; do the tiles have room for the rows?
static bool pwsp_comm_ragged(const pwsp_comm *comm, const pwsp_kernel_info *kernel,
                             const uint64_t *args, uint64_t *counts, uint32_t members, uint32_t me,
                             pwsp_error *error) {
    const pwsp_array *array = &comm->arrays[kernel->collective.counts];
    uint64_t sent = 0, received = 0;
    if (args[1] != args[3]) {
        return pwsp_comm_fail_size(kernel, "out", args[3], args[1], "columns", error);
    }
    for (uint64_t i = 0; i < (uint64_t)members * members; i++) {
        const uint64_t rows = pwsp_array_at(array, i);
        if (rows > INT32_MAX) {
            pwsp_error_set(error, PTOWSP_INVALID_PARAMS, i,
                           "all_to_all: count %" PRIu64 ", from member %" PRIu64 " to %" PRIu64
                           ", is %" PRId64,
                           i, i / members, i % members, (int64_t)rows);
            return false;
        }
        sent += i / members == me ? rows : 0;
        received += i % members == me ? rows : 0;
        counts[i] = rows * args[1];
    }
    if (sent > args[0]) {
        return pwsp_comm_fail_size(kernel, "in", args[0], sent, "rows", error);
    }
    return received <= args[2] ||
           pwsp_comm_fail_size(kernel, "out", args[2], received, "rows", error);
}

// Parts of columns are equal; is this so?
static bool pwsp_comm_columns(const pwsp_kernel_info *kernel, const uint64_t *args,
                              uint32_t members, pwsp_error *error) {
    const bool is_cut[2] = {kernel->collective.in_columns, kernel->collective.out_columns};
    for (uint32_t i = 0; i < 2; i++) {
        if (is_cut[i] && args[2 * i + 1] % members) {
            pwsp_error_set(error, PTOWSP_UNSUPPORTED_SIZE, PTOWSP_NO_INDEX,
                           "%s: %s has %" PRIu64 " columns, which %" PRIu32
                           " members do not divide",
                           ptowsp_collective_name(kernel->collective.kind), kernel->tiles[i].name,
                           args[2 * i + 1], members);
            return false;
        }
    }
    return true;
}

// The elements of the tiles, by kind.
static bool pwsp_comm_sizes(const pwsp_comm *comm, const pwsp_kernel_info *kernel,
                            const uint64_t *args, uint64_t *counts, uint32_t me,
                            ptowsp_collective *c, pwsp_error *error) {
    const uint64_t first = args[0] * args[1];
    if (kernel->tile_count == 1) {
        c->count = first;
        return true;
    }
    if (kernel->collective.counts) {
        c->counts = counts;
        return pwsp_comm_ragged(comm, kernel, args, counts, c->members, me, error);
    }
    const uint64_t second = args[2] * args[3];
    const bool is_gather = c->kind == PTOWSP_ALL_GATHER;
    c->count = is_gather ? second : first;
    const uint64_t part = pwsp_comm_part(c->count, c->members, me);
    const uint64_t takes = c->kind == PTOWSP_ALL_TO_ALL   ? part * c->members
                           : c->kind == PTOWSP_ALL_REDUCE ? c->count
                                                          : part;
    const uint64_t has = is_gather ? first : second;
    if (!pwsp_comm_columns(kernel, args, c->members, error)) {
        return false;
    }
    return has == takes ||
           pwsp_comm_fail_size(kernel, is_gather ? "in" : "out", has, takes, "elements", error);
}

// root and target, after the sizes.
static bool pwsp_comm_roots(const pwsp_kernel_info *kernel, const uint64_t *args,
                            ptowsp_collective *c, pwsp_error *error) {
    for (uint32_t i = 0; i < kernel->scalar_count; i++) {
        const uint64_t member = args[2 * kernel->tile_count + i];
        if (member >= c->members) {
            pwsp_error_set(error, PTOWSP_INVALID_PARAMS, member,
                           "%s: %s is %" PRId64 ", and there are %" PRIu32 " members",
                           ptowsp_collective_name(c->kind), kernel->scalars[i].name,
                           (int64_t)member, c->members);
            return false;
        }
        *(i ? &c->target : &c->root) = (uint32_t)member;
    }
    return true;
}

PWSP_INTERNAL bool pwsp_comm_resolve(const pwsp_comm *comm, const pwsp_kernel_info *kernel,
                                     const uint64_t *args, uint64_t *counts, ptowsp_collective *c,
                                     bool *out_is_part, pwsp_error *error) {
    const pwsp_collective_info *info = &kernel->collective;
    const uint32_t stride = pwsp_stride(info->stride);
    memset(c, 0, sizeof *c);
    c->kind = info->kind;
    c->algorithm = info->algorithm;
    c->reduction = info->reduction;
    c->dtype = kernel->tiles[0].dtype;
    c->members = pwsp_comm_members(comm, info);
    c->stride = stride;
    const uint32_t me = comm->bound.rank / stride % c->members;
    c->first = comm->bound.rank - me * stride;
    if (!pwsp_comm_sizes(comm, kernel, args, counts, me, c, error) ||
        !pwsp_comm_roots(kernel, args, c, error)) {
        return false;
    }
    const bool is_end = me == c->root || me == c->target;
    *out_is_part = c->kind != PTOWSP_SEND || (is_end && c->root != c->target);
    return true;
}

PWSP_INTERNAL bool pwsp_comm_check(pwsp_comm *comm, const pwsp_kernel_info *kernel,
                                   const uint64_t *args, pwsp_error *error) {
    ptowsp_collective c;
    bool is_part;
    return pwsp_comm_resolve(comm, kernel, args, comm->counts, &c, &is_part, error);
}

// -- data -----------------------------------------------------------------------------------------

static bool pwsp_comm_lies_together(const pwsp_comm_tile *t) {
    return t->rows * t->cols == 0 || ((t->tile.col_stride == 1 || t->cols == 1) &&
                                      (t->tile.row_stride == (int64_t)t->cols || t->rows == 1));
}

// Copies between a tile and its packed elements, block by block of its columns.
static void pwsp_comm_copy(const pwsp_comm_tile *t, uint64_t element, bool is_packing) {
    const bool are_rows = t->tile.col_stride == 1;
    const uint64_t width = t->cols / t->blocks, step = are_rows ? width : 1;
    char *packed = t->packed;
    for (uint64_t line = 0; width > 0 && line < t->blocks * t->rows; line++) {
        const uint64_t row = line % t->rows, first = line / t->rows * width;
        for (uint64_t col = first; col < first + width; col += step) {
            const int64_t at =
                (int64_t)row * t->tile.row_stride + (int64_t)col * t->tile.col_stride;
            char *data = (char *)t->tile.data + at * (int64_t)element;
            memcpy(is_packing ? packed : data, is_packing ? data : packed,
                   (size_t)(step * element));
            packed += step * element;
        }
    }
}

// *out_data: the part of a tile that the collective reads or writes. False with an error.
static bool pwsp_comm_open(pwsp_comm *comm, pwsp_comm_tile *t, const ptowsp_task *task, uint32_t i,
                           uint64_t blocks, bool is_read, char **out_data) {
    t->tile = task->tiles[i];
    t->rows = task->args[2 * i];
    t->cols = task->args[2 * i + 1];
    t->blocks = blocks;
    t->is_packed = blocks > 1 || !pwsp_comm_lies_together(t);
    if (!t->is_packed) {
        *out_data = (char *)t->tile.data;
        return true;
    }
    // The product fits, as the sizes of a tensor in memory do.
    if (!PWSP_ROOM(&comm->own.memory, t->packed, t->capacity, t->rows * t->cols * comm->element)) {
        pwsp_error_set(&comm->error, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "run: out of memory");
        return false;
    }
    if (is_read) {
        pwsp_comm_copy(t, comm->element, true);
    }
    *out_data = t->packed;
    return true;
}

static bool pwsp_comm_fail_ranks(pwsp_comm *comm, ptowsp_status status) {
    const ptowsp_error from = ptowsp_context_error(pwsp_ranks_context(comm->bound.ranks));
    pwsp_error_set(&comm->error, status, from.index, "%s",
                   from.status == status ? from.text : ptowsp_status_text(status));
    comm->is_under_way = false;
    return false;
}

// Begins a task. *out_is_part false: there is nothing to do.
static bool pwsp_comm_start(pwsp_comm *comm, const pwsp_kernel_info *kernel,
                            const ptowsp_task *task, bool *out_is_part) {
    ptowsp_collective c;
    uint64_t *counts = comm->counts_size ? comm->counts + comm->counts_size : NULL;
    if (!pwsp_comm_resolve(comm, kernel, task->args, counts, &c, out_is_part, &comm->error)) {
        return false;
    }
    if (!*out_is_part) {
        return true;
    }
    if (c.algorithm == PTOWSP_ALGORITHM_HIERARCHICAL) {
        c.node_size = pwsp_links_inner(&c, &comm->bound.links);
    }
    comm->element = ptowsp_dtype_size(c.dtype);
    comm->is_sender = c.kind == PTOWSP_SEND && pwsp_comm_me(comm, &c) == c.root;
    char *in = NULL, *out = NULL;
    const bool has_rest = c.counts != NULL;  // in `out`, after the rows that arrive
    const uint64_t in_blocks = kernel->collective.in_columns ? c.members : 1;
    const uint64_t out_blocks = kernel->collective.out_columns ? c.members : 1;
    if (!pwsp_comm_open(comm, &comm->in, task, 0, in_blocks, true, &in) ||
        (kernel->tile_count > 1 &&
         !pwsp_comm_open(comm, &comm->out, task, 1, out_blocks, has_rest, &out))) {
        return false;
    }
    out = kernel->tile_count > 1 ? out : in;
    const ptowsp_status status = ptowsp_ranks_start(comm->bound.ranks, &c, in, out);
    if (status != PTOWSP_OK) {
        return pwsp_comm_fail_ranks(comm, status);
    }
    comm->is_under_way = true;
    return true;
}

PWSP_INTERNAL bool pwsp_comm_move(pwsp_comm *comm, const pwsp_kernel_info *kernel,
                                  const ptowsp_task *task, bool *out_is_done) {
    *out_is_done = false;
    if (!comm->is_under_way) {
        bool is_part = true;
        if (!pwsp_comm_start(comm, kernel, task, &is_part)) {
            return false;
        }
        *out_is_done = !is_part;
        if (!is_part) {
            return true;
        }
    }
    const ptowsp_status status = ptowsp_ranks_poll(comm->bound.ranks, out_is_done);
    if (status != PTOWSP_OK) {
        return pwsp_comm_fail_ranks(comm, status);
    }
    if (*out_is_done) {
        const pwsp_comm_tile *t = kernel->tile_count == 1 ? &comm->in : &comm->out;
        if (t->is_packed && !comm->is_sender) {
            pwsp_comm_copy(t, comm->element, false);
        }
        comm->is_under_way = false;
    }
    return true;
}

PWSP_INTERNAL bool pwsp_comm_idle(pwsp_comm *comm, uint32_t *round) {
    const uint32_t spins = pwsp_pool_spin_count(comm->context->pool, comm->bound.rank_count);
    if (pwsp_halt_is(comm->halt)) {
        pwsp_comm_give_up(comm);
        return false;
    }
    if (!pwsp_spin(round, spins, PWSP_COMM_YIELDS)) {
        pwsp_nap(PWSP_COMM_NAP_NS);
    }
    return true;
}

PWSP_INTERNAL bool pwsp_comm_run(pwsp_comm *comm, const pwsp_kernel_info *kernel,
                                 const ptowsp_task *task) {
    uint32_t round = 0;
    bool is_done = false, is_good;
    while ((is_good = pwsp_comm_move(comm, kernel, task, &is_done)) && !is_done) {
        if (!pwsp_comm_idle(comm, &round)) {
            comm->is_under_way = false;
            pwsp_error_set(&comm->error, PTOWSP_SKIPPED, PTOWSP_NO_INDEX, "run: ended early");
            return false;
        }
    }
    return is_good;
}
