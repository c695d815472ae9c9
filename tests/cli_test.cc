// The command line as its users meet it: results, messages, exit codes. Runs the built binary.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
namespace fs = std::filesystem;

struct Outcome {
  int code = -1;
  std::string out, err;
};

class Cli : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fmt::format("gnomon_cli_test_{}", getpid());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// Runs `gnomon ARGUMENTS` with the source tree's data files and no calibrated host.
  Outcome Run(const std::string& arguments, const std::string& redirect = "") const {
    const fs::path out = folder_ / "out", err = folder_ / "err";
    const std::string command = fmt::format(
        "cd '{0}' && GNOMON_HOST='{1}' GNOMON_DEVICES='{2}/devices' GNOMON_MODELS='{2}/models' "
        "'{3}' {4} {5} 2>'{6}'",
        folder_.string(), (folder_ / "no-host.toml").string(), GNOMON_SOURCE_DIR, GNOMON_BINARY,
        arguments, redirect.empty() ? fmt::format(">'{}'", out.string()) : redirect, err.string());
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, Slurp(out), Slurp(err)};
  }

  static std::string Slurp(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }

  fs::path folder_;
};

TEST_F(Cli, WithoutArgumentsTeachesWhatToDoFirst) {
  const Outcome run = Run("");
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("gemm select"), HasSubstr("codesign"), HasSubstr("calibrate")));
}

// The same in a build with CUDA on a machine without a GPU, but for the words.
TEST_F(Cli, MeasuringOnAGpuThatIsNotThereIsOneMessage) {
  const std::string shapes = Write("s.csv", "name,layout,m,n,k,batch\na,nt,64,64,64,1\n");
  const std::string sweep = " --family cuda --dtype bf16 -o m.csv --shapes " + shapes;
  for (const std::string& command :
       {"gemm sweep --on cuda:99" + sweep, "gemm bench --on cuda:99 --shapes " + shapes}) {
    const Outcome run = Run(command);
    EXPECT_EQ(run.code, 2) << command;
    EXPECT_THAT(run.out, IsEmpty()) << command;
    EXPECT_THAT(run.err, AnyOf(HasSubstr("cuda:99: this gnomon was built without CUDA "
                                         "(-DGNOMON_CUDA=ON)"),
                               HasSubstr("cuda:99: no CUDA device on this machine"),
                               HasSubstr("cuda:99: no such device")))
        << command;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  }
  EXPECT_FALSE(fs::exists(folder_ / "m.csv"));
}

TEST_F(Cli, PlacesToMeasureOnAreNamedWhereOneIsWrong) {
  const std::string rest =
      " --family cuda -o m.csv --shapes " + Write("s.csv", "name,layout,m,n,k,batch\n");
  for (const auto& [place, message] :
       {std::pair{"gpu", "--on: unknown place 'gpu'"},
        std::pair{"cuda:x", "--on: 'cuda:x' is no CUDA device; they are called cuda:0"},
        std::pair{"cuda:0 --threads 2", "--threads: threads are the host's"},
        std::pair{"host", "--family: unknown family to time on this machine 'cuda'"}}) {
    const Outcome run = Run(std::string("gemm sweep --on ") + place + rest);
    EXPECT_EQ(run.code, 2) << place;
    EXPECT_THAT(run.err, HasSubstr(message));
  }
}

TEST_F(Cli, ASweepThatHasAWrongConfigInItsFileIsANegativeVerdict) {
  const std::string shapes = Write("s.csv", "name,layout,m,n,k,batch\na,nt,8,8,8,1\n");
  const std::string sweep =
      "gemm sweep --on host --family cpu --threads 1 -o m.csv --shapes " + shapes;
  ASSERT_EQ(Run(sweep).code, 0);
  // The last row becomes one of a config that computed something else.
  std::string file = Slurp(folder_ / "m.csv");
  const size_t last = file.rfind('\n', file.size() - 2) + 1;
  std::string row = file.substr(last);
  const size_t quote = row.find('"');
  ASSERT_NE(quote, std::string::npos);
  file = file.substr(0, last) + row.substr(0, row.rfind(',', quote - 2) + 1) + "nan," +
         row.substr(quote, 1) + "a host; wrong: row 0 of C" + row.substr(row.rfind('"'));
  Write("m.csv", file);
  const Outcome run = Run(sweep);
  EXPECT_EQ(run.code, 1) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("1 configs have no time: 1 are wrong"),
                             HasSubstr("wrong: config "), HasSubstr("computes 8x8x8 nt fp32")));
}

