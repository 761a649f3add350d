// How `ddproof scenario` tells what came of a scenario: as text, and as one JSON object a line.
//
// Threads: one.
#pragma once

#include <ostream>
#include <string>

#include "properties/scenario/explore.h"

namespace ddproof {

void print_text(const std::string& path, const scenario::Scenario& scenario,
                const scenario::ScenarioResult& result, bool explain, std::ostream& out);

void print_json(const std::string& path, const scenario::Scenario& scenario,
                const scenario::ScenarioResult& result, bool explain, std::ostream& out);

}  // namespace ddproof
