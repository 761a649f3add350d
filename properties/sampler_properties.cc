#include "properties/sampler_properties.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace ddproof {
namespace {

using Shard = std::vector<std::int64_t>;

std::string show_sampler(const SamplerCase& c) {
  return fmt::format(
      "length={} replicas={} seed={} epoch={} shuffle={} tail={} resume_position={} "
      "resume_replicas={}",
      c.options.length, c.options.replicas, c.options.seed, c.epoch, c.options.shuffle,
      name_of(c.options.tail), c.resume_position, c.resume_replicas);
}

std::vector<std::string> classes_of_sampler(const SamplerCase& c) {
  std::vector<std::string> classes;
  const auto& o = c.options;
  if (o.length < o.replicas) classes.push_back("more ranks than samples");
  if (o.length == 0) classes.push_back("empty");
  if (o.length % o.replicas != 0) {
    classes.push_back(o.tail == Tail::kPad    ? "padded"
                      : o.tail == Tail::kDrop ? "tail dropped"
                                              : "tail kept");
  }
  if (o.tail == Tail::kPad && o.length > 0 && o.length * 2 <= o.replicas) {
    classes.push_back("padded more than once");
  }
  if (!o.shuffle) classes.push_back("not shuffled");
  if (c.resume_position > 0) {
    classes.push_back("resumed");
    if (c.resume_replicas != o.replicas) classes.push_back("resumed on other ranks");
    if (c.resume_position % o.replicas != 0) classes.push_back("resumed within a round");
    if (o.length - c.resume_position < c.resume_replicas) classes.push_back("short rest");
  }
  return classes;
}

// Draws and checks one case; holds what the facts are stated on.
class Partition {
 public:
  Partition(const SamplerCase& drawn, const DrawShard& draw) : case_(drawn), draw_(draw) {
    for (int rank = 0; rank < case_.options.replicas; ++rank) shards_.push_back(shard(rank, 0));
  }

  std::string check() const {
    for (const auto fact :
         {&Partition::fair_shares, &Partition::one_order, &Partition::nothing_lost,
          &Partition::plain_order, &Partition::exact_resume}) {
      if (std::string wrong = (this->*fact)(); !wrong.empty()) return wrong;
    }
    return "";
  }

 private:
  std::int64_t length() const { return case_.options.length; }
  std::int64_t replicas() const { return case_.options.replicas; }

  // Of `count` samples in the order.
  std::int64_t share(std::int64_t count, int replicas, int rank) const {
    const std::int64_t whole = count / replicas;
    const std::int64_t left = count % replicas;
    switch (case_.options.tail) {
      case Tail::kPad: return left > 0 ? whole + 1 : whole;
      case Tail::kDrop: return whole;
      case Tail::kKeep: break;
    }
    return rank < left ? whole + 1 : whole;
  }

  Shard shard(int rank, std::int64_t position) const {
    SamplerOptions options = case_.options;
    options.rank = rank;
    return draw_(options, case_.epoch, position);
  }

  // Requires: fair shares.
  Shard in_turn() const {
    Shard order;
    for (std::size_t i = 0; i < shards_[0].size(); ++i) {
      for (const Shard& s : shards_) {
        if (i < s.size()) order.push_back(s[i]);
      }
    }
    return order;
  }

  std::string fair_shares() const {
    for (int rank = 0; rank < case_.options.replicas; ++rank) {
      const std::size_t drawn = shards_[static_cast<std::size_t>(rank)].size();
      const std::int64_t expected = share(length(), case_.options.replicas, rank);
      if (static_cast<std::int64_t>(drawn) != expected) {
        return fmt::format("fair shares: rank {} draws {} samples, expected {}", rank, drawn,
                           expected);
      }
    }
    return "";
  }

  std::string one_order() const {
    SamplerOptions alone = case_.options;
    alone.replicas = 1;
    const Shard expected = draw_(alone, case_.epoch, 0);
    const Shard order = in_turn();
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (expected.empty() || order[i] != expected[i % expected.size()]) {
        return fmt::format("one order: place {} of all ranks holds {}, one rank alone draws {}", i,
                           order[i], expected.empty() ? -1 : expected[i % expected.size()]);
      }
    }
    return "";
  }

