#include "reference/oracle/magnitude_device.h"

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "backends/api/check.h"
#include "backends/api/error.h"
#include "reference/oracle/rounding_bound.h"

namespace ddproof {
namespace {

constexpr float kSmallestNormal = std::numeric_limits<float>::min();

void add_underflow(float* magnitudes, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) magnitudes[i] += kSmallestNormal;
}

// How often output places along one side may read one input place: those within a place of it on
// both sides, and at an end twice.
std::int64_t readers_of_an_element(std::int64_t in, std::int64_t out) {
  return 2 * (2 * ((out + in - 1) / in) + 1);
}

// Windows that one element of the input may belong to.
std::int64_t windows_over_an_element(const Pool2dShape& shape) {
  const std::int64_t along = (shape.kernel + shape.stride - 1) / shape.stride;
  return along * along;
}

[[noreturn]] void refuse_batch_norm() {
  throw ConfigError(
      "no rounding bound is known for the gradients of batch norm, whose statistics are sums over "
      "the whole batch; compare a model without it");
}

[[noreturn]] void refuse_update(const std::string& operation) {
  throw ConfigError("MagnitudeDevice: no rounding bound is known for " + operation +
                    "; compare runs of SGD without clipping");
}

}  // namespace

void MagnitudeDevice::adam_update(const AdamRule&, const AdamFactors<float>&, float*, const float*,
                                  const AdamState<float>&, std::int64_t) {
  refuse_update("adam_update");
}

void MagnitudeDevice::lane_sums(LaneSum, const float*, float*, std::int64_t) {
  refuse_update("lane_sums");
}

GradientPath MagnitudeDevice::path_to(const float* gradient) const {
  const auto found = paths_.find(gradient);
  DDPROOF_CHECK(found != paths_.end());
  return found->second;
}

const float* MagnitudeDevice::magnitudes_of(const float* values, std::int64_t count) {
  magnitudes_.resize(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < magnitudes_.size(); ++i) magnitudes_[i] = std::abs(values[i]);
  return magnitudes_.data();
}

void MagnitudeDevice::fill(float* data, std::int64_t count, float value) {
  base_.fill(data, count, value);
}

void MagnitudeDevice::copy(float* to, const float* from, std::int64_t count) {
  base_.copy(to, from, count);
}

void MagnitudeDevice::scaled_copy(float* to, const float* from, float factor, std::int64_t count) {
  base_.scaled_copy(to, magnitudes_of(from, count), std::abs(factor), count);
  add_underflow(to, count);
  ++roundings_;
}

void MagnitudeDevice::axpy(float* to, const float* from, float factor, std::int64_t count) {
  base_.axpy(to, from, factor, count);
  ++roundings_;  // two branches meet; backward adds what is already magnitudes, times 1
}

void MagnitudeDevice::copy_to_host(float* host, const float* device, std::int64_t count) {
  base_.copy_to_host(host, device, count);
}

void MagnitudeDevice::copy_from_host(float* device, const float* host, std::int64_t count) {
  base_.copy_from_host(device, host, count);
}

void MagnitudeDevice::linear_forward(const LinearShape& shape, const float* x, const float* w,
                                     const float* bias, float* y) {
  base_.linear_forward(shape, x, w, bias, y);
}

void MagnitudeDevice::linear_backward_input(const LinearShape& shape, const float* dy,
                                            const float* w, float* dx) {
  base_.linear_backward_input(shape, dy, magnitudes_of(w, shape.out * shape.in), dx);
  add_underflow(dx, shape.batch * shape.in);
  roundings_ += shape.out;
}

void MagnitudeDevice::linear_backward_parameters(const LinearShape& shape, const float* dy,
                                                 const float* x, float* dw, float* dbias) {
  base_.linear_backward_parameters(shape, dy, magnitudes_of(x, shape.batch * shape.in), dw, dbias);
  add_underflow(dw, shape.out * shape.in);
  add_underflow(dbias, shape.out);
  paths_[dw] = paths_[dbias] = {roundings_, shape.batch};
}

void MagnitudeDevice::conv2d_forward(const Conv2dShape& shape, const float* x, const float* w,
                                     const float* bias, float* y) {
  base_.conv2d_forward(shape, x, w, bias, y);
}

void MagnitudeDevice::conv2d_backward_input(const Conv2dShape& shape, const float* dy,
                                            const float* w, float* dx) {
  base_.conv2d_backward_input(shape, dy, magnitudes_of(w, shape.out_channels * shape.taps()), dx);
  add_underflow(dx, shape.batch * shape.in_channels * shape.height * shape.width);
  roundings_ += shape.out_channels * shape.kernel * shape.kernel;
}

