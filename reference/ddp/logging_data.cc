#include "reference/ddp/logging_data.h"

namespace ddproof {

std::string join_numbers(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (std::int64_t number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text;
}

void DdpLoggingData::describe_group(const ProcessGroup& group) {
  integers["world_size"] = group.size();
  integers["rank"] = group.rank();
  strings["backend_name"] = group.backend_name();
}

void DdpLoggingData::describe_options(const DdpOptions& options) {
  integers["bucket_cap_bytes"] = options.bucket_cap_bytes;
  integers["find_unused_parameters"] = options.find_unused_parameters ? 1 : 0;
  integers["gradient_as_bucket_view"] = 1;
  integers["broadcast_buffers"] = options.broadcast_buffers ? 1 : 0;
  if (options.static_graph) integers["static_graph"] = 1;
}

void DdpLoggingData::describe_times(const StepTimer& timer) {
  const auto put = [&](const std::string& prefix, const StepTimes& times) {
    integers[prefix + "forward_compute_time"] = times.forward_compute.count();
    integers[prefix + "backward_compute_time"] = times.backward_compute.count();
    integers[prefix + "backward_comm_time"] = times.backward_comm.count();
    integers[prefix + "backward_compute_comm_overlap_time"] =
        times.backward_compute_comm_overlap.count();
  };
  put("", timer.last());
  put("avg_", timer.average());
}

}  // namespace ddproof
