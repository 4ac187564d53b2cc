// Published measurements that predictions are compared with: facts, a few of each kind. Instructions
// are of PTO-ISA's cost tests on A2/A3 and A5, kernels of the tables of its manual kernels.

#ifndef PREDICT_ROWS_H
#define PREDICT_ROWS_H

// clang-format off
static const char *const predict_instruction_rows[] = {
    "machine,instruction,dtype,rows,cols,valid_rows,valid_cols,params,variant,measured_cycles",
    "A2A3,TADD,f32,64,64,64,64,,,160",
    "A2A3,TADD,i32,64,64,64,64,,,151",
    "A2A3,TMUL,f32,64,64,64,64,,,168",
    "A2A3,TMUL,i32,64,64,64,64,,,152",
    "A2A3,TSUB,f32,64,64,64,64,,,153",
    "A2A3,TSUB,i32,64,64,64,64,,,132",
    "A2A3,TABS,f32,64,64,64,64,,,68",
    "A2A3,TEXP,f32,64,64,64,64,,,159",
    "A2A3,TEXP,f32,32,32,32,32,,,63",
    "A2A3,TEXP,f32,32,16,32,16,,,30",
    "A2A3,TMINS,f32,64,64,64,64,,,87",
    "A2A3,TMINS,i32,64,64,64,64,,,68",
    "A2A3,TCOLMAX,f32,64,64,64,64,,,2589",
    "A2A3,TCOLMAX,f32,1,3072,1,3072,,,390",
    "A2A3,TROWMAX,f32,64,64,64,64,,,480",
    "A2A3,TROWSUM,f32,64,64,64,64,,,492",
    "A2A3,TROWEXPAND,f32,64,64,64,64,,,933",
    "A2A3,TSEL,f32,4,64,4,64,,,67",
    "A2A3,TTRANS,f32,128,128,128,128,,,501",
    "A2A3,TSQRT,f32,64,64,64,64,,inplace,198",
    "A2A3,TSQRT,f32,64,64,64,64,,,160",
    "A2A3,TCOLSUM,f32,64,64,64,64,,binary,1263",
    "A2A3,TCOLSUM,f32,1,3072,1,3072,,binary,390",
    "A2A3,TADDS,f32,32,64,32,64,,,57",
    "A2A3,TADDS,i32,31,128,31,128,,,70",
    "A2A3,TADDS,f32,7,448,7,448,,,77",
    "A2A3,TADDS,f32,256,16,256,16,,,266",
    "A2A3,TMULS,f32,32,64,32,64,,,58",
    "A2A3,TMULS,i32,31,128,31,128,,,70",
    "A2A3,TMULS,f32,7,448,7,448,,,77",
    "A2A3,TMULS,f32,256,16,256,16,,,266",
    "A2A3,TDIV,f32,64,64,64,64,,,288",
    "A2A3,TDIVS,f32,32,64,32,64,,,205",
    "A2A3,TSDIV,f32,32,64,32,64,,,205",
    "A2A3,TCVT,f16>f32,4,64,4,64,,,33",
    "A2A3,TLOAD,f32,128,128,128,128,outer=1 nd shape=1x1x1x128x128,GM->UB ND,776",
    "A2A3,TLOAD,f32,256,64,256,64,outer=8 nd shape=2x2x2x32x64,GM->UB ND,2624",
    "A2A3,TLOAD,f32,128,128,128,127,outer=1 nd shape=1x1x1x128x127,GM->UB ND,773",
    "A2A3,TLOAD,f32,256,64,256,60,outer=8 nd shape=2x2x2x32x60,GM->UB ND,2497",
    "A2A3,TLOAD,f32,64,128,64,128,outer=32 dn shape=1x1x32x64x4,GM->UB DN,8704",
    "A2A3,TLOAD,f32,256,64,255,60,outer=8 dn shape=2x2x2x255x8,GM->UB DN,8352",
    "A2A3,TLOAD,f32,,,,,conv N=1 C1=4 H=10 W=10,NC1HWC0,116",
    "A2A3,TMOV,f32,64,128,64,128,Vec.RowMajor.NoneBox>Vec.RowMajor.NoneBox,UB->UB,1029",
    "A2A3,TMOV,f32,16,24,15,23,Vec.RowMajor.NoneBox>Vec.RowMajor.NoneBox,UB->UB,120",
    "A2A3,TMOV,f32,64,128,63,125,Vec.RowMajor.NoneBox>Vec.ColMajor.NoneBox,UB->UB,1323",
    "A2A3,TMOV,f32,64,128,63,125,Vec.ColMajor.NoneBox>Vec.ColMajor.NoneBox,UB->UB,1323",
    "A5,TADD,f32,1,64,1,64,,DEFAULT,55",
    "A5,TADD,f32,10,160,10,128,,DEFAULT,121",
    "A5,TADD,f32,10,672,10,640,,DEFAULT,245",
    "A5,TCVT,bf16>f16,1,128,1,128,,1D_NO_POST_UPDATE,54",
    "A5,TCVT,bf16>f16,10,192,10,128,,1D_POST_UPDATE,65",
    "A5,TCVT,bf16>f16,10,1344,10,1280,,1D_POST_UPDATE,193",
    "A5,TCVT,bf16>f32,1,64,1,64,,1D_NO_POST_UPDATE,81",
    "A5,TCVT,bf16>f32,10,128,10,64,,1D_POST_UPDATE,66",
    "A5,TCVT,bf16>f32,10,704,10,640,,1D_POST_UPDATE,193",
    "A5,TCVT,f16>f32,1,64,1,64,,1D_NO_POST_UPDATE,81",
    "A5,TCVT,f16>f32,10,128,10,64,,1D_POST_UPDATE,66",
    "A5,TCVT,f16>f32,10,704,10,640,,1D_POST_UPDATE,193",
    "A5,TCVT,f32>bf16,1,64,1,64,,1D_NO_POST_UPDATE,53",
    "A5,TCVT,f32>bf16,10,192,10,128,,1D_POST_UPDATE,78",
    "A5,TCVT,f32>bf16,10,1344,10,1280,,1D_POST_UPDATE,288",
    "A5,TCVT,f32>f16,1,64,1,64,,1D_NO_POST_UPDATE,53",
    "A5,TCVT,f32>f16,10,192,10,128,,1D_POST_UPDATE,78",
    "A5,TCVT,f32>f16,10,1344,10,1280,,1D_POST_UPDATE,288",
    "A5,TDIVS,f16,1,128,1,128,,1D_POST_UPDATE,72",
    "A5,TDIVS,f16,10,192,10,128,,1D_NO_POST_UPDATE,103",
    "A5,TDIVS,f16,10,1344,10,1280,,1D_NO_POST_UPDATE,464",
    "A5,TDIVS,f32,1,640,1,640,,1D_NO_POST_UPDATE,82",
    "A5,TDIVS,f32,10,160,10,128,,1D_NO_POST_UPDATE,130",
    "A5,TDIVS,f32,10,672,10,640,,1D_NO_POST_UPDATE,267",
    "A5,TEXP,f16,1,128,1,128,,1D_POST_UPDATE,69",
    "A5,TEXP,f16,10,192,10,128,,1D_NO_POST_UPDATE,102",
    "A5,TEXP,f16,10,1344,10,1280,,1D_NO_POST_UPDATE,463",
    "A5,TEXP,f32,1,640,1,640,,1D_NO_POST_UPDATE,81",
    "A5,TEXP,f32,10,160,10,128,,1D_NO_POST_UPDATE,129",
    "A5,TEXP,f32,10,672,10,640,,1D_NO_POST_UPDATE,262",
    "A5,TMINS,f16,1,1280,1,1280,,1D_POST_UPDATE,64",
    "A5,TMINS,f32,1,640,1,640,,1D_NO_POST_UPDATE,63",
    "A5,TMINS,f32,10,160,10,128,,1D_NO_POST_UPDATE,119",
    "A5,TMINS,f32,10,672,10,640,,1D_NO_POST_UPDATE,199",
    "A5,TMUL,f32,1,64,1,64,,DEFAULT,56",
    "A5,TMUL,f32,10,160,10,128,,DEFAULT,122",
    "A5,TMUL,f32,10,672,10,640,,DEFAULT,245",
    "A5,TNEG,f16,1,1280,1,1280,,1D_POST_UPDATE,66",
    "A5,TNEG,f32,1,640,1,640,,1D_NO_POST_UPDATE,65",
    "A5,TNEG,f32,10,160,10,128,,1D_NO_POST_UPDATE,121",
    "A5,TNEG,f32,10,672,10,640,,1D_NO_POST_UPDATE,201",
    "A5,TRECIP,f16,1,128,1,128,default,1D_POST_UPDATE,72",
    "A5,TRECIP,f16,1,128,1,128,high_precision,1D_POST_UPDATE,210",
    "A5,TRECIP,f16,10,192,10,128,default,1D_NO_POST_UPDATE,103",
    "A5,TRECIP,f16,10,1344,10,1280,default,1D_NO_POST_UPDATE,464",
    "A5,TRECIP,f16,10,192,10,128,high_precision,1D_NO_POST_UPDATE,1758",
    "A5,TRECIP,f16,10,1344,10,1280,high_precision,1D_NO_POST_UPDATE,16953",
    "A5,TRECIP,f32,1,640,1,640,default,1D_NO_POST_UPDATE,82",
    "A5,TRECIP,f32,1,640,1,640,high_precision,1D_NO_POST_UPDATE,3502",
    "A5,TRECIP,f32,10,160,10,128,default,1D_NO_POST_UPDATE,130",
    "A5,TRECIP,f32,10,672,10,640,default,1D_NO_POST_UPDATE,267",
    "A5,TRECIP,f32,10,160,10,128,high_precision,1D_NO_POST_UPDATE,6969",
    "A5,TRECIP,f32,10,672,10,640,high_precision,1D_NO_POST_UPDATE,34689",
    "A5,TRSQRT,f16,1,128,1,128,,1D_POST_UPDATE,89",
    "A5,TRSQRT,f16,10,192,10,128,,1D_NO_POST_UPDATE,161",
    "A5,TRSQRT,f16,10,1344,10,1280,,1D_NO_POST_UPDATE,882",
    "A5,TRSQRT,f32,1,640,1,640,,1D_NO_POST_UPDATE,115",
    "A5,TRSQRT,f32,10,160,10,128,,1D_NO_POST_UPDATE,157",
    "A5,TRSQRT,f32,10,672,10,640,,1D_NO_POST_UPDATE,477",
    "A5,TSEL,i8,1,256,1,256,TSel_b16_8,1D_NO_POST_UPDATE,54",
    "A5,TSEL,f32,1,64,1,64,,DEFAULT,60",
    "A5,TSEL,f32,10,672,10,640,,DEFAULT,791",
    "A5,TSQRT,f16,1,128,1,128,,1D_POST_UPDATE,70",
    "A5,TSQRT,f16,10,192,10,128,,1D_NO_POST_UPDATE,103",
    "A5,TSQRT,f16,10,1344,10,1280,,1D_NO_POST_UPDATE,464",
    "A5,TSQRT,f32,1,640,1,640,,1D_NO_POST_UPDATE,82",
    "A5,TSQRT,f32,10,160,10,128,,1D_NO_POST_UPDATE,130",
    "A5,TSQRT,f32,10,672,10,640,,1D_NO_POST_UPDATE,263",
    "A5,TSUB,f32,1,64,1,64,,DEFAULT,55",
    "A5,TSUB,f32,10,160,10,128,,DEFAULT,121",
    "A5,TSUB,f32,10,672,10,640,,DEFAULT,245",
};

