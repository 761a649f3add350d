#include "backends/recorder/flight_recorder.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace ddproof {
namespace {

using nlohmann::ordered_json;

// PyTorch's names of its types.
const char* torch_name(DType type) {
  switch (type) {
    case DType::kInt8: return "Char";
    case DType::kUint8: return "Byte";
    case DType::kInt32: return "Int";
    case DType::kUint32: return "UInt32";
    case DType::kInt64: return "Long";
    case DType::kUint64: return "UInt64";
    case DType::kFloat16: return "Half";
    case DType::kBFloat16: return "BFloat16";
    case DType::kFloat32: return "Float";
    case DType::kFloat64: return "Double";
    case DType::kCustom: return "Undefined";
  }
  return "Undefined";
}

// "0" is PyTorch's name for the world.
std::string shown_name(const std::string& group) { return group.empty() ? "0" : group; }
const char* description_of(const std::string& group) {
  return group.empty() ? "default_pg" : "undefined";
}

std::string profiling_name(const ProcessGroup& group, const Call& call) {
  std::string name = std::string(group.backend_name()) + ":" + to_string(call.op);
  if (!is_point_to_point(call.op)) return name;
  const std::string own = std::to_string(group.rank()), peer = std::to_string(call.peer);
  return name + " " + own + (call.op == Op::kSend ? "->" : "<-") + peer;
}

std::vector<std::int64_t> sizes_of(const ConstBuffer& buffer) {
  const auto sizes = buffer.layout().sizes();
  return {sizes.begin(), sizes.end()};
}

bool moves_data(Op op) { return op != Op::kBarrier && op != Op::kMonitoredBarrier; }

ordered_json list_of_one(bool has, const auto& value) {
  return has ? ordered_json::array({value}) : ordered_json::array();
}

ordered_json time_or_null(const std::optional<TimePoint>& time) {
  return time ? ordered_json(time->count()) : ordered_json(nullptr);
}

}  // namespace

FlightRecorder::FlightRecorder(std::size_t capacity) : capacity_(capacity) {}

std::uint64_t FlightRecorder::begin(const ProcessGroup& group, const Call& call, TimePoint now) {
  GroupRecord& its =
      groups_.try_emplace(group.name(), GroupRecord{groups_.size(), group.size()}).first->second;
  if (group.name().empty()) rank_ = group.rank();
  const bool is_p2p = is_point_to_point(call.op);
  ++(is_p2p ? its.point_to_points : its.collectives);
  if (!is_p2p) its.last_enqueued = its.collectives;
  Entry entry{.record = count_++,
              .group = group.name(),
              .collective = its.collectives,
              .point_to_point = its.point_to_points,
              .name = profiling_name(group, call),
              .description = call.describe(),
              .input_sizes = sizes_of(call.input),
              .output_sizes = sizes_of(call.output),
              .input_dtype = torch_name(call.input.type().dtype()),
              .output_dtype = torch_name(call.output.type().dtype()),
              .has_input = moves_data(call.op) && call.op != Op::kRecv,
              .has_output = moves_data(call.op) && call.op != Op::kSend,
              .site = call.site,
              .timeout = call.timeout,
              .is_p2p = is_p2p,
              .created = now};
  if (its.unfinished++ == 0) entry.started = now;
  entries_.push_back(std::move(entry));
  if (entries_.size() > capacity_) entries_.pop_front();
  return count_ - 1;
}

void FlightRecorder::end(std::uint64_t record, TimePoint now, bool failed) {
  if (entries_.empty() || record < entries_.front().record) return;
  Entry& entry = entries_[static_cast<std::size_t>(record - entries_.front().record)];
  if (entry.done || entry.failed) return;
  entry.failed = failed;
  if (failed) return;
  if (!entry.started) entry.started = entry.created;
  entry.done = now;
  GroupRecord& its = groups_.at(entry.group);
  --its.unfinished;
  if (!entry.is_p2p) its.last_completed = entry.collective;
  start_next(entry.group, now);
}