void MagnitudeDevice::conv2d_backward_parameters(const Conv2dShape& shape, const float* dy,
                                                 const float* x, float* dw, float* dbias) {
  const std::int64_t inputs = shape.batch * shape.in_channels * shape.height * shape.width;
  base_.conv2d_backward_parameters(shape, dy, magnitudes_of(x, inputs), dw, dbias);
  const GradientPath path{roundings_, shape.batch * shape.out_height() * shape.out_width()};
  add_underflow(dw, shape.out_channels * shape.taps());
  paths_[dw] = path;
  if (dbias == nullptr) return;
  add_underflow(dbias, shape.out_channels);
  paths_[dbias] = path;
}

void MagnitudeDevice::batch_norm_statistics(const BatchNormShape&, const float*, float*, float*) {
  refuse_batch_norm();
}

void MagnitudeDevice::inverse_deviations(std::int64_t channels, const float* variance, double eps,
                                         float* result) {
  base_.inverse_deviations(channels, variance, eps, result);
}

void MagnitudeDevice::batch_norm_forward(const BatchNormShape& shape,
                                         const ChannelStatistics<float>& of, const float* x,
                                         const float* w, const float* bias, float* y) {
  base_.batch_norm_forward(shape, of, x, w, bias, y);
}

void MagnitudeDevice::batch_norm_backward_sums(const BatchNormShape&,
                                               const ChannelStatistics<float>&, const float*,
                                               const float*, float*, float*) {
  refuse_batch_norm();
}

void MagnitudeDevice::batch_norm_backward_input(const BatchNormShape&,
                                                const ChannelStatistics<float>&, const float*,
                                                const float*, const float*, const float*,
                                                const float*, float*) {
  refuse_batch_norm();
}

void MagnitudeDevice::transpose(std::int64_t batch, std::int64_t rows, std::int64_t columns,
                                const float* from, float* to) {
  base_.transpose(batch, rows, columns, from, to);
}

void MagnitudeDevice::bilinear_forward(const BilinearShape& shape, const float* x, float* y) {
  base_.bilinear_forward(shape, x, y);
}

// The weights are positive, and the same in every run.
void MagnitudeDevice::bilinear_backward(const BilinearShape& shape, const float* dy, float* dx) {
  base_.bilinear_backward(shape, dy, dx);
  add_underflow(dx, shape.planes * shape.height * shape.width);
  roundings_ += readers_of_an_element(shape.height, shape.out_height) *
                readers_of_an_element(shape.width, shape.out_width);
}

void MagnitudeDevice::max_pool2d_forward(const Pool2dShape& shape, const float* x, float* y) {
  base_.max_pool2d_forward(shape, x, y);
}

void MagnitudeDevice::max_pool2d_backward(const Pool2dShape& shape, const float* x, const float* dy,
                                          float* dx) {
  base_.max_pool2d_backward(shape, x, dy, dx);
  roundings_ += windows_over_an_element(shape);
}

void MagnitudeDevice::relu_forward(const float* x, float* y, std::int64_t count) {
  base_.relu_forward(x, y, count);
}

void MagnitudeDevice::relu_backward(const float* y, const float* dy, float* dx,
                                    std::int64_t count) {
  base_.relu_backward(y, dy, dx, count);
}

void MagnitudeDevice::softmax_cross_entropy(std::int64_t rows, std::int64_t classes,
                                            const float* logits, const std::int64_t* targets,
                                            float* loss, float* gradient) {
  base_.softmax_cross_entropy(rows, classes, logits, targets, loss, gradient);
  paths_.clear();
  roundings_ = 2;  // of the factor 1/batch: in double, then to float; its product is scaled_copy()
}

double ddp_gradient_bound(const GradientPath& path, std::int64_t world_size, double magnitude) {
  const Precision& precision = kPrecisionOf<float>;
  const bool exact_mean = std::has_single_bit(static_cast<std::uint64_t>(world_size));
  const std::int64_t alone = path.above + path.terms;
  const std::int64_t together = path.above + (path.terms + world_size - 1) / world_size +
                                sequential_height(world_size) + (exact_mean ? 0 : 2);
  // Scaling each rank's part may underflow. The magnitude was itself rounded, down at worst.
  const double whole = (magnitude + static_cast<double>(world_size) * kSmallestNormal) /
                       (1 - gamma(static_cast<double>(alone + 1), precision));
  return two_sums_bound(alone, together, precision, whole);
}

}  // namespace ddproof
