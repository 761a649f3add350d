// What a wrapper knows about itself, under the keys of PyTorch's DDP logger (SEMANTICS section
// 3.5). A key is there only when it applies. Left out: module_name and has_sync_bn, which a Module
// does not know of itself. Times are in nanoseconds. A value.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backends/api/process_group.h"
#include "reference/ddp/options.h"
#include "reference/ddp/step_timer.h"

namespace ddproof {

struct DdpLoggingData {
  std::map<std::string, std::int64_t> integers;
  std::map<std::string, std::string> strings;

  void describe_group(const ProcessGroup& group);
  void describe_options(const DdpOptions& options);
  void describe_times(const StepTimer& timer);
  // `reducer`: a Reducer<T>.
  template <class Reducer>
  void describe_buckets(const Reducer& reducer);
};

// "3, 1, 2".
std::string join_numbers(const std::vector<std::int64_t>& numbers);

template <class Reducer>
void DdpLoggingData::describe_buckets(const Reducer& reducer) {
  const auto joined = [](const auto& numbers) {
    return join_numbers({numbers.begin(), numbers.end()});
  };
  integers["has_rebuilt_buckets"] = reducer.is_rebuilt() ? 1 : 0;
  strings["bucket_sizes"] = joined(reducer.first_bucket_bytes());
  strings["prev_iteration_grad_ready_order_indices"] = joined(reducer.ready_order());
  if (integers["find_unused_parameters"] != 0) {
    integers["unused_parameter_size"] = reducer.unused_count();
    integers["can_set_static_graph"] = reducer.is_static_so_far() ? 1 : 0;
  }
  if (!reducer.is_rebuilt()) return;
  strings["rebuilt_bucket_sizes"] = joined(reducer.bucket_bytes());
  std::string& indices = strings["rebuilt_per_bucket_param_indices"];
  for (const auto& bucket : reducer.bucket_parameters()) {
    indices += (indices.empty() ? "" : ", ") + ("[" + joined(bucket) + "]");
  }
}

}  // namespace ddproof
