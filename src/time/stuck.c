// Why nobody can go on, when processes are left and all of them wait.
//
// Who waits until a channel has room needs one of its consumers, who waits for a token one of its
// producers. Those that are left wait themselves, so following from one to the next either comes
// back to where it has been, which is the circle to report, or ends at a channel whose consumers
// have all ended, or at an event that nobody is left to record.

#include "pipeline.h"

#include "../base/text.h"

#include <inttypes.h>

#define PWSP_STUCK_SHORT_MAX  3    // processes that the error names
#define PWSP_STUCK_CIRCLE_MAX 16   // processes that a circle is told of
#define PWSP_STUCK_LONG_MAX   200  // processes that the report tells of

static bool pwsp_process_waits(const pwsp_process *process) {
    return process->wait == PWSP_PROCESS_WAITS_FULL || process->wait == PWSP_PROCESS_WAITS_EMPTY;
}

static const pwsp_channel_op *pwsp_stuck_channel(const pwsp_pipelines *pipelines,
                                                 const pwsp_process *process) {
    return PWSP_CHANNEL_AT(pipelines, process->channel);
}

// Finds, of those that wait at whatever, the first who still consumes each channel, and the first
// who produces it.
static void pwsp_stuck_find_firsts(pwsp_pipelines *pipelines) {
    for (uint32_t i = pipelines->running_count; i > 0; i--) {
        const pwsp_process *process = &pipelines->processes[i - 1];
        for (uint32_t j = 0; pwsp_process_waits(process) && j < process->op->port_count; j++) {
            const pwsp_port *port = PWSP_PORT_AT(pipelines, process->op->first_port + j);
            pwsp_channel *channel = &pipelines->channels[port->channel];
            if (!port->is_produced) {
                channel->first_consumer = i;
            } else if (!process->closed[j]) {
                channel->first_producer = i;
            }
        }
    }
}

// The first of those that could let a process go on, or NULL: a consumer of the channel that it
// waits at, or a producer.
static const pwsp_process *pwsp_stuck_next(const pwsp_pipelines *pipelines,
                                           const pwsp_process *process) {
    const pwsp_channel *channel = &pipelines->channels[process->channel];
    bool is_full = process->wait == PWSP_PROCESS_WAITS_FULL;
    uint32_t first = is_full ? channel->first_consumer : channel->first_producer;
    return first ? &pipelines->processes[first - 1] : NULL;
}

// A process of a circle of waits, or NULL. What processes do not need any more says where it has
// been.
static const pwsp_process *pwsp_stuck_find_circle(pwsp_pipelines *pipelines) {
    for (uint32_t i = 0; i < pipelines->running_count; i++) {
        pipelines->processes[i].mark = 0;
    }
    for (uint32_t i = 0; i < pipelines->running_count; i++) {
        const pwsp_process *at = &pipelines->processes[i];
        while (at && pwsp_process_waits(at) && at->mark == 0) {
            pipelines->processes[at->index].mark = i + 1;
            at = pwsp_stuck_next(pipelines, at);
        }
        if (at && pwsp_process_waits(at) && at->mark == i + 1) {
            return at;
        }
    }
    return NULL;
}

// -- text -----------------------------------------------------------------------------------------

static void pwsp_stuck_print_name(const pwsp_pipelines *pipelines, const pwsp_process *process,
                                  ptowsp_text text) {
    pwsp_text_format(text, "%s", process->op->name);
    if (pipelines->running[process->index].replica_count > 1) {
        pwsp_text_format(text, "[%u]", pipelines->running[process->index].replica);
    }
}

// "waits for room in channel a, which is full (2 of 2 tokens), since cycle 100".
static void pwsp_stuck_print_wait(const pwsp_pipelines *pipelines, const pwsp_process *process,
                                  ptowsp_text text) {
    const pwsp_channel *channel = &pipelines->channels[process->channel];
    const pwsp_channel_op *op = pwsp_stuck_channel(pipelines, process);
    bool is_full = process->wait == PWSP_PROCESS_WAITS_FULL;
    if (op->is_event) {
        pwsp_text_format(text,
                         is_full              ? "records event %s (full), for which nobody waits"
                         : channel->producers ? "waits for event %s (empty)"
                                              : "waits for event %s (empty), and whoever "
                                                "records it has ended",
                         op->name);
    } else if (!is_full) {
        pwsp_text_format(text, "waits for a token in channel %s, which is empty", op->name);
    } else if (channel->depth == 0) {
        pwsp_text_format(text, "waits for a receiver at channel %s, which is full at depth 0",
                         op->name);
    } else {
        pwsp_text_format(
            text, "waits for room in channel %s, which is full (%" PRIu64 " of %" PRIu64 " tokens)",
            op->name, pwsp_channel_pending(channel), channel->depth);
    }
    pwsp_text_format(text, ", since cycle %" PRIu64, process->time);
}

