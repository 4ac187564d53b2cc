// test_NAME.py of a tree for PTO Runtime: its kernels, the sizes of its rings, and a case that reads the
// recording beside it. How recordings become arguments is in tree/simpler/wsp_recording.py, which is the
// same in every tree and needs nothing of the runtime.

#include "kernels.h"

#define NPU_SIMPLER_REVISION "6ebaf77 of 2026-08-22"

// The recording, with the types of the tensors that it may have.
static void npu_python_recording(const npu_emitter *emitter, npu_text *out) {
    npu_print(out,
              "RECORDING = wsp_recording.Recording(\n"
              "    os.path.join(HERE, \"recording\"),\n    hash=\"%s\",\n    tensors={\n",
              emitter->hash);
    for (uint32_t i = 1; i < emitter->names.count[NPU_TENSOR]; i++) {
        const ptowsp_tensor_info *tensor = &emitter->tables->tensors[i];
        if (tensor->is_used && !tensor->is_transient) {  // JSON's strings are Python's, too
            npu_print_json(out, "        '%s': '%s',\n", tensor->desc.name,
                           ptowsp_dtype_name(tensor->desc.dtype));
        }
    }
    npu_print(out, "    },\n)\n\n");
}

// -- the test -------------------------------------------------------------------------------------

static void npu_python_kernel(npu_text *out, int32_t id, const char *name, const char *suffix,
                              const char *folder, const char *core,
                              const ptowsp_kernel_info *info) {
    if (id < 0) {
        return;
    }
    npu_print(out,
              "            {\n                \"func_id\": %d,\n"
              "                \"name\": \"%s%s\",\n"
              "                \"source\": \"kernels/%s%s.cpp\",\n"
              "                \"core_type\": \"%s\",\n                \"signature\": [",
              (int)id, name, suffix, folder, name, core);
    for (uint32_t i = 0; i < info->tile_count; i++) {
        npu_print(out, "%s%s", i ? ", " : "",
                  info->tiles[i].direction == PTOWSP_IN ? "D.IN" : "D.INOUT");
    }
    npu_print(out, "%s],\n                \"extra_include_dirs\": [\"kernels\"],\n            },\n",
              info->is_mixed ? ", D.OUT" : "");
}

static void npu_python_kernels(const npu_emitter *emitter, npu_text *out) {
    for (uint32_t i = 1; i < emitter->names.count[NPU_KERNEL]; i++) {
        const ptowsp_kernel_info *info = &emitter->tables->kernels[i];
        const npu_simpler_ids ids = npu_simpler_kernel_ids(emitter, i);
        const char *name = npu_name(emitter, NPU_KERNEL, i);
        npu_python_kernel(out, ids.cube, name, info->is_mixed ? "_cube" : "", "", "aic", info);
        npu_python_kernel(out, ids.vector, name, info->is_mixed ? "_vector" : "", "", "aiv", info);
        npu_python_kernel(out, ids.second, name, "_second", "second/", "aiv", info);
    }
}

static uint64_t npu_rounded(uint64_t bytes) {
    return (bytes + 1023) / 1024 * 1024;
}

// See simpler.c.
static void npu_python_rings(const npu_emitter *emitter, uint32_t window, uint64_t transient_bytes,
                             npu_text *out) {
    uint64_t fifo_bytes = 0, unknown = (uint64_t)256 << 20;
    for (uint32_t i = 1; i < emitter->names.count[NPU_KERNEL]; i++) {
        const uint64_t bytes =
            npu_rounded(4 * (uint64_t)npu_simpler_kernel_ids(emitter, i).slot_bytes);
        fifo_bytes = bytes > fifo_bytes ? bytes : fifo_bytes;
    }
    const uint64_t block = transient_bytes == UINT64_MAX ? unknown : npu_rounded(transient_bytes);
    const uint64_t fifos = fifo_bytes * window;
    npu_print(
        out,
        "# By depth of the scope; `ptowsp_tool dump rings` has the least. ring_heap[1] is for %s.\n"
        "RINGS = {\n"
        "    \"ring_task_window\": [4, 4, %u, 4],\n"
        "    \"ring_heap\": [1024, %llu, %llu, 1024],\n"
        "    \"ring_dep_pool\": [4, 4, %u, 4],\n}\n",
        !block                          ? "no transient tensors"
        : transient_bytes == UINT64_MAX ? "transient tensors of a size that is not known"
                                        : "the transient tensors of the recorded run",
        window, (unsigned long long)(block ? block : 1024),
        (unsigned long long)(fifos ? fifos : 1024), 17 * window);
}

