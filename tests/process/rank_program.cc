// A program for the launcher: reads the environment contract, meets the other ranks at the store,
// and says so.
#include <iostream>

#include "backends/local/os_runtime.h"
#include "reference/launch/rendezvous.h"

int main() {
  ddproof::OsRuntime runtime;
  const auto launch = ddproof::read_launch_environment(runtime.environment());
  ddproof::Rendezvous rendezvous(runtime, launch, std::chrono::seconds(30));
  ddproof::Store& store = rendezvous.store();
  const auto key = [](int rank) { return "rank " + std::to_string(rank); };
  store.set(key(launch.rank), "");
  for (int rank = 0; rank < launch.world_size; ++rank) {
    store.wait({key(rank)}, std::chrono::seconds(30));
  }
  std::cout << "met " << launch.world_size << " by " << launch.source << std::endl;
}
