// The simulated graph as SimGrid's activities: an execution for each task, on a host for each lane.

#include "peers.h"

#include <cmath>
#include <string>
#include <vector>

#include <simgrid/s4u.hpp>

namespace sg = simgrid::s4u;

// Hosts of a flop each second: flops are cycles.
static std::vector<sg::Host *> hosts_make() {
    static int argc = 2;
    static char name[] = "bench", quiet[] = "--log=root.thresh:critical";
    static char *argv[] = {name, quiet, nullptr};
    static sg::Engine engine(&argc, argv);
    std::vector<sg::Host *> hosts;
    sg::NetZone *zone = sg::create_full_zone("lanes");
    for (int i = 0; i < PEER_LANES; i++) {
        hosts.push_back(zone->create_host("lane_" + std::to_string(i), 1.0)->seal());
    }
    zone->seal();
    return hosts;
}

extern "C" uint64_t peer_simgrid_run(void) {
    static const std::vector<sg::Host *> hosts = hosts_make();
    std::vector<sg::ExecPtr> tasks;
    const double start = sg::Engine::get_clock();
    tasks.reserve(PEER_LAYERS * PEER_WIDTH);
    for (uint32_t i = 0; i < PEER_LAYERS * PEER_WIDTH; i++) {
        sg::ExecPtr task = sg::Exec::init();
        task->set_flops_amount(static_cast<double>(peer_dag_cycles(i)));
        task->set_host(hosts[i % PEER_LANES]);
        if (i >= PEER_LANES) {
            tasks[i - PEER_LANES]->add_successor(task);
        }
        for (uint32_t k = 0; k < PEER_INPUTS && i >= PEER_WIDTH; k++) {
            const uint32_t before = peer_dag_before(i, k);
            if (before + PEER_LANES != i) {
                tasks[before]->add_successor(task);
            }
        }
        tasks.push_back(task);
    }
    for (sg::ExecPtr &task : tasks) {
        task->vetoable_start();
    }
    sg::Engine::get_instance()->run();
    return static_cast<uint64_t>(std::llround(sg::Engine::get_clock() - start));
}
