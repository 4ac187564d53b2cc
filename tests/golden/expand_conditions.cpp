// The tasks of module conditions, in program order, from the sizes, symbols, arrays and slots of
// the moment.

#include "program.h"
#include "wsp_expand.h"

// Not all parameters and variables are used.
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"

namespace {

using namespace wsp;

// workload conditions
void v_conditions(Run &run) {
    run.load_slot(1, 0, TENSOR_x, {}, 0, 1, 0, 1, 3, 5);
    if (const When when{run, 0, GT, -1}) {
        // conditions/when/task add
        {
            Task task(run, KERNEL_add, 2);
            task.tile(TENSOR_x, READ_WRITE, {}, 0, 16, 0, 16);
            task.submit();
        }
        // conditions/when/task add
        {
            Task task(run, KERNEL_add, 3);
            task.tile(TENSOR_x, READ_WRITE, {}, 0, 16, 0, 16);
            task.submit();
        }
    }
    if (const When when{run, 0, LT, to_i64(run.symbol(SYMBOL_limit))}) {
        // conditions/when/task add
        {
            Task task(run, KERNEL_add, 4);
            task.tile(TENSOR_x, READ_WRITE, {}, 0, 16, 0, 16);
            task.submit();
        }
        // conditions/when/task add
        {
            Task task(run, KERNEL_add, 5);
            task.tile(TENSOR_x, READ_WRITE, {}, 0, 16, 0, 16);
            task.submit();
        }
    }
    if (const When when{run, 0, LE, 7}) {
        // conditions/when/task add
        {
            Task task(run, KERNEL_add, 6);
            task.tile(TENSOR_x, READ_WRITE, {}, 0, 16, 0, 16);
            task.submit();
        }
        // conditions/when/task add
        {
            Task task(run, KERNEL_add, 7);
            task.tile(TENSOR_x, READ_WRITE, {}, 0, 16, 0, 16);
            task.submit();
        }
    }
    if (const When when{run, 0, EQ, run.slot_i64(2)}) {
        // conditions/when/task add
        {
            Task task(run, KERNEL_add, 8);
            task.tile(TENSOR_x, READ_WRITE, {}, 0, 16, 0, 16);
            task.submit();
        }
        // conditions/when/task add
        {
            Task task(run, KERNEL_add, 9);
            task.tile(TENSOR_x, READ_WRITE, {}, 0, 16, 0, 16);
            task.submit();
        }
    }
    if (const When when{run, 1, NE, 0}) {
        // conditions/when/task add
        {
            Task task(run, KERNEL_add, 10);
            task.tile(TENSOR_x, READ_WRITE, {}, 0, 16, 0, 16);
            task.submit();
        }
        // conditions/when/task add
        {
            Task task(run, KERNEL_add, 11);
            task.tile(TENSOR_x, READ_WRITE, {}, 0, 16, 0, 16);
            task.submit();
        }
    }
    if (const When when{run, 1, EQ, 0}) {
        // conditions/when/task add
        {
            Task task(run, KERNEL_add, 12);
            task.tile(TENSOR_x, READ_WRITE, {}, 0, 16, 0, 16);
            task.submit();
        }
        // conditions/when/task add
        {
            Task task(run, KERNEL_add, 13);
            task.tile(TENSOR_x, READ_WRITE, {}, 0, 16, 0, 16);
            task.submit();
        }
    }
    if (run.slot_bool(1) && run.slot_i64(0) < to_i64(run.symbol(SYMBOL_limit))) {
        // conditions/when/task add
        {
            Task task(run, KERNEL_add, 14);
            task.tile(TENSOR_x, READ_WRITE, {}, 0, 16, 0, 16);
            task.submit();
        }
        // conditions/when/task add
        {
            Task task(run, KERNEL_add, 15);
            task.tile(TENSOR_x, READ_WRITE, {}, 0, 16, 0, 16);
            task.submit();
        }
    }
    if (run.slot_i64(0) + to_i64(run.symbol(SYMBOL_limit)) < 3) {
        // conditions/when/task add
        {
            Task task(run, KERNEL_add, 16);
            task.tile(TENSOR_x, READ_WRITE, {}, 0, 16, 0, 16);
            task.submit();
        }
        // conditions/when/task add
        {
            Task task(run, KERNEL_add, 17);
            task.tile(TENSOR_x, READ_WRITE, {}, 0, 16, 0, 16);
            task.submit();
        }
    }
    if (run.slot_i64(0) != to_i64(run.symbol(SYMBOL_limit))) {
        // conditions/when/task add
        {
            Task task(run, KERNEL_add, 18);
            task.tile(TENSOR_x, READ_WRITE, {}, 0, 16, 0, 16);
            task.submit();
        }
        // conditions/when/task add
        {
            Task task(run, KERNEL_add, 19);
            task.tile(TENSOR_x, READ_WRITE, {}, 0, 16, 0, 16);
            task.submit();
        }
    } else {
        run.set_slot(1, run.slot_i64(0));
    }
    if (run.slot_i64(0) <= to_i64(run.symbol(SYMBOL_limit))) {
        run.set_slot(0, to_i64(run.symbol(SYMBOL_limit)));
    }
}

}  // namespace

void wsp_expand(wsp::Run &run) {
    v_conditions(run);
}
