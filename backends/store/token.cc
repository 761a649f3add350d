#include "backends/store/token.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cstring>

#include "backends/api/check.h"
#include "backends/api/error.h"

namespace ddproof {

void require_token(const std::string& token) {
  if (token.size() <= kTokenBytesMax) return;
  throw ConfigError("store: the token has " + std::to_string(token.size()) +
                    " bytes, allowed are 0, for none, to " + std::to_string(kTokenBytesMax));
}

Nonce make_nonce(Runtime& runtime) {
  const std::array<std::uint64_t, 2> words{
      runtime.random_u64(), static_cast<std::uint64_t>(runtime.wall_clock().count())};
  Nonce nonce{};
  std::memcpy(nonce.data(), words.data(), nonce.size());
  return nonce;
}

Proof make_proof(const std::string& token, StoreSide side, const Nonce& of_client,
                 const Nonce& of_server) {
  std::string text = side == StoreSide::kClient ? "ddproof store client" : "ddproof store server";
  text.append(of_client.data(), of_client.size()).append(of_server.data(), of_server.size());
  Proof proof{};
  unsigned int size = 0;
  const auto* const made = HMAC(EVP_sha256(), token.data(), static_cast<int>(token.size()),
                                reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                                reinterpret_cast<unsigned char*>(proof.data()), &size);
  DDPROOF_CHECK(made != nullptr && size == proof.size());
  return proof;
}

bool is_same(const Proof& mine, const Proof& theirs) {
  return CRYPTO_memcmp(mine.data(), theirs.data(), mine.size()) == 0;
}

}  // namespace ddproof
