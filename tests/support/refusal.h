// What a caller is told who asks for something that makes no sense.
#pragma once

#include <string>

#include "backends/api/error.h"

namespace ddproof {

// The text of the ConfigError that `body` throws; "not refused" where it throws none.
template <class Body>
std::string refusal_of(const Body& body) {
  try {
    body();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "not refused";
}

}  // namespace ddproof
