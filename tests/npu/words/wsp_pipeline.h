// Words of pipelines: processes are threads that wait for each other at channels and know no time.
// So what they do is what it should be only where each channel has one sender and one receiver.

#ifndef WSP_PIPELINE_H
#define WSP_PIPELINE_H

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "wsp_expand.h"

namespace wsp {

struct Port {
    uint32_t channel;
    bool is_produced;
};

struct Queue {
    uint32_t id;
    uint64_t depth;
    uint32_t producer_count;
    uint64_t sent, received;
    std::deque<uint64_t> tokens;
};

struct Meeting {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Queue> queues;
};

class Channel {
  public:
    Channel(Meeting &meeting, Queue &queue) : meeting_(meeting), queue_(queue) {
    }
    void send(Run &process, i64 token, uint32_t place) const {
        send_bits(process, token.bits(), place);
    }
    void send(Run &process, u64 token, uint32_t place) const {
        send_bits(process, token.value(), place);
    }
    void send(Run &process, bool token, uint32_t place) const {
        send_bits(process, token, place);
    }
    template <typename T> void send(Run &process, T token, uint32_t place) const = delete;
    bool receive(Run &process, i64 &token, uint32_t place) const {
        process.at(place);
        std::unique_lock<std::mutex> lock(meeting_.mutex);
        meeting_.changed.wait(lock,
                              [&] { return !queue_.tokens.empty() || queue_.producer_count == 0; });
        if (queue_.tokens.empty()) {
            return false;
        }
        token = i64::of_bits(queue_.tokens.front());
        queue_.tokens.pop_front();
        queue_.received++;
        meeting_.changed.notify_all();
        return true;
    }
    bool receive_one(Run &process, i64 &token, uint32_t place) const {
        return receive(process, token, place);
    }
    void close(Run &process, uint32_t place) const {
        process.at(place);
        process.close(queue_.id);
    }
    void record(Run &process, uint32_t place) const {
        send_bits(process, 0, place);
    }
    void wait(Run &process, uint32_t place) const {
        i64 token;
        receive(process, token, place);
    }
    uint32_t id() const {
        return queue_.id;
    }

  private:
    void send_bits(Run &process, uint64_t token, uint32_t place) const {
        process.at(place);
        std::unique_lock<std::mutex> lock(meeting_.mutex);
        const uint64_t number = queue_.sent++;
        meeting_.changed.wait(
            lock, [&] { return number < queue_.received + (queue_.depth ? queue_.depth : 1); });
        queue_.tokens.push_back(token);
        meeting_.changed.notify_all();
        meeting_.changed.wait(lock, [&] { return queue_.depth || queue_.received > number; });
    }
    Meeting &meeting_;
    Queue &queue_;
};

inline Port produces(const Channel &channel) {
    return Port{channel.id(), true};
}
inline Port consumes(const Channel &channel) {
    return Port{channel.id(), false};
}

class Pipeline {
  public:
    Pipeline(Run &run, uint32_t pipeline, uint32_t place) : run_(run) {
        run.at(place);
        run.host()->pipeline(run.host()->user, pipeline);
    }
    void tile(uint32_t, Access) {
    }
    void loads(uint32_t) {
    }
    void after(std::initializer_list<uint32_t>) {
    }
    void before(std::initializer_list<uint32_t>) {
    }
    Channel channel(const char *, uint32_t channel, u64 depth, u64, bool) {
        meeting_.queues.push_back(Queue{channel, depth.value(), 0, 0, 0, {}});
        return Channel(meeting_, meeting_.queues.back());
    }
    void process(const char *name, uint32_t place, std::initializer_list<Port> ports,
                 std::function<void(Run &)> body) {
        run_.at(place);
        processes_.push_back(Body{name, ports, body});
        for (const Port &port : ports) {
            queue(port.channel).producer_count += port.is_produced;
        }
    }
    void run() {
        std::vector<std::thread> threads;
        for (const Body &body : processes_) {
            threads.emplace_back([this, &body] {
                Run process(run_, body.name);
                std::vector<Port> open = body.ports;
                process.close = [this, &open](uint32_t channel) { close(open, channel); };
                body.body(process);
                for (const Port &port : body.ports) {
                    close(open, port.channel);
                }
            });
        }
        for (std::thread &thread : threads) {
            thread.join();
        }
    }

  private:
    struct Body {
        const char *name;
        std::vector<Port> ports;
        std::function<void(Run &)> body;
    };
    Queue &queue(uint32_t id) {
        for (Queue &queue : meeting_.queues) {
            if (queue.id == id) {
                return queue;
            }
        }
        return meeting_.queues.front();
    }
    void close(std::vector<Port> &open, uint32_t channel) {
        std::lock_guard<std::mutex> lock(meeting_.mutex);
        for (Port &port : open) {
            if (port.channel == channel && port.is_produced) {
                port.is_produced = false;
                queue(channel).producer_count--;
            }
        }
        meeting_.changed.notify_all();
    }
    Run &run_;
    Meeting meeting_;
    std::vector<Body> processes_;
};

}  // namespace wsp

#endif
