// Features that a device lacks, as far as they are known when a tree is emitted: instructions that
// PTO-ISA has in its CPU simulator alone, and strides that a device cannot move.
//
// PTO-ISA's windows are by rows, with the elements of a row side by side, or by columns, with the
// elements of a column side by side. Most tiles are moved by rows. Right factors are loaded either
// way, and columns of 2 and 4 bytes through rows of 32 bytes (kernel_parts.c, aicore/wsp_kernel.h).
// Neither way serves two sorts of column-major tiles: columns of bytes, and columns for whose rows UB
// has no room.
//
// Strides of bound tensors differ from run to run. So kernels check them in each task, which ends
// with UNSUPPORTED (WSP_REQUIRE_...). A transient tensor is row-major in every run: where its
// rows have more than one element, its columns are never dense, and a device could run no such task.

#include "kernels.h"

// Is the view of a transient tensor of several rows, each of several elements, in every run?
static bool npu_is_by_rows(const ptowsp_tensor_info *tensor, const ptowsp_view_info *view) {
    uint32_t rank = tensor->desc.rank;
    return tensor->is_transient && rank >= 2 && view->row_count == 0 &&
           tensor->desc.shape[rank - 1] > 1 && tensor->desc.shape[rank - 2] > 1;
}

NPU_INTERNAL bool npu_strides_check(const npu_kernel *k) {
    const ptowsp_program_tables *t = k->emitter->tables;
    for (uint32_t i = 0; i < k->info->insn_count && k->emitter->is_for_device; i++) {
        const ptowsp_opcode op = k->info->insns[i].op;
        if (op == PTOWSP_OP_TADDC || op == PTOWSP_OP_TADDSC) {
            return npu_fail(k->emitter, PTOWSP_UNSUPPORTED, k->kernel,
                            "kernel %s: PTO-ISA has %s in its CPU simulator alone: use %s and TADD "
                            "(is_for_host: for threads and simulators)",
                            k->info->name, ptowsp_opcode_name(op),
                            op == PTOWSP_OP_TADDC ? "TADD" : "TADDS");
        }
    }
    for (uint32_t i = 0; i < t->statement_count && k->emitter->is_for_device; i++) {
        if (t->statements[i].kind != PTOWSP_STATEMENT_TASK ||
            t->tasks[t->statements[i].task].kernel != k->kernel) {
            continue;
        }
        for (uint32_t j = 0; j < k->info->tile_count; j++) {
            const ptowsp_view_info *view = &t->tasks[t->statements[i].task].tiles[j];
            const ptowsp_tensor_info *tensor = &t->tensors[view->tensor];
            if (k->is_dense[j][1] && k->info->tiles[j].rows > 1 && npu_is_by_rows(tensor, view)) {
                return npu_fail(k->emitter, PTOWSP_UNSUPPORTED, k->kernel,
                                "kernel %s: parameter %s is moved by columns of %s, and a device "
                                "cannot, as transient tensor %s lies by rows (rule: windows; "
                                "is_for_host: for threads and simulators)",
                                k->info->name, k->info->tiles[j].name,
                                ptowsp_dtype_name(k->info->tiles[j].dtype), tensor->desc.name);
            }
        }
    }
    return true;
}
