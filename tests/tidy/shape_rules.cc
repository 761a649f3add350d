#include "tests/tidy/shape_rules.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace ddproof::tidy {
namespace {

constexpr std::array<std::string_view, 4> kHeadings = {"## What it is", "## What it may include",
                                                       "## How to test it", "## How to add one"};

constexpr std::array<std::string_view, 7> kTopFolders = {
    "backends", "ci", "cli", "properties", "reference", "simulator", "tests"};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  return text;
}

int characters(std::string_view line) {
  // Every byte but the continuation bytes of UTF-8.
  return static_cast<int>(std::ranges::count_if(
      line, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// "template <class T = float>" in front of a function is no part of what follows.
std::string_view without_template_head(std::string_view intro) {
  if (!intro.starts_with("template")) return intro;
  int open = 0;
  for (std::size_t i = 0; i < intro.size(); ++i) {
    if (intro[i] == '<') ++open;
    if (intro[i] == '>' && --open == 0) return trimmed(intro.substr(i + 1));
  }
  return intro;
}

// True when the text between the last ';', '{' or '}' and a '{' introduces a function.
bool introduces_function(std::string_view intro) {
  intro = without_template_head(trimmed(intro));
  if (intro.find('(') == std::string_view::npos) return false;
  for (std::string_view word : {"namespace", "class", "struct", "enum", "union", "extern"}) {
    if (intro.starts_with(word)) return false;
  }
  // "constexpr Table kTable = f({" is a variable; "operator=(...)" and default arguments are not.
  const auto parenthesis = intro.find('(');
  const auto equals = intro.find('=');
  return equals == std::string_view::npos || equals > parenthesis ||
         intro.find("operator") < equals;
}

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Walks the braces of one file.
class FunctionMeter {
 public:
  explicit FunctionMeter(const SourceFile& file) : file_(file), code_(code_only(file.text)) {}

  Findings run() {
    for (std::size_t i = 0; i < code_.size(); ++i) step(i);
    return std::move(findings_);
  }

 private:
  void step(std::size_t i) {
    const char c = code_[i];
    if (c == '\n') ++line_;
    // A value in braces, as in "C() : a_{1} {", is a part of what it stands in.
    const bool was_in_value = value_depth_ > 0;
    if (c == '{') open(i);
    if (c == '}') close();
    const bool in_value = was_in_value || value_depth_ > 0;
    if (!in_function_ && !in_value && (c == ';' || c == '{' || c == '}')) intro_begin_ = i + 1;
  }

  void open(std::size_t i) {
    ++depth_;
    if (in_function_) return;
    if (value_depth_ > 0 || (i > 0 && is_name(code_[i - 1]))) {
      ++value_depth_;
      return;
    }
    const std::string_view intro = std::string_view(code_).substr(intro_begin_, i - intro_begin_);
    if (!introduces_function(intro)) return;
    in_function_ = true;
    function_depth_ = depth_;
    first_line_ = line_;
  }

  void close() {
    if (in_function_ && depth_ == function_depth_) {
      in_function_ = false;
      const int lines = line_ - first_line_ + 1;
      if (lines > kFunctionLinesMax) {
        findings_.push_back({file_.path, first_line_,
                             "function of " + std::to_string(lines) + " lines, at most " +
                                 std::to_string(kFunctionLinesMax) + "; split it"});
      }
    } else if (value_depth_ > 0) {
      --value_depth_;
    }
    --depth_;
  }

  const SourceFile& file_;
  std::string code_;
  Findings findings_;
  std::size_t intro_begin_ = 0;
  bool in_function_ = false;
  int depth_ = 0;
  int function_depth_ = 0;
  int value_depth_ = 0;  // braces of values around here, outside functions
  int line_ = 1;
  int first_line_ = 0;
};

// True when `name` stands in `text` as a whole file name.
bool names_file(std::string_view text, std::string_view name) {
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '/' || c == '.';
  };
  for (auto at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const auto end = at + name.size();
    if ((at == 0 || !is_part(text[at - 1])) && (end == text.size() || !is_part(text[end]))) {
      return true;
    }
  }
  return false;
}

bool is_built(const std::string& path, const std::vector<SourceFile>& tree) {
  return std::ranges::any_of(tree, [&](const SourceFile& file) {
    constexpr std::string_view kLists = "CMakeLists.txt";
    if (!file.path.ends_with(kLists)) return false;
    const std::string folder = file.path.substr(0, file.path.size() - kLists.size());
    return path.starts_with(folder) && names_file(file.text, path.substr(folder.size()));
  });
}

// Null when there is none.
const SourceFile* find_file(const std::vector<SourceFile>& tree, const std::string& path) {
  const auto it = std::ranges::find(tree, path, &SourceFile::path);
  return it == tree.end() ? nullptr : &*it;
}

void check_headings(const SourceFile& readme, Findings& findings) {
  const auto lines = split_lines(readme.text);
  for (std::string_view heading : kHeadings) {
    if (std::ranges::find(lines, heading) == lines.end()) {
      findings.push_back({readme.path, 0, "the heading '" + std::string(heading) + "' is missing"});
    }
  }
}

}  // namespace

Findings file_length(const SourceFile& file) {
  const auto lines = std::ranges::count(file.text, '\n');
  if (lines <= kFileLinesMax) return {};
  return {{file.path, 0,
           std::to_string(lines) + " lines, at most " + std::to_string(kFileLinesMax) +
               "; split it by concept"}};
}

Findings function_lengths(const SourceFile& file) {
  if (!is_cpp(file)) return {};
  return FunctionMeter(file).run();
}

Findings line_lengths(const SourceFile& file) {
  Findings findings;
  if (!is_cpp(file)) return findings;
  const auto lines = split_lines(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (characters(lines[i]) <= kColumnsMax) continue;
    findings.push_back({file.path, static_cast<int>(i) + 1,
                        std::to_string(characters(lines[i])) + " columns, at most " +
                            std::to_string(kColumnsMax) + "; run clang-format"});
  }
  return findings;
}

Findings header_opening(const SourceFile& file) {
  Findings findings;
  if (!is_header(file)) return findings;
  if (!file.text.starts_with("//")) {
    findings.push_back({file.path, 1, "a header opens with a comment: what, rules, threads"});
  }
  if (file.text.find("\n#pragma once\n") == std::string::npos) {
    findings.push_back({file.path, 1, "#pragma once is missing"});
  }
  return findings;
}

Findings leftovers(const SourceFile& file) {
  Findings findings;
  const auto lines = split_lines(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    // Spelt in two parts, so that this file is clean itself.
    for (std::string_view mark : {"TO"
                                  "DO",
                                  "FIX"
                                  "ME",
                                  "XX"
                                  "X:",
                                  "HA"
                                  "CK:"}) {
      if (lines[i].find(mark) == std::string::npos) continue;
      findings.push_back({file.path, static_cast<int>(i) + 1,
                          "leftover '" + std::string(mark) + "'; do it, or file an issue"});
    }
  }
  return findings;
}

Findings unbuilt_sources(const std::vector<SourceFile>& tree) {
  Findings findings;
  for (const SourceFile& file : tree) {
    if (!is_cpp(file) || is_header(file) || is_built(file.path, tree)) continue;
    findings.push_back({file.path, 0, "not named in any CMakeLists.txt, so it never runs"});
  }
  return findings;
}

Findings root_readme(const std::vector<SourceFile>& tree) {
  const SourceFile* readme = find_file(tree, "README.md");
  if (readme == nullptr) return {{"README.md", 0, "is missing"}};
  if (std::ranges::count(readme->text, '\n') <= kRootReadmeLinesMax) return {};
  return {{"README.md", 0, "more than " + std::to_string(kRootReadmeLinesMax) + " lines"}};
}

Findings folder_readmes(const std::vector<SourceFile>& tree) {
  Findings findings;
  for (std::string_view folder : kTopFolders) {
    const std::string path = std::string(folder) + "/README.md";
    const SourceFile* readme = find_file(tree, path);
    if (readme == nullptr) {
      findings.push_back({path, 0, "is missing"});
    } else {
      check_headings(*readme, findings);
    }
  }
  return findings;
}

}  // namespace ddproof::tidy
