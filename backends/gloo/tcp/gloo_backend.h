// The backend `gloo`: the real Gloo library over TCP, between processes and, for tests, between
// threads of this process over loopback.
//
// Threads: any; holds no state but its capabilities.
#pragma once

#include <functional>
#include <memory>

#include "backends/api/backend.h"
#include "backends/api/process_host.h"

namespace ddproof {

class GlooBackend final : public Backend {
 public:
  explicit GlooBackend(ProcessHost host);

  std::string_view name() const override { return "gloo"; }
  const Capabilities& capabilities() const override { return *capabilities_; }
  // Each rank is a task of an operating system's Runtime. Real sockets, real time.
  WorldReport run_world(const WorldOptions& options,
                        const std::function<void(RankContext&)>& body) override;
  bool joins_processes() const override { return true; }
  // Every rank joins once per generation of the world; a store may see any number of generations,
  // one after another or at once. Adds to the store client's last wills.
  // Throws ConfigError when rank or world size are bad or differ from what the other ranks say.
  std::unique_ptr<ProcessGroup> join(const Membership& membership, Runtime& runtime,
                                     Store& store) override;

 private:
  ProcessHost host_;
  std::shared_ptr<const Capabilities> capabilities_;
};

}  // namespace ddproof
