// A residual network for small images: ResNet-8, the shallowest of the paper's 6n + 2 layers.
//
//   conv1 3x3 -> 16, bn1, ReLU; layer1.0, layer2.0 and layer3.0 with 16, 32 and 64 channels, the
//   last two at half the size; the mean of each channel; fc -> classes
//
// A block is conv1 3x3, bn1, ReLU, conv2 3x3, bn2, plus its input, ReLU; where sizes change the
// input goes through a 1x1 convolution and batch norm (downsample.0, downsample.1). Convolutions
// have no bias. Names are torchvision's: "layer2.0.downsample.0.weight".
//
// K. He, X. Zhang, S. Ren, J. Sun, "Deep Residual Learning for Image Recognition", CVPR 2016,
// sections 3.3 and 4.2.
#pragma once

#include <string>

#include "reference/model/activation.h"
#include "reference/model/builder.h"
#include "reference/model/linear.h"
#include "reference/model/residual.h"

namespace ddproof::internal {

struct BasicBlock {
  std::int64_t in = 1;  // channels
  std::int64_t out = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
};

template <class T>
std::unique_ptr<Module<T>> make_basic_block(const Builder<T>& build, const std::string& name,
                                            const BasicBlock& block) {
  const auto [in, out, stride, dilation] = block;
  Layers<T> main;
  build.convolution(main, name + ".conv1",
                    {.in_channels = in,
                     .out_channels = out,
                     .kernel = 3,
                     .stride = stride,
                     .padding = dilation,
                     .dilation = dilation});
  build.batch_norm(main, name + ".bn1", out);
  main.push_back(std::make_unique<ReLU<T>>(build.device));
  build.convolution(main, name + ".conv2",
                    {.in_channels = out,
                     .out_channels = out,
                     .kernel = 3,
                     .padding = dilation,
                     .dilation = dilation});
  build.batch_norm(main, name + ".bn2", out);
  std::unique_ptr<Module<T>> shortcut;
  if (stride != 1 || in != out) {
    Layers<T> layers;
    build.convolution(layers, name + ".downsample.0",
                      {.in_channels = in, .out_channels = out, .stride = stride});
    build.batch_norm(layers, name + ".downsample.1", out);
    shortcut = std::make_unique<Sequential<T>>(std::move(layers));
  }
  Layers<T> sum;
  sum.push_back(std::make_unique<Residual<T>>(std::make_unique<Sequential<T>>(std::move(main)),
                                              std::move(shortcut)));
  sum.push_back(std::make_unique<ReLU<T>>(build.device));
  return std::make_unique<Sequential<T>>(std::move(sum));
}

template <class T>
std::unique_ptr<Module<T>> make_resnet8(const Builder<T>& build, std::int64_t channels,
                                        std::int64_t classes) {
  Layers<T> layers;
  build.convolution(layers, "conv1",
                    {.in_channels = channels, .out_channels = 16, .kernel = 3, .padding = 1});
  build.batch_norm(layers, "bn1", 16);
  layers.push_back(std::make_unique<ReLU<T>>(build.device));
  layers.push_back(make_basic_block(build, "layer1.0", {.in = 16, .out = 16}));
  layers.push_back(make_basic_block(build, "layer2.0", {.in = 16, .out = 32, .stride = 2}));
  layers.push_back(make_basic_block(build, "layer3.0", {.in = 32, .out = 64, .stride = 2}));
  layers.push_back(std::make_unique<GlobalAveragePool<T>>(build.device));
  layers.push_back(std::make_unique<Linear<T>>(build.device, "fc", 64, classes, build.seed));
  return std::make_unique<Sequential<T>>(std::move(layers));
}

}  // namespace ddproof::internal
