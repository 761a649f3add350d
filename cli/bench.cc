// ddproof bench: how fast a backend's collectives are, in the columns of nccl-tests.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "backends/api/suggest.h"
#include "backends/registry/registry.h"
#include "cli/arguments.h"
#include "cli/device.h"
#include "cli/subcommand.h"
#include "properties/bandwidth.h"

namespace ddproof {
namespace {

// By the names that nccl-tests and users know.
struct NamedOp {
  const char* name;
  Op op;
};
constexpr NamedOp kOperations[] = {
    {"all_reduce", Op::kAllReduce}, {"broadcast", Op::kBroadcast},
    {"reduce", Op::kReduce},        {"all_gather", Op::kAllGather},
    {"gather", Op::kGather},        {"reduce_scatter", Op::kReduceScatter},
    {"scatter", Op::kScatter},      {"all_to_all", Op::kAllToAll},
    {"sendrecv", Op::kSend},
};

struct BenchFlags {
  std::string backend = "sim";
  int world_size = 4;
  std::vector<NamedOp> ops;
  std::int64_t min_bytes = 1 << 10;
  std::int64_t max_bytes = 16 << 20;
  int factor = 4;
  BandwidthOptions options;
  DeviceFlags device;
  std::uint64_t seed = 0;
  bool json = false;
};

// Throws ConfigError for a name that is none.
NamedOp operation(const std::string& name) {
  std::vector<std::string> names;
  for (const NamedOp& known : kOperations) {
    if (known.name == name) return known;
    names.emplace_back(known.name);
  }
  throw ConfigError(fmt::format("--op is \"{}\", allowed are {}{}", name, fmt::join(names, ", "),
                                did_you_mean(name, names)));
}

// False when only help was asked for.
bool parse(CommandContext& context, BenchFlags& flags) {
  constexpr std::int64_t kMost = std::int64_t{1} << 34;
  Arguments arguments("ddproof bench",
                      "Times collectives on a backend, in the columns of nccl-tests: time of a "
                      "call, algorithm and bus bandwidth, wrong elements. Where time is virtual, "
                      "so are these.");
  arguments.text("--backend", flags.backend, "where the ranks are; see `ddproof backends`");
  arguments.number("--world-size", flags.world_size, 2, 1024, "ranks, all in this process");
  std::vector<std::string> ops;
  arguments.texts(
      "--op", ops,
      "all_reduce (the default), broadcast, reduce, all_gather, reduce_scatter, gather, "
      "scatter, all_to_all or sendrecv; may be given several times");
  arguments.number("-b,--min-bytes", flags.min_bytes, 0, kMost, "of the first row");
  arguments.number("-e,--max-bytes", flags.max_bytes, 0, kMost, "of the last row");
  arguments.number("-f,--step-factor", flags.factor, 2, 1 << 20, "from row to row");
  arguments.number("-w,--warmup-iters", flags.options.warm_up, 0, 1'000'000, "calls before");
  arguments.number("-n,--iters", flags.options.calls, 1, 1'000'000, "calls that are timed");
  arguments.number("--seed", flags.seed, "of the schedule, with --backend sim");
  declare_device_flags(arguments, flags.device);
  arguments.flag("--json", flags.json, "one JSON object per row");
  if (!arguments.parse(context.arguments, context.out)) return false;
  if (ops.empty()) ops = {"all_reduce"};
  for (const std::string& name : ops) flags.ops.push_back(operation(name));
  if (flags.max_bytes < flags.min_bytes) {
    throw ConfigError(fmt::format("--max-bytes is {}, less than --min-bytes, {}", flags.max_bytes,
                                  flags.min_bytes));
  }
  return true;
}

void print_head(const BenchFlags& flags, std::ostream& out) {
  out << fmt::format("# {}, {} ranks, {} + {} calls a row\n", flags.backend, flags.world_size,
                     flags.options.warm_up, flags.options.calls);
  out << fmt::format("#{:>11} {:>12} {:>14} {:>8} {:>6} {:>11} {:>9} {:>9} {:>7}\n", "size",
                     "count", "operation", "type", "redop", "time", "algbw", "busbw", "#wrong");
  out << fmt::format("#{:>11} {:>12} {:>14} {:>8} {:>6} {:>11} {:>9} {:>9} {:>7}\n", "(B)",
                     "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "");
}

void print(const NamedOp& op, const BandwidthRow& row, const BenchFlags& flags, std::ostream& out) {
  const char* redop = reduces(op.op) ? "sum" : "none";
  if (flags.json) {
    out << nlohmann::ordered_json{{"op", op.name},
                                  {"size", row.bytes},
                                  {"count", row.count},
                                  {"type", "float"},
                                  {"redop", redop},
                                  {"time_us", row.seconds * 1e6},
                                  {"algbw_gbps", row.algorithm_bandwidth / 1e9},
                                  {"busbw_gbps", row.bus_bandwidth / 1e9},
                                  {"wrong", row.wrong}}
               .dump();
  } else {
    out << fmt::format(" {:>11} {:>12} {:>14} {:>8} {:>6} {:>11.2f} {:>9.3f} {:>9.3f} {:>7}",
                       row.bytes, row.count, op.name, "float", redop, row.seconds * 1e6,
                       row.algorithm_bandwidth / 1e9, row.bus_bandwidth / 1e9, row.wrong);
  }
  out << std::endl;
}

// All rows of one operation, by one world. Returns how many elements were wrong.
std::int64_t measure(Backend& backend, const NamedOp& op, const BenchFlags& flags,
                     std::ostream& out) {
  std::int64_t wrong = 0;
  const WorldOptions world{.world_size = flags.world_size, .seed = flags.seed, .checked = false};
  backend.run_world(world, [&](RankContext& rank) {
    const std::unique_ptr<Device<float>> device =
        make_device(flags.device, backend, rank.group.rank());
    BandwidthOptions options = flags.options;
    options.op = op.op;
    for (options.bytes = flags.min_bytes; options.bytes <= flags.max_bytes;) {
      const BandwidthRow row = measure_bandwidth(rank, *device, options);
      if (rank.group.rank() == 0) {
        print(op, row, flags, out);
        wrong += row.wrong;
      }
      options.bytes = std::max<std::int64_t>(options.bytes, 1) * flags.factor;
    }
  });
  return wrong;
}

}  // namespace

int bench_command(CommandContext& context) {
  BenchFlags flags;
  if (!parse(context, flags)) return kExitHolds;
  const std::unique_ptr<Backend> backend = make_backend(flags.backend);
  require_device_fits(flags.device, *backend, true);
  if (!flags.json) print_head(flags, context.out);
  std::int64_t wrong = 0;
  for (const NamedOp& op : flags.ops) wrong += measure(*backend, op, flags, context.out);
  if (wrong == 0) return kExitHolds;
  context.err << fmt::format("ddproof bench: {} elements are wrong\n", wrong);
  return kExitFailed;
}

}  // namespace ddproof
