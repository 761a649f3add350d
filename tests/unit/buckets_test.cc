// Bucket assignment against PyTorch 1.13.1 (tests/golden/buckets.json) and SEMANTICS section 3.1.
#include "reference/ddp/buckets.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "backends/api/error.h"

namespace ddproof {
namespace {

using nlohmann::json;

ElementType type_named(const std::string& name) {
  for (DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    if (ElementType(dtype).name() == name) return dtype;
  }
  throw std::runtime_error("no dtype " + name);
}

// The golden file lists bytes and types in walking order; ours are indexed by tensor.
struct GoldenCase {
  std::vector<BucketTensor> tensors;
  std::vector<std::size_t> order;
  std::vector<std::int64_t> limits;
};

GoldenCase read_case(const json& entry) {
  GoldenCase result;
  const std::size_t count = entry["bytes"].size();
  if (entry.contains("tensor_indices")) {
    result.order = entry["tensor_indices"].get<std::vector<std::size_t>>();
  }
  result.tensors.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    BucketTensor& tensor = result.tensors[result.order.empty() ? i : result.order[i]];
    const json& type = entry["dtypes"].is_array() ? entry["dtypes"][i] : entry["dtypes"];
    tensor.bytes = entry["bytes"][i].get<std::int64_t>();
    tensor.type = type_named(type.get<std::string>());
  }
  if (entry.contains("expect_sparse")) {
    for (std::size_t i = 0; i < count; ++i) result.tensors[i].sparse = entry["expect_sparse"][i];
  }
  for (const json& limit : entry["limits"]) {
    result.limits.push_back(std::stoll(limit.get<std::string>()));
  }
  return result;
}

TEST(Buckets, EqualPyTorchsOnEveryGoldenCase) {
  std::ifstream file(std::string(DDPROOF_SOURCE_DIR) + "/tests/golden/buckets.json");
  const json golden = json::parse(file);
  int compared = 0;
  for (const json& entry : golden["cases"]) {
    if (entry.contains("error")) continue;  // PyTorch crashes on these; ours are tested below
    const GoldenCase c = read_case(entry);
    const BucketAssignment result = assign_buckets(c.tensors, c.limits, c.order);
    EXPECT_EQ(json(result.buckets), entry["buckets"]) << entry["name"];
    std::vector<std::string> limits;
    for (std::int64_t limit : result.limits) limits.push_back(std::to_string(limit));
    EXPECT_EQ(json(limits), entry["per_bucket_limits"]) << entry["name"];
    ++compared;
  }
  EXPECT_EQ(compared, 30);
}

void expect_refused(const std::vector<BucketTensor>& tensors,
                    const std::vector<std::int64_t>& limits, const std::vector<std::size_t>& order,
                    const std::string& text) {
  try {
    assign_buckets(tensors, limits, order);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.what(), text);
  }
}

TEST(Buckets, BadInputIsRefused) {
  const std::vector<BucketTensor> two{{.bytes = 4, .type = DType::kFloat32},
                                      {.bytes = 4, .type = DType::kFloat32}};
  expect_refused({}, {100}, {}, "bucket assignment: there is no tensor to assign");
  expect_refused(two, {}, {}, "bucket assignment: there is no size limit");
  expect_refused(two, {100}, {0, 0},
                 "bucket assignment: the order is not a permutation of 2 tensors");
  expect_refused(two, {100}, {0}, "bucket assignment: the order is not a permutation of 2 tensors");
}

}  // namespace
}  // namespace ddproof
