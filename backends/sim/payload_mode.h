// How much of a simulated call's data there is. In every mode the same algorithms run, and virtual
// times, messages and bytes as counted, verdicts and decisions of the schedule are the same.
//
// Calls by which programs steer are real in every mode: those whose smaller non-empty buffer has at
// most kSteeringBytes, those that a decorator makes for another call, monitored_barrier, and those
// of groups of one rank. What a program decides from larger ones is its own matter.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ddproof {

enum class PayloadMode : std::uint8_t {
  // Results are what a real backend computes.
  kReal,
  // A message carries a hash of its bytes. After a call, the first 8 bytes (or as many as there
  // are) of each buffer that it would have filled hold the hash of all that went into the result;
  // its other bytes have no meaning. Buffers that would hold equal bytes after one call have equal
  // hashes. A bit that differs in what went in, or data that went another way, differ in the hash,
  // but for chance (2^-60). Hashes of different algorithms or world sizes do not compare.
  kHashed,
  // No message moves a byte and nothing is computed. Buffers of results have no meaning: they keep
  // what was in them, but for a rank's own part where Gloo copies it. A flipped bit flips nothing.
  kSizeOnly,
};

inline constexpr std::size_t kSteeringBytes = 1024;

}  // namespace ddproof