TEST_F(Cli, EveryCommandHasHelpWithAnExample) {
  for (const char* command :
       {"device list", "device show", "device check", "device calibrate", "gemm select",
        "gemm explain", "gemm sweep", "gemm evaluate", "gemm bench", "gemm accuracy",
        "cost evaluate", "codesign", "train"}) {
    const Outcome run = Run(std::string(command) + " --help");
    EXPECT_EQ(run.code, 0) << command;
    EXPECT_THAT(run.out, HasSubstr("Example:\n  gnomon " + std::string(command))) << command;
    EXPECT_THAT(run.out, HasSubstr("--json")) << command;
  }
}

TEST_F(Cli, AMistypedWordIsAnsweredWithTheNearestOne) {
  EXPECT_EQ(Run("devcie list").code, 2);
  EXPECT_THAT(Run("devcie list").err, HasSubstr("nearest is 'device'"));
  EXPECT_THAT(Run("device lsit").err, HasSubstr("nearest is 'list'"));
  const Outcome option = Run("gemm select --devise host -m 1 -n 1 -k 1");
  EXPECT_EQ(option.code, 2);
  EXPECT_THAT(option.err, HasSubstr("nearest is '--device'"));
}

TEST_F(Cli, UnknownNamesListTheValidOnes) {
  const std::string sides = " -m 64 -n 64 -k 64";
  const Outcome device = Run("gemm select --device hots" + sides);
  EXPECT_EQ(device.code, 2);
  EXPECT_THAT(device.err, AllOf(HasSubstr("host"), HasSubstr("mi300x")));
  const Outcome dtype = Run("gemm select --device host --dtype fp23" + sides);
  EXPECT_EQ(dtype.code, 2);
  EXPECT_THAT(dtype.err, AllOf(HasSubstr("nearest is 'fp32'"), HasSubstr("bf16")));
  const Outcome layout = Run("gemm select --device host --layout xt" + sides);
  EXPECT_EQ(layout.code, 2);
  EXPECT_THAT(layout.err, AllOf(HasSubstr("nn"), HasSubstr("tt")));
  const Outcome model = Run("codesign dlrm_kagle --from h100 --to host");
  EXPECT_EQ(model.code, 2);
  EXPECT_THAT(model.err, HasSubstr("dlrm_kaggle"));
}

TEST_F(Cli, SizesThatAreNoSizesAreRefused) {
  for (const char* sides :
       {"-m 0 -n 1 -k 1", "-m 1 -n -5 -k 1", "-m 1 -n 1 -k 99999999999999999999999",
        "-m 4611686018427387904 -n 4611686018427387904 -k 1", "-m nan -n 1 -k 1"}) {
    const Outcome run = Run(fmt::format("gemm select --device host {}", sides));
    EXPECT_EQ(run.code, 2) << sides;
    EXPECT_THAT(run.err, Not(IsEmpty())) << sides;
    EXPECT_THAT(run.out, IsEmpty()) << sides;
  }
}

TEST_F(Cli, SelectPrintsVerdictTableAndNextStep) {
  const Outcome run = Run("gemm select --device host --dtype fp32 -m 2048 -n 512 -k 13 --top 3");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("predicted"), HasSubstr("cpu"), HasSubstr("next:")));
}

TEST_F(Cli, SelectJsonHasTheContractsKeysAndTermsThatAddUp) {
  const Outcome run =
      Run("gemm select --device host -m 300 -n 200 -k 100 --layout nn --top 2 --json");
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["problem"]["layout"], "nn");
  ASSERT_EQ(json["picks"].size(), 2u);
  for (const auto& pick : json["picks"]) {
    double sum = 0;
    for (const auto& term : pick["terms"]) sum += term["us"].get<double>();
    EXPECT_NEAR(sum, pick["predicted_us"].get<double>(), 1e-9 + 1e-6 * sum);
  }
  EXPECT_LE(json["picks"][0]["predicted_us"], json["picks"][1]["predicted_us"]);
}

TEST_F(Cli, WhatSelectPrintsExplainReads) {
  const Outcome select = Run("gemm select --device host -m 300 -n 200 -k 100 --json");
  ASSERT_EQ(select.code, 0) << select.err;
  const std::string config = nlohmann::json::parse(select.out)["picks"][0]["config"];
  const Outcome explain =
      Run(fmt::format("gemm explain --device host -m 300 -n 200 -k 100 --config {}", config));
  EXPECT_EQ(explain.code, 0) << explain.err;
  EXPECT_THAT(explain.out, HasSubstr(config));
  EXPECT_EQ(Run("gemm explain --device host -m 3 -n 2 -k 1 --config tile.junk").code, 2);
}

TEST_F(Cli, TheSameInputGivesTheSameBytes) {
  const std::string command = "codesign dlrm_kaggle --from h100 --to host --json";
  const Outcome first = Run(command), second = Run(command);
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.out, second.out);
}

