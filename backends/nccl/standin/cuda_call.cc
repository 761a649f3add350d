#include "backends/nccl/standin/cuda_call.h"

namespace ddproof::standin {

bool is_stale(Machine& machine, const char* call, cudaStream_t stream) {
  if (stream == nullptr) {
    machine.complain(call, "uses the default stream, which waits for all others");
    return true;
  }
  if (stream->destroyed) machine.complain(call, "the stream was destroyed");
  return stream->destroyed;
}

bool is_stale(Machine& machine, const char* call, cudaEvent_t event) {
  if (event == nullptr || event->destroyed) {
    machine.complain(call, event == nullptr ? "the event is null" : "the event was destroyed");
    return true;
  }
  return false;
}

bool access(const Stream& stream, const std::string& call, const void* address, std::size_t bytes,
            const char* how) {
  const std::string wrong = stream.machine.memory().refuse(stream.device, address, bytes);
  if (wrong.empty()) return true;
  stream.machine.complain_for(stream.rank, call, std::string(how) + " " + wrong);
  stream.device.error = cudaErrorIllegalAddress;
  return false;
}

void check_written(const Stream& stream, const std::string& call, const void* from,
                   std::size_t bytes) {
  if (stream.machine.memory().is_written(from, bytes)) return;
  stream.machine.complain_for(stream.rank, call,
                              "reads device memory that nothing has written yet");
}

}  // namespace ddproof::standin
