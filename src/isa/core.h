// A core: its clocks, its flags, and the steps that every instruction takes before it computes.
//
// Each pipe has a clock. An instruction begins when its pipe is done with the one before, and ends
// its cycles later; set_flag(P, Q, n) notes when P is done with all before it, and wait_flag(P, Q,
// n) moves Q's clock there. So the overlap of pipes is counted (PTOISA_MODEL_A2A3) if a kernel sets
// its flags, which the device needs anyway. In the unit model time is the plain sum.
//
//     set_flag(P, Q, n)     a cycle on P; the flag is up when P is done with it
//     wait_flag(P, Q, n)    Q waits until the flag is up, and then a cycle on Q
//     pipe_barrier(P)       a cycle on P; PIPE_ALL: all wait for the last, then a cycle on each
//
// In measured models a transfer is done `latency` after its pipe can take the next: so latency shows
// where a pipe waits, and hides where more is queued.
//
// They take no cycles in the unit model; in a user's model, its function decides. A pipe has run
// empty when its next instruction is its first, follows a barrier, or follows a wait for a flag
// that was not yet up: a flag that is up stops nothing. Vector instructions pay their head and tail
// then.
//
// A flag is one bit. Setting it twice without a wait is a fault, because the device would lose one.
// Waiting for a flag that was not set is a fault too, because the device would hang.

#ifndef PTOISA_CORE_H
#define PTOISA_CORE_H

#include "../base/number.h"
#include "cost_models.h"
#include "tile.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define PTOISA_FAULT_TEXT_MAX 256

// Makes a core with its clocks at 0. machine NULL: Ascend 910B, or 950PR for PTOISA_MODEL_A5.
PTOISA_FN void ptoisa_core_init(ptoisa_core *core, ptoisa_model model,
                                const ptoisa_machine *machine) {
    memset(core, 0, sizeof *core);
    core->model = model;
    core->is_checked = PTOISA_CHECKED_DEFAULT;
    core->is_as_simulator = PTOISA_AS_SIMULATOR;
    if (machine == NULL) {
        machine = ptoisa_machine_910b();
        switch (model) {
#define PTOISA_MODEL_MACHINE(name, time, of, cost)                                                 \
    case PTOISA_MODEL_##name: machine = ptoisa_machine_##of(); break;
            PTOISA_MODELS(PTOISA_MODEL_MACHINE)
#undef PTOISA_MODEL_MACHINE
        case PTOISA_MODEL_COUNT: break;
        }
    }
    core->machine = machine;
}

// Sets the clocks to 0 and all flags free.
PTOISA_FN void ptoisa_core_reset(ptoisa_core *core) {
    core->sum = 0;
    memset(core->clock, 0, sizeof core->clock);
    memset(core->lag, 0, sizeof core->lag);
    memset(core->busy, 0, sizeof core->busy);
    memset(core->flag_at, 0, sizeof core->flag_at);
    memset(core->flags, 0, sizeof core->flags);
    core->is_filled = 0;
}

// When the last pipe is done.
PTOISA_FN uint64_t ptoisa_cycles_of_pipes(const ptoisa_core *core) {
    uint64_t end = 0;
    for (int pipe = 0; pipe < PTOISA_PIPE_COUNT; pipe++) {
        end = core->clock[pipe] > end ? core->clock[pipe] : end;
    }
    return end;
}

// The time until all pipes are done; in the unit model, the sum of all instructions' cycles.
PTOISA_FN uint64_t ptoisa_cycles(const ptoisa_core *core) {
    return ptoisa_time_of(core->model) == PTOISA_TIME_SUM ? core->sum
                                                          : ptoisa_cycles_of_pipes(core);
}

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
// Reports the fault of an instruction. Returns false, for `return ptoisa_fault(...)`.
PTOISA_FN bool
ptoisa_fault(ptoisa_core *core, ptoisa_op op, const char *format, ...) {
    char text[PTOISA_FAULT_TEXT_MAX];
    int at = op == PTOISA_NOP ? 0 : snprintf(text, sizeof text, "%s: ", ptoisa_op_name(op));
    va_list args;
    va_start(args, format);
    vsnprintf(text + at, sizeof text - (size_t)at, format, args);
    va_end(args);
    if (core->on_fault) {
        core->on_fault(core, text);
        return false;
    }
    fprintf(stderr, "ptoisa: %s\n", text);
    abort();
}