TEST_F(Cli, ADeviceFileWithATypoNamesLineColumnAndTheNearestKey) {
  std::string text = Slurp(fs::path(GNOMON_SOURCE_DIR) / "devices/h100.toml");
  const size_t at = text.find("latency_ns");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 10, "latencie_ns");
  const int line =
      1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<long>(at), '\n'));
  const Outcome run = Run("device check " + Write("typo.toml", text));
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr(fmt::format("typo.toml:{}:", line)),
                             HasSubstr("latencie_ns"), HasSubstr("latency_ns")));
}

TEST_F(Cli, EveryShippedDeviceFileIsConsistent) {
  for (const auto& entry : fs::directory_iterator(fs::path(GNOMON_SOURCE_DIR) / "devices")) {
    const Outcome run = Run("device check " + entry.path().string());
    EXPECT_EQ(run.code, 0) << run.err << run.out;
  }
}

TEST_F(Cli, AFullDiskUnderStandardOutputIsAFault) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  EXPECT_EQ(Run("device list", ">/dev/full").code, 3);
}

TEST_F(Cli, MeasuredFilesThatCannotBeReadAreRefusedWithTheirPlace) {
  EXPECT_EQ(Run("gemm evaluate --device host --measured absent.csv").code, 2);
  const Outcome empty = Run("gemm evaluate --device host --measured " + Write("empty.csv", ""));
  EXPECT_EQ(empty.code, 2);
  EXPECT_THAT(empty.err, HasSubstr("empty.csv"));
  const Outcome nan = Run(
      "gemm evaluate --device host --measured " +
      Write(
          "nan.csv",
          "device,family,dtype,dtype_out,layout,m,n,k,batch,tile_m,tile_n,tile_k,mma_m,mma_n,mma_k,"
          "split_k,us,source,config\nhost,cpu,fp32,fp32,nt,1,2,3,1,,,,,,,,nan,x,y\n"));
  EXPECT_EQ(nan.code, 2);
  EXPECT_THAT(nan.err, HasSubstr("nan.csv:2:"));
}

TEST_F(Cli, ExplainOnAGpuGivesTermsThatAddUpFiguresAndRivals) {
  for (const char* device : {"h200", "mi350x", "mi300x"}) {
    const Outcome run = Run(fmt::format(
        "gemm explain --device {} --dtype bf16 -m 3000 -n 2048 -k 4096 --json", device));
    ASSERT_EQ(run.code, 0) << run.err;
    const auto json = nlohmann::json::parse(run.out);
    const auto& pick = json["picks"][0];
    double sum = 0;
    for (const auto& term : pick["terms"]) sum += term["us"].get<double>();
    EXPECT_NEAR(sum / pick["predicted_us"].get<double>(), 1, 1e-9) << device;
    std::vector<std::string> figures;
    for (const auto& figure : pick["figures"]) figures.push_back(figure["name"]);
    for (const char* name : {"occupancy", "last wave idle", "L2 hits", "read from HBM"})
      EXPECT_THAT(figures, Contains(name)) << device;
    ASSERT_EQ(json["rivals"].size(), 3u) << device;
    double before = 0;
    for (const auto& rival : json["rivals"]) {
      EXPECT_GE(rival["slower"].get<double>(), before) << device;
      before = rival["slower"].get<double>();
      EXPECT_NE(rival["term"], "") << device;
      EXPECT_NE(rival["term_longer_us"].get<double>(), 0) << device;
    }
  }
}

TEST_F(Cli, ExplainSaysWhatAConfigOfItsOwnLosesBy) {
  const Outcome run = Run(
      "gemm explain --device h200 --dtype bf16 -m 4096 -n 4096 -k 4096 --config 32x32x32.w4.s2.k1");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("triton 32x32x32.w4.s2.k1"), HasSubstr("nearest rival"),
                             HasSubstr("longer by"), HasSubstr("L2 hits"), HasSubstr("-")));
  const Outcome cannot =
      Run("gemm explain --device h200 --dtype bf16 -m 4096 -n 4096 -k 4096 --config "
          "256x256x256.w8.s4.k1");
  EXPECT_EQ(cannot.code, 2);
  EXPECT_THAT(cannot.err, HasSubstr("256x256x256.w8.s4.k1 cannot run"));
  const Outcome nonsense =
      Run("gemm explain --device h200 --dtype bf16 -m 1 -n 1 -k 1 --config 256xyz");
  EXPECT_EQ(nonsense.code, 2);
  EXPECT_THAT(nonsense.err, HasSubstr("256xyz"));
}

