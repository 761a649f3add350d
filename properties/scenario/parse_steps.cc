#include "properties/scenario/parse_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "backends/api/error.h"
#include "properties/scenario/parse_call.h"
#include "simulator/time.h"

namespace ddproof::scenario {
namespace {

constexpr std::int64_t kSamplesMax = 10'000'000;
constexpr std::int64_t kBatchMax = 4096;

std::string text_of(Duration duration) { return sim::format_time(duration.count()); }

Action parse_guard(JsonObject& object, const StepContext&) {
  GuardStep guard;
  if (const auto scope = object.find("scope")) {
    guard.scope = scope->choice({"node", "world"}) == 0 ? GuardScope::kNode : GuardScope::kWorld;
  }
  if (const auto work = object.find("work")) guard.work = work->duration();
  if (const auto failure = object.find("fails")) guard.failure = failure->text();
  guard.site = parse_site(object);
  return guard;
}

Action parse_sampler(JsonObject& object, const StepContext& context) {
  SamplerStep sampler;
  sampler.length = object.require("length").whole(0, kSamplesMax);
  if (const auto size = object.find("batch_size")) sampler.batch_size = size->whole(1, kBatchMax);
  if (const auto flag = object.find("shuffle")) sampler.shuffle = flag->boolean();
  if (const auto flag = object.find("drop_last")) sampler.drop_last = flag->boolean();
  if (const auto flag = object.find("drop_last_batch")) sampler.drop_last_batch = flag->boolean();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (const auto seed = object.find("seed")) {
    sampler.seed = static_cast<std::uint64_t>(seed->whole(0, kMost));
  }
  if (const auto epoch = object.find("epoch")) sampler.epoch = epoch->whole(0, 1'000'000);
  if (const auto at = object.find("position")) sampler.position = at->whole(0, kSamplesMax);
  if (const auto expect = object.find("expect")) {
    sampler.expect.emplace();
    for (const JsonNode& sample : expect->elements()) {
      sampler.expect->push_back(sample.whole(0, kSamplesMax));
    }
  }
  if (const auto each = object.find("each")) {
    StepContext inside = context;
    inside.in_sampler = inside.in_loop = true;
    sampler.each = parse_steps(*each, inside);
  }
  return sampler;
}

Action parse_train(JsonObject& object, const StepContext& context) {
  TrainStep train;
  const auto batches = object.find("batches");
  if (!batches && !context.in_sampler) {
    object.node().fail("lacks \"batches\", which is needed outside of a sampler's \"each\"");
  }
  if (batches) {
    for (const JsonNode& batch : batches->elements()) {
      train.batches.push_back(batch.whole(1, kBatchMax));
    }
    if (train.batches.empty()) batches->fail("is empty; allowed: one batch size for each step");
  }
  if (const auto flag = object.find("unused_parameters")) train.unused_parameters = flag->boolean();
  const auto join = object.find("join");
  if (join) train.join = join->boolean();
  if (train.join && !batches) join->fail("needs \"batches\": each rank's own number of steps");
  if (const auto flag = object.find("throw_on_early_termination")) {
    train.throw_on_early_termination = flag->boolean();
    if (!train.join) flag->fail("is an option of join; add \"join\": true");
  }
  return train;
}

Action parse_checkpoint(JsonObject& object, const StepContext& context, bool save) {
  CheckpointStep step{.save = save, .path = object.require("path").text()};
  if (const auto shared = object.find("shared")) step.shared = shared->boolean();
  if (save) return step;
  if (step.shared && context.payload != PayloadMode::kReal) {
    object.node().fail(
        "is a shared load, whose bytes come from rank 0; use payload \"real\", or \"shared\": "
        "false");
  }
  if (const auto expect = object.find("expect_step")) {
    step.expect_step = expect->whole(0, kTimesMax);
  }
  return step;
}

Action parse_repeat(JsonObject& object, const StepContext& context) {
  RepeatStep repeat;
  repeat.times = object.require("times").whole(0, kTimesMax);
  StepContext inside = context;
  inside.in_loop = true;
  repeat.steps = parse_steps(object.require("steps"), inside);
  return repeat;
}

// As far as it asks for ranks.
bool may_hold(const Condition& condition, int rank, const StepContext& context) {
  if (condition.ranks && !condition.ranks->contains(rank)) return false;
  return !condition.local_ranks ||
         condition.local_ranks->contains(local_rank_of(context.scenario.placement, rank));
}

bool must_hold(const Condition& condition, int rank, const StepContext& context) {
  return !condition.turns && !condition.result && may_hold(condition, rank, context);
}

Action parse_if(JsonObject& object, const StepContext& context) {
  IfStep step;
  Condition& condition = step.condition;
  if (const auto ranks = object.find("ranks")) {
    condition.ranks = parse_set(*ranks, context.world_size, "rank");
  }
  if (const auto ranks = object.find("local_ranks")) {
    condition.local_ranks = parse_set(*ranks, context.local_ranks, "local rank");
  }
  if (const auto turns = object.find("turns")) {
    if (!context.in_loop) turns->fail("stands in no repeat or sampler");
    condition.turns = parse_set(*turns, kTimesMax, "turn");
  }
  if (const auto result = object.find("result")) condition.result = result->number();
  if (!condition.ranks && !condition.local_ranks && !condition.turns && !condition.result) {
    object.node().fail(
        "lacks a condition; give \"ranks\", \"local_ranks\", \"turns\" or "
        "\"result\"");
  }
  StepContext inside = context;
  std::erase_if(inside.takers, [&](int rank) { return !may_hold(condition, rank, context); });
  step.then = parse_steps(object.require("then"), inside);
  inside.takers = context.takers;
  std::erase_if(inside.takers, [&](int rank) { return must_hold(condition, rank, context); });
  if (const auto otherwise = object.find("else")) step.otherwise = parse_steps(*otherwise, inside);
  return step;
}

Action parse_action(const std::string& name, JsonObject& object, const StepContext& context) {
  if (const auto op = find_operation(name)) return parse_call(*op, object, context);
  if (name == "compute" || name == "sleep") {
    return PassTime{object.require("for").duration(), name == "compute"};
  }
  if (name == "main_process_first") return parse_guard(object, context);
  if (name == "sampler") return parse_sampler(object, context);
  if (name == "train") return parse_train(object, context);
  if (name == "save_checkpoint") return parse_checkpoint(object, context, true);
  if (name == "load_checkpoint") return parse_checkpoint(object, context, false);
  if (name == "repeat") return parse_repeat(object, context);
  if (name == "if") return parse_if(object, context);
  if (name == "crash") return CrashStep{};
  if (name == "hang") return HangStep{};
  if (name == "exit") return ExitStep{};
  return ThrowStep{object.require("text").text()};
}

const std::vector<std::string>& step_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result = operation_names();
    for (const char* name :
         {"compute", "sleep", "main_process_first", "sampler", "train", "save_checkpoint",
          "load_checkpoint", "repeat", "if", "crash", "hang", "exit", "throw"}) {
      result.emplace_back(name);
    }
    return result;
  }();
  return names;
}

