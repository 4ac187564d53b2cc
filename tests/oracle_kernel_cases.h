// Workloads, and what PTO-WSP v9 gives for them, written by oracle_cases.py: change that instead.
// The types are in oracle_tables.h.

// clang-format off

enum {
    K_ATTENTION_TILE, K_GEMM_TILE, K_TOPK8, K_TOPK8_B, K_EXPERT_LINEAR, K_MOE_MIX, K_RMSNORM_TILE,
    K_DECODE_ATTENTION, K_ATTN_TILE, K_ADD_TILE, K_RMSNORM_TILE_B, K_MLP_TILE, K_UPDATE_ROWMAX,
    K_EXP_AND_ACCUMULATE, K_RESCALE, K_ADD_TILES, K_SQUARE_TILE, K_MATMUL_KERNEL, K_COPY_TILE,
    K_LOAD, K_SQUARE, K_MARK, K_WRITE_FLAG, K_FILL_TRUE, K_FILL_FALSE, K_MM, K_COPY,
    K_K_COPY_IMPLICIT, K_K_COPY_EXPLICIT_LOAD, K_K_LOAD_TWICE, K_K_LOAD_AND_DIRECT, K_K_SUB_TS,
    K_K_MUL_TT, K_K_MAX_TT, K_K_MAX_TS, K_K_SUB_ROWEXP_R1, K_K_SUB_ROWEXP_1R, K_K_MUL_ROWEXP_1R,
    K_K_DIV_ROWEXP_1R, K_K_MUL_SQUARE_1N, K_K_EXP, K_K_ROWSUM, K_K_ROWMAX, K_K_MATMUL_F16_OUT_F32,
    K_K_MATMUL_THEN_SCALE, K_K_MATMUL_CHAIN, K_K_MATMUL_ACC_BOTH, K_K_I32_MUL_TT, K_CP,
    KERNEL_COUNT };

