// What every store promises (backends/api/store.h), one body for all implementations.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "backends/local/os_runtime.h"
#include "backends/registry/registry.h"
#include "backends/store/key_value_table.h"
#include "backends/store/memory_store.h"
#include "backends/store/prefix_store.h"
#include "backends/store/tcp_store.h"
#include "backends/store/tcp_store_server.h"

namespace ddproof {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// One store server and its clients.
class Fixture {
 public:
  virtual ~Fixture() = default;
  virtual std::unique_ptr<Store> connect() = 0;
  // The client goes away as if its process had died.
  virtual void kill(std::unique_ptr<Store> client) = 0;
};

class MemoryFixture : public Fixture {
 public:
  explicit MemoryFixture(Runtime& runtime)
      : runtime_(runtime), server_(std::make_shared<MemoryStoreServer>(runtime)) {}
  std::unique_ptr<Store> connect() override {
    return std::make_unique<MemoryStore>(server_, runtime_);
  }
  void kill(std::unique_ptr<Store> client) override { static_cast<MemoryStore&>(*client).die(); }

 private:
  Runtime& runtime_;
  std::shared_ptr<MemoryStoreServer> server_;
};

class TcpFixture : public Fixture {
 public:
  explicit TcpFixture(Runtime& runtime) : runtime_(runtime), server_(runtime, {"127.0.0.1"}) {}
  std::unique_ptr<Store> connect() override {
    return std::make_unique<TcpStore>(runtime_,
                                      TcpStoreOptions{.host = "127.0.0.1", .port = server_.port()});
  }
  void kill(std::unique_ptr<Store> client) override { static_cast<TcpStore&>(*client).die(); }

 private:
  Runtime& runtime_;
  TcpStoreServer server_;
};

// One store, and a client of it.
class StoreTest {
 public:
  StoreTest(Runtime& runtime, std::unique_ptr<Fixture> fixture)
      : runtime_(runtime), fixture_(std::move(fixture)) {}
  virtual ~StoreTest() = default;
  virtual void run() = 0;

