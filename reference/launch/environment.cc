#include "reference/launch/environment.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "backends/api/error.h"

namespace ddproof {
namespace {

using Value = std::optional<std::string>;

// `is "abc"` or `is not set`. Long values are cut, control characters replaced.
std::string describe(const Value& value) {
  if (!value) return "is not set";
  constexpr std::size_t kShown = 80;
  std::string text = "is \"";
  for (const char c : value->substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    text += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  return text + (value->size() > kShown ? "...\"" : "\"");
}

[[noreturn]] void refuse(std::string_view name, const Value& value, const std::string& allowed) {
  throw ConfigError("environment variable " + std::string(name) + " " + describe(value) +
                    "; allowed: " + allowed + (value ? "" : "; ddproof run and torchrun set it"));
}

std::optional<std::int64_t> parse(const Value& value) {
  if (!value || value->starts_with('-')) return std::nullopt;
  std::int64_t number = 0;
  const char* end = value->data() + value->size();
  const auto [stop, error] = std::from_chars(value->data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

// The variable's number, which must lie in [low, high]. `why` says where the range comes from.
int read_number(const Environment& environment, std::string_view name, int low, int high,
                const std::string& why = "") {
  const Value value = environment.get(name);
  const std::optional<std::int64_t> number = parse(value);
  if (!number || *number < low || *number > high) {
    std::string allowed =
        "a whole number from " + std::to_string(low) + " to " + std::to_string(high);
    if (low == high) allowed = std::to_string(low);
    refuse(name, value, allowed + why);
  }
  return static_cast<int>(*number);
}

std::string because(std::string_view name, int value) {
  return " (" + std::string(name) + " is " + std::to_string(value) + ")";
}

void require_unset_together(const Environment& environment, const Value& local_rank) {
  for (const char* name : {"RANK", "WORLD_SIZE"}) {
    const Value value = environment.get(name);
    if (!value) continue;
    refuse("LOCAL_RANK", local_rank,
           "a whole number from 0, since " + std::string(name) + " " + describe(value) +
               "; or unset RANK and WORLD_SIZE to run one process");
  }
}

// With one node, the launcher started the whole world, so that others would wait for ranks that
// nobody starts.
void check_nodes(const Environment& environment, const LaunchEnvironment& launch) {
  if (!environment.get("GROUP_WORLD_SIZE")) return;
  const int nodes = read_number(environment, "GROUP_WORLD_SIZE", 1, launch.world_size,
                                because("WORLD_SIZE", launch.world_size));
  const int local = launch.local_world_size;
  if (nodes > 1 || local == 0 || local == launch.world_size) return;
  refuse("WORLD_SIZE", environment.get("WORLD_SIZE"),
         std::to_string(local) + " (LOCAL_WORLD_SIZE is " + std::to_string(local) +
             ", GROUP_WORLD_SIZE is 1)");
}

void read_ranks(const Environment& environment, LaunchEnvironment& launch) {
  launch.world_size = read_number(environment, "WORLD_SIZE", 1, kWorldSizeMax);
  launch.rank = read_number(environment, "RANK", 0, launch.world_size - 1,
                            because("WORLD_SIZE", launch.world_size));
  launch.local_rank =
      read_number(environment, "LOCAL_RANK", 0, launch.rank, because("RANK", launch.rank));
  launch.local_world_size = 0;
  if (!environment.get("LOCAL_WORLD_SIZE")) return;
  // The local ranks above this one are global ranks above this one.
  const int ranks_above = launch.world_size - 1 - launch.rank;
  launch.local_world_size = read_number(
      environment, "LOCAL_WORLD_SIZE", launch.local_rank + 1, launch.local_rank + 1 + ranks_above,
      " (LOCAL_RANK is " + std::to_string(launch.local_rank) + ", RANK is " +
          std::to_string(launch.rank) + ", WORLD_SIZE is " + std::to_string(launch.world_size) +
          ")");
}

bool is_ipv6(const std::string& text) {
  in6_addr address{};
  return inet_pton(AF_INET6, text.substr(0, text.find('%')).c_str(), &address) == 1;
}

bool is_host_name(const std::string& text) {
  constexpr std::size_t kNameMax = 253;
  const auto in_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  if (text.empty() || text.size() > kNameMax || text.front() == '-' || text.front() == '.') {
    return false;
  }
  if (!std::ranges::all_of(text, in_name)) return false;
  // What looks like an IPv4 address must be one.
  const bool numeric = text.find_first_not_of("0123456789.") == std::string::npos;
  in_addr address{};
  return !numeric || inet_pton(AF_INET, text.c_str(), &address) == 1;
}

// The host without brackets; empty when it is none.
std::optional<std::string> parse_host(const std::string& text) {
  const bool bracketed = text.size() >= 2 && text.front() == '[' && text.back() == ']';
  const std::string host = bracketed ? text.substr(1, text.size() - 2) : text;
  if (is_ipv6(host) || (!bracketed && is_host_name(host))) return host;
  return std::nullopt;
}

constexpr const char* kHostAllowed =
    "a host name, an IPv4 address or an IPv6 address, without a port";

std::string find_source(const Environment& environment) {
  if (environment.get("DDPROOF_RUN_ID")) return "ddproof run";
  if (environment.get("TORCHELASTIC_RUN_ID")) return "torchrun";
  return "environment variables";
}

}  // namespace

std::string require_host(const std::string& setting, const std::string& value) {
  if (auto host = parse_host(value)) return *host;
  throw ConfigError(setting + " " + describe(value) + "; allowed: " + kHostAllowed);
}

LaunchEnvironment read_launch_environment(const Environment& environment) {
  LaunchEnvironment launch;
  const Value local_rank = environment.get("LOCAL_RANK");
  if (!local_rank || *local_rank == "-1") {
    require_unset_together(environment, local_rank);
    launch.source = "nobody";
    return launch;
  }
  if (const auto number = parse(local_rank); !number || *number >= kWorldSizeMax) {
    refuse("LOCAL_RANK", local_rank,
           "a whole number from 0 to " + std::to_string(kWorldSizeMax - 1) +
               ", or -1 to run one process");
  }
  launch.distributed = true;
  launch.source = find_source(environment);
  read_ranks(environment, launch);
  check_nodes(environment, launch);
  const Value address = environment.get("MASTER_ADDR");
  const auto host = address ? parse_host(*address) : std::nullopt;
  if (!host) refuse("MASTER_ADDR", address, kHostAllowed);
  launch.master_addr = *host;
  // Port 0 means any free port, which other ranks could not find.
  const bool alone = launch.world_size == 1;
  launch.master_port =
      static_cast<std::uint16_t>(read_number(environment, "MASTER_PORT", alone ? 0 : 1, 65535));
  const bool agent_store = environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True";
  const bool ours = environment.get("DDPROOF_RUN_ID").has_value();
  launch.launcher_hosts_store = agent_store && ours;
  launch.master_port_is_pytorchs = agent_store && !ours;
  return launch;
}

}  // namespace ddproof
