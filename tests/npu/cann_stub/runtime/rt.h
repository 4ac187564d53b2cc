// As ../acl/acl.h: the lower interface, for programs of the AICPU.

#ifndef CANN_STUB_RT_H
#define CANN_STUB_RT_H

#include <stddef.h>
#include <stdint.h>

typedef int32_t rtError_t;
typedef void *rtStream_t;
typedef void *rtBinHandle;
typedef void *rtFuncHandle;
typedef struct rtSmDesc rtSmDesc_t;

enum { KERNEL_TYPE_AICPU_KFC = 1 };

typedef struct rtAicpuArgsEx {
    void *args;
    uint32_t argsSize;
    uint32_t kernelNameAddrOffset, soNameAddrOffset;
} rtAicpuArgsEx_t;

typedef enum rtLoadBinaryOptionId { RT_LOAD_BINARY_OPT_CPU_KERNEL_MODE } rtLoadBinaryOptionId;

typedef struct rtLoadBinaryOption {
    rtLoadBinaryOptionId optionId;
    union {
        int32_t cpuKernelMode;
    } value;
} rtLoadBinaryOption_t;

typedef struct rtLoadBinaryConfig {
    rtLoadBinaryOption_t *options;
    size_t numOpt;
} rtLoadBinaryConfig_t;

typedef struct rtCpuKernelArgs {
    struct {
        void *args;
        uint32_t argsSize;
    } baseArgs;
} rtCpuKernelArgs_t;

typedef struct rtKernelLaunchCfg {
    void *attrs;
    size_t numAttrs;
} rtKernelLaunchCfg_t;

#ifdef __cplusplus
extern "C" {
#endif

rtError_t rtAicpuKernelLaunchExWithArgs(uint32_t kernel_type, const char *name, uint32_t block_dim,
                                        const rtAicpuArgsEx_t *args, rtSmDesc_t *sm,
                                        rtStream_t stream, uint32_t flags);
rtError_t rtGetC2cCtrlAddr(uint64_t *address, uint32_t *length);
rtError_t rtsBinaryLoadFromFile(const char *path, const rtLoadBinaryConfig_t *config,
                                rtBinHandle *out_binary);
rtError_t rtsFuncGetByName(rtBinHandle binary, const char *name, rtFuncHandle *out_function);
rtError_t rtsLaunchCpuKernel(rtFuncHandle function, uint32_t thread_count, rtStream_t stream,
                             const rtKernelLaunchCfg_t *config, rtCpuKernelArgs_t *args);

#ifdef __cplusplus
}
#endif

#endif
