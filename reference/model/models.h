// The models that the trainer offers by name, for images of any size and a number of classes.
//
//   mlp  flatten, fc1 -> 512, ReLU, fc2 -> 512, ReLU, fc3 -> classes
//   cnn  conv1 3x3 -> 32, ReLU, pool 2, conv2 3x3 -> 64, ReLU, pool 2, flatten,
//        fc1 -> 128, ReLU, fc2 -> classes                    (both convolutions with padding 1)
//   resnet8, deeplab  see resnet.h and deeplab.h; the latter gives a row for each pixel
//
// Parameter names are PyTorch's: "conv1.weight", "fc1.bias". On 1x28x28 with 10 classes the mlp has
// 669,706 parameters, the cnn 421,642 and resnet8 77,754.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "reference/model/activation.h"
#include "reference/model/conv2d.h"
#include "reference/model/deeplab.h"
#include "reference/model/linear.h"
#include "reference/model/resnet.h"
#include "reference/model/sequential.h"

namespace ddproof {

// One input sample.
struct ImageShape {
  std::int64_t channels = 1;
  std::int64_t height = 28;
  std::int64_t width = 28;

  std::int64_t count() const { return channels * height * width; }
};

namespace internal {

template <class T>
std::unique_ptr<Module<T>> make_mlp(Device<T>& device, const ImageShape& image,
                                    std::int64_t classes, std::uint64_t seed) {
  constexpr std::int64_t kHidden = 512;
  std::vector<std::unique_ptr<Module<T>>> layers;
  layers.push_back(std::make_unique<Flatten<T>>());
  layers.push_back(std::make_unique<Linear<T>>(device, "fc1", image.count(), kHidden, seed));
  layers.push_back(std::make_unique<ReLU<T>>(device));
  layers.push_back(std::make_unique<Linear<T>>(device, "fc2", kHidden, kHidden, seed));
  layers.push_back(std::make_unique<ReLU<T>>(device));
  layers.push_back(std::make_unique<Linear<T>>(device, "fc3", kHidden, classes, seed));
  return std::make_unique<Sequential<T>>(std::move(layers));
}

template <class T>
std::unique_ptr<Module<T>> make_cnn(Device<T>& device, const ImageShape& image,
                                    std::int64_t classes, std::uint64_t seed) {
  check_at_least("cnn", "image height", image.height, 4);
  check_at_least("cnn", "image width", image.width, 4);
  const Conv2dOptions conv1 = {
      .in_channels = image.channels, .out_channels = 32, .kernel = 3, .padding = 1};
  const Conv2dOptions conv2 = {.in_channels = 32, .out_channels = 64, .kernel = 3, .padding = 1};
  const std::int64_t features = 64 * (image.height / 4) * (image.width / 4);
  std::vector<std::unique_ptr<Module<T>>> layers;
  layers.push_back(std::make_unique<Conv2d<T>>(device, "conv1", conv1, seed));
  layers.push_back(std::make_unique<ReLU<T>>(device));
  layers.push_back(std::make_unique<MaxPool2d<T>>(device, "pool1", 2, 2));
  layers.push_back(std::make_unique<Conv2d<T>>(device, "conv2", conv2, seed));
  layers.push_back(std::make_unique<ReLU<T>>(device));
  layers.push_back(std::make_unique<MaxPool2d<T>>(device, "pool2", 2, 2));
  layers.push_back(std::make_unique<Flatten<T>>());
  layers.push_back(std::make_unique<Linear<T>>(device, "fc1", features, 128, seed));
  layers.push_back(std::make_unique<ReLU<T>>(device));
  layers.push_back(std::make_unique<Linear<T>>(device, "fc2", 128, classes, seed));
  return std::make_unique<Sequential<T>>(std::move(layers));
}

}  // namespace internal

// Makes "mlp", "cnn", "resnet8" or "deeplab" with values initialised from `seed`
// (initialization.h). Its forward takes [batch, channels, height, width] and gives [batch,
// classes], deeplab [batch * height * width, classes]; its backward leaves out the gradient of the
// images. Batch norm, where the model has it, shares its statistics with the ranks of `statistics`
// (sync_batch_norm.h) if that is not null.
// Requires: `device` and `statistics` outlive the model.
// Throws ConfigError for another name, or a size that the model cannot take.
template <class T>
std::unique_ptr<Module<T>> make_model(std::string_view name, const ImageShape& image,
                                      std::int64_t classes, Device<T>& device, std::uint64_t seed,
                                      ProcessGroup* statistics = nullptr) {
  const std::string model(name);
  if (name != "mlp" && name != "cnn" && name != "resnet8" && name != "deeplab") {
    throw ConfigError("model: got '" + model + "', expected mlp, cnn, resnet8 or deeplab");
  }
  internal::check_at_least(model, "channels", image.channels, 1);
  internal::check_at_least(model, "image height", image.height, 1);
  internal::check_at_least(model, "image width", image.width, 1);
  internal::check_at_least(model, "classes", classes, 1);
  const internal::Builder<T> build{device, seed, statistics};
  auto module = name == "mlp"       ? internal::make_mlp(device, image, classes, seed)
                : name == "cnn"     ? internal::make_cnn(device, image, classes, seed)
                : name == "resnet8" ? internal::make_resnet8(build, image.channels, classes)
                                    : internal::make_deeplab(build, image.channels, image.height,
                                                             image.width, classes);
  module->set_input_gradient_needed(false);
  return module;
}

}  // namespace ddproof