// Cycles of one instruction on its pipe, or on PTOISA_PIPE_ALL, and the latency that follows them.
PTOISA_FN uint64_t ptoisa_ask(const ptoisa_core *core, ptoisa_op op, ptoisa_pipe pipe,
                              const ptoisa_tile *dst, const ptoisa_tile *src0,
                              const ptoisa_tile *src1, uint32_t detail, uint64_t *out_latency) {
    ptoisa_issue_info info;
    info.op = op;
    info.pipe = pipe;
    info.dst = dst;
    info.src0 = src0;
    info.src1 = src1;
    info.is_pipe_idle = !(core->is_filled >> pipe & 1);
    info.detail = detail;
    info.machine = core->machine;
    info.timing = ptoisa_timing_of(core->model, core->timing);
    *out_latency = info.timing == NULL ? 0 : ptoisa_timed_latency(&info);
    return ptoisa_cost(core, &info);
}

// Cycles of a transfer in which its path moves bytes; the others are setup.
PTOISA_FN uint64_t ptoisa_moving_cycles(const ptoisa_core *core, ptoisa_path path, uint64_t bytes,
                                        uint64_t cycles) {
    ptoisa_issue_info info;
    memset(&info, 0, sizeof info);
    info.machine = core->machine;
    info.timing = ptoisa_timing_of(core->model, core->timing);
    if (info.timing == NULL) {
        return cycles;
    }
    uint64_t moving = ptoisa_timed_clock(&info, path, bytes * 100 / info.timing->path[path].rate);
    return moving < cycles ? moving : cycles;
}

// Counts an instruction if it moves bytes from or to global memory, and returns its cycles.
PTOISA_FN uint64_t ptoisa_count_traffic(const ptoisa_core *core, ptoisa_op op,
                                        const ptoisa_tile *dst, const ptoisa_tile *src0,
                                        uint32_t detail, uint64_t cycles) {
    ptoisa_traffic *traffic = core->traffic;
    ptoisa_path path = ptoisa_path_of(op, dst, src0);
    if (!ptoisa_path_is_global(path) || (dst == NULL && src0 == NULL)) {
        return cycles;
    }
    ptoisa_issue_info info;
    memset(&info, 0, sizeof info);
    info.op = op;
    info.dst = dst;
    info.src0 = src0;
    uint64_t bytes = ptoisa_transfer_bytes(&info);
    if (path == PTOISA_L0C_TO_GM && detail != 0) {  // as they arrive
        bytes = bytes / ptoisa_dtype_size((ptoisa_dtype)src0->dtype) * detail;
    }
    uint64_t steps = bytes * PTOISA_TRAFFIC_STEPS;
    uint64_t moving = ptoisa_moving_cycles(core, path, bytes, cycles);
    uint64_t rate = moving > 0 ? steps / moving : 0;
    uint64_t shared = traffic->share > 0 ? steps / traffic->share : 0;
    traffic->bytes += bytes;
    traffic->peak = rate > traffic->peak ? rate : traffic->peak;
    return shared > moving ? cycles - moving + shared : cycles;
}

// A pipe that is still waiting for data takes the next instruction as soon as it can, and is done
// with it no earlier than with the one before. Time that both spend waiting is busy once.
PTOISA_INLINE void ptoisa_charge(ptoisa_core *core, ptoisa_pipe pipe, uint64_t cycles,
                                 uint64_t latency) {
    uint64_t before = core->clock[pipe], taken = before - core->lag[pipe] + cycles;
    uint64_t done = taken + latency > before ? taken + latency : before;
    core->sum += done - before;
    core->busy[pipe] += done - before;
    core->clock[pipe] = done;
    core->lag[pipe] = done - taken;
}

