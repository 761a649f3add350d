#include "cli/run_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "backends/api/error.h"
#include "backends/api/suggest.h"
#include "cli/parse_number.h"

namespace ddproof {
namespace {

void take_count(const std::string& text, RoundsOptions& nodes) {
  const auto colon = text.find(':');
  const auto low = parse_number<int>(text.substr(0, colon));
  const auto high = colon == std::string::npos ? low : parse_number<int>(text.substr(colon + 1));
  if (!low || !high || *low < 1 || *high < *low || *high > kNodesMax) {
    throw ConfigError(
        fmt::format("--nnodes: \"{}\" is not allowed; allowed: N or MIN:MAX, from 1 "
                    "to {}",
                    text, kNodesMax));
  }
  nodes.nodes_min = *low;
  nodes.nodes_max = *high;
}

[[noreturn]] void refuse_setting(const std::string& entry, const std::string& why) {
  throw ConfigError("--rdzv-conf: \"" + entry + "\" is not allowed" + why);
}

Duration seconds_of(const std::string& entry, const std::string& value) {
  const auto seconds = parse_number<double>(value);
  if (!seconds || !(*seconds >= 0) || *seconds > 1e6) {
    refuse_setting(entry, "; allowed: a number of seconds from 0 to 1000000");
  }
  return std::chrono::nanoseconds(std::llround(*seconds * 1e9));
}

bool truth_of(const std::string& entry, const std::string& value) {
  for (const char* yes : {"1", "true", "True"}) {
    if (value == yes) return true;
  }
  for (const char* no : {"0", "false", "False"}) {
    if (value == no) return false;
  }
  refuse_setting(entry, "; allowed: true or false");
}

int attempts_of(const std::string& entry, const std::string& value) {
  const auto attempts = parse_number<int>(value);
  if (!attempts || *attempts < 1 || *attempts > 1000) {
    refuse_setting(entry, "; allowed: a whole number from 1 to 1000");
  }
  return *attempts;
}

void take_setting(const std::string& entry, LaunchOptions& options) {
  // The last ones are of torchrun's stores, and change nothing here.
  static const std::vector<std::string> known = {"timeout",
                                                 "join_timeout",
                                                 "last_call_timeout",
                                                 "keep_alive_interval",
                                                 "keep_alive_max_attempt",
                                                 "is_host",
                                                 "close_timeout",
                                                 "heartbeat_timeout",
                                                 "read_timeout",
                                                 "rank",
                                                 "store_type"};
  const auto equals = entry.find('=');
  const std::string key = entry.substr(0, equals);
  if (equals == std::string::npos || std::ranges::count(known, key) == 0) {
    refuse_setting(entry,
                   did_you_mean(key, known) + "; allowed: KEY=VALUE,... with keys of torchrun");
  }
  const std::string value = entry.substr(equals + 1);
  RoundsOptions& nodes = options.nodes;
  if (key == "timeout" || key == "join_timeout") nodes.join_timeout = seconds_of(entry, value);
  if (key == "last_call_timeout") nodes.last_call = seconds_of(entry, value);
  if (key == "keep_alive_max_attempt") nodes.keep_alive_attempts = attempts_of(entry, value);
  if (key == "is_host") options.hosts_rendezvous = truth_of(entry, value);
  if (key != "keep_alive_interval") return;
  nodes.keep_alive_interval = seconds_of(entry, value);
  if (nodes.keep_alive_interval < std::chrono::milliseconds(10)) {
    refuse_setting(entry, "; allowed: 0.01 seconds or more");
  }
}

void take_settings(const std::string& text, LaunchOptions& options) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    take_setting(text.substr(at, comma - at), options);
    at = comma + 1;
  }
}

// What makes no sense together.
void check_several(const NodeFlags& flags, const LaunchOptions& options) {
  const RoundsOptions& nodes = options.nodes;
  if (flags.is_standalone) {
    throw ConfigError("--standalone is one node's, so --nnodes " + flags.nodes +
                      " is not allowed with it");
  }
  if (options.master_port == 0) {
    throw ConfigError("with several nodes, all must know the port of the store: 0 is not allowed");
  }
  if (!flags.is_static && !flags.has_endpoint) {
    throw ConfigError("--rdzv-backend c10d with --nnodes " + flags.nodes +
                      " needs --rdzv-endpoint HOST:PORT, the same on all nodes");
  }
  if (!flags.is_static) return;
  if (nodes.nodes_min != nodes.nodes_max) {
    throw ConfigError("--nnodes " + flags.nodes +
                      " needs --rdzv-backend c10d, since static nodes are numbered");
  }
  if (flags.node_rank >= nodes.nodes_max) {
    throw ConfigError(
        fmt::format("--node-rank: \"{}\" is not allowed; allowed: a whole number from "
                    "0 to {} (--nnodes is {})",
                    flags.node_rank, nodes.nodes_max - 1, nodes.nodes_max));
  }
}

}  // namespace

void take_nodes(const NodeFlags& flags, LaunchOptions& options) {
  take_settings(flags.settings, options);
  take_count(flags.nodes, options.nodes);
  if (options.nodes.nodes_max == 1) {
    if (flags.node_rank == 0) return;
    throw ConfigError(fmt::format("--node-rank: \"{}\" is not allowed; allowed: 0 (--nnodes is 1)",
                                  flags.node_rank));
  }
  check_several(flags, options);
  if (!flags.is_static) {
    options.ignores_node_rank = flags.node_rank_is_given;
    return;
  }
  options.nodes.node_rank = flags.node_rank;
  options.hosts_rendezvous = flags.node_rank == 0;
}

}  // namespace ddproof
