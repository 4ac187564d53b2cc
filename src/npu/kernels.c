// aicore/kernels/*.cpp of tile kernels: one function for each, which executes the kernel's list of
// instructions in order.
//
//      // Kernel softmax: ...
//      #include "wsp_kernel.h"
//
//      namespace v_softmax {
//      constexpr uint32_t v_x_at = 0;                    addresses, checked to be in bounds
//      }
//
//      extern "C" AICORE void wsp_kernel_softmax(__gm__ wsp_task *task) {
//          using namespace v_softmax;
//          const int v_x_rows = wsp::rows(task, 0);     sizes, and their checks
//          auto v_x_gm = wsp::window<float>(...);       windows
//          Tile<...> v_x(v_x_rows, v_x_cols);           tiles
//          TLOAD(v_x, v_x_gm);                          instructions
//          for (int n_1 = 0; n_1 < loop_1.count; n_1++) {
//              const int i_1 = loop_1.at(n_1);          values that depend on the loop
//              TASSIGN(v_y, wsp::place(v_y_at, 512, n_1));  a tile that has two places, and its flags:
//              wait_flag(PIPE_V, PIPE_MTE2, wsp::event(6, n_1));
//          }
//      }
//
// The library executes the same list (src/kernel/execute.c), with the same sizes in the same order,
// so the shim gives the same bytes and cycles.
//
// A file compiles alone, as a device's compiler gets it, and together with others: names are unique
// over all files. Builds here compile NPU_GROUP_MAX of them at a time, because most of the time goes
// into the shim's instructions, which they share.

#include "kernels.h"

#include <stdio.h>

// -- the parts of a file --------------------------------------------------------------------------

static void npu_print_param(const npu_kernel *k, uint32_t i, npu_text *out) {
    const ptowsp_tile_param *param = &k->info->tiles[i];
    npu_print(out, "//      %-5s %s %lld x %lld  ",
              param->direction == PTOWSP_IN    ? "in"
              : param->direction == PTOWSP_OUT ? "out"
                                               : "inout",
              ptowsp_dtype_name(param->dtype), (long long)param->rows, (long long)param->cols);
    npu_print_comment(out, param->name);
    npu_print(out, "\n");
}

static void npu_print_heading(const npu_kernel *k, npu_text *out) {
    npu_print(out, "// Kernel ");
    npu_print_comment(out, k->info->name);
    npu_print(out, ", for %s: %u instructions, with flags and barriers. Generated.\n//\n",
              k->info->machine.name, k->info->insn_count);
    for (uint32_t i = 0; i < k->info->tile_count; i++) {
        npu_print_param(k, i, out);
    }
    for (uint32_t i = 0; i < k->info->scalar_count; i++) {
        npu_print(out, "//      %s  ", ptowsp_dtype_name((ptowsp_dtype)k->info->scalar_dtypes[i]));
        npu_print_comment(out, k->info->scalars[i].name);
        npu_print(out, "\n");
    }
    if (k->info->is_mixed) {
        npu_halves_print_heading(k, out);
    } else if (k->is_mixed) {
        npu_print(out,
                  "//\n"
                  "// It works on cube and vector cores. Where one core is both, that runs all of "
                  "it.\n");
    }
    npu_print(out, "\n");
}

// Names the parameter's size from which an extent is computed, unless the extent is that size itself.
static void npu_name_param_size(npu_kernel *k, const ptowsp_extent *extent) {
    if (extent->param != PTOWSP_NO_PARAM && !npu_extent_is_plain(k, extent)) {
        char text[NPU_LOCAL_MAX];
        ptowsp_extent whole = {extent->param, extent->axis, 0, 1, 0, 0, 0};
        whole.max = (uint32_t)npu_param_size(k, extent);
        npu_kernel_size(k, &whole, text);
    }
}

// Sizes that depend on a loop are compared in each of its iterations.
static void npu_print_loop_check(npu_kernel *k, const ptowsp_size_check *check, uint32_t number,
                                 npu_text *out) {
    uint32_t loops[2] = {check->a.loop, check->b.loop == check->a.loop ? 0 : check->b.loop};
    bool is_equal = check->a.param != PTOWSP_NO_PARAM;  // b is of a parameter
    uint32_t indent = 4;
    npu_text text = {NULL, 0, 0, false};
    for (uint32_t i = 0; i < 2; i++) {
        if (loops[i]) {
            npu_print(out, "%*sfor (int n_%u = 0; n_%u < loop_%u.count; n_%u++) {\n", (int)indent,
                      "", loops[i], loops[i], loops[i], loops[i]);
            indent += 4;
            npu_print(out, "%*sconst int i_%u = loop_%u.at(n_%u);\n", (int)indent, "", loops[i],
                      loops[i], loops[i]);
        }
    }
    npu_print(&text, "WSP_CHECK(task, %u, ", number);
    npu_kernel_print_extent(k, &check->a, &text);
    npu_print(&text, is_equal ? " == " : " <= ");
    npu_kernel_print_extent(k, &check->b, &text);
    npu_print(&text, ");");
    npu_print(out, "%*s// %s\n", (int)indent, "", check->operation);
    npu_append_wrapped(out, indent, &text);
    while (indent > 4) {
        indent -= 4;
        npu_print(out, "%*s}\n", (int)indent, "");
    }
}