// Makes a pipe wait until a time. A pipe that has run empty by then pays its start again.
PTOISA_FN void ptoisa_wait_until(ptoisa_core *core, ptoisa_pipe pipe, uint64_t at) {
    uint64_t clock = core->clock[pipe];
    if (at > clock) {
        core->clock[pipe] = at;
        core->lag[pipe] = 0;
        core->is_filled = (uint8_t)(core->is_filled & ~(1u << pipe));
    } else if (at > clock - core->lag[pipe]) {
        core->lag[pipe] = clock - at;
    }
}

// Charges an instruction to its pipe. Every instruction calls this once, after its checks. `detail`
// is the one of ptoisa_issue_info.
PTOISA_FN void ptoisa_issue_as(ptoisa_core *core, ptoisa_op op, const ptoisa_tile *dst,
                               const ptoisa_tile *src0, const ptoisa_tile *src1, uint32_t detail) {
    // The next instruction may read memory as another type than it was written: the compiler must
    // carry nothing over from one instruction to the next.
    __asm__ __volatile__("" ::: "memory");
    if (core->is_only_checked) {
        return;
    }
    ptoisa_pipe pipe = ptoisa_pipe_of(op, dst, src0);
    // The unit model is asked straight away, which takes 5 ns instead of 7.
    bool is_sum = ptoisa_time_of(core->model) == PTOISA_TIME_SUM;
    uint64_t latency = 0;
    uint64_t cycles = core->model == PTOISA_MODEL_UNIT
                          ? ptoisa_cost_unit(op, dst, src0, src1)
                          : ptoisa_ask(core, op, pipe, dst, src0, src1, detail, &latency);
    if (is_sum) {
        core->sum += cycles;
        core->busy[pipe] += cycles;
        return;
    }
    if (core->traffic != NULL) {
        cycles = ptoisa_count_traffic(core, op, dst, src0, detail, cycles);
    }
    ptoisa_charge(core, pipe, cycles, latency);
    core->is_filled = (uint8_t)(core->is_filled | (cycles > 0 ? 1u << pipe : 0));
}

PTOISA_INLINE void ptoisa_issue(ptoisa_core *core, ptoisa_op op, const ptoisa_tile *dst,
                                const ptoisa_tile *src0, const ptoisa_tile *src1) {
    ptoisa_issue_as(core, op, dst, src0, src1, 0);
}

// -- flags ----------------------------------------------------------------------------------------

// Charges a flag or a barrier: as ptoisa_issue, but it has no operands and fills no pipe.
PTOISA_FN void ptoisa_issue_sync(ptoisa_core *core, ptoisa_op op, ptoisa_pipe pipe) {
    if (ptoisa_time_of(core->model) != PTOISA_TIME_SUM) {
        uint64_t latency;
        uint64_t cycles = ptoisa_ask(core, op, pipe, NULL, NULL, NULL, 0, &latency);
        core->sum += cycles;
        core->busy[pipe] += cycles;
        core->clock[pipe] += cycles;
    }
}

PTOISA_FN void ptoisa_set_flag(ptoisa_core *core, ptoisa_pipe src, ptoisa_pipe dst,
                               uint32_t event) {
    if (src >= PTOISA_PIPE_COUNT || dst >= PTOISA_PIPE_COUNT || src == dst ||
        event >= PTOISA_EVENT_COUNT) {
        ptoisa_fault(core, PTOISA_SET_FLAG, "pipes %d and %d, event %u", (int)src, (int)dst, event);
        return;
    }
    if (core->flags[src][dst] >> event & 1) {
        ptoisa_fault(core, PTOISA_SET_FLAG, "%s to %s, event %u is set already",
                     ptoisa_pipe_name(src), ptoisa_pipe_name(dst), event);
        return;
    }
    core->flags[src][dst] = (uint8_t)(core->flags[src][dst] | 1u << event);
    ptoisa_issue_sync(core, PTOISA_SET_FLAG, src);
    core->flag_at[src][dst][event] = core->clock[src];
}

