#include "tests/nccl/on_device_backend.h"

#include <cstring>
#include <utility>

#include "backends/api/forwarding_process_group.h"
#include "tests/nccl/on_device.h"

namespace ddproof {
namespace {

using Bytes = OnDevice<std::byte>;

// One buffer of a call, and its copy on the device.
class Copy {
 public:
  Copy(const TestStream& stream, const ConstBuffer& host)
      : host_(host), device_(stream, bytes_of(host)) {}

  Buffer on_device() const {
    return {device_.data(), host_.type(), host_.layout(), device_.stream()};
  }
  void bring_back(const Buffer& to) const {
    if (to.count() == 0) return;
    const std::vector<std::byte> bytes = device_.values();
    std::memcpy(to.data(), bytes.data(), bytes.size());
  }

 private:
  static std::vector<std::byte> bytes_of(const ConstBuffer& host) {
    const auto* begin = static_cast<const std::byte*>(host.data());
    return {begin, begin + host.bytes()};
  }

  ConstBuffer host_;
  Bytes device_;
};

class OnDeviceWork final : public Work {
 public:
  OnDeviceWork(ProcessGroup& inner, const TestStream& stream, Call&& call)
      : in_(stream, call.input), output_(call.output) {
    const bool in_place = call.output.data() == call.input.data();
    if (!in_place) out_ = std::make_unique<Copy>(stream, call.output);
    call.input = in_.on_device();
    call.output = in_place ? in_.on_device() : out_->on_device();
    inner.prepare(call);
    inner_ = inner.submit(std::move(call));
  }
  ~OnDeviceWork() override {
    if (delivered_ || std::uncaught_exceptions() > 0) return;
    try {
      wait(kForever);
    } catch (const CommError&) {  // the next call tells it
    }
  }

  bool is_completed() override { return inner_->is_completed(); }
  std::exception_ptr error() override { return inner_->error(); }
  void wait(Duration timeout) override {
    inner_->wait(timeout);
    if (!std::exchange(delivered_, true)) (out_ ? *out_ : in_).bring_back(output_);
    if (const std::exception_ptr error = inner_->error()) std::rethrow_exception(error);
  }

 private:
  Copy in_;
  std::unique_ptr<Copy> out_;  // null: in place
  Buffer output_;
  WorkPtr inner_;
  bool delivered_ = false;
};

class OnDeviceGroup final : public ForwardingProcessGroup {
 public:
  explicit OnDeviceGroup(ProcessGroup& inner) : ForwardingProcessGroup(inner) {}
  explicit OnDeviceGroup(std::unique_ptr<ProcessGroup> inner) : OnDeviceGroup(*inner) {
    owned_ = std::move(inner);
  }

  std::unique_ptr<ProcessGroup> split(int color, int key, CallSite site) override {
    auto part = inner_.split(color, key, site);
    return part ? std::make_unique<OnDeviceGroup>(std::move(part)) : nullptr;
  }
  void prepare(Call&) override {}
  WorkPtr submit(Call&& call) override {
    if (call.input.count() + call.output.count() == 0) return inner_.submit(std::move(call));
    return std::make_shared<OnDeviceWork>(inner_, stream_, std::move(call));
  }

 private:
  TestStream stream_;
  std::unique_ptr<ProcessGroup> owned_;  // null when borrowed
};

}  // namespace

WorldReport OnDeviceBackend::run_world(const WorldOptions& options,
                                       const std::function<void(RankContext&)>& body) {
  return inner_->run_world(options, [&](RankContext& rank) {
    OnDeviceGroup group(rank.group);
    RankContext on_device{group, rank.runtime};
    body(on_device);
  });
}

}  // namespace ddproof
