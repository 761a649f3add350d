#include "backends/local/local_process_group.h"

#include <cstring>
#include <utility>

namespace ddproof {
namespace {

class DoneWork final : public Work {
 public:
  explicit DoneWork(std::exception_ptr error) : error_(std::move(error)) {}
  bool is_completed() override { return true; }
  void wait(Duration) override {
    if (error_) std::rethrow_exception(error_);
  }
  std::exception_ptr error() override { return error_; }

 private:
  std::exception_ptr error_;
};

}  // namespace

Capabilities local_capabilities() {
  constexpr std::string_view kKeep = "keeps the data: the reduction of one is itself";
  constexpr std::string_view kCopy = "one copy";
  constexpr std::string_view kNothing = "nothing to wait for";
  return {.ops = {{Op::kAllReduce, kKeep},
                  {Op::kBroadcast, kKeep},
                  {Op::kReduce, kKeep},
                  {Op::kAllGather, kCopy},
                  {Op::kReduceScatter, kCopy},
                  {Op::kGather, kCopy},
                  {Op::kScatter, kCopy},
                  {Op::kAllToAll, kCopy},
                  {Op::kBarrier, kNothing},
                  {Op::kMonitoredBarrier, kNothing}},
          .dtypes = every_dtype(),
          .reduce_ops = every_reduce_op(),
          .custom_elements = true,
          .same_bits_every_run = true,
          .same_bits_every_rank = true};
}

LocalProcessGroup::LocalProcessGroup(Duration default_timeout, std::string name)
    : ProcessGroup(0, 1, default_timeout, std::move(name)), capabilities_(local_capabilities()) {}

std::unique_ptr<ProcessGroup> LocalProcessGroup::split(int color, int, CallSite) {
  std::string part = name_next_part(color);
  if (color < 0) return nullptr;
  return std::make_unique<LocalProcessGroup>(default_timeout(), std::move(part));
}

WorkPtr LocalProcessGroup::submit(Call&& call) {
  if (aborted_) {
    return std::make_shared<DoneWork>(std::make_exception_ptr(CommError(
        CommErrorKind::kAborted,
        who() + " " + call.describe() + ": abort() was called on this rank; make a new group")));
  }
  if (call.output.count() > 0 && call.output.data() != call.input.data()) {
    std::memmove(call.output.data(), call.input.data(), call.output.bytes());
  }
  return std::make_shared<DoneWork>(nullptr);
}

}  // namespace ddproof
