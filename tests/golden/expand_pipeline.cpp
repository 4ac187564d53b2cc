// The tasks of module pipeline, in program order, from the sizes, symbols, arrays and slots of the
// moment.

#include "program.h"
#include "wsp_expand.h"
#include "wsp_pipeline.h"

// Not all parameters and variables are used.
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"

namespace {

using namespace wsp;

// workload main
void v_main(Run &run) {
    // main/pipeline "double buffer"
    {
        Pipeline pipeline(run, 0, 1);
        pipeline.tile(TENSOR_x, READ);
        pipeline.tile(TENSOR_ring, READ_WRITE);
        pipeline.tile(TENSOR_limits, READ);
        pipeline.loads(TENSOR_limits);
        Channel v_loaded = pipeline.channel("loaded", CHANNEL_loaded, 2, 50, false);
        Channel v_free = pipeline.channel("free", CHANNEL_free, run.symbol(SYMBOL_depth),
                5000000000u, false);
        Channel v_started = pipeline.channel("started", CHANNEL_started, 0, 0, true);
        pipeline.process("load", 2, {consumes(v_free), produces(v_loaded), produces(v_started)},
                [=](Run &r_load) {
            v_started.record(r_load, 3);
            for (i64 v_i = 0; v_i < r_load.size(AXIS_tiles) && r_load.good(); v_i++) {
                if (i64 v_place; v_free.receive_one(r_load, v_place, 4)) {
                    // main/pipeline "double buffer"/process load/for_each i/receive place/task load
                    {
                        Task task(r_load, KERNEL_load, 5);
                        task.axis(v_place);
                        task.tile(TENSOR_x, READ, {}, r_load.array_i64(ARRAY_order, v_i) * 8, 8, 0,
                                32);
                        task.tile(TENSOR_ring, WRITE, {v_place}, 0, 8, 0, 32);
                        task.submit();
                    }
                    v_loaded.send(r_load, v_place, 6);
                }
            }
            v_loaded.close(r_load, 7);
        });
        pipeline.process("watch", 8, {consumes(v_started)}, [=](Run &r_watch) {
            v_started.wait(r_watch, 9);
            r_watch.load_slot(10, 1, TENSOR_limits, {}, 0, 1, 0, 1, 0, 2);
        });
        for (i64 v_worker = 0; v_worker < run.size(AXIS_workers) && run.good(); v_worker++) {
            pipeline.process("compute", 11, {consumes(v_loaded), produces(v_free)},
                    [=](Run &r_compute) {
                for (i64 v_place; v_loaded.receive(r_compute, v_place, 12);) {
                    // main/pipeline "double buffer"/process compute/consume place/task compute
                    {
                        Task task(r_compute, KERNEL_compute, 13);
                        task.axis(v_place);
                        task.axis(v_worker);
                        task.tile(TENSOR_ring, READ, {v_place}, 0, 8, 0, 32);
                        task.submit();
                    }
                    // main/pipeline "double buffer"/process compute/consume place/send free
                    r_compute.at(14);
                    v_free.send(r_compute, r_compute.array_i64(ARRAY_order, v_place), 14);
                }
            });
        }
        pipeline.run();
    }
}

}  // namespace

void wsp_expand(wsp::Run &run) {
    run.check_replicas(AXIS_workers, 11);
    v_main(run);
}
