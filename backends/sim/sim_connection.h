// The simulator under a GlooProcessGroup: the connected context, and who is to blame after a
// failure. The simulator knows who crashed and who waits, so nobody has to ask around.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/gloo/gloo_connection.h"
#include "backends/sim/fabric.h"

namespace ddproof {

class SimConnection final : public GlooConnection {
 public:
  explicit SimConnection(Endpoint& endpoint);

  const std::shared_ptr<gloo::Context>& context() override { return context_; }
  Payload& begin_call(const Call& call) override { return endpoint_.begin_call(call); }
  void end_call(const Call& call, bool completed) noexcept override {
    endpoint_.end_call(call, completed);
  }
  bool run_whole(const gloo_operations::Operation& operation) override;
  void close() override { endpoint_.close(); }
  // The group's first finding is everybody's: crashed members if there are any, else whom nobody
  // saw in the group when time ran out, else who left first.
  Finding explain(const Symptom& symptom) override;
  void publish(const Finding& finding) override;
  std::unique_ptr<GlooConnection> connect_subgroup(const std::string& name,
                                                   const std::vector<int>& members, int my_rank,
                                                   Duration timeout) override;

 private:
  Finding find_out(const Symptom& symptom) const;

  Endpoint& endpoint_;
  std::shared_ptr<gloo::Context> context_;
};

}  // namespace ddproof