// Name, function, cycles (0: what the function returns), tiles; operations; instructions.
static const oracle_kernel oracle_kernels[KERNEL_COUNT] = {
    {"attention_tile", NULL, 1680, .tiles = {
        {"q", PTOWSP_IN, PTOWSP_F32, 8, 8}, {"k_t", PTOWSP_IN, PTOWSP_F32, 8, 8},
        {"v", PTOWSP_IN, PTOWSP_F32, 8, 8}, {"out", PTOWSP_OUT, PTOWSP_F32, 8, 8}},
        .ops = OPS(
            {"s0", OP_MATMUL, {"q", "k_t"}, 0.0}, {"sc", OP_CONST, {NULL}, 0.35355339059327373},
            {"s1", OP_MUL, {"s0", "sc"}, 0.0}, {"m", OP_ROWMAX, {"s1"}, 0.0},
            {"s2", OP_SUB, {"s1", "m"}, 0.0}, {"e", OP_EXP, {"s2"}, 0.0},
            {"l", OP_ROWSUM, {"e"}, 0.0}, {"w", OP_DIV, {"e", "l"}, 0.0},
            {"ov", OP_MATMUL, {"w", "v"}, 0.0}, {"out", OP_STORE, {"ov"}, 0.0}),
        .insns = INSNS(
            {"TLOAD", 64}, {"TLOAD", 64}, {"TMATMUL", 512}, {"TMOV", 64}, {"TMULS", 64},
            {"TROWMAX", 8}, {"TROWEXPANDSUB", 64}, {"TEXP", 64}, {"TROWSUM", 8},
            {"TROWEXPANDDIV", 64}, {"TMOV", 64}, {"TLOAD", 64}, {"TMATMUL", 512}, {"TSTORE", 64})},
    {"gemm_tile", NULL, 5632, .tiles = {
        {"a_tile", PTOWSP_IN, PTOWSP_F16, 16, 16}, {"b_tile", PTOWSP_IN, PTOWSP_F16, 16, 16},
        {"c_tile", PTOWSP_INOUT, PTOWSP_F32, 16, 16}},
        .ops = OPS(
            {"acc", OP_MATMUL, {"a_tile", "b_tile"}, 0.0}, {"r", OP_ADD, {"c_tile", "acc"}, 0.0},
            {"c_tile", OP_STORE, {"r"}, 0.0}),
        .insns = INSNS(
            {"TLOAD", 256}, {"TLOAD", 256}, {"TLOAD", 256}, {"TMATMUL", 4096}, {"TMOV", 256},
            {"TADD", 256}, {"TSTORE", 256})},
    {"topk8", NULL, 200, .tiles = {
        {"scores_tile", PTOWSP_IN, PTOWSP_F32, 1, 32},
        {"out_idx_tile", PTOWSP_OUT, PTOWSP_I32, 1, 8}},
        .scalars = {{"pad_to", PTOWSP_TYPE_I64}},
        .ops = OPS(
            {"idx", OP_IOTA_U32, {NULL}, 32.0}, {"pairs", OP_TSORT32, {"scores_tile", "idx"}, 0.0},
            {"res", OP_TOPK_IDX, {"pairs"}, 8.0}, {"out_idx_tile", OP_STORE, {"res"}, 0.0}),
        .insns = INSNS({"TLOAD", 32}, {"TSORT32", 160}, {"TSTORE", 8})},
    {"topk8", oracle_topk8, 0, .tiles = {
        {"scores_tile", PTOWSP_IN, PTOWSP_F32, 1, 32},
        {"out_idx_tile", PTOWSP_OUT, PTOWSP_I32, 1, 8}},
        .scalars = {{"pad_to", PTOWSP_TYPE_I64}}},
    {"expert_linear", NULL, 704, .tiles = {
        {"x", PTOWSP_IN, PTOWSP_F32, 8, 8}, {"w", PTOWSP_IN, PTOWSP_F32, 8, 8},
        {"out", PTOWSP_OUT, PTOWSP_F32, 8, 8}},
        .ops = OPS({"y", OP_MATMUL, {"x", "w"}, 0.0}, {"out", OP_STORE, {"y"}, 0.0}),
        .insns = INSNS({"TLOAD", 64}, {"TLOAD", 64}, {"TMATMUL", 512}, {"TSTORE", 64})},
    {"moe_mix", NULL, 408, .tiles = {
        {"e0", PTOWSP_IN, PTOWSP_F32, 8, 8}, {"e1", PTOWSP_IN, PTOWSP_F32, 8, 8},
        {"g", PTOWSP_IN, PTOWSP_F32, 8, 1}, {"out", PTOWSP_OUT, PTOWSP_F32, 8, 8}},
        .ops = OPS(
            {"m1", OP_CONST, {NULL}, -1.0}, {"ga", OP_MUL, {"g", "m1"}, 0.0},
            {"p1", OP_CONST, {NULL}, 1.0}, {"gb", OP_ADD, {"ga", "p1"}, 0.0},
            {"y0", OP_MUL, {"e0", "g"}, 0.0}, {"y1", OP_MUL, {"e1", "gb"}, 0.0},
            {"y", OP_ADD, {"y0", "y1"}, 0.0}, {"out", OP_STORE, {"y"}, 0.0}),
        .insns = INSNS(
            {"TLOAD", 64}, {"TLOAD", 64}, {"TLOAD", 8}, {"TMULS", 8}, {"TADDS", 8},
            {"TROWEXPANDMUL", 64}, {"TROWEXPANDMUL", 64}, {"TADD", 64}, {"TSTORE", 64})},
    {"rmsnorm_tile", NULL, 1072, .tiles = {
        {"x", PTOWSP_IN, PTOWSP_F32, 16, 16}, {"out", PTOWSP_OUT, PTOWSP_F32, 16, 16}},
        .ops = OPS(
            {"sq", OP_MUL, {"x", "x"}, 0.0}, {"ms", OP_ROWMEAN, {"sq"}, 0.0},
            {"inv", OP_RSQRT, {"ms"}, 0.0}, {"y", OP_MUL, {"x", "inv"}, 0.0},
            {"out", OP_STORE, {"y"}, 0.0}),
        .insns = INSNS(
            {"TLOAD", 256}, {"TMUL", 256}, {"TROWSUM", 16}, {"TDIVS", 16}, {"TRSQRT", 16},
            {"TROWEXPANDMUL", 256}, {"TSTORE", 256})},
    {"decode_attention", NULL, 4514, .tiles = {
        {"q", PTOWSP_IN, PTOWSP_F32, 1, 16}, {"k_t", PTOWSP_IN, PTOWSP_F32, 16, 64},
        {"v", PTOWSP_IN, PTOWSP_F32, 64, 16}, {"out", PTOWSP_OUT, PTOWSP_F32, 1, 16}},
        .ops = OPS(
            {"s0", OP_MATMUL, {"q", "k_t"}, 0.0}, {"sc", OP_CONST, {NULL}, 0.25},
            {"s1", OP_MUL, {"s0", "sc"}, 0.0}, {"m", OP_ROWMAX, {"s1"}, 0.0},
            {"s2", OP_SUB, {"s1", "m"}, 0.0}, {"e", OP_EXP, {"s2"}, 0.0},
            {"l", OP_ROWSUM, {"e"}, 0.0}, {"w", OP_DIV, {"e", "l"}, 0.0},
            {"ov", OP_MATMUL, {"w", "v"}, 0.0}, {"out", OP_STORE, {"ov"}, 0.0}),
        .insns = INSNS(
            {"TLOAD", 16}, {"TLOAD", 1024}, {"TMATMUL", 1024}, {"TMOV", 64}, {"TMULS", 64},
            {"TROWMAX", 1}, {"TROWEXPANDSUB", 64}, {"TEXP", 64}, {"TROWSUM", 1},
            {"TROWEXPANDDIV", 64}, {"TMOV", 64}, {"TLOAD", 1024}, {"TMATMUL", 1024},
            {"TSTORE", 16})},
    {"attn_tile", NULL, 1680, .tiles = {
        {"q", PTOWSP_IN, PTOWSP_F32, 8, 8}, {"k_t", PTOWSP_IN, PTOWSP_F32, 8, 8},
        {"v", PTOWSP_IN, PTOWSP_F32, 8, 8}, {"out", PTOWSP_OUT, PTOWSP_F32, 8, 8}},
        .ops = OPS(
            {"s0", OP_MATMUL, {"q", "k_t"}, 0.0}, {"sc", OP_CONST, {NULL}, 0.35355339059327373},
            {"s1", OP_MUL, {"s0", "sc"}, 0.0}, {"m", OP_ROWMAX, {"s1"}, 0.0},
            {"s2", OP_SUB, {"s1", "m"}, 0.0}, {"e", OP_EXP, {"s2"}, 0.0},
            {"l", OP_ROWSUM, {"e"}, 0.0}, {"w", OP_DIV, {"e", "l"}, 0.0},
            {"ov", OP_MATMUL, {"w", "v"}, 0.0}, {"out", OP_STORE, {"ov"}, 0.0}),
        .insns = INSNS(
            {"TLOAD", 64}, {"TLOAD", 64}, {"TMATMUL", 512}, {"TMOV", 64}, {"TMULS", 64},
            {"TROWMAX", 8}, {"TROWEXPANDSUB", 64}, {"TEXP", 64}, {"TROWSUM", 8},
            {"TROWEXPANDDIV", 64}, {"TMOV", 64}, {"TLOAD", 64}, {"TMATMUL", 512}, {"TSTORE", 64})},
    {"add_tile", NULL, 256, .tiles = {
        {"a", PTOWSP_IN, PTOWSP_F32, 8, 8}, {"b", PTOWSP_IN, PTOWSP_F32, 8, 8},
        {"out", PTOWSP_OUT, PTOWSP_F32, 8, 8}},
        .ops = OPS({"y", OP_ADD, {"a", "b"}, 0.0}, {"out", OP_STORE, {"y"}, 0.0}),
        .insns = INSNS({"TLOAD", 64}, {"TLOAD", 64}, {"TADD", 64}, {"TSTORE", 64})},
    {"rmsnorm_tile", NULL, 288, .tiles = {
        {"x", PTOWSP_IN, PTOWSP_F32, 8, 8}, {"out", PTOWSP_OUT, PTOWSP_F32, 8, 8}},
        .ops = OPS(
            {"sq", OP_MUL, {"x", "x"}, 0.0}, {"ms", OP_ROWMEAN, {"sq"}, 0.0},
            {"eps", OP_CONST, {NULL}, 1e-06}, {"mse", OP_ADD, {"ms", "eps"}, 0.0},
            {"inv", OP_RSQRT, {"mse"}, 0.0}, {"y", OP_MUL, {"x", "inv"}, 0.0},
            {"out", OP_STORE, {"y"}, 0.0}),
        .insns = INSNS(
            {"TLOAD", 64}, {"TMUL", 64}, {"TROWSUM", 8}, {"TDIVS", 8}, {"TADDS", 8}, {"TRSQRT", 8},
            {"TROWEXPANDMUL", 64}, {"TSTORE", 64})},
    {"mlp_tile", NULL, 2816, .tiles = {
        {"x", PTOWSP_IN, PTOWSP_F32, 8, 8}, {"w1", PTOWSP_IN, PTOWSP_F32, 8, 16},
        {"w2", PTOWSP_IN, PTOWSP_F32, 16, 8}, {"out", PTOWSP_OUT, PTOWSP_F32, 8, 8}},
        .ops = OPS(
            {"h", OP_MATMUL, {"x", "w1"}, 0.0}, {"z", OP_CONST, {NULL}, 0.0},
            {"r", OP_MAX, {"h", "z"}, 0.0}, {"y", OP_MATMUL, {"r", "w2"}, 0.0},
            {"out", OP_STORE, {"y"}, 0.0}),
        .insns = INSNS(
            {"TLOAD", 64}, {"TLOAD", 128}, {"TMATMUL", 1024}, {"TMOV", 128}, {"TMAXS", 128},
            {"TMOV", 128}, {"TLOAD", 128}, {"TMATMUL", 1024}, {"TSTORE", 64})},
    {"update_rowmax", NULL, 544, .tiles = {
        {"x", PTOWSP_IN, PTOWSP_F32, 8, 64}, {"m", PTOWSP_INOUT, PTOWSP_F32, 8, 1}},
        .ops = OPS(
            {"mt", OP_ROWMAX, {"x"}, 0.0}, {"mn", OP_MAX, {"m", "mt"}, 0.0},
            {"m", OP_STORE, {"mn"}, 0.0}),
        .insns = INSNS({"TLOAD", 512}, {"TLOAD", 8}, {"TROWMAX", 8}, {"TMAX", 8}, {"TSTORE", 8})},
    {"exp_and_accumulate", NULL, 2088, .tiles = {
        {"x", PTOWSP_IN, PTOWSP_F32, 8, 64}, {"m", PTOWSP_IN, PTOWSP_F32, 8, 1},
        {"y", PTOWSP_OUT, PTOWSP_F32, 8, 64}, {"l", PTOWSP_INOUT, PTOWSP_F32, 8, 1}},
        .ops = OPS(
            {"xs", OP_SUB, {"x", "m"}, 0.0}, {"e", OP_EXP, {"xs"}, 0.0},
            {"s", OP_ROWSUM, {"e"}, 0.0}, {"ln", OP_ADD, {"l", "s"}, 0.0},
            {"l", OP_STORE, {"ln"}, 0.0}, {"y", OP_STORE, {"e"}, 0.0}),
        .insns = INSNS(
            {"TLOAD", 512}, {"TLOAD", 8}, {"TLOAD", 8}, {"TROWEXPANDSUB", 512}, {"TEXP", 512},
            {"TROWSUM", 8}, {"TADD", 8}, {"TSTORE", 8}, {"TSTORE", 512})},
    {"rescale", NULL, 1544, .tiles = {
        {"y", PTOWSP_INOUT, PTOWSP_F32, 8, 64}, {"l", PTOWSP_IN, PTOWSP_F32, 8, 1}},
        .ops = OPS({"ys", OP_DIV, {"y", "l"}, 0.0}, {"y", OP_STORE, {"ys"}, 0.0}),
        .insns = INSNS({"TLOAD", 512}, {"TLOAD", 8}, {"TROWEXPANDDIV", 512}, {"TSTORE", 512})},
    {"add_tiles", NULL, 4096, .tiles = {
        {"a", PTOWSP_IN, PTOWSP_F32, 32, 32}, {"b", PTOWSP_IN, PTOWSP_F32, 32, 32},
        {"c", PTOWSP_OUT, PTOWSP_F32, 32, 32}},
        .ops = OPS({"z", OP_ADD, {"a", "b"}, 0.0}, {"c", OP_STORE, {"z"}, 0.0}),
        .insns = INSNS({"TLOAD", 1024}, {"TLOAD", 1024}, {"TADD", 1024}, {"TSTORE", 1024})},
    {"square_tile", NULL, 3072, .tiles = {
        {"x", PTOWSP_IN, PTOWSP_F32, 32, 32}, {"y2", PTOWSP_OUT, PTOWSP_F32, 32, 32}},
        .ops = OPS({"y", OP_MUL, {"x", "x"}, 0.0}, {"y2", OP_STORE, {"y"}, 0.0}),
        .insns = INSNS({"TLOAD", 1024}, {"TMUL", 1024}, {"TSTORE", 1024})},
    {"matmul_kernel", NULL, 4864, .tiles = {
        {"a", PTOWSP_IN, PTOWSP_F32, 16, 16}, {"b", PTOWSP_IN, PTOWSP_F32, 16, 16},
        {"c", PTOWSP_OUT, PTOWSP_F32, 16, 16}},
        .ops = OPS({"y", OP_MATMUL, {"a", "b"}, 0.0}, {"c", OP_STORE, {"y"}, 0.0}),
        .insns = INSNS({"TLOAD", 256}, {"TLOAD", 256}, {"TMATMUL", 4096}, {"TSTORE", 256})},
    {"copy_tile", NULL, 32, .tiles = {
        {"src", PTOWSP_IN, PTOWSP_F32, 4, 4}, {"dst", PTOWSP_OUT, PTOWSP_F32, 4, 4}},
        .ops = OPS({"dst", OP_STORE, {"src"}, 0.0}),
        .insns = INSNS({"TLOAD", 16}, {"TSTORE", 16})},
    {"load", NULL, 32, .tiles = {
        {"src", PTOWSP_IN, PTOWSP_F32, 4, 4}, {"dst", PTOWSP_OUT, PTOWSP_F32, 4, 4}},
        .ops = OPS({"dst", OP_STORE, {"src"}, 0.0}),
        .insns = INSNS({"TLOAD", 16}, {"TSTORE", 16})},
    {"square", NULL, 48, .tiles = {
        {"src", PTOWSP_IN, PTOWSP_F32, 4, 4}, {"dst", PTOWSP_OUT, PTOWSP_F32, 4, 4}},
        .ops = OPS({"y", OP_MUL, {"src", "src"}, 0.0}, {"dst", OP_STORE, {"y"}, 0.0}),
        .insns = INSNS({"TLOAD", 16}, {"TMUL", 16}, {"TSTORE", 16})},
    {"mark", NULL, 3, .tiles = {{"y_tile", PTOWSP_INOUT, PTOWSP_I32, 1, 1}},
        .ops = OPS(
            {"v", OP_LOAD, {"y_tile"}, 0.0}, {"one", OP_CONST, {NULL}, 1.0},
            {"v1", OP_ADD, {"v", "one"}, 0.0}, {"y_tile", OP_STORE, {"v1"}, 0.0}),
        .insns = INSNS({"TLOAD", 1}, {"TADDS", 1}, {"TSTORE", 1})},
    {"write_flag", oracle_write_flag, 0, .tiles = {
        {"x_in", PTOWSP_IN, PTOWSP_F32, 1, 1}, {"flag_out", PTOWSP_OUT, PTOWSP_I32, 1, 1}}},
    {"fill_true", oracle_fill_true, 0, .tiles = {{"y_out", PTOWSP_OUT, PTOWSP_I32, 1, 1}}},
    {"fill_false", oracle_fill_false, 0, .tiles = {{"y_out", PTOWSP_OUT, PTOWSP_I32, 1, 1}}},
    {"mm", NULL, 112, .tiles = {
        {"a_tile", PTOWSP_IN, PTOWSP_F32, 4, 4}, {"b_tile", PTOWSP_IN, PTOWSP_F32, 4, 4},
        {"c_tile", PTOWSP_OUT, PTOWSP_F32, 4, 4}},
        .ops = OPS({"r", OP_MATMUL, {"a_tile", "b_tile"}, 0.0}, {"c_tile", OP_STORE, {"r"}, 0.0}),
        .insns = INSNS({"TLOAD", 16}, {"TLOAD", 16}, {"TMATMUL", 64}, {"TSTORE", 16})},
    {"copy", NULL, 8, .tiles = {
        {"src", PTOWSP_IN, PTOWSP_F32, 2, 2}, {"out", PTOWSP_OUT, PTOWSP_F32, 2, 2}},
        .ops = OPS({"v", OP_LOAD, {"src"}, 0.0}, {"out", OP_STORE, {"v"}, 0.0}),
        .insns = INSNS({"TLOAD", 4}, {"TSTORE", 4})},
    {"kern", NULL, 120, .tiles = {
        {"x", PTOWSP_IN, PTOWSP_F32, 6, 10}, {"out", PTOWSP_OUT, PTOWSP_F32, 6, 10}},
        .ops = OPS({"out", OP_STORE, {"x"}, 0.0}),
        .insns = INSNS({"TLOAD", 60}, {"TSTORE", 60})},
    {"kern", NULL, 120, .tiles = {
        {"x", PTOWSP_IN, PTOWSP_F32, 6, 10}, {"out", PTOWSP_OUT, PTOWSP_F32, 6, 10}},
        .ops = OPS({"v", OP_LOAD, {"x"}, 0.0}, {"out", OP_STORE, {"v"}, 0.0}),
        .insns = INSNS({"TLOAD", 60}, {"TSTORE", 60})},
    {"kern", NULL, 240, .tiles = {
        {"x", PTOWSP_IN, PTOWSP_F32, 6, 10}, {"out", PTOWSP_OUT, PTOWSP_F32, 6, 10}},
        .ops = OPS(
            {"v", OP_LOAD, {"x"}, 0.0}, {"w", OP_LOAD, {"x"}, 0.0}, {"y", OP_ADD, {"v", "w"}, 0.0},
            {"out", OP_STORE, {"y"}, 0.0}),
        .insns = INSNS({"TLOAD", 60}, {"TLOAD", 60}, {"TADD", 60}, {"TSTORE", 60})},
    {"kern", NULL, 240, .tiles = {
        {"x", PTOWSP_IN, PTOWSP_F32, 6, 10}, {"out", PTOWSP_OUT, PTOWSP_F32, 6, 10}},
        .ops = OPS(
            {"v", OP_LOAD, {"x"}, 0.0}, {"y", OP_ADD, {"v", "x"}, 0.0},
            {"out", OP_STORE, {"y"}, 0.0}),
        .insns = INSNS({"TLOAD", 60}, {"TLOAD", 60}, {"TADD", 60}, {"TSTORE", 60})},
    {"kern", NULL, 180, .tiles = {
        {"x", PTOWSP_IN, PTOWSP_F32, 6, 10}, {"out", PTOWSP_OUT, PTOWSP_F32, 6, 10}},
        .ops = OPS(
            {"c", OP_CONST, {NULL}, 1.5}, {"y", OP_SUB, {"x", "c"}, 0.0},
            {"out", OP_STORE, {"y"}, 0.0}),
        .insns = INSNS({"TLOAD", 60}, {"TSUBS", 60}, {"TSTORE", 60})},
    {"kern", NULL, 240, .tiles = {
        {"x", PTOWSP_IN, PTOWSP_F32, 6, 10}, {"z", PTOWSP_IN, PTOWSP_F32, 6, 10},
        {"out", PTOWSP_OUT, PTOWSP_F32, 6, 10}},
        .ops = OPS({"y", OP_MUL, {"x", "z"}, 0.0}, {"out", OP_STORE, {"y"}, 0.0}),
        .insns = INSNS({"TLOAD", 60}, {"TLOAD", 60}, {"TMUL", 60}, {"TSTORE", 60})},
    {"kern", NULL, 240, .tiles = {
        {"x", PTOWSP_IN, PTOWSP_F32, 6, 10}, {"z", PTOWSP_IN, PTOWSP_F32, 6, 10},
        {"out", PTOWSP_OUT, PTOWSP_F32, 6, 10}},
        .ops = OPS({"y", OP_MAX, {"x", "z"}, 0.0}, {"out", OP_STORE, {"y"}, 0.0}),
        .insns = INSNS({"TLOAD", 60}, {"TLOAD", 60}, {"TMAX", 60}, {"TSTORE", 60})},
    {"kern", NULL, 180, .tiles = {
        {"x", PTOWSP_IN, PTOWSP_F32, 6, 10}, {"out", PTOWSP_OUT, PTOWSP_F32, 6, 10}},
        .ops = OPS(
            {"c", OP_CONST, {NULL}, 1.5}, {"y", OP_MAX, {"x", "c"}, 0.0},
            {"out", OP_STORE, {"y"}, 0.0}),
        .insns = INSNS({"TLOAD", 60}, {"TMAXS", 60}, {"TSTORE", 60})},
    {"kern", NULL, 186, .tiles = {
        {"x", PTOWSP_IN, PTOWSP_F32, 6, 10}, {"z", PTOWSP_IN, PTOWSP_F32, 6, 1},
        {"out", PTOWSP_OUT, PTOWSP_F32, 6, 10}},
        .ops = OPS({"y", OP_SUB, {"x", "z"}, 0.0}, {"out", OP_STORE, {"y"}, 0.0}),
        .insns = INSNS({"TLOAD", 60}, {"TLOAD", 6}, {"TROWEXPANDSUB", 60}, {"TSTORE", 60})},
    {"kern", NULL, 186, .tiles = {
        {"x", PTOWSP_IN, PTOWSP_F32, 6, 10}, {"z", PTOWSP_IN, PTOWSP_F32, 1, 6},
        {"out", PTOWSP_OUT, PTOWSP_F32, 6, 10}},
        .ops = OPS({"y", OP_SUB, {"x", "z"}, 0.0}, {"out", OP_STORE, {"y"}, 0.0}),
        .insns = INSNS({"TLOAD", 60}, {"TLOAD", 6}, {"TROWEXPANDSUB", 60}, {"TSTORE", 60})},
    {"kern", NULL, 186, .tiles = {
        {"x", PTOWSP_IN, PTOWSP_F32, 6, 10}, {"z", PTOWSP_IN, PTOWSP_F32, 1, 6},
        {"out", PTOWSP_OUT, PTOWSP_F32, 6, 10}},
        .ops = OPS({"y", OP_MUL, {"x", "z"}, 0.0}, {"out", OP_STORE, {"y"}, 0.0}),
        .insns = INSNS({"TLOAD", 60}, {"TLOAD", 6}, {"TROWEXPANDMUL", 60}, {"TSTORE", 60})},
    {"kern", NULL, 186, .tiles = {
        {"x", PTOWSP_IN, PTOWSP_F32, 6, 10}, {"z", PTOWSP_IN, PTOWSP_F32, 1, 6},
        {"out", PTOWSP_OUT, PTOWSP_F32, 6, 10}},
        .ops = OPS({"y", OP_DIV, {"x", "z"}, 0.0}, {"out", OP_STORE, {"y"}, 0.0}),
        .insns = INSNS({"TLOAD", 60}, {"TLOAD", 6}, {"TROWEXPANDDIV", 60}, {"TSTORE", 60})},
    {"kern", NULL, 200, .tiles = {
        {"x", PTOWSP_IN, PTOWSP_F32, 8, 8}, {"z", PTOWSP_IN, PTOWSP_F32, 1, 8},
        {"out", PTOWSP_OUT, PTOWSP_F32, 8, 8}},
        .ops = OPS({"y", OP_MUL, {"x", "z"}, 0.0}, {"out", OP_STORE, {"y"}, 0.0}),
        .insns = INSNS({"TLOAD", 64}, {"TLOAD", 8}, {"TROWEXPANDMUL", 64}, {"TSTORE", 64})},
    {"kern", NULL, 180, .tiles = {
        {"x", PTOWSP_IN, PTOWSP_F32, 6, 10}, {"out", PTOWSP_OUT, PTOWSP_F32, 6, 10}},
        .ops = OPS({"y", OP_EXP, {"x"}, 0.0}, {"out", OP_STORE, {"y"}, 0.0}),
        .insns = INSNS({"TLOAD", 60}, {"TEXP", 60}, {"TSTORE", 60})},
    {"kern", NULL, 72, .tiles = {
        {"x", PTOWSP_IN, PTOWSP_F32, 6, 10}, {"out", PTOWSP_OUT, PTOWSP_F32, 6, 1}},
        .ops = OPS({"y", OP_ROWSUM, {"x"}, 0.0}, {"out", OP_STORE, {"y"}, 0.0}),
        .insns = INSNS({"TLOAD", 60}, {"TROWSUM", 6}, {"TSTORE", 6})},
    {"kern", NULL, 72, .tiles = {
        {"x", PTOWSP_IN, PTOWSP_F32, 6, 10}, {"out", PTOWSP_OUT, PTOWSP_F32, 6, 1}},
        .ops = OPS({"y", OP_ROWMAX, {"x"}, 0.0}, {"out", OP_STORE, {"y"}, 0.0}),
        .insns = INSNS({"TLOAD", 60}, {"TROWMAX", 6}, {"TSTORE", 6})},
    {"kern", NULL, 9472, .tiles = {
        {"x", PTOWSP_IN, PTOWSP_F16, 16, 32}, {"w", PTOWSP_IN, PTOWSP_F16, 32, 16},
        {"out", PTOWSP_OUT, PTOWSP_F32, 16, 16}},
        .ops = OPS({"y", OP_MATMUL, {"x", "w"}, 0.0}, {"out", OP_STORE, {"y"}, 0.0}),
        .insns = INSNS({"TLOAD", 512}, {"TLOAD", 512}, {"TMATMUL", 8192}, {"TSTORE", 256})},
    {"kern", NULL, 5376, .tiles = {
        {"x", PTOWSP_IN, PTOWSP_F32, 16, 16}, {"w", PTOWSP_IN, PTOWSP_F32, 16, 16},
        {"out", PTOWSP_OUT, PTOWSP_F32, 16, 16}},
        .ops = OPS(
            {"s", OP_MATMUL, {"x", "w"}, 0.0}, {"c", OP_CONST, {NULL}, 0.5},
            {"y", OP_MUL, {"s", "c"}, 0.0}, {"out", OP_STORE, {"y"}, 0.0}),
        .insns = INSNS(
            {"TLOAD", 256}, {"TLOAD", 256}, {"TMATMUL", 4096}, {"TMOV", 256}, {"TMULS", 256},
            {"TSTORE", 256})},
    {"kern", NULL, 9472, .tiles = {
        {"x", PTOWSP_IN, PTOWSP_F32, 16, 16}, {"w", PTOWSP_IN, PTOWSP_F32, 16, 16},
        {"out", PTOWSP_OUT, PTOWSP_F32, 16, 16}},
        .ops = OPS(
            {"y", OP_MATMUL, {"x", "w"}, 0.0}, {"z", OP_MATMUL, {"y", "w"}, 0.0},
            {"out", OP_STORE, {"z"}, 0.0}),
        .insns = INSNS(
            {"TLOAD", 256}, {"TLOAD", 256}, {"TMATMUL", 4096}, {"TMOV", 256}, {"TLOAD", 256},
            {"TMATMUL", 4096}, {"TSTORE", 256})},
    {"kern", NULL, 10496, .tiles = {
        {"x", PTOWSP_IN, PTOWSP_F32, 16, 16}, {"w", PTOWSP_IN, PTOWSP_F32, 16, 16},
        {"out", PTOWSP_OUT, PTOWSP_F32, 16, 16}},
        .ops = OPS(
            {"y", OP_MATMUL, {"x", "w"}, 0.0}, {"e", OP_EXP, {"y"}, 0.0},
            {"z", OP_MATMUL, {"y", "w"}, 0.0}, {"r", OP_ADD, {"e", "z"}, 0.0},
            {"out", OP_STORE, {"r"}, 0.0}),
        .insns = INSNS(
            {"TLOAD", 256}, {"TLOAD", 256}, {"TMATMUL", 4096}, {"TMOV", 256}, {"TEXP", 256},
            {"TMOV", 256}, {"TLOAD", 256}, {"TMATMUL", 4096}, {"TMOV", 256}, {"TADD", 256},
            {"TSTORE", 256})},
    {"kern", NULL, 128, .tiles = {
        {"x", PTOWSP_IN, PTOWSP_I32, 4, 8}, {"z", PTOWSP_IN, PTOWSP_I32, 4, 8},
        {"out", PTOWSP_OUT, PTOWSP_I32, 4, 8}},
        .ops = OPS({"y", OP_MUL, {"x", "z"}, 0.0}, {"out", OP_STORE, {"y"}, 0.0}),
        .insns = INSNS({"TLOAD", 32}, {"TLOAD", 32}, {"TMUL", 32}, {"TSTORE", 32})},
    {"cp", NULL, 128, .tiles = {
        {"src", PTOWSP_IN, PTOWSP_F32, 8, 8}, {"dst", PTOWSP_OUT, PTOWSP_F32, 8, 8}},
        .ops = OPS({"dst", OP_STORE, {"src"}, 0.0}),
        .insns = INSNS({"TLOAD", 64}, {"TSTORE", 64})},
};