std::string describe_train(const TrainStep& train) {
  std::string text = train.join ? "in join" : "";
  if (!train.unused_parameters) return text;
  return text + (train.join ? ", " : "") + "with unused parameters";
}

// What a story adds to the step's name.
std::string details_of(const Action& action, const StepContext& context) {
  if (const auto* call = std::get_if<CallStep>(&action)) return describe(*call, context);
  if (const auto* time = std::get_if<PassTime>(&action)) return text_of(time->duration);
  if (const auto* guard = std::get_if<GuardStep>(&action)) {
    return fmt::format("per {}, work {}", guard->scope == GuardScope::kNode ? "node" : "world",
                       text_of(guard->work));
  }
  if (const auto* sampler = std::get_if<SamplerStep>(&action)) {
    return fmt::format("of {} samples, batches of {}", sampler->length, sampler->batch_size);
  }
  if (const auto* checkpoint = std::get_if<CheckpointStep>(&action)) return checkpoint->path;
  if (const auto* train = std::get_if<TrainStep>(&action)) return describe_train(*train);
  if (const auto* repeat = std::get_if<RepeatStep>(&action)) {
    return std::to_string(repeat->times) + " times";
  }
  if (const auto* thrown = std::get_if<ThrowStep>(&action)) return thrown->text;
  return "";
}

Step parse_step(const JsonNode& node, const StepContext& context) {
  JsonObject object(node);
  const JsonNode what = object.require("do");
  const std::string name = step_names()[what.choice(step_names())];
  Step step{name, parse_action(name, object, context)};
  object.finish();
  const std::string details = details_of(step.action, context);
  if (!details.empty()) step.text += " " + details;
  return step;
}

std::int64_t add(std::int64_t a, std::int64_t b) { return sim::add_time(a, b); }

std::int64_t multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::int64_t>::max()
                                                : product;
}

}  // namespace

RankSet parse_set(const JsonNode& node, std::int64_t end, std::string_view noun) {
  const std::string text = node.text();
  try {
    return RankSet::parse(text, end, noun);
  } catch (const ConfigError& error) {
    node.fail(std::string("is ") + error.what());
  }
}

Steps parse_steps(const JsonNode& node, const StepContext& context) {
  Steps steps;
  for (const JsonNode& element : node.elements()) steps.push_back(parse_step(element, context));
  return steps;
}

std::int64_t count_steps(const Steps& steps, int world_size) {
  std::int64_t total = 0;
  for (const Step& step : steps) {
    std::int64_t count = 1;
    if (const auto* repeat = std::get_if<RepeatStep>(&step.action)) {
      count = multiply(repeat->times, add(1, count_steps(repeat->steps, world_size)));
    } else if (const auto* sampler = std::get_if<SamplerStep>(&step.action)) {
      const std::int64_t samples = sampler->length / world_size + 1;
      count = add(samples, multiply(samples / sampler->batch_size + 1,
                                    count_steps(sampler->each, world_size)));
    } else if (const auto* train = std::get_if<TrainStep>(&step.action)) {
      count = static_cast<std::int64_t>(train->batches.size()) + 1;
    } else if (const auto* branch = std::get_if<IfStep>(&step.action)) {
      count = add(1, std::max(count_steps(branch->then, world_size),
                              count_steps(branch->otherwise, world_size)));
    }
    total = add(total, count);
  }
  return total;
}

}  // namespace ddproof::scenario
