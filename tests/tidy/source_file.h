// A file of the tree as the tidy rules see it. Rules are functions of SourceFiles, so that each can
// be tried on a planted fault (tidy_rules_test.cc) as well as on the tree (tidy_test.cc).
// Plain values; no state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddproof::tidy {

struct SourceFile {
  std::string path;  // from the repository root, with forward slashes
  std::string text;
};

struct Finding {
  std::string path;
  int line = 0;  // 0: the whole file
  std::string what;

  // "reference/data/x.cc:6: reference may not include backends/registry/registry.h"
  std::string describe() const;
};

using Findings = std::vector<Finding>;

// The findings one per line; empty when there are none.
std::string describe(const Findings& findings);

std::vector<std::string> split_lines(std::string_view text);

// The text with comments, preprocessor lines and the contents of string and character literals
// replaced by spaces; line breaks stay, so line numbers do too.
std::string code_only(std::string_view text);

bool is_header(const SourceFile& file);
bool is_cpp(const SourceFile& file);
bool is_benchmark(const SourceFile& file);

// True when `path` is `folder` or lies in it.
bool is_under(std::string_view path, std::string_view folder);

// The files of the repository that the rules look at, sorted by path: C++, CMakeLists.txt,
// README.md.
std::vector<SourceFile> read_tree(const std::string& root);

}  // namespace ddproof::tidy
