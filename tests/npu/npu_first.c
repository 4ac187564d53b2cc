// Builds the first trees of make test: what is the same in all trees is then in the cache, for each
// combination of the parts that trees leave out, pipelines and plans. And writes a tree with a tile
// kernel, whose headers are precompiled.
//
//      npu_first write DIRECTORY
//      npu_first build CACHE OPTIONS

#include "ptowsp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char source[] = "static ptowsp_cycles pass(const ptowsp_task *task, void *user) {\n"
                             "    (void)task;\n    (void)user;\n    return 1;\n}\n";

static ptowsp_cycles pass(const ptowsp_task *task, void *user) {
    (void)task;
    (void)user;
    return 1;
}

static void check(ptowsp_context *context, ptowsp_status status) {
    if (status != PTOWSP_OK) {
        fprintf(stderr, "%s\n", ptowsp_context_error(context).text);
        exit(1);
    }
}

static ptowsp_program *program_of(ptowsp_context *context, const char *text, ptowsp_module **m) {
    static const ptowsp_parse_kernel kernel = {
        .name = "pass", .fn = pass, .source = {.text = source, .fn = "pass"}};
    const ptowsp_parse_desc desc = {&kernel, 1, 0};
    ptowsp_program *program = NULL;
    check(context, ptowsp_module_parse(context, text, strlen(text), &desc, m, NULL));
    check(context, ptowsp_program_create(context, *m, NULL, &program));
    return program;
}

static void write_tree(ptowsp_context *context, const char *directory) {
    const ptowsp_npu_desc desc = {directory, true, true, PTOWSP_NPU_OWN, 0, 0, NULL};
    ptowsp_module *m;
    ptowsp_program *program =
        program_of(context,
                   "module first\n"
                   "tensor x f32 [1, 8] global\n"
                   "kernel twice(axes 0, inout x f32 1 x 8) vector, 4 instructions\n"
                   "  %1 = parameter x\n"
                   "  %2 = add %1, %1\n"
                   "  store %1, %2\n"
                   "workload main\n"
                   "  task twice() x = x\n",
                   &m);
    check(context, ptowsp_npu_emit(context, program, &desc));
    ptowsp_program_destroy(program);
    ptowsp_module_destroy(m);
}

static void build_tree(ptowsp_context *context, const char *cache, const char *options,
                       bool has_plan, bool has_pipeline) {
    const ptowsp_npu_build_desc desc = {cache, NULL, options};
    char text[1000];
    ptowsp_module *m;
    ptowsp_npu *npu;
    snprintf(text, sizeof text,
             "module first slots 8\n"
             "%s"
             "kernel pass(axes 1) vector, 1 cycles\n"
             "workload main\n"
             "  task pass(0)\n"
             "%s",
             has_plan ? "axis kv plan\n" : "",
             has_pipeline ? "  pipeline p\n"
                            "    channel c depth 1 latency 0\n"
                            "    process a produces c\n"
                            "      send c(1)\n"
                            "    process b consumes c\n"
                            "      consume v from c\n"
                            "        task pass(v)\n"
                          : "");
    ptowsp_program *program = program_of(context, text, &m);
    check(context, ptowsp_npu_build(context, program, &desc, &npu));
    ptowsp_npu_destroy(npu);
    ptowsp_program_destroy(program);
    ptowsp_module_destroy(m);
}

int main(int count, char **args) {
    ptowsp_context *context;
    check(NULL, ptowsp_context_create(NULL, &context));
    if (count == 3 && strcmp(args[1], "write") == 0) {
        write_tree(context, args[2]);
    } else if (count == 4 && strcmp(args[1], "build") == 0) {
        for (int kind = 0; kind < 4; kind++) {
            build_tree(context, args[2], args[3], kind & 1, kind & 2);
        }
    } else {
        return 2;
    }
    ptowsp_context_destroy(context);
    return 0;
}
