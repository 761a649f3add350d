#include "tests/tidy/source_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace ddproof::tidy {
namespace {

bool is_identifier(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Blanks one file in a single pass. Knows just enough of C++'s lexical rules.
class Blanker {
 public:
  explicit Blanker(std::string_view text) : text_(text) {}

  std::string run() {
    while (at_ < text_.size()) step();
    return std::move(out_);
  }

 private:
  void step() {
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with("//")) return blank_line();
    if (rest.starts_with("/*")) return blank_through("*/", 2);
    if (rest[0] == '#' && only_spaces_before()) return blank_line();
    if (rest.starts_with("R\"")) {
      const auto open = rest.find('(');
      return blank_through(")" + std::string(rest.substr(2, open - 2)) + "\"", open);
    }
    if (rest[0] == '"') return blank_literal('"');
    // A digit separator (1'000) is no character literal.
    if (rest[0] == '\'' && (at_ == 0 || !is_identifier(text_[at_ - 1]))) return blank_literal('\'');
    keep();
  }

  void keep() { out_ += text_[at_++]; }

  void blank() {
    out_ += text_[at_] == '\n' ? '\n' : ' ';
    ++at_;
  }

  void blank_line() {
    while (at_ < text_.size() && text_[at_] != '\n') {
      // A backslash at the end continues the line.
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) blank();
      blank();
    }
  }

  void blank_through(const std::string& end, std::size_t from) {
    const auto found = text_.find(end, at_ + from);
    const auto stop = found == std::string_view::npos ? text_.size() : found + end.size();
    while (at_ < stop) blank();
  }

  void blank_literal(char quote) {
    keep();
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) blank();
      blank();
    }
    if (at_ < text_.size()) keep();
  }

  bool only_spaces_before() const {
    auto i = at_;
    while (i > 0 && (text_[i - 1] == ' ' || text_[i - 1] == '\t')) --i;
    return i == 0 || text_[i - 1] == '\n';
  }

  std::string_view text_;
  std::string out_;
  std::size_t at_ = 0;
};

bool is_of_interest(const std::string& path) {
  return path.ends_with(".h") || path.ends_with(".cc") || path.ends_with(".cu") ||
         path.ends_with("CMakeLists.txt") || path.ends_with("README.md");
}

}  // namespace

std::string Finding::describe() const {
  return path + (line > 0 ? ":" + std::to_string(line) : "") + ": " + what;
}

std::string describe(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings) text += finding.describe() + "\n";
  return text;
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string code_only(std::string_view text) { return Blanker(text).run(); }

bool is_header(const SourceFile& file) { return file.path.ends_with(".h"); }

bool is_cpp(const SourceFile& file) {
  return is_header(file) || file.path.ends_with(".cc") || file.path.ends_with(".cu");
}

bool is_benchmark(const SourceFile& file) { return file.path.ends_with("_benchmark.cc"); }

bool is_under(std::string_view path, std::string_view folder) {
  return path == folder ||
         (path.starts_with(folder) && path.size() > folder.size() && path[folder.size()] == '/');
}

std::vector<SourceFile> read_tree(const std::string& root) {
  namespace fs = std::filesystem;
  std::vector<SourceFile> files;
  const auto add = [&](const fs::path& path) {
    const std::string name = fs::relative(path, root).generic_string();
    if (!is_of_interest(name)) return;
    std::ifstream in(path, std::ios::binary);
    files.push_back({name, {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()}});
  };
  for (const char* top :
       {"backends", "ci", "cli", "properties", "reference", "simulator", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(root) / top)) {
      if (entry.is_regular_file()) add(entry.path());
    }
  }
  for (const auto& entry : fs::directory_iterator(root)) {
    if (entry.is_regular_file()) add(entry.path());
  }
  std::ranges::sort(files, {}, &SourceFile::path);
  return files;
}

}  // namespace ddproof::tidy
