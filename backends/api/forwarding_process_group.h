// A ProcessGroup in front of another one, to which it forwards everything: what a group that
// changes or watches some calls derives from.
//
// Threads: as those of the other one.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "backends/api/process_group.h"

namespace ddproof {

class ForwardingProcessGroup : public ProcessGroup {
 public:
  // `inner` must outlive this.
  explicit ForwardingProcessGroup(ProcessGroup& inner)
      : ProcessGroup(inner.rank(), inner.size(), inner.default_timeout(), inner.name()),
        inner_(inner) {}

  std::string_view backend_name() const override { return inner_.backend_name(); }
  const Capabilities& capabilities() const override { return inner_.capabilities(); }
  std::unique_ptr<ProcessGroup> split(int color, int key, CallSite site) override {
    return inner_.split(color, key, site);
  }
  void abort() override { inner_.abort(); }
  void prepare(Call& call) override { inner_.prepare(call); }
  WorkPtr submit(Call&& call) override { return inner_.submit(std::move(call)); }

 protected:
  ProcessGroup& inner_;
};

}  // namespace ddproof
