// A non-blocking NCCL communicator: what NCCL answers with ncclInProgress is waited for here, and
// nowhere else.
//
// Invariants: no call is made on it while another is in progress; it is aborted, not destroyed,
// when its rank leaves after a failure. Errors: LibraryError when the call failed on this rank,
// Mismatch when NCCL says that it was used wrongly, Interrupted for a failure elsewhere and for the
// the end of patience. Threads: check() and abort() from any task, the others from one at a time.
#pragma once

#include <nccl.h>

#include <memory>
#include <string>

#include "backends/nccl/cuda_calls.h"
#include "backends/nccl/patience.h"

namespace ddproof::nccl {

// NCCL says that the ranks' calls do not fit.
class Mismatch : public LibraryError {
 public:
  using LibraryError::LibraryError;
};

// The oldest library that this code may run with: the one whose headers it was built with, since
// ncclConfig_t grows from version to version.
inline constexpr int kNcclVersionNeeded = NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, 0);

// "2.28.9".
std::string nccl_version_text(int code);

// Throws LibraryError when the loaded library is older than that, naming both versions.
void require_nccl_version();

// The call was taken: it is done, or goes on by itself.
inline bool is_accepted(ncclResult_t result) {
  return result == ncclSuccess || result == ncclInProgress;
}

// What ncclGetUniqueId gives, as bytes. Throws LibraryError.
std::string make_unique_id();

class Communicator {
 public:
  // `runtime` must outlive this.
  explicit Communicator(Runtime& runtime) : runtime_(runtime), monitor_(runtime.make_monitor()) {}
  // As abort(), unless finish() was called; but returns only when the abort is over.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Returns when all `size` ranks are connected. On the calling thread's device.
  void connect(const std::string& unique_id, int rank, int size, const Patience& patience);
  // Returns once what `enqueue(communicator)` asked for is in its stream. `call` is NCCL's name.
  // `is_group`: several calls, which go on together.
  template <class Enqueue>
  void run(const std::string& call, bool is_group, const Patience& patience, Enqueue&& enqueue) {
    ncclResult_t result = ncclSuccess;
    {
      MonitorLock lock(*monitor_);
      require_living(call);
      if (is_group) result = ncclGroupStart();
      if (result == ncclSuccess) result = enqueue(communicator_);
      // Also after a failure: groups nest per thread.
      const ncclResult_t end = is_group ? ncclGroupEnd() : result;
      if (is_accepted(result)) result = end;
    }
    settle(result, call, patience);
  }
  // Throws when NCCL has noticed a failure since, or it was aborted.
  void check(const std::string& call) const;

  // Ends in peace with the other ranks. Throws as the others do; then it is to be aborted.
  void finish(const Patience& patience);
  // Ends its operations on the device, and itself: later calls throw Interrupted. Idempotent. NCCL
  // sets its own abort no bound: returns after two seconds also when that is not over.
  void abort() noexcept;

 private:
  void settle(ncclResult_t returned, const std::string& call, const Patience& patience);
  void require_living(const std::string& call) const;
  // Throws Interrupted when it was aborted.
  ncclResult_t state(const std::string& call) const;
  [[noreturn]] void fail(ncclResult_t result, const std::string& call) const;

  Runtime& runtime_;
  std::unique_ptr<Monitor> monitor_;  // guards all below, during calls of NCCL too
  ncclComm_t communicator_ = nullptr;
  bool aborted_ = false;
  std::unique_ptr<Task> aborting_;
};

}  // namespace ddproof::nccl
