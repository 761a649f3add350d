// torchrun's error file: how a worker tells the launcher in words why it failed. The launcher names
// the file in TORCHELASTIC_ERROR_FILE; a worker that fails writes it, once.
//
//   {"message": {"message": "...",
//                "extraInfo": {"py_callstack": "...", "timestamp": "1796000000"}}}
//
// torchrun prints py_callstack; ours is the message again. Also read: {"message": "..."}, which
// torchrun writes for workers that left none.
// Source: PyTorch 1.13.1, torch/distributed/elastic/multiprocessing/errors/error_handler.py.
// Threads: any; processes must not share a file.
#pragma once

#include <optional>
#include <string>

#include "backends/api/runtime.h"

namespace ddproof {

inline constexpr const char* kErrorFileVariable = "TORCHELASTIC_ERROR_FILE";

// Writes the file that the environment names, if it names one. What goes wrong with that is not
// told: `message` itself is what matters, and the caller has it.
void write_error_file(Runtime& runtime, const std::string& message);

// The message in one line, without control characters, at most 1,000 bytes; nothing where there is
// no file, or it is not of that form.
std::optional<std::string> read_error_file(FileSystem& files, const std::string& path);

}  // namespace ddproof
