// What a segmentation network ends with: logits at the size of the image, one row for each pixel.
#pragma once

#include "reference/model/layer.h"

namespace ddproof {

// Interpolates each channel to height x width, as torch.nn.functional.interpolate with mode
// bilinear and align_corners False.
template <class T>
class UpsampleBilinear final : public Module<T> {
 public:
  // Throws ConfigError when a size is below 1.
  UpsampleBilinear(Device<T>& device, std::string name, std::int64_t height, std::int64_t width)
      : device_(device), name_(std::move(name)), height_(height), width_(width) {
    internal::check_at_least(name_, "height", height, 1);
    internal::check_at_least(name_, "width", width, 1);
  }

  // Input [batch, channels, h, w] of any size, output [batch, channels, height, width].
  const Tensor<T>& forward(const Tensor<T>& input) override {
    Shape expected(4, internal::kBatch);
    if (input.shape().size() == 4) expected = input.shape();
    internal::check_input(name_, input.shape(), expected);
    internal::check_at_least(name_, "input height", input.size(2), 1);
    internal::check_at_least(name_, "input width", input.size(3), 1);
    input_shape_ = input.shape();
    internal::ensure_shape(output_, device_, {input.size(0), input.size(1), height_, width_});
    device_.bilinear_forward(shape(), input.data(), output_.data());
    return output_;
  }

  const Tensor<T>& backward(const Tensor<T>& output_gradient, const GradientReady<T>&) override {
    DDPROOF_CHECK(output_gradient.shape() == output_.shape());
    internal::ensure_shape(input_gradient_, device_, input_shape_);
    device_.bilinear_backward(shape(), output_gradient.data(), input_gradient_.data());
    return input_gradient_;
  }

  std::vector<Parameter<T>*> parameters() override { return {}; }

 private:
  BilinearShape shape() const {
    return {.planes = input_shape_[0] * input_shape_[1],
            .height = input_shape_[2],
            .width = input_shape_[3],
            .out_height = height_,
            .out_width = width_};
  }

  Device<T>& device_;
  std::string name_;
  std::int64_t height_;
  std::int64_t width_;
  Shape input_shape_;
  Tensor<T> output_;
  Tensor<T> input_gradient_;
};

// [batch, channels, height, width] to [batch * height * width, channels]: the rows that the loss
// takes, in the order of the pixels of each sample.
template <class T>
class PixelRows final : public Module<T> {
 public:
  explicit PixelRows(Device<T>& device) : device_(device) {}

  const Tensor<T>& forward(const Tensor<T>& input) override {
    Shape expected(4, internal::kBatch);
    if (input.shape().size() == 4) expected = input.shape();
    internal::check_input("pixel rows", input.shape(), expected);
    input_shape_ = input.shape();
    internal::ensure_shape(output_, device_, {input.size(0) * pixels(), input.size(1)});
    device_.transpose(input.size(0), input.size(1), pixels(), input.data(), output_.data());
    return output_;
  }

  const Tensor<T>& backward(const Tensor<T>& output_gradient, const GradientReady<T>&) override {
    DDPROOF_CHECK(output_gradient.shape() == output_.shape());
    internal::ensure_shape(input_gradient_, device_, input_shape_);
    device_.transpose(input_shape_[0], pixels(), input_shape_[1], output_gradient.data(),
                      input_gradient_.data());
    return input_gradient_;
  }

  std::vector<Parameter<T>*> parameters() override { return {}; }

 private:
  std::int64_t pixels() const { return input_shape_[2] * input_shape_[3]; }

  Device<T>& device_;
  Shape input_shape_;
  Tensor<T> output_;
  Tensor<T> input_gradient_;
};

}  // namespace ddproof
