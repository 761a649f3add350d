// Groups with a planted bug: what the properties must find. Each stands in front of a real group
// and changes one kind of call.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "backends/api/forwarding_process_group.h"
#include "properties/world.h"

namespace ddproof {

// The Work of a call that was left out.
class DoneWork final : public Work {
 public:
  bool is_completed() override { return true; }
  void wait(Duration) override {}
  std::exception_ptr error() override { return nullptr; }
};

// Given each call and the group to execute it on.
using Mutation = std::function<WorkPtr(ProcessGroup& inner, Call call)>;

class MutantGroup final : public ForwardingProcessGroup {
 public:
  MutantGroup(ProcessGroup& inner, Mutation mutation)
      : ForwardingProcessGroup(inner), mutation_(std::move(mutation)) {}

  WorkPtr submit(Call&& call) override { return mutation_(inner_, std::move(call)); }

 private:
  Mutation mutation_;
};

inline WrapGroup mutate(Mutation mutation) {
  return [mutation = std::move(mutation)](ProcessGroup& inner) {
    return std::make_unique<MutantGroup>(inner, mutation);
  };
}

// The call with only its first `count` elements.
inline Call shortened(Call call, std::int64_t count) {
  call.input = ConstBuffer(call.input.data(), call.input.type(), Layout(count));
  call.output = Buffer(call.output.data(), call.output.type(), Layout(count));
  return call;
}

}  // namespace ddproof
