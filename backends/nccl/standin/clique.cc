#include "backends/nccl/standin/clique.h"

#include <algorithm>

#include "backends/api/list_of.h"

namespace ddproof::standin {

void Clique::join(ncclComm& member, int size) {
  member.state = ncclInProgress;
  ncclComm*& place = members_[static_cast<std::size_t>(member.rank)];
  const bool comes_twice = place != nullptr;
  if (!comes_twice) place = &member;
  const std::string wrong = refuse(member, size, comes_twice);
  if (!wrong.empty()) break_with("ncclCommInitRankConfig: " + wrong);
  if (!broken_.empty()) tell(member);
  if (std::ranges::count(members_, nullptr) > 0) return;
  machine_.soon("nccl init", [this] {
    for (ncclComm* each : members_) {
      if (each->state == ncclInProgress) each->state = ncclSuccess;
    }
  });
}

std::string Clique::refuse(const ncclComm& member, int size, bool comes_twice) const {
  if (size != this->size()) {
    return "one rank says that there are " + std::to_string(this->size()) +
           " ranks, another says " + std::to_string(size);
  }
  if (comes_twice) return member.who() + " comes twice";
  for (const ncclComm* other : members_) {
    if (other == nullptr || other == &member || other->device != member.device) continue;
    return other->who() + " and " + member.who() + " have one device, " + member.device->name();
  }
  return "";
}

void Clique::tell(ncclComm& member) const {
  member.state = ncclInvalidUsage;
  member.last_error = broken_;
}

void Clique::break_with(const std::string& what) {
  if (!broken_.empty()) return;
  broken_ = what;
  machine_.complain_of_all(what);
  for (ncclComm* member : members_) {
    if (member != nullptr) tell(*member);
  }
}

PartPtr Clique::post(ncclComm& member, const NcclCall& call) {
  const auto part = std::make_shared<Part>(Part{&member, call, 0});
  if (!call.is_message()) part->number = ++member.collectives;
  if (call.hangs || !broken_.empty()) return part;
  if (call.is_message()) {
    post_message(part);
  } else {
    post_collective(part);
  }
  return part;
}

void Clique::post_collective(const PartPtr& part) {
  Meeting& meeting = meetings_.try_emplace(part->number, Meeting(members_.size())).first->second;
  meeting[static_cast<std::size_t>(part->member->rank)] = part;
  if (!fits(meeting) || !is_complete(meeting)) return;
  const Meeting complete = std::move(meeting);
  meetings_.erase(part->number);
  if (!carry_out(machine_, complete)) return;
  for (const PartPtr& each : complete) each->done = true;
  changed_.wake_all(machine_.simulation());
}

bool Clique::is_complete(const Meeting& meeting) {
  return std::ranges::none_of(
      meeting, [](const PartPtr& part) { return part == nullptr || part->given_up; });
}

bool Clique::fits(const Meeting& meeting) {
  const auto first =
      std::ranges::find_if(meeting, [](const PartPtr& part) { return part != nullptr; });
  const std::string expected = (*first)->call.describe();
  for (const PartPtr& part : meeting) {
    if (part == nullptr || part->call.describe() == expected) continue;
    break_with("collective " + std::to_string(part->number) + ": " + (*first)->member->who() +
               " calls " + expected + ", " + part->member->who() + " " + part->call.describe());
    return false;
  }
  return true;
}

void Clique::post_message(const PartPtr& part) {
  const int me = part->member->rank;
  const bool sends = part->call.kind == NcclCall::Kind::kSend;
  const std::pair<int, int> way =
      sends ? std::pair(me, part->call.peer) : std::pair(part->call.peer, me);
  Queue& others = sends ? recvs_[way] : sends_[way];
  if (others.empty()) {
    (sends ? sends_[way] : recvs_[way]).push_back(part);
    return;
  }
  const PartPtr other = others.front();
  others.pop_front();
  if (other->call.describe() != part->call.describe()) {
    return break_with("a message: " + other->member->who() + " calls " + other->call.name() +
                      " of " + other->call.describe() + ", " + part->member->who() + " " +
                      part->call.name() + " of " + part->call.describe());
  }
  if (!carry_out_message(machine_, sends ? *part : *other, sends ? *other : *part)) return;
  part->done = other->done = true;
  changed_.wake_all(machine_.simulation());
}

void Clique::await(const Part& part) {
  while (!part.done && !part.member->aborted) {
    changed_.wait(machine_.simulation(), {.what = part.call.name()});
  }
  // What an operation that was ended leaves behind is nothing to complain of: who aborts knows.
  if (part.done) return;
  const std::size_t bytes = part.call.bytes_out(part.member->rank, size());
  if (machine_.memory().refuse(*part.member->device, part.call.out, bytes).empty()) {
    machine_.memory().note_written(part.call.out, bytes);
  }
}

void Clique::leave(ncclComm& member) {
  for (auto& [number, meeting] : meetings_) {
    const PartPtr& mine = meeting[static_cast<std::size_t>(member.rank)];
    if (mine == nullptr || mine->given_up) continue;
    if (broken_.empty()) note_missing(*mine, meeting);
    mine->given_up = true;
  }
  for (auto* queues : {&sends_, &recvs_}) {
    for (auto& [way, queue] : *queues) remove(queue, member);
  }
  changed_.wake_all(machine_.simulation());
}

void Clique::note_missing(const Part& part, const Meeting& meeting) {
  std::vector<int> missing;
  for (std::size_t rank = 0; rank < meeting.size(); ++rank) {
    if (meeting[rank] == nullptr) missing.push_back(static_cast<int>(rank));
  }
  machine_.miss(part.member->who() + " gave up collective " + std::to_string(part.number) + " (" +
                part.call.describe() + "): " + list_of(missing) + " did not come");
}

void Clique::remove(Queue& queue, const ncclComm& member) {
  std::erase_if(queue, [&](const PartPtr& part) { return part->member == &member; });
}

}  // namespace ddproof::standin