static const char *const predict_kernel_rows[] = {
    "kernel,machine,shape,tiling,cores,measured_us,cube_pct,mte1_pct,mte2_pct,store_pct",
    "gemm,A3 24 cores,m=3072 k=3072 n=3072 f16->f32,\"4x6 cores, base 128x256x64, stepK 4, "
    "double buffers\",24,206.7,79.0,62.0,90.9,5.8",
    "gemm,A3 24 cores,m=7680 k=7680 n=7680 f16->f32,\"4x6 cores, base 128x256x64, stepK 4, "
    "double buffers\",24,3168.0,80.6,63.0,98.4,2.4",
    "conv2d,A3 24 cores,X=[4  8  8  48  16] K=[72  96  16  16] 3x3 s1 p1 f16: m=1536 k=1152 "
    "n=1536,\"4x6 cores, base 128x256x48, stepK 3, double "
    "buffers\",24,32.2,52.90,59.4,43.90,5.60",
    "conv2d,A3 24 cores,X=[4  40  15  128  16] K=[360  480  16  16] 3x3 s1 p1 f16: m=7680 "
    "k=5760 n=7680,\"4x6 cores, base 128x256x48, stepK 3, double "
    "buffers\",24,2131.2,91.3,62.4,80.7,1.7",
    "topk,A3 48 vector cores,type=float rows=4800 validCol=1024 cols=1280 topk=1000,\"rows/48 "
    "a core, 2 rows a step, 2 buffers\",48,324.106,,,11.7,10.4",
    "topk,A3 48 vector cores,type=float rows=2304 validCol=1024 cols=1280 topk=1000,\"rows/48 "
    "a core, 2 rows a step, 2 buffers\",48,161.375,,,12.4,10.1",
    "flash_attention_jit,910B2 aarch64 host,S0=128 S1=1024 H=128 B=1,CUBE_S0 "
    "128,1,19.2,,,,",
    "flash_attention_jit,910B2 aarch64 host,S0=128 S1=2048 H=128 B=1,CUBE_S0 "
    "128,1,23.42,,,,",
    "flash_attention_jit,910B2 aarch64 host,S0=128 S1=4096 H=128 B=1,CUBE_S0 "
    "128,1,38.317,,,,",
    "flash_attention_jit,910B2 aarch64 host,S0=128 S1=8192 H=128 B=1,CUBE_S0 "
    "128,1,68.778,,,,",
    "flash_attention_jit,910B2 aarch64 host,S0=1024 S1=1024 H=128 B=1,CUBE_S0 "
    "128,8,19.439,,,,",
    "flash_attention_jit,910B2 aarch64 host,S0=1024 S1=2048 H=128 B=1,CUBE_S0 "
    "128,8,26.221,,,,",
    "flash_attention_jit,910B2 aarch64 host,S0=1024 S1=4096 H=128 B=1,CUBE_S0 "
    "128,8,43.127,,,,",
    "flash_attention_jit,910B2 aarch64 host,S0=1024 S1=8192 H=128 B=1,CUBE_S0 "
    "128,8,76.855,,,,",
    "allgather_gemm,A3 (910B1),ranks=2 M=2048 K=2048 N=1024 f16->f32,\"base 128x256, 24 AIV "
    "comm\",24,297.0,,,,",
    "allgather_gemm,A3 (910B1),ranks=2 M=4096 K=4096 N=4096 f16->f32,\"base 128x256, 24 AIV "
    "comm\",24,1231.0,,,,",
    "allgather_gemm,A3 (910B1),ranks=8 M=8192 K=4096 N=4096 f16->f32,\"base 128x256, 24 AIV "
    "comm\",24,1439.0,,,,",
    "gemm_allreduce compute-only,910B 8 cards,M=5416(5504) K=6144 N=1408(1536) f16,\"258 tiles "
    "43x6, base 128x256x64 stepK 4, comm sub 64 rows\",24+24,368.1,,,,",
    "gemm_allreduce sequential: comm part,910B 8 cards,M=5416(5504) K=6144 N=1408(1536) "
    "f16,\"258 tiles 43x6, base 128x256x64 stepK 4, comm sub 64 rows\",24+24,437.3,,,,",
    "gemm_allreduce compute-only,950PR 2 ranks,M=5416(5504) K=6144 N=1408(1536) f16,\"258 "
    "tiles 43x6, base 128x256x64 stepK 4, comm sub 64 rows\",24+24,323.2,,,,",
    "gemm_allreduce sequential: comm part,950PR 2 ranks,M=5416(5504) K=6144 N=1408(1536) "
    "f16,\"258 tiles 43x6, base 128x256x64 stepK 4, comm sub 64 rows\",24+24,530.8,,,,",
};
// clang-format on

#endif
