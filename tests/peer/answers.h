// Our answers to the cases of the peer tests: one function a call, from JSON to JSON.
//
// Each throws ConfigError as the code under test does, and nlohmann's exceptions for a case that
// lacks a value. Threads: any; nothing is kept.
#pragma once

#include <nlohmann/json.hpp>

namespace ddproof::peer {

// {"length", "replicas", "shuffle", "drop_last", "seed", "epoch"} to {"size", "total_size",
// "ranks": every rank's list}.
nlohmann::json answer_sampler(const nlohmann::json& question);

// {"n", "seed"} to the permutation.
nlohmann::json answer_randperm(const nlohmann::json& question);

// {"tensors": [{"elements", "dtype", "sparse"}], "limits", "order"} to {"buckets", "limits"}.
nlohmann::json answer_buckets(const nlohmann::json& question);

// A script of data_parallel.py to what each rank saw: {"steps": [{"gradients", "values", "mean"}],
// "values"}.
nlohmann::json answer_data_parallel(const nlohmann::json& script);

// {"calls": [["set", "key", "value"], ...]} to what a new store answers to each, "timeout", or
// "refused".
nlohmann::json answer_store(const nlohmann::json& question);

}  // namespace ddproof::peer
