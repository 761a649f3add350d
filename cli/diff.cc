// ddproof diff: where the logs of two runs first differ.
#include <sstream>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "backends/api/files.h"
#include "cli/arguments.h"
#include "cli/subcommand.h"
#include "simulator/trace.h"

namespace ddproof {
namespace {

std::istringstream read_log(const std::string& path, FileSystem& files) {
  const std::vector<std::byte> bytes = read_file(files, path);
  return std::istringstream(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

}  // namespace

int diff_command(CommandContext& context) {
  std::vector<std::string> logs;
  std::int64_t lines = 3;
  Arguments arguments("ddproof diff",
                      "Says where two event logs (ddproof scenario --log) first differ. Exit "
                      "status: 0 they are the same, 1 they differ.");
  arguments.number("--context", lines, 0, 1'000'000, "lines to show before the difference");
  arguments.rest("logs", logs, "two logs, after all flags");
  if (!arguments.parse(context.arguments, context.out)) return kExitHolds;
  refuse_flags_among(logs);
  if (logs.size() != 2) {
    throw ConfigError("expected two logs, saw " + std::to_string(logs.size()));
  }
  std::istringstream one = read_log(logs[0], context.runtime.files());
  std::istringstream other = read_log(logs[1], context.runtime.files());
  const auto difference = sim::first_difference(one, other, static_cast<std::size_t>(lines));
  if (!difference) {
    context.out << "no difference\n";
    return kExitHolds;
  }
  context.out << "--- " << logs[0] << "\n+++ " << logs[1] << "\n" << *difference;
  return kExitFailed;
}

}  // namespace ddproof
