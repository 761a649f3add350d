// Gradients travel in 16 bits: half the bytes.
//
// As PyTorch's fp16_compress_hook and bf16_compress_hook, each gradient is rounded to 16 bits
// FIRST, then divided by the group's size, then summed, each time rounded to 16 bits. So with
// Float16 more than 65504 becomes infinite before the division, and less than about 6e-8 times the
// size is lost. Works in host memory. Source: SEMANTICS section 6. Threads: one task at a time.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "backends/api/half.h"
#include "reference/ddp/comm_hook.h"

namespace ddproof {

// Half: Float16 or BFloat16.
template <class Half>
class CompressionHook final : public CommHook<float> {
 public:
  std::string name() const override;
  void start(const GradientBucket<float>& bucket, ProcessGroup& group) override;
  void finish(const GradientBucket<float>& bucket, ProcessGroup& group) override;

 private:
  struct Sent {
    std::vector<Half> data;
    WorkPtr work;
  };
  std::map<std::size_t, Sent> sent_;  // by bucket
};

using Float16Compression = CompressionHook<Float16>;
using BFloat16Compression = CompressionHook<BFloat16>;

}  // namespace ddproof
