// Threads of a network's processes, and whose turn it is.
//
// A mutex is held by the one that moves, from when it gets the turn to when it waits for the next:
// so all that it has written is seen by whoever moves after it. Giving the turn to a process that
// has not begun takes an idle thread, or a new one.
//
// After an error the turn goes to each process under way, one after another: its words do nothing
// any more, so its body returns. Those that have not begun never do.

#include "wsp_pipeline_network.h"

#include <algorithm>
#include <new>

namespace wsp {

// -- threads --------------------------------------------------------------------------------------

void *Network::thread_main(void *thread) {
    Thread *self = static_cast<Thread *>(thread);
    self->network->serve(*self);
    return nullptr;
}

// Runs the bodies of processes, until nobody moves any more.
void Network::serve(Thread &thread) {
    pthread_mutex_lock(&mutex_);
    for (;;) {
        while (!thread.process && !is_finished_) {
            pthread_cond_wait(&thread.wake, &mutex_);
        }
        Process *process = thread.process;
        if (!process) {
            break;
        }
        await_turn(*process);
        process->body(process->index);
        end(*process);
        process->thread = nullptr;
        thread.process = nullptr;
        idle_.push_back(&thread);
        pass_on();
    }
    pthread_mutex_unlock(&mutex_);
}

// Gives a process that begins a thread. False if there is none for it.
bool Network::start_thread(Process &process) {
    if (!idle_.empty()) {
        process.thread = idle_.back();
        process.thread->process = &process;
        idle_.pop_back();
        return true;
    }
    std::unique_ptr<Thread> thread(new (std::nothrow) Thread);
    pthread_attr_t attributes;
    if (!thread || threads_.size() >= thread_max_ || pthread_attr_init(&attributes) != 0) {
        return false;
    }
    thread->network = this;
    thread->process = &process;
    pthread_cond_init(&thread->wake, nullptr);
    bool has_started = pthread_attr_setstacksize(&attributes, STACK_SIZE) == 0 &&
                       pthread_create(&thread->id, &attributes, thread_main, thread.get()) == 0;
    pthread_attr_destroy(&attributes);
    if (!has_started) {
        pthread_cond_destroy(&thread->wake);
        return false;
    }
    process.thread = thread.get();
    threads_.push_back(std::move(thread));
    return true;
}

Network::~Network() {
    pthread_cond_destroy(&finished_);
    pthread_mutex_destroy(&mutex_);
}

// -- turns ----------------------------------------------------------------------------------------

// The one that moves next, and is in no list any more; nullptr if nobody can now.
Network::Process *Network::choose() {
    if (is_alive() && ready_.empty() && kernel_count_ == 0) {
        if (ended_count_ == processes_.size()) {
            is_finished_ = true;
            return nullptr;
        }
        fail_stuck();
    }
    if (!is_alive()) {
        is_over_ = true;
        return choose_to_unwind();
    }
    if (ready_.empty()) {
        return nullptr;  // until a kernel ends
    }
    std::pop_heap(ready_.begin(), ready_.end(),
                  [](const Process *a, const Process *b) { return is_before(*b, *a); });
    Process *next = ready_.back();
    ready_.pop_back();
    if (!next->thread && !start_thread(*next)) {
        char name[200] = "";
        append_name(name, sizeof name, *next);
        fail(PTOWSP_LIMIT_EXCEEDED, next->place,
             "process %s: there is no thread for it beside those of %u processes that are under "
             "way",
             name, static_cast<unsigned>(threads_.size()));
        return choose_to_unwind();
    }
    return next;
}

// The first of those that have begun and not ended.
Network::Process *Network::choose_to_unwind() {
    for (; unwound_ < processes_.size(); unwound_++) {
        Process &process = *processes_[unwound_];
        if (process.thread && process.state != IN_KERNEL) {
            return &process;
        }
    }
    is_finished_ = kernel_count_ == 0;
    return nullptr;
}

void Network::give_turn(Process *next) {
    turn_ = next;
    if (next) {
        next->state = MOVES;
        pthread_cond_signal(&next->thread->wake);
    } else if (is_finished_) {
        pthread_cond_signal(&finished_);
    }
}

void Network::await_turn(Process &me) {
    while (turn_ != &me) {
        pthread_cond_wait(&me.thread->wake, &mutex_);
    }
}

bool Network::run(uint32_t place) {
    if (!is_alive()) {
        return false;
    }
    place_ = place;
    pthread_mutex_lock(&mutex_);
    for (const std::unique_ptr<Process> &process : processes_) {
        push(*process);
    }
    pass_on();
    while (!is_finished_) {
        pthread_cond_wait(&finished_, &mutex_);
    }
    for (const std::unique_ptr<Thread> &thread : threads_) {
        pthread_cond_signal(&thread->wake);
    }
    pthread_mutex_unlock(&mutex_);
    for (const std::unique_ptr<Thread> &thread : threads_) {
        pthread_join(thread->id, nullptr);
        pthread_cond_destroy(&thread->wake);
    }
    threads_.clear();
    return is_alive();
}

}  // namespace wsp
