// ddproof backends: what each backend of this build can do.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backends/registry/registry.h"
#include "cli/arguments.h"
#include "cli/subcommand.h"

namespace ddproof {
namespace {

using Json = nlohmann::ordered_json;

struct Promise {
  const char* key;
  const char* text;
  bool Capabilities::*kept;
};
constexpr Promise kPromises[] = {
    {"custom_elements", "caller-defined elements", &Capabilities::custom_elements},
    {"device_buffers", "buffers on a device", &Capabilities::device_buffers},
    {"same_bits_every_run", "same bits in every run", &Capabilities::same_bits_every_run},
    {"same_bits_every_rank", "same bits on every rank", &Capabilities::same_bits_every_rank},
    {"virtual_time", "virtual time", &Capabilities::virtual_time},
    {"tells_deadlocks", "deadlocks are told at once", &Capabilities::tells_deadlocks},
};

std::vector<std::string> dtype_names(const Capabilities& capabilities) {
  std::vector<std::string> names;
  for (const DType dtype : capabilities.dtypes) names.emplace_back(ElementType(dtype).name());
  return names;
}

std::vector<std::string> reduce_op_names(const Capabilities& capabilities) {
  std::vector<std::string> names;
  for (const ReduceOp op : capabilities.reduce_ops) names.emplace_back(to_string(op));
  return names;
}

Json to_json(const BackendInfo& info) {
  Json json = {{"name", info.name}, {"what", info.what}, {"available", info.available}};
  if (!info.available) {
    json["why_not"] = info.why_not;
    return json;
  }
  const std::unique_ptr<Backend> backend = make_backend(info.name);
  const Capabilities& capabilities = backend->capabilities();
  json["joins_processes"] = backend->joins_processes();
  json["ops"] = Json::object();
  for (const OpSupport& support : capabilities.ops)
    json["ops"][to_string(support.op)] = support.how;
  json["dtypes"] = dtype_names(capabilities);
  json["reduce_ops"] = reduce_op_names(capabilities);
  for (const Promise& promise : kPromises) json[promise.key] = capabilities.*promise.kept;
  return json;
}

void print(const BackendInfo& info, std::ostream& out) {
  out << fmt::format("{}: {}\n", info.name, info.what);
  if (!info.available) {
    out << fmt::format("  {:<24} {}\n", "not available", info.why_not);
    return;
  }
  const std::unique_ptr<Backend> backend = make_backend(info.name);
  const Capabilities& capabilities = backend->capabilities();
  const auto yes_or_no = [](bool yes) { return yes ? "yes" : "no"; };
  const auto line = [&out](const std::string& name, const std::string& value) {
    out << fmt::format("  {:<24} {}\n", name, value);
  };
  for (const OpSupport& support : capabilities.ops) {
    line(to_string(support.op), std::string(support.how));
  }
  line("element types", fmt::format("{}", fmt::join(dtype_names(capabilities), " ")));
  line("reductions", fmt::format("{}", fmt::join(reduce_op_names(capabilities), " ")));
  for (const Promise& promise : kPromises) {
    line(promise.text, yes_or_no(capabilities.*promise.kept));
  }
  line("ranks in processes", yes_or_no(backend->joins_processes()));
}

}  // namespace

int backends_command(CommandContext& context) {
  bool json = false;
  Arguments arguments("ddproof backends", "Prints what each backend of this build can do.");
  arguments.flag("--json", json, "one JSON list");
  if (!arguments.parse(context.arguments, context.out)) return kExitHolds;
  if (json) {
    Json list = Json::array();
    for (const BackendInfo& info : list_backends()) list.push_back(to_json(info));
    context.out << list.dump(2) << "\n";
    return kExitHolds;
  }
  for (const BackendInfo& info : list_backends()) print(info, context.out);
  return kExitHolds;
}

}  // namespace ddproof
