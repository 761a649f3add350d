// A small network for segmentation in the manner of DeepLab v3: a residual backbone that stops at a
// quarter of the image's size and looks further by dilated convolutions, atrous spatial pyramid
// pooling, and bilinear interpolation back to the image's size.
//
//   backbone    conv1 3x3 / 2 -> 16, bn1, ReLU; layer1.0, a basic block / 2 -> 32; layer2.0, one
//               with dilation 2 -> 64
//   classifier  0: convs.0 1x1, convs.1 and convs.2 3x3 with rates 2 and 4, each -> 32, batch norm,
//               ReLU, side by side; project 1x1 -> 32, batch norm, ReLU. 1: 3x3, 2: batch norm,
//               ReLU, 4: 1x1 -> classes, with a bias
//
// Names are torchvision's. Left out, beside depth: the branch that pools the whole image, whose
// batch norm has one value per sample, and the dropout.
//
// L.-C. Chen, G. Papandreou, F. Schroff, H. Adam, "Rethinking Atrous Convolution for Semantic Image
// Segmentation", arXiv:1706.05587, section 3.
#pragma once

#include <string>

#include "reference/model/concatenate.h"
#include "reference/model/per_pixel.h"
#include "reference/model/resnet.h"

namespace ddproof::internal {

inline constexpr std::int64_t kPyramidChannels = 32;
inline constexpr std::int64_t kPyramidRates[] = {2, 4};

// Convolution, batch norm and ReLU, with the size of the image kept.
template <class T>
void add_pyramid_level(const Builder<T>& build, Layers<T>& layers, const std::string& convolution,
                       const std::string& batch_norm, std::int64_t in, std::int64_t kernel,
                       std::int64_t rate) {
  build.convolution(layers, convolution,
                    {.in_channels = in,
                     .out_channels = kPyramidChannels,
                     .kernel = kernel,
                     .padding = kernel == 1 ? 0 : rate,
                     .dilation = rate});
  build.batch_norm(layers, batch_norm, kPyramidChannels);
  layers.push_back(std::make_unique<ReLU<T>>(build.device));
}

template <class T>
std::unique_ptr<Module<T>> make_pyramid(const Builder<T>& build, const std::string& name,
                                        std::int64_t in) {
  Layers<T> branches;
  const auto add_branch = [&](std::int64_t kernel, std::int64_t rate) {
    const std::string branch = name + ".convs." + std::to_string(branches.size());
    Layers<T> layers;
    add_pyramid_level(build, layers, branch + ".0", branch + ".1", in, kernel, rate);
    branches.push_back(std::make_unique<Sequential<T>>(std::move(layers)));
  };
  add_branch(1, 1);
  for (const std::int64_t rate : kPyramidRates) add_branch(3, rate);
  const auto width = static_cast<std::int64_t>(branches.size()) * kPyramidChannels;
  Layers<T> layers;
  layers.push_back(std::make_unique<Concatenate<T>>(std::move(branches)));
  add_pyramid_level(build, layers, name + ".project.0", name + ".project.1", width, 1, 1);
  return std::make_unique<Sequential<T>>(std::move(layers));
}

template <class T>
std::unique_ptr<Module<T>> make_deeplab(const Builder<T>& build, std::int64_t channels,
                                        std::int64_t height, std::int64_t width,
                                        std::int64_t classes) {
  Layers<T> layers;
  build.convolution(
      layers, "backbone.conv1",
      {.in_channels = channels, .out_channels = 16, .kernel = 3, .stride = 2, .padding = 1});
  build.batch_norm(layers, "backbone.bn1", 16);
  layers.push_back(std::make_unique<ReLU<T>>(build.device));
  layers.push_back(
      make_basic_block(build, "backbone.layer1.0", {.in = 16, .out = 32, .stride = 2}));
  layers.push_back(
      make_basic_block(build, "backbone.layer2.0", {.in = 32, .out = 64, .dilation = 2}));
  layers.push_back(make_pyramid(build, "classifier.0", 64));
  add_pyramid_level(build, layers, "classifier.1", "classifier.2", kPyramidChannels, 3, 1);
  layers.push_back(std::make_unique<Conv2d<T>>(
      build.device, "classifier.4",
      Conv2dOptions{.in_channels = kPyramidChannels, .out_channels = classes}, build.seed));
  layers.push_back(std::make_unique<UpsampleBilinear<T>>(build.device, "upsample", height, width));
  layers.push_back(std::make_unique<PixelRows<T>>(build.device));
  return std::make_unique<Sequential<T>>(std::move(layers));
}

}  // namespace ddproof::internal
