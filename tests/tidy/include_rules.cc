#include "tests/tidy/include_rules.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

namespace ddproof::tidy {
namespace {

// `from` may include files under `to`, besides its own. The longest matching `from` decides.
struct Row {
  std::string_view from;
  std::vector<std::string_view> to;
};

const std::vector<Row>& table() {
  static const std::vector<Row> rows = {
      {"backends/api", {}},
      {"backends/local", {"backends/api"}},
      {"backends/checked", {"backends/api"}},
      {"backends/recorder", {"backends/api"}},
      {"backends/store", {"backends/api"}},
      {"backends/membership", {"backends/api"}},
      {"backends/gloo", {"backends/api", "backends/membership"}},
      {"backends/nccl", {"backends/api", "backends/membership"}},
      {"backends/nccl/standin", {"backends/api", "simulator"}},
      // The collectives over a connected Gloo context are one piece of code for both.
      {"backends/sim",
       {"backends/api", "simulator", "backends/gloo/gloo_connection.h",
        "backends/gloo/gloo_process_group.h", "backends/gloo/operations.h",
        "backends/gloo/payload.h"}},
      {"backends/registry", {"backends"}},
      {"simulator", {}},
      {"reference", {"backends/api"}},
      // Kernels run on the CPU stand-in as host twins.
      {"reference/compute/cuda",
       {"backends/api", "reference/compute", "backends/nccl/standin/host_twin.h"}},
      {"reference/launch", {"backends/api", "backends/store", "reference"}},
      {"reference/text", {"backends/api", "backends/store/asio.h", "reference"}},
      {"properties", {"backends/api", "backends/registry", "simulator", "reference"}},
      {"cli", {"backends", "simulator", "reference", "properties"}},
      {"tests", {"backends", "simulator", "reference", "properties", "cli"}},
  };
  return rows;
}

// A third party's headers and the folders that may include them. Headers whose name has a dot and
// that no row names are refused: a new dependency is a decision, made here.
struct ThirdParty {
  std::string_view prefix;
  std::vector<std::string_view> folders;
};

const std::vector<ThirdParty>& third_parties() {
  static const std::vector<ThirdParty> rows = {
      {"gloo/",
       {"backends/gloo", "backends/sim", "tests/unit/abortable_transport_test.cc",
        "tests/unit/gloo_process_group_test.cc", "tests/unit/observed_device.h",
        "tests/unit/sim_transport_difference_test.cc", "tests/unit/sim_transport_world.h"}},
      {"boost/asio", {"backends/store"}},
      {"boost/beast", {"reference/text"}},
      {"boost/system", {"backends/store"}},
      {"boost/context", {"simulator"}},
      {"CLI/", {"cli"}},
      {"nlohmann/",
       {"cli", "tests", "backends/recorder", "reference/checkpoint",
        "reference/launch/error_file.cc", "properties"}},
      {"rapidcheck", {"properties", "tests"}},
      {"gtest/", {"tests"}},
      {"gmock/", {"tests"}},
      {"benchmark/", {}},
      {"unicode/", {"reference/text"}},
      {"png.h", {"reference/data"}},
      {"zlib.h", {"reference/data", "tests"}},
      {"xxhash.h", {"backends", "simulator", "reference", "properties", "cli", "tests"}},
      {"fmt/", {"backends", "simulator", "reference", "properties", "cli", "tests"}},
      {"mpi.h", {"properties/smpi_peer.cc"}},
      {"nccl.h", {"backends/nccl", "tests/nccl"}},
      {"cuda", {"backends/nccl", "reference/compute", "tests/nccl"}},
      {"cublas", {"backends/nccl/standin", "reference/compute/cuda"}},
  };
  return rows;
}

// Operating-system headers: the Runtime, sockets, the launcher of processes, and their tests.
constexpr std::array<std::string_view, 11> kSystemFolders = {
    "backends/local",
    "backends/gloo/tcp",
    "backends/registry/nccl_module.cc",  // loads a shared library
    "backends/store",
    "cli",
    "reference/launch",
    "reference/compute",
    "simulator",
    "properties/payload_memory.h",  // of a benchmark
    "properties/scenario/call_memory.cc",
    "tests"};

struct Include {
  int line;
  std::string target;
  bool quoted;
};

std::vector<Include> includes_of(const SourceFile& file) {
  std::vector<Include> found;
  const auto lines = split_lines(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    constexpr std::string_view kDirective = "#include ";
    if (!lines[i].starts_with(kDirective)) continue;
    const char open = lines[i][kDirective.size()];
    const auto end = lines[i].find(open == '"' ? '"' : '>', kDirective.size() + 1);
    const auto begin = kDirective.size() + 1;
    found.push_back({static_cast<int>(i) + 1, lines[i].substr(begin, end - begin), open == '"'});
  }
  return found;
}

const Row* row_of(std::string_view path) {
  const Row* best = nullptr;
  for (const Row& row : table()) {
    if (!is_under(path, row.from)) continue;
    if (best == nullptr || row.from.size() > best->from.size()) best = &row;
  }
  return best;
}

bool allowed(const SourceFile& file, const Row& row, const std::string& target) {
  if (is_under(target, row.from)) return true;
  // A benchmark is a program of its own: it may use what programs may.
  if (is_benchmark(file)) return !is_under(target, "tests");
  return std::ranges::any_of(row.to, [&](std::string_view to) { return is_under(target, to); });
}

bool in_one_of(std::string_view path, std::span<const std::string_view> folders) {
  return std::ranges::any_of(folders, [&](std::string_view f) { return is_under(path, f); });
}

std::optional<std::string> refuse_external(const SourceFile& file, const std::string& target) {
  for (const ThirdParty& row : third_parties()) {
    if (!target.starts_with(row.prefix)) continue;
    if (is_benchmark(file) || in_one_of(file.path, row.folders)) return std::nullopt;
    std::string folders;
    for (std::string_view folder : row.folders) folders += " " + std::string(folder);
    return "<" + target + "> is for" + (folders.empty() ? " benchmarks" : folders) + " only";
  }
  if (target.find('.') == std::string::npos) return std::nullopt;  // the standard library's
  if (in_one_of(file.path, kSystemFolders) || is_benchmark(file)) return std::nullopt;
  return "<" + target + "> is not in the table of tests/tidy/include_rules.cc";
}

}  // namespace

Findings project_includes(const SourceFile& file) {
  Findings findings;
  if (!is_cpp(file)) return findings;
  const Row* row = row_of(file.path);
  if (row == nullptr) return {{file.path, 0, "no row of the include table covers this folder"}};
  for (const Include& include : includes_of(file)) {
    if (!include.quoted) continue;
    if (row_of(include.target) == nullptr) {
      findings.push_back({file.path, include.line,
                          "\"" + include.target + "\" is not a path from the repository root"});
    } else if (!allowed(file, *row, include.target)) {
      findings.push_back(
          {file.path, include.line, std::string(row->from) + " may not include " + include.target});
    }
  }
  return findings;
}

Findings external_includes(const SourceFile& file) {
  Findings findings;
  if (!is_cpp(file)) return findings;
  for (const Include& include : includes_of(file)) {
    if (include.quoted) continue;
    if (auto what = refuse_external(file, include.target)) {
      findings.push_back({file.path, include.line, *what});
    }
  }
  return findings;
}

}  // namespace ddproof::tidy
