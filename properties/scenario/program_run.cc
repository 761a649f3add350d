#include "properties/scenario/program_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <typeinfo>
#include <utility>

#include "backends/api/error.h"
#include "backends/api/list_of.h"
#include "backends/registry/simulated_world.h"
#include "properties/scenario/call_buffers.h"
#include "properties/scenario/elements.h"
#include "properties/scenario/named_group.h"
#include "reference/data/batch_reader.h"
#include "reference/data/dataset.h"
#include "reference/data/distributed_sampler.h"

namespace ddproof::scenario {
namespace {

// The current exception, in a few words. A rank that dies unwinds by one that is not named here.
std::string name_of_current_exception() {
  try {
    throw;
  } catch (const CommError& error) {
    return to_string(error.kind());
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "ended";
  }
}

// What a call in a group says of the group's ranks, said of the world's.
CommError in_the_world(const CommError& error, const Group& group) {
  std::vector<int> culprits;
  for (const int rank : error.culprits()) {
    culprits.push_back(group.ranks[static_cast<std::size_t>(rank)]);
  }
  std::ranges::sort(culprits);
  return CommError(error.kind(),
                   fmt::format("group {}, whose ranks 0, 1, ... are {}: {}", group.name,
                               list_of(group.ranks), error.what()),
                   culprits);
}

std::string with_rank(std::string path, int rank) {
  constexpr std::string_view kPlace = "{rank}";
  for (auto at = path.find(kPlace); at != std::string::npos; at = path.find(kPlace)) {
    path.replace(at, kPlace.size(), std::to_string(rank));
  }
  return path;
}

// So many samples, each with its number as its value.
class NumberedSamples final : public Dataset {
 public:
  explicit NumberedSamples(std::int64_t size) : size_(size) {}

  std::int64_t size() const override { return size_; }
  const Shape& sample_shape() const override { return shape_; }
  int class_count() const override { return 1; }
  std::uint64_t digest() const override { return static_cast<std::uint64_t>(size_); }
  void read(std::int64_t index, std::span<float> values,
            std::span<std::int64_t> labels) const override {
    values[0] = static_cast<float>(index);
    labels[0] = 0;
  }

 private:
  std::int64_t size_;
  Shape shape_{1};
};

// A value for a scope.
template <class T>
class Scoped {
 public:
  Scoped(T& variable, T value) : variable_(variable), before_(std::exchange(variable, value)) {}
  ~Scoped() { variable_ = before_; }
  Scoped(const Scoped&) = delete;
  Scoped& operator=(const Scoped&) = delete;

 private:
  T& variable_;
  T before_;
};

class InGuard {
 public:
  InGuard(std::set<int>& ranks, int rank) : ranks_(ranks), rank_(rank) { ranks_.insert(rank); }
  ~InGuard() { ranks_.erase(rank_); }
  InGuard(const InGuard&) = delete;
  InGuard& operator=(const InGuard&) = delete;

