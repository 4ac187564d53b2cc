// Why no process can proceed: some remain, and all of them wait.
//
// A process that waits for room needs a consumer of the channel; a process that waits for a token
// needs a producer. The remaining processes wait themselves. So following from one to the next
// leads back to an earlier one, and that cycle is reported. Or it ends at a channel whose consumers
// have all ended, or at an event that no remaining process records.

#include "exchange.h"

#include <inttypes.h>

#define PWSP_DEADLOCK_SHORT_MAX 3   // processes that the error names
#define PWSP_DEADLOCK_CYCLE_MAX 16  // processes that the report of a cycle lists

static const pwsp_channel *pwsp_deadlock_channel(const pwsp_exchange *exchange,
                                                 const pwsp_process *process) {
    return &exchange->channels[process->channel];
}

// Finds, among all waiting processes, the first that still consumes each channel, and the first
// that produces it.
static void pwsp_deadlock_find_firsts(pwsp_exchange *exchange) {
    for (uint32_t i = exchange->running_count; i > 0; i--) {
        const pwsp_process *process = &exchange->processes[i - 1];
        for (uint32_t j = 0; pwsp_process_waits(process) && j < process->port_count; j++) {
            const pwsp_port *port = &process->ports[j];
            pwsp_channel *channel = &exchange->channels[port->channel];
            if (!port->is_produced) {
                channel->first_consumer = i;
            } else if (!process->closed[j]) {
                channel->first_producer = i;
            }
        }
    }
}

// The first process that could release another, or NULL: a consumer of the channel that it waits
// for, or a producer. Itself only if no other can.
static const pwsp_process *pwsp_deadlock_next(const pwsp_exchange *exchange,
                                              const pwsp_process *process) {
    const pwsp_channel *channel = &exchange->channels[process->channel];
    bool is_full = process->wait == PWSP_PROCESS_WAITS_FULL;
    uint32_t first = is_full ? channel->first_consumer : channel->first_producer;
    for (uint32_t i = first; first == process->index + 1 && i < exchange->running_count; i++) {
        const pwsp_process *other = &exchange->processes[i];
        if (pwsp_process_waits(other) && pwsp_process_uses(other, process->channel, !is_full)) {
            return other;
        }
    }
    return first ? &exchange->processes[first - 1] : NULL;
}

// A process of a cycle of waits, or NULL. Fields that waiting processes no longer need hold the
// marks of the search.
static const pwsp_process *pwsp_deadlock_find_cycle(pwsp_exchange *exchange) {
    for (uint32_t i = 0; i < exchange->running_count; i++) {
        exchange->processes[i].mark = 0;
    }
    for (uint32_t i = 0; i < exchange->running_count; i++) {
        const pwsp_process *at = &exchange->processes[i];
        while (at && pwsp_process_waits(at) && at->mark == 0) {
            exchange->processes[at->index].mark = i + 1;
            at = pwsp_deadlock_next(exchange, at);
        }
        if (at && pwsp_process_waits(at) && at->mark == i + 1) {
            return at;
        }
    }
    return NULL;
}

// -- text -----------------------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_process_print_name(const char *name, uint32_t replica,
                                           uint32_t replica_count, ptowsp_output text) {
    pwsp_text_format(text, "%s", name);
    if (replica_count > 1) {
        pwsp_text_format(text, "[%u]", replica);
    }
}

PWSP_INTERNAL void pwsp_deadlock_print_name(const pwsp_process *process, ptowsp_output text) {
    pwsp_process_print_name(process->name, process->replica, process->replica_count, text);
}

// "waits for room in channel a, which is full (2 of 2 tokens), since cycle 100".
PWSP_INTERNAL void pwsp_deadlock_print_wait(const pwsp_exchange *exchange,
                                            const pwsp_process *process, ptowsp_output text) {
    const pwsp_channel *channel = pwsp_deadlock_channel(exchange, process);
    bool is_full = process->wait == PWSP_PROCESS_WAITS_FULL;
    if (channel->is_event) {
        pwsp_text_format(text,
                         is_full ? "records event %s (full), which no process waits for"
                         : channel->producers ? "waits for event %s (empty)"
                                              : "waits for event %s (empty), and the process "
                                                "that records it has ended",
                         channel->name);
    } else if (!is_full) {
        pwsp_text_format(text, "waits for a token in channel %s, which is empty", channel->name);
    } else if (channel->depth == 0) {
        pwsp_text_format(text, "waits for a receiver at channel %s, which is full at depth 0",
                         channel->name);
    } else {
        pwsp_text_format(
            text, "waits for room in channel %s, which is full (%" PRIu64 " of %" PRIu64 " tokens)",
            channel->name, pwsp_channel_pending(channel), channel->depth);
    }
    pwsp_text_format(text, ", since %s %" PRIu64,
                     exchange->moves == PWSP_MOVES_CHOSEN ? "step" : "cycle", process->time);
}

