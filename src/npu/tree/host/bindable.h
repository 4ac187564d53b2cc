// The things that the command line of a tree can bind, as run --list prints them.

#ifndef WSP_BINDABLE_H
#define WSP_BINDABLE_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "elements.h"
#include "wsp_runner.h"

namespace {

// Names of unused things are in the program's module only, and may be bound, too.
void list(const wsp_program &program) {
    printf("program %s\n", program.name);
    for (uint32_t i = 1; i < program.axis_count; i++) {
        const wsp_axis_decl &axis = program.axes[i];
        if (axis.name && axis.is_used && axis.kind == PTOWSP_AXIS_DYNAMIC) {
            printf("--size %s=N\n", axis.name);
        } else if (axis.name && axis.is_used && axis.kind == PTOWSP_AXIS_SPARSE) {
            printf("--csr %s=@INDPTR,@INDICES\n", axis.name);
        } else if (axis.name && axis.is_used && axis.kind >= PTOWSP_AXIS_PLAN) {
            bool is_first = true;
            for (uint32_t k = 1; k < i; k++) {
                is_first = is_first && !(program.axes[k].name && program.axes[k].is_used &&
                                         strcmp(program.axes[k].name, axis.name) == 0);
            }
            if (is_first) {
                printf("--plan %s=@UNITS,@BEGIN,@MERGES,@BEGIN\n", axis.name);
                printf("--batch %s=KV:QUERIES:lanes=N,heads=N\n", axis.name);
            }
        }
    }
    for (uint32_t i = 1; i < program.array_count; i++) {
        const wsp_array_decl &array = program.arrays[i];
        if (array.name && array.is_used && !wsp::is_field(program, i)) {
            printf("%s %s=LIST    %s\n", array.is_lengths ? "--lengths" : "--array", array.name,
                   name_of(array.dtype));
        }
    }
    for (uint32_t i = 1; i < program.symbol_count; i++) {
        if (program.symbols[i].name && program.symbols[i].is_used) {
            printf("--symbol %s=N%s\n", program.symbols[i].name,
                   i == program.latency_symbol ? "    may be left out" : "");
        }
    }
    for (uint32_t i = 1; i < program.tensor_count; i++) {
        const wsp_tensor_decl &tensor = program.tensors[i];
        if (tensor.name && tensor.is_used && !tensor.is_transient) {
            printf("--tensor %s=", tensor.name);
            for (uint32_t k = 0; k < tensor.rank; k++) {
                if (tensor.shape[k] == PTOWSP_DYNAMIC) {
                    printf("%sN", k ? "x" : "");
                } else {
                    printf("%s%" PRId64, k ? "x" : "", tensor.shape[k]);
                }
            }
            printf("    %s%s\n", name_of(tensor.dtype), tensor.is_written ? ", written" : "");
        }
    }
    if (program.slot_count > 0) {
        printf("--slot I=N    I from 0 to %" PRIu32 "; those left out begin with 0\n",
               program.slot_count - 1);
    }
}

}  // namespace

#endif  // WSP_BINDABLE_H
