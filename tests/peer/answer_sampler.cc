#include "reference/data/distributed_sampler.h"
#include "reference/data/randperm.h"
#include "tests/peer/answers.h"

namespace ddproof::peer {

using nlohmann::json;

json answer_sampler(const json& question) {
  SamplerOptions options{.length = question.at("length"),
                         .replicas = question.at("replicas"),
                         .shuffle = question.at("shuffle"),
                         .seed = question.at("seed"),
                         .tail = question.at("drop_last") ? Tail::kDrop : Tail::kPad};
  json ranks = json::array();
  for (; options.rank < options.replicas; ++options.rank) {
    DistributedSampler sampler(options);
    sampler.set_epoch(question.at("epoch"));
    ranks.push_back(sampler.indices().to_vector());
  }
  options.rank = 0;
  const DistributedSampler sampler(options);
  return {{"size", sampler.size()}, {"total_size", sampler.total_size()}, {"ranks", ranks}};
}

json answer_randperm(const json& question) {
  const auto seed = static_cast<std::uint64_t>(question.at("seed").get<std::int64_t>());
  return randperm<std::int64_t>(question.at("n"), seed);
}

}  // namespace ddproof::peer
