// NCCL's C API on the current machine (machine.h). Compiled against the real header, so a function
// whose signature drifts does not compile. Communicators are non-blocking ones only.
#include <nccl.h>

#include <cstring>
#include <utility>

#include "backends/nccl/standin/clique.h"
#include "backends/nccl/standin/stream.h"

namespace ddproof::standin {
namespace {

ncclResult_t refuse(const char* call, const std::string& what) {
  current_machine()->complain(call, what);
  return ncclInvalidUsage;
}

// What keeps a call from being made on the communicator; ncclSuccess: nothing.
ncclResult_t check(const char* call, const ncclComm* communicator) {
  if (communicator == nullptr) return refuse(call, "the communicator is null");
  if (communicator->gone) return refuse(call, "the communicator was destroyed or aborted");
  return ncclSuccess;
}

// As check(), for calls that begin something.
ncclResult_t check_idle(const char* call, const ncclComm* communicator) {
  const ncclResult_t wrong = check(call, communicator);
  if (wrong != ncclSuccess) return wrong;
  if (communicator->state == ncclInProgress) {
    return refuse(call, "another call on the communicator is still in progress");
  }
  if (communicator->device->error != cudaSuccess) return ncclUnhandledCudaError;
  return communicator->state;
}

// However the calls end, also with their process, they are active no more.
struct Active {
  ncclComm& communicator;
  ~Active() {
    --communicator.active;
    communicator.idle.wake_all(communicator.machine.simulation());
  }
};

// Puts calls on one communicator and stream into the stream, as one: they go on together.
void enqueue(ncclComm* communicator, Stream& stream, std::vector<NcclCall> calls) {
  ++communicator->active;
  stream.enqueue([communicator, calls = std::move(calls)] {
    const Active active{*communicator};
    std::vector<PartPtr> parts;
    for (const NcclCall& call : calls) {
      if (communicator->aborted) break;
      parts.push_back(communicator->clique->post(*communicator, call));
    }
    for (const PartPtr& part : parts) communicator->clique->await(*part);
  });
}

// In one of the ways that NCCL has: at once, or by a thread of its own, a moment later.
ncclResult_t launch(Machine& machine, ncclComm* communicator, cudaStream_t stream,
                    std::vector<NcclCall> calls) {
  if (machine.flip()) {
    enqueue(communicator, *stream, std::move(calls));
    return ncclSuccess;
  }
  communicator->state = ncclInProgress;
  machine.soon("nccl launch", [communicator, stream, calls = std::move(calls)] {
    if (communicator->gone) return;
    enqueue(communicator, *stream, calls);
    if (communicator->state == ncclInProgress) communicator->state = ncclSuccess;
  });
  return ncclInProgress;
}

ncclResult_t launch_group(Machine& machine, std::vector<GroupedCall> grouped) {
  ncclResult_t result = ncclSuccess;
  for (std::size_t first = 0; first < grouped.size();) {
    std::vector<NcclCall> calls;
    const GroupedCall head = grouped[first];
    for (; first < grouped.size() && grouped[first].communicator == head.communicator &&
           grouped[first].stream == head.stream;
         ++first) {
      calls.push_back(grouped[first].call);
    }
    const ncclResult_t launched = launch(machine, head.communicator, head.stream, std::move(calls));
    if (launched != ncclSuccess) result = launched;
  }
  return result;
}

// Its process died: nothing of it runs any more.
bool is_dying(const ncclComm& communicator) {
  return communicator.machine.simulation().has_crashed(communicator.process);
}

ncclResult_t play(const Script& script, Machine& machine, ncclComm* communicator, NcclCall& call) {
  switch (script.effect) {
    case Script::Effect::kSkip:
    case Script::Effect::kReturn: return static_cast<ncclResult_t>(script.code);
    case Script::Effect::kHang: call.hangs = true; return ncclSuccess;
    case Script::Effect::kAsync:
      // Once it was launched, and unless it was aborted by then.
      machine.soon("nccl failure", [communicator, code = script.code] {
        communicator->state = static_cast<ncclResult_t>(code);
        communicator->last_error = "scripted";
      });
      call.hangs = true;
      return ncclSuccess;
    case Script::Effect::kLoseDevice:
      communicator->device->error = cudaErrorLaunchFailure;
      return ncclUnhandledCudaError;
  }
  return ncclSuccess;
}

ncclResult_t begin(ncclComm* communicator, cudaStream_t stream, NcclCall call) {
  Machine* machine = current_machine();
  if (machine == nullptr) return ncclSystemError;
  const char* name = call.name();
  if (const ncclResult_t wrong = check_idle(name, communicator); wrong != ncclSuccess) return wrong;
  if (const Script* script = machine->meet_script(name)) {
    const ncclResult_t played = play(*script, *machine, communicator, call);
    if (played != ncclSuccess) return played;
  }
  if (stream == nullptr || stream->destroyed) return refuse(name, "the stream does not exist");
  if (&stream->device != communicator->device) {
    return refuse(name, "the stream is of " + stream->device.name() + ", the communicator of " +
                            communicator->device->name());
  }
  if (size_of(call.type) == 0) return refuse(name, "the stand-in does not know this type");
  if (call.op != ncclSum && call.op != ncclProd && call.op != ncclMin && call.op != ncclMax) {
    return refuse(name, "the stand-in does not know this reduction");
  }
  const int other = call.is_message() ? call.peer : std::max(call.root, 0);
  if (other < 0 || other >= communicator->clique->size()) {
    return refuse(name, "there is no rank " + std::to_string(other));
  }
  HostThread& thread = machine->thread();
  if (thread.group_depth == 0) return launch(*machine, communicator, stream, {call});
  thread.grouped.push_back({communicator, stream, call});
  return machine->flip() ? ncclSuccess : ncclInProgress;  // NCCL may say either within a group
}

ncclResult_t connect(Machine& machine, ncclComm_t* communicator, int size, const std::string& id,
                     int rank, const ncclConfig_t* config) {
  constexpr const char* kCall = "ncclCommInitRankConfig";
  if (config == nullptr || config->blocking != 0) {
    return refuse(kCall, "the stand-in has non-blocking communicators only");
  }
  if (size < 1 || rank < 0 || rank >= size) {
    return refuse(kCall, "rank " + std::to_string(rank) + " of " + std::to_string(size));
  }
  const Script* script = machine.meet_script(kCall);
  if (script != nullptr && script->effect == Script::Effect::kReturn) {
    return static_cast<ncclResult_t>(script->code);
  }
  ncclComm_t made = machine.add_communicator();
  made->device = &machine.device();
  made->rank = rank;
  made->process = machine.rank();
  made->clique = &machine.clique_of(id, size);
  made->state = ncclInProgress;
  *communicator = made;
  if (script == nullptr) made->clique->join(*made, size);
  return ncclInProgress;
}

}  // namespace
}  // namespace ddproof::standin

