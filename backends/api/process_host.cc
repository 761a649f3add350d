#include "backends/api/process_host.h"

#include <exception>
#include <string>
#include <vector>

namespace ddproof {
namespace {

// Runs `body` once per rank, each in a task, and returns when all have returned. No rank begins
// before all tasks have been started: when one cannot be, nobody waits for it, and what spawn()
// threw comes out.
void run_together(Runtime& owner, int world_size, const std::function<void(int rank)>& body) {
  enum class Start { kWait, kGo, kCancelled };
  const auto monitor = owner.make_monitor();
  Start start = Start::kWait;  // guarded by the monitor
  const auto decide = [&](Start decision) {
    MonitorLock lock(*monitor);
    start = decision;
    monitor->notify_all();
  };
  const auto may_go = [&] {
    MonitorLock lock(*monitor);
    while (start == Start::kWait) monitor->wait(kForever, {"all ranks' start", {}, {}});
    return start == Start::kGo;
  };
  std::vector<std::unique_ptr<Task>> tasks;
  std::exception_ptr failed;
  try {
    for (int rank = 0; rank < world_size; ++rank) {
      tasks.push_back(owner.spawn("rank " + std::to_string(rank), [&, rank] {
        if (may_go()) body(rank);
      }));
    }
  } catch (...) {
    failed = std::current_exception();
  }
  decide(failed ? Start::kCancelled : Start::kGo);
  for (const auto& task : tasks) task->join();
  if (failed) std::rethrow_exception(failed);
}

}  // namespace

void run_in_process(const ProcessHost& host, const WorldOptions& options, const JoinRank& join,
                    const std::function<void(RankContext&)>& body) {
  const auto owner = host.make_runtime(options.seed);
  const ProcessHost::Clients connect_store = host.make_store(*owner);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(options.world_size));
  const auto run_rank = [&](int rank) {
    // The runtimes' seeds differ, so that no two ranks draw the same numbers.
    const auto runtime = host.make_runtime(
        options.seed + 0x9e3779b97f4a7c15u * (static_cast<std::uint64_t>(rank) + 1));
    const auto store = connect_store(*runtime);
    const auto group =
        join({.rank = rank, .world_size = options.world_size, .timeout = options.timeout}, *runtime,
             *store);
    RankContext context{*group, *runtime};
    body(context);
  };
  run_together(*owner, options.world_size, [&](int rank) {
    try {
      run_rank(rank);
    } catch (...) {
      errors[static_cast<std::size_t>(rank)] = std::current_exception();
    }
  });
  rethrow_root_cause(errors);
}

}  // namespace ddproof
