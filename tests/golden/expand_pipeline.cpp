// The tasks of module pipeline, in program order, from the sizes, symbols, arrays and slots of the
// moment.

#include "program.h"
#include "wsp_expand.h"
#include "wsp_pipeline.h"

namespace {

using namespace wsp;

// workload main
void main_(Run &run) {
    const i64 tiles = run.size(AXIS_tiles);
    const i64 workers = run.size(AXIS_workers);
    const u64 depth = run.symbol(SYMBOL_depth);
    // main/pipeline "double buffer"
    {
        Pipeline pipeline(run, 0, 1);
        pipeline.tile(TENSOR_x, READ);
        pipeline.tile(TENSOR_ring, READ_WRITE);
        pipeline.tile(TENSOR_limits, READ);
        pipeline.loads(TENSOR_limits);
        Channel loaded = pipeline.channel("loaded", CHANNEL_loaded, 2, 50, false);
        Channel free = pipeline.channel("free", CHANNEL_free, depth, 5000000000u, false);
        Channel started = pipeline.channel("started", CHANNEL_started, 0, 0, true);
        pipeline.process("load", 2, {consumes(free), produces(loaded), produces(started)},
                [&](Run &load) {
            const Array<i64> order(load, ARRAY_order);
            started.record(load, 3);
            for (i64 i = 0; i < tiles && load.good(); i++) {
                if (i64 place; free.receive_one(load, place, 4)) {
                    // main/pipeline "double buffer"/process load/for_each i/receive place/task load
                    {
                        Task task(load, KERNEL_load, 5);
                        task.axis(place);
                        task.tile(TENSOR_x, READ, {}, order[i] * 8, 8, 0, 32);
                        task.tile(TENSOR_ring, WRITE, {place}, 0, 8, 0, 32);
                        task.submit();
                    }
                    loaded.send(load, place, 6);
                }
            }
            loaded.close(load, 7);
        });
        pipeline.process("watch", 8, {consumes(started)}, [&](Run &watch) {
            started.wait(watch, 9);
            watch.load_slot(10, 1, TENSOR_limits, {}, 0, 1, 0, 1, 0, 2);
        });
        for (i64 worker = 0; worker < workers && run.good(); worker++) {
            pipeline.process("compute", 11, {consumes(loaded), produces(free)},
                    [&, worker](Run &compute) {
                const Array<i64> order(compute, ARRAY_order);
                for (i64 place; loaded.receive(compute, place, 12);) {
                    // main/pipeline "double buffer"/process compute/consume place/task compute
                    {
                        Task task(compute, KERNEL_compute, 13);
                        task.axis(place);
                        task.axis(worker);
                        task.tile(TENSOR_ring, READ, {place}, 0, 8, 0, 32);
                        task.submit();
                    }
                    // main/pipeline "double buffer"/process compute/consume place/send free
                    compute.at(14);
                    free.send(compute, order[place], 14);
                }
            });
        }
        pipeline.run();
    }
}

}  // namespace

void wsp_expand(wsp::Run &run) {
    run.check_replicas(AXIS_workers, 11);
    main_(run);
}
