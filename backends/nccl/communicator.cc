#include "backends/nccl/communicator.h"

#include <cstring>
#include <utility>

namespace ddproof::nccl {
namespace {

constexpr Duration kAbortTimeout = std::chrono::seconds(2);

}  // namespace

std::string nccl_version_text(int code) {
  const int major = code >= 10'000 ? code / 10'000 : code / 1000;
  const int rest = code >= 10'000 ? code % 10'000 : code % 1000;
  return std::to_string(major) + "." + std::to_string(rest / 100) + "." +
         std::to_string(rest % 100);
}

void require_nccl_version() {
  int version = 0;
  const ncclResult_t result = ncclGetVersion(&version);
  if (result != ncclSuccess) {
    throw LibraryError(std::string("ncclGetVersion: ") + ncclGetErrorString(result));
  }
  if (version >= kNcclVersionNeeded) return;
  throw LibraryError("NCCL is " + nccl_version_text(version) + ", needed is " +
                     nccl_version_text(kNcclVersionNeeded) + " or newer; install a newer NCCL");
}

std::string make_unique_id() {
  ncclUniqueId id;
  const ncclResult_t result = ncclGetUniqueId(&id);
  if (result != ncclSuccess) {
    throw LibraryError(std::string("ncclGetUniqueId: ") + ncclGetErrorString(result));
  }
  return {id.internal, sizeof(id.internal)};
}

void Communicator::connect(const std::string& unique_id, int rank, int size,
                           const Patience& patience) {
  ncclUniqueId id{};
  unique_id.copy(id.internal, sizeof(id.internal));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  constexpr const char* kCall = "ncclCommInitRank";
  ncclResult_t result = ncclSuccess;
  {
    MonitorLock lock(*monitor_);
    result = ncclCommInitRankConfig(&communicator_, size, id, rank, &config);
  }
  settle(result, kCall, patience);
}

void Communicator::settle(ncclResult_t returned, const std::string& call,
                          const Patience& patience) {
  if (!is_accepted(returned)) fail(returned, call);
  patience.until(call, [&] {
    const ncclResult_t now = state(call);
    if (now == ncclInProgress) return false;
    if (now != ncclSuccess) fail(now, call);
    return true;
  });
}

void Communicator::require_living(const std::string& call) const {
  if (communicator_ == nullptr) throw Interrupted{false, call + ": the communicator was aborted"};
}

ncclResult_t Communicator::state(const std::string& call) const {
  MonitorLock lock(*monitor_);
  require_living(call);
  ncclResult_t asynchronous = ncclSuccess;
  const ncclResult_t result = ncclCommGetAsyncError(communicator_, &asynchronous);
  return result == ncclSuccess ? asynchronous : result;
}

void Communicator::check(const std::string& call) const {
  const ncclResult_t now = state(call);
  if (!is_accepted(now)) fail(now, call);
}

void Communicator::fail(ncclResult_t result, const std::string& call) const {
  std::string text = call + ": " + ncclGetErrorString(result);
  MonitorLock lock(*monitor_);
  const char* detail = communicator_ == nullptr ? nullptr : ncclGetLastError(communicator_);
  if (detail != nullptr && *detail != '\0') text += std::string(" (") + detail + ")";
  if (result == ncclRemoteError) throw Interrupted{false, text};
  if (result == ncclInvalidUsage || result == ncclInvalidArgument) throw Mismatch(text);
  throw LibraryError(text);
}

void Communicator::finish(const Patience& patience) {
  if (communicator_ == nullptr) return;
  constexpr const char* kCall = "ncclCommFinalize";
  run(kCall, false, patience,
      [](ncclComm_t communicator) { return ncclCommFinalize(communicator); });
  const ncclResult_t result = ncclCommDestroy(std::exchange(communicator_, nullptr));
  if (!is_accepted(result)) fail(result, "ncclCommDestroy");
}

void Communicator::abort() noexcept {
  MonitorLock lock(*monitor_);
  const ncclComm_t communicator = std::exchange(communicator_, nullptr);
  if (communicator == nullptr) return;
  try {
    aborting_ = runtime_.spawn("nccl abort", [this, communicator] {
      (void)ncclCommAbort(communicator);
      MonitorLock lock(*monitor_);
      aborted_ = true;
      monitor_->notify_all();
    });
    const TimePoint deadline = deadline_after(runtime_.now(), kAbortTimeout);
    while (!aborted_ && monitor_->wait(deadline, {.what = "ncclCommAbort", .is_local = true})) {
    }
  } catch (...) {
    // This rank dies, or has no task left: what it had on the device ends with its process.
  }
}

Communicator::~Communicator() {
  abort();
  if (!aborting_) return;
  try {
    aborting_->join();
  } catch (...) {
    // Of the simulator: it would never have ended.
  }
}

}  // namespace ddproof::nccl
