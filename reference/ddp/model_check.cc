#include "reference/ddp/model_check.h"

#include <algorithm>
#include <sstream>

#include "reference/ddp/agreement.h"

namespace ddproof {
namespace {

std::string describe(const ParameterInfo& parameter) {
  std::string text = parameter.name + " " + parameter.type + " [";
  for (std::size_t i = 0; i < parameter.shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(parameter.shape[i]);
  }
  return text + "]";
}

std::string describe(const std::vector<ParameterInfo>& parameters) {
  std::string text;
  for (const ParameterInfo& parameter : parameters) text += describe(parameter) + "\n";
  return text;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) result.push_back(line);
  return result;
}

// The first parameter in which `rank` differs from rank 0.
std::string difference(const std::string& reference, const std::string& other, std::size_t rank) {
  const auto expected = lines(reference);
  const auto seen = lines(other);
  if (expected.size() != seen.size()) {
    return "rank 0 has " + std::to_string(expected.size()) + " parameters, rank " +
           std::to_string(rank) + " has " + std::to_string(seen.size());
  }
  const auto [here, there] = std::ranges::mismatch(expected, seen);
  if (here == expected.end()) return "rank " + std::to_string(rank) + " has a damaged list of them";
  return "parameter " + std::to_string(here - expected.begin()) + " is " + *here +
         " on rank 0 and " + *there + " on rank " + std::to_string(rank);
}

}  // namespace

void require_same_model(ProcessGroup& group, const std::vector<ParameterInfo>& parameters) {
  const std::string text = describe(parameters);
  if (all_ranks_have(group, text, "model")) return;
  const std::vector<std::string> texts = gather_texts(group, text, "model");
  const std::size_t odd = first_odd_rank(group, texts, "model");
  throw ConfigError(group.who() + " DistributedDataParallel: the model differs between ranks: " +
                    difference(texts[0], texts[odd], odd) +
                    "; build the same model, in the same order, on every rank");
}

}  // namespace ddproof
