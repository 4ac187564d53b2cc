// States of pipelines as bytes.
//
// Each is kept whole, as numbers of 7 bits a byte: the index of the pipeline; of each channel its
// depth and tokens; the cells that decide control; of each process its op, loops and own cells. So
// states that are equal have equal bytes, and a state can be gone back to. Tokens and cells that
// decide nothing are left out (control.h). They are wrong then, and nothing looks at them.

#include "../data/digest.h"
#include "explore.h"

// -- bytes ----------------------------------------------------------------------------------------

// A state is written and read back by the same walk over its parts.
typedef struct pwsp_explore_coder {
    pwsp_explorer *e;
    uint64_t at;
    bool is_reading;
} pwsp_explore_coder;

static void pwsp_explore_code(pwsp_explore_coder *coder, uint64_t *value) {
    pwsp_explorer *e = coder->e;
    if (coder->is_reading) {
        uint64_t read = 0;
        for (uint32_t shift = 0;; shift += 7) {
            uint8_t byte = e->bytes[coder->at++];
            read |= (uint64_t)(byte & 127) << shift;
            if (byte < 128) {
                *value = read;
                return;
            }
        }
    }
    if (coder->at + 10 > e->byte_capacity) {
        if (!PWSP_GROW(&e->pipelines->memory, e->bytes, e->byte_capacity, coder->at + 10)) {
            e->is_out_of_memory = true;
            return;
        }
    }
    uint64_t left = *value;
    while (left > 127) {
        e->bytes[coder->at++] = (uint8_t)(left | 128);
        left >>= 7;
    }
    e->bytes[coder->at++] = (uint8_t)left;
}

static void pwsp_explore_code_u32(pwsp_explore_coder *coder, uint32_t *value) {
    uint64_t wide = *value;
    pwsp_explore_code(coder, &wide);
    *value = (uint32_t)wide;
}

static void pwsp_explore_code_channel(pwsp_explore_coder *coder, uint32_t index) {
    pwsp_channel *channel = &coder->e->pipelines->exchange.channels[index];
    uint64_t depth = channel->depth, count = pwsp_channel_pending(channel);
    pwsp_explore_code(coder, &depth);  // with the index of the pipeline, what run of it this is
    pwsp_explore_code(coder, &count);
    if (coder->is_reading) {
        PTOWSP_ASSERT(depth == channel->depth && count <= depth);
        pwsp_channel_fill(channel, count);
        channel->producers = channel->consumers = 0;
    }
    for (uint64_t i = 0; coder->e->control->channels[index] && i < count; i++) {
        pwsp_explore_code(coder, pwsp_channel_token(channel, channel->received + i));
    }
}

static void pwsp_explore_code_frame(pwsp_explore_coder *coder, pwsp_frame *frame) {
    uint64_t i = (uint64_t)frame->i, count = (uint64_t)frame->count;
    uint64_t loop = (uint64_t)frame->loop << 2 | (uint64_t)frame->is_call << 1 | frame->has_scope;
    pwsp_explore_code(coder, &loop);
    pwsp_explore_code(coder, &i);
    pwsp_explore_code(coder, &count);
    pwsp_explore_code(coder, &frame->first);
    frame->loop = (uint32_t)(loop >> 2);
    frame->is_call = (loop & 2) != 0;
    frame->has_scope = (loop & 1) != 0;
    frame->i = (int64_t)i;
    frame->count = (int64_t)count;
}

// Where a process that has been read waits, and the sides of channels that it is on.
static void pwsp_explore_place(pwsp_explorer *e, pwsp_process *process) {
    const ptowsp_program *program = e->pipelines->program;
    pwsp_exchange *exchange = &e->pipelines->exchange;
    process->wait = PWSP_PROCESS_HAS_ENDED;
    exchange->ended_count += process->next_op == 0;
    if (process->next_op == 0) {
        return;
    }
    const pwsp_op *op = PWSP_OP_AT(program, process->next_op);
    process->node = op->node;
    if (op->kind == PWSP_OP_SEND) {
        process->wait = PWSP_PROCESS_WAITS_FULL;
        process->channel = program->sends.items[op->at].channel;
    } else {
        const pwsp_receive_op *receive = &program->receives.items[op->at];
        PTOWSP_ASSERT(op->kind == PWSP_OP_RECEIVE);
        process->wait = PWSP_PROCESS_WAITS_EMPTY;
        process->channel = receive->channel;
        process->is_loop = receive->is_loop;
        process->inbox = pwsp_process_inbox(e->pipelines, process, receive);
    }
    for (uint32_t i = 0; i < process->port_count; i++) {
        pwsp_channel *channel = &exchange->channels[process->ports[i].channel];
        channel->consumers += !process->ports[i].is_produced;
        channel->producers += process->ports[i].is_produced && !process->closed[i];
    }
}

