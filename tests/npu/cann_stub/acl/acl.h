// Declarations of what emitted trees call of CANN, with the names and arguments that its public
// documents tell, so that a compiler can check src/npu/tree/host/wsp_ascend.cpp where there is no
// CANN. Nothing of this is CANN's, and nothing is defined: values of constants are made up.

#ifndef CANN_STUB_ACL_H
#define CANN_STUB_ACL_H

#include <stddef.h>
#include <stdint.h>

typedef int aclError;
typedef void *aclrtStream;

typedef enum aclrtMemMallocPolicy { ACL_MEM_MALLOC_HUGE_FIRST } aclrtMemMallocPolicy;

typedef enum aclrtMemcpyKind {
    ACL_MEMCPY_HOST_TO_DEVICE,
    ACL_MEMCPY_DEVICE_TO_HOST
} aclrtMemcpyKind;

typedef enum aclrtDevResLimitType {
    ACL_RT_DEV_RES_CUBE_CORE,
    ACL_RT_DEV_RES_VECTOR_CORE
} aclrtDevResLimitType;

#ifdef __cplusplus
extern "C" {
#endif

aclError aclInit(const char *config_path);
aclError aclFinalize(void);
aclError aclrtSetDevice(int32_t device);
aclError aclrtResetDevice(int32_t device);
aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout_us, uint64_t *actual_us);
aclError aclrtCreateStream(aclrtStream *stream);
aclError aclrtDestroyStream(aclrtStream stream);
aclError aclrtSynchronizeStream(aclrtStream stream);
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout_ms);
aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t *value);
aclError aclrtMalloc(void **device, size_t size, aclrtMemMallocPolicy policy);
aclError aclrtFree(void *device);
aclError aclrtMemcpy(void *to, size_t to_size, const void *from, size_t count,
                     aclrtMemcpyKind kind);

#ifdef __cplusplus
}
#endif

#endif
