// A rank of a gloo world in which one rank kills itself in the middle of a call.
//
//   doomed_rank VICTIM sums K      endless all-reduces; the victim dies at its K-th addition
//   doomed_rank VICTIM transfer    every rank sends to the victim, which dies when the first bytes
//                                  of the first message are there: that message is half sent
//   doomed_rank VICTIM endless     endless all-reduces; somebody kills the victim from outside
//
// Prints "ready" when connected, and at the end the error that the call threw.
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "backends/gloo/tcp/gloo_backend.h"
#include "backends/local/os_runtime.h"
#include "reference/launch/rendezvous.h"

namespace ddproof {
namespace {

constexpr std::size_t kSumBytes = std::size_t{8} << 20;        // several of Gloo's segments
constexpr std::size_t kTransferBytes = std::size_t{64} << 20;  // more than any socket buffers

[[noreturn]] void die() {
  ::kill(::getpid(), SIGKILL);
  while (true) ::pause();
}

// How many additions are left to this process; negative: no end.
std::atomic<int>& additions_left() {
  static std::atomic<int> left = -1;
  return left;
}

void add_bytes(void* accumulator, const void* addend, std::size_t count) {
  if (additions_left() > 0 && --additions_left() == 0) die();
  auto* to = static_cast<std::uint8_t*>(accumulator);
  const auto* from = static_cast<const std::uint8_t*>(addend);
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<std::uint8_t>(to[i] + from[i]);
}

constexpr CustomElement kCountedByte{"counted byte", 1, &add_bytes};

[[noreturn]] void sum_for_ever(ProcessGroup& group) {
  std::vector<std::uint8_t> data(kSumBytes, 1);
  const Buffer buffer(data.data(), ElementType(&kCountedByte),
                      Layout(static_cast<std::int64_t>(data.size())));
  while (true) group.all_reduce(buffer)->wait();
}

void send_to(ProcessGroup& group, int victim) {
  std::vector<std::uint8_t> data(kTransferBytes, 1);
  group.send(ConstBuffer(Buffer::of(std::span(data))), victim)->wait();
}

[[noreturn]] void receive_a_little(ProcessGroup& group) {
  std::vector<std::uint8_t> data(kTransferBytes, 0);
  const WorkPtr work = group.recv(Buffer::of(std::span(data)), group.size() - 1);
  while (std::atomic_ref(data[0]).load() == 0) ::sched_yield();
  die();
}

void meet_the_end(ProcessGroup& group, int victim, const std::string& mode) {
  if (mode != "transfer") sum_for_ever(group);
  if (group.rank() == victim) receive_a_little(group);
  send_to(group, victim);
}

int run(int victim, const std::string& mode, int additions) {
  OsRuntime runtime;
  try {
    const LaunchEnvironment launch = read_launch_environment(runtime.environment());
    if (launch.rank == victim) additions_left() = additions;
    Rendezvous rendezvous(runtime, launch, std::chrono::minutes(1));
    GlooBackend backend(ProcessHost{});
    const auto group = backend.join({.rank = launch.rank,
                                     .world_size = launch.world_size,
                                     .store_host = rendezvous.store_host()},
                                    runtime, rendezvous.store());
    std::cout << "ready" << std::endl;
    meet_the_end(*group, victim, mode);
  } catch (const CommError& error) {
    std::cout << to_string(error.kind()) << ": " << error.what() << std::endl;
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace ddproof

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  return ddproof::run(std::stoi(argv[1]), argv[2], argc > 3 ? std::stoi(argv[3]) : -1);
}
