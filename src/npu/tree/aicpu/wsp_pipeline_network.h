// Processes that meet in channels, each with a time of its own: section 16 of ptowsp.h at run time.
// What expand.cpp is written in, over this, is wsp_pipeline.h.
//
//      Network network(host, true);
//      uint32_t loaded = network.channel("loaded", 2, 50, false);
//      network.process("load", 8, {{loaded, true}}, [&](uint32_t me) {
//          ...
//          network.task_begins(me);         // a kernel runs
//          network.task_ends(me, index, cycles, 9);
//          network.send(me, loaded, token, 10);
//      });
//      ...
//      network.run(7);
//
// Each process that is under way has a thread, so that its body is an ordinary function that blocks
// where it waits. One thread moves at a time, the one that has the turn:
//
//      ready ----turn----> moves ----> waits (full, empty) ----woken----> ready ... ended
//        ^                   |
//        +-- others are before it in time
//
// Of all that can go on it is the process with the smallest time, of several the one declared first
// (replicas in their order). Who waits keeps the time at which it arrived. So results are a
// function of the network alone, whatever the system does with threads. A process that has ended
// leaves its thread to the next that begins: there are as many as processes that are under way at
// once.
//
// Without time (is_timed false: a device, where kernels take the time that they take) the turn is
// given away while a kernel runs, so that kernels of several processes run side by side; a process'
// time is then the order in which its last kernel ended, and latencies are 0.

#ifndef WSP_NETWORK_H
#define WSP_NETWORK_H

#include <pthread.h>

#include <functional>
#include <memory>
#include <vector>

#include "wsp_abi.h"

namespace wsp {

// Whom errors are told. Only one thread at a time calls it, but for those in which kernels run.
class NetworkHost {
  public:
    virtual ~NetworkHost() = default;
    virtual bool good() const = 0;
    virtual void report_error(ptowsp_status status, uint32_t place, const char *text) = 0;
};

struct Port {
    uint32_t channel;
    bool is_produced;
};

class Network {
  public:
    static constexpr size_t STACK_SIZE = 256 * 1024;  // of a process' thread

    Network(NetworkHost &host, bool is_timed);
    ~Network();
    Network(const Network &) = delete;
    Network &operator=(const Network &) = delete;

    // Threads that there may be at once; without that, as many as the system gives.
    void set_thread_max(uint32_t count) {
        thread_max_ = count;
    }

    // Names are kept by the caller. An event is a channel of depth 0 whose stream has no end.
    uint32_t channel(const char *name, uint64_t depth, uint64_t latency, bool is_event,
                     uint32_t place);

    // Several with one name, one after another, are replicas. The body gets the process' number.
    uint32_t process(const char *name, uint32_t place, std::vector<Port> ports,
                     std::function<void(uint32_t)> body);

    // Runs all processes to their end. False with an error, when all threads have ended as well.
    bool run(uint32_t place);
    uint64_t makespan() const {
        return makespan_;
    }
    uint64_t task_count() const {
        return task_count_;
    }
    uint64_t busy_cycles() const {  // of tasks, in sum
        return busy_cycles_;
    }
    uint64_t channel_cycles() const {  // waited at channels, in sum
        return channel_cycles_;
    }

    // For the body of a process, with its number. After an error they do nothing: bodies ask
    // whether all is good and end. `place` is for errors.
    void send(uint32_t process, uint32_t channel, uint64_t token, uint32_t place);
    // False: at the end of the stream, or after an error.
    bool receive(uint32_t process, uint32_t channel, uint64_t *token, uint32_t place);
    void close(uint32_t process, uint32_t channel);
    // Around a kernel.
    void task_begins(uint32_t process);
    void task_ends(uint32_t process, uint64_t index, uint64_t cycles, uint32_t place);

  private:
    struct Thread;

    enum State { UNBORN, READY, MOVES, FULL, EMPTY, IN_KERNEL, ENDED };

    struct OpenPort {
        uint32_t channel;
        bool is_produced, is_closed;
    };

