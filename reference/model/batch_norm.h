// Batch normalisation, as torch.nn.BatchNorm1d and BatchNorm2d:
//
//   y = weight * (x - mean) / sqrt(variance + eps) + bias     for each channel
//
// In training, mean and (biased) variance are those of the batch, over samples and positions, and
// the running ones follow them: running = (1 - momentum) * running + momentum * value, the variance
// with its unbiased estimate. In evaluation the running ones are used. A batch without a value
// leaves them as they are. PyTorch's count of batches, which only its cumulative average needs, is
// left out.
//
// S. Ioffe, C. Szegedy, "Batch Normalization", ICML 2015, algorithm 1 and the gradients after it.
#pragma once

#include <limits>

#include "reference/model/layer.h"

namespace ddproof {

struct BatchNormOptions {
  std::int64_t channels = 1;
  double eps = 1e-5;
  double momentum = 0.1;
  bool affine = true;  // has weight and bias
};

template <class T>
class BatchNorm : public Module<T> {
 public:
  // Parameters NAME.weight (ones) and NAME.bias (zeros), buffers NAME.running_mean (zeros) and
  // NAME.running_var (ones), all [channels]. Throws ConfigError for an option out of range.
  BatchNorm(Device<T>& device, std::string name, const BatchNormOptions& options)
      : device_(device), name_(std::move(name)), options_(options) {
    const Shape shape = {options.channels};
    internal::check_at_least(name_, "channels", options.channels, 1);
    internal::check_between(name_, "eps", options.eps, 0, std::numeric_limits<double>::infinity());
    internal::check_between(name_, "momentum", options.momentum, 0, 1);
    running_mean_ = {name_ + ".running_mean", Tensor<T>(device, shape)};
    running_var_ = {name_ + ".running_var", Tensor<T>(device, shape)};
    fill(running_var_.value, 1);
    if (!options.affine) return;
    weight_ = {name_ + ".weight", Tensor<T>(device, shape), Tensor<T>(device, shape)};
    bias_ = {name_ + ".bias", Tensor<T>(device, shape), Tensor<T>(device, shape)};
    fill(weight_.value, 1);
  }

  // Input [batch, channels, ...], output the same. Throws ConfigError in training when each channel
  // has a single value, whose variance says nothing.
  const Tensor<T>& forward(const Tensor<T>& input) override {
    check_shape(input);
    input_ = &input;
    trained_ = training_;
    for (Tensor<T>* each : {&batch_mean_, &batch_variance_, &inverse_deviation_}) {
      internal::ensure_shape(*each, device_, {options_.channels});
    }
    if (trained_) measure();
    const Tensor<T>& variance = trained_ ? batch_variance_ : running_var_.value;
    device_.inverse_deviations(options_.channels, variance.data(), options_.eps,
                               inverse_deviation_.data());
    internal::ensure_shape(output_, device_, input.shape());
    device_.batch_norm_forward(shape(), statistics(), input.data(), weight_.value.data(),
                               bias_.value.data(), output_.data());
    return output_;
  }

  const Tensor<T>& backward(const Tensor<T>& output_gradient,
                            const GradientReady<T>& ready) override {
    DDPROOF_CHECK(output_gradient.shape() == output_.shape());
    const std::int64_t channels = options_.channels;
    internal::ensure_shape(sums_, device_, {2 * channels});
    device_.batch_norm_backward_sums(shape(), statistics(), input_->data(), output_gradient.data(),
                                     sums_.data(), sums_.data() + channels);
    if (options_.affine) {
      const T one = from_integer<T>(1);
      device_.axpy(bias_.gradient.data(), sums_.data(), one, channels);
      device_.axpy(weight_.gradient.data(), sums_.data() + channels, one, channels);
      internal::report_ready(bias_, ready);
      internal::report_ready(weight_, ready);
    }
    if (!input_gradient_needed_) return input_gradient_;
    average_sums();
    internal::ensure_shape(input_gradient_, device_, input_->shape());
    device_.batch_norm_backward_input(shape(), statistics(), input_->data(), output_gradient.data(),
                                      weight_.value.data(), sums_.data(), sums_.data() + channels,
                                      input_gradient_.data());
    return input_gradient_;
  }

