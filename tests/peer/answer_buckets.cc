#include <stdexcept>
#include <string>

#include "reference/ddp/buckets.h"
#include "tests/peer/answers.h"

namespace ddproof::peer {
namespace {

using nlohmann::json;

ElementType type_named(const std::string& name) {
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    if (ElementType(dtype).name() == name) return dtype;
  }
  throw std::runtime_error("no dtype " + name);
}

}  // namespace

json answer_buckets(const json& question) {
  std::vector<BucketTensor> tensors;
  for (const json& tensor : question.at("tensors")) {
    const ElementType type = type_named(tensor.at("dtype"));
    const auto elements = tensor.at("elements").get<std::int64_t>();
    tensors.push_back(
        {elements * static_cast<std::int64_t>(type.size()), type, tensor.at("sparse").get<bool>()});
  }
  const auto limits = question.at("limits").get<std::vector<std::int64_t>>();
  const auto order = question.at("order").get<std::vector<std::size_t>>();
  const BucketAssignment assignment = assign_buckets(tensors, limits, order);
  return {{"buckets", assignment.buckets}, {"limits", assignment.limits}};
}

}  // namespace ddproof::peer
