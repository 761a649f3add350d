// What a rank says about a failure, from what the store knows, and when the store says nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/local/os_runtime.h"
#include "backends/membership/inquest.h"
#include "backends/store/memory_store.h"

namespace ddproof {
namespace {

// A store that must be asked with a deadline.
class HurriedStore final : public MemoryStore {
 public:
  using MemoryStore::MemoryStore;
  std::unique_ptr<Store> answering_by(TimePoint deadline) override {
    ++asked;
    latest = std::max(latest, deadline);
    throw CommError(CommErrorKind::kPeerLost, "the store does not answer");
  }
  int asked = 0;
  TimePoint latest{0};
};

class GlooInquest : public testing::Test {
 protected:
  static StoreWorld world(OsRuntime& runtime, Store& store,
                          std::optional<int> store_host = std::nullopt) {
    return {runtime, store, "gloo", "lost/1/", store_host};
  }

  OsRuntime runtime_;
  std::shared_ptr<MemoryStoreServer> server_ = std::make_shared<MemoryStoreServer>(runtime_);
  const StoreGroup group_{"gloo/1", 1, {4, 5, 6}};  // this is rank 5 of the world
  const Symptom broken_{false, "Connection closed by peer", std::chrono::seconds(1)};
};

TEST_F(GlooInquest, TheDeadAndThoseWhoLeftAreNamed) {
  MemoryStore store(server_, runtime_);
  store.set("lost/1/6", "its process died");
  const StoreWorld one = world(runtime_, store);
  const Finding died = Inquest(one, group_).explain(broken_);
  EXPECT_EQ(died.kind, CommErrorKind::kPeerLost);
  EXPECT_EQ(died.culprits, std::vector{2});
  EXPECT_EQ(died.what, "rank 2 is lost (its process died)");

  store.remove("gloo/1/verdict");
  store.set("gloo/1/left/2", "it left the group");
  EXPECT_EQ(Inquest(one, group_).explain(broken_).what, "rank 2 is lost (it left the group)")
      << "leaving came first";

  store.remove("gloo/1/verdict");
  store.set("gloo/1/broken/2", "broken");
  store.set("lost/1/4", "its process died");
  EXPECT_EQ(Inquest(one, group_).explain(broken_).culprits, std::vector{0})
      << "who failed first and left then is not the cause";
}

// A text may quote what a library said.
TEST_F(GlooInquest, APublishedFindingIsTakenOverWhole) {
  MemoryStore store(server_, runtime_);
  const StoreWorld one = world(runtime_, store);
  const Finding told{CommErrorKind::kPeerLost, {0, 2}, "two lines:\n the second"};
  Inquest(one, group_).publish(told);
  const Finding taken = Inquest(one, group_).explain(broken_);
  EXPECT_EQ(taken.kind, told.kind);
  EXPECT_EQ(taken.culprits, told.culprits);
  EXPECT_EQ(taken.what, told.what);
}

TEST_F(GlooInquest, AStoreThatDoesNotAnswerIsAskedWithADeadlineOnly) {
  HurriedStore store(server_, runtime_);
  const StoreWorld lonely = world(runtime_, store);
  const Finding finding = Inquest(lonely, group_).explain(broken_);
  EXPECT_EQ(finding.kind, CommErrorKind::kPeerLost);
  EXPECT_TRUE(finding.culprits.empty());
  EXPECT_EQ(finding.what,
            "Connection closed by peer; the store cannot say who is lost: the store does not "
            "answer");
  Inquest(lonely, group_).publish(finding);
  EXPECT_EQ(store.asked, 2);
  EXPECT_LE(store.latest, runtime_.now() + std::chrono::milliseconds(600));
  EXPECT_EQ(store.num_keys(), 0);
}

TEST_F(GlooInquest, ALostStoreMeansThatItsHostIsLost) {
  HurriedStore store(server_, runtime_);
  const StoreWorld hosted = world(runtime_, store, 4);
  const Finding finding = Inquest(hosted, group_).explain(broken_);
  EXPECT_EQ(finding.kind, CommErrorKind::kPeerLost);
  EXPECT_EQ(finding.culprits, std::vector{0});
  EXPECT_EQ(finding.what, "rank 0 is lost (the store that it hosts does not answer)");

  // Neither the host itself nor a group without it can say so.
  for (const int host : {5, 7}) {
    const StoreWorld other = world(runtime_, store, host);
    EXPECT_TRUE(Inquest(other, group_).explain(broken_).culprits.empty()) << host;
  }
}

}  // namespace
}  // namespace ddproof
