// ddproof sampler: prints which samples each rank draws.
#include <cstdint>
#include <limits>
#include <string>

#include "backends/api/error.h"
#include "cli/arguments.h"
#include "cli/subcommand.h"
#include "reference/data/distributed_sampler.h"

namespace ddproof {
namespace {

struct SamplerFlags {
  SamplerOptions options;
  std::int64_t epoch = 0;
  int only_rank = -1;  // -1: all
  bool json = false;
};

// False when only help was asked for.
bool parse(CommandContext& context, SamplerFlags& flags) {
  SamplerOptions& options = flags.options;
  options.length = -1;  // must be given, so help shows none
  bool no_shuffle = false;
  bool drop_last = false;
  Arguments arguments("ddproof sampler", "Prints which samples each rank draws in an epoch.");
  arguments.number("--length", options.length, 0, DistributedSampler::kMaxLength,
                   "samples in the data set");
  arguments.number("--world-size", options.replicas, 1, std::numeric_limits<int>::max(),
                   "ranks that share the data set");
  arguments.number("--rank", flags.only_rank, 0, std::numeric_limits<int>::max(),
                   "print this rank only");
  arguments.number("--seed", options.seed, "of the order; its sum with the epoch counts");
  arguments.number("--epoch", flags.epoch, 0, std::numeric_limits<std::int64_t>::max(),
                   "which epoch's order");
  arguments.flag("--no-shuffle", no_shuffle, "keep the data set's order");
  arguments.flag("--drop-last", drop_last, "drop the tail instead of padding");
  arguments.flag("--json", flags.json, "one JSON object");
  if (!arguments.parse(context.arguments, context.out)) return false;
  if (!arguments.given("--length")) {
    throw ConfigError("--length is missing; pass the number of samples");
  }
  options.shuffle = !no_shuffle;
  options.tail = drop_last ? Tail::kDrop : Tail::kPad;
  return true;
}

void print_list(const IndexList& indices, const char* separator, std::ostream& out) {
  for (std::int64_t i = 0; i < indices.size(); ++i) out << (i > 0 ? separator : "") << indices[i];
}

void print_head(const DistributedSampler& sampler, std::ostream& out) {
  const auto boolean = [](bool value) { return value ? "true" : "false"; };
  const SamplerOptions& options = sampler.options();
  out << "{\"length\":" << options.length << ",\"world_size\":" << options.replicas
      << ",\"seed\":" << options.seed << ",\"epoch\":" << sampler.epoch()
      << ",\"shuffle\":" << boolean(options.shuffle)
      << ",\"drop_last\":" << boolean(options.tail == Tail::kDrop)
      << ",\"num_samples\":" << sampler.size() << ",\"total_size\":" << sampler.total_size()
      << ",\"ranks\":[";
}

}  // namespace

int sampler_command(CommandContext& context) {
  SamplerFlags flags;
  if (!parse(context, flags)) return kExitHolds;
  const bool all = flags.only_rank < 0;
  const int first = all ? 0 : flags.only_rank;
  const int last = all ? flags.options.replicas - 1 : first;
  for (int rank = first; rank <= last; ++rank) {
    flags.options.rank = rank;
    DistributedSampler sampler(flags.options);
    sampler.set_epoch(flags.epoch);
    const IndexList indices = sampler.indices();  // before a word is printed: memory may not do
    if (flags.json && rank == first) print_head(sampler, context.out);
    if (flags.json) {
      context.out << (rank > first ? "," : "") << "{\"rank\":" << rank << ",\"indices\":[";
      print_list(indices, ",", context.out);
      context.out << "]}";
    } else {
      context.out << "rank " << rank << ": ";
      print_list(indices, " ", context.out);
      context.out << "\n";
    }
  }
  if (flags.json) context.out << "]}\n";
  return kExitHolds;
}

}  // namespace ddproof
