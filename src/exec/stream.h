// A program as a stream: the walk hands each event to a sink, which is five callbacks.
//
//      walk --> stream --> dry       checks, before any kernel runs     run_walk.c
//                      |-> clock     kernel, then time                  run_walk.c
//                      |-> engine    issues to lanes or cores           frontend.c
//                      '-> search    orders of processes                run_explore.c
//
// This is the only switch over the events of a program; the ops of processes have one of their own
// (csp/order.c). A sink is a constant, and the stream is inlined where it is used, so the calls are
// direct.

#ifndef PWSP_STREAM_H
#define PWSP_STREAM_H

#include "call.h"

// Each callback gets `user` and finds its event in the expander. False stops the stream: after a
// failure, which the sink knows, or because the sink or another one continues later. NULL: the
// event has no effect; a load is done, and nothing else.
typedef struct pwsp_sink {
    bool (*task)(void *user);
    bool (*mark)(void *user, const pwsp_mark *mark);
    bool (*load)(void *user);
    bool (*pipeline)(void *user);
    bool (*end)(void *user);
} pwsp_sink;

// Hands one event over. False if the sink stops, or for an ERROR, which is the expander's.
PWSP_FORCE_INLINE bool pwsp_stream_give(pwsp_walk *walk, const pwsp_sink *sink, void *user,
                                        pwsp_event event) {
    switch (event) {
    case PWSP_EVENT_TASK: return !sink->task || sink->task(user);
    case PWSP_EVENT_MARK: return !sink->mark || sink->mark(user, &walk->expander.mark);
    case PWSP_EVENT_SLOT_LOAD:
        if (sink->load) {
            return sink->load(user);
        }
        pwsp_expander_load(&walk->expander);
        return true;
    case PWSP_EVENT_PIPELINE: return !sink->pipeline || sink->pipeline(user);
    case PWSP_EVENT_END: return !sink->end || sink->end(user);
    case PWSP_EVENT_ERROR: return false;
    default: return true;  // none, and tokens of processes
    }
}

// Walks on to the end of the program, or of a process. *event is handed over first, if there is one.
// False when the stream stops: at *event.
PWSP_FORCE_INLINE bool pwsp_stream_run(pwsp_walk *walk, const pwsp_sink *sink, void *user,
                                       pwsp_event *event) {
    bool goes_on = pwsp_stream_give(walk, sink, user, *event);
    while (goes_on && *event != PWSP_EVENT_END && *event != PWSP_EVENT_PROCESS_END) {
        *event = pwsp_walk_event(walk, pwsp_expander_next(&walk->expander));
        goes_on = pwsp_stream_give(walk, sink, user, *event);
    }
    return goes_on;
}

#endif
