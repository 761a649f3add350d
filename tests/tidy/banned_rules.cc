#include "tests/tidy/banned_rules.h"

#include <algorithm>
#include <cctype>

namespace ddproof::tidy {
namespace {

// Which files a ban looks at: all under `folders` (empty: everywhere) except those in `except`.
// A path that ends in '*' matches every file that starts so.
struct Ban {
  std::vector<std::string_view> names;
  std::string_view instead;
  std::vector<std::string_view> folders;
  std::vector<std::string_view> except;
};

// The operating system's Runtime: the one place that may call what the others may not.
constexpr std::string_view kOsRuntime = "backends/local/os_*";

const std::vector<Ban>& bans() {
  static const std::vector<Ban> rows = {
      {{"steady_clock", "system_clock", "high_resolution_clock", "clock_gettime", "gettimeofday"},
       "take Runtime::now()",
       {},
       {kOsRuntime, "*_benchmark.cc"}},
      {{"getenv", "secure_getenv", "setenv", "putenv", "environ"},
       "take Runtime::environment()",
       {},
       {kOsRuntime, "tests"}},
      {{"std::thread", "std::jthread", "std::async", "pthread_create"},
       "take Runtime::spawn()",
       {},
       // The simulator has no Runtime below it; its test shows that simulations share no state.
       {kOsRuntime, "tests/unit/simulation_test.cc"}},
      {{"std::mutex", "std::condition_variable", "std::shared_mutex", "std::recursive_mutex"},
       "take Runtime::make_monitor()",
       {},
       {kOsRuntime}},
      {{"fopen", "std::fstream", "std::ifstream", "std::ofstream", "std::filesystem", "openat",
        " ::open("},
       "take Runtime::files()",
       {},
       {kOsRuntime, "tests"}},
      {{"this_thread::sleep_for", "this_thread::sleep_until", "usleep", "nanosleep"},
       "take Runtime::sleep_for(), or wait for the event itself",
       {},
       {kOsRuntime}},
      {{"random_device", "std::rand", "srand", "drand48", "default_random_engine"},
       "take a seed, and print it",
       {},
       {kOsRuntime}},
      {{"uniform_int_distribution", "uniform_real_distribution", "normal_distribution",
        "bernoulli_distribution", "std::shuffle"},
       "their results differ between libraries; derive the value from the engine's bits",
       {},
       {}},
      {{"thread_local"},
       "ranks share threads in the simulator; keep it in an object",
       {},
       // Stands for the driver, which the C API finds without being told where.
       {"backends/nccl/standin/machine.cc"}},
      {{"unordered_map", "unordered_set", "unordered_multimap"},
       "their order differs between libraries; use std::map or a sorted vector",
       {"simulator", "backends/sim"},
       {}},
      {{"EXPECT_*", "ASSERT_*"},
       "they do not shrink; return the failure (properties) or use RC_ASSERT",
       {"properties"},
       {}},
  };
  return rows;
}

bool is_identifier_part(char c) {
  return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0;
}

bool matches(std::string_view path, std::string_view pattern) {
  if (pattern.ends_with('*')) return path.starts_with(pattern.substr(0, pattern.size() - 1));
  if (pattern.starts_with('*')) return path.ends_with(pattern.substr(1));
  return is_under(path, pattern);
}

bool any_matches(std::string_view path, const std::vector<std::string_view>& patterns) {
  return std::ranges::any_of(patterns, [&](std::string_view p) { return matches(path, p); });
}

// True when `name` stands in `line` as a whole word; a name that ends in '*' may go on.
bool contains_word(std::string_view line, std::string_view name) {
  const bool open_ended = name.ends_with('*');
  if (open_ended) name.remove_suffix(1);
  for (auto at = line.find(name); at != std::string_view::npos; at = line.find(name, at + 1)) {
    const auto end = at + name.size();
    const bool starts =
        at == 0 || !is_identifier_part(line[at - 1]) || !is_identifier_part(name.front());
    const bool ends = open_ended || end == line.size() || !is_identifier_part(line[end]) ||
                      !is_identifier_part(name.back());
    if (starts && ends) return true;
  }
  return false;
}

}  // namespace

Findings banned_calls(const SourceFile& file) {
  Findings findings;
  if (!is_cpp(file)) return findings;
  const auto lines = split_lines(code_only(file.text));
  for (const Ban& ban : bans()) {
    if (!ban.folders.empty() && !any_matches(file.path, ban.folders)) continue;
    if (any_matches(file.path, ban.except)) continue;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      for (std::string_view name : ban.names) {
        if (!contains_word(lines[i], name)) continue;
        findings.push_back({file.path, static_cast<int>(i) + 1,
                            "'" + std::string(name) + "' is banned; " + std::string(ban.instead)});
      }
    }
  }
  return findings;
}

Findings backend_switches(const SourceFile& file) {
  Findings findings;
  if (!is_cpp(file) || is_under(file.path, "backends/registry")) return findings;
  const auto lines = split_lines(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].starts_with("#if") && lines[i].find("DDPROOF_WITH_") != std::string::npos) {
      findings.push_back({file.path, static_cast<int>(i) + 1,
                          "only backends/registry may ask which backends are built"});
    }
  }
  return findings;
}

}  // namespace ddproof::tidy
