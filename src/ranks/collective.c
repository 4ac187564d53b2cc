// Collectives as data: checks, names, and the steps of a member as an array or as text.

#include "ranks.h"

#include <inttypes.h>

PWSP_TEXTS(ptowsp_collective_name, ptowsp_collective_kind, PTOWSP_COLLECTIVES, "none")

PWSP_TEXTS(ptowsp_algorithm_name, ptowsp_algorithm, PTOWSP_ALGORITHMS, "none")

PWSP_INTERNAL ptowsp_status pwsp_ranks_fail(ptowsp_context *context, ptowsp_status status,
                                            uint64_t index, const char *format, ...) {
    if (context) {
        char text[PWSP_ERROR_TEXT_MAX - 8];
        PWSP_TEXT_FORMAT_INTO(text, format);
        pwsp_fail(context, status, index, "ranks: %s", text);
    }
    return status;
}

PWSP_INTERNAL bool pwsp_collective_has(ptowsp_collective_kind kind, ptowsp_algorithm algorithm) {
    switch (kind) {
    case PTOWSP_SLICE:
    case PTOWSP_SEND: return algorithm == PTOWSP_ALGORITHM_DIRECT;
    case PTOWSP_ALL_TO_ALL:
        return algorithm == PTOWSP_ALGORITHM_DIRECT || algorithm == PTOWSP_ALGORITHM_RING;
    default: return algorithm != PTOWSP_ALGORITHM_AUTO;
    }
}

// The bytes that all members send and keep must fit into 64 bits.
static bool pwsp_collective_fits(const ptowsp_collective *c) {
    const uint64_t limit = (uint64_t)INT64_MAX / ptowsp_dtype_size(c->dtype);
    uint64_t sum = pwsp_sum_u64(c->count, 2 * PTOWSP_RANK_COUNT_MAX);
    for (size_t i = 0; c->counts && i < (size_t)c->members * c->members; i++) {
        sum = pwsp_sum_u64(sum, c->counts[i]);
    }
    return sum <= limit / 2;  // scratch holds up to twice as many
}

PWSP_INTERNAL ptowsp_status pwsp_collective_check(ptowsp_context *context,
                                                  const ptowsp_collective *c) {
    const ptowsp_status bad = PTOWSP_INVALID_PARAMS;
    if (!c) {
        return pwsp_ranks_fail(context, bad, PTOWSP_NO_INDEX, "no collective");
    }
    if ((uint32_t)c->kind > PTOWSP_SLICE || (uint32_t)c->algorithm > PTOWSP_ALGORITHM_RING ||
        (uint32_t)c->reduction > PTOWSP_REDUCTION_MIN) {
        return pwsp_ranks_fail(context, bad, PTOWSP_NO_INDEX,
                               "kind %u, algorithm %u, reduction %u: there is no such value",
                               (unsigned)c->kind, (unsigned)c->algorithm, (unsigned)c->reduction);
    }
    const char *name = ptowsp_collective_name(c->kind);
    if (ptowsp_dtype_size(c->dtype) == 0 ||
        (pwsp_collective_reduces(c) && c->dtype == PTOWSP_BOOL)) {
        return pwsp_ranks_fail(context, bad, PTOWSP_NO_INDEX, "%s: elements of type %s", name,
                               ptowsp_dtype_name(c->dtype));
    }
    if (c->members == 0) {
        return pwsp_ranks_fail(context, bad, PTOWSP_NO_INDEX, "%s: no members", name);
    }
    const uint64_t stride = pwsp_stride(c->stride);
    if (c->members > PTOWSP_RANK_COUNT_MAX ||
        c->first + (c->members - 1) * stride >= PTOWSP_RANK_COUNT_MAX) {
        return pwsp_ranks_fail(context, PTOWSP_LIMIT_EXCEEDED, c->members,
                               "%s: %" PRIu32 " members from rank %" PRIu32 ", each %" PRIu64
                               " on: at most %d ranks",
                               name, c->members, c->first, stride, PTOWSP_RANK_COUNT_MAX);
    }
    if (c->counts && (c->kind != PTOWSP_ALL_TO_ALL || c->count != 0)) {
        return pwsp_ranks_fail(context, bad, PTOWSP_NO_INDEX,
                               "%s: counts are of all_to_all, without count", name);
    }
    const bool has_root = c->kind == PTOWSP_BROADCAST || c->kind == PTOWSP_SEND;
    if ((has_root && c->root >= c->members) ||
        (c->kind == PTOWSP_SEND && c->target >= c->members)) {
        const uint32_t which = c->root >= c->members ? c->root : c->target;
        return pwsp_ranks_fail(context, bad, which, "%s: no member %" PRIu32 " of %" PRIu32, name,
                               which, c->members);
    }
    if (c->algorithm != PTOWSP_ALGORITHM_AUTO && !pwsp_collective_has(c->kind, c->algorithm)) {
        return pwsp_ranks_fail(context, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX, "%s has no %s", name,
                               ptowsp_algorithm_name(c->algorithm));
    }
    if (c->algorithm == PTOWSP_ALGORITHM_HIERARCHICAL && c->node_size &&
        c->members % c->node_size) {
        return pwsp_ranks_fail(context, PTOWSP_UNSUPPORTED_SIZE, c->node_size,
                               "%s: nodes of %" PRIu32 " do not divide %" PRIu32 " members", name,
                               c->node_size, c->members);
    }
    return pwsp_collective_fits(c)
               ? PTOWSP_OK
               : pwsp_ranks_fail(context, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                                 "%s: its bytes do not fit 63 bits", name);
}

