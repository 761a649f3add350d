// Every property that ddproof verifies, with the same trainer, on the backend `nccl` over the
// stand-in: also that N ranks train what one device trains.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "backends/checked/checked_backend.h"
#include "properties/suite.h"
#include "properties/training_properties.h"
#include "reference/compute/cuda/cuda.h"
#include "tests/nccl/standin_world.h"
#include "tests/property/property_test.h"

namespace ddproof {
namespace {

class NcclProperties : public testing::TestWithParam<SuiteEntry> {};

TEST_P(NcclProperties, HoldOnTheStandin) {
  OsRuntime runtime;
  CheckedBackend backend(std::make_unique<StandinBackend>());
  expect_holds(GetParam().run({backend, 4}, property_options(runtime, 60), runtime));
}

TEST(NcclCudaProperties, RanksOnCudaDevicesTrainWhatOneCpuTrains) {
  OsRuntime runtime;
  CheckedBackend backend(std::make_unique<StandinBackend>());
  const PropertyWorld world{.backend = backend, .world_size_max = 4, .make_device = [](int rank) {
                              return std::make_unique<Cuda<float>>(rank);
                            }};
  expect_holds(equals_one_device(world, property_options(runtime, 40), runtime));
}

INSTANTIATE_TEST_SUITE_P(Suite, NcclProperties, testing::ValuesIn(property_suite()),
                         [](const testing::TestParamInfo<SuiteEntry>& info) {
                           std::string name = info.param.name;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace ddproof