 private:
  std::set<int>& ranks_;
  int rank_;
};

}  // namespace

ProgramRun::ProgramRun(SharedRun& shared, RankContext& rank)
    : shared_(shared),
      rank_(rank),
      number_(rank.group.rank()),
      local_rank_(local_rank_of(shared.scenario.placement, number_)) {}

void ProgramRun::run() {
  try {
    make_groups();
    run_steps(shared_.scenario.program_of(number_));
  } catch (const CommError& error) {
    const bool is_timeout = error.kind() == CommErrorKind::kTimeout;
    if (is_timeout && !shared_.in_guard.empty()) rank_.runtime.hit(kTimeoutBesideGuard);
    throw;
  }
  if (training_) shared_.replicas.add_state(number_, training_->digest());
}

void ProgramRun::make_groups() {
  const CallSite site = site_of({.file = "", .line = shared_.scenario.groups_line});
  for (const Group& group : shared_.scenario.groups) {
    const auto place = std::ranges::find(group.ranks, number_) - group.ranks.begin();
    const bool is_in = place < std::ssize(group.ranks);
    auto part = rank_.group.split(is_in ? 0 : -1, static_cast<int>(place), site);
    if (part) part = std::make_unique<NamedGroup>(std::move(part), group.name);
    groups_.push_back(std::move(part));
  }
}

ProcessGroup& ProgramRun::group_of(const CallStep& call) const {
  return call.group < 0 ? rank_.group : *groups_[static_cast<std::size_t>(call.group)];
}

ProgramRun::Flow ProgramRun::run_steps(const Steps& steps) {
  for (const Step& step : steps) {
    if (run_step(step) == Flow::kExit) return Flow::kExit;
  }
  return Flow::kGoOn;
}

ProgramRun::Flow ProgramRun::run_step(const Step& step) {
  const auto take = [&] {
    return std::visit([&](const auto& action) { return act(step, action); }, step.action);
  };
  // A branch is told by the steps that it takes.
  if (!shared_.tells || std::holds_alternative<IfStep>(step.action)) return take();
  RankStory& story = shared_.stories[static_cast<std::size_t>(number_)];
  const std::size_t line = story.size();
  story.push_back({.begin = rank_.runtime.now().count(), .depth = depth_, .step = step.text});
  try {
    const Scoped<int> deeper(depth_, depth_ + 1);
    const Flow flow = take();
    story[line].end = rank_.runtime.now().count();
    return flow;
  } catch (...) {
    const bool is_innermost = line + 1 == story.size();
    story[line].outcome = is_innermost ? name_of_current_exception() : "failed";
    story[line].end = rank_.runtime.now().count();
    throw;
  }
}

CallSite ProgramRun::site_of(const Site& site) const {
  const bool is_own = site.file.empty();
  const std::string& file = is_own ? shared_.scenario.file : site.file;
  return {file.c_str(), site.line, "", !is_own};
}

void ProgramRun::fail(const Step& step, const std::string& what) const {
  throw WrongResult(fmt::format("rank {}/{} {}: {}", number_, rank_.group.size(), step.text, what));
}

ProgramRun::Flow ProgramRun::act(const Step& step, const CallStep& call) {
  CallBuffers buffers(call, number_, shared_.scenario);
  try {
    buffers.submit(group_of(call), site_of(call.site))->wait();
  } catch (const VerdictError&) {
    throw;
  } catch (const CommError& error) {
    if (call.group < 0) throw;
    throw in_the_world(error, shared_.scenario.groups[static_cast<std::size_t>(call.group)]);
  }
  const ConstBuffer result = buffers.result();
  if (result.count() == 0) return Flow::kGoOn;
  result_ = element_at(result, 0);
  const Scenario& scenario = shared_.scenario;
  no_result_of_ = has_values(call, scenario.payload, scenario.size_of(call)) ? nullptr : &step;
  if (const auto digest = buffers.replica_digest(scenario)) {
    shared_.replicas.add_result(call.group, scenario.size_of(call), number_, step.text, *digest);
  }
  if (call.expect.empty()) return Flow::kGoOn;
  if (const auto wrong = difference(result, call.expect)) fail(step, *wrong);
  return Flow::kGoOn;
}

ProgramRun::Flow ProgramRun::act(const Step&, const PassTime& time) {
  if (time.computes) {
    rank_.runtime.charge(time.duration);
  } else {
    rank_.runtime.sleep_for(time.duration);
  }
  return Flow::kGoOn;
}

ProgramRun::Flow ProgramRun::act(const Step&, const GuardStep& guard) {
  bool has_failed = false;
  const auto work = [&] {
    rank_.runtime.charge(guard.work);
    ++shared_.guarded_works;
    has_failed = !guard.failure.empty();
    if (has_failed) throw std::runtime_error(guard.failure);
  };
  const InGuard in_guard(shared_.in_guard, number_);
  const GuardContext context{&rank_.group, local_rank_};
  try {
    main_process_first(
        context, guard.scope, work, [] {}, site_of(guard.site));
  } catch (const std::runtime_error& error) {
    // The type of the work's failure, on all ranks.
    if (has_failed || typeid(error) != typeid(std::runtime_error)) throw;
    throw FailedElsewhere(error.what());
  }
  return Flow::kGoOn;
}

ProgramRun::Flow ProgramRun::act(const Step& step, const SamplerStep& sampler) {
  DistributedSampler drawn({.length = sampler.length,
                            .replicas = rank_.group.size(),
                            .rank = number_,
                            .shuffle = sampler.shuffle,
                            .seed = sampler.seed,
                            .tail = sampler.drop_last ? Tail::kDrop : Tail::kPad});
  if (sampler.length < rank_.group.size() && !sampler.drop_last) {
    rank_.runtime.hit(kMoreRanksThanSamples);
  }
  drawn.set_epoch(sampler.epoch);
  const IndexList samples = drawn.indices(sampler.position);
  if (sampler.expect && samples.to_vector() != *sampler.expect) {
    fail(step, fmt::format("draws {}, expected {}", samples.to_vector(), *sampler.expect));
  }
  const NumberedSamples dataset(sampler.length);
  BatchReader reader(
      rank_.runtime, dataset, samples,
      {.batch_size = sampler.batch_size, .drop_last = sampler.drop_last_batch, .prefetch = 0});
  HostBatch batch;
  const Scoped<std::int64_t> turn(turn_, 0);
  const Scoped<std::int64_t> size(batch_size_, 0);
  for (; reader.next(batch); ++turn_) {
    batch_size_ = batch.size;
    if (run_steps(sampler.each) == Flow::kExit) return Flow::kExit;
  }
  return Flow::kGoOn;
}

RankTraining& ProgramRun::start_training() {
  if (!training_) {
    training_ = std::make_unique<RankTraining>(rank_, shared_.seed, shared_.scenario);
  }
  return *training_;
}

ProgramRun::Flow ProgramRun::act(const Step&, const TrainStep& train) {
  start_training().run(train, batch_size_);
  return Flow::kGoOn;
}

ProgramRun::Flow ProgramRun::act(const Step& step, const CheckpointStep& checkpoint) {
  RankTraining& training = start_training();
  const std::string path = with_rank(checkpoint.path, number_);
  if (checkpoint.save) {
    training.save(path, checkpoint.shared);
    return Flow::kGoOn;
  }
  const std::int64_t steps = training.load(path, checkpoint.shared);
  if (checkpoint.expect_step && steps != *checkpoint.expect_step) {
    fail(step, fmt::format("holds {} steps, expected {}", steps, *checkpoint.expect_step));
  }
  return Flow::kGoOn;
}

ProgramRun::Flow ProgramRun::act(const Step&, const RepeatStep& repeat) {
  const Scoped<std::int64_t> turn(turn_, 0);
  for (; turn_ < repeat.times; ++turn_) {
    if (run_steps(repeat.steps) == Flow::kExit) return Flow::kExit;
  }
  return Flow::kGoOn;
}

ProgramRun::Flow ProgramRun::act(const Step&, const IfStep& branch) {
  return run_steps(holds(branch.condition) ? branch.then : branch.otherwise);
}

ProgramRun::Flow ProgramRun::act(const Step&, const CrashStep&) {
  meet_fate(rank_.runtime, sim::RankFate::kCrashes);
  return Flow::kExit;
}

ProgramRun::Flow ProgramRun::act(const Step&, const HangStep&) {
  meet_fate(rank_.runtime, sim::RankFate::kHangs);
  return Flow::kExit;
}

ProgramRun::Flow ProgramRun::act(const Step&, const ExitStep&) { return Flow::kExit; }

ProgramRun::Flow ProgramRun::act(const Step&, const ThrowStep& thrown) {
  throw std::runtime_error(thrown.text);
}

bool ProgramRun::holds(const Condition& condition) const {
  if (condition.ranks && !condition.ranks->contains(number_)) return false;
  if (condition.local_ranks && !condition.local_ranks->contains(local_rank_)) {
    return false;
  }
  if (condition.turns && !condition.turns->contains(turn_)) return false;
  if (!condition.result) return true;
  if (no_result_of_ != nullptr) {
    fail(*no_result_of_,
         fmt::format("a condition asks for its result, which payload \"{}\" leaves out",
                     payload_names()[static_cast<std::size_t>(shared_.scenario.payload)]));
  }
  return result_ == condition.result;
}

}  // namespace ddproof::scenario
