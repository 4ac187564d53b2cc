// A block of a Llama-like transformer by tile kernels (common/llama.h), on tiles of 32 tokens:
//
//      n = rmsnorm(x)                  q, k, v = n wq, n wk, n wv          for each tile
//      a = softmax(q k' / 4 + mask) v                                      for each tile and head
//      h = x + a wo                    n2 = rmsnorm(h)                     for each tile
//      y = h + (silu(n2 wg) * (n2 wu)) wd                                  for each tile
//
// The workload says nothing of order: all tasks stand in a parallel scope, as layers in PTO-WSP v9
// do, whose time is then that of independent tasks. What waits for what follows from the tiles that
// tasks share: the attention of a tile waits for its queries, and for the keys and values of all
// tiles, which come from other iterations of the loop. Compared are the makespans by structure
// alone (what v9 says), by structure and data, and of the same on one lane.

#include "ptowsp.h"

#include "common/llama.h"

#include <stdio.h>

enum { TOKENS = 80, LANES = 8 };

int main(int argc, char **argv) {
    setup s;
    setup_create(&s, argc, argv);
    llama b;
    llama_make(&b, &s);
    llama_fill(&b, &s, TOKENS);

    printf("a block of %d tokens, %d wide, %d heads, %d hidden, in tiles of %d tokens\n", TOKENS,
           LLAMA_DIM, LLAMA_HEADS, LLAMA_HIDDEN, LLAMA_TILE);
    setup_print_kernel(&s, "attend", b.attend);
    setup_print_kernel(&s, "gate", b.kernels.gate);
    ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_WORK_STEALING, .lane_count = LANES};
    schedule.dependencies = PTOWSP_DEPENDENCIES_STRUCTURE;
    bool is_good = setup_run(&s, "structure only", &schedule);
    ptowsp_cycles untimed = setup_makespan(&s, &schedule, PTOWSP_MODEL_UNIT);
    schedule.dependencies = PTOWSP_DEPENDENCIES_HYBRID;
    is_good &= setup_run(&s, "structure and data", &schedule);
    ptowsp_cycles timed = setup_makespan(&s, &schedule, PTOWSP_MODEL_UNIT);
    schedule.lane_count = 1;
    is_good &= setup_run(&s, "the same, 1 lane", &schedule);
    printf("  data      makes it %.2f times as long as structure alone says: %s\n",
           (double)timed / (double)untimed, timed > untimed ? "good" : "WRONG");
    is_good &= timed > untimed;
    is_good &= setup_report(b.y, b.error, LLAMA_ALLOWED);
    llama_destroy(&b);
    setup_destroy(&s);
    return is_good ? 0 : 1;
}
