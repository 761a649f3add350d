// The layers without parameters: ReLU, MaxPool2d and Flatten, as in torch.nn, and the mean of each
// channel.
#pragma once

#include "reference/model/layer.h"

namespace ddproof {

// y = max(x, 0); NaN stays NaN. Any shape.
template <class T>
class ReLU final : public Module<T> {
 public:
  explicit ReLU(Device<T>& device) : device_(device) {}

  const Tensor<T>& forward(const Tensor<T>& input) override {
    internal::ensure_shape(output_, device_, input.shape());
    device_.relu_forward(input.data(), output_.data(), input.count());
    return output_;
  }

  const Tensor<T>& backward(const Tensor<T>& output_gradient, const GradientReady<T>&) override {
    DDPROOF_CHECK(output_gradient.shape() == output_.shape());
    internal::ensure_shape(input_gradient_, device_, output_.shape());
    device_.relu_backward(output_.data(), output_gradient.data(), input_gradient_.data(),
                          output_.count());
    return input_gradient_;
  }

  std::vector<Parameter<T>*> parameters() override { return {}; }

 private:
  Device<T>& device_;
  Tensor<T> output_;
  Tensor<T> input_gradient_;
};

// The largest element of each kernel x kernel window; without padding, a rest is left out.
template <class T>
class MaxPool2d final : public Module<T> {
 public:
  // Throws ConfigError when kernel or stride is below 1.
  MaxPool2d(Device<T>& device, std::string name, std::int64_t kernel, std::int64_t stride)
      : device_(device), name_(std::move(name)), kernel_(kernel), stride_(stride) {
    internal::check_at_least(name_, "kernel", kernel, 1);
    internal::check_at_least(name_, "stride", stride, 1);
  }

  // Input [batch, channels, height, width], output [batch, channels, oh, ow].
  const Tensor<T>& forward(const Tensor<T>& input) override {
    Shape expected(4, internal::kBatch);
    if (input.shape().size() == 4) expected = input.shape();
    internal::check_input(name_, input.shape(), expected);
    internal::check_at_least(name_, "input height", input.size(2), kernel_);
    internal::check_at_least(name_, "input width", input.size(3), kernel_);
    input_ = &input;
    const Pool2dShape s = shape();
    internal::ensure_shape(output_, device_,
                           {input.size(0), input.size(1), s.out_height(), s.out_width()});
    device_.max_pool2d_forward(s, input.data(), output_.data());
    return output_;
  }

  const Tensor<T>& backward(const Tensor<T>& output_gradient, const GradientReady<T>&) override {
    DDPROOF_CHECK(output_gradient.shape() == output_.shape());
    internal::ensure_shape(input_gradient_, device_, input_->shape());
    device_.max_pool2d_backward(shape(), input_->data(), output_gradient.data(),
                                input_gradient_.data());
    return input_gradient_;
  }

  std::vector<Parameter<T>*> parameters() override { return {}; }

 private:
  Pool2dShape shape() const {
    return {.planes = input_->size(0) * input_->size(1),
            .height = input_->size(2),
            .width = input_->size(3),
            .kernel = kernel_,
            .stride = stride_};
  }

  Device<T>& device_;
  std::string name_;
  std::int64_t kernel_;
  std::int64_t stride_;
  const Tensor<T>* input_ = nullptr;
  Tensor<T> output_;
  Tensor<T> input_gradient_;
};

// The mean over each channel's positions: [batch, channels, height, width] to [batch, channels], as
// torch.nn.AdaptiveAvgPool2d(1) and Flatten. A linear layer whose weights are all 1/positions,
// rounded.
template <class T>
class GlobalAveragePool final : public Module<T> {
 public:
  explicit GlobalAveragePool(Device<T>& device) : device_(device) {}

  const Tensor<T>& forward(const Tensor<T>& input) override {
    Shape expected(4, internal::kBatch);
    if (input.shape().size() == 4) expected = input.shape();
    internal::check_input("average pool", input.shape(), expected);
    input_shape_ = input.shape();
    const std::int64_t positions = input.size(2) * input.size(3);
    internal::check_at_least("average pool", "positions", positions, 1);
    if (weight_.count() != positions) {
      weight_ = Tensor<T>(device_, {positions});
      device_.fill(weight_.data(), positions, reciprocal_of<T>(positions));
      zero_ = Tensor<T>(device_, {1});
    }
    internal::ensure_shape(output_, device_, {input.size(0), input.size(1)});
    device_.linear_forward(shape(), input.data(), weight_.data(), zero_.data(), output_.data());
    return output_;
  }

  const Tensor<T>& backward(const Tensor<T>& output_gradient, const GradientReady<T>&) override {
    DDPROOF_CHECK(output_gradient.shape() == output_.shape());
    internal::ensure_shape(input_gradient_, device_, input_shape_);
    device_.linear_backward_input(shape(), output_gradient.data(), weight_.data(),
                                  input_gradient_.data());
    return input_gradient_;
  }

  std::vector<Parameter<T>*> parameters() override { return {}; }

 private:
  LinearShape shape() const { return {.batch = output_.count(), .in = weight_.count(), .out = 1}; }

  Device<T>& device_;
  Shape input_shape_;
  Tensor<T> weight_;
  Tensor<T> zero_;
  Tensor<T> output_;
  Tensor<T> input_gradient_;
};

// [batch, a, b, ...] to [batch, a*b*...]: views of the same memory, both ways.
template <class T>
class Flatten final : public Module<T> {
 public:
  // Throws ConfigError for a tensor without a batch dimension.
  const Tensor<T>& forward(const Tensor<T>& input) override {
    internal::check_at_least("flatten", "dimensions",
                             static_cast<std::int64_t>(input.shape().size()), 1);
    input_shape_ = input.shape();
    const std::int64_t features = element_count({input_shape_.begin() + 1, input_shape_.end()});
    output_ = view(input, {input.size(0), features});
    return output_;
  }

  const Tensor<T>& backward(const Tensor<T>& output_gradient, const GradientReady<T>&) override {
    DDPROOF_CHECK(output_gradient.shape() == output_.shape());
    input_gradient_ = view(output_gradient, input_shape_);
    return input_gradient_;
  }

  std::vector<Parameter<T>*> parameters() override { return {}; }

 private:
  // Handed out as const only.
  static Tensor<T> view(const Tensor<T>& of, Shape shape) {
    return Tensor<T>::view(of.device(), const_cast<T*>(of.data()), std::move(shape));
  }

  Shape input_shape_;
  Tensor<T> output_;
  Tensor<T> input_gradient_;
};

}  // namespace ddproof
