// The memory of the buckets: every parameter's gradient is a view into one (PyTorch's
// gradient_as_bucket_view), so that nothing is copied in or out of a collective.
//
// Invariants: while it lives, parameter i's gradient lies at its place, unless somebody moved it
// (is_in_place() tells). A rebuild moves the gradients and their values; when the buckets go, each
// gradient gets memory of its own again. The last bucket has one more element, for the reducer.
// Threads: one task at a time.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "reference/ddp/buckets.h"
#include "reference/model/module.h"

namespace ddproof {

template <class T>
class GradientBuckets {
 public:
  struct Bucket {
    std::vector<std::size_t> indices;       // of the parameters, as their gradients lie
    std::vector<Parameter<T>*> parameters;  // the same
    Tensor<T> memory;                       // the gradients, and what belongs to the reducer
    Tensor<T> gradients;                    // a view: the gradients alone
  };

  // Requires: the parameters outlive this, and nobody else moves their gradients meanwhile.
  explicit GradientBuckets(std::vector<Parameter<T>*> parameters)
      : parameters_(std::move(parameters)) {}
  ~GradientBuckets() {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (!is_in_place(i)) continue;
      const Tensor<T>& value = parameters_[i]->value;
      move_gradient(*parameters_[i], Tensor<T>(value.device(), value.shape()));
    }
  }
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  // Requires: every parameter is in exactly one bucket.
  void build(const std::vector<std::vector<std::size_t>>& assignment) {
    std::vector<Bucket> buckets;
    places_.assign(parameters_.size(), {});
    for (std::size_t i = 0; i < assignment.size(); ++i) {
      buckets.push_back(make_bucket(assignment[i], i + 1 == assignment.size() ? 1 : 0));
      T* place = buckets.back().memory.data();
      for (std::size_t index : assignment[i]) {
        Parameter<T>& parameter = *parameters_[index];
        places_[index] = {i, place};
        move_gradient(parameter,
                      Tensor<T>::view(parameter.value.device(), place, parameter.value.shape()));
        place += parameter.value.count();
      }
    }
    buckets_ = std::move(buckets);  // only now: the gradients were in the old ones
  }

  // What assign_buckets() asks of the parameters.
  std::vector<BucketTensor> tensors() const {
    std::vector<BucketTensor> result;
    for (const Parameter<T>* parameter : parameters_) {
      result.push_back(
          {.bytes = parameter->value.count() * std::int64_t{sizeof(T)}, .type = element_of<T>()});
    }
    return result;
  }

  const std::vector<Parameter<T>*>& parameters() const { return parameters_; }
  std::vector<Bucket>& buckets() { return buckets_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  std::size_t bucket_of(std::size_t index) const { return places_[index].bucket; }
  bool is_in_place(std::size_t index) const {
    return parameters_[index]->gradient.data() == places_[index].data;
  }
  // A view of the last bucket's one more element.
  Tensor<T> extra_element() {
    Tensor<T>& memory = buckets_.back().memory;
    return Tensor<T>::view(memory.device(), memory.data() + memory.count() - 1, {1});
  }

 private:
  struct Place {
    std::size_t bucket = 0;
    T* data = nullptr;  // where the gradient begins
  };

  Bucket make_bucket(const std::vector<std::size_t>& indices, std::int64_t extra) const {
    Bucket bucket{.indices = indices, .parameters = {}, .memory = {}, .gradients = {}};
    std::int64_t count = 0;
    for (std::size_t index : indices) {
      bucket.parameters.push_back(parameters_[index]);
      count += parameters_[index]->value.count();
    }
    Device<T>& device = parameters_[0]->value.device();
    bucket.memory = Tensor<T>(device, {count + extra});
    bucket.gradients = Tensor<T>::view(device, bucket.memory.data(), {count});
    return bucket;
  }

  static void move_gradient(Parameter<T>& parameter, Tensor<T> place) {
    place.device().copy(place.data(), parameter.gradient.data(), place.count());
    parameter.gradient = std::move(place);
  }

  std::vector<Parameter<T>*> parameters_;
  std::vector<Bucket> buckets_;
  std::vector<Place> places_;  // by parameter
};

}  // namespace ddproof
