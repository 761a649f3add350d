#include "tests/property/planted_scenarios.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "properties/scenario/parse.h"
#include "properties/scenario/run.h"
#include "simulator/random.h"
#include "simulator/scheduler.h"

namespace ddproof::test {
namespace {

using Json = nlohmann::ordered_json;

// The messages of a run, by sender and receiver.
class Messages final : public sim::TraceSink {
 public:
  void on_event(const sim::Event& event) override {
    if (event.kind == sim::EventKind::kSend) ++counts[{event.rank, event.peer}];
  }
  std::map<std::pair<int, int>, std::uint64_t> counts;
};

class Planter {
 public:
  explicit Planter(std::uint64_t seed) : random_(sim::mix64(seed)) {
    ranks_ = 4 + pick(13);
    programs_.resize(static_cast<std::size_t>(ranks_), Json::array());
    const int blocks = 8 + pick(12);
    for (int i = 0; i < blocks; ++i) add_block();
  }

  std::string text() const {
    Json document = {{"fact", "generated"},
                     {"world_size", ranks_},
                     {"programs", Json::object()},
                     {"expect", {{"outcome", "passes"}}}};
    if (ranks_ % 4 == 0) document["ranks_per_node"] = ranks_ / 2;
    for (std::size_t rank = 0; rank < programs_.size(); ++rank) {
      document["programs"][std::to_string(rank)] = programs_[rank];
    }
    if (!fault_.empty()) document["faults"] = {fault_};
    if (event_limit_ > 0) document["event_limit"] = event_limit_;
    return document.dump();
  }

  void plant(std::size_t kind) { (this->*kinds()[kind].plant)(); }

  struct Kind {
    const char* name;
    void (Planter::*plant)();
  };
  static const std::vector<Kind>& kinds();

 private:
  int pick(int count) {
    return static_cast<int>(sim::below(random_.next(), static_cast<std::uint64_t>(count)));
  }
  int rank() { return pick(ranks_); }
  Json& program(int rank) { return programs_[static_cast<std::size_t>(rank)]; }

  // The same step on all ranks, at a place that `cut` says.
  void add_all(const Json& step) {
    for (Json& program : programs_) program.push_back(step);
  }

  Json call(const std::string& name) {
    Json step = {{"do", name}, {"count", 1 + pick(64)}};
    if (pick(2) == 0) step["label"] = fmt::format("bucket{}", pick(100));
    if (pick(3) == 0) step["at"] = fmt::format("train.py:{}", 1 + pick(200));
    return step;
  }

  void add_collective() {
    static const char* const kNames[] = {"all_reduce", "broadcast",      "reduce",  "all_gather",
                                         "gather",     "reduce_scatter", "scatter", "all_to_all"};
    const std::size_t which = static_cast<std::size_t>(pick(8));
    Json step = call(kNames[which]);
    const bool has_root = which == 1 || which == 2 || which == 4 || which == 6;
    if (has_root) step["root"] = rank();
    if (pick(4) == 0) step["dtype"] = "float64";
    if (which == 0) {
      step["value"] = 1;
      step["expect"] = ranks_;
    }
    add_all(step);
  }

  void add_block() {
    switch (pick(6)) {
      case 0: add_all({{"do", "barrier"}, {"label", fmt::format("point{}", pick(9))}}); break;
      case 1: {
        program(rank()).push_back({{"do", "compute"}, {"for", fmt::format("{} us", pick(50))}});
        break;
      }
      case 2: {
        const int from = rank();
        const int to = (from + 1 + pick(ranks_ - 1)) % ranks_;
        const int count = 1 + pick(16);
        program(from).push_back({{"do", "send"}, {"to", to}, {"count", count}});
        program(to).push_back({{"do", "recv"}, {"from", from}, {"count", count}});
        break;
      }
      case 3: {
        Json loop = {{"do", "repeat"}, {"times", 2 + pick(3)}, {"steps", Json::array()}};
        loop["steps"].push_back(call("all_reduce"));
        if (pick(2) == 0) loop["steps"].push_back({{"do", "barrier"}});
        add_all(loop);
        break;
      }
      default: add_collective();
    }
  }

  // Between what comes before and what comes after it on all ranks: the bug, of which `steps` gives
  // each rank's part.
  template <class StepsOf>
  void insert(const StepsOf& steps_of) {
    std::vector<Json> before = std::exchange(
        programs_, std::vector<Json>(static_cast<std::size_t>(ranks_), Json::array()));
    for (int i = pick(6); i > 0; --i) add_block();
    for (int at = 0; at < ranks_; ++at) {
      for (const Json& step : steps_of(at)) program(at).push_back(step);
    }
    for (int i = pick(6); i > 0; --i) add_block();
    for (std::size_t at = 0; at < before.size(); ++at) {
      for (const Json& step : programs_[at]) before[at].push_back(step);
    }
    programs_ = std::move(before);
  }