    struct Process {
        const char *name = nullptr;
        uint32_t index = 0, replica = 0, replica_count = 1, first_replica = 0, place = 0;
        State state = UNBORN;
        uint64_t time = 0;
        uint64_t token = 0;        // that it sends, or has received
        bool has_met = false;      // another process has done what it waited for
        uint32_t channel = 0;      // that it waits at
        Process *after = nullptr;  // the next in a line
        Thread *thread = nullptr;  // when it is under way
        uint32_t mark = 0;         // for searches
        std::vector<OpenPort> ports;
        std::function<void(uint32_t)> body;
    };

    // Processes that wait, by time and then number.
    struct Line {
        Process *first = nullptr, *last = nullptr;
    };

    // Token k has place k & mask of the ring: its time there (of its send as long as it is pending,
    // and then, until another token takes the place, of its receive), its value behind all times.
    struct Channel {
        const char *name = nullptr;
        bool is_event = false;
        uint64_t depth = 0, latency = 0;
        std::unique_ptr<uint64_t[]> ring;
        uint64_t mask = 0, sent = 0, received = 0, close_time = 0;
        uint32_t producers = 0;  // that have not closed it
        Line senders, receivers;
        Process *first_producer = nullptr, *first_consumer = nullptr;  // of those that are stuck
    };

    struct Thread {
        Network *network = nullptr;
        pthread_t id;
        pthread_cond_t wake;
        Process *process = nullptr;  // whose body it runs, or is to run
    };

    static void *thread_main(void *thread);
    void serve(Thread &thread);
    bool start_thread(Process &process);
    void give_turn(Process *next);
    Process *choose();
    Process *choose_to_unwind();
    void pass_on() {
        give_turn(choose());
    }
    void await_turn(Process &me);

    bool is_alive() const {
        return !is_over_ && host_.good();
    }
    static bool is_before(const Process &a, const Process &b);
    void push(Process &process);
    void yield(Process &me);
    static void enqueue(Line &line, Process &process);
    static Process &dequeue(Line &line);
    void wake_first(Line &line);
    bool wait(Process &me, uint32_t channel, State state);

    void fail(ptowsp_status status, uint32_t place, const char *format, ...)
#if defined(__GNUC__)
        __attribute__((format(printf, 4, 5)))
#endif
        ;
    void wait_until(Process &process, uint64_t time);
    OpenPort *find_port(Process &process, uint32_t channel, bool is_produced);
    void meet(Process &sender, Process &receiver, Channel &channel, uint32_t place);
    void close_port(const Process &process, OpenPort &port);
    void end(Process &process);

    static bool waits(const Process &p) {
        return p.state == FULL || p.state == EMPTY;
    }
    void find_firsts();
    Process *waits_for(const Process &process) const;
    Process *find_circle();
    void append_name(char *text, size_t size, const Process &process) const;
    void append_hint(char *text);
    void fail_stuck();

    NetworkHost &host_;
    const bool is_timed_;
    uint32_t thread_max_ = UINT32_MAX;
    uint32_t place_ = 0;
    std::vector<std::unique_ptr<Process>> processes_;
    std::vector<std::unique_ptr<Channel>> channels_;
    std::vector<std::unique_ptr<Thread>> threads_;
    std::vector<Thread *> idle_;
    std::vector<Process *> ready_;  // a heap
    // Held by whoever moves; all that is not constant while processes run belongs to it.
    pthread_mutex_t mutex_;
    pthread_cond_t finished_;
    Process *turn_ = nullptr;
    uint32_t ended_count_ = 0, kernel_count_ = 0;
    uint32_t unwound_ = 0;      // processes before it have ended, were never begun or run a kernel
    bool is_over_ = false;      // after an error: processes under way end
    bool is_finished_ = false;  // and nobody moves any more
    uint64_t arrival_ = 0;      // kernels that have ended, without time
    uint64_t makespan_ = 0, task_count_ = 0, busy_cycles_ = 0, channel_cycles_ = 0;
};

}  // namespace wsp

#endif
