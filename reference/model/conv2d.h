// A cross-correlation with zero padding, as torch.nn.Conv2d with square kernels and one group.
#pragma once

#include "reference/model/layer.h"

namespace ddproof {

struct Conv2dOptions {
  std::int64_t in_channels = 1;
  std::int64_t out_channels = 1;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
  bool bias = true;
};

template <class T>
class Conv2d final : public Module<T> {
 public:
  // Parameters NAME.weight [out_channels, in_channels, kernel, kernel] and, if wanted, NAME.bias.
  // Throws ConfigError for an option out of range.
  Conv2d(Device<T>& device, std::string name, const Conv2dOptions& options, std::uint64_t seed)
      : device_(device), name_(std::move(name)), options_(options) {
    internal::check_at_least(name_, "in_channels", options.in_channels, 1);
    internal::check_at_least(name_, "out_channels", options.out_channels, 1);
    internal::check_at_least(name_, "kernel", options.kernel, 1);
    internal::check_at_least(name_, "stride", options.stride, 1);
    internal::check_at_least(name_, "padding", options.padding, 0);
    internal::check_at_least(name_, "dilation", options.dilation, 1);
    const Shape shape = {options.out_channels, options.in_channels, options.kernel, options.kernel};
    const std::int64_t fan_in = options.in_channels * options.kernel * options.kernel;
    weight_ = internal::make_parameter<T>(device, name_ + ".weight", shape, fan_in, seed);
    if (!options.bias) return;
    bias_ =
        internal::make_parameter<T>(device, name_ + ".bias", {options.out_channels}, fan_in, seed);
  }

  // Input [batch, in_channels, height, width], output [batch, out_channels, oh, ow].
  // Throws ConfigError when the kernel does not fit into the padded input.
  const Tensor<T>& forward(const Tensor<T>& input) override {
    Shape expected = {internal::kBatch, options_.in_channels, 1, 1};
    if (input.shape().size() == 4) {
      expected[2] = input.size(2);
      expected[3] = input.size(3);
    }
    internal::check_input(name_, input.shape(), expected);
    const std::int64_t span = options_.dilation * (options_.kernel - 1) + 1;
    internal::check_at_least(name_, "padded height", input.size(2) + 2 * options_.padding, span);
    internal::check_at_least(name_, "padded width", input.size(3) + 2 * options_.padding, span);
    input_ = &input;
    const Conv2dShape s = shape();
    internal::ensure_shape(output_, device_,
                           {s.batch, s.out_channels, s.out_height(), s.out_width()});
    device_.conv2d_forward(s, input.data(), weight_.value.data(), bias_.value.data(),
                           output_.data());
    return output_;
  }

  const Tensor<T>& backward(const Tensor<T>& output_gradient,
                            const GradientReady<T>& ready) override {
    DDPROOF_CHECK(output_gradient.shape() == output_.shape());
    device_.conv2d_backward_parameters(shape(), output_gradient.data(), input_->data(),
                                       weight_.gradient.data(), bias_.gradient.data());
    if (options_.bias) internal::report_ready(bias_, ready);
    internal::report_ready(weight_, ready);
    if (!input_gradient_needed_) return input_gradient_;
    internal::ensure_shape(input_gradient_, device_, input_->shape());
    device_.conv2d_backward_input(shape(), output_gradient.data(), weight_.value.data(),
                                  input_gradient_.data());
    return input_gradient_;
  }

  void set_input_gradient_needed(bool needed) override { input_gradient_needed_ = needed; }
  std::vector<Parameter<T>*> parameters() override {
    return options_.bias ? std::vector<Parameter<T>*>{&weight_, &bias_}
                         : std::vector<Parameter<T>*>{&weight_};
  }

 private:
  Conv2dShape shape() const {
    return {.batch = input_->size(0),
            .in_channels = options_.in_channels,
            .height = input_->size(2),
            .width = input_->size(3),
            .out_channels = options_.out_channels,
            .kernel = options_.kernel,
            .stride = options_.stride,
            .padding = options_.padding,
            .dilation = options_.dilation};
  }

  Device<T>& device_;
  std::string name_;
  Conv2dOptions options_;
  Parameter<T> weight_;
  Parameter<T> bias_;
  const Tensor<T>* input_ = nullptr;
  Tensor<T> output_;
  Tensor<T> input_gradient_;
  bool input_gradient_needed_ = true;
};

}  // namespace ddproof
