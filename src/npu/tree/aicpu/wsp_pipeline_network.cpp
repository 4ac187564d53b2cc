// Channels and the order of time.
//
// The rules of a channel of depth d > 0 and latency L, for its k-th token:
//
//      s(k) = max(sender arrives, r(k - d))        r(k) = max(receiver arrives, s(k) + L)
//
// The ring has d places at least, so r(k - d) is still there when token k is sent.
//
// One that has to wait stands in the line of its channel, behind those that have arrived before.
// Each token that is put wakes the first receiver in line, each that is taken the first sender.
// Woken means ready, with the time at which it arrived: when it is the smallest it looks again, and
// if another one that comes first has just taken the token or the room, it stands in line again. So
// the rule of the order is nothing but the order of the heap. Only at depth 0, where two meet, who
// comes second does what both have to.

#include "wsp_pipeline_network.h"

#include <stdarg.h>
#include <stdio.h>

#include <algorithm>
#include <new>

namespace wsp {

// -- building -------------------------------------------------------------------------------------

Network::Network(NetworkHost &host, bool is_timed) : host_(host), is_timed_(is_timed) {
    pthread_mutex_init(&mutex_, nullptr);
    pthread_cond_init(&finished_, nullptr);
}

void Network::fail(ptowsp_status status, uint32_t place, const char *format, ...) {
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    host_.report_error(status, place, text);
    is_over_ = true;
}

uint32_t Network::channel(const char *name, uint64_t depth, uint64_t latency, bool is_event,
                          uint32_t place) {
    std::unique_ptr<Channel> made(new Channel);
    made->name = name;
    made->is_event = is_event;
    made->depth = depth;
    made->latency = is_timed_ ? latency : 0;
    uint64_t places = 1;
    while (places < depth && places < PTOWSP_CHANNEL_DEPTH_MAX) {
        places *= 2;
    }
    made->mask = places - 1;
    if (depth > PTOWSP_CHANNEL_DEPTH_MAX) {
        fail(PTOWSP_LIMIT_EXCEEDED, place, "channel %s: a depth of %llu, more than %d", name,
             static_cast<unsigned long long>(depth), PTOWSP_CHANNEL_DEPTH_MAX);
    } else if (latency > PTOWSP_CYCLES_MAX) {
        fail(PTOWSP_INVALID_PARAMS, place, "channel %s: a latency of %lld cycles", name,
             static_cast<long long>(latency));
    } else if (depth > 0) {
        made->ring.reset(new (std::nothrow) uint64_t[2 * places]);
        if (!made->ring) {
            fail(PTOWSP_OUT_OF_MEMORY, place, "channel %s: out of memory", name);
        }
    }
    channels_.push_back(std::move(made));
    return static_cast<uint32_t>(channels_.size() - 1);
}

uint32_t Network::process(const char *name, uint32_t place, std::vector<Port> ports,
                          std::function<void(uint32_t)> body) {
    uint32_t index = static_cast<uint32_t>(processes_.size());
    if (index >= PTOWSP_PROCESS_MAX) {
        fail(PTOWSP_LIMIT_EXCEEDED, place, "more than %d processes", PTOWSP_PROCESS_MAX);
        return index;
    }
    std::unique_ptr<Process> made(new Process);
    made->name = name;
    made->place = place;
    made->index = made->first_replica = index;
    if (index > 0 && processes_[index - 1]->name == name && processes_[index - 1]->place == place) {
        made->first_replica = processes_[index - 1]->first_replica;
        made->replica = index - made->first_replica;
        processes_[made->first_replica]->replica_count = made->replica + 1;
    }
    for (const Port &port : ports) {
        made->ports.push_back({port.channel, port.is_produced, false});
        channels_[port.channel]->producers += port.is_produced;
    }
    made->body = std::move(body);
    processes_.push_back(std::move(made));
    return index;
}

// -- the order of time ----------------------------------------------------------------------------

bool Network::is_before(const Process &a, const Process &b) {
    return a.time < b.time || (a.time == b.time && a.index < b.index);
}

void Network::push(Process &process) {
    process.state = process.thread ? READY : UNBORN;
    ready_.push_back(&process);
    std::push_heap(ready_.begin(), ready_.end(),
                   [](const Process *a, const Process *b) { return is_before(*b, *a); });
}

// Lets those that come before a process in time move first.
void Network::yield(Process &me) {
    if (!ready_.empty() && is_before(*ready_.front(), me)) {
        push(me);
        pass_on();
        await_turn(me);
    }
}

// Lets a process stand in line: behind all that arrived before it, or at the same time and come
// first.
void Network::enqueue(Line &line, Process &process) {
    Process **at = &line.first;
    if (line.last && is_before(*line.last, process)) {
        at = &line.last->after;
    }
    while (*at && is_before(**at, process)) {
        at = &(*at)->after;
    }
    process.after = *at;
    *at = &process;
    if (!process.after) {
        line.last = &process;
    }
}

Network::Process &Network::dequeue(Line &line) {
    Process &first = *line.first;
    line.first = first.after;
    if (!line.first) {
        line.last = nullptr;
    }
    return first;
}

void Network::wake_first(Line &line) {
    if (line.first) {
        push(dequeue(line));
    }
}

// Waits at a channel until somebody has changed it. False after an error.
bool Network::wait(Process &me, uint32_t channel, State state) {
    me.state = state;
    me.channel = channel;
    me.has_met = false;
    enqueue(state == FULL ? channels_[channel]->senders : channels_[channel]->receivers, me);
    pass_on();
    await_turn(me);
    return is_alive();
}

// -- channels -------------------------------------------------------------------------------------

Network::OpenPort *Network::find_port(Process &process, uint32_t channel, bool is_produced) {
    for (OpenPort &port : process.ports) {
        if (port.channel == channel && port.is_produced == is_produced) {
            return &port;
        }
    }
    fail(PTOWSP_INVALID_PARAMS, process.place, "process %s does not %s channel %s", process.name,
         is_produced ? "produce" : "consume", channels_[channel]->name);
    return nullptr;
}

// Moves a process to a time, if that is later than its own.
void Network::wait_until(Process &process, uint64_t time) {
    if (time > process.time) {
        channel_cycles_ += std::min(time - process.time, UINT64_MAX - channel_cycles_);
        process.time = time;
    }
}

// Sender and receiver meet at a channel of depth 0. One of them has waited, and is ready now.
void Network::meet(Process &sender, Process &receiver, Channel &channel, uint32_t place) {
    Process &waited = waits(sender) ? sender : receiver;
    uint64_t time = std::max(sender.time + channel.latency, receiver.time);
    if (time > PTOWSP_CYCLES_MAX) {
        fail(PTOWSP_LIMIT_EXCEEDED, place, "a token of channel %s arrives after 2^63 - 1 cycles",
             channel.name);
        return;
    }
    channel.sent++;
    channel.received++;
    receiver.token = sender.token;
    wait_until(sender, time);
    wait_until(receiver, time);
    waited.has_met = true;
    push(waited);
}

void Network::send(uint32_t process, uint32_t channel, uint64_t token, uint32_t place) {
    Process &me = *processes_[process];
    Channel &at = *channels_[channel];
    const OpenPort *port = is_alive() ? find_port(me, channel, true) : nullptr;
    if (!port) {
        return;
    }
    if (port->is_closed) {
        fail(PTOWSP_INVALID_PARAMS, place,
             at.is_event ? "it records event %s after closing it"
                         : "it sends to channel %s after closing it",
             at.name);
        return;
    }
    me.token = token;
    for (;;) {
        if (at.sent - at.received < at.depth) {
            if (at.sent >= at.depth) {  // after the receive of token k - depth
                wait_until(me, at.ring[(at.sent - at.depth) & at.mask]);
            }
            uint64_t k = at.sent++ & at.mask;
            at.ring[k] = me.time;
            at.ring[k + at.mask + 1] = token;
            wake_first(at.receivers);
            break;
        }
        if (at.depth == 0 && at.receivers.first) {
            meet(me, dequeue(at.receivers), at, place);
            break;
        }
        if (!wait(me, channel, FULL)) {
            return;
        }
        if (me.has_met) {
            break;
        }
    }
    yield(me);
}

bool Network::receive(uint32_t process, uint32_t channel, uint64_t *token, uint32_t place) {
    Process &me = *processes_[process];
    Channel &at = *channels_[channel];
    bool has_token = true;
    if (!is_alive() || !find_port(me, channel, false)) {
        return false;
    }
    for (;;) {
        if (at.received < at.sent) {
            uint64_t k = at.received & at.mask;
            uint64_t due = at.ring[k] + at.latency;
            if (due > PTOWSP_CYCLES_MAX) {
                fail(PTOWSP_LIMIT_EXCEEDED, place,
                     "a token of channel %s arrives after 2^63 - 1 cycles", at.name);
                return false;
            }
            wait_until(me, due);
            me.token = at.ring[k + at.mask + 1];
            at.ring[k] = me.time;
            at.received++;
            wake_first(at.senders);
            break;
        }
        if (at.depth == 0 && at.senders.first) {
            meet(dequeue(at.senders), me, at, place);
            break;
        }
        if (at.producers == 0 && !at.is_event) {  // who waits for an event waits for ever
            wait_until(me, at.close_time);
            has_token = false;
            break;
        }
        if (!wait(me, channel, EMPTY)) {
            return false;
        }
        if (me.has_met) {
            break;
        }
    }
    *token = has_token ? me.token : *token;
    yield(me);
    return has_token && is_alive();
}

// A producer closes a channel at its time. After the last one, those that wait will see the end;
// but not those that wait for an event.
void Network::close_port(const Process &process, OpenPort &port) {
    Channel &at = *channels_[port.channel];
    if (!port.is_produced || port.is_closed) {
        return;
    }
    port.is_closed = true;
    at.close_time = std::max(at.close_time, process.time);
    at.producers--;
    while (at.producers == 0 && at.receivers.first && !at.is_event) {
        wake_first(at.receivers);
    }
}

void Network::close(uint32_t process, uint32_t channel) {
    Process &me = *processes_[process];
    OpenPort *port = is_alive() ? find_port(me, channel, true) : nullptr;
    if (port) {
        close_port(me, *port);
        yield(me);
    }
}

// The body of a process has returned.
void Network::end(Process &process) {
    if (is_alive()) {
        for (OpenPort &port : process.ports) {
            close_port(process, port);
        }
    }
    process.state = ENDED;
    ended_count_++;
    makespan_ = std::max(makespan_, process.time);
    process.body = nullptr;
}

// -- tasks ----------------------------------------------------------------------------------------

void Network::task_begins(uint32_t process) {
    if (!is_timed_) {
        Process &me = *processes_[process];
        me.state = IN_KERNEL;
        kernel_count_++;
        pass_on();
        pthread_mutex_unlock(&mutex_);
    }
}

void Network::task_ends(uint32_t process, uint64_t index, uint64_t cycles, uint32_t place) {
    Process &me = *processes_[process];
    if (!is_timed_) {
        pthread_mutex_lock(&mutex_);
        kernel_count_--;
        task_count_++;
        unwound_ = 0;
        me.time = ++arrival_;
        push(me);
        if (!turn_) {
            pass_on();
        }
        await_turn(me);
    } else if (is_alive()) {
        if (cycles > PTOWSP_CYCLES_MAX - me.time) {
            fail(PTOWSP_LIMIT_EXCEEDED, place, "task %llu ends after 2^63 - 1 cycles",
                 static_cast<unsigned long long>(index));
            return;
        }
        me.time += cycles;
        task_count_++;
        busy_cycles_ += std::min(cycles, UINT64_MAX - busy_cycles_);
        yield(me);
    }
}

}  // namespace wsp
