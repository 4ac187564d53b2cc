// Processes of emitted trees (src/npu/tree/aicpu/wsp_pipeline_network.h): networks written by hand,
// with numbers from paper. Then threads: few of them, many of them, and kernels that run side by side
// where there is no time. Random ones are in npu_pipeline_test.cpp.

#include <cerrno>
#include <climits>
#include <pthread.h>
#include <sstream>

// What the system gives: so many threads, so many sets of attributes; and each with a stack, or not.
static struct {
    int threads, attributes;
    bool has_stacks;
} system_gives = {INT_MAX, INT_MAX, true};

static int system_attr_init(pthread_attr_t *attributes) {
    return system_gives.attributes-- > 0 ? pthread_attr_init(attributes) : ENOMEM;
}

static int system_attr_setstacksize(pthread_attr_t *attributes, size_t size) {
    return system_gives.has_stacks ? pthread_attr_setstacksize(attributes, size) : EINVAL;
}

static int system_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*main)(void *),
                         void *argument) {
    return system_gives.threads-- > 0 ? pthread_create(thread, attributes, main, argument) : EAGAIN;
}

#define pthread_attr_init         system_attr_init
#define pthread_attr_setstacksize system_attr_setstacksize
#define pthread_create            system_create
#include "src/npu/tree/aicpu/wsp_pipeline_turns.cpp"
#undef pthread_attr_init
#undef pthread_attr_setstacksize
#undef pthread_create

#include "test.h"

#include "lane_fixture.h"

#include <atomic>
#include <map>
#include <string>
#include <vector>

using wsp::Network;

enum { PLACE = 7 };

namespace {

class Host : public wsp::NetworkHost {
  public:
    bool good() const override {
        return status.load() == PTOWSP_OK;
    }
    void report_error(ptowsp_status error, uint32_t at, const char *what) override {
        int expected = PTOWSP_OK;
        if (status.compare_exchange_strong(expected, error)) {
            place = at;
            text = what;
        }
    }

    std::atomic<int> status{PTOWSP_OK};
    uint32_t place = 0;
    std::string text;
};

// A network with a log of what its bodies note. Bodies are functions, or scripts of words:
//
//      task:10   send:c:7   get:c   close:c   note:7   at:5 (the place of what follows)
//      fails (a kernel)   3( ... )   each:c( ... ) (to the end of the stream)
//
// where a number may also be i, of the loop, t, the last token, got, whether there was one, or good; or a
// sum: 100+t.
struct Lab {
    explicit Lab(bool is_timed = true) : network(host, is_timed) {
    }

    void channel(const char *name, uint64_t depth, uint64_t latency, bool is_event = false) {
        channels[name] = network.channel(name, depth, latency, is_event, 1);
    }
    // Ports: "<c" is consumed, ">c" produced.
    void process(const char *name, uint32_t place, const std::string &ports,
                 const std::string &script) {
        wsp::List<wsp::Port> list;
        std::istringstream words(ports);
        for (std::string port; words >> port;) {
            list.push_back({channels.at(port.substr(1)), port[0] == '>'});
        }
        network.process(name, place, list, [this, script](uint32_t me) {
            Walk walk = {me, 1, 0, 0, false};
            run(walk, script.c_str());
        });
    }

    void task(uint32_t me, uint64_t cycles) {
        network.task_begins(me);
        network.task_ends(me, tasks++, cycles, 3);
    }
    void note(int64_t value) {
        log.push_back(value);
    }

    Host host;
    Network network;
    uint64_t tasks = 0;
    std::vector<int64_t> log;
    std::map<std::string, uint32_t> channels;

  private:
    struct Walk {
        uint32_t me, place;
        uint64_t i, t;
        bool got;
    };

    uint64_t value(const Walk &w, const std::string &text) const {
        const size_t plus = text.find('+');
        return plus != std::string::npos
                   ? value(w, text.substr(0, plus)) + value(w, text.substr(plus + 1))
               : text == "i"    ? w.i
               : text == "t"    ? w.t
               : text == "got"  ? w.got
               : text == "good" ? host.good()
                                : std::stoull(text);
    }

