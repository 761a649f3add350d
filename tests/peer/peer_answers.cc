// Our side of the peer tests: answers each line of standard input, a case in JSON, with one line.
// Ends with 1 and a message at the first case that is refused.
#include <exception>
#include <iostream>
#include <map>
#include <string>

#include "tests/peer/answers.h"

namespace ddproof::peer {
namespace {

using nlohmann::json;
using Answer = json (*)(const json&);

int answer_all() {
  const std::map<std::string, Answer> calls{{"buckets", answer_buckets},
                                            {"data_parallel", answer_data_parallel},
                                            {"randperm", answer_randperm},
                                            {"sampler", answer_sampler},
                                            {"store", answer_store}};
  std::string line;
  while (std::getline(std::cin, line)) {
    try {
      const json question = json::parse(line);
      std::cout << calls.at(question.at("call"))(question).dump() << "\n";
    } catch (const std::exception& error) {
      std::cerr << "peer_answers: " << line << ": " << error.what() << "\n";
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace ddproof::peer

int main() { return ddproof::peer::answer_all(); }
