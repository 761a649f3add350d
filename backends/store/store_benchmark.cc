// How many calls per second a TCP store serves on the loopback interface: 64 clients in 4 tasks,
// each set followed by a get of the same key, beside PyTorch's TCPStore where Debian's
// python3-torch is installed. Goal: at least 50,000 per second.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
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

// The same of PyTorch's; nothing where it is not installed.
std::optional<double> run_torch_once() {
  const std::string command =
      fmt::format("/usr/bin/python3 '{}' {} {} {} 2>/dev/null", DDPROOF_STORE_BENCHMARK_PY, kTasks,
                  kClientsPerTask, kRounds);
  FILE* const output = popen(command.c_str(), "r");
  if (output == nullptr) return std::nullopt;
  double rate = 0;
  const bool has_rate = std::fscanf(output, "%lf", &rate) == 1;
  return pclose(output) == 0 && has_rate ? std::optional(rate) : std::nullopt;
}

// Prints and returns the median.
double print_median(const char* name, std::vector<double> rates) {
  std::ranges::sort(rates);
  const double median = rates[rates.size() / 2];
  fmt::print("{:<20} {:8.0f} calls/s (min {:.0f}, max {:.0f}, {} runs)\n", name, median,
             rates.front(), rates.back(), rates.size());
  return median;
}

void run() {
  OsRuntime runtime;
  const TcpStoreServer server(runtime, {.host = "127.0.0.1"});
  std::vector<double> ours, theirs;
  for (int i = 0; i < kRuns; ++i) {
    ours.push_back(run_once(runtime, server.port()));
    if (const auto rate = run_torch_once()) theirs.push_back(*rate);
  }
  fmt::print("{} clients, goal 50000 calls/s\n", kTasks * kClientsPerTask);
  const double mine = print_median("ddproof", ours);
  if (theirs.empty()) return fmt::print("PyTorch: not measured, python3-torch is not installed\n");
  fmt::print("{:<20} {:8.1f}\n", "ratio", mine / print_median("PyTorch's TCPStore", theirs));
}

}  // namespace
}  // namespace ddproof

int main() { ddproof::run(); }