typedef struct pwsp_collective_sink {
    ptowsp_collective_step *steps;
    uint64_t count, capacity;
} pwsp_collective_sink;

static void pwsp_collective_write(void *user, const ptowsp_collective_step *step) {
    pwsp_collective_sink *sink = (pwsp_collective_sink *)user;
    if (sink->count < sink->capacity) {
        sink->steps[sink->count] = *step;
    }
    sink->count++;
}

ptowsp_status ptowsp_collective_plan(ptowsp_context *context, const ptowsp_collective *collective,
                                     uint32_t member, ptowsp_collective_step *steps,
                                     uint64_t step_capacity, ptowsp_collective_size *out_size) {
    const ptowsp_status status = pwsp_collective_check(context, collective);
    if (status != PTOWSP_OK) {
        return status;
    }
    const char *name = ptowsp_collective_name(collective->kind);
    if (collective->algorithm == PTOWSP_ALGORITHM_AUTO || !out_size || (step_capacity && !steps)) {
        return pwsp_ranks_fail(
            context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "%s: a plan needs %s", name,
            out_size && (steps || !step_capacity) ? "an algorithm" : "room to write");
    }
    if (member >= collective->members) {
        return pwsp_ranks_fail(context, PTOWSP_INVALID_PARAMS, member,
                               "%s: no member %" PRIu32 " of %" PRIu32, name, member,
                               collective->members);
    }
    pwsp_collective_sink sink = {steps, 0, step_capacity};
    pwsp_collective_visit(collective, member, pwsp_collective_write, &sink, out_size);
    if (steps && sink.count > step_capacity) {
        return pwsp_ranks_fail(context, PTOWSP_BUFFER_OVERFLOW, sink.count,
                               "%s: %" PRIu64 " steps, room for %" PRIu64, name, sink.count,
                               step_capacity);
    }
    return PTOWSP_OK;
}

static void pwsp_collective_say(void *user, const ptowsp_collective_step *s) {
    static const char spaces[][8] = {"in", "out", "scratch"};
    const ptowsp_output text = *(const ptowsp_output *)user;
    const char *from = spaces[s->from], *to = spaces[s->to];
    pwsp_text_format(text, "%4" PRIu32 "  ", s->round);
    const uint64_t from_end = s->from_at + s->count, to_end = s->to_at + s->count;
    if (s->kind == PTOWSP_MOVE_SEND) {
        pwsp_text_format(text, "send     %s[%" PRIu64 ", %" PRIu64 ") to rank %" PRIu32 "\n", from,
                         s->from_at, from_end, s->peer);
    } else if (s->kind == PTOWSP_MOVE_RECEIVE) {
        pwsp_text_format(text, "receive  %s[%" PRIu64 ", %" PRIu64 ") from rank %" PRIu32 "\n", to,
                         s->to_at, to_end, s->peer);
    } else {
        pwsp_text_format(text, "%s %s[%" PRIu64 ", %" PRIu64 ") %s %s[%" PRIu64 ", %" PRIu64 ")\n",
                         s->kind == PTOWSP_MOVE_COPY     ? "copy    "
                         : s->kind == PTOWSP_MOVE_REDUCE ? "reduce  "
                                                         : "add     ",
                         to, s->to_at, to_end,
                         s->kind == PTOWSP_MOVE_COPY     ? "="
                         : s->kind == PTOWSP_MOVE_REDUCE ? "on the right of"
                                                         : "on the left of",
                         from, s->from_at, from_end);
    }
}

void ptowsp_collective_print(const ptowsp_collective *collective, uint32_t member,
                             ptowsp_output output) {
    if (!collective) {
        return;
    }
    PTOWSP_ASSERT(pwsp_collective_check(NULL, collective) == PTOWSP_OK);
    ptowsp_collective_size size;
    pwsp_collective_visit(collective, member, pwsp_collective_say, &output, &size);
}