// "a (full) -> b (empty) -> a"
static void pwsp_stuck_print_circle(const pwsp_pipelines *pipelines, ptowsp_text text) {
    const pwsp_process *first = pipelines->circle, *at = first;
    uint32_t count = 0;
    do {
        if (count < PWSP_STUCK_CIRCLE_MAX) {
            pwsp_stuck_print_name(pipelines, at, text);
            pwsp_text_format(text, " -> %s %s -> ",
                             at->wait == PWSP_PROCESS_WAITS_FULL ? "full" : "empty",
                             pwsp_stuck_channel(pipelines, at)->name);
        }
        count++;
        at = pwsp_stuck_next(pipelines, at);
    } while (at != first);
    if (count > PWSP_STUCK_CIRCLE_MAX) {
        pwsp_text_format(text, "%u more -> ", count - PWSP_STUCK_CIRCLE_MAX);
    }
    pwsp_stuck_print_name(pipelines, first, text);
}

static void pwsp_stuck_print_depth_hint(const pwsp_pipelines *pipelines,
                                        const pwsp_process *process, ptowsp_text text) {
    const pwsp_channel_op *op = pwsp_stuck_channel(pipelines, process);
    if (op->is_event) {
        pwsp_text_format(text, "a channel with a depth instead of event %s would let ", op->name);
    } else {
        pwsp_text_format(text, "a depth of more than %" PRIu64 " for channel %s would let ",
                         pipelines->channels[process->channel].depth, op->name);
    }
    pwsp_stuck_print_name(pipelines, process, text);
    pwsp_text_format(text, " go on");
}

// Is a process, of two that wait for room, better served with some? Channels before events, and
// then the shallowest.
static bool pwsp_stuck_is_better(const pwsp_pipelines *pipelines, const pwsp_process *process,
                                 const pwsp_process *other) {
    bool is_event = pwsp_stuck_channel(pipelines, process)->is_event;
    if (!other || is_event != pwsp_stuck_channel(pipelines, other)->is_event) {
        return !other || !is_event;
    }
    return pipelines->channels[process->channel].depth < pipelines->channels[other->channel].depth;
}

// What would help those in the circle: room; the end of a stream that somebody waits for; or that
// somebody sends first.
static void pwsp_stuck_print_circle_hint(const pwsp_pipelines *pipelines, ptowsp_text text) {
    const pwsp_process *first = pipelines->circle, *at = first, *full = NULL, *end = NULL;
    do {
        if (at->wait == PWSP_PROCESS_WAITS_EMPTY) {
            end = !end && at->receive->is_loop ? at : end;
        } else if (pwsp_stuck_is_better(pipelines, at, full)) {
            full = at;
        }
        at = pwsp_stuck_next(pipelines, at);
    } while (at != first);
    if (full) {
        pwsp_stuck_print_depth_hint(pipelines, full, text);
    }
    if (end) {
        const char *name = pwsp_stuck_channel(pipelines, end)->name;
        pwsp_text_format(text, "%s", full ? ", or " : "");
        pwsp_stuck_print_name(pipelines, pwsp_stuck_next(pipelines, end), text);
        pwsp_text_format(text, " has to close channel %s before, if that is all that it sends",
                         name);
    } else if (!full && pwsp_stuck_next(pipelines, first) == first) {
        pwsp_stuck_print_name(pipelines, first, text);
        pwsp_text_format(text, " has to send before it receives");
    } else if (!full) {
        pwsp_text_format(text, "one of them has to send before it receives, or to close what it "
                               "produces");
    }
}

