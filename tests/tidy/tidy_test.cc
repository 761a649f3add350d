// The tree itself against the rules of this folder. What each rule finds is shown by
// tidy_rules_test.cc on planted faults.
#include <gtest/gtest.h>

#include "tests/tidy/banned_rules.h"
#include "tests/tidy/include_rules.h"
#include "tests/tidy/shape_rules.h"

namespace ddproof::tidy {
namespace {

class Tidy : public testing::Test {
 protected:
  static void SetUpTestSuite() { tree_ = new std::vector(read_tree(DDPROOF_SOURCE_DIR)); }
  static void TearDownTestSuite() { delete tree_; }
  static const std::vector<SourceFile>& tree() { return *tree_; }

  void expect_none(Findings (*rule)(const SourceFile&)) {
    Findings all;
    for (const SourceFile& file : tree()) {
      const Findings found = rule(file);
      all.insert(all.end(), found.begin(), found.end());
    }
    EXPECT_TRUE(all.empty()) << describe(all);
  }

 private:
  static inline const std::vector<SourceFile>* tree_ = nullptr;
};

TEST_F(Tidy, TheTreeIsFound) { EXPECT_GT(tree().size(), 50u); }
TEST_F(Tidy, ModulesIncludeOnlyWhatTheyMay) { expect_none(project_includes); }
TEST_F(Tidy, ThirdPartiesStayInTheirFolders) { expect_none(external_includes); }
TEST_F(Tidy, TheOutsideWorldIsReachedThroughTheRuntime) { expect_none(banned_calls); }
TEST_F(Tidy, OnlyTheRegistryKnowsWhichBackendsAreBuilt) { expect_none(backend_switches); }
TEST_F(Tidy, FilesAreShort) { expect_none(file_length); }
TEST_F(Tidy, FunctionsAreShort) { expect_none(function_lengths); }
TEST_F(Tidy, LinesFitTheScreen) { expect_none(line_lengths); }
TEST_F(Tidy, HeadersOpenWithAComment) { expect_none(header_opening); }
TEST_F(Tidy, NothingIsLeftOver) { expect_none(leftovers); }

TEST_F(Tidy, EverySourceIsBuilt) {
  const Findings findings = unbuilt_sources(tree());
  EXPECT_TRUE(findings.empty()) << describe(findings);
}

TEST_F(Tidy, TheRootReadmeIsShort) {
  const Findings findings = root_readme(tree());
  EXPECT_TRUE(findings.empty()) << describe(findings);
}

TEST_F(Tidy, EveryFolderSaysWhatItIs) {
  const Findings findings = folder_readmes(tree());
  EXPECT_TRUE(findings.empty()) << describe(findings);
}

}  // namespace
}  // namespace ddproof::tidy
