// Finds out, after a failure, which ranks are lost or late, so that all ranks report the same.
// The evidence is in the store (keys: tcp_connection.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/gloo/tcp/tcp_connection.h"

namespace ddproof {

class Inquest {
 public:
  Inquest(const TcpWorld& world, const TcpGroup& group) : world_(world), group_(group) {}

  // As GlooConnection::explain and publish.
  Finding explain(const Symptom& symptom);
  void publish(const Finding& finding);

 private:
  struct Evidence {
    std::vector<int> lost;         // ascending ranks of the group
    std::vector<std::string> how;  // of each lost rank: "its process died"
    std::vector<int> silent;       // neither lost nor broken: no sign of them
    bool somebody_timed_out = false;
  };

  Finding investigate(const Symptom& symptom);
  Evidence gather() const;
  std::optional<Finding> conclude(const Evidence& evidence, const Symptom& symptom,
                                  bool time_is_up) const;
  // The verdict that holds: this one, or that of a rank that was first.
  Finding agree_on(const Finding& finding);

  const TcpWorld& world_;
  const TcpGroup& group_;
};

}  // namespace ddproof