TEST_F(Cli, SelectTakesUnitsPartitionsAndGroups) {
  const auto predicted = [&](const std::string& more) {
    const Outcome run =
        Run("gemm select --device mi300x --dtype bf16 -n 4096 -k 4096 --json " + more);
    EXPECT_EQ(run.code, 0) << more << ": " << run.err;
    return run.code == 0 ? nlohmann::json::parse(run.out)["picks"][0]["predicted_us"].get<double>()
                         : 0;
  };
  const double all = predicted("-m 4096"), cpx = predicted("-m 4096 --partition cpx"),
               twenty = predicted("-m 4096 --units 20");
  EXPECT_GT(cpx, 4 * all) << "38 of 304 CUs";
  EXPECT_GT(twenty, cpx);
  EXPECT_GT(predicted("--group 96,0,4000"), 0);
  const std::string sides = " --dtype bf16 -n 64 -k 64";
  EXPECT_THAT(Run("gemm select --device mi300x -m 64 --partition cpz" + sides).err,
              HasSubstr("nearest is 'cpx'"));
  EXPECT_THAT(Run("gemm select --device mi300x -m 64 --units 400" + sides).err,
              HasSubstr("--units: mi300x has 304"));
  EXPECT_THAT(Run("gemm select --device mi300x -m 64 --group 1,2" + sides).err,
              HasSubstr("one or the other"));
  EXPECT_THAT(Run("gemm select --device mi300x" + sides).err, HasSubstr("-m: M is missing"));
  EXPECT_THAT(Run("gemm select --device mi300x -m 64 --family tritn" + sides).err,
              HasSubstr("nearest is 'triton'"));
}

TEST_F(Cli, SelectSaysHowSureItIsOrThatTheDeviceIsNotCalibrated) {
  const std::string sides = " --dtype bf16 -m 4096 -n 4096 -k 4096 --top 2 --family triton";
  EXPECT_THAT(Run("gemm select --device h200" + sides).out, HasSubstr("sure to "));
  EXPECT_THAT(Run("gemm select --device b200" + sides).out, HasSubstr("not calibrated"));
}

constexpr const char* kMeasured =
    "device,family,dtype,dtype_out,layout,m,n,k,batch,tile_m,tile_n,tile_k,mma_m,mma_n,mma_k,"
    "split_k,us,source,config\n"
    "h200,triton,bf16,bf16,nt,4096,4096,4096,1,128,256,64,,,,1,230,x,128x256x64.w8.s3.k1\n"
    "h200,triton,bf16,bf16,nt,4096,4096,4096,1,32,32,32,,,,1,1500,x,32x32x32.w4.s2.k1\n"
    "h200,triton,bf16,bf16,nt,4096,4096,4096,1,32,32,32,,,,1,nan,x,256x256x64.w4.s4.k1\n"
    "h200,cublas,bf16,bf16,nt,4096,4096,4096,1,,,,,,,,200,x,\n"
    "mi300x,wonder,bf16,bf16,nt,4097,4096,4096,1,,,,,,,,250,x,\n";

TEST_F(Cli, EvaluateTakesEachRowsDeviceAndGivesBothHalves) {
  const std::string path = Write("measured.csv", kMeasured);
  const Outcome run = Run("gemm evaluate --json --measured " + path);
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["rows"], 4);
  EXPECT_EQ(json["failed"], 1);
  EXPECT_EQ(json["devices"], nlohmann::json({"h200", "mi300x"}));
  EXPECT_EQ(json["generic"]["families"], nlohmann::json({"wonder"}));
  EXPECT_EQ(json["regret"]["geomean"], 1.0);
  EXPECT_EQ(json["family_choice"]["shapes"], 1);
  EXPECT_EQ(json["family_choice"]["best_single_family"], "cublas");
  EXPECT_LT(json["median_abs_error"].get<double>(), 0.5);
  EXPECT_TRUE(json["held_out"].contains("median_abs_error"));
  EXPECT_TRUE(json["held_out"].contains("regret"));
  EXPECT_THAT(Run("gemm evaluate --held-out --measured " + path).out, HasSubstr("held out"));
}

TEST_F(Cli, EvaluateNamesTheLineOfAnUnknownDevice) {
  const std::string path = Write(
      "measured.csv", std::string(kMeasured) + "h300,cublas,bf16,bf16,nt,1,1,1,1,,,,,,,,4,x,\n");
  const Outcome run = Run("gemm evaluate --measured " + path);
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("measured.csv:7:1: "), HasSubstr("h300")));
  EXPECT_EQ(Run("gemm evaluate --device h200 --measured " + path).code, 0) << "other rows stay out";
}

TEST_F(Cli, AccuracyOfAFolderIsTheSameBytesEveryTime) {
  Write("measured.csv", kMeasured);
  Write("other.csv", "what,value\nsomething,1\n");
  const std::string command = "gemm accuracy --measured . -o ";
  ASSERT_EQ(Run(command + "one.md").code, 0) << Run(command + "one.md").err;
  ASSERT_EQ(Run(command + "two.md").code, 0);
  const std::string text = Slurp(folder_ / "one.md");
  EXPECT_EQ(text, Slurp(folder_ / "two.md"));
  EXPECT_THAT(text, AllOf(HasSubstr("| measured.csv | h200, mi300x |"), HasSubstr("FNV-1a"),
                          Not(HasSubstr("other.csv")), Not(HasSubstr(folder_.string()))));
  EXPECT_EQ(Run("gemm accuracy --measured nowhere").code, 2);
}

