// The world that a property's case runs in: a backend, at most so many ranks, and what to do with a
// rank's group before the property uses it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "backends/api/backend.h"
#include "properties/property.h"
#include "reference/compute/device.h"

namespace ddproof {

// Puts a group in front of the backend's own: how a mutant, or a user's decorator, gets between.
// The result must not outlive the group that it was given.
using WrapGroup = std::function<std::unique_ptr<ProcessGroup>(ProcessGroup& group)>;

// A device for a rank, made in its task once it has joined.
using MakeDevice = std::function<std::unique_ptr<Device<float>>(int rank)>;

struct PropertyWorld {
  Backend& backend;
  int world_size_max = 4;
  WrapGroup wrap_group = nullptr;    // none
  MakeDevice make_device = nullptr;  // what ranks train on; null: a Cpu
};

// Half the cases use the full size, the others any size from 1.
rc::Gen<int> world_sizes(const PropertyWorld& world);

// How a property meets the decorator that compares every rank's calls (backends/checked). Its
// comparison orders ranks by itself, so properties of collectives go without.
enum class Checked : std::uint8_t { kNo, kYes };

// Runs `body` once per rank with the wrapped group. Throws what the backend's run_world() throws.
// A rank that waits for a minute has lost: properties never wait for long.
void run_ranks(const PropertyWorld& world, int world_size, std::uint64_t seed, Checked checked,
               const std::function<void(RankContext&)>& body);

}  // namespace ddproof
