// A text as one word of a POSIX shell's command line: for lines that are printed to be run.
#pragma once

#include <string>

namespace ddproof {

// As it is where no shell would take it apart or change it; else in quotes.
std::string shell_word(const std::string& text);

}  // namespace ddproof
