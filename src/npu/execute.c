// Loads the library of a tree, and runs it with what is bound to a run.

#include "build.h"

#if NPU_HAS_POSIX

#include <dlfcn.h>

NPU_INTERNAL bool npu_load(ptowsp_npu *npu, const char *directory, npu_text *why) {
    npu_text path = {NULL, 0, 0, false};
    npu_print(&path, "%s/" NPU_LIBRARY, directory);
    npu->library = path.is_out_of_memory ? NULL : dlopen(path.data, RTLD_NOW | RTLD_LOCAL);
    if (!npu->library) {
        const char *error = path.is_out_of_memory ? NULL : dlerror();
        npu_print(why, "%s", error ? error : "no memory");
    }
    npu_text_free(&path);
    return npu->library != NULL;
}

ptowsp_status ptowsp_npu_execute(ptowsp_npu *npu, const ptowsp_run *run,
                                 const ptowsp_npu_options *options, uint64_t *slots,
                                 uint32_t slot_count, ptowsp_npu_result *out_result) {
    (void)run;
    (void)options;
    (void)slots;
    (void)slot_count;
    (void)out_result;
    return ptowsp_context_fail(npu->context, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX, "npu: later");
}

#endif
