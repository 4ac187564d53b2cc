// Why nobody can go on, when processes are left and all of them wait.
//
// Who waits until a channel has room needs one of its consumers, who waits for a token one of its
// producers. Those that are left wait themselves, so following from one to the next either comes
// back to where it has been, a circle, or ends at a channel whose consumers have all ended, or at
// an event that nobody is left to record.

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>

#include "wsp_pipeline_network.h"

namespace wsp {

namespace {

constexpr size_t TEXT_SIZE = 500;
constexpr uint32_t SHOWN_MAX = 3;  // processes that the error names

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
void append(char *text, size_t size, const char *format, ...) {
    size_t length = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + length, size - length, format, args);
    va_end(args);
}

}  // namespace

// Finds, of those that wait at whatever, the first who still consumes each channel, and the first
// who produces it.
void Network::find_firsts() {
    for (size_t i = processes_.size(); i > 0; i--) {
        Process &process = *processes_[i - 1];
        for (const OpenPort &port : process.ports) {
            Channel &channel = *channels_[port.channel];
            if (!waits(process)) {
                continue;
            }
            if (!port.is_produced) {
                channel.first_consumer = &process;
            } else if (!port.is_closed) {
                channel.first_producer = &process;
            }
        }
    }
}

// The first of those that could let a process go on, or nullptr.
Network::Process *Network::waits_for(const Process &process) const {
    const Channel &channel = *channels_[process.channel];
    return process.state == FULL ? channel.first_consumer : channel.first_producer;
}

// A process of a circle of waits, or nullptr.
Network::Process *Network::find_circle() {
    for (uint32_t i = 0; i < processes_.size(); i++) {
        Process *at = processes_[i].get();
        while (at && waits(*at) && at->mark == 0) {
            at->mark = i + 1;
            at = waits_for(*at);
        }
        if (at && waits(*at) && at->mark == i + 1) {
            return at;
        }
    }
    return nullptr;
}

void Network::append_name(char *text, size_t size, const Process &process) const {
    append(text, size, "%s", process.name);
    if (processes_[process.first_replica]->replica_count > 1) {
        append(text, size, "[%u]", static_cast<unsigned>(process.replica));
    }
}

// What would help: in a circle, room, or that somebody sends first; else those who could have let
// somebody go on have ended.
void Network::append_hint(char *text) {
    Process *circle = find_circle(), *full = nullptr, *at = circle;
    if (circle) {
        do {
            bool is_better = at->state == FULL;
            if (is_better && full) {  // channels before events, and then the shallowest
                const Channel &a = *channels_[at->channel], &b = *channels_[full->channel];
                is_better = a.is_event == b.is_event ? a.depth < b.depth : b.is_event;
            }
            full = is_better ? at : full;
            at = waits_for(*at);
        } while (at != circle);
        if (!full) {
            append(text, TEXT_SIZE,
                   waits_for(*circle) == circle
                       ? "it has to send before it receives"
                       : "one of them has to send before it receives, or to close what it "
                         "produces");
            return;
        }
    } else {
        for (const std::unique_ptr<Process> &process : processes_) {
            if (waits(*process) && !waits_for(*process)) {
                full = process.get();
                break;
            }
        }
        const char *name = full ? channels_[full->channel]->name : "";
        if (!full || channels_[full->channel]->is_event) {
            append(text, TEXT_SIZE, "event %s takes as many waits as records", name);
            return;
        }
        append(text, TEXT_SIZE,
               "all consumers of channel %s have ended: one has to receive until the end of the "
               "stream, or ",
               name);
    }
    const Channel &channel = *channels_[full->channel];
    if (channel.is_event) {
        append(text, TEXT_SIZE, "a channel with a depth instead of event %s would let ",
               channel.name);
    } else {
        append(text, TEXT_SIZE, "a depth of more than %llu for channel %s would let ",
               static_cast<unsigned long long>(channel.depth), channel.name);
    }
    append_name(text, TEXT_SIZE, *full);
    append(text, TEXT_SIZE, " go on");
}

void Network::fail_stuck() {
    char text[TEXT_SIZE] = "";
    uint32_t shown = 0, left = 0;
    uint64_t time = 0;
    find_firsts();
    for (const std::unique_ptr<Process> &process : processes_) {
        if (!waits(*process)) {
            continue;
        }
        left++;
        time = std::max(time, process->time);
        if (shown < SHOWN_MAX) {
            append(text, TEXT_SIZE, "%s", shown++ ? ", " : "");
            append_name(text, TEXT_SIZE, *process);
            append(text, TEXT_SIZE, " finds %s %s", channels_[process->channel]->name,
                   process->state == FULL ? "full" : "empty");
        }
    }
    if (left > shown) {
        append(text, TEXT_SIZE, ", and %u more wait", static_cast<unsigned>(left - shown));
    }
    append(text, TEXT_SIZE, "; ");
    append_hint(text);
    fail(PTOWSP_STUCK, place_, "stuck at cycle %llu: %s", static_cast<unsigned long long>(time),
         text);
}

}  // namespace wsp
