// Branches that read the same input, their outputs side by side as channels: torch.cat over
// dimension 1.
#pragma once

#include <memory>

#include "reference/model/layer.h"

namespace ddproof {

template <class T>
class Concatenate final : public Module<T> {
 public:
  // Requires: at least one branch, none null; no two share parameters.
  explicit Concatenate(std::vector<std::unique_ptr<Module<T>>> branches)
      : branches_(std::move(branches)), gradients_(branches_.size()) {
    DDPROOF_CHECK(!branches_.empty());
  }

  // Requires: the branches' outputs [batch, channels, ...] differ in their channels alone.
  const Tensor<T>& forward(const Tensor<T>& input) override {
    std::vector<const Tensor<T>*> outputs;
    shapes_.clear();
    std::int64_t channels = 0;
    for (const auto& branch : branches_) {
      outputs.push_back(&branch->forward(input));
      shapes_.push_back(outputs.back()->shape());
      channels += shapes_.back()[1];
    }
    Shape shape = shapes_[0];
    shape[1] = channels;
    internal::ensure_shape(output_, input.device(), shape);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      for (std::int64_t n = 0; n < shape[0]; ++n) {
        input.device().copy(output_.data() + place(i, n), outputs[i]->data() + n * per_sample(i),
                            per_sample(i));
      }
    }
    return output_;
  }

  // The last branch first; the gradients of the input are added in that order.
  const Tensor<T>& backward(const Tensor<T>& output_gradient,
                            const GradientReady<T>& ready) override {
    DDPROOF_CHECK(output_gradient.shape() == output_.shape());
    Device<T>& device = output_gradient.device();
    for (std::size_t i = branches_.size(); i-- > 0;) {
      internal::ensure_shape(gradients_[i], device, shapes_[i]);
      for (std::int64_t n = 0; n < shapes_[i][0]; ++n) {
        device.copy(gradients_[i].data() + n * per_sample(i), output_gradient.data() + place(i, n),
                    per_sample(i));
      }
      const Tensor<T>& of_branch = branches_[i]->backward(gradients_[i], ready);
      if (!input_gradient_needed_) continue;
      if (i + 1 == branches_.size()) {
        internal::ensure_shape(input_gradient_, device, of_branch.shape());
        device.copy(input_gradient_.data(), of_branch.data(), of_branch.count());
      } else {
        device.axpy(input_gradient_.data(), of_branch.data(), from_integer<T>(1),
                    of_branch.count());
      }
    }
    return input_gradient_;
  }

  void set_input_gradient_needed(bool needed) override {
    input_gradient_needed_ = needed;
    for (const auto& branch : branches_) branch->set_input_gradient_needed(needed);
  }
  void set_training(bool training) override {
    for (const auto& branch : branches_) branch->set_training(training);
  }

  std::vector<Parameter<T>*> parameters() override {
    return of_all<Parameter<T>*>([](Module<T>& branch) { return branch.parameters(); });
  }
  std::vector<Parameter<T>*> unused_parameters() override {
    return of_all<Parameter<T>*>([](Module<T>& branch) { return branch.unused_parameters(); });
  }
  std::vector<ModuleBuffer<T>*> buffers() override {
    return of_all<ModuleBuffer<T>*>([](Module<T>& branch) { return branch.buffers(); });
  }

 private:
  std::int64_t per_sample(std::size_t branch) const {
    const Shape& shape = shapes_[branch];
    return element_count({shape.begin() + 1, shape.end()});
  }
  // Where a sample's part from this branch begins in the output.
  std::int64_t place(std::size_t branch, std::int64_t sample) const {
    const Shape& shape = output_.shape();
    std::int64_t at = sample * element_count({shape.begin() + 1, shape.end()});
    for (std::size_t i = 0; i < branch; ++i) at += per_sample(i);
    return at;
  }

  template <class Item, class List>
  std::vector<Item> of_all(List list) {
    std::vector<Item> all;
    for (const auto& branch : branches_) {
      const auto more = list(*branch);
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }

  std::vector<std::unique_ptr<Module<T>>> branches_;
  std::vector<Shape> shapes_;  // of their outputs in the last forward
  Tensor<T> output_;
  std::vector<Tensor<T>> gradients_;  // of their outputs
  Tensor<T> input_gradient_;
  bool input_gradient_needed_ = true;
};

}  // namespace ddproof