static const oracle_workload oracle_workloads[] = {
    {  // 0
        .axis_arg_count = 3,
        .axes = {{"n_b", DENSE, 1}, {"n_h", DENSE, 2}, {"n_s", DENSE, 2}},
        .tensors = {
            {"Q", PTOWSP_F32, 5, {1, 2, 2, 8, 8}, 7, 3, 13, 6, 0.25, false, NULL},
            {"Kt", PTOWSP_F32, 5, {1, 2, 2, 8, 8}, 5, 1, 11, 5, 0.25, true, NULL},
            {"V", PTOWSP_F32, 5, {1, 2, 2, 8, 8}, 3, 2, 17, 8, 0.125, false, NULL},
            {"O", PTOWSP_F32, 5, {1, 2, 2, 8, 8}, 0, 0, 1, 0, 1.0, false, NULL},
        },
        .tree = CODE(
            PARALLEL, 'b', 0,
                PARALLEL, 'h', 1,
                    PARALLEL, 's', 2,
                        TASK, K_ATTENTION_TILE, V('b'), V('h'), V('s'),
                                0, V('b'), V('h'), V('s'),
                                1, V('b'), V('h'), V('s'),
                                2, V('b'), V('h'), V('s'),
                                3, V('b'), V('h'), V('s'),
                    END,
                END,
            END,
            STOP),
    },
    {  // 1
        .axis_arg_count = 4,
        .axes = {{"n_b", DENSE, 1}, {"n_h", DENSE, 4}, {"n_s", DENSE, 4}, {"n_i", DENSE, 4}},
        .tensors = {
            {"A", PTOWSP_F16, 5, {1, 4, 4, 16, 16}, 7, 3, 13, 6, 0.25, false, NULL},
            {"B", PTOWSP_F16, 5, {1, 4, 4, 16, 16}, 5, 1, 11, 5, 0.25, false, NULL},
            {"C", PTOWSP_F32, 5, {1, 4, 4, 16, 16}, 0, 0, 1, 0, 1.0, false, NULL},
        },
        .tree = CODE(
            PARALLEL, 'b', 0,
                PARALLEL, 'h', 1,
                    PARALLEL, 's', 2,
                        FOR_EACH, 'i', 3,
                            TASK, K_GEMM_TILE, V('b'), V('h'), V('s'), V('i'),
                                    0, V('b'), V('h'), V('i'),
                                    1, V('b'), V('s'), V('i'),
                                    2, V('b'), V('h'), V('s'),
                        END,
                    END,
                END,
            END,
            STOP),
    },
    {  // 2
        .axis_arg_count = 2,
        .axes = {{"n_b", DENSE, 2}, {"n_h", DENSE, 4}},
        .tensors = {
            {"S", PTOWSP_F32, 4, {2, 4, 1, 32}, 29, 3, 257, 128, 0.125, false, NULL},
            {"EFF", PTOWSP_U64, 4, {2, 4, 1, 1}, 0, 0, 1, 0, 1.0, false,
                CODE(16384, 131072, 131072, 512, 16384, 4096, 4096, 4096)},
            {"OUT", PTOWSP_I32, 4, {2, 4, 1, 8}, 0, 0, 1, 0, 1.0, false, NULL},
        },
        .tree = CODE(
            PARALLEL, 'b', 0,
                PARALLEL, 'h', 1,
                    SLOT_LOAD, 0, 0, 0,  1, V('b'), V('h'),
                    WHEN, LE, SLOT, 0, I64, 2048,
                        TASK, K_TOPK8, V('b'), V('h'),
                                0, V('b'), V('h'),
                                2, V('b'), V('h'),
                                2048,
                    END,
                    OTHERWISE,
                        WHEN, LE, SLOT, 0, I64, 8192,
                            TASK, K_TOPK8, V('b'), V('h'),
                                    0, V('b'), V('h'),
                                    2, V('b'), V('h'),
                                    8192,
                        END,
                        OTHERWISE,
                            WHEN, LE, SLOT, 0, I64, 65536,
                                TASK, K_TOPK8, V('b'), V('h'),
                                        0, V('b'), V('h'),
                                        2, V('b'), V('h'),
                                        65536,
                            END,
                            OTHERWISE,
                                TASK, K_TOPK8, V('b'), V('h'),
                                        0, V('b'), V('h'),
                                        2, V('b'), V('h'),
                                        131072,
                            END,
                        END,
                    END,
                END,
            END,
            STOP),
    },
    {  // 3
        .axis_arg_count = 2,
        .axes = {{"n_b", DENSE, 2}, {"n_h", DENSE, 4}},
        .tensors = {
            {"S", PTOWSP_F32, 4, {2, 4, 1, 32}, 29, 3, 257, 128, 0.125, false, NULL},
            {"EFF", PTOWSP_U64, 4, {2, 4, 1, 1}, 0, 0, 1, 0, 1.0, false,
                CODE(16384, 131072, 131072, 512, 16384, 4096, 4096, 4096)},
            {"OUT", PTOWSP_I32, 4, {2, 4, 1, 8}, 0, 0, 1, 0, 1.0, false, NULL},
        },
        .tree = CODE(
            PARALLEL, 'b', 0,
                PARALLEL, 'h', 1,
                    SLOT_LOAD, 0, 0, 0,  1, V('b'), V('h'),
                    WHEN, LE, SLOT, 0, I64, 2048,
                        TASK, K_TOPK8_B, V('b'), V('h'),
                                0, V('b'), V('h'),
                                2, V('b'), V('h'),
                                2048,
                    END,
                    OTHERWISE,
                        WHEN, LE, SLOT, 0, I64, 8192,
                            TASK, K_TOPK8_B, V('b'), V('h'),
                                    0, V('b'), V('h'),
                                    2, V('b'), V('h'),
                                    8192,
                        END,
                        OTHERWISE,
                            WHEN, LE, SLOT, 0, I64, 65536,
                                TASK, K_TOPK8_B, V('b'), V('h'),
                                        0, V('b'), V('h'),
                                        2, V('b'), V('h'),
                                        65536,
                            END,
                            OTHERWISE,
                                TASK, K_TOPK8_B, V('b'), V('h'),
                                        0, V('b'), V('h'),
                                        2, V('b'), V('h'),
                                        131072,
                            END,
                        END,
                    END,
                END,
            END,
            STOP),
    },
    {  // 4
        .axis_arg_count = 1,
        .axes = {{"n_b", DENSE, 2}},
        .tensors = {
            {"X", PTOWSP_F32, 3, {2, 8, 8}, 7, 3, 13, 6, 0.25, false, NULL},
            {"W0", PTOWSP_F32, 2, {8, 8}, 5, 1, 11, 5, 0.25, false, NULL},
            {"W1", PTOWSP_F32, 2, {8, 8}, 3, 2, 17, 8, 0.25, false, NULL},
            {"G", PTOWSP_F32, 3, {2, 8, 1}, 3, 0, 8, 0, 0.125, false, NULL},
            {"E0", PTOWSP_F32, 3, {2, 8, 8}, 0, 0, 1, 0, 1.0, false, NULL},
            {"E1", PTOWSP_F32, 3, {2, 8, 8}, 0, 0, 1, 0, 1.0, false, NULL},
            {"Y", PTOWSP_F32, 3, {2, 8, 8}, 0, 0, 1, 0, 1.0, false, NULL},
        },
        .tree = CODE(
            PARALLEL, 'b', 0,
                TASK, K_EXPERT_LINEAR, V('b'),  0, V('b'),  1,  4, V('b'),
                TASK, K_EXPERT_LINEAR, V('b'),  0, V('b'),  2,  5, V('b'),
                TASK, K_MOE_MIX, V('b'),  4, V('b'),  5, V('b'),  3, V('b'),  6, V('b'),
            END,
            STOP),
    },
    {  // 5
        .axis_arg_count = 2,
        .axes = {{"n_b", DENSE, 1}, {"n_h", DENSE, 2}},
        .tensors = {
            {"X", PTOWSP_F32, 4, {1, 2, 16, 16}, 7, 3, 13, 6, 0.25, false, NULL},
            {"Y", PTOWSP_F32, 4, {1, 2, 16, 16}, 0, 0, 1, 0, 1.0, false, NULL},
        },
        .tree = CODE(
            PARALLEL, 'b', 0,
                PARALLEL, 'h', 1,
                    TASK, K_RMSNORM_TILE, V('b'), V('h'),  0, V('b'), V('h'),  1, V('b'), V('h'),
                END,
            END,
            STOP),
    },
    {  // 6
        .axis_arg_count = 1,
        .tensors = {
            {"Q", PTOWSP_F32, 2, {1, 16}, 7, 3, 13, 6, 0.25, false, NULL},
            {"Kt", PTOWSP_F32, 2, {16, 64}, 5, 1, 11, 5, 0.25, false, NULL},
            {"V", PTOWSP_F32, 2, {64, 16}, 3, 2, 17, 8, 0.125, false, NULL},
            {"O", PTOWSP_F32, 2, {1, 16}, 0, 0, 1, 0, 1.0, false, NULL},
        },
        .tree = CODE(
            TASK, K_DECODE_ATTENTION, 0,  0,  1,  2,  3,
            STOP),
    },
    {  // 7
        .axis_arg_count = 1,
        .axes = {{"n_b", DENSE, 2}},
        .tensors = {
            {"X", PTOWSP_F32, 3, {2, 8, 8}, 7, 3, 13, 6, 0.25, false, NULL},
            {"Kt", PTOWSP_F32, 3, {2, 8, 8}, 7, 3, 13, 6, 0.25, true, NULL},
            {"W1", PTOWSP_F32, 2, {8, 16}, 5, 1, 11, 5, 0.125, false, NULL},
            {"W2", PTOWSP_F32, 2, {16, 8}, 3, 2, 17, 8, 0.125, false, NULL},
            {"Xn", PTOWSP_F32, 3, {2, 8, 8}, 0, 0, 1, 0, 1.0, false, NULL},
            {"At", PTOWSP_F32, 3, {2, 8, 8}, 0, 0, 1, 0, 1.0, false, NULL},
            {"R1", PTOWSP_F32, 3, {2, 8, 8}, 0, 0, 1, 0, 1.0, false, NULL},
            {"M", PTOWSP_F32, 3, {2, 8, 8}, 0, 0, 1, 0, 1.0, false, NULL},
            {"O", PTOWSP_F32, 3, {2, 8, 8}, 0, 0, 1, 0, 1.0, false, NULL},
        },
        .tree = CODE(
            PARALLEL, 'b', 0,
                TASK, K_ATTN_TILE, V('b'),  0, V('b'),  1, V('b'),  0, V('b'),  5, V('b'),
                TASK, K_ADD_TILE, V('b'),  0, V('b'),  5, V('b'),  6, V('b'),
                TASK, K_RMSNORM_TILE_B, V('b'),  6, V('b'),  4, V('b'),
                TASK, K_MLP_TILE, V('b'),  4, V('b'),  2,  3,  7, V('b'),
                TASK, K_ADD_TILE, V('b'),  6, V('b'),  7, V('b'),  8, V('b'),
            END,
            STOP),
    },
    {  // 8
        .axis_arg_count = 3,
        .axes = {
            {"n_b", DENSE, 1}, {"n_h", DENSE, 4}, {"n_i", DENSE, 4}, {"n_b2", DENSE, 1},
            {"n_h2", DENSE, 4}, {"n_b3", DENSE, 1}, {"n_h3", DENSE, 4}, {"n_v3", DENSE, 4}},
        .tensors = {
            {"X", PTOWSP_F32, 5, {1, 4, 4, 8, 64}, 29, 3, 257, 128, 0.001953125, false, NULL},
            {"P", PTOWSP_F32, 5, {1, 4, 4, 8, 64}, 0, 0, 1, 0, 1.0, false, NULL},
            {"RM", PTOWSP_F32, 4, {1, 4, 8, 1}, 0, 1, 2, 0, -1e+30, false, NULL},
            {"RS", PTOWSP_F32, 4, {1, 4, 8, 1}, 0, 0, 1, 0, 1.0, false, NULL},
        },
        .tree = CODE(
            COMBINE,
                PARALLEL, 'b', 0,
                    PARALLEL, 'h', 1,
                        FOR_EACH, 'i', 2,
                            TASK, K_UPDATE_ROWMAX, V('b'), V('h'), V('i'),
                                    0, V('b'), V('h'), V('i'),
                                    2, V('b'), V('h'),
                        END,
                    END,
                END,
                PARALLEL, 'c', 3,
                    PARALLEL, 'g', 4,
                        FOR_EACH, 'i', 2,
                            TASK, K_EXP_AND_ACCUMULATE, V('c'), V('g'), V('i'),
                                    0, V('c'), V('g'), V('i'),
                                    2, V('c'), V('g'),
                                    1, V('c'), V('g'), V('i'),
                                    3, V('c'), V('g'),
                        END,
                    END,
                END,
                PARALLEL, 'd', 5,
                    PARALLEL, 'k', 6,
                        PARALLEL, 'v', 7,
                            TASK, K_RESCALE, V('d'), V('k'), V('v'),
                                    1, V('d'), V('k'), V('v'),
                                    3, V('d'), V('k'),
                        END,
                    END,
                END,
            END,
            STOP),
    },
    {  // 9
        .axis_arg_count = 3,
        .axes = {{"n_b", DENSE, 2}, {"n_h", DENSE, 2}, {"n_s", DENSE, 2}},
        .tensors = {
            {"A", PTOWSP_F32, 5, {2, 2, 2, 32, 32}, 7, 3, 13, 6, 1.0, false, NULL},
            {"B", PTOWSP_F32, 5, {2, 2, 2, 32, 32}, 5, 1, 11, 5, 1.0, false, NULL},
            {"C", PTOWSP_F32, 5, {2, 2, 2, 32, 32}, 0, 0, 1, 0, 1.0, false, NULL},
        },
        .tree = CODE(
            PARALLEL, 'b', 0,
                PARALLEL, 'h', 1,
                    PARALLEL, 's', 2,
                        TASK, K_ADD_TILES, V('b'), V('h'), V('s'),
                                0, V('b'), V('h'), V('s'),
                                1, V('b'), V('h'), V('s'),
                                2, V('b'), V('h'), V('s'),
                    END,
                END,
            END,
            STOP),
    },
    {  // 10
        .axis_arg_count = 2,
        .axes = {{"n_b", DENSE, 2}, {"n_h", DENSE, 4}},
        .tensors = {
            {"X", PTOWSP_F32, 4, {2, 4, 32, 32}, 7, 3, 13, 6, 1.0, false, NULL},
            {"Y", PTOWSP_F32, 4, {2, 4, 32, 32}, 0, 0, 1, 0, 1.0, false, NULL},
        },
        .tree = CODE(
            PARALLEL, 'b', 0,
                PARALLEL, 'h', 1,
                    TASK, K_SQUARE_TILE, V('b'), V('h'),  0, V('b'), V('h'),  1, V('b'), V('h'),
                END,
            END,
            STOP),
    },
    {  // 11
        .axis_arg_count = 1,
        .axes = {{"n_b", DENSE, 1}, {"n_h", DENSE, 1}},
        .tensors = {
            {"A", PTOWSP_F32, 4, {1, 1, 16, 16}, 7, 3, 13, 6, 1.0, false, NULL},
            {"B", PTOWSP_F32, 4, {1, 1, 16, 16}, 5, 1, 11, 5, 1.0, false, NULL},
            {"C", PTOWSP_F32, 4, {1, 1, 16, 16}, 0, 0, 1, 0, 1.0, false, NULL},
        },
        .tree = CODE(
            PARALLEL, 'b', 0,
                PARALLEL, 'h', 1,
                    TASK, K_MATMUL_KERNEL, V('b'),  0, V('b'), 0,  1, V('b'), 0,  2, V('b'), 0,
                END,
            END,
            STOP),
    },
    {  // 12
        .axis_arg_count = 1,
        .axes = {{"n_b", DENSE, 4}},
        .tensors = {
            {"a", PTOWSP_F32, 3, {4, 4, 4}, 7, 3, 13, 6, 1.0, false, NULL},
            {"b", PTOWSP_F32, 3, {4, 4, 4}, 0, 0, 1, 0, 1.0, false, NULL},
        },
        .tree = CODE(
            PARALLEL, 'b', 0,
                TASK, K_COPY_TILE, V('b'),  0, V('b'),  1, V('b'),
            END,
            STOP),
    },
    {  // 13
        .axis_arg_count = 1,
        .axes = {{"n_b", DENSE, 4}},
        .tensors = {
            {"x", PTOWSP_F32, 3, {4, 4, 4}, 7, 3, 13, 6, 1.0, false, NULL},
            {"tmp", PTOWSP_F32, 3, {4, 4, 4}, 0, 0, 1, 0, 1.0, false, NULL},
            {"y", PTOWSP_F32, 3, {4, 4, 4}, 0, 0, 1, 0, 1.0, false, NULL},
        },
        .tree = CODE(
            PARALLEL, 'b', 0,
                TASK, K_LOAD, V('b'),  0, V('b'),  1, V('b'),
                TASK, K_SQUARE, V('b'),  1, V('b'),  2, V('b'),
            END,
            STOP),
    },
    {  // 14
        .axis_arg_count = 1,
        .axes = {{"rag", RAGGED, 0}},
        .tensors = {
            {"y", PTOWSP_I32, 3, {3, 1, 1}, 0, 0, 1, 0, 1.0, false, NULL},
        },
        .tree = CODE(
            FOR_EACH, 't', 0,
                TASK, K_MARK, V('t'),  0, V('t'),
            END,
            STOP),
    },
    {  // 15
        .axis_arg_count = 1,
        .axes = {{"spa", SPARSE, 0}},
        .tensors = {
            {"y", PTOWSP_I32, 3, {4, 1, 1}, 0, 0, 1, 0, 1.0, false, NULL},
        },
        .tree = CODE(
            SELECT, 'e', 0,
                TASK, K_MARK, V('e'),  0, V('e'),
            END,
            STOP),
    },
    {  // 16
        .axis_arg_count = 1,
        .tensors = {
            {"x", PTOWSP_F32, 4, {1, 1, 1, 1}, 0, 0, 1, 1, 1.0, false, NULL},
            {"flag", PTOWSP_I32, 4, {1, 1, 1, 1}, 0, 0, 1, 0, 1.0, false, NULL},
            {"y", PTOWSP_I32, 4, {1, 1, 1, 1}, 0, 0, 1, 0, 1.0, false, NULL},
        },
        .tree = CODE(
            SEQUENCE,
                TASK, K_WRITE_FLAG, 0,  0, 0, 0,  1, 0, 0,
                SLOT_LOAD, 0, 0, 0,  1, 0, 0,
                WHEN, NE, SLOT, 0, I64, 0,
                    TASK, K_FILL_TRUE, 0,  2, 0, 0,
                END,
                OTHERWISE,
                    TASK, K_FILL_FALSE, 0,  2, 0, 0,
                END,
            END,
            STOP),
    },
    {  // 17
        .axis_arg_count = 1,
        .tensors = {
            {"x", PTOWSP_F32, 4, {1, 1, 1, 1}, 0, 0, 1, -1, 1.0, false, NULL},
            {"flag", PTOWSP_I32, 4, {1, 1, 1, 1}, 0, 0, 1, 0, 1.0, false, NULL},
            {"y", PTOWSP_I32, 4, {1, 1, 1, 1}, 0, 0, 1, 0, 1.0, false, NULL},
        },
        .tree = CODE(
            SEQUENCE,
                TASK, K_WRITE_FLAG, 0,  0, 0, 0,  1, 0, 0,
                SLOT_LOAD, 0, 0, 0,  1, 0, 0,
                WHEN, NE, SLOT, 0, I64, 0,
                    TASK, K_FILL_TRUE, 0,  2, 0, 0,
                END,
                OTHERWISE,
                    TASK, K_FILL_FALSE, 0,  2, 0, 0,
                END,
            END,
            STOP),
    },
    {  // 18
        .axis_arg_count = 1,
        .axes = {{"n_b", DYNAMIC, 0}},
        .tensors = {
            {"a", PTOWSP_F32, 3, {4, 4, 4}, 7, 3, 13, 6, 1.0, false, NULL},
            {"b", PTOWSP_F32, 3, {4, 4, 4}, 5, 1, 11, 5, 1.0, false, NULL},
            {"c", PTOWSP_F32, 3, {4, 4, 4}, 0, 0, 1, 0, 1.0, false, NULL},
        },
        .tree = CODE(
            PARALLEL, 'b', 0,
                TASK, K_MM, V('b'),  0, V('b'),  1, V('b'),  2, V('b'),
            END,
            STOP),
    },
    {  // 19
        .axis_arg_count = 1,
        .axes = {{"n_b", DENSE, 4}},
        .tensors = {
            {"A0", PTOWSP_F32, 4, {4, 1, 2, 2}, 0, 0, 1, -1, 1.0, false, NULL},
            {"A1", PTOWSP_F32, 4, {4, 1, 2, 2}, 0, 0, 1, -2, 1.0, false, NULL},
            {"C", PTOWSP_F32, 4, {4, 1, 2, 2}, 0, 0, 1, 0, 1.0, false, NULL},
        },
        .tree = CODE(
            PARALLEL, 'b', 0,
                WHEN, LT, VARIABLE, 'b', I64, 2,
                    TASK, K_COPY, V('b'),  0, V('b'), 0,  2, V('b'), 0,
                END,
                OTHERWISE,
                    TASK, K_COPY, V('b'),  1, V('b'), 0,  2, V('b'), 0,
                END,
            END,
            STOP),
    },
    {  // 20
        .axis_arg_count = 1,
        .symbol = "cut",
        .axes = {{"n_b", DENSE, 4}},
        .tensors = {
            {"A0", PTOWSP_F32, 4, {4, 1, 2, 2}, 0, 0, 1, -1, 1.0, false, NULL},
            {"A1", PTOWSP_F32, 4, {4, 1, 2, 2}, 0, 0, 1, -2, 1.0, false, NULL},
            {"C", PTOWSP_F32, 4, {4, 1, 2, 2}, 0, 0, 1, 0, 1.0, false, NULL},
        },
        .tree = CODE(
            PARALLEL, 'b', 0,
                WHEN, LT, VARIABLE, 'b', TO_I64, SYMBOL,
                    TASK, K_COPY, V('b'),  0, V('b'), 0,  2, V('b'), 0,
                END,
                OTHERWISE,
                    TASK, K_COPY, V('b'),  1, V('b'), 0,  2, V('b'), 0,
                END,
            END,
            STOP),
    },
    {  // 21
        .axis_arg_count = 0,
        .tensors = {
            {"T_x", PTOWSP_F32, 2, {6, 10}, 7, 3, 13, 6, 0.25, false, NULL},
            {"T_out", PTOWSP_F32, 2, {6, 10}, 7, 4, 13, 6, 0.25, false, NULL},
        },
        .tree = CODE(
            TASK, K_K_COPY_IMPLICIT,  0,  1,
            STOP),
    },
    {  // 22
        .axis_arg_count = 0,
        .tensors = {
            {"T_x", PTOWSP_F32, 2, {6, 10}, 7, 3, 13, 6, 0.25, false, NULL},
            {"T_out", PTOWSP_F32, 2, {6, 10}, 7, 4, 13, 6, 0.25, false, NULL},
        },
        .tree = CODE(
            TASK, K_K_COPY_EXPLICIT_LOAD,  0,  1,
            STOP),
    },
    {  // 23
        .axis_arg_count = 0,
        .tensors = {
            {"T_x", PTOWSP_F32, 2, {6, 10}, 7, 3, 13, 6, 0.25, false, NULL},
            {"T_out", PTOWSP_F32, 2, {6, 10}, 7, 4, 13, 6, 0.25, false, NULL},
        },
        .tree = CODE(
            TASK, K_K_LOAD_TWICE,  0,  1,
            STOP),
    },
    {  // 24
        .axis_arg_count = 0,
        .tensors = {
            {"T_x", PTOWSP_F32, 2, {6, 10}, 7, 3, 13, 6, 0.25, false, NULL},
            {"T_out", PTOWSP_F32, 2, {6, 10}, 7, 4, 13, 6, 0.25, false, NULL},
        },
        .tree = CODE(
            TASK, K_K_LOAD_AND_DIRECT,  0,  1,
            STOP),
    },
    {  // 25
        .axis_arg_count = 0,
        .tensors = {
            {"T_x", PTOWSP_F32, 2, {6, 10}, 7, 3, 13, 6, 0.25, false, NULL},
            {"T_out", PTOWSP_F32, 2, {6, 10}, 7, 4, 13, 6, 0.25, false, NULL},
        },
        .tree = CODE(
            TASK, K_K_SUB_TS,  0,  1,
            STOP),
    },
    {  // 26
        .axis_arg_count = 0,
        .tensors = {
            {"T_x", PTOWSP_F32, 2, {6, 10}, 7, 3, 13, 6, 0.25, false, NULL},
            {"T_z", PTOWSP_F32, 2, {6, 10}, 7, 4, 13, -1, 0.25, false, NULL},
            {"T_out", PTOWSP_F32, 2, {6, 10}, 7, 5, 13, 6, 0.25, false, NULL},
        },
        .tree = CODE(
            TASK, K_K_MUL_TT,  0,  1,  2,
            STOP),
    },
    {  // 27
        .axis_arg_count = 0,
        .tensors = {
            {"T_x", PTOWSP_F32, 2, {6, 10}, 7, 3, 13, 6, 0.25, false, NULL},
            {"T_z", PTOWSP_F32, 2, {6, 10}, 7, 4, 13, -1, 0.25, false, NULL},
            {"T_out", PTOWSP_F32, 2, {6, 10}, 7, 5, 13, 6, 0.25, false, NULL},
        },
        .tree = CODE(
            TASK, K_K_MAX_TT,  0,  1,  2,
            STOP),
    },
    {  // 28
        .axis_arg_count = 0,
        .tensors = {
            {"T_x", PTOWSP_F32, 2, {6, 10}, 7, 3, 13, 6, 0.25, false, NULL},
            {"T_out", PTOWSP_F32, 2, {6, 10}, 7, 4, 13, 6, 0.25, false, NULL},
        },
        .tree = CODE(
            TASK, K_K_MAX_TS,  0,  1,
            STOP),
    },
    {  // 29
        .axis_arg_count = 0,
        .tensors = {
            {"T_x", PTOWSP_F32, 2, {6, 10}, 7, 3, 13, 6, 0.25, false, NULL},
            {"T_z", PTOWSP_F32, 2, {6, 1}, 7, 4, 13, -1, 0.25, false, NULL},
            {"T_out", PTOWSP_F32, 2, {6, 10}, 7, 5, 13, 6, 0.25, false, NULL},
        },
        .tree = CODE(
            TASK, K_K_SUB_ROWEXP_R1,  0,  1,  2,
            STOP),
    },
    {  // 30
        .axis_arg_count = 0,
        .tensors = {
            {"T_x", PTOWSP_F32, 2, {6, 10}, 7, 3, 13, 6, 0.25, false, NULL},
            {"T_z", PTOWSP_F32, 2, {1, 6}, 7, 4, 13, -1, 0.25, false, NULL},
            {"T_out", PTOWSP_F32, 2, {6, 10}, 7, 5, 13, 6, 0.25, false, NULL},
        },
        .tree = CODE(
            TASK, K_K_SUB_ROWEXP_1R,  0,  1,  2,
            STOP),
    },
    {  // 31
        .axis_arg_count = 0,
        .tensors = {
            {"T_x", PTOWSP_F32, 2, {6, 10}, 7, 3, 13, 6, 0.25, false, NULL},
            {"T_z", PTOWSP_F32, 2, {1, 6}, 7, 4, 13, -1, 0.25, false, NULL},
            {"T_out", PTOWSP_F32, 2, {6, 10}, 7, 5, 13, 6, 0.25, false, NULL},
        },
        .tree = CODE(
            TASK, K_K_MUL_ROWEXP_1R,  0,  1,  2,
            STOP),
    },
    {  // 32
        .axis_arg_count = 0,
        .tensors = {
            {"T_x", PTOWSP_F32, 2, {6, 10}, 7, 3, 13, 6, 0.25, false, NULL},
            {"T_z", PTOWSP_F32, 2, {1, 6}, 7, 4, 13, -1, 0.25, false, NULL},
            {"T_out", PTOWSP_F32, 2, {6, 10}, 7, 5, 13, 6, 0.25, false, NULL},
        },
        .tree = CODE(
            TASK, K_K_DIV_ROWEXP_1R,  0,  1,  2,
            STOP),
    },
    {  // 33
        .axis_arg_count = 0,
        .tensors = {
            {"T_x", PTOWSP_F32, 2, {8, 8}, 7, 3, 13, 6, 0.25, false, NULL},
            {"T_z", PTOWSP_F32, 2, {1, 8}, 7, 4, 13, -1, 0.25, false, NULL},
            {"T_out", PTOWSP_F32, 2, {8, 8}, 7, 5, 13, 6, 0.25, false, NULL},
        },
        .tree = CODE(
            TASK, K_K_MUL_SQUARE_1N,  0,  1,  2,
            STOP),
    },
    {  // 34
        .axis_arg_count = 0,
        .tensors = {
            {"T_x", PTOWSP_F32, 2, {6, 10}, 7, 3, 13, 6, 0.25, false, NULL},
            {"T_out", PTOWSP_F32, 2, {6, 10}, 7, 4, 13, 6, 0.25, false, NULL},
        },
        .tree = CODE(
            TASK, K_K_EXP,  0,  1,
            STOP),
    },
    {  // 35
        .axis_arg_count = 0,
        .tensors = {
            {"T_x", PTOWSP_F32, 2, {6, 10}, 7, 3, 13, 6, 0.25, false, NULL},
            {"T_out", PTOWSP_F32, 2, {6, 1}, 7, 4, 13, 6, 0.25, false, NULL},
        },
        .tree = CODE(
            TASK, K_K_ROWSUM,  0,  1,
            STOP),
    },
    {  // 36
        .axis_arg_count = 0,
        .tensors = {
            {"T_x", PTOWSP_F32, 2, {6, 10}, 7, 3, 13, 6, 0.25, false, NULL},
            {"T_out", PTOWSP_F32, 2, {6, 1}, 7, 4, 13, 6, 0.25, false, NULL},
        },
        .tree = CODE(
            TASK, K_K_ROWMAX,  0,  1,
            STOP),
    },
    {  // 37
        .axis_arg_count = 0,
        .tensors = {
            {"T_x", PTOWSP_F16, 2, {16, 32}, 7, 3, 13, 6, 0.25, false, NULL},
            {"T_w", PTOWSP_F16, 2, {32, 16}, 7, 4, 13, 6, 0.25, false, NULL},
            {"T_out", PTOWSP_F32, 2, {16, 16}, 7, 5, 13, 6, 0.25, false, NULL},
        },
        .tree = CODE(
            TASK, K_K_MATMUL_F16_OUT_F32,  0,  1,  2,
            STOP),
    },
    {  // 38
        .axis_arg_count = 0,
        .tensors = {
            {"T_x", PTOWSP_F32, 2, {16, 16}, 7, 3, 13, 6, 0.25, false, NULL},
            {"T_w", PTOWSP_F32, 2, {16, 16}, 7, 4, 13, 6, 0.25, false, NULL},
            {"T_out", PTOWSP_F32, 2, {16, 16}, 7, 5, 13, 6, 0.25, false, NULL},
        },
        .tree = CODE(
            TASK, K_K_MATMUL_THEN_SCALE,  0,  1,  2,
            STOP),
    },
    {  // 39
        .axis_arg_count = 0,
        .tensors = {
            {"T_x", PTOWSP_F32, 2, {16, 16}, 7, 3, 13, 6, 0.25, false, NULL},
            {"T_w", PTOWSP_F32, 2, {16, 16}, 7, 4, 13, 6, 0.25, false, NULL},
            {"T_out", PTOWSP_F32, 2, {16, 16}, 7, 5, 13, 6, 0.25, false, NULL},
        },
        .tree = CODE(
            TASK, K_K_MATMUL_CHAIN,  0,  1,  2,
            STOP),
    },
    {  // 40
        .axis_arg_count = 0,
        .tensors = {
            {"T_x", PTOWSP_F32, 2, {16, 16}, 7, 3, 13, 6, 0.25, false, NULL},
            {"T_w", PTOWSP_F32, 2, {16, 16}, 7, 4, 13, 6, 0.25, false, NULL},
            {"T_out", PTOWSP_F32, 2, {16, 16}, 7, 5, 13, 6, 0.25, false, NULL},
        },
        .tree = CODE(
            TASK, K_K_MATMUL_ACC_BOTH,  0,  1,  2,
            STOP),
    },
    {  // 41
        .axis_arg_count = 0,
        .tensors = {
            {"T_x", PTOWSP_I32, 2, {4, 8}, 7, 3, 13, 0, 1.0, false, NULL},
            {"T_z", PTOWSP_I32, 2, {4, 8}, 7, 4, 13, 0, 1.0, false, NULL},
            {"T_out", PTOWSP_I32, 2, {4, 8}, 7, 5, 13, 0, 1.0, false, NULL},
        },
        .tree = CODE(
            TASK, K_K_I32_MUL_TT,  0,  1,  2,
            STOP),
    },
    {  // 42
        .axis_arg_count = 1,
        .axes = {{"n_b", DENSE, 2}},
        .tensors = {
            {"X", PTOWSP_F32, 3, {2, 8, 8}, 7, 3, 13, 6, 0.25, false, NULL},
            {"Kt", PTOWSP_F32, 3, {2, 8, 8}, 7, 3, 13, 6, 0.25, true, NULL},
            {"W1", PTOWSP_F32, 2, {8, 16}, 5, 1, 11, 5, 0.125, false, NULL},
            {"W2", PTOWSP_F32, 2, {16, 8}, 3, 2, 17, 8, 0.125, false, NULL},
            {"Xn", PTOWSP_F32, 3, {2, 8, 8}, 0, 0, 1, 0, 1.0, false, NULL},
            {"At", PTOWSP_F32, 3, {2, 8, 8}, 0, 0, 1, 0, 1.0, false, NULL},
            {"R1", PTOWSP_F32, 3, {2, 8, 8}, 0, 0, 1, 0, 1.0, false, NULL},
            {"M", PTOWSP_F32, 3, {2, 8, 8}, 0, 0, 1, 0, 1.0, false, NULL},
            {"O", PTOWSP_F32, 3, {2, 8, 8}, 0, 0, 1, 0, 1.0, false, NULL},
        },
        .tree = CODE(
            PARALLEL, 'b', 0,
                SEQUENCE,
                    TASK, K_ATTN_TILE, V('b'),  0, V('b'),  1, V('b'),  0, V('b'),  5, V('b'),
                    TASK, K_ADD_TILE, V('b'),  0, V('b'),  5, V('b'),  6, V('b'),
                    TASK, K_RMSNORM_TILE_B, V('b'),  6, V('b'),  4, V('b'),
                    TASK, K_MLP_TILE, V('b'),  4, V('b'),  2,  3,  7, V('b'),
                    TASK, K_ADD_TILE, V('b'),  6, V('b'),  7, V('b'),  8, V('b'),
                END,
            END,
            STOP),
    },
    {  // 43
        .axis_arg_count = 1,
        .axes = {{"n_b", DENSE, 6}},
        .tensors = {
            {"X", PTOWSP_F32, 3, {6, 8, 8}, 7, 3, 13, 6, 0.25, false, NULL},
            {"W", PTOWSP_F32, 2, {8, 8}, 5, 1, 11, 5, 0.25, false, NULL},
            {"G", PTOWSP_F32, 3, {6, 8, 1}, 3, 0, 8, 0, 0.125, false, NULL},
            {"E0", PTOWSP_F32, 3, {6, 8, 8}, 0, 0, 1, 0, 1.0, false, NULL},
            {"E1", PTOWSP_F32, 3, {6, 8, 8}, 0, 0, 1, 0, 1.0, false, NULL},
            {"Y", PTOWSP_F32, 3, {6, 8, 8}, 0, 0, 1, 0, 1.0, false, NULL},
            {"Z", PTOWSP_F32, 3, {6, 8, 8}, 0, 0, 1, 0, 1.0, false, NULL},
            {"R", PTOWSP_F32, 3, {6, 8, 8}, 0, 0, 1, 0, 1.0, false, NULL},
        },
        .tree = CODE(
            PARALLEL, 'b', 0,
                TASK, K_EXPERT_LINEAR, V('b'),  0, V('b'),  1,  3, V('b'),
                TASK, K_CP, V('b'),  0, V('b'),  4, V('b'),
                TASK, K_MOE_MIX, V('b'),  3, V('b'),  4, V('b'),  2, V('b'),  5, V('b'),
                TASK, K_RMSNORM_TILE_B, V('b'),  5, V('b'),  6, V('b'),
                TASK, K_ADD_TILE, V('b'),  6, V('b'),  5, V('b'),  7, V('b'),
            END,
            STOP),
    },
};