PTOISA_FN void ptoisa_wait_flag(ptoisa_core *core, ptoisa_pipe src, ptoisa_pipe dst,
                                uint32_t event) {
    if (src >= PTOISA_PIPE_COUNT || dst >= PTOISA_PIPE_COUNT || src == dst ||
        event >= PTOISA_EVENT_COUNT) {
        ptoisa_fault(core, PTOISA_WAIT_FLAG, "pipes %d and %d, event %u", (int)src, (int)dst,
                     event);
        return;
    }
    if (!(core->flags[src][dst] >> event & 1)) {
        ptoisa_fault(core, PTOISA_WAIT_FLAG, "%s to %s, event %u is not set", ptoisa_pipe_name(src),
                     ptoisa_pipe_name(dst), event);
        return;
    }
    core->flags[src][dst] = (uint8_t)(core->flags[src][dst] & ~(1u << event));
    ptoisa_wait_until(core, dst, core->flag_at[src][dst][event]);
    ptoisa_issue_sync(core, PTOISA_WAIT_FLAG, dst);
}

// Orders the instructions of one pipe (which are in order here as they are), or of all pipes. Of
// all, the sum and the scalar unit's work count its cycles once.
PTOISA_FN void ptoisa_pipe_barrier(ptoisa_core *core, ptoisa_pipe pipe) {
    if ((uint32_t)pipe > PTOISA_PIPE_ALL) {
        ptoisa_fault(core, PTOISA_PIPE_BARRIER, "pipe %d", (int)pipe);
        return;
    }
    if (pipe != PTOISA_PIPE_ALL) {
        ptoisa_issue_sync(core, PTOISA_PIPE_BARRIER, pipe);
        core->lag[pipe] = 0;
        core->is_filled = (uint8_t)(core->is_filled & ~(1u << pipe));
        return;
    }
    uint64_t end = ptoisa_cycles_of_pipes(core);
    if (ptoisa_time_of(core->model) != PTOISA_TIME_SUM) {
        uint64_t latency;
        uint64_t cycles =
            ptoisa_ask(core, PTOISA_PIPE_BARRIER, pipe, NULL, NULL, NULL, 0, &latency);
        core->sum += cycles;
        core->busy[PTOISA_PIPE_S] += cycles;
        end += cycles;
    }
    for (int i = 0; i < PTOISA_PIPE_COUNT; i++) {
        core->clock[i] = end;
        core->lag[i] = 0;
    }
    core->is_filled = 0;
}

// Are all flags that were set waited for? A fault names one that is not.
PTOISA_FN bool ptoisa_core_finish(ptoisa_core *core) {
    for (int src = 0; src < PTOISA_PIPE_COUNT; src++) {
        for (int dst = 0; dst < PTOISA_PIPE_COUNT; dst++) {
            if (core->flags[src][dst]) {
                return ptoisa_fault(core, PTOISA_SET_FLAG, "%s to %s: a flag was never waited for",
                                    ptoisa_pipe_name((ptoisa_pipe)src),
                                    ptoisa_pipe_name((ptoisa_pipe)dst));
            }
        }
    }
    return true;
}

// -- checks ---------------------------------------------------------------------------------------

// Binds a tile to a byte offset in its memory of the core.
PTOISA_FN void ptoisa_tassign(ptoisa_core *core, ptoisa_tile *tile, uint64_t offset) {
    if (tile->memory >= PTOISA_MEMORY_COUNT) {
        ptoisa_fault(core, PTOISA_NOP, "TASSIGN: there is no memory %u", tile->memory);
        return;
    }
    if (PTOISA_CHECKED) {
        uint64_t bytes = ptoisa_tile_bytes(tile), end = offset + bytes;
        uint64_t size = core->machine->memory_size[tile->memory];
        if (core->is_as_simulator && tile->memory == PTOISA_VEC && size < PTOISA_SIMULATOR_UB) {
            size = PTOISA_SIMULATOR_UB;
        }
        if (offset % 32 != 0) {
            ptoisa_fault(core, PTOISA_NOP, "TASSIGN: offset %llu is not a multiple of 32",
                         (unsigned long long)offset);
            return;
        }
        if (bytes > size || offset > size - bytes) {
            ptoisa_fault(core, PTOISA_NOP, "TASSIGN: a tile ends at %llu of %llu bytes",
                         (unsigned long long)end, (unsigned long long)size);
            return;
        }
    }
    tile->data = core->memory[tile->memory] ? core->memory[tile->memory] + offset : NULL;
}

