#include "properties/suite.h"

#include "properties/all_reduce_properties.h"
#include "properties/barrier_properties.h"
#include "properties/collective_properties.h"
#include "properties/guard_properties.h"
#include "properties/random_stream_properties.h"
#include "properties/sampler_properties.h"
#include "properties/stream_properties.h"
#include "properties/training_properties.h"

namespace ddproof {

std::vector<SuiteEntry> property_suite() {
  return {
      {"sampler-partition", "the ranks' samples are the data set, evenly dealt",
       [](const PropertyWorld&, const PropertyOptions& options, Runtime& runtime) {
         return sampler_partition(options, runtime);
       }},
      {"stream-partition", "the shards of a stream, over ranks and loader workers, are the stream",
       [](const PropertyWorld&, const PropertyOptions& options, Runtime& runtime) {
         return stream_partition(options, runtime);
       }},
      {"distinct-streams", "no two loader workers of all ranks draw the same random numbers",
       [](const PropertyWorld&, const PropertyOptions& options, Runtime& runtime) {
         return distinct_streams(options, runtime);
       }},
      {"barrier-orders", "nobody leaves a barrier before the last rank has entered",
       barrier_orders},
      {"guard-works-first", "main_process_first works once per scope, before any use",
       [](const PropertyWorld& world, const PropertyOptions& options, Runtime& runtime) {
         return guard_works_first(world, options, runtime);
       }},
      {"all-reduce-exact", "all_reduce equals the serial reduction bit by bit", all_reduce_exact},
      {"collectives-exact", "every other collective gives each rank what it promises, bit by bit",
       collectives_exact},
      {"equals-one-device", "N ranks train what one device trains, ranks bit-identical",
       equals_one_device},
  };
}

}  // namespace ddproof
