// torchrun's error file: what we write, and what others wrote.
#include "reference/launch/error_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <span>

#include "tests/support/map_environment.h"
#include "tests/support/memory_files.h"
#include "tests/support/stepped_runtime.h"

namespace ddproof {
namespace {

class WorkerRuntime final : public SteppedRuntime {
 public:
  explicit WorkerRuntime(MapEnvironment::Variables variables) : variables_(std::move(variables)) {}
  FileSystem& files() override { return disk; }
  const Environment& environment() const override { return variables_; }
  Duration wall_clock() const override { return std::chrono::milliseconds(1'796'000'000'999); }
  MemoryFiles disk;

 private:
  MapEnvironment variables_;
};

const MapEnvironment::Variables kAsked = {{kErrorFileVariable, "error.json"}};

std::optional<std::string> read_text(const std::string& text) {
  MemoryFiles files;
  const auto bytes = std::as_bytes(std::span(text));
  files.put("error.json", {bytes.begin(), bytes.end()});
  return read_error_file(files, "error.json");
}

TEST(ErrorFile, HasTheFormOfTorchruns) {
  WorkerRuntime runtime(kAsked);
  write_error_file(runtime, "ddproof train: \"a\" is bad");
  const auto& bytes = runtime.disk.bytes("error.json");
  const auto content =
      nlohmann::json::parse(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  EXPECT_EQ(content, nlohmann::json::parse(R"({"message": {
      "message": "ddproof train: \"a\" is bad",
      "extraInfo": {"py_callstack": "ddproof train: \"a\" is bad", "timestamp": "1796000000"}}})"));
  EXPECT_EQ(read_error_file(runtime.disk, "error.json"), "ddproof train: \"a\" is bad");
}

TEST(ErrorFile, IsWrittenOnlyWhereSomebodyAskedForIt) {
  WorkerRuntime without({});
  write_error_file(without, "x");
  EXPECT_TRUE(without.disk.paths().empty());
}

TEST(ErrorFile, ThatCannotBeWrittenIsNoErrorOfItsOwn) {
  WorkerRuntime runtime(kAsked);
  runtime.disk.die_after(0);
  write_error_file(runtime, "x");
  EXPECT_EQ(read_error_file(runtime.disk, "error.json"), std::nullopt);
}

TEST(ErrorFile, OfOthersIsReadInOneLine) {
  EXPECT_EQ(read_text(R"({"message": {"message": "ValueError: a\nb\u001b[0m", "extraInfo": {}}})"),
            "ValueError: a b [0m");
  EXPECT_EQ(read_text(R"({"message": "Signal 9 (SIGKILL) received"})"),
            "Signal 9 (SIGKILL) received");
  const std::string kLong(5000, 'x');
  EXPECT_EQ(read_text(R"({"message": ")" + kLong + "\"}"), kLong.substr(0, 1000) + "...");
}

TEST(ErrorFile, WhatIsNoneIsNotRead) {
  MemoryFiles files;
  EXPECT_EQ(read_error_file(files, "missing"), std::nullopt);
  for (const char* text : {"", "{", "[]", "{}", "3", R"({"message": 3})", R"({"message": {}})",
                           R"({"message": {"message": []}})", "\xff\xfe"}) {
    EXPECT_EQ(read_text(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace ddproof
