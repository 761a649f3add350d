// Each tidy rule on a planted fault, with its full text, and on its nearest innocent neighbour.
#include <gtest/gtest.h>

#include "tests/tidy/banned_rules.h"
#include "tests/tidy/include_rules.h"
#include "tests/tidy/shape_rules.h"

namespace ddproof::tidy {
namespace {

std::string lines_of(int count, const std::string& line) {
  std::string text;
  for (int i = 0; i < count; ++i) text += line + "\n";
  return text;
}

TEST(IncludeRules, FindAModuleThatReachesTooFar) {
  EXPECT_EQ(describe(project_includes(
                {"reference/data/x.cc", "\n#include \"backends/registry/registry.h\"\n"})),
            "reference/data/x.cc:2: reference may not include backends/registry/registry.h\n");
}

TEST(IncludeRules, FindAnIncludeThatIsNotFromTheRoot) {
  EXPECT_EQ(describe(project_includes({"simulator/x.cc", "#include \"y.h\"\n"})),
            "simulator/x.cc:1: \"y.h\" is not a path from the repository root\n");
}

TEST(IncludeRules, FindAFolderThatNoRowCovers) {
  EXPECT_EQ(describe(project_includes({"util/x.cc", ""})),
            "util/x.cc: no row of the include table covers this folder\n");
}

TEST(IncludeRules, LetTheLongestRowDecide) {
  const std::string store = "#include \"backends/store/tcp_store.h\"\n";
  EXPECT_EQ(describe(project_includes({"reference/launch/x.cc", store})), "");
  EXPECT_NE(describe(project_includes({"reference/train/x.cc", store})), "");
}

TEST(IncludeRules, LetBenchmarksUseWhatProgramsMay) {
  const std::string text = "#include \"backends/registry/registry.h\"\n";
  EXPECT_EQ(describe(project_includes({"simulator/x_benchmark.cc", text})), "");
  EXPECT_NE(describe(project_includes({"simulator/x.cc", text})), "");
}

TEST(IncludeRules, FindAThirdPartyOutsideItsFolder) {
  EXPECT_EQ(describe(external_includes({"reference/ddp/x.cc", "#include <gloo/context.h>\n"})),
            "reference/ddp/x.cc:1: <gloo/context.h> is for backends/gloo backends/sim "
            "tests/unit/abortable_transport_test.cc tests/unit/gloo_process_group_test.cc "
            "tests/unit/observed_device.h tests/unit/sim_transport_difference_test.cc "
            "tests/unit/sim_transport_world.h only\n");
  EXPECT_EQ(describe(external_includes({"backends/sim/x.cc", "#include <gloo/context.h>\n"})), "");
}

TEST(IncludeRules, FindAnUnknownThirdParty) {
  EXPECT_EQ(
      describe(external_includes({"reference/data/x.cc", "#include <jpeglib.h>\n"})),
      "reference/data/x.cc:1: <jpeglib.h> is not in the table of tests/tidy/include_rules.cc\n");
  EXPECT_EQ(describe(external_includes({"reference/data/x.cc", "#include <vector>\n"})), "");
}

TEST(BannedRules, FindAClock) {
  EXPECT_EQ(describe(banned_calls(
                {"reference/train/x.cc", "\nauto t = std::chrono::steady_clock::now();\n"})),
            "reference/train/x.cc:2: 'steady_clock' is banned; take Runtime::now()\n");
}

TEST(BannedRules, FindEachOfTheOthers) {
  for (const char* line :
       {"getenv(\"RANK\")", "std::thread t;", "std::mutex m;", "std::ifstream in;",
        "int f = ::open(path, 0);", "std::this_thread::sleep_for(x);", "std::random_device d;",
        "std::uniform_int_distribution<int> d;", "thread_local int x;"}) {
    EXPECT_EQ(banned_calls({"reference/train/x.cc", line}).size(), 1u) << line;
  }
}

TEST(BannedRules, LeaveTheRuntimeAlone) {
  EXPECT_EQ(describe(banned_calls({"backends/local/os_runtime.cc", "std::thread t;\n"})), "");
}

TEST(BannedRules, LeaveOurOwnNamesAlone) {
  EXPECT_EQ(describe(banned_calls({"reference/train/x.cc",
                                   "runtime.sleep_for(d); files.open(path); my_std::threads t;"
                                   " Environment environment;\n"})),
            "");
}

TEST(BannedRules, LeaveCommentsAndStringsAlone) {
  EXPECT_EQ(
      describe(banned_calls({"reference/train/x.cc",
                             "// std::thread\n/* std::mutex */ auto s = \"getenv\";\n"
                             "auto r = R\"(std::thread)\"; char c = '\"'; int i = 1'000;\n"})),
      "");
}

TEST(BannedRules, FindAnUnorderedMapInTheSimulatorOnly) {
  EXPECT_EQ(banned_calls({"simulator/x.h", "std::unordered_map<int, int> m;"}).size(), 1u);
  EXPECT_EQ(banned_calls({"reference/data/x.h", "std::unordered_map<int, int> m;"}).size(), 0u);
}

TEST(BannedRules, FindAnExpectationInAPropertyLibrary) {
  EXPECT_EQ(banned_calls({"properties/x.cc", "EXPECT_EQ(1, 2);"}).size(), 1u);
  EXPECT_EQ(banned_calls({"tests/property/x.cc", "EXPECT_EQ(1, 2);"}).size(), 0u);
}

TEST(BannedRules, FindABackendSwitchOutsideTheRegistry) {
  const std::string text = "\n#ifdef DDPROOF_WITH_GLOO\n";
  EXPECT_EQ(describe(backend_switches({"cli/x.cc", text})),
            "cli/x.cc:2: only backends/registry may ask which backends are built\n");
  EXPECT_EQ(describe(backend_switches({"backends/registry/registry.cc", text})), "");
}

TEST(ShapeRules, FindALongFile) {
  EXPECT_EQ(describe(file_length({"cli/x.cc", lines_of(500, "")})), "");
  EXPECT_EQ(describe(file_length({"cli/x.cc", lines_of(501, "")})),
            "cli/x.cc: 501 lines, at most 500; split it by concept\n");
}

TEST(ShapeRules, FindALongFunction) {
  const auto function = [](int body) {
    return "\nint f(int a = 1) {\n" + lines_of(body, "  {}") + "}\n";
  };
  EXPECT_EQ(describe(function_lengths({"cli/x.cc", function(68)})), "");
  EXPECT_EQ(describe(function_lengths({"cli/x.cc", function(69)})),
            "cli/x.cc:2: function of 71 lines, at most 70; split it\n");
}

TEST(ShapeRules, FindALongFunctionInAClassInANamespace) {
  EXPECT_EQ(
      function_lengths({"cli/x.cc", "namespace a {\nclass B final {\n void f() const override {\n" +
                                        lines_of(70, "x();") + "}\n};\n}\n"})
          .size(),
      1u);
}

TEST(ShapeRules, FindALongConstructorBehindItsInitialisers) {
  EXPECT_EQ(function_lengths({"cli/x.cc", "B::B() : a{1}, b{2} {\n" + lines_of(70, "x();") + "}\n"})
                .size(),
            1u);
}

TEST(ShapeRules, FindALongTemplate) {
  EXPECT_EQ(function_lengths({"cli/x.cc", "template <class T = int>\nvoid f(T t) {\n" +
                                              lines_of(70, "x();") + "}\n"})
                .size(),
            1u);
}

TEST(ShapeRules, EndAFunctionBeforeTheNext) {
  EXPECT_EQ(describe(function_lengths(
                {"cli/x.cc",
                 "A a(int b = 1) {\n  return [=](C& c) {\n    try {\n    } catch (D&) {\n"
                 "    }\n  };\n}\n" +
                     lines_of(90, "void f() { g(h{1}, [] { i(); }, 2); }")})),
            "");
}

TEST(ShapeRules, LeaveLongClassesAndTablesAlone) {
  EXPECT_EQ(describe(function_lengths(
                {"cli/x.cc", "class A : public B<int> {\n" +
                                 lines_of(90, " void f(); int g() { return 1; }") + "};\n"})),
            "");
  EXPECT_EQ(describe(function_lengths(
                {"cli/x.cc", "const Table kTable = {\n" + lines_of(90, "{f(1), 2},") + "};\n"})),
            "");
}

TEST(ShapeRules, FindALongLineInCharacters) {
  std::string wide;
  for (int i = 0; i < 100; ++i) wide += "\xC3\xA9";
  EXPECT_EQ(describe(line_lengths({"cli/x.cc", wide + "\n"})), "");
  EXPECT_EQ(describe(line_lengths({"cli/x.cc", wide + "x\n"})),
            "cli/x.cc:1: 101 columns, at most 100; run clang-format\n");
}

TEST(ShapeRules, FindAHeaderWithoutOpening) {
  EXPECT_EQ(header_opening({"cli/x.h", "#include <vector>\n"}).size(), 2u);
  EXPECT_EQ(header_opening({"cli/x.h", "// What.\n#pragma once\n"}).size(), 0u);
}

TEST(ShapeRules, FindLeftovers) {
  EXPECT_EQ(describe(leftovers({"cli/x.cc",
                                "\n// TO"
                                "DO: later\n"})),
            "cli/x.cc:2: leftover 'TO"
            "DO'; do it, or file an issue\n");
}

TEST(ShapeRules, FindASourceThatNothingBuilds) {
  EXPECT_EQ(describe(unbuilt_sources({{"tests/unit/CMakeLists.txt", "ddproof_test(SRCS a_test.cc)"},
                                      {"tests/unit/a_test.cc", ""},
                                      {"tests/unit/test.cc", ""}})),
            "tests/unit/test.cc: not named in any CMakeLists.txt, so it never runs\n");
}

TEST(ShapeRules, FindALongRootReadme) {
  EXPECT_EQ(describe(root_readme({{"README.md", lines_of(120, "x")}})), "");
  EXPECT_EQ(describe(root_readme({{"README.md", lines_of(121, "x")}})),
            "README.md: more than 120 lines\n");
  EXPECT_EQ(describe(root_readme({})), "README.md: is missing\n");
}

TEST(ShapeRules, FindAFolderThatDoesNotSayWhatItIs) {
  const std::string whole =
      "## What it is\n## What it may include\n## How to test it\n## How to add one\n";
  std::vector<SourceFile> tree;
  for (const char* folder :
       {"backends", "ci", "cli", "properties", "reference", "simulator", "tests"}) {
    tree.push_back({std::string(folder) + "/README.md", whole});
  }
  EXPECT_EQ(describe(folder_readmes(tree)), "");
  tree[0].text = "## What it is\n## What it may include\n## How to add one\n";
  tree.pop_back();
  EXPECT_EQ(describe(folder_readmes(tree)),
            "backends/README.md: the heading '## How to test it' is missing\n"
            "tests/README.md: is missing\n");
}

}  // namespace
}  // namespace ddproof::tidy
