// The hashes that stand for the bytes of one rank's memory in a call with hashed payload
// (payload_mode.h). A part of memory that no message has reached and nothing was computed into
// stands for its own bytes.
//
// The hash of bytes is a polynomial with the bytes as coefficients, so that of a range follows from
// those of its pieces: it does not show in how many messages they came. A part of what was computed
// follows from the whole and its place in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "backends/gloo/payload.h"

namespace ddproof {

class Hashes {
 public:
  // Of what is in this memory, or would be.
  std::uint64_t of(const void* data, std::size_t bytes) const;
  // From now on this memory stands for what has this hash.
  void set(const void* data, std::size_t bytes, std::uint64_t hash);
  void clear() { pieces_.clear(); }

 private:
  // A part of something with a hash.
  struct Piece {
    std::size_t bytes;
    std::uint64_t hash_of_whole;
    std::size_t offset;
    std::size_t bytes_of_whole;
  };
  static Piece part_of(const Piece& piece, std::size_t offset, std::size_t bytes);
  static std::uint64_t hash_of(const Piece& piece);
  void split(const std::byte* at);

  std::map<const std::byte*, Piece> pieces_;  // by address; they do not overlap
};

// Computes with hashes instead of bytes.
class HashedPayload final : public Payload {
 public:
  explicit HashedPayload(Hashes& hashes) : hashes_(hashes) {}
  ReduceFunction reduce(ElementType type, ReduceOp op) override;
  void divide(Buffer data, int divisor) override;
  void copy(void* to, const void* from, std::size_t bytes) override;

 private:
  Hashes& hashes_;
};

// Computes nothing.
class NoPayload final : public Payload {
 public:
  ReduceFunction reduce(ElementType, ReduceOp) override {
    return [](void*, const void*, const void*, std::size_t) {};
  }
  void divide(Buffer, int) override {}
  void copy(void*, const void*, std::size_t) override {}
};

}  // namespace ddproof
