#include "backends/registry/registry.h"
#include "tests/contract/tested_backends.h"

namespace ddproof::contract {

std::vector<std::string> tested_backends() {
  std::vector<std::string> names;
  for (const BackendInfo& info : list_backends()) {
    // It has as many ranks as there are devices; on simulated ones it is tested by itself.
    if (info.available && info.name != "nccl") names.emplace_back(info.name);
  }
  return names;
}

std::unique_ptr<Backend> make_tested_backend(const std::string& name) { return make_backend(name); }

}  // namespace ddproof::contract
