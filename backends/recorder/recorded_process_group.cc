#include "backends/recorder/recorded_process_group.h"

#include <utility>

namespace ddproof {
namespace {

class RecordedWork final : public Work {
 public:
  RecordedWork(WorkPtr inner, Runtime& runtime, FlightRecorder& recorder, std::uint64_t record)
      : inner_(std::move(inner)), runtime_(runtime), recorder_(recorder), record_(record) {}

  bool is_completed() override {
    const bool done = inner_->is_completed();
    if (done) note();
    return done;
  }

  void wait(Duration timeout) override {
    try {
      inner_->wait(timeout);
    } catch (...) {
      if (inner_->error()) note();  // else only this wait has ended
      throw;
    }
    note();
  }

  std::exception_ptr error() override { return inner_->error(); }

 private:
  void note() { recorder_.end(record_, runtime_.now(), inner_->error() != nullptr); }

  WorkPtr inner_;
  Runtime& runtime_;
  FlightRecorder& recorder_;
  std::uint64_t record_;
};

}  // namespace

RecordedProcessGroup::RecordedProcessGroup(ProcessGroup& inner, Runtime& runtime,
                                           FlightRecorder& recorder)
    : ForwardingProcessGroup(inner), runtime_(runtime), recorder_(recorder) {}

RecordedProcessGroup::RecordedProcessGroup(std::unique_ptr<ProcessGroup> inner, Runtime& runtime,
                                           FlightRecorder& recorder)
    : RecordedProcessGroup(*inner, runtime, recorder) {
  owned_ = std::move(inner);
}

std::unique_ptr<ProcessGroup> RecordedProcessGroup::split(int color, int key, CallSite site) {
  std::unique_ptr<ProcessGroup> part = inner_.split(color, key, site);
  if (!part) return nullptr;
  return std::make_unique<RecordedProcessGroup>(std::move(part), runtime_, recorder_);
}

WorkPtr RecordedProcessGroup::submit(Call&& call) {
  const std::uint64_t record = recorder_.begin(*this, call, runtime_.now());
  return std::make_shared<RecordedWork>(inner_.submit(std::move(call)), runtime_, recorder_,
                                        record);
}

}  // namespace ddproof
