// What every property is: a generator of cases, the classes a case belongs to, and a check that
// says in words what is wrong with a case. Running one draws cases from a seed, counts the classes,
// and shrinks the first case that fails.
//
// A check is a plain function of its case. It draws nothing and asserts nothing, so it may start
// ranks: rapidcheck's state is one stack per process, not per rank.
// Threads: one property at a time in a process (rapidcheck's rule).
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "backends/api/backend.h"
#include "backends/api/error.h"
#include "backends/api/runtime.h"

namespace ddproof {

// How to run a property. The same options give the same cases on every machine and compiler.
struct PropertyOptions {
  std::uint64_t seed = 1;
  int cases = 100;
  int max_size = 100;  // rapidcheck's size of the last case; bounds lists and numbers
  bool shrink = true;
  // Asked after each case that fails, the smallest last: more lines for the failure's text. Must
  // not throw.
  std::function<std::string()> tell_more = nullptr;
  // The command that repeats a run, with {name}, {seed}, {cases} and {size} to be filled in;
  // {rc_params} is "RC_PARAMS='max_size=N' " where N is not the default, else empty.
  std::string replay = "RC_PARAMS='seed={seed} max_success={cases} max_size={size}'";
};

struct PropertyResult {
  std::string name;
  bool holds = false;
  int cases = 0;  // tried before the first failure, or all of them
  double seconds = 0;
  std::uint64_t seed = 0;
  std::map<std::string, int> classes;      // how many cases were in each
  std::map<std::string, double> measures;  // the largest value seen, such as |error|/bound
  std::string failure;  // empty when it holds: what failed, on which shrunk case, and tell_more()'s
  std::string replay;   // one line; empty when it holds
};

// One line: "holds  sampler-partition: 100 cases in 0.02 s, seed 1 (padded 71, ...)"; after a
// failure also the case, what is wrong with it, and how to repeat the run.
std::string describe(const PropertyResult& result);

// RC_PARAMS as rapidcheck's users write it: "seed=7 max_success=1000". Throws ConfigError on a key
// other than seed, max_success, max_size and noshrink, and on a value that does not fit.
void apply_rc_params(std::string_view text, PropertyOptions& options);

template <class Case>
struct Property {
  std::string name;
  rc::Gen<Case> cases;
  std::function<std::string(const Case&)> describe;
  // Names of the classes that the case belongs to.
  std::function<std::vector<std::string>(const Case&)> classes;
  // What is wrong; empty when all is well. Whatever it throws counts as wrong.
  std::function<std::string(const Case&)> check;
};

namespace internal {

// Draws one case, writes its classes, checks it, and returns the case and what is wrong with it;
// empty when nothing is.
using DrawAndCheck = std::function<std::string(std::vector<std::string>& classes)>;

PropertyResult run_property(const std::string& name, const DrawAndCheck& draw_and_check,
                            const PropertyOptions& options, Runtime& runtime);

}  // namespace internal

// `runtime` is asked for the time only. Throws the ResourceError of a check: a machine that lacks
// memory or descriptors says nothing about the property.
template <class Case>
PropertyResult run_property(const Property<Case>& property, const PropertyOptions& options,
                            Runtime& runtime) {
  std::exception_ptr out_of_resources;
  const auto draw_and_check = [&](std::vector<std::string>& classes) -> std::string {
    const Case drawn = *property.cases;
    classes = property.classes(drawn);
    if (out_of_resources) return "";
    std::string wrong;
    try {
      wrong = property.check(drawn);
    } catch (const ResourceError&) {
      out_of_resources = std::current_exception();
    } catch (const std::exception& e) {
      wrong = std::string("threw: ") + e.what();
    } catch (...) {
      wrong = "threw what is no std::exception";
    }
    return wrong.empty() ? "" : property.describe(drawn) + "\n  " + wrong;
  };
  PropertyResult result = internal::run_property(property.name, draw_and_check, options, runtime);
  if (out_of_resources) std::rethrow_exception(out_of_resources);
  return result;
}

}  // namespace ddproof