// The sizes that must be equal among a task's parameters, and the bounds of loops.
NPU_INTERNAL void npu_kernel_print_checks(npu_kernel *k, npu_text *out) {
    npu_kernel_print_loops(k, k->info->check_count + 1, out);
    for (uint32_t i = 0; i < k->info->check_count; i++) {
        const ptowsp_size_check *check = &k->info->checks[i];
        bool is_equal = check->a.param != PTOWSP_NO_PARAM;  // b is of a parameter
        char a[NPU_LOCAL_MAX], b[NPU_LOCAL_MAX], text[3 * NPU_LOCAL_MAX];
        if (check->a.loop || check->b.loop) {
            npu_name_param_size(k, &check->a);
            npu_name_param_size(k, &check->b);
            npu_print_loop_check(k, check, i + 1, out);
            continue;
        }
        npu_kernel_size(k, &check->a, a);
        npu_kernel_size(k, &check->b, b);
        if (strcmp(a, b) == 0) {
            continue;
        }
        snprintf(text, sizeof text, "WSP_CHECK(task, %u, %s %s %s);  // %s", i + 1, a,
                 is_equal ? "==" : "<=", b, check->operation);
        npu_print_wrapped(out, 4, text);
    }
}

static const char *npu_half_condition(npu_half half) {
    return half == NPU_HALF_CUBE     ? "WSP_HAS_CUBE"
           : half == NPU_HALF_VECTOR ? "WSP_HAS_VECTOR"
                                     : "WSP_HAS_CUBE && WSP_HAS_VECTOR";
}

// Opens and closes the block for turns that have an iteration of a phase.
static void npu_print_phase(npu_kernel *k, uint32_t *open, uint32_t phase, npu_text *out) {
    if (phase == *open) {
        return;
    }
    if (*open) {
        k->indent -= 4;
        npu_print(out, "%*s}\n", (int)k->indent, "");
    }
    if (phase) {
        npu_print(out,
                  k->info->loops[phase].late_of ? "%*sif (n_%u >= 0) {\n"
                                                : "%*sif (n_%u < loop_%u.count) {\n",
                  (int)k->indent, "", phase, phase);
        k->indent += 4;
    }
    *open = phase;
}

// The beginning or end of a loop's body. False: the instruction is neither.
static bool npu_print_mark(npu_kernel *k, const ptowsp_insn_info *insn, npu_text *out) {
    if (insn->op == PTOWSP_OP_LOOP) {
        const uint32_t loop = insn->loop, preload = k->info->loops[loop].preload;
        char turns[32];
        snprintf(turns, sizeof turns, preload ? "turns(%u)" : "count", preload);
        npu_print(out, "%*sfor (int n_%u = 0; n_%u < loop_%u.%s; n_%u++) {\n", (int)k->indent, "",
                  loop, loop, loop, turns, loop);
        k->loop_at[insn->loop] = out->size;
        k->indent += 4;
        return true;
    }
    if (insn->op == PTOWSP_OP_END) {
        k->indent -= 4;
        npu_print(out, "%*s}\n", (int)k->indent, "");
        return true;
    }
    return false;
}

// The body, with the declarations of each loop at its beginning.
static void npu_write_body(npu_kernel *k, uint32_t indent, const npu_text *body, npu_text *out) {
    size_t at = 0;
    npu_kernel_add_loop_sizes(k);
    for (uint32_t loop = 1; loop <= k->info->loop_count && body->data; loop++) {
        if (k->loop_at[loop] < at || !npu_kernel_has_loop(k, loop) ||
            k->info->loops[loop].late_of) {
            continue;
        }
        npu_write(out, body->data + at, k->loop_at[loop] - at);
        npu_kernel_print_loop_declarations(k, loop, indent, out);
        at = k->loop_at[loop];
    }
    npu_write(out, body->data ? body->data + at : "", body->size - at);
}

