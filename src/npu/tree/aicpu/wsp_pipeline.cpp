// The vocabulary of pipelines, over the network of processes: the target of their tasks, and the
// calls to the clock.

#include "wsp_pipeline.h"

#include <stdio.h>

#include <utility>

#include "wsp_scheduler.h"

namespace wsp {

namespace {

// The target of a process' tasks: a core, at once. A process is sequential, so scopes and edges
// make no difference, and elements that slots are loaded from have been written.
class ProcessTarget final : public Target {
  public:
    ProcessTarget(Scheduler &scheduler, Network &network, uint32_t process, uint64_t *load_count)
        : scheduler_(scheduler), network_(network), process_(process), load_count_(load_count) {
    }

    uint32_t process() const {
        return process_;
    }

    bool good() const override {
        return scheduler_.good();
    }
    void fail(ptowsp_status status, uint64_t index, const char *text) override {
        scheduler_.fail(status, index, text);
    }
    Submission *open() override {
        submission_.clear();
        return &submission_;
    }
    void submit(Submission *submission) override {
        uint64_t cycles = 0;
        network_.task_begins(process_);
        scheduler_.run_now(submission, &cycles);
        network_.task_ends(process_, submission->task.index, cycles, submission->place);
    }
    bool await_element(const Region &element) override {
        ++*load_count_;
        return good() && scheduler_.fetch(element);
    }

  private:
    Scheduler &scheduler_;
    Network &network_;
    const uint32_t process_;
    uint64_t *load_count_;
    Submission submission_ = Submission();
};

// The process that walks with a run. Emitted bodies have only such runs.
uint32_t process_of(Run &run) {
    return static_cast<const ProcessTarget &>(run.target()).process();
}

}  // namespace

// -- channels -------------------------------------------------------------------------------------

Port produces(const Channel &channel) {
    return {channel.number_, true};
}

Port consumes(const Channel &channel) {
    return {channel.number_, false};
}

void Channel::put(Run &process, u64 token, uint32_t place) const {
    network_.send(process_of(process), number_, token.value(), place);
}

bool Channel::receive(Run &process, i64 &token, uint32_t place, bool is_loop) const {
    uint64_t bits = 0;
    if (!network_.receive(process_of(process), number_, &bits, place, is_loop)) {
        return false;
    }
    token = i64::of_bits(bits);
    return true;
}

bool Channel::receive(Run &process, i64 &token, uint32_t place) const {
    return receive(process, token, place, true);
}

bool Channel::receive_one(Run &process, i64 &token, uint32_t place) const {
    return receive(process, token, place, false);
}

void Channel::close(Run &process, uint32_t) const {
    network_.close(process_of(process), number_);
}

void Channel::record(Run &process, uint32_t place) const {
    network_.send(process_of(process), number_, 0, place);
}

void Channel::wait(Run &process, uint32_t place) const {
    uint64_t bits = 0;
    network_.receive(process_of(process), number_, &bits, place);
}

// -- pipelines ------------------------------------------------------------------------------------

struct Pipeline::State final : public NetworkHost {
    State(Run &of, uint32_t which, uint32_t at)
        : run(of), scheduler(static_cast<Scheduler &>(of.target())), pipeline(which), place(at),
          network(*this, WSP_HAS_CLOCK != 0) {
    }

    bool good() const override {
        return run.good();
    }
    void report_error(ptowsp_status status, uint32_t at, const char *what) override {
        char text[800];
        snprintf(text, sizeof text, "%s: %s", scheduler.program().places[at], what);
        scheduler.fail(status, PTOWSP_NO_INDEX, text);
    }

    // Its accesses, each tensor once: with rows 0, the whole of it.
    void touch(uint32_t tensor, uint32_t access) {
        for (pwsp_tile_at &known : wholes) {
            if (known.tensor == tensor) {
                known.access |= access;
                return;
            }
        }
        wholes.push_back({tensor, 0, 0, access, 0, 0, 0});
    }

    // The override of all latencies; nullptr: without one.
    const uint64_t *latency() const {
        const uint32_t symbol = scheduler.program().latency_symbol;
        const wsp_bindings &bindings = run.bindings();
        const uint8_t *is_bound =
            reinterpret_cast<const uint8_t *>(static_cast<uintptr_t>(bindings.is_symbol_bound));
        const uint64_t *symbols =
            reinterpret_cast<const uint64_t *>(static_cast<uintptr_t>(bindings.symbols));
        return symbol && is_bound[symbol] ? &symbols[symbol] : nullptr;
    }

    void tell_clock();

    Run &run;
    Scheduler &scheduler;
    const uint32_t pipeline, place;
    Network network;
    List<pwsp_tile_at> wholes;
    List<uint32_t> after, before;  // explicit edges
    uint64_t load_count = 0;
};

Pipeline::Pipeline(Run &run, uint32_t pipeline, uint32_t place)
    : state_(new State(run, pipeline, place)) {
}

Pipeline::~Pipeline() = default;

void Pipeline::tile(uint32_t tensor, Access access) {
    state_->touch(tensor, access);
}

void Pipeline::loads(uint32_t tensor) {
    state_->touch(tensor, PWSP_TILE_LOADED);
}

void Pipeline::after(std::initializer_list<uint32_t> edges) {
    state_->after.append(edges);
}

void Pipeline::before(std::initializer_list<uint32_t> edges) {
    state_->before.append(edges);
}

Channel Pipeline::channel(const char *name, uint32_t, u64 depth, u64 latency, bool is_event) {
    const uint64_t *all = state_->latency();
    const uint64_t cycles = all ? *all : latency.value();
    return Channel(state_->network, state_->network.channel(name, depth.value(), cycles, is_event,
                                                            state_->place, all != nullptr));
}

void Pipeline::process(const char *name, uint32_t place, List<Port> ports,
                       std::function<void(Run &)> body) {
    State *state = state_.get();
    state->network.process(name, place, std::move(ports), [state, body](uint32_t number) {
        ProcessTarget target(state->scheduler, state->network, number, &state->load_count);
        Run run(state->run, target);
        body(run);
    });
}

void Pipeline::State::tell_clock() {
#if WSP_HAS_CLOCK
    const pwsp_exchange_sums all = network.sums();
    pwsp_pipeline_arrival told = pwsp_pipeline_arrival();
    told.whole.cycles = all.makespan;
    told.whole.node = place;
    told.whole.tiles = wholes.data();
    told.whole.tile_count = static_cast<uint32_t>(wholes.size());
    told.whole.after = after.data();
    told.whole.after_count = static_cast<uint32_t>(after.size());
    told.whole.before = before.data();
    told.whole.before_count = static_cast<uint32_t>(before.size());
    told.pipeline = pipeline;
    told.task_count = all.tasks;
    const PipelineSums sums = {all.busy, all.waited, load_count};
    scheduler.check_clock(scheduler.clock().pipeline(told, sums));
#endif
}

void Pipeline::run() {
    if (state_->scheduler.settle() && state_->network.run(state_->place)) {
        state_->tell_clock();
    }
}

}  // namespace wsp
