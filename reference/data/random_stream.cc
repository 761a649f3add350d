#include "reference/data/random_stream.h"

#include <fmt/format.h>

#include "backends/api/check.h"
#include "backends/api/error.h"

namespace ddproof {
namespace {

// The highest two bits of a counter say what the stream is for.
constexpr std::uint32_t kWorkerTag = std::uint32_t{1} << 30;

constexpr std::uint32_t low(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
constexpr std::uint32_t high(std::uint64_t value) {
  return static_cast<std::uint32_t>(value >> 32);
}

std::uint64_t in_range(const char* name, std::int64_t value, std::int64_t limit) {
  if (value < 0 || value >= limit) {
    throw ConfigError(
        fmt::format("random stream: {} is {}, expected 0 to {}", name, value, limit - 1));
  }
  return static_cast<std::uint64_t>(value);
}

std::uint32_t epoch_word(std::int64_t epoch) {
  return low(in_range("epoch", epoch, std::int64_t{1} << 32));
}

}  // namespace

PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {high(b) ^ counter[1] ^ key[0], low(b), high(a) ^ counter[3] ^ key[1], low(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

RandomStream::RandomStream(std::uint64_t seed, PhiloxCounter first)
    : key_{low(seed), high(seed)}, counter_(first) {}

RandomStream RandomStream::of_sample(std::uint64_t seed, std::int64_t epoch, std::int64_t sample) {
  const std::uint64_t number = in_range("sample", sample, std::int64_t{1} << 62);
  return {seed, {0, epoch_word(epoch), low(number), high(number)}};
}

RandomStream RandomStream::of_worker(std::uint64_t seed, std::int64_t epoch, int rank, int worker) {
  const std::uint64_t rank_word = in_range("rank", rank, std::int64_t{1} << 31);
  const std::uint64_t worker_word = in_range("worker", worker, std::int64_t{1} << 30);
  return {seed, {0, epoch_word(epoch), low(rank_word), low(worker_word) | kWorkerTag}};
}

std::uint32_t RandomStream::next() {
  if (used_ == block_.size()) {
    block_ = philox(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[used_++];
}

std::uint32_t RandomStream::below(std::uint32_t bound) {
  DDPROOF_CHECK(bound > 0);
  const std::uint32_t rejected = (0 - bound) % bound;  // so many products would be one too often
  std::uint64_t product = 0;
  do {
    product = std::uint64_t{next()} * bound;
  } while (low(product) < rejected);
  return high(product);
}

}  // namespace ddproof
