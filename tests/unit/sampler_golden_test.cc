// randperm and DistributedSampler against the outputs of PyTorch 1.13.1, all cases.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "reference/data/distributed_sampler.h"
#include "reference/data/randperm.h"
#include "tests/support/fnv.h"
#include "tests/support/golden.h"

namespace ddproof {
namespace {

using nlohmann::json;
using Indices = std::vector<std::int64_t>;

std::uint64_t seed_of(const std::string& text) {
  return text.front() == '-' ? static_cast<std::uint64_t>(std::stoll(text)) : std::stoull(text);
}

std::string hex(const Fnv1a64& hash) { return fmt::format("{:016x}", hash.value()); }

TEST(RandpermGolden, EveryCaseEqualsPyTorch) {
  const json golden = read_golden("randperm.json");
  ASSERT_EQ(golden["cases"].size(), 128u);
  for (const json& test : golden["cases"]) {
    const auto n = test["n"].get<std::int64_t>();
    const auto order = randperm<std::uint32_t>(n, seed_of(test["seed"]));
    Fnv1a64 hash;
    for (const std::uint32_t index : order) hash.add(std::int64_t{index});
    ASSERT_EQ(hex(hash), test["fnv1a64"]) << "n " << n << " seed " << test["seed"];
    if (test.contains("perm")) {
      ASSERT_EQ(Indices(order.begin(), order.end()), test["perm"].get<Indices>());
    }
  }
}

TEST(RandpermGolden, OneGeneratorGoesOnFromCallToCall) {
  const json golden = read_golden("randperm.json");
  std::mt19937 generator(7);
  for (const json& expected : golden["same_generator_seed7_n10_three_calls"]) {
    EXPECT_EQ(randperm<std::int64_t>(10, generator), expected.get<Indices>());
  }
}

// The permutations whose SHA-256 is published with PyTorch's outputs; the FNV-1a values were taken
// from texts (numbers joined by commas) that had those SHA-256 sums:
// b04be4ee..., 307b10da..., d825f07d..., 4e66ffef...
TEST(RandpermGolden, LargePermutationsHaveTheKnownChecksums) {
  struct Case {
    std::int64_t n;
    std::uint64_t seed;
    std::uint64_t fnv;
  };
  for (const Case& test :
       {Case{1000, 0, 0x2ddf509adebbbbfb}, Case{50000, 7, 0x53573c2a761ec471},
        Case{60000, 0, 0x2d060d0b84b82833}, Case{1281167, 0, 0x1c8ea939f039b511}}) {
    Fnv1a64 hash;
    std::string_view separator;
    for (const std::uint32_t index : randperm<std::uint32_t>(test.n, test.seed)) {
      hash.add(separator);
      hash.add(std::to_string(index));
      separator = ",";
    }
    EXPECT_EQ(hash.value(), test.fnv) << test.n;
  }
}

TEST(DistributedSamplerGolden, EveryCaseEqualsPyTorch) {
  const json golden = read_golden("sampler.json");
  ASSERT_EQ(golden["cases"].size(), 1536u);
  for (const json& test : golden["cases"]) {
    SamplerOptions options{.length = test["len"],
                           .replicas = test["replicas"],
                           .shuffle = test["shuffle"],
                           .seed = test["seed"],
                           .tail = test["drop_last"] ? Tail::kDrop : Tail::kPad};
    Fnv1a64 hash;
    for (int rank = 0; rank < options.replicas; ++rank) {
      options.rank = rank;
      DistributedSampler sampler(options);
      sampler.set_epoch(test["epoch"]);
      const Indices indices = sampler.indices().to_vector();
      for (const std::int64_t index : indices) hash.add(index);
      ASSERT_EQ(sampler.size(), test["num_samples"]) << test;
      ASSERT_EQ(sampler.total_size(), test["total_size"]) << test;
      if (test.contains("ranks")) {
        ASSERT_EQ(indices, test["ranks"][static_cast<std::size_t>(rank)].get<Indices>()) << test;
      }
    }
    ASSERT_EQ(hex(hash), test["fnv1a64"]) << test;
  }
}

}  // namespace
}  // namespace ddproof
