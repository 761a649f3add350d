#include "reference/launch/main_process_first.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "backends/api/error.h"

namespace ddproof {
namespace {

constexpr const char* kLabel = "main_process_first";
constexpr std::size_t kTextBytesMax = 64 * 1024;

enum class FailureType : std::int64_t { kConfig, kResource, kData, kComm, kOther };

// A failure in the form in which it travels.
struct Failure {
  FailureType type = FailureType::kOther;
  CommErrorKind kind = CommErrorKind::kAborted;  // of kComm
  std::string text;
};

Failure describe(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const ConfigError& config) {
    return {.type = FailureType::kConfig, .text = config.what()};
  } catch (const ResourceError& resource) {
    return {.type = FailureType::kResource, .text = resource.what()};
  } catch (const DataError& data) {
    return {.type = FailureType::kData, .text = data.what()};
  } catch (const CommError& comm) {
    return {.type = FailureType::kComm, .kind = comm.kind(), .text = comm.what()};
  } catch (const std::exception& other) {
    return {.text = other.what()};
  } catch (...) {
    return {.text = "an exception that is no std::exception"};
  }
}

[[noreturn]] void raise(const Failure& failure, const std::string& who, int failed_rank) {
  const std::string text = who + " " + kLabel + ": the work failed on rank " +
                           std::to_string(failed_rank) + ": " + failure.text;
  switch (failure.type) {
    case FailureType::kConfig: throw ConfigError(text);
    case FailureType::kResource: throw ResourceError(text);
    case FailureType::kData: throw DataError(text);
    case FailureType::kComm: throw CommError(failure.kind, text, {failed_rank});
    case FailureType::kOther: break;
  }
  throw std::runtime_error(text);
}

// `failure` of rank `root`, on every rank.
Failure share(ProcessGroup& group, int root, Failure failure, CallSite site) {
  failure.text.resize(std::min(failure.text.size(), kTextBytesMax));
  std::int64_t header[] = {static_cast<std::int64_t>(failure.type),
                           static_cast<std::int64_t>(failure.kind),
                           static_cast<std::int64_t>(failure.text.size())};
  group.broadcast(Buffer::of(std::span(header)), root, {.label = kLabel}, site)->wait();
  failure.type = static_cast<FailureType>(header[0]);
  failure.kind = static_cast<CommErrorKind>(header[1]);
  std::vector<std::uint8_t> text(failure.text.begin(), failure.text.end());
  text.resize(static_cast<std::size_t>(header[2]));
  if (text.empty()) return failure;
  group.broadcast(Buffer::of(std::span(text)), root, {.label = kLabel}, site)->wait();
  failure.text.assign(text.begin(), text.end());
  return failure;
}

// Waits until every rank is here. Throws when the work failed somewhere, on every rank.
void agree(ProcessGroup& group, const std::exception_ptr& own, CallSite site) {
  // The lowest rank whose work failed; the group's size when all went well.
  std::int64_t failed_rank[] = {own ? group.rank() : group.size()};
  group.all_reduce(Buffer::of(std::span(failed_rank)), ReduceOp::kMin, {.label = kLabel}, site)
      ->wait();
  if (failed_rank[0] == group.size()) return;
  const int root = static_cast<int>(failed_rank[0]);
  const Failure failure = share(group, root, own ? describe(own) : Failure{}, site);
  if (!own) raise(failure, group.who(), root);
}

// Every rank's, by rank.
std::vector<std::int64_t> gather_local_ranks(ProcessGroup& group, int local_rank, CallSite site) {
  const std::int64_t mine[] = {local_rank};
  std::vector<std::int64_t> all(static_cast<std::size_t>(group.size()));
  group
      .all_gather(ConstBuffer::of(std::span(mine)), Buffer::of(std::span(all)), {.label = kLabel},
                  site)
      ->wait();
  return all;
}

// Throws on every rank unless every node has the local ranks 0, 1, ... in the order of its ranks:
// then somebody works for each node, and rank 0 is among them. A node whose local ranks go on where
// those of another end cannot be told from a part of it.
void require_local_ranks(const ProcessGroup& group, const std::vector<std::int64_t>& local_ranks) {
  const auto refuse = [&](std::size_t rank, const std::string& why) {
    throw ConfigError(group.who() + " " + kLabel + ": rank " + std::to_string(rank) +
                      " has local rank " + std::to_string(local_ranks[rank]) + why +
                      "; pass LOCAL_RANK, which counts from 0 on each node");
  };
  std::vector<int> nodes(local_ranks.size(), 0);  // by the highest local rank so far
  for (std::size_t rank = 0; rank < local_ranks.size(); ++rank) {
    const std::int64_t local_rank = local_ranks[rank];
    if (local_rank < 0 || local_rank > static_cast<std::int64_t>(rank)) {
      refuse(rank, ", allowed: 0 to " + std::to_string(rank));
    }
    const auto at = static_cast<std::size_t>(local_rank);
    if (at > 0 && nodes[at - 1]-- == 0) {
      refuse(rank, ", but its node has no local rank " + std::to_string(at - 1) + " before it");
    }
    ++nodes[at];
  }
}

}  // namespace

void run_main_process_work(const GuardContext& context, GuardScope scope,
                           const std::function<void()>& work, CallSite site) {
  if (context.local_rank == -1 && (context.group == nullptr || context.group->size() == 1)) {
    return work();
  }
  if (context.group == nullptr) {
    throw ConfigError(std::string(kLabel) + ": the local rank is " +
                      std::to_string(context.local_rank) +
                      ", but there is no group; join it first");
  }
  ProcessGroup& group = *context.group;
  require_local_ranks(group, gather_local_ranks(group, context.local_rank, site));
  std::exception_ptr own;
  try {
    if (scope == GuardScope::kNode ? context.local_rank == 0 : group.rank() == 0) work();
  } catch (...) {
    own = std::current_exception();
  }
  try {
    agree(group, own, site);
  } catch (...) {
    if (!own) throw;
  }
  if (own) std::rethrow_exception(own);
}

}  // namespace ddproof
