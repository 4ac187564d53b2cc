// Threads of a network's processes, and their turns.
//
// The moving thread holds a mutex, from when it gets the turn to when it waits for the next. So the
// thread that moves after it sees all its writes. Giving the turn to a process that has not begun
// takes an idle thread, or a new one.
//
// After an error the turn goes to each process under way, one after another: its operations do
// nothing any more, so its body returns. Processes that have not begun never do.

#include "wsp_pipeline_network.h"

#include <new>

namespace wsp {

// -- threads --------------------------------------------------------------------------------------

void *Network::thread_main(void *thread) {
    Thread *self = static_cast<Thread *>(thread);
    self->network->serve(*self);
    return nullptr;
}

// Runs the bodies of processes, until no thread moves any more.
void Network::serve(Thread &thread) {
    pthread_mutex_lock(&mutex_);
    for (;;) {
        while (thread.process == NONE && !is_finished_) {
            pthread_cond_wait(&thread.wake, &mutex_);
        }
        const uint32_t process = thread.process;
        if (process == NONE) {
            break;
        }
        await_turn(process);
        bodies_[process]->body(process);
        end(process);
        bodies_[process]->thread = nullptr;
        thread.process = NONE;
        idle_.push_back(&thread);
        pass_on();
    }
    pthread_mutex_unlock(&mutex_);
}

// Gives a beginning process a thread. False if none is available.
bool Network::start_thread(Process &process, uint32_t number) {
    if (!idle_.empty()) {
        process.thread = idle_.back();
        process.thread->process = number;
        idle_.pop_back();
        return true;
    }
    std::unique_ptr<Thread> thread(new (std::nothrow) Thread);
    pthread_attr_t attributes;
    if (!thread || pthread_attr_init(&attributes) != 0) {
        return false;
    }
    thread->network = this;
    thread->process = number;
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

// -- turns ----------------------------------------------------------------------------------------

// The process that moves next, removed from all lists; NONE if none can now.
uint32_t Network::choose() {
    pwsp_error error;
    if (is_alive() && exchange_.first_time == PWSP_NO_TIME && kernel_count_ == 0) {
        if (exchange_.ended_count == exchange_.running_count) {
            is_finished_ = true;
            return NONE;
        }
        pwsp_deadlock_fail(&exchange_, &error);
        fail(error.status, place_, error.text);
    }
    if (!is_alive()) {
        is_over_ = true;
        return choose_to_unwind();
    }
    const pwsp_process *first = pwsp_exchange_next(PWSP_MOVES_IN_TIME, &exchange_);
    if (!first) {
        return NONE;  // until a kernel ends
    }
    const uint32_t next = first->index;
    Process &own = *bodies_[next];
    if (!own.thread && !start_thread(own, next)) {
        char name[PTOWSP_NAME_MAX + 16];
        ptowsp_output_buffer buffer = {name, sizeof name, 0};
        pwsp_deadlock_print_name(&at(next), ptowsp_output_to_buffer(&buffer));
        pwsp_error_set(&error, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                       "process %s: there is no thread for it beside those of %u processes that "
                       "are under way",
                       name, static_cast<unsigned>(threads_.size()));
        fail(error.status, own.place, error.text);
        return choose_to_unwind();
    }
    return next;
}

// The first process that has begun and not ended.
uint32_t Network::choose_to_unwind() {
    for (; unwound_ < processes_.size(); unwound_++) {
        if (bodies_[unwound_]->thread && !bodies_[unwound_]->is_in_kernel) {
            return unwound_;
        }
    }
    is_finished_ = kernel_count_ == 0;
    return NONE;
}

void Network::give_turn(uint32_t next) {
    turn_ = next;
    if (next != NONE) {
        pthread_cond_signal(&bodies_[next]->thread->wake);
    } else if (is_finished_) {
        pthread_cond_signal(&finished_);
    }
}

void Network::await_turn(uint32_t process) {
    while (turn_ != process) {
        pthread_cond_wait(&bodies_[process]->thread->wake, &mutex_);
    }
}

bool Network::run(uint32_t place) {
    if (!is_alive()) {
        return false;
    }
    place_ = place;
    pthread_mutex_lock(&mutex_);
    begin();
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