  // What all ranks do, and what one of them does instead.
  void insert_odd(const std::vector<Json>& usual, const std::vector<Json>& odd) {
    const int victim = rank();
    insert([&](int at) { return at == victim ? odd : usual; });
  }
  void insert_changed(const std::string& name, const char* key, const Json& usual,
                      const Json& odd) {
    Json step = call(name);
    step[key] = usual;
    Json other = step;
    other[key] = odd;
    insert_odd({step}, {other});
  }

  void skip() {
    const Json step = call("all_reduce");
    insert_odd({step}, {});
  }
  void lone_barrier() { insert_odd({}, {{{"do", "barrier"}, {"label", "lone"}}}); }
  void root() { insert_changed("broadcast", "root", 0, 1); }
  void count() { insert_changed("all_reduce", "count", 40, 42); }
  void dtype() { insert_changed("all_reduce", "dtype", "float32", "float64"); }
  void reduction() { insert_changed("all_reduce", "reduce", "sum", "max"); }
  void swapped_buckets() {
    const Json a = {{"do", "all_reduce"}, {"count", 32}, {"label", "grad_a"}};
    const Json b = {{"do", "all_reduce"}, {"count", 32}, {"label", "grad_b"}};
    insert_odd({a, b}, {b, a});
  }
  void swapped_calls() {
    const Json a = call("all_gather");
    const Json b = {{"do", "barrier"}, {"label", "saved"}};
    insert_odd({a, b}, {b, a});
  }
  void early_exit() {
    insert_odd({}, {{{"do", "exit"}}});
    end_together();
  }
  void crash() { insert_odd({}, {{{"do", "crash"}}}); }
  void hang() {
    insert_odd({}, {{{"do", "hang"}}});
    end_together();
  }
  void thrown() { insert_odd({}, {{{"do", "throw"}, {"text", "out of memory"}}}); }
  void slow_rank() {
    const Json barrier = {{"do", "barrier"}, {"label", "ready"}};
    insert_odd({barrier}, {{{"do", "compute"}, {"for", "1801 s"}}, barrier});
  }
  void wrong_value() {
    Json step = {{"do", "all_reduce"}, {"count", 8}, {"value", 1}, {"expect", ranks_}};
    Json odd = step;
    odd["value"] = 3;
    insert_odd({step}, {odd});
  }
  void odd_turn() {
    const Json all_reduce = call("all_reduce");
    const Json odd = {{"do", "if"},
                      {"ranks", std::to_string(rank())},
                      {"turns", std::to_string(1 + pick(3))},
                      {"then", Json::array()},
                      {"else", Json::array({all_reduce})}};
    const Json loop = {{"do", "repeat"}, {"times", 5}, {"steps", Json::array({odd})}};
    insert([&](int) { return std::vector<Json>{loop}; });
    end_together();
  }
  void end_together() { add_all({{"do", "barrier"}, {"label", "end"}}); }

  // Two ranks, each with its steps; the others go on.
  void insert_pair(const std::vector<Json>& one, const std::vector<Json>& other, int a, int b) {
    insert([&](int at) { return at == a ? one : at == b ? other : std::vector<Json>{}; });
  }
  static Json message(const char* what, const char* key, int peer, int count, int tag) {
    return {{"do", what}, {key, peer}, {"count", count}, {"tag", tag}};
  }
  void pair(int count, int tag, bool receives) {
    const int a = rank();
    const int b = (a + 1 + pick(ranks_ - 1)) % ranks_;
    std::vector<Json> other;
    if (receives) other.push_back(message("recv", "from", a, count, tag));
    insert_pair({message("send", "to", b, 8, 0)}, other, a, b);
  }
  void no_receive() {
    pair(8, 0, false);
    end_together();
  }
  void other_tag() {
    pair(8, 5, true);
    end_together();
  }
  void other_size() { pair(6, 0, true); }
  void crossed_sends() {
    const int a = rank();
    const int b = (a + 1 + pick(ranks_ - 1)) % ranks_;
    insert_pair({message("send", "to", b, 8, 0), message("recv", "from", b, 8, 0)},
                {message("send", "to", a, 8, 0), message("recv", "from", a, 8, 0)}, a, b);
  }
  void ring() {
    insert([&](int at) {
      return std::vector<Json>{message("recv", "from", (at + ranks_ - 1) % ranks_, 4, 0),
                               message("send", "to", (at + 1) % ranks_, 4, 0)};
    });
  }

  void race() {
    const Json train = {{"do", "train"}, {"batches", {1}}};
    const int saver = rank();
    const int reader = (saver + 1) % ranks_;
    insert([&](int at) {
      std::vector<Json> steps = {train};
      if (at == saver) {
        steps.push_back({{"do", "save_checkpoint"}, {"path", "/c"}, {"shared", false}});
      }
      if (at == reader) {
        steps.push_back({{"do", "load_checkpoint"}, {"path", "/c"}, {"shared", false}});
      }
      return steps;
    });
  }
  void divergence() {
    const Json train = {{"do", "train"}, {"batches", {1}}};
    const int victim = rank();
    insert([&](int at) {
      if (at != victim) return std::vector<Json>{train, train, train};
      return std::vector<Json>{train,
                               {{"do", "save_checkpoint"}, {"path", "/old"}, {"shared", false}},
                               train,
                               {{"do", "load_checkpoint"}, {"path", "/old"}, {"shared", false}},
                               train};
    });
  }