// "a (full) -> b (empty) -> a"
PWSP_INTERNAL void pwsp_deadlock_print_cycle(const pwsp_exchange *exchange, ptowsp_output text) {
    const pwsp_process *first = exchange->cycle, *at = first;
    uint32_t count = 0;
    do {
        if (count < PWSP_DEADLOCK_CYCLE_MAX) {
            pwsp_deadlock_print_name(at, text);
            pwsp_text_format(text, " -> %s %s -> ",
                             at->wait == PWSP_PROCESS_WAITS_FULL ? "full" : "empty",
                             pwsp_deadlock_channel(exchange, at)->name);
        }
        count++;
        at = pwsp_deadlock_next(exchange, at);
    } while (at != first);
    if (count > PWSP_DEADLOCK_CYCLE_MAX) {
        pwsp_text_format(text, "%u more -> ", count - PWSP_DEADLOCK_CYCLE_MAX);
    }
    pwsp_deadlock_print_name(first, text);
}

static void pwsp_deadlock_print_depth_hint(const pwsp_exchange *exchange,
                                           const pwsp_process *process, ptowsp_output text) {
    const pwsp_channel *channel = pwsp_deadlock_channel(exchange, process);
    if (channel->is_event) {
        pwsp_text_format(text, "a channel with a depth instead of event %s would let ",
                         channel->name);
    } else {
        pwsp_text_format(text, "a depth of more than %" PRIu64 " for channel %s would let ",
                         channel->depth, channel->name);
    }
    pwsp_deadlock_print_name(process, text);
    pwsp_text_format(text, " go on");
}

// Is room better spent on this process than on the other, of two that wait for room? Channels come
// before events, and then the shallowest.
static bool pwsp_deadlock_is_better(const pwsp_exchange *exchange, const pwsp_process *process,
                                    const pwsp_process *other) {
    bool is_event = pwsp_deadlock_channel(exchange, process)->is_event;
    if (!other || is_event != pwsp_deadlock_channel(exchange, other)->is_event) {
        return !other || !is_event;
    }
    return exchange->channels[process->channel].depth < exchange->channels[other->channel].depth;
}

// Do all in the cycle, of several, wait for tokens that the next one has taken and would give back?
// Then there are too few of them for processes that take several, one after another.
static bool pwsp_deadlock_is_shortage(const pwsp_exchange *exchange) {
    const pwsp_process *first = exchange->cycle, *at = first;
    do {
        const pwsp_process *next = pwsp_deadlock_next(exchange, at);
        const pwsp_channel *channel = pwsp_deadlock_channel(exchange, at);
        if (at->wait != PWSP_PROCESS_WAITS_EMPTY || channel->received == 0 || channel->is_event ||
            next == at || !pwsp_process_uses(next, at->channel, false) ||
            !pwsp_process_uses(next, at->channel, true)) {
            return false;
        }
        at = next;
    } while (at != first);
    return true;
}

static void pwsp_deadlock_print_shortage_hint(const pwsp_exchange *exchange, ptowsp_output text) {
    const pwsp_process *first = exchange->cycle;
    const pwsp_process *next = pwsp_deadlock_next(exchange, first);
    const char *name = pwsp_deadlock_channel(exchange, first)->name;
    pwsp_text_format(text, "more tokens in channel %s would let ", name);
    pwsp_deadlock_print_name(first, text);
    pwsp_text_format(text, " go on; or let each process take all its tokens at once, behind a "
                           "token of which there is one");
    if (next->channel != first->channel) {
        pwsp_text_format(text, ", or from %s and %s in the same order",
                         pwsp_deadlock_channel(exchange, next)->name, name);
    }
}

// In a cycle where all wait for tokens: the process whose channel leads back in the order of
// processes, as credits do. One that receives a number of tokens comes before one that reads to the
// end. NULL: others wait in the cycle. *out_counts: does any process receive a number of tokens?
static const pwsp_process *pwsp_deadlock_find_back(const pwsp_exchange *exchange,
                                                   bool *out_counts) {
    const pwsp_process *first = exchange->cycle, *at = first, *back = NULL;
    *out_counts = false;
    do {
        const pwsp_process *next = pwsp_deadlock_next(exchange, at);
        if (at->wait != PWSP_PROCESS_WAITS_EMPTY || pwsp_deadlock_channel(exchange, at)->is_event) {
            return NULL;
        }
        *out_counts = *out_counts || !at->is_loop;
        if (next->index >= at->index && (!back || (back->is_loop && !at->is_loop))) {
            back = at;
        }
        at = next;
    } while (at != first);
    return back;
}

