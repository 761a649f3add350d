// y = x W^T + b, as torch.nn.Linear.
#pragma once

#include "reference/model/layer.h"

namespace ddproof {

template <class T>
class Linear final : public Module<T> {
 public:
  // Parameters NAME.weight [out, in] and NAME.bias [out], initialised from `seed`.
  // Throws ConfigError when a size is below 1.
  Linear(Device<T>& device, std::string name, std::int64_t in, std::int64_t out, std::uint64_t seed)
      : device_(device), name_(std::move(name)), in_(in), out_(out) {
    internal::check_at_least(name_, "in", in, 1);
    internal::check_at_least(name_, "out", out, 1);
    weight_ = internal::make_parameter<T>(device, name_ + ".weight", {out, in}, in, seed);
    bias_ = internal::make_parameter<T>(device, name_ + ".bias", {out}, in, seed);
  }

  // Input [batch, in], output [batch, out].
  const Tensor<T>& forward(const Tensor<T>& input) override {
    internal::check_input(name_, input.shape(), {internal::kBatch, in_});
    input_ = &input;
    internal::ensure_shape(output_, device_, {input.size(0), out_});
    device_.linear_forward(shape(), input.data(), weight_.value.data(), bias_.value.data(),
                           output_.data());
    return output_;
  }

  const Tensor<T>& backward(const Tensor<T>& output_gradient,
                            const GradientReady<T>& ready) override {
    DDPROOF_CHECK(output_gradient.shape() == output_.shape());
    device_.linear_backward_parameters(shape(), output_gradient.data(), input_->data(),
                                       weight_.gradient.data(), bias_.gradient.data());
    internal::report_ready(bias_, ready);
    internal::report_ready(weight_, ready);
    if (!input_gradient_needed_) return input_gradient_;
    internal::ensure_shape(input_gradient_, device_, input_->shape());
    device_.linear_backward_input(shape(), output_gradient.data(), weight_.value.data(),
                                  input_gradient_.data());
    return input_gradient_;
  }

  void set_input_gradient_needed(bool needed) override { input_gradient_needed_ = needed; }
  std::vector<Parameter<T>*> parameters() override { return {&weight_, &bias_}; }

 private:
  LinearShape shape() const { return {.batch = input_->size(0), .in = in_, .out = out_}; }

  Device<T>& device_;
  std::string name_;
  std::int64_t in_;
  std::int64_t out_;
  Parameter<T> weight_;
  Parameter<T> bias_;
  const Tensor<T>* input_ = nullptr;
  Tensor<T> output_;
  Tensor<T> input_gradient_;
  bool input_gradient_needed_ = true;
};

}  // namespace ddproof