TEST_F(Cli, CostEvaluateJsonHasTheContractsKeysAndCountsEveryRow) {
  const std::string file = Write("ops.csv",
                                 "device,op,shape,dtype,us,gbps,source\n"
                                 "H100,torch relu fwd,16384x4096,fp32,190,,s\n"
                                 "H100,torch relu fwd,16384x8192,fp32,370,,s\n"
                                 "H100,torch relu fwd,16384x1024,fp32,55,,s\n"
                                 "Blackwell,torch relu fwd,16384x1024,fp32,55,,s\n");
  const Outcome run = Run("cost evaluate --measured " + file + " --json");
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  ASSERT_EQ(json["groups"].size(), 1u);
  const auto& group = json["groups"][0];
  EXPECT_EQ(group["device"], "h100");
  EXPECT_EQ(group["op"], "relu fwd");
  EXPECT_EQ(group["rows"], 3);
  EXPECT_LT(group["median_abs_error"], 0.15);
  EXPECT_GE(group["p90_abs_error"], group["median_abs_error"]);
  EXPECT_EQ(group["spearman"], 1.0);
  EXPECT_EQ(json["apart"][0]["rows"], 1);
  EXPECT_EQ(json["apart"][0]["lines"], nlohmann::json::array({5}));
  const Outcome text = Run("cost evaluate --measured " + file);
  EXPECT_THAT(text.out, AllOf(HasSubstr("3 of 4 rows predicted, 1 apart"), HasSubstr("relu fwd"),
                              HasSubstr("device is not told beyond doubt")));
}

TEST_F(Cli, CostEvaluateRefusesWhatIsNoOperatorFile) {
  EXPECT_EQ(Run("cost evaluate --measured absent.csv").code, 2);
  const Outcome header =
      Run("cost evaluate --measured " + Write("shapes.csv", "name,layout,m,n,k\na,nt,1,2,3\n"));
  EXPECT_EQ(header.code, 2);
  EXPECT_THAT(header.err, AllOf(HasSubstr("shapes.csv:1:1"), HasSubstr("none of")));
  const std::string file = Write(
      "bytes.csv",
      "device,op,gpus,nodes,bytes,us,gbps,bandwidth_kind,source\nH100,all_reduce,8,1,4k,10,,,s\n");
  const Outcome cell = Run("cost evaluate --measured " + file);
  EXPECT_EQ(cell.code, 2);
  EXPECT_THAT(cell.err, AllOf(HasSubstr("bytes.csv:2:21"), HasSubstr("bytes")));
}

TEST_F(Cli, SidesBeyondAnyMemoryInAnOperatorFileAreNoCrash) {
  for (const char* side : {"99999999999999999999", "1e308", "9223372036854775807"}) {
    const std::string file = Write(
        "huge.csv", fmt::format("device,op,shape,dtype,us,gbps,source\nA100,gelu fwd,{},fp16,5,,x\n"
                                "A100,softmax,{}x{},fp16,5,,x\n",
                                side, side, side));
    EXPECT_EQ(Run("cost evaluate --json --measured " + file).code, 0) << side;
  }
}

TEST_F(Cli, NumbersAreDecimal) {
  for (const char* number : {"010", "0x10", "1.5", "''"}) {
    const Outcome select =
        Run(fmt::format("gemm select --device h100 --dtype bf16 -m {} -n 64 -k 64", number));
    EXPECT_EQ(select.code, 2) << number;
    EXPECT_THAT(select.err, HasSubstr("-m")) << number;
  }
}

TEST_F(Cli, BytesThatSteerATerminalAreNotPassedOn) {
  const std::string file = Write(
      "names.csv",
      "device,family,dtype,dtype_out,layout,m,n,k,batch,tile_m,tile_n,tile_k,mma_m,mma_n,mma_k,"
      "split_k,us,source,config\nh200,\033[31mX,bf16,bf16,nt,64,64,64,1,,,,,,,,5,s,c\n");
  const Outcome shown = Run("gemm evaluate --measured " + file);
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out + shown.err, Not(HasSubstr("\033")));
}

TEST_F(Cli, TheNextStepNamesTheDeviceFileThatWasGiven) {
  fs::copy_file(fs::path(GNOMON_SOURCE_DIR) / "devices/h200.toml", folder_ / "h200.toml");
  const Outcome select = Run("gemm select --device ./h200.toml --dtype bf16 -m 512 -n 512 -k 512");
  EXPECT_EQ(select.code, 0) << select.err;
  EXPECT_THAT(select.out, HasSubstr("explain --device ./h200.toml"));
}

