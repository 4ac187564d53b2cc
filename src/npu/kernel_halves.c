// A mixed kernel as C++: a function for its cube half, one for its vector half, and an entry.
//
//      namespace v_attend {
//
//      // What both halves know: the FIFOs between them.
//      using ToVector = wsp::Fifo<0, true, 2560, 2, TileSplitAxis::TILE_UP_DOWN>;
//
//      #if WSP_HAS_CUBE
//      constexpr uint32_t v_a_l1_at = 0;            its addresses, in L1 and L0
//      AICORE inline void cube(__gm__ wsp_task *task, wsp::Pipes &pipes) {
//          TMATMUL(acc_1, left_1, right_1);
//          to_vector.push<40>(acc_1);
//      }
//      #endif
//
//      #if WSP_HAS_VECTOR
//      constexpr uint32_t t1_at = 0;                in UB
//      AICORE inline void vector(__gm__ wsp_task *task, wsp::Pipes &pipes) {
//          const wsp::Share mine = wsp::share(v_a_rows);
//          to_vector.pop<40>(t1);                   of this vector core's rows
//      }
//      #endif
//
//      }  // namespace v_attend
//
//      extern "C" AICORE void wsp_kernel_attend(__gm__ wsp_task *task WSP_BLOCK_PARAM) {
//          WSP_CHECK(...);                          once, before anything is touched
//          WSP_HALVES(task, v_attend::cube, v_attend::vector);
//      }
//
// Each function has the kernel's list, in the same order, without the other half's instructions. A
// function has a loop only if it has an instruction inside.
//
// Where both vector cores have rows (split), tiles in UB and windows have the sizes of `mine`, and windows
// begin at its first row. Else the second core leaves vector after it has passed each FIFO as often as
// the first one pushes and pops.

#include "kernels.h"

#include <stdio.h>

static const char npu_fifo_types[][12] = {"ToVector", "ToCube"};
static const char npu_half_names[][12] = {"", "cube", "vector"};

// -- the head of the file -------------------------------------------------------------------------

// The word for an instruction in the list of a half; NULL: it only waits, or belongs to the other half.
static const char *npu_half_word(const npu_kernel *k, const ptowsp_insn_info *insn, npu_half half) {
    bool is_loop = insn->op == PTOWSP_OP_LOOP, is_end = insn->op == PTOWSP_OP_END;
    bool is_wait = insn->op == PTOWSP_OP_SET_FLAG || insn->op == PTOWSP_OP_WAIT_FLAG ||
                   insn->op == PTOWSP_OP_PIPE_BARRIER;
    npu_half of = npu_kernel_half(k, insn);
    return is_loop                 ? "for {"
           : is_end                ? "}"
           : is_wait || of != half ? NULL
                                   : ptowsp_opcode_name(insn->op);
}

// The instructions of a half, one after another, without flags and barriers.
static void npu_print_words(const npu_kernel *k, npu_half half, npu_text *out) {
    size_t line = out->size;
    npu_print(out, "//      %s ", half == NPU_HALF_CUBE ? "cube:  " : "vector:");
    for (uint32_t i = 0; i < k->info->insn_count; i++) {
        const ptowsp_insn_info *insn = &k->info->insns[i];
        const char *word = npu_half_word(k, insn, half);
        if (word && out->size - line + strlen(word) > 86) {
            line = out->size + 1;
            npu_print(out, "\n//              ");
        }
        if (word) {
            bool is_fifo = npu_is_fifo(insn);
            npu_print(out, " %s%s%s%s", word, is_fifo ? "(" : "",
                      is_fifo ? npu_fifo_name(insn->fifo) : "", is_fifo ? ")" : "");
        }
    }
    npu_print(out, "\n");
}

NPU_INTERNAL void npu_halves_print_heading(const npu_kernel *k, npu_text *out) {
    npu_print(out,
              "//\n// It has two halves, for a cube core and for vector cores, and tiles go from "
              "one to the other\n// through FIFOs in global memory.\n//\n");
    for (uint32_t i = 0; i < 2; i++) {
        const ptowsp_fifo *fifo = &k->info->fifos[i];
        if (fifo->slot_bytes) {
            npu_print(out, "//      %-10s %-16s %u slots of %u bytes, flags %u and %u\n",
                      npu_fifo_name(i), i ? "vector -> cube" : "cube -> vector", fifo->slot_count,
                      fifo->slot_bytes, fifo->flag, fifo->flag + 1);
        }
    }
    npu_print(out, "//\n");
    npu_print_words(k, NPU_HALF_CUBE, out);
    npu_print_words(k, NPU_HALF_VECTOR, out);
    npu_print(out, "//\n// %s\n",
              k->info->is_split
                  ? "The two vector cores of a block share the rows of the vector half."
                  : "The rows of the vector half need each other: the first vector core has all.");
}

// -- a half ---------------------------------------------------------------------------------------

