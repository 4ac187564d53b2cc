// Processes of emitted trees (src/npu/tree/aicpu/wsp_pipeline_network.h): networks written by hand, with what
// comes of them, in network.txt, and here many threads, and kernels that run side by side where there is
// no time. Random ones are in npu_pipeline_test.cpp. Words of network.txt:
//
//      case NAME [without time]
//      channel NAME DEPTH LATENCY [at PLACE]; event NAME LATENCY
//      process NAME PLACE [<CONSUMED] [>PRODUCED] | SCRIPT; processes COUNT ... (see Lab)
//      ends MAKESPAN; fails STATUS PLACE TEXT [...]   the network runs so
//      noted NUMBER ...                           and has noted these (0..4: from 0 to 4), or nothing
//      threads, attributes, stacks NUMBER         is all that the system gives

#include <cerrno>
#include <climits>
#include <algorithm>
#include <fstream>
#include <pthread.h>
#include <sstream>

// What the system gives: so many threads, so many sets of attributes; so many stacks.
static struct {
    int threads, attributes;
    int stacks;
} system_gives = {INT_MAX, INT_MAX, INT_MAX};

static int system_attr_init(pthread_attr_t *attributes) {
    return system_gives.attributes-- > 0 ? pthread_attr_init(attributes) : ENOMEM;
}

