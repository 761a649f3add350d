// How many calls per second a TCP store serves on the loopback interface: 64 clients in 4 tasks,
// each set followed by a get of the same key. Goal: at least 50,000 per second.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "backends/local/os_runtime.h"
#include "backends/store/tcp_store.h"
#include "backends/store/tcp_store_server.h"

namespace ddproof {
namespace {

constexpr int kRuns = 5;
constexpr int kTasks = 4;
constexpr int kClientsPerTask = 16;
constexpr int kRounds = 100;

// Calls per second in one run. A client with only one call at a time cannot keep the server busy
// alone; tasks take turns among their clients.
double run_once(Runtime& runtime, std::uint16_t port) {
  std::vector<std::unique_ptr<TcpStore>> clients;
  for (int i = 0; i < kTasks * kClientsPerTask; ++i) {
    clients.push_back(
        std::make_unique<TcpStore>(runtime, TcpStoreOptions{.host = "127.0.0.1", .port = port}));
  }
  const TimePoint begin = runtime.now();
  std::vector<std::unique_ptr<Task>> tasks;
  for (int task = 0; task < kTasks; ++task) {
    tasks.push_back(runtime.spawn("clients", [&clients, task] {
      for (int call = 0; call < kRounds * kClientsPerTask; ++call) {
        const int client = task * kClientsPerTask + call % kClientsPerTask;
        const std::string key = "key " + std::to_string(client);
        clients[static_cast<std::size_t>(client)]->set(key, "value");
        clients[static_cast<std::size_t>(client)]->get(key, kForever);
      }
    }));
  }
  for (const auto& task : tasks) task->join();
  const std::chrono::duration<double> elapsed = runtime.now() - begin;
  return 2.0 * kTasks * kClientsPerTask * kRounds / elapsed.count();
}

void run() {
  OsRuntime runtime;
  const TcpStoreServer server(runtime, {.host = "127.0.0.1"});
  std::vector<double> rates;
  for (int i = 0; i < kRuns; ++i) rates.push_back(run_once(runtime, server.port()));
  std::ranges::sort(rates);
  fmt::print(
      "store [tcp], {} clients: {:.0f} calls/s (min {:.0f}, max {:.0f}, {} runs), goal 50000\n",
      kTasks * kClientsPerTask, rates[kRuns / 2], rates.front(), rates.back(), kRuns);
}

}  // namespace
}  // namespace ddproof

int main() { ddproof::run(); }
