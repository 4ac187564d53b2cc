// The command line of emitted trees: values, elements of lists and files, what is refused and how, exit
// codes.

#include "npu_command.h"

namespace {

void expect(const std::vector<std::string> &arguments, const char *expected) {
    assert_int_equal(command(arguments), 0);
    assert_string_equal(noted.c_str(), (std::string(expected) + "; run 0 0 0 0 0").c_str());
}

void expect_refused(const std::vector<std::string> &arguments) {
    if (command(arguments) != 2) {
        fail_msg("%s %s is taken", arguments[0].c_str(), arguments.back().c_str());
    }
    assert_null(strstr(noted.c_str(), "run"));
}

TEST(npu_command__binds_numbers_and_lists) {
    expect({"--size", "batch=4"}, "size batch 4");
    expect({"--size", "batch=0x10"}, "size batch 16");
    expect({"--symbol", "seed=18446744073709551615"}, "symbol seed 18446744073709551615");
    expect({"--symbol", "seed=-1"}, "symbol seed 18446744073709551615");
    expect({"--slot", "7=-3"}, "slot 7 -3");
    expect({"--array", "flags=1,0,1"}, "array flags bool[1 0 1]");
    expect({"--array", "small=-128,127"}, "array small i8[-128 127]");
    expect({"--array", "wide=18446744073709551615"}, "array wide u64[-1]");
    expect({"--array", "small="}, "array small i8[]");
    expect({"--array", "half=-32768,2,32767"}, "array half i16[-32768 2 32767]");
    expect({"--lengths", "kv=3,0,5"}, "lengths kv i64[3 0 5]");
}

TEST(npu_command__binds_files) {
    const int32_t indptr[] = {0, 2, 3}, indices[] = {1, 0, 2};
    const int64_t lengths[] = {7, 8};
    const int8_t small[] = {-1, 2, 3};
    float x[8] = {0};
    memset(x, 5, sizeof x);
    write_bytes("indptr", indptr, sizeof indptr);
    write_bytes("indices", indices, sizeof indices);
    write_bytes("lengths", lengths, sizeof lengths);
    write_bytes("small", small, sizeof small);
    write_bytes("x", x, sizeof x);
    write_bytes("empty", x, 0);
    expect({"--csr", "adj=i32@%/indptr,@%/indices"}, "csr adj i32[0 2 3] i32[1 0 2]");
    expect({"--lengths", "kv=@%/lengths"}, "lengths kv i64[7 8]");
    expect({"--lengths", "kv=i32@%/indptr"}, "lengths kv i32[0 2 3]");
    expect({"--array", "small=@%/small"}, "array small i8[-1 2 3]");
    expect({"--tensor", "x=2x4@%/x"}, "tensor x 2 2x4 32 bytes 5");
    expect({"--tensor", "x=2x4"}, "tensor x 2 2x4 32 bytes 0");
    expect({"--tensor", "y"}, "tensor y 1 3x0 6 bytes 0");
    expect({"--tensor", "x=0x4@%/empty"}, "tensor x 2 0x4 0 bytes 0");
    expect_refused({"--csr", "adj=@%/indptr,@%/indices"});  // 12 bytes are no whole i64
    expect_refused({"--csr", "adj=i32@%/empty,@%/indices"});
    expect_refused({"--csr", "adj=i32@%/indptr,@%/nothing"});
    expect_refused({"--csr", "adj=f32@%/indptr,@%/indices"});
    expect_refused({"--csr", "adj=@%/indptr"});
    expect_refused({"--csr", "adj=@%/indptr,%/indices"});
    expect_refused({"--lengths", "kv=i16@%/indptr"});
    expect_refused({"--lengths", "kv=@%/small"});
    expect_refused({"--lengths", "kv=@%/nothing"});
    expect_refused({"--tensor", "x=3x4@%/x"});
    expect_refused({"--tensor", "x=@%/x"});                   // a shape is needed
    expect_refused({"--tensor", "x=@%"});                     // a directory
    expect_refused({"--tensor", "x=1000000000000000000x4"});  // more than there is memory
}

TEST(npu_command__passes_options_and_writes_tensors) {
    assert_int_equal(
        command({"--aicpu", "3", "--cores", "4", "--ring", "5", "--model", "a5", "--time-limit",
                 "90000", "--transients", "4096", "--tensor", "y=3", "--write", "y@%/out"}),
        0);
    assert_string_equal(noted.c_str(),
                        "transients 0 4096; tensor y 1 3x0 6 bytes 0; run 3 4 5 2 90000");
    char bytes[10] = "";
    FILE *file = fopen(path_of("out").c_str(), "rb");
    assert_non_null(file);
    assert_int_equal(fread(bytes, 1, sizeof bytes, file), 6);
    fclose(file);
    assert_string_equal(bytes, "abcdef");
    assert_int_equal(command({"--tensor", "y", "--write", "y@%/no/such"}), 1);
    assert_int_equal(command({"--tensor", "y", "--write", "y@/dev/full"}), 1);
    // More than fits a buffer, beside another tensor.
    assert_int_equal(command({"--tensor", "y", "--tensor", "x=100000x4", "--write", "x@/dev/full"}),
                     1);
    assert_int_equal(command({"--tensor", "y", "--tensor", "x=1x4", "--write", "x@/dev/full",
                              "--write", "y@%/out"}),
                     1);
    assert_string_equal(text_of("out").c_str(), "abcdef");
    run_status = PTOWSP_STUCK;
    assert_int_equal(command({"--tensor", "y", "--write", "y@%/not_written"}), 1);
    run_status = PTOWSP_OK;
    assert_int_equal(access(path_of("not_written").c_str(), F_OK), -1);
}

TEST(npu_command__binds_plans) {
    const ptowsp_work units[] = {{0, 0, 1, 0, {0, 0, 0, 64}}, {1, 0, 2, 0, {0, 0, 64, 36}}};
    const ptowsp_work merges[] = {{0, 0, 0, 0, {0, 0, 0, 2}}};
    const uint32_t begin[] = {0, 1, 2}, merge_begin[] = {0, 1, 1};
    write_bytes("units", units, sizeof units);
    write_bytes("merges", merges, sizeof merges);
    write_bytes("begin", begin, sizeof begin);
    write_bytes("merge_begin", merge_begin, sizeof merge_begin);
    write_bytes("short", units, sizeof units - 8);
    write_bytes("none", units, 0);
    write_bytes("one", begin, 4);
    const std::vector<uint32_t> lanes(PTOWSP_ATTENTION_LANE_MAX + 2);
    write_bytes("lanes", lanes.data(), lanes.size() * sizeof lanes[0]);
    expect({"--plan", "parts=@%/units,@%/begin,@%/merges,@%/merge_begin"},
           "plan parts 2 of 2, 1 of 1, 64 to 2 u32[0 1 2] u32[0 1 1]");
    expect({"--plan", "parts=@%/units,@%/begin"},
           "plan parts 2 of 2, 0 of 0, 64 to 0 u32[0 1 2] none");
    expect({"--plan", "parts=@%/units"}, "work parts 2 36");
    expect({"--plan", "parts=@%/none"}, "work parts 0 0");
    for (const char *value :
         {"parts=", "parts=%/units", "parts=@%/units,@%/begin,@%/merges", "parts=@%/short",
          "parts=@%/units,@%/lanes", "parts=@%/units,@%/one", "parts=@%/units,begin",
          "parts=@%/nothing", "parts=@%/units,@%/begin,@%/merges,@%/merge_begin,@%/begin",
          "parts=@%/units,@%/lanes,@%/merges,@%/lanes", "parts=@%/units,@%/begin,@%/merges,@%/one",
          "parts=@%/units,@%/one,@%/merges,@%/one", "parts=@%/units,@%/begin,@%/short,@%/begin",
          "parts=@%/units,begin,@%/merges,@%/begin"}) {
        expect_refused({"--plan", value});
    }
    expect_refused({"--array", "parts.flags=1,2"});  // it is bound with its plan
    expect({"--batch", "parts=300,7,2048:lanes=4,heads=2"},
           "batch parts i32[300 7 2048] none, 4 lanes, 2 heads of 0, window 0, pages 0, tiles 0, "
           "pieces 0, chunk 0, grain 0");
    expect({"--batch", "parts=@%/begin:1,1,5:heads=1,lanes=2,group=3,window=4,page_size=5,"
                       "tile_rows=6,piece_min=7,chunk=8,grain=9,is_causal=1,mode=1"},
           "batch parts i32[0 1 2] i32[1 1 5], 2 lanes, 1 heads of 3, window 4, pages 5, tiles 6, "
           "pieces 7, chunk 8, grain 9 causal invariant");
    for (const char *value :
         {"parts=", "parts=1,2", "parts=1:", "parts=1:lanes", "parts=1:lanes=-1", "parts=1:lane=1",
          "parts=1:lanes=1,", "parts=x:lanes=1", "parts=1,2:1:lanes=1", "parts=1:1:1:lanes=1",
          "parts=2147483648:lanes=1", "parts=@%/nothing:lanes=1"}) {
        expect_refused({"--batch", value});
    }
}

TEST(npu_command__refuses_what_it_does_not_understand) {
    for (const char *value : {"batch", "batch=", "=4", "batch=x", "batch=4x", "batch= 4", "batch=+",
                              "batch=9223372036854775808", "batch=-9223372036854775809"}) {
        expect_refused({"--size", value});
    }
    for (const char *value : {"seed=18446744073709551616", "seed=1,2"}) {
        expect_refused({"--symbol", value});
    }
    for (const char *value : {"x=1", "-1=1", "4294967296=1"}) {
        expect_refused({"--slot", value});
    }
    for (const char *value : {"flags=2", "flags=-1", "small=128", "small=-129", "wide=-1",
                              "small=1,,2", "small=1,", "none=1"}) {
        expect_refused({"--array", value});
    }
    for (const char *value : {"x=2", "x=2x4x1", "x=-2x4", "x=2x", "none=3", "y=9223372036854775807",
                              "x=9223372036854775807x4"}) {
        expect_refused({"--tensor", value});
    }
    for (const char *option : {"--aicpu", "--cores", "--ring"}) {
        for (const char *value : {"0", "-1", "65537", "x", ""}) {
            expect_refused({option, value});
        }
    }
    expect_refused({"--tensor", "between"});
    for (const char *value : {"0", "-1", "x", "9223372036854775808"}) {
        expect_refused({"--transients", value});
    }
    for (const char *value : {"0", "-1", "2147483648", "x"}) {
        expect_refused({"--time-limit", value});
    }
    expect_refused({"--model", "user"});
    expect_refused({"--write", "y"});
    expect_refused({"--write", "y@%/out"});  // it is not bound
    expect_refused({"--sizes", "batch=1"});
    expect_refused({"--size"});
    has_failed = true;
    expect_refused({"--size", "batch=1"});
    has_failed = false;
}

bool is_little_endian() {
    const uint16_t one = 1;
    return *reinterpret_cast<const uint8_t *>(&one) == 1;
}

// The text is by hand from what src/npu/record.c says, its sizes and hashes by another program: those of
// words whose lowest byte comes first.
TEST(npu_command__records_what_it_checks) {
    const char *expected = "ptowsp recording 1\n"
                           "program 0123456789abcdef\n"
                           "--model a2a3\n"
                           "--cores 2\n"
                           "--ring 9\n"
                           "--size batch=4\n"
                           "--array small=@d1.bin\n"
                           "--csr adj=i32@d2.bin,@d3.bin\n"
                           "--plan parts=@d4.bin\n"
                           "--batch parts=@d5.bin:@d6.bin:lanes=4,heads=2\n"
                           "--symbol seed=-1\n"
                           "--slot 7=-3\n"
                           "--memory 1=@m1.bin\n"
                           "--view x=2x4/4x1@1+0\n"
                           "--memory 2=@m2.bin\n"
                           "--view y=3/1@2+0\n"
                           "--expect y=@o1.bin\n"
                           "--expect-slot 0=0\n"
                           "--expect-slot 1=1\n"
                           "--expect-slot 2=4\n"
                           "--expect-slot 3=9\n"
                           "--expect-slot 4=16\n"
                           "--expect-slot 5=25\n"
                           "--expect-slot 6=36\n"
                           "--expect-slot 7=49\n"
                           "--expect-cycles 12345\n"
                           "file d1.bin 2 0a99a407b6f60884\n"
                           "file d2.bin 12 b26d3ad3304dc324\n"
                           "file d3.bin 12 b26d3ad3304dc324\n"
                           "file d4.bin 24 b06c66c3defe4d5a\n"
                           "file d5.bin 12 0ecaa544eafc6e10\n"
                           "file d6.bin 12 b26d3ad3304dc324\n"
                           "file m1.bin 32 8b4810cd0b09ffc5\n"
                           "file m2.bin 6 d7e4fcfa299d713d\n"
                           "file o1.bin 6 d80bda3fbe244a0a\n"
                           "end 55ef82041661b010\n";
    const size_t size_expected = strlen(expected);
    const int32_t numbers[] = {0, 2, 3};
    const ptowsp_work units[] = {{0, 0, 1, 0, {0, 0, 0, 64}}};
    float x[8] = {0};
    memset(x, 5, sizeof x);
    write_bytes("x", x, sizeof x);
    write_bytes("indptr", numbers, sizeof numbers);
    write_bytes("units", units, sizeof units);
    std::vector<std::string> run = {"--record", "%/kept",
                                    "--size",   "batch=4",
                                    "--array",  "small=-1,2",
                                    "--csr",    "adj=i32@%/indptr,@%/indptr",
                                    "--plan",   "parts=@%/units",
                                    "--batch",  "parts=3,7,1:@%/indptr:lanes=4,heads=2",
                                    "--symbol", "seed=-1",
                                    "--slot",   "7=-3",
                                    "--tensor", "x=2x4@%/x",
                                    "--tensor", "y",
                                    "--model",  "a2a3",
                                    "--cores",  "2",
                                    "--ring",   "9",
                                    "--aicpu",  "x"};
    assert_int_equal(command(run), 2);
    assert_int_equal(access(path_of("kept").c_str(), F_OK), -1);
    run.back() = "3";
    run_status = PTOWSP_STUCK;
    assert_int_equal(command(run), 1);
    run_status = PTOWSP_OK;
    assert_string_equal(text_of("kept/recording").c_str(), "");
    expect_refused({"--check", "%/kept"});
    for (int time = 0; time < 2; time++) {  // the second replaces the first
        assert_int_equal(command(run), 0);
        const std::string text = text_of("kept/recording");
        const size_t same = is_little_endian() ? text.size() : text.find("file d2.bin 12 ");
        assert_true(text.compare(0, same, expected, 0, same) == 0 && text.size() == size_expected);
    }
    const char *bound = "size batch 4; array small i8[-1 2]; csr adj i32[0 2 3] i32[0 2 3]; "
                        "work parts 1 64; batch parts i32[3 7 1] i32[0 2 3], 4 lanes, 2 heads of "
                        "0, window 0, pages 0, tiles 0, pieces 0, chunk 0, grain 0; symbol seed "
                        "18446744073709551615; slot 7 -3; tensor x 2 2x4 0 bytes 5; "
                        "tensor y 1 3x0 0 bytes 0; run 4 2 9 1 0";
    assert_int_equal(command({"--check", "%/kept", "--aicpu", "4"}), 0);
    assert_string_equal(noted.c_str(), bound);
    written = "abcdeg";
    assert_int_equal(command({"--check", "%/kept", "--aicpu", "4"}), 1);
    written = "abcdef";
    assert_string_equal(noted.c_str(), bound);
    expect_refused({"--check", "%/kept", "--record", "%/other"});
    expect_refused({"--record", ""});
    assert_int_equal(command({"--record", "%"}), 1);  // other files
    assert_int_equal(command({"--record", "%/x"}), 1);
    assert_int_equal(command({"--record", "%/no/such"}), 1);
    assert_int_equal(
        command({"--tensor", "x=0x4", "--tensor", "y", "--tensor", "y", "--record", "%/kept"}),
        0);  // the last y is written
    assert_int_equal(command({"--check", "%/kept"}), 0);
    for (const char *name : {"recording", "d1.bin", "d2.bin", "d3.bin", "d4.bin", "d5.bin",
                             "d6.bin", "m1.bin", "m2.bin", "m3.bin", "o1.bin"}) {
        assert_int_equal(unlink(path_of("kept/").append(name).c_str()), 0);
    }
    assert_int_equal(rmdir(path_of("kept").c_str()), 0);
}

TEST(npu_command__helps) {
    assert_int_equal(command({"--size", "batch=1", "--list"}), 0);
    assert_string_equal(noted.c_str(), "size batch 1");
    assert_int_equal(command({"--help"}), 0);
    assert_string_equal(noted.c_str(), "");
}

// What is used, and not part of another thing: names without numbers are those that can be bound.
TEST(npu_command__lists_what_can_be_bound) {
    static const wsp_axis_decl axes[] = {{nullptr, 0, 0, 0, 0},
                                         {nullptr, PTOWSP_AXIS_DYNAMIC, 0, 0, 1},
                                         {"idle", PTOWSP_AXIS_DYNAMIC, 0, 0, 0},
                                         {nullptr, PTOWSP_AXIS_SPARSE, 0, 0, 1},
                                         {"idle", PTOWSP_AXIS_SPARSE, 0, 0, 0},
                                         {nullptr, PTOWSP_AXIS_PLAN, 0, 0, 1},
                                         {"kv", PTOWSP_AXIS_PLAN, 0, 0, 0},
                                         {"kv", PTOWSP_AXIS_PLAN_MERGES, 0, 0, 1},
                                         {"kv", PTOWSP_AXIS_PLAN_LANES, 0, 0, 1},
                                         {"rows", PTOWSP_AXIS_DYNAMIC, 0, 0, 1},
                                         {"four", PTOWSP_AXIS_DENSE, 0, 4, 1}};
    static const wsp_array_decl arrays[] = {{nullptr, 0, 0, 0},
                                            {nullptr, 0, 0, 1},
                                            {"idle", PTOWSP_U8, 0, 0},
                                            {"sizes", PTOWSP_U8, 0, 1}};
    static const wsp_symbol_decl symbols[] = {
        {nullptr, 0}, {nullptr, 1}, {"idle", 0}, {"latency", 1}, {"seed", 1}};
    static const wsp_tensor_decl tensors[] = {
        {nullptr, 0, 0, {}, 0, 0, 0, 0},
        {nullptr, PTOWSP_F32, 1, {3}, 1, 0, 0, 0},
        {"idle", PTOWSP_F32, 1, {3}, 0, 0, 0, 0},
        {"between", PTOWSP_F32, 1, {3}, 1, 0, 0, 1},
        {"one", PTOWSP_F32, 0, {}, 1, 0, 0, 0},
        {"x", PTOWSP_BF16, 3, {2, PTOWSP_DYNAMIC, 4}, 1, 1, 0, 0}};
    wsp_program program = wsp_program();
    program.name = "p";
    program.axes = axes;
    program.axis_count = sizeof axes / sizeof axes[0];
    program.arrays = arrays;
    program.array_count = sizeof arrays / sizeof arrays[0];
    program.symbols = symbols;
    program.symbol_count = sizeof symbols / sizeof symbols[0];
    program.tensors = tensors;
    program.tensor_count = sizeof tensors / sizeof tensors[0];
    program.latency_symbol = 3;
    const std::string text = said_by(
        [&] {
            list(program);
            return 0;
        },
        0, 1);
    assert_string_equal(
        text.c_str(), "program p\n--plan kv=@UNITS,@BEGIN,@MERGES,@BEGIN\n"
                      "--batch kv=KV:QUERIES:lanes=N,heads=N\n--size rows=N\n"
                      "--array sizes=LIST    u8\n--symbol latency=N    may be left out\n"
                      "--symbol seed=N\n--tensor one=    f32\n--tensor x=2xNx4    bf16, written\n");
    unlink(path_of("said").c_str());
}

// Limits of each integer, and one past them.
TEST(npu_command__integers_fit_their_types) {
    const struct {
        uint32_t dtype;
        uint64_t most, least;  // least without its sign
    } cases[] = {{PTOWSP_BOOL, 1, 0},        {PTOWSP_I8, 127, 128},
                 {PTOWSP_I16, 32767, 32768}, {PTOWSP_I32, 2147483647, 2147483648},
                 {PTOWSP_U8, 255, 0},        {PTOWSP_U16, 65535, 0},
                 {PTOWSP_U32, 4294967295, 0}};
    for (const auto &it : cases) {
        assert_true(fits(it.most, false, it.dtype));
        assert_false(fits(it.most + 1, false, it.dtype));
        assert_false(fits(0 - it.least - 1, true, it.dtype));
        assert_true(it.least == 0 || fits(0 - it.least, true, it.dtype));
    }
    assert_true(fits(UINT64_MAX, false, PTOWSP_U64));
    assert_false(fits(UINT64_MAX, true, PTOWSP_U64));
    assert_true(fits(UINT64_C(1) << 63, true, PTOWSP_I64));
    assert_false(fits(UINT64_C(1) << 63, false, PTOWSP_I64));
}

TEST(npu_command__says_what_cannot_be_read) {
    const struct {
        std::vector<std::string> arguments;
        const char *text;
    } cases[] = {
        {{"--array", "small=@%"}, "%: Is a directory"},
        {{"--lengths", "kv=@%"}, "%: Is a directory"},
        {{"--tensor", "x=2x4@%"}, "%: Is a directory"},
        {{"--tensor", "x=2x4@%/nothing"}, "%/nothing: No such file or directory"},
        {{"--plan", "parts=@%/nothing"}, "%/nothing: No such file or directory"},
    };
    for (const auto &it : cases) {
        std::string wanted = it.text;
        wanted.replace(0, 1, directory);
        assert_string_equal(said_by([&] { return command(it.arguments); }, 2, 2).c_str(),
                            ("run: " + wanted + "\n").c_str());
    }
}

TEST(npu_command__says_where_memory_is_out) {
    const char bytes[3] = {1, 2, 3};
    write_bytes("small", bytes, sizeof bytes);
    has_no_memory = true;
    assert_string_equal(said_by(
                            [] {
                                return command({"--size", "batch=4"});
                            },
                            1, 2)
                            .c_str(),
                        "run: out of memory\n");
    const auto binds = [&](const char *array, const std::string &text) {
        return said_by([&] { return Command().bind("--array", array, text) ? 0 : 2; }, 2, 2);
    };
    assert_string_equal(binds("small", "@" + path_of("small")).c_str(),
                        "run: no memory for 3 bytes\n");
    assert_string_equal(binds("wide", "1,2").c_str(), "run: no memory for 16 bytes\n");
    has_no_memory = false;
}

int remove_directory(void **state) {
    (void)state;
    for (const char *name :
         {"indptr", "indices", "lengths", "small", "x", "empty", "out", "units", "merges", "begin",
          "merge_begin", "short", "none", "one", "lanes", "said"}) {
        unlink(path_of(name).c_str());
    }
    return rmdir(directory.c_str());
}

SUITE_AROUND(make_directory, remove_directory)

}  // namespace