static int system_attr_setstacksize(pthread_attr_t *attributes, size_t size) {
    return system_gives.stacks-- > 0 ? pthread_attr_setstacksize(attributes, size) : EINVAL;
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
#include <set>
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
//      yields:9 (a kernel lets others run)   beside:2 (one waits for so many)   awaits (for a failure)
//
// where a number may also be i, of the loop, t, the last token, got, whether there was one, good, or the
// replica; or a sum: 100+t.
struct Lab {
    explicit Lab(bool is_timed = true) : network(host, is_timed) {
    }

    // The network has the names where they are kept.
    void channel(const std::string &name, uint64_t depth, uint64_t latency, bool is_event = false,
                 uint32_t place = 1) {
        const char *kept = names.insert(name).first->c_str();
        channels[name] = network.channel(kept, depth, latency, is_event, place);
    }
    // Ports: "<c" is consumed, ">c" produced.
    void process(const std::string &name, uint32_t place, const std::string &ports,
                 const std::string &script, uint64_t replica = 0) {
        wsp::List<wsp::Port> list;
        std::istringstream words(ports);
        for (std::string port; words >> port;) {
            list.push_back({channels.at(port.substr(1)), port[0] == '>'});
        }
        const char *at = scripts.insert(script).first->c_str();
        network.process(names.insert(name).first->c_str(), place, list,
                        [this, at, replica](uint32_t me) {
                            Walk walk = {me, 1, 0, 0, false, replica};
                            run(walk, at);
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
    std::atomic<uint64_t> tasks{0}, inside{0};  // so many that wait for others have begun
    std::vector<int64_t> log;
    std::map<std::string, uint32_t> channels;
    std::set<std::string> names, scripts;

  private:
    struct Walk {
        uint32_t me, place;
        uint64_t i, t;
        bool got;
        uint64_t replica;
    };

    uint64_t value(const Walk &w, const std::string &text) const {
        const size_t plus = text.find('+');
        return plus != std::string::npos
                   ? value(w, text.substr(0, plus)) + value(w, text.substr(plus + 1))
               : text == "i"       ? w.i
               : text == "t"       ? w.t
               : text == "got"     ? w.got
               : text == "good"    ? host.good()
               : text == "replica" ? w.replica
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
        } else if (word == "yields" || word == "beside" || word == "awaits") {
            const uint64_t count = first.empty() ? 0 : value(w, first);
            network.task_begins(w.me);
            inside++;
            for (uint64_t i = 0; word == "yields"   ? i < count
                                 : word == "beside" ? inside < count
                                                    : host.good();
                 i++) {
                sched_yield();
            }
            network.task_ends(w.me, tasks++, 1000, 1);
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

// A text that ends in " ..." is the beginning of one.
void expect_error(Lab &lab, const std::string &status, uint32_t place, const std::string &text) {
    assert_false(lab.network.run(PLACE));
    const size_t size =
        text.size() - (text.size() > 4 && text.substr(text.size() - 4) == " ..." ? 4 : 0);
    const int got = lab.host.status;
    assert_string_equal(ptowsp_status_name(static_cast<ptowsp_status>(got)), status.c_str());
    assert_string_equal(
        lab.host.text.substr(0, size == text.size() ? std::string::npos : size).c_str(),
        text.substr(0, size).c_str());
    assert_int_equal(lab.host.place, place);
}

// -- as they are written --------------------------------------------------------------------------

std::vector<int64_t> numbers_of(std::istringstream &words) {
    std::vector<int64_t> numbers;
    for (std::string word; words >> word;) {
        const size_t dots = word.find("..");
        const int64_t first = std::stoll(word);
        const int64_t last = dots == std::string::npos ? first : std::stoll(word.substr(dots + 2));
        assert_true(first <= last);
        for (int64_t number = first; number <= last; number++) {
            numbers.push_back(number);
        }
    }
    return numbers;
}

template <typename T> T next(std::istringstream &words) {
    T value = T();
    if (!(words >> value)) {
        fail_msg("nothing more is said: %s", words.str().c_str());
    }
    return value;
}

void play(Lab &lab, const std::string &verb, std::istringstream &words) {
    if (verb == "channel" || verb == "event") {
        const bool is_event = verb == "event";
        const std::string name = next<std::string>(words);
        const uint64_t depth = is_event ? 0 : next<uint64_t>(words);
        const uint64_t latency = next<uint64_t>(words);
        std::string at;
        const bool has_place = static_cast<bool>(words >> at);
        assert_true(!has_place || at == "at");
        lab.channel(name, depth, latency, is_event, has_place ? next<uint32_t>(words) : 1);
    } else if (verb == "process" || verb == "processes") {
        const uint64_t count = verb == "process" ? 1 : next<uint64_t>(words);
        const std::string name = next<std::string>(words);
        const uint32_t place = next<uint32_t>(words);
        std::string ports, script;
        std::getline(words, ports, '|');
        std::getline(words, script);
        for (uint64_t i = 0; i < count; i++) {
            lab.process(name, place, ports, script, i);
        }
    } else if (verb == "threads") {
        system_gives.threads = next<int>(words);
    } else if (verb == "attributes") {
        system_gives.attributes = next<int>(words);
    } else if (verb == "stacks") {
        system_gives.stacks = next<int>(words);
    } else if (verb == "ends") {
        expect_ok(lab, next<uint64_t>(words));
    } else if (verb == "fails") {
        const std::string status = next<std::string>(words);
        const uint32_t place = next<uint32_t>(words);
        std::string text;
        std::getline(words >> std::ws, text);
        expect_error(lab, status, place, text);
    } else if (verb == "noted") {
        expect_log(lab, numbers_of(words));
    } else {
        fail_msg("there is no word %s", verb.c_str());
    }
}

TEST(npu_network__does_as_is_written) {
    std::ifstream file("tests/npu/network.txt");
    std::unique_ptr<Lab> lab;
    bool has_claim = true;  // the case before
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line.substr(0, line.find("  #")));
        std::string verb;
        if (!(words >> verb) || verb[0] == '#') {
            continue;
        }
        print_message("%s\n", line.c_str());
        assert_true(verb != "noted" || has_claim);  // of a network that has run
        if (verb == "case") {
            assert_true(has_claim);
            std::string name, without;
            words >> name;
            std::getline(words >> std::ws, without);
            assert_true(without.empty() || without == "without time");
            lab = std::make_unique<Lab>(without.empty());
            system_gives = {INT_MAX, INT_MAX, INT_MAX};
        } else {
            play(*lab, verb, words);
        }
        if (std::string more; words >> more) {
            fail_msg("what is %s?", more.c_str());
        }
        has_claim = verb == "ends" || verb == "fails" || verb == "noted";
    }
    assert_true(has_claim && lab);
    system_gives = {INT_MAX, INT_MAX, INT_MAX};
}

// -- threads --------------------------------------------------------------------------------------

// A ring of many processes around which one token goes twice: all of them wait at once.
TEST(npu_network__runs_hundreds_of_processes) {
    enum { COUNT = LANE_IS_CHECKED ? 100 : 600 };
    Lab lab;
    for (int i = 0; i < COUNT; i++) {
        lab.channel("c" + std::to_string(i), 1, 0);
    }
    for (int i = 0; i < COUNT; i++) {
        const std::string in = "c" + std::to_string(i), out = "c" + std::to_string((i + 1) % COUNT);
        const std::string next = "get:" + in + " task:1 send:" + out + ":1+t ";
        lab.process("p", 1, "<" + in + " >" + out,
                    i == 0 ? "send:" + out + ":0 " + next + "get:" + in + " task:1" : next + next);
    }
    expect_ok(lab, 2 * COUNT);
    assert_int_equal(lab.tasks, 2 * COUNT);
}

// -- without time ---------------------------------------------------------------------------------

// Kernels of both processes run at once: each waits until the other one is in its kernel.
TEST(npu_network__runs_kernels_side_by_side_without_time) {
    for (int round = 0; round < 20; round++) {
        Lab lab(false);
        lab.channel("c", 1, 50);
        for (int i = 0; i < 2; i++) {
            lab.process("send", 1, ">c", "beside:2 5( task:1000 send:c:i )");
        }
        lab.process("take", 2, "<c", "each:c( task:1000 note:t )");
        assert_true(lab.network.run(PLACE));
        std::sort(lab.log.begin(), lab.log.end());
        expect_log(lab, {0, 0, 1, 1, 2, 2, 3, 3, 4, 4});
    }
}

}  // namespace
