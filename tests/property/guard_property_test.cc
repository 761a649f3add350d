// main_process_first on every backend, and the ways in which people get the guard wrong.
#include <gtest/gtest.h>

#include "backends/registry/registry.h"
#include "properties/guard_properties.h"
#include "tests/property/property_test.h"
#include "tests/property/world_backends.h"

namespace ddproof {
namespace {

constexpr int kGuardRanks = 6;

class GuardProperty : public testing::TestWithParam<std::string> {};

TEST_P(GuardProperty, WorksFirst) {
  OsRuntime runtime;
  const auto backend = make_backend(GetParam());
  const int cases = GetParam() == "sim" ? 200 : 20;
  const auto result =
      guard_works_first({*backend, kGuardRanks}, property_options(runtime, cases), runtime);
  expect_holds(result);
  EXPECT_GT(result.classes.at("several nodes"), result.cases / 4);
  EXPECT_GT(result.classes.at("work fails"), result.cases / 10);
}

INSTANTIATE_TEST_SUITE_P(Backends, GuardProperty, testing::ValuesIn(world_backends()),
                         [](const auto& info) { return info.param; });

class GuardMutants : public testing::Test {
 protected:
  PropertyResult run(const Guard& guard) {
    return guard_works_first({*backend_, kGuardRanks}, property_options(runtime_, 200), runtime_,
                             guard);
  }

  OsRuntime runtime_;
  std::unique_ptr<Backend> backend_ = make_backend(world_backends().front());
};

bool is_worker(const GuardContext& context, GuardScope scope) {
  return scope == GuardScope::kNode ? context.local_rank == 0 : context.group->rank() == 0;
}

TEST_F(GuardMutants, AGuardWithoutABarrierIsFound) {
  const auto result =
      run([](const GuardContext& context, GuardScope scope, const auto& work, const auto& use) {
        if (is_worker(context, scope)) work();
        use();
      });
  expect_found(result, "before: used the result when 0 of 1 scopes were done");
}

TEST_F(GuardMutants, ABarrierBeforeTheWorkIsFound) {
  const auto result =
      run([](const GuardContext& context, GuardScope scope, const auto& work, const auto& use) {
        context.group->barrier()->wait();
        if (is_worker(context, scope)) work();
        use();
      });
  expect_found(result, "before: used the result when");
}

TEST_F(GuardMutants, WorkOnEveryRankIsFound) {
  const auto result =
      run([](const GuardContext& context, GuardScope, const auto& work, const auto& use) {
        work();
        context.group->barrier()->wait();
        use();
      });
  expect_found(result, "once: the work of scope 0 ran 2 times");
}

TEST_F(GuardMutants, WorkOncePerWorldOnSeparateNodesIsFound) {
  const auto result =
      run([](const GuardContext& context, GuardScope, const auto& work, const auto& use) {
        if (context.group->rank() == 0) work();
        context.group->barrier()->wait();
        use();
      });
  expect_found(result, "nodes=2 ranks_per_node=1 scope=node");
}

TEST_F(GuardMutants, AFailureThatStaysOnItsRankIsFound) {
  const auto result =
      run([](const GuardContext& context, GuardScope scope, const auto& work, const auto& use) {
        std::exception_ptr failure;
        if (is_worker(context, scope)) {
          try {
            work();
          } catch (...) {
            failure = std::current_exception();
          }
        }
        context.group->barrier()->wait();
        if (failure) std::rethrow_exception(failure);
        use();
      });
  expect_found(result, "together: used the result of failed work");
}

}  // namespace
}  // namespace ddproof