  std::string nothing_lost() const {
    std::vector<std::int64_t> drawn(static_cast<std::size_t>(length()));
    for (std::int64_t index : in_turn()) {
      if (index < 0 || index >= length()) return fmt::format("nothing lost: drew {}", index);
      ++drawn[static_cast<std::size_t>(index)];
    }
    if (drawn.empty()) return "";
    const auto [least, most] = std::ranges::minmax(drawn);
    const std::int64_t left_out = std::ranges::count(drawn, 0);
    if (case_.options.tail != Tail::kPad) {
      const std::int64_t may_be_left = case_.options.tail == Tail::kDrop ? replicas() - 1 : 0;
      if (most > 1) return fmt::format("nothing lost: a sample is drawn {} times", most);
      if (left_out > may_be_left) return fmt::format("nothing lost: {} left out", left_out);
      return "";
    }
    if (left_out > 0) return fmt::format("nothing lost: {} samples are never drawn", left_out);
    if (most > least + 1) {
      return fmt::format("nothing lost: one sample is drawn {} times, another {}", most, least);
    }
    return "";
  }

  std::string plain_order() const {
    if (case_.options.shuffle) return "";
    const Shard order = in_turn();
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (order[i] != static_cast<std::int64_t>(i) % length()) {
        return fmt::format("plain order: place {} holds {}", i, order[i]);
      }
    }
    return "";
  }

  // Place k of rank r in the rest is place position + r + k * replicas of the order.
  std::string exact_resume() const {
    const std::int64_t position = case_.resume_position;
    if (position == 0) return "";
    SamplerOptions options = case_.options;
    options.replicas = 1;
    const Shard order = draw_(options, case_.epoch, 0);
    options.replicas = case_.resume_replicas;
    for (options.rank = 0; options.rank < options.replicas; ++options.rank) {
      const std::int64_t count = share(length() - position, options.replicas, options.rank);
      Shard expected;
      for (std::int64_t k = 0; k < count; ++k) {
        const std::int64_t place = position + options.rank + k * options.replicas;
        expected.push_back(order[static_cast<std::size_t>(place % length())]);
      }
      if (const Shard rest = draw_(options, case_.epoch, position); rest != expected) {
        return fmt::format("exact resume: rank {} draws [{}], left for it are [{}]", options.rank,
                           fmt::join(rest, ","), fmt::join(expected, ","));
      }
    }
    return "";
  }

  const SamplerCase& case_;
  const DrawShard& draw_;
  std::vector<Shard> shards_;
};

}  // namespace

std::vector<std::int64_t> draw_reference_shard(const SamplerOptions& options, std::int64_t epoch,
                                               std::int64_t position) {
  DistributedSampler sampler(options);
  sampler.set_epoch(epoch);
  return sampler.indices(position).to_vector();
}

rc::Gen<SamplerCase> sampler_cases() {
  // Numbers that do not depend on each other shrink best. One length in two is of the size of the
  // replicas; plain ranges would draw fewer samples than ranks in one case of a hundred.
  const auto length = rc::gen::oneOf(rc::gen::inRange(0, 65), rc::gen::inRange(0, 301));
  const auto shuffle = rc::gen::weightedElement<bool>({{3, true}, {1, false}});
  const auto tail = rc::gen::element(Tail::kPad, Tail::kDrop, Tail::kKeep);
  // Half of the epochs are not resumed.
  const auto place = rc::gen::oneOf(rc::gen::just(0), rc::gen::inRange(0, 301));
  const auto parts =
      rc::gen::tuple(length, rc::gen::inRange(1, 65), rc::gen::arbitrary<std::uint32_t>(),
                     rc::gen::inRange(0, 100), shuffle, tail, place, rc::gen::inRange(1, 65));
  return rc::gen::map(parts, [](const auto& drawn) {
    SamplerCase c;
    c.options.length = std::get<0>(drawn);
    c.options.replicas = std::get<1>(drawn);
    c.options.seed = std::get<2>(drawn);
    c.epoch = std::get<3>(drawn);
    c.options.shuffle = std::get<4>(drawn);
    c.options.tail = std::get<5>(drawn);
    // Once nothing is left, the sampler refuses to go on (DistributedSampler::indices).
    c.resume_position =
        c.options.length > 0 ? std::get<6>(drawn) % c.options.length : std::int64_t{0};
    c.resume_replicas = std::get<7>(drawn);
    return c;
  });
}

std::string check_sampler_partition(const SamplerCase& drawn, const DrawShard& draw) {
  return Partition(drawn, draw).check();
}

PropertyResult sampler_partition(const PropertyOptions& options, Runtime& runtime,
                                 const DrawShard& draw) {
  const Property<SamplerCase> property{
      "sampler-partition", sampler_cases(), show_sampler, classes_of_sampler,
      [&draw](const SamplerCase& c) { return check_sampler_partition(c, draw); }};
  return run_property(property, options, runtime);
}

}  // namespace ddproof