static void pwsp_explore_code_process(pwsp_explore_coder *coder, pwsp_process *process) {
    pwsp_explorer *e = coder->e;
    const ptowsp_program *program = e->pipelines->program;
    const uint32_t *privates = &program->privates.items[process->op->first_private];
    uint32_t next = process->wait == PWSP_PROCESS_HAS_ENDED ? 0 : process->next_op;
    pwsp_explore_code_u32(coder, &next);
    process->next_op = next;  // 0: has ended; no send or receive is the first op of a program
    if (next) {
        pwsp_explore_code_u32(coder, &process->frame_count);
        for (uint32_t i = 0; i < process->frame_count; i++) {
            pwsp_explore_code_frame(coder, &process->frames[i]);
        }
        for (uint32_t i = 0; i < process->op->private_count; i++) {
            if (e->control->cells[privates[i]]) {
                pwsp_explore_code(coder, &process->kept[i]);
            }
        }
        for (uint32_t i = 0; i < process->port_count; i++) {
            uint64_t is_closed = process->closed[i];
            if (process->ports[i].is_closed_early) {
                pwsp_explore_code(coder, &is_closed);
            }
            process->closed[i] = (uint8_t)is_closed;
        }
    }
    if (coder->is_reading) {
        pwsp_explore_place(e, process);
    }
    if (next && pwsp_explorer_sends(process) && e->control->channels[process->channel]) {
        pwsp_explore_code(coder, &process->token);
    }
}

// Returns where the state ends.
static uint64_t pwsp_explorer_code(pwsp_explorer *e, uint64_t at, bool is_reading) {
    pwsp_explore_coder coder = {e, at, is_reading};
    pwsp_pipelines *pipelines = e->pipelines;
    const pwsp_pipeline_op *op = pipelines->op;
    uint32_t index = pipelines->index;
    pwsp_explore_code_u32(&coder, &index);
    for (uint32_t i = 0; i < op->channel_count; i++) {
        pwsp_explore_code_channel(&coder, op->first_channel + i);
    }
    for (uint32_t i = 1; i < pipelines->program->first_symbol; i++) {
        if (e->control->cells[i]) {
            pwsp_explore_code(&coder, &pipelines->cells[i]);
        }
    }
    pipelines->exchange.ended_count = is_reading ? 0 : pipelines->exchange.ended_count;
    for (uint32_t i = 0; i < pipelines->exchange.running_count; i++) {
        pwsp_explore_code_process(&coder, &pipelines->exchange.processes[i]);
    }
    return coder.at;
}

// -- states ---------------------------------------------------------------------------------------

static uint64_t pwsp_explore_hash(const pwsp_explorer *e, const pwsp_explore_state *state) {
    return pwsp_digest(0, e->bytes + state->offset, state->size, 1, 1);
}

static bool pwsp_explore_is_same(const pwsp_explorer *e, const pwsp_explore_state *a,
                                 const pwsp_explore_state *b) {
    return a->size == b->size &&
           memcmp(e->bytes + a->offset, e->bytes + b->offset, (size_t)a->size) == 0;
}

#define PWSP_EXPLORE_STATE_AT(of, place) (&(of)->states[place])
PWSP_LOOKUP(pwsp_explore_states, pwsp_explorer, const pwsp_explore_state *, pwsp_explore_hash,
            PWSP_EXPLORE_STATE_AT, pwsp_explore_is_same)

PWSP_INTERNAL bool pwsp_explorer_keep(pwsp_explorer *e, uint32_t parent,
                                      pwsp_explore_choice choice) {
    const pwsp_memory *memory = &e->pipelines->memory;
    uint64_t offset = e->byte_count, end = pwsp_explorer_code(e, offset, false);
    e->is_out_of_memory = e->is_out_of_memory ||
                          !PWSP_GROW(memory, e->states, e->state_capacity, e->state_count + 1) ||
                          !pwsp_explore_states_reserve(e, &e->places, memory, e->state_count);
    if (e->is_out_of_memory) {
        return false;
    }
    const pwsp_explore_state state = {offset, end - offset, parent, choice};
    uint32_t *at = pwsp_explore_states_slot(e, &e->places, &state);
    if (*at) {
        return true;
    }
    e->is_at_limit = e->state_count >= e->state_limit;
    if (e->is_at_limit) {
        return false;
    }
    e->states[e->state_count++] = state;
    *at = (uint32_t)e->state_count;
    e->byte_count = end;
    return true;
}

PWSP_INTERNAL bool pwsp_explorer_is_alike(pwsp_explorer *e, uint32_t i, uint32_t j) {
    pwsp_process *a = pwsp_explorer_process(e, i), *b = pwsp_explorer_process(e, j);
    if (a->op != b->op || a->next_op != b->next_op) {
        return i == j;
    }
    pwsp_explore_coder coder = {e, e->byte_count, false};
    pwsp_explore_code_process(&coder, a);
    const uint64_t middle = coder.at;
    pwsp_explore_code_process(&coder, b);
    const uint64_t size = middle - e->byte_count;
    return !e->is_out_of_memory && coder.at - middle == size &&
           memcmp(e->bytes + e->byte_count, e->bytes + middle, (size_t)size) == 0;
}

PWSP_INTERNAL void pwsp_explorer_go_back(pwsp_explorer *e, uint32_t state) {
    PTOWSP_ASSERT(state < e->state_count);
    pwsp_explorer_code(e, e->states[state].offset, true);
}
