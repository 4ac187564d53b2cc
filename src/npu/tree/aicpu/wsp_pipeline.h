// Processes and channels (section 25 of ptowsp.h), in the form that expand.cpp uses:
//
//      Pipeline pipeline(run, 0, 7);                  // which pipeline, its place
//      pipeline.tile(TENSOR_x, READ);                 // whole tensors that its tasks touch
//      Channel v_loaded = pipeline.channel("loaded", CHANNEL_loaded, 2, 50, false);
//      pipeline.process("load", 8, {produces(v_loaded)}, [=](Run &r_load) {
//          for (i64 v_i = 0; v_i < r_load.size(AXIS_tiles) && r_load.good(); v_i++) {
//              Task task(r_load, KERNEL_load, 9);
//              ...
//              task.submit();                        // returns when it is done: its process' time
//              v_loaded.send(r_load, v_i, 10);       // has moved
//          }
//      });
//      for (i64 v_w = 0; v_w < run.size(AXIS_workers) && run.good(); v_w++) {
//          pipeline.process("compute", 11, {consumes(v_loaded)}, [=](Run &r_compute) {
//              for (i64 v_t; v_loaded.receive(r_compute, v_t, 12);) {  // `if (...receive_one(...))`
//                  ...
//              }
//          });
//      }
//      pipeline.run();
//
// Everything before the pipeline is done when its processes begin. They have a time of their own,
// by which they take turns; kernels are called in its order. To the clock of the run the pipeline
// is one task, as long as its slowest process. Each process begins with copies of the slots, and
// sets only its own.
//
// On the device kernels take their real time. Processes take turns only where they communicate, so
// kernels of several processes run side by side, and channels have no latency.

#ifndef WSP_PIPELINE_H
#define WSP_PIPELINE_H

#include <functional>
#include <initializer_list>
#include <memory>

#include "wsp_expand.h"
#include "wsp_pipeline_network.h"
#include "wsp_list.h"

namespace wsp {

// Operations of a process, `process` being its run. After an error they do nothing.
class Channel {
  public:
    // A token is i64, u64 or bool.
    template <typename T> void send(Run &process, T token, uint32_t place) const {
        put(process, to_u64(token), place);
    }
    // False: the end of the stream, which the first of these waits for.
    bool receive(Run &process, i64 &token, uint32_t place) const;
    bool receive_one(Run &process, i64 &token, uint32_t place) const;
    void close(Run &process, uint32_t place) const;
    void record(Run &process, uint32_t place) const;  // events
    void wait(Run &process, uint32_t place) const;

  private:
    friend class Pipeline;
    friend Port produces(const Channel &channel);
    friend Port consumes(const Channel &channel);

    Channel(Network &network, uint32_t number) : network_(network), number_(number) {
    }
    void put(Run &process, u64 token, uint32_t place) const;
    bool receive(Run &process, i64 &token, uint32_t place, bool is_loop) const;

    Network &network_;
    uint32_t number_;
};

Port produces(const Channel &channel);
Port consumes(const Channel &channel);

class Pipeline {
  public:
    Pipeline(Run &run, uint32_t pipeline, uint32_t place);
    ~Pipeline();
    Pipeline(const Pipeline &) = delete;
    Pipeline &operator=(const Pipeline &) = delete;

    // The pipeline as its surroundings see it: a task, on whole tensors.
    void tile(uint32_t tensor, Access access);
    void loads(uint32_t tensor);  // its processes load slots from it; it may have a tile, too
    void after(std::initializer_list<uint32_t> edges);
    void before(std::initializer_list<uint32_t> edges);

    // The caller keeps the names.
    Channel channel(const char *name, uint32_t channel, u64 depth, u64 latency, bool is_event);
    void process(const char *name, uint32_t place, List<Port> ports,
                 std::function<void(Run &)> body);

    // Runs all processes to their end, or to an error.
    void run();

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace wsp

#endif
