// Recorded runs as an emitted tree checks them (run --check): recordings that are written here by hand,
// whole and damaged; views of memory, and which of them are outside; how far numbers may be off.

#include "npu_command.h"

namespace {

std::string recording;  // its lines so far

void begin(const char *program = "0123456789abcdef") {
    recording = std::string("ptowsp recording 1\nprogram ") + program + "\n";
    mkdir(path_of("kept").c_str(), 0700);
}

void line(const std::string &text) {
    recording += text + "\n";
}

// A file of the recording, with the line that it has there.
void file(const char *name, const void *bytes, size_t size) {
    write_bytes((std::string("kept/") + name).c_str(), bytes, size);
    line(std::string("file ") + name + " " + std::to_string(size) + " " +
         hash_of(static_cast<const char *>(bytes), size));
}

void end() {
    line("end " + hash_of(recording.data(), recording.size()));
    write_bytes("kept/recording", recording.data(), recording.size());
}

std::string said(const std::vector<std::string> &arguments, int code, int output) {
    return said_by([&] { return command(arguments); }, code, output);
}

void refuses(const std::vector<std::string> &arguments, const std::string &text) {
    std::string wanted = text;
    for (size_t at; (at = wanted.find('%')) != std::string::npos;) {
        wanted.replace(at, 1, directory);
    }
    assert_string_equal(said(arguments, 2, 2).c_str(), ("run: " + wanted + "\n").c_str());
}

void refuses_check(const std::string &text) {
    refuses({"--check", "%/kept"}, text);
}

// -- recordings -----------------------------------------------------------------------------------

TEST(npu_check__what_is_no_recording_is_refused) {
    refuses({"--check", "%/nowhere"}, "--check: there is no %/nowhere/recording");
    mkdir(path_of("kept").c_str(), 0700);
    mkdir(path_of("kept/recording").c_str(), 0700);
    refuses_check("--check: there is no %/kept/recording");
    rmdir(path_of("kept/recording").c_str());
    const std::string texts[] = {"", "ptowsp recording 1\n", "ptowsp recording 2\na\nb\n",
                                 "other recording 1\na\nb\n", "\n\n\n"};
    for (const std::string &text : texts) {
        write_bytes("kept/recording", text.data(), text.size());
        refuses_check("--check: %/kept/recording is no recorded run");
    }
    const char *cut_off = "ptowsp recording 1\nprogram 0123456789abcdef\n--size batch=1";
    write_bytes("kept/recording", cut_off, strlen(cut_off));
    refuses_check("--check: %/kept/recording is cut off or damaged");
    begin();
    line("--size batch=1");
    line("end 0000000000000000");
    write_bytes("kept/recording", recording.data(), recording.size());
    refuses_check("--check: %/kept/recording is cut off or damaged");
    begin("fedcba9876543210");
    end();
    refuses_check("--check: %/kept is of another program, or version: fedcba9876543210, where this "
                  "is 0123456789abcdef");
    begin();
    end();
    assert_int_equal(command({"--check", "%/kept"}), 0);
    refuses({"--check", "%/kept", "--check", "%/kept"}, "--check: there is one already");
}

TEST(npu_check__files_that_are_not_as_recorded_are_refused) {
    const char bytes[4] = {1, 2, 3, 4};
    begin();
    file("m1.bin", bytes, 4);
    end();
    assert_int_equal(command({"--check", "%/kept"}), 0);
    write_bytes("kept/m1.bin", bytes, 3);
    refuses_check("--check: %/kept/m1.bin is not as it was recorded: it is cut off or damaged");
    unlink(path_of("kept/m1.bin").c_str());
    refuses_check("--check: %/kept lacks its file m1.bin");
    // Nothing outside of the directory is read, and a line needs all its words.
    for (const char *name : {"../x 4 0", "m1.bin", "m1.bin 4"}) {
        begin();
        line(std::string("file ") + name);
        end();
        const std::string text = name;
        refuses_check("--check: %/kept lacks its file " + text.substr(0, text.find(' ')));
    }
}

// Options of the command line stand in a recording, too, and may be wrong.
TEST(npu_check__lines_are_options) {
    begin();
    line("--size batch=3");
    line("--symbol seed=7");
    line("--expect-slot 3=9");
    line("--expect-cycles 12345");
    end();
    assert_int_equal(command({"--check", "%/kept"}), 0);
    assert_string_equal(noted.c_str(), "size batch 3; symbol seed 7; run 0 0 0 0 0");
    begin();
    line("--unknown 3");
    end();
    refuses_check("there is no option --unknown; see --help");
    for (const char *option : {"--expect-slot 1=x", "--expect-cycles", "--expect-cycles -"}) {
        begin();
        line(option);
        end();
        const std::string text = option;
        refuses_check("--check: " + text.substr(0, text.find(' ')) + " has no number");
    }
    begin();
    line("--memory 1=@m1.bin");
    end();
    refuses_check("%/kept/m1.bin: No such file or directory");
}

TEST(npu_check__numbers_that_differ_are_wrong) {
    begin();
    line("--expect-slot 3=8");
    line("--expect-cycles 12344");
    end();
    const std::string text = said({"--check", "%/kept"}, 1, 1);
    assert_non_null(strstr(text.c_str(), "slot 3 is 9, not 8\nmakespan is 12345, not 12344\n"
                                         "check: WRONG\n"));
}

// -- views ----------------------------------------------------------------------------------------

// 8 floats: what may be seen of them.
TEST(npu_check__views_are_inside_of_their_memory) {
    const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const struct {
        const char *view;
        bool is_inside;
    } cases[] = {{"2x4/4x1@1+0", true},
                 {"2x4/4x1@1+4", false},  // four bytes too far
                 {"8/1@1+0", true},
                 {"9/1@1+0", false},
                 {"8/-1@1+28", true},  // from the last one back
                 {"8/-1@1+24", false},
                 {"2x4/0x1@1+16", true},  // rows that are one
                 {"0x4/4x1@1+32", true},  // nothing, at the end
                 {"0x4/4x1@1+36", false},
                 {"100x0/4x1@1+0", true},
                 {"/@1+0", false},
                 {"2x4/4@1+0", false},  // of other ranks
                 {"1x1x1x1x1x1x1x1x1/1x1x1x1x1x1x1x1x1@1+0", false},
                 {"2x4/4x1@0+0", false},  // memories count from 1
                 {"2x4/4x1@2+0", false},
                 {"2x4/4x1@x+0", false},
                 {"2x4/4x1@1+x", false},
                 {"2x4/4x1@1", false},
                 {"2x4/4x1@1+9223372036854775807", false},
                 {"2x4/9223372036854775808x1@1+0", false},
                 {"2x4@1+0", false},
                 {"2x4/4x1", false},
                 {"2xy/4x1@1+0", false},
                 {"2x4/4xy@1+0", false},
                 {"1/2147483648@1+0", false},
                 {"1/-2147483648@1+0", false},
                 // Whose bytes are 2^64 more than none, and which so end where they begin.
                 {"4294967295/1073741824@1+0", false},
                 {"4294967295x4294967295/2147483647x2147483647@1+0", false},
                 {"4294967295x3/-2147483647x2147483647@1+0", false}};
    for (const auto &it : cases) {
        begin();
        line("--memory 1=@m1.bin");
        line(std::string("--view x=") + it.view);
        file("m1.bin", x, sizeof x);
        end();
        if (it.is_inside) {
            if (command({"--check", "%/kept"}) != 0) {
                fail_msg("%s is refused", it.view);
            }
        } else {
            refuses_check(std::string("--check: the view x=") + it.view +
                          " is outside of its memory");
        }
    }
    begin();
    line("--memory 1=@m1.bin");
    line("--view none=8/1@1+0");
    file("m1.bin", x, sizeof x);
    end();
    refuses_check("--check: the view none=8/1@1+0 is outside of its memory");
}

TEST(npu_check__views_that_a_tree_refuses_are_told) {
    const float x[8] = {0};
    begin();
    line("--memory 1=@m1.bin");
    line("--view x=2x4/4x1@1+0");
    file("m1.bin", x, sizeof x);
    end();
    has_failed = true;
    refuses_check("--view x: what it says");
    has_failed = false;
}

// -- comparing ------------------------------------------------------------------------------------

// Expects these elements of x, whose elements are as they were, with a tolerance.
std::string compared(const void *has, const void *wanted, size_t size, size_t width,
                     const char *tolerance, bool is_good) {
    begin();
    line("--memory 1=@m1.bin");
    line("--view x=" + std::to_string(size / width) + "/1@1+0");
    line("--expect x=@o1.bin");
    file("m1.bin", has, size);
    file("o1.bin", wanted, size);
    end();
    std::vector<std::string> arguments = {"--check", "%/kept"};
    if (tolerance) {
        arguments.push_back("--tolerance");
        arguments.push_back(tolerance);
    }
    const std::string text = said(arguments, is_good ? 0 : 1, 1);
    return text.substr(text.find("\nx  ") + 1);
}

TEST(npu_check__floats_may_be_off_by_a_share_of_the_largest) {
    const float has[4] = {1.5f, 2, -3, 100};
    float wanted[4] = {1.5f, 2, -3, 100};
    assert_non_null(strstr(compared(has, wanted, 16, 4, nullptr, true).c_str(),
                           "4 elements, 0 wrong\ncheck: good"));
    wanted[1] = 2.5f;  // half a hundredth of the largest
    assert_non_null(strstr(compared(has, wanted, 16, 4, nullptr, false).c_str(),
                           "4 elements, 1 wrong, the first is 1\ncheck: WRONG"));
    assert_non_null(strstr(compared(has, wanted, 16, 4, "0.01", true).c_str(),
                           "0 wrong, the largest error is 5.0e-03 of the largest\n"));
    wanted[0] = 0.5f;
    assert_non_null(strstr(compared(has, wanted, 16, 4, "0.009", false).c_str(),
                           "1 wrong, the first is 0, the largest error is 1.0e-02 of the largest: "
                           "see --tolerance\n"));
    // Infinities and what is no number are equal to themselves, whatever their bits are.
    float odd[4] = {NAN, INFINITY, 0.0f, 1}, same[4] = {-NAN, INFINITY, -0.0f, 1};
    assert_non_null(strstr(compared(odd, same, 16, 4, "0.1", true).c_str(), "0 wrong\n"));
    same[0] = 1;
    assert_non_null(strstr(compared(odd, same, 16, 4, "0.1", false).c_str(), "1 wrong"));
}

// Of 16 bits, also by a unit of the last place: 2^-10 of f16 is the difference of 1 and the next one.
TEST(npu_check__halves_may_be_off_by_their_last_place) {
    const uint16_t has[3] = {0x3c00, 0x0001, 0xfc00};  // 1, the least, minus infinity
    const uint16_t near[3] = {0x3c01, 0x0001, 0xfc00}, far[3] = {0x3c03, 0x0001, 0xfc00};
    const uint16_t other[3] = {0x3c00, 0x7e00, 0xfc00};  // no number
    begin();
    for (const uint16_t *wanted : {near, far, other}) {
        begin();
        line("--memory 1=@m1.bin");
        line("--view between=3/1@1+0");
        line("--expect between=@o1.bin");
        file("m1.bin", has, sizeof has);
        file("o1.bin", wanted, sizeof near);
        end();
        const bool is_good = wanted == near;
        const std::string text =
            said({"--check", "%/kept", "--tolerance", "0.0000001"}, is_good ? 0 : 1, 1);
        assert_non_null(strstr(text.c_str(), is_good ? "3 elements, 0 wrong" : "1 wrong"));
    }
}

// Of each type, the same bytes; floats that differ by nothing of a share; integers by no share at all.
template <typename T> uint64_t wrong_of(uint32_t dtype, T has, T wanted, double tolerance) {
    Difference difference(dtype, tolerance);
    difference.largest(reinterpret_cast<const char *>(&wanted));
    for (int i = 0; i < 2; i++) {
        difference.compare(reinterpret_cast<const char *>(&has),
                           reinterpret_cast<const char *>(&wanted), sizeof(T));
    }
    assert_int_equal(difference.count, 2);
    assert_true(difference.wrong_count == 0 || difference.wrong == 0);
    return difference.wrong_count;
}

TEST(npu_check__each_type_is_compared_as_it_is) {
    assert_int_equal(wrong_of<double>(PTOWSP_F64, 100, 101, 0.02), 0);
    assert_int_equal(wrong_of<double>(PTOWSP_F64, 100, 101, 0.002), 2);
    assert_int_equal(wrong_of<float>(PTOWSP_F32, 100, 101, 0.02), 0);
    assert_int_equal(wrong_of<int32_t>(PTOWSP_I32, 100, 101, 0.02), 2);
    // bf16: 1 and the next, which is 2^-7 more; minus two, of which a subnormal is all of it off.
    assert_int_equal(wrong_of<uint16_t>(PTOWSP_BF16, 0x3f80, 0x3f81, 1e-9), 0);
    assert_int_equal(wrong_of<uint16_t>(PTOWSP_BF16, 0x3f80, 0x3f83, 1e-9), 2);
    assert_int_equal(wrong_of<uint16_t>(PTOWSP_BF16, 0x0001, 0xc000, 0.5), 2);
    assert_int_equal(wrong_of<uint16_t>(PTOWSP_F16, 0x7e00, 0x7e01, 0.5),
                     0);  // neither is a number
}

// -- recording ------------------------------------------------------------------------------------

// A directory stands where each file is to be written, one after the other; then a link to a full disk.
TEST(npu_check__what_cannot_be_recorded_is_told) {
    float x[8] = {0};
    write_bytes("x", x, sizeof x);
    for (const char *name : {"recording", "d1.bin", "m1.bin", "m2.bin", "o1.bin"}) {
        const std::string path = path_of((std::string("kept/") + name).c_str());
        const std::string remove = "rm -rf " + path_of("kept");
        assert_int_equal(system(remove.c_str()), 0);
        mkdir(path_of("kept").c_str(), 0700);
        if (strcmp(name, "recording") != 0) {  // an older one, which is replaced
            write_bytes("kept/recording", "", 0);
        }
        mkdir(path.c_str(), 0700);
        const std::vector<std::string> arguments = {
            "--record", "%/kept", "--array", "small=1,2", "--tensor", "x=2x4@%/x", "--tensor", "y"};
        assert_string_equal(said(arguments, 1, 2).c_str(),
                            ("run: --record: " + path + ": Is a directory\n").c_str());
        if (access("/dev/full", W_OK) == 0) {
            assert_int_equal(rmdir(path.c_str()), 0);
            assert_int_equal(symlink("/dev/full", path.c_str()), 0);
            assert_string_equal(said(arguments, 1, 2).c_str(),
                                ("run: --record: " + path + ": No space left on device\n").c_str());
        }
    }
    const std::string remove = "rm -rf " + path_of("kept");
    assert_int_equal(system(remove.c_str()), 0);
    assert_string_equal(said({"--record", "%/kept", "--symbol", "a\nb=1"}, 1, 2).c_str(),
                        "run: --record: a line cannot have the name a\nb=1\n");
}

// -- what is expected -----------------------------------------------------------------------------

// The last view of a name is compared; and only as many elements as it has.
TEST(npu_check__expectations_are_of_a_tensor_that_is_bound) {
    const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    begin();
    line("--memory 1=@m1.bin");
    line("--view x=4/1@1+0");
    line("--view between=3/1@1+0");
    line("--view x=4/1@1+16");
    line("--expect x=@o1.bin");
    file("m1.bin", x, sizeof x);
    file("o1.bin", x + 4, 16);
    end();
    assert_int_equal(command({"--check", "%/kept"}), 0);
    const struct {
        const char *view, *text;
    } cases[] = {{"--view x=5/1@1+0",
                  "run: --check: tensor x has 5 elements, and not the bytes of what is expected\n"},
                 {"--view x=0x4/4x1@1+0",
                  "run: --check: tensor x has 0 elements, and not the bytes of what is expected\n"},
                 {"--view between=3/1@1+0", "run: --check: there is no tensor x\n"}};
    for (const auto &it : cases) {
        begin();
        line("--memory 1=@m1.bin");
        line(it.view);
        line("--expect x=@o1.bin");
        file("m1.bin", x, sizeof x);
        file("o1.bin", x + 4, 16);
        end();
        assert_string_equal(said({"--check", "%/kept"}, 1, 2).c_str(), it.text);
    }
}

// -- other options --------------------------------------------------------------------------------

TEST(npu_check__options_have_their_values) {
    for (const char *value : {"", "x", "1", "-0.1", "0.5x"}) {
        refuses({"--tolerance", value},
                std::string("--tolerance: \"") + value + "\" is no number from 0 to 1");
    }
    refuses({"--driver", "x"}, "--driver: \"x\" is neither aicpu nor host");
    assert_int_equal(command({"--driver", "aicpu"}), 0);
    assert_int_equal(command({"--driver", "host"}), 0);
    refuses({"--timeline", ""}, "--timeline: is to be a file");
    refuses({"--record", ""}, "--record: is to be a directory");
    for (const char *value : {"y", "@out", "y@"}) {
        refuses({"--write", value}, std::string("--write: \"") + value + "\" is to be NAME@FILE");
    }
}

// Times count from the first task that has run, in microseconds; task 1 has not.
TEST(npu_check__timelines_have_a_slice_for_each_task) {
    static const wsp_kernel kernels[] = {{nullptr, 0, 0, 0, 0, {nullptr}},
                                         {"load", PTOWSP_UNIT_VECTOR, 0, 0, 0, {nullptr}}};
    wsp_program program = wsp_program();
    program.kernels = kernels;
    wsp::List<ptowsp_span> spans;
    spans.assign(4, ptowsp_span());
    spans[0].kind = spans[2].kind = spans[3].kind = 1;
    spans[0].begin = 7500;
    spans[0].end = 9000;
    spans[0].lane = 2;
    spans[2].begin = 5000;
    spans[2].end = 5001;
    spans[3].begin = 6000;
    spans[3].end = 8000;
    assert_true(write_timeline(path_of("x"), program, spans));
    assert_string_equal(
        text_of("x").c_str(),
        "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
        "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"cores\"}},\n"
        "{\"ph\":\"X\",\"pid\":1,\"tid\":3,\"ts\":2.500,\"dur\":1.500,\"name\":\"load\","
        "\"args\":{\"task\":0}},\n"
        "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":0.000,\"dur\":0.001,\"name\":\"load\","
        "\"args\":{\"task\":2}},\n"
        "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":1.000,\"dur\":2.000,\"name\":\"load\","
        "\"args\":{\"task\":3}}\n]}\n");
}

// Bars one after another, as a viewer reads them: 0.1 + 0.2 > 0.3.
TEST(npu_check__slices_of_timelines_do_not_overlap_as_doubles) {
    static const wsp_kernel kernels[] = {{nullptr, 0, 0, 0, 0, {nullptr}},
                                         {"load", PTOWSP_UNIT_VECTOR, 0, 0, 0, {nullptr}}};
    wsp_program program = wsp_program();
    program.kernels = kernels;
    wsp::List<ptowsp_span> spans;
    spans.assign(2000, ptowsp_span());
    uint64_t now = 0;
    for (size_t i = 0; i < spans.size(); i++) {
        spans[i].kind = 1;
        spans[i].begin = now;
        now += 1 + i * 7919 % 4001 * (i < 1000 ? 1 : 1000);
        spans[i].end = now;
    }
    assert_true(write_timeline(path_of("x"), program, spans));
    const std::string text = text_of("x");
    double end = 0;
    size_t count = 0, longer = 0;
    for (size_t at = text.find("\"ts\":"); at != std::string::npos; at = text.find("\"ts\":", at)) {
        at += 5;
        const double begin = strtod(text.c_str() + at, nullptr);
        at = text.find("\"dur\":", at) + 6;
        const double duration = strtod(text.c_str() + at, nullptr);
        assert_true(begin >= end);
        end = begin + duration;
        const double exact = static_cast<double>(spans[count].end - spans[count].begin) / 1000;
        longer += begin + exact > static_cast<double>(spans[count].end) / 1000;
        assert_true(duration <= exact && duration > exact - 1e-6);
        count++;
    }
    assert_int_equal(count, spans.size());
    assert_true(longer > 100);  // as three digits would have it
}

// The runner has no tasks: the file has a beginning and an end.
TEST(npu_check__timelines_are_files) {
    assert_int_equal(command({"--timeline", "%/x"}), 0);
    assert_string_equal(text_of("x").c_str(),
                        "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
                        "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":"
                        "\"cores\"}}\n]}\n");
    const std::string text = said({"--timeline", "%/no/such"}, 1, 2);
    assert_string_equal(text.c_str(),
                        ("run: " + directory + "/no/such cannot be written\n").c_str());
    if (access("/dev/full", W_OK) == 0) {
        assert_string_equal(said({"--timeline", "/dev/full"}, 1, 2).c_str(),
                            "run: /dev/full cannot be written\n");
    }
}

int remove_directory(void **) {
    const std::string remove = "rm -rf " + directory;
    return system(remove.c_str());
}

SUITE_AROUND(make_directory, remove_directory)

}  // namespace