// The FIFOs, which both halves have alike.
static void npu_print_fifo_types(const npu_kernel *k, npu_text *out) {
    npu_print(out, "// What both halves know: the FIFOs between them.\n");
    for (uint32_t i = 0; i < 2; i++) {
        const ptowsp_fifo *fifo = &k->info->fifos[i];
        if (fifo->slot_bytes) {
            npu_print(out, "using %s = wsp::Fifo<%u, %s, %u, %u, TileSplitAxis::TILE_%s>;\n",
                      npu_fifo_types[i], fifo->flag, i ? "false" : "true", fifo->slot_bytes,
                      fifo->slot_count, k->info->is_split ? "UP_DOWN" : "NO_SPLIT");
        }
    }
}

static void npu_print_fifos(const npu_kernel *k, bool is_shared, npu_text *out) {
    for (uint32_t i = 0; i < 2; i++) {
        if (k->info->fifos[i].slot_bytes) {
            npu_print(out, "    %s %s(pipes%s);\n", npu_fifo_types[i], npu_fifo_name(i),
                      is_shared ? ", mine" : "");
        }
    }
}

// The code of the second vector core when the two share no rows: it only passes the FIFOs.
static void npu_print_second(npu_kernel *k, npu_text *out) {
    npu_print(out, "\n    // The second vector core frees and fills slots alone.\n"
                   "    if (!wsp::is_first()) {\n");
    k->half = NPU_HALF_SECOND;
    npu_kernel_print_body(k, 8, out);
    k->half = NPU_HALF_VECTOR;
    npu_print(out, "        return;\n    }\n");
}

// Is a word in a text?
static bool npu_half_mentions(const npu_text *text, const char *word) {
    return text->data && strstr(text->data, word);
}

// A half: its addresses, and its function.
static void npu_print_half_function(npu_kernel *k, npu_half half, npu_text *out) {
    npu_text body = {NULL, 0, 0, false}, begin = {NULL, 0, 0, false}, made = {NULL, 0, 0, false};
    bool is_vector = half == NPU_HALF_VECTOR, is_shared = is_vector && k->info->is_split;
    npu_kernel_begin_half(k, half);
    npu_kernel_print_body(k, 4, &body);  // first: it finds sizes and windows
    npu_kernel_print_loops(k, 0, &begin);
    if (is_shared) {
        char rows[NPU_LOCAL_MAX];
        npu_kernel_size(k, &k->tiles[k->info->split_tile].object.valid_rows, rows);
        npu_print(&begin, "    const wsp::Share mine = wsp::share(%s);  // of the rows\n", rows);
    }
    npu_print_fifos(k, is_shared, &begin);
    if (is_vector && !is_shared) {
        npu_print_second(k, &begin);
    }
    npu_kernel_print_declarations(k, &begin, &made);
    npu_print(out, "\n// -- the %s half --\n\n#if WSP_HAS_%s\n\n", npu_half_names[half],
              is_vector ? "VECTOR" : "CUBE");
    npu_kernel_print_constants(k, out);
    bool has_task = npu_half_mentions(&made, "(task") || npu_half_mentions(&body, "(task");
    npu_print(out, "\nAICORE inline void %s(__gm__ wsp_task *%s, wsp::Pipes &%s) {\n",
              npu_half_names[half], has_task ? "task" : "",
              npu_half_mentions(&made, "(pipes") ? "pipes" : "");
    npu_append(out, &made);
    npu_print(out, "\n");
    npu_append(out, &body);
    npu_print(out, "}\n\n#endif\n");
}

// -- the kernel -----------------------------------------------------------------------------------

// The entry: the checks that end a task before anything is touched, on each core alike, then the halves.
static void npu_print_halves_entry(npu_kernel *k, npu_text *out) {
    npu_text checks = {NULL, 0, 0, false};
    const char *name = npu_name(k->emitter, NPU_KERNEL, k->kernel);
    npu_kernel_begin_half(k, NPU_HALF_ANY);
    npu_kernel_print_checks(k, &checks);
    npu_print(out,
              "\nextern \"C\" AICORE void wsp_kernel_%s(__gm__ wsp_task *task WSP_BLOCK_PARAM) {\n",
              name);
    npu_kernel_print_sizes(k, out);
    npu_append(out, &checks);
    npu_kernel_print_requirements(k, out);
    npu_print(out, "    WSP_HALVES(task, v_%s::cube, v_%s::vector);\n}\n", name, name);
}

NPU_INTERNAL void npu_halves_print(npu_kernel *k, npu_text *out) {
    const char *name = npu_name(k->emitter, NPU_KERNEL, k->kernel);
    npu_print(out, "namespace v_%s {\n\n", name);
    npu_print_fifo_types(k, out);
    npu_print_half_function(k, NPU_HALF_CUBE, out);
    npu_print_half_function(k, NPU_HALF_VECTOR, out);
    npu_print(out, "\n}  // namespace v_%s\n", name);
    npu_print_halves_entry(k, out);
}
