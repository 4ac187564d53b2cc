// Processes that meet in channels, each with a time of its own: section 25 of ptowsp.h at run time.
// wsp_pipeline.h is the layer above it that expand.cpp uses.
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
// Each process under way has a thread, so its body is an ordinary function that blocks where it
// waits. One thread moves at a time: the one with the turn, whose process is first in time. The
// library defines the order of processes and the effect of sends and receives (pwsp_exchange in
// wsp_core.h). So results are a function of the network alone, whatever the system does with
// threads. A process that has ended leaves its thread to the next that begins: there are as many
// threads as processes under way at once.
//
// Without time (is_timed false: a device, where kernels take their real time) the turn is given
// away while a kernel runs, so kernels of several processes run side by side. A process' time is
// then the order in which its last kernel ended, and latencies are 0.

#ifndef WSP_NETWORK_H
#define WSP_NETWORK_H

#include "wsp_core.h"
#include "wsp_list.h"

#include <pthread.h>

#include <functional>
#include <memory>

namespace wsp {

// Receives errors. Only one thread at a time calls it, except threads that run kernels.
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

    // The caller keeps the names. An event is a channel of depth 0 whose stream has no end.
    // by_symbol: a symbol, which overrides all latencies, has set this one.
    uint32_t channel(const char *name, uint64_t depth, uint64_t latency, bool is_event,
                     uint32_t place, bool by_symbol = false);

    // Consecutive processes of one name are replicas. The body gets the process' number.
    uint32_t process(const char *name, uint32_t place, List<Port> ports,
                     std::function<void(uint32_t)> body);

    // Runs all processes to their end. False with an error, when all threads have ended as well.
    bool run(uint32_t place);
    pwsp_exchange_sums sums() const {
        return pwsp_exchange_sum(&exchange_);
    }

    // For the body of a process, with its number. After an error they do nothing: bodies check for
    // errors and end. `place` is for errors.
    void send(uint32_t process, uint32_t channel, uint64_t token, uint32_t place);
    // False: at the end of the stream, or after an error. is_loop: a loop that receives until then.
    bool receive(uint32_t process, uint32_t channel, uint64_t *token, uint32_t place,
                 bool is_loop = false);
    void close(uint32_t process, uint32_t channel);
    // Around a kernel.
    void task_begins(uint32_t process);
    void task_ends(uint32_t process, uint64_t index, uint64_t cycles, uint32_t place);

  private:
    struct Thread;

    // The state of a process beside its place in the exchange.
    struct Process {
        uint32_t place = 0;
        bool is_in_kernel = false;
        Thread *thread = nullptr;  // when it is under way
        List<pwsp_port> ports;
        List<uint8_t> closed;
        std::function<void(uint32_t)> body;
    };

    struct Thread {
        Network *network = nullptr;
        pthread_t id;
        pthread_cond_t wake;
        uint32_t process = NONE;  // the process whose body it runs, or is to run
    };

    static constexpr uint32_t NONE = UINT32_MAX;

    static void *thread_main(void *thread);
    void serve(Thread &thread);
    bool start_thread(Process &process, uint32_t number);
    void give_turn(uint32_t next);
    uint32_t choose();
    uint32_t choose_to_unwind();
    void pass_on() {
        give_turn(choose());
    }
    void await_turn(uint32_t process);

    bool is_alive() const {
        return !is_over_ && host_.good();
    }
    pwsp_process &at(uint32_t process) {
        return exchange_.processes[process];
    }
    void push(uint32_t process);
    void yield(uint32_t process);
    bool finish(uint32_t process, pwsp_exchanged what, uint32_t place);
    uint32_t find_port(uint32_t process, uint32_t channel);
    void begin();
    void end(uint32_t process);
    void fail(ptowsp_status status, uint32_t place, const char *text);

    NetworkHost &host_;
    const bool is_timed_;
    uint32_t place_ = 0;
    pwsp_memory memory_;
    pwsp_exchange exchange_;
    List<pwsp_channel> channels_;
    List<pwsp_process> processes_;
    List<std::unique_ptr<Process>> bodies_;  // by process
    List<std::unique_ptr<Thread>> threads_;
    List<Thread *> idle_;
    // Held by the moving thread; protects all that is not constant while processes run.
    pthread_mutex_t mutex_;
    pthread_cond_t finished_;
    uint32_t turn_ = NONE;
    uint32_t kernel_count_ = 0;
    uint32_t unwound_ = 0;      // processes before it have ended, were never begun or run a kernel
    bool is_over_ = false;      // after an error: processes under way end
    bool is_finished_ = false;  // and no thread moves any more
    uint64_t arrival_ = 0;      // kernels that have ended, without time
};

}  // namespace wsp

#endif
