// Reads tests/golden: outputs of PyTorch 1.13.1 that ours must equal.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace ddproof {

inline nlohmann::json read_golden(const std::string& name) {
  const std::string path = std::string(DDPROOF_SOURCE_DIR) + "/tests/golden/" + name;
  std::ifstream stream(path);
  if (!stream) throw std::runtime_error(path + " is missing");
  return nlohmann::json::parse(stream);
}

// A hex float as Python's float.hex() writes it.
inline double hex_float(const std::string& text) { return std::stod(text); }

}  // namespace ddproof
