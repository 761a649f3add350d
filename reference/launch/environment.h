// The environment contract: which rank of which world this process is, read from the variables that
// torchrun and `ddproof run` set; or from those of another starter (starter.h), which stand for
// RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE under the same rules. Everything is checked
// here, at once, so that nothing waits for a timeout later (SEMANTICS 9.1 and D1).
//
//   LOCAL_RANK        unset or -1: not distributed; RANK and WORLD_SIZE must then be unset, too.
//                     Otherwise the rank on this node: 0 <= LOCAL_RANK <= RANK. What is no such
//                     number is refused before any other variable is looked at.
//   WORLD_SIZE        1 to kWorldSizeMax
//   RANK              0 <= RANK < WORLD_SIZE
//   LOCAL_WORLD_SIZE  optional; LOCAL_RANK < LOCAL_WORLD_SIZE <= WORLD_SIZE, and this node's other
//                     ranks must fit into the world
//   GROUP_WORLD_SIZE  optional, the number of nodes; 1 to WORLD_SIZE, and where it is 1, WORLD_SIZE
//                     is LOCAL_WORLD_SIZE, if that is set
//   MASTER_ADDR       a host name, an IPv4 address, or an IPv6 address with or without brackets
//   MASTER_PORT       1 to 65535; with one rank also 0, for any free port
//   TORCHELASTIC_USE_AGENT_STORE  optional; True: the launcher hosts a store at MASTER_PORT: ours
//                     where DDPROOF_RUN_ID is set, else PyTorch's, which only PyTorch can use; rank
//                     0 hosts ours beside it then, at the next port (before it, after 65535)
//   DDPROOF_STORE_TOKEN  optional, the job's secret: whoever has another one, or none, can neither
//                     join nor read at its store (backends/store/token.h)
//
// Numbers are ASCII digits, leading zeros allowed, with a sign only in -1. A variable that is set
// but empty is an error.
#pragma once

#include <cstdint>
#include <string>

#include "backends/api/runtime.h"

namespace ddproof {

// What the store can name in one call: some keys a rank.
inline constexpr int kWorldSizeMax = 1 << 15;

struct LaunchEnvironment {
  bool distributed = false;
  int rank = 0;
  int world_size = 1;
  int local_rank = -1;                // -1: not distributed
  int local_world_size = 1;           // 0: nobody said
  std::string master_addr;            // without brackets; empty when not distributed
  std::uint16_t master_port = 0;      // of our store
  bool launcher_hosts_store = false;  // ours: no rank does
  std::string source;                 // who said so: the name of a Starter, or "nobody"
  std::string store_token;            // empty: none
  std::string remark;  // what to tell who expected ranks where there are none; may be empty

  friend bool operator==(const LaunchEnvironment&, const LaunchEnvironment&) = default;
};

// Throws ConfigError naming the variable, its value and what is allowed.
LaunchEnvironment read_launch_environment(const Environment& environment);

// DDPROOF_STORE_TOKEN; empty when it is not set. Throws ConfigError when it is empty, or longer
// than a token may be; it does not say the token.
std::string read_store_token(const Environment& environment);

// "[::1]" becomes "::1". Throws ConfigError naming `setting` when it is no host name or address.
std::string require_host(const std::string& setting, const std::string& value);

}  // namespace ddproof