// What would help where there is no circle: those who could have let somebody go on have ended.
static void pwsp_stuck_print_hint(const pwsp_pipelines *pipelines, ptowsp_text text) {
    if (pipelines->circle) {
        pwsp_stuck_print_circle_hint(pipelines, text);
        return;
    }
    for (uint32_t i = 0; i < pipelines->running_count; i++) {
        const pwsp_process *at = &pipelines->processes[i];
        if (!pwsp_process_waits(at) || pwsp_stuck_next(pipelines, at)) {
            continue;
        }
        const pwsp_channel_op *op = pwsp_stuck_channel(pipelines, at);
        if (op->is_event) {
            pwsp_text_format(text, "event %s takes as many waits as records", op->name);
            return;
        }
        pwsp_text_format(text,
                         "all consumers of channel %s have ended: one has to receive until the "
                         "end of the stream, or ",
                         op->name);
        pwsp_stuck_print_depth_hint(pipelines, at, text);
        return;
    }
}

PWSP_INTERNAL void pwsp_stuck_fail(pwsp_pipelines *pipelines) {
    char what[PWSP_ERROR_TEXT_MAX];
    ptowsp_text_buffer buffer = {what, sizeof what, 0};
    ptowsp_text text = ptowsp_text_to_buffer(&buffer);
    uint32_t shown = 0, left = pipelines->running_count - pipelines->ended_count;
    uint64_t time = 0;
    pwsp_stuck_find_firsts(pipelines);
    pipelines->circle = pwsp_stuck_find_circle(pipelines);
    for (uint32_t i = 0; i < pipelines->running_count; i++) {
        const pwsp_process *process = &pipelines->processes[i];
        if (!pwsp_process_waits(process)) {
            continue;
        }
        time = pwsp_max_u64(time, process->time);
        if (shown < PWSP_STUCK_SHORT_MAX) {
            pwsp_text_format(text, "%s", shown++ ? ", " : "");
            pwsp_stuck_print_name(pipelines, process, text);
            pwsp_text_format(text,
                             process->wait == PWSP_PROCESS_WAITS_FULL ? " finds %s full"
                                                                      : " finds %s empty",
                             pwsp_stuck_channel(pipelines, process)->name);
        }
    }
    if (left > shown) {
        pwsp_text_format(text, ", and %u more wait", left - shown);
    }
    pwsp_text_format(text, "; ");
    pwsp_stuck_print_hint(pipelines, text);
    pwsp_expander_fail(pipelines->x, PTOWSP_STUCK, PTOWSP_NO_INDEX,
                       "stuck at cycle %" PRIu64 ": %s", time, what);
}

PWSP_INTERNAL void pwsp_stuck_print(const pwsp_pipelines *pipelines, ptowsp_text text) {
    if (!pipelines->is_stuck) {
        return;
    }
    uint32_t left = pipelines->running_count - pipelines->ended_count, shown = 0;
    pwsp_text_format(text, "pipeline %s is stuck: %u of %u processes wait\n", pipelines->op->name,
                     left, pipelines->running_count);
    for (uint32_t i = 0; i < pipelines->running_count && shown < PWSP_STUCK_LONG_MAX; i++) {
        const pwsp_process *process = &pipelines->processes[i];
        if (!pwsp_process_waits(process)) {
            continue;
        }
        shown++;
        pwsp_text_format(text, "  ");
        pwsp_stuck_print_name(pipelines, process, text);
        pwsp_text_format(text, " ");
        pwsp_stuck_print_wait(pipelines, process, text);
        pwsp_text_format(text, "\n    at ");
        pwsp_process_swap(pipelines, process);
        pwsp_program_print_place(pipelines->program, process->node, pipelines->cells, text);
        pwsp_process_swap(pipelines, process);
        pwsp_text_format(text, "\n");
    }
    if (left > shown) {
        pwsp_text_format(text, "  ... %u more\n", left - shown);
    }
    if (pipelines->circle) {
        pwsp_text_format(text, "  circle: ");
        pwsp_stuck_print_circle(pipelines, text);
        pwsp_text_format(text, "\n");
    }
    pwsp_text_format(text, "  help: ");
    pwsp_stuck_print_hint(pipelines, text);
    pwsp_text_format(text, "\n");
}