using ddproof::standin::current_machine;
using ddproof::standin::Machine;
using ddproof::standin::NcclCall;
using Kind = ddproof::standin::NcclCall::Kind;

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  Machine* machine = current_machine();
  *version = machine == nullptr ? NCCL_VERSION_CODE : machine->options().nccl_version;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  Machine* machine = current_machine();
  if (machine == nullptr) return ncclSystemError;
  if (const auto* script = machine->meet_script("ncclGetUniqueId")) {
    return static_cast<ncclResult_t>(script->code);
  }
  machine->next_unique_id().copy(id->internal, sizeof(id->internal));
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  Machine* machine = current_machine();
  if (machine == nullptr) return ncclSystemError;
  return ddproof::standin::connect(*machine, communicator, size,
                                   std::string(id.internal, sizeof(id.internal)), rank, config);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* error) {
  const ncclResult_t wrong = ddproof::standin::check("ncclCommGetAsyncError", communicator);
  if (wrong != ncclSuccess) return wrong;
  const bool device_works = communicator->device->error == cudaSuccess;
  *error = device_works ? communicator->state : ncclUnhandledCudaError;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  const ncclResult_t wrong = ddproof::standin::check_idle("ncclCommFinalize", communicator);
  if (wrong != ncclSuccess) return wrong;
  communicator->state = ncclInProgress;
  communicator->machine.soon("nccl finalize", [communicator] {
    while (communicator->active > 0) {
      communicator->idle.wait(communicator->machine.simulation(), {.what = "ncclCommFinalize"});
    }
    if (communicator->state == ncclInProgress) communicator->state = ncclSuccess;
  });
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  const ncclResult_t wrong = ddproof::standin::check_idle("ncclCommDestroy", communicator);
  if (wrong != ncclSuccess) return wrong;
  if (communicator->active > 0) {
    return ddproof::standin::refuse("ncclCommDestroy", "its calls are still on the device");
  }
  communicator->gone = true;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  const ncclResult_t wrong = ddproof::standin::check("ncclCommAbort", communicator);
  if (wrong != ncclSuccess) return wrong;
  if (communicator->machine.meet_script("ncclCommAbort") != nullptr) {
    communicator->machine.hang("ncclCommAbort");
  }
  communicator->aborted = communicator->gone = true;
  communicator->clique->leave(*communicator);
  const bool device_works = communicator->device->error == cudaSuccess;
  while (device_works && communicator->active > 0 && !ddproof::standin::is_dying(*communicator)) {
    communicator->idle.wait(
        communicator->machine.simulation(),
        {.what = "ncclCommAbort", .kind = ddproof::sim::WaitKind::kCleanup, .is_local = true});
  }
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  Machine* machine = current_machine();
  if (machine == nullptr) return ncclSystemError;
  ++machine->thread().group_depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  Machine* machine = current_machine();
  if (machine == nullptr) return ncclSystemError;
  auto& thread = machine->thread();
  if (thread.group_depth == 0) {
    return ddproof::standin::refuse("ncclGroupEnd", "there was no ncclGroupStart");
  }
  if (--thread.group_depth > 0) return ncclSuccess;
  return ddproof::standin::launch_group(*machine, std::exchange(thread.grouped, {}));
}