    // Up to the end, or the one of a loop.
    void run(Walk &w, const char *at) {
        while (*(at += strspn(at, " ")) && *at != ')') {
            char word[24] = "", first[24] = "", second[24] = "";
            sscanf(at, "%23[^:( )]:%23[^:( )]:%23[^:( )]", word, first, second);
            at += strcspn(at, " (");
            if (*at == '(') {
                const bool is_each = strcmp(word, "each") == 0;
                const uint64_t count = is_each ? UINT64_MAX : value(w, word);
                for (w.i = 0; w.i < count && (!is_each || get(w, first, true)); w.i++) {
                    run(w, at + 1);
                }
                at = strchr(at, ')') + 1;  // loops are not in loops
            } else {
                walk(w, word, first, second);
            }
        }
    }

    bool get(Walk &w, const std::string &channel, bool is_loop) {
        w.got = network.receive(w.me, channels.at(channel), &w.t, w.place, is_loop);
        return w.got;
    }

    void walk(Walk &w, const std::string &word, const std::string &first,
              const std::string &second) {
        if (word == "task") {
            task(w.me, value(w, first));
        } else if (word == "send") {
            network.send(w.me, channels.at(first), value(w, second), w.place);
        } else if (word == "get") {
            get(w, first, false);
        } else if (word == "close") {
            network.close(w.me, channels.at(first));
        } else if (word == "note") {
            note(static_cast<int64_t>(value(w, first)));
        } else if (word == "at") {
            w.place = static_cast<uint32_t>(value(w, first));
        } else {
            assert_string_equal(word.c_str(), "fails");
            network.task_begins(w.me);
            host.report_error(PTOWSP_KERNEL_FAILED, 9, "kernel k failed");
            network.task_ends(w.me, 1, 1, 9);
        }
    }
};

void expect_ok(Lab &lab, uint64_t makespan) {
    if (!lab.network.run(PLACE)) {
        fail_msg("%s", lab.host.text.c_str());
    }
    assert_int_equal(lab.network.sums().makespan, makespan);
}

void expect_log(const Lab &lab, const std::vector<int64_t> &expected) {
    if (lab.log != expected) {
        for (int64_t value : lab.log) {
            print_error("%lld ", static_cast<long long>(value));
        }
        fail_msg("%s", "has been noted");
    }
}

void expect_error(Lab &lab, ptowsp_status status, uint32_t place, const char *text) {
    assert_false(lab.network.run(PLACE));
    assert_int_equal(lab.host.status, status);
    assert_string_equal(lab.host.text.c_str(), text);
    assert_int_equal(lab.host.place, place);
}

// -- on paper -------------------------------------------------------------------------------------

// A source of 3 tokens that takes `work` cycles for each, and a consumer that takes `rest`.
void pair_is(uint64_t depth, uint64_t latency, int work, int rest, uint64_t makespan) {
    Lab lab;
    lab.channel("c", depth, latency);
    lab.process("load", 1, ">c", "3( task:" + std::to_string(work) + " send:c:i )");
    lab.process("use", 2, "<c", "each:c( note:t task:" + std::to_string(rest) + " )");
    expect_ok(lab, makespan);
    expect_log(lab, {0, 1, 2});
}

TEST(npu_network__gives_the_numbers_on_paper) {
    // Depth 1, latency 5, work 10 and 100:
    //   token 0: s = 10,                  r = max(0, 15) = 15     then busy to 115
    //   token 1: s = max(20, r_0) = 20,   r = max(115, 25) = 115  then busy to 215
    //   token 2: s = max(30, r_1) = 115,  r = max(215, 120) = 215 then busy to 315
    pair_is(1, 5, 10, 100, 315);
    // Depth 0, latency 5: r_0 = max(0, 10 + 5) = 15, busy to 115; offered at 25, r_1 = 115; then
    // r_2 = 215, busy to 315.
    pair_is(0, 5, 10, 100, 315);
    // A slow source: r = 100, 200, 300; the last is busy to 310.
    pair_is(2, 0, 100, 10, 310);
    // Latency 50: r = 150, 250, 350.
    pair_is(2, 50, 100, 10, 360);
    // s = 10, 20; r_0 = 60, busy to 70; s_2 = max(30, r_0) = 60; r_1 = 70, busy to 80; r_2 = 110.
    pair_is(2, 50, 10, 10, 120);
}

// Two senders offer at time 10 and one at 5, at depth 0: the receiver, which comes at 20, meets
// that of 5, and then the first declared of the others.
TEST(npu_network__meets_who_arrived_first_and_of_two_the_first_declared) {
    Lab lab;
    lab.channel("c", 0, 0);
    lab.process("send", 1, ">c", "task:10 send:c:0");
    lab.process("send", 1, ">c", "task:10 send:c:1");
    lab.process("send", 1, ">c", "task:5 send:c:2");
    lab.process("take", 2, "<c", "task:20 each:c( note:t task:1 )");
    // at 20, 21, 22; then the end at 23: the last close is at 22
    expect_ok(lab, 23);
    expect_log(lab, {2, 0, 1});
}

// Receivers that have waited since 3, 3 and 7 get tokens in that order, of two at the same time the
// first declared. All of them go on at 12, in the order of declaration.
TEST(npu_network__serves_receivers_in_the_order_of_arrival) {
    Lab lab;
    lab.channel("c", 4, 2);
    lab.process("take", 2, "<c", "task:7 get:c note:t");
    lab.process("take", 2, "<c", "task:3 get:c note:100+t");
    lab.process("take", 2, "<c", "task:3 get:c note:200+t");
    lab.process("send", 1, ">c", "task:10 3( send:c:i )");
    expect_ok(lab, 12);
    expect_log(lab, {2, 100, 201});
}

// The end of the stream is seen at the time of the last close: at 30, though the process that
// closes goes on to 130. Closing again does nothing.
TEST(npu_network__carries_the_time_of_the_last_close) {
    Lab lab;
    lab.channel("c", 2, 5);
    lab.process("a", 1, ">c", "task:10 send:c:1");  // received at 15
    lab.process("b", 1, ">c", "task:30 close:c close:c task:100 note:130");
    lab.process("use", 2, "<c", "each:c( note:15 ) task:70 note:100");
    expect_ok(lab, 130);
    expect_log(lab, {15, 100, 130});
}

// A double buffer whose consumer gives places back: tokens 0, 1 are free; work 10 and 30.
//   fill at 0-10, 10-20; full r = 10, 40: used 10-40, 40-70; free tokens at 40, 70: filled again
//   at 40-50 and 70-80, used 70-100, 100-130.
TEST(npu_network__runs_rings_of_places) {
    Lab lab;
    lab.channel("empty", 2, 0);
    lab.channel("full", 2, 0);
    lab.process("fill", 1, "<empty >full", "4( get:empty task:10 send:full:t ) each:empty( )");
    lab.process("use", 2, "<full >empty",
                "send:empty:0 send:empty:1 4( get:full task:30 note:t send:empty:t )");
    expect_ok(lab, 130);
    expect_log(lab, {0, 1, 0, 1});
}

// record at 10 meets wait at 25, and both go on at 25 (events have latency 0, but for the symbol:
// then at max(10 + 40, 25)).
TEST(npu_network__lets_events_meet) {
    for (uint64_t latency = 0; latency <= 40; latency += 40) {
        Lab lab;
        lab.channel("done", 0, latency, true);
        lab.process("a", 1, ">done", "task:10 send:done:0 task:100");
        lab.process("b", 1, "<done", "task:25 get:done note:got task:1");
        expect_ok(lab, latency ? 150 : 125);
        expect_log(lab, {1});
    }
}

// -- errors ---------------------------------------------------------------------------------------

// Both receive first: a number of tokens, or all that the other one sends. As the advice says, b
// then sends 1 before, and of two that read to the end, it ends by itself.
TEST(npu_network__advises_two_that_receive_first) {
    for (bool is_loop : {false, true}) {
        for (bool is_advised : {false, true}) {
            Lab lab;
            lab.channel("x", 1, 0);
            lab.channel("y", 1, 0);
            lab.process("a", 1, "<x >y",
                        is_loop ? "task:5 each:x( send:y:t ) note:good"
                                : "task:5 3( get:x send:y:t ) note:good");
            lab.process("b", 1, "<y >x",
                        is_advised ? "task:5 send:x:7 3( get:y send:x:t ) note:good"
                        : is_loop  ? "task:5 each:y( send:x:t ) note:good"
                                   : "task:5 3( get:y send:x:t ) note:good");
            if (is_advised) {
                expect_ok(lab, 5);
                expect_log(lab, {1, 1});
                continue;
            }
            expect_error(lab, PTOWSP_STUCK, PLACE,
                         is_loop ? "stuck at cycle 5: a finds x empty, b finds y empty; no token "
                                   "was ever sent to channel x: b has to send 1 before it first "
                                   "receives; and one of them has to end by itself, as each reads "
                                   "a stream to the end that another one writes"
                                 : "stuck at cycle 5: a finds x empty, b finds y empty; no token "
                                   "was ever sent to channel x: b has to send 1 before it first "
                                   "receives");
            expect_log(lab, {0, 0});
        }
    }
}

TEST(npu_network__says_who_is_stuck) {
    {
        Lab lab;  // two channels filled one after the other, taken the other way around
        lab.channel("x", 1, 0);
        lab.channel("y", 0, 0);
        lab.process("a", 1, ">x >y", "2( task:4 send:x:i ) send:y:1");
        for (int replica = 0; replica < 2; replica++) {
            lab.process("b", 2, "<x <y", "get:y get:x");
        }
        expect_error(lab, PTOWSP_STUCK, PLACE,
                     "stuck at cycle 8: a finds x full, b[0] finds y empty, b[1] finds y empty; a "
                     "depth of more than 1 for channel x would let a go on");
    }
    {
        Lab lab;  // the consumer ends after one
        lab.channel("x", 1, 0);
        lab.process("a", 1, ">x", "9( send:x:i )");
        lab.process("b", 2, "<x", "get:x");
        expect_error(lab, PTOWSP_STUCK, PLACE,
                     "stuck at cycle 0: a finds x full; all consumers of channel x have ended: one "
                     "has to receive until the end of the stream, or a depth of more than 1 for "
                     "channel x would let a go on");
    }
    {
        Lab lab;  // nobody records any more
        lab.channel("e", 0, 0, true);
        lab.process("a", 1, ">e", "task:10");
        lab.process("b", 2, "<e", "get:e");
        expect_error(lab, PTOWSP_STUCK, PLACE,
                     "stuck at cycle 0: b finds e empty; event e needs as many waits as records");
    }
}

TEST(npu_network__refuses_what_channels_cannot_be) {
    struct {
        uint64_t depth, latency;
        ptowsp_status status;
        const char *text;
    } const cases[] = {
        {PTOWSP_CHANNEL_DEPTH_MAX + 1, 0, PTOWSP_LIMIT_EXCEEDED,
         "channel c: a depth of 1048577, more than 1048576"},
        {UINT64_MAX, 0, PTOWSP_LIMIT_EXCEEDED,
         "channel c: a depth of 18446744073709551615, more than 1048576"},
        {1, UINT64_MAX, PTOWSP_INVALID_PARAMS, "channel c: a latency of -1 cycles"},
    };
    for (const auto &c : cases) {
        Lab lab;
        lab.network.channel("c", c.depth, c.latency, false, 4);
        lab.network.process("a", 1, {}, [&](uint32_t) { lab.note(1); });
        expect_error(lab, c.status, 4, c.text);
        expect_log(lab, {});
    }
    Lab lab;
    lab.network.channel("c", PTOWSP_CHANNEL_DEPTH_MAX, PTOWSP_CYCLES_MAX, false, 4);
    expect_ok(lab, 0);
}

TEST(npu_network__ends_after_errors) {
    {
        Lab lab;
        lab.channel("c", 1, 0);
        lab.process("a", 1, ">c", "close:c at:5 send:c:1");
        lab.process("b", 1, "<c", "get:c");
        expect_error(lab, PTOWSP_INVALID_PARAMS, 5, "it sends to channel c after closing it");
    }
    {
        Lab lab;  // time runs out
        lab.channel("c", 1, PTOWSP_CYCLES_MAX);
        lab.process("a", 1, ">c", "task:1 at:5 send:c:1");
        lab.process("b", 1, "<c", "at:6 get:c");
        expect_error(lab, PTOWSP_LIMIT_EXCEEDED, 6,
                     "a token of channel c arrives after 2^63 - 1 cycles");
    }
    {
        Lab lab;
        lab.process("a", 1, "", "task:9223372036854775807 note:1 task:1");
        expect_error(lab, PTOWSP_LIMIT_EXCEEDED, 3, "task 1 ends after 2^63 - 1 cycles");
        expect_log(lab, {1});
    }
    {
        Lab lab;  // a kernel fails while others wait, are ready, or have not begun
        lab.channel("c", 1, 0);
        lab.process("waits", 1, "<c", "get:c note:got");
        lab.process("ready", 1, ">c", "task:10 note:10");
        lab.process("fails", 1, "", "fails send:c:1 note:20");
        lab.process("later", 1, "", "note:30");
        expect_error(lab, PTOWSP_KERNEL_FAILED, 9, "kernel k failed");
        expect_log(lab, {20, 0, 10});
    }
}

// -- threads --------------------------------------------------------------------------------------

// Each process ends before the next begins: one thread serves all.
TEST(npu_network__takes_threads_only_for_processes_under_way) {
    Lab lab;
    system_gives.threads = 1;
    for (int i = 0; i < 500; i++) {
        lab.network.process("p", 1, {}, [&lab, i](uint32_t) { lab.note(i); });
    }
    expect_ok(lab, 0);
    system_gives.threads = INT_MAX;
    assert_int_equal(lab.log.size(), 500);
    assert_int_equal(lab.log[499], 499);
}

TEST(npu_network__refuses_more_threads_than_there_are) {
    const struct {
        int threads, attributes;
        bool has_stacks;
        int begun;
        const char *text;
    } cases[] = {
        {3, INT_MAX, true, 3,
         "process p[3]: there is no thread for it beside those of 3 processes that are under way"},
        {INT_MAX, 2, true, 2,
         "process p[2]: there is no thread for it beside those of 2 processes that are under way"},
        {INT_MAX, INT_MAX, false, 0,
         "process p[0]: there is no thread for it beside those of 0 processes that are under way"},
    };
    for (const auto &c : cases) {
        Lab lab;
        system_gives = {c.threads, c.attributes, c.has_stacks};
        lab.channel("c", 1, 0);
        for (int i = 0; i < 10; i++) {
            lab.process("p", 1, "<c", "get:c note:got");
        }
        lab.process("q", 2, ">c", "");
        expect_error(lab, PTOWSP_LIMIT_EXCEEDED, 1, c.text);
        expect_log(lab, std::vector<int64_t>(static_cast<size_t>(c.begun), 0));
        system_gives = {INT_MAX, INT_MAX, true};
    }
}

// Replicas are counted when they are known, as the program runs.
TEST(npu_network__refuses_more_processes_than_a_program_may_have) {
    Lab lab;
    for (uint32_t i = 0; i < PTOWSP_PROCESS_MAX; i++) {
        lab.network.process("p", 1, {}, [&lab](uint32_t) { lab.note(1); });
    }
    assert_true(lab.host.good());
    lab.network.process("p", 3, {}, [&lab](uint32_t) { lab.note(1); });
    expect_error(lab, PTOWSP_LIMIT_EXCEEDED, 3, "more than 1048576 processes");
    expect_log(lab, {});
}

// Processes of one name are replicas where they are declared at one place.
TEST(npu_network__tells_apart_processes_of_one_name) {
    static const char name[] = "p";
    for (uint32_t place = 1; place <= 2; place++) {
        Lab lab;
        lab.channel("c", 1, 0);
        lab.process(name, 1, "", "");
        lab.process(name, place, "<c >c", "send:c:7 get:c note:got note:t get:c");
        const char *const texts[] = {"stuck at cycle 0: p[1] finds c empty",
                                     "stuck at cycle 0: p finds c empty"};
        assert_false(lab.network.run(PLACE));
        assert_int_equal(lab.host.status, PTOWSP_STUCK);
        expect_log(lab, {1, 7});
        assert_int_equal(lab.host.text.compare(0, strlen(texts[place - 1]), texts[place - 1]), 0);
    }
}

// A ring of many processes around which one token goes twice: all of them wait at once.
TEST(npu_network__runs_hundreds_of_processes) {
    enum { COUNT = LANE_IS_CHECKED ? 100 : 600 };
    Lab lab;
    std::vector<uint32_t> channels;
    for (int i = 0; i < COUNT; i++) {
        channels.push_back(lab.network.channel("c", 1, 0, false, 1));
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t in = channels[i], out = channels[(i + 1) % COUNT];
        lab.network.process("p", 1, {{in, false}, {out, true}}, [&lab, in, out, i](uint32_t me) {
            if (i == 0) {
                lab.network.send(me, out, 0, 1);
            }
            uint64_t t = 0;
            for (int k = 0; k < 2; k++) {
                lab.network.receive(me, in, &t, 1);
                lab.task(me, 1);
                if (i > 0 || k == 0) {
                    lab.network.send(me, out, t + 1, 1);
                }
            }
        });
    }
    expect_ok(lab, 2 * COUNT);
    assert_int_equal(lab.tasks, 2 * COUNT);
}

// -- without time ---------------------------------------------------------------------------------

// Kernels of both processes run at once: each waits until the other one is in its kernel.
TEST(npu_network__runs_kernels_side_by_side_without_time) {
    for (int round = 0; round < 20; round++) {
        Lab lab(false);
        std::atomic<int> inside{0};
        std::atomic<uint64_t> index{0};
        uint32_t c = lab.network.channel("c", 1, 50, false, 1);
        auto kernel = [&](uint32_t me, int others) {
            lab.network.task_begins(me);
            inside++;
            while (inside.load() < others) {
                sched_yield();
            }
            lab.network.task_ends(me, index++, 1000, 1);
        };
        for (int w = 0; w < 2; w++) {
            lab.network.process("send", 1, {{c, true}}, [&](uint32_t me) {
                kernel(me, 2);
                for (uint64_t i = 0; i < 5; i++) {
                    kernel(me, 0);
                    lab.network.send(me, c, i, 1);
                }
            });
        }
        int64_t sum = 0, count = 0;
        lab.network.process("take", 2, {{c, false}}, [&](uint32_t me) {
            for (uint64_t t; lab.network.receive(me, c, &t, 1);) {
                kernel(me, 0);
                sum += static_cast<int64_t>(t);
                count++;
            }
        });
        assert_true(lab.network.run(PLACE));
        assert_int_equal(count, 10);
        assert_int_equal(sum, 20);
    }
}

// Nobody is stuck while a kernel runs; then somebody is, and an error ends those in kernels, too.
TEST(npu_network__finds_errors_without_time) {
    {
        Lab lab(false);
        uint32_t c = lab.network.channel("c", 0, 0, false, 1);
        lab.network.process("a", 1, {{c, true}}, [&](uint32_t me) {
            lab.network.task_begins(me);
            for (int i = 0; i < 100; i++) {
                sched_yield();
            }
            lab.network.task_ends(me, 0, 0, 1);
            lab.network.send(me, c, 1, 1);
            lab.network.send(me, c, 2, 1);
        });
        lab.network.process("b", 1, {{c, false}}, [&](uint32_t me) {
            uint64_t t = 0;
            lab.note(lab.network.receive(me, c, &t, 1));
        });
        assert_false(lab.network.run(PLACE));
        assert_int_equal(lab.host.status, PTOWSP_STUCK);
        expect_log(lab, {1});
    }
    Lab lab(false);
    std::atomic<bool> has_failed{false};
    lab.network.process("slow", 1, {}, [&](uint32_t me) {
        lab.network.task_begins(me);
        while (!has_failed) {
            sched_yield();
        }
        lab.network.task_ends(me, 0, 0, 1);
        lab.note(lab.host.good());
    });
    lab.network.process("fails", 1, {}, [&](uint32_t me) {
        lab.network.task_begins(me);
        lab.host.report_error(PTOWSP_KERNEL_FAILED, 9, "kernel k failed");
        has_failed = true;
        lab.network.task_ends(me, 1, 0, 1);
    });
    expect_error(lab, PTOWSP_KERNEL_FAILED, 9, "kernel k failed");
    expect_log(lab, {0});
}

}  // namespace
