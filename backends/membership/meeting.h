// How the ranks of a group come together at the store before they connect.
//
// Threads: one task of the rank.
#pragma once

#include <string>

#include "backends/api/backend.h"
#include "backends/api/error.h"
#include "backends/membership/finding.h"
#include "backends/membership/store_group.h"

namespace ddproof {

// Its peers know of the failure, or come to the same result by themselves.
class JoinError final : public CommError {
 public:
  using CommError::CommError;
};

// Throws ConfigError when rank or world size are bad.
void require_membership(const std::string& backend, const Membership& membership);

// This rank in a world of processes, and what its groups share.
struct JoinedWorld {
  StoreWorld world;
  StoreGroup everybody;
};

// Counts how often this rank has joined on this store, so that a world that is made anew meets no
// keys of an earlier one, and leaves a last will. Throws ConfigError when rank or world size are
// bad, or differ from what the other ranks say.
JoinedWorld join_world(const std::string& backend, const Membership& membership, Runtime& runtime,
                       Store& store);

// Returns when all ranks have come. Throws JoinError: a rank that does not come is named.
void meet(const StoreWorld& world, const StoreGroup& group, Duration timeout);

// "rank 1/4 [gloo] join: what".
std::string join_error(const StoreWorld& world, const StoreGroup& group, const std::string& what);

// Finds out why the ranks cannot connect, and throws it.
[[noreturn]] void fail_to_connect(const StoreWorld& world, const StoreGroup& group,
                                  const Symptom& symptom);

// Tells the peers, who would wait for it, that this rank cannot connect.
void tell_cannot_connect(const StoreWorld& world, const StoreGroup& group, const std::string& why);

// Tells the peers, as far as the store answers, that this rank has left. Never throws.
void say_goodbye(const StoreWorld& world, const StoreGroup& group) noexcept;

}  // namespace ddproof