// Begins and ends the lines for one kind of core, in a function for both.
static void npu_print_half(npu_half *open, npu_half half, npu_text *out) {
    half = half == NPU_HALF_BOTH ? NPU_HALF_ANY : half;
    if (half != *open) {
        npu_print(out, "%s", *open == NPU_HALF_ANY ? "" : "#endif\n");
        if (half != NPU_HALF_ANY) {
            npu_print(out, "#if %s\n", npu_half_condition(half));
        }
        *open = half;
    }
}

NPU_INTERNAL void npu_kernel_print_body(npu_kernel *k, uint32_t indent, npu_text *out) {
    npu_text body = {NULL, 0, 0, false};
    npu_half open = NPU_HALF_ANY;
    uint32_t phase = 0;
    k->indent = indent;
    memset(k->loop_at, 0, sizeof k->loop_at);
    for (uint32_t i = 0; i < k->info->insn_count; i++) {
        const ptowsp_insn_info *insn = &k->info->insns[i];
        bool is_mark = insn->op == PTOWSP_OP_LOOP || insn->op == PTOWSP_OP_END;
        if (!(is_mark ? npu_kernel_has_loop(k, insn->loop) : npu_kernel_has(k, insn))) {
            continue;
        }
        if (k->half == NPU_HALF_ANY) {
            npu_print_half(&open, npu_kernel_half(k, insn), &body);
        }
        npu_print_phase(k, &phase, insn->phase, &body);
        if (!npu_print_mark(k, insn, &body)) {
            npu_kernel_print_insn(k, insn, &body);
        }
    }
    npu_print_half(&open, NPU_HALF_ANY, &body);
    npu_write_body(k, indent, &body, out);
    npu_text_end(out, &body);
}

static bool npu_mentions_bf16(const npu_text *text) {
    return text->data && strstr(text->data, "bfloat16_t");
}

// Products that may have nothing to sum take zeros from L1.
static bool npu_check_zeros(const npu_kernel *k) {
    uint64_t end = (k->ends[PTOWSP_MEMORY_L1] + 31) / 32 * 32 + (uint64_t)k->zero_bytes;
    uint32_t limit = k->info->machine.memory_bytes[PTOWSP_MEMORY_L1];
    if (k->zero_bytes == 0 || end <= limit) {
        return true;
    }
    return npu_fail(k->emitter, PTOWSP_UNSUPPORTED, k->kernel,
                    "kernel %s: matmul of %s: a sum may be empty, for which %s wants %u bytes of "
                    "zeros in "
                    "L1, and %u of %u are in use (rule: empty products)",
                    k->info->name, ptowsp_dtype_name(k->zero_dtype), k->info->machine.name,
                    k->zero_bytes, k->ends[PTOWSP_MEMORY_L1], limit);
}

// A kernel that is one function: its constants, then itself.
static void npu_print_function(npu_kernel *k, npu_text *out) {
    npu_text body = {NULL, 0, 0, false}, checks = {NULL, 0, 0, false}, made = {NULL, 0, 0, false};
    npu_kernel_print_body(k, 4, &body);  // first: it finds sizes and windows
    npu_kernel_print_checks(k, &checks);
    npu_kernel_print_declarations(k, &checks, &made);
    const char *name = npu_name(k->emitter, NPU_KERNEL, k->kernel);
    npu_print(out, "namespace v_%s {\n\n", name);
    npu_kernel_print_constants(k, out);
    npu_print(out,
              "\n}  // namespace v_%s\n\n"
              "extern \"C\" AICORE void wsp_kernel_%s(__gm__ wsp_task *task) {\n"
              "    using namespace v_%s;\n",
              name, name, name);
    npu_append(out, &made);
    npu_print(out, "\n");
    npu_append(out, &body);
    npu_print(out, "}\n");
}

static void npu_print_kernel(npu_kernel *k, npu_text *out) {
    npu_text code = {NULL, 0, 0, false};
    (k->info->is_mixed ? npu_halves_print : npu_print_function)(k, &code);
    bool is_good = npu_check_zeros(k) && npu_strides_check(k);
    const char *unit =
        k->is_mixed ? NULL
        : k->info->memory_bytes[PTOWSP_MEMORY_L1] || k->info->memory_bytes[PTOWSP_MEMORY_L0C]
            ? "WSP_HAS_CUBE"
            : "WSP_HAS_VECTOR";
    npu_print_heading(k, out);
    npu_print(out, "%s#include \"wsp_kernel.h\"\n\n",
              npu_kernel_is_on_a5(k->emitter) ? "#define WSP_TARGET_A5\n" : "");
    if (unit) {
        npu_print(out, "#if %s\n\n", unit);
    }
    npu_print(out, "using namespace pto;\n\n%s",
              npu_mentions_bf16(&code) ? "WSP_NEEDS_BF16();\n\n" : "");
    npu_append(out, &code);
    npu_print(out, "%s", unit ? "\n#endif\n" : "");
    if (is_good && (k->is_out_of_memory || out->is_out_of_memory)) {
        npu_out_of_memory(k->emitter);
    }
}