TEST_F(Cli, ExplainRefusesAConfigThatCannotBeLaunched) {
  // Two asynchronous buffers of 256 x 128 and 128 x 256 values in bf16 are more than 160 KiB.
  const Outcome lds = Run(
      "gemm explain --device mi350x --dtype bf16 -m 128 -n 36864 -k 7168 --family triton --config "
      "128x256x128.w8.s2.k1.i16");
  EXPECT_EQ(lds.code, 2) << lds.out;
  const Outcome waves = Run(
      "gemm explain --device mi350x --dtype bf16 -m 2048 -n 1024 -k 4096 --family cdna --config "
      "128x128x64.mi16x16x32.w65536.pgr2.dtl1.sk1.str0.wgm4.nt0");
  EXPECT_EQ(waves.code, 2) << waves.out;
}

TEST_F(Cli, SelectKeepsToTheWorkspace) {
  const std::string command = "gemm select --dtype bf16 -m 256 -n 256 -k 16384 --top 40 --json ";
  for (const char* family : {"mi350x --family cdna", "mi350x --family triton",
                             "h200 --family triton", "h200 --family sm90", "b200 --family sm100"}) {
    const auto splits = [&](const std::string& workspace) {
      const Outcome run = Run(fmt::format("{} --device {} {}", command, family, workspace));
      EXPECT_EQ(run.code, 0) << run.err;
      int count = 0;
      const auto json = nlohmann::json::parse(run.out);
      for (const auto& pick : json["picks"]) {
        const std::string config = pick["config"].get<std::string>() + ".";
        const bool whole = config.find(".sk1.str0.") != std::string::npos ||
                           (config.find(".k1.") != std::string::npos &&
                            config.find(".stream.") == std::string::npos &&
                            config.find(".sk.") == std::string::npos);
        count += !whole;
      }
      return count;
    };
    EXPECT_GT(splits(""), 0) << family;
    EXPECT_GT(splits("--workspace 1G"), 0) << family;
    EXPECT_EQ(splits("--workspace 0"), 0) << family;
    EXPECT_EQ(splits("--workspace 3k"), 0) << family;
  }
  // Two parts of fp32 sums: 2 x 4 x 2048 x 256 bytes, 4 MiB.
  const std::string two =
      "gemm explain --device mi350x --family cdna --dtype bf16 -m 2048 -n 256 "
      "-k 8192 --config 128x128x64.mi16x16x32.w4.pgr2.dtl1.sk2.str0.wgm4.nt0 ";
  EXPECT_EQ(Run(two).code, 0);
  EXPECT_EQ(Run(two + "--workspace 4M").code, 0);
  EXPECT_EQ(Run(two + "--workspace 4096K").code, 0);
  const Outcome less = Run(two + "--workspace 4194303");
  EXPECT_EQ(less.code, 2);
  EXPECT_THAT(less.err, AllOf(HasSubstr("partial sums"), HasSubstr("workspace has")));
  const Outcome next =
      Run("gemm select --device h200 --dtype bf16 -m 64 -n 64 -k 64 --workspace 1k");
  EXPECT_THAT(next.out, HasSubstr("--workspace 1024 --config"));
  for (const char* junk : {"64Q", "-1", "\"\"", "1.5G", "99999999999999999999", "M", "0x10"}) {
    const Outcome run = Run(fmt::format(
        "gemm select --device h200 --dtype bf16 -m 64 -n 64 -k 64 --workspace {}", junk));
    EXPECT_EQ(run.code, 2) << junk;
    EXPECT_THAT(run.err, HasSubstr("--workspace")) << junk;
  }
}

TEST_F(Cli, EvaluateCountsWhatTheWorkspaceDoesNotHoldAsNotModelled) {
  const std::string file = Write(
      "split.csv",
      "device,family,dtype,dtype_out,layout,m,n,k,batch,tile_m,tile_n,tile_k,mma_m,mma_n,mma_k,"
      "split_k,us,source,config\n"
      "h200,triton,bf16,bf16,nt,256,512,8192,1,,,,,,,,20,s,64x64x64.w4.s4.k8\n"
      "h200,triton,bf16,bf16,nt,256,512,8192,1,,,,,,,,40,s,64x64x64.w4.s4.k1\n");
  const auto not_modelled = [&](const std::string& workspace) {
    const Outcome run = Run(fmt::format("gemm evaluate --json --measured {} {}", file, workspace));
    EXPECT_EQ(run.code, 0) << run.err;
    return nlohmann::json::parse(run.out)["not_modelled"].get<int>();
  };
  EXPECT_EQ(not_modelled(""), 0);
  EXPECT_EQ(not_modelled("--workspace 4M"), 0);
  EXPECT_EQ(not_modelled("--workspace 4095k"), 1);
  EXPECT_EQ(Run(fmt::format("gemm evaluate --workspace lots --measured {}", file)).code, 2);
}