// The device's demands on every tile: a shape, rows (or columns) of whole 32-byte blocks, whole
// boxes, a valid region inside, an aligned address.
PTOISA_FN bool ptoisa_check_tile(ptoisa_core *core, ptoisa_op op, const char *which,
                                 const ptoisa_tile *tile) {
    if (core->is_only_checked) {
        return true;
    }
    uint32_t size = ptoisa_dtype_size((ptoisa_dtype)tile->dtype);
    if (size == 0 || tile->memory >= PTOISA_MEMORY_COUNT || tile->layout >= PTOISA_LAYOUT_COUNT) {
        return ptoisa_fault(core, op, "%s is no tile", which);
    }
    if (tile->rows == 0 || tile->cols == 0 || tile->valid_rows > tile->rows ||
        tile->valid_cols > tile->cols) {
        return ptoisa_fault(core, op, "%s has %u x %u valid elements of %u x %u", which,
                            tile->valid_rows, tile->valid_cols, tile->rows, tile->cols);
    }
    if (tile->layout == PTOISA_ROW_MAJOR && (uint64_t)tile->cols * size % 32 != 0) {
        return ptoisa_fault(core, op, "%s: rows of %u x %u bytes are no multiple of 32", which,
                            tile->cols, size);
    }
    if (tile->layout == PTOISA_COL_MAJOR && (uint64_t)tile->rows * size % 32 != 0) {
        return ptoisa_fault(core, op, "%s: columns of %u x %u bytes are no multiple of 32", which,
                            tile->rows, size);
    }
    const uint32_t box_rows = ptoisa_box_rows(tile), box_cols = ptoisa_box_cols(tile);
    if ((tile->rows & (box_rows - 1)) != 0 || (tile->cols & (box_cols - 1)) != 0) {
        return ptoisa_fault(core, op, "%s: %u x %u are no whole boxes of %u x %u", which,
                            tile->rows, tile->cols, box_rows, box_cols);
    }
    if (!core->is_dry && (tile->data == NULL || (uintptr_t)tile->data % 32 != 0)) {
        return ptoisa_fault(core, op, "%s: its address %p is not 32-byte aligned", which,
                            tile->data);
    }
    return true;
}

// Is the tile of a set of types, in a memory, valid at least for rows x cols?
PTOISA_FN bool ptoisa_check_operand(ptoisa_core *core, ptoisa_op op, const char *which,
                                    const ptoisa_tile *tile, uint32_t dtypes, ptoisa_memory memory,
                                    uint32_t rows, uint32_t cols) {
    if (!ptoisa_check_tile(core, op, which, tile)) {
        return false;
    }
    if (!(dtypes >> tile->dtype & 1)) {
        return ptoisa_fault(core, op, "%s is %s, which it does not take", which,
                            ptoisa_dtype_name((ptoisa_dtype)tile->dtype));
    }
    if (tile->memory != memory) {
        return ptoisa_fault(core, op, "%s is in %s, not in %s", which,
                            ptoisa_memory_name((ptoisa_memory)tile->memory),
                            ptoisa_memory_name(memory));
    }
    if (tile->valid_rows < rows || tile->valid_cols < cols) {
        return ptoisa_fault(core, op, "%s has %u x %u valid elements, and %u x %u are read", which,
                            tile->valid_rows, tile->valid_cols, rows, cols);
    }
    return true;
}

#endif
