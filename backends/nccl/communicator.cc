#include "backends/nccl/communicator.h"

#include <cstring>

namespace ddproof::nccl {

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
  settle(ncclCommInitRankConfig(&communicator_, size, id, rank, &config), "ncclCommInitRank",
         patience);
}

void Communicator::settle(ncclResult_t returned, const std::string& call,
                          const Patience& patience) {
  if (!is_accepted(returned)) fail(returned, call);
  patience.until(call, [&] {
    const ncclResult_t now = state();
    if (now == ncclInProgress) return false;
    if (now != ncclSuccess) fail(now, call);
    return true;
  });
}

ncclResult_t Communicator::state() const {
  ncclResult_t asynchronous = ncclSuccess;
  const ncclResult_t result = ncclCommGetAsyncError(communicator_, &asynchronous);
  return result == ncclSuccess ? asynchronous : result;
}

void Communicator::check(const std::string& call) const {
  const ncclResult_t now = state();
  if (!is_accepted(now)) fail(now, call);
}

void Communicator::fail(ncclResult_t result, const std::string& call) const {
  std::string text = call + ": " + ncclGetErrorString(result);
  const char* detail = communicator_ == nullptr ? nullptr : ncclGetLastError(communicator_);
  if (detail != nullptr && *detail != '\0') text += std::string(" (") + detail + ")";
  if (result == ncclRemoteError) throw Interrupted{false, text};
  if (result == ncclInvalidUsage || result == ncclInvalidArgument) throw Mismatch(text);
  throw LibraryError(text);
}

void Communicator::finish(const Patience& patience) {
  if (communicator_ == nullptr) return;
  settle(ncclCommFinalize(communicator_), "ncclCommFinalize", patience);
  const ncclResult_t result = ncclCommDestroy(communicator_);
  communicator_ = nullptr;
  if (!is_accepted(result)) fail(result, "ncclCommDestroy");
}

void Communicator::abort() noexcept {
  if (communicator_ == nullptr) return;
  (void)ncclCommAbort(communicator_);
  communicator_ = nullptr;
}

}  // namespace ddproof::nccl
