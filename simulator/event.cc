#include "simulator/event.h"

namespace ddproof::sim {

const char* to_string(EventKind kind) {
  switch (kind) {
    case EventKind::kSpawn: return "spawn";
    case EventKind::kRun: return "run";
    case EventKind::kWait: return "wait";
    case EventKind::kEnd: return "end";
    case EventKind::kDeadline: return "deadline";
    case EventKind::kActivity: return "activity";
    case EventKind::kSend: return "send";
    case EventKind::kDeliver: return "deliver";
    case EventKind::kDrop: return "drop";
    case EventKind::kClose: return "close";
    case EventKind::kCrash: return "crash";
    case EventKind::kHang: return "hang";
    case EventKind::kDeadlock: return "deadlock";
    case EventKind::kEventLimit: return "event-limit";
    case EventKind::kFault: return "fault";
    case EventKind::kHeal: return "heal";
    case EventKind::kLiveness: return "liveness";
  }
  return "unknown";
}

std::string to_string(const Event& event) {
  std::string text = format_time(event.time);
  if (event.rank >= 0) text += " rank " + std::to_string(event.rank);
  if (event.fiber != 0) text += " fiber " + std::to_string(event.fiber);
  text += std::string(" ") + to_string(event.kind);
  if (event.peer >= 0) {
    text += (event.kind == EventKind::kDeliver ? " <- " : " -> ") + std::to_string(event.peer);
  }
  if (event.value != 0) text += " " + std::to_string(event.value);
  if (!event.label.empty()) text += " " + std::string(event.label);
  return text;
}

}  // namespace ddproof::sim