ncclResult_t ncclAllReduce(const void* in, void* out, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t communicator, cudaStream_t stream) {
  return ddproof::standin::begin(
      communicator, stream,
      {.kind = Kind::kAllReduce, .count = count, .type = type, .op = op, .in = in, .out = out});
}

ncclResult_t ncclBroadcast(const void* in, void* out, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t communicator, cudaStream_t stream) {
  return ddproof::standin::begin(
      communicator, stream,
      {.kind = Kind::kBroadcast, .count = count, .type = type, .root = root, .in = in, .out = out});
}

ncclResult_t ncclReduce(const void* in, void* out, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t communicator, cudaStream_t stream) {
  return ddproof::standin::begin(communicator, stream,
                                 {.kind = Kind::kReduce,
                                  .count = count,
                                  .type = type,
                                  .op = op,
                                  .root = root,
                                  .in = in,
                                  .out = out});
}

ncclResult_t ncclAllGather(const void* in, void* out, std::size_t count, ncclDataType_t type,
                           ncclComm_t communicator, cudaStream_t stream) {
  return ddproof::standin::begin(
      communicator, stream,
      {.kind = Kind::kAllGather, .count = count, .type = type, .in = in, .out = out});
}

ncclResult_t ncclReduceScatter(const void* in, void* out, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t communicator, cudaStream_t stream) {
  return ddproof::standin::begin(
      communicator, stream,
      {.kind = Kind::kReduceScatter, .count = count, .type = type, .op = op, .in = in, .out = out});
}

ncclResult_t ncclSend(const void* in, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  return ddproof::standin::begin(
      communicator, stream,
      {.kind = Kind::kSend, .count = count, .type = type, .peer = peer, .in = in});
}

ncclResult_t ncclRecv(void* out, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  return ddproof::standin::begin(
      communicator, stream,
      {.kind = Kind::kRecv, .count = count, .type = type, .peer = peer, .out = out});
}

const char* ncclGetLastError(ncclComm_t communicator) {
  return communicator == nullptr ? "" : communicator->last_error.c_str();
}

// The texts of libnccl.so.2.
const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "unhandled cuda error";
    case ncclSystemError: return "unhandled system error";
    case ncclInternalError: return "internal error";
    case ncclInvalidArgument: return "invalid argument";
    case ncclInvalidUsage: return "invalid usage";
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclInProgress: return "NCCL operation in progress";
    default: return "unknown result code";
  }
}

}  // extern "C"