  void token() {
    const int a = rank();
    const int b = (a + 1 + pick(ranks_ - 1)) % ranks_;
    const auto hand_on = [](const Json& first, const Json& second) {
      return std::vector<Json>{
          {{"do", "repeat"}, {"times", 100'000}, {"steps", Json::array({first, second})}}};
    };
    insert_pair(hand_on(message("send", "to", b, 1, 0), message("recv", "from", b, 1, 0)),
                hand_on(message("recv", "from", a, 1, 0), message("send", "to", a, 1, 0)), a, b);
    event_limit_ = 100'000;
  }
  void long_training() {
    const int victim = rank();
    const Json train = {{"do", "train"}, {"batches", std::vector<int>(10, 1)}};
    const Json leave = {{"do", "if"},
                        {"ranks", std::to_string(victim)},
                        {"turns", std::to_string(20 + pick(15))},
                        {"then", Json::array({{{"do", "exit"}}})}};
    const Json loop = {{"do", "repeat"}, {"times", 40}, {"steps", Json::array({train, leave})}};
    insert([&](int) { return std::vector<Json>{loop}; });
  }

  void operation_fault(const char* kind) {
    end_together();
    fault_ = fmt::format("{} rank={} operation={}", kind, rank(), 2 + pick(10));
  }
  void crash_fault() { operation_fault("crash"); }
  void hang_fault() { operation_fault("hang"); }
  void message_fault(const char* kind, const char* more) {
    end_together();
    const scenario::Scenario scenario = scenario::parse_scenario(text(), "x.json");
    Messages messages;
    sim::RoundRobin round_robin;
    run_once(scenario, {.scheduler = &round_robin, .trace = &messages}, {});
    auto at = messages.counts.begin();
    std::advance(at, pick(static_cast<int>(messages.counts.size())));
    fault_ = fmt::format("{} from={} to={} message={}{}", kind, at->first.first, at->first.second,
                         1 + pick(static_cast<int>(at->second)), more);
  }
  void drop() { message_fault("drop", ""); }
  void flip() { message_fault("flip", " bit=30"); }
  void truncate() { message_fault("truncate", " bytes=1"); }
  void partition() {
    end_together();
    fault_ = fmt::format("partition ranks={} start={}us end=never", rank(), pick(100));
  }

  sim::SplitMix64 random_;
  int ranks_ = 1;
  std::vector<Json> programs_;  // by rank
  std::string fault_;
  int event_limit_ = 0;  // 0: none
};

const std::vector<Planter::Kind>& Planter::kinds() {
  static const std::vector<Kind> kinds = {
      {"a rank skips a call", &Planter::skip},
      {"a barrier on one rank", &Planter::lone_barrier},
      {"another root", &Planter::root},
      {"another count", &Planter::count},
      {"another dtype", &Planter::dtype},
      {"another reduce operation", &Planter::reduction},
      {"swapped buckets", &Planter::swapped_buckets},
      {"swapped calls", &Planter::swapped_calls},
      {"an early exit", &Planter::early_exit},
      {"a crash", &Planter::crash},
      {"a silent rank", &Planter::hang},
      {"an exception", &Planter::thrown},
      {"a slow rank", &Planter::slow_rank},
      {"a wrong value", &Planter::wrong_value},
      {"a call skipped in one turn", &Planter::odd_turn},
      {"a send without a recv", &Planter::no_receive},
      {"another tag", &Planter::other_tag},
      {"another size received", &Planter::other_size},
      {"crossed sends", &Planter::crossed_sends},
      {"a ring that receives first", &Planter::ring},
      {"a load that races with a save", &Planter::race},
      {"ranks that trained apart", &Planter::divergence},
      {"a token without end", &Planter::token},
      {"a rank that leaves a long training", &Planter::long_training},
      {"a crash by a fault", &Planter::crash_fault},
      {"a silence by a fault", &Planter::hang_fault},
      {"a dropped message", &Planter::drop},
      {"a flipped bit", &Planter::flip},
      {"a truncated message", &Planter::truncate},
      {"a partition", &Planter::partition},
  };
  return kinds;
}

}  // namespace

const std::vector<std::string>& planted_kinds() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const Planter::Kind& kind : Planter::kinds()) result.emplace_back(kind.name);
    return result;
  }();
  return names;
}

std::string correct_scenario(std::uint64_t seed) { return Planter(seed).text(); }

std::string planted_scenario(std::size_t kind, std::uint64_t seed) {
  Planter planter(seed);
  planter.plant(kind);
  return planter.text();
}

}  // namespace ddproof::test
