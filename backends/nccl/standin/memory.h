// What cudaMalloc and cudaMallocHost gave out, and which of its bytes were ever written.
//
// Invariant: no address is given out twice, also after it was freed; so an access to freed memory
// is always seen. Device memory can be read by the host here, which a real device's cannot.
// Threads: those of one simulation.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace ddproof::standin {

struct Device;

// Disjoint ranges of offsets.
class ByteRanges {
 public:
  void add(std::size_t begin, std::size_t end);
  bool contains(std::size_t begin, std::size_t end) const;

 private:
  std::map<std::size_t, std::size_t> ends_;  // by begin
};

class Memory {
 public:
  enum class Kind { kDevice, kPinnedHost };
  struct Block {
    Kind kind = Kind::kDevice;
    const Device* device = nullptr;  // that it was made on
    int rank = 0;                    // whose process has it
    std::size_t bytes = 0;
    bool freed = false;
    std::unique_ptr<std::byte[], void (*)(void*)> data{nullptr, nullptr};
    ByteRanges written;
  };

  // Zeros, so that what nobody wrote is the same in every run; pages that nobody uses cost nothing.
  void* add(Kind kind, const Device& device, int rank, std::size_t bytes);
  // What is wrong with it; empty: it is freed. Null is fine.
  std::string free(void* address, Kind kind);
  // The block in which `address` lies, also when freed; null: ordinary host memory.
  const Block* find(const void* address) const;

  // What is wrong with an access from a stream of `device`; empty: nothing. Ordinary host memory is
  // not checked.
  std::string refuse(const Device& device, const void* address, std::size_t bytes) const;
  // Whether every byte was written before. Requires: refuse() said nothing.
  bool is_written(const void* address, std::size_t bytes) const;
  void note_written(void* address, std::size_t bytes);

  // Of what is not freed.
  void for_each_leak(const std::function<void(const Block&)>& visit) const;

 private:
  std::map<const std::byte*, Block> blocks_;  // by begin
};

}  // namespace ddproof::standin
