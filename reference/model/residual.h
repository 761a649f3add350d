// main(x) + shortcut(x), the sum that residual networks are made of.
//
// K. He, X. Zhang, S. Ren, J. Sun, "Deep Residual Learning for Image Recognition", CVPR 2016.
#pragma once

#include <memory>

#include "reference/model/layer.h"

namespace ddproof {

template <class T>
class Residual final : public Module<T> {
 public:
  // `shortcut` may be null: the input itself. Requires: the two share no parameters.
  Residual(std::unique_ptr<Module<T>> main, std::unique_ptr<Module<T>> shortcut)
      : main_(std::move(main)), shortcut_(std::move(shortcut)) {
    DDPROOF_CHECK(main_ != nullptr);
  }

  // Requires: both give outputs of one shape.
  const Tensor<T>& forward(const Tensor<T>& input) override {
    const Tensor<T>& main = main_->forward(input);
    return add(main, shortcut_ ? shortcut_->forward(input) : input, output_);
  }

  const Tensor<T>& backward(const Tensor<T>& output_gradient,
                            const GradientReady<T>& ready) override {
    const Tensor<T>& shortcut =
        shortcut_ ? shortcut_->backward(output_gradient, ready) : output_gradient;
    const Tensor<T>& main = main_->backward(output_gradient, ready);
    if (!input_gradient_needed_) return input_gradient_;
    return add(main, shortcut, input_gradient_);
  }

  void set_input_gradient_needed(bool needed) override {
    input_gradient_needed_ = needed;
    main_->set_input_gradient_needed(needed);
    if (shortcut_) shortcut_->set_input_gradient_needed(needed);
  }
  void set_training(bool training) override {
    main_->set_training(training);
    if (shortcut_) shortcut_->set_training(training);
  }

  // Main's, then the shortcut's.
  std::vector<Parameter<T>*> parameters() override {
    return of_both([](Module<T>& part) { return part.parameters(); });
  }
  std::vector<Parameter<T>*> unused_parameters() override {
    return of_both([](Module<T>& part) { return part.unused_parameters(); });
  }
  std::vector<ModuleBuffer<T>*> buffers() override {
    return of_both([](Module<T>& part) { return part.buffers(); });
  }

 private:
  static const Tensor<T>& add(const Tensor<T>& a, const Tensor<T>& b, Tensor<T>& sum) {
    DDPROOF_CHECK(a.shape() == b.shape());
    Device<T>& device = a.device();
    internal::ensure_shape(sum, device, a.shape());
    device.copy(sum.data(), a.data(), a.count());
    device.axpy(sum.data(), b.data(), from_integer<T>(1), a.count());
    return sum;
  }

  template <class List>
  auto of_both(List list) {
    auto all = list(*main_);
    if (!shortcut_) return all;
    const auto more = list(*shortcut_);
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  std::unique_ptr<Module<T>> main_;
  std::unique_ptr<Module<T>> shortcut_;
  Tensor<T> output_;
  Tensor<T> input_gradient_;
  bool input_gradient_needed_ = true;
};

}  // namespace ddproof
