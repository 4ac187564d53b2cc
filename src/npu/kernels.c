// aicore/: a source per kernel, and dispatch by kernel id.

#include "npu.h"

NPU_INTERNAL void npu_kernels_emit(npu_emitter *emitter) {
    npu_text text = {NULL, 0, 0, false};
    npu_print(&text, "#include \"wsp_abi.h\"\n");
    npu_add_file(emitter, &text, "aicore/dispatch.cpp");
}
