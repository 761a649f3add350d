// A device whose backward pass computes, instead of each gradient, the sum of the magnitudes that
// meet in it, and counts the roundings on the way: what the rounding bounds need, per element, for
// any model.
//
// Forward is the base device's own. Backward runs the same operations on absolute values, so that
// after it a parameter's gradient holds the sum over all paths of |softmax - target| |w| ... |x|.
// Two runs that share parameters and inputs share every activation bit by bit (the contract of
// Device), and so every ReLU and pooling decision; their gradients are then two evaluations of the
// same sums of products, and differ by at most (gamma_h1 + gamma_h2) times this magnitude
// (Higham, section 3.1: each path through h roundings carries a factor within 1 +- gamma_h).
//
// Underflow: a rounded result r is off by at most u max(|r|, smallest normal), so that smallest
// normal number is added to every magnitude.
//
// Batch norm couples the samples of a batch, and ranks that share its statistics add them in
// another order, so activations differ too: no bound is known here, and training through it is
// refused (ConfigError).
//
// One pass: from softmax_cross_entropy() to the next. Threads: one task at a time.
#pragma once

#include <map>
#include <vector>

#include "reference/compute/device.h"

namespace ddproof {

// Roundings between the loss and one element of a parameter's gradient.
struct GradientPath {
  std::int64_t above = 0;  // in what comes from the layers above, the same however a batch is cut
  std::int64_t terms = 0;  // in the sum over samples and positions: grows with the batch
};

class MagnitudeDevice final : public Device<float> {
 public:
  // Requires: `base` outlives this.
  explicit MagnitudeDevice(Device<float>& base) : base_(base) {}

  // Of the last pass; `gradient` is a parameter's gradient.data().
  // Requires: the pass reached that parameter.
  GradientPath path_to(const float* gradient) const;

  std::string_view name() const override { return base_.name(); }
  float* allocate(std::int64_t count) override { return base_.allocate(count); }
  void deallocate(float* data) override { base_.deallocate(data); }
  void fill(float* data, std::int64_t count, float value) override;
  void copy(float* to, const float* from, std::int64_t count) override;
  void scaled_copy(float* to, const float* from, float factor, std::int64_t count) override;
  void axpy(float* to, const float* from, float factor, std::int64_t count) override;
  void copy_to_host(float* host, const float* device, std::int64_t count) override;
  void copy_from_host(float* device, const float* host, std::int64_t count) override;

  void linear_forward(const LinearShape& shape, const float* x, const float* w, const float* bias,
                      float* y) override;
  void linear_backward_input(const LinearShape& shape, const float* dy, const float* w,
                             float* dx) override;
  void linear_backward_parameters(const LinearShape& shape, const float* dy, const float* x,
                                  float* dw, float* dbias) override;
  void conv2d_forward(const Conv2dShape& shape, const float* x, const float* w, const float* bias,
                      float* y) override;
  void conv2d_backward_input(const Conv2dShape& shape, const float* dy, const float* w,
                             float* dx) override;
  void conv2d_backward_parameters(const Conv2dShape& shape, const float* dy, const float* x,
                                  float* dw, float* dbias) override;
  void batch_norm_statistics(const BatchNormShape& shape, const float* x, float* mean,
                             float* variance) override;
  void inverse_deviations(std::int64_t channels, const float* variance, double eps,
                          float* result) override;
  void batch_norm_forward(const BatchNormShape& shape, const ChannelStatistics<float>& of,
                          const float* x, const float* w, const float* bias, float* y) override;
  void batch_norm_backward_sums(const BatchNormShape& shape, const ChannelStatistics<float>& of,
                                const float* x, const float* dy, float* sum_dy,
                                float* sum_dy_x) override;
  void batch_norm_backward_input(const BatchNormShape& shape, const ChannelStatistics<float>& of,
                                 const float* x, const float* dy, const float* w,
                                 const float* mean_dy, const float* mean_dy_x, float* dx) override;

  void transpose(std::int64_t batch, std::int64_t rows, std::int64_t columns, const float* from,
                 float* to) override;
  void bilinear_forward(const BilinearShape& shape, const float* x, float* y) override;
  void bilinear_backward(const BilinearShape& shape, const float* dy, float* dx) override;
  void max_pool2d_forward(const Pool2dShape& shape, const float* x, float* y) override;
  void max_pool2d_backward(const Pool2dShape& shape, const float* x, const float* dy,
                           float* dx) override;
  void relu_forward(const float* x, float* y, std::int64_t count) override;
  void relu_backward(const float* y, const float* dy, float* dx, std::int64_t count) override;
  void softmax_cross_entropy(std::int64_t rows, std::int64_t classes, const float* logits,
                             const std::int64_t* targets, float* loss, float* gradient) override;
  void sgd_update(const SgdRule& rule, const SgdFactors<float>& factors, float* w,
                  const float* gradient, float* buffer, std::int64_t count) override {
    base_.sgd_update(rule, factors, w, gradient, buffer, count);
  }
  // Throw ConfigError: no bound is known for what they make of a gradient that differs.
  void adam_update(const AdamRule& rule, const AdamFactors<float>& factors, float* w,
                   const float* gradient, const AdamState<float>& state,
                   std::int64_t count) override;
  void lane_sums(LaneSum kind, const float* x, float* sums, std::int64_t count) override;

 private:
  // |values|, valid until the next call.
  const float* magnitudes_of(const float* values, std::int64_t count);

  Device<float>& base_;
  std::vector<float> magnitudes_;
  std::int64_t roundings_ = 0;  // on the way from the loss to where backward is now
  std::map<const float*, GradientPath> paths_;
};

// |gradient of one device - mean gradient of world_size ranks| for one element, where the ranks
// cut the batch into equal parts and average by multiplying with the rounded reciprocal first.
// `path` and `magnitude` come from a pass over the whole batch, with its mean loss.
double ddp_gradient_bound(const GradientPath& path, std::int64_t world_size, double magnitude);

}  // namespace ddproof