 protected:
  // The text of the error that `call` throws; empty when it throws none of that type.
  template <class Error>
  static std::string error_of(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  Runtime& runtime_;
  std::unique_ptr<Fixture> fixture_;
  std::unique_ptr<Store> store_ = fixture_->connect();
};

using MakeTest =
    std::function<std::unique_ptr<StoreTest>(Runtime& runtime, std::unique_ptr<Fixture> fixture)>;

template <class SomeFixture>
void run_here(const MakeTest& make) {
  OsRuntime runtime;
  make(runtime, std::make_unique<SomeFixture>(runtime))->run();
}

// As tasks of a simulated rank.
void run_simulated(const MakeTest& make) {
  for (const BackendInfo& backend : list_backends()) {
    if (backend.name == "sim" && !backend.available) GTEST_SKIP() << backend.why_not;
  }
  make_backend("sim")->run_world({}, [&make](RankContext& rank) {
    make(rank.runtime, std::make_unique<MemoryFixture>(rank.runtime))->run();
  });
}

struct Kind {
  const char* name;
  void (*run)(const MakeTest&);
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class StoreContract : public testing::TestWithParam<Kind> {};

// The body that follows is run for every kind of store.
#define STORE_TEST(Name)                                                    \
  class Name final : public StoreTest {                                     \
   public:                                                                  \
    using StoreTest::StoreTest;                                             \
    void run() override;                                                    \
  };                                                                        \
  TEST_P(StoreContract, Name) {                                             \
    GetParam().run([](Runtime& runtime, std::unique_ptr<Fixture> fixture) { \
      return std::make_unique<Name>(runtime, std::move(fixture));           \
    });                                                                     \
  }                                                                         \
  void Name::run()

STORE_TEST(GetReturnsWhatAnotherClientSet) {
  const std::unique_ptr<Store> other = fixture_->connect();
  other->set("key", "value");
  EXPECT_EQ(store_->get("key", seconds(5)), "value");
  other->set("key", "second");
  EXPECT_EQ(store_->get("key", seconds(5)), "second");
}

STORE_TEST(ValuesAreBytes) {
  std::string bytes(3, '\0');
  bytes += "\xff\n\r ";
  store_->set("bytes", bytes);
  store_->set("empty", "");
  EXPECT_EQ(store_->try_get("bytes"), bytes);
  EXPECT_EQ(store_->try_get("empty"), "");
}

STORE_TEST(TryGetOfAMissingKeyIsEmpty) { EXPECT_EQ(store_->try_get("missing"), std::nullopt); }

STORE_TEST(GetWaitsForTheKey) {
  const std::unique_ptr<Store> waiting = fixture_->connect();
  std::string got;
  const std::unique_ptr<Task> reader = runtime_.spawn("reader", [&] {
    waiting->set("reader is there", "");
    got = waiting->get("late", seconds(30));
  });
  store_->wait({"reader is there"}, seconds(30));
  store_->set("late", "now");
  reader->join();
  EXPECT_EQ(got, "now");
}

STORE_TEST(OneClientSetsWhileAnotherTaskOfItWaits) {
  std::string got;
  const std::unique_ptr<Task> reader =
      runtime_.spawn("reader", [&] { got = store_->get("late", seconds(30)); });
  store_->set("late", "now");
  reader->join();
  EXPECT_EQ(got, "now");
}

STORE_TEST(AWaitThatPassesItsTimeoutNamesTheKey) {
  store_->set("first", "");
  const std::string get =
      error_of<CommError>([&] { store_->get("first of all", milliseconds(20)); });
  EXPECT_NE(get.find("key \"first of all\" was not set within 0.02 s; see whether the rank that "
                     "sets it is alive, or wait longer"),
            std::string::npos)
      << get;
  const std::string wait = error_of<CommError>([&] {
    store_->wait({"first", "second"}, milliseconds(20));
  });
  EXPECT_NE(wait.find("key \"second\" was not set within"), std::string::npos) << wait;
  // The client goes on.
  EXPECT_EQ(store_->try_get("first"), "");
}

STORE_TEST(WaitReturnsWhenAllKeysExistAtOnce) {
  const std::unique_ptr<Store> waiting = fixture_->connect();
  bool all_there = false;
  const std::unique_ptr<Task> waiter = runtime_.spawn("waiter", [&] {
    waiting->wait({"a", "b", "c"}, seconds(30));
    all_there = waiting->check({"a", "b", "c"});
  });
  for (const char* key : {"c", "a", "b"}) store_->set(key, "");
  waiter->join();
  EXPECT_TRUE(all_there);
}

STORE_TEST(AWatchFindsTheFirstOfItsKeys) {
  using Outcome = KeyWatch::Outcome;
  const std::unique_ptr<KeyWatch> watch = store_->watch({"a", "b", "b"});
  EXPECT_EQ(watch->wait(milliseconds(1)), Outcome::kTimeout);
  Outcome outcome = Outcome::kEnded;
  const std::unique_ptr<Task> waiter =
      runtime_.spawn("waiter", [&] { outcome = watch->wait(kForever); });
  store_->set("c", "");
  store_->set("b", "");
  waiter->join();
  EXPECT_EQ(outcome, Outcome::kFound);
  EXPECT_EQ(store_->watch({"a", "b"})->wait(kForever), Outcome::kFound) << "it was there before";
  store_->set("a", "");  // nobody waits for it any more
}

STORE_TEST(AWatchIsEndedByAnotherTaskOrBeforeItWaits) {
  using Outcome = KeyWatch::Outcome;
  const std::unique_ptr<KeyWatch> watch = store_->watch({"never"});
  Outcome outcome = Outcome::kFound;
  const std::unique_ptr<Task> waiter =
      runtime_.spawn("waiter", [&] { outcome = watch->wait(kForever); });
  watch->end();
  waiter->join();
  EXPECT_EQ(outcome, Outcome::kEnded);
  const std::unique_ptr<KeyWatch> early = store_->watch({"never"});
  early->end();
  EXPECT_EQ(early->wait(kForever), Outcome::kEnded);
  store_->set("never", "");
}

STORE_TEST(AWatchThatFoundItsKeyMayStillBeEnded) {
  using Outcome = KeyWatch::Outcome;
  store_->set("there", "");
  std::unique_ptr<KeyWatch> watch = store_->watch({"there"});
  EXPECT_EQ(watch->wait(kForever), Outcome::kFound);
  EXPECT_EQ(watch->wait(milliseconds(1)), Outcome::kFound) << "again";
  watch->end();
  EXPECT_EQ(watch->wait(kForever), Outcome::kEnded);
  watch.reset();
  store_->set("key", "value");
  EXPECT_EQ(store_->try_get("key"), "value");
}

STORE_TEST(ALastWillEndsAWatch) {
  std::unique_ptr<Store> client = fixture_->connect();
  client->set_last_will("lost", "");
  const std::unique_ptr<KeyWatch> watch = store_->watch({"other", "lost"});
  fixture_->kill(std::move(client));
  EXPECT_EQ(watch->wait(kForever), KeyWatch::Outcome::kFound);
}

STORE_TEST(MultiGetReturnsEachValueOrNoneInOrder) {
  store_->set("a", "1");
  store_->set("empty", "");
  const std::vector<std::optional<std::string>> expected = {"", std::nullopt, "1", "1"};
  EXPECT_EQ(store_->multi_get({"empty", "missing", "a", "a"}), expected);
  EXPECT_EQ(error_of<ConfigError>([&] { store_->multi_get({}); }),
            "store: a call names 0 keys, allowed are 1 to 65536");
}

STORE_TEST(MultiGetReturnsNoMoreThanOneValueMayHave) {
  store_->set("half", std::string(kValueBytesMax / 2, 'v'));
  EXPECT_EQ(store_->multi_get({"half", "half"})[1]->size(), kValueBytesMax / 2);
  store_->set("one", "1");
  EXPECT_EQ(error_of<ConfigError>([&] {
              store_->multi_get({"half", "half", "one"});
            }),
            "store: multi_get of 3 keys from \"half\" would return more than 16777216 bytes; ask "
            "for fewer keys at once");
}

STORE_TEST(CallsThatMayNotTakeLongSeeTheSameStore) {
  const std::unique_ptr<Store> hurried = store_->answering_by(runtime_.now() + seconds(30));
  hurried->set("key", "value");
  EXPECT_EQ(store_->try_get("key"), "value");
  EXPECT_EQ(hurried->get("key", seconds(30)), "value");
}

STORE_TEST(AddCountsFromNothingAndReturnsTheSum) {
  EXPECT_EQ(store_->add("count", 5), 5);
  EXPECT_EQ(store_->add("count", -7), -2);
  EXPECT_EQ(store_->add("count", 0), -2);
  EXPECT_EQ(store_->try_get("count"), "-2");
}

STORE_TEST(AddOfManyClientsLosesNothing) {
  std::vector<std::unique_ptr<Store>> clients;
  std::vector<std::unique_ptr<Task>> tasks;
  for (int i = 0; i < 4; ++i) {
    Store& client = *clients.emplace_back(fixture_->connect());
    tasks.push_back(runtime_.spawn("adder", [&client] {
      for (int n = 0; n < 100; ++n) client.add("count", 1);
    }));
  }
  for (const auto& task : tasks) task->join();
  EXPECT_EQ(store_->try_get("count"), "400");
}

STORE_TEST(AddRefusesWhatIsNotANumber) {
  for (const char* value : {"abc", "", "1.0", "1 ", "+1", "9223372036854775808"}) {
    store_->set("key", value);
    EXPECT_EQ(error_of<ConfigError>([&] { store_->add("key", 1); }),
              "store: add 1 to key \"key\": the value is \"" + std::string(value) +
                  "\", allowed is a decimal number of 64 bits; the value stays as it was");
    EXPECT_EQ(store_->try_get("key"), value);
  }
}

STORE_TEST(AddRefusesASumBeyondSixtyFourBits) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  store_->add("top", kMax);
  EXPECT_EQ(error_of<ConfigError>([&] { store_->add("top", 1); }),
            "store: add 1 to key \"top\": the value is 9223372036854775807 and the sum leaves 64 "
            "bits; the value stays as it was");
  EXPECT_EQ(store_->add("top", 0), kMax);
  store_->add("bottom", kMin);
  EXPECT_NE(error_of<ConfigError>([&] { store_->add("bottom", -1); }), "");
  EXPECT_EQ(store_->add("bottom", kMax), -1);
}

STORE_TEST(AppendAddsAtTheEnd) {
  store_->append("log", "one");
  fixture_->connect()->append("log", std::string(" \0 two", 6));
  EXPECT_EQ(store_->try_get("log"), std::string("one \0 two", 9));
  store_->append("log", "");
  EXPECT_EQ(store_->try_get("log")->size(), 9u);
  store_->append("empty", "");
  EXPECT_EQ(store_->try_get("empty"), "");
  store_->set("large", std::string(kValueBytesMax, 'v'));
  EXPECT_EQ(error_of<ConfigError>([&] { store_->append("large", "v"); }),
            "store: the value for key \"large\" has 16777217 bytes, allowed are 0 to 16777216");
  EXPECT_EQ(store_->try_get("large")->size(), kValueBytesMax);
}

STORE_TEST(AppendWakesWhoWaits) {
  const auto watch = store_->watch({"log"});
  fixture_->connect()->append("log", "one");
  EXPECT_EQ(watch->wait(seconds(30)), KeyWatch::Outcome::kFound);
}

STORE_TEST(APartHasKeysOfItsOwn) {
  PrefixStore a(*store_, "a"), b(*store_, "b");
  a.set("key", "1");
  b.set("key", "2");
  EXPECT_EQ(a.get("key", seconds(5)), "1");
  EXPECT_EQ(store_->try_get("b/key"), "2");
  EXPECT_EQ(a.add("count", 3), 3);
  a.append("log", "x");
  EXPECT_EQ(a.compare_set("flag", "", "up"), "up");
  EXPECT_EQ(a.multi_get({"count", "log", "flag", "none"}),
            (std::vector<std::optional<std::string>>{"3", "x", "up", std::nullopt}));
  EXPECT_TRUE(a.check({"count", "log"}));
  EXPECT_FALSE(b.check({"count"}));
  EXPECT_FALSE(b.remove("count"));
  EXPECT_TRUE(a.remove("count"));
  a.wait({"key", "log"}, seconds(5));
  const auto watch = b.watch({"count"});
  a.set("count", "");
  EXPECT_EQ(watch->wait(milliseconds(1)), KeyWatch::Outcome::kTimeout);
  const auto hurried = b.answering_by(runtime_.now() + seconds(30));
  hurried->set("count", "");
  EXPECT_EQ(watch->wait(seconds(30)), KeyWatch::Outcome::kFound);
  EXPECT_EQ(PrefixStore(a, "inner").num_keys(), store_->num_keys());

  std::unique_ptr<Store> dying = fixture_->connect();
  PrefixStore(*dying, "a").set_last_will("lost", "it died");
  fixture_->kill(std::move(dying));
  EXPECT_EQ(a.get("lost", seconds(30)), "it died");
  const std::string late = error_of<CommError>([&] { b.get("lost", milliseconds(1)); });
  EXPECT_NE(late.find("key \"b/lost\" was not set"), std::string::npos) << late;
}

STORE_TEST(CompareSetChangesOnlyWhatWasExpected) {
  EXPECT_EQ(store_->compare_set("key", "expected", "new"), "") << "missing, so it is not expected";
  EXPECT_EQ(store_->try_get("key"), std::nullopt);
  EXPECT_EQ(store_->compare_set("key", "", "first"), "first");
  EXPECT_EQ(store_->compare_set("key", "", "again"), "first");
  EXPECT_EQ(store_->compare_set("key", "other", "again"), "first");
  EXPECT_EQ(store_->compare_set("key", "first", "second"), "second");
  EXPECT_EQ(store_->try_get("key"), "second");
}

STORE_TEST(CompareSetWakesWhoWaits) {
  std::string got;
  const std::unique_ptr<Task> reader =
      runtime_.spawn("reader", [&] { got = store_->get("key", seconds(30)); });
  fixture_->connect()->compare_set("key", "", "value");
  reader->join();
  EXPECT_EQ(got, "value");
}

STORE_TEST(CheckAndRemoveAndNumKeysAgree) {
  EXPECT_EQ(store_->num_keys(), 0);
  store_->set("a", "1");
  store_->add("b", 1);
  EXPECT_EQ(store_->num_keys(), 2);
  EXPECT_TRUE(store_->check({"a", "b"}));
  EXPECT_FALSE(store_->check({"a", "b", "c"}));
  EXPECT_TRUE(store_->remove("a"));
  EXPECT_FALSE(store_->remove("a"));
  EXPECT_FALSE(store_->check({"a"}));
  EXPECT_EQ(store_->num_keys(), 1);
}

STORE_TEST(KeysAndValuesHaveLimits) {
  const std::string longest(kKeyBytesMax, 'k');
  store_->set(longest, std::string(kValueBytesMax, 'v'));
  EXPECT_EQ(store_->try_get(longest)->size(), kValueBytesMax);
  EXPECT_EQ(error_of<ConfigError>([&] { store_->set("", "value"); }),
            "store: key \"\" has 0 bytes, allowed are 1 to 4096");
  const std::string too_long = error_of<ConfigError>([&] { store_->try_get(longest + 'k'); });
  EXPECT_NE(too_long.find("has 4097 bytes, allowed are 1 to 4096"), std::string::npos) << too_long;
  EXPECT_EQ(error_of<ConfigError>([&] { store_->set("k", std::string(kValueBytesMax + 1, 'v')); }),
            "store: the value for key \"k\" has 16777217 bytes, allowed are 0 to 16777216");
  EXPECT_EQ(error_of<ConfigError>([&] { store_->check({}); }),
            "store: a call names 0 keys, allowed are 1 to 65536");
  EXPECT_EQ(store_->num_keys(), 1);
}

STORE_TEST(ADeadClientsLastWillIsCarriedOut) {
  std::unique_ptr<Store> client = fixture_->connect();
  client->set_last_will("gone", "first");
  client->set_last_will("lost", "rank 3");
  fixture_->kill(std::move(client));
  EXPECT_EQ(store_->get("lost", seconds(30)), "rank 3");
  EXPECT_EQ(store_->get("gone", seconds(30)), "first") << "one per key";
}

STORE_TEST(ASecondLastWillForAKeyReplacesTheFirst) {
  std::unique_ptr<Store> client = fixture_->connect();
  client->set_last_will("lost", "first");
  client->answering_by(runtime_.now() + seconds(30))->set_last_will("lost", "second");
  fixture_->kill(std::move(client));
  EXPECT_EQ(store_->get("lost", seconds(30)), "second");
}

STORE_TEST(AGoodbyeCancelsTheLastWill) {
  std::unique_ptr<Store> client = fixture_->connect();
  client->set_last_will("lost", "rank 3");
  client->set("before", "");
  client.reset();
  std::unique_ptr<Store> dead = fixture_->connect();
  dead->set_last_will("lost, too", "");
  fixture_->kill(std::move(dead));
  store_->wait({"lost, too"}, seconds(30));
  EXPECT_FALSE(store_->check({"lost"}));
}

INSTANTIATE_TEST_SUITE_P(AllStores, StoreContract,
                         testing::Values(Kind{"memory", run_here<MemoryFixture>},
                                         Kind{"simulated", run_simulated},
                                         Kind{"tcp", run_here<TcpFixture>}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ddproof