static const oracle_case oracle_cases[] = {
    {
        .name = "ex_attention",
        .workload = &oracle_workloads[0],
        .dispatch = PTOWSP_DISPATCH_ROUND_ROBIN,
        .lane_count = 4,
        .window = 8192,
        .variant_count = 1,
        .variants = {
            {
                .task_count = 4,
                .busy = 6720,
                .lane_tasks = {1, 1, 1, 1},
                .times = {
                    {1680, 0x337ff9c315e4a551u}, {1680, 0x337ff9c315e4a551u},
                    {1680, 0x337ff9c315e4a551u}, {1680, 0x337ff9c315e4a551u}},
                .sums = {
                    {1.0, 77.75}, {-2.0, -482.25}, {-0.75, -38.5},
                    {-0.5122162261977792, 36.703029565513134}},
                .tasks = TASKS(
                    {K_ATTENTION_TILE, {0, 0, 0}, 0, 0, 0, 1680},
                    {K_ATTENTION_TILE, {0, 0, 1}, 1, 0, 0, 1680},
                    {K_ATTENTION_TILE, {0, 1, 0}, 2, 0, 0, 1680},
                    {K_ATTENTION_TILE, {0, 1, 1}, 3, 0, 0, 1680}),
            },
        },
    },
    {
        .name = "ex_bgemm",
        .workload = &oracle_workloads[1],
        .dispatch = PTOWSP_DISPATCH_ROUND_ROBIN,
        .lane_count = 4,
        .window = 8192,
        .variant_count = 1,
        .variants = {
            {
                .task_count = 64,
                .busy = 360448,
                .lane_tasks = {16, 16, 16, 16},
                .times = {
                    {275968, 0x9ad6ec32221132e5u}, {107008, 0xc145cb29a2804ae5u},
                    {107008, 0xc145cb29a2804ae5u}, {107008, 0xc145cb29a2804ae5u}},
                .sums = {{-0.75, 45.75}, {-2.0, -99.5}, {-21.1875, 5790.9375}},
                .tasks = TASKS(
                    {K_GEMM_TILE, {0, 0, 0, 0}, 0, 0, 0, 5632},
                    {K_GEMM_TILE, {0, 0, 0, 1}, 1, 5632, 5632, 11264},
                    {K_GEMM_TILE, {0, 0, 0, 2}, 2, 11264, 11264, 16896},
                    {K_GEMM_TILE, {0, 0, 0, 3}, 3, 16896, 16896, 22528},
                    {K_GEMM_TILE, {0, 0, 1, 0}, 0, 0, 16896, 22528},
                    {K_GEMM_TILE, {0, 0, 1, 1}, 1, 22528, 22528, 28160},
                    {K_GEMM_TILE, {0, 0, 1, 2}, 2, 28160, 28160, 33792},
                    {K_GEMM_TILE, {0, 0, 1, 3}, 3, 33792, 33792, 39424},
                    {K_GEMM_TILE, {0, 0, 2, 0}, 0, 0, 33792, 39424},
                    {K_GEMM_TILE, {0, 0, 2, 1}, 1, 39424, 39424, 45056},
                    {K_GEMM_TILE, {0, 0, 2, 2}, 2, 45056, 45056, 50688},
                    {K_GEMM_TILE, {0, 0, 2, 3}, 3, 50688, 50688, 56320},
                    {K_GEMM_TILE, {0, 0, 3, 0}, 0, 0, 50688, 56320},
                    {K_GEMM_TILE, {0, 0, 3, 1}, 1, 56320, 56320, 61952},
                    {K_GEMM_TILE, {0, 0, 3, 2}, 2, 61952, 61952, 67584},
                    {K_GEMM_TILE, {0, 0, 3, 3}, 3, 67584, 67584, 73216},
                    {K_GEMM_TILE, {0, 1, 0, 0}, 0, 0, 67584, 73216},
                    {K_GEMM_TILE, {0, 1, 0, 1}, 1, 73216, 73216, 78848},
                    {K_GEMM_TILE, {0, 1, 0, 2}, 2, 78848, 78848, 84480},
                    {K_GEMM_TILE, {0, 1, 0, 3}, 3, 84480, 84480, 90112},
                    {K_GEMM_TILE, {0, 1, 1, 0}, 0, 0, 84480, 90112},
                    {K_GEMM_TILE, {0, 1, 1, 1}, 1, 90112, 90112, 95744},
                    {K_GEMM_TILE, {0, 1, 1, 2}, 2, 95744, 95744, 101376},
                    {K_GEMM_TILE, {0, 1, 1, 3}, 3, 101376, 101376, 107008},
                    {K_GEMM_TILE, {0, 1, 2, 0}, 0, 0, 101376, 107008},
                    {K_GEMM_TILE, {0, 1, 2, 1}, 1, 107008, 107008, 112640},
                    {K_GEMM_TILE, {0, 1, 2, 2}, 2, 112640, 112640, 118272},
                    {K_GEMM_TILE, {0, 1, 2, 3}, 3, 118272, 118272, 123904},
                    {K_GEMM_TILE, {0, 1, 3, 0}, 0, 0, 118272, 123904},
                    {K_GEMM_TILE, {0, 1, 3, 1}, 1, 123904, 123904, 129536},
                    {K_GEMM_TILE, {0, 1, 3, 2}, 2, 129536, 129536, 135168},
                    {K_GEMM_TILE, {0, 1, 3, 3}, 3, 135168, 135168, 140800},
                    {K_GEMM_TILE, {0, 2, 0, 0}, 0, 0, 135168, 140800},
                    {K_GEMM_TILE, {0, 2, 0, 1}, 1, 140800, 140800, 146432},
                    {K_GEMM_TILE, {0, 2, 0, 2}, 2, 146432, 146432, 152064},
                    {K_GEMM_TILE, {0, 2, 0, 3}, 3, 152064, 152064, 157696},
                    {K_GEMM_TILE, {0, 2, 1, 0}, 0, 0, 152064, 157696},
                    {K_GEMM_TILE, {0, 2, 1, 1}, 1, 157696, 157696, 163328},
                    {K_GEMM_TILE, {0, 2, 1, 2}, 2, 163328, 163328, 168960},
                    {K_GEMM_TILE, {0, 2, 1, 3}, 3, 168960, 168960, 174592},
                    {K_GEMM_TILE, {0, 2, 2, 0}, 0, 0, 168960, 174592},
                    {K_GEMM_TILE, {0, 2, 2, 1}, 1, 174592, 174592, 180224},
                    {K_GEMM_TILE, {0, 2, 2, 2}, 2, 180224, 180224, 185856},
                    {K_GEMM_TILE, {0, 2, 2, 3}, 3, 185856, 185856, 191488},
                    {K_GEMM_TILE, {0, 2, 3, 0}, 0, 0, 185856, 191488},
                    {K_GEMM_TILE, {0, 2, 3, 1}, 1, 191488, 191488, 197120},
                    {K_GEMM_TILE, {0, 2, 3, 2}, 2, 197120, 197120, 202752},
                    {K_GEMM_TILE, {0, 2, 3, 3}, 3, 202752, 202752, 208384},
                    {K_GEMM_TILE, {0, 3, 0, 0}, 0, 0, 202752, 208384},
                    {K_GEMM_TILE, {0, 3, 0, 1}, 1, 208384, 208384, 214016},
                    {K_GEMM_TILE, {0, 3, 0, 2}, 2, 214016, 214016, 219648},
                    {K_GEMM_TILE, {0, 3, 0, 3}, 3, 219648, 219648, 225280},
                    {K_GEMM_TILE, {0, 3, 1, 0}, 0, 0, 219648, 225280},
                    {K_GEMM_TILE, {0, 3, 1, 1}, 1, 225280, 225280, 230912},
                    {K_GEMM_TILE, {0, 3, 1, 2}, 2, 230912, 230912, 236544},
                    {K_GEMM_TILE, {0, 3, 1, 3}, 3, 236544, 236544, 242176},
                    {K_GEMM_TILE, {0, 3, 2, 0}, 0, 0, 236544, 242176},
                    {K_GEMM_TILE, {0, 3, 2, 1}, 1, 242176, 242176, 247808},
                    {K_GEMM_TILE, {0, 3, 2, 2}, 2, 247808, 247808, 253440},
                    {K_GEMM_TILE, {0, 3, 2, 3}, 3, 253440, 253440, 259072},
                    {K_GEMM_TILE, {0, 3, 3, 0}, 0, 0, 253440, 259072},
                    {K_GEMM_TILE, {0, 3, 3, 1}, 1, 259072, 259072, 264704},
                    {K_GEMM_TILE, {0, 3, 3, 2}, 2, 264704, 264704, 270336},
                    {K_GEMM_TILE, {0, 3, 3, 3}, 3, 270336, 270336, 275968}),
            },
        },
    },
    {
        .name = "ex_lightning_indexer_pto",
        .workload = &oracle_workloads[2],
        .dispatch = PTOWSP_DISPATCH_AFFINITY,
        .lane_count = 4,
        .key = CODE(VARIABLE, 'b'),
        .window = 1024,
        .variant_count = 1,
        .variants = {
            {
                .task_count = 8,
                .busy = 1600,
                .lane_tasks = {4, 4, 0, 0},
                .times = {
                    {800, 0x3a751bba6219d311u}, {800, 0x3a751bba6219d311u},
                    {800, 0x3a751bba6219d311u}, {800, 0x3a751bba6219d311u}},
                .sums = {{-12.875, 2544.625}, {307712.0, 841728.0}, {1028.0, 33004.0}},
                .tasks = TASKS(
                    {K_TOPK8, {0, 0}, 0, 0, 0, 200}, {K_TOPK8, {0, 1}, 0, 0, 200, 400},
                    {K_TOPK8, {0, 2}, 0, 0, 400, 600}, {K_TOPK8, {0, 3}, 0, 0, 600, 800},
                    {K_TOPK8, {1, 0}, 1, 0, 0, 200}, {K_TOPK8, {1, 1}, 1, 0, 200, 400},
                    {K_TOPK8, {1, 2}, 1, 0, 400, 600}, {K_TOPK8, {1, 3}, 1, 0, 600, 800}),
            },
        },
    },
    {
        .name = "ex_lightning_indexer_custom",
        .workload = &oracle_workloads[3],
        .dispatch = PTOWSP_DISPATCH_AFFINITY,
        .lane_count = 4,
        .key = CODE(VARIABLE, 'b'),
        .window = 1024,
        .variant_count = 1,
        .variants = {
            {
                .task_count = 8,
                .busy = 1680896,
                .lane_tasks = {4, 4, 0, 0},
                .times = {
                    {1319680, 0xfa3c07d5fe795391u}, {1319680, 0xfa3c07d5fe795391u},
                    {1319680, 0xfa3c07d5fe795391u}, {1319680, 0xfa3c07d5fe795391u}},
                .sums = {{-12.875, 2544.625}, {307712.0, 841728.0}, {1028.0, 33004.0}},
                .tasks = TASKS(
                    {K_TOPK8_B, {0, 0}, 0, 0, 0, 262336}, {K_TOPK8_B, {0, 1}, 0, 0, 262336, 786816},
                    {K_TOPK8_B, {0, 2}, 0, 0, 786816, 1311296},
                    {K_TOPK8_B, {0, 3}, 0, 0, 1311296, 1319680},
                    {K_TOPK8_B, {1, 0}, 1, 0, 0, 262336}, {K_TOPK8_B, {1, 1}, 1, 0, 262336, 295296},
                    {K_TOPK8_B, {1, 2}, 1, 0, 295296, 328256},
                    {K_TOPK8_B, {1, 3}, 1, 0, 328256, 361216}),
            },
        },
    },
    {
        .name = "ex_deepseek_v3",
        .workload = &oracle_workloads[4],
        .dispatch = PTOWSP_DISPATCH_ROUND_ROBIN,
        .lane_count = 4,
        .window = 8192,
        .variant_count = 1,
        .variants = {
            {
                .task_count = 6,
                .busy = 3632,
                .lane_tasks = {2, 2, 1, 1},
                .times = {
                    {1408, 0x508841f735c9eaf6u}, {1408, 0x508841f735c9eaf6u},
                    {1816, 0xa4302cfd853febb6u}, {1816, 0xa4302cfd853febb6u}},
                .sums = {
                    {0.25, 160.5}, {0.25, 65.25}, {-3.5, -83.5}, {7.0, 64.0}, {-4.8125, 80.0},
                    {-4.25, 85.6875}, {1.4609375, 54.2890625}},
                .tasks = TASKS(
                    {K_EXPERT_LINEAR, {0}, 0, 0, 0, 704}, {K_EXPERT_LINEAR, {0}, 1, 0, 0, 704},
                    {K_MOE_MIX, {0}, 2, 0, 0, 408}, {K_EXPERT_LINEAR, {1}, 3, 0, 0, 704},
                    {K_EXPERT_LINEAR, {1}, 0, 0, 704, 1408}, {K_MOE_MIX, {1}, 1, 0, 704, 1112}),
            },
        },
    },
    {
        .name = "ex_e2e_rmsnorm",
        .workload = &oracle_workloads[5],
        .dispatch = PTOWSP_DISPATCH_ROUND_ROBIN,
        .lane_count = 4,
        .window = 8192,
        .variant_count = 1,
        .variants = {
            {
                .task_count = 2,
                .busy = 2144,
                .lane_tasks = {1, 1, 0, 0},
                .times = {
                    {1072, 0x079aaba25a2c39dcu}, {1072, 0x079aaba25a2c39dcu},
                    {1072, 0x079aaba25a2c39dcu}, {1072, 0x079aaba25a2c39dcu}},
                .sums = {{0.75, 106.0}, {0.7135706841945648, 113.24497750401497}},
                .tasks = TASKS(
                    {K_RMSNORM_TILE, {0, 0}, 0, 0, 0, 1072},
                    {K_RMSNORM_TILE, {0, 1}, 1, 0, 0, 1072}),
            },
        },
    },
    {
        .name = "ex_flashinfer_decode",
        .workload = &oracle_workloads[6],
        .dispatch = PTOWSP_DISPATCH_ROUND_ROBIN,
        .lane_count = 4,
        .window = 1024,
        .variant_count = 1,
        .variants = {
            {
                .task_count = 1,
                .busy = 4514,
                .lane_tasks = {1, 0, 0, 0},
                .times = {
                    {4514, 0xbea14459ad2539a0u}, {4514, 0xbea14459ad2539a0u},
                    {4514, 0xbea14459ad2539a0u}, {4514, 0xbea14459ad2539a0u}},
                .sums = {
                    {-0.25, -10.0}, {-1.0, -87.0}, {-0.75, -5.5},
                    {0.06094582378864288, -0.745471902191639}},
                .tasks = TASKS({K_DECODE_ATTENTION, {0}, 0, 0, 0, 4514}),
            },
        },
    },
    {
        .name = "ex_llama",
        .workload = &oracle_workloads[7],
        .dispatch = PTOWSP_DISPATCH_ROUND_ROBIN,
        .lane_count = 4,
        .window = 8192,
        .variant_count = 1,
        .variants = {
            {
                .task_count = 10,
                .busy = 10592,
                .lane_tasks = {3, 3, 2, 2},
                .times = {
                    {4752, 0x74b780d8c5e5fb4eu}, {4752, 0x74b780d8c5e5fb4eu},
                    {8400, 0x001c8d766d07c62eu}, {8400, 0x001c8d766d07c62eu}},
                .sums = {
                    {0.25, 160.5}, {0.25, 233.5}, {0.0, 61.25}, {-1.75, -33.375},
                    {0.21266827918589115, 171.03195609059185},
                    {0.7643496468663216, 126.57601038739085},
                    {1.0143491998314857, 287.0760138295591},
                    {-9.650751397013664, -313.19975788891315},
                    {-8.636402189731598, -26.12373122572899}},
                .tasks = TASKS(
                    {K_ATTN_TILE, {0}, 0, 0, 0, 1680}, {K_ADD_TILE, {0}, 1, 0, 0, 256},
                    {K_RMSNORM_TILE_B, {0}, 2, 0, 0, 288}, {K_MLP_TILE, {0}, 3, 0, 0, 2816},
                    {K_ADD_TILE, {0}, 0, 0, 1680, 1936}, {K_ATTN_TILE, {1}, 1, 0, 256, 1936},
                    {K_ADD_TILE, {1}, 2, 0, 288, 544}, {K_RMSNORM_TILE_B, {1}, 3, 0, 2816, 3104},
                    {K_MLP_TILE, {1}, 0, 0, 1936, 4752}, {K_ADD_TILE, {1}, 1, 0, 1936, 2192}),
            },
        },
    },
    {
        .name = "ex_softmax",
        .workload = &oracle_workloads[8],
        .dispatch = PTOWSP_DISPATCH_ROUND_ROBIN,
        .lane_count = 4,
        .window = 8192,
        .variant_count = 1,
        .variants = {
            {
                .task_count = 48,
                .busy = 66816,
                .lane_tasks = {12, 12, 12, 12},
                .times = {
                    {39848, 0x5d6fb4f360475195u}, {22968, 0x5bc00a40d273ac55u},
                    {22968, 0x40f2fbedc164e135u}, {22968, 0x40f2fbedc164e135u}},
                .sums = {
                    {-0.931640625, -172.1875}, {32.00000001932494, 1562.9242668438237},
                    {7.904296875, 130.375}, {6465.698547363281, 106679.56916809082}},
                .tasks = TASKS(
                    {K_UPDATE_ROWMAX, {0, 0, 0}, 0, 0, 0, 544},
                    {K_UPDATE_ROWMAX, {0, 0, 1}, 1, 544, 544, 1088},
                    {K_UPDATE_ROWMAX, {0, 0, 2}, 2, 1088, 1088, 1632},
                    {K_UPDATE_ROWMAX, {0, 0, 3}, 3, 1632, 1632, 2176},
                    {K_UPDATE_ROWMAX, {0, 1, 0}, 0, 0, 1632, 2176},
                    {K_UPDATE_ROWMAX, {0, 1, 1}, 1, 2176, 2176, 2720},
                    {K_UPDATE_ROWMAX, {0, 1, 2}, 2, 2720, 2720, 3264},
                    {K_UPDATE_ROWMAX, {0, 1, 3}, 3, 3264, 3264, 3808},
                    {K_UPDATE_ROWMAX, {0, 2, 0}, 0, 0, 3264, 3808},
                    {K_UPDATE_ROWMAX, {0, 2, 1}, 1, 3808, 3808, 4352},
                    {K_UPDATE_ROWMAX, {0, 2, 2}, 2, 4352, 4352, 4896},
                    {K_UPDATE_ROWMAX, {0, 2, 3}, 3, 4896, 4896, 5440},
                    {K_UPDATE_ROWMAX, {0, 3, 0}, 0, 0, 4896, 5440},
                    {K_UPDATE_ROWMAX, {0, 3, 1}, 1, 5440, 5440, 5984},
                    {K_UPDATE_ROWMAX, {0, 3, 2}, 2, 5984, 5984, 6528},
                    {K_UPDATE_ROWMAX, {0, 3, 3}, 3, 6528, 6528, 7072},
                    {K_EXP_AND_ACCUMULATE, {0, 0, 0}, 0, 0, 6528, 8616},
                    {K_EXP_AND_ACCUMULATE, {0, 0, 1}, 1, 8616, 8616, 10704},
                    {K_EXP_AND_ACCUMULATE, {0, 0, 2}, 2, 10704, 10704, 12792},
                    {K_EXP_AND_ACCUMULATE, {0, 0, 3}, 3, 12792, 12792, 14880},
                    {K_EXP_AND_ACCUMULATE, {0, 1, 0}, 0, 0, 12792, 14880},
                    {K_EXP_AND_ACCUMULATE, {0, 1, 1}, 1, 14880, 14880, 16968},
                    {K_EXP_AND_ACCUMULATE, {0, 1, 2}, 2, 16968, 16968, 19056},
                    {K_EXP_AND_ACCUMULATE, {0, 1, 3}, 3, 19056, 19056, 21144},
                    {K_EXP_AND_ACCUMULATE, {0, 2, 0}, 0, 0, 19056, 21144},
                    {K_EXP_AND_ACCUMULATE, {0, 2, 1}, 1, 21144, 21144, 23232},
                    {K_EXP_AND_ACCUMULATE, {0, 2, 2}, 2, 23232, 23232, 25320},
                    {K_EXP_AND_ACCUMULATE, {0, 2, 3}, 3, 25320, 25320, 27408},
                    {K_EXP_AND_ACCUMULATE, {0, 3, 0}, 0, 0, 25320, 27408},
                    {K_EXP_AND_ACCUMULATE, {0, 3, 1}, 1, 27408, 27408, 29496},
                    {K_EXP_AND_ACCUMULATE, {0, 3, 2}, 2, 29496, 29496, 31584},
                    {K_EXP_AND_ACCUMULATE, {0, 3, 3}, 3, 31584, 31584, 33672},
                    {K_RESCALE, {0, 0, 0}, 0, 0, 31584, 33128},
                    {K_RESCALE, {0, 0, 1}, 1, 0, 31584, 33128},
                    {K_RESCALE, {0, 0, 2}, 2, 0, 31584, 33128},
                    {K_RESCALE, {0, 0, 3}, 3, 0, 33672, 35216},
                    {K_RESCALE, {0, 1, 0}, 0, 0, 33128, 34672},
                    {K_RESCALE, {0, 1, 1}, 1, 0, 33128, 34672},
                    {K_RESCALE, {0, 1, 2}, 2, 0, 33128, 34672},
                    {K_RESCALE, {0, 1, 3}, 3, 0, 35216, 36760},
                    {K_RESCALE, {0, 2, 0}, 0, 0, 34672, 36216},
                    {K_RESCALE, {0, 2, 1}, 1, 0, 34672, 36216},
                    {K_RESCALE, {0, 2, 2}, 2, 0, 34672, 36216},
                    {K_RESCALE, {0, 2, 3}, 3, 0, 36760, 38304},
                    {K_RESCALE, {0, 3, 0}, 0, 0, 36216, 37760},
                    {K_RESCALE, {0, 3, 1}, 1, 0, 36216, 37760},
                    {K_RESCALE, {0, 3, 2}, 2, 0, 36216, 37760},
                    {K_RESCALE, {0, 3, 3}, 3, 0, 38304, 39848}),
            },
        },
    },
    {
        .name = "ex_tensor_data_add",
        .workload = &oracle_workloads[9],
        .dispatch = PTOWSP_DISPATCH_ROUND_ROBIN,
        .lane_count = 4,
        .window = 8192,
        .variant_count = 1,
        .variants = {
            {
                .task_count = 8,
                .busy = 32768,
                .lane_tasks = {2, 2, 2, 2},
                .times = {
                    {8192, 0xe85b90eddb9dcfd5u}, {8192, 0xe85b90eddb9dcfd5u},
                    {8192, 0xe85b90eddb9dcfd5u}, {8192, 0xe85b90eddb9dcfd5u}},
                .sums = {{1.0, 60.0}, {-2.0, 341.0}, {-1.0, 401.0}},
                .tasks = TASKS(
                    {K_ADD_TILES, {0, 0, 0}, 0, 0, 0, 4096},
                    {K_ADD_TILES, {0, 0, 1}, 1, 0, 0, 4096},
                    {K_ADD_TILES, {0, 1, 0}, 2, 0, 0, 4096},
                    {K_ADD_TILES, {0, 1, 1}, 3, 0, 0, 4096},
                    {K_ADD_TILES, {1, 0, 0}, 0, 0, 4096, 8192},
                    {K_ADD_TILES, {1, 0, 1}, 1, 0, 4096, 8192},
                    {K_ADD_TILES, {1, 1, 0}, 2, 0, 4096, 8192},
                    {K_ADD_TILES, {1, 1, 1}, 3, 0, 4096, 8192}),
            },
        },
    },
    {
        .name = "ex_tensor_data_square",
        .workload = &oracle_workloads[10],
        .dispatch = PTOWSP_DISPATCH_ROUND_ROBIN,
        .lane_count = 4,
        .window = 8192,
        .variant_count = 1,
        .variants = {
            {
                .task_count = 8,
                .busy = 24576,
                .lane_tasks = {2, 2, 2, 2},
                .times = {
                    {6144, 0x447b0a760e12f9ddu}, {6144, 0x447b0a760e12f9ddu},
                    {6144, 0x447b0a760e12f9ddu}, {6144, 0x447b0a760e12f9ddu}},
                .sums = {{1.0, 60.0}, {114685.0, 5604328.0}},
                .tasks = TASKS(
                    {K_SQUARE_TILE, {0, 0}, 0, 0, 0, 3072}, {K_SQUARE_TILE, {0, 1}, 1, 0, 0, 3072},
                    {K_SQUARE_TILE, {0, 2}, 2, 0, 0, 3072}, {K_SQUARE_TILE, {0, 3}, 3, 0, 0, 3072},
                    {K_SQUARE_TILE, {1, 0}, 0, 0, 3072, 6144},
                    {K_SQUARE_TILE, {1, 1}, 1, 0, 3072, 6144},
                    {K_SQUARE_TILE, {1, 2}, 2, 0, 3072, 6144},
                    {K_SQUARE_TILE, {1, 3}, 3, 0, 3072, 6144}),
            },
        },
    },
    {
        .name = "ex_validated_matmul",
        .workload = &oracle_workloads[11],
        .dispatch = PTOWSP_DISPATCH_ROUND_ROBIN,
        .lane_count = 4,
        .window = 1024,
        .variant_count = 1,
        .variants = {
            {
                .task_count = 1,
                .busy = 4864,
                .lane_tasks = {1, 0, 0, 0},
                .times = {
                    {4864, 0xa30e9f567cf36e1cu}, {4864, 0xa30e9f567cf36e1cu},
                    {4864, 0xa30e9f567cf36e1cu}, {4864, 0xa30e9f567cf36e1cu}},
                .sums = {{4.0, 311.0}, {-8.0, 367.0}, {-57.0, -8181.0}},
                .tasks = TASKS({K_MATMUL_KERNEL, {0}, 0, 0, 0, 4864}),
            },
        },
    },
    {
        .name = "t_sched_baseline",
        .workload = &oracle_workloads[12],
        .variant_count = 1,
        .variants = {
            {
                .task_count = 4,
                .busy = 128,
                .lane_tasks = {4},
                .times = {
                    {128, 0x18ca73c3369a9825u}, {128, 0x18ca73c3369a9825u},
                    {128, 0x18ca73c3369a9825u}, {128, 0x18ca73c3369a9825u}},
                .sums = {{-3.0, -325.0}, {-3.0, -325.0}},
                .tasks = TASKS(
                    {K_COPY_TILE, {0}, 0, 0, 0, 32}, {K_COPY_TILE, {1}, 0, 0, 32, 64},
                    {K_COPY_TILE, {2}, 0, 0, 64, 96}, {K_COPY_TILE, {3}, 0, 0, 96, 128}),
            },
        },
    },
    {
        .name = "t_sched_rr2",
        .workload = &oracle_workloads[12],
        .dispatch = PTOWSP_DISPATCH_ROUND_ROBIN,
        .lane_count = 2,
        .variant_count = 1,
        .variants = {
            {
                .task_count = 4,
                .busy = 128,
                .lane_tasks = {2, 2},
                .times = {
                    {64, 0x273318a41a10f3d1u}, {64, 0x273318a41a10f3d1u}, {64, 0x273318a41a10f3d1u},
                    {64, 0x273318a41a10f3d1u}},
                .sums = {{-3.0, -325.0}, {-3.0, -325.0}},
                .tasks = TASKS(
                    {K_COPY_TILE, {0}, 0, 0, 0, 32}, {K_COPY_TILE, {1}, 1, 0, 0, 32},
                    {K_COPY_TILE, {2}, 0, 0, 32, 64}, {K_COPY_TILE, {3}, 1, 0, 32, 64}),
            },
        },
    },
    {
        .name = "t_sched_rr2_w1",
        .workload = &oracle_workloads[12],
        .dispatch = PTOWSP_DISPATCH_ROUND_ROBIN,
        .lane_count = 2,
        .window = 1,
        .variant_count = 1,
        .variants = {
            {
                .task_count = 4,
                .busy = 128,
                .lane_tasks = {2, 2},
                .times = {
                    {128, 0x84462f7f76c078d1u}, {128, 0x84462f7f76c078d1u},
                    {128, 0x84462f7f76c078d1u}, {128, 0x84462f7f76c078d1u}},
                .sums = {{-3.0, -325.0}, {-3.0, -325.0}},
                .tasks = TASKS(
                    {K_COPY_TILE, {0}, 0, 0, 0, 32}, {K_COPY_TILE, {1}, 1, 0, 32, 64},
                    {K_COPY_TILE, {2}, 0, 0, 64, 96}, {K_COPY_TILE, {3}, 1, 0, 96, 128}),
            },
        },
    },
    {
        .name = "t_cspt_seq",
        .workload = &oracle_workloads[13],
        .variant_count = 1,
        .variants = {
            {
                .task_count = 8,
                .busy = 320,
                .lane_tasks = {8},
                .times = {
                    {320, 0xafafdea85be02905u}, {320, 0xafafdea85be02905u},
                    {320, 0x3cd9714e384a7aa5u}, {320, 0x3cd9714e384a7aa5u}},
                .sums = {{-3.0, -325.0}, {-3.0, -325.0}, {901.0, 29445.0}},
                .tasks = TASKS(
                    {K_LOAD, {0}, 0, 0, 0, 32}, {K_SQUARE, {0}, 0, 0, 32, 80},
                    {K_LOAD, {1}, 0, 0, 80, 112}, {K_SQUARE, {1}, 0, 0, 112, 160},
                    {K_LOAD, {2}, 0, 0, 160, 192}, {K_SQUARE, {2}, 0, 0, 192, 240},
                    {K_LOAD, {3}, 0, 0, 240, 272}, {K_SQUARE, {3}, 0, 0, 272, 320}),
            },
        },
    },
    {
        .name = "t_ragged",
        .workload = &oracle_workloads[14],
        .variant_count = 2,
        .variants = {
            {
                .row_count = 2,
                .lengths = {1, 1},
                .task_count = 2,
                .busy = 6,
                .lane_tasks = {2},
                .times = {
                    {6, 0x19a954b2eadd8344u}, {6, 0x19a954b2eadd8344u}, {6, 0x19a954b2eadd8344u},
                    {6, 0x19a954b2eadd8344u}},
                .sums = {{2.0, 3.0}},
                .tasks = TASKS({K_MARK, {0}, 0, 0, 0, 3}, {K_MARK, {1}, 0, 3, 3, 6}),
            },
            {
                .row_count = 2,
                .lengths = {1, 2},
                .task_count = 3,
                .busy = 9,
                .lane_tasks = {3},
                .times = {
                    {9, 0xbe3af534bc728fe8u}, {9, 0xbe3af534bc728fe8u}, {9, 0xbe3af534bc728fe8u},
                    {9, 0xbe3af534bc728fe8u}},
                .sums = {{3.0, 6.0}},
                .tasks = TASKS(
                    {K_MARK, {0}, 0, 0, 0, 3}, {K_MARK, {1}, 0, 3, 3, 6},
                    {K_MARK, {2}, 0, 6, 6, 9}),
            },
        },
    },
    {
        .name = "t_select",
        .workload = &oracle_workloads[15],
        .variant_count = 2,
        .variants = {
            {
                .row_count = 2,
                .entry_count = 3,
                .indptr = {0, 2, 3},
                .indices = {0, 2, 1},
                .task_count = 3,
                .busy = 9,
                .lane_tasks = {3},
                .times = {
                    {9, 0x91b6796159f1c80du}, {9, 0x91b6796159f1c80du}, {9, 0x91b6796159f1c80du},
                    {9, 0x91b6796159f1c80du}},
                .sums = {{3.0, 6.0}},
                .tasks = TASKS(
                    {K_MARK, {0}, 0, 0, 0, 3}, {K_MARK, {2}, 0, 0, 3, 6},
                    {K_MARK, {1}, 0, 0, 6, 9}),
            },
            {
                .row_count = 1,
                .entry_count = 1,
                .indptr = {0, 1},
                .indices = {3},
                .task_count = 1,
                .busy = 3,
                .lane_tasks = {1},
                .times = {
                    {3, 0x704015ac879580a9u}, {3, 0x704015ac879580a9u}, {3, 0x704015ac879580a9u},
                    {3, 0x704015ac879580a9u}},
                .sums = {{1.0, 4.0}},
                .tasks = TASKS({K_MARK, {3}, 0, 0, 0, 3}),
            },
        },
    },
    {
        .name = "t_slots_neg",
        .workload = &oracle_workloads[16],
        .variant_count = 1,
        .variants = {
            {
                .task_count = 2,
                .busy = 2,
                .lane_tasks = {2},
                .times = {
                    {2, 0x1f4fd4c625be2182u}, {2, 0x1f4fd4c625be2182u}, {2, 0x1f4fd4c625be2182u},
                    {2, 0x1f4fd4c625be2182u}},
                .sums = {{-1.0, -1.0}, {0.0, 0.0}, {3.0, 3.0}},
                .tasks = TASKS({K_WRITE_FLAG, {0}, 0, 0, 0, 1}, {K_FILL_FALSE, {0}, 0, 1, 1, 2}),
            },
        },
    },
    {
        .name = "t_slots_pos",
        .workload = &oracle_workloads[17],
        .variant_count = 1,
        .variants = {
            {
                .task_count = 2,
                .busy = 2,
                .lane_tasks = {2},
                .times = {
                    {2, 0x69221d9dbeeb7cabu}, {2, 0x69221d9dbeeb7cabu}, {2, 0x69221d9dbeeb7cabu},
                    {2, 0x69221d9dbeeb7cabu}},
                .sums = {{1.0, 1.0}, {1.0, 1.0}, {7.0, 7.0}},
                .tasks = TASKS({K_WRITE_FLAG, {0}, 0, 0, 0, 1}, {K_FILL_TRUE, {0}, 0, 1, 1, 2}),
            },
        },
    },
    {
        .name = "t_dyn_axes",
        .workload = &oracle_workloads[18],
        .variant_count = 2,
        .variants = {
            {
                .axis_size = 2,
                .task_count = 2,
                .busy = 224,
                .lane_tasks = {2},
                .times = {
                    {224, 0x5a73d7fb0edfd047u}, {224, 0x5a73d7fb0edfd047u},
                    {224, 0x5a73d7fb0edfd047u}, {224, 0x5a73d7fb0edfd047u}},
                .sums = {{-3.0, -325.0}, {1.0, 261.0}, {-36.0, -2076.0}},
                .tasks = TASKS({K_MM, {0}, 0, 0, 0, 112}, {K_MM, {1}, 0, 0, 112, 224}),
            },
            {
                .axis_size = 4,
                .task_count = 4,
                .busy = 448,
                .lane_tasks = {4},
                .times = {
                    {448, 0xdc98ce6f21256b09u}, {448, 0xdc98ce6f21256b09u},
                    {448, 0xdc98ce6f21256b09u}, {448, 0xdc98ce6f21256b09u}},
                .sums = {{-3.0, -325.0}, {1.0, 261.0}, {-214.0, -10788.0}},
                .tasks = TASKS(
                    {K_MM, {0}, 0, 0, 0, 112}, {K_MM, {1}, 0, 0, 112, 224},
                    {K_MM, {2}, 0, 0, 224, 336}, {K_MM, {3}, 0, 0, 336, 448}),
            },
        },
    },
    {
        .name = "t_cond_axis",
        .workload = &oracle_workloads[19],
        .variant_count = 1,
        .variants = {
            {
                .task_count = 4,
                .busy = 32,
                .lane_tasks = {4},
                .times = {
                    {32, 0xf04ef7f8fd36a645u}, {32, 0xf04ef7f8fd36a645u}, {32, 0xf04ef7f8fd36a645u},
                    {32, 0xf04ef7f8fd36a645u}},
                .sums = {{16.0, 136.0}, {32.0, 272.0}, {24.0, 236.0}},
                .tasks = TASKS(
                    {K_COPY, {0}, 0, 0, 0, 8}, {K_COPY, {1}, 0, 0, 8, 16},
                    {K_COPY, {2}, 0, 0, 16, 24}, {K_COPY, {3}, 0, 0, 24, 32}),
            },
        },
    },
    {
        .name = "t_cond_symbol",
        .workload = &oracle_workloads[20],
        .variant_count = 2,
        .variants = {
            {
                .symbol = 2,
                .task_count = 4,
                .busy = 32,
                .lane_tasks = {4},
                .times = {
                    {32, 0xf04ef7f8fd36a645u}, {32, 0xf04ef7f8fd36a645u}, {32, 0xf04ef7f8fd36a645u},
                    {32, 0xf04ef7f8fd36a645u}},
                .sums = {{16.0, 136.0}, {32.0, 272.0}, {24.0, 236.0}},
                .tasks = TASKS(
                    {K_COPY, {0}, 0, 0, 0, 8}, {K_COPY, {1}, 0, 0, 8, 16},
                    {K_COPY, {2}, 0, 0, 16, 24}, {K_COPY, {3}, 0, 0, 24, 32}),
            },
            {
                .symbol = 1,
                .task_count = 4,
                .busy = 32,
                .lane_tasks = {4},
                .times = {
                    {32, 0xf04ef7f8fd36a645u}, {32, 0xf04ef7f8fd36a645u}, {32, 0xf04ef7f8fd36a645u},
                    {32, 0xf04ef7f8fd36a645u}},
                .sums = {{16.0, 136.0}, {32.0, 272.0}, {28.0, 262.0}},
                .tasks = TASKS(
                    {K_COPY, {0}, 0, 0, 0, 8}, {K_COPY, {1}, 0, 0, 8, 16},
                    {K_COPY, {2}, 0, 0, 16, 24}, {K_COPY, {3}, 0, 0, 24, 32}),
            },
        },
    },
    {
        .name = "k_copy_implicit",
        .workload = &oracle_workloads[21],
        .variant_count = 1,
        .variants = {
            {
                .task_count = 1,
                .busy = 120,
                .lane_tasks = {1},
                .times = {
                    {120, 0x21d0c6ff61edc752u}, {120, 0x21d0c6ff61edc752u},
                    {120, 0x21d0c6ff61edc752u}, {120, 0x21d0c6ff61edc752u}},
                .sums = {{0.75, 13.5}, {0.75, 13.5}},
                .tasks = TASKS({K_K_COPY_IMPLICIT, {0}, 0, 0, 0, 120}),
            },
        },
    },
    {
        .name = "k_copy_explicit_load",
        .workload = &oracle_workloads[22],
        .variant_count = 1,
        .variants = {
            {
                .task_count = 1,
                .busy = 120,
                .lane_tasks = {1},
                .times = {
                    {120, 0xe265f72aef601043u}, {120, 0xe265f72aef601043u},
                    {120, 0xe265f72aef601043u}, {120, 0xe265f72aef601043u}},
                .sums = {{0.75, 13.5}, {0.75, 13.5}},
                .tasks = TASKS({K_K_COPY_EXPLICIT_LOAD, {0}, 0, 0, 0, 120}),
            },
        },
    },
    {
        .name = "k_load_twice",
        .workload = &oracle_workloads[23],
        .variant_count = 1,
        .variants = {
            {
                .task_count = 1,
                .busy = 240,
                .lane_tasks = {1},
                .times = {
                    {240, 0xd5b6bc0072101058u}, {240, 0xd5b6bc0072101058u},
                    {240, 0xd5b6bc0072101058u}, {240, 0xd5b6bc0072101058u}},
                .sums = {{0.75, 13.5}, {1.5, 27.0}},
                .tasks = TASKS({K_K_LOAD_TWICE, {0}, 0, 0, 0, 240}),
            },
        },
    },
    {
        .name = "k_load_and_direct",
        .workload = &oracle_workloads[24],
        .variant_count = 1,
        .variants = {
            {
                .task_count = 1,
                .busy = 240,
                .lane_tasks = {1},
                .times = {
                    {240, 0xfbc4057fe9ff5f61u}, {240, 0xfbc4057fe9ff5f61u},
                    {240, 0xfbc4057fe9ff5f61u}, {240, 0xfbc4057fe9ff5f61u}},
                .sums = {{0.75, 13.5}, {1.5, 27.0}},
                .tasks = TASKS({K_K_LOAD_AND_DIRECT, {0}, 0, 0, 0, 240}),
            },
        },
    },
    {
        .name = "k_sub_ts",
        .workload = &oracle_workloads[25],
        .variant_count = 1,
        .variants = {
            {
                .task_count = 1,
                .busy = 180,
                .lane_tasks = {1},
                .times = {
                    {180, 0xef1486556caeebeau}, {180, 0xef1486556caeebeau},
                    {180, 0xef1486556caeebeau}, {180, 0xef1486556caeebeau}},
                .sums = {{0.75, 13.5}, {-89.25, -2731.5}},
                .tasks = TASKS({K_K_SUB_TS, {0}, 0, 0, 0, 180}),
            },
        },
    },
    {
        .name = "k_mul_tt",
        .workload = &oracle_workloads[26],
        .variant_count = 1,
        .variants = {
            {
                .task_count = 1,
                .busy = 240,
                .lane_tasks = {1},
                .times = {
                    {240, 0x4edf3a897b3d71dfu}, {240, 0x4edf3a897b3d71dfu},
                    {240, 0x4edf3a897b3d71dfu}, {240, 0x4edf3a897b3d71dfu}},
                .sums = {{0.75, 13.5}, {104.5, 3153.5}, {30.5625, 906.875}},
                .tasks = TASKS({K_K_MUL_TT, {0}, 0, 0, 0, 240}),
            },
        },
    },
    {
        .name = "k_max_tt",
        .workload = &oracle_workloads[27],
        .variant_count = 1,
        .variants = {
            {
                .task_count = 1,
                .busy = 240,
                .lane_tasks = {1},
                .times = {
                    {240, 0x4231775efdeff0dcu}, {240, 0x4231775efdeff0dcu},
                    {240, 0x4231775efdeff0dcu}, {240, 0x4231775efdeff0dcu}},
                .sums = {{0.75, 13.5}, {104.5, 3153.5}, {110.75, 3353.5}},
                .tasks = TASKS({K_K_MAX_TT, {0}, 0, 0, 0, 240}),
            },
        },
    },
    {
        .name = "k_max_ts",
        .workload = &oracle_workloads[28],
        .variant_count = 1,
        .variants = {
            {
                .task_count = 1,
                .busy = 180,
                .lane_tasks = {1},
                .times = {
                    {180, 0x683cfcde75dc3fd9u}, {180, 0x683cfcde75dc3fd9u},
                    {180, 0x683cfcde75dc3fd9u}, {180, 0x683cfcde75dc3fd9u}},
                .sums = {{0.75, 13.5}, {90.0, 2745.0}},
                .tasks = TASKS({K_K_MAX_TS, {0}, 0, 0, 0, 180}),
            },
        },
    },
    {
        .name = "k_sub_rowexp_r1",
        .workload = &oracle_workloads[29],
        .variant_count = 1,
        .variants = {
            {
                .task_count = 1,
                .busy = 186,
                .lane_tasks = {1},
                .times = {
                    {186, 0x5b8f43b3f88ecfd4u}, {186, 0x5b8f43b3f88ecfd4u},
                    {186, 0x5b8f43b3f88ecfd4u}, {186, 0x5b8f43b3f88ecfd4u}},
                .sums = {{0.75, 13.5}, {11.0, 35.0}, {-109.25, -2991.5}},
                .tasks = TASKS({K_K_SUB_ROWEXP_R1, {0}, 0, 0, 0, 186}),
            },
        },
    },
    {
        .name = "k_sub_rowexp_1r",
        .workload = &oracle_workloads[30],
        .variant_count = 1,
        .variants = {
            {
                .task_count = 1,
                .busy = 186,
                .lane_tasks = {1},
                .times = {
                    {186, 0x1c23f7df86004611u}, {186, 0x1c23f7df86004611u},
                    {186, 0x1c23f7df86004611u}, {186, 0x1c23f7df86004611u}},
                .sums = {{0.75, 13.5}, {11.0, 35.0}, {-109.25, -2991.5}},
                .tasks = TASKS({K_K_SUB_ROWEXP_1R, {0}, 0, 0, 0, 186}),
            },
        },
    },
    {
        .name = "k_mul_rowexp_1r",
        .workload = &oracle_workloads[31],
        .variant_count = 1,
        .variants = {
            {
                .task_count = 1,
                .busy = 186,
                .lane_tasks = {1},
                .times = {
                    {186, 0x0f7634b508b2c50eu}, {186, 0x0f7634b508b2c50eu},
                    {186, 0x0f7634b508b2c50eu}, {186, 0x0f7634b508b2c50eu}},
                .sums = {{0.75, 13.5}, {11.0, 35.0}, {1.5, -53.0}},
                .tasks = TASKS({K_K_MUL_ROWEXP_1R, {0}, 0, 0, 0, 186}),
            },
        },
    },
    {
        .name = "k_div_rowexp_1r",
        .workload = &oracle_workloads[32],
        .variant_count = 1,
        .variants = {
            {
                .task_count = 1,
                .busy = 186,
                .lane_tasks = {1},
                .times = {
                    {186, 0x35817a34809ea74bu}, {186, 0x35817a34809ea74bu},
                    {186, 0x35817a34809ea74bu}, {186, 0x35817a34809ea74bu}},
                .sums = {{0.75, 13.5}, {11.0, 35.0}, {1.8329670205712318, 105.12674018740654}},
                .tasks = TASKS({K_K_DIV_ROWEXP_1R, {0}, 0, 0, 0, 186}),
            },
        },
    },
    {
        .name = "k_mul_square_1n",
        .workload = &oracle_workloads[33],
        .variant_count = 1,
        .variants = {
            {
                .task_count = 1,
                .busy = 200,
                .lane_tasks = {1},
                .times = {
                    {200, 0x28d4090a0351b19eu}, {200, 0x28d4090a0351b19eu},
                    {200, 0x28d4090a0351b19eu}, {200, 0x28d4090a0351b19eu}},
                .sums = {{-0.75, -81.25}, {13.5, 53.0}, {-0.5, -23.4375}},
                .tasks = TASKS({K_K_MUL_SQUARE_1N, {0}, 0, 0, 0, 200}),
            },
        },
    },
    {
        .name = "k_exp",
        .workload = &oracle_workloads[34],
        .variant_count = 1,
        .variants = {
            {
                .task_count = 1,
                .busy = 180,
                .lane_tasks = {1},
                .times = {
                    {180, 0xb4578fdd65baddebu}, {180, 0xb4578fdd65baddebu},
                    {180, 0xb4578fdd65baddebu}, {180, 0xb4578fdd65baddebu}},
                .sums = {{0.75, 13.5}, {91.67223271727562, 2799.4370675981045}},
                .tasks = TASKS({K_K_EXP, {0}, 0, 0, 0, 180}),
            },
        },
    },
    {
        .name = "k_rowsum",
        .workload = &oracle_workloads[35],
        .variant_count = 1,
        .variants = {
            {
                .task_count = 1,
                .busy = 72,
                .lane_tasks = {1},
                .times = {
                    {72, 0xa7a7d8b2e86a0b4cu}, {72, 0xa7a7d8b2e86a0b4cu}, {72, 0xa7a7d8b2e86a0b4cu},
                    {72, 0xa7a7d8b2e86a0b4cu}},
                .sums = {{0.75, 13.5}, {0.75, 2.0}},
                .tasks = TASKS({K_K_ROWSUM, {0}, 0, 0, 0, 72}),
            },
        },
    },
    {
        .name = "k_rowmax",
        .workload = &oracle_workloads[36],
        .variant_count = 1,
        .variants = {
            {
                .task_count = 1,
                .busy = 72,
                .lane_tasks = {1},
                .times = {
                    {72, 0xcdb4823260584a75u}, {72, 0xcdb4823260584a75u}, {72, 0xcdb4823260584a75u},
                    {72, 0xcdb4823260584a75u}},
                .sums = {{0.75, 13.5}, {8.75, 30.75}},
                .tasks = TASKS({K_K_ROWMAX, {0}, 0, 0, 0, 72}),
            },
        },
    },
    {
        .name = "k_matmul_f16_out_f32",
        .workload = &oracle_workloads[37],
        .variant_count = 1,
        .variants = {
            {
                .task_count = 1,
                .busy = 9472,
                .lane_tasks = {1},
                .times = {
                    {9472, 0xc0eae707e2db796au}, {9472, 0xc0eae707e2db796au},
                    {9472, 0xc0eae707e2db796au}, {9472, 0xc0eae707e2db796au}},
                .sums = {{0.75, 106.0}, {2.0, 239.75}, {-6.6875, -289.4375}},
                .tasks = TASKS({K_K_MATMUL_F16_OUT_F32, {0}, 0, 0, 0, 9472}),
            },
        },
    },
    {
        .name = "k_matmul_then_scale",
        .workload = &oracle_workloads[38],
        .variant_count = 1,
        .variants = {
            {
                .task_count = 1,
                .busy = 5376,
                .lane_tasks = {1},
                .times = {
                    {5376, 0x81887733705bfd7bu}, {5376, 0x81887733705bfd7bu},
                    {5376, 0x81887733705bfd7bu}, {5376, 0x81887733705bfd7bu}},
                .sums = {{1.0, 77.75}, {0.0, -115.75}, {-1.40625, -306.0}},
                .tasks = TASKS({K_K_MATMUL_THEN_SCALE, {0}, 0, 0, 0, 5376}),
            },
        },
    },
    {
        .name = "k_matmul_chain",
        .workload = &oracle_workloads[39],
        .variant_count = 1,
        .variants = {
            {
                .task_count = 1,
                .busy = 9472,
                .lane_tasks = {1},
                .times = {
                    {9472, 0x74c79408f2edfd18u}, {9472, 0x74c79408f2edfd18u},
                    {9472, 0x74c79408f2edfd18u}, {9472, 0x74c79408f2edfd18u}},
                .sums = {{1.0, 77.75}, {0.0, -115.75}, {-44.0, 4379.0}},
                .tasks = TASKS({K_K_MATMUL_CHAIN, {0}, 0, 0, 0, 9472}),
            },
        },
    },
    {
        .name = "k_matmul_acc_both",
        .workload = &oracle_workloads[40],
        .variant_count = 1,
        .variants = {
            {
                .task_count = 1,
                .busy = 10496,
                .lane_tasks = {1},
                .times = {
                    {10496, 0x9ad03d886ad57041u}, {10496, 0x9ad03d886ad57041u},
                    {10496, 0x9ad03d886ad57041u}, {10496, 0x9ad03d886ad57041u}},
                .sums = {{1.0, 77.75}, {0.0, -115.75}, {31378.297329202294, 1043221.3156017512}},
                .tasks = TASKS({K_K_MATMUL_ACC_BOTH, {0}, 0, 0, 0, 10496}),
            },
        },
    },
    {
        .name = "k_i32_mul_tt",
        .workload = &oracle_workloads[41],
        .variant_count = 1,
        .variants = {
            {
                .task_count = 1,
                .busy = 128,
                .lane_tasks = {1},
                .times = {
                    {128, 0x8e49da5dedcad75eu}, {128, 0x8e49da5dedcad75eu},
                    {128, 0x8e49da5dedcad75eu}, {128, 0x8e49da5dedcad75eu}},
                .sums = {{201.0, 3400.0}, {194.0, 3187.0}, {1448.0, 23954.0}},
                .tasks = TASKS({K_K_I32_MUL_TT, {0}, 0, 0, 0, 128}),
            },
        },
    },
    {
        .name = "s_llama_rr2_w2",
        .workload = &oracle_workloads[7],
        .dispatch = PTOWSP_DISPATCH_ROUND_ROBIN,
        .lane_count = 2,
        .window = 2,
        .variant_count = 1,
        .variants = {
            {
                .task_count = 10,
                .busy = 10592,
                .lane_tasks = {5, 5},
                .times = {
                    {8992, 0x143e04ee669bab0eu}, {8992, 0x143e04ee669bab0eu},
                    {10336, 0x4f7051ac058a5a0eu}, {10336, 0x4f7051ac058a5a0eu}},
                .sums = {
                    {0.25, 160.5}, {0.25, 233.5}, {0.0, 61.25}, {-1.75, -33.375},
                    {0.21266827918589115, 171.03195609059185},
                    {0.7643496468663216, 126.57601038739085},
                    {1.0143491998314857, 287.0760138295591},
                    {-9.650751397013664, -313.19975788891315},
                    {-8.636402189731598, -26.12373122572899}},
                .tasks = TASKS(
                    {K_ATTN_TILE, {0}, 0, 0, 0, 1680}, {K_ADD_TILE, {0}, 1, 0, 0, 256},
                    {K_RMSNORM_TILE_B, {0}, 0, 0, 1680, 1968}, {K_MLP_TILE, {0}, 1, 0, 1680, 4496},
                    {K_ADD_TILE, {0}, 0, 0, 1968, 2224}, {K_ATTN_TILE, {1}, 1, 0, 4496, 6176},
                    {K_ADD_TILE, {1}, 0, 0, 4496, 4752}, {K_RMSNORM_TILE_B, {1}, 1, 0, 6176, 6464},
                    {K_MLP_TILE, {1}, 0, 0, 6176, 8992}, {K_ADD_TILE, {1}, 1, 0, 6464, 6720}),
            },
        },
    },
    {
        .name = "s_llama_seq_rr3",
        .workload = &oracle_workloads[42],
        .dispatch = PTOWSP_DISPATCH_ROUND_ROBIN,
        .lane_count = 3,
        .variant_count = 1,
        .variants = {
            {
                .task_count = 10,
                .busy = 10592,
                .lane_tasks = {4, 3, 3},
                .times = {
                    {10336, 0x21252f8247666d12u}, {8656, 0xb757de99803cc802u},
                    {8656, 0xb757de99803cc802u}, {8656, 0xb757de99803cc802u}},
                .sums = {
                    {0.25, 160.5}, {0.25, 233.5}, {0.0, 61.25}, {-1.75, -33.375},
                    {0.21266827918589115, 171.03195609059185},
                    {0.7643496468663216, 126.57601038739085},
                    {1.0143491998314857, 287.0760138295591},
                    {-9.650751397013664, -313.19975788891315},
                    {-8.636402189731598, -26.12373122572899}},
                .tasks = TASKS(
                    {K_ATTN_TILE, {0}, 0, 0, 0, 1680}, {K_ADD_TILE, {0}, 1, 1680, 1680, 1936},
                    {K_RMSNORM_TILE_B, {0}, 2, 1936, 1936, 2224},
                    {K_MLP_TILE, {0}, 0, 2224, 2224, 5040}, {K_ADD_TILE, {0}, 1, 5040, 5040, 5296},
                    {K_ATTN_TILE, {1}, 2, 0, 5040, 6720}, {K_ADD_TILE, {1}, 0, 6720, 6720, 6976},
                    {K_RMSNORM_TILE_B, {1}, 1, 6976, 6976, 7264},
                    {K_MLP_TILE, {1}, 2, 7264, 7264, 10080},
                    {K_ADD_TILE, {1}, 0, 10080, 10080, 10336}),
            },
        },
    },
    {
        .name = "s_mix_kernels_rr5_w6",
        .workload = &oracle_workloads[43],
        .dispatch = PTOWSP_DISPATCH_ROUND_ROBIN,
        .lane_count = 5,
        .window = 6,
        .variant_count = 1,
        .variants = {
            {
                .task_count = 30,
                .busy = 10704,
                .lane_tasks = {6, 6, 6, 6, 6},
                .times = {
                    {4224, 0xa9b5fa1f6ac2a63du}, {4224, 0xa9b5fa1f6ac2a63du},
                    {5176, 0x7c540f0a304ffdbdu}, {5176, 0x7c540f0a304ffdbdu}},
                .sums = {
                    {2.25, 235.75}, {0.25, 65.25}, {21.0, 528.0}, {-1.1875, 1269.875},
                    {2.25, 235.75}, {-11.203125, 127.8515625},
                    {-10.04980661161244, -20.106555598787963},
                    {-21.252930735237896, 107.74505851045251}},
                .tasks = TASKS(
                    {K_EXPERT_LINEAR, {0}, 0, 0, 0, 704}, {K_CP, {0}, 1, 0, 0, 128},
                    {K_MOE_MIX, {0}, 2, 0, 0, 408}, {K_RMSNORM_TILE_B, {0}, 3, 0, 0, 288},
                    {K_ADD_TILE, {0}, 4, 0, 0, 256}, {K_EXPERT_LINEAR, {1}, 0, 0, 704, 1408},
                    {K_CP, {1}, 1, 0, 128, 256}, {K_MOE_MIX, {1}, 2, 0, 408, 816},
                    {K_RMSNORM_TILE_B, {1}, 3, 0, 288, 576}, {K_ADD_TILE, {1}, 4, 0, 288, 544},
                    {K_EXPERT_LINEAR, {2}, 0, 0, 1408, 2112}, {K_CP, {2}, 1, 0, 544, 672},
                    {K_MOE_MIX, {2}, 2, 0, 816, 1224}, {K_RMSNORM_TILE_B, {2}, 3, 0, 672, 960},
                    {K_ADD_TILE, {2}, 4, 0, 704, 960}, {K_EXPERT_LINEAR, {3}, 0, 0, 2112, 2816},
                    {K_CP, {3}, 1, 0, 960, 1088}, {K_MOE_MIX, {3}, 2, 0, 1224, 1632},
                    {K_RMSNORM_TILE_B, {3}, 3, 0, 1088, 1376}, {K_ADD_TILE, {3}, 4, 0, 1224, 1480},
                    {K_EXPERT_LINEAR, {4}, 0, 0, 2816, 3520}, {K_CP, {4}, 1, 0, 1408, 1536},
                    {K_MOE_MIX, {4}, 2, 0, 1632, 2040}, {K_RMSNORM_TILE_B, {4}, 3, 0, 1536, 1824},
                    {K_ADD_TILE, {4}, 4, 0, 1632, 1888}, {K_EXPERT_LINEAR, {5}, 0, 0, 3520, 4224},
                    {K_CP, {5}, 1, 0, 1888, 2016}, {K_MOE_MIX, {5}, 2, 0, 2040, 2448},
                    {K_RMSNORM_TILE_B, {5}, 3, 0, 2040, 2328}, {K_ADD_TILE, {5}, 4, 0, 2112, 2368}),
            },
        },
    },
};

// clang-format on
