// Failures on purpose: "rank 2, at its 3rd ncclAllReduce, gets ncclSystemError". Values.
#pragma once

#include <string>

namespace ddproof::standin {

struct Script {
  enum class Effect {
    kReturn,      // the call does nothing and returns `code`, a failure
    kSkip,        // a call of CUDA does nothing and says that all went well
    kHang,        // what it enqueues never ends; a call that enqueues nothing never returns
    kAsync,       // the call goes well, and then its communicator has the asynchronous error `code`
    kLoseDevice,  // the calling thread's device is lost: this call and all later ones fail
  };
  int rank = 0;
  std::string call;  // "ncclAllReduce"
  int number = 1;    // of this rank's calls with that name, from 1
  Effect effect = Effect::kReturn;
  int code = 0;  // a cudaError_t or ncclResult_t
};

}  // namespace ddproof::standin
