#include "reference/launch/environment.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "backends/api/error.h"
#include "backends/store/token.h"
#include "reference/launch/starter.h"

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

// `advice` says how a variable that is missing gets set.
[[noreturn]] void refuse(std::string_view name, const Value& value, const std::string& allowed,
                         const std::string& advice) {
  throw ConfigError("environment variable " + std::string(name) + " " + describe(value) +
                    "; allowed: " + allowed + (value ? "" : "; " + advice));
}

std::optional<std::int64_t> parse(const Value& value) {
  if (!value || value->starts_with('-')) return std::nullopt;
  std::int64_t number = 0;
  const char* end = value->data() + value->size();
  const auto [stop, error] = std::from_chars(value->data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

std::string because(std::string_view name, int value) {
  return " (" + std::string(name) + " is " + std::to_string(value) + ")";
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

std::uint16_t port_beside(std::uint16_t port) {
  if (port == 0) return 0;
  return static_cast<std::uint16_t>(port == 65535 ? port - 1 : port + 1);
}

// Reads the world of one starter, by the names that its variables have.
class StarterReader {
 public:
  StarterReader(const Environment& environment, const Starter& starter)
      : environment_(environment), starter_(starter) {}

  // RANK alone, and so on, is half a world.
  void require_set_together() const {
    if (starter_.local_rank != "LOCAL_RANK") return;
    const Value local_rank = environment_.get("LOCAL_RANK");
    if (local_rank && local_rank != "-1") return;
    for (const char* name : {"RANK", "WORLD_SIZE"}) {
      const Value value = environment_.get(name);
      if (!value) continue;
      refuse("LOCAL_RANK", local_rank,
             "a whole number from 0, since " + std::string(name) + " " + describe(value) +
                 "; or unset RANK and WORLD_SIZE to run one process",
             starter_.advice);
    }
  }

  void read_ranks(LaunchEnvironment& launch) const {
    require_local_rank();
    launch.world_size = number(starter_.world_size, 1, kWorldSizeMax);
    launch.rank = number(starter_.rank, 0, launch.world_size - 1,
                         because(starter_.world_size, launch.world_size));
    if (starter_.local_rank.empty()) {
      launch.local_rank = 0;
      launch.local_world_size = 1;
      return;
    }
    launch.local_rank =
        number(starter_.local_rank, 0, launch.rank, because(starter_.rank, launch.rank));
    launch.local_world_size = 0;
    if (starter_.local_world_size.empty() || !environment_.get(starter_.local_world_size)) return;
    // The local ranks above this one are global ranks above this one.
    const int ranks_above = launch.world_size - 1 - launch.rank;
    launch.local_world_size = number(
        starter_.local_world_size, launch.local_rank + 1, launch.local_rank + 1 + ranks_above,
        " (" + starter_.local_rank + " is " + std::to_string(launch.local_rank) + ", " +
            starter_.rank + " is " + std::to_string(launch.rank) + ", " + starter_.world_size +
            " is " + std::to_string(launch.world_size) + ")");
  }

  // With one node, the launcher started the whole world, so that others would wait for ranks that
  // nobody starts.
  void check_nodes(const LaunchEnvironment& launch) const {
    if (!environment_.get("GROUP_WORLD_SIZE")) return;
    const int nodes = number("GROUP_WORLD_SIZE", 1, launch.world_size,
                             because(starter_.world_size, launch.world_size));
    const int local = launch.local_world_size;
    if (nodes > 1 || local == 0 || local == launch.world_size) return;
    refuse(starter_.world_size, environment_.get(starter_.world_size),
           std::to_string(local) + " (" + starter_.local_world_size + " is " +
               std::to_string(local) + ", GROUP_WORLD_SIZE is 1)",
           starter_.advice);
  }

  void read_master(LaunchEnvironment& launch) const {
    const Value address = or_default(environment_.get("MASTER_ADDR"), starter_.master_addr);
    const auto host = address ? parse_host(*address) : std::nullopt;
    if (!host) refuse("MASTER_ADDR", address, kHostAllowed, starter_.advice);
    launch.master_addr = *host;
    // Port 0 means any free port, which other ranks could not find.
    const bool alone = launch.world_size == 1;
    const Value port = or_default(environment_.get("MASTER_PORT"), starter_.master_port);
    launch.master_port =
        static_cast<std::uint16_t>(number_in("MASTER_PORT", port, alone ? 0 : 1, 65535, ""));
  }

 private:
  // Before any other variable is looked at.
  void require_local_rank() const {
    if (starter_.local_rank.empty()) return;
    const Value local_rank = environment_.get(starter_.local_rank);
    if (const auto number = parse(local_rank); number && *number < kWorldSizeMax) return;
    const std::string alone =
        starter_.local_rank == "LOCAL_RANK" ? ", or -1 to run one process" : "";
    refuse(starter_.local_rank, local_rank,
           "a whole number from 0 to " + std::to_string(kWorldSizeMax - 1) + alone,
           starter_.advice);
  }

  static Value or_default(Value value, const std::string& otherwise) {
    return value || otherwise.empty() ? std::move(value) : otherwise;
  }

  // The variable's number, which must lie in [low, high]. `why` says where the range comes from.
  int number(const std::string& name, int low, int high, const std::string& why = "") const {
    return number_in(name, environment_.get(name), low, high, why);
  }
  int number_in(const std::string& name, const Value& value, int low, int high,
                const std::string& why) const {
    const std::optional<std::int64_t> number = parse(value);
    if (number && *number >= low && *number <= high) return static_cast<int>(*number);
    std::string allowed =
        "a whole number from " + std::to_string(low) + " to " + std::to_string(high);
    if (low == high) allowed = std::to_string(low);
    refuse(name, value, allowed + why, starter_.advice);
  }

  const Environment& environment_;
  const Starter& starter_;
};

}  // namespace

std::string require_host(const std::string& setting, const std::string& value) {
  if (auto host = parse_host(value)) return *host;
  throw ConfigError(setting + " " + describe(value) + "; allowed: " + kHostAllowed);
}

std::string read_store_token(const Environment& environment) {
  const Value token = environment.get("DDPROOF_STORE_TOKEN");
  if (!token) return "";
  if (token->empty() || token->size() > kTokenBytesMax) {
    throw ConfigError("environment variable DDPROOF_STORE_TOKEN has " +
                      std::to_string(token->size()) + " bytes; allowed: 1 to " +
                      std::to_string(kTokenBytesMax) + ", or not to set it");
  }
  return *token;
}

LaunchEnvironment read_launch_environment(const Environment& environment) {
  LaunchEnvironment launch;
  const std::optional<Starter> starter = find_starter(environment);
  if (!starter || environment.get("LOCAL_RANK") == "-1") {
    if (starter) StarterReader(environment, *starter).require_set_together();
    launch.source = "nobody";
    launch.remark = missed_starter(environment);
    return launch;
  }
  const StarterReader reader(environment, *starter);
  reader.require_set_together();
  launch.distributed = true;
  launch.source = starter->name;
  reader.read_ranks(launch);
  reader.check_nodes(launch);
  reader.read_master(launch);
  const bool agent_store = environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True";
  const bool ours = environment.get("DDPROOF_RUN_ID").has_value();
  launch.launcher_hosts_store = agent_store && ours;
  if (agent_store && !ours) launch.master_port = port_beside(launch.master_port);
  launch.store_token = read_store_token(environment);
  return launch;
}

}  // namespace ddproof