// test_NAME, class TestName.
static void npu_python_class(const char *name, npu_text *out) {
    bool is_first = true;
    npu_print(out, "Test");
    for (; *name; name++) {
        const bool is_letter = *name >= 'a' && *name <= 'z';
        if (*name != '_') {
            npu_print(out, "%c", is_first && is_letter ? *name - 'a' + 'A' : *name);
        }
        is_first = *name == '_';
    }
}

NPU_INTERNAL void npu_simpler_print_test(const npu_emitter *emitter, uint32_t task_window,
                                         uint64_t transient_bytes, bool is_recorded,
                                         npu_text *out) {
    char mangled[NPU_NAME_MAX + 3];
    npu_mangle(emitter->tables->name, mangled);
    const char *name = mangled + 2, *platform = npu_kernel_is_on_a5(emitter) ? "a5" : "a2a3";
    npu_print(out, "# Program ");
    npu_print_comment(out, emitter->tables->name);
    npu_print(out,
              " under PTO Runtime (simpler, revision %s). Generated.\n#\n"
              "#     python test_%s.py -p %ssim [--enable-dep-gen --enable-chip-swimlane]\n#\n"
              "# The recording is a run of the program: %s.\n\n"
              "import os\nimport sys\n\n"
              "from simpler.task_interface import ArgDirection as D\n"
              "from simpler_setup import SceneTestCase, TaskArgsBuilder, TensorArg, scene_test\n\n"
              "HERE = os.path.dirname(os.path.abspath(__file__))\n"
              "sys.path.insert(0, HERE)\n\n"
              "import wsp_recording  # noqa: E402\n\n",
              NPU_SIMPLER_REVISION, name, platform,
              is_recorded ? "what it binds, and what tasks then wrote"
                          : "it comes from ptowsp_npu_record");
    npu_python_recording(emitter, out);
    npu_python_rings(emitter, task_window, transient_bytes, out);
    npu_print(out, "\n\n@scene_test(level=2, runtime=\"tensormap_and_ringbuffer\")\nclass ");
    npu_python_class(name, out);
    npu_print(out,
              "(SceneTestCase):\n"
              "    TOLERANCE = 1e-6  # of a tensor's largest element\n"
              "    CALLABLE = {\n"
              "        \"orchestration\": {\n"
              "            \"source\": \"orchestration/%s.cpp\",\n"
              "            \"function_name\": \"aicpu_orchestration_entry\",\n"
              "            \"signature\": [D.INOUT if is_written else D.IN for _, _, is_written in "
              "RECORDING.args],\n        },\n        \"incores\": [\n",
              name);
    npu_python_kernels(emitter, out);
    npu_print(
        out,
        "        ],\n    }\n"
        "    CASES = [\n        {\n            \"name\": \"recorded\",\n"
        "            \"platforms\": [\"%ssim\"%s%s%s],\n"
        "            \"params\": {},\n"
        "            \"config\": {\"runtime_env\": RINGS},\n        }\n    ]\n\n"
        "    def generate_args(self, params):\n"
        "        return TaskArgsBuilder(*[TensorArg(name, tensor) for name, tensor in "
        "RECORDING.tensors()])\n\n"
        "    def compute_golden(self, args, params):\n"
        "        for name, tensor in RECORDING.golden():\n"
        "            getattr(args, name)[:] = tensor\n\n"
        "    def compare_outputs(self, test_args, golden_args, output_names, params):\n"
        "        RECORDING.compare(lambda name: getattr(test_args, name), self.TOLERANCE)\n\n\n"
        "if __name__ == \"__main__\":\n    SceneTestCase.run_module(__name__)\n",
        platform, emitter->is_for_device ? ", \"" : "", emitter->is_for_device ? platform : "",
        emitter->is_for_device ? "\"" : "");
}
