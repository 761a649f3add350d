#include "backends/nccl/standin/machine.h"

#include <utility>

#include "backends/nccl/standin/clique.h"
#include "backends/nccl/standin/stream.h"

namespace ddproof::standin {
namespace {

// The C API has no argument that says which machine it is called on: a real process has one driver.
// A thread runs one simulation at a time, so what stands for the driver belongs to the thread.
thread_local Machine* machine_of_this_thread = nullptr;

}  // namespace

std::string Device::name() const {
  return "device " + std::to_string(index) + " of host " + std::to_string(host);
}

Machine* current_machine() { return machine_of_this_thread; }

MachineScope::MachineScope(Machine& machine) : before_(machine_of_this_thread) {
  machine_of_this_thread = &machine;
}

MachineScope::~MachineScope() { machine_of_this_thread = before_; }

Machine::Machine(sim::Simulation& simulation, MachineOptions options)
    : simulation_(simulation),
      options_(std::move(options)),
      random_(options_.seed),
      never_(simulation) {}

Machine::~Machine() = default;

Device& Machine::device_of(int rank, int index) {
  const int host = options_.ranks_per_host == 0 ? 0 : rank / options_.ranks_per_host;
  return devices_.try_emplace({host, index}, Device{host, index, cudaSuccess}).first->second;
}

void Machine::complain_for(int rank, const std::string& call, const std::string& what) {
  complaints_.push_back("rank " + std::to_string(rank) + ": " + call + ": " + what);
}

const Script* Machine::meet_script(std::string_view call) {
  const int number = ++calls_[{rank(), std::string(call)}];
  for (const Script& script : options_.scripts) {
    if (script.rank == rank() && script.call == call && script.number == number) return &script;
  }
  return nullptr;
}

void Machine::hang(const std::string& call) {
  while (true) never_.wait(simulation_, {.what = call});
}

void Machine::soon(std::string name, std::function<void()> body) {
  constexpr std::uint64_t kLongest = 100'000;  // ns
  const auto delay = static_cast<sim::Time>(sim::below(random_.next(), kLongest));
  simulation_.spawn(rank(), std::move(name), [this, delay, body = std::move(body)] {
    simulation_.sleep(delay, "nccl");
    body();
  });
}

void Machine::drain_streams(const std::string& call) {
  for (std::size_t i = 0; i < streams_.size(); ++i) {  // others may be added meanwhile
    Stream& stream = *streams_[i];
    if (stream.rank == rank()) stream.drain(call, sim::WaitKind::kCleanup);
  }
}

cudaStream_t Machine::add_stream() {
  const int number = static_cast<int>(streams_.size()) + 1;
  return streams_.emplace_back(std::make_unique<CUstream_st>(*this, device(), rank(), number))
      .get();
}

cudaEvent_t Machine::add_event() {
  return events_.emplace_back(std::make_unique<CUevent_st>(device(), rank())).get();
}

ncclComm_t Machine::add_communicator() {
  return communicators_.emplace_back(new ncclComm{.machine = *this}).get();
}

std::string Machine::next_unique_id() {
  std::string id = "stand-in id " + std::to_string(++unique_ids_);
  id.resize(NCCL_UNIQUE_ID_BYTES);
  return id;
}

Clique& Machine::clique_of(const std::string& unique_id, int size) {
  auto& clique = cliques_[unique_id];
  if (!clique) clique = std::make_unique<Clique>(*this, size);
  return *clique;
}

void Machine::complain_about_leaks() {
  // With a process or its device goes all that it had there.
  const auto leaks = [this](bool given_back, int rank, const Device& device) {
    return !given_back && !simulation_.has_crashed(rank) && device.error == cudaSuccess;
  };
  memory_.for_each_leak([&](const Memory::Block& block) {
    if (!leaks(false, block.rank, *block.device)) return;
    complain_for(block.rank, block.kind == Memory::Kind::kDevice ? "cudaMalloc" : "cudaMallocHost",
                 std::to_string(block.bytes) + " bytes were never freed");
  });
  for (const auto& stream : streams_) {
    if (!leaks(stream->destroyed, stream->rank, stream->device)) continue;
    complain_for(stream->rank, "cudaStreamCreate", "the stream was never destroyed");
  }
  for (const auto& event : events_) {
    if (!leaks(event->destroyed, event->rank, event->device)) continue;
    complain_for(event->rank, "cudaEventCreate", "the event was never destroyed");
  }
  for (const auto& communicator : communicators_) {
    if (!leaks(communicator->gone, communicator->process, *communicator->device)) continue;
    complain_for(communicator->process, "ncclCommInitRankConfig",
                 "the communicator was never destroyed");
  }
}

}  // namespace ddproof::standin
