#include "backends/nccl/standin/memory.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "backends/nccl/standin/machine.h"

namespace ddproof::standin {

void ByteRanges::add(std::size_t begin, std::size_t end) {
  if (begin == end) return;
  auto next = ends_.upper_bound(begin);
  if (next != ends_.begin() && std::prev(next)->second >= begin) {
    --next;
    begin = next->first;
  }
  while (next != ends_.end() && next->first <= end) {
    end = std::max(end, next->second);
    next = ends_.erase(next);
  }
  ends_[begin] = end;
}

bool ByteRanges::contains(std::size_t begin, std::size_t end) const {
  if (begin == end) return true;
  const auto next = ends_.upper_bound(begin);
  return next != ends_.begin() && std::prev(next)->second >= end;
}

void* Memory::add(Kind kind, const Device& device, int rank, std::size_t bytes) {
  std::unique_ptr<std::byte[], void (*)(void*)> data(static_cast<std::byte*>(std::calloc(bytes, 1)),
                                                     &std::free);
  std::byte* const begin = data.get();
  blocks_.insert_or_assign(begin, Block{kind, &device, rank, bytes, false, std::move(data), {}});
  return begin;
}

std::string Memory::free(void* address, Kind kind) {
  if (address == nullptr) return "";
  const auto found = blocks_.find(static_cast<std::byte*>(address));
  if (found == blocks_.end()) return "the address was not given out by it";
  Block& block = found->second;
  if (block.kind != kind) {
    return kind == Kind::kDevice ? "this is pinned host memory" : "this is device memory";
  }
  if (block.freed) return "this memory was freed already";
  block.freed = true;
  return "";
}

const Memory::Block* Memory::find(const void* address) const {
  const auto* const byte = static_cast<const std::byte*>(address);
  const auto next = blocks_.upper_bound(byte);
  if (next == blocks_.begin()) return nullptr;
  const Block& block = std::prev(next)->second;
  // One past the end still belongs to the block: an access there is out of bounds.
  return byte <= block.data.get() + block.bytes ? &block : nullptr;
}

std::string Memory::refuse(const Device& device, const void* address, std::size_t bytes) const {
  const Block* block = find(address);
  if (block == nullptr || bytes == 0) return "";
  if (block->freed) return "memory that was freed";
  const auto offset =
      static_cast<std::size_t>(static_cast<const std::byte*>(address) - block->data.get());
  if (offset + bytes > block->bytes) {
    return "bytes " + std::to_string(offset) + " to " + std::to_string(offset + bytes) +
           " of a block of " + std::to_string(block->bytes);
  }
  if (block->kind == Kind::kDevice && block->device != &device) {
    return "memory of " + block->device->name() + " from a stream of " + device.name();
  }
  return "";
}

bool Memory::is_written(const void* address, std::size_t bytes) const {
  const Block* block = find(address);
  if (block == nullptr || block->kind == Kind::kPinnedHost) return true;
  const auto offset =
      static_cast<std::size_t>(static_cast<const std::byte*>(address) - block->data.get());
  return block->written.contains(offset, offset + bytes);
}

void Memory::note_written(void* address, std::size_t bytes) {
  const Block* block = find(address);
  if (block == nullptr || bytes == 0) return;
  const auto offset =
      static_cast<std::size_t>(static_cast<const std::byte*>(address) - block->data.get());
  blocks_.find(block->data.get())->second.written.add(offset, offset + bytes);
}

void Memory::for_each_leak(const std::function<void(const Block&)>& visit) const {
  for (const auto& [begin, block] : blocks_) {
    if (!block.freed) visit(block);
  }
}

}  // namespace ddproof::standin
