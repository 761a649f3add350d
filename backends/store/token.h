// How the two ends of a store's connection prove to each other that they know the job's token,
// without sending it. Threads: any.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "backends/api/runtime.h"

namespace ddproof {

// A number used once, of each end.
using Nonce = std::array<char, 16>;
using Proof = std::array<char, 32>;
enum class StoreSide : std::uint8_t { kClient, kServer };

// The most bytes that a token may have.
inline constexpr std::size_t kTokenBytesMax = 4096;

// Throws ConfigError naming the size and the limit.
void require_token(const std::string& token);

// Of the runtime's random stream and its wall clock, which no other run has together.
Nonce make_nonce(Runtime& runtime);

// HMAC-SHA-256 (RFC 2104) under the token of who proves it and both nonces, so that neither a proof
// seen before nor the other side's own is of any use.
Proof make_proof(const std::string& token, StoreSide side, const Nonce& of_client,
                 const Nonce& of_server);
// Takes as long for every wrong proof.
bool is_same(const Proof& mine, const Proof& theirs);

}  // namespace ddproof