// The tokens that a process lacks, and its producer has to send before it waits itself. As many as
// the channel holds may remain in it, as each that is received comes back.
static void pwsp_deadlock_print_prime_hint(const pwsp_exchange *exchange,
                                           const pwsp_process *process, bool counts,
                                           ptowsp_output text) {
    const pwsp_channel *channel = pwsp_deadlock_channel(exchange, process);
    if (channel->sent) {
        pwsp_text_format(text, "the tokens of channel %s are too few: ", channel->name);
    } else {
        pwsp_text_format(text, "no token was ever sent to channel %s: ", channel->name);
    }
    pwsp_deadlock_print_name(pwsp_deadlock_next(exchange, process), text);
    pwsp_text_format(text, channel->sent ? " has to send 1 more" : " has to send 1");
    if (channel->depth > 1 && !channel->sent) {
        pwsp_text_format(text, " to %" PRIu64, channel->depth);
    }
    pwsp_text_format(text, " before it first receives");
    if (channel->depth == 0) {
        pwsp_text_format(text, ", and the channel needs a depth of 1");
    }
    if (!counts) {
        pwsp_text_format(text, "; and one of them has to end by itself, as each reads a stream to "
                               "the end that another one writes");
    }
}

// The ways out of the cycle: more tokens, or taking all at once; room; the end of a stream that a
// process waits for; or a process that sends first.
static void pwsp_deadlock_print_cycle_hint(const pwsp_exchange *exchange, ptowsp_output text) {
    const pwsp_process *first = exchange->cycle, *at = first, *full = NULL, *end = NULL;
    bool counts;
    if (pwsp_deadlock_is_shortage(exchange)) {
        pwsp_deadlock_print_shortage_hint(exchange, text);
        return;
    }
    const pwsp_process *back = pwsp_deadlock_find_back(exchange, &counts);
    if (back && (counts || pwsp_deadlock_channel(exchange, back)->sent == 0)) {
        pwsp_deadlock_print_prime_hint(exchange, back, counts, text);
        return;
    }
    do {
        if (at->wait == PWSP_PROCESS_WAITS_EMPTY) {
            end = !end && at->is_loop ? at : end;
        } else if (pwsp_deadlock_is_better(exchange, at, full)) {
            full = at;
        }
        at = pwsp_deadlock_next(exchange, at);
    } while (at != first);
    if (full) {
        pwsp_deadlock_print_depth_hint(exchange, full, text);
    }
    if (end) {
        const char *name = pwsp_deadlock_channel(exchange, end)->name;
        pwsp_text_format(text, "%s", full ? ", or " : "");
        pwsp_deadlock_print_name(pwsp_deadlock_next(exchange, end), text);
        pwsp_text_format(text, " has to close channel %s first, if it sends nothing more", name);
    } else if (!full) {
        pwsp_text_format(text, "one of them has to send, or to record its event, before it waits");
    }
}

// The ways out without a cycle: every process that could have released another has ended.
PWSP_INTERNAL void pwsp_deadlock_print_hint(const pwsp_exchange *exchange, ptowsp_output text) {
    if (exchange->cycle) {
        pwsp_deadlock_print_cycle_hint(exchange, text);
        return;
    }
    for (uint32_t i = 0; i < exchange->running_count; i++) {
        const pwsp_process *at = &exchange->processes[i];
        if (!pwsp_process_waits(at) || pwsp_deadlock_next(exchange, at)) {
            continue;
        }
        const pwsp_channel *channel = pwsp_deadlock_channel(exchange, at);
        if (channel->is_event) {
            pwsp_text_format(text, "event %s needs as many waits as records", channel->name);
            return;
        }
        pwsp_text_format(text,
                         "all consumers of channel %s have ended: one has to receive until the "
                         "end of the stream, or ",
                         channel->name);
        pwsp_deadlock_print_depth_hint(exchange, at, text);
        return;
    }
}

PWSP_INTERNAL ptowsp_status pwsp_deadlock_fail(pwsp_exchange *exchange, pwsp_error *error) {
    char what[PWSP_ERROR_TEXT_MAX];
    ptowsp_output_buffer buffer = {what, sizeof what, 0};
    ptowsp_output text = ptowsp_output_to_buffer(&buffer);
    uint32_t shown = 0, left = exchange->running_count - exchange->ended_count;
    uint64_t time = 0;
    pwsp_deadlock_find_firsts(exchange);
    exchange->cycle = pwsp_deadlock_find_cycle(exchange);
    for (uint32_t i = 0; i < exchange->running_count; i++) {
        const pwsp_process *process = &exchange->processes[i];
        if (!pwsp_process_waits(process)) {
            continue;
        }
        time = pwsp_max_u64(time, process->time);
        if (shown < PWSP_DEADLOCK_SHORT_MAX) {
            pwsp_text_format(text, "%s", shown++ ? ", " : "");
            pwsp_deadlock_print_name(process, text);
            pwsp_text_format(text,
                             process->wait == PWSP_PROCESS_WAITS_FULL ? " finds %s full"
                                                                      : " finds %s empty",
                             pwsp_deadlock_channel(exchange, process)->name);
        }
    }
    if (left > shown) {
        pwsp_text_format(text, ", and %u more wait", left - shown);
    }
    pwsp_text_format(text, "; ");
    pwsp_deadlock_print_hint(exchange, text);
    return pwsp_error_set(error, PTOWSP_STUCK, PTOWSP_NO_INDEX, "stuck %s %" PRIu64 ": %s",
                          exchange->moves == PWSP_MOVES_CHOSEN ? "in an order of steps, after step"
                                                               : "at cycle",
                          time, what);
}
