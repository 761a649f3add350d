#include <array>
#include <cstdio>
#include <ostream>

#include "simulator/trace.h"

namespace ddproof::sim {
namespace {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04x", byte);
      result += escape.data();
    } else {
      result += c;
    }
  }
  return result + '"';
}

// "12.345" for 12,345 ns.
std::string microseconds(Time time) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%lld.%03lld", static_cast<long long>(time / 1000),
                static_cast<long long>(time % 1000));
  return text.data();
}

std::string place(int rank, std::uint64_t fiber, Time time) {
  return R"("pid":)" + std::to_string(rank) + R"(,"tid":)" + std::to_string(fiber) + R"(,"ts":)" +
         microseconds(time);
}

}  // namespace

ChromeTrace::ChromeTrace(std::ostream& out) : out_(out) {
  out_ << R"({"displayTimeUnit":"ns","traceEvents":[)";
}

ChromeTrace::~ChromeTrace() {
  while (!threads_.empty()) end_thread(threads_.begin()->first);
  out_ << "\n]}\n";
}

void ChromeTrace::add(std::string_view fields) {
  out_ << (is_first_ ? "\n{" : ",\n{") << fields << '}';
  is_first_ = false;
}

void ChromeTrace::name_rank(int rank) {
  if (!named_.insert(rank).second) return;
  const std::string pid = R"("ph":"M","pid":)" + std::to_string(rank);
  add(pid + R"(,"name":"process_name","args":{"name":"rank )" + std::to_string(rank) + R"("})");
  add(pid + R"(,"name":"process_sort_index","args":{"sort_index":)" + std::to_string(rank) + "}");
  add(pid + R"(,"tid":0,"name":"thread_name","args":{"name":"messages"})");
}

void ChromeTrace::on_event(const Event& event) {
  now_ = event.time;
  switch (event.kind) {
    case EventKind::kSpawn:
      name_rank(event.rank);
      threads_[event.value] = {.rank = event.rank};
      add(R"("ph":"M","pid":)" + std::to_string(event.rank) + R"(,"tid":)" +
          std::to_string(event.value) + R"(,"name":"thread_name","args":{"name":)" +
          quoted(event.label) + "}");
      return;
    case EventKind::kActivity: {
      Thread& thread = threads_[event.fiber];
      if (std::exchange(thread.in_operation, true)) end_slice(event.fiber, thread.rank);
      return begin_slice(event, "operation");
    }
    case EventKind::kWait: threads_[event.fiber].in_wait = true; return begin_slice(event, "wait");
    case EventKind::kRun: {
      Thread& thread = threads_[event.fiber];
      if (std::exchange(thread.in_wait, false)) end_slice(event.fiber, thread.rank);
      return;
    }
    case EventKind::kEnd: return end_thread(event.value);
    case EventKind::kSend:
    case EventKind::kDeliver: return message(event);
    case EventKind::kDrop:
      if (auto& flows = in_flight_[{event.rank, event.peer}]; !flows.empty()) flows.pop_back();
      return instant(event);
    case EventKind::kDeadline: return;  // the fiber's next slice begins there
    case EventKind::kClose:
    case EventKind::kCrash:
    case EventKind::kHang:
    case EventKind::kDeadlock:
    case EventKind::kEventLimit:
    case EventKind::kFault:
    case EventKind::kHeal:
    case EventKind::kLiveness: return instant(event);
  }
}

void ChromeTrace::begin_slice(const Event& event, std::string_view category) {
  add(R"("ph":"B",)" + place(event.rank, event.fiber, now_) + R"(,"cat":")" +
      std::string(category) + R"(","name":)" + quoted(event.label));
}

void ChromeTrace::end_slice(std::uint64_t fiber, int rank) {
  add(R"("ph":"E",)" + place(rank, fiber, now_));
}

void ChromeTrace::end_thread(std::uint64_t fiber) {
  const auto found = threads_.find(fiber);
  if (found == threads_.end()) return;
  const Thread thread = found->second;
  if (thread.in_wait) end_slice(fiber, thread.rank);
  if (thread.in_operation) end_slice(fiber, thread.rank);
  threads_.erase(found);
}

// A slice of one nanosecond, which the arrow begins or ends at. A copy that a fault made arrives
// without one.
void ChromeTrace::message(const Event& event) {
  const bool is_send = event.kind == EventKind::kSend;
  const std::string at = place(event.rank, 0, now_);
  add(R"("ph":"X","dur":0.001,)" + at + R"(,"cat":"message","name":")" +
      (is_send ? "send to " : "receive from ") + std::to_string(event.peer) +
      R"(","args":{"bytes":)" + std::to_string(event.value) + "}");
  std::uint64_t flow = 0;
  if (is_send) {
    flow = ++flows_;
    in_flight_[{event.rank, event.peer}].push_back(flow);
  } else {
    auto& flows = in_flight_[{event.peer, event.rank}];
    if (flows.empty()) return;
    flow = flows.front();
    flows.pop_front();
  }
  add(std::string(is_send ? R"("ph":"s",)" : R"("ph":"f","bp":"e",)") + at +
      R"(,"cat":"message","name":"message","id":)" + std::to_string(flow));
}

void ChromeTrace::instant(const Event& event) {
  const bool is_everywhere = event.rank < 0;
  const std::string name =
      event.label.empty() ? std::string(to_string(event.kind))
                          : std::string(to_string(event.kind)) + ": " + std::string(event.label);
  add(R"("ph":"i","s":")" + std::string(is_everywhere ? "g" : "p") + R"(",)" +
      place(is_everywhere ? 0 : event.rank, 0, now_) + R"(,"cat":"event","name":)" + quoted(name));
}

}  // namespace ddproof::sim
