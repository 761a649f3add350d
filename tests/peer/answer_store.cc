#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>

#include "backends/api/error.h"
#include "backends/local/os_runtime.h"
#include "backends/store/memory_store.h"
#include "tests/peer/answers.h"

namespace ddproof::peer {
namespace {

using nlohmann::json;

constexpr Duration kTimeout = std::chrono::milliseconds(50);

json answer_call(Store& store, const json& call) {
  const std::string name = call.at(0);
  const auto text = [&](std::size_t place) { return call.at(place).get<std::string>(); };
  if (name == "set") return store.set(text(1), text(2)), json();
  if (name == "get") return store.get(text(1), kTimeout);
  if (name == "add") return store.add(text(1), call.at(2).get<std::int64_t>());
  if (name == "compare_set") return store.compare_set(text(1), text(2), text(3));
  if (name == "delete_key") return store.remove(text(1));
  if (name == "num_keys") return store.num_keys();
  if (name == "wait") return store.wait(call.at(1), kTimeout), json();
  throw std::runtime_error("no call " + name);
}

}  // namespace

json answer_store(const json& question) {
  OsRuntime runtime;
  MemoryStore store(std::make_shared<MemoryStoreServer>(runtime), runtime);
  json answers = json::array();
  for (const json& call : question.at("calls")) {
    try {
      answers.push_back(answer_call(store, call));
    } catch (const CommError&) {
      answers.push_back("timeout");
    } catch (const ConfigError&) {
      answers.push_back("refused");
    }
  }
  return answers;
}

}  // namespace ddproof::peer