// Calls of a group run one after another: the first that is not done has begun.
void FlightRecorder::start_next(const std::string& group, TimePoint now) {
  for (Entry& entry : entries_) {
    if (entry.group != group || entry.done) continue;
    if (!entry.started) entry.started = now;
    return;
  }
}

const char* FlightRecorder::state_of(const Entry& entry) {
  if (entry.done) return "completed";
  return entry.started ? "started" : "scheduled";
}

std::string FlightRecorder::to_json() const {
  ordered_json dump = {{"version", "2.4"}, {"rank", rank_}};
  ordered_json config = ordered_json::object(), status = ordered_json::object();
  for (const auto& [name, group] : groups_) {
    ordered_json ranks = ordered_json::array();
    for (int rank = 0; name.empty() && rank < group.size; ++rank) ranks.push_back(rank);
    config[std::to_string(group.id)] = {
        {"name", shown_name(name)}, {"desc", description_of(name)}, {"ranks", ranks.dump()}};
    std::int64_t started = -1;
    for (const Entry& entry : entries_) {
      if (entry.group == name && !entry.is_p2p && entry.started) {
        started = static_cast<std::int64_t>(entry.collective);
      }
    }
    status[std::to_string(group.id)] = {{"last_enqueued_collective", group.last_enqueued},
                                        {"last_started_collective", started},
                                        {"last_completed_collective", group.last_completed}};
  }
  ordered_json entries = ordered_json::array();
  for (const Entry& entry : entries_) {
    const std::size_t group = groups_.at(entry.group).id;
    ordered_json json = {
        {"frames",
         {{{"name", entry.site.function},
           {"filename", entry.site.file},
           {"line", entry.site.line}}}},
        {"record_id", entry.record},
        {"pg_id", group},
        {"process_group", {shown_name(entry.group), description_of(entry.group)}},
        {"collective_seq_id", entry.collective},
        {"p2p_seq_id", entry.point_to_point},
        {"op_id", entry.collective + entry.point_to_point},
        {"profiling_name", entry.name},
        {"time_created_ns", entry.created.count()},
        {"input_sizes", list_of_one(entry.has_input, entry.input_sizes)},
        {"input_dtypes", list_of_one(entry.has_input, entry.input_dtype)},
        {"output_sizes", list_of_one(entry.has_output, entry.output_sizes)},
        {"output_dtypes", list_of_one(entry.has_output, entry.output_dtype)},
        {"state", state_of(entry)},
        {"time_discovered_started_ns", time_or_null(entry.started)},
        {"time_discovered_completed_ns", time_or_null(entry.done)},
        {"retired", entry.done.has_value()},
        {"timeout_ms",
         std::chrono::duration_cast<std::chrono::milliseconds>(entry.timeout).count()},
        {"is_p2p", entry.is_p2p}};
    if (entry.done) {
      json["duration_ms"] = static_cast<double>((*entry.done - *entry.started).count()) / 1e6;
    }
    entries.push_back(std::move(json));
  }
  dump["pg_config"] = std::move(config);
  dump["pg_status"] = std::move(status);
  dump["entries"] = std::move(entries);
  return dump.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::vector<std::string> FlightRecorder::last_calls(std::size_t count) const {
  std::vector<std::string> calls;
  const auto open = std::ranges::find_if(entries_, [](const Entry& e) { return !e.done; });
  const auto begun =
      static_cast<std::size_t>(open - entries_.begin()) + (open == entries_.end() ? 0 : 1);
  const std::size_t first = begun - std::min(count, begun);
  for (std::size_t i = first; i < begun; ++i) {
    const Entry& entry = entries_[i];
    calls.push_back(entry.description + ": " + state_of(entry) + (entry.failed ? ", failed" : ""));
  }
  return calls;
}

}  // namespace ddproof
