// Standard input, output and error of a program whose starter may have closed them.
#pragma once

namespace ddproof {

// Gives those of the descriptors 0 to 2 that are closed to /dev/null, so that no file, pipe or
// socket becomes one of them and takes what is printed. Call it first in main().
void open_standard_descriptors();

}  // namespace ddproof
