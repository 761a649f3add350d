#include "backends/sim/hashes.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "simulator/random.h"

namespace ddproof {
namespace {

// The polynomial is over the integers modulo this prime.
constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;
constexpr std::uint64_t kPoint = 0x0f3a5c96e17b28d4 % kPrime;

std::uint64_t multiply(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(a) * b % kPrime);
}

std::uint64_t power_of_point(std::size_t exponent) {
  std::uint64_t result = 1;
  for (std::uint64_t factor = kPoint; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result = multiply(result, factor);
    factor = multiply(factor, factor);
  }
  return result;
}

// Eight coefficients at a time, from the last.
std::uint64_t hash_of_bytes(std::span<const std::byte> bytes) {
  constexpr std::size_t kBlock = 8;
  std::array<std::uint64_t, kBlock> powers;
  for (std::size_t k = 0; k < kBlock; ++k) powers[k] = power_of_point(k);
  const std::uint64_t step = power_of_point(kBlock);
  std::uint64_t sum = 0;
  for (std::size_t end = bytes.size(); end > 0;) {
    const std::size_t begin = (end - 1) / kBlock * kBlock;
    unsigned __int128 block = 0;
    for (std::size_t k = begin; k < end; ++k) {
      block +=
          static_cast<unsigned __int128>(powers[k - begin]) * std::to_integer<unsigned>(bytes[k]);
    }
    sum = (multiply(sum, step) + static_cast<std::uint64_t>(block % kPrime)) % kPrime;
    end = begin;
  }
  return sum;
}

// Of one after another.
std::uint64_t mix(std::uint64_t a, std::uint64_t b) { return sim::mix64(sim::mix64(a) + b); }

}  // namespace

Hashes::Piece Hashes::part_of(const Piece& piece, std::size_t offset, std::size_t bytes) {
  return {bytes, piece.hash_of_whole, piece.offset + offset, piece.bytes_of_whole};
}

std::uint64_t Hashes::hash_of(const Piece& piece) {
  if (piece.bytes == piece.bytes_of_whole) return piece.hash_of_whole;
  return mix(mix(piece.hash_of_whole, piece.offset), piece.bytes);
}

std::uint64_t Hashes::of(const void* data, std::size_t bytes) const {
  const auto* const begin = static_cast<const std::byte*>(data);
  const std::byte* const end = begin + bytes;
  std::uint64_t sum = 0;
  auto next = pieces_.upper_bound(begin);
  if (next != pieces_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second.bytes > begin) next = before;
  }
  for (const std::byte* at = begin; at < end;) {
    std::uint64_t hash = 0;
    const std::byte* after = end;
    if (next != pieces_.end() && next->first <= at) {
      after = std::min(end, next->first + next->second.bytes);
      hash = hash_of(part_of(next->second, static_cast<std::size_t>(at - next->first),
                             static_cast<std::size_t>(after - at)));
      ++next;
    } else {
      if (next != pieces_.end()) after = std::min(end, next->first);
      hash = hash_of_bytes(std::span(at, after));
    }
    const auto offset = static_cast<std::size_t>(at - begin);
    sum = (sum + multiply(hash % kPrime, power_of_point(offset))) % kPrime;
    at = after;
  }
  return sum;
}

// Sees to it that no piece spans this address.
void Hashes::split(const std::byte* at) {
  auto place = pieces_.lower_bound(at);
  if (place == pieces_.begin()) return;
  --place;
  const Piece whole = place->second;
  const auto offset = static_cast<std::size_t>(at - place->first);
  if (offset >= whole.bytes) return;
  place->second = part_of(whole, 0, offset);
  pieces_[at] = part_of(whole, offset, whole.bytes - offset);
}

void Hashes::set(const void* data, std::size_t bytes, std::uint64_t hash) {
  if (bytes == 0) return;
  const auto* const begin = static_cast<const std::byte*>(data);
  split(begin);
  split(begin + bytes);
  pieces_.erase(pieces_.lower_bound(begin), pieces_.lower_bound(begin + bytes));
  pieces_[begin] = {bytes, hash, 0, bytes};
}

// The same whichever comes first, as sums are.
ReduceFunction HashedPayload::reduce(ElementType type, ReduceOp op) {
  return
      [this, size = type.size(), op](void* out, const void* a, const void* b, std::size_t count) {
        const std::size_t bytes = count * size;
        const std::uint64_t both = hashes_.of(a, bytes) + hashes_.of(b, bytes);
        hashes_.set(out, bytes, mix(both, static_cast<std::uint64_t>(op)));
      };
}

void HashedPayload::divide(Buffer data, int divisor) {
  hashes_.set(data.data(), data.bytes(),
              mix(hashes_.of(data.data(), data.bytes()), static_cast<std::uint64_t>(divisor)));
}

void HashedPayload::copy(void* to, const void* from, std::size_t bytes) {
  hashes_.set(to, bytes, hashes_.of(from, bytes));
}

}  // namespace ddproof
