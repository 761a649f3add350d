#include "reference/ddp/hooks/compression_hook.h"

#include <algorithm>
#include <type_traits>

namespace ddproof {

template <class Half>
std::string CompressionHook<Half>::name() const {
  return std::is_same_v<Half, Float16> ? "fp16_compress" : "bf16_compress";
}

template <class Half>
void CompressionHook<Half>::start(const GradientBucket<float>& bucket, ProcessGroup& group) {
  Sent& sent = sent_[bucket.index];
  const std::vector<float> gradients = to_host(bucket.data);
  const auto size = static_cast<float>(group.size());
  sent.data.resize(gradients.size());
  std::ranges::transform(gradients, sent.data.begin(), [&](float gradient) {
    return Half(static_cast<float>(Half(gradient)) / size);
  });
  sent.work = group.all_reduce(Buffer::of(sent.data), ReduceOp::kSum, {.label = label(bucket)});
}

template <class Half>
void CompressionHook<Half>::finish(const GradientBucket<float>& bucket, ProcessGroup&) {
  Sent& sent = sent_.at(bucket.index);
  sent.work->wait();
  std::vector<float> gradients(sent.data.size());
  std::ranges::transform(sent.data, gradients.begin(),
                         [](Half half) { return static_cast<float>(half); });
  bucket.data.device().copy_from_host(bucket.data.data(), gradients.data(), bucket.data.count());
}

template class CompressionHook<Float16>;
template class CompressionHook<BFloat16>;

}  // namespace ddproof
