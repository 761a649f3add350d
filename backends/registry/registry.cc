#include "backends/registry/registry.h"

#include <functional>
#include <utility>

#include "backends/api/error.h"
#include "backends/checked/checked_backend.h"
#include "backends/local/os_runtime.h"
#include "backends/local/single_backend.h"
#include "backends/registry/nccl_module.h"
#include "backends/store/memory_store.h"
#ifdef DDPROOF_WITH_GLOO
#include "backends/gloo/tcp/gloo_backend.h"
#include "backends/sim/sim_backend.h"
#endif

namespace ddproof {
namespace {

struct Entry {
  std::string_view name;
  std::string_view what;
  // Asked only of the backend that is wanted: to answer for one may load its library.
  std::function<std::string_view()> why_not;
  std::function<std::unique_ptr<Backend>()> make;
};

std::string_view always() { return ""; }

#ifndef DDPROOF_WITH_GLOO
std::string_view without_gloo() { return "built without Gloo (DDPROOF_WITH_GLOO=OFF)"; }
#endif

// Ranks as tasks of this process.
ProcessHost this_process() {
  return {.make_runtime = [](std::uint64_t seed) { return std::make_unique<OsRuntime>(seed); },
          .make_store = [](Runtime& owner) -> ProcessHost::Clients {
            auto server = std::make_shared<MemoryStoreServer>(owner);
            return [server](Runtime& rank) { return std::make_unique<MemoryStore>(server, rank); };
          }};
}

Entry gloo_entry() {
  constexpr std::string_view kWhat = "Gloo over TCP between processes";
#ifdef DDPROOF_WITH_GLOO
  return {"gloo", kWhat, always, [] { return std::make_unique<GlooBackend>(this_process()); }};
#else
  return {"gloo", kWhat, without_gloo, nullptr};
#endif
}

Entry sim_entry() {
  constexpr std::string_view kWhat = "Gloo between simulated ranks in one process, virtual time";
#ifdef DDPROOF_WITH_GLOO
  return {"sim", kWhat, always, [] { return std::make_unique<SimBackend>(); }};
#else
  return {"sim", kWhat, without_gloo, nullptr};
#endif
}

std::vector<Entry> entries() {
  return {
      {"single", "one rank, no communication", always,
       [] { return std::make_unique<SingleBackend>(); }},
      sim_entry(),
      gloo_entry(),
      {"nccl", "NCCL between CUDA devices", [] { return std::string_view(why_no_nccl_module()); },
       [] { return make_nccl_backend(this_process()); }}};
}

}  // namespace

std::vector<BackendInfo> list_backends() {
  std::vector<BackendInfo> result;
  for (const Entry& entry : entries()) {
    const std::string_view why_not = entry.why_not();
    result.push_back({entry.name, entry.what, why_not.empty(), why_not});
  }
  return result;
}

std::unique_ptr<Backend> make_backend(std::string_view name) {
  std::string known;
  for (const Entry& entry : entries()) {
    if (entry.name != name) {
      known += (known.empty() ? "" : ", ") + std::string(entry.name);
      continue;
    }
    if (const std::string_view why_not = entry.why_not(); !why_not.empty()) {
      throw ConfigError("backend " + std::string(name) + ": " + std::string(why_not));
    }
    return std::make_unique<CheckedBackend>(entry.make());
  }
  throw ConfigError("backend is \"" + std::string(name) + "\", allowed are " + known);
}

}  // namespace ddproof
