// A machine with CUDA devices for a simulated world: what the stand-in's C API works on.
//
// The stand-in is the part of libcudart's and libnccl's C API that backends/nccl uses, compiled
// against the real headers, for ranks that are fibers of one simulation. It checks how the API is
// used: order between streams, life of memory, what ranks must do alike. It does not model what a
// GPU or NCCL does inside, nor how long it takes.
//
// Invariants: each stream is a fiber, in order within itself, and in any order to others that the
// scheduler finds; so what is missing an event wait goes wrong under some seed. Addresses, handles
// and communicators are never used twice, so that use after the end is noticed. Every misuse is one
// line of complaints(): "rank 1: cudaFree: ...". A program that is right leaves none.
// Threads: that of the simulation.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/nccl/standin/memory.h"
#include "backends/nccl/standin/nccl_call.h"
#include "backends/nccl/standin/script.h"
#include "simulator/random.h"
#include "simulator/simulation.h"
#include "simulator/wait_list.h"

namespace ddproof::standin {

class Clique;

struct MachineOptions {
  int devices = 8;         // of each host
  int ranks_per_host = 0;  // 0: all ranks are on one host
  std::uint64_t seed = 0;  // how long what NCCL does by itself takes
  bool has_driver = true;
  int nccl_version = NCCL_VERSION_CODE;
  std::vector<Script> scripts = {};  // what fails, and when
};

// A device of one host. `error`: what every later call on it returns; a device does not recover.
struct Device {
  int host = 0;
  int index = 0;
  cudaError_t error = cudaSuccess;
  std::string name() const;  // "device 1 of host 0"
};

// A call within ncclGroupStart and ncclGroupEnd.
struct GroupedCall {
  ncclComm* communicator = nullptr;
  cudaStream_t stream = nullptr;
  NcclCall call;
};

// What CUDA and NCCL keep per host thread: here, per fiber.
struct HostThread {
  int device = 0;
  cudaError_t last_error = cudaSuccess;
  int group_depth = 0;
  std::vector<GroupedCall> grouped = {};
  bool in_host_function = false;
};

class Machine {
 public:
  // `simulation` must outlive this; its ranks are the processes that see the devices.
  Machine(sim::Simulation& simulation, MachineOptions options);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Misuses so far, one line each.
  const std::vector<std::string>& complaints() const { return complaints_; }
  // Who waited for whom when a collective was given up.
  const std::vector<std::string>& missed() const { return missed_; }
  // After the run: one more complaint for each thing that a rank which did not crash has not freed.
  void complain_about_leaks();

  // --- For the implementation of the API, from a fiber ---

  sim::Simulation& simulation() { return simulation_; }
  const MachineOptions& options() const { return options_; }
  Memory& memory() { return memory_; }
  int rank() const { return simulation_.current()->rank(); }
  HostThread& thread() { return threads_[simulation_.current()->id()]; }
  // The calling thread's.
  Device& device() { return device_of(rank(), thread().device); }
  Device& device_of(int rank, int index);

  // "rank 1: CALL: WHAT", of the calling rank or another.
  void complain(const std::string& call, const std::string& what) {
    complain_for(rank(), call, what);
  }
  void complain_for(int rank, const std::string& call, const std::string& what);
  // What concerns several ranks.
  void complain_of_all(const std::string& what) { complaints_.push_back(what); }
  void miss(const std::string& what) { missed_.push_back(what); }

  // Counts the calling rank's call; the script that it meets, or null.
  const Script* meet_script(std::string_view call);
  // Never returns.
  [[noreturn]] void hang(const std::string& call);
  // Runs `body` as a fiber of the calling rank after a moment that the seed chooses.
  void soon(std::string name, std::function<void()> body);
  bool flip() { return (random_.next() & 1) != 0; }

  // Waits until the streams of the calling rank are idle.
  void drain_streams(const std::string& call);
  cudaStream_t add_stream();
  cudaEvent_t add_event();
  ncclComm_t add_communicator();
  std::string next_unique_id();
  Clique& clique_of(const std::string& unique_id, int size);

 private:
  sim::Simulation& simulation_;
  MachineOptions options_;
  sim::SplitMix64 random_;
  Memory memory_;
  std::map<std::pair<int, int>, Device> devices_;  // by host and index
  std::map<std::uint64_t, HostThread> threads_;    // by fiber
  std::map<std::pair<int, std::string>, int> calls_;
  std::vector<std::string> complaints_;
  std::vector<std::string> missed_;
  std::vector<std::unique_ptr<CUstream_st>> streams_;
  std::vector<std::unique_ptr<CUevent_st>> events_;
  std::vector<std::unique_ptr<ncclComm>> communicators_;
  std::map<std::string, std::unique_ptr<Clique>> cliques_;  // by unique id
  int unique_ids_ = 0;
  sim::WaitList never_;
};

// The machine that the C API finds, for a scope of this thread: the run of a simulation.
class MachineScope {
 public:
  explicit MachineScope(Machine& machine);
  ~MachineScope();
  MachineScope(const MachineScope&) = delete;
  MachineScope& operator=(const MachineScope&) = delete;

 private:
  Machine* before_;
};

// Null outside of scopes.
Machine* current_machine();

}  // namespace ddproof::standin
