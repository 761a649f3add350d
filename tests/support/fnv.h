// FNV-1a, 64 bits: the checksum of the golden files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace ddproof {

class Fnv1a64 {
 public:
  void add(std::string_view bytes) {
    for (const char byte : bytes) add_byte(static_cast<unsigned char>(byte));
  }
  // As a little-endian 64-bit integer.
  void add(std::int64_t value) {
    for (int shift = 0; shift < 64; shift += 8) {
      add_byte(static_cast<unsigned char>(static_cast<std::uint64_t>(value) >> shift));
    }
  }
  std::uint64_t value() const { return hash_; }

 private:
  void add_byte(unsigned char byte) { hash_ = (hash_ ^ byte) * 0x100000001b3u; }
  std::uint64_t hash_ = 0xcbf29ce484222325u;
};

}  // namespace ddproof
