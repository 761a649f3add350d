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
  BackendInfo info;
  std::function<std::unique_ptr<Backend>()> make;
};

Entry missing(std::string_view name, std::string_view what, std::string_view why_not) {
  return {{name, what, false, why_not}, nullptr};
}

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
  return {{"gloo", kWhat, true, ""}, [] { return std::make_unique<GlooBackend>(this_process()); }};
#else
  return missing("gloo", kWhat, "built without Gloo (DDPROOF_WITH_GLOO=OFF)");
#endif
}

Entry sim_entry() {
  constexpr std::string_view kWhat = "Gloo between simulated ranks in one process, virtual time";
#ifdef DDPROOF_WITH_GLOO
  return {{"sim", kWhat, true, ""}, [] { return std::make_unique<SimBackend>(); }};
#else
  return missing("sim", kWhat, "built without Gloo (DDPROOF_WITH_GLOO=OFF)");
#endif
}

Entry nccl_entry() {
  constexpr std::string_view kWhat = "NCCL between CUDA devices";
  const std::string& why_not = why_no_nccl_module();
  if (!why_not.empty()) return missing("nccl", kWhat, why_not);
  return {{"nccl", kWhat, true, ""}, [] { return make_nccl_backend(this_process()); }};
}

std::vector<Entry> entries() {
  std::vector<Entry> result;
  result.push_back({{"single", "one rank, no communication", true, ""},
                    [] { return std::make_unique<SingleBackend>(); }});
  result.push_back(sim_entry());
  result.push_back(gloo_entry());
  result.push_back(nccl_entry());
  return result;
}

}  // namespace

std::vector<BackendInfo> list_backends() {
  std::vector<BackendInfo> result;
  for (const Entry& entry : entries()) result.push_back(entry.info);
  return result;
}

std::unique_ptr<Backend> make_backend(std::string_view name) {
  std::string known;
  for (const Entry& entry : entries()) {
    if (entry.info.name != name) {
      known += (known.empty() ? "" : ", ") + std::string(entry.info.name);
      continue;
    }
    if (!entry.info.available) {
      throw ConfigError("backend " + std::string(name) + ": " + std::string(entry.info.why_not));
    }
    return std::make_unique<CheckedBackend>(entry.make());
  }
  throw ConfigError("backend is \"" + std::string(name) + "\", allowed are " + known);
}

}  // namespace ddproof
