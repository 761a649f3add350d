#include "reference/train/shared_checkpoint.h"

#include <array>
#include <string>
#include <vector>

namespace ddproof {
namespace {

enum Outcome : std::int64_t { kNothing, kDone, kFailed };

// Rank 0's bytes, on every rank.
std::vector<std::byte> share_bytes(ProcessGroup& group, std::vector<std::byte> bytes) {
  const auto mine = static_cast<std::int64_t>(bytes.size());
  std::array<std::int64_t, 2> size{mine, ~mine};
  group.broadcast(Buffer::of(size), 0, {.label = "checkpoint size"})->wait();
  if (size[1] != ~size[0]) {  // else a flipped bit asks for terabytes
    throw DataError(group.who() +
                    " checkpoint size: what came from rank 0 was damaged on its way (" +
                    std::to_string(size[0]) + " bytes, and " + std::to_string(~size[1]) +
                    " to compare); restart the job");
  }
  bytes.resize(static_cast<std::size_t>(size[0]));
  group
      .broadcast(Buffer(bytes.data(), element_of<std::uint8_t>(), Layout(size[0])), 0,
                 {.label = "checkpoint bytes"})
      ->wait();
  return bytes;
}

std::string share_text(ProcessGroup& group, const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  const std::vector<std::byte> shared = share_bytes(group, {bytes.begin(), bytes.end()});
  return {reinterpret_cast<const char*>(shared.data()), shared.size()};
}

// Runs `work` on rank 0, or here without a group, and gives its outcome to all; throws what it
// threw on all.
template <class Work>
Outcome on_rank_zero(ProcessGroup* group, const Work& work) {
  if (group == nullptr) return work();
  std::array<std::int64_t, 1> outcome{kNothing};
  std::string error;
  if (group->rank() == 0) {
    try {
      outcome[0] = work();
    } catch (const DataError& failure) {
      outcome[0] = kFailed;
      error = failure.what();
    }
  }
  group->broadcast(Buffer::of(outcome), 0, {.label = "checkpoint outcome"})->wait();
  if (outcome[0] == kFailed) throw DataError("rank 0: " + share_text(*group, error));
  return static_cast<Outcome>(outcome[0]);
}

}  // namespace

bool exists_shared(const CheckpointDirectory& directory, ProcessGroup* group) {
  return on_rank_zero(group, [&] { return directory.exists() ? kDone : kNothing; }) == kDone;
}

std::optional<LoadedCheckpoint> load_shared(const CheckpointDirectory& directory,
                                            ProcessGroup* group) {
  LoadedCheckpoint loaded;
  const auto load = [&] {
    if (!directory.exists()) return kNothing;
    loaded = directory.load();
    return kDone;
  };
  if (on_rank_zero(group, load) == kNothing) return std::nullopt;
  if (group == nullptr) return loaded;
  loaded.path = share_text(*group, loaded.path);
  loaded.warning = share_text(*group, loaded.warning);
  loaded.bytes = share_bytes(*group, std::move(loaded.bytes));
  return loaded;
}

void require_writable_shared(CheckpointDirectory& directory, ProcessGroup* group) {
  on_rank_zero(group, [&] {
    directory.require_writable();
    return kDone;
  });
}

void save_shared(CheckpointDirectory& directory, std::span<const std::byte> state,
                 ProcessGroup* group) {
  on_rank_zero(group, [&] {
    directory.save(state);
    return kDone;
  });
}

}  // namespace ddproof
