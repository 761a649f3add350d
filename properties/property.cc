#include "properties/property.h"

#include <fmt/format.h>

#include <charconv>

#include "backends/api/error.h"

namespace ddproof {
namespace {

// Counts every case that was drawn, but not those that shrinking tried.
class Counter : public rc::detail::TestListener {
 public:
  Counter(PropertyResult& result, const std::vector<std::string>& classes)
      : result_(result), classes_(classes) {}

  void onTestCaseFinished(const rc::detail::CaseDescription&) override {
    ++result_.cases;
    for (const std::string& name : classes_) ++result_.classes[name];
  }
  void onShrinkTried(const rc::detail::CaseDescription&, bool) override {}
  void onTestFinished(const rc::detail::TestMetadata&, const rc::detail::TestResult&) override {}

 private:
  PropertyResult& result_;
  const std::vector<std::string>& classes_;  // of the case that just ran
};

template <class Number>
Number parse_number(std::string_view key, std::string_view text, Number lowest) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < lowest) {
    throw ConfigError(
        fmt::format("RC_PARAMS {}={}: expected a whole number from {}", key, text, lowest));
  }
  return value;
}

void apply_rc_param(std::string_view item, PropertyOptions& options) {
  const auto equals = item.find('=');
  const std::string_view key = item.substr(0, equals);
  const std::string_view value = equals == item.npos ? "" : item.substr(equals + 1);
  if (key == "seed")
    options.seed = parse_number<std::uint64_t>(key, value, 0);
  else if (key == "max_success")
    options.cases = parse_number(key, value, 1);
  else if (key == "max_size")
    options.max_size = parse_number(key, value, 0);
  else if (key == "noshrink")
    options.shrink = parse_number(key, value, 0) == 0;
  else {
    throw ConfigError(fmt::format(
        "RC_PARAMS {}: unknown key; known are seed, max_success, max_size, noshrink", key));
  }
}

}  // namespace

namespace internal {

PropertyResult run_property(const std::string& name, const DrawAndCheck& draw_and_check,
                            const PropertyOptions& options, Runtime& runtime) {
  PropertyResult result;
  result.name = name;
  result.seed = options.seed;
  rc::detail::TestParams params;
  params.seed = options.seed;
  params.maxSuccess = options.cases;
  params.maxSize = options.max_size;
  params.disableShrinking = !options.shrink;
  std::vector<std::string> classes;
  Counter counter(result, classes);
  const TimePoint start = runtime.now();
  const auto run_case = [&] {
    const std::string wrong = draw_and_check(classes);
    if (wrong.empty()) return;
    // Shrinking keeps every case that fails, so the last one to fail is the smallest. rapidcheck
    // would run it once more for its text, and on real ranks it may then pass.
    result.failure = wrong + (options.tell_more ? options.tell_more() : "");
    throw rc::detail::CaseResult(rc::detail::CaseResult::Type::Failure, wrong);
  };
  // With a map of our own, rapidcheck does not read RC_PARAMS behind our back.
  const auto outcome = rc::detail::checkProperty(rc::detail::toProperty(run_case), {name, name},
                                                 params, counter, {});
  result.seconds = std::chrono::duration<double>(runtime.now() - start).count();
  result.holds = outcome.is<rc::detail::SuccessResult>();
  if (!result.holds) {
    const std::string rc_params = options.max_size == PropertyOptions{}.max_size
                                      ? ""
                                      : fmt::format("RC_PARAMS='max_size={}' ", options.max_size);
    result.replay =
        fmt::format(fmt::runtime(options.replay), fmt::arg("name", name),
                    fmt::arg("seed", options.seed), fmt::arg("cases", options.cases),
                    fmt::arg("size", options.max_size), fmt::arg("rc_params", rc_params));
  }
  return result;
}

}  // namespace internal

void apply_rc_params(std::string_view text, PropertyOptions& options) {
  while (!text.empty()) {
    const auto end = text.find(' ');
    if (end != 0) apply_rc_param(text.substr(0, end), options);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
}

std::string describe(const PropertyResult& result) {
  std::string text = fmt::format("{} {}: {} case{} in {:.2f} s, seed {}",
                                 result.holds ? "holds " : "FAILED", result.name, result.cases,
                                 result.cases == 1 ? "" : "s", result.seconds, result.seed);
  std::string details;
  for (const auto& [name, count] : result.classes) {
    details += fmt::format("{}{} {}", details.empty() ? "" : ", ", name, count);
  }
  for (const auto& [name, value] : result.measures) {
    details += fmt::format("{}{} {:.3g}", details.empty() ? "" : ", ", name, value);
  }
  if (!details.empty()) text += " (" + details + ")";
  if (!result.holds) {
    text += fmt::format("\n  {}\n  replay: {}", result.failure, result.replay);
  }
  return text;
}

}  // namespace ddproof