// -- all kernels ----------------------------------------------------------------------------------

static ptowsp_family npu_family(const ptowsp_kernel_info *info) {
    return info->pto ? info->pto->family : info->machine.family;
}

bool npu_kernel_is_on_a5(const npu_emitter *emitter) {
    for (uint32_t i = 1; i < emitter->tables->kernel_count; i++) {
        const ptowsp_kernel_info *info = &emitter->tables->kernels[i];
        if (info->is_used && (info->is_tile_kernel || info->pto)) {
            return npu_family(info) == PTOWSP_FAMILY_A5;
        }
    }
    return false;
}

// Tiles have one layout in L0A for a whole program: its kernels are for one family of machines.
static bool npu_check_families(npu_emitter *emitter) {
    bool is_a5 = npu_kernel_is_on_a5(emitter);
    for (uint32_t i = 1; i < emitter->tables->kernel_count; i++) {
        const ptowsp_kernel_info *info = &emitter->tables->kernels[i];
        if (info->is_used && (info->is_tile_kernel || info->pto) &&
            (npu_family(info) == PTOWSP_FAMILY_A5) != is_a5) {
            return npu_fail(emitter, PTOWSP_UNSUPPORTED, i,
                            "kernel %s is for %s, other kernels for %s: a tree is for one machine",
                            info->name, is_a5 ? "A2/A3" : "A5", is_a5 ? "A5" : "A2/A3");
        }
    }
    return true;
}

// The cores of a tree have one pair of FIFOs for all kernels, which counts on. Other numbers of slots
// than two are in a file.
static bool npu_check_fifos(npu_emitter *emitter) {
    uint32_t slots = 0, first = 0;
    for (uint32_t i = 1; i < emitter->tables->kernel_count; i++) {
        const ptowsp_kernel_info *info = &emitter->tables->kernels[i];
        for (uint32_t f = 0; f < 2 && info->is_used && info->is_mixed; f++) {
            uint32_t own = info->fifos[f].slot_bytes ? info->fifos[f].slot_count : 0;
            if (slots && own && own != slots) {
                return npu_fail(emitter, PTOWSP_UNSUPPORTED, i,
                                "kernel %s has FIFOs of %u slots, kernel %s of %u: a tree has one "
                                "kind; let them preload as much, or emit them apart",
                                info->name, own, emitter->tables->kernels[first].name, slots);
            }
            first = own ? i : first;
            slots = own ? own : slots;
        }
    }
    if (slots > 2) {
        npu_text text = {NULL, 0, 0, false};
        npu_print(&text,
                  "// The FIFOs between a block's cores: kernels of this program begin iterations "
                  "ahead. Generated.\n\n#ifndef WSP_FIFO_SLOT_COUNT\n"
                  "#define WSP_FIFO_SLOT_COUNT %uu\n#endif\n",
                  slots);
        npu_add_file(emitter, &text, "include/wsp_fifos.h");
    }
    return emitter->status == PTOWSP_OK;
}

NPU_INTERNAL void npu_kernels_emit(npu_emitter *emitter) {
    if (!npu_check_families(emitter) || !npu_check_fifos(emitter)) {
        return;
    }
    for (uint32_t i = 1; i < emitter->tables->kernel_count && emitter->status == PTOWSP_OK; i++) {
        const ptowsp_kernel_info *info = &emitter->tables->kernels[i];
        if (!info->is_used || emitter->kernel_files[i]) {
            continue;
        }
        if (info->pto) {
            npu_own_emit(emitter, i);
            continue;
        }
        if (!info->is_tile_kernel) {
            npu_native_emit(emitter, i);
            continue;
        }
        npu_kernel k;
        npu_text text = {NULL, 0, 0, false};
        if (npu_kernel_begin(&k, emitter, i)) {
            npu_print_kernel(&k, &text);
            uint32_t file = npu_add_file(emitter, &text, "aicore/kernels/%s.cpp",
                                         npu_name(emitter, NPU_KERNEL, i));
            if (emitter->status == PTOWSP_OK) {
                emitter->files[file].is_grouped = true;
                emitter->kernel_files[i] = 1 + file;
            }
        }
        npu_kernel_end(&k);
    }
    if (emitter->status == PTOWSP_OK) {
        npu_dispatch_emit(emitter);
    }
}
