// A non-blocking NCCL communicator: what NCCL answers with ncclInProgress is waited for here, and
// nowhere else.
//
// Invariants: no call is made on it while another is in progress; it is aborted, not destroyed,
// when its rank leaves after a failure. Errors: LibraryError when the call failed on this rank,
// Mismatch when NCCL says that it was used wrongly, Interrupted for a failure elsewhere and for the
// end of patience. Threads: one task at a time.
#pragma once

#include <nccl.h>

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
  Communicator() = default;
  // As abort(), unless finish() was called.
  ~Communicator() { abort(); }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Returns when all `size` ranks are connected. On the calling thread's device.
  void connect(const std::string& unique_id, int rank, int size, const Patience& patience);
  // Returns once what `enqueue(communicator)` asked for is in its stream. `call` is NCCL's name.
  template <class Enqueue>
  void run(const std::string& call, const Patience& patience, Enqueue&& enqueue) {
    settle(enqueue(communicator_), call, patience);
  }
  // As run(), for sends and receives that shall go on together.
  template <class Enqueue>
  void run_together(const std::string& call, const Patience& patience, Enqueue&& enqueue) {
    const ncclResult_t start = ncclGroupStart();
    if (start != ncclSuccess) fail(start, "ncclGroupStart");
    const ncclResult_t inside = enqueue(communicator_);
    const ncclResult_t end = ncclGroupEnd();  // also after a failure: groups nest per thread
    settle(is_accepted(inside) ? end : inside, call, patience);
  }
  // Throws when NCCL has noticed a failure since.
  void check(const std::string& call) const;

  // Ends in peace with the other ranks. Throws as the others do; then it is to be aborted.
  void finish(const Patience& patience);
  // Ends its operations on the device, and itself. Idempotent.
  void abort() noexcept;

 private:
  void settle(ncclResult_t returned, const std::string& call, const Patience& patience);
  ncclResult_t state() const;
  [[noreturn]] void fail(ncclResult_t result, const std::string& call) const;

  ncclComm_t communicator_ = nullptr;
};

}  // namespace ddproof::nccl
