// A ProcessGroup over any connected gloo::Context: Gloo's algorithms over TCP (backends/gloo/tcp)
// and over the simulator (backends/sim).
//
// Invariants: calls run one after another in one task of the Runtime, each under a tag of its own,
// so that calls that do not belong together never exchange data. The class blocks only in Gloo's
// buffer waits and in the Runtime; it has no thread, lock or clock of its own. All ranks hold the
// same bytes after all_reduce (Gloo's ring and bcube reduce each part once, then copy it).
// A call that fails closes the connection, so that the failure reaches every rank.
// Timeouts bound each wait inside a call.
// Threads: as ProcessGroup; abort() from any task.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "backends/api/process_group.h"
#include "backends/api/runtime.h"
#include "backends/api/serial_queue.h"
#include "backends/gloo/gloo_connection.h"

namespace ddproof {

enum class AllReduceAlgorithm {
  kAuto,   // bcube up to kBcubeBytesMax, ring above; few bytes of min and max along a tree
           // where bcube would take many messages
  kRing,   // 2(N-1) steps of 1/N of the data each: fewest bytes per link
  kBcube,  // about 2 log2(N) steps: lowest latency
};

inline constexpr std::size_t kBcubeBytesMax = std::size_t{1} << 20;

struct GlooGroupOptions {
  std::string backend_name;  // "gloo", "sim": what messages say
  std::shared_ptr<const Capabilities> capabilities;
  Duration default_timeout = std::chrono::minutes(30);
  AllReduceAlgorithm all_reduce = AllReduceAlgorithm::kAuto;
  std::string name = {};
};

// What every group of this class can do. The simulator adds virtual_time.
Capabilities gloo_capabilities();

class GlooProcessGroup final : public ProcessGroup {
 public:
  // `runtime` must outlive the group.
  GlooProcessGroup(std::unique_ptr<GlooConnection> connection, Runtime& runtime,
                   GlooGroupOptions options);
  // Finishes what was submitted; when an exception is on its way, aborts instead.
  ~GlooProcessGroup() override;

  std::string_view backend_name() const override { return options_.backend_name; }
  const Capabilities& capabilities() const override { return *options_.capabilities; }
  std::unique_ptr<ProcessGroup> split(int color, int key, CallSite site) override;
  void abort() override;
  WorkPtr submit(Call&& call) override;

 private:
  void execute(const Call& call);
  void leave(const std::string& why);
  [[noreturn]] void fail(const Call& call, const Symptom& symptom);

  std::unique_ptr<GlooConnection> connection_;
  Runtime& runtime_;
  GlooGroupOptions options_;
  int uncaught_at_start_;
  std::uint64_t collectives_ = 0;  // begun, the same on all ranks; touched by the queue's task only
  std::atomic<bool> aborted_ = false;
  SerialQueue queue_;  // last: its task uses all the others
};

}  // namespace ddproof
