#include "reference/ddp/options.h"

#include <algorithm>

#include "backends/api/error.h"
#include "backends/api/suggest.h"
#include "reference/ddp/agreement.h"

namespace ddproof {

const char* to_string(Averaging averaging) {
  switch (averaging) {
    case Averaging::kWorld: return "world";
    case Averaging::kSamples: return "samples";
    case Averaging::kSum: return "sum";
  }
  return "";
}

void require_same_options(ProcessGroup& group, const DdpOptions& options) {
  std::string order;
  for (std::size_t index : options.gradient_order) order += " " + std::to_string(index);
  std::string ignored;
  for (const std::string& name : options.parameters_to_ignore) ignored += " " + name;
  const auto flag = [](bool value) { return value ? "true" : "false"; };
  require_same_settings(group,
                        {{"bucket_cap_bytes", std::to_string(options.bucket_cap_bytes)},
                         {"gradient_order", "[" + order + " ]"},
                         {"find_unused_parameters", flag(options.find_unused_parameters)},
                         {"static_graph", flag(options.static_graph)},
                         {"broadcast_buffers", flag(options.broadcast_buffers)},
                         {"averaging", to_string(options.averaging)},
                         {"parameters_to_ignore", "[" + ignored + " ]"}},
                        "make DistributedDataParallel with the same options on every rank");
}

void require_known_names(const std::vector<std::string>& ignored,
                         const std::vector<std::string>& names) {
  for (const std::string& name : ignored) {
    if (std::ranges::find(names, name) != names.end()) continue;
    throw ConfigError("DistributedDataParallel: parameters_to_ignore has " + name +
                      ", which the module has not" + did_you_mean(name, names));
  }
}

}  // namespace ddproof