TEST_F(Cli, RankTakesTheFlagsOfSelect) {
  const std::string names =
      Write("names.txt",
            "Cijk_Alik_Bljk_BBS_BH_UserArgs_MT128x128x64_MI16x16x1_SN_GSU4_ISA942_PGR2_WG32_8_1\n"
            "Cijk_Alik_Bljk_BBS_BH_UserArgs_MT128x128x64_MI16x16x1_SN_GSU1_ISA942_PGR2_WG32_8_1\n");
  const auto ranked = [&](const std::string& more) {
    const Outcome run = Run(fmt::format(
        "gemm rank --device mi300x -n 512 -k 8192 --json --kernels {} {}", names, more));
    EXPECT_EQ(run.code, 0) << more << ": " << run.err;
    return run.code == 0 ? nlohmann::json::parse(run.out) : nlohmann::json();
  };
  const auto us = [](const nlohmann::json& json) {
    return json["kernels"][0]["predicted_us"].get<double>();
  };
  const auto plain = ranked("-m 4096");
  EXPECT_EQ(plain["problem"]["dtype_out"], "bf16");
  const auto wide = ranked("-m 4096 --dtype-out fp32");
  EXPECT_EQ(wide["problem"]["dtype_out"], "fp32");
  EXPECT_GT(us(wide), us(plain));
  EXPECT_EQ(ranked("-m 4096 --lda 8193")["problem"]["lda"], 8193);
  EXPECT_GT(us(ranked("-m 4096 --lda 8193")), us(plain)) << "rows that start anywhere";
  EXPECT_GT(us(ranked("-m 4096 --partition cpx")), 4 * us(plain));
  EXPECT_GT(us(ranked("-m 4096 --units 20")), us(ranked("-m 4096 --units 200")));
  EXPECT_EQ(ranked("-m 4096 --units 20")["units"], 20);
  EXPECT_GT(us(ranked("--group 4000,1,1,1,93")), us(plain)) << "a tile a group";
  EXPECT_EQ(ranked("-m 4096 --workspace 0")["unable"].size(), 1u);
  const std::string tail = " -n 512 -k 8192 --kernels " + names;
  EXPECT_THAT(Run("gemm rank --device mi300x -m 4 --ldc 3" + tail).err, HasSubstr("ldc is 3"));
  EXPECT_THAT(Run("gemm rank --device mi300x -m 4 --partition cpz" + tail).err,
              HasSubstr("nearest is 'cpx'"));
  EXPECT_THAT(Run("gemm rank --device mi300x -m 4 --group 4" + tail).err,
              HasSubstr("one or the other"));
  EXPECT_THAT(Run("gemm rank --device mi300x" + tail).err, HasSubstr("-m: M is missing"));
}

// Shapes on which the times that decide and those that are explained differed in the last place.
TEST_F(Cli, TheListIsInTheOrderOfTheTimesShown) {
  for (const char* shape :
       {"h200 -m 1000 -n 4096 -k 8", "h100 -m 1000 -n 4096 -k 128", "h200 -m 257 -n 4096 -k 128",
        "h200 -m 1000 -n 257 -k 4096", "mi350x -m 1000 -n 4096 -k 128",
        "host --dtype fp32 -m 99 -n 9 -k 70"}) {
    const std::string dtype = std::string(shape).starts_with("host") ? "" : " --dtype bf16";
    const Outcome run =
        Run(fmt::format("gemm select --top 300 --json --device {}{}", shape, dtype));
    ASSERT_EQ(run.code, 0) << run.err;
    double before = 0;
    const auto json = nlohmann::json::parse(run.out);
    for (const auto& pick : json["picks"]) {
      EXPECT_GE(pick["predicted_us"].get<double>(), before) << shape << " " << pick["config"];
      before = pick["predicted_us"].get<double>();
    }
  }
}

TEST_F(Cli, ExplainRefusesKernelsThatACpuDoesNotHaveAndNamesTheNearest) {
  const auto refusal = [&](const std::string& config, const std::string& more = "") {
    const Outcome run =
        Run(fmt::format("gemm explain --device host-x86-64-avx2 --dtype fp32 -m 300 -n 200 -k 100 "
                        "--config {} {}",
                        config, more));
    EXPECT_EQ(run.code, 2) << config << run.out;
    return run.err;
  };
  // 16 registers: 6 x 2 sums, 2 of B and a broadcast.
  EXPECT_THAT(refusal("tile.7x2.kc0.mc0.nc0.pa0.pb1.ln1.sM.t1"),
              HasSubstr("no register tile of 7x2; nearest: 6x2"));
  EXPECT_THAT(refusal("tile.999x999.kc0.mc0.nc0.pa0.pb1.ln1.sM.t1"), HasSubstr("nearest: 1x7"));
  EXPECT_THAT(refusal("tile.6x2.kc0.mc0.nc0.pa0.pb0.ln1.sM.t1"), HasSubstr("pb1"));
  EXPECT_THAT(refusal("tile.6x2.kc0.mc0.nc0.pa0.pb1.ln1.sM.t9999"), HasSubstr("nearest: t"));
  EXPECT_THAT(refusal("dot.9x9.kc0.mc0.nc0.pa0.pb0.ln1.sM.t1"), HasSubstr("block of dot products"));
  EXPECT_THAT(refusal("dot.2x4.kc0.mc0.nc0.pa0.pb0.ln1.sM.t1", "--layout nn"),
              HasSubstr("contiguous in K"));
  EXPECT_THAT(refusal("amx.2x2.kc0.mc0.nc0.pa0.pb1.ln1.sM.t1"), HasSubstr("AMX"));
}