  void set_input_gradient_needed(bool needed) override { input_gradient_needed_ = needed; }
  void set_training(bool training) override { training_ = training; }

  std::vector<Parameter<T>*> parameters() override {
    return options_.affine ? std::vector<Parameter<T>*>{&weight_, &bias_}
                           : std::vector<Parameter<T>*>{};
  }
  std::vector<ModuleBuffer<T>*> buffers() override { return {&running_mean_, &running_var_}; }

 protected:
  // Makes the statistics of this rank's batch those of the whole batch, and returns how many values
  // a channel then has, of which this rank has `count`. In training only.
  virtual std::int64_t combine_statistics(Tensor<T>& /*mean*/, Tensor<T>& /*variance*/,
                                          std::int64_t count) {
    return count;
  }
  // Makes this rank's sums over a channel those over the whole batch. In training only.
  virtual void combine_sums(Tensor<T>& /*sums*/) {}

  const std::string& name() const { return name_; }

 private:
  void check_shape(const Tensor<T>& input) const {
    Shape expected = {internal::kBatch, options_.channels};
    if (input.shape().size() > 2) {
      expected.insert(expected.end(), input.shape().begin() + 2, input.shape().end());
    }
    internal::check_input(name_, input.shape(), expected);
  }

  void fill(Tensor<T>& tensor, std::int64_t value) {
    device_.fill(tensor.data(), tensor.count(), from_integer<T>(value));
  }

  BatchNormShape shape() const {
    std::int64_t positions = 1;
    for (std::size_t i = 2; i < input_->shape().size(); ++i) positions *= input_->size(i);
    return {.batch = input_->size(0), .channels = options_.channels, .positions = positions};
  }

  ChannelStatistics<T> statistics() const {
    const Tensor<T>& mean = trained_ ? batch_mean_ : running_mean_.value;
    return {mean.data(), inverse_deviation_.data()};
  }

  void measure() {
    const BatchNormShape s = shape();
    device_.batch_norm_statistics(s, input_->data(), batch_mean_.data(), batch_variance_.data());
    count_ = combine_statistics(batch_mean_, batch_variance_, s.per_channel());
    if (count_ == 1) {
      throw ConfigError(name_ + ": one value per channel in the whole batch, input shape " +
                        to_string(input_->shape()) + " here; training needs at least two");
    }
    if (count_ == 0) return;
    const auto n = static_cast<double>(count_);
    follow(running_mean_.value, batch_mean_, options_.momentum);
    follow(running_var_.value, batch_variance_, options_.momentum * (n / (n - 1)));
  }

  // running = (1 - momentum) * running + factor * value.
  void follow(Tensor<T>& running, const Tensor<T>& value, double factor) {
    device_.scaled_copy(running.data(), running.data(), from_real<T>(1 - options_.momentum),
                        running.count());
    device_.axpy(running.data(), value.data(), from_real<T>(factor), running.count());
  }

  // What the input's gradient takes off: nothing where the statistics did not depend on the input.
  void average_sums() {
    if (!trained_ || count_ == 0) return fill(sums_, 0);
    combine_sums(sums_);
    device_.scaled_copy(sums_.data(), sums_.data(), from_real<T>(1 / static_cast<double>(count_)),
                        sums_.count());
  }

  Device<T>& device_;
  std::string name_;
  BatchNormOptions options_;
  Parameter<T> weight_;
  Parameter<T> bias_;
  ModuleBuffer<T> running_mean_;
  ModuleBuffer<T> running_var_;
  const Tensor<T>* input_ = nullptr;
  // Of the last forward:
  bool trained_ = true;  // it was in training
  std::int64_t count_ = 0;
  Tensor<T> batch_mean_;
  Tensor<T> batch_variance_;
  Tensor<T> inverse_deviation_;
  Tensor<T> output_;
  // Of the last backward: the gradient's sums over each channel, then those of its product with x.
  Tensor<T> sums_;
  Tensor<T> input_gradient_;
  bool training_ = true;
  bool input_gradient_needed_ = true;
};

}  // namespace ddproof
