// Operations of processes, over the library's exchange: see wsp_pipeline_network.h. A process that
// waits gives its turn away, and repeats its send or receive when it gets the turn back.

#include "wsp_pipeline_network.h"

#include <algorithm>
#include <cstdio>

namespace wsp {

// -- building -------------------------------------------------------------------------------------

Network::Network(NetworkHost &host, bool is_timed)
    : host_(host), is_timed_(is_timed), memory_(pwsp_memory_make(nullptr, nullptr)),
      exchange_(pwsp_exchange()) {
    pthread_mutex_init(&mutex_, nullptr);
    pthread_cond_init(&finished_, nullptr);
}

Network::~Network() {
    for (pwsp_channel &channel : channels_) {
        pwsp_channel_free(&channel, &memory_);
    }
    pwsp_earliest_free(&exchange_.ready, &memory_);
    pthread_cond_destroy(&finished_);
    pthread_mutex_destroy(&mutex_);
}

void Network::fail(ptowsp_status status, uint32_t place, const char *text) {
    host_.report_error(status, place, text);
    is_over_ = true;
}

uint32_t Network::channel(const char *name, uint64_t depth, uint64_t latency, bool is_event,
                          uint32_t place, bool by_symbol) {
    pwsp_channel made = pwsp_channel();
    pwsp_error error;
    if (pwsp_channel_open(&made, &memory_, name, depth, latency, by_symbol, false, &error) !=
        PTOWSP_OK) {
        fail(error.status, place, error.text);
    }
    made.delay = is_timed_ ? made.delay : 0;
    made.is_event = is_event;
    channels_.push_back(made);
    return static_cast<uint32_t>(channels_.size() - 1);
}

uint32_t Network::process(const char *name, uint32_t place, List<Port> ports,
                          std::function<void(uint32_t)> body) {
    const uint32_t index = static_cast<uint32_t>(processes_.size());
    if (index >= PTOWSP_PROCESS_MAX) {
        char text[64];
        snprintf(text, sizeof text, "more than %d processes", PTOWSP_PROCESS_MAX);
        fail(PTOWSP_LIMIT_EXCEEDED, place, text);
        return index;
    }
    pwsp_process made = pwsp_process();
    made.name = name;
    made.index = index;
    if (index > 0 && processes_[index - 1].name == name && bodies_[index - 1]->place == place) {
        made.replica = processes_[index - 1].replica + 1;
    }
    std::unique_ptr<Process> own(new Process);
    own->place = place;
    for (const Port &port : ports) {
        own->ports.push_back({port.channel, port.is_produced, false});
    }
    own->closed.resize(ports.size());
    own->body = std::move(body);
    processes_.push_back(made);
    bodies_.push_back(std::move(own));
    return index;
}

// All processes are made: they stay where they are.
void Network::begin() {
    uint32_t replica_count = 0;
    exchange_.channels = channels_.data();
    exchange_.processes = processes_.data();
    exchange_.running_count = static_cast<uint32_t>(processes_.size());
    for (uint32_t i = exchange_.running_count; i > 0; i--) {
        pwsp_process &process = processes_[i - 1];
        Process &own = *bodies_[i - 1];
        process.ports = own.ports.data();
        process.closed = own.closed.data();
        process.port_count = static_cast<uint32_t>(own.ports.size());
        process.replica_count = replica_count = std::max(replica_count, process.replica + 1);
        replica_count = process.replica ? replica_count : 0;
    }
    pwsp_exchange_connect(&exchange_, 0, static_cast<uint32_t>(channels_.size()));
    if (exchange_.running_count == 0 ||
        pwsp_earliest_init(&exchange_.ready, &memory_, exchange_.running_count)) {
        pwsp_exchange_start(&exchange_);
    } else {
        fail(PTOWSP_OUT_OF_MEMORY, place_, "out of memory");
    }
}

// -- operations of processes ----------------------------------------------------------------------

void Network::push(uint32_t process) {
    pwsp_exchange_wake(PWSP_MOVES_IN_TIME, &exchange_, &at(process));
}

// Lets processes with an earlier time move first.
void Network::yield(uint32_t process) {
    if (!pwsp_exchange_is_first(&exchange_, &at(process))) {
        push(process);
        pass_on();
        await_turn(process);
    }
}

// The port by which a process produces a channel: the builder has checked that there is one.
uint32_t Network::find_port(uint32_t process, uint32_t channel) {
    const List<pwsp_port> &ports = bodies_[process]->ports;
    uint32_t i = 0;
    while (ports[i].channel != channel || !ports[i].is_produced) {
        i++;
        PTOWSP_ASSERT(i < ports.size());
    }
    return i;
}

// The outcome of a send or receive: false if it must be repeated.
bool Network::finish(uint32_t process, pwsp_exchanged what, uint32_t place) {
    pwsp_error error;
    switch (what) {
    case PWSP_EXCHANGED:
    case PWSP_EXCHANGE_END: yield(process); return true;
    case PWSP_EXCHANGE_WAITS:
        pass_on();
        await_turn(process);
        if (is_alive() && at(process).has_met) {
            yield(process);
            return true;
        }
        return !is_alive();
    case PWSP_EXCHANGE_LATE:
    case PWSP_EXCHANGE_CLOSED:
    case PWSP_EXCHANGE_LIMIT: break;
    }
    pwsp_exchange_fail(&exchange_, what, &at(process), &error);
    fail(error.status, place, error.text);
    return true;
}

void Network::send(uint32_t process, uint32_t channel, uint64_t token, uint32_t place) {
    if (!is_alive()) {
        return;
    }
    const uint32_t port = find_port(process, channel);
    pwsp_exchanged what;
    do {
        what = pwsp_exchange_send(&exchange_, &at(process), port, token);
    } while (!finish(process, what, place));
}

bool Network::receive(uint32_t process, uint32_t channel, uint64_t *token, uint32_t place,
                      bool is_loop) {
    uint64_t received = 0;
    if (!is_alive()) {
        return false;
    }
    at(process).inbox = &received;
    at(process).is_loop = is_loop;
    pwsp_exchanged what;
    do {
        what = pwsp_exchange_receive(&exchange_, &at(process), channel, &received);
    } while (!finish(process, what, place));
    *token = what == PWSP_EXCHANGE_END ? *token : received;
    return what != PWSP_EXCHANGE_END && is_alive();
}

void Network::close(uint32_t process, uint32_t channel) {
    if (is_alive()) {
        pwsp_exchange_close(&exchange_, &at(process), find_port(process, channel));
        yield(process);
    }
}

// The body of a process has returned. After an error its ports stay as they are.
void Network::end(uint32_t process) {
    if (is_alive()) {
        pwsp_exchange_end(&exchange_, &at(process));
    } else {
        at(process).wait = PWSP_PROCESS_HAS_ENDED;
        exchange_.ended_count++;
    }
    bodies_[process]->body = nullptr;
}

// -- tasks ----------------------------------------------------------------------------------------

void Network::task_begins(uint32_t process) {
    if (!is_timed_) {
        bodies_[process]->is_in_kernel = true;
        kernel_count_++;
        pass_on();
        pthread_mutex_unlock(&mutex_);
    }
}

void Network::task_ends(uint32_t process, uint64_t index, uint64_t cycles, uint32_t place) {
    pwsp_process &me = at(process);
    if (!is_timed_) {
        pthread_mutex_lock(&mutex_);
        bodies_[process]->is_in_kernel = false;
        kernel_count_--;
        unwound_ = 0;
        me.tasks++;
        me.time = ++arrival_;
        push(process);
        if (turn_ == NONE) {
            pass_on();
        }
        await_turn(process);
    } else if (is_alive()) {
        pwsp_error error;
        if (pwsp_exchange_task(&exchange_, &me, index, cycles, &error)) {
            yield(process);
        } else {
            fail(error.status, place, error.text);
        }
    }
}

}  // namespace wsp
