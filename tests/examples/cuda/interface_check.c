// The numbers that chain_cuda.c and fake_cuda.c have, where the interfaces' headers are.

#include <cublasLt.h>
#include <cuda.h>
#include <stddef.h>

#define SAME(name, number) _Static_assert((int)(name) == (number), #name)
SAME(CU_STREAM_NON_BLOCKING, 1);
SAME(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1);
SAME(CUDA_R_32F, 0);
SAME(CUBLAS_COMPUTE_32F, 68);
SAME(CUBLASLT_MATMUL_DESC_EPILOGUE, 7);
SAME(CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8);
SAME(CUBLASLT_EPILOGUE_DEFAULT, 1);
SAME(CUBLASLT_EPILOGUE_RELU, 2);
SAME(CUBLASLT_EPILOGUE_BIAS, 4);
SAME(CUBLASLT_EPILOGUE_RELU_BIAS, 6);
SAME(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1);
SAME(sizeof(cublasLtMatmulHeuristicResult_t), 96);
SAME(offsetof(cublasLtMatmulHeuristicResult_t, algo), 0);
SAME(sizeof(cublasLtMatmulAlgo_t), 64);
SAME(sizeof(CUdeviceptr), 8);