TEST_F(Cli, ListsWithHolesAndEmptyValuesAreRefused) {
  const std::string sides = "gemm select --device h200 --dtype bf16 -n 64 -k 64 ";
  for (const auto& [group, said] : {std::pair{"''", "empty"},
                                    {"1,,2", "'' in place 2"},
                                    {"1,", "'' in place 2"},
                                    {",", "'' in place 1"},
                                    {"1,a", "'a' in place 2"},
                                    {"-1,2", "'-1' in place 1"},
                                    {"1.5", "'1.5'"},
                                    {"' 1'", "' 1'"},
                                    {"0,0", "no group has a row"},
                                    {"99999999999999999999", "'99999999999999999999'"},
                                    {"9223372036854775807,1", "too many rows"}}) {
    const Outcome run =
        Run(fmt::format("{} --group{}{}", sides, std::string(group) == "''" ? " " : "=", group));
    EXPECT_EQ(run.code, 2) << group;
    EXPECT_THAT(run.err, AllOf(HasSubstr("--group"), HasSubstr(said))) << group;
  }
  for (const char* option : {"-m", "--batch", "--lda", "--units", "--top", "--partition",
                             "--family", "--dtype-out", "--workspace", "--layout"}) {
    const std::string m = std::string(option) == "-m" ? "" : " -m 64";
    const Outcome run = Run(fmt::format("{}{} {} ''", sides, m, option));
    EXPECT_EQ(run.code, 2) << option;
  }
  for (const char* number : {"9223372036854775808", "-9223372036854775809"})
    EXPECT_THAT(Run(fmt::format("{} -m {}", sides, number)).err, HasSubstr("does not fit 64 bits"));
}

TEST_F(Cli, CostEvaluateOfOneDeviceLeavesTheOthersOut) {
  const std::string file =
      Write("two.csv",
            "device,op,gpus,nodes,bytes,us,gbps,bandwidth_kind,source\n"
            "H100,all_reduce,8,1,4096,16,,,s\nB200,all_reduce,8,1,4096,28,,,s\n");
  const Outcome one = Run("cost evaluate --device b200 --json --rows --measured " + file);
  ASSERT_EQ(one.code, 0) << one.err;
  const auto json = nlohmann::json::parse(one.out);
  EXPECT_EQ(json["other_device"], 1);
  ASSERT_EQ(json["timings"].size(), 1u);
  EXPECT_EQ(json["timings"][0]["line"], 3);
  EXPECT_EQ(Run("cost evaluate --device mi300x --measured " + file).code, 2);
  EXPECT_THAT(Run("cost evaluate --device b20 --measured " + file).err,
              HasSubstr("nearest is 'b200'"));
}

TEST_F(Cli, TheMainJobRunsOnTheRealCriteoSample) {
  const fs::path sample = fs::path(GNOMON_SOURCE_DIR) / "../shared/data/criteo_sample.tsv";
  if (!fs::exists(sample)) GTEST_SKIP() << "no Criteo sample at " << sample;
  if (Run("codesign dlrm_kaggle --from h100 --to host --run --data absent.tsv").code == 3)
    GTEST_SKIP() << "the trainer is not built here";
  const Outcome run =
      Run(fmt::format("codesign dlrm_kaggle --from h100 --to host --run --data '{}' --batch 32 "
                      "--max-table-rows 1000 "
                      "--budget 1 --seeds 1 --report report.html --json",
                      sample.string()));
  ASSERT_THAT(run.code, ::testing::AnyOf(0, 1)) << run.err;  // 1: no faster on a busy machine
  const auto json = nlohmann::json::parse(run.out);
  for (const char* arm : {"direct_port", "plan"}) {
    EXPECT_GT(json[arm]["predicted_us"], 0) << arm;
    EXPECT_GT(json[arm]["measured_us"], 0) << arm;
    EXPECT_GT(json["normalized_entropy"][arm], 0) << arm;
  }
  EXPECT_GT(json["speedup_measured"], 0);
  EXPECT_THAT(Slurp(folder_ / "report.html"),
              AllOf(HasSubstr("<!doctype html>"), HasSubstr("measured")));
}

}  // namespace
