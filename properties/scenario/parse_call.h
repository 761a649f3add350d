// Reads a step that is a call on the process group.
//
// Threads: any.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "properties/scenario/parse_steps.h"

namespace ddproof::scenario {

// "all_reduce", ..., "monitored_barrier".
const std::vector<std::string>& operation_names();
std::optional<Op> find_operation(const std::string& name);

// Throws ConfigError as parse_scenario().
CallStep parse_call(Op op, JsonObject& object, const StepContext& context);

// "at": "train.py:88"; without it the line of the file on which the step begins.
Site parse_site(JsonObject& object);

// What follows the call's name in a story: "sum float32 [4]".
std::string describe(const CallStep& call, const StepContext& context);

}  // namespace ddproof::scenario
